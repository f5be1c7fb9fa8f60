"""ccgd_gait over DDS: a robot that follows it walks, and is not led where it must not go."""

import threading

import numpy as np
import pytest
from ccgd_bench import FEET, LEVEL, LYING, MODEL, POSTURE, SHORT, WEIGHT, Bench
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PointStamped, Twist
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import Trigger
from tf2_msgs.msg import TFMessage
from visualization_msgs.msg import MarkerArray

from com_control import walking
from com_control.nodes.ccgd_gait import CcgdGaitNode
from com_control.nodes.ccgd_output import footstep_to_msg
from com_control.walking.walker import Walker
from com_msgs.msg import Footstep, WalkGoal, WalkState
from com_msgs.srv import PlanWalk, SolveComIk
from com_ros.conversions import ns_to_stamp, numpy_to_joint_state
from com_ros.exceptions import ParameterError


@pytest.fixture
def bench(world):
    return lambda **parameters: Bench(world, **parameters)


def test_a_walk_by_the_action(bench, world):
    com = world.collect(PointStamped, "gait/com_reference", 2000)
    markers = world.collect(MarkerArray, "gait/markers", 2000)
    frames = world.collect(TFMessage, "/tf", 2000)
    robot = bench()
    robot.until(WalkState.READY)
    handle, feedback = robot.walk(**SHORT)
    result = robot.result(handle)
    assert (result.completed, result.reason, result.steps) == (True, "", 2)
    assert len(robot.ways) == 1, "the whole walk at once"
    seen = {state.state for state in robot.states}
    assert seen >= {WalkState.READY, WalkState.APPROACHING, WalkState.WALKING}
    walked = [s for s in robot.states if s.state == WalkState.WALKING]
    assert {s.swing for s in walked} == {
        Footstep.LEFT,
        Footstep.RIGHT,
        Footstep.UNKNOWN,
    }
    assert {s.step for s in walked} == {0, 1, -1}
    assert max(s.com_error for s in walked) < 2e-4  # between the plan's points
    assert {f.state.step for f in feedback} >= {0, 1}
    assert com[-1].header.frame_id == robot.zmps[-1].header.frame_id == "walk"
    assert com[-1].point.x == pytest.approx(0.1, abs=1e-3)
    assert (
        robot.state.header.stamp == com[-1].header.stamp == ns_to_stamp(robot.time_ns)
    )
    assert {t.child_frame_id for msg in frames for t in msg.transforms} == {"walk"}
    names = {marker.ns for msg in markers for marker in msg.markers}
    assert names >= {
        "com",
        "com_reference",
        "footsteps_left",
        "footsteps_right",
        "support",
        "zmp",
    }


def test_cmd_vel_walks_on_until_it_is_zero_or_no_longer_sent(bench, world):
    robot = bench(walk__step_time=0.6, walk__double_support=0.3, walk__step_length=0.1)
    robot.pause = lambda: 0.02
    robot.until(WalkState.READY)

    def drive(until, x, turn, seconds=60.0):
        """Samples with a velocity, until a condition holds."""
        for k in range(round(seconds / 0.05)):
            if until():
                return
            if x is not None and k % 2 == 0:
                msg = Twist()
                msg.linear.x, msg.angular.z = x, turn
                world.send("cmd_vel", msg)
            robot.sample()
        raise AssertionError(
            f"{robot.state.state}: {robot.state.reason}, step {robot.state.step}"
        )

    drive(lambda: robot.state.step >= 5, 0.1, 0.2)
    assert robot.state.steps > 6
    assert robot.state.last_walk == ""
    handle, _ = robot.walk(**SHORT)
    assert "under way" in robot.result(handle).reason
    step = robot.state.step
    drive(lambda: robot.state.state == WalkState.READY, 0.0, 0.0)
    assert robot.state.last_walk == "completed"
    assert robot.state.steps <= step + 4
    assert robot.state.com_reference.x > 0.3
    assert robot.state.com_reference.y > 0.02
    drive(lambda: robot.state.state == WalkState.WALKING, 0.1, 0.0)
    drive(lambda: robot.state.state == WalkState.READY, None, 0.0)  # no longer sent
    assert robot.state.last_walk == "completed"
    assert robot.state.steps <= 4
    # on a busy machine half a second of real time passes between two messages
    (result,) = robot.node.set_parameters([Parameter("cmd_vel_timeout", value=5.0)])
    assert result.successful
    drive(lambda: robot.state.state == WalkState.WALKING, 0.1, 0.0)
    assert robot.call(Trigger, "stop", Trigger.Request()).success
    drive(lambda: robot.state.state == WalkState.READY, 0.1, 0.0)  # still sent
    assert "stop" in robot.state.last_walk
    ways, count = len(robot.ways), len(robot.states)
    drive(lambda: len(robot.states) > count + 60, 0.1, 0.0)
    assert len(robot.ways) == ways, "a stop holds until the velocity is let go of"
    drive(lambda: robot.node.faults.counts["implausible"], np.nan, 0.0)
    drive(lambda: robot.node.faults.counts["implausible"] > 1, 1e300, 0.0)
    assert len(robot.ways) == ways


