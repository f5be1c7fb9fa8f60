"""Prints which files of src a reader enters on five ways through the suite, and how many numbers.

    tools/in_env python tools/files_entered.py            one JSON line
    tools/in_env python tools/files_entered.py --files    also the files

The ways: a message of joint states to com (sesc_publisher), efforts and IMU to the trunk
(trunk_estimator), postures to a corrected URDF (identify), footsteps to joint targets (the planner
of ccgd_gait), a URDF to Sesc.com. Each runs once before, so that what happens at the start alone
does not count; kernels are compiled and show only the files that call them. Numbers: assignments of
plain numbers at the top of modules, and number fields of dataclasses.
"""

import argparse
import ast
import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "src"
MESSAGES = 400  # of the trunk's robot before the one that is followed
PERIOD_NS = 2_000_000


@contextmanager
def followed(files: set[str]) -> Iterator[None]:
    """Adds to a set the files of src whose functions are called meanwhile, in any thread.

    Args:
        files: Paths from src on.
    """
    known: dict[str, str] = {}

    def on_event(frame: FrameType, event: str, _: Any) -> None:
        name = frame.f_code.co_filename
        if event != "call" or name in known:
            return
        path = Path(name).resolve()
        inside = path.is_relative_to(SOURCES) and path.name != "__init__.py"
        known[name] = str(path.relative_to(SOURCES)) if inside else ""

    threading.setprofile(on_event)
    sys.setprofile(on_event)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        files |= set(known.values()) - {""}


def entered(run: Callable[[], object]) -> list[str]:
    """The files that a way enters when it runs a second time.

    Args:
        run: The way.
    """
    files: set[str] = set()
    run()
    with followed(files):
        run()
    return sorted(files)


def urdf_to_com() -> None:
    """A URDF's text becomes a model, and the chain gives the CoM of its neutral posture."""
    from com_model import RobotModel, Sesc, find_robot

    model = RobotModel.from_file(find_robot("hoap2").urdf)
    Sesc(model).com(model.neutral)


def footsteps_to_targets() -> None:
    """A walk of two steps is planned, down to the targets of the joints."""
    from com_control.walking import Biped, Walker, WalkRequest
    from com_model import load_robot

    model, config = load_robot("hoap2")
    biped = Biped.from_config(model, config)
    Walker(biped).plan(WalkRequest(steps=2), biped.posture)


def postures_to_urdf() -> None:
    """Six postures on both feet, as the URDF has them, become a corrected URDF."""
    from com_identification import identify, make_posture
    from com_identification.store.results import corrected_urdf
    from com_model import Sesc, load_robot
    from com_model.dynamics import GRAVITY
    from com_model.dynamics.link_frames import LinkFrames

    model, config = load_robot("hoap2")
    sesc, nominal = Sesc(model), config.nominal_posture(model)
    sensors = LinkFrames(model, [foot.wrench_frame for foot in config.feet])
    rng, postures = np.random.default_rng(1), []
    for _ in range(6):
        q = nominal + 0.05 * rng.standard_normal(model.n_joints)
        q = np.clip(q, model.lower, model.upper)
        R, p = sensors.poses(q)
        force = np.array([0.0, 0.0, 0.5 * model.mass * GRAVITY])
        moment = np.cross(sesc.com(q) - p.mean(axis=0), force)  # on each foot the half
        pairs = zip(R, config.feet, strict=True)
        wrenches = [
            foot.wrench_sign * np.concatenate((R_i.T @ force, R_i.T @ moment))
            for R_i, foot in pairs
        ]
        postures.append(make_posture(model, q, wrenches, samples=20))
    corrected_urdf(model, identify(model, config.feet, postures))


class _Robot:
    """A node that plays a robot's drivers for a node under test, in one process.

    Args:
        make_node: The node under test.
        kind: Type of the messages that it publishes.
        topic: Their topic.
        robot: Name of the robot.
    """

    def __init__(self, make_node: Any, kind: Any, topic: str, robot: str) -> None:
        import rclpy

        from com_model import find_robot, load_robot
        from com_ros.main import make_fast_executor

        self.model, self.config = load_robot(robot)
        urdf, path = find_robot(robot).urdf.read_text(), str(find_robot(robot).config)
        self.context = rclpy.Context()
        rclpy.init(context=self.context, domain_id=97)
        given = {"robot_description": urdf, "robot_config": path}
        overrides = [
            rclpy.Parameter(name, value=value) for name, value in given.items()
        ]
        self.node = make_node(context=self.context, parameter_overrides=overrides)
        self.drivers = rclpy.create_node("drivers", context=self.context)
        self.executor = make_fast_executor(self.context)
        for node in (self.node, self.drivers):
            self.executor.add_node(node)
        self.received: list[Any] = []
        self.drivers.create_subscription(kind, topic, self.received.append, 10)
        self.time_ns = 10**18
        self.publishers: dict[str, Any] = {}

    def send(self, topic: str, msg: Any) -> None:
        """Publishes a message with the stamp of this instant.

        Args:
            topic: Its topic.
            msg: With a header.
        """
        from com_ros.conversions import ns_to_stamp

        if topic not in self.publishers:
            made = self.drivers.create_publisher(type(msg), topic, 200)
            self.publishers[topic] = made
            self.spin_until(made.get_subscription_count)
        msg.header.stamp = ns_to_stamp(self.time_ns)
        self.publishers[topic].publish(msg)

    def spin_until(self, condition: Callable[[], object]) -> None:
        """Serves both nodes until a condition holds.

        Args:
            condition: Asked after each event.
        """
        while not condition():
            self.executor.spin_once(timeout_sec=0.05)

    def close(self) -> None:
        """Ends both nodes."""
        import rclpy

        self.executor.shutdown()
        for node in (self.node, self.drivers):
            node.destroy_node()
        rclpy.shutdown(context=self.context)


