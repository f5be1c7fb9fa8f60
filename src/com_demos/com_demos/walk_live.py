"""What is seen while a robot walks."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from com_demos.live import WAITING, Rows
from com_demos.walk_recording import WalkSample

LONGEST = 60  # letters of a reason


@dataclass(frozen=True, eq=False)
class WalkView:
    """What a view of a walk shows.

    Attributes:
        sample: the newest one; None before the first.
        state: its name.
        reason: why it does not walk.
        steps: of the walk.
        com_error: m, as the gait sees it.
    """

    sample: WalkSample | None
    state: str
    reason: str
    steps: int
    com_error: float


def walk_rows(view: WalkView) -> Rows:
    """Return what is shown of the newest sample: names and values with their units."""
    if view.sample is None:
        return [(WAITING, "for the first message on gait/state")]
    meant, zmp = 1000 * view.sample.com_reference, 1000 * view.sample.zmp
    state = view.state + (f": {view.reason}"[:LONGEST] if view.reason else "")
    step = f"{view.sample.step + 1} of {view.steps}" if view.sample.step >= 0 else "none"
    return [
        ("state", state),
        ("step", step),
        ("CoM meant", _point(meant)),
        ("CoM off", f"{1000 * view.com_error:.2f} mm" if math.isfinite(view.com_error) else "-"),
        ("ZMP", _point(zmp)),
    ]


def _point(values: np.ndarray) -> str:
    if not np.isfinite(values).all():
        return "not known"
    x, y, z = values
    return f"{x:8.1f} {y:8.1f} {z:8.1f} mm"
