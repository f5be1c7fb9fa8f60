"""Identifies a robot's centres of mass from postures at rest; live, or fed by `ros2 bag play`.

Subscribes:
    robot_description (std_msgs/String, latched): the URDF; a new one begins anew.
    joint_states (sensor_msgs/JointState): matched by name; efforts with fit.use_effort.
    imu (sensor_msgs/Imu): only with fit.use_imu; else the ground is level.
    <foot>/wrench (geometry_msgs/WrenchStamped): the names are the configuration's.

Publishes: see com_identification_output, and /diagnostics.

Services: ~/capture_posture, ~/tare_wrench (com_identification_capture); ~/get_postures,
    ~/remove_posture, ~/reset, ~/save, ~/load, ~/export_urdf (com_identification_store);
    ~/identify_total_com (com_identification_total); ~/identify_links, ~/propose_postures, which
    are actions too (com_identification_jobs).

Parameters: see com_identification_parameters.

Time is that of the stamps, so that a recording may be played at any speed. Only time-outs of those
who wait are in real time.
"""

import com_identification.nodes.single_thread  # noqa: F401  (before anything loads numpy)

# isort: split
import sys
from functools import partial
from typing import Any

from geometry_msgs.msg import WrenchStamped
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from sensor_msgs.msg import Imu, JointState

from com_identification.capture.options import CaptureStatus
from com_identification.feet.model_check import ModelCheckResult, Verdict
from com_identification.nodes.com_identification_capture import CaptureDesk
from com_identification.nodes.com_identification_jobs import JobDesk
from com_identification.nodes.com_identification_output import IdentificationOutput
from com_identification.nodes.com_identification_parameters import Parameters, declare_settings
from com_identification.nodes.com_identification_robot import Robot, make_robot
from com_identification.nodes.com_identification_store import StoreServices
from com_identification.nodes.com_identification_total import TotalDesk
from com_model import RobotConfig, RobotModel
from com_msgs.msg import IdentificationState
from com_ros import diagnostics, qos
from com_ros.conversions import ns_to_stamp
from com_ros.exceptions import ParameterError
from com_ros.input_watch import InputWatch, sample_time_ns
from com_ros.main import make_fast_executor, run
from com_ros.parameters import declare
from com_ros.robot_description import RobotDescription
from com_ros.throttle import ThrottledLog

DEPTH = 500  # messages of a stream that may wait: 0.5 s at 1 kHz
SERVE_PERIOD = 0.05  # s, between two looks at what was heard and at who waits


