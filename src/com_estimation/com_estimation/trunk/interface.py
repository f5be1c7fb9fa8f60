"""Input and output of the estimators of a quadruped's trunk.

The trunk is the root body: the root link with everything that is fixed to it. Vectors of the
trunk are in the axes of the root link, with its origin as their origin. Legs are in the order
left_front, right_front, left_hind, right_hind. An unknown number is NaN, never 0.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import numpy as np

from com_model.arrays import Array, Flags
from com_model.status import Status


@dataclass(frozen=True, eq=False)
class Sample:
    """Sensor readings at one instant.

    Attributes:
        time: s.
        position: (n,) rad or m, all joints of the model.
        effort: (n,) N m or N that the actuators apply; NaN where unknown.
        velocity: (n,) rad/s or m/s; NaN where unknown.
        angular_velocity: (3,) rad/s of the IMU, axes of its link; NaN where unknown.
        specific_force: (3,) m/s^2 of the accelerometer, gravity included, axes of the IMU's
            link; NaN where unknown.
        R_world_imu: (3, 3), world z up; NaN where unknown.
        foot_forces: (4, 3) N, of the ground on each foot, root axes, from foot sensors; None
            without them.
        stance: (4,) which legs stand, from a gait's phase or contact sensors; None when unknown.
    """

    time: float
    position: Array
    effort: Array
    velocity: Array
    angular_velocity: Array
    specific_force: Array
    R_world_imu: Array
    foot_forces: Array | None = None
    stance: Flags | None = None


_unknown = partial(np.full, 3, np.nan)


@dataclass(frozen=True, eq=False)
class TrunkEstimate:
    """Estimate of the trunk's mass and centre of mass, root frame; NaN where unknown.

    Attributes:
        time: s, of the sample that it was computed from.
        status: how good it is.
        reason: why it is not better, and how to fix it; empty only when CONVERGED.
        mass: kg, of the trunk.
        mass_std: kg, its standard deviation.
        com: (3,) m, the trunk's centre of mass.
        covariance: (3, 3) m^2, of com.
        offset_from_urdf: (3,) m, com minus the trunk's centre of mass in the URDF.
        offset_from_center: (3,) m, com minus the geometric centre: the mean of the four hips.
        observable: (3,) the components x, y, z of com that the present data determine.
        payload_changed_at: s, when the last change of the payload was detected.
        repeatability: (3,) m, standard deviations by which the CoM differs from stride to stride
            while constant errors stay the same: those of a difference.
        limited_by: the error that makes most of the covariance, and how to reduce it.
        robot_com_std: m, standard deviation of the robot's CoM in x or y, from this trunk and
            the URDF's legs, whose errors of mass cancel in it; NaN: unknown, or a payload is
            suspected.
    """

    time: float
    status: Status
    reason: str
    mass: float = np.nan
    mass_std: float = np.nan
    com: Array = field(default_factory=_unknown)
    covariance: Array = field(default_factory=partial(np.full, (3, 3), np.nan))
    offset_from_urdf: Array = field(default_factory=_unknown)
    offset_from_center: Array = field(default_factory=_unknown)
    observable: Flags = field(default_factory=lambda: np.zeros(3, dtype=np.bool_))
    payload_changed_at: float = np.nan
    repeatability: Array = field(default_factory=_unknown)
    limited_by: str = ""
    robot_com_std: float = np.nan


class TrunkEstimator(Protocol):
    """Protocol of an estimator of the trunk's centre of mass, which receives every sample."""

    def update(self, sample: Sample) -> TrunkEstimate | None:
        """Processes a sample; after a gap in time the filters restart.

        Args:
            sample: sensor readings, later than those before.

        Returns:
            The new estimate; None when the sample only fed filters.
        """

    def reset(self) -> None:
        """Forgets everything but the model and the options."""

    def step_back(self) -> None:
        """Forgets the last strides, as far as it can: their readings were wrong."""

    @property
    def latest(self) -> TrunkEstimate:
        """The last estimate; UNKNOWN before the first."""


def unknown_estimate(time: float, reason: str) -> TrunkEstimate:
    """An estimate with the status UNKNOWN; all numbers are NaN.

    Args:
        time: s, of the sample that it belongs to.
        reason: why nothing is known, and how to fix it.
    """
    return TrunkEstimate(time, Status.UNKNOWN, reason)
