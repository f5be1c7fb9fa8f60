"""Statics of a tree of bodies as linear functions of masses and first moments.

Columns are (m_k, h_k) body by body, h_k = m_k c_k in the frame of body k: 4 B columns, the
order of Pinocchio's static regressor. With N the columns of the robot's first moment about the
root's origin, sum of m_k p_k + R_k h_k, and a = g up the specific force at rest, all in root
axes:

  force on the root's origin    F     = a sum of m_k
  moment about it               M     = (N theta) x a
  torque of a revolute joint    tau_j = (a x z_j) . (first moment of its subtree about o_j)
  force of a prismatic joint    tau_j = (a . z_j) (mass of its subtree)

The environment must apply F and M, the actuators tau less what contacts contribute to it
(contact_maps). All functions accept N configurations at once.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from com_model import RobotModel
from com_model.arrays import Array
from com_model.bodies import PRISMATIC, Bodies
from com_model.dynamics.tree_kernels import set_pose_batch, tree_of


@dataclass(frozen=True, eq=False)
class Poses:
    """Poses of the B bodies in N configurations, in root axes about the root's origin.

    Attributes:
        R: (N, B, 3, 3) orientations of the bodies.
        p: (N, B, 3) m, their origins, which are those of their joints.
        z: (N, B, 3) axes of the joints above them; zero for the root.
    """

    R: Array
    p: Array
    z: Array


class Statics:
    """Static wrenches and torques of a robot as functions of its configuration.

    Args:
        model: of the robot.

    Attributes:
        bodies: of the model, B of them.
    """

    def __init__(self, model: RobotModel) -> None:
        self.model = model
        self.bodies: Bodies = model.bodies
        self._tree = tree_of(model.bodies)
        count, n = self.bodies.count, model.n_joints
        index = np.arange(count)
        ends = self.bodies.subtree_end[:, None]
        self._below = (index[:, None] <= index) & (
            index < ends
        )  # (B, B): row's subtree has column
        self._below[0] = False  # nothing drives the root
        self._prismatic = self.bodies.joint_type == PRISMATIC
        drive = np.zeros((n, count))
        drive[self.bodies.q_index[1:], index[1:]] = self.bodies.multiplier[1:]
        # (n, B), contribution of the bodies' joints to the joints of q
        self._drive = drive

    @cached_property
    def parameters(self) -> Array:
        """(4 B,) parameters of the URDF: m_k (kg) and h_k (kg m)."""
        return np.column_stack((self.bodies.mass, self.bodies.first_moment)).ravel()

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Names of the bodies: the heaviest link of each, B names."""
        masses, owner = self.model.link_masses, self.bodies.body_of_link
        names = list(self.bodies.names)
        for b in range(self.bodies.count):
            links = np.flatnonzero(owner == b)
            heaviest = links[np.argmax(masses[links])]
            if masses[heaviest] > 0.0:
                names[b] = self.model.link_names[heaviest]
        return tuple(names)

    def poses(self, Q: Array) -> Poses:
        """Computes the poses of the bodies.

        Args:
            Q: (N, n) joint positions, rad or m.
        """
        R, p = (
            np.empty((len(Q), self.bodies.count, *shape)) for shape in ((3, 3), (3,))
        )
        R[:, 0], p[:, 0] = np.eye(3), 0.0
        set_pose_batch(np.ascontiguousarray(Q, dtype=np.float64), self._tree, R, p)
        return Poses(R, p, np.einsum("nbij,bj->nbi", R, self.bodies.axis))

    def first_moment(self, poses: Poses) -> Array:
        """Computes the columns of the first moment about the root's origin, (N, 3, 4 B).

        Args:
            poses: of N postures.
        """
        columns = np.concatenate((poses.p[..., None], poses.R), axis=3)  # (N, B, 3, 4)
        return columns.transpose(0, 2, 1, 3).reshape(
            len(poses.p), 3, 4 * self.bodies.count
        )

    def com(self, poses: Poses, theta: Array) -> Array:
        """Computes the CoM (N, 3) m, root axes, of masses and first moments (4 B,).

        Args:
            poses: Of N postures.
            theta: (4 B,) masses kg and first moments kg m.
        """
        return np.asarray(self.first_moment(poses) @ theta / (self.mass() @ theta))

    def mass(self) -> Array:
        """Computes the columns of the total mass, (4 B,)."""
        return np.tile([1.0, 0.0, 0.0, 0.0], self.bodies.count)

    def root_wrench(self, poses: Poses, a: Array) -> Array:
        """Computes the columns of the static wrench on the root's origin, (N, 6, 4 B).

        Args:
            poses: of N postures.
            a: (N, 3) m/s^2, g times the direction against gravity, root axes.
        """
        force = a[:, :, None] * self.mass()
        moment = np.cross(
            self.first_moment(poses), a[:, :, None], axisa=1, axisb=1, axisc=1
        )
        return np.concatenate((force, moment), axis=1)

    def torques(self, poses: Poses, a: Array) -> Array:
        """Computes the columns of the joint torques without contacts, (N, n, 4 B).

        Args:
            poses: Of N postures.
            a: (N, 3) m/s^2, g times the direction against gravity, root axes.
        """
        arm = np.cross(a[:, None], poses.z)
        turn = np.where(self._prismatic[:, None], 0.0, arm)  # (N, B, 3)
        reach = poses.p[:, None] - poses.p[:, :, None]  # (N, joint, body, 3)
        mass = np.einsum("nbi,nbki->nbk", turn, reach)
        mass += np.where(self._prismatic, np.einsum("nbi,ni->nb", poses.z, a), 0.0)[
            :, :, None
        ]
        moment = np.einsum("nbi,nkij->nbkj", turn, poses.R)
        columns = (
            np.concatenate((mass[..., None], moment), axis=3) * self._below[..., None]
        )
        return self._drive @ columns.reshape(len(a), self.bodies.count, -1)

    def wrench_and_torques(
        self, poses: Poses, a: Array, theta: Array
    ) -> tuple[Array, Array]:
        """Computes root_wrench() @ theta, (N, 6), and torques() @ theta, (N, n).

        Args:
            poses: Of N postures.
            a: (N, 3) m/s^2, g times the direction against gravity, root axes.
            theta: (4 B,) masses kg and first moments kg m.
        """
        theta = theta.reshape(-1, 4)
        mass = theta[:, 0]
        moments = mass[:, None] * poses.p + np.einsum(
            "nkij,kj->nki", poses.R, theta[:, 1:]
        )
        carried = self._below @ mass
        own = self._below @ moments - carried[:, None] * poses.p
        wrench = np.concatenate(
            (a * mass.sum(), np.cross(moments.sum(axis=1), a)), axis=1
        )
        turn = np.einsum("nbi,nbi->nb", np.cross(a[:, None], poses.z), own)
        push = np.einsum("nbi,ni->nb", poses.z, a) * carried
        return wrench, np.where(self._prismatic, push, turn) @ self._drive.T

    def link_frames(self, poses: Poses, links: list[int]) -> tuple[Array, Array]:
        """Computes the frames of links: R (N, f, 3, 3) and p (N, f, 3) m.

        Args:
            poses: Of N postures.
            links: Indices of f links.
        """
        body = self.bodies.body_of_link[links]
        R = poses.R[:, body] @ self.bodies.R_body_link[links]
        shift = np.einsum(
            "nfij,fj->nfi", poses.R[:, body], self.bodies.p_body_link[links]
        )
        return R, poses.p[:, body] + shift

    def contact_maps(self, poses: Poses, links: list[int]) -> tuple[Array, Array]:
        """Computes the contributions of wrenches on links, in their axes about their origins.

        At rest the actuators apply torques() less the contribution to the torques.

        Args:
            poses: of N postures.
            links: indices of f links.

        Returns:
            (N, f, 6, 6) to the wrench on the root's origin, and (N, f, n, 6) to the torques.
        """
        R, x = self.link_frames(poses, links)
        body = self.bodies.body_of_link[links]
        count = len(links)
        root = np.zeros((len(R), count, 6, 6))
        root[..., :3, :3] = root[..., 3:, 3:] = R
        root[..., 3:, :3] = np.cross(x[..., None], R, axisa=2, axisb=2, axisc=2)
        lever = np.cross(
            poses.z[:, None], x[:, :, None] - poses.p[:, None]
        )  # (N, f, B, 3)
        prismatic = self._prismatic[:, None]
        force = np.where(prismatic, poses.z[:, None], lever)
        moment = np.where(
            prismatic, 0.0, np.broadcast_to(poses.z[:, None], lever.shape)
        )
        carried = self._below[:, body].T[..., None]  # (f, B, 1)
        joints = np.concatenate((force @ R, moment @ R), axis=3) * carried
        return root, self._drive @ joints

    def carried_feet(self, links: list[int]) -> NDArray[np.bool_]:
        """Returns which joints carry which links: (n, f), True where link f is below joint j.

        Args:
            links: indices of f links.
        """
        below = self._below[:, self.bodies.body_of_link[links]].astype(float)
        return np.asarray(np.abs(self._drive) @ below > 0.0)


def prediction_rows(
    statics: Statics, poses: Poses, up: Array, parameters: Array
) -> Array:
    """Computes the derivatives of the horizontal CoM relative to the root, (N, 3, 4 B).

    With N theta the first moment about the root's origin and M the mass, dCoM = (1 - up up^T) (N
    - CoM 1^T) / M.

    Args:
        statics: of the robot.
        poses: of N postures.
        up: (N, 3) unit vectors against gravity in root axes.
        parameters: (4 B,) masses (kg) and first moments (kg m).
    """
    com, mass = statics.com(poses, parameters), statics.mass()
    slopes = (statics.first_moment(poses) - com[..., None] * mass) / float(
        mass @ parameters
    )
    return np.asarray(slopes - up[..., None] * (up[:, None] @ slopes))
