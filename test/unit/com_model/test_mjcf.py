"""Models of MuJoCo as robots, against MuJoCo itself."""

from pathlib import Path
from xml.etree import ElementTree

import mujoco
import numpy as np
import pytest

from com_model import RobotConfig, RobotModel, Sesc
from com_model.commands import audit, inertials_to_mjcf, setup
from com_model.exceptions import UrdfError
from com_model.setup import describe
from com_model.setup.limbs import NoLegsError
from com_model.urdf.editing import Inertial, edit_inertials
from com_model.urdf.mjcf import drives_of_mjcf, urdf_of_mjcf
from com_model.urdf.xml_reader import is_mjcf

ODD = """<?xml version="1.0"?>
<!-- a robot with everything that a URDF says in another way -->
<mujoco model="odd">
  <compiler angle="degree" inertiafromgeom="auto"/>
  <default>
    <joint damping="0.5" armature="0.01"/>
    <default class="heavy"><geom density="3000"/></default>
  </default>
  <worldbody>
    <geom type="plane" size="5 5 0.1"/>
    <body name="trunk" pos="0 0 1" euler="10 20 30">
      <freejoint/>
      <inertial pos="0.01 -0.02 0.03" mass="5" fullinertia="0.1 0.2 0.25 0.01 0.02 -0.03"/>
      <geom name="chest" type="box" size="0.1 0.2 0.3"/>
      <site name="imu" pos="0.1 0 0.2" euler="0 0 90"/>
      <body name="arm" pos="0 0.3 0.1" quat="0.9 0.1 0.3 0.2">
        <joint name="shoulder_x" axis="1 0 0" pos="0.02 0.01 -0.03" range="-90 45" limited="true"/>
        <joint name="shoulder_y" axis="0 1 0.5" pos="-0.01 0.02 0.05" ref="20"/>
        <geom class="heavy" type="capsule" fromto="0 0 0 0 0.1 -0.3" size="0.03"/>
        <body name="hand" pos="0 0.1 -0.3">
          <joint name="wrist" type="slide" axis="0 0.6 0.8" ref="0.02"/>
          <geom type="ellipsoid" size="0.02 0.03 0.05"/>
          <body name="finger" pos="0.01 0 0.05" axisangle="0 1 0 30">
            <joint name="finger_joint" axis="0 0 1" frictionloss="0.1"/>
            <geom type="cylinder" size="0.01 0.04" mass="0.1"/>
          </body>
          <body name="thumb" pos="-0.01 0 0.05">
            <joint name="thumb_joint" axis="0 0 1" ref="10"/>
            <geom type="sphere" size="0.01" mass="0.05"/>
          </body>
          <body pos="0 0 0.1"><geom type="sphere" size="0.02" mass="0.2"/></body>
        </body>
      </body>
    </body>
    <body name="ball" pos="3 0 0"><freejoint/><geom type="sphere" size="0.1"/></body>
  </worldbody>
  <equality>
    <joint joint1="thumb_joint" joint2="finger_joint" polycoef="0.1 -0.5 0 0 0"/>
  </equality>
  <actuator>
    <motor joint="shoulder_x" gear="50" ctrlrange="-1 1" ctrllimited="true"/>
    <position joint="wrist" kp="100" forcerange="-30 20" forcelimited="true"/>
  </actuator>
</mujoco>
"""


