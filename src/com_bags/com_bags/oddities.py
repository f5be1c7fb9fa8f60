"""What is odd about the topics of a recording, in sentences."""

from __future__ import annotations

from collections.abc import Collection

from com_bags.bag import Bag
from com_bags.joint_stream import JointStream
from com_bags.stream import TopicStream
from com_bags.up import UpStream
from com_model.text import listing, quote

_NS = 1_000_000_000
_CLOCKS_NS = _NS  # delays between stamp and recording that differ by more are two clocks


def because(stream: TopicStream) -> str:
    """Why messages could not be read, in brackets; empty where all could."""
    return f" ({listing(sorted(stream.broken), 3)})" if stream.broken else ""


def definition_notes(bag: Bag, topics: Collection[str]) -> list[str]:
    """Topics with several writers, and types that the bag does not define."""
    notes = []
    for topic in bag.topics():
        if topic.name not in topics:
            continue
        if topic.writers > 1:
            notes.append(f"{topic.name}: {topic.writers} writers; readings may be mixed up")
        if not topic.defined:
            notes.append(
                f"{topic.name}: the bag has no definition of {topic.type_name}; taken as all "
                "ROS 2 distributions have it"
            )
    return notes


def stream_notes(stream: TopicStream, joints: TopicStream) -> list[str]:
    """Messages that cannot be read or have no stamp, several writers, clocks that differ.

    Args:
        stream: Any topic.
        joints: That of the joint states, whose clock the others are compared with.
    """
    notes, topic = [], stream.topic
    if stream.broken:
        count = sum(stream.broken.values())
        notes.append(f"{topic}: {count} messages cannot be read{because(stream)}")
    if stream.unstamped:
        notes.append(
            f"{topic}: {stream.unstamped} messages without stamp; the time at which they were "
            "recorded is taken"
        )
    notes += [f"{topic}: two nodes seem to write to it: {sign}" for sign in stream.watch.signs()]
    delay, own = stream.delay_ns, joints.delay_ns
    if delay is not None and own is not None and abs(delay - own) > _CLOCKS_NS:
        notes.append(
            f"{topic}: its stamps are {(own - delay) / _NS:.3g} s ahead of those of "
            f"{joints.topic}: the clocks differ. Try --time received"
        )
    return notes


def joint_notes(joints: JointStream, topic: str) -> list[str]:
    """Messages without positions, names that change, joints of nobody's."""
    notes = []
    if joints.crippled:
        notes.append(f"{topic}: {joints.crippled} messages without a position for each name")
    if len(joints.layouts) > 1:
        what = "another order" if joints.shared() else "different joints each"
        notes.append(
            f"{topic}: names change {joints.switches} times ({len(joints.layouts)} kinds of "
            f"messages, with {what}); joints are matched by name"
        )
    if joints.foreign:
        names = listing(sorted(joints.foreign))
        notes.append(f"{topic}: joints that are not the robot's moving ones: {names}")
    return notes


def frame_notes(stream: TopicStream, frame: str, key: str) -> list[str]:
    """Frames of messages that are others than the configuration's.

    Args:
        stream: A topic.
        frame: In whose axes its readings are taken.
        key: Of the configuration, that says so.
    """
    return [
        f"{stream.topic}: frame_id is {quote(other)}, but readings are taken in the axes of "
        f"{frame} as the configuration says ({key})"
        for other in sorted(stream.watch.frames)
        if other and other != frame
    ]


def up_notes(up: UpStream, topic: str) -> list[str]:
    """Messages of an IMU that do not tell its orientation."""
    if not up.without_orientation:
        return []
    return [
        f"{topic}: {up.without_orientation} messages without orientation; their acceleration tells "
        "where up is"
    ]
