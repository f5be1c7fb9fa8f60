"""How a robot stands: which feet are in contact, on what ground, and how far inside the CoM is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from com_estimation.whole_body import stance_kernels as kernels
from com_model import Foot
from com_model.arrays import Array

Mask = NDArray[np.bool_]

UNKNOWN_FORCES = np.empty((0, 3))
STEEPEST = 0.1  # cosine of the steepest ground that gravity is believed for, 84 degrees


class Stance(NamedTuple):
    """A robot on its feet; vectors in the frame that the feet's poses were given in.

    Attributes:
        contact: (f,) True for feet in contact.
        points: (m, 3) m, contact points.
        normal: (3,) unit normal of the ground.
    """

    contact: Mask
    points: Array
    normal: Array

    def fall(self, com: Array, gravity: Array) -> tuple[Array, float] | None:
        """The vertical projection of the CoM onto the ground, and its margin.

        Args:
            com: (3,) m.
            gravity: (3,) unit vector, downwards.

        Returns:
            The projection (3,) m, and its distance to the nearest edge of the support polygon, m,
            positive inside; None when gravity does not point into the ground.
        """
        if not -(gravity @ self.normal) >= STEEPEST:  # also when gravity is NaN
            return None
        projection = np.empty(3)
        margin = kernels.fall(self.points, self.normal, gravity, com, projection)
        return projection, float(margin)


class Feet:
    """The f feet of a robot: flat soles (with corners) or point feet (with a ball's radius).

    Args:
        feet: their geometry.
        tolerance: how far above the lowest point of all feet a foot may be and still count as
            in contact, m.
        threshold: force from which a foot counts as in contact, N.

    Attributes:
        names: the f sole frames.
        links: k links whose poses stand() needs: sole frames and the frames of force sensors.
        points: what the kernels take.
        thresholds: the tolerance and the threshold; may be replaced.
    """

    def __init__(self, feet: Sequence[Foot], tolerance: float, threshold: float) -> None:
        offsets = [_points(foot) for foot in feet]
        self.names = tuple(foot.frame for foot in feet)
        self.links = tuple(dict.fromkeys([*self.names, *(foot.wrench_frame for foot in feet)]))
        owner = np.repeat(np.arange(len(feet)), [len(points) for points in offsets])
        self.points = kernels.FeetPoints(
            sole=np.array([self.links.index(name) for name in self.names], dtype=np.int64),
            sensor=np.array([self.links.index(f.wrench_frame) for f in feet], dtype=np.int64),
            is_sole=np.array([len(foot.corners) > 0 for foot in feet], dtype=np.bool_),
            offset=np.concatenate([np.zeros((0, 3)), *offsets]),
            owner=owner.astype(np.int64),
            radius=np.array([foot.radius for foot in feet], dtype=np.float64)[owner],
        )
        self.thresholds = kernels.Thresholds(float(threshold), float(tolerance))

    def stand(self, R: Array, p: Array, up: Array, forces: Array | None = None) -> Stance | None:
        """How the robot stands.

        With forces, the feet in contact are those with at least the threshold across the sole
        (of a point foot: in size). Without, the feet's poses tell: of all planes that a sole lies
        in (with no flat sole: that three point feet touch) and that no foot is below by more than
        the tolerance, the one whose normal is nearest to `up` is taken for the ground, so that
        a tilted robot, or a slope, does not lift a foot that stands.

        The normal is then the mean of the soles' normals, or that of the triangles between point
        feet weighted by area, or `up` where the feet give none (one or two point feet).

        Args:
            R: (k, 3, 3) orientations of `links`, in any one frame.
            p: (k, 3) m, their origins.
            up: (3,) unit vector, roughly out of the ground, in the frame of the poses.
            forces: (f, 3) N, of the ground on the feet, each in its sensor's frame; None if not
                known.

        Returns:
            The stance, or None when no foot is in contact.
        """
        count = len(self.points.owner)
        contact = np.empty(len(self.names), dtype=np.bool_)
        contacts = kernels.Contacts(contact, np.empty(3), np.empty((count, 3)))
        count = kernels.stand(
            np.asarray(R, np.float64, order="C"),
            np.asarray(p, np.float64, order="C"),
            np.asarray(up, np.float64, order="C"),
            UNKNOWN_FORCES if forces is None else np.asarray(forces, np.float64, order="C"),
            self.points,
            self.thresholds,
            contacts,
        )
        if not count:
            return None
        return Stance(contacts.contact, contacts.points[:count], contacts.normal)


def _points(foot: Foot) -> Array:
    """Corners (k, 3) of a flat sole, or the center (1, 3) of a ball, in the foot's frame, m."""
    if len(foot.corners) == 0:
        return foot.center[None]
    return np.column_stack([foot.corners, np.zeros(len(foot.corners))])


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
