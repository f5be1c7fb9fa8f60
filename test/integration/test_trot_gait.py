"""trot_gait over DDS: it makes the simulated robot step, and stops on all feet when it must."""

import math

import numpy as np
import pytest
from geometry_msgs.msg import Quaternion, Twist
from sensor_msgs.msg import Imu, JointState
from shipped_robot import shipped_robot
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from com_control.nodes.trot_gait import TrotGaitNode
from com_msgs.msg import GaitPhase, TrunkCom
from com_ros import qos
from com_ros.conversions import imu_to_rotation, ns_to_stamp, numpy_to_joint_state
from com_simulation.nodes.simulator import Simulator

_, MODEL, POSTURE, ROBOT = shipped_robot("scalf2")
T0 = 1_000_000_000_000  # ns, the stamp of the first message
TILTED = Quaternion(x=math.sin(0.35), w=math.cos(0.35))
LEVEL = Quaternion(x=0.0, y=0.0, z=0.0, w=1.0)
UNKNOWN = Quaternion(x=math.nan, y=math.nan, z=math.nan, w=math.nan)


class Bench:
    """The node, and a robot that is where its joints were sent last."""

    def __init__(self, world, **parameters):
        self.world, self.time_ns, self.position = world, T0, POSTURE
        self.phases = world.collect(GaitPhase, "gait/stance", 2000)
        self.ways = world.collect(JointTrajectory, "joint_trajectory", 2000)
        defaults = {
            "gait__swing_compensation": True,
            "approach_time": 0.05,
            "joint_timeout": 30.0,
        }
        self.node = world.start(TrotGaitNode, **ROBOT, **(defaults | parameters))

    @property
    def last(self):
        """The last word on gait/stance."""
        return self.phases[-1]

    def sample(self, orientation=LEVEL, imu=True, every_ns=10_000_000, position=None):
        """Send one sample of imu and joints; wait for what comes of it."""
        self.time_ns += every_ns
        stamp = ns_to_stamp(self.time_ns)
        if imu:
            msg = Imu(orientation=orientation)
            msg.header.stamp = stamp
            self.world.send("imu", msg, qos.stream(100))
            before = self.time_ns
            self.world.spin_until(
                lambda: self.node._imu.age_s(before) == 0.0, "the node has received imu"
            )
        phases, ways = len(self.phases), len(self.ways)
        reported = self.position if position is None else position
        joints = numpy_to_joint_state(MODEL.joint_names, reported)
        joints.header.stamp = stamp
        self.world.send("joint_states", joints, qos.stream(100))
        self.world.spin_until(lambda: len(self.phases) > phases, "gait/stance")
        if self.last.state != GaitPhase.UNKNOWN:
            self.world.spin_until(lambda: len(self.ways) > ways, "joint_trajectory")
            self.position = np.array(self.ways[-1].points[0].positions)
        return self.last

    def trot(self):
        """Send samples until it trots."""
        for _ in range(40):
            if self.sample().state == GaitPhase.TROTTING:
                return
        raise AssertionError(f"it does not trot: {self.last}")

    def jump(self, step_ns):
        """Change the clock, and send samples until the new one counts."""
        self.time_ns += step_ns
        for _ in range(30):
            self.time_ns += 10_000_000
            stamp = ns_to_stamp(self.time_ns)
            for topic, msg in (
                ("imu", Imu(orientation=LEVEL)),
                ("joint_states", numpy_to_joint_state(MODEL.joint_names, POSTURE)),
            ):
                msg.header.stamp = stamp
                self.world.send(topic, msg, qos.stream(100))
            self.world.spin_for(0.01)

    def call(self, name):
        """Call one of its services."""
        return self.world.trigger(f"trot_gait/{name}")


@pytest.fixture
def bench(world):
    return lambda **parameters: Bench(world, **parameters)


