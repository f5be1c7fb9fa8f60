"""Motion files: tables, and rosbag2 recordings (mcap or sqlite3), read and written.

Tables have rows of period, mode and positions, separated by commas ([Cominoli] 7.1):

    1,2,0,-172,3696,9537, ... ,-8800,0, R ,R ,R,R

Positions are counts of the encoders (pulses), or radians of the URDF's joints. "R" is not driven.

Recordings that are written have trajectory_msgs/JointTrajectory messages with a stamp of 0, "begin
at once", so that playing the bag moves a robot. Read are those, or sensor_msgs/JointState. A
trajectory replaces earlier ones from the time of its first point on.
"""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from com_bags import Bag, BagError
from com_bags.streams import NS_PER_S
from com_control.exceptions import MotionError
from com_control.motion.motion import MODE, PERIOD, Motion, MotionLayout
from com_model.arrays import Array
from com_model.files import whole_folder, write_file
from com_model.text import listing

UNITS = ("counts", "radians")
MOST_ROWS = 1_000_000  # of a motion, which is held in memory: 33 minutes at 2 ms
_LONGEST_LINE = 4096
_NOT_DRIVEN = "R"
_MODE = "2"


def read_motion(
    path: str | os.PathLike[str],
    layout: MotionLayout,
    unit: str = "counts",
    most_rows: int = MOST_ROWS,
) -> Motion:
    """Reads a motion file; its first row is at time 0.

    Args:
        path: of the file.
        layout: joints, encoders and period.
        unit: "counts" of the encoders with their signs, or "radians" of the URDF's joints.
        most_rows: largest number of rows.

    Returns:
        The motion of the layout's joints, rad.

    Raises:
        MotionError: with the row: the file cannot be read, is empty or too long; columns are
            missing, there is text, numbers that are not finite, a joint that is driven in some
            rows only, or there is no such unit.
    """
    _check_unit(unit)
    values = _read_rows(Path(path), layout, most_rows)
    if not len(values):
        raise MotionError(f"{path} has no rows")
    periods, positions = _split(values, layout, unit)
    _check_driven(positions, layout)
    return Motion(
        layout.joints, np.concatenate(([0.0], np.cumsum(periods[1:]))), positions
    )


def write_motion(
    path: str | os.PathLike[str],
    motion: Motion,
    layout: MotionLayout,
    unit: str = "counts",
) -> None:
    """Writes a motion file, completely or not at all; row 1 has the period of row 2.

    Args:
        path: of the file.
        motion: of the layout's joints, in its order.
        layout: joints, encoders and period.
        unit: "counts" or "radians".

    Raises:
        MotionError: the joints differ, times between rows are not multiples of the layout's
            period, or the file cannot be written.
    """
    _check_unit(unit)
    if motion.joints != layout.joints:
        raise MotionError(
            "the motion's joints are not those of the layout, in its order"
        )
    steps = np.diff(motion.times, prepend=0.0) / layout.period
    steps[:1] = steps[1] if len(steps) > 1 else 1.0
    counts = np.rint(steps)
    if len(steps) and (np.abs(steps - counts).max() > 1e-3 or counts.min() < 1):
        raise MotionError(
            f"the times are not multiples of {layout.period:g} s: resample first"
        )
    rows = zip(counts.astype(int).tolist(), motion.positions, strict=True)
    try:
        write_file(
            path, "".join(_line(period, row, layout, unit) for period, row in rows)
        )
    except OSError as error:
        raise MotionError(f"{path} cannot be written: {error.strerror}") from error


def _check_unit(unit: str) -> None:
    if unit not in UNITS:
        raise MotionError(f"unit: expected one of {', '.join(UNITS)}, got {unit!r}")


def _line(period: int, row: Array, layout: MotionLayout, unit: str) -> str:
    cells = [_NOT_DRIVEN] * len(layout.columns)
    cells[layout.columns.index(PERIOD)] = str(period)
    if MODE in layout.columns:
        cells[layout.columns.index(MODE)] = _MODE
    values = row * layout.counts_per_rad if unit == "counts" else row
    for column, value in zip(layout.index.tolist(), values.tolist(), strict=True):
        if value == value:
            cells[column] = (
                str(round(value)) if unit == "counts" else f"{value + 0.0:.9g}"
            )
    return ",".join(cells) + "\n"


