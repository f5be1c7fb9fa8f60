"""How well the trunk's CoM is found while SCALF-II trots: all methods, the same runs, one table.

Nine offsets {0, -3, -10} x {0, 3, 10} cm, sensors that err as TROT_NOISE says, seeds that are used
nowhere else. The robot stands for a second, which the estimators see; times count from the first
lift-off, 10 s, all phases of the gait. The gait knows nothing of the offset.

Errors are estimate minus truth. The mean is over offsets, repeats and the times from 1 s on, of
the absolute error; the maximum likewise. Where one number stands for x and y it is the worse of
the two, and `..._xy_mm` has both. The last line is one JSON object:

  paper_light_mean_mm, paper_light_worst_mm: [Ding] in its window, legs of 3 kg, no noise: mean
    over offsets of the absolute error, longest error of an offset.
  floating_light_..., floating_heavy_...: the floating base, legs of 3 kg and of 25 kg.
  at_180ms_mm: length of its error in x and y 180 ms after lift-off, mean over the light runs.
  payload_to_5mm_s, payload_to_2mm_s: 20 kg drop on a corner of the trunk 5 s after lift-off; time
    until the error in x and y stays below the limit to the end of the run, the worst run's.
    A number as large as the run is long: not reached.
  no_accelerometer_mean_mm: the light runs, no specific force in any sample.
  friction_legmass_mean_mm: legs 5 % heavier than the URDF says, 10 N m of Coulomb friction on every
    joint, of which the model knows nothing; light legs.
  nees_x_y_z: mean normalised estimation error squared at the end of the light runs; 1 is honest.
    nees: over all three for each group of runs, its 95 % band and whether it is inside; `level` is
    an offset in z alone for half the time, so that the trunk does not tilt and z stays unknown:
    over the runs z is distributed as the estimator's prior has it.
  update_us: median time of an update() that made an estimate; sample_us: mean of all.
  grf_rms_n: forces of the ground by method, light legs (trot_figures.py).
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.stats import norm
from trot_figures import OFFSETS, ground_reaction
from trot_lab import CLEAN, TrotRun, build, in_processes, run_trot
from trot_plots import draw_methods, draw_payload
from trot_tracks import (
    DING,
    DING_ALWAYS,
    FLOATING,
    LEAST_SQUARES,
    LIFT_OFF,
    STANDS,
    URDF,
    WITHOUT_ACCELEROMETER,
    Case,
    Followed,
    Track,
    band,
    false_alarms,
    follow,
    make_estimator,
    max_error,
    mean_error,
    mean_squares,
    statuses,
)

from com_estimation.trunk.floating_base import FloatingBaseEstimator
from com_estimation.trunk.ground_reaction import METHODS

Array = NDArray[np.float64]

LIGHT, HEAVY = "scalf2", "scalf2_heavy"
BASELINES = (DING, DING_ALWAYS, LEAST_SQUARES, URDF)
WINDOW = 0.3  # s of trot for the paper's window
PAYLOAD = 20.0  # kg
CORNERS = [(x, y, 0.1) for x in (0.55, -0.55) for y in (0.2, -0.2)]  # m
PAYLOAD_OFFSET = (-0.03, 0.03, 0.0)
ROUGH = {"leg_mass_error": 0.05, "friction": 10.0}


@dataclass(frozen=True)
class Plan:
    """How much is run.

    Attributes:
        seed: Runs have seeds from 1000 times this on.
        seconds: Of trot.
        drop: s, when the payload drops.
        offsets: (3,) m each.
        repeats: Of the offsets, with light and with heavy legs.
        corners: On which the payload drops.
        level: Runs with an offset in z alone.
        rough: Runs with friction and wrong masses, with light and with heavy legs.
    """

    seed: int
    seconds: float = 10.0
    drop: float = 5.0
    offsets: Sequence[tuple[float, float, float]] = tuple(OFFSETS)
    repeats: int = 1
    corners: Sequence[tuple[float, float, float]] = tuple(CORNERS)
    level: int = 5
    rough: int = 5


def quick(plan: Plan) -> Plan:
    """Enough to see that it works."""
    return replace(
        plan,
        seconds=2.2,
        drop=1.2,
        offsets=plan.offsets[::4],
        repeats=1,
        corners=plan.corners[:1],
        level=1,
        rough=1,
    )


def full(plan: Plan) -> Plan:
    """What the published table is made of."""
    return replace(plan, repeats=2, level=9, rough=9)


def cases(plan: Plan) -> dict[str, list[Case]]:
    """All runs by group."""
    seconds, payload_at = LIFT_OFF + plan.seconds, LIFT_OFF + plan.drop
    run = TrotRun(LIGHT, seconds=seconds, gait=STANDS)
    light = [
        replace(run, offset=offset)
        for _ in range(plan.repeats)
        for offset in plan.offsets
    ]
    rough = [
        replace(run, offset=offset, **ROUGH) for offset in plan.offsets[-plan.rough :]
    ]
    still = replace(
        run, seconds=LIFT_OFF + plan.seconds / 2.0
    )  # later it begins to sway
    level = [replace(still, offset=(0.0, 0.0, z)) for z in heights(plan.level)]
    dropped = [(PAYLOAD, corner, payload_at) for corner in plan.corners]
    short = replace(run, noise=CLEAN, seconds=LIFT_OFF + WINDOW)
    groups = {
        "light": Group(light, (FLOATING, WITHOUT_ACCELEROMETER, *BASELINES)),
        "heavy": Group(
            [replace(r, robot=HEAVY) for r in light], (FLOATING, *BASELINES)
        ),
        "rough": Group(rough, (FLOATING, LEAST_SQUARES)),
        "rough_heavy": Group(
            [replace(r, robot=HEAVY) for r in rough], (FLOATING, LEAST_SQUARES)
        ),
        "payload": Group(
            [replace(run, offset=PAYLOAD_OFFSET, payload=d) for d in dropped],
            (FLOATING, LEAST_SQUARES),
        ),
        "level": Group(level, (FLOATING,)),
        "paper": Group(
            [replace(short, offset=offset) for offset in plan.offsets], (DING,)
        ),
    }
    seed, result = 1000 * plan.seed, {}
    for name, group in groups.items():
        numbered = [replace(r, seed=seed + i) for i, r in enumerate(group.runs)]
        result[name] = [Case(r, group.methods) for r in numbered]
        seed += len(numbered)
    return result


def heights(count: int) -> list[float]:
    """Offsets in z, m: quantiles of what the estimator takes for possible beforehand."""
    model, config, _ = build(TrotRun(LIGHT))
    estimator = FloatingBaseEstimator(model, config)
    std = estimator.options.priors.com * estimator.hip_distance
    return rounded(std * norm.ppf((np.arange(count) + 0.5) / count), 4)


@dataclass(frozen=True, eq=False)
class Group:
    """Runs that the same methods see."""

    runs: Sequence[TrotRun]
    methods: Sequence[str]


class Results:
    """Outcomes by group."""

    def __init__(self, groups: dict[str, list[Followed]]) -> None:
        self.groups = groups

    def tracks(self, group: str, method: str = FLOATING) -> list[Track]:
        """Of a method, in the runs of a group."""
        return [r.tracks[method] for r in self.groups[group]]

    def mean(self, group: str, method: str = FLOATING) -> Array:
        """Mean absolute errors of x, y, z, mm."""
        return 1e3 * mean_error(
            self.tracks(group, method), while_known=method == DING_ALWAYS
        )

    def max(self, group: str, method: str = FLOATING) -> Array:
        """Largest absolute errors of x, y, z, mm."""
        return 1e3 * max_error(
            self.tracks(group, method), while_known=method == DING_ALWAYS
        )

    def worst_run(self, group: str) -> dict[str, object]:
        """Which run of the floating base has the largest error in x or y, and how large."""
        peaks = [1e3 * t.settled()[:, :2].max() for t in self.tracks(group)]
        k = int(np.argmax(peaks))
        run = self.groups[group][k].case.run
        offset = [round(100.0 * c) for c in run.offset[:2]]
        return {
            "offset_cm": offset,
            "seed": run.seed,
            "max_mm": round(float(peaks[k]), 2),
        }


def simulate(plan: Plan, processes: int) -> Results:
    """Runs everything."""
    planned = cases(plan)
    flat = [case for group in planned.values() for case in group]
    done = iter(in_processes(follow, flat, "trots", processes))
    return Results(
        {name: [next(done) for _ in group] for name, group in planned.items()}
    )


def time_updates(seed: int) -> tuple[float, float]:
    """Times of update() in microseconds: median of those with an estimate, mean of all."""
    log = run_trot(TrotRun(LIGHT, seconds=2.0, seed=seed, gait=STANDS))
    estimator, samples = make_estimator(log, FLOATING), list(log.samples())
    updates, total = [], 0
    for sample in samples:
        start = time.perf_counter_ns()
        made = estimator.update(sample)
        taken = time.perf_counter_ns() - start
        total += taken
        if made is not None:
            updates.append(taken)
    return float(np.median(updates)) / 1e3, total / len(samples) / 1e3


def consistency(
    results: Results, group: str, method: str = FLOATING
) -> dict[str, object]:
    """NEES at the end of a group's runs: per axis and over all three, its 95 % band."""
    tracks = results.tracks(group, method)
    x, y, z, all_three = rounded(mean_squares(tracks), 2)
    low, high = band(3, len(tracks))
    return {
        "x_y_z": [x, y, z],
        "all": all_three,
        "band": rounded((low, high), 2),
        "inside": bool(low <= mean_squares(tracks)[3] <= high),
        "band_of_one_axis": rounded(band(1, len(tracks)), 2),
    }


