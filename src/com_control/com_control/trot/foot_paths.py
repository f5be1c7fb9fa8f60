"""Shapes of foot trajectories: smooth steps and lifts, and the height of a swing foot."""

import numpy as np

from com_model.arrays import Array


def smooth_step(s: float) -> float:
    """0 to 1 for s from 0 to 1, speed and acceleration 0 at both ends: s^3 (10 - 15 s + 6 s^2)."""
    s = min(max(s, 0.0), 1.0)
    return s * s * s * (10.0 + s * (6.0 * s - 15.0))


def lift(s: float) -> float:
    """0 up to 1 and back to 0, speed and acceleration 0 at both ends: (4 s (1 - s))^3."""
    s = min(max(s, 0.0), 1.0)
    return (4.0 * s * (1.0 - s)) ** 3


def swing_height(up: Array, x: float, y: float, ground: float, clearance: float) -> float:
    """Height z of a swing foot in the trunk's frame that gives it a height over the ground.

    With u = up the height over the ground of a point p of the trunk's frame is u . p - ground:

        z = (ground + clearance - u_x x - u_y y) / u_z

    For R = Rz Ry(pitch) Rx(roll), u = (-sin pitch, cos pitch sin roll, cos pitch cos roll), and
    this is [Ding] eq. 19 (ground = -H_t), for all four legs: x and y are the foot's in the trunk's
    frame, so that the signs of 0.5 L and 0.5 W are those of the hips.

    Args:
        up: (3,) unit vector against gravity, trunk's axes, u_z > 0.
        x: m, of the foot.
        y: m, of the foot.
        ground: m, u . p of the feet on the ground.
        clearance: m, height over them.
    """
    return float((ground + clearance - up[0] * x - up[1] * y) / up[2])


def level_up(up: Array, most: float) -> Array:
    """Bounds the tilt of a unit vector against gravity to `most` rad."""
    aside = float(np.hypot(up[0], up[1]))
    if up[2] > 0.0 and aside <= np.sin(most):
        return up
    direction = up[:2] / aside if aside > 0.0 else np.zeros(2)
    return np.array([*(np.sin(most) * direction), np.cos(most)])
