"""Explains measured tip angles by errors of a robot: candidates, fits and cross-validation.

Each candidate is linear in its parameters x: encoder biases, compliances, backlashes of joints
and first moments of bodies are those of the model plus a matrix times x. The sum of two
candidates has the parameters of both.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import least_squares

from com_identification.exceptions import ProtocolError
from com_identification.regression.priors import urdf_priors
from com_identification.tip_over.kernels import edge_distance
from com_identification.tip_over.protocol import TipProtocol
from com_identification.tip_over.quasi_static import JointErrors, QuasiStatic
from com_model import RobotModel
from com_model.arrays import Array, FrozenArrays, Indices, as_array

COM_LIMIT = 0.005  # m, largest plausible error of a link's CoM
_PROBE = np.radians(0.05)  # rad, for the slope of the margin
_FAR = np.radians(60.0)  # rad, error where there is no tip angle


@dataclass(frozen=True, eq=False)
class Candidate(FrozenArrays):
    """P parameters that may explain tip angles, with prior and bounds.

    Attributes:
        labels: P names, with unit.
        start: (P,) where a search starts.
        std: (P,) standard deviations of the prior, whose mean is 0; inf: no prior.
        low: (P,) bounds.
        high: (P,) bounds.
        joints: (3, n, P) offset, compliance, backlash of JointErrors per unit of x.
        moment: (B, 3, P) kg m per unit of x.
    """

    labels: tuple[str, ...]
    start: Array
    std: Array
    low: Array
    high: Array
    joints: Array
    moment: Array

    def __add__(self, other: "Candidate") -> "Candidate":
        """Returns the candidate with the parameters of both."""
        pairs = (
            (getattr(self, f.name), getattr(other, f.name)) for f in fields(self)[1:]
        )
        arrays = (np.concatenate(pair, axis=-1) for pair in pairs)
        return Candidate(self.labels + other.labels, *arrays)

    @property
    def count(self) -> int:
        """Number of parameters, P."""
        return len(self.labels)

    def errors(self, x: Array) -> JointErrors:
        """Returns the errors of the joints.

        Args:
            x: (P,) parameters.
        """
        offset, compliance, backlash = self.joints @ x
        return JointErrors(
            offset, np.maximum(compliance, 0.0), np.maximum(backlash, 0.0)
        )

    def moments(self, model: RobotModel, x: Array) -> Array:
        """Returns the first moments (B, 3) kg m of the bodies, in their frames.

        Args:
            model: the robot.
            x: (P,) parameters.
        """
        return np.asarray(model.bodies.first_moment + self.moment @ x)

    def com_shifts(self, model: RobotModel, x: Array) -> Array:
        """Returns the shift of each body's CoM (B, 3) m, in its frame.

        Args:
            model: the robot.
            x: (P,) parameters.
        """
        mass = model.bodies.mass[:, None]
        return np.divide(
            self.moment @ x, mass, out=np.zeros((len(mass), 3)), where=mass > 0.0
        )


def known_candidates(model: RobotModel, protocol: TipProtocol) -> dict[str, Candidate]:
    """Makes the candidates that a protocol's parameters allow, by name.

    HOAP-2's tip angles are evidence for "offsets + compliance" (docs/hoap2_lab.md).

    Args:
        model: the robot.
        protocol: its tests.
    """
    offsets = zero_offsets(model, list(protocol.zero_offsets.values()))
    soft, play = (
        compliance(model, protocol.compliant),
        backlash(model, protocol.compliant),
    )
    candidates = {
        "specification": _candidate(model, (), 0.0, np.inf, 0.0, 0.0),
        "compliance": soft,
        "backlash": play,
        "offsets": offsets,
        "offsets + backlash": offsets + play,
        "offsets + compliance": offsets + soft,
        "offsets + compliance + links": offsets + soft + link_shifts(model),
    }
    if protocol.trunk is not None:
        trunk = torso_shift(model, protocol.trunk)
        candidates |= {"trunk": trunk, "trunk + compliance": trunk + soft}
    return candidates


def zero_offsets(model: RobotModel, groups: Sequence[Sequence[str]]) -> Candidate:
    """Encoder biases, rad, one for each group of joints (such as a left and a right one).

    Args:
        model: the robot.
        groups: names of joints that share a bias.
    """
    labels = tuple(f"offset {', '.join(group)} (rad)" for group in groups)
    # 1.5 degrees: play and jig of a robot like HOAP-2
    return _candidate(
        model, labels, 0.0, np.radians(1.5), -0.2, 0.2, offset=_columns(model, groups)
    )


def compliance(model: RobotModel, joints: Sequence[str]) -> Candidate:
    """One compliance of some joints, rad/(N m).

    Args:
        model: the robot.
        joints: their names.
    """
    label, columns = ("compliance (rad/(N m))",), _columns(model, [joints])
    # rad/(N m), the softest joint
    return _candidate(model, label, 0.01, np.inf, 0.0, 0.2, compliance=columns)


def backlash(model: RobotModel, joints: Sequence[str]) -> Candidate:
    """One backlash of some joints, rad: its whole width.

    Args:
        model: the robot.
        joints: their names.
    """
    return _candidate(
        model,
        ("backlash (rad)",),
        0.01,
        np.inf,
        0.0,
        0.2,
        backlash=_columns(model, [joints]),
    )


def torso_shift(model: RobotModel, link: str, std: float = np.inf) -> Candidate:
    """A shift of one link's CoM along x, m, within the box around its body's shapes.

    Args:
        model: the robot.
        link: its name.
        std: m, standard deviation of the shift before the data; inf: no prior.

    Raises:
        ProtocolError: the link has no shapes, so that its bounds are not known.
    """
    index = model.link_index(link)
    body = int(model.bodies.body_of_link[index])
    priors = urdf_priors(model, 0.0, shape_margin=0.0)
    low, high = (
        b[body, :1] - priors.com[body, :1] for b in (priors.com_low, priors.com_high)
    )
    if not np.isfinite([low, high]).all():
        raise ProtocolError(
            f"link {link!r} has no shapes, so its bounds are not known: give them"
        )
    moment = np.zeros((model.bodies.count, 3, 1))
    moment[body, 0] = mass = model.link_masses[index]
    fraction = mass / model.bodies.mass[body]
    return _candidate(
        model,
        (f"CoM of {link}, x (m)",),
        0.0,
        std,
        low / fraction,
        high / fraction,
        moment=moment,
    )


def link_shifts(model: RobotModel) -> Candidate:
    """Shifts of all bodies' CoMs, m, each within COM_LIMIT and the box around its shapes.

    Args:
        model: the robot.
    """
    bodies = model.bodies
    priors = urdf_priors(model, 0.0, shape_margin=0.0)
    heavy = np.flatnonzero(bodies.mass > 0.0)
    body, axis = np.repeat(heavy, 3), np.tile(np.arange(3), len(heavy))
    most = COM_LIMIT / np.sqrt(3.0)  # along each axis, so that all three keep the limit
    low = np.maximum((priors.com_low[:, :3] - priors.com)[body, axis], -most)
    high = np.minimum((priors.com_high[:, :3] - priors.com)[body, axis], most)
    moment = np.zeros((bodies.count, 3, len(body)))
    moment[body, axis, np.arange(len(body))] = bodies.mass[body]
    labels = tuple(
        f"CoM of {bodies.names[b]}, {'xyz'[a]} (m)"
        for b, a in zip(body, axis, strict=True)
    )
    slack = 1e-9  # the search requires its start inside
    return _candidate(
        model, labels, 0.0, COM_LIMIT / 2.0, low - slack, high + slack, moment=moment
    )


def _columns(model: RobotModel, groups: Sequence[Sequence[str]]) -> Array:
    columns = np.zeros((model.n_joints, len(groups)))
    for i, group in enumerate(groups):
        columns[[model.joint_index(joint) for joint in group], i] = 1.0
    return columns


def _candidate(
    model: RobotModel,
    labels: tuple[str, ...],
    start: float,
    std: float,
    low: float | Array,
    high: float | Array,
    moment: Array | None = None,
    **joints: Array,
) -> Candidate:
    count = len(labels)
    changes = np.zeros((3, model.n_joints, count))
    for name, columns in joints.items():
        changes[JointErrors._fields.index(name)] = columns
    moment = np.zeros((model.bodies.count, 3, count)) if moment is None else moment
    vectors = (np.broadcast_to(v, (count,)) for v in (start, std, low, high))
    return Candidate(labels, *[*vectors, changes, moment])


@dataclass(frozen=True, eq=False)
class TipFit(FrozenArrays):
    """A candidate fitted to tip angles.

    Attributes:
        candidate: what was fitted.
        x: (P,) its parameters.
        std: (P,) their standard deviations; NaN where the angles do not determine them.
        predicted: (T,) rad, angles of all tests.
        measured: (T,) rad.
        used: (k,) indices of the tests that it was fitted to.
    """

    candidate: Candidate
    x: Array
    std: Array
    predicted: Array
    measured: Array
    used: Indices

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
    noise: float = np.radians(0.5),
) -> TipFit:
    """Fits the parameters of a candidate to tip angles (maximum a posteriori).

      min over x of  sum of 2 (sqrt(1 + e_i^2) - 1) + sum of (x_j / std_j)^2

    with e_i the error of a tip angle over its noise, rad, within the candidate's bounds. The
    first term is e^2 near 0 and 2 |e| for large errors: robust against single wrong angles.

    Args:
        simulation: of the robot and the tests.
        measured: (T,) rad; NaN where not measured.
        candidate: what is fitted.
        only: indices of the tests that are used; None: all.
        start: (P,) where the search begins; None: the candidate's.
        noise: rad, of an angle.

    Raises:
        ProtocolError: an angle of a test that is used is not finite.
    """
    measured = as_array(
        "measured", measured, (len(simulation.tests),), "One angle for each test"
    )
    numbers = range(len(measured)) if only is None else only
    used = np.asarray(numbers, dtype=np.int64)
    if not np.isfinite(measured[used]).all():
        missing = ", ".join(
            simulation.tests[i].name for i in used if not np.isfinite(measured[i])
        )
        raise ProtocolError(
            f"angles that are not numbers: {missing}. Leave those tests out"
        )
    x = np.array(candidate.start if start is None else start)
    std = np.full(candidate.count, np.nan)
    if candidate.count and len(used):
        x, std = _Problem(simulation, measured, candidate, used, noise).search(x)
    return TipFit(
        candidate, x, std, predict(simulation, candidate, x, measured), measured, used
    )


def predict(
    simulation: QuasiStatic, candidate: Candidate, x: Array, guess: Array
) -> Array:
    """Computes the tip angles of all tests, rad, by a search near a guess.

    Args:
        simulation: of the robot and the tests.
        candidate: what is fitted.
        x: (P,) its parameters.
        guess: (T,) rad.

    Returns:
        (T,) rad, NaN where there is no tip angle.
    """
    return simulation.tip_angles_near(
        np.nan_to_num(guess),
        candidate.errors(x),
        candidate.moments(simulation.model, x),
    )


def cross_validate(
    simulation: QuasiStatic, full: TipFit, groups: Sequence[Sequence[int]]
) -> Array:
    """Leaves out each group of tests in turn, and predicts it.

    Args:
        simulation: of the robot and the tests.
        full: the fit to all tests.
        groups: indices of the tests of each of G groups.

    Returns:
        (G,) deg, mean absolute errors of the groups' predictions.
    """
    result = []
    for group in groups:
        rest = np.setdiff1d(full.used, group)
        left = fit(simulation, full.measured, full.candidate, rest, full.x)
        result.append(np.abs(left.errors_deg[list(group)]).mean())
    return np.array(result)


def families(simulation: QuasiStatic) -> dict[str, list[int]]:
    """Returns the indices of the tests of each family, by its name.

    Args:
        simulation: of the robot and the tests.
    """
    result: dict[str, list[int]] = {}
    for i, test in enumerate(simulation.tests):
        result.setdefault(test.family, []).append(i)
    return result


class _Problem(NamedTuple):
    """The least-squares problem of a candidate.

    Attributes:
        simulation: of the robot and the tests.
        measured: (T,) rad.
        candidate: what is fitted.
        used: (k,) indices of the tests that are used.
        noise: rad, of an angle.
    """

    simulation: QuasiStatic
    measured: Array
    candidate: Candidate
    used: Indices
    noise: float

    def _errors(self, x: Array) -> tuple[JointErrors, Array]:
        return self.candidate.errors(x), self.candidate.moments(
            self.simulation.model, x
        )

    def angles(self, x: Array) -> Array:
        """Returns the tip angles (k,) rad; _FAR from the measured one where there is none.

        Args:
            x: (P,) parameters.
        """
        near = self.measured[self.used]
        angles = self.simulation.tip_angles_near(
            near, *self._errors(x), list(self.used)
        )
        return np.where(np.isnan(angles), near + _FAR, angles)

    def slopes(self, x: Array, angles: Array) -> Array:
        """Returns the derivatives of the angles by x, (k, P).

        Those of the margin by x over that by the angle, with the other sign.

        Args:
            x: (P,) parameters.
            angles: (k,) rad, at x.
        """
        step = np.maximum(1e-4 * np.abs(x), 1e-6)
        margin = self._margins(x, angles)
        turn = (self._margins(x, angles + _PROBE) - margin) / _PROBE
        columns = [
            (self._margins(x + step * unit, angles) - margin) / step[j]
            for j, unit in enumerate(np.eye(len(x)))
        ]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.nan_to_num(
                -np.column_stack(columns) / turn[:, None], posinf=0.0, neginf=0.0
            )

    def _margins(self, x: Array, angles: Array) -> Array:
        errors = self._errors(x)
        margins = np.full(len(angles), np.nan)  # without equilibrium: no slope
        for i, (test, angle) in enumerate(
            zip(self.used.tolist(), angles.tolist(), strict=True)
        ):
            with suppress(ProtocolError):
                com = self.simulation.find_equilibrium(test, angle, *errors).com
                margins[i] = edge_distance(com, self.simulation.cases[test].soles.edges)
        return margins

    def search(self, x: Array) -> tuple[Array, Array]:
        """Finds the most probable parameters and their standard deviations.

        With J the Jacobian of all residuals at the optimum: std^2 = diag((J^T J)^-1).

        Args:
            x: (P,) where the search begins.

        Returns:
            (P,) and (P,); the latter NaN where the angles do not determine them.
        """
        candidate, known = self.candidate, np.isfinite(self.candidate.std)
        weights = np.diag(1.0 / candidate.std)[known]
        last = lru_cache(1)(lambda key: self.angles(np.frombuffer(key)))

        def errors(x: Array) -> Array:
            return (last(x.tobytes()) - self.measured[self.used]) / self.noise

        def residuals(x: Array) -> Array:
            """sign(e) sqrt(2 (sqrt(1 + e^2) - 1)), without cancellation, and the prior's."""
            e = errors(x)
            return np.append(
                e * np.sqrt(2.0 / (np.sqrt(1.0 + e * e) + 1.0)), weights @ x
            )

        def jacobian(x: Array) -> Array:
            root = np.sqrt(1.0 + errors(x) ** 2)
            slopes = self.slopes(x, last(x.tobytes())) / self.noise
            return np.vstack(
                ((np.sqrt((root + 1.0) / 2.0) / root)[:, None] * slopes, weights)
            )

        scale = np.where(
            known, candidate.std, np.maximum(np.abs(candidate.start), 1e-3)
        )
        bounds = candidate.low, candidate.high
        found = least_squares(
            residuals,
            x,
            jacobian,
            bounds,
            x_scale=scale,
            xtol=1e-7,
            ftol=1e-7,
            max_nfev=60,
        )
        try:
            variances = np.diag(np.linalg.inv(found.jac.T @ found.jac))
        except np.linalg.LinAlgError:
            variances = np.full(len(x), np.nan)
        return np.asarray(found.x), np.sqrt(variances)
