"""Whether nodes keep up for long: memory, lost messages, latency.

    tools/in_env python benchmarks/soak.py [--minutes 10] [--rate 1000] [--nodes sesc_publisher]
    tools/in_env python benchmarks/soak.py --full    30 minutes each, an estimator and a commander

A driver process sends a standing robot's messages at the rate, the installed node answers, this
process listens. The nodes are run one after the other, each for --minutes.

The last line is one JSON object:
    minutes, rate_hz    that each node ran, and the lowest rate of joint_states
    lost                samples (trunk_estimator and humanoid_com_estimator: answers, due at 200 Hz)
                        without an answer that the node did not say it skipped
    rss_slope_mb_h      growth of the node's memory, MB an hour, the largest of the nodes
    p99_ratio           99th percentile of the latency at the end over that at the beginning: the
                        medians of the last and the first three tenths of the time
    by_node             the same for each node, with the latencies, and its memory at the beginning,
                        at half of the time and at the end
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
import yaml
from ament_index_python.packages import get_package_prefix
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import WrenchStamped
from numpy.typing import NDArray
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import Imu, JointState
from trajectory_msgs.msg import JointTrajectory

sys.path.append(str(Path(__file__).resolve().parents[1] / "tools/robustness"))

# the harness is no package
from fault_cases import Batch
from fault_lab import SimulatedRobot, say

from com_msgs.msg import CenterOfMass, IdentificationState, TrunkCom
from com_ros.conversions import ns_to_stamp, stamp_to_ns

Stamps = NDArray[np.int64]

SHARE = Path(__file__).resolve().parents[1] / "src" / "robot_descriptions"
START_LIMIT = 120.0  # s, until the first answer
WARM_UP = 10.0  # s, at most a tenth of the time: caches and pools fill
# of time; latency is compared between the first and the last ones
WINDOWS, COMPARED = 10, 3
RSS_PERIOD = 2.0  # s
POSITION_NOISE = 1e-6  # rad


@dataclass(frozen=True)
class Kind:
    """A node that is soaked.

    Attributes:
        package: Of its program.
        topic: On which it answers each sample.
        message: Type of the answer.
        parameters: Of the node besides the robot's.
        every_sample: Whether each sample has an answer.
        answer_hz: Highest rate of the answers, where that is less than the samples'.
        robot: That stands.
    """

    package: str
    topic: str
    message: type
    parameters: dict[str, Any] = field(default_factory=dict)
    every_sample: bool = True
    answer_hz: float = math.inf
    robot: str = "hoap2"


KINDS = {
    "sesc_publisher": Kind("com_estimation", "com", CenterOfMass, {"use_imu": True}),
    "trunk_estimator": Kind(
        "com_estimation", "trunk_com", TrunkCom, answer_hz=200.0, robot="scalf2"
    ),
    "humanoid_com_estimator": Kind(
        "com_estimation", "com_corrected", CenterOfMass, answer_hz=200.0
    ),
    "com_balancer": Kind(
        "com_control",
        "joint_trajectory",
        JointTrajectory,
        # without gravity: the driver's IMU does not move with the joints
        {
            "autostart": True,
            "rate_hz": 2000.0,
            "use_imu": False,
            "control.upright": False,
        },
    ),
    "com_identification": Kind(
        "com_identification",
        "identification/state",
        IdentificationState,
        every_sample=False,
    ),
}
LONG = ("sesc_publisher", "com_balancer")  # that --full runs


def main() -> int:
    """Soak the nodes."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--minutes", type=float, default=10.0, help="for each node")
    parser.add_argument(
        "--rate", type=float, default=1000.0, help="joint_states a second"
    )
    parser.add_argument(
        "--full", action="store_true", help=f"30 minutes of {' and '.join(LONG)}"
    )
    parser.add_argument("--nodes", nargs="+", default=list(KINDS), choices=list(KINDS))
    options = parser.parse_args()
    os.environ.setdefault("ROS_DOMAIN_ID", str(1 + os.getpid() % 100))
    names = LONG if options.full else options.nodes
    minutes = 30.0 if options.full else options.minutes
    by_node = {}
    for name in names:
        by_node[name] = soak(name, 60.0 * minutes, options.rate)
        say(f"{name}: {json.dumps(by_node[name])}")
    ratios = [r["p99_ratio"] for r in by_node.values() if r["p99_ratio"] is not None]
    print(
        json.dumps(
            {
                "minutes": round(minutes, 2),
                "rate_hz": min(r["rate_hz"] for r in by_node.values()),
                "lost": sum(r["lost"] for r in by_node.values()),
                "rss_slope_mb_h": max(r["rss_slope_mb_h"] for r in by_node.values()),
                "p99_ratio": max(ratios, default=None),
                "by_node": by_node,
            }
        ),
        flush=True,
    )
    return 0


