"""Mapping files: which columns of a table, or fields of messages, are joints, IMU and wrenches.

A channel is a column ("hip_r"), columns with the same beginning or end ("q_*") or with consecutive
numbers ("q[0:12]", "columns 2-13"), numbers of a topic's messages ("/lowstate
motor_state[0:12].q"), one of these with its unit ({field: ..., unit: deg, scale: -1.0, offset:
0.0}: scale x unit x value + offset), a constant number, or a list of these. docs/your_data.md shows
all keys.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from com_bags.channels import IMU, JOINT_STATE, WRENCH, Channel, Conversion
from com_bags.exceptions import TableError
from com_bags.message_layout import expand_path
from com_bags.tables import Table, join_runs, run_notes
from com_model.arrays import Array, Indices
from com_model.exceptions import ConfigError, closest, listing, quote
from com_model.strict_yaml import Section, read_yaml

UNITS: dict[str, float] = {
    "1": 1.0,
    "rad": 1.0,
    "deg": np.pi / 180.0,
    "rad/s": 1.0,
    "deg/s": np.pi / 180.0,
    "m": 1.0,
    "cm": 0.01,
    "mm": 1e-3,
    "N": 1.0,
    "kN": 1e3,
    "kgf": 9.80665,
    "lbf": 4.4482216152605,
    "N m": 1.0,
    "N mm": 1e-3,
    "m/s^2": 1.0,
    "g": 9.80665,
    "s": 1.0,
    "ms": 1e-3,
    "us": 1e-6,
    "ns": 1e-9,
}
"""Factors from a unit to the one of standard messages."""

_RANGE = re.compile(r"columns (\d+)-(\d+)")  # of a file without names
_ORDERS = {"xyzw": (0, 1, 2, 3), "wxyz": (1, 2, 3, 0)}
_OF_JOINTS = ("position", "velocity", "effort")
_OF_IMU = {
    "orientation": "orientation",
    "gyro": "angular_velocity",
    "acceleration": "linear_acceleration",
}
_OF_TABLE = ("table", "time", "rate")  # of a section with a table of its own

Placed = tuple[str, tuple[Channel, ...]]
"""Topic ("" of a table, or of constants), and channels of one number or more."""


@dataclass(frozen=True)
class TableRows:
    """When a table's rows are, and which of them count.

    Attributes:
        time: Of a row, s; None: they have a constant rate.
        rate: Rows per second.
        use: Intervals in s from the first row; all where there are none.
        leave_out: Intervals in s from the first row.
    """

    time: Channel | None
    rate: float
    use: Sequence[Sequence[float]]
    leave_out: Sequence[Sequence[float]]

    def times(self, table: Table) -> tuple[Array, Indices, list[str]]:
        """When the rows of a table are.

        Args:
            table: N rows.

        Returns:
            (N,) s of all rows, those that count in the order of time, and what is unusual, in
            sentences.

        Raises:
            TableError: The times are in another unit, or no row is left.
        """
        count, source = table.rows, table.source
        seconds = np.arange(count) / (self.rate or 1.0)
        if self.time is not None:
            column = table.columns.get(self.time.path, np.zeros(count))
            seconds = self.time.values(column[:, None])[:, 0]
        known = np.flatnonzero(np.isfinite(seconds))
        steps = np.diff(seconds[known])
        # rows of several topics follow each other closely
        usual = float(np.mean(steps[steps > 0.0])) if np.any(steps > 0.0) else 0.0
        if count > 1 and not 1e-5 <= usual <= 1.0:
            raise TableError(
                f"mapping: time: the time between rows is {usual:.3g} s: correct its unit, or the "
                "column",
                source,
            )
        seconds, starts = join_runs(seconds)
        notes = run_notes(table, starts)
        again = np.zeros(count, dtype=np.bool_)
        again[known[1:]] = np.diff(seconds[known]) == 0.0
        if again.any():
            notes.append(
                f"{again.sum()} rows have the time of the row before: left out"
            )
        since = seconds - seconds[known[0]] if len(known) else seconds
        before = (np.abs(since) < 1e9) & ~again
        keep = before.copy()
        if len(self.use):
            keep &= np.any([(a <= since) & (since <= b) for a, b in self.use], axis=0)
        for a, b in self.leave_out:
            keep &= (since < a) | (since > b)
        if not keep.any():
            raise TableError("no row is left by use and leave_out", source)
        if out := int((before & ~keep).sum()):
            notes.append(f"{out} of {count} rows are left out by the mapping")
        return seconds, np.flatnonzero(keep), notes


class ChannelReader:
    """Reads channels of a mapping, of the topics of a bag or the columns of a table.

    Args:
        joints: Joints of the URDF, in its order.
        topics: Of the bag.
        columns: Of the table; None: the log is a bag.
    """

    def __init__(
        self,
        joints: Sequence[str],
        topics: Sequence[str] = (),
        columns: Sequence[str] | None = None,
    ) -> None:
        self._joints, self._topics, self._columns = tuple(joints), topics, columns

    def joint_fields(
        self, mapping: Section
    ) -> tuple[tuple[str, ...], dict[str, Placed]]:
        """Reads the joints: lists of numbers, or joint by joint.

        Args:
            mapping: The whole mapping, with sections joints, velocities, efforts.

        Returns:
            Names of the joints, and channels of their position, velocity and effort.

        Raises:
            ConfigError: There are no positions, or none of the URDF's joints.
        """
        section = mapping.section("joints")
        fields: dict[str, Placed] = {}
        if any(section.raw(key) is not None for key in _OF_JOINTS):
            names = section.names("names")
            for field in _OF_JOINTS:
                value = section.raw(field)
                if value is not None:
                    fields[field] = self.channels(value, section, field)
                    names = names or self._stems(value)
            names = names or self._joints
        else:
            names = tuple(n for n in section.entries() if n not in _OF_TABLE)
            fields["position"] = self._by_joint(section, names)
            # sections by joint
            for key, field in {"velocities": "velocity", "efforts": "effort"}.items():
                further = mapping.section(key)
                if further.entries():
                    further = mapping.section(key)
                    fields[field] = self._by_joint(further, names)
                    further.finish()
        for key in _OF_TABLE:
            section.raw(key)
        section.finish()
        if "position" not in fields:
            raise section.error("expected the joints' positions", "position")
        if not set(names) & set(self._joints):
            raise section.error(
                "expected a column, or its constant value, of each joint of the URDF "
                f"({listing(self._joints, 6)}), or {listing(_OF_JOINTS)}; got "
                f"{listing(names, 6) or 'nothing'}"
            )
        return names, fields

    def rows(
        self, section: Section, mapping: Section, postures: bool = False
    ) -> TableRows:
        """Reads when a table's rows are, and which of them count.

        Args:
            section: Of the table.
            mapping: The whole mapping, whose time and intervals count for all tables.
            postures: Whether rows are postures, a second each.

        Raises:
            ConfigError: There is neither a column of time nor a rate.
        """
        rate, value = section.number("rate", 0.0, 1e-6), section.raw("time")
        value = mapping.raw("time") if value is None and not rate else value
        rate, value = (1.0, None) if postures else (rate, value)
        if value is None and not rate:
            raise section.error("expected the column of time, or rate: HZ", "time")
        time = None
        if value is not None:
            _, (time,) = self.channels(value, section, "time", 1)
        use, out = (mapping.rows(key, 2) for key in ("use", "leave_out"))
        return TableRows(time, rate, use, out)

    def channels(
        self, value: Any, section: Section, key: str, count: int | None = None
    ) -> Placed:
        """Reads a channel, or a list of them.

        Args:
            value: Of the key.
            section: In which it is.
            key: Its key, for messages.
            count: How many channels it must be; None: any number.

        Raises:
            ConfigError: It is none, or names what is not there.
        """
        values = value if isinstance(value, list) else [value]
        if not values or value is None:
            raise section.error("expected a channel, or a list of them", key)
        found = joined([self._one(each, section, key) for each in values], section, key)
        if count not in (None, len(found[1])):
            raise section.error(f"expected {count} channels, got {len(found[1])}", key)
        return found

    def _by_joint(self, section: Section, names: Sequence[str]) -> Placed:
        """Channels of one number for each joint; NaN where one has none."""
        placed = [
            self.channels(section.raw(name, np.nan), section, name, 1) for name in names
        ]
        return joined(placed, section)

    def _one(self, value: Any, section: Section, key: str) -> Placed:
        """Channels of a text, a number, or a channel with its unit."""
        if isinstance(value, int | float) and not isinstance(value, bool):
            return "", (Channel("", offset=float(value)),)
        data = {"field": value} if isinstance(value, str) else value
        own = Section(data, section.source, f"{section.path}.{key}".strip("."))
        text = own.text("field", "") or own.text("column", "")
        unit = UNITS[own.text("unit", "1", tuple(UNITS))]
        factors = own.raw("scale", 1.0)
        if isinstance(factors, list):
            factors = own.vector("scale", (1.0,) * len(factors))
        else:
            factors = (own.number("scale", 1.0),)
        offset = own.number("offset", 0.0)
        own.finish()
        scale = tuple(unit * factor for factor in factors)
        if self._columns is not None:
            return "", self._of_columns(text, scale, offset, own)
        topic, _, path = text.strip().partition(" ")
        if topic not in self._topics:
            meant = closest(topic, self._topics)
            problem = f"expected TOPIC FIELD, and no topic is {quote(topic)}"
            guess = f"; did you mean {meant}?" if meant else ""
            raise own.error(f"{problem}{guess}. There are: {listing(self._topics, 20)}")
        if not path.strip():
            raise own.error(
                f"{topic}: expected the field after the topic, as in /imu x.y"
            )
        return topic, (Channel(path.strip(), scale, offset),)

    def _of_columns(
        self, text: str, scale: tuple[float, ...], offset: float, section: Section
    ) -> tuple[Channel, ...]:
        """One channel for each column that a text names."""
        columns = self._columns or ()
        found = [text] if text in columns else _matching(text, columns)
        if not found:
            meant = closest(text, sorted(columns))
            guess = f"did you mean {quote(meant)}? " if meant else ""
            raise section.error(
                f"{quote(text)} is not a column of numbers; {guess}There are: "
                f"{listing(sorted(columns), 20)}"
            )
        if len(scale) not in (1, len(found)):
            raise section.error(
                f"{len(scale)} factors for {len(found)} columns {listing(found, 4)}",
                "scale",
            )
        factors = scale * (len(found) if len(scale) == 1 else 1)
        pairs = zip(found, factors, strict=True)
        return tuple(Channel(name, (factor,), offset) for name, factor in pairs)

    def _stems(self, value: Any) -> tuple[str, ...]:
        """Joints that a pattern of columns names, as q_* does; none where they are others."""
        text = (
            value.get("field") or value.get("column")
            if isinstance(value, dict)
            else value
        )
        columns = self._columns or ()
        if not isinstance(text, str) or "*" not in text or text in columns:
            return ()
        begin, _, end = text.partition("*")
        stems = [
            name[len(begin) : len(name) - len(end)] for name in _matching(text, columns)
        ]
        names = [stem if stem in self._joints else f"{stem}_joint" for stem in stems]
        return tuple(names) if set(names) <= set(self._joints) else ()


class LogMapping:
    """A mapping file, read for a log of one robot.

    Args:
        path: Of the YAML file.
        joints: Joints of the URDF, in its order.
        feet: Topic of each foot's wrench, by the foot's frame.
        data: Its content; None: it is read.

    Attributes:
        tables: When the rows of each table are, after conversions(); "" is the log itself, others
            are files beside it.

    Raises:
        ConfigError: It is no YAML file.
    """

    def __init__(
        self,
        path: Path,
        joints: Sequence[str],
        feet: Mapping[str, str],
        data: Any = None,
    ) -> None:
        data = read_yaml(path) if data is None else data
        self._section = Section(nested(data), str(path))
        self._joints, self._feet = tuple(joints), feet
        self._reader = ChannelReader(joints)
        self._columns_of: Callable[[str], Sequence[str]] | None = None
        self.tables: dict[str, TableRows] = {}

    @property
    def of_messages(self) -> bool:
        """Whether it names topics; a mapping of columns says nothing of a bag."""
        parts = (self._section.raw(key) for key in ("joints", "imu", "feet", "time"))
        return any(text.startswith("/") for part in parts for text in _texts(part))

    def types(self) -> set[str]:
        """Types of the standard messages of the file, by its sections alone."""
        names = {"joints": JOINT_STATE, "feet": WRENCH, "plate": WRENCH}
        found = {names[key] for key in self._section.entries() if key in names}
        gyro = self._section.section("imu").raw("gyro")
        return found | ({IMU} if gyro is not None else set())

    def conversions(
        self,
        topics: Sequence[str] = (),
        columns_of: Callable[[str], Sequence[str]] | None = None,
    ) -> list[Conversion]:
        """What becomes joint states, IMU readings and wrenches.

        Args:
            topics: Of the bag.
            columns_of: Returns the columns of a table, "" or a file beside it; None: the log is a
                bag.

        Raises:
            ConfigError: A key is wrong or unknown, or names what is not there.
        """
        section = self._section
        clocks: dict[str, Channel] = {}
        self._reader = ChannelReader(self._joints, topics)
        if columns_of is None:
            clocks = self._clocks(section)
        else:
            self._columns_of = columns_of
            self._open_table(section, "", columns_of)
        found: list[Conversion] = []
        if section.section("joints").entries():
            found.append(self._joint_states(section.section("joints")))
        if section.section("imu").entries():
            found.append(self._imu(section.section("imu")))
        feet = section.section("feet")
        found += [self._wrench(frame, feet.section(frame)) for frame in feet.entries()]
        # of tables of postures
        for name in ("rows", "samples", "com", "tip_over", "plate"):
            if section.raw(name) is not None:
                raise section.error(
                    "is for tables of postures (identify --use rest)", name
                )
        section.finish()
        if not found:
            raise section.error("expected joints, imu or feet")
        return [replace(each, clock=clocks.get(each.source)) for each in found]

    def _table_of(self, section: Section) -> str:
        """The table that a section names, whose columns are meant from here on."""
        name = section.text("table", "")
        if self._columns_of is None:
            if name:
                raise section.error("is for logs that are tables", "table")
        elif Path(name).name != name:
            raise section.error("expected the name of a file beside the log", "table")
        else:
            self._open_table(section, name, self._columns_of)
        return name

    def _open_table(
        self, section: Section, name: str, columns_of: Callable[[str], Sequence[str]]
    ) -> None:
        """Reads when a table's rows are, and which of them count."""
        self._reader = ChannelReader(self._joints, columns=columns_of(name))
        if name in self.tables:
            return
        self.tables[name] = self._reader.rows(section, self._section)

    def _clocks(self, section: Section) -> dict[str, Channel]:
        """The senders' clocks by topic."""
        value = section.raw("time")
        values = value if isinstance(value, list) else [value] * (value is not None)
        placed = [self._reader.channels(each, section, "time", 1) for each in values]
        return {topic: channels[0] for topic, channels in placed}

    def _joint_states(self, section: Section) -> Conversion:
        """Positions, velocities and efforts of the joints."""
        table = self._table_of(section)
        names, fields = self._reader.joint_fields(self._section)
        return self._conversion(
            section, (table, JOINT_STATE, "/joint_states"), fields, names
        )

    def _imu(self, section: Section) -> Conversion:
        """Orientation, angular velocity and acceleration."""
        table = self._table_of(section)
        order = _ORDERS[section.text("order", "xyzw", tuple(_ORDERS))]
        fields = {}
        for key, field in _OF_IMU.items():
            value = section.raw(key)
            if value is None:
                continue
            topic, channels = self._reader.channels(value, section, key)
            if key == "orientation":
                channels = _reordered(channels, order)
            fields[field] = topic, channels
        section.finish()
        return self._conversion(section, (table, IMU, "/imu"), fields)

    def _wrench(self, frame: str, section: Section) -> Conversion:
        """Force and moment of the ground on a foot."""
        if frame not in self._feet and self._feet:
            raise section.error(
                f"no foot of the configuration; valid: {listing(sorted(self._feet))}"
            )
        table = self._table_of(section)
        parts = [
            self._reader.channels(section.raw(key), section, key)
            for key in ("force", "moment")
        ]
        section.finish()
        target = "/" + self._feet.get(frame, f"{frame}/wrench").lstrip("/")
        return self._conversion(
            section, (table, WRENCH, target), {"wrench": joined(parts, section)}
        )

    def _conversion(
        self,
        section: Section,
        target: tuple[str, str, str],
        fields: Mapping[str, Placed],
        names: Sequence[str] = (),
    ) -> Conversion:
        """A conversion of fields that are in one topic, to (table, type, topic)."""
        source = joined(list(fields.values()), section)[0]
        channels = {field: placed[1] for field, placed in fields.items()}
        table, type_name, topic = target
        return Conversion(source or table, topic, type_name, channels, tuple(names))


