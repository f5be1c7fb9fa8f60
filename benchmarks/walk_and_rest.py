"""What resting postures on foot force sensors add to a walk, and the walk to the postures.

Robots as in walking_identification.py, which nobody has weighed, trot or walk upright, without
swaying; then they rest in postures, leaning by up to 0.2 rad, arms moved by up to 0.25 rad.
Their force sensors, encoders and IMU have errors as SensorPriors expects them: biases, gains,
crosstalk, poses of the sensors, how the IMU is mounted. As `identify --use rest,walk` does, both
become one estimate.

The last line is one JSON object, by robot: walk, rest, both: {com_mm, xyz_mm (rms over 200 postures
within 0.4 rad; largest of the robots), com_std_mm (what the result says of it, mean of the robots),
mass_percent (largest error of the total mass), mass_std_percent, nees (of the CoM and the total
mass, per dimension, mean)}, and accepted (how many passed all tests).
"""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from processes import in_processes
from rich.console import Console
from rich.table import Table
from walking_humanoid import HUMANOIDS, SWAYS, crouched, record_humanoid
from walking_identification import POSTURES, SPREAD, true_com
from walking_lab import RobotWithErrors, by_size, record

from com_identification.exceptions import IdentificationError
from com_identification.regression.postures import Posture, make_posture
from com_identification.settings import FitSettings, IdentificationSettings
from com_identification.walking.combination import fuse
from com_identification.walking.identify import WalkResult, identify_walking
from com_identification.walking.unknowns import Scale
from com_model import Foot, link_pose
from com_model.dynamics import GRAVITY
from com_model.geometry.rotations import rotation_from_rpy, skew
from com_model.robot_config import ground_wrenches

Array = NDArray[np.float64]

SETTINGS = IdentificationSettings(fit=FitSettings(use_imu=True, folds=0))
SAMPLES, LEVER = 100, 0.1  # readings of a posture; m
MOVED, LEAN, BEND = 0.25, 0.2, 0.15  # rad


@dataclass(frozen=True)
class Case:
    """A robot, and how many postures it rests in."""

    name: str
    seed: int
    seconds: float
    postures: int


class Feet:
    """The sensors of a robot at rest."""

    def __init__(self, robot: RobotWithErrors, rng: np.random.Generator) -> None:
        self.robot, self.rng = robot, rng
        self.model = robot.config.attach(robot.true)
        e, feet, W = (
            SETTINGS.sensors,
            len(robot.config.feet),
            robot.believed.mass * GRAVITY,
        )
        self.bias = rng.normal(
            0.0, np.repeat([W * e.force_bias, W * e.moment_bias], 3), (feet, 6)
        )
        self.errors = np.zeros((feet, 6, 6))  # true = (1 + these) (reading - bias)
        for E in self.errors:
            E[:3, :3] = rng.normal(0.0, e.crosstalk, (3, 3))
            E[3:, 3:] = rng.normal(0.0, e.crosstalk, (3, 3))
            E[np.diag_indices(6)] = rng.normal(0.0, e.wrench_gain, 6)
            turn = skew(rng.normal(0.0, e.sensor_rotation, 3))
            E[:3, :3] += turn
            E[3:, 3:] += turn
            E[3:, :3] += skew(rng.normal(0.0, e.sensor_position, 3))
        self.tilt = rotation_from_rpy(rng.normal(0.0, e.tilt, 3).tolist())
        self.zero = rng.normal(0.0, e.joint_offset, robot.believed.n_joints)

    def read(self, q: Array, up: Array) -> Posture:
        """Readings of a posture with the vertical up (3,) in root axes."""
        rng, noise = self.rng, SETTINGS.noise
        average = np.repeat([noise.force, noise.moment], 3) / np.sqrt(SAMPLES)
        wrenches = self._wrenches(q, up) + rng.normal(0.0, average, self.bias.shape)
        for i, E in enumerate(self.errors):
            wrenches[i] = np.linalg.solve(np.eye(6) + E, wrenches[i])
        wrenches = ground_wrenches(wrenches + self.bias, self.robot.config.feet)
        read = (
            q
            - self.zero
            + rng.normal(0.0, SETTINGS.sensors.joint_repeatability, len(q))
        )
        up = self.tilt @ (up + np.cross(rng.normal(0.0, noise.tilt, 3), up))
        up /= np.linalg.norm(up)
        return make_posture(self.robot.believed, read, wrenches, up=up, samples=SAMPLES)

    def _wrenches(self, q: Array, up: Array) -> Array:
        """Wrenches of the ground (f, 6), the smallest that carry it, in the sensors' axes."""
        model, feet = self.model, self.robot.config.feet
        weight = GRAVITY * model.mass * up
        load = np.concatenate([weight, np.cross(true_com(model, q), weight)])
        columns, axes = [], []
        for foot in feet:
            R, p = link_pose(model, q, foot.wrench_frame)
            size = 6 if len(foot.corners) else 3
            X = np.block([[R, np.zeros((3, 3))], [skew(p) @ R, R]])
            # moments are as dear as forces on levers of a sole's half length
            columns.append(X[:, :size] * np.where(np.arange(size) < 3, 1.0, LEVER))
            axes.append(size)
        forces = np.linalg.lstsq(np.hstack(columns), load, rcond=None)[0]
        wrenches, at = np.zeros((len(feet), 6)), 0
        for i, size in enumerate(axes):
            wrenches[i, :size] = forces[at : at + size]
            at += size
        wrenches[:, 3:] *= LEVER
        return wrenches