def check(path, model, count=5):
    """Compares mass, CoM and Jacobian in random postures with MuJoCo's, in the root's axes."""
    theirs = mujoco.MjModel.from_xml_path(str(path))
    data, rng = mujoco.MjData(theirs), np.random.default_rng(3)
    root = next(
        i
        for i in range(1, theirs.nbody)
        if theirs.body(i).name == model.root_link or model.root_link.startswith("world")
    )
    frame = 0 if model.root_link.startswith("world") else root
    assert model.mass == pytest.approx(theirs.body_subtreemass[root], rel=1e-12)
    sesc, low, high = Sesc(model), *np.clip((model.lower, model.upper), -2.0, 2.0)
    for _ in range(count):
        q = rng.uniform(low, high)
        data.qpos[:] = theirs.qpos0
        for name, value in zip(model.joint_names, q, strict=True):
            data.qpos[theirs.joint(name).qposadr[0]] = value
        for k in range(theirs.neq):
            own, other = (
                theirs.jnt_qposadr[ids[k]]
                for ids in (theirs.eq_obj1id, theirs.eq_obj2id)
            )
            a, slope = theirs.eq_data[k, :2]
            zero = theirs.qpos0
            data.qpos[own] = zero[own] + a + slope * (data.qpos[other] - zero[other])
        mujoco.mj_kinematics(theirs, data)
        mujoco.mj_comPos(theirs, data)
        R, p = data.xmat[frame].reshape(3, 3), data.xpos[frame]
        expected = R.T @ (data.subtree_com[root] - p)
        np.testing.assert_allclose(sesc.com(q), expected, atol=1e-12)
        if not theirs.neq:
            J = np.zeros((3, theirs.nv))
            mujoco.mj_jacSubtreeCom(theirs, data, J, root)
            dofs = [theirs.joint(name).dofadr[0] for name in model.joint_names]
            np.testing.assert_allclose(
                sesc.com_and_jacobian(q)[1], R.T @ J[:, dofs], atol=1e-12
            )


@pytest.fixture
def odd(tmp_path):
    (tmp_path / "odd.xml").write_text(ODD)
    return tmp_path / "odd.xml"


def test_every_way_of_saying_it_means_what_it_means_to_mujoco(odd):
    model = RobotModel.from_mjcf(odd)
    check(odd, model)
    assert model.root_link == "trunk"
    moving = ("shoulder_x", "shoulder_y", "wrist", "finger_joint")
    assert model.joint_names == moving
    k = model.joint_index("shoulder_x")
    np.testing.assert_allclose([model.lower[k], model.upper[k]], np.deg2rad([-90, 45]))
    assert model.effort_limits[k] == 50.0
    assert model.effort_limits[model.joint_index("wrist")] == 30.0
    assert "imu" in model.link_names
    R = model.bodies.R_body_link[model.link_index("imu")]
    np.testing.assert_allclose(R @ [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], atol=1e-12)
    assert "ball" not in model.link_names
    assert model.path == odd


def test_other_readers_of_urdfs_take_what_is_written(odd):
    """ROS and Pinocchio read by urdfdom, which wants whole limits and knows no quaternions."""
    pinocchio = pytest.importorskip("pinocchio")
    model = RobotModel.from_mjcf(odd)
    assert "quat_xyzw" not in model.xml
    theirs = pinocchio.buildModelFromXML(model.xml, pinocchio.JointModelFreeFlyer())
    assert {*theirs.names} > {*model.joint_names}
    data, place = theirs.createData(), pinocchio.neutral(theirs)
    for joint in ElementTree.fromstring(model.xml).iter("joint"):
        if (follows := joint.find("mimic")) is not None:  # a free joint to older ones
            own = theirs.joints[theirs.getJointId(joint.get("name"))]
            angle = float(follows.get("offset"))
            values = [angle] if own.nq == 1 else [np.cos(angle), np.sin(angle)]
            place[own.idx_q : own.idx_q + own.nq] = values
    com = pinocchio.centerOfMass(theirs, data, place)
    found = Sesc(model).com(np.zeros(model.n_joints))
    np.testing.assert_allclose(found, com, atol=1e-12)


def test_files_are_told_by_their_first_element(odd, tmp_path):
    assert is_mjcf(odd)
    (tmp_path / "robot.xml").write_text('<robot name="r"><link name="a"/></robot>')
    assert not is_mjcf(tmp_path / "robot.xml")
    assert (
        RobotModel.from_file(odd).joint_names == RobotModel.from_mjcf(odd).joint_names
    )


