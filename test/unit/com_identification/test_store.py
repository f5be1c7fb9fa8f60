"""Postures on disk: exact, durable, whole after any cut, one writer, bounded reading."""

import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress

import numpy as np
import pytest

from com_identification.exceptions import IdentificationError, OutputError, StoreError
from com_identification.regression.postures import ComConstraint, Posture, make_posture
from com_identification.store.store import PostureStore
from com_model import RobotModel


def posture(model, seed=0, **keys):
    rng = np.random.default_rng(seed)
    up = rng.normal(size=3)
    defaults = {
        "wrenches": rng.normal(size=(2, 6)) * 10.0 ** rng.integers(-300, 300, (2, 6)),
        "effort": np.where(rng.random(25) < 0.3, np.nan, rng.normal(size=25)),
        "up": up / np.linalg.norm(up),
        "samples": int(rng.integers(1, 1000)),
        "label": f"posture {seed}, \u00e4 \n",
    }
    return make_posture(model, rng.normal(size=25), **defaults | keys)


def assert_same(a, b):
    for name in ("q", "wrenches", "effort", "up"):
        x, y = getattr(a, name), getattr(b, name)
        assert x.shape == y.shape
        assert np.array_equal(x, y, equal_nan=True), name
    assert (a.samples, a.label) == (b.samples, b.label)
    assert len(a.constraints) == len(b.constraints)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "deep" / "postures.db"


def test_what_was_added_is_read_back_bit_for_bit(hoap2, path):
    model, feet = hoap2
    limit = ComConstraint("l_sole", [0.0, 1.0, 0.0], 0.0123456789, 1e-3)
    kept = [posture(model, i) for i in range(20)]
    kept.append(
        posture(model, 20, wrenches=None, effort=None, up=None, constraints=(limit,))
    )
    with PostureStore(path, model, feet) as store:
        assert [store.add(p, 10**18 + i) for i, p in enumerate(kept)] == list(
            range(1, 22)
        )
        store.remove(3)
        store.set_bias(1, [0.1, 0.2, 1 / 3, -0.4, 0.5, 0.6])
    with PostureStore(path, model, feet) as store:
        assert list(store.postures) == [1, 2, *range(4, 22)]
        for i, p in store.postures.items():
            assert_same(p, kept[i - 1])
            assert store.stamps[i] == 10**18 + i - 1
        np.testing.assert_array_equal(
            store.bias, [[0.0] * 6, [0.1, 0.2, 1 / 3, -0.4, 0.5, 0.6]]
        )
        assert store.postures[21].constraints[0].offset == limit.offset
        assert store.add(kept[0]) == 22
        with pytest.raises(TypeError):
            store.postures[1] = kept[0]


def test_ids_are_never_used_again(hoap2, path):
    with PostureStore(path, *hoap2) as store:
        for i in range(3):
            store.add(posture(hoap2[0], i))
        store.remove(3)
    with PostureStore(path, *hoap2) as store:
        assert store.add(posture(hoap2[0])) == 4
        backup = store.reset()
        assert store.postures == {}
        assert store.add(posture(hoap2[0])) == 5
        with pytest.raises(StoreError, match="no posture has the id 4; there are: 5"):
            store.remove(4)
    assert backup.name == "postures.db.1.old"
    with PostureStore(backup, *hoap2) as old:
        assert list(old.postures) == [1, 2, 4]
    with PostureStore(path, *hoap2) as store:
        assert store.add(posture(hoap2[0])) == 6
        store.reset()
        assert store.reset() is None, "there is nothing to throw away"


SMALL = """<robot name="arm">
  <link name="base"><inertial><mass value="1"/></inertial></link>
  <link name="arm"><inertial><mass value="2"/></inertial></link>
  <joint name="turn" type="continuous"><parent link="base"/><child link="arm"/></joint>
</robot>"""


def killed(path, model, feet, count):
    """Copies of a store's files as a killed process leaves them, after `count` postures."""
    with PostureStore(path, model, feet) as store:
        for i in range(count):
            store.add(make_posture(model, [i / 3.0]))
        return {
            part.name: part.read_bytes()
            for part in path.parent.iterdir()
            if part.is_file()
        }


def put(folder, files):
    for old in folder.iterdir():
        old.unlink()
    for name, data in files.items():
        (folder / name).write_bytes(data)


