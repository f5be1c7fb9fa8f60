"""humanoid_com_estimator over DDS: CoM, diagnosis, frozen inputs, fall warning."""

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import WrenchStamped
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import Imu, JointState
from shipped_robot import shipped_robot
from std_msgs.msg import Bool

from com_estimation.nodes.humanoid_com_estimator import HumanoidComEstimator
from com_model import Sesc
from com_model.dynamics import GRAVITY
from com_model.dynamics.kinematics import link_pose
from com_msgs.msg import CenterOfMass, CentroidalDiagnosis
from com_ros.conversions import (
    ns_to_stamp,
    numpy_to_joint_state,
    numpy_to_wrench,
    rotation_to_quaternion,
    stamp_to_ns,
)
from com_ros.qos import LATCHED

PERIOD_NS = 5_000_000


class Robot:
    """HOAP-2's drivers; it stands with its CoM where the model has it."""

    def __init__(self, world) -> None:
        self.world, self.robot = world, shipped_robot("hoap2")
        model, q = self.robot.model, self.robot.posture
        soles = [link_pose(model, q, foot.frame) for foot in self.robot.config.feet]
        self.R = soles[0][0].T
        R_root_imu = link_pose(model, q, self.robot.config.imu_link)[0]
        self.R_imu = self.R @ R_root_imu
        com = self.R @ (Sesc(model).com(q) - np.mean([p for _, p in soles], axis=0))
        force = 0.5 * model.mass * GRAVITY
        self.wrench = np.array([0.0, 0.0, force, force * com[1], -force * com[0], 0.0])
        self.time_ns, self.sent, self.measured = 10**12, 0, 0
        self.com = world.collect(CenterOfMass, "com_corrected")
        self.node: HumanoidComEstimator

    def send(
        self,
        count: int,
        sign: float = 1.0,
        tilt: float = 0.0,
        copies: int = 1,
        period_ns: int = PERIOD_NS,
        answered: bool = True,
        with_imu: bool = True,
        with_joints: bool = True,
    ) -> None:
        turn = Rotation.from_rotvec([0.0, tilt, 0.0]).as_matrix()
        for _ in range(count):
            self.time_ns += period_ns
            stamp: Time = ns_to_stamp(self.time_ns)
            names = list(self.robot.model.joint_names)
            joints = numpy_to_joint_state(names, self.robot.posture, stamp=stamp)
            for _ in range(copies if with_joints else 0):
                self.world.send("joint_states", joints)
            imu = Imu()
            imu.header.stamp = stamp
            imu.orientation = rotation_to_quaternion(turn @ self.R_imu)
            if with_imu:
                self.world.send("imu", imu)
            for foot in self.robot.config.feet:
                msg = WrenchStamped(wrench=numpy_to_wrench(sign * self.wrench))
                msg.header.stamp = stamp
                self.world.send(foot.wrench_topic, msg)
            if not answered:
                self.world.spin_for(0.002)
                continue
            self.sent += 1
            # On a busy machine they come too late to be used.
            self.world.spin_until(self.wrenches_are_there, "wrenches")
            if not self.com:  # it measures the rate, and loads its kernels
                assert self.sent < 400, "no com_corrected"
                self.measured = self.sent
                self.world.spin_for(0.01)
                continue
            self.world.spin_until(
                lambda: len(self.com) >= self.sent - self.measured - 3, "com_corrected"
            )

    def wrenches_are_there(self) -> bool:
        return all(w and w[-1][0] >= self.time_ns for w in self.node._wrenches)

    def send_until(self, condition, what: str, **sample) -> None:
        """Samples until a condition holds: what windows say shows in a sample after them."""
        for _ in range(400):
            if condition():
                return
            self.send(1, **sample)
            self.world.spin_for(0.005)
        pytest.fail(f"in vain sent until {what}")


@pytest.fixture
def robot(world):
    robot = Robot(world)
    robot.node = world.start(HumanoidComEstimator, **robot.robot.parameters)
    for topic, kind in (("joint_states", JointState), ("imu", Imu)):
        world.publisher(kind, topic)
    for foot in robot.robot.config.feet:
        world.publisher(WrenchStamped, foot.wrench_topic)
    return robot


