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
@dataclass(frozen=True)
class RepeatOptions:
    """When a channel that repeats its value is only coarse.

    Attributes:
        coarse: fraction of the samples that repeat the one before, above which the steps of a
            channel are coarse. A sensor with noise beyond its step has some percent, a torque
            of 12 bits at 1 kHz 0.5 to 0.95.
        memory: s, of that fraction.
        patience: s that a coarse channel may stay the same: half a stride of a slow gait, in
            which each joint's load changes.
        dead: s of an unusual run after which a sensor counts as dead; a shorter one that ended is
            put down to the sensor's coarse steps.
    """

    coarse: float = 0.3
    memory: float = 1.0
    patience: float = 1.0
    dead: float = 0.1


class Repeats:
    """Time for which each of k channels has had exactly the same value.

    Args:
        count: k.
        options: when a channel is coarse.

    Attributes:
        run: (k,) number of times that the last value was repeated; 0 just after a change.
        duration: (k,) s since the last change.
        longest: (k,) s, longest run that was counted as usual.
        ended: (k,) channels that changed at this sample.
        lasted: (k,) s, duration of the run that ended at this sample; 0 where none ended.
    """

    def __init__(self, count: int, options: RepeatOptions | None = None) -> None:
        self.options = options or RepeatOptions()
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
        weight = dt / max(min(self._age, self.options.memory), dt, 1e-9)
        brief = (
            self.duration < self.options.dead
        )  # a sensor that dies does not become coarse
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
        return self._often > self.options.coarse

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


@dataclass(frozen=True)
class EncoderOptions:
    """When an encoder is stuck.

    Attributes:
        travel: rad or m that a joint moves by its velocity before its position must change.
        travel_time: s, memory of that travel: a velocity with a small bias is no travel.
        others_travel: rad or m that all other joints move together, for the robot to be in motion.
        stand: s that any joint may stand still while the others move.
        learning: s of motion until it is known for how long a joint stands in the gait.
        unlearned_stand: s that a joint may stand before that.
    """

    travel: float = 0.005
    travel_time: float = 0.2
    others_travel: float = 0.3
    stand: float = 0.25
    learning: float = 2.0
    unlearned_stand: float = 1.5


