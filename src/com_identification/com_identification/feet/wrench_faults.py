"""Common faults of foot wrenches, and how to correct each."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import permutations, product

import numpy as np
from scipy.linalg import block_diag

from com_model.arrays import Array

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


class WrenchFault(IntEnum):
    """Kinds of faults."""

    UNKNOWN = 0
    """The readings cannot be true, and no simple fault explains them."""
    SIGN = 1
    """The force of the robot on the ground instead of the reverse."""
    AXES = 2
    """The sensor is mounted rotated against its frame."""
    SWAPPED = 3
    """Two feet have each other's readings."""
    UNIT = 4
    """Not in N and N m."""
    OFFSET = 5
    """A reading without load is not zero: the sensor has a bias."""
    IN_AIR = 6
    """A foot does not stand: no fault of the sensor, but worth reporting."""
    WEIGHT = 7
    """The feet together do not carry the robot's weight."""


@dataclass(frozen=True, eq=False)
class Hypothesis:
    """One fault that may be there."""

    fault: WrenchFault  # its kind
    feet: tuple[int, ...]  # indices of the feet concerned
    fix: Callable[[Array], Array]  # corrects wrenches (f, 6) as read
    text: str  # what is wrong and how to fix it, with a placeholder {feet}


def hypotheses(known: Sequence[int]) -> Iterator[Hypothesis]:
    """Generates all faults, the simplest first.

    Args:
        known: Indices of the feet whose wrenches are known.
    """
    known = tuple(known)
    groups = [known, *((i,) for i in known if len(known) > 1)]
    for group in groups:
        text = (
            "it is the force of the robot on the ground: change the sign of {feet} "
            "(wrench.sign in the robot's configuration)"
        )
        yield Hypothesis(WrenchFault.SIGN, group, _transformed(group, _scale(-1.0, -1.0)), text)
    for i in known:
        for j in known[i + 1 :]:
            text = "{feet} have each other's readings: exchange their wrench.topic or their cables"
            yield Hypothesis(WrenchFault.SWAPPED, (i, j), _swapped(i, j), text)
    for name, force, moment in _UNITS:
        for sign in (1.0, -1.0):
            yield _unit(known, name, force, moment, sign)
    for group in groups:
        for R in _axis_rotations():
            yield _rotated(group, R)


def _unit(
    group: tuple[int, ...], name: str, force: float, moment: float, sign: float
) -> Hypothesis:
    also = " and change wrench.sign" if sign < 0.0 else ""
    text = f"its unit is {name}: convert {{feet}} to N and N m{also}"
    scale = _scale(sign * force, sign * moment)
    return Hypothesis(WrenchFault.UNIT, group, _transformed(group, scale), text)


def _rotated(group: tuple[int, ...], R: Array) -> Hypothesis:
    names = [
        ("-" if R[:, k].min() < 0.0 else "") + "xyz"[int(np.argmax(np.abs(R[:, k])))]
        for k in range(3)
    ]
    text = (
        f"the x, y and z of its sensor are along {', '.join(names)} of the frame: give {{feet}} a "
        "wrench.frame that is turned so"
    )

    fix = _transformed(group, block_diag(R, R))
    return Hypothesis(WrenchFault.AXES, group, fix, text)


def _axis_rotations() -> list[Array]:
    """The 23 rotations other than none that map axes onto axes; those about z first."""
    found = []
    for order in permutations(range(3)):
        for signs in product((1.0, -1.0), repeat=3):
            R = np.zeros((3, 3))
            R[order, range(3)] = signs
            if np.linalg.det(R) > 0.0 and not np.array_equal(R, np.eye(3)):
                found.append(R)
    return sorted(found, key=lambda R: (-R[2, 2], -float(np.trace(R))))


def _transformed(group: tuple[int, ...], matrix: Array) -> Callable[[Array], Array]:
    def fix(wrenches: Array) -> Array:
        corrected = wrenches.copy()
        corrected[list(group)] = wrenches[list(group)] @ matrix.T
        return corrected

    return fix


def _scale(force: float, moment: float) -> Array:
    return np.diag(np.repeat([force, moment], 3))


def _swapped(i: int, j: int) -> Callable[[Array], Array]:
    def fix(wrenches: Array) -> Array:
        corrected = wrenches.copy()
        corrected[[i, j]] = wrenches[[j, i]]
        return corrected

    return fix
