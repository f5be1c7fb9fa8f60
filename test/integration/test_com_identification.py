"""com_identification over DDS: capture, refuse, identify, propose, tare, keep, write."""

import math
import re
import time

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import Quaternion, WrenchStamped
from rclpy.action import ActionClient
from sensor_msgs.msg import Imu, JointState
from std_srvs.srv import Trigger
from visualization_msgs.msg import MarkerArray

from com_identification.nodes.com_identification import ComIdentification
from com_msgs import action, srv
from com_msgs.msg import IdentificationResult, IdentificationState, ModelCheck
from com_ros.conversions import (
    ns_to_stamp,
    numpy_to_joint_state,
    numpy_to_wrench,
    point_to_numpy,
    rotation_to_quaternion,
    stamp_to_ns,
    vector3_to_numpy,
)
from com_ros.exceptions import ParameterError
from com_ros.qos import LATCHED

RATE_HZ = 50  # of the stamps
SAMPLES = 20
MOVE = 5  # readings of a move
QUICK = {
    "capture__samples": SAMPLES,
    "capture__settle_time": 0.2,
    "capture__timeout": 30.0,  # so that a busy machine is no silence
    "plan__candidates": 20,
    "plan__refinements": 0,
    "fit__folds": 2,
    "state_rate_hz": 20.0,
    "check_rate_hz": 5.0,
}


POSTURE = (np.array([0.1, 0.3, 0.1, 0.3]), np.array([0.4, 0.6]))  # the CoM above the soles


def about_x(roll):
    """R (3, 3) about x."""
    c, s = math.cos(roll), math.sin(roll)
    return np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])


class Scenario:
    """A node with a robot whose drivers are played, by stamps that go faster than time."""

    def __init__(self, world, robot, directory, **parameters):
        self.world, self.robot, self.directory = world, robot, directory
        (directory / "export").mkdir(exist_ok=True)
        self.state = world.collect(IdentificationState, "identification/state")
        self.results = world.collect(IdentificationResult, "identification/result", LATCHED)
        self.checks = world.collect(ModelCheck, "identification/model_check")
        self.parameters = {
            "robot_description": robot.model.xml,
            "robot_config": str(robot.config_path),
            "storage_directory": str(directory / "store"),
            "export_directory": str(directory / "export"),
            **QUICK,
            **parameters,
        }
        self.node = world.start(ComIdentification, **self.parameters)
        self.time_ns, self.q = 10**12, np.full(robot.model.n_joints, 0.5)
        self.clients, self.imu_tilt, self.noise = {}, None, np.random.default_rng(1)

    def call_later(self, kind, name, /, **fields):
        """Future of an answer."""
        if name not in self.clients:
            self.clients[name] = self.world.node.create_client(kind, f"com_identification/{name}")
        client = self.clients[name]
        self.world.spin_until(client.service_is_ready, f"service {name}")
        return client.call_async(kind.Request(**fields))

    def call(self, kind, name, /, **fields):
        answer = self.call_later(kind, name, **fields)
        self.world.spin_until(answer.done, f"answer of {name}", timeout=60.0)
        return answer.result()

    def play(self, q, load, count=50, *, offset=0.0, spoil=lambda Q, W: (Q, W), silent=()):
        """Readings of a posture at rest, after a quick move from the one before."""
        Q, W = self.robot.read(q, load, count)
        Q, W = spoil(Q, W + offset)
        self._send(np.linspace(self.q, q, MOVE), W[:MOVE], silent)
        self._send(Q, W, silent)
        self.world.spin_for(0.15)
        self.q = q

    def play_until(self, condition, what):
        """The robot stands in one posture and its drivers go on until a condition holds."""
        end = time.monotonic() + 30.0
        while not condition():
            assert time.monotonic() < end, f"in vain waited until {what}"
            self.play(*POSTURE)

    def _send(self, Q, W, silent):
        names = list(self.robot.model.joint_names)
        for position, wrenches in zip(Q, W, strict=True):
            self.time_ns += 1_000_000_000 // RATE_HZ
            stamp = ns_to_stamp(self.time_ns)
            self.world.send("joint_states", numpy_to_joint_state(names, position, stamp=stamp))
            for foot, wrench in zip(self.robot.config.feet, wrenches, strict=True):
                if foot.frame in silent:
                    continue
                msg = WrenchStamped(wrench=numpy_to_wrench(wrench))
                msg.header.stamp = stamp
                self.world.send(foot.wrench_topic, msg)
            if self.imu_tilt is not None:
                self.world.send("imu", self._imu(Q[-1], stamp))
            for _ in range(5):
                self.world.executor.spin_once(timeout_sec=0.0)

    def _imu(self, q, stamp):
        """What an IMU in the root link reads that is mounted turned by imu_tilt about x."""
        tilt = self.imu_tilt + 1e-4 * self.noise.normal()
        turn = about_x(tilt)
        R_root_sole, _ = self.robot.frame(q, self.robot.config.feet[0].frame)
        msg = Imu(orientation=rotation_to_quaternion(turn @ R_root_sole.T))
        msg.header.stamp = stamp
        return msg

    def capture(self, *posture, label="", **spoilt):
        """Plays a posture and captures it."""
        self.play(*(posture or self.robot.random_posture()), **spoilt)
        return self.call(srv.CapturePosture, "capture_posture", label=label, timeout=0.3)

    def fill(self, count):
        for _ in range(count):
            answer = self.capture()
            assert answer.success, answer.message


