"""Walks of whole robots from where they stand, and stops in the middle of them."""

from dataclasses import replace

import numpy as np
import pytest

from com_control.exceptions import BipedError, PlanError
from com_control.walking.biped import Biped, sole_poses, sole_slip
from com_control.walking.footsteps import Footstep
from com_control.walking.walk import WalkRequest, make_plan
from com_control.walking.walk_joints import check_path
from com_control.walking.walk_plan import WalkPlan, find_stance
from com_control.walking.walker import Walker
from com_model import RobotModel
from com_model.robot_config import WalkingSizes

pytestmark = pytest.mark.slow

PAPER = WalkRequest(steps=6, step_length=0.3, step_height=0.075, com_height=0.45)


@pytest.fixture(scope="module")
def itu(robots):
    biped, oracle = robots("itu_biped")
    walker = Walker(biped)
    return biped, oracle, walker, walker.plan(PAPER, biped.posture)


def com_of(biped, oracle, q, foot, sole):
    """The CoM by Pinocchio, with a foot where it is planned."""
    poses, com = oracle.place(q, np.eye(3), np.zeros(3))
    R = sole[:, :3] @ poses[foot][:, :3].T
    return sole[:, 3] + R @ (com - poses[foot][:, 3])


def test_the_walk_frame_lies_between_the_soles(robots):
    for name in ("itu_biped", "hoap2", "talos"):
        biped, _ = robots(name)
        stance = find_stance(biped, biped.posture)
        left, right = stance.feet
        assert [left.side, right.side] == ["left", "right"]
        assert left.x == pytest.approx(-right.x)
        assert left.y == pytest.approx(-right.y)
        assert left.y > 0.0
        soles = sole_poses(biped, biped.posture)
        middle = stance.R_walk_root @ soles[:, :, 3].mean(axis=0) + stance.p_walk_root
        np.testing.assert_allclose(middle, 0.0, atol=1e-12)
        assert stance.com[2] > 0.0
        np.testing.assert_allclose(
            stance.R_walk_root @ stance.R_walk_root.T, np.eye(3), atol=1e-12
        )


def test_soles_that_are_not_level_are_refused(robots):
    biped, _ = robots("itu_biped")
    q = biped.posture.copy()
    q[biped.legs[0].joints[3]] += 0.3
    with pytest.raises(
        PlanError, match="the soles are not on one plane: the left one is"
    ):
        find_stance(biped, q)
    assert sole_slip(biped, np.array([biped.posture, q])) > 0.05


@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("itu_biped", "exact"),
        ("itu_biped", "refined"),
        ("itu_biped", "ccgd"),
        ("hoap2", "ccgd"),
        ("hoap2", "refined"),
        ("talos", "exact"),
    ],
)
def test_robots_walk_as_fits_their_size(robots, name, method):
    biped, oracle = robots(name)
    walk = Walker(biped).plan(WalkRequest(steps=3, method=method), biped.posture)
    check_path(biped.model, walk.path)
    assert walk.note == ""
    np.testing.assert_array_equal(walk.path.qd[[0, -1]], 0.0)
    tolerance = 1e-3 if method == "ccgd" else 2e-9
    for i in range(0, len(walk.path.time), 97):
        foot = int(np.argmax(walk.samples.stance[i]))
        com = com_of(biped, oracle, walk.path.q[i], foot, walk.samples.feet[i, foot])
        np.testing.assert_allclose(com, walk.samples.com[i], atol=tolerance)


def test_what_is_not_asked_for_is_as_the_configuration_says(robots):
    biped, oracle = robots("itu_biped")
    sizes = WalkingSizes(
        step_width=0.3, step_length=0.11, step_height=0.03, step_time=0.8
    )
    configured = replace(oracle.config, walking=sizes)
    biped = Biped.from_config(biped.model, configured)
    stance = find_stance(biped, biped.posture)
    timing = make_plan(WalkRequest(steps=3), biped, stance).timing
    assert (timing.step_height, timing.step_time) == (0.03, 0.8)
    plan = make_plan(WalkRequest(steps=3, step_time=1.0), biped, stance)
    assert plan.timing.step_time == 1.0
    assert [abs(step.y) for step in plan.steps] == pytest.approx([0.15] * 3)
    assert plan.steps[1].x - plan.steps[0].x == pytest.approx(0.11)


def with_hips(itu, inwards=0.6, effort=250.0):
    """The biped with hips that turn inwards by so many rad only, or have another effort."""
    biped, oracle = itu[:2]
    xml, before = biped.model.xml, 'lower="-0.6" upper="0.6" effort="250"'
    for side, low, up in (("l", -inwards, 0.6), ("r", -0.6, inwards)):
        start = xml.index(f'<joint name="{side}_hip_roll_joint"')
        after = f'lower="{low}" upper="{up}" effort="{effort}"'
        xml = xml[:start] + xml[start:].replace(before, after, 1)
    model = RobotModel.from_urdf(xml)
    return Biped.from_config(model, oracle.config)


