"""Contents of a report, with the comparison of readings, URDF and result of each posture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from com_identification.capture.options import DroppedReadings, StationaryInterval
from com_identification.feet.total_com import TotalCom
from com_identification.regression.identify import Identification, Residual, Residuals
from com_identification.regression.observations import ObservationModel
from com_identification.regression.postures import Posture
from com_model import Foot, RobotModel
from com_model.arrays import Array

NS_PER_S = 1_000_000_000


@dataclass(frozen=True)
class TopicLine:
    """A topic that was read.

    Attributes:
        role: What it was read for.
        name: Of the topic.
        type_name: Of its messages.
        messages: How many could be read.
    """

    role: str
    name: str
    type_name: str
    messages: int


@dataclass(frozen=True, eq=False)
class Contents:
    """All that a report shows.

    Attributes:
        robot: Name of the robot.
        inputs: Paths by name: bag, URDF, configuration, settings, as the user wrote them.
        topics: That were read.
        seconds: Between first and newest joint state.
        first_ns: Stamp of the first joint state, ns; times count from it.
        notes: Warnings about the recording, sentences.
        dropped: Readings that were left out.
        tally: Seconds that the robot was stationary, and seconds not usable by cause.
        intervals: Still intervals, in order.
        issues: Issues of the wrenches, sentences.
        model: The robot as its URDF has it.
        feet: Its feet.
        found: The result.
        prior_std: (B, 3) m, standard deviations of the centres of mass before the data.
        total: By the feet alone, of the postures that fit; None where none has their wrenches.
        fits: Posture by posture.
        changed: Links that have new values in the corrected URDF.
        kept: Why others have none, sentences.
    """

    robot: str
    inputs: Mapping[str, str]
    topics: Sequence[TopicLine]
    seconds: float
    first_ns: int
    notes: Sequence[str]
    dropped: DroppedReadings
    tally: Mapping[str, float]
    intervals: Sequence[StationaryInterval]
    issues: Sequence[str]
    model: RobotModel
    feet: Sequence[Foot]
    found: Identification
    prior_std: Array
    total: TotalCom | None
    fits: Sequence[PostureFit]
    changed: Sequence[str]
    kept: Sequence[str]

    def since_start(self, time_ns: int) -> float:
        """Seconds from the first joint state."""
        return (time_ns - self.first_ns) / NS_PER_S

    @property
    def labels(self) -> list[str]:
        """Names of the bodies: the links that have their mass."""
        return body_labels(self.model, self.found.bodies)


def residual_rows(found: Identification) -> list[tuple[str, Residual]]:
    """Returns the residuals with their names, also without the outliers where there are any."""
    groups: list[tuple[str, Identification | Residuals]] = [("", found)]
    if found.outliers:
        groups.append((", without outliers", found.without_outliers))
    return [
        (f"{name}{suffix}", residual)
        for suffix, group in groups
        for name, residual in (
            ("URDF", group.prior_residual),
            ("identified", group.residual),
            ("identified, postures left out of the fit in turn", group.held_out),
        )
    ]


def body_labels(model: RobotModel, bodies: Sequence[str]) -> list[str]:
    """Names bodies by their first link, and by the heaviest where that is another."""
    masses, owner = model.link_masses, model.bodies.body_of_link
    labels = []
    for b, name in enumerate(bodies):
        links = [i for i in range(len(owner)) if owner[i] == b]
        heaviest = model.link_names[max(links, key=lambda i: float(masses[i]))]
        labels.append(name if heaviest == name else f"{name} ({heaviest})")
    return labels


@dataclass(frozen=True, eq=False)
class PostureFit:
    """A posture and its CoM in the x and y of a sole in contact.

    Attributes:
        label: Name of the posture.
        samples: Readings behind its means.
        sole: Index of the foot whose sole it is; -1 without contact, then the positions are NaN.
        standing: Names of the feet in contact.
        mass: kg, by the feet.
        measured: (2,) m, by the feet.
        before: (2,) m, by the URDF.
        after: (2,) m, by the result.
        error_before: m, horizontal error of the URDF's CoM.
        error_after: m, of the result's CoM, sensor errors removed.
        weight: 0 to 1, of the posture in the fit.
    """

    label: str
    samples: int
    sole: int
    standing: tuple[str, ...]
    mass: float
    measured: Array
    before: Array
    after: Array
    error_before: float
    error_after: float
    weight: float


def compare_postures(
    model: RobotModel,
    feet: Sequence[Foot],
    postures: Sequence[Posture],
    found: Identification,
    gravity: float,
) -> list[PostureFit]:
    """Compares readings, URDF and result, posture by posture.

    Args:
        model: The robot as its URDF has it.
        feet: Its feet.
        postures: Those of the result.
        found: The result.
        gravity: m/s^2.
    """
    observations = ObservationModel(model, feet, gravity=gravity)
    errors = _errors(observations, found)
    prior = np.column_stack(
        (found.prior_mass, found.prior_mass[:, None] * np.nan_to_num(found.prior_com))
    ).ravel()
    return [
        _fit(observations, posture, (prior, found.parameters), errors, float(weight))
        for posture, weight in zip(postures, found.weights, strict=True)
    ]


def _errors(observations: ObservationModel, found: Identification) -> Array:
    """The sensors' errors that were found, (S,)."""
    names = observations.errors.names
    return np.array([found.sensor_errors.get(kind, {}).get(name, 0.0) for kind, name in names])


def _fit(
    observations: ObservationModel,
    posture: Posture,
    thetas: tuple[Array, Array],
    errors: Array,
    weight: float,
) -> PostureFit:
    none = np.zeros_like(errors)
    loaded = np.flatnonzero(observations.loaded_feet(posture.wrenches))
    places = _places(observations, posture, thetas, errors)
    return PostureFit(
        label=posture.label,
        samples=posture.samples,
        sole=int(loaded[0]) if np.isfinite(places[0]).all() else -1,
        standing=tuple(observations.feet[i].frame for i in loaded),
        mass=_mass(observations, posture, errors),
        measured=places[0],
        before=places[1],
        after=places[2],
        error_before=observations.com_error(posture, thetas[0], none),
        error_after=observations.com_error(posture, thetas[1], errors),
        weight=weight,
    )


def _mass(observations: ObservationModel, posture: Posture, errors: Array) -> float:
    measured = observations.measured_com(posture, errors)
    return float("nan") if measured is None else measured[0]


def _places(
    observations: ObservationModel, posture: Posture, thetas: tuple[Array, Array], errors: Array
) -> tuple[Array, Array, Array]:
    """Projects the CoM onto the first sole in contact: by the feet, before and after."""
    measured = observations.measured_com(posture, errors)
    loaded = np.flatnonzero(observations.loaded_feet(posture.wrenches))
    if measured is None or not len(loaded):
        return np.full(2, np.nan), np.full(2, np.nan), np.full(2, np.nan)
    _, point, up, _ = measured
    statics = observations.statics
    poses = statics.poses(posture.q[None])
    sole = statics.model.link_index(observations.feet[loaded[0]].frame)
    R, p = (array[0, 0] for array in statics.link_frames(poses, [sole]))

    def on_sole(place: Array) -> Array:
        drop = ((place - p) @ R[:, 2]) / (up @ R[:, 2])
        return np.asarray((R.T @ (place - drop * up - p))[:2])

    moment = statics.first_moment(poses)[0]
    before, after = (moment @ theta / theta[::4].sum() for theta in thetas)
    return on_sole(point), on_sole(before), on_sole(after)
