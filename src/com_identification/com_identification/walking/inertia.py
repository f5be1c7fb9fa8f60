"""Log-Cholesky parameters of pseudo-inertias: any values are a physically consistent body.

  J = [[S, h], [h^T, m]] = U U^T,   U = e^a [[V, t], [0, 1]],   V = [[e^d1, s12, s13],
                                                                     [0, e^d2, s23],
                                                                     [0, 0, e^d3]]
  m = e^(2a),   h = m t,   S = m (V V^T + t t^T),   I = tr(S) 1 - S

so t is the CoM itself. eta = (a, d1, d2, d3, s12, s13, s23, t); theta = (m, h, I about the body's
origin xx, xy, xz, yy, yz, zz). [Rucker and Wensing, Smooth parameterization of rigid-body
inertia]
"""

import numpy as np

from com_model import RobotModel
from com_model.arrays import Array
from com_model.bodies import Bodies, steiner
from com_model.urdf.editing import Inertial, edit_inertials

PARAMETERS = 10
_ROWS, _COLUMNS = (
    np.array([0, 1, 2, 0, 0, 1, 0, 1, 2]),
    np.array([0, 1, 2, 1, 2, 2, 3, 3, 3]),
)
"""Entries d, s, t of U."""
_I, _J = np.triu_indices(3)


def to_eta(bodies: Bodies) -> Array:
    """Returns the log-Cholesky parameters (K, 10) of the bodies with mass.

    Inertias that no body can have are enlarged as little as necessary.

    Args:
        bodies: of a model.
    """
    used = bodies.mass > 0.0
    m, h, inertia = bodies.mass[used], bodies.first_moment[used], bodies.inertia[used]
    t = h / m[:, None]
    spread = to_pseudo(
        np.ones(len(m)), 0.0 * t, inertia / m[:, None, None] - steiner(t)
    )
    values, axes = np.linalg.eigh(spread[:, :3, :3])
    # a radius of gyration is at least 1 mm
    values = np.maximum(values, np.maximum(1e-3 * values[:, 2:], 1e-3**2))
    spread = (axes * values[:, None, :]) @ axes.transpose(0, 2, 1)
    V = np.linalg.cholesky(spread[:, ::-1, ::-1])[:, ::-1, ::-1]
    entries = V[:, _ROWS[:6], _COLUMNS[:6]]
    entries[:, :3] = np.log(entries[:, :3])
    return np.column_stack([0.5 * np.log(m), entries, t])


def to_factor(eta: Array) -> Array:
    """Returns the factors U (K, 4, 4) of pseudo-inertias.

    Args:
        eta: (K, 10) log-Cholesky parameters.
    """
    U = np.zeros((len(eta), 4, 4))
    U[:, _ROWS, _COLUMNS], U[:, 3, 3] = (
        np.hstack([np.exp(eta[:, 1:4]), eta[:, 4:]]),
        1.0,
    )
    return np.asarray(np.exp(eta[:, 0])[:, None, None] * U)


def to_pseudo(m: Array, h: Array, inertia: Array) -> Array:
    """Returns pseudo-inertias J (K, 4, 4).

    Args:
        m: (K,) kg.
        h: (K, 3) kg m, first moments.
        inertia: (K, 3, 3) kg m^2, about the origin.
    """
    J = np.empty((len(m), 4, 4))
    half_trace = 0.5 * np.trace(inertia, axis1=1, axis2=2)[:, None, None]
    J[:, :3, :3] = half_trace * np.eye(3) - (inertia + inertia.transpose(0, 2, 1)) / 2.0
    J[:, 3, :3] = J[:, :3, 3] = h
    J[:, 3, 3] = m
    return J


def to_standard(J: Array) -> Array:
    """Returns the standard parameters theta (K, 10) of pseudo-inertias or their differentials.

    Args:
        J: (K, 4, 4).
    """
    S = J[:, :3, :3]
    inertia = np.trace(S, axis1=1, axis2=2)[:, None, None] * np.eye(3) - S
    return np.column_stack([J[:, 3, 3], J[:, :3, 3], inertia[:, _I, _J]])


def to_theta(eta: Array) -> Array:
    """Returns the standard parameters theta (K, 10).

    Args:
        eta: (K, 10) log-Cholesky parameters.
    """
    U = to_factor(eta)
    return to_standard(U @ U.transpose(0, 2, 1))


def theta_jacobian(eta: Array) -> Array:
    """Returns the derivatives of theta by eta, (K, 10, 10).

    Args:
        eta: (K, 10) log-Cholesky parameters.
    """
    U = to_factor(eta)
    result = np.empty((len(eta), PARAMETERS, PARAMETERS))
    result[:, :, 0] = 2.0 * to_theta(eta)
    for k, (i, j) in enumerate(zip(_ROWS, _COLUMNS, strict=True), start=1):
        dU = np.zeros_like(U)
        dU[:, i, j] = U[:, i, j] if i == j else U[:, 3, 3]
        dJ = dU @ U.transpose(0, 2, 1)
        result[:, :, k] = to_standard(dJ + dJ.transpose(0, 2, 1))
    return result


def split(theta: Array) -> tuple[float, Array, Array]:
    """Returns mass (kg), CoM (3,) m and inertia about it (3, 3) kg m^2.

    Args:
        theta: (10,) standard parameters.
    """
    m, com = float(theta[0]), theta[1:4] / theta[0]
    return m, com, theta[[4, 5, 6, 5, 7, 8, 6, 8, 9]].reshape(3, 3) - m * steiner(com)


def corrected_urdf(model: RobotModel, eta: Array) -> str:
    """Returns the text of the URDF with other inertials.

    The links of a body, which fixed joints connect, are distorted as one: with U and U' the
    body's factors before and after, each pseudo-inertia becomes A J A^T, A = U' U^-1. So all
    links stay physically consistent, and their sum is the requested one.

    Args:
        model: the robot, with its URDF's text.
        eta: (K, 10) log-Cholesky parameters of the bodies with mass.
    """
    bodies, change = model.bodies, np.zeros((model.bodies.count, 4, 4))
    before = to_factor(to_eta(bodies))
    change[bodies.mass > 0.0] = to_factor(eta) @ np.linalg.inv(before)
    inertials: dict[str, Inertial] = {}
    for link in np.flatnonzero(model.link_masses > 0.0):
        place, m, c = np.eye(4), model.link_masses[link], model.link_coms[link]
        place[:3, :3], place[:3, 3] = bodies.R_body_link[link], bodies.p_body_link[link]
        inertia = model.link_inertias[link] + m * steiner(c)
        A = np.linalg.solve(place, change[bodies.body_of_link[link]] @ place)
        J = A @ to_pseudo(np.array([m]), m * c[None], inertia[None]) @ A.T
        inertials[model.link_names[link]] = Inertial(*split(to_standard(J)[0]))
    return edit_inertials(model.xml, inertials)
