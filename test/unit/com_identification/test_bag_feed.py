"""What a recorder is fed with, and what is said of odd recordings."""

import sqlite3

import numpy as np
import pytest

from com_bags.bag import Bag
from com_bags.exceptions import DefinitionError, TopicError
from com_bags.roles import Roles
from com_identification.capture.bag_feed import BagFeeder
from com_model import Foot

START, STEP = 1_700_000_000_000_000_000, 10_000_000
S = 1_000_000_000
ROLES = Roles("/joint_states", ("/l/wrench",))


class Recorder:
    """Keeps what it is fed with."""

    def __init__(self):
        self.joints, self.wrenches, self.ups = [], [], []

    def add_joints(self, times, Q, effort):
        self.joints.append((times, Q, effort))

    def add_wrenches(self, foot, times, W):
        assert foot == 0
        self.wrenches.append((times, W))

    def add_up(self, times, up):
        self.ups.append((times, up))

    def finished(self):
        return []

    flush = finished

    def gathered(self, name):
        return [np.concatenate(parts) for parts in zip(*getattr(self, name), strict=True)]


@pytest.fixture
def feed(pair):
    """feed(path, ...): the feed of a bag and the recorder that got it."""

    def run(path, roles=ROLES, received=False):
        foot = Foot("base", "", np.zeros((0, 2)), 0.0, "l/wrench", "base", 1)
        recorder = Recorder()
        imu = "imu" if roles.imu else None
        with Bag(path) as bag:
            feeder = BagFeeder(bag, pair, [foot], roles, recorder, imu, received)
            return feeder.run(), recorder

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


def test_all_readings_arrive_in_order_and_nothing_is_odd(feed, write_bag, normal):
    result, recorder = feed(write_bag(normal()))
    times, Q, effort = recorder.gathered("joints")
    np.testing.assert_array_equal(times, START + STEP * np.arange(300))
    np.testing.assert_array_equal(Q, np.tile([0.1, -0.2], (300, 1)))
    np.testing.assert_array_equal(effort, np.tile([1.0, 2.0], (300, 1)))
    assert recorder.gathered("wrenches")[1][:, 2].tolist() == [9.81 + i for i in range(300)]
    assert result.notes == []
    assert result.messages == {"/joint_states": 300, "/l/wrench": 300}
    assert result.seconds == pytest.approx(2.99)
    assert len(recorder.joints) == 3  # blocks of a second


def test_times_of_recording_can_be_asked_for(feed, write_bag, normal):
    _, recorder = feed(write_bag(normal(3)), received=True)
    assert recorder.gathered("joints")[0][0] == START + S


def test_an_order_that_changes_midway_is_followed_and_told(feed, write_bag, normal, messages):
    entries = normal()
    for i in range(300, 600, 2):
        stamp = START + i // 2 * STEP
        entries[i][2] = messages.joints(stamp, ["b", "gripper", "a"], [-0.2, 5.0, 0.1])
    result, recorder = feed(write_bag(entries))
    _, Q, effort = recorder.gathered("joints")
    np.testing.assert_array_equal(Q, np.tile([0.1, -0.2], (300, 1)))
    assert np.isnan(effort[150:]).all()
    assert "/joint_states: names change 1 times (2 kinds of messages, with another order)" in (
        " ".join(result.notes)
    )
    assert "joints that are not the robot's moving ones: gripper" in " ".join(result.notes)


def test_joints_that_come_in_messages_of_their_own_are_joined(feed, write_bag, normal, messages):
    entries = normal()
    for i in range(0, 600, 2):
        stamp, name = START + i // 2 * STEP, "ab"[i // 2 % 2]
        entries[i][2] = messages.joints(stamp, [name], [{"a": 0.1, "b": -0.2}[name]])
    result, recorder = feed(write_bag(entries))
    _, Q, _ = recorder.gathered("joints")
    assert np.isnan(Q[0, 1])
    np.testing.assert_array_equal(Q[1:], np.tile([0.1, -0.2], (299, 1)))
    assert "different joints each" in " ".join(result.notes)


