"""False alarms of a payload: minutes of each of three grounds, and alarms that are forced by hand.

SCALF-II trots on ground of a contact model of 10 ms (nominal), of 4 ms (stiff), and over tiles up
to 2 cm lower (uneven), three (--full: ten) runs of a minute each with three offsets of the trunk's
CoM and both noise models of trot_honesty.py, whose long runs these are; nothing drops on the trunk,
so that every alarm that is confirmed is false. Forced: in runs of 10 s with three offsets on each
ground an alarm is raised 5 s after lift-off as if the payload had changed six quarter strides
before, which is when a true one is noticed; nothing has changed, so that it must be withdrawn.

The last line is one JSON object:

  grounds: {ground: {minutes, alarms (confirmed), false_converged, mean_mm [x, y], converged}}
  confirmed: sum of the alarms
  forced: {runs, withdrawn, peak_mm: largest error in x and y of the stride after the alarm,
    known_while_off: share of the time CONVERGED with an error beyond 99.9 % from the alarm on,
    after_mm: mean error in x, y from two strides after it on}
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from rich.console import Console
from trot_errors import NOISES
from trot_honesty import (
    BEYOND,
    DROP,
    Array,
    Task,
    in_processes,
    judge,
    long_runs,
    run_trot,
    summary,
)
from trot_tracks import LIFT_OFF

from com_estimation.trunk.floating_base.estimator import FloatingBaseEstimator
from com_model.status import Status

GROUNDS = ("nominal", "stiff", "uneven")
STRIDE = 1.0  # s
BACK = 6  # quarter strides before the alarm, where the change is said to have been


@dataclass(frozen=True, eq=False)
class Forced:
    """What came of an alarm that was forced: d^2 and errors by time from the alarm on."""

    withdrawn: bool
    time: Array  # (N,) s
    error: Array  # (N, 2) m
    beyond: Array  # (N,) whether it was CONVERGED beyond 99.9 %


def force(task: Task) -> Forced:
    """Simulates a run and raises the alarm in it."""
    log, ((_, noise, seed),) = run_trot(task.run), task.cases
    read = NOISES[noise](log, seed)
    estimator, rows, forced = FloatingBaseEstimator(log.model, log.config), [], False
    for k in range(len(read.time)):
        estimate, since = (
            estimator.update(read.sample(k)),
            read.time[k] - LIFT_OFF - DROP,
        )
        if not forced and since >= 0.0:
            estimator.raise_alarm(read.time[k], BACK, STRIDE / 4.0)
            forced = True
        if forced and estimate is not None:
            error, C = (
                (estimate.com - log.trunk_com[k])[:2],
                estimate.covariance[:2, :2],
            )
            beyond = error @ np.linalg.solve(C, error) > BEYOND
            rows.append((since, *error, beyond and estimate.status is Status.CONVERGED))
    found = np.array(rows)
    withdrawn = bool(np.isnan(estimator.latest.payload_changed_at))
    return Forced(withdrawn, found[:, 0], found[:, 1:3], found[:, 3])


def forced_runs(seed: int) -> list[Task]:
    """Three offsets on each ground, 10 s; the noise models in turn."""
    long = long_runs(seed)
    some = [task for i, task in enumerate(long) if i % 10 < 3]
    return [replace(task, run=replace(task.run, seconds=10.0)) for task in some]


def main() -> int:
    """Simulates and prints."""
    parser = argparse.ArgumentParser(
        description="False alarms of a payload while trotting."
    )
    parser.add_argument("--seed", type=int, default=5200)
    parser.add_argument("--full", action="store_true", help="10 minutes of each ground")
    parser.add_argument(
        "--minutes", type=int, help="of each ground; default 3, --full: 10"
    )
    parser.add_argument("--processes", type=int, default=2, help="so many at a time")
    args = parser.parse_args()
    console = Console(width=120)
    minutes = args.minutes or (10 if args.full else 3)
    tasks = [t for i, t in enumerate(long_runs(args.seed)) if i % 10 < minutes]
    outcomes = [
        o for some in in_processes(judge, tasks, "trots", args.processes) for o in some
    ]
    grounds: dict[str, dict[str, Any]] = {}
    for ground in GROUNDS:
        own = [o for o in outcomes if o.case == f"long {ground}"]
        figures = summary(own)
        grounds[ground] = {"minutes": len(own), "alarms": figures["false_alarms"]}
        grounds[ground] |= {
            k: figures[k] for k in ("false_converged", "mean_mm", "converged")
        }
        console.print(ground, grounds[ground])
    forced = list(
        in_processes(force, forced_runs(args.seed + 1), "alarms", args.processes)
    )
    peaks = [np.abs(f.error[f.time < STRIDE]).max() for f in forced]
    after = np.mean(
        [np.abs(f.error[f.time > 2.0 * STRIDE]).mean(axis=0) for f in forced], axis=0
    )
    result = {
        "grounds": grounds,
        "confirmed": sum(each["alarms"] for each in grounds.values()),
        "forced": {
            "runs": len(forced),
            "withdrawn": sum(f.withdrawn for f in forced),
            "peak_mm": round(1e3 * float(max(peaks)), 2),
            "known_while_off": round(
                float(np.mean([f.beyond.mean() for f in forced])), 4
            ),
            "after_mm": [round(1e3 * float(v), 2) for v in after],
        },
    }
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
