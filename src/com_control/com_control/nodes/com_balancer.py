"""Keeps the centre of mass of a standing robot at a desired position ([Cotton] Fig. 11).

Subscribes:
    robot_description (std_msgs/String, latched): the URDF, unless the parameter contains it.
    joint_states (sensor_msgs/JointState): where the joints are, and the time.
    imu (sensor_msgs/Imu): gravity, and so the slope of the ground; not with use_imu false.
    <foot>/wrench (geometry_msgs/WrenchStamped): by the configuration; which feet stand, and whether
        it falls; not with use_wrench false.
    balance/com_desired (geometry_msgs/PointStamped): the CoM in the balance frame (the middle of
        the soles, z upwards; also without any frame), or in a link's frame, which is transformed
        into the balance frame as it comes. A z of NaN leaves the height free.

Publishes, at most at rate_hz and with the stamp of the joint_states that it was computed from:
    joint_trajectory (trajectory_msgs/JointTrajectory): one point, `horizon` later, with velocities.
    balance/com_error (geometry_msgs/Vector3Stamped): CoM minus reference, balance frame.
    balance/state (com_msgs/BalanceState): state, and the reason of a hold or refusal.
    balance/markers (visualization_msgs/MarkerArray), /tf: root link -> balance; /diagnostics.

Services:
    ~/start (std_srvs/Trigger): balance, the CoM where it is or is desired; refused, with the
        reason, when the robot does not stand.
    ~/stop (std_srvs/Trigger): stop balancing; the joints stay where they are.

It holds the joints, and reports why, when imu or wrenches time out or are not finite,
and continues when they are back. When joints do not follow or report absurd positions it holds
until ~/start. It waits for a robot that does not stand yet. When the robot falls, no more commands
are sent until ~/start.

Parameters: see Parameters.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import PointStamped, Vector3Stamped
from rclpy.node import Node
from std_msgs.msg import Header

from com_control.balance.balancer import BalanceStep
from com_control.balance.demonstrations import DEMONSTRATIONS, DemonstrationPlayer
from com_control.balance.options import BalanceOptions, StandingLimits
from com_control.balance.session import (
    BalanceCommand,
    BalancePhase,
    BalanceReading,
    BalanceSession,
)
from com_control.command_guard import GuardOptions
from com_control.exceptions import BalanceError, ComControlError
from com_model import RobotConfig, RobotModel, link_pose, link_poses
from com_model.dynamics.link_frames import LinkFrames
from com_msgs.msg import BalanceState
from com_ros import diagnostics, qos
from com_ros.conversions import (
    NS_PER_S,
    Array,
    ns_to_stamp,
    numpy_to_points,
    numpy_to_vector3,
    point_to_numpy,
    stamp_to_ns,
)
from com_ros.diagnostics import Diagnosis
from com_ros.inputs import ImuInput, WrenchInputs
from com_ros.joint_input import JointSample
from com_ros.markers import BLUE, GREEN, ORANGE, RED, FramePublisher, MarkerOutput
from com_ros.parameters import SensorParameters, WrenchSource, live_parameter, parameter
from com_ros.raw_messages import TrajectoryWriter
from com_ros.receiving_node import EVERY_SAMPLE
from com_ros.robot_node import RobotNode
from com_ros.stream import RateLimit


@dataclass(frozen=True)
class Parameters(SensorParameters, WrenchSource):
    """Parameters of com_balancer; robot_config must give feet with corners."""

    control: BalanceOptions = field(default_factory=BalanceOptions)
    check: StandingLimits = field(default_factory=StandingLimits)
    guard: GuardOptions = field(default_factory=lambda: GuardOptions(0.15, 0.5))
    autostart: bool = parameter(
        False,
        "balance as soon as the robot stands, without ~/start; after a fall call it",
    )
    demonstration: str = parameter(
        "none",
        "motion of the CoM while it balances; ends with the first balance/com_desired",
        choices=DEMONSTRATIONS,
    )
    use_imu: bool = parameter(
        True, "gravity from imu; false: the ground counts as horizontal"
    )
    use_wrench: bool = parameter(True, "feet must carry; false: no sensors")
    horizon: float = parameter(
        0.01, "s, by which targets are ahead of joint_states", (0.001, 1.0)
    )
    rate_hz: float = live_parameter(
        500.0, "1/s, of joint_trajectory at most", (1.0, 2000.0)
    )
    display_rate_hz: float = live_parameter(
        20.0, "1/s, of balance/markers and tf, at most", (0.1, 200.0)
    )
    balance_frame: str = parameter(
        "balance", "name of the frame in the middle of the soles"
    )


class BalancedRobot:
    """The session of one robot, and the conversion of its inputs to readings.

    Args:
        session: of the robot.
        config: its configuration.
        imu: input of the IMU; None: it is not used.
        wrenches: inputs of the feet; None: they are not used.

    Attributes:
        session: as given.
        reading: the last one; None before the first.
    """

    def __init__(
        self,
        session: BalanceSession,
        config: RobotConfig,
        imu: ImuInput | None,
        wrenches: WrenchInputs | None,
    ) -> None:
        self.session, self._imu, self._wrenches = session, imu, wrenches
        self.reading: BalanceReading | None = None
        model = session.model
        self._imu_frame = LinkFrames(model, [config.imu_link or model.root_link])
        R, _ = link_poses(model, model.neutral)
        normals = [
            R[model.link_index(foot.wrench_frame)].T
            @ R[model.link_index(foot.frame)][:, 2]
            for foot in config.feet
        ]
        self._upwards = np.array(normals, dtype=float).reshape(
            -1, 3
        )  # in the sensors' frames
        gains = [config.servo.gains(name) for name in model.joint_names]
        self._stiffness = np.array(
            [gain.stiffness if gain and gain.stiffness else np.nan for gain in gains]
        )

    def read(self, sample: JointSample) -> BalanceReading:
        """Combines a sample of the joints with IMU and wrenches at its time.

        Args:
            sample: of the joints.

        Returns:
            The reading, also stored in `reading`.
        """
        time_ns, up, loads, missing = sample.time_ns, None, None, ""
        if self._imu is not None:
            imu = self._imu.reading(time_ns)
            missing = imu.problem
            if not missing:  # the joints between IMU and root deflect, too
                R_root_imu, _ = self._imu_frame.poses(sample.position)
                up = R_root_imu[0] @ imu.R_world_imu[2]
        if self._wrenches is not None:
            wrenches, problem = self._wrenches.wrenches(time_ns)
            missing = missing or (problem and f"{problem}, or set use_wrench false")
            if wrenches is not None:
                loads = np.einsum("fi,fi->f", self._upwards, wrenches[:, :3])
        commanded = self._commanded(sample)
        self.reading = BalanceReading(
            time_ns / NS_PER_S, sample.position, up, loads, commanded, missing
        )
        return self.reading

    def _commanded(self, sample: JointSample) -> Array | None:
        """Commands (n,) by the drives' deflection, effort / stiffness; None: unknown."""
        deflection = sample.effort / self._stiffness
        # joints that seem to deflect by more than 0.02 rad or m have other gains than configured
        if not np.abs(deflection).max(initial=0.0) <= 0.02:  # or not finite
            return None
        return sample.position + deflection


