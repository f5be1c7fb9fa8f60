"""Every reader of files of the suite, with valid files to mutate and the one error it may raise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from mutations import Files, mutate, mutate_rows
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from com_bags import (
    Bag,
    BagError,
    MarksError,
    SensorReader,
    TableError,
    TopicRequest,
    UnitError,
    find_topics,
    read_table,
)
from com_control.exceptions import MotionError
from com_control.motion.files import read_bag, read_motion, write_bag
from com_control.motion.motion import Motion, MotionLayout
from com_demos.posture_files import read_postures
from com_identification.capture.from_bag import (
    marks_of_topic,
    read_marks,
    record_postures,
)
from com_identification.capture.recorder import PostureRecorder
from com_identification.exceptions import (
    HealthError,
    IdentificationError,
    ProtocolError,
    StoreError,
)
from com_identification.health.records import Record
from com_identification.human import read_trial
from com_identification.regression.postures import make_posture
from com_identification.regression.priors import urdf_priors
from com_identification.settings import IdentificationSettings
from com_identification.store.store import PostureStore
from com_identification.tip_over.protocol import TipProtocol, read_angles
from com_identification.tip_over.quasi_static import QuasiStatic
from com_identification.walking.posterior import RobotPosterior, to_npz
from com_model import ComModelError, RobotConfig, RobotModel
from com_model.exceptions import MeshError
from com_model.postures import write_postures
from com_model.shapes.meshes import load_mesh

ROBOTS = Path(__file__).resolve().parents[2] / "src" / "robot_descriptions"
START_NS = 1_700_000_000_000_000_000
SAMPLES = 40


@dataclass(frozen=True)
class Reader:
    """A reader of one kind of file.

    Attributes:
        name: Of the reader.
        seeds: Valid files, or folders of them.
        read: Reads a path; a folder where a seed has several files.
        errors: What it may raise.
        binary: Whether the file is no text.
        weight: Fraction of all inputs, in proportion to the others.
    """

    name: str
    seeds: tuple[Files, ...]
    read: Callable[[Path], object]
    errors: tuple[type[Exception], ...]
    binary: bool = False
    weight: float = 1.0

    def write(self, folder: Path, rng: np.random.Generator) -> Path:
        """Writes a mutated seed into an empty folder; returns the path to read."""
        files = dict(self.seeds[int(rng.integers(len(self.seeds)))])
        others = self.seeds[int(rng.integers(len(self.seeds)))]
        names = sorted(files)
        name = names[int(rng.integers(len(names)))]
        rows = name.endswith(".db3") and rng.random() < 0.5
        if not rows:
            other = next(
                (data for key, data in others.items() if key[-4:] == name[-4:]), b""
            )
            files[name] = mutate(
                files[name], other, rng, self.binary and "yaml" not in name
            )
        for key, data in files.items():
            (folder / key).write_bytes(data)
        if rows:
            mutate_rows(folder / name, rng)
        return folder if len(files) > 1 and rng.random() < 0.7 else folder / name

    def check_seeds(self, folder: Path) -> None:
        """Reads each seed as it is: what is refused is no valid file to begin with."""
        for k, files in enumerate(self.seeds):
            part = folder / f"{self.name}{k}"
            part.mkdir(parents=True)
            for key, data in files.items():
                (part / key).write_bytes(data)
            self.read(part if len(files) > 1 else part / next(iter(files)))


def readers() -> list[Reader]:
    """All of them; builds what they need."""
    model = RobotModel.from_file(ROBOTS / "urdf" / "hoap2.urdf")
    config = RobotConfig.from_file(ROBOTS / "config" / "hoap2.yaml")
    layout = MotionLayout.from_file(
        ROBOTS / "config" / "motion" / "hoap2.yaml", config, model
    )
    protocol = TipProtocol.from_file(
        ROBOTS / "config" / "posture_protocol" / "hoap2.yaml"
    )
    rest = config.nominal_posture(model)
    settings = IdentificationSettings.from_dict(
        {"capture": {"collect_time": 0.1, "settle_time": 0.1}, "fit": {"use_imu": True}}
    )

    def bag(path: Path) -> None:
        with Bag(path) as opened:
            topics = find_topics(
                opened.topics(),
                config.feet,
                TopicRequest(markers="mark"),
                True,
                str(path),
            )
            marks = []
            if path.suffix:  # of a single file
                marks = marks_of_topic(
                    opened, topics.joint_states, topics.markers or "", False
                )
            recorder = PostureRecorder(model, config.feet, settings, marks)
            reader = SensorReader(opened, model, config.feet, topics, config.imu_link)
            record_postures(reader, recorder)
            for text in reader.warnings():
                check_length(text)

    def store(path: Path) -> None:
        with PostureStore(path, model, config.feet) as opened:
            opened.add(make_posture(model, rest, np.ones((len(config.feet), 6))), 1)
        with TemporaryDirectory() as folder:
            copy = Path(folder) / "postures.db"
            with PostureStore(copy, model, config.feet) as opened:
                opened.load(path)

    def motion_bag(path: Path) -> None:
        read_bag(path, layout, 0.01)

    def robot_yaml(path: Path) -> None:
        read = RobotConfig.from_file(path)
        if read.name == config.name:  # the seeds are those of all robots
            read.attach(model)
            read.nominal_posture(model)

    def settings_yaml(path: Path) -> None:
        IdentificationSettings.from_file(path).check(model)

    def trial(path: Path) -> None:
        folder = path if path.is_dir() else path.parent
        read_trial(folder / "a.trc", folder / "a.mot")

    def robots(pattern: str, largest: int = 10**5) -> tuple[Files, ...]:
        found = sorted(
            file for file in ROBOTS.glob(pattern) if file.stat().st_size <= largest
        )
        return tuple({file.name: file.read_bytes()} for file in found)

    csv = (ROBOTS / "motions" / "hoap2_squat_and_wave.csv").read_bytes()
    rows = b"".join(csv.splitlines(keepends=True)[:60])
    marks = b"start,end,label\n0.1,0.4,one\n0.5,0.9,two\n# no\n1700000002,1700000003.5,three\n"
    yaml = (ConfigTexts.settings, ConfigTexts.links)
    config_errors = (ComModelError,)
    return [
        Reader(
            "bags",
            _sensor_bags(model, config),
            bag,
            (BagError, UnitError),
            True,
            1.5,
        ),
        Reader(
            "marks",
            ({"marks.csv": marks},),
            lambda p: read_marks(p, START_NS),
            (MarksError,),
        ),
        Reader(
            "store", (_store(model, config, rest),), store, (StoreError,), weight=2.0
        ),
        Reader("urdf", robots("urdf/*.urdf"), RobotModel.from_file, config_errors),
        Reader("robot_yaml", robots("config/*.yaml"), robot_yaml, config_errors),
        Reader(
            "settings_yaml",
            tuple({"settings.yaml": text.encode()} for text in yaml),
            settings_yaml,
            (*config_errors, IdentificationError),
        ),
        Reader(
            "posture_yaml",
            (_postures(model, rest),),
            lambda path: read_postures(path, model),
            config_errors,
        ),
        Reader(
            "protocol_yaml",
            robots("config/posture_protocol/hoap2.yaml"),
            lambda path: QuasiStatic.from_protocol(
                model, config, TipProtocol.from_file(path)
            ),
            (*config_errors, ProtocolError),
        ),
        Reader(
            "tip_csv",
            robots("data/hoap2_posture_protocol.csv"),
            lambda path: read_angles(path, protocol),
            (ProtocolError,),
        ),
        Reader(
            "motion_yaml",
            robots("config/motion/hoap2.yaml"),
            lambda path: MotionLayout.from_file(path, config, model),
            (*config_errors, MotionError),
        ),
        Reader(
            "motion_csv",
            ({"m.csv": rows},),
            lambda path: read_motion(path, layout),
            (MotionError,),
        ),
        Reader(
            "table_csv",
            ({"log.csv": TABLE}, {"log.mot": MOT}),
            read_table,
            (TableError,),
        ),
        Reader(
            "meshes",
            ({"a.stl": STL}, {"a.obj": OBJ}, {"a.dae": DAE}),
            load_mesh,
            (MeshError,),
        ),
        Reader(
            "records",
            ({"record.json": _record(model)},),
            lambda path: Record.from_json(path.read_text(errors="replace")),
            (HealthError,),
        ),
        Reader(
            "posterior",
            ({"posterior.npz": _posterior()},),
            RobotPosterior.from_file,
            (IdentificationError,),
            True,
        ),
        Reader("trial", ({"a.trc": TRC, "a.mot": MOT},), trial, (TableError,)),
        Reader(
            "motion_bags",
            _motion_bags(layout, rest, model),
            motion_bag,
            (MotionError,),
            True,
        ),
    ]


STL = b"solid a\n" + b"".join(
    b"facet normal 0 0 1\nouter loop\nvertex 0 0 %d\nvertex 1 0 0\nvertex 0 1e-1 0\n"
    b"endloop\nendfacet\n" % k
    for k in range(4)
)
OBJ = b"v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1.5\nf 1 2 3\nf 1/1 2/2 3/3 4/4\nf -1 -2 -3\n"
DAE = b"""<?xml version="1.0" encoding="utf-8"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<asset><unit meter="0.001"/><up_axis>Z_UP</up_axis></asset>
<library_geometries><geometry id="g"><mesh>
<source id="p"><float_array id="a" count="9">0 0 0 1 0 0 0 1 0</float_array></source>
<vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
<triangles count="1"><input semantic="VERTEX" source="#v" offset="0"/><p>0 1 2</p></triangles>
</mesh></geometry></library_geometries>
<library_visual_scenes><visual_scene id="s"><node id="n"><matrix>1 0 0 0 0 1 0 0 0 0 1 0 0 0 0 1
</matrix><instance_geometry url="#g"/></node></visual_scene></library_visual_scenes></COLLADA>
"""
TABLE = b"t,a\n" + b"".join(b"0.%d,%d.5e-1\n" % (k, k) for k in range(9))
TRC = (
    b"PathFileType\t4\t(X/Y/Z)\ta.trc\nDataRate\tCameraRate\tNumFrames\tNumMarkers\tUnits\n"
    b"10\t10\t5\t2\tmm\nFrame#\tTime\tR.KNE\t\t\tL.KNE\n\t\tX1\tY1\tZ1\tX2\tY2\tZ2\n"
) + b"".join(b"%d\t0.%d\t1\t900.5\t-3\t4\t905\t%d\n" % (k, k, k) for k in range(1, 6))
MOT = (
    b"grf\nversion=1\nendheader\ntime ground_force_vx ground_force_vy ground_force_vz "
    b"ground_force_px ground_force_py ground_force_pz "
    b"ground_torque_x ground_torque_y ground_torque_z\n"
) + b"".join(b"0.%d 1.5 700.%d -2 0.1 0 0.2 0 1e-1 0\n" % (k, k) for k in range(1, 9))
MAX_MESSAGE = 500


class LongMessageError(Exception):
    """A message is longer than MAX_MESSAGE characters."""


def check_length(text: str) -> None:
    """Raises LongMessageError where a message is too long."""
    if len(text) > MAX_MESSAGE:
        raise LongMessageError(f"{len(text)} characters: {text[:200]}")


class ConfigTexts:
    """Settings files of an identification."""

    settings = (
        "noise: {force: 0.5, moment: 0.02, position: 0.001}\nsensors: {force_bias: 0.05}\n"
        "prior: {com_std_fraction: 0.2, bounded: true}\nfit: {folds: 5}\n"
        "capture: {collect_time: 0.3, settle_time: 0.5}\nplan: {stands: [[0], [1], [0, 1]]}\n"
    )
    links = "links:\n  BODY2: {com_std: 0.01, mass: 2.5}\nprior:\n  mass_std_fraction: 0.1\n"


def _postures(model: RobotModel, rest: np.ndarray) -> Files:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "postures.yaml"
        write_postures(path, model, np.tile(rest, (5, 1)), "planned")
        return {path.name: path.read_bytes()}


def _store(model: RobotModel, config: RobotConfig, rest: np.ndarray) -> Files:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "postures.db"
        with PostureStore(path, model, config.feet) as store:
            for k in range(6):
                wrenches = np.full((len(config.feet), 6), 10.0 + k)
                store.add(
                    make_posture(model, rest, wrenches, label=f"{k}"), START_NS + k
                )
            store.set_bias(0, np.ones(6))
            store.remove(2)
        return {path.name: path.read_bytes()}


def _record(model: RobotModel) -> bytes:
    priors = urdf_priors(model, 0.01, 0.05)
    stds = priors.mass_std, priors.com_std
    size = 4 * len(model.bodies.names)
    record = Record.from_model(
        model,
        START_NS,
        serial="7",
        source="bag",
        path="walk",
        data_hash="1",
        bodies=model.bodies.names,
        parameters=np.ones(size),
        covariance=np.eye(size),
        prior_mass=priors.mass,
        prior_com=priors.com,
        prior_mass_std=stds[0],
        prior_com_std=stds[1],
        total_mass=(model.mass, 0.1),
        mass_on_feet=None,
        sensors={"zero": {"joint": (0.0, 1.0, 2.0)}},
        issues=("none",),
    )
    return record.to_json().encode()


def _posterior() -> bytes:
    size = 10 + 3  # parameters of a body, and of a joint
    arrays = {
        "bodies": np.array(["trunk"]),
        "joints": np.array(["hip"]),
        "mean": np.zeros(size),
        "covariance": np.eye(size),
    }
    return to_npz(arrays)


def _motion_bags(
    layout: MotionLayout, rest: np.ndarray, model: RobotModel
) -> tuple[Files, ...]:
    row = rest[[model.joint_index(name) for name in layout.joints]]
    motion = Motion(
        layout.joints,
        0.01 * np.arange(SAMPLES, dtype=np.float64),
        np.tile(row, (SAMPLES, 1)),
    )
    found = []
    for storage in ("mcap", "sqlite3"):
        with TemporaryDirectory() as folder:
            path = Path(folder) / "bag"
            write_bag(path, motion, storage)
            found.append(_files(path))
    return tuple(found)


def _sensor_bags(model: RobotModel, config: RobotConfig) -> tuple[Files, ...]:
    found = []
    for storage, compressed in (("mcap", False), ("sqlite3", False), ("mcap", True)):
        with TemporaryDirectory() as folder:
            path = Path(folder) / "bag"
            _write_sensors(path, model, config, storage, compressed)
            files = _files(path)
            if (
                storage == "mcap" and not compressed
            ):  # else the checksum hides all mutations
                files = {name: _without_checksums(data) for name, data in files.items()}
            found.append(files)
    return tuple(found)


def _files(folder: Path) -> Files:
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


def _without_checksums(data: bytes) -> bytes:
    """An mcap file whose chunks have no checksum."""
    changed, at = bytearray(data), 8
    while data.startswith(b"\x89MCAP") and at + 9 < len(data):
        kind, length = data[at], int.from_bytes(data[at + 1 : at + 9], "little")
        if kind == 6:  # a chunk: two times and a size, then the checksum
            changed[at + 9 + 24 : at + 9 + 28] = bytes(4)
        at += 9 + length
    return bytes(changed)


def _write_sensors(
    path: Path, model: RobotModel, config: RobotConfig, storage: str, compressed: bool
) -> None:
    """A bag of a robot that stands in one posture, then in another."""
    store = get_typestore(Stores.ROS2_JAZZY)
    rng, make = np.random.default_rng(0), store.types
    joints, wrench = "sensor_msgs/msg/JointState", "geometry_msgs/msg/WrenchStamped"
    imu, text = "sensor_msgs/msg/Imu", "std_msgs/msg/String"
    topics = {"/joint_states": joints, "/imu": imu, "/mark": text}
    topics |= {f"/{foot.wrench_topic}": wrench for foot in config.feet}
    vector, rest = make["geometry_msgs/msg/Vector3"], config.nominal_posture(model)
    plugin = StoragePlugin.MCAP if storage == "mcap" else StoragePlugin.SQLITE3
    writer = Writer(path, version=9, storage_plugin=plugin)
    if compressed:
        writer.set_compression(CompressionMode.STORAGE, CompressionFormat.ZSTD)
    with writer:
        connections = {
            topic: writer.add_connection(topic, kind, typestore=store)
            for topic, kind in topics.items()
        }

        def write(topic: str, time: int, message: object) -> None:
            kind = topics[topic]
            writer.write(
                connections[topic], time, bytes(store.serialize_cdr(message, kind))
            )

        for k in range(SAMPLES):
            time = START_NS + k * 50_000_000
            stamp = make["builtin_interfaces/msg/Time"](time // 10**9, time % 10**9)
            q = (
                rest
                + (0.1 if 2 * k > SAMPLES else 0.0)
                + rng.normal(0.0, 1e-4, model.n_joints)
            )
            header = make["std_msgs/msg/Header"](stamp, "")
            names, none = list(model.joint_names), np.zeros(0)
            if k in (0, SAMPLES // 2):
                write("/mark", time, make[text](f"posture {k}"))
            write("/joint_states", time, make[joints](header, names, q, none, 0.0 * q))
            for foot in config.feet:
                header = make["std_msgs/msg/Header"](stamp, foot.wrench_frame)
                force = vector(*rng.normal((0.0, 0.0, 35.0), 0.1))
                values = make["geometry_msgs/msg/Wrench"](force, vector(0.0, 0.0, 0.0))
                write(f"/{foot.wrench_topic}", time, make[wrench](header, values))
            turn, zero = (
                make["geometry_msgs/msg/Quaternion"](0.0, 0.0, 0.0, 1.0),
                np.zeros(9),
            )
            header = make["std_msgs/msg/Header"](stamp, config.imu_link or "")
            still, up = (
                vector(0.0, 0.0, 0.0),
                vector(*rng.normal((0.0, 0.0, 9.8), 0.01)),
            )
            write("/imu", time, make[imu](header, turn, zero, still, zero, up, zero))
