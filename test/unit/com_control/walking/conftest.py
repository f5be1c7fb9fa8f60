"""Robots on two legs, and Pinocchio as the oracle for sole poses and the CoM."""

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import numpy as np
import pinocchio
import pytest
from baselines.leg_ik import LegIk

from com_control.walking.biped import Biped
from com_model import RobotConfig, RobotModel, Sesc

CONFIGS = Path(__file__).resolve().parents[4] / "src" / "robot_descriptions" / "config"
EXAMPLES = "cmeel.prefix/share/example-robot-data/robots"
URDFS = {
    "talos": "talos_data/robots/talos_reduced.urdf",
    "icub": "icub_description/robots/icub.urdf",
    "romeo": "romeo_description/urdf/romeo.urdf",
}


class Oracle:
    """Poses of the soles and the CoM in the world by Pinocchio."""

    def __init__(self, biped, config, path):
        self.biped, self.config = biped, config
        self.model = pinocchio.buildModelFromUrdf(
            str(path), pinocchio.JointModelFreeFlyer()
        )
        self.data = self.model.createData()
        self.pelvis = biped.model.bodies.names[biped.pelvis]

    def place(self, q, R_pelvis, p_pelvis):
        """Sole poses (2, 3, 4) and CoM (3,) at joint positions (n,) and the pelvis' pose."""
        full = pinocchio.neutral(self.model)
        for name, value in zip(self.biped.model.joint_names, q, strict=True):
            joint = self.model.joints[self.model.getJointId(name)]
            if joint.nq == 2:  # continuous
                full[joint.idx_q : joint.idx_q + 2] = np.cos(value), np.sin(value)
            else:
                full[joint.idx_q] = value
        pinocchio.framesForwardKinematics(self.model, self.data, full)
        root = pinocchio.SE3(R_pelvis, p_pelvis) * self._frame(self.pelvis).inverse()
        full[:7] = pinocchio.SE3ToXYZQUAT(root)
        pinocchio.framesForwardKinematics(self.model, self.data, full)
        com = pinocchio.centerOfMass(self.model, self.data, full).copy()
        poses = [self._frame(leg.foot.frame) for leg in self.biped.legs]
        return np.array([pose.homogeneous[:3] for pose in poses]), com

    def _frame(self, name):
        return self.data.oMf[self.model.getFrameId(name)].copy()


def load(name):
    config = RobotConfig.from_file(CONFIGS / f"{name}.yaml")
    path = config.urdf
    if path is None:
        try:
            root = distribution("example-robot-data")
        except PackageNotFoundError:
            pytest.skip("example-robot-data is not installed")
        path = Path(str(root.locate_file(f"{EXAMPLES}/{URDFS[name]}")))
    biped = Biped.from_config(RobotModel.from_file(path), config)
    return biped, Oracle(biped, config, path)


@pytest.fixture(scope="session")
def robots():
    """Loads (biped, oracle) by name, once each."""
    loaded = {}

    def get(name):
        if name not in loaded:
            loaded[name] = load(name)
        return loaded[name]

    return get


def random_legs(biped, rng, spread=0.3):
    """Joint positions (n,): the posture with other legs, within the limits, knees bent."""
    q = biped.posture.copy()
    for leg in biped.legs:
        angles = leg.nominal + rng.uniform(-spread, spread, 6)
        straight = abs(leg.nominal[3]) - 0.1
        bend = np.sign(leg.nominal[3]) * (0.1 + rng.uniform(0.0, 2 * straight))
        angles[3] = bend
        q[leg.joints] = np.clip(angles, leg.lower, leg.upper)
    return q


@pytest.fixture(scope="session")
def shake():
    """random_legs."""
    return random_legs


@pytest.fixture(scope="session")
def stance_of():
    """stance_of(biped, fraction): m, half the feet's distance; a fraction of the CoM's height."""

    def measure(biped, fraction):
        soles = [LegIk(leg).pose(leg.nominal)[1] for leg in biped.legs]
        R, p = biped.root_in_pelvis()
        com = p + R @ Sesc(biped.model).com(biped.posture)
        return 0.5 * (soles[0] - soles[1])[1], fraction * (com - soles[0])[2]

    return measure


@pytest.fixture(scope="session")
def humanoid(robots, tmp_path_factory):
    """(biped, oracle) by name; "offset" has hips whose axes miss each other."""

    def get(name):
        if name != "offset":
            return robots(name)
        biped, oracle = robots("itu_biped")
        xml = biped.model.xml
        for side in "lr":
            for joint, xyz in (("hip_roll", "0.03 0 -0.05"), ("hip_pitch", "0 0.02 0")):
                start = xml.index(f'<joint name="{side}_{joint}_joint"')
                xml = xml[:start] + xml[start:].replace(
                    'xyz="0 0 0"', f'xyz="{xyz}"', 1
                )
        path = tmp_path_factory.mktemp("offset") / "offset.urdf"
        path.write_text(xml)
        made = Biped.from_config(RobotModel.from_urdf(xml), oracle.config)
        return made, type(oracle)(made, oracle.config, path)

    return get
