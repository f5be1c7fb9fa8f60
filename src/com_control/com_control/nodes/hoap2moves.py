"""Moves joints by words typed or piped ([Cominoli] 7.2, hoap2moves); "help" teaches them.

Subscribes:
    joint_states (sensor_msgs/JointState): where the joints are, and the time.

Publishes, with the stamp of the joint_states that it was computed from:
    joint_trajectory (trajectory_msgs/JointTrajectory): while something moves, of those joints
        only; as motion_player.

Works for any robot whose joints have limits. In a script each line waits until the joints have
arrived; the first one that cannot be done ends it, with exit status 1.

Parameters: see motion_parameters.ConsoleParameters.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from typing import Any

import numpy as np

from com_control.exceptions import MotionError
from com_control.motion.console import Console, Effect, Move, Quit, Reply, Save, Stop
from com_control.motion.csv_file import write_posture
from com_control.motion.layout import MotionLayout, default_layout
from com_control.motion.motion import Motion
from com_control.motion.player import NEAR, UNDER_WAY, State
from com_control.nodes.line_reader import LineReader, kept_terminal
from com_control.nodes.motion_drive import MotionDrive, load_robot
from com_control.nodes.motion_parameters import ConsoleParameters
from com_model.arrays import Array
from com_ros.exceptions import ComRosError
from com_ros.main import run
from com_ros.robot_node import RobotNode

COMMANDS = ("by", "help", "quit", "reset", "save", "set", "show", "speed", "stop", "unit")
LOOK_PERIOD = 0.05  # s


class Hoap2MovesNode(RobotNode[ConsoleParameters]):
    """The node; see the module's text.

    Args:
        options: passed on to rclpy's Node (namespace, parameter_overrides, context).

    Attributes:
        status: exit status of the program.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__("hoap2moves", ConsoleParameters, **options)
        p = self.parameters
        config, model = load_robot(self)
        try:
            self._layout = default_layout(model, config, p.max_speed)
            self._file_layout, self._unit = self._layout, "radians"
            if p.motion_layout:
                self._file_layout = MotionLayout.from_file(p.motion_layout, config, model)
                self._unit = p.unit
        except MotionError as error:
            raise ComRosError(str(error)) from error
        kinds = zip(model.joint_names, model.joint_types, strict=True)
        self._console = Console(
            self._layout, tuple(name for name, kind in kinds if kind == "prismatic")
        )
        self.status = 0
        self._waiting: Move | None = None  # for the robot
        self._target: Array | None = None  # on the way there
        self._deadline = self._last_heard = time.monotonic()
        self._lines: deque[str | None] = deque()
        self._drive = MotionDrive(self, self._layout, p.options(0.1), lambda _: self._look())
        self._wake = self.create_guard_condition(self._look)
        self.create_steady_timer(LOOK_PERIOD, self._look)
        words = (*COMMANDS, *self._layout.joints)
        self._reader = LineReader(f"{model.name}> ", words, self._take)
        if self._reader.terminal:
            print(f"{model.name}: {len(self._layout.joints)} joints. Write help, or show.")
        self._reader.start()

    def on_restart(self, jump_s: float) -> None:
        """Stop a motion, by another clock."""
        self._drive.restart_clock(jump_s)

    # --- lines ---------------------------------------------------------------------------------
    def _take(self, line: str | None) -> None:
        """In the reader's thread."""
        self._lines.append(line)
        if self.context.ok():
            self._wake.trigger()

    def _look(self) -> None:
        """See to what is under way, then to the next line."""
        self._drive.watch()
        self._go_on()
        if not self.context.ok():
            return
        scripted = not self._reader.terminal
        if not self._lines or (scripted and (self._busy or not self._ready_for_script())):
            return
        line = self._lines.popleft()
        if line is None:
            self._end()
            return
        for effect in self._console.feed(line, self._known()):
            self._do(effect)
        if self._reader.terminal or not self._busy:
            self._reader.next()

    def _ready_for_script(self) -> bool:
        """A script waits for the robot; for so long."""
        now = time.monotonic()
        if self._drive.current:
            self._last_heard = now
            return True
        if now > self._last_heard + self.parameters.patience:
            self._say(self._drive.waiting, refused=True)
        return False

    def _known(self) -> Array:
        if self._drive.current:
            return self._drive.measured
        return np.full(len(self._layout.joints), np.nan)

    @property
    def _busy(self) -> bool:
        return self._waiting is not None or self._target is not None

    # --- effects -------------------------------------------------------------------------------
    def _do(self, effect: Effect) -> None:
        if isinstance(effect, Reply):
            self._say(effect.text, effect.refused)
        elif isinstance(effect, Quit):
            self._end()
        elif isinstance(effect, Stop):
            self._waiting = None
            self._drive.player.stop("stopped")
        elif isinstance(effect, Save):
            self._save(effect)
        elif self._busy:
            self._say("it is still moving: wait, or write stop", refused=True)
        else:
            self._waiting = effect
            self._deadline = time.monotonic() + self.parameters.patience

    def _save(self, effect: Save) -> None:
        try:
            positions, joints = self._drive.measured, self._layout.joints
            write_posture(effect.path, joints, positions, self._file_layout, self._unit)
        except MotionError as error:
            self._say(str(error), refused=True)
            return
        self._say(f"{effect.path} written, in {self._unit}")

    def _go_on(self) -> None:
        """A move that waits for the robot, or is under way."""
        if self._waiting is not None:
            self._begin(self._waiting)
        if self._target is None or self._drive.player.state in UNDER_WAY:
            return
        player = self._drive.player
        if player.state is not State.FINISHED:
            self._arrived(player.reason)
            return
        error = np.abs(self._drive.measured - self._target)
        if not (error > NEAR).any():
            self._arrived("")
        elif time.monotonic() > self._deadline:
            joint = int(np.nanargmax(error))
            self._arrived(
                f"{self._layout.joints[joint]} is at {self._drive.measured[joint]:.4f} instead of "
                f"{self._target[joint]:.4f}: is it blocked, or is the drive off?"
            )

    def _begin(self, move: Move) -> None:
        problem = self._drive.waiting
        if not problem and not self._drive.subscribed:
            problem = f"nobody listens to {self._drive.topic}: start the robot's drivers"
        if problem:
            if time.monotonic() > self._deadline:
                self._waiting = None
                self._say(problem, refused=True)
                self._reader.next()
            return
        self._waiting, self._target = None, move.targets
        joints = self._layout.joints
        self._drive.player.load("move", Motion(joints, np.zeros(1), move.targets[None]))
        way = self._drive.play(move.fraction)
        self._say(f"moves for {way.times[-1] + self.parameters.stop_time:.1f} s")
        self._deadline += float(way.times[-1])

    def _arrived(self, problem: str) -> None:
        self._target = None
        self._say(problem or "there", refused=bool(problem))
        if not self._reader.terminal:
            self._reader.next()

    def _say(self, text: str, refused: bool = False) -> None:
        print(f"hoap2moves: {text}" if refused else text, flush=True)
        if refused and not self._reader.terminal:
            self.status = 1
            self._end()

    def _end(self) -> None:
        self._lines.clear()
        self.context.try_shutdown()


def main() -> int:
    """Run the node."""
    made: list[Hoap2MovesNode] = []

    def make() -> Hoap2MovesNode:
        made.append(Hoap2MovesNode())
        return made[-1]

    with kept_terminal():
        code = run(make)
    return code or (made[-1].status if made else 0)


if __name__ == "__main__":
    sys.exit(main())
