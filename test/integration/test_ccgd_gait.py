"""ccgd_gait over DDS: a robot that follows it walks, and is not led where it must not go.

The robot of these tests is where the last trajectory has it, with half its weight on each foot.
"""

import threading

import numpy as np
import pytest
from ament_index_python.packages import get_package_share_directory
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PointStamped, Quaternion, WrenchStamped
from rclpy.action import ActionClient
from rclpy.parameter import Parameter
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import String
from std_srvs.srv import Trigger
from tf2_msgs.msg import TFMessage
from trajectory_msgs.msg import JointTrajectory
from visualization_msgs.msg import MarkerArray

from com_control import walking
from com_control.nodes.ccgd_gait import CcgdGaitNode
from com_control.nodes.walk_conversions import footstep_to_msg
from com_control.walking.joint_path import JointPath
from com_control.walking.walker import Walker
from com_model import RobotConfig, RobotModel
from com_msgs.action import Walk
from com_msgs.msg import Footstep, WalkGoal, WalkState
from com_msgs.srv import PlanWalk, SolveComIk
from com_ros.conversions import (
    NS_PER_S,
    joint_trajectory_to_numpy,
    ns_to_stamp,
    numpy_to_joint_state,
    stamp_to_ns,
)
from com_ros.exceptions import ParameterError

SHARE = get_package_share_directory("robot_descriptions")
CONFIG = f"{SHARE}/config/itu_biped.yaml"
MODEL = RobotModel.from_file(f"{SHARE}/urdf/itu_biped.urdf")
POSTURE = RobotConfig.from_file(CONFIG).nominal_posture(MODEL)
ROBOT = {"robot_description": MODEL.xml, "robot_config": CONFIG}
FEET = ("l_sole/wrench", "r_sole/wrench")
WEIGHT = 9.81 * MODEL.mass
T0 = 1000 * NS_PER_S  # the stamp of the first message
EVERY_NS = 50_000_000
LEVEL = Quaternion(x=0.0, y=0.0, z=0.0, w=1.0)
LYING = Quaternion(x=0.8, y=0.0, z=0.0, w=0.6)
SHORT = {"steps": [2], "step_length": [0.1], "step_time": [0.6], "double_support": [0.3]}


