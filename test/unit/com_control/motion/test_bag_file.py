"""Motions to rosbag2 and back, and recordings of odd joints, times and topics."""

import numpy as np
import pytest
from rosbags.rosbag2 import Reader, StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from com_control.commands.convert_motion import main
from com_control.exceptions import MotionError
from com_control.motion.files import (
    STATE,
    TRAJECTORY,
    read_bag,
    read_motion,
    resampled,
    write_bag,
    write_motion,
)
from com_control.motion.motion import Motion

STORE = get_typestore(Stores.ROS2_JAZZY)
TYPES = STORE.types
S = 1_000_000_000


def header(ns):
    stamp = TYPES["builtin_interfaces/msg/Time"](*divmod(ns, S))
    return TYPES["std_msgs/msg/Header"](stamp, "")


def state(ns, names, positions):
    return TYPES[STATE](
        header(ns), list(names), np.array(positions, float), np.zeros(0), np.zeros(0)
    )


def trajectory(ns, names, points):
    make = TYPES["trajectory_msgs/msg/JointTrajectoryPoint"]
    duration, none = TYPES["builtin_interfaces/msg/Duration"], np.zeros(0)
    items = [
        make(np.array(q, float), none, none, none, duration(*divmod(round(t * S), S)))
        for t, q in points
    ]
    return TYPES[TRAJECTORY](header(ns), list(names), items)


@pytest.fixture
def record(tmp_path):
    """record({topic: [(ns, message)]}): a bag."""

    def record(topics, name="bag"):
        with Writer(
            tmp_path / name, version=9, storage_plugin=StoragePlugin.SQLITE3
        ) as writer:
            for topic, messages in topics.items():
                kind = messages[0][1].__msgtype__
                connection = writer.add_connection(topic, kind, typestore=STORE)
                for ns, message in messages:
                    writer.write(connection, ns, STORE.serialize_cdr(message, kind))
        return tmp_path / name

    return record


def read(bag, layout, period=0.01, topic=""):
    motion, notes = read_bag(bag, layout, period, topic)
    return notes, motion.positions


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
def test_what_is_written_is_read_back(layout, swing, tmp_path, storage):
    positions = np.array(swing.positions)
    positions[:, 3] = np.nan
    write_bag(tmp_path / "bag", Motion(swing.joints, swing.times, positions), storage)
    notes, back = read(tmp_path / "bag", layout, 0.002)
    np.testing.assert_allclose(back, positions, atol=1e-12)
    assert notes == ["read from /joint_trajectory"]
    with Reader(tmp_path / "bag") as reader:
        messages = [
            (ns, STORE.deserialize_cdr(data, c.msgtype))
            for c, ns, data in reader.messages()
        ]
    assert all(len(m.points) <= 200 for _, m in messages)
    assert all(m.header.stamp.sec == m.header.stamp.nanosec == 0 for _, m in messages)


