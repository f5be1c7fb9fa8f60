"""One instant for display: poses, points, polygons and colours, as arrays."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from com_estimation.whole_body.com_state import ComState
from com_model import Foot, RobotModel, Sesc
from com_model.arrays import Array
from com_model.dynamics.kinematics import body_poses
from com_simulation.drawing.shapes import root_pose, soles, support
from com_viewer.links import link_coms

Color = tuple[int, int, int]  # red, green, blue, 0 to 255

# Safe for colour-blind readers [Okabe and Ito 2008].
ORANGE, SKY, GREEN, YELLOW = (
    (230, 159, 0),
    (86, 180, 233),
    (0, 158, 115),
    (240, 228, 66),
)
BLUE, VERMILLION, PURPLE, GREY = (
    (0, 114, 178),
    (213, 94, 0),
    (204, 121, 167),
    (140, 146, 154),
)


class Mark(NamedTuple):
    """A point to show.

    Attributes:
        position: (3,) m, world; NaN: hidden.
        color: of its ball.
        covariance: (3, 3) m^2, world axes; None: no ellipsoid.
    """

    position: Array
    color: Color
    covariance: Array | None = None


@dataclass(frozen=True, eq=False)
class Snapshot:
    """One instant for display, in a world frame with z against gravity; SI units.

    Unknown quantities are NaN or empty.

    Attributes:
        R: (B, 3, 3) orientations of the moving bodies.
        p: (B, 3) m, their origins.
        state: of the CoM, in the root link's frame.
        com: (3,) m.
        velocity: (3,) m/s, of the CoM relative to the root link.
        projection: (3,) m, of the CoM on the ground.
        chain: (K + 1, 3) m, points of the SESC.
        polygon: (k, 3) m, support polygon.
        forces: (f, 2, 3) position of a foot, m, and the force of the ground on it, N.
        link_coms: (m, 3) m, CoM of each link that has mass.
        marks: such as ZMP and trunk CoM, by label.
        footsteps: (s, 2, 3) m, edges of footprints, of any number of corners.
    """

    R: Array
    p: Array
    state: ComState
    com: Array
    velocity: Array
    projection: Array
    chain: Array
    polygon: Array
    forces: Array
    link_coms: Array
    marks: Mapping[str, Mark] = field(default_factory=dict)
    footsteps: Array = field(default_factory=lambda: np.empty((0, 2, 3)))


class RobotScene:
    """Places a robot and its CoM in the world.

    Args:
        model: the robot, with its sole frames.
        feet: of the configuration; those whose frames the model lacks are left out.

    Attributes:
        model: as given.
    """

    def __init__(self, model: RobotModel, feet: Sequence[Foot] = ()) -> None:
        self.model = model
        self._sesc = Sesc(model)
        self._feet = tuple(feet)

    def place(
        self,
        q: Array,
        state: ComState,
        root: tuple[Array, Array] | None = None,
        chain: Array | None = None,
        forces: Array | None = None,
    ) -> Snapshot:
        """Places the robot at an instant.

        Args:
            q: (n,) joint positions, rad or m.
            state: of the CoM.
            root: R_world_root (3, 3) and p_world_root (3,) m; None: upright by the state's
                gravity, with its projection at height 0.
            chain: (K + 1, 3) m, root link's frame; None: it is computed.
            forces: (f, 3) N of the ground on the feet, in their wrench frames; None: unknown.

        Returns:
            The snapshot, without marks and footsteps.
        """
        R_root, p_root = root or root_pose(state.gravity, state.projection)
        R, p = body_poses(self.model.bodies, self.model.check_q(q), R_root, p_root)
        standing = [
            foot
            for foot in self._feet
            if foot.frame in state.contacts and foot.frame in self.model.link_names
        ]
        if chain is None:
            chain = self._sesc.chain(q)
        return Snapshot(
            R=R,
            p=p,
            state=state,
            com=R_root @ state.position + p_root,
            velocity=R_root @ state.velocity,
            projection=R_root @ state.projection + p_root,
            chain=chain @ R_root.T + p_root,
            polygon=support(soles(standing, lambda link: self.pose(link, R, p))),
            forces=self._forces(forces, R, p),
            link_coms=link_coms(self.model, R, p),
        )

    def pose(self, link: str, R: Array, p: Array) -> tuple[Array, Array]:
        """Pose of a link in the world.

        Args:
            link: its name.
            R: (B, 3, 3) orientations of the bodies.
            p: (B, 3) m, their origins.

        Returns:
            R_world_link (3, 3) and the link's origin (3,) m.
        """
        bodies, i = self.model.bodies, self.model.link_index(link)
        b = int(bodies.body_of_link[i])
        return R[b] @ bodies.R_body_link[i], p[b] + R[b] @ bodies.p_body_link[i]

    def _forces(self, forces: Array | None, R: Array, p: Array) -> Array:
        if forces is None:
            return np.empty((0, 2, 3))
        rows = []
        for foot, force in zip(self._feet, forces, strict=False):  # none: not in a bag
            if foot.frame not in self.model.link_names:
                continue
            R_sensor, _ = self.pose(foot.wrench_frame, R, p)
            rows.append((self.pose(foot.frame, R, p)[1], R_sensor @ force))
        return np.array(rows).reshape(-1, 2, 3)


def describe(state: ComState) -> dict[str, str]:
    """Rows of the status table on the CoM.

    Args:
        state: of the CoM.

    Returns:
        Text by name.
    """
    text = state.status.name + (f": {state.reason}" if state.reason else "")
    com = " ".join(f"{value:.4f}" for value in state.position)
    margin = (
        f"{1e3 * state.margin:.1f} mm" if np.isfinite(state.margin) else "not known"
    )
    return {"CoM": text, "CoM, root link": f"{com} m", "margin": margin}


def indexed(triangles: Array) -> tuple[NDArray[Any], NDArray[Any]]:
    """Vertices and faces of triangles, with equal corners merged.

    Args:
        triangles: (m, 3, 3) m.

    Returns:
        Vertices (v, 3) float32 and faces (m, 3) of their indices.
    """
    corners = np.ascontiguousarray(triangles.reshape(-1, 3), dtype=np.float32)
    rows = corners.view(np.dtype((np.void, 12))).ravel()
    _, first, inverse = np.unique(rows, return_index=True, return_inverse=True)
    return corners[first], inverse.reshape(-1, 3).astype(np.uint32)


def ellipsoid(covariance: Array, sigmas: float = 2.0) -> tuple[Array, Array]:
    """Ellipsoid of a normal distribution: cov = R diag(s^2) R^T, half lengths sigmas * s.

    Args:
        covariance: (3, 3) m^2.
        sigmas: number of standard deviations.

    Returns:
        Axes R (3, 3) by column, and half lengths (3,) m.
    """
    variances, R = np.linalg.eigh(covariance)
    if np.linalg.det(R) < 0.0:
        R[:, 0] *= -1.0
    return R, sigmas * np.sqrt(np.maximum(variances, 0.0))


def quaternions(R: Array) -> Array:
    """Unit quaternions of rotations, w first.

    Args:
        R: (m, 3, 3).

    Returns:
        (m, 4) w, x, y, z.
    """
    return np.asarray(Rotation.from_matrix(R).as_quat()[:, [3, 0, 1, 2]])


def margin_color(margin: float, safe: float = 0.03) -> Color:
    """Colour of a support polygon: vermillion outside, yellow at the edge, blue if safe.

    Args:
        margin: m, of the CoM's projection, positive inside.
        safe: m, margin from which it is blue.
    """
    return _between((VERMILLION, YELLOW, BLUE), margin / safe)


def correction_color(distance: float, largest: float = 0.02) -> Color:
    """Colour of a body by the correction of its CoM: sky blue, yellow, vermillion.

    Args:
        distance: m, of the correction; NaN: grey.
        largest: m, from which on it is vermillion.
    """
    return _between((SKY, YELLOW, VERMILLION), distance / largest)


def _between(colors: Sequence[Color], fraction: float) -> Color:
    """Colour at a fraction of the way along a sequence of colours; grey where it is NaN."""
    if not np.isfinite(fraction):
        return GREY
    at = np.clip(fraction, 0.0, 1.0) * (len(colors) - 1)
    parts = np.array(colors, dtype=float).T
    red, green, blue = (
        round(float(np.interp(at, range(len(colors)), part))) for part in parts
    )
    return red, green, blue


def fan(polygon: Array) -> Array:
    """Faces of a convex polygon.

    Args:
        polygon: (k, 3) m.

    Returns:
        (k - 2, 3) indices of corners.
    """
    last = np.arange(2, max(len(polygon), 2))
    return np.column_stack([np.zeros_like(last), last - 1, last]).astype(np.uint32)


def closed(polygon: Array) -> Array:
    """Segments around a polygon.

    Args:
        polygon: (k, 3) m.

    Returns:
        (k, 2, 3) m.
    """
    return np.stack([polygon, np.roll(polygon, -1, axis=0)], axis=1)


def segments(points: Array) -> Array:
    """Segments along points.

    Args:
        points: (k, 3) m.

    Returns:
        (k - 1, 2, 3) m.
    """
    return np.stack([points[:-1], points[1:]], axis=1)
