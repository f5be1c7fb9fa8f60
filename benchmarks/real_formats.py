"""Logs as people have them, by format and kind of evidence: error, sigma, used fraction.

HOAP-2 with centres of mass off by 5 mm (each body and axis), encoder zeros off by 0.3 degrees,
noise and biases of the sensors; nothing is declared. The truth is Pinocchio's, of the moving log
with all inertial forces (RNEA). com_error_mm is the RMS horizontal error of the CoM relative to the
root in 40 other postures on both feet, sigma_mm what the identification says of it.

csv_wrench           full wrench of each foot, degrees, 30 postures of 1.6 s
tsv_vertical_cop     vertical force (kgf) and centre of pressure (mm) of each foot
npz_cells            four pressure cells in each sole, with calibration polynomials
mat_plate            wrench of one plate on the floor, 30 postures on both feet
parquet_total_cop    centre of pressure of that plate alone
csv_rows             one row for each of 30 postures, full wrenches
npz_slow_motion      60 s of continuous motion on one foot, without any rest
mot_wrench           OpenSim's mot, full wrenches of each foot, degrees

Names of formats as arguments: only those. The last line is one JSON object.
"""

from __future__ import annotations

import com_identification.nodes  # noqa: F401  (one thread, before anything loads numpy)

# isort: split
import csv
import json
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio
import pyarrow
import pyarrow.parquet
import scipy.io
import yaml
from identification_scenario import (
    PLAN,
    Array,
    PinocchioRobot,
    hoap2,
    rms_length,
    wrong_robot,
)
from scipy.interpolate import PchipInterpolator

from com_identification.commands.bag_inputs import read_files
from com_identification.commands.identify_arguments import parser
from com_identification.commands.rest_identification import identify_recording
from com_identification.commands.robot_inputs import load_robot
from com_identification.regression.statics import Statics, prediction_rows
from com_model.dynamics import GRAVITY
from com_model.geometry.rotations import rotations_about

RATE, HOLD, MOVE = 100.0, 1.6, 0.4
STANDS = ((0, 1), (0,), (0, 1), (1,))
SEED, HELD_OUT, POSTURES = 3, 40, 30
POSE = np.array([0.12, -0.05, 0.3])  # m, m, rad of the left sole on the plate
CELLS = np.array([[0.04, 0.02], [0.04, -0.02], [-0.04, 0.02], [-0.04, -0.02]])  # m
WEIGHT = 70.0  # N, about


@dataclass(frozen=True, eq=False)
class Log:
    """Readings of N samples: time, joints (N, n), wrenches in the soles' frames (N, f, 6)."""

    t: Array
    Q: Array
    W: Array


class World:
    """The true robot, its sensors and the postures by which a model is judged."""

    def __init__(self) -> None:
        self.scenario, self.rng = hoap2(), np.random.default_rng(SEED)
        self.truth, _ = wrong_robot(self.scenario, self.rng)
        model = self.scenario.model
        self.zeros = self.rng.normal(0.0, np.radians(0.3), model.n_joints)
        self.bias = self.rng.normal(0.0, 1.0, (2, 6)) * np.repeat([0.35, 0.035], 3)
        self.held_out = self.postures(HELD_OUT, ((0, 1),), seed=99)

    def postures(
        self, count: int, stands: tuple[tuple[int, ...], ...], seed: int
    ) -> list[Any]:
        """Joint positions and feet that stand."""
        plan = type(PLAN)(**{**vars(PLAN), "stands": stands, "seed": seed})
        planner = self.scenario.planner(plan)
        return [(entry[0], entry[1]) for entry in planner.feasible.sample(count)]

    def wrench(self, q: Array, load: Array) -> Array:
        """(f, 6) of the ground on each foot, in its sole's frame."""
        read, _ = self.truth.read(q, load)
        return to_soles(self.truth, q, read)

    def log(self, stands: tuple[tuple[int, ...], ...]) -> Log:
        """A log of postures in turn, joints and forces between them along straight lines."""
        knots: list[float] = []
        Q: list[Array] = []
        W: list[Array] = []
        for i, (q, stand) in enumerate(self.postures(POSTURES, stands, SEED)):
            load = np.zeros(2)
            load[list(stand)] = self.rng.uniform(0.35, 0.65, len(stand))
            w = self.wrench(q, load / load.sum())
            knots += [i * (HOLD + MOVE), i * (HOLD + MOVE) + HOLD]
            Q, W = [*Q, q, q], [*W, w.ravel(), w.ravel()]
        t = np.arange(0.0, knots[-1], 1.0 / RATE)
        at = [
            np.stack([np.interp(t, knots, c) for c in np.array(x).T], -1)
            for x in (Q, W)
        ]
        return self.sense(t, at[0], at[1].reshape(len(t), 2, 6))

    def motion(self, seconds: float) -> Log:
        """A log of slow continuous motion on the left foot, with its inertial forces."""
        postures = [q for q, _ in self.postures(14, ((0,),), SEED)]
        t = np.arange(0.0, seconds, 1.0 / RATE)
        knots = np.linspace(0.0, seconds, len(postures))
        Q = PchipInterpolator(knots, np.array(postures))(t)
        pin, data, dt = self.truth.pin, self.truth.data, 1.0 / RATE
        full = [self._standing(q) for q in Q]
        V = [pinocchio.difference(pin, a, b) / dt for a, b in pairwise(full)]
        W = np.zeros((len(t), 2, 6))
        pin.gravity.linear = np.array([0.0, 0.0, -GRAVITY])
        for i in range(1, len(t) - 1):
            v, a = 0.5 * (V[i - 1] + V[i]), (V[i] - V[i - 1]) / dt
            root = pinocchio.Force(pinocchio.rnea(pin, data, full[i], v, a)[:6])
            # root axes to the world, which is the left sole's frame
            pose = pinocchio.XYZQUATToSE3(full[i][:7])
            W[i, 0] = pose.act(root).vector
        return self.sense(t[1:-1], Q[1:-1], W[1:-1])

    def _standing(self, q: Array) -> Array:
        """The configuration with the left sole at the world's origin."""
        R, p = self.truth.frame(q, self.truth.feet[0].frame)
        full = self.truth.full(q)
        full[:7] = pinocchio.SE3ToXYZQUAT(pinocchio.SE3(R.T, -R.T @ p))
        return full

    def sense(self, t: Array, Q: Array, W: Array) -> Log:
        """Adds the errors of the sensors."""
        normal = self.rng.normal
        spread = np.repeat([0.5, 0.025], 3)
        read = W + self.bias + normal(0.0, 1.0, W.shape) * spread
        return Log(t, Q - self.zeros + normal(0.0, np.radians(0.05), Q.shape), read)


