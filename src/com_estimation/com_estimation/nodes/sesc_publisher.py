"""Publishes a robot's centre of mass, its Jacobian and the chain that models it (SESC).

Subscribes:
    robot_description (std_msgs/String, latched): the URDF; a new one replaces the model.
    joint_states (sensor_msgs/JointState): matched by name; several publishers are merged.
    imu (sensor_msgs/Imu): only with use_imu; direction of gravity.
    <foot>/wrench (geometry_msgs/WrenchStamped): feet in contact; by the feet's poses as
        long as none is received. The topics' names are the configuration's.

Publishes, for each joint_states message and with its stamp:
    com (com_msgs/CenterOfMass): also when it is unknown, with the reason.
    com/point (geometry_msgs/PointStamped), com/jacobian (com_msgs/ComJacobian): when it is known
        and someone subscribes.

Publishes at display_rate_hz; at 1 Hz /diagnostics:
    com/markers (visualization_msgs/MarkerArray): CoM, projection, SESC, support polygon.
    com/support (geometry_msgs/PolygonStamped): the support polygon, when someone subscribes.
    sesc (com_msgs/SescChain): the statically equivalent serial chain.
    /tf: frames `com` and `com_projection`, parallel to the root link; /tf_static: sole frames of
        the configuration that the URDF has no link for.

Parameters: see Parameters.
"""

import math
import time
from dataclasses import dataclass
from typing import Any

from com_estimation.nodes.com_output import ComDisplay, ComOutput
from com_estimation.whole_body import com_state
from com_estimation.whole_body.com_state import Attitude, ComObserver, ComState
from com_estimation.whole_body.stance import choose_feet
from com_model import RobotModel, Status, UnknownNameError
from com_model.checks.audit import audit
from com_ros import diagnostics
from com_ros.conversions import ns_to_stamp
from com_ros.diagnostics import Diagnosis
from com_ros.exceptions import ParameterError
from com_ros.joint_input import JointSample
from com_ros.parameters import (
    AssumedJoints,
    SensorParameters,
    WrenchSource,
    live_parameter,
    parameter,
)
from com_ros.receiving_node import EVERY_SAMPLE
from com_ros.robot_node import RobotNode
from com_ros.stream import RateLimit


@dataclass(frozen=True)
class Parameters(SensorParameters, WrenchSource, AssumedJoints):
    """Parameters of sesc_publisher."""

    feet: tuple[str, ...] = parameter(
        (), "sole frames, links of the URDF; empty: those of robot_config"
    )
    use_imu: bool = parameter(
        False, "gravity's direction from imu; false: the ground is horizontal"
    )
    imu_link: str = parameter(
        "", "link that carries the IMU; empty: robot_config's, else the frame_id of imu"
    )
    publish_jacobian: bool = parameter(True, "publish com/jacobian")
    display_rate_hz: float = parameter(
        30.0, "1/s, rate of com/markers, sesc and /tf; 0: disabled", (0.0, 1000.0)
    )
    contact_force: float = live_parameter(
        5.0, "N, normal force at which a foot counts as in contact", (0.0, 1e6)
    )
    contact_tolerance: float = live_parameter(
        0.005,
        "m, height above the lowest foot up to which a foot counts as in contact if forces are "
        "unknown",
        (0.0, 1.0),
    )


