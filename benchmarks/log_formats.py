"""The same motions in each kind of log: what identify makes of them, and what it refuses.

    tools/in_env python benchmarks/log_formats.py [--seconds 5] [FORMAT ...]

A simulated Go2 whose URDF, drives and sensors err trots in six gaits (walking_lab), a G1 sways
twice for 30 s (slow_lab; g1_ before the name of the format). Their readings are written as each
format has them, and read back by com_bags: no converter is in between.

standard              joint_states and imu in mcap
lowstate              Unitree's /lowstate in sqlite3 without definitions, as Humble records it
ros1                  a ROS 1 bag
own_message           messages of a type of one's own, by a mapping
csv                   degrees, deg/s, g
csv_sparse            rows of joints and rows of the IMU, as PlotJuggler writes them
csv_state             Unitree's state messages as a table, the names of its fields; no mapping
csv_two_files         joints in one file, IMU in another
csv_dates             times as ISO 8601
csv_rounded           four decimals
csv_doubled           each row twice
csv_two_runs          all gaits one after the other in one file, each from t = 0
csv_jitter            times of receipt, 0.5 ms standard deviation
csv_loss              2 % of the rows are missing
csv_receipt           times of receipt, 0.5 ms standard deviation, 8 % missing; --time even
csv_slow              100 Hz of the trot in place of 500, 50 Hz of the sway in place of 100
dat, parquet, npz, mat    columns of text; arrays; MATLAB's v7.3

refused: what must not be believed, and in which words it is refused: degrees, deg/s, g, mg,
currents, kgf cm and reversed legs that the mapping does not declare, torques missing, a pickle.

The last line is one JSON object: formats: {name: {com_error_mm, sigma_mm}}, refused: {name: words}.
com_error_mm is the RMS error of the whole robot's CoM in 40 other postures, sigma_mm what the
identification says of it.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# isort: split
import argparse
import json
import sqlite3
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import h5py
import numpy as np
import pandas
import yaml
from numpy.typing import NDArray
from rosbags.rosbag1 import Writer as Ros1Writer
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from slow_lab import draw, sway
from walking_identification import true_com
from walking_lab import by_size, record

from com_bags import (
    Bag,
    LogFormat,
    SensorReader,
    TopicRequest,
    even_times,
    find_topics,
    read_walk,
)
from com_bags.message_layout import MessageWriter
from com_bags.robot_states import STATE_ROBOTS, STATE_TYPES
from com_bags.sensors import WalkLog
from com_identification.slow.identify import identify_slow
from com_identification.walking.identify import WalkResult, identify_walking
from com_identification.walking.log import walking_parts
from com_identification.walking.unknowns import Scale
from com_model import RobotConfig, RobotModel
from com_model.exceptions import ComModelError

Array = NDArray[np.float64]
START = 1_700_000_000  # s since 1970
POSTURES, SPREAD = 40, 0.4  # rad, about the mean posture
SWAYING = 30.0  # s, twice
SIZES = {"unitree_go/msg/LowState": 1180, "unitree_hg/msg/LowState": 2092}  # bytes
OWN = "own/msg/State"
OWN_DEFINITION = """std_msgs/Header header
float64[] q
float64[] dq
float64[] tau
geometry_msgs/Quaternion turn
geometry_msgs/Vector3 gyro
float64[3] force
"""


@dataclass(frozen=True, eq=False)
class Recorded:
    """A robot with errors, and its logs."""

    believed: RobotModel
    true: RobotModel
    config: RobotConfig
    logs: Sequence[WalkLog]
    slow: bool  # sways; else it trots


def trotting_go2(seconds: float) -> Recorded:
    """A Go2 in six gaits; seconds: of each."""
    wrong, gaits = by_size("go2")
    robot, walks = record("go2", 1, seconds, wrong, gaits)
    logs = [walk.log for walk in walks[:-1]]
    return Recorded(robot.believed, robot.true, robot.config, logs, False)


def swaying_g1() -> Recorded:
    """A G1 that sways on both feet."""
    robot = draw("g1", 0)
    logs = [sway(robot, SWAYING, seed) for seed in (0, 1)]
    return Recorded(robot.believed, robot.true, robot.config, logs, True)


def quaternions(log: WalkLog) -> Array:
    """Turns (N, 4) x, y, z, w of the root with its z axis as measured; yaw is unknown."""
    if log.up is None:  # as drivers do that publish none
        return np.tile([0.0, 0.0, 0.0, 1.0], (len(log.time), 1))
    up = log.up
    scalar = np.sqrt(np.maximum(0.5 * (1.0 + up[:, 2]), 1e-12))
    half = 0.5 / scalar
    return np.column_stack((up[:, 1] * half, -up[:, 0] * half, 0.0 * half, scalar))


def arrays(robot: Recorded, log: WalkLog) -> dict[str, Array]:
    """What a logger has of a walk; the joints are the model's."""
    assert log.velocity is not None
    link = robot.believed.link_index(robot.config.imu_link or robot.believed.root_link)
    if not np.allclose(robot.believed.bodies.R_body_link[link], np.eye(3)):
        raise SystemExit("the IMU's axes are not those of the root")
    return {
        "t": log.time - log.time[0],
        "q": log.position,
        "dq": log.velocity,
        "tau": log.effort,
        "turn": quaternions(log),
        "gyro": log.angular_velocity,
        "force": log.specific_force,
    }


