"""Robots that are not as their URDF says, identified from walking without foot force sensors.

Each robot is drawn: link masses +-10 %, CoMs of links +-10 mm and of the trunk +-30 mm, inertias
+-10 %, 2 kg on the trunk at a random place; its joints rub and its sensors err (walking_lab.py).
It trots six gaits in MuJoCo, 10 s each, and is weighed. On a seventh gait the torques of the found
robot are compared with those of the true one, in the same motion and with the same forces of the
simulator on the feet (not with the simulator's torques: these forces, of one instant in 2 ms, leave
16 % even with the true robot). CoMs are those of the whole robot in 200
random postures within 0.4 rad of the mean one.

The last line is one JSON object, by robot type: com_mm_before and com_mm_after (rms of the length
of the error over the postures; of the robots drawn the largest), torque_percent (rms, likewise the
largest), coverage95 (fraction of the postures' components within 1.96 standard deviations), nees
(of the CoM, per dimension; mean), seconds (of identify_walking, as long as it took beside what else
ran), cpu_seconds (of identify_walking, one core, for 2 minutes at 500 Hz: the recordings of the
first robot of a kind, repeated), accepted (how many robots passed all required tests), and xyz_mm
(rms by axis, the largest).

The key load_friction has Go2s whose drives lose 5 to 35 % of their torque to friction in
proportion to it, with uniform errors of gains, late torques, stamps of receipt, and friction that,
robot by robot, reverses on a way of 1 to 4 mrad or as the tanh of the velocity over 0.05 to 0.5
rad/s, another in each drive; feet are 3.5 mm longer or shorter at most. Every other URDF is right;
of the others the trunk is 15 mm or 1.5 kg off. Robots are weighed to 0.1 kg; the verdicts are
those of judge_walk: nees_mass and nees_com (of the trunk), robots, confirmed and corrected
(fractions, of the right and of the other ones), wrong (right ones corrected, other ones
confirmed), and refused. 12 of them and the default of the others end in 10 minutes on two cores.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from processes import in_processes
from rich.console import Console
from rich.table import Table
from walking_humanoid import HUMANOIDS, record_humanoid
from walking_lab import (
    GAITS,
    PERIOD,
    RobotWithErrors,
    Walk,
    Wrong,
    by_size,
    imu_pose,
    record,
)

from com_bags import WalkLog
from com_identification.exceptions import IdentificationError
from com_identification.walking.combination import judge_walk
from com_identification.walking.evidence import Verdict
from com_identification.walking.identify import WalkResult, identify_walking
from com_identification.walking.unknowns import Scale, corrected_urdf
from com_model import RobotModel
from com_model.dynamics.inverse_dynamics import Dynamics
from com_model.dynamics.kinematics import body_poses, link_pose
from com_model.urdf.editing import correct_body, edit_inertials

Array = NDArray[np.float64]

POSTURES, SPREAD = 200, 0.4  # rad
TIMED = 120.0  # s


@dataclass(frozen=True)
class Case:
    """One robot; what: "go2", "talos", or "go2 " and something that the method does not model."""

    what: str
    seed: int
    seconds: float
    timed: bool = False  # cpu_seconds, too


UNMODELLED: dict[str, dict[str, Any]] = {
    "soft ground": {"contact_time": 0.04},
    "foot torsion": {"foot_friction": (1.0, 0.02, 0.0001)},
    "IMU 6 ms late": {"imu_late": 3},
    "flexible joints": {"stiffness": 1000.0},
    "default friction": {
        "friction_time": 0.02
    },  # of MuJoCo: it reverses before the velocity
}
VARIANTS = UNMODELLED | {"averaged": {"averaged": True}}
OTHERS = ("a1", "a1 averaged", "anymal", "hyq", "g1", "five-joint legs")


def true_com(model: RobotModel, q: Array) -> Array:
    """CoM (3,) m, root link's frame."""
    R, p = body_poses(model.bodies, q)
    return np.asarray(
        (model.bodies.mass @ p + np.einsum("bij,bj->i", R, model.bodies.first_moment))
        / model.bodies.mass.sum()
    )


