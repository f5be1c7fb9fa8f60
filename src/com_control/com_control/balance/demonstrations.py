"""Squat, sway and reach as motions of the desired centre of mass.

Each is a function of time that begins and ends at rest where the CoM stood: of a robot that stands
well, both legs bent a little.
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
    """A motion of the desired CoM in the balance frame: at rest in each point, quintics between.

    Attributes:
        points: (k, 3) m.
    """

    name: str
    points: Array

    @property
    def duration(self) -> float:
        """From the first point to the last, s."""
        return (len(self.points) - 1) * STEP_TIME

    def sample(self, time: float) -> tuple[Array, Array]:
        """CoM (3,) m and its velocity (3,) m/s at a time, s from the beginning."""
        time = min(max(time, 0.0), self.duration)
        leg = min(int(time / STEP_TIME), len(self.points) - 2)
        way = self.points[leg + 1] - self.points[leg]
        shape, slope, _ = quintic(time / STEP_TIME - leg)
        return self.points[leg] + shape * way, slope / STEP_TIME * way


def squat(com: Array, depth: float, count: int = 2) -> Demonstration:
    """Down and up again, several times.

    Args:
        com: (3,) m, where it begins, balance frame.
        depth: m.
        count: how often.
    """
    low = com - np.array([0.0, 0.0, depth])
    return Demonstration("squat", np.array([com, *[low, com] * count]))


def sway(com: Array, width: float, count: int = 2) -> Demonstration:
    """To the left, to the right by the same, several times, and back.

    Args:
        com: (3,) m, where it begins, balance frame.
        width: m, to either side.
        count: how often.
    """
    way = np.array([0.0, width, 0.0])
    return Demonstration("sway", np.array([com, *[com + way, com - way] * count, com]))


def reach(com: Array, corners: Array, margin: float) -> Demonstration:
    """Forwards, back, left and right to the margin of the soles, each time by the middle.

    Args:
        com: (3,) m, where it begins.
        corners: (k, 2) m, hull of the soles, counter-clockwise: BalanceFrame.corners.
        margin: m, that the CoM keeps from their edge.
    """
    outline = as_array("corners", corners, (None, 2))
    far = 10.0 * float(np.abs(outline - com[:2]).max())
    points = [com]
    for direction in ((1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0)):
        points += [_reached(com, outline, margin, far * np.array(direction)), com]
    return Demonstration("reach", np.array(points))


def _reached(com: Array, corners: Array, margin: float, way: Array) -> Array:
    """The farthest point (3,) along a way (2,) that keeps the margin, times REACHED."""
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
    """Leads the desired CoM through a demonstration, a margin, m, inside the edge of the soles."""

    def __init__(self, name: str, margin: float) -> None:
        self._name, self._margin = name, margin
        self._made: Demonstration | None = None
        self._begin = 0.0

    def stop(self) -> None:
        """Plays no more."""
        self._name, self._made = NONE, None

    def pause(self) -> None:
        """Begins again, where the CoM then is, with the next step."""
        self._made = None

    def next(self, time: float, step: BalanceStep) -> tuple[Array, Array] | None:
        """What is desired at a time.

        Args:
            time: s.
            step: the balancer's last one, for the place and the soles at the beginning.

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
