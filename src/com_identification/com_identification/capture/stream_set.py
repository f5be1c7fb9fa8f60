"""The streams of a robot: cut into slices of time, which are judged when all streams have them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from com_identification.capture.capture_options import NS_PER_S, CaptureOptions, Dropped
from com_identification.capture.slices import Stream, Timeline, valid_stamps
from com_identification.capture.still_finder import StillFinder
from com_identification.capture.stillness import Limits, Problem, Slices
from com_identification.exceptions import IdentificationError
from com_model.arrays import Array


class StreamSet:
    """Streams in step.

    Args:
        names: Of the streams: joints, feet, direction against gravity.
        limits: Of each stream, with its channels.
        needed: How many channels of each must be finite.
        feet: How many of them are feet, from the second on.
        timeline: Numbers the slices.
        finder: Is given the slices.
        options: Lag, time-out, jumps of time.

    Attributes:
        unusable: Readings that were refused before they came here.
    """

    def __init__(
        self,
        names: Sequence[str],
        limits: Sequence[Limits],
        needed: Sequence[int],
        feet: int,
        timeline: Timeline,
        finder: StillFinder,
        options: CaptureOptions,
    ) -> None:
        self._streams = [
            Stream(name, limit.channels, count, timeline)
            for name, limit, count in zip(names, limits, needed, strict=True)
        ]
        self._feet, self._timeline, self._finder = feet, timeline, finder
        self._options = options
        self._lag_ns = int(options.lag * NS_PER_S)
        self._jump_ns = int(options.jump_back * NS_PER_S)
        self._restarts = self._unusable = 0
        self._next: int | None = None

    @property
    def newest_ns(self) -> int | None:
        """Stamp of the newest reading of all; None before the first."""
        stamps = [stream.last_ns for stream in self._streams if stream.last_ns is not None]
        return max(stamps, default=None)

    @property
    def dropped(self) -> Dropped:
        """Readings that were left out so far."""
        streams = self._streams
        return Dropped(
            late=sum(stream.late for stream in streams),
            repeated=sum(stream.repeated for stream in streams),
            unusable=sum(stream.unusable for stream in streams) + self._unusable,
            restarts=self._restarts,
        )

    def add(self, index: int, t_ns: ArrayLike, values: Array) -> None:
        """Takes readings of a stream.

        Args:
            index: Of the stream; -1 for the last.
            t_ns: (N,) stamps.
            values: (N, C).

        Raises:
            IdentificationError: As many stamps as readings are needed.
        """
        stream = self._streams[index]
        t = np.asarray(t_ns, dtype=np.int64).reshape(-1)
        if len(t) == len(values) == 1 and stream.add_next(int(t[0]), values[0]):
            return
        if len(t) != len(values):
            raise IdentificationError(f"{stream.name}: {len(t)} stamps for {len(values)} readings")
        good = valid_stamps(t)
        if not good.all():
            self._unusable += int(np.sum(~good))
            t, values = t[good], values[good]
        while len(t):
            cut = stream.jump(t, self._jump_ns)
            stream.add(t[:cut], values[:cut], self._next or 0)
            if cut < len(t):
                self._restarts += 1
                self._finder.end()
                self._forget()
            t, values = t[cut:], values[cut:]
        self._advance()

    def flush(self) -> None:
        """Judges all that is left, and forgets it."""
        numbers = [stream.number for stream in self._streams if stream.last_ns is not None]
        if numbers:
            self._judge_until(max(numbers) + 1)
        self._finder.end_marks()
        self._forget()

    def silent(self, now_ns: int) -> tuple[str, ...]:
        """Which streams say nothing now, sentences and how to fix it."""
        found = []
        for i, stream in enumerate(self._streams):
            if self._may_be_silent(i):
                continue
            if stream.last_ns is None:
                found.append(_silence_of(stream).text)
            elif (now_ns - stream.last_ns) / NS_PER_S > self._options.timeout:
                time = (now_ns - stream.last_ns) / NS_PER_S
                found.append(
                    f"{stream.name} is silent for {time:.2f} s: check its driver and its topic."
                )
        return tuple(found)

    def _forget(self) -> None:
        for stream in self._streams:
            stream.restart()
        self._finder.restart()
        self._next = None

    def _advance(self) -> None:
        """Judges the slices that all streams are done with, or that are too long ago."""
        done = min(stream.number for stream in self._streams)  # -1 where one was never heard
        stamps = [stream.last_ns or 0 for stream in self._streams]
        past = max(stamps) - self._lag_ns
        if past > min(stamps):
            done = max(done, self._timeline.number_one(past))
        if self._next is None or self._next < done:
            self._judge_until(done)

    def _judge_until(self, end: int) -> None:
        """Judges the slices before one; of empty ones in a row the first only."""
        while True:
            kept = [k for k in (stream.first_number() for stream in self._streams) if k is not None]
            number = min(kept, default=end) if self._next is None else self._next
            if number >= end:
                return
            parts = [stream.take(number) for stream in self._streams]
            self._finder.judge(number, parts, self._silence(parts))
            self._next = max(number + 1, min(min(kept, default=end), end))

    def _silence(self, parts: Slices) -> list[Problem]:
        """Which streams said nothing of use in a slice of time."""
        return [
            _silence_of(stream)
            for i, (stream, part) in enumerate(zip(self._streams, parts, strict=True))
            if part is None and not self._may_be_silent(i)
        ]

    def _may_be_silent(self, index: int) -> bool:
        return self._options.silent_feet and 1 <= index <= self._feet


def _silence_of(stream: Stream) -> Problem:
    """Says that a stream said nothing of use."""
    if stream.bad:
        names = ", ".join(stream.bad[:5])
        return Problem(
            f"{stream.name} not finite",
            f"{stream.name} has no number for {names}: check its driver.",
        )
    return Problem(
        f"{stream.name} silent",
        f"{stream.name} said nothing: check its driver, its topic and the clocks.",
    )
