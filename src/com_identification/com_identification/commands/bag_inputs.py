"""Inputs of identify_bag: the robot's URDF, configuration and settings, and the bag's readings."""

import argparse
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from com_bags import JOINT_STATE, Bag, Block, SensorReader, SensorTopics, TopicError, TopicReader
from com_identification.capture.detector import StationaryInterval
from com_identification.capture.from_bag import marks_of_topic, read_marks, record_postures
from com_identification.capture.recorder import PostureRecorder
from com_identification.capture.slices import NS_PER_S, Mark
from com_identification.settings import IdentificationSettings
from com_model import Foot, RobotConfig, RobotModel, robots
from com_model.exceptions import ConfigError


@dataclass(frozen=True, eq=False)
class RobotInputs:
    """The robot of a recording."""

    model: RobotModel  # as its URDF has it
    config: RobotConfig | None  # its configuration, or None
    feet: tuple[Foot, ...]
    settings: IdentificationSettings
    paths: dict[str, str]  # paths as the user wrote them, by name

    @property
    def imu_link(self) -> str | None:
        """The link of the IMU, where one is used; ConfigError where it is not configured."""
        if not self.settings.fit.use_imu:
            return None
        if self.config is not None and self.config.imu_link is not None:
            return self.config.imu_link
        source = self.config.source if self.config is not None else "--config is missing"
        problem = "the IMU is to be used: say which link carries it, as imu: {link: NAME}"
        raise ConfigError(problem, source, "imu.link")

    @property
    def name(self) -> str:
        """Name of the robot."""
        return self.model.name if self.config is None else self.config.name


@dataclass(frozen=True, eq=False)
class Recording:
    """What was read of a bag."""

    reader: SensorReader  # that read it, with the numbers of messages and the warnings
    recorder: PostureRecorder
    intervals: list[StationaryInterval]  # stationary intervals, or marks, in order


def load_robot(arguments: argparse.Namespace) -> RobotInputs:
    """Reads URDF, configuration and settings; a ComModelError says how to fix them."""
    files = robots.find_robot(arguments.robot, arguments.config)
    model, config = robots.load_robot(arguments.robot, arguments.config)
    settings = IdentificationSettings()
    if arguments.settings is not None:
        settings = IdentificationSettings.from_file(arguments.settings)
        settings.check(model)
    fit = settings.fit
    fit = replace(fit, use_imu=fit.use_imu or bool(arguments.imu))
    fit = replace(fit, use_effort=fit.use_effort or arguments.effort)
    settings = replace(settings, fit=fit)
    feet = _bare_feet(arguments.wrench, model) if files.config is None else config.feet
    if not feet:
        source = "--config is missing" if files.config is None else config.source
        problem = "no feet with force sensors: say where they are, as feet: {l_sole: {...}}"
        raise ConfigError(problem, source, "feet")
    given = ("bag", "settings", "marks")
    values = {name: getattr(arguments, name) for name in given}
    values |= {"robot": files.urdf, "config": files.config}
    paths = {name: str(Path(value)) for name, value in values.items() if value}
    return RobotInputs(model, config, feet, settings, paths)


def read_bag(
    bag: Bag, robot: RobotInputs, topics: SensorTopics, marks_file: str | None, received: bool
) -> Recording:
    """Reads the whole bag with a progress bar; marks_file is a CSV file. Raises BagError."""
    marks: list[Mark] = []
    if marks_file is not None:
        marks = read_marks(Path(marks_file), _first_stamp(bag, topics.joint_states, received))
    elif topics.markers is not None:
        marks = marks_of_topic(bag, topics.joint_states, topics.markers, received)
    recorder = PostureRecorder(robot.model, robot.feet, robot.settings, marks)
    reader = SensorReader(bag, robot.model, robot.feet, topics, robot.imu_link, received)
    total = sum(topic.count for topic in bag.topics() if topic.name in topics.names)
    span = round(min(1.0, robot.settings.capture.lag / 2.0) * NS_PER_S)
    with progress_bar("reading") as progress:
        task = progress.add_task("reading", total=total)
        intervals = record_postures(
            reader, recorder, lambda count: progress.advance(task, count), span
        )
    return Recording(reader, recorder, intervals)


@contextmanager
def progress_bar(what: str) -> Iterator[Progress]:
    """A progress bar on standard error, if that is a terminal."""
    console = Console(stderr=True)
    columns = TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    shown = console.is_terminal
    bar = Progress(*columns, console=console, transient=True, disable=not shown)
    # One that is not shown is not begun: rich prints a line at its end, before version 15.
    with bar if shown else nullcontext(bar):
        yield bar


def _bare_feet(requests: list[str], model: RobotModel) -> tuple[Foot, ...]:
    """Feet without configuration: links of the URDF that --wrench names."""
    feet = []
    for request in requests:
        link, _, topic = request.partition("=")
        model.link_index(link)  # raises, and lists the links
        feet.append(Foot(link, "", np.zeros((0, 2)), 0.0, topic, link, 1))
    return tuple(feet)


def _first_stamp(bag: Bag, topic: str, received: bool) -> int:
    """Time of the first joint state."""
    reader = TopicReader(bag, topic, JOINT_STATE, received=received)
    with closing(bag.messages([topic])) as messages:
        for _, time, payload in messages:
            block = reader.read(Block([payload], [time]))
            if block.batches:
                return int(block.times[0])
    raise TopicError("no message of it can be decoded", topic, "joint states")
