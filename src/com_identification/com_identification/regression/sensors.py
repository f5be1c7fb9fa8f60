"""Constant errors of the sensors, as further unknowns of the identification."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from com_identification.exceptions import IdentificationError
from com_model.arrays import Array

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class SensorPriors:
    """Standard deviations of the sensors' constant errors before any data; 0: not estimated.

    What is read and what is true, component by component:

      wrench   true = (1 - gain) read - bias, in the sensor's frame
      effort   true = (1 + gain) read - offset;  [Muscolo] eq. 4, M = K I: gain is K's error
      joint    true = read + offset - compliance times the effort read
      tilt     the direction against gravity is that read, turned by (x, y, z) rad in root axes

    Attributes:
        force_bias: N, each axis of each foot's sensor.
        moment_bias: N m, each axis.
        wrench_gain: 1, one for each foot's sensor.
        effort_gain: 1, each joint.
        effort_offset: N m or N, each joint.
        joint_offset: rad or m, each joint: the encoder's zero.
        compliance: rad/(N m) or m/N, each joint.
        tilt: rad, how the IMU is mounted.
    """

    force_bias: float = 0.0
    moment_bias: float = 0.0
    wrench_gain: float = 0.0
    effort_gain: float = 0.0
    effort_offset: float = 0.0
    joint_offset: float = 0.0
    compliance: float = 0.0
    tilt: float = 0.0

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
        """Where the errors of one kind are."""
        return self._slices[kind]

    def deviations(self, priors: SensorPriors) -> Array:
        """Gives each error its prior standard deviation, (S,)."""
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
