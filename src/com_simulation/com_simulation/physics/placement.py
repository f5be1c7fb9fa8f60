"""Where a robot stands at the start: orientation and height above the ground."""

from collections.abc import Sequence

import mujoco
import numpy as np

from com_model import Foot, GeometryError, RobotModel, fit_plane, link_poses
from com_model.arrays import Array
from com_model.geometry.support import sole_points
from com_simulation.physics.spec import GROUND_BIT

HANGING_CLEARANCE = 0.1  # m, below a hanging robot that stretches all its joints downwards
_UP = np.array([0.0, 0.0, 1.0])


def ground_rotation(slope: float) -> Array:
    """R_world_ground (3, 3) of a ground that rises forwards (along x) by `slope` rad."""
    c, s = np.cos(slope), np.sin(slope)
    return np.array([[c, 0.0, -s], [0.0, 1.0, 0.0], [s, 0.0, c]])


def support_normal(robot: RobotModel, feet: Sequence[Foot], q: Array) -> Array:
    """Normal (3,) of the plane that the soles span in the posture q (n,), in the root's axes.

    The root's z axis where the feet span no plane.
    """
    if not feet:
        return _UP
    R, p = link_poses(robot, q)
    links = [robot.link_index(foot.frame) for foot in feet]
    points = [
        sole_points(R[i], p[i] + R[i] @ foot.center, foot.corners)
        for i, foot in zip(links, feet, strict=True)
    ]
    soles = [i for i, foot in zip(links, feet, strict=True) if len(foot.corners)]
    outwards = R[soles][:, :, 2].sum(axis=0) if soles else _UP  # of the ground
    try:
        return fit_plane(np.concatenate(points), outwards)[1]
    except GeometryError:
        return _UP


def lowest_height(mj: mujoco.MjModel, data: mujoco.MjData, normal: Array, geom: int) -> float:
    """Height (m) of a shape's lowest point along a unit normal (3,), from the world's origin."""
    types, size = mujoco.mjtGeom, mj.geom_size[geom]
    center = float(normal @ data.geom_xpos[geom])
    along = normal @ data.geom_xmat[geom].reshape(3, 3)  # the normal in the shape's axes
    kind = mj.geom_type[geom]
    if kind == types.mjGEOM_SPHERE:
        return center - float(size[0])
    if kind == types.mjGEOM_CAPSULE:
        return center - float(abs(along[2]) * size[1] + size[0])
    if kind == types.mjGEOM_CYLINDER:
        return center - float(abs(along[2]) * size[1] + np.hypot(along[0], along[1]) * size[0])
    if kind == types.mjGEOM_BOX:
        return center - float(np.abs(along) @ size)
    mesh = mj.geom_dataid[geom]
    first = mj.mesh_vertadr[mesh]
    vertices = mj.mesh_vert[first : first + mj.mesh_vertnum[mesh]]
    return center + float((vertices @ along).min())


def standing_height(mj: mujoco.MjModel, data: mujoco.MjData, normal: Array) -> float:
    """Height (m) of the lowest point of the robot along a unit normal (3,).

    Of its shapes that the ground carries; a robot without any is judged by its bodies' origins.
    """
    shapes = np.flatnonzero(mj.geom_conaffinity & GROUND_BIT)
    heights = [lowest_height(mj, data, normal, int(geom)) for geom in shapes]
    return min(heights) if heights else float((data.xpos[1:] @ normal).min())


def hanging_height(robot: RobotModel, mj: mujoco.MjModel) -> float:
    """Height (m) of the root at which no posture of the robot can touch the ground.

    The longest sum of offsets from the root to a body, with prismatic travel and the body's shapes.
    """
    bodies = robot.bodies
    reach = np.zeros(bodies.count)
    for b in range(1, bodies.count):
        i = bodies.q_index[b]
        ends = bodies.multiplier[b] * np.array([robot.lower[i], robot.upper[i]]) + bodies.offset[b]
        slides = robot.joint_types[i] == "prismatic" and np.isfinite(ends).all()
        travel = float(np.abs(ends).max()) if slides else 0.0
        reach[b] = reach[bodies.parent[b]] + np.linalg.norm(bodies.d[b]) + travel
    most = reach.max()
    for geom in range(1, mj.ngeom):
        size = np.linalg.norm(mj.geom_pos[geom]) + mj.geom_rbound[geom]
        most = max(most, reach[mj.geom_bodyid[geom] - 1] + size)
    return float(most) + HANGING_CLEARANCE
