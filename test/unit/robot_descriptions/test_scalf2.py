"""SCALF-II: the kinematics of the paper, the masses that were asked for, and it stands."""

import csv
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import mujoco
import numpy as np
import pinocchio
import pytest

from com_model import RobotConfig, RobotModel, audit, link_pose, quadruped_legs
from com_simulation.physics.world_builder import build_world

PACKAGE = Path(__file__).resolve().parents[3] / "src" / "robot_descriptions"
SCRIPT = PACKAGE.parents[1] / "tools" / "robots" / "make_scalf2_urdf.py"
LEG_MASS = {"scalf2": 3.0, "scalf2_heavy": 25.0}  # kg
LEGS = {
    "lf": (1, 1),
    "rf": (-1, 1),
    "lh": (1, -1),
    "rh": (-1, -1),
}  # lambda; front or hind

# [Ding] Table I
L0, L1, L2, D2 = 0.045, 0.45, 0.4, 0.057
LENGTH, WIDTH, TRUNK_MASS = 1.26, 0.62, 300.0


def urdf(name):
    return PACKAGE / "urdf" / f"{name}.urdf"


@pytest.fixture(params=LEG_MASS)
def robot(request):
    """Model, configuration and the mass of a leg."""
    config = RobotConfig.from_file(PACKAGE / "config" / f"{request.param}.yaml")
    return RobotModel.from_file(config.urdf), config, LEG_MASS[request.param]


def eq_1(theta, lateral):
    """Foot in the frame of the hip ([Ding] eq. 1)."""
    (s0, s1, _), (c0, c1, _) = np.sin(theta), np.cos(theta)
    s12, c12 = np.sin(theta[1] + theta[2]), np.cos(theta[1] + theta[2])
    down = L0 + L1 * c1 + L2 * c12
    return np.array(
        [
            -L1 * s1 - L2 * s12,
            s0 * down + lateral * D2 * c0,
            -c0 * down + lateral * D2 * s0,
        ]
    )


def eq_2(theta, lateral):
    """Its derivative by the angles ([Ding] eq. 2, without the transposition)."""
    (s0, s1, _), (c0, c1, _) = np.sin(theta), np.cos(theta)
    s12, c12 = np.sin(theta[1] + theta[2]), np.cos(theta[1] + theta[2])
    down, out = L0 + L1 * c1 + L2 * c12, lateral * D2
    return np.array(
        [
            [0.0, -L1 * c1 - L2 * c12, -L2 * c12],
            [c0 * down - out * s0, -L1 * s0 * s1 - L2 * s0 * s12, -L2 * s0 * s12],
            [s0 * down + out * c0, L1 * c0 * s1 + L2 * c0 * s12, L2 * c0 * s12],
        ]
    )


@pytest.mark.parametrize("leg", LEGS)
def test_the_foot_is_where_the_paper_has_it(robot, leg):
    model, *_ = robot
    lateral, longitudinal = LEGS[leg]
    hip = np.array([longitudinal * LENGTH / 2, lateral * WIDTH / 2, 0.0])
    joints = [
        model.joint_index(f"{leg}_{joint}_joint") for joint in ("haa", "hfe", "kfe")
    ]
    for q in np.random.default_rng(5).uniform(-np.pi, np.pi, (50, model.n_joints)):
        foot = link_pose(model, q, f"{leg}_foot")[1]
        np.testing.assert_allclose(foot - hip, eq_1(q[joints], lateral), atol=1e-12)


@pytest.mark.parametrize("leg", LEGS)
@pytest.mark.parametrize("name", LEG_MASS)
def test_the_jacobian_is_that_of_the_paper(name, leg):
    model = pinocchio.buildModelFromUrdf(str(urdf(name)))
    data, frame = model.createData(), model.getFrameId(f"{leg}_foot")
    columns = [
        model.joints[model.getJointId(f"{leg}_{joint}_joint")].idx_v
        for joint in ("haa", "hfe", "kfe")
    ]
    axes = pinocchio.ReferenceFrame.LOCAL_WORLD_ALIGNED
    for q in np.random.default_rng(6).uniform(-np.pi, np.pi, (50, model.nq)):
        J = pinocchio.computeFrameJacobian(model, data, q, frame, axes)[:3]
        np.testing.assert_allclose(
            J[:, columns], eq_2(q[columns], LEGS[leg][0]), atol=1e-12
        )
        assert np.abs(np.delete(J, columns, axis=1)).max() == 0.0


