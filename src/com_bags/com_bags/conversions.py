"""Standard messages made from others: joint states, IMU readings and wrenches from any message.

A Conversion says by which paths the numbers of a standard message are found in each message of a
topic, and in which units. Bags make these messages while they are read, so that whoever reads a
bag needs to know the standard ones only.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from rosbags.interfaces import Connection
from rosbags.typesys import Stores, get_typestore

from com_bags.channels import FIELDS, JOINT_STATE, ROLES, STAMP, WRENCH, Conversion
from com_bags.decoding import stamps_ns
from com_bags.exceptions import TopicError
from com_bags.message_layout import MessageWriter, NumberReader, Types
from com_bags.storage import Message
from com_model.arrays import Array, Indices
from com_model.text import listing

_NS = 1e9


class StandardWriter:
    """Bytes of the standard messages of a conversion.

    Args:
        conversion: Its fields, names and frame.
    """

    def __init__(self, conversion: Conversion) -> None:
        store, name = get_typestore(Stores.LATEST), conversion.type_name
        self._fields = tuple(conversion.fields)
        message = _template(store.types, conversion)
        paths = dict(STAMP) | {field: field for field in self._fields}
        template = bytes(store.serialize_cdr(message, name))
        self._writer = MessageWriter(store.fielddefs, name, template, paths)

    def write(self, stamps: Indices, values: Mapping[str, Array]) -> list[bytes]:
        """Writes N messages.

        Args:
            stamps: (N,) ns.
            values: (N, k) by field.

        Returns:
            Their bytes.
        """
        numbers: dict[str, Array | Indices] = {
            "sec": (stamps // int(_NS))[:, None],
            "nanosec": (stamps % int(_NS))[:, None],
        }
        numbers |= {field: values[field] for field in self._fields}
        return self._writer.write(numbers)


def _template(types: Mapping[str, Any], conversion: Conversion) -> Any:
    """A message with the conversion's names and frame; of what it lacks it says so."""
    stamp = types["builtin_interfaces/msg/Time"](0, 0)
    header = types["std_msgs/msg/Header"](stamp, conversion.frame)
    make, given = types[conversion.type_name], conversion.fields
    vector, zero = types["geometry_msgs/msg/Vector3"], (0.0, 0.0, 0.0)
    if conversion.type_name == WRENCH:
        return make(
            header, types["geometry_msgs/msg/Wrench"](vector(*zero), vector(*zero))
        )
    if conversion.type_name == JOINT_STATE:
        count = len(conversion.names)
        numbers = [np.zeros(count * (f in given)) for f in FIELDS[JOINT_STATE]]
        return make(header, list(conversion.names), *numbers)
    turn, unknown = types["geometry_msgs/msg/Quaternion"], np.full(9, -1.0)
    known = [
        np.zeros(9) if field in given else unknown
        for field in ("orientation", "angular_velocity", "linear_acceleration")
    ]
    return make(
        header,
        turn(0.0, 0.0, 0.0, 1.0),
        known[0],
        vector(*zero),
        known[1],
        vector(*zero),
        known[2],
    )


