"""com_balancer over DDS: it holds the simulated robot's CoM, and holds still when it must."""

import math

import numpy as np
import pytest
from geometry_msgs.msg import PointStamped, Quaternion, Vector3Stamped, WrenchStamped
from rclpy.parameter import Parameter
from sensor_msgs.msg import Imu
from shipped_robot import shipped_robot
from trajectory_msgs.msg import JointTrajectory

from com_control.nodes.com_balancer import ComBalancerNode
from com_model import Sesc, link_pose
from com_msgs.msg import BalanceState
from com_ros import qos
from com_ros.conversions import (
    ns_to_stamp,
    numpy_to_joint_state,
    point_to_numpy,
    vector3_to_numpy,
)

_, MODEL, POSTURE, ROBOT = shipped_robot("hoap2")
T0 = 1_000_000_000_000  # ns, the stamp of the first message
LEVEL = Quaternion(x=0.0, y=0.0, z=0.0, w=1.0)
UNKNOWN = Quaternion(x=math.nan, y=math.nan, z=math.nan, w=math.nan)
LYING = Quaternion(x=0.0, y=math.sin(0.6), z=0.0, w=math.cos(0.6))
WEIGHT = MODEL.mass * 9.81


class Bench:
    """The node, and a robot that stands wherever the test says."""

    def __init__(self, world, **parameters):
        self.world, self.time_ns = world, T0
        self.states = world.collect(BalanceState, "balance/state", 2000)
        self.ways = world.collect(JointTrajectory, "joint_trajectory", 2000)
        self.errors = world.collect(Vector3Stamped, "balance/com_error", 2000)
        defaults = {"joint_timeout": 30.0, "imu_timeout": 0.05, "wrench_timeout": 0.05}
        self.node = world.start(ComBalancerNode, **ROBOT, **(defaults | parameters))

    def send(self, topic, msg, stamped=True):
        """Send a message and let the node take it in."""
        if stamped:
            msg.header.stamp = ns_to_stamp(self.time_ns)
        self.world.send(topic, msg, qos.stream(100) if stamped else qos.RESULT)

    def sample(self, orientation=LEVEL, load=0.5 * WEIGHT, position=POSTURE):
        """Send one sample of what the sensors read, 10 ms later; wait for what comes of it."""
        self.time_ns += 10_000_000
        if orientation is not None:
            self.send("imu", Imu(orientation=orientation))
            self._heard(lambda node: node._imu)
        for i, sole in enumerate(("l_sole", "r_sole") if load is not None else ()):
            msg = WrenchStamped()
            msg.wrench.force.z = load
            self.send(f"{sole}/wrench", msg)
            self._heard(lambda node, i=i: node._wrenches._latest[i])
        count = len(self.states)
        self.send("joint_states", numpy_to_joint_state(MODEL.joint_names, position))
        self.world.spin_until(lambda: len(self.states) > count, "balance/state")
        if self.states[-1].state in (BalanceState.BALANCING, BalanceState.HOLDING):
            stamp = ns_to_stamp(self.time_ns)
            self.world.spin_until(
                lambda: self.ways and self.ways[-1].header.stamp == stamp,
                "joint_trajectory",
            )
        return self.states[-1]

    def _heard(self, of):
        latest = of(self.node)
        self.world.spin_until(
            lambda: latest.age_s(self.time_ns) == 0.0, "it is received"
        )

    def desire(self, x, y, z=math.nan, frame=""):
        """Send a desired CoM, and samples until it is taken in or refused."""
        msg = PointStamped()
        msg.header.frame_id = frame
        msg.point.x, msg.point.y, msg.point.z = x, y, z
        self.send("balance/com_desired", msg, stamped=False)
        self.world.spin_for(0.2)
        return self.sample()

    def call(self, name):
        """Call one of its services."""
        return self.world.trigger(f"com_balancer/{name}")

    def balance(self):
        """Begin."""
        self.sample()
        assert self.call("start").success
        assert self.sample_until(BalanceState.BALANCING) <= 22

    def sample_until(self, state):
        """Send samples of a robot that stands until a state is reached; returns how many."""
        for count in range(1, 100):
            if self.sample().state == state:
                return count
        raise AssertionError(f"in vain waited for state {state}: {self.states[-1]}")


@pytest.fixture
def bench(world):
    return lambda **parameters: Bench(world, **parameters)


def targets(bench):
    return np.array(bench.ways[-1].points[0].positions)


