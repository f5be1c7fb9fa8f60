"""Which parts of a robot overlap in a posture, by convex hulls of their shapes."""

from itertools import combinations

import numpy as np

from com_model.arrays import Array
from com_model.model import RobotModel
from com_model.setup.geometry import Outside
from com_model.setup.limbs import Limbs
from com_model.shapes.hulls import Hull, Hulls

NEAR = 3  # joints, those of a hip or shoulder, between bodies whose hulls may overlap


def overlapping_bodies(
    model: RobotModel, outside: Outside, limbs: Limbs, R: Array, p: Array
) -> list[tuple[str, str]]:
    """Finds pairs of moving bodies of different limbs, or limb and trunk, whose hulls overlap.

    Bodies next to each other are left out.

    Args:
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
    hulls = {b: points for b, points in enumerate(outside.points) if len(points) > 3}
    chains = {b: [b, *bodies.path_to(b)[-2::-1], 0] for b in hulls}
    pairs = [
        (i, j)
        for (i, a), (j, b) in combinations(enumerate(hulls), 2)
        if limb[a] != limb[b] and _joints_between(chains[a], chains[b]) > NEAR
    ]
    indices = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    solid = Hulls([Hull(b, points) for b, points in hulls.items()])
    found = indices[solid.overlap(indices, R[None], p[None], 0.0)[0]]
    names = [bodies.names[b] for b in hulls]
    return [(names[i], names[j]) for i, j in found]


def _joints_between(first: list[int], second: list[int]) -> int:
    """Joints on the way between two bodies, by their ways to the root."""
    common = next(body for body in first if body in second)
    return first.index(common) + second.index(common)