def test_joints_and_legs_are_in_order(robot):
    model, config, _ = robot
    expected = [
        f"{leg}_{joint}_joint" for leg in LEGS for joint in ("haa", "hfe", "kfe")
    ]
    assert list(model.joint_names) == expected
    legs = quadruped_legs(model, config)
    assert [leg.foot.frame for leg in legs] == [f"{leg}_foot" for leg in LEGS]
    assert [leg.joints.tolist() for leg in legs] == np.arange(12).reshape(4, 3).tolist()
    hips = np.array([leg.hip for leg in legs])
    np.testing.assert_allclose(
        hips.mean(axis=0), 0.0, atol=1e-12
    )  # the root is the center
    for leg in legs:
        np.testing.assert_allclose(leg.ball, [0, 0, -L2], atol=1e-12)
        assert leg.radius == 0.03


def test_masses(robot):
    model, _, leg_mass = robot
    assert model.mass == pytest.approx(TRUNK_MASS + 4 * leg_mass, abs=1e-9)
    assert model.bodies.mass[0] == TRUNK_MASS
    np.testing.assert_array_equal(model.bodies.first_moment[0], 0.0)
    for leg in LEGS:
        hip, thigh, shank = (
            model.link_masses[model.link_index(f"{leg}_{part}")]
            for part in ("hip", "thigh", "shank")
        )
        np.testing.assert_allclose(
            [hip, thigh, shank], leg_mass * np.array([0.2, 0.5, 0.3])
        )


def test_the_trunk_is_a_box(robot):
    model, *_ = robot
    inertia = model.link_inertias[model.link_index("trunk")]
    x2, y2, z2 = np.array([LENGTH, WIDTH, 0.4]) ** 2
    expected = TRUNK_MASS / 12 * np.diag([y2 + z2, x2 + z2, x2 + y2])
    np.testing.assert_allclose(inertia, expected, rtol=1e-9)


def test_left_and_right_front_and_hind_are_mirror_images(robot):
    model, *_ = robot
    for part in ("hip", "thigh", "shank"):
        first = model.link_index(f"lf_{part}")
        for leg, (lateral, _) in LEGS.items():
            i = model.link_index(f"{leg}_{part}")
            mirrored = model.link_coms[first] * [1, lateral, 1]
            np.testing.assert_allclose(model.link_coms[i], mirrored, atol=1e-12)
            np.testing.assert_array_equal(
                model.link_inertias[i], model.link_inertias[first]
            )


def test_the_audit_finds_only_shanks_that_are_heavier_than_steel(robot):
    model, *_ = robot
    issues = audit(model).issues
    assert len(issues) == (4 if model.name == "scalf2_heavy" else 0)
    assert all("shank" in i.element and "solid steel" in i.message for i in issues)


def test_nominal_posture(robot):
    model, config, _ = robot
    q = config.nominal_posture(model)
    for leg, (lateral, longitudinal) in LEGS.items():
        hip = np.array([longitudinal * LENGTH / 2, lateral * WIDTH / 2, 0.0])
        x, y, z = link_pose(model, q, f"{leg}_foot")[1] - hip
        assert x == pytest.approx(0.0, abs=1e-3)  # below the hip
        assert y == pytest.approx(lateral * D2, abs=1e-12)
        assert 0.75 < 0.03 - z < 0.80
        knee = link_pose(model, q, f"{leg}_shank")[1]
        assert longitudinal * (knee - hip)[0] > 0.2  # knees to the outer side


