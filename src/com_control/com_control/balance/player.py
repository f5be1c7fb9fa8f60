"""Plays squat, sway or reach again and again, sized to the robot that stands there."""

from __future__ import annotations

from collections.abc import Callable

from com_control.balance.balancer import BalanceStep
from com_control.balance.demonstrations import Demonstration, reach, squat, sway
from com_model.arrays import Array

NONE = "none"
DEPTH = 0.12  # of the CoM's height, of squat and sway


def _squat(step: BalanceStep, _: float) -> Demonstration:
    return squat(step.com, DEPTH * float(step.com[2]))


def _sway(step: BalanceStep, _: float) -> Demonstration:
    return sway(step.com, DEPTH * float(step.com[2]))


def _reach(step: BalanceStep, margin: float) -> Demonstration:
    return reach(step.com, step.frame.corners, margin)


_MAKERS: dict[str, Callable[[BalanceStep, float], Demonstration]] = {
    "squat": _squat,
    "sway": _sway,
    "reach": _reach,
}
DEMONSTRATIONS = (NONE, *_MAKERS)


class DemonstrationPlayer:
    """Leads the desired CoM through a demonstration.

    Args:
        name: One of DEMONSTRATIONS.
        margin: m, that the CoM keeps from the edge of the soles.
    """

    def __init__(self, name: str, margin: float) -> None:
        self._name, self._margin = name, margin
        self._made: Demonstration | None = None
        self._begin = 0.0

    def stop(self) -> None:
        """Plays no more."""
        self._name, self._made = NONE, None

    def pause(self) -> None:
        """Begins anew, where the CoM then is, with the next step."""
        self._made = None

    def next(self, time: float, step: BalanceStep) -> tuple[Array, Array] | None:
        """CoM (3,) m and velocity (3,) m/s that are desired at a time (s); None: nothing to play.

        Args:
            time: s, of the step.
            step: What was commanded last: where the CoM is.
        """
        if self._name == NONE:
            return None
        if self._made is None:
            self._made, self._begin = _MAKERS[self._name](step, self._margin), time
        passed = time - self._begin
        if passed >= self._made.duration:
            self._begin += self._made.duration
            passed -= self._made.duration
        return self._made.at(passed)
