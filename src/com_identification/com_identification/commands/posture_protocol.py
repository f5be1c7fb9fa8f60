"""Command line: at which joint angles a robot tips over, and what measured angles say of it."""

import argparse
import sys
from collections.abc import Sequence
from io import BytesIO

import numpy as np

from com_identification.exceptions import ProtocolError
from com_identification.store.results import path_inside, write_whole
from com_identification.tip_over import report
from com_identification.tip_over.fit import fit, known_candidates
from com_identification.tip_over.protocol import TipProtocol, angles_text, read_angles
from com_identification.tip_over.quasi_static import (
    QuasiStatic,
    TipAngle,
    read_joint_errors,
)
from com_model import ComModelError, load_robot
from com_model.arrays import Array
from com_model.commands import add_robot, command_parser, reports_errors


@reports_errors("posture_protocol", 2, ComModelError)
def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command.

    Args:
        argv: arguments of the command line; None: those of the process.

    Returns:
        The exit status: 0 done, 2 a file or an argument cannot be used.
    """
    arguments = _parser().parse_args(argv)
    protocol = TipProtocol.from_file(arguments.protocol)
    robot = load_robot(arguments.robot, arguments.config)
    simulation = QuasiStatic.from_protocol(*robot, protocol)
    if arguments.angles is None:
        by_model = _find_tips(simulation, arguments.joint_errors)
        names = [test.name for test in simulation.tests]
        print(angles_text(names, _angles(by_model)))
        for note in _standing(by_model):
            print(note)
        return 0
    _compare(
        simulation,
        protocol,
        read_angles(arguments.angles, protocol),
        arguments,
    )
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = command_parser(
        "posture_protocol",
        "Computes and explains the joint angles at which a robot tips over.",
        __file__,
    )
    add_robot(parser)
    parser.add_argument(
        "--protocol", required=True, help="balance tests of the robot (yaml)"
    )
    parser.add_argument(
        "--joint-errors", help="joint errors found earlier (yaml); adds a column"
    )
    parser.add_argument(
        "--angles", help="a table of measured and simulated angles (csv)"
    )
    parser.add_argument(
        "--measured", default="real", help="column of the measured angles"
    )
    parser.add_argument(
        "--explain",
        default="offsets + compliance",
        help="what to fit; a wrong name lists all choices",
    )
    parser.add_argument("--output", help="folder for report, picture and corrections")
    parser.add_argument("--force", action="store_true", help="overwrite existing files")
    return parser


def _find_tips(
    simulation: QuasiStatic, joint_errors: str | None
) -> dict[str, tuple[TipAngle, ...]]:
    """Tip angles of the URDF, and with errors of the joints from a file."""
    by_model = {"URDF": simulation.find_tips()}
    if joint_errors is not None:
        errors = read_joint_errors(joint_errors, simulation.model)
        by_model["joint errors"] = simulation.find_tips(errors)
    return by_model


def _angles(by_model: dict[str, tuple[TipAngle, ...]]) -> dict[str, Array]:
    return {
        name: np.array([tip.angle for tip in tips]) for name, tips in by_model.items()
    }


def _compare(
    simulation: QuasiStatic,
    protocol: TipProtocol,
    table: dict[str, Array],
    arguments: argparse.Namespace,
) -> None:
    candidates = known_candidates(simulation.model, protocol)
    if arguments.explain not in candidates:
        valid = ", ".join(candidates)
        raise ProtocolError(f"--explain: no {arguments.explain!r}; valid: {valid}")
    if (
        arguments.output is not None
    ):  # before the work, so that a wrong folder is reported at once
        path_inside(arguments.output, simulation.model.name)
    if arguments.measured not in table:
        valid = ", ".join(table)
        raise ProtocolError(
            f"--measured: no column {arguments.measured!r}; valid: {valid}"
        )
    measured = table[arguments.measured]
    used = np.flatnonzero(np.isfinite(measured))
    if not len(used):
        raise ProtocolError(
            f"{arguments.angles}: column {arguments.measured!r} has no angles"
        )
    found = fit(simulation, measured, candidates[arguments.explain], used)
    by_model = _find_tips(simulation, arguments.joint_errors)
    comparison = report.TipComparison(
        robot=simulation.model.name,
        tests=tuple(test.name for test in simulation.tests),
        others={name: own for name, own in table.items() if name != arguments.measured},
        ours=_angles(by_model) | {arguments.explain: found.predicted},
        notes=_standing(by_model),
        found=found,
        left_out=report.errors_left_out(simulation, found),
    )
    angles = {arguments.measured: found.measured, **comparison.ours}
    print(angles_text(comparison.tests, angles))
    for note in comparison.notes:
        print(note)
    for name, mean in comparison.mean_errors().items():
        print(f"mean error of {name}: {mean:.2f} deg")
    for label, value in zip(found.candidate.labels, found.x, strict=True):
        print(f"{label}: {value:.5f}")
    for name, mean in comparison.left_out.items():
        print(f"{name} left out: {mean:.2f} deg")
    if arguments.output is not None:
        _write(simulation, comparison, arguments.output, arguments.force)


def _standing(by_model: dict[str, tuple[TipAngle, ...]]) -> tuple[str, ...]:
    return tuple(
        f"{name}: still stands at the joints' limit, which is shown: {'; '.join(tests)}"
        for name, tips in by_model.items()
        if (tests := [tip.test for tip in tips if not tip.falls])
    )


def _write(
    simulation: QuasiStatic,
    comparison: report.TipComparison,
    folder: str,
    overwrite: bool,
) -> None:
    picture = BytesIO()
    report.plot_angles(comparison).savefig(picture, format="png")
    name = f"{simulation.model.name}_tip_angles"
    files = {
        ".png": picture.getvalue(),
        ".html": report.report_page(comparison).encode(),
    }
    paths = [
        write_whole(path_inside(folder, name + suffix), content, overwrite)
        for suffix, content in files.items()
    ]
    for path in (
        *paths,
        *report.write_correction(folder, simulation.model, comparison.found, overwrite),
    ):
        print(f"wrote {path}")


if __name__ == "__main__":
    sys.exit(main())