def test_com_diagnosis_and_frozen_inputs(world, robot) -> None:
    com = robot.com
    diagnosis = world.collect(CentroidalDiagnosis, "diagnosis")
    warnings = world.collect(Bool, "fall_warning", LATCHED)
    robot.send(400)
    world.spin_until(lambda: any(m.window_count >= 10 for m in diagnosis), "windows")
    robot.send_until(
        lambda: com[-1].status == CenterOfMass.STATUS_OK, "com_corrected is OK"
    )
    assert (
        PERIOD_NS <= robot.time_ns - stamp_to_ns(com[-1].header.stamp) <= 20 * PERIOD_NS
    )
    expected = Sesc(robot.robot.model).com(robot.robot.posture)
    found = com[-1].position
    np.testing.assert_allclose([found.x, found.y, found.z], expected, atol=0.003)
    last = diagnosis[-1]
    assert last.mode == CentroidalDiagnosis.MODE_STANDING
    assert not [c.name for c in last.culprits if c.named]
    assert last.margin > 0.0
    assert last.header.frame_id == "base_link"

    robot.node._backlogs[0].problem = "the node cannot keep up"
    robot.send_until(lambda: com[-1].reason == "the node cannot keep up", "it says so")
    assert com[-1].status == CenterOfMass.STATUS_DEGRADED
    robot.node._backlogs[0].problem = ""

    robot.send(60, sign=-1.0)
    world.spin_until(
        lambda: diagnosis[-1].mode == CentroidalDiagnosis.MODE_FROZEN, "it freezes"
    )
    assert "check the signs" in diagnosis[-1].reason
    assert com[-1].status == CenterOfMass.STATUS_DEGRADED
    assert not any(m.data for m in warnings)


def test_while_the_imu_is_silent_for_a_moment_there_is_no_com(world, robot) -> None:
    diagnosis = world.collect(CentroidalDiagnosis, "diagnosis")
    robot.send(200)
    robot.send(30, with_imu=False)  # less than imu_timeout
    robot.send(50)
    frozen = CentroidalDiagnosis.MODE_FROZEN
    world.spin_until(lambda: any(m.mode == frozen for m in diagnosis), "it freezes")
    assert "the imu gives no orientation" in next(
        m.reason for m in diagnosis if m.mode == frozen
    )
    unknown = [m for m in robot.com if "the imu gives no orientation" in m.reason]
    assert {m.status for m in unknown} >= {CenterOfMass.STATUS_UNKNOWN}
    assert all(np.isnan(m.position.x) for m in unknown if not m.status)


def test_wrenches_are_not_missing_because_joint_states_were_silent(
    world, robot
) -> None:
    diagnosis = world.collect(CentroidalDiagnosis, "diagnosis")
    robot.send(200)
    robot.send(200, with_joints=False, answered=False)
    before = len(robot.com)
    for _ in range(50):
        robot.send(1, answered=False)
        world.spin_for(0.005)
    world.spin_until(lambda: len(robot.com) > before + 20, "com_corrected")
    reasons = [m.reason for m in (*robot.com, *diagnosis)]
    assert not [reason for reason in reasons if "wrench" in reason]


def test_joint_states_that_come_twice_count_once(world, robot) -> None:
    diagnosis = world.collect(CentroidalDiagnosis, "diagnosis")
    robot.send(300, copies=2)
    robot.send_until(
        lambda: any(m.window_count >= 3 for m in diagnosis), "windows", copies=2
    )
    assert diagnosis[-1].mode == CentroidalDiagnosis.MODE_STANDING
    times = [stamp_to_ns(m.header.stamp) for m in robot.com]
    assert len(set(times)) == len(times)


def test_drivers_that_are_too_slow_are_named(world, robot) -> None:
    found = world.collect(DiagnosticArray, "/diagnostics")
    robot.send(60, period_ns=20_000_000, answered=False)
    reason = "50 Hz, expected 95 Hz"
    world.spin_until(
        lambda: any(reason in status.message for m in found for status in m.status),
        reason,
    )
    assert not robot.com
    robot.send(200)


def test_fall_warning(world, robot) -> None:
    warnings = world.collect(Bool, "fall_warning", LATCHED)
    diagnosis = world.collect(CentroidalDiagnosis, "diagnosis")
    robot.send(150)
    robot.send_until(lambda: any(m.window_count for m in diagnosis), "windows")
    for k in range(60):
        robot.send(1, tilt=0.003 * k)
    robot.send_until(lambda: any(m.data for m in warnings), "fall_warning", tilt=0.18)
    modes = {CentroidalDiagnosis.MODE_FALLING, CentroidalDiagnosis.MODE_FROZEN}
    world.spin_until(lambda: diagnosis[-1].mode in modes, "estimates are frozen")
    robot.send_until(lambda: not warnings[-1].data, "the warning is over", tilt=1.2)
    found = world.collect(DiagnosticArray, "/diagnostics")

    def told():
        return [
            s.message
            for m in found
            for s in m.status
            if "fall warning: DCM" in s.message
        ]

    robot.send_until(told, "diagnostics say why", tilt=1.2)
    robot.node._reset()
    found.clear()
    world.spin_until(lambda: found, "diagnostics")
    assert not told()
