"""Collision shapes for MuJoCo: which pairs may touch, how hard, and their lowest points."""

import os
from collections.abc import Sequence
from dataclasses import replace

import mujoco
import numpy as np

from com_model import Foot, GeometryError, RobotModel, fit_plane, link_poses
from com_model.arrays import Array
from com_model.geometry.support import sole_points
from com_model.shapes.hulls import hull_vertices, read_shapes
from com_model.shapes.urdf_shapes import HULL, LARGEST, MESH, NO_GEOMETRY, SPHERE, Shape
from com_model.text import listing
from com_simulation.physics.spec import GROUND_BIT

CORNER_RADIUS = 0.004  # m, of the balls at the corners of a sole without shapes


_UP = np.array([0.0, 0.0, 1.0])
# MuJoCo's solref: time constant (s), damping ratio; or, both negative, less stiffness and damping
# over the mass that a contact moves, 1/s^2 and 1/s; and its solimp
CONTACTS = {
    "stiff": ((0.01, 1.0), (0.95, 0.99, 0.001, 0.5, 2.0)),
    "soft": ((-1900.0, -190.0), (0.5, 0.5, 0.001, 0.5, 2.0)),
}
"""Contacts by name; of the soft one, each ball under 35 kg has the 6e4 N/m, 6e3 N s/m of [CCGD]."""


def is_bare(
    robot: RobotModel, mj: mujoco.MjModel, data: mujoco.MjData, foot: Foot, up: Array
) -> bool:
    """Whether a foot needs shapes of its own (foot_shapes).

    It does when no shape of the URDF ends near its sole, and when the lowest one is a mesh while
    the configuration knows the sole: of a mesh on a plane MuJoCo takes four contacts, which jump
    between the vertices and shake the robot.

    Args:
        robot: the robot.
        mj: its MuJoCo model.
        data: the posture, with the poses of bodies and shapes computed.
        foot: of the configuration.
        up: (3,) unit normal of the ground, world axes.
    """
    link = robot.link_index(foot.frame)
    body = body_of_foot(robot, foot)
    bottom = (
        robot.bodies.p_body_link[link] + robot.bodies.R_body_link[link] @ foot.center
    )
    bottom = data.xpos[body] + data.xmat[body].reshape(3, 3) @ bottom - foot.radius * up
    shapes = np.flatnonzero(mj.geom_bodyid == body)
    heights = [lowest_height(mj, data, up, int(geom)) for geom in shapes]
    # m, by which a foot's shapes may end above its sole and still be its own
    if not heights or min(heights) > float(up @ bottom) + 0.02:
        return True
    on_mesh = mj.geom_type[shapes[np.argmin(heights)]] == mujoco.mjtGeom.mjGEOM_MESH
    return bool(on_mesh and (len(foot.corners) or foot.radius))


def body_of_foot(robot: RobotModel, foot: Foot) -> int:
    """Number of the MuJoCo body that a foot belongs to.

    Args:
        robot: the robot.
        foot: of its configuration.
    """
    return int(robot.bodies.body_of_link[robot.link_index(foot.frame)]) + 1


def foot_shapes(foot: Foot, corner_radius: float = CORNER_RADIUS) -> list[Shape]:
    """Balls that carry a foot: one at each corner of its sole, or the ball of a point foot.

    Args:
        foot: of the configuration.
        corner_radius: m, of a ball at a corner.
    """
    if len(foot.corners) == 0:
        # m, where the radius is not known
        radius = foot.radius or 0.01
        return [Shape(foot.frame, SPHERE, (radius,), np.eye(3), np.array(foot.center))]
    centers = np.column_stack([foot.corners, np.full(len(foot.corners), corner_radius)])
    return [Shape(foot.frame, SPHERE, (corner_radius,), np.eye(3), c) for c in centers]


def touching_pairs(mj: mujoco.MjModel, data: mujoco.MjData) -> list[tuple[int, int]]:
    """Pairs of MuJoCo bodies of the robot that touch, or nearly, in the current posture.

    Args:
        mj: the MuJoCo model; its margins are changed temporarily.
        data: the posture; collisions are computed again.

    Returns:
        Pairs of body numbers, the lower one first.
    """
    margin = mj.geom_margin.copy()
    try:
        # m; closer pairs at the start never collide
        mj.geom_margin[:] = 0.002 / 2.0
        mujoco.mj_kinematics(mj, data)
        mujoco.mj_comPos(mj, data)
        mujoco.mj_collision(mj, data)
    finally:
        mj.geom_margin[:] = margin
    geoms = data.contact.geom.reshape(-1, 2)
    bodies = mj.geom_bodyid[geoms]
    return sorted(
        {tuple(sorted(pair)) for pair in bodies[(bodies > 0).all(axis=1)].tolist()}
    )


def neighbours(robot: RobotModel) -> list[tuple[int, int]]:
    """Pairs of MuJoCo bodies at most two joints apart.

    Where several joints make one hip or wrist, the hulls of the links around them overlap.

    Args:
        robot: the robot.

    Returns:
        Pairs of body numbers, the lower one first.
    """
    parent = robot.bodies.parent.tolist()
    pairs = set()
    for body in range(1, len(parent)):
        near = {parent[body], parent[parent[body]] if parent[body] > 0 else -1}
        near |= {b for b in range(1, body) if parent[b] == parent[body]}
        pairs |= {(min(body, b) + 1, max(body, b) + 1) for b in near if b >= 0}
    return sorted(pairs)


