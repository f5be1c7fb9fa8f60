"""Maximum a posteriori in data space: bodies and errors of sensors under proper priors.

With whitened parameters of the bodies x (unit covariance) and all other errors as noise of known
structure, the rows of all postures are

  z = B x + e,   e ~ N(0, N),   N = sum_c l_c N_c + R

N_c is the covariance that the priors assign to error class c: E_c E_c^T of constant errors, that
of a random walk over the postures for drift, block-diagonal for what is new in each posture; R is
the readings' white noise. Non-constant noise is removed posture by posture, by a Kalman filter of
the drift (rows.py): time and memory grow with the number of postures. The scales l_c are adapted
to the data (a step of expectation maximisation, shrunk to 1 and held within 1/4 and 9) and then
increased by one standard deviation, and postures that nothing explains get a larger R.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular

from com_identification.regression.priors import BodyPriors
from com_identification.regression.rows import (
    FilteredObservations,
    StackedObservations,
    select,
)
from com_model.arrays import Array, Flags

BODIES = "bodies"  # the class of all of them
_PSEUDO = 12.0  # number of unknowns that the prior scale of a class is worth


@dataclass(frozen=True, eq=False)
class Posterior:
    """The posterior of bodies and constant sensor errors, with what diagnostics need.

    Attributes:
        x: (U,) in prior standard deviations from the prior mean, without bounds.
        covariance: (U, U) of x.
        errors: by class, constant errors in standard deviations of the prior.
        stds: by class, standard deviations of those.
        constant: (N, S + U) whitened columns of constant errors, with their scales, and
            bodies.
        explained: (N, S + U) Q of condition().
        unwhitening: (S + U, S + U) its G^-1.
        a: (N,) (N + B B^T)^-1 z.
        inverse: for each posture, (R, R) block of (N + B B^T)^-1.
        square: z^T (N + B B^T)^-1 z.
        evidence: logarithm of the likelihood, up to a constant.
        scales: variance of each class of errors over its prior's.
        inflation: (P,) variance of what is new in each posture, over its prior's.
    """

    x: Array
    covariance: Array
    errors: Mapping[str, Array]
    stds: Mapping[str, Array]
    constant: Array
    explained: Array
    unwhitening: Array
    a: Array
    inverse: tuple[Array, ...]
    square: float
    evidence: float
    scales: Mapping[str, float]
    inflation: Array

    @cached_property
    def gain(self) -> Array:
        """(U, N) with x = gain @ z."""
        return np.asarray(self.unwhitening[:, -len(self.x) :].T @ self.explained.T)

    def root(self) -> Array:
        """Returns rows R (<= U, U) of unit noise with the information on x.

        covariance^-1 = 1 + R^T R. By orthogonal transformations alone: its rank is that of the
        data.
        """
        S = self.constant.shape[1] - len(self.x)
        prior = np.eye(S, S + len(self.x))
        triangle = np.asarray(np.linalg.qr(np.vstack((prior, self.constant)), mode="r"))
        return triangle[S:, S:]


class _Solution(NamedTuple):
    """Constant errors and bodies together, u, whose covariance is 1 before the data.

    Attributes:
        C: (N, S + U) whitened columns.
        root: (S + U, S + U) lower, of 1 + C^T C.
        u: (S + U,).
        rest: (N,) whitened residuals.
        square: z^T (N + B B^T)^-1 z.
    """

    C: Array
    root: Array
    u: Array
    rest: Array
    square: float
    evidence: float


def _solve(
    rows: StackedObservations,
    filtered: FilteredObservations,
    scales: Mapping[str, float],
) -> _Solution:
    variances = [np.full(E.shape[1], scales[c]) for c, E in rows.errors.items()]
    variances.append(np.full(rows.bodies.shape[1], scales.get(BODIES, 1.0)))
    C = filtered.columns[:, :-1] * np.sqrt(np.concatenate(variances))
    z = filtered.columns[:, -1]
    root = cholesky(np.eye(C.shape[1]) + C.T @ C, lower=True)
    u = cho_solve((root, True), C.T @ z)
    rest = z - C @ u
    square = float(rest @ rest + u @ u)
    evidence = -0.5 * (square + filtered.log_det) - float(np.log(np.diag(root)).sum())
    return _Solution(C, root, u, rest, square, evidence)


def condition(
    rows: StackedObservations, scales: Mapping[str, float], inflation: Array
) -> Posterior:
    """Computes the posterior with given scales.

    With C = (E sqrt(l), B) and 1 + C^T K^-1 C = G G^T,

      (N + B B^T)^-1 = K^-1 - Q Q^T,   Q = K^-1 C G^-T,   B^T (N + B B^T)^-1 = (Q G^-1)_B^T

    Args:
        rows: of all postures.
        scales: variance l_c of each class of errors over its prior's.
        inflation: (P,) variance of what is new in each posture over its prior's.

    Raises:
        IdentificationError: some noise is 0.
    """
    filtered = FilteredObservations.of(rows, scales, inflation)
    C, root, u, rest, square, evidence = _solve(rows, filtered, scales)
    S = len(u) - rows.bodies.shape[1]
    inverse_root = solve_triangular(root, np.eye(len(u)), lower=True)
    whitened = solve_triangular(root, C.T, lower=True).T
    back, blocks = filtered.back(rows, np.column_stack((whitened, rest)))
    Q = back[:, :-1]
    stds = np.linalg.norm(inverse_root, axis=0)
    covariance = inverse_root[:, S:].T @ inverse_root[:, S:]
    ends = np.cumsum([0, *(E.shape[1] for E in rows.errors.values())])
    parts = {c: slice(*ends[i : i + 2]) for i, c in enumerate(rows.errors)}
    return Posterior(
        x=u[S:],
        covariance=covariance,
        errors={c: np.sqrt(scales[c]) * u[part] for c, part in parts.items()},
        stds={c: np.sqrt(scales[c]) * stds[part] for c, part in parts.items()},
        constant=C,
        explained=Q,
        unwhitening=inverse_root,
        a=back[:, -1],
        inverse=tuple(
            K - Q[block] @ Q[block].T
            for block, K in zip(rows.blocks, blocks, strict=True)
        ),
        square=square,
        evidence=evidence,
        scales=dict(scales),
        inflation=inflation,
    )


def prior_posterior(rows: StackedObservations) -> Posterior:
    """Computes the posterior with the scales of the priors.

    Args:
        rows: of all postures.
    """
    return condition(rows, dict.fromkeys(rows.classes, 1.0), np.ones(len(rows.walk)))


def reweight(rows: StackedObservations, found: Posterior) -> Posterior:
    """Inflates the noise of postures that nothing explains, until their squared residual is 3.

    A posture that was inconsistent only because of another one gets its weight back.

    Args:
        rows: of all postures.
        found: with the current scales.
    """
    for _ in range(10):
        # per row; above, something touches the robot in a posture
        wanted = found.inflation * posture_residuals(rows, found) / 3.0
        inflation = np.maximum(wanted, 1.0)
        # change of the logarithm of an inflation
        if np.abs(np.log(inflation / found.inflation)).max(initial=0.0) < 0.1:
            break
        found = condition(rows, found.scales, inflation)
    return found


def posture_residuals(rows: StackedObservations, found: Posterior) -> Array:
    """Returns squared residuals over their covariance, per row, (P,).

    e^T (R S R)^-1 e = a^T S_pp^-1 a, with e the residuals of posture p.

    Args:
        rows: of all postures.
        found: the posterior that a and S are of.
    """
    return np.array(
        [
            found.a[block] @ np.linalg.solve(S, found.a[block]) / len(S)
            for block, S in zip(rows.blocks, found.inverse, strict=True)
        ]
    )


def adapt(rows: StackedObservations, found: Posterior) -> Posterior:
    """Adapts the scales of the error classes to the data.

    Args:
        rows: Of all postures.
        found: With the present scales.
    """
    for _ in range(40):
        before, scales = found.scales, {}
        for c, (squared, trace, count) in scores(rows, found).items():
            scale = before[c] + before[c] ** 2 / count * (squared - trace)
            scale = (count * scale + _PSEUDO) / (count + _PSEUDO)
            scales[c] = float(np.clip(scale, 0.25, 9.0))
        found = condition(rows, scales, found.inflation)
        # change of the logarithm of a scale
        if all(abs(np.log(scales[c] / before[c])) < 0.01 for c in scales):
            break
    return found


def widen(rows: StackedObservations, found: Posterior) -> Posterior:
    """Increases every scale by one standard deviation, as what adapt() found is uncertain.

    A variance that n values show has the relative standard deviation sqrt(2 / n); of a class
    these are the l_c tr S N_c unknowns that the data determine, and those that its prior counts
    for.

    Args:
        rows: of all postures.
        found: with the adapted scales.
    """
    scales = {}
    for c, (_, trace, _) in scores(rows, found).items():
        known = _PSEUDO + max(found.scales[c] * trace, 0.0)
        scales[c] = found.scales[c] * (1.0 + float(np.sqrt(2.0 / known)))
    return condition(rows, scales, found.inflation)


def scores(
    rows: StackedObservations, found: Posterior
) -> dict[str, tuple[float, float, int]]:
    """Returns a^T N_c a, tr S N_c with scale 1, and the number of unknowns, by class.

    S = (N + B B^T)^-1. The traces of all parts of S^-1 sum to the number of rows: the remainder
    is drift's.

    Args:
        rows: of all postures.
        found: the posterior that a and S are of.
    """
    result = {}
    left = len(rows.z) - len(found.x) + float(np.trace(found.covariance))
    for c, values in found.errors.items():
        scale, count = found.scales[c], len(values)
        trace = count - float(np.sum(found.stds[c] ** 2)) / scale
        result[c] = float(values @ values) / scale**2, trace / scale, count
        left -= trace
    for c, factors in rows.noise.items():
        squared = trace = 0.0
        count = sum(F.shape[1] for F in factors)
        each = zip(rows.blocks, factors, found.inverse, found.inflation, strict=True)
        for block, F, S, v in each:
            squared += v * float(np.sum((F.T @ found.a[block]) ** 2))
            trace += v * float(np.sum(F * (S @ F)))
        result[c] = squared, trace, max(count, 1)
        left -= found.scales[c] * trace
    if rows.drift.size:
        white = zip(rows.white, found.inverse, found.inflation, strict=True)
        left -= sum(v * float(np.sum(W * S)) for W, S, v in white)
        pulls = np.add.reduceat(rows.drift * found.a[:, None], rows.starts[:-1])
        later = np.cumsum(pulls[::-1], axis=0)[
            ::-1
        ]  # a step changes its posture and all later ones
        squared = float(np.diff(rows.walk, prepend=0.0) @ np.sum(later**2, axis=1))
        count = max(rows.drift.shape[1] * (len(rows.walk) - 1), 1)
        result["drift"] = squared, left / found.scales["drift"], count
    return result


def consistency(
    rows: StackedObservations, found: Posterior, used: Flags
) -> tuple[float, float]:
    """Prior-predictive check: z^T (N + B B^T)^-1 z over its number of rows.

    Args:
        rows: of all postures.
        found: with the scales of the priors.
        used: (P,) the postures that are no outliers.

    Returns:
        The mean square, about 1 where the priors cover the errors, and the limit above which they
        do not; NaN without used postures.
    """
    if not used.any():
        return float("nan"), float("nan")
    part = select(rows, used)
    square = condition(part, found.scales, np.ones(len(part.walk))).square
    # three standard deviations of the mean square of all rows
    return square / len(part.z), 1.0 + 3.0 * float(np.sqrt(2.0 / len(part.z)))


def tempering(rows: StackedObservations, found: Posterior, target: Array) -> float:
    """Observed over expected variance of the postures' contributions to a prediction, 1 or more.

    Args:
        rows: of all postures.
        found: the posterior.
        target: (K, U) derivatives of the predicted quantities by x.
    """
    observed = expected = 0.0
    fresh = rows.fresh(found.scales, found.inflation)
    for block, R, S in zip(rows.blocks, fresh, found.inverse, strict=True):
        effect = target @ found.gain[:, block] @ R
        observed += float(np.sum((effect @ found.a[block]) ** 2))
        expected += float(np.sum((effect @ S) * effect))
    return max(1.0, observed / expected) if expected > 0.0 else 1.0


def scale_noise(covariance: Array, factor: float) -> Array:
    """Returns the covariance (U, U) of x for a noise whose variance is larger by a factor.

    The information is C^-1 - 1 of the data and 1 of the prior: with C = V diag(c) V^T,

      (1 + (C^-1 - 1) / factor)^-1 = V diag(factor c / (1 - c + factor c)) V^T

    Args:
        covariance: (U, U) C of x in prior standard deviations.
        factor: of the variance of the noise.
    """
    values, vectors = np.linalg.eigh(covariance)
    values = np.clip(values, 0.0, 1.0)
    return np.asarray(
        vectors * (factor * values / (1.0 - values + factor * values)) @ vectors.T
    )


def bound(
    x: Array, covariance: Array, priors: BodyPriors
) -> tuple[Array, tuple[int, ...]]:
    """Finds the most probable x within the physical limits, and the bodies at one.

    min |L (x - x0)|^2 with L^T L = C^-1 subject to G theta(x) <= g: with y = L (x - x0) a problem
    of least distance, which nonnegative least squares solves [Lawson and Hanson, ch. 23].

    Args:
        x: (U,) the most probable one without limits.
        covariance: (U, U) C of x.
        priors: of the bodies, with the limits.

    Returns:
        x (U,), and the indices of the bodies with a limit that is active.
    """
    G, g, owner = priors.limits()
    slack = g - G @ priors.values(x)
    columns = G @ priors.factor
    free = np.abs(columns).max(axis=1, initial=0.0) > 0.0
    if (slack[free] >= 0.0).all():
        return x, ()
    root = cholesky(covariance, lower=True)  # C = root root^T, L = root^-1
    A, b = columns[free] @ root, slack[free]  # a y <= b
    scale = np.linalg.norm(A, axis=1)
    A, b = A / scale[:, None], b / scale
    from scipy.optimize import nnls  # takes half a second, and few fits need it

    u, _ = nnls(np.vstack((-A.T, -b)), np.append(np.zeros(len(x)), 1.0))
    residual = np.append(-A.T @ u, -b @ u) - np.append(np.zeros(len(x)), 1.0)
    y = -residual[:-1] / residual[-1]
    at = owner[free][u > 0.0]
    return x + root @ y, tuple(int(k) for k in dict.fromkeys(at))


def gross_error(found: Posterior) -> tuple[str, float, int] | None:
    """Finds a constant error that is far larger than its prior allows.

    The score e^T a / sqrt(e^T S e) of the column e of an error is standard normal under the
    priors, and (e^T a) / (e^T S e) is the error, in its prior's standard deviations, that
    explains it. Where some error's score is that large, the one is named whose score times e^T S
    e, the part of its prior variance that the readings reduce, is the largest: a gain that they
    hardly show can score more than a cable's pull, with 45 times its prior.

    Args:
        found: with the scales of the priors.

    Returns:
        Its class, that size, its place in the class; None where there is none.
    """
    most, largest, result = 0.0, 0.0, ("", 0.0, 0)
    for c, pull in found.errors.items():
        information = np.maximum(1.0 - found.stds[c] ** 2, 1e-12)
        # the rows must reduce an error's prior variance by 5 %
        score = np.where(information > 0.05, np.abs(pull) / np.sqrt(information), 0.0)
        most, i = max(most, float(score.max())), int(np.argmax(score))
        if score[i] * information[i] > largest:
            largest = float(score[i] * information[i])
            result = c, float(abs(pull[i]) / information[i]), i
    # five standard deviations of a score, as there are several hundred errors
    return result if most > 5.0 else None


def likeliest_cause(rows: StackedObservations, found: Posterior) -> tuple[str, float]:
    """Finds which class of errors explains the readings best if its variance is freed.

    Compares -1/2 (z^T S z + log det S^-1) with the class's variance 4 to 256 times its prior's;
    returns the class, or BODIES, and by how much its standard deviation exceeds the prior's.

    Args:
        rows: Of all postures.
        found: The posterior with scales of 1.
    """
    best, cause = -np.inf, ("", 1.0)
    filtered = FilteredObservations.of(rows, found.scales, found.inflation)
    for c in (*rows.classes, BODIES):
        # variances of a freed class over its prior's
        for factor in (4.0, 16.0, 64.0, 256.0):
            scales = {**found.scales, c: factor}
            constant = c in rows.errors or c == BODIES
            part = (
                filtered
                if constant
                else FilteredObservations.of(rows, scales, found.inflation)
            )
            evidence = _solve(rows, part, scales).evidence
            if evidence > best:
                best, cause = evidence, (c, float(np.sqrt(factor)))
    return cause


def held_out(
    rows: StackedObservations, found: Posterior, folds: int
) -> Iterator[Posterior]:
    """Yields the posterior without each part of the postures in turn.

    Args:
        rows: of all postures.
        found: the posterior, whose scales are kept.
        folds: number of parts.
    """
    for fold in range(folds):
        kept = np.arange(len(rows.walk)) % folds != fold
        yield condition(select(rows, kept), found.scales, found.inflation[kept])
