"""Fits candidates to measured tip angles, cross-validates and writes what was found."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import yaml
from numpy.typing import ArrayLike
from scipy.optimize import least_squares

from com_identification.exceptions import ProtocolError, RefusedFitError
from com_identification.store.export import corrected_inertials
from com_identification.store.files import path_inside, write_whole
from com_identification.tip_over.candidates import COM_LIMIT, Candidate
from com_identification.tip_over.quasi_static import JointErrors, QuasiStatic, joint_errors_document
from com_model import RobotModel
from com_model.arrays import Array, as_array, freeze
from com_model.bodies import Indices
from com_model.urdf.editing import edit_inertials

NOISE = np.radians(0.5)  # rad, of a measured tip angle
_PROBE = np.radians(0.05)  # rad, for the slope of the margin
_FAR = np.radians(60.0)  # rad, error where there is no tip angle


@dataclass(frozen=True, eq=False)
class Fit:
    """A candidate's parameters.

    Attributes:
        candidate: What was fitted.
        x: (P,) its parameters.
        predicted: (T,) rad, angles of all tests.
        measured: (T,) rad.
        used: (k,) numbers of the tests that it was fitted to.
    """

    candidate: Candidate
    x: Array
    predicted: Array
    measured: Array
    used: Indices

    def __post_init__(self) -> None:
        freeze(self)

    @property
    def errors_deg(self) -> Array:
        """(T,) degrees, predicted less measured."""
        return np.asarray(np.degrees(self.predicted - self.measured))

    @property
    def mean_error_deg(self) -> float:
        """Mean of the absolute errors of all tests, degrees."""
        return float(np.abs(self.errors_deg).mean())


def fit(
    simulation: QuasiStatic,
    measured: ArrayLike,
    candidate: Candidate,
    only: Sequence[int] | Indices | None = None,
    start: ArrayLike | None = None,
    noise: float = NOISE,
) -> Fit:
    """Finds the parameters of a candidate (maximum a posteriori).

      min over x of  sum of 2 (sqrt(1 + e_i^2) - 1) + sum of ((x_j - mean_j) / std_j)^2

    with e_i the error of a tip angle over its noise, within the candidate's bounds. The first term
    is e^2 near 0 and 2 |e| far away: robust against single wrong angles.

    Args:
        simulation: The tests and the robot.
        measured: (T,) rad, of all tests.
        candidate: What may explain them.
        only: Numbers of the tests to use; all by default.
        start: (P,) where to start.
        noise: rad, standard deviation of an angle.

    Raises:
        ProtocolError: Angles are missing or not finite.
        ShapeError: measured has the wrong length.
    """
    measured = as_array("measured", measured, (len(simulation.tests),), "One angle for each test")
    numbers = range(len(measured)) if only is None else only
    used = np.asarray(numbers, dtype=np.int64)
    if not np.isfinite(measured[used]).all():
        missing = ", ".join(simulation.tests[i].name for i in used if not np.isfinite(measured[i]))
        raise ProtocolError(f"angles that are not numbers: {missing}. Leave those tests out")
    x = np.array(candidate.start if start is None else start)
    if candidate.count and len(used):
        x = _search(_Problem(simulation, measured, candidate, used, noise), x)
    return Fit(candidate, x, predict(simulation, candidate, x, measured), measured, used)


def predict(simulation: QuasiStatic, candidate: Candidate, x: Array, guess: Array) -> Array:
    """Computes the tip angles of all tests, rad, looking near a guess (T,)."""
    moment = candidate.moments(simulation.model, x)
    return simulation.tip_angles_near(np.nan_to_num(guess), candidate.errors(x), moment)


def cross_validate(
    simulation: QuasiStatic,
    full: Fit,
    groups: Sequence[Sequence[int]],
    noise: float = NOISE,
) -> Array:
    """Leaves each group of tests out in turn, fits the others and predicts the group.

    Args:
        simulation: The tests and the robot.
        full: The fit to all tests, where the searches start.
        groups: Numbers of the tests of each group.
        noise: rad.

    Returns:
        (G,) degrees, mean absolute error of each group.
    """
    result = []
    for group in groups:
        rest = np.setdiff1d(full.used, group)
        left = fit(simulation, full.measured, full.candidate, rest, full.x, noise)
        result.append(np.abs(left.errors_deg[list(group)]).mean())
    return np.array(result)


def leave_out(count: int, size: int) -> list[tuple[int, ...]]:
    """Lists all groups of so many of `count` tests."""
    return list(combinations(range(count), size))


def families(simulation: QuasiStatic) -> dict[str, list[int]]:
    """Lists the tests of each family by its name."""
    result: dict[str, list[int]] = {}
    for i, test in enumerate(simulation.tests):
        result.setdefault(test.family, []).append(i)
    return result


@dataclass(frozen=True)
class _Problem:
    simulation: QuasiStatic
    measured: Array
    candidate: Candidate
    used: Indices
    noise: float

    def angles(self, x: Array) -> Array:
        moment = self.candidate.moments(self.simulation.model, x)
        near = self.measured[self.used]
        angles = self.simulation.tip_angles_near(
            near, self.candidate.errors(x), moment, list(self.used)
        )
        return np.where(np.isnan(angles), near + _FAR, angles)

    def slopes(self, x: Array, angles: Array) -> Array:
        """Derivatives of the angles (k, P): that of the margin by x over that by the angle."""
        step = np.maximum(1e-4 * np.abs(x), 1e-6)
        margin = self._margins(x, angles)
        turn = (self._margins(x, angles + _PROBE) - margin) / _PROBE
        columns = [
            (self._margins(x + step * unit, angles) - margin) / step[j]
            for j, unit in enumerate(np.eye(len(x)))
        ]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.nan_to_num(-np.column_stack(columns) / turn[:, None], posinf=0.0, neginf=0.0)

    def _margins(self, x: Array, angles: Array) -> Array:
        errors, moment = self.candidate.errors(x), self.candidate.moments(self.simulation.model, x)
        pairs = zip(self.used.tolist(), angles.tolist(), strict=True)
        return np.array([self._margin(i, angle, errors, moment) for i, angle in pairs])

    def _margin(self, test: int, angle: float, errors: JointErrors, moment: Array) -> float:
        try:
            return self.simulation.find_equilibrium(test, angle, errors, moment).margin
        except ProtocolError:  # no equilibrium: no slope
            return float("nan")


def _search(problem: _Problem, x: Array) -> Array:
    candidate, known = problem.candidate, np.isfinite(problem.candidate.std)
    weights = np.diag(1.0 / candidate.std)[known]
    seen: dict[bytes, Array] = {}

    def angles(x: Array) -> Array:
        key = x.tobytes()
        if key not in seen:
            seen.clear()
            seen[key] = problem.angles(x)
        return seen[key]

    def errors(x: Array) -> Array:
        return (angles(x) - problem.measured[problem.used]) / problem.noise

    def residuals(x: Array) -> Array:
        return np.concatenate((_robust(errors(x)), weights @ (x - candidate.mean)))

    def jacobian(x: Array) -> Array:
        slopes = problem.slopes(x, angles(x)) / problem.noise
        return np.vstack((_robust_slope(errors(x))[:, None] * slopes, weights))

    scale = np.where(known, candidate.std, np.maximum(np.abs(candidate.start), 1e-3))
    bounds = candidate.low, candidate.high
    found = least_squares(
        residuals, x, jacobian, bounds, x_scale=scale, xtol=1e-7, ftol=1e-7, max_nfev=60
    )
    return np.asarray(found.x)


def _robust(e: Array) -> Array:
    """sign(e) sqrt(2 (sqrt(1 + e^2) - 1)), without cancellation."""
    return np.asarray(e * np.sqrt(2.0 / (np.sqrt(1.0 + e * e) + 1.0)))


def _robust_slope(e: Array) -> Array:
    """Its derivative."""
    root = np.sqrt(1.0 + e * e)
    return np.asarray(np.sqrt((root + 1.0) / 2.0) / root)


def check_physical(model: RobotModel, fit: Fit, limit: float = COM_LIMIT) -> None:
    """Refuses a fit whose centres of mass are moved too far.

    Raises:
        RefusedFitError: Names the bodies.
    """
    shifts = np.linalg.norm(fit.candidate.com_shifts(model, fit.x), axis=1)
    far = np.flatnonzero(shifts > limit * (1.0 + 1e-6))
    if len(far):
        worst = (f"{model.bodies.names[b]} {1e3 * shifts[b]:.1f} mm" for b in far)
        raise RefusedFitError((f"CoMs moved by more than {1e3 * limit:g} mm: {', '.join(worst)}",))


def corrected_urdf(model: RobotModel, fit: Fit) -> str:
    """Writes the CoMs of a fit into the text of the URDF; all else stays byte for byte.

    Raises:
        RefusedFitError: A CoM is moved by more than 5 mm.
    """
    check_physical(model, fit)
    bodies = model.bodies
    moment = fit.candidate.moments(model, fit.x)
    mass = bodies.mass[:, None]
    com = np.divide(moment, mass, out=np.zeros_like(moment), where=mass > 0.0)
    return edit_inertials(model.xml, corrected_inertials(model, bodies.mass, com))


def write_correction(
    directory: str | os.PathLike[str], model: RobotModel, fit: Fit, overwrite: bool = False
) -> tuple[Path, Path]:
    """Writes <robot>_corrected.urdf and <robot>_joint_errors.yaml into a directory.

    Raises:
        RefusedFitError: A CoM is moved by more than 5 mm.
        OutputError: The directory or the files cannot be written, or a file is there already.
    """
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
