"""How well the trunk's CoM is found on other quadrupeds, over the length of their trunks.

URDFs of example-robot-data in the simulator, with the configurations of robot_descriptions and the
estimator's default options; scalf2 for comparison. Offsets scale with the robot: 0, 2.5 and 8 % of
the trunk's length backwards, 0, 5 and 16 % of its width to the left, so that those of [Ding] on
SCALF-II are among them; every other pair of these, with --full all nine. Length and width are the
distances of the hips. Sensors err as TROT_NOISE says whatever the robot's size. The robots stand
for a second and trot for 10 s; nothing gives the gait the offset.

Errors are estimate minus truth, their means over offsets and times from 1 s after the first
lift-off on. The last line is one JSON object: for each robot the mean length of the error in x and
y over the length of its trunk. Required: below 0.01. And

  nees: {robot: {quiet, drawn: squared error over variance at the end of x, y, z, means of the runs;
    quiet: those above, whose sensors only have noise: far below 1, since sigma allows for errors
    that these do not have; drawn: as many runs, with either noise model each, with all errors drawn
    from the priors, as in the ensembles of trot_honesty.py: 1 is honest. false: share of time
    CONVERGED with an error in x, y beyond 99.9 %, of drawn; converged, usable: fractions of
    the quiet runs that are CONVERGED, and USABLE or CONVERGED, at the end, why: what the first say
    that are not CONVERGED; usable_wrong: as in trot_honesty.py, of drawn;
    limited_by: what limits the first run}}
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from trot_errors import NOISES
from trot_honesty import Outcome, Task, judge, rounded
from trot_lab import CLEAN, TrotRun, build, in_processes
from trot_tracks import (
    FLOATING,
    LEAST_SQUARES,
    LIFT_OFF,
    STANDS,
    Case,
    Followed,
    band,
    false_alarms,
    follow,
    max_error,
    mean_error,
    mean_squares,
    statuses,
)

from com_estimation.trunk.floating_base import FloatingBaseEstimator
from com_estimation.trunk.floating_base.filter_types import STATE
from com_model import quadruped_legs
from com_model.status import TRUSTED, Status

ROBOTS = ("anymal", "a1", "go2", "solo12", "hyq", "scalf2")
FRACTIONS = [(x, y) for x in (0.0, -0.025, -0.08) for y in (0.0, 0.05, 0.16)]
METHODS = (FLOATING, LEAST_SQUARES)
LIMIT = 0.01


def cases(
    robot: str, fractions: Sequence[tuple[float, float]], seconds: float, seed: int
) -> list[Case]:
    """Runs of a robot with offsets in fractions of its length and width."""
    model, config, _ = build(TrotRun(robot))
    hips = np.array([leg.hip for leg in quadruped_legs(model, config)])
    length, width = np.ptp(hips[:, 0]), np.ptp(hips[:, 1])
    runs = [
        TrotRun(
            robot,
            offset=(x * length, y * width, 0.0),
            seconds=LIFT_OFF + seconds,
            seed=seed + i,
            gait=STANDS,
        )
        for i, (x, y) in enumerate(fractions)
    ]
    return [Case(run, METHODS) for run in runs]


def ensemble(planned: Sequence[Case], seed: int) -> list[Task]:
    """The runs of a robot with errors drawn from the priors, friction in the simulation."""
    model, config, _ = build(planned[0].run)
    std, tasks = FloatingBaseEstimator(model, config).prior_std, []
    for i, case in enumerate(planned):
        rng = np.random.default_rng([seed, i])
        run = replace(
            case.run,
            noise=CLEAN,
            friction=np.abs(std[STATE.coulomb] * rng.standard_normal(12)),
            damping=np.abs(std[STATE.viscous] * rng.standard_normal(12)),
        )
        draws = ((noise, seed + i + 50 * k) for k, noise in enumerate(NOISES))
        tasks.append(Task(run, tuple(("ensemble", *draw) for draw in draws)))
    return tasks


def honesty(results: Sequence[Followed], drawn: Sequence[Outcome]) -> dict[str, Any]:
    """The figures of a robot in `nees`; see the module's text."""
    tracks = [r.tracks[FLOATING] for r in results]
    known = [t.status[-1] == Status.CONVERGED for t in tracks]
    reasons = [
        t.reason for t, converged in zip(tracks, known, strict=True) if not converged
    ]
    return {
        "quiet": rounded(mean_squares(tracks)[:3]),
        "drawn": rounded(np.mean([o.squares for o in drawn], axis=0)),
        "false": round(float(np.mean([o.false for o in drawn])), 4),
        "converged": round(float(np.mean(known)), 3),
        "usable": round(float(np.mean([t.status[-1] in TRUSTED for t in tracks])), 3),
        "usable_wrong": round(float(np.mean([o.usable_wrong for o in drawn])), 4),
        "why": next(iter(reasons), ""),
        "limited_by": drawn[0].limited_by,
    }


