"""Feeds a posture recorder from a bag and tells what the bag holds and what is odd about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from com_bags.bag import Bag
from com_bags.blocks import Block, blocks
from com_bags.cdr import IMU, JOINT_STATE, WRENCH
from com_bags.exceptions import TopicError
from com_bags.joint_stream import JointStream
from com_bags.oddities import (
    because,
    definition_notes,
    frame_notes,
    joint_notes,
    stream_notes,
    up_notes,
)
from com_bags.publishers import INTERLEAVED
from com_bags.roles import Roles
from com_bags.stream import TopicStream
from com_bags.up import UpStream
from com_identification.capture.capture import PostureRecorder
from com_identification.capture.capture_options import StillInterval
from com_model import Foot, RobotModel
from com_model.arrays import Array
from com_model.text import listing, quote

_NS = 1_000_000_000
_BLOCK_NS = _NS  # shorter than the lag that a recorder allows
_JUMP_RAD, _JUMP_N, _JUMP_UP = 0.01, 5.0, 0.05

Progress = Callable[[int], None]  # messages since the last call


@dataclass
class Feed:
    """What came out of a bag.

    Attributes:
        intervals: Still intervals, in order.
        messages: Number of messages by topic.
        first_ns: First stamp of the joint states; last_ns: newest one.
        notes: What is odd, in sentences.
    """

    intervals: list[StillInterval] = field(default_factory=list)
    messages: dict[str, int] = field(default_factory=dict)
    first_ns: int | None = None
    last_ns: int | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """Time between first and newest joint state."""
        if self.first_ns is None or self.last_ns is None:
            return 0.0
        return (self.last_ns - self.first_ns) / _NS


class BagFeeder:
    """Reads a bag from start to end.

    Args:
        bag: Open.
        model: The robot.
        feet: Its feet, as the recorder has them.
        roles: The topics.
        recorder: Is fed.
        imu_link: The link that carries the IMU; needed where roles.imu is there.
        received: Whether times are those of recording instead of the headers' stamps.
    """

    def __init__(
        self,
        bag: Bag,
        model: RobotModel,
        feet: Sequence[Foot],
        roles: Roles,
        recorder: PostureRecorder,
        imu_link: str | None = None,
        received: bool = False,
    ) -> None:
        self._bag, self._model, self._feet, self._recorder = bag, model, feet, recorder
        self._joints = JointStream(model, roles.joint_states)
        self._joint_topic = TopicStream(bag, roles.joint_states, JOINT_STATE, _JUMP_RAD, received)
        self._wrenches = [TopicStream(bag, t, WRENCH, _JUMP_N, received) for t in roles.wrenches]
        self._imu = (
            TopicStream(bag, roles.imu, IMU, _JUMP_UP, received) if roles.imu is not None else None
        )
        self._up = UpStream(model, imu_link) if imu_link is not None else None
        self._imu_link = imu_link
        self._feed = Feed()

    def run(self, progress: Progress | None = None, span_ns: int = _BLOCK_NS) -> Feed:
        """Reads everything.

        Raises:
            TopicError: A joint is never named, or several nodes write to one topic in turn.
        """
        streams = self._streams()
        topics = {stream.topic: stream.type_name for stream in streams}
        for block in blocks(self._bag, topics, span_ns):
            self._take(block)
            self._feed.intervals += self._recorder.finished()
            if progress is not None:
                progress(sum(len(part.payloads) for part in block.values()))
        self._feed.intervals += self._recorder.flush()
        for stream in streams:
            if not self._feed.messages.get(stream.topic):
                problem = "no message of it can be read" + because(stream)
                raise TopicError(problem, stream.topic, "sensor")
        self._joints.check()
        self._finish()
        return self._feed

    def _streams(self) -> list[TopicStream]:
        return [self._joint_topic, *self._wrenches, *([self._imu] if self._imu else [])]

    def _take(self, block: dict[str, Block]) -> None:
        times, Q = self._take_joints(block[self._joint_topic.topic])
        for i, stream in enumerate(self._wrenches):
            part = stream.read(block[stream.topic])
            self._count(stream, part.readable)
            if part.tables:
                W = part.values("wrench")
                stream.watch.see_values(W[:, :3])
                self._recorder.add_wrenches(i, part.times[part.readable], W)
        if self._imu is not None and self._up is not None:
            part = self._imu.read(block[self._imu.topic])
            self._count(self._imu, part.readable)
            stamps, up = self._up.read(part, times, Q)
            self._imu.watch.see_values(up)
            if len(stamps):
                self._recorder.add_up(stamps, up)
        self._check_writers()

    def _take_joints(self, block: Block) -> tuple[NDArray[np.int64], Array]:
        part = self._joint_topic.read(block)
        self._count(self._joint_topic, part.readable)
        times, Q, effort = self._joints.read(part.tables, part.count, part.times)
        if not len(times):
            return times, Q
        self._joint_topic.watch.see_values(Q)
        if self._feed.first_ns is None:
            self._feed.first_ns = int(times[0])
        self._feed.last_ns = max(self._feed.last_ns or int(times[0]), int(times.max()))
        self._recorder.add_joints(times, Q, effort)
        return times, Q

    def _count(self, stream: TopicStream, readable: NDArray[np.bool_]) -> None:
        count = self._feed.messages.get(stream.topic, 0)
        self._feed.messages[stream.topic] = count + int(np.count_nonzero(readable))

    def _check_writers(self) -> None:
        """Ends where several nodes certainly write to one topic."""
        fix = "Let one node write it, and record again"
        for stream in self._streams()[1:]:
            frames = stream.watch.frames
            if len(frames) > 1 and stream.watch.frame_switches >= INTERLEAVED:
                counts = listing(f"{quote(f)} ({n} messages)" for f, n in sorted(frames.items()))
                problem = f"two nodes write to it in turn, by frame_id: {counts}. {fix}"
                raise TopicError(problem, stream.topic, "sensor")
        shared = self._joints.shared()
        if shared and self._joints.switches >= INTERLEAVED:
            problem = (
                f"two nodes write to it in turn: messages with {len(self._joints.layouts)} "
                f"different orders of names, which share {listing(shared)}. {fix}"
            )
            raise TopicError(problem, self._joint_topic.topic, "joint states")

    def _finish(self) -> None:
        """Writes down what is odd."""
        notes, joints = self._feed.notes, self._joint_topic
        notes += self._bag.notes
        notes += definition_notes(self._bag, self._feed.messages)
        for stream in self._streams():
            notes += stream_notes(stream, joints)
        notes += joint_notes(self._joints, joints.topic)
        for stream, foot in zip(self._wrenches, self._feet, strict=True):
            notes += frame_notes(stream, foot.wrench_frame, "wrench.frame")
        if self._imu is not None and self._up is not None:
            notes += frame_notes(self._imu, self._imu_link or "", "imu.link")
            notes += up_notes(self._up, self._imu.topic)
