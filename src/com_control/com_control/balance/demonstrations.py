"""Squat, sway and reach as motions of the desired centre of mass.

Each is a function of time that begins and ends at rest at the present CoM. The robot should
stand with both legs slightly bent.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from com_control.balance.balancer import BalanceStep
from com_control.balance.soles import hold_inside
from com_model.arrays import Array, as_array
from com_model.joint_path import quintic

STEP_TIME = 2.0  # s, from one point to the next
REACHED = 0.9  # of the way to the margin


@dataclass(frozen=True, eq=False)
class Demonstration:
    """A motion of the desired CoM in the balance frame: at rest at each point, quintics between.

    Attributes:
        name: of the motion.
        points: (k, 3) m.
    """

    name: str
    points: Array

    @property
    def duration(self) -> float:
        """Time from the first point to the last, s."""
        return (len(self.points) - 1) * STEP_TIME

    def sample(self, time: float) -> tuple[Array, Array]:
        """The desired CoM at a time.

        Args:
            time: s from the start; clipped to the duration.

        Returns:
            CoM (3,) m and its velocity (3,) m/s.
        """
        time = min(max(time, 0.0), self.duration)
        leg = min(int(time / STEP_TIME), len(self.points) - 2)
        way = self.points[leg + 1] - self.points[leg]
        shape, slope, _ = quintic(time / STEP_TIME - leg)
        return self.points[leg] + shape * way, slope / STEP_TIME * way


def squat(com: Array, depth: float, count: int = 2) -> Demonstration:
    """Lowers and raises the CoM.

    Args:
        com: (3,) m, where it begins, balance frame.
        depth: m.
        count: number of repetitions.
    """
    low = com - np.array([0.0, 0.0, depth])
    return Demonstration("squat", np.array([com, *[low, com] * count]))


def sway(com: Array, width: float, count: int = 2) -> Demonstration:
    """Moves the CoM to the left and to the right by the same distance, and back.

    Args:
        com: (3,) m, where it begins, balance frame.
        width: m, to either side.
        count: number of repetitions.
    """
    way = np.array([0.0, width, 0.0])
    return Demonstration("sway", np.array([com, *[com + way, com - way] * count, com]))


def reach(com: Array, corners: Array, margin: float) -> Demonstration:
    """Moves the CoM forwards, back, left and right towards the margin, returning each time.

    Args:
        com: (3,) m, where it begins, balance frame.
        corners: (k, 2) m, hull of the soles, counter-clockwise: BalanceFrame.corners.
        margin: m, distance of the CoM from their edge.
    """
    outline = as_array("corners", corners, (None, 2))
    far = 10.0 * float(np.abs(outline - com[:2]).max())
    points = [com]
    for direction in ((1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0)):
        points += [_reached(com, outline, margin, far * np.array(direction)), com]
    return Demonstration("reach", np.array(points))


def _reached(com: Array, corners: Array, margin: float, way: Array) -> Array:
    """The farthest point (3,) in a direction (2,) that keeps the margin, times REACHED."""
    least, most = 0.0, 1.0
    for _ in range(40):
        middle = 0.5 * (least + most)
        _, outside = hold_inside(corners, com[:2] + middle * way, margin)
        least, most = (least, middle) if outside else (middle, most)
    return com + np.append(REACHED * least * way, 0.0)


NONE = "none"
DEPTH = 0.12  # of the CoM's height, of squat and sway


_MAKERS: dict[str, Callable[[BalanceStep, float], Demonstration]] = {
    "squat": lambda step, _: squat(step.com, DEPTH * float(step.com[2])),
    "sway": lambda step, _: sway(step.com, DEPTH * float(step.com[2])),
    "reach": lambda step, margin: reach(step.com, step.frame.corners, margin),
}
DEMONSTRATIONS = (NONE, *_MAKERS)


class DemonstrationPlayer:
    """Repeats a demonstration while the robot balances.

    Args:
        name: one of DEMONSTRATIONS; "none": nothing is played.
        margin: m, distance of the CoM from the edge of the soles, for "reach".
    """

    def __init__(self, name: str, margin: float) -> None:
        self._name, self._margin = name, margin
        self._made: Demonstration | None = None
        self._begin = 0.0

    def stop(self) -> None:
        """Stops playing for good."""
        self._name, self._made = NONE, None

    def pause(self) -> None:
        """Restarts at the CoM of the next step."""
        self._made = None

    def next(self, time: float, step: BalanceStep) -> tuple[Array, Array] | None:
        """The desired CoM at a time.

        Args:
            time: s.
            step: the balancer's last one, for CoM and soles at the beginning.

        Returns:
            CoM (3,) m and velocity (3,) m/s, balance frame; None: nothing to play.
        """
        if self._name == NONE:
            return None
        if self._made is None:
            self._made, self._begin = _MAKERS[self._name](step, self._margin), time
        passed = time - self._begin
        if passed >= self._made.duration:
            self._begin += self._made.duration
            passed -= self._made.duration
        return self._made.sample(passed)