class BalanceOutput:
    """Publishers of com_balancer.

    Args:
        node: that publishes.
        settings: names of frames, horizon.

    Attributes:
        frame: name of the balance frame, with the prefix.
    """

    def __init__(self, node: Node, settings: Parameters) -> None:
        self.frame = settings.frame_prefix + settings.balance_frame
        self._settings = settings
        self._trajectory = TrajectoryWriter(node)
        self._error = node.create_publisher(
            Vector3Stamped, "balance/com_error", qos.RESULT
        )
        self._state = node.create_publisher(BalanceState, "balance/state", qos.RESULT)
        self._markers = MarkerOutput(node, "balance/markers", 2.0)
        self._frames = FramePublisher(node, settings.frame_prefix)

    def send(
        self, names: tuple[str, ...], command: BalanceCommand, stamp: Time
    ) -> None:
        """Sends one target, due `horizon` after the stamp.

        Args:
            names: of the joints.
            command: their targets.
            stamp: of the joint_states that it follows from.
        """
        q, qd, after = command.position, command.velocity, self._settings.horizon
        self._trajectory.publish(names, [after], q[None], qd[None], stamp_to_ns(stamp))

    def publish_state(
        self, session: BalanceSession, step: BalanceStep | None, stamp: Time
    ) -> None:
        """Publishes state and error of one instant.

        Args:
            session: with its state.
            step: of the control; None: there was none.
            stamp: of the instant.
        """
        friction = session.options.friction
        phase = session.state, session.reason, stamp, self.frame
        state = make_state(*phase, step, friction, session.feet)
        if step is not None:
            error = numpy_to_vector3(step.com - step.reference)
            self._error.publish(Vector3Stamped(header=state.header, vector=error))
        self._state.publish(state)

    def publish_waiting(self, reason: str, stamp: Time) -> None:
        """Publishes a state UNKNOWN.

        Args:
            reason: what is missing.
            stamp: now.
        """
        self._state.publish(make_state(BalanceState.UNKNOWN, reason, stamp, self.frame))

    def show(self, root: str, step: BalanceStep, stamp: Time) -> None:
        """Publishes the balance frame and, if someone subscribes, markers.

        Args:
            root: name of the root link's frame.
            step: of the control.
            stamp: of the instant.
        """
        frame = step.frame
        R = frame.R_balance_root.T
        self._frames.send(
            stamp, root, [(self._settings.balance_frame, frame.origin, R)]
        )
        if not self._markers.wanted:
            return
        self._markers.set_header(self.frame, stamp)
        n = frame.normal
        heights = -(frame.corners @ n[:2]) / n[2]
        outline = np.column_stack((frame.corners, heights))
        below = np.append(step.com[:2], -(step.com[:2] @ n[:2]) / n[2])
        wanted = np.append(step.reference[:2], -(step.reference[:2] @ n[:2]) / n[2])
        self._markers.show(
            [
                self._markers.sphere("com", step.com, 0.04, RED),
                self._markers.line(
                    "line_of_gravity", np.array([step.com, below]), 0.004, RED
                ),
                self._markers.disc("com_projection", below, n, 0.03, ORANGE),
                self._markers.disc("com_reference", wanted, n, 0.02, BLUE),
                self._markers.line("support", outline, 0.006, GREEN, closed=True),
            ]
        )