class ComIdentification(Node):
    """The node; see the module's text.

    Args:
        options: passed on to rclpy's Node (namespace, parameter_overrides, context).
    """

    def __init__(self, **options: Any) -> None:
        super().__init__("com_identification", **options)
        self._p = p = declare(self, Parameters)
        self._settings = declare_settings(self, p.settings)
        self._config = _config(p)
        self._log = ThrottledLog(self.get_logger())
        self._robot: Robot | None = None
        self._check: ModelCheckResult | None = None
        self._watch = InputWatch(p.end_of_stream)

        self._output = IdentificationOutput(self)
        self._diagnostics = diagnostics.Diagnostics(self, "identification")
        self._captures = CaptureDesk(self, p, self._reasons)
        self._jobs = JobDesk(self, self._robot_now, self._why_no_robot, self._on_found)
        self._store = StoreServices(self, p, self._robot_now, self._why_no_robot, self._on_found)
        self._total = TotalDesk(self, self._robot_now, self._why_no_robot)
        self._description = RobotDescription(self, self._use_model, p.robot_description, self._log)
        self._subscribe()

        steady = Clock(clock_type=ClockType.STEADY_TIME)  # goes on when simulated time stands
        self.create_timer(SERVE_PERIOD, self._on_serve, clock=steady)
        self.create_timer(1.0 / p.state_rate_hz, self._on_state, clock=steady)
        if p.check_rate_hz > 0.0:
            self.create_timer(1.0 / p.check_rate_hz, self._on_check, clock=steady)
        self.create_timer(1.0, self._on_diagnostics, clock=steady)

    def _subscribe(self) -> None:
        stream = qos.stream(DEPTH)
        self.create_subscription(JointState, "joint_states", self._on_joint_states, stream)
        if self._settings.fit.use_imu:
            self.create_subscription(Imu, "imu", self._on_imu, stream)
        for index, foot in enumerate(self._config.feet):
            callback = partial(self._on_wrench, index)
            self.create_subscription(WrenchStamped, foot.wrench_topic, callback, stream)

    def _use_model(self, model: RobotModel) -> None:
        """Make what belongs to a new model; raises when it does not fit the configuration."""
        robot = make_robot(model, self._config, self._settings, self._p)
        self._let_go()
        self._robot = robot
        self._open()
        self._output.publish_result(robot)

    def _open(self) -> None:
        """Open the file of postures; as long as that is not possible, say why now and then."""
        robot = self._robot
        if robot is None or robot.opened is not None:
            return
        for warning in robot.try_to_open():
            self.get_logger().warning(warning)
        if robot.opened is None:
            self._log.warn("storage", f"no posture can be captured: {robot.problem}")
            return
        count = len(robot.opened.postures)
        self.get_logger().info(f"{count} postures in {robot.opened.path}")

    def _let_go(self) -> None:
        self._jobs.cancel()
        if self._robot is not None:
            self._robot.close()

    def destroy_node(self) -> None:
        """End what runs in the background and let go of the file of postures."""
        self._let_go()
        self._total.close()
        super().destroy_node()

    # --- inputs ------------------------------------------------------------------------------
    def _on_joint_states(self, msg: JointState) -> None:
        if self._robot is not None:
            time_ns = sample_time_ns(msg.header.stamp, self.get_clock())
            self._robot.readings.add_joint_states(msg, time_ns)
        self._watch.received()

    def _on_wrench(self, index: int, msg: WrenchStamped) -> None:
        if self._robot is not None:
            time_ns = sample_time_ns(msg.header.stamp, self.get_clock())
            self._robot.readings.add_wrench(index, msg, time_ns)

    def _on_imu(self, msg: Imu) -> None:
        if self._robot is not None:
            time_ns = sample_time_ns(msg.header.stamp, self.get_clock())
            self._robot.readings.add_imu(msg, time_ns)

    # --- timers ------------------------------------------------------------------------------
    def _on_serve(self) -> None:
        """Hand on what was heard; serve who waits."""
        robot = self._robot
        if robot is not None:
            robot.readings.hand_over()
            self._captures.take_finished(robot, ended=self._watch.timed_out())
            robot.describe_one()
        self._captures.serve(robot)
        self._jobs.serve()
        self._total.serve()

    def _on_state(self) -> None:
        robot = self._robot
        msg = IdentificationState(reasons=self._reasons(), capturing=self._captures.waiting)
        msg.job, msg.progress, msg.step = self._jobs.state
        if robot is not None:
            _fill_state(msg, robot)
        self._output.publish_state(msg)

    def _on_check(self) -> None:
        self._description.warn_while_waiting()
        self._open()
        robot = self._robot
        if robot is None:
            return
        self._check = robot.check.update(robot.recorder.latest(now_ns=robot.readings.now_ns))
        stamp = ns_to_stamp(robot.readings.newest_ns)
        self._output.publish_check(robot, self._check, stamp)

    def _on_diagnostics(self) -> None:
        robot, check = self._robot, self._check
        if robot is None or check is None:
            self._diagnostics.publish(diagnostics.WARN, self._why_no_robot() or "starting", {})
            return
        level, text = _health(robot, check)
        offset_mm = 1e3 * float(abs(check.model_part @ check.model_part) ** 0.5)
        values: dict[str, object] = {
            "verdict": check.verdict.name,
            "reason": check.reason,
            "model_com_off_mm": offset_mm,
            "tilt_rad": check.tilt,
            "mass_on_feet_kg": check.mass,
            "model_mass_kg": check.model_mass,
            "state": robot.recorder.state(robot.readings.now_ns).status.name,
            "postures": len(robot.opened.postures) if robot.opened is not None else 0,
            "dropped": str(robot.recorder.dropped),
            "storage": str(robot.path or ""),
        }
        self._diagnostics.publish(level, text, values, robot.model.name)

    # --- what is wrong -----------------------------------------------------------------------
    def _robot_now(self) -> Robot | None:
        return self._robot

    def _why_no_robot(self) -> str:
        return self._description.waiting

    def _reasons(self) -> list[str]:
        """Why nothing can be captured, beyond what the recorder says."""
        robot = self._robot
        if robot is None:
            return [self._why_no_robot()]
        return [text for text in (robot.problem, robot.readings.problem) if text]

    def _on_found(self) -> None:
        if self._robot is not None:
            self._output.publish_result(self._robot)


def _fill_state(msg: IdentificationState, robot: Robot) -> None:
    state = robot.recorder.state(robot.readings.now_ns)
    msg.header.stamp = ns_to_stamp(robot.readings.newest_ns)
    msg.header.frame_id = robot.frame
    msg.state = int(state.status)
    msg.reasons = list(dict.fromkeys((*msg.reasons, *state.reasons)))
    msg.samples, msg.samples_required = int(state.samples), int(state.needed)
    if robot.opened is not None:
        postures = robot.opened.postures
        msg.storage, msg.postures = str(robot.opened.path), len(postures)
        if postures:
            msg.newest = max(postures)
            msg.newest_label = postures[msg.newest].label


def _health(robot: Robot, check: ModelCheckResult) -> tuple[bytes, str]:
    state = robot.recorder.state(robot.readings.now_ns)
    if robot.problem or robot.readings.problem:
        return diagnostics.ERROR, robot.problem or robot.readings.problem
    if state.status in (CaptureStatus.UNKNOWN, CaptureStatus.WAITING, CaptureStatus.REFUSED):
        return diagnostics.WARN, " ".join(state.reasons)
    if check.verdict is Verdict.UNKNOWN:
        return diagnostics.OK, check.reason or "the robot moves"
    if check.verdict is Verdict.CONSISTENT:
        return diagnostics.OK, "the model agrees with the feet"
    return diagnostics.WARN, check.reason


def _config(p: Parameters) -> RobotConfig:
    if not p.robot_config:
        raise ParameterError(
            "robot_config", "", "give the path of the robot's YAML, with its feet and their sensors"
        )
    config = RobotConfig.from_file(p.robot_config)
    if not config.feet:
        raise ParameterError("robot_config", p.robot_config, "give it feet with force sensors")
    return config


def main() -> int:
    """Run the node."""
    return run(ComIdentification, make_executor=make_fast_executor)


if __name__ == "__main__":
    sys.exit(main())