def test_included_files_and_meshes(odd, tmp_path):
    corners = [f"{x} {y} {z}" for x in (0, 1) for y in (0, 1) for z in (0, 2)]
    faces = [
        "1 2 4",
        "1 4 3",
        "5 8 6",
        "5 7 8",
        "1 6 2",
        "1 5 6",
        "3 4 8",
        "3 8 7",
        "1 3 7",
    ]
    faces += ["1 7 5", "2 6 8", "2 8 4"]
    lines = [f"v {c}" for c in corners] + [f"f {f}" for f in faces]
    (tmp_path / "meshes").mkdir()
    (tmp_path / "meshes" / "block.obj").write_text("\n".join(lines))
    (tmp_path / "leg.xml").write_text(
        '<mujoco><asset><mesh name="block" file="block.obj" scale="0.1 0.1 0.1"/></asset></mujoco>'
    )
    (tmp_path / "robot.xml").write_text(
        '<mujoco><compiler meshdir="meshes"/><include file="leg.xml"/><worldbody>'
        '<body name="base"><freejoint/><geom type="mesh" mesh="block" pos="0.5 0 0" '
        'euler="0 0 90"/></body></worldbody></mujoco>'
    )
    model = RobotModel.from_mjcf(tmp_path / "robot.xml")
    check(tmp_path / "robot.xml", model, 1)
    text = urdf_of_mjcf(tmp_path / "robot.xml")
    assert f'filename="file://{tmp_path}/meshes/block.obj"' in text
    # the frame of the mesh as it is in its file, not as MuJoCo has centred it
    assert 'xyz="0.5 0.0 0.0"' in text or 'xyz="0.5 ' in text


def test_a_model_that_is_attached_has_its_own_meshes(tmp_path):
    """Its folder is not that of the whole; they counted as missing."""
    (tmp_path / "part" / "m").mkdir(parents=True)
    corners = [f"v {x} {y} {z}" for x in (0, 0.1) for y in (0, 0.1) for z in (0, 0.1)]
    faces = [
        "124",
        "143",
        "586",
        "578",
        "162",
        "156",
        "348",
        "387",
        "137",
        "175",
        "268",
        "284",
    ]
    lines = corners + [f"f {' '.join(face)}" for face in faces]
    (tmp_path / "part" / "m" / "s.obj").write_text("\n".join(lines))
    (tmp_path / "part" / "part.xml").write_text(
        '<mujoco model="part"><compiler meshdir="m"/><asset><mesh name="s" file="s.obj"/></asset>'
        '<worldbody><body name="base"><geom type="mesh" mesh="s"/></body></worldbody></mujoco>'
    )
    (tmp_path / "whole.xml").write_text(
        '<mujoco><asset><model name="part" file="part/part.xml"/></asset><worldbody>'
        '<body name="trunk"><freejoint/><geom size="0.1"/><body name="arm"><joint name="j"/>'
        '<attach model="part" body="base" prefix="p_"/></body></body></worldbody></mujoco>'
    )
    model = RobotModel.from_mjcf(tmp_path / "whole.xml")
    check(tmp_path / "whole.xml", model)
    assert f'filename="file://{tmp_path}/part/m/s.obj"' in model.xml


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('type="slide"', 'type="ball"'), "'wrist'.*ball joint"),
        (("-0.5 0 0 0", "-0.5 0.3 0 0"), "'thumb_joint'.*by a curve"),
        (
            ("<equality>", '<equality><weld name="loop" body1="hand" body2="trunk"/>'),
            "'loop'.*closes a chain",
        ),
        (('name="arm" pos', 'name="arm" poz'), "MuJoCo cannot compile it.*poz"),
        (
            (
                '<body name="ball" pos="3 0 0"><freejoint/>',
                '<body name="two" pos="3 0 0"><freejoint/><body><joint name="j" axis="1 0 0"/>'
                '<joint name="j2" axis="0 1 0"/><geom size="0.1"/></body>',
            ),
            "'trunk', 'two' may each be the robot",
        ),
    ],
)
def test_what_is_no_tree_is_refused_by_name(odd, change, words):
    text = odd.read_text()
    assert change[0] in text
    odd.write_text(text.replace(*change))
    with pytest.raises(UrdfError, match=words):
        RobotModel.from_mjcf(odd)


def test_audit_and_setup_take_it(odd, capsys):
    audit.main([str(odd)])
    assert "odd" in capsys.readouterr().out
    setup.main([str(odd), "--quiet"])
    assert odd.with_suffix(".urdf").exists()
    assert RobotModel.from_file(odd.with_suffix(".urdf")).mass == pytest.approx(
        RobotModel.from_mjcf(odd).mass
    )


