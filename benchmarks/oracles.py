"""Pinocchio and MuJoCo as oracles for the centre of mass: the same robot, the same answers."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import mujoco
import numpy as np
import pinocchio
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from com_model import RobotModel

Array = NDArray[np.float64]
UNLIMITED = {
    "prismatic": 1.0
}  # m; other joints without limits turn half a turn either way


def robot_size(model: RobotModel) -> float:
    """Length of the longest way from the root to a body's centre of mass along the joints, m.

    At least a link's largest radius of gyration: a quadrotor is one body around its origin.
    """
    bodies = model.bodies
    reach = np.zeros(bodies.count)
    for b in range(1, bodies.count):
        reach[b] = reach[bodies.parent[b]] + np.linalg.norm(bodies.d[b])
    heavy = bodies.mass > 0.0
    coms = np.linalg.norm(bodies.first_moment[heavy] / bodies.mass[heavy, None], axis=1)
    weights = np.where(model.link_masses > 0.0, model.link_masses, np.inf)
    traces = np.abs(
        np.trace(model.link_inertias, axis1=1, axis2=2)
    )  # some URDFs have them < 0
    gyration = np.sqrt(traces / (2.0 * weights))
    return max(float((reach[heavy] + coms).max()), float(gyration.max()))


def random_positions(model: RobotModel, rng: np.random.Generator) -> Array:
    """Joint positions within the limits; (n,) rad or m."""
    wide = np.array([UNLIMITED.get(kind, np.pi) for kind in model.joint_types])
    low = np.where(np.isfinite(model.lower), model.lower, -wide)
    high = np.where(np.isfinite(model.upper), model.upper, wide)
    return rng.uniform(low, high)


def random_pose(rng: np.random.Generator) -> tuple[Array, Array]:
    """Any orientation (3, 3), and a position within a few metres (3,)."""
    return Rotation.random(random_state=rng).as_matrix(), rng.normal(size=3)


class PinocchioOracle:
    """CoM and its Jacobian by Pinocchio, joints in the order of our model.

    Pinocchio takes mimic joints for free ones: they are set to what they must be, and their
    columns are added to those of the joints that they follow.
    """

    def __init__(self, model: RobotModel, path: Path, *, floating: bool) -> None:
        root = (pinocchio.JointModelFreeFlyer(),) if floating else ()
        self.model = pinocchio.buildModelFromUrdf(str(path), *root)
        self.data = self.model.createData()
        self.floating = floating
        self._bodies = model.bodies
        names = model.bodies.joint_names[1:]
        self._joints = [
            self.model.joints[self.model.getJointId(name)] for name in names
        ]
        self._n = model.n_joints
        # With a fixed base the root's mass belongs to the universe, which centerOfMass leaves out.
        self._fixed = None if floating else self.model.inertias[0]

    def positions(self, q: Array, R: Array, p: Array) -> Array:
        """Pinocchio's configuration of q (n,), with the base at R (3, 3), p (3,)."""
        bodies, result = self._bodies, pinocchio.neutral(self.model)
        if self.floating:
            result[:3], result[3:7] = p, Rotation.from_matrix(R).as_quat()
        for b, joint in enumerate(self._joints, start=1):
            angle = bodies.multiplier[b] * q[bodies.q_index[b]] + bodies.offset[b]
            if joint.nq == 2:  # a continuous joint
                result[joint.idx_q : joint.idx_q + 2] = np.cos(angle), np.sin(angle)
            else:
                result[joint.idx_q] = angle
        return result

    def com_and_jacobian(self, q: Array, R: Array, p: Array) -> tuple[Array, Array]:
        """CoM (3,) and Jacobian: (3, 6 + n) in world axes if floating, else (3, n)."""
        position = self.positions(q, R, p)
        columns = pinocchio.jacobianCenterOfMass(self.model, self.data, position, False)
        com = self.data.com[0].copy()
        J = np.zeros((3, self._n))
        for b, joint in enumerate(self._joints, start=1):
            J[:, self._bodies.q_index[b]] += (
                self._bodies.multiplier[b] * columns[:, joint.idx_v]
            )
        if self._fixed is None:
            return com, np.hstack([columns[:, :3] @ R.T, columns[:, 3:6] @ R.T, J])
        moving, fixed = self.data.mass[0], self._fixed.mass
        if moving == 0.0:  # one body: Pinocchio divides by zero
            return self._fixed.lever.copy(), J
        com = (moving * com + fixed * self._fixed.lever) / (moving + fixed)
        return com, J * (moving / (moving + fixed))


