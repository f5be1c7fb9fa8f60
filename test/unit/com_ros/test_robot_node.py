"""RobotNode: what every node of the suite gets from its base."""

import time
from dataclasses import dataclass

import pytest
import rclpy
from geometry_msgs.msg import Vector3
from rcl_interfaces.msg import Parameter, ParameterValue
from rcl_interfaces.srv import SetParameters, SetParametersAtomically
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import String
from std_srvs.srv import Trigger

from com_ros import diagnostics
from com_ros.conversions import ns_to_stamp, numpy_to_joint_state, stamp_to_ns
from com_ros.exceptions import ComRosError, ParameterError
from com_ros.parameters import JointTimeout, RobotParameters, live_parameter, parameter
from com_ros.robot_node import RobotNode

MS = 1_000_000
URDF = """<robot name="arm"><link name="base"/><link name="tip"><inertial><mass value="1"/>
  <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="lift" type="continuous"><parent link="base"/><child link="tip"/></joint></robot>"""


@dataclass(frozen=True)
class Parameters(RobotParameters, JointTimeout):
    gain: float = live_parameter(2.0, "1/s", (0.0, 10.0))
    rate_hz: float = live_parameter(1e9, "of the samples, 1/s", (1.0, 1e9))
    feet: tuple[str, ...] = parameter((), "structural")


class ArmNode(RobotNode[Parameters]):
    def __init__(self, with_problems=False, **options):
        super().__init__("arm", Parameters, **options)
        self.samples, self.timeouts, self.imus, self.restarts = [], [], [], 0
        self.model = None
        self.follow_robot_description()
        self.follow_joint_states(self.samples.append, with_problems=with_problems)
        self.subscribe(Imu, "imu", lambda msg, time_ns: self.imus.append(time_ns))
        self.serve_trigger("~/start", self.start)

    def use_model(self, model):
        self.model = model

    def on_joints_timeout(self, reason):
        self.timeouts.append(reason)

    def on_restart(self, jump_s):
        self.restarts += 1

    def apply_parameters(self, new):
        if new.gain == 7.0:
            raise ComRosError("7 is one too many")

    def start(self):
        if not self.samples:
            raise ComRosError("no joint_states yet")
        return "started"


@pytest.fixture
def make_arm(ros_context):
    nodes = []

    def make(overrides=None, **options):
        values = {"robot_description": URDF} | (overrides or {})
        given = [rclpy.Parameter(name, value=value) for name, value in values.items()]
        nodes.append(ArmNode(context=ros_context, parameter_overrides=given, **options))
        return nodes[-1]

    yield make
    for node in nodes:
        node.destroy_node()


def joints(t_ms, position=0.5, name="lift"):
    return numpy_to_joint_state(
        [name], [position], stamp=ns_to_stamp(10**12 + t_ms * MS)
    )


def receive(node, msg):
    node._backlogs[0]._deliver(msg)


def test_samples_carry_time_and_stamp(make_arm):
    node, msg = make_arm(), joints(3)
    receive(node, msg)
    (sample,) = node.samples
    assert (sample.position, sample.time_ns) == ([0.5], 10**12 + 3 * MS)
    assert sample.stamp_ns == stamp_to_ns(msg.header.stamp)


def test_what_is_wrong_with_joint_states_is_only_for_nodes_that_ask_for_it(make_arm):
    quiet, curious = make_arm(), make_arm(with_problems=True)
    for node in (quiet, curious):
        receive(node, joints(0, float("nan")))
    assert not quiet.samples
    assert not quiet.joint_watch.ever_received  # broken joint_states time out
    assert "not finite: lift" in curious.samples[0].error


def test_without_a_model_the_problem_is_what_is_waited_for(make_arm):
    node = make_arm({"robot_description": ""}, with_problems=True)
    receive(node, joints(0))
    assert node.samples[0].error.startswith("no robot_description yet")
    node.description._receive(String(data=URDF))
    receive(node, joints(1))
    assert node.samples[1].error == ""


