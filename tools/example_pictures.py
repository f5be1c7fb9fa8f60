"""Draws the gallery of examples/README.md: each example runs, and what it gives is drawn.

tools/in_env python tools/example_pictures.py        # writes docs/images/example_NAME.png
tools/in_env python tools/example_pictures.py plan_sway
"""

from __future__ import annotations

import contextlib
import io
import os
import runpy
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

os.environ.setdefault("MUJOCO_GL", "egl")  # draws without a display

import mujoco
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Polygon

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "benchmarks"))

# ruff: noqa: E402 - MuJoCo asks for the variable, and that folder is no package
import diagnose_demo
from identification_scenario import PLAN, PinocchioRobot, scenario_of
from moving_pictures import Drawn, Instant

from com_control.walking import Biped, Walker, WalkRequest
from com_demos.hidden_load import displace_battery
from com_demos.pictures import CHAIN, com_symbol, draw_body, pixel_axes
from com_demos.render import Camera
from com_identification.store.store import PostureStore
from com_model import RobotConfig, RobotModel, Sesc, link_poses, load_robot
from com_model.arrays import Array
from com_model.geometry.support import convex_hull
from com_model.plotting import (
    AXIS_COLORS,
    BLUE,
    GREEN,
    GRID,
    RED,
    RULE,
    save_png,
    style_axes,
)
from com_model.robots import find_robot
from com_simulation.drawing.shapes import robot_shape

SIZE = (2.4, 1.8)  # inches, at 100 dots per inch
URDF = ROOT / "src/robot_descriptions/urdf/hoap2.urdf"
Panel = Callable[[Figure, Path], None]


