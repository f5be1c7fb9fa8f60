"""Limits of plausible values in joint_states, imu and wrenches: one rule for all nodes.

A value beyond these limits is impossible: it comes from a broken driver, a wrong unit or a
flipped bit, and never reaches the maths. The limits are far beyond what a robot does, so that
neither spikes of a real sensor nor limits that are too narrow in a URDF stop a node:

    position of a joint       `position_margin` (a full turn) beyond its limits; 1e7 rad or m of
    a
                              continuous joint, or without limits
    velocity of a joint       `factor` times its limit, which is taken to be at least 10 rad/s or
                              m/s; 1000 without a limit
    effort of a joint         `factor` times the larger of its limit and the robot's weight (at 1
    m)
    imu                       `angular_velocity`, `acceleration`; a quaternion's length is 1 +- 1
    %
    wrench of a foot          `weight_factor` times the robot's weight (torque: at 1 m)

An implausible position makes its joint unknown; a velocity or an effort alone becomes NaN; an imu
or wrench message is dropped; an orientation alone is unknown. The weight is at least 50 N,
because the masses of a URDF may be placeholders. NaN means "not known" and passes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from geometry_msgs.msg import Vector3, WrenchStamped
from sensor_msgs.msg import Imu

from com_model import RobotModel
from com_model.arrays import Array
from com_model.dynamics import GRAVITY
from com_model.parameters import live_parameter
from com_ros.raw_messages import RawImu, RawWrench

_IMUS, _WRENCHES = (Imu, RawImu), (WrenchStamped, RawWrench)


@dataclass(frozen=True)
class InputLimits:
    """Parameters: limits beyond which an input is implausible."""

    position_margin: float = live_parameter(
        6.3,
        "rad or m beyond a joint's limits from where its position is wrong",
        (0.0, 1e6),
    )
    factor: float = live_parameter(
        10.0,
        "of a joint's limits of velocity and effort, from where these are wrong",
        (1.0, 1e6),
    )
    angular_velocity: float = live_parameter(
        150.0, "rad/s, from where an imu's angular velocity is wrong", (1.0, 1e6)
    )
    acceleration: float = live_parameter(
        2000.0, "m/s^2, from where an imu's linear acceleration is wrong", (10.0, 1e6)
    )
    weight_factor: float = live_parameter(
        100.0, "of the robot's weight, from where a foot's wrench is wrong", (1.0, 1e6)
    )


class InputBounds:
    """Limits of plausible inputs of one robot.

    Args:
        limits: the parameters.
        model: of the robot; None: a robot of 1000 kg whose joints have no limits.
    """

    def __init__(self, limits: InputLimits, model: RobotModel | None = None) -> None:
        self._limits = limits
        self._index = (
            {} if model is None else {n: i for i, n in enumerate(model.joint_names)}
        )
        weight = 1e4 if model is None else max(model.mass * GRAVITY, 50.0)
        self._wrench = limits.weight_factor * weight
        n, factor = len(self._index), limits.factor
        unlimited = 1e7  # rad or m, of a joint without limits
        fastest = 1000.0  # rad/s or m/s, of a joint without a limit
        highest = np.full(
            (3, n + 1), [[unlimited], [factor * fastest], [factor * weight]]
        )
        lowest = -highest
        if model is not None:
            turning = np.array(
                [kind == "continuous" for kind in model.joint_types], dtype=bool
            )
            lower, upper = (
                model.lower - limits.position_margin,
                model.upper + limits.position_margin,
            )
            lowest[0, :n] = np.where(turning, -unlimited, np.maximum(lower, -unlimited))
            highest[0, :n] = np.where(turning, unlimited, np.minimum(upper, unlimited))
            # rad/s or m/s, least limit that is assumed
            speed = factor * np.maximum(model.velocity_limits, 10.0)
            effort = factor * np.maximum(model.effort_limits, weight)
            highest[1, :n] = np.where(np.isfinite(speed), speed, fastest)
            highest[2, :n] = np.where(np.isfinite(effort), effort, factor * weight)
            lowest[1:] = -highest[1:]
        self._lowest, self._highest = lowest, highest

    def of_joints(self, names: Sequence[str]) -> tuple[Array, Array]:
        """Returns the limits of joints by name.

        Args:
            names: n joints; those that the model does not have count as without limits.

        Returns:
            Lowest and highest (3, n): position (rad or m), velocity (rad/s or m/s), effort (N m
            or N).
        """
        rows = [self._index.get(name, -1) for name in names]
        lowest, highest = self._lowest[:, rows], self._highest[:, rows]
        return np.ascontiguousarray(lowest), np.ascontiguousarray(highest)

    def problem(self, msg: object, topic: str) -> str:
        """Returns why a message must not be used and how to fix it; "" when it may.

        Args:
            msg: an Imu or WrenchStamped; messages of other types have no limits.
            topic: its name, for the text.
        """
        if isinstance(msg, _IMUS):
            return self._imu_problem(msg, topic)
        if isinstance(msg, _WRENCHES):
            return self._wrench_problem(msg, topic)
        return ""

    def _imu_problem(self, msg: Imu, topic: str) -> str:
        limits = self._limits
        if _beyond(msg.angular_velocity, limits.angular_velocity):
            key, unit, got = "angular_velocity", "rad/s", msg.angular_velocity
        elif _beyond(msg.linear_acceleration, limits.acceleration):
            key, unit, got = "acceleration", "m/s^2", msg.linear_acceleration
        else:
            return ""
        return (
            f"{topic}: the {key.replace('_', ' ')} is {_text(got)} {unit}, expected at most "
            f"{getattr(limits, key):g}: check the driver and its unit, or raise input_limits.{key}"
        )

    def _wrench_problem(self, msg: WrenchStamped, topic: str) -> str:
        force, torque = msg.wrench.force, msg.wrench.torque
        if not (_beyond(force, self._wrench) or _beyond(torque, self._wrench)):
            return ""
        return (
            f"{topic}: the force is {_text(force)} N, the torque {_text(torque)} N m, expected at "
            f"most {self._wrench:.6g}, {self._limits.weight_factor:g} times the robot's weight: "
            "check the force sensor and its unit and the masses in the URDF, or raise "
            "input_limits.weight_factor"
        )


def _beyond(v: Vector3, largest: float) -> bool:
    """Returns whether a component of a vector exceeds a limit; NaN is not known and passes."""
    x, y, z = v.x, v.y, v.z
    if x * x + y * y + z * z <= largest * largest:
        return False
    return any(abs(value) > largest for value in (x, y, z))


def _text(v: Vector3) -> str:
    return f"({v.x:.4g}, {v.y:.4g}, {v.z:.4g})"
