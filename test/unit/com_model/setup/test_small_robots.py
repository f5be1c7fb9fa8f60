"""Limbs, soles, postures and sensors of small robots whose truth is known."""

import re

import numpy as np
import pytest

from com_model import RobotModel
from com_model.dynamics.kinematics import link_poses
from com_model.setup import describe
from com_model.setup.limbs import NoLegsError
from com_model.setup.posture import BEND


def described(xml):
    return describe(RobotModel.from_urdf(xml))


def foot_named(setup, name):
    return next(foot for foot in setup.feet if foot.leg.name == name)


def test_a_biped(biped):
    setup = described(biped())
    assert (setup.limbs.kind, setup.trunk_link) == ("humanoid", "pelvis")
    assert [leg.name for leg in setup.limbs.legs] == ["left_leg", "right_leg"]
    assert setup.limbs.groups["left_leg"][3] == "l_knee_joint"
    for foot in setup.feet:
        assert foot.name == f"{foot.leg.side}_sole"
        np.testing.assert_allclose(foot.sole.p, [0.0, 0.0, -0.05], atol=1e-9)
        np.testing.assert_allclose(foot.sole.R, np.eye(3), atol=1e-9)
        corners = {tuple(corner) for corner in foot.sole.corners.round(6).tolist()}
        assert corners == {(x, y) for x in (-0.07, 0.13) for y in (-0.05, 0.05)}
    assert set(setup.gait) == {"walking"}
    assert set(setup.gait["walking"]) > {"step_width", "com_height"}


def test_steps_are_short_and_shorter_where_an_ankle_has_no_roll(biped):
    usual = described(biped())
    sizes, height = usual.gait["walking"], usual.standing.com[2] - usual.standing.ground
    pendulum = np.sqrt(height / 9.80665)
    assert sizes["step_time"] == pytest.approx(1.5 * pendulum, abs=0.006)
    assert (
        0.005 < height - sizes["com_height"] < 0.02
    )  # a leg that leans over is longer
    xml = biped()
    for side in "lr":
        name = f'<joint name="{side}_foot_joint" type='
        xml = xml.replace(f'{name}"revolute"', f'{name}"fixed"')
    five = described(xml)
    assert five.gait["walking"]["step_time"] == pytest.approx(
        0.85 * pendulum, abs=0.006
    )
    said = [issue for key, issue in five.issues if key == "walking"]
    assert len(said) == 2
    assert "left_leg has five joints: none moves the roll of left_sole" in said[0]
    assert not [key for key, _ in usual.issues if key == "walking"]


def test_hips_that_cannot_hold_the_weight_on_one_leg_are_named(biped):
    weight = described(biped()).model.mass * 9.80665 * 0.1
    for effort, named in ((0.95 * weight, True), (1.05 * weight, False)):
        setup = described(biped().replace('effort="100"', f'effort="{effort}"'))
        said = [issue for key, issue in setup.issues if key == "walking"]
        assert any("l_roll_joint" in issue for issue in said) == named, said


def test_the_shapes_of_a_sole_on_the_link_of_the_ankle_are_named(biped):
    xml = biped()
    begin = xml.index("<collision", xml.index('<link name="r_foot'))
    end = xml.index("</collision>", begin) + len("</collision>")
    ankle = xml.index("</link>", xml.index('<link name="r_ankle'))
    assert ankle < begin
    wrong = xml[:ankle] + xml[begin:end] + xml[ankle:]
    said = [i for key, i in described(wrong).issues if key == "feet.right_sole"]
    assert len(said) == 1
    assert "r_ankle" in said[0]
    assert not [i for key, i in described(xml).issues if key == "feet.right_sole"]


def test_it_stands_upright_with_bent_knees_and_the_com_in_the_middle(biped):
    setup = described(biped())
    model, q = setup.model, setup.standing.q
    R, p = link_poses(model, q)
    feet = [model.link_index(f"{side}_foot") for side in "lr"]
    np.testing.assert_allclose(R[feet], [np.eye(3)] * 2, atol=2e-3)
    assert abs(p[feet[0]][2] - p[feet[1]][2]) < 1e-4
    knees = [model.joint_index(f"{side}_knee_joint") for side in "lr"]
    np.testing.assert_allclose(q[knees], BEND["humanoid"], atol=0.01)
    com = sum(
        m * (R[i] @ c + p[i])
        for i, (m, c) in enumerate(zip(model.link_masses, model.link_coms, strict=True))
    )
    middle = p[feet].mean(axis=0) + np.array([0.03, 0.0, 0.0])
    np.testing.assert_allclose((com / model.mass - middle)[:2], 0.0, atol=1e-3)
    assert setup.margin > 0.09
    assert not [issue for key, issue in setup.issues if key == "posture"]