def test_setup_takes_the_drives_of_the_model(odd, capsys):
    assert drives_of_mjcf(odd)["wrist"] == {
        "armature": 0.01,
        "stiffness": 100.0,
        "damping": 0.5,
    }
    geared = odd.read_text().replace('kp="100"', 'kp="100" kv="3" gear="2"')
    odd.write_text(geared)
    own = drives_of_mjcf(odd)
    assert own["wrist"]["stiffness"] == pytest.approx(400.0)
    assert own["wrist"]["damping"] == pytest.approx(12.5)
    assert own["shoulder_x"] == {"armature": 0.01}  # a motor


LEGS = """<mujoco model="four"><compiler angle="radian"/>
  <default><joint armature="0.012"/><position kp="35" kv="0.7" forcerange="-24 24"/></default>
  <worldbody><body name="trunk" pos="0 0 0.5"><freejoint/><geom type="box" size="0.2 0.1 0.05"/>
  {legs}</body></worldbody><actuator>{drives}</actuator></mujoco>"""
LEG = """<body name="{n}_hip" pos="{x} {y} 0"><joint name="{n}_hip" axis="1 0 0" range="-1 1"/>
  <geom type="sphere" size="0.03"/><body name="{n}_thigh" pos="0 {z} 0">
  <joint name="{n}_thigh" axis="0 1 0" range="-1.5 3"/><geom type="capsule"
  fromto="0 0 0 0 0 -0.2" size="0.02"/><body name="{n}_calf" pos="0 0 -0.2"><joint name="{n}_calf"
  axis="0 1 0" range="-2.7 -0.8"/><geom type="capsule" fromto="0 0 0 0 0 -0.2" size="0.01"/>
  <body name="{n}_foot" pos="0 0 -0.2"><geom type="sphere" size="0.02"/></body>
  </body></body></body>"""


def test_a_configuration_has_the_drives_of_the_model(tmp_path):
    legs = {
        f"{end}{side}": {"x": 0.2 * x, "y": 0.05 * y, "z": 0.08 * y}
        for end, x in (("F", 1), ("R", -1))
        for side, y in (("L", 1), ("R", -1))
    }
    joints = [f"{n}_{part}" for n in legs for part in ("hip", "thigh", "calf")]
    text = LEGS.format(
        legs="".join(LEG.format(n=n, **place) for n, place in legs.items()),
        drives="".join(f'<position joint="{j}"/>' for j in joints),
    )
    (tmp_path / "four.xml").write_text(text)
    assert setup.main([str(tmp_path / "four.xml"), "--quiet"]) == 0
    servo = RobotConfig.from_file(tmp_path / "four.yaml").servo
    for joint in joints:
        gains = servo.gains(joint)
        found = gains.stiffness, gains.damping, gains.armature
        assert found == pytest.approx((35.0, 0.7, 0.012))


BIPED = """<mujoco model="two"><compiler angle="radian"/>
  <default><position kp="{kp}" kv="1"/></default>
  <worldbody><body name="trunk" pos="0 0 0.9"><freejoint/>
  <geom type="box" size="0.1 0.15 0.2" pos="0 0 0.2" mass="20"/>
  {legs}</body></worldbody><actuator>{drives}</actuator></mujoco>"""
SIDE = """<body name="{n}_hip" pos="0 {y} 0"><joint name="{n}_yaw" axis="0 0 1" range="-1 1"/>
  <joint name="{n}_roll" axis="1 0 0" range="-1 1"/>
  <joint name="{n}_pitch" axis="0 1 0" range="-2 2"/>
  <geom type="capsule" fromto="0 0 0 0 0 -0.4" size="0.04" mass="2"/>
  <body name="{n}_shank" pos="0 0 -0.4"><joint name="{n}_knee" axis="0 1 0" range="0 2.5"/>
  <geom type="capsule" fromto="0 0 0 0 0 -0.4" size="0.03" mass="2"/>
  <body name="{n}_foot" pos="0 0 -0.4"><joint name="{n}_ankle_pitch" axis="0 1 0" range="-1 1"/>
  <joint name="{n}_ankle_roll" axis="1 0 0" range="-1 1"/>
  <geom type="box" size="0.1 0.05 0.02" pos="0.03 0 -0.03" mass="1"/></body></body></body>"""


