"""A floor that tilts while the robot stands on it.

The ground's plane turns about a horizontal line through the world's origin. MuJoCo takes what the
world carries for at rest at each instant, so that a foot on the floor does not feel the floor's own
speed, 9 mm/s at 0.1 m and 5 deg/s; the contact gives way by 0.2 mm there instead. That is little
for HOAP-2; heavy robots with long soles and stiff drives (Talos) hop on such a floor.
"""

from dataclasses import dataclass, replace

import mujoco
import numpy as np
from scipy.spatial.transform import Rotation

from com_simulation.exceptions import WorldError
from com_simulation.physics.spec import quaternion_wxyz

ONSET = 0.2  # s, in which the floor gets up to its speed, and stops
STEEPEST = np.radians(60.0)
_GROUND = "ground"


@dataclass(frozen=True)
class Tilt:
    """How a floor tilts: to an angle, and there it stays or goes back.

    Raises:
        WorldError: A number is not finite, or the angle or rate is out of its bounds.
    """

    angle: float  # rad
    rate: float  # rad/s
    # rad about the vertical, of the side that rises: 0 forwards, pi/2 to the left
    direction: float = 0.0
    start: float = 1.0  # s
    hold: float = float("inf")  # s at the angle before it goes back to where it was; inf: it stays

    def __post_init__(self) -> None:
        if not np.isfinite([self.angle, self.rate, self.direction, self.start]).all():
            raise WorldError("tilt: angle, rate, direction and start must be finite numbers")
        if not 0.0 <= self.angle <= STEEPEST:
            most = np.degrees(STEEPEST)
            raise WorldError(f"tilt.angle is {self.angle:g} rad: give 0 to {most:.0f} degrees")
        if not self.rate > 0.0:
            raise WorldError(f"tilt.rate is {self.rate:g} rad/s: give more than 0")
        if not (self.start >= 0.0 and self.hold >= 0.0):
            raise WorldError("tilt: start and hold must be 0 s or more")

    @property
    def duration(self) -> float:
        """Of the way to the angle, s."""
        return self.angle / self.rate + ONSET

    def at(self, time: float) -> float:
        """Angle at a time (s), rad."""
        angle = self._way(time - self.start)
        return angle - self._way(time - self.start - self.duration - self.hold)

    def _way(self, time: float) -> float:
        """Angle a time (s) after the beginning: at the rate, which comes and goes linearly."""
        longest = self.duration
        t = min(max(time, 0.0), longest)
        onset = min(ONSET, 0.5 * longest)
        peak = self.angle / (longest - onset)
        rest = max(t - (longest - onset), 0.0)
        first = min(t, onset)
        even = max(t - onset, 0.0)
        return peak * (0.5 * first**2 / onset + even - 0.5 * rest**2 / onset)


class TiltingFloor:
    """Turns the ground of a MuJoCo model.

    Args:
        mj: The model, with its ground as it is at the start.
    """

    def __init__(self, tilt: Tilt, mj: mujoco.MjModel) -> None:
        self._tilt = tilt
        self._ground = mj.geom(_GROUND).id
        w, x, y, z = mj.geom_quat[self._ground]
        self._start = Rotation.from_quat([x, y, z, w])
        # rises to where the direction points: turns about the line to the right of it
        self._axis = np.array([np.sin(tilt.direction), -np.cos(tilt.direction), 0.0])

    def begin(self, time: float) -> None:
        """Tilts from a time (s) on, if it has not begun before."""
        if time < self._tilt.start:
            self._tilt = replace(self._tilt, start=time)

    def act(self, mj: mujoco.MjModel, time: float) -> None:
        """Turns the ground to where it is at a time (s)."""
        turn = Rotation.from_rotvec(self._tilt.at(time) * self._axis) * self._start
        mj.geom_quat[self._ground] = quaternion_wxyz(turn.as_matrix())
        mj.geom_sameframe[self._ground] = 0

    def moving(self, time: float) -> bool:
        """Whether the ground turns at a time (s) or later."""
        tilt = self._tilt
        back = tilt.start + 2.0 * tilt.duration + tilt.hold
        return time <= (back if np.isfinite(back) else tilt.start + tilt.duration)
