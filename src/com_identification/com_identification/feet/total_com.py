"""The robot's mass and the error of its model's CoM by the feet alone, from several postures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from com_identification.exceptions import IdentificationError, PostureError
from com_identification.feet.feet_reading import FeetReading, read_feet
from com_identification.feet.wrench_check import WrenchFault, diagnose
from com_identification.regression.observations import ObservationModel
from com_identification.regression.postures import Posture
from com_identification.settings import IdentificationSettings
from com_model import Foot, RobotModel
from com_model.arrays import Array, freeze

_MIN_INFORMATION = 1e-3  # of the largest; tilts of 2 deg give so much
_MAX_CHECKED = 20  # postures; a fault of a sensor shows in many
_MAX_LOST = 0.01  # unobservable fraction of a component


@dataclass(frozen=True, eq=False)
class TotalCom:
    """The robot's mass and the error of its model's CoM, by the feet alone.

    Attributes:
        mass: kg, by the feet; the mean of the postures.
        mass_std: kg, of the mean: scatter of the postures, or noise where that is larger.
        model_mass: kg, of the URDF.
        offset: (3,) m, root axes: the one shift of the model's CoM that explains the postures best.
            What no posture determines is 0: on horizontal ground the feet determine two components.
        offset_std: (3,) m; inf for a component that no posture determines.
        residual_before: (P,) m, horizontal distance between model and feet.
        residual_after: (P,) m, with the shift.
        postures: P, how many had all feet's wrenches.
        reasons: Issues of the readings, sentences.
    """

    mass: float
    mass_std: float
    model_mass: float
    offset: Array
    offset_std: Array
    residual_before: Array
    residual_after: Array
    postures: int
    reasons: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        freeze(self)


def identify_total(
    model: RobotModel,
    feet: Sequence[Foot],
    postures: Sequence[Posture],
    settings: IdentificationSettings | None = None,
) -> TotalCom:
    """Finds the total mass and the offset of the CoM: a quick answer, one posture will do.

    The offset is one shift o in the axes of the root, as if the root's body were wrong alone. With
    P = 1 - up up^T, posture by posture, and weighted by the sensors' noise,

      P o = P (point on the vertical by the feet - CoM by the model).

    Raises:
        IdentificationError: No posture has the wrenches of all feet.
        PostureError: Readings that cannot be used; names the posture.
    """
    settings = settings or IdentificationSettings()
    observations = ObservationModel(model, feet, settings.noise, settings.fit.gravity)
    readings = _readings(observations, postures)
    if not readings:
        raise IdentificationError(
            "no posture has the wrenches of all feet: capture one with the robot on its feet"
        )
    offset, std = _shift(readings)
    before = np.array([float(np.linalg.norm(each.gap)) for each in readings])
    after = np.array(
        [float(np.linalg.norm(_horizontal(each.gap - offset, each.up))) for each in readings]
    )
    masses = np.array([each.mass for each in readings])
    noise = np.sqrt(np.mean(np.square([each.mass_std for each in readings])))
    scatter = np.std(masses, ddof=1) if len(masses) > 1 else 0.0
    return TotalCom(
        mass=float(masses.mean()),
        mass_std=float(max(noise, scatter) / np.sqrt(len(masses))),
        model_mass=model.mass,
        offset=offset,
        offset_std=std,
        residual_before=before,
        residual_after=after,
        postures=len(readings),
        reasons=_issues(observations, postures, settings),
    )


def _readings(observations: ObservationModel, postures: Sequence[Posture]) -> list[FeetReading]:
    found = []
    for index, posture in enumerate(postures):
        try:
            reading = read_feet(observations, posture, observations.statics.parameters)
        except PostureError as error:
            raise PostureError(error.problem, index) from error
        if reading is not None:
            found.append(reading)
    return found


def _shift(readings: Sequence[FeetReading]) -> tuple[Array, Array]:
    """The shift (3,) that explains all gaps best, and its std; inf where not known."""
    information, right, squared = np.zeros((3, 3)), np.zeros(3), 0.0
    for each in readings:
        horizontal = np.linalg.svd(each.up[None])[2][1:]  # (2, 3), rows perpendicular to up
        weight = np.linalg.inv(horizontal @ each.covariance @ horizontal.T)
        information += horizontal.T @ weight @ horizontal
        right += horizontal.T @ weight @ (horizontal @ each.gap)
        squared += float(horizontal @ each.gap @ weight @ (horizontal @ each.gap))
    values, vectors = np.linalg.eigh(information)
    known = values > _MIN_INFORMATION * values[-1]
    covariance = (vectors[:, known] / values[known]) @ vectors[:, known].T
    offset = covariance @ right
    freedom = 2 * len(readings) - int(known.sum())
    variance = (squared - right @ offset) / freedom if freedom > 0 else 1.0
    std = np.sqrt(np.diag(covariance) * max(1.0, variance))
    lost = np.square(vectors[:, ~known]).sum(axis=1) > _MAX_LOST
    return offset, np.where(lost, np.inf, std)


def _horizontal(vector: Array, up: Array) -> Array:
    return np.asarray(vector - (vector @ up) * up)


def _issues(
    observations: ObservationModel, postures: Sequence[Posture], settings: IdentificationSettings
) -> tuple[str, ...]:
    """Issues of the wrenches, each fault of the first posture that shows it."""
    texts: dict[WrenchFault, str] = {}
    step = max(1, -(-len(postures) // _MAX_CHECKED))
    for index in range(0, len(postures), step):
        found = diagnose(
            observations.model,
            observations.feet,
            postures[index],
            settings.noise,
            gravity=settings.fit.gravity,
        )
        for each in found:
            if each.fault != WrenchFault.IN_AIR:
                texts.setdefault(each.fault, f"Posture {index}: {each.text}")
    return tuple(texts.values())
