"""Any robot: does what com_setup writes stand, walk or trot, and serve to identify it, unedited?

  tools/in_env python benchmarks/any_robot.py                 the URDFs of example-robot-data
  tools/in_env python benchmarks/any_robot.py DIR             all URDFs and MJCFs below a folder
  tools/in_env python benchmarks/any_robot.py DIR --only g1   those with that in their path

Each URDF with two or more legs is configured; the robot stands in the simulator for 10 s (its tilt
stays below 5 degrees), then walks four steps (humanoids) or trots for 5 s (quadrupeds) on flat
stiff ground by the sizes of its configuration; and it is identified: its centres of mass are not
where its URDF says, and readings of 20 planned postures must more than halve the error of its
predicted CoM (any_identification.py). Variants of one robot are one: of the URDFs of one kind in
one folder the first one is tried.

The last line is one JSON object: robots (URDFs with two or more legs), configured, stood, moved
(how many did), identified, through (all of stood, moved and identified) and of (how many there are)
by kind, wrong_exit_0 and wrong (number and names of robots that com_setup, with exit 0, takes for
another kind than their path says, or that do not stand though it does not say so), refused {name:
message}, where a robot that has legs but failed has an entry as well, and sole_mm and sole_deg, the
largest errors of a found sole where the URDF has a sole link.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
from any_identification import identify_robot
from example_robots import example_urdfs
from processes import in_processes
from rich.console import Console
from rich.table import Table
from trot_lab import TrotRun, run_trot
from walk_scenarios import WalkingBiped, fell_at_step, simulate, walk_by, world_for

from com_control.walking.biped import Biped
from com_control.walking.walk import WalkRequest
from com_control.walking.walker import Walker
from com_model import RobotConfig, RobotModel, load_robot
from com_model.exceptions import ComModelError
from com_model.setup import RobotSetup, describe, to_yaml
from com_model.setup.check import check_written, with_steps
from com_model.setup.gains import with_drives
from com_model.setup.parts import HUMANOID, OTHER, QUADRUPED
from com_model.urdf.mjcf import drives_of_mjcf, urdf_of_mjcf
from com_model.urdf.xml_reader import is_mjcf
from com_simulation.physics.standing import try_standing

STANDING = 10.0  # s
# words in paths of robots whose kind is known; others are judged by whether they stand
KINDS = {
    HUMANOID: "alexander atlas bolt cassie digit g1 gr1 h1 h2 human humanoid icub jvrc nao op3 r1 "
    "romeo talos thormang3 valkyrie walker",
    QUADRUPED: "a1 a2 aliengo anymal as2 b1 b2 go1 go2 hyq laikago pupper quadruped scalf2 solo "
    "solo12 spot",
    OTHER: "hexapod phantomx",
    "": "b2w centauro fetch go2w panda pepper tiago ur3 ur5 ur10 z1",
}
_NO_SUPPORT = "point feet are no support"
STEPS, TROTTING = 4, 5.0  # steps; s
FALLEN = 0.6  # rad


@dataclass
class Result:
    """What became of one URDF; messages by stage, "" where it went well, None: not tried."""

    name: str
    path: Path
    kind: str = ""
    text: str = ""  # its configuration
    refused: str = ""
    tilt: float = np.nan
    stood: str | None = None
    moved: str | None = None
    identified: str | None = None
    exit_2: str = ""  # what com_setup refuses it for
    soles: list[tuple[float, float]] = field(default_factory=list)
    issues: int = 0
    seconds: float = 0.0

    @property
    def problem(self) -> str:
        """The first thing that went wrong; "": nothing."""
        return (
            self.refused
            or self.exit_2
            or self.stood
            or self.moved
            or self.identified
            or ""
        )


def configure(source: Path, top: Path = Path(), made: Path = Path()) -> Result:
    """Configures a robot; of a model of MuJoCo below top the URDF is made below another folder."""
    path = source
    if source.suffix == ".xml":
        path = made / top.name / source.relative_to(top).with_suffix(".urdf")
    result, begin = Result(path.stem, path), time.monotonic()
    try:
        if path != source:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(urdf_of_mjcf(source))
        setup = describe(RobotModel.from_file(path), path)
        if path != source:
            setup = with_drives(setup, drives_of_mjcf(source))
        result.kind, result.issues = setup.limbs.kind, len(setup.issues)
        result.soles, result.text = sole_errors(setup), to_yaml(setup)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / f"{path.stem}.yaml"
            file.write_text(result.text)
            up = setup.limbs.R_root_robot[:, 2]
            result.exit_2 = check_written(load_robot, path, file, up)[1]
            if not result.exit_2:
                result.text = to_yaml(with_steps(setup, load_robot, path, file)[0])
    except Exception as error:  # whatever goes wrong is a result
        result.refused = message(error)
    result.seconds = time.monotonic() - begin
    return result


def is_model(path: Path) -> bool:
    """Whether a file is a model of MuJoCo with bodies."""
    return is_mjcf(path) and b"<body" in path.read_bytes()


def try_robot(result: Result) -> Result:
    """Lets a robot stand and move, and identifies it."""
    begin, path = time.monotonic(), result.path
    warnings.simplefilter("ignore")
    try:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / f"{path.stem}.yaml"
            file.write_text(result.text)
            config = RobotConfig.from_file(file)
            model = config.attach(RobotModel.from_file(path))
            result.tilt, result.stood = try_standing(model, config, path, STANDING)
            if (
                result.stood and "# CHECK feet: " in result.text
            ):  # what com_setup had said of it
                result.stood += (
                    ": " + result.text.partition("# CHECK feet: ")[2].split("\n")[0]
                )
            if not result.stood:
                walks = result.kind == HUMANOID
                result.moved = attempt(walk if walks else trot, model, config, path)
                result.identified = attempt(identified, model, config, path)
    except Exception as error:  # likewise
        result.refused = message(error)
    result.seconds += time.monotonic() - begin
    return result


def is_wrong(result: Result) -> bool:
    """Whether com_setup takes a robot for another animal, or for one that stands, with exit 0."""
    if result.refused or result.exit_2:
        return False
    words = re.split(r"[\W_]+|(?<=[a-z])(?=[A-Z])", "/".join(result.path.parts[-4:]))
    known = {
        kind for word in words for kind in KINDS if word.lower() in KINDS[kind].split()
    }
    said = _NO_SUPPORT in result.text  # com_setup names what cannot stand on its feet
    return bool((known and result.kind not in known) or (result.stood and not said))


def attempt(
    stage: Callable[[RobotModel, RobotConfig, Path], str],
    model: RobotModel,
    config: RobotConfig,
    path: Path,
) -> str:
    """What a stage says, or why it failed."""
    try:
        return stage(model, config, path)
    except Exception as error:  # likewise
        return message(error)


def message(error: Exception) -> str:
    """An error as a result."""
    known = isinstance(error, ComModelError)
    return str(error) if known else f"{type(error).__name__}: {error}"


def sole_errors(setup: RobotSetup) -> list[tuple[float, float]]:
    """Height (m) and tilt (rad) of found soles against links that are called soles."""
    bodies, model = setup.model.bodies, setup.model
    errors = []
    for foot in setup.feet:
        for i, name in enumerate(model.link_names):
            here = bodies.body_of_link[i] == foot.leg.foot
            if foot.sole.flat and here and "sole" in name.lower():
                up = foot.sole.R_body[:, 2]
                height = abs(float(up @ (bodies.p_body_link[i] - foot.sole.p_body)))
                cosine = np.clip(up @ bodies.R_body_link[i][:, 2], -1.0, 1.0)
                errors.append((height, float(np.arccos(cosine))))
    return errors


def walk(model: RobotModel, config: RobotConfig, path: Path) -> str:
    """Lets a robot walk by its configuration's sizes; why it did not, if so."""
    sizes = config.walking
    robot = WalkingBiped(model, config, Biped.from_config(model, config), path)
    request = WalkRequest(
        steps=STEPS,
        step_length=sizes.step_length,
        step_height=sizes.step_height,
        step_time=sizes.step_time,
        com_height=sizes.com_height,
        method="refined",
    )
    plan = Walker(robot.biped).plan(request, robot.biped.posture).plan
    found = walk_by("refined", robot, plan)
    fell = fell_at_step(found, simulate(world_for(robot, found, "stiff", None), found))
    return "" if fell is None else f"falls at step {fell}"


