"""A robot in MuJoCo or from a log, its faulty drivers, and the node that must stand them.

What benchmarks/faults.py drives: the physics, the drivers' messages and the checks of what the node
commands run in this process; the node is a program of its own.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import rclpy
import yaml
from ament_index_python.packages import get_package_prefix
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray
from fault_cases import NS, Batch, Fault, Progress
from fault_commands import OTHER_TIME, CommandCheck
from geometry_msgs.msg import WrenchStamped
from numpy.typing import NDArray
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import GetParameterTypes, ListParameters, SetParameters
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Header, String
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from com_model import RobotConfig, RobotModel
from com_model.robots import find_robot
from com_ros import qos
from com_ros.conversions import ns_to_stamp, stamp_to_ns
from com_simulation.exceptions import CommandError, DivergedError
from com_simulation.nodes.simulator import SensorOutput
from com_simulation.physics.motion import read_trajectory
from com_simulation.physics.sensors import NoiseLevels, Reading
from com_simulation.physics.simulation import Simulation
from com_simulation.physics.world_builder import build_world

Array = NDArray[np.float64]
FALLEN_TILT = 0.5  # rad, of the trunk
UNANSWERED = 3  # times, after which it waits no longer until the node answers again


class RobotUnderTest(Protocol):
    """What moves: its drivers' messages, and the truth beside them."""

    model: RobotModel
    config: RobotConfig
    period: float

    def reset(self) -> None:
        """Begin again."""

    def advance(self, stamp: Time) -> Batch:
        """Messages of the next instant."""
        ...

    def follow(self, msg: JointTrajectory, age_s: float) -> None:
        """Take in a command that begins `age_s` ago."""

    @property
    def truth(self) -> Reading:
        """Of the last instant."""
        ...

    @property
    def fallen(self) -> bool:
        """Whether it lies on the ground."""
        ...


def load_robot(name: str) -> tuple[RobotModel, RobotConfig]:
    """A robot of the suite by its name."""
    files = find_robot(name)
    if files.config is None:
        raise SystemExit(f"{name} has no configuration")
    return RobotModel.from_file(files.urdf), RobotConfig.from_file(files.config)


class SimulatedRobot:
    """A robot in MuJoCo that follows what it is commanded.

    Args:
        name: Of a robot of the suite.
        period: s, between samples.
        options: Of build_world.
    """

    def __init__(self, name: str, period: float, **options: Any) -> None:
        self.model, self.config = load_robot(name)
        world = build_world(self.model, self.config, **options)
        self._simulation = Simulation(world, period)
        self.period = self._simulation.sample_period
        self._tap = _Tap()
        topics = {"joint_states": "joints", "imu": "imu"}
        topics |= {foot.wrench_topic: f"wrench{i}" for i, foot in enumerate(world.feet)}
        self._names = topics
        self._output = SensorOutput(self._tap, world, NoiseLevels())  # type: ignore[arg-type]

    def reset(self) -> None:
        """Put the robot back on its feet."""
        self._simulation.reset()

    def advance(self, stamp: Time) -> Batch:
        """Messages of the next instant."""
        try:
            self._reading = self._simulation.advance()
        except DivergedError:
            self._simulation.reset()
            self._reading = self._simulation.advance()
        self._tap.sent.clear()
        self._output.publish(self._reading, stamp)
        return [(self._names[t], msg) for t, msg in self._tap.sent if t in self._names]

    def follow(self, msg: JointTrajectory, age_s: float) -> None:
        """Take in a command; a driver refuses what it cannot follow."""
        times = [
            p.time_from_start.sec + p.time_from_start.nanosec / NS for p in msg.points
        ]
        try:
            trajectory = read_trajectory(
                self.model.joint_names,
                msg.joint_names,
                times,
                [p.positions for p in msg.points],
                [p.velocities for p in msg.points],
            )
            self._simulation.follow(trajectory, self._simulation.time - age_s)
        except CommandError:
            return

    @property
    def truth(self) -> Reading:
        """Of the last instant."""
        return self._reading

    @property
    def fallen(self) -> bool:
        """Whether the trunk lies."""
        return bool(-self._reading.gravity[2] < np.cos(FALLEN_TILT))


class _Tap:
    """Takes the place of a node where drivers make their messages."""

    def __init__(self) -> None:
        self.sent: Batch = []

    def create_publisher(self, _kind: type, topic: str, _profile: Any) -> Any:
        return _TapPublisher(topic, self.sent)


@dataclass
class _TapPublisher:
    topic: str
    sent: Batch

    def publish(self, msg: Any) -> None:
        self.sent.append((self.topic, msg))


