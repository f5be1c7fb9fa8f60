"""Speed of the SESC against Pinocchio from Python: one configuration, and a batch of 100 000.

Single: `Sesc.com_and_jacobian(q)` against `pinocchio.jacobianCenterOfMass(model, data, q)`, one
call from Python each, CoM and Jacobian of all joints; Pinocchio's has the floating base's columns,
too. `single_floating_ratio` is the same for `com_and_floating_jacobian(q, R, p)`, which has them.
Batch: `com_and_jacobian_batch(Q)` against a Python loop over Pinocchio. Start-up: import and first
result in a new process, with an empty and a filled cache of compiled kernels.

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

import numpy as np
import pinocchio
from numpy.typing import NDArray
from oracles import PinocchioOracle, example_urdfs, random_pose, random_positions
from rich.console import Console
from rich.table import Table

from com_model import RobotModel, Sesc

Array = NDArray[np.float64]
HOAP2 = Path(__file__).resolve().parents[1] / "src" / "robot_descriptions" / "urdf" / "hoap2.urdf"
ROBOTS = {
    "hoap2": "",
    "icub": "icub_description/robots/icub.urdf",
    "talos": "talos_data/robots/talos_full_v2.urdf",
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


def medians(calls: dict[str, Callable[[], object]], repeats: int, each: int) -> dict[str, float]:
    """Median time of each call, s; the calls take turns, so that a slow spell meets all of them."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        seconds(call, each)
    for _ in range(repeats):
        for name, call in calls.items():
            times[name].append(seconds(call, each))
    return {name: statistics.median(values) for name, values in times.items()}


def single(model: RobotModel, oracle: PinocchioOracle, sesc: Sesc) -> dict[str, float]:
    """Times of one configuration, s."""
    rng = np.random.default_rng(0)
    q, (R, p) = random_positions(model, rng), random_pose(rng)
    position = oracle.positions(q, R, p)
    calls = {
        "ours": lambda: sesc.com_and_jacobian(q),
        "pinocchio": lambda: pinocchio.jacobianCenterOfMass(oracle.model, oracle.data, position),
        "floating": lambda: sesc.com_and_floating_jacobian(q, R, p),
        "com": lambda: sesc.com(q),
    }
    return medians(calls, REPEATS, CALLS)


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


def show(singles: dict[str, dict[str, float]], batches: dict[str, dict[str, float]]) -> None:
    """Prints a row a robot."""
    table = Table(title="CoM and Jacobian, microseconds per configuration")
    for heading in (
        *("robot", "single", "floating", "CoM only", "Pinocchio", "ratio"),
        *("batch, 1 thread", "2 threads", "Pinocchio loop", "ratio, 1 thread"),
    ):
        table.add_column(heading, justify="right")
    for robot, s in singles.items():
        b = batches[robot]
        cells = [s["ours"], s["floating"], s["com"], s["pinocchio"]]
        more = [b["one"], b["two"], b["pinocchio"]]
        table.add_row(
            robot,
            *(f"{1e6 * cell:.2f}" for cell in cells),
            f"{s['pinocchio'] / s['ours']:.2f}",
            *(f"{1e6 * cell:.3f}" for cell in more),
            f"{b['pinocchio'] / b['one']:.2f}",
        )
    Console(width=140).print(table)


def main() -> None:
    """Measures all robots and prints the table and the JSON line."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    urdfs = example_urdfs()
    singles, batches = {}, {}
    for robot, name in ROBOTS.items():
        path = urdfs[name] if name else HOAP2
        model = RobotModel.from_file(path)
        oracle, sesc = PinocchioOracle(model, path, floating=True), Sesc(model)
        singles[robot], batches[robot] = single(model, oracle, sesc), batch(model, oracle, sesc)
    show(singles, batches)
    cold, cached = start_up(HOAP2)

    def per_robot(value: Callable[[str], float], digits: int) -> dict[str, float]:
        return {robot: round(value(robot), digits) for robot in ROBOTS}

    summary = {
        "single_ratio": per_robot(lambda r: singles[r]["pinocchio"] / singles[r]["ours"], 2),
        "single_floating_ratio": per_robot(
            lambda r: singles[r]["pinocchio"] / singles[r]["floating"], 2
        ),
        "batch_ratio_1thread": per_robot(lambda r: batches[r]["pinocchio"] / batches[r]["one"], 2),
        "batch_ratio_2threads": per_robot(lambda r: batches[r]["pinocchio"] / batches[r]["two"], 2),
        "single_us": per_robot(lambda r: 1e6 * singles[r]["ours"], 3),
        "single_us_pinocchio": per_robot(lambda r: 1e6 * singles[r]["pinocchio"], 3),
        "batch_us_1thread": per_robot(lambda r: 1e6 * batches[r]["one"], 4),
        "start_cold_s": round(cold, 3),
        "start_cached_s": round(cached, 3),
    }
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
