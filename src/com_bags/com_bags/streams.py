"""Topics of sensor messages block by block: times and arrays, in the order of a model's joints."""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from com_bags.bag import Bag, Block
from com_bags.decoding import Batch, Decoder, foreign_types
from com_bags.exceptions import TopicError
from com_model import RobotModel
from com_model.arrays import Array, Flags, Indices
from com_model.dynamics.kinematics import link_pose_batch
from com_model.joint_states import ConflictCheck, JointLayout, reversals
from com_model.text import listing, quote

Times = Indices

NS_PER_S = 1_000_000_000
INTERLEAVED = 20  # changes back and forth that two publishers make


@dataclass(frozen=True, eq=False)
class DecodedBlock:
    """A block of one topic as arrays.

    Attributes:
        batches: Messages that could be decoded, by layout.
        count: Number of messages of the block.
        times: (count,) ns; 0 for a message that could not be decoded.
    """

    batches: list[Batch]
    count: int
    times: Times

    @property
    def readable(self) -> Flags:
        """Which messages could be decoded, (count,)."""
        mask = np.zeros(self.count, dtype=np.bool_)
        for batch in self.batches:
            mask[batch.rows] = True
        return mask

    def values(self, field: str) -> Array:
        """One field of all readable messages, (M, k), in the order of the bag."""
        width = self.batches[0].numbers[field].shape[1] if self.batches else 0
        values = np.full((self.count, width), np.nan)
        for batch in self.batches:
            values[batch.rows] = batch.numbers[field]
        return values[self.readable]


class Changes:
    """Counts messages by what they are labelled with, and how often that changes."""

    def __init__(self) -> None:
        self.counts: Counter[Any] = Counter()
        self.switches = 0
        self._last: Indices = np.empty(0, dtype=np.int64)

    def add(self, labelled: Sequence[tuple[Batch, Hashable]], used: Flags) -> None:
        """Adds batches of a block.

        Args:
            labelled: Batches, each with its label: frame_id or names.
            used: (count,) which messages of the block count for changes of the label.
        """
        numbers = np.full(len(used), -1, dtype=np.int64)
        for batch, label in labelled:
            self.counts[label] += len(batch.rows)
            numbers[batch.rows] = list(self.counts).index(label)
        order = np.concatenate((self._last, numbers[used & (numbers >= 0)]))
        self.switches += int(np.count_nonzero(np.diff(order)))
        self._last = order[-1:]


class PublisherCheck:
    """Looks for signs that several nodes published one topic.

    Changes from one message to the next below `jump`, in the unit of the values, are none of two
    publishers. `frames` are those of the messages.
    """

    def __init__(self, jump: float) -> None:
        self.frames = Changes()
        self._jump = jump
        self._count = self._late = 0
        self._blocks = self._alternating = 0
        self._last_ns: int | None = None

    @property
    def several_frames(self) -> bool:
        """Whether messages of different frames alternate, as those of two publishers do."""
        return self.frames.switches >= INTERLEAVED

    def add_times(self, times: Indices) -> None:
        """Adds the stamps of a block, in the order of the bag."""
        if not len(times):
            return
        before = times[:1] if self._last_ns is None else np.array([self._last_ns])
        self._late += int(
            np.count_nonzero(np.diff(np.concatenate((before, times))) < 0)
        )
        self._count += len(times)
        self._last_ns = int(times[-1])

    def add_values(self, values: Array) -> None:
        """Checks whether values (N, k) alternate from message to message."""
        if len(values) < 20:
            return
        values = np.nan_to_num(values)
        one = np.abs(values[1:-1] - values[:-2]).max(axis=1)
        two = np.abs(values[2:] - values[:-2]).max(axis=1)
        step = float(np.median(one))
        self._blocks += 1
        self._alternating += step > self._jump and float(np.median(two)) < 0.1 * step

    def signs(self) -> list[str]:
        """Signs of several publishers, in words."""
        words = []
        if self.several_frames:
            words.append(
                f"frame_id changes between {listing(map(quote, sorted(self.frames.counts)))}"
            )
        # 2 % of the messages may be late
        if self._count and self._late > max(INTERLEAVED, 0.02 * self._count):
            words.append(
                f"{self._late} of {self._count} stamps are older than the one before"
            )
        if self._blocks and 2 * self._alternating > self._blocks:
            words.append("its values alternate from one message to the next")
        return words


