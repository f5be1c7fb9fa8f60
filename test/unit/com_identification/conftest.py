"""HOAP-2 with wrong centres of mass, read by sensors whose truth Pinocchio computes."""

from functools import partial
from pathlib import Path

import numpy as np
import pinocchio
import pytest
from posture_recording import record_postures

from com_identification.regression.postures import make_posture
from com_identification.settings import SensorNoise
from com_identification.store.results import corrected_inertials
from com_model import RobotConfig, RobotModel
from com_model.urdf.editing import edit_inertials

CONFIG = (
    Path(__file__).resolve().parents[3] / "src/robot_descriptions/config/hoap2.yaml"
)
G = 9.81
QUIET = SensorNoise(0.0, 0.0, 0.0, 0.0)


class Robot:
    """A robot of the given URDF on flat feet, all its sensors by Pinocchio."""

    def __init__(self, xml, model, feet):
        self.oracle = pinocchio.buildModelFromXML(xml, pinocchio.JointModelFreeFlyer())
        self.data = self.oracle.createData()
        self.model, self.feet = model, feet
        self._joints = [
            self.oracle.joints[self.oracle.getJointId(n)] for n in model.joint_names
        ]

    def _q(self, q):
        full = pinocchio.neutral(self.oracle)
        full[[joint.idx_q for joint in self._joints]] = q
        return full

    def com(self, q):
        """In root axes."""
        return pinocchio.centerOfMass(self.oracle, self.data, self._q(q)).copy()

    def frame(self, q, name):
        """R, p of a link in root axes."""
        pinocchio.framesForwardKinematics(self.oracle, self.data, self._q(q))
        pose = self.data.oMf[self.oracle.getFrameId(name)]
        return pose.rotation.copy(), pose.translation.copy()

    def read(self, q, load, up=None):
        """Wrenches (f, 6) of the feet that share the weight as `load`, efforts (n,), up (3,)."""
        frames = [self.frame(q, foot.wrench_frame) for foot in self.feet]
        up = frames[int(np.argmax(load))][0][:, 2] if up is None else np.asarray(up)
        mass = pinocchio.computeTotalMass(self.oracle)
        weight = mass * G * up
        moment = np.cross(self.com(q), weight)
        forces = [fraction * weight for fraction in load]
        rest = moment - sum(
            np.cross(p, f) for (_, p), f in zip(frames, forces, strict=True)
        )
        wrenches = []
        self.oracle.gravity.linear = -G * up
        full = self._q(q)
        gravity = pinocchio.computeGeneralizedGravity(self.oracle, self.data, full)
        for foot, fraction, (R, _), f in zip(
            self.feet, load, frames, forces, strict=True
        ):
            local = np.concatenate((R.T @ f, R.T @ (fraction * rest)))
            J = pinocchio.computeFrameJacobian(
                self.oracle, self.data, full, self.oracle.getFrameId(foot.wrench_frame)
            )
            gravity = gravity - J.T @ local
            wrenches.append(foot.wrench_sign * local)
        torque = gravity[[joint.idx_v for joint in self._joints]]
        return np.array(wrenches), torque, up

    def posture(self, q, load, noise=QUIET, rng=None, samples=1, effort=False, up=None):
        """What the sensors read; the IMU is read where `up` is given."""
        wrenches, torque, true_up = self.read(q, load, up)
        rng, s = rng or np.random.default_rng(0), 1.0 / np.sqrt(samples)
        spread = np.repeat([noise.force, noise.moment], 3)
        return make_posture(
            self.model,
            q + rng.normal(0, 1, q.shape) * noise.position * s,
            wrenches + rng.normal(0, 1, wrenches.shape) * spread * s,
            torque + rng.normal(0, 1, torque.shape) * noise.effort * s
            if effort
            else None,
            up=None if up is None else true_up,
            samples=samples,
        )


@pytest.fixture(scope="session")
def hoap2():
    """Model and feet."""
    config = RobotConfig.from_file(CONFIG)
    return RobotModel.from_file(config.urdf), config.feet


@pytest.fixture(scope="session")
def perturbed(hoap2):
    """perturbed(rng, 0.005): HOAP-2 with CoMs of all bodies off by so much, and those (B, 3)."""
    model, feet = hoap2

    def make(rng, std, mass_std_fraction=0.0):
        bodies = model.bodies
        mass = bodies.mass * (1.0 + mass_std_fraction * rng.normal(size=bodies.count))
        com = bodies.first_moment / bodies.mass[:, None]
        com = com + rng.normal(0, std, com.shape)
        xml = edit_inertials(model.xml, corrected_inertials(model, mass, com))
        return Robot(xml, model, feet), mass, com

    return make


@pytest.fixture(scope="session")
def random_q(hoap2):
    """random_q(rng): joint positions anywhere in the limits."""
    model, _ = hoap2
    return lambda rng: rng.uniform(model.lower, model.upper)


@pytest.fixture
def record(perturbed):
    """record([q, ...], hold=2.0): see record_postures."""
    robot, _, _ = perturbed(np.random.default_rng(0), 0.005)
    return partial(record_postures, robot)


@pytest.fixture
def postures(random_q):
    """Three postures (3, n)."""
    rng = np.random.default_rng(7)
    return np.array([0.3 * random_q(rng) for _ in range(3)])


@pytest.fixture
def scatter():
    """Covariance (5, 5) of parameters, for the tests of plans."""
    root = np.random.default_rng(1).normal(size=(5, 5))
    return root @ root.T + 0.1 * np.eye(5)
