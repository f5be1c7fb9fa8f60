"""The algorithm of [CCGD], Table 2, as printed: both hips go to the CoM's target in small steps.

  G_error = G_ref - G,  hips += a G_error / |G_error|  (eqs 18 to 20), until |G_error| < epsilon

with the legs' angles by eqs 5 to 10 and G by eq. 17 at each step. After each step the "fixed" and
the "moving" foot change their roles; because the pelvis stays upright, both hips make the same step
and that changes nothing. With a fixed step a it can come no nearer than about a / 2. What a walk of
the method ccgd goes by is the same on any legs of closed form: com_ik.ComIk.solve_in_steps.

The leg's Denavit-Hartenberg table is alpha = (pi/2, pi/2, 0, 0, -pi/2, 0), a = (0, 0, l1, l2, 0,
l3), d = 0. n, o, a, p are the columns of the inverse of T_06: the hip seen from the foot. Eqs 5 to
10 as printed have lost roots and signs; docs/derivations.md, eq. 13, has what dh_inverse computes.
In the robot's angles, all 0 where the leg hangs straight down: yaw = th1 - pi/2, roll = th2 - pi/2,
pitch = th3 - pi, knee = th4, ankle pitch = th5, ankle roll = -th6.
"""

from math import atan2, cos, pi, sin, sqrt
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from com_control.exceptions import BipedError
from com_control.walking.biped import Biped, BipedLeg
from com_control.walking.com_ik import check_points
from com_model.arrays import Array, Indices, as_array
from com_model.compiled import compiled
from com_model.sesc import kernels
from com_model.sesc.sesc import pack

STEP = 0.001
"""m, a of eq. 20 ([CCGD] Table 3)."""
PRECISION = 0.001
"""m, epsilon ([CCGD] Table 3)."""
_UPPER_BOUND = 10_000  # steps a point
_STRAIGHT = 1e-12  # over 1, of the cosine of a knee that counts as straight
_EXACT = 1e-9


def dh_lengths(leg: BipedLeg) -> tuple[float, float, float]:
    """Lengths l1, l2, l3, m, of a leg that is built as the paper's.

    Raises:
        BipedError: It is not: axes z, x, y, y, y, x; hip, knee, ankle and sole straight below each
            other, the sole's axes parallel to the pelvis'.
    """
    pattern = np.eye(3)[[2, 0, 1, 1, 1, 0]]
    chain = [*leg.points[[0, 3, 4]], leg.p_sole]
    steps = np.diff(chain, axis=0)
    off = max(
        np.abs(leg.axes - pattern).max(),
        np.abs(steps[:, :2]).max(),
        np.abs(leg.points[:3] - leg.points[0]).max(),
        np.abs(leg.points[5] - leg.points[4]).max(),
        np.abs(leg.R_sole - np.eye(3)).max(),
    )
    if off > _EXACT or steps[:, 2].max() >= 0.0:
        raise BipedError(
            f"the {leg.side} leg is not that of [CCGD]: it must have the axes yaw z, roll x, pitch "
            "y, knee y, pitch y, roll x, with hip, knee, ankle and sole straight below each other"
        )
    l1, l2, l3 = -steps[:, 2]
    return float(l1), float(l2), float(l3)


@njit
def dh_inverse(
    R: Array, x: float, y: float, z: float, lengths: Array, q: Array
) -> bool:
    """Sets the robot's angles q (6,) rad for a sole pose in the hip's frame (eqs 5 to 10).

    Of two solutions for the ankle's roll it is the one with the hip above the foot.

    Args:
        R: (3, 3) orientation of the sole, in axes of the pelvis.
        x: m, of the sole from the hip, forward.
        y: m, to the left.
        z: m, up.
        lengths: (3,) l1, l2, l3, m.
        q: (6,) set; NaN where out of reach.

    Returns:
        Whether it is within reach.
    """
    l1, l2, l3 = lengths[0], lengths[1], lengths[2]
    # columns of the inverse: rows of T_06's rotation, which has the axes -z, -y, -x of the sole
    nx, ny, nz = -R[0, 2], -R[0, 1], -R[0, 0]
    ox, oy, oz = -R[1, 2], -R[1, 1], -R[1, 0]
    ax, ay, az = -R[2, 2], -R[2, 1], -R[2, 0]
    px = -(nx * x + ox * y + ax * z) + l3
    py = -(ny * x + oy * y + ay * z)
    pz = -(nz * x + oz * y + az * z)
    C = (px * px + py * py + pz * pz - l1 * l1 - l2 * l2) / (2.0 * l1 * l2)
    if not abs(C) <= 1.0 + _STRAIGHT:
        q[:6] = np.nan
        return False
    S = sqrt(max(0.0, 1.0 - C * C))
    th4 = atan2(S, C)
    th5 = atan2(pz, sqrt(px * px + py * py)) - atan2(l1 * S, l1 * C + l2)
    th6 = atan2(py, -px)
    s6, c6 = sin(th6), cos(th6)
    w = ax * s6 + ay * c6
    q[0] = atan2(-ox * s6 - oy * c6, -nx * s6 - ny * c6) - 0.5 * pi
    q[1] = atan2(sqrt(max(0.0, 1.0 - w * w)), w) - 0.5 * pi
    q[2] = atan2(az, -(ax * c6 - ay * s6)) - th4 - th5
    q[3], q[4], q[5] = th4, th5, -th6
    return True


