"""The same motion in every kind of log is read as from a bag of standard messages."""

import zipfile
from dataclasses import replace

import numpy as np
import pytest
from rosbags.rosbag1 import Writer as Ros1Writer
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from com_bags import (
    Bag,
    LogFormat,
    SensorReader,
    TopicReader,
    TopicRequest,
    find_topics,
    other_files,
    read_walk,
)
from com_bags.channels import JOINT_STATE
from com_bags.commands import com_convert
from com_bags.exceptions import BagError, DefinitionError, TableError, TopicError
from com_bags.log_format import FORMATS
from com_bags.robot_states import STATE_TYPES
from com_model import RobotModel, load_robot
from com_model.exceptions import ConfigError

START, COUNT = 1_700_000_000, 300
MOTORS = [
    f"{leg}_{part}"
    for leg in ("FR", "FL", "RR", "RL")
    for part in ("hip", "thigh", "calf")
]
JOINTS = [f"{name}_joint" for name in MOTORS]
TABLE = """
time: t
joints.names: [NAMES]
joints.position: q_*
joints.velocity: dq_*
joints.effort: tau_*
imu.orientation: [qw, qx, qy, qz]
imu.order: wxyz
imu.gyro: [{column: gx, unit: deg/s}, {column: gy, unit: deg/s}, {column: gz, unit: deg/s}]
imu.acceleration: {column: a*, unit: g}
""".replace("NAMES", ", ".join(JOINTS))


@pytest.fixture(scope="module")
def go2():
    return load_robot("go2")[0]


@pytest.fixture(scope="module")
def motion():
    """Time, joints in the order of the motors, and IMU; all numbers are different."""
    k = np.arange(COUNT)[:, None]
    i = np.arange(12)
    turn = np.tile([0.0, 0.6, 0.0, 0.8], (COUNT, 1))
    return {
        "t": 0.002 * np.arange(COUNT),
        "q": np.sin(0.01 * k + i),
        "dq": 0.1 * i + 0.001 * k,
        "tau": 1.0 * i - 0.01 * k,
        "turn": turn,  # x, y, z, w
        "gyro": np.array([0.1, 0.2, 0.3]) + 0.001 * k,
        "force": np.array([1.0, 2.0, 9.0]) + 0.001 * k,
    }


def read(path, model, mapping=None, **options):
    names = tuple(model.joint_names), tuple(model.link_names)
    about = LogFormat(*names, {}, mapping, **options)
    with Bag(path, about) as bag:
        topics = find_topics(bag.topics(), (), TopicRequest(), True, str(path))
        reader = SensorReader(bag, model, (), topics, "imu")
        return read_walk(reader), reader.warnings()


def check(log, motion, model, rows=slice(None), atol=1e-12):
    order = [JOINTS.index(name) for name in model.joint_names]
    since = motion["t"][rows] - motion["t"][rows][0]
    np.testing.assert_allclose(log.time, since, atol=1e-8)
    np.testing.assert_allclose(log.position, motion["q"][rows][:, order], atol=atol)
    np.testing.assert_allclose(log.effort, motion["tau"][rows][:, order], atol=atol)
    np.testing.assert_allclose(log.angular_velocity, motion["gyro"][rows], atol=atol)
    np.testing.assert_allclose(log.specific_force, motion["force"][rows], atol=atol)
    x, y, z, w = motion["turn"][0]
    up = [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]
    np.testing.assert_allclose(log.up[0], up, atol=1e-6)


def columns(motion):
    """Columns as a logger in C writes them: degrees per second, g, w first."""
    found = {"t": motion["t"]}
    for key, name in (("q", "q"), ("dq", "dq"), ("tau", "tau")):
        found |= {f"{name}_{i}": motion[key][:, i] for i in range(12)}
    x, y, z, w = motion["turn"].T
    found |= {"qw": w, "qx": x, "qy": y, "qz": z}
    gyro = dict(zip(("gx", "gy", "gz"), np.rad2deg(motion["gyro"]).T, strict=True))
    force = dict(zip(("ax", "ay", "az"), motion["force"].T / 9.80665, strict=True))
    return found | gyro | force


