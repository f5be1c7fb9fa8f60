"""Which parts of a robot overlap in a posture, by convex hulls of their shapes."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy.optimize import linprog

from com_model.arrays import Array
from com_model.model import RobotModel
from com_model.setup.geometry import Outside
from com_model.setup.limbs import Limbs

NEAR = 3  # joints, those of a hip or shoulder, between bodies whose hulls may overlap
_MOST_POINTS = 400  # of a hull


def overlapping_bodies(
    model: RobotModel, outside: Outside, limbs: Limbs, R: Array, p: Array
) -> list[tuple[str, str]]:
    """Finds pairs of moving bodies of different limbs, or limb and trunk, whose hulls overlap.

    Bodies next to each other are left out. Two hulls are apart if a plane is between them: n a <=
    c - 1 for all points a of one, n b >= c + 1 for all b of the other; linear programming finds it.

    Args:
        model: The robot.
        outside: Its shapes.
        limbs: Its limbs.
        R: (B, 3, 3) orientations of the bodies.
        p: (B, 3) m, their origins.
    """
    bodies = model.bodies
    limb_of = {
        joint: group.replace("hand", "arm")
        for group, joints in limbs.groups.items()
        for joint in joints
        if "_" in group
    }
    limb = [limb_of.get(model.joint_names[i] if i >= 0 else "", "") for i in bodies.q_index]
    clouds = {
        b: points @ R[b].T + p[b] for b, points in enumerate(outside.points) if len(points) > 3
    }
    boxes = {b: (cloud.min(axis=0), cloud.max(axis=0)) for b, cloud in clouds.items()}
    chains = {b: [b, *bodies.path_to(b)[-2::-1], 0] for b in clouds}
    found = []
    for a, b in combinations(clouds, 2):
        apart = (boxes[a][0] > boxes[b][1]).any() or (boxes[b][0] > boxes[a][1]).any()
        if apart or limb[a] == limb[b] or _joints_between(chains[a], chains[b]) <= NEAR:
            continue
        if _overlap(clouds[a], clouds[b]):
            found.append((bodies.names[a], bodies.names[b]))
    return found


def _joints_between(first: list[int], second: list[int]) -> int:
    """Joints on the way between two bodies, by their ways to the root."""
    common = next(body for body in first if body in second)
    return first.index(common) + second.index(common)


def _overlap(first: Array, second: Array) -> bool:
    first, second = (c[:: max(1, len(c) // _MOST_POINTS)] for c in (first, second))
    middle = 0.5 * (first.mean(axis=0) + second.mean(axis=0))
    rows = np.concatenate([first - middle, middle - second])
    sides = np.concatenate([-np.ones(len(first)), np.ones(len(second))])
    result = linprog(
        np.zeros(4),
        A_ub=np.column_stack([rows, sides]),
        b_ub=-np.ones(len(rows)),
        bounds=(None, None),
        method="highs",
    )
    return result.status == 2  # no such plane
