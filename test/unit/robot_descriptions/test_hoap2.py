"""HOAP-2's URDF against the inspection report's figures, read with xml and numpy alone."""

import csv
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import mujoco
import numpy as np
import pinocchio
import pytest
import yaml

PACKAGE = Path(__file__).resolve().parents[3] / "src" / "robot_descriptions"
URDF = PACKAGE / "urdf" / "hoap2.urdf"
SCRIPT = PACKAGE.parents[1] / "tools" / "robots" / "make_hoap2_urdf.py"
ROBOT = ElementTree.parse(URDF).getroot()
LINKS = {link.get("name"): link for link in ROBOT.iter("link")}
JOINTS = list(ROBOT.iter("joint"))
MOVING = [joint for joint in JOINTS if joint.get("type") != "fixed"]
TABLE = list(csv.DictReader((PACKAGE / "data" / "hoap2_links.csv").open()))
CONFIG = yaml.safe_load((PACKAGE / "config" / "hoap2.yaml").read_text())


def numbers(text):
    return np.array([float(word) for word in text.split()])


def body(name):
    """Mass, centre of mass and inertia of a link; None where it has no mass."""
    inertial = LINKS[name].find("inertial")
    if inertial is None:
        return None
    i = {key: float(value) for key, value in inertial.find("inertia").items()}
    matrix = np.array(
        [
            [i["ixx"], i["ixy"], i["ixz"]],
            [i["ixy"], i["iyy"], i["iyz"]],
            [i["ixz"], i["iyz"], i["izz"]],
        ]
    )
    com = numbers(inertial.find("origin").get("xyz"))
    return float(inertial.find("mass").get("value")), com, matrix


BODIES = {name: body(name) for name in LINKS if body(name) is not None}


def positions_in_initial_posture():
    """At q = 0 all frames are parallel: origins add up."""
    position = {"base_link": np.zeros(3)}
    for joint in JOINTS:  # parents come first in this file
        origin = joint.find("origin")
        assert origin.get("rpy") is None
        parent = position[joint.find("parent").get("link")]
        position[joint.find("child").get("link")] = parent + numbers(origin.get("xyz"))
    return position


def pinocchio_model():
    # A free root: a fixed one drops the trunk, which is fixed to it.
    return pinocchio.buildModelFromUrdf(str(URDF), pinocchio.JointModelFreeFlyer())


def test_counts_and_root():
    assert len(MOVING) == 25
    assert len(BODIES) == 26
    children = {joint.find("child").get("link") for joint in JOINTS}
    assert set(LINKS) - children == {"base_link"}
    assert "base_link" not in BODIES
    trunk = next(j for j in JOINTS if j.find("child").get("link") == "BODY1")
    assert trunk.get("type") == "fixed"
    assert trunk.find("parent").get("link") == "base_link"
    np.testing.assert_array_equal(numbers(trunk.find("origin").get("xyz")), 0)


def test_mass_of_the_report():
    total = sum(mass for mass, _, _ in BODIES.values())
    hands = BODIES["LARM5"][0] + BODIES["RARM5"][0]
    assert total == pytest.approx(7.1200448, abs=1e-12)
    assert total - hands == pytest.approx(7.0256448, abs=1e-12)  # Table 3's total
    assert sum(i.mass for i in pinocchio_model().inertias) == pytest.approx(
        total, abs=1e-12
    )


def test_com_in_the_initial_posture():
    position = positions_in_initial_posture()
    total = sum(mass for mass, _, _ in BODIES.values())
    com = (
        sum(mass * (position[name] + c) for name, (mass, c, _) in BODIES.items())
        / total
    )
    np.testing.assert_allclose(com, [-0.0263, 0.00009, -0.0140], atol=1e-4)
    model = pinocchio_model()
    oracle = pinocchio.centerOfMass(model, model.createData(), pinocchio.neutral(model))
    np.testing.assert_allclose(com, oracle, atol=1e-12)


@pytest.mark.parametrize("name", BODIES)
def test_inertia_is_that_of_a_body(name):
    mass, _, matrix = BODIES[name]
    smallest, middle, largest = np.linalg.eigvalsh(matrix)
    assert mass > 0
    assert smallest > 0
    assert largest < smallest + middle


