"""com_identification with a wrong model, missing sensors or directories, and broken messages."""

import math

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import Quaternion, WrenchStamped
from identification_bench import POSTURE, Scenario
from sensor_msgs.msg import Imu, JointState
from visualization_msgs.msg import MarkerArray

from com_identification.nodes.com_identification import ComIdentification
from com_msgs import srv
from com_msgs.msg import ModelCheck
from com_ros.conversions import (
    ns_to_stamp,
    numpy_to_wrench,
    stamp_to_ns,
    vector3_to_numpy,
)
from com_ros.exceptions import ParameterError


@pytest.fixture
def robot(make_standing_robot):
    return make_standing_robot("biped3")


@pytest.fixture
def scenario(world, robot, tmp_path):
    return Scenario(world, robot, tmp_path)


def test_the_model_is_checked_at_rest(world, robot, tmp_path):
    shapes = world.collect(MarkerArray, "identification/markers")
    scenario = Scenario(
        world, robot, tmp_path, com_tolerance=0.0005, capture__timeout=2.0
    )
    scenario.play_until(
        lambda: any(c.verdict == ModelCheck.WRONG_COM for c in scenario.checks),
        "verdict",
    )
    check = next(c for c in scenario.checks if c.verdict == ModelCheck.WRONG_COM)
    assert check.mass == pytest.approx(scenario.robot.model.mass, abs=0.05)
    assert math.isnan(check.tilt)

    def seen():
        return {marker.ns for array in shapes for marker in array.markers}

    scenario.play_until(lambda: seen() >= {"model_com", "measured_com_line"}, "markers")
    world.spin_until(
        lambda: scenario.checks[-1].verdict == ModelCheck.UNKNOWN, "silence is reported"
    )
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
    np.testing.assert_allclose(
        R_root_sole.T @ up, [0.0, math.sin(tilt), math.cos(tilt)], atol=1e-3
    )
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
    scenario = Scenario(
        world, robot, tmp_path, storage_directory=str(tmp_path / "file")
    )
    answer = scenario.capture(*POSTURE)
    assert not answer.success
    assert f"{tmp_path}/file/postures.db cannot be used" in answer.message
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
    assert (
        10**12 < stamps[0] < stamps[-1] <= scenario.time_ns
    )  # the stamps' time, not the clock's


def test_a_second_node_on_the_same_file_says_so(scenario, world):
    second = world.start(ComIdentification, namespace="second", **scenario.parameters)
    client = world.node.create_client(
        srv.GetPostures, "second/com_identification/get_postures"
    )
    world.spin_until(client.service_is_ready, "the service")
    answer = client.call_async(srv.GetPostures.Request())
    world.spin_until(answer.done, "the answer")
    assert not answer.result().success
    assert "in use by another process" in answer.result().message
    assert second.get_name() == "com_identification"


def test_without_directories_nothing_is_written(world, robot, tmp_path):
    scenario = Scenario(
        world, robot, tmp_path, storage_directory="", export_directory=""
    )
    answer = scenario.capture()
    assert not answer.success
    assert "set the parameter storage_directory" in answer.message
    written = scenario.call(srv.ExportUrdf, "export_urdf")
    assert "set the parameter export_directory" in written.message
    assert [path.name for path in tmp_path.iterdir()] == ["export"]


def test_without_a_description_services_say_so(world, robot, tmp_path):
    scenario = Scenario(world, robot, tmp_path, robot_description="")
    for kind, name in (
        (srv.GetPostures, "get_postures"),
        (srv.IdentifyLinks, "identify_links"),
    ):
        answer = scenario.call(kind, name)
        assert not answer.success
        assert "no robot_description yet" in answer.message


def test_without_feet_the_node_does_not_start(world, tmp_path):
    path = tmp_path / "robot.yaml"
    path.write_text("name: robot\n")
    with pytest.raises(ParameterError, match="give it feet with force sensors"):
        world.start(ComIdentification, robot_config=str(path))
    with pytest.raises(
        ParameterError, match="give the path of the robot's configuration"
    ):
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
        joints = JointState(
            name=[*names, "l_knee"][:count], position=rng.choice(odd, count)
        )
        joints.effort = rng.choice(odd, int(rng.integers(6)))
        wrench = WrenchStamped(wrench=numpy_to_wrench(rng.choice(odd, 6)))
        x, y, z, w = rng.choice(odd, 4)
        imu = Imu(orientation=Quaternion(x=x, y=y, z=z, w=w))
        imu.linear_acceleration.x = float(rng.choice(odd))
        foot = robot.config.feet[int(rng.integers(2))]
        for topic, msg in (
            ("joint_states", joints),
            (foot.wrench_topic, wrench),
            ("imu", imu),
        ):
            msg.header.stamp = stamp
            scenario.world.send(topic, msg)
        for _ in range(12):  # all of them, and timers
            world.executor.spin_once(timeout_sec=0.0)
    world.spin_for(1.0)
    assert scenario.state[-1].reasons
    scenario.imu_tilt, scenario.time_ns = 0.0, 21 * 10**17  # newer than all of that
    answer = scenario.capture(*POSTURE, count=150)
    assert answer.success, answer.message
