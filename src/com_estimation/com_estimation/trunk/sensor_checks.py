"""Checks of single sensors: stuck encoders, dead torque sensors, a faulty IMU.

A sensor with noise never repeats a value, one with coarse steps does for as long as nothing
moves: the usual length of runs of equal values is determined for each channel.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from com_model.arrays import Array, Flags
from com_model.dynamics import GRAVITY
from com_model.text import listing

LONGEST_STEP = 0.02  # s between samples, for which one counts


# --- what is wrong ----------------------------------------------------------------------------
class Severity(IntEnum):
    """Consequence of a problem.

    Attributes:
        NOTE: reported; the estimate is not worse for it.
        DEGRADE: the estimate continues with less information.
        HOLD: the sample must not reach the estimator.
    """

    NOTE = 1
    DEGRADE = 2
    HOLD = 3


@dataclass(frozen=True)
class Problem:
    """A problem of the input.

    Attributes:
        severity: its consequence.
        text: what is wrong and how to fix it.
    """

    severity: Severity
    text: str


def worst(problems: Iterable[Problem]) -> Severity | None:
    """The highest severity among problems; None without problems.

    Args:
        problems: any number of them.
    """
    return max((problem.severity for problem in problems), default=None)


def reason(problems: Iterable[Problem]) -> str:
    """All problems in words, the most severe first, each text once.

    Args:
        problems: any number of them.
    """
    ordered = sorted(problems, key=lambda problem: -problem.severity)
    return "; ".join(dict.fromkeys(problem.text for problem in ordered))


# --- repeated values --------------------------------------------------------------------------
class Repeats:
    """Time for which each of k channels has had exactly the same value.

    Args:
        count: k.

    Attributes:
        dead: s of an unusual run after which a sensor counts as dead; a shorter one that ended is
            put down to the sensor's coarse steps.
        run: (k,) number of times that the last value was repeated; 0 just after a change.
        duration: (k,) s since the last change.
        longest: (k,) s, longest run that was counted as usual.
        ended: (k,) channels that changed at this sample.
        lasted: (k,) s, duration of the run that ended at this sample; 0 where none ended.
    """

    dead = 0.1

    def __init__(self, count: int) -> None:
        self._often, self._time, self._age = np.zeros(count), math.nan, 0.0
        self.run = np.zeros(count, dtype=np.int64)
        self.duration = np.zeros(count)
        self.longest = np.zeros(count)
        self.ended = np.zeros(count, dtype=np.bool_)
        self.lasted = np.zeros(count)
        self._last = np.full(count, np.nan)
        self._since = np.full(count, np.nan)

    def update(self, time: float, values: Array) -> None:
        """Updates the runs with the values of one sample.

        Args:
            time: s, of the sample.
            values: (k,) of any unit; NaN is never equal.
        """
        same = values == self._last
        dt = 0.0 if math.isnan(self._time) else min(time - self._time, LONGEST_STEP)
        self._time, self._age = time, self._age + dt
        weight = dt / max(min(self._age, 1.0), dt, 1e-9)  # over 1 s
        brief = self.duration < self.dead  # a sensor that dies does not become coarse
        self._often += np.where(brief, weight * (same - self._often), 0.0)
        self.lasted = np.where(same, 0.0, self.duration)
        self.ended = ~same
        self.run = np.where(same, self.run + 1, 0)
        self._since = np.where(same, self._since, time)
        self.duration = time - self._since
        self._last = values.copy()

    @property
    def coarse(self) -> Flags:
        """(k,) channels that repeat their value often, because their steps are coarse."""
        # a sensor with noise beyond its step repeats some percent of its samples, a torque of
        # 12 bits at 1 kHz 50 to 95 %
        return self._often > 0.3

    def skip(self, pause: float) -> None:
        """Leaves a pause in the samples out of the durations.

        Args:
            pause: s.
        """
        self._since += pause

    def add_usual(self, usual: Flags) -> None:
        """Counts the runs that just ended as usual for their channels.

        Args:
            usual: (k,) channels for which to do so.
        """
        taken = self.ended & usual
        self.longest = np.where(
            taken, np.maximum(self.longest, self.lasted), self.longest
        )


class Recovery:
    """Keeps channels marked as faulty for some time after their fault is over.

    Args:
        count: number of channels, k.
        seconds: s, for which they are.
    """

    def __init__(self, count: int, seconds: float = 0.1) -> None:
        self._until, self._seconds = np.full(count, -np.inf), seconds

    def update(self, time: float, faulty: Flags) -> Flags:
        """Updates which channels are faulty.

        Args:
            time: s.
            faulty: (k,) channels that are faulty now.

        Returns:
            (k,) channels that are faulty, or were so recently.
        """
        self._until = np.where(faulty, time + self._seconds, self._until)
        return faulty | (time < self._until)


class EncoderCheck:
    """Detects stuck encoders of k joints that may rest at the ends of their range.

    A position that stays exactly the same is a fault if the joint's velocity shows motion, or if
    the other joints have moved for much longer than this one ever stood before.

    Args:
        names: of the k joints, for the texts.
        lower: (k,) rad or m, lower ends of their ranges; -inf where there is none.
        upper: (k,) rad or m, upper ends; inf where there is none.
    """

    def __init__(self, names: Sequence[str], lower: Array, upper: Array) -> None:
        count, self._names = len(names), list(names)
        self._lowest, self._highest = lower + 0.01, upper - 0.01  # rad or m
        self._repeats = Repeats(count)
        self._travel = np.zeros(count)  # by the velocity, since the last change, fading
        self._path = np.zeros(count)  # by the position, of all samples
        self._path_at_change = np.zeros(count)  # of all other joints together
        self._moving_time = 0.0
        self._last: Array | None = None
        self._time = 0.0
        self._recovery = Recovery(count)
        self._stuck = np.zeros(count, dtype=np.bool_)

    def update(self, time: float, position: Array, velocity: Array) -> Problem | None:
        """Checks a sample.

        Args:
            time: s.
            position: (k,) rad or m.
            velocity: (k,) rad/s or m/s; NaN where unknown.

        Returns:
            A HOLD that names the joints whose encoder is stuck or not finite; None if all are
            good.
        """
        if not np.isfinite(position).all():
            bad = ", ".join(
                self._names[i] for i in np.flatnonzero(~np.isfinite(position))
            )
            text = f"the position of {bad} is not finite: check its encoder"
            return Problem(Severity.HOLD, text)
        self._measure(time, position, velocity)
        self._repeats.add_usual(~self._stuck)
        self._stuck = (
            # rad or m that a joint moves by its velocity before its position must change
            np.abs(self._travel) > 0.005
        ) | self._stands_too_long(position)
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
        # s, memory of that travel: a velocity with a small bias is no travel
        fade = np.exp(-dt / 0.2)
        travel = fade * self._travel + np.nan_to_num(velocity) * dt
        self._travel = np.where(repeats.ended, 0.0, travel)
        others = self._path.sum() - self._path
        self._path_at_change = np.where(repeats.ended, others, self._path_at_change)

    def _stands_too_long(self, position: Array) -> Flags:
        repeats = self._repeats
        others = self._path.sum() - self._path - self._path_at_change
        least = (
            # s that any joint may stand still while the others move
            0.25
            # s of motion until it is known for how long a joint stands in the gait
            if self._moving_time > 2.0
            # s that a joint may stand before that
            else 1.5
        )
        # The stands of a joint that moves by single steps of its encoder differ more.
        usual = np.where(repeats.coarse, 4.0, 2.0) * repeats.longest
        patience = np.maximum(least, usual)
        free = (position > self._lowest) & (position < self._highest)
        return (
            free
            & (repeats.duration > patience)
            # rad or m that all other joints move together, for the robot to be in motion
            & (others > 0.3)
        )

    def _report(self, stuck: Flags, position: Array) -> Problem | None:
        if not stuck.any():
            return None
        parts = _repeated(
            self._names, [f"{q:.4f}" for q in position], self._repeats, stuck
        )
        text = f"the position of {parts} does not change though the joint moves: check the encoder"
        return Problem(Severity.HOLD, text)


def _repeated(
    names: Sequence[str], values: Sequence[str], repeats: Repeats, channels: Flags
) -> str:
    """Names, values and durations, in words, of channels that repeat their value."""
    return ", ".join(
        f"{names[i]} ({values[i]} for {repeats.duration[i]:.2f} s)"
        for i in np.flatnonzero(channels).tolist()
    )


class TorqueCheck:
    """Detects dead torque sensors of k joints: efforts that do not change.

    Args:
        names: of the joints, for the texts.
        limits: (k,) N m or N, of their drives; inf where there is none. A drive at its limit may
            repeat its effort.
    """

    def __init__(self, names: Sequence[str], limits: Array) -> None:
        self._names = list(names)
        # a drive at its limit repeats its effort
        self._saturated = 0.98 * np.asarray(limits)
        self._repeats = Repeats(len(names))
        self._unusual = np.full(len(names), np.inf)  # s, since when a run is suspicious
        self._loaded = np.inf  # s, when the last effort was not zero
        self._recovery = Recovery(len(names))

    def update(self, time: float, effort: Array) -> tuple[Flags, Problem | None]:
        """Checks a sample.

        Args:
            time: s.
            effort: (k,) N m or N; NaN where unknown.

        Returns:
            (k,) efforts that must not be used; and a HOLD when no effort is known, a DEGRADE for
            single sensors that are dead, or None, also while a value has repeated for a few
            samples only, or all are zero for less than `dead`: coarse torques of a robot that
            flies are.
        """
        known = np.isfinite(effort)
        self._loaded = time if effort.any() else min(self._loaded, time)
        if not known.any():
            return ~known, Problem(
                Severity.HOLD,
                "joint_states carries no effort: the joint torques are needed; let the driver "
                "measure them",
            )
        if not known.all():
            bad = listing(self._names[i] for i in np.flatnonzero(~known))
            return ~known, _degrade(
                f"joint_states has no finite effort for {bad}: check the driver"
            )
        if not effort.any():
            gone = time - self._loaded > self._repeats.dead
            text = "the effort of every joint is zero: let the driver measure the joint torques"
            return known, Problem(Severity.HOLD, text) if gone else None
        suspicious = self._suspicious(time, effort)
        self._unusual = np.where(suspicious, np.minimum(self._unusual, time), np.inf)
        lasting = time - self._unusual >= self._repeats.dead
        dead = self._recovery.update(time, lasting)
        if not dead.any():
            return suspicious, None
        parts = _repeated(
            self._names, [f"{tau:g}" for tau in effort], self._repeats, dead
        )
        return suspicious | dead, _degrade(
            f"the effort of {parts} does not change while those of other joints do: check the "
            "torque sensor"
        )

    def _suspicious(self, time: float, effort: Array) -> Flags:
        repeats = self._repeats
        repeats.update(time, effort)
        # s that a coarse channel may stay the same: half a stride of a slow gait, in which each
        # joint's load changes
        coarse, patience = repeats.coarse, 1.0
        repeats.add_usual(
            repeats.lasted < np.where(coarse, patience, self._repeats.dead)
        )
        # if hardly any effort changes, none is suspicious
        alive = np.count_nonzero(repeats.run == 0) >= 0.25 * len(self._names)
        run = repeats.run + 2 * (
            effort == 0.0
        )  # an effort of exactly 0 is suspicious at once
        unusual = (run > 1) & (repeats.duration >= 1.5 * repeats.longest)
        unusual &= ~coarse | (repeats.duration > patience)
        # What is suspicious stays so until it changes, also while the others do not.
        return (
            unusual
            & (np.abs(effort) < self._saturated)
            & (alive | (self._unusual < np.inf))
        )


class Trust(IntEnum):
    """Which readings of an IMU may be used.

    Attributes:
        NOTHING: none.
        TURNING: angular velocity and orientation, not the specific force.
        ALL: all.
    """

    NOTHING = 0
    TURNING = 1
    ALL = 2


class ImuCheck:
    """Detects missing, stuck or implausible readings of an IMU; units other than m/s^2."""

    def __init__(self) -> None:
        self._repeats = Repeats(1)
        self._received = -math.inf
        self._attitude = -math.inf  # when the orientation was known
        self._missed = self._unoriented = 0  # samples since
        self._first = math.nan
        self._last = math.nan
        # (4,) m/s^2, of the accelerometer and its length, and over how long, s
        self._mean, self._span = np.full(4, math.nan), 0.0
        self._small = self._large = 0.0  # s, for which its readings have been so

    def update(
        self, time: float, gyro: Array, accelerometer: Array, *, attitude: bool = True
    ) -> tuple[Trust, Problem | None]:
        """Checks a sample; one or two samples without a reading are no problem.

        Args:
            time: s.
            gyro: (3,) rad/s; NaN where unknown.
            accelerometer: (3,) m/s^2, gravity included; NaN where unknown.
            attitude: the IMU's orientation is known.

        Returns:
            Which readings may be used, and a DEGRADE, or None.
        """
        self._first = time if math.isnan(self._first) else self._first
        total = math.fsum((*gyro.tolist(), *accelerometer.tolist()))
        if not math.isfinite(total):
            self._missed += 1
            trust = Trust.TURNING if np.isfinite(gyro).all() else Trust.NOTHING
            return trust, self._missing(time, trust)
        self._repeats.update(time, np.array([total]))
        self._received, self._missed = time, 0
        # s of the same reading
        if self._repeats.duration[0] > 0.1:
            return Trust.NOTHING, _degrade(
                f"the imu has said exactly the same for {self._repeats.duration[0]:.2f} s: check "
                "its driver"
            )
        self._attitude = time if attitude else max(self._attitude, self._first)
        self._unoriented = 0 if attitude else self._unoriented + 1
        trust, problem = self._plausible(time, accelerometer)
        if problem is None and _lasts(self._unoriented, time - self._attitude):
            problem = _degrade(
                "imu carries no orientation, and the acceleration shows the vertical only roughly: "
                "use a driver or a filter that gives orientation (orientation_covariance[0] other "
                "than -1)"
            )
        return trust, problem

    def _missing(self, time: float, trust: Trust) -> Problem | None:
        silence = time - max(self._received, self._first)
        if not _lasts(self._missed, silence):
            return None
        if trust is Trust.TURNING:
            return _degrade("the accelerometer is not known: check the imu's driver")
        return _degrade(f"no imu for {silence:.2f} s: check its driver and topic")

    def _plausible(
        self, time: float, accelerometer: Array
    ) -> tuple[Trust, Problem | None]:
        # s, for which hardly any force may be left in a jump
        longest = 0.12
        dt = 0.0 if math.isnan(self._last) else min(time - self._last, LONGEST_STEP)
        self._last, size = time, math.sqrt(float(accelerometer @ accelerometer))
        reading = np.append(accelerometer, size)
        self._mean = reading if math.isnan(self._mean[0]) else self._mean
        counted = dt * (
            # of gravity, readings of free fall, also in a trot that hops or a bound, which last
            # longer, 0.6 s; a robot that stands never reads so little, in any unit
            longest / 0.6 if size < 0.08 * GRAVITY else 1.0
        )
        self._small = self._small + counted if size < 0.25 * GRAVITY else 0.0
        # of gravity, for 50 ms at most: a hard touch-down; that would be 2.5 m/s
        self._large = self._large + dt if size > 5.0 * GRAVITY else 0.0
        if self._small > longest or self._large > 0.05:
            return Trust.TURNING, _degrade(_UNITS.format(f"{size:.2f} m/s^2"))
        self._span = min(self._span + dt, 1.0)  # s, memory of the accelerometer's mean
        weight = dt / max(self._span, dt, 1e-9)
        self._mean = self._mean + weight * (reading - self._mean)
        usual = float(self._mean[3])
        lengths = math.sqrt(float(self._mean[:3] @ self._mean[:3])), usual
        # the length of the mean, in which impacts that ring cancel, or the mean length, which
        # does not change in a tumble
        if any(0.7 < g / GRAVITY < 1.4 for g in lengths):
            return Trust.ALL, None
        # s, after which that mean may be called wrong
        if self._span < 0.08:  # it may have begun with an impact
            return Trust.TURNING, None
        return Trust.TURNING, _degrade(_UNITS.format(f"{usual:.2f} m/s^2 on average"))


_UNITS = f"the accelerometer says {{}}, not {GRAVITY}: it must give m/s^2 (not g), with gravity"


def _lasts(missed: int, seconds: float) -> bool:
    """Whether this many samples, and seconds, without a reading are reported."""
    return missed > 2 and seconds >= 0.005


def _degrade(text: str) -> Problem:
    return Problem(Severity.DEGRADE, text)