def joined(placed: Sequence[Placed], section: Section, key: str = "") -> Placed:
    """Channels after each other, of one topic.

    Args:
        placed: Channels with their topics.
        section: In which they are.
        key: Their key, for messages.

    Raises:
        ConfigError: They are of several topics.
    """
    topics = sorted({topic for topic, _ in placed} - {""})
    if len(topics) > 1:
        raise section.error(
            f"{listing(topics)} are different topics; expected one", key
        )
    channels = tuple(channel for _, own in placed for channel in own)
    return (topics[0] if topics else ""), channels


def _matching(pattern: str, columns: Sequence[str]) -> list[str]:
    """Columns of a pattern: with * in the order of their numbers, or of a range; else none."""
    if numbers := _RANGE.fullmatch(pattern):
        first, last = map(int, numbers.groups())
        found = [f"column {i}" for i in range(first, min(last, len(columns)) + 1)]
        return found if set(found) <= set(columns) else []
    if "*" not in pattern:
        with suppress(ValueError):
            found = expand_path(pattern)
            return found if set(found) <= set(columns) else []
        return []

    def key(name: str) -> list[Any]:
        parts = re.split(r"(\d+)", name)
        return [int(part) if part.isdecimal() else part for part in parts]

    # [ is a part of columns' names here
    plain = pattern.replace("[", "[[]")
    return sorted((name for name in columns if fnmatchcase(name, plain)), key=key)