def test_joint_states_by_name_with_what_cannot_be_used(layout, record):
    names = ["RLEG_JOINT4", "gripper", "LLEG_JOINT4"]
    good = [
        (i * S // 10, state(i * S // 10, names, [0.1 * i, 9.0, 0.2 * i]))
        for i in range(11)
    ]
    odd = [
        (1, state(1, ["gripper"], [0.5])),
        (2 * S, state(2 * S, names, [0.1, 9.0, np.nan])),
        (2 * S, state(2 * S, names, [0.1, 9.0])),
        (2 * S, state(2 * S, ["LLEG_JOINT4"], [0.1])),
        (2 * S, state(S // 2, names, [7.0, 7.0, 7.0])),
    ]
    notes, rows = read(record({"/joint_states": [*good, *odd]}), layout, 0.05)
    assert rows.shape == (21, 21)
    left, right = (layout.joints.index(f"{side}LEG_JOINT4") for side in "LR")
    np.testing.assert_allclose(rows[:, right], 0.05 * np.arange(21), atol=1e-12)
    np.testing.assert_allclose(rows[:, left], 0.1 * np.arange(21), atol=1e-12)
    assert np.isnan(np.delete(rows, [left, right], axis=1)).all()
    assert notes == [
        "read from /joint_states",
        "1 left out: not later than the one before",
        "1 left out: of none of the motion's joints",
        "1 left out: of other joints than the first message",
        "2 left out: with a position that is missing or not finite",
    ]


def test_a_trajectory_replaces_what_was_said_before_from_its_first_point_on(
    layout, record
):
    name = ["BODY_JOINT1"]
    messages = [
        (S, trajectory(S, name, [(0.1, [0.1]), (0.2, [9.0]), (0.9, [9.0])])),
        (S, trajectory(S + S // 10, name, [(0.1, [0.2]), (0.2, [9.0])])),
        (3 * S, trajectory(S + S // 5, name, [(0.1, [0.3]), (0.2, [0.4])])),
    ]
    notes, rows = read(record({"/arm/joint_trajectory": messages}), layout, 0.1)
    assert notes == ["read from /arm/joint_trajectory"]
    np.testing.assert_allclose(rows[:, -1], [0.1, 0.2, 0.3, 0.4], atol=1e-12)


def test_topics_that_are_not_clear(layout, record, tmp_path):
    one = [(0, state(0, ["BODY_JOINT1"], [0.0]))]
    two = record({"/a/joint_states": one, "/b/joint_states": one})
    with pytest.raises(
        MotionError, match="several motions, say which: /a/joint_states, /b"
    ):
        read(two, layout)
    assert len(read(two, layout, topic="/b/joint_states")[1]) == 1
    with pytest.raises(
        MotionError, match="no topic '/c' of JointTrajectory or JointState; there"
    ):
        read(two, layout, topic="/c")
    other = record({"/joint_states": [(0, state(0, ["x"], [0.0]))]}, "other")
    with pytest.raises(MotionError, match="holds no positions of RLEG_JOINT1"):
        read(other, layout)
    with pytest.raises(MotionError, match="none cannot be read as a bag"):
        read(tmp_path / "none", layout)
    broken = tmp_path / "broken.mcap"
    broken.write_bytes(b"\x89MCAP0\r\n" + bytes(100))
    with pytest.raises(MotionError, match=r"broken\.mcap cannot be read as a bag"):
        read(broken, layout)


def test_a_clock_that_jumps_is_no_motion_of_years(layout, record):
    name = ["BODY_JOINT1"]
    bag = record(
        {"/joint_states": [(t, state(t, name, [0.0])) for t in (S, 2 * S, 10**18)]}
    )
    with pytest.raises(MotionError, match=r"nothing for 1e\+09 s, 1 s after the start"):
        read(bag, layout)


def test_resampling_keeps_the_first_and_the_last_sample():
    times = np.array([5.0, 5.013, 5.05, 5.077])
    positions = np.column_stack((10.0 * (times - 5.0), np.full(4, np.nan)))
    motion = resampled(("a", "b"), times, positions, 0.01)
    np.testing.assert_allclose(motion.times, 0.01 * np.arange(9), atol=1e-12)
    rows = motion.positions
    np.testing.assert_allclose(
        rows[:, 0], [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.77]
    )
    assert np.isnan(rows[:, 1]).all()
    one = resampled(("a", "b"), times[:1], positions[:1], 0.01)
    np.testing.assert_array_equal(one.times, [0.0])
    np.testing.assert_array_equal(one.positions, positions[:1])


def test_more_rows_than_are_held_in_memory_are_refused(layout, record, monkeypatch):
    monkeypatch.setattr("com_control.motion.files.MOST_ROWS", 10)
    name = ["BODY_JOINT1"]
    few = [(t * S, state(t * S, name, [0.1])) for t in range(1, 11)]
    bag = record({"/joint_states": few})
    assert len(read(bag, layout, 1.0)[1]) == 10
    with pytest.raises(
        MotionError, match=r"9 s have more than 10 rows 0.5 s apart: cut the rec"
    ):
        read(bag, layout, 0.5)
    more = record(
        {"/joint_states": [*few, (11 * S, state(11 * S, name, [0.1]))]}, "more"
    )
    with pytest.raises(
        MotionError, match="more than 10 messages or points: cut the recording"
    ):
        read(more, layout, 2.0)


@pytest.fixture
def convert(config, tmp_path, capsys):
    """convert(source, target, ...): exit status and what it prints."""
    layouts = config.urdf.parents[1] / "config"

    def convert(source, target, *more):
        words = [
            str(source),
            str(tmp_path / target),
            "--robot",
            str(layouts / "hoap2.yaml"),
        ]
        code = main([*words, "--layout", str(layouts / "motion" / "hoap2.yaml"), *more])
        return code, *capsys.readouterr()

    return convert


def test_the_command_goes_all_the_way_round(convert, layout, swing, tmp_path):
    write_motion(tmp_path / "swing.csv", swing, layout)
    code, said, _ = convert(tmp_path / "swing.csv", "bag")
    assert (code, said) == (0, "500 rows, 0.998 s\nwithin all limits\n")
    code, said, _ = convert(tmp_path / "bag", "radians.csv", "--to", "radians")
    assert code == 0
    assert said.startswith("read from /joint_trajectory\n500 rows, 0.998 s")
    back = read_motion(tmp_path / "radians.csv", layout, "radians")
    np.testing.assert_allclose(
        back.positions, read_motion(tmp_path / "swing.csv", layout).positions, atol=1e-8
    )
    assert convert(tmp_path / "radians.csv", "again.csv", "--from", "radians")[0] == 0
    assert (tmp_path / "again.csv").read_text() == (tmp_path / "swing.csv").read_text()


def test_the_command_says_what_it_cannot_do(convert, layout, swing, tmp_path):
    write_motion(tmp_path / "swing.csv", swing, layout)
    for words, message in [
        (
            (tmp_path / "swing.csv", "swing.csv"),
            "swing.csv exists already: give another path",
        ),
        ((tmp_path / "none.csv", "bag"), "none.csv cannot be read: No such file"),
        ((tmp_path / "none", "x.csv"), "none cannot be read as a bag"),
        (
            (tmp_path / "none", "x.csv", "--period", "0"),
            "--period 0: give more than 0, up to 1 s",
        ),
        (
            (tmp_path / "swing.csv", "no/x.csv"),
            "cannot be written: No such file or directory",
        ),
        (
            (tmp_path / "swing.csv", "no/bag"),
            "cannot be written: No such file or directory",
        ),
    ]:
        code, _, error = convert(*words)
        assert code == 2
        assert message in error
    assert sorted(path.name for path in tmp_path.iterdir()) == ["swing.csv"]


def test_a_file_that_breaks_off_leaves_nothing_behind(convert, layout, swing, tmp_path):
    path = tmp_path / "cut.csv"
    write_motion(path, swing, layout)
    path.write_text(path.read_text()[:-40])
    for target in ("bag", "radians.csv"):
        code, _, error = convert(path, target)
        assert code == 2
        assert "row 500: expected 27 columns" in error
    assert [item.name for item in tmp_path.iterdir()] == ["cut.csv"]


def test_motions_of_other_joints_are_refused(layout, swing, tmp_path):
    other = Motion(swing.joints[::-1], swing.times, swing.positions)
    with pytest.raises(MotionError, match="joints are not those of the layout"):
        write_motion(tmp_path / "x.csv", other, layout)
    with pytest.raises(
        MotionError, match="storage: expected one of mcap, sqlite3, got 'zip'"
    ):
        write_bag(tmp_path / "bag", swing, "zip")