def test_knees_bend_where_their_limits_allow(biped):
    setup = described(biped(knee=(-2.2, 0.0)))
    knee = setup.standing.q[setup.model.joint_index("l_knee_joint")]
    assert knee == pytest.approx(-BEND["humanoid"], abs=0.01)
    stiff = described(biped(knee=(0.0, 0.2)))
    assert any("as far as limits allow" in issue for _, issue in stiff.issues)


def test_a_robot_that_crouches_at_zero_bends_its_knees_as_far_as_others(biped):
    xml = biped(knee=(-0.65, 1.65))
    for part, angle in (("pitch", -0.25), ("knee", 0.65), ("ankle", -0.4)):
        place = rf'(_{part}_joint".*?) rpy="0 0 0"'
        xml, count = re.subn(place, rf'\1 rpy="0 {angle} 0"', xml, flags=re.DOTALL)
        assert count == 2
    setup = described(xml)
    assert not [issue for key, issue in setup.issues if key == "posture"]
    knee = setup.standing.q[setup.model.joint_index("l_knee_joint")]
    assert knee + 0.65 == pytest.approx(BEND["humanoid"], abs=0.01)
    assert setup.standing.bend == pytest.approx(BEND["humanoid"], abs=0.01)


def test_knees_a_little_off_the_line_of_the_bones_are_straight(biped):
    # as ANYmal's, by 0.3 rad: the bend is that of the joint
    xml = re.sub(
        r'(_knee_joint".*?) rpy="0 0 0"', r'\1 rpy="0 0.3 0"', biped(), flags=re.DOTALL
    )
    setup = described(xml)
    knee = setup.standing.q[setup.model.joint_index("l_knee_joint")]
    assert knee == pytest.approx(BEND["humanoid"], abs=0.01)


def test_knees_of_both_legs_bend_alike(biped):
    # Seen in a public URDF: the limits of one leg stand one joint too far down.
    lies = biped().replace(
        '<axis xyz="0 1 0"/><limit lower="0.0" upper="2.2"',
        '<axis xyz="0 1 0"/><limit lower="-2.1" upper="0.7"',
        1,
    )
    assert lies != biped()
    setup = described(lies)
    knees = [
        setup.standing.q[setup.model.joint_index(f"{side}_knee_joint")] for side in "lr"
    ]
    assert min(knees) > 0.4


def test_soles_are_level_where_limits_leave_just_that(biped):
    xml = biped()
    for side in (
        "lr"
    ):  # ankles that turn the same way as knees: legs are straight, or soles tilted
        begin = xml.index(f'<joint name="{side}_ankle_joint"')
        xml = xml[:begin] + xml[begin:].replace(
            'lower="-1" upper="1"', 'lower="0" upper="3"', 1
        )
    setup = described(xml)
    issues = [issue for key, issue in setup.issues if key == "posture"]
    assert not [issue for issue in issues if "tilted" in issue]
    assert [issue for issue in issues if "as far as limits allow" in issue]


def test_a_sole_of_lying_cylinders_ends_at_their_lowest_lines(biped):
    cylinder = (
        '<collision><origin xyz="0.03 {} -0.03" rpy="0 1.5707963 0"/>'
        '<geometry><cylinder radius="0.02" length="0.2"/></geometry></collision>'
    )
    setup = described(biped(foot=cylinder.format(-0.02) + cylinder.format(0.02)))
    for foot in setup.feet:
        np.testing.assert_allclose(
            np.ptp(foot.sole.corners, axis=0), [0.2, 0.04], atol=1e-6
        )


