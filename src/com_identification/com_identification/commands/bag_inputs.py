"""Readings of the files that identify gets: postures, and what is known of the CoM."""

import argparse
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import astuple, replace
from pathlib import Path

import numpy as np

from com_bags import (
    IMU,
    JOINT_STATE,
    WRENCH,
    Bag,
    BagError,
    Block,
    SensorReader,
    SensorTopics,
    TopicError,
    TopicReader,
    is_table,
    read_table,
)
from com_bags.channels import FIELDS
from com_bags.mapping import nested
from com_identification.capture.com_evidence import newest_message, walk_posture
from com_identification.capture.detector import StationaryInterval
from com_identification.capture.from_bag import (
    TipTests,
    marks_of_topic,
    read_marks,
    record_postures,
)
from com_identification.capture.from_table import TableReader
from com_identification.capture.recorder import PostureRecorder
from com_identification.capture.streams import NS_PER_S, DroppedReadings, PostureMark
from com_identification.commands.output import progress_bar
from com_identification.commands.robot_inputs import SLOW, RobotInputs, choose_topics
from com_identification.regression.postures import Posture
from com_identification.report.report import Recording, TopicLine
from com_model.exceptions import ConfigError
from com_model.strict_yaml import Section, read_yaml

BOTH = "rest,walk"  # of --use


def is_walk(arguments: argparse.Namespace, robot: RobotInputs) -> bool:
    """Returns whether the files are of walking.

    That is requested by --use, or they have an IMU and no force sensor.

    Args:
        arguments: of identify.
        robot: of the recordings.
    """
    if arguments.loaded or arguments.use is not None:
        return bool(arguments.loaded) or arguments.use in ("walk", BOTH, *SLOW)
    if arguments.known_com or arguments.tip_over:
        return False
    types = set().union(*(_types(path, robot) for path in arguments.files))
    return IMU in types and WRENCH not in types and not arguments.wrench


def split_files(
    arguments: argparse.Namespace, robot: RobotInputs
) -> tuple[list[str], list[str]]:
    """Returns the files with foot force sensors, and those with an IMU; a file may be both.

    Args:
        arguments: of identify.
        robot: of the recordings.

    Raises:
        BagError: there are none of one kind.
    """
    types = {path: _types(path, robot) for path in arguments.files}
    resting = [path for path, some in types.items() if WRENCH in some]
    walking = [path for path, some in types.items() if IMU in some]
    if not resting or not walking:
        missing = "an IMU, to walk" if resting else "foot force sensors, to rest"
        raise BagError(
            f"no file has {missing}: leave out --use {BOTH}", arguments.files[0]
        )
    return resting, walking


def _types(path: str, robot: RobotInputs) -> set[str]:
    """Types that a file has, or that are made of its messages or rows."""
    if is_table(path):
        return robot.log_format.table_types(path)
    with Bag(path, robot.log_format) as bag:
        return {topic.type_name for topic in bag.topics()}


def read_files(robot: RobotInputs, arguments: argparse.Namespace) -> Recording:
    """Reads bags and tables in sequence as one recording, with a progress bar.

    Postures have the names of their marks or times, of several files with the file's name.

    Args:
        robot: Of the recordings.
        arguments: Of identify.

    Raises:
        BagError: One cannot be read, or lacks a topic.
        ConfigError: The mapping of a table is missing or wrong.
    """
    recordings = [_read_file(path, robot, arguments) for path in arguments.files]
    start = recordings[0].first_ns
    topics, notes, intervals, tally = [], [], [], Counter[str]()
    for path, each in zip(arguments.files, recordings, strict=True):
        name = f"{Path(path).name}: " * (len(recordings) > 1)
        for interval in each.intervals:
            t0, t1 = (time - each.first_ns for time in (interval.t0_ns, interval.t1_ns))
            posture = interval.posture
            if posture is not None:
                label = interval.label or posture.label or f"{t0 / NS_PER_S:.2f} s"
                posture = replace(posture, label=name + label)
            interval = replace(
                interval, t0_ns=start + t0, t1_ns=start + t1, posture=posture
            )
            intervals.append(interval)
        start += round(each.seconds * NS_PER_S) + NS_PER_S
        tally.update(each.tally)
        notes += [name + note for note in each.notes]
        topics += [replace(line, role=name + line.role) for line in each.topics]
    further = walk_evidence(robot, arguments)
    intervals += [
        StationaryInterval(start, start, each, (), each.label) for each in further
    ]
    dropped = np.sum([astuple(each.dropped) for each in recordings], axis=0).tolist()
    seconds, first = sum(each.seconds for each in recordings), recordings[0].first_ns
    return Recording(
        topics, seconds, first, notes, DroppedReadings(*dropped), tally, intervals
    )


def walk_evidence(robot: RobotInputs, arguments: argparse.Namespace) -> list[Posture]:
    """Returns the posture that --use-diagnosis requests; see walk_posture.

    Args:
        robot: of the recordings.
        arguments: of identify.

    Raises:
        BagError: the bags contain no such message, or its CoM is wrong by half a metre or more.
    """
    if not arguments.use_diagnosis:
        return []
    message = newest_message([path for path in arguments.files if not is_table(path)])
    rest, sensors = robot.config.nominal_posture(robot.model), robot.settings.sensors
    posture = walk_posture(robot.model, robot.feet, rest, sensors, message)
    if posture is None:
        raise BagError(
            "the CoM is half a metre or more off, by the newest message of walking: expected "
            "less; leave out --use-diagnosis",
            arguments.files[-1],
        )
    return [posture]


