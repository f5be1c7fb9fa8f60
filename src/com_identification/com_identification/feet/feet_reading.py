"""Mass and CoM by the feet alone, in one posture or in several, and compared with the model's."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

import numpy as np

from com_identification.exceptions import (
    CaptureRefused,
    IdentificationError,
    PostureError,
)
from com_identification.feet.wrench_check import WrenchFault, diagnose
from com_identification.regression.observations import ObservationModel
from com_identification.regression.postures import Posture, SensorPrediction
from com_identification.regression.priors import BodyPriors
from com_identification.settings import IdentificationSettings
from com_model import Foot, RobotModel, Sesc
from com_model.arrays import Array, FrozenArrays
from com_model.geometry.rotations import angle_between, skew

_TILT = 0.01  # rad, between IMU and soles, that is allowed
_VECTORS = ("up", "projection", "measured", "difference", "tilt_part", "model_part")
_NUMBERS = ("model_std", "tilt", "force_tilt", "mass", "mass_std")


@dataclass(frozen=True, eq=False)
class FeetReading(FrozenArrays):
    """Mass and CoM by the feet and by the model in one posture; root axes.

    Attributes:
        mass: kg, by the feet.
        mass_std: kg, by the sensors' noise.
        force: (3,) N, of the ground on the robot.
        up: (3,) unit vector against gravity, by the IMU or the loaded soles.
        point: (3,) m, on the vertical through the CoM by the feet.
        center: (3,) m, mean of the loaded soles.
        normal: (3,) unit vector, mean z of the loaded flat soles; NaN without any.
        pressure: (3,) m, centre of pressure in the plane through center; NaN without normal.
        com: (3,) m, by the model.
        covariance: (3, 3) m^2, of the horizontal difference between point and com.
    """

    mass: float
    mass_std: float
    force: Array
    up: Array
    point: Array
    center: Array
    normal: Array
    pressure: Array
    com: Array
    covariance: Array

    @property
    def gap(self) -> Array:
        """(3,) m, horizontal, from the model's CoM to the vertical by the feet."""
        gap = self.point - self.com
        return np.asarray(gap - (gap @ self.up) * self.up)


def read_feet(
    observations: ObservationModel, posture: Posture, theta: Array
) -> FeetReading | None:
    """Computes mass and CoM by the feet and by the model in a posture.

    Args:
        observations: the equations of the robot.
        posture: its readings.
        theta: (4 B,) masses kg and first moments kg m of the model.

    Returns:
        None where a foot's wrench is not known, or nothing carries the robot.

    Raises:
        PostureError: the readings do not fit the robot, or gravity's direction is unknown.
    """
    if not len(posture.wrenches) or not np.isfinite(posture.wrenches).all():
        return None
    observations.check(posture)
    errors = np.zeros(observations.errors.count)  # mean of the priors
    measured = observations.measured_com(posture, errors)
    loaded = observations.contacts.loaded(posture.wrenches)
    if measured is None or not loaded.any() or not abs(measured.mass) > 1e-9:
        return None
    mass, point, up, wrench = measured
    statics, model = observations.statics, observations.model
    poses = statics.poses(posture.q[None])
    R, p = statics.link_frames(
        poses, [model.link_index(foot.frame) for foot in observations.feet]
    )
    center = p[0][loaded].mean(axis=0)
    flat = loaded & np.array([len(foot.corners) > 0 for foot in observations.feet])
    normal = np.full(3, np.nan)
    if flat.any():
        normal = R[0][flat][:, :, 2].sum(axis=0)
        normal /= np.linalg.norm(normal)
    moment = wrench[3:] - np.cross(center, wrench[:3])
    push = float(wrench[:3] @ normal)
    noise = observations.linearize(posture, theta, errors).covariance[:6, :6]
    weight = mass * observations.gravity
    # point = center + up x moment / (up . force), by the force and the moment about the root
    by_force = -skew(up) @ skew(center) - np.outer(point - center, up)
    to_point = np.hstack((by_force, skew(up))) / weight
    return FeetReading(
        mass=mass,
        mass_std=float(np.sqrt(up @ noise[:3, :3] @ up)) / observations.gravity,
        force=wrench[:3],
        up=up,
        point=point,
        center=center,
        normal=normal,
        pressure=center + np.cross(normal, moment) / push,
        com=statics.com(poses, theta)[0],
        covariance=to_point @ noise @ to_point.T,
    )


