"""Slow ramps of joints in MuJoCo until the robot tips over ([Cominoli] 7.3, postures_protocol).

The standing foot that turns by a threshold shows the fall; the robot turns with it about the edge
while the joints go on, so the threshold is taken off the angle. Placing the robot in the tipping
posture and letting go would make it fall degrees early, by the impact of the contacts. Joints that
give way have servos that are as soft, and zero offsets are added to what the servos are commanded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import mujoco
import numpy as np
from numpy.typing import NDArray

from com_model import RobotConfig, RobotModel, Servo, ServoGains
from com_simulation.physics.world_builder import World, build_world

Array = NDArray[np.float64]

STIFF = ServoGains(stiffness=3000.0, damping=30.0, armature=0.02, effort=200.0)
_LAG = 0.05  # s, by which a soft servo follows: damping over stiffness


@dataclass(frozen=True)
class Ramp:
    """How the joints are led.

    Attributes:
        speed: rad/s of the slow part.
        threshold: rad, turn of a standing foot that is a fall.
        settle: s before the joints turn, in which zero offsets come in.
        approach: s for the smooth way to the slow part.
    """

    speed: float = np.radians(2.0)
    threshold: float = np.radians(0.5)
    settle: float = 0.5
    approach: float = 3.0


@dataclass(frozen=True)
class Turn:
    """What turns in a test.

    Attributes:
        joints: Joints that turn from their start posture, all by the same angle.
        feet: Links whose tilt shows the fall.
        opposite: Joints that turn by as much with the other sign.
        offsets: rad by joint, where joints are when their encoders say 0.
    """

    joints: Sequence[str]
    feet: Sequence[str]
    opposite: Sequence[str] = ()
    offsets: Mapping[str, float] = field(default_factory=dict)


def stiff_world(
    model: RobotModel,
    config: RobotConfig,
    start: Mapping[str, float],
    compliance: Mapping[str, float] | None = None,
) -> World:
    """Builds the robot in a posture with servos so stiff that their give does not count.

    Args:
        model: The robot.
        config: Its configuration; posture and servos are replaced.
        start: Joint positions by name, rad; others are at 0.
        compliance: rad/(N m) by name, above 0, of joints that give way after all.

    Raises:
        WorldError: Something is not as MuJoCo needs it.
    """
    soft = {joint: _gains(1.0 / value) for joint, value in (compliance or {}).items()}
    servo = Servo(STIFF, MappingProxyType(soft))
    changed = replace(config, posture=MappingProxyType(dict(start)), servo=servo)
    return build_world(model, changed, base="floating")


def ramp_tip_angle(
    world: World, turn: Turn, begin: float, end: float, ramp: Ramp | None = None
) -> float:
    """Turns joints slowly until a standing foot tilts.

    Args:
        world: The robot in the start posture.
        turn: What turns.
        begin: rad, where the slow part begins, well before the fall.
        end: rad, where to give up.
        ramp: How the joints are led.

    Returns:
        rad, by the encoders, with the sign of `end`; NaN where it did not fall, or fell before the
        slow part.
    """
    ramp = ramp or Ramp()
    mj, data = world.mj, mujoco.MjData(world.mj)
    data.qpos[:] = world.qpos
    offset, rate = _commands(world, turn)
    bodies = [_body(world, foot) for foot in turn.feet]
    rest = [np.zeros((3, 3)) for _ in bodies]
    step, sign = float(mj.opt.timestep), float(np.sign(end - begin))
    for count in range(
        int((ramp.settle + ramp.approach + abs(end - begin) / ramp.speed) / step)
    ):
        time = count * step
        angle = _angle(time, begin, sign, ramp)
        data.ctrl[:] = (
            world.posture + _smooth(time / ramp.settle) * offset + angle * rate
        )
        mujoco.mj_step(mj, data)
        if time < ramp.settle:
            rest = [data.xmat[body].reshape(3, 3).copy() for body in bodies]
        elif (
            max(map(_tilt, rest, (data.xmat[b].reshape(3, 3) for b in bodies)))
            > ramp.threshold
        ):
            slow = time > ramp.settle + ramp.approach
            return angle - sign * ramp.threshold if slow else float("nan")
    return float("nan")


def _commands(world: World, turn: Turn) -> tuple[Array, Array]:
    """What the servos are commanded beside the posture: offsets (n,) rad, and (n,) per angle."""
    offset, rate = np.zeros((2, len(world.posture)))
    for joint, value in turn.offsets.items():
        offset[world.robot.joint_index(joint)] = value
    for joints, sign in ((turn.joints, 1.0), (turn.opposite, -1.0)):
        rate[[world.robot.joint_index(joint) for joint in joints]] = sign
    return offset, rate


def _body(world: World, link: str) -> int:
    return int(world.robot.bodies.body_of_link[world.robot.link_index(link)]) + 1


def _gains(stiffness: float) -> ServoGains:
    return replace(STIFF, stiffness=stiffness, damping=_LAG * stiffness)


def _angle(time: float, begin: float, sign: float, ramp: Ramp) -> float:
    """Angle at a time, rad: at rest, smoothly to the slow part, the slow part."""
    slow = max(time - ramp.settle - ramp.approach, 0.0)
    return (
        begin * _smooth((time - ramp.settle) / ramp.approach) + sign * ramp.speed * slow
    )


def _smooth(fraction: float) -> float:
    """From 0 to 1, at rest at both ends."""
    s = min(max(fraction, 0.0), 1.0)
    return s**3 * (10.0 - 15.0 * s + 6.0 * s * s)


def _tilt(before: Array, now: Array) -> float:
    """Angle between a foot's normals, rad."""
    return float(np.arccos(np.clip(before[:, 2] @ now[:, 2], -1.0, 1.0)))
