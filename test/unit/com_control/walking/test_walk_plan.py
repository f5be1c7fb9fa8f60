"""Footsteps, swing feet, the pendulum, and walks made of them."""

import numpy as np
import pytest
from baselines.paper_walk import paper_walk, standing
from scipy.integrate import solve_ivp

from com_control.exceptions import PlanError
from com_control.walking.com_ik import ComIk
from com_control.walking.footsteps import Footstep, WalkParameters, plan_footsteps
from com_control.walking.walk_plan import PendulumPath, Timing, WalkPlan, quintic

WALKS = {
    "paper": WalkParameters(),
    "turning": WalkParameters(turn=0.2, step_length=0.2),
    "sideways": WalkParameters(side_step=0.08, step_length=0.0, first="left"),
    "to the right": WalkParameters(side_step=-0.08, step_length=0.1),
    "upstairs": WalkParameters(climb=0.05, step_length=0.2),
    "downstairs": WalkParameters(climb=-0.04, step_length=0.2),
    "backwards": WalkParameters(step_length=-0.15),
    "in place": WalkParameters(step_length=0.0, steps=3),
    "standing": WalkParameters(steps=0),
}


def test_the_quintic_rests_at_both_ends_to_the_second_derivative():
    for derivative in quintic([0.0, 1.0])[1:]:
        np.testing.assert_allclose(derivative, 0.0, atol=1e-12)
    s, h = np.linspace(0.01, 0.99, 50), 1e-5
    ahead, here, behind = quintic(s + h), quintic(s), quintic(s - h)
    np.testing.assert_allclose((ahead[0] - behind[0]) / (2 * h), here[1], atol=1e-7)
    np.testing.assert_allclose((ahead[1] - behind[1]) / (2 * h), here[2], atol=1e-6)
    np.testing.assert_allclose(
        quintic([-1.0, 0.0, 0.5, 1.0, 2.0])[0], [0, 0, 0.5, 1, 1]
    )


def test_a_swing_clears_the_edge_of_a_step():
    for end in (0.2, -0.2):
        step = Footstep("right", 0.3, -0.065, end)
        plan = WalkPlan(standing(), [step], Timing(step_height=0.05))
        foot = plan.sample(
            np.linspace(plan.lift_offs[0], plan.touch_downs[0], 101)
        ).feet[:, 1, :, 3]
        np.testing.assert_allclose(
            foot[[0, -1]], [[0, -0.065, 0], [0.3, -0.065, end]], atol=1e-12
        )
        assert foot[:, 2].max() > max(0.0, end) + 0.04


def test_the_pendulum_obeys_its_equation():
    times = [0.0, 1.0, 1.3, 2.0, 2.4, 3.5]
    zmp = np.array(
        [[0, 0], [0, 0], [0.1, 0.06], [0.1, 0.06], [0.4, -0.06], [0.4, -0.06]]
    )
    path = PendulumPath.from_zmp(times, zmp, 4.0)
    t, h = np.linspace(0.02, 3.48, 173), 1e-4
    com, velocity, acceleration, now = path.sample(t)
    np.testing.assert_allclose(acceleration, 16.0 * (com - now), atol=1e-12)
    away = np.abs(t[:, None] - np.array(times)).min(axis=1) > 2 * h
    rate = (path.sample(t + h)[0] - path.sample(t - h)[0]) / (2 * h)
    np.testing.assert_allclose(rate[away], velocity[away], atol=1e-6)
    rate = (path.sample(t + h)[1] - path.sample(t - h)[1]) / (2 * h)
    np.testing.assert_allclose(rate[away], acceleration[away], atol=1e-6)


def test_the_pendulum_agrees_with_integration():
    times = np.array([0.0, 0.5, 0.8, 1.5, 1.8])
    zmp = np.array([[0.0, 0.0], [0.0, 0.0], [0.1, 0.05], [0.1, 0.05], [0.2, 0.0]])
    path = PendulumPath.from_zmp(times, zmp, 4.67)

    def rates(t, state):
        p = [np.interp(t, times, zmp[:, i]) for i in range(2)]
        return [*state[2:], *(4.67**2 * (state[:2] - p))]

    com, velocity, *_ = path.sample([0.0])
    done = solve_ivp(
        rates, (0, 1.8), [*com[0], *velocity[0]], rtol=1e-11, atol=1e-13, max_step=0.01
    )
    end, speed, *_ = path.sample([1.8])
    np.testing.assert_allclose(done.y[:2, -1], end[0], atol=1e-6)
    np.testing.assert_allclose(done.y[2:, -1], speed[0], atol=1e-5)


