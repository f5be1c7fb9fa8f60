"""ros2 topic."""

from __future__ import annotations

import argparse
import statistics
import time
from collections import deque
from itertools import pairwise
from typing import Any

from ros2_command.messages import fill, find_type, plain, read_values, yaml_text
from ros2_command.session import CommandError, Session, absolute


def show_topics(options: argparse.Namespace) -> None:
    """Ros2 topic list."""
    with Session() as session:
        found = session.all_of(session.topics)
    print_names(found, options.show_types)


def print_names(found: dict[str, list[str]], with_types: bool) -> None:
    """Print names, and their types in brackets."""
    for name, kinds in found.items():
        print(f"{name} [{', '.join(kinds)}]" if with_types else name)


def show_topic(options: argparse.Namespace) -> None:
    """Ros2 topic info."""
    topic = absolute(options.topic)
    with Session() as session:
        print(f"Type: {session.topic_type(topic)}")
        print(f"Publisher count: {session.node.count_publishers(topic)}")
        print(f"Subscription count: {session.node.count_subscribers(topic)}")


def show_type(options: argparse.Namespace) -> None:
    """Ros2 topic type."""
    with Session() as session:
        print(session.topic_type(absolute(options.topic)))


def echo(options: argparse.Namespace) -> None:
    """Ros2 topic echo."""
    topic = absolute(options.topic)
    received: deque[Any] = deque()
    with Session() as session:
        kind = find_type(options.type or session.topic_type(topic), "msg")
        session.until(lambda: session.node.count_publishers(topic), 1.0)
        qos = session.qos(topic)
        session.node.create_subscription(
            kind, topic, lambda msg: received.append(msg), qos
        )
        most = 10**9 if options.full_length else 128
        while True:
            session.until(lambda: received)
            value = received.popleft()
            for name in options.field.split(".") if options.field else ():
                if not hasattr(value, name):
                    raise CommandError(f"{type(value).__name__} has no field '{name}'")
                value = getattr(value, name)
            is_text = isinstance(plain(value), (str, int, float))
            print(value if is_text else yaml_text(value, most).rstrip("\n"))
            print("---", flush=True)
            if options.once:
                return


def show_rate(options: argparse.Namespace) -> None:
    """Ros2 topic hz."""
    topic = absolute(options.topic)
    arrivals: deque[float] = deque(maxlen=options.window + 1)
    with Session() as session:
        kind = find_type(session.topic_type(topic), "msg")
        session.node.create_subscription(
            kind,
            topic,
            lambda _: arrivals.append(time.monotonic()),
            session.qos(topic),
            raw=True,
        )
        last = None
        while True:
            session.wait(1.0)
            times = list(arrivals)
            if len(times) < 2 or times[-1] == last:
                if last is not None:
                    print("no new messages", flush=True)
                continue
            last = times[-1]
            gaps = [after - before for before, after in pairwise(times)]
            mean = statistics.fmean(gaps)
            print(
                f"average rate: {1.0 / mean:.3f}\n\tmin: {min(gaps):.3f}s max: {max(gaps):.3f}s "
                f"std dev: {statistics.pstdev(gaps):.5f}s window: {len(times)}",
                flush=True,
            )


def publish(options: argparse.Namespace) -> None:
    """Ros2 topic pub."""
    kind, topic = find_type(options.type, "msg"), absolute(options.topic)
    message = fill(kind(), read_values(options.values))
    times = 1 if options.once else options.times
    least = options.wait if options.wait is not None else int(times > 0)
    with Session() as session:
        publisher = session.node.create_publisher(kind, topic, 10)
        if publisher.get_subscription_count() < least:
            print(
                f"Waiting for at least {least} matching subscription(s)...", flush=True
            )
            session.until(lambda: publisher.get_subscription_count() >= least)
        print("publisher: beginning loop")
        count = 0
        while not times or count < times:
            count += 1
            print(f"publishing #{count}: {message!r}\n", flush=True)
            publisher.publish(message)
            session.wait(0.1 if count == times else 1.0 / options.rate)