def mass_consistency(results: Results, group: str) -> float:
    """Mean squared error of the trunk's mass over its variance at the end of the runs."""
    tracks = results.tracks(group)
    return float(np.mean([(t.mass_error[-1] / t.mass_std[-1]) ** 2 for t in tracks]))


def rounded(values: Any, digits: int = 3) -> list[float]:
    """As JSON has them."""
    return [round(float(v), digits) for v in values]


def figures(results: Results, plan: Plan) -> dict[str, Any]:
    """The JSON object, but for times and forces."""
    light = results.tracks("light")
    paper = 1e3 * np.array([t.error[-1, :2] for t in results.tracks("paper", DING)])
    arrivals = {limit: arrival(results, plan, limit) for limit in (5e-3, 2e-3)}
    at_180 = 1e3 * float(np.mean([t.distance_at(0.180) for t in light]))
    without = results.mean("light", WITHOUT_ACCELEROMETER)
    payloads = results.tracks("payload")
    quiet = ("light", "heavy", "rough", "rough_heavy", "level")
    return {
        "paper_light_mean_mm": rounded(np.abs(paper).mean(axis=0)),
        "paper_light_worst_mm": round(float(np.linalg.norm(paper, axis=1).max()), 3),
        "floating_light_mean_mm": rounded(results.mean("light")[:2]),
        "floating_light_max_mm": rounded(results.max("light")[:2]),
        "floating_heavy_mean_mm": worse(results.mean("heavy")),
        "floating_heavy_max_mm": worse(results.max("heavy")),
        "at_180ms_mm": round(at_180, 3),
        "payload_to_5mm_s": round(max(arrivals[5e-3]), 3),
        "payload_to_2mm_s": round(max(arrivals[2e-3]), 3),
        "no_accelerometer_mean_mm": worse(without),
        "friction_legmass_mean_mm": worse(results.mean("rough")),
        "nees_x_y_z": rounded(mean_squares(light)[:3], 2),
        "floating_heavy_mean_xy_mm": rounded(results.mean("heavy")[:2]),
        "floating_heavy_max_xy_mm": rounded(results.max("heavy")[:2]),
        "no_accelerometer_mean_xy_mm": rounded(without[:2]),
        "no_accelerometer_max_xy_mm": rounded(
            results.max("light", WITHOUT_ACCELEROMETER)[:2]
        ),
        "friction_legmass_mean_xy_mm": rounded(results.mean("rough")[:2]),
        "friction_legmass_max_xy_mm": rounded(results.max("rough")[:2]),
        "friction_legmass_heavy_mean_xy_mm": rounded(results.mean("rough_heavy")[:2]),
        "friction_legmass_heavy_max_xy_mm": rounded(results.max("rough_heavy")[:2]),
        "at_180ms_max_mm": round(1e3 * max(t.distance_at(0.180) for t in light), 3),
        "payload_each_to_5mm_s": rounded(arrivals[5e-3]),
        "payload_each_to_2mm_s": rounded(arrivals[2e-3]),
        "payload_noticed_after_s": rounded(
            t.payload_changed_at - plan.drop for t in payloads
        ),
        "z_mean_mm": {g: round(float(results.mean(g)[2]), 2) for g in quiet},
        "mass_mean_kg": {g: mass_error(results, g) for g in quiet},
        "nees": {g: consistency(results, g) for g in quiet}
        | {"no_accelerometer": consistency(results, "light", WITHOUT_ACCELEROMETER)},
        "nees_light_at_s": {
            str(t): rounded(mean_squares(light, t), 2)
            for t in (0.18, 0.5, 1.0, 2.0, 5.0)
        },
        "mass_nees": {g: round(mass_consistency(results, g), 2) for g in quiet},
        "false_alarms": {g: false_alarms(results.tracks(g)) for g in quiet},
        "status_at_end": {g: statuses(results.tracks(g)) for g in (*quiet, "payload")},
        "worst_run": {g: results.worst_run(g) for g in quiet},
        "tilt_max_deg": {
            g: round(float(np.degrees(max(r.tilt for r in results.groups[g]))), 2)
            for g in quiet
        },
        "baselines_mean_xy_mm": {
            g: {m: rounded(results.mean(g, m)[:2], 2) for m in BASELINES}
            for g in ("light", "heavy")
        },
        "runs": {g: len(runs) for g, runs in results.groups.items()},
    }


