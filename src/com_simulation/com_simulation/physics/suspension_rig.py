"""A crane over a standing robot: lifts it by its root link, and puts it down on its feet again.

Soles that stand on the ground cannot get from one posture to another one with other places of the
feet. So the crane lifts the robot, moves its joints in the air and lowers it.
"""

import mujoco
from scipy.spatial.transform import Rotation, Slerp

from com_model.arrays import Array
from com_model.geometry.rotations import minimal_rotation
from com_simulation.physics.contacts import hanging_height, standing_height, support_normal
from com_simulation.physics.spec import HOIST, quaternion_wxyz
from com_simulation.physics.world_builder import World

LIFT_TIME = 1.5  # s, up or down
_XYZW = [1, 2, 3, 0]  # MuJoCo's quaternions are w, x, y, z
_POSE = slice(3, 10)  # where position and quaternion stand in the data of a weld constraint


class SuspensionRig:
    """Holds the root link where the crane has it; a stiff weld of the physics does."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._equality = world.mj.equality(HOIST).id
        self._height = hanging_height(world.robot, world.mj)
        self.reset()

    def reset(self) -> None:
        """The robot stands, released."""
        self.lifted = False
        self._way: tuple[float, Slerp, Array, Array] | None = None

    def moving(self, time: float) -> bool:
        """Whether the robot is on its way up or down at a time (s)."""
        return self._way is not None and time < self._way[0] + LIFT_TIME

    def lift(self, data: mujoco.MjData) -> None:
        """Begins to lift, as it leans, until no posture of the robot touches the ground."""
        self.lifted = True
        normal = self._world.normal
        position = data.qpos[:3] + (self._height - data.qpos[:3] @ normal) * normal
        self._start(data, Rotation.from_quat(data.qpos[3:7][_XYZW]), position)

    def lower(self, data: mujoco.MjData) -> None:
        """Begins to level the soles, then to lower until the lowest shape touches the ground."""
        self.lifted = False
        world, scratch = self._world, mujoco.MjData(self._world.mj)
        q = data.qpos[world.joint_qpos]
        R = minimal_rotation(support_normal(world.robot, world.feet, q), world.normal)
        scratch.qpos[:] = data.qpos
        scratch.qpos[3:7] = quaternion_wxyz(R)
        mujoco.mj_kinematics(world.mj, scratch)
        height = standing_height(world.mj, scratch, world.normal)
        self._start(data, Rotation.from_matrix(R), data.qpos[:3] - height * world.normal)

    def act(self, mj: mujoco.MjModel, data: mujoco.MjData) -> None:
        """Holds the root at its place of this time, or releases it where the robot stands again."""
        if self._way is None:
            data.eq_active[self._equality] = 0
            return
        begin, turn, start, end = self._way
        s = min((data.time - begin) / LIFT_TIME, 1.0)
        if s >= 1.0 and not self.lifted:
            self._way = None
            data.eq_active[self._equality] = 0
            return
        shift = _smooth(s if self.lifted else 2.0 * s - 1.0)  # level first, then down
        x, y, z, w = turn(_smooth(2.0 * s)).as_quat()
        mj.eq_data[self._equality, _POSE] = [*(start + shift * (end - start)), w, x, y, z]
        data.eq_active[self._equality] = 1

    def _start(self, data: mujoco.MjData, R: Rotation, position: Array) -> None:
        now = Rotation.from_quat(data.qpos[3:7][_XYZW])
        turns = Slerp([0.0, 1.0], Rotation.concatenate([now, R]))
        self._way = float(data.time), turns, data.qpos[:3].copy(), position


def _smooth(s: float) -> float:
    """From 0 to 1 for s from 0 to 1, at rest at both ends."""
    s = min(max(s, 0.0), 1.0)
    return s * s * (3.0 - 2.0 * s)