@pytest.mark.parametrize(("kp", "kept"), [(4000.0, True), (30.0, False)])
def test_servos_too_soft_to_stand_are_replaced(tmp_path, capsys, kp, kept):
    """Policies are trained with soft ones; the robot fell, and com_setup refused it."""
    sides, parts = {"left": 0.1, "right": -0.1}, ("yaw", "roll", "pitch", "knee")
    joints = [f"{n}_{p}" for n in sides for p in (*parts, "ankle_pitch", "ankle_roll")]
    text = BIPED.format(
        kp=kp,
        legs="".join(SIDE.format(n=n, y=y) for n, y in sides.items()),
        drives="".join(f'<position joint="{j}"/>' for j in joints),
    )
    (tmp_path / "two.xml").write_text(text)
    assert setup.main([str(tmp_path / "two.xml")]) == 0
    assert ("too soft" in capsys.readouterr().out) is not kept
    servo = RobotConfig.from_file(tmp_path / "two.yaml").servo
    found = {servo.gains(joint).stiffness for joint in joints}
    assert (found == {kp}) is kept
    assert min(found) > 300.0


VIRTUAL = """<mujoco><worldbody><body name="pelvis" pos="0 0 1">
  <joint name="tx" type="slide" axis="1 0 0"/><joint name="tz" type="slide" axis="0 0 1"/>
  <joint name="tilt" axis="0 1 0"/><geom type="sphere" size="0.1"/>
  <body name="leg" pos="0 0 -0.1"><joint name="hip" axis="0 1 0"/>
  <geom type="capsule" fromto="0 0 0 0 0 -0.5" size="0.04"/></body></body></worldbody>
  <actuator>{}</actuator></mujoco>"""


def test_joints_that_stand_for_a_free_base_are_none_of_the_robot(tmp_path):
    """As in models of planar robots; com_setup took them for a waist."""
    path = tmp_path / "planar.xml"
    path.write_text(VIRTUAL.format('<motor joint="hip"/>'))
    model = RobotModel.from_mjcf(path)
    assert (model.root_link, model.joint_names) == ("pelvis", ("hip",))
    check(path, model)
    on_site = '<motor joint="hip"/><general site="toe"/>'  # with the number of tx
    path.write_text(
        VIRTUAL.format(on_site).replace(
            '<joint name="hip"', '<site name="toe"/><joint name="hip"'
        )
    )
    assert RobotModel.from_mjcf(path).joint_names == ("hip",)
    path.write_text(VIRTUAL.format('<motor joint="hip"/><motor joint="tx"/>'))  # a rail
    assert RobotModel.from_mjcf(path).joint_names == ("tx", "tz", "tilt", "hip")


MESH = """<mujoco><compiler meshdir="meshes"/>
  <asset><mesh file="shell.stl" scale="0.001 0.001 0.001"/>
  <texture name="skin" type="2d" file="skin.png"/><material name="m" texture="skin"/>
  <hfield name="hills" file="hills.png" size="5 5 1 0.1"/></asset>
  <worldbody><geom type="hfield" hfield="hills"/><body name="base"><freejoint/>{}
  <geom type="mesh" mesh="shell" material="m"/></body></worldbody></mujoco>"""


def test_missing_meshes_are_left_out_where_no_mass_depends_on_them(tmp_path):
    path = tmp_path / "shell.xml"
    inertial = '<inertial pos="0.1 0.2 0.3" mass="2" diaginertia="1 1 1"/>'
    path.write_text(MESH.format(inertial))
    model = RobotModel.from_mjcf(path)
    np.testing.assert_allclose(Sesc(model).com([]), [0.1, 0.2, 0.3], atol=1e-12)
    assert f"{tmp_path}/meshes/shell.stl" in model.xml  # named by who needs it
    path.write_text(MESH.format(""))
    with pytest.raises(UrdfError, match=r"'base'.*shell\.stl.*missing.*git lfs"):
        RobotModel.from_mjcf(path)


def test_a_part_of_a_scene_names_the_scene(tmp_path):
    (tmp_path / "robot.xml").write_text(
        '<mujoco><worldbody><body name="base"><freejoint/><geom name="foot" size="0.1"/></body>'
        '</worldbody><contact><pair geom1="foot" geom2="floor"/></contact></mujoco>'
    )
    (tmp_path / "scene.xml").write_text(
        '<mujoco><include file="robot.xml"/><worldbody><geom name="floor" type="plane" '
        'size="1 1 1"/></worldbody></mujoco>'
    )
    with pytest.raises(UrdfError, match=r"floor.*part of scene\.xml: give that file"):
        RobotModel.from_mjcf(tmp_path / "robot.xml")
    assert RobotModel.from_mjcf(tmp_path / "scene.xml").root_link == "base"


