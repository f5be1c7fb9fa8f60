"""Files that are made to hang a program, to fill its memory, or to end it with a traceback.

Each is read in one child process, whose memory is measured: a limit of address space ends it where
a file gets what it wants.
"""

import json
import os
import sqlite3
import struct
import subprocess
import sys
import zipfile
from base64 import b64encode
from contextlib import closing
from io import BytesIO
from zlib import compress

import numpy as np
import pytest

from com_bags import Bag, BagError, TableError, read_table
from com_bags.storage import MCAP_MAGIC
from com_identification.exceptions import HealthError, IdentificationError
from com_identification.health.records import Record
from com_identification.settings import IdentificationSettings
from com_identification.walking.posterior import RobotPosterior
from com_model import ComModelError, RobotConfig
from com_model.exceptions import MeshError
from com_model.shapes.meshes import load_mesh

MOST_MB = 500  # beyond what the imports take


def sqlite_bag(messages):
    """A bag whose table of messages is made by some SQL."""

    def write(path):
        with closing(sqlite3.connect(path)) as database:
            database.executescript(
                "CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT, type TEXT, "
                "serialization_format TEXT, offered_qos_profiles TEXT);"
                "INSERT INTO topics VALUES(1, 'joint_states', 'sensor_msgs/msg/JointState', "
                f"'cdr', '');{messages}"
            )

    return write


COUNT = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 100000)"
VIEW = (
    f"CREATE VIEW messages AS {COUNT} SELECT i AS id, 1 AS topic_id, i AS timestamp, "
    "randomblob(100000000) AS data FROM n;"
)
GENERATED = (
    "CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER, timestamp INTEGER, "
    "data BLOB GENERATED ALWAYS AS (zeroblob(100000000)));"
    f"INSERT INTO messages(topic_id, timestamp) {COUNT} SELECT 1, i FROM n LIMIT 1000;"
)


