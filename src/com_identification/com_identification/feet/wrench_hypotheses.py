"""Ways in which foot wrenches are commonly wrong, as what would make them right again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import permutations, product

import numpy as np

from com_model.arrays import Array


class WrenchFault(IntEnum):
    """Kinds of faults."""

    UNKNOWN = 0
    """The readings cannot be true, and no simple fault explains them."""
    SIGN = 1
    """The force of the robot on the ground instead of the reverse."""
    AXES = 2
    """The sensor is mounted turned against its frame."""
    SWAPPED = 3
    """Two feet have each other's readings."""
    UNIT = 4
    """Not in N and N m."""
    OFFSET = 5
    """A reading without load is not zero: it was not tared."""
    IN_AIR = 6
    """A foot does not stand: no fault of the sensor, but to be known."""
    WEIGHT = 7
    """The feet together do not carry the robot's weight."""


@dataclass(frozen=True, eq=False)
class Hypothesis:
    """One way to be wrong.

    Attributes:
        fault: Its kind.
        feet: Indices of the feet concerned.
        fix: Makes right wrenches (f, 6) of those read.
        text: What is wrong and what to do, of "{feet}".
    """

    fault: WrenchFault
    feet: tuple[int, ...]
    fix: Callable[[Array], Array]
    text: str


_UNITS = (
    ("kilogram-force or decanewton", 9.80665, 9.80665),
    ("gram-force", 9.80665e-3, 9.80665e-3),
    ("millinewton", 1e-3, 1e-3),
    ("kilonewton", 1e3, 1e3),
    ("pound-force", 4.4482216, 4.4482216),
    ("newton, but newton millimetre", 1.0, 1e-3),
    ("newton, but newton centimetre", 1.0, 1e-2),
    ("kilogram-force and kilogram-force centimetre", 9.80665, 9.80665e-2),
)


def hypotheses(every: Sequence[int]) -> Iterator[Hypothesis]:
    """All ways, the simplest first.

    Args:
        every: Indices of the feet whose wrenches are known.
    """
    every = tuple(every)
    groups = [every, *((i,) for i in every if len(every) > 1)]
    for group in groups:
        text = (
            "it is the force of the robot on the ground: change the sign of {feet} "
            "(wrench.sign in the robot's configuration)"
        )
        yield Hypothesis(WrenchFault.SIGN, group, _scaled(group, -1.0, -1.0), text)
    for i in every:
        for j in every[i + 1 :]:
            text = "{feet} have each other's readings: exchange their wrench.topic or their cables"
            yield Hypothesis(WrenchFault.SWAPPED, (i, j), _swapped(i, j), text)
    for name, force, moment in _UNITS:
        for sign in (1.0, -1.0):
            yield _unit(every, name, force, moment, sign)
    for group in groups:
        for turn in _turns():
            yield _turned(group, turn)


def _unit(
    group: tuple[int, ...], name: str, force: float, moment: float, sign: float
) -> Hypothesis:
    also = " and change wrench.sign" if sign < 0.0 else ""
    text = f"its unit is {name}: convert {{feet}} to N and N m{also}"
    fix = _scaled(group, sign * force, sign * moment)
    return Hypothesis(WrenchFault.UNIT, group, fix, text)


def _turned(group: tuple[int, ...], turn: Array) -> Hypothesis:
    names = [
        ("-" if turn[:, k].min() < 0.0 else "") + "xyz"[int(np.argmax(np.abs(turn[:, k])))]
        for k in range(3)
    ]
    text = (
        f"the x, y and z of its sensor are along {', '.join(names)} of the frame: give {{feet}} a "
        "wrench.frame that is turned so"
    )

    def fix(wrenches: Array) -> Array:
        corrected = wrenches.copy()
        for i in group:
            corrected[i] = np.concatenate((turn @ wrenches[i, :3], turn @ wrenches[i, 3:]))
        return corrected

    return Hypothesis(WrenchFault.AXES, group, fix, text)


def _turns() -> list[Array]:
    """The 23 rotations that take axes to axes, other than none; turns about z first."""
    found = []
    for order in permutations(range(3)):
        for signs in product((1.0, -1.0), repeat=3):
            turn = np.zeros((3, 3))
            turn[order, range(3)] = signs
            if np.linalg.det(turn) > 0.0 and not np.array_equal(turn, np.eye(3)):
                found.append(turn)
    return sorted(found, key=lambda turn: (-turn[2, 2], -float(np.trace(turn))))


def _scaled(group: tuple[int, ...], force: float, moment: float) -> Callable[[Array], Array]:
    def fix(wrenches: Array) -> Array:
        corrected = wrenches.copy()
        corrected[list(group)] *= np.repeat([force, moment], 3)
        return corrected

    return fix


def _swapped(i: int, j: int) -> Callable[[Array], Array]:
    def fix(wrenches: Array) -> Array:
        corrected = wrenches.copy()
        corrected[[i, j]] = wrenches[[j, i]]
        return corrected

    return fix
