"""tip_ramp over DDS, with a played robot whose CoMs are not as its URDF says, and its feet."""

import csv
import json

import numpy as np
import pytest
from geometry_msgs.msg import WrenchStamped
from rclpy.qos import DurabilityPolicy, QoSProfile
from scipy.interpolate import CubicHermiteSpline
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory

from com_identification.nodes.tip_ramp import TipRamp
from com_identification.tip_over.protocol import TipProtocol, read_angles
from com_identification.tip_over.quasi_static import QuasiStatic
from com_model import RobotModel
from com_ros.conversions import ns_to_stamp, numpy_to_joint_state, numpy_to_wrench
from com_ros.exceptions import ParameterError

pytestmark = pytest.mark.slow  # a robot that leans in real time

LATCHED = QoSProfile(depth=50, durability=DurabilityPolicy.TRANSIENT_LOCAL)
STEP_NS = 20_000_000  # of the stamps, which go as fast as time
LOAD = np.array([0.5, 0.5])
RAMP, FALL_MARGIN = 0.05, 0.002  # rad/s and m
# m per rad/s, of a CoM 0.19 m above the soles that is stopped
LAG = 0.19 * (0.19 / 9.8) ** 0.5
BOTH = {"joints": ["l_ankle", "r_ankle"], "feet": ["l_sole", "r_sole"]}
PROTOCOL = {
    "robot": "biped3",
    "moves": {
        "ankle Front": {**BOTH, "turn": -1, "falls": "front"},
        "ankle Back": {**BOTH, "turn": 1, "falls": "back"},
    },
}


class Scenario:
    """The robot, its drivers and a hoist, played; and the node under test."""

    def __init__(self, world, robot, folder):
        self.world, self.node, self.robot = world, world.node, robot
        self.names, self.q = (
            list(robot.model.joint_names),
            np.zeros(robot.model.n_joints),
        )
        self.motion, self.time_ns, self.lifts, self.load = None, 10**12, [], 1.0
        self.ramp_speeds = []
        self.standing_speeds = []  # rad/s, largest of each trajectory on the ground
        self.protocol, self.output = folder / "protocol.yaml", folder / "tips.csv"
        self.protocol.write_text(json.dumps(PROTOCOL))
        publisher = self.node.create_publisher
        self.joints = publisher(JointState, "joint_states", 50)
        feet = robot.config.feet
        self.wrenches = [
            publisher(WrenchStamped, foot.wrench_topic, 50) for foot in feet
        ]
        self.node.create_subscription(
            JointTrajectory, "joint_trajectory", self.follow, 10
        )
        self.node.create_service(SetBool, "hoist", self.lift)
        self.node.create_timer(0.02, self.step)
        self.status = world.collect(String, "tip_ramp/status", LATCHED)

    def start(self, **parameters):
        given = {
            "robot_description": self.robot.model.xml,
            "robot_config": str(self.robot.config_path),
            "protocol": str(self.protocol),
            "output": str(self.output),
            "speed": 2.0,
            "ramp_speed": RAMP,
            "fall_margin": FALL_MARGIN,
            "velocity_fraction": 1.0,
            "hoist_time": 0.2,
            "joint_timeout": 5.0,
        }
        self.ramp = self.world.start(TipRamp, **{**given, **parameters})

    def finish(self):
        self.world.spin_until(
            lambda: self.ramp.finished, "the protocol ends", timeout=180.0
        )
        self.world.spin_for(0.2)
        return self.status[-1].data

    def follow(self, msg):
        times = [
            p.time_from_start.sec + 1e-9 * p.time_from_start.nanosec for p in msg.points
        ]
        knots = np.vstack((self.q, [list(p.positions) for p in msg.points]))
        speeds = np.vstack(
            (np.zeros(len(self.q)), [list(p.velocities) for p in msg.points])
        )
        spline = CubicHermiteSpline(np.append(0.0, times), knots, speeds)
        if self.lifts and not self.lifts[-1]:
            rates = spline(np.linspace(0.0, times[-1], 200), 1)
            self.standing_speeds.append(np.abs(rates).max())
            if len(times) == 3:  # to the speed, at it, and from it
                self.ramp_speeds.append(np.abs(speeds[1]).max())
        self.motion = self.time_ns, times[-1], spline

    def step(self):
        self.time_ns += STEP_NS
        if self.motion:
            begin_ns, duration, spline = self.motion
            self.q = spline(min((self.time_ns - begin_ns) / 1e9, duration))
        stamp, (Q, W) = ns_to_stamp(self.time_ns), self.robot.read(self.q, LOAD, 1)
        for publisher, wrench in zip(self.wrenches, self.load * W[0], strict=True):
            msg = WrenchStamped(wrench=numpy_to_wrench(wrench))
            msg.header.stamp = stamp
            publisher.publish(msg)
        self.joints.publish(numpy_to_joint_state(self.names, Q[0], stamp=stamp))

    def lift(self, request, response):
        self.lifts.append(request.data)
        response.success = True
        return response

    def angles(self, xml):
        """Quasi-static tip angles of a URDF."""
        protocol = TipProtocol.from_file(self.protocol)
        model = RobotModel.from_urdf(xml)
        return QuasiStatic.from_protocol(
            model, self.robot.config, protocol
        ).tip_angles()