def test_a_simulated_robot_steps_and_stops_and_goes_on(world):
    phases = world.collect(GaitPhase, "gait/stance", 2000)
    joints = world.collect(JointState, "joint_states", qos.stream(2000))
    attitudes = world.collect(Imu, "imu", qos.stream(2000))
    node = world.start(
        TrotGaitNode, **ROBOT, approach_time=0.5, joint_timeout=5.0, horizon=0.2
    )
    slow = {"real_time_factor": 0.3}  # a busy machine must answer in time
    world.start(Simulator, **ROBOT, base="floating", publish_rate_hz=50.0, **slow)

    def patterns(since=0):
        return {
            tuple(p.stance) for p in phases[since:] if p.state == GaitPhase.TROTTING
        }

    diagonals = {(False, True, True, False), (True, False, False, True)}
    world.spin_until(lambda: patterns() >= diagonals, "both diagonals swing", 40.0)
    assert patterns() == diagonals
    order = [joints[-1].name.index(name) for name in MODEL.joint_names]
    count = len(joints)

    def all_bend():  # hip flexion and knee of each leg
        ranges = np.ptp(
            [np.array(m.position)[order] for m in joints[count:]] or [POSTURE], axis=0
        )
        return (ranges[[1, 2, 4, 5, 7, 8, 10, 11]] > 0.05).all()

    world.spin_until(all_bend, "all legs bend", 40.0)

    client = world.node.create_client(Trigger, "trot_gait/stop")
    world.spin_until(client.service_is_ready, "~/stop")
    future = client.call_async(Trigger.Request())
    world.spin_until(lambda: phases[-1].state == GaitPhase.STANDING, "it stands", 40.0)
    world.spin_until(future.done, "~/stop")
    assert future.result().success
    assert all(phases[-1].stance)
    assert phases[-1].reason == "stopped by ~/stop"
    stood = len(phases)
    world.node.create_client(Trigger, "trot_gait/start").call_async(Trigger.Request())
    world.spin_until(lambda: patterns(stood) >= diagonals, "it trots again", 40.0)
    assert phases[-1].reason == ""
    assert imu_to_rotation(attitudes[-1])[2, 2] > 0.95
    assert node.get_name() == "trot_gait"


def test_targets_have_the_stamp_and_horizon_of_their_sample(bench):
    robot = bench(horizon=0.03)
    robot.trot()
    way = robot.ways[-1]
    assert way.header.stamp == ns_to_stamp(robot.time_ns) == robot.last.header.stamp
    (point,) = way.points
    assert point.time_from_start.nanosec == 30_000_000
    assert len(point.positions) == len(point.velocities) == MODEL.n_joints
    assert way.joint_names == list(MODEL.joint_names)


def test_silent_joints_bring_all_feet_down(bench):
    robot = bench(joint_timeout=0.3, approach_time=0.05)
    robot.trot()
    while robot.last.phase < 0.2:
        robot.sample()
    swinging = np.array(robot.ways[-1].points[0].positions)
    robot.world.spin_until(
        lambda: "joint_states timed out" in robot.last.reason, "the stop"
    )
    assert all(robot.last.stance)
    robot.world.spin_until(lambda: len(robot.ways[-1].points) > 10, "the whole way")
    way = robot.ways[-1]
    begin, end = (np.array(way.points[k].positions) for k in (0, -1))
    assert np.abs(begin - swinging).max() < 0.1 * np.abs(end - swinging).max()
    np.testing.assert_allclose(end, robot.node.session.gait.posture)
    np.testing.assert_allclose(way.points[-1].velocities, 0.0)
    robot.sample(every_ns=2_000_000_000)  # time went on meanwhile
    assert robot.last.state != GaitPhase.TROTTING
    assert robot.call("start").success
    robot.trot()


@pytest.mark.parametrize(
    ("orientation", "reason"),
    [
        (UNKNOWN, "gives orientation"),
        (TILTED, "the trunk tilts by 0.70 rad, max_tilt is 0.60"),
    ],
)
def test_a_bad_attitude_brings_all_feet_down(bench, orientation, reason):
    robot = bench()
    robot.trot()
    robot.sample(orientation)
    assert reason in robot.last.reason
    assert robot.last.state == GaitPhase.APPROACHING
    for _ in range(10):
        robot.sample()
    assert robot.last.state == GaitPhase.STANDING
    assert all(robot.last.stance)
    assert reason in robot.last.reason


def test_an_imu_that_falls_silent_brings_all_feet_down(bench):
    robot = bench(imu_timeout=0.1)
    robot.trot()
    for _ in range(15):
        robot.sample(imu=False)
    assert "imu is stale" in robot.last.reason
    assert robot.last.state != GaitPhase.TROTTING


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        ({"orientation": UNKNOWN}, "waits: imu: "),
        (
            {"orientation": TILTED},
            "waits: the trunk tilts by 0.70 rad, max_tilt is 0.60",
        ),
        ({"imu": False}, "waits: imu has not been received"),
    ],
)
def test_it_waits_for_a_good_attitude_before_the_first_step(bench, before, reason):
    robot = bench(approach_time=0.2)
    for _ in range(40):
        robot.sample(**before)
    assert robot.last.state == GaitPhase.STANDING
    assert robot.last.reason.startswith(reason)
    robot.trot()
    assert robot.last.reason == ""


