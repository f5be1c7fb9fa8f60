"""Marked postures: parts of a recording, from a CSV file or from a topic."""

from __future__ import annotations

import csv
import math
import struct
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

from com_bags.exceptions import MarksError
from com_bags.parts import Message
from com_model.text import quote

MAX_BYTES = 2**20
_ABSOLUTE = 1e8  # s; larger times are stamps, smaller ones count from the first joint state
_NS = 1_000_000_000

Span = tuple[int, int, str]  # ns, ns, label


def read_marks(path: Path, origin_ns: int) -> list[Span]:
    """Reads lines of start,end[,label] in seconds.

    Times count from the first joint state; those above 1e8 are taken for stamps.

    Args:
        path: A CSV file; a first line of words is passed over, as are empty lines and # comments.
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
        raise MarksError("holds no marks. Expected lines of start,end,label", str(path))
    spans.sort()
    for before, after in pairwise(spans):
        if after[0] <= before[1]:
            problem = f"{after[0]:g} to {after[1]:g} s overlaps {before[0]:g} to {before[1]:g} s"
            raise MarksError(f"{problem}. Marks must be apart from each other", str(path))
    return [(_ns(t0, origin_ns), _ns(t1, origin_ns), label) for t0, t1, label in spans]


def marks_of_events(events: Sequence[tuple[int, str]], end_ns: int) -> list[Span]:
    """Makes marks of a topic's messages.

    Args:
        events: Times in ns and labels: a text starts a posture of that name, an empty one ends it.
        end_ns: Of the recording; ends the last one.
    """
    spans: list[Span] = []
    start: tuple[int, str] | None = None
    for time, label in [*sorted(events, key=lambda event: event[0]), (end_ns, "")]:
        if start is not None and time > start[0]:
            spans.append((start[0], time - 1, start[1]))
        start = (time, label) if label else None
    return spans


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
    return round(seconds * _NS) + (0 if seconds >= _ABSOLUTE else origin_ns)


def find_events(
    messages: Iterable[Message], joint_topic: str, marker_topic: str, received: bool
) -> tuple[list[tuple[int, str]], int]:
    """Reads a topic of marks; a mark has the time of the newest joint state before it.

    Marks have no stamp, and the clock of their recording need not be that of the stamps.

    Args:
        messages: Of both topics, in the order of the bag.
        joint_topic: Joint states.
        marker_topic: std_msgs/String or std_msgs/Bool.
        received: Whether times are those of recording.

    Returns:
        Times in ns and labels, as marks_of_events() takes them; the newest joint state's time.
    """
    events: list[tuple[int, str]] = []
    joints: tuple[bytes, int] | None = None
    now = 0
    for connection, time, payload in messages:
        if connection.topic == joint_topic:
            joints = payload, time
        elif joints is not None:
            now = _time_of(*joints, received)
            events.append((now, _label(payload, connection.msgtype, len(events))))
    return events, now if joints is None else _time_of(*joints, received)


def _time_of(payload: bytes, time: int, received: bool) -> int:
    if received or len(payload) < 12:
        return time
    order = ">" if payload[1] == 0 else "<"
    seconds, nanoseconds = struct.unpack_from(f"{order}iI", payload, 4)
    return int(seconds * _NS + nanoseconds) or time


def _label(payload: bytes, type_name: str, number: int) -> str:
    """The text of a String; of a Bool a number where it is true."""
    if type_name.endswith("/Bool"):
        return f"mark {number}" if payload[4:5] == b"\1" else ""
    return payload[8:].split(b"\0", 1)[0].decode(errors="replace").strip()