@pytest.mark.parametrize("row", TABLE, ids=[row["link"] for row in TABLE])
def test_urdf_says_what_the_table_says(row):
    mass, com, matrix = BODIES[row["link"]]
    assert mass == float(row["mass_kg"])
    np.testing.assert_allclose(
        1e3 * com, [float(row[f"com_{a}_mm"]) for a in "xyz"], rtol=1e-9
    )
    for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)):
        column = f"i{'xyz'[i]}{'xyz'[j]}_kgmm2"
        assert 1e6 * matrix[i, j] == pytest.approx(float(row[column]), rel=1e-9)
    if row["joint"]:
        joint = next(j for j in MOVING if j.get("name") == row["joint"])
        limit = joint.find("limit")
        assert np.degrees(float(limit.get("lower"))) == pytest.approx(
            float(row["lower_deg"])
        )
        assert np.degrees(float(limit.get("upper"))) == pytest.approx(
            float(row["upper_deg"])
        )
        # 57 pulses a millisecond, 209 pulses a degree
        assert np.degrees(float(limit.get("velocity"))) * 209 / 1000 == pytest.approx(
            57
        )
        assert float(limit.get("effort")) > 0


def test_assumptions_are_marked_in_the_urdf(comments):
    found = comments(URDF)
    for row in TABLE:
        assert any("assumed" in text for text in found[row["link"]]) == bool(
            row["assumed"]
        )


MIRROR = np.diag([1.0, -1.0, 1.0])


@pytest.mark.parametrize("limb", [name[1:] for name in BODIES if name[0] == "L"])
def test_left_mirrors_right_as_far_as_the_report_goes(limb):
    left, right = BODIES["L" + limb], BODIES["R" + limb]
    assert left[0] == pytest.approx(right[0], rel=0.011)
    np.testing.assert_allclose(left[1], MIRROR @ right[1], atol=3.5e-4)
    spread = 0.03 * np.trace(right[2])
    np.testing.assert_allclose(left[2], MIRROR @ right[2] @ MIRROR, atol=spread)


def test_legs_and_arms_have_the_lengths_of_the_thesis():
    at = positions_in_initial_posture()
    np.testing.assert_allclose(at["LLEG4"] - at["LLEG3"], [0, 0, -0.100], atol=1e-12)
    np.testing.assert_allclose(at["LLEG6"] - at["LLEG4"], [0, 0, -0.100], atol=1e-12)
    np.testing.assert_allclose(at["LLEG1"], [-0.034, 0.039, -0.055], atol=1e-12)
    np.testing.assert_allclose(at["LARM1"], [-0.034, 0.0995, 0.090], atol=1e-12)
    np.testing.assert_allclose(at["LARM4"] - at["LARM1"], [0.101, 0, 0], atol=1e-12)
    np.testing.assert_allclose(at["HEAD2"], [-0.026, 0, 0.171], atol=1e-12)
    for name in ("LLEG6", "LARM5", "l_sole", "l_gripper"):
        mirrored = (
            MIRROR @ at[name.replace("L", "R", 1) if name[0] == "L" else "r" + name[1:]]
        )
        np.testing.assert_allclose(at[name], mirrored, atol=1e-12)


@pytest.mark.parametrize("side", ["l", "r"])
def test_sole_is_the_sole_of_the_thesis(side):
    ankle = f"{side.upper()}LEG6"
    fixed = next(j for j in JOINTS if j.find("child").get("link") == f"{side}_sole")
    assert fixed.find("parent").get("link") == ankle
    np.testing.assert_allclose(numbers(fixed.find("origin").get("xyz")), [0, 0, -0.037])
    (box,) = LINKS[ankle].findall("collision")
    centre = numbers(box.find("origin").get("xyz"))
    half = numbers(box.find("geometry/box").get("size")) / 2
    np.testing.assert_allclose((centre - half)[:2], [-0.0346, -0.031], atol=1e-12)
    np.testing.assert_allclose((centre + half)[:2], [0.0543, 0.031], atol=1e-12)
    assert centre[2] - half[2] == pytest.approx(-0.037, abs=1e-12)
    corners = np.array(CONFIG["feet"][f"{side}_sole"]["corners"])
    np.testing.assert_allclose(corners.min(axis=0), (centre - half)[:2], atol=1e-12)
    np.testing.assert_allclose(corners.max(axis=0), (centre + half)[:2], atol=1e-12)