def test_a_joint_that_falls_silent_is_not_held_for_ever(feed, write_bag, normal, messages):
    entries = normal()
    for i in range(200, 600, 2):
        entries[i][2] = messages.joints(START + i // 2 * STEP, ["a"], [0.1])
    _, recorder = feed(write_bag(entries))
    _, Q, _ = recorder.gathered("joints")
    known = np.isfinite(Q[:, 1])
    assert known[:110].all()  # held for 0.1 s
    assert not known[111:].any()


def test_joints_that_no_message_has_are_named(feed, write_bag, normal, messages):
    entries = normal(3)
    for i in (0, 2, 4):
        entries[i][2] = messages.joints(START, ["a", "elbow"], [0.1, 0.2])
    words = "no message has 1 of the URDF's 2 joints: b. There are: a, elbow. Record all joints"
    with pytest.raises(TopicError, match=words):
        feed(write_bag(entries))


def test_two_publishers_of_joint_states_are_told_by_their_names(feed, write_bag, normal, messages):
    entries = normal()
    for i in range(0, 600, 4):
        entries[i][2] = messages.joints(START + i // 2 * STEP, ["b", "a"], [0.0, 0.0])
    words = "/joint_states: two nodes write to it in turn: .* which share a, b. Let one node write"
    with pytest.raises(TopicError, match=words):
        feed(write_bag(entries))


def test_two_publishers_of_a_wrench_are_told_by_their_frames(feed, write_bag, normal, messages):
    entries = normal()
    for i in range(1, 600, 4):
        entries[i][2] = messages.wrench(START + i // 2 * STEP, np.zeros(6), "r_sole")
    words = "/l/wrench: two nodes write to it in turn, by frame_id: 'base' .*'r_sole'"
    with pytest.raises(TopicError, match=words):
        feed(write_bag(entries))


def test_two_publishers_are_told_by_values_that_jump(feed, write_bag, normal, messages):
    entries = normal()
    for i in range(0, 600, 4):
        entries[i][2] = messages.joints(START + i // 2 * STEP, ["a", "b"], [0.0, 0.5])
    result, _ = feed(write_bag(entries))
    assert "/joint_states: two nodes seem to write to it: its values jump to and fro" in (
        " ".join(result.notes)
    )


def test_two_publishers_are_told_by_stamps_that_go_back(feed, write_bag, normal, messages):
    entries = normal()
    for i in range(0, 600, 4):
        entries[i][2] = messages.joints(START + (i // 2 - 5) * STEP, ["a", "b"], [0.1, -0.2])
    result, _ = feed(write_bag(entries))
    assert "149 of 300 stamps are older than the one before" in " ".join(result.notes)


def test_messages_without_stamp_take_the_time_of_recording(feed, write_bag, normal, messages):
    entries = normal()
    for i in range(0, 600, 2):
        entries[i][2] = messages.joints(0, ["a", "b"], [0.1, -0.2])
    result, recorder = feed(write_bag(entries))
    assert recorder.gathered("joints")[0][0] == START + S
    assert "/joint_states: 300 messages without stamp" in " ".join(result.notes)


def test_clocks_that_differ_are_told(feed, write_bag, normal, messages):
    entries = normal()
    for i in range(1, 600, 2):
        entries[i][2] = messages.wrench(START - 50 * S + i // 2 * STEP, np.zeros(6), "base")
    result, _ = feed(write_bag(entries))
    assert "/l/wrench: its stamps are -50 s ahead of those of /joint_states" in (
        " ".join(result.notes)
    )
    assert "Try --time received" in " ".join(result.notes)


def test_another_frame_than_the_configuration_s_is_told(feed, write_bag, normal):
    result, _ = feed(write_bag(normal(3, frame="ankle_ft")))
    (note,) = result.notes
    assert note == (
        "/l/wrench: frame_id is 'ankle_ft', but readings are taken in the axes of base as the "
        "configuration says (wrench.frame)"
    )


def test_up_follows_the_joints_between_root_and_imu(feed, write_bag, normal, messages):
    entries = normal(100)
    for i in range(100):
        time = START + i * STEP
        angle = 0.01 * i
        entries[2 * i][2] = messages.joints(time, ["a", "b"], [angle, 0.0])
        turn = (0.0, np.sin(angle / 2), 0.0, np.cos(angle / 2))  # the root stays upright
        entries.append(["/imu", time + S + 1, messages.imu(time, turn)])
    entries.sort(key=lambda entry: entry[1])
    _, recorder = feed(write_bag(entries), Roles("/joint_states", ("/l/wrench",), "/imu"))
    _, up = recorder.gathered("ups")
    np.testing.assert_allclose(up, np.tile([0.0, 0.0, 1.0], (100, 1)), atol=1e-12)


def test_without_orientation_the_acceleration_tells_where_up_is(feed, write_bag, normal, messages):
    entries = normal(10)
    for i in range(10):
        time = START + i * STEP
        entries[2 * i][2] = messages.joints(time, ["a", "b"], [0.0, 0.0])
        acceleration = (9.81 * np.sin(0.1), 0.0, 9.81 * np.cos(0.1))
        imu = messages.imu(time, known=False, acceleration=acceleration)
        entries.append(["/imu", time + S + 1, imu])
    entries.sort(key=lambda entry: entry[1])
    result, recorder = feed(write_bag(entries), Roles("/joint_states", ("/l/wrench",), "/imu"))
    _, up = recorder.gathered("ups")
    np.testing.assert_allclose(up, np.tile([np.sin(0.1), 0.0, np.cos(0.1)], (10, 1)), atol=1e-12)
    assert "/imu: 10 messages without orientation" in " ".join(result.notes)


def test_broken_messages_are_counted(feed, write_bag, normal, messages):
    path = write_bag(normal(), "sqlite3")
    with sqlite3.connect(path / "bag.db3") as database:
        database.execute("UPDATE messages SET data = x'0001000000' WHERE id % 30 = 1")
        database.execute("UPDATE messages SET data = 'text' WHERE id % 30 = 3")
    result, _ = feed(path)
    assert result.messages["/joint_states"] == 260
    assert "/joint_states: 40 messages cannot be read (it ends after 5 bytes" in (
        " ".join(result.notes)
    )


def test_a_topic_of_which_nothing_can_be_read(feed, write_bag, normal):
    path = write_bag(normal(30), "sqlite3")
    with sqlite3.connect(path / "bag.db3") as database:
        database.execute("UPDATE messages SET data = x'00' WHERE topic_id = 2")
    with pytest.raises(TopicError, match="/l/wrench: no message of it can be read"):
        feed(path)


def test_without_definitions_those_of_all_distributions_are_taken(feed, write_bag, normal):
    path = write_bag(normal(30), "sqlite3")
    with sqlite3.connect(path / "bag.db3") as database:
        database.execute("DELETE FROM message_definitions")
    result, recorder = feed(path)
    assert len(recorder.gathered("joints")[0]) == 30
    assert (
        "/joint_states: the bag has no definition of sensor_msgs/msg/JointState; taken as all ROS "
        "2 distributions have it" in result.notes
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("float64[] angles", "has the fields angles; expected effort, header, name, position"),
        ("float64[ position", "its definition in the bag cannot be read"),
    ],
)
def test_a_definition_that_is_another_type_is_refused(feed, write_bag, normal, text, words):
    path = write_bag(normal(30), "sqlite3")
    with sqlite3.connect(path / "bag.db3") as database:
        database.execute(
            "UPDATE message_definitions SET encoded_message_definition = ? WHERE id = 1", (text,)
        )
    with pytest.raises(DefinitionError, match=words):
        feed(path)
