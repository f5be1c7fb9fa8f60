"""Encoders that are stuck, told from joints that stand still."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from com_estimation.trunk.problems import Problem, Severity
from com_estimation.trunk.repeats import Recovery, Repeats

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

TRAVEL = 0.005  # rad or m that a joint moves by its velocity before its position must change
TRAVEL_TIME = 0.2  # s, memory of that travel: a velocity with a small bias is no travel
OTHERS_TRAVEL = 0.3  # rad or m that all other joints move together, for the robot to be in motion
SHORTEST_STAND = 0.25  # s that any joint may stand still while the others move
LEARNING_TIME = 2.0  # s of motion until it is known for how long a joint stands in the gait
UNLEARNED_STAND = 1.5  # s that a joint may stand before that
RECOVERY_TIME = 0.1  # s
AT_STOP = 0.01  # rad or m from the end of a joint's range
LONGEST_STEP = 0.02  # s between samples, for which a velocity stands


class EncoderWatch:
    """Watches the positions of k joints.

    A position that stays exactly the same is a fault where the joint's velocity says that it
    moves; or where the other joints move for much longer than this one ever stood before.

    Args:
        names: k joint names.
        lower: (k,) rad or m, smallest positions: a joint may rest there, at its stop.
        upper: (k,) largest positions.
    """

    def __init__(self, names: Sequence[str], lower: Array, upper: Array) -> None:
        count = len(names)
        self._names = list(names)
        self._lowest, self._highest = lower + AT_STOP, upper - AT_STOP
        self._repeats = Repeats(count)
        self._travel = np.zeros(count)  # by the velocity, since the last change, fading
        self._path = np.zeros(count)  # by the position, of all samples
        self._path_at_change = np.zeros(count)  # of all other joints together
        self._moving_time = 0.0
        self._last: Array | None = None
        self._time = 0.0
        self._recovery = Recovery(count, RECOVERY_TIME)
        self._stuck = np.zeros(count, dtype=np.bool_)

    def update(self, time: float, position: Array, velocity: Array) -> Problem | None:
        """Look at one sample.

        Args:
            time: s.
            position: (k,) rad or m.
            velocity: (k,) rad/s or m/s; NaN where not known.
        """
        if not np.isfinite(position).all():
            bad = [n for n, q in zip(self._names, position, strict=True) if not np.isfinite(q)]
            return Problem(
                Severity.HOLD, f"the position of {', '.join(bad)} is not finite: check its encoder"
            )
        self._measure(time, position, velocity)
        self._repeats.learn(~self._stuck)
        self._stuck = (np.abs(self._travel) > TRAVEL) | self._stands_too_long(position)
        return self._report(self._recovery.update(time, self._stuck), position)

    def _measure(self, time: float, position: Array, velocity: Array) -> None:
        repeats, last = self._repeats, self._last
        self._last = position.copy()
        if last is None:
            repeats.update(time, position)
            self._time = time
            return
        pause, self._time = time - self._time, time
        dt = min(pause, LONGEST_STEP)
        repeats.skip(pause - dt)
        repeats.update(time, position)
        step = np.abs(position - last)
        self._path += step
        if step.sum() > 0.1 * dt:  # the joints together make 0.1 rad/s
            self._moving_time += dt
        fade = np.exp(-dt / TRAVEL_TIME)
        travel = fade * self._travel + np.nan_to_num(velocity) * dt
        self._travel = np.where(repeats.ended, 0.0, travel)
        others = self._path.sum() - self._path
        self._path_at_change = np.where(repeats.ended, others, self._path_at_change)

    def _stands_too_long(self, position: Array) -> Flags:
        repeats = self._repeats
        others = self._path.sum() - self._path - self._path_at_change
        if self._moving_time > LEARNING_TIME:
            patience = np.maximum(SHORTEST_STAND, 2.0 * repeats.longest)
        else:
            patience = np.maximum(UNLEARNED_STAND, 2.0 * repeats.longest)
        free = (position > self._lowest) & (position < self._highest)
        return free & (repeats.duration > patience) & (others > OTHERS_TRAVEL)

    def _report(self, stuck: Flags, position: Array) -> Problem | None:
        if not stuck.any():
            return None
        parts = [
            f"{self._names[i]} ({position[i]:.4f} for {self._repeats.duration[i]:.2f} s)"
            for i in np.flatnonzero(stuck)
        ]
        return Problem(
            Severity.HOLD,
            f"the position of {', '.join(parts)} does not change though the joint moves: check "
            "the encoder",
        )
