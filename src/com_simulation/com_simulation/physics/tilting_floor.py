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

from com_model.parameters import check_options, parameter
from com_simulation.exceptions import WorldError
from com_simulation.physics.spec import quaternion_wxyz

ONSET = 0.2  # s, in which the floor gets up to its speed, and stops
_GROUND = "ground"


STAYS = 1e6  # s


@dataclass(frozen=True)
class Tilt:
    """How a floor tilts while a robot stands on it: to an angle, and there it stays or goes back.

    Raises WorldError where a number is out of its bounds.
    """

    angle_deg: float = parameter(0.0, "to which the floor tilts, degrees; 0: not", (0.0, 60.0))
    rate_deg_s: float = parameter(5.0, "by which it does, degrees/s", (0.01, 180.0))
    direction_deg: float = parameter(
        0.0, "of the side that rises: 0 forwards, 90 to the left", (-360.0, 360.0)
    )
    start: float = parameter(
        5.0, "s of simulated time at which it begins; 1e6: with the service ~/tilt", (0.0, 1e6)
    )
    hold: float = parameter(5.0, "s at the angle before it goes back; 1e6: it stays", (0.0, STAYS))

    def __post_init__(self) -> None:
        check_options(self, WorldError, "tilt.")

    @property
    def duration(self) -> float:
        """Of the way to the angle, s."""
        return self.angle_deg / self.rate_deg_s + ONSET

    def at(self, time: float) -> float:
        """Angle at a time (s), rad."""
        back = (
            self._way(time - self.start - self.duration - self.hold) if self.hold < STAYS else 0.0
        )
        return self._way(time - self.start) - back

    def _way(self, time: float) -> float:
        """Angle a time (s) after the beginning: at the rate, which comes and goes linearly."""
        longest = self.duration
        t = min(max(time, 0.0), longest)
        onset = min(ONSET, 0.5 * longest)
        peak = np.radians(self.angle_deg) / (longest - onset)
        rest = max(t - (longest - onset), 0.0)
        first = min(t, onset)
        even = max(t - onset, 0.0)
        return peak * (0.5 * first**2 / onset + even - 0.5 * rest**2 / onset)


class TiltingFloor:
    """Turns the ground of a MuJoCo model."""

    def __init__(self, tilt: Tilt, mj: mujoco.MjModel) -> None:
        self._tilt = tilt
        self._ground = mj.geom(_GROUND).id
        w, x, y, z = mj.geom_quat[self._ground]
        self._start = Rotation.from_quat([x, y, z, w])
        # rises to where the direction points: turns about the line to the right of it
        direction = np.radians(tilt.direction_deg)
        self._axis = np.array([np.sin(direction), -np.cos(direction), 0.0])

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
        back = tilt.hold + tilt.duration if tilt.hold < STAYS else 0.0
        return time <= tilt.start + tilt.duration + back