def com_errors(
    robot: RobotWithErrors, result: WalkResult, seed: int
) -> tuple[Array, Array, Array]:
    """Errors (N, 3) m before and after, and whitened ones (N, 3) over their NEES."""
    rng = np.random.default_rng([seed, 3])
    before, after, relative, nees = [], [], [], []
    for _ in range(POSTURES):
        q = result.posture + rng.uniform(-SPREAD, SPREAD, result.model.n_joints)
        com, C = result.com(q)
        error = com - true_com(robot.true, q)
        before.append(true_com(robot.believed, q) - true_com(robot.true, q))
        after.append(error)
        relative.append(error / np.sqrt(np.diag(C)))
        nees.append(error @ np.linalg.solve(C, error) / 3.0)
    return np.array(before), np.array(after), np.column_stack([relative, nees])


def torque_percent(robot: RobotWithErrors, result: WalkResult, walk: Walk) -> float:
    """Error of the torques on a gait with its true forces, over their rms, %."""
    u, z = result.unknowns, result.z
    model = robot.config.attach(
        RobotModel.from_urdf(corrected_urdf(result.model, u.eta(z)))
    )
    f, v, armature = (u.joints(z, kind) for kind in ("coulomb", "viscous", "armature"))
    predicted, truth = (
        predict_torques(robot, model, walk, f, v, armature),
        true_torques(robot, walk),
    )
    return float(100.0 * np.sqrt(((predicted - truth) ** 2).mean() / (truth**2).mean()))


def predict_torques(
    robot: RobotWithErrors,
    model: RobotModel,
    walk: Walk,
    coulomb: Array,
    viscous: Array,
    armature: Array,
    every: int = 5,
) -> Array:
    """Torques (N, n) of a model in the motion of a walk with its forces on the feet."""
    clean, dynamics = walk.clean, Dynamics(model, armature)
    period = clean.time[1] - clean.time[0]
    R, p = imu_pose(robot)
    velocity, w = clean.velocity, clean.angular_velocity @ R.T
    rise, turn = (np.gradient(v, period, axis=0) for v in (velocity, w))
    force = clean.specific_force @ R.T - np.cross(turn, p) - np.cross(w, np.cross(w, p))
    chosen, torques = range(50, len(clean.time) - 50, every), []
    for k in chosen:
        q = clean.position[k]
        tau = dynamics.inverse_dynamics(
            (q, velocity[k], rise[k]), (w[k], turn[k], force[k])
        )[1]
        tau -= contact_torques(robot, model, q, walk.wrenches[k])
        torques.append(
            tau + coulomb * np.tanh(velocity[k] / 0.02) + viscous * velocity[k]
        )
    return np.array(torques)


def true_torques(robot: RobotWithErrors, walk: Walk, every: int = 5) -> Array:
    """Those of the true robot."""
    true, joints = (
        robot.config.attach(robot.true),
        (robot.coulomb, robot.viscous, robot.armature),
    )
    return predict_torques(robot, true, walk, *joints, every=every)


def contact_torques(
    robot: RobotWithErrors, model: RobotModel, q: Array, wrenches: Array
) -> Array:
    """J^T w (n,) of wrenches (f, 6) of the ground in the feet's wrench frames."""
    R, p = body_poses(model.bodies, q)
    torques = np.zeros(model.n_joints)
    for foot, wrench in zip(robot.config.feet, wrenches, strict=True):
        R_foot, place = link_pose(model, q, foot.wrench_frame)
        force, moment = R_foot @ wrench[:3], R_foot @ wrench[3:]
        b = int(model.bodies.body_of_link[model.link_index(foot.wrench_frame)])
        while b > 0:
            axis = R[b] @ model.bodies.axis[b]
            torques[model.bodies.q_index[b]] += axis @ (
                moment + np.cross(place - p[b], force)
            )
            b = int(model.bodies.parent[b])
    return torques


