"""HOAP-2 in MuJoCo keeps its centre of mass where it is desired ([Cotton] Fig. 11).

On a level floor, on one that tilts by 5 deg/s to 10 deg forwards, to the left and askew, with
squat, sway and reach, and without any control for comparison; and how long the CoM of HOAP-2 and of
HOAP-3 rocks when the control begins. Errors are horizontal distances of MuJoCo's true CoM from
where it was to be. The last line is one JSON object; --output DIR writes a page with the plots,
balance.html.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from balance_lab import SETTLE, Array, DesiredCom, Run, load, run

from com_control.balance.demonstrations import reach, squat, sway
from com_control.balance.options import BalanceOptions
from com_control.balance.session import BalanceSession
from com_control.balance.soles import Soles, balance_frame
from com_model import html
from com_model.files import write_file
from com_model.joint_path import JointPath
from com_model.plotting import BLUE, INK, RED, new_figure, robot_figure, style_axes
from com_simulation.physics.sensors import PRESETS
from com_simulation.physics.suspension_rig import STAYS, Tilt

MIDDLE = np.array([0.01, 0.0, np.nan])  # m, a desired CoM beside where it stands
WITHIN = 0.5e-3  # m, of a CoM that has settled
REST = 0.5  # s, at the end of a run, in which nothing should move
ANGLE, RATE = 10.0, 5.0  # degrees, degrees/s
MM = 1e3
TITLE = "HOAP-2 keeps its centre of mass where it should be on a floor that tilts"
ROWS = (
    (
        "static_error_mm",
        "CoM error at rest, on horizontal ground and on the slope",
        "mm",
    ),
    ("noisy_error_mm", "CoM error at rest, with noisy sensors", "mm"),
    (
        "tilt_error_mm",
        "CoM error while the floor tilts, the worst of three directions",
        "mm",
    ),
    ("uncontrolled_tilt_error_mm", "the same, joints only held, until it falls", "mm"),
    ("squat_error_mm", "CoM error, squat of 30 mm on the tilting floor", "mm"),
    ("sway_error_mm", "CoM error, sway of 30 mm on the tilting floor", "mm"),
    ("reach_error_mm", "CoM error, reach to the margin on the tilting floor", "mm"),
    ("step_ms", "median time of one step of the control", "ms"),
)
"""Rows of the page: key of a figure, what it is, its unit."""


def still(_: float, __: BalanceSession) -> tuple[Array, Array]:
    """The CoM to one place; the height is free."""
    return MIDDLE, np.zeros(3)


def stay(_: float, __: BalanceSession) -> None:
    """The CoM to where it stood."""


def follow(kind: str, begin: float) -> tuple[DesiredCom, float]:
    """A demonstration from `begin` (s) on, and how long it takes."""
    model, config = load()
    feet = Soles(model, config.feet)
    poses = feet.poses(config.nominal_posture(model))
    up = poses.R[:, :, 2].mean(axis=0)
    corners = balance_frame(poses, feet.points(poses), up / np.linalg.norm(up)).corners
    made: dict[str, JointPath] = {}

    def make(com: Array) -> JointPath:
        if kind == "squat":
            return squat(com, 0.03, count=1)
        return (
            sway(com, 0.03, corners, BalanceOptions().margin, count=1)
            if kind == "sway"
            else reach(com, corners, BalanceOptions().margin)
        )

    def desired_com(time: float, session: BalanceSession) -> tuple[Array, Array] | None:
        if time < begin or session.desired is None:
            return None
        if kind not in made:
            made[kind] = make(session.desired.copy())
        return made[kind].sample(time - begin)

    return desired_com, make(np.array([0.005, 0.0, 0.25])).end


def report(name: str, done: Run, since: float = 0.0) -> float:
    """Prints what happened; returns the largest error from a time (s) on, mm."""
    error = MM * done.error()[done.time >= since]
    height = MM * np.abs(done.com - done.desired)[done.time >= since, 2]
    tall = "free" if np.isnan(height).any() else f"{height.max():.2f}"
    print(
        f"{name:26s} CoM error {error.max():7.3f} mm at most, "
        f"{np.sqrt((error**2).mean()):7.3f} RMS, height {tall:>5s} mm, "
        f"trunk {np.degrees(done.tilt.max()):5.2f} deg, fell: {'yes' if done.fell else 'no'}"
    )
    for reason in done.reasons[:3]:
        print(f"{'':26s} {reason}")
    return float(error.max())


def settled(done: Run) -> dict[str, float]:
    """When the CoM has settled, by how much it went too far before, and what error is left."""
    time, overshoot = done.settling(WITHIN)
    left = MM * float(done.error()[done.time >= done.time[-1] - REST].max())
    return {
        "below_half_mm_s": round(time, 3),
        "overshoot_percent": round(100.0 * overshoot, 1),
        "static_error_mm": round(left, 4),
    }


def balance_page(kept: Run, loose: Run, figures: Mapping[str, Any]) -> str:
    """The page: a floor that tilts forwards, joints only held (before) and balanced (after)."""
    figure = new_figure(
        (9.6, 6.4), f"A floor that tilts by {RATE:g} deg/s to {ANGLE:g} deg"
    )
    error, trunk, slope = figure.subplots(3, 1, sharex=True)
    for done, color, label in (
        (loose, RED, "joints only held"),
        (kept, BLUE, "balanced"),
    ):
        error.semilogy(
            done.time, np.maximum(MM * done.error(), 1e-3), color=color, label=label
        )
        trunk.plot(done.time, np.degrees(done.tilt), color=color)
    slope.plot(kept.time, np.degrees(kept.slope), color=INK)
    error.legend(frameon=False)
    for axes, label in (
        (error, "CoM error (mm)"),
        (trunk, "tilt of the trunk (deg)"),
        (slope, "slope of the soles (deg)"),
    ):
        style_axes(axes)
        axes.set_ylabel(label)
    slope.set_xlabel("time (s)")
    verdict = (
        f"On a floor that tilts, the CoM stays within {MM * kept.error().max():.2f} mm of where "
        f"it was; with joints only held it moves by {MM * loose.error().max():.1f} mm"
    )
    verdict += (
        f", and counts as fallen after {loose.time[-1]:.1f} s." if loose.fell else "."
    )
    model, config = load()
    robot = robot_figure(model, config.nominal_posture(model), "The robot")
    rows = [
        (text, html.number(figures[name]), unit)
        for name, text, unit in ROWS
        if name in figures
    ]
    then = (
        "docs/balance.md explains it, and how another robot is balanced. See it live: "
        "`ros2 launch com_bringup balance.launch.xml tilt_angle_deg:=10.0 viewer:=true`",
    )
    table = html.table(("figure", "value", "unit"), rows, words=1)
    words = html.element("p", "Errors are the largest horizontal ones.")
    posture = html.folded("The robot", html.svg(robot))
    parts = html.svg(figure), words, table, posture
    fell = bool(kept.fell or figures.get("fell"))
    return html.report(TITLE, verdict, *parts, then=then, failed=fell)


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, help="folder for balance.html")
    output = parser.parse_args().output
    level = run(4.0, still)
    static = report("level floor, at rest", level, level.time[-1] - REST)
    settling = {"hoap2": level, "hoap3": run(4.0, still, robot="hoap3")}
    report("HOAP-3, level floor", settling["hoap3"])
    noisy = report(
        "the same, noisy sensors", run(4.0, still, noise=PRESETS["identification"]), 3.5
    )
    sides = {"forwards": 0.0, "left": np.pi / 2.0, "askew": np.radians(200.0)}
    tilted, runs, fell = {}, {}, level.fell
    for name, direction in sides.items():
        done = run(
            5.5, stay, Tilt(ANGLE, RATE, np.degrees(direction), SETTLE + 1.0, STAYS)
        )
        tilted[name], runs[name] = report(f"tilting {name}", done), done
        static = max(
            static, report("  at rest on the slope", done, done.time[-1] - REST)
        )
        fell |= done.fell
    forwards = Tilt(ANGLE, RATE, 0.0, SETTLE + 1.0, STAYS)
    hoap3 = report("tilting forwards, HOAP-3", run(5.5, stay, forwards, robot="hoap3"))
    loose = run(3.5, stay, Tilt(ANGLE, RATE, 0.0, SETTLE + 1.0, STAYS), control=False)
    report("tilting, joints only held", loose)
    moved = {}
    for kind in ("squat", "sway", "reach"):
        desired_com, duration = follow(kind, 0.5)
        moved[kind] = run(
            duration + 1.0, desired_com, Tilt(ANGLE, RATE, 0.0, SETTLE + 1.0, STAYS)
        )
        report(f"{kind} on the tilting floor", moved[kind])
        fell |= moved[kind].fell
    result = {
        "static_error_mm": round(static, 4),
        "tilt_error_mm": round(max(tilted.values()), 3),
        "tilts_mm": {
            name: round(error, 3) for name, error in (*tilted.items(), ("hoap3", hoap3))
        },
        "fell": bool(fell),
        "noisy_error_mm": round(noisy, 3),
        "uncontrolled_tilt_error_mm": round(MM * float(loose.error().max()), 1),
        **{
            f"{kind}_error_mm": round(MM * float(d.error().max()), 3)
            for kind, d in moved.items()
        },
        "settling": {name: settled(done) for name, done in settling.items()},
        "step_ms": round(1e3 * float(np.median(level.step_time)), 3),
    }
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
        page = balance_page(runs["forwards"], loose, result)
        print(f"wrote {write_file(output / 'balance.html', page)}")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
