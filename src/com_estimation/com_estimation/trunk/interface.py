"""What goes into an estimator of a quadruped's trunk and what comes out of it.

The trunk is the root body: the root link with everything that is fixed to it. Vectors of the
trunk are in the axes of the root link, with its origin as their origin. Legs stand in the order
left_front, right_front, left_hind, right_hind. A number that is not known is NaN, never 0.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import numpy as np

from com_model.arrays import Array, Flags
from com_model.status import Status


@dataclass(frozen=True, eq=False)
class Sample:
    """What the sensors say at one instant.

    Attributes:
        time: s.
        position: (n,) rad or m, all joints of the model.
        effort: (n,) N m or N that the actuators apply; NaN where not known.
        velocity: (n,) rad/s or m/s; NaN where not known.
        angular_velocity: (3,) rad/s of the IMU, axes of its link; NaN where not known.
        specific_force: (3,) m/s^2 of the accelerometer, gravity included, axes of the IMU's
            link; NaN where not known.
        R_world_imu: (3, 3), world z up; NaN where not known.
        foot_forces: (4, 3) N, of the ground on each foot, root axes, from foot sensors; None
            without them.
        stance: (4,) which legs stand, from a gait's phase or contact sensors; None when not
            known.
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
    """What an estimator knows of the trunk; NaN where it does not.

    Attributes:
        time: s, of the sample that it was computed from.
        status: how good it is.
        reason: why it is not better, and how to fix it; empty only when CONVERGED.
        mass: kg, of the trunk.
        mass_std: kg, its standard deviation.
        com: (3,) m, the trunk's centre of mass.
        covariance: (3, 3) m^2, of com.
        offset_from_urdf: (3,) m, com minus the trunk's centre of mass in the URDF.
        offset_from_center: (3,) m, com minus the geometric centre: the mean of the four
            hips.
        observable: (3,) the components x, y, z of com that the data determine now.
        payload_changed_at: s, when the last change of the payload was noticed.
        repeatability: (3,) m, standard deviations by which the CoM differs from stride to
            stride while constant errors stay the same: those of a difference.
        limited_by: what makes most of the covariance, and what would make it smaller.
        robot_com_std: m, standard deviation of the robot's CoM in x or y by this trunk and
            the URDF's legs, whose errors of mass cancel in it; NaN: not known, or a payload
            is suspected.
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
    """An estimator of the trunk's centre of mass, fed with every sample."""

    def update(self, sample: Sample) -> TrunkEstimate | None:
        """Take in a sample; after a gap in time the filters restart.

        Args:
            sample: what the sensors say now, later than the sample before.

        Returns:
            The new estimate; None when the sample only fed filters.
        """

    def reset(self) -> None:
        """Forget everything but the model and the options."""

    @property
    def latest(self) -> TrunkEstimate:
        """The last estimate; UNKNOWN before the first."""


def unknown_estimate(time: float, reason: str) -> TrunkEstimate:
    """An estimate of which nothing is known.

    Args:
        time: s, of the sample that it belongs to.
        reason: why nothing is known, and how to fix it.
    """
    return TrunkEstimate(time, Status.UNKNOWN, reason)
