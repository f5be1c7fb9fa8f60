"""The figures of [Ding], made with a simulated SCALF-II: forces of the ground, and its CoM window.

Figure 5: force of the ground on a foot while the robot trots, by joint torques with massless legs
([Ding] eq. 21), by joint torques with the legs' inverse dynamics, and by force sensors in the feet
(eq. 20), against the truth; sensors err as TROT_NOISE says. A table of root mean square errors
over all feet, for legs of 3 kg and of 25 kg. The truth has gone through the same filter. The swing
feet follow their path whatever the attitude ([Ding] eq. 19 is off): with it and without feedback of
the CoM, the robot falls over within some seconds.

Figure 6: the paper's closed form in the first half gait, for nine offsets, without noise; drawn
with legs of 3 kg.

Writes trot_ground_reaction.png and trot_ding_window.png. The last line is one JSON object:
grf_rms_n {robot: {method: N}}, ding_mean_mm and ding_max_mm [x, y], ding_worst_mm (length of the
worst error), ding_offsets_mm [[true x, y, error x, y], ...]; ding_heavy_mean_mm [x, y] with legs of
25 kg.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from trot_lab import CLEAN, TROT_NOISE, TrotLog, TrotRun, in_processes, run_trot

from com_estimation.trunk.ding import (
    DIAGONALS,
    DingEstimator,
    DingOptions,
    Support,
    solve_offset,
    trunk_of,
)
from com_estimation.trunk.ground_reaction import METHODS, ReactionSource
from com_estimation.trunk.motion import MotionFilter, StateVariableFilter
from com_model import quadruped_legs
from com_model.dynamics import GRAVITY
from com_model.status import Status

Array = NDArray[np.float64]

ROBOTS = ("scalf2", "scalf2_heavy")
OFFSETS = [(x, y, 0.0) for x in (0.0, -0.03, -0.10) for y in (0.0, 0.03, 0.10)]
BANDWIDTH = 250.0  # rad/s, of all signals
REST = 0.3  # s on four feet before the trot
FIRST_HALF = 0.4  # s that are simulated for figure 6
LABELS = {
    "torque": "joint torques, massless legs",
    "inverse_dynamics": "joint torques, inverse dynamics",
    "sensor": "sensors in the feet",
}


@dataclass(frozen=True, eq=False)
class Forces:
    """Forces of the ground on the feet while a robot trots, (N, 4, 3) N in root axes.

    Attributes:
        robot: Its name.
        time: (N,) s.
        truth: What acted, through the filter.
        found: By method.
    """

    robot: str
    time: Array
    truth: Array
    found: dict[str, Array]

    def rms(self, method: str) -> float:
        """Root mean square of the error's components, N."""
        return float(np.sqrt(np.nanmean((self.found[method] - self.truth) ** 2)))


@dataclass(frozen=True, eq=False)
class Window:
    """The paper's method in a first half gait.

    Attributes:
        offset: (2,) m, true x and y of the trunk's CoM from the geometric centre.
        time: (N,) s since two feet left the ground.
        xy: (N, 2) m, the solution at each sample.
        mean: (2,) m, the estimate at the end of the window.
    """

    offset: Array
    time: Array
    xy: Array
    mean: Array

    @property
    def error(self) -> Array:
        """Of the estimate, (2,) m."""
        return self.mean - self.offset


