"""By how much torques or an IMU come later than the positions of the joints of a walking robot."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from com_bags import WalkLog, spread_bursts
from com_identification.walking.log import ConditionedLog
from com_identification.walking.low_band import make_solver, prepare_walks
from com_model import RobotConfig, RobotModel
from com_model.arrays import Array


class Delays(NamedTuple):
    """By how much readings come after the joints' positions.

    Attributes:
        torques: s.
        imu: s.
    """

    torques: float
    imu: float

    def aligned(self, log: WalkLog) -> WalkLog:
        """Returns a recording whose readings are of the instants of the positions.

        Args:
            log: the recording.
        """

        def earlier(values: Array, delay: float) -> Array:
            if delay == 0.0:
                return values
            return _resampled(values, time, time + delay)

        time = spread_bursts(log.time)
        return replace(
            log,
            effort=earlier(log.effort, self.torques),
            angular_velocity=earlier(log.angular_velocity, self.imu),
            specific_force=earlier(log.specific_force, self.imu),
            up=None if log.up is None else earlier(log.up, self.imu),
        )

    def __str__(self) -> str:
        """In words; "" where there are none."""
        parts = (("torques", self.torques), ("readings of the IMU", self.imu))
        late = [(what, 1e3 * delay) for what, delay in parts if delay != 0.0]
        return "; ".join(
            f"{what} come {abs(ms):.0f} ms {'after' if ms > 0.0 else 'before'} the positions of "
            "the joints: they are shifted by that"
            for what, ms in late
        )


def find_delays(
    logs: Sequence[WalkLog], model: RobotModel, config: RobotConfig
) -> Delays:
    """Finds how late torques or the IMU are; 0 below 3 ms, which the estimates allow for.

    The base's equations up to 5 Hz show the torques' delay against the IMU, and those up to 20 Hz
    which of both is late against the joints.

    Args:
        logs: recordings of walking.
        model: as its URDF says.
        config: its feet, drives and the IMU's link.

    Raises:
        WalkError: the recordings cannot be used.
    """
    least = 0.003  # s, of the priors' 4 ms
    parts, ready = prepare_walks(logs, model, config)
    if not all(log.has_imu for log in parts):
        return Delays(0.0, 0.0)
    best, total = np.inf, Delays(0.0, 0.0)
    for kind in range(2):
        data, delay = ready.data, 0.0
        # the delay is linear in each pass
        for _ in range(8):
            solver, _ = make_solver(ready, data, True)
            if not any(each.used.any() for each in solver.rows):
                return total
            more = float(
                solver.solve(*solver.filtered(5.0)).y[len(solver.unknowns.mean)]
            )
            delay += more
            if abs(delay) < least or abs(more) < 0.1 * least:
                break
            data = [_shifted(each, kind, delay) for each in ready.data]
        if abs(delay) < least:
            return Delays(0.0, 0.0)
        X, blocks = solver.filtered(20.0)
        found = solver.solve(X, blocks, inertials=False)
        x, _ = solver.coefficients(found.y)
        error = float((((X @ x) / solver.size) ** 2).mean())
        if error < best:
            best, total = error, Delays(*((delay, 0.0) if not kind else (0.0, -delay)))
    return total


def _shifted(each: ConditionedLog, kind: int, delay: float) -> ConditionedLog:
    """A recording whose torques come earlier (kind 0), or whose IMU comes later (1), by s."""
    motion = each.motion
    time: Array = np.arange(len(motion.q), dtype=float) * each.period
    names = (("tau",), ("omega", "omega_dot", "force", "up"))[kind]
    at = time + delay if kind == 0 else time - delay
    changed = {name: _resampled(getattr(motion, name), time, at) for name in names}
    return replace(each, motion=motion._replace(**changed))


def _resampled(values: Array, time: Array, at: Array) -> Array:
    """Values (N, k) of some times (N,) at others, on straight lines."""
    return np.column_stack([np.interp(at, time, column) for column in values.T])
