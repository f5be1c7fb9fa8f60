"""Motion files made ready to be played: found inside a folder, read, checked, clamped if asked."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from com_control.motion.csv_file import Rows, read_rows
from com_control.motion.exceptions import MotionError
from com_control.motion.layout import MotionLayout
from com_control.motion.limits import LimitCheck, MotionReport
from com_control.motion.motion import Motion, clamped
from com_model.text import listing, quote

_SHOWN = 3  # violations in a message


class LimitError(MotionError):
    """A motion would break limits of the joints.

    Attributes:
        report: What the check found.
    """

    def __init__(self, name: str, report: MotionReport) -> None:
        found = report.violations
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        first = "; ".join(str(violation) for violation in found[:_SHOWN])
        super().__init__(
            f"{name} breaks limits: {first}{more}. Mend the file, or ask for it to be clamped",
            found[0].worst,
        )
        self.report = report


@dataclass(frozen=True)
class LoadedMotion:
    """A motion that keeps all limits.

    Attributes:
        motion: As it is to be played.
        report: What the check of the file found.
        changes: What was clamped, in words; none where the file keeps the limits.
    """

    motion: Motion
    report: MotionReport
    changes: tuple[str, ...]


def file_in(folder: str | os.PathLike[str], name: str) -> Path:
    """Finds a file of a folder or of one inside it.

    The folder's owner may have put links to files there, as colcon does with --symlink-install;
    no name, and no link to a folder, leads out of it.

    Raises:
        MotionError: It is none, or leads out of the folder.
    """
    top = Path(folder)
    if not top.is_dir():
        raise MotionError(f"the folder of motions, {folder}, is no directory")
    if not name or Path(name).is_absolute() or "\0" in name:
        raise MotionError(f"file {quote(name)}: give the name of a file inside {folder}")
    path = (top / name).parent.resolve() / Path(name).name
    if not path.is_relative_to(top.resolve()):
        raise MotionError(f"file {quote(name)} leads out of {folder}: give one inside")
    if not path.is_file():
        valid = sorted(item.name for item in top.glob("*.csv"))
        raise MotionError(f"file {quote(name)} is not in {folder}; there are: {listing(valid)}")
    return path


def load_motion(
    path: str | os.PathLike[str],
    layout: MotionLayout,
    unit: str = "counts",
    clamp: bool = False,
    most_rows: int = 1_000_000,
) -> LoadedMotion:
    """Reads a file and checks each row; clamps a motion that breaks limits, if that is asked for.

    Args:
        path: The file.
        layout: What its columns mean, and the limits.
        unit: Of the positions, as in read_rows.
        clamp: Clip positions and slow the motion down as a whole, instead of refusing.
        most_rows: That are held in memory.

    Raises:
        LimitError: It breaks limits, and clamp is not asked for.
        MotionError: It cannot be read, or is too long.
    """
    name, check = Path(path).name, LimitCheck(layout)
    blocks = list(_checked(name, read_rows(path, layout, unit), check, most_rows))
    check.end()
    report = check.report()
    if not (report.ok or clamp):
        raise LimitError(name, report)
    periods = np.concatenate([rows.periods for rows in blocks])
    times = np.concatenate(([0.0], np.cumsum(periods[1:])))
    motion = Motion(layout.joints, times, np.vstack([rows.positions for rows in blocks]))
    if report.ok:
        return LoadedMotion(motion, report, ())
    safe = clamped(layout, motion)
    return LoadedMotion(safe, report, tuple(_changes(report, motion, safe)))


def _checked(name: str, blocks: Iterator[Rows], check: LimitCheck, most: int) -> Iterator[Rows]:
    count = 0
    for rows in blocks:
        count += len(rows.periods)
        if count > most:
            raise MotionError(f"{name} has more than {most} rows: cut it into several files")
        check.add(rows)
        yield rows


def _changes(report: MotionReport, motion: Motion, safe: Motion) -> Iterator[str]:
    for found in report.violations:
        if found.kind == "position":
            yield (
                f"{found.joint} clipped at {np.degrees(found.limit):.2f} deg in {found.rows} rows, "
                f"by up to {np.degrees(abs(found.value - found.limit)):.2f} deg"
            )
    if len(motion.times) > 1 and safe.times[-1] > motion.times[-1] * (1.0 + 1e-6):
        factor = safe.times[-1] / motion.times[-1]
        yield (
            f"slowed down {factor:.3f} times, from {motion.times[-1]:.3f} to "
            f"{safe.times[-1]:.3f} s, for its speeds and accelerations"
        )
