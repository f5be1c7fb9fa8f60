"""What is wrong with a humanoid while it moves: names, CoM, events, falls, on simulated robots.

Cases of one culprit each (and none) in walks, turning walks, sway with turns of the torso, and
standing; background errors in all: link masses 1 %, CoMs 2 mm (of 0.86 m), leg encoders 0.03
degrees, F/T zeros 0.5 N and 0.05 N m (of 90 kg), gains 0.3 %, IMU 0.03 degrees with a wander of
3e-4 rad, noise. Nothing was tuned on these seeds; the tuning is that of the method's derivation.

More stresses, without a culprit: joints that give by 3e-4 rad/(N m) (soft); backlash of 0.1
degrees, 1e-4 rad/(N m), wrenches 10 ms and the IMU 5 ms late (mild); an IMU 10 and 20 ms late;
backlash of 0.3 degrees; two drivers of joint_states in turn; a foot's wrench frozen for 2 s.

Beside single culprits: pairs of a constant and an onset culprit; stress, that is wrenches 10 ms
late, an IMU that wanders by 1e-3 rad, joints that give by 5e-5 rad/(N m), masses and CoMs three
times as wrong; pushes of 0.15 to 0.35 of the weight for falls; "mixed" walks with and without the
stabiliser, each with a payload, a push of up to 0.1 of the weight for 0.2 s, or both. A robot falls
where its loaded sole tilts by 10 degrees, also if the recording ends there. Standing, a
constant culprit other than the IMU's tilt counts as wrong when it is named.

The last line is one JSON object: robots (by robot and motion: cases, named, undecided, wrong,
com_mm (mean horizontal error), nees (mean, 2 degrees of freedom, over 2), unexplained (at the end),
fell), wrong_names, wrong_stressed, wrong_pairs (cases with a wrong name under stress, and of
pairs), pairs, pairs_named (both), seen_s and named_s (latest, of single payloads and pulls),
push_named_s, push_impulse (largest relative error), fall_lead_s (least, before a loaded sole tilts
by 10 degrees), fall_after_s (least, from the beginning of a push for a fall until then), falls,
warned, false_alarms, false_fall_warnings (under stress), false_pushes (most in a soft or mild walk
without a push), input_named_s (latest, until the reason names two drivers or a frozen wrench; 99:
never), walks (recordings without a fall), step_us (99th percentile of CPU time of a
sample without naming, which runs elsewhere; the least of three replays of each sample, so that
other load does not count), node_cpu_percent (of one core, that the node takes at 200 Hz while the
first robot walks; see diagnosis_node.py).
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

import numpy as np
from diagnosis_lab import Errors, Load, Log, believed, load, simulate, spoil
from processes import in_processes
from rich.console import Console
from rich.table import Table

from com_estimation.humanoid.diagnosis import EventKind
from com_estimation.humanoid.estimator import HumanoidEstimator
from com_estimation.humanoid.layout import Kind

ONSET = 4.0  # s
CULPRITS = ("none", "trunk", "zero", "tilt", "ankle", "hand", "back", "pull", "push")
CONSTANT, ONSET_CULPRITS = CULPRITS[1:5], CULPRITS[5:]
STRESS = ("delay", "wander", "flexible", "masses")
# errors of the stresses: flexibility rad/(N m), times s, backlash rad
STRESSES: dict[str, dict[str, float]] = {
    "masses": {"masses": 3.0},
    "wander": {"wander": 1e-3},
    "delay": {"delay": 0.01},
    "flexible": {"flexibility": 5e-5},
    "soft": {"flexibility": 3e-4},
    "mild": {
        "flexibility": 1e-4,
        "delay": 0.01,
        "imu_delay": 0.005,
        "backlash": np.radians(0.1),
    },
    "imu late": {"imu_delay": 0.01},
    "imu later": {"imu_delay": 0.02},
    "backlash": {"backlash": np.radians(0.3)},
    "drivers": {"drivers": ONSET},
    "frozen": {"frozen": ONSET},
}
HEALTHY = ("soft", "mild")  # stresses of robots without a fault
INPUTS = ("drivers", "frozen")  # those that the reason must name
REPLAYS = 3
FALLS = (0.15, 0.25, 0.35)  # of the weight, pushes for 0.3 s


@dataclass(frozen=True)
class Batch:
    """Cases that share a simulated motion where they can."""

    robot: str
    motion: str
    seed: int
    culprits: tuple[str, ...] = CULPRITS
    feedback: bool = False
    stress: str = ""


@dataclass
class Case:
    """What came out."""

    culprit: str
    named: dict[str, float] = field(default_factory=dict)
    right: bool = False
    wrong: tuple[str, ...] = ()
    com_error: float = np.nan  # m
    nees: float = np.nan
    seen: float = np.nan  # s after the onset
    impulse: float = np.nan
    fell: bool = False
    lead: float = np.nan  # s
    after: float = np.nan  # s, from the onset to the fall
    warned: bool = False
    pushes: int = 0  # events said to be pushes
    reason_after: float = np.nan  # s after ONSET, until the reason names the input


def arrange(
    batch: Batch, culprit: str
) -> tuple[tuple[Load, ...], Errors, list[tuple[Kind, int]]]:
    """Loads, errors and the truth (kind, index among its kind; nothing for a push) of a case."""
    if "+" in culprit:
        (_, errors, truth), (loads, _, other) = (
            arrange(batch, c) for c in culprit.split("+")
        )
        return loads, errors, truth + other
    loads, errors, one = arrange_one(batch, culprit)
    return loads, errors, [] if one is None else [one]


def arrange_one(
    batch: Batch, culprit: str
) -> tuple[tuple[Load, ...], Errors, tuple[Kind, int] | None]:
    """The same of one culprit."""
    layout = load(batch.robot)[3]
    rng = np.random.default_rng(
        [batch.seed, CULPRITS.index(culprit) if culprit in CULPRITS else 99]
    )
    M, W, h = layout.mass, layout.weight, layout.height
    plant, sign = layout.plant, rng.choice([-1.0, 1.0], 8)
    trunk, scale = plant.blocks.trunk, rng.uniform(0.8, 1.2)
    unit = M / 90.3 * np.repeat([1.0, h / 0.86], 3)
    foot = int(rng.integers(2))
    basis: dict[str, Any] = STRESSES.get(batch.stress, {})
    if culprit == "trunk":
        shift = 0.0057 * M * h / plant.tree.mass[trunk] * scale * sign[0]
        return (
            (),
            Errors(trunk=(shift, 0.3 * shift * sign[1], 0.0), **basis),
            (Kind.TRUNK_COM, 0),
        )
    if culprit == "zero":
        zero = np.zeros((2, 6))
        zero[foot] = scale * unit * sign[:6] * [5.0, 4.0, 7.0, 0.5, 0.6, 0.4]
        return (
            (),
            Errors(zero=tuple(map(tuple, zero)), **basis),
            (Kind.WRENCH_ZERO, foot),
        )
    if culprit == "tilt":
        return (
            (),
            Errors(tilt=(0.012 * scale * sign[0], 0.004), **basis),
            (Kind.IMU_TILT, 0),
        )
    if culprit == "ankle":
        joints = plant.tree.q_index[plant.joint[2 * foot : 2 * foot + 2, 0]]
        off = tuple(
            (int(j), 0.007 * scale * s) for j, s in zip(joints, sign[:2], strict=True)
        )
        return (), Errors(encoders=off, **basis), (Kind.ENCODER_ZERO, foot)
    hands = [int(b) for b, _ in plant.point[:-2]]
    if culprit in ("hand", "back"):
        body = hands[foot % len(hands)] if culprit == "hand" else trunk
        away = (
            [-0.12 * h, 0.0, 0.08 * h] if culprit == "back" else [0.0, 0.0, -0.02 * h]
        )
        where = plant.com[body] + plant.triad[body] @ np.array(away)
        put = Load(body, ONSET, mass=0.045 * M * scale, position=tuple(where))
        return (
            (put,),
            Errors(**basis),
            (Kind.PAYLOAD, foot if culprit == "hand" else len(hands)),
        )
    if culprit == "pull":
        force = 0.0226 * W * scale * np.array([0.4 * sign[0], sign[1], 0.0])
        return (
            (Load(trunk, ONSET, force=tuple(force)),),
            Errors(**basis),
            (Kind.PULL, 0),
        )
    if culprit == "push":
        force = 0.09 * W * scale * np.array([sign[0], 0.3 * sign[1], 0.0])
        return (
            (Load(trunk, ONSET, force=tuple(force), duration=0.2),),
            Errors(**basis),
            None,
        )
    if culprit.startswith("mixed"):
        rng = np.random.default_rng([batch.seed, 98, int(culprit[5:])])
        kind, loads = rng.integers(3), list[Load]()
        if kind != 1:
            body, below = int(rng.choice(hands)), np.array([0.0, 0.0, -0.02 * h])
            where = plant.com[body] + plant.triad[body] @ below
            mass = rng.uniform(0.01, 0.05) * M
            loads.append(
                Load(body, rng.uniform(2.0, 6.0), mass=mass, position=tuple(where))
            )
        if kind != 0:
            angle, size = rng.uniform(0.0, 2.0 * np.pi), rng.uniform(0.02, 0.1) * W
            push = size * np.array([np.cos(angle), np.sin(angle), 0.0])
            loads.append(
                Load(trunk, rng.uniform(2.0, 8.0), force=tuple(push), duration=0.2)
            )
        return tuple(loads), Errors(**basis), None
    if culprit.startswith("fall"):
        angle = rng.uniform(0.0, 2.0 * np.pi)
        force = float(culprit[4:]) * W * np.array([np.cos(angle), np.sin(angle), 0.0])
        return (
            (Load(trunk, ONSET, force=tuple(force), duration=0.3),),
            Errors(**basis),
            None,
        )
    return (), Errors(**basis), None


def run(batch: Batch) -> list[Case]:
    """Lets a robot move, and the estimator watch."""
    plain: Log | None = None
    cases = []
    for culprit in batch.culprits:
        loads, errors, truth = arrange(batch, culprit)
        if loads or plain is None:
            log = simulate(batch.robot, batch.motion, batch.seed, loads, batch.feedback)
            plain = plain if loads else log
        else:
            log = plain
        cases.append(judge(batch, culprit, log, errors, truth))
    return cases


def judge(
    batch: Batch, culprit: str, log: Log, errors: Errors, truth: list[tuple[Kind, int]]
) -> Case:
    """Runs the estimator over a log."""
    _, config, _, layout = load(batch.robot)
    model = believed(batch.robot, errors, batch.seed)
    read = spoil(batch.robot, log, errors, batch.seed)
    tilted = log.time[log.tilt > np.radians(10.0)]
    falls_at = float(tilted[0]) if len(tilted) else log.fell_at
    estimator, case = (
        HumanoidEstimator(model, config),
        Case(culprit, fell=bool(falls_at < np.inf)),
    )
    right = {
        [i for i, c in enumerate(layout.culprits) if c.kind is kind][index]
        for kind, index in truth
    }
    found: set[int] = set()
    kinds = (Kind.IMU_TILT, Kind.PAYLOAD, Kind.PULL)  # that may be named standing
    lasting = {i for i, c in enumerate(layout.culprits) if c.kind in kinds}
    payload = any(put.mass for put in arrange(batch, culprit)[0])
    # it may be named, small ones may not
    mixed = culprit.startswith("mixed") and payload
    warned = np.nan
    wrong: set[str] = set()
    out = None
    for k in range(len(read.time)):
        out = estimator.update(read.time[k], read.q[k], read.R[k], read.wrenches[k])
        assert out is not None
        if out.fall_warning and np.isnan(warned):
            warned = float(read.time[k])
        blamed = "two drivers" in out.reason or "the wrench of" in out.reason
        if np.isnan(case.reason_after) and read.time[k] >= ONSET and blamed:
            case.reason_after = float(read.time[k] - ONSET)
        if estimator.process():
            for finding in estimator.diagnosis.verdict.findings:
                if finding.named:
                    name = layout.culprits[finding.culprit].name
                    case.named.setdefault(name, float(read.time[k]))
                    stands = batch.motion == "stand" and finding.culprit not in lasting
                    if finding.culprit in right and not stands:
                        found.add(finding.culprit)
                    elif (
                        mixed and layout.culprits[finding.culprit].kind is Kind.PAYLOAD
                    ):
                        continue
                    elif not (case.fell and read.time[k] > falls_at - 1.0):
                        wrong.add(name)
    assert out is not None
    case.right = bool(right) and found == right
    happened = estimator.diagnosis.events
    case.pushes = sum(e.kind is EventKind.PUSH for e in happened)
    case.wrong, case.warned = tuple(sorted(wrong)), bool(np.isfinite(warned))
    if case.fell:
        case.lead, case.after = falls_at - warned, falls_at - ONSET
        return case
    R = log.R[-1]
    error = (R @ (out.com - log.com[-1]))[:2]
    if batch.stress in INPUTS:
        case.com_error = float(np.linalg.norm(error))
        return case
    cov = (R @ out.covariance @ R.T)[:2, :2]
    case.com_error = float(np.linalg.norm(error))
    case.nees = float(error @ np.linalg.solve(cov, error)) / 2.0
    onset = culprit.partition("+")[2] or culprit
    wanted = EventKind.PUSH if onset == "push" else EventKind.CHANGE
    events = [e for e in estimator.diagnosis.events if abs(e.start - ONSET) < 1.0]
    event = next((e for e in events if e.kind is wanted), None)
    if event is not None and onset in ONSET_CULPRITS:
        case.seen = event.seen - ONSET
        if onset == "push":
            case.right = found == right
            case.named["push"] = event.decided
            force = arrange(batch, culprit)[0][0].force
            true = 0.2 * np.array(force)
            case.impulse = float(
                np.linalg.norm(event.impulse - true) / np.linalg.norm(true)
            )
    return case


def time_steps(robot: str, seed: int) -> float:
    """99th percentile of a sample's CPU time in a walk, us."""
    estimator = HumanoidEstimator(believed(robot, Errors(), seed), load(robot)[1])
    read = spoil(robot, simulate(robot, "walk", seed), Errors(), seed)
    spent = np.full((REPLAYS, len(read.time)), np.inf)
    for row in spent:
        estimator.restart()
        for k in range(len(row)):
            begin = time.thread_time_ns()
            estimator.update(read.time[k], read.q[k], read.R[k], read.wrenches[k])
            row[k] = 1e-3 * (time.thread_time_ns() - begin)
    return float(np.percentile(spent.min(axis=0)[10:], 99))


