"""Command line: robots as a recording leaves them possible, for domain randomisation."""

import sys
from collections.abc import Sequence
from pathlib import Path

from com_identification.commands.output import output_directory
from com_identification.exceptions import IdentificationError
from com_identification.walking.posterior import (
    RobotPosterior,
    mjcf,
    to_csv,
    to_json,
    to_npz,
    usd_layer,
)
from com_identification.walking.unknowns import corrected_urdf
from com_model import ComModelError, load_robot
from com_model.commands import add_robot, command_parser, reports_errors

_TABLES = {"npz": to_npz, "csv": to_csv, "json": to_json}


@reports_errors("com_randomise: error", 1, ComModelError)
def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command.

    Args:
        argv: arguments of the command line; None: those of the process.

    Returns:
        The exit status: 0 done, 1 a file cannot be used.
    """
    parser = command_parser("com_randomise", __doc__.partition(": ")[2], __file__)
    add = parser.add_argument
    add("posterior", type=Path, metavar="NPZ", help="posterior.npz written by identify")
    add_robot(parser, required=False)
    add(
        "--mjcf", type=Path, metavar="XML", help="MJCF model of the robot; needs MuJoCo"
    )
    add("--usd", type=Path, metavar="USD", help="stage of the robot; needs usd-core")
    add("--samples", type=int, default=100, metavar="N", help="number of robots (100)")
    add("--table", choices=_TABLES, default="npz", help="format of the table (npz)")
    add("--seed", type=int, default=0, help="random seed (0)")
    add("--output", required=True, metavar="DIR", help="folder for the files")
    add("--force", action="store_true", help="overwrite existing files")
    arguments = parser.parse_args(argv)
    if arguments.samples < 0:
        parser.error(f"--samples {arguments.samples}: give 0 or more")
    posterior = RobotPosterior.from_file(arguments.posterior)
    draws = posterior.draw(arguments.samples, arguments.seed)
    drawn = [f"sample_{s:03d}" for s in range(arguments.samples)]
    table = "samples" if drawn else "estimate"
    files = {f"{table}.{arguments.table}": _TABLES[arguments.table](draws)}
    if arguments.robot:
        model = load_robot(arguments.robot, arguments.config)[0]
        own = [
            n
            for n, m in zip(model.bodies.names, model.bodies.mass, strict=True)
            if m > 0.0
        ]
        if own != list(posterior.bodies):
            raise IdentificationError(
                f"{model.name} has the bodies {', '.join(own)}: expected those of the "
                f"posterior, {', '.join(posterior.bodies)}"
            )
    for s, name in enumerate(drawn or ["estimate"]):
        if arguments.robot:
            files[f"{name}.urdf"] = corrected_urdf(model, draws["eta"][s]).encode()
        if arguments.mjcf:
            files[f"{name}.xml"] = mjcf(arguments.mjcf, draws, s).encode()
        if arguments.usd:
            files[f"{name}.usda"] = usd_layer(arguments.usd, draws, s).encode()
    with output_directory(arguments.output, tuple(files), arguments.force) as out:
        for name, content in files.items():
            (out / name).write_bytes(content)
    print(f"wrote {len(files)} files into {arguments.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