def to_soles(robot: PinocchioRobot, q: Array, read: Array) -> Array:
    """Readings (f, 6) as wrenches of the ground in the soles' frames."""
    result = np.zeros((len(read), 6))
    for i, foot in enumerate(robot.feet):
        R, p = robot.frame(q, foot.wrench_frame)
        R_s, p_s = robot.frame(q, foot.frame)
        f, m = (foot.wrench_sign * R @ part for part in (read[i, :3], read[i, 3:]))
        result[i] = np.concatenate((R_s.T @ f, R_s.T @ (m + np.cross(p - p_s, f))))
    return result


def to_sensors(world: World, log: Log) -> Array:
    """(N, f, 6) as the configured sensors read."""
    result = np.zeros(log.W.shape)
    q = np.zeros(world.scenario.model.n_joints)
    for i, foot in enumerate(world.truth.feet):
        (R, p), (R_s, p_s) = (
            world.truth.frame(q, name) for name in (foot.wrench_frame, foot.frame)
        )
        f, m = (
            log.W[:, i, part] @ (R.T @ R_s).T for part in (slice(0, 3), slice(3, 6))
        )
        m = m + np.cross(R.T @ (p_s - p), f)
        result[:, i] = foot.wrench_sign * np.hstack((f, m))
    return result


def on_plate(world: World, log: Log) -> Array:
    """(N, 6) the sum of both feet about the plate's origin, the left sole at POSE."""
    R = rotations_about(np.array([[0.0, 0.0, 1.0]]), POSE[2:])[0]
    total = np.zeros((len(log.t), 6))
    truth = world.truth
    for k, q in enumerate(log.Q + world.zeros):
        R_0, p_0 = truth.frame(q, truth.feet[0].frame)
        for i, foot in enumerate(truth.feet):
            R_i, p_i = truth.frame(q, foot.frame)
            f, m = (R_0.T @ R_i @ part for part in (log.W[k, i, :3], log.W[k, i, 3:]))
            total[k] += np.concatenate((f, m + np.cross(R_0.T @ (p_i - p_0), f)))
    f, m = (part @ R.T for part in (total[:, :3], total[:, 3:]))
    return np.hstack((f, m + np.cross(np.append(POSE[:2], 0.0), f)))


def joints(world: World, log: Log, unit: float = 1.0) -> dict[str, Array]:
    """Columns of the joints by name."""
    return {
        f"q_{name}": log.Q[:, j] / unit
        for j, name in enumerate(world.scenario.model.joint_names)
    }


def mapping(world: World, unit: str = "rad", **further: Any) -> dict[str, Any]:
    """The mapping of such columns."""
    names = world.scenario.model.joint_names
    return {
        "time": {"column": "t", "unit": "s"},
        "joints": {name: {"column": f"q_{name}", "unit": unit} for name in names},
        **further,
    }


