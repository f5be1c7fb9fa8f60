"""One topic of sensor messages: from bytes to times and tables, with what is odd about it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from com_bags.bag import Bag
from com_bags.blocks import Block
from com_bags.definitions import foreign_store
from com_bags.publishers import StreamWatch
from com_bags.tables import Table, TableReader

Times = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Part:
    """A block of one topic.

    Attributes:
        tables: Messages that could be read.
        count: Of the block.
        times: (count,) ns; 0 for a message that could not be read.
    """

    tables: list[Table]
    count: int
    times: Times

    @property
    def readable(self) -> NDArray[np.bool_]:
        """Which messages could be read."""
        mask = np.zeros(self.count, dtype=np.bool_)
        for table in self.tables:
            mask[table.rows] = True
        return mask

    def values(self, field: str) -> NDArray[np.float64]:
        """One field of all readable messages, (M, k), in the order of the bag."""
        width = self.tables[0].numbers[field].shape[1] if self.tables else 0
        values = np.full((self.count, width), np.nan)
        for table in self.tables:
            values[table.rows] = table.numbers[field]
        return values[self.readable]


class TopicStream:
    """Reads the blocks of one topic.

    Args:
        bag: Open.
        topic: Name.
        type_name: One of cdr.FIELDS.
        least: How far values jump to and fro that are two nodes'; see StreamWatch.
        received: Whether times are those of recording instead of the headers' stamps.
    """

    def __init__(
        self, bag: Bag, topic: str, type_name: str, least: float, received: bool = False
    ) -> None:
        mine = [
            item for item in bag.connections if (item.topic, item.msgtype) == (topic, type_name)
        ]
        self.topic, self.type_name = topic, type_name
        self.watch = StreamWatch(topic, least)
        self.unstamped = 0
        self.delay_ns: int | None = None  # received - stamp, of the first message
        self._received = received
        self._tables = TableReader(type_name, foreign_store(mine[0]) if mine else None)

    @property
    def broken(self) -> dict[str, int]:
        """Messages that cannot be read, by reason."""
        return dict(self._tables.broken)

    def read(self, block: Block) -> Part:
        """Reads a block."""
        tables = self._tables.read(block.payloads) if block.payloads else []
        received = np.array(block.received, dtype=np.int64)
        times = np.zeros(len(received), dtype=np.int64)
        for table in tables:
            stamps = table.stamps
            if not self._received and self.delay_ns is None and stamps[0]:
                self.delay_ns = int(received[table.rows[0]] - stamps[0])
            unset = stamps == 0
            self.unstamped += int(np.count_nonzero(unset))
            times[table.rows] = received[table.rows] if self._received else stamps
            times[table.rows[unset]] = received[table.rows[unset]]
        part = Part(tables, len(received), times)
        self._note(part)
        return part

    def _note(self, part: Part) -> None:
        self.watch.see_times(part.times[part.readable])
        if len(part.tables) == 1:
            self.watch.see_frames([part.tables[0].frame])
        elif part.tables:
            frames = np.zeros(part.count, dtype=np.int64)
            for k, table in enumerate(part.tables):
                frames[table.rows] = k
            order = frames[part.readable]
            runs = order[np.flatnonzero(np.diff(order, prepend=-1))]
            self.watch.see_frames([part.tables[k].frame for k in runs])
        for table in part.tables:
            self.watch.frames[table.frame] += len(table.rows)