def test_the_frame_of_the_foot_link_does_not_matter(biped):
    # The foot link's x is backwards and its y upwards: the sole is at y = -0.05.
    turned = (
        '<collision><origin xyz="-0.03 -0.03 0"/>'
        '<geometry><box size="0.2 0.04 0.1"/></geometry></collision>'
    )
    setup = described(biped(foot=turned, rpy=f"{np.pi / 2} 0 {np.pi}"))
    sole = setup.feet[0].sole
    R, _ = link_poses(setup.model, setup.model.neutral)
    foot = R[setup.model.link_index("l_foot")]
    np.testing.assert_allclose(foot[:, 1], [0.0, 0.0, 1.0], atol=1e-9)
    np.testing.assert_allclose(foot @ sole.R, np.eye(3), atol=1e-9)
    np.testing.assert_allclose(foot @ sole.p, [0.0, 0.0, -0.05], atol=1e-9)
    np.testing.assert_allclose(sole.corners.max(axis=0), [0.13, 0.05], atol=1e-6)


def test_a_sole_link_that_agrees_is_used_and_one_that_does_not_is_reported(biped):
    frame = (
        '<link name="l_sole"/><joint name="l_sole_joint" type="fixed"><parent link="l_foot"/>'
        '<child link="l_sole"/><origin xyz="0.03 0 {}"/></joint>'
    )
    right = described(biped(extra=frame.format(-0.05)))
    assert foot_named(right, "left_leg").name == "l_sole"
    wrong = described(biped(extra=frame.format(-0.03)))
    foot = foot_named(wrong, "left_leg")
    assert foot.name == "left_sole"
    assert any("l_sole is +20 mm above the sole" in issue for _, issue in wrong.issues)


def test_sides_are_those_of_the_names_where_the_root_looks_backwards(biped):
    setup = described(biped(names=("r", "l")))
    assert setup.limbs.groups["left_leg"][0].startswith("l_")
    np.testing.assert_allclose(setup.limbs.R_root_robot[:, 0], [-1, 0, 0], atol=1e-12)
    assert any("forwards is -x" in issue for _, issue in setup.issues)


def test_sides_follow_from_geometry_without_names(biped):
    setup = described(biped(names=("a", "b")))
    assert setup.limbs.groups["left_leg"][0].startswith("a_")
    assert setup.limbs.groups["right_leg"][0].startswith("b_")


def test_a_quadruped(quadruped):
    setup = described(quadruped())
    assert setup.limbs.kind == "quadruped"
    assert list(setup.limbs.groups) == [
        "left_front_leg", "right_front_leg", "left_hind_leg", "right_hind_leg",
    ]  # fmt: skip
    for foot, prefix in zip(setup.feet, ("fl", "fr", "rl", "rr"), strict=True):
        assert setup.limbs.groups[foot.leg.name][0] == f"{prefix}_haa"
        assert (foot.sole.link, foot.sole.radius) == (f"{prefix}_shank", 0.025)
        np.testing.assert_allclose(foot.sole.p, [0, 0, -0.2], atol=1e-12)
    knees = [setup.model.joint_index(f"{leg}_kfe") for leg in ("fl", "fr", "rl", "rr")]
    np.testing.assert_allclose(setup.standing.q[knees], -BEND["quadruped"], atol=0.02)
    assert setup.margin > 0.08
    assert set(setup.gait["trot"]) == {"frequency", "step_height", "body_height"}


def test_a_quadruped_that_looks_along_y(quadruped):
    setup = described(quadruped(swap=True))
    assert setup.limbs.groups["left_front_leg"][0] == "fl_haa"
    np.testing.assert_allclose(setup.limbs.R_root_robot[:, 0], [0, 1, 0], atol=1e-12)


def test_a_robot_on_wheels_has_no_legs(quadruped):
    wheel = (
        '<collision><origin rpy="1.5707963 0 0"/>'
        '<geometry><cylinder radius="0.2" length="0.05"/></geometry></collision>'
    )
    with pytest.raises(NoLegsError, match="end in wheels"):
        described(quadruped(shape=wheel))


def test_a_wheel_whose_mesh_is_missing_is_known_by_its_name(quadruped):
    text = quadruped(shape="").replace("_shank", "_wheel")
    with pytest.raises(NoLegsError, match="end in wheels"):
        described(text)


