"""Whether the trunk's CoM is known as well as the estimator says, under errors nobody declared.

SCALF-II trots 8 s after a second of standing, on two contact models (time constants of 10 and of
20 ms; --full: of 4 ms, too), each with the noise of the suite's simulator and with another one
(trot_errors.independent_noise). The estimator has its default options and is told nothing.

Cases with one error, at the size of its prior unless said otherwise, drawn for each joint and axis:
`zeros` 0.5 degrees, `tilt` of the IMU 1.5 degrees, `arm` of the IMU 3 cm, `delay` of the IMU 2 ms
(a late IMU), `bias` of the torques 20 N m, `gain` 3 % with that bias, `rotor` 0.5 kg m^2, `links`
of the URDF 10 % wrong, `friction` 20 N m and 10 N m s, `uneven`: tiles up to 2 cm lower, `speed`
0.5 m/s, `2 Hz`; `heavy`: legs of 25 kg, `heavy links`: 10 % wrong, `heavy weighed`: 3 % wrong with
link_mass 0.03, `heavy known`: right with link_mass 0.03; `everything`: gain, bias, zeros, tilt of 1
degree, arm, friction, links, and the IMU's noise times 3. `payload`: 3 kg = 1 % on a corner 5 s
after lift-off, `payload errors`: with gain, bias, zeros, tilt and arm besides, `payload 2 Hz`: with
steps at 2 Hz, `payload friction`: with the errors of `payload errors`, and friction and links.
`ensemble`: all errors drawn from the priors, `ensemble heavy` likewise; more than 30 runs each.

Errors are estimate minus truth from 2 s after the first lift-off on (payload: from 2.5 s after the
drop on as well). The last line is one JSON object:

  cases: {case: {mean_mm [x, y], max_mm (of x and y), sigma_mm (at the end, the larger of x and y),
    nees (at the end, worst axis of x and y; nees_xyz all), false_converged (share of time
    CONVERGED with an error in x, y beyond 99.9 %, the half stride after a payload left out),
    false_alarms (runs), converged, usable (shares of time), usable_wrong (of the time USABLE or
    CONVERGED, the half stride after a payload left out, the share in which the robot's CoM by the
    estimate and the estimator's legs is off by more than 1 % of the leg length in x and y), runs}}
  worst_false_converged; usable_wrong: the worst of those
  nees_range: least and largest NEES of x, y in the ensembles (nees_z: of z)
  payload_1pct_noticed: fraction of the payload runs in which it was noticed within 2 s and
    confirmed; payload_noticed_with_errors likewise, payload_noticed_at_2_hz,
    payload_noticed_with_friction
  update_us: median time of an update() with an estimate, here

The cases `long ...` (--full) are ten minutes each, a minute at a time, on two contact models and on
those tiles.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from trot_errors import NOISES, Errors, weighed, with_errors
from trot_lab import CLEAN, TrotRun, build, in_processes, run_trot
from trot_log import TrotLog
from trot_tracks import LIFT_OFF, STANDS

from com_estimation.trunk.floating_base import (
    FloatingBaseEstimator,
    FloatingBaseOptions,
)
from com_estimation.trunk.floating_base.estimator import USABLE
from com_estimation.trunk.floating_base.filter_types import STATE
from com_estimation.trunk.floating_base.options import Priors
from com_model.status import TRUSTED, Status

Array = NDArray[np.float64]

LIGHT, HEAVY = "scalf2", "scalf2_heavy"
OFFSETS = ((-0.03, 0.10, 0.0), (0.0, 0.03, 0.0), (-0.10, 0.0, 0.0))
CONTACTS = (0.01, 0.02)  # s
STIFF = 0.004
SECONDS = 9.0
CORNERS = ((0.55, 0.2, 0.1), (-0.55, 0.2, 0.1), (-0.55, -0.2, 0.1))
DROP = 5.0  # s after lift-off
PAYLOAD = 3.0  # kg
TILES = 0.02  # m
SETTLED, AFTER_DROP, NOTICED = 2.0, 2.5, 2.0  # s
HALF_STRIDE = 0.5  # s
BEYOND = 13.8  # 99.9 % of chi^2 of two
DEG = np.pi / 180.0
HEAVY_CASES = ("heavy", "heavy links")  # links right, and 10 % wrong
WEIGHED = ("heavy weighed", "heavy known")  # links 3 % wrong, and right
SINGLES = ("zeros", "tilt", "arm", "delay", "bias", "gain", "rotor", "links")


@dataclass(frozen=True, eq=False)
class Task:
    """A simulation, and what the estimator gets of it: (case, noise, seed) each."""

    run: TrotRun
    cases: tuple[tuple[str, str, int], ...]


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came of a case; see the module's text."""

    case: str
    mean: Array
    largest: float
    sigma: Array
    squares: Array
    false: float
    converged: float
    usable: float
    usable_wrong: float
    changed_at: float
    update_us: float
    limited_by: str


