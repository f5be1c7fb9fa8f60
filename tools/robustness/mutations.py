"""Mutations of files: bytes, lines and fields (numbers, texts, lengths) of valid ones."""

from __future__ import annotations

import re
import sqlite3
import struct
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

Files = Mapping[str, bytes]
"""A file, or those of a folder, by their name."""

_NUMBER = re.compile(rb"-?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?")
_WORD = re.compile(rb"[A-Za-z_][A-Za-z_0-9/]+")
_NUMBERS = (
    *(
        b"0",
        b"-0.0",
        b"-1",
        b"1",
        b"2",
        b"1e-320",
        b"1e-9",
        b"1e9",
        b"1e15",
        b"1e160",
        b"1e300",
    ),
    *(
        b"1e309",
        b"-1e308",
        b"nan",
        b".nan",
        b"inf",
        b"-.inf",
        b"NaN",
        b"Infinity",
        b"null",
        b"R",
    ),
    *(
        b"9223372036854775807",
        b"9223372036854775808",
        b"-9223372036854775809",
        b"1_000",
        b"0x10",
    ),
    *(
        b"18446744073709551616",
        b"9" * 400,
        b"9" * 5000,
        b"true",
        b"[]",
        b"{}",
        b'""',
        b"1:30:20",
    ),
)
_WORDS = (
    *(
        b"",
        b"a",
        b"x" * 300,
        b"x" * 70_000,
        b"\0",
        b"\xff\xfe",
        "\u202e\u0007".encode(),
        b"../..",
    ),
    *(
        b"%s%n",
        b"nan",
        b"null",
        b"~",
        b"&a",
        b"*a",
        b"!!python/object",
        b"\n",
        b'"',
        b"'",
        b"{",
    ),
)
_BYTES = (
    *(
        b"\0",
        b"\xff",
        b"\x7f",
        b"\x80",
        b"[" * 5000,
        b"{" * 200,
        b"(" * 200,
        b"," * 3000,
        b'"',
    ),
    *(
        b"\r",
        b"\n" * 2000,
        b"\xef\xbb\xbf",
        b"<!DOCTYPE a [<!ENTITY b 'c'>]>",
        b"<a>" * 300,
    ),
)
_INTEGERS = (
    0,
    1,
    2,
    2**7,
    2**8 - 1,
    2**15,
    2**16,
    2**24,
    2**29,
    2**31 - 1,
    2**31,
    2**32 - 1,
)
_DOUBLES = (0.0, -0.0, 1e-320, 1e9, 1e160, 1e300, -1e308, np.inf, -np.inf, np.nan)


def mutate(data: bytes, other: bytes, rng: np.random.Generator, binary: bool) -> bytes:
    """Changes a file in one to four ways.

    Args:
        data: A valid file.
        other: Another one of the same kind, to splice with.
        rng: Chooses.
        binary: Whether the file has numbers and lengths as bytes instead of text.
    """
    ways = _BINARY if binary else _TEXT
    for _ in range(int(rng.integers(1, 5))):
        data = ways[int(rng.integers(len(ways)))](data, other, rng)
    return data


def mutate_rows(path: Path, rng: np.random.Generator) -> None:
    """Changes values in the tables of an sqlite3 file, which stays a valid one."""
    names = (
        "id",
        "name",
        "type",
        "serialization_format",
        "topic_id",
        "timestamp",
        "data",
    )
    with sqlite3.connect(path) as base:
        for _ in range(int(rng.integers(1, 4))):
            column = str(rng.choice(names))
            table = (
                "messages" if column in ("topic_id", "timestamp", "data") else "topics"
            )
            (count,) = base.execute(f"SELECT count(*) FROM {table}").fetchone()  # noqa: S608
            row = int(rng.integers(1, count + 1))
            where = f"WHERE rowid = {row}" if rng.random() < 0.7 else ""
            (value,) = base.execute(
                f"SELECT {column} FROM {table} WHERE rowid = {row}"  # noqa: S608
            ).fetchone() or (None,)
            new: object
            if isinstance(value, bytes) and rng.random() < 0.8:
                new = mutate(value, value, rng, True)
            else:
                new = _pick(
                    rng,
                    (
                        None,
                        0,
                        -1,
                        2**63 - 1,
                        -(2**63),
                        1.5,
                        1e300,
                        "",
                        "x" * 5000,
                        b"\0" * 9,
                    ),
                )
            try:
                base.execute(f"UPDATE {table} SET {column} = ? {where}", (new,))  # noqa: S608
            except sqlite3.Error:
                continue  # the table refuses the value
    base.close()


def _pick(rng: np.random.Generator, values: tuple) -> object:
    return values[int(rng.integers(len(values)))]


def _place(data: bytes, rng: np.random.Generator, length: int = 0) -> int:
    return int(rng.integers(0, max(1, len(data) - length + 1)))


