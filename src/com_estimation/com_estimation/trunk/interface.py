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
    """What the sensors say at one instant."""

    time: float  # s
    position: Array  # (n,) rad or m, all joints of the model
    effort: Array  # (n,) N m or N that the actuators apply; NaN where not known
    velocity: Array  # (n,) rad/s or m/s; NaN where not known
    angular_velocity: (
        Array  # (3,) rad/s of the IMU, axes of its link; NaN where not known
    )
    # (3,) m/s^2 of the accelerometer, gravity included, axes of the IMU's link; NaN where not
    # known
    specific_force: Array
    R_world_imu: Array  # (3, 3), world z up; NaN where not known
    # (4, 3) N, of the ground on each foot, root axes, from foot sensors; None without them
    foot_forces: Array | None = None
    # (4,) which legs stand, from a gait's phase or contact sensors; None when not known
    stance: Flags | None = None


_unknown = partial(np.full, 3, np.nan)


@dataclass(frozen=True, eq=False)
class TrunkEstimate:
    """What an estimator knows of the trunk; NaN where it does not."""

    time: float  # s, of the sample that it was computed from
    status: Status  # how good it is
    reason: str  # why it is not better, and how to fix it; empty only when CONVERGED
    mass: float = np.nan  # kg, of the trunk
    mass_std: float = np.nan  # kg, its standard deviation
    com: Array = field(default_factory=_unknown)  # (3,) m, the trunk's centre of mass
    # (3, 3) m^2, of com
    covariance: Array = field(default_factory=partial(np.full, (3, 3), np.nan))
    # (3,) m, com minus the trunk's centre of mass in the URDF
    offset_from_urdf: Array = field(default_factory=_unknown)
    # (3,) m, com minus the geometric centre: the mean of the four hips
    offset_from_center: Array = field(default_factory=_unknown)
    # (3,) the components x, y, z of com that the data determine now
    observable: Flags = field(default_factory=lambda: np.zeros(3, dtype=np.bool_))
    payload_changed_at: float = (
        np.nan
    )  # s, when the last change of the payload was noticed
    # (3,) m, standard deviations by which the CoM differs from stride to stride while constant
    # errors stay the same: those of a difference
    repeatability: Array = field(default_factory=_unknown)
    limited_by: str = (
        ""  # what makes most of the covariance, and what would make it smaller
    )
    # m, standard deviation of the robot's CoM in x or y by this trunk and the URDF's legs, whose
    # errors of mass cancel in it; NaN: not known, or a payload is suspected
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