def tasks(full: bool, seed: int) -> Iterator[Task]:
    """All simulations."""
    noises = tuple(NOISES)
    run = TrotRun(LIGHT, seconds=SECONDS, noise=CLEAN, gait=STANDS)
    contacts = (*CONTACTS, STIFF) if full else CONTACTS
    number = seed

    def each(case: str, i: int, both: bool = full) -> tuple[tuple[str, str, int], ...]:
        nonlocal number
        chosen = noises if both else noises[i % 2 :][:1]
        number += len(noises)
        return tuple((case, noise, number + k) for k, noise in enumerate(chosen))

    for c, contact in enumerate(contacts):
        for i, offset in enumerate(OFFSETS):
            light = replace(run, offset=offset, contact_time=contact)
            yield Task(
                light,
                tuple(("nominal", noise, number + k) for k, noise in enumerate(noises))
                + tuple(item for case in SINGLES for item in each(case, c + i)),
            )
            load = (PAYLOAD, CORNERS[i], LIFT_OFF + DROP)
            dropped = replace(light, payload=load, seconds=SECONDS + 1.0)
            yield Task(
                dropped,
                tuple(("payload", noise, number + k) for k, noise in enumerate(noises))
                + each("payload errors", i),
            )
            if not full and (c + i) % 2:
                continue
            heavy = replace(light, robot=HEAVY)
            usual, wrong, close = (
                each(case, i, both=True) for case in (*HEAVY_CASES, WEIGHED[0])
            )
            right = tuple((WEIGHED[1], noise, own) for _, noise, own in close)
            yield Task(heavy, usual + wrong + close + right)
            rub = replace(light, friction=20.0, damping=10.0)
            yield Task(
                rub, each("friction", i, both=True) + each("everything", i, both=True)
            )
            yield Task(replace(light, tiles=TILES, seed=i), each("uneven", i))
            yield Task(
                replace(light, gait=STANDS | {"velocity_x": 0.5}), each("speed", i)
            )
            yield Task(
                replace(light, gait=STANDS | {"frequency": 2.0}), each("2 Hz", i)
            )
    for i, offset in enumerate(OFFSETS):
        load = (PAYLOAD, CORNERS[i], LIFT_OFF + DROP)
        dropped = replace(run, offset=offset, payload=load, seconds=SECONDS + 1.0)
        fast = replace(dropped, gait=STANDS | {"frequency": 2.0})
        rubs = replace(dropped, friction=20.0, damping=10.0)
        for k, (name, task) in enumerate((("2 Hz", fast), ("friction", rubs))):
            own = seed + 700 + 100 * k + 10 * i
            yield Task(
                task,
                tuple(
                    (f"payload {name}", noise, own + j)
                    for j, noise in enumerate(noises)
                ),
            )
    for i in range(20 if full else 10):
        rng = np.random.default_rng([seed, i])
        heavy_too = i % 5 > 2  # on both contact models
        model, config, _ = build(replace(run, robot=HEAVY if heavy_too else LIGHT))
        std = FloatingBaseEstimator(model, config).prior_std
        rubbing = replace(
            run,
            robot=HEAVY if heavy_too else LIGHT,
            offset=OFFSETS[i % 3],
            contact_time=CONTACTS[i % 2],
            friction=np.abs(std[STATE.coulomb] * rng.standard_normal(12)),
            damping=np.abs(std[STATE.viscous] * rng.standard_normal(12)),
        )
        name = "ensemble heavy" if heavy_too else "ensemble"
        count = 8 if heavy_too and not full else 6
        yield Task(
            rubbing,
            tuple((name, noises[k % 2], seed + 1000 * i + k) for k in range(count)),
        )