def soak(name: str, seconds: float, rate_hz: float) -> dict[str, Any]:
    """Run one node for a time; figures as in the last line."""
    kind = KINDS[name]
    with tempfile.TemporaryDirectory() as folder:
        node = start_node(name, kind, Path(folder))
        driver = multiprocessing.get_context("spawn").Process(
            target=drive, args=(kind.robot, rate_hz), daemon=True
        )
        driver.start()
        try:
            listener = Listener(kind)
            listener.run(START_LIMIT, lambda: bool(listener.answers))
            if not listener.answers:
                raise SystemExit(f"{name} does not answer within {START_LIMIT:g} s")
            listener.run(min(WARM_UP, 0.1 * seconds))
            listener.clear()
            memory: list[tuple[float, float]] = []
            end = time.monotonic() + seconds
            while (left := end - time.monotonic()) > 0.0:
                memory.append((time.monotonic(), rss_mb(node.pid)))
                listener.run(min(RSS_PERIOD, left))
                for process, what in (
                    (node.poll(), name),
                    (driver.exitcode, "the driver"),
                ):
                    if process is not None:
                        raise SystemExit(f"{what} ended with code {process}")
            found = listener.figures(seconds, kind) | {"rss_slope_mb_h": slope(memory)}
            moments = (0, len(memory) // 2, -1)
            found["rss_mb"] = [round(memory[i][1], 2) for i in moments]
            return {"minutes": round(seconds / 60.0, 2), **found}
        finally:
            driver.terminate()
            driver.join()
            node.terminate()
            node.wait(20.0)


def start_node(name: str, kind: Kind, folder: Path) -> subprocess.Popen[bytes]:
    """Start the installed program."""
    robot = {
        "robot_description": (SHARE / "urdf" / f"{kind.robot}.urdf").read_text(),
        "robot_config": str(SHARE / "config" / f"{kind.robot}.yaml"),
    }
    file = folder / "parameters.yaml"
    values = {"/**": {"ros__parameters": robot | kind.parameters}}
    file.write_text(yaml.safe_dump(values, width=1e9))
    program = Path(get_package_prefix(kind.package)) / "lib" / kind.package / name
    return subprocess.Popen(
        [program, "--ros-args", "--params-file", file], stdout=sys.stderr
    )


def drive(robot_name: str, rate_hz: float) -> None:
    """Publish a standing robot's messages, its joints where commands put them, until killed."""
    robot = SimulatedRobot(robot_name, 1.0 / rate_hz)
    at_rest = [robot.advance(ns_to_stamp(0)) for _ in range(round(rate_hz))][-1]
    rng = np.random.default_rng(0)
    batches = [_noisy(at_rest, rng) for _ in range(200)]
    moved = np.zeros(robot.model.n_joints)  # by commands
    rest = np.array(next(msg for name, msg in at_rest if name == "joints").position)

    def follow(msg: JointTrajectory) -> None:
        index = [robot.model.joint_index(name) for name in msg.joint_names]
        moved[index] = np.array(msg.points[-1].positions) - rest[index]

    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    node = Node("soak_driver")
    node.create_subscription(JointTrajectory, "joint_trajectory", follow, 1)
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    kinds = {"joints": (JointState, "joint_states"), "imu": (Imu, "imu")}
    for i, foot in enumerate(robot.config.feet):
        kinds[f"wrench{i}"] = (WrenchStamped, foot.wrench_topic)
    publishers = {
        name: node.create_publisher(*kind, 200) for name, kind in kinds.items()
    }
    begin = time.perf_counter()
    for count in range(sys.maxsize):
        stamp = ns_to_stamp(time.time_ns())
        for name, msg in batches[count % len(batches)]:
            msg.header.stamp = stamp
            if name == "joints":
                position = rest + moved + rng.normal(0.0, POSITION_NOISE, len(rest))
                msg.position = array("d", position.tobytes())
            publishers[name].publish(msg)
        if count % 10 == 0:
            executor.spin_once(timeout_sec=0.0)
        time.sleep(max(0.0, begin + (count + 1) / rate_hz - time.perf_counter()))


def _noisy(batch: Batch, rng: np.random.Generator) -> Batch:
    """Messages with some noise: a driver that repeats itself counts as hung."""
    batch = copy.deepcopy(batch)
    for name, msg in batch:
        if name == "joints":
            msg.effort = (
                np.array(msg.effort) + rng.normal(0.0, 0.01, len(msg.name))
            ).tolist()
        elif name == "imu":
            msg.angular_velocity.x += rng.normal(0.0, 1e-3)
            msg.linear_acceleration.x += rng.normal(0.0, 1e-2)
        else:
            msg.wrench.force.z += rng.normal(0.0, 0.1)
    return batch


class Listener:
    """Notes when each answer comes, and each sample was sent."""

    def __init__(self, kind: Kind) -> None:
        if not rclpy.ok():
            rclpy.init()
        self._node = Node("soak_listener")
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(self._node)
        self.answers: list[tuple[int, int]] = []
        self.samples: list[int] = []
        self._skipped, self._skipped_before = 0, 0
        self._node.create_subscription(kind.message, kind.topic, self._on_answer, 2000)
        self._node.create_subscription(
            JointState, "joint_states", self._on_sample, 2000
        )
        self._node.create_subscription(
            DiagnosticArray, "/diagnostics", self._on_diagnostics, 10
        )

    def _on_answer(self, msg: Any) -> None:
        self.answers.append((stamp_to_ns(msg.header.stamp), time.time_ns()))

    def _on_sample(self, msg: JointState) -> None:
        self.samples.append(stamp_to_ns(msg.header.stamp))

    def _on_diagnostics(self, msg: DiagnosticArray) -> None:
        values = {
            pair.key: pair.value for status in msg.status for pair in status.values
        }
        self._skipped = int(values.get("skipped", self._skipped))

    def clear(self) -> None:
        """Forget what came so far."""
        self._skipped_before = self._skipped
        self.answers.clear()
        self.samples.clear()

    def run(self, seconds: float, until: Callable[[], bool] = lambda: False) -> None:
        """Listen for a time."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0.0 and not until():
            self._executor.spin_once(timeout_sec=left)

    def figures(self, seconds: float, kind: Kind) -> dict[str, Any]:
        """Rate, loss and latency."""
        self._executor.shutdown()
        self._node.destroy_node()
        answers = np.array(self.answers, dtype=np.int64).reshape(-1, 2)
        result: dict[str, Any] = {
            "rate_hz": round(len(self.samples) / seconds, 1),
            "answers": len(answers),
            "lost": 0,
            "skipped": self._skipped - self._skipped_before,
            "p99_ratio": None,
        }
        if not kind.every_sample:
            return result
        if math.isfinite(kind.answer_hz):
            unanswered = missed_beats(
                answers[:, 0], np.array(self.samples), 1e9 / kind.answer_hz
            )
        else:
            newest = answers[-1, 0] if len(answers) else 0
            expected = {stamp for stamp in self.samples if stamp <= newest}
            unanswered = len(expected - set(answers[:, 0].tolist()))
        result["lost"] = max(0, unanswered - result["skipped"])
        latency = (answers[:, 1] - answers[:, 0]) / 1e6
        windows = np.array_split(latency, WINDOWS)
        p99 = [float(np.percentile(window, 99)) for window in windows]
        first, last = np.median(p99[:COMPARED]), np.median(p99[-COMPARED:])
        result |= {
            "p99_ms": [round(float(first), 3), round(float(last), 3)],
            "p50_ms": round(float(np.median(latency)), 3),
            "p99_ratio": round(float(last / first), 3),
        }
        return result


def missed_beats(answers: Stamps, samples: Stamps, period: float) -> int:
    """How often no answer came although its period was over and there was a sample, stamps in ns.

    A driver that stalls on a busy machine leaves beats without a sample, which nobody can answer.
    """
    missed = 0
    for i in np.flatnonzero(np.diff(answers) > 1.5 * period):
        last, following = answers[i], answers[i + 1]
        for sample in np.sort(samples[(samples > last) & (samples < following)]):
            if sample >= last + period:
                missed, last = missed + 1, sample
    return missed


def rss_mb(pid: int) -> float:
    """Resident memory of a process, MB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def slope(memory: list[tuple[float, float]]) -> float:
    """Growth of memory, MB an hour, by least squares over the second half."""
    times, values = np.array(memory[len(memory) // 2 :]).T
    return round(float(np.polyfit(times - times[0], values, 1)[0]) * 3600.0, 2)


if __name__ == "__main__":
    sys.exit(main())