def _read_file(
    path: str, robot: RobotInputs, arguments: argparse.Namespace
) -> Recording:
    if not is_table(path):
        with Bag(path, robot.log_format) as bag:
            return _read_bag(
                bag, robot, choose_topics(arguments, bag, robot), arguments
            )
    if arguments.mapping is None:
        raise ConfigError(
            "a table needs a mapping of its columns: --guess prints one",
            "--mapping is missing",
        )
    section = Section(nested(read_yaml(arguments.mapping)), arguments.mapping)
    needed = not arguments.tip_over
    reader = TableReader(
        read_table(path), section, robot.model, robot.feet, robot.imu_link, needed
    )
    marks = (
        []
        if arguments.marks is None
        else read_marks(Path(arguments.marks), reader.first_ns)
    )
    lines = [
        TopicLine("column", name, "number", n) for name, n in reader.messages.items()
    ]
    noise = robot.settings.noise
    noise = replace(noise, known_com=reader.known_com_std or noise.known_com)
    settings = replace(robot.settings, noise=noise)
    feet = robot.feet if reader.has_forces else ()
    robot = replace(robot, settings=settings, feet=feet)
    recording = _record(reader, robot, marks, max(reader.messages.values()), arguments)
    return replace(recording, topics=lines)


def _read_bag(
    bag: Bag, robot: RobotInputs, topics: SensorTopics, arguments: argparse.Namespace
) -> Recording:
    marks: list[PostureMark] = []
    received = arguments.time == "received"
    if arguments.marks is not None:
        marks = read_marks(
            Path(arguments.marks),
            _first_stamp(bag, topics.joint_states, received),
        )
    elif topics.markers is not None:
        marks = marks_of_topic(bag, topics.joint_states, topics.markers, received)
    robot = replace(robot, feet=robot.feet[: len(topics.wrenches)])
    reader = SensorReader(
        bag, robot.model, robot.feet, topics, robot.imu_link, received
    )
    total = sum(
        topic.count
        for topic in bag.topics()
        if topic.name in topics.names and topic.type_name in FIELDS
    )
    return replace(
        _record(reader, robot, marks, total, arguments),
        topics=topic_lines(bag, robot, topics, reader),
    )


def _record(
    reader: SensorReader | TableReader,
    robot: RobotInputs,
    marks: Sequence[PostureMark],
    total: int,
    arguments: argparse.Namespace,
) -> Recording:
    """Finds the postures; `total` messages will be read."""
    slow = arguments.slow_motion and not marks
    recorder = PostureRecorder(robot.model, robot.feet, robot.settings, marks, slow)
    tips = TipTests(arguments.tip_over, robot.model) if arguments.tip_over else None
    span = round(min(1.0, robot.settings.capture.lag / 2.0) * NS_PER_S)
    if isinstance(reader, TableReader) and reader.by_rows:
        intervals = reader.intervals()
    else:
        with progress_bar("reading") as progress:
            task = progress.add_task("reading", total=total)
            intervals = record_postures(
                reader,
                recorder,
                lambda count: progress.advance(task, count),
                span,
                tips,
            )
    moving, seconds = recorder.slow_motion_postures(intervals)
    intervals = sorted([*intervals, *moving], key=lambda each: each.t0_ns)
    if isinstance(reader, TableReader):
        intervals = [
            each
            if each.posture is None
            else replace(each, posture=reader.complete(each.posture))
            for each in intervals
        ]
    intervals = [_informative(each) for each in intervals]
    tally, first = {**recorder.seconds, **seconds}, reader.first_ns or 0
    return Recording(
        [], reader.seconds, first, reader.warnings(), recorder.dropped, tally, intervals
    )


def _informative(interval: StationaryInterval) -> StationaryInterval:
    """The interval; where nothing is known of the CoM in its posture, why it is not used."""
    posture = interval.posture
    if posture is None or posture.constraints or np.isfinite(posture.effort).any():
        return interval
    if len(posture.wrenches) and np.isfinite(posture.wrenches).any():
        return interval
    return replace(
        interval,
        posture=None,
        reasons=("There is neither a force nor a known CoM in it.",),
    )


def topic_lines(
    bag: Bag, robot: RobotInputs, topics: SensorTopics, reader: SensorReader | None
) -> list[TopicLine]:
    """The topics that are read, by role; without a reader with the bag's own counts.

    Args:
        bag: The recording.
        robot: Of the recording.
        topics: Those that are read.
        reader: Has counted the messages that it read; None: nothing was read.
    """
    there = {topic.name: topic for topic in bag.topics()}
    roles = {
        "joint states": topics.joint_states,
        **{
            f"wrench of {foot.frame}": topic
            for foot, topic in zip(robot.feet, topics.wrenches, strict=False)
        },
        "IMU": topics.imu,
        "marks": topics.markers,
        "known CoM": topics.known_com,
    }
    read = {} if reader is None else reader.messages
    return [
        TopicLine(role, name, there[name].type_name, read.get(name, there[name].count))
        for role, name in roles.items()
        if name is not None
    ]


def _first_stamp(bag: Bag, topic: str, received: bool) -> int:
    """Time of the first joint state."""
    reader = TopicReader(bag, topic, JOINT_STATE, np.inf, received)
    with closing(bag.messages([topic], [JOINT_STATE])) as messages:
        for _, time, payload in messages:
            block = reader.read(Block([payload], [time]))
            if block.batches:
                return int(block.times[0])
    raise TopicError("no message of it can be decoded", topic, "joint states")
