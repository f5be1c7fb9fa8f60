"""Whether the launch files start on a busy machine, whatever comes first: the robot or the nodes.

    tools/in_env python benchmarks/cold_starts.py [--starts 2] [--files balance walk] [--full]

Each launch file starts its nodes as on a real robot (simulation:=false) while programs that only
count keep all cores busy; more starts at a time than cores do that themselves. The robot, a
simulator of its own, comes some seconds later ("late") or is there before ("early"). A node gives
up when it ends, or when it does not work within LIMIT of both being there; while it waits for the
robot it must say so.

The last line is one JSON object:
    launch_files, starts    how many were tried, and how often in all
    gave_up                 starts after which a node ended, did not work, or did not say what it
                            waits for
    tracebacks              starts with one or a fatal error in the log of a node, also at Ctrl-C
    slowest_s               longest time from when nodes and robot were both started to work
    late_s                  by which the late robot came later
    at_a_time               how many starts
    problems                what happened
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import rclpy
from processes import in_processes
from rclpy.executors import SingleThreadedExecutor

from com_demos.background import Background, free_domain_id
from com_model.robots import find_robot
from com_msgs.msg import (
    BalanceState,
    CenterOfMass,
    GaitPhase,
    IdentificationState,
    MotionState,
    WalkState,
)
from com_msgs.srv import TipAngles
from com_ros import qos

RUN_LAUNCH = str(Path(__file__).resolve().parents[1] / "tools" / "run_launch")
COMMON = ("rviz:=false", "simulation:=false", "input_timeout:=3.0")
ROBOT = ("rviz:=false", "sesc:=false", "state_publisher:=false")
LIMIT = 120.0  # s, from when nodes and robot are there to work
EARLY = 10.0  # s, by which the robot is earlier


@dataclass(frozen=True)
class File:
    """A launch file and how to see that its nodes work.

    Attributes:
        robot: Its name; empty: none is needed.
        topic: That shows it.
        kind: Of its messages.
        works: Whether a message shows it.
        nodes: Those that must say that they wait for the robot.
        arguments: Of the launch file.
    """

    robot: str
    topic: str
    kind: Any
    works: Callable[[Any], bool] = lambda _: True
    nodes: tuple[str, ...] = ("sesc_publisher",)
    arguments: tuple[str, ...] = ()


def _com_is_known(msg: CenterOfMass) -> bool:
    return msg.status == CenterOfMass.STATUS_OK


def _trots(msg: GaitPhase) -> bool:
    return msg.state == GaitPhase.TROTTING


def _walks(msg: WalkState) -> bool:
    return msg.state == WalkState.WALKING


TROT = ("sesc_publisher", "trot_gait", "trunk_estimator")
WALK = ("sesc_publisher", "ccgd_gait")
FILES = {
    "hoap2": File("hoap2", "com", CenterOfMass, _com_is_known),
    "hoap3": File("hoap3", "com", CenterOfMass, _com_is_known),
    "view_robot": File(
        "talos", "com", CenterOfMass, _com_is_known, arguments=("robot:=talos",)
    ),
    "scalf2": File("scalf2", "gait/stance", GaitPhase, _trots, TROT, ("gait:=true",)),
    "trot": File(
        "a1", "gait/stance", GaitPhase, _trots, TROT, ("gait:=true", "robot:=a1")
    ),
    "itu_biped": File(
        "itu_biped", "gait/state", WalkState, _walks, WALK, ("walk:=true",)
    ),
    "walk": File(
        "hoap2", "gait/state", WalkState, _walks, WALK, ("walk:=true", "robot:=hoap2")
    ),
    "motion": File(
        "hoap2",
        "motion/state",
        MotionState,
        lambda msg: msg.state == MotionState.PLAYING,
        ("sesc_publisher", "motion_player"),
        ("play:=true",),
    ),
    "balance": File(
        "hoap2",
        "balance/state",
        BalanceState,
        lambda msg: msg.state == BalanceState.BALANCING,
        ("sesc_publisher", "com_balancer"),
    ),
    "identification": File(
        "hoap2",
        "identification/state",
        IdentificationState,
        lambda msg: msg.state == IdentificationState.READY,
        ("sesc_publisher", "com_identification"),
    ),
    "posture_protocol": File("", "posture_protocol/tip_angles", TipAngles),
}


@dataclass
class Start:
    """What happened in one start."""

    name: str
    problems: list[str] = field(default_factory=list)
    traceback: bool = False
    seconds: float = 0.0


class Listener:
    """Whether a launch file's nodes work, by a topic or a service."""

    def __init__(self, file: File, domain: int | None) -> None:
        self._context = rclpy.Context()
        rclpy.init(context=self._context, domain_id=domain)
        self._node = rclpy.create_node("cold_starts", context=self._context)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)
        self.works, self._last, self._client = False, None, None
        if file.robot:
            self._file = file
            self._node.create_subscription(
                file.kind, file.topic, self._on_message, qos.stream(10)
            )
        else:
            self._client = self._node.create_client(file.kind, file.topic)

    def _on_message(self, msg: Any) -> None:
        self.works, self._last = self.works or self._file.works(msg), msg

    def wait(self, seconds: float, until: Callable[[], bool] = lambda: False) -> bool:
        """Listen until something is so; False after `seconds`."""
        end = time.monotonic() + seconds
        while not until():
            if time.monotonic() > end:
                return False
            self._executor.spin_once(timeout_sec=0.1)
            if self._client is not None:
                self.works = self._client.service_is_ready()
        return True

    @property
    def last(self) -> str:
        """State of the last message, for people."""
        names = ("state", "status", "reason", "reasons", "last_walk")
        return str({n: getattr(self._last, n) for n in names if hasattr(self._last, n)})

    def close(self) -> None:
        """Leave ROS."""
        self._executor.shutdown()
        self._node.destroy_node()
        rclpy.shutdown(context=self._context)


