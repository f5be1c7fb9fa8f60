"""Which causes explain the sums of the windows: evidence of models, and averages over them.

A model is a set of constant causes and at most one cause that begins at an onset. With
information L = sum A^T R^-1 A, e = sum A^T R^-1 y and the diagonal prior covariance D of a model

    ln evidence = 1/2 e^T (L + D^-1)^-1 e - 1/2 ln|L + D^-1| - 1/2 ln|D| + causes ln PRIOR

All constant parameters are in every model, with the prior of their tolerance (spike) or of a
cause (slab). Parameters that begin at an onset are added by a Schur complement with the sums
since then. Changes that were named before stay in all models as blocks of their own.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from com_estimation.humanoid.layout import Culprit, Layout
from com_model.arrays import Array, Indices

PRIOR = 0.03  # prior probability of each cause


@dataclass(frozen=True, eq=False)
class Sums:
    """Normal equations of weighted least squares, summed over windows.

    Attributes:
        L: (n, n) information, sum of A^T R^-1 A.
        e: (n,) sum of A^T R^-1 y.
    """

    L: Array
    e: Array

    def minus(self, other: "Sums", factor: float) -> "Sums":
        """The part of the sums that was added after an earlier copy.

        Args:
            other: the earlier copy.
            factor: 0 to 1, by which its windows have been forgotten since.

        Returns:
            self - factor * other.
        """
        return Sums(self.L - factor * other.L, self.e - factor * other.e)


@dataclass(frozen=True, eq=False)
class Onset:
    """A time at which something may have begun, with the sums since then.

    Attributes:
        time: s; -inf: the start.
        since: sums of the windows after it.
    """

    time: float
    since: Sums


@dataclass(frozen=True, eq=False)
class Change:
    """A cause that begins at an onset.

    Attributes:
        culprit: index of the cause.
        onset: when it begins.
    """

    culprit: int
    onset: Onset


@dataclass(frozen=True, eq=False)
class Model:
    """A model with its posterior, over all n parameters as they are now.

    Attributes:
        weight: posterior probability of the model.
        guilty: indices of its causes.
        change: its cause that begins at an onset; None: it has none.
        theta: (n,) posterior mean.
        P: (n, n) posterior covariance.
    """

    weight: float
    guilty: tuple[int, ...]
    change: Change | None
    theta: Array
    P: Array


@dataclass(frozen=True, eq=False)
class Inference:
    """Posterior over the models, given all windows.

    Attributes:
        models: up to 12 models, the most probable first.
        free: the model in which all causes are present from the start; its weight is 0.
        probability: (culprits,) that each cause is present.
        onset: (culprits,) s, most probable onset of each; -inf: from the start.
        nothing: probability that no cause is present beyond the changes named before.
    """

    models: tuple[Model, ...]
    free: Model
    probability: Array
    onset: Array
    nothing: float = field(default=0.0)

    def average(self, rows: Array, culprit: int | None = None) -> tuple[Array, Array]:
        """Mean and covariance over the models, their spread included.

        Args:
            rows: (k, n) factors of the parameters.
            culprit: index of a cause: only models that contain it count; None: all of
                them.

        Returns:
            (k,) mean and (k, k) covariance of rows @ theta; NaN where no model counts.
        """
        chosen = [m for m in self.models if culprit is None or culprit in m.guilty]
        weights = np.array([m.weight for m in chosen])
        if not weights.sum() > 0.0:
            return np.full(len(rows), np.nan), np.full((len(rows), len(rows)), np.nan)
        weights /= weights.sum()
        means = np.array([rows @ m.theta for m in chosen])
        mean = weights @ means
        cov = np.einsum(
            "m,mij->ij", weights, np.array([rows @ m.P @ rows.T for m in chosen])
        )
        off = means - mean
        return mean, cov + np.einsum("m,mi,mj->ij", weights, off, off)


def infer(
    layout: Layout, total: Sums, onsets: Sequence[Onset], changes: Sequence[Change]
) -> Inference:
    """Compares all models, given the sums of all windows.

    Args:
        layout: parameters and possible causes of the robot.
        total: sums of all windows.
        onsets: when a cause may have begun, with the sums since then. The first one is the
            start, where only causes without a spike may begin.
        changes: what was named before.

    Returns:
        Probabilities of the causes, and the most probable models with their estimates.
    """
    culprits = layout.culprits
    constant = [i for i, c in enumerate(culprits) if c.constant]
    base = np.flatnonzero(layout.tolerance > 0.0)
    maps = [(base, Onset(-np.inf, total))]
    maps += [(culprits[c.culprit].columns, c.onset) for c in changes]
    L, e, _ = _assemble(maps)
    fixed = np.concatenate(
        [layout.tolerance[base], *(culprits[c.culprit].slab for c in changes)]
    )
    # constant causes in a model
    most = 3 if len(constant) <= 6 else 2
    subsets = [s for k in range(most + 1) for s in combinations(constant, k)]
    stds = np.tile(fixed, (len(subsets), 1))
    place = {int(column): i for i, column in enumerate(base)}
    places = {i: [place[int(c)] for c in culprits[i].columns] for i in constant}
    for row, subset in zip(stds, subsets, strict=True):
        for i in subset:
            row[places[i]] = culprits[i].slab
    candidates = [
        (i, o) for i, c in enumerate(culprits) for o in onsets[int(c.constant) :]
    ]
    crosses = [_cross(maps, onset, culprits[i].columns) for i, onset in candidates]

    # Parameters with the same prior in all models are eliminated first, for all models at once.
    own = np.array([at for i in constant for at in places[i]], dtype=np.int64)
    rest, g, std = np.setdiff1d(np.arange(len(e)), own), len(own), stds[:, own]
    X = np.hstack([L[:, own], e[:, None], *crosses])
    low = np.linalg.solve(L[np.ix_(rest, rest)] + np.diag(fixed[rest] ** -2.0), X[rest])
    high = X[own] - L[np.ix_(own, rest)] @ low
    precision, high = high[:, :g] + std[:, :, None] ** -2.0 * np.eye(g), high[:, g:]
    solved = np.linalg.inv(precision) @ high  # (s, g, 1 + columns of all candidates)
    score = 0.5 * solved[:, :, 0] @ high[:, 0] - 0.5 * np.linalg.slogdet(precision)[1]
    score += np.log(PRIOR) * np.array([len(s) for s in subsets]) - np.log(std).sum(
        axis=1
    )
    shares = (X[rest, g:], low[None, :, g:]), (high, solved)
    parts, at = [score[:, None]], 1
    for i, culprit in enumerate(culprits):
        begun, columns = [onset for j, onset in candidates if j == i], culprit.columns
        m, k = len(begun), len(columns)
        if not m:
            continue
        S = np.empty(
            (len(subsets), m, k, k + 1)
        )  # [S | r], gain 1/2 r^T S^-1 r - 1/2 ln|S|
        S[..., k] = [onset.since.e[columns] for onset in begun]
        S[..., :k] = [onset.since.L[columns[:, None], columns] for onset in begun]
        S[..., :k] += np.diag(culprit.slab**-2.0)
        for left, x in shares:
            T = left[:, at : at + m * k].reshape(-1, m, k).transpose(1, 2, 0)
            block = x[:, :, at : at + m * k].reshape(*x.shape[:2], m, k)
            S[..., :k] -= T @ block.transpose(0, 2, 1, 3)
            S[..., k:] -= T @ x[:, None, :, :1]
        gain = np.full(
            (len(subsets), m), np.log(PRIOR / m) - np.log(culprit.slab).sum()
        )
        for p in range(k):  # elimination by pivots, of all matrices at once
            pivot = S[..., p, p]
            gain += 0.5 * (S[..., p, k] ** 2 / pivot - np.log(pivot))
            S[..., p + 1 :, p:] -= (
                S[..., p + 1 :, p, None] / pivot[..., None, None]
            ) * S[..., p, None, p:]
        gain[
            [i in subset for subset in subsets]
        ] = -np.inf  # a cause that is there already cannot begin
        parts, at = [*parts, score[:, None] + gain], at + m * k
    scores = np.hstack(parts)
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
    for flat in np.argsort(weights, axis=None)[::-1][:12]:
        s, j = divmod(int(flat), weights.shape[1])
        if weights[s, j] < 1e-4 * weights.max():
            break
        new = Change(*candidates[j - 1]) if j else None
        models.append(
            _posterior(layout, float(weights[s, j]), subsets[s], (stds[s], maps), new)
        )
    return Inference(
        tuple(models), _free(layout, total), probability, onset_of, float(weights[0, 0])
    )


def _assemble(maps: Sequence[tuple[Indices, Onset]]) -> tuple[Array, Array, Indices]:
    """Information (m, m), e (m,) and columns (m,) of blocks of parameters, each with its onset."""
    e = np.concatenate([onset.since.e[own] for own, onset in maps])
    L = np.hstack([_cross(maps, onset, own) for own, onset in maps])
    return L, e, np.concatenate([own for own, _ in maps])


def _cross(
    maps: Sequence[tuple[Indices, Onset]], onset: Onset, columns: Indices
) -> Array:
    """Information between the blocks and columns that begin at an onset: since the later one."""
    later = [onset if onset.time >= other.time else other for _, other in maps]
    own = [block for block, _ in maps]
    return np.vstack(
        [o.since.L[b[:, None], columns] for o, b in zip(later, own, strict=True)]
    )


def _posterior(
    layout: Layout,
    weight: float,
    guilty: tuple[int, ...],
    prior: tuple[Array, Sequence[tuple[Indices, Onset]]],
    new: Change | None,
) -> Model:
    """Posterior of one model; blocks of the same parameters are added up."""
    std, maps = prior
    if new is not None:
        culprit: Culprit = layout.culprits[new.culprit]
        maps, std = [*maps, (culprit.columns, new.onset)], np.append(std, culprit.slab)
        guilty = (*guilty, new.culprit)
    L, e, columns = _assemble(maps)
    P = np.linalg.inv(L + np.diag(std**-2.0))
    theta, full = np.zeros(layout.count), np.zeros((layout.count, layout.count))
    np.add.at(theta, columns, P @ e)
    np.add.at(full, (columns[:, None], columns), P)
    return Model(weight, guilty, new, theta, full)


def _free(layout: Layout, total: Sums) -> Model:
    std = layout.tolerance.copy()
    for culprit in layout.culprits:
        std[culprit.columns] = culprit.slab
    P = np.asarray(np.linalg.inv(total.L + np.diag(std**-2.0)), dtype=np.float64)
    return Model(0.0, tuple(range(len(layout.culprits))), None, P @ total.e, P)
