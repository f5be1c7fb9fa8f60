"""A trot as arrays: estimates of the trunk with their truths, tilt, the gait's shift."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from com_demos.live import WAITING, Rows, millimetres, with_reason
from com_model.arrays import Array, Flags, Indices
from com_model.status import TRUSTED, Status
from com_ros.conversions import NS_PER_S

NEVER = math.nan
UNKNOWN = np.full(4, np.nan)
# estimates from sound input
KNOWN = Status.ESTIMATING, Status.USABLE, Status.CONVERGED
SIGMAS = 3.0
HOLD = 0.5  # s, for which an error must stay small to count as reached
LAST = 2.0  # s at the end, over which the final errors are averaged, or since a load was noticed


@dataclass(frozen=True, eq=False)
class TrunkSeries:
    """A trot as arrays; times in s since the robot began to trot."""

    time: Array  # (t,) of the estimates
    status: Indices  # (t,) TrunkCom.STATUS_*
    values: Array  # (t, 4) CoM x, y, z, m, and mass, kg
    std: Array  # (t, 4) their standard deviations
    truth: Array  # (t, 4) the same, true; NaN where none arrived
    tilt_time: Array  # (k,) of the tilt
    tilt: Array  # (k, 2) roll and pitch, rad
    gait_time: Array  # (g,) of the shift
    shift: Array  # (g, 2) m, by which the gait moves the feet for the CoM
    saturated: Flags  # (g,) the shift is at its bound
    loaded_at: float = NEVER  # when the true mass changed; NaN: never
    noticed_at: float = NEVER  # when the estimator first noticed it; NaN: never

    @property
    def error(self) -> Array:
        """Return estimate minus truth (t, 4)."""
        return self.values - self.truth

    @property
    def usable(self) -> Flags:
        """Return when (t,) the status was USABLE or CONVERGED."""
        return np.asarray(np.isin(self.status, list(TRUSTED)))

    @property
    def distance(self) -> Array:
        """Return lengths (t,) of the errors of x and y, m."""
        return np.asarray(np.linalg.norm(self.error[:, :2], axis=1))

    def reached(self, limit: float, since: float) -> float:
        """Return the s since a time after which x and y are within a limit (m) for HOLD."""
        later = (self.time >= since) & np.isfinite(self.distance)
        begin = NEVER
        for time, within in zip(
            self.time[later], self.distance[later] < limit, strict=True
        ):
            if not within:
                begin = NEVER
            elif math.isnan(begin):
                begin = time
            elif time - begin >= HOLD:
                return float(begin - since)
        return NEVER

    def rows(self, status: str, reason: str, lift: float) -> Rows:
        """Return what a view shows of the newest samples.

        The reason is why the status is not better; lift, N, the vertical force on all feet, root
        axes.
        """
        if not len(self.time):
            return [(WAITING, "for the first message on trunk_com")]
        errors = self.error[np.isfinite(self.distance)]
        roll, pitch = (
            np.degrees(self.tilt[-1]) if len(self.tilt) else (math.nan, math.nan)
        )
        return [
            ("trunk CoM", millimetres(self.values[-1, :3])),
            ("3 sigma", millimetres(SIGMAS * self.std[-1, :3])),
            ("error", millimetres(errors[-1, :3]) if len(errors) else "no truth yet"),
            (
                "mass",
                f"{self.values[-1, 3]:.2f} kg, 3 sigma {SIGMAS * self.std[-1, 3]:.2f} kg",
            ),
            ("on the feet", f"{lift:.0f} N"),
            ("tilt", f"roll {roll:.2f} pitch {pitch:.2f} degrees"),
            ("payload", "on" if self.loaded_at > 0.0 else "not yet"),
            ("status", with_reason(status, reason)),
        ]

    def summary(self) -> dict[str, float | int | None]:
        """Return the figures of the run; None for those that are not known."""
        end = float(self.time[-1]) if len(self.time) else 0.0
        settled = self.time >= np.nanmax([end - LAST, self.noticed_at])
        inside = np.abs(self.error[:, :3]) <= SIGMAS * self.std[:, :3]
        finite = np.isfinite(self.error).all(axis=1)
        usable = finite & self.usable
        first = self.time[usable][0] if usable.any() else NEVER
        last = settled & finite & np.isin(self.status, KNOWN)
        error, std = np.abs(self.error[last]), self.std[last]
        shown = self.tilt[(self.tilt_time >= end - LAST) & (self.tilt_time < end)]
        roll, pitch = (np.degrees(np.sqrt(_mean(tilt**2))) for tilt in shown.T)
        figures: dict[str, float] = {
            "seconds": end,
            "messages": len(self.time),
            "truths_matched": int(np.isfinite(self.distance).sum()),
            "usable_at_s": first,
            "error_x_mm": 1000.0 * _mean(error[:, 0]),
            "error_y_mm": 1000.0 * _mean(error[:, 1]),
            "error_z_mm": 1000.0 * _mean(error[:, 2]),
            "error_mass_kg": _mean(error[:, 3]),
            "sigma_x_mm": 1000.0 * _mean(std[:, 0]),
            "sigma_y_mm": 1000.0 * _mean(std[:, 1]),
            "sigma_z_mm": 1000.0 * _mean(std[:, 2]),
            "sigma_mass_kg": _mean(std[:, 3]),
            "nees_xy": 2.0 * _mean((error[:, :2] / std[:, :2]) ** 2),
            "within_3_sigma": _mean(np.asarray(inside[usable].all(axis=1))),
            "payload_at_s": self.loaded_at,
            "payload_noticed_after_s": self.noticed_at - self.loaded_at,
            "payload_to_5mm_s": self.reached(0.005, self.loaded_at),
            "payload_to_2mm_s": self.reached(0.002, self.loaded_at),
            "roll_rms_deg": float(roll),
            "pitch_rms_deg": float(pitch),
            "shift_saturated": _mean(self.saturated),
        }
        return {
            k: round(v, 4) if math.isfinite(v) else None for k, v in figures.items()
        }


class TrunkRecording:
    """Collects estimates, truths, tilt and gait, in the order in which they arrive."""

    def __init__(self) -> None:
        # stamp, ns; when a change of the payload was noticed, ns, 0: never; TrunkCom.STATUS_*;
        # x, y, z in the root link's frame, m, and mass, kg; their standard deviations
        self.samples: list[tuple[int, int, int, tuple[float, ...]]] = []
        self.tilts: list[
            tuple[int, float, float]
        ] = []  # stamp, ns; roll and pitch, rad
        # stamp, ns; shift of the feet, x and y, m; whether that is at its bound
        self.gaits: list[tuple[int, float, float, bool]] = []
        self.began_ns = 0  # stamp of the first step; 0: not yet
        self._truths: dict[int, Array] = {}
        self._mass, self._loaded_ns = math.nan, 0

    def add_truth(self, stamp_ns: int, values: Array) -> None:
        """Add a truth (4,): x, y, z, m, and mass, kg."""
        if abs(values[3] - self._mass) > 1e-9:
            self._loaded_ns = stamp_ns
        self._mass, self._truths[stamp_ns] = values[3], values

    def elapsed(self) -> float:
        """Return the s that the robot has been trotting with an estimate of its trunk."""
        first = next(
            (stamp_ns for stamp_ns, _, status, _ in self.samples if status), None
        )
        if first is None or not self.began_ns:
            return 0.0
        return (self.samples[-1][0] - max(first, self.began_ns)) / NS_PER_S

    def series(self, last: int = 0, until: float = math.inf) -> TrunkSeries:
        """Return all estimates, or only the last few, as arrays; until a time of the trot, s."""
        zero = self.began_ns or (self.samples[0][0] if self.samples else 0)
        end_ns, loaded_ns = zero + until * NS_PER_S, self._loaded_ns

        def recent(rows: list[Any]) -> list[Any]:
            return [row for row in rows if row[0] <= end_ns][-last:]

        samples, tilts, gaits = (
            recent(self.samples),
            recent(self.tilts),
            recent(self.gaits),
        )
        changes = {row[1] for row in self.samples if row[1]}
        noticed_ns = min((stamp for stamp in changes if stamp >= loaded_ns), default=0)

        def since(rows: list[Any]) -> Array:
            return (
                np.array([row[0] - zero for row in rows], dtype=np.float64) / NS_PER_S
            )

        values = np.array([row[3] for row in samples], dtype=np.float64).reshape(-1, 8)
        gait = np.array([row[1:] for row in gaits], dtype=np.float64).reshape(-1, 3)
        return TrunkSeries(
            time=since(samples),
            status=np.array([row[2] for row in samples], dtype=np.int64),
            values=values[:, :4],
            std=values[:, 4:],
            truth=np.array(
                [self._truths.get(row[0], UNKNOWN) for row in samples]
            ).reshape(-1, 4),
            tilt_time=since(tilts),
            tilt=np.array([row[1:] for row in tilts], dtype=np.float64).reshape(-1, 2),
            gait_time=since(gaits),
            shift=gait[:, :2],
            saturated=gait[:, 2] > 0.0,
            loaded_at=(loaded_ns - zero) / NS_PER_S if loaded_ns else NEVER,
            noticed_at=(noticed_ns - zero) / NS_PER_S
            if noticed_ns and loaded_ns
            else NEVER,
        )


def _mean(values: NDArray) -> float:
    return float(np.mean(values)) if len(values) else math.nan
