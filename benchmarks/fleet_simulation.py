"""Ten thousand bags into a record: what com_health ingest itself costs, with identification asleep.

Ingestion, Dask's scheduler and the database are those that a fleet has; in place of identifying a
bag, a worker sleeps as long as that takes and returns the record of a real one under another hash.
All workers are threads of this process, which therefore does more than with workers elsewhere.
Halfway the run is stopped, and a second one continues.

bags, workers, bag_s  how many, by so many at a time, how long a worker sleeps for each
fraction              of the rate that so many workers would reach if nothing but them took time
bags_per_minute       of both runs
cpu_ms                of this process for a bag: scheduling, workers, database
first_ms, last_ms     the same of the first and the last tenth: whether it grows with the record
record_mb, peak_mb    size of the SQLite file, largest resident set
records, twice        in the record afterwards; bags that are in it more than once

The last line is one JSON object.
"""

from __future__ import annotations

import com_identification.nodes  # noqa: F401  (one thread, before anything loads numpy)

# isort: split
import argparse
import hashlib
import json
import logging
import tempfile
import time
from collections.abc import Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

from fleet import WORDS, make_bags, peak

from com_identification.commands.ingest import (
    BagFile,
    IngestResult,
    connect,
    find_bags,
    identify_one,
    ingest,
)
from com_identification.health.records import HealthDatabase

BAG_S = 0.44  # s, of CPU time that identifying a bag of fleet.py takes
EXAMPLE: list[IngestResult] = []  # of this process, whose threads are the workers


class Sleepers:
    """A Dask client whose tasks sleep instead of identifying."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def scheduler_info(self) -> dict[str, Any]:
        """Workers, as ingest asks for them."""
        return dict(self.client.scheduler_info(n_workers=-1))

    def submit(
        self, _: Any, bag: BagFile, __: Sequence[str], known: bytes, pure: bool
    ) -> Any:
        """In place of identify_one, which gets the same arguments."""
        return self.client.submit(sleep, bag, known, pure=pure)


def sleep(bag: BagFile, _: bytes) -> IngestResult:
    """Sleeps; returns the record of the example under a hash of its own."""
    time.sleep(BAG_S)
    digest = hashlib.sha256(bag.path.encode()).hexdigest()
    return IngestResult(
        bag, digest, EXAMPLE[0].record.replace(EXAMPLE[0].data_hash, digest), ""
    )


def example(folder: Path) -> IngestResult:
    """The record of one real bag."""
    make_bags(folder, 1)
    (bag,) = find_bags([str(folder)])
    return identify_one(bag, WORDS, b"")


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bags", type=int, default=10_000, help="how many")
    parser.add_argument("--workers", type=int, default=24, help="how many at a time")
    options = parser.parse_args()
    count, tenth = options.bags, options.bags // 10
    bags = [BagFile("fleet", f"robot{i % 50}/bag{i}", f"{i}", 1) for i in range(count)]
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "bag").mkdir()
        EXAMPLE[:] = [example(Path(name) / "bag")]
        record = Path(name) / "robots.db"
        with connect(
            processes=False,
            n_workers=options.workers,
            threads_per_worker=1,
            memory_limit=0,  # Dask takes the memory of this process for each worker's
            dashboard_address=None,
            silence_logs=logging.ERROR,
        ) as client:
            sleepers = Sleepers(client)
            # CPU time after each bag
            start, marks = time.monotonic(), [time.process_time()]
            for part in (count // 2, None):
                database = HealthDatabase(record, create=True)
                for _ in islice(ingest(database, bags, WORDS, sleepers), part):
                    marks.append(time.process_time())
                print(
                    f"{len(marks) - 1} bags after {time.monotonic() - start:.0f} s",
                    flush=True,
                )
            minutes = (time.monotonic() - start) / 60.0
            rows = database.bags()
        size = record.stat().st_size / 2**20
    rate, cpu = count / minutes, [1e3 * (b - a) for a, b in pairwise(marks)]
    summary = {
        "bags": count,
        "workers": options.workers,
        "bag_s": BAG_S,
        "bags_per_minute": round(rate),
        "fraction": round(rate * BAG_S / 60.0 / options.workers, 2),
        "cpu_ms": round(sum(cpu) / len(cpu), 1),
        "first_ms": round(sum(cpu[:tenth]) / tenth, 1),
        "last_ms": round(sum(cpu[-tenth:]) / tenth, 1),
        "record_mb": round(size),
        "peak_mb": round(peak() / 1024.0),
        "records": len({row[2] for row in rows}),
        "twice": len(rows) - len({row[2] for row in rows}),
    }
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