def wrench_columns(world: World, log: Log) -> tuple[dict[str, Array], dict[str, Any]]:
    """Full wrenches as columns, and the mapping of the feet."""
    read, feet = to_sensors(world, log), {}
    columns: dict[str, Array] = {}
    for i, foot in enumerate(world.truth.feet):
        names = [
            f"{foot.frame}_{axis}" for axis in ("fx", "fy", "fz", "mx", "my", "mz")
        ]
        columns |= {name: read[:, i, k] for k, name in enumerate(names)}
        feet[foot.frame] = {"force": names[:3], "moment": names[3:]}
    return columns, {"feet": feet}


def csv_wrench(world: World, folder: Path) -> tuple[Path, dict[str, Any]]:
    """Degrees and full wrenches."""
    log = world.log(STANDS)
    columns, feet = wrench_columns(world, log)
    path = folder / "log.csv"
    write_text(path, {"t": log.t, **joints(world, log, np.pi / 180.0), **columns}, ",")
    return path, mapping(world, "deg", **feet)


def tsv_vertical_cop(world: World, folder: Path) -> tuple[Path, dict[str, Any]]:
    """Vertical force in kgf, centre of pressure in mm; nothing below 2 N."""
    log, feet = world.log(STANDS), {}
    columns: dict[str, Array] = {}
    for i, foot in enumerate(world.truth.feet):
        fz = log.W[:, i, 2]
        point = np.column_stack((-log.W[:, i, 4], log.W[:, i, 3])) / fz[:, None]
        point[fz < 2.0], fz = 0.0, np.where(fz < 2.0, 0.0, fz)
        name = foot.frame
        columns |= {f"{name}_kgf": fz / 9.80665}
        columns |= {f"{name}_x": 1e3 * point[:, 0], f"{name}_y": 1e3 * point[:, 1]}
        feet[name] = {
            "vertical": {"column": f"{name}_kgf", "unit": "kgf"},
            "cop": [{"column": f"{name}_{axis}", "unit": "mm"} for axis in "xy"],
        }
    path = folder / "log.tsv"
    write_text(path, {"t": log.t, **joints(world, log), **columns}, "\t")
    return path, mapping(world, feet=feet)


def npz_cells(world: World, folder: Path) -> tuple[Path, dict[str, Any]]:
    """Counts of four cells in each sole: N = 0.5 + 0.02 counts + 1e-6 counts^2."""
    log, feet = world.log(STANDS), {}
    columns: dict[str, Array] = {}
    A = np.vstack((np.ones(4), CELLS[:, 1], -CELLS[:, 0]))
    for i, foot in enumerate(world.truth.feet):
        forces = log.W[:, i, [2, 3, 4]] @ np.linalg.pinv(A).T
        counts = (-0.02 + np.sqrt(4e-4 - 4e-6 * (0.5 - forces))) / 2e-6
        columns[foot.frame] = np.round(counts)
        feet[foot.frame] = {
            "cells": [
                {
                    "column": f"{foot.frame}[{k}]",
                    "at": at,
                    "polynomial": [0.5, 0.02, 1e-6],
                }
                for k, at in enumerate(CELLS.tolist())
            ]
        }
    path = folder / "log.npz"
    np.savez(path, t=log.t, **joints(world, log), **columns)
    return path, mapping(world, feet=feet)


def mat_plate(world: World, folder: Path) -> tuple[Path, dict[str, Any]]:
    """One plate under both feet; the left one does not move on it."""
    log = world.log(((0, 1),))
    path = folder / "log.mat"
    scipy.io.savemat(
        path, {"t": log.t, **joints(world, log), "plate": on_plate(world, log)}
    )
    names = [f"plate[{k}]" for k in range(6)]
    plate = {"foot": world.truth.feet[0].frame, "pose": POSE.tolist()}
    return path, mapping(
        world, plate={**plate, "force": names[:3], "moment": names[3:]}
    )


def parquet_total_cop(world: World, folder: Path) -> tuple[Path, dict[str, Any]]:
    """The centre of pressure alone."""
    log = world.log(((0, 1),))
    w = on_plate(world, log)
    columns = {
        "t": log.t,
        **joints(world, log),
        "x": -w[:, 4] / w[:, 2],
        "y": w[:, 3] / w[:, 2],
    }
    path = folder / "log.parquet"
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    plate = {
        "foot": world.truth.feet[0].frame,
        "pose": POSE.tolist(),
        "cop": ["x", "y"],
    }
    return path, mapping(world, plate=plate)


