"""The robot of a recording: its URDF, configuration, settings and topics."""

import argparse
from dataclasses import dataclass, replace

from com_bags import IMU, Bag, LogFormat, SensorTopics, TopicRequest, find_topics
from com_identification.settings import IdentificationSettings
from com_model import Foot, RobotConfig, RobotModel, robots
from com_model.exceptions import ConfigError

SLOW = ("sway", "hang")  # of --use


@dataclass(frozen=True, eq=False)
class RobotInputs:
    """The robot of a recording, as the user describes it.

    Attributes:
        model: as its URDF has it.
        config: without feet where there is no file.
        feet: with force sensors.
        settings: of the identification.
        paths: paths as the user wrote them, by name.
        log_format: what the recordings' messages and columns mean.
    """

    model: RobotModel
    config: RobotConfig
    feet: tuple[Foot, ...]
    settings: IdentificationSettings
    paths: dict[str, str]
    log_format: LogFormat

    @property
    def imu_link(self) -> str | None:
        """The link of the IMU; None: no IMU is used. ConfigError where it is not configured."""
        if not self.settings.fit.use_imu:
            return None
        if self.config.imu_link is not None:
            return self.config.imu_link
        raise ConfigError(
            "the IMU should be used: say which link carries it, as imu: {link: NAME}",
            self.config.source,
            "imu.link",
        )


def load_robot(arguments: argparse.Namespace) -> RobotInputs:
    """Reads URDF, configuration and settings.

    Args:
        arguments: of identify.

    Raises:
        ComModelError: says what is wrong and how to fix it.
    """
    files = robots.find_robot(arguments.robot, arguments.config)
    model, config = robots.load_robot(arguments.robot, arguments.config)
    settings = IdentificationSettings()
    if arguments.settings is not None:
        settings = IdentificationSettings.from_file(arguments.settings)
        settings.check(model)
    imu, effort = settings.fit.use_imu or bool(arguments.imu), arguments.effort
    effort = settings.fit.use_effort or effort
    settings = replace(
        settings, fit=replace(settings.fit, use_imu=imu, use_effort=effort)
    )
    feet = _bare_feet(arguments.wrench, model) if files.config is None else config.feet
    if not feet:
        raise ConfigError(
            "no feet with force sensors: say where they are, as feet: {l_sole: {...}}",
            "--config is missing" if files.config is None else config.source,
            "feet",
        )
    given = ("settings", "marks", "mapping", "tip_over")
    values = {name: getattr(arguments, name) for name in given}
    values |= {
        "files": ", ".join(arguments.files),
        "robot": files.urdf,
        "config": files.config,
    }
    paths = {name: str(value) for name, value in values.items() if value}
    return RobotInputs(
        model,
        config,
        feet,
        settings,
        paths,
        LogFormat.of(model, config.feet, arguments),
    )


def walk_inputs(robot: RobotInputs) -> RobotInputs:
    """Returns the robot with its IMU, without force sensors.

    Args:
        robot: of the recordings.
    """
    fit = replace(robot.settings.fit, use_imu=True)
    return replace(robot, feet=(), settings=replace(robot.settings, fit=fit))


def has_imu(bag: Bag) -> bool:
    """Returns whether a recording has readings of an IMU.

    Args:
        bag: the recording.
    """
    return any(topic.type_name == IMU for topic in bag.topics())


def without_imu(robot: RobotInputs) -> RobotInputs:
    """Returns the robot without its IMU.

    Args:
        robot: of a recording.
    """
    fit = replace(robot.settings.fit, use_imu=False)
    return replace(robot, settings=replace(robot.settings, fit=fit))


def choose_topics(
    arguments: argparse.Namespace, bag: Bag, robot: RobotInputs
) -> SensorTopics:
    """Finds the topics of a bag that will be read.

    Args:
        arguments: Of identify, with the topics that the user names.
        bag: The recording.
        robot: Its robot.

    Raises:
        BagError: A topic is missing, or several could be meant.
    """
    wrenches = dict(each.split("=", 1) for each in arguments.wrench)
    names = arguments.marker_topic, arguments.known_com
    request = TopicRequest(arguments.joint_states, arguments.imu, wrenches, *names)
    return find_topics(
        bag.topics(), robot.feet, request, robot.settings.fit.use_imu, str(bag.path)
    )


def _bare_feet(requests: list[str], model: RobotModel) -> tuple[Foot, ...]:
    """Feet without configuration: links of the URDF that --wrench names."""
    feet = []
    for request in requests:
        link, _, topic = request.partition("=")
        model.link_index(link)  # raises, and lists the links
        feet.append(Foot(link, wrench_topic=topic, wrench_frame=link))
    return tuple(feet)
