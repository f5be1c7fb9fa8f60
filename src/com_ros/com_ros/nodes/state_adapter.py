r"""Publishes joint_states and imu (and wrenches) from a robot's own messages.

    ros2 run com_ros state_adapter --ros-args -p driver:=unitree-go2 -r lowstate:=/lowstate \
        -p robot_description:="$(cat go2.urdf)"

The parameter driver is the name of a robot whose state messages are known (topic lowstate), or the
path of a mapping, by which messages of any type are read: docs/your_data.md. Their package must be
installed and sourced, as for every ROS program that reads them. Messages are taken as bytes, so
that 500 Hz cost little.

Stamps are those of the messages' headers or of the robot's clock, brought to this machine's time,
else the time of receipt.
"""

import sys
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from ament_index_python.packages import (
    PackageNotFoundError,
    get_package_share_directory,
)
from geometry_msgs.msg import WrenchStamped
from rclpy.publisher import Publisher
from rosbags.interfaces import (
    Connection,
    ConnectionExtRosbag2,
    MessageDefinition,
    MessageDefinitionFormat,
)
from sensor_msgs.msg import Imu, JointState

from com_bags.channels import IMU, JOINT_STATE, WRENCH
from com_bags.conversions import Converter
from com_bags.exceptions import BagError
from com_bags.log_format import FORMATS, LogFormat, read_definitions
from com_bags.robot_states import STATE_TYPES, state_conversions
from com_model import RobotModel
from com_model.exceptions import ComModelError
from com_ros import diagnostics, qos
from com_ros.diagnostics import Diagnosis
from com_ros.exceptions import ParameterError
from com_ros.parameters import RobotParameters, parameter
from com_ros.receiving_node import EVERY_SAMPLE
from com_ros.robot_node import RobotNode

_KINDS = {JOINT_STATE: JointState, IMU: Imu, WRENCH: WrenchStamped}
_TOPICS = {JOINT_STATE: "joint_states", IMU: "imu"}
_UNDEFINED = MessageDefinition(MessageDefinitionFormat.NONE, "")


@dataclass(frozen=True)
class Parameters(RobotParameters):
    """Parameters of the node."""

    driver: str = parameter(
        "",
        f"whose messages are read: {', '.join(FORMATS)}, or the path of a mapping (YAML); empty: "
        "state messages of the robot that has the URDF's joints",
    )


class StateAdapter(RobotNode[Parameters]):
    """The node. `options` are passed to rclpy's Node.

    Attributes:
        converters: by topic, once its messages have been found.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__("state_adapter", Parameters, **options)
        self.converters: dict[str, list[tuple[Converter, Publisher]]] = {}
        driver = self.parameters.driver
        if not (driver in ("", *FORMATS) or driver.endswith((".yaml", ".yml"))):
            fix = f"give the path of a mapping (YAML), or one of {', '.join(FORMATS)}"
            raise ParameterError("driver", driver, fix)
        self._format: LogFormat | None = None
        self._missing = ""
        self._received = 0
        self.follow_robot_description()

    def use_model(self, model: RobotModel) -> None:
        """Takes the joints' names, by which messages become joint states.

        Args:
            model: of the robot.
        """
        driver, config = self.parameters.driver, self.config
        feet = () if config is None else config.feet
        known = driver if driver in FORMATS else ""
        self._format = LogFormat(
            tuple(model.joint_names),
            tuple(model.link_names),
            {foot.frame: foot.wrench_topic for foot in feet},
            Path(driver) if driver and not known else None,
            known,
        )
        for subscription in list(self.subscriptions):
            if subscription.topic_name in self.converters:
                self.destroy_subscription(subscription)
        for _, publisher in (pair for own in self.converters.values() for pair in own):
            self.destroy_publisher(publisher)
        self.converters = {}

    def watch(self) -> None:
        """Looks for the topics until they are there."""
        if self._format is None or self.converters:
            return
        there = {
            name: kinds[0]
            for name, kinds in self.get_topic_names_and_types()
            if len(kinds) == 1
        }
        try:
            self._missing = self._connect(self._format, there)
        except (ComModelError, ImportError) as error:
            self._missing = str(error)
        if self._missing:
            self.log.warn("input", self._missing)

    def diagnose(self) -> Diagnosis:
        """Returns what is missing, or what could not be converted."""
        problem = self.waiting or self._missing
        bad = sum(
            sum(converter.problems.values())
            for pairs in self.converters.values()
            for converter, _ in pairs
        )
        received, self._received = self._received, 0
        if not problem and not received:
            problem = f"nothing on {', '.join(self.converters)}: is the robot on?"
        level = diagnostics.ERROR if problem else diagnostics.OK
        values: dict[str, object] = {"received": received, "not_converted": bad}
        return Diagnosis(level, problem or "publishing", values)

    def _connect(self, about: LogFormat, there: dict[str, str]) -> str:
        """Subscribes the topics of the mapping or the state messages; returns what is missing."""
        if about.mapping is None:
            topic = self.resolve_topic_name("lowstate")
            kind = there.get(topic, "")
            if kind not in STATE_TYPES:
                what = f"is {kind}" if kind else "is not there yet"
                return (
                    f"{topic} {what}: expected {' or '.join(STATE_TYPES)}. Start the robot's "
                    "driver, remap lowstate, or give a mapping as driver"
                )
            names = *about.joints, *about.links
            conversions = state_conversions(kind, topic, names, about.name)
        else:
            conversions = about.conversions(
                [_connection(topic, kind) for topic, kind in there.items()]
            )
        found: dict[str, list[tuple[Converter, Publisher]]] = {}
        for each in conversions:
            connection = _connection(each.source, there[each.source])
            types = _with_definitions(about, connection).types(connection)
            converter = Converter(each, connection, types, live=True)
            target = _TOPICS.get(each.type_name, each.target)
            publisher = self.create_publisher(
                _KINDS[each.type_name], target, qos.RESULT
            )
            found.setdefault(each.source, []).append((converter, publisher))
        for topic in found:
            package, _, name = there[topic].partition("/msg/")
            self.create_subscription(
                getattr(import_module(f"{package}.msg"), name),
                topic,
                self._guarded(partial(self._on_message, topic)),
                qos.stream(EVERY_SAMPLE),
                raw=True,
            )
        self.converters = found
        return ""

    def _on_message(self, topic: str, payload: bytes) -> None:
        now = self.get_clock().now().nanoseconds
        self._received += 1
        for converter, publisher in self.converters[topic]:
            for made in converter.convert((payload,), (now,)).values():
                publisher.publish(made)
            for problem in converter.problems:
                self.log.warn(topic, f"{topic}: a message cannot be read: {problem}")


def _connection(topic: str, kind: str) -> Connection:
    """What a topic would be in a bag without definitions."""
    ext = ConnectionExtRosbag2("cdr", [])
    return Connection(0, topic, kind, _UNDEFINED, "", 0, ext, None)


def _with_definitions(about: LogFormat, connection: Connection) -> LogFormat:
    """The format with the definitions of the type's installed package, if it has them."""
    package = connection.msgtype.partition("/")[0]
    try:
        return about.with_definitions(
            read_definitions(Path(get_package_share_directory(package)))
        )
    except (PackageNotFoundError, BagError):
        return about


if __name__ == "__main__":
    sys.exit(StateAdapter.main())