def test_joints_that_fall_silent_before_the_first_step_are_waited_for(bench):
    robot = bench(joint_timeout=0.3, approach_time=0.2)
    assert robot.sample().state == GaitPhase.APPROACHING
    robot.world.spin_until(
        lambda: robot.last.reason.startswith("waits: /joint_states timed out"),
        "it is said",
    )
    robot.trot()
    assert robot.last.reason == ""


def test_a_clock_that_starts_over(bench):
    robot = bench(approach_time=0.2)
    robot.sample()
    for _ in range(
        2
    ):  # before it trots, and while it does: it holds until it is asked to go on
        before = robot.position
        robot.jump(-T0 // 4)
        robot.sample()
        assert np.abs(robot.position - before).max() < 0.2
        for _ in range(50):
            robot.sample()
        assert robot.last.state != GaitPhase.TROTTING
        assert "the clock of joint_states jumped by -" in robot.last.reason
        robot.call("start")
        robot.trot()
        assert robot.last.reason == ""


@pytest.mark.parametrize("status", [TrunkCom.STATUS_CONVERGED, TrunkCom.STATUS_USABLE])
def test_feet_follow_a_good_estimate_only(bench, status):
    robot = bench(feedback=True, com_timeout=50.0, gait__start_delay=5.0)
    robot.trot()
    msg = TrunkCom(robot_com_std=0.001)
    msg.offset_from_center.y = 0.05
    msg.header.stamp = ns_to_stamp(robot.time_ns)
    for other in (TrunkCom.STATUS_ESTIMATING, TrunkCom.STATUS_DEGRADED, 255):
        msg.status = other
        robot.world.send("trunk_com", msg, qos.stream(100))
        robot.world.spin_for(0.1)
        assert robot.node._com.value is None
    for _ in range(10):
        robot.sample()
    np.testing.assert_array_equal(robot.last.com_shift, [0.0, 0.0])
    msg.status = status
    robot.world.send("trunk_com", msg, qos.stream(100))
    robot.world.spin_until(lambda: robot.node._com.value is not None, "it is received")
    for _ in range(100):
        robot.sample()
    assert robot.last.com_shift[1] == pytest.approx(0.05, abs=0.005)
    assert not robot.last.saturated


def test_cmd_vel_is_obeyed_until_it_is_no_longer_sent(bench):
    robot = bench(cmd_vel_timeout=0.5)
    robot.trot()
    gait, velocity = robot.node.session.gait, Twist()
    velocity.linear.x, velocity.angular.z = 0.2, 0.1
    robot.world.send("cmd_vel", velocity, qos.stream(1))
    received = robot.node._velocity
    robot.world.spin_until(lambda: received.ever_received, "cmd_vel is received")
    robot.sample()
    np.testing.assert_allclose(gait._wanted_velocity, [0.2, 0.0, 0.1])
    velocity.linear.x = 11.0
    robot.world.send("cmd_vel", velocity, qos.stream(1))
    robot.world.spin_until(
        lambda: robot.node.faults.counts["implausible"], "it is refused"
    )
    robot.world.spin_for(0.6)
    robot.sample()
    assert not gait._wanted_velocity.any()


@pytest.mark.parametrize("absurd", [-2.0, 2 * math.pi])
def test_an_absurd_position_stops_it_on_all_feet_until_start(bench, absurd):
    robot = bench()
    robot.trot()
    while robot.last.phase < 0.2:
        robot.sample()
    robot.sample(position=robot.position + np.eye(MODEL.n_joints)[3] * absurd)
    assert f"{MODEL.joint_names[3]} reports" in robot.last.reason
    for _ in range(40):
        robot.sample()
    assert robot.last.state == GaitPhase.STANDING
    held = robot.position
    robot.sample()
    np.testing.assert_array_equal(robot.position, held)
    assert f"{MODEL.joint_names[3]} reports" in robot.last.reason
    assert robot.call("start").success
    robot.trot()
    assert robot.last.reason == ""


def test_joints_that_do_not_move_stop_it(bench):
    robot = bench(gait__frequency=2.5)
    robot.trot()
    while robot.last.state == GaitPhase.TROTTING:
        robot.sample(position=POSTURE)
        assert robot.time_ns < T0 + 5_000_000_000
    assert (
        "do not follow" in robot.last.reason or "from its target" in robot.last.reason
    )
    assert all(robot.last.stance)


def test_absurd_positions_are_waited_for_before_the_first_command(bench):
    robot = bench()
    for _ in range(5):
        assert robot.sample(position=POSTURE + 3.0).state == GaitPhase.UNKNOWN
    assert "lf_haa_joint reports 3, its limits are" in robot.last.reason
    assert not robot.ways
    robot.trot()