def trot(model: RobotModel, config: RobotConfig, path: Path) -> str:
    """Lets a robot trot by its configuration's sizes; why it did not, if so."""
    sizes = config.trot
    gait = {
        "frequency": sizes.frequency,
        "step_height": sizes.step_height,
        "height": sizes.body_height,
    }
    log = run_trot(TrotRun(str(path), config.source, seconds=TROTTING, gait=gait))
    tilt = float(max(np.abs(log.roll).max(), np.abs(log.pitch).max()))
    return "" if tilt < FALLEN else f"falls: tilts by {np.degrees(tilt):.0f} degrees"


def identified(model: RobotModel, config: RobotConfig, path: Path) -> str:
    """Identifies a robot; why that failed, if so."""
    return identify_robot(model, config).problem()


def one_of_each(results: list[Result]) -> list[Result]:
    """Leaves variants out: URDFs of one folder with the same kind, but for the first."""
    kept: dict[tuple[Path, str], Result] = {}
    for result in results:
        kept.setdefault((result.path.parent.parent, result.kind), result)
    return list(kept.values())


def figures(legged: list[Result], others: list[Result]) -> dict[str, object]:
    """The figures of robots with legs, and of what has none."""
    soles = np.array([error for r in legged for error in r.soles]).reshape(-1, 2)
    worst = soles.max(axis=0) if len(soles) else None
    return {
        "robots": len(legged),
        "configured": sum(r.stood is not None for r in legged),
        "stood": sum(r.stood == "" for r in legged),
        "moved": sum(r.moved == "" for r in legged),
        "identified": sum(r.identified == "" for r in legged),
        "through": dict(Counter(r.kind for r in legged if not r.problem)),
        "of": dict(Counter(r.kind for r in legged)),
        "refused": {r.name: r.problem for r in (*legged, *others) if r.problem},
        "wrong_exit_0": sum(map(is_wrong, legged)),
        "wrong": [r.name for r in legged if is_wrong(r)],
        "sole_mm": None if worst is None else round(1e3 * float(worst[0]), 2),
        "sole_deg": None if worst is None else round(float(np.degrees(worst[1])), 3),
    }


