"""Command line: a person's URDF by height, mass and sex, and their own masses by force plates."""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from com_identification import human
from com_identification.exceptions import PostureError
from com_identification.regression.identify import identify
from com_identification.regression.result import Identification, issues_of
from com_identification.store.results import corrected_urdf
from com_model import RobotModel
from com_model.arrays import Array
from com_model.commands import command_parser
from com_model.exceptions import ComModelError, ConfigError
from com_model.files import write_file
from com_model.strict_yaml import Section, read_yaml


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command.

    Args:
        argv: arguments of the command line; None: those of the process.

    Returns:
        The exit status: 0 done, 1 the person never stands still in the trials.
    """
    parser = person_parser(
        "com_human", "Writes a person's URDF, by a table and plates.", __file__
    )
    parser.add_argument("--output", required=True, metavar="URDF")
    parser.add_argument("--force", action="store_true", help="replace the file")
    arguments = parser.parse_args(argv)
    try:
        xml = human.human_urdf(arguments.height, arguments.mass, arguments.sex)
        if arguments.trial:
            xml = corrected_urdf(*identify_person(arguments)[:2])
        write_file(arguments.output, xml, arguments.force)
    except PostureError as error:
        print(f"com_human: error: {error}", file=sys.stderr)
        return 1
    except (ComModelError, OSError) as error:
        parser.error(str(error))
    return 0


def person_parser(name: str, text: str, file: str) -> ArgumentParser:
    """Makes a parser of the arguments of identify_person(); see command_parser().

    Args:
        name: of the command.
        text: what it does, a sentence.
        file: of its module, beside which its help is.
    """
    parser = command_parser(name, text, file)
    parser.add_argument("--height", type=float, required=True, metavar="M")
    parser.add_argument("--mass", type=float, required=True, metavar="KG")
    parser.add_argument(
        "--sex", choices=human.SEXES, required=True, help="table to use"
    )
    parser.add_argument(
        "--trial",
        nargs="+",
        default=[],
        metavar="FILE",
        help="trials with markers and force plates, the person still for half a second at a time",
    )
    parser.add_argument(
        "--plates",
        nargs="+",
        metavar="FILE",
        help="forces of each trial whose own file has none, in the same order (trc: OpenSim's mot)",
    )
    parser.add_argument("--markers", metavar="YAML", help="where the markers are")
    parser.add_argument(
        "--marker-std",
        type=float,
        default=5.0,
        metavar="MM",
        help="standard deviation of a marker along each axis, mm (default 5: soft tissue)",
    )
    return parser


def identify_person(
    arguments: Namespace,
) -> tuple[
    RobotModel, Identification, list[human.MarkerTrial], dict[str, tuple[str, Array]]
]:
    """Reads trials, identifies the person, and prints how accurate the result is.

    Args:
        arguments: parsed by person_parser().

    Returns:
        The model by the table, the result, the trials, and link and place of the markers by
        name.

    Raises:
        ComModelError: a file or an argument cannot be used; PostureError: the person never stands
            still.
    """
    plates, std = (
        arguments.plates or [None] * len(arguments.trial),
        arguments.marker_std / 1000.0,
    )
    if not arguments.markers:
        raise ConfigError("say where the markers are", "--markers is missing")
    if len(plates) != len(arguments.trial):
        raise ConfigError("give one file for each trial", "--plates")
    if not 1e-4 <= std <= 0.1:
        raise ConfigError(
            "expected 0.1 to 100 mm", f"--marker-std {arguments.marker_std:g}"
        )
    model = RobotModel.from_urdf(
        human.human_urdf(arguments.height, arguments.mass, arguments.sex)
    )
    markers = human.read_markers(
        Section(read_yaml(arguments.markers), arguments.markers)
    )
    trials, postures = [], []
    for path, forces in zip(arguments.trial, plates, strict=True):
        trials.append(human.read_trial(path, forces))
        human.check_plates(trials[-1], arguments.mass)
        found, seconds = human.trial_postures(model, trials[-1], markers, std)
        postures += found
        parts = ", ".join(f"{name} {value:.1f} s" for name, value in seconds.items())
        print(f"{Path(path).name}: {len(found)} postures; {parts}")
    if not postures:
        raise PostureError("no posture: stand still for a second in each")
    settings = human.human_settings(model)
    result = identify(model, [human.plate_foot()], postures, settings)
    by_table, own = 1e3 * result.prior_residual.rms, 1e3 * result.held_out.rms
    identified = f"{own:.1f} mm as identified, each posture left out in turn"
    if not np.isfinite(own):
        identified = "as identified not known: of one posture none can be left out"
    print(f"CoM against the plates: {by_table:.1f} mm by the table, {identified}")
    print(f"accurate to {1e3 * result.prediction_std:.1f} mm (one sigma)")
    print("".join(f"warning: {issue}\n" for issue in issues_of(result)), end="")
    return model, result, trials, markers


if __name__ == "__main__":
    sys.exit(main())
