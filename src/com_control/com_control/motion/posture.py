"""A posture as a motion file of one row."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from com_control.motion.csv_file import Rows, write_rows
from com_control.motion.exceptions import MotionError
from com_control.motion.layout import MotionLayout
from com_model.arrays import as_array


def write_posture(
    path: str | os.PathLike[str],
    joints: Sequence[str],
    positions: ArrayLike,
    layout: MotionLayout,
    unit: str = "counts",
) -> None:
    """Writes a posture, within the limits of the joints.

    Args:
        path: Of the file, which is overwritten.
        joints: k names.
        positions: (k,) rad or m.
        layout: Of the file; its other joints are not driven.
        unit: As in csv_file.

    Raises:
        MotionError: None of the joints is one of the layout, or the file cannot be written.
        ShapeError: Not a position for each joint.
    """
    values = as_array("positions", positions, (len(joints),))
    row = np.full(len(layout.joints), np.nan)
    for name, value in zip(joints, values.tolist(), strict=True):
        if name in layout.joints:
            row[layout.joints.index(name)] = value
    if not np.isfinite(row).any():
        raise MotionError("none of the joints has a column in the motion file's layout")
    row = np.clip(row, layout.lower, layout.upper)
    write_rows(path, [Rows(1, np.array([layout.period]), row[None])], layout, unit)