def test_footsteps_by_the_topic_then_more(bench):
    robot = bench()
    robot.until(WalkState.READY)
    steps = [
        footstep_to_msg(walking.Footstep("left", 0.08, 0.065, 0.0, 0.0)),
        footstep_to_msg(walking.Footstep("right", 0.08, -0.065, 0.0, 0.0)),
    ]
    goal = WalkGoal(footsteps=steps, step_time=[0.6], double_support=[0.3])
    for _ in range(2):
        robot.world.send("gait/footsteps", goal)
        robot.until(WalkState.WALKING)
        assert robot.state.steps == 2
        robot.until(WalkState.READY)
    assert robot.state.com_reference.x == pytest.approx(0.08, abs=1e-3)


def test_streamed_points_follow_the_same_walk(bench):
    robot = bench(
        streamed=True,
        horizon=0.06,
        autostart=True,
        walk__steps=2,
        walk__step_length=0.1,
    )
    robot.until(WalkState.WALKING)
    robot.until(WalkState.READY, 30.0)
    assert all(len(way.points) == 1 for way in robot.ways)
    assert len(robot.ways) > 100
    assert robot.state.com_reference.x == pytest.approx(0.1, abs=1e-3)


def test_a_walk_automatically_waits_for_a_robot_that_does_not_stand(bench, monkeypatch):
    plan, planned = Walker.plan, threading.Event()

    def slow(walker, *what):
        planned.wait(30.0)
        return plan(walker, *what)

    monkeypatch.setattr(Walker, "plan", slow)
    robot = bench(autostart=True, walk__steps=2, walk__step_length=0.1)
    robot.load = 0.0
    for _ in range(20):
        assert robot.sample() in (WalkState.REFUSED, WalkState.UNKNOWN)
    robot.load = WEIGHT / 2
    robot.until(WalkState.PLANNING)
    robot.load = 0.0
    robot.sample()
    planned.set()
    robot.until(WalkState.REFUSED)
    for _ in range(20):
        assert robot.sample() == WalkState.REFUSED
    assert "the robot does not stand" in robot.state.reason
    assert robot.state.last_walk == ""
    assert not robot.ways
    robot.load = WEIGHT / 2
    robot.until(WalkState.WALKING)
    robot.until(WalkState.READY)
    for _ in range(20):
        assert robot.sample() == WalkState.READY, "it walks once"


@pytest.mark.parametrize("stands_again", [True, False])
def test_a_robot_that_sways_is_waited_for(bench, monkeypatch, stands_again):
    plan, planned = Walker.plan, threading.Event()

    def slow(walker, *what):
        planned.wait(30.0)
        return plan(walker, *what)

    monkeypatch.setattr(Walker, "plan", slow)
    robot = bench()
    robot.until(WalkState.READY)
    handle, _ = robot.walk(**SHORT)
    robot.until(WalkState.PLANNING)
    robot.load = 5.0
    for _ in range(3):
        assert robot.sample() == WalkState.PLANNING
    planned.set()
    for _ in range(4):  # 0.2 s of the 0.3 s that it may take
        assert robot.sample() == WalkState.PLANNING
    if stands_again:
        robot.load = WEIGHT / 2
        assert robot.result(handle).completed
    else:
        assert "the left foot carries 5 N" in robot.result(handle).reason
        assert robot.ways == []


def test_a_robot_that_stood_may_sway_for_a_moment(bench):
    robot = bench()
    robot.until(WalkState.READY)
    robot.load = 5.0
    for _ in range(3):
        assert robot.sample() == WalkState.READY
    robot.until(WalkState.REFUSED, 1.0)


