"""Resonance of a standing robot on its drives, and a reference that does not excite it.

The horizontal CoM c of a robot whose position drives are commanded to put it at u obeys

  c'' = w^2 (u - c) - 2 d w c',   w^2 = (1 / C - m g / h) / T,   2 d w = D / T

with the compliance C, the damping D and the effective mass T of the shape in which the joints
deflect under a horizontal force at the CoM, h above the soles (docs/derivations.md,
"Balancing").
"""

from dataclasses import dataclass

import numpy as np

from com_control.balance.soles import bounded
from com_model import RobotModel
from com_model.arrays import Array, FrozenArrays
from com_model.dynamics import GRAVITY
from com_model.dynamics.inverse_dynamics import Dynamics
from com_model.dynamics.link_frames import LinkMotions
from com_model.joint_path import critically_damped
from com_model.robot_config import Servo, ServoGains


@dataclass(frozen=True, eq=False)
class Resonance(FrozenArrays):
    """Resonance of the CoM along x and y of the balance frame.

    Attributes:
        frequency: (2,) rad/s, undamped.
        damping: (2,) damping ratio.
    """

    frequency: Array
    damping: Array

    @property
    def gain(self) -> float:
        """Feedback gain k = 3 d w / 4, 1/s; the smaller one of the two axes.

        s (s^2 + 2 d w s + w^2) + k w^2 has roots near -k and -(d w - k / 2) +- j w: they decay
        equally fast at k = 2 d w / 3, and at 2 d w the loop is unstable.
        """
        return 0.75 * float((self.damping * self.frequency).min())


def standing_resonance(
    model: RobotModel,
    servo: Servo,
    q: Array,
    soles: LinkMotions,
    com: tuple[float, Array],
) -> Resonance | None:
    """Resonance of a robot that stands on rigid soles.

    Joints of unknown gains that move no sole are assumed rigid.

    Args:
        model: the robot.
        servo: gains of the drives.
        q: (n,) joint positions, rad or m.
        soles: poses and Jacobians of the soles at q.
        com: height over the soles, m, and the horizontal Jacobian (2, n) of the CoM over the
            ground, m per rad or m.

    Returns:
        The resonance; None where the gains of a leg's joint are unknown, or too low to stand, and
        where no joint moves the CoM.
    """
    height, J = com
    drives = [servo.gains(name) or ServoGains() for name in model.joint_names]
    K, B = np.array([[each.stiffness, each.damping] for each in drives], dtype=float).T
    known = (K > 0.0) & np.isfinite(B)
    if not known[(soles.jacobian != 0.0).any(axis=(0, 1))].all():
        return None
    # stiffness of rigid joints: times the stiffest drive
    rigid = 1e6 * K[known].max()
    first, arms = soles.jacobian[0], soles.p - soles.p[0]
    apart = soles.jacobian - first  # of the soles against the first one
    apart[:, :3] -= np.cross(first[3:].T, arms[:, None]).transpose(0, 2, 1)
    H = np.diag(np.where(known, K, rigid)) + rigid * np.einsum(
        "fin,fim->nm", apart, apart
    )
    shapes = np.linalg.solve(H, J.T)  # (n, 2) per N
    compliance = np.einsum("in,ni->i", J, shapes)  # m/N
    if not (compliance > 0.0).all():  # no joint moves the CoM
        return None
    shapes = shapes / compliance  # that move the CoM by 1 m
    dynamics, arm = Dynamics(model), soles.p[0]
    mass = np.array([_moved_mass(dynamics, q, first, arm, shape) for shape in shapes.T])
    mass += servo.armature(model.joint_names) @ shapes**2
    squared = (1.0 / compliance - model.mass * GRAVITY / height) / mass
    if not (squared > 0.0).all():
        return None
    w = np.sqrt(squared)
    damping = np.where(known, B, 0.0) @ shapes**2 / (2.0 * mass * w)
    return Resonance(w, np.minimum(damping, 1.0))


def _moved_mass(
    dynamics: Dynamics, q: Array, sole: Array, arm: Array, shape: Array
) -> float:
    """Effective mass, kg: twice the kinetic energy at velocities `shape`, first sole at rest.

    It is v^T M v, with M v from inverse dynamics for the accelerations v from rest.

    Args:
        dynamics: of the robot.
        q: (n,) joint positions, rad or m.
        sole: (6, n) Jacobian of the first sole, the root at rest.
        arm: (3,) m, position of the first sole in the root's frame.
        shape: (n,) joint velocities for 1 m/s of the CoM.
    """
    linear, turn = np.split(-sole @ shape, 2)  # of the root
    linear = linear - np.cross(turn, arm)
    wrench, tau = dynamics.inverse_dynamics(
        [q, 0.0 * q, shape], [np.zeros(3), turn, linear]
    )
    return float(wrench @ np.concatenate((linear, turn)) + tau @ shape)


class ShapedReference:
    """Low-passes the horizontal reference at the resonance, and computes the command for it.

      r'' = w^2 (s - r) - 2 w r',  s = target + 2 v / w
      u = r + 2 d r' / w + r'' / w^2 = s - 2 (1 - d) r' / w

    With the resonance's w and d the CoM follows r without rocking, whatever the target does. r
    does not lag behind a target that moves at v.

    Attributes:
        position: r (2,) m.
        velocity: r' (2,) m/s.
    """

    def __init__(self) -> None:
        self.reset(np.zeros(2))

    def reset(self, position: Array) -> None:
        """Starts at a position, at rest.

        Args:
            position: (2,) m.
        """
        self.position, self.velocity = position.copy(), np.zeros(2)
        self._v, self._u = np.zeros(2), position.copy()

    def move(
        self,
        target: Array,
        velocity: Array,
        change: float,
        resonance: Resonance,
        dt: float,
    ) -> Array:
        """Advances the reference towards a target.

        Args:
            target: (2,) m.
            velocity: (2,) m/s, of the target.
            change: m/s, largest change of the reference's velocity in this step.
            resonance: of the robot as it stands.
            dt: s.

        Returns:
            u' (2,) m/s, the velocity to command.
        """
        w = resonance.frequency
        self._v = self._v + bounded(velocity - self._v, change)
        aim = target + 2.0 * self._v / w
        state = critically_damped(self.position, self.velocity, aim, w, dt)
        self.position, self.velocity = state
        before, self._u = (
            self._u,
            aim - 2.0 * (1.0 - resonance.damping) / w * self.velocity,
        )
        return (self._u - before) / dt if dt > 0.0 else np.zeros(2)