def estimate_wrench_bias(
    observations: ObservationModel, posture: Posture, foot: int, priors: BodyPriors
) -> Array:
    """Estimates the bias of a foot's sensor, by the model, while the robot stands on it alone.

    Args:
        observations: the equations of the robot.
        posture: of the robot standing on that foot.
        foot: its index.
        priors: of the bodies; their means are the model.

    Returns:
        (6,) N and N m, as read.

    Raises:
        CaptureRefused: another foot carries load, or gravity's direction is unknown.
    """
    feet, gravity = observations.feet, observations.gravity
    loaded = observations.contacts.loaded(posture.wrenches)
    others = [other.frame for i, other in enumerate(feet) if loaded[i] and i != foot]
    if others:
        raise CaptureRefused(
            f"{', '.join(others)} carries load, too, and its fraction is not known; "
            f"lift it, so that {feet[foot].frame} carries all"
        )
    up = observations.up_direction(posture)
    if not np.isfinite(up).all():
        raise CaptureRefused(
            "the direction of gravity is not known: use an IMU, or a foot with a flat sole"
        )
    prediction = SensorPrediction(
        observations.statics, feet, priors.parameters, gravity
    )
    expected = prediction.posture(posture.q, up, (foot,), efforts=False, samples=1)
    return np.asarray(posture.wrenches[foot] - expected.wrenches[foot])


