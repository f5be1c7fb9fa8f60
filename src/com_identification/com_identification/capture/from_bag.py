"""Postures of a bag: of intervals in which the robot is stationary, marks, or tip-over tests."""

import csv
import struct
from collections.abc import Callable
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import numpy as np

from com_bags import Bag, MarksError, SensorReader
from com_bags.streams import Times
from com_bags.unit_checks import check_positions
from com_identification.capture.com_evidence import tip_over_planes
from com_identification.capture.detector import StationaryInterval
from com_identification.capture.from_table import TableReader
from com_identification.capture.recorder import PostureRecorder
from com_identification.capture.streams import NS_PER_S, PostureMark
from com_identification.exceptions import IdentificationError
from com_identification.regression.postures import ComConstraint, make_posture
from com_identification.settings import SensorNoise
from com_model import RobotModel
from com_model.arrays import Array
from com_model.strict_yaml import Section, read_yaml
from com_model.text import quote

# s; larger times are stamps, smaller ones count from the first joint state
_ABSOLUTE = 1e8


class TipTests:
    """Tip-over tests of a YAML file.

    {link, std, tests: [[start, end, edge_x, edge_y, direction, tilt]]}: each test is a time, s
    from the first joint state, in which the robot was about to fall over the edge, as in
    ComEvidence; its posture is the mean of the joints, without forces.

    Args:
        path: of the file.
        model: the robot.

    Raises:
        ConfigError: a key is missing or wrong.
    """

    def __init__(self, path: str, model: RobotModel) -> None:
        section, self._model = Section(read_yaml(path), path), model
        link = section.text("link", model.root_link, model.link_names)
        std = section.number("std", SensorNoise().known_com, 1e-6)
        rows = np.array(section.rows("tests", 6)).reshape(-1, 6)
        section.finish()
        if not len(rows) or not (rows[:, 0] < rows[:, 1]).all():
            raise section.error(
                "expected rows of start, end, edge_x, edge_y, direction, tilt; start before end",
                "tests",
            )
        normals, offsets = tip_over_planes(section, "tests", *rows[:, 2:].T)
        self._edges = [
            ComConstraint(link, n, float(c), std)
            for n, c in zip(normals, offsets, strict=True)
        ]
        # ns from the first joint state, begin and end of each; joint positions between them
        self._times = np.rint(rows[:, :2].clip(-4e9, 4e9) * NS_PER_S).astype(np.int64)
        self._readings: list[list[Array]] = [[] for _ in rows]
        self._origin = 0

    def add(self, t_ns: Times, Q: Array) -> None:
        """Adds joint states; the first of all is the origin of time.

        Args:
            t_ns: (N,) ns, stamps, at least one.
            Q: (N, n) rad or m, joint positions.
        """
        self._origin = self._origin or int(t_ns[0])
        for (begin, end), readings in zip(self._times, self._readings, strict=True):
            inside = (begin <= t_ns - self._origin) & (t_ns - self._origin <= end)
            readings += list(Q[inside & np.isfinite(Q).all(axis=1)])

    def intervals(self) -> list[StationaryInterval]:
        """Returns each test as a posture, or why it is none."""
        found = []
        most = 0.02  # rad or m, of a joint within a test
        for i, (t0, t1) in enumerate((self._origin + self._times).tolist()):
            label, Q = f"tip-over test {i + 1}", np.array(self._readings[i])
            posture, reason = None, f"{label} has no joint states: check its times."
            if len(Q) and (travel := np.ptp(Q, axis=0)).max(initial=0.0) > most:
                joint = self._model.joint_names[int(travel.argmax())]
                reason = (
                    f"{label}: {joint} moved by {travel.max():.3g}, more than {most} rad or m: "
                    "give the moment at which the robot tips."
                )
            elif len(Q):
                limits, q = (self._edges[i],), Q.mean(axis=0)
                posture = make_posture(
                    self._model, q, constraints=limits, samples=len(Q), label=label
                )
            reasons = () if posture is not None else (reason,)
            found.append(StationaryInterval(t0, t1, posture, reasons, label))
        return found