def write_text(path, data, mark=",", head="", opened=open):
    with opened(path, "wt") as stream:
        stream.write(head + mark.join(data) + "\n")
        for row in np.column_stack(list(data.values())).tolist():
            stream.write(mark.join("" if np.isnan(v) else repr(v) for v in row) + "\n")


def test_tables(tmp_path, motion, go2):
    import gzip

    import h5py
    import pandas
    import scipy.io

    data = columns(motion)
    mapping = tmp_path / "map.yaml"
    mapping.write_text(TABLE)
    write_text(tmp_path / "log.csv", data)
    write_text(tmp_path / "log.csv.gz", data, opened=gzip.open)
    write_text(tmp_path / "log.dat", data, " ", "# a logger of ours\n")
    np.savez(tmp_path / "log.npz", **data)
    scipy.io.savemat(tmp_path / "old.mat", data)
    pandas.DataFrame(data).to_parquet(tmp_path / "log.parquet")
    with h5py.File(tmp_path / "new.mat", "w", userblock_size=512) as stored:
        for name, values in data.items():
            stored[name] = values[None]  # MATLAB's columns are rows here
    for name in (
        "log.csv",
        "log.csv.gz",
        "log.dat",
        "log.npz",
        "old.mat",
        "new.mat",
        "log.parquet",
    ):
        log, _ = read(tmp_path / name, go2, mapping)
        check(log, motion, go2)


def test_arrays_by_their_entries(tmp_path, motion, go2):
    import h5py
    import pandas

    names = "t", "q", "dq", "tau", "turn", "gyro", "force"
    arrays = {name: motion[name] for name in names}
    np.savez(tmp_path / "log.npz", **arrays)
    with h5py.File(tmp_path / "log.mat", "w", userblock_size=512) as stored:
        for name, values in arrays.items():
            stored[name] = np.atleast_2d(values.T)
    frame = pandas.DataFrame(
        {name: list(v) if v.ndim > 1 else v for name, v in arrays.items()}
    )
    frame.to_parquet(tmp_path / "log.parquet")
    mapping = tmp_path / "map.yaml"
    mapping.write_text(
        f"time: t\njoints: {{names: [{', '.join(JOINTS)}], position: 'q[0:12]', "
        "effort: 'tau[0:12]'}\nimu: {orientation: 'turn[0:4]', gyro: 'gyro[0:3]', "
        "acceleration: 'force[0:3]'}\n"
    )
    for name in ("log.npz", "log.mat", "log.parquet"):
        log, _ = read(tmp_path / name, go2, mapping)
        check(log, motion, go2)


def test_a_table_without_names(tmp_path, motion, go2):
    names = "q", "dq", "tau", "turn", "gyro", "force"
    parts = [1e9 * (START + motion["t"])[:, None], *(motion[name] for name in names)]
    with (tmp_path / "log.csv").open("w") as stream:
        for time, *row in np.hstack(parts).tolist():
            stream.write(f"{time:.0f}," + ",".join(map(repr, row)) + "\n")
    mapping = tmp_path / "map.yaml"
    mapping.write_text(
        "time: {column: column 1, unit: ns}\n"
        f"joints: {{names: [{', '.join(JOINTS)}], position: columns 2-13, "
        "velocity: columns 14-25, effort: columns 26-37}\n"
        "imu: {orientation: columns 38-41, gyro: columns 42-44, acceleration: columns 45-47}\n"
    )
    log, _ = read(tmp_path / "log.csv", go2, mapping)
    np.testing.assert_allclose(log.time, motion["t"], atol=2e-6)  # float64 since 1970
    order = [JOINTS.index(name) for name in go2.joint_names]
    np.testing.assert_allclose(log.position, motion["q"][:, order], atol=1e-12)


