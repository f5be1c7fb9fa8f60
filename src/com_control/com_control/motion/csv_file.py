"""Motion files: rows of period, mode and positions, separated by commas ([Cominoli] 7.1).

    1,2,0,-172,3696,9537, ... ,-8800,0, R ,R ,R,R

Positions are counts of the encoders (pulses), or radians of the URDF's joints. "R" is not driven.
"""

import os
from pathlib import Path

import numpy as np

from com_control.exceptions import MotionError
from com_control.motion.motion import MODE, PERIOD, Motion, MotionLayout
from com_model.arrays import Array
from com_model.files import write_file

UNITS = ("counts", "radians")
MOST_ROWS = 1_000_000  # of a motion, which is held in memory: 33 minutes at 2 ms
_LONGEST_LINE = 4096
_NOT_DRIVEN = "R"
_MOST_RADIANS = 7.0
_LONGEST_PERIOD = 1.0  # s
_MODE = "2"


def read_motion(
    path: str | os.PathLike[str],
    layout: MotionLayout,
    unit: str = "counts",
    most_rows: int = MOST_ROWS,
) -> Motion:
    """Reads a file; its first row is at time 0.

    The unit is "counts" of the encoders with their signs, or "radians" of the URDF's joints. A
    MotionError names the row: it cannot be read, is empty or has more than most_rows rows; missing
    columns, text, numbers that are not finite, a joint that is driven in some rows only, the wrong
    unit.
    """
    _check_unit(unit)
    lines = _lines(Path(path), layout, most_rows)
    if not lines:
        raise MotionError(f"{path} has no rows")
    periods, positions = _split(_numbers(lines, layout), layout, unit)
    _check_driven(positions, layout)
    return Motion(layout.joints, np.concatenate(([0.0], np.cumsum(periods[1:]))), positions)


def write_motion(
    path: str | os.PathLike[str], motion: Motion, layout: MotionLayout, unit: str = "counts"
) -> None:
    """Writes a file, whole or not at all; its first row has the period of its second.

    MotionError: other joints, times between the rows that are no whole counts of the layout's
    period, or the file cannot be written.
    """
    _check_unit(unit)
    if motion.joints != layout.joints:
        raise MotionError("the motion's joints are not those of the layout, in its order")
    steps = motion.periods(layout.period) / layout.period
    counts = np.rint(steps)
    if len(steps) and (np.abs(steps - counts).max() > 1e-3 or counts.min() < 1):
        raise MotionError(f"the times are no whole counts of {layout.period:g} s: resample first")
    rows = zip(counts.astype(int).tolist(), motion.positions, strict=True)
    try:
        write_file(path, "".join(_line(period, row, layout, unit) for period, row in rows))
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
            cells[column] = str(round(value)) if unit == "counts" else f"{value + 0.0:.9g}"
    return ",".join(cells) + "\n"


def _lines(path: Path, layout: MotionLayout, most_rows: int) -> list[str]:
    """Lines without the empty ones; one of a file that is no motion file may be endless."""
    lines: list[str] = []
    try:
        with path.open(encoding="ascii", newline=None) as file:
            while line := file.readline(_LONGEST_LINE):
                if not line.isspace():
                    lines.append(line)
                if len(line) == _LONGEST_LINE:
                    raise MotionError(
                        f"row {len(lines)}: expected {len(layout.columns)} columns, got more than "
                        f"{_LONGEST_LINE} characters",
                        len(lines),
                    )
                if len(lines) > most_rows:
                    raise MotionError(
                        f"{path.name} has more than {most_rows} rows: cut it into several files"
                    )
    except UnicodeDecodeError as error:
        raise MotionError(f"{path} is no text: is it a motion file?") from error
    except OSError as error:
        raise MotionError(f"{path} cannot be read: {error.strerror}") from error
    return lines


def _numbers(lines: list[str], layout: MotionLayout) -> Array:
    """Values (N, columns) of lines; NaN for R."""
    text = "".join(lines)
    if not set(text) - set("0123456789+-.eER, \t\r\n"):
        try:
            values = np.loadtxt(
                text.replace(_NOT_DRIVEN, "nan").splitlines(), delimiter=",", ndmin=2
            )
        except ValueError:
            pass
        else:
            if values.shape[1] == len(layout.columns) and not np.isinf(values).any():
                return values
    return np.array([_row(line, row, layout) for row, line in enumerate(lines, 1)])


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


def _split(values: Array, layout: MotionLayout, unit: str) -> tuple[Array, Array]:
    """Periods (N,) s and positions (N, k) rad."""
    periods = values[:, layout.columns.index(PERIOD)] * layout.period
    bad = ~((periods > 0.0) & (periods <= _LONGEST_PERIOD))
    if bad.any():
        row = 1 + int(np.argmax(bad))
        raise MotionError(
            f"row {row}: the period is {periods[row - 1] / layout.period:g}, expected one "
            f"from 1 to {_LONGEST_PERIOD / layout.period:g} (x {layout.period:g} s)",
            row,
        )
    positions = values[:, layout.index]
    if unit == "radians":
        far = np.abs(positions) > _MOST_RADIANS
        if far.any():
            row = 1 + int(np.argmax(far.any(axis=1)))
            raise MotionError(
                f"row {row}: {np.nanmax(np.abs(positions)):g} is no radian: counts?", row
            )
        return periods, positions
    parts = np.nan_to_num(positions)
    odd = parts != np.rint(parts)
    if odd.any():
        row = 1 + int(np.argmax(odd.any(axis=1)))
        raise MotionError(f"row {row}: counts are whole numbers. Is the file in radians?", row)
    return periods, positions / layout.counts_per_rad


def _check_driven(positions: Array, layout: MotionLayout) -> None:
    """Refuses joints that are driven in some rows only."""
    driven = ~np.isnan(positions)
    odd = driven != driven[0]
    if odd.any():
        row = 1 + int(np.argmax(odd.any(axis=1)))
        joint = int(np.argmax(odd[row - 1]))
        state = ("driven", "not driven (R)")[int(driven[0, joint])]
        raise MotionError(
            f"row {row}, {layout.joints[joint]}: {state}, unlike in the rows before it: drive it "
            "in all rows or in none",
            row,
        )
