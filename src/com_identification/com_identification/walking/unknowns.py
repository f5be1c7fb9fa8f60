"""The unknowns of a walk, their priors, and the coefficients of the rows as functions of them.

Masses and inertias of a body are log-Cholesky parameters of its pseudo-inertia: any values are a
physically consistent body.

  J = [[S, h], [h^T, m]] = U U^T,   U = e^a [[V, t], [0, 1]],   V = [[e^d1, s12, s13],
                                                                     [0, e^d2, s23],
                                                                     [0, 0, e^d3]]
  m = e^(2a),   h = m t,   S = m (V V^T + t t^T),   I = tr(S) 1 - S

so t is the CoM itself. eta = (a, d1, d2, d3, s12, s13, s23, t); theta = (m, h, I about the body's
origin xx, xy, xz, yy, yz, zz). [Rucker and Wensing, Smooth parameterization of rigid-body
inertia]
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import block_diag, null_space

from com_identification.walking.kernels import BODY, IMU
from com_model import RobotModel
from com_model.actuators import ActuatorModel
from com_model.arrays import Array, Flags, Indices
from com_model.bodies import Bodies, steiner
from com_model.dynamics.kinematics import body_poses
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


GAIN_STD = 0.03
KINDS = (
    *("armature", "coulomb", "viscous", "load_friction"),
    *("gain", "torque_bias", "encoder_zero"),
)
"""Of the joints, in the order of the columns; the first ones are never negative."""
FRICTIONS = KINDS[:4]


@dataclass(frozen=True)
class Scale:
    """Determines the common scale of masses and torques, which no motion shows.

    Attributes:
        mass: kg, of the robot as it walked; None: the mean gain is 1.
        std: kg, of the scales.
        payload: kg, put on between recordings that were compared.
    """

    mass: float | None = None
    std: float = 0.05
    payload: float | None = None


@dataclass(frozen=True, eq=False)
class Unknowns:
    """z with its prior, and x(z), the coefficients of the columns.

    z = (eta of the bodies with mass; armature, Coulomb, viscous, load friction (n each); gains
    about their mean (n - 1); torque bias, encoder bias (n each); accelerometer bias, mounting (3
    each)). The mean of the legs' gains is fixed at 1, as all coefficients times any number would
    fit equally well; of the legs' alone, as gains that are hardly observable (an arm that hangs)
    could compensate for legs that are all too low.

    Attributes:
        model: the robot, n joints and B bodies.
        legs: (n,) their joints.
        mean: (Z,) of the prior.
        std: (Z,) of the prior.
    """

    model: RobotModel
    legs: Flags
    mean: Array
    std: Array

    @property
    def bodies(self) -> Flags:
        """(B,) bodies with mass."""
        return np.asarray(self.model.bodies.mass > 0.0)

    @property
    def body_names(self) -> list[str]:
        """Names of the bodies with mass."""
        return [
            n
            for n, used in zip(self.model.bodies.names, self.bodies, strict=True)
            if used
        ]

    @property
    def _inertial(self) -> int:
        return PARAMETERS * int(self.bodies.sum())

    @cached_property
    def gain_directions(self) -> Array:
        """(n, n - 1) orthonormal, gains = 1 + this times their unknowns, the legs' mean fixed."""
        return np.asarray(null_space(self.legs[None, :].astype(float)))

    def joint_slice(self, kind: str) -> slice:
        """Returns where the values of a kind are in z.

        Args:
            kind: one of KINDS.
        """
        n, at = self.model.n_joints, self._inertial
        place = KINDS.index(kind)
        start = at + place * n - (place > KINDS.index("gain"))
        return slice(start, start + n - (kind == "gain"))

    def eta(self, z: Array) -> Array:
        """Returns the log-Cholesky parameters (K, 10) of the bodies with mass.

        Args:
            z: (Z,) the estimate.
        """
        return z[: self._inertial].reshape(-1, PARAMETERS)

    def theta(self, z: Array) -> Array:
        """Returns the standard parameters (B, 10) of all bodies; 0 of those without mass.

        Args:
            z: (Z,) the estimate.
        """
        result = np.zeros((self.model.bodies.count, BODY))
        result[self.bodies] = to_theta(self.eta(z))
        return result

    def joints(self, z: Array, kind: str) -> Array:
        """Returns the values (n,) of a kind; gains are relative to the mean gain of the legs.

        Args:
            z: (Z,) the estimate.
            kind: one of KINDS.
        """
        values = z[self.joint_slice(kind)]
        return 1.0 + self.gain_directions @ values if kind == "gain" else values

    def joint_stds(self, covariance: Array, kind: str) -> Array:
        """Returns the standard deviations (n,) of the values of a kind.

        Args:
            covariance: (Z, Z) of z.
            kind: one of KINDS.
        """
        own = covariance[self.joint_slice(kind), self.joint_slice(kind)]
        if kind == "gain":
            own = self.gain_directions @ own @ self.gain_directions.T
        return np.sqrt(np.maximum(np.diag(own), 0.0))

    def coefficients(self, z: Array) -> Array:
        """Returns the coefficients x (P,) of the columns.

        Args:
            z: (Z,) the estimate.
        """
        parts = [self.joints(z, kind) for kind in KINDS]
        return np.concatenate([self.theta(z).ravel(), *parts, z[-IMU:]])

    def jacobian(self, z: Array) -> Array:
        """Returns the derivatives of x by z, (P, Z).

        Args:
            z: (Z,) the estimate.
        """
        n, B = self.model.n_joints, self.model.bodies.count
        theta = np.zeros((B, BODY, self._inertial))
        for i, (b, own) in enumerate(
            zip(np.flatnonzero(self.bodies), theta_jacobian(self.eta(z)), strict=True)
        ):
            theta[b, :, PARAMETERS * i : PARAMETERS * (i + 1)] = own
        parts = (
            theta.reshape(BODY * B, -1),
            np.eye(len(FRICTIONS) * n),
            self.gain_directions,
            np.eye(2 * n + IMU),
        )
        return np.asarray(block_diag(*parts))

    def scaled(self, z: Array, rho: float) -> Array:
        """Multiplies all masses, frictions and torque biases by a factor.

        Gains are relative to the mean gain of the legs, which the factor multiplies, and stay.

        Args:
            z: (Z,) the estimate.
            rho: the factor.
        """
        result = z.copy()
        result[: self._inertial : PARAMETERS] += 0.5 * np.log(rho)
        for kind in ("armature", "coulomb", "viscous", "torque_bias"):  # mu: a ratio
            result[self.joint_slice(kind)] *= rho
        return result

    def scale_direction(self, z: Array) -> Array:
        """Returns the derivative of scaled(z, rho) by rho at 1, (Z,).

        Args:
            z: (Z,) the estimate.
        """
        h = 1e-5
        return np.asarray(
            (self.scaled(z, 1.0 + h) - self.scaled(z, 1.0 - h)) / (2.0 * h)
        )

    @property
    def gain_columns(self) -> slice:
        """Where the gains are in x."""
        n, start = self.model.n_joints, BODY * self.model.bodies.count
        start += len(FRICTIONS) * n
        return slice(start, start + n)

    def com(self, z: Array, q: Array) -> tuple[Array, Array]:
        """Returns the robot's CoM and its derivatives by z.

        c = sum_b (m_b p_b + R_b h_b) / m

        Args:
            z: (Z,) the estimate.
            q: (n,) rad or m.

        Returns:
            (3,) m in the root link's frame, and (3, Z).
        """
        (R, p), theta = body_poses(self.model.bodies, q), self.theta(z)
        mass = theta[:, 0].sum()
        com = (theta[:, 0] @ p + np.einsum("bij,bj->i", R, theta[:, 1:4])) / mass
        by_theta = np.zeros((3, *theta.shape))
        by_theta[:, :, 0] = (p - com).T / mass
        by_theta[:, :, 1:4] = R.transpose(1, 0, 2) / mass
        return com, by_theta.reshape(3, -1) @ self.jacobian(z)[: theta.size]

    def total_mass(self, z: Array) -> float:
        """Returns the robot's mass, kg.

        Args:
            z: (Z,) the estimate.
        """
        return float(np.exp(2.0 * self.eta(z)[:, 0]).sum())

    def mass_direction(self, z: Array) -> Array:
        """Returns the derivative of ln(total mass) by z, (Z,).

        Args:
            z: (Z,) the estimate.
        """
        result, m = np.zeros_like(z), np.exp(2.0 * self.eta(z)[:, 0])
        result[: self._inertial : PARAMETERS] = 2.0 * m / m.sum()
        return result