class MujocoOracle:
    """CoM and its Jacobian of the free-floating robot by MuJoCo, joints in our model's order.

    Raises:
        ValueError: MuJoCo does not load the robot, or changes its mass; the message says why.
    """

    def __init__(self, model: RobotModel, path: Path) -> None:
        mujoco.set_mju_user_warning(
            _ignore
        )  # else it writes a log into the working folder
        spec = mujoco.MjSpec.from_string(_bare_urdf(path))
        root = spec.worldbody.first_body()
        for joint in list(root.joints):
            spec.delete(joint)
        root.add_freejoint()
        self.model = spec.compile()
        self.data = mujoco.MjData(self.model)
        if abs(mujoco.mj_getTotalmass(self.model) - model.mass) > 1e-9 * model.mass:
            raise ValueError(
                f"MuJoCo's mass is {mujoco.mj_getTotalmass(self.model)} kg"
            )
        self._bodies, self._n = model.bodies, model.n_joints
        self._joints = [self.model.joint(name) for name in model.bodies.joint_names[1:]]

    def com_and_jacobian(self, q: Array, R: Array, p: Array) -> tuple[Array, Array]:
        """CoM (3,) and Jacobian (3, 6 + n) in world axes."""
        bodies, qpos = self._bodies, self.data.qpos
        # w, x, y, z
        qpos[:3], qpos[3:7] = p, np.roll(Rotation.from_matrix(R).as_quat(), 1)
        for b, joint in enumerate(self._joints, start=1):
            angle = bodies.multiplier[b] * q[bodies.q_index[b]] + bodies.offset[b]
            qpos[joint.qposadr[0]] = angle
        mujoco.mj_kinematics(self.model, self.data)
        mujoco.mj_comPos(self.model, self.data)
        columns = np.zeros((3, self.model.nv))
        mujoco.mj_jacSubtreeCom(self.model, self.data, columns, 1)
        J = np.zeros((3, self._n))
        for b, joint in enumerate(self._joints, start=1):
            J[:, bodies.q_index[b]] += (
                bodies.multiplier[b] * columns[:, joint.dofadr[0]]
            )
        return self.data.subtree_com[1].copy(), np.hstack(
            [columns[:, :3], columns[:, 3:6] @ R.T, J]
        )


def _ignore(message: str) -> None:
    """Takes MuJoCo's warnings of limits that it leaves out."""


def _bare_urdf(path: Path) -> str:
    """A URDF without shapes, told to keep every mass and inertia as it is."""
    robot = ET.fromstring(path.read_bytes())  # noqa: S314 - a file of the oracle package
    for element in robot.iter():
        for key in (
            "name",
            "link",
        ):  # MuJoCo would take a link "world" for the world itself
            if element.get(key) == "world":
                element.set(key, "world_link")
        for tag in ("visual", "collision", "transmission", "gazebo", "mujoco", "mimic"):
            for child in element.findall(tag):
                element.remove(child)
    options = ET.SubElement(robot, "mujoco")
    ET.SubElement(
        options,
        "compiler",
        {
            "fusestatic": "false",
            "balanceinertia": "false",
            "boundmass": "0",
            "boundinertia": "0",
            "autolimits": "true",
        },
    )
    return ET.tostring(robot, encoding="unicode")