def csv_rows(world: World, folder: Path) -> tuple[Path, dict[str, Any]]:
    """Means of each posture in one row."""
    log = world.log(STANDS)
    columns, feet = wrench_columns(world, log)
    per, part = round((HOLD + MOVE) * RATE), round((HOLD - 0.1) * RATE)
    rows = {
        name: np.array(
            [column[k * per + 5 : k * per + part].mean() for k in range(POSTURES)]
        )
        for name, column in {**joints(world, log), **columns}.items()
    }
    path = folder / "rows.csv"
    write_text(path, rows, ";", comma=True)
    what = mapping(world, rows="postures", samples=140, **feet)
    return path, {key: value for key, value in what.items() if key != "time"}


def npz_slow_motion(world: World, folder: Path) -> tuple[Path, dict[str, Any]]:
    """The robot never rests."""
    log = world.motion(60.0)
    columns, feet = wrench_columns(world, log)
    path = folder / "moving.npz"
    np.savez(path, t=log.t, **joints(world, log), **columns)
    return path, mapping(world, **feet)


def mot_wrench(world: World, folder: Path) -> tuple[Path, dict[str, Any]]:
    """OpenSim's storage: a header, then columns between tabs."""
    log = world.log(STANDS)
    columns, feet = wrench_columns(world, log)
    named = {"time": log.t, **joints(world, log, np.pi / 180.0), **columns}
    path = folder / "log.mot"
    lines = [
        "log",
        "version=1",
        f"nRows={len(log.t)}",
        f"nColumns={len(named)}",
        "inDegrees=yes",
    ]
    lines += ["endheader", "\t".join(named)]
    rows = np.column_stack(list(named.values())).tolist()
    lines += ["\t".join(f"{value:.7g}" for value in row) for row in rows]
    path.write_text("\n".join(lines) + "\n")
    return path, mapping(world, "deg", **feet) | {"time": "time"}


def write_text(
    path: Path, columns: Mapping[str, Array], mark: str, comma: bool = False
) -> None:
    """Writes a table of text."""
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream, delimiter=mark)
        writer.writerow(columns)
        for row in np.column_stack(list(columns.values())).tolist():
            cells = [f"{value:.7g}" for value in row]
            writer.writerow(
                [cell.replace(".", ",") for cell in cells] if comma else cells
            )


FORMATS: dict[str, Callable[[World, Path], tuple[Path, dict[str, Any]]]] = {
    function.__name__: function
    for function in (
        csv_wrench,
        tsv_vertical_cop,
        npz_cells,
        mat_plate,
        parquet_total_cop,
        csv_rows,
        npz_slow_motion,
        mot_wrench,
    )
}


def measure(
    world: World, path: Path, what: Mapping[str, Any], slow: bool
) -> dict[str, float]:
    """Identifies from a log and compares with the truth."""
    file = path.with_suffix(".yaml")
    file.write_text(yaml.safe_dump(dict(what)))
    words = [
        str(path),
        "--robot",
        "hoap2",
        "--mapping",
        str(file),
        "--output",
        "unused",
    ]
    arguments = parser().parse_args([*words, *(["--slow-motion"] if slow else [])])
    robot = load_robot(arguments)
    recording = read_files(robot, arguments)
    outcome = identify_recording(robot, recording, False)
    used = sum((i.t1_ns - i.t0_ns) / 1e9 for i in outcome.intervals if i.posture)
    return judge(world, outcome.found) | {
        "used_fraction": round(min(1.0, used / recording.seconds), 3)
    }


def judge(world: World, found: Any) -> dict[str, float]:
    """Error and sigma of the horizontal CoM in the held-out postures, mm."""
    statics = Statics(world.scenario.model)
    Q = np.array([q for q, _ in world.held_out])
    poses = statics.poses(Q)
    soles = [world.truth.frame(q, world.truth.feet[0].frame)[0] for q in Q]
    predicted = statics.com(poses, found.parameters)
    errors = [
        (R.T @ (c - world.truth.com(q)))[:2]
        for R, c, q in zip(soles, predicted, Q, strict=True)
    ]
    up = np.array([R[:, 2] for R in soles])
    rows = prediction_rows(statics, poses, up, found.parameters)
    variance = np.einsum("nik,kl,nil->n", rows, found.covariance, rows)
    return {
        "com_error_mm": round(1e3 * rms_length(errors), 3),
        "sigma_mm": round(1e3 * float(np.sqrt(variance.mean())), 3),
    }


def main() -> None:
    """Measures all formats, or those that are named."""
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, make in FORMATS.items():
            if sys.argv[1:] and name not in sys.argv[1:]:
                continue
            world = World()
            path, what = make(world, Path(folder))
            figures[name] = measure(world, path, what, "slow" in name)
            print(f"{name:20s} {figures[name]}", flush=True)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
