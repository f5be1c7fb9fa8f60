"""Tells what is wrong with foot wrenches that cannot be the robot's: sign, axes, unit, feet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from com_estimation.identification.postures import Posture, SensorNoise
from com_model import Foot, RobotModel


class WrenchFault(IntEnum):
    """Kinds of faults."""

    UNKNOWN = 0
    SIGN = 1
    """The force of the robot on the ground instead of the reverse."""
    AXES = 2
    """The sensor is mounted turned against its frame."""
    SWAPPED = 3
    """Two feet have each other's readings."""
    UNIT = 4
    """Not in N and N m."""
    OFFSET = 5
    """A reading without load is not zero: it was not tared."""
    IN_AIR = 6
    """A foot does not stand: no fault of the sensor, but to be known."""
    WEIGHT = 7
    """The feet together do not carry the robot's weight."""


@dataclass(frozen=True)
class WrenchFinding:
    """One thing that is wrong.

    Attributes:
        fault: Its kind.
        feet: Names of the feet concerned.
        text: What was read, what was expected, the mend.
    """

    fault: WrenchFault
    feet: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return self.text


def diagnose(
    model: RobotModel,
    feet: Sequence[Foot],
    posture: Posture,
    noise: SensorNoise | None = None,
    *,
    mass_share: float = 0.1,
    com_deviation: float = 0.03,
    gravity: float = 9.81,
) -> tuple[WrenchFinding, ...]:
    """Compares a posture's wrenches with what the URDF lets expect.

    Args:
        model: The robot.
        feet: Its feet, with the signs and frames that are in doubt.
        posture: Means of readings at rest.
        noise: Of one reading.
        mass_share: How far the URDF's mass may be off, a share of it.
        com_deviation: m, how far its CoM may be off.
        gravity: m/s^2.

    Returns:
        What is wrong; empty where the readings may be true.
    """
    raise NotImplementedError