def summary(batches: list[Batch], results: list[list[Case]]) -> dict[str, Any]:
    """The last line."""
    robots: dict[str, dict[str, Any]] = {}
    nominal = [(b, c) for b, cs in zip(batches, results, strict=True) for c in cs]
    for batch in batches:
        motion = " ".join(
            filter(None, (batch.motion, "stabilised" * batch.feedback, batch.stress))
        )
        cases = [
            c for b, c in nominal
            if replace(b, seed=0, culprits=()) == replace(batch, seed=0, culprits=())
            and c.culprit in CULPRITS
        ]  # fmt: skip
        if not cases:
            continue
        stood = [c for c in cases if not c.fell]
        guilty = [c for c in stood if c.culprit != "none"]
        known = [c.nees for c in stood if np.isfinite(c.nees)]
        robots.setdefault(batch.robot, {})[motion] = {
            "cases": len(stood),
            "named": sum(c.right for c in guilty),
            "undecided": sum(not c.right and not c.wrong for c in guilty),
            "wrong": sum(bool(c.wrong) for c in stood),
            "com_mm": round(1e3 * fmean(c.com_error for c in stood), 2)
            if stood
            else None,
            "nees": round(fmean(known), 2) if known else None,
            "unexplained": len(stood) - len(known),
            "fell": len(cases) - len(stood),
        }
    stressed = [c for b, c in nominal if b.stress]
    usual = [c for b, c in nominal if not b.stress]
    pairs = [c for c in usual if "+" in c.culprit and not c.fell]
    lasting = [c for c in usual if c.culprit in ("hand", "back", "pull") and not c.fell]
    pushes = [c for c in usual if c.culprit == "push" and not c.fell]
    falls = [c for _, c in nominal if c.fell]

    def most(values: list[float]) -> float | None:
        known = [v for v in values if np.isfinite(v)]
        return round(max(known), 2) if known else None

    leads = [c.lead for c in falls if c.warned]
    least = round(min(leads), 2) if leads else None
    after = [c.after for c in falls if c.culprit.startswith("fall")]
    when = [min(c.named.values()) - ONSET for c in lasting if c.right]
    return {
        "robots": robots,
        "wrong_names": sum(bool(c.wrong) for c in usual if "+" not in c.culprit),
        "wrong_stressed": sum(bool(c.wrong) for c in stressed),
        "pairs": len(pairs),
        "pairs_named": sum(c.right for c in pairs),
        "wrong_pairs": sum(bool(c.wrong) for c in pairs),
        "seen_s": most([c.seen for c in lasting]),
        "named_s": most(when),
        "push_named_s": most([c.named["push"] - ONSET for c in pushes if c.right]),
        "push_impulse": most([c.impulse for c in pushes]),
        "falls": len(falls),
        "warned": sum(c.warned for c in falls),
        "fall_lead_s": least,
        "fall_after_s": round(min(after), 2) if after else None,
        "false_alarms": sum(c.warned for _, c in nominal if not c.fell),
        "false_fall_warnings": sum(c.warned for c in stressed if not c.fell),
        "false_pushes": most(
            [
                float(c.pushes)
                for b, c in nominal
                if b.stress in HEALTHY and c.culprit == "none" and not c.fell
            ]
        ),
        "input_named_s": most(
            [
                c.reason_after if np.isfinite(c.reason_after) else 99.0
                for b, c in nominal
                if b.stress in INPUTS
            ]
        ),
        "walks": sum(not c.fell for _, c in nominal),
    }