def make_unknowns(
    model: RobotModel, actuators: Sequence[ActuatorModel], legs: Flags
) -> Unknowns:
    """Makes the unknowns, with priors about the URDF.

    Args:
        model: the robot, as its URDF says.
        actuators: n drives, all of their values filled in.
        legs: (n,) joints of legs.
    """
    n, eta = model.n_joints, to_eta(model.bodies)
    trunk = (
        model.bodies.names[0] == np.array(model.bodies.names)[model.bodies.mass > 0.0]
    )
    shear = np.exp(eta[:, [1, 1, 2]])  # radii of gyration
    # radii of gyration; the trunk's may be those of a payload
    sizes = np.where(trunk, 0.30, 0.15)[:, None]
    # 10 % of a mass; a payload of 25 % is possible on the trunk
    mass = np.where(trunk, 0.25, 0.10)[:, None] / 2.0
    # m, of the trunk with a payload, and of others
    com = np.repeat(np.where(trunk, 0.040, 0.010)[:, None], 3, axis=1)
    inertial = np.hstack([mass, np.repeat(sizes, 3, axis=1), sizes * shear, com])
    names = ("rotor_inertia", "coulomb", "viscous", "load_friction")
    values, deviations = (
        [np.array([getattr(own, name + end) for own in actuators]) for name in names]
        for end in ("", "_std")
    )
    mean = [eta.ravel(), *values, np.zeros(3 * n - 1 + IMU)]
    # encoder bias, rad; accelerometer bias, m/s^2; mounting, rad
    std = [
        inertial.ravel(),
        *deviations,
        np.full(n - 1, GAIN_STD),
        np.array([own.torque_bias_std for own in actuators], dtype=float),
        np.full(n, np.deg2rad(0.3)),
        np.repeat([0.1, np.deg2rad(0.5)], 3),
    ]
    return Unknowns(model, legs, np.concatenate(mean), np.concatenate(std))


BLOCK = 5.0  # s, of rows that share their information matrix


@dataclass(frozen=True, eq=False)
class DesignMatrix:
    """Whitened rows of all windows.

    Attributes:
        X: (R, P).
        joint: (R,) index of the row's joint; -1: of the base.
        block: (R,) s, where its block of BLOCK s begins; recordings one after the other.
    """

    X: Array
    joint: Indices
    block: Array

    @property
    def base(self) -> Flags:
        """(R,) rows of the base, not of a joint."""
        return np.asarray(self.joint < 0)

    def take(self, rows: Flags | Indices | slice) -> "DesignMatrix":
        """Some of the rows.

        Args:
            rows: which, as a mask, indices or a slice.
        """
        return DesignMatrix(self.X[rows], self.joint[rows], self.block[rows])


FootLoads = tuple[Array, Flags]
"""Of a recording: loads (N, L) N of the feet, and which are surely in the air (N, L)."""
