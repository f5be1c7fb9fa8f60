"""Ways from one posture to another with all soles where they are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from com_identification.planning.feasible import FeasiblePostures
from com_identification.planning.stances import FlatStance
from com_model import Foot
from com_model.arrays import Array

_SAME = 1e-6  # rad and m, of the feet's places
_SLACK = 1e-9  # rad or m
_HALVINGS = 6


def kept_path(
    feasible: FeasiblePostures, feet: Sequence[Foot], start: Array, end: Array, step: float
) -> Array | None:
    """Finds postures between two with all soles where they are.

    The straight way in the joints is brought to where the soles have their places and the CoM
    projects on the straight line between its two projections, which stays inside the polygon.
    Where two such postures are more than a step apart, the way between them is halved. Joints stay
    within the share of their limits that is used, or where start and end are beyond, within these.

    Args:
        feasible: What postures are allowed.
        feet: All feet of the robot, with corners.
        start: (n,) rad or m.
        end: (n,).
        step: rad or m, that no joint exceeds from one posture to the next.

    Returns:
        (k, n) from start to end, or None.
    """
    stance = FlatStance(feasible.statics, feet, start)
    if np.abs(stance.errors(end[None])[0]).max(initial=0.0) > _SAME:
        return None
    low = np.minimum(np.minimum(start, end), feasible.low) - _SLACK
    high = np.maximum(np.maximum(start, end), feasible.high) + _SLACK
    aims = stance.projections(np.array([start, end]))
    count = max(1, int(np.ceil(np.abs(end - start).max() / step)))
    shares = np.linspace(0.0, 1.0, count + 1)
    for _ in range(_HALVINGS):
        parts = shares[1:-1, None]
        middle, found = stance.solve_all(
            start + parts * (end - start), aims[0] + parts * (aims[1] - aims[0])
        )
        Q = np.vstack((start, middle, end))
        if not found.all():
            return None
        wide = np.abs(np.diff(Q, axis=0)).max(axis=1) > step
        if not wide.any():
            within = ((low <= Q) & (high >= Q)).all()
            allowed = feasible.allows(Q, stance, tuple(range(len(feet)))).all()
            return Q if within and allowed else None
        shares = np.sort(np.concatenate((shares, (shares[:-1] + shares[1:])[wide] / 2.0)))
    return None  # it jumps
