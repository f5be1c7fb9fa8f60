"""Blocks of readings that com_identification hands to the recorder."""

import numpy as np
import pytest
from geometry_msgs.msg import Quaternion, Vector3, WrenchStamped
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import Imu, JointState

from com_identification.nodes.identification_session import SensorBuffer
from com_model.dynamics.link_frames import LinkFrames
from com_ros.conversions import numpy_to_quaternion, numpy_to_wrench
from com_ros.joint_input import JointInput


class Recorder:
    """Stores what it gets."""

    def __init__(self):
        self.given = []

    def add_joints(self, t, Q, effort):
        self.given.append(("joints", t.tolist(), Q.tolist(), effort.tolist()))

    def add_wrenches(self, foot, t, W):
        self.given.append((foot, t.tolist(), W.tolist()))

    def add_up(self, t, up):
        self.given.append(("up", t.tolist(), up))


@pytest.fixture
def buffer(make_standing_robot):
    robot = make_standing_robot("biped3")
    model = robot.model
    recorder = Recorder()
    imu = LinkFrames(model, ["l_sole"])
    return SensorBuffer(recorder, 2, imu), recorder, robot


def joints(model, position, time_ns, effort=()):
    names = list(model.joint_names)[::-1]
    msg = JointState(name=names, position=position[::-1], effort=effort)
    return JointInput(model.joint_names, 0.5).update(msg, time_ns)


def test_blocks_in_the_order_of_the_model(buffer):
    buffer, recorder, robot = buffer
    buffer.hand_over()
    assert recorder.given == []
    buffer.add_joints(joints(robot.model, [1.0, 2.0, 3.0, 4.0], 10))
    buffer.add_joints(joints(robot.model, [1.0] * 4, 20, [4.0, 3.0, 2.0, 1.0]))
    buffer.add_wrench(WrenchStamped(wrench=numpy_to_wrench(np.arange(6.0))), 15, 1)
    buffer.hand_over()
    (kind, times, Q, effort), (foot, stamps, W) = recorder.given
    assert (kind, times, Q) == ("joints", [10, 20], [[1.0, 2.0, 3.0, 4.0], [1.0] * 4])
    assert np.isnan(effort[0]).all()
    assert effort[1] == [1.0, 2.0, 3.0, 4.0]
    assert (foot, stamps, W) == (1, [15], [list(range(6))])
    assert buffer.newest_ns == 20
    buffer.hand_over()
    assert len(recorder.given) == 2


def test_joints_that_are_missing_are_a_problem_until_they_come(buffer):
    buffer, recorder, robot = buffer
    part = JointState(name=["l_knee"], position=[0.1])
    buffer.add_joints(JointInput(robot.model.joint_names, 0.5).update(part, 10))
    assert "lacks 3 of 4 joints" in buffer.problem
    buffer.add_joints(joints(robot.model, [0.0] * 4, 20))
    assert buffer.problem == ""
    buffer.hand_over()
    assert [item[1] for item in recorder.given] == [[20]]


def test_up_comes_from_the_orientation_else_from_the_accelerometer(buffer):
    buffer, recorder, robot = buffer
    q = np.array([0.3, -0.2, 0.1, 0.4])
    buffer.add_joints(joints(robot.model, q.tolist(), 10))
    orientation = numpy_to_quaternion(
        Rotation.from_euler("xyz", (0.1, -0.2, 0.5)).as_quat()
    )
    buffer.add_imu(Imu(orientation=orientation), 10)
    without = Imu(linear_acceleration=Vector3(x=1.0, y=2.0, z=9.0))
    without.orientation_covariance[0] = -1.0
    buffer.add_imu(without, 20)
    nothing = Imu(orientation=Quaternion(x=0.0, y=0.0, z=0.0, w=0.0))
    buffer.add_imu(nothing, 30)
    buffer.hand_over()
    kind, times, ups = recorder.given[-1]
    assert (kind, times) == ("up", [10, 20, 30])
    R_root_imu, _ = robot.frame(q, "l_sole")
    x, y = np.sin(-0.2), np.sin(0.1) * np.cos(-0.2)
    up_imu = np.array([-x, y, np.cos(0.1) * np.cos(-0.2)])
    np.testing.assert_allclose(ups[0], R_root_imu @ up_imu, atol=1e-12)
    np.testing.assert_allclose(ups[1], R_root_imu @ [1, 2, 9] / np.sqrt(86), atol=1e-12)
    assert np.isnan(ups[2]).all()


def test_time_goes_on_without_messages(buffer, monkeypatch):
    buffer, _, robot = buffer
    clock = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    assert buffer.now_ns is None
    buffer.add_joints(joints(robot.model, [0.0] * 4, 10**12))
    buffer.hand_over()
    clock[0] += 2.0
    assert buffer.now_ns == 10**12 + 2 * 10**9
    buffer.add_joints(joints(robot.model, [0.0] * 4, 10**12 + 1))
    buffer.hand_over()  # a recording that is played slowly
    assert buffer.now_ns == 10**12 + 1
