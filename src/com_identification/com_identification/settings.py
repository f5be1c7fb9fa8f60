"""Settings of an identification: the one place of their defaults, for node, commands and Python.

A node has them as parameters (noise.force, prior.mass_std_fraction, ...), a YAML file as sections;
missing keys have the defaults of the dataclasses below.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from math import radians
from typing import Any, TypeVar, get_type_hints

import numpy as np

from com_model import ConfigError, RobotModel, UnknownNameError
from com_model.dynamics import GRAVITY
from com_model.parameters import NOT_NEGATIVE, check_options, parameter
from com_model.strict_yaml import Section, read_yaml

CRITERIA = ("parameters", "prediction")
T = TypeVar("T")
_COUNT = (0, 10**9)
_ANGLE = (0.0, radians(90.0))  # rad


def number(default: float, description: str) -> Any:
    """A parameter that is 0 or more.

    Args:
        default: Its default.
        description: Its unit and meaning.
    """
    return parameter(default, description, NOT_NEGATIVE)


_error = partial(ConfigError, source="identification settings")


class _Options:
    """Base of options: numbers and choices are checked by the bounds of their fields."""

    def __post_init__(self) -> None:
        check_options(self, _error)


@dataclass(frozen=True)
class SensorNoise(_Options):
    """Standard deviations of one reading; the mean of N readings has 1/sqrt(N) of them.

    Other errors are not noise: they are unknowns of the identification (SensorPriors).
    """

    force: float = number(0.5, "N, each axis of a foot's sensor")
    moment: float = number(0.025, "N m, each axis")
    effort: float = number(0.1, "N m or N, each joint")
    position: float = number(radians(0.05), "rad or m, of each joint's position")
    tilt: float = number(
        radians(0.05),
        "rad, of the IMU's direction against gravity about each axis. Not averaged: it is "
        "constant during a posture",
    )
    known_com: float = parameter(
        0.002,
        "m, each component of a CoM that is known otherwise. Not averaged",
        (1e-6, 1.0),
    )
    least_fraction: float = number(
        0.0, "Fraction of a standard deviation that is not averaged"
    )

    def std_ratio(self, samples: int) -> float:
        """Returns the standard deviation of a mean over that of one reading.

        Args:
            samples: number of readings of the mean.
        """
        return float(np.hypot(1.0 / np.sqrt(samples), self.least_fraction))


@dataclass(frozen=True)
class SensorPriors(_Options):
    """Prior standard deviations of the sensors' errors, all of which are estimated.

    Narrow those that are known. They scale with the robot: W is its weight by the URDF, L half
    the length of a sole. 0: there is no such error. True values from readings, each foot's wrench
    (f, m) in its sensor's frame:

      wrench   true = (1 + E) (reading - bias - drift), E = gain + crosstalk + pose of the
      sensor:
               f += phi x f,  m += phi x m + t x f
      effort   true = (1 + gain) reading - offset, within friction; [Muscolo] eq. 4: M = K I
      joint    true = reading + offset - compliance times effort, within its repeatability
      tilt     the IMU's direction against gravity, rotated by (x, y, z) rad in root axes
      floor    against gravity: the mean normal of the floor under the loaded soles, plus the
      slope
               in the axes of the first one, the same in all postures, within the unevenness; an
               elastic sole tilts on it by compliance times the moment about its middle

    Values of angles (rad) are those of revolute joints; a prismatic joint has as many dm.
    """

    force_bias: float = parameter(
        0.02, "of W, each axis of each foot's sensor", (0.0, 1.0)
    )
    moment_bias: float = parameter(0.002, "m, moment over W, each axis", (0.0, 0.05))
    force_drift: float = parameter(
        0.002, "of W, each axis, of the step from one posture to the next", (0.0, 1.0)
    )
    moment_drift: float = parameter(
        1e-4, "m, moment over W, of the same step", (0.0, 0.05)
    )
    wrench_gain: float = parameter(
        0.02, "1, each axis of each foot's sensor", (0.0, 1.0)
    )
    common_gain: float = parameter(
        0.01, "1, of all axes of all feet's sensors together", (0.0, 1.0)
    )
    pull: float = parameter(
        0.005,
        "of W, each axis, of a force from outside at the root, such as a cable's, constant in the "
        "axes of the floor",
        (0.0, 1.0),
    )
    pull_moment: float = parameter(
        0.001, "m, moment of that force about the root over W, each axis", (0.0, 1.0)
    )
    crosstalk: float = parameter(
        0.01,
        "1, between axes; moment into force over L, force into moment times L",
        (0.0, 1.0),
    )
    sensor_position: float = parameter(
        0.002, "m, each axis, of a sensor in its link", (0.0, 1.0)
    )
    sensor_rotation: float = parameter(radians(0.5), "rad, about each axis", _ANGLE)
    joint_offset: float = parameter(
        radians(0.5), "rad, each encoder's zero offset", _ANGLE
    )
    joint_repeatability: float = parameter(
        radians(0.1),
        "rad, each joint: backlash, new in each posture, never averaged",
        _ANGLE,
    )
    compliance: float = parameter(
        radians(0.1), "rad, each joint, its deflection under the torque W L", _ANGLE
    )
    sole_compliance: float = parameter(
        radians(0.2),
        "rad, each sole about each axis, its tilt under the moment W L",
        _ANGLE,
    )
    slope: float = parameter(radians(1.0), "rad, of the floor, about each axis", _ANGLE)
    unevenness: float = parameter(
        radians(0.1), "rad, of the floor, new in each posture", _ANGLE
    )
    sole_angle: float = parameter(
        radians(0.3),
        "rad, between soles on the floor, about each axis; 0: not used",
        _ANGLE,
    )
    sole_height: float = parameter(
        0.001, "m, of one sole above the plane of another", (0.0, 1.0)
    )
    tilt: float = parameter(
        radians(0.5), "rad, about each axis: how the IMU is mounted", _ANGLE
    )
    effort_gain: float = parameter(0.05, "1, each joint", (0.0, 1.0))
    effort_offset: float = parameter(0.002, "m, each joint, torque over W", (0.0, 1.0))
    friction: float = parameter(
        0.005, "m, torque over W, new in each posture", (0.0, 1.0)
    )

    @classmethod
    def calibrated(cls, **errors: float) -> SensorPriors:
        """Returns priors of sensors that have no errors but the given ones.

        Args:
            errors: prior standard deviations by field, in the field's unit.
        """
        return cls(**{item.name: 0.0 for item in fields(cls)} | errors)


@dataclass(frozen=True)
class LinkPrior:
    """Prior knowledge of one link that differs from the other links; None: as for all.

    A body is a link with all links that fixed joints connect to it; a prior of one of its links
    is that of the whole body. A weighed mass replaces the URDF's, and is known unless
    mass_std_fraction says otherwise.
    """

    com_std: float | None = parameter(
        None, "m, of its centre of mass; 0: known", NOT_NEGATIVE
    )
    mass_std_fraction: float | None = parameter(
        None, "Standard deviation of its mass over the mass; 0: known", NOT_NEGATIVE
    )
    mass: float | None = parameter(
        None, "kg, of the body, where it was weighed", (1e-9, 1e9)
    )


@dataclass(frozen=True)
class PriorSettings(_Options):
    """Prior standard deviations and bounds of the masses and centres of mass of the URDF."""

    com_std_fraction: float = number(
        0.1,
        "Standard deviation of each component of a body's centre of mass over the body's size, "
        "the edge of a cube of water of its mass; 5 to 20 mm",
    )
    mass_std_fraction: float = number(
        0.05, "Standard deviation of a mass over the mass; 0: known"
    )
    bounded: bool = parameter(
        True, "Whether a centre of mass must stay near its link's shapes"
    )
    shape_margin: float = number(0.02, "m, how far outside of them it may be")


@dataclass(frozen=True)
class FitSettings(_Options):
    """Options of the regression."""

    folds: int = parameter(
        5,
        "Parts of the postures that are left out in turn for the held-out error; 0: none",
        _COUNT,
    )
    gravity: float = parameter(GRAVITY, "m/s^2", (0.1, 100.0))
    use_effort: bool = parameter(False, "Whether joint efforts are used")
    use_imu: bool = parameter(
        False,
        "Whether gravity's direction is measured by an IMU, too; else by the floor alone",
    )


@dataclass(frozen=True)
class CaptureOptions(_Options):
    """When a robot counts as stationary, and for how long a posture needs readings.

    Time is cut into slices. Noise of the sensors comes on top of the thresholds: within a slice the
    range of readings may exceed them by 10 standard deviations, between slices that of the means by
    10 standard deviations of a mean.
    """

    collect_time: float = number(0.3, "s of readings that a posture needs at least")
    max_time: float = parameter(
        5.0,
        "s; with so much a stationary interval is complete; the newest count",
        (1e-3, 1e3),
    )
    settle_time: float = number(0.5, "s, stationary before the first reading counts")
    slice_time: float = parameter(
        0.1, "s; each slice has readings of all streams", (1e-3, 10.0)
    )
    joint_travel: float = number(0.003, "rad or m, of a joint within a slice")
    joint_drift: float = number(
        0.003, "rad or m, of a joint's mean over a stationary interval"
    )
    force_travel: float = number(
        0.05, "Fraction of the robot's weight, of a force within a slice"
    )
    force_drift: float = number(
        0.01, "Fraction of the weight, of a force's mean over a stationary interval"
    )
    pressure_travel: float = number(
        0.01, "m, of a moment over the weight within a slice"
    )
    pressure_drift: float = number(0.003, "m, of a moment's mean over the weight")
    tilt_travel: float = number(
        0.01, "1, of the direction against gravity within a slice"
    )
    tilt_drift: float = number(0.003, "1, of its mean over a stationary interval")
    timeout: float = number(
        0.5, "s behind the newest reading of all: a stream is timed out"
    )
    lag: float = number(
        2.0, "s that a stream may be behind; readings that come later are left out"
    )
    jump_back: float = number(
        1.0, "s; a stamp older than the newest by more restarts the recorder"
    )
    frozen_time: float = number(
        0.5,
        "s of identical readings of a force sensor or IMU: it is frozen; 0: never (simulation)",
    )
    force_limit: float = number(
        0.0, "N, of each axis, where a sensor saturates; 0: unknown"
    )
    moment_limit: float = number(0.0, "N m, of each axis; 0: unknown")
    min_load: float = number(
        0.05, "Fraction of the weight that the feet must carry together"
    )
    min_foot_load: float = number(
        0.02, "Fraction of the weight above which a foot is in contact"
    )
    all_feet: bool = parameter(False, "Whether every foot must be in contact")
    missing_feet: bool = parameter(
        False,
        "Whether a posture may be captured without the readings of some feet, which then are NaN",
    )
    min_change: float = number(
        0.01,
        "rad or m, the least change of some joint from the posture before that makes a "
        "new posture; 0: each stationary interval is one",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.collect_time > self.max_time:
            raise _error(
                f"collect_time: expected 0 to max_time ({self.max_time:g} s), got "
                f"{self.collect_time:g} s"
            )


@dataclass(frozen=True)
class PlanOptions(_Options):
    """Which postures may be proposed, and how they are scored.

    Attributes:
        stands: sets of feet in contact, as indices, used in turn; empty: all feet.
    """

    candidates: int = parameter(200, "How many postures to choose from", _COUNT)
    refinements: int = parameter(
        30, "How many changes of each chosen posture are tried", _COUNT
    )
    margin: float = number(
        0.025,
        "m, of the URDF's CoM inside the support polygon; more than the URDF may be off by",
    )
    limit_fraction: float = number(
        0.95, "Fraction of each joint's range, about its middle, that is used"
    )
    clearance: float = number(
        0.005, "m, between the boxes of links that are not adjacent"
    )
    stands: tuple[tuple[int, ...], ...] = ()
    one_foot: float = parameter(
        0.5,
        "Fraction of the postures on one foot, as far as there are any with the margin; it lowers "
        "the CoM's standard deviation by a fifth to a third. 0: where the robot must not stand on "
        "one foot. Not with keep_feet or stands",
        (0.0, 1.0),
    )
    efforts: bool = parameter(False, "Whether joint efforts are measured, too")
    seed: int = parameter(0, "Of the random postures", _COUNT)
    keep_feet: bool = parameter(
        False,
        "Whether feet in contact keep their poses relative to each other of the rest "
        "posture, so that the robot needs no step between postures",
    )
    effort_fraction: float = number(
        0.9,
        "Fraction of the URDF's effort limits that the joints may need to hold the "
        "posture; 0: not checked. Limits of 0 count as not known",
    )
    most_tilt: float = parameter(
        0.6,
        "rad, by which the root may tilt against the rest posture; postures in which a "
        "robot bows deeply are informative, but risky; pi: any",
        (1e-3, 1e9),
    )
    criterion: str = parameter(
        "parameters",
        "'parameters': minimises the volume of the uncertainty of all parameters. "
        "'prediction': the mean variance of the CoM in postures like the candidates",
        choices=CRITERIA,
    )

    @property
    def alone(self) -> float:
        """The fraction of postures on one foot that applies: 0 with keep_feet or stands."""
        return 0.0 if self.keep_feet or self.stands else self.one_foot


@dataclass(frozen=True)
class IdentificationSettings:
    """All settings of an identification: sections of a YAML file, groups of a node's parameters.

    Attributes:
        noise: of single readings.
        sensors: prior standard deviations of the sensors' constant and varying errors.
        prior: of the URDF's masses and centres of mass.
        links: what differs for some links, by name.
        fit: options of the regression.
        capture: when a robot counts as stationary.
        plan: which postures may be proposed.
    """

    noise: SensorNoise = field(default_factory=SensorNoise)
    sensors: SensorPriors = field(default_factory=SensorPriors)
    prior: PriorSettings = field(default_factory=PriorSettings)
    links: Mapping[str, LinkPrior] = field(default_factory=dict)
    fit: FitSettings = field(default_factory=FitSettings)
    capture: CaptureOptions = field(default_factory=CaptureOptions)
    plan: PlanOptions = field(default_factory=PlanOptions)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> IdentificationSettings:
        """Reads a YAML file; missing keys have their defaults.

        Args:
            path: of the file.

        Raises:
            ConfigError: a key or value is wrong.
        """
        data = read_yaml(path)
        return cls.from_dict({} if data is None else data, str(path))

    @classmethod
    def from_dict(
        cls, data: Mapping[str, Any], source: str = "identification settings"
    ) -> IdentificationSettings:
        """Reads the sections noise, sensors, prior, links, fit, capture and plan.

        Args:
            data: nested plain data; missing keys have their defaults.
            source: where it is from, for messages.

        Raises:
            ConfigError: a key or value is wrong.
        """
        top = Section(data, source)
        links = top.section("links")
        found = cls(
            links={
                name: _read_part(links.section(name), LinkPrior)
                for name in links.entries()
            },
            **{
                name: _read_part(top.section(name), kind)
                for name, kind in _PARTS.items()
            },
        )
        top.finish()
        return found

    def to_dict(self) -> dict[str, Any]:
        """Returns nested plain data that from_dict reads."""
        found: dict[str, Any] = {name: asdict(getattr(self, name)) for name in _PARTS}
        found["plan"]["stands"] = [list(stand) for stand in self.plan.stands]
        found["links"] = {
            name: {
                key: value for key, value in asdict(link).items() if value is not None
            }
            for name, link in sorted(self.links.items())
        }
        return found

    def check(self, model: RobotModel) -> None:
        """Checks that the links of `links` exist and have a mass.

        Args:
            model: of the robot.

        Raises:
            ConfigError: a link does not exist (the error lists those that do), or has no mass.
        """
        for name in self.links:
            key, source = f"links.{name}", "identification settings"
            if name not in model.link_names:
                raise ConfigError(
                    str(UnknownNameError("link", name, model.link_names)), source, key
                )
            if (
                not model.bodies.mass[model.bodies.body_of_link[model.link_index(name)]]
                > 0.0
            ):
                raise ConfigError(
                    "it has no mass in the URDF: give it an inertial there first",
                    source,
                    key,
                )


_PARTS: dict[str, type] = get_type_hints(IdentificationSettings)
del _PARTS["links"]


def _read_part(section: Section, kind: type[T]) -> T:
    """Reads a section into a dataclass, whose own checks name the section, too."""
    try:
        return section.options(kind())
    except ConfigError as error:
        if error.key:  # it is of the section
            raise
        raise section.error(str(error).removeprefix(f"{error.source}: ")) from error
