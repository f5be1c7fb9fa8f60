"""com_setup --from-log: finds by physics what a log's numbers are, and writes a mapping."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import yaml

from com_bags import (
    IMU,
    JOINT_STATE,
    Bag,
    BagError,
    LogFormat,
    SensorTopics,
    TopicReader,
    TopicRequest,
    add_log_options,
    find_topics,
    is_table,
    read_table,
)
from com_bags.channels import Channel, Conversion
from com_bags.mapping import nested
from com_bags.message_layout import expand_path
from com_identification.capture.log_fit import ORDERS, LogFit, fit_log
from com_identification.capture.mapping_guess import guess_mapping
from com_identification.capture.standing_log import LogReadings
from com_model import ComModelError, RobotConfig, RobotModel, load_robot
from com_model.commands import command_parser, reports_errors
from com_model.files import write_file
from com_model.strict_yaml import read_yaml
from com_model.text import columns

_REPLACED = ("joints", "velocities", "efforts", "imu")  # sections that are replaced
_KEPT = ("table", "time", "rate")  # of these sections
_HEAD = """\
# Written by com_setup --from-log: what the numbers of {log} are, by physics.
# Cannot be told, and is as the log has it: {unsure}
"""
_FIELDS = {
    JOINT_STATE: {
        name: (Channel(name),) for name in ("position", "velocity", "effort")
    },
    IMU: {
        field: tuple(Channel(f"{field}.{axis}") for axis in axes)
        for field, axes in (
            ("orientation", "xyzw"),
            ("angular_velocity", "xyz"),
            ("linear_acceleration", "xyz"),
        )
    },
}


def read_readings(bag: Bag, topics: SensorTopics) -> LogReadings:
    """Reads joint states and IMU of an open log with the names and signs that it has.

    Args:
        bag: The log.
        topics: Its topics, with that of an IMU.

    Raises:
        BagError: It has no joint states with readings of the IMU near them.
    """
    joints = TopicReader(bag, topics.joint_states, JOINT_STATE)
    imu = TopicReader(bag, topics.imu or "", IMU)
    states: dict[tuple[str, ...], list[np.ndarray]] = {}
    turning = []
    # blocks of 1 s
    for raw in bag.blocks([joints.key, imu.key], 1_000_000_000):
        block, other = joints.read(raw[joints.key]), imu.read(raw[imu.key])
        for batch in block.batches:
            count, rows = len(batch.names), len(batch.rows)
            parts = [
                each if each.shape[1] == count else np.full((rows, count), np.nan)
                for each in (batch.numbers[f] for f in _FIELDS[JOINT_STATE])
            ]
            states.setdefault(batch.names, []).append(
                np.hstack((block.times[batch.rows, None], *parts))
            )
        if other.batches:
            known = other.values("orientation_covariance")[:, :1] != -1.0
            turn = np.where(known, other.values("orientation"), np.nan)
            fields = (other.values(f) for f in _FIELDS[IMU] if f != "orientation")
            times = other.times[other.readable]
            turning.append(np.hstack((times[:, None], *fields, turn)))
    if not states or not turning:
        raise BagError("it has no joint states with readings of the IMU", str(bag.path))
    names, blocks = max(states.items(), key=lambda item: sum(map(len, item[1])))
    state, reading = np.concatenate(blocks), np.concatenate(turning)
    state = state[np.unique(state[:, 0], return_index=True)[1]]
    reading = reading[np.unique(reading[:, 0], return_index=True)[1]]
    inside = (reading[0, 0] <= state[:, 0]) & (state[:, 0] <= reading[-1, 0])
    state = state[inside]
    time = 1e-9 * (state[:, 0] - state[0, 0]) if len(state) else state[:, 0]
    at = np.searchsorted(reading[:, 0], state[:, 0])
    position, velocity, effort = np.split(state[:, 1:], 3, axis=1)
    gyro, force, turn = np.split(reading[at, 1:], [3, 6], axis=1)
    return LogReadings(names, time, position, velocity, effort, gyro, force, turn)


def mapping_text(
    log: Path, names: Sequence[str], fit: LogFit, made: Sequence[Conversion], start: Any
) -> str:
    """A mapping with which a log's numbers are what the model needs.

    Args:
        log: Path of the log, for the first line.
        names: (k,) of its joints.
        fit: What its numbers are.
        made: How joint states and IMU readings were made of its messages or columns.
        start: Content of the mapping that was used, {} where there was none.
    """
    states, imu = (
        next(each for each in made if each.type_name == kind)
        for kind in (JOINT_STATE, IMU)
    )
    source = "" if is_table(log) else states.source
    count = len(names)

    def numbers(
        field: str, order: Sequence[int], factors: Any, one: Conversion = states
    ) -> Any:
        singles = _singles(one.fields[field], len(order))
        prefix = "" if is_table(log) else f"{one.source} "
        key = "column" if is_table(log) else "field"
        found = [
            _entry(key, prefix, *singles[i], float(f))
            for i, f in zip(order, factors, strict=True)
        ]
        whole = one.fields[field]
        if len(whole) == 1 and list(order) == list(range(len(order))) and count > 1:
            scale = [_short(entry.get("scale", 1.0)) for entry in found]
            offset = {"offset": found[0]["offset"]} if "offset" in found[0] else {}
            text = {key: prefix + whole[0].path}
            return text | ({"scale": scale} if set(scale) != {1.0} else {}) | offset
        return found

    content = {k: v for k, v in nested(start).items() if k not in _REPLACED}
    joints: dict[str, Any] = _kept(start, "joints") | {"names": list(fit.names)}
    plain = range(count)
    joints["position"] = numbers("position", plain, fit.position)
    if "velocity" in states.fields:
        joints["velocity"] = numbers("velocity", fit.velocities, fit.velocity)
    if "effort" in states.fields:
        joints["effort"] = numbers("effort", plain, fit.effort)
    along = np.argmax(np.abs(fit.axes), axis=1)
    signs = fit.axes[np.arange(3), along]
    turning = _kept(start, "imu")
    turning["gyro"] = numbers("angular_velocity", along, signs * fit.gyro, imu)
    turning["acceleration"] = numbers(
        "linear_acceleration", along, signs * fit.force, imu
    )
    if fit.order and "orientation" in imu.fields:
        turning["orientation"] = numbers(
            "orientation", ORDERS[fit.order], np.ones(4), imu
        )
    content |= {"joints": joints, "imu": turning}
    clocks = {each.source: each.clock for each in made if each.clock and source}
    if clocks:
        content["time"] = [
            _entry("field", f"{topic} ", clock.path, clock.scale[0], clock.offset, 1.0)
            for topic, clock in clocks.items()
        ]
    head = _HEAD.format(log=log.name, unsure=", ".join(fit.unsure) or "nothing")
    return head + yaml.safe_dump(
        content, sort_keys=False, default_flow_style=None, width=100
    )


def _kept(start: Any, section: str) -> dict[str, Any]:
    """What a section says of its table."""
    own = nested(start).get(section)
    return {k: v for k, v in own.items() if k in _KEPT} if isinstance(own, dict) else {}


def _singles(channels: Sequence[Channel], count: int) -> list[tuple[str, float, float]]:
    """Path, factor and offset of each of a field's numbers."""
    found = []
    for channel in channels:
        paths = [channel.path]
        if len(channels) < count:
            paths = expand_path(channel.path)
            if len(paths) == 1:
                paths = [f"{channel.path}[{i}]" for i in range(count)]
        scale = channel.scale * (len(paths) if len(channel.scale) == 1 else 1)
        found += [(p, s, channel.offset) for p, s in zip(paths, scale, strict=True)]
    return found