@pytest.fixture
def robot(make_standing_robot):
    return make_standing_robot("biped3")


@pytest.fixture
def scenario(world, robot, tmp_path):
    return Scenario(world, robot, tmp_path)


def test_postures_are_captured_and_stored(scenario, world):
    q, load = scenario.robot.random_posture()
    answer = scenario.capture(q, load, label="first")
    assert answer.success, answer.message
    values = answer.posture
    assert (values.id, values.label) == (1, "first")
    assert values.samples >= SAMPLES
    np.testing.assert_allclose(values.joint_positions, q, atol=5e-4)
    assert list(values.in_contact) == (load > 0).tolist()
    assert values.mass == pytest.approx(scenario.robot.model.mass, abs=0.05)
    truth, urdf = scenario.robot.com(q), scenario.robot.com(q, scenario.robot.model.xml)
    up = scenario.robot.frame(q, scenario.robot.config.feet[int(np.argmax(load))].frame)[0][:, 2]
    gap = urdf - truth
    offset = vector3_to_numpy(values.model_offset)
    np.testing.assert_allclose(offset, gap - (gap @ up) * up, atol=5e-4)
    np.testing.assert_allclose(point_to_numpy(values.com_line), urdf - offset, atol=1e-4)
    assert answer.posture.header.frame_id == "base_link"
    assert answer.posture.header.stamp == ns_to_stamp(scenario.time_ns)

    scenario.fill(2)
    stored = scenario.call(srv.GetPostures, "get_postures")
    assert [posture.id for posture in stored.postures] == [1, 2, 3]
    assert repr(stored.postures[0]) == repr(answer.posture)
    removed = scenario.call(srv.RemovePosture, "remove_posture", id=2)
    assert (removed.success, removed.message) == (True, "removed posture 2; 2 are left")
    refused = scenario.call(srv.RemovePosture, "remove_posture", id=2)
    assert not refused.success
    assert "2" in refused.message
    assert "1, 3" in refused.message
    reset = scenario.call(Trigger, "reset")
    assert reset.success
    assert "no postures are stored; the previous ones are in" in reset.message
    assert scenario.call(srv.GetPostures, "get_postures").postures == []


def test_refusals_say_why(scenario):
    nothing = scenario.call(srv.CapturePosture, "capture_posture", timeout=0.2)
    assert not nothing.success
    assert nothing.reasons
    q, load = scenario.robot.random_posture()
    moving = scenario.capture(
        q, load, spoil=lambda Q, W: (Q + np.linspace(0, 1, len(Q))[:, None], W)
    )
    assert not moving.success
    assert "keep the robot stationary" in moving.message
    silent = scenario.capture(q, load, silent=("l_sole",), count=150)  # longer than capture.lag
    assert not silent.success
    assert any("l_sole" in reason for reason in silent.reasons), silent.reasons
    frozen = scenario.capture(q, load, spoil=lambda Q, W: (Q, np.broadcast_to(W[0], W.shape)))
    assert not frozen.success
    assert any("l_sole" in reason for reason in frozen.reasons), frozen.reasons
    hanging = scenario.capture(q, load, spoil=lambda Q, W: (Q, W - W.mean(axis=0)))
    assert not hanging.success
    assert "put it on its feet" in hanging.message
    nan = scenario.capture(q, load, spoil=lambda Q, W: (Q, W * np.nan))
    assert not nan.success
    assert scenario.capture(q, load).success  # and none of it does harm


