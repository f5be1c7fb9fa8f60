"""posture_tour over DDS, with a played robot that follows its trajectories and a played node."""

from pathlib import Path

import numpy as np
import pytest
from rclpy.action import ActionServer
from rclpy.qos import DurabilityPolicy, QoSProfile
from scipy.interpolate import CubicHermiteSpline
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory

from com_identification.nodes.posture_tour import PostureTour
from com_model import RobotConfig, RobotModel
from com_msgs.action import ProposePostures
from com_msgs.msg import ProposedPosture
from com_msgs.srv import CapturePosture, ExportUrdf, IdentifyLinks
from com_ros.conversions import ns_to_stamp, numpy_to_joint_state
from com_ros.exceptions import ParameterError

CONFIG = (
    Path(__file__).resolve().parents[2] / "src/robot_descriptions/config/biped3.yaml"
)
LATCHED = QoSProfile(depth=20, durability=DurabilityPolicy.TRANSIENT_LOCAL)
POSTURES = ((0.25, -0.2), (-0.2, 0.25), (0.1, 0.0))  # knees, ankles
STEP_NS = 20_000_000  # of the stamps, which go faster than time
QUICK = {
    "settle": 0.1,
    "speed": 1.0,
    "answer_timeout": 20.0,
    "batch": 2,
    "hoist_time": 0.2,
}
PATIENT = {"joint_timeout": 5.0}  # a busy machine is no silence


class Scenario:
    """The robot, com_identification and a hoist, played; and the tour under test."""

    def __init__(self, world):
        self.world, self.node = world, world.node
        self.config = RobotConfig.from_file(CONFIG)
        self.model = RobotModel.from_file(self.config.urdf)
        self.names = list(self.model.joint_names)
        self.q, self.motion = self.config.nominal_posture(self.model), None
        self.blocked = self.mute = False
        self.time_ns, self.asked, self.captured, self.lifts = 10**12, [], [], []
        self.refusals = 0
        self.joints = self.node.create_publisher(JointState, "joint_states", 50)
        self.node.create_subscription(
            JointTrajectory, "joint_trajectory", self.follow, 10
        )
        for kind, name, serve in (
            (CapturePosture, "capture_posture", self.capture),
            (IdentifyLinks, "identify_links", self.identify),
            (ExportUrdf, "export_urdf", self.export),
        ):
            self.node.create_service(kind, f"com_identification/{name}", serve)
        ActionServer(
            self.node,
            ProposePostures,
            "com_identification/propose_postures",
            self.propose,
        )
        self.node.create_service(SetBool, "hoist", self.lift)
        self.node.create_timer(0.01, self.step)
        self.status = world.collect(String, "posture_tour/status", LATCHED)
        self.postures = list(POSTURES)

    def start(self, **parameters):
        given = {"robot_description": self.model.xml, "robot_config": str(CONFIG)}
        given |= QUICK | PATIENT
        self.tour = self.world.start(PostureTour, **{**given, **parameters})
        return self.tour

    def finish(self):
        self.world.spin_until(
            lambda: self.tour.finished, "the tour ends", timeout=250.0
        )
        self.world.spin_for(0.2)
        return self.status[-1].data

    def trigger(self, name):
        client = self.node.create_client(Trigger, f"posture_tour/{name}")
        self.world.spin_until(client.service_is_ready, name)
        answer = client.call_async(Trigger.Request())
        self.world.spin_until(answer.done, name)
        return answer.result()

    # --- the robot ---------------------------------------------------------------------------
    def follow(self, msg):
        assert msg.joint_names == self.names
        times = [
            p.time_from_start.sec + 1e-9 * p.time_from_start.nanosec for p in msg.points
        ]
        speeds = np.array([list(p.velocities) for p in msg.points])
        assert np.abs(speeds).max() <= 1.0 + 1e-9
        knots = np.vstack((self.q, [list(p.positions) for p in msg.points]))
        speeds = np.vstack((np.zeros(len(self.q)), speeds))
        spline = CubicHermiteSpline(np.append(0.0, times), knots, speeds)
        self.motion = self.time_ns, times[-1], spline

    def step(self):
        self.time_ns += STEP_NS
        if self.motion and not self.blocked:
            begin_ns, duration, spline = self.motion
            self.q = spline(min((self.time_ns - begin_ns) / 1e9, duration))
        if not self.mute:
            stamp = ns_to_stamp(self.time_ns)
            self.joints.publish(numpy_to_joint_state(self.names, self.q, stamp=stamp))

    def lift(self, request, response):
        self.lifts.append(request.data)
        response.success = True
        return response

    # --- com_identification ------------------------------------------------------------------
    def propose(self, goal):
        response, count = ProposePostures.Result(), goal.request.count
        self.asked.append(count)
        for _ in range(count):
            knee, ankle = self.postures.pop(0)
            place = {"l_knee": knee, "r_knee": knee, "l_ankle": ankle, "r_ankle": ankle}
            names = list(reversed(self.names))  # by name, not by order
            positions = [place[name] for name in names]
            response.postures.append(
                ProposedPosture(joint_names=names, joint_positions=positions)
            )
        response.success = True
        goal.succeed()
        return response

    def capture(self, request, response):
        if self.refusals:
            self.refusals -= 1
            response.message = "no posture: the robot moves"
            return response
        self.captured.append(self.q.copy())
        response.success, response.message = True, f"posture {len(self.captured)}"
        return response

    def identify(self, request, response):
        response.success, response.message = True, "all is found"
        return response

    def export(self, request, response):
        assert request.overwrite
        response.success, response.message = True, "written to a.urdf"
        return response