def _read_rows(path: Path, layout: MotionLayout, most_rows: int) -> Array:
    """Values (N, columns) of the lines that are not empty; NaN for R."""
    rows: list[Array] = []
    try:
        with path.open(encoding="utf-8-sig", newline=None) as file:
            while line := file.readline(
                _LONGEST_LINE
            ):  # of no motion file it may be endless
                if not line.isspace():
                    rows.append(_parse_row(line, len(rows) + 1, layout))
                if len(rows) > most_rows:
                    raise MotionError(
                        f"{path.name} has more than {most_rows} rows: cut it into several files"
                    )
    except UnicodeDecodeError as error:
        raise MotionError(f"{path} is not text: is it a motion file?") from error
    except OSError as error:
        raise MotionError(f"{path} cannot be read: {error.strerror}") from error
    return np.array(rows)


def _parse_row(line: str, row: int, layout: MotionLayout) -> Array:
    cells, count = line.strip().rstrip(",").split(","), len(layout.columns)
    if len(line) == _LONGEST_LINE:
        got = f"more than {_LONGEST_LINE} characters"
        raise MotionError(f"row {row}: expected {count} columns, got {got}", row)
    if len(cells) != count:
        cut = ". Is it cut off?" if len(cells) < count else ""
        expected = f"{count} columns ({', '.join(layout.columns[:3])}, ...)"
        raise MotionError(f"row {row}: expected {expected}, got {len(cells)}{cut}", row)
    return np.array(
        [_parse_cell(c, row, n) for c, n in zip(cells, layout.columns, strict=True)]
    )


def _parse_cell(text: str, row: int, name: str) -> float:
    if text.strip() == _NOT_DRIVEN:
        return float("nan")
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if abs(value) < 1e15:
        return value
    raise MotionError(
        f"row {row}, {name}: expected a number or R, got {text.strip()[:30]!r}", row
    )


def _first_row(bad: NDArray[np.bool_]) -> int:
    """Number of the first bad row of (N,) or (N, k), from 1; 0 if there is none."""
    rows = np.argwhere(bad)
    return int(rows[0, 0]) + 1 if len(rows) else 0


def _split(values: Array, layout: MotionLayout, unit: str) -> tuple[Array, Array]:
    """Periods (N,) s and positions (N, k) rad."""
    periods = values[:, layout.columns.index(PERIOD)] * layout.period
    longest = 1.0  # s
    if row := _first_row(~((periods > 0.0) & (periods <= longest))):
        raise MotionError(
            f"row {row}: the period is {periods[row - 1] / layout.period:g}, expected one "
            f"from 1 to {longest / layout.period:g} (x {layout.period:g} s)",
            row,
        )
    positions = values[:, layout.index]
    if unit == "radians":
        if row := _first_row(np.abs(positions) > 7.0):
            most = np.nanmax(np.abs(positions))
            raise MotionError(
                f"row {row}: {most:g} is too large for radians: counts?", row
            )
        return periods, positions
    parts = np.nan_to_num(positions)
    if row := _first_row(parts != np.rint(parts)):
        raise MotionError(
            f"row {row}: counts are whole numbers. Is the file in radians?", row
        )
    return periods, positions / layout.counts_per_rad


def _check_driven(positions: Array, layout: MotionLayout) -> None:
    """Refuses joints that are driven in some rows only."""
    driven = ~np.isnan(positions)
    odd = driven != driven[0]
    if row := _first_row(odd):
        joint = int(np.argmax(odd[row - 1]))
        state = ("driven", "not driven (R)")[int(driven[0, joint])]
        raise MotionError(
            f"row {row}, {layout.joints[joint]}: {state}, unlike in the rows before it: drive it "
            "in all rows or in none",
            row,
        )


TRAJECTORY, STATE = "trajectory_msgs/msg/JointTrajectory", "sensor_msgs/msg/JointState"
STORAGES = {"mcap": StoragePlugin.MCAP, "sqlite3": StoragePlugin.SQLITE3}
TOPIC = "/joint_trajectory"
_VERSION: Literal[9] = 9  # of the metadata; that of ROS 2 Jazzy
State = tuple[int, Sequence[str], ArrayLike]  # ns, names of joints, positions, rad


