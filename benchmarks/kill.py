"""Kills the identification node at any moment; what it acknowledged is there afterwards.

A robot stands in one posture after another. The node is asked to capture, save, identify and
export, and killed (SIGKILL) between requests or while it serves one. Then it starts again on the
same files: every posture, save and export that was acknowledged must be there, every file in its
directories whole, and neither node nor worker may have left a traceback.

Each lane has its own ROS domain, robot and directories. Nodes are forked from a process that has
loaded its libraries, which saves the seconds that a start from the disk takes.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import queue
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from geometry_msgs.msg import WrenchStamped
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rich.console import Console
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from com_identification.exceptions import IdentificationError
from com_identification.regression.statics import Statics
from com_identification.store.store import PostureStore
from com_model import ComModelError, RobotConfig, RobotModel
from com_model.dynamics import GRAVITY
from com_model.strict_yaml import read_yaml
from com_msgs import srv
from com_ros.conversions import ns_to_stamp, numpy_to_joint_state, numpy_to_wrench
from com_ros.qos import LATCHED

ROBOTS = Path(__file__).resolve().parents[1] / "src" / "robot_descriptions"
RATE_HZ = 50
PATIENCE_S = 90.0
MODES = ("between", "capture", "save", "compute", "export")
ORDER = (0, 1, 2, 1, 3, 1, 4, 2, 1, 0)  # of ten kills in a row
LONGEST_S = {"between": 0.0, "capture": 0.8, "save": 0.3, "compute": 5.0, "export": 0.3}
PARAMETERS = {
    "capture.collect_time": 0.1,
    "capture.settle_time": 0.1,
    "capture.frozen_time": 0.0,
    "fit.folds": 2,
    "state_rate_hz": 1.0,
    "check_rate_hz": 1.0,
}


@dataclass
class Tally:
    """What a lane counts."""

    kills: int = 0
    acknowledged: int = 0
    lost: int = 0
    unreadable: int = 0
    tracebacks: int = 0
    failed: int = 0
    modes: Counter[str] = field(default_factory=Counter)
    in_time: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)


def main() -> int:
    """Runs it; the last line is JSON."""
    arguments = _parser().parse_args()
    kills = 100 if arguments.full else arguments.kills
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["com_identification.nodes.com_identification"])
    tally, todo = Tally(), queue.SimpleQueue[int]()
    for number in range(kills):
        todo.put(number)
    deadline = time.monotonic() + (
        float("inf") if arguments.full else 60.0 * arguments.minutes
    )
    with tempfile.TemporaryDirectory(prefix="kill.") as top:
        lanes = []
        for k in range(arguments.lanes):
            folder = Path(top) / f"lane{k}"
            domain = int(os.environ.get("ROS_DOMAIN_ID", "0")) + 10 * k
            lane = Lane(folder, domain % 100, context, tally, np.random.default_rng(k))
            lanes.append(threading.Thread(target=lane.run, args=(todo, deadline)))
        for thread in lanes:
            thread.start()
        with Console(stderr=True).status("killing") as status:
            while any(thread.is_alive() for thread in lanes):
                status.update(f"{tally.kills} of {kills} kills")
                time.sleep(0.5)
    _print(tally)
    names = ("kills", "acknowledged", "lost", "unreadable", "tracebacks", "failed")
    print(json.dumps({name: getattr(tally, name) for name in names}))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument(
        "--minutes", type=float, default=9.0, help="after which it ends early"
    )
    parser.add_argument(
        "--full", action="store_true", help="100 kills, however long they take"
    )
    parser.add_argument("--lanes", type=int, default=2, help="nodes at a time")
    return parser


def _print(tally: Tally) -> None:
    print(f"{'killed':12}{'kills':>6}{'answered before':>17}")
    for mode in MODES:
        print(f"{mode:12}{tally.modes[mode]:6}{tally.in_time[mode]:17}")
    for problem in tally.problems:
        print(problem)


class StandingBiped:
    """A biped with its readings; it stands on its feet as its URDF says."""

    def __init__(self) -> None:
        self.config_path = ROBOTS / "config" / "biped3.yaml"
        self.config = RobotConfig.from_file(self.config_path)
        self.model = RobotModel.from_file(ROBOTS / "urdf" / "biped3.urdf")
        self._statics = Statics(self.model)
        self._links = [
            self.model.link_index(foot.wrench_frame) for foot in self.config.feet
        ]

    def wrenches(self, q: np.ndarray) -> list[np.ndarray]:
        """Readings (6,) of the feet, which carry half of the weight each."""
        poses = self._statics.poses(q[None])
        com = (
            self._statics.first_moment(poses)[0]
            @ self._statics.parameters
            / self.model.mass
        )
        R, p = self._statics.link_frames(poses, self._links)
        force = np.array([0.0, 0.0, 0.5 * self.model.mass * GRAVITY])
        return [
            np.concatenate(
                (R[0, i].T @ force, R[0, i].T @ np.cross(com - p[0, i], force))
            )
            for i in range(len(self._links))
        ]


class Client:
    """The robot's drivers and the client of the services, in a ROS context of its own."""

    def __init__(self, robot: StandingBiped, domain: int) -> None:
        self._context = rclpy.Context()
        rclpy.init(context=self._context, domain_id=domain)
        self._node = Node(f"kill_{domain}", context=self._context)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)
        self._robot, self.q = robot, np.zeros(robot.model.n_joints)
        make = self._node.create_publisher
        self._description = make(String, "robot_description", LATCHED)
        self._description.publish(String(data=robot.model.xml))
        self._joints = make(JointState, "joint_states", 50)
        self._wrenches = [
            make(WrenchStamped, f.wrench_topic, 50) for f in robot.config.feet
        ]
        self._clients: dict[str, Any] = {}
        self._node.create_timer(1.0 / RATE_HZ, self._on_timer)
        self._rng = np.random.default_rng(0)

    def ask(self, kind: Any, name: str, /, **fields: Any) -> Any:
        """Calls a service when it is there; returns the future of its answer."""
        if name not in self._clients:
            self._clients[name] = self._node.create_client(
                kind, f"com_identification/{name}"
            )
        client = self._clients[name]
        self.spin(client.service_is_ready, PATIENCE_S, f"no service {name}")
        return client.call_async(kind.Request(**fields))

    def call(self, kind: Any, name: str, /, **fields: Any) -> Any:
        """Calls a service and returns its answer."""
        future = self.ask(kind, name, **fields)
        self.spin(future.done, PATIENCE_S, f"no answer of {name}")
        return future.result()

    def spin(self, done: Callable[[], bool], seconds: float, problem: str = "") -> bool:
        """Plays the robot until something is done, or for some time."""
        end = time.monotonic() + seconds
        while not done():
            left = end - time.monotonic()
            if left <= 0.0:
                if problem:
                    raise TimeoutError(problem)
                return False
            self._executor.spin_once(min(left, 0.005))
        return True

    def close(self) -> None:
        """Leaves ROS, so that the next one does not see what is left of a killed node."""
        self._executor.shutdown()
        self._node.destroy_node()
        rclpy.shutdown(context=self._context)

    def _on_timer(self) -> None:
        stamp = ns_to_stamp(time.time_ns())
        names = list(self._robot.model.joint_names)
        self._joints.publish(numpy_to_joint_state(names, self.q, stamp=stamp))
        for publisher, wrench in zip(
            self._wrenches, self._robot.wrenches(self.q), strict=True
        ):
            noise = self._rng.normal(0.0, 0.01, 6)
            message = WrenchStamped(wrench=numpy_to_wrench(wrench + noise))
            message.header.stamp = stamp
            publisher.publish(message)


