"""Readings of a posture, and the noise and constant errors of the sensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import ArrayLike, NDArray

from com_identification.exceptions import IdentificationError, PostureError
from com_model import RobotModel
from com_model.arrays import Array, as_array, freeze
from com_model.parameters import NOT_NEGATIVE, parameter

Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ComConstraint:
    """normal . (CoM - origin of the link) = offset, in the axes of a link.

    For instance the CoM is above an edge over which the robot is about to tip, or one component of
    it is known. The normal must be constant in the link: for a sole on horizontal ground,
    horizontal directions and the vertical are.

    Attributes:
        link: Name of the link, often a sole frame.
        normal: (3,) unit vector.
        offset: m.
        std: m, standard deviation of the offset.
    """

    link: str
    normal: Array
    offset: float
    std: float

    def __post_init__(self) -> None:
        normal = as_array("normal", self.normal, (3,))
        if not abs(float(normal @ normal) - 1.0) < 1e-6:
            raise PostureError(f"the normal {normal} of a constraint is not a unit vector")
        if not (np.isfinite(self.offset) and self.std > 0.0):
            got = f"{self.offset} m, {self.std} m"
            raise PostureError(
                f"expected a finite offset and a std above 0 of a constraint, got {got}"
            )
        object.__setattr__(self, "normal", normal)
        freeze(self)


@dataclass(frozen=True, eq=False)
class Posture:
    """Readings of a stationary robot; means of `samples` readings.

    Attributes:
        q: (n,) rad or m, joint positions by the encoders.
        wrenches: (f, 6) force N and moment N m of each foot's sensor, in its frame and with its
            sign; about 0 of a foot in the air, NaN of one without reading; (0, 6) without sensors.
        effort: (n,) N m or N that the actuators apply; NaN where not known.
        up: (3,) unit vector against gravity in root axes, by the IMU; NaN: the ground is
            horizontal, and the soles of the loaded feet give the direction.
        constraints: What else is known of the CoM.
        samples: Number of readings behind the means.
        label: A name, for messages.
    """

    q: Array
    wrenches: Array
    effort: Array
    up: Array
    constraints: tuple[ComConstraint, ...] = ()
    samples: int = 1
    label: str = ""

    def __post_init__(self) -> None:
        freeze(self)


def make_posture(
    model: RobotModel,
    q: ArrayLike,
    wrenches: ArrayLike | None = None,
    effort: ArrayLike | None = None,
    up: ArrayLike | None = None,
    constraints: tuple[ComConstraint, ...] = (),
    samples: int = 1,
    label: str = "",
) -> Posture:
    """Checks readings and makes a Posture of them; None is for what is not known.

    Raises:
        ShapeError: An array has the wrong shape.
        PostureError: q is not finite, up is not a unit vector, or samples not positive.
    """
    q = model.check_q(q)
    n = model.n_joints
    if not np.isfinite(q).all():
        bad = [model.joint_names[i] for i in np.flatnonzero(~np.isfinite(q))]
        raise PostureError(f"no position of {', '.join(bad)}: every joint's position is needed")
    if not samples >= 1:
        raise PostureError(f"samples: expected 1 or more, got {samples}")
    direction = np.full(3, np.nan) if up is None else as_array("up", up, (3,))
    if np.isfinite(direction).any() and not abs(float(np.linalg.norm(direction)) - 1.0) < 1e-6:
        raise PostureError(f"up is not a unit vector: {direction}")
    return Posture(
        q=q,
        wrenches=np.zeros((0, 6))
        if wrenches is None
        else as_array("wrenches", wrenches, (None, 6)),
        effort=np.full(n, np.nan) if effort is None else as_array("effort", effort, (n,)),
        up=direction,
        constraints=tuple(constraints),
        samples=int(samples),
        label=label,
    )


@dataclass(frozen=True)
class SensorNoise:
    """Standard deviations of one reading; the mean of N readings has 1/sqrt(N) of them.

    Constant errors are not noise: they are parameters of the identification (SensorPriors).
    """

    force: float = parameter(0.5, "N, each axis of a foot's sensor", NOT_NEGATIVE)
    moment: float = parameter(0.025, "N m, each axis", NOT_NEGATIVE)
    effort: float = parameter(0.1, "N m or N, each joint", NOT_NEGATIVE)
    position: float = parameter(
        float(np.radians(0.05)), "rad or m, of each joint's position", NOT_NEGATIVE
    )
    tilt: float = parameter(
        0.0,
        "rad, of the direction against gravity about each axis; also of ground that is "
        "assumed to be horizontal. Not averaged: it is constant during a posture",
        NOT_NEGATIVE,
    )
    least_fraction: float = parameter(
        0.0, "Fraction of a standard deviation that averaging does not reduce", NOT_NEGATIVE
    )

    def std_ratio(self, samples: int) -> float:
        """Returns the standard deviation of a mean over that of one reading."""
        return float(np.hypot(1.0 / np.sqrt(samples), self.least_fraction))


@dataclass(frozen=True)
class SensorPriors:
    """Standard deviations of the sensors' constant errors before any data; 0: not estimated.

    True values from readings, component by component:

      wrench   true = (1 - gain) reading - bias, in the sensor's frame
      effort   true = (1 + gain) reading - offset;  [Muscolo] eq. 4, M = K I: gain is K's error
      joint    true = reading + offset - compliance times effort
      tilt     the measured direction against gravity, rotated by (x, y, z) rad in root axes
    """

    force_bias: float = parameter(0.0, "N, each axis of each foot's sensor", NOT_NEGATIVE)
    moment_bias: float = parameter(0.0, "N m, each axis", NOT_NEGATIVE)
    wrench_gain: float = parameter(0.0, "1, one for each foot's sensor", NOT_NEGATIVE)
    effort_gain: float = parameter(0.0, "1, each joint", NOT_NEGATIVE)
    effort_offset: float = parameter(0.0, "N m or N, each joint", NOT_NEGATIVE)
    joint_offset: float = parameter(
        0.0, "rad or m, each joint: the encoder's zero offset", NOT_NEGATIVE
    )
    compliance: float = parameter(0.0, "rad/(N m) or m/N, each joint", NOT_NEGATIVE)
    tilt: float = parameter(0.0, "rad, how the IMU is mounted", NOT_NEGATIVE)

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if not (np.isfinite(value) and value >= 0.0):
                raise IdentificationError(
                    f"{item.name}: expected a standard deviation, 0 or more, got {value}"
                )


KINDS = tuple(item.name for item in fields(SensorPriors))
"""Kinds of constant errors, in the order of their columns."""


class SensorErrors:
    """Which entry of a vector of S constant errors is which.

    Args:
        feet: Names of the f feet.
        joints: Names of the n joints.
    """

    def __init__(self, feet: tuple[str, ...], joints: tuple[str, ...]) -> None:
        axes = ("x", "y", "z")
        names: dict[str, list[str]] = {
            "force_bias": [f"{foot} {axis}" for foot in feet for axis in axes],
            "moment_bias": [f"{foot} {axis}" for foot in feet for axis in axes],
            "wrench_gain": list(feet),
            "tilt": list(axes),
        }
        per_joint = ("effort_gain", "effort_offset", "joint_offset", "compliance")
        names.update({kind: list(joints) for kind in per_joint})
        self.names: list[tuple[str, str]] = []
        self._slices: dict[str, slice] = {}
        for kind in KINDS:
            start = len(self.names)
            self.names += [(kind, name) for name in names[kind]]
            self._slices[kind] = slice(start, len(self.names))

    @property
    def count(self) -> int:
        """S."""
        return len(self.names)

    def part(self, kind: str) -> slice:
        """Returns the slice of the errors of one kind."""
        return self._slices[kind]

    def prior_stds(self, priors: SensorPriors) -> Array:
        """Returns the prior standard deviation of each error, (S,)."""
        return np.concatenate(
            [np.full(s.stop - s.start, getattr(priors, kind)) for kind, s in self._slices.items()]
        )

    def by_name(self, values: Array, used: Flags) -> Mapping[str, dict[str, float]]:
        """Sorts values by kind and name; only those that are used."""
        result: dict[str, dict[str, float]] = {}
        for (kind, name), value, use in zip(self.names, values, used, strict=True):
            if use:
                result.setdefault(kind, {})[name] = float(value)
        return result