def mcap_of_chunks(path):
    """Twenty chunks of 128 MB each, of a few messages that nobody can use."""
    zstandard = pytest.importorskip("zstandard")
    message = struct.pack("<BQ", 5, 2**20) + bytes(2**20)
    records = message * (2**27 // len(message))
    size = len(records)
    data = zstandard.compress(records)
    chunk = struct.pack("<QQQI", 0, 0, size, 0) + struct.pack("<I", 4) + b"zstd"
    chunk += struct.pack("<Q", len(data)) + data
    record = struct.pack("<BQ", 6, len(chunk)) + chunk
    path.write_bytes(MCAP_MAGIC + 20 * record)


def mcap_cut(path):
    """The head of a chunk, and nothing behind it."""
    chunk = struct.pack("<QQQI", 0, 0, 1000, 0) + struct.pack("<I", 3) + b"lz4ABCDE"
    path.write_bytes(MCAP_MAGIC + struct.pack("<BQ", 6, 1000) + chunk)


def columns(path):
    path.write_text(",".join("a" * 200_000) + "\n" + ",".join("1" * 200_000) + "\n")


def lists(path):
    """Four million lists of one number each, in a few kB."""
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    starts = np.arange(4_000_001, dtype=np.int32)
    column = arrow.ListArray.from_arrays(starts, np.zeros(4_000_000))
    parquet.write_table(arrow.table({"l": column}), path)


def zeros(size):
    """The bytes of an npz file with an array of zeros."""
    data, head = BytesIO(), BytesIO()
    np.lib.format.write_array_header_1_0(
        head, {"descr": "<f8", "fortran_order": False, "shape": (size // 8,)}
    )
    with (
        zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("parameters.npy", "w", force_zip64=True) as member,
    ):
        member.write(head.getvalue())
        for _ in range(size // 2**22):
            member.write(bytes(2**22))
    return data.getvalue()


def record_of_zeros(path):
    arrays = b64encode(compress(zeros(2**27))).decode()
    path.write_text(json.dumps({"arrays": arrays}))


def write(content):
    """Writes a text, or bytes."""

    def write(path):
        path.write_bytes(content.encode() if isinstance(content, str) else content)

    return write


def triangle(index):
    return write(f"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 {index}\n")


def read_bag(path):
    with Bag(path) as bag:
        for _ in bag.messages([topic.name for topic in bag.topics()]):
            pass


READERS = {
    "bag": (read_bag, BagError),
    "table": (read_table, TableError),
    "mesh": (load_mesh, MeshError),
    "config": (RobotConfig.from_file, ComModelError),
    "settings": (IdentificationSettings.from_file, ComModelError),
    "record": (lambda path: Record.from_json(path.read_text()), HealthError),
    "posterior": (RobotPosterior.from_file, IdentificationError),
}
# by file name: how it is made, what reads it, and words of the message
FILES = {
    "view.db3": (sqlite_bag(VIEW), "bag", "messages is no plain table"),
    "generated.db3": (sqlite_bag(GENERATED), "bag", "messages is no plain table"),
    "cut.mcap": (mcap_cut, "bag", "not a complete record"),
    "columns.csv": (columns, "table", "200000 columns, more than"),
    "lists.parquet": (lists, "table", "nothing was wrong"),
    "zeros.npz": (
        lambda path: path.write_bytes(zeros(2**30 + 2**22)),
        "table",
        "bytes, more",
    ),
    "encoding.dae": (
        write('<?xml version="1.0" encoding="uf-8"?><C/>'),
        "mesh",
        "uf-8",
    ),
    "index.obj": (triangle("9" * 30), "mesh", "not a readable .obj"),
    "far.obj": (triangle("99999999"), "mesh", "not a readable .obj"),
    "timestamp.yaml": (write("name: !!timestamp x"), "config", "tags are not read"),
    "bool.yaml": (write("name: !!bool x"), "config", "tags are not read"),
    "python.yaml": (
        write("name: !!python/object/apply:os.system [ls]"),
        "config",
        "tags are not read",
    ),
    "date.yaml": (write("capture: 2001-99-99"), "settings", "is not plain YAML"),
    "number.yaml": (write("fit: 0x" + "f" * 5000), "settings", "more than 40 digits"),
    "surrogate.yaml": (write(r'name: "\uD800"'), "config", "surrogate"),
    "deep.yaml": (write("prior: " + "[" * 100_000), "settings", "nests too deep"),
    "deep_keys.yaml": (
        write("\n".join(" " * k + "a:" for k in range(300))),
        "settings",
        "nests too deep",
    ),
    "deep.json": (write("[" * 100_000), "record", "damaged"),
    "nan.json": (write('{"arrays": NaN}'), "record", "NaN is no number"),
    "zeros.json": (record_of_zeros, "record", "bytes, more than"),
    "posterior.npz": (
        lambda path: path.write_bytes(zeros(2**29)),
        "posterior",
        "bytes, more than",
    ),
    "no_posterior.npz": (
        write(b"PK\x03\x04 no archive"),
        "posterior",
        "not a posterior",
    ),
}


def read(name, path):
    """The message with which a file is refused; any other exception comes through."""
    reader, error = READERS[FILES[name][1]]
    try:
        reader(path)
    except error as refusal:
        return str(refusal)
    return "nothing was wrong"


CHILD = """
import json, pathlib, resource, sys
sys.path.insert(0, sys.argv[1])
from test_hostile_files import FILES, read
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
imports = peak()
said = {name: read(name, pathlib.Path(sys.argv[2], name)) for name in FILES}
print(json.dumps([said, peak() - imports]))
"""


@pytest.mark.timeout(300)
def test_each_is_refused_with_a_clear_line_and_takes_little(tmp_path):
    for name, (make, _, _) in FILES.items():
        make(tmp_path / name)
    here = os.path.dirname(__file__)
    done = subprocess.run(
        [sys.executable, "-c", CHILD, here, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    said, megabytes = json.loads(done.stdout)
    for name, (_, _, words) in FILES.items():
        assert words in said[name], (name, said[name][:300])
        assert len(said[name].splitlines()) == 1, said[name]
        assert len(said[name]) < 500
    assert megabytes < MOST_MB


def test_chunks_that_grow_without_end_are_read_as_far_as_they_may(tmp_path):
    path = tmp_path / "chunks.mcap"
    mcap_of_chunks(path)
    with pytest.raises(BagError, match="times as large unpacked"):
        read_bag(path)