def test_a_missing_joint_is_named(scenario):
    names = list(scenario.robot.model.joint_names)[:-1]
    stamp = ns_to_stamp(scenario.time_ns)
    scenario.world.send("joint_states", numpy_to_joint_state(names, np.zeros(3), stamp=stamp))
    answer = scenario.call(srv.CapturePosture, "capture_posture", timeout=0.2)
    assert not answer.success
    assert scenario.robot.model.joint_names[-1] in answer.message


def test_a_sensor_with_the_wrong_sign_is_named(scenario):
    q, load = POSTURE
    answer = scenario.capture(q, load, spoil=lambda Q, W: (Q, -W))
    assert answer.success
    assert any("sign" in problem for problem in answer.posture.problems), answer.posture.problems


def test_links_are_identified_and_written(scenario, world):
    world.spin_until(lambda: scenario.results, "that there is no result")
    assert "capture postures and call identify_links" in scenario.results[0].reason
    assert not scenario.call(srv.IdentifyLinks, "identify_links").success  # nothing is stored
    scenario.fill(8)
    total = scenario.call(srv.IdentifyTotalCom, "identify_total_com")
    assert total.success, total.message
    assert total.mass == pytest.approx(scenario.robot.model.mass, abs=0.05)
    assert total.used == 8

    answer = scenario.call(srv.IdentifyLinks, "identify_links")
    assert answer.success, answer.message
    result = answer.result
    assert result.residual_rms < 0.3 * result.prior_residual_rms
    assert list(result.postures) == list(range(1, 9))
    assert result.rank <= result.n_parameters == 15
    assert any("slides along the axis" in text for text in result.unidentifiable)
    world.spin_until(lambda: len(scenario.results) == 2, "the result")
    assert repr(scenario.results[-1]) == repr(answer.result)

    written = scenario.call(srv.ExportUrdf, "export_urdf", name="corrected")
    assert written.success, written.message
    path = scenario.directory / "export" / "corrected.urdf"
    assert written.path == str(path)
    assert scenario.robot.error(path.read_text()) < 0.3 * scenario.robot.error(
        scenario.robot.model.xml
    )
    again = scenario.call(srv.ExportUrdf, "export_urdf", name="corrected")
    assert not again.success
    assert "exists already" in again.message
    for name in ("../corrected", "/tmp/corrected", ".hidden"):
        escaping = scenario.call(srv.ExportUrdf, "export_urdf", name=name)
        assert not escaping.success
        assert "plain file name" in escaping.message

    saved = scenario.call(srv.SavePostures, "save", name="monday")
    assert saved.success, saved.message
    assert (scenario.directory / "store" / "monday.yaml").read_text()
    assert scenario.call(Trigger, "reset").success
    world.spin_until(lambda: len(scenario.results) == 3, "that there is no result any more")
    assert scenario.results[-1].status == IdentificationResult.STATUS_UNKNOWN
    loaded = scenario.call(srv.LoadPostures, "load", name="monday")
    assert loaded.success, loaded.message
    assert loaded.count == 8
    assert "there are monday" in scenario.call(srv.LoadPostures, "load", name="sunday").message


def test_postures_that_are_alike_are_refused_with_one_that_helps(scenario):
    q, load = POSTURE
    for _ in range(3):
        assert scenario.capture(q, load).success
    answer = scenario.call(srv.IdentifyLinks, "identify_links")
    assert not answer.success
    assert re.search(r"redundant|not enough", answer.message), answer.message
    (helpful,) = answer.helpful
    assert np.abs(np.array(helpful.joint_positions) - q).max() > 0.05


