"""What columns of a table are, by their names: the words of a name, and the column of time."""

import re
from typing import Any

import numpy as np

from com_bags.tables import Table
from com_model.arrays import Array

_TIMES = ("time", "t", "stamp", "timestamp", "seconds", "secs", "times")


def name_words(name: str) -> list[str]:
    """The words of a name in small letters: leftHip.Fx_3 is left, hip, fx, 3.

    Args:
        name: Of a column.
    """
    return re.findall(r"[a-z]+|\d+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower())


def find_time(table: Table) -> dict[str, Any] | None:
    """The channel of a table's time, as mappings have it, by name and step.

    Args:
        table: With the time in any column.

    Returns:
        Column and unit; None where no column that is called a time rises.
    """
    for name in table.columns:
        words = name_words(name)
        if words and words[0] in _TIMES and rises(table, name):
            # 0.1 ms to 0.2 s
            steps = _steps(table, name)
            step = float(np.median(steps[steps > 0.0]))
            units = (("ns", 1e5), ("us", 200.0), ("ms", 0.2), ("s", -np.inf))
            return {
                "column": name,
                "unit": next(unit for unit, least in units if step >= least),
            }
    return None


def rises(table: Table, name: str) -> bool:
    """Whether a column grows from almost every known row to the next, or stays as it was.

    Rows of other topics may repeat it, so a tenth of the steps is enough.

    Args:
        table: The table.
        name: Of the column.
    """
    steps = _steps(table, name)
    up, down = np.sum(steps > 0.0), np.sum(steps < 0.0)
    return bool(up > 0.1 * len(steps) and up > 9.0 * down)


def _steps(table: Table, name: str) -> Array:
    """Differences from each known row of a column to the next known one."""
    column = table.columns[name]
    return np.diff(column[np.isfinite(column)])