def try_start(job: tuple[str, float]) -> Start:
    """Start a launch file once; a negative lateness of the robot: it is there before."""
    name, late = job
    domain = free_domain_id()
    file, start = FILES[name], Start(f"{name}, robot {late:+g} s")
    env = os.environ | {"ROS_DOMAIN_ID": str(domain)}
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        listener = Listener(file, domain)
        stack.callback(listener.close)
        words = _words(name, file, folder)
        nodes = Background(
            [RUN_LAUNCH, "com_bringup", *words], f"{folder}/nodes.log", env
        )
        robot = _robot(file, folder, env)
        if robot is not None and late < 0.0:
            stack.enter_context(robot)
            listener.wait(-late)
        stack.enter_context(nodes)
        if robot is not None and late > 0.0:
            listener.wait(late)
            listener.wait(LIMIT, lambda: not _not_waiting(nodes.log, file.nodes))
            start.problems += _not_waiting(nodes.log, file.nodes)
            stack.enter_context(robot)
        begin = time.monotonic()
        if not listener.wait(
            LIMIT, lambda: listener.works or nodes.exit_code is not None
        ):
            start.problems.append(f"does not work within {LIMIT:g} s: {listener.last}")
        start.seconds = round(time.monotonic() - begin, 1)
        nodes.stop()
        text = nodes.log.read_text(errors="replace")
        start.problems += [line for line in text.splitlines() if " died " in line]
        start.traceback = "Traceback" in text or "[FATAL]" in text
        keep = os.environ.get("COLD_STARTS_LOGS")
        if keep:
            (Path(keep) / f"{name}{late:+g}.{domain}.log").write_text(text)
    notes = "; ".join([*start.problems, *(["a traceback"] if start.traceback else [])])
    print(f"{start.name:32} {start.seconds:6.1f} s {notes}", file=sys.stderr)
    return start


def _words(name: str, file: File, folder: str) -> list[str]:
    if not file.robot:
        return [f"{name}.launch.xml"]
    words = [f"{name}.launch.xml", *COMMON, *file.arguments]
    if name == "identification":
        words.append(f"storage:={folder}/postures")
    if name == "view_robot":
        words.append(f"urdf:={find_robot(file.robot).urdf}")
    return words


def _robot(file: File, folder: str, env: dict[str, str]) -> Background | None:
    if not file.robot:
        return None
    words = ["view_robot.launch.xml", f"urdf:={find_robot(file.robot).urdf}", *ROBOT]
    command = [RUN_LAUNCH, "com_bringup", *words, f"robot:={file.robot}"]
    return Background(command, f"{folder}/robot.log", env)


def _not_waiting(log: Path, names: tuple[str, ...]) -> list[str]:
    """Nodes that do not say that they wait for the robot."""
    lines = [
        line for line in log.read_text().splitlines() if "no joint_states yet" in line
    ]
    silent = [name for name in names if not any(f"[{name}]" in line for line in lines)]
    return [f"{name} does not say that it waits for joint_states" for name in silent]


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--files", nargs="+", default=list(FILES), choices=list(FILES))
    parser.add_argument(
        "--starts", type=int, default=1, help="of each file, early and late"
    )
    parser.add_argument(
        "--late", type=float, default=30.0, help="s, by which the robot is later"
    )
    parser.add_argument("--full", action="store_true", help="20 starts of each file")
    parser.add_argument("--processes", type=int, default=2, help="starts at a time")
    options = parser.parse_args()
    if options.full:
        options.starts = 10
    orders = [(name, late) for late in (options.late, -EARLY) for name in options.files]
    count = [sys.executable, "-c", "while True: pass"]
    cores = os.cpu_count() or 1
    busy = [
        subprocess.Popen(count)
        for _ in range(cores if options.processes <= cores else 0)
    ]
    try:
        starts = in_processes(
            try_start, orders * options.starts, "starts", options.processes
        )
    finally:
        for process in busy:
            process.kill()
    result = {
        "launch_files": len(options.files),
        "starts": len(starts),
        "gave_up": sum(bool(start.problems) for start in starts),
        "tracebacks": sum(start.traceback for start in starts),
        "slowest_s": max(start.seconds for start in starts),
        "late_s": options.late,
        "at_a_time": options.processes,
        "problems": [f"{s.name}: {p}" for s in starts for p in s.problems],
    }
    print(json.dumps(result), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
