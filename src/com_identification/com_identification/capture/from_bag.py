"""Postures of a bag: of the intervals in which the robot is stationary, or of marked intervals."""

from __future__ import annotations

import csv
import math
import struct
from collections.abc import Callable
from contextlib import closing
from itertools import pairwise
from pathlib import Path

from com_bags import Bag, MarksError, SensorReader
from com_identification.capture.options import NS_PER_S, Mark, StationaryInterval
from com_identification.capture.recorder import PostureRecorder
from com_model.text import quote

MAX_BYTES = 2**20
_ABSOLUTE = 1e8  # s; larger times are stamps, smaller ones count from the first joint state


def record_postures(
    reader: SensorReader,
    recorder: PostureRecorder,
    progress: Callable[[int], None] | None = None,
    span_ns: int = NS_PER_S,
) -> list[StationaryInterval]:
    """Feeds a recorder with a bag, from start to end, and returns its intervals.

    Args:
        reader: Of the bag.
        recorder: For the same robot.
        progress: Called with the number of messages since the last call.
        span_ns: Length of a block, ns; shorter than the lag of the recorder.

    Raises:
        TopicError: See SensorReader.blocks().
    """
    intervals = []
    for block in reader.blocks(span_ns):
        if len(block.joint_times):
            recorder.add_joints(block.joint_times, block.Q, block.effort)
        for foot, (times, W) in enumerate(block.wrenches):
            if len(times):
                recorder.add_wrenches(foot, times, W)
        if block.up is not None and len(block.up[0]):
            recorder.add_up(*block.up)
        intervals += recorder.finished()
        if progress is not None:
            progress(block.messages)
    return intervals + recorder.flush()


def read_marks(path: Path, origin_ns: int) -> list[Mark]:
    """Reads lines of start,end[,label] in seconds.

    Times count from the first joint state; those above 1e8 are stamps.

    Args:
        path: A CSV file; column names in the first line, empty lines and # comments are skipped.
        origin_ns: Stamp of the first joint state.

    Raises:
        MarksError: The file or a line cannot be read; names the line.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise MarksError(
                f"is larger than {MAX_BYTES // 1024} KiB. Is this the file?", str(path)
            )
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise MarksError(f"cannot be read: {error.strerror or error}", str(path)) from error
    except UnicodeDecodeError as error:
        raise MarksError("is no text file. Expected lines of start,end,label", str(path)) from error
    spans = [span for n, line in enumerate(lines) if (span := _line(line, n, path)) is not None]
    if not spans:
        raise MarksError("contains no marks. Expected lines of start,end,label", str(path))
    spans.sort()
    for before, after in pairwise(spans):
        if after[0] <= before[1]:
            problem = f"{after[0]:g} to {after[1]:g} s overlaps {before[0]:g} to {before[1]:g} s"
            raise MarksError(f"{problem}. Marks must not overlap", str(path))
    return [Mark(_ns(t0, origin_ns), _ns(t1, origin_ns), label) for t0, t1, label in spans]


def marks_of_topic(bag: Bag, joint_topic: str, marker_topic: str, received: bool) -> list[Mark]:
    """Makes marks of a topic: a text starts a posture of that name, an empty text ends it.

    The messages have no stamp, and the clock of their recording may differ from that of the stamps:
    the time of a message is that of the newest joint state before it.

    Args:
        bag: Open.
        joint_topic: Joint states; the newest ends the last mark.
        marker_topic: std_msgs/String, or std_msgs/Bool: true starts a posture, false ends it.
        received: Whether times are those of recording instead of the headers' stamps.

    Raises:
        MarksError: The topic marks no posture.
    """
    events: list[tuple[int, str]] = []
    joints: tuple[bytes, int] | None = None
    with closing(bag.messages([joint_topic, marker_topic])) as messages:
        for connection, time, payload in messages:
            if connection.topic == joint_topic:
                joints = payload, time
            elif joints is not None:
                now = _time_of(*joints, received)
                events.append((now, _label(payload, connection.msgtype, len(events))))
    end = 0 if joints is None else _time_of(*joints, received)
    marks: list[Mark] = []
    start: tuple[int, str] | None = None
    for time, label in [*sorted(events, key=lambda event: event[0]), (end, "")]:
        if start is not None and time - 1 > start[0]:
            marks.append(Mark(start[0], time - 1, start[1]))
        start = (time, label) if label else None
    if not marks:
        problem = "marks no posture. A text starts one, an empty text ends it"
        raise MarksError(problem, marker_topic)
    return marks


def _line(line: str, number: int, path: Path) -> tuple[float, float, str] | None:
    fields = [part.strip() for part in next(csv.reader([line]), [])]
    if not fields or not any(fields) or fields[0].startswith("#"):
        return None
    where = f"line {number + 1}"
    expected = "expected start,end[,label] in seconds"
    try:
        start, end = float(fields[0]), float(fields[1])
    except (ValueError, IndexError):
        if number == 0 and not fields[0][:1].isdigit():
            return None  # names of the columns
        raise MarksError(f"{where}: {expected}, got {quote(line)}", str(path)) from None
    if not (math.isfinite(start) and math.isfinite(end) and start < end):
        raise MarksError(f"{where}: {expected}, start before end, got {quote(line)}", str(path))
    return start, end, fields[2] if len(fields) > 2 else ""


def _ns(seconds: float, origin_ns: int) -> int:
    return round(seconds * NS_PER_S) + (0 if seconds >= _ABSOLUTE else origin_ns)


def _time_of(payload: bytes, time: int, received: bool) -> int:
    if received or len(payload) < 12:
        return time
    order = ">" if payload[1] == 0 else "<"
    seconds, nanoseconds = struct.unpack_from(f"{order}iI", payload, 4)
    return int(seconds * NS_PER_S + nanoseconds) or time


def _label(payload: bytes, type_name: str, number: int) -> str:
    """The text of a String; of a Bool a number where it is true."""
    if type_name.endswith("/Bool"):
        return f"mark {number}" if payload[4:5] == b"\1" else ""
    return payload[8:].split(b"\0", 1)[0].decode(errors="replace").strip()
