"""Readings of all sensors from a bag, and the warnings about unusual recordings."""

import sqlite3

import numpy as np
import pytest

from com_bags import (
    Bag,
    BagError,
    DefinitionError,
    SensorReader,
    SensorTopics,
    TopicError,
    even_times,
)
from com_model import Foot

START, STEP = 1_700_000_000_000_000_000, 10_000_000
S = 1_000_000_000
TOPICS = SensorTopics("/joint_states", ("/l/wrench",))


@pytest.mark.parametrize(
    ("jitter", "lost", "left"), [(0.0, 0.0, 0.0), (3e-4, 0.08, 0.3), (5e-4, 0.02, 0.35)]
)
def test_times_of_receipt_become_even(jitter, lost, left):
    rng, period = np.random.default_rng(2), 0.00200007  # another clock's 500 Hz
    for start in (0.0, 1e9):
        steps = np.flatnonzero(rng.random(20_000) >= lost)
        sent = start + period * steps + np.where(steps > 8000, 20.0, 0.0)
        late = np.abs(rng.normal(0.0, jitter, len(sent)))
        received = np.maximum.accumulate(sent + late)
        found = even_times(received)
        for run in (steps <= 8000, steps > 8000):
            errors = (found - sent)[run], (received - sent)[run]
            assert np.std(errors[0]) <= left * np.std(errors[1]) + 2e-7
            spacing = np.diff(found[run]) / period
            np.testing.assert_allclose(spacing, np.rint(spacing), atol=2e-3)


def test_times_that_show_no_period_are_refused():
    rng = np.random.default_rng(1)
    late = np.abs(rng.normal(0.0, 3e-3, 20_000))
    with pytest.raises(BagError, match="late by half a period"):
        even_times(np.maximum.accumulate(0.002 * np.arange(20_000) + late))


class Recording:
    """All blocks of a bag."""

    def __init__(self, reader):
        self.blocks = list(reader.blocks())
        self.messages, self.seconds = reader.messages, reader.seconds
        self.warnings = reader.warnings()

    def joints(self):
        blocks = [(block.joint_times, block.Q, block.effort) for block in self.blocks]
        return [np.concatenate(parts) for parts in zip(*blocks, strict=True)]

    def wrenches(self):
        return np.concatenate([block.wrenches[0][1] for block in self.blocks])

    def ups(self):
        return np.concatenate([block.up[1] for block in self.blocks])


@pytest.fixture
def read(pair):
    """read(path, ...): all that a bag contains."""

    def run(path, topics=TOPICS, received=False):
        foot = Foot("base", "", np.zeros((0, 2)), 0.0, "l/wrench", "base", 1)
        imu = "imu" if topics.imu else None
        with Bag(path) as bag:
            return Recording(SensorReader(bag, pair, [foot], topics, imu, received))

    return run


@pytest.fixture
def normal(messages):
    """normal(count): joint states and wrenches without fault, as lists of entries."""

    def make(count=300, names="ab", frame="base"):
        entries = []
        for i in range(count):
            time = START + i * STEP
            joints = messages.joints(time, list(names), [0.1, -0.2], [1.0, 2.0])
            entries.append(["/joint_states", time + S, joints])
            wrench = messages.wrench(time, [0, 0, 9.81 + i, 0, 0, 0], frame)
            entries.append(["/l/wrench", time + S, wrench])
        return entries

    return make


def test_all_readings_arrive_in_order_and_nothing_has_warnings(read, write_bag, normal):
    result = read(write_bag(normal()))
    times, Q, effort = result.joints()
    np.testing.assert_array_equal(times, START + STEP * np.arange(300))
    np.testing.assert_array_equal(Q, np.tile([0.1, -0.2], (300, 1)))
    np.testing.assert_array_equal(effort, np.tile([1.0, 2.0], (300, 1)))
    assert result.wrenches()[:, 2].tolist() == [9.81 + i for i in range(300)]
    assert result.warnings == []
    assert result.messages == {"/joint_states": 300, "/l/wrench": 300}
    assert result.seconds == pytest.approx(2.99)
    assert len(result.blocks) == 3  # blocks of a second


def test_times_of_recording_can_be_asked_for(read, write_bag, normal):
    result = read(write_bag(normal(3)), received=True)
    assert result.joints()[0][0] == START + S


