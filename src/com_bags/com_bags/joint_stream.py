"""JointState messages to arrays in the order of a model's joints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from com_bags.exceptions import TopicError
from com_bags.tables import Table
from com_model import RobotModel
from com_model.arrays import Array
from com_model.text import listing

Times = NDArray[np.int64]
_HOLD_NS = 100_000_000  # how long a joint's value counts that another message brought


class JointStream:
    """Sorts joints by name, and joins messages that hold different joints each.

    Args:
        model: The robot.
        topic: For messages.

    Attributes:
        seen: (n,) which joints have been named.
        crippled: Messages that have not one position for each name.
        foreign: Names that are none of the model's.
        layouts: Messages by the names that they hold, in their order.
        switches: How often the names changed from one message to the next.
    """

    def __init__(self, model: RobotModel, topic: str) -> None:
        self._model = model
        self._topic = topic
        self._last = np.full((3, model.n_joints), np.nan)  # position, effort, stamp of each
        self.seen = np.zeros(model.n_joints, dtype=np.bool_)
        self.with_effort = np.zeros(model.n_joints, dtype=np.bool_)
        self.crippled = 0
        self.foreign: set[str] = set()
        self.layouts: Counter[tuple[str, ...]] = Counter()
        self.switches = 0
        self._latest: tuple[str, ...] | None = None

    def read(self, tables: Sequence[Table], count: int, times: Times) -> tuple[Times, Array, Array]:
        """Reads a block.

        Args:
            tables: Of its messages.
            count: Number of its messages, N.
            times: (N,) ns.

        Returns:
            (M,) ns, (M, n) positions, (M, n) efforts: messages that name a joint of the model. NaN
            where a joint is not known then.
        """
        n = self._model.n_joints
        Q, effort = np.full((count, n), np.nan), np.full((count, n), np.nan)
        used = np.zeros(count, dtype=np.bool_)
        for table in tables:
            columns, places = self._columns(table.names)
            position, torque = table.numbers["position"], table.numbers["effort"]
            if position.shape[1] != len(table.names):
                self.crippled += len(table.rows)
                continue
            if not len(columns):
                continue
            used[table.rows] = True
            Q[table.rows[:, None], columns] = position[:, places]
            if torque.shape[1] == len(table.names):
                effort[table.rows[:, None], columns] = torque[:, places]
                self.with_effort[columns] = True
        self._note(tables, used)
        times, Q, effort = times[used], Q[used], effort[used]
        if len(times):
            known = np.isfinite(Q)
            if len(self.layouts) > 1:
                self._fill(known, times, Q, effort)
            self._remember(known, times, Q, effort)
        return times, Q, effort

    def check(self) -> None:
        """Checks, at the end, that every joint was named.

        Raises:
            TopicError: One never was.
        """
        missing = [self._model.joint_names[i] for i in np.flatnonzero(~self.seen)]
        if missing:
            names = sorted({name for layout in self.layouts for name in layout})
            raise TopicError(
                f"no message has {len(missing)} of the URDF's {len(self.seen)} joints: "
                f"{listing(missing)}. There are: {listing(names, 60) or 'none'}. Record all "
                "joints, or make those that do not move fixed in the URDF",
                self._topic,
                "joint states",
            )

    def shared(self) -> list[str]:
        """Joints that messages of different layouts name."""
        known = set(self._model.joint_names)
        named = [known.intersection(layout) for layout in self.layouts]
        pairs = [(names, other) for i, names in enumerate(named) for other in named[:i]]
        return sorted({name for names, other in pairs for name in names & other})

    def _columns(self, names: tuple[str, ...]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Joints of the model, and where they are in a message."""
        index = {name: i for i, name in enumerate(self._model.joint_names)}
        pairs = {index[name]: i for i, name in enumerate(names) if name in index}
        self.foreign.update(name for name in names if name not in index)
        columns = np.array(list(pairs), dtype=np.int64)
        self.seen[columns] = True
        return columns, np.array(list(pairs.values()), dtype=np.int64)

    def _note(self, tables: Sequence[Table], used: NDArray[np.bool_]) -> None:
        """Counts names and how often they change."""
        numbers = np.full(len(used), -1, dtype=np.int64)
        for k, table in enumerate(tables):
            self.layouts[table.names] += len(table.rows)
            numbers[table.rows] = k
        order = numbers[used & (numbers >= 0)]
        if not len(order):
            return
        self.switches += int(np.count_nonzero(np.diff(order)))
        if self._latest is not None and tables[order[0]].names != self._latest:
            self.switches += 1
        self._latest = tables[order[-1]].names

    def _fill(self, known: NDArray[np.bool_], times: Times, Q: Array, effort: Array) -> None:
        """Holds each joint's value for a moment, for messages without it."""
        for k in np.flatnonzero(~known.all(axis=0)):
            mine = known[:, k]
            place = np.maximum.accumulate(np.where(mine, np.arange(len(Q)), -1))
            since = np.where(place < 0, self._last[2, k], times[place])
            held = ~mine & (times - since <= _HOLD_NS) & (times >= since)
            for column, before in ((Q[:, k], 0), (effort[:, k], 1)):
                value = np.where(place < 0, self._last[before, k], column[place])
                column[held] = value[held]

    def _remember(self, known: NDArray[np.bool_], times: Times, Q: Array, effort: Array) -> None:
        """Keeps the newest value of each joint that a message of the block has."""
        there = np.flatnonzero(known.any(axis=0))
        rows = len(Q) - 1 - np.argmax(known[::-1, there], axis=0)
        self._last[:, there] = Q[rows, there], effort[rows, there], times[rows]