def test_every_visual_has_a_material_and_the_robot_is_half_a_metre_tall():
    materials = {material.get("name") for material in ROBOT.findall("material")}
    at = positions_in_initial_posture()
    top, bottom = -np.inf, np.inf
    for name, link in LINKS.items():
        for visual in link.findall("visual"):
            assert visual.find("material").get("name") in materials
            height = at[name][2] + numbers(visual.find("origin").get("xyz"))[2]
            geometry = visual.find("geometry")[0]
            if geometry.tag == "box":
                half = numbers(geometry.get("size"))[2] / 2
            elif (
                geometry.tag == "cylinder"
                and visual.find("origin").get("rpy") == "0 0 0"
            ):
                half = float(geometry.get("length")) / 2
            else:
                half = float(geometry.get("radius"))
            top, bottom = max(top, height + half), min(bottom, height - half)
    assert top - bottom == pytest.approx(0.50, abs=0.005)


@pytest.mark.parametrize("posture", [{}, CONFIG["posture"]], ids=["initial", "nominal"])
def test_neighbours_do_not_touch(posture):
    model = mujoco.MjModel.from_xml_path(str(URDF))
    data = mujoco.MjData(model)
    for name, angle in posture.items():
        data.joint(name).qpos = angle
    mujoco.mj_forward(model, data)
    touching = {
        tuple(model.body(model.geom(g).bodyid[0]).name for g in contact.geom)
        for contact in data.contact
    }
    assert touching == set()


def test_servos_of_the_configuration_hold_the_robot():
    spec = mujoco.MjSpec.from_file(str(URDF))
    spec.compiler.fusestatic = False
    spec.option.timestep = 0.001
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1])
    for joint in spec.joints:
        gains = CONFIG["servo"]["default"] | CONFIG["servo"]["joints"].get(
            joint.name, {}
        )
        joint.armature = gains["armature"]
        transmission = mujoco.mjtTrn.mjTRN_JOINT
        servo = spec.add_actuator(
            name=joint.name, target=joint.name, trntype=transmission
        )
        servo.set_to_position(kp=gains["stiffness"], kv=gains["damping"])
        servo.forcelimited, servo.forcerange = True, [-gains["effort"], gains["effort"]]
    spec.body("base_link").add_freejoint()
    model = spec.compile()
    data = mujoco.MjData(model)
    for name, angle in CONFIG["posture"].items():
        data.joint(name).qpos = angle
        data.actuator(name).ctrl = angle
    mujoco.mj_kinematics(model, data)
    data.qpos[2] = -data.body("l_sole").xpos[2]
    start = data.qpos.copy()
    for _ in range(4000):
        mujoco.mj_step(model, data)
    assert np.abs(np.degrees(data.qpos - start)[7:]).max() < 0.5  # sag of the joints
    assert np.degrees(np.arccos(data.body("base_link").xmat[8])) < 1.0
    assert abs(data.qpos[2] - start[2]) < 1e-3
    assert np.abs(data.qvel).max() < 1e-3  # stands still


def run(*arguments):
    command = [sys.executable, str(SCRIPT), *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False
    )


def test_committed_urdf_is_what_the_script_writes(tmp_path):
    assert run("--check").returncode == 0
    copy = tmp_path / "hoap2.urdf"
    assert run("--output", str(copy)).returncode == 0
    assert copy.read_bytes() == URDF.read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == [
        "hoap2.urdf"
    ]  # nothing left behind


def test_check_reports_a_urdf_that_was_edited(tmp_path):
    copy = tmp_path / "hoap2.urdf"
    copy.write_text(URDF.read_text().replace('value="2.37622"', 'value="2.4"'))
    result = run("--check", "--output", str(copy))
    assert result.returncode == 1
    assert "is not what the tables give: run make_hoap2_urdf.py" in result.stderr
    missing = run("--check", "--output", str(tmp_path / "none.urdf"))
    assert missing.returncode == 1


def test_help_tells_what_the_tables_are():
    text = run("--help").stdout
    for word in ("hoap2_links.csv", "hoap2_frames.csv", "hoap2_shapes.csv", "--check"):
        assert word in text
