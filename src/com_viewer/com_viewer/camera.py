"""Camera pose from which the whole robot is in view."""

from typing import NamedTuple

import numpy as np

from com_model.arrays import Array

FOV = 0.8  # rad, vertical
FROM = np.array([1.0, -1.0, 0.45])  # direction from the robot to the camera, world


class Window(NamedTuple):
    """Part of the picture that is not covered, in fractions of half its width and height.

    Attributes:
        left: -1 is the picture's left edge.
        right: 1 is its right edge.
        bottom: -1 is its bottom edge.
        top: 1 is its top edge.
    """

    left: float = -1.0
    right: float = 1.0
    bottom: float = -1.0
    top: float = 1.0


WHOLE = Window()


def frame_box(
    low: Array, high: Array, aspect: float, window: Window = WHOLE
) -> tuple[Array, Array]:
    """Pose of a camera that sees a whole box in a window of its picture.

    With the camera's axes r (right), u (up), d (towards the camera), its distance D from the
    middle of the box, and t = tan(FOV / 2), a corner at c from the middle is seen at the
    fractions (c.r / aspect, c.u) / (t (D - c.d)) of half the picture: D is the least that fits
    all corners.

    Args:
        low: (3,) m, world, corner of the box.
        high: (3,) m, world, opposite corner.
        aspect: width over height of the picture.
        window: part of the picture to use.

    Returns:
        Position and look-at point, (3,) m each, world.
    """
    d = FROM / np.linalg.norm(FROM)
    r = np.cross([0.0, 0.0, 1.0], d)
    r /= np.linalg.norm(r)
    u = np.cross(d, r)
    signs = np.array(np.meshgrid(*[(-1.0, 1.0)] * 3)).reshape(3, -1).T
    # with some room around the robot
    corners = 1.15 * 0.5 * signs * (high - low)
    wide = np.tan(FOV / 2.0) * aspect * (window.right - window.left) / 2.0
    tall = np.tan(FOV / 2.0) * (window.top - window.bottom) / 2.0
    needed = (
        np.maximum(np.abs(corners @ r) / wide, np.abs(corners @ u) / tall) + corners @ d
    )
    distance = max(float(needed.max()), 0.1)
    right = np.tan(FOV / 2.0) * aspect * (window.right + window.left) / 2.0
    above = np.tan(FOV / 2.0) * (window.top + window.bottom) / 2.0
    look_at = 0.5 * (low + high) - distance * (right * r + above * u)
    return look_at + distance * d, look_at
