"""Tip angles as tables: a robot's beside simulated worlds' ([Cominoli] Tables 6, 7)."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping
from dataclasses import dataclass
from math import degrees
from pathlib import Path
from types import MappingProxyType

import numpy as np

from com_identification.tip_over.exceptions import ProtocolError
from com_identification.tip_over.protocol import Protocol
from com_model.arrays import Array

_SUFFIX = "_rad"


@dataclass(frozen=True, eq=False)
class TipTable:
    """Tip angles by column, in the order of a protocol's tests.

    Attributes:
        tests: T names.
        columns: (T,) rad by name; NaN where the table has none.
    """

    tests: tuple[str, ...]
    columns: Mapping[str, Array]

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], protocol: Protocol) -> TipTable:
        """Reads a CSV file: a column `test`, and columns `<name>_rad`, in any order of tests.

        Raises:
            ProtocolError: The file or a value is wrong, or a test is missing, unknown or there
                twice.
        """
        try:
            with Path(path).open(newline="", encoding="utf-8") as file:
                rows = list(csv.DictReader(file))
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise ProtocolError(f"{path} cannot be read: {error}") from error
        names = tuple(test.name for test in protocol.tests)
        by_test = _by_test(rows, names, str(path))
        keys = [key for key in rows[0] if key and key.endswith(_SUFFIX)]
        columns = {
            key.removesuffix(_SUFFIX): np.array(
                [_angle(by_test[name][key], f"{path}, {name}, {key}") for name in names]
            )
            for key in keys
        }
        for column in columns.values():
            column.setflags(write=False)
        return cls(names, MappingProxyType(columns))

    def angles(self, column: str) -> Array:
        """Gives a column (T,), rad.

        Raises:
            ProtocolError: There is none of that name; lists those that there are.
        """
        if column not in self.columns:
            valid = ", ".join(self.columns)
            raise ProtocolError(f"no column {column!r}; valid: {valid}")
        return self.columns[column]


@dataclass(frozen=True)
class Difference:
    """How far one column is from another: a row of [Cominoli] Table 7.

    Attributes:
        total: rad, sum of the absolute differences.
        average: rad.
        average_deg: degrees.
    """

    total: float
    average: float
    average_deg: float


def difference(angles: Array, truth: Array) -> Difference:
    """Compares tip angles (T,) with others, rad."""
    total = float(np.abs(angles - truth).sum())
    return Difference(total, total / len(truth), degrees(total / len(truth)))


def _by_test(
    rows: list[dict[str, str]], names: tuple[str, ...], source: str
) -> dict[str, dict[str, str]]:
    if not rows or "test" not in rows[0]:
        raise ProtocolError(f"{source}: expected a column 'test' and rows below it")
    by_test = {row["test"]: row for row in rows}
    missing, unknown = set(names) - set(by_test), set(by_test) - set(names)
    if missing or unknown or len(by_test) < len(rows):
        problem = (
            f"unknown tests: {', '.join(sorted(map(str, unknown)))}"
            if unknown
            else f"missing tests: {', '.join(sorted(missing))}"
            if missing
            else "a test is there twice"
        )
        raise ProtocolError(f"{source}: {problem}. The protocol has: {'; '.join(names)}")
    return by_test


def _angle(text: str | None, where: str) -> float:
    """An angle; NaN for an empty cell."""
    if not (text or "").strip():
        return float("nan")
    try:
        value = float(text or "")
    except ValueError as error:
        raise ProtocolError(f"{where}: expected an angle in rad, got {text!r}") from error
    if not abs(value) < 10.0:
        raise ProtocolError(f"{where}: expected an angle in rad, got {value:g}. Are these degrees?")
    return value