class SescPublisher(RobotNode[Parameters]):
    """ROS 2 node `sesc_publisher`: publishes a robot's CoM, its Jacobian and the SESC.

    The module's docstring lists its topics, Parameters its parameters.

    Args:
        **options: passed on to RobotNode and rclpy's Node, such as parameter_overrides.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(
            "sesc_publisher", Parameters, subject="centre of mass", **options
        )
        p = self.parameters
        self._feet = choose_feet(p.feet, self.config.feet if self.config else ())
        self._observer: ComObserver | None = None
        self._model_facts: dict[str, object] = {}
        self._state, self._stamp_ns = com_state.unknown_state(""), 0
        self._to_display, self._display_rate = (
            False,
            RateLimit(p.display_rate_hz or math.inf),
        )

        self._output = ComOutput(self, p.frame_prefix, with_jacobian=p.publish_jacobian)
        self._display = ComDisplay(self, p.frame_prefix)
        self.follow_robot_description()
        self.follow_joint_states(
            self._on_joints, depth=EVERY_SAMPLE, with_problems=True
        )
        topic = self.resolve_topic_name("imu")
        self._imu = self.follow_imu(listens=p.use_imu, topic=topic)
        self._wrenches = self.follow_wrenches(self._feet)

    def use_model(self, model: RobotModel) -> None:
        """Starts with a new model: makes its observer and audits its URDF.

        Args:
            model: the robot.

        Raises:
            ParameterError: a foot is no link of the model.
        """
        p = self.parameters
        try:
            observer = ComObserver(
                model, self._feet, p.contact_tolerance, p.contact_force
            )
        except UnknownNameError as error:
            raise ParameterError(
                "feet", [foot.frame for foot in self._feet], str(error)
            ) from None
        self._model_facts, self._observer = self._audit(model), observer
        self._display.send_fixed(model.frames)
        self._to_display = False  # the last state was another model's

    def apply_parameters(self, new: Parameters) -> None:
        """Applies changed contact thresholds.

        Args:
            new: all parameters.
        """
        if self._observer is not None:
            self._observer.set_contact_thresholds(
                new.contact_tolerance, new.contact_force
            )

    def _audit(self, model: RobotModel) -> dict[str, object]:
        """Facts about a model for /diagnostics; warns of the errors of its URDF."""
        report = audit(model, meshes=False)
        errors = report.select("error")
        if errors:
            first = f"{errors[0].element}: {errors[0].message}. {errors[0].fix}"
            more = f" (and {len(errors) - 1} errors more)" if len(errors) > 1 else ""
            self.get_logger().warning(f"model '{model.name}': {first}{more}")
        return {
            "mass_kg": model.mass,
            "joints": model.n_joints,
            "feet": ", ".join(foot.frame for foot in self._feet) or "none",
            "audit_errors": len(errors),
            "audit_issues": len(report.issues),
        }

    # --- inputs ------------------------------------------------------------------------------
    def _on_joints(self, sample: JointSample) -> None:
        state = self._observe(sample)
        self._publish(state, sample.stamp_ns)
        if not state.reason or self._observer is None:
            return
        if not (self.parameters.use_imu and self._imu.settling(sample.time_ns)):
            self.log.warn(
                state.status.name, f"com is {state.status.name}: {state.reason}"
            )

    def _observe(self, sample: JointSample) -> ComState:
        if self._observer is None or sample.error:
            return com_state.unknown_state(sample.error, self._mass)
        forces, problem = self._wrenches.forces(sample.time_ns)
        warnings = (*sample.warnings, problem) if problem else sample.warnings
        attitude = self._attitude(sample.time_ns)
        return self._observer.update(
            sample.position, sample.velocity, attitude, forces, warnings
        )

    def _attitude(self, time_ns: int) -> Attitude:
        if not self.parameters.use_imu:
            return com_state.LEVEL
        reading = self._imu.reading(time_ns)
        configured = self.config.imu_link if self.config else None
        link = self.parameters.imu_link or configured or reading.frame
        R = None if reading.problem else reading.R_world_imu
        return Attitude(False, R, link, reading.problem)

    def on_joints_timeout(self, reason: str) -> None:
        """Publishes one state with the status UNKNOWN.

        Args:
            reason: why joint_states are stale, for the state and the log.
        """
        self._publish(com_state.unknown_state(reason, self._mass), self._stamp_ns)
        self.log.warn("joint_states", f"com is UNKNOWN: {reason}")

    @property
    def _mass(self) -> float:
        return float("nan") if self._observer is None else self._observer.model.mass

    # --- outputs -----------------------------------------------------------------------------
    def _publish(self, state: ComState, stamp_ns: int) -> None:
        model = None if self._observer is None else self._observer.model
        self._output.publish(state, stamp_ns, model)
        self._state, self._stamp_ns = state, stamp_ns
        self._to_display = self.parameters.display_rate_hz > 0.0
        self.watch()  # no timer at this rate: it would wake the node

    def watch(self) -> None:
        """Publishes the last state to the display, once, when the display rate allows it."""
        if not self._to_display or self._observer is None:
            return
        if self._display_rate.due(time.monotonic_ns()):
            self._display.show(self._state, self._observer, ns_to_stamp(self._stamp_ns))
            self._to_display = False

    def diagnose(self) -> Diagnosis:
        """Status for /diagnostics: that of the last state, and facts about the model.

        Returns:
            OK, WARN for a DEGRADED state or errors of the URDF, ERROR for an UNKNOWN state.
        """
        state = self._state
        level = (
            diagnostics.WARN if state.status is Status.DEGRADED else diagnostics.ERROR
        )
        text = state.reason or "no joint_states yet"
        if state.status is Status.OK:
            level, text = diagnostics.OK, "centre of mass is known"
            if self._model_facts.get("audit_errors"):
                level, text = diagnostics.WARN, "the model has errors: audit it"
        values: dict[str, object] = {
            "status": state.status.name,
            "reason": state.reason,
            "contacts": ", ".join(state.contacts),
            "support_margin_m": state.margin,
        }
        return Diagnosis(level, text, values | self._model_facts)
