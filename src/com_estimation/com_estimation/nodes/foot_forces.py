"""Estimates the wrenches of the ground on the feet of a robot without force sensors there.

Subscribes:
    robot_description (std_msgs/String, latched): the URDF; a new one replaces the model.
    joint_states (sensor_msgs/JointState): with effort; matched by name.
    imu (sensor_msgs/Imu): angular velocity, specific force and orientation; each joint_states is
        paired with the reading of its stamp.

Publishes, with the stamp of the joint_states message:
    <foot>/wrench_estimate (geometry_msgs/WrenchStamped): <topic>_estimate for each wrench topic of
        robot_config, in the frame and with the sign that a sensor would have there; NaN where it is
        unknown. Other nodes use it with `wrenches: estimated`.
    foot_forces (com_msgs/GroundReaction): forces, their standard deviations, contacts of all feet.
At 1 Hz: /diagnostics.

Services:
    ~/reset (std_srvs/Trigger): restart, contacts included.

Parameters: see Parameters.
"""

from dataclasses import dataclass
from typing import Any

from geometry_msgs.msg import WrenchStamped
from std_msgs.msg import Header

from com_estimation.trunk.interface import Sample
from com_estimation.whole_body.foot_forces import (
    BANDWIDTH,
    FootForceEstimator,
    FootWrenches,
)
from com_model import RobotModel
from com_msgs.msg import GroundReaction
from com_ros import diagnostics
from com_ros.conversions import NS_PER_S, ns_to_stamp, numpy_to_vectors, numpy_to_wrench
from com_ros.diagnostics import Diagnosis
from com_ros.inputs import Paired
from com_ros.joint_input import JointSample
from com_ros.parameters import (
    AssumedJoints,
    FramePrefix,
    ImuTimeout,
    JointTimeout,
    RobotParameters,
    parameter,
)
from com_ros.qos import RESULT
from com_ros.robot_node import RobotNode


@dataclass(frozen=True)
class Parameters(RobotParameters, JointTimeout, ImuTimeout, FramePrefix, AssumedJoints):
    """Parameters of foot_forces; robot_config must give feet and IMU."""

    mass: float = parameter(
        0.0, "kg, of the robot as it was weighed; 0: the URDF's, to 8 %", (0.0, 1e4)
    )
    bandwidth: float = parameter(
        BANDWIDTH,
        "rad/s, of the low pass; wrenches are 3 / bandwidth late",
        (20.0, 2e3),
    )


class FootForcesNode(RobotNode[Parameters]):
    """ROS 2 node `foot_forces`: wrenches of the ground on the feet from torques and IMU.

    The module's docstring lists its topics and services, Parameters its parameters.

    Args:
        **options: passed on to RobotNode and rclpy's Node, such as parameter_overrides.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__("foot_forces", Parameters, subject="foot forces", **options)
        self._config = self.require_config("its feet and its IMU")
        feet, prefix = self._config.feet, self.parameters.frame_prefix
        self._publishers = [
            self.create_publisher(
                WrenchStamped, f"{foot.wrench_topic}_estimate", RESULT
            )
            for foot in feet
        ]
        self._frames = [prefix + foot.wrench_frame for foot in feet]
        self._forces = self.create_publisher(GroundReaction, "foot_forces", RESULT)
        self._summary = GroundReaction(
            method="inverse_dynamics",
            legs=["_".join(filter(None, (foot.side, foot.end))) for foot in feet],
            feet=[prefix + foot.frame for foot in feet],
        )
        self._estimator: FootForceEstimator | None = None
        self._found: FootWrenches | None = None
        self.follow_robot_description()
        # a sample waits for the IMU for 20 ms of the stamps
        self.follow_joints_with_imu(self._process, self.parameters.imu_timeout, 0.02)
        self.serve_trigger("~/reset", self._reset, "the estimation restarts")

    def use_model(self, model: RobotModel) -> None:
        """Starts with a new model.

        Args:
            model: the robot.

        Raises:
            ConfigError: robot_config does not fit it, or has no feet.
        """
        p = self.parameters
        self._estimator = FootForceEstimator(
            model, self._config, p.mass or None, p.bandwidth
        )
        self._summary.header.frame_id = p.frame_prefix + model.root_link

    def on_restart(self, jump_s: float) -> None:
        """Restarts: another recording is played, or a clock was set.

        Args:
            jump_s: s, by which the stamps have jumped.
        """
        self._reset()

    def _reset(self) -> None:
        """Service ~/reset."""
        if self._estimator is not None:
            self._estimator.reset()

    # --- inputs ------------------------------------------------------------------------------
    def _process(self, pairs: list[Paired[JointSample]]) -> None:
        """Updates and publishes the wrenches with joints and IMU of the same instants."""
        for pair in pairs:
            joints, imu = pair.joints, pair.imu
            sample = Sample(
                time=pair.time_ns / NS_PER_S,
                position=joints.position,
                effort=joints.effort,
                velocity=joints.velocity,
                angular_velocity=imu.angular_velocity,
                specific_force=imu.specific_force,
                R_world_imu=imu.R_world_imu,
            )
            found = self._estimator.update(sample) if self._estimator else None
            if found is not None:
                self._publish(found, joints.stamp_ns)

    # --- outputs -----------------------------------------------------------------------------
    def _publish(self, found: FootWrenches, stamp_ns: int) -> None:
        self._found, stamp = found, ns_to_stamp(stamp_ns)
        for i, foot in enumerate(self._config.feet):
            header = Header(stamp=stamp, frame_id=self._frames[i])
            wrench = numpy_to_wrench(foot.wrench_sign * found.wrenches[i])
            self._publishers[i].publish(WrenchStamped(header=header, wrench=wrench))
        if self._forces.get_subscription_count():
            msg = self._summary
            msg.header.stamp = stamp
            msg.forces = numpy_to_vectors(found.forces)
            msg.force_std = numpy_to_vectors(found.force_std)
            msg.contact = found.contact.tolist()
            self._forces.publish(msg)
        if found.problem:
            self.log.warn("unknown", f"foot forces are unknown: {found.problem}")

    def diagnose(self) -> Diagnosis:
        """Status for /diagnostics.

        Returns:
            ERROR while the wrenches are unknown, with the reason; loads and contacts of the feet.
        """
        found = self._found
        if self.waiting or found is None:
            text = self.waiting or "no joint_states yet"
            return Diagnosis(diagnostics.ERROR, text)
        names = [foot.frame for foot in self._config.feet]
        stands = [n for n, down in zip(names, found.contact, strict=True) if down]
        values: dict[str, object] = {"contacts": ", ".join(stands)}
        values |= {f"load_n {n}": v for n, v in zip(names, found.loads, strict=True)}
        level = diagnostics.ERROR if found.problem else diagnostics.OK
        return Diagnosis(level, found.problem or "foot forces are known", values)