def test_legs_of_seven_joints(biped):
    """A second yaw between thigh and shank, of both legs."""
    text = biped()
    for side in "lr":
        twist = (
            f'<link name="{side}_twist"/><joint name="{side}_twist_joint" type="revolute">'
            f'<parent link="{side}_pitch"/><child link="{side}_twist"/><axis xyz="0 0 1"/>'
            '<limit lower="-1" upper="1" effort="100" velocity="10"/></joint></robot>'
        )
        knee = f'<parent link="{side}_pitch"/><child link="{side}_knee"/>'
        text = text.replace(knee, knee.replace(f"{side}_pitch", f"{side}_twist"))
        text = text.replace("</robot>", twist)
    setup, six = described(text), described(biped())
    assert setup.limbs.kind == "humanoid"
    assert [len(foot.leg.bodies) for foot in setup.feet] == [7, 7]
    assert not setup.gait
    assert any("walks are for legs of five or six" in text for _, text in setup.issues)
    np.testing.assert_allclose(setup.standing.com, six.standing.com, atol=2e-3)


def test_an_arm_has_no_legs(data):
    with pytest.raises(NoLegsError, match="no legs: "):
        describe(RobotModel.from_file(data / "arm.urdf"))


def test_sensors_of_elements_come_before_names(biped):
    extra = (
        '<gazebo reference="pelvis"><sensor type="imu" name="body"/></gazebo>'
        '<gazebo reference="l_foot_joint"><sensor type="force_torque" name="f"/></gazebo>'
        '<link name="imu_link"/><joint name="i" type="fixed"><parent link="pelvis"/>'
        '<child link="imu_link"/></joint>'
    )
    setup = described(biped(extra=extra))
    assert setup.imu.link == "pelvis"
    assert foot_named(setup, "left_leg").wrench.link == "l_foot"
    assert foot_named(setup, "left_leg").wrench.issue == ""
    assert foot_named(setup, "right_leg").wrench.issue.startswith("the URDF names no")
    named = described(biped(extra=extra[extra.index("<link") :]))
    assert named.imu.link == "imu_link"
    missing = described(biped())
    assert missing.imu.link == ""
    assert any(key == "imu" for key, _ in missing.issues)


def test_gains_give_the_stated_bandwidth_on_what_a_joint_carries(biped):
    extra = (
        '<link name="head"><inertial><origin xyz="0 0 0"/><mass value="2"/>'
        '<inertia ixx="0.5" ixy="0" ixz="0" iyy="0.5" iyz="0" izz="0.5"/></inertial></link>'
        '<joint name="neck" type="revolute"><parent link="pelvis"/><child link="head"/>'
        '<origin xyz="0 0 0.3"/><axis xyz="0 0 1"/>'
        '<limit lower="-1" upper="1" effort="9" velocity="1"/></joint>'
    )
    setup = described(biped(extra=extra))
    i = setup.model.joint_index("neck")
    assert setup.gains.stiffness[i] == pytest.approx(20.0**2 * 0.5, rel=0.03)
    assert setup.gains.damping[i] == pytest.approx(2 * 0.3 * 20.0 * 0.5, rel=0.03)
    ankles = [setup.model.joint_index(f"{side}_ankle_joint") for side in "lr"]
    assert (setup.gains.stiffness[ankles] > 15.0 * 9.81 * setup.model.mass * 0.4).all()


def test_a_quadruped_with_its_legs_stretched_out_at_zero(quadruped):
    setup = described(quadruped(lies=True))
    assert setup.limbs.kind == "quadruped"
    for foot, prefix in zip(setup.feet, ("fl", "fr", "rl", "rr"), strict=True):
        assert foot.sole.link == f"{prefix}_shank"
        hip = setup.standing.p[foot.leg.bodies[0]][2]
        assert hip - foot.points[:, 2].min() > 0.3 * 0.4
    assert setup.margin > 0.08


@pytest.mark.parametrize(
    ("names", "front"),
    [
        (("FL_HR", "FR_HR", "HL_HR", "HR_HR"), "FL_HR"),  # HR: the hip's rotation, too
        (("LF", "RF", "LR", "RR"), "LF"),
        (("HR", "HL", "FR", "FL"), "FL"),  # its root looks backwards
    ],
)
def test_names_of_a_quadrupeds_legs(quadruped, names, front):
    setup = described(quadruped(names=names))
    assert setup.limbs.groups["left_front_leg"][0] == f"{front}_haa"
    assert not [text for key, text in setup.issues if "is called" in text]


