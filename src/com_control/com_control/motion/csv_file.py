"""Motion files: rows of period, mode and positions, separated by commas ([Cominoli] 7.1).

    1,2,0,-172,3696,9537, ... ,-8800,0, R ,R ,R,R

Positions are counts of the encoders (pulses), or radians of the URDF's joints. "R" is not driven.
"""

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from com_control.exceptions import MotionError
from com_control.motion.motion import MODE, PERIOD, Motion, MotionLayout
from com_model.arrays import Array
from com_model.files import write_file

UNITS = ("counts", "radians")
MOST_ROWS = 1_000_000  # of a motion, which is held in memory: 33 minutes at 2 ms
_LONGEST_LINE = 4096
_NOT_DRIVEN = "R"
_MODE = "2"


def read_motion(
    path: str | os.PathLike[str],
    layout: MotionLayout,
    unit: str = "counts",
    most_rows: int = MOST_ROWS,
) -> Motion:
    """Reads a motion file; its first row is at time 0.

    Args:
        path: of the file.
        layout: joints, encoders and period.
        unit: "counts" of the encoders with their signs, or "radians" of the URDF's joints.
        most_rows: largest number of rows.

    Returns:
        The motion of the layout's joints, rad.

    Raises:
        MotionError: with the row: the file cannot be read, is empty or too long; columns are
            missing, there is text, numbers that are not finite, a joint that is driven in some
            rows only, or there is no such unit.
    """
    _check_unit(unit)
    values = _read_rows(Path(path), layout, most_rows)
    if not len(values):
        raise MotionError(f"{path} has no rows")
    periods, positions = _split(values, layout, unit)
    _check_driven(positions, layout)
    return Motion(
        layout.joints, np.concatenate(([0.0], np.cumsum(periods[1:]))), positions
    )


def write_motion(
    path: str | os.PathLike[str],
    motion: Motion,
    layout: MotionLayout,
    unit: str = "counts",
) -> None:
    """Writes a motion file, completely or not at all; row 1 has the period of row 2.

    Args:
        path: of the file.
        motion: of the layout's joints, in its order.
        layout: joints, encoders and period.
        unit: "counts" or "radians".

    Raises:
        MotionError: the joints differ, times between rows are not multiples of the layout's
            period, or the file cannot be written.
    """
    _check_unit(unit)
    if motion.joints != layout.joints:
        raise MotionError(
            "the motion's joints are not those of the layout, in its order"
        )
    steps = np.diff(motion.times, prepend=0.0) / layout.period
    steps[:1] = steps[1] if len(steps) > 1 else 1.0
    counts = np.rint(steps)
    if len(steps) and (np.abs(steps - counts).max() > 1e-3 or counts.min() < 1):
        raise MotionError(
            f"the times are not multiples of {layout.period:g} s: resample first"
        )
    rows = zip(counts.astype(int).tolist(), motion.positions, strict=True)
    try:
        write_file(
            path, "".join(_line(period, row, layout, unit) for period, row in rows)
        )
    except OSError as error:
        raise MotionError(f"{path} cannot be written: {error.strerror}") from error


def _check_unit(unit: str) -> None:
    if unit not in UNITS:
        raise MotionError(f"unit: expected one of {', '.join(UNITS)}, got {unit!r}")


def _line(period: int, row: Array, layout: MotionLayout, unit: str) -> str:
    cells = [_NOT_DRIVEN] * len(layout.columns)
    cells[layout.columns.index(PERIOD)] = str(period)
    if MODE in layout.columns:
        cells[layout.columns.index(MODE)] = _MODE
    values = row * layout.counts_per_rad if unit == "counts" else row
    for column, value in zip(layout.index.tolist(), values.tolist(), strict=True):
        if value == value:
            cells[column] = (
                str(round(value)) if unit == "counts" else f"{value + 0.0:.9g}"
            )
    return ",".join(cells) + "\n"


def _read_rows(path: Path, layout: MotionLayout, most_rows: int) -> Array:
    """Values (N, columns) of the lines that are not empty; NaN for R."""
    rows: list[Array] = []
    try:
        with path.open(encoding="utf-8-sig", newline=None) as file:
            while line := file.readline(
                _LONGEST_LINE
            ):  # of no motion file it may be endless
                if not line.isspace():
                    rows.append(_parse_row(line, len(rows) + 1, layout))
                if len(rows) > most_rows:
                    raise MotionError(
                        f"{path.name} has more than {most_rows} rows: cut it into several files"
                    )
    except UnicodeDecodeError as error:
        raise MotionError(f"{path} is not text: is it a motion file?") from error
    except OSError as error:
        raise MotionError(f"{path} cannot be read: {error.strerror}") from error
    return np.array(rows)


def _parse_row(line: str, row: int, layout: MotionLayout) -> Array:
    cells, count = line.strip().rstrip(",").split(","), len(layout.columns)
    if len(line) == _LONGEST_LINE:
        got = f"more than {_LONGEST_LINE} characters"
        raise MotionError(f"row {row}: expected {count} columns, got {got}", row)
    if len(cells) != count:
        cut = ". Is it cut off?" if len(cells) < count else ""
        expected = f"{count} columns ({', '.join(layout.columns[:3])}, ...)"
        raise MotionError(f"row {row}: expected {expected}, got {len(cells)}{cut}", row)
    return np.array(
        [_parse_cell(c, row, n) for c, n in zip(cells, layout.columns, strict=True)]
    )


def _parse_cell(text: str, row: int, name: str) -> float:
    if text.strip() == _NOT_DRIVEN:
        return float("nan")
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if abs(value) < 1e15:
        return value
    raise MotionError(
        f"row {row}, {name}: expected a number or R, got {text.strip()[:30]!r}", row
    )


def _first_row(bad: NDArray[np.bool_]) -> int:
    """Number of the first bad row of (N,) or (N, k), from 1; 0 if there is none."""
    rows = np.argwhere(bad)
    return int(rows[0, 0]) + 1 if len(rows) else 0


def _split(values: Array, layout: MotionLayout, unit: str) -> tuple[Array, Array]:
    """Periods (N,) s and positions (N, k) rad."""
    periods = values[:, layout.columns.index(PERIOD)] * layout.period
    longest = 1.0  # s
    if row := _first_row(~((periods > 0.0) & (periods <= longest))):
        raise MotionError(
            f"row {row}: the period is {periods[row - 1] / layout.period:g}, expected one "
            f"from 1 to {longest / layout.period:g} (x {layout.period:g} s)",
            row,
        )
    positions = values[:, layout.index]
    if unit == "radians":
        if row := _first_row(np.abs(positions) > 7.0):
            most = np.nanmax(np.abs(positions))
            raise MotionError(
                f"row {row}: {most:g} is too large for radians: counts?", row
            )
        return periods, positions
    parts = np.nan_to_num(positions)
    if row := _first_row(parts != np.rint(parts)):
        raise MotionError(
            f"row {row}: counts are whole numbers. Is the file in radians?", row
        )
    return periods, positions / layout.counts_per_rad


def _check_driven(positions: Array, layout: MotionLayout) -> None:
    """Refuses joints that are driven in some rows only."""
    driven = ~np.isnan(positions)
    odd = driven != driven[0]
    if row := _first_row(odd):
        joint = int(np.argmax(odd[row - 1]))
        state = ("driven", "not driven (R)")[int(driven[0, joint])]
        raise MotionError(
            f"row {row}, {layout.joints[joint]}: {state}, unlike in the rows before it: drive it "
            "in all rows or in none",
            row,
        )
