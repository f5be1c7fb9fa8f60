"""Motions in rosbag2 recordings (mcap or sqlite3), written and read.

What is written are trajectory_msgs/JointTrajectory messages with a stamp of 0, "begin at once", so
that a bag that is played moves a robot. What is read are those, or sensor_msgs/JointState.

What cannot be used is counted. A trajectory replaces what earlier ones say from the time of its
first point on.
"""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from com_bags import Bag, BagError, Topic
from com_control.exceptions import MotionError
from com_control.motion.csv_file import MOST_ROWS
from com_control.motion.motion import Motion, MotionLayout
from com_model.arrays import Array
from com_model.files import whole_folder
from com_model.text import listing

LONGEST_GAP = 600.0  # s; beyond, a clock has jumped
_SAME = 1e-9  # s


def resampled(joints: tuple[str, ...], times: Array, positions: Array, period: float) -> Motion:
    """Rows a period apart, on straight lines between samples.

    The first row is the first sample; the last row is the last sample, up to a period later.

    Args:
        joints: k names.
        times: (N,) s, rising.
        positions: (N, k) rad; NaN where not driven.

    Raises:
        MotionError: Two samples are further apart than LONGEST_GAP, or more than MOST_ROWS rows.
    """
    gaps = np.diff(times)
    if len(gaps) and gaps.max() > LONGEST_GAP:
        k = int(np.argmax(gaps > LONGEST_GAP))
        raise MotionError(
            f"nothing for {gaps[k]:.6g} s, {times[k] - times[0]:.6g} s after the start: has a "
            "clock jumped? Cut the recording there"
        )
    rows = max(int(np.ceil((times[-1] - times[0] - _SAME) / period)), 0) + 1
    if rows > MOST_ROWS:
        raise MotionError(
            f"{times[-1] - times[0]:.6g} s have more than {MOST_ROWS} rows {period:g} s apart: "
            "cut the recording, or give a longer period"
        )
    after = np.arange(rows, dtype=np.float64) * period
    columns = [np.interp(times[0] + after, times, column) for column in positions.T]
    return Motion(joints, after, np.array(columns).T)


NS_PER_S = 1_000_000_000
Point = tuple[int, ArrayLike]  # ns from the start of its trajectory, positions, rad
Trajectory = tuple[int, Sequence[str], Sequence[Point]]  # start, ns, names of joints, points
State = tuple[int, Sequence[str], ArrayLike]  # ns, names of joints, positions, rad

_REASONS = {
    "strangers": "of none of the motion's joints",
    "others": "of other joints than the first message",
    "broken": "with a position that is missing or not finite",
    "late": "not later than the one before",
}


class Messages:
    """Positions of messages in the order of a layout; counts what cannot be used.

    Args:
        joints: k names.

    Attributes:
        times: s from the first sample, of the samples that were used.
        positions: Their positions (k,), rad; NaN where not driven.
    """

    def __init__(self, joints: Sequence[str]) -> None:
        self._index = {name: i for i, name in enumerate(joints)}
        self._driven: frozenset[str] | None = None
        self._origin_ns, self._last_ns = 0, -1
        self._dropped: Counter[str] = Counter()
        self.times: list[float] = []
        self.positions: list[Array] = []

    @property
    def notes(self) -> list[str]:
        """What was left out, in words."""
        return [
            f"{count} left out: {_REASONS[kind]}" for kind, count in sorted(self._dropped.items())
        ]

    def take(self, time_ns: int, names: Sequence[str], positions: ArrayLike) -> None:
        """Adds a sample, where it can be used.

        Raises:
            MotionError: There are more than MOST_ROWS.
        """
        values = np.asarray(positions, dtype=np.float64)
        mine = frozenset(name for name in names if name in self._index)
        problem = self._problem(time_ns, names, mine, values)
        if problem:
            self._dropped[problem] += 1
            return
        if len(self.times) == MOST_ROWS:
            raise MotionError(f"more than {MOST_ROWS} messages or points: cut the recording")
        if self._driven is None:
            self._driven, self._origin_ns = mine, time_ns
        self._last_ns = time_ns
        row: Array = np.full(len(self._index), np.nan)
        for name, value in zip(names, values.tolist(), strict=True):
            if name in self._index:
                row[self._index[name]] = value
        self.times.append((time_ns - self._origin_ns) / NS_PER_S)
        self.positions.append(row)

    def _problem(
        self, time_ns: int, names: Sequence[str], mine: frozenset[str], values: Array
    ) -> str:
        if not mine:
            return "strangers"
        if self._driven is not None and mine != self._driven:
            return "others"
        wanted = [name in mine for name in names]
        if values.shape != (len(names),) or not np.isfinite(values[wanted]).all():
            return "broken"
        return "late" if self.times and time_ns <= self._last_ns else ""


def _states(trajectories: Iterable[Trajectory]) -> Iterator[State]:
    """The points of trajectories up to the first one of the next."""
    names: Sequence[str] = ()
    pending: list[Point] = []
    for start_ns, joints, points in trajectories:
        if not points:
            continue
        first_ns = start_ns + points[0][0]
        yield from ((t, names, q) for t, q in pending if t < first_ns)
        names, pending = joints, [(start_ns + after, q) for after, q in points]
    yield from ((t, names, q) for t, q in pending)


TRAJECTORY, STATE = "trajectory_msgs/msg/JointTrajectory", "sensor_msgs/msg/JointState"
STORAGES = {"mcap": StoragePlugin.MCAP, "sqlite3": StoragePlugin.SQLITE3}
TOPIC = "/joint_trajectory"
_VERSION: Literal[9] = 9  # of the metadata; that of ROS 2 Jazzy
_POINTS = 200  # of a message


