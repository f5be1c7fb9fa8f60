"""Warnings about the topics of a recording, in sentences."""

from __future__ import annotations

from collections.abc import Collection

from com_bags.bag import Bag
from com_bags.streams import JointReader, TopicReader
from com_model.text import listing, quote

_NS = 1_000_000_000
_MAX_CLOCK_DIFFERENCE_NS = _NS  # between the delays from stamp to recording of two topics


def decoding_errors(reader: TopicReader) -> str:
    """Why messages could not be decoded, in brackets; empty where all could."""
    return f" ({listing(sorted(reader.errors), 3)})" if reader.errors else ""


def definition_warnings(bag: Bag, topics: Collection[str]) -> list[str]:
    """Topics with several publishers, and types that the bag does not define."""
    texts = []
    for topic in bag.topics():
        if topic.name not in topics:
            continue
        if topic.publishers > 1:
            texts.append(
                f"{topic.name}: {topic.publishers} publishers; their readings may be mixed"
            )
        if not topic.defined:
            texts.append(
                f"{topic.name}: the bag has no definition of {topic.type_name}; that of all ROS 2 "
                "distributions is used"
            )
    return texts


def topic_warnings(reader: TopicReader, joints: TopicReader) -> list[str]:
    """Messages that cannot be decoded or have no stamp, several publishers, different clocks.

    Args:
        reader: Of any topic.
        joints: Of the joint states, with whose clock the others are compared.
    """
    texts, topic = [], reader.topic
    if reader.errors:
        count = sum(reader.errors.values())
        texts.append(f"{topic}: {count} messages cannot be decoded{decoding_errors(reader)}")
    if reader.unstamped:
        texts.append(
            f"{topic}: {reader.unstamped} messages without stamp; the time of their recording is "
            "used"
        )
    texts += [f"{topic}: it seems to have two publishers: {s}" for s in reader.publishers.signs()]
    delay, own = reader.delay_ns, joints.delay_ns
    if delay is not None and own is not None and abs(delay - own) > _MAX_CLOCK_DIFFERENCE_NS:
        texts.append(
            f"{topic}: its stamps are {(own - delay) / _NS:.3g} s ahead of those of "
            f"{joints.topic}: the clocks differ. Try --time received"
        )
    return texts


def joint_warnings(joints: JointReader, topic: str) -> list[str]:
    """Messages without positions, names that change, unknown joints."""
    texts = []
    if joints.incomplete:
        texts.append(f"{topic}: {joints.incomplete} messages without a position for each name")
    if len(joints.layouts) > 1:
        what = "in another order" if joints.shared() else "of different joints"
        texts.append(
            f"{topic}: names change {joints.switches} times ({len(joints.layouts)} lists of "
            f"names, {what}); joints are matched by name"
        )
    if joints.foreign:
        names = listing(sorted(joints.foreign))
        texts.append(f"{topic}: joints that are not moving joints of the robot: {names}")
    return texts


def frame_warnings(reader: TopicReader, frame: str, key: str) -> list[str]:
    """Frames of messages that differ from the configuration's.

    Args:
        reader: Of the topic.
        frame: The frame in whose axes its readings are taken.
        key: Of the configuration, that sets it.
    """
    return [
        f"{reader.topic}: frame_id is {quote(other)}, but readings are taken in the axes of "
        f"{frame}, as the configuration says ({key})"
        for other in sorted(reader.publishers.frames)
        if other and other != frame
    ]