@pytest.fixture
def scenario(world):
    return Scenario(world)


def test_a_tour_from_its_start_to_the_urdf(scenario):
    scenario.start(automatic=True, count=3)
    assert scenario.finish() == "3 postures captured; all is found; written to a.urdf"
    assert scenario.asked == [2, 1]
    for q, (knee, ankle) in zip(scenario.captured, POSTURES, strict=True):
        place = dict(zip(scenario.names, q, strict=True))
        assert [place["l_knee"], place["r_ankle"]] == pytest.approx(
            [knee, ankle], abs=0.01
        )
    np.testing.assert_allclose(
        scenario.q, scenario.config.nominal_posture(scenario.model), atol=0.01
    )


def test_an_operator_confirms_each_step(scenario):
    scenario.start(count=1)
    awaited = (
        "to move to the nominal posture",
        "to go to posture 1 of 1",
        "to capture it",
        "to go to the nominal posture",
    )
    for what in awaited:
        said = f"waits for /posture_tour/next {what}"
        scenario.world.spin_until(
            lambda said=said: scenario.status and scenario.status[-1].data == said, said
        )
        before = scenario.q.copy()
        scenario.world.spin_for(0.2)
        np.testing.assert_array_equal(scenario.q, before)
        assert scenario.trigger("next").success
    assert scenario.finish().startswith("1 postures captured")
    assert scenario.trigger("next").message == "no confirmation is awaited"


def test_a_hoist_lifts_it_between_postures(scenario):
    scenario.postures = [(0.25, -0.2)]
    scenario.start(automatic=True, count=1, hoist="hoist")
    assert scenario.finish().startswith("1 postures captured")
    assert scenario.lifts == [True, False, True, False]


def test_a_posture_that_is_refused_is_left_out(scenario):
    scenario.postures = [*POSTURES, (0.05, 0.0)]
    scenario.refusals = 1
    scenario.start(automatic=True, count=3)
    assert scenario.finish().startswith("3 postures captured")
    assert scenario.asked == [2, 2]


def test_too_many_failures_end_it(scenario):
    scenario.refusals = 9
    scenario.start(automatic=True, count=3, failures=2)
    assert scenario.finish() == (
        "the tour ends: 2 postures in a row failed, the last one: no posture: the robot moves"
    )


def test_it_identifies_from_what_it_has_where_half_is_captured(scenario):
    scenario.postures = [*POSTURES, *POSTURES]
    scenario.start(automatic=True, count=3, failures=2)
    scenario.world.spin_until(lambda: len(scenario.captured) == 2, "two captures")
    scenario.refusals = 9
    assert scenario.finish().startswith("2 postures captured")


def test_a_robot_without_joint_states_is_stopped(scenario):
    scenario.start(automatic=True, count=1, speed=0.1, joint_timeout=5.0)
    scenario.world.spin_until(lambda: np.abs(scenario.q).max() > 0.02, "it moves")
    scenario.mute = True
    said = scenario.finish()
    assert said.startswith("the tour ends: no joint_states for")
    stopped = scenario.q.copy()
    scenario.world.spin_for(0.5)
    np.testing.assert_allclose(scenario.q, stopped, atol=0.02)
    assert not scenario.captured