def test_names_after_the_star_and_signs(tmp_path, motion, go2):
    data = {"t": motion["t"]}
    data |= {f"pos_{n}": -motion["q"][:, i] for i, n in enumerate(MOTORS)}
    data |= {f"tau_{n}": 10.0 * motion["tau"][:, i] for i, n in enumerate(MOTORS)}
    data |= {f"w{axis}": motion["gyro"][:, i] for i, axis in enumerate("xyz")}
    data |= {f"f{axis}": motion["force"][:, i] for i, axis in enumerate("xyz")}
    data |= {f"turn_{axis}": motion["turn"][:, i] for i, axis in enumerate("xyzw")}
    write_text(tmp_path / "log.csv", data)
    mapping = tmp_path / "map.yaml"
    mapping.write_text(
        "time: t\njoints:\n  position: {column: pos_*, scale: -1.0}\n"
        "  effort: {column: tau_*, scale: 0.1}\n"
        "imu: {orientation: [turn_x, turn_y, turn_z, turn_w], gyro: w*, acceleration: f*}\n"
    )
    log, _ = read(tmp_path / "log.csv", go2, mapping)
    check(log, motion, go2)


def test_sparse_rows_doubled_rows_and_a_second_run(tmp_path, motion, go2):
    data = columns(motion)
    joints = [name for name in data if name[:2] in ("q_", "dq", "ta")]
    imu = [name for name in data if name not in (*joints, "t")]
    rows = 2 * COUNT
    sparse = {name: np.full(rows, np.nan) for name in data}
    for name in data:
        sparse[name][(name in imu) :: 2] = data[name]
    sparse["t"] = np.repeat(data["t"], 2)
    sparse["t"][1::2] += 1e-5  # each topic has rows of its own, as PlotJuggler writes
    write_text(tmp_path / "sparse.csv", sparse)
    mapping = tmp_path / "map.yaml"
    mapping.write_text(TABLE)
    log, _ = read(tmp_path / "sparse.csv", go2, mapping)
    order = [JOINTS.index(name) for name in go2.joint_names]
    assert len(log.time) == COUNT - 1  # no reading of the IMU is before the first
    np.testing.assert_allclose(log.position, motion["q"][1:, order], atol=1e-12)
    np.testing.assert_allclose(log.specific_force, motion["force"][1:], atol=1e-4)

    doubled = {name: np.repeat(values, 2) for name, values in data.items()}
    write_text(tmp_path / "doubled.csv", doubled)
    log, notes = read(tmp_path / "doubled.csv", go2, mapping)
    check(log, motion, go2)
    assert any(
        f"{COUNT} rows have the time of the row before" in note for note in notes
    )

    twice = {name: np.tile(values, 2) for name, values in data.items()}
    write_text(tmp_path / "twice.csv", twice)
    log, notes = read(tmp_path / "twice.csv", go2, mapping)
    assert any(
        "time goes back at row 302: read as a later run" in note for note in notes
    )
    assert len(log.time) == 2 * COUNT
    assert np.diff(log.time).min() > 0.0
    assert log.time[COUNT] - log.time[COUNT - 1] == pytest.approx(10.0)


def test_dates_as_time(tmp_path, motion, go2):
    data = columns(motion)
    lines = [",".join(data)]
    times = np.datetime64("2025-11-14T18:59:15") + (1e9 * data["t"]).astype("m8[ns]")
    for k, row in enumerate(np.column_stack(list(data.values())).tolist()):
        lines.append(",".join([str(times[k]), *map(repr, row[1:])]))
    (tmp_path / "log.csv").write_text("\n".join(lines))
    mapping = tmp_path / "map.yaml"
    mapping.write_text(TABLE)
    log, _ = read(tmp_path / "log.csv", go2, mapping)
    np.testing.assert_allclose(np.diff(log.time), 0.002, atol=1e-6)


OWN = """std_msgs/Header header
Motor[] motors
geometry_msgs/Quaternion attitude
geometry_msgs/Vector3 omega
float64[3] accel
"""


@pytest.fixture(scope="module")
def own():
    store = get_typestore(Stores.ROS2_JAZZY)
    store.register(
        get_types_from_msg("float64 pos\nfloat32 temp\nfloat64 trq", "own/msg/Motor")
    )
    store.register(get_types_from_msg(OWN, "own/msg/State"))
    return store


def own_state(store, motion, k):
    make = store.types
    time = START * 10**9 + k * 2_000_000
    stamp = make["builtin_interfaces/msg/Time"](*divmod(time, 10**9))
    motors = [
        make["own/msg/Motor"](np.rad2deg(q), 40.0, tau)
        for q, tau in zip(motion["q"][k], motion["tau"][k], strict=True)
    ]
    return make["own/msg/State"](
        make["std_msgs/msg/Header"](stamp, "base"),
        motors,
        make["geometry_msgs/msg/Quaternion"](*motion["turn"][k]),
        make["geometry_msgs/msg/Vector3"](*motion["gyro"][k]),
        motion["force"][k],
    )


