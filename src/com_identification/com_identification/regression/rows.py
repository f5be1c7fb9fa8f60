"""The linear equations of all postures, and the filter that whitens their noise."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular

from com_identification.exceptions import IdentificationError
from com_model.arrays import Array, Flags

NO_NOISE = (
    "the noise of some readings is 0: give every sensor a standard deviation above 0"
)


@dataclass(frozen=True, eq=False)
class StackedObservations:
    """The linear equations of P postures, N rows in all.

    Attributes:
        z: (N,) residual plus what the current estimate explains.
        bodies: (N, U) derivatives by x.
        errors: by class, (N, k) derivatives by constant errors in prior standard deviations.
        drift: (N, 6 f) in standard deviations of a step; no columns without drift.
        noise: by class, for each posture, (R, k) factors of the covariance.
        white: for each posture, (R, R) covariance of the readings' white noise.
        starts: (P + 1,) first row of each posture, and N.
        walk: (P,) place of each posture in time.
    """

    z: Array
    bodies: Array
    errors: Mapping[str, Array]
    drift: Array
    noise: Mapping[str, tuple[Array, ...]]
    white: tuple[Array, ...]
    starts: NDArray[np.int64]
    walk: Array

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the error classes."""
        return (*self.errors, *self.noise, *(["drift"] if self.drift.size else []))

    @property
    def blocks(self) -> Iterator[slice]:
        """The rows of each posture."""
        return (
            slice(a, b) for a, b in zip(self.starts[:-1], self.starts[1:], strict=True)
        )

    def by_white_noise(self) -> Array:
        """Returns the rows (<= N, U) of the bodies, whitened by the white noise alone."""
        whitened = []
        for block, white in zip(self.blocks, self.white, strict=True):
            some = self.bodies[block].any(axis=1)
            whitened.append(whiten(self.bodies[block][some], white[np.ix_(some, some)]))
        return np.vstack(whitened)

    @cached_property
    def columns(self) -> Array:
        """(N, S + U + 1) columns of constant errors, bodies, and z."""
        return np.column_stack((*self.errors.values(), self.bodies, self.z))

    def fresh(self, scales: Mapping[str, float], inflation: Array) -> list[Array]:
        """Returns the covariance of the noise that is new in each posture, P of (R, R).

        Args:
            scales: variance of each class of errors over its prior's.
            inflation: (P,) variance of what is new in each posture over its prior's.
        """
        return [
            v * (W + sum(scales[c] * F[p] @ F[p].T for c, F in self.noise.items()))
            for p, (W, v) in enumerate(zip(self.white, inflation, strict=True))
        ]


@dataclass(frozen=True, eq=False)
class FilteredObservations:
    """The rows whitened by their non-constant noise K = L L^T: drift and per-posture noise.

    Attributes:
        columns: (N, S + U + 1) L^-1 times the columns of StackedObservations.
        roots: for each posture, (R, R) whitening its innovation.
        gains: for each posture, (R, 6 f) gain of the drift's state, by the whitened innovation.
        log_det: log-determinant of K.
    """

    columns: Array
    roots: tuple[Array, ...]
    gains: tuple[Array, ...]
    log_det: float

    @classmethod
    def of(
        cls, rows: StackedObservations, scales: Mapping[str, float], inflation: Array
    ) -> "FilteredObservations":
        """Runs the Kalman filter of the drift over the postures.

        Args:
            rows: of P postures.
            scales: variance of each class of errors over its prior's.
            inflation: (P,) variance of what is new in each posture over its prior's.
        """
        states, width = rows.drift.shape[1], rows.columns.shape[1]
        d, P = np.zeros((states, width)), np.zeros((states, states))
        growth = scales.get("drift", 0.0) * np.diff(rows.walk, prepend=0.0)
        columns, roots, gains, log_det = np.empty_like(rows.columns), [], [], 0.0
        fresh = rows.fresh(scales, inflation)
        for block, R, step in zip(rows.blocks, fresh, growth, strict=True):
            D, P = rows.drift[block], P + step * np.eye(states)
            root = whiten(np.eye(len(R)), R + D @ P @ D.T)
            y, k = root @ (rows.columns[block] - D @ d), root @ D @ P
            d, P = d + k.T @ y, P - k.T @ k
            columns[block] = y
            roots.append(root)
            gains.append(k)
            log_det -= 2.0 * float(np.log(np.diag(root)).sum())
        return cls(columns, tuple(roots), tuple(gains), log_det)

    def back(
        self, rows: StackedObservations, whitened: Array
    ) -> tuple[Array, list[Array]]:
        """Returns L^-T times columns (N, k), and the postures' diagonal blocks (R, R) of K^-1.

        The disturbance smoother of de Jong (1989).

        Args:
            rows: those that were filtered.
            whitened: (N, k) columns.
        """
        states = rows.drift.shape[1]
        r, M = np.zeros((states, whitened.shape[1])), np.zeros((states, states))
        result, diagonal = np.empty_like(whitened), []
        each = list(zip(rows.blocks, self.roots, self.gains, strict=True))
        for block, root, k in reversed(each):
            D, gain = rows.drift[block], root.T @ k
            result[block] = root.T @ whitened[block] - gain @ r
            diagonal.append(root.T @ root + gain @ M @ gain.T)
            r = r + D.T @ result[block]
            A, Q = np.eye(states) - gain.T @ D, root @ D
            M = Q.T @ Q + A.T @ M @ A
        return result, diagonal[::-1]


def whiten(matrix: Array, covariance: Array) -> Array:
    """Divides rows (R, U) by the Cholesky factor of their covariance; no noise may be 0.

    Args:
        matrix: (R, U) rows.
        covariance: (R, R) of their noise.

    Raises:
        IdentificationError: some noise is 0.
    """
    scale = np.sqrt(np.diag(covariance))
    if not (scale > 0.0).all():
        raise IdentificationError(NO_NOISE)
    try:
        L = cholesky(covariance / np.outer(scale, scale), lower=True)
    except np.linalg.LinAlgError as error:
        raise IdentificationError(NO_NOISE) from error
    return np.asarray(solve_triangular(L, matrix / scale[:, None], lower=True))


def select(rows: StackedObservations, kept: Flags) -> StackedObservations:
    """Returns the rows of some postures.

    Args:
        rows: of P postures.
        kept: (P,) which postures.
    """
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
