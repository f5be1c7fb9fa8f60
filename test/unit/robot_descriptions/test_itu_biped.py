"""The biped like that of ITU: the heights of the paper, a leg like the other, and it stands."""

import csv
import subprocess
import sys
from pathlib import Path

import mujoco
import numpy as np
import pinocchio
import pytest

from com_model import audit, link_pose
from com_simulation.physics.world_builder import build_world

PACKAGE = Path(__file__).resolve().parents[3] / "src" / "robot_descriptions"
NAME = "itu_biped"
ROOT = PACKAGE.parents[1]
SCRIPT = ROOT / "tools" / "robots" / "make_itu_biped_urdf.py"
URDF = PACKAGE / "urdf" / "itu_biped.urdf"
JOINTS = ("hip_yaw", "hip_roll", "hip_pitch", "knee", "ankle_pitch", "ankle_roll")


def test_heights_are_those_of_the_paper(robot):
    model, config = robot
    oracle = pinocchio.buildModelFromUrdf(str(URDF), pinocchio.JointModelFreeFlyer())
    data, q = oracle.createData(), pinocchio.neutral(oracle)
    for name, position in config.posture.items():
        q[oracle.joints[oracle.getJointId(name)].idx_q] = position
    com = pinocchio.centerOfMass(oracle, data, q)
    pinocchio.framesForwardKinematics(oracle, data, q)
    for side, sign in (("l", 1), ("r", -1)):
        sole = data.oMf[oracle.getFrameId(f"{side}_sole")]
        np.testing.assert_allclose(
            sole.translation, [0, sign * 0.065, -0.826], atol=1e-6
        )
        np.testing.assert_allclose(sole.rotation, np.eye(3), atol=1e-12)
        assert com[2] - sole.translation[2] == pytest.approx(0.450, abs=1e-6)
    assert model.mass == pytest.approx(35.05, abs=1e-9)
    assert config.posture.keys() <= set(model.joint_names)


def test_joints_are_in_order(robot):
    model, _ = robot
    expected = [f"{side}_{joint}_joint" for side in "lr" for joint in JOINTS]
    assert list(model.joint_names) == expected


def test_both_legs_are_alike(robot):
    model, _ = robot
    for part in ("hip_yaw", "hip_roll", "thigh", "shank", "ankle", "foot"):
        left, right = (model.link_index(f"{side}_{part}") for side in "lr")
        assert model.link_masses[left] == model.link_masses[right]
        np.testing.assert_array_equal(model.link_coms[left], model.link_coms[right])
        np.testing.assert_array_equal(
            model.link_inertias[left], model.link_inertias[right]
        )


def test_a_bent_knee_is_positive_and_points_forward(robot):
    model, _ = robot
    assert model.lower[model.joint_index("l_knee_joint")] == 0.0
    q = model.neutral.copy()
    q[model.joint_index("l_knee_joint")] = 0.5
    foot = link_pose(model, q, "l_sole")[1]
    assert foot[0] < -0.1


def test_the_audit_finds_nothing(robot):
    assert audit(robot[0]).issues == ()


def test_it_stands_on_eight_balls(robot):
    model, config = robot
    world = build_world(model, config, urdf_path=config.urdf)
    assert world.notes == ()
    data = mujoco.MjData(world.mj)
    data.qpos[:], data.ctrl[:] = world.qpos, world.posture
    mujoco.mj_kinematics(world.mj, data)
    start = data.xpos[1].copy()
    mujoco.mj_step(world.mj, data, round(1.0 / world.mj.opt.timestep))
    assert data.ncon == 8
    np.testing.assert_allclose(data.xpos[1], start, atol=3e-3)
    assert np.abs(data.qpos[world.joint_qpos] - world.posture).max() < 3e-3


def test_only_what_the_paper_prints_has_it_as_source():
    rows = list(csv.DictReader((PACKAGE / "data" / "itu_biped_parameters.csv").open()))
    printed = {row["name"] for row in rows if row["source"].startswith("[CCGD]")}
    assert printed == {"hip_offset", "hip_height", "cog_height", "ball_radius"}
    assert {row["source"] for row in rows if row["name"] not in printed} == {"assumed"}


def run(script, *arguments):
    command = [sys.executable, str(script), *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False
    )


def test_committed_urdf_is_what_the_script_writes(tmp_path):
    copy = tmp_path / "itu_biped.urdf"
    assert run(SCRIPT, "--output", copy).returncode == 0
    assert copy.read_bytes() == URDF.read_bytes()
    assert run(SCRIPT, "--check").returncode == 0


def test_legs_that_are_too_short_are_refused(tmp_path):
    for path in (*PACKAGE.glob("data/itu_biped*"), *SCRIPT.parent.glob("*.py")):
        copy = tmp_path / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(path.read_text().replace("l1,0.42", "l1,0.30"))
    result = run(tmp_path / SCRIPT.relative_to(ROOT))
    assert result.returncode == 2
    assert (
        "legs of 0.3 m and 0.42 m cannot span 0.726 m: change hip_height"
        in result.stderr
    )