class BagMotion:
    """The motion of a topic of a bag.

    Args:
        path: Folder of the bag, or its .mcap or .db3 file.
        topic: Of JointTrajectory or JointState messages; "": the only one, a trajectory's first.

    Raises:
        MotionError: It is no bag, or the topic is not in it.
    """

    def __init__(self, path: str | os.PathLike[str], layout: MotionLayout, topic: str = "") -> None:
        self._path, self._layout = Path(path), layout
        self.messages = Messages(layout.joints)
        try:
            with Bag(self._path) as bag:
                found = [t for t in bag.topics() if t.type_name in (TRAJECTORY, STATE)]
        except BagError as error:
            raise MotionError(f"{path} cannot be read as a bag: {error.problem}") from error
        self.topic = _chosen(self._path, found, topic)

    def read(self, period: float) -> Motion:
        """Rows at whole periods (s), on straight lines between what was recorded.

        Raises:
            MotionError: The bag is damaged, holds no motion of the layout's joints, or too long a
                one.
        """
        self._take_messages()
        joints, found = self._layout.joints, self.messages
        if not found.times:
            raise MotionError(
                f"{self._path}: {self.topic} holds no positions of {listing(joints, 3)}"
            )
        return resampled(joints, np.array(found.times), np.array(found.positions), period)

    def _take_messages(self) -> None:
        store = get_typestore(Stores.ROS2_JAZZY)
        try:
            with Bag(self._path) as bag:
                found = {t.type_name for t in bag.topics() if t.name == self.topic}
                kind = TRAJECTORY if TRAJECTORY in found else STATE
                messages = (
                    (time_ns, store.deserialize_cdr(data, kind))
                    for _, time_ns, data in bag.messages([self.topic], [kind])
                )
                states: Iterator[State] = map(_state, messages)
                if kind == TRAJECTORY:
                    states = _states(map(_trajectory, messages))
                for state in states:
                    self.messages.take(*state)
                if bag.notes:
                    raise MotionError(f"{self._path} is damaged: {bag.notes[0]}")
        except MotionError:
            raise
        except Exception as error:  # rosbags lets through what the bytes make of its readers
            reason = str(error).split("\n", 1)[0][:160] or type(error).__name__
            raise MotionError(f"{self._path} is damaged: {reason}") from error


def write_bag(path: str | os.PathLike[str], motion: Motion, storage: str = "mcap") -> None:
    """Writes a motion as a bag from time 0 on, whose folder appears whole or not at all.

    Raises:
        MotionError: The folder exists or cannot be written, or the storage is none.
    """
    if storage not in STORAGES:
        raise MotionError(f"storage: expected one of {', '.join(STORAGES)}, got {storage!r}")
    target = Path(path)
    if target.exists():
        raise MotionError(f"{path} exists already: give another path, or remove it")
    try:
        with (
            whole_folder(target) as part,
            Writer(part, version=_VERSION, storage_plugin=STORAGES[storage]) as writer,
        ):
            _write(writer, motion)
    except OSError as error:
        raise MotionError(f"{path} cannot be written: {error.strerror}") from error


def _write(writer: Writer, motion: Motion) -> None:
    """Each message begins where the one before it ends."""
    store = get_typestore(Stores.ROS2_JAZZY)
    connection = writer.add_connection(TOPIC, TRAJECTORY, typestore=store)
    driven = np.isin(motion.joints, motion.driven)
    for k in range(0, len(motion.times), _POINTS):
        start = motion.times[max(k - 1, 0)]
        points = np.ascontiguousarray(motion.positions[k : k + _POINTS, driven])
        after = motion.times[k : k + _POINTS] - start
        message = _message(store.types, list(motion.driven), after, points)
        at = round(float(start) * NS_PER_S)
        writer.write(connection, at, store.serialize_cdr(message, TRAJECTORY))


def _message(types: Any, names: list[str], after: Array, positions: Array) -> Any:
    none = np.zeros(0)
    make_duration = types["builtin_interfaces/msg/Duration"]
    points = [
        types["trajectory_msgs/msg/JointTrajectoryPoint"](
            row, none, none, none, make_duration(*divmod(round(t * NS_PER_S), NS_PER_S))
        )
        for t, row in zip(after.tolist(), positions, strict=True)
    ]
    stamp = types["builtin_interfaces/msg/Time"](0, 0)
    header = types["std_msgs/msg/Header"](stamp, "")
    return types[TRAJECTORY](header, names, points)


def _state(item: tuple[int, Any]) -> State:
    at, message = item
    return _time_ns(message, at), list(message.name), message.position


def _trajectory(item: tuple[int, Any]) -> Trajectory:
    at, message = item
    points: list[Point] = [
        (p.time_from_start.sec * NS_PER_S + p.time_from_start.nanosec, p.positions)
        for p in message.points
    ]
    return _time_ns(message, at), list(message.joint_names), points


def _time_ns(message: Any, recorded_ns: int) -> int:
    stamp = message.header.stamp
    return int(stamp.sec * NS_PER_S + stamp.nanosec) or recorded_ns


def _chosen(path: Path, found: list[Topic], topic: str) -> str:
    """The topic to read."""
    kinds = {item.name: item.type_name for item in found}
    if topic:
        if topic not in kinds:
            there = listing(sorted(kinds)) or "none"
            raise MotionError(
                f"{path} has no topic {topic!r} of JointTrajectory or JointState; there: {there}"
            )
        return topic
    for kind in (TRAJECTORY, STATE):
        topics = sorted(name for name, of in kinds.items() if of == kind)
        if len(topics) == 1:
            return topics[0]
        if topics:
            raise MotionError(f"{path} has several motions, say which: {listing(topics)}")
    raise MotionError(f"{path} has no topic of JointTrajectory or JointState messages")
