"""The centre of mass of a trunk that turns about two feet, in closed form: [Ding] eqs 14 to 17.

The trunk with its standing legs is taken as one rigid body that turns about the midpoint o_g of
the two contacts, and the legs as massless. Axes g of [Ding]: z against gravity, x level and along
the diagonal of the standing feet. See docs/derivations.md, "Trunk on two feet".
"""

from dataclasses import dataclass

import numpy as np

from com_estimation.trunk.motion import cross
from com_model import RobotModel
from com_model.arrays import Array
from com_model.bodies import steiner

LEAST_R33 = 0.25
"""Cosine of the tilt beyond which the trunk counts as lying on its side, 75 degrees."""

_ITERATIONS = 50
_SETTLED = 1e-12  # m


@dataclass(frozen=True, eq=False)
class Trunk:
    """What [Ding] takes as known of the trunk."""

    mass: float  # kg
    inertia: Array  # (3, 3) kg m^2 about its centre of mass, root axes, I_b
    center: Array  # (3,) m, the geometric centre, root frame


@dataclass(frozen=True, eq=False)
class Support:
    """A trunk on two feet at one instant."""

    up: Array  # (3,) unit vector against gravity, root axes
    omega: Array  # (3,) rad/s, angular velocity of the trunk, root axes
    omega_dot: Array  # (3,) rad/s^2, its derivative
    contacts: Array  # (2, 3) m, contact points of the standing feet, root frame
    forces: Array  # (2, 3) N of the ground on them, root axes


@dataclass(frozen=True, eq=False)
class Offset:
    """Where the centre of mass is, as seen from the geometric centre."""

    xy: Array  # (2,) m, x_c and y_c in root axes; NaN where the equations have no solution
    by_force: Array  # (2, 2, 3) m/N, its derivative by the forces on the feet
    # m, of the geometric centre above the contacts: xy moves by so much per radian of error in
    # the direction of gravity
    height: float


def trunk_of(model: RobotModel, center: Array) -> Trunk:
    """The trunk of a model, its inertia moved to its centre of mass (Steiner)."""
    bodies = model.bodies
    mass = float(bodies.mass[0])
    com = bodies.first_moment[0] / mass
    return Trunk(mass, bodies.inertia[0] - mass * steiner(com), center)


def diagonal_axes(contacts: Array, up: Array) -> Array:
    """R_gb: from root axes to g, rows x (level, from the second contact to the first), y, z = up.

    Its elements are r_ij of [Ding] eq. 15; NaN when one contact is above the other. The contacts
    (2, 3) m and up (3,) are in root axes.
    """
    along = contacts[0] - contacts[1]
    level = along - (along @ up) * up
    length = np.sqrt(level @ level)
    x = level / length if length > 1e-6 else np.full(3, np.nan)
    return np.stack((x, cross(up, x), up))


def solve_offset(
    trunk: Trunk, support: Support, gravity: float, steiner_at_com: bool = False
) -> Offset:
    """Solves for the offset of the centre of mass, [Ding] eqs 14 to 17.

      p_d = -R_gb (mean of contacts - center),  r_i = contact i from o_g, g axes
      I_g = R_gb I_b R_gb^T + m (|p_d|^2 1 - p_d p_d^T)
      K = I_g omega_dot + omega x (I_g omega) - sum r_i x f_i
      [-r21 -r22; r11 r12] (x_c, y_c) = K_12 / (m g) - (-p_dy, p_dx)

    The determinant is r33, the cosine of the tilt; the offset is NaN when the trunk lies on its
    side, r33 < LEAST_R33. With steiner_at_com the inertia is moved by p_d + R_gb p_c, where the
    centre of mass is, instead of by p_d, where [Ding] takes it; by fixed-point iteration.
    """
    R = diagonal_axes(support.contacts, support.up)
    middle = support.contacts.mean(axis=0)
    p_d = -R @ (middle - trunk.center)
    arms = (support.contacts - middle) @ R.T
    A = np.array([[-R[1, 0], -R[1, 1]], [R[0, 0], R[0, 1]]])
    if not R[2, 2] >= LEAST_R33:
        return Offset(np.full(2, np.nan), np.full((2, 2, 3), np.nan), float(p_d[2]))
    inverse = np.linalg.inv(A)
    weight = trunk.mass * gravity
    moment = cross(arms, support.forces @ R.T).sum(axis=0)
    omega, omega_dot = R @ support.omega, R @ support.omega_dot
    level = np.array([-p_d[1], p_d[0]])

    def solve(r: Array) -> Array:
        inertia = R @ trunk.inertia @ R.T + trunk.mass * steiner(r)
        K = inertia @ omega_dot + cross(omega, inertia @ omega) - moment  # Euler's equation
        return np.asarray(inverse @ (K[:2] / weight - level))

    xy = solve(p_d)
    for _ in range(_ITERATIONS if steiner_at_com else 0):
        before, xy = xy, solve(p_d + R[:, :2] @ xy)
        if not np.abs(xy - before).max() > _SETTLED:
            break
    return Offset(xy, _by_force(inverse, arms, R, weight), float(p_d[2]))


def _by_force(inverse: Array, arms: Array, R: Array, weight: float) -> Array:
    """Derivative of the offset by each force: of -inverse (r_i x R f_i)_12 / (m g)."""
    turned = cross(arms[:, None, :], R.T[None, :, :])  # [foot, component of f] -> r_i x R e_j
    return -np.einsum("ab,ijb->iaj", inverse, turned[..., :2]) / weight