class Bench:
    """The node, and a robot that obeys it."""

    def __init__(self, world, **parameters):
        self.world, self.time_ns, self.q = world, T0, POSTURE.copy()
        self.path, self.taken = None, 0
        self.load, self.attitude, self.stale = WEIGHT / 2, None, ()
        self.states = world.collect(WalkState, "gait/state", 2000)
        self.ways = world.collect(JointTrajectory, "joint_trajectory", 2000)
        self.zmps = world.collect(PointStamped, "zmp", 2000)
        defaults = {
            "joint_timeout": 30.0,
            "approach_time": 0.3,
            "walk__com_height": 0.45,
            "display_rate_hz": 100.0,
        }
        self.node = world.start(CcgdGaitNode, **(ROBOT | defaults | parameters))

    @property
    def state(self):
        """The last message on gait/state."""
        return self.states[-1]

    def take(self):
        """Take in new trajectories, none of which may break a limit or jump."""
        for msg in self.ways[self.taken :]:
            times, q, qd = joint_trajectory_to_numpy(msg)
            assert msg.joint_names == list(MODEL.joint_names)
            assert np.isfinite(q).all()
            assert np.isfinite(qd).all()
            assert ((q >= MODEL.lower) & (q <= MODEL.upper)).all()
            assert (np.abs(qd) <= MODEL.velocity_limits * 1.000001).all()
            path = JointPath(times + stamp_to_ns(msg.header.stamp) / NS_PER_S, q, qd)
            before = self.q if self.path is None else self.path.sample(float(path.time[0]))[0]
            assert (np.abs(path.q[0] - before) <= 0.1 * MODEL.velocity_limits).all(), "a jump"
            self.path = path if self.path is None else self.path.followed_by(path)
        self.taken = len(self.ways)

    def send(self, topic, msg):
        msg.header.stamp = ns_to_stamp(self.time_ns)
        self.world.send(topic, msg)

    def sample(self, every_ns=EVERY_NS):
        """Send one sample of all sensors; wait for what comes of it."""
        self.time_ns += every_ns
        self.take()
        if self.path is not None:
            self.q = self.path.sample(self.time_ns / NS_PER_S)[0]
        if self.attitude is not None and "imu" not in self.stale:
            self.send("imu", Imu(orientation=self.attitude))
        for topic in FEET:
            if topic not in self.stale:
                msg = WrenchStamped()
                msg.wrench.force.z = self.load
                self.send(topic, msg)
        self.world.spin_for(self.pause())
        count = len(self.states)
        self.send("joint_states", numpy_to_joint_state(MODEL.joint_names, self.q))
        self.world.spin_until(lambda: len(self.states) > count, "gait/state")
        return self.state.state

    def pause(self):
        """Real time between two samples, s: the node computes in real time, whatever stamps say.

        A plan may have to wait for its kernels to be compiled; a stop is due in the time of stamps.
        """
        state = self.state.state if self.states else WalkState.UNKNOWN
        if state == WalkState.PLANNING:
            return 0.1
        return 0.05 if state == WalkState.STOPPING or self.stale else 0.002

    def until(self, state, seconds=25.0):
        for _ in range(int(seconds * NS_PER_S / EVERY_NS)):
            if self.sample() == state:
                return
        raise AssertionError(f"state {self.state.state} ({self.state.reason}), not {state}")

    def call(self, kind, name, request):
        client = self.world.node.create_client(kind, f"ccgd_gait/{name}")
        self.world.spin_until(client.service_is_ready, name)
        future = client.call_async(request)
        self.world.spin_until(future.done, name)
        return future.result()

    def walk(self, **goal):
        """Ask for a walk by the action; the handle of its goal, and its feedback."""
        client = ActionClient(self.world.node, Walk, "walk")
        self.world.spin_until(client.server_is_ready, "the action")
        feedback = []
        asked = client.send_goal_async(
            Walk.Goal(goal=WalkGoal(**goal)),
            feedback_callback=lambda m: feedback.append(m.feedback),
        )
        self.world.spin_until(asked.done, "the goal is taken")
        return asked.result(), feedback

    def result(self, handle):
        """The result of a walk, with samples until it is there."""
        future = handle.get_result_async()
        for _ in range(600):
            if future.done():
                return future.result().result
            self.sample()
        raise AssertionError("no result")


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
    assert {s.swing for s in walked} == {Footstep.LEFT, Footstep.RIGHT, Footstep.UNKNOWN}
    assert {s.step for s in walked} == {0, 1, -1}
    assert max(s.com_error for s in walked) < 2e-4  # between the plan's points
    assert {f.state.step for f in feedback} >= {0, 1}
    assert com[-1].header.frame_id == robot.zmps[-1].header.frame_id == "walk"
    assert com[-1].point.x == pytest.approx(0.1, abs=1e-3)
    assert robot.state.header.stamp == com[-1].header.stamp == ns_to_stamp(robot.time_ns)
    assert {t.child_frame_id for msg in frames for t in msg.transforms} == {"walk"}
    names = {marker.ns for msg in markers for marker in msg.markers}
    assert names >= {"com", "com_reference", "footsteps_left", "footsteps_right", "support", "zmp"}


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
    robot = bench(streamed=True, horizon=0.06, autostart=True, walk__steps=2, walk__step_length=0.1)
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


