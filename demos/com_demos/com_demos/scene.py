"""What the picture of a robot at one instant shows, in one upright frame."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from com_model import Foot, RobotModel, link_pose
from com_model.arrays import Array
from com_model.dynamics.kinematics import body_poses
from com_model.shapes.urdf_shapes import Color
from com_model.text import listing
from com_simulation.drawing.shapes import (
    RobotShape,
    body_meshes,
    root_pose,
    soles,
    support,
)

Part = tuple[Array, Color]
"""Corners (m, 3, 3) of triangles, world frame, m, and their colour."""


@dataclass(frozen=True)
class Snapshot:
    """What was published for one instant; vectors in the root link's frame, SI units."""

    q: Array  # (n,) joint positions
    com: Array  # (3,)
    projection: Array  # (3,) vertical, of the CoM; NaN where unknown
    gravity: Array  # (3,) direction; NaN where unknown
    chain: Array  # (K + 1, 3) points of the SESC
    contacts: tuple[str, ...]
    margin: float  # m; NaN without feet
    on_feet: bool  # whether the projection lies on the ground under the feet


@dataclass(frozen=True)
class Scene:
    """A robot at one instant. World frame: z against gravity, m; the root link at x = y = 0."""

    name: str
    mass: float  # kg
    root_link: str  # frame of com_in_root
    com_in_root: Array  # (3,) the CoM in the root link's frame
    R_world_root: Array  # (3, 3)
    p_world_root: Array  # (3,)
    heading: float  # rad, direction that the robot faces, from x towards y
    parts: tuple[Part, ...]  # triangles and colours of the robot's shape
    chain: Array  # (K + 1, 3) points of the SESC from the root link to the CoM
    # (3,) vertical, of the CoM, on the ground or root plane; None if unknown
    projection: Array | None
    polygon: Array  # (k, 3) support polygon, k = 0 without feet
    soles: tuple[Array, ...]  # (j, 3) each: outlines of the soles in contact
    margin: float  # m, of the projection in the polygon; NaN without feet
    # (t, 3) where the projection has been, seen from the feet; t = 0 if not recorded
    trace: Array
    has_ground: bool  # whether the robot stands on the plane of the projection
    note: str  # what is not drawn as the URDF has it

    @property
    def triangles(self) -> Array:
        """Return the triangles (m, 3, 3) of all parts, world frame."""
        return np.concatenate(
            [np.empty((0, 3, 3)), *(triangles for triangles, _ in self.parts)]
        )

    @property
    def com(self) -> Array:
        """Return the CoM (3,), world frame."""
        return self.R_world_root @ self.com_in_root + self.p_world_root

    @property
    def points(self) -> Array:
        """Return the corners of the shape and of the chain (k, 3), world frame."""
        return np.concatenate([self.triangles.reshape(-1, 3), self.chain])

    @property
    def size(self) -> float:
        """Return the diagonal of the box around the robot, m, at least 1 mm."""
        return max(float(np.linalg.norm(np.ptp(self.points, axis=0))), 1e-3)


def build_scene(
    model: RobotModel,
    shape: RobotShape,
    feet: Sequence[Foot],
    snapshots: Sequence[Snapshot],
    name: str = "",
) -> Scene:
    """Place the last of one or more snapshots of a run, with the trace of all of them."""
    last = snapshots[-1]
    model = model.with_frames([foot.mount for foot in feet if foot.mount])
    R, p = root_pose(last.gravity, last.projection)
    known = bool(np.isfinite(last.projection).all())
    parts = body_parts(model, shape, last.q, R, p)
    standing = [foot for foot in feet if foot.frame in last.contacts]
    outlines = soles(standing, lambda link: link_pose(model, last.q, link, R, p))
    heights = np.concatenate(
        [np.empty(0), *(part[..., 2].ravel() for part, _ in parts)]
    )
    above = bool(heights.size) and heights.min() > -0.02 * np.ptp(heights)
    return Scene(
        name=name or model.name,
        mass=model.mass,
        root_link=model.root_link,
        com_in_root=last.com,
        R_world_root=R,
        p_world_root=p,
        heading=_heading(model, feet, last, R),
        parts=parts,
        chain=last.chain @ R.T + p,
        projection=R @ last.projection + p if known else None,
        polygon=support(outlines if known else ()),
        soles=tuple(outlines),
        margin=last.margin,
        trace=_trace(model, snapshots) @ R.T + p,
        has_ground=known and (last.on_feet or above),
        note=shape_note(shape),
    )


def shape_note(shape: RobotShape) -> str:
    """Return one line on what is not drawn as the URDF has it, and why; empty when all is."""
    bare = len(shape.bare_links)
    if not shape.missing:
        return "the URDF has no shapes: lines between joints are drawn" if bare else ""
    lines = f", lines between joints for {bare} links" if bare else ""
    return f"not drawn: {listing(shape.missing, 1)}; instead collision shapes{lines}"


def _heading(
    model: RobotModel, feet: Sequence[Foot], snapshot: Snapshot, R: Array
) -> float:
    """Return the direction across the line from right to left feet; without those that of x."""
    sides = {
        side: [
            link_pose(model, snapshot.q, f.frame, R)[1] for f in feet if f.side == side
        ]
        for side in ("left", "right")
    }
    if not all(sides.values()):
        return float(np.arctan2(R[1, 0], R[0, 0]))
    x, y, _ = np.mean(sides["left"], axis=0) - np.mean(sides["right"], axis=0)
    return float(np.arctan2(-x, y))


def _trace(model: RobotModel, snapshots: Sequence[Snapshot]) -> Array:
    """Return where the projection was (t, 3), as seen from a foot that stood all the time.

    In the root link's frame of the last snapshot. Without such a foot there is no trace.
    """
    standing = set(snapshots[0].contacts).intersection(*(s.contacts for s in snapshots))
    if not standing:
        return np.empty((0, 3))
    foot = min(standing)
    R_end, p_end = link_pose(model, snapshots[-1].q, foot)
    points = []
    for snapshot in snapshots:
        R, p = link_pose(model, snapshot.q, foot)
        points.append(R_end @ R.T @ (snapshot.projection - p) + p_end)
    return np.array(points)


def body_parts(
    model: RobotModel,
    shape: RobotShape,
    q: Array,
    R_world_root: Array,
    p_world_root: Array,
) -> tuple[Part, ...]:
    """Place a robot's shapes in the world."""
    R, p = body_poses(model.bodies, model.check_q(q), R_world_root, p_world_root)
    meshes = body_meshes(model, shape).items()
    return tuple((triangles @ R[b].T + p[b], color) for (b, color), triangles in meshes)