class TopicReader:
    """Decodes the blocks of one topic, of a type of decoding.FIELDS; as SensorReader.

    Args:
        bag: The recording.
        topic: Name of the topic.
        type_name: Type of its messages.
        jump: See PublisherCheck.
        received: Whether times are those of recording.

    Attributes:
        count: Messages that could be decoded.
        unstamped: Messages without a stamp, for which the time of recording is used.
        delay_ns: Time of recording - stamp, of the first message; None before it.
    """

    def __init__(
        self,
        bag: Bag,
        topic: str,
        type_name: str,
        jump: float = np.inf,
        received: bool = False,
    ) -> None:
        own = [
            each
            for each in bag.connections
            if (each.topic, each.msgtype) == (topic, type_name)
        ]
        self.topic, self.type_name = topic, type_name
        self.publishers = PublisherCheck(jump)
        self.count = self.unstamped = 0
        self.delay_ns: int | None = None
        self._received = received
        self._decoder = Decoder(type_name, foreign_types(own[0]) if own else None)

    @property
    def key(self) -> tuple[str, str]:
        """Topic and type."""
        return self.topic, self.type_name

    @property
    def errors(self) -> str:
        """Why messages could not be decoded, in brackets; empty where all could."""
        reasons = sorted(self._decoder.errors)
        return f" ({listing(reasons, 3)})" if reasons else ""

    def read(self, block: Block) -> DecodedBlock:
        """Decodes a block."""
        batches = self._decoder.decode(block.payloads) if block.payloads else []
        received = np.array(block.received, dtype=np.int64)
        times = np.zeros(len(received), dtype=np.int64)
        for batch in batches:
            stamps = batch.stamps
            if not self._received and self.delay_ns is None and stamps[0]:
                self.delay_ns = int(received[batch.rows[0]] - stamps[0])
            unset = stamps == 0
            self.unstamped += int(np.count_nonzero(unset))
            times[batch.rows] = received[batch.rows] if self._received else stamps
            times[batch.rows[unset]] = received[batch.rows[unset]]
        decoded = DecodedBlock(batches, len(received), times)
        readable = decoded.readable
        self.count += int(np.count_nonzero(readable))
        self.publishers.add_times(times[readable])
        self.publishers.frames.add(
            [(batch, batch.frame) for batch in batches], readable
        )
        return decoded

    def warnings(
        self, joints: "TopicReader", frames: Sequence[str] = (), key: str = ""
    ) -> list[str]:
        """Lists what may be wrong with the topic.

        Args:
            joints: Reader of the joint states, whose clock the stamps are compared with.
            frames: Values of frame_id that messages should have, the expected one first; none
                where any will do.
            key: Key of the configuration that says so.

        Returns:
            Sentences for people.
        """
        texts, topic = [], self.topic
        if self.errors:
            texts.append(
                f"{topic}: {sum(self._decoder.errors.values())} messages cannot be "
                f"decoded{self.errors}"
            )
        if self.unstamped:
            texts.append(
                f"{topic}: {self.unstamped} messages without stamp; the time of their recording is "
                "used"
            )
        signs = self.publishers.signs()
        texts += [f"{topic}: it seems to have two publishers: {sign}" for sign in signs]
        delay, own = self.delay_ns, joints.delay_ns
        if (
            delay is not None
            and own is not None
            # between the delays from stamp to recording of two topics
            and abs(delay - own) > NS_PER_S
        ):
            texts.append(
                f"{topic}: its stamps are {(own - delay) / NS_PER_S:.3g} s ahead of those of "
                f"{joints.topic}: the clocks differ. Try --time received"
            )
        texts += [
            f"{topic}: frame_id is {quote(other)}, but readings are taken in the axes of "
            f"{frames[0]}, as the configuration says ({key})"
            for other in sorted(self.publishers.frames.counts)
            if frames and other not in ("", *frames)
        ]
        return texts


