"""Finds the mass and the centre of mass of a quadruped's trunk while it trots.

Subscribes:
    robot_description (std_msgs/String, latched): the URDF; a new one replaces the model.
    joint_states (sensor_msgs/JointState): with effort; matched by name.
    imu (sensor_msgs/Imu): angular velocity, specific force and orientation; each joint_states is
        paired with the reading of its stamp.
    <foot>/wrench (geometry_msgs/WrenchStamped): only with ground_reaction "sensor".
    gait/stance (com_msgs/GaitPhase), optional: which legs should stand.

Publishes, with the stamp of the joint_states message, at most at publish_rate_hz:
    trunk_com (com_msgs/TrunkCom): also when nothing is known, with the reason.
    ground_reaction (com_msgs/GroundReaction)
    robot_description_corrected (std_msgs/String, latched): only with publish_corrected.

Publishes at display_rate_hz: trunk_com/markers and /tf; at 1 Hz: /diagnostics.

Services:
    ~/reset (std_srvs/Trigger): forget all that was estimated.

Parameters: see trot_parameters.Parameters.
"""

import sys
import time
from functools import partial
from typing import Any

from builtin_interfaces.msg import Time
from geometry_msgs.msg import WrenchStamped
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from sensor_msgs.msg import Imu, JointState
from std_srvs.srv import Trigger

from com_estimation.nodes.trunk_display import TrotDisplay
from com_estimation.nodes.trunk_input import Pair, StampedJoints, TrotInput, feet_of_legs
from com_estimation.nodes.trunk_output import CorrectedDescription, TrotOutput
from com_estimation.nodes.trunk_parameters import Parameters
from com_estimation.nodes.trunk_robot import (
    EstimatorFactory,
    TrotRobot,
    make_estimator,
    make_robot,
)
from com_estimation.trunk.health import with_problems
from com_estimation.trunk.interface import Status, TrunkEstimate, unknown_estimate
from com_estimation.trunk.problems import Problem, Severity
from com_model import RobotConfig, RobotModel
from com_msgs.msg import GaitPhase
from com_ros import diagnostics, qos
from com_ros.conversions import NS_PER_S
from com_ros.exceptions import ParameterError
from com_ros.imu_input import imu_to_values
from com_ros.input_watch import InputWatch, sample_time_ns
from com_ros.main import make_fast_executor, run
from com_ros.parameters import declare
from com_ros.robot_description import RobotDescription
from com_ros.throttle import ThrottledLog

DEPTH = 500  # messages that may wait: 0.5 s at 1 kHz


