"""Command line: a person's centre of mass over time, by markers and by the plates' force.

The person is identified as by com_human. In each frame the CoM is then that of the identified
segments, with its standard deviation, beside that of the table, and that of the force integrated
twice.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scipy.integrate import cumulative_trapezoid

from com_identification.commands.human import identify_person, person_parser
from com_identification.exceptions import PostureError
from com_identification.human import MarkerTrial, marker_fit
from com_identification.regression.result import Identification, issues_of
from com_identification.regression.statics import Statics
from com_identification.report.comparison import gain
from com_identification.store.results import corrected_urdf
from com_model import RobotModel, Sesc
from com_model.arrays import Array, Indices
from com_model.dynamics import GRAVITY
from com_model.exceptions import ComModelError
from com_model.files import write_file
from com_model.geometry.rotations import skew
from com_model.html import (
    Raw,
    bullets,
    coordinates,
    element,
    folded,
    number,
    report,
    svg,
    table,
)
from com_model.plotting import (
    BLUE,
    INK,
    RED,
    add_legend,
    new_figure,
    robot_figure,
    style_axes,
)

CURVES = ("com", "std", "table", "force")
THEN = (
    "More postures with a tilted trunk and raised limbs show more of single segments. com.csv "
    "beside this page has the CoM in every frame.",
    "docs/human.md explains the errors, and what a plate cannot determine. The person as a URDF: "
    "`ros2 run com_identification com_human --help`",
)
_RATE = 25.0  # Hz, at most
_SPAN = 4.0  # s, over which the force is integrated at a time


def com_trajectory(
    model: RobotModel,
    found: Identification,
    trial: MarkerTrial,
    markers: Mapping[str, tuple[str, Array]],
    std: float,
) -> dict[str, Array]:
    """Computes a person's CoM at up to 25 frames a second, in the laboratory's axes, z up.

    With the columns N of the first moment and the errors (dq, phi, dp) of MarkerFit,

      c = p + R N theta / m,   dc = R (N - c_r 1^T) / m dtheta + R (J dq + phi x c_r) + dp

    The force's CoM is its acceleration F / m - g integrated twice over spans of 4 s; what that does
    not know, position, velocity and an offset of the plates, is fitted to the marker's CoM.

    Args:
        model: The person by the table.
        found: Identified with that model.
        trial: The person, moving or not.
        markers: As read_markers() returns them.
        std: m, of each marker along each axis.

    Returns:
        `time` s; `com`, `std`, `table` and `force`, (N, 3) m each: identified, its standard
        deviation, by the table, by the force; NaN where too few markers are seen.

    Raises:
        TableError: The trial has fewer than three of the markers.
    """
    fit, columns = marker_fit(model, trial, markers)
    statics, sesc = Statics(model), Sesc(model)
    step = max(1, round(trial.rate / _RATE))
    frames = np.arange(0, len(trial.markers), step)
    com, spread, table = (np.full((len(frames), 3), np.nan) for _ in range(3))
    q, mass = np.zeros(model.n_joints), statics.mass()
    for k, seen in enumerate(trial.markers[frames][:, columns]):
        if np.isfinite(seen).all(axis=1).sum() < 3:
            continue
        q, R, p = fit.solve(seen, q)
        poses, errors = statics.poses(q[None]), fit.errors(seen, q, R, p, std)
        own = statics.com(poses, found.parameters)[0]
        com[k], table[k] = (
            p + R @ own,
            p + R @ statics.com(poses, statics.parameters)[0],
        )
        by_body = (
            statics.first_moment(poses)[0] - np.outer(own, mass)
        ) / found.total_mass
        moved = (
            np.hstack((R @ sesc.com_and_jacobian(q)[1], -R @ skew(own), np.eye(3)))
            @ errors
        )
        spread[k] = np.sqrt(
            np.einsum("ij,jk,ik->i", R @ by_body, found.covariance, R @ by_body)
            + np.sum(moved**2, axis=1)
        )
    force = _integrated(trial, frames, com)
    return {
        "time": frames / trial.rate,
        "com": com,
        "std": spread,
        "table": table,
        "force": force,
    }


def _integrated(trial: MarkerTrial, frames: Indices, com: Array) -> Array:
    """The force integrated twice, at the frames, (N, 3) m; NaN where com (N, 3) is unknown."""
    mean = trial.wrench[:, 2].mean()
    acceleration = GRAVITY * (trial.wrench[:, :3] / mean - [0.0, 0.0, 1.0])
    result, time = np.full(com.shape, np.nan), frames / trial.rate
    for span in np.split(
        np.arange(len(frames)), np.flatnonzero(np.diff(time // _SPAN)) + 1
    ):
        known = span[np.isfinite(com[span]).all(axis=1)]
        if len(known) <= 3:
            continue
        part = acceleration[frames[span[0]] : frames[span[-1]] + 1]
        for _ in range(2):
            part = cumulative_trapezoid(part, dx=1.0 / trial.rate, axis=0, initial=0.0)
        moved = part[frames[known] - frames[span[0]]]
        basis = np.vander(time[known] - time[known[0]], 3)
        result[known] = (
            moved + basis @ np.linalg.lstsq(basis, com[known] - moved, rcond=None)[0]
        )
    return result


def compare(path: Mapping[str, Array]) -> tuple[float, float]:
    """RMS distance of the CoM by the table, and as identified, from that of the force, mm."""
    gaps = (
        np.linalg.norm(path[kind] - path["force"], axis=1) for kind in ("table", "com")
    )
    by_table, own = (float(1e3 * np.sqrt(np.nanmean(gap**2))) for gap in gaps)
    return by_table, own


def csv(paths: Sequence[Mapping[str, Array]]) -> str:
    """The table of all trials."""
    columns = [f"{name}_{axis}" for name in CURVES for axis in "xyz"]
    lines = [",".join(("trial", "time", *columns))]
    for trial, path in enumerate(paths, start=1):
        rows = np.column_stack([path["time"], *(path[name] for name in CURVES)])
        lines += [
            ",".join((str(trial), *(f"{value:.5f}" for value in row))) for row in rows
        ]
    return "\n".join(lines) + "\n"


def draw(name: str, path: Mapping[str, Array]) -> Figure:
    """The CoM over time with three standard deviations, by the table and by the force."""
    figure = new_figure((9.0, 6.5), f"Centre of mass in the laboratory, {name}")
    panels = figure.subplots(3, sharex=True)
    for k, axes in enumerate(panels):
        style_axes(axes)
        com, band, time = path["com"][:, k], 3.0 * path["std"][:, k], path["time"]
        axes.fill_between(time, com - band, com + band, color=BLUE, alpha=0.2, lw=0)
        axes.plot(time, com, color=BLUE, lw=1.2, label="identified")
        axes.plot(time, path["table"][:, k], color=RED, lw=0.9, label="table")
        axes.plot(
            time, path["force"][:, k], color=INK, lw=0.9, ls="--", label="force, twice"
        )
        axes.set_ylabel(f"{'xyz'[k]} (m)")
    panels[-1].set_xlabel("time (s)")
    add_legend(panels[0], 3, above=True)
    return figure


def segments(table_model: RobotModel, result: Identification) -> list[Raw]:
    """What was identified, and the segments by the table and as identified."""
    own = RobotModel.from_urdf(corrected_urdf(table_model, result))
    rows = [
        (
            name,
            *(number(model.link_masses[i]) for model in (table_model, own)),
            number(
                float(np.linalg.norm(own.link_coms[i] - table_model.link_coms[i])),
                1,
                1e3,
            ),
        )
        for i, name in enumerate(own.link_names)
        if own.link_masses[i] > 0.0
    ]
    residuals = [
        ("by the table", number(result.prior_residual.rms, 1, 1e3)),
        (
            "as identified, each posture left out in turn",
            number(result.held_out.rms, 1, 1e3),
        ),
        ("standard deviation in such postures", number(result.prediction_std, 1, 1e3)),
    ]
    note = "Single segments are less certain than the CoM of the person: only sums are observable."
    return [
        table(("CoM against the plates", "RMS (mm)"), residuals),
        bullets(issues_of(result), css="warning"),
        folded(
            "Segments",
            element("p", note),
            table(
                (
                    "segment",
                    "mass by the table (kg)",
                    "identified (kg)",
                    "CoM moved by (mm)",
                ),
                rows,
            ),
            svg(robot_figure(own, own.neutral, "As identified, all joints at 0")),
        ),
    ]


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status, see the help."""
    text = "A person's centre of mass over time, compared with the table's and with the plates'."
    parser = person_parser("human_motion", text, __file__)
    parser.add_argument(
        "--output", type=Path, required=True, metavar="DIR", help="folder"
    )
    parser.add_argument("--force", action="store_true", help="overwrite existing files")
    arguments = parser.parse_args(argv)
    if not arguments.trial:
        parser.error("--trial is missing: give trials with markers and force plates")
    names = [Path(name).name for name in arguments.trial]
    try:
        model, found, trials, markers = identify_person(arguments)
        std = arguments.marker_std / 1000.0
        paths = [com_trajectory(model, found, trial, markers, std) for trial in trials]
        rows = [
            (n, *(number(v, 1) for v in compare(p)))
            for n, p in zip(names, paths, strict=True)
        ]
        spread = 1e3 * np.sqrt(
            np.nanmean(np.concatenate([p["std"] for p in paths]) ** 2, axis=0)
        )
        std_text = coordinates(spread, "mm")
        verdict = f"In these trials the CoM is known to {std_text} (one sigma)."
        head = (
            "RMS distance from the force's CoM",
            "by the table (mm)",
            "identified (mm)",
        )
        plots = [svg(draw(name, path)) for name, path in zip(names, paths, strict=True)]
        first, *others = plots
        parts = [
            first,
            *segments(model, found),
            folded("Trials", table(head, rows), *others),
        ]
        title = f"Centre of mass of a person of {arguments.height:g} m and {arguments.mass:g} kg"
        page = report(title, f"{gain(found)} {verdict}", *parts, then=THEN)
        for name, *mm in rows:
            print(
                f"{name}: {head[0]}: {mm[0]} mm by the table, {mm[1]} mm as identified"
            )
        print(verdict)
        arguments.output.mkdir(parents=True, exist_ok=True)
        for file, content in (("com.csv", csv(paths)), ("human_motion.html", page)):
            print(
                f"wrote {write_file(arguments.output / file, content, arguments.force)}"
            )
    except PostureError as error:
        print(f"human_motion: error: {error}")
        return 1
    except (ComModelError, OSError) as error:
        parser.error(str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main())
