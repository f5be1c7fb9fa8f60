"""Tip angles as tables, plots and one page of HTML; the corrected URDF of a fit."""

import csv
import os
from collections.abc import Mapping
from dataclasses import dataclass
from math import degrees
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from com_identification.exceptions import ProtocolError, RefusedFitError
from com_identification.store.results import corrected_inertials, path_inside, write_whole
from com_identification.tip_over.fit import COM_LIMIT, Fit, cross_validate, families
from com_identification.tip_over.quasi_static import Protocol, QuasiStatic, joint_errors_document
from com_model import RobotModel
from com_model.arrays import Array
from com_model.html import Raw, bullets, element, number, page, svg, table
from com_model.plotting import (
    BLUE,
    FAINT,
    GREEN,
    GRID,
    INK,
    RED,
    RULE,
    new_figure,
    plain_text,
    style_axes,
)
from com_model.urdf.editing import edit_inertials

_SUFFIX = "_rad"
OURS = (BLUE, RED, GREEN)
_WIDEST = 10.0  # degrees: errors beyond the edge of the right side


def read_angles(path: str | os.PathLike[str], protocol: Protocol) -> dict[str, Array]:
    """Reads a CSV file of tip angles: a column `test`, and columns `<name>_rad`.

    Returns (T,) rad by name, in the order of the protocol's tests, NaN where a cell is empty.
    Raises ProtocolError where a value is wrong, or a test is missing, unknown or there twice.
    """
    try:
        with Path(path).open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ProtocolError(f"{path} cannot be read: {error}") from error
    if not rows or "test" not in rows[0]:
        raise ProtocolError(f"{path}: expected a column 'test' and rows below it")
    names = [test.name for test in protocol.tests]
    by_test = {row["test"]: row for row in rows}
    missing, unknown = set(names) - set(by_test), set(by_test) - set(names)
    if missing or unknown or len(by_test) < len(rows):
        problem = "a test is there twice"
        if unknown:
            problem = f"unknown tests: {', '.join(sorted(map(str, unknown)))}"
        elif missing:
            problem = f"missing tests: {', '.join(sorted(missing))}"
        raise ProtocolError(f"{path}: {problem}. The protocol has: {'; '.join(names)}")
    return {
        key.removesuffix(_SUFFIX): np.array(
            [_angle(by_test[name][key], f"{path}, {name}, {key}") for name in names]
        )
        for key in rows[0]
        if key and key.endswith(_SUFFIX)
    }


def mean_error(angles: Array, truth: Array) -> float:
    """Mean absolute difference of tip angles (T,) to others, rad: a row of [Cominoli] Table 7."""
    return float(np.abs(angles - truth).mean())


def _angle(text: str | None, where: str) -> float:
    """An angle; NaN for an empty cell."""
    if not (text or "").strip():
        return float("nan")
    try:
        value = float(text or "")
    except ValueError as error:
        raise ProtocolError(f"{where}: expected an angle in rad, got {text!r}") from error
    if not abs(value) < 10.0:
        raise ProtocolError(f"{where}: expected an angle in rad, got {value:g}. Are these degrees?")
    return value


@dataclass(frozen=True, eq=False)
class Comparison:
    """Measured tip angles beside others' and ours."""

    robot: str
    tests: tuple[str, ...]  # T names
    others: Mapping[str, Array]  # (T,) rad by name, of other sources
    ours: Mapping[str, Array]  # (T,) rad by name; the last is what the fit predicts
    notes: tuple[str, ...]  # what is to be known of the angles, a sentence each
    found: Fit  # the fit; it has the measured angles
    # mean error of what was left out and predicted by the rest, deg, by name
    left_out: Mapping[str, float]

    def mean_errors(self) -> dict[str, float]:
        """Returns the mean absolute difference of each column to the measured angles, deg."""
        used, measured = self.found.used, self.found.measured
        columns = {**self.others, **self.ours}
        return {
            name: degrees(mean_error(angles[used], measured[used]))
            for name, angles in columns.items()
        }