class Converter:
    """Makes the messages of one conversion from those of a bag.

    Args:
        conversion: What becomes what.
        connection: Of the messages that it is made from.
        types: Definitions of their type.
        live: The sender's clock is slowly brought to the receiver's, as they drift apart, and
            messages without a stamp get the time of receipt.

    Attributes:
        conversion: As given.
        made: Of the messages that are made.
        problems: Messages that cannot be converted, by reason.
        count: Of messages that were made.
    """

    def __init__(
        self,
        conversion: Conversion,
        connection: Connection,
        types: Types,
        live: bool = False,
    ) -> None:
        self.made = connection._replace(
            topic=conversion.target, msgtype=conversion.type_name
        )
        self.problems: Counter[str] = Counter()
        self.count = 0
        self.conversion = conversion
        paths = {key: channel.path for key, channel in conversion.channels.items()}
        fields = {name for name, _ in types[connection.msgtype][1]}
        if conversion.clock is not None:
            paths["clock"] = conversion.clock.path
        elif "header" in fields:
            paths |= STAMP
        if conversion.must_be_zero is not None:
            paths["must be zero"] = conversion.must_be_zero[0]
        self._reader = NumberReader(types, connection.msgtype, paths)
        self._writer = StandardWriter(conversion)
        # time of recording at which the sender's clock was 0
        self._begin_ns: int | None = None
        self._live = live
        # ns, in which the sender's clock is brought to the receiver's
        self._follow_ns = 100e9 if live else np.inf
        self._last_ns = 0

    def convert(
        self, payloads: Sequence[bytes], received: Sequence[int]
    ) -> dict[int, bytes]:
        """Converts messages.

        Args:
            payloads: Their bytes.
            received: ns, when each was recorded.

        Returns:
            Bytes of standard messages by index; those that cannot be converted are counted in
            `problems`. Stamps are 0 where the sender's clock stands at 0.

        Raises:
            TopicError: Their numbers do not fit, or mean something else.
        """
        found, problems = self._reader.read(payloads)
        self.problems.update(problems)
        clock = np.zeros(len(payloads), dtype=np.int64)
        for rows, numbers, _ in found:
            clock[rows] = self._clock(numbers, len(rows))
        if self.conversion.clock is not None:
            clock = self._on_recorder_s_clock(clock, received)
        if self._live:
            clock = np.where(clock == 0, received, clock)
        made: dict[int, bytes] = {}
        for rows, numbers, _ in found:
            meaning = self.conversion.must_be_zero
            if meaning is not None and numbers["must be zero"].any():
                raise TopicError(
                    meaning[1], self.conversion.source, ROLES[self.conversion.type_name]
                )
            values = self.conversion.values(numbers, len(rows))
            written = self._writer.write(clock[rows], values)
            made.update(zip(rows.tolist(), written, strict=True))
        self.count += len(made)
        return made

    def _clock(self, numbers: Mapping[str, Array], count: int) -> Indices:
        """Time of the sender's clock (N,) ns; 0 where it has none."""
        clock = self.conversion.clock
        if clock is not None:
            return np.rint(_NS * clock.values(numbers["clock"])[:, 0]).astype(np.int64)
        return stamps_ns(numbers) if "sec" in numbers else np.zeros(count, np.int64)

    def _on_recorder_s_clock(self, clock: Indices, received: Sequence[int]) -> Indices:
        """Times (N,) ns on the recorder's clock, with the spacing of the sender's (N,) ns.

        Where the two differ by more than a second, as after a restart, the sender's counts from
        there.
        """
        stamps = np.zeros(len(clock), dtype=np.int64)
        if not clock.any():
            return stamps
        for i, (own, now) in enumerate(zip(clock.tolist(), received, strict=True)):
            begin = now - own if self._begin_ns is None else self._begin_ns
            late = now - own - begin
            # beyond 1 s the sender's clock was set, or its program started again
            if abs(late) > 1_000_000_000:
                begin += late
            else:
                begin += round(late * min(1.0, (now - self._last_ns) / self._follow_ns))
            self._begin_ns, self._last_ns = begin, now
            stamps[i] = begin + own
        return stamps

    def note(self) -> str:
        """What could not be converted, a sentence; "" where all could.

        Raises:
            TopicError: Nothing could.
        """
        if not self.problems:
            return ""
        source, reasons = self.conversion.source, listing(sorted(self.problems), 3)
        if not self.count:
            role = ROLES[self.conversion.type_name]
            raise TopicError(
                f"no message can be read as {role} ({reasons})", source, role
            )
        return f"{source}: {sum(self.problems.values())} messages cannot be decoded ({reasons})"


def convert(
    stored: Iterable[Message],
    converters: Sequence[tuple[Connection, Converter]],
    wanted: Callable[[Connection], bool],
) -> Iterator[Message]:
    """Makes standard messages of stored ones, in the order of the bag.

    Args:
        stored: Messages of the bag.
        converters: Each with the connection that it converts.
        wanted: Which stored messages are to be there, too.

    Yields:
        Messages.
    """
    buffer: list[Message] = []
    for message in stored:
        buffer.append(message)
        # 500 messages are converted together
        if len(buffer) == 500:
            yield from _converted(buffer, converters, wanted)
            buffer = []
    yield from _converted(buffer, converters, wanted)


def _converted(
    buffer: Sequence[Message],
    converters: Sequence[tuple[Connection, Converter]],
    wanted: Callable[[Connection], bool],
) -> Iterator[Message]:
    made: list[list[Message]] = [[each] * wanted(each[0]) for each in buffer]
    for connection, converter in converters:
        key = connection.topic, connection.msgtype
        own = [
            i
            for i, each in enumerate(buffer)
            if (each[0].topic, each[0].msgtype) == key
        ]
        payloads, received = [buffer[i][2] for i in own], [buffer[i][1] for i in own]
        for k, payload in converter.convert(payloads, received).items():
            made[own[k]].append((converter.made, received[k], payload))
    for messages in made:
        yield from messages