@pytest.fixture
def scenario(world, make_standing_robot, tmp_path):
    return Scenario(world, make_standing_robot("biped3"), tmp_path)


@pytest.mark.exhaustive
def test_the_feet_tell_the_tip_angles_of_the_true_robot(scenario):
    scenario.start(automatic=True, hoist="hoist")
    table = scenario.finish()
    assert scenario.lifts == [True, False] * 2
    robot = scenario.robot
    measured, model = (
        scenario.angles(xml) for xml in (robot.true_xml, robot.model.xml)
    )
    assert np.degrees(model[1] - measured[1]) > 0.6  # what is to be seen
    found = read_angles(scenario.output, TipProtocol.from_file(scenario.protocol))
    for name, true in (("measured", measured), ("model", model)):
        assert np.isnan(
            found[name][0]
        )  # it does not tip forwards before the ankles' limit
        assert np.degrees(found[name][1] - true[1]) == pytest.approx(0.0, abs=0.3)
    assert any(
        "still stands at the joints' limit" in said.data for said in scenario.status
    )
    assert [line.split("  ")[0] for line in table.splitlines()[1:]] == [
        "ankle Front",
        "ankle Back",
    ]
    np.testing.assert_allclose(scenario.q, 0.0, atol=0.01)  # it stands again
    # slowly, also from the edge: moving the trunk forwards pushes the pressure backwards
    assert max(scenario.standing_speeds) < 1.1 * RAMP
    assert max(scenario.ramp_speeds) == pytest.approx(RAMP)  # far from the edge
    assert (
        0.0 < LAG * min(scenario.ramp_speeds) < FALL_MARGIN / 2.0 < LAG * RAMP
    )  # near it


@pytest.mark.exhaustive
def test_an_operator_lifts_it_and_tests_are_chosen(scenario):
    scenario.start(tests=["ankle Back"])
    awaited = (
        "to be lifted and go to the start of ankle Back",
        "to begin ankle Back, on its feet; be ready to catch it",
    )
    for what in awaited:
        said = f"waits for /tip_ramp/next {what}"
        scenario.world.spin_until(
            lambda said=said: said in [each.data for each in scenario.status], said
        )
        client = scenario.node.create_client(Trigger, "tip_ramp/next")
        scenario.world.spin_until(client.service_is_ready, "next")
        answer = client.call_async(Trigger.Request())
        scenario.world.spin_until(answer.done, "next")
    scenario.finish()
    rows = list(csv.DictReader(scenario.output.open()))
    assert [bool(row["measured_rad"]) for row in rows] == [False, True]
    assert scenario.lifts == []


def test_a_robot_that_does_not_stand_has_no_angle(scenario):
    scenario.load = 0.1
    scenario.start(automatic=True, tests=["ankle Back"])
    assert "nan" in scenario.finish()
    assert any("0 readings before it tips" in said.data for said in scenario.status)


def test_what_is_wrong_is_named(scenario):
    with pytest.raises(ParameterError, match="valid: ankle Front, ankle Back"):
        scenario.start(tests=["ankle Up"])
    with pytest.raises(
        ParameterError, match="parameter 'protocol' is '': give the path"
    ):
        scenario.start(protocol="")
