"""Messages of a bag in blocks: those of some time, sorted by topic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from com_bags.bag import Bag

MAX_BYTES = 2**25  # of a block


@dataclass
class Block:
    """Messages of one topic, in the order of the bag.

    Attributes:
        payloads: Their bytes.
        received: ns, when they were recorded.
    """

    payloads: list[bytes] = field(default_factory=list)
    received: list[int] = field(default_factory=list)


def blocks(bag: Bag, topics: Mapping[str, str], span_ns: int) -> Iterator[dict[str, Block]]:
    """Yields blocks by topic, each of all messages that were recorded within a time.

    Args:
        bag: Open.
        topics: Which are wanted, with their types.
        span_ns: How long a block is, ns.
    """
    current = {topic: Block() for topic in topics}
    start, size = None, 0
    for connection, time, payload in bag.messages(list(topics), set(topics.values())):
        if start is None:
            start = time
        elif not 0 <= time - start < span_ns or size > MAX_BYTES:
            yield current
            current = {topic: Block() for topic in topics}
            start, size = time, 0
        block = current[connection.topic]
        if not isinstance(payload, bytes):  # sqlite3 gives what type a spoilt page says
            payload = b""
        block.payloads.append(payload)
        block.received.append(time)
        size += len(payload)
    yield current