@pytest.mark.parametrize(
    ("method", "missing", "lean"),
    [("exact", 0.02, 0.06), ("refined", 0.02, 0.06), ("exact", 0.12, 0.2)],
)
def test_the_pelvis_leans_where_the_hips_do_not_turn_inwards(
    itu, method, missing, lean
):
    _, oracle, walker, _ = itu
    request = replace(PAPER, method=method, steps=3)
    upright = walker.plan(request, walker.biped.posture)
    hips = [leg.joints[1] for leg in walker.biped.legs]
    turned = [upright.path.q[:, hips[0]].min(), -upright.path.q[:, hips[1]].max()]
    biped = with_hips(itu, inwards=-max(turned) - missing)
    with pytest.raises(PlanError, match="hip_roll_joint would be at"):
        Walker(biped).solve(upright.plan, method)
    walk = Walker(biped).plan(request, biped.posture)
    check_path(biped.model, walk.path)
    assert (
        f"the pelvis leans by {lean:g} rad over the standing foot; upright the walk"
        in walk.note
    )
    assert "hip_roll_joint would be at" in walk.note
    np.testing.assert_array_equal(
        walk.samples.zmp, upright.samples.zmp
    )  # in the soles' middle
    np.testing.assert_array_equal(walk.samples.feet, upright.samples.feet)
    for i in range(0, len(walk.path.time), 97):
        foot = int(np.argmax(walk.samples.stance[i]))
        com = com_of(biped, oracle, walk.path.q[i], foot, walk.samples.feet[i, foot])
        np.testing.assert_allclose(com, walk.samples.com[i], atol=2e-9)
    up = walk.samples.R_pelvis[:, :, 2]
    assert (up[:, 1] * walk.samples.com[:, 1] >= -1e-9).all(), (
        "towards the standing foot"
    )
    assert lean / 3.0 < np.abs(up[:, 1]).max() < lean
    assert up[[0, -1], 2] == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("method", ["exact", "refined"])
def test_the_pelvis_leans_backwards_where_hips_bend_little(itu, method):
    _, oracle, walker, _ = itu
    request = replace(PAPER, method=method, steps=3)
    upright = walker.plan(request, walker.biped.posture)
    leaning = replace(upright.plan.timing, pelvis_pitch=-0.15)
    plan = WalkPlan(upright.plan.start, upright.plan.steps, leaning)
    hips = [leg.joints[2] for leg in walker.biped.legs]
    needed, less = (
        float(walk.path.q[:, hips].min())
        for walk in (upright, walker.solve(plan, method))
    )
    assert less > needed + 0.1
    xml = walker.biped.model.xml
    for side in "lr":
        start = xml.index(f'<joint name="{side}_hip_pitch_joint"')
        lower = f'lower="{0.5 * (needed + less)}"'
        xml = xml[:start] + xml[start:].replace('lower="-1.7"', lower, 1)
    model = RobotModel.from_urdf(xml)
    biped = Biped.from_config(model, oracle.config)
    with pytest.raises(PlanError, match="hip_pitch_joint would be at"):
        Walker(biped).solve(upright.plan, method)
    walk = Walker(biped).plan(request, biped.posture)
    check_path(model, walk.path)
    assert "the pelvis leans backwards by 0.15 rad" in walk.note
    assert "hip_pitch_joint would be at" in walk.note
    pitch = -np.arcsin(walk.samples.R_pelvis[:, 2, 0])
    np.testing.assert_allclose(pitch, -0.15, atol=1e-9)
    for i in range(0, len(walk.path.time), 97):
        foot = int(np.argmax(walk.samples.stance[i]))
        com = com_of(biped, oracle, walk.path.q[i], foot, walk.samples.feet[i, foot])
        np.testing.assert_allclose(com, walk.samples.com[i], atol=2e-9)


def test_the_pelvis_leans_where_the_hips_are_weak(itu):
    biped = itu[0]
    needed = biped.model.mass * 9.80665 * abs(biped.legs[0].points[1][1])
    for effort, lean in ((1.05 * needed, 0.0), (0.95 * needed, 0.2)):
        weak = with_hips(itu, effort=effort)
        walk = Walker(weak).plan(WalkRequest(steps=2), weak.posture)
        assert walk.plan.timing.pelvis_roll == lean
        assert ("efforts do not carry" in walk.note) == bool(lean)


def test_hips_that_no_lean_helps_are_refused(itu):
    biped = with_hips(itu, inwards=0.001)
    with pytest.raises(PlanError, match="hip_roll_joint would be at"):
        Walker(biped).plan(PAPER, biped.posture)


