"""The planar method of [Muscolo]: total centre of mass from two postures, then that of each link.

The robot stands with both feet side by side and moves in the plane x (forward), z (up); P is the
point of the ground between the feet. A link that is tilted by phi from z towards x has its centre
of mass l along it and r across it, at x = l sin phi + r cos phi, z = l cos phi - r sin phi from
its joint.
Lengths may be in any one unit. docs/derivations.md lists which equations are printed wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from com_identification.exceptions import IdentificationError
from com_model.arrays import Array, FrozenArrays, as_array, freeze


class RankError(IdentificationError):
    """The postures do not determine what is asked for.

    Attributes:
        rank: How many combinations of the unknowns the data determine.
        needed: How many there would have to be.
    """

    def __init__(self, message: str, rank: int, needed: int) -> None:
        super().__init__(message)
        self.rank = rank
        self.needed = needed


@dataclass(frozen=True, eq=False)
class FeetReadings:
    """What the force/torque sensors of two feet at (0, -+half_width, 0) say.

    Attributes:
        forces: (2, 3) N, of the ground on foot 0 and foot 1.
        moments: (2, 3) N times the unit of length, about the feet's points.
        half_width: Half the distance between the feet.
    """

    forces: Array
    moments: Array
    half_width: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "forces", as_array("forces", self.forces, (2, 3)))
        object.__setattr__(self, "moments", as_array("moments", self.moments, (2, 3)))
        freeze(self)


@dataclass(frozen=True)
class Coefficients:
    """X = alpha + beta Z and Y = gamma + delta Z, the line that the total CoM is on (eqs 14, 15).

    Attributes:
        alpha: Length.
        beta: Slope of x against z; 0 on level ground.
        gamma: Length.
        delta: Slope of y against z; 0 on level ground.
    """

    alpha: float
    beta: float
    gamma: float
    delta: float


@dataclass(frozen=True)
class PlanarFoot:
    """The link on the ground, known beforehand.

    Attributes:
        mass: kg, m_u.
        across: x of its centre of mass from P, r_u.
        along: Height of its centre of mass, l_u.
        height: Height of the ankle's axis, U.
    """

    mass: float
    across: float
    along: float
    height: float


@dataclass(frozen=True, eq=False)
class TiltedPair(FrozenArrays):
    """What two tilts of one shape determine (eqs 19, 20).

    Attributes:
        across: x of the centre of mass of all above the ankle, upright, from the ankle: r_w.
        along: Its height above the ankle, upright: l_w.
        com_a: (2,) x and z of the total centre of mass in the upright posture A.
        com_b: (2,) in the tilted posture B.
    """

    across: float
    along: float
    com_a: Array
    com_b: Array


def coefficients(
    readings: FeetReadings,
    level: bool = True,
    internal_moment: ArrayLike = (0.0, 0.0, 0.0),
) -> Coefficients:
    """Finds the line that the total centre of mass is on ([Muscolo] eqs 10 to 13).

      alpha = -(M_0y + M_1y + M_2y) / F_z      beta  = (F_0x + F_1x) / F_z
      gamma = (M_0x + M_1x + M_2x) / F_z + half_width (F_1z - F_0z) / F_z
      delta = (F_0y + F_1y) / F_z              F_z   = F_0z + F_1z

    Args:
        readings: The sensors of both feet.
        level: True on level ground, where a robot at rest pushes sideways with nothing: beta and
            delta are then noise only, and taken for 0.
        internal_moment: (3,) M_2. Statics want 0: the motors' torques are inside the robot and
            have no moment about its centre of mass. [Muscolo] eq. 3 puts their sum here.

    Raises:
        ShapeError: internal_moment is not (3,).
        ValueError: The feet are not pressed onto the ground; a sign of a wrong sign.
    """
    force, moment = readings.forces.sum(axis=0), readings.moments.sum(axis=0)
    moment = moment + as_array("internal_moment", internal_moment, (3,))
    fz = float(force[2])
    if not fz > 0.0:
        raise ValueError(
            f"the ground pushes the feet up with {fz:g} N: expected the robot's weight. Give the "
            "force of the ground on the feet, z up"
        )
    uneven = float(readings.forces[1, 2] - readings.forces[0, 2])
    return Coefficients(
        alpha=float(-moment[1] / fz),
        beta=0.0 if level else float(force[0] / fz),
        gamma=float((moment[0] + readings.half_width * uneven) / fz),
        delta=0.0 if level else float(force[1] / fz),
    )


def tilted_pair(
    a: Coefficients, b: Coefficients, tilt: float, foot: PlanarFoot, total_mass: float
) -> TiltedPair:
    """Finds the total centre of mass from two tilts of one shape ([Muscolo] eqs 14 to 20).

    All above the ankle keeps its shape and is tilted by `tilt` in posture B. With
    K = m_u l_u + m_w U, c and s the cosine and sine of the tilt, eqs 14, 16 and 17 become

      m_w r_w - beta_A m_w l_w                            = m_2 alpha_A + beta_A K - m_u r_u
      m_w (c + beta_B s) r_w + m_w (s - beta_B c) l_w     = m_2 alpha_B + beta_B K - m_u r_u

    Args:
        a: Of the upright posture.
        b: Of the tilted one.
        tilt: rad, theta_t.
        foot: The link on the ground; both feet where the readings are of both.
        total_mass: kg, m_2, with the foot (eq. 18).

    Raises:
        RankError: The two postures are nearly the same.
        ValueError: The total mass is not more than the foot's.
    """
    if not total_mass > foot.mass:
        raise ValueError(
            f"the total mass ({total_mass:g} kg) is not more than the foot's ({foot.mass:g} kg): "
            "count the feet with it"
        )
    c, s = np.cos(tilt), np.sin(tilt)
    m_w = total_mass - foot.mass
    K = foot.mass * foot.along + m_w * foot.height
    matrix = m_w * np.array([[1.0, -a.beta], [c + b.beta * s, s - b.beta * c]])
    right = [
        total_mass * x.alpha + x.beta * K - foot.mass * foot.across for x in (a, b)
    ]
    if abs(np.linalg.det(matrix)) < 1e-9 * m_w**2:
        raise RankError(
            "the two postures are alike: tilt the second one by 5 degrees or more", 1, 2
        )
    across, along = np.linalg.solve(matrix, right)
    z = np.array([K + m_w * along, K + m_w * (along * c - across * s)]) / total_mass
    x = [a.alpha + a.beta * z[0], b.alpha + b.beta * z[1]]
    com_a, com_b = np.column_stack((x, z))
    return TiltedPair(float(across), float(along), com_a, com_b)


def four_by_four(
    shin_and_thigh: ArrayLike,
    foot: PlanarFoot,
    shin_length: float,
    tilts: tuple[float, float],
    com_b: ArrayLike,
    com_c: ArrayLike,
) -> tuple[Array, Array]:
    """Sets up the system for two links ([Muscolo] eqs 34 to 38), with eq. 36's sign put right.

    In posture b shin and thigh are in line, tilted by theta_b; in posture c the shin is upright
    and the thigh tilted by theta_c.

    Args:
        shin_and_thigh: (2,) kg, m_b of the shin and m_c of the thigh with all above, in this order.
        foot: The link on the ground.
        shin_length: L_b.
        tilts: rad, theta_b and theta_c.
        com_b: (2,) x and z of the total centre of mass in posture b.
        com_c: (2,) in posture c.

    Returns:
        The matrix A (4, 4) and the right side (4,) of A (r_b, l_b, r_c, l_c) = a. Rows: x and z in
        posture b, x and z in posture c.
    """
    m_b, m_c = as_array("shin_and_thigh", shin_and_thigh, (2,))
    (s_b, c_b), (s_c, c_c) = ((np.sin(t), np.cos(t)) for t in tilts)
    A = np.array(
        [
            [m_b * c_b, m_b * s_b, m_c * c_b, m_c * s_b],
            [-m_b * s_b, m_b * c_b, -m_c * s_b, m_c * c_b],
            [m_b, 0.0, m_c * c_c, m_c * s_c],
            [0.0, m_b, -m_c * s_c, m_c * c_c],
        ]
    )
    m_2 = foot.mass + m_b + m_c
    moved = m_2 * np.array([com_b, com_c], dtype=float) - foot.mass * np.array(
        [foot.across, foot.along]
    )
    x_b, z_b, x_c, z_c = moved.ravel()
    ankle, knee = (m_b + m_c) * foot.height, m_c * shin_length
    return A, np.array(
        [x_b - knee * s_b, z_b - ankle - knee * c_b, x_c, z_c - ankle - knee]
    )


def links_from_heights(A: ArrayLike, a: ArrayLike) -> tuple[float, float]:
    """Solves the heights alone for l_b and l_c, as the listing of [Muscolo] section 4.2 does.

    That takes r_b = r_c = 0 for granted: where they are not, l_b and l_c come out wrong.

    Args:
        A: (4, 4) of four_by_four.
        a: (4,) of four_by_four.
    """
    A, a = as_array("A", A, (4, 4)), as_array("a", a, (4,))
    l_b, l_c = np.linalg.solve(A[1::2, 1::2], a[1::2])
    return float(l_b), float(l_c)


def planar_links(
    masses: ArrayLike,
    lengths: ArrayLike,
    foot: PlanarFoot,
    tilts: ArrayLike,
    com: ArrayLike,
) -> Array:
    """Finds r and l of n links from k postures with known total centre of mass.

    For links 1 .. n with masses m_v, lengths L_v and tilts phi_v,

      m_2 X = m_u r_u + sum_v m_v (l_v sin phi_v + r_v cos phi_v) + M_v L_v sin phi_v
      m_2 Z = m_u l_u + m_w U + sum_v m_v (l_v cos phi_v - r_v sin phi_v) + M_v L_v cos phi_v

    with M_v the mass of the links above v: eqs 26 and 27 for any n, by least squares. Where Z is
    NaN only the first line is used, and 2 n or more postures are needed instead of n.

    Args:
        masses: (n,) kg, from the ankle upwards.
        lengths: (n,) or (n - 1,), joint to joint; the last link's does not matter.
        foot: The link on the ground.
        tilts: (k, n) rad, of each link from upright, in each posture.
        com: (k, 2) x and z of the total centre of mass; z NaN where it is not known.

    Returns:
        (n, 2) r_v and l_v.

    Raises:
        ShapeError: An argument has the wrong shape.
        RankError: The postures do not distinguish all links.
    """
    m = as_array("masses", masses, (None,))
    n = len(m)
    L = np.append(as_array("lengths", lengths, (None,)), 0.0)[:n]
    L = as_array("lengths", L, (n,), "Give the length of each link but the last")
    phi, com = as_array("tilts", tilts, (None, n)), as_array("com", com, (None, 2))
    com = as_array("com", com, (len(phi), 2), "One row a posture")
    s, c = np.sin(phi), np.cos(phi)
    above = (np.cumsum(m[::-1])[::-1] - m) * L
    rows = np.stack((np.dstack((m * c, m * s)), np.dstack((-m * s, m * c))), axis=1)
    m_w = m.sum()
    known = np.array(
        [foot.mass * foot.across, foot.mass * foot.along + m_w * foot.height]
    )
    right = (foot.mass + m_w) * com - known - np.column_stack((s @ above, c @ above))
    use = np.isfinite(right)
    A = rows.reshape(len(phi), 2, 2 * n)[use]
    size = float(np.abs(A).max()) if A.size else 1.0
    rank = int(np.linalg.matrix_rank(A / size, tol=1e-9)) if A.size else 0
    if rank < 2 * n:
        raise RankError(_too_few(rank, n, len(phi)), rank, 2 * n)
    return np.linalg.lstsq(A, right[use], rcond=None)[0].reshape(n, 2)


def _too_few(rank: int, n: int, postures: int) -> str:
    return (
        f"{postures} postures determine {rank} of {2 * n} numbers of {n} links: add postures in "
        f"which each joint is bent differently, {n} or more with the height of the total CoM, "
        f"{2 * n} or more without"
    )
