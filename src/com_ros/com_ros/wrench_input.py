"""Wrenches of the ground on the feet, only while all sensors are current.

Here the convention of a sensor (the configuration's wrench sign) is undone, for all nodes: what
comes out is force and torque of the ground on the foot, in the axes and about the origin of the
sensor's frame; see com_model.robot_config.
"""

from collections.abc import Sequence
from math import isfinite

import numpy as np
from geometry_msgs.msg import WrenchStamped

from com_model import Foot
from com_ros.conversions import Array
from com_ros.input_watch import Latest

Six = tuple[float, float, float, float, float, float]


def ground_wrench(msg: WrenchStamped, foot: Foot) -> Array:
    """Wrench (6,) of the ground on a foot from a message of its sensor, N and N m."""
    return np.array(_ground_wrench(msg, foot.wrench_sign))


def _ground_wrench(msg: WrenchStamped, sign: int) -> Six:
    f, t = msg.wrench.force, msg.wrench.torque
    return sign * f.x, sign * f.y, sign * f.z, sign * t.x, sign * t.y, sign * t.z


class WrenchInputs:
    """Stores the latest wrenches of each foot; timeout_s as of Latest."""

    def __init__(self, feet: Sequence[Foot], timeout_s: float) -> None:
        self._feet = tuple(feet)
        self._signs = [foot.wrench_sign for foot in feet]
        self._latest: list[Latest[Six]] = [Latest(timeout_s) for _ in feet]
        self.ever_received = False

    @property
    def timeout_s(self) -> float:
        """Largest time between a wrench and the data that it is used with, s."""
        return self._latest[0].timeout_s if self._latest else 0.0

    @timeout_s.setter
    def timeout_s(self, value: float) -> None:
        for latest in self._latest:
            latest.timeout_s = value

    def update(self, index: int, msg: WrenchStamped, time_ns: int) -> None:
        """Take in a message, sampled at a time, of the foot with this index."""
        self._latest[index].set(_ground_wrench(msg, self._signs[index]), time_ns)
        self.ever_received = True

    def wrenches(self, at_ns: int) -> tuple[Array | None, str]:
        """Wrenches (f, 6) N and N m of the ground on the feet, or None, and why."""
        found, problem = self._current(at_ns)
        return (None, problem) if problem else (np.array(found).reshape(-1, 6), "")

    def forces(self, at_ns: int) -> tuple[Array | None, str]:
        """The forces (f, 3) N of `wrenches`; no problem as long as no sensor was ever received."""
        if not self.ever_received:
            return None, ""
        found, problem = self._current(at_ns)
        return (None, problem) if problem else (np.array([six[:3] for six in found]), "")

    def _current(self, at_ns: int) -> tuple[list[Six], str]:
        """The wrenches at a time, and why there are none."""
        found = []
        for foot, latest in zip(self._feet, self._latest, strict=True):
            wrench = latest.current(at_ns)
            if wrench is None:
                why = latest.describe(foot.wrench_topic, at_ns)
                return [], f"{why}: check the force sensor's driver"
            if not isfinite(sum(wrench)):
                return [], f"{foot.wrench_topic} is not finite: check its driver"
            found.append(wrench)
        return found, ""
