"""Slow ramps of joints in MuJoCo until the robot tips over ([Cominoli] 7.3, postures_protocol).

The standing foot that turns by a threshold tells the fall; the robot turns with it about the edge
while the joints go on, so the threshold is taken off the angle. Placing the robot in the tipping
posture and letting go would make it fall degrees early, by the impact of the contacts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import mujoco
import numpy as np
from numpy.typing import NDArray

from com_model import RobotConfig, RobotModel, Servo, ServoGains
from com_simulation.world import World
from com_simulation.world_builder import build_world

Array = NDArray[np.float64]

STIFF = ServoGains(stiffness=3000.0, damping=30.0, armature=0.02, effort=200.0)


@dataclass(frozen=True)
class Ramp:
    """How the joints are led.

    Attributes:
        speed: rad/s of the slow part.
        threshold: rad, turn of a standing foot that is a fall.
        settle: s before anything moves.
        approach: s for the smooth way to the slow part.
    """

    speed: float = np.radians(2.0)
    threshold: float = np.radians(0.5)
    settle: float = 0.5
    approach: float = 3.0


def stiff_world(model: RobotModel, config: RobotConfig, start: Mapping[str, float]) -> World:
    """Builds the robot in a posture with servos so stiff that their give does not count.

    Args:
        model: The robot.
        config: Its configuration; posture and servos are replaced.
        start: Joint positions by name, rad; others are at 0.

    Raises:
        WorldError: Something is not as MuJoCo needs it.
    """
    servo = Servo(STIFF, MappingProxyType({}))
    changed = replace(config, posture=MappingProxyType(dict(start)), servo=servo)
    return build_world(model, changed, base="floating")


def ramp_tip_angle(
    world: World,
    joints: Sequence[str],
    feet: Sequence[str],
    begin: float,
    end: float,
    ramp: Ramp | None = None,
) -> float:
    """Turns joints slowly until a standing foot tilts.

    Args:
        world: The robot in the start posture.
        joints: Those that turn, from their start posture, all by the same angle.
        feet: Links whose tilt tells the fall.
        begin: rad, where the slow part begins, well before the fall.
        end: rad, where to give up.
        ramp: How the joints are led.

    Returns:
        rad, with the sign of `end`; NaN where it did not fall, or fell before the slow part.
    """
    ramp = ramp or Ramp()
    mj, data = world.mj, mujoco.MjData(world.mj)
    data.qpos[:] = world.qpos
    index = [world.robot.joint_index(joint) for joint in joints]
    bodies = [
        int(world.robot.bodies.body_of_link[world.robot.link_index(foot)]) + 1 for foot in feet
    ]
    rest = [np.zeros((3, 3)) for _ in feet]
    step, sign = float(mj.opt.timestep), np.sign(end - begin)
    for count in range(int((ramp.settle + ramp.approach + abs(end - begin) / ramp.speed) / step)):
        time = count * step
        angle = _angle(time, begin, float(sign), ramp)
        data.ctrl[:] = world.posture
        data.ctrl[index] += angle
        mujoco.mj_step(mj, data)
        if time < ramp.settle:
            rest = [data.xmat[body].reshape(3, 3).copy() for body in bodies]
        elif max(map(_tilt, rest, (data.xmat[b].reshape(3, 3) for b in bodies))) > ramp.threshold:
            slow = time > ramp.settle + ramp.approach
            return float(angle - sign * ramp.threshold) if slow else float("nan")
    return float("nan")


def _angle(time: float, begin: float, sign: float, ramp: Ramp) -> float:
    """Angle at a time, rad: at rest, smoothly to the slow part, the slow part."""
    s = min(max((time - ramp.settle) / ramp.approach, 0.0), 1.0)
    slow = max(time - ramp.settle - ramp.approach, 0.0)
    return float(begin * s**3 * (10.0 - 15.0 * s + 6.0 * s * s) + sign * ramp.speed * slow)


def _tilt(before: Array, now: Array) -> float:
    """Angle between a foot's normals, rad."""
    return float(np.arccos(np.clip(before[:, 2] @ now[:, 2], -1.0, 1.0)))
