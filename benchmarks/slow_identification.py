"""Robots that are not as their URDFs say, identified from swaying and hanging.

G1-like robots in MuJoCo (slow_lab.py): a G1, and robots as heavy and tall as an H1 and a T1 made of
it. Each sways for 60 s on both feet and hangs for 60 s from a rope whose point is known to 2 mm;
it is weighed. A Go2, whose calves have much load friction, only sways. CoMs are those of the whole
robot in 25 postures within 0.4 rad of standing.

The last line is one JSON object, by robot and recordings: com_mm_before (rms), rms_mm, worst_mm (of
the robots' rms over the postures: rms and largest), nees (per dimension, mean), accepted (how many
passed all tests of the result), robots.
"""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from processes import in_processes
from rich.console import Console
from rich.table import Table
from slow_lab import GO2, LIKE, SlowRobot, draw, hang, sway

from com_identification.slow.identify import identify_slow
from com_identification.walking.identify import WalkResult
from com_identification.walking.unknowns import Scale
from com_model import Frame, Sesc

Array = NDArray[np.float64]

POSTURES, SPREAD = 25, 0.4  # rad
SECONDS, ROPE = 60.0, 0.002  # s; m


@dataclass(frozen=True)
class Case:
    """One robot."""

    name: str
    seed: int
    seconds: float


def try_case(case: Case) -> list[dict[str, Any]]:
    """Simulates and identifies a robot, by its sway alone and with hanging."""
    robot, rng = draw(case.name, case.seed), np.random.default_rng([case.seed, 5])
    at = robot.rope + ROPE * rng.uniform(-1.0, 1.0, 3)
    rope = Frame("rope", robot.torso, tuple(at.tolist()))
    swayed, results = sway(robot, case.seconds, case.seed), []
    recorded = [("sway", [swayed], [False])]
    if case.name != GO2:
        hung = hang(robot, case.seconds, case.seed)
        recorded.append(("sway_hang", [swayed, hung], [False, True]))
    for what, logs, kinds in recorded:
        result = identify_slow(
            logs, kinds, robot.believed, robot.config, Scale(robot.true.mass), rope
        )
        results.append(
            {"what": f"{case.name}_{what}", "seed": case.seed} | score(robot, result)
        )
    return results


def score(robot: SlowRobot, result: WalkResult) -> dict[str, Any]:
    """Errors of the whole robot's CoM."""
    rng, before, errors, nees = np.random.default_rng(9), [], [], []
    believed, true = Sesc(robot.believed), Sesc(robot.true)
    posture = robot.config.nominal_posture(robot.believed)
    for q in posture + rng.uniform(-SPREAD, SPREAD, (POSTURES, len(posture))):
        com, C = result.com(q)
        before.append(believed.com(q) - true.com(q))
        errors.append(com - true.com(q))
        nees.append(errors[-1] @ np.linalg.solve(C, errors[-1]) / 3.0)

    def length(rows: list[Array]) -> float:
        return float(1e3 * np.sqrt((np.array(rows) ** 2).sum(axis=1).mean()))

    return {
        "before": length(before),
        "after": length(errors),
        "xyz": 1e3 * np.sqrt((np.array(errors) ** 2).mean(axis=0)),
        "std": 1e3 * result.advice.com_std,
        "nees": float(np.mean(nees)),
        "failed": [gate.name for gate in result.gates if not gate.passed],
    }


def figures(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Of the robots of one kind."""

    def rms(key: str) -> float:
        return round(float(np.sqrt(np.mean([row[key] ** 2 for row in rows]))), 2)

    return {
        "com_mm_before": rms("before"),
        "rms_mm": rms("after"),
        "worst_mm": round(max(row["after"] for row in rows), 2),
        "nees": round(float(np.mean([row["nees"] for row in rows])), 2),
        "accepted": sum(not row["failed"] for row in rows),
        "robots": len(rows),
    }


def main() -> int:
    """Simulates, identifies, prints."""
    parser = argparse.ArgumentParser(description="Identification from slow motions.")
    parser.add_argument("--robots", type=int, default=1, help="of each kind")
    parser.add_argument("--full", action="store_true", help="8 of each kind")
    names = [*LIKE, GO2]
    parser.add_argument("--only", nargs="*", choices=names, default=names)
    parser.add_argument(
        "--seed", type=int, default=1, help="the robots have it and the next"
    )
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each motion")
    parser.add_argument("--processes", type=int, default=2, help="so many at a time")
    args = parser.parse_args()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # of the processes
    seeds = range(args.seed, args.seed + (8 if args.full else args.robots))
    cases = [Case(name, seed, args.seconds) for seed in seeds for name in args.only]
    done = [
        row
        for rows in in_processes(try_case, cases, "robots", args.processes)
        for row in rows
    ]
    table = Table("", "seed", "before", "after", "x y z [mm]", "sigma", "NEES", "")
    for row in done:
        table.add_row(
            row["what"],
            str(row["seed"]),
            f"{row['before']:.1f}",
            f"{row['after']:.2f}",
            " ".join(f"{v:.2f}" for v in row["xyz"]),
            " ".join(f"{v:.2f}" for v in row["std"]),
            f"{row['nees']:.2f}",
            "accepted" if not row["failed"] else "refused: " + ", ".join(row["failed"]),
        )
    Console(width=140).print(table)
    kinds = sorted({row["what"] for row in done})
    print(
        json.dumps(
            {kind: figures([r for r in done if r["what"] == kind]) for kind in kinds}
        )
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
