"""A robot's sensors from a bag, block by block: joints, foot wrenches, direction of gravity."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from com_bags.bag import Bag, Block, Topic
from com_bags.channels import FIELDS, IMU, JOINT_STATE, POINT, WRENCH
from com_bags.exceptions import TopicError
from com_bags.streams import (
    INTERLEAVED,
    NS_PER_S,
    DecodedBlock,
    JointReader,
    Times,
    TopicReader,
    UpReader,
)
from com_bags.walk_log import WalkLog
from com_model import Foot, RobotModel
from com_model.arrays import Array
from com_model.text import closest, listing, quote

MARKERS = ("std_msgs/msg/String", "std_msgs/msg/Bool")


@dataclass(frozen=True)
class TopicRequest:
    """Topics that the user names; "" and missing feet: they are found.

    Attributes:
        wrenches: Topic by the foot's frame.
        markers: Topic that marks postures; "": stationary intervals are found.
        known_com: Topic of the CoM by another source; "": there is none.
    """

    joint_states: str = ""
    imu: str = ""
    wrenches: Mapping[str, str] | None = None
    markers: str = ""
    known_com: str = ""


@dataclass(frozen=True)
class SensorTopics:
    """Topics by role.

    Attributes:
        wrenches: Topic of each foot's sensor, in the order of the feet.
        imu: Topic of the IMU, or None.
        markers: Topic that marks postures, or None.
        known_com: Topic of the CoM by another source, or None.
    """

    joint_states: str
    wrenches: tuple[str, ...]
    imu: str | None = None
    markers: str | None = None
    known_com: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """All of them."""
        others = self.imu, self.markers, self.known_com
        further = (topic for topic in others if topic is not None)
        return (self.joint_states, *self.wrenches, *further)


def find_topics(
    topics: Sequence[Topic],
    feet: Sequence[Foot],
    request: TopicRequest,
    use_imu: bool,
    source: str,
) -> SensorTopics:
    """Finds the topics; a TopicError lists those of the bag.

    Where the CoM is known, a bag without force sensors will do: then there are no wrenches.

    Args:
        topics: Topics of the bag.
        feet: Feet of the robot, from its configuration; their wrench topics are the usual names.
        request: Topics that the user names.
        use_imu: Whether the direction of gravity comes from an IMU.
        source: Name of the bag, for messages.

    Returns:
        The topic of each sensor.
    """
    finder, com = _Finder(topics, source), request.known_com
    if com:
        com = finder.find(POINT, "the known CoM", com, "", "--known-com TOPIC")
        feet = feet if any(topic.type_name == WRENCH for topic in topics) else ()
    wrenches = dict(request.wrenches or {})
    for foot in wrenches:
        if foot not in (known.frame for known in feet):
            valid = listing([known.frame for known in feet])
            raise TopicError(
                f"--wrench: no foot {quote(foot)}; valid: {valid}", source, "wrench"
            )
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
            raise TopicError(
                f"{names[0]} and {names[1]} both read {topic}: give each its own topic",
                source,
                "wrench",
            )
    imu = (
        finder.find(IMU, "the IMU", request.imu, "imu", "--imu TOPIC")
        if use_imu
        else None
    )
    joints = finder.find(
        JOINT_STATE,
        "the joint states",
        request.joint_states,
        "joint_states",
        "--joint-states TOPIC",
    )
    marks = request.markers
    if marks:
        marks = finder.find(
            " or ".join(MARKERS), "marks", marks, "", "--marker-topic TOPIC"
        )
    return SensorTopics(joints, tuple(found), imu, marks or None, com or None)


class _Finder:
    """Looks for topics; errors list the topics of the bag."""

    def __init__(self, topics: Sequence[Topic], source: str) -> None:
        self._topics = topics
        self._source = source

    def find(
        self,
        type_name: str,
        role: str,
        requested: str,
        usual: str,
        option: str,
        only: bool = True,
    ) -> str:
        """Finds a topic: the requested, the usual name, that name in a namespace, the only one.

        Args:
            type_name: Type of its messages, "sensor_msgs/msg/Imu" for example.
            role: What it is for, in messages.
            requested: Name that the user gives, or "".
            usual: Name that it has as a rule.
            option: Option of the command that names it, for messages.
            only: Whether the only topic of that type will do, whatever its name.

        Returns:
            Its name.

        Raises:
            TopicError: There is none, or several.
        """
        types = type_name.split(" or ")
        fitting = [topic.name for topic in self._topics if topic.type_name in types]
        name = "/" + (requested or usual).lstrip("/")
        if name in fitting:
            return name
        if requested:
            raise self._missing(
                self._why_not(name, type_name, role), role, fitting, option
            )
        spaced = [topic for topic in fitting if topic.endswith(name)]
        for candidates in (spaced, fitting if only else []):
            if len(candidates) == 1:
                return candidates[0]
        if fastest := self._fastest_copy(fitting if only else spaced):
            return fastest
        raise self._missing(
            f"no topic {name} for {role} ({type_name})", role, fitting, option
        )

    def _fastest_copy(self, names: Sequence[str]) -> str:
        """The one of topics with the same last name that the others are slow copies of.

        Unitree's robots publish /lf/lowstate beside /lowstate. "" where they are no copies.
        """
        counts = {topic.name: topic.count for topic in self._topics}
        first, *others = sorted(names, key=lambda name: -counts[name]) or [""]
        same = len({name.rpartition("/")[2] for name in names}) == 1
        # a slow copy has less than half of the messages
        slow = all(2 * counts[name] < counts[first] for name in others)
        return first if others and same and slow else ""

    def _why_not(self, name: str, type_name: str, role: str) -> str:
        topic = next((topic for topic in self._topics if topic.name == name), None)
        if topic is None:
            meant = closest(name, sorted(topic.name for topic in self._topics))
            also = (
                f" of {type_name}"
                if type_name not in (JOINT_STATE, WRENCH, IMU)
                else ""
            )
            return (
                f"no topic {name}{also} for {role}"
                + f"; did you mean {meant}?" * bool(meant)
            )
        undefined = (
            "" if topic.defined else ", and the bag does not contain its definition"
        )
        return (
            f"{name} is {topic.type_name}; for {role} expected {type_name}{undefined}"
        )

    def _missing(
        self, problem: str, role: str, fitting: Sequence[str], option: str
    ) -> TopicError:
        would = (
            f"would fit, with {option}: {listing(fitting)}"
            if fitting
            else "none would fit"
        )
        shown = 5  # topics in the message
        there = listing(
            [f"{topic.name} ({topic.type_name})" for topic in self._topics], shown
        )
        there += "; --list-topics shows all" if len(self._topics) > shown else ""
        return TopicError(
            f"{problem}. Of the bag's topics {would}. There are: {there or 'none'}",
            self._source,
            role,
        )


@dataclass(frozen=True, eq=False)
class SensorBlock:
    """Readings that were recorded within one interval of time; any of them may be empty.

    Attributes:
        joint_times: (M,) ns.
        Q: (M, n) rad or m, in the order of the model's joints; NaN where not known.
        effort: (M, n) N m or N; NaN where not known.
        wrenches: For each foot (N,) ns and (N, 6) N and N m, in the sensor's frame, with its
            sign.
        up: (N,) ns and (N, 3) unit vectors against gravity, root axes; None without IMU.
        messages: How many messages the block has.
        imu: Its messages; None without IMU.
        known_com: CoM of the whole robot by another source: (N,) ns, a link, and (N, 3) m in its
            frame; further entries for other links.
    """

    joint_times: Times
    Q: Array
    effort: Array
    wrenches: tuple[tuple[Times, Array], ...]
    up: tuple[Times, Array] | None
    messages: int
    imu: DecodedBlock | None = None
    known_com: tuple[tuple[Times, str, Array], ...] = ()


class SensorReader:
    """Reads a bag from start to end; first_ns and last_ns are stamps of its joint states.

    Wrenches are in the order of the feet; imu_link carries the IMU, if that is read. `received`:
    times are those of recording instead of the headers' stamps.
    """

    def __init__(
        self,
        bag: Bag,
        model: RobotModel,
        feet: Sequence[Foot],
        topics: SensorTopics,
        imu_link: str | None = None,
        received: bool = False,
    ) -> None:
        self._bag, self._feet, self._imu_link = bag, feet, imu_link
        self._joint_topic = TopicReader(
            bag, topics.joint_states, JOINT_STATE, received=received
        )
        self._joints = JointReader(model, topics.joint_states)
        # N, see PublisherCheck
        self._wrenches = [
            TopicReader(bag, t, WRENCH, 5.0, received) for t in topics.wrenches
        ]
        # of a unit vector, see PublisherCheck
        self._imu = (
            TopicReader(bag, topics.imu, IMU, 0.05, received) if topics.imu else None
        )
        self._up = UpReader(model, imu_link) if imu_link is not None else None
        com = topics.known_com
        self._com = TopicReader(bag, com, POINT, received=received) if com else None
        self._model = model
        others = [reader for reader in (self._imu, self._com) if reader is not None]
        self._readers = [self._joint_topic, *self._wrenches, *others]
        self.first_ns: int | None = None
        self.last_ns: int | None = None

    @property
    def seconds(self) -> float:
        """Time between first and newest joint state."""
        if self.first_ns is None or self.last_ns is None:
            return 0.0
        return (self.last_ns - self.first_ns) / NS_PER_S

    @property
    def messages(self) -> dict[str, int]:
        """Number of decoded messages by topic."""
        return {reader.topic: reader.count for reader in self._readers}

    @property
    def without_orientation(self) -> int:
        """Number of messages of the IMU without orientation."""
        return 0 if self._up is None else self._up.without_orientation

    def blocks(self, span_ns: int = NS_PER_S) -> Iterator[SensorBlock]:
        """Yields the readings within each interval of span_ns.

        Raises TopicError: at the end when a joint was never named or no message of a topic could be
        decoded; at once, when several nodes publish one topic in turn.
        """
        keys = [reader.key for reader in self._readers]
        for raw in self._bag.blocks(keys, span_ns):
            joints = self._joint_topic.read(raw[self._joint_topic.key])
            times, Q, effort = self._joints.read(joints)
            if len(times):
                self.first_ns = (
                    int(times[0]) if self.first_ns is None else self.first_ns
                )
                self.last_ns = max(self.last_ns or int(times[0]), int(times.max()))
            wrenches = []
            for reader in self._wrenches:
                block = reader.read(raw[reader.key])
                W = block.values("wrench") if block.batches else np.zeros((0, 6))
                reader.publishers.add_values(W[:, :3])
                wrenches.append((block.times[block.readable], W))
            up = imu = None
            if self._imu is not None and self._up is not None:
                imu = self._imu.read(raw[self._imu.key])
                up = self._up.read(imu, times, Q)
                self._imu.publishers.add_values(up[1])
            self._check_publishers()
            count = sum(len(block.payloads) for block in raw.values())
            known = self._known_com(raw)
            yield SensorBlock(times, Q, effort, tuple(wrenches), up, count, imu, known)
        for reader in self._readers:
            if not reader.count:
                raise TopicError(
                    "no message of it can be decoded" + reader.errors,
                    reader.topic,
                    "sensor",
                )
        self._joints.check()

    def _known_com(
        self, raw: Mapping[tuple[str, str], Block]
    ) -> tuple[tuple[Times, str, Array], ...]:
        """Readings of the CoM by another source, by link; "" is the root."""
        if self._com is None:
            return ()
        block, model = self._com.read(raw[self._com.key]), self._model
        for batch in block.batches:
            if batch.frame and batch.frame not in model.link_names:
                raise TopicError(
                    f"its frame_id {quote(batch.frame)} is no link of the robot: "
                    f"expected one of {listing(model.link_names, 60)}",
                    self._com.topic,
                    "known CoM",
                )
        return tuple(
            (
                block.times[batch.rows],
                batch.frame or model.root_link,
                batch.numbers["point"],
            )
            for batch in block.batches
        )

    def warnings(self) -> list[str]:
        """What may be wrong with the bag and its topics, in sentences; to ask after the end."""
        joints, texts = self._joint_topic, list(self._bag.notes)
        for topic in self._bag.topics():
            if topic.name in self.messages and topic.publishers > 1:
                texts.append(
                    f"{topic.name}: {topic.publishers} publishers; their readings may be mixed"
                )
            if topic.name in self.messages and not topic.defined:
                known = "that of all ROS 2 distributions"
                known = known if topic.type_name in FIELDS else "the one known here"
                texts.append(
                    f"{topic.name}: the bag has no definition of {topic.type_name}; {known} is used"
                )
        texts += joints.warnings(joints)
        for reader, foot in zip(self._wrenches, self._feet, strict=True):
            texts += reader.warnings(joints, [foot.wrench_frame], "wrench.frame")
        if self._imu is not None and self._up is not None:
            links = _links_with_axes_of(self._model, self._imu_link or "")
            texts += self._imu.warnings(joints, links, "imu.link")
            if self.without_orientation:
                texts.append(
                    f"{self._imu.topic}: {self.without_orientation} messages without "
                    "orientation; the direction of gravity is taken from their acceleration"
                )
        return texts + self._joints.warnings()

    def _check_publishers(self) -> None:
        """Refuses, by a TopicError, topics that several nodes published beyond doubt."""
        fix = "Let one node publish it, and record again"
        for reader in self._readers[1:]:
            if reader.publishers.several_frames:
                frames = sorted(reader.publishers.frames.counts.items())
                counts = listing(f"{quote(f)} ({n} messages)" for f, n in frames)
                raise TopicError(
                    f"two nodes publish it in turn, by frame_id: {counts}. {fix}",
                    reader.topic,
                    "sensor",
                )
        shared, conflict = self._joints.shared(), self._joints.conflict
        if shared and conflict and self._joints.layouts.switches >= INTERLEAVED:
            raise TopicError(
                f"two nodes publish it in turn: messages with {len(self._joints.layouts.counts)} "
                f"different orders of names, both with {listing(shared)}: {conflict}. {fix}",
                self._joint_topic.topic,
                "joint states",
            )


def _links_with_axes_of(model: RobotModel, link: str) -> list[str]:
    """Links that always have the axes of a link, that one first."""
    bodies, own = model.bodies, model.link_index(link)
    R = bodies.R_body_link[own]
    return [link] + [
        name
        for k, name in enumerate(model.link_names)
        if bodies.body_of_link[k] == bodies.body_of_link[own]
        and np.allclose(bodies.R_body_link[k], R, atol=1e-3)
    ]


def read_walk(reader: SensorReader) -> WalkLog:
    """Reads a bag with its IMU, whose readings are interpolated to the joint states' stamps.

    Velocities are left unknown. Joint states without a reading of the IMU within 30 ms are left
    out. Without an IMU its readings are NaN. Raises BagError where it cannot be read, or a topic
    has nothing.
    """
    blocks = list(reader.blocks())
    names = ("joint_times", "Q", "effort")
    times, Q, effort = (
        np.concatenate([getattr(b, name) for b in blocks]) for name in names
    )
    fields = "angular_velocity", "linear_acceleration"
    if all(b.imu is None for b in blocks):
        unknown = np.full((len(times), 3), np.nan)
        return WalkLog(1e-9 * (times - times[0]), Q, None, effort, unknown, unknown)
    pairs = [
        (b.imu, *b.up) for b in blocks if b.imu is not None and b.up and b.imu.batches
    ]
    parts = [
        (stamps, *(imu.values(f) for f in fields), up) for imu, stamps, up in pairs
    ]
    stamps, *readings = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.argsort(stamps, kind="stable")
    own, since = (1e-9 * (stamp - times[0]) for stamp in (times, stamps[order]))
    after = np.searchsorted(since, own, side="right")
    gaps = np.array(
        [own - since[after - 1], since[np.minimum(after, len(since) - 1)] - own]
    )
    used = (after > 0) & (np.abs(gaps).min(axis=0) <= 0.03) & (own <= since[-1])
    at = own[used]
    columns = (
        [np.interp(at, since, v) for v in values[order].T] for values in readings
    )
    gyro, force, up = map(np.column_stack, columns)
    return WalkLog(
        own[used],
        Q[used],
        None,
        effort[used],
        gyro,
        force,
        None if reader.without_orientation else up,
    )
