"""Which feet stand on the ground, and what plane the ground is, from the feet's poses or forces."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from com_model import Foot, GeometryError, fit_plane

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

_FLATTEST = 1e-9  # m^2, twice the area below which three points make no plane


def choose_feet(names: Sequence[str], configured: Sequence[Foot]) -> tuple[Foot, ...]:
    """Feet by name: as configured where they are, else point feet at the frames of that name.

    Args:
        names: sole frames; empty for all that are configured.
        configured: the feet of the robot's configuration.
    """
    known = {foot.frame: foot for foot in configured}
    return tuple(known.get(name) or point_foot(name) for name in names or known)


def point_foot(frame: str) -> Foot:
    """A foot that touches the ground in the origin of its frame."""
    return Foot(
        frame=frame,
        side="",
        corners=np.zeros((0, 2)),
        radius=0.0,
        wrench_topic=f"{frame}/wrench",
        wrench_frame=frame,
        wrench_sign=1,
    )


class Feet:
    """The f feet of a robot: flat soles (with corners) or point feet (with a ball's radius).

    Args:
        feet: their geometry.
        tolerance: how far above the lowest point of all feet a foot may be and still count as
            in contact, m.
        threshold: force from which a foot counts as in contact, N.
    """

    def __init__(self, feet: Sequence[Foot], tolerance: float, threshold: float) -> None:
        corners = [foot.corners if len(foot.corners) else np.zeros((1, 2)) for foot in feet]
        counts = [len(c) for c in corners]
        flat = np.concatenate([np.zeros((0, 2)), *corners])
        self._corners = np.column_stack([flat, np.zeros(len(flat))])
        self._owner = np.repeat(np.arange(len(feet)), counts)
        self._first = np.cumsum([0, *counts])[: len(feet)]
        self._radius = np.array([foot.radius for foot in feet])[self._owner]
        self._is_sole = np.array([len(foot.corners) > 0 for foot in feet], dtype=bool)
        triples = [] if self._is_sole.any() else list(combinations(range(len(flat)), 3))
        self._triples = np.array(triples, dtype=np.intp).reshape(-1, 3)
        self._tolerance = tolerance
        self._threshold = threshold
        self.names = tuple(foot.frame for foot in feet)

    def points(self, R: Array, p: Array) -> Array:
        """Corners of the soles and centres of the balls.

        Args:
            R: (f, 3, 3) orientations of the sole frames.
            p: (f, 3) m, their origins, in any one frame.

        Returns:
            (P, 3) m, in that frame.
        """
        turned = (R[self._owner] @ self._corners[:, :, None])[:, :, 0]
        return np.asarray(p[self._owner] + turned)

    def touching(self, R: Array, points: Array, up: Array) -> Mask:
        """Which feet are in contact, by their poses alone.

        Of all planes that a sole lies in (with no flat sole: that three point feet touch) and that
        no foot is below by more than the tolerance, the one whose normal is nearest to `up` is
        taken for the ground: so a tilted robot, or a slope, does not lift a foot that stands.

        Args:
            R: (f, 3, 3) orientations of the sole frames.
            points: (P, 3) m, of points().
            up: (3,) unit vector, roughly out of the ground, in the same frame.

        Returns:
            (f,) True for feet whose lowest point is within the tolerance of the lowest of all.
        """
        normals, base = self._candidates(R, points, up)
        heights = points @ normals.T - self._radius[:, None]
        own = heights[base].mean(axis=1)[np.arange(len(base)), np.arange(len(base))]
        supported = heights.min(axis=0) >= own - self._tolerance
        if supported.any():
            chosen = heights[:, np.argmax(np.where(supported, normals @ up, -np.inf))]
        else:
            chosen = points @ up - self._radius
        lowest = np.minimum.reduceat(chosen, self._first)
        return np.asarray(lowest <= lowest.min() + self._tolerance)

    def loaded(self, R: Array, forces: Array) -> Mask:
        """Which feet are in contact, by the forces of the ground on them.

        Args:
            R: (f, 3, 3) orientations of the sole frames.
            forces: (f, 3) N, in the same frame as R.

        Returns:
            (f,) True where the force across the sole (of a point foot: its size) is at least the
            threshold.
        """
        across = np.einsum("fi,fi->f", R[:, :, 2], forces)
        size = np.sqrt(np.einsum("fi,fi->f", forces, forces))
        return np.asarray(np.where(self._is_sole, across, size) >= self._threshold)

    def ground(self, R: Array, points: Array, contact: Mask, up: Array) -> tuple[Array, Array]:
        """The ground below the feet in contact, of which there is at least one.

        Args:
            R: (f, 3, 3) orientations of the sole frames.
            points: (P, 3) m, of points().
            contact: (f,) True for feet in contact.
            up: (3,) unit vector, taken for the normal where the feet do not give one (one or two
                point feet).

        Returns:
            Contact points (m, 3), m, and the unit normal (3,): the mean of the soles' normals, or
            that of the plane through the point feet.
        """
        standing = contact[self._owner]
        touching = points[standing]
        soles = contact & self._is_sole
        if soles.any():
            total = R[soles, :, 2].sum(axis=0)
            normal = total / np.sqrt(total @ total)
        else:
            try:
                normal = fit_plane(touching, up)[1]
            except GeometryError:
                normal = up
        return touching - self._radius[standing, None] * normal, normal

    def _candidates(self, R: Array, points: Array, up: Array) -> tuple[Array, NDArray[np.intp]]:
        """Normals (c, 3) of possible grounds, and the points (c, b) that each was made from."""
        if self._is_sole.any():
            first = self._first[self._is_sole]
            return R[self._is_sole, :, 2], first[:, None]
        a, b, c = (points[self._triples[:, i]] for i in range(3))
        u, v = (b - a), (c - a)
        across = np.column_stack(
            [
                u[:, 1] * v[:, 2] - u[:, 2] * v[:, 1],
                u[:, 2] * v[:, 0] - u[:, 0] * v[:, 2],
                u[:, 0] * v[:, 1] - u[:, 1] * v[:, 0],
            ]
        )
        size = np.sqrt((across**2).sum(axis=1))
        wide = size > _FLATTEST
        normals = across[wide] / size[wide, None]
        normals *= np.where(normals @ up < 0.0, -1.0, 1.0)[:, None]
        return normals, self._triples[wide]
