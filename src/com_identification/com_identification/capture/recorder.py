"""Records postures of a stationary robot from streams of readings, live or from a bag."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from com_identification.capture import streams
from com_identification.capture.detector import (
    PostureBuilder,
    StationaryDetector,
    StationaryInterval,
    StationaryRun,
)
from com_identification.capture.slow_motion import SlowMotion
from com_identification.exceptions import CaptureRefused, IdentificationError
from com_identification.regression.postures import Posture
from com_identification.settings import IdentificationSettings
from com_model import Foot, RobotModel
from com_model.arrays import Array, as_array

_LAST_NS = 2**62  # later stamps are invalid


class CaptureStatus(IntEnum):
    """State of a recorder; the values are those of com_msgs/IdentificationState.

    Attributes:
        UNKNOWN: no reading yet.
        WAITING: some stream is timed out.
        MOVING: the robot moves, or its forces or its tilt change.
        SETTLING: it is stationary, but not for long enough.
        REFUSED: it is stationary, but a sensor is saturated or frozen, or feet have no
            contact.
        COLLECTING: readings count, but there are too few so far.
        READY: a posture can be captured.
    """

    UNKNOWN = 0
    WAITING = 1
    MOVING = 2
    SETTLING = 3
    REFUSED = 4
    COLLECTING = 5
    READY = 6


class CaptureState(NamedTuple):
    """Current state of a recorder.

    Attributes:
        status: see CaptureStatus.
        reasons: why no posture can be captured and how to fix it, sentences; empty when
            READY.
        seconds: s, length of the readings that are used so far.
    """

    status: CaptureStatus
    reasons: tuple[str, ...]
    seconds: float


class PostureRecorder:
    """Makes one posture of the readings of each interval in which the robot is stationary.

    Streams may be added in blocks of any length, each in the order of its stamps. Live, a block
    is one reading; from a recording, blocks of less than options.lag seconds of each stream in
    turn. Memory does not grow with the recording.

    Readings that are late, repeated or not finite are counted and left out. Where a stamp jumps
    back (a recording that is played again), the recorder restarts.

    Args:
        model: the robot, n joints.
        feet: its f feet with their force sensors, in the order of the postures' wrenches.
        settings: the sections capture, noise (thresholds of motion allow for it) and fit: without
            use_imu no direction against gravity is read, and the ground is horizontal.
        marks: intervals that are the postures, in order, without overlap; then nothing else is
            used, and readings are used from the start of a mark, without settle_time.
        slow_motion: whether the history is stored, for slow_motion_postures().

    Attributes:
        known_com: the CoM by another source; add its readings before those of the joints.

    Raises:
        IdentificationError: marks overlap or are out of order.
    """

    def __init__(
        self,
        model: RobotModel,
        feet: Sequence[Foot],
        settings: IdentificationSettings,
        marks: Sequence[streams.PostureMark] = (),
        slow_motion: bool = False,
    ) -> None:
        self.model, self.feet = model, tuple(feet)
        self._settings, self.options = settings, settings.capture
        specs = streams.stream_specs(model, feet, settings)
        self._timeline = streams.ReadingTimeline(
            int(self.options.slice_time * streams.NS_PER_S), marks
        )
        self._builder = PostureBuilder(model, feet, settings, specs)
        self.known_com = self._builder.known_com
        self._detector = StationaryDetector(
            self.options, self._timeline, specs, self._builder
        )
        self._detector.history = [] if slow_motion else None
        self._dropped = streams.DroppedReadings()
        self._streams = [
            streams.SensorStream(spec, self._timeline, self._dropped) for spec in specs
        ]
        self._lag_ns = int(self.options.lag * streams.NS_PER_S)
        self._jump_ns = int(self.options.jump_back * streams.NS_PER_S)
        self._next: int | None = None  # next slice to complete

    @property
    def dropped(self) -> streams.DroppedReadings:
        """Readings that were left out so far."""
        return replace(self._dropped)

    @property
    def seconds(self) -> Mapping[str, float]:
        """Seconds by cause of unusable readings, and of "stationary"."""
        return dict(self._detector.seconds)

    def add_joints(
        self, t_ns: ArrayLike, Q: ArrayLike, effort: ArrayLike | None = None
    ) -> None:
        """Adds joint states, in the order of the model's joints.

        Args:
            t_ns: (N,) ns, stamps.
            Q: (N, n) rad or m; rows with NaN are left out.
            effort: (N, n) N m or N; NaN where not known.
        """
        Q = as_array("Q", Q, (None, self.model.n_joints))
        if effort is None:
            effort = np.full(Q.shape, np.nan)
        effort = as_array("effort", effort, (len(Q), self.model.n_joints))
        known = np.where(streams.usable_numbers(effort), effort, np.nan)
        self._add(0, t_ns, np.hstack((Q, known)))

    def add_wrenches(self, foot: int, t_ns: ArrayLike, W: ArrayLike) -> None:
        """Adds readings of a foot's force sensor, as read.

        Args:
            foot: its index.
            t_ns: (N,) ns, stamps.
            W: (N, 6) N and N m, in the sensor's frame and with its sign.

        Raises:
            IdentificationError: there is no such foot.
        """
        if not 0 <= foot < len(self.feet):
            raise IdentificationError(
                f"foot {foot}: expected 0 to {len(self.feet) - 1}"
            )
        self._add(1 + foot, t_ns, as_array("W", W, (None, 6)))

    def add_up(self, t_ns: ArrayLike, up: ArrayLike) -> None:
        """Adds directions against gravity by the IMU; ignored unless fit.use_imu is set.

        Args:
            t_ns: (N,) ns, stamps.
            up: (N, 3) unit vectors against gravity in root axes; others are left out.
        """
        up = as_array("up", up, (None, 3))
        if not self._settings.fit.use_imu:
            return
        with np.errstate(invalid="ignore", over="ignore"):
            # a direction's length may be off by 1 %
            unit = np.abs(np.linalg.norm(up, axis=1) - 1.0) < 0.01
        self._add(-1, t_ns, np.where(unit[:, None], up, np.nan))

    def slow_motion_postures(
        self, taken: Sequence[StationaryInterval]
    ) -> tuple[list[StationaryInterval], dict[str, float]]:
        """Finds postures of slow motion outside of the stationary intervals.

        Args:
            taken: the stationary intervals.

        Returns:
            As SlowMotion.intervals(); nothing if the history was not stored.
        """
        if not self._detector.history:
            return [], {}
        finder = SlowMotion(self.model, self.feet, self._settings, self._builder)
        return finder.intervals(self._detector.history, taken)

    def set_bias(self, bias: ArrayLike) -> None:
        """Sets the bias that is subtracted from the wrenches of postures from now on.

        Args:
            bias: (f, 6) N and N m, as read.

        Raises:
            IdentificationError: a number is not finite.
        """
        bias = as_array("bias", bias, (len(self.feet), 6))
        if not np.isfinite(bias).all():
            raise IdentificationError("bias: expected finite numbers")
        self._builder.bias = np.array(bias)

    def state(self, now_ns: int | None = None) -> CaptureState:
        """Returns whether a posture can be captured, and why not.

        Args:
            now_ns: ns, current stamp; None: that of the newest reading.
        """
        status, reasons = self._status(now_ns)
        run = self._detector.run
        return CaptureState(
            status, reasons, run.seconds(run.captured_ns) if run else 0.0
        )

    def capture(
        self, label: str = "", seconds: float | None = None, now_ns: int | None = None
    ) -> Posture:
        """Makes a posture of the newest readings; each reading is used once.

        Args:
            label: name of the posture.
            seconds: s of readings that are averaged at least; None: capture.collect_time.
            now_ns: ns, current stamp; None: that of the newest reading.

        Raises:
            CaptureRefused: with the reasons of state().
        """
        run = self._require(now_ns, seconds)
        readings = run.readings(run.captured_ns)
        posture = self._builder.posture(readings, label, run.t0_ns, _LAST_NS)
        self._detector.mark_captured(run, posture.q, streams.span_ns(readings)[1])
        return posture

    def latest(
        self, seconds: float | None = None, now_ns: int | None = None
    ) -> Posture | None:
        """Makes a posture of the newest readings as capture(), which may use them again.

        Args:
            seconds: s of readings that are averaged at least; None: capture.collect_time.
            now_ns: ns, current stamp; None: that of the newest reading.

        Returns:
            None where capture() would refuse.
        """
        try:
            run = self._require(now_ns, seconds, -1)
            return self._builder.posture(run.readings(), "", run.t0_ns, _LAST_NS)
        except CaptureRefused:
            return None

    def measure_bias(
        self, foot: int, seconds: float | None = None, now_ns: int | None = None
    ) -> Array:
        """Measures the bias of the force sensor of a foot in the air.

        Args:
            foot: its index.
            seconds: s of readings that are averaged at least; None: capture.collect_time.
            now_ns: ns, current stamp; None: that of the newest reading.

        Returns:
            (6,) N and N m, as read.

        Raises:
            CaptureRefused: as capture(), or the foot carries load.
        """
        run = self._require(now_ns, seconds, -1, contact=False)
        return self._builder.sensor_bias(run.readings(), foot)

    def finished(self) -> list[StationaryInterval]:
        """Returns each stationary interval that has ended or lasts for max_time, once, in order.

        Intervals that cannot be used are among them, with the reasons; those of capture() are not.
        capture() may use the readings of an interval again, unless mark_stored() was called.
        """
        found = list(self._detector.finished)
        self._detector.finished.clear()
        return found

    def mark_stored(self, interval: StationaryInterval) -> None:
        """Marks the readings of an interval as used: capture() uses newer ones only.

        Args:
            interval: of this recorder.
        """
        run = self._detector.run
        if run is not None:
            run.captured_ns = max(run.captured_ns, interval.t1_ns)

    def flush(self) -> list[StationaryInterval]:
        """Ends the streams and returns the remaining intervals; drops the readings."""
        numbers = [
            stream.number for stream in self._streams if stream.last_ns is not None
        ]
        if numbers:
            self._complete_until(max(numbers) + 1)
        self._detector.end_marks()
        self._restart()
        return self.finished()

    def _add(self, index: int, t_ns: ArrayLike, values: Array) -> None:
        """Adds readings (N, C) at (N,) stamps of a stream, -1 for the last one.

        A slice of time is complete when every stream has passed it.
        """
        stream = self._streams[index]
        t = np.asarray(t_ns, dtype=np.int64).reshape(-1)
        if len(t) != len(values):
            raise IdentificationError(
                f"{stream.spec.name}: {len(t)} stamps for {len(values)} readings"
            )
        good = (t >= 0) & (t < _LAST_NS)
        if not good.all():
            self._dropped.unusable += int(np.sum(~good))
            t, values = t[good], values[good]
        while len(t):
            cut = stream.find_jump(t, self._jump_ns)
            stream.add(t[:cut], values[:cut], self._next or 0)
            if cut < len(t):
                self._dropped.restarts += 1
                self._detector.end()
                self._restart()
            t, values = t[cut:], values[cut:]
        self._advance()

    def _restart(self) -> None:
        for stream in self._streams:
            stream.restart()
        self._detector.restart()
        self._next = None

    def _advance(self) -> None:
        """Completes the slices that all streams have passed, or that are older than the lag."""
        done = min(
            stream.number for stream in self._streams
        )  # -1 where one has no reading
        stamps = [stream.last_ns or 0 for stream in self._streams]
        past = max(stamps) - self._lag_ns
        if past > min(stamps):
            done = max(done, int(self._timeline.slice_numbers(np.array([past]))[0]))
        if self._next is None or self._next < done:
            self._complete_until(done)

    def _complete_until(self, end: int) -> None:
        """Completes the slices before one; of empty ones in a row the first only."""
        while True:
            firsts = (stream.first_number() for stream in self._streams)
            stored = min(
                (number for number in firsts if number is not None), default=end
            )
            number = stored if self._next is None else self._next
            if number >= end:
                return
            parts = [stream.pop(number) for stream in self._streams]
            pairs = zip(self._streams, parts, strict=True)
            issues = [issue for stream, part in pairs for issue in stream.issues(part)]
            self._detector.add(number, parts, issues)
            self._next = max(number + 1, min(stored, end))

    def _timed_out(self, now_ns: int) -> tuple[str, ...]:
        """Which streams have no readings now, sentences that say how to fix it."""
        found = []
        for stream in self._streams:
            if stream.spec.optional:
                continue
            if stream.last_ns is None:
                found.append(stream.missing().text)
            elif (
                time := (now_ns - stream.last_ns) / streams.NS_PER_S
            ) > self.options.timeout:
                found.append(
                    f"{stream.spec.name} has had no reading for {time:.2f} s: check its driver "
                    "and its topic."
                )
        return tuple(found)

    def _require(self, *how: Any, **contact: bool) -> StationaryRun:
        """The stationary run; with any other status than READY a CaptureRefused; as _status."""
        (status, reasons), run = self._status(*how, **contact), self._detector.run
        if status != CaptureStatus.READY or run is None:
            raise CaptureRefused(*reasons)
        return run

    def _status(
        self,
        now_ns: int | None = None,
        seconds: float | None = None,
        after_ns: int | None = None,
        contact: bool = True,
    ) -> tuple[CaptureStatus, tuple[str, ...]]:
        stamps = [
            stream.last_ns for stream in self._streams if stream.last_ns is not None
        ]
        if not stamps:
            return CaptureStatus.UNKNOWN, (
                "No readings so far: start the robot's drivers.",
            )
        timed_out = self._timed_out(max(stamps) if now_ns is None else now_ns)
        if timed_out:
            return CaptureStatus.WAITING, timed_out
        detector, run = self._detector, self._detector.run
        if run is None or (
            detector.motion is not None and run.time < 2.0 * self.options.slice_time
        ):
            text = (
                detector.motion.text
                if detector.motion
                else "The robot was not stationary so far."
            )
            return CaptureStatus.MOVING, (text,)
        if detector.issues:
            return CaptureStatus.REFUSED, tuple(issue.text for issue in detector.issues)
        if not run.settled:
            return CaptureStatus.SETTLING, (
                (
                    f"Stationary for {run.time:.2f} s of {self.options.settle_time:g} s: keep the "
                    "robot stationary."
                ),
            )
        needed = self.options.collect_time if seconds is None else seconds
        after_ns = run.captured_ns if after_ns is None else after_ns
        seconds = run.seconds(after_ns)
        if not seconds or not seconds >= needed:
            return CaptureStatus.COLLECTING, (
                f"Readings of {seconds:.2g} s of {needed:g} s: keep the robot stationary.",
            )
        issues = self._builder.issues(run.readings(after_ns), contact)
        if issues:
            return CaptureStatus.REFUSED, tuple(issues)
        return CaptureStatus.READY, ()