MESSAGES = f"""
joints:
  names: [{", ".join(JOINTS)}]
  position: {{field: "/robot/state motors[0:12].pos", unit: deg}}
  effort: /robot/state motors[0:12].trq
imu.orientation: /robot/state attitude
imu.gyro: /robot/state omega
imu.acceleration: /robot/state accel
"""


@pytest.mark.parametrize("defined", [True, False])
def test_messages_of_any_type(tmp_path, motion, go2, own, defined):
    folder = tmp_path / "bag"
    with Writer(folder, version=9, storage_plugin=StoragePlugin.SQLITE3) as writer:
        connection = writer.add_connection(
            "/robot/state", "own/msg/State", typestore=own
        )
        for k in range(COUNT):
            payload = own.serialize_cdr(own_state(own, motion, k), "own/msg/State")
            writer.write(connection, START * 10**9 + k * 2_100_000, payload)
    mapping = tmp_path / "map.yaml"
    mapping.write_text(MESSAGES)
    options = {}
    if not defined:
        import sqlite3

        (database,) = folder.glob("*.db3")
        with sqlite3.connect(database) as opened:
            opened.execute("DROP TABLE message_definitions")
        with pytest.raises(
            DefinitionError, match=r"--definitions DIR with own/msg/State\.msg"
        ):
            read(folder, go2, mapping)
        texts = {
            "own/msg/State": OWN,
            "own/msg/Motor": "float64 pos\nfloat32 temp\nfloat64 trq",
        }
        options["definitions"] = texts
    log, _ = read(folder, go2, mapping, **options)
    check(log, motion, go2, atol=1e-9)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("imu.gyro: /robot/stat omega", "did you mean /robot/state"),
        ("imu.gyro: /robot/state", "the field after the topic"),
        ("imu.gyro: {field: /robot/state omega, unit: deg/sec}", "deg/s"),
        ("joints.position: /robot/state motors[0:11].pos", "11 numbers, expected 12"),
        ("imu.gyro: /robot/state omegas", "did you mean omega"),
        ("imu.gyroscope: /robot/state omega", "valid keys: acceleration, gyro"),
        ("cop: 1", "valid keys"),
        ("joints.names: [a, b]", "got a, b"),
    ],
)
def test_a_wrong_line_of_a_mapping_is_named(tmp_path, motion, go2, own, line, words):
    with Writer(
        tmp_path / "bag", version=9, storage_plugin=StoragePlugin.MCAP
    ) as writer:
        connection = writer.add_connection(
            "/robot/state", "own/msg/State", typestore=own
        )
        for k in range(5):
            payload = own.serialize_cdr(own_state(own, motion, k), "own/msg/State")
            writer.write(connection, START * 10**9 + k, payload)
    mapping = tmp_path / "map.yaml"
    key = line.partition(":")[0].split(".")[-1]
    kept = [
        each
        for each in MESSAGES.splitlines()
        if not each.strip().startswith((f"imu.{key}:", f"{key}:"))
    ]
    text = "\n".join(kept)
    if key in ("position", "names"):
        text = text.replace("joints:", "joints:\n  " + line.removeprefix("joints."))
        line = ""
    mapping.write_text(f"{text}\n{line}\n")
    with pytest.raises((ConfigError, TopicError)) as error:
        read(tmp_path / "bag", go2, mapping)
    assert words in str(error.value)