def _entry(
    key: str, prefix: str, path: str, scale: float, offset: float, factor: float
) -> dict[str, Any]:
    """A channel of one number; a constant has no path."""
    entry: dict[str, Any] = {key: prefix + path}
    if scale * factor != 1.0:
        entry["scale"] = _short(scale * factor)
    if offset:
        entry["offset"] = _short(offset * factor)
    return entry


def _short(value: float) -> float:
    return float(f"{value:.10g}")


def find_mapping(
    log: Path, about: LogFormat, model: RobotModel, config: RobotConfig
) -> tuple[LogFit, str]:
    """Finds what a log's numbers are.

    Args:
        log: The log.
        about: What is known of it.
        model: The robot.
        config: Its feet and IMU.

    Returns:
        What was found, and the mapping's text.

    Raises:
        ComModelError: It cannot be read, or nothing fits.
    """
    with TemporaryDirectory() as folder:
        if is_table(log) and about.mapping is None:
            guess = Path(folder) / "guess.yaml"
            guess.write_text(guess_mapping(read_table(log), model, config.feet))
            about = replace(about, mapping=guess)
        start = {} if about.mapping is None else read_yaml(about.mapping)
        with Bag(log, about) as bag:
            topics = find_topics(bag.topics(), (), TopicRequest(), True, str(log))
            readings = read_readings(bag, topics)
            own = ((topics.joint_states, JOINT_STATE), (topics.imu or "", IMU))
            made = bag.conversions + [
                Conversion(topic, topic, kind, _FIELDS[kind]) for topic, kind in own
            ]
    fit = fit_log(readings, model, config)
    return fit, mapping_text(log, readings.names, fit, made, start)


@reports_errors("com_setup", 2, ComModelError, OSError)
def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line.

    Args:
        argv: Arguments without the program's name; None: those of the process.

    Returns:
        Exit status: 0 where the mapping is written, 2 where nothing can be told.
    """
    parser = command_parser("com_setup", __doc__, __file__)
    add = parser.add_argument
    add("robot", help="a robot's name, or the path of its URDF or MJCF file")
    add("--from-log", type=Path, required=True, metavar="LOG", help="recording, table")
    add("--config", metavar="YAML", help="its configuration; default: beside the URDF")
    add_log_options(parser)
    add(
        "--output",
        type=Path,
        metavar="YAML",
        help="mapping to write; default: LOG.yaml",
    )
    add("--force", action="store_true", help="overwrite an existing file")
    options = parser.parse_args(argv)
    log: Path = options.from_log
    output = options.output or log.with_suffix(".yaml")
    model, config = load_robot(options.robot, options.config)
    about = LogFormat.of(model, config.feet, options)
    fit, text = find_mapping(log, about, model, config)
    write_file(output, text, options.force)
    print(
        columns(("of the log", "by physics"), [*fit.told.items(), *fit.unsure.items()])
    )
    print(
        f"wrote {output}\nNext: identify {log} --robot {options.robot} --mapping {output}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