def ground_reaction(item: tuple[str, float, int]) -> Forces:
    """Forces by all methods, for a robot, so many seconds and a seed."""
    robot, seconds, seed = item
    gait = {"swing_compensation": False}
    offset = (-0.03, 0.03, 0.0)
    log = run_trot(
        TrotRun(
            robot, "", offset, None, seconds, seed=seed, noise=TROT_NOISE, gait=gait
        )
    )
    legs = quadruped_legs(log.model, log.config)
    armature = log.config.servo.armature(log.model.joint_names)
    sources = {m: ReactionSource(log.model, legs, m, armature) for m in METHODS}
    motions = MotionFilter(log.model, log.config, BANDWIDTH)
    truth = StateVariableFilter(BANDWIDTH, 12)
    truth.start(log.true_forces[0].ravel())
    rows, true_rows = [], []
    for k, sample in enumerate(log.samples()):
        motion = motions.update(sample)
        if motion is None or k == 0:
            continue
        truth.update(sample.time - log.time[k - 1], log.true_forces[k].ravel())
        rows.append([source.at(motion)[0].forces for source in sources.values()])
        true_rows.append(truth.read()[0].reshape(4, 3))
    found = np.array(rows)
    by_method = {method: found[:, i] for i, method in enumerate(sources)}
    return Forces(robot, log.time[1:] - motions.delay, np.array(true_rows), by_method)


def first_half_gait(item: tuple[str, tuple[float, float, float]]) -> Window:
    """The paper's method on a robot with such an offset, without noise."""
    robot, offset = item
    gait = {"start_delay": REST}
    log = run_trot(
        TrotRun(robot, offset=offset, seconds=REST + FIRST_HALF, noise=CLEAN, gait=gait)
    )
    estimator = DingEstimator(log.model, log.config, DingOptions(bandwidth=BANDWIDTH))
    mean = np.full(2, np.nan)
    for sample in log.samples():
        estimate = estimator.update(sample)
        if estimate is not None and estimate.status == Status.ESTIMATING:
            mean = estimate.offset_from_center[:2]
    legs = quadruped_legs(log.model, log.config)
    center = np.mean([leg.hip for leg in legs], axis=0)
    time, xy = _solutions(log, center)
    return Window((log.trunk_com[0] - center)[:2], time, xy, mean)


def _solutions(log: TrotLog, center: Array) -> tuple[Array, Array]:
    """The closed form at each sample of a log: time since two feet left the ground, and x, y."""
    source = ReactionSource(log.model, quadruped_legs(log.model, log.config), "torque")
    motions = MotionFilter(log.model, log.config, BANDWIDTH)
    trunk = trunk_of(log.model, center)
    rows, lifted = [], np.nan
    for sample in log.samples():
        motion = motions.update(sample)
        stance = sample.stance
        if motion is None or stance is None or stance.all():
            continue
        lifted = sample.time if np.isnan(lifted) else lifted
        legs = list(DIAGONALS[0 if stance[0] else 1])
        reaction, points = source.at(motion)
        support = Support(
            motion.up,
            motion.omega,
            motion.omega_dot,
            points[legs],
            reaction.forces[legs],
        )
        rows.append((motion.time - lifted, *solve_offset(trunk, support, GRAVITY).xy))
    table = np.array(rows)
    return table[:, 0], table[:, 1:]


def draw_forces(robots: list[Forces], path: Path) -> None:
    """Figure 5: the upward force on the left front foot, and the errors of each method."""
    figure, axes = plt.subplots(
        2, len(robots), figsize=(9, 5), sharex=True, layout="constrained"
    )
    for (force, error), forces in zip(axes.T, robots, strict=True):
        shown = forces.time < 2.0
        time, truth = forces.time[shown], forces.truth[shown, 0, 2]
        force.set_title(f"{forces.robot}, left front foot", fontsize=10)
        for method, label in LABELS.items():
            found = forces.found[method][shown, 0, 2]
            force.plot(time, found, lw=1.0, label=label)
            error.plot(time, found - truth, lw=1.0)
        force.plot(time, truth, "k--", lw=1.0, label="truth")
        force.set_ylabel("force up [N]")
        error.set_ylabel("error [N]")
        error.set_xlabel("time [s]")
        force.grid(alpha=0.3)
        error.grid(alpha=0.3)
    axes[0, 0].legend(fontsize=7)
    figure.savefig(path, dpi=80)
    plt.close(figure)


