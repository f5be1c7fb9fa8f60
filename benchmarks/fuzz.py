"""Mutated files for every reader of the suite, within bounds of time and memory.

Of valid files (bags, marks, posture stores, URDFs, configurations, motions) bytes, lines, numbers,
texts and lengths are changed. A reader may refuse a file by the one error of its package, with a
message of at most 500 characters. Counted are leaks (other exceptions, long messages), hangs (above
30 s) and the peak memory of a process. Each input follows from the seed and its number:
--reader NAME --only NUMBER runs one again.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

# the harness is no package
sys.path.append(str(Path(__file__).resolve().parents[1] / "tools/robustness"))

SEED = 13
FULL = 100_000  # inputs
SECONDS = 420.0  # of a default run, without building what the readers need
HANG_S = 30.0
MAX_MB = 4096  # address space of a worker
ROUND = 20  # inputs of a reader before the next one's turn
SHOWN = 3  # leaks of one kind


@dataclass
class Tally:
    """Counts of one reader."""

    inputs: int = 0
    refused: int = 0
    leaks: int = 0
    hangs: int = 0
    longest_s: float = 0.0
    slowest: int = -1
    peak_mb: float = 0.0
    kinds: dict[str, list[int]] = field(default_factory=dict)


def main() -> int:
    """Runs it; the last line is JSON."""
    arguments = _parser().parse_args()
    if arguments.only is not None:
        return _run_one(arguments.reader, arguments.only)
    folder = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 (quick)
    with tempfile.TemporaryDirectory(prefix="fuzz.", dir=folder) as top:
        tallies = _run(arguments, Path(top))
    _print(tallies)
    total = {
        "inputs": sum(t.inputs for t in tallies.values()),
        "leaks": sum(t.leaks for t in tallies.values()),
        "hangs": sum(t.hangs for t in tallies.values()),
        "peak_mb": round(max(t.peak_mb for t in tallies.values())),
    }
    names = ("inputs", "refused", "leaks", "hangs")
    by_reader = {
        name: {key: getattr(tally, key) for key in names}
        | {"longest_s": round(tally.longest_s, 2), "peak_mb": round(tally.peak_mb)}
        for name, tally in tallies.items()
    }
    print(json.dumps({**total, "full": arguments.full, "readers": by_reader}))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--full", action="store_true", help=f"{FULL} inputs, however long it takes"
    )
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, help="of a run that is not full"
    )
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--reader", default="", help="only this one")
    parser.add_argument(
        "--only", type=int, help="one input, in this process, errors and all"
    )
    return parser


# --- workers -----------------------------------------------------------------------------------
def _work(
    sender: Connection,
    folder: Path,
    plan: list[tuple[str, int, int]],
    process: int,
    step: int,
) -> None:
    """Reads the inputs of a plan whose number is `process` modulo `step`, in rounds."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    warnings.simplefilter("ignore")
    from fuzz_readers import readers

    by_name = {reader.name: reader for reader in readers()}
    limit = MAX_MB * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    for name, number in _order(plan):
        if number % step == process:
            sender.send(("begin", name, number))
            begin = time.monotonic()
            result = _read(by_name[name], number, folder)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
            sender.send(("end", result, time.monotonic() - begin, peak))
    sender.send(None)


