"""A humanoid's CoM by methods that assume one cause, on the logs of benchmarks/diagnosis.py.

Methods (baselines/humanoid_com.py): urdf, the model as it is; rest_check, CoP against the projected
CoM in the first half second; constant_offset, the trunk's first moment by the second half of the
log; force_filter, the CoM filter with an external force of SEROW; ours, com_estimation.humanoid.
One culprit each from 4 s on or from the start, with the background errors of diagnosis.py.

com_mm is the horizontal error of the robot's CoM, mean of the last two seconds and of the cases.
The last line is one JSON object: culprit: method: com_mm, worst_mm; of all culprits together under
"all"; cases.
"""

from __future__ import annotations

import argparse
import json
from statistics import fmean
from typing import Any

import numpy as np
from baselines.humanoid_com import (
    Track,
    constant_offset,
    external_force_filter,
    rest_check,
)
from diagnosis import CULPRITS, Batch, arrange
from diagnosis_lab import PERIOD, Log, believed, load, simulate, spoil
from processes import in_processes
from rich.console import Console
from rich.table import Table

from com_estimation.humanoid.estimator import HumanoidEstimator
from com_estimation.humanoid.windows import make_window

LAST = 2.0  # s, over which errors are averaged
METHODS = ("urdf", "rest_check", "constant_offset", "force_filter", "ours")


def run(batch: Batch) -> dict[str, dict[str, float]]:
    """Error, mm, by culprit and method; culprits under which the robot falls are left out."""
    plain: Log | None = None
    found: dict[str, dict[str, float]] = {}
    for culprit in batch.culprits:
        loads, errors, _ = arrange(batch, culprit)
        if loads or plain is None:
            log = simulate(batch.robot, batch.motion, batch.seed, loads)
            plain = plain if loads else log
        else:
            log = plain
        if np.isfinite(log.fell_at):
            continue
        read = spoil(batch.robot, log, errors, batch.seed)
        found[culprit] = judge(batch, log, read, HumanoidEstimator(
            believed(batch.robot, errors, batch.seed), load(batch.robot)[1]
        ))  # fmt: skip
    return found


def judge(
    batch: Batch, log: Log, read: Log, estimator: HumanoidEstimator
) -> dict[str, float]:
    """Runs all methods over a log."""
    memory, layout = estimator._memory, estimator.layout
    plant, rows, ours, windows = layout.plant, [], [], []
    for k in range(len(read.time)):
        out = estimator.update(read.time[k], read.q[k], read.R[k], read.wrenches[k])
        assert out is not None
        ours.append(out.com)
        windows += [make_window(t, layout, *sums) for t, *sums in estimator.closed]
        estimator.process()
        load_ = np.maximum(memory.load, 0.0)
        ground = load_ @ (memory.sole[1, :, 2] + memory.root[2]) / load_.sum()
        trunk = memory.R[1, plant.blocks.trunk] @ plant.triad[plant.blocks.trunk]
        rows.append((
            memory.total[1].copy(), memory.wrench[1].sum(axis=0), -memory.momentum[:, -1], trunk,
            ground, memory.root.copy(), memory.R[1, 0].copy(),
        ))  # fmt: skip
    com, wrench, momentum, trunk, ground, root, R = map(
        np.array, zip(*rows, strict=True)
    )
    track = Track(PERIOD, com, wrench, momentum, trunk, ground)
    half = [window for window in windows if window.time > 0.5 * read.time[-1]]
    world = {
        "urdf": com,
        "rest_check": rest_check(track),
        "constant_offset": constant_offset(track, half, layout),
        "force_filter": external_force_filter(track, layout)[0],
    }
    last = slice(-round(LAST / PERIOD), None)
    errors = {}
    for name in METHODS:
        relative = (
            np.array(ours)
            if name == "ours"
            else np.einsum("nji,nj->ni", R, world[name] - root)
        )
        error = np.einsum("nij,nj->ni", log.R, relative - log.com)[last, :2]
        errors[name] = 1e3 * float(np.mean(np.linalg.norm(error, axis=1)))
    return errors


def main() -> int:
    """Runs and prints."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument(
        "--full", action="store_true", help="three motions, three seeds, iCub too"
    )
    parser.add_argument("--seed", type=int, default=5000, help="the first one")
    parser.add_argument("--culprits", nargs="+", default=CULPRITS, choices=CULPRITS)
    parser.add_argument("--processes", type=int, default=2, help="so many at a time")
    args = parser.parse_args()
    motions = ("walk", "sway", "turn") if args.full else ("walk", "sway")
    batches = [
        Batch(robot, motion, args.seed + i, tuple(args.culprits))
        for robot in (("talos", "icub") if args.full else ("talos",))
        for motion in motions
        for i in range(3 if args.full else 1)
    ]
    results = in_processes(run, batches, "motions", args.processes)
    figures: dict[str, Any] = {}
    table = Table("culprit", "cases", *METHODS, title="horizontal error of the CoM, mm")
    for culprit in (*args.culprits, "all"):
        chosen = args.culprits if culprit == "all" else [culprit]
        cases = [found[c] for found in results for c in chosen if c in found]
        if not cases:
            continue
        figures[culprit] = {
            method: {
                "com_mm": round(fmean(case[method] for case in cases), 2),
                "worst_mm": round(max(case[method] for case in cases), 2),
            }
            for method in METHODS
        }
        means = [f"{figures[culprit][method]['com_mm']:.2f}" for method in METHODS]
        table.add_row(culprit, str(len(cases)), *means)
    figures["cases"] = sum(len(found) for found in results)
    Console(width=120).print(table)
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