def draw_windows(windows: list[Window], path: Path) -> None:
    """Figure 6: x and y of the CoM over the first half gait."""
    figure, axes = plt.subplots(2, 1, figsize=(8, 5), sharex=True, layout="constrained")
    options = DingOptions()
    for component, (axis, name) in enumerate(zip(axes, "xy", strict=True)):
        axis.axvspan(1e3 * options.window_start, 1e3 * options.window_end, color="0.92")
        for value in sorted({float(w.offset[component].round(4)) for w in windows}):
            axis.axhline(1e3 * value, color="k", ls="--", lw=0.8)
        for window in windows:
            axis.plot(1e3 * window.time, 1e3 * window.xy[:, component], lw=1.0)
        lowest, highest = np.sort(
            1e3 * np.array([w.offset[component] for w in windows])
        )[[0, -1]]
        axis.set_ylim(lowest - 30.0, highest + 30.0)
        axis.set_ylabel(f"{name} of the CoM [mm]")
        axis.grid(alpha=0.3)
    axes[0].set_title(
        "[Ding]'s method in the first half gait (shaded: its window; dashed: truth)"
    )
    axes[1].set_xlabel("time since two feet left the ground [ms]")
    axes[1].set_xlim(0.0, 300.0)
    figure.savefig(path, dpi=80)
    plt.close(figure)


def show(forces: list[Forces], windows: list[Window]) -> None:
    """Prints both tables."""
    table = Table("force of the ground, RMS error [N]", *[f.robot for f in forces])
    for method, label in LABELS.items():
        table.add_row(label, *[f"{f.rms(method):.1f}" for f in forces])
    errors = Table("true x, y [mm]", "error x [mm]", "error y [mm]")
    for window in windows:
        errors.add_row(
            "{:.0f}, {:.0f}".format(*1e3 * window.offset),
            *[f"{1e3 * e:.1f}" for e in window.error],
        )
    console = Console()
    console.print(table, errors)


def main() -> int:
    """Simulates, draws and prints."""
    parser = argparse.ArgumentParser(description="Figures 5 and 6 of [Ding].")
    parser.add_argument(
        "--out", type=Path, default=Path("out"), help="folder of the pictures"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the sensors' noise")
    parser.add_argument(
        "--quick", action="store_true", help="2 s of trot and three offsets"
    )
    parser.add_argument("--processes", type=int, default=2, help="so many at a time")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    items = [(robot, 2.0 if args.quick else 6.0, args.seed) for robot in ROBOTS]
    offsets = OFFSETS[::4] if args.quick else OFFSETS
    forces = in_processes(ground_reaction, items, "forces", args.processes)
    halves = [(robot, offset) for robot in ROBOTS for offset in offsets]
    windows = in_processes(first_half_gait, halves, "first half gait", args.processes)
    windows, heavy = windows[: len(offsets)], windows[len(offsets) :]
    draw_forces(forces, args.out / "trot_ground_reaction.png")
    draw_windows(windows, args.out / "trot_ding_window.png")
    show(forces, windows)
    errors, heavy_errors = (
        1e3 * np.array([w.error for w in found]) for found in (windows, heavy)
    )
    rms = {
        f.robot: {method: round(f.rms(method), 2) for method in METHODS} for f in forces
    }
    rows = [[*(1e3 * w.offset).round(1), *(1e3 * w.error).round(2)] for w in windows]
    result = {
        "grf_rms_n": rms,
        "ding_mean_mm": np.abs(errors).mean(axis=0).round(2).tolist(),
        "ding_max_mm": np.abs(errors).max(axis=0).round(2).tolist(),
        "ding_worst_mm": round(float(np.linalg.norm(errors, axis=1).max()), 2),
        "ding_offsets_mm": rows,
        "ding_heavy_mean_mm": np.abs(heavy_errors).mean(axis=0).round(2).tolist(),
    }
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
