"""The six unactuated rows of a robot's equations of motion, for a trunk that is not known.

With the legs known and the trunk unknown, about the root's origin and in root axes,

  sum_i [f_i; p_i x f_i] - ID_legs = Y theta,   theta = [m, m c (3), I_O (6)],
  Y = [ a, [omega_dot]x + [omega]x^2, 0 ;  0, -[a]x, L(omega_dot) + [omega]x L(omega) ],

where a is the specific force at the root's origin, L(w) I_O = I w with I_O = (xx, yy, zz, xy, xz,
yz), and ID_legs the base wrench of the robot with a trunk without mass. See docs/derivations.md.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

INERTIA_ORDER = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
"""Places in the matrix of the six numbers of I_O."""


def skew(v: Array) -> Array:
    """[v]x, so that [v]x w = v x w."""
    x, y, z = v.tolist()
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def inertia_columns(w: Array) -> Array:
    """L(w), (3, 6): I w = L(w) (xx, yy, zz, xy, xz, yz)."""
    x, y, z = w.tolist()
    return np.array([[x, 0, 0, y, z, 0], [0, y, 0, x, 0, z], [0, 0, z, 0, x, y]], dtype=np.float64)


def trunk_rows(specific_force: Array, omega: Array, omega_dot: Array) -> Array:
    """Y (6, 10): the wrench that moves the trunk, by theta.

    Args:
        specific_force: (3,) m/s^2 at the root's origin, root axes, gravity included.
        omega: (3,) rad/s.
        omega_dot: (3,) rad/s^2.
    """
    Y = np.zeros((6, 10))
    spin = skew(omega)
    Y[:3, 0] = specific_force
    Y[:3, 1:4] = skew(omega_dot) + spin @ spin
    Y[3:, 1:4] = -skew(specific_force)
    Y[3:, 4:] = inertia_columns(omega_dot) + spin @ inertia_columns(omega)
    return Y


def foot_wrench(points: Array, forces: Array) -> Array:
    """sum_i [f_i; p_i x f_i], (6,) N and N m.

    Args:
        points: (k, 3) m, contact points.
        forces: (k, 3) N.
    """
    wrench = np.zeros(6)
    for point, force in zip(points, forces, strict=True):
        wrench[:3] += force
        wrench[3:] += skew(point) @ force
    return wrench
