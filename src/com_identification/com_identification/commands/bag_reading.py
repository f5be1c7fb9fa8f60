"""Reading of a recording: topics, marks, still postures, with a progress bar."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from com_bags.bag import Bag
from com_bags.blocks import Block
from com_bags.cdr import JOINT_STATE
from com_bags.exceptions import MarksError, TopicError
from com_bags.roles import Roles, Wishes, find_roles
from com_bags.stream import TopicStream
from com_identification.capture.bag_feed import BagFeeder, Feed
from com_identification.capture.capture import PostureRecorder
from com_identification.capture.capture_options import NS_PER_S, Mark
from com_identification.capture.marks import find_events, marks_of_events, read_marks
from com_identification.commands.bag_robot import BagRobot


@dataclass(frozen=True)
class ReadOptions:
    """How a recording is read.

    Attributes:
        wishes: What the user said about topics.
        marks: A CSV file of marks, or None.
        received: Whether times are those of recording.
    """

    wishes: Wishes
    marks: Path | None = None
    received: bool = False


def choose_topics(bag: Bag, robot: BagRobot, options: ReadOptions) -> Roles:
    """Finds the topics; see find_roles()."""
    return find_roles(
        bag.topics(), robot.feet, options.wishes, robot.settings.fit.use_imu, str(bag.path)
    )


def find_marks(bag: Bag, roles: Roles, options: ReadOptions) -> tuple[Mark, ...]:
    """Reads the marks, if there are to be any.

    Raises:
        MarksError: They cannot be read, or there is none.
    """
    if options.marks is not None:
        spans = read_marks(options.marks, _first_stamp(bag, roles.joint_states, options.received))
    elif roles.markers is not None:
        both = bag.messages([roles.joint_states, roles.markers])
        with closing(both):
            events, end = find_events(both, roles.joint_states, roles.markers, options.received)
        spans = marks_of_events(events, end)
        if not spans:
            problem = "marks no posture. A text starts one, an empty text ends it"
            raise MarksError(problem, roles.markers)
    else:
        return ()
    return tuple(Mark(*span) for span in spans)


def read_postures(
    bag: Bag, robot: BagRobot, roles: Roles, options: ReadOptions
) -> tuple[Feed, PostureRecorder]:
    """Reads the whole bag; see BagFeeder.run()."""
    recorder = robot.settings.recorder(robot.model, robot.feet, find_marks(bag, roles, options))
    feeder = BagFeeder(
        bag, robot.model, robot.feet, roles, recorder, robot.imu_link, options.received
    )
    total = sum(topic.count for topic in bag.topics() if topic.name in roles.topics)
    span = min(1.0, robot.settings.capture.lag / 2.0)
    with progress_bar("reading") as progress:
        task = progress.add_task("reading", total=total)
        feed = feeder.run(lambda count: progress.advance(task, count), round(span * NS_PER_S))
    return feed, recorder


@contextmanager
def progress_bar(what: str) -> Iterator[Progress]:
    """A bar on standard error, if that is a terminal."""
    console = Console(stderr=True)
    columns = TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        yield bar


def _first_stamp(bag: Bag, topic: str, received: bool) -> int:
    """Time of the first joint state."""
    with closing(bag.messages([topic])) as messages:
        for _, time, payload in messages:
            stream = TopicStream(bag, topic, JOINT_STATE, 0.0, received)
            part = stream.read(Block([payload], [time]))
            if part.tables:
                return int(part.times[0])
    raise TopicError("no message of it can be read", topic, "joint states")