class EncoderCheck:
    """Detects stuck encoders of k joints that may rest at the ends of their range.

    A position that stays exactly the same is a fault if the joint's velocity shows motion, or if
    the other joints have moved for much longer than this one ever stood before.

    Args:
        names: of the k joints, for the texts.
        lower: (k,) rad or m, lower ends of their ranges; -inf where there is none.
        upper: (k,) rad or m, upper ends; inf where there is none.
        options: when an encoder is stuck.
    """

    def __init__(
        self,
        names: Sequence[str],
        lower: Array,
        upper: Array,
        options: EncoderOptions | None = None,
    ) -> None:
        count, self._options = len(names), options or EncoderOptions()
        self._names = list(names)
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
            np.abs(self._travel) > self._options.travel
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
        fade = np.exp(-dt / self._options.travel_time)
        travel = fade * self._travel + np.nan_to_num(velocity) * dt
        self._travel = np.where(repeats.ended, 0.0, travel)
        others = self._path.sum() - self._path
        self._path_at_change = np.where(repeats.ended, others, self._path_at_change)

    def _stands_too_long(self, position: Array) -> Flags:
        repeats = self._repeats
        others = self._path.sum() - self._path - self._path_at_change
        least = (
            self._options.stand
            if self._moving_time > self._options.learning
            else self._options.unlearned_stand
        )
        # The stands of a joint that moves by single steps of its encoder differ more.
        usual = np.where(repeats.coarse, 4.0, 2.0) * repeats.longest
        patience = np.maximum(least, usual)
        free = (position > self._lowest) & (position < self._highest)
        return (
            free
            & (repeats.duration > patience)
            & (others > self._options.others_travel)
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
            return ~known, Problem(Severity.HOLD, _NO_EFFORT)
        if not known.all():
            bad = listing(self._names[i] for i in np.flatnonzero(~known))
            return ~known, _degrade(
                f"joint_states has no finite effort for {bad}: check the driver"
            )
        if not effort.any():
            gone = time - self._loaded > self._repeats.options.dead
            return known, Problem(Severity.HOLD, _ALL_ZERO) if gone else None
        suspicious = self._suspicious(time, effort)
        self._unusual = np.where(suspicious, np.minimum(self._unusual, time), np.inf)
        lasting = time - self._unusual >= self._repeats.options.dead
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
        coarse, patience = repeats.coarse, repeats.options.patience
        repeats.add_usual(
            repeats.lasted < np.where(coarse, patience, self._repeats.options.dead)
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


_NO_EFFORT = (
    "joint_states carries no effort: the joint torques are needed; "
    "let the driver measure them"
)
_ALL_ZERO = (
    "the effort of every joint is zero: let the driver measure the joint torques"
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


@dataclass(frozen=True)
class ImuOptions:
    """When readings of an IMU are missing, stuck or implausible.

    Attributes:
        stuck: s of the same reading.
        dropout: s without a reading that is not reported.
        missed: samples without a reading that are not reported.
        memory: s, of the accelerometer's mean.
        settled: s, after which that mean may be called wrong.
        small: of gravity, readings that last for `small_time` s at most: hardly any force is left
            in a jump.
        small_time: s.
        free: of gravity, readings of free fall, also in a trot that hops or a bound, which last
            longer: for `free_time` s; a robot that stands never reads so little, in any unit.
        free_time: s.
        large: of gravity, readings that last for `large_time` s at most: a hard touch-down; 50 ms
            would be 2.5 m/s.
        large_time: s.
        plausible: of gravity, for the length of the mean, in which impacts that ring cancel, or for
            the mean length, which does not change in a tumble.
    """

    stuck: float = 0.1
    dropout: float = 0.005
    missed: int = 2
    memory: float = 1.0
    settled: float = 0.08
    small: float = 0.25
    small_time: float = 0.12
    free: float = 0.08
    free_time: float = 0.6
    large: float = 5.0
    large_time: float = 0.05
    plausible: tuple[float, float] = (0.7, 1.4)


class ImuCheck:
    """Detects missing, stuck or implausible readings of an IMU; units other than m/s^2.

    Args:
        options: which readings are that.
    """

    def __init__(self, options: ImuOptions | None = None) -> None:
        self._options = options or ImuOptions()
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
        if self._repeats.duration[0] > self._options.stuck:
            return Trust.NOTHING, _degrade(
                f"the imu has said exactly the same for {self._repeats.duration[0]:.2f} s: check "
                "its driver"
            )
        self._attitude = time if attitude else max(self._attitude, self._first)
        self._unoriented = 0 if attitude else self._unoriented + 1
        trust, problem = self._plausible(time, accelerometer)
        if (
            problem is None
            and self._unoriented > self._options.missed
            and time - self._attitude >= self._options.dropout
        ):
            problem = _degrade(_NO_ATTITUDE)
        return trust, problem

    def _missing(self, time: float, trust: Trust) -> Problem | None:
        silence = time - max(self._received, self._first)
        if silence < self._options.dropout or self._missed <= self._options.missed:
            return None
        if trust is Trust.TURNING:
            return _degrade("the accelerometer is not known: check the imu's driver")
        return _degrade(f"no imu for {silence:.2f} s: check its driver and topic")

    def _plausible(
        self, time: float, accelerometer: Array
    ) -> tuple[Trust, Problem | None]:
        options = self._options
        dt = 0.0 if math.isnan(self._last) else min(time - self._last, LONGEST_STEP)
        self._last, size = time, math.sqrt(float(accelerometer @ accelerometer))
        reading = np.append(accelerometer, size)
        self._mean = reading if math.isnan(self._mean[0]) else self._mean
        counted = dt * (
            options.small_time / options.free_time
            if size < options.free * GRAVITY
            else 1.0
        )
        self._small = self._small + counted if size < options.small * GRAVITY else 0.0
        self._large = self._large + dt if size > options.large * GRAVITY else 0.0
        if self._small > options.small_time or self._large > options.large_time:
            return Trust.TURNING, _degrade(_UNITS.format(f"{size:.2f} m/s^2"))
        self._span = min(self._span + dt, self._options.memory)
        weight = dt / max(self._span, dt, 1e-9)
        self._mean = self._mean + weight * (reading - self._mean)
        usual = float(self._mean[3])
        lengths = math.sqrt(float(self._mean[:3] @ self._mean[:3])), usual
        if any(
            options.plausible[0] < g / GRAVITY < options.plausible[1] for g in lengths
        ):
            return Trust.ALL, None
        if self._span < self._options.settled:  # it may have begun with an impact
            return Trust.TURNING, None
        return Trust.TURNING, _degrade(_UNITS.format(f"{usual:.2f} m/s^2 on average"))


_UNITS = f"the accelerometer says {{}}, not {GRAVITY}: it must give m/s^2 (not g), with gravity"


_NO_ATTITUDE = (
    "imu carries no orientation, and the acceleration shows the vertical only roughly: use a "
    "driver or a filter that gives orientation (orientation_covariance[0] other than -1)"
)


def _degrade(text: str) -> Problem:
    return Problem(Severity.DEGRADE, text)