def test_footsteps_in_place_of_numbers(itu):
    biped, _, walker, _ = itu
    steps = (Footstep("left", 0.1, 0.065), Footstep("right", 0.1, -0.065))
    walk = walker.plan(WalkRequest(footsteps=steps), biped.posture)
    assert walk.plan.steps == steps
    crossing = (Footstep("left", 0.1, -0.2),)
    with pytest.raises(PlanError, match=r"footstep 0: the feet cross or touch"):
        walker.plan(WalkRequest(footsteps=crossing), biped.posture)


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (
            WalkRequest(step_time=0.0),
            r"step_time is 0\.0: give a number from 0\.001 to 60",
        ),
        (WalkRequest(step_time=-1.0), r"step_time is -1\.0: give a number"),
        (WalkRequest(step_length=0.7), "leg is too short"),
        (WalkRequest(com_height=0.9), "leg is too short"),
        (
            WalkRequest(method="fast"),
            "method is 'fast': give one of exact, refined, ccgd",
        ),
        (WalkRequest(step_time=0.1, step_length=0.3), r"rad/s, its limit is 12\.00"),
    ],
)
def test_what_cannot_be_walked_is_refused(itu, request_, reason):
    biped, _, walker, _ = itu
    with pytest.raises(PlanError, match=reason):
        walker.plan(request_, biped.posture)


def test_the_papers_algorithm_wants_legs_of_closed_form(robots):
    biped, _ = robots("icub")
    with pytest.raises(
        BipedError, match=r"\[CCGD\] cannot solve these legs: use the method exact"
    ):
        Walker(biped).plan(WalkRequest(method="ccgd"), biped.posture)


@pytest.mark.parametrize(
    ("t", "steps"), [(1.0, 0), (2.0, 2), (3.0, 2), (5.0, 4), (9.7, 6)]
)
def test_a_stop_makes_few_more_steps_without_a_jump(itu, t, steps):
    biped, oracle, walker, walk = itu
    stopped = walker.plan_stop(walk, t)
    assert len(stopped.plan.steps) == steps
    check_path(biped.model, stopped.path)
    before = stopped.path.time <= t
    np.testing.assert_array_equal(stopped.path.q[before], walk.path.q[: before.sum()])
    jumps = np.abs(np.diff(stopped.path.q, axis=0)).max(axis=0)
    assert (jumps <= 0.0101 * biped.model.velocity_limits).all()
    last = stopped.samples
    com = com_of(biped, oracle, stopped.path.q[-1], 0, last.feet[-1, 0])
    np.testing.assert_allclose(com[:2], last.feet[-1, :, :2, 3].mean(axis=0), atol=2e-3)
    assert last.stance[-1].all()


def test_a_walk_goes_on_from_where_another_stopped(itu):
    _, _, walker, walk = itu
    stopped = walker.plan_stop(walk, 3.0)
    again = walker.plan(PAPER, stopped.path.q[-1])
    np.testing.assert_allclose(again.path.q[0], stopped.path.q[-1], atol=5e-3)
    left, right = again.plan.start
    assert left.y - right.y == pytest.approx(0.13, abs=1e-3)


def test_walks_one_after_the_other_do_not_sink(robots):
    biped, _ = robots("hoap2")
    walker, q = Walker(biped), biped.posture
    stands, heights = find_stance(biped, q).com[2], []
    for given in (None, None, None, 0.9 * stands, None, None):
        request = WalkRequest(steps=2, step_length=0.0, com_height=given)
        q = walker.plan(request, q).path.q[-1]
        heights.append(find_stance(biped, q).com[2])
    expected = [0.98 * stands] * 3 + [0.9 * stands] * 3
    assert heights == pytest.approx(expected, abs=1e-4)


def test_instants_tell_step_and_swing(itu):
    _, _, _, walk = itu
    assert (walk.instant(0.0).step, walk.instant(0.0).swing) == (0, "")
    middle = 0.5 * (walk.plan.lift_offs[1] + walk.plan.touch_downs[1])
    assert (walk.instant(middle).step, walk.instant(middle).swing) == (1, "left")
    assert walk.steps_made(middle) == 1
    assert walk.instant(walk.duration).step == -1


def test_an_instant_between_two_points_is_that_of_the_plan(itu):
    _, _, walker, _ = itu
    walk = walker.plan(WalkRequest(steps=2, method="exact"), walker.biped.posture)
    for t in (
        -1.0,
        0.0,
        0.0037,
        2.3456,
        3.1,
        walk.duration - 1e-4,
        walk.duration + 1.0,
    ):
        meant = walk.plan.sample([t])
        np.testing.assert_allclose(walk.instant(t).com, meant.com[0], atol=5e-5)
        np.testing.assert_allclose(
            walk.instant(t).zmp, meant.zmp[0], atol=2e-3
        )  # it has corners