class Lab:
    """A robot, its drivers and the node under test.

    Args:
        robot: That moves, or plays a log.
        command: Package and executable of the node, and its arguments.
        parameters: Of the node.
        outputs: Topic -> message type of what is looked at.
        folder: For its files.
        answer_limit: s, that a healthy robot waits for the node.

    Attributes:
        outputs: The last message of each topic; the benchmark clears them.
        parameters: Of the node at its next start.
        context: Of its own node.
        fault: Name of the one that is being tried.
        crashes: Of the node, each with the fault.
        falls: Of the robot, each with the fault.
        diagnosed: Messages on /diagnostics.
        commanded: Commands that came.
    """

    def __init__(
        self,
        robot: RobotUnderTest,
        command: tuple[str, ...],
        parameters: dict[str, Any],
        outputs: dict[str, type],
        folder: Path,
        answer_limit: float = 0.1,
    ) -> None:
        self._answer_limit = answer_limit
        self.robot, self.command = robot, command
        self.fault = "no fault"
        self.checks = CommandCheck(robot.model)
        self.outputs: dict[str, Any] = {}
        self.on_output: Callable[[str, Any], None] = lambda _topic, _msg: None
        self.context = Context()
        rclpy.init(context=self.context)
        self.node = Node("fault_lab", context=self.context)
        self._executor = SingleThreadedExecutor(context=self.context)
        self._executor.add_node(self.node)
        self._publishers = {
            "joints": self.node.create_publisher(JointState, "joint_states", 200),
            "imu": self.node.create_publisher(Imu, "imu", 200),
        }
        for i, foot in enumerate(robot.config.feet):
            publisher = self.node.create_publisher(
                WrenchStamped, foot.wrench_topic, 200
            )
            self._publishers[f"wrench{i}"] = publisher
        self._description = self.node.create_publisher(
            String, "robot_description", qos.LATCHED
        )
        for topic, kind in outputs.items():
            self.node.create_subscription(kind, topic, self._taker(topic), 200)
        self.node.create_subscription(
            JointTrajectory, "joint_trajectory", self._on_command, 200
        )
        self.node.create_subscription(
            DiagnosticArray, "/diagnostics", self._on_diagnostics, 50
        )
        self.node.create_subscription(Header, "lockstep", self._on_answer, qos.RESULT)
        self.diagnosed = self.commanded = 0
        self._answered_ns, self._unanswered = 0, 0
        self._base_ns = time.time_ns()
        self._begin = time.monotonic()
        self._ticks = 0
        self._folder = folder
        self.parameters = parameters
        self._log = (folder / f"{command[1]}.log").open("w+")
        self.crashes: list[str] = []
        self.falls: list[str] = []
        self._lies = False
        self.start_node()

    # --- the node under test -------------------------------------------------------------------
    def start_node(self) -> None:
        """Start the node's program."""
        package, name, *words = self.command
        file = self._folder / f"{name}.yaml"
        values = {"/**": {"ros__parameters": self.parameters}}
        file.write_text(yaml.safe_dump(values, width=1e9))
        program = Path(get_package_prefix(package)) / "lib" / package / name
        environment = os.environ | {"PYTHONUNBUFFERED": "1"}
        self.process = subprocess.Popen(
            [str(program), *words, "--ros-args", "--params-file", str(file)],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            env=environment,
        )

    def restart_node(self) -> None:
        """End the node by force and restart it."""
        self.process.kill()
        self.process.wait()
        self.start_node()

    def add_publisher(self, name: str, kind: type, topic: str) -> None:
        """A further topic on which faults are sent."""
        # latched, as some subscribers demand
        self._publishers[name] = self.node.create_publisher(kind, topic, qos.LATCHED)

    def look_after_node(self) -> bool:
        """Whether the node lives; one that has ended is counted and started again."""
        code = self.process.poll()
        if code is None:
            return True
        self.crashes.append(f"{self.fault}: exit code {code}")
        self.start_node()
        return False

    def log_text(self) -> str:
        """What the node has printed."""
        return Path(self._log.name).read_text(errors="replace")

    def close(self) -> None:
        """End everything."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(20.0)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._executor.shutdown()
        self.node.destroy_node()
        rclpy.shutdown(context=self.context)
        self._log.close()

    # --- time ----------------------------------------------------------------------------------
    @property
    def now_s(self) -> float:
        """Time of the robot, s."""
        return self._ticks * self.robot.period

    def run(self, seconds: float, until: Callable[[], bool] | None = None) -> bool:
        """Let the robot live for a time, or until something is so; returns whether it is."""
        end = self.now_s + seconds
        while self.now_s < end:
            self.tick(None, Progress())
            if until is not None and until():
                return True
            if self.process.poll() is not None:
                return False
        return until is None

    def inject(self, fault: Fault, seed: int) -> None:
        """Let the robot live with a fault."""
        self.fault = fault.name
        if fault.description is not None:
            self._description.publish(String(data=fault.description))
        if fault.parameters:
            self.set_absurd_parameters()
        self._base_ns += round(fault.shift_s * NS)
        progress = Progress(seed=seed)
        end = self.now_s + fault.seconds
        while self.now_s < end:
            self.tick(fault, progress)
            progress.tick += 1

    def tick(self, fault: Fault | None, progress: Progress) -> None:
        """One instant: the drivers publish, the node's answers are taken in."""
        stamp = ns_to_stamp(self._base_ns + round(self.now_s * NS))
        batch = self.robot.advance(stamp)
        if self.robot.fallen and not self._lies:
            self.falls.append(self.fault)
        self._lies = self.robot.fallen
        if fault is not None:
            batch = fault.change(batch, progress)
        for name, msg in batch:
            if name in self._publishers:
                self._publishers[name].publish(msg)
        self._ticks += 1
        while True:
            left = self._begin + self.now_s - time.monotonic()
            self._executor.spin_once(timeout_sec=max(left, 0.0))
            if left <= 0.0:
                break
        if fault is None:
            self._wait_for_answer(stamp_to_ns(stamp))
        if left < -0.2:  # the machine is too slow: the robot's time goes on from here
            self._begin -= left

    def _wait_for_answer(self, stamp_ns: int) -> None:
        """Let a healthy robot wait for a node that answers, but is slow on a busy machine."""
        end = time.monotonic() + self._answer_limit
        while self._answered_ns < stamp_ns and self._unanswered < UNANSWERED:
            if time.monotonic() > end:
                self._unanswered += 1
                return
            self._executor.spin_once(timeout_sec=0.01)

    # --- what the node says --------------------------------------------------------------------
    def _taker(self, topic: str) -> Callable[[Any], None]:
        def take(msg: Any) -> None:
            self.outputs[topic] = msg
            self.on_output(topic, msg)

        return take

    def _on_answer(self, msg: Header) -> None:
        self._answered_ns, self._unanswered = stamp_to_ns(msg.stamp), 0

    def _on_diagnostics(self, _: DiagnosticArray) -> None:
        self.diagnosed += 1

    def _on_command(self, msg: JointTrajectory) -> None:
        self.commanded += 1
        stamp_ns = stamp_to_ns(msg.header.stamp)
        now_ns = self._base_ns + round(self.now_s * NS)
        age_s = (now_ns - stamp_ns) / NS if stamp_ns else 0.0
        if self.command[1] != "simulator":  # which is commanded by the faults
            position = self.robot.truth.position
            self.checks.check(msg, self.fault, self.now_s, age_s, position)
            if abs(age_s) < OTHER_TIME:
                self.robot.follow(msg, age_s)

    def restart_robot(self) -> None:
        """Put the robot back to its start."""
        self.robot.reset()
        self.checks.restart(self.now_s)

    # --- services ------------------------------------------------------------------------------
    def call(self, kind: type, name: str, request: Any, timeout_s: float = 3.0) -> Any:
        """Call a service while the robot lives; None without an answer."""
        client = self.node.create_client(kind, name)
        try:
            if not self.run(timeout_s, client.service_is_ready):
                return None
            future = client.call_async(request)
            return future.result() if self.run(timeout_s, future.done) else None
        finally:
            self.node.destroy_client(client)

    def trigger(self, name: str, timeout_s: float = 3.0) -> bool:
        """Call a service without arguments; whether it succeeded."""
        answer = self.call(Trigger, name, Trigger.Request(), timeout_s)
        return answer is not None and bool(answer.success)

    def set_absurd_parameters(self) -> None:
        """Ask for values that no parameter may have, of all of them."""
        name = f"/{self.command[1]}"
        listed = self.call(
            ListParameters, f"{name}/list_parameters", ListParameters.Request()
        )
        names = list(listed.result.names) if listed else []
        request = GetParameterTypes.Request(names=names)
        types = self.call(GetParameterTypes, f"{name}/get_parameter_types", request)
        double = ParameterType.PARAMETER_DOUBLE
        chosen = [n for n, kind in zip(names, types.types if types else (), strict=True)
                  if kind == double]  # fmt: skip
        for value in (float("nan"), -1e300, 1e300):
            absurd = ParameterValue(type=double, double_value=value)
            changes = [Parameter(name=n, value=absurd) for n in chosen]
            request = SetParameters.Request(parameters=changes)
            self.call(SetParameters, f"{name}/set_parameters", request)


def say(text: str) -> None:
    """A line for people."""
    print(text, file=sys.stderr, flush=True)