class CcgdPath(NamedTuple):
    """Joint angles for N points."""

    q: Array  # (N, n) rad; NaN where a leg was too short, or the target was not met
    pelvis: Array  # (N, 3) m, origin of the pelvis' frame
    errors: Array  # (N,) m, distance of the CoM to its target
    steps: Indices  # (N,) steps that were made
    reached: NDArray[np.bool_]  # (N,) whether the CoM came as near as wanted


class Points(NamedTuple):
    """CoM (N, 3) m, orientation of the pelvis (N, 3, 3), poses of the soles (N, 2, 3, 4)."""

    com: Array
    R_pelvis: Array
    feet: Array


class DhLegs(NamedTuple):
    """Both legs: l1, l2, l3 (2, 3) m; hips (2, 3) m in the pelvis; joints (2, 6) in q."""

    lengths: Array
    hips: Array
    joints: Indices


class Ccgd:
    """The algorithm for one robot.

    Args:
        biped: The robot; its legs must be built as the paper's, its root link be the pelvis.
        step: m, a of eq. 20.
        precision: m, epsilon.

    Raises:
        BipedError: The robot does not fit.
    """

    def __init__(
        self, biped: Biped, step: float = STEP, precision: float = PRECISION
    ) -> None:
        if biped.pelvis != 0:
            raise BipedError(
                "the root link must be the pelvis, from which both legs start"
            )
        self.biped, self.step, self.precision = biped, step, precision
        self._legs = DhLegs(
            np.array([dh_lengths(leg) for leg in biped.legs]),
            np.array([leg.points[0] for leg in biped.legs]),
            np.array([leg.joints for leg in biped.legs]),
        )
        self._robot = pack(biped.model.bodies)

    def solve_path(
        self, com: ArrayLike, feet: ArrayLike, R_pelvis: ArrayLike, start: ArrayLike
    ) -> CcgdPath:
        """Solves the points of a path, each from where the one before ended.

        Args:
            com: (N, 3) m, the CoM in the world.
            feet: (N, 2, 3, 4) poses [R p] of the soles, left and right.
            R_pelvis: (N, 3, 3) orientation of the pelvis; the paper's is always upright.
            start: (3,) m, first place of the pelvis.

        Raises:
            ShapeError: An argument has the wrong shape.
        """
        targets, poses, R = check_points(com, feet, R_pelvis)
        n = len(targets)
        pelvis = np.array(as_array("start", start, (3,)))
        result = CcgdPath(
            np.tile(self.biped.posture, (n, 1)),
            np.empty((n, 3)),
            np.empty(n),
            np.empty(n, dtype=np.int64),
            np.empty(n, dtype=bool),
        )
        points = Points(targets, R, poses)
        converge(
            points, pelvis, self._legs, self._robot, self.step, self.precision, result
        )
        result.q[~result.reached] = np.nan
        return result


@njit
def set_legs(
    pelvis: Array, R: Array, feet: Array, legs: DhLegs, angles: Array, q: Array
) -> bool:
    """Sets the legs' joints in q (n,) for a place of the pelvis; False: a leg is too short."""
    fine = True
    for i in range(2):
        foot = feet[i]
        sole = np.empty((3, 3))
        d = np.empty(3)
        for k in range(3):
            d[k] = -legs.hips[i, k]
            for j in range(3):
                d[k] += R[j, k] * (foot[j, 3] - pelvis[j])
                sole[k, j] = (
                    R[0, k] * foot[0, j] + R[1, k] * foot[1, j] + R[2, k] * foot[2, j]
                )
        fine &= dh_inverse(sole, d[0], d[1], d[2], legs.lengths[i], angles)
        for k in range(6):
            q[legs.joints[i, k]] = angles[k]
    return fine


@compiled(nogil=True)
def converge(
    points: Points,
    pelvis: Array,
    legs: DhLegs,
    robot: Array,
    step: float,
    precision: float,
    result: CcgdPath,
) -> None:
    """Runs Table 2 over N points.

    Args:
        points: N targets: CoMs, pelvis' orientations, poses of the soles.
        pelvis: (3,) m, first place of the pelvis; overwritten.
        legs: Constants of both legs.
        robot: Packed by com_model.sesc.sesc; overwritten.
        step: m, a of eq. 20.
        precision: m, epsilon.
        result: Set.
    """
    targets, R, feet = points
    q, places, errors, steps, reached = result
    com, away, angles = np.empty(3), np.empty(3), np.empty(6)
    for i in range(len(targets)):
        count, error, fine = 0, np.inf, True
        while True:
            fine = set_legs(pelvis, R[i], feet[i], legs, angles, q[i])
            if not fine:
                break
            kernels.place_root(robot, R[i], pelvis, robot[kernels.AXES :, 0])
            kernels.find_com(q[i], robot, com)
            error = 0.0
            for k in range(3):
                away[k] = targets[i, k] - com[k]
                error += away[k] * away[k]
            error = np.sqrt(error)
            if error < precision or count >= _UPPER_BOUND:
                break
            for k in range(3):
                pelvis[k] += step * away[k] / error
            count += 1
        for k in range(3):
            places[i, k] = pelvis[k]
        errors[i], steps[i], reached[i] = error, count, fine and error < precision
