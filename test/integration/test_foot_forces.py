"""foot_forces over DDS: wrenches as a sensor would have them, and nodes that use them."""

import numpy as np
import pytest
import yaml
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import WrenchStamped
from sensor_msgs.msg import Imu
from shipped_robot import SHARE, shipped_robot

from com_estimation.nodes.foot_forces import FootForcesNode
from com_estimation.nodes.sesc_publisher import SescPublisher
from com_model.dynamics import GRAVITY
from com_model.dynamics.inverse_dynamics import Dynamics
from com_model.dynamics.kinematics import link_pose
from com_model.dynamics.link_frames import LinkFrames
from com_msgs.msg import CenterOfMass, GroundReaction
from com_ros.conversions import (
    ns_to_stamp,
    numpy_to_joint_state,
    numpy_to_vector3,
    rotation_to_quaternion,
    stamp_to_ns,
    vector3_to_numpy,
    wrench_to_numpy,
)
from com_ros.exceptions import ParameterError

PERIOD_NS = 5_000_000


class Robot:
    """HOAP-2's drivers; it stands on both feet, or only on the left one."""

    def __init__(self, world):
        self.world, self.robot = world, shipped_robot("hoap2")
        self.feet, self.time_ns = self.robot.config.feet, 10**12
        self.received = [
            world.collect(WrenchStamped, f"{foot.wrench_topic}_estimate")
            for foot in self.feet
        ]
        self.forces = world.collect(GroundReaction, "foot_forces")

    def efforts(self, share):
        """Torques (n,) where the feet carry shares of the weight below the CoM."""
        model, q = self.robot.model, self.robot.posture
        n, up = model.n_joints, np.array([0.0, 0.0, GRAVITY])
        state, root = np.array([q, np.zeros(n), np.zeros(n)]), np.zeros((3, 3))
        root[2] = up
        wrench, tau = Dynamics(model).inverse_dynamics(state, root)
        motions = LinkFrames(model, [foot.frame for foot in self.feet]).motions(q)
        for p, J, part in zip(motions.p, motions.jacobian, share, strict=True):
            own = part * wrench
            own[3:] -= np.cross(p, own[:3])
            tau -= J.T @ own
        return tau

    def send(self, count, share=(0.5, 0.5), effort=True):
        model, q = self.robot.model, self.robot.posture
        tau = self.efforts(share) if effort else ()
        R_imu = link_pose(model, q, self.robot.config.imu_link)[0]
        for _ in range(count):
            self.time_ns += PERIOD_NS
            stamp: Time = ns_to_stamp(self.time_ns)
            names = list(model.joint_names)
            joints = numpy_to_joint_state(names, q, (), tau, stamp)
            imu = Imu()
            imu.header.stamp = stamp
            imu.orientation = rotation_to_quaternion(R_imu)
            imu.linear_acceleration = numpy_to_vector3(R_imu.T @ [0.0, 0.0, GRAVITY])
            before = len(self.received[0])
            self.world.send("joint_states", joints)
            self.world.send("imu", imu)
            self.world.spin_until(
                lambda n=before: len(self.received[0]) > n, "an estimate"
            )

    def wrenches(self):
        self.world.spin_until(
            lambda: all(
                own and stamp_to_ns(own[-1].header.stamp) == self.time_ns
                for own in self.received
            )
        )
        return np.array([wrench_to_numpy(own[-1].wrench) for own in self.received])


@pytest.fixture
def robot(world):
    return Robot(world)


def test_wrenches_as_the_sensors_would_have_them(robot, world, tmp_path):
    settings = yaml.safe_load((SHARE / "config" / "hoap2.yaml").read_text())
    settings["urdf"] = str(SHARE / "urdf" / "hoap2.urdf")
    settings["feet"]["l_sole"]["wrench"]["sign"] = -1
    path = tmp_path / "robot.yaml"
    path.write_text(yaml.safe_dump(settings))
    parameters = robot.robot.parameters | {"robot_config": str(path)}
    world.start(FootForcesNode, frame_prefix="a/", **parameters)
    robot.send(60)
    weight, found = GRAVITY * robot.robot.model.mass, robot.wrenches()
    left = [foot.frame for foot in robot.feet].index("l_sole")
    for i, (foot, own) in enumerate(zip(robot.feet, robot.received, strict=True)):
        assert own[-1].header.frame_id == f"a/{foot.wrench_frame}"
        R = link_pose(robot.robot.model, robot.robot.posture, foot.wrench_frame)[0]
        sign = -1.0 if i == left else 1.0
        expected = sign * 0.5 * weight * R[2]
        np.testing.assert_allclose(found[i, :3], expected, atol=0.02 * weight)
    summary = robot.forces[-1]
    assert summary.feet == [f"a/{foot.frame}" for foot in robot.feet]
    assert summary.contact == [True, True]
    up = [vector3_to_numpy(force)[2] for force in summary.forces]
    np.testing.assert_allclose(up, 0.5 * weight, atol=0.02 * weight)
    assert all(vector3_to_numpy(std).min() > 0.0 for std in summary.force_std)


def test_missing_efforts_give_nan_and_the_reason(robot, world):
    world.start(FootForcesNode, **robot.robot.parameters)
    reports = world.collect(DiagnosticArray, "/diagnostics")
    robot.send(40, effort=False)
    assert np.isnan(robot.wrenches()).all()
    world.spin_until(
        lambda: any(
            "efforts of the legs" in status.message
            and status.level == DiagnosticStatus.ERROR
            for report in reports
            for status in report.status
        ),
        "the reason on /diagnostics",
    )
    robot.send(60)
    assert np.isfinite(robot.wrenches()).all()
    assert "restarts" in world.trigger("foot_forces/reset").message
    robot.send(1)
    assert np.isnan(robot.wrenches()).all()


def test_sesc_publisher_uses_the_estimates(robot, world):
    world.start(FootForcesNode, **robot.robot.parameters)
    states = world.collect(CenterOfMass, "com")
    world.start(SescPublisher, wrenches="estimated", **robot.robot.parameters)
    share = [float(foot.side == "left") for foot in robot.feet]
    robot.send(80, share)
    world.spin_until(
        lambda: stamp_to_ns(states[-1].header.stamp) >= robot.time_ns - PERIOD_NS
    )
    assert list(states[-1].contacts) == ["l_sole"]  # by height it were both
    known = robot.robot.config.with_wrench_topics("{}_estimate")
    assert {foot.wrench_topic for foot in known.feet} == {
        own.topic_name.lstrip("/")
        for own in world.node.subscriptions
        if own.topic_name.endswith("_estimate")
    }


def test_it_needs_a_configuration(robot, world):
    with pytest.raises(ParameterError, match="its feet and its IMU"):
        world.start(FootForcesNode, robot_description=robot.robot.model.xml)
