"""Lets a robot on four legs trot.

Subscribes:
    robot_description (std_msgs/String, latched): the URDF, unless the parameter contains it.
    joint_states (sensor_msgs/JointState): where the joints are, and the time.
    imu (sensor_msgs/Imu): attitude and angular velocity, with gait.swing_compensation or feedback.
    trunk_com (com_msgs/TrunkCom): only with feedback, only while USABLE or CONVERGED.
    cmd_vel (geometry_msgs/Twist): velocity by linear.x, linear.y, angular.z, in place of that of
        the parameters; none for cmd_vel_timeout: on the spot.

Publishes, at most at rate_hz and with the stamp of the joint_states that it was computed from:
    joint_trajectory (trajectory_msgs/JointTrajectory): one point, `horizon` later, with velocities;
        when joint_states time out, once, the whole way down on all feet, from now on.
    gait/stance (com_msgs/GaitPhase): legs in stance.
At 1 Hz: /diagnostics.

Services:
    ~/start, ~/stop (std_srvs/Trigger): trot; stand on all feet.

It stops with all feet down, and reports why, when joint_states time out, the attitude is unknown or
the trunk tilts too far; ~/start continues. Before the trot it waits until none of these holds. When
joints do not follow or report absurd positions, it ends the swing and stops on all feet. It stops,
too, when imu or a leg's encoders are frozen, an encoder jumps, or imu turns unlike its angular
velocity.

Parameters: see Parameters.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from std_msgs.msg import Header

from com_control.command_guard import GuardOptions
from com_control.trot.parameters import GaitParameters
from com_control.trot.session import GaitSession, TrotCommand
from com_control.trot.trot import TrotFeedback, TrotGait
from com_model import RobotModel
from com_model.status import TRUSTED
from com_msgs.msg import GaitPhase, TrunkCom
from com_ros import diagnostics
from com_ros.conversions import NS_PER_S, ns_to_stamp, vector3_to_numpy
from com_ros.diagnostics import Diagnosis
from com_ros.inputs import Latest
from com_ros.joint_input import JointSample
from com_ros.parameters import (
    ImuTimeout,
    JointTimeout,
    RobotParameters,
    live_parameter,
    parameter,
)
from com_ros.raw_messages import TrajectoryWriter
from com_ros.receiving_node import EVERY_SAMPLE
from com_ros.robot_node import RobotNode


@dataclass(frozen=True)
class Parameters(RobotParameters, JointTimeout, ImuTimeout):
    """Parameters of trot_gait; robot_config must give four feet with side and end."""

    gait: GaitParameters = field(default_factory=GaitParameters)
    guard: GuardOptions = field(default_factory=GuardOptions)
    autostart: bool = parameter(True, "trot without waiting for ~/start")
    feedback: bool = parameter(
        False, "move the feet below the centre of mass of trunk_com"
    )
    com_timeout: float = live_parameter(
        0.5,
        "s, age of trunk_com at which the feet are no longer shifted",
        (0.001, 60.0),
    )
    cmd_vel_timeout: float = live_parameter(
        0.5, "s without cmd_vel, after which the robot trots on the spot", (0.01, 60.0)
    )
    max_tilt: float = live_parameter(
        0.6, "rad, tilt of the trunk at which the trot stops", (0.01, 1.5)
    )
    approach_time: float = parameter(1.5, "s, to move between postures", (0.05, 60.0))
    rate_hz: float = live_parameter(
        200.0, "1/s, maximum rate of joint_trajectory", (1.0, 2000.0)
    )
    horizon: float = parameter(
        0.02, "s, lead of targets over joint_states", (0.001, 1.0)
    )


class TrotGaitNode(RobotNode[Parameters]):
    """ROS 2 node `trot_gait`: trot of a quadruped.

    The module's docstring lists its topics and services, Parameters its parameters.

    Args:
        **options: passed on to RobotNode and rclpy's Node, such as parameter_overrides.

    Attributes:
        session: of the robot's gait; None: no model yet.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__("trot_gait", Parameters, subject="trot", **options)
        p = self.parameters
        self._config = self.require_config("side and end of its four feet")
        self.session: GaitSession | None = None  # of the robot's model
        self._R_imu_root = np.eye(3)
        self._command: TrotCommand | None = None
        self._com: Latest[np.ndarray] = Latest(p.com_timeout)
        self._last_ns = 0
        self._trajectory = TrajectoryWriter(self)
        self._phase = self.create_publisher(GaitPhase, "gait/stance", 10)
        self.follow_robot_description()
        fix = "turn feedback and gait.swing_compensation off"
        self._imu = self.follow_imu(otherwise=fix)
        self._velocity = self.follow_velocity()
        if p.feedback:
            self.subscribe(TrunkCom, "trunk_com", self._on_com)
        self.follow_joint_states(self._on_joints, depth=EVERY_SAMPLE)
        self.serve_trigger(
            "~/start", lambda: self._session.start(), "trots as soon as it stands"
        )
        self.serve_trigger(
            "~/stop",
            lambda: self._session.stop("stopped by ~/stop"),
            "stands with all feet down",
        )

    def use_model(self, model: RobotModel) -> None:
        """Starts with a new model.

        Args:
            model: the robot, a quadruped.

        Raises:
            ConfigError: it is no quadruped with legs of two or three joints.
            GeometryError: a leg's joint is not revolute.
            GaitError: it cannot stand at the gait's height.
        """
        p = self.parameters
        gait = TrotGait(model, self._config, p.gait, p.feedback)
        link = model.link_index(self._config.imu_link or model.root_link)
        self._R_imu_root = model.bodies.R_body_link[link].T
        self.session = GaitSession(gait, p.approach_time, p.horizon, p.guard)
        self.session.trot = p.autostart

    def apply_parameters(self, new: Parameters) -> None:
        """Applies changed bounds and the timeout of trunk_com.

        Args:
            new: all parameters.
        """
        if self.session is not None:
            self.session.guard.options = new.guard
        self._com.timeout_s = new.com_timeout

    def on_restart(self, jump_s: float) -> None:
        """Holds until ~/start, as the clock has jumped.

        Args:
            jump_s: s, by which the stamps have jumped.
        """
        if self.session is not None:
            self.session.restart_clock(jump_s)

    # --- inputs ------------------------------------------------------------------------------
    def _on_com(self, msg: TrunkCom, time_ns: int) -> None:
        offset = vector3_to_numpy(msg.offset_from_center)
        if msg.status in TRUSTED and np.isfinite(offset[:2]).all():
            self._com.set(offset, time_ns)

    def _com_at(self, time_ns: int) -> np.ndarray | None:
        """The trunk's CoM for a sample: that of 20 ms before it, if it is current.

        A newer one may come before or after the sample, so that runs would not be reproducible.
        """
        at_ns = time_ns - 20_000_000
        return self._com.current(at_ns) if self._com.age_s(at_ns) >= 0.0 else None

    def _on_joints(self, sample: JointSample) -> None:
        session, p, time_ns = self._session, self.parameters, sample.time_ns
        if self._velocity.ever_received:
            session.gait.set_velocity(self._velocity.current)
        R, omega, problem = self._attitude(time_ns)
        com = self._com_at(time_ns) if p.feedback else None
        self._last_ns, trots = time_ns, session.trot
        session.check(problem)
        feedback = TrotFeedback(R, com, omega)
        self._command = session.step(time_ns / NS_PER_S, sample.position, feedback)
        self._report_stop(trots)
        stamp = ns_to_stamp(time_ns)
        if self._command is not None:
            q, qd = self._command.position[None], self._command.velocity[None]
            self._trajectory.publish(self._names, [p.horizon], q, qd, time_ns)
        self._publish_phase(self._command, stamp)

    @property
    def _session(self) -> GaitSession:
        """The session; without a model no sample and no request arrives."""
        assert self.session is not None  # noqa: S101
        return self.session

    @property
    def _names(self) -> tuple[str, ...]:
        """Names of the joints."""
        return self._session.gait.model.joint_names

    def _report_stop(self, trots: bool) -> None:
        """Logs why the trot has stopped."""
        if trots and not self._session.trot:
            self.get_logger().error(f"the trot stops: {self._session.reason}")

    def _attitude(
        self, time_ns: int
    ) -> tuple[np.ndarray | None, np.ndarray | None, str]:
        """Attitude, angular velocity in root axes, and the problem or ""."""
        p = self.parameters
        if not (p.gait.swing_compensation or p.feedback):
            return None, None, ""
        values = self._imu.reading(time_ns)
        if values.problem:
            return None, None, values.problem
        R = values.R_world_imu @ self._R_imu_root
        tilt = float(np.arccos(np.clip(R[2, 2], -1.0, 1.0)))
        if tilt > p.max_tilt:
            return (
                R,
                None,
                f"the trunk tilts by {tilt:.2f} rad, max_tilt is {p.max_tilt:.2f}",
            )
        omega = self._R_imu_root.T @ values.angular_velocity
        return R, omega if np.isfinite(omega).all() else None, ""

    # --- outputs -----------------------------------------------------------------------------
    def _publish_phase(self, command: TrotCommand | None, stamp: Any) -> None:
        session, gait = self._session, command and command.gait
        problems = "; ".join(gait.problems) if gait else ""
        frame = session.gait.model.root_link
        msg = GaitPhase(
            header=Header(stamp=stamp, frame_id=frame),
            state=int(command.state) if command else GaitPhase.UNKNOWN,
            stance=command.stance.tolist() if command else [False] * 4,
            legs=[leg.name for leg in session.gait.legs],
            reason=session.reason or problems,
            phase=gait.phase if gait else float("nan"),
            com_shift=gait.com_shift if gait else np.zeros(2),
            saturated=bool(gait and gait.saturated),
        )
        self._phase.publish(msg)
        if problems:
            self.log.warn("gait", f"the gait is held back: {problems}")

    # --- timeouts ------------------------------------------------------------------------------
    def on_joints_timeout(self, reason: str) -> None:
        """Stops: sends the whole path to the standing posture, since no next sample may come.

        Args:
            reason: why joint_states are stale.
        """
        session = self.session
        if session is None or session.last is None:
            return
        trots = session.trot
        session.check(reason)
        self._report_stop(trots)
        if not session.trot:
            session.stop(reason)
        begin = (
            self._last_ns / NS_PER_S + self.parameters.horizon + self.joint_watch.age_s
        )
        # points of the path to the standing posture, sent when joint_states time out
        path = session.way_to_rest(begin, 20)
        assert path is not None  # noqa: S101 - the posture is known
        after = (path.time - begin).tolist()
        self._trajectory.publish(self._names, after, path.q, path.qd, 0)
        self._publish_phase(session.last, ns_to_stamp(self._last_ns))

    def diagnose(self) -> Diagnosis:
        """Status for /diagnostics: that of the gait.

        Returns:
            OK, WARN while waiting or when the gait is limited, ERROR when it has stopped.
        """
        session, command = self.session, self._command
        if session is None or command is None:
            reason = (
                self.waiting or (session and session.reason) or "no joint_states yet"
            )
            return Diagnosis(diagnostics.ERROR, reason)
        level, reason = diagnostics.OK, command.state.name.lower()
        if session.reason:
            level = diagnostics.WARN if session.trot else diagnostics.ERROR
            reason = session.reason
        elif command.gait and (command.gait.problems or command.gait.saturated):
            level = diagnostics.WARN
            reason = (
                "; ".join(command.gait.problems) or "the feet's shift is at its bound"
            )
        return Diagnosis(level, reason, {"state": command.state.name})
