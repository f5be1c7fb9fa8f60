"""Pictures of simulated walks, like figures 9 to 13 of [CCGD]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Polygon
from numpy.typing import NDArray
from walk_playback import measured_zmp
from walk_scenarios import (
    PAPER_SOLE,
    Walk,
    WalkingBiped,
    com_error,
    itu_biped,
    paper_plan,
    simulate,
    walk_by,
    world_for,
)

from com_demos.pictures import FilmRow, draw_film
from com_demos.walk_record import WalkRecord
from com_simulation.drawing.shapes import robot_shape

Array = NDArray[np.float64]

SHOWN = {"constant_offset": "#e03131", "exact": "#1971c2", "refined": "#2f9e44"}
LABELS = {
    "constant_offset": "constant offset",
    "exact": "true CoM on the pendulum's path",
    "refined": "ZMP of all bodies refined",
}
FRAMES = 12


@dataclass(frozen=True, eq=False)
class Run:
    """A walk and what became of it."""

    walk: Walk
    record: WalkRecord
    zmp: Array


def draw_walks(step_time: float, folder: Path) -> None:
    """Simulates three methods on the paper's soles and contact, and draws them.

    Args:
        step_time: s.
        folder: Where walk_com.png, walk_zmp.png, walk_joints.png, walk_film.png go.
    """
    folder.mkdir(parents=True, exist_ok=True)
    robot = itu_biped()
    runs = {method: _run(robot, method, step_time) for method in SHOWN}
    draw_com(runs, folder / "walk_com.png")
    draw_zmp(runs, folder / "walk_zmp.png")
    draw_joints(robot, runs["refined"], folder / "walk_joints.png")
    strips = [
        FilmRow(LABELS[name], runs[name].record, list(footprints(runs[name].walk)))
        for name in ("refined", "constant_offset")
    ]
    plan = runs["refined"].walk.plan
    times = np.linspace(1.0, plan.duration - plan.timing.stop_time, FRAMES)
    shape = robot_shape(robot.model, robot.path)
    draw_film(robot.model, shape, strips, times.tolist(), folder / "walk_film.png")


def _run(robot: WalkingBiped, method: str, step_time: float) -> Run:
    walk = walk_by(method, robot, paper_plan(step_time))
    world = world_for(robot, walk)
    record = simulate(world, walk)
    return Run(walk, record, measured_zmp(world, record))


def footprints(walk: Walk) -> Array:
    """Corners (k, 4, 3) m of the soles where the feet are to stand."""
    length, width = PAPER_SOLE
    corners = np.array(
        [[length, width], [length, -width], [-length, -width], [-length, width]]
    )
    prints = []
    for foot in (*walk.plan.start, *walk.plan.steps):
        c, s = np.cos(foot.yaw), np.sin(foot.yaw)
        turned = corners @ np.array([[c, s], [-s, c]])
        prints.append(np.column_stack((turned, np.zeros(4))) + foot.position)
    return np.array(prints)


def draw_com(runs: dict[str, Run], path: Path) -> None:
    """Figures 10 and 13: x and y of the CoM, meant and simulated, and the distance of the two."""
    figure, (x, y, error) = plt.subplots(
        3, 1, figsize=(9, 6.6), sharex=True, layout="constrained"
    )
    planned = runs["exact"].walk
    for k, axis in enumerate((x, y)):
        axis.plot(
            planned.joints.time, planned.com[:, k], "k--", lw=1.0, label="pendulum"
        )
        for name, run in runs.items():
            axis.plot(run.record.time, run.record.com[:, k], color=SHOWN[name], lw=1.2)
        low, high = np.min(planned.com[:, k]), np.max(planned.com[:, k])
        axis.set_ylim(low - 0.3 * (high - low), high + 0.3 * (high - low))
        axis.set_ylabel(f"{'xy'[k]} of the CoM [m]")
    for name, run in runs.items():
        away = 1e3 * com_error(run.walk, run.record)
        text = f"{LABELS[name]}: " + (
            f"falls after {run.record.fell_at:.1f} s"
            if run.record.fell
            else f"mean {away.mean():.1f}, largest {away.max():.1f} mm"
        )
        error.plot(
            run.record.time[: len(away)], away, color=SHOWN[name], lw=1.2, label=text
        )
    error.set_ylim(0.0, 60.0)
    error.set_ylabel("CoM error [mm]")
    error.set_xlabel("time [s]")
    _mark_steps((x, y, error), planned)
    x.legend(fontsize=8, loc="upper left")
    error.legend(fontsize=8, loc="upper left")
    x.set_title(
        "CoM in the simulator, open loop (shaded: one foot in the air)", fontsize=10
    )
    figure.savefig(path, dpi=80)
    plt.close(figure)


def _mark_steps(panels: Sequence[Axes], walk: Walk) -> None:
    for axis in panels:
        axis.grid(alpha=0.3)
        for lift, down in zip(walk.plan.lift_offs, walk.plan.touch_downs, strict=True):
            axis.axvspan(lift, down, color="0.94", zorder=0)


def draw_zmp(runs: dict[str, Run], path: Path) -> None:
    """Figures 11 and 12: the ZMP by the feet's sensors and the CoM, over the footprints."""
    shown = ("exact", "refined", "constant_offset")
    figure, panels = plt.subplots(
        3, 1, figsize=(9, 6.6), sharex=True, layout="constrained"
    )
    for axis, name in zip(panels, shown, strict=True):
        run = runs[name]
        for sole in footprints(run.walk):
            axis.add_patch(Polygon(sole[:, :2], facecolor="0.94", edgecolor="0.7"))
        axis.plot(*run.walk.zmp[:, :2].T, "k--", lw=1.0, label="ZMP as planned")
        axis.plot(
            *run.zmp[:, :2].T,
            color=SHOWN[name],
            lw=0.9,
            label="ZMP by the feet's sensors",
        )
        axis.plot(*run.record.com[:, :2].T, color="#f08c00", lw=1.4, label="CoM")
        axis.set(xlim=(-0.2, 1.75), ylim=(-0.16, 0.16), aspect="equal", ylabel="y [m]")
        fell = f", falls after {run.record.fell_at:.1f} s" if run.record.fell else ""
        axis.set_title(LABELS[name] + fell, fontsize=10)
    panels[0].legend(fontsize=8, loc="upper left", ncols=3)
    panels[-1].set_xlabel("x [m]")
    figure.savefig(path, dpi=80)
    plt.close(figure)


def draw_joints(robot: WalkingBiped, run: Run, path: Path) -> None:
    """The legs' angles, asked for and simulated."""
    figure, panels = plt.subplots(
        2, 1, figsize=(9, 5.5), sharex=True, layout="constrained"
    )
    for axis, leg in zip(panels, robot.biped.legs, strict=True):
        for k, joint in enumerate(leg.joints):
            line = axis.plot(run.record.time, run.record.position[:, joint], lw=1.2)[0]
            line.set_label(leg.joint_names[k].removesuffix("_joint"))
            axis.plot(run.walk.joints.time, run.walk.joints.q[:, joint], "k:", lw=0.8)
        axis.set_ylabel(f"{leg.side} leg [rad]")
        axis.legend(fontsize=7, ncols=6, loc="upper center")
    panels[0].set_title(
        "joint angles of the refined walk (dotted: asked for)", fontsize=10
    )
    panels[-1].set_xlabel("time [s]")
    _mark_steps(panels, run.walk)
    figure.savefig(path, dpi=80)
    plt.close(figure)