def rest(case: Case, robot: RobotWithErrors, posture: Array) -> list[Posture]:
    """Readings of postures about one (n,)."""
    rng, n = np.random.default_rng([case.seed, 5]), len(posture)
    feet, found = Feet(robot, rng), []
    for _ in range(case.postures):
        q = posture + rng.uniform(-MOVED, MOVED, n)
        up = rotation_from_rpy([*rng.uniform(-LEAN, LEAN, 2), 0.0]).T[:, 2]
        if case.name in HUMANOIDS:  # on flat soles
            names, legs = robot.believed.joint_names, HUMANOIDS[case.name].legs
            on_feet = [
                group
                for foot in robot.config.feet
                for group in path_joints(robot, foot)
            ]
            q[on_feet] = robot.config.nominal_posture(robot.believed)[on_feet]
            by = rng.uniform([-LEAN, 0.0, -0.05], [LEAN, 2.0 * BEND, 0.05])
            q += crouched(legs, names, by[None])[0]
            up = link_pose(feet.model, q, robot.config.feet[0].frame)[0][:, 2]
        found.append(feet.read(q, up))
    return found


def path_joints(robot: RobotWithErrors, foot: Foot) -> list[int]:
    """Joints from the root to a foot."""
    model = robot.config.attach(robot.believed)
    bodies = model.bodies
    path = bodies.path_to(bodies.body_of_link[model.link_index(foot.frame)])
    return [int(j) for j in bodies.q_index[path]]


def judge(robot: RobotWithErrors, result: WalkResult, seed: int) -> dict[str, Any]:
    """Errors of a result, and what it says of them."""
    rng = np.random.default_rng([seed, 3])
    mass, mass_std = result.total_mass
    off = mass / robot.true.mass - 1.0
    errors, stds, squares = [], [], []
    for _ in range(POSTURES):
        q = result.posture + rng.uniform(-SPREAD, SPREAD, result.model.n_joints)
        com, C = result.com(q)
        errors.append(com - true_com(robot.true, q))
        stds.append(np.trace(C))
        squares.append(errors[-1] @ np.linalg.solve(C, errors[-1]))
    square = (float(np.mean(squares)) + (off * mass / mass_std) ** 2) / 4.0
    return {
        "com": 1e3 * float(np.sqrt((np.array(errors) ** 2).sum(axis=1).mean())),
        "xyz": 1e3 * np.sqrt((np.array(errors) ** 2).mean(axis=0)),
        "std": 1e3 * float(np.sqrt(np.mean(stds))),
        "mass": 100.0 * abs(off),
        "mass_std": 100.0 * mass_std / mass,
        "nees": square,
        "accepted": result.accepted,
    }