def test_a_blocked_joint_ends_it(scenario):
    scenario.start(automatic=True, count=1)
    scenario.world.spin_until(lambda: np.abs(scenario.q).max() > 0.01, "it moves")
    scenario.blocked = True
    assert (
        "off its target: is it blocked, or is there no subscriber" in scenario.finish()
    )


def test_a_joint_that_does_not_follow_is_noticed_on_the_way(scenario):
    """It stops close to where the joint is, and does not go on to the posture, 0.25 rad away."""
    scenario.start(automatic=True, count=1, speed=0.1, tracking_tolerance=0.05)
    scenario.world.spin_until(lambda: np.abs(scenario.q).max() > 0.01, "it moves")
    scenario.blocked = True
    assert (
        "off its target: is it blocked, or is there no subscriber" in scenario.finish()
    )
    scenario.blocked = False
    scenario.world.spin_for(1.0)
    assert np.abs(scenario.q).max() < 0.15


@pytest.mark.parametrize("jump_s", [20, -20])
def test_a_clock_that_jumps_stops_a_motion(scenario, jump_s):
    scenario.start(automatic=True, count=1, speed=0.1)
    scenario.world.spin_until(lambda: np.abs(scenario.q).max() > 0.02, "it moves")
    begin_ns, *way = scenario.motion
    scenario.time_ns += jump_s * 10**9
    scenario.motion = begin_ns + jump_s * 10**9, *way
    said = scenario.finish()
    assert said.startswith("the tour ends: the stamps of joint_states jumped by ")
    assert np.sign(float(said.split()[9])) == np.sign(jump_s)
    assert np.abs(scenario.q).max() < 0.2


@pytest.mark.parametrize("jump_s", [20, -20])
def test_a_clock_that_jumps_does_not_prolong_a_wait(scenario, jump_s):
    scenario.start(automatic=True, count=1, settle=2.0)
    scenario.world.spin_until(
        lambda: np.abs(scenario.q).max() > 0.24, "it is at the posture"
    )
    scenario.world.spin_for(0.5)
    scenario.motion = None
    scenario.time_ns += jump_s * 10**9
    assert scenario.finish().startswith("1 postures captured")


def test_it_stops_when_told(scenario):
    scenario.start(automatic=True, count=3, speed=0.1)
    scenario.world.spin_until(lambda: np.abs(scenario.q).max() > 0.02, "it moves")
    assert scenario.trigger("stop").success
    assert scenario.finish() == "the tour ends: stopped by ~/stop"


def test_a_robot_elsewhere_is_waited_for(scenario):
    scenario.q = scenario.q + 0.5
    scenario.start(automatic=True, count=1)
    said = "waits for the nominal posture: joint 'l_knee' is 0.50 off; bring the robot there"
    scenario.world.spin_until(
        lambda: scenario.status and scenario.status[-1].data.startswith(said), said
    )
    scenario.world.spin_for(0.3)
    assert scenario.motion is None
    scenario.q = scenario.q - 0.5
    assert scenario.finish().startswith("1 postures captured")


def test_a_robot_that_comes_up_late_is_waited_for(scenario):
    scenario.mute = True
    scenario.start(automatic=True, count=1, hoist="late_hoist")
    late = "waits for joint_states: start the robot's driver"
    scenario.world.spin_until(
        lambda: scenario.status and scenario.status[-1].data == late, late
    )
    scenario.mute = False
    late = "waits for the service late_hoist: start the hoist"
    scenario.world.spin_until(lambda: scenario.status[-1].data == late, late)
    scenario.world.spin_for(0.3)
    assert not scenario.asked
    scenario.node.create_service(SetBool, "late_hoist", scenario.lift)
    assert scenario.finish().startswith("1 postures captured")


def test_meshes_are_looked_for_beside_the_urdf(scenario):
    """Else its paths are planned with boxes, and collide with what the simulator has."""
    urdf = scenario.config.urdf
    tour = scenario.start(urdf_file=str(urdf))
    assert tour._state._feasible.statics.model.path == Path(urdf)


def test_a_configuration_is_needed(world):
    with pytest.raises(
        ParameterError, match="give the path of the robot's configuration"
    ):
        world.start(PostureTour)