def try_case(case: Case) -> dict[str, Any]:
    """Simulates and identifies a robot."""
    if case.what in HUMANOIDS:
        robot, walks = record_humanoid(case.what, case.seed, case.seconds)
    else:
        name, _, unmodelled = case.what.partition(" ")
        wrong, gaits = by_size(name)
        wrong = replace(wrong, **VARIANTS.get(unmodelled, {}))
        robot, walks = record(name, case.seed, case.seconds, wrong, gaits)
    logs, scale = [walk.log for walk in walks[:-1]], Scale(robot.true.mass)
    result: dict[str, Any] = {"what": case.what, "seed": case.seed}
    try:
        begin = time.perf_counter()
        found = identify_walking(logs, robot.believed, robot.config, scale)
    except IdentificationError as error:
        return result | {"refused": str(error)}
    seconds = time.perf_counter() - begin
    before, after, honest = com_errors(robot, found, case.seed)
    percent = torque_percent(robot, found, walks[-1])
    if case.timed:
        result["cpu"] = cpu_seconds(logs, robot, scale)
    return result | {
        "before": 1e3 * np.sqrt((before**2).sum(axis=1).mean()),
        "after": 1e3 * np.sqrt((after**2).sum(axis=1).mean()),
        "xyz": 1e3 * np.sqrt((after**2).mean(axis=0)),
        "percent": percent,
        "coverage": float((np.abs(honest[:, :3]) < 1.96).mean()),
        "nees": float(honest[:, 3].mean()),
        "seconds": seconds,
        "tempering": found.fit.tempering,
        "failed": [
            gate.name for gate in found.gates if not gate.passed and gate.required
        ],
    }


# of one gait's recordings: a robot whose links are those of its URDF, weakly geared drives
RIGHT = Wrong(
    mass=0.0, com=0.0, trunk_com=0.0, inertia=0.0, payload=0.0,
    coulomb=(0.05, 0.4), armature=(0.01, 0.2), gain=0.0, bias=0.12,
)  # fmt: skip
OFF = 1.5, 0.015  # kg, m, by which trunks are off


@dataclass(frozen=True)
class LossyDrives:
    """Drives of a robot as drawn: uniform, where priors are normal.

    Attributes:
        mu: (n,) load friction, on the motor's side.
        gain: (n,) of the torques, with what all drives and those of a leg have in common.
        late: s, of the torques after positions.
        jitter: s, by which messages arrive late, exponential.
        turn: (n,) rad, by which drives turn until their friction has the other direction.
        soft: (n,) rad/s, the velocity at which it is nearly all there; None: it follows turn.
    """

    mu: Array
    gain: Array
    late: float
    jitter: float
    turn: Array
    soft: Array | None

    @classmethod
    def draw(cls, seed: int) -> LossyDrives:
        """Those of a Go2; hips and thighs are driven directly, calves through linkages."""
        rng = np.random.default_rng([seed, 12])
        mu = np.column_stack(
            [*rng.uniform(0.05, 0.2, (2, 4)), rng.uniform(0.15, 0.35, 4)]
        )
        # standard deviations of 5 % and 3 %
        width = np.sqrt(3.0) * np.array([0.05, 0.03])
        gain = 1.0 + rng.uniform(-width[0], width[0]) + rng.uniform(-1, 1, 4) * width[1]
        late, jitter = rng.uniform(0.0, [0.006, 0.0015])
        turn = 0.001 * 4.0 ** rng.uniform(0.0, 1.0, 12)
        soft = 0.05 * 10.0 ** rng.uniform(0.0, 1.0, 12) if rng.integers(2) else None
        return cls(mu.ravel(), np.repeat(gain, 3), late, jitter, turn, soft)

    def read(self, walk: Walk, read: WalkLog, rng: np.random.Generator) -> WalkLog:
        """What these drives report of a walk, in place of what a log has read."""
        clean = walk.clean
        assert clean.velocity is not None
        if self.soft is not None:
            direction = np.tanh(clean.velocity / self.soft)
        else:  # Dahl
            s, direction = np.zeros(len(self.mu)), np.empty_like(clean.velocity)
            for k, v in enumerate(clean.velocity):
                s = s + v * PERIOD / self.turn * (1.0 - s * np.sign(v))
                direction[k] = s = np.clip(s, -1.0, 1.0)
        own = clean.effort / (1.0 - self.mu * direction * np.sign(clean.effort))
        effort = self.gain * own + read.effort - clean.effort
        late = [
            np.interp(clean.time - self.late, clean.time, column) for column in effort.T
        ]
        time = clean.time + rng.exponential(self.jitter, len(clean.time))
        return replace(
            read, effort=np.column_stack(late), time=np.maximum.accumulate(time)
        )