def columns(data: dict[str, Array]) -> dict[str, Array]:
    """Columns of a table, in degrees, deg/s and g."""
    found = {"t": data["t"]}
    for name, unit in (("q", np.rad2deg(1.0)), ("dq", np.rad2deg(1.0)), ("tau", 1.0)):
        found |= {f"{name}_{i}": unit * v for i, v in enumerate(data[name].T)}
    found |= {f"turn_{a}": data["turn"][:, i] for i, a in enumerate("xyzw")}
    found |= {f"gyro_{a}": np.rad2deg(data["gyro"][:, i]) for i, a in enumerate("xyz")}
    found |= {f"force_{a}": data["force"][:, i] / 9.80665 for i, a in enumerate("xyz")}
    return found


def table_mapping(robot: Recorded) -> dict:
    """The mapping of these columns."""
    return {
        "time": "t",
        "joints": {
            "names": list(robot.believed.joint_names),
            "position": {"column": "q_*", "unit": "deg"},
            "velocity": {"column": "dq_*", "unit": "deg/s"},
            "effort": "tau_*",
        },
        "imu": {
            "orientation": [f"turn_{a}" for a in "xyzw"],
            "gyro": [{"column": f"gyro_{a}", "unit": "deg/s"} for a in "xyz"],
            "acceleration": [{"column": f"force_{a}", "unit": "g"} for a in "xyz"],
        },
    }


def write_csv(path: Path, data: dict[str, Array], form: str = "%.12g") -> None:
    """A csv file; NaN as empty cells."""
    pandas.DataFrame(data).to_csv(path, index=False, float_format=form)


def _savez(path: Path, data: dict[str, Array]) -> None:
    np.savez(path, **data)  # type: ignore[arg-type]


