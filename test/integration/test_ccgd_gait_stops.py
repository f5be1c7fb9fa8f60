"""What stops a walk: joints, sensors and clocks that fail, services, and a robot that falls."""

import threading

import numpy as np
import pytest
from ccgd_bench import (
    FEET,
    LEVEL,
    LYING,
    MODEL,
    SHORT,
    Bench,
    disturb,
    stands_and_walks_again,
    walk_on,
)
from rclpy.parameter import Parameter
from std_msgs.msg import String
from std_srvs.srv import Trigger

from com_control.walking.walker import Walker
from com_msgs.msg import WalkState
from com_ros.conversions import NS_PER_S, ns_to_stamp, numpy_to_joint_state


@pytest.fixture
def bench(world):
    return lambda **parameters: Bench(world, **parameters)


def test_a_goal_while_walking_is_refused_and_a_cancelled_walk_stops(bench):
    robot = bench()
    robot.until(WalkState.READY)
    handle, _ = robot.walk(steps=[20], step_length=[0.1], step_time=[0.6])
    robot.until(WalkState.WALKING)
    second = robot.result(robot.walk(**SHORT)[0])
    assert "a walk is under way" in second.reason
    handle.cancel_goal_async()
    robot.until(WalkState.STOPPING)
    result = robot.result(handle)
    assert (result.completed, result.reason) == (False, "cancelled")
    assert result.steps < 20
    assert len(robot.ways) == 2
    assert robot.sample() == WalkState.READY


def test_a_walk_that_was_cancelled_while_it_was_planned_is_not_walked_in_place_of_the_next(
    bench,
):
    robot = bench()
    robot.until(WalkState.READY)
    first, _ = robot.walk(steps=[40], step_length=[0.1], step_time=[0.6])
    cancelled = first.cancel_goal_async()
    robot.world.spin_until(cancelled.done, "the cancel is taken")
    second, _ = robot.walk(**SHORT)
    assert robot.ways == [], "the first one is still being planned"
    assert robot.result(first).reason == "cancelled"
    result = robot.result(second)
    assert (result.completed, result.steps, len(robot.ways)) == (True, 2, 1)


def test_a_stop_that_takes_longer_to_plan_than_it_may_is_given_more_time(
    bench, monkeypatch
):
    robot = bench()
    robot.until(WalkState.READY)
    handle, _ = robot.walk(
        steps=[12], step_length=[0.1], step_time=[0.6], method="exact"
    )
    robot.until(WalkState.WALKING)
    plan, asked = Walker.plan_stop, []
    passed = threading.Event()

    def slow(walker, walk, at):
        asked.append(at)
        passed.clear()
        passed.wait(30.0)  # until 0.8 s of the robot have passed
        return plan(walker, walk, at)

    monkeypatch.setattr(Walker, "plan_stop", slow)
    handle.cancel_goal_async()
    robot.until(WalkState.STOPPING)
    while len(robot.ways) == 1:
        for _ in range(16):
            robot.sample()
        tries = len(asked)
        passed.set()
        robot.world.spin_until(
            lambda tries=tries: len(robot.ways) == 2 or len(asked) > tries,
            "a stop or a new try",
        )
    assert robot.result(handle).steps < 12
    assert len(asked) == 2, "0.3 s ahead, then half as long again as that took"


def test_a_description_that_changes_in_a_walk_is_not_taken(bench):
    robot = bench(robot_description="", joint_timeout=30.0)
    robot.world.latch("robot_description", String(data=MODEL.xml))
    robot.until(WalkState.READY)
    handle, _ = robot.walk(**SHORT)
    robot.until(WalkState.WALKING)
    heavier = MODEL.xml.replace('mass value="5', 'mass value="9')
    assert heavier != MODEL.xml
    robot.world.latch("robot_description", String(data=heavier))
    result = robot.result(handle)
    assert (result.completed, result.steps, len(robot.ways)) == (True, 2, 1)


def test_joints_in_another_order_late_and_twice(bench):
    robot = bench()
    robot.until(WalkState.READY)
    handle, _ = robot.walk(**SHORT)
    robot.until(WalkState.WALKING)
    rng, order = np.random.default_rng(5), np.arange(MODEL.n_joints)
    future = handle.get_result_async()
    while not future.done():
        rng.shuffle(order)
        names = [MODEL.joint_names[i] for i in order]
        wild = np.full(MODEL.n_joints, rng.choice((np.nan, 1.0)))
        msg = numpy_to_joint_state(names, robot.q[order])
        robot.send("joint_states", msg)  # again, with the stamp of the last sample
        msg.header.stamp = ns_to_stamp(robot.time_ns - 100_000_000)
        msg.position = wild.tolist()  # late, and of no use
        robot.world.send("joint_states", msg)
        robot.sample()
    result = future.result().result
    assert (result.completed, result.steps, len(robot.ways)) == (True, 2, 1)
    walked = [s for s in robot.states if s.state == WalkState.WALKING]
    assert max(s.com_error for s in walked) < 2e-4