def test_a_cut_at_any_byte_of_what_was_written_last_loses_nothing_else(path):
    model = RobotModel.from_urdf(SMALL)
    before = killed(path, model, (), 2)
    put(path.parent, {})
    after = killed(path, model, (), 3)
    wal = f"{path.name}-wal"
    assert after[path.name] == before[path.name]
    first, last = len(before[wal]), len(after[wal])
    assert last > first
    for size in [*range(first, last, 97), last - 1, last]:
        put(path.parent, after | {wal: after[wal][:size]})
        with PostureStore(path, model, ()) as store:
            whole = 3 if size == last else 2
            assert [p.q[0] for p in store.postures.values()] == [
                i / 3.0 for i in range(whole)
            ]
            assert store.add(make_posture(model, [5.0])) == whole + 1


def test_a_file_whose_making_was_cut_is_made_again(hoap2, path):
    with PostureStore(path, *hoap2):
        wal = path.with_name(f"{path.name}-wal").read_bytes()
        data = path.read_bytes()
    for size in (0, 1, 40, len(wal) - 1):
        put(path.parent, {path.name: data, f"{path.name}-wal": wal[:size]})
        with PostureStore(path, *hoap2) as store:
            assert store.add(posture(hoap2[0])) == 1


WRITER = """
import sys, numpy as np
from com_identification.regression.postures import make_posture
from com_identification.store.store import PostureStore
from com_model import RobotConfig, RobotModel
config = RobotConfig.from_file(sys.argv[2])
model = RobotModel.from_file(config.urdf)
store = PostureStore(sys.argv[1], model, config.feet)
for i in range(100000):
    print(store.add(make_posture(model, np.full(25, float(i)))), flush=True)
"""


def test_a_killed_writer_loses_nothing_that_was_acknowledged(hoap2, path):
    config = os.path.join(
        os.path.dirname(__file__),
        *[".."] * 4,
        "src/robot_descriptions/config/hoap2.yaml",
    )
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), config],
        stdout=subprocess.PIPE,
        text=True,
    )
    said = [writer.stdout.readline() for _ in range(20)]
    time.sleep(0.013)
    writer.send_signal(signal.SIGKILL)
    said += writer.stdout.readlines()
    writer.wait()
    acknowledged = [int(line) for line in said if line.endswith("\n")]
    with PostureStore(path, *hoap2) as store:
        assert list(store.postures)[: len(acknowledged)] == acknowledged
        assert len(store.postures) <= len(acknowledged) + 1
        for i, p in store.postures.items():
            assert (p.q == i - 1).all()


def test_a_full_disk_is_told_and_the_store_goes_on(hoap2, path):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with PostureStore(path, *hoap2) as store:
        store.add(posture(hoap2[0], 0))
        size = path.with_name(f"{path.name}-wal").stat().st_size
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, hard))
            with pytest.raises(
                StoreError, match=r"cannot be used: .*free space on the disk"
            ):
                store.add(posture(hoap2[0], 1))
            resource.setrlimit(resource.RLIMIT_FSIZE, (50, hard))
            with pytest.raises(StoreError, match="Its postures are still there"):
                store.reset()
            with pytest.raises(OutputError, match=r"cannot be used: .*Free space"):
                store.save(path.with_name("copy"))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert list(store.postures) == [1]
        assert store.add(posture(hoap2[0], 1)) == 2
    assert [p.name for p in path.parent.iterdir()] == ["postures.db"]
    with PostureStore(path, *hoap2) as store:
        assert list(store.postures) == [1, 2]


def test_a_file_that_was_removed_comes_back_with_all_postures(hoap2, path):
    with PostureStore(path, *hoap2) as store:
        store.add(posture(hoap2[0], 0))
        path.unlink()
        assert store.add(posture(hoap2[0], 1)) == 2
    with PostureStore(path, *hoap2) as store:
        assert list(store.postures) == [1, 2]


def test_one_writer_at_a_time(hoap2, path):
    with (
        PostureStore(path, *hoap2) as store,
        pytest.raises(StoreError, match=r"in use by another process\. Stop it"),
    ):
        PostureStore(path, *hoap2)
    PostureStore(path, *hoap2).close()
    with pytest.raises(StoreError, match="is closed"):
        store.add(posture(hoap2[0]))


