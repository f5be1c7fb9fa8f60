"""ros2 bag: the files are read and written by rosbags."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from ament_index_python.packages import get_package_share_directory
from rclpy.qos import DurabilityPolicy, QoSProfile
from rosbags.interfaces import (
    Qos,
    QosDurability,
    QosHistory,
    QosLiveliness,
    QosReliability,
    QosTime,
)
from rosbags.rosbag2 import Reader, ReaderError, StoragePlugin, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from rosgraph_msgs.msg import Clock

from ros2_command.messages import find_type
from ros2_command.session import CommandError, Session, absolute

STORAGE = {"mcap": StoragePlugin.MCAP, "sqlite3": StoragePlugin.SQLITE3}


def record(options: argparse.Namespace) -> None:
    """Ros2 bag record; Ctrl-C ends it."""
    wanted = {absolute(topic) for topic in options.words + (options.topics or [])}
    if bool(wanted) == options.all:
        raise CommandError("give topics, or --all")
    path = options.output or datetime.now().strftime("rosbag2_%Y_%m_%d-%H_%M_%S")
    if Path(path).exists():
        raise CommandError(f"Output folder '{path}' already exists.")
    recorded: set[str] = set()
    with Session() as session, _Recording(path, options.storage) as recording:
        print(f"Recording to {path}. Press CTRL-C to stop.", flush=True)
        while True:
            for topic, kinds in session.topics().items():
                known = (
                    topic not in recorded and session.node.count_publishers(topic) > 0
                )
                if known and (options.all or topic in wanted):
                    recorded.add(topic)
                    qos = session.qos(topic, 1000)
                    write = recording.writer(topic, kinds[0], qos)
                    kind = find_type(kinds[0], "msg")
                    session.node.create_subscription(kind, topic, write, qos, raw=True)
                    print(f"Subscribed to topic '{topic}'", flush=True)
            session.wait(0.2)


class _Recording:
    """A bag that is written."""

    def __init__(self, path: str, storage: str) -> None:
        self._bag = Writer(path, version=9, storage_plugin=STORAGE[storage])
        self._store = get_typestore(Stores.ROS2_JAZZY)

    def __enter__(self) -> _Recording:
        self._bag.open()
        return self

    def __exit__(self, *_: object) -> None:
        self._bag.close()

    def writer(self, topic: str, kind: str, qos: QoSProfile) -> Any:
        """write(serialized message) of a topic."""
        self._learn(kind)
        local = qos.durability == DurabilityPolicy.TRANSIENT_LOCAL
        never = QosTime(0, 0)
        offered = Qos(
            QosHistory.KEEP_LAST,
            qos.depth,
            QosReliability(int(qos.reliability)),
            QosDurability.TRANSIENT_LOCAL if local else QosDurability.VOLATILE,
            never,
            never,
            QosLiveliness.AUTOMATIC,
            never,
            False,
        )
        add = self._bag.add_connection
        connection = add(
            topic, kind, typestore=self._store, offered_qos_profiles=[offered]
        )
        return lambda data: self._bag.write(connection, time.time_ns(), data)

    def _learn(self, kind: str) -> None:
        """Register a type, and those that it is made of, from their installed definitions."""
        if kind in self._store.fielddefs:
            return
        package, _, name = kind.partition("/msg/")
        file = Path(get_package_share_directory(package), "msg", f"{name}.msg")
        self._store.register(get_types_from_msg(file.read_text(), kind))
        for part in find_type(kind, "msg").get_fields_and_field_types().values():
            if "/" in part:
                inner = (
                    part.removeprefix("sequence<")
                    .partition("[")[0]
                    .partition(",")[0]
                    .rstrip(">")
                )
                self._learn(inner.replace("/", "/msg/"))


def play(options: argparse.Namespace) -> None:
    """Ros2 bag play."""
    with _opened(options.bag) as bag, Session() as session:
        topics = {absolute(topic) for topic in options.topics or []}
        chosen = [
            item for item in bag.connections if not topics or item.topic in topics
        ]
        publishers = {item.id: _publisher(session, item) for item in chosen}
        clock = (
            session.node.create_publisher(Clock, "/clock", 10)
            if options.clock
            else None
        )
        for _ in range(4):  # so that who listens is found, also on a busy machine
            session.wait(1.0)
            if any(
                publisher.get_subscription_count() for publisher in publishers.values()
            ):
                break
        while True:
            begin, ticked = time.monotonic(), 0.0
            for item, stamp, data in bag.messages(chosen):
                passed = (stamp - bag.start_time) / 1e9
                while (left := begin + passed / options.rate - time.monotonic()) > 0.0:
                    session.wait(min(left, 0.02))
                if clock and (passed >= ticked or not ticked):
                    ticked = passed + 1.0 / options.clock
                    message = Clock()
                    message.clock.sec, message.clock.nanosec = divmod(stamp, 10**9)
                    clock.publish(message)
                publishers[item.id].publish(bytes(data))
            if not options.loop:
                break
        session.wait(0.2)


def _publisher(session: Session, connection: Any) -> Any:
    qos = QoSProfile(depth=100)
    local = QosDurability.TRANSIENT_LOCAL
    if any(offer.durability == local for offer in connection.ext.offered_qos_profiles):
        qos.durability = DurabilityPolicy.TRANSIENT_LOCAL
    kind = find_type(connection.msgtype, "msg")
    return session.node.create_publisher(kind, connection.topic, qos)


def show(options: argparse.Namespace) -> None:
    """Ros2 bag info."""
    with _opened(options.bag) as bag:
        path = Path(options.bag)
        files = sorted(
            file for file in path.iterdir() if file.suffix in (".mcap", ".db3")
        )
        size = sum(file.stat().st_size for file in files)
        print(f"\nFiles:             {', '.join(file.name for file in files)}")
        print(f"Bag size:          {size / 1024:.1f} KiB")
        print(
            f"Storage id:        {'mcap' if files[0].suffix == '.mcap' else 'sqlite3'}"
        )
        print(f"Duration:          {max(bag.duration, 0) / 1e9:.9f}s")
        for name, at in (("Start", bag.start_time), ("End", bag.end_time)):
            moment = datetime.fromtimestamp(at / 1e9).strftime("%b %e %Y %H:%M:%S.%f")
            print(f"{name + ':':19}{moment} ({at / 1e9:.9f})")
        print(f"Messages:          {bag.message_count}")
        for n, item in enumerate(bag.connections):
            print(
                f"{'' if n else 'Topic information:':19}Topic: {item.topic} | "
                f"Type: {item.msgtype} | Count: {item.msgcount} | Serialization Format: cdr"
            )


@contextmanager
def _opened(path: str) -> Iterator[Reader]:
    try:
        bag = Reader(path)
        bag.open()
    except (ReaderError, OSError) as error:
        raise CommandError(f"'{path}' is no bag: {error}") from error
    try:
        yield bag
    finally:
        bag.close()