@dataclass(frozen=True, eq=False)
class TotalCom(FrozenArrays):
    """The robot's mass and the error of its model's CoM, by the feet alone.

    Attributes:
        mass: kg, by the feet; the mean of the postures.
        mass_std: kg, of the mean: scatter of the postures, or noise where that is larger.
        model_mass: kg, of the URDF.
        offset: (3,) m, root axes: the one shift of the model's CoM that explains the
            postures best. What no posture determines is 0: on horizontal ground the feet
            determine two components.
        offset_std: (3,) m; inf for a component that no posture determines.
        residual_before: (P,) m, horizontal distance between model and feet.
        residual_after: (P,) m, with the shift.
        postures: P, how many had all feet's wrenches.
        reasons: issues of the readings, sentences.
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


def identify_total(
    model: RobotModel,
    feet: Sequence[Foot],
    postures: Sequence[Posture],
    settings: IdentificationSettings | None = None,
) -> TotalCom:
    """Estimates the total mass and the offset of the CoM: a quick answer, one posture suffices.

    The offset is one shift o in the axes of the root, as if the root's body were wrong alone.
    With P = 1 - up up^T, posture by posture, and weighted by the sensors' noise,

      P o = P (point on the vertical by the feet - CoM by the model).

    Args:
        model: the robot.
        feet: its feet.
        postures: their readings.
        settings: noise of the sensors, and gravity; None: the defaults.

    Raises:
        IdentificationError: no posture has the wrenches of all feet.
        PostureError: readings cannot be used; names the posture.
    """
    settings = settings or IdentificationSettings()
    observations = ObservationModel(model, feet, settings.noise, settings.fit.gravity)
    readings: list[FeetReading] = []
    for index, posture in enumerate(postures):
        try:
            reading = read_feet(observations, posture, observations.statics.parameters)
        except PostureError as error:
            raise PostureError(error.problem, index) from error
        readings += [] if reading is None else [reading]
    if not readings:
        raise IdentificationError(
            "no posture has the wrenches of all feet: capture one with the robot on its feet"
        )
    offset, std = _shift(readings)
    before = np.array([float(np.linalg.norm(each.gap)) for each in readings])
    after = [np.linalg.norm(np.cross(each.up, each.gap - offset)) for each in readings]
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
        residual_after=np.array(after),
        postures=len(readings),
        reasons=_issues(observations, postures),
    )


def _shift(readings: Sequence[FeetReading]) -> tuple[Array, Array]:
    """The shift (3,) that explains all gaps best, and its std; inf where not known."""
    information, right, squared = np.zeros((3, 3)), np.zeros(3), 0.0
    for each in readings:
        horizontal = np.linalg.svd(each.up[None])[2][
            1:
        ]  # (2, 3), rows perpendicular to up
        weight = np.linalg.inv(horizontal @ each.covariance @ horizontal.T)
        information += horizontal.T @ weight @ horizontal
        right += horizontal.T @ weight @ (horizontal @ each.gap)
        squared += float(horizontal @ each.gap @ weight @ (horizontal @ each.gap))
    values, vectors = np.linalg.eigh(information)
    # of the largest; tilts of 2 degrees reach it
    known = values > 1e-3 * values[-1]
    covariance = (vectors[:, known] / values[known]) @ vectors[:, known].T
    offset = covariance @ right
    freedom = 2 * len(readings) - int(known.sum())
    variance = (squared - right @ offset) / freedom if freedom > 0 else 1.0
    std = np.sqrt(np.diag(covariance) * max(1.0, variance))
    # unobservable fraction of a component
    lost = np.square(vectors[:, ~known]).sum(axis=1) > 0.01
    return offset, np.where(lost, np.inf, std)


def _issues(
    observations: ObservationModel, postures: Sequence[Posture]
) -> tuple[str, ...]:
    """Issues of the wrenches, each fault of the first posture that shows it."""
    texts: dict[WrenchFault, str] = {}
    # at most 20 postures, as a fault of a sensor shows in many
    step = max(1, -(-len(postures) // 20))
    for index in range(0, len(postures), step):
        for each in diagnose(observations, postures[index]):
            if each.fault != WrenchFault.IN_AIR:
                texts.setdefault(each.fault, f"Posture {index}: {each.text}")
    return tuple(texts.values())


@dataclass(frozen=True, eq=False)
class TiltedShape(FrozenArrays):
    """The CoM of a robot that stood at several tilts without changing its shape.

    Attributes:
        total: of its postures; the offset includes the height.
        postures: indices of those, P.
        com: (P, 3) m, total CoM in each, root axes.
        tilt: rad, largest between two of them.
    """

    total: TotalCom
    postures: tuple[int, ...]
    com: Array
    tilt: float


def find_tilted_shape(
    model: RobotModel,
    feet: Sequence[Foot],
    postures: Sequence[Posture],
    settings: IdentificationSettings,
) -> TiltedShape:
    """Finds the total CoM by the largest group of postures of one shape: [Muscolo] eqs 14 to 20.

    All joints above the ankles are the same; the direction of gravity differs by 5 degrees or
    more. Then the vertical lines through the centres of pressure meet in the CoM, whose height no
    single posture shows.

    Args:
        model: the robot.
        feet: its feet.
        postures: their readings.
        settings: noise of the sensors, and gravity.

    Raises:
        PostureError: there is no such group.
    """
    ankles = set()
    for foot in feet:
        path = model.bodies.path_to(
            model.bodies.body_of_link[model.link_index(foot.frame)]
        )
        # the two joints of one ankle are at most 0.05 m apart
        two = path and np.linalg.norm(model.bodies.d[path[-1]]) < 0.05
        ankles |= {int(model.bodies.q_index[body]) for body in path[-1 - bool(two) :]}
    shape = [i for i in range(model.n_joints) if i not in ankles]
    Q = np.array([posture.q[shape] for posture in postures]).reshape(
        len(postures), len(shape)
    )
    # rad or m, of the joints above the ankles
    same_shape = np.abs(Q[:, None] - Q[None]).max(axis=2, initial=0.0) < 0.02
    observations = ObservationModel(model, feet, settings.noise, settings.fit.gravity)
    ups = np.array([observations.up_direction(posture) for posture in postures])
    tilts = np.arccos(np.clip(ups @ ups.T, -1.0, 1.0))
    spans = np.nanmax(np.where(same_shape, tilts, 0.0), axis=1, initial=0.0)
    least_tilt = 0.087  # rad, least between two postures
    tilted = np.flatnonzero(spans >= least_tilt)
    if not tilted.size:
        raise PostureError(
            f"none of {len(postures)} postures is another one tilted: stand still, then with both "
            f"ankles turned by {np.degrees(least_tilt):.0f} degrees or more and all other joints "
            f"as they are; the largest tilt of one shape is {np.degrees(spans.max()):.1f} degrees"
        )
    best = int(tilted[same_shape[tilted].sum(axis=1).argmax()])
    own = np.flatnonzero(same_shape[best]).tolist()
    total, sesc = (
        identify_total(model, feet, [postures[i] for i in own], settings),
        Sesc(model),
    )
    com = sesc.com_batch(np.array([postures[i].q for i in own])) + total.offset
    return TiltedShape(total, tuple(own), com, float(spans[best]))


class ModelVerdict(IntEnum):
    """Result of the comparison.

    Attributes:
        UNKNOWN: no comparison is possible; see the reason.
        WRONG_COM: the model's CoM is wrong.
        WRONG_MASS: the model's mass is wrong.
        WRONG_TILT: the CoM agrees, but the IMU disagrees with soles and forces.
        WRONG_WRENCH: the feet's readings cannot be true; see diagnose().
    """

    UNKNOWN = 0
    CONSISTENT = 1
    """Mass and CoM of the model agree with the feet, within tolerance and standard deviation."""
    WRONG_COM = 2
    WRONG_MASS = 3
    WRONG_TILT = 4
    WRONG_WRENCH = 5


@dataclass(frozen=True, eq=False)
class ModelCheckResult(FrozenArrays):
    """Model against feet, in root axes; points are on the ground, in the plane of the soles.

    difference = tilt_part + model_part, all vectors in that plane. With the height h of the CoM,
    an IMU with a small error of its angle moves the projection by h times the angle.

    Attributes:
        verdict: see ModelVerdict.
        reason: why, and how to fix it.
        up: (3,) the direction against gravity that was used: the IMU's, or the soles'.
        projection: (3,) m, vertical, of the model's CoM.
        measured: (3,) m, the centre of pressure, above which the CoM is in equilibrium.
        difference: (3,) m, projection less measured.
        tilt_part: (3,) m of it that vanishes if the soles are on horizontal ground.
        model_part: (3,) m, the rest: the model's error and the force sensors'.
        model_std: m, standard deviation of a component of model_part by the noise.
        tilt: rad, between the IMU's direction and the soles'; NaN without IMU or flat soles.
        force_tilt: rad, between the direction that was used and that of the feet's force.
        sloped: whether the force agrees with the IMU: the ground is not horizontal, and all
            of the difference is the model's.
        mass: kg, that the feet carry.
        mass_std: kg.
        model_mass: kg.
    """

    verdict: ModelVerdict
    reason: str
    up: Array
    projection: Array
    measured: Array
    difference: Array
    tilt_part: Array
    model_part: Array
    model_std: float
    tilt: float
    force_tilt: float
    sloped: bool
    mass: float
    mass_std: float
    model_mass: float

    @property
    def com_error(self) -> float:
        """Horizontal error of the model's CoM, m."""
        return float(
            np.linalg.norm(self.difference if self.sloped else self.model_part)
        )


