"""Which of many postures tell most: greedy choice and exchange, by one of two criteria.

What is known is the covariance P of the unknowns in prior deviations; a posture with whitened rows
A takes it to (P^-1 + A^T A)^-1. It is worth

  parameters   1/2 log det(1 + A P A^T): nats off the volume of the uncertainty (D-optimality)
  prediction   trace((1 + A P A^T)^-1 A P T P A^T): what it takes off the mean variance trace(P T)
               of the predicted CoM, T the mean of C^T C over postures (I-optimality)

both under the prior.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from com_identification.regression.regressors import Poses, Statics
from com_model.arrays import Array

Score = Callable[[Array, Array], Array]
"""Takes P (U, U) and the rows of m postures (m, R, U); returns what each is worth, (m,)."""


def nats(scatter: Array, rows: Array) -> Array:
    """Computes half of log det(1 + A P A^T), (m,)."""
    inner = np.eye(rows.shape[1]) + (rows @ scatter) @ rows.transpose(0, 2, 1)
    return np.asarray(np.linalg.slogdet(inner)[1] / 2.0)


def prediction_score(target: Array) -> Score:
    """Makes the score of the predicted CoM; target is T (U, U)."""

    def score(scatter: Array, rows: Array) -> Array:
        cross = rows @ scatter
        inner = np.eye(rows.shape[1]) + cross @ rows.transpose(0, 2, 1)
        drop = (cross @ target) @ cross.transpose(0, 2, 1)
        return np.asarray(np.trace(np.linalg.solve(inner, drop), axis1=1, axis2=2))

    return score


def prediction_rows(statics: Statics, poses: Poses, up: Array, parameters: Array) -> Array:
    """Computes the derivatives of the CoM across gravity, relative to the root, (N, 3, 4 B).

    With N theta the first moment about the root's origin and M the mass,
    dCoM = (1 - up up^T) (N - CoM 1^T) / M.

    Args:
        statics: Of the robot.
        poses: N configurations.
        up: (N, 3) against gravity, root axes.
        parameters: (4 B,) to linearise about.
    """
    columns, mass = statics.first_moment(poses), statics.mass()
    total = float(mass @ parameters)
    com = columns @ parameters / total
    slopes = (columns - com[..., None] * mass) / total
    return np.asarray(slopes - up[..., None] * (up[:, None] @ slopes))


def learn(scatter: Array, rows: Array) -> Array:
    """Computes the covariance after rows (R, U) of unit noise, (P^-1 + A^T A)^-1."""
    cross = scatter @ rows.T
    inner = np.eye(len(rows)) + rows @ cross
    scatter = scatter - cross @ np.linalg.solve(inner, cross.T)
    return np.asarray((scatter + scatter.T) / 2.0)


def choose(rows: Array, count: int, scatter: Array, score: Score) -> list[int]:
    """Chooses postures one after the other, each the most telling after those before it.

    Args:
        rows: (m, R, U) whitened rows of the postures.
        count: How many.
        scatter: P before.
        score: The criterion.
    """
    chosen: list[int] = []
    for _ in range(min(count, len(rows))):
        values = score(scatter, rows)
        values[chosen] = -np.inf
        chosen.append(int(np.argmax(values)))
        scatter = learn(scatter, rows[chosen[-1]])
    return chosen


def without(scatter: Array, rows: Array, place: int) -> Array:
    """Computes the covariance after all postures but one.

    Args:
        scatter: P before.
        rows: (k, R, U) of the postures.
        place: Which one is left out.
    """
    others = np.delete(rows, place, axis=0).reshape(-1, rows.shape[2])
    information = np.linalg.inv(scatter) + others.T @ others
    return np.asarray(np.linalg.inv((information + information.T) / 2.0))
