"""A robot's chain from postures in which it is about to tip ([Cotton] eqs 13 to 15).

Where a robot is about to tip over an edge of its support, its centre of mass is above that edge:
one equation n . (CoM - x) = 0, with n level and square to the edge and x a point of it. As
CoM = sum of R_k r_k, each is linear in the chain's vectors r_k, and no mass is needed.

The equations in print need reading: A_0 .. A_n in (13) to (15) are orientations in the world, the
products of (7) and (11), not the joints' own matrices; r has three times as many numbers as links,
so that m = n postures are too few; and with turning joints no number of postures gives the matrix
of (15) an inverse: each joint's axis hides one combination. `fit_chain` is therefore eq. 15 with a
pseudo-inverse that reports what was not observable, and it refuses to predict that: fitted to
few tip-over postures, r can be metres long. com_identification.regression.identify takes the
same postures as constraints together with what the URDF knows; use that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from baselines.muscolo import RankError
from com_identification.exceptions import IdentificationError, RefusedFitError
from com_identification.regression.postures import ComConstraint
from com_identification.regression.statics import Statics
from com_identification.tip_over.quasi_static import QuasiStatic
from com_model import Foot, RobotModel
from com_model.arrays import Array, FrozenArrays, as_array
from com_model.sesc.sesc import sesc_vectors

_OUTSIDE = 1e-6  # fraction of a row that may be outside of what the postures determine


@dataclass(frozen=True, eq=False)
class ChainFit(FrozenArrays):
    """A chain that was fitted to postures.

    Attributes:
        parameters: (K, 3) m, r_k in the bodies' frames: the shortest that fit.
        rank: Combinations of the 3 K numbers that the postures determine.
        condition: Largest over smallest singular value within that rank.
        residuals: (m,) m, of the equations.
        row_space: (rank, 3 K) orthonormal: what is observable.
    """

    parameters: Array
    rank: int
    condition: float
    residuals: Array
    row_space: Array

    @property
    def determined(self) -> bool:
        """Whether there are more equations than combinations: else the fit proves nothing."""
        return len(self.residuals) > self.rank


def edge_constraint(
    foot: Foot, edge: str, std: float, lean: float = 0.0
) -> ComConstraint:
    """Says that the CoM is above an edge of a sole.

    Args:
        foot: The foot that stays on the ground, flat.
        edge: "front", "back", "left" or "right" of the sole, in its frame.
        std: m, how well that is known.
        lean: rad, slope of the ground: positive where it falls towards that edge; the line of
            gravity then leans that way.

    Raises:
        IdentificationError: An unknown edge, or a foot without corners.
    """
    sides = {"front": (0, 1.0), "back": (0, -1.0), "left": (1, 1.0), "right": (1, -1.0)}
    if edge not in sides:
        raise IdentificationError(
            f"edge: expected one of {', '.join(sides)}, got {edge!r}"
        )
    if not len(foot.corners):
        raise IdentificationError(
            f"foot {foot.frame!r} has no corners: it has no edge to tip over"
        )
    axis, sign = sides[edge]
    normal = np.zeros(3)
    normal[axis] = sign
    normal[2] = np.tan(lean)
    length = float(np.linalg.norm(normal))
    offset = float((sign * foot.corners[:, axis]).max())
    return ComConstraint(foot.frame, normal / length, offset / length, std)


def chain_rows(
    model: RobotModel, Q: ArrayLike, constraints: Sequence[ComConstraint]
) -> tuple[Array, Array]:
    """Writes the equations of m postures in the r_k ([Cotton] eqs 13, 14).

      n . sum of R_k r_k = n . p_link + offset       (n in root axes; R_k relative to the root)

    Args:
        model: The robot; only its geometry is used. Sliding joints have no constant r_k.
        Q: (m, n) joint positions.
        constraints: m of them.

    Returns:
        (m, 3 K) and (m,) in m.

    Raises:
        ShapeError: Q is not (m, n).
        IdentificationError: The model has a sliding joint.
    """
    Q = as_array(
        "Q", Q, (len(constraints), model.n_joints), "One posture for each constraint"
    )
    if "prismatic" in model.joint_types:
        raise IdentificationError(
            "the chain's vectors are not constant: the robot has sliding joints"
        )
    statics = Statics(model)
    poses = statics.poses(Q)
    rows, right = np.empty((len(Q), 3 * model.bodies.count)), np.empty(len(Q))
    for i, limit in enumerate(constraints):
        R, p = statics.link_frames(poses, [model.link_index(limit.link)])
        normal = R[i, 0] @ limit.normal
        rows[i] = np.einsum("i,kij->kj", normal, poses.R[i]).ravel()
        right[i] = normal @ p[i, 0] + limit.offset
    return rows, right


def fit_chain(rows: ArrayLike, right: ArrayLike, tolerance: float = 1e-9) -> ChainFit:
    """Solves eq. 15 by the pseudo-inverse.

    Args:
        rows: (m, 3 K) of chain_rows; those of several robots' readings may be stacked.
        right: (m,) m.
        tolerance: Singular values below this fraction of the largest count as 0.

    Raises:
        ShapeError: The arrays do not fit.
    """
    rows = as_array("rows", rows, (None, None))
    right = as_array("right", right, (len(rows),))
    U, s, Vt = np.linalg.svd(rows, full_matrices=False)
    rank = int(np.sum(s > tolerance * s.max(initial=0.0)))
    r = Vt[:rank].T @ ((U.T @ right)[:rank] / s[:rank])
    condition = float(s[0] / s[rank - 1]) if rank else float("nan")
    return ChainFit(r.reshape(-1, 3), rank, condition, right - rows @ r, Vt[:rank])


def predict(fit: ChainFit, rows: ArrayLike) -> Array:
    """Predicts the right sides of other postures' rows, in m.

    Raises:
        RankError: The fitted postures did not determine what these ask for.
    """
    rows = as_array("rows", rows, (None, fit.parameters.size))
    outside = rows - (rows @ fit.row_space.T) @ fit.row_space
    fraction = np.linalg.norm(outside, axis=1) / np.linalg.norm(rows, axis=1)
    worst = int(np.argmax(fraction)) if len(fraction) else 0
    if len(fraction) and fraction[worst] > _OUTSIDE:
        raise RankError(
            f"posture {worst} asks for {fraction[worst]:.0%} that the fitted postures do not "
            f"determine (rank {fit.rank} of {fit.parameters.size}): fit more and other tip-over "
            "postures, or use them together with the URDF",
            fit.rank,
            fit.parameters.size,
        )
    return np.asarray(rows @ fit.parameters.ravel())


_SPARE = 2.0  # postures a combination that they determine, at least
# m: a link's CoM that lies further off is not inside a small humanoid's link
LARGEST_SHIFT = 0.05


@dataclass(frozen=True)
class PseudoInverse:
    """Eq. 15 with tip angles.

    Attributes:
        chain: The fitted vectors.
        error_deg: Mean absolute error of the angles that it was fitted to, degrees.
        com_shift: m, how far the CoM of the body that is most off would have to move.
        body: That body.
    """

    chain: ChainFit
    error_deg: float
    com_shift: float
    body: str

    def check(self) -> None:
        """Refuses what no robot can be.

        Raises:
            RefusedFitError: Too few postures are left to check it, or a CoM would lie far out.
        """
        reasons = []
        count, observable, unknown = (
            len(self.chain.residuals),
            self.chain.rank,
            self.chain.parameters.size,
        )
        if count < _SPARE * observable:
            reasons.append(
                f"{count} postures determine {observable} combinations of {unknown} numbers, so "
                "that hardly any is left to check them: take more, or use them with the URDF "
                "(posture_protocol.fit)"
            )
        if self.com_shift > LARGEST_SHIFT:
            reasons.append(
                f"the CoM of {self.body} would have to move by {self.com_shift:.2f} m to explain it"
            )
        if reasons:
            raise RefusedFitError(*reasons)


def pseudo_inverse(simulation: QuasiStatic, angles: ArrayLike) -> PseudoInverse:
    """Fits a chain to the tip angles of a protocol by eq. 15, the URDF's geometry alone.

    Args:
        simulation: The tests and the robot.
        angles: (T,) rad.

    Raises:
        ShapeError: angles has the wrong length.
    """
    angles = as_array(
        "angles", angles, (len(simulation.tests),), "One angle for each test"
    )
    Q = np.array(
        [c.start + a * c.rate for c, a in zip(simulation.cases, angles, strict=True)]
    )
    limits = [_edge(case.test.feet[0], case.soles.edges) for case in simulation.cases]
    chain = fit_chain(*chain_rows(simulation.model, Q, limits))
    moment, shift, body = _moments(simulation.model, chain.parameters)
    error = np.degrees(
        np.abs(simulation.tip_angles_near(angles, moment=moment) - angles)
    )
    return PseudoInverse(chain, float(np.nanmean(error)), shift, body)


def _edge(frame: str, edges: Array) -> ComConstraint:
    x, y, offset = edges[0]
    return ComConstraint(frame, np.array([x, y, 0.0]), float(offset), 0.001)


def _moments(model: RobotModel, parameters: Array) -> tuple[Array, float, str]:
    """First moments (B, 3) that the chain stands for, and the largest shift of a CoM.

    The chain's vectors are those of the URDF's plus the bodies' changes of first moment over M.
    """
    bodies = model.bodies
    change = model.mass * (parameters - sesc_vectors(bodies))
    heavy = bodies.mass > 0.0
    shift = np.linalg.norm(change[heavy], axis=1) / bodies.mass[heavy]
    worst = int(np.argmax(shift))
    names = np.array(bodies.names)[heavy]
    return bodies.first_moment + change, float(shift[worst]), str(names[worst])
