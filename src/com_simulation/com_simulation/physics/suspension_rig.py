"""A crane that lifts a robot and puts it down on its feet again, and a floor that tilts.

Soles on the ground cannot move from one posture to another with different positions of the feet.
So the crane lifts the robot, moves its joints in the air and lowers it.

The ground's plane turns about a horizontal line through the world's origin. MuJoCo assumes that
geoms of the world are at rest at each instant, so that a foot on the floor does not sense the
floor's speed, 9 mm/s at 0.1 m and 5 deg/s; the contact deflects by 0.2 mm there instead.
MuJoCo's midphase collision detection uses the box about a world geom as it was compiled: soles
would sink in where a tilting floor has risen above the horizontal plane. The floor switches the
midphase off.
"""

from dataclasses import dataclass, replace

import mujoco
import numpy as np

from com_model.arrays import Array
from com_model.geometry.rotations import minimal_rotation
from com_model.parameters import check_options, parameter
from com_simulation.exceptions import WorldError
from com_simulation.physics.contacts import (
    hanging_height,
    standing_height,
    support_normal,
)
from com_simulation.physics.spec import HOIST, quaternion_wxyz
from com_simulation.physics.world_builder import World

ONSET = 0.2  # s, in which the floor gets up to its speed, and stops


STAYS = 1e6  # s


@dataclass(frozen=True)
class Tilt:
    """Tilt of the floor while a robot stands on it: to an angle, where it stays or returns.

    Raises:
        WorldError: a number is out of its bounds.
    """

    angle_deg: float = parameter(
        0.0, "tilt of the floor, degrees; 0: none", (0.0, 60.0)
    )
    rate_deg_s: float = parameter(5.0, "tilt rate, degrees/s", (0.01, 180.0))
    direction_deg: float = parameter(
        0.0, "direction of the side that rises: 0 forwards, 90 left", (-360.0, 360.0)
    )
    start: float = parameter(
        5.0,
        "s of simulated time at which the tilt begins; 1e6: by the service ~/tilt",
        (0.0, 1e6),
    )
    hold: float = parameter(
        5.0, "s at the angle before it tilts back; 1e6: it stays", (0.0, STAYS)
    )

    def __post_init__(self) -> None:
        check_options(self, WorldError, "tilt.")

    @property
    def duration(self) -> float:
        """Duration of the motion to the angle, s."""
        return self.angle_deg / self.rate_deg_s + ONSET

    def angle(self, time: float) -> float:
        """The angle at a time.

        Args:
            time: s, simulated.

        Returns:
            rad.
        """
        back = (
            self._way(time - self.start - self.duration - self.hold)
            if self.hold < STAYS
            else 0.0
        )
        return self._way(time - self.start) - back

    def _way(self, time: float) -> float:
        """Angle, rad, a time (s) after the beginning: at the rate, with linear ramps of ONSET."""
        longest = self.duration
        t = min(max(time, 0.0), longest)
        onset = min(ONSET, 0.5 * longest)
        peak = np.radians(self.angle_deg) / (longest - onset)
        rest = max(t - (longest - onset), 0.0)
        first = min(t, onset)
        even = max(t - onset, 0.0)
        return peak * (0.5 * first**2 / onset + even - 0.5 * rest**2 / onset)


class TiltingFloor:
    """Tilts the ground of a MuJoCo model.

    Args:
        tilt: angle, rate, direction and time.
        mj: the MuJoCo model, whose ground is the geom "ground".
    """

    def __init__(self, tilt: Tilt, mj: mujoco.MjModel) -> None:
        self._tilt = tilt
        self._ground = mj.geom("ground").id
        self._start = mj.geom_quat[self._ground].copy()
        # rises to where the direction points: turns about the line to the right of it
        direction = np.radians(tilt.direction_deg)
        self._axis = np.array([np.sin(direction), -np.cos(direction), 0.0])

    def begin(self, time: float) -> None:
        """Begins the tilt at a time, if it has not begun before.

        Args:
            time: s, simulated.
        """
        if time < self._tilt.start:
            self._tilt = replace(self._tilt, start=time)

    def act(self, mj: mujoco.MjModel, time: float) -> None:
        """Sets the ground's orientation for a time.

        Args:
            mj: the MuJoCo model; changed.
            time: s, simulated.
        """
        turn = np.empty(4)
        mujoco.mju_axisAngle2Quat(turn, self._axis, self._tilt.angle(time))
        mujoco.mju_mulQuat(mj.geom_quat[self._ground], turn, self._start)
        mj.geom_sameframe[self._ground] = 0
        mj.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_MIDPHASE  # see above

    def moving(self, time: float) -> bool:
        """Whether the ground moves at a time or later.

        Args:
            time: s, simulated.
        """
        tilt = self._tilt
        back = tilt.hold + tilt.duration if tilt.hold < STAYS else 0.0
        return time <= tilt.start + tilt.duration + back


