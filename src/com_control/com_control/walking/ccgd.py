"""The algorithm of [CCGD], Table 2, as printed: both hips go to the CoM's target in small steps.

  G_error = G_ref - G,  hips += a G_error / |G_error|  (eqs 18 to 20), until |G_error| < epsilon

with the legs' angles by eqs 5 to 10 and G by eq. 17 at each step. After each step the "fixed" and
the "moving" foot change their roles; because the pelvis stays upright, both hips make the same step
and that changes nothing. With a fixed step a it can come no nearer than about a / 2: it is kept as
what com_control.walking.com_ik is compared with.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from com_control.walking.biped import Biped
from com_control.walking.dh_leg import dh_inverse, dh_lengths
from com_control.walking.exceptions import BipedError
from com_model.arrays import Array, as_array
from com_model.compiled import compiled
from com_model.sesc import kernels
from com_model.sesc.packing import pack

Indices = NDArray[np.int64]

STEP = 0.001
"""m, a of eq. 20 ([CCGD] Table 3)."""
PRECISION = 0.001
"""m, epsilon ([CCGD] Table 3)."""
_UPPER_BOUND = 10_000  # steps a point


class CcgdPath(NamedTuple):
    """Joint angles for N points.

    Attributes:
        q: (N, n) rad; NaN where a leg was too short, or the target was not met.
        pelvis: (N, 3) m, origin of the pelvis' frame.
        errors: (N,) m, distance of the CoM to its target.
        steps: (N,) steps that were made.
        reached: (N,) whether the CoM came as near as wanted.
    """

    q: Array
    pelvis: Array
    errors: Array
    steps: Indices
    reached: NDArray[np.bool_]


class Ccgd:
    """The algorithm for one robot.

    Args:
        biped: The robot; its legs must be built as the paper's, its root link be the pelvis.
        step: m, a of eq. 20.
        precision: m, epsilon.

    Raises:
        BipedError: The robot does not fit.
    """

    def __init__(self, biped: Biped, step: float = STEP, precision: float = PRECISION) -> None:
        if biped.pelvis != 0:
            raise BipedError("the root link must be the pelvis, from which both legs start")
        self.biped, self.step, self.precision = biped, step, precision
        self._lengths = np.array([dh_lengths(leg) for leg in biped.legs])
        self._hips = np.array([leg.points[0] for leg in biped.legs])
        self._joints = np.array([leg.joints for leg in biped.legs])
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
        targets = np.ascontiguousarray(as_array("com", com, (None, 3)))
        n = len(targets)
        poses = np.ascontiguousarray(as_array("feet", feet, (n, 2, 3, 4)))
        R = np.ascontiguousarray(as_array("R_pelvis", R_pelvis, (n, 3, 3)))
        pelvis = np.array(as_array("start", start, (3,)))
        result = CcgdPath(
            np.tile(self.biped.posture, (n, 1)),
            np.empty((n, 3)),
            np.empty(n),
            np.empty(n, dtype=np.int64),
            np.empty(n, dtype=bool),
        )
        robot = (self._lengths, self._hips, self._joints, self._robot)
        converge(targets, poses, R, pelvis, *robot, self.step, self.precision, *result)
        result.q[~result.reached] = np.nan
        return result


@njit
def reach(
    pelvis: Array,
    feet: Array,
    R: Array,
    lengths: Array,
    hips: Array,
    joints: Indices,
    angles: Array,
    q: Array,
) -> bool:
    """Sets the legs' joints in q (n,) for a place of the pelvis; False: a leg is too short."""
    fine = True
    for i in range(2):
        foot = feet[i]
        sole = np.empty((3, 3))
        d = np.empty(3)
        for k in range(3):
            d[k] = -hips[i, k]
            for j in range(3):
                d[k] += R[j, k] * (foot[j, 3] - pelvis[j])
                sole[k, j] = R[0, k] * foot[0, j] + R[1, k] * foot[1, j] + R[2, k] * foot[2, j]
        fine &= dh_inverse(sole, d[0], d[1], d[2], lengths[i], angles)
        for k in range(6):
            q[joints[i, k]] = angles[k]
    return fine


@compiled(nogil=True)
def converge(
    targets: Array,
    feet: Array,
    R: Array,
    pelvis: Array,
    lengths: Array,
    hips: Array,
    joints: Indices,
    robot: Array,
    step: float,
    precision: float,
    q: Array,
    places: Array,
    errors: Array,
    steps: Indices,
    reached: NDArray[np.bool_],
) -> None:
    """Runs Table 2 over N points; the arguments are those of Ccgd.solve_path and its results."""
    com, away, angles = np.empty(3), np.empty(3), np.empty(6)
    for i in range(len(targets)):
        count, error, fine = 0, np.inf, True
        while True:
            fine = reach(pelvis, feet[i], R[i], lengths, hips, joints, angles, q[i])
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
