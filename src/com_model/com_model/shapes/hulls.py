"""Shapes of links as convex hulls: their points, which overlap, how low they reach."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from com_model.arrays import Array, Flags, Indices
from com_model.exceptions import GeometryError
from com_model.geometry.support import HullArrays, solid_hull
from com_model.model import RobotModel
from com_model.shapes.urdf_shapes import BOX, CAPSULE, MESH, SPHERE, Shape, ShapeReader

# of a hull that is compared with others: its ends in so many directions
MOST_POINTS = 200


def read_shapes(
    model: RobotModel,
    urdf_path: str | os.PathLike[str] | None = None,
    tags: Sequence[str] = ("collision",),
) -> tuple[list[Shape], list[tuple[str, str]]]:
    """Reads the shapes of each link, of the first tag of which it has any.

    Args:
        model: The robot.
        urdf_path: Path of its URDF, from which relative names of meshes count.
        tags: "collision", "visual", the preferred first.

    Returns:
        The shapes, and what could not be read: (name of the shape, reason).
    """
    reader = ShapeReader(model.xml, model.path if urdf_path is None else urdf_path)
    read: list[Shape] = []
    problems: list[tuple[str, str]] = []
    for name in (name for name in model.link_names if name in reader.links):
        for tag in tags:
            shapes, failed = reader.read(name, tag)
            problems += failed
            read += shapes
            if shapes:
                break
    return fit_up_axis(read, model), problems


def fit_up_axis(shapes: Sequence[Shape], robot: RobotModel) -> list[Shape]:
    """Turns COLLADA meshes whose y axis points up, where robot viewers would.

    Some robots are made for viewers that turn such meshes, some for viewers that do not: the
    reading is chosen whose meshes are nearer to the centres of mass of their links.

    Args:
        shapes: Shapes of the robot's links.
        robot: The robot, for the centres of mass.

    Returns:
        The shapes, those of such meshes turned or not.
    """
    if not any(shape.mesh.y_up for shape in shapes):
        return list(shapes)
    links = zip(robot.link_names, robot.link_coms, robot.link_masses, strict=True)
    coms = {name: com for name, com, mass in links if mass > 0.0}
    turned = [shape.turned() if shape.mesh.y_up else shape for shape in shapes]

    def distance(candidates: Iterable[Shape]) -> float:
        middles = [
            s.p + s.R @ s.triangles.reshape(-1, 3).mean(axis=0) - coms[s.link]
            for s in candidates
            if s.mesh.y_up and s.link in coms
        ]
        return float(np.linalg.norm(middles, axis=1).sum()) if middles else 0.0

    return turned if distance(turned) < distance(shapes) - 1e-9 else list(shapes)


def hull_points(shape: Shape, around: bool = False, sides: int = 24) -> Array:
    """Gives points whose hull is a shape's, or nearly: inside or around round ones.

    Args:
        shape: The shape.
        around: Whether the points are outside of round shapes.
        sides: Number of points on a circle; a multiple of 4, so that the poles are among them.

    Returns:
        (k, 3) m, in the shape's frame.
    """
    if shape.kind == MESH:
        vertices = shape.triangles.reshape(-1, 3)
        try:
            return hull_vertices(vertices)
        except ValueError:
            return np.unique(vertices, axis=0)
    size = np.array(shape.size)
    if shape.kind == BOX:
        return (
            np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
            * size
        )
    angle = np.linspace(0.0, 2.0 * np.pi, sides, endpoint=False)
    circle = size[0] * np.column_stack([np.cos(angle), np.sin(angle), 0.0 * angle])
    if shape.kind not in (SPHERE, CAPSULE):
        circle /= np.cos(np.pi / sides) if around else 1.0
        return np.concatenate(
            [circle + np.array([0, 0, z]) for z in (-size[1], size[1])]
        )
    latitude = np.linspace(-np.pi / 2, np.pi / 2, sides // 2 + 1)
    ball = np.concatenate(
        [circle * np.cos(a) + [0, 0, size[0] * np.sin(a)] for a in latitude]
    )
    if shape.kind == SPHERE:
        return ball
    return np.concatenate([ball + np.array([0, 0, z]) for z in (-size[1], size[1])])


def hull_vertices(points: Array) -> Array:
    """Vertices (k, 3) of the convex hull of points (m, 3), m; ValueError without volume."""
    # MuJoCo keeps vertices in single precision: those that it could not distinguish are merged.
    points = np.unique(points.astype(np.float32), axis=0).astype(float)
    try:
        hull = solid_hull(points)
    except GeometryError as error:
        raise ValueError("it has no volume") from error
    if hull.volume < 1e-5 * hull.area:
        raise ValueError("it has no volume")
    return np.asarray(points[hull.vertices])


class Hull(NamedTuple):
    """A convex hull that a body carries.

    Attributes:
        body: The body.
        points: (k, 3) m, in its frame.
        radius: m, around the points.
    """

    body: int
    points: Array
    radius: float = 0.0


def hull_of(shape: Shape, model: RobotModel) -> Hull:
    """Makes the hull of a shape; balls and capsules are exact, cylinders are a little larger.

    Args:
        shape: The shape.
        model: The robot that has it.
    """
    link = model.link_index(shape.link)
    body, bodies = int(model.bodies.body_of_link[link]), model.bodies
    rounded = shape.kind in (SPHERE, CAPSULE)
    half = shape.size[1] if shape.kind == CAPSULE else 0.0
    ends = np.array([[0.0, 0.0, half], [0.0, 0.0, -half]])[: 2 if half else 1]
    points = ends if rounded else hull_points(shape, around=True)
    points = (points @ shape.R.T + shape.p) @ bodies.R_body_link[
        link
    ].T + bodies.p_body_link[link]
    return Hull(body, points, shape.size[0] if rounded else 0.0)


class Hulls:
    """Hulls on a robot's bodies; of many points those farthest in MOST_POINTS directions."""

    def __init__(self, hulls: Sequence[Hull]) -> None:
        clouds = [_ends(hull.points) for hull in hulls]
        centers = [0.5 * (cloud.min(axis=0) + cloud.max(axis=0)) for cloud in clouds]
        reaches = [
            float(np.linalg.norm(cloud - center, axis=1).max())
            for cloud, center in zip(clouds, centers, strict=True)
        ]
        self.arrays = HullArrays(
            np.concatenate([np.empty((0, 3)), *clouds]),
            np.cumsum([0, *map(len, clouds)]),
            np.array([hull.radius for hull in hulls], dtype=float),
            np.array([hull.body for hull in hulls], dtype=np.int64),
            np.array(centers).reshape(-1, 3),
            np.array(reaches, dtype=float),
        )

    def overlap(self, pairs: Indices, R: Array, p: Array, margin: float = 0.0) -> Flags:
        """Finds which pairs (K, 2) are nearer than a margin, m, in N configurations, (N, K).

        R (N, B, 3, 3) and p (N, B, 3) m are the poses of the bodies.
        """
        from com_model.geometry.overlap_kernels import (
            set_overlaps,
        )  # numba: 1 s and 60 MB

        result = np.zeros((len(R), len(pairs)), dtype=np.bool_)
        if len(pairs):
            arrays = np.ascontiguousarray(R), np.ascontiguousarray(p)
            set_overlaps(self.arrays, pairs, *arrays, float(margin), result)
        return result

    def lowest(self, ups: Array, R: Array, p: Array) -> Array:
        """Finds the lowest height of each hull along a direction, for many configurations.

        Args:
            ups: (N, 3) unit vectors, the directions.
            R: (N, B, 3, 3) orientations of the bodies.
            p: (N, B, 3) m, their origins.

        Returns:
            (N, H) m.
        """
        points, starts, radii, bodies, *_ = self.arrays
        if not len(bodies):
            return np.zeros((len(ups), 0))
        along = np.einsum("nbji,nj->nbi", R, ups)[:, np.repeat(bodies, np.diff(starts))]
        heights = np.minimum.reduceat(
            np.einsum("nmi,mi->nm", along, points), starts[:-1], axis=1
        )
        return np.asarray(heights + np.einsum("nbi,ni->nb", p, ups)[:, bodies] - radii)