def relative_error(results: Sequence[Followed], method: str = FLOATING) -> float:
    """Mean length of the error in x and y over that of the trunk."""
    lengths = [
        np.linalg.norm(r.tracks[method].settled()[:, :2], axis=1) for r in results
    ]
    return float(np.mean(lengths)) / results[0].trunk_length


def describe(robot: str, results: Sequence[Followed]) -> list[str]:
    """Row of the table."""
    tracks = [r.tracks[FLOATING] for r in results]
    mean, largest = 1e3 * mean_error(tracks), 1e3 * max_error(tracks)
    nees, (low, high) = mean_squares(tracks), band(3, len(tracks))
    inside = "inside" if low <= nees[3] <= high else "OUTSIDE"
    ratios = [t.mass_error[-1] / t.mass_std[-1] for t in tracks]
    return [
        robot,
        f"{1e3 * results[0].trunk_length:.0f}",
        f"{100.0 * relative_error(results):.3f}",
        f"{100.0 * relative_error(results, LEAST_SQUARES):.3f}",
        " ".join(f"{v:.2f}" for v in mean),
        " ".join(f"{v:.2f}" for v in largest),
        f"{nees[3]:.2f} [{' '.join(f'{v:.2f}' for v in nees[:3])}] {inside}",
        f"{np.mean(np.square(ratios)):.2f}",
        ", ".join(f"{n} {s}" for s, n in statuses(tracks).items()),
        str(false_alarms(tracks)),
        f"{np.degrees(max(r.tilt for r in results)):.1f}",
    ]


def main() -> int:
    """Simulates and prints."""
    parser = argparse.ArgumentParser(
        description="Accuracy of the trunk's CoM on other robots."
    )
    parser.add_argument(
        "robots", nargs="*", default=ROBOTS, help="names (default: all)"
    )
    parser.add_argument(
        "--seed", type=int, default=853, help="the runs have 1000 times this on"
    )
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--quick", action="store_true", help="one offset, 3 s of trot")
    length.add_argument(
        "--full", action="store_true", help="all nine offsets, not every other one"
    )
    parser.add_argument("--processes", type=int, default=2, help="so many at a time")
    args = parser.parse_args()
    fractions = (
        FRACTIONS if args.full else FRACTIONS[-1:] if args.quick else FRACTIONS[::2]
    )
    seconds = 3.0 if args.quick else 10.0
    planned = [
        cases(robot, fractions, seconds, 1000 * args.seed + 100 * i)
        for i, robot in enumerate(args.robots)
    ]
    flat = [case for group in planned for case in group]
    done = iter(in_processes(follow, flat, "trots", args.processes))
    results = {
        r: [next(done) for _ in g] for r, g in zip(args.robots, planned, strict=True)
    }
    errors = [
        ensemble(g, 1000 * args.seed + 5000 + 100 * i) for i, g in enumerate(planned)
    ]
    judged = iter(
        in_processes(judge, [t for g in errors for t in g], "errors", args.processes)
    )
    drawn = {
        r: [o for _ in g for o in next(judged)]
        for r, g in zip(results, errors, strict=True)
    }
    nees = {
        robot: honesty(followed, drawn[robot]) for robot, followed in results.items()
    }
    low, high = band(3, len(fractions))
    table = Table(
        "robot",
        "length [mm]",
        f"mean [% of it] (below {100.0 * LIMIT:g})",
        "least squares [%]",
        "mean x y z [mm]",
        "max x y z [mm]",
        f"NEES all [x y z] ({low:.2f} to {high:.2f})",
        "NEES of mass",
        "status at the end",
        "false alarms",
        "tilt [deg]",
    )
    for robot, followed in results.items():
        table.add_row(*describe(robot, followed))
    Console(width=170).print(table)
    relative = {robot: round(relative_error(r), 6) for robot, r in results.items()}
    print(json.dumps({**relative, "nees": nees}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
