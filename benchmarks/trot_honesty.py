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
steps at 2 Hz, `payload friction`: with the errors of `payload errors`, and friction and links;
`payload phase`: on each corner with each offset and at each phase (--full: 60 of them),
`payload 20 kg`: so, high above it, through the checks of the node (TrunkPipeline).
Errors of another family than the priors (uniform, or with a sign): `geometry 5 mm`: lengths of
hip, thigh and shank and the hips' places, `common gain`: all torques 5 % too large or 10 % too
small, `drives`: torques 5 % too small with a spread of 3 %, 3 ms late behind a low pass of 60 Hz,
friction of 12 N m and 5 N m s, elastic by 2e-5 rad/(N m), `load friction`: 5 to 20 % of the torques
of hips and thighs, 15 to 35 % of those of calves, `heavy link CoMs`: off by 2 cm, `rope`:
it lifts 3 % of the weight at a hip from 5 s on.
Healthy robots, through these checks, too: `healthy`, `healthy 0.5 m/s` and so
on; `shocks`: stiff feet whose touch-downs ring with 60 to 120 m/s^2; bound and crawl.
`ensemble`: all errors drawn from the priors, `ensemble heavy` likewise; 24 runs each and more.

Errors are estimate minus truth from 2 s after the first lift-off on (payload: from 2.5 s after the
drop on as well). The last line is one JSON object:

  cases: {case: {mean_mm [x, y], max_mm (of x and y), sigma_mm (at the end, the larger of x and y),
    nees (at the end, worst axis of x and y; nees_xyz all), false_converged (share of time
    CONVERGED with an error in x, y beyond 99.9 %, the half stride after a payload left out),
    false_alarms (runs), converged, usable (shares of time), usable_wrong (of the time USABLE or
    CONVERGED, the half stride after a payload left out, the share in which the robot's CoM by the
    estimate and the estimator's legs is off by more than 1 % of the leg length in x and y), runs}}
  worst_false_converged; usable_wrong, wrong_fraction: the worst of those
  degraded_fraction: the worst of the healthy ones
  nees_range: least and largest NEES of x, y in the ensembles (nees_z: of z)
  payload_1pct_noticed: fraction of the payload runs in which it was noticed within 2 s and
    confirmed; payload_noticed_with_errors likewise, payload_noticed_at_2_hz,
    payload_noticed_with_friction, payload_noticed_any_phase; payload_20_kg_noticed: within 1 s
  update_us: median time of an update() with an estimate, here

The cases `long ...` (--full) are ten minutes each, a minute at a time, on two contact models and on
those tiles.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from trot_errors import (
    NOISES,
    Errors,
    lengthened,
    moved_links,
    weighed,
    with_errors,
    with_shocks,
)
from trot_gaits import GAITS, PhasedGait
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
from com_estimation.trunk.ground_reaction import INVERSE_DYNAMICS, ForceMeter
from com_estimation.trunk.pipeline import InputChecks, TrunkPipeline
from com_model import RobotModel
from com_model.legs import Leg
from com_model.status import TRUSTED, Status

Array = NDArray[np.float64]

LIGHT, HEAVY = "scalf2", "scalf2_heavy"
OFFSETS = ((-0.03, 0.10, 0.0), (0.0, 0.03, 0.0), (-0.10, 0.0, 0.0))
CONTACTS = (0.01, 0.02)  # s
STIFF = 0.004
CORNER_OFFSET = (-0.03, 0.03, 0.0)  # of the CoM, to a corner that a payload drops on
SECONDS = 9.0
CORNERS = ((0.55, 0.2, 0.1), (-0.55, 0.2, 0.1), (-0.55, -0.2, 0.1))
DROP = 5.0  # s after lift-off
PAYLOAD = 3.0  # kg
ROPE = 0.03  # of the weight, that a rope lifts
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
    """A simulation, and what the estimator gets of it: (case, noise, seed) each.

    Attributes:
        run: The simulation.
        cases: Case, noise and seed.
        gait: One of trot_gaits.GAITS; "": the suite's trot.
    """

    run: TrotRun
    cases: tuple[tuple[str, str, int], ...]
    gait: str = ""


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
    changed_at: float  # s after the drop, else after lift-off
    loaded: bool
    update_us: float
    limited_by: str
    wrong: float
    degraded: float
    mass_square: float
    reasons: tuple[str, ...]


def tasks(full: bool, seed: int) -> Iterator[Task]:
    """All simulations."""
    noises = tuple(NOISES)
    run = TrotRun(LIGHT, seconds=SECONDS, noise=CLEAN, gait=STANDS)
    contacts = (*CONTACTS, STIFF) if full else CONTACTS
    number = seed

    def each(case: str, i: int) -> tuple[tuple[str, str, int], ...]:
        nonlocal number
        chosen = noises if full else noises[i % 2 :][:1]
        number += len(noises)
        return tuple((case, noise, number + k) for k, noise in enumerate(chosen))

    for c, contact in enumerate(contacts):
        for i, offset in enumerate(OFFSETS):
            light = replace(run, offset=offset, contact_time=contact)
            yield Task(
                light,
                each("nominal", c + i)
                + tuple(
                    item
                    for case in (SINGLES if full else SINGLES[(c + i) % 4 :: 4])
                    for item in each(case, c + i)
                ),
            )
            load = (PAYLOAD, CORNERS[i], LIFT_OFF + DROP)
            dropped = replace(light, payload=load, seconds=SECONDS + 1.0)
            yield Task(
                dropped,
                each("payload", c + i) + each("payload errors", i),
            )
            if not full and (c + i) % 2:
                continue
            heavy = replace(light, robot=HEAVY)
            usual, wrong, close = (each(case, i) for case in (*HEAVY_CASES, WEIGHED[0]))
            right = tuple((WEIGHED[1], noise, own) for _, noise, own in close)
            yield Task(heavy, usual + wrong + close + right)
            rub = replace(light, friction=20.0, damping=10.0)
            yield Task(rub, each("friction", i) + each("everything", i))
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
                    if full or (i + j) % 2
                ),
            )
    yield from unnamed(run, full, seed)
    yield from healthy(run, full, seed)
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
        count = 6 if heavy_too or full else 4
        yield Task(
            rubbing,
            tuple((name, noises[k % 2], seed + 1000 * i + k) for k in range(count)),
        )


def unnamed(run: TrotRun, full: bool, seed: int) -> Iterator[Task]:
    """Errors and forces that are of another family than the estimator's priors, or have none."""
    noises = tuple(NOISES)
    for i in range(6 if full else 3):
        own = replace(run, offset=OFFSETS[i % 3], contact_time=CONTACTS[i % 2])

        def case(name: str, k: int, number: int = i) -> tuple[str, str, int]:
            return name, noises[(number + k) % 2], seed + 2000 + 10 * number + k

        names = ("geometry 3 mm", "geometry 5 mm", "geometry 10 mm", "common gain")
        twice = range(2 if full else 1)
        yield Task(own, tuple(case(name, k) for name in names for k in twice))
        rub = replace(own, friction=12.0, damping=5.0)
        yield Task(rub, tuple(case("drives", k) for k in twice))
        yield Task(own, tuple(case("load friction", k) for k in twice))
        heavy = replace(own, robot=HEAVY)
        yield Task(
            heavy, tuple(case("heavy link CoMs", k) for k in range(3 if full else 1))
        )
        yield Task(
            replace(own, rope=(ROPE, LIFT_OFF + DROP), seconds=SECONDS + 1.0),
            tuple(case("rope", k) for k in twice),
        )
    offsets = (CORNER_OFFSET, *OFFSETS, tuple(-v for v in OFFSETS[0]))
    for i in range(60 if full else 3):  # each corner, offset and third of a stride once
        corner = np.array(CORNERS[0]) * [(-1.0) ** i, (-1.0) ** (i // 2), 1.0]
        later = (i % 3 + i / 60.0) / 3.0  # s
        for name, mass, height in (
            ("payload phase", PAYLOAD, corner[2]),
            ("payload 20 kg", 20.0, 0.25),
        ):
            load = mass, (*corner[:2], height), LIFT_OFF + DROP + later
            yield Task(
                replace(
                    run,
                    offset=offsets[i % 5],
                    contact_time=CONTACTS[(i + i // 4) % 2],
                    payload=load,
                    seconds=SECONDS + 2.0,
                ),
                ((name, noises[(i // 2 + i // 8) % 2], seed + 2500 + i),),
            )


def healthy(run: TrotRun, full: bool, seed: int) -> Iterator[Task]:
    """Robots without a fault, seen through the checks of the node (TrunkPipeline)."""
    trots: dict[str, dict[str, float]] = {
        "": {},
        " 0.5 m/s": {"velocity_x": 0.5},
        " turning": {"yaw_rate": 0.5},
        " duty 0.6": {"duty_factor": 0.6},
        " 2 Hz": {"frequency": 2.0},
    }
    for i in range(6 if full else 2):
        own = replace(run, offset=OFFSETS[i % 3], contact_time=CONTACTS[i % 2])
        noise = tuple(NOISES)[i % 2]
        for name, gait in trots.items():
            cases = (f"healthy{name}", noise, seed + 3000 + i)
            rung = (f"healthy{name}, shocks", noise, seed + 3000 + i)
            yield Task(
                replace(own, gait=STANDS | gait),
                (cases, rung) if not name else (cases,),
            )
        for name in GAITS:
            yield Task(own, ((f"healthy {name}", noise, seed + 3100 + i),), name)


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
            float(part["late"][0]),
            load=np.tile(np.abs(part["load"]).clip(0.0, 0.4), 4),
        )
        return errors, np.maximum(1.0 + part["link"], 0.2)
    spread = 0.03 * normal(12)
    drives = Errors(spread - 0.05, late=0.003, low_pass=60.0, elastic=2e-5)
    return {
        "common gain": (Errors(gain=rng.choice([0.05, -0.1])), one),
        "drives": (drives, one),
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
        # of hips, thighs and calves: the last are driven through linkages
        "load friction": (
            Errors(
                load=rng.uniform([0.05, 0.05, 0.15], [0.2, 0.2, 0.35], (4, 3)).ravel()
            ),
            one,
        ),
    }.get(case, (Errors(), one))


def named() -> Iterator[tuple[str, slice]]:
    """The blocks of the filter's state by name."""
    yield from STATE._asdict().items()


def judge(task: Task) -> list[Outcome]:
    """Simulates, and lets the estimator see every case."""
    gait = partial(PhasedGait, **GAITS[task.gait]) if task.gait else None
    log = run_trot(task.run, make_gait=gait)
    return [follow(log, *case) for case in task.cases]


def wrong_model(
    case: str, log: TrotLog, links: Array, legs: Sequence[Leg], rng: np.random.Generator
) -> RobotModel:
    """The URDF that the estimator has; lengths and CoMs are off uniformly, with their rms."""
    root3 = np.sqrt(3.0)
    if case.startswith("geometry"):
        size = 1e-3 * float(case.split()[1])
        off = size * rng.uniform(-root3, root3, (2, 4, 3))
        return lengthened(log.model, legs, *off)
    if case == "heavy link CoMs":
        return moved_links(log.model, legs, 0.02 * rng.uniform(-root3, root3, (12, 3)))
    if case.startswith("ensemble"):
        hips = np.zeros((4, 3))
        hips[:, :2] = Priors().hip * np.linalg.norm(legs[0].hip - legs[3].hip)
        hips *= rng.standard_normal((4, 3))
        moved = lengthened(log.model, legs, np.zeros((4, 3)), hips)
        return weighed(moved, legs, links)
    return weighed(log.model, legs, links)


def follow(log: TrotLog, case: str, noise: str, seed: int) -> Outcome:
    """One case."""
    options = FloatingBaseOptions()
    if case in WEIGHED:
        options = replace(options, priors=Priors(link_mass=0.03))
    usual = FloatingBaseEstimator(log.model, log.config, options)
    errors, links = drawn(case, usual.prior_std, np.random.default_rng([seed, 1]))
    factor = 3.0 if case == "everything" else 1.0
    read = NOISES[noise](with_errors(log, errors), seed, factor)
    if case.endswith("shocks"):
        read = with_shocks(read, seed)
    rng = np.random.default_rng([seed, 2])
    model = wrong_model(case, log, links, usual.legs, rng)
    estimator = FloatingBaseEstimator(model, log.config, options)
    update = estimator.update
    if case.startswith(("healthy", "payload 20 kg")):
        checks = InputChecks(model, estimator.legs)
        meter = ForceMeter(model, log.config, estimator.legs, INVERSE_DYNAMICS)
        mass = float(model.bodies.mass[0])
        update = TrunkPipeline(estimator, checks, meter, mass).update
    rows, took = [], []
    reasons = set[str]()
    for k in range(len(read.time)):
        start = time.perf_counter_ns()
        estimate = update(read.sample(k))
        taken = time.perf_counter_ns() - start
        if estimate is not None:
            took.append(taken)
            e, C = estimate.com - log.trunk_com[k], estimate.covariance
            d2 = e[:2] @ np.linalg.solve(C[:2, :2], e[:2])
            known = estimate.status is Status.CONVERGED
            believed = robot_com(estimate.mass, estimate.com, estimator)
            true = robot_com(log.trunk_mass[k], log.trunk_com[k], usual)
            wrong = np.hypot(*(believed - true)) > USABLE * usual.leg_length
            degraded = estimate.status is Status.DEGRADED
            judged = known, estimate.status in TRUSTED, wrong, degraded
            if degraded and read.time[k] > LIFT_OFF:
                reasons.add(estimate.reason.split("; since")[0])
            rows.append(
                (read.time[k] - LIFT_OFF, *e, *np.sqrt(np.diag(C)), d2, *judged)
            )
    found = np.array(rows)
    times, error, std = found[:, 0], found[:, 1:4], found[:, 4:7]
    counted = times >= SETTLED
    just = np.zeros(len(times), dtype=bool)
    drop = changes_at(log)
    loaded = bool(np.isfinite(drop))
    if loaded:
        counted &= (times < drop) | (times >= drop + AFTER_DROP)
        just = (times >= drop) & (times < drop + HALF_STRIDE)
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
        changed_at=estimator.latest.payload_changed_at
        - LIFT_OFF
        - (drop if loaded else 0.0),
        loaded=loaded,
        update_us=float(np.median(took)) / 1e3,
        limited_by=estimator.latest.limited_by,
        wrong=float(((found[:, 7] > BEYOND) & (found[:, 9] > 0.0)).mean()),
        degraded=float(found[counted, 11].mean()),
        mass_square=(
            (estimator.latest.mass - log.trunk_mass[-1]) / estimator.latest.mass_std
        )
        ** 2,
        reasons=tuple(sorted(reasons)),
    )


def robot_com(mass: float, com: Array, estimator: FloatingBaseEstimator) -> Array:
    """CoM (2,) of a trunk (kg, m) with the legs of an estimator's URDF in x and y, m."""
    masses, moments = estimator.links
    return np.asarray((mass * com + moments.sum(axis=0))[:2] / (mass + masses.sum()))


def changes_at(log: TrotLog) -> float:
    """When something drops on the trunk or a rope lifts it, s after lift-off; inf: never."""
    if log.run.rope is not None:
        return log.run.rope[1] - LIFT_OFF
    return np.inf if log.run.payload is None else log.run.payload[2] - LIFT_OFF


def summary(outcomes: list[Outcome]) -> dict[str, Any]:
    """The figures of a case."""
    squares = np.mean([o.squares for o in outcomes], axis=0)
    alarms = [o for o in outcomes if np.isfinite(o.changed_at)]
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
        "false_alarms": sum(o.changed_at < 0.0 or not o.loaded for o in alarms),
        "converged": round(float(np.mean([o.converged for o in outcomes])), 3),
        "usable": round(float(np.mean([o.usable for o in outcomes])), 3),
        "usable_wrong": round(float(np.mean([o.usable_wrong for o in outcomes])), 4),
        "wrong_fraction": round(float(np.mean([o.wrong for o in outcomes])), 4),
        "degraded_fraction": round(float(np.mean([o.degraded for o in outcomes])), 4),
        "mass_nees": round(float(np.mean([o.mass_square for o in outcomes])), 2),
        "runs": len(outcomes),
    }


def rounded(values: Array) -> list[float]:
    """As JSON has them."""
    return [round(float(v), 2) for v in values]


def noticed(outcomes: list[Outcome], within: float = NOTICED) -> float | None:
    """Fraction of runs in which the payload was noticed in time, s, and confirmed."""
    if not outcomes:
        return None
    return float(np.mean([0.0 <= o.changed_at <= within for o in outcomes]))


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
        "usable",
        "wrong",
        "degraded",
        "mass NEES",
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
            str(f["usable"]),
            str(f["wrong_fraction"]),
            str(f["degraded_fraction"]),
            str(f["mass_nees"]),
        )
    console = Console(width=160)
    console.print(table)
    for case, outcomes in cases.items():
        console.print(f"{case}: {outcomes[0].limited_by}", highlight=False)
        for reason in sorted({r for o in outcomes for r in o.reasons}):
            console.print(f"  DEGRADED: {reason}", highlight=False)
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
        "payload_noticed_any_phase": noticed(cases["payload phase"]),
        "payload_20_kg_noticed": noticed(cases["payload 20 kg"], 1.0),
        "wrong_fraction": max(f["wrong_fraction"] for f in found.values()),
        "degraded_fraction": max(
            (
                f["degraded_fraction"]
                for c, f in found.items()
                if c.startswith("healthy")
            ),
            default=None,
        ),
        "update_us": round(
            float(np.median([o.update_us for c in cases.values() for o in c])), 1
        ),
    }
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
