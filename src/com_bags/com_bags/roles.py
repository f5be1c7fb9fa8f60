"""Which topic of a bag is what: joint states, IMU, the force sensor of each foot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from com_bags.bag import Topic
from com_bags.cdr import IMU, JOINT_STATE, WRENCH
from com_bags.exceptions import TopicError
from com_model import Foot
from com_model.text import closest, listing, quote

MARKERS = ("std_msgs/msg/String", "std_msgs/msg/Bool")
_SHOWN = 60  # topics in a message


@dataclass(frozen=True)
class Wishes:
    """What the user said about topics; "" and missing feet: find them.

    Attributes:
        joint_states: Topic of the joint states.
        imu: Topic of the IMU.
        wrenches: Topic by the foot's frame.
        markers: Topic that marks postures; "": still intervals are found.
    """

    joint_states: str = ""
    imu: str = ""
    wrenches: Mapping[str, str] | None = None
    markers: str = ""


@dataclass(frozen=True)
class Roles:
    """Topics by what they are for.

    Attributes:
        joint_states: Topic of the joint states.
        wrenches: Topic of each foot's sensor, in the order of the feet.
        imu: Topic of the IMU, or None.
        markers: Topic of marks, or None.
    """

    joint_states: str
    wrenches: tuple[str, ...]
    imu: str | None = None
    markers: str | None = None

    @property
    def topics(self) -> tuple[str, ...]:
        """All of them."""
        further = (topic for topic in (self.imu, self.markers) if topic is not None)
        return (self.joint_states, *self.wrenches, *further)


def find_roles(
    topics: Sequence[Topic], feet: Sequence[Foot], wishes: Wishes, use_imu: bool, source: str
) -> Roles:
    """Finds the topics.

    Args:
        topics: Of the bag.
        feet: Of the robot.
        wishes: What the user said.
        use_imu: Whether an IMU is needed.
        source: The bag, for messages.

    Raises:
        TopicError: One is missing or of another type; lists those that there are.
    """
    finder = _Finder(topics, source)
    wrenches = dict(wishes.wrenches or {})
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
            problem = f"{names[0]} and {names[1]} are both to read {topic}: give each its own topic"
            raise TopicError(problem, source, "wrench")
    imu = finder.find(IMU, "the IMU", wishes.imu, "imu", "--imu TOPIC") if use_imu else None
    option = "--joint-states TOPIC"
    joints = finder.find(
        JOINT_STATE, "the joint states", wishes.joint_states, "joint_states", option
    )
    return Roles(joints, tuple(found), imu, finder.markers(wishes.markers))


class _Finder:
    """Looks for topics and says what there is where one is missing."""

    def __init__(self, topics: Sequence[Topic], source: str) -> None:
        self._topics = topics
        self._source = source

    def find(
        self, type_name: str, role: str, wish: str, usual: str, option: str, only: bool = True
    ) -> str:
        """Finds a topic: the one asked for, the usual name, that name in a namespace, the only."""
        fitting = [topic.name for topic in self._topics if topic.type_name == type_name]
        if wish:
            return self._asked(wish, type_name, role, fitting, option)
        name = "/" + usual.lstrip("/")
        if name in fitting:
            return name
        spaced = [topic for topic in fitting if topic.endswith(name)]
        for candidates in (spaced, fitting if only else []):
            if len(candidates) == 1:
                return candidates[0]
        raise self._missing(f"no topic {name} for {role} ({type_name})", role, fitting, option)

    def markers(self, wish: str) -> str | None:
        """Checks the topic of marks."""
        if not wish:
            return None
        fitting = [topic.name for topic in self._topics if topic.type_name in MARKERS]
        name = "/" + wish.lstrip("/")
        if name in fitting:
            return name
        problem = f"no topic {name} of {' or '.join(MARKERS)} for marks"
        raise self._missing(problem, "marks", fitting, "--marker-topic TOPIC")

    def _asked(
        self, wish: str, type_name: str, role: str, fitting: Sequence[str], option: str
    ) -> str:
        name = "/" + wish.lstrip("/")
        if name in fitting:
            return name
        types = {topic.name: topic.type_name for topic in self._topics}
        if name in types:
            problem = f"{name} is {types[name]}; for {role} expected {type_name}"
            if not next(topic.defined for topic in self._topics if topic.name == name):
                problem += ", and the bag does not hold its definition"
        else:
            meant = closest(name, sorted(types))
            problem = f"no topic {name} for {role}" + (f"; did you mean {meant}?" if meant else "")
        raise self._missing(problem, role, fitting, option)

    def _missing(self, problem: str, role: str, fitting: Sequence[str], option: str) -> TopicError:
        would = f"would fit, with {option}: {listing(fitting)}" if fitting else "none would fit"
        there = listing([f"{topic.name} ({topic.type_name})" for topic in self._topics], _SHOWN)
        return TopicError(
            f"{problem}. Of the bag's topics {would}. There are: {there or 'none'}",
            self._source,
            role,
        )