LIFT_TIME = 1.5  # s, up or down
_POSE = slice(
    3, 10
)  # where position and quaternion stand in the data of a weld constraint


class SuspensionRig:
    """Holds the root link in the crane's pose, by a stiff weld of the physics.

    Args:
        world: the robot, whose specification has the constraint "hoist".

    Attributes:
        lifted: the robot is in the air, or on its way up.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._equality = world.mj.equality(HOIST).id
        self._height = hanging_height(world.robot, world.mj)
        self.reset()

    def reset(self) -> None:
        """Releases the robot, which stands."""
        self.lifted = False
        # start, s; quaternion and rotation vector of the rotation; both ends of the displacement
        self._way: tuple[float, Array, Array, Array, Array] | None = None

    def moving(self, time: float) -> bool:
        """Whether the robot is on its way up or down.

        Args:
            time: s, simulated.
        """
        return self._way is not None and time < self._way[0] + LIFT_TIME

    def lift(self, data: mujoco.MjData) -> None:
        """Begins to lift, in the present orientation, until no posture touches the ground.

        Args:
            data: the state.
        """
        self.lifted = True
        normal = self._world.normal
        position = data.qpos[:3] + (self._height - data.qpos[:3] @ normal) * normal
        self._start(data, data.qpos[3:7], position)

    def lower(self, data: mujoco.MjData) -> None:
        """Begins to level the soles, then to lower until the lowest shape touches the ground.

        Args:
            data: the state.
        """
        self.lifted = False
        world, scratch = self._world, mujoco.MjData(self._world.mj)
        q = data.qpos[world.joint_qpos]
        R = minimal_rotation(support_normal(world.robot, world.feet, q), world.normal)
        scratch.qpos[:] = data.qpos
        scratch.qpos[3:7] = quaternion_wxyz(R)
        mujoco.mj_kinematics(world.mj, scratch)
        height = standing_height(world.mj, scratch, world.normal)
        self._start(data, scratch.qpos[3:7], data.qpos[:3] - height * world.normal)

    def act(self, mj: mujoco.MjModel, data: mujoco.MjData) -> None:
        """Moves the crane to its present pose.

        Args:
            mj: the MuJoCo model; changed.
            data: the state; changed.
        """
        if self._way is None:
            data.eq_active[self._equality] = 0
            return
        begin, quaternion, turn, start, end = self._way
        s = min((data.time - begin) / LIFT_TIME, 1.0)
        if s >= 1.0 and not self.lifted:
            self._way = None
            data.eq_active[self._equality] = 0
            return
        shift = _smooth(s if self.lifted else 2.0 * s - 1.0)  # level first, then down
        turned = quaternion.copy()
        mujoco.mju_quatIntegrate(turned, turn, _smooth(2.0 * s))
        mj.eq_data[self._equality, _POSE] = [*(start + shift * (end - start)), *turned]
        data.eq_active[self._equality] = 1

    def _start(self, data: mujoco.MjData, quaternion: Array, position: Array) -> None:
        now, turn = data.qpos[3:7].copy(), np.empty(3)
        mujoco.mju_subQuat(turn, quaternion, now)
        self._way = float(data.time), now, turn, data.qpos[:3].copy(), position


def _smooth(s: float) -> float:
    """Cubic from 0 to 1 for s from 0 to 1, at rest at both ends."""
    s = min(max(s, 0.0), 1.0)
    return s * s * (3.0 - 2.0 * s)
