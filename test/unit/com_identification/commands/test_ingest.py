"""Many bags into a record: each once, failures with their reason, resumable."""

import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from com_identification.commands.com_health import main
from com_identification.health.records import HealthDatabase

pytestmark = pytest.mark.slow
pytest.importorskip("fsspec")


@pytest.fixture(scope="module")
def client():
    """Workers that are threads, which start at once."""
    pytest.importorskip("distributed")  # here: it takes half a second to import
    from com_identification.commands.ingest import connect

    with connect(
        processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None
    ) as started:
        yield started


@pytest.fixture
def folder(recording, tmp_path):
    """Four bags, two of them the same, the other two the same broken one."""
    for name in ("a/walk", "b/again"):
        shutil.copytree(recording("biped"), tmp_path / "logs" / name)
    for name in ("broken", "copied"):
        (tmp_path / f"logs/{name}.mcap").write_bytes(b"no bag")
    (tmp_path / "logs/notes.txt").write_text("no bag either")
    return tmp_path / "logs"


def test_each_bag_once_and_failures_with_their_reason(folder, client, robot, tmp_path):
    from com_identification.commands.ingest import find_bags, ingest

    bags = find_bags([str(folder), f"file://{folder}"])
    names = sorted(bag.path.removeprefix(f"{folder}/") for bag in bags)
    assert names == ["a/walk", "b/again", "broken.mcap", "copied.mcap"]
    database = HealthDatabase(tmp_path / "robots.db", create=True)
    words = [*map(str, robot), "--serial", "{folder}"]
    begun = ingest(database, bags, words, client)
    first = next(begun)  # stopped when some are written
    begun.close()
    written = {row[0] for row in database.bags()}
    assert first.bag.path in written
    rest = list(ingest(database, bags, words, client))
    assert sorted([*written, *(done.bag.path for done in rest)]) == sorted(
        b.path for b in bags
    )
    failed = {bag for bag in bags if bag.path.endswith(".mcap")}
    assert {row[0] for row in database.bags() if row[3]} == {bag.path for bag in failed}
    (found,) = database.records()
    assert found.serial in ("a", "b")
    assert list(ingest(database, bags, words, client)) == []
    again = ingest(database, bags, words, client, retry=True)
    assert {done.bag for done in again} == failed


class Spy:
    """A client of Dask that notes which bags are given to it."""

    def __init__(self, client):
        self.client, self.bags = client, []

    def scheduler_info(self):
        return self.client.scheduler_info()

    def submit(self, function, bag, *rest, **options):
        self.bags.append((bag, sum(map(len, rest[1:]))))
        return self.client.submit(function, bag, *rest, **options)


def test_large_bags_come_first_and_a_task_stays_small(folder, client, robot, tmp_path):
    from com_identification.commands.ingest import find_bags, ingest

    for i in range(6):
        (folder / f"more{i}.mcap").write_bytes(bytes(100 * (i + 1)))
    bags, spy = find_bags([str(folder)]), Spy(client)
    database = HealthDatabase(tmp_path / "robots.db", create=True)
    done = list(ingest(database, bags, [*map(str, robot)], spy))
    assert len(done) == len(bags)
    sizes = [bag.size for bag, _ in spy.bags]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == len(b"no bag")
    assert sizes[0] > 10_000
    assert spy.bags[0][1] == 0  # nothing is known
    assert max(known for _, known in spy.bags) <= 8 * len(bags)  # bytes


def test_copies_are_not_identified_again(folder, client, robot, tmp_path):
    from com_identification.commands.ingest import (
        BagFile,
        find_bags,
        identify_one,
        ingest,
    )

    database = HealthDatabase(tmp_path / "robots.db", create=True)
    words = [*map(str, robot)]
    (first,) = ingest(database, find_bags([str(folder / "a")]), words, client)
    spy = Spy(client)
    (second,) = ingest(database, find_bags([str(folder / "b")]), words, spy)
    assert (second.record, second.reason, second.data_hash) == ("", "", first.data_hash)
    assert spy.bags[0][1] == 8
    assert len(database.records()) == 1
    lost = identify_one(
        BagFile(str(folder), str(folder / "none.mcap"), "s"), words, b""
    )
    assert "none.mcap" in lost.reason