def test_an_order_that_changes_midway_is_followed_and_reported(
    read, write_bag, normal, messages
):
    entries = normal()
    for i in range(300, 600, 2):
        stamp = START + i // 2 * STEP
        entries[i][2] = messages.joints(stamp, ["b", "gripper", "a"], [-0.2, 5.0, 0.1])
    result = read(write_bag(entries))
    _, Q, effort = result.joints()
    np.testing.assert_array_equal(Q, np.tile([0.1, -0.2], (300, 1)))
    assert np.isnan(effort[150:]).all()
    assert (
        "/joint_states: names change 1 times (2 lists of names, in another order)"
        in (" ".join(result.warnings))
    )
    assert "joints that are not moving joints of the robot: gripper" in " ".join(
        result.warnings
    )


def test_joints_that_come_in_messages_of_their_own_are_joined(
    read, write_bag, normal, messages
):
    entries = normal()
    for i in range(0, 600, 2):
        stamp, name = START + i // 2 * STEP, "ab"[i // 2 % 2]
        entries[i][2] = messages.joints(stamp, [name], [{"a": 0.1, "b": -0.2}[name]])
    result = read(write_bag(entries))
    _, Q, _ = result.joints()
    assert np.isnan(Q[0, 1])
    np.testing.assert_array_equal(Q[1:], np.tile([0.1, -0.2], (299, 1)))
    assert "of different joints" in " ".join(result.warnings)


