"""A robot's sensors from a bag, block by block: joints, foot wrenches, direction of gravity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from com_bags.bag import Bag
from com_bags.decoding import IMU, JOINT_STATE, WRENCH
from com_bags.exceptions import TopicError
from com_bags.streams import INTERLEAVED, NS_PER_S, JointReader, Times, TopicReader, UpReader
from com_bags.topics import SensorTopics
from com_model import Foot, RobotModel
from com_model.arrays import Array
from com_model.text import listing, quote

_JUMP_RAD, _JUMP_N, _JUMP_UP = 0.01, 5.0, 0.05  # see PublisherCheck


@dataclass(frozen=True, eq=False)
class SensorBlock:
    """Readings that were recorded within one interval of time; any of them may be empty.

    Attributes:
        joint_times: (M,) ns.
        Q: (M, n) rad or m, in the order of the model's joints; NaN where not known.
        effort: (M, n) N m or N; NaN where not known.
        wrenches: For each foot (N,) ns and (N, 6) N and N m, in the sensor's frame, with its sign.
        up: (N,) ns and (N, 3) unit vectors against gravity, root axes; None without IMU.
        messages: How many messages the block has.
    """

    joint_times: Times
    Q: Array
    effort: Array
    wrenches: tuple[tuple[Times, Array], ...]
    up: tuple[Times, Array] | None
    messages: int


class SensorReader:
    """Reads a bag from start to end.

    Args:
        bag: Open.
        topics: The topics, those of the wrenches in the order of the feet.
        imu_link: The link that carries the IMU; needed where topics.imu is set.
        received: Whether times are those of recording instead of the headers' stamps.

    Attributes:
        first_ns: First stamp of the joint states; None before it.
        last_ns: Newest one.
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
        self._joint_topic = TopicReader(bag, topics.joint_states, JOINT_STATE, _JUMP_RAD, received)
        self._joints = JointReader(model, topics.joint_states)
        self._wrenches = [TopicReader(bag, t, WRENCH, _JUMP_N, received) for t in topics.wrenches]
        self._imu = TopicReader(bag, topics.imu, IMU, _JUMP_UP, received) if topics.imu else None
        self._up = UpReader(model, imu_link) if imu_link is not None else None
        self._readers = [self._joint_topic, *self._wrenches, *([self._imu] if self._imu else [])]
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

    def blocks(self, span_ns: int = NS_PER_S) -> Iterator[SensorBlock]:
        """Yields the readings within each interval of time.

        Args:
            span_ns: Length of the interval, ns.

        Raises:
            TopicError: At the end, when a joint was never named or a topic had no message that
                can be decoded; at once, when several nodes publish one topic in turn.
        """
        topics = {reader.topic: reader.type_name for reader in self._readers}
        for raw in self._bag.blocks(topics, span_ns):
            joints = self._joint_topic.read(raw[self._joint_topic.topic])
            times, Q, effort = self._joints.read(joints)
            self._joint_topic.publishers.add_values(Q)
            if len(times):
                self.first_ns = int(times[0]) if self.first_ns is None else self.first_ns
                self.last_ns = max(self.last_ns or int(times[0]), int(times.max()))
            wrenches = []
            for reader in self._wrenches:
                block = reader.read(raw[reader.topic])
                W = block.values("wrench") if block.batches else np.zeros((0, 6))
                reader.publishers.add_values(W[:, :3])
                wrenches.append((block.times[block.readable], W))
            up = None
            if self._imu is not None and self._up is not None:
                up = self._up.read(self._imu.read(raw[self._imu.topic]), times, Q)
                self._imu.publishers.add_values(up[1])
            self._check_publishers()
            count = sum(len(block.payloads) for block in raw.values())
            yield SensorBlock(times, Q, effort, tuple(wrenches), up, count)
        for reader in self._readers:
            if not reader.count:
                problem = "no message of it can be decoded" + reader.errors
                raise TopicError(problem, reader.topic, "sensor")
        self._joints.check()

    def warnings(self) -> list[str]:
        """What may be wrong with the bag and its topics, in sentences; to ask after the end."""
        joints = self._joint_topic
        texts = [*self._bag.notes, *self._definition_warnings(), *joints.warnings(joints)]
        for reader, foot in zip(self._wrenches, self._feet, strict=True):
            texts += reader.warnings(joints, foot.wrench_frame, "wrench.frame")
        if self._imu is not None and self._up is not None:
            texts += self._imu.warnings(joints, self._imu_link or "", "imu.link")
            if self._up.without_orientation:
                texts.append(
                    f"{self._imu.topic}: {self._up.without_orientation} messages without "
                    "orientation; the direction of gravity is taken from their acceleration"
                )
        return texts + self._joints.warnings()

    def _definition_warnings(self) -> list[str]:
        """Topics with several publishers, and types that the bag does not define."""
        texts, used = [], self.messages
        for topic in self._bag.topics():
            if topic.name in used and topic.publishers > 1:
                texts.append(
                    f"{topic.name}: {topic.publishers} publishers; their readings may be mixed"
                )
            if topic.name in used and not topic.defined:
                texts.append(
                    f"{topic.name}: the bag has no definition of {topic.type_name}; that of all "
                    "ROS 2 distributions is used"
                )
        return texts

    def _check_publishers(self) -> None:
        """Refuses topics that several nodes published beyond doubt.

        Raises:
            TopicError: Names the topic.
        """
        fix = "Let one node publish it, and record again"
        for reader in self._readers[1:]:
            if reader.publishers.several_frames:
                frames = sorted(reader.publishers.frames.items())
                counts = listing(f"{quote(f)} ({n} messages)" for f, n in frames)
                problem = f"two nodes publish it in turn, by frame_id: {counts}. {fix}"
                raise TopicError(problem, reader.topic, "sensor")
        shared = self._joints.shared()
        if shared and self._joints.switches >= INTERLEAVED:
            problem = (
                f"two nodes publish it in turn: messages with {len(self._joints.layouts)} "
                f"different orders of names, both with {listing(shared)}. {fix}"
            )
            raise TopicError(problem, self._joint_topic.topic, "joint states")
