"""How a log becomes joint states, readings of the IMU and wrenches: what its messages mean."""

import argparse
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from rosbags.interfaces import Connection, MessageDefinitionFormat
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from com_bags.channels import JOINT_STATE, Conversion
from com_bags.decoding import message_types
from com_bags.exceptions import DefinitionError, TableError, TopicError
from com_bags.mapping import LogMapping
from com_bags.message_layout import Types
from com_bags.robot_states import (
    STATE_ROBOTS,
    STATE_TYPES,
    state_conversions,
    state_table,
)
from com_bags.tables import Table, read_table
from com_model import Foot, RobotModel

FORMATS = tuple(name for robot in STATE_ROBOTS for name in robot.formats)
"""Names of formats that are known without a mapping."""


@dataclass(frozen=True)
class LogFormat:
    """What is known of a log before it is read.

    Attributes:
        joints: Joints of the URDF, in its order.
        links: Its links.
        feet: Topic of each foot's wrench, by the foot's frame.
        mapping: File that says what is what; None: standard messages, or a known robot's.
        name: Of FORMATS; "": found by the names of joints and links.
        definitions: Definitions of message types that bags lack, by name.
    """

    joints: tuple[str, ...]
    links: tuple[str, ...] = ()
    feet: Mapping[str, str] = field(default_factory=dict)
    mapping: Path | None = None
    name: str = ""
    definitions: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        model: RobotModel,
        feet: Sequence[Foot],
        options: argparse.Namespace | None = None,
    ) -> "LogFormat":
        """What is known by the robot, and by the options of a command.

        Args:
            model: The robot.
            feet: Its feet.
            options: As add_log_options() adds them; None: nothing more is known.

        Raises:
            DefinitionError: The folder of definitions has none.
        """
        names = {foot.frame: foot.wrench_topic for foot in feet}
        about = cls(tuple(model.joint_names), tuple(model.link_names), names)
        if options is None:
            return about
        folder = options.definitions
        return replace(
            about,
            mapping=None if options.mapping is None else Path(options.mapping),
            name=options.format or "",
            definitions={} if folder is None else read_definitions(Path(folder)),
        )

    def with_definitions(self, definitions: Mapping[str, str]) -> "LogFormat":
        """The same with further definitions of message types, by name."""
        return replace(self, definitions={**self.definitions, **definitions})

    def conversions(self, connections: Sequence[Connection]) -> list[Conversion]:
        """What is made of a bag's messages.

        Args:
            connections: Of the bag.

        Raises:
            BagError: The mapping does not fit the bag, or no known robot has these joints.
        """
        mapping = self.mapping and LogMapping(self.mapping, self.joints, self.feet)
        if mapping and mapping.of_messages:
            return mapping.conversions(sorted({each.topic for each in connections}))
        topics = {(each.msgtype, each.topic) for each in connections}
        # state messages of a robot that nobody knows do not matter beside standard ones
        needed = self.name or JOINT_STATE not in {kind for kind, _ in topics}
        names, found = (*self.joints, *self.links), list[Conversion]()
        for kind, topic in sorted(topics):
            if kind in STATE_TYPES:
                with nullcontext() if needed else suppress(TopicError):
                    found += state_conversions(kind, topic, names, self.name)
        return found

    def table_mapping(self, table: Table) -> LogMapping:
        """What a table's columns are: by the mapping, or by the names of a state's fields.

        Args:
            table: The table.

        Raises:
            ConfigError: The mapping is no YAML file.
            BagError: There is none, and the columns are not those of a known robot.
        """
        data, path = None, self.mapping
        if path is None:
            path, names = Path(table.source), (*self.joints, *self.links)
            data = state_table(table, names, self.name)
            if data is None:
                raise TableError(
                    "a table needs a mapping of its columns: --mapping FILE. "
                    "`identify TABLE --robot ROBOT --guess` proposes one",
                    table.source,
                )
        return LogMapping(path, self.joints, self.feet, data)

    def table_types(self, path: str) -> set[str]:
        """Types of the messages that are made of a table's rows, at a glance.

        Args:
            path: Of the table.

        Raises:
            ConfigError: The mapping is no YAML file.
            BagError: The table cannot be read, or is that of another robot.
        """
        if self.mapping is not None:
            return LogMapping(self.mapping, self.joints, self.feet).types()
        with suppress(TableError):
            return self.table_mapping(read_table(path)).types()
        return set()

    def types(self, connection: Connection) -> Types:
        """Definitions of a connection's type: the bag's own, the user's, or those known here.

        Args:
            connection: Of the bag.

        Raises:
            DefinitionError: There are none, or they cannot be read.
        """
        name = connection.msgtype
        known = get_typestore(Stores.LATEST).fielddefs
        texts = dict(STATE_TYPES[name].definitions if name in STATE_TYPES else {})
        texts.update(self.definitions)
        try:
            if connection.msgdef.format != MessageDefinitionFormat.NONE:
                return {**known, **message_types(connection)}
            types: dict = dict(known)
            for each, text in texts.items():
                types.update(get_types_from_msg(text, each))
        except Exception as error:  # the parser raises many types
            raise DefinitionError(
                f"its definition cannot be read: {str(error)[:160]}", name
            ) from error
        if name not in types:
            package, _, file = name.partition("/msg/")
            raise DefinitionError(
                "the bag does not contain its definition. Give the folder of its package's .msg "
                f"files: --definitions DIR with {package}/msg/{file}.msg",
                name,
            )
        return types


def add_log_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options that say what a log's messages or columns mean."""
    add = parser.add_argument
    add(
        "--mapping",
        metavar="YAML",
        help="what the columns of a table or the fields of any messages are: docs/your_data.md",
    )
    add(
        "--format",
        choices=FORMATS,
        help="robot whose state messages these are; default: known by the URDF's joints",
    )
    add(
        "--definitions",
        metavar="DIR",
        help="folder of .msg files (PACKAGE/msg/NAME.msg) for bags without definitions",
    )


def read_definitions(folder: Path) -> dict[str, str]:
    """Texts of a folder's .msg files, by the names of their types.

    Args:
        folder: with PACKAGE/msg/NAME.msg below it, or itself a package's.

    Raises:
        DefinitionError: there are none.
    """
    found = {}
    for file in sorted(folder.glob("**/msg/*.msg")):
        with file.open("rb") as stream:
            # a file of 64 KiB at most
            text = stream.read(2**16).decode(errors="replace")
        found[f"{file.parent.parent.name}/msg/{file.stem}"] = text
    if not found:
        raise DefinitionError(f"no PACKAGE/msg/NAME.msg file is in {folder}", "any")
    return found