def record_postures(
    reader: SensorReader | TableReader,
    recorder: PostureRecorder,
    progress: Callable[[int], None] | None = None,
    span_ns: int = NS_PER_S,
    tips: TipTests | None = None,
) -> list[StationaryInterval]:
    """Feeds a recorder with a bag or table, from start to end, and returns its intervals.

    Tip-over tests are further postures.

    Args:
        reader: of the bag or the table.
        recorder: finds the postures.
        progress: called with the number of messages since its last call.
        span_ns: ns, length of a block of messages; shorter than the recorder's lag.
        tips: tip-over tests of the recording.

    Raises:
        TopicError: see SensorReader.blocks().
        UnitError: positions are in degrees or mm, which look like motion.
    """
    intervals, positions = [], [np.zeros((0, recorder.model.n_joints))]
    for block in reader.blocks(span_ns):
        positions.append(block.Q[:1])
        for known in block.known_com:
            recorder.known_com.add(*known)
        if len(block.joint_times):
            recorder.add_joints(block.joint_times, block.Q, block.effort)
            if tips is not None:
                tips.add(block.joint_times, block.Q)
        for foot, (times, W) in enumerate(block.wrenches):
            if len(times):
                recorder.add_wrenches(foot, times, W)
        if block.up is not None and len(block.up[0]):
            recorder.add_up(*block.up)
        intervals += recorder.finished()
        if progress is not None:
            progress(block.messages)
    check_positions(np.concatenate(positions), recorder.model)
    return intervals + recorder.flush() + ([] if tips is None else tips.intervals())


def read_marks(path: Path, origin_ns: int) -> list[PostureMark]:
    """Reads lines of start,end[,label] in seconds of a CSV file.

    Times count from the first joint state (origin_ns); those above 1e8 are stamps. Names of
    columns in the first line, empty lines and # comments are skipped.

    Args:
        path: of a CSV file.
        origin_ns: ns, stamp of the first joint state.

    Raises:
        MarksError: names the wrong line.
    """
    most = 2**20  # bytes
    try:
        if path.stat().st_size > most:
            raise MarksError(
                f"is larger than {most // 1024} KiB. Is this the file?", str(path)
            )
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise MarksError(
            f"cannot be read: {error.strerror or error}", str(path)
        ) from error
    except UnicodeDecodeError as error:
        raise MarksError(
            "is not text. Expected lines of start,end,label", str(path)
        ) from error
    read = (_line(line, n, path, origin_ns) for n, line in enumerate(lines))
    marks = sorted(
        (mark for mark in read if mark is not None), key=lambda mark: mark.t0_ns
    )
    if not marks:
        raise MarksError(
            "contains no marks. Expected lines of start,end,label", str(path)
        )
    for before, after in pairwise(marks):
        if after.t0_ns <= before.t1_ns:
            times = (after.t0_ns, after.t1_ns, before.t0_ns, before.t1_ns)
            a, b, c, d = ((time - origin_ns) / NS_PER_S for time in times)
            raise MarksError(
                f"{a:g} to {b:g} s overlaps {c:g} to {d:g} s. Marks must not overlap",
                str(path),
            )
    return marks


def marks_of_topic(
    bag: Bag, joint_topic: str, marker_topic: str, received: bool
) -> list[PostureMark]:
    """Makes marks of a topic: a text starts a posture of that name, an empty text ends it.

    Or, of std_msgs/Bool, true and false. The messages have no stamp, and the clock of their
    recording may differ from that of the stamps: the time of a message is that of the newest
    joint state before it; the last joint state ends the last mark.

    Args:
        bag: the recording.
        joint_topic: topic of the joint states.
        marker_topic: topic of the marks.
        received: whether the times of recording are used instead of the stamps.

    Raises:
        MarksError: the topic marks no posture.
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
    marks: list[PostureMark] = []
    start: tuple[int, str] | None = None
    for time, label in [*sorted(events, key=lambda event: event[0]), (end, "")]:
        if start is not None and time - 1 > start[0]:
            marks.append(PostureMark(start[0], time - 1, start[1]))
        start = (time, label) if label else None
    if not marks:
        raise MarksError(
            "marks no posture. A text starts one, an empty text ends it", marker_topic
        )
    return marks


def _line(line: str, number: int, path: Path, origin_ns: int) -> PostureMark | None:
    """The mark of a line; None where it is skipped."""
    fields: list[str] = []
    try:
        fields = [part.strip() for part in next(csv.reader([line]), [])]
        if not any(fields) or fields[0].startswith("#"):
            return None
        start, end = (float(field) for field in fields[:2])
        # s; the year 2096
        if -_ABSOLUTE < start < end < 4e9:
            return PostureMark(
                _ns(start, origin_ns),
                _ns(end, origin_ns),
                fields[2][:200] if len(fields) > 2 else "",
            )
        problem = ", start before end"
    except (ValueError, csv.Error):
        if number == 0 and fields and not fields[0][:1].isdigit():
            return None  # names of the columns
        problem = ""
    except IdentificationError:  # a time of the recording and a stamp
        problem = ", start before end"
    raise MarksError(
        f"line {number + 1}: expected start,end[,label] in seconds{problem}, got {quote(line)}",
        str(path),
    )


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
