"""Command line: where a robot can bring its centre of mass, root held and over its feet."""

import argparse
import json
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from com_demos.com_workspace import (
    StandingReach,
    Workspace,
    reach_on_feet,
    reach_on_foot,
    sample_coms,
)
from com_demos.two_joint_human import study
from com_demos.workspace_plot import workspace_png
from com_model import html
from com_model.arrays import Array
from com_model.commands import add_robot, command_parser
from com_model.exceptions import ComModelError
from com_model.files import write_file
from com_model.model import RobotModel
from com_model.plotting import robot_figure
from com_model.robot_config import RobotConfig
from com_model.robots import load_robot

_SIDES = {
    "front": (1, 0, 0),
    "back": (-1, 0, 0),
    "left": (0, 1, 0),
    "right": (0, -1, 0),
    "up": (0, 0, 1),
    "down": (0, 0, -1),
}
# postures of a standing robot at most: their feet are placed in plain numpy
_STANDING = 50_000


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status: 0 done, 2 a file or an argument cannot be used."""
    arguments, lines = _parser().parse_args(argv), list[str]()
    try:
        if arguments.human:
            study(arguments.output, arguments.force)
            return 0
        if arguments.robot is None:
            raise ComModelError("give --robot ROBOT, or --human")
        model, config = load_robot(arguments.robot, arguments.config)
        workspace, seconds = _sample(model, arguments)
        standing = _stand(model, config, arguments)
        figures = _hull(workspace, lines) | {
            "standing": [_standing(r, lines) for r in standing]
        }
        print("\n".join(lines))
        if arguments.output is not None:
            _write(
                arguments,
                model,
                config.nominal_posture(model),
                workspace,
                standing,
                lines,
            )
    except (ComModelError, OSError) as error:
        print(f"workspace: {error}", file=sys.stderr)
        return 2
    head = {
        "robot": model.name,
        "configurations": arguments.count,
        "wall_s": round(seconds, 3),
    }
    print(json.dumps(head | figures))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = command_parser(
        None, "Samples the region that a robot's CoM can reach.", __file__
    )
    add = parser.add_argument
    add_robot(parser, required=False)
    add(
        "--human",
        action="store_true",
        help="in place of a robot, a human of two links, see below",
    )
    add(
        "--joints",
        nargs="+",
        help="joints that vary while the root link is fixed; default: all",
    )
    add("--count", type=int, default=1_000_000, help="number of postures")
    add("--threads", type=int, default=2, help="number of threads")
    add("--seed", type=int, default=0, help="random seed, 0 or more")
    text = "folder for the page (html) and its picture; created if missing"
    add("--output", type=Path, help=text)
    add("--force", action="store_true", help="overwrite existing files")
    return parser


def _sample(
    model: RobotModel, arguments: argparse.Namespace
) -> tuple[Workspace, float]:
    """Samples the robot with its root link held; the time that it took, s."""
    if arguments.seed < 0:
        raise ComModelError(f"--seed: expected 0 or more, got {arguments.seed}")
    options = (arguments.joints, None, arguments.seed, arguments.threads)
    sample_coms(model, 1, *options)  # compiles
    start = time.perf_counter()
    points = sample_coms(model, arguments.count, *options)
    seconds = time.perf_counter() - start
    print(f"{arguments.count} postures of {model.name} in {seconds:.2f} s")
    return Workspace.from_points(points), seconds


def _stand(
    model: RobotModel, config: RobotConfig, arguments: argparse.Namespace
) -> list[StandingReach]:
    if not config.feet:
        return []
    count, seed = min(arguments.count, _STANDING), arguments.seed
    rest = config.nominal_posture(model)
    reaches = [reach_on_feet(model, config.feet, rest, count, seed)]
    for foot in config.feet:
        others = [other for other in config.feet if other is not foot]
        reaches.append(reach_on_foot(model, foot, count, seed, others))
    return reaches


def _hull(workspace: Workspace, lines: list[str]) -> dict[str, object]:
    """Figures of the hull; appends them in words."""
    reach = dict(
        zip(_SIDES, workspace.reach(list(_SIDES.values())).tolist(), strict=True)
    )
    volume = f"root link held: hull of {1e6 * workspace.volume:.0f} cm^3"
    lines.append(f"{volume}; from the root link's origin")
    lines.append(
        "  "
        + ", ".join(f"{side} {1e3 * far:.0f}" for side, far in reach.items())
        + " mm"
    )
    return {"hull_m3": workspace.volume, "reach_m": reach}


def _standing(reach: StandingReach, lines: list[str]) -> dict[str, object]:
    (low, high), beyond = reach.heights, reach.over_edges()
    stable = f"{100 * reach.fraction:.1f} % of the postures above the ground are statically stable"
    lines.append(f"on {' and '.join(reach.feet)}: {stable}")
    best = f"best margin {1e3 * reach.best_margin:.0f} mm"
    lines.append(f"  {best}, height {low:.3f} to {high:.3f} m")
    edges = ", ".join(f"{side} {1e3 * far:+.0f}" for side, far in beyond.items())
    lines.append(f"  the projection comes beyond the support polygon by {edges} mm")
    return {
        "feet": reach.feet,
        "fraction": reach.fraction,
        "best_margin_m": reach.best_margin,
        "height_m": [low, high] if reach.fraction > 0.0 else None,
        "beyond_m": beyond,
    }


def _tables(workspace: Workspace, standing: Sequence[StandingReach]) -> list[html.Raw]:
    """How far the CoM comes with the root link held, and over the feet."""
    sides = [f"{side} (mm)" for side in _SIDES]
    reach = [html.number(far, 0, 1e3) for far in workspace.reach(list(_SIDES.values()))]
    rows = [
        (
            " and ".join(r.feet),
            html.number(r.fraction, 1, 100.0),
            html.number(r.best_margin, 0, 1e3),
            *(html.number(height, 3) for height in r.heights),
            *(html.number(far, 0, 1e3) for far in r.over_edges().values()),
        )
        for r in standing
    ]
    head = (
        "on",
        "stable (%)",
        "best margin (mm)",
        "lowest (m)",
        "highest (m)",
        *sides[:4],
    )
    held = "Root link held: how far the CoM comes from its origin; the hull of all places has "
    over = "On the feet: height of the CoM, and how far its projection leaves the support polygon."
    return [
        html.element("p", f"{held}{1e6 * workspace.volume:.0f} cm³."),
        html.table(sides, [reach]),
        *([html.element("p", over), html.table(head, rows)] if rows else []),
    ]


def _write(
    arguments: argparse.Namespace,
    model: RobotModel,
    q: Array,
    workspace: Workspace,
    standing: Sequence[StandingReach],
    lines: Sequence[str],
) -> None:
    """Writes the picture and the page; q (n,) is the posture in which the robot is drawn."""
    title = f"Workspace of the centre of mass of {model.name}"
    png, robot = (
        workspace_png(workspace, title, standing),
        robot_figure(model, q, "The robot"),
    )
    fractions = [
        f"{100 * r.fraction:.1f} % on {' and '.join(r.feet)}" for r in standing
    ]
    verdict = f"In the root link's frame, {lines[0]}: {lines[1].strip()}."
    if standing:
        verdict = f"Random postures that {model.name} can hold at rest: {', '.join(fractions)}."
    urdf = shlex.quote(str(model.path or arguments.robot))
    then = (
        "The figures are as true as the masses. docs/tutorial_identification.md corrects what is "
        f"wrong, and this shows it: `ros2 run com_model audit {urdf}`",
        "How it is computed: docs/derivations.md#workspace-of-the-centre-of-mass",
    )
    parts = html.image(png, "workspace"), *_tables(workspace, standing)
    posture = html.folded("The robot", html.svg(robot))
    page = html.report(title, verdict, *parts, posture, then=then)
    arguments.output.mkdir(parents=True, exist_ok=True)
    path = arguments.output / f"{model.name}_com_workspace.png"
    for file, content in ((path, png), (path.with_suffix(".html"), page)):
        print(f"wrote {write_file(file, content, arguments.force)}")


if __name__ == "__main__":
    sys.exit(main())