@pytest.mark.parametrize(
    ("goal", "reason"),
    [
        ({"step_time": [0.0]}, "step_time is 0.0: give a number from 0.001 to 60"),
        ({"step_time": [-1.0]}, "step_time is -1.0"),
        ({"step_length": [0.7]}, "leg is too short"),
        ({"com_height": [0.9]}, "leg is too short"),
        ({"steps": [-1]}, "steps is -1"),
        (
            {"steps": [10000]},
            "10000 steps would take longer than 300 s, which is too long",
        ),
        ({"step_length": [1e308]}, "x of a footstep is 1e+308: give at most 1e+06"),
        ({"step_length": [float("nan")]}, "step_length is nan"),
        ({"method": "fast"}, "method is 'fast': give one of exact, refined, ccgd"),
        (
            {
                "footsteps": [
                    footstep_to_msg(walking.Footstep("left", 0.1, -0.2, 0.0, 0.0))
                ]
            },
            "footstep 0: the feet cross or touch",
        ),
        ({"footsteps": [Footstep(side=5)]}, "side is 5: give 1 (left) or 2 (right)"),
        (
            {"footsteps": [Footstep(side=1, yaw=float("nan"))]},
            "footstep 0: yaw of a footstep is nan",
        ),
    ],
)
def test_goals_that_cannot_be_walked(bench, goal, reason):
    robot = bench()
    robot.until(WalkState.READY)
    result = robot.result(robot.walk(**goal)[0])
    assert reason in result.reason
    assert not result.completed
    assert robot.ways == []
    answer = robot.call(PlanWalk, "plan_walk", PlanWalk.Request(goal=WalkGoal(**goal)))
    assert not answer.possible
    assert answer.reason == result.reason
    assert answer.step == (0 if reason.startswith("footstep 0") else -1)


def test_plan_walk_plans_without_walking(bench):
    robot = bench()
    robot.sample()
    answer = robot.call(PlanWalk, "plan_walk", PlanWalk.Request(goal=WalkGoal(**SHORT)))
    assert (answer.possible, answer.reason, len(answer.footsteps)) == (True, "", 2)
    assert answer.duration == pytest.approx(1.5 + 0.3 + 2 * 0.9 + 1.5)
    assert (
        len(answer.time)
        == len(answer.com)
        == len(answer.zmp)
        == len(answer.trajectory.points)
    )
    assert robot.ways == []


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ({"load": 5.0}, "the robot does not stand: the left foot carries 5 N"),
        ({"load": float("nan")}, "l_sole/wrench is not finite: check its driver"),
        (
            {"stale": FEET},
            "l_sole/wrench has not been received: check the force sensor's driver",
        ),
        ({"attitude": LYING}, "set it upright on both feet"),
        ({"q": POSTURE + 0.3}, "the robot does not stand in its nominal posture"),
    ],
)
def test_a_robot_that_does_not_stand(bench, how, reason):
    robot = bench()
    for name, value in how.items():
        setattr(robot, name, value)
    robot.sample()
    robot.sample()
    assert robot.state.state == WalkState.REFUSED
    assert reason in robot.state.reason
    result = robot.result(robot.walk(**SHORT)[0])
    assert reason in result.reason
    assert robot.ways == []


def test_the_measured_zmp(bench):
    robot = bench()
    robot.until(WalkState.READY)
    robot.sample()
    assert robot.zmps[-1].point.x == pytest.approx(0.0, abs=1e-6)
    assert robot.zmps[-1].point.y == pytest.approx(0.0, abs=1e-6)


def test_solve_com_ik(bench):
    robot = bench()
    robot.sample()
    request = SolveComIk.Request()
    request.com.z = 0.45
    for pose, y in zip(request.soles, (0.065, -0.065), strict=True):
        pose.position.y = y
    answer = robot.call(SolveComIk, "solve_com_ik", request)
    assert (answer.reached, answer.reason) == (True, "")
    assert answer.joint_names == list(MODEL.joint_names)
    assert answer.nearest == request.com
    request.com.z = 0.8
    answer = robot.call(SolveComIk, "solve_com_ik", request)
    assert not answer.reached
    assert "the nearest CoM that can be reached is" in answer.reason
    assert 0.45 < answer.nearest.z < 0.8
    request.joint_names, request.joint_positions = ["l_knee_joint"], [0.1]
    answer = robot.call(SolveComIk, "solve_com_ik", request)
    assert "l_knee_joint is a joint of a leg" in answer.reason
    request.joint_names = ["nose"]
    assert "nose" in robot.call(SolveComIk, "solve_com_ik", request).reason