class Formats:
    """Writers: each returns the files of the gaits, and their mapping."""

    def __init__(self, robot: Recorded, folder: Path) -> None:
        self.robot, self.folder = robot, folder
        self.data = [arrays(robot, log) for log in robot.logs]
        self.rng = np.random.default_rng(5)
        self.mapping = self._mapping("table", table_mapping(robot))

    def _mapping(self, name: str, content: dict) -> Path:
        path = self.folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump(content))
        return path

    def _tables(
        self,
        ending: str,
        write: Callable[[Path, dict[str, Array]], None],
        change: Callable[[dict[str, Array]], dict[str, Array]] = lambda data: data,
    ) -> tuple[list[Path], Path]:
        files = []
        for k, data in enumerate(self.data):
            files.append(
                self.folder / f"{k}_{len(list(self.folder.iterdir()))}{ending}"
            )
            write(files[-1], change(columns(data)))
        return files, self.mapping

    def csv(self) -> tuple[list[Path], Path | None]:
        """Plain."""
        return self._tables(".csv", write_csv)

    def csv_sparse(self) -> tuple[list[Path], Path | None]:
        """Rows of joints and rows of the IMU."""

        def change(data: dict[str, Array]) -> dict[str, Array]:
            count, found = len(data["t"]), {}
            for name, values in data.items():
                own = name.startswith(("turn", "gyro", "force"))
                found[name] = np.full(2 * count, np.nan)
                found[name][own::2] = values
            found["t"] = np.repeat(data["t"], 2)
            return found

        # the reading of the IMU comes first at each time, else there is none before the first
        def imu_first(data: dict[str, Array]) -> dict[str, Array]:
            found = change(data)
            found["t"][1::2] -= 1e-6
            order = np.argsort(found["t"], kind="stable")
            return {name: values[order] for name, values in found.items()}

        return self._tables(".csv", write_csv, imu_first)

    def csv_two_files(self) -> tuple[list[Path], Path | None]:
        """Joints in one file, IMU in another."""
        files = []
        content = table_mapping(self.robot)
        content["imu"] |= {"table": "imu.csv"}
        for k, data in enumerate(self.data):
            place = self.folder / f"two_{k}"
            place.mkdir()
            table = columns(data)
            imu = {
                n: v for n, v in table.items() if n[:4] in ("turn", "gyro", "forc", "t")
            }
            write_csv(place / "imu.csv", imu)
            rest = {n: v for n, v in table.items() if n == "t" or n not in imu}
            write_csv(place / "joints.csv", rest)
            files.append(place / "joints.csv")
        return files, self._mapping("two", content)

    def csv_dates(self) -> tuple[list[Path], Path | None]:
        """Times as ISO 8601."""

        def write(path: Path, data: dict[str, Array]) -> None:
            frame = pandas.DataFrame(data)
            since = np.rint(1e9 * data["t"]).astype(np.int64)
            frame["t"] = pandas.to_datetime(START * 10**9 + since)
            frame["t"] = [time.isoformat() for time in frame["t"]]
            frame.to_csv(path, index=False)

        return self._tables(".csv", write)

    def csv_rounded(self) -> tuple[list[Path], Path | None]:
        """Four decimals."""
        return self._tables(".csv", lambda path, data: write_csv(path, data, "%.4f"))

    def csv_doubled(self) -> tuple[list[Path], Path | None]:
        """Each row twice."""
        double = lambda data: {n: np.repeat(v, 2) for n, v in data.items()}  # noqa: E731
        return self._tables(".csv", write_csv, double)

    def csv_two_runs(self) -> tuple[list[Path], Path | None]:
        """All gaits in one file, each from t = 0."""
        tables = [columns(data) for data in self.data]
        whole = {n: np.concatenate([t[n] for t in tables]) for n in tables[0]}
        write_csv(self.folder / "runs.csv", whole)
        return [self.folder / "runs.csv"], self.mapping

    def csv_jitter(self) -> tuple[list[Path], Path | None]:
        """Times of receipt."""

        def change(data: dict[str, Array]) -> dict[str, Array]:
            late = np.abs(self.rng.normal(0.0, 5e-4, len(data["t"])))
            return data | {"t": np.maximum.accumulate(data["t"] + late)}

        return self._tables(".csv", write_csv, change)

    def csv_receipt(self) -> tuple[list[Path], Path | None]:
        """Times of receipt of a bad network."""

        def change(data: dict[str, Array]) -> dict[str, Array]:
            kept = self.rng.random(len(data["t"])) > 0.08
            late = np.abs(self.rng.normal(0.0, 5e-4, len(data["t"])))
            late = np.maximum.accumulate(data["t"] + late)
            return {n: v[kept] for n, v in (data | {"t": late}).items()}

        return self._tables(".csv", write_csv, change)

    def csv_loss(self) -> tuple[list[Path], Path | None]:
        """Rows that are missing."""

        def change(data: dict[str, Array]) -> dict[str, Array]:
            kept = self.rng.random(len(data["t"])) > 0.02
            return {name: values[kept] for name, values in data.items()}

        return self._tables(".csv", write_csv, change)

    def csv_slow(self) -> tuple[list[Path], Path | None]:
        """Rows that are left out: 100 Hz of the trot, 50 Hz of the sway."""
        step = 2 if self.robot.slow else 5
        fewer = lambda data: {n: v[::step] for n, v in data.items()}  # noqa: E731
        return self._tables(".csv", write_csv, fewer)

    def dat(self) -> tuple[list[Path], Path | None]:
        """Columns with spaces between them."""

        def write(path: Path, data: dict[str, Array]) -> None:
            table = np.column_stack(list(data.values()))
            np.savetxt(path, table, fmt="%.12g", header=" ".join(data))

        return self._tables(".dat", write)

    def parquet(self) -> tuple[list[Path], Path | None]:
        """Parquet."""
        return self._tables(".parquet", lambda p, d: pandas.DataFrame(d).to_parquet(p))

    def npz(self) -> tuple[list[Path], Path | None]:
        """Arrays of numpy."""
        return self._tables(".npz", _savez)

    def mat(self) -> tuple[list[Path], Path | None]:
        """MATLAB's v7.3, which is HDF5 behind a header."""

        def write(path: Path, data: dict[str, Array]) -> None:
            with h5py.File(path, "w", userblock_size=512) as stored:
                for name, values in data.items():
                    stored[name] = values[None]

        return self._tables(".mat", write)

    def _state(self) -> tuple[str, list[int]]:
        """Type of the robot's state messages, and places of its joints by motor."""
        names = self.robot.believed.joint_names
        kind, motors = next(
            (kind, robot)
            for robot in STATE_ROBOTS
            for kind in set(robot.type_names) & set(SIZES)
            if set(robot.joints) == set(names)
        )
        return kind, [names.index(name) for name in motors.joints]

    def csv_state(self) -> tuple[list[Path], Path | None]:
        """Unitree's state messages as PlotJuggler writes them, with rows of another topic."""
        _, order = self._state()
        files = []
        for k, data in enumerate(self.data):
            table = {"__time": START + data["t"] + self.rng.uniform(0, 1e-3)}
            for i, j in enumerate(order):
                for name, of in (("q", "q"), ("dq", "dq"), ("tau_est", "tau")):
                    table[f"/lowstate/motor_state[{i}]/{name}"] = data[of][:, j]
            for name, of in (("gyroscope", "gyro"), ("accelerometer", "force")):
                for i in range(3):
                    table[f"/lowstate/imu_state/{name}[{i}]"] = data[of][:, i]
            for i, j in enumerate((3, 0, 1, 2)):
                table[f"/lowstate/imu_state/quaternion[{i}]"] = data["turn"][:, j]
            table["/lowstate/tick"] = np.rint(1e3 * data["t"]) + 1000.0
            other = {"__time": table["__time"] + 5e-4, "/lowcmd/motor_cmd[0]/q": 0.1}
            frames = [pandas.DataFrame(each) for each in (table, other)]
            files.append(self.folder / f"state_{k}.csv")
            pandas.concat(frames).sort_values("__time").to_csv(files[-1], index=False)
        return files, None

    def lowstate(self) -> tuple[list[Path], Path | None]:
        """Unitree's state messages, in the order of the motors."""
        kind, order = self._state()
        types: dict = {}
        for name, text in STATE_TYPES[kind].definitions.items():
            types.update(get_types_from_msg(text, name))
        used = f"motor_state[0:{len(order)}]"
        fields = {f: f"{used}.{f}" for f in ("q", "dq", "tau_est")}
        fields |= {
            f: f"imu_state.{f}" for f in ("quaternion", "gyroscope", "accelerometer")
        }
        template = b"\0\1\0\0" + bytes(SIZES[kind])
        writer = MessageWriter(types, kind, template, fields | {"tick": "tick"})
        files = []
        for k, data in enumerate(self.data):
            payloads = writer.write(
                {
                    "q": data["q"][:, order],
                    "dq": data["dq"][:, order],
                    "tau_est": data["tau"][:, order],
                    "quaternion": data["turn"][:, [3, 0, 1, 2]],
                    "gyroscope": data["gyro"],
                    "accelerometer": data["force"],
                    "tick": np.rint(1e3 * data["t"])[:, None] + 1000.0,
                }
            )
            files.append(self.folder / f"lowstate_{k}")
            self._sqlite(files[-1], "/lowstate", kind, data["t"], payloads)
        return files, None

    def _sqlite(
        self, path: Path, topic: str, kind: str, times: Array, payloads: Sequence[bytes]
    ) -> None:
        """A bag without definitions, received with jitter."""
        path.mkdir()
        late = np.abs(self.rng.normal(0.0, 1e-3, len(times)))
        received = START * 10**9 + (1e9 * (times + late)).astype(np.int64)
        with sqlite3.connect(path / "bag_0.db3") as database:
            database.execute(
                "CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT, type TEXT, "
                "serialization_format TEXT, offered_qos_profiles TEXT)"
            )
            database.execute(
                "CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER, "
                "timestamp INTEGER, data BLOB)"
            )
            database.execute(
                "INSERT INTO topics VALUES(1, ?, ?, 'cdr', '')", (topic, kind)
            )
            rows = zip(received.tolist(), payloads, strict=True)
            database.executemany(
                "INSERT INTO messages(topic_id, timestamp, data) VALUES(1, ?, ?)", rows
            )

    def own_message(self) -> tuple[list[Path], Path | None]:
        """Messages of a type of one's own."""
        store = get_typestore(Stores.ROS2_JAZZY)
        store.register(get_types_from_msg(OWN_DEFINITION, OWN))
        make, files = store.types, []
        for k, data in enumerate(self.data):
            files.append(self.folder / f"own_{k}")
            with Writer(
                files[-1], version=9, storage_plugin=StoragePlugin.MCAP
            ) as writer:
                connection = writer.add_connection("/state", OWN, typestore=store)
                for i, time in enumerate(data["t"].tolist()):
                    at = START * 10**9 + round(1e9 * time)
                    stamp = make["builtin_interfaces/msg/Time"](*divmod(at, 10**9))
                    message = make[OWN](
                        make["std_msgs/msg/Header"](stamp, ""),
                        data["q"][i],
                        data["dq"][i],
                        data["tau"][i],
                        make["geometry_msgs/msg/Quaternion"](*data["turn"][i]),
                        make["geometry_msgs/msg/Vector3"](*data["gyro"][i]),
                        data["force"][i],
                    )
                    writer.write(connection, at, store.serialize_cdr(message, OWN))
        content = {
            "joints": {
                "names": list(self.robot.believed.joint_names),
                "position": "/state q",
                "velocity": "/state dq",
                "effort": "/state tau",
            },
            "imu": {
                "orientation": "/state turn",
                "gyro": "/state gyro",
                "acceleration": "/state force",
            },
        }
        return files, self._mapping("own", content)

    def standard(self) -> tuple[list[Path], Path | None]:
        """joint_states and imu."""
        return self._messages(Stores.ROS2_JAZZY, "standard")

    def ros1(self) -> tuple[list[Path], Path | None]:
        """The same in a bag of ROS 1."""
        return self._messages(Stores.ROS1_NOETIC, "ros1")

    def _messages(self, stores: Stores, name: str) -> tuple[list[Path], None]:
        store, files = get_typestore(stores), []
        make, old = store.types, stores == Stores.ROS1_NOETIC
        kinds = "sensor_msgs/msg/JointState", "sensor_msgs/msg/Imu"
        zero, names = np.zeros(9), list(self.robot.believed.joint_names)
        vector = make["geometry_msgs/msg/Vector3"]
        for k, data in enumerate(self.data):
            files.append(self.folder / (f"{name}_{k}" + ".bag" * old))
            writer = (
                Ros1Writer(files[-1])
                if old
                else Writer(files[-1], version=9, storage_plugin=StoragePlugin.MCAP)
            )
            with writer:
                to = [
                    writer.add_connection(topic, kind, typestore=store)
                    for topic, kind in zip(
                        ("/joint_states", "/imu"), kinds, strict=True
                    )
                ]
                for i, time in enumerate(data["t"].tolist()):
                    at = START * 10**9 + round(1e9 * time)
                    stamp = make["builtin_interfaces/msg/Time"](*divmod(at, 10**9))
                    count = (i,) if old else ()
                    header = make["std_msgs/msg/Header"](*count, stamp, "")
                    rows = (data[column][i] for column in ("q", "dq", "tau"))
                    reading = make[kinds[1]](
                        header,
                        make["geometry_msgs/msg/Quaternion"](*data["turn"][i]),
                        zero,
                        vector(*data["gyro"][i]),
                        zero,
                        vector(*data["force"][i]),
                        zero,
                    )
                    sent = make[kinds[0]](header, names, *rows), reading
                    for connection, message in zip(to, sent, strict=True):
                        serialize = store.serialize_ros1 if old else store.serialize_cdr
                        raw = serialize(message, connection.msgtype)
                        writer.write(connection, at, raw)
        return files, None

    # --- what must be refused ------------------------------------------------------------------
    def _undeclared(
        self, change: Callable[[dict], object]
    ) -> tuple[list[Path], Path | None]:
        content = table_mapping(self.robot)
        change(content)
        files, _ = self.csv()
        return files, self._mapping(
            f"wrong_{len(list(self.folder.iterdir()))}", content
        )

    def degrees(self) -> tuple[list[Path], Path | None]:
        """Positions in degrees that are taken for rad."""
        return self._undeclared(lambda m: m["joints"]["position"].pop("unit"))

    def degrees_per_second(self) -> tuple[list[Path], Path | None]:
        """Angular velocity in deg/s that is taken for rad/s."""
        return self._undeclared(lambda m: [c.pop("unit") for c in m["imu"]["gyro"]])

    def g(self) -> tuple[list[Path], Path | None]:
        """Acceleration in g that is taken for m/s^2."""
        return self._undeclared(
            lambda m: [c.pop("unit") for c in m["imu"]["acceleration"]]
        )

    def currents(self) -> tuple[list[Path], Path | None]:
        """Currents (0.48 A per N m) that are taken for torques."""
        return self._undeclared(
            lambda m: m["joints"].update(effort={"column": "tau_*", "scale": 0.48})
        )

    def kgf_cm(self) -> tuple[list[Path], Path | None]:
        """Torques in kgf cm that are taken for N m."""
        return self._undeclared(
            lambda m: m["joints"].update(effort={"column": "tau_*", "scale": 10.19716})
        )

    def mg(self) -> tuple[list[Path], Path | None]:
        """Acceleration in mg that is taken for m/s^2."""
        return self._undeclared(
            lambda m: [c.update(unit="1", scale=1e3) for c in m["imu"]["acceleration"]]
        )

    def reversed_leg(self) -> tuple[list[Path], Path | None]:
        """Torques of one leg with the other sign."""
        legs = len(self.robot.config.feet)
        leg = 12 // legs  # joints; legs come first
        scale = [-1.0] * leg + [1.0] * (self.robot.believed.n_joints - leg)
        return self._undeclared(
            lambda m: m["joints"].update(effort={"column": "tau_*", "scale": scale})
        )

    def reversed_torques(self) -> tuple[list[Path], Path | None]:
        """Torques with the other sign."""
        return self._undeclared(
            lambda m: m["joints"].update(effort={"column": "tau_*", "scale": -1.0})
        )

    def no_torques(self) -> tuple[list[Path], Path | None]:
        """No torques at all."""
        return self._undeclared(lambda m: m["joints"].pop("effort"))

    def pickle(self) -> tuple[list[Path], Path | None]:
        """A pickle."""
        (self.folder / "log.pkl").write_bytes(b"\x80\x04.")
        return [self.folder / "log.pkl"], self.mapping