def make_state(
    state: int,
    reason: str,
    stamp: Time,
    frame: str,
    step: BalanceStep | None = None,
    friction: float = np.inf,
    feet: Sequence[str] = (),
) -> BalanceState:
    """A BalanceState message.

    Args:
        state: a value of BalanceState.
        reason: for it.
        stamp: of the joint_states.
        frame: of its points.
        step: of the control; None: its numbers are NaN.
        friction: coefficient of the ground, for beyond_friction.
        feet: names of the feet that stand.
    """
    points, numbers = np.full((3, 3), np.nan), (np.nan,) * 3
    if step is not None:
        points = np.array([step.desired, step.reference, step.com])
        numbers = step.error, step.margin, step.frame.slope
    desired, reference, com = numpy_to_points(points)
    error, margin, slope = numbers
    return BalanceState(
        header=Header(stamp=stamp, frame_id=frame),
        state=int(state),
        reason=reason,
        feet=list(feet),
        com_desired=desired,
        com_reference=reference,
        com=com,
        com_error=error,
        support_margin=margin,
        slope=slope,
        held_at_margin=step is not None and step.held,
        limited=step is not None and bool(step.limits),
        beyond_friction=bool(np.tan(slope) > friction),
    )


LEVELS = {
    BalancePhase.UNKNOWN: diagnostics.ERROR,
    BalancePhase.HOLDING: diagnostics.ERROR,
    BalancePhase.FALLEN: diagnostics.ERROR,
}


