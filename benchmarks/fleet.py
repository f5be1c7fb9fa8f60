"""Many bags into a record: how fast com_health ingest is with one worker and with two.

Bags of the three-link biped, 20 postures in 50 s at 100 Hz, written once and copied with another
note beside them, so that each has a hash of its own; every twentieth is broken. Workers are
processes of Dask on this machine, with their libraries loaded before the time starts.

bags_per_minute   by number of workers; ratio is that of two over that of one
cpu_ms            CPU time a bag of the workers, and of the process that writes the record and runs
                  Dask's scheduler; unlike wall time it hardly depends on what else the machine does
ratio_by_cpu      two workers over one by these alone, on two cores: with bags of one size the last
                  one may run alone, and what the first process needs is taken from a worker. If
                  `ratio` is much less, something waits (disk, start-up, other programs)
failed            broken bags that were noted as failed, of broken
peak_mb           largest resident set of a worker
write_ms, task_ms what a bag costs the process that writes the record, if it is written alone (those
                  that are ready at the same time are written at once, for less), and Dask's
                  scheduler without any work in the task, with the marks of 10 000 known bags; they
                  bound the number of workers that one scheduler and one SQLite file can serve
of_10000          from these: hours with two workers, size of the record, and workers above which
                  writing and scheduling are slower than identifying. Computed, not run

--bags N (20; 200 is the published table). The last line is one JSON object.
"""

from __future__ import annotations

import com_identification.nodes  # noqa: F401  (one thread, before anything loads numpy)

# isort: split
import argparse
import json
import logging
import math
import resource
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from identification_bags import BagWriter, Scene, Tour, samples

from com_identification.commands.ingest import (
    BagFile,
    connect,
    find_bags,
    identify_one,
    ingest,
)
from com_identification.health.records import HealthDatabase, Record

ROOT = Path(__file__).resolve().parent.parent / "src/robot_descriptions"
WORDS = ["--robot", "biped3"]
BROKEN = 20
TASKS, WRITES = 300, 50


def make_bags(folder: Path, count: int) -> int:
    """Writes bags; returns how many are broken."""
    scene = Scene(ROOT / "urdf/biped3.urdf", ROOT / "config/biped3.yaml")
    tour = Tour(rate=100.0, still=2.0, moving=0.5)
    with BagWriter(folder / "bag0", scene) as writer:
        for block in samples(scene, scene.postures(20), tour):
            writer.write(block)
    broken = 0
    for i in range(1, count):
        place = folder / f"bag{i}"
        shutil.copytree(folder / "bag0", place)
        (place / "note.txt").write_text(str(i))
        if i % BROKEN == BROKEN // 2:
            broken += 1
            for data in place.glob("*.mcap"):
                data.write_bytes(data.read_bytes()[:1000])
    return broken


def peak() -> int:
    """Largest resident set of this process, kB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@dataclass(frozen=True)
class Run:
    """All bags by some workers: a minute, failed, MB of the largest worker, CPU s, records."""

    rate: float
    failed: int
    largest: float
    workers_cpu: float
    parent_cpu: float
    records: list[Record]


def run(bags: list[BagFile], workers: int, record: Path) -> Run:
    """Identifies all bags."""
    with connect(
        n_workers=workers,
        threads_per_worker=1,
        memory_limit="2GB",
        dashboard_address=None,
        silence_logs=logging.ERROR,
    ) as client:
        warm = [
            client.submit(identify_one, bags[0], WORDS, b"", workers=[w], pure=False)
            for w in client.scheduler_info()["workers"]
        ]
        client.gather(warm)
        database = HealthDatabase(record, create=True)
        before = sum(client.run(time.process_time).values())
        start, cpu = time.monotonic(), time.process_time()
        failed = sum(
            bool(done.reason) for done in ingest(database, bags, WORDS, client)
        )
        minutes, cpu = (time.monotonic() - start) / 60.0, time.process_time() - cpu
        workers_cpu = sum(client.run(time.process_time).values()) - before
        largest = max(client.run(peak).values()) / 1024.0
    return Run(
        len(bags) / minutes, failed, largest, workers_cpu, cpu, database.records()
    )


def ratio_by_cpu(runs: dict[str, Run], bags: int) -> float:
    """Two workers over one on two cores, if nothing waits."""
    each = runs["2"].workers_cpu / bags
    alone = max(runs["1"].workers_cpu, runs["1"].parent_cpu)
    both = max(
        math.ceil(bags / 2) * each, (runs["2"].workers_cpu + runs["2"].parent_cpu) / 2.0
    )
    return alone / both


def costs(record: Record, folder: Path) -> tuple[float, float]:
    """Writing a bag to the record, and a task without work, ms."""
    database = HealthDatabase(folder / "writes.db", create=True)
    start = time.monotonic()
    for i in range(WRITES):
        text = record.to_json().replace(record.data_hash, f"{i:064d}")
        row = (f"bag{i}", "stamp", f"{i:064d}", "")
        database.append_all([Record.from_json(text)], [row])
    writes = (time.monotonic() - start) / WRITES
    with connect(
        n_workers=1,
        threads_per_worker=1,
        dashboard_address=None,
        silence_logs=logging.ERROR,
    ) as client:
        client.submit(peak).result()
        start = time.monotonic()
        known = bytes(8 * 10_000)
        client.gather([client.submit(len, known, pure=False) for _ in range(TASKS)])
        tasks = (time.monotonic() - start) / TASKS
    return 1e3 * writes, 1e3 * tasks


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bags", type=int, default=20, help="how many")
    count = parser.parse_args().bags
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "bags").mkdir()
        broken = make_bags(folder / "bags", count)
        bags = find_bags([str(folder / "bags")])
        runs = {str(n): run(bags, n, folder / f"{n}.db") for n in (1, 2)}
        for n, found in runs.items():
            print(
                f"{n} workers: {found.rate:.1f} bags a minute, {found.failed} failed",
                flush=True,
            )
        records = runs["2"].records
        write_ms, task_ms = costs(records[0], folder)
        size = len(records[0].to_json())
    rates = {n: round(found.rate, 2) for n, found in runs.items()}
    ratio = rates["2"] / rates["1"]
    cpu = {"worker": runs["1"].workers_cpu, "parent": runs["1"].parent_cpu}
    summary = {
        "bags": count,
        "bags_per_minute": rates,
        "ratio": round(ratio, 2),
        "cpu_ms": {part: round(1e3 * seconds / count) for part, seconds in cpu.items()},
        "ratio_by_cpu": round(ratio_by_cpu(runs, len(records)), 2),
        "failed": runs["2"].failed,
        "broken": broken,
        "identified": len(records),
        "peak_mb": round(max(found.largest for found in runs.values())),
        "write_ms": round(write_ms, 2),
        "task_ms": round(task_ms, 2),
        "of_10000": {
            "hours_2_workers": round(10_000 / rates["2"] / 60.0, 2),
            "record_mb": round(10_000 * size / 2**20),
            "most_workers": round(6e4 / rates["1"] / (write_ms + task_ms)),
        },
    }
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