def run(name: str, *words: object) -> list[str]:
    """Run an example; return the lines that it prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        runpy.run_path(str(ROOT / f"examples/{name}.py"))["main"](*map(str, words))
    return out.getvalue().splitlines()


@cache
def hoap2() -> tuple[RobotModel, RobotConfig, Drawn]:
    """HOAP-2 by its URDF, and its shape."""
    model, config = load_robot("hoap2")
    return model, config, Drawn(model, robot_shape(model, URDF))


def standing(q: Array) -> Instant:
    """HOAP-2 in a posture (n,) with its left sole level at the origin."""
    model, config, _ = hoap2()
    R, p = (
        poses[model.link_index(config.feet[0].frame)] for poses in link_poses(model, q)
    )
    return Instant(0.0, q, R.T, -R.T @ p, R.T @ (Sesc(model).com(q) - p))


def soles(q: Array) -> list[Array]:
    """Corners (k, 2) m of both soles on the ground, x forwards, y to the left."""
    model, config, _ = hoap2()
    at, found = standing(q), []
    for foot in config.feet:
        k = model.link_index(foot.frame)
        R, p = (poses[k] for poses in link_poses(model, q, at.R, at.p))
        found.append((np.pad(foot.corners, ((0, 0), (0, 1))) @ R.T + p)[:, :2])
    return found


def body(
    figure: Figure, *instants: Instant, opacity: float = 0.75
) -> tuple[Axes, Camera]:
    """Draw HOAP-2 in one or more postures, the last one in full colour."""
    drawn = hoap2()[2]
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    width, height = pixel_axes(axes)
    camera = Camera.looking_at(instants[0].com, 62.0, 8.0, 2.5)
    camera = camera.fitted(drawn.corners(*instants), width, height, border=0.04)
    for at in instants:
        last = at is instants[-1]
        draw_body(axes, drawn.parts(at), camera, opacity if last else 0.25)
        x, y, _ = camera.project(at.com).tolist()
        com_symbol(axes, (x, y), 6.0)
    return axes, camera


def plot(figure: Figure, label: str) -> Axes:
    """Small axes with a label below."""
    axes = figure.add_axes((0.17, 0.24, 0.80, 0.72))
    style_axes(axes)
    axes.tick_params(labelsize=6)
    axes.set_xlabel(label, fontsize=7)
    return axes


def ground(figure: Figure, outlines: Sequence[Array]) -> Axes:
    """Soles from above, in mm, forwards upwards."""
    axes = plot(figure, "to the left (mm)")
    for outline in outlines:
        axes.add_patch(Polygon(1e3 * outline[:, ::-1], facecolor=GRID, edgecolor=RULE))
    axes.invert_xaxis()
    axes.set_aspect("equal", adjustable="datalim")
    axes.autoscale_view()
    return axes


def bars(
    figure: Figure,
    names: Sequence[str],
    sizes: Array,
    label: str,
    stds: Array | None = None,
) -> None:
    """Horizontal bars, the longest above."""
    order = np.argsort(sizes)[-6:]
    axes = plot(figure, label)
    axes.set_position((0.34, 0.24, 0.63, 0.72))
    error = None if stds is None else stds[order]
    axes.barh([names[i] for i in order], sizes[order], xerr=error, color=BLUE)


def com_of_urdf(figure: Figure, _: Path) -> None:
    """The robot and its CoM."""
    model, config, _drawn = hoap2()
    q = config.nominal_posture(model).copy()
    words = {"RARM_JOINT1": -1.0, "RLEG_JOINT3": -0.5, "RLEG_JOINT4": 1.0}
    run("com_of_urdf", "hoap2", *(f"{k}={v}" for k, v in words.items()))
    for name, value in words.items():
        q[model.joint_names.index(name)] = value
    body(figure, standing(q))


def equivalent_chain(figure: Figure, _: Path) -> None:
    """The chain in the robot."""
    model, config, _drawn = hoap2()
    run("equivalent_chain", "hoap2")
    at = standing(config.nominal_posture(model))
    axes, camera = body(figure, at, opacity=0.3)
    chain = camera.project(Sesc(model).chain(at.q) @ at.R.T + at.p)[:, :2]
    axes.plot(*chain.T, "o-", color=CHAIN, mfc="white", ms=3, lw=1.6, zorder=7)


def support_margin(figure: Figure, _: Path) -> None:
    """CoM over the soles."""
    model, config, _drawn = hoap2()
    (first, *_rest) = run("support_margin", "hoap2")
    q = config.nominal_posture(model)
    outlines = soles(q)
    axes, (x, y) = ground(figure, outlines), 1e3 * standing(q).com[:2]
    hull = 1e3 * convex_hull(np.concatenate(outlines))
    axes.add_patch(Polygon(hull[:, ::-1], facecolor="none", edgecolor=GREEN, lw=1.5))
    axes.plot(y, x, "o", color=RED, ms=6)
    axes.set_title(first.partition(": ")[2].partition(" inside")[0], fontsize=8)


def audit_and_fix(figure: Figure, folder: Path) -> None:
    """A misspelt tag hides the mass of the trunk."""
    wrong, fixed = folder / "wrong.urdf", folder / "fixed.urdf"
    text = URDF.read_text().replace("<inertial>", "<intertial>", 1)
    wrong.write_text(text.replace("</inertial>", "</intertial>", 1))
    run("audit_and_fix", wrong, fixed)
    masses = [RobotModel.from_file(path).mass for path in (wrong, fixed)]
    names = ["as written", "corrected"]
    bars(figure, names, np.array(masses), "mass of the robot (kg)")


def compare_urdfs(figure: Figure, folder: Path) -> None:
    """How far CoMs of links are apart."""
    model, config, _drawn = hoap2()
    other = folder / "other.urdf"
    other.write_text(displace_battery(model, config, 0.005, 0)[0].xml)
    lines = [line.split() for line in run("compare_urdfs", URDF, other)[:-1]]
    bars(
        figure,
        [line[0] for line in lines],
        np.array([float(line[-2]) for line in lines]),
        "CoM moved by (mm)",
    )


def recording(folder: Path) -> Path:
    """A bag of TALOS that walks."""
    files, bag = find_robot("talos"), folder / "bag"
    config = RobotConfig.from_file(str(files.config))
    model = config.attach(RobotModel.from_file(files.urdf))
    diagnose_demo.record(str(files.urdf), model, config, 4.0, bag)
    return bag


def com_along_bag(figure: Figure, folder: Path) -> None:
    """CoM over time."""
    lines = run("com_along_bag", recording(folder), "talos")[1:]
    values = np.array([line.split(",") for line in lines], dtype=float)
    axes = plot(figure, "time (s)")
    for k, color in enumerate(AXIS_COLORS):
        axes.plot(
            values[:, 0],
            1e3 * (values[:, k + 1] - values[0, k + 1]),
            color=color,
            lw=0.8,
        )
    axes.set_ylabel("CoM (mm)", fontsize=7)


def log_to_arrays(figure: Figure, folder: Path) -> None:
    """Joint positions over time."""
    out = folder / "log.npz"
    run("log_to_arrays", recording(folder), "talos", out)
    with np.load(out) as arrays:
        time, Q = arrays["time"], arrays["position"]
    axes = plot(figure, "time (s)")
    axes.plot(time - time[0], Q[:, np.argsort(np.ptp(Q, axis=0))[-6:]], lw=0.7)
    axes.set_ylabel("joints (rad)", fontsize=7)


def identify_from_postures(figure: Figure, folder: Path) -> None:
    """Which links have moved, with standard deviations."""
    scenario, (model, config, _drawn) = scenario_of("hoap2"), hoap2()
    true, _ = displace_battery(model, config, 0.005, 0)
    robot, rng = (
        PinocchioRobot(true.xml, scenario.model, scenario.feet),
        np.random.default_rng(0),
    )
    path = folder / "postures.db"
    with PostureStore(path, model, config.feet) as store:
        for plan in scenario.planned(replace(PLAN, candidates=120, refinements=4), 12):
            store.add(robot.posture(plan.q, rng))
    lines = [
        line.split()
        for line in run("identify_from_postures", "hoap2", path)
        if " kg  CoM by" in line
    ]
    moved, stds = (np.array([float(line[i]) for line in lines]) for i in (-4, -2))
    bars(figure, [line[0] for line in lines], moved, "CoM moved by (mm)", stds)


def solve_com_ik(figure: Figure, _: Path) -> None:
    """Before and after."""
    model, config, _drawn = hoap2()
    q = Biped.from_config(model, config).posture
    moved = q.copy()
    for line in run("solve_com_ik", "hoap2", 0.0, 0.03, -0.03)[1:]:
        name, *_before, after, _unit = line.split()
        moved[model.joint_names.index(name)] = float(after)
    body(figure, standing(q), standing(moved))


def plan_sway(figure: Figure, folder: Path) -> None:
    """The way of the CoM over the soles."""
    model, config, _drawn = hoap2()
    out = folder / "sway.csv"
    run("plan_sway", "hoap2", out)
    Q = np.loadtxt(out, delimiter=",", skiprows=1)[::10, 1:]
    axes = ground(figure, soles(config.nominal_posture(model)))
    way = 1e3 * np.array([standing(q).com for q in Q])
    axes.plot(way[:, 1], way[:, 0], color=BLUE, lw=0.8)


def plan_walk(figure: Figure, folder: Path) -> None:
    """The footsteps and the way of the CoM."""
    run("plan_walk", "hoap2", folder / "walk.html", 4, 2)
    model, config, _drawn = hoap2()
    biped = Biped.from_config(model, config)
    walk = Walker(biped).plan(WalkRequest(steps=4), biped.posture)
    axes, corners = plot(figure, "forwards (mm)"), np.asarray(config.feet[0].corners)
    for foot in (*walk.plan.start, *walk.plan.steps):
        sole = 1e3 * (corners[:, :2] + foot.position[:2])
        axes.add_patch(Polygon(sole, facecolor=GRID, edgecolor=RULE))
    axes.plot(*(1e3 * walk.samples.com[:, :2].T), color=BLUE, lw=1.2)
    axes.set_aspect("equal", adjustable="datalim")


def export_mjcf(figure: Figure, folder: Path) -> None:
    """The robot as MuJoCo draws it."""
    out = folder / "robot.mjcf.xml"
    run("export_mjcf", "hoap2", out)
    mj = mujoco.MjModel.from_xml_path(str(out))
    mj.vis.headlight.ambient[:], mj.vis.headlight.diffuse[:] = 0.55, 0.5
    mj.geom_rgba[mj.geom_type == mujoco.mjtGeom.mjGEOM_PLANE] = 1.0
    data = mujoco.MjData(mj)
    mujoco.mj_forward(mj, data)
    camera = mujoco.MjvCamera()
    camera.lookat, camera.distance = data.subtree_com[1], 1.0
    camera.azimuth, camera.elevation = 150.0, -40.0
    with mujoco.Renderer(mj, 360, 480) as renderer:
        renderer.update_scene(data, camera)
        figure.add_axes((0.0, 0.0, 1.0, 1.0)).imshow(renderer.render())
    figure.axes[0].set_axis_off()


PANELS: tuple[Panel, ...] = (
    com_of_urdf,
    equivalent_chain,
    support_margin,
    audit_and_fix,
    compare_urdfs,
    com_along_bag,
    log_to_arrays,
    identify_from_postures,
    solve_com_ik,
    plan_sway,
    plan_walk,
    export_mjcf,
)


def main(*names: str) -> None:
    """Write the pictures, all or those of some examples."""
    for panel in PANELS:
        if names and panel.__name__ not in names:
            continue
        figure = Figure(figsize=SIZE, dpi=100, facecolor="white")
        with tempfile.TemporaryDirectory() as folder:
            panel(figure, Path(folder))
        save_png(figure, ROOT / f"docs/images/example_{panel.__name__}.png")


if __name__ == "__main__":
    main(*sys.argv[1:])
