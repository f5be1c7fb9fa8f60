"""Motions in rosbag2 recordings (mcap or sqlite3), written and read message by message.

What is written are trajectory_msgs/JointTrajectory messages with a stamp of 0, "begin at once", so
that a bag that is played moves a robot. What is read are those, or sensor_msgs/JointState.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from com_bags import Bag, BagError, Topic
from com_control.exceptions import MotionError
from com_control.motion.csv_file import BLOCK, Rows
from com_control.motion.layout import MotionLayout
from com_control.motion.resampling import (
    Messages,
    Point,
    Sample,
    State,
    Trajectory,
    resampled,
    samples_of_states,
    samples_of_trajectories,
)
from com_model.arrays import Array
from com_model.files import whole_folder
from com_model.text import listing

TRAJECTORY, STATE = "trajectory_msgs/msg/JointTrajectory", "sensor_msgs/msg/JointState"
STORAGES = {"mcap": StoragePlugin.MCAP, "sqlite3": StoragePlugin.SQLITE3}
TOPIC = "/joint_trajectory"
_VERSION: Literal[9] = 9  # of the metadata; that of ROS 2 Jazzy
_NS_PER_S = 1_000_000_000
_POINTS = 200  # of a message


class BagMotion:
    """The motion of a topic of a bag.

    Args:
        path: Folder of the bag, or its .mcap or .db3 file.
        topic: Of JointTrajectory or JointState messages; "": the only one, a trajectory's first.

    Attributes:
        topic: From which it is read.
        messages: What was found while reading; see Messages.

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

    def rows(self, period: float, block: int = BLOCK) -> Iterator[Rows]:
        """Yields rows at whole periods (s), on straight lines between what was recorded.

        Raises:
            MotionError: The bag is damaged, or holds no motion of the layout's joints.
        """
        empty = True
        for rows in resampled(self._samples(), period, block):
            empty = False
            yield rows
        if empty:
            joints = listing(self._layout.joints, 3)
            raise MotionError(f"{self._path}: {self.topic} holds no positions of {joints}")

    def _samples(self) -> Iterator[Sample]:
        store = get_typestore(Stores.ROS2_JAZZY)
        try:
            with Bag(self._path) as bag:
                found = {t.type_name for t in bag.topics() if t.name == self.topic}
                kind = TRAJECTORY if TRAJECTORY in found else STATE
                messages = (
                    (time_ns, store.deserialize_cdr(data, kind))
                    for _, time_ns, data in bag.messages([self.topic], [kind])
                )
                if kind == STATE:
                    yield from samples_of_states(map(_state, messages), self.messages)
                else:
                    yield from samples_of_trajectories(map(_trajectory, messages), self.messages)
                if bag.notes:
                    raise MotionError(f"{self._path} is damaged: {bag.notes[0]}")
        except MotionError:
            raise
        except Exception as error:  # rosbags lets through what the bytes make of its readers
            raise MotionError(f"{self._path} is damaged: {_line(error)}") from error


def write_bag(
    path: str | os.PathLike[str],
    blocks: Iterable[Rows],
    layout: MotionLayout,
    storage: str = "mcap",
    start_ns: int = 0,
) -> int:
    """Writes a motion as a bag, whose folder appears whole or not at all.

    Args:
        path: Of the folder, which must not exist.
        storage: One of STORAGES.
        start_ns: Time of the first row, ns.

    Returns:
        Number of rows.

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
            count = _write(writer, blocks, layout, start_ns)
    except OSError as error:
        raise MotionError(f"{path} cannot be written: {error.strerror}") from error
    return count


def _write(writer: Writer, blocks: Iterable[Rows], layout: MotionLayout, start_ns: int) -> int:
    """Each message begins where the one before it ends."""
    store = get_typestore(Stores.ROS2_JAZZY)
    connection = writer.add_connection(TOPIC, TRAJECTORY, typestore=store)
    count, time = 0, 0.0
    for rows in blocks:
        driven = np.isfinite(rows.positions[0])
        names = [name for name, drives in zip(layout.joints, driven, strict=True) if drives]
        for k in range(0, len(rows.periods), _POINTS):
            after = np.cumsum(rows.periods[k : k + _POINTS])
            if not count:
                after -= after[0]
            points = np.ascontiguousarray(rows.positions[k : k + _POINTS, driven])
            message = _message(store.types, names, after, points)
            at = start_ns + round(time * _NS_PER_S)
            writer.write(connection, at, store.serialize_cdr(message, TRAJECTORY))
            time += float(after[-1])
            count += len(after)
    return count


def _message(types: Any, names: list[str], after: Array, positions: Array) -> Any:
    none = np.zeros(0)
    make_duration = types["builtin_interfaces/msg/Duration"]
    points = [
        types["trajectory_msgs/msg/JointTrajectoryPoint"](
            row, none, none, none, make_duration(*divmod(round(t * _NS_PER_S), _NS_PER_S))
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
        (p.time_from_start.sec * _NS_PER_S + p.time_from_start.nanosec, p.positions)
        for p in message.points
    ]
    return _time_ns(message, at), list(message.joint_names), points


def _time_ns(message: Any, recorded_ns: int) -> int:
    stamp = message.header.stamp
    return int(stamp.sec * _NS_PER_S + stamp.nanosec) or recorded_ns


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


def _line(error: Exception) -> str:
    return str(error).split("\n", 1)[0][:160] or type(error).__name__