def resampled(
    joints: tuple[str, ...], times: Array, positions: Array, period: float
) -> Motion:
    """Resamples a motion to a fixed period, by linear interpolation.

    The first row is the first sample; the last row is the last sample, up to a period later.

    Args:
        joints: names of the k joints.
        times: (N,) s, rising.
        positions: (N, k) rad or m; NaN where not driven.
        period: s.

    Returns:
        The motion, whose first row is at time 0.

    Raises:
        MotionError: two samples are more than 10 minutes apart, or there would be more than
            MOST_ROWS rows.
    """
    gaps = np.diff(times)
    longest_gap = 600.0  # s; beyond, a clock has jumped
    if len(gaps) and gaps.max() > longest_gap:
        k = int(np.argmax(gaps > longest_gap))
        raise MotionError(
            f"nothing for {gaps[k]:.6g} s, {times[k] - times[0]:.6g} s after the start: has a "
            "clock jumped? Cut the recording there"
        )
    rows = max(int(np.ceil((times[-1] - times[0] - 1e-9) / period)), 0) + 1
    if rows > MOST_ROWS:
        raise MotionError(
            f"{times[-1] - times[0]:.6g} s have more than {MOST_ROWS} rows {period:g} s apart: "
            "cut the recording, or give a longer period"
        )
    after = np.arange(rows, dtype=np.float64) * period
    columns = [np.interp(times[0] + after, times, column) for column in positions.T]
    return Motion(joints, after, np.array(columns).T)


def read_bag(
    path: str | os.PathLike[str], layout: MotionLayout, period: float, topic: str = ""
) -> tuple[Motion, list[str]]:
    """Reads the motion on a topic of a bag, resampled by linear interpolation.

    Args:
        path: folder or file of the bag.
        layout: the joints.
        period: s, between rows.
        topic: of JointTrajectory or JointState messages; "": the only one, preferably of
            trajectories.

    Returns:
        The motion, and notes: the topic, and what was left out.

    Raises:
        MotionError: it is no bag or damaged, the topic is not in it, or it contains no motion of
            the layout's joints, or too long a one.
    """
    store, dropped = get_typestore(Stores.ROS2_JAZZY), Counter[str]()
    try:
        with Bag(Path(path)) as bag:
            topic, kind = _choose(bag, topic)
            messages: Iterator[tuple[int, Any]] = (
                (time_ns, store.deserialize_cdr(data, kind))
                for _, time_ns, data in bag.messages([topic], [kind])
            )
            states: Iterator[State] = (
                (_time_ns(message, received_ns), message.name, message.position)
                for received_ns, message in messages
            )
            if kind == TRAJECTORY:
                states = _points(messages)
            used = list(islice(_usable(states, layout.joints, dropped), MOST_ROWS + 1))
            if bag.notes:
                raise MotionError(f"{path} is damaged: {bag.notes[0]}")
    except MotionError:
        raise
    except BagError as error:
        raise MotionError(f"{path} cannot be read as a bag: {error.problem}") from error
    except Exception as error:  # rosbags raises any exception on damaged bytes
        reason = str(error).split("\n", 1)[0][:160] or type(error).__name__
        raise MotionError(f"{path} is damaged: {reason}") from error
    if len(used) > MOST_ROWS:
        raise MotionError(
            f"more than {MOST_ROWS} messages or points: cut the recording"
        )
    if not used:
        raise MotionError(
            f"{path}: {topic} holds no positions of {listing(layout.joints, 3)}"
        )
    times = np.array([time_ns - used[0][0] for time_ns, _ in used]) / NS_PER_S
    motion = resampled(layout.joints, times, np.array([row for _, row in used]), period)
    left_out = [
        f"{count} left out: {reason}" for reason, count in sorted(dropped.items())
    ]
    return motion, [f"read from {topic}", *left_out]


def _choose(bag: Bag, topic: str) -> tuple[str, str]:
    """The topic to read, and its type."""
    found = {
        kind: [t.name for t in bag.topics() if t.type_name == kind]
        for kind in (TRAJECTORY, STATE)
    }
    for kind, names in found.items():
        if topic in names or (not topic and len(names) == 1):
            return topic or names[0], kind
        if names and not topic:
            raise MotionError(
                f"{bag.path} has several motions, say which: {listing(names)}"
            )
    if topic:
        there = (
            listing(sorted({name for names in found.values() for name in names}))
            or "none"
        )
        raise MotionError(
            f"{bag.path} has no topic {topic!r} of JointTrajectory or JointState; there: {there}"
        )
    raise MotionError(
        f"{bag.path} has no topic of JointTrajectory or JointState messages"
    )


