"""Legs of five joints, and hips that one drive moves: what is found, and that it is met."""

import dataclasses
import re

import numpy as np
import pytest

from com_control.exceptions import BipedError
from com_control.walking.biped import MAX_FREE, Biped
from com_control.walking.com_ik import ComIk
from com_control.walking.stabiliser import ankle_stiffness
from com_control.walking.walk import WalkRequest
from com_control.walking.walk_plan import find_stance
from com_control.walking.walker import Walker
from com_model import RobotModel, Sesc, link_pose
from com_model.geometry.rotations import rotation_from_rpy


def changed(robots, change):
    """The biped like ITU's with another URDF."""
    biped, oracle = robots("itu_biped")
    model = RobotModel.from_urdf(change(biped.model.xml))
    posture = {k: v for k, v in oracle.config.posture.items() if k in model.joint_names}
    config = dataclasses.replace(oracle.config, joint_groups={}, posture=posture)
    return Biped.from_config(model, config)


def fix(*names):
    """Makes joints fixed."""

    def change(xml):
        for name in names:
            xml, count = re.subn(
                rf'(<joint name="{name}" type=)"revolute"', r'\1"fixed"', xml
            )
            assert count == 1
        return xml

    return change


def couple(multiplier, joint="hip_yaw", offset=0.0):
    """Makes a joint of the right leg follow that of the left one."""

    def change(xml):
        start = xml.index(f'<joint name="r_{joint}_joint" type="revolute">')
        numbers = f'multiplier="{multiplier}" offset="{offset}"'
        follows = f'<mimic joint="l_{joint}_joint" {numbers}/></joint>'
        return xml[:start] + xml[start:].replace("</joint>", follows, 1)

    return change


def without(part):
    return fix(*(f"{side}_{part}_joint" for side in "lr"))


@pytest.mark.parametrize(
    ("part", "turn"),
    [("ankle_roll", "roll"), ("ankle_pitch", "pitch"), ("hip_yaw", "yaw")],
)
def test_what_is_free_of_a_leg_of_five_joints(robots, part, turn):
    biped = changed(robots, without(part))
    assert [leg.free for leg in biped.legs] == [
        f"the {turn} of {side}_sole" for side in "lr"
    ]
    assert [leg.masses[-1] for leg in biped.legs] == [0.0, 0.0]
    whole, _ = robots("itu_biped")
    assert [leg.free for leg in whole.legs] == ["", ""]


def test_legs_that_are_refused(robots):
    for change in (
        fix("l_ankle_roll_joint", "l_ankle_pitch_joint"),
        couple(1, "knee"),
        couple(2),
        couple(1, offset=0.1),
    ):
        with pytest.raises(
            BipedError, match=r"leg must have 6 revolute joints \(or 5\)"
        ):
            changed(robots, change)


def placed(biped, q, R_root, p_root):
    """Poses (2, 3, 4) of the real soles and the real CoM (3,), by the model's kinematics."""
    soles = [
        link_pose(biped.model, q, leg.foot.frame, R_root, p_root) for leg in biped.legs
    ]
    poses = np.array([np.column_stack(pose) for pose in soles])
    return poses, R_root @ Sesc(biped.model).com(q) + p_root


def standing(biped, yaws=(0.0, 0.0)):
    """Feet (2, 3, 4) side by side, the right one a little ahead, and a CoM (3,) over them."""
    stance, feet = find_stance(biped, biped.posture), np.zeros((2, 3, 4))
    for i, (foot, yaw) in enumerate(zip(stance.feet, yaws, strict=True)):
        place = [0.04 * i, foot.y, 0.0]
        feet[i] = np.column_stack((rotation_from_rpy([0.0, 0.0, yaw]), place))
    return feet, stance.com + np.array([0.02, 0.03, -0.01])


def test_soles_are_where_they_are_to_be_but_for_their_roll(robots):
    biped = changed(robots, without("ankle_roll"))
    feet, target = standing(biped, (0.1, -0.05))
    found = ComIk(biped).solve(target, feet)
    assert found.reached, found.reason
    soles, com = placed(biped, found.q, found.R_world_root, found.p_world_root)
    np.testing.assert_allclose(com, target, atol=1e-8)
    np.testing.assert_allclose(soles[:, :, 3], feet[:, :, 3], atol=1e-8)
    np.testing.assert_allclose(
        soles[:, :, 0], feet[:, :, 0], atol=1e-8
    )  # the axis of the roll
    tilts = np.arccos(soles[:, 2, 2])
    assert (tilts > 0.01).all()
    assert (tilts < MAX_FREE).all()
    far = ComIk(biped).solve(target + np.array([0.0, 0.2, -0.1]), feet)
    assert "the roll of l_sole would be at" in far.reason


def test_coupled_hips_ask_their_drive_for_one_angle(robots):
    biped = changed(robots, couple(-1))
    assert biped.coupled
    assert biped.model.n_joints == 11
    ik, (feet, target) = ComIk(biped), standing(biped, (0.15, -0.05))
    found = ik.solve(target, feet)
    assert found.reached, found.reason
    soles, com = placed(biped, found.q, found.R_world_root, found.p_world_root)
    np.testing.assert_allclose(com, target, atol=1e-8)
    np.testing.assert_allclose(soles, feet, atol=1e-8)
    assert (
        abs(np.arctan2(*found.R_world_root[1::-1, 0])) > 0.01
    )  # the pelvis' yaw is free
    point = ik.step(target, feet)
    assert point.outcome == 0
    assert point.q[0] == pytest.approx(point.q[6], abs=1e-8)
    np.testing.assert_allclose(ik.full(point.q), found.q, atol=1e-8)


def test_hips_that_one_drive_turns_to_the_same_side_do_not_turn_a_foot_against_the_other(
    robots,
):
    biped = changed(robots, couple(1))
    feet, target = standing(biped, (0.15, -0.05))
    found = ComIk(biped).solve(target, feet)
    assert not found.reached
    assert ComIk(biped).step(target, feet).outcome != 0


def test_a_walk_on_five_joints_sways_and_says_what_is_free(robots):
    biped = changed(robots, without("ankle_roll"))
    request = WalkRequest(steps=2, step_time=0.35, step_length=0.05, step_height=0.02)
    walk = Walker(biped).plan(request, biped.posture)
    assert (
        "no joint moves the roll of l_sole; no joint moves the roll of r_sole"
        in walk.note
    )
    assert walk.plan.timing.sway == pytest.approx(0.175)
    assert walk.path.q.shape[1] == 10
    stop = Walker(biped).plan_stop(walk, float(walk.plan.lift_offs[0]) + 0.1)
    assert stop.steps <= walk.steps
    with pytest.raises(BipedError, match="no joint moves the roll of l_sole"):
        ankle_stiffness(biped, robots("itu_biped")[1].config)
