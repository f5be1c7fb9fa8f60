"""Motion files: rows of period, mode and positions, separated by commas ([Cominoli] 7.1).

    1,2,0,-172,3696,9537, ... ,-8800,0, R ,R ,R,R

Positions are counts of the encoders (pulses), or radians of the URDF's joints. "R" is not driven.
Files are read in blocks, so that millions of rows need no more memory than one.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TextIO

import numpy as np

from com_control.exceptions import MotionError
from com_control.motion.motion import MODE, PERIOD, Motion, MotionLayout
from com_model.arrays import Array, FrozenArrays
from com_model.files import whole_file

UNITS = ("counts", "radians")
BLOCK = 20_000  # rows
_LONGEST_LINE = 4096
_NOT_DRIVEN = "R"
_MOST_RADIANS = 7.0
_LONGEST_PERIOD = 1.0  # s
_MODE = "2"


@dataclass(frozen=True, eq=False)
class Rows(FrozenArrays):
    """Some rows of a file."""

    first: int  # number of the first row, from 1
    periods: Array  # (N,) s
    positions: Array  # (N, k) rad; NaN where not driven


def read_rows(
    path: str | os.PathLike[str], layout: MotionLayout, unit: str = "counts", block: int = BLOCK
) -> Iterator[Rows]:
    """Reads a file block by block.

    Args:
        unit: "counts" of the encoders with their signs, or "radians" of the URDF's joints.

    Raises:
        MotionError: It cannot be read or is empty; missing columns, text, numbers that are not
            finite, a joint that is driven in some rows only, the wrong unit. Names the row.
    """
    _check_unit(unit)
    first, driven = 1, None
    try:
        with Path(path).open(encoding="ascii", newline=None) as file:
            while lines := list(islice(_lines(file), block)):
                values = _numbers(lines, first, layout, unit)
                rows = Rows(first, *_split(values, first, layout, unit))
                driven = _check_driven(rows, driven, layout)
                yield rows
                first += len(lines)
    except UnicodeDecodeError as error:
        raise MotionError(f"{path} is no text: is it a motion file?") from error
    except OSError as error:
        raise MotionError(f"{path} cannot be read: {error.strerror}") from error
    if first == 1:
        raise MotionError(f"{path} has no rows")


def read_motion(path: str | os.PathLike[str], layout: MotionLayout, unit: str = "counts") -> Motion:
    """Reads a whole file; its first row stands at time 0.

    Raises:
        MotionError: As read_rows.
    """
    blocks = list(read_rows(path, layout, unit))
    periods = np.concatenate([rows.periods for rows in blocks])
    times = np.concatenate(([0.0], np.cumsum(periods[1:])))
    return Motion(layout.joints, times, np.vstack([rows.positions for rows in blocks]))


def write_motion(
    path: str | os.PathLike[str],
    motion: Motion,
    layout: MotionLayout,
    unit: str = "counts",
) -> None:
    """Writes a file. The times between the rows must be whole counts of the layout's period.

    Raises:
        MotionError: Other joints, times that are no whole counts, or the file cannot be written.
    """
    if motion.joints != layout.joints:
        raise MotionError("the motion's joints are not those of the layout, in its order")
    periods = np.diff(motion.times)
    first = periods[:1] if len(periods) else [layout.period]
    periods = np.concatenate((first, periods)) if len(motion.times) else periods
    write_rows(path, [Rows(1, periods, motion.positions)], layout, unit)


def write_rows(
    path: str | os.PathLike[str],
    blocks: Iterable[Rows],
    layout: MotionLayout,
    unit: str = "counts",
) -> int:
    """Writes a file block by block; it appears whole or not at all.

    Returns:
        Number of rows.

    Raises:
        MotionError: Periods that are no whole counts, or the file cannot be written.
    """
    _check_unit(unit)
    count = 0
    try:
        with whole_file(path) as part, part.open("w", encoding="ascii") as file:
            for rows in blocks:
                periods = _whole(rows.periods, layout)
                for period, row in zip(periods, rows.positions, strict=True):
                    file.write(_line(period, row, layout, unit))
                count += len(periods)
    except OSError as error:
        raise MotionError(f"{path} cannot be written: {error.strerror}") from error
    return count


def _check_unit(unit: str) -> None:
    if unit not in UNITS:
        raise MotionError(f"unit: expected one of {', '.join(UNITS)}, got {unit!r}")


def _whole(periods: Array, layout: MotionLayout) -> list[int]:
    """Periods in counts."""
    steps = periods / layout.period
    counts = np.rint(steps)
    if len(steps) and (np.abs(steps - counts).max() > 1e-3 or counts.min() < 1):
        raise MotionError(f"the times are no whole counts of {layout.period:g} s: resample first")
    return [int(count) for count in counts]


def _line(period: int, row: Array, layout: MotionLayout, unit: str) -> str:
    cells = [_NOT_DRIVEN] * len(layout.columns)
    cells[layout.columns.index(PERIOD)] = str(period)
    if MODE in layout.columns:
        cells[layout.columns.index(MODE)] = _MODE
    values = row * layout.counts_per_rad if unit == "counts" else row
    for column, value in zip(layout.index.tolist(), values.tolist(), strict=True):
        if value == value:
            cells[column] = str(round(value)) if unit == "counts" else f"{value + 0.0:.9g}"
    return ",".join(cells) + "\n"


def _lines(file: TextIO) -> Iterator[str]:
    """Lines without the empty ones; one of a file that is no motion file may be endless."""
    while line := file.readline(_LONGEST_LINE):
        if not line.isspace():
            yield line


def _numbers(lines: list[str], first: int, layout: MotionLayout, unit: str) -> Array:
    """Values (N, columns) of lines; NaN for R."""
    text = "".join(lines)
    clean = not set(text) - set("0123456789+-.eER, \t\r\n")
    if clean:
        try:
            values = np.loadtxt(
                text.replace(_NOT_DRIVEN, "nan").splitlines(), delimiter=",", ndmin=2
            )
        except ValueError:
            clean = False
        else:
            clean = values.shape[1] == len(layout.columns) and not np.isinf(values).any()
    if not clean:
        values = np.array([_row(line, first + i, layout) for i, line in enumerate(lines)])
    return values


def _row(line: str, row: int, layout: MotionLayout) -> list[float]:
    """Reads one line with care, to say what is wrong with it."""
    cells = line.strip().rstrip(",").split(",")
    if len(cells) != len(layout.columns):
        cut = ". Is it cut off?" if len(cells) < len(layout.columns) else ""
        raise MotionError(
            f"row {row}: expected {len(layout.columns)} columns "
            f"({', '.join(layout.columns[:3])}, ...), got {len(cells)}{cut}",
            row,
        )
    return [_cell(c.strip(), row, name) for c, name in zip(cells, layout.columns, strict=True)]


def _cell(text: str, row: int, name: str) -> float:
    if text == _NOT_DRIVEN:
        return float("nan")
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not abs(value) < 1e15:
        raise MotionError(f"row {row}, {name}: expected a number or R, got {text[:30]!r}", row)
    return value


def _split(values: Array, first: int, layout: MotionLayout, unit: str) -> tuple[Array, Array]:
    """Periods (N,) s and positions (N, k) rad."""
    periods = values[:, layout.columns.index(PERIOD)] * layout.period
    bad = ~((periods > 0.0) & (periods <= _LONGEST_PERIOD))
    if bad.any():
        row = first + int(np.argmax(bad))
        raise MotionError(
            f"row {row}: the period is {periods[row - first] / layout.period:g}, expected one "
            f"from 1 to {_LONGEST_PERIOD / layout.period:g} (x {layout.period:g} s)",
            row,
        )
    positions = values[:, layout.index]
    if unit == "radians":
        far = np.abs(positions) > _MOST_RADIANS
        if far.any():
            row = first + int(np.argmax(far.any(axis=1)))
            raise MotionError(
                f"row {row}: {np.nanmax(np.abs(positions)):g} is no radian: counts?", row
            )
        return periods, positions
    parts = np.nan_to_num(positions)
    odd = parts != np.rint(parts)
    if odd.any():
        row = first + int(np.argmax(odd.any(axis=1)))
        raise MotionError(f"row {row}: counts are whole numbers. Is the file in radians?", row)
    return periods, positions / layout.counts_per_rad


def _check_driven(rows: Rows, driven: Array | None, layout: MotionLayout) -> Array:
    """Refuses joints that are driven in some rows only."""
    now = ~np.isnan(rows.positions)
    driven = now[0] if driven is None else driven
    odd = now != driven
    if odd.any():
        row = int(np.argmax(odd.any(axis=1)))
        name = layout.joints[int(np.argmax(odd[row]))]
        state = ("driven", "not driven (R)")[int(driven[layout.joints.index(name)])]
        raise MotionError(
            f"row {rows.first + row}, {name}: {state}, unlike in the rows before it: drive it in "
            "all rows or in none",
            rows.first + row,
        )
    return driven