class ModelCheck:
    """Compares model and feet in stationary postures.

    Args:
        model: the robot.
        feet: its feet with force sensors.
        settings: noise of the sensors, and gravity; None: the defaults.
        com_tolerance: m, horizontal error of the CoM that is allowed.
        mass_tolerance: error of the mass that is allowed, fraction of the model's.
    """

    def __init__(
        self,
        model: RobotModel,
        feet: Sequence[Foot],
        settings: IdentificationSettings | None = None,
        com_tolerance: float = 0.003,
        mass_tolerance: float = 0.02,
    ) -> None:
        settings = settings or IdentificationSettings()
        self._observations = ObservationModel(
            model, feet, settings.noise, settings.fit.gravity
        )
        self._com, self._mass = com_tolerance, mass_tolerance

    def update(self, posture: Posture | None) -> ModelCheckResult:
        """Compares model and feet in a posture.

        Args:
            posture: of a stationary robot, as of PostureRecorder.latest(); None: the robot
                moves.
        """
        if posture is None:
            return self._unknown("The robot is moving: keep it stationary.")
        try:
            reading = read_feet(
                self._observations, posture, self._observations.statics.parameters
            )
        except PostureError as error:
            return self._unknown(f"The readings cannot be used: {error.problem}.")
        if reading is None:
            return self._unknown(
                "The wrenches of all feet are needed, with the robot on them: check their sensors."
            )
        if not np.isfinite(reading.normal).all():
            return self._unknown(
                "No flat sole stands: the plane of the ground is not known."
            )
        # Why the readings cannot be true, other than by a foot in the air or the weight.
        harmless = (WrenchFault.IN_AIR, WrenchFault.WEIGHT)
        issues = diagnose(self._observations, posture)
        faults = " ".join(each.text for each in issues if each.fault not in harmless)
        return self._judge(self._compare(reading, posture), faults)

    def _compare(self, reading: FeetReading, posture: Posture) -> ModelCheckResult:
        n, center = reading.normal, reading.center
        projection = _along(reading.com, reading.up, n, center)
        level = _along(reading.com, n, n, center)
        tilt, force = np.nan, reading.force / np.linalg.norm(reading.force)
        sloped = False
        if np.isfinite(posture.up).all():
            tilt = angle_between(reading.up, n)
            sloped = bool(
                angle_between(force, reading.up) < angle_between(force, n)
                and tilt > _TILT
            )
        return ModelCheckResult(
            verdict=ModelVerdict.UNKNOWN,
            reason="",
            up=reading.up,
            projection=projection,
            measured=reading.pressure,
            difference=projection - reading.pressure,
            tilt_part=projection - level,
            model_part=level - reading.pressure,
            model_std=float(np.sqrt(np.trace(reading.covariance) / 2.0)),
            tilt=tilt,
            force_tilt=angle_between(force, reading.up),
            sloped=sloped,
            mass=reading.mass,
            mass_std=reading.mass_std,
            model_mass=self._observations.model.mass,
        )

    def _judge(self, found: ModelCheckResult, faults: str) -> ModelCheckResult:
        off, allowed = found.mass - found.model_mass, self._mass * found.model_mass
        verdict = ModelVerdict.CONSISTENT
        reason = f"The model's CoM is within {1e3 * self._com:.1f} mm of the feet's measurement."
        sure = 3.0  # standard deviations
        if faults:
            verdict, reason = ModelVerdict.WRONG_WRENCH, faults
        elif abs(off) > allowed + sure * found.mass_std:
            verdict = ModelVerdict.WRONG_MASS
            reason = (
                f"The feet carry {found.mass:.4g} kg, the model has {found.model_mass:.4g} kg: "
                "weigh the robot, tare the sensors, and look for loads that the URDF has not."
            )
        elif found.com_error > self._com + sure * found.model_std:
            verdict = ModelVerdict.WRONG_COM
            reason = (
                f"The model's CoM is {1e3 * found.com_error:.1f} mm off: identify the links' "
                "centres of mass."
            )
        elif found.tilt > _TILT and not found.sloped:
            verdict = ModelVerdict.WRONG_TILT
            reason = (
                f"The IMU leans {np.degrees(found.tilt):.1f} deg against soles and forces, which "
                f"moves the projection by {1e3 * np.linalg.norm(found.tilt_part):.1f} mm: level "
                "the IMU, or correct its frame in the URDF."
            )
        return replace(found, verdict=verdict, reason=reason)

    def _unknown(self, reason: str) -> ModelCheckResult:
        unknown: dict[str, Any] = dict.fromkeys(_VECTORS, np.full(3, np.nan))
        unknown |= dict.fromkeys(_NUMBERS, np.nan)
        return ModelCheckResult(
            ModelVerdict.UNKNOWN,
            reason,
            sloped=False,
            model_mass=self._observations.model.mass,
            **unknown,
        )


def _along(point: Array, direction: Array, normal: Array, center: Array) -> Array:
    """Where a line through a point meets the ground."""
    return np.asarray(
        point - direction * ((point - center) @ normal) / (direction @ normal)
    )
