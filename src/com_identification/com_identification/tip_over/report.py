"""Tip angles as plots and one page of HTML; the corrected URDF of a fit."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from math import degrees
from pathlib import Path

import numpy as np
import yaml
from matplotlib.figure import Figure

from com_identification.exceptions import RefusedFitError
from com_identification.store.results import (
    corrected_inertials,
    path_inside,
    write_whole,
)
from com_identification.tip_over.fit import COM_LIMIT, TipFit, cross_validate, families
from com_identification.tip_over.quasi_static import QuasiStatic, joint_errors_document
from com_model import RobotModel
from com_model.arrays import Array
from com_model.html import bullets, folded, number, plus_minus, report, svg, table
from com_model.plotting import BLUE, FAINT, INK, new_figure, plain_text, style_axes
from com_model.urdf.editing import edit_inertials


def mean_error(angles: Array, truth: Array) -> float:
    """Mean absolute difference of tip angles (T,) to others, rad: a row of [Cominoli] Table 7.

    Args:
        angles: (T,) rad.
        truth: (T,) rad; NaN where not known.
    """
    return float(np.abs(angles - truth).mean())


@dataclass(frozen=True, eq=False)
class TipComparison:
    """Measured tip angles beside those of other sources and of this suite.

    Attributes:
        robot: its name.
        tests: T names.
        others: (T,) rad by name, of other sources.
        ours: (T,) rad by name; the last is what the fit predicts.
        notes: notes on the angles, a sentence each.
        found: the fit; it has the measured angles.
        left_out: deg, mean error of what was left out and predicted by the rest, by name.
    """

    robot: str
    tests: tuple[str, ...]
    others: Mapping[str, Array]
    ours: Mapping[str, Array]
    notes: tuple[str, ...]
    found: TipFit
    left_out: Mapping[str, float]

    def mean_errors(self) -> dict[str, float]:
        """Returns the mean absolute difference of each column to the measured angles, deg."""
        used, measured = self.found.used, self.found.measured
        columns = {**self.others, **self.ours}
        return {
            name: degrees(mean_error(angles[used], measured[used]))
            for name, angles in columns.items()
        }


def plot_angles(comparison: TipComparison) -> Figure:
    """Plots mean errors of all sources above, the error of each test below.

    The columns begin with the smallest mean error; blue ones are ours, the last of them the fit.
    The same input results in the same picture.

    Args:
        comparison: measured and other angles.
    """
    columns, means = {**comparison.others, **comparison.ours}, comparison.mean_errors()
    order, tests = sorted(columns, key=means.__getitem__), comparison.tests
    measured = np.degrees(comparison.found.measured)
    errors = np.degrees([columns[name] for name in order]).T - measured[:, None]
    size = (3.6 + 0.95 * len(order), 2.9 + 0.32 * len(tests))
    (before, *_, after) = comparison.ours
    figure = new_figure(
        size,
        f"Tip angles of {comparison.robot}: "
        f"by {before} {means[before]:.2f} deg, by {after} {means[after]:.2f} deg off",
    )
    above, below = figure.subplots(
        2, 1, sharex=True, height_ratios=(1.0, 0.22 * len(tests))
    )
    colors = [BLUE if name in comparison.ours else FAINT for name in order]
    bars = above.bar(range(len(order)), [means[name] for name in order], color=colors)
    above.bar_label(bars, fmt="%.2f", fontsize=9)
    above.set_ylabel("mean error (deg)")
    style_axes(above)
    above.margins(y=0.2)
    widest = 10.0  # degrees: errors that have the darkest colour
    limits = {"vmin": -widest, "vmax": widest, "aspect": "auto", "cmap": "PuOr"}
    below.imshow(errors, **limits)
    for (i, k), error in np.ndenumerate(errors):
        color = "white" if abs(error) > 0.6 * widest else INK
        place = {"ha": "center", "va": "center", "fontsize": 8, "color": color}
        below.text(k, i, number(round(error, 1) + 0.0, 1), **place)
    names = [plain_text(name, 22).replace(" + ", " +\n") for name in order]
    below.set_xticks(range(len(order)), names, fontsize=9)
    rows = [
        f"{plain_text(t)}: {number(a, 1)}" for t, a in zip(tests, measured, strict=True)
    ]
    below.set_yticks(range(len(tests)), rows, fontsize=9)
    below.set_title(
        "rows: measured angle (deg); cells: angle less measured (deg); blue bars: ours",
        loc="left",
        fontsize=9,
        color=INK,
    )
    return figure


def errors_left_out(simulation: QuasiStatic, found: TipFit) -> dict[str, float]:
    """Leaves out each test, then each family; mean absolute errors of their predictions, deg.

    Args:
        simulation: of the robot and the tests.
        found: the fit to all tests.

    Returns:
        Errors by name: "one test", or that of the family.
    """
    used = found.used.tolist()
    ones = [(test,) for test in used]
    result = {"one test": float(cross_validate(simulation, found, ones).mean())}
    for name, group in families(simulation).items():
        if there := [i for i in group if i in used]:
            result[name] = float(cross_validate(simulation, found, [there])[0])
    return result


def report_page(comparison: TipComparison) -> str:
    """Returns an HTML page: mean errors, picture, all angles, what the fit found.

    Args:
        comparison: measured and other angles.
    """
    found = comparison.found
    values = zip(
        found.candidate.labels, found.x.tolist(), found.std.tolist(), strict=True
    )
    parameters = [(label, plus_minus(value, std, 5)) for label, value, std in values]
    left_out = [(name, number(value)) for name, value in comparison.left_out.items()]
    means, (*_, fit) = comparison.mean_errors(), comparison.ours
    best = min(means.keys() - {fit}, key=lambda name: (means[name], name))
    then = (
        "Judge by the tests left out. Joints that give way look like a raised CoM, which an IMU on "
        "the trunk separates: docs/hoap2_lab.md#a-raised-com-or-joint-zeros-and-compliance",
        "The CoMs of this fit are in the corrected URDF beside this page: "
        f"`ros2 run com_model audit {comparison.robot}_corrected.urdf`",
    )
    return report(
        f"Tip angles of {comparison.robot}: which model explains them",
        f"{fit} explains the tip angles to {means[fit]:.2f} deg on average; the best of the others "
        f"is {best}, {means[best]:.2f} deg.",
        svg(plot_angles(comparison)),
        table(("tests that the fit has not seen", "mean error (deg)"), left_out),
        bullets(comparison.notes),
        folded(
            "What explains the measured angles",
            table(("parameter", "found"), parameters),
        ),
        then=then,
    )


def corrected_urdf(model: RobotModel, fit: TipFit) -> str:
    """Returns the URDF's text with the CoMs of a fit.

    Args:
        model: the robot, with its URDF's text.
        fit: to its tip angles.

    Raises:
        RefusedFitError: a CoM moves by more than COM_LIMIT.
    """
    bodies = model.bodies
    shifts = np.linalg.norm(fit.candidate.com_shifts(model, fit.x), axis=1)
    far = np.flatnonzero(shifts > COM_LIMIT * (1.0 + 1e-6))
    if len(far):
        worst = ", ".join(f"{bodies.names[b]} {1e3 * shifts[b]:.1f} mm" for b in far)
        raise RefusedFitError(
            f"CoMs moved by more than {1e3 * COM_LIMIT:g} mm: {worst}"
        )
    moment = fit.candidate.moments(model, fit.x)
    mass = bodies.mass[:, None]
    com = np.divide(moment, mass, out=np.zeros_like(moment), where=mass > 0.0)
    return edit_inertials(model.xml, corrected_inertials(model, bodies.mass, com))


def write_correction(
    directory: str | os.PathLike[str],
    model: RobotModel,
    fit: TipFit,
    overwrite: bool = False,
) -> tuple[Path, Path]:
    """Writes <robot>_corrected.urdf and <robot>_joint_errors.yaml, or OutputError.

    Args:
        directory: Where the files are written.
        model: The robot, with its URDF's text.
        fit: To its tip angles.
        overwrite: Whether files of these names are replaced.
    """
    found = joint_errors_document(
        model, fit.candidate.errors(fit.x), fit.mean_error_deg
    )
    texts = {
        "_corrected.urdf": corrected_urdf(model, fit),
        "_joint_errors.yaml": yaml.safe_dump(found, sort_keys=False),
    }
    urdf, errors = (
        write_whole(
            path_inside(directory, model.name + suffix), text.encode(), overwrite
        )
        for suffix, text in texts.items()
    )
    return urdf, errors
