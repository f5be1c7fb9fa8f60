"""Inverse dynamics of a robot with a moving base: which forces and torques a motion takes."""

import numpy as np
from numpy.typing import ArrayLike

from com_model.arrays import Array, as_array
from com_model.bodies import Bodies
from com_model.compiled import entry_point
from com_model.dynamics import inverse_dynamics_kernels as kernels
from com_model.model import RobotModel


class Dynamics:
    """Recursive Newton-Euler over the moving bodies of a robot, compiled.

    The reflected inertia of drives, armature (n,) kg m^2 or kg, counts as a torque of its own,
    armature * qdd, as MuJoCo has it. Calls work in memory of their own object: use one object per
    thread.
    """

    def __init__(self, model: RobotModel, armature: ArrayLike | None = None) -> None:
        n = model.n_joints
        self.model = model
        self.armature = np.zeros(n) if armature is None else as_array("armature", armature, (n,))
        self._robots = {trunk: pack(model.bodies, trunk) for trunk in (True, False)}
        self._bodies = np.empty((model.bodies.count, kernels.PASS_COLUMNS))
        joints, root = np.empty((4, n)), kernels.RootMotion(*np.empty((3, 3)))
        q, qd, qdd, tau = joints
        self._newton_euler = entry_point(
            kernels.newton_euler, self._robots[True], q, qd, qdd, root, self._bodies, tau
        )

    def inverse_dynamics(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        omega: ArrayLike,
        omega_dot: ArrayLike,
        specific_force: ArrayLike,
        trunk: bool = True,
    ) -> tuple[Array, Array]:
        """Computes the wrench on the root and the joint torques that a motion takes.

        M(q) [a; omega_dot; qdd] + h(q, qd, omega), all that acts from outside being the wrench and
        the torques: contacts, if any, must be taken off by the caller,
        tau_joint = tau - sum of J_i^T f_i.

        Args:
            q, qd, qdd: (n,) joint positions, rad or m, and their derivatives.
            omega: (3,) rad/s, angular velocity of the root link, in its axes.
            omega_dot: (3,) rad/s^2, its derivative.
            specific_force: (3,) m/s^2, acceleration of the root's origin minus gravity, in its
                axes: what an accelerometer there reads. At rest g upwards.
            trunk: False leaves out the masses of the root body.

        Returns:
            The wrench (6,), force N and moment N m about the root's origin, in the root's axes,
            and the torques (n,) N m or N, armature included. NaN in an argument spreads.
        """
        n, q = self.model.n_joints, np.ascontiguousarray(self.model.check_q(q))
        rate, rise = _rows((n,), qd=qd, qdd=qdd)
        root = kernels.RootMotion(
            *_rows((3,), omega=omega, omega_dot=omega_dot, specific_force=specific_force)
        )
        tau = np.empty(n)
        self._newton_euler(self._robots[trunk], q, rate, rise, root, self._bodies, tau)
        return self._bodies[0, kernels.FORCE : kernels.FORCE + 6].copy(), tau + self.armature * rise

    def root_wrenches(
        self,
        Q: ArrayLike,
        Qd: ArrayLike,
        Qdd: ArrayLike,
        omega: ArrayLike,
        omega_dot: ArrayLike,
        specific_force: ArrayLike,
    ) -> Array:
        """Computes the wrench on the root (N, 6) that a motion takes at N instants.

        Arguments and results are those of inverse_dynamics, with N rows each.
        """
        positions = as_array("Q", Q, (None, self.model.n_joints))
        count = len(positions)
        joints = _rows(positions.shape, Qd=Qd, Qdd=Qdd)
        root = _rows((count, 3), omega=omega, omega_dot=omega_dot, specific_force=specific_force)
        wrenches = np.empty((count, 6))
        own = (np.array(rows, order="C") for rows in (positions, *joints, *root))
        kernels.root_wrenches(self._robots[True], *own, wrenches)  # read-only ones compile again
        return wrenches


def _rows(shape: tuple[int, ...], **arrays: ArrayLike) -> list[Array]:
    """Arguments by name as arrays of a shape."""
    return [np.ascontiguousarray(as_array(name, v, shape)) for name, v in arrays.items()]


def pack(bodies: Bodies, root: bool = True) -> Array:
    """Lists the bodies for the kernels, (B, COLUMNS); without the root's masses if not `root`."""
    packed = np.zeros((bodies.count, kernels.COLUMNS))
    blocks = {
        kernels.PARENT: bodies.parent,
        kernels.TYPE: bodies.joint_type,
        kernels.DRIVER: bodies.q_index,
        kernels.MULTIPLIER: bodies.multiplier,
        kernels.OFFSET: bodies.offset,
        kernels.MASS: bodies.mass,
        kernels.TURN: bodies.R,
        kernels.SHIFT: bodies.d,
        kernels.AXIS: bodies.axis,
        kernels.MOMENT: bodies.first_moment,
        kernels.INERTIA: bodies.inertia,
    }
    for column, values in blocks.items():
        block = np.asarray(values, dtype=float).reshape(bodies.count, -1)
        packed[:, column : column + block.shape[1]] = block
    if not root:
        packed[0, [kernels.MASS, *range(kernels.MOMENT, kernels.INERTIA + 9)]] = 0.0
    return packed
