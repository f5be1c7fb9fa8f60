"""Speed of the SESC against Pinocchio from Python: one configuration, and a batch of 100 000.

Single: one call from Python each that gives CoM and Jacobian, of the same shape:
  floating  `Sesc.com_and_jacobian(q, floating=True)`, (3, 6 + n) in the root's frame, against
            `pinocchio.jacobianCenterOfMass(model, data, q)` with a free-flyer at the root
  placed    the same with the root at a pose: `com_and_jacobian(q, R, p, floating=True)`
  fixed     `Sesc.com_and_jacobian(q)`, (3, n), against Pinocchio's model without free-flyer
Pinocchio's call returns the Jacobian alone; its CoM is then found in data.com[0].
Batch: `com_and_jacobian_batch(Q)` into new arrays, against a Python loop over Pinocchio's floating
call that keeps no result. Start-up: import and first result in a new process, with an empty and a
filled cache of compiled kernels.

Ours and Pinocchio's repeats alternate; figures are medians. Ratios are Pinocchio's time over ours.
The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from timeit import Timer

import numpy as np
import pinocchio
from example_robots import example_urdfs
from numpy.typing import NDArray
from oracles import PinocchioOracle, random_pose, random_positions
from rich.console import Console
from rich.table import Table

from com_model import RobotModel, Sesc

Array = NDArray[np.float64]
OWN = Path(__file__).resolve().parents[1] / "src" / "robot_descriptions" / "urdf"
HOAP2 = OWN / "hoap2.urdf"
ROBOTS = {
    "hoap2": "",
    "hoap3": "",  # [Cotton] finds its CoM every millisecond
    "icub": "icub_description/robots/icub.urdf",
    "talos": "talos_data/robots/talos_full_v2.urdf",
}
PAIRS = {
    "floating": "pinocchio floating",
    "placed": "pinocchio floating",
    "fixed": "pinocchio fixed",
}
CALLS = 2000  # per repeat
REPEATS = 41
BATCH = 100_000
LOOP = 5_000  # configurations of Pinocchio's loop: its time per configuration does not depend on it
START_UP = """
import sys, time
start = time.perf_counter()
from com_model import RobotModel, Sesc
model = RobotModel.from_file(sys.argv[1])
Sesc(model).com_and_jacobian(model.neutral)
print(time.perf_counter() - start)
"""


def seconds(call: Callable[[], object], calls: int = 1) -> float:
    """Time of one call, s, averaged over `calls`."""
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - start) / calls


def medians(
    calls: dict[str, Callable[[], object]], repeats: int, each: int
) -> dict[str, float]:
    """Median time of each call, s; the calls take turns, so that a slow spell meets all of them."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        seconds(call, each)
    for _ in range(repeats):
        for name, call in calls.items():
            times[name].append(seconds(call, each))
    return {name: statistics.median(values) for name, values in times.items()}


def single(model: RobotModel, path: Path, sesc: Sesc) -> dict[str, float]:
    """Times of one configuration, s."""
    rng = np.random.default_rng(0)
    q, (R, p) = random_positions(model, rng), random_pose(rng)
    names: dict[str, object] = {
        "sesc": sesc,
        "q": q,
        "R": R,
        "p": p,
        "pinocchio": pinocchio,
    }
    for kind in ("floating", "fixed"):
        oracle = PinocchioOracle(model, path, floating=kind == "floating")
        names[f"model_{kind}"], names[f"data_{kind}"] = oracle.model, oracle.data
        names[f"q_{kind}"] = oracle.positions(q, R, p)
    pinocchios = "pinocchio.jacobianCenterOfMass(model_{0}, data_{0}, q_{0})"
    statements = {
        "floating": "sesc.com_and_jacobian(q, floating=True)",
        "pinocchio floating": pinocchios.format("floating"),
        "placed": "sesc.com_and_jacobian(q, R, p, floating=True)",
        "fixed": "sesc.com_and_jacobian(q)",
        "pinocchio fixed": pinocchios.format("fixed"),
        "com": "sesc.com(q)",
    }
    times: dict[str, list[float]] = {name: [] for name in statements}
    timers = {name: Timer(text, globals=names) for name, text in statements.items()}
    for _ in range(REPEATS):
        for name, timer in timers.items():
            times[name].append(timer.timeit(CALLS) / CALLS)
    return {name: statistics.median(values[1:]) for name, values in times.items()}