def finite(value: Any) -> Any:
    """The same with None for NaN and infinity, which JSON does not have."""
    if isinstance(value, dict):
        return {key: finite(v) for key, v in value.items()}
    if isinstance(value, list):
        return [finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def worse(xyz: Array) -> float:
    """The larger of x and y."""
    return round(float(np.max(xyz[:2])), 3)


def mass_error(results: Results, group: str) -> float:
    """Mean absolute error of the trunk's mass at the end, kg."""
    return round(
        float(np.mean([abs(t.mass_error[-1]) for t in results.tracks(group)])), 2
    )


def arrival(results: Results, plan: Plan, limit: float) -> list[float]:
    """Times from the drop of the payload on, s; the rest of the run where it did not get there."""
    longest = plan.seconds - plan.drop
    return [
        min(t.time_to(limit, plan.drop), longest) for t in results.tracks("payload")
    ]


def show(results: Results, found: dict[str, Any], console: Console) -> None:
    """Prints the tables."""
    table = Table(
        "x, y, z of the trunk's CoM, error [mm]", "mean", "max", "required", "aim"
    )
    rows = [
        ("floating base, legs 3 kg", "light", FLOATING, "1 / 2", "0.3 / 1"),
        ("floating base, legs 25 kg", "heavy", FLOATING, "1.5 / 4", "0.5 / 2"),
        ("without accelerometer", "light", WITHOUT_ACCELEROMETER, "4 / -", "1.5 / -"),
        ("friction, legs 5 % heavier", "rough", FLOATING, "2 / -", "1 / -"),
        ("the same, legs 25 kg", "rough_heavy", FLOATING, "", ""),
        ("offset in z alone, no tilt", "level", FLOATING, "", ""),
        *[(f"{m}, legs 3 kg", "light", m, "", "") for m in BASELINES],
        *[(f"{m}, legs 25 kg", "heavy", m, "", "") for m in BASELINES],
    ]
    for name, group, method, required, aim in rows:
        mean, largest = results.mean(group, method), results.max(group, method)
        table.add_row(name, millimetres(mean), millimetres(largest), required, aim)
    single = Table("", "found", "required", "aim")
    mean, worst = found["paper_light_mean_mm"], found["paper_light_worst_mm"]
    single.add_row(
        f"{DING}, its window, clean: mean, worst [mm]", f"{mean}, {worst}", "10, -", ""
    )
    for key, required, aim in (
        ("at_180ms_mm", "3", "1"),
        ("payload_to_5mm_s", "1", "0.35"),
        ("payload_to_2mm_s", "2", "1"),
        ("update_us", "300", "100"),
    ):
        single.add_row(key, str(found[key]), required, aim)
    for group, nees in found["nees"].items():
        low, high = nees["band"]
        where = "inside" if nees["inside"] else "OUTSIDE"
        text = f"{nees['all']} {nees['x_y_z']}: {where}"
        single.add_row(
            f"NEES {group}: all three [x, y, z]", text, f"{low} to {high}", ""
        )
    for method in METHODS:
        single.add_row(
            f"ground's force by {method} [N]", str(found["grf_rms_n"][method]), "", ""
        )
    console.print(table, single)


def millimetres(values: Array) -> str:
    """Three numbers, in as few characters as tell."""
    return ", ".join("-" if np.isnan(v) else f"{v:.3g}" for v in values)


def main() -> int:
    """Simulates, prints, draws."""
    parser = argparse.ArgumentParser(
        description="Accuracy of the trunk's CoM while trotting."
    )
    parser.add_argument(
        "--seed", type=int, default=731, help="the runs have 1000 times this on"
    )
    parser.add_argument(
        "--quick", action="store_true", help="three offsets, 2.2 s of trot"
    )
    parser.add_argument(
        "--full", action="store_true", help="the published table, 15 minutes"
    )
    parser.add_argument(
        "--repeats", type=int, help="of each offset; default: 1, --full: 2"
    )
    parser.add_argument("--processes", type=int, default=2, help="so many at a time")
    parser.add_argument("--out", type=Path, help="folder of the pictures; none without")
    args = parser.parse_args()
    plan = Plan(args.seed)
    plan = quick(plan) if args.quick else full(plan) if args.full else plan
    if args.repeats is not None:
        plan = replace(plan, repeats=args.repeats)
    results = simulate(plan, args.processes)
    found = figures(results, plan)
    update, sample = time_updates(1000 * args.seed)
    forces = ground_reaction((LIGHT, 2.0 if args.quick else 6.0, 1000 * args.seed))
    found["update_us"], found["sample_us"] = round(update, 1), round(sample, 1)
    found["grf_rms_n"] = {method: round(forces.rms(method), 2) for method in METHODS}
    show(results, found, Console(width=120))
    if args.out:
        args.out.mkdir(parents=True, exist_ok=True)
        draw_payload(
            results.tracks("payload")[0], plan.drop, args.out / "trot_payload.png"
        )
        names = (FLOATING, LEAST_SQUARES, DING, URDF)
        draw_methods(
            {m: results.tracks("light", m) for m in names},
            args.out / "trot_methods.png",
        )
    print(json.dumps(finite(found)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