def plot_angles(comparison: Comparison) -> Figure:
    """Plots the angles of each test, and beside them the errors; same input, same picture.

    Other sources are small numbers in their order from 1 on; at most three of ours are shown.
    """
    tests, measured = comparison.tests, comparison.found.measured
    title = f"{comparison.robot}: tip angles"
    figure = new_figure((11.0, 1.4 + 0.32 * len(tests)), title)
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=(1.4, 1.0))
    rows = np.arange(len(tests))
    left.barh(rows, np.degrees(measured), color=GRID, edgecolor=RULE, label="measured")
    for axes, zero in ((left, np.zeros(len(tests))), (right, measured)):
        style_axes(axes)
        for i, (name, angles) in enumerate(comparison.others.items(), start=1):
            style: dict[str, Any] = {"marker": f"${i}$", "color": FAINT, "ms": 6}
            _plot_points(axes, angles - zero, name, style)
        for (name, angles), colour in zip(comparison.ours.items(), OURS, strict=False):
            _plot_points(axes, angles - zero, name, {"marker": "o", "color": colour, "ms": 5})
    left.set_yticks(rows, [plain_text(test) for test in tests])
    left.invert_yaxis()
    left.set_xlabel("tip angle (deg)")
    right.set_xlabel(f"error (deg), shown up to {_WIDEST:g}")
    right.set_xlim(-_WIDEST, _WIDEST)
    right.axvline(0.0, color=INK, lw=0.8)
    handles = left.get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=5, frameon=False)
    return figure


def _plot_points(axes: Axes, angles: Array, name: str, style: dict[str, Any]) -> None:
    """Angles (T,) rad, one line of the picture a test."""
    label = plain_text(name).removeprefix("_")  # which would hide it from the legend
    axes.plot(np.degrees(angles), np.arange(len(angles)), ls="", label=label, **style)


def errors_left_out(simulation: QuasiStatic, found: Fit) -> dict[str, float]:
    """Leaves out each test, then each family; mean absolute errors of their predictions, deg."""
    used = found.used.tolist()
    ones = [(test,) for test in used]
    result = {"one test": float(cross_validate(simulation, found, ones).mean())}
    for name, group in families(simulation).items():
        if there := [i for i in group if i in used]:
            result[name] = float(cross_validate(simulation, found, [there])[0])
    return result


def report_page(comparison: Comparison) -> str:
    """Writes the page: mean errors, picture, all angles, what the fit found."""
    found = comparison.found
    pairs = zip(found.candidate.labels, found.x.tolist(), strict=True)
    parameters = [(label, number(value, 5)) for label, value in pairs]
    return page(
        f"{comparison.robot}: tip angles",
        element("h1", f"{comparison.robot}: tip angles"),
        element("p", "Angles at which the robot tips over while joints turn slowly, in degrees."),
        element("h2", "Mean error"),
        table(("angles of", "deg"), _rows(comparison.mean_errors())),
        element("h2", "Test by test"),
        svg(plot_angles(comparison)),
        _angles(comparison),
        bullets(comparison.notes),
        element("h2", "What explains the measured angles"),
        table(("parameter", "found"), parameters),
        element("h2", "Tests that the fit has not seen"),
        table(("left out", "mean error (deg)"), _rows(comparison.left_out)),
    )


def _rows(values: Mapping[str, float]) -> list[tuple[str, str]]:
    return [(name, number(value)) for name, value in values.items()]


def _angles(comparison: Comparison) -> Raw:
    columns = {"measured": comparison.found.measured, **comparison.others, **comparison.ours}
    degrees = np.degrees(np.array(list(columns.values()))).T.tolist()
    rows = zip(comparison.tests, degrees, strict=True)
    cells = ((test, *(number(value) for value in row)) for test, row in rows)
    return table(("test", *columns), cells)


def corrected_urdf(model: RobotModel, fit: Fit) -> str:
    """The URDF's text with the CoMs of a fit; RefusedFitError where one moves above COM_LIMIT."""
    bodies = model.bodies
    shifts = np.linalg.norm(fit.candidate.com_shifts(model, fit.x), axis=1)
    far = np.flatnonzero(shifts > COM_LIMIT * (1.0 + 1e-6))
    if len(far):
        worst = ", ".join(f"{bodies.names[b]} {1e3 * shifts[b]:.1f} mm" for b in far)
        raise RefusedFitError(f"CoMs moved by more than {1e3 * COM_LIMIT:g} mm: {worst}")
    moment = fit.candidate.moments(model, fit.x)
    mass = bodies.mass[:, None]
    com = np.divide(moment, mass, out=np.zeros_like(moment), where=mass > 0.0)
    return edit_inertials(model.xml, corrected_inertials(model, bodies.mass, com))


def write_correction(
    directory: str | os.PathLike[str], model: RobotModel, fit: Fit, overwrite: bool = False
) -> tuple[Path, Path]:
    """Writes <robot>_corrected.urdf and <robot>_joint_errors.yaml, or OutputError."""
    found = joint_errors_document(model, fit.candidate.errors(fit.x), fit.mean_error_deg)
    texts = {
        "_corrected.urdf": corrected_urdf(model, fit),
        "_joint_errors.yaml": yaml.safe_dump(found, sort_keys=False),
    }
    urdf, errors = (
        write_whole(path_inside(directory, model.name + suffix), text.encode(), overwrite)
        for suffix, text in texts.items()
    )
    return urdf, errors