class ComBalancerNode(RobotNode[Parameters]):
    """ROS 2 node `com_balancer`: keeps the CoM of a standing robot at a desired position.

    The module's docstring lists its topics and services, Parameters its parameters.

    Args:
        **options: passed on to RobotNode and rclpy's Node, such as parameter_overrides.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__("com_balancer", Parameters, subject="balance", **options)
        p = self.parameters
        self._config = self.require_config("its feet with corners")
        self._output = BalanceOutput(self, p)
        self._player = DemonstrationPlayer(p.demonstration, p.control.margin)
        self._robot: BalancedRobot | None = None
        self._display_rate = RateLimit(p.display_rate_hz)
        feet = self._config.feet
        self._imu = self.follow_imu() if p.use_imu else None
        self._wrenches = self.follow_wrenches(feet) if p.use_wrench else None
        self.follow_robot_description()
        self.subscribe_with(
            PointStamped, "balance/com_desired", self._on_desired, qos.RESULT
        )
        self.follow_joint_states(self._on_joints, depth=EVERY_SAMPLE)
        self.serve_trigger("~/start", self._start)
        self.serve_trigger("~/stop", self._stop)

    def use_model(self, model: RobotModel) -> None:
        """Starts with a new model; continues balancing if the one before did.

        Args:
            model: the robot.

        Raises:
            ComModelError: it cannot be balanced.
        """
        p = self.parameters
        session = BalanceSession(
            model, self._config, p.control, p.check, p.guard, p.horizon
        )
        if p.autostart and (self._robot is None or self._robot.session.active):
            session.start()
        sensors = self._imu, self._wrenches
        self._robot = BalancedRobot(session, self._config, *sensors)

    def apply_parameters(self, new: Parameters) -> None:
        """Applies changed gains, bounds and the rate of the display.

        Args:
            new: all parameters.
        """
        self._display_rate.set(new.display_rate_hz)
        if self._robot is not None:
            self._robot.session.set_options(new.control, new.check)
            self._robot.session.guard.options = new.guard

    def on_restart(self, jump_s: float) -> None:
        """Holds until ~/start, as the clock has jumped.

        Args:
            jump_s: s, by which the stamps have jumped.
        """
        if self._robot is not None:
            self._robot.session.restart_clock(jump_s)

    # --- inputs --------------------------------------------------------------------------------
    def _on_desired(self, msg: PointStamped) -> None:
        problem = (
            self.waiting
            if self._robot is None
            else self._set_desired_com(self._robot, msg)
        )
        if problem:
            self.log.warn("com_desired", f"balance/com_desired refused: {problem}")
        else:
            self._player.stop()

    def _set_desired_com(self, robot: BalancedRobot, msg: PointStamped) -> str:
        """Sets the desired CoM from a message; returns why not, or ""."""
        point, frame = point_to_numpy(msg.point), msg.header.frame_id
        if frame in ("", self._output.frame):
            return robot.session.set_desired_com(point)
        link = frame.removeprefix(self.parameters.frame_prefix)
        if link not in robot.session.model.link_names:
            return (
                f"its frame is {frame!r}: give {self._output.frame!r}, a link of the robot, or "
                "leave it empty"
            )
        if robot.reading is None:
            return "no joint_states yet: where the frame is is not known"
        R, origin = link_pose(robot.session.model, robot.reading.position, link)
        try:
            desired = robot.session.to_balance_frame(
                robot.reading, origin + R @ np.nan_to_num(point)
            )
        except ComControlError as error:
            return str(error)
        return robot.session.set_desired_com(np.where(np.isnan(point), np.nan, desired))

    def _on_joints(self, sample: JointSample) -> None:
        robot = self._robot
        assert robot is not None  # noqa: S101 - without a model no sample comes
        reading, stamp = robot.read(sample), ns_to_stamp(sample.time_ns)
        before, command = robot.session.state, robot.session.step(reading)
        if command is not None:
            self._output.send(robot.session.model.joint_names, command, stamp)
        step = None if command is None else command.step
        if step is None:
            self._player.pause()
        elif desired := self._player.next(reading.time, step):
            robot.session.set_desired_com(*desired)  # for the next step
        self._output.publish_state(robot.session, step, stamp)
        if step is not None and self._display_rate.due(sample.time_ns):
            self._output.show(robot.session.model.root_link, step, stamp)
        if robot.session.state in LEVELS and robot.session.state != before:
            self.get_logger().error(robot.session.reason)

    # --- services and timeouts -----------------------------------------------------------------
    def _start(self) -> str:
        robot = self._robot
        if robot is None or robot.reading is None:
            raise BalanceError("no joint_states yet")
        problem = robot.session.problem(robot.reading)
        if problem:
            raise BalanceError(problem)
        robot.session.start()
        return "balances, the centre of mass where it is"

    def _stop(self) -> str:
        assert self._robot is not None  # noqa: S101 - without a model the base refuses
        self._robot.session.stop()
        return "the joints stay where they are"

    def watch(self) -> None:
        """Publishes what is missing for a model."""
        if self._robot is None:
            self._output.publish_waiting(self.waiting, self.get_clock().now().to_msg())

    def on_joints_timeout(self, reason: str) -> None:
        """Publishes a state UNKNOWN.

        Args:
            reason: why joint_states are stale.
        """
        self.get_logger().error(reason)
        self._output.publish_waiting(reason, self.get_clock().now().to_msg())

    def diagnose(self) -> Diagnosis:
        """Status for /diagnostics: that of the session.

        Returns:
            Level by LEVELS, ERROR for stale joint_states, WARN for a problem while balancing.
        """
        robot = self._robot
        if robot is None or robot.reading is None:
            return Diagnosis(diagnostics.ERROR, self.waiting or "no joint_states yet")
        session = robot.session
        level, reason = LEVELS.get(session.state, diagnostics.OK), session.reason
        if self.joint_watch.stale:
            level, reason = (
                diagnostics.ERROR,
                "joint_states timed out: check its driver",
            )
        elif level == diagnostics.OK and reason:
            level = diagnostics.WARN
        name, feet = session.state.name, ", ".join(session.feet)
        return Diagnosis(level, reason or name.lower(), {"state": name, "feet": feet})