def drawn(case: str, std: Array, rng: np.random.Generator) -> tuple[Errors, Array]:
    """Errors of a case, and the factors (12,) of the links' masses in the estimator's URDF."""
    normal = rng.standard_normal
    torque = 20.0 * normal(12)
    known = Errors(
        0.03 * normal(12), torque, 0.0, 0.5 * DEG * normal(12), DEG * normal(3)
    )
    known = replace(known, arm=0.03 * normal(3))
    links = 1.0 + 0.1 * normal(12)
    one = np.ones(12)
    if case.startswith("ensemble"):
        part = {
            name: std[block] * normal(block.stop - block.start)
            for name, block in named()
        }
        errors = Errors(
            part["gain"],
            part["torque_bias"],
            part["rotor"],
            part["zero"],
            part["tilt"],
            part["arm"],
            float(part["delay"][0]),
        )
        return errors, np.maximum(1.0 + part["link"], 0.2)
    return {
        "zeros": (Errors(zero=0.5 * DEG * normal(12)), one),
        "tilt": (Errors(tilt=1.5 * DEG * normal(3)), one),
        "arm": (Errors(arm=0.03 * normal(3)), one),
        "delay": (Errors(delay=0.002), one),
        "bias": (Errors(bias=torque), one),
        "gain": (Errors(gain=0.03 * normal(12), bias=torque), one),
        "rotor": (Errors(rotor=0.5), one),
        "links": (Errors(), links),
        "heavy links": (Errors(), links),
        "heavy weighed": (Errors(), 1.0 + 0.03 * normal(12)),
        "everything": (known, links),
        "payload errors": (known, one),
        "payload friction": (known, links),
    }.get(case, (Errors(), one))


def named() -> Iterator[tuple[str, slice]]:
    """The blocks of the filter's state by name."""
    yield from STATE._asdict().items()


def judge(task: Task) -> list[Outcome]:
    """Simulates, and lets the estimator see every case."""
    log = run_trot(task.run)
    return [follow(log, *case) for case in task.cases]


def follow(log: TrotLog, case: str, noise: str, seed: int) -> Outcome:
    """One case."""
    options = FloatingBaseOptions()
    if case in WEIGHED:
        options = replace(options, priors=Priors(link_mass=0.03))
    usual = FloatingBaseEstimator(log.model, log.config, options)
    errors, links = drawn(case, usual.prior_std, np.random.default_rng([seed, 1]))
    factor = 3.0 if case == "everything" else 1.0
    read = NOISES[noise](with_errors(log, errors), seed, factor)
    estimator = FloatingBaseEstimator(
        weighed(log.model, usual.legs, links), log.config, options
    )
    rows, took = [], []
    for k in range(len(read.time)):
        start = time.perf_counter_ns()
        estimate = estimator.update(read.sample(k))
        taken = time.perf_counter_ns() - start
        if estimate is not None:
            took.append(taken)
            e, C = estimate.com - log.trunk_com[k], estimate.covariance
            d2 = e[:2] @ np.linalg.solve(C[:2, :2], e[:2])
            known = estimate.status is Status.CONVERGED
            believed = robot_com(estimate.mass, estimate.com, estimator)
            true = robot_com(log.trunk_mass[k], log.trunk_com[k], usual)
            wrong = np.hypot(*(believed - true)) > USABLE * usual.leg_length
            judged = known, estimate.status in TRUSTED, wrong
            rows.append(
                (read.time[k] - LIFT_OFF, *e, *np.sqrt(np.diag(C)), d2, *judged)
            )
    found = np.array(rows)
    times, error, std = found[:, 0], found[:, 1:4], found[:, 4:7]
    loaded = task_payload(log)
    counted = times >= SETTLED
    just = np.zeros(len(times), dtype=bool)
    if loaded:
        counted &= (times < DROP) | (times >= DROP + AFTER_DROP)
        just = (times >= DROP) & (times < DROP + HALF_STRIDE)
    usable = (found[:, 9] > 0.0) & ~just
    lies = (found[:, 7] > BEYOND) & (found[:, 8] > 0.0) & ~just
    return Outcome(
        case=case,
        mean=np.abs(error[counted]).mean(axis=0),
        largest=float(np.abs(error[counted, :2]).max()),
        sigma=std[-1],
        squares=(error[-1] / std[-1]) ** 2,
        false=float(lies.mean()),
        converged=float(found[counted, 8].mean()),
        usable=float(found[counted, 9].mean()),
        usable_wrong=float(found[usable, 10].mean()) if usable.any() else 0.0,
        changed_at=estimator.latest.payload_changed_at - LIFT_OFF,
        update_us=float(np.median(took)) / 1e3,
        limited_by=estimator.latest.limited_by,
    )


def robot_com(mass: float, com: Array, estimator: FloatingBaseEstimator) -> Array:
    """CoM (2,) of a trunk (kg, m) with the legs of an estimator's URDF in x and y, m."""
    masses, moments = estimator.links
    return np.asarray((mass * com + moments.sum(axis=0))[:2] / (mass + masses.sum()))


def task_payload(log: TrotLog) -> bool:
    """Whether something drops on the trunk."""
    return log.run.payload is not None