def test_save_and_load(hoap2, path, tmp_path):
    model = hoap2[0]
    with PostureStore(path, *hoap2) as store:
        for i in range(4):
            store.add(posture(model, i))
        store.remove(2)
        store.set_bias(0, np.arange(6.0))
        copy = store.save(tmp_path / "copy.db")
        with pytest.raises(OutputError, match="exists already: give another name"):
            store.save(copy)
        with pytest.raises(StoreError, match="is the store itself"):
            store.save(path, overwrite=True)
        store.save(copy, overwrite=True)
        store.reset()
        store.set_bias(0, np.zeros(6))
        store.add(posture(model, 9))
        assert store.load(copy) == 3
        assert store.last_backup.name == "postures.db.2.old"
        assert list(store.postures) == [6, 7, 8]
        for kept, seed in zip(store.postures.values(), (0, 2, 3), strict=True):
            assert_same(kept, posture(model, seed))
        np.testing.assert_array_equal(store.bias[0], np.arange(6.0))
        assert len(list(path.parent.glob("*.old"))) == 2
        os.mkfifo(tmp_path / "pipe")
        for bad, text in (
            ("none", "No such file"),
            ("pipe", "not a regular file"),
            ("a\0", "null"),
        ):
            with pytest.raises(StoreError, match=f"cannot be used: .*{text}"):
                store.load(tmp_path / bad)
        assert len(store.postures) == 3
    with PostureStore(path, *hoap2) as store:
        assert list(store.postures) == [6, 7, 8]


def test_another_robots_file_is_refused(hoap2, path):
    model, feet = hoap2
    PostureStore(path, model, feet).close()
    moved = RobotModel.from_urdf(model.xml.replace('"LLEG_JOINT4"', '"LEFT_KNEE"'))
    with pytest.raises(
        StoreError,
        match=r"another robot: its joints differ \(file: LLEG_JOINT4; this robot: LEFT_KNEE\)",
    ):
        PostureStore(path, moved, feet)
    with pytest.raises(StoreError, match="its feet differ"):
        PostureStore(path, model, feet[::-1])
    heavier = RobotModel.from_urdf(model.xml.replace('<mass value="', '<mass value="1'))
    assert heavier.mass > model.mass
    PostureStore(path, heavier, feet).close()


def record(**changes):
    good = {
        "kind": "posture",
        "stamp_ns": 5,
        "label": "",
        "samples": 1,
        "q": [0.0] * 25,
        "effort": [None] * 25,
        "up": [None] * 3,
        "wrenches": [],
        "constraints": [],
    }
    return json.dumps(good | changes)


DAMAGED = pytest.mark.parametrize(
    ("line", "text"),
    [
        ("[" * 100_000, "recursion depth"),
        ("{" + " " * 300_000 + "}", "longer than 262144 bytes|too big"),
        ("no JSON", "Expecting value"),
        ("\u00ff\u0000", "is damaged"),
        ("[]", "is damaged"),
        ('{"kind": "posture"}', "is damaged"),
        ('{"kind": "tare", "foot": 2, "offset": [0,0,0,0,0,0]}', "there is no foot 2"),
        (
            '{"kind": "tare", "foot": 0, "offset": [0,0,0,0,0,null]}',
            "expected 6 numbers",
        ),
        (record(stamp_ns=-1), "expected a whole number"),
        (record(stamp_ns=1e3), "expected a whole number"),
        (record(samples=0), "samples: expected 1 or more"),
        (record(q=[0.0] * 24), "expected 25 numbers"),
        (record(q=[None] * 25), "every joint's position is needed"),
        (record(up=[0.0, 0.0, 2.0]), "not a unit vector"),
        (record(wrenches=[[0.0] * 6]), "1 wrenches for 2 feet"),
        (record(wrenches=[[0.0] * 5] * 2), "expected 6 numbers"),
        (record(q=["1"] * 25), "expected 25 numbers"),
        (record(effort=[True] * 25), "expected 25 numbers"),
        (record(constraints=[["l_sole", [0, 0, 3], 0, 1]]), "not a unit vector"),
        (record().replace("0.0", "NaN", 1), "NaN is not a JSON number"),
        (record().replace("0.0", "1e999", 1), "too large"),
    ],
)


