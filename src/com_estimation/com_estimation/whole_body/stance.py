"""How a robot stands: which feet are in contact, on what ground, and how far inside the CoM is."""

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
    """A robot on its feet; vectors in the frame that the feet's poses were given in."""

    contact: Mask  # (f,) True for feet in contact
    points: Array  # (m, 3) m, contact points
    normal: Array  # (3,) unit normal of the ground


class Feet:
    """The f feet of a robot: flat soles (with corners) or point feet (with a ball's radius).

    Args:
        feet: their geometry.
        tolerance: how far above the lowest point of all feet a foot may be and still count as
            in contact, m.
        threshold: force from which a foot counts as in contact, N.

    Attributes:
        names: the f sole frames.
        links: k links whose poses the kernels need: sole frames and the frames of force sensors.
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
