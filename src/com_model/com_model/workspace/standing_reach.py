"""Where a standing robot's centre of mass can be over its feet ([Cotton] VI.A, with the ground).

A foot that stands is the base: the centre of mass is looked at from its sole,
  c_sole = R_sole^T (c - p_sole),
whose z is the height above the ground and whose x and y are the ground projection.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from com_model.arrays import Array, FrozenArrays
from com_model.dynamics.kinematics import link_pose_batch, link_poses
from com_model.exceptions import GeometryError
from com_model.geometry.support import SupportPolygon
from com_model.model import RobotModel
from com_model.robot_config import Foot
from com_model.sesc.sesc import Sesc
from com_model.workspace.sampling import sample_postures

_SUNK = 1e-3  # m below the ground that still count as on it


@dataclass(frozen=True, eq=False)
class StandingReach(FrozenArrays):
    """Centres of mass of random postures of a robot that stands.

    Attributes:
        points: (N, 3) m, in the frame of the first of them; z is the height above the ground.
        margin: (N,) m, of the ground projection inside the support polygon, negative outside.
        support: (k, 2) m, the corners of the support polygon in that frame.
    """

    feet: tuple[str, ...]
    points: Array
    margin: Array
    support: Array

    @property
    def fraction(self) -> float:
        """Fraction of the postures in which the robot can stand at rest."""
        return float((self.margin >= 0.0).mean())

    @property
    def best_margin(self) -> float:
        """The largest margin, m: negative where it stands in no posture."""
        return float(self.margin.max())

    @property
    def heights(self) -> tuple[float, float]:
        """Least and largest height of the CoM where it stands, m; NaN where it never does."""
        standing = self.points[self.margin >= 0.0, 2]
        if not len(standing):
            return float("nan"), float("nan")
        return float(standing.min()), float(standing.max())

    def over_edges(self) -> dict[str, float]:
        """How far the projection comes beyond the support polygon, m (to no edge: negative)."""
        reach, edge = self.points[:, :2], self.support
        return {
            "front": float(reach[:, 0].max() - edge[:, 0].max()),
            "back": float(edge[:, 0].min() - reach[:, 0].min()),
            "left": float(reach[:, 1].max() - edge[:, 1].max()),
            "right": float(edge[:, 1].min() - reach[:, 1].min()),
        }


def reach_on_foot(
    model: RobotModel, foot: Foot, count: int, seed: int = 0, others: Sequence[Foot] = ()
) -> StandingReach:
    """Samples a robot that stands on one flat sole, all joints anywhere within their limits.

    Postures that bring its root, the end of a limb or the corner of another foot below the ground
    do not count.

    Args:
        foot: The sole, with three corners or more.

    Raises:
        ComModelError: count is no positive number.
        GeometryError: The foot has no sole, or no posture keeps above the ground.
    """
    _check_soles([foot])
    Q = sample_postures(model, count, seed=seed)
    R, p = link_pose_batch(model, Q, foot.frame)
    above = _lowest(model, Q, others, R[:, :, 2], p) > -_SUNK
    if not above.any():
        raise GeometryError(
            f"on {foot.frame!r} none of {count} postures keeps above the ground: draw more"
        )
    points = np.einsum("nji,nj->ni", R[above], Sesc(model).com_batch(Q[above]) - p[above])
    polygon = SupportPolygon.from_soles([np.eye(3)], [np.zeros(3)], [foot.corners])
    return _reach((foot.frame,), points, polygon)


def reach_on_feet(
    model: RobotModel, feet: Sequence[Foot], rest: ArrayLike, count: int, seed: int = 0
) -> StandingReach:
    """Samples a robot whose feet stay where they are: the joints that move no foot vary.

    Args:
        rest: (n,) rad or m, the posture in which they stand.

    Raises:
        ComModelError: count is no positive number.
        GeometryError: A foot has no sole, or there is none.
    """
    _check_soles(feet)
    q = model.check_q(rest, "rest")
    Q = sample_postures(model, count, joints_off_the_feet(model, feet), q, seed)
    index = [model.link_index(foot.frame) for foot in feet]
    R, p = (part[index] for part in link_poses(model, q))
    points = (Sesc(model).com_batch(Q) - p[0]) @ R[0]
    R_soles, p_soles = R[0].T @ R, (p - p[0]) @ R[0]
    corners = [foot.corners for foot in feet]
    polygon = SupportPolygon.from_soles(R_soles, p_soles, corners, (0.0, 0.0, 1.0))
    return _reach(tuple(foot.frame for foot in feet), points, polygon)


def joints_off_the_feet(model: RobotModel, feet: Sequence[Foot]) -> list[str]:
    """Lists the joints that move none of the feet in the root link's frame."""
    bodies, moving = model.bodies, set[int]()
    for foot in feet:
        path = bodies.path_to(bodies.body_of_link[model.link_index(foot.frame)])
        moving.update(bodies.q_index[path].tolist())
    return [name for i, name in enumerate(model.joint_names) if i not in moving]


def _lowest(model: RobotModel, Q: Array, feet: Sequence[Foot], up: Array, ground: Array) -> Array:
    """Height (N,) m of the lowest of root, ends of limbs and corners of feet over the ground.

    up (N, 3) is out of the ground, through ground (N, 3) m; both in the root link's frame.
    """
    bodies = model.bodies
    ends = np.flatnonzero(bodies.subtree_end == np.arange(bodies.count) + 1)
    corners = {bodies.names[body]: np.zeros((1, 2)) for body in (0, *ends)}
    corners |= {foot.frame: foot.corners for foot in feet if len(foot.corners)}
    lowest = np.full(len(Q), np.inf)
    for link, points in corners.items():
        R, p = link_pose_batch(model, Q, link)
        heights = np.einsum("ni,nij->nj", up, R[:, :, :2]) @ points.T
        heights += np.einsum("ni,ni->n", up, p - ground)[:, None]
        lowest = np.minimum(lowest, heights.min(axis=1))
    return lowest


def _reach(feet: tuple[str, ...], points: Array, polygon: SupportPolygon) -> StandingReach:
    return StandingReach(feet, points, np.asarray(polygon.margin(points)), polygon.vertices[:, :2])


def _check_soles(feet: Sequence[Foot]) -> None:
    if not feet:
        raise GeometryError("no feet to stand on: give feet in the robot's configuration")
    for foot in feet:
        if len(foot.corners) < 3:
            raise GeometryError(f"foot {foot.frame!r} has no sole to stand on: give its corners")
