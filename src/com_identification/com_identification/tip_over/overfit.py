"""The chain that tip-over postures give by the pseudo-inverse ([Cotton] eq. 15), and its refusal.

[Cotton] VI.B solves the SESC's vectors r_k from postures in which a robot is about to tip, without
its masses. Sixteen postures do not tell 78 numbers: some r fits them all, but only the differences
from the tree that masses can give say whether it is one of a robot.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from com_identification.regression.postures import ComConstraint
from com_identification.tip_over.chain_fit import ChainFit, chain_rows, fit_chain
from com_identification.tip_over.exceptions import RefusedFitError
from com_identification.tip_over.quasi_static import QuasiStatic
from com_model import RobotModel
from com_model.arrays import Array, as_array
from com_model.sesc.packing import sesc_vectors

_SPARE = 2.0  # postures a combination that they tell, at least
LARGEST_SHIFT = 0.05  # m: a link's CoM that lies further off is not inside a small humanoid's link


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
        count, told, unknown = (
            len(self.chain.residuals),
            self.chain.rank,
            self.chain.parameters.size,
        )
        if count < _SPARE * told:
            reasons.append(
                f"{count} postures tell {told} combinations of {unknown} numbers, so that hardly "
                "any is left to check them: take more, or use them together with the URDF "
                "(posture_protocol.fit)"
            )
        if self.com_shift > LARGEST_SHIFT:
            reasons.append(
                f"the CoM of {self.body} would have to move by {self.com_shift:.2f} m to explain it"
            )
        if reasons:
            raise RefusedFitError(tuple(reasons))


def pseudo_inverse(lab: QuasiStatic, angles: ArrayLike) -> PseudoInverse:
    """Fits a chain to the tip angles of a protocol by eq. 15, the URDF's geometry alone.

    Args:
        lab: The tests and the robot.
        angles: (T,) rad.

    Raises:
        ShapeError: angles has the wrong length.
    """
    angles = as_array("angles", angles, (len(lab.tests),), "One angle for each test")
    Q = np.array([c.start + a * c.rate for c, a in zip(lab.cases, angles, strict=True)])
    limits = [_edge(case.test.feet[0], case.stance.edges) for case in lab.cases]
    chain = fit_chain(*chain_rows(lab.model, Q, limits))
    moment, shift, body = _moments(lab.model, chain.parameters)
    error = np.degrees(np.abs(lab.tip_angles_near(angles, moment=moment) - angles))
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
