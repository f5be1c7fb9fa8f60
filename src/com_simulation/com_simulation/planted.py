"""Ways from posture to posture on which no sole leaves its place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation, Slerp

from com_model import Foot, RobotModel, link_poses
from com_simulation.stance import Stance
from com_simulation.world import World

Array = NDArray[np.float64]

SAME_PLACE, SAME_TURN = 1e-3, 5e-3  # m, rad
STEP = 0.05  # rad or m, of the fastest joint between two points of a way


def keeps_feet(robot: RobotModel, feet: Sequence[Foot], postures: Array) -> bool:
    """Whether the feet are at the same places to each other in all postures (P, n)."""
    links = [robot.link_index(foot.frame) for foot in feet]
    first: Array | None = None
    for q in postures:
        R, p = link_poses(robot, q)
        R, p = R[links[0]].T @ R[links], (p[links] - p[links[0]]) @ R[links[0]]
        if first is None:
            first, place = R, p
            continue
        turns = Rotation.from_matrix(R @ first.transpose(0, 2, 1)).magnitude()
        if turns.max() > SAME_TURN or np.abs(p - place).max() > SAME_PLACE:
            return False
    return True


def planted_way(world: World, start: Array, end: Array) -> Array:
    """Finds points (k, n) from one posture to another, between which the soles stay in place.

    The root goes straight, and so do the joints that no foot hangs on; the legs follow.

    Args:
        world: The robot.
        start: (n,) rad or m.
        end: (n,) with the feet at the same places to each other.

    Raises:
        SwayError: The legs do not reach on the way.
    """
    robot = world.robot
    stance = Stance(robot, world.feet, start)
    sole = robot.link_index(world.feet[0].frame)
    (R0, p0), (R1, p1) = (link_poses(robot, q) for q in (start, end))
    # The root of the end in that of the start, by way of the sole that stands.
    R_end = R0[sole] @ R1[sole].T
    p_end = p0[sole] - R_end @ p1[sole]
    turn = Slerp([0.0, 1.0], Rotation.from_matrix([np.eye(3), R_end]))
    count = max(int(np.ceil(np.abs(end - start).max() / STEP)), 2)
    way = [start]
    for share in np.linspace(0.0, 1.0, count + 1)[1:-1]:
        guess = way[-1] + (end - way[-1]) * (1.0 / count) / (1.0 - share + 1.0 / count)
        way.append(stance.solve(guess, turn(share).as_matrix(), share * p_end))
    return np.array([*way, end])
