"""Which culprits explain the sums of the windows: evidence of models, and averages over them.

A model is a set of guilty constant culprits and none or one culprit that begins at an onset. With
information L = sum A^T R^-1 A, e = sum A^T R^-1 y and the diagonal prior covariance D of a model

    ln evidence = 1/2 e^T (L + D^-1)^-1 e - 1/2 ln|L + D^-1| - 1/2 ln|D| + culprits ln PRIOR

All constant parameters are in every model, within tolerance (spike) or guilty (slab). Parameters
that begin at an onset are added by a Schur complement with the sums since then. Changes that were
named before stay in all models as blocks of their own.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from com_estimation.humanoid.layout import Culprit, Layout
from com_model.arrays import Array, Indices

PRIOR = 0.03  # probability that a culprit is guilty, before any data
MOST = 3  # constant culprits at a time
KEPT = 12  # models that averages are made of


@dataclass(frozen=True, eq=False)
class Sums:
    """Information of windows."""

    L: Array  # (n, n)
    e: Array  # (n,)

    def minus(self, other: "Sums", factor: float) -> "Sums":
        """What has been added since other, which has been forgotten by a factor since."""
        return Sums(self.L - factor * other.L, self.e - factor * other.e)


@dataclass(frozen=True, eq=False)
class Onset:
    """A time at which something may have begun, with the sums since then."""

    time: float  # s; -inf: the start
    since: Sums


@dataclass(frozen=True, eq=False)
class Change:
    """A culprit that has begun at an onset."""

    culprit: int
    onset: Onset


@dataclass(frozen=True, eq=False)
class Model:
    """A model with its posterior, over all parameters as they are now (n)."""

    weight: float
    guilty: tuple[int, ...]  # culprits
    change: Change | None
    theta: Array  # (n,)
    P: Array  # (n, n)


@dataclass(frozen=True, eq=False)
class Inference:
    """What the windows say."""

    models: tuple[Model, ...]  # the most probable first
    free: Model  # all culprits guilty since the start
    probability: Array  # (culprits,)
    onset: Array  # (culprits,) s, the most probable; -inf: from the start
    nothing: float = field(default=0.0)  # probability that no culprit is guilty, beyond changes

    def average(self, rows: Array, culprit: int | None = None) -> tuple[Array, Array]:
        """Mean and covariance of rows (k, n) times the parameters, spread of models included.

        With a culprit only of the models in which it is guilty.
        """
        chosen = [m for m in self.models if culprit is None or culprit in m.guilty]
        weights = np.array([m.weight for m in chosen])
        if not weights.sum() > 0.0:
            return np.full(len(rows), np.nan), np.full((len(rows), len(rows)), np.nan)
        weights /= weights.sum()
        means = np.array([rows @ m.theta for m in chosen])
        mean = weights @ means
        cov = np.einsum("m,mij->ij", weights, np.array([rows @ m.P @ rows.T for m in chosen]))
        off = means - mean
        return mean, cov + np.einsum("m,mi,mj->ij", weights, off, off)


def infer(
    layout: Layout, total: Sums, onsets: Sequence[Onset], changes: Sequence[Change]
) -> Inference:
    """Compares all models by the sums of all windows; the changes were named before.

    A culprit may have begun at the onsets, of which the first one is the start, where only culprits
    without a spike may begin.
    """
    culprits = layout.culprits
    constant = [i for i, c in enumerate(culprits) if c.constant]
    base = np.flatnonzero(layout.tolerance > 0.0)
    maps = [(base, Onset(-np.inf, total))]
    maps += [(culprits[c.culprit].columns, c.onset) for c in changes]
    L, e, _ = _assemble(maps)
    fixed = np.concatenate([layout.tolerance[base], *(culprits[c.culprit].slab for c in changes)])
    most = MOST if len(constant) <= 6 else 2
    subsets = [s for k in range(most + 1) for s in combinations(constant, k)]
    stds = np.tile(fixed, (len(subsets), 1))
    place = {int(column): i for i, column in enumerate(base)}
    for row, subset in zip(stds, subsets, strict=True):
        for i in subset:
            row[[place[int(c)] for c in culprits[i].columns]] = culprits[i].slab
    precision = L + np.einsum("sn,nm->snm", stds**-2.0, np.eye(len(e)))
    inverse = np.linalg.inv(precision)
    theta = inverse @ e
    score = 0.5 * theta @ e - 0.5 * np.linalg.slogdet(precision)[1] - np.log(stds).sum(axis=1)
    score += np.log(PRIOR) * np.array([len(s) for s in subsets])

    candidates = [
        (i, onset)
        for i, c in enumerate(culprits)
        for k, onset in enumerate(onsets)
        if k > 0 or not c.constant
    ]
    scores = np.full((len(subsets), 1 + len(candidates)), -np.inf)
    scores[:, 0] = score
    if candidates:
        V = np.hstack([_cross(maps, onset, culprits[i].columns) for i, onset in candidates])
        solved, at = inverse @ V, 0  # (s, n, k)
        for j, (i, onset) in enumerate(candidates):
            own, k = culprits[i].columns, len(culprits[i].columns)
            block, at = slice(at, at + k), at + k
            S = onset.since.L[np.ix_(own, own)] + np.diag(culprits[i].slab ** -2.0)
            S = S - V[:, block].T @ solved[:, :, block]
            r = onset.since.e[own] - theta @ V[:, block]
            gain = 0.5 * np.einsum("sk,sk->s", r, np.linalg.solve(S, r[:, :, None])[:, :, 0])
            gain -= 0.5 * np.linalg.slogdet(S)[1] + np.log(culprits[i].slab).sum()
            times = len(onsets) - int(culprits[i].constant)
            scores[:, 1 + j] = score + gain + np.log(PRIOR / max(times, 1))
        for s, subset in enumerate(subsets):  # a culprit that was there cannot begin, too
            same = [1 + j for j, (i, _) in enumerate(candidates) if i in subset]
            scores[s, same] = -np.inf
    weights = np.exp(scores - scores.max())
    weights /= weights.sum()

    probability, best = np.zeros(len(culprits)), np.full(len(culprits), -np.inf)
    onset_of = np.full(len(culprits), -np.inf)
    for i in constant:
        rows = [s for s, subset in enumerate(subsets) if i in subset]
        probability[i], best[i] = weights[rows].sum(), weights[rows].sum()
    for j, (i, onset) in enumerate(candidates):
        w = weights[:, 1 + j].sum()
        probability[i] += w
        if w > best[i]:
            best[i], onset_of[i] = w, onset.time
    models = []
    for flat in np.argsort(weights, axis=None)[::-1][:KEPT]:
        s, j = divmod(int(flat), weights.shape[1])
        if weights[s, j] < 1e-4 * weights.max():
            break
        new = Change(*candidates[j - 1]) if j else None
        models.append(_posterior(layout, float(weights[s, j]), subsets[s], (stds[s], maps), new))
    return Inference(
        tuple(models), _free(layout, total), probability, onset_of, float(weights[0, 0])
    )


def _assemble(maps: Sequence[tuple[Indices, Onset]]) -> tuple[Array, Array, Indices]:
    """Information of blocks of columns, each with its onset."""
    e = np.concatenate([onset.since.e[own] for own, onset in maps])
    L = np.hstack([_cross(maps, onset, own) for own, onset in maps])
    return L, e, np.concatenate([own for own, _ in maps])


def _cross(maps: Sequence[tuple[Indices, Onset]], onset: Onset, columns: Indices) -> Array:
    """Information between the blocks and columns that begin at an onset: since the later one."""
    later = [onset if onset.time >= other.time else other for _, other in maps]
    own = [block for block, _ in maps]
    return np.vstack([o.since.L[np.ix_(b, columns)] for o, b in zip(later, own, strict=True)])


def _posterior(
    layout: Layout,
    weight: float,
    guilty: tuple[int, ...],
    prior: tuple[Array, Sequence[tuple[Indices, Onset]]],
    new: Change | None,
) -> Model:
    """Estimates of one model, blocks of the same parameters added up."""
    std, maps = prior
    if new is not None:
        culprit: Culprit = layout.culprits[new.culprit]
        maps, std = [*maps, (culprit.columns, new.onset)], np.append(std, culprit.slab)
        guilty = (*guilty, new.culprit)
    L, e, columns = _assemble(maps)
    P = np.linalg.inv(L + np.diag(std**-2.0))
    T = np.zeros((layout.count, len(columns)))
    T[columns, np.arange(len(columns))] = 1.0
    return Model(weight, guilty, new, T @ (P @ e), np.asarray(T @ P @ T.T, dtype=np.float64))


def _free(layout: Layout, total: Sums) -> Model:
    std = layout.tolerance.copy()
    for culprit in layout.culprits:
        std[culprit.columns] = culprit.slab
    P = np.asarray(np.linalg.inv(total.L + np.diag(std**-2.0)), dtype=np.float64)
    return Model(0.0, tuple(range(len(layout.culprits))), None, P @ total.e, P)