@DAMAGED
def test_damaged_files_are_refused_and_left_alone(hoap2, path, line, text):
    PostureStore(path, *hoap2).close()
    database = sqlite3.connect(path)
    database.execute("INSERT INTO records VALUES (1, ?)", (line,))
    database.commit()
    database.close()
    data = path.read_bytes()
    with pytest.raises(StoreError, match=text):
        PostureStore(path, *hoap2)
    assert path.read_bytes() == data


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE records RENAME TO other; CREATE VIEW records AS WITH RECURSIVE "
        "c(id, r) AS (SELECT 1, '' UNION ALL SELECT id + 1, '' FROM c) SELECT * FROM c",
        "CREATE TRIGGER t AFTER INSERT ON records BEGIN DELETE FROM records; END",
        "DROP TABLE records",
        "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = 'nonsense'",
    ],
)
def test_databases_that_are_no_stores_are_refused(hoap2, path, sql):
    PostureStore(path, *hoap2).close()
    database = sqlite3.connect(path)
    database.executescript(sql)
    database.close()
    data = path.read_bytes()
    for _ in range(2):
        with pytest.raises(StoreError, match=r"not a posture file|malformed"):
            PostureStore(path, *hoap2)
    with (
        PostureStore(path.with_name("other.db"), *hoap2) as store,
        pytest.raises(StoreError, match=r"not a posture file|malformed"),
    ):
        store.load(path)
    assert path.read_bytes() == data


def test_the_database_of_another_program_is_left_as_it_is(hoap2, tmp_path):
    """Also its journal mode, which is part of the file."""
    path = tmp_path / "other.db"
    database = sqlite3.connect(path)
    database.executescript("CREATE TABLE mine (a); INSERT INTO mine VALUES (1)")
    database.close()
    data = path.read_bytes()
    with pytest.raises(StoreError, match="not a posture file"):
        PostureStore(path, *hoap2)
    assert path.read_bytes() == data
    assert list(tmp_path.iterdir()) == [path]


def test_pages_that_are_overwritten_never_do_harm(hoap2, path):
    with PostureStore(path, *hoap2) as store:
        for i in range(30):
            store.add(posture(hoap2[0], i))
    data, rng = path.read_bytes(), np.random.default_rng(0)
    for _ in range(40):
        spoilt = bytearray(data)
        for at in rng.integers(0, len(data), 20):
            spoilt[at] = rng.integers(256)
        path.write_bytes(spoilt)
        with suppress(StoreError), PostureStore(path, *hoap2) as store:
            store.add(posture(hoap2[0]))


def test_what_is_no_store_is_refused(hoap2, tmp_path):
    other = tmp_path / "other"
    for text in ("[]\n", "SQLite format 4\0" + 5000 * "x"):
        other.write_text(text)
        with pytest.raises(StoreError, match="not a posture file"):
            PostureStore(other, *hoap2)
        assert other.read_text() == text
    with PostureStore(tmp_path / "store.db", *hoap2) as store:
        other.write_text('{"kind": "robot", "format": 99}\n')
        with pytest.raises(StoreError, match="not a posture file"):
            store.load(other)
        saved = store.save(tmp_path / "saved.db")
        with closing(sqlite3.connect(saved)) as database, database:
            database.execute(
                "UPDATE records SET record = ? WHERE id = 0", (other.read_text(),)
            )
        with pytest.raises(StoreError, match="not a posture file of format 1"):
            store.load(saved)
    os.mkfifo(tmp_path / "pipe")
    for bad in (tmp_path, tmp_path / "pipe", "/dev/zero", "/proc/nowhere/x", "a\0b"):
        with pytest.raises(StoreError, match="cannot be used"):
            PostureStore(bad, *hoap2)


def test_no_infinite_number_is_kept(hoap2, path):
    with PostureStore(path, *hoap2) as store:
        bad = posture(hoap2[0], wrenches=np.full((2, 6), np.inf))
        with pytest.raises(StoreError, match="cannot be stored"):
            store.add(bad)
        short = Posture(np.zeros(3), np.zeros((2, 6)), np.zeros(3), np.full(3, np.nan))
        with pytest.raises(IdentificationError, match="expected 25 numbers"):
            store.add(short)
        with pytest.raises(StoreError, match="bias of a sensor must be finite"):
            store.set_bias(0, np.full(6, np.nan))
        assert store.postures == {}
