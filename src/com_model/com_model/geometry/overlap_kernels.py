"""Which convex hulls overlap, many pairs in many configurations (numba).

The distance of two hulls A and B is that of the origin to the hull of all a - b: the point of it
that is nearest to the origin is found by [Wolfe 1976], with at most four points at a time.
"""

import numpy as np
from numba import njit

from com_model.arrays import Array, Flags, Indices
from com_model.compiled import compiled
from com_model.geometry.support import HullArrays


@compiled()
def set_overlaps(
    hulls: HullArrays, pairs: Indices, R: Array, p: Array, margin: float, result: Flags
) -> None:
    """Sets which pairs of bodies are nearer to each other than a margin, in N configurations.

    Args:
        hulls: of the bodies.
        pairs: (K, 2) indices of hulls.
        R: (N, B, 3, 3) orientations of the bodies.
        p: (N, B, 3) m, their origins.
        margin: m.
        result: (N, K) set.
    """
    for n in range(R.shape[0]):
        for k in range(pairs.shape[0]):
            i, j = pairs[k, 0], pairs[k, 1]
            a, b = hulls.bodies[i], hulls.bodies[j]
            # B in the axes of A
            turn = R[n, a].T @ R[n, b]
            place = R[n, a].T @ (p[n, b] - p[n, a])
            least = hulls.radii[i] + hulls.radii[j] + margin
            apart = turn @ hulls.centers[j] + place - hulls.centers[i]
            reach = hulls.reaches[i] + hulls.reaches[j] + least
            result[n, k] = False
            if apart @ apart <= reach * reach:
                A = hulls.points[hulls.starts[i] : hulls.starts[i + 1]]
                B = hulls.points[hulls.starts[j] : hulls.starts[j + 1]] @ turn.T + place
                result[n, k] = distance(A, B, least) <= least


@njit
def distance(A: Array, B: Array, enough: float) -> float:
    """Distance of the hulls of points (k, 3) and (m, 3), m; 0: they overlap.

    Ends early with a distance that is too small where it is larger than `enough`.
    """
    points, weights = np.zeros((4, 3)), np.zeros(4)
    points[0], weights[0], count = A[0] - B[0], 1.0, 1
    x = points[0].copy()
    size = x @ x
    least_gain = 1e-12  # of the squared size: what a further point must bring
    for _ in range(100):
        new = A[np.argmin(A @ x)] - B[np.argmax(B @ x)]
        size = max(size, new @ new)
        square, bound = x @ x, x @ new
        if square <= least_gain * size:
            return 0.0
        if bound > 0.0 and bound > enough * np.sqrt(square):
            return bound / np.sqrt(square)
        if square - bound <= least_gain * size or count == 4:
            break
        points[count], weights[count] = new, 0.0
        count = nearest(points, weights, count + 1)
        x = weights[:count] @ points[:count]
    return np.sqrt(x @ x)


@njit
def nearest(points: Array, weights: Array, count: int) -> int:
    """Sets the weights of the point of a simplex nearest to the origin; points without are dropped.

    The first `count` of points (4, 3) are the simplex; those that stay come first, and their number
    is given. The weights (4,) are of a point in it, that of the last one is 0.
    """
    while True:
        gram = points[:count] @ points[:count].T + 1.0
        scale = np.trace(gram) * 1e-15
        for i in range(count):
            gram[i, i] += scale
        wanted = np.linalg.solve(gram, np.ones(count))
        wanted /= wanted.sum()
        step = 1.0
        for i in range(count):
            if wanted[i] <= 1e-12 and weights[i] > wanted[i]:
                step = min(step, weights[i] / (weights[i] - wanted[i]))
        kept = 0
        for i in range(count):
            weight = weights[i] + step * (wanted[i] - weights[i])
            if weight > 1e-12:
                points[kept], weights[kept] = points[i], weight
                kept += 1
        if step == 1.0 or kept == count or kept == 1:
            weights[:kept] /= weights[:kept].sum()
            return kept
        count = kept
