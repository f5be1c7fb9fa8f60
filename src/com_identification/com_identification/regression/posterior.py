"""Maximum a posteriori in data space: bodies and errors of sensors under proper priors.

With whitened parameters of the bodies x (unit covariance) and all other errors as noise of known
structure, the rows of all postures are

  z = B x + e,   e ~ N(0, N),   N = sum_c l_c N_c + R

N_c is the covariance that the priors give error class c: E_c E_c^T of constant errors, that of a
random walk over the postures for drift, block-diagonal for what is new in each posture; R is the
readings' white noise. The size of N is the number of rows, whatever number of errors there are.
The scales l_c are adapted to the data (a step of expectation maximisation, shrunk to 1 and held
within 1/4 and 9), and postures that nothing explains get a larger R.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular
from scipy.optimize import nnls

from com_identification.exceptions import IdentificationError
from com_identification.regression.observations import Observation
from com_identification.regression.priors import BodyPriors
from com_identification.regression.sensor_errors import SensorErrors
from com_model.arrays import Array, Flags

NO_NOISE = "the noise of some readings is 0: give every sensor a standard deviation above 0"
_PASSES = 40  # of adaptation
_PSEUDO = 12.0  # unknowns that the prior scale of a class counts for
_SCALES = (1.0 / 4.0, 9.0)
_SETTLED = 0.01  # change of the logarithm of a scale
_MISFIT = 3.0  # squared residual per row above which a posture is touched from outside
_REWEIGHTINGS = 10
_STEADY = 0.1  # change of the logarithm of an inflation
_ABOVE = 3.0  # standard deviations of the mean square of all rows
_SEEN = 0.05  # fraction of an error's prior variance that the rows must take off it
_GROSS = 5.0  # standard deviations of a score, of several hundred errors
_FREED = (4.0, 16.0, 64.0, 256.0)  # variances that a freed class may have, over its prior's


class WhitenedParameters:
    """Parameters x of the bodies in prior standard deviations: x has unit covariance."""

    def __init__(self, priors: BodyPriors) -> None:
        self.priors = priors
        self.used = priors.used
        self.factor = priors.factor[:, self.used]
        self.count = int(self.used.sum())

    def values(self, x: Array) -> Array:
        """Returns masses and first moments (4 B,) of x."""
        return np.asarray(self.priors.parameters + self.factor @ x)


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of P postures, N in all."""

    z: Array  # (N,) residual plus what the present estimate explains
    bodies: Array  # (N, U) by x
    # by class, (N, k) columns of constant errors in prior standard deviations
    errors: Mapping[str, Array]
    drift: Array  # (N, 6 f) in standard deviations of a step; no columns without drift
    noise: Mapping[str, tuple[Array, ...]]  # by class, for each posture, (R, k) factors
    white: tuple[Array, ...]  # for each posture, (R, R) covariance
    starts: NDArray[np.int64]  # (P + 1,) first row of each posture, and N
    walk: Array  # (P,) place of each posture in time

    @classmethod
    def stack(
        cls,
        observations: Sequence[Observation],
        parameters: WhitenedParameters,
        errors: SensorErrors,
        x: Array,
        e: Array,
    ) -> "Rows":
        """Stacks observations that are linearised about x (U,) and e (S,)."""
        bodies = np.vstack([each.bodies @ parameters.factor for each in observations])
        columns = np.vstack([each.errors for each in observations])
        used = {kind: s for kind, s in errors.kinds.items() if (errors.stds[s] > 0.0).any()}
        residual = np.concatenate([each.residual for each in observations])
        drift = np.vstack([each.drift for each in observations])
        noise = {
            kind: tuple(each.noise[kind] for each in observations)
            for kind in (observations[0].noise if observations else ())
            if any(each.noise[kind].any() for each in observations)
        }
        return cls(
            z=residual + bodies @ x + columns @ e,
            bodies=bodies,
            errors={kind: columns[:, s] * errors.stds[s] for kind, s in used.items()},
            drift=drift if drift.any() else drift[:, :0],
            noise=noise,
            white=tuple(each.covariance for each in observations),
            starts=np.cumsum([0, *(len(each.residual) for each in observations)]),
            walk=np.arange(len(observations), dtype=float),
        )

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the error classes."""
        return (*self.errors, *self.noise, *(["drift"] if self.drift.size else []))

    @property
    def blocks(self) -> Iterator[slice]:
        """The rows of each posture."""
        return (slice(a, b) for a, b in zip(self.starts[:-1], self.starts[1:], strict=True))

    def noise_roots(self) -> Iterator[Array]:
        """Rows (R, U) by the bodies in each posture, whitened by the white noise alone."""
        for block, white in zip(self.blocks, self.white, strict=True):
            B = self.bodies[block]
            some = B.any(axis=1)
            yield whiten(B[some], white[np.ix_(some, some)])

    @cached_property
    def _drifted(self) -> Array:
        """(N, N) covariance of the drift."""
        steps = np.repeat(self.walk, np.diff(self.starts))
        return np.asarray(self.drift @ self.drift.T * np.minimum.outer(steps, steps))

    def fresh(self, scales: Mapping[str, float], inflation: Array) -> list[Array]:
        """Covariance of what is new in each posture, P of (R, R)."""
        return [
            v * (W + sum(scales[c] * F[p] @ F[p].T for c, F in self.noise.items()))
            for p, (W, v) in enumerate(zip(self.white, inflation, strict=True))
        ]

    def covariance(self, scales: Mapping[str, float], inflation: Array) -> Array:
        """N (N, N) without the bodies; scales and inflation as in Posterior."""
        total = np.zeros((len(self.z), len(self.z)))
        for c, E in self.errors.items():
            total += scales[c] * E @ E.T
        if self.drift.size:
            total += scales["drift"] * self._drifted
        for block, R in zip(self.blocks, self.fresh(scales, inflation), strict=True):
            total[block, block] += R
        return total

    def score(self, c: str, a: Array, S: Array, inflation: Array) -> tuple[float, float, int]:
        """Squares a^T N_c a and tr S N_c of a class with scale 1, and its number of unknowns."""
        if c == "drift":
            count = self.drift.shape[1] * (len(self.walk) - 1)
            squares = float(a @ self._drifted @ a), float(np.sum(S * self._drifted))
            return *squares, max(count, 1)
        if c in self.errors:
            E = self.errors[c]
            return float(np.sum((E.T @ a) ** 2)), float(np.sum(E * (S @ E))), E.shape[1]
        squared = trace = count = 0.0
        for v, block, F in zip(inflation, self.blocks, self.noise[c], strict=True):
            squared += v * float(np.sum((F.T @ a[block]) ** 2))
            trace += v * float(np.sum(F * (S[block, block] @ F)))
            count += F.shape[1]
        return squared, trace, max(int(count), 1)


@dataclass(frozen=True, eq=False)
class Posterior:
    """What the rows say of the bodies."""

    x: Array  # (U,) in prior standard deviations from the prior mean, without bounds
    covariance: Array  # (U, U) of x
    root: Array  # (N, U) rows of unit noise: covariance = (1 + root^T root)^-1
    a: Array  # (N,) (N + B B^T)^-1 z
    inverse: Array  # (N, N) (N + B B^T)^-1
    gain: Array  # (U, N) x = gain @ z
    scales: Mapping[str, float]  # variance of each class of errors over its prior's
    inflation: Array  # (P,) variance of what is new in each posture, over its prior's

    def errors(self, rows: Rows) -> tuple[Mapping[str, Array], Mapping[str, Array]]:
        """Constant errors and their standard deviations by class, in those of the prior."""
        values, stds = {}, {}
        for c, E in rows.errors.items():
            scale = self.scales[c]
            values[c] = scale * E.T @ self.a
            known = scale * np.sum(E * (self.inverse @ E), axis=0)
            stds[c] = np.sqrt(scale * np.clip(1.0 - known, 0.0, 1.0))
        return values, stds


def whiten(matrix: Array, covariance: Array) -> Array:
    """Divides rows (R, U) by the root of their covariance; no noise may be 0."""
    scale = np.sqrt(np.diag(covariance))
    if not (scale > 0.0).all():
        raise IdentificationError(NO_NOISE)
    try:
        L = cholesky(covariance / np.outer(scale, scale), lower=True)
    except np.linalg.LinAlgError as error:
        raise IdentificationError(NO_NOISE) from error
    return np.asarray(solve_triangular(L, matrix / scale[:, None], lower=True))


def condition(rows: Rows, scales: Mapping[str, float], inflation: Array) -> Posterior:
    """Computes the posterior with given scales; IdentificationError where some noise is 0."""
    total = rows.covariance(scales, inflation)
    count = rows.bodies.shape[1]
    whitened = whiten(np.hstack((rows.bodies, np.eye(len(total)))), total)
    root, inverse_root = whitened[:, :count], whitened[:, count:]
    information = np.eye(root.shape[1]) + root.T @ root
    factor = cho_factor(information)
    gain = np.asarray(cho_solve(factor, root.T @ inverse_root))
    # (N + B B^T)^-1 = N^-1 - N^-1 B (1 + B^T N^-1 B)^-1 B^T N^-1
    inverse = inverse_root.T @ inverse_root - (inverse_root.T @ root) @ gain
    covariance = np.linalg.inv(information)
    return Posterior(
        x=gain @ rows.z,
        covariance=(covariance + covariance.T) / 2.0,
        root=root,
        a=inverse @ rows.z,
        inverse=inverse,
        gain=gain,
        scales=dict(scales),
        inflation=inflation,
    )


def prior_posterior(rows: Rows) -> Posterior:
    """Computes the posterior with the scales of the priors."""
    return condition(rows, dict.fromkeys(rows.classes, 1.0), np.ones(len(rows.walk)))


def reweight(rows: Rows, found: Posterior) -> Posterior:
    """Inflates the noise of postures whose residuals nothing explains, until they fit to _MISFIT.

    Those that only seemed so beside another one come back.
    """
    for _ in range(_REWEIGHTINGS):
        wanted = found.inflation * posture_misfits(rows, found) / _MISFIT
        inflation = np.maximum(wanted, 1.0)
        if np.abs(np.log(inflation / found.inflation)).max(initial=0.0) < _STEADY:
            break
        found = condition(rows, found.scales, inflation)
    return found


def posture_misfits(rows: Rows, found: Posterior) -> Array:
    """Squared residuals over their covariance, per row, (P,): e^T (R S R)^-1 e = a^T S_pp^-1 a."""
    values = []
    for block in rows.blocks:
        S = found.inverse[block, block]
        values.append(found.a[block] @ np.linalg.solve(S, found.a[block]) / len(S))
    return np.array(values)


def adapt(rows: Rows, found: Posterior) -> Posterior:
    """Adapts the scales of the error classes to the data."""
    scales = dict(found.scales)
    B = rows.bodies @ rows.bodies.T
    for _ in range(_PASSES):
        total = rows.covariance(scales, found.inflation) + B
        S = np.linalg.inv(total)
        a, before = S @ rows.z, dict(scales)
        for c in scales:
            squared, trace, count = rows.score(c, a, S, found.inflation)
            scale = before[c] + before[c] ** 2 / count * (squared - trace)
            scale = (count * scale + _PSEUDO) / (count + _PSEUDO)
            scales[c] = float(np.clip(scale, *_SCALES))
        if all(abs(np.log(scales[c] / before[c])) < _SETTLED for c in scales):
            break
    return condition(rows, scales, found.inflation)


def consistency(rows: Rows, found: Posterior, used: Flags) -> tuple[float, float]:
    """Prior-predictive check: z^T (N + B B^T)^-1 z over its rows, and above what it is an alarm.

    found has the scales of the priors; used (P,) are the postures that are no outliers.
    """
    kept = np.repeat(used, np.diff(rows.starts))
    total = rows.covariance(found.scales, np.ones(len(used))) + rows.bodies @ rows.bodies.T
    z, count = rows.z[kept], int(kept.sum())
    if not count:
        return float("nan"), float("nan")
    value = float(z @ np.linalg.solve(total[np.ix_(kept, kept)], z)) / count
    return value, 1.0 + _ABOVE * float(np.sqrt(2.0 / count))


def tempering(rows: Rows, found: Posterior, target: Array) -> float:
    """Observed over expected variance of the postures' contributions to a prediction, 1 or more.

    target (K, U) is what is predicted, by x.
    """
    observed = expected = 0.0
    fresh = rows.fresh(found.scales, found.inflation)
    for block, R in zip(rows.blocks, fresh, strict=True):
        effect = target @ found.gain[:, block] @ R
        observed += float(np.sum((effect @ found.a[block]) ** 2))
        expected += float(np.sum((effect @ found.inverse[block, block]) * effect))
    return max(1.0, observed / expected) if expected > 0.0 else 1.0


def scale_noise(covariance: Array, factor: float) -> Array:
    """Returns the covariance (U, U) of x for a noise whose variance is larger by a factor.

    The information is C^-1 - 1 of the data and 1 of the prior: with C = V diag(c) V^T,

      (1 + (C^-1 - 1) / factor)^-1 = V diag(factor c / (1 - c + factor c)) V^T
    """
    values, vectors = np.linalg.eigh(covariance)
    values = np.clip(values, 0.0, 1.0)
    return np.asarray(vectors * (factor * values / (1.0 - values + factor * values)) @ vectors.T)


def bound(
    x: Array, covariance: Array, parameters: WhitenedParameters
) -> tuple[Array, tuple[int, ...]]:
    """Finds the most probable x within the physical limits, and the bodies at one.

    min |L (x - x0)|^2 with L^T L = C^-1 subject to G theta(x) <= g: with y = L (x - x0) a problem
    of least distance, which nonnegative least squares solves [Lawson and Hanson, ch. 23].
    """
    G, g, owner = parameters.priors.limits()
    slack = g - G @ parameters.values(x)
    columns = G @ parameters.factor
    free = np.abs(columns).max(axis=1, initial=0.0) > 0.0
    if (slack[free] >= 0.0).all():
        return x, ()
    root = cholesky(covariance, lower=True)  # C = root root^T, L = root^-1
    A, b = columns[free] @ root, slack[free]  # a y <= b
    scale = np.linalg.norm(A, axis=1)
    A, b = A / scale[:, None], b / scale
    u, _ = nnls(np.vstack((-A.T, -b)), np.append(np.zeros(len(x)), 1.0))
    residual = np.append(-A.T @ u, -b @ u) - np.append(np.zeros(len(x)), 1.0)
    y = -residual[:-1] / residual[-1]
    at = owner[free][u > 0.0]
    return x + root @ y, tuple(int(k) for k in dict.fromkeys(at))


def gross_error(rows: Rows, found: Posterior) -> tuple[str, float, int] | None:
    """Finds a constant error that is far larger than its prior allows; found has prior scales.

    The score e^T a / sqrt(e^T S e) of the column e of an error is standard normal under the priors,
    and (e^T a) / (e^T S e) is the error, in its prior's standard deviations, that explains it.
    Returns its class, that size, its place in the class; None where there is none.
    """
    most, result = _GROSS, None
    for c, E in rows.errors.items():
        information = np.maximum(np.sum(E * (found.inverse @ E), axis=0), 1e-12)
        pull = E.T @ found.a
        score = np.where(information > _SEEN, np.abs(pull) / np.sqrt(information), 0.0)
        i = int(np.argmax(score))
        if score[i] > most:
            most, result = float(score[i]), (c, float(abs(pull[i]) / information[i]), i)
    return result


def likeliest_cause(rows: Rows, found: Posterior) -> tuple[str, float]:
    """Finds which class of errors explains the readings best if its variance is freed.

    Compares -1/2 (z^T S z + log det S^-1) with the class's variance 4 to 256 times its prior's;
    returns the class, or "bodies", and by how much its standard deviation exceeds the prior's.
    """
    best, cause = -np.inf, ("", 1.0)
    for c in (*rows.classes, "bodies"):
        for factor in _FREED:
            total = rows.covariance({**found.scales, c: factor}, found.inflation)
            total += (factor if c == "bodies" else 1.0) * rows.bodies @ rows.bodies.T
            L = cho_factor(total, lower=True)
            gain = -0.5 * float(rows.z @ cho_solve(L, rows.z)) - float(np.log(np.diag(L[0])).sum())
            if gain > best:
                best, cause = gain, (c, float(np.sqrt(factor)))
    return cause


def held_out(rows: Rows, found: Posterior, folds: int) -> Iterator[tuple[int, Rows, Posterior]]:
    """Without each part of the postures in turn: its number, the other rows, their posterior."""
    for fold in range(folds):
        kept = np.arange(len(rows.walk)) % folds != fold
        part = select(rows, kept)
        yield fold, part, condition(part, found.scales, found.inflation[kept])


def select(rows: Rows, kept: Flags) -> Rows:
    """The rows of some postures."""
    mask = np.repeat(kept, np.diff(rows.starts))
    places = np.flatnonzero(kept)
    return replace(
        rows,
        z=rows.z[mask],
        bodies=rows.bodies[mask],
        errors={c: E[mask] for c, E in rows.errors.items()},
        drift=rows.drift[mask],
        noise={c: tuple(F[i] for i in places) for c, F in rows.noise.items()},
        white=tuple(rows.white[i] for i in places),
        starts=np.cumsum([0, *np.diff(rows.starts)[places]]),
        walk=rows.walk[kept],
    )