def test_it_waits_for_start_and_begins_without_a_jump(bench):
    robot = bench()
    state = robot.sample()
    assert (state.state, state.reason) == (BalanceState.STANDING, "")
    unknown = [
        state.com.x,
        state.com_reference.y,
        state.com_error,
        state.support_margin,
    ]
    assert np.isnan(unknown).all()
    assert not robot.ways
    robot.balance()
    np.testing.assert_allclose(targets(robot), POSTURE, atol=1e-12)
    way, state = robot.ways[-1], robot.states[-1]
    assert way.header.stamp == state.header.stamp == ns_to_stamp(robot.time_ns)
    assert way.joint_names == list(MODEL.joint_names)
    assert way.points[0].time_from_start.nanosec == 10_000_000
    assert state.feet == ["l_sole", "r_sole"]
    assert state.header.frame_id == "balance"
    soles = [link_pose(MODEL, POSTURE, name)[1] for name in ("l_sole", "r_sole")]
    com = point_to_numpy(state.com)
    expected = Sesc(MODEL).com(POSTURE) - np.mean(soles, axis=0)
    np.testing.assert_allclose(
        com, expected, atol=1e-3
    )  # gravity is off the soles by 0.2 deg
    assert 0.039 < state.support_margin < 0.043
    robot.world.spin_until(lambda: robot.errors, "balance/com_error")
    np.testing.assert_allclose(
        vector3_to_numpy(robot.errors[-1].vector), 0.0, atol=1e-12
    )


def test_it_moves_towards_what_is_desired_with_bounded_speed(bench):
    robot = bench()
    robot.balance()
    robot.desire(0.03, 0.0)
    last = targets(robot)
    for _ in range(20):
        state = robot.sample()
        now = targets(robot)
        assert np.abs(now - last).max() <= 0.01 * 2.0 + 1e-12
        last = now
    assert state.com_reference.x > state.com.x + 0.001
    assert math.isnan(state.com_desired.z)
    assert not state.held_at_margin
    assert np.abs(last - POSTURE).max() > 1e-3


def test_a_com_outside_is_held_at_the_margin_and_said(bench):
    robot = bench(control__margin=0.02)
    robot.balance()
    state = robot.desire(0.5, 0.0)
    assert state.held_at_margin
    assert state.state == BalanceState.BALANCING
    assert (
        "446 mm outside the support polygon: held at the margin of 20 mm"
        in state.reason
    )
    for _ in range(1000):
        state = robot.sample(position=targets(robot))
        if state.com.x > 0.0543 - 0.0205:
            break
    assert state.com.x == pytest.approx(0.0543 - 0.02, abs=1e-3)
    assert state.com_reference.x == pytest.approx(0.0543 - 0.02, abs=1e-3)


def test_points_in_the_frame_of_a_link_are_turned(bench):
    robot = bench()
    robot.balance()
    state = robot.desire(0.01, 0.0, frame="l_sole")
    place = (
        link_pose(MODEL, POSTURE, "l_sole")[1] - link_pose(MODEL, POSTURE, "r_sole")[1]
    )
    assert state.com_desired.x == pytest.approx(0.01, abs=1e-4)
    assert state.com_desired.y == pytest.approx(0.5 * np.linalg.norm(place), abs=1e-4)


@pytest.mark.parametrize(
    ("point", "frame"),
    [((math.nan, 0.0), ""), ((0.0, math.inf), ""), ((0.0, 0.0), "nowhere")],
)
def test_points_that_mean_nothing_are_refused(bench, point, frame):
    robot = bench()
    robot.balance()
    before = robot.states[-1].com_desired
    assert robot.desire(*point, frame=frame).com_desired == before


@pytest.mark.parametrize(
    ("reading", "said"),
    [
        ({"orientation": None}, "imu is stale"),
        (
            {"orientation": UNKNOWN},
            "not 1; use a driver or filter that gives orientation",
        ),
        ({"load": None}, "l_sole/wrench is stale"),
        ({"load": math.nan}, "l_sole/wrench is not finite"),
    ],
)
def test_it_holds_while_an_input_is_bad_and_goes_on(bench, reading, said):
    robot = bench()
    robot.balance()
    robot.desire(0.03, 0.0)
    for _ in range(10):
        robot.sample()
    for _ in range(30):
        state = robot.sample(**reading)
    assert state.state == BalanceState.HOLDING
    assert said in state.reason
    held = targets(robot)
    robot.sample(**reading)
    np.testing.assert_array_equal(targets(robot), held)
    assert not np.any(robot.ways[-1].points[0].velocities)
    assert robot.sample().state == BalanceState.BALANCING
    assert np.abs(targets(robot) - held).max() < 0.005