def main() -> int:
    """Tries and prints."""
    parser = argparse.ArgumentParser(
        description="Configures, stands and moves any robot."
    )
    parser.add_argument(
        "folder", nargs="?", type=Path, help="of URDFs, MJCFs; example-robot-data"
    )
    parser.add_argument("--only", default="", help="those with this in their path")
    parser.add_argument("--processes", type=int, default=2, help="so many at a time")
    arguments = parser.parse_args()
    folder = arguments.folder
    if folder is None:
        paths = list(example_urdfs().values())
    else:
        paths = sorted(folder.rglob("*.urdf"))
        paths += [path for path in sorted(folder.rglob("*.xml")) if is_model(path)]
    paths = [path for path in paths if arguments.only in str(path)]
    with tempfile.TemporaryDirectory() as made:
        one = partial(configure, top=folder or Path(), made=Path(made))
        found = in_processes(one, paths, "configured", arguments.processes)
        chosen = one_of_each([r for r in found if r.kind])
        legged = in_processes(try_robot, chosen, "tried", arguments.processes)
    table = Table(
        "robot", "kind", "tilt [deg]", "stood", "moved", "identified", "unsure", "s"
    )
    for r in legged:
        shown = [r.refused or r.stood, r.moved, r.identified]
        stages = ("" if text is None else (text or "yes")[:60] for text in shown)
        table.add_row(
            r.name, r.kind, f"{r.tilt:.2f}", *stages, str(r.issues), f"{r.seconds:.0f}"
        )
    Console(width=200).print(table)
    print(json.dumps(figures(legged, [r for r in found if not r.kind])))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
