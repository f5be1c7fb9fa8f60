"""The soles that stand: where they are in the root's frame, and how the joints move them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from com_control.balance import kernels
from com_control.balance.exceptions import BalanceError
from com_model.arrays import Array
from com_model.geometry.support import sole_points
from com_model.model import RobotModel
from com_model.robot_config import Foot

_NEAR = 0.02  # m, below which distances of the CoM from a sole do not count


@dataclass(frozen=True, eq=False)
class SolePoses:
    """Soles of f feet, in the root link's frame.

    Attributes:
        R: (f, 3, 3) orientations.
        p: (f, 3) m, origins; of a point foot the centre of its ball.
        jacobian: (f, 6, n) velocity of the origin over angular velocity, the root at rest.
    """

    R: Array
    p: Array
    jacobian: Array


class Soles:
    """Soles of some feet of a robot.

    Args:
        model: The robot.
        feet: At least one.

    Attributes:
        feet: The feet.
        joints: Those between the root and the soles, indices of q.

    Raises:
        BalanceError: No foot is given, or one is the root itself.
        UnknownNameError: A foot's frame is no link.
    """

    def __init__(self, model: RobotModel, feet: Sequence[Foot]) -> None:
        if not feet:
            raise BalanceError("no feet: name them in the robot's configuration, feet.<frame>")
        bodies = model.bodies
        links = [model.link_index(foot.frame) for foot in feet]
        paths = [bodies.path_to(bodies.body_of_link[link]) for link in links]
        for foot, path in zip(feet, paths, strict=True):
            if not path:
                raise BalanceError(
                    f"foot {foot.frame!r} is fixed to the root {model.root_link!r}: no joint can "
                    "move the robot over it"
                )
        self.feet = tuple(feet)
        self._middles = np.array([foot.corners.mean(axis=0) for foot in feet if len(foot.corners)])
        on_way = {int(bodies.q_index[body]) for path in paths for body in path}
        self.joints = np.array(sorted(on_way), dtype=np.int64)
        self._n = model.n_joints
        self._paths = np.full((len(feet), max(map(len, paths))), -1, dtype=np.int64)
        for row, path in zip(self._paths, paths, strict=True):
            row[: len(path)] = path
        R_link = np.ascontiguousarray(bodies.R_body_link[links])
        centers = np.array([foot.center for foot in feet])
        p_link = bodies.p_body_link[links] + np.einsum("fij,fj->fi", R_link, centers)
        self._links = R_link, np.ascontiguousarray(p_link)
        self._bodies = (
            np.array(bodies.joint_type, dtype=np.int64),
            np.array(bodies.q_index, dtype=np.int64),
            np.array(bodies.multiplier, dtype=float),
            np.array(bodies.offset, dtype=float),
            np.array(bodies.R, dtype=float),
            np.array(bodies.d, dtype=float),
            np.array(bodies.axis, dtype=float),
        )

    def at(self, q: ArrayLike) -> SolePoses:
        """Poses and Jacobians at joint positions (n,), rad or m."""
        f = len(self.feet)
        R, p, jacobian = np.empty((f, 3, 3)), np.empty((f, 3)), np.empty((f, 6, self._n))
        position = np.ascontiguousarray(q, dtype=float)
        kernels.soles(position, *self._bodies, self._paths, *self._links, R, p, jacobian)
        return SolePoses(R, p, jacobian)

    def points(self, poses: SolePoses) -> Array:
        """Corners of all soles (m, 3) m, in the root link's frame."""
        placed = zip(self.feet, poses.R, poses.p, strict=True)
        return np.concatenate([sole_points(R, p, foot.corners) for foot, R, p in placed])

    def shares(self, poses: SolePoses, com: Array, up: Array) -> Array:
        """Shares (f,) of the feet in telling where the ground is: most of the one below the CoM.

        A sole that carries next to nothing hangs on a leg that does not give, a little off the
        ground; it must not tell of the ground's slope. w_i = 1 / (d_i^2 + e^2)^2, sum 1, with the
        distance d_i along the ground from the CoM to the middle of the sole.

        Args:
            poses: Of the soles, all flat.
            com: (3,) m, in the root link's frame.
            up: (3,) unit vector against gravity, root axes.
        """
        middles = poses.p + np.einsum("fij,fj->fi", poses.R[:, :, :2], self._middles)
        away = com - middles
        squared = (away**2).sum(axis=1) - (away @ up) ** 2
        weights = 1.0 / (squared + _NEAR**2) ** 2
        return np.asarray(weights / weights.sum())