class JointReader:
    """Sorts joints by name, and joins messages that name different joints.

    Attributes:
        problems: Messages that cannot be used, by the reason, see joint_states.JointLayout.
        conflict: Which joints two publishers contradict each other about; "" for none.
        foreign: Names that are not joints of the model.
        layouts: The names that messages have, in their order.
    """

    def __init__(self, model: RobotModel, topic: str) -> None:
        self._model = model
        self._topic = topic
        self._last = np.full(
            (3, model.n_joints), np.nan
        )  # position, effort, stamp of each
        self._seen = np.zeros(model.n_joints, dtype=np.bool_)
        self._index = {name: i for i, name in enumerate(model.joint_names)}
        self._before = np.full((2, model.n_joints), np.nan)  # newest positions, last
        self.conflict = ""
        self._conflicts = ConflictCheck(model.joint_names)
        self.problems: Counter[str] = Counter()
        self.foreign: set[str] = set()
        self.layouts = Changes()

    def read(self, block: DecodedBlock) -> tuple[Times, Array, Array]:
        """(M,) ns, (M, n) positions and efforts where messages name joints; NaN: unknown."""
        shape = block.count, self._model.n_joints
        Q, effort = np.full(shape, np.nan), np.full(shape, np.nan)
        used = np.zeros(block.count, dtype=np.bool_)
        batches = []
        for batch in block.batches:
            layout = JointLayout.from_names(batch.names, self._index)
            self.foreign.update(name for name in batch.names if name not in self._index)
            position, torque = batch.numbers["position"], batch.numbers["effort"]
            if problem := layout.problem(position.shape[1]):
                self.problems[problem] += len(batch.rows)
            elif position.shape[1] and len(layout.joints):
                batches.append(batch)
                used[batch.rows] = True
                self._seen[layout.joints] = True
                rows, source = batch.rows[:, None], layout.source
                Q[rows, layout.joints] = position[:, source]
                if torque.shape[1] == len(batch.names):
                    effort[rows, layout.joints] = torque[:, source]
        self.layouts.add([(batch, batch.names) for batch in batches], used)
        times, Q, effort = block.times[used], Q[used], effort[used]
        if len(times):
            self._check_conflicts(times, Q)
            known = np.isfinite(Q)
            if len(self.layouts.counts) > 1:
                self._hold(known, times, Q, effort)
            there = np.flatnonzero(known.any(axis=0))  # whose newest value is stored
            rows = len(Q) - 1 - np.argmax(known[::-1, there], axis=0)
            self._last[:, there] = Q[rows, there], effort[rows, there], times[rows]
        return times, Q, effort

    def check(self) -> None:
        """Checks, after the last block, that every joint was named; else a TopicError."""
        missing = [self._model.joint_names[i] for i in np.flatnonzero(~self._seen)]
        if missing:
            names = {name for layout in self.layouts.counts for name in layout}
            there = listing(sorted({*names, *self.foreign}), 60) or "none"
            raise TopicError(
                f"no message has {len(missing)} of the URDF's {len(self._seen)} joints: "
                f"{listing(missing)}. There are: {there}. Record all joints, or make those that "
                "do not move fixed in the URDF; where they have other names here, a mapping "
                "gives the URDF's, in the order of the messages (joints.names)",
                self._topic,
                "joint states",
            )

    def warnings(self) -> list[str]:
        """Messages without positions, names that change, unknown joints, in sentences."""
        topic = self._topic
        texts = [
            f"{topic}: {count} messages: {text}"
            for text, count in self.problems.items()
        ]
        texts += [f"{topic}: {self.conflict}"] * bool(self.conflict)
        if len(self.layouts.counts) > 1:
            what = "in another order" if self.shared() else "of different joints"
            switches, lists = self.layouts.switches, len(self.layouts.counts)
            texts.append(
                f"{topic}: names change {switches} times ({lists} lists of names, {what}); joints "
                "are matched by name"
            )
        if self.foreign:
            texts.append(
                f"{topic}: joints that are not moving joints of the robot: "
                f"{listing(sorted(self.foreign))}"
            )
        return texts

    def shared(self) -> list[str]:
        """Joints that messages of different layouts name."""
        known = set(self._model.joint_names)
        named = [known.intersection(layout) for layout in self.layouts.counts]
        pairs = [(names, other) for i, names in enumerate(named) for other in named[:i]]
        return sorted({name for names, other in pairs for name in names & other})

    def _check_conflicts(self, times: Times, Q: Array) -> None:
        """Looks for two publishers of one joint among the messages that name it."""
        found = np.zeros(Q.shape, dtype=np.int64)
        for k in range(Q.shape[1]):
            rows = np.flatnonzero(np.isfinite(Q[:, k]))
            series = np.concatenate([self._before[:, k], Q[rows, k]])
            found[rows, k] = reversals(series[2:], series[1:-1], series[:-2])
            self._before[:, k] = series[-2:]
        self.conflict = self._conflicts.add(found, times) or self.conflict

    def _hold(self, known: Flags, times: Times, Q: Array, effort: Array) -> None:
        """Holds each joint's value for a moment, for messages without it."""
        for k in np.flatnonzero(~known.all(axis=0)):
            own = known[:, k]
            latest = np.maximum.accumulate(np.where(own, np.arange(len(Q)), -1))
            since = np.where(latest < 0, self._last[2, k], times[latest])
            # a joint's value counts for 0.1 s in messages that do not name the joint
            held = ~own & (times - since <= 100_000_000) & (times >= since)
            for column, before in ((Q[:, k], 0), (effort[:, k], 1)):
                value = np.where(latest < 0, self._last[before, k], column[latest])
                column[held] = value[held]