def test_actions_tell_progress_and_can_be_cancelled(scenario, world):
    scenario.fill(6)
    client = ActionClient(world.node, action.IdentifyLinks, "com_identification/identify_links")
    world.spin_until(client.server_is_ready, "the action")
    feedback = []
    sent = client.send_goal_async(action.IdentifyLinks.Goal(), feedback_callback=feedback.append)
    world.spin_until(sent.done, "the goal")
    busy = scenario.call(srv.ProposePostures, "propose_postures")
    assert not busy.success
    assert "identify_links is running: wait for its end, or cancel it" in busy.message
    ended = sent.result().get_result_async()
    world.spin_until(ended.done, "the result", timeout=60.0)
    assert ended.result().result.success, ended.result().result.message
    assert feedback
    states = [state for state in scenario.state if state.job]
    assert {state.job for state in states} == {"identify_links"}

    proposer = ActionClient(
        world.node, action.ProposePostures, "com_identification/propose_postures"
    )
    world.spin_until(proposer.server_is_ready, "the action")
    sent = proposer.send_goal_async(action.ProposePostures.Goal(count=50))
    world.spin_until(sent.done, "the goal")
    cancelled = sent.result().cancel_goal_async()
    world.spin_until(cancelled.done, "the cancelling")
    ended = sent.result().get_result_async()
    world.spin_until(ended.done, "the end")
    assert ended.result().result.message == "cancelled"
    assert scenario.call(srv.ProposePostures, "propose_postures", count=2).success


def test_proposed_postures_can_be_taken(scenario):
    answer = scenario.call(srv.ProposePostures, "propose_postures", count=2)
    assert answer.success, answer.message
    first, second = answer.postures
    assert tuple(first.joint_names) == scenario.robot.model.joint_names
    assert first.margin > 0
    assert first.information_gain >= second.information_gain > 0
    captured = scenario.capture(np.array(first.joint_positions), np.array([0.5, 0.5]))
    assert captured.success, captured.message


def test_a_tare_is_taken_off_and_survives_a_restart(scenario, world):
    offset = np.array([[2.0, -1.0, 5.0, 0.1, 0.2, -0.1], np.zeros(6)])
    q, both = POSTURE
    scenario.play(q, both, offset=offset)
    loaded = scenario.call(srv.TareWrench, "tare_wrench", foot="l_sole", timeout=0.2)
    assert not loaded.success
    assert "l_sole" in loaded.message
    unknown = scenario.call(srv.TareWrench, "tare_wrench", foot="hand", timeout=0.2)
    assert "no foot 'hand': there are l_sole, r_sole" in unknown.message

    scenario.play(q, np.array([0.0, 1.0]), offset=offset)
    tared = scenario.call(srv.TareWrench, "tare_wrench", foot="l_sole", timeout=1.0)
    assert tared.success, tared.message
    force = tared.biases[0].force
    np.testing.assert_allclose((force.x, force.y, force.z), offset[0, :3], atol=0.5)

    scenario.node.destroy_node()
    world.executor.remove_node(scenario.node)
    world.nodes.remove(scenario.node)
    scenario.node = world.start(ComIdentification, **scenario.parameters)
    answer = scenario.capture(q, both, offset=offset)
    assert answer.success, answer.message
    assert answer.posture.mass == pytest.approx(scenario.robot.model.mass, abs=0.1)


def test_a_foot_that_carries_all_is_tared_by_the_model(scenario):
    offset = np.array([[2.0, -1.0, 5.0, 0.1, 0.2, -0.1], np.zeros(6)])
    q, both = POSTURE
    scenario.play(q, both, offset=offset)
    shared = scenario.call(
        srv.TareWrench, "tare_wrench", foot="l_sole", single_support=True, timeout=0.2
    )
    assert "r_sole carries too" in shared.message
    scenario.play(q, np.array([1.0, 0.0]), offset=offset)
    tared = scenario.call(
        srv.TareWrench, "tare_wrench", foot="l_sole", single_support=True, timeout=1.0
    )
    assert tared.success, tared.message
    force, moment = tared.biases[0].force, tared.biases[0].torque
    np.testing.assert_allclose((force.x, force.y, force.z), offset[0, :3], atol=0.5)
    np.testing.assert_allclose(  # the URDF's CoM is trusted, which is off by some millimetres
        (moment.x, moment.y, moment.z), offset[0, 3:], atol=0.005 * 18.6 * 9.81
    )
    cleared = scenario.call(srv.TareWrench, "tare_wrench", clear=True)
    assert cleared.feet == ["l_sole", "r_sole"]