def _put(data: bytes, start: int, new: bytes, end: int) -> bytes:
    return data[:start] + new + data[end:]


def _flip(data: bytes, _: bytes, rng: np.random.Generator) -> bytes:
    changed = bytearray(data)
    for _bit in range(int(rng.integers(1, 9)) if data else 0):
        changed[_place(data, rng, 1)] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def _cut(data: bytes, _: bytes, rng: np.random.Generator) -> bytes:
    return data[: _place(data, rng)]


def _remove(data: bytes, _: bytes, rng: np.random.Generator) -> bytes:
    start = _place(data, rng)
    return _put(data, start, b"", start + int(2 ** rng.uniform(0, 10)))


def _repeat(data: bytes, _: bytes, rng: np.random.Generator) -> bytes:
    start = _place(data, rng)
    part = data[start : start + int(2 ** rng.uniform(0, 10))]
    return _put(data, start, part * int(2 ** rng.uniform(0, 8)), start)


def _insert(data: bytes, _: bytes, rng: np.random.Generator) -> bytes:
    start = _place(data, rng)
    return _put(data, start, _pick(rng, _BYTES), start)  # type: ignore[arg-type]


def _splice(data: bytes, other: bytes, rng: np.random.Generator) -> bytes:
    return data[: _place(data, rng)] + other[_place(other, rng) :]


def _zeros(data: bytes, _: bytes, rng: np.random.Generator) -> bytes:
    start = _place(data, rng)
    end = min(len(data), start + int(2 ** rng.uniform(0, 9)))
    return _put(data, start, bytes(end - start), end)


def _integer(data: bytes, _: bytes, rng: np.random.Generator) -> bytes:
    """A length, a number of entries, an id, a stamp."""
    kind = str(_pick(rng, ("<H", "<I", ">I", "<Q", "<i")))
    size = struct.calcsize(kind)
    if len(data) < size:
        return data
    start, value = _place(data, rng, size), int(_pick(rng, _INTEGERS))  # type: ignore[call-overload]
    if rng.random() < 0.3:
        value = 2**64 - 1 - value
    if rng.random() < 0.3:
        value = struct.unpack_from(kind, data, start)[0] + int(rng.integers(-3, 4))
    new = (value % 2 ** (8 * size)).to_bytes(
        size, "big" if kind[0] == ">" else "little"
    )
    return _put(data, start, new, start + size)


def _double(data: bytes, _: bytes, rng: np.random.Generator) -> bytes:
    if len(data) < 8:
        return data
    start = _place(data, rng, 8)
    return _put(data, start, struct.pack("<d", _pick(rng, _DOUBLES)), start + 8)


def _number(data: bytes, _: bytes, rng: np.random.Generator) -> bytes:
    return _token(data, rng, _NUMBER, _NUMBERS)


def _word(data: bytes, _: bytes, rng: np.random.Generator) -> bytes:
    return _token(data, rng, _WORD, _WORDS)


def _token(
    data: bytes,
    rng: np.random.Generator,
    pattern: re.Pattern[bytes],
    values: tuple[bytes, ...],
) -> bytes:
    """Replaces one token, by one of some values or by another token of the file."""
    start = _place(data, rng)
    found = pattern.search(data, start) or pattern.search(data)
    if found is None:
        return data
    another = pattern.search(data, _place(data, rng))
    new = _pick(rng, values)
    if another is not None and rng.random() < 0.2:
        new = another.group()
    return _put(data, found.start(), new, found.end())  # type: ignore[arg-type]


def _lines(data: bytes, other: bytes, rng: np.random.Generator) -> bytes:
    """Removes, repeats, moves or adds a line."""
    lines, others = data.splitlines(keepends=True), other.splitlines(keepends=True)
    if not lines or not others:
        return data
    at, way = int(rng.integers(len(lines))), int(rng.integers(4))
    if way == 0:
        del lines[at]
    elif way == 1:
        lines[at:at] = [lines[at]] * int(2 ** rng.uniform(0, 8))
    elif way == 2:
        lines.insert(int(rng.integers(len(lines))), lines.pop(at))
    else:
        lines.insert(at, others[int(rng.integers(len(others)))])
    return b"".join(lines)


Mutation = Callable[[bytes, bytes, np.random.Generator], bytes]
_ANY: tuple[Mutation, ...] = (_flip, _cut, _remove, _repeat, _insert, _splice)
_TEXT: tuple[Mutation, ...] = (
    *_ANY,
    _number,
    _number,
    _number,
    _word,
    _word,
    _lines,
    _lines,
)
_BINARY: tuple[Mutation, ...] = (
    *_ANY,
    _zeros,
    _integer,
    _integer,
    _integer,
    _double,
    _word,
)
