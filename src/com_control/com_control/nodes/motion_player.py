"""Plays motion files on a robot ([Cominoli] 7.1, csv2webots).

Subscribes:
    joint_states (sensor_msgs/JointState): where the joints are, and the time.

Publishes, at most at rate_hz and with the stamp of the joint_states that it was computed from:
    joint_trajectory (trajectory_msgs/JointTrajectory): while something moves: the target a
        `horizon` later and, after it, the path to rest, so that a robot that receives nothing more
        stops smoothly. Only joints that the file drives.
    motion/state (com_msgs/MotionState): state, and the reason of a refusal or stop.
At 1 Hz: /diagnostics.

Services:
    ~/load (com_msgs/LoadMotion): reads and checks a file of motion_directory; one that breaks
        limits of position, velocity or acceleration is refused, unless `clamp` is set.
    ~/play (std_srvs/Trigger): approaches the first row smoothly, plays
        the rows, and holds the last one.
    ~/pause, ~/resume: slows down along the motion, continues.
    ~/stop: slows down along the motion; then ~/play starts again.

It stops smoothly, and reports why, when joint_states time out, a joint does not follow or reports
an absurd position.

Parameters: see Parameters.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from std_msgs.msg import Header
from trajectory_msgs.msg import JointTrajectory

from com_control.exceptions import MotionError
from com_control.motion.files import UNITS
from com_control.motion.limits import (
    LimitError,
    LoadedMotion,
    find_motion_file,
    load_motion,
)
from com_control.motion.motion import MotionLayout
from com_control.motion.player import UNDER_WAY, MotionPhase, Player, PlayerOptions
from com_model import RobotModel
from com_model.arrays import Array
from com_msgs.msg import MotionState
from com_msgs.srv import LoadMotion
from com_ros import diagnostics, qos
from com_ros.conversions import NS_PER_S, ns_to_stamp, numpy_to_joint_trajectory
from com_ros.diagnostics import Diagnosis
from com_ros.exceptions import ParameterError
from com_ros.jobs import DeferredService, Reply
from com_ros.joint_input import JointInput, JointSample
from com_ros.parameters import JointTimeout, RobotParameters, live_parameter, parameter
from com_ros.robot_node import RobotNode

LEVELS = {MotionPhase.REFUSED: diagnostics.WARN, MotionPhase.STOPPING: diagnostics.WARN}


@dataclass(frozen=True)
class Parameters(RobotParameters, JointTimeout, PlayerOptions):
    """Parameters of motion_player; without robot_description the URDF is that of robot_config."""

    motion_layout: str = parameter(
        "", "path of the layout of the robot's motion files (YAML)"
    )
    unit: str = parameter(
        "counts", "unit of the positions in motion files", choices=UNITS
    )
    rate_hz: float = live_parameter(
        100.0, "1/s, maximum rate of commands", (10.0, 1000.0)
    )
    motion_directory: str = parameter(
        "",
        "folder of the motion files that may be loaded; empty: the working directory",
    )
    motion: str = parameter(
        "", "file in motion_directory to load at the start; empty: none"
    )
    play: bool = parameter(
        False, "play it as soon as the position of the robot is known"
    )
    clamp: bool = parameter(
        False,
        "clip and slow down files beyond limits; false: reject, unless ~/load has clamp",
    )
    most_rows: int = parameter(1_000_000, "rows of a motion file", (1, 10_000_000))


class MotionPlayerNode(RobotNode[Parameters]):
    """ROS 2 node `motion_player`: plays motion files on a robot.

    The module's docstring lists its topics and services, Parameters its parameters.

    Args:
        name: of the node.
        **options: passed on to RobotNode and rclpy's Node, such as parameter_overrides.
    """

    def __init__(self, name: str = "motion_player", **options: Any) -> None:
        super().__init__(name, Parameters, subject="motion", **options)
        p = self.parameters
        self._layout = self.make_layout()
        self._jobs = self.background_jobs()
        self._loading = False
        self._autoplay = p.play
        self._state = self.create_publisher(MotionState, "motion/state", qos.RESULT)
        self._commands = self.create_publisher(
            JointTrajectory, "joint_trajectory", qos.RESULT
        )
        joints = self._layout.joints
        self._player = Player(self._layout, p)
        self._measured: Array = np.full(
            len(joints), np.nan
        )  # where the joints were last
        # its stamp; the problem of joint_states
        self._time_ns, self._problem = 0, ""
        self._origin_ns, self._restarted = 0, False
        self.joints = JointInput(joints, p.joint_timeout)
        self.follow_joint_states(self._on_joints, with_problems=True)
        DeferredService(
            self,
            LoadMotion,
            "~/load",
            lambda request, reply: self._load(
                request.file, request.clamp or self.parameters.clamp, reply
            ),
        )
        for name in ("play", "pause", "resume", "stop"):
            self.serve_trigger(f"~/{name}", getattr(self, f"_{name}"))
        if p.motion:
            self._load(p.motion, p.clamp, lambda _: None)

    def on_restart(self, jump_s: float) -> None:
        """Stops a motion, as the clock has jumped.

        Args:
            jump_s: s, by which the stamps have jumped.
        """
        self._player.guard.stop_by_clock(jump_s)
        self._restarted = self._time_ns > 0

    def make_layout(self) -> MotionLayout:
        """Returns columns and limits of motions.

        Raises:
            ComModelError: a parameter is missing, or the files do not fit.
        """
        p = self.parameters
        if not p.motion_layout:
            fix = "give the path of what the columns mean, as config/motion/hoap2.yaml"
            raise ParameterError("motion_layout", "", fix)
        config = self.require_config("name and encoder")
        return MotionLayout.from_file(p.motion_layout, config, self.load_model())

    def load_model(self) -> RobotModel:
        """Returns the robot of robot_description or, without it, of robot_config.

        Raises:
            ParameterError: neither has a URDF.
        """
        config, xml = self.require_config(), self.parameters.robot_description
        if not xml and config.urdf is None:
            fix = f"give the robot's URDF, or the key urdf in {config.source}"
            raise ParameterError("robot_description", "", fix)
        return config.attach(
            RobotModel.from_urdf(xml) if xml else RobotModel.from_file(str(config.urdf))
        )

    # --- files ---------------------------------------------------------------------------------
    def _load(self, name: str, clamp: bool, reply: Reply) -> None:
        """Reads a file in the background."""
        if self._loading or self._player.state in UNDER_WAY:
            busy = (
                "another file is being read"
                if self._loading
                else "a motion is being played"
            )
            reply(_refusal(MotionError(f"{busy}: wait or stop it, then load again")))
            return
        p, self._loading = self.parameters, True

        def work() -> LoadedMotion:
            path = find_motion_file(p.motion_directory or ".", name)
            found = load_motion(path, self._layout, p.unit, clamp, p.most_rows)
            _ = found.motion.path  # computed here: a long file takes seconds
            return found

        self._jobs.do(work, lambda result: self._loaded(name, result, reply))

    def _loaded(
        self, name: str, result: LoadedMotion | Exception, reply: Reply
    ) -> None:
        self._loading = False
        try:
            if isinstance(result, Exception):
                raise result
            self._player.load(name, result.motion)
        except MotionError as error:
            if (
                self._player.state not in UNDER_WAY
            ):  # or one began to be played meanwhile
                self._player.refuse(name, str(error))
            self.get_logger().error(f"refused: {error}")
            reply(_refusal(error))
            return
        report = result.report
        text = f"{name}: {report.rows} rows, {result.motion.times[-1]:.3f} s"
        text += f"; clamped: {'; '.join(result.changes)}" if result.changes else ""
        (self.get_logger().warning if result.changes else self.get_logger().info)(text)
        reply(
            LoadMotion.Response(
                success=True,
                message=text,
                rows=report.rows,
                duration=float(result.motion.times[-1]),
                violations=[str(violation) for violation in report.violations],
            )
        )

    # --- services ------------------------------------------------------------------------------
    def _play(self) -> str:
        if self._loading:
            raise MotionError("the file is still being read: wait, then play")
        if waiting := self._waits_for_joints():
            raise MotionError(waiting)
        way = self._player.play(self._seconds(self._time_ns), self._measured)
        self._autoplay = False
        gaps = np.abs(way.q[-1] - way.q[0])
        joint = int(gaps.argmax())
        text = (
            f"plays {self._player.name}, {self._player.duration:.3f} s, after a way of "
            f"{way.end:.2f} s to its first row; the farthest is {self._layout.joints[joint]}, by "
            f"{np.degrees(gaps[joint]):.1f} deg"
        )
        self.get_logger().info(text)
        return text

    def _pause(self) -> str:
        self._player.pause()
        return f"comes to rest within {self.parameters.stop_time:g} s"

    def _resume(self) -> str:
        if waiting := self._waits_for_joints():
            raise MotionError(waiting)
        self._player.resume()
        return f"continues with row {self._player.row} of {self._player.rows}"

    def _stop(self) -> str:
        if self._player.state not in UNDER_WAY:
            return "nothing is being played"
        self._player.stop("stopped by ~/stop")
        return f"comes to rest within {self.parameters.stop_time:g} s"

    # --- steps and timers ----------------------------------------------------------------------
    def _on_joints(self, sample: JointSample) -> None:
        self._problem = sample.error
        if sample.error:
            self.log.warn("joint_states", sample.error)
            return
        time_ns = sample.time_ns
        self._origin_ns = self._origin_ns or time_ns
        if self._restarted:
            self._origin_ns, self._restarted = (
                self._origin_ns + time_ns - self._time_ns,
                False,
            )
        self._measured, self._time_ns = sample.position, time_ns
        targets = self._player.step(self._seconds(time_ns), sample.position)
        if targets is not None:
            path = targets.time, targets.q, targets.qd, ns_to_stamp(time_ns)
            self._commands.publish(
                numpy_to_joint_trajectory(self._player.driven, *path)
            )
        ready = self._player.state is MotionPhase.READY and not self._loading
        self._publish_state(
            self._play_automatically() if self._autoplay and ready else ""
        )

    def _seconds(self, time_ns: int) -> float:
        return (time_ns - self._origin_ns) / NS_PER_S

    def _waits_for_joints(self) -> str:
        """Why the joints' positions are unknown and how to fix it; "" when they are known."""
        if not self._time_ns and not self._problem:
            return "no joint_states yet: start the robot's driver"
        age = (
            f"none for {self.joint_watch.age_s:.2f} s" if self.joint_watch.stale else ""
        )
        return self._problem or (
            age and f"joint_states timed out, {age}: check its driver"
        )

    def _play_automatically(self) -> str:
        """Plays as soon as that is possible; returns why not yet, or ""."""
        if not self._commands.get_subscription_count():
            return f"nobody listens to {self._commands.topic_name}: start the robot's drivers"
        try:
            self._play()
        except MotionError as error:
            self.log.warn("play", f"not played yet: {error}")
            return str(error)
        return ""

    def _publish_state(self, waiting: str) -> None:
        player = self._player
        msg = MotionState(
            header=Header(stamp=ns_to_stamp(self._time_ns)),
            state=int(
                MotionPhase.UNKNOWN
                if waiting and player.state not in UNDER_WAY
                else player.state
            ),
            reason=player.reason or waiting,
            motion=player.name,
            row=player.row,
            rows=player.rows,
            time=player.motion_time,
            duration=player.duration,
            rate=player.rate,
            tracking_error=player.guard.error,
            tracking_joint=player.guard.joint,
        )
        self._state.publish(msg)

    def watch(self) -> None:
        """Stops a motion and reports it while the joints' positions are unknown."""
        waiting, player = self._waits_for_joints(), self._player
        if not waiting:
            return
        if self.joint_watch.stale and player.state in UNDER_WAY:
            state = player.state
            player.input_lost(
                self._seconds(self._time_ns) + self.joint_watch.age_s, waiting
            )
            if player.state is not state:
                self.get_logger().error(f"the motion stops: {player.reason}")
        self.log.warn("joint_states", waiting)
        self._publish_state(waiting)

    def on_joints_timeout(self, reason: str) -> None:
        """Does nothing: watch() reports the timeout.

        Args:
            reason: why joint_states are stale.
        """

    def diagnose(self) -> Diagnosis:
        """Status for /diagnostics: that of the player.

        Returns:
            Level by LEVELS, ERROR while joint_states are missing, WARN with a reason.
        """
        player, waiting = self._player, self._waits_for_joints()
        level = LEVELS.get(player.state, diagnostics.OK)
        if player.reason and level == diagnostics.OK:
            level = diagnostics.WARN
        if waiting:
            level = diagnostics.ERROR
        values = {
            "state": player.state.name,
            "motion": player.name,
            "row": player.row,
            "rows": player.rows,
            "tracking_error_rad": player.guard.error,
            "subscribed": self._commands.get_subscription_count() > 0,
        }
        return Diagnosis(
            level, waiting or player.reason or player.state.name.lower(), values
        )


def _refusal(error: MotionError) -> LoadMotion.Response:
    found = error.report.violations if isinstance(error, LimitError) else ()
    return LoadMotion.Response(
        message=str(error),
        duration=float("nan"),
        violations=[str(violation) for violation in found],
    )