def summary(outcomes: list[Outcome]) -> dict[str, Any]:
    """The figures of a case."""
    squares = np.mean([o.squares for o in outcomes], axis=0)
    alarms = [o for o in outcomes if np.isfinite(o.changed_at)]
    payload = outcomes[0].case.startswith("payload")
    return {
        "mean_mm": rounded(1e3 * np.mean([o.mean[:2] for o in outcomes], axis=0)),
        "max_mm": round(1e3 * max(o.largest for o in outcomes), 2),
        "sigma_mm": round(
            1e3 * float(np.mean([o.sigma[:2].max() for o in outcomes])), 2
        ),
        "nees": round(float(squares[:2].max()), 2),
        "nees_xyz": rounded(squares),
        "z_mean_mm": round(1e3 * float(np.mean([o.mean[2] for o in outcomes])), 2),
        "false_converged": round(float(np.mean([o.false for o in outcomes])), 4),
        "false_alarms": sum(o.changed_at < DROP for o in alarms)
        if payload
        else len(alarms),
        "converged": round(float(np.mean([o.converged for o in outcomes])), 3),
        "usable": round(float(np.mean([o.usable for o in outcomes])), 3),
        "usable_wrong": round(float(np.mean([o.usable_wrong for o in outcomes])), 4),
        "runs": len(outcomes),
    }


def rounded(values: Array) -> list[float]:
    """As JSON has them."""
    return [round(float(v), 2) for v in values]


def noticed(outcomes: list[Outcome]) -> float | None:
    """Fraction of runs in which the payload was noticed in time, and confirmed."""
    if not outcomes:
        return None
    return float(np.mean([0.0 <= o.changed_at - DROP <= NOTICED for o in outcomes]))


def long_runs(seed: int) -> list[Task]:
    """Ten minutes of each ground, a minute at a time."""
    return [
        Task(
            TrotRun(
                LIGHT,
                seconds=60.0,
                noise=CLEAN,
                gait=STANDS,
                offset=OFFSETS[i % 3],
                contact_time=contact,
                tiles=tiles,
                seed=i,
            ),
            ((f"long {name}", tuple(NOISES)[i % 2], seed + i),),
        )
        for name, contact, tiles in (
            ("nominal", CONTACTS[0], 0.0),
            ("stiff", STIFF, 0.0),
            ("uneven", CONTACTS[0], TILES),
        )
        for i in range(10)
    ]


def main() -> int:
    """Simulates and prints."""
    parser = argparse.ArgumentParser(
        description="Honesty of the trunk's CoM while trotting."
    )
    parser.add_argument("--seed", type=int, default=4200)
    parser.add_argument(
        "--full", action="store_true", help="the published table, an hour and more"
    )
    parser.add_argument("--cases", nargs="*", default=(), help="only these")
    parser.add_argument("--processes", type=int, default=2, help="so many at a time")
    args = parser.parse_args()
    planned = list(tasks(args.full, args.seed)) + (
        long_runs(args.seed) if args.full else []
    )
    if args.cases:
        kept = [
            replace(t, cases=tuple(c for c in t.cases if c[0] in args.cases))
            for t in planned
        ]
        planned = [task for task in kept if task.cases]
    cases: dict[str, list[Outcome]] = defaultdict(list)
    for outcomes in in_processes(judge, planned, "trots", args.processes):
        for outcome in outcomes:
            cases[outcome.case].append(outcome)
    found = {case: summary(outcomes) for case, outcomes in cases.items()}
    table = Table(
        "case",
        "mean x y [mm]",
        "max",
        "sigma",
        "NEES x y z",
        "false",
        "alarms",
        "known",
    )
    for case, f in found.items():
        table.add_row(
            f"{case} ({f['runs']})",
            " ".join(map(str, f["mean_mm"])),
            str(f["max_mm"]),
            str(f["sigma_mm"]),
            " ".join(map(str, f["nees_xyz"])),
            str(f["false_converged"]),
            str(f["false_alarms"]),
            str(f["converged"]),
        )
    console = Console(width=120)
    console.print(table)
    for case, outcomes in cases.items():
        console.print(f"{case}: {outcomes[0].limited_by}", highlight=False)
    drawn_cases = [
        f["nees_xyz"] for case, f in found.items() if case.startswith("ensemble")
    ]
    of_xy = [v for nees in drawn_cases for v in nees[:2]]
    result = {
        "cases": found,
        "worst_false_converged": max(f["false_converged"] for f in found.values()),
        "usable_wrong": max(f["usable_wrong"] for f in found.values()),
        "nees_range": [min(of_xy), max(of_xy)] if of_xy else None,
        "nees_z": [nees[2] for nees in drawn_cases],
        "payload_1pct_noticed": noticed(cases["payload"]),
        "payload_noticed_with_errors": noticed(cases["payload errors"]),
        "payload_noticed_at_2_hz": noticed(cases["payload 2 Hz"]),
        "payload_noticed_with_friction": noticed(cases["payload friction"]),
        "update_us": round(
            float(np.median([o.update_us for c in cases.values() for o in c])), 1
        ),
    }
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
