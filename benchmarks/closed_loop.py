"""What an identification by a robot's own sensors changes in its walk, or its trot.

TALOS and HOAP-2 whose heaviest body carries 5 % of the robot's mass that the URDF does not know,
with its CoM 3 cm further forwards: six steps open loop in MuJoCo, planned with the URDF; --postures
resting postures recorded from the simulator, whose sensors err, and identified, by the commands
that a user has; the same steps planned with the corrected URDF. SCALF-II whose trunk's CoM is off
by 3 cm in x and y trots without the estimate and with it.

The last line is one JSON object, by robot {"before": ..., "after": ...}: urdf_com_mm (horizontal,
in the nominal posture), com_mm (of the walk's true CoM from the plan, mean and largest), steps
walked of six; of the quadruped roll_rms_deg and pitch_rms_deg. make demo-loop is --robot hoap2
--output out: one robot, with a page; true URDF, recording and report stay in a folder beside it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from humanoid_walk import HUMANOIDS, Humanoid
from rich.console import Console
from rich.table import Table
from trot_feedback import OFFSETS, SETTLED, cases, rock
from trot_lab import in_processes
from walk_playback import starting_at
from walk_scenarios import Robot, com_error, fell_at_step, load_robot, simulate, walk_by

from com_control.walking.biped import Biped, find_stance
from com_control.walking.walker import make_plan
from com_demos import demonstration, record_bag
from com_demos.exceptions import RunError
from com_demos.walk_record import WalkRecord
from com_identification.commands import identify, propose_postures
from com_model import RobotModel, Sesc, plotting
from com_model.files import write_file
from com_model.plotting import save_png
from com_model.urdf.editing import Inertial, edit_inertials
from com_simulation.physics.world_builder import build_world

LOAD, OFFSET = 0.05, 0.03  # of the robot's mass; m
POSTURES = 10
WALKING = {h.name: h for h in HUMANOIDS if h.name in ("talos", "hoap2")}
MUST_SHRINK = 0.7  # error of the walk's CoM after over before
WHEN = ("before", "after")


def loaded(model: RobotModel) -> RobotModel:
    """The true robot: its heaviest body has the load, and its CoM further forwards."""
    body = int(np.argmax(model.link_masses))
    mass, load = float(model.link_masses[body]), LOAD * model.mass
    com = model.link_coms[body] + np.array([OFFSET, 0.0, 0.0])
    inertial = Inertial(mass + load, com, model.link_inertias[body] * (1.0 + load / mass))
    xml = edit_inertials(model.xml, {model.link_names[body]: inertial})
    return RobotModel.from_urdf(xml, model.frames)


def identify_by_feet(name: str, truth: Path, folder: Path, postures: int) -> Path:
    """The URDF that is corrected by a simulated recording of resting postures.

    Raises:
        RunError: one of the three commands that do it failed.
    """
    file, bag, result = (str(folder / part) for part in ("postures.yaml", "recording", "result"))
    simulated = ["--truth", str(truth), "--output", bag]
    marked = [f"{bag}/bag", "--marks", f"{bag}/marks.csv", "--output", result]
    for command, words, fine in (
        (propose_postures, ["--count", str(postures), "--output", file], (0,)),
        (record_bag, ["--postures", file, *simulated], (0, 1)),  # 1: some postures are left out
        (identify, marked, (0,)),
    ):
        status = command.main([*words, "--robot", name])
        if status not in fine:
            raise RunError(f"{command.__name__} ended with {status}, see above")
    return Path(result) / "corrected.urdf"


Walked = tuple[dict[str, Any], WalkRecord, Any]


def walk(humanoid: Humanoid, robot: Robot, believed: RobotModel, true: RobotModel) -> Walked:
    """Plans with one model, and walks with the other; figures, record, error of the CoM, mm."""
    planned = Robot(believed, robot.config, Biped.from_config(believed, robot.config), robot.path)
    stance = find_stance(planned.biped, planned.biped.posture)
    found = walk_by("refined", planned, make_plan(humanoid.request, planned.biped, stance))
    config = starting_at(robot.config, true, found.joints.q[0])
    record = simulate(build_world(true, config, contact="stiff", urdf_path=robot.path), found)
    away, fell = 1e3 * com_error(found, record), fell_at_step(found, record)
    q = robot.config.nominal_posture(true)
    error = Sesc(believed).com(q) - Sesc(true).com(q)
    figures = {
        "urdf_com_mm": round(1e3 * float(np.linalg.norm(error[:2])), 2),
        "com_mm": [round(float(away.mean()), 2), round(float(away.max()), 2)],
        "steps": len(found.plan.steps) if fell is None else max(fell - 1, 0),
    }
    return figures, record, away


def close(name: str, postures: int, folder: Path) -> dict[str, Walked]:
    """A humanoid before and after; what is made of it goes to a folder."""
    humanoid = WALKING[name]
    robot = load_robot(humanoid.name, humanoid.urdf)
    true = loaded(robot.model)
    truth = write_file(folder / "true.urdf", true.xml)
    with contextlib.redirect_stdout(sys.stderr):
        corrected = identify_by_feet(name, truth, folder, postures)
    identified = RobotModel.from_file(corrected).with_frames(robot.model.frames)
    models = (robot.model, identified)
    return {when: walk(humanoid, robot, m, true) for when, m in zip(WHEN, models, strict=True)}


def trot() -> dict[str, Any]:
    """SCALF-II before and after."""
    found = {}
    planned = cases("scalf2", OFFSETS[1:2], 6.0, 917_000)
    for case, rocking in zip(planned, in_processes(rock, planned, "trots", 2), strict=True):
        roll, pitch = (round(float(value), 3) for value in rocking.rms(SETTLED))
        figures = {"roll_rms_deg": roll, "pitch_rms_deg": pitch}
        found["after" if case.feedback else "before"] = figures
    return found


def show(name: str, postures: int, output: Path) -> None:
    """One robot, with a page; RunError where it does not walk better than before."""
    folder = output / f"{name}_loop"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    walks = close(name, postures, folder)
    figure = plotting.new_figure((9.6, 3.6), f"{name}: a walk by a wrong URDF, and corrected")
    axes = figure.subplots()
    colors = {"before": plotting.RED, "after": plotting.GREEN}
    for when, (_, record, away) in walks.items():
        axes.plot(record.time[: len(away)], away, color=colors[when], lw=1.4, label=when)
    plotting.style_axes(axes)
    axes.set_ylim(0.0, None)
    axes.set_ylabel("true CoM off the plan (mm)", color=plotting.INK)
    axes.set_xlabel("time of the walk (s)", color=plotting.INK)
    plotting.add_legend(axes, 2)
    save_png(figure, output / f"{name}_loop.png")
    figures: dict[str, Any] = {"robot": name, "postures": postures}
    for when, (found, *_) in walks.items():
        figures |= {f"{key}_{when}": value for key, value in found.items()}
    before, after = (figures[f"com_mm_{when}"][0] for when in WHEN)
    figures["plot"] = str(output / f"{name}_loop.png")

    def check() -> None:
        if figures["steps_after"] < figures["steps_before"] or after > MUST_SHRINK * before:
            raise RunError("the walk is not better than before")

    verdict = (
        f"With a URDF whose CoM is {{urdf_com_mm_before}} mm off the robot made {{steps_before}} "
        f"steps, {before} mm off the plan in the mean; after resting in {{postures}} postures on "
        f"its own feet {{steps_after}} steps, {after} mm."
    )
    then = (
        "docs/tutorial_identification.md does the same with your robot; the true URDF, the "
        "recording and the report of its identification are in the folder beside this page."
    )
    demonstration.finish(figures, output / f"{name}_loop.json", check, verdict, then)


def main() -> int:
    """Closes the loops and prints."""
    parser = argparse.ArgumentParser(description="Walks before and after an identification.")
    parser.add_argument("--postures", type=int, default=POSTURES, help="to identify from")
    parser.add_argument("--robot", choices=tuple(WALKING), help="this one, with --output")
    parser.add_argument("--output", type=Path, help="folder for its page")
    options = parser.parse_args()
    if (options.robot is None) != (options.output is None):
        parser.error("give --robot and --output together, or neither")
    if options.robot:
        try:
            show(options.robot, options.postures, options.output)
        except RunError as error:
            print(f"closed_loop: {error}", file=sys.stderr)
            return 1
        return 0
    results: dict[str, dict[str, Any]] = {}
    for name in WALKING:
        with tempfile.TemporaryDirectory() as folder:
            walks = close(name, options.postures, Path(folder))
        results[name] = {when: found for when, (found, *_) in walks.items()}
    results["scalf2"] = trot()
    table = Table("robot", "", "before", "after", title="the loop closed")
    for name, result in results.items():
        for key, before in result["before"].items():
            table.add_row(name, key, str(before), str(result["after"][key]))
    Console(width=110).print(table)
    print(json.dumps(results))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
