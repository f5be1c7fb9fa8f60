"""Publishes a robot's true centre of mass, its Jacobian and the chain that models it (SESC).

Subscribes:
    robot_description (std_msgs/String, latched): the URDF; a new one replaces the model.
    joint_states (sensor_msgs/JointState): matched by name; several publishers are merged.
    imu (sensor_msgs/Imu): only with use_imu; direction of gravity.
    <foot>/wrench (geometry_msgs/WrenchStamped): which feet stand; as long as none is heard the
        feet's poses tell. The topics' names are the configuration's.

Publishes, for each joint_states message and with its stamp:
    com (com_msgs/CenterOfMass): also when it is not known, with the reason.
    com/point (geometry_msgs/PointStamped), com/jacobian (com_msgs/ComJacobian): when it is known.

Publishes at display_rate_hz: com/markers, sesc and /tf; at 1 Hz: /diagnostics.

Parameters: see sesc_parameters.Parameters.
"""

import sys
import time
from dataclasses import dataclass
from functools import partial
from typing import Any

from builtin_interfaces.msg import Time
from geometry_msgs.msg import WrenchStamped
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from sensor_msgs.msg import Imu, JointState

from com_estimation.nodes.com_display import ComDisplay
from com_estimation.nodes.com_output import ComOutput
from com_estimation.nodes.sesc_parameters import Parameters
from com_estimation.whole_body.com_state import (
    LEVEL,
    Attitude,
    ComObserver,
    ComState,
    Status,
    unknown_state,
)
from com_estimation.whole_body.stance import choose_feet
from com_model import RobotConfig, RobotModel, UnknownNameError
from com_model.urdf.audit import audit
from com_ros import diagnostics, qos
from com_ros.exceptions import ParameterError
from com_ros.imu_input import ImuInput
from com_ros.input_watch import InputWatch, sample_time_ns
from com_ros.joint_input import JointInput
from com_ros.main import make_fast_executor, run
from com_ros.parameters import declare
from com_ros.robot_description import RobotDescription
from com_ros.throttle import ThrottledLog
from com_ros.wrench_input import WrenchInputs

JOINT_STATES_DEPTH = 500  # messages that may wait: 0.5 s at 1 kHz


@dataclass(frozen=True)
class _Robot:
    """What belongs to one model."""

    observer: ComObserver
    joints: JointInput
    frame: str
    joint_names: list[str]
    facts: dict[str, object]


