"""What arrived on the topics of a run: samples matched by stamp, and their statistics."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from com_demos.live import WAITING, Rows, millimetres
from com_ros.conversions import NS_PER_S


@dataclass(frozen=True)
class Sample:
    """One message on `com`.

    Attributes:
        stamp_ns: of the joint positions that it was computed from.
        received_ns: when it arrived, on the clock that stamps are taken from.
        com: (x, y, z) m in the root link's frame; NaN where unknown.
        margin: m; NaN without feet.
    """

    stamp_ns: int
    received_ns: int
    com: tuple[float, float, float]
    margin: float


@dataclass(frozen=True)
class Series:
    """A run as arrays, one row per sample on `com`.

    Attributes:
        time: (t,) s since the first stamp.
        com: (t, 3) m.
        truth: (t, 3) m, of the same stamp; NaN where none arrived.
        margin: (t,) m.
        latency: (t,) s, receipt minus stamp.
    """

    time: np.ndarray
    com: np.ndarray
    truth: np.ndarray
    margin: np.ndarray
    latency: np.ndarray

    @property
    def error(self) -> np.ndarray:
        """Return the distances (t,) between com and truth, m."""
        return np.linalg.norm(self.com - self.truth, axis=1)

    @property
    def rate_hz(self) -> float:
        """Return the mean number of samples per second; NaN for fewer than two."""
        span = self.time[-1] - self.time[0] if len(self.time) > 1 else 0.0
        return (len(self.time) - 1) / span if span > 0 else math.nan

    def summary(self) -> dict[str, float | int | None]:
        """Return the figures of the run; None for those that are not known."""
        error, margin, latency = self.error, self.margin, self.latency
        figures = {
            "seconds": round(self.time[-1] - self.time[0], 3) if len(self.time) else 0.0,
            "messages": len(self.time),
            "rate_hz": round(self.rate_hz, 1),
            "p50_ms": round(1000 * _percentile(latency, 50), 3),
            "p99_ms": round(1000 * _percentile(latency, 99), 3),
            "com_error_mm": float(f"{1000 * _over(np.mean, error):.3g}"),
            "com_error_max_mm": float(f"{1000 * _over(np.max, error):.3g}"),
            "truths_matched": int(np.isfinite(error).sum()),
            "margin_min_mm": round(1000 * _over(np.min, margin), 2),
        }
        return {name: value if math.isfinite(value) else None for name, value in figures.items()}

    def rows(self) -> Rows:
        """Return what a view shows of the newest sample."""
        if not len(self.time):
            return [(WAITING, "for the first message on com")]
        p50, p99 = 1000 * np.percentile(self.latency, [50, 99])
        margin = 1000 * self.margin[-1]
        errors = self.error[np.isfinite(self.error)]
        return [
            ("CoM", millimetres(self.com[-1])),
            ("margin", f"{margin:.2f} mm" if math.isfinite(margin) else "no feet known"),
            ("rate", f"{self.rate_hz:.0f} Hz"),
            ("latency", f"{p50:.2f} ms, 99 %: {p99:.2f} ms"),
            ("error", f"{1000 * errors.max():.1e} mm" if len(errors) else "no truth yet"),
        ]


@dataclass
class Recording:
    """Collects samples of `com`, and the true CoM (x, y, z) m by its stamp, ns."""

    samples: list[Sample] = field(default_factory=list)
    truths: dict[int, tuple[float, float, float]] = field(default_factory=dict)

    def series(self, last: int = 0, until: float = math.inf) -> Series:
        """Return all samples, or only the last few, as arrays; until a time of the run, s."""
        end_ns = self.samples[0].stamp_ns + until * NS_PER_S if self.samples else 0
        samples = [sample for sample in self.samples[-last:] if sample.stamp_ns <= end_ns]
        unknown = (math.nan, math.nan, math.nan)
        truths = [self.truths.get(sample.stamp_ns, unknown) for sample in samples]
        stamps = np.array([sample.stamp_ns for sample in samples], dtype=np.int64)
        received = np.array([sample.received_ns for sample in samples], dtype=np.int64)
        first = self.samples[0].stamp_ns if samples else 0
        return Series(
            time=(stamps - first) / NS_PER_S,
            com=np.array([sample.com for sample in samples], dtype=float).reshape(-1, 3),
            truth=np.array(truths, dtype=float).reshape(-1, 3),
            margin=np.array([sample.margin for sample in samples], dtype=float),
            latency=(received - stamps) / NS_PER_S,
        )


def _over(function: Callable[[np.ndarray], float], values: np.ndarray) -> float:
    """Apply a function to the finite values; NaN if there is none."""
    finite = values[np.isfinite(values)]
    return float(function(finite)) if len(finite) else math.nan


def _percentile(values: np.ndarray, percent: float) -> float:
    return _over(lambda finite: float(np.percentile(finite, percent)), values)
