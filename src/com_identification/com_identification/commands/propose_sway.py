"""Command line: what a slow motion would determine of a robot's CoM, before it moves."""

import sys
from collections.abc import Sequence

import numpy as np

from com_bags import read_table
from com_identification.commands.walk_identification import parse_rope
from com_identification.exceptions import WalkError
from com_identification.slow.proposal import predict_com_std
from com_model import ComModelError, RobotModel, load_robot
from com_model.arrays import Array
from com_model.commands import add_robot, command_parser, reports_errors
from com_model.text import listing


@reports_errors("propose_sway", 2, ComModelError)
def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line.

    Args:
        argv: command-line arguments without the program's name; None: those of the process.

    Returns:
        Exit status: 0, or 2 where an input cannot be used.
    """
    parser = command_parser(
        "propose_sway",
        "Predicts how well a slow motion would determine the centre of mass.",
        __file__,
    )
    parser.add_argument(
        "motion",
        help="motion: a csv of time (s) and joints (rad) by name, as plan_sway writes it",
    )
    parser.add_argument(
        "--rope",
        nargs=4,
        metavar=("LINK", "X", "Y", "Z"),
        help="the robot hangs: link and point of its rope, m in the link's axes",
    )
    add_robot(parser)
    arguments = parser.parse_args(argv)
    model, config = load_robot(arguments.robot, arguments.config)
    time, q = _read(arguments.motion, model, config.nominal_posture(model))
    rope = parse_rope(arguments.rope, model)
    after, before = predict_com_std(model, config, time, q, rope)
    for name, values in (("before", before), ("after", after)):
        axes = ", ".join(
            f"{axis} {1e3 * std:.1f} mm"
            for axis, std in zip("xyz", values, strict=True)
        )
        print(f"CoM of the whole robot {name}: {axes} (one sigma)")
    return 0


def _read(path: str, model: RobotModel, posture: Array) -> tuple[Array, Array]:
    """Times (N,) and positions (N, n) of a csv; joints that it does not have stay."""
    table = read_table(path)
    known = table.columns
    if "time" not in known or not known.keys() & set(model.joint_names):
        raise WalkError(
            f"{path} has the columns {listing(known, 6)}: expected time (s) and joints of "
            f"{model.name}, such as {model.joint_names[0]}"
        )
    still = np.broadcast_to(posture[:, None], (len(posture), table.rows))
    pairs = zip(model.joint_names, still, strict=True)
    return known["time"], np.stack([known.get(name, x) for name, x in pairs], axis=1)


if __name__ == "__main__":
    sys.exit(main())
