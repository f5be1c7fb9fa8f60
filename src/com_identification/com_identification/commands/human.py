"""Command line: a person's URDF by height, mass and sex, and their own masses by force plates."""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from com_identification.human import (
    SEXES,
    human_settings,
    human_urdf,
    plate_foot,
    read_markers,
    read_trial,
    trial_postures,
)
from com_identification.regression.identify import Identification, identify, issues_of
from com_identification.report.comparison import gain
from com_identification.store.results import corrected_urdf
from com_model import RobotModel
from com_model.commands import command_parser
from com_model.exceptions import ComModelError
from com_model.files import write_file
from com_model.html import bullets, element, number, report, svg, table
from com_model.plotting import robot_figure
from com_model.strict_yaml import Section, read_yaml

_EPILOG = """\
Examples:
  com_human --height 1.80 --mass 70 --sex f --output table.urdf       by the table of de Leva
  com_human --height 1.80 --mass 70 --sex f --output person.urdf \\
      --trial standing.c3d --markers markers.yaml --report person.html   corrected by force plates
  com_human ... --trial a.trc b.trc --plates a.mot b.mot --markers markers.yaml

Trials are C3D files, or tables (OpenSim's trc, csv, ...) with markers NAME.x, .y, .z in m, and
plates in tables with ground_force_vx, _px and ground_torque_x, y and z likewise (OpenSim's mot).

markers.yaml has lines like  RKNE: {link: r_thigh, at: [0.0, -0.06, -0.42]}  (m, in the link's
frame: x forward, y left, z up when standing; links are those of the URDF).

Exit status: 0 done, 1 the trial contains too little, 2 wrong arguments or files.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status, see the help."""
    text = "Writes a person's URDF by an anthropometric table, corrected by force plates."
    parser = command_parser("com_human", text, _EPILOG)
    parser.add_argument("--height", type=float, required=True, metavar="M")
    parser.add_argument("--mass", type=float, required=True, metavar="KG")
    parser.add_argument("--sex", choices=SEXES, required=True, help="table to use")
    parser.add_argument("--output", required=True, metavar="URDF")
    text = "page to write: how good it is, segments before and after, a picture; needs --trial"
    parser.add_argument("--report", metavar="HTML", help=text)
    parser.add_argument("--force", action="store_true", help="replace these files")
    text = "trials with markers and force plates, the person still for half a second at a time"
    parser.add_argument("--trial", nargs="+", default=[], metavar="FILE", help=text)
    text = "forces of each trial whose own file has none, in the same order (trc: OpenSim's mot)"
    parser.add_argument("--plates", nargs="+", metavar="FILE", help=text)
    parser.add_argument("--markers", metavar="YAML", help="where the markers are")
    text = "standard deviation of a joint angle, degrees (default 4: soft tissue)"
    parser.add_argument("--angle-std", type=float, default=4.0, metavar="DEG", help=text)
    arguments = parser.parse_args(argv)
    if arguments.trial and not arguments.markers:
        parser.error("--markers is missing: say where the markers are")
    if arguments.report and not arguments.trial:
        parser.error("--report needs --trial: without one there is nothing but the table")
    plates = arguments.plates or [None] * len(arguments.trial)
    if len(plates) != len(arguments.trial):
        parser.error("--plates: give one file for each trial")
    try:
        xml = human_urdf(arguments.height, arguments.mass, arguments.sex)
        if arguments.trial:
            model, postures = RobotModel.from_urdf(xml), []
            markers = read_markers(Section(read_yaml(arguments.markers), arguments.markers))
            for path, forces in zip(arguments.trial, plates, strict=True):
                found, seconds = trial_postures(model, read_trial(path, forces), markers)
                postures += found
                parts = ", ".join(f"{name} {value:.1f} s" for name, value in seconds.items())
                print(f"{Path(path).name}: {len(found)} postures; {parts}")
            if not postures:
                print("com_human: error: no posture: stand still for a second in each")
                return 1
            angle, weight = np.radians(arguments.angle_std), model.mass * 9.81
            settings = human_settings(angle, 0.02, 0.003, 2.0, 1.0 + 0.004 * weight)
            result = identify(model, [plate_foot()], postures, settings)
            xml = corrected_urdf(model, result)
            by_table, own = 1e3 * result.prior_residual.rms, 1e3 * result.held_out.rms
            print(f"CoM against the plates: {by_table:.1f} mm by the table, {own:.1f} mm as")
            print("identified, each posture left out in turn; in such postures it is accurate to")
            print(f"{1e3 * result.prediction_std:.1f} mm (one sigma)")
            for issue in issues_of(result):
                print(f"warning: {issue}")
            if arguments.report:
                write_file(arguments.report, _page(model, result, xml), arguments.force)
        write_file(arguments.output, xml, arguments.force)
    except (ComModelError, OSError) as error:
        parser.error(str(error))
    return 0


def _page(table_model: RobotModel, result: Identification, xml: str) -> str:
    """The page of a person: segments by the table (table_model) and as identified (xml)."""
    own = RobotModel.from_urdf(xml)
    rows = [
        (
            name,
            *(number(model.link_masses[i]) for model in (table_model, own)),
            number(float(np.linalg.norm(own.link_coms[i] - table_model.link_coms[i])), 1, 1e3),
        )
        for i, name in enumerate(own.link_names)
        if own.link_masses[i] > 0.0
    ]
    residuals = [
        ("by the table", number(result.prior_residual.rms, 1, 1e3)),
        ("as identified, each posture left out in turn", number(result.held_out.rms, 1, 1e3)),
        ("standard deviation in such postures", number(result.prediction_std, 1, 1e3)),
    ]
    note = "Single segments are less certain than the CoM of the person: only sums are observable."
    return report(
        "Centre of mass of a person",
        gain(result),
        table(("CoM against the plates", "mm"), residuals),
        bullets(issues_of(result), css="warning"),
        element("h2", "Segments"),
        element("p", note),
        table(("segment", "mass by the table, kg", "identified, kg", "CoM moved by, mm"), rows),
        svg(robot_figure(own, own.neutral, "As identified, all joints at 0")),
        then=["More postures with a tilted trunk and raised limbs show more of single segments."],
    )


if __name__ == "__main__":
    sys.exit(main())