def test_a_joint_that_stops_is_not_held_for_ever(read, write_bag, normal, messages):
    entries = normal()
    for i in range(200, 600, 2):
        entries[i][2] = messages.joints(START + i // 2 * STEP, ["a"], [0.1])
    result = read(write_bag(entries))
    _, Q, _ = result.joints()
    known = np.isfinite(Q[:, 1])
    assert known[:110].all()  # held for 0.1 s
    assert not known[111:].any()


def refuses(read, bag, words):
    with pytest.raises(TopicError, match=words):
        read(bag)


def test_joints_that_no_message_has_are_named(read, write_bag, normal, messages):
    entries = normal(3)
    for i in (0, 2, 4):
        entries[i][2] = messages.joints(START, ["a", "elbow"], [0.1, 0.2])
    words = "no message has 1 of the URDF's 2 joints: b. There are: a, elbow. Record all joints"
    refuses(read, write_bag(entries), words)


def test_joints_that_all_have_other_names_are_named(read, write_bag, normal, messages):
    """Drivers leave out _joint or add a prefix."""
    entries = normal(3)
    for entry in entries[::2]:
        entry[2] = messages.joints(START, ["arm/a", "arm/b"], [0.1, 0.2])
    refuses(read, write_bag(entries), "There are: arm/a, arm/b.*joints.names")


def test_two_publishers_are_recognised_by_names_or_frames(
    read, write_bag, normal, messages
):
    joints, wrenches = normal(), normal()
    for i in range(0, 600, 4):
        time = START + i // 2 * STEP
        joints[i][2] = messages.joints(time, ["b", "a"], [0.0, 0.0])
        wrenches[i + 1][2] = messages.wrench(time, np.zeros(6), "r_sole")
    words = "/joint_states: two nodes publish it in turn: .* both with a, b: .* Let one node"
    refuses(read, write_bag(joints, name="joints"), words)
    words = "/l/wrench: two nodes publish it in turn, by frame_id: 'base' .*'r_sole'"
    refuses(read, write_bag(wrenches, name="wrenches"), words)


def test_two_publishers_are_recognised_by_values_that_jump(
    read, write_bag, normal, messages
):
    entries = normal()
    for i in range(0, 600, 4):
        entries[i][2] = messages.joints(START + i // 2 * STEP, ["a", "b"], [0.0, 0.5])
    result = read(write_bag(entries))
    (warning,) = result.warnings
    assert warning.startswith("/joint_states: joint_states has two publishers")
    assert "contradict each other: a, b jump there and back" in warning


def test_two_publishers_are_recognised_by_stamps_that_go_back(
    read, write_bag, normal, messages
):
    entries = normal()
    for i in range(0, 600, 4):
        entries[i][2] = messages.joints(
            START + (i // 2 - 5) * STEP, ["a", "b"], [0.1, -0.2]
        )
    result = read(write_bag(entries))
    assert "149 of 300 stamps are older than the one before" in " ".join(
        result.warnings
    )


def test_messages_without_stamp_take_the_time_of_recording(
    read, write_bag, normal, messages
):
    entries = normal()
    for i in range(0, 600, 2):
        entries[i][2] = messages.joints(0, ["a", "b"], [0.1, -0.2])
    result = read(write_bag(entries))
    assert result.joints()[0][0] == START + S
    assert "/joint_states: 300 messages without stamp" in " ".join(result.warnings)


def test_clocks_that_differ_are_reported(read, write_bag, normal, messages):
    entries = normal()
    for i in range(1, 600, 2):
        entries[i][2] = messages.wrench(
            START - 50 * S + i // 2 * STEP, np.zeros(6), "base"
        )
    result = read(write_bag(entries))
    assert "/l/wrench: its stamps are -50 s ahead of those of /joint_states" in (
        " ".join(result.warnings)
    )
    assert "Try --time received" in " ".join(result.warnings)


def test_another_frame_than_the_configuration_s_is_reported(read, write_bag, normal):
    result = read(write_bag(normal(3, frame="ankle_ft")))
    (note,) = result.warnings
    assert note == (
        "/l/wrench: frame_id is 'ankle_ft', but readings are taken in the axes of base, as the "
        "configuration says (wrench.frame)"
    )


def test_up_follows_the_joints_between_root_and_imu(read, write_bag, normal, messages):
    entries = normal(100)
    for i in range(100):
        time = START + i * STEP
        angle = 0.01 * i
        entries[2 * i][2] = messages.joints(time, ["a", "b"], [angle, 0.0])
        # the root stays upright
        turn = 0.0, np.sin(angle / 2), 0.0, np.cos(angle / 2)
        entries.append(["/imu", time + S + 1, messages.imu(time, turn)])
    entries.sort(key=lambda entry: entry[1])
    result = read(
        write_bag(entries), SensorTopics("/joint_states", ("/l/wrench",), "/imu")
    )
    up = result.ups()
    np.testing.assert_allclose(up, np.tile([0.0, 0.0, 1.0], (100, 1)), atol=1e-12)


def test_without_orientation_the_acceleration_gives_the_direction_of_gravity(
    read, write_bag, normal, messages
):
    entries = normal(10)
    for i in range(10):
        time = START + i * STEP
        entries[2 * i][2] = messages.joints(time, ["a", "b"], [0.0, 0.0])
        acceleration = (9.81 * np.sin(0.1), 0.0, 9.81 * np.cos(0.1))
        imu = messages.imu(time, known=False, acceleration=acceleration)
        entries.append(["/imu", time + S + 1, imu])
    entries.sort(key=lambda entry: entry[1])
    result = read(
        write_bag(entries), SensorTopics("/joint_states", ("/l/wrench",), "/imu")
    )
    up = result.ups()
    np.testing.assert_allclose(
        up, np.tile([np.sin(0.1), 0.0, np.cos(0.1)], (10, 1)), atol=1e-12
    )
    assert "/imu: 10 messages without orientation" in " ".join(result.warnings)


def test_broken_messages_are_counted(read, write_bag, normal, messages):
    path = write_bag(normal(), "sqlite3")
    with sqlite3.connect(path / "bag.db3") as database:
        database.execute("UPDATE messages SET data = x'0001000000' WHERE id % 30 = 1")
        database.execute("UPDATE messages SET data = 'text' WHERE id % 30 = 3")
    result = read(path)
    assert result.messages["/joint_states"] == 260
    (warning,) = (text for text in result.warnings if "cannot be decoded" in text)
    assert "/joint_states: 40 messages" in warning
    assert "a message ends after 5 bytes" in warning


def test_a_topic_of_which_nothing_can_be_read(read, write_bag, normal):
    path = write_bag(normal(30), "sqlite3")
    with sqlite3.connect(path / "bag.db3") as database:
        database.execute("UPDATE messages SET data = x'00' WHERE topic_id = 2")
    with pytest.raises(TopicError, match="/l/wrench: no message of it can be decoded"):
        read(path)


def test_without_definitions_those_of_all_distributions_are_taken(
    read, write_bag, normal
):
    path = write_bag(normal(30), "sqlite3")
    with sqlite3.connect(path / "bag.db3") as database:
        database.execute("DELETE FROM message_definitions")
    result = read(path)
    assert len(result.joints()[0]) == 30
    assert (
        "/joint_states: the bag has no definition of sensor_msgs/msg/JointState; that of all ROS 2 "
        "distributions is used" in result.warnings
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "float64[] angles",
            "has the fields angles; expected effort, header, name, position",
        ),
        ("float64[ position", "its definition in the bag cannot be read"),
    ],
)
def test_a_definition_that_is_another_type_is_refused(
    read, write_bag, normal, text, words
):
    path = write_bag(normal(30), "sqlite3")
    with sqlite3.connect(path / "bag.db3") as database:
        database.execute(
            "UPDATE message_definitions SET encoded_message_definition = ? WHERE id = 1",
            (text,),
        )
    with pytest.raises(DefinitionError, match=words):
        read(path)