def _run_node(words: list[str], domain: int, log: str) -> None:
    """The node's main(), in a process of its own whose output goes to a file."""
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    os.environ["ROS_DOMAIN_ID"] = str(domain)
    sys.argv = ["com_identification", *words]
    from com_identification.nodes.com_identification import ComIdentification

    ComIdentification.main()


class Lane:
    """One node after another on the same files."""

    def __init__(
        self,
        folder: Path,
        domain: int,
        context: Any,
        tally: Tally,
        rng: np.random.Generator,
    ) -> None:
        self.folder, self.domain, self._context = folder, domain, context
        self.tally, self._rng, self.robot = tally, rng, StandingBiped()
        self.store, self.export = folder / "store", folder / "export"
        self.store.mkdir(parents=True)
        self.export.mkdir()
        self.postures: set[str] = set()  # labels that were acknowledged
        self.files: set[Path] = set()
        self._count = 0

    def run(self, todo: queue.SimpleQueue[int], deadline: float) -> None:
        """Kills one node for each number."""
        while time.monotonic() < deadline:
            try:
                number = todo.get_nowait()
            except queue.Empty:
                break
            try:
                self._round(MODES[ORDER[number % len(ORDER)]], number)
            except Exception as error:
                self.tally.problems.append(
                    f"kill {number}: {type(error).__name__}: {error}"
                )
                self.tally.failed += 1
        self._check_files()

    def _round(self, mode: str, number: int) -> None:
        log = self.folder / f"{number}.log"
        process = self._context.Process(
            target=_run_node, args=(self._words(), self.domain, str(log))
        )
        process.start()
        client = Client(self.robot, self.domain)
        try:
            self._check_postures(client)
            self._capture(client)
            if mode in ("compute", "export"):
                while len(self.postures) < 10:
                    self._capture(client)
            if mode == "export":
                answer = client.call(srv.IdentifyLinks, "identify_links")
                if not answer.success:
                    raise IdentificationError(answer.message)
            future, acknowledge = self._request(client, mode)
            client.spin(future.done if future else bool, self._delay(mode))
            process.kill()
            process.join()
            self.tally.modes[mode] += 1
            self.tally.kills += 1
            if future is not None:  # what was sent before the kill may arrive after it
                client.spin(future.done, 0.2)
                if future.done() and future.result().success:
                    self.tally.in_time[mode] += 1
                    acknowledge(future.result())
        finally:
            client.close()
            process.kill()
            process.join()
        text = log.read_text(errors="replace")
        if "Traceback" in text or "terminate called" in text:
            self.tally.tracebacks += 1
            self.tally.problems.append(f"kill {number} ({mode}): {text[-1500:]}")

    def _words(self) -> list[str]:
        values = {
            "robot_config": str(self.robot.config_path),
            "storage_directory": str(self.store),
            "export_directory": str(self.export),
            **PARAMETERS,
        }
        words = [
            word
            for name, value in values.items()
            for word in ("-p", f"{name}:={value}")
        ]
        return ["--ros-args", "--log-level", "warn", *words]

    def _delay(self, mode: str) -> float:
        return LONGEST_S[mode] * float(self._rng.random()) ** 2  # more often early

    def _move(self, client: Client) -> str:
        """Brings the robot into another posture; returns a label for it."""
        self._count += 1
        client.q = self._rng.uniform(-0.6, 0.6, self.robot.model.n_joints)
        return f"{self.domain}/{self._count}"

    def _capture(self, client: Client) -> None:
        label = self._move(client)
        answer = client.call(srv.CapturePosture, "capture_posture", label=label)
        if not answer.success:
            raise IdentificationError(answer.message)
        self._acknowledge_posture(label)

    def _request(self, client: Client, mode: str) -> tuple[Any, Callable[[Any], None]]:
        """Asks for what the node is to be killed in; returns what to do when it is answered."""
        if mode == "capture":
            label = self._move(client)
            future = client.ask(srv.CapturePosture, "capture_posture", label=label)
            return future, lambda _: self._acknowledge_posture(label)
        if mode == "save":
            self._count += 1
            name = f"save{self._count}"
            return (
                client.ask(srv.SavePostures, "save", name=name),
                lambda answer: self._acknowledge_file(answer.path),
            )
        if mode == "export":
            name = f"export{int(self._rng.integers(3))}"
            return (
                client.ask(srv.ExportUrdf, "export_urdf", name=name, overwrite=True),
                lambda answer: self._acknowledge_file(answer.path),
            )
        if mode == "compute":
            return client.ask(srv.IdentifyLinks, "identify_links"), lambda _: None
        return None, lambda _: None

    def _acknowledge_posture(self, label: str) -> None:
        self.postures.add(label)
        self.tally.acknowledged += 1

    def _acknowledge_file(self, path: str) -> None:
        self.files.add(Path(path))
        self.tally.acknowledged += 1

    def _check_postures(self, client: Client) -> None:
        end = time.monotonic() + PATIENCE_S
        while not (answer := client.call(srv.GetPostures, "get_postures")).success:
            if time.monotonic() > end:  # it has no robot_description at first
                raise IdentificationError(answer.message)
        missing = self.postures - {posture.label for posture in answer.postures}
        self.tally.lost += len(missing)
        self.postures -= missing
        if missing:
            self.tally.problems.append(f"lost postures: {sorted(missing)}")

    def _check_files(self) -> None:
        """Reads every file; those that were acknowledged must be there."""
        missing = [path for path in self.files if not path.is_file()]
        self.tally.lost += len(missing)
        for path in sorted([*self.store.iterdir(), *self.export.iterdir()]):
            try:
                if path.suffix == ".urdf":
                    RobotModel.from_file(path)
                elif path.suffix == ".db":
                    with PostureStore(
                        path, self.robot.model, self.robot.config.feet
                    ) as store:
                        labels = {posture.label for posture in store.postures.values()}
                    if path.stem == "postures" and self.postures - labels:
                        self.tally.lost += len(self.postures - labels)
                elif path.suffix == ".yaml":
                    read_yaml(path)
            except (ComModelError, IdentificationError) as error:
                self.tally.unreadable += 1
                self.tally.problems.append(f"unreadable: {error}")


if __name__ == "__main__":
    raise SystemExit(main())