class UpReader:
    """The direction against gravity, by the IMU's orientation or else by its acceleration.

    The latter, which is right while the robot is stationary, for the messages without_orientation:
    they declare it, or their quaternion is not of unit length.
    """

    def __init__(self, model: RobotModel, link: str) -> None:
        self._model = model
        self._link = model.link_index(link)
        self._before: tuple[Times, Array] = (
            np.zeros(0, np.int64),
            np.zeros((0, model.n_joints)),
        )
        self.without_orientation = 0

    def read(self, block: DecodedBlock, times: Times, Q: Array) -> tuple[Times, Array]:
        """Reads a block of the IMU's topic.

        Args:
            block: Messages of the IMU.
            times: (M,) ns, of joint states of the same time.
            Q: (M, n) joint positions, rad or m.

        Returns:
            (N,) ns and (N, 3) unit vectors in root axes; NaN where not known.
        """
        stamps = block.times[block.readable]
        if not len(stamps):
            return stamps, np.zeros((0, 3))
        up = self._in_imu_axes(block)
        if self._model.bodies.body_of_link[self._link] == 0:
            return stamps, up @ self._model.bodies.R_body_link[self._link].T
        times, Q = (
            np.concatenate(pair) for pair in zip(self._before, (times, Q), strict=True)
        )
        if not len(times):
            return stamps, np.full((len(stamps), 3), np.nan)
        self._before = times[-1:], Q[-1:]
        nearest = np.clip(
            np.searchsorted(times, stamps, side="right") - 1, 0, len(times) - 1
        )
        link = self._model.link_names[self._link]
        R_root_link, _ = link_pose_batch(self._model, Q[nearest], link)
        return stamps, (R_root_link @ up[:, :, None])[:, :, 0]

    def _in_imu_axes(self, block: DecodedBlock) -> Array:
        """(N, 3): the third row of R_world_imu, of a quaternion x, y, z, w."""
        x, y, z, w = block.values("orientation").T
        up = np.column_stack(
            (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y))
        )
        norm = np.sqrt(x * x + y * y + z * z + w * w)
        missing = block.values("orientation_covariance")[:, 0] == -1.0
        # a quaternion's norm may be off by 0.1 %
        missing |= ~(np.abs(norm - 1.0) < 1e-3)
        self.without_orientation += int(np.count_nonzero(missing))
        up[missing] = block.values("linear_acceleration")[missing]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(up / np.linalg.norm(up, axis=1, keepdims=True))