def test_a_robot_without_legs_is_refused(world, walker, walker_config):
    states = world.collect(WalkState, "gait/state", 200)
    world.start(CcgdGaitNode, robot_config=walker_config)
    world.latch("robot_description", String(data=walker))
    world.spin_until(lambda: states and "no usable" in states[-1].reason, "the refusal")
    assert states[-1].state == WalkState.UNKNOWN
    assert "foot on each side" in states[-1].reason


def test_a_configuration_is_needed(world):
    with pytest.raises(
        ParameterError, match="give the path of the robot's configuration"
    ):
        world.start(CcgdGaitNode, robot_description=MODEL.xml)


def test_limits_may_change_while_it_runs(bench):
    robot = bench()
    robot.load = 0.4 * WEIGHT
    robot.until(WalkState.READY)
    (result,) = robot.node.set_parameters(
        [Parameter("check.load_fraction", value=0.45)]
    )
    assert result.successful
    robot.until(WalkState.REFUSED)
    assert "the robot does not stand" in robot.state.reason
    for name, value in (
        ("check.load_fraction", 0.6),
        ("delay", 0.2),
        ("drive_delay", 0.2),
    ):
        (result,) = robot.node.set_parameters([Parameter(name, value=value)])
        assert not result.successful


def test_joint_states_with_bad_numbers_do_not_count(bench):
    robot = bench(joint_timeout=0.4)
    health = robot.world.collect(DiagnosticArray, "/diagnostics", 200)
    robot.until(WalkState.READY)
    bad = numpy_to_joint_state(MODEL.joint_names, np.full(MODEL.n_joints, np.nan))
    for _ in range(3):
        robot.send("joint_states", bad)
    robot.world.send("joint_states", JointState())

    def timed_out():
        return any(
            "joint_states timed out" in s.message for msg in health for s in msg.status
        )

    robot.world.spin_until(timed_out, "the diagnostics say so")
    assert robot.ways == []


def test_feedback_without_an_imu_ends_the_walk(bench, world):
    dcms = world.collect(PointStamped, "gait/dcm", 2000)
    robot = bench(stabiliser=True)
    robot.until(WalkState.READY)
    stabiliser = robot.node._control.robot.session.stabiliser
    assert hasattr(stabiliser, "table"), (
        "its kernel is compiled before a walk waits for it"
    )
    handle, _ = robot.walk(**SHORT)
    result = robot.result(handle)
    assert not result.completed
    assert "imu gives no orientation" in result.reason
    assert dcms[-1].header.frame_id == "walk"
    walked = [s for s in robot.states if np.isfinite(s.margin)]
    assert walked[-1].dcm == dcms[-1].point
    assert walked[-1].fault == WalkState.NO_IMU
    assert (walked[-1].com_offset_std == np.inf).all(), "too short to know"
    streamed = [msg for msg in robot.ways if len(msg.points) == 1]
    assert len(streamed) > 10, "point by point"


@pytest.mark.parametrize("balance", [True, False])
def test_feedback_while_the_robot_stands(bench, world, balance):
    dcms = world.collect(PointStamped, "gait/dcm", 2000)
    robot = bench(stabiliser=True, balance=balance)
    robot.attitude = LEVEL
    robot.until(WalkState.READY)
    for _ in range(20):
        assert robot.sample() == WalkState.READY
    assert bool(dcms) == balance
    assert len([msg for msg in robot.ways if len(msg.points) == 1]) in range(
        18 * balance, 22
    )
    assert bool(robot.ways) == balance
    assert (robot.state.fault == WalkState.NO_FAULT) or balance
    assert np.isfinite(robot.state.margin) == balance
    (result,) = robot.node.set_parameters([Parameter("rate_hz", value=1.0)])
    assert "the stabiliser keeps its rate" in result.reason
    (result,) = robot.node.set_parameters([Parameter("balance", value=False)])
    assert result.successful
    for _ in range(20):
        robot.sample()
    count = len(robot.ways)
    robot.sample()
    assert len(robot.ways) == count, "it has faded"


def test_feedback_sends_nothing_to_a_robot_that_has_fallen(bench):
    robot = bench(stabiliser=True)
    robot.attitude = LEVEL
    robot.until(WalkState.READY)
    robot.walk(**SHORT)
    robot.until(WalkState.WALKING)
    robot.attitude = LYING
    robot.until(WalkState.FALLEN)
    count = len(robot.ways)
    for _ in range(10):
        assert robot.sample() == WalkState.FALLEN
    assert len(robot.ways) == count