def test_the_model_is_checked_at_rest(world, robot, tmp_path):
    shapes = world.collect(MarkerArray, "identification/markers")
    scenario = Scenario(world, robot, tmp_path, com_tolerance=0.0005, capture__timeout=2.0)
    scenario.play_until(
        lambda: any(c.verdict == ModelCheck.WRONG_COM for c in scenario.checks), "verdict"
    )
    check = next(c for c in scenario.checks if c.verdict == ModelCheck.WRONG_COM)
    assert check.mass == pytest.approx(scenario.robot.model.mass, abs=0.05)
    assert math.isnan(check.tilt)

    def seen():
        return {marker.ns for array in shapes for marker in array.markers}

    scenario.play_until(lambda: seen() >= {"model_com", "measured_com_line"}, "markers")
    world.spin_until(lambda: scenario.checks[-1].verdict == ModelCheck.UNKNOWN, "silence is told")
    assert math.isnan(scenario.checks[-1].mass)


@pytest.mark.parametrize(
    ("tilt", "verdict"), [(0.0, ModelCheck.CONSISTENT), (0.03, ModelCheck.WRONG_TILT)]
)
def test_the_imu_says_what_tilt_explains(world, robot, tmp_path, tilt, verdict):
    scenario = Scenario(world, robot, tmp_path, fit__use_imu=True, com_tolerance=0.008)
    scenario.imu_tilt = tilt
    answer = scenario.capture(*POSTURE)
    assert answer.success, answer.message
    up = vector3_to_numpy(answer.posture.up)
    R_root_sole, _ = robot.frame(POSTURE[0], "l_sole")
    np.testing.assert_allclose(R_root_sole.T @ up, [0.0, math.sin(tilt), math.cos(tilt)], atol=1e-3)
    scenario.play_until(lambda: any(c.verdict for c in scenario.checks), "verdict")
    check = next(c for c in scenario.checks if c.verdict)
    assert check.verdict == verdict, check.reason
    assert check.tilt == pytest.approx(tilt, abs=1e-3)
    _, p_root_sole = robot.frame(POSTURE[0], "l_sole")
    height = (R_root_sole.T @ (robot.com(POSTURE[0], robot.model.xml) - p_root_sole))[2]
    assert abs(check.tilt_part.y) == pytest.approx(tilt * height, rel=0.02, abs=1e-4)


def test_without_imu_nothing_is_captured_that_needs_it(world, robot, tmp_path):
    scenario = Scenario(world, robot, tmp_path, fit__use_imu=True)
    answer = scenario.capture(*POSTURE)
    assert not answer.success
    assert "IMU" in answer.message


def test_a_directory_that_cannot_be_written_is_named(world, robot, tmp_path):
    (tmp_path / "file").write_text("no directory")
    scenario = Scenario(world, robot, tmp_path, storage_directory=str(tmp_path / "file"))
    answer = scenario.capture(*POSTURE)
    assert not answer.success
    assert f"{tmp_path}/file/postures.jsonl cannot be opened" in answer.message
    (tmp_path / "file").unlink()
    assert scenario.capture(*POSTURE).success  # as soon as it can


def test_diagnostics_report_what_is_wrong(world, robot, tmp_path):
    health = world.collect(DiagnosticArray, "/diagnostics")
    scenario = Scenario(world, robot, tmp_path, com_tolerance=0.0005)
    world.spin_until(lambda: len(health) > 1, "diagnostics")
    status = health[-1].status[0]
    assert (status.name, status.level) == (
        "com_identification: identification",
        DiagnosticStatus.WARN,
    )
    assert "start the robot's drivers" in status.message

    def seen():
        return [a.status[0] for a in health if "WRONG_COM" in str(a.status[0])]

    scenario.play_until(seen, "verdict")
    off = seen()
    assert off[0].level == DiagnosticStatus.WARN
    assert off[0].hardware_id == "biped3"
    values = {item.key: item.value for item in off[0].values}
    assert values["model_mass_kg"] == "18.6"
    assert float(values["model_com_error_mm"]) > 0.5


