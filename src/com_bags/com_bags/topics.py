"""Finds the topics of a bag by their role: joint states, IMU, the force sensor of each foot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from com_bags.bag import Topic
from com_bags.decoding import IMU, JOINT_STATE, WRENCH
from com_bags.exceptions import TopicError
from com_model import Foot
from com_model.text import closest, listing, quote

MARKERS = ("std_msgs/msg/String", "std_msgs/msg/Bool")
_SHOWN = 5  # topics in a message


@dataclass(frozen=True)
class TopicRequest:
    """Topics that the user names; "" and missing feet: they are found.

    Attributes:
        wrenches: Topic by the foot's frame.
        markers: Topic that marks postures; "": stationary intervals are found.
    """

    joint_states: str = ""
    imu: str = ""
    wrenches: Mapping[str, str] | None = None
    markers: str = ""


@dataclass(frozen=True)
class SensorTopics:
    """Topics by role.

    Attributes:
        wrenches: Topic of each foot's sensor, in the order of the feet.
        imu: Topic of the IMU, or None.
        markers: Topic that marks postures, or None.
    """

    joint_states: str
    wrenches: tuple[str, ...]
    imu: str | None = None
    markers: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """All of them."""
        further = (topic for topic in (self.imu, self.markers) if topic is not None)
        return (self.joint_states, *self.wrenches, *further)


def find_topics(
    topics: Sequence[Topic], feet: Sequence[Foot], request: TopicRequest, use_imu: bool, source: str
) -> SensorTopics:
    """Finds the topics.

    Raises:
        TopicError: One is missing or of another type; lists the topics of the bag.
    """
    finder = _Finder(topics, source)
    wrenches = dict(request.wrenches or {})
    for foot in wrenches:
        if foot not in (known.frame for known in feet):
            valid = listing([known.frame for known in feet])
            problem = f"--wrench: no foot {quote(foot)}; valid: {valid}"
            raise TopicError(problem, source, "wrench")
    found = [
        finder.find(
            WRENCH,
            f"the force sensor of {foot.frame}",
            wrenches.get(foot.frame, ""),
            foot.wrench_topic,
            f"--wrench {foot.frame}=TOPIC",
            only=len(feet) == 1,
        )
        for foot in feet
    ]
    for i, topic in enumerate(found):
        if topic in found[:i]:
            names = feet[found.index(topic)].frame, feet[i].frame
            problem = f"{names[0]} and {names[1]} both read {topic}: give each its own topic"
            raise TopicError(problem, source, "wrench")
    imu = finder.find(IMU, "the IMU", request.imu, "imu", "--imu TOPIC") if use_imu else None
    option = "--joint-states TOPIC"
    joints = finder.find(
        JOINT_STATE, "the joint states", request.joint_states, "joint_states", option
    )
    return SensorTopics(joints, tuple(found), imu, finder.markers(request.markers))


class _Finder:
    """Looks for topics; errors list the topics of the bag."""

    def __init__(self, topics: Sequence[Topic], source: str) -> None:
        self._topics = topics
        self._source = source

    def find(
        self, type_name: str, role: str, requested: str, usual: str, option: str, only: bool = True
    ) -> str:
        """Finds a topic: the requested, the usual name, that name in a namespace, the only one."""
        fitting = [topic.name for topic in self._topics if topic.type_name == type_name]
        if requested:
            return self._requested(requested, type_name, role, fitting, option)
        name = "/" + usual.lstrip("/")
        if name in fitting:
            return name
        spaced = [topic for topic in fitting if topic.endswith(name)]
        for candidates in (spaced, fitting if only else []):
            if len(candidates) == 1:
                return candidates[0]
        raise self._missing(f"no topic {name} for {role} ({type_name})", role, fitting, option)

    def markers(self, requested: str) -> str | None:
        """Checks the topic that marks postures."""
        if not requested:
            return None
        fitting = [topic.name for topic in self._topics if topic.type_name in MARKERS]
        name = "/" + requested.lstrip("/")
        if name in fitting:
            return name
        problem = f"no topic {name} of {' or '.join(MARKERS)} for marks"
        raise self._missing(problem, "marks", fitting, "--marker-topic TOPIC")

    def _requested(
        self, requested: str, type_name: str, role: str, fitting: Sequence[str], option: str
    ) -> str:
        name = "/" + requested.lstrip("/")
        if name in fitting:
            return name
        types = {topic.name: topic.type_name for topic in self._topics}
        if name in types:
            problem = f"{name} is {types[name]}; for {role} expected {type_name}"
            if not next(topic.defined for topic in self._topics if topic.name == name):
                problem += ", and the bag does not contain its definition"
        else:
            meant = closest(name, sorted(types))
            problem = f"no topic {name} for {role}" + (f"; did you mean {meant}?" if meant else "")
        raise self._missing(problem, role, fitting, option)

    def _missing(self, problem: str, role: str, fitting: Sequence[str], option: str) -> TopicError:
        would = f"would fit, with {option}: {listing(fitting)}" if fitting else "none would fit"
        there = listing([f"{topic.name} ({topic.type_name})" for topic in self._topics], _SHOWN)
        there += "; --list-topics shows all" if len(self._topics) > _SHOWN else ""
        return TopicError(
            f"{problem}. Of the bag's topics {would}. There are: {there or 'none'}",
            self._source,
            role,
        )