REFUSED = (
    "degrees",
    "degrees_per_second",
    "g",
    "mg",
    "currents",
    "kgf_cm",
    "reversed_leg",
    "reversed_torques",
    "no_torques",
    "pickle",
)
FORMATS = (
    "standard",
    "lowstate",
    "ros1",
    "own_message",
    "csv",
    "csv_sparse",
    "csv_state",
    "csv_two_files",
    "csv_dates",
    "csv_rounded",
    "csv_doubled",
    "csv_two_runs",
    "csv_jitter",
    "csv_loss",
    "csv_receipt",
    "csv_slow",
    "dat",
    "parquet",
    "npz",
    "mat",
)


def identify(
    robot: Recorded, files: Sequence[Path], mapping: Path | None, even: bool = False
) -> WalkResult:
    """What identify does with the files; even: with --time even."""
    model, link = robot.believed, robot.config.imu_link or robot.believed.root_link
    about = LogFormat(tuple(model.joint_names), tuple(model.link_names), {}, mapping)
    logs = []
    for path in files:
        with Bag(path, about) as bag:
            topics = find_topics(bag.topics(), (), TopicRequest(), True, str(path))
            log = read_walk(SensorReader(bag, model, (), topics, link))
            times = even_times(log.time) if even else log.time
            logs += walking_parts(replace(log, time=times))
    scale = Scale(robot.true.mass)
    if robot.slow:
        standing = [False] * len(logs)
        result = identify_slow(logs, standing, model, robot.config, scale)
    else:
        result = identify_walking(logs, model, robot.config, scale)
    failed = [gate.text for gate in result.gates if not gate.passed and gate.required]
    if failed:
        raise ComModelError(failed[0])
    return result


