"""Many bags into a record: each once, failures with their reason, resumable."""

import shutil

import pytest

from com_identification.commands.com_health import main
from com_identification.health.database import HealthDatabase

pytestmark = pytest.mark.slow
distributed = pytest.importorskip("distributed")
pytest.importorskip("fsspec")


@pytest.fixture(scope="module")
def client():
    """Workers that are threads, which start at once."""
    with distributed.Client(
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
    from com_identification.health.ingest import find_bags, ingest

    bags = find_bags([str(folder), f"file://{folder}"])
    names = sorted(bag.path.removeprefix(f"{folder}/") for bag in bags)
    assert names == ["a/walk", "b/again", "broken.mcap", "copied.mcap"]
    database = HealthDatabase(tmp_path / "robots.db", create=True)
    words = [*map(str, robot), "--serial", "{folder}"]
    begun = ingest(database, bags, words, client)
    first = next(begun)  # stopped after one
    begun.close()
    rest = list(ingest(database, bags, words, client))
    assert {first.bag, *(done.bag for done in rest)} == set(bags)
    assert len(rest) == 3
    failed = {done.bag for done in (first, *rest) if done.reason}
    assert {bag.path.removeprefix(f"{folder}/") for bag in failed} == {"broken.mcap", "copied.mcap"}
    (found,) = database.records()
    assert found.serial in ("a", "b")
    assert list(ingest(database, bags, words, client)) == []
    again = ingest(database, bags, words, client, retry=True)
    assert {done.bag for done in again} == failed


def test_the_command(folder, client, robot, tmp_path, capsys):
    record = str(tmp_path / "robots.db")
    address = client.scheduler.address
    shutil.rmtree(folder / "b")
    status = main(["ingest", record, str(folder), "--scheduler", address, "--", *map(str, robot)])
    said = capsys.readouterr()
    assert status == 1
    assert "3 bags: 0 known before, 1 identified, 2 failed" in said.out
    assert "broken.mcap: " in said.err
    assert main(["ingest", record, str(tmp_path / "nothing"), "--scheduler", address]) == 2
    assert "no such file or folder" in capsys.readouterr().err