@pytest.mark.parametrize("absurd", [-2.0, 2.0 * math.pi])
def test_an_absurd_position_makes_it_hold_until_start(bench, absurd):
    robot = bench()
    robot.balance()
    robot.desire(0.03, 0.0)
    slipped = POSTURE.copy()
    slipped[MODEL.joint_index("RLEG_JOINT4")] += absurd
    state = robot.sample(position=slipped)
    assert state.state == BalanceState.HOLDING
    assert state.reason.startswith("holds: RLEG_JOINT4 reports")
    for _ in range(30):
        last = targets(robot)
        state = robot.sample(position=last)
        assert (targets(robot) <= MODEL.upper).all()
        assert np.abs(targets(robot) - last).max() <= 0.01 * 2.0
    assert state.state == BalanceState.HOLDING
    np.testing.assert_array_equal(targets(robot), last)
    assert robot.call("start").success
    for _ in range(25):
        state = robot.sample(position=last)
    assert state.state == BalanceState.BALANCING


def test_it_refuses_to_start_without_its_inputs(bench):
    robot = bench()
    assert robot.sample(orientation=None).state == BalanceState.UNKNOWN
    answer = robot.call("start")
    assert not answer.success
    assert answer.message == (
        "imu has not been received: start the imu driver, or set use_imu to false to assume level "
        "ground"
    )
    robot.sample(load=1.0)
    assert "the feet carry 2 N, at least 21 N are needed" in robot.call("start").message
    crooked = POSTURE.copy()
    crooked[MODEL.joint_index("LLEG_JOINT5")] += 0.3
    robot.sample(position=crooked)
    assert "the soles are not on one plane" in robot.call("start").message
    assert not robot.ways


def test_a_robot_that_falls_gets_no_more_commands(bench):
    robot = bench()
    robot.balance()
    state = robot.sample(orientation=LYING)
    assert state.state == BalanceState.FALLEN
    assert "the trunk is tilted by 1.20 rad" in state.reason
    sent = len(robot.ways)
    for _ in range(30):
        assert robot.sample().state == BalanceState.FALLEN
    assert "then call ~/start" in robot.states[-1].reason
    assert len(robot.ways) == sent
    robot.balance()
    assert len(robot.ways) > sent


@pytest.mark.parametrize("before", [{"load": 0.0}, {"orientation": LYING}])
def test_it_waits_for_a_robot_that_does_not_stand_yet(bench, before):
    robot = bench(autostart=True)
    for _ in range(40):
        state = robot.sample(**before)
        assert state.state == BalanceState.WAITING
        assert state.reason.startswith("waits until the robot stands: the ")
    assert not robot.ways
    assert robot.sample_until(BalanceState.BALANCING) == 21
    assert list(robot.states[-1].feet) == ["l_sole", "r_sole"]


def test_a_new_model_does_not_start_what_fell(bench):
    robot = bench(autostart=True)
    robot.sample_until(BalanceState.BALANCING)
    assert robot.sample(orientation=LYING).state == BalanceState.FALLEN
    robot.node.use_model(MODEL)
    for _ in range(30):
        assert robot.sample().state == BalanceState.STANDING
    robot.balance()


def test_stop_leaves_the_joints(bench):
    robot = bench()
    robot.balance()
    assert robot.call("stop").success
    sent = len(robot.ways)
    assert robot.sample().state == BalanceState.STANDING
    assert len(robot.ways) == sent


def test_silent_joints_are_said(bench):
    robot = bench(joint_timeout=0.3)
    robot.balance()
    robot.world.spin_until(lambda: "timed out" in robot.states[-1].reason, "it is said")
    assert robot.states[-1].state == BalanceState.UNKNOWN


def test_it_plays_a_demonstration_until_a_com_is_desired(bench):
    robot = bench(demonstration="squat")
    robot.balance()
    height = robot.states[-1].com.z
    for _ in range(60):
        state = robot.sample(position=targets(robot))
    assert state.com_desired.z < height - 0.002
    assert math.isnan(robot.desire(0.01, 0.0).com_desired.z)
    assert robot.sample().com_desired.x == pytest.approx(0.01)


@pytest.mark.parametrize("resonance", [0.5, 5e-324, 1.99])
def test_a_resonance_that_drops_robots_is_refused(bench, resonance):
    node = bench().node
    name = "control.resonance"
    (result,) = node.set_parameters([Parameter(name, value=resonance)])
    assert not result.successful
    assert "give 2 to 1000, or 0" in result.reason
    assert node.parameters.control.resonance == 0.0
    (result,) = node.set_parameters([Parameter(name, value=6.0)])
    assert result.successful