def test_a_stamp_that_jumps_ahead_in_a_walk_has_no_effect(bench):
    robot = bench()
    robot.until(WalkState.READY)
    handle, _ = robot.walk(**SHORT)
    robot.until(WalkState.WALKING)
    true_ns, robot.time_ns = robot.time_ns, robot.time_ns + 100 * NS_PER_S
    robot.send("joint_states", numpy_to_joint_state(MODEL.joint_names, robot.q))
    robot.time_ns = true_ns
    assert robot.sample() == WalkState.WALKING
    result = robot.result(handle)
    assert (result.completed, result.steps, len(robot.ways)) == (True, 2, 1)
    assert robot.time_ns < true_ns + 20 * NS_PER_S


@pytest.mark.parametrize(
    "jump", [pytest.param(-100.0, marks=pytest.mark.exhaustive), 100.0]
)
def test_a_clock_that_jumps_for_good_stops_the_walk(bench, jump):
    robot = bench(walk__method="exact")
    handle = walk_on(robot)
    robot.time_ns += round(jump * NS_PER_S)
    robot.path = robot.path.shifted(jump)
    disturb(robot, 1.0, lambda q: q)
    stands_and_walks_again(robot, handle, "the clock of joint_states jumped by ")


def frozen():
    """Positions that stay where they were first."""
    first = []
    return lambda q: first[0] if first else (first.append(q), q)[1]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (frozen(), "do not follow"),
        pytest.param(
            lambda q: q + 1e6, "joint_states timed out", marks=pytest.mark.exhaustive
        ),
        (lambda q: q + 1e300, "joint_states timed out"),
        (lambda q: q + 2.0, "reports"),
    ],
    ids=["frozen", "1e6", "1e300", "2 rad off"],
)
def test_joints_that_cannot_be_stop_the_walk(bench, change, reason):
    robot = bench(walk__method="exact", guard__following_error=5.0)
    handle = walk_on(robot)
    if "timed out" in reason:  # what cannot be at all does not count as received
        robot.node.set_parameters([Parameter("joint_timeout", value=0.5)])
    disturb(robot, 2.0, change)
    robot.node.set_parameters([Parameter("joint_timeout", value=30.0)])
    stands_and_walks_again(robot, handle, reason)


@pytest.mark.parametrize(
    ("stale", "reason"), [(FEET, "l_sole/wrench is"), (("imu",), "imu is")]
)
def test_sensors_that_time_out_stop_the_walk(bench, stale, reason):
    robot = bench()
    robot.attitude = LEVEL
    robot.until(WalkState.READY)
    handle, _ = robot.walk(steps=[8], step_length=[0.1], step_time=[0.6])
    robot.until(WalkState.WALKING)
    for _ in range(60):
        robot.sample()
    robot.stale = stale
    result = robot.result(handle)
    assert reason in result.reason
    assert " is stale, " in result.reason
    assert 0 < result.steps < 8
    assert robot.path.end < robot.time_ns / NS_PER_S + 1.0, "the rest is cut off"


@pytest.mark.parametrize("streamed", [False, True])
def test_stale_joints_bring_both_feet_down_in_one_piece(bench, streamed):
    robot = bench(
        joint_timeout=1.0, streamed=streamed, horizon=0.06, walk__method="exact"
    )
    robot.until(WalkState.READY)
    handle, _ = robot.walk(steps=[9], step_length=[0.1], step_time=[0.6])
    robot.until(WalkState.WALKING)
    for _ in range(50):
        robot.sample()
    ways = len(robot.ways)
    robot.world.spin_until(lambda: len(robot.ways) > ways, "the rest of the motion")
    future = handle.get_result_async()
    robot.world.spin_until(future.done, "the end")
    assert "joint_states timed out" in future.result().result.reason
    robot.take()
    assert len(robot.ways[-1].points) > 50
    assert not np.array(robot.ways[-1].points[-1].velocities).any()
    again = robot.sample(10 * NS_PER_S)
    assert again in (WalkState.READY, WalkState.UNKNOWN)


def test_a_robot_that_falls_gets_no_more_commands(bench):
    robot = bench()
    robot.attitude = LEVEL
    robot.until(WalkState.READY)
    handle, _ = robot.walk(**SHORT)
    robot.until(WalkState.WALKING)
    robot.attitude = LYING
    robot.until(WalkState.FALLEN)
    assert "set it upright" in robot.result(handle).reason
    ways = len(robot.ways)
    for _ in range(10):
        robot.sample()
    assert len(robot.ways) == ways == 2


@pytest.mark.parametrize("streamed", [False, True])
def test_the_stop_service(bench, streamed):
    robot = bench(streamed=streamed, horizon=0.06)
    robot.until(WalkState.READY)
    handle, _ = robot.walk(**SHORT)
    robot.until(WalkState.APPROACHING)
    assert robot.call(Trigger, "stop", Trigger.Request()).success
    assert robot.result(handle).reason == "stopped by ~/stop"
    assert len(robot.ways[-1].points) > 10
    assert not np.array(robot.ways[-1].points[-1].velocities).any()
