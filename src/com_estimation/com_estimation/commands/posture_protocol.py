"""Command line: at which joint angles a robot tips over, and what measured angles say of it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from com_estimation.identification.exceptions import IdentificationError
from com_estimation.identification.files import path_inside
from com_estimation.posture_protocol.candidates import known_candidates
from com_estimation.posture_protocol.correction import write_correction
from com_estimation.posture_protocol.exceptions import ProtocolError
from com_estimation.posture_protocol.fit import Fit, cross_validate, families, fit, leave_out
from com_estimation.posture_protocol.joint_errors_file import read_joint_errors
from com_estimation.posture_protocol.plots import draw_angles
from com_estimation.posture_protocol.protocol import Protocol
from com_estimation.posture_protocol.quasi_static import QuasiStatic, TipAngle
from com_estimation.posture_protocol.tables import TipTable, difference
from com_model import ComModelError, ConfigError, RobotConfig, RobotModel
from com_model.arrays import Array

_EPILOG = """\
Without --angles it prints the angles at which the robot of the URDF tips over, if it moves so
slowly that it is always at rest; --joint-errors adds what errors of the joints make of them.
With --angles, a table of a column `test` and columns `<name>_rad`, it compares them, fits what may
explain the measured ones, and says how well that predicts tests which it has not seen. With --out
it writes there a picture, the URDF with the CoMs of the fit and its errors of the joints.

Example:
  posture_protocol --robot config/hoap2.yaml --protocol config/posture_protocol/hoap2.yaml \\
    --angles data/hoap2_posture_protocol.csv --measured real --out out

Exit status: 0 done, 2 a file or an argument cannot be used.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command.

    Args:
        argv: Arguments; those of the process by default.

    Returns:
        Exit status: 0 done, 2 a file or an argument cannot be used.
    """
    arguments = _parser().parse_args(argv)
    try:
        lab = _lab(arguments.robot, arguments.protocol, arguments.urdf)
        if arguments.angles is None:
            told = _told(lab, arguments.joint_errors)
            _print_angles(lab, _angles(told))
            _print_standing(told)
            return 0
        protocol = Protocol.from_file(arguments.protocol)
        table = TipTable.from_file(arguments.angles, protocol)
        _compare(lab, protocol, table, arguments)
    except (ComModelError, ProtocolError, IdentificationError) as error:
        print(f"posture_protocol: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="posture_protocol",
        description="Computes and explains the joint angles at which a robot tips over.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--robot", required=True, help="the robot's configuration (yaml)")
    parser.add_argument("--protocol", required=True, help="its balance tests (yaml)")
    parser.add_argument("--urdf", help="the URDF; by default the one that the configuration names")
    parser.add_argument(
        "--joint-errors", help="errors of the joints that were found before (yaml), for a column"
    )
    parser.add_argument("--angles", help="a table of measured and simulated angles (csv)")
    parser.add_argument("--measured", default="real", help="its column of measured angles")
    parser.add_argument(
        "--explain", default="offsets + compliance", help="what to fit; a wrong name lists all"
    )
    parser.add_argument("--out", help="a folder for the picture and the corrections")
    parser.add_argument("--overwrite", action="store_true", help="replace files that are there")
    return parser


def _lab(robot: str, protocol: str, urdf: str | None) -> QuasiStatic:
    config = RobotConfig.from_file(robot)
    path = urdf or config.urdf
    if path is None:
        raise ConfigError("names no URDF: give --urdf", robot, "urdf")
    return QuasiStatic.of(RobotModel.from_file(path), config, Protocol.from_file(protocol))


def _told(lab: QuasiStatic, joint_errors: str | None) -> dict[str, tuple[TipAngle, ...]]:
    """Tip angles of the URDF, and with errors of the joints from a file."""
    told = {"URDF": lab.tips()}
    if joint_errors is not None:
        told["joint errors"] = lab.tips(read_joint_errors(joint_errors, lab.model))
    return told


def _angles(told: dict[str, tuple[TipAngle, ...]]) -> dict[str, Array]:
    return {name: np.array([tip.angle for tip in tips]) for name, tips in told.items()}


def _compare(
    lab: QuasiStatic, protocol: Protocol, table: TipTable, arguments: argparse.Namespace
) -> None:
    measured = table.angles(arguments.measured)
    candidates = known_candidates(lab.model, protocol)
    if arguments.explain not in candidates:
        valid = ", ".join(candidates)
        raise ProtocolError(f"--explain: no {arguments.explain!r}; valid: {valid}")
    picture = None
    if arguments.out is not None:  # before the work, so that a wrong folder is told at once
        picture = path_inside(arguments.out, f"{lab.model.name}_tip_angles", ".png")
    used = np.flatnonzero(np.isfinite(measured))
    found = fit(lab, measured, candidates[arguments.explain], used)
    told = _told(lab, arguments.joint_errors)
    ours = _angles(told) | {arguments.explain: found.predicted}
    _print_angles(lab, {arguments.measured: measured} | ours)
    _print_standing(told)
    others = {n: table.angles(n) for n in table.columns if n != arguments.measured}
    for name, angles in (others | ours).items():
        mean = difference(angles[used], measured[used]).average_deg
        print(f"mean error of {name}: {mean:.2f} deg")
    _print_fit(lab, found)
    if picture is not None:
        _write(lab, found, others, ours, picture, arguments.overwrite)


def _print_angles(lab: QuasiStatic, columns: dict[str, Array]) -> None:
    width = max(len(test.name) for test in lab.tests)
    print(" " * width, *(f"{name[:12]:>12}" for name in columns), "  (deg)")
    for i, test in enumerate(lab.tests):
        cells = (f"{np.degrees(angles[i]):12.2f}" for angles in columns.values())
        print(f"{test.name:{width}}", *cells)


def _print_standing(told: dict[str, tuple[TipAngle, ...]]) -> None:
    for name, tips in told.items():
        if standing := "; ".join(tip.test for tip in tips if not tip.falls):
            print(f"{name}: still stands at the joints' limit, which is shown: {standing}")


def _print_fit(lab: QuasiStatic, found: Fit) -> None:
    for label, value in zip(found.candidate.labels, found.x, strict=True):
        print(f"{label}: {value:.5f}")
    used = set(found.used.tolist())
    ones = [group for group in leave_out(len(lab.tests), 1) if group[0] in used]
    print(f"one test left out: {cross_validate(lab, found, ones).mean():.2f} deg")
    for name, group in families(lab).items():
        there = [i for i in group if i in used]
        if there:
            print(f"{name} left out: {cross_validate(lab, found, [there])[0]:.2f} deg")


def _write(
    lab: QuasiStatic,
    found: Fit,
    others: dict[str, Array],
    ours: dict[str, Array],
    picture: Path,
    overwrite: bool,
) -> None:
    names = tuple(test.name for test in lab.tests)
    draw_angles(picture, names, found.measured, others, ours, overwrite)
    for path in (picture, *write_correction(picture.parent, lab.model, found, overwrite)):
        print(f"wrote {path}")


if __name__ == "__main__":
    sys.exit(main())