def test_samples_that_come_too_often_are_left_out(make_arm):
    node = make_arm({"rate_hz": 100.0})
    for t in range(0, 40, 2):
        receive(node, joints(t))
    assert [(s.time_ns // MS) % 1000 for s in node.samples] == [0, 10, 20, 30]
    node.set_parameters([rclpy.Parameter("rate_hz", value=1000.0)])
    receive(node, joints(50))
    receive(node, joints(51))
    assert len(node.samples) == 6


def test_a_timeout_is_reported_once(make_arm):
    node = make_arm({"joint_timeout": 0.001})
    node._on_watch()
    assert not node.timeouts  # never received: that is only warned of
    receive(node, joints(0))
    while not node.joint_watch.stale:
        pass
    node._on_watch()
    node._on_watch()
    (reason,) = node.timeouts
    assert reason.startswith("/joint_states timed out, none for 0.0")


def test_live_parameters(make_arm):
    node = make_arm()

    def change(name, value):
        (result,) = node.set_parameters([rclpy.Parameter(name, value=value)])
        return result

    assert change("gain", 5.0).successful
    assert change("joint_timeout", 0.75).successful
    assert (node.parameters.gain, node.parameters.joint_timeout) == (5.0, 0.75)
    assert (node.joint_watch.timeout_s, node.joints.timeout_s) == (0.75, 0.75)
    assert change("gain", 7.0).reason == "7 is one too many"
    assert not change("gain", 70.0).successful
    assert "read-only" in change("feet", ["a"]).reason
    assert node.parameters.gain == node.get_parameter("gain").value == 5.0


def test_no_message_ends_a_node(make_arm, capfd):
    node = make_arm()

    def fail(msg):
        raise ZeroDivisionError("a bug")

    callback = node._guarded(fail)
    callback(JointState())
    callback(JointState())
    assert (
        "a JointState was dropped: ZeroDivisionError: a bug" in capfd.readouterr().err
    )
    receive(node, joints(0))
    assert node.samples


def test_triggers_refuse_with_the_reason(make_arm):
    node = make_arm({"robot_description": ""})
    (service,) = [s for s in node.services if s.srv_name.endswith("/start")]

    def call():
        response = service.callback(Trigger.Request(), Trigger.Response())
        return response.success, response.message

    assert call()[1].startswith("no robot_description yet")
    node.description._receive(String(data=URDF))
    assert call() == (False, "no joint_states yet")
    receive(node, joints(0))
    assert call() == (True, "started")


def test_a_configuration_that_is_needed(make_arm):
    with pytest.raises(
        ParameterError, match=r"'robot_config' is '': give the path .*, with feet"
    ):
        make_arm().require_config("feet")


def test_the_model_has_the_sole_frames_of_the_configuration(make_arm, tmp_path):
    file = tmp_path / "arm.yaml"
    file.write_text("{name: arm, feet: {sole: {link: tip, xyz: [0, 0, -0.1]}}}")
    node = make_arm({"robot_config": str(file)})
    assert node.require_config() is node.config
    assert node.model.link_names == ("base", "tip", "sole")
    file.write_text("{name: arm, feet: {sole: {link: foot}}}")
    node = make_arm({"robot_config": str(file)})
    assert node.model is None
    assert "feet.sole.link: no link 'foot'" in node.waiting


# --- faults of the inputs ------------------------------------------------------------------------
def diagnosis(node):
    """Level, text and values of the next status."""
    found = []
    node._diagnostics.publish = lambda *values: found.append(values)
    node._on_diagnostics()
    return found[0][:3]


def test_numbers_that_cannot_be_are_dropped_counted_and_reported(make_arm):
    node = make_arm(with_problems=True)
    imu = Imu(angular_velocity=Vector3(x=1e160))
    node._backlogs[1]._deliver(imu)
    receive(node, joints(0, 1e300))
    receive(node, joints(1))
    assert not node.imus
    assert [bool(sample.error) for sample in node.samples] == [True, False]
    level, text, values = diagnosis(node)
    assert level == diagnostics.WARN
    assert values["implausible"] == 2
    assert (
        "joint_states has a position that cannot be: lift is 1e+300, expected" in text
    )
    assert diagnosis(node)[:2] == (diagnostics.OK, "running")


def test_limits_of_the_input_are_live_parameters(make_arm):
    node = make_arm()
    imu = Imu(angular_velocity=Vector3(x=200.0))
    node._backlogs[1]._deliver(imu)
    assert not node.imus
    change = rclpy.Parameter("input_limits.angular_velocity", value=300.0)
    assert node.set_parameters([change])[0].successful
    node._backlogs[1]._deliver(imu)
    assert len(node.imus) == 1


def test_a_stamp_that_jumps_is_held_back_and_reported(make_arm):
    node = make_arm()
    receive(node, joints(0))
    receive(node, joints(3_600_000))
    receive(node, joints(1))
    assert [s.time_ns for s in node.samples] == [10**12, 10**12 + MS]
    _, text, values = diagnosis(node)
    assert values["clock_jumps"] == 1
    assert "/joint_states jumped 3600 s ahead: such messages are held back" in text


def test_messages_that_are_held_back_are_no_timeout(make_arm):
    """A clock that jumps is reported as such; only when it goes on jumping the input is stale."""
    node = make_arm({"joint_timeout": 0.02})
    receive(node, joints(0))
    time.sleep(0.03)
    receive(node, joints(3_600_000))
    assert not node.joint_watch.stale
    time.sleep(0.5)
    receive(node, joints(7_200_000))
    assert node.joint_watch.stale


def test_stamps_of_zero_before_the_clock_starts_are_no_fault(make_arm):
    node = make_arm()
    for t in range(3):
        receive(
            node, numpy_to_joint_state(["lift"], [0.1 * t], stamp=ns_to_stamp(t * MS))
        )
    assert [sample.warnings for sample in node.samples] == [(), (), ()]
    assert [sample.time_ns for sample in node.samples[1:]] == [MS, 2 * MS]
    assert diagnosis(node)[:2] == (diagnostics.OK, "running")


@pytest.mark.parametrize("jump_ms", [-20_000, 9_000])
def test_stamps_that_jump_for_good_begin_again(make_arm, jump_ms):
    node = make_arm({"rate_hz": 100.0})
    for t in range(50):
        receive(node, joints(t))
    for t in range(300):
        receive(node, joints(jump_ms + t))
    assert node.restarts == 1
    assert len(node.samples) == 10
    assert "count from now on" in diagnosis(node)[1]


def test_a_short_pause_of_the_node_costs_no_message(make_arm):
    node = make_arm()
    for t in range(50):
        info = {"received_timestamp": time.time_ns() - (50 - t) * MS}
        node._backlogs[0].receive(joints(t), info)
    assert len(node.samples) == 50
    assert (node._backlogs[0].skipped, node.too_slow) == (0, "")


def test_no_request_ends_a_node(make_arm, capfd):
    node = make_arm()
    services = {service.srv_name: service for service in node.services}
    prefix = next(n for n in services if n.endswith("/set_parameters"))
    answer = services[prefix].callback
    odd = Parameter(name="gain", value=ParameterValue(type=255))
    good = Parameter(name="gain", value=ParameterValue(type=3, double_value=7.5))
    response = answer(
        SetParameters.Request(parameters=[good, odd]), SetParameters.Response()
    )
    assert [result.successful for result in response.results] == [False, False]
    assert "'gain': the type 255 of its value does not exist" in str(response)
    assert node.parameters.gain != 7.5
    response = services[f"{prefix}_atomically"].callback(
        SetParametersAtomically.Request(parameters=[odd]),
        SetParametersAtomically.Response(),
    )
    assert "255" in response.result.reason

    def fail(request, response):
        raise ZeroDivisionError("a bug")

    service = node.create_service(Trigger, "broken", fail)
    response = service.callback(Trigger.Request(), Trigger.Response())
    assert (response.success, response.message) == (False, "ZeroDivisionError: a bug")
    shown = capfd.readouterr().err
    assert "a request of broken was refused: ZeroDivisionError: a bug" in shown
    assert "Traceback" in shown


def test_no_timer_ends_a_node(make_arm, capfd):
    node = make_arm()
    calls = []

    def fail():
        calls.append(1)
        raise ZeroDivisionError("a bug")

    timer = node.create_steady_timer(60.0, fail)
    timer.callback()
    timer.callback()
    assert len(calls) == 2
    assert node.faults.counts["failed"] == 2
    shown = capfd.readouterr().err
    assert shown.count("a timer failed: ZeroDivisionError: a bug") == 1
