"""Command line: propose informative postures for a robot's centres of mass."""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.console import Console

from com_identification.planning.planner import PosturePlanner
from com_identification.settings import IdentificationSettings
from com_model import load_robot
from com_model.commands import add_robot, command_parser, reports_errors
from com_model.exceptions import ComModelError
from com_model.postures import write_postures


@reports_errors("propose_postures", 1, ComModelError, OSError)
def main(words: Sequence[str] | None = None) -> int:
    """Runs the command.

    Args:
        words: arguments of the command line; None: those of the process.

    Returns:
        The exit status: 0 done, 1 no postures can be proposed or written.
    """
    parser = _parser()
    options = parser.parse_args(words)
    if options.keep_feet and options.one_foot:
        parser.error(
            "--one-foot: with --keep-feet all feet stand; leave one of the two out"
        )
    if options.count < 1:
        parser.error(f"--count {options.count}: give 1 or more")
    try:
        model, config = load_robot(options.robot, options.config)
        settings = _settings(options)
    except ComModelError as error:
        parser.error(str(error))
    with Console(stderr=True, quiet=options.quiet).status(
        f"planning {options.count} postures"
    ) as status:
        rest = config.nominal_posture(model)
        planned = PosturePlanner(model, config.feet, rest, settings).propose(
            options.count, progress=lambda _, step: status.update(step)
        )
    rows = np.array([posture.q for posture in planned])
    feet = (
        "the feet stay where they are" if settings.plan.keep_feet else "the feet move"
    )
    write_postures(
        options.output,
        model,
        rows,
        f"{model.name}, planned postures, the most telling first; {feet}",
    )
    figures = {
        "output": str(options.output),
        "postures": len(planned),
        "least_margin_mm": round(
            1000.0 * min(posture.margin for posture in planned), 2
        ),
        "nats": round(sum(posture.gain for posture in planned), 1),
        "one_foot": sum(len(posture.feet) == 1 for posture in planned),
        "efficiency": round(planned[-1].efficiency, 3),
        "com_std_mm": round(1000.0 * planned[-1].prediction_std, 2),
        "com_std_zeroed_mm": round(1000.0 * planned[-1].zeroed_std, 2),
        "com_std_after_mm": [
            round(1000.0 * posture.prediction_std, 2) for posture in planned
        ],
    }
    print(json.dumps(figures))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = command_parser("propose_postures", __doc__.partition(": ")[2], __file__)
    add = parser.add_argument
    add_robot(parser)
    add(
        "--settings",
        type=Path,
        help="identification settings (YAML): noise, priors, plan",
    )
    add("--count", type=int, default=60, help="number of postures")
    add("--keep-feet", action="store_true", help="do not move the feet, see below")
    add(
        "--one-foot",
        type=float,
        metavar="FRACTION",
        help="fraction of one-foot postures, 0 to 1",
    )
    add("--margin", type=float, help="margin of the CoM inside the support polygon, m")
    add("--seed", type=int, help="seed of the random candidates")
    add("--output", type=Path, required=True, help="file to write (YAML)")
    add("--quiet", action="store_true", help="do not show progress")
    return parser


def _settings(options: argparse.Namespace) -> IdentificationSettings:
    file = options.settings
    settings = (
        IdentificationSettings.from_file(file) if file else IdentificationSettings()
    )
    given = {
        "seed": options.seed,
        "margin": options.margin,
        "one_foot": options.one_foot,
    }
    given["keep_feet"] = options.keep_feet or None
    given = {name: value for name, value in given.items() if value is not None}
    return replace(settings, plan=replace(settings.plan, **given))


if __name__ == "__main__":
    sys.exit(main())