class TrunkEstimatorNode(Node):
    """The node; see the module's text.

    Args:
        estimator: makes the estimator of a model.
        options: passed on to rclpy's Node (namespace, parameter_overrides, context).
    """

    def __init__(self, estimator: EstimatorFactory = make_estimator, **options: Any) -> None:
        super().__init__("trunk_estimator", **options)
        self._settings = p = declare(self, Parameters)
        self._make_estimator = estimator
        self._config = _config(p)
        feet = feet_of_legs(self._config)
        p.assumed()
        self._log = ThrottledLog(self.get_logger())

        self._robot: TrotRobot | None = None
        self._input = TrotInput(p, feet)
        self._watch = InputWatch(p.joint_timeout)
        self._rate = diagnostics.RateMeter()
        self._estimate, self._stamp = unknown_estimate(0.0, "no joint_states yet"), Time()
        self._to_display = False

        self._output = TrotOutput(self, p)
        self._display = TrotDisplay(self, p.frame_prefix)
        self._diagnostics = diagnostics.Diagnostics(self, "trunk's centre of mass")
        self._corrected = CorrectedDescription(self, p, self._log) if p.publish_corrected else None

        self._description = RobotDescription(self, self._use_model, p.robot_description, self._log)
        stream = qos.stream(DEPTH)
        self._joint_states = self.create_subscription(
            JointState, "joint_states", self._on_joint_states, stream
        )
        self.create_subscription(Imu, "imu", self._on_imu, stream)
        if self._input.uses_wrenches:
            for index, foot in enumerate(feet):
                callback = partial(self._on_wrench, index)
                self.create_subscription(WrenchStamped, foot.wrench_topic, callback, stream)
        self.create_subscription(GaitPhase, "gait/stance", self._on_gait, stream)
        self.create_service(Trigger, "~/reset", self._on_reset)

        steady = Clock(clock_type=ClockType.STEADY_TIME)  # goes on when simulated time stands
        if p.display_rate_hz > 0.0:
            self.create_timer(1.0 / p.display_rate_hz, self._on_display, clock=steady)
        self.create_timer(min(p.joint_timeout / 4.0, 0.25), self._on_watch, clock=steady)
        self.create_timer(1.0, self._on_diagnostics, clock=steady)

    def _use_model(self, model: RobotModel) -> None:
        """Make what belongs to a new model; raises when it does not fit the configuration."""
        robot = make_robot(model, self._config, self._settings, self._make_estimator)
        self._input.use(robot)
        self._robot, self._to_display = robot, False
        if self._corrected is not None:
            self._corrected.forget()

    # --- inputs ------------------------------------------------------------------------------
    def _on_joint_states(self, msg: JointState) -> None:
        time_ns = sample_time_ns(msg.header.stamp, self.get_clock())
        if self._robot is None:
            self._watch.received()
            waiting = unknown_estimate(time_ns / NS_PER_S, self._description.waiting)
            self._publish(waiting, msg.header.stamp)
            return
        joints = self._robot.joints.update(msg, time_ns)
        if joints is None:
            return
        self._watch.received()
        self._rate.add(self.get_clock().now().nanoseconds - time_ns)
        if joints.error:
            problem = Problem(Severity.HOLD, joints.error)
            held = self._robot.pipeline.hold(time_ns / NS_PER_S, problem)
            self._publish(held, msg.header.stamp)
            return
        stamped = StampedJoints(joints, msg.header.stamp)
        for pair in self._input.pairing.add_joints(time_ns, stamped):
            self._process(pair)

    def _on_imu(self, msg: Imu) -> None:
        time_ns = sample_time_ns(msg.header.stamp, self.get_clock())
        for pair in self._input.pairing.add_imu(time_ns, imu_to_values(msg)):
            self._process(pair)

    def _on_wrench(self, index: int, msg: WrenchStamped) -> None:
        time_ns = sample_time_ns(msg.header.stamp, self.get_clock())
        self._input.wrenches.update(index, msg, time_ns)

    def _on_gait(self, msg: GaitPhase) -> None:
        time_ns = sample_time_ns(msg.header.stamp, self.get_clock())
        self._input.set_gait(msg, time_ns)

    def _process(self, pair: Pair) -> None:
        """One instant: joints and IMU."""
        if self._robot is None:
            return
        sample, problems = self._input.sample(pair)
        estimate = self._robot.pipeline.update(sample, problems)
        self._publish(estimate, pair.joints.stamp)
        if self._corrected is not None and estimate is not None:
            self._corrected.update(estimate, self._robot.model)

    def _on_reset(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Service ~/reset."""
        response.success = self._robot is not None
        response.message = self._description.waiting or "estimating anew"
        if self._robot is not None:
            self._robot.pipeline.reset()
            self._estimate = self._robot.pipeline.estimate
            self._to_display = False
        return response

    # --- outputs -----------------------------------------------------------------------------
    def _publish(self, estimate: TrunkEstimate | None, stamp: Time) -> None:
        if estimate is None:
            return
        self._output.publish(estimate, self._robot, stamp)
        self._estimate, self._stamp, self._to_display = estimate, stamp, True
        if estimate.status in (Status.UNKNOWN, Status.DEGRADED) and self._robot is not None:
            name = estimate.status.name
            self._log.warn(name, f"trunk_com is {name}: {estimate.reason}")

    def _on_display(self) -> None:
        if self._to_display and self._robot is not None:
            self._display.show(self._estimate, self._robot, self._stamp)
            self._to_display = False

    def _on_watch(self) -> None:
        """Name what is missing; say once when joint_states fall silent."""
        self._description.warn_while_waiting()
        topic = self._joint_states.topic_name
        if self._watch.timed_out():
            self._publish_silence(topic)
        elif self._watch.stale and not self._watch.ever_received:
            self._log.warn(
                "joint_states",
                f"no joint_states yet on {topic}: start the robot's driver or its "
                "joint_state_broadcaster, or remap the topic",
            )

    def _publish_silence(self, topic: str) -> None:
        for pair in self._input.pairing.flush():
            self._process(pair)
        text = f"{topic} silent for {self._watch.age_s:.2f} s: check its driver"
        silent = with_problems(self._estimate, [Problem(Severity.HOLD, text)])
        self._publish(silent, self._stamp)

    def _on_diagnostics(self) -> None:
        estimate, robot = self._estimate, self._robot
        level, text = _LEVELS[estimate.status], estimate.reason or "the trunk is known"
        values: dict[str, object] = {
            **self._rate.take(time.monotonic_ns()),
            "status": estimate.status.name,
            "reason": estimate.reason,
            "method": self._settings.method,
            "imu_age_ms": 1e3 * self._input.imu_age_s,
            "mass_kg": estimate.mass,
            "mass_deviation_kg": estimate.mass_std,
        }
        if robot is not None:
            values |= {
                "model": robot.model.name,
                "samples": robot.pipeline.seen,
                "samples_held_back": robot.pipeline.held,
                "restarts": robot.pipeline.restarts,
            }
        self._diagnostics.publish(level, text, values, str(values.get("model", "")))


_LEVELS = {
    Status.UNKNOWN: diagnostics.ERROR,
    Status.ESTIMATING: diagnostics.OK,
    Status.CONVERGED: diagnostics.OK,
    Status.DEGRADED: diagnostics.WARN,
}


def _config(p: Parameters) -> RobotConfig:
    if not p.robot_config:
        raise ParameterError(
            "robot_config", "", "give the path of the robot's YAML, with side and end of its feet"
        )
    return RobotConfig.from_file(p.robot_config)


def main() -> int:
    """Run the node."""
    return run(TrunkEstimatorNode, make_executor=make_fast_executor)


if __name__ == "__main__":
    sys.exit(main())