def joint_states_to_com() -> list[str]:
    """The files that one message of joint states enters until com is published."""
    from com_estimation.nodes.sesc_publisher import SescPublisher
    from com_msgs.msg import CenterOfMass
    from com_ros.conversions import numpy_to_joint_state

    robot = _Robot(SescPublisher, CenterOfMass, "com", "hoap2")

    def send_and_wait() -> None:
        robot.time_ns += PERIOD_NS
        robot.received.clear()
        names = list(robot.model.joint_names)
        robot.send("joint_states", numpy_to_joint_state(names, robot.model.neutral))
        robot.spin_until(lambda: robot.received)

    files = entered(send_and_wait)
    robot.close()
    return files


def efforts_to_trunk() -> list[str]:
    """The files that a message of joint states enters with its IMU until trunk_com is published."""
    from sensor_msgs.msg import Imu

    from com_estimation.nodes.trunk_estimator import TrunkEstimatorNode
    from com_model.dynamics import GRAVITY
    from com_msgs.msg import TrunkCom
    from com_ros.conversions import numpy_to_joint_state

    robot = _Robot(TrunkEstimatorNode, TrunkCom, "trunk_com", "scalf2")
    q, rng = robot.config.nominal_posture(robot.model), np.random.default_rng(1)

    def send_and_wait(count: int) -> None:
        names = list(robot.model.joint_names)
        for _ in range(count):
            robot.time_ns += PERIOD_NS
            noise = 1e-3 * rng.standard_normal(len(q))
            imu = Imu()
            imu.orientation.w = 1.0
            imu.linear_acceleration.z = GRAVITY
            imu.angular_velocity.x = float(noise[0])
            robot.send("imu", imu)
            state = numpy_to_joint_state(names, q + noise, 0.0 * q, 1.0 + noise)
            robot.send("joint_states", state)
            robot.executor.spin_once(timeout_sec=0.001)
        robot.received.clear()
        robot.spin_until(lambda: robot.received)

    send_and_wait(MESSAGES)
    files = entered(lambda: send_and_wait(20))
    robot.close()
    return files


def count_numbers() -> tuple[int, int]:
    """Counts numbers at the top of modules, and number fields of options."""
    constants = fields = 0
    for path in SOURCES.rglob("*.py"):
        tree = ast.parse(path.read_text())
        constants += sum(len(_numbers(node)) for node in tree.body)
        for node in ast.walk(tree):
            frozen = isinstance(node, ast.ClassDef) and any(
                "dataclass" in ast.unparse(d) for d in node.decorator_list
            )
            if isinstance(node, ast.ClassDef) and frozen:
                fields += sum(_is_number_field(each) for each in node.body)
    return constants, fields


def _numbers(node: ast.stmt) -> list[ast.expr]:
    if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
        return []
    values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
    return [value for value in values if _is_number(value)]


def _is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp):
        return _is_number(node.operand)
    if isinstance(node, ast.BinOp):
        return _is_number(node.left) and _is_number(node.right)
    return (
        isinstance(node, ast.Constant)
        and isinstance(node.value, int | float)
        and not isinstance(node.value, bool)
    )


def _is_number_field(node: ast.stmt) -> bool:
    """Whether a field of a class has a number for its default, also in parameter(...)."""
    value = node.value if isinstance(node, ast.AnnAssign) else None
    if isinstance(value, ast.Call) and value.args:
        value = value.args[0]
    return value is not None and _is_number(value)


def main() -> int:
    """Follow all ways and print the result."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", action="store_true", help="print the files, too")
    options = parser.parse_args()
    ways = {
        "joint_states_to_com": joint_states_to_com(),
        "efforts_to_trunk": efforts_to_trunk(),
        "postures_to_urdf": entered(postures_to_urdf),
        "footsteps_to_targets": entered(footsteps_to_targets),
        "urdf_to_com": entered(urdf_to_com),
    }
    if options.files:
        for way, files in ways.items():
            print(way, *files, sep="\n  ")
    constants, fields = count_numbers()
    counts = {way: len(files) for way, files in ways.items()}
    print(json.dumps({**counts, "constants": constants, "option_numbers": fields}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