def try_case(case: Case) -> dict[str, Any]:
    """A robot walks, rests, and is identified by each and by both."""
    if case.name in HUMANOIDS:
        robot, walks = record_humanoid(case.name, case.seed, case.seconds)
        logs = [walk.log for walk in walks[: -1 - len(SWAYS)]]
    else:
        robot, walks = record(case.name, case.seed, case.seconds, *by_size(case.name))
        logs = [walk.log for walk in walks[:-1]]
    try:
        walk = identify_walking(logs, robot.believed, robot.config, Scale())
        unknowns = walk.unknowns
        nothing = replace(walk, z=unknowns.mean, covariance=np.diag(unknowns.std**2))
        postures = rest(case, robot, walk.posture)
        alone, both = (
            fuse(w, robot.config.feet, postures, SETTINGS) for w in (nothing, walk)
        )
    except IdentificationError as error:
        return {"name": case.name, "refused": str(error)}
    found = {"walk": walk, "rest": alone, "both": both}
    failed = [gate.text for gate in both.gates if not gate.passed and gate.required]
    result = {key: judge(robot, each, case.seed) for key, each in found.items()}
    return {"name": case.name, "failed": failed, **result}


def figures(results: list[dict[str, Any]]) -> dict[str, Any]:
    """Of the robots of one kind."""
    known = [r for r in results if "refused" not in r]
    refused = [r["refused"] for r in results if "refused" in r]
    if not known:
        return {"refused": refused}

    def of(key: str) -> dict[str, Any]:
        values = {
            name: np.array([r[key][name] for r in known]) for name in known[0][key]
        }
        return {
            "com_mm": round(float(values["com"].max()), 2),
            "xyz_mm": np.round(values["xyz"].max(axis=0), 2).tolist(),
            "com_std_mm": round(float(values["std"].mean()), 2),
            "mass_percent": round(float(values["mass"].max()), 2),
            "mass_std_percent": round(float(values["mass_std"].mean()), 2),
            "nees": round(float(values["nees"].mean()), 2),
        }

    accepted = sum(bool(r["both"]["accepted"]) for r in known)
    parts = {key: of(key) for key in ("walk", "rest", "both")}
    return {"robots": len(results), **parts, "accepted": accepted, "refused": refused}


def main() -> int:
    """Simulates, identifies, prints."""
    parser = argparse.ArgumentParser(description="Walking and resting together.")
    parser.add_argument("--robots", nargs="+", default=["go2", "talos"])
    parser.add_argument("--count", type=int, default=2, help="of each")
    parser.add_argument(
        "--seed", type=int, default=431, help="the robots have it and the next"
    )
    parser.add_argument("--seconds", type=float, default=10.0, help="of each gait")
    parser.add_argument("--postures", type=int, default=12)
    parser.add_argument("--processes", type=int, default=2, help="so many at a time")
    args = parser.parse_args()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # of the processes
    seeds = range(args.seed, args.seed + args.count)
    cases = [
        Case(name, s, args.seconds, args.postures)
        for name in args.robots
        for s in seeds
    ]
    done = in_processes(try_case, cases, "robots", args.processes)
    table = Table("", "by", "CoM", "x y z [mm]", "says", "mass %", "says", "NEES", "")
    for r in done:
        if "refused" in r:
            table.add_row(r["name"], *[""] * 7, r["refused"])
            continue
        for key in ("walk", "rest", "both"):
            each = r[key]
            numbers = (
                each["com"],
                each["xyz"],
                each["std"],
                each["mass"],
                each["mass_std"],
            )
            shown = (
                " ".join(f"{v:.2f}" for v in np.atleast_1d(number))
                for number in numbers
            )
            note = "; ".join(r["failed"]) if key == "both" else ""
            table.add_row(r["name"], key, *shown, f"{each['nees']:.2f}", note)
    Console(width=150).print(table)
    kinds = {name: [r for r in done if r["name"] == name] for name in args.robots}
    print(json.dumps({name: figures(results) for name, results in kinds.items()}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