def _order(plan: list[tuple[str, int, int]]) -> Iterator[tuple[str, int]]:
    """All inputs, the readers in turn, so that each has had its part whenever the run ends."""
    rounds = max(-(-(end - start) // ROUND) for _, start, end in plan)
    for k in range(rounds):
        for name, start, end in plan:
            size = -(-(end - start) // rounds)
            for number in range(start + k * size, min(start + (k + 1) * size, end)):
                yield name, number


def _read(reader: Any, number: int, folder: Path) -> tuple[str, str]:
    """Reads one input; returns "ok", "refused" or "leak", and the leak."""
    from fuzz_readers import check_length

    rng = np.random.default_rng([SEED, *reader.name.encode(), number])
    part = folder / "input"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    path = reader.write(part, rng)
    try:
        reader.read(path)
    except reader.errors as error:
        try:
            check_length(str(error))
        except Exception as long:
            return "leak", _kind(long, error)
        return "refused", ""
    except BaseException as error:
        return "leak", _kind(error, error)
    return "ok", ""


def _kind(error: BaseException, origin: BaseException) -> str:
    """An exception with the places that it came through, by which leaks are distinguished."""
    frames = traceback.extract_tb(origin.__traceback__)[-3:]
    places = " < ".join(f"{Path(f.filename).name}:{f.lineno}" for f in reversed(frames))
    text = "" if error is not origin else f": {str(error)[:100]!r}"
    return f"{type(error).__name__} at {places}{text}"


def _run_one(name: str, number: int) -> int:
    from fuzz_readers import check_length, readers

    (reader,) = [reader for reader in readers() if reader.name == name]
    folder = Path(tempfile.mkdtemp(prefix="fuzz."))
    path = reader.write(folder, np.random.default_rng([SEED, *name.encode(), number]))
    print(f"the input is {path}")
    try:
        reader.read(path)
    except reader.errors as error:
        print(f"refused: {error}")
        check_length(str(error))
    return 0


# --- the parent --------------------------------------------------------------------------------
class _Worker:
    """A process with its present input; one that hangs is replaced."""

    def __init__(
        self, folder: Path, plan: list[tuple[str, int, int]], k: int, step: int
    ) -> None:
        self.folder, self.plan, self.k, self.step = folder / str(k), plan, k, step
        self.done: set[tuple[str, int]] = set()
        self.start()

    def start(self) -> None:
        """Starts the process, after the inputs that were read."""
        self.folder.mkdir(exist_ok=True)
        context = multiprocessing.get_context("spawn")
        self.receiver, sender = context.Pipe(duplex=False)
        skip = [
            (name, max([start, *(n + 1 for of, n in self.done if of == name)]), end)
            for name, start, end in self.plan
        ]
        args = (
            sender,
            self.folder,
            [p for p in skip if p[1] < p[2]],
            self.k,
            self.step,
        )
        self.process = context.Process(target=_work, args=args, daemon=True)
        self.process.start()
        sender.close()
        self.current: tuple[str, int] | None = None
        self.began = time.monotonic()


def _run(arguments: argparse.Namespace, top: Path) -> dict[str, Tally]:
    from fuzz_readers import readers

    chosen = [r for r in readers() if arguments.reader in ("", r.name)]
    for reader in chosen:
        reader.check_seeds(top / "seeds")
    if not chosen:
        sys.exit(f"no reader {arguments.reader!r}")
    weights = sum(reader.weight for reader in chosen)
    plan = [(r.name, 0, -int(-FULL * r.weight // weights)) for r in chosen]
    tallies = {reader.name: Tally() for reader in chosen}
    workers = [
        _Worker(top, plan, k, arguments.processes) for k in range(arguments.processes)
    ]
    deadline = time.monotonic() + (
        float("inf") if arguments.full else arguments.seconds
    )
    with Console(stderr=True).status("reading") as status:
        while workers and time.monotonic() < deadline:
            ready = wait([worker.receiver for worker in workers], 1.0)
            for worker in list(workers):
                if worker.receiver in ready and not _receive(worker, tallies):
                    workers.remove(worker)
                elif worker.current and time.monotonic() - worker.began > HANG_S:
                    _hang(worker, tallies)
            status.update(f"{sum(t.inputs for t in tallies.values())} inputs")
    for worker in workers:
        worker.process.kill()
        worker.process.join()
    return tallies


def _receive(worker: _Worker, tallies: dict[str, Tally]) -> bool:
    """Takes what a worker sends; False at its end."""
    try:
        while worker.receiver.poll():
            message = worker.receiver.recv()
            if message is None:
                return False
            if message[0] == "begin":
                worker.current, worker.began = message[1:], time.monotonic()
                continue
            assert worker.current is not None
            name, number = worker.current
            worker.done.add(worker.current)
            worker.current = None
            _, (what, kind), seconds, peak = message
            tally = tallies[name]
            tally.inputs += 1
            if seconds > tally.longest_s:
                tally.longest_s, tally.slowest = seconds, number
            tally.peak_mb = max(tally.peak_mb, peak)
            tally.refused += what == "refused"
            if what == "leak":
                tally.leaks += 1
                tally.kinds.setdefault(kind, []).append(number)
    except EOFError:
        if worker.current is None:
            return False
        _replace(worker, tallies, "the process died")
    return True


def _hang(worker: _Worker, tallies: dict[str, Tally]) -> None:
    assert worker.current is not None
    tallies[worker.current[0]].hangs += 1
    _replace(worker, tallies, f"above {HANG_S:g} s")


def _replace(worker: _Worker, tallies: dict[str, Tally], why: str) -> None:
    """Kills a worker whose input went wrong, and goes on with the next one."""
    assert worker.current is not None
    name, number = worker.current
    tally = tallies[name]
    tally.inputs += 1
    tally.leaks += why == "the process died"
    tally.kinds.setdefault(why, []).append(number)
    worker.done.add(worker.current)
    worker.process.kill()
    worker.process.join()
    worker.start()


def _print(tallies: dict[str, Tally]) -> None:
    print(
        f"{'reader':14}{'inputs':>8}{'refused':>9}{'leaks':>7}{'hangs':>7}{'s':>7}{'slowest':>9}{'MB':>7}"
    )
    for name, t in tallies.items():
        print(
            f"{name:14}{t.inputs:8}{t.refused:9}{t.leaks:7}{t.hangs:7}{t.longest_s:7.1f}"
            f"{t.slowest:9}{t.peak_mb:7.0f}"
        )
    for name, t in tallies.items():
        for kind, numbers in sorted(t.kinds.items()):
            print(f"{name}: {kind}: {len(numbers)} inputs, {numbers[:SHOWN]}")


if __name__ == "__main__":
    raise SystemExit(main())
