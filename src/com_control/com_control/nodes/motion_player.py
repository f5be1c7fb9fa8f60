"""Plays motion files on a robot ([Cominoli] 7.1, csv2webots).

Subscribes:
    joint_states (sensor_msgs/JointState): where the joints are, and the time.

Publishes, at most at rate_hz and with the stamp of the joint_states that it was computed from:
    joint_trajectory (trajectory_msgs/JointTrajectory): while something moves: the target a
        `horizon` later and, behind it, the path to rest, so that a robot that receives nothing more
        stops smoothly. Only joints that the file drives.
    motion/state (com_msgs/MotionState): what it does, and why not.
At 1 Hz: /diagnostics.

Services:
    ~/load (com_msgs/LoadMotion): reads and checks a file of motion_directory; one that breaks
        limits of position, velocity or acceleration is refused, unless it is to be clamped.
    ~/play (std_srvs/Trigger): approaches the first row smoothly, plays
        the rows, and holds the last one.
    ~/pause, ~/resume: slows down along the motion, goes on.
    ~/stop: slows down along the motion; then ~/play starts again.

It stops smoothly, and says why, when joint_states time out, a joint does not follow or reports an
absurd position.

Parameters: see motion_parameters.PlayerParameters.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from com_control.exceptions import MotionError
from com_control.motion.layout import MotionLayout
from com_control.motion.limits import LimitError, LoadedMotion, find_motion_file, load_motion
from com_control.motion.player import UNDER_WAY, State
from com_control.nodes.motion_drive import MotionDrive, load_robot
from com_control.nodes.motion_parameters import PlayerParameters
from com_msgs.msg import MotionState
from com_msgs.srv import LoadMotion
from com_ros import diagnostics, qos
from com_ros.conversions import ns_to_stamp
from com_ros.diagnostics import Diagnosis
from com_ros.exceptions import ComRosError, ParameterError
from com_ros.jobs import BackgroundJobs, DeferredService, Reply
from com_ros.main import run
from com_ros.robot_node import RobotNode

LEVELS = {State.REFUSED: diagnostics.WARN, State.STOPPING: diagnostics.WARN}


class MotionPlayerNode(RobotNode[PlayerParameters]):
    """The node; see the module's text. Its options are those of RobotNode."""

    def __init__(self, **options: Any) -> None:
        super().__init__("motion_player", PlayerParameters, subject="motion", **options)
        p = self.parameters
        self._layout = self._make_layout()
        self._jobs = BackgroundJobs(self)
        self._loading = False
        self._autoplay = p.play
        self._state = self.create_publisher(MotionState, "motion/state", qos.RESULT)
        player_options = p.options(p.approach_fraction)
        self._drive = MotionDrive(self, self._layout, player_options, self._on_step)
        self._player = self._drive.player
        DeferredService(self, LoadMotion, "~/load", self._on_load)
        for name in ("play", "pause", "resume", "stop"):
            self.serve_trigger(f"~/{name}", getattr(self, f"_{name}"), (MotionError,))
        if p.motion:
            self._load(p.motion, p.clamp, lambda _: None)

    def apply_parameters(self, new: PlayerParameters) -> None:
        """Use the changed rate."""
        self.set_sample_rate(new.rate_hz)

    def on_restart(self, jump_s: float) -> None:
        """Stop a motion, by another clock."""
        self._drive.restart_clock(jump_s)

    def destroy_node(self) -> None:
        """Let a file that is being read come to its end first."""
        self._jobs.close()
        super().destroy_node()

    def _make_layout(self) -> MotionLayout:
        p = self.parameters
        if not p.motion_layout:
            fix = "give the path of what the columns mean, as config/motion/hoap2.yaml"
            raise ParameterError("motion_layout", "", fix)
        config, model = load_robot(self)
        try:
            return MotionLayout.from_file(p.motion_layout, config, model)
        except MotionError as error:
            raise ComRosError(str(error)) from error

    # --- files ---------------------------------------------------------------------------------
    def _on_load(self, request: LoadMotion.Request, reply: Reply) -> None:
        self._load(request.file, request.clamp or self.parameters.clamp, reply)

    def _load(self, name: str, clamp: bool, reply: Reply) -> None:
        """Read a file in the background."""
        if self._loading or self._player.state in UNDER_WAY:
            busy = "another file is being read" if self._loading else "a motion is being played"
            reply(_refusal(MotionError(f"{busy}: wait or stop it, then load again")))
            return
        p, self._loading = self.parameters, True

        def work() -> LoadedMotion:
            path = find_motion_file(p.motion_directory or ".", name)
            return load_motion(path, self._layout, p.unit, clamp, p.most_rows)

        self._jobs.do(work, lambda result: self._loaded(name, result, reply))

    def _loaded(self, name: str, result: LoadedMotion | Exception, reply: Reply) -> None:
        self._loading = False
        if isinstance(result, Exception):
            if not isinstance(result, MotionError):
                raise result
            self._refuse(name, result, reply)
            return
        try:
            self._player.load(name, result.motion)
        except MotionError as error:  # one began to be played meanwhile
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

    def _refuse(self, name: str, error: MotionError, reply: Reply) -> None:
        if self._player.state not in UNDER_WAY:
            self._player.refuse(name, str(error))
        self.get_logger().error(f"refused: {error}")
        reply(_refusal(error))

    # --- services ------------------------------------------------------------------------------
    def _play(self) -> str:
        if self._loading:
            raise MotionError("the file is still being read: wait, then play")
        if not self._drive.current:
            raise MotionError(self._drive.waiting)
        way = self._drive.play()
        self._autoplay = False
        gaps = np.abs(way.positions[-1] - way.positions[0])
        joint = int(np.nanargmax(gaps))
        text = (
            f"plays {self._player.name}, {self._player.duration:.3f} s, after a way of "
            f"{way.times[-1]:.2f} s to its first row; the farthest is {way.joints[joint]}, by "
            f"{np.degrees(gaps[joint]):.1f} deg"
        )
        self.get_logger().info(text)
        return text

    def _pause(self) -> str:
        self._player.pause()
        return f"comes to rest within {self.parameters.stop_time:g} s"

    def _resume(self) -> str:
        if not self._drive.current:
            raise MotionError(self._drive.waiting)
        self._player.resume()
        return f"goes on with row {self._player.row} of {self._player.rows}"

    def _stop(self) -> str:
        if self._player.state not in UNDER_WAY:
            return "nothing is being played"
        self._player.stop("stopped by ~/stop")
        return f"comes to rest within {self.parameters.stop_time:g} s"

    # --- steps and timers ----------------------------------------------------------------------
    def _on_step(self, time_ns: int) -> None:
        ready = self._player.state is State.READY and not self._loading
        waiting = ""
        if self._autoplay and ready:
            waiting = self._play_automatically()
        self._publish_state(time_ns, waiting)

    def _play_automatically(self) -> str:
        """Play, as soon as that is possible; returns what is waited for, or nothing."""
        if not self._drive.subscribed:
            return f"nobody listens to {self._drive.topic}: start the robot's drivers"
        try:
            self._play()
        except MotionError as error:
            self.log.warn("play", f"not played yet: {error}")
            return str(error)
        return ""

    def _publish_state(self, time_ns: int, waiting: str = "") -> None:
        player = self._player
        msg = MotionState(
            state=int(State.UNKNOWN if waiting and player.state not in UNDER_WAY else player.state),
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
        msg.header.stamp = ns_to_stamp(time_ns)
        self._state.publish(msg)

    def watch(self) -> None:
        """Stop, and say so, while the joints are not known."""
        if self._drive.current:
            return
        if self._drive.watch():
            self.get_logger().error(f"the motion stops: {self._player.reason}")
        self.log.warn("joint_states", self._drive.waiting)
        self._publish_state(self._drive.time_ns, self._drive.waiting)

    def on_joints_timeout(self, reason: str) -> None:
        """Nothing besides what watch does."""

    def diagnose(self) -> Diagnosis:
        """Level and text by the state of the player."""
        player, waiting = self._player, self._drive.waiting
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
            "subscribed": self._drive.subscribed,
        }
        return Diagnosis(level, waiting or player.reason or player.state.name.lower(), values)


def _refusal(error: MotionError) -> LoadMotion.Response:
    found = error.report.violations if isinstance(error, LimitError) else ()
    return LoadMotion.Response(
        message=str(error),
        duration=float("nan"),
        violations=[str(violation) for violation in found],
    )


def main() -> int:
    """Run the node."""
    return run(MotionPlayerNode)


if __name__ == "__main__":
    sys.exit(main())
