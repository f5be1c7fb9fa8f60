"""Bags with damaged bytes: read up to the damage, or refused with a clear message."""

import numpy as np
import pytest

from com_bags.bag import Bag
from com_bags.decoding import JOINT_STATE, Decoder
from com_bags.exceptions import BagError

START = 1_700_000_000_000_000_000


@pytest.fixture
def small(write_bag, messages):
    """small(storage): the only file of a bag of 60 joint states."""

    def make(storage):
        entries = [
            ("/joint_states", START + i, messages.joints(START + i, ["a", "b"], [i, -i]))
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
                    payloads = [payload for _, _, payload in bag.messages(["/joint_states"])]
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
