"""Whole, damaged and missing bags."""

import shutil
import sqlite3

import numpy as np
import pytest
from rosbags.rosbag2 import CompressionMode

from com_bags.bag import Bag
from com_bags.exceptions import BagError

START, STEP = 1_700_000_000_000_000_000, 10_000_000


COUNT = 3000


@pytest.fixture(scope="module")
def entries(messages):
    """3000 joint states, and a text now and then."""
    # hard to compress
    rows, values = [], np.random.default_rng(0).normal(size=(COUNT, 6))
    for i in range(COUNT):
        time = START + i * STEP
        rows.append(
            ("/joint_states", time, messages.joints(time, list("abcdef"), values[i]))
        )
        if i % 1000 == 0:
            rows.append(("/log", time, messages.text("hello")))
    return rows


def stamps(bag, topic="/joint_states"):
    return [time for _, time, _ in bag.messages([topic])]


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
def test_a_whole_bag_is_read_as_directory_and_as_file(write_bag, entries, storage):
    path = write_bag(entries, storage)
    (file,) = [*path.glob("*.mcap"), *path.glob("*.db3")]
    for source in (path, file):
        with Bag(source) as bag:
            names = [(topic.name, topic.count, topic.defined) for topic in bag.topics()]
            assert names == [("/joint_states", COUNT, True), ("/log", 3, True)]
            assert stamps(bag) == [START + i * STEP for i in range(COUNT)]
            assert bag.notes == []


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
def test_a_directory_whose_recorder_was_killed_is_read_file_by_file(
    write_bag, entries, storage
):
    path = write_bag(entries, storage)
    (path / "metadata.yaml").unlink()
    with Bag(path) as bag:
        assert len(stamps(bag)) == COUNT
        (note,) = bag.notes
    assert "metadata.yaml" in note or "read without" in note


def test_of_an_mcap_that_was_cut_all_whole_records_are_read(write_bag, entries):
    path = write_bag(entries)
    file = path / "bag.mcap"
    data = file.read_bytes()
    file.write_bytes(data[: len(data) * 6 // 10])
    with Bag(file) as bag:
        got = stamps(bag)
        (note,) = bag.notes
        assert 0.5 * COUNT < len(got) < 0.7 * COUNT
        assert got == [START + i * STEP for i in range(len(got))]
        (topic,) = [topic for topic in bag.topics() if topic.name == "/joint_states"]
        assert topic.count == len(got)
        assert topic.defined
    assert "bag.mcap: damaged (the last " in note
    assert f"of {len(data) * 6 // 10} bytes are not a complete record). The " in note
    assert "messages before that are used" in note


def test_an_mcap_is_read_up_to_a_broken_chunk_in_the_middle(write_bag, messages):
    names, values = (
        [f"{i:040d}" for i in range(20)],
        np.random.default_rng(0).normal(size=20),
    )
    entries = [
        ("/joint_states", START + i, messages.joints(START, names, values + i))
        for i in range(4000)
    ]
    path = write_bag(entries, compression=CompressionMode.STORAGE)
    file = path / "bag.mcap"
    data = file.read_bytes()
    zstd = b"\x28\xb5\x2f\xfd"  # starts a frame
    second = data.index(zstd, data.index(zstd) + 1)
    file.write_bytes(data[:second] + bytes(4) + data[second + 4 :])
    with Bag(path) as bag:
        got = stamps(bag)
        assert 500 < len(got) < 2000
        assert got == [START + i for i in range(len(got))]
        (note,) = bag.notes
    assert note.startswith(
        f"bag: the bag is damaged after {len(got)} of 4000 messages (a chunk "
    )
    assert note.endswith("what comes before is used")


def test_of_an_sqlite3_bag_that_was_cut_the_first_messages_are_read(write_bag, entries):
    path = write_bag(entries, "sqlite3")
    file = path / "bag.db3"
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 2])
    with Bag(path) as bag:
        got = stamps(bag)
        assert 0.1 * COUNT < len(got) < COUNT
        assert got == sorted(got)
        assert set(got) < {START + i * STEP for i in range(COUNT)}
        assert "malformed" in " ".join(bag.notes)
        assert "messages before that are used" in " ".join(bag.notes)


@pytest.mark.parametrize("mode", ["STORAGE", "MESSAGE", "FILE"])
def test_compressed_bags(write_bag, entries, mode):
    path = write_bag(entries, compression=CompressionMode[mode])
    with Bag(path) as bag:
        assert len(stamps(bag)) == COUNT


def test_a_compressed_file_without_metadata_says_what_to_do(write_bag, entries):
    path = write_bag(entries[:5], compression=CompressionMode.FILE)
    (path / "metadata.yaml").unlink()
    with pytest.raises(BagError, match="unpack them with zstd -d first"), Bag(path):
        pass


def test_an_mcap_that_does_not_say_that_it_is_of_ros_2_is_read(write_bag, entries):
    file = write_bag(entries) / "bag.mcap"
    data = file.read_bytes()
    assert data[17:25] == b"\4\0\0\0ros2"
    file.write_bytes(data[:21] + b"ros9" + data[25:])
    with Bag(file) as bag:
        assert len(stamps(bag)) == COUNT
        assert bag.notes == []


def test_an_old_sqlite3_bag_has_no_definitions(tmp_path, messages):
    file = tmp_path / "old.db3"
    with sqlite3.connect(file) as database:
        database.executescript(
            "CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT, type TEXT,"
            " serialization_format TEXT);"
            "CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER, timestamp INTEGER,"
            " data BLOB);"
            "INSERT INTO topics VALUES(1, '/joint_states', 'sensor_msgs/msg/JointState', 'cdr');"
        )
        payload = messages.bytes(messages.joints(5, ["a"], [1.0]))
        database.execute("INSERT INTO messages VALUES(1, 1, 5, ?)", (payload,))
    with Bag(file) as bag:
        (topic,) = bag.topics()
        assert not topic.defined
        assert stamps(bag) == [5]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda p: None,
            "does not exist. Give the directory of a bag, or its .mcap or .db3 file",
        ),
        (lambda p: p.mkdir(), "contains no bag"),
        (lambda p: p.write_bytes(b""), "is empty"),
        (lambda p: p.write_bytes(b"hello"), "is neither mcap nor sqlite3"),
        (
            lambda p: p.write_bytes(b"\x89MCAP0\r\n" + bytes(40)),
            "contains no complete message",
        ),
        (
            lambda p: p.write_bytes(b"SQLite format 3\0" + bytes(5000)),
            "no topics can be read",
        ),
    ],
)
def test_what_is_no_bag_is_refused_with_the_fix(tmp_path, make, words):
    path = tmp_path / "thing.mcap"
    make(path)
    with pytest.raises(BagError, match=words) as error, Bag(path):
        pass
    assert str(path) in str(error.value)


def test_a_split_bag_whose_last_file_was_cut(write_bag, entries, tmp_path):
    path, second = write_bag(entries[:1000]), write_bag(entries[1000:], name="second")
    shutil.copy(second / "second.mcap", path / "bag_1.mcap")
    data = (path / "bag_1.mcap").read_bytes()
    (path / "bag_1.mcap").write_bytes(data[: len(data) // 2])
    (path / "metadata.yaml").unlink()
    with Bag(path) as bag:
        got = stamps(bag)
        assert 1500 < len(got) < COUNT
        assert got == sorted(got)