def _points(messages: Iterator[tuple[int, Any]]) -> Iterator[State]:
    """Points of trajectories as states; each trajectory ends at the first point of the next."""
    pending: list[State] = []
    for received_ns, message in messages:
        start_ns = _time_ns(message, received_ns)
        points: list[State] = []
        for point in message.points:
            after = point.time_from_start
            at_ns = start_ns + after.sec * NS_PER_S + after.nanosec
            points.append((at_ns, message.joint_names, point.positions))
        if points:
            yield from (state for state in pending if state[0] < points[0][0])
            pending = points
    yield from pending


def _time_ns(message: Any, received_ns: int) -> int:
    stamp = message.header.stamp
    return int(stamp.sec * NS_PER_S + stamp.nanosec) or received_ns


def _usable(
    states: Iterator[State], joints: Sequence[str], dropped: Counter[str]
) -> Iterator[tuple[int, Array]]:
    """Filters states to valid, later ones of the same joints, and counts those left out.

    Yields:
        Time ns, and positions (k,) of the joints, rad; NaN where not driven.
    """
    index = {name: i for i, name in enumerate(joints)}
    driven: frozenset[str] | None = None
    last_ns = -1
    for time_ns, names, positions in states:
        values = np.asarray(positions, dtype=np.float64)
        mine = [k for k, name in enumerate(names) if name in index]
        own = frozenset(names[k] for k in mine)
        if not own:
            dropped["of none of the motion's joints"] += 1
        elif driven is not None and own != driven:
            dropped["of other joints than the first message"] += 1
        elif values.shape != (len(names),) or not np.isfinite(values[mine]).all():
            dropped["with a position that is missing or not finite"] += 1
        elif driven is not None and time_ns <= last_ns:
            dropped["not later than the one before"] += 1
        else:
            driven, last_ns = own, time_ns
            row = np.full(len(index), np.nan)
            row[[index[names[k]] for k in mine]] = values[mine]
            yield time_ns, row


def write_bag(
    path: str | os.PathLike[str], motion: Motion, storage: str = "mcap"
) -> None:
    """Writes a motion as a bag that starts at time 0; the folder appears complete or not at all.

    Args:
        path: of the new folder.
        motion: to write.
        storage: "mcap" or "sqlite3".

    Raises:
        MotionError: the folder exists or cannot be written, or there is no such storage.
    """
    if storage not in STORAGES:
        raise MotionError(
            f"storage: expected one of {', '.join(STORAGES)}, got {storage!r}"
        )
    target = Path(path)
    if target.exists():
        raise MotionError(f"{path} exists already: give another path, or remove it")
    try:
        with (
            whole_folder(target) as part,
            Writer(part, version=_VERSION, storage_plugin=STORAGES[storage]) as writer,
        ):
            _write(writer, motion)
    except OSError as error:
        raise MotionError(f"{path} cannot be written: {error.strerror}") from error


def _write(writer: Writer, motion: Motion) -> None:
    """Writes messages of up to 200 rows; each begins where the one before ends."""
    store = get_typestore(Stores.ROS2_JAZZY)
    connection = writer.add_connection(TOPIC, TRAJECTORY, typestore=store)
    driven = np.isin(motion.joints, motion.driven)
    count = 200  # points of a message
    for k in range(0, len(motion.times), count):
        start = motion.times[max(k - 1, 0)]
        points = np.ascontiguousarray(motion.positions[k : k + count, driven])
        after = motion.times[k : k + count] - start
        message = _message(store.types, list(motion.driven), after, points)
        at = round(float(start) * NS_PER_S)
        writer.write(connection, at, store.serialize_cdr(message, TRAJECTORY))


def _message(types: Any, names: list[str], after: Array, positions: Array) -> Any:
    none = np.zeros(0)
    make_duration = types["builtin_interfaces/msg/Duration"]
    points = [
        types["trajectory_msgs/msg/JointTrajectoryPoint"](
            row, none, none, none, make_duration(*divmod(round(t * NS_PER_S), NS_PER_S))
        )
        for t, row in zip(after.tolist(), positions, strict=True)
    ]
    stamp = types["builtin_interfaces/msg/Time"](0, 0)
    header = types["std_msgs/msg/Header"](stamp, "")
    return types[TRAJECTORY](header, names, points)