def errors(robot: Recorded, result: WalkResult) -> tuple[float, float]:
    """RMS error of the CoM in other postures, and its standard deviation, mm."""
    rng, found, said = np.random.default_rng(3), [], []
    for _ in range(POSTURES):
        q = result.posture + rng.uniform(-SPREAD, SPREAD, result.model.n_joints)
        com, C = result.com(q)
        found.append(com - true_com(robot.true, q))
        said.append(np.trace(C))
    rms = np.sqrt((np.array(found) ** 2).sum(axis=1).mean())
    return 1e3 * float(rms), 1e3 * float(np.sqrt(np.mean(said)))


def main() -> int:
    """Runs all or the named formats, and prints the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="FORMAT", help="default: all")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each gait")
    options = parser.parse_args()
    known = [p + name for p in ("", "g1_") for name in (*FORMATS, *REFUSED)]
    if unknown := set(options.names) - set(known):
        parser.error(
            f"unknown: {', '.join(sorted(unknown))}; valid: {', '.join(known)}"
        )
    go2 = cache(lambda: trotting_go2(options.seconds))
    g1 = cache(swaying_g1)
    figures: dict[str, dict] = {"formats": {}, "refused": {}}
    for name in options.names or known:
        with tempfile.TemporaryDirectory() as folder:
            robot, form = (g1 if name[:3] == "g1_" else go2)(), name.removeprefix("g1_")
            files, mapping = getattr(Formats(robot, Path(folder)), form)()
            try:
                even = form == "csv_receipt"
                error, sigma = errors(robot, identify(robot, files, mapping, even))
            except ComModelError as refusal:
                words = str(refusal).replace(folder, "")
                figures["refused"][name] = words[:300]
                print(f"{name:20} refused: {' '.join(words[:150].split())}", flush=True)
                continue
        found = {"com_error_mm": round(error, 3), "sigma_mm": round(sigma, 3)}
        figures["formats"][name] = found
        print(f"{name:20} {error:6.3f} mm, sigma {sigma:6.3f} mm", flush=True)
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