def test_auto_capture_takes_each_posture_once(world, robot, tmp_path):
    scenario = Scenario(world, robot, tmp_path, auto_capture=True, end_of_stream=1.0)
    for _ in range(3):
        scenario.play(*robot.random_posture())
    world.spin_until(lambda: scenario.state[-1].postures == 3, "three postures")
    stored = scenario.call(srv.GetPostures, "get_postures").postures
    stamps = [stamp_to_ns(posture.header.stamp) for posture in stored]
    assert np.diff(stamps).min() > 0.5e9
    assert 10**12 < stamps[0] < stamps[-1] <= scenario.time_ns  # the stamps' time, not the clock's


def test_a_second_node_on_the_same_file_says_so(scenario, world):
    second = world.start(ComIdentification, namespace="second", **scenario.parameters)
    client = world.node.create_client(srv.GetPostures, "second/com_identification/get_postures")
    world.spin_until(client.service_is_ready, "the service")
    answer = client.call_async(srv.GetPostures.Request())
    world.spin_until(answer.done, "the answer")
    assert not answer.result().success
    assert "in use by another process" in answer.result().message
    assert second.get_name() == "com_identification"


def test_without_directories_nothing_is_written(world, robot, tmp_path):
    scenario = Scenario(world, robot, tmp_path, storage_directory="", export_directory="")
    answer = scenario.capture()
    assert not answer.success
    assert "set the parameter storage_directory" in answer.message
    written = scenario.call(srv.ExportUrdf, "export_urdf")
    assert "set the parameter export_directory" in written.message
    assert [path.name for path in tmp_path.iterdir()] == ["export"]


def test_without_a_description_services_say_so(world, robot, tmp_path):
    scenario = Scenario(world, robot, tmp_path, robot_description="")
    for kind, name in ((srv.GetPostures, "get_postures"), (srv.IdentifyLinks, "identify_links")):
        answer = scenario.call(kind, name)
        assert not answer.success
        assert "no robot_description yet" in answer.message


def test_without_feet_the_node_does_not_start(world, tmp_path):
    path = tmp_path / "robot.yaml"
    path.write_text("name: robot\n")
    with pytest.raises(ParameterError, match="give it feet with force sensors"):
        world.start(ComIdentification, robot_config=str(path))
    with pytest.raises(ParameterError, match="give the path of the robot's configuration"):
        world.start(ComIdentification)


def test_joint_states_of_others_do_no_harm(scenario):
    scenario.world.send("joint_states", JointState(name=["gripper"], position=[0.1]))
    scenario.world.send("joint_states", JointState(name=["l_knee"], position=[]))
    assert scenario.capture().success


def test_broken_messages_do_no_harm(world, robot, tmp_path):
    scenario = Scenario(world, robot, tmp_path, fit__use_imu=True)
    rng = np.random.default_rng(5)
    odd = [math.nan, math.inf, -math.inf, 1e308, -1e308, 0.0, 1.0]
    names = list(robot.model.joint_names)
    stamps = [0, 1, 10**12, 2 * 10**18, 10**9]
    for _ in range(300):
        stamp = ns_to_stamp(int(rng.choice(stamps)) + int(rng.integers(10**9)))
        count = int(rng.integers(6))
        joints = JointState(name=[*names, "l_knee"][:count], position=rng.choice(odd, count))
        joints.effort = rng.choice(odd, int(rng.integers(6)))
        wrench = WrenchStamped(wrench=numpy_to_wrench(rng.choice(odd, 6)))
        x, y, z, w = rng.choice(odd, 4)
        imu = Imu(orientation=Quaternion(x=x, y=y, z=z, w=w))
        imu.linear_acceleration.x = float(rng.choice(odd))
        foot = robot.config.feet[int(rng.integers(2))]
        for topic, msg in (("joint_states", joints), (foot.wrench_topic, wrench), ("imu", imu)):
            msg.header.stamp = stamp
            scenario.world.send(topic, msg)
        for _ in range(6):  # all of them, and timers
            world.executor.spin_once(timeout_sec=0.0)
    world.spin_for(1.0)
    assert scenario.state[-1].reasons
    scenario.imu_tilt, scenario.time_ns = 0.0, 21 * 10**17  # newer than all of that
    answer = scenario.capture(*POSTURE, count=150)
    assert answer.success, answer.message