def test_the_pendulum_starts_at_rest_and_ends_over_its_zmp():
    path = PendulumPath.from_zmp(
        [0, 2, 2.4, 4.4], [[0, 0], [0, 0], [0.1, 0], [0.1, 0]], 4.67
    )
    com, velocity, *_ = path.sample([0.0, 4.4])
    np.testing.assert_allclose(velocity[0], 0.0, atol=1e-15)
    np.testing.assert_allclose(com[0], 0.0, atol=1e-5)
    np.testing.assert_allclose(com[1], [0.1, 0.0], atol=1e-5)
    np.testing.assert_allclose(velocity[1], 0.0, atol=1e-4)


@pytest.mark.parametrize("name", WALKS)
def test_a_walk_is_smooth_and_its_zmp_is_over_the_feet(name):
    plan = paper_walk(WALKS[name])
    t = plan.grid(0.005)
    s, dt = plan.sample(t), t[1] - t[0]
    np.testing.assert_allclose(s.com[0, :2], 0.0, atol=2e-4)
    np.testing.assert_allclose(s.com_velocity[[0, -1]], 0.0, atol=1e-3)
    # positions and speeds do not jump, neither do the feet's accelerations
    np.testing.assert_allclose(
        np.diff(s.com, axis=0) / dt, _mean(s.com_velocity), atol=2e-3
    )
    np.testing.assert_allclose(
        np.diff(s.com_velocity[:, :2], axis=0) / dt,
        _mean(s.com_acceleration[:, :2]),
        atol=0.05,
    )
    yaw = np.unwrap(np.arctan2(s.feet[..., 1, 0], s.feet[..., 0, 0]), axis=0)
    places = np.dstack((s.feet[..., 3], yaw))
    assert np.abs(np.diff(places, 3, axis=0)).max() / dt**2 < 60 * dt * 3
    assert s.stance.any(axis=1).all()
    for side in range(2):
        alone = s.stance[:, side] & ~s.stance[:, 1 - side]
        sole = s.feet[alone, side, :, 3]
        np.testing.assert_allclose(s.zmp[alone, :2], sole[:, :2], atol=1e-9)
        stays = s.stance[1:, side] & s.stance[:-1, side]
        np.testing.assert_allclose(
            np.diff(places[:, side], axis=0)[stays], 0.0, atol=1e-12
        )
    ends = plan.sample([plan.duration])
    np.testing.assert_allclose(
        ends.zmp[0], ends.feet[0, :, :, 3].mean(axis=0), atol=1e-9
    )
    np.testing.assert_allclose(ends.com[0, :2], ends.zmp[0, :2], atol=2e-4)


def _mean(values):
    return 0.5 * (values[1:] + values[:-1])


@pytest.mark.parametrize("name", WALKS)
def test_the_robot_can_walk_it(robots, name):
    ik = ComIk(robots("itu_biped")[0])
    plan = paper_walk(WALKS[name])
    s = plan.sample(plan.grid(0.01))
    path = ik.solve_path(s.com, s.feet, s.R_pelvis)
    assert (path.outcomes == 0).all()
    speeds = np.abs(np.diff(path.q, axis=0)) / s.time[1]
    limits = np.concatenate(
        [ik.biped.model.velocity_limits[leg.joints] for leg in ik.biped.legs]
    )
    assert (speeds.max(axis=0) < limits).all()


def test_the_default_walk_is_that_of_the_paper():
    steps = plan_footsteps(WalkParameters(), standing())
    assert [step.side for step in steps] == ["right", "left"] * 3
    np.testing.assert_allclose(
        [step.x for step in steps], [0.3, 0.6, 0.9, 1.2, 1.5, 1.5]
    )
    np.testing.assert_allclose([abs(step.y) for step in steps], 0.065)
    timing = Timing()
    assert (timing.com_height, timing.step_height) == (0.45, 0.075)


def test_all_walks_end_side_by_side():
    for walk in WALKS.values():
        feet = {
            foot.side: foot for foot in (*standing(), *plan_footsteps(walk, standing()))
        }
        left, right = feet["left"], feet["right"]
        away = left.position - right.position
        expected = 0.13 * np.array([-np.sin(left.yaw), np.cos(left.yaw), 0.0])
        np.testing.assert_allclose(away, expected, atol=1e-12)
        assert left.yaw == pytest.approx(right.yaw)


def test_timing_of_the_steps():
    plan = paper_walk(
        WalkParameters(steps=2), Timing(step_time=1.0, double_support=0.5)
    )
    np.testing.assert_allclose(plan.lift_offs, [2.0, 3.5])
    np.testing.assert_allclose(plan.touch_downs, [3.0, 4.5])
    assert plan.duration == pytest.approx(6.5)
    stance = plan.sample([1.99, 2.5, 3.2, 4.0, 4.8]).stance
    assert stance.tolist() == [
        [True, True],
        [True, False],
        [True, True],
        [False, True],
        [True, True],
    ]


