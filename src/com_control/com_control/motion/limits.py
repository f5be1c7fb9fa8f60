"""Checks of motions against the limits of the joints, row by row as they come."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from com_control.motion.csv_file import Rows
from com_control.motion.layout import MotionLayout
from com_control.motion.motion import Motion
from com_model.arrays import Array

KINDS = ("position", "velocity", "acceleration")
_UNITS = {"position": "deg", "velocity": "deg/s", "acceleration": "deg/s^2"}
_TOLERANCE = 1e-6  # share of a limit; files are rounded to counts


@dataclass(frozen=True)
class Violation:
    """One joint that breaks one limit.

    Attributes:
        kind: position, velocity or acceleration.
        joint: Its name.
        rows: In how many rows.
        first: The first of them, from 1.
        worst: The worst of them.
        value: What it is there, rad, rad/s or rad/s^2.
        limit: What it may be.
        other_sign: A position: with the opposite sign all rows would be within the limits.
    """

    kind: str
    joint: str
    rows: int
    first: int
    worst: int
    value: float
    limit: float
    other_sign: bool = False

    def __str__(self) -> str:
        unit = _UNITS[self.kind]
        value, limit = np.degrees(self.value), np.degrees(self.limit)
        text = (
            f"{self.joint}: {self.kind} {value:.2f} {unit} in row {self.worst}, limit "
            f"{limit:.2f} {unit} (over by {abs(value - limit):.2f}; {self.rows} rows, first "
            f"{self.first})"
        )
        if self.other_sign:
            text += "; with the opposite sign all rows are within: check encoder.signs"
        return text


@dataclass(frozen=True)
class MotionReport:
    """What a check found.

    Attributes:
        rows: Number of rows.
        duration: s.
        violations: By kind (position first), then by joint.
    """

    rows: int
    duration: float
    violations: tuple[Violation, ...]

    @property
    def ok(self) -> bool:
        """Whether all rows are within the limits."""
        return not self.violations

    def text(self) -> str:
        """Writes it for people."""
        lines = [f"{self.rows} rows, {self.duration:.3f} s"]
        lines += [str(violation) for violation in self.violations]
        return "\n".join([*lines, "within all limits" if self.ok else "NOT within the limits"])


class LimitCheck:
    """Takes rows as they come; memory does not grow with them.

    Velocity is the difference of two rows over the period, acceleration the difference of two
    velocities over the shorter of their periods. The robot stands before the first row, and after
    the last one where end() is called.

    Args:
        layout: The joints and their limits.
    """

    def __init__(self, layout: MotionLayout) -> None:
        self._layout = layout
        count = len(layout.joints)
        self._rows, self._duration = 0, 0.0
        self._position: Array | None = None
        self._velocity = np.zeros(count)
        self._period = np.inf
        self._count = np.zeros((len(KINDS), count), dtype=int)
        self._first = np.zeros((len(KINDS), count), dtype=int)
        self._worst = np.zeros((len(KINDS), count), dtype=int)
        self._excess = np.zeros((len(KINDS), count))
        self._value = np.zeros((len(KINDS), count))
        self._range = np.array([np.full(count, np.inf), np.full(count, -np.inf)])

    def add(self, rows: Rows) -> None:
        """Adds rows that follow those before."""
        x, dt = rows.positions, rows.periods[:, None]
        before = x[:1] if self._position is None else self._position[None]
        velocity = np.diff(x, axis=0, prepend=before) / dt
        shorter = np.minimum(dt, np.concatenate(([[self._period]], dt[:-1])))
        acceleration = np.diff(velocity, axis=0, prepend=self._velocity[None]) / shorter
        limit = self._layout
        over = np.maximum(x - limit.upper, limit.lower - x)
        self._note(0, x, over, np.maximum(np.abs(limit.lower), np.abs(limit.upper)), rows.first)
        for kind, values, most in (
            (1, velocity, limit.velocity),
            (2, acceleration, limit.acceleration),
        ):
            self._note(kind, values, np.abs(values) - most, most, rows.first)
        self._range = np.array(
            [np.fmin(self._range[0], x.min(axis=0)), np.fmax(self._range[1], x.max(axis=0))]
        )
        self._position, self._velocity, self._period = x[-1], velocity[-1], float(dt[-1, 0])
        start = 0.0 if self._rows else float(rows.periods[0])
        self._rows += len(x)
        self._duration += float(rows.periods.sum()) - start

    def end(self) -> None:
        """There are no more rows: the robot is to stand on the last one."""
        if self._rows:
            stop, most = -self._velocity[None] / self._period, self._layout.acceleration
            self._note(2, stop, np.abs(stop) - most, most, self._rows)
        self._velocity = np.zeros_like(self._velocity)

    def report(self) -> MotionReport:
        """Says what there was so far."""
        found = [
            self._violation(kind, joint)
            for kind, joint in zip(*np.nonzero(self._count), strict=True)
        ]
        return MotionReport(self._rows, round(self._duration, 6), tuple(found))

    def _note(self, kind: int, values: Array, over: Array, scale: Array, first: int) -> None:
        with np.errstate(invalid="ignore"):
            bad = over > _TOLERANCE * np.where(np.isfinite(scale), scale, 1.0) + 1e-9
        for joint in np.flatnonzero(bad.any(axis=0)):
            rows = np.flatnonzero(bad[:, joint])
            worst = rows[np.argmax(over[rows, joint])]
            if not self._count[kind, joint]:
                self._first[kind, joint] = first + rows[0]
            self._count[kind, joint] += len(rows)
            if over[worst, joint] > self._excess[kind, joint]:
                self._excess[kind, joint] = over[worst, joint]
                self._worst[kind, joint] = first + worst
                self._value[kind, joint] = values[worst, joint]

    def _violation(self, kind: int, joint: int) -> Violation:
        layout, value = self._layout, self._value[kind, joint]
        if kind == 0:
            limit = layout.upper[joint] if value > layout.upper[joint] else layout.lower[joint]
        else:
            limit = (layout.velocity, layout.acceleration)[kind - 1][joint] * np.sign(value)
        low, high = self._range[:, joint]
        other = kind == 0 and layout.lower[joint] <= -high and -low <= layout.upper[joint]
        return Violation(
            KINDS[kind],
            layout.joints[joint],
            int(self._count[kind, joint]),
            int(self._first[kind, joint]),
            int(self._worst[kind, joint]),
            float(value),
            float(limit),
            bool(other),
        )


def check_rows(layout: MotionLayout, blocks: Iterable[Rows]) -> MotionReport:
    """Checks a file as it is read."""
    check = LimitCheck(layout)
    for rows in blocks:
        check.add(rows)
    check.end()
    return check.report()


def check_motion(layout: MotionLayout, motion: Motion) -> MotionReport:
    """Checks a motion."""
    periods = np.diff(motion.times, prepend=0.0)
    periods[:1] = periods[1] if len(periods) > 1 else layout.period
    return check_rows(layout, [Rows(1, periods, motion.positions)])