@pytest.mark.parametrize(
    ("goal", "reason"),
    [
        ({"step_time": [0.0]}, "step_time is 0.0: give a number from 0.001 to 60"),
        ({"step_time": [-1.0]}, "step_time is -1.0"),
        ({"step_length": [0.7]}, "leg is too short"),
        ({"com_height": [0.9]}, "leg is too short"),
        ({"steps": [-1]}, "steps is -1"),
        ({"steps": [10000]}, "10000 steps would take longer than 300 s, which is too long"),
        ({"step_length": [1e308]}, "x of a footstep is 1e+308: give at most 1e+06"),
        ({"step_length": [float("nan")]}, "step_length is nan"),
        ({"method": "fast"}, "method is 'fast': give one of exact, refined, ccgd"),
        (
            {"footsteps": [footstep_to_msg(walking.Footstep("left", 0.1, -0.2, 0.0, 0.0))]},
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
    assert len(answer.time) == len(answer.com) == len(answer.zmp) == len(answer.trajectory.points)
    assert robot.ways == []


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ({"load": 5.0}, "the robot does not stand: the left foot carries 5 N"),
        ({"load": float("nan")}, "l_sole/wrench is not finite: check its driver"),
        ({"stale": FEET}, "l_sole/wrench has not been received: check the force sensor's driver"),
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


def test_a_walk_that_was_cancelled_while_it_was_planned_is_not_walked_in_place_of_the_next(bench):
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


def test_a_stop_that_takes_longer_to_plan_than_it_may_is_given_more_time(bench, monkeypatch):
    robot = bench()
    robot.until(WalkState.READY)
    handle, _ = robot.walk(steps=[12], step_length=[0.1], step_time=[0.6], method="exact")
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
            lambda tries=tries: len(robot.ways) == 2 or len(asked) > tries, "a stop or a new try"
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


def disturb(robot, seconds, change):
    """Samples that the node may hold back, in real time: change(robot) before each."""
    for _ in range(round(seconds / 0.05)):
        robot.time_ns += EVERY_NS
        robot.take()
        robot.q = robot.path.sample(robot.time_ns / NS_PER_S)[0]
        for topic in FEET:
            msg = WrenchStamped()
            msg.wrench.force.z = robot.load
            robot.send(topic, msg)
        robot.send("joint_states", numpy_to_joint_state(MODEL.joint_names, change(robot.q)))
        robot.world.spin_for(0.05)


def stands_and_walks_again(robot, handle, reason):
    """The walk has ended with both feet down; only one that is asked for begins."""
    result = robot.result(handle)
    assert not result.completed
    assert result.steps < 20
    assert reason in result.reason
    ways = len(robot.ways)
    for _ in range(10):
        robot.sample()
    assert robot.state.state == WalkState.READY
    assert len(robot.ways) == ways
    assert robot.result(robot.walk(**SHORT)[0]).completed


def walk_on(robot):
    """Walk into the first step; the handle of its goal."""
    robot.until(WalkState.READY)
    handle, _ = robot.walk(steps=[20], step_length=[0.1], step_time=[0.6])
    robot.until(WalkState.WALKING)
    for _ in range(45):
        robot.sample()
    return handle


@pytest.mark.parametrize("jump", [-100.0, 100.0])
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
        (lambda q: q + 1e6, "joint_states timed out"),
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


@pytest.mark.parametrize(("stale", "reason"), [(FEET, "l_sole/wrench is"), (("imu",), "imu is")])
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
    robot = bench(joint_timeout=1.0, streamed=streamed, horizon=0.06, walk__method="exact")
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
    with pytest.raises(ParameterError, match="give the path of the robot's configuration"):
        world.start(CcgdGaitNode, robot_description=MODEL.xml)


def test_limits_may_change_while_it_runs(bench):
    robot = bench()
    robot.load = 0.4 * WEIGHT
    robot.until(WalkState.READY)
    (result,) = robot.node.set_parameters([Parameter("check.load_fraction", value=0.45)])
    assert result.successful
    robot.until(WalkState.REFUSED)
    assert "the robot does not stand" in robot.state.reason
    for name, value in (("check.load_fraction", 0.6), ("delay", 0.2)):
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
        return any("joint_states timed out" in s.message for msg in health for s in msg.status)

    robot.world.spin_until(timed_out, "the diagnostics say so")
    assert robot.ways == []