def test_a_sway_spares_the_com_the_way_to_the_first_foot_and_from_the_last():
    steps = plan_footsteps(WalkParameters(steps=4, step_length=0.1), standing())
    timing = {"step_time": 0.4, "double_support": 0.3, "com_height": 0.6}
    plain = WalkPlan(standing(), steps, Timing(**timing))
    swaying = WalkPlan(standing(), steps, Timing(**timing, sway=0.2))
    assert swaying.duration - plain.duration == pytest.approx(2 * (0.3 + 0.2))
    assert swaying.lift_offs[0] - plain.lift_offs[0] == pytest.approx(0.3 + 0.2)
    sides = []
    for plan in (plain, swaying):
        samples = plan.sample(plan.grid(0.01))
        sides.append(np.abs(samples.com[:, 1]).max())
        np.testing.assert_allclose(samples.com[[0, -1], 1], 0.0, atol=2e-3)
    assert sides[1] < 0.85 * sides[0]
    # the ZMP is on the foot that swings first, which stands, then on the other one
    before = swaying.sample(
        [swaying.lift_offs[0] - 0.3 - 0.1, swaying.lift_offs[0] + 0.1]
    )
    own = np.array([0, 1]) if steps[0].side == "left" else np.array([1, 0])
    np.testing.assert_allclose(
        before.zmp[:, 1], before.feet[[0, 1], own, 1, 3], atol=1e-9
    )
    assert before.stance[0].all()


def test_a_turn_over_half_a_circle_goes_the_short_way():
    steps = (Footstep("right", 0.0, -0.065, yaw=0.3),)
    start = standing(yaw=6.2 - 2 * np.pi)
    plan = WalkPlan(start, steps, Timing(min_width=0.0))
    yaws = plan.sample(plan.grid(0.01)).R_pelvis
    assert np.arccos(np.clip(yaws[:, 0, 0], -1, 1)).max() < 0.3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"step_time": 0.0}, "step_time is 0.0: give a number from 0.001 to 60"),
        ({"step_time": -1.0}, "step_time is -1.0"),
        ({"double_support": 0.0}, "double_support is 0.0"),
        ({"com_height": float("nan")}, "com_height is nan"),
        ({"zmp_x": float("inf")}, "zmp_x is inf"),
    ],
)
def test_bad_times_and_heights(arguments, message):
    with pytest.raises(PlanError, match=message):
        Timing(**arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"steps": -1}, "steps is -1: give a whole number from 0 to 10000"),
        ({"steps": 2.5}, "steps is 2.5"),
        ({"step_length": float("nan")}, "step_length is nan: give a finite number"),
        ({"turn": 3.0}, "turn is 3.0: give a number from -1.5708 to 1.5708"),
        ({"first": "front"}, "first is 'front': give left or right"),
        ({"half_width": 0.0}, "half_width is 0.0"),
    ],
)
def test_bad_walks(arguments, message):
    with pytest.raises(PlanError, match=message):
        WalkParameters(**arguments)


@pytest.mark.parametrize(
    ("steps", "timing", "message", "step"),
    [
        (
            [Footstep("right", 0.2, 0.1)],
            {},
            "footstep 0: the feet cross or touch: the left foot",
            0,
        ),
        (
            [Footstep("right", 0.2, -0.065), Footstep("right", 0.4, -0.065)],
            {},
            "footstep 1: the right foot steps twice: the feet take turns",
            1,
        ),
        (
            [Footstep("left", 0.0, 0.1, yaw=1.0)],
            {},
            "turns by 1.000 rad to the other foot",
            0,
        ),
    ],
)
def test_steps_that_cannot_be(steps, timing, message, step):
    with pytest.raises(PlanError, match=message) as error:
        WalkPlan(standing(), steps, Timing(**timing))
    assert error.value.step == step


def test_bad_starts():
    with pytest.raises(
        PlanError, match="starts from left, left: give one left and one right foot"
    ):
        WalkPlan((standing()[0],) * 2, ())
    with pytest.raises(PlanError, match="the feet cross or touch") as error:
        WalkPlan((Footstep("left", 0, -0.1), Footstep("right", 0, 0.1)), ())
    assert error.value.step is None
    with pytest.raises(PlanError, match="side is 'middle': give left or right"):
        Footstep("middle", 0.0, 0.0)
    with pytest.raises(PlanError, match="y of a footstep is nan: give a finite number"):
        Footstep("left", 0.0, float("nan"))
    with pytest.raises(PlanError, match="dt is 0: give a time above 0 s"):
        paper_walk().grid(0)


def test_corners_that_do_not_rise():
    with pytest.raises(PlanError, match="times of the ZMP's corners must rise"):
        PendulumPath.from_zmp([0.0, 0.0], np.zeros((2, 2)), 4.0)
    with pytest.raises(PlanError, match="not a finite number"):
        PendulumPath.from_zmp([0.0, 1.0], np.full((2, 2), np.nan), 4.0)