def read_collision(
    robot: RobotModel, urdf_path: str | os.PathLike[str] | None = None
) -> tuple[list[Shape], str]:
    """Reads the <collision> elements of a URDF.

    Args:
        robot: the robot.
        urdf_path: its file, to which names of meshes may be relative; None: they cannot be.

    Returns:
        The shapes that MuJoCo can use, and one line on those left out, empty without.
    """
    read, problems = read_shapes(robot, urdf_path)
    left_out = [problem for problem in problems if problem[1] != NO_GEOMETRY]
    solid = []
    for shape in read:
        try:
            solid.append(_solid(shape))
        except ValueError as error:
            left_out.append((shape.name, str(error)))
    if not left_out:
        return solid, ""
    names, reasons = (
        list(dict.fromkeys(texts)) for texts in zip(*left_out, strict=True)
    )
    shapes = f"{len(left_out)} collision shape{'s' if len(left_out) > 1 else ''}"
    return solid, f"{shapes} left out: {listing(names)} ({listing(reasons, 2)})"


def _solid(shape: Shape) -> Shape:
    """A shape that MuJoCo can use; ValueError: it has no volume, or is larger than any robot."""
    if shape.kind != MESH:
        # m; thinner things are drawings
        if min(shape.size) < 1e-5:
            raise ValueError("it has no volume")
        return shape
    points = shape.triangles.reshape(-1, 3)
    if np.abs(points).max() > LARGEST:
        raise ValueError(f"it is larger than {LARGEST:g} m")
    return replace(shape, kind=HULL, size=(), vertices=hull_vertices(points))


def support_normal(robot: RobotModel, feet: Sequence[Foot], q: Array) -> Array:
    """Normal of the plane that the soles span in a posture.

    Args:
        robot: the robot.
        feet: of its configuration.
        q: (n,) joint positions, rad or m.

    Returns:
        (3,) unit normal in the root's axes; the root's z axis where the feet span no plane.
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


def lowest_height(
    mj: mujoco.MjModel, data: mujoco.MjData, normal: Array, geom: int
) -> float:
    """Height of a shape's lowest point along a direction, m, from the world's origin.

    Args:
        mj: the MuJoCo model.
        data: the posture, with the poses of shapes computed.
        normal: (3,) unit vector, world axes.
        geom: number of the shape.
    """
    types, size = mujoco.mjtGeom, mj.geom_size[geom]
    center = float(normal @ data.geom_xpos[geom])
    along = normal @ data.geom_xmat[geom].reshape(
        3, 3
    )  # the normal in the shape's axes
    reach = {
        types.mjGEOM_SPHERE: size[0],
        types.mjGEOM_CAPSULE: abs(along[2]) * size[1] + size[0],
        types.mjGEOM_CYLINDER: abs(along[2]) * size[1]
        + np.hypot(along[0], along[1]) * size[0],
        types.mjGEOM_BOX: np.abs(along) @ size,
    }.get(mujoco.mjtGeom(mj.geom_type[geom]))
    if reach is not None:
        return center - float(reach)
    mesh = mj.geom_dataid[geom]
    first = mj.mesh_vertadr[mesh]
    vertices = mj.mesh_vert[first : first + mj.mesh_vertnum[mesh]]
    return center + float((vertices @ along).min())


def standing_height(mj: mujoco.MjModel, data: mujoco.MjData, normal: Array) -> float:
    """Height of the lowest point of the robot along a direction, m, from the world's origin.

    Of its shapes that the ground carries; a robot without any is judged by its bodies' origins.

    Args:
        mj: the MuJoCo model.
        data: the posture, with the poses of shapes and bodies computed.
        normal: (3,) unit vector, world axes.
    """
    shapes = np.flatnonzero(mj.geom_conaffinity & GROUND_BIT)
    heights = [lowest_height(mj, data, normal, int(geom)) for geom in shapes]
    return min(heights) if heights else float((data.xpos[1:] @ normal).min())


def hanging_height(robot: RobotModel, mj: mujoco.MjModel) -> float:
    """Height of the root, m, at which no posture of the robot can touch the ground.

    The longest sum of offsets from the root to a body, with prismatic travel and the body's
    shapes.

    Args:
        robot: the robot.
        mj: its MuJoCo model, for the sizes of the shapes.
    """
    bodies = robot.bodies
    reach = np.zeros(bodies.count)
    for b in range(1, bodies.count):
        i = bodies.q_index[b]
        ends = (
            bodies.multiplier[b] * np.array([robot.lower[i], robot.upper[i]])
            + bodies.offset[b]
        )
        slides = robot.joint_types[i] == "prismatic" and np.isfinite(ends).all()
        travel = float(np.abs(ends).max()) if slides else 0.0
        reach[b] = reach[bodies.parent[b]] + np.linalg.norm(bodies.d[b]) + travel
    most = reach.max()
    for geom in range(1, mj.ngeom):
        size = np.linalg.norm(mj.geom_pos[geom]) + mj.geom_rbound[geom]
        most = max(most, reach[mj.geom_bodyid[geom] - 1] + size)
    # m, below a hanging robot that stretches all its joints downwards
    return float(most) + 0.1