def test_two_legs_one_behind_the_other_are_no_humanoid():
    gymnasium = pytest.importorskip("gymnasium")
    cheetah = Path(gymnasium.__file__).parent / "envs/mujoco/assets/half_cheetah.xml"
    with pytest.raises(NoLegsError, match="one behind the other"):
        describe(RobotModel.from_mjcf(cheetah), str(cheetah))


def test_public_models():
    gymnasium = pytest.importorskip("gymnasium")
    folder = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"
    names = ["ant", "half_cheetah", "hopper", "humanoid", "inverted_double_pendulum"]
    names += ["swimmer", "walker2d"]
    for name in names:
        path = folder / f"{name}.xml"
        check(path, RobotModel.from_mjcf(path), 3)
    found = describe(
        RobotModel.from_mjcf(folder / "humanoid.xml"), folder / "humanoid.xml"
    )
    assert found.limbs.kind == "humanoid"


def test_corrected_inertials_go_back_where_they_were(odd, tmp_path, capsys):
    """Into the file that has the body, and nothing else changes."""
    text = odd.read_text()
    begin, end = (
        text.index('          <body name="finger"'),
        text.index('          <body name="thumb"'),
    )
    (tmp_path / "finger.xml").write_text(
        f"<mujocoinclude>{text[begin:end]}</mujocoinclude>"
    )
    odd.write_text(text[:begin] + '<include file="finger.xml"/>' + text[end:])
    setup.main([str(odd), "--quiet"])
    urdf = odd.with_suffix(".urdf")
    model = RobotModel.from_file(urdf)
    inertia = np.array([[0.3, 0.01, 0.02], [0.01, 0.35, -0.03], [0.02, -0.03, 0.4]])
    changes = {
        "trunk": Inertial(6.5, [0.02, -0.01, 0.05], inertia),
        "finger": Inertial(0.2, [0.001, 0.0, 0.01], 1e-4 * inertia),
    }
    (tmp_path / "corrected.urdf").write_text(edit_inertials(model.xml, changes))
    words = [str(tmp_path / "corrected.urdf"), str(odd)]
    assert inertials_to_mjcf.main(words) == 0
    assert "2 inertials: " in capsys.readouterr().out
    new = RobotModel.from_mjcf(tmp_path / "odd_corrected.xml")
    check(tmp_path / "odd_corrected.xml", new)
    for name, inertial in changes.items():
        k = new.link_index(name)
        assert new.link_masses[k] == pytest.approx(inertial.mass, rel=1e-12)
        np.testing.assert_allclose(new.link_coms[k], inertial.com, atol=1e-12)
        np.testing.assert_allclose(new.link_inertias[k], inertial.inertia, atol=1e-12)
    k = new.link_index("arm")
    np.testing.assert_array_equal(
        new.link_coms[k], model.link_coms[model.link_index("arm")]
    )
    before, after = odd.read_text(), (tmp_path / "odd_corrected.xml").read_text()
    kept = [
        line
        for line in before.splitlines()
        if "inertial" not in line and "include" not in line
    ]
    assert [line for line in after.splitlines() if line in kept] == kept
    assert 'file="finger_corrected.xml"' in after
    assert inertials_to_mjcf.main(words) == 2
    assert "exists" in capsys.readouterr().err
    assert inertials_to_mjcf.main([str(urdf), str(odd)]) == 0
    assert "nothing to do" in capsys.readouterr().out


def test_inertials_that_mujoco_ignores_are_not_written(odd, tmp_path, capsys):
    odd.write_text(
        odd.read_text().replace('inertiafromgeom="auto"', 'inertiafromgeom="true"')
    )
    setup.main([str(odd), "--quiet"])
    model = RobotModel.from_file(odd.with_suffix(".urdf"))
    changes = {"hand": Inertial(1.0, [0.0, 0.0, 0.0], np.eye(3))}
    (tmp_path / "corrected.urdf").write_text(edit_inertials(model.xml, changes))
    assert inertials_to_mjcf.main([str(tmp_path / "corrected.urdf"), str(odd)]) == 2
    assert 'Set it to "auto"' in capsys.readouterr().err