@pytest.mark.parametrize("step", [1e-3, 1e-4])
def test_it_stands_still(robot, step):
    model, config, _ = robot
    world = build_world(model, config, step=step, urdf_path=config.urdf)
    assert world.notes == ()
    data = mujoco.MjData(world.mj)
    data.qpos[:], data.ctrl[:] = world.qpos, world.posture
    mujoco.mj_kinematics(world.mj, data)
    start = data.xpos[1].copy()
    mujoco.mj_step(world.mj, data, round(1.0 / step))
    assert data.ncon == 4
    np.testing.assert_allclose(data.xpos[1], start, atol=2e-3)
    assert data.xmat[1][8] > np.cos(1e-3)
    assert (
        np.abs(data.qpos[world.joint_qpos] - world.posture).max() < 1e-3
    )  # rad, stiff
    assert np.abs(data.qvel).max() < 1e-3
    effort = np.abs(data.actuator_force) / model.effort_limits
    assert effort.max() < 0.2


def test_nothing_touches_in_the_nominal_posture(robot):
    _, config, _ = robot
    model = mujoco.MjModel.from_xml_path(str(config.urdf))
    data = mujoco.MjData(model)
    for name, angle in config.posture.items():
        data.joint(name).qpos = angle
    mujoco.mj_forward(model, data)
    assert data.ncon == 0


def test_the_variants_differ_in_the_masses_of_the_legs_only():
    light, heavy = (ElementTree.parse(urdf(name)).getroot() for name in LEG_MASS)
    ratio = LEG_MASS["scalf2_heavy"] / LEG_MASS["scalf2"]
    for one, two in zip(light.iter(), heavy.iter(), strict=True):
        if one.tag in ("mass", "inertia") and one.attrib != two.attrib:
            assert one.attrib.keys() == two.attrib.keys()
            numbers = [
                [float(v) for v in element.attrib.values()] for element in (one, two)
            ]
            np.testing.assert_allclose(
                numbers[1], ratio * np.array(numbers[0]), rtol=1e-8
            )
        elif one.tag != "robot":
            assert (one.tag, one.attrib) == (two.tag, two.attrib)
    first, second = (
        (PACKAGE / "config" / f"{name}.yaml").read_text().splitlines()[2:]
        for name in LEG_MASS
    )
    assert [line.replace("scalf2", "scalf2_heavy") for line in first[:2]] == second[:2]
    assert first[2:] == second[2:]


def test_every_parameter_has_a_source():
    rows = list(csv.DictReader((PACKAGE / "data" / "scalf2_parameters.csv").open()))
    values = {row["name"]: float(row["value"]) for row in rows}
    from_paper = {
        row["name"] for row in rows if row["source"].startswith("[Ding] Table I")
    }
    assert from_paper == {
        "trunk_length",
        "trunk_width",
        "trunk_mass",
        "L0",
        "L1",
        "L2",
        "d2",
    }
    assert {row["source"] for row in rows if row["name"] not in from_paper} == {
        "assumed"
    }
    assert sum(
        values[f"{part}_share"] for part in ("hip", "thigh", "shank")
    ) == pytest.approx(1.0)


def run(*arguments):
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize(("name", "leg_mass"), LEG_MASS.items())
def test_committed_urdf_is_what_the_script_writes(name, leg_mass, tmp_path):
    copy = tmp_path / f"{name}.urdf"
    assert run("--leg-mass", leg_mass, "--output", copy).returncode == 0
    assert copy.read_bytes() == urdf(name).read_bytes()
    assert (
        run("--check", "--leg-mass", leg_mass, "--output", urdf(name)).returncode == 0
    )


def test_check_reports_another_mass():
    assert run("--check").returncode == 0  # 3 kg are the default
    result = run("--check", "--leg-mass", "4")
    assert result.returncode == 1
    assert "is not what the tables give: run make_scalf2_urdf.py" in result.stderr


@pytest.mark.parametrize("mass", ["0", "-3", "nan", "inf"])
def test_a_leg_has_a_mass(mass):
    result = run("--leg-mass", mass)
    assert result.returncode == 2
    assert f"argument --leg-mass: expected kg above 0, got {mass}" in result.stderr
