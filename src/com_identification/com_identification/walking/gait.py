"""The steady gait of a recording: which samples repeat from stride to stride, and their phases.

Lying, rising, slipping, standing, starts and stops do not repeat, and are left out by that.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.ndimage import uniform_filter1d

from com_model.arrays import Array, Flags
from com_model.bodies import Indices

_STRIDE = 0.2, 1.6  # s, of one stride


class Gait(NamedTuple):
    """The strides of N samples.

    Attributes:
        steady: (N,) samples that repeat those one stride before or after.
        stride: (N,) number of the stride, counted through the recording.
        phase: (N,) 0 to 1 within the stride.
        chunk: (N,) number of the part with one stride time.
    """

    steady: Flags
    stride: Indices
    phase: Array
    chunk: Indices

    def every(self, chosen: slice) -> "Gait":
        """Returns the strides of some of the samples.

        Args:
            chosen: of the samples.
        """
        return Gait(
            self.steady[chosen],
            self.stride[chosen],
            self.phase[chosen],
            self.chunk[chosen],
        )

    def whole(self, usable: Flags) -> Indices:
        """Returns the numbers of the steady strides between steady ones that can be used.

        Args:
            usable: (N,) samples that can be used.
        """
        count = np.bincount(self.stride)
        good = np.bincount(self.stride, self.steady & usable)
        usual = np.median(count[count > 0])
        # 85 % of a stride's samples
        whole = np.flatnonzero(
            (np.bincount(self.stride, self.steady) > 0.85 * count)
            & (count > 0.9 * usual)
        )
        inner = whole[np.isin(whole - 1, whole) & np.isin(whole + 1, whole)]
        # three quarters of a stride's samples
        return inner[good[inner] > 0.75 * count[inner]]


def find_gait(q: Array, period: float) -> Gait:
    """Finds the strides of a recording.

    Args:
        q: (N, k) rad or m, joints of the legs.
        period: s, between samples.
    """
    # a stride of 2 s or more is no gait
    y = q - uniform_filter1d(q, max(1, round(2.0 / period)), axis=0)
    N = len(y)
    # pieces of 4 s have one stride time each
    edges = np.linspace(0, N, max(1, round(N * period / 4.0)) + 1).astype(int)
    steady, stride = np.zeros(N, dtype=np.bool_), np.zeros(N, dtype=np.int64)
    phase, chunk, since = np.zeros(N), np.zeros(N, dtype=np.int64), 0
    for number, (a, b) in enumerate(pairwise(edges)):
        time = stride_time(y[a:b], period)
        cycles = np.arange(b - a) * period / time
        chunk[a:b], phase[a:b] = number, cycles % 1.0
        stride[a:b] = since + np.floor(cycles)
        since = stride[b - 1] + 1
        lag = round(time / period)
        steady[a:b] = _repeats(y, a, b, lag)
    return Gait(steady, stride, phase, chunk)


def stride_time(y: Array, period: float) -> float:
    """Returns the shortest time, s, after which joints move as before; the longest if none.

    Args:
        y: (N, k) motion about the mean.
        period: s, between samples.
    """
    low, high = (round(limit / period) for limit in _STRIDE)
    lags = np.arange(low, max(low + 3, min(high, len(y) // 2)))
    squares = (y**2).sum(axis=1)
    found = np.zeros(len(lags))
    for i, lag in enumerate(lags):
        size = np.sqrt(squares[lag:].sum() * squares[: len(y) - lag].sum())
        found[i] = (y[lag:] * y[: len(y) - lag]).sum() / max(size, 1e-12)
    peaks = 1 + np.flatnonzero((found[1:-1] >= found[:-2]) & (found[1:-1] > found[2:]))
    if not len(peaks) or found[peaks].max() <= 0.0:
        return float(lags[-1] * period)
    # the first period whose correlation has 90 % of the best one
    best = int(peaks[np.argmax(found[peaks] > 0.9 * found[peaks].max())])
    a, b, c = found[best - 1 : best + 2]
    return float((lags[best] + 0.5 * (a - c) / (a - 2.0 * b + c)) * period)


def _repeats(y: Array, a: int, b: int, lag: int) -> Flags:
    """Whether samples a to b are as those a stride before or a stride after, over a stride."""
    result = np.zeros(b - a, dtype=np.bool_)
    size = uniform_filter1d((y**2).sum(axis=1), lag)
    # rad or m, rms of the joints
    large = size[a:b] > y.shape[1] * 0.02**2
    for shift in (lag, -lag):
        other = np.roll(y, shift, axis=0)
        product = uniform_filter1d((y * other).sum(axis=1), lag)
        alike = product / np.maximum(
            np.sqrt(np.maximum(size * np.roll(size, shift), 0.0)), 1e-12
        )
        inside = np.arange(a, b) - shift
        # steady: a correlation of 0.7 or more with the stride before
        result |= (alike[a:b] > 0.7) & (inside >= 0) & (inside < len(y))
    return result & large