def test_names_of_a_bipeds_legs(biped):
    """Of LL_HR and LR_HR (leg left, hip rotation) and of R_knee_l, whose l is on both sides."""
    for names in (("LL_HR", "LR_HR"), ("l_R", "r_R")):
        setup = described(biped(names=names))
        assert setup.limbs.groups["left_leg"][0].startswith(names[0])
        assert setup.limbs.groups["right_leg"][0].startswith(names[1])
        np.testing.assert_allclose(setup.limbs.R_root_robot, np.eye(3), atol=1e-12)


def test_a_hexapod_is_named(quadruped):
    """Legs of a second trunk of no length, beside the first one."""
    second = quadruped(names=("lm", "rm", "a", "b")).partition("</link>")[2]
    middle = "".join(f"{part}</joint>" for part in second.split("</joint>")[:6])
    for y in ("0.1", "-0.1"):
        middle = middle.replace(f'xyz="0.2 {y} 0"', f'xyz="0 {y} 0"')
    setup = described(quadruped().replace("</robot>", f"{middle}</robot>"))
    assert (setup.limbs.kind, len(setup.feet)) == ("other", 6)
    assert not setup.gait
    text = "hexapod: publishing and audit work, gaits do not"
    assert any(text in issue for _, issue in setup.issues)


def test_z_is_up_though_meshes_are_missing(biped, stretched_arms):
    """Along x it seems to stand on hands and feet, of which nothing is known."""
    setup = described(biped(foot="", extra=stretched_arms))
    assert setup.limbs.kind == "humanoid"
    np.testing.assert_allclose(setup.limbs.R_root_robot, np.eye(3), atol=1e-12)


@pytest.mark.parametrize("height", [-3.0, 3.0])
def test_a_massless_root_far_away(biped, height):
    world = (
        '<link name="world"/><joint name="base" type="fixed"><parent link="world"/>'
        f'<child link="pelvis"/><origin xyz="0 0 {height}"/></joint>'
    )
    setup, near = described(biped(extra=world)), described(biped())
    assert setup.limbs.kind == "humanoid"
    assert setup.limbs.height == pytest.approx(near.limbs.height)
    np.testing.assert_allclose(setup.standing.q, near.standing.q, atol=1e-3)


def test_a_sole_link_of_the_urdf_beats_a_guess(biped):
    frame = (
        '<link name="l_sole"/><joint name="l_sole_joint" type="fixed"><parent link="l_foot"/>'
        '<child link="l_sole"/><origin xyz="0.01 0 -0.08"/></joint>'
    )
    setup = described(biped(foot="", extra=frame))
    foot = foot_named(setup, "left_leg")
    assert foot.name == "l_sole"
    np.testing.assert_allclose(foot.sole.p_body, [0.01, 0.0, -0.08], atol=1e-9)
    assert any("outline of its sole is guessed" in issue for issue in foot.sole.issues)
    assert (
        foot_named(setup, "right_leg").sole.issues[0].startswith("r_foot has no shape")
    )


@pytest.mark.parametrize(("part", "kind"), [("ankle", "humanoid"), ("finger", None)])
def test_another_axis_than_z_is_up_only_where_names_say_legs(biped, part, kind):
    """The same tree with y upwards: a person's, or a gripper whose fingers point away from it."""
    text = biped().replace("ankle", part)
    if part == "finger":
        for word in ("pitch", "foot", "knee", "roll", "yaw"):
            text = text.replace(f"_{word}", f"_{word[0]}")
    world = '<link name="world"/><joint name="base" type="fixed"><parent link="world"/>'
    turned = (
        f'{world}<child link="pelvis"/><origin rpy="-1.5707963 0 0"/></joint></robot>'
    )
    text = text.replace("</robot>", turned)
    if kind is None:
        with pytest.raises(NoLegsError, match="no legs: "):
            described(text)
        return
    setup = described(text)
    assert setup.limbs.kind == kind
    np.testing.assert_allclose(setup.limbs.R_root_robot[:, 2], [0, 1, 0], atol=1e-6)


def test_soles_that_hardly_hold_the_com_are_named(biped, foot):
    """A robot that stands with its CoM 1 cm from falling needs longer feet, or a better URDF."""
    for length, named in (
        (0.018, ["the CoM is 9 mm inside the support polygon"]),
        (0.026, []),
    ):
        setup = described(biped(foot.replace('size="0.2 ', f'size="{length} ')))
        assert setup.margin == pytest.approx(length / 2, abs=1e-4)
        assert [issue for key, issue in setup.issues if key == "posture"] == named
