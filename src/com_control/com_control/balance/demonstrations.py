"""Squat, sway and reach as motions of the desired centre of mass.

Each is a path of the CoM (3,) m in the balance frame, at rest at each of its points, that begins
and ends at the present CoM. The robot should stand with both legs slightly bent.
"""

from collections.abc import Callable

import numpy as np

from com_control.balance.balancer import BalanceStep
from com_control.balance.soles import hold_inside
from com_model.arrays import Array, as_array
from com_model.joint_path import JointPath

STEP_TIME = 2.0  # s, from one point to the next


def squat(com: Array, depth: float, count: int = 2) -> JointPath:
    """Lowers and raises the CoM.

    Args:
        com: (3,) m, where it begins, balance frame.
        depth: m.
        count: number of repetitions.
    """
    low = com - np.array([0.0, 0.0, depth])
    return JointPath.through([com, *[low, com] * count], STEP_TIME)


def sway(
    com: Array, width: float, corners: Array, margin: float, count: int = 2
) -> JointPath:
    """Moves the CoM to the left and to the right of the middle of its room, and back.

    So a robot that is stopped while it sways and sways again does not get ever closer to the edge.

    Args:
        com: (3,) m, where it begins, balance frame.
        width: m, to either side, as far as there is room.
        corners: (k, 2) m, hull of the soles, counter-clockwise: BalanceFrame.corners.
        margin: m, distance of the CoM from their edge.
        count: number of repetitions.
    """
    left, right = (_reached(com, corners, margin, (0.0, side)) for side in (1.0, -1.0))
    room = 0.5 * float(left[1] - right[1])
    way = np.array([0.0, min(width, room), 0.0])
    middle = 0.5 * (left + right)
    turns = [middle + way, middle - way] * count
    return JointPath.through([com, *turns, com], STEP_TIME)


def reach(com: Array, corners: Array, margin: float) -> JointPath:
    """Moves the CoM back, forwards, left and right towards the margin, returning each time.

    Args:
        com: (3,) m, where it begins, balance frame.
        corners: (k, 2) m, hull of the soles, counter-clockwise: BalanceFrame.corners.
        margin: m, distance of the CoM from their edge.
    """
    points = [com]
    for direction in ((-1.0, 0.0), (1.0, 0.0), (0.0, 1.0), (0.0, -1.0)):
        points += [_reached(com, corners, margin, direction), com]
    return JointPath.through(points, STEP_TIME)


def _reached(
    com: Array, corners: Array, margin: float, direction: tuple[float, float]
) -> Array:
    """The farthest point (3,) in a direction that keeps the margin, at 0.9 of the way."""
    outline = as_array("corners", corners, (None, 2))
    way = 10.0 * float(np.abs(outline - com[:2]).max()) * np.array(direction)
    least, most = 0.0, 1.0
    for _ in range(40):
        middle = 0.5 * (least + most)
        _, outside = hold_inside(outline, com[:2] + middle * way, margin)
        least, most = (least, middle) if outside else (middle, most)
    return com + np.append(0.9 * least * way, 0.0)


NONE = "none"
DEPTH = 0.12  # of the CoM's height, of squat and sway


_MAKERS: dict[str, Callable[[BalanceStep, float], JointPath]] = {
    "squat": lambda step, _: squat(step.com, DEPTH * float(step.com[2])),
    "sway": lambda step, margin: sway(
        step.com, DEPTH * float(step.com[2]), step.frame.corners, margin
    ),
    "reach": lambda step, margin: reach(step.com, step.frame.corners, margin),
}
DEMONSTRATIONS = (NONE, *_MAKERS)


class DemonstrationPlayer:
    """Repeats a demonstration while the robot balances.

    Args:
        name: one of DEMONSTRATIONS; "none": nothing is played.
        margin: m, distance of the CoM from the edge of the soles.
    """

    def __init__(self, name: str, margin: float) -> None:
        self._name, self._margin = name, margin
        self._made: JointPath | None = None
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
        if passed >= self._made.end:
            self._begin += self._made.end
            passed -= self._made.end
        return self._made.sample(passed)