def try_verdict(case: Case) -> dict[str, Any]:
    """The verdict on a robot with lossy drives; odd seeds: its trunk is off."""
    rng = np.random.default_rng([case.seed, 13])
    wrong, off = RIGHT, case.seed % 2 == 1
    if off and case.seed % 4 == 1:
        wrong = replace(RIGHT, payload=OFF[0], payload_box=(0.0, 0.0, 0.0))
    robot, walks = record("go2", case.seed, case.seconds, wrong, GAITS[:4])
    if off and case.seed % 4 == 3:
        robot = replace(robot, believed=moved_trunk(robot.true, rng))
    drives = LossyDrives.draw(case.seed)
    # feet that give way, and legs of another length: uniform, standard deviation 2 mm
    low = np.random.default_rng([case.seed, 14]).uniform(-0.0035, 0.0035)
    feet = [replace(foot, radius=foot.radius + low) for foot in robot.config.feet]
    config = replace(robot.config, feet=tuple(feet))
    logs = [drives.read(walk, walk.log, rng) for walk in walks]
    scale = Scale(robot.true.mass + 0.1 * rng.standard_normal(), std=0.1)
    result: dict[str, Any] = {"seed": case.seed, "off": off}
    try:
        found = judge_walk(logs, robot.believed, config, scale).evidence
    except IdentificationError as error:
        return result | {"verdict": str(error)}
    assert found is not None and found.com is not None and found.com_std is not None  # noqa: PT018
    true = robot.true.bodies
    return result | {
        "verdict": found.verdict.value,
        "mass": (found.mass - robot.true.mass) / found.mass_std,
        "com": (found.com - true.first_moment[0] / true.mass[0]) / found.com_std,
        "texts": (*found.reasons, *found.notes),
    }


def moved_trunk(model: RobotModel, rng: np.random.Generator) -> RobotModel:
    """A model whose trunk's CoM is OFF[1] beside that of another one."""
    turn = rng.uniform(0.0, 2.0 * np.pi)
    com = model.bodies.first_moment[0] / model.bodies.mass[0]
    com = com + OFF[1] * np.array([np.cos(turn), np.sin(turn), 0.0])
    change = correct_body(model, float(model.bodies.mass[0]), com)
    return RobotModel.from_urdf(edit_inertials(model.xml, change), model.frames)


def verdicts(results: list[dict[str, Any]]) -> dict[str, Any]:
    """Figures of robots with lossy drives."""
    known = [r for r in results if "mass" in r]
    right = [r["verdict"] for r in results if not r["off"]]
    other = [r["verdict"] for r in results if r["off"]]
    sure, changed = Verdict.CONFIRMED.value, Verdict.CORRECTED.value
    return {
        "robots": len(results),
        "nees_mass": round(float(np.mean([r["mass"] ** 2 for r in known])), 2),
        "nees_com": round(float(np.mean([r["com"] ** 2 for r in known])), 2),
        "confirmed": round(right.count(sure) / max(1, len(right)), 2),
        "corrected": round(other.count(changed) / max(1, len(other)), 2),
        "wrong": right.count(changed) + other.count(sure),
        "refused": len(results) - len(known),
    }


def cpu_seconds(logs: list[WalkLog], robot: RobotWithErrors, scale: Scale) -> float:
    """CPU time of the identification of TIMED s, the logs as often as it takes; kernels are loaded.

    Of this process with all its threads: set OPENBLAS_NUM_THREADS to 1, as main does.
    """
    left, chosen = round(TIMED / PERIOD), []
    while left > 0:
        for log in logs:
            columns = {name: v[:left] for name, v in vars(log).items() if v is not None}
            chosen += [replace(log, **columns)] if left > 50 else []
            left -= min(left, len(log.time))
    begin = time.process_time()
    identify_walking(chosen, robot.believed, robot.config, scale)
    return time.process_time() - begin


