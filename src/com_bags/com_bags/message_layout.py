"""Numbers of messages of any type, taken from their bytes (CDR) by the paths of their fields.

Where a field is follows from the type's definition and the lengths of the strings and lists before
it. Messages that agree in all lengths have their fields in the same places, so that numpy slices
many at a time: messages of 500 Hz cost 1 us each, objects of rosbags 200 us.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from rosbags.interfaces import Nodetype

from com_bags.exceptions import DefinitionError
from com_model.arrays import Array, Indices
from com_model.text import closest

Types = Mapping[str, Any]
"""Definitions of message types by name, as rosbags has them."""

_CODES = {
    "bool": "u1",
    "byte": "u1",
    "octet": "u1",
    "char": "u1",
    "int8": "i1",
    "uint8": "u1",
    "int16": "i2",
    "uint16": "u2",
    "int32": "i4",
    "uint32": "u4",
    "int64": "i8",
    "uint64": "u8",
    "float32": "f4",
    "float64": "f8",
}
_MOST_FIELDS = 100_000  # of one message; a damaged length may say more
_MOST_LAYOUTS = 64  # of messages of one length in one block
_HEAD = 4  # bytes before the first field, from which alignment counts
_CHOICE = re.compile(r"\[([^\]]*[:,][^\]]*)\]")  # [0:12] or [3,4,7]


class MessageLayout:
    """Where the numbers of one message are; those of equal lengths have them there, too.

    Args:
        types: Definitions of the message's type and of all that it contains.
        name: The type, "unitree_go/msg/LowState" for example.
        payload: The message as a bag has it.

    Attributes:
        lengths: First byte of the length of each string and list.

    Raises:
        DefinitionError: The payload is too short for the type.
    """

    def __init__(self, types: Types, name: str, payload: bytes) -> None:
        self._types, self._name, self._payload = types, name, payload
        self._order = "<" if payload[1:2] != b"\0" else ">"
        self._at = _HEAD
        self._leaves: dict[str, tuple[int, str]] = {}
        self.lengths: list[int] = []
        self._visited = 0
        self._walk((Nodetype.NAME, name), "")

    def slices(self, path: str) -> tuple[Indices, str]:
        """Finds the bytes of the numbers that a path names.

        Args:
            path: Fields with dots between them: a number ("tick"), a list of numbers
                ("imu_state.gyroscope"), or a field of some entries ("motor_state[0:12].q",
                "motor_state[3,4,7].q").

        Returns:
            (k, size) indices of the bytes of k numbers, and numpy's type of each.

        Raises:
            DefinitionError: The type has no such field; names the nearest.
        """
        found: list[tuple[int, str]] = []
        try:
            paths = _expand(path)
        except ValueError as error:
            raise DefinitionError(str(error), self._name) from error
        for each in paths:
            if each in self._leaves:
                found.append(self._leaves[each])
                continue
            number = 0
            while f"{each}[{number}]" in self._leaves:
                found.append(self._leaves[f"{each}[{number}]"])
                number += 1
            if not number:
                known = sorted({re.sub(r"\[\d+\]", "", leaf) for leaf in self._leaves})
                meant = closest(re.sub(r"\[[^\]]*\]", "", each), known)
                problem = f"no number {each}" + f"; did you mean {meant}?" * bool(meant)
                raise DefinitionError(problem, self._name)
        codes = {code for _, code in found}
        if len(codes) > 1:
            raise DefinitionError(f"{path} has numbers of different types", self._name)
        code = self._order + codes.pop()
        starts = np.array([start for start, _ in found])
        return starts[:, None] + np.arange(np.dtype(code).itemsize), code

    def _walk(self, description: Any, path: str) -> None:
        """Notes where a field's numbers are, and passes over it."""
        node, content = description
        self._visited += 1
        if self._visited > _MOST_FIELDS:
            problem = f"a message has more than {_MOST_FIELDS} fields"
            raise DefinitionError(problem, self._name)
        if node == Nodetype.NAME:
            for field, inner in self._types[content][1]:
                self._walk(inner, f"{path}.{field}" if path else field)
        elif node == Nodetype.BASE and content[0] in ("string", "wstring"):
            length = self._length()
            self._at += length
        elif node == Nodetype.BASE:
            code = _CODES[content[0]]
            size = int(code[1])
            self._at += (_HEAD - self._at) % size
            self._leaves[path] = self._at, code
            self._at += size
        else:
            inner, count = content
            count = self._length() if node == Nodetype.SEQUENCE else count
            for i in range(count):
                self._walk(inner, f"{path}[{i}]")
        if self._at > len(self._payload):
            problem = f"a message ends after {len(self._payload)} bytes"
            raise DefinitionError(problem, self._name)

    def _length(self) -> int:
        """Length of a string or a list."""
        self._at += -self._at % 4
        part = self._payload[self._at : self._at + 4]
        self.lengths.append(self._at)
        self._at += 4
        return int.from_bytes(part, "little" if self._order == "<" else "big")


