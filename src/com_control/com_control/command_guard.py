"""The last check before joint commands are sent, and whether the joints follow them.

Commands that are sent are finite, within the limits of position, and move by at most speed x
time since the command before. The positions that joints report are compared with those commanded
for that time. On a fault the guard stops: `reason` says what was received, what was expected and
how to fix it, until restart() is called.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan

import numpy as np
from numpy.typing import NDArray

from com_model.arrays import Array
from com_model.model import RobotModel
from com_model.parameters import live_parameter
from com_model.text import listing

JUMP = 0.5  # rad or m, within one sample, in addition to three times what the velocity limit allows
LOOKS = 21  # of measurements that are compared: 1 s
CLOSE = 1e-9  # rad, m or s, of rounding


@dataclass(frozen=True)
class GuardOptions:
    """Limits of reported positions, following errors and commands."""

    following_error: float = live_parameter(
        0.5,
        "rad or m, of a joint from its target; beyond, the motion stops",
        (0.001, 10.0),
    )
    following_time: float = live_parameter(
        0.1, "s, for which it must be that far", (0.0, 10.0)
    )
    speed_factor: float = live_parameter(
        1.0, "largest speed of commands over the URDF's velocity limits", (0.01, 1.0)
    )
    position_margin: float = live_parameter(
        0.5,
        "rad or m, by which reported positions may exceed limits; beyond, they are wrong",
        (0.0, 100.0),
    )


class ReadingTimes:
    """Finds gaps in the times of readings: some were lost, or their clock was set.

    A plan stands still for a gap, so that its targets do not leap.
    """

    def __init__(self) -> None:
        self._last, self._usual = -np.inf, np.inf

    def gap(self, time: float) -> float:
        """How much a plan must be late, or early, after a reading.

        Args:
            time: s, of the reading.

        Returns:
            s since the reading before, negative for a clock that was set back; 0.0 for less than
            50 ms or three times what there was between the two readings before.
        """
        passed, usual = time - self._last, self._usual
        self._last, self._usual = time, abs(passed)
        return passed if passed < -0.05 or passed > max(0.05, 3.0 * usual) else 0.0


class CommandGuard:
    """Checks commands and reported positions of n joints.

    Args:
        names: of the joints.
        lower: (n,) rad or m; -inf for none.
        upper: (n,) rad or m; inf for none.
        speed: (n,) rad/s or m/s; inf for none.
        options: limits; the defaults by default.
        types: n joint types, such as "revolute" or "prismatic", for the units in texts; None:
            texts say "rad or m".

    Attributes:
        options: as given; may be replaced.
        reason: why it has stopped; "" while it has not.
        implausible: fault of the last reported positions; "" for none.
        limited: names of the joints whose last command was changed to keep a limit.
        error: rad or m, of the joint farthest from its target; NaN where unknown.
        joint: name of that joint; "" where unknown.
    """

    def __init__(
        self,
        names: Sequence[str],
        lower: Array,
        upper: Array,
        speed: Array,
        options: GuardOptions | None = None,
        types: Sequence[str] | None = None,
    ) -> None:
        self.options = options or GuardOptions()
        self._names = tuple(names)
        self._units = ["rad or m"] * len(self._names)
        if types is not None:
            self._units = ["m" if kind == "prismatic" else "rad" for kind in types]
        self._lower, self._upper, self._speed = lower, upper, speed
        self._all = np.ones(len(self._names), dtype=bool)
        no_limit = 1e5  # rad or m, reported by a joint without limits
        self._least = np.where(np.isfinite(lower), lower, -no_limit)
        self._most = np.where(np.isfinite(upper), upper, no_limit)
        self.limited: tuple[str, ...] = ()
        self._last: tuple[float, Array] = (-np.inf, lower)  # command, its time s
        self.restart()

    @classmethod
    def from_model(
        cls, model: RobotModel, options: GuardOptions | None = None
    ) -> "CommandGuard":
        """Makes a guard with the limits of the URDF.

        Args:
            model: the robot, with the limits of its joints.
            options: limits of errors; the defaults by default.
        """
        return cls(
            model.joint_names,
            model.lower,
            model.upper,
            model.velocity_limits,
            options=options,
            types=model.joint_types,
        )

    @property
    def held(self) -> bool:
        """Whether it stopped because of a command, and repeats the last valid one since then."""
        return self._held is not None

    def restart(self) -> None:
        """Clears all faults: the next command must be near the joints' positions.

        If the drives were commanded just before, the next command starts from that command.
        """
        self.reason = self.implausible = ""
        self._held: Array | None = None
        self._time, self._measured = -np.inf, np.full(len(self._names), np.nan)
        self._forget()

    def change_clock(self, jump: float) -> None:
        """Continues with times of another clock.

        If commands had been sent, the guard stops, unless the clock has only started.

        Args:
            jump: s, by which the clock has jumped; 0: it has started.
        """
        self.stop_by_clock(jump)
        self._time = -np.inf
        self._forget()

    def stop_by_clock(self, jump: float) -> None:
        """Stops because of a jump of the clock, if commands had been sent; keeps them.

        Args:
            jump: s; 0: nothing is done.
        """
        if jump and self._dues and not self.reason:
            self.reason = (
                f"the clock of joint_states jumped by {jump:.3g} s: check its driver"
            )

    def _forget(self) -> None:
        """Forgets the commands that were sent."""
        self._dues: list[float] = []  # of commands, s, rising
        self._targets: list[Array] = []
        self._last_due = -np.inf  # first one of the last trajectory
        self.error, self.joint = float("nan"), ""
        self._far_since = np.full(len(self._names), np.inf)
        self._looks: deque[tuple[Array, Array]] = deque(maxlen=LOOKS)
        self._next_look = -np.inf

    # --- reported positions --------------------------------------------------------------------
    def measure(self, time: float, measured: Array) -> str:
        """Checks the reported positions of the joints.

        A fault stops the guard if commands were sent before. A time that goes back belongs to
        another clock: commands sent by the old one are forgotten.

        Args:
            time: s.
            measured: (n,) rad or m.

        Returns:
            What is wrong and how to fix it; "" when nothing is.
        """
        if time < self._time:
            self.change_clock(0.0)
        self.error, self.joint = float("nan"), ""
        self.implausible = problem = self._implausible(time, measured)
        if not problem:
            self._time, self._measured = time, np.array(measured, dtype=float)
            problem = self._not_following(time)
        if problem and self._dues:
            self.reason = self.reason or problem
        return self.reason or problem

    def _implausible(self, time: float, measured: Array) -> str:
        margin = self.options.position_margin
        wrong = ~(
            (measured >= self._least - margin) & (measured <= self._most + margin)
        )
        if wrong.any():
            i = int(np.argmax(wrong))
            return (
                f"{self._names[i]} reports {measured[i]:.4g}, its limits are {self._lower[i]:.4g} "
                f"to {self._upper[i]:.4g}: check its encoder and its driver"
            )
        passed = time - self._time
        if passed > 1.0:  # it may have been moved by hand
            return ""
        # The velocity limit, or 30 rad/s or m/s, allows a way for the time between samples, at
        # most 0.1 s.
        most = JUMP + 3.0 * np.minimum(self._speed, 30.0) * min(passed, 0.1)
        moved = measured - self._measured
        jumped = np.abs(moved) > most
        if jumped.any():
            i = int(np.argmax(jumped))
            return (
                f"{self._names[i]} jumped by {moved[i]:.3g} within {passed:.3f} s, at most "
                f"{most[i]:.2g} is possible: did its encoder slip, or its driver start again?"
            )
        return ""

    def _not_following(self, time: float) -> str:
        expected = self._expected(time)
        if expected is None:
            return ""
        error, most = np.abs(self._measured - expected), self.options.following_error
        farthest = int(np.fmax(error, -1.0).argmax())
        if not isnan(error[farthest]):
            self.error, self.joint = float(error[farthest]), self._names[farthest]
        if not self.error > most:
            self._far_since[:] = np.inf
            return self._frozen(time, expected)
        self._far_since = np.where(
            error > most, np.minimum(self._far_since, time), np.inf
        )
        late = time - self._far_since >= self.options.following_time - CLOSE
        if late.any():
            i = int(np.argmax(np.where(late, error, 0.0)))
            return (
                f"{self._names[i]} is {error[i]:.2f} {self._units[i]} from its target, "
                f"following_error is {most:.2f}: is it blocked, or is the drive off?"
            )
        return self._frozen(time, expected)

    def _frozen(self, time: float, expected: Array) -> str:
        """Fault of joints that do not move although their commands do; "" for none."""
        if time < self._next_look:
            return ""
        if time > self._next_look + 0.5:
            self._looks.clear()
        # 50 ms between two looks; after more than 0.5 s they begin again
        self._next_look = time + 0.05 - 1e-6
        self._looks.append((self._measured, expected))
        # where positions are repeated exactly
        measured, wanted = self._ways(11, 7)
        way = 0.05  # rad or m, of commands; a joint that makes less than a tenth of it is frozen
        frozen = (wanted > way) & (measured == 0.0)
        if not frozen.any():
            # 1 s of measurements is compared with the first half of the commands
            measured, wanted = self._ways(LOOKS, 11)
            frozen = (wanted > way) & (measured < 0.1 * wanted)
        if not frozen.any():
            return ""
        i = int(np.argmax(np.where(frozen, wanted, 0.0)))
        return (
            f"{listing(np.array(self._names)[frozen].tolist())} do not follow: {self._names[i]} "
            f"moved by {measured[i]:.3f} where its commands moved by {wanted[i]:.3f}: is it "
            "blocked, is the drive off, or does its driver repeat old positions?"
        )

    def _ways(self, count: int, old: int) -> tuple[Array, Array]:
        """Ranges (n,) of joints in the last looks, and of commands in the `old` first of them."""
        if len(self._looks) < count:
            return np.zeros(len(self._names)), np.zeros(len(self._names))
        looks = list(self._looks)[-count:]
        measured = np.ptp([look[0] for look in looks], axis=0)
        return measured, np.ptp([look[1] for look in looks[:old]], axis=0)

    def _expected(self, time: float) -> Array | None:
        """The command for a time, s, linearly interpolated; None before the first command."""
        k = bisect_right(self._dues, time)
        if k == 0:
            return None
        if k == len(self._dues):
            return self._targets[-1]
        t0, t1 = self._dues[k - 1 : k + 1]
        start, end = self._targets[k - 1 : k + 1]
        return np.asarray(start + (time - t0) / (t1 - t0) * (end - start))

    # --- commands ------------------------------------------------------------------------------
    @np.errstate(invalid="ignore", over="ignore")
    def limit(
        self,
        due: Array,
        positions: Array,
        velocities: Array,
        driven: NDArray[np.bool_] | None = None,
    ) -> tuple[Array, Array]:
        """Limits commands to what may be sent; replaces earlier commands that are not due yet.

        Positions are clipped to their limits and follow each other no faster than the velocity
        limits allow. If a command is not finite, or would have to be changed by more than JUMP
        and following_error, the guard stops. It then answers every call with the last valid
        position, until restart().

        Args:
            due: (m,) s, rising, when each command is due.
            positions: (m, n) rad or m; NaN for joints that are not driven.
            velocities: (m, n) rad/s or m/s.
            driven: (n,) the joints that are driven; None: all.

        Returns:
            Positions (m, n) and velocities (m, n) to send.
        """
        driven = self._all if driven is None else driven
        before, spans = self._sent_before(due)
        sent, slopes = self._within_limits(before, spans, positions)
        rounding = 1e-6  # rad or m
        kept = bool(self._dues) and bool((np.abs(sent - positions) <= rounding).all())
        if self._held is None and not (kept and np.isfinite(velocities).all()):
            problem = self._wrong(sent, positions, driven)
            if not (problem or np.isfinite(velocities[:, driven]).all()):
                problem = "a commanded velocity is not finite: report this error"
            if problem:
                self.reason = self.reason or problem
                self._held = before
        if self._held is not None:
            sent, speeds = np.tile(self._held, (len(due), 1)), np.zeros(positions.shape)
        else:
            speeds, self.limited = velocities, ()
            if not kept:
                changed = np.abs(sent - positions) > rounding
                joints = np.flatnonzero(changed.any(axis=0)).tolist()
                self.limited = tuple(self._names[j] for j in joints)
                speeds = np.where(changed, slopes, velocities)
            fastest = self.options.speed_factor * self._speed
            speeds = np.minimum(np.maximum(speeds, -fastest), fastest)
        self._store(due.tolist(), sent)
        return sent, speeds

    def _sent_before(self, due: Array) -> tuple[Array, Array]:
        """Positions (n,) commanded last, and times (m,) s between commands from there on."""
        if not self._dues:
            last_due, last = self._last
            # within 0.5 s the drives are held at the last command
            if (
                due[0] - last_due < 0.5
                and (np.abs(last - self._measured) <= JUMP).all()
            ):
                return last, _steps(min(last_due, due[0]), due)  # a clock may go back
            return self._measured, _steps(-np.inf, due)  # no limit of velocity
        # 15 ms of way to a command are allowed, however long ago the last one was
        begin = max(self._last_due, float(due[0]) - 0.015)
        sent = self._expected(begin)
        sent = self._targets[0] if sent is None else sent
        before = np.where(np.isnan(sent), self._measured, sent)
        return before, _steps(min(begin, float(due[0])), due)

    def _within_limits(
        self, before: Array, spans: Array, wanted: Array
    ) -> tuple[Array, Array]:
        """Positions (m, n) that keep the limits, and their slopes (m, n)."""
        lowest, highest = np.fmin(self._lower, before), np.fmax(self._upper, before)
        sent = np.minimum(np.maximum(wanted, lowest), highest)
        fastest = np.minimum(self.options.speed_factor * self._speed, 1e6)
        ways = fastest * spans[:, None] + CLOSE
        steps = _steps(before, sent)
        if (np.abs(steps) > ways).any():
            last = before
            for i, way in enumerate(ways):
                sent[i] = last = np.clip(sent[i], last - way, last + way)
            steps = _steps(before, sent)
        return sent, steps / np.maximum(spans, CLOSE)[:, None]

    def _wrong(self, sent: Array, wanted: Array, driven: NDArray[np.bool_]) -> str:
        """Fault of commands that are not finite or too far beyond their limits; "" for none."""
        most, first = max(self.options.following_error, JUMP), not self._dues
        allowed = np.vstack((self._measured, sent[1:])) if first else sent
        wrong = driven & ~(np.abs(wanted - allowed) <= most)
        if not wrong.any():
            return ""
        row, i = np.argwhere(wrong)[0].tolist()
        text = f"the command of {self._names[i]} is {wanted[row, i]:.4g}, "
        if first and row == 0:
            return (
                f"{text}the joint is at {self._measured[i]:.4g}, more than {most:.2f} away: begin "
                "nearer to where the robot is"
            )
        return (
            f"{text}its limits of position and velocity allow {sent[row, i]:.4g}, more than "
            f"{most:.2f} away: ask for less, or for a slower motion"
        )

    def _store(self, dues: list[float], sent: Array) -> None:
        """Stores the commands that were sent; removes those that they replace or that are over."""
        keep = bisect_right(self._dues, dues[0] - CLOSE)
        drop = max(bisect_right(self._dues, self._time) - 1, 0)
        self._dues[:] = self._dues[drop:keep] + dues
        self._targets[:] = self._targets[drop:keep] + list(sent)
        self._last_due, self._last = dues[0], (dues[-1], sent[-1])


def _steps(before: Array | float, rows: Array) -> Array:
    """Differences from `before` to the first of m rows and between rows, shaped as rows."""
    steps = np.empty(rows.shape)
    steps[0], steps[1:] = rows[0] - before, rows[1:] - rows[:-1]
    return steps