@pytest.mark.parametrize("packing", [None, "BZ2", "LZ4"])
def test_a_bag_of_ros_1(tmp_path, motion, go2, packing, monkeypatch):
    store = get_typestore(Stores.ROS1_NOETIC)
    make = store.types
    zero, unknown = np.zeros(9), np.full(9, -1.0)
    file = Ros1Writer(tmp_path / "log.bag")
    if packing is not None:
        file.set_compression(Ros1Writer.CompressionFormat[packing])
    with file as writer:
        joints = writer.add_connection(
            "/joint_states", "sensor_msgs/msg/JointState", typestore=store
        )
        imu = writer.add_connection("/imu", "sensor_msgs/msg/Imu", typestore=store)
        odd = {"msgdef": "no definition ///", "md5sum": 32 * "0"}
        writer.add_connection("/odd", "odd/msg/Odd", **odd)  # does not matter
        for k in range(COUNT):
            time = START * 10**9 + k * 2_000_000
            stamp = make["builtin_interfaces/msg/Time"](*divmod(time, 10**9))
            header = make["std_msgs/msg/Header"](k, stamp, "imu")
            rows = (motion[name][k] for name in ("q", "dq", "tau"))
            state = make["sensor_msgs/msg/JointState"](header, JOINTS, *rows)
            vector = make["geometry_msgs/msg/Vector3"]
            reading = make["sensor_msgs/msg/Imu"](
                header,
                make["geometry_msgs/msg/Quaternion"](*motion["turn"][k]),
                zero,
                vector(*motion["gyro"][k]),
                unknown,
                vector(*motion["force"][k]),
                unknown,
            )
            for connection, message in ((joints, state), (imu, reading)):
                raw = store.serialize_ros1(message, connection.msgtype)
                writer.write(connection, time, raw)
    log, notes = read(tmp_path / "log.bag", go2)
    check(log, motion, go2)
    assert not notes
    damaged = tmp_path / "damaged.bag"
    damaged.write_bytes((tmp_path / "log.bag").read_bytes()[:5000])
    with pytest.raises(BagError, match="ROS 1 bag cannot be read"):
        read(damaged, go2)
    monkeypatch.setattr(other_files, "MAX_RECORD", 2000)
    if packing is not None:
        _, notes = packed(tmp_path / "log.bag")
        assert "a chunk becomes more than 2000 bytes unpacked" in notes[0]


def packed(path):
    """Number of messages and notes of a bag."""
    with Bag(path) as bag:
        return len(list(bag.messages(["/imu"]))), bag.notes


def test_pickles_are_refused_with_the_way_out(tmp_path, go2):
    mapping = tmp_path / "map.yaml"
    mapping.write_text(TABLE)
    for name in ("log.pkl", "log.pt"):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr("data.pkl", b"\x80\x04.")
        with pytest.raises(TableError, match=r"numpy\.savez"):
            read(tmp_path / name, go2, mapping)


def test_a_format_of_another_robot_is_refused(tmp_path, go2):
    from lowstate import write_humble

    write_humble(tmp_path / "bag", "/lowstate", "unitree_hg/msg/LowState", [])
    assert {"unitree-go2", "unitree-go1", "unitree-g1", "unitree-h1"} <= set(FORMATS)
    with pytest.raises(TopicError, match=r"unitree-go2.*valid: unitree-g1"):
        read(tmp_path / "bag", go2, name="unitree-go2")


def test_a_log_is_written_as_a_bag_of_standard_messages(tmp_path, motion, go2, capsys):
    write_text(tmp_path / "log.csv", columns(motion))
    mapping = tmp_path / "map.yaml"
    mapping.write_text(TABLE)
    words = [str(tmp_path / "log.csv"), "--robot", "go2", "--mapping", str(mapping)]
    assert com_convert.main([*words, "--output", str(tmp_path / "standard")]) == 0
    printed = capsys.readouterr().out
    assert "/joint_states  sensor_msgs/msg/JointState" in printed
    assert str(COUNT) in printed
    assert not list(tmp_path.glob(".convert*"))
    log, notes = read(tmp_path / "standard", go2)  # without a mapping
    check(log, motion, go2)
    assert not notes
    assert com_convert.main([*words, "--output", str(tmp_path / "standard")]) == 2
    assert "exists already" in capsys.readouterr().err
    words[-2:] = []
    assert com_convert.main([*words, "--output", str(tmp_path / "other")]) == 2
    assert "--mapping FILE" in capsys.readouterr().err
    assert not (tmp_path / "other").exists()


