"""What is seen while a robot trots."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from com_demos.live import WAITING, Rows
from com_demos.trunk_recording import SIGMAS, TrunkSeries

LONGEST = 60  # letters of a reason


@dataclass(frozen=True, eq=False)
class TrunkView:
    """What a view of a trot shows.

    Attributes:
        series: the newest samples.
        status: name of the last status.
        reason: why it is not better.
        lift: N, sum of the vertical forces on the feet, root axes.
    """

    series: TrunkSeries
    status: str
    reason: str
    lift: float


def trunk_rows(view: TrunkView) -> Rows:
    """Return what is shown of the newest samples: names and values with their units."""
    series = view.series
    if not len(series.time):
        return [(WAITING, "for the first message on trunk_com")]
    x, y, z = 1000 * series.values[-1, :3]
    dx, dy, dz = 1000 * SIGMAS * series.deviations[-1, :3]
    mass, deviation = series.values[-1, 3], series.deviations[-1, 3]
    errors = series.error[np.isfinite(series.distance)]
    ex, ey, ez = 1000 * errors[-1, :3] if len(errors) else [math.nan] * 3
    roll, pitch = np.degrees(series.tilt[-1]) if len(series.tilt) else (math.nan, math.nan)
    state = view.status + (f": {view.reason}"[:LONGEST] if view.reason else "")
    return [
        ("trunk CoM", f"{x:8.2f} {y:8.2f} {z:8.2f} mm"),
        ("3 sigma", f"{dx:8.2f} {dy:8.2f} {dz:8.2f} mm"),
        ("error", f"{ex:8.2f} {ey:8.2f} {ez:8.2f} mm" if len(errors) else "no truth yet"),
        ("mass", f"{mass:.2f} kg, 3 sigma {SIGMAS * deviation:.2f} kg"),
        ("on the feet", f"{view.lift:.0f} N"),
        ("tilt", f"roll {roll:.2f} pitch {pitch:.2f} degrees"),
        ("payload", "on" if series.loaded_at > 0.0 else "not yet"),
        ("status", state),
    ]