def figures(results: list[dict[str, Any]]) -> dict[str, Any]:
    """Of the robots of one kind."""
    known = [r for r in results if "refused" not in r]
    refused = {r["seed"]: r["refused"] for r in results if "refused" in r}
    if not known:
        return {"refused": refused}

    def most(key: str) -> float | None:
        values = [r[key] for r in known if r.get(key) is not None]
        return round(float(np.max(values)), 2) if values else None

    return {
        "robots": len(results),
        "com_mm_before": most("before"),
        "com_mm_after": most("after"),
        "xyz_mm": np.round(np.max([r["xyz"] for r in known], axis=0), 2).tolist(),
        "torque_percent": most("percent"),
        "coverage95": round(float(np.mean([r["coverage"] for r in known])), 3),
        "nees": round(float(np.mean([r["nees"] for r in known])), 2),
        "seconds": most("seconds"),
        "cpu_seconds": most("cpu"),
        "accepted": sum(not r["failed"] for r in known),
        "refused": refused,
    }


def main() -> int:
    """Simulates, identifies, prints."""
    parser = argparse.ArgumentParser(description="Identification from walking.")
    parser.add_argument("--full", action="store_true", help="8 and 4 robots")
    parser.add_argument("--robots", type=int, help="of Go2; default 2, --full: 8")
    parser.add_argument("--humanoids", type=int, help="of TALOS; default 1, --full: 4")
    parser.add_argument(
        "--seed", type=int, default=411, help="the robots have it and the next"
    )
    parser.add_argument("--seconds", type=float, default=10.0, help="of each gait")
    text = "of the further cases only these, likewise such as a1, anymal, g1"
    parser.add_argument("--only", nargs="*", metavar="CASE", help=text)
    parser.add_argument("--processes", type=int, default=2, help="so many at a time")
    text = "so many Go2s with lossy drives; default 12"
    parser.add_argument("--load-friction", type=int, default=12, metavar="N", help=text)
    args = parser.parse_args()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # of the processes
    count = args.robots if args.robots is not None else 8 if args.full else 2
    cases = [Case("go2", args.seed + i, args.seconds, i == 0) for i in range(count)]
    many = args.humanoids if args.humanoids is not None else 4 if args.full else 1
    cases += [Case("talos", args.seed + i, args.seconds, i == 0) for i in range(many)]
    others = OTHERS if args.full else ()
    names = (
        [*(f"go2 {name}" for name in UNMODELLED), *others]
        if args.only is None
        else args.only
    )
    cases += [Case(name, args.seed, args.seconds) for name in names]
    done = in_processes(try_case, cases, "robots", args.processes)
    table = Table(
        "", "seed", "before", "after", "x y z [mm]", "torque %", "95 %", "NEES", "c", ""
    )
    for r in done:
        if "refused" in r:
            table.add_row(r["what"], str(r["seed"]), *[""] * 7, r["refused"])
            continue
        table.add_row(
            r["what"],
            str(r["seed"]),
            f"{r['before']:.1f}",
            f"{r['after']:.2f}",
            " ".join(f"{v:.2f}" for v in r["xyz"]),
            "" if r["percent"] is None else f"{r['percent']:.1f}",
            f"{100.0 * r['coverage']:.0f}",
            f"{r['nees']:.2f}",
            f"{r['tempering']:.1f}",
            "accepted" if not r["failed"] else "refused: " + ", ".join(r["failed"]),
        )
    Console(width=150).print(table)
    kinds = dict.fromkeys(r["what"] for r in done)
    found = {kind: figures([r for r in done if r["what"] == kind]) for kind in kinds}
    if lossy := args.load_friction:
        seeds = range(args.seed, args.seed + lossy)
        cases = [Case("", seed, args.seconds) for seed in seeds]
        judged = in_processes(try_verdict, cases, "robots", args.processes)
        for r in judged:
            print(r["seed"], "off:" if r["off"] else "right:", r["verdict"])
            print(*r.get("texts", ()), sep="\n", end="\n\n")
        found["load_friction"] = verdicts(judged)
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