def test_bags_of_another_file_system_are_fetched(folder, client, robot, tmp_path):
    """One that is in this process stands for S3 and the like."""
    from com_identification.commands.ingest import find_bags, ingest

    memory = pytest.importorskip("fsspec").filesystem("memory")
    memory.put(f"{folder}/a", "/logs/", recursive=True)
    memory.put(f"{folder}/broken.mcap", "/logs/broken.mcap")
    bags = find_bags(["memory://logs"])
    assert sorted(bag.path for bag in bags) == ["/logs/a/walk", "/logs/broken.mcap"]
    database = HealthDatabase(tmp_path / "robots.db", create=True)
    words = [*map(str, robot), "--serial", "{folder}"]
    reasons = {
        done.bag.path: done.reason for done in ingest(database, bags, words, client)
    }
    assert reasons["/logs/a/walk"] == ""
    assert reasons["/logs/broken.mcap"].startswith(
        "is "
    )  # without the path of the copy
    (found,) = database.records()
    assert (found.serial, found.path) == ("a", "/logs/a/walk")
    local = find_bags(
        [str(folder / "a")]
    )  # the same readings here: known by their hash
    assert [done.record for done in ingest(database, local, words, client)] == [""]
    memory.rm("/logs", recursive=True)


def test_killed_in_the_middle_it_goes_on_where_it_was(
    recording, client, robot, tmp_path
):
    for i in range(8):
        copy = shutil.copytree(recording("biped"), tmp_path / "logs" / f"bag{i}")
        (copy / "note.txt").write_text(str(i))
    path = tmp_path / "robots.db"
    words = ["ingest", path, tmp_path / "logs", "--workers", "1", "--", *robot]
    program = (
        "import com_identification.commands.com_health as c; raise SystemExit(c.main())"
    )
    command = [sys.executable, "-c", program, *map(str, words)]
    with subprocess.Popen(command) as running:
        limit = time.monotonic() + 200.0
        while not (path.exists() and HealthDatabase(path, create=True).bags()):
            assert running.poll() is None
            assert time.monotonic() < limit
            time.sleep(0.02)
        os.kill(running.pid, signal.SIGKILL)
    assert running.returncode == -signal.SIGKILL
    before = HealthDatabase(path).bags()
    assert 1 <= len(before) < 8
    assert len(HealthDatabase(path).records()) == len(before)
    rest = [*words[: words.index("--workers")], "--scheduler", client.scheduler.address]
    assert main([*map(str, rest), "--", *map(str, robot)]) == 0
    database = HealthDatabase(path)
    assert len({row[2] for row in database.bags()}) == len(database.bags()) == 8
    assert set(before) <= set(database.bags())
    assert {r.data_hash for r in database.records()} == {
        row[2] for row in database.bags()
    }
    assert len(database.records()) == 8


def test_the_command(folder, client, robot, tmp_path, capsys):
    record = str(tmp_path / "robots.db")
    address = client.scheduler.address
    shutil.rmtree(folder / "b")
    status = main(
        ["ingest", record, str(folder), "--scheduler", address, "--", *map(str, robot)]
    )
    said = capsys.readouterr()
    assert status == 1
    assert "3 bags: 0 known before, 1 identified, 2 failed" in said.out
    assert "broken.mcap: " in said.err
    assert (
        main(["ingest", record, str(tmp_path / "nothing"), "--scheduler", address]) == 2
    )
    assert "no such file or folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [["--bogus", "3"], ["--robot", "r.urdf", "--mass", "much"]]
)
def test_a_wrong_option_ends_the_command_and_no_worker(folder, tmp_path, capsys, words):
    with pytest.raises(SystemExit) as ended:
        main(
            [
                "ingest",
                str(tmp_path / "robots.db"),
                str(folder),
                "--scheduler",
                "x",
                "--",
                *words,
            ]
        )
    assert ended.value.code == 2
    assert "error: " in capsys.readouterr().err
    assert not (tmp_path / "robots.db").exists()