def batch(model: RobotModel, oracle: PinocchioOracle, sesc: Sesc) -> dict[str, float]:
    """Times of a batch, s per configuration."""
    rng = np.random.default_rng(1)
    Q = np.array([random_positions(model, rng) for _ in range(1000)])
    Q = np.ascontiguousarray(np.tile(Q, (BATCH // len(Q), 1)))
    positions = [oracle.positions(q, np.eye(3), np.zeros(3)) for q in Q[:LOOP]]

    def loop() -> None:
        for position in positions:
            pinocchio.jacobianCenterOfMass(oracle.model, oracle.data, position)

    calls: dict[str, Callable[[], object]] = {
        "one": lambda: sesc.com_and_jacobian_batch(Q, threads=1),
        "pinocchio": loop,
        "two": lambda: sesc.com_and_jacobian_batch(Q, threads=2),
    }
    times = medians(calls, 9, 1)
    return {
        "one": times["one"] / BATCH,
        "two": times["two"] / BATCH,
        "pinocchio": times["pinocchio"] / LOOP,
    }


def start_up(urdf: Path, repeats: int = 3) -> tuple[float, float]:
    """Import and first result in a new process, s: with an empty cache, and with a filled one."""
    cold, cached = [], []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as cache:
            environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
            runs = [
                subprocess.run(
                    [sys.executable, "-c", START_UP, str(urdf)],
                    env=environment,
                    check=True,
                    capture_output=True,
                    text=True,
                )
                for _ in range(2)
            ]
        cold.append(float(runs[0].stdout))
        cached.append(float(runs[1].stdout))
    return statistics.median(cold), statistics.median(cached)


def show(
    singles: dict[str, dict[str, float]], batches: dict[str, dict[str, float]]
) -> None:
    """Prints a row a robot and kind of call."""
    one = Table(title="one CoM and Jacobian, microseconds")
    for heading in ("robot", "call", "ours", "Pinocchio", "ratio"):
        one.add_column(heading, justify="right")
    for robot, s in singles.items():
        for kind, theirs in PAIRS.items():
            pair = (
                f"{1e6 * s[kind]:.2f}",
                f"{1e6 * s[theirs]:.2f}",
                f"{s[theirs] / s[kind]:.2f}",
            )
            one.add_row(robot, kind, *pair)
        one.add_row(robot, "CoM only", f"{1e6 * s['com']:.2f}", "", "")
    many = Table(title=f"batch of {BATCH}, microseconds per configuration")
    for heading in ("robot", "1 thread", "2 threads", "Pinocchio", "ratio, 1 thread"):
        many.add_column(heading, justify="right")
    for robot, b in batches.items():
        cells = tuple(f"{1e6 * b[key]:.3f}" for key in ("one", "two", "pinocchio"))
        many.add_row(robot, *cells, f"{b['pinocchio'] / b['one']:.2f}")
    console = Console(width=100)
    console.print(one)
    console.print(many)


def main() -> None:
    """Measures all robots and prints the tables and the JSON line."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    urdfs = example_urdfs()
    singles, batches = {}, {}
    for robot, name in ROBOTS.items():
        path = urdfs[name] if name else OWN / f"{robot}.urdf"
        model = RobotModel.from_file(path)
        oracle, sesc = PinocchioOracle(model, path, floating=True), Sesc(model)
        singles[robot], batches[robot] = (
            single(model, path, sesc),
            batch(model, oracle, sesc),
        )
    show(singles, batches)
    cold, cached = start_up(HOAP2)

    def per_robot(value: Callable[[str], float], digits: int) -> dict[str, float]:
        return {robot: round(value(robot), digits) for robot in ROBOTS}

    def ratio(kind: str) -> dict[str, float]:
        return per_robot(lambda r: singles[r][PAIRS[kind]] / singles[r][kind], 2)

    summary = {
        "single_ratio": ratio("floating"),
        "single_placed_ratio": ratio("placed"),
        "single_fixed_ratio": ratio("fixed"),
        "batch_ratio_1thread": per_robot(
            lambda r: batches[r]["pinocchio"] / batches[r]["one"], 2
        ),
        "batch_ratio_2threads": per_robot(
            lambda r: batches[r]["pinocchio"] / batches[r]["two"], 2
        ),
        "single_us": per_robot(lambda r: 1e6 * singles[r]["floating"], 3),
        "single_us_pinocchio": per_robot(
            lambda r: 1e6 * singles[r][PAIRS["floating"]], 3
        ),
        "batch_us_1thread": per_robot(lambda r: 1e6 * batches[r]["one"], 4),
        "batch_us_2threads": per_robot(lambda r: 1e6 * batches[r]["two"], 4),
        "start_cold_s": round(cold, 3),
        "start_cached_s": round(cached, 3),
    }
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
