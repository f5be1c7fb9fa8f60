"""A recording of a robot that moves, as arrays."""

from dataclasses import dataclass

import numpy as np
from scipy.signal import savgol_filter

from com_bags.exceptions import BagError
from com_model.arrays import Array

_FEW = 16  # samples


@dataclass(frozen=True, eq=False)
class WalkLog:
    """A recording, N samples of n joints; the readings are of the same instants.

    Attributes:
        time: (N,) s.
        position: (N, n) rad or m.
        velocity: (N, n); None: differences of the positions.
        effort: (N, n) N m or N; NaN where a joint reports none.
        angular_velocity: (N, 3) rad/s, IMU axes; NaN without an IMU.
        specific_force: (N, 3) m/s^2, IMU axes; NaN without an IMU.
        up: (N, 3) against gravity, root axes, by the IMU's filter; None: unknown.
    """

    time: Array
    position: Array
    velocity: Array | None
    effort: Array
    angular_velocity: Array
    specific_force: Array
    up: Array | None = None

    @property
    def has_imu(self) -> bool:
        """Whether there are readings of an IMU."""
        return not bool(np.isnan(self.angular_velocity).all())

    def between(self, since: float | None, until: float | None) -> "WalkLog":
        """Returns the part between two times.

        Args:
            since: s from the first sample; None: from there on.
            until: s from the first sample; None: up to the last.

        Raises:
            BagError: nothing is between them.
        """
        time = self.time - self.time[0]
        first, last = since or 0.0, np.inf if until is None else until
        part = (time >= first) & (time <= last)
        if not part.any():
            raise BagError(
                f"no joint state between {first:g} and {last:g} s: expected times up to"
                f" {time[-1]:.1f} s",
                "--from, --to",
            )
        columns = (None if v is None else v[part] for v in vars(self).values())
        return WalkLog(*columns)  # type: ignore[arg-type]


def even_times(time: Array) -> Array:
    """Times of a sender of constant rate, from times of receipt, which are late or bunched.

    With period T the k-th sample was sent at step k + m_k, m_k the samples lost before it:
      m_k = round(min over j >= k of (t_j - j T) / T)
    as what is lost never comes, and what is late is followed by samples that are less so.

    Args:
        time: (N,) s, rising, of one or more runs (a second or more apart).

    Returns:
        (N,) s.

    Raises:
        BagError: They are late by so much that they show no period.
    """
    return np.concatenate([_even(t) if len(t) > _FEW else t for t in _runs(time)])


def _runs(time: Array) -> list[Array]:
    """Runs of a recording: 1 s without a sample begins another one."""
    cuts = 1 + np.flatnonzero(np.diff(time) > 1.0)
    return np.split(np.asarray(time, dtype=np.float64), cuts)


def _even(t: Array) -> Array:
    """The same of one run."""
    period, lag = float(np.median(t[_FEW:] - t[:-_FEW])) / _FEW, 1
    while lag < len(t):
        apart = t[lag:] - t[:-lag]
        period = float(np.median(apart / np.maximum(1.0, np.rint(apart / period))))
        lag *= 2
    # mean phasor of times that have a period
    if abs(np.exp(2.0j * np.pi * (t - t[0]) / period).mean()) < 0.2:
        raise BagError(
            "the times of receipt are late by half a period or more, and show none: --time even "
            "cannot correct them. Record the sender's clock or index",
            "times",
        )
    steps = np.arange(len(t), dtype=np.float64)
    lost = np.minimum.accumulate((t - period * steps)[::-1])[::-1]
    steps += np.rint((lost - lost[0]) / period)
    return np.asarray(np.median(t - period * steps) + period * steps)


def in_bursts(time: Array) -> bool:
    """Returns whether stamps are those of receipt over a link that delivers samples in bursts.

    Args:
        time: (N,) s.
    """
    steps = np.concatenate([np.diff(run) for run in _runs(time)])
    # bursts: more than a tenth of the samples follow within a fifth of the mean spacing
    return bool((steps < 0.2 * steps.mean()).mean() > 0.1) if len(steps) else False


def spread_bursts(time: Array) -> Array:
    """Stamps with the mean spacing of some seconds where they come in bursts, else as they are.

    Args:
        time: (N,) s, rising: what was late was measured in time.
    """
    if not in_bursts(time):
        return time
    parts = []
    for run in _runs(time):
        # 1 s of samples spaced evenly, more than a burst (0.6 s)
        count = int(len(run) / max(run[-1] - run[0], 1e-9))
        width = min(count, len(run) - 1) // 2 * 2 + 1
        parts.append(savgol_filter(run, width, 1) if width > 1 else run)
    line = np.maximum.accumulate(np.concatenate(parts))
    return np.asarray(line + 1e-9 * np.arange(len(time)))
