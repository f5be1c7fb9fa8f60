"""What the kernels need of a test: the start, the soles on their ground, the edges to fall over."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from com_identification.tip_over import kernels
from com_identification.tip_over.exceptions import ProtocolError
from com_identification.tip_over.protocol import DIRECTIONS, TipTest, soles
from com_model import Foot, RobotModel, SupportPolygon
from com_model.arrays import Array
from com_model.dynamics.kinematics import link_pose

_FACING = 0.5  # cosine: edges within 60 degrees of the direction count as on that side
_FLAT = 2e-3  # rad and m: how far the soles may be from lying on one ground


@dataclass(frozen=True)
class Case:
    """What the kernels need of a test.

    Attributes:
        test: The test.
        start: (n,) rad, where it starts.
        rate: (n,) 1 for the joints that turn, -1 for those opposite.
        limits: rad, least and largest angle that these reach.
        soles: The soles that stand.
        stance: The shares of the weight, and the edges on the side of the fall.
    """

    test: TipTest
    start: Array
    rate: Array
    limits: tuple[float, float]
    soles: kernels.Soles
    stance: kernels.Stance


def make_case(model: RobotModel, feet: tuple[Foot, ...], test: TipTest) -> Case:
    """Prepares a test.

    Raises:
        ProtocolError: A foot is not the robot's, or the soles do not lie on one ground.
    """
    standing = soles(test, feet)
    q = test.start_position(model)
    poses = [link_pose(model, q, foot.frame) for foot in standing]
    base_R, base_p = poses[0]
    R = np.array([base_R.T @ R for R, _ in poses])
    p = np.array([base_R.T @ (p - base_p) for _, p in poses])
    if np.abs(R[:, :2, 2]).max() > _FLAT or np.abs(p[:, 2]).max() > _FLAT:
        raise ProtocolError(
            f"{test.name}: the soles of {', '.join(test.feet)} do not lie on one ground in the "
            "start posture: fix the posture, or let one foot stand"
        )
    links = [model.link_index(foot.frame) for foot in standing]
    bodies, share = model.bodies, np.full(len(links), 1.0 / len(links))
    return Case(
        test,
        q,
        test.rate(model),
        test.limits(model),
        kernels.Soles(
            np.array(bodies.body_of_link[links]),
            np.array(bodies.R_body_link[links]),
            np.array(bodies.p_body_link[links]),
            R,
            p,
        ),
        kernels.Stance(share, _edges(R, p, standing, test)),
    )


def _edges(R: Array, p: Array, standing: list[Foot], test: TipTest) -> Array:
    """Edges (E, 3) of the support polygon on the side that the robot falls to."""
    polygon = SupportPolygon.from_soles(R, p, [f.corners for f in standing], (0, 0, 1))
    corners = polygon.vertices[:, :2]
    along = np.roll(corners, -1, axis=0) - corners
    out = np.column_stack((along[:, 1], -along[:, 0])) / np.linalg.norm(along, axis=1)[:, None]
    side = np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])[DIRECTIONS.index(test.falls)]
    edges = np.column_stack((out, (out * corners).sum(axis=1)))
    return np.ascontiguousarray(edges[out @ side > _FACING])
