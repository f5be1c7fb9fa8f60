"""Command line: robots as a recording leaves them possible, for domain randomisation."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from com_identification.exceptions import IdentificationError
from com_identification.store.files import path_inside, write_whole
from com_identification.walking.posterior import Posterior
from com_model import ComModelError, load_robot
from com_model.commands import add_robot, command_parser

_EPILOG = """\
Draws masses, centres of mass, inertias, armature and friction together from the posterior.npz that
identify makes of walking; every draw is a body that can exist, so that simulators load it.

  --format urdf    DIR/sample_000.urdf, ...         needs --robot
  --format mjcf    DIR/sample_000.xml, ...          needs --mjcf, with the URDF's names of bodies
  --format npz     DIR/samples.npz: bodies (K,), joints (n,), mass (S, K), com (S, K, 3), inertia
                   about it (S, K, 3, 3), armature, coulomb, viscous (S, n); --format json: the same

One table in MuJoCo (MJX: the same fields of the mjx model, batched):
  t = numpy.load("samples.npz")
  for name, m, c, I in zip(t["bodies"], t["mass"][s], t["com"][s], t["inertia"][s]):
      b = model.body(name)
      values, axes = numpy.linalg.eigh(I)
      axes[:, 0] *= numpy.linalg.det(axes)
      b.mass, b.ipos, b.inertia = m, c, values
      mujoco.mju_mat2Quat(b.iquat, axes.ravel())
  mujoco.mj_setConst(model, mujoco.MjData(model))

Exit status: 0 written, 1 another robot or a file cannot be written, 2 wrong arguments.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status, see the help."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    needed = {"urdf": "robot", "mjcf": "mjcf"}.get(arguments.format)
    if needed and getattr(arguments, needed) is None:
        parser.error(f"--format {arguments.format} needs --{needed}")
    if arguments.samples < 1:
        parser.error(f"--samples {arguments.samples}: give 1 or more")
    try:
        draws = Posterior.from_file(arguments.posterior).draw(arguments.samples, arguments.seed)
        if needed is None:
            name = f"samples.{arguments.format}"
            files = [(name, draws.table_file(Path(name).suffix))]
        else:
            model = load_robot(arguments.robot, arguments.config)[0] if arguments.robot else None
            xml = arguments.mjcf.read_text() if arguments.mjcf else ""
            suffix = {"urdf": ".urdf", "mjcf": ".xml"}[arguments.format]
            files = [
                (
                    f"sample_{s:03d}{suffix}",
                    (draws.mjcf(xml, s) if model is None else draws.urdf(model, s)).encode(),
                )
                for s in range(arguments.samples)
            ]
        arguments.output.mkdir(parents=True, exist_ok=True)
        for name, content in files:
            write_whole(path_inside(arguments.output, name), content, arguments.force)
    except (IdentificationError, ComModelError, OSError) as error:
        print(f"com_randomise: error: {error}", file=sys.stderr)
        return 1
    print(f"wrote {len(files)} files into {arguments.output}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = command_parser("com_randomise", __doc__.partition(": ")[2], _EPILOG)
    add = parser.add_argument
    add("posterior", type=Path, metavar="NPZ", help="posterior.npz of identify")
    add_robot(parser, required=False)
    add("--mjcf", type=Path, help="the robot's MJCF")
    add("--samples", type=int, default=100, metavar="N", help="how many robots (100)")
    add("--seed", type=int, default=0, help="of the draws (0)")
    add("--format", choices=("urdf", "mjcf", "npz", "json"), default="npz", help="of the files")
    add("--output", type=Path, required=True, metavar="DIR", help="where the files go")
    add("--force", action="store_true", help="replace files that are there")
    return parser


if __name__ == "__main__":
    sys.exit(main())