def _reordered(
    channels: tuple[Channel, ...], order: Sequence[int]
) -> tuple[Channel, ...]:
    """Channels of four numbers in another order, also where one channel has all of them."""
    if len(channels) == 1 and order != _ORDERS["xyzw"]:
        (whole,) = channels
        return tuple(
            Channel(f"{whole.path}[{i}]", whole.scale, whole.offset) for i in order
        )
    return (
        tuple(channels[i] for i in order) if len(channels) == len(order) else channels
    )


def _texts(data: Any) -> Iterator[str]:
    """All texts in lists and sections."""
    if isinstance(data, str):
        yield data
    for value in data.values() if isinstance(data, dict) else ():
        yield from _texts(value)
    for value in data if isinstance(data, list) else ():
        yield from _texts(value)


def nested(data: Any) -> Any:
    """Keys with dots (imu.gyro) as sections.

    Args:
        data: Content of a mapping file.

    Raises:
        ConfigError: A key is both a value and a section.
    """
    if not isinstance(data, dict):
        return data
    found: dict[Any, Any] = {}
    for key, value in data.items():
        *parents, last = key.split(".") if isinstance(key, str) else [key]
        inside = found
        for part in parents:
            inside = inside.setdefault(part, {})
            if not isinstance(inside, dict):
                raise ConfigError(f"{part} is both a value and a section", key)
        inside[last] = value
    return found