def read_numbers(
    types: Types, name: str, payloads: Sequence[bytes], paths: Mapping[str, str]
) -> tuple[list[tuple[Indices, dict[str, Array]]], list[str]]:
    """Takes numbers out of messages of one type.

    Args:
        types: Definitions of the type and of all that it contains.
        name: The type.
        payloads: Messages as a bag has them.
        paths: Paths of fields, by any key; see MessageLayout.slices.

    Returns:
        For messages of each layout their (N,) indices and, by key, (N, k) numbers; and for each
        message that cannot be read why.
    """
    found: list[tuple[Indices, dict[str, Array]]] = []
    problems: list[str] = []
    by_length: dict[int, list[int]] = {}
    for i, payload in enumerate(payloads):
        by_length.setdefault(len(payload), []).append(i)
    for length, indices in by_length.items():
        left, layouts = np.array(indices), 0
        while len(left) and layouts < _MOST_LAYOUTS:
            try:
                layout = MessageLayout(types, name, payloads[left[0]])
                slices = {key: layout.slices(path) for key, path in paths.items()}
            except (DefinitionError, KeyError, RecursionError) as error:
                problems.append(str(error))
                left = left[1:]
                continue
            joined = b"".join(payloads[i] for i in left)
            rows = np.frombuffer(joined, np.uint8).reshape(-1, length)
            fixed = [1, *(at + k for at in layout.lengths for k in range(4))]
            same = (rows[:, fixed] == rows[0, fixed]).all(axis=1)
            numbers = {
                key: _numbers(rows[same], *places) for key, places in slices.items()
            }
            found.append((left[same], numbers))
            layouts += 1
            left = left[~same]
        problems += ["its lists have too many different lengths"] * len(left)
    return found, problems


def _numbers(rows: Array, places: Indices, code: str) -> Array:
    """Numbers (N, k) from bytes (N, ...)."""
    picked = np.ascontiguousarray(rows[:, places.ravel()])
    return picked.view(code).astype(np.float64).reshape(len(rows), len(places))


def _expand(path: str) -> list[str]:
    """Paths that a path with choices of entries stands for, in its order."""
    parts = _CHOICE.split(path)
    choices = [_entries(text, path) for text in parts[1::2]]
    paths = []
    for numbers in product(*choices):
        text = parts[0]
        for number, after in zip(numbers, parts[2::2], strict=True):
            text += f"[{number}]{after}"
        paths.append(text)
    return paths


def _entries(text: str, path: str) -> list[int]:
    low, colon, high = text.partition(":")
    numbers = (low, high) if colon else text.split(",")
    entries = [int(each) for each in numbers if each.isdecimal()]
    if colon and len(entries) == 2:
        entries = list(range(entries[0], min(entries[1], entries[0] + _MOST_FIELDS)))
    elif colon or len(entries) < len(numbers):
        entries = []
    if not entries:
        raise ValueError(f"{path}: [{text}] is no choice of entries like [0:12]")
    return entries
