"""Messages of one topic, block by block, as tables: the quick way and the general one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rosbags.typesys.store import Typestore

from com_bags.cdr import FIELDS, JOINT_STATE, Bytes, Layout, read_layout
from com_bags.exceptions import LayoutError

_REMEMBERED = 32  # layouts of a topic
_TRIED = 8  # new layouts in one block; what is left goes message by message

Values = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Table:
    """Messages of one layout, in the order of the bag.

    Attributes:
        rows: (N,) their places in the block.
        stamps: (N,) ns, of the headers.
        frame: frame_id of the headers.
        names: k joints of a JointState.
        numbers: (N, k) by field; (N, 0) of a list that is empty.
    """

    rows: NDArray[np.int64]
    stamps: NDArray[np.int64]
    frame: str
    names: tuple[str, ...]
    numbers: Mapping[str, Values]


class TableReader:
    """Reads the messages of one topic.

    Args:
        type_name: One of cdr.FIELDS.
        store: Where the bag's own definition of the type differs: it and all that it needs.
    """

    def __init__(self, type_name: str, store: Typestore | None = None) -> None:
        self._type = type_name
        self._store = store
        self._layouts: list[Layout] = []
        self.broken: Counter[str] = Counter()

    def read(self, payloads: Sequence[bytes]) -> list[Table]:
        """Reads a block; messages that cannot be read are counted in `broken` by reason."""
        if self._store is not None:
            return self._one_by_one(payloads, self._store)
        lengths = np.fromiter(map(len, payloads), dtype=np.int64, count=len(payloads))
        tables: list[Table] = []
        for length in np.unique(lengths).tolist():
            places = np.flatnonzero(lengths == length)
            alike = (
                payloads if len(places) == len(payloads) else [payloads[i] for i in places.tolist()]
            )
            rows = np.frombuffer(b"".join(alike), dtype=np.uint8).reshape(len(places), length)
            tables += self._same_length(rows, places)
        return tables

    def _same_length(self, rows: Bytes, places: NDArray[np.int64]) -> list[Table]:
        tables: list[Table] = []
        for layout in [known for known in self._layouts if len(known.mask) == rows.shape[1]]:
            if not len(rows):
                return tables
            rows, places = self._take(layout, rows, places, tables)
        for _ in range(_TRIED):
            if not len(rows):
                return tables
            new = self._learn(rows[0])
            if new is None:
                rows, places = rows[1:], places[1:]
            else:
                rows, places = self._take(new, rows, places, tables)
        for i in range(len(rows)):
            single = self._learn(rows[i])
            if single is not None:
                self._take(single, rows[i : i + 1], places[i : i + 1], tables)
        return tables

    def _learn(self, row: Bytes) -> Layout | None:
        try:
            layout = read_layout(row.tobytes(), self._type)
        except LayoutError as error:
            self.broken[str(error)] += 1
            return None
        self._layouts = [layout, *self._layouts[: _REMEMBERED - 1]]
        return layout

    def _take(
        self, layout: Layout, rows: Bytes, places: NDArray[np.int64], tables: list[Table]
    ) -> tuple[Bytes, NDArray[np.int64]]:
        """Makes a table of the rows that fit, and gives the others."""
        fits = layout.fits(rows)
        if not fits.any():
            return rows, places
        if fits.all():
            mine, left = rows, rows[:0]
        else:
            mine, left = rows[fits], rows[~fits]
        numbers = {field: layout.values(mine, field) for field in layout.numbers}
        stamps = layout.stamps(mine)
        tables.append(Table(places[fits], stamps, layout.frame, layout.names, numbers))
        return left, places[~fits]

    def _one_by_one(self, payloads: Sequence[bytes], store: Typestore) -> list[Table]:
        tables = []
        for i, payload in enumerate(payloads):
            try:
                message = store.deserialize_cdr(payload, self._type)
                tables.append(_table(message, self._type, i))
            except Exception as error:  # whatever a foreign definition runs into
                self.broken[f"{type(error).__name__}: {error}"] += 1
        return tables


def _table(message: object, type_name: str, place: int) -> Table:
    """A table of one message that rosbags has read."""
    header = getattr(message, "header")  # noqa: B009 (types made at run time)
    stamp = header.stamp.sec * 1_000_000_000 + header.stamp.nanosec
    names = tuple(getattr(message, "name", ())) if type_name == JOINT_STATE else ()
    numbers = {field: _numbers(message, field)[None] for field in FIELDS[type_name]}
    where = np.array([place]), np.array([stamp], dtype=np.int64)
    return Table(*where, str(header.frame_id), names, numbers)


def _numbers(message: object, field: str) -> Values:
    """Flattens a field: arrays, vectors (x, y, z), quaternions, and a wrench of two vectors."""
    value = getattr(message, field)
    if field == "wrench":
        return np.concatenate((_numbers(value, "force"), _numbers(value, "torque")))
    if hasattr(value, "x"):
        parts = [value.x, value.y, value.z, *([value.w] if hasattr(value, "w") else [])]
        return np.array(parts, dtype=np.float64)
    return np.asarray(value, dtype=np.float64)
