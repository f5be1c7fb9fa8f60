"""What others do about a humanoid's CoM that its feet's wrenches contradict.

Each assumes one cause: the rest check and the constant offset that the model's CoM is wrong, the
filter of [Piperakis] (SEROW) that an external force acts.

[Piperakis] S. Piperakis, M. Koskinopoulou, P. Trahanias, Nonlinear State Estimation for Humanoid
Robot Walking, IEEE Robotics and Automation Letters 3(4), 2018.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from com_estimation.humanoid.layout import Layout
from com_estimation.humanoid.windows import Window
from com_model.dynamics import GRAVITY

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Track:
    """A motion as the model sees it; world of the leg odometry, N samples.

    Attributes:
        com: (N, 3) m, of the URDF's robot.
        wrench: (N, 6) N and N m of all feet, about the world's origin.
        momentum: (N, 6) of the URDF's robot, about the world's origin.
        R_trunk: (N, 3, 3) of the trunk's triad.
        ground: (N,) m, height of the loaded soles.
    """

    period: float
    com: Array
    wrench: Array
    momentum: Array
    R_trunk: Array
    ground: Array


def centre_of_pressure(track: Track) -> Array:
    """(N, 2) m, on the ground."""
    f, t, z = track.wrench[:, :3], track.wrench[:, 3:], track.ground
    x = (-t[:, 1] + z * f[:, 0]) / f[:, 2]
    y = (t[:, 0] + z * f[:, 1]) / f[:, 2]
    return np.column_stack((x, y))


def rest_check(track: Track, seconds: float = 0.5) -> Array:
    """CoM (N, 3) by what the centre of pressure differs from its projection while it rests.

    The offset, horizontal, is that of the first seconds, and stays with the trunk.
    """
    n = round(seconds / track.period)
    offset = np.zeros(3)
    offset[:2] = np.mean(centre_of_pressure(track)[:n] - track.com[:n, :2], axis=0)
    return np.asarray(track.com + track.R_trunk @ (track.R_trunk[0].T @ offset))


def constant_offset(track: Track, windows: Sequence[Window], layout: Layout) -> Array:
    """CoM (N, 3) with a constant first moment of the trunk, by weighted least squares.

    The windows are those of com_estimation.humanoid; nothing else may be wrong.
    """
    columns = layout.culprits[0].columns
    L, e = np.diag(layout.culprits[0].slab ** -2.0), np.zeros(len(columns))
    for window in windows:
        A = window.A[:, columns]
        weighted = np.linalg.solve(window.R, A)
        L, e = L + weighted.T @ A, e + weighted.T @ window.y
    return np.asarray(track.com + track.R_trunk @ (np.linalg.solve(L, e) / layout.mass))


def external_force_filter(track: Track, layout: Layout) -> tuple[Array, Array]:
    """CoM (N, 3) and external force (N, 3) of an extended Kalman filter.

    State c, v, F. With the measured vertical force f, the centre of pressure p and the model's
    angular momentum L about the CoM, both horizontal axes as

        c'' = f (c - p) / (M (c_z - p_z)) + F / M - (L_y', -L_x') / (M (c_z - p_z)),
        c_z'' = f / M - g + F_z / M,        F' = white noise.

    Measured: the CoM by the kinematics, and its acceleration, which the same equation explains;
    here the smoothed second derivative of the kinematics.
    """
    dt, M, h = track.period, layout.mass, layout.height
    pressure, f = centre_of_pressure(track), track.wrench[:, 2]
    c, P = track.com, track.momentum[:, :3]
    angular = track.momentum[:, 3:] - np.cross(c, P)
    rate = _smoothed(np.gradient(angular, dt, axis=0), dt)[:, :2]
    seen = _smoothed(
        np.gradient(_smoothed(np.gradient(c, dt, axis=0), dt), dt, axis=0), dt
    )
    x = np.concatenate((c[0], np.zeros(6)))
    cov = np.diag([1e-4] * 3 + [1e-2] * 3 + [(0.01 * layout.weight) ** 2] * 3)
    noise = np.diag(
        [1e-10] * 3 + [(0.3 * dt) ** 2] * 3 + [(0.05 * layout.weight) ** 2 * dt] * 3
    )
    measured = np.diag([(2e-3 * h / 0.86) ** 2] * 3 + [0.2**2] * 3)
    H = np.zeros((6, 9))
    H[:3, :3] = np.eye(3)
    coms, forces = np.empty_like(c), np.empty_like(c)
    for k in range(len(c)):
        a, by_c = _acceleration(
            x, f[k], np.append(pressure[k], track.ground[k]), rate[k], M
        )
        F = np.eye(9)
        F[:3, 3:6], F[3:6, :3], F[3:6, 6:] = (
            dt * np.eye(3),
            dt * by_c,
            dt / M * np.eye(3),
        )
        x = np.concatenate((x[:3] + dt * x[3:6], x[3:6] + dt * a, x[6:]))
        cov = F @ cov @ F.T + noise
        a, by_c = _acceleration(
            x, f[k], np.append(pressure[k], track.ground[k]), rate[k], M
        )
        H[3:, :3], H[3:, 6:] = by_c, np.eye(3) / M
        gain = np.linalg.solve(H @ cov @ H.T + measured, H @ cov).T
        x = x + gain @ np.concatenate((c[k] - x[:3], seen[k] - a))
        cov = (np.eye(9) - gain @ H) @ cov
        coms[k], forces[k] = x[:3], x[6:]
    return coms, forces


def _acceleration(
    x: Array, f: float, p: Array, rate: Array, M: float
) -> tuple[Array, Array]:
    """CoM's acceleration (3,), and its derivative by the CoM (3, 3)."""
    height = x[2] - p[2]
    a = np.array([f * (x[0] - p[0]) - rate[1], f * (x[1] - p[1]) + rate[0], 0.0]) / (
        M * height
    )
    by_c = np.diag([f / (M * height)] * 2 + [0.0])
    by_c[:2, 2] = -a[:2] / height
    a += x[6:] / M
    a[2] += f / M - GRAVITY
    return a, by_c


def _smoothed(values: Array, dt: float, hertz: float = 10.0) -> Array:
    """A causal first-order low-pass."""
    out, gain = values.copy(), 1.0 - np.exp(-2.0 * np.pi * hertz * dt)
    for k in range(1, len(values)):
        out[k] = out[k - 1] + gain * (values[k] - out[k - 1])
    return out