class SescPublisher(Node):
    """The node; see the module's text.

    Args:
        options: passed on to rclpy's Node (namespace, parameter_overrides, context).
    """

    def __init__(self, **options: Any) -> None:
        super().__init__("sesc_publisher", **options)
        self._settings = p = declare(self, Parameters)
        self._assumed = p.assumed()
        self._config = RobotConfig.from_file(p.robot_config) if p.robot_config else None
        self._feet = choose_feet(p.feet, self._config.feet if self._config else ())
        self._log = ThrottledLog(self.get_logger())

        self._robot: _Robot | None = None
        self._imu = ImuInput(p.imu_timeout, self.resolve_topic_name("imu"))
        self._wrenches = WrenchInputs(self._feet, p.joint_timeout)
        self._watch = InputWatch(p.joint_timeout)
        self._rate = diagnostics.RateMeter()
        self._state, self._stamp = unknown_state(""), Time()
        self._to_display = False

        self._output = ComOutput(self, with_jacobian=p.publish_jacobian)
        self._display = ComDisplay(self, p.frame_prefix)
        self._diagnostics = diagnostics.Diagnostics(self, "centre of mass")

        self._description = RobotDescription(self, self._use_model, p.robot_description, self._log)
        depth = qos.stream(JOINT_STATES_DEPTH)
        self._joint_states = self.create_subscription(
            JointState, "joint_states", self._on_joint_states, depth
        )
        if p.use_imu:
            self.create_subscription(Imu, "imu", self._on_imu, qos.stream())
        for index, foot in enumerate(self._feet):
            callback = partial(self._on_wrench, index)
            self.create_subscription(WrenchStamped, foot.wrench_topic, callback, qos.stream())

        steady = Clock(clock_type=ClockType.STEADY_TIME)  # goes on when simulated time stands
        if p.display_rate_hz > 0.0:
            self.create_timer(1.0 / p.display_rate_hz, self._on_display, clock=steady)
        self.create_timer(min(p.joint_timeout / 4.0, 0.25), self._on_watch, clock=steady)
        self.create_timer(1.0, self._on_diagnostics, clock=steady)

    def _use_model(self, model: RobotModel) -> None:
        """Make what belongs to a new model; raises when it does not fit the configuration."""
        p = self._settings
        if self._config is not None:
            self._config.check(model)
        try:
            observer = ComObserver(model, self._feet, p.contact_tolerance, p.contact_force)
        except UnknownNameError as error:
            raise ParameterError("feet", [foot.frame for foot in self._feet], str(error)) from None
        joints = JointInput(model.joint_names, p.joint_timeout, self._assumed)
        findings = audit(model)
        errors = findings.of("error")
        if errors:
            first = f"{errors[0].element}: {errors[0].message}. {errors[0].fix}"
            more = f" (and {len(errors) - 1} errors more)" if len(errors) > 1 else ""
            self.get_logger().warning(f"model '{model.name}': {first}{more}")
        facts = {
            "model": model.name,
            "mass_kg": model.mass,
            "joints": model.n_joints,
            "feet": ", ".join(foot.frame for foot in self._feet) or "none",
            "audit_errors": len(errors),
            "audit_findings": len(findings.findings),
        }
        frame = p.frame_prefix + model.root_link
        self._robot = _Robot(observer, joints, frame, list(model.joint_names), facts)
        self._to_display = False  # the last state was another model's

    # --- inputs ------------------------------------------------------------------------------
    def _on_joint_states(self, msg: JointState) -> None:
        time_ns = sample_time_ns(msg.header.stamp, self.get_clock())
        state = self._observe(msg, time_ns)
        if state is None:
            return
        self._watch.received()
        self._publish(state, msg.header.stamp)
        self._warn(state, time_ns)
        self._rate.add(self.get_clock().now().nanoseconds - time_ns)

    def _on_imu(self, msg: Imu) -> None:
        self._imu.update(msg, sample_time_ns(msg.header.stamp, self.get_clock()))

    def _on_wrench(self, index: int, msg: WrenchStamped) -> None:
        self._wrenches.update(index, msg, sample_time_ns(msg.header.stamp, self.get_clock()))

    def _observe(self, msg: JointState, time_ns: int) -> ComState | None:
        """State at a message; None when the message is about other joints than the robot's."""
        if self._robot is None:
            return unknown_state(self._description.waiting)
        sample = self._robot.joints.update(msg, time_ns)
        if sample is None:
            return None
        observer = self._robot.observer
        if sample.error:
            return unknown_state(sample.error, observer.model.mass)
        forces, problem = self._wrenches.forces(time_ns)
        warnings = (*sample.warnings, problem) if problem else sample.warnings
        attitude = self._attitude(time_ns)
        return observer.update(sample.position, sample.velocity, attitude, forces, warnings)

    def _attitude(self, time_ns: int) -> Attitude:
        if not self._settings.use_imu:
            return LEVEL
        reading = self._imu.reading(time_ns)
        configured = self._config.imu_link if self._config else None
        link = self._settings.imu_link or configured or reading.frame
        return Attitude(False, reading.R_world_imu, link, reading.problem)

    # --- outputs -----------------------------------------------------------------------------
    def _publish(self, state: ComState, stamp: Time) -> None:
        robot = self._robot
        frame, names = (robot.frame, robot.joint_names) if robot else ("", [])
        self._output.publish(state, stamp, frame, names)
        self._state, self._stamp, self._to_display = state, stamp, True

    def _warn(self, state: ComState, time_ns: int) -> None:
        """Log why the CoM is not all known; who waits for a description is told elsewhere."""
        waits = self._robot is None or (self._settings.use_imu and self._imu.settling(time_ns))
        if state.status is not Status.OK and not waits:
            self._log.warn(state.status.name, f"com is {state.status.name}: {state.reason}")

    def _on_display(self) -> None:
        if self._to_display and self._robot is not None:
            self._display.show(self._state, self._robot.observer, self._stamp)
            self._to_display = False

    def _on_watch(self) -> None:
        """Name what is missing; one UNKNOWN when joint_states fall silent."""
        self._description.warn_while_waiting()
        topic = self._joint_states.topic_name
        if self._watch.timed_out():
            reason = f"{topic} silent for {self._watch.age_s:.2f} s: check its driver"
            mass = self._robot.observer.model.mass if self._robot else float("nan")
            self._publish(unknown_state(reason, mass), self._stamp)
            self._log.warn("joint_states", f"com is UNKNOWN: {reason}")
        elif self._watch.stale and not self._watch.ever_received:
            self._log.warn(
                "joint_states",
                f"no joint_states yet on {topic}: start the robot's driver or its "
                "joint_state_broadcaster, or remap the topic",
            )

    def _on_diagnostics(self) -> None:
        state, robot = self._state, self._robot
        level = diagnostics.WARN if state.status is Status.DEGRADED else diagnostics.ERROR
        reason = state.reason or "no joint_states yet"
        if state.status is Status.OK and robot is not None:
            level, reason = diagnostics.OK, "centre of mass is known"
            if robot.facts["audit_errors"]:
                level, reason = diagnostics.WARN, "the model has errors: audit it"
        values = {
            **self._rate.take(time.monotonic_ns()),
            "status": state.status.name,
            "reason": state.reason,
            "contacts": ", ".join(state.contacts),
            "support_margin_m": state.margin,
            **(robot.facts if robot else {}),
        }
        self._diagnostics.publish(level, reason, values, str(values.get("model", "")))


def main() -> int:
    """Run the node."""
    return run(SescPublisher, make_executor=make_fast_executor)


if __name__ == "__main__":
    sys.exit(main())