def main() -> int:
    """Runs and prints."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument(
        "--full", action="store_true", help="27 cases by robot and motion, stress"
    )
    parser.add_argument("--seed", type=int, default=5000, help="the first one")
    parser.add_argument("--robots", nargs="+", default=["talos", "icub", "hoap2"])
    parser.add_argument("--motions", nargs="+", default=[])
    parser.add_argument("--culprits", nargs="+", default=[])
    parser.add_argument("--processes", type=int, default=2, help="so many at a time")
    args = parser.parse_args()
    few = ("none", "trunk", "tilt", "hand", "pull")
    pairs = tuple(f"{a}+{b}" for a in CONSTANT for b in ONSET_CULPRITS)
    batches = []
    for robot in args.robots:
        main_robot = robot == "talos"
        motions = (
            ["walk", "sway", "turn", "stand"] if args.full or main_robot else ["walk"]
        )
        for motion in args.motions or (
            motions if args.full else [m for m in motions if m != "turn"]
        ):
            which = CULPRITS if args.full or (main_robot and motion != "stand") else few
            which = tuple(args.culprits) or which
            for seed in range(3 if args.full else 1):
                batches.append(Batch(robot, motion, args.seed + seed, which))
    if not args.motions and "talos" in args.robots:
        hard = CULPRITS if args.full else ("none", "tilt", "hand")
        batches += [
            Batch("talos", "walk", args.seed + 50, hard, stress=s) for s in STRESS
        ]
        none = ("none",)
        for stress in [s for s in STRESSES if s not in STRESS]:
            walks = 10 if args.full and stress in HEALTHY else 2
            batches += [
                Batch("talos", "walk", args.seed + 300 + k, none, stress=stress)
                for k in range(walks)
            ]
        if args.full:
            batches += [
                Batch("talos", "sway", args.seed + 51, hard, stress=s) for s in STRESS
            ]
        for k in range(2 if args.full else 1):
            batches.append(
                Batch(
                    "talos", "walk", args.seed + 80 + k, pairs[:: 1 if args.full else 5]
                )
            )
        for k in range(20 if args.full else 4):
            mixed = tuple(f"mixed{i}" for i in range(5))
            batches.append(
                Batch("talos", "walk", args.seed + 200 + k, mixed, feedback=k % 2 == 1)
            )
        pushes = tuple(f"fall{size}" for size in FALLS)
        for k in range(6 if args.full else 2):
            batches.append(
                Batch("talos", "walk", args.seed + 60 + k, pushes, feedback=k % 2 == 1)
            )
        batches.append(Batch("talos", "walk", args.seed + 70, few, feedback=True))
    results = in_processes(run, batches, "motions", args.processes)
    table = Table("robot", "motion", "culprit", "named", "wrong", "CoM, mm", "NEES")
    for batch, cases in zip(batches, results, strict=True):
        for c in cases:
            names = ", ".join(f"{n} {t:.1f} s" for n, t in c.named.items())
            table.add_row(
                batch.robot, f"{batch.motion} {batch.stress}", c.culprit + " fell" * c.fell, names,
                ", ".join(c.wrong), f"{1e3 * c.com_error:.2f}", f"{c.nees:.2f}",
            )  # fmt: skip
    Console(width=150).print(table)
    from diagnosis_node import node_figures  # here: it needs ROS, the motions do not

    costs = {"step_us": round(time_steps(args.robots[0], args.seed), 1)}
    costs["node_cpu_percent"] = node_figures(args.robots[0], args.seed)[
        "node_cpu_percent"
    ]
    print(json.dumps(summary(batches, results) | costs))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
