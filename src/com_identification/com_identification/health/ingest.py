"""Identifies many bags into a record, on Dask's workers: each once, whatever stops in between.

Workers read and identify; only this process writes to the record, one row a bag with its hash, so
that a run which was stopped goes on where it was. Failures are noted with their reason.
"""

import hashlib
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from com_identification.commands.bag_identification import Refusal, identify_recording
from com_identification.commands.bag_inputs import load_robot, read_files
from com_identification.commands.bag_results import make_record
from com_identification.commands.identify import parser
from com_identification.exceptions import HealthError
from com_identification.health.database import HealthDatabase, library
from com_identification.health.records import Record, hash_files
from com_model.exceptions import ComModelError

_OUTSTANDING = 4  # tasks a worker, that the scheduler knows at a time
_ENDINGS = (".mcap", ".db3")


@dataclass(frozen=True)
class BagFile:
    """A recording somewhere: a folder with metadata.yaml, or a file of its own."""

    place: str  # that was asked for, path or URL
    path: str  # of the bag in its file system
    stamp: str  # changes when its files do


@dataclass(frozen=True)
class Done:
    """What came of a bag."""

    bag: BagFile
    data_hash: str
    record: str  # as JSON; "" where there is none
    reason: str  # why; "" where it was identified, or is known


def find_bags(places: Iterable[str]) -> list[BagFile]:
    """Lists all bags below paths and URLs; HealthError where a place cannot be read."""
    bags: dict[str, BagFile] = {}
    for place in places:
        try:
            system, root = library("fsspec").core.url_to_fs(place)
            files = system.find(root, detail=True)
        except (OSError, ValueError, ImportError) as error:
            raise HealthError(f"{place}: {error}") from error
        if not files:
            raise HealthError(f"{place}: no such file or folder, or it is empty")
        folders = {name.rpartition("/")[0] for name in files if name.endswith("/metadata.yaml")}
        for name in files:
            bag = name.rpartition("/")[0]
            if bag not in folders:
                bag = name if name.endswith(_ENDINGS) else ""
            if bag and bag not in bags:
                own = [(n, files[n]) for n in sorted(files) if n == bag or n.startswith(f"{bag}/")]
                text = [f"{n} {i.get('size')} {i.get('mtime', i.get('ETag'))}" for n, i in own]
                stamp = hashlib.sha256("\n".join(text).encode()).hexdigest()[:32]
                bags[bag] = BagFile(place, bag, stamp)
    return list(bags.values())


def ingest(
    database: HealthDatabase,
    bags: Sequence[BagFile],
    words: Sequence[str],
    client: Any,
    retry: bool = False,
) -> Iterator[Done]:
    """Identifies the bags that are not in the record yet; yields each when it is written.

    words are options of identify, "{folder}" the name of the folder that has the bag; client is
    a dask.distributed.Client; with `retry` what failed before is tried again.
    """
    noted = [row for row in database.bags() if not (retry and row[3])]
    known, stamps = {row[2]: row[3] for row in noted}, {row[:2] for row in noted}
    left = iter([bag for bag in bags if (bag.path, bag.stamp) not in stamps])
    count = _OUTSTANDING * max(1, len(client.scheduler_info()["workers"]))
    done = library("distributed").as_completed()

    def submit(bag: BagFile | None) -> None:
        if bag is not None:
            future = client.submit(identify_one, bag, list(words), frozenset(known), pure=False)
            future.bag = bag
            done.add(future)

    for _ in range(count):
        submit(next(left, None))
    for future in done:
        error = future.exception() if future.status == "error" else None
        bag = future.bag
        result = Done(bag, f"? {bag.stamp}", "", repr(error)) if error else future.result()
        future.release()
        if result.data_hash in known:  # also: read at the same time under another name
            result = replace(result, record="", reason=known[result.data_hash])
        elif result.record:
            database.append(Record.from_json(result.record))
        database.note_bag(bag.path, bag.stamp, result.data_hash, result.reason)
        known[result.data_hash] = result.reason
        yield result
        submit(next(left, None))


def identify_one(bag: BagFile, words: Sequence[str], known: frozenset[str]) -> Done:
    """Reads and identifies one bag; runs on a worker."""
    digest = f"? {bag.stamp}"
    with tempfile.TemporaryDirectory(prefix="com_health.") as folder:
        try:
            system, _ = library("fsspec").core.url_to_fs(bag.place)
            local = bag.path
            if "file" not in system.protocol:
                local = str(Path(folder) / Path(bag.path).name)
                system.get(bag.path, local, recursive=not bag.path.endswith(_ENDINGS))
            digest = hash_files(local)
            if digest in known:
                return Done(bag, digest, "", "")
            named = [word.replace("{folder}", Path(bag.path).parent.name) for word in words]
            arguments = parser().parse_args([local, *named])
            robot = load_robot(arguments)
            recording = read_files(robot, arguments)
            contents = identify_recording(robot, recording, arguments.ignore_wrench_check)
            record = make_record(contents, arguments.serial, digest, bag.path)
        except (ComModelError, OSError, Refusal) as error:
            return Done(bag, digest, "", str(error))
    return Done(bag, digest, record.to_json(), "")
