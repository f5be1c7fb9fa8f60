"""Compares the model's CoM with the feet's readings while the robot stands still."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from com_estimation.identification.postures import Posture
from com_estimation.identification.settings import IdentificationSettings
from com_model import Foot, RobotModel
from com_model.arrays import Array, freeze


class Verdict(IntEnum):
    """What the comparison says."""

    UNKNOWN = 0
    """Nothing can be said; the reason tells why."""
    AGREES = 1
    """Mass and CoM of the model are what the feet say, within tolerance and deviation."""
    COM_OFF = 2
    """The model's CoM is off."""
    MASS_OFF = 3
    """The model's mass is off."""
    TILT = 4
    """Most of the difference comes from an IMU that disagrees with the soles."""
    WRENCH = 5
    """The feet's readings cannot be true; see diagnose()."""


@dataclass(frozen=True, eq=False)
class ModelCheckResult:
    """Model against feet, in root axes; points are on the ground, in the plane of the soles.

    difference = tilt_part + model_part, all vectors across gravity.

    Attributes:
        verdict: See Verdict.
        reason: In words, with the mend.
        up: (3,) the direction against gravity that was used.
        projection: (3,) m, of the model's CoM along gravity.
        measured: (3,) m, where the feet's readings put it: the centre of pressure.
        difference: (3,) m, projection less measured.
        tilt_part: (3,) m of it that would not be there if the soles stood on level ground.
        model_part: (3,) m, what is left: the model's error and the force sensors'.
        model_deviation: m, standard deviation of each component of model_part by the noise.
        tilt: rad, between the IMU's direction and the soles'; NaN without IMU.
        mass: kg, that the feet carry.
        mass_deviation: kg.
        model_mass: kg.
    """

    verdict: Verdict
    reason: str
    up: Array
    projection: Array
    measured: Array
    difference: Array
    tilt_part: Array
    model_part: Array
    model_deviation: float
    tilt: float
    mass: float
    mass_deviation: float
    model_mass: float

    def __post_init__(self) -> None:
        freeze(self)


class ModelCheck:
    """Compares at rest; see ModelCheckResult.

    Args:
        model: The robot.
        feet: Its feet.
        settings: Noise and gravity.
        com_tolerance: m, of model_part, beyond which the CoM is called off.
        mass_tolerance: Share of the model's mass beyond which the mass is called off.
    """

    def __init__(
        self,
        model: RobotModel,
        feet: Sequence[Foot],
        settings: IdentificationSettings | None = None,
        com_tolerance: float = 0.003,
        mass_tolerance: float = 0.02,
    ) -> None:
        raise NotImplementedError

    def update(self, posture: Posture | None) -> ModelCheckResult:
        """Compares a posture at rest, for instance PostureRecorder.latest().

        Args:
            posture: Means of readings; None: the robot is not at rest, and nothing is said.
        """
        raise NotImplementedError
