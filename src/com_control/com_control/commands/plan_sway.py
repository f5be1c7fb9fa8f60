"""Command line: plans a slow motion that shows a robot's masses."""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from com_control.motion.sway_tour import SwayTour, plan_hang, plan_sway
from com_model import ComModelError, load_robot
from com_model.commands import add_robot, command_parser, reports_errors


@reports_errors("plan_sway", 2, ComModelError, OSError)
def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line.

    Args:
        argv: command-line arguments without the program's name; None: those of the process.

    Returns:
        Exit status: 0; 2 where no motion is possible or an input cannot be used.
    """
    parser = command_parser(
        "plan_sway", "Plans a slow motion that shows a robot's masses.", __file__
    )
    text = "the robot hangs from a rope and moves its limbs; else it sways on all feet"
    parser.add_argument("--hang", action="store_true", help=text)
    parser.add_argument("--seconds", type=float, default=60.0, help="s (60)")
    text = "of periods and phases; another one for validation (1)"
    parser.add_argument("--seed", type=int, default=1, help=text)
    parser.add_argument("--output", required=True, metavar="CSV", help="file to write")
    add_robot(parser)
    arguments = parser.parse_args(argv)
    model, config = load_robot(arguments.robot, arguments.config)
    plan = plan_hang if arguments.hang else plan_sway
    tour = plan(model, config, arguments.seconds, arguments.seed)
    _write(Path(arguments.output), tour)
    print(f"wrote {arguments.output}: {describe(tour)}")
    return 0


def describe(tour: SwayTour) -> str:
    """Returns what a motion does, in words.

    Args:
        tour: the motion.
    """
    motion = tour.motion
    speed = np.abs(np.gradient(motion.positions, motion.times, axis=0)).max()
    text = f"{motion.times[-1]:.0f} s, joints up to {speed:.2f} rad/s"
    if np.isnan(tour.margin):
        return f"{text}, hanging clear of the ground"
    return (
        f"{text}, {100.0 * tour.size:.0f} % of the usual size, the CoM stays "
        f"{1e3 * tour.margin:.0f} mm inside the feet"
    )


def _write(path: Path, tour: SwayTour) -> None:
    head = ",".join(["time", *tour.motion.joints])
    rows = np.column_stack([tour.motion.times, tour.motion.positions])
    np.savetxt(path, rows, fmt="%.6f", delimiter=",", header=head, comments="")


if __name__ == "__main__":
    sys.exit(main())
