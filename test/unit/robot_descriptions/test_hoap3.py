"""HOAP-3's URDF against the table that it is made from, by Pinocchio in the table's own frames."""

import csv
import subprocess
import sys
from pathlib import Path

import mujoco
import numpy as np
import pinocchio
import pytest
from scipy.spatial.transform import Rotation

from com_control.motion.motion import MotionLayout
from com_model import RobotConfig, RobotModel, Sesc, audit, link_pose

PACKAGE = Path(__file__).resolve().parents[3] / "src" / "robot_descriptions"
URDF = PACKAGE / "urdf" / "hoap3.urdf"
SCRIPT = PACKAGE.parents[1] / "tools" / "robots" / "make_hoap3_urdf.py"
TABLE = list(csv.DictReader((PACKAGE / "data" / "hoap3_links.csv").open()))
HOAP2 = {
    row["link"]: row
    for row in csv.DictReader((PACKAGE / "data/hoap2_links.csv").open())
}
MIRROR = np.diag([1.0, -1.0, 1.0])


@pytest.fixture(scope="module")
def model():
    return RobotModel.from_file(URDF)


@pytest.fixture(scope="module")
def config():
    return RobotConfig.from_file(PACKAGE / "config" / "hoap3.yaml")


@pytest.fixture(scope="module")
def source():
    """The robot in the frames of the table, angles as printed."""
    robot = pinocchio.Model()
    joints = {"base_link": 0}
    places = {"base_link": pinocchio.SE3.Identity()}
    for row in TABLE:
        xyz, rpy = (
            [float(row[k]) for k in keys.split()]
            for keys in (
                "origin_x_m origin_y_m origin_z_m",
                "roll_rad pitch_rad yaw_rad",
            )
        )
        turn = Rotation.from_euler("xyz", rpy).as_matrix()
        parent, place = joints[row["parent"]], places[row["parent"]]
        here = place * pinocchio.SE3(turn, np.array(xyz))
        if row["type"] == "revolute":
            axis = np.array([float(row[f"axis_{a}"]) for a in "xyz"])
            joint = pinocchio.JointModelRevoluteUnaligned(axis)
            joints[row["link"]] = robot.addJoint(parent, joint, here, row["joint"])
            places[row["link"]] = pinocchio.SE3.Identity()
        else:
            joints[row["link"]], places[row["link"]] = parent, here
        com = np.array([float(row[f"com_{a}_m"]) for a in "xyz"])
        inertia = pinocchio.Inertia(float(row["mass_kg"]), com, np.zeros((3, 3)))
        robot.appendBodyToJoint(joints[row["link"]], inertia, places[row["link"]])
    return robot


def source_com(robot, model, q):
    """Body by body, the fixed root's among them, which Pinocchio's own sum leaves out."""
    data, full = robot.createData(), np.zeros(robot.nq)
    for name, value in zip(model.joint_names, q, strict=True):
        full[robot.joints[robot.getJointId(name)].idx_q] = value
    pinocchio.forwardKinematics(robot, data, full)
    masses = [inertia.mass for inertia in robot.inertias]
    places = [
        pose * inertia.lever
        for pose, inertia in zip(data.oMi, robot.inertias, strict=True)
    ]
    return np.average(places, axis=0, weights=masses)


def test_the_urdf_is_what_the_tables_give():
    done = subprocess.run(
        [sys.executable, SCRIPT, "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_turned_frames_leave_the_robot_as_it_is(model, source):
    """CoM at random postures; the table's right angles have four digits."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        q = rng.uniform(model.lower, model.upper)
        np.testing.assert_allclose(
            Sesc(model).com(q), source_com(source, model, q), atol=5e-6
        )


def test_mass_and_height(model, config):
    """8.80 kg. [Cotton]'s robot stood with its CoM 289 mm above the soles, in what posture is not
    said; with the chest's CoM as the public URDF has it, 46 mm less."""
    assert model.mass == pytest.approx(8.8024, abs=1e-9)
    q = config.nominal_posture(model)
    R, p = link_pose(model, q, "l_sole")
    height = (R.T @ (Sesc(model).com(q) - p))[2]
    assert height == pytest.approx(0.289, abs=0.005)
    chest = model.link_index("CHEST")
    drop = model.link_masses[chest] * 0.125 / model.mass
    assert drop == pytest.approx(0.289 - 0.243, abs=0.001)
    assert model.link_coms[chest][2] == pytest.approx(0.084174)


def test_frames_are_parallel_and_the_arms_point_forward(model):
    q = np.zeros(model.n_joints)
    for name in model.link_names:
        np.testing.assert_allclose(link_pose(model, q, name)[0], np.eye(3), atol=1e-12)
    elbow, shoulder = (link_pose(model, q, link)[1] for link in ("L_EB", "L_SFE"))
    np.testing.assert_allclose(elbow - shoulder, [0.111, 0, 0], atol=1e-12)


@pytest.mark.parametrize(
    "limb", [row["link"][2:] for row in TABLE if row["link"][:2] == "L_"]
)
def test_left_mirrors_right(model, limb):
    left, right = (model.link_index(f"{side}_{limb}") for side in "LR")
    assert model.link_masses[left] == model.link_masses[right]
    np.testing.assert_allclose(
        model.link_coms[left], MIRROR @ model.link_coms[right], atol=5e-4
    )
    q = np.zeros(model.n_joints)
    origins = [link_pose(model, q, f"{side}_{limb}")[1] for side in "LR"]
    np.testing.assert_allclose(origins[0], MIRROR @ origins[1], atol=1e-12)


def test_left_and_right_have_the_same_range(model):
    """A joint about x or z mirrors its range, one about y keeps it."""
    for joint in model.joint_names:
        if "_L_" not in joint and not joint.startswith("L_"):
            continue
        left = model.joint_index(joint)
        right = model.joint_index(joint.replace("L_", "R_"))
        low, high = model.lower[right], model.upper[right]
        about_y = abs(model.bodies.axis[1 + left][1]) > 0.5
        expected = (low, high) if about_y else (-high, -low)
        np.testing.assert_allclose(
            (model.lower[left], model.upper[left]), expected, atol=1e-9
        )


def test_inertias_are_hoap2s_by_mass(model):
    for row in TABLE:
        if not float(row["mass_kg"]):
            continue
        like, link = HOAP2[row["like"]], model.link_index(row["link"])
        ratio = float(row["mass_kg"]) / float(like["mass_kg"])
        expected = [
            ratio * 1e-6 * float(like[f"{e}_kgmm2"]) for e in ("ixx", "iyy", "izz")
        ]
        np.testing.assert_allclose(
            np.diag(model.link_inertias[link]), expected, rtol=1e-8
        )


def test_repairs_and_assumptions_are_marked_in_the_urdf(comments):
    found = comments(URDF)
    for row in TABLE:
        text = " ".join(found[row["link"]])
        assert ("assumed: the inertia" in text) == bool(float(row["mass_kg"]))
        assert row["repaired"] in text


def test_audit_and_mujoco_accept_it():
    assert audit(URDF).ok
    assert mujoco.MjModel.from_xml_path(str(URDF)).njnt == 23


def test_motion_files_drive_the_21_joints_of_the_paper(config, model):
    layout = MotionLayout.from_file(PACKAGE / "config/motion/hoap3.yaml", config, model)
    assert len(layout.joints) == 21
    assert len(layout.columns) == 29
    bent = (
        layout.joints.index("L_LFE_L_KN_joint"),
        layout.joints.index("R_LFE_R_KN_joint"),
    )
    assert np.sign(layout.counts_per_rad[list(bent)]).tolist() == [-1.0, 1.0]
