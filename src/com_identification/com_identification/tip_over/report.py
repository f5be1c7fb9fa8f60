"""What measured tip angles say of a robot, as one page of HTML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from com_identification.report.html import Raw, bullets, element, number, page, table
from com_identification.tip_over.fit import Fit, cross_validate, families, leave_out
from com_identification.tip_over.plots import angles_svg
from com_identification.tip_over.quasi_static import QuasiStatic
from com_identification.tip_over.tables import difference
from com_model.arrays import Array


@dataclass(frozen=True, eq=False)
class Comparison:
    """Measured tip angles beside others' and ours.

    Attributes:
        robot: Its name.
        tests: T names.
        others: (T,) rad by name, of other sources.
        ours: (T,) rad by name; the last is what the fit predicts.
        notes: What is to be known of the angles, a sentence each.
        found: The fit; it has the measured angles.
        left_out: Mean error of what was left out and predicted by the rest, deg, by name.
    """

    robot: str
    tests: tuple[str, ...]
    others: Mapping[str, Array]
    ours: Mapping[str, Array]
    notes: tuple[str, ...]
    found: Fit
    left_out: Mapping[str, float]

    def mean_errors(self) -> dict[str, float]:
        """Gives the mean absolute difference of each column to the measured angles, deg."""
        used, measured = self.found.used, self.found.measured
        columns = {**self.others, **self.ours}
        return {
            name: difference(angles[used], measured[used]).average_deg
            for name, angles in columns.items()
        }


def errors_left_out(lab: QuasiStatic, found: Fit) -> dict[str, float]:
    """Leaves out each test, then each family; mean absolute errors of their predictions, deg."""
    used = set(found.used.tolist())
    ones = [group for group in leave_out(len(lab.tests), 1) if group[0] in used]
    result = {"one test": float(cross_validate(lab, found, ones).mean())}
    for name, group in families(lab).items():
        if there := [i for i in group if i in used]:
            result[name] = float(cross_validate(lab, found, [there])[0])
    return result


def report_page(comparison: Comparison) -> str:
    """Writes the page: mean errors, picture, all angles, what the fit found."""
    picture = angles_svg(
        comparison.tests, comparison.found.measured, comparison.others, comparison.ours
    )
    return page(
        f"{comparison.robot}: tip angles",
        element("h1", f"{comparison.robot}: tip angles"),
        element("p", "Angles at which the robot tips over while joints turn slowly, in degrees."),
        element("h2", "Mean error"),
        table(("angles of", "deg"), _rows(comparison.mean_errors())),
        element("h2", "Test by test"),
        Raw(picture),
        _angles(comparison),
        bullets(comparison.notes),
        element("h2", "What explains the measured angles"),
        table(("parameter", "found"), _parameters(comparison.found)),
        element("h2", "Tests that the fit has not seen"),
        table(("left out", "mean error (deg)"), _rows(comparison.left_out)),
    )


def _rows(values: Mapping[str, float]) -> list[tuple[str, str]]:
    return [(name, number(value)) for name, value in values.items()]


def _parameters(found: Fit) -> list[tuple[str, str]]:
    pairs = zip(found.candidate.labels, found.x.tolist(), strict=True)
    return [(label, number(value, 5)) for label, value in pairs]


def _angles(comparison: Comparison) -> Raw:
    columns = {"measured": comparison.found.measured, **comparison.others, **comparison.ours}
    degrees = np.degrees(np.array(list(columns.values()))).T.tolist()
    rows = zip(comparison.tests, degrees, strict=True)
    cells = ((test, *(number(value) for value in row)) for test, row in rows)
    return table(("test", *columns), cells)