def _ends(points: Array) -> Array:
    """The points (k, 3) that are farthest in directions spread evenly over the sphere."""
    if len(points) <= MOST_POINTS:
        return points
    k = np.arange(MOST_POINTS) + 0.5
    z, angle = 1.0 - 2.0 * k / MOST_POINTS, np.pi * (1.0 + 5.0**0.5) * k
    across = np.sqrt(1.0 - z**2)
    directions = np.column_stack((across * np.cos(angle), across * np.sin(angle), z))
    return points[np.unique(np.argmax(points @ directions.T, axis=0))]


@dataclass(frozen=True, eq=False)
class Ball:
    """A <sphere> of a link: center (3,) m in its body's frame, radius m."""

    link: str
    center: Array
    radius: float


@dataclass(frozen=True, eq=False)
class Outside:
    """Points and balls of the moving bodies.

    Attributes:
        points: Per body (k, 3) m, corners of the convex hulls of its shapes, in the body's frame.
        links: Per body (k,) index of the link that each point belongs to.
        balls: Per body its spheres.
        meshes: Per body, whether there are meshes among its shapes.
        problems: Names of the shapes that could not be read, by the reason.
    """

    points: tuple[Array, ...]
    links: tuple[Indices, ...]
    balls: tuple[tuple[Ball, ...], ...]
    meshes: tuple[bool, ...]
    problems: dict[str, list[str]]


def read_outside(
    model: RobotModel, urdf_path: str | os.PathLike[str] | None
) -> Outside:
    """Reads the collision shapes of each link, the visual ones where it has none.

    Args:
        model: The robot.
        urdf_path: Path of its URDF, from which relative names of meshes count; None: unknown.
    """
    read, failed = read_shapes(model, urdf_path, ("collision", "visual"))
    problems: dict[str, list[str]] = {}
    for name, reason in dict.fromkeys(failed):
        problems.setdefault(reason, []).append(name)
    bodies, count = model.bodies, model.bodies.count
    points: list[list[Array]] = [[np.empty((0, 3))] for _ in range(count)]
    owners: list[list[int]] = [[] for _ in range(count)]
    balls: list[list[Ball]] = [[] for _ in range(count)]
    meshes = [False] * count
    for shape in read:
        link = model.link_index(shape.link)
        body, R, p = (
            bodies.body_of_link[link],
            bodies.R_body_link[link],
            bodies.p_body_link[link],
        )
        corners = (hull_points(shape) @ shape.R.T + shape.p) @ R.T + p
        points[body].append(corners)
        owners[body] += [link] * len(corners)
        meshes[body] |= shape.kind == MESH
        if shape.kind == SPHERE:
            balls[body].append(Ball(shape.link, p + R @ shape.p, shape.size[0]))
    return Outside(
        tuple(np.concatenate(parts) for parts in points),
        tuple(np.array(indices, dtype=np.int64) for indices in owners),
        tuple(tuple(found) for found in balls),
        tuple(meshes),
        problems,
    )