def test_a_file_beside_the_log_has_the_imu(tmp_path, motion, go2):
    data = columns(motion)
    imu = ("t", "qw", "qx", "qy", "qz", "gx", "gy", "gz", "ax", "ay", "az")
    write_text(
        tmp_path / "joints.csv", {n: v for n, v in data.items() if n not in imu[1:]}
    )
    write_text(tmp_path / "imu.csv", {name: data[name] for name in imu})
    mapping = tmp_path / "map.yaml"
    mapping.write_text(f"{TABLE}imu.table: imu.csv\n")
    log, _ = read(tmp_path / "joints.csv", go2, mapping)
    check(log, motion, go2)
    mapping.write_text(f"{TABLE}imu.table: ../imu.csv\n")
    with pytest.raises(ConfigError, match="a file beside the log"):
        read(tmp_path / "joints.csv", go2, mapping)


def test_a_mapping_of_columns_says_nothing_of_a_bag(tmp_path, motion, go2):
    """Tables and bags of one robot are read with one mapping."""
    write_text(tmp_path / "log.csv", columns(motion))
    mapping = tmp_path / "map.yaml"
    mapping.write_text(TABLE)
    words = [str(tmp_path / "log.csv"), "--robot", "go2", "--mapping", str(mapping)]
    assert com_convert.main([*words, "--output", str(tmp_path / "bag")]) == 0
    check(read(tmp_path / "bag", go2, mapping)[0], motion, go2)


def test_keys_with_dots_and_wrenches(tmp_path, motion):
    hoap2, config = load_robot("hoap2")
    data = {"t": motion["t"], "f": motion["q"][:, 0], "m": motion["q"][:, 1]}
    write_text(tmp_path / "log.csv", data)
    mapping = tmp_path / "map.yaml"
    mapping.write_text(
        "time: t\njoints.HEAD_JOINT1: 0.1\nfeet.l_sole.force: [f, f, 2.0]\n"
        "feet.l_sole.moment: [m, {column: m, scale: -1.0}, 0.0]\n"
    )
    about = LogFormat.of(hoap2, config.feet)
    about = replace(about, mapping=mapping)
    with Bag(tmp_path / "log.csv", about) as bag:
        assert {topic.name for topic in bag.topics()} == {
            "/joint_states",
            "/l_sole/wrench",
        }
        key = "/l_sole/wrench", "geometry_msgs/msg/WrenchStamped"
        reader = TopicReader(bag, *key)
        (block,) = [reader.read(each[key]) for each in bag.blocks([key], 10**10)]
    f, m = data["f"], data["m"]
    expected = np.column_stack((f, f, 2.0 + 0.0 * f, m, -m, 0.0 * m))
    np.testing.assert_allclose(block.values("wrench"), expected)


def test_state_messages_of_an_unknown_robot_beside_joint_states(tmp_path, messages):
    """A bag of all topics has /lowstate, although a driver publishes joint_states."""
    names = ["knee", "hip"]
    model = RobotModel.from_urdf(
        '<robot name="r"><link name="base"><inertial><mass value="1"/><inertia ixx="1" iyy="1" '
        'izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        + "".join(
            f'<link name="{n}"/><joint name="{n}" type="continuous"><parent link="base"/><child '
            f'link="{n}"/></joint>'
            for n in names
        )
        + "</robot>"
    )
    store = get_typestore(Stores.ROS2_JAZZY)
    for kind, text in STATE_TYPES["unitree_go/msg/LowState"].definitions.items():
        store.register(get_types_from_msg(text, kind))
    with Writer(
        tmp_path / "bag", version=9, storage_plugin=StoragePlugin.MCAP
    ) as writer:
        joints = writer.add_connection("/joint_states", JOINT_STATE, typestore=store)
        writer.add_connection("/lowstate", "unitree_go/msg/LowState", typestore=store)
        for k in range(5):
            payload = messages.bytes(messages.joints(k + 1, names, [0.1 * k, 1.0]))
            writer.write(joints, START * 10**9 + k, payload)
    with Bag(tmp_path / "bag", LogFormat.of(model, ())) as bag:
        topics = find_topics(bag.topics(), (), TopicRequest(), False, "bag")
        (block,) = SensorReader(bag, model, (), topics).blocks()
    np.testing.assert_allclose(
        block.Q[:, model.joint_index("knee")], 0.1 * np.arange(5)
    )
