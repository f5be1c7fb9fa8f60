"""Bags with damaged bytes: read up to the damage, or refused with a clear message."""

import sqlite3
import struct

import numpy as np
import pytest

from com_bags import storage
from com_bags.bag import Bag
from com_bags.channels import JOINT_STATE
from com_bags.decoding import Decoder
from com_bags.exceptions import BagError, StorageError

pytestmark = pytest.mark.slow

START = 1_700_000_000_000_000_000


@pytest.fixture
def small(write_bag, messages):
    """small(storage): the only file of a bag of 60 joint states."""

    def make(storage):
        entries = [
            (
                "/joint_states",
                START + i,
                messages.joints(START + i, ["a", "b"], [i, -i]),
            )
            for i in range(60)
        ]
        path = write_bag(entries, storage)
        (file,) = [file for file in path.iterdir() if file.suffix != ".yaml"]
        return file

    return make


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
@pytest.mark.parametrize("way", ["flip", "cut", "zero"])
def test_damaged_files_are_refused_or_give_fewer_messages(small, storage, way):
    file = small(storage)
    data, rng = file.read_bytes(), np.random.default_rng(5)
    for _ in range(60):
        damaged = bytearray(data)
        place = int(rng.integers(0, len(data) - 8))
        if way == "flip":
            damaged[place] ^= int(rng.integers(1, 256))
        elif way == "zero":
            damaged[place : place + 200] = bytes(len(damaged[place : place + 200]))
        else:
            del damaged[place:]
        file.write_bytes(damaged)
        for path in (file, file.parent):
            reader = Decoder(JOINT_STATE)
            try:
                with Bag(path) as bag:
                    payloads = [
                        payload for _, _, payload in bag.messages(["/joint_states"])
                    ]
                    reader.decode([p for p in payloads if isinstance(p, bytes)])
            except BagError:
                continue
            assert len(payloads) <= 60


def test_a_chunk_with_a_wrong_checksum_is_not_used(small):
    file = small("mcap")
    data = bytearray(file.read_bytes())
    chunk = 8 + 9 + int.from_bytes(data[9:17], "little")
    assert data[chunk] == 6
    data[chunk + 9 + 24 : chunk + 9 + 28] = b"\1\2\3\4"
    file.write_bytes(data)
    with Bag(file) as bag:
        assert list(bag.messages(["/joint_states"])) == []
        assert (
            "damaged after 0 of 60 messages (a chunk cannot be unpacked: its checksum"
            in bag.notes[0]
        )


def change_rows(file, query):
    """Changes an sqlite3 bag as only damage can."""
    for part in ("UPDATE sqlite_master SET sql = replace(sql, 'NOT NULL', '')", query):
        with sqlite3.connect(file) as base:
            base.execute("PRAGMA writable_schema=ON")
            base.execute(part)
        base.close()


def test_at_a_time_that_is_no_number_reading_an_sqlite3_bag_stops(small):
    file = small("sqlite3")
    change_rows(file, "UPDATE messages SET timestamp = 'soon' WHERE id = 20")
    with Bag(file) as bag:
        assert len(list(bag.messages(["/joint_states"]))) == 19
        assert "after 19 of 60 messages (a message has no time)" in bag.notes[0]


@pytest.mark.parametrize(
    "change", ["name = NULL", "type = x'00'", "name = 'x', type = NULL"]
)
def test_an_sqlite3_bag_without_names_of_its_topics_is_refused(small, change):
    file = small("sqlite3")
    change_rows(file, f"UPDATE topics SET {change}")
    with (
        pytest.raises(
            BagError, match=r"1 topics without a name or a type\) and contains no"
        ),
        Bag(file),
    ):
        pass


def test_a_time_beyond_64_bits_is_damage(small):
    file = small("mcap")
    data = file.read_bytes()
    time = struct.pack("<Q", START + 7)
    at = data.index(b"\x05", data.index(time) - 20)  # of the message, not of the index
    chunk = data.index(b"\x06", 8)
    changed = bytearray(data.replace(time, b"\xff" * 8))
    changed[chunk + 9 + 24 : chunk + 9 + 28] = bytes(4)
    file.write_bytes(changed)
    assert at > 0
    with Bag(file) as bag:
        assert len(list(bag.messages(["/joint_states"]))) == 7
        assert "impossible time" in bag.notes[0]


def test_what_would_become_too_large_is_not_unpacked():
    rosbags = storage.storage_mcap  # older ones use zstandard
    zstd = getattr(rosbags, "zstd", None) or rosbags.zstandard
    packed = zstd.compress(bytes(10**6))
    assert storage.unpack_zstd(packed) == bytes(10**6)
    with pytest.raises(StorageError, match="become more than 1000"):
        storage.unpack_zstd(packed, 1000)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 5000,
        "rosbag2_bagfile_information: 5",
        "rosbag2_bagfile_information: {version: x}",
    ],
)
def test_with_a_damaged_metadata_file_the_others_are_read(small, text):
    folder = small("mcap").parent
    (folder / "metadata.yaml").write_text(text)
    with Bag(folder) as bag:
        assert len(list(bag.messages(["/joint_states"]))) == 60
        assert "metadata.yaml cannot be read" in bag.notes[0]
