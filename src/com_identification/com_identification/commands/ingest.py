"""Identifies many bags into a record, on Dask's workers: each once, even if it is interrupted.

Workers read, hash and identify, the largest bags first, so that none is left for the end; only
this process writes to the record, one row a bag with its hash, so that a run which was stopped
continues where it was. Results that arrive together are written together. Failures are stored
with their reason.
"""

import hashlib
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from com_identification.commands.bag_inputs import read_files
from com_identification.commands.bag_results import make_record
from com_identification.commands.identify_arguments import parser
from com_identification.commands.rest_identification import Refusal, identify_recording
from com_identification.commands.robot_inputs import load_robot
from com_identification.exceptions import HealthError
from com_identification.health.records import (
    HealthDatabase,
    Record,
    hash_files,
    library,
)
from com_model.exceptions import ComModelError

_MARK = 8  # bytes
_ENDINGS = (".mcap", ".db3")


@dataclass(frozen=True)
class BagFile:
    """A recording on a file system: a folder with metadata.yaml, or a single file.

    Attributes:
        place: that was requested, path or URL.
        path: of the bag in its file system.
        stamp: changes when its files do.
        size: bytes.
    """

    place: str
    path: str
    stamp: str
    size: int = 0


@dataclass(frozen=True)
class IngestResult:
    """Result of a bag.

    Attributes:
        bag: that was read.
        data_hash: of its readings; see hash_files.
        record: as JSON; "" where there is none.
        reason: why there is none; "" where it was identified, or is known.
    """

    bag: BagFile
    data_hash: str
    record: str
    reason: str


def find_bags(places: Iterable[str]) -> list[BagFile]:
    """Lists all bags below paths and URLs.

    Args:
        places: paths and URLs.

    Raises:
        HealthError: a place cannot be read, or is empty.
    """
    bags: dict[str, BagFile] = {}
    for place in places:
        try:
            system, root = library("fsspec").core.url_to_fs(place)
            files = system.find(root, detail=True)
        except (OSError, ValueError, ImportError) as error:
            raise HealthError(f"{place}: {error}") from error
        if not files:
            raise HealthError(f"{place}: no such file or folder, or it is empty")
        folders = {
            name.rpartition("/")[0] for name in files if name.endswith("/metadata.yaml")
        }
        for name in files:
            bag = name.rpartition("/")[0]
            if bag not in folders:
                bag = name if name.endswith(_ENDINGS) else ""
            if bag and bag not in bags:
                own = [
                    (n, files[n])
                    for n in sorted(files)
                    if n == bag or n.startswith(f"{bag}/")
                ]
                text = [
                    f"{n} {i.get('size')} {i.get('mtime', i.get('ETag'))}"
                    for n, i in own
                ]
                stamp = hashlib.sha256("\n".join(text).encode()).hexdigest()[:32]
                size = sum(info.get("size") or 0 for _, info in own)
                bags[bag] = BagFile(place, bag, stamp, size)
    return list(bags.values())


def connect(**where: Any) -> Any:
    """A Dask client whose workers do not profile themselves.

    Their profiler lists the stacks of all threads 100 times a second; in Python 3.11 this waits
    for ever where the garbage collector meets a thread's local values on its way
    (python/cpython issue 106883).

    Args:
        where: of distributed.Client: an address, or a cluster's options.

    Returns:
        The distributed.Client, to be used with `with`.
    """
    distributed = library("distributed")
    library("dask").config.set({"distributed.worker.profile.enabled": False})
    return distributed.Client(**where)


def ingest(
    database: HealthDatabase,
    bags: Sequence[BagFile],
    words: Sequence[str],
    client: Any,
    retry: bool = False,
) -> Iterator[IngestResult]:
    """Identifies the bags that are not in the record yet; yields each when it is written.

    Args:
        database: the record.
        bags: those that were found.
        words: options of identify; "{folder}" is replaced by the name of the bag's folder.
        client: a dask.distributed.Client.
        retry: whether bags that failed before are tried again.
    """
    noted = [row for row in database.bags() if not (retry and row[3])]
    known, stamps = {row[2]: row[3] for row in noted}, {row[:2] for row in noted}
    marks = bytearray(b"".join(map(_mark, known)))
    new = [bag for bag in bags if (bag.path, bag.stamp) not in stamps]
    left = iter(sorted(new, key=lambda bag: -bag.size))
    # four tasks per worker are submitted at a time
    count = 4 * max(1, len(client.scheduler_info()["workers"]))
    done = library("distributed").as_completed()

    def submit(bag: BagFile | None) -> None:
        if bag is not None:
            future = client.submit(
                identify_one, bag, list(words), bytes(marks), pure=False
            )
            future.bag = bag
            done.add(future)

    for _ in range(count):
        submit(next(left, None))
    for futures in done.batches():
        results, records = [], []
        for future in futures:
            submit(
                next(left, None)
            )  # before the record is written, so that no worker waits for that
            error = future.exception() if future.status == "error" else None
            bag = future.bag
            result = (
                IngestResult(bag, f"? {bag.stamp}", "", repr(error))
                if error
                else future.result()
            )
            future.release()
            if result.data_hash in known:  # or read at the same time under another name
                result = replace(result, record="", reason=known[result.data_hash])
            elif result.record:
                records.append(Record.from_json(result.record))
            known[result.data_hash] = result.reason
            marks += _mark(result.data_hash)
            results.append(result)
        rows = [(r.bag.path, r.bag.stamp, r.data_hash, r.reason) for r in results]
        database.append_all(records, rows)
        yield from results


def _mark(data_hash: str) -> bytes:
    """A short stand-in for a hash, as tasks have to stay small when many bags are known."""
    return hashlib.sha256(data_hash.encode()).digest()[:_MARK]


def identify_one(bag: BagFile, words: Sequence[str], known: bytes) -> IngestResult:
    """Reads and identifies one bag; runs on a worker.

    Args:
        bag: to read.
        words: options of identify; see ingest.
        known: marks of the hashes of known bags, of which nothing is identified.
    """
    digest = f"? {bag.stamp}"
    with tempfile.TemporaryDirectory(prefix="com_health.") as folder:
        local = bag.path
        try:
            system, _ = library("fsspec").core.url_to_fs(bag.place)
            if "file" not in system.protocol:
                local = str(Path(folder) / Path(bag.path).name)
                system.get(bag.path, local, recursive=not bag.path.endswith(_ENDINGS))
            digest = hash_files(local)
            mark = _mark(digest)
            if any(known[i : i + _MARK] == mark for i in range(0, len(known), _MARK)):
                return IngestResult(bag, digest, "", "")
            named = [
                word.replace("{folder}", Path(bag.path).parent.name) for word in words
            ]
            arguments = parser().parse_args([local, *named])
            robot = load_robot(arguments)
            recording = read_files(robot, arguments)
            contents = identify_recording(
                robot, recording, arguments.ignore_wrench_check
            )
            record = make_record(contents, arguments.serial, digest, bag.path)
        except (ComModelError, OSError, Refusal) as error:
            return IngestResult(bag, digest, "", str(error).removeprefix(f"{local}: "))
    return IngestResult(bag, digest, record.to_json(), "")
