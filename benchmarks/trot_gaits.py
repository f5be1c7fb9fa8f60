"""Gaits of quadrupeds other than the suite's trot, for the laboratory: bound and crawl.

    log = run_trot(run, make_gait=lambda *a: PhasedGait(*a, **GAITS["bound"]))

The feet move up and down beneath the hips, each in its part of the period; no feedback.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from com_control.trot.leg_kinematics import LegKinematics
from com_control.trot.parameters import GaitParameters
from com_control.trot.trot import NO_FEEDBACK, TrotFeedback, TrotGait
from com_model import RobotConfig, RobotModel

GAITS: dict[str, dict[str, Any]] = {
    "bound": {"phases": (0.0, 0.0, 0.5, 0.5), "duty": 0.65, "period": 0.4},
    "crawl": {"phases": (0.0, 0.5, 0.75, 0.25), "duty": 0.8, "period": 1.6},
}


class PhasedGait:
    """Steps on the spot, leg by leg.

    Args:
        model: The robot.
        config: Its configuration.
        parameters: Of GaitParameters; start_delay and height count.
        phases: (4,) of the legs, fractions of the period by which they lift off late.
        duty: Fraction of the period in which a leg stands.
        period: s.
    """

    def __init__(
        self,
        model: RobotModel,
        config: RobotConfig,
        parameters: dict[str, Any],
        phases: Sequence[float],
        duty: float,
        period: float,
    ) -> None:
        trot = TrotGait(model, config, GaitParameters(**parameters))
        self._legs, self._start = trot.legs, trot.parameters.start_delay
        self._kinematics: list[LegKinematics] = trot.kinematics
        self._home, self._q = trot.home + trot.center, trot.posture.copy()
        self._lift = trot.parameters.step_height
        self._phases, self._duty, self._period = np.array(phases), duty, period

    def step(self, time: float, feedback: TrotFeedback = NO_FEEDBACK) -> Any:
        """Joint targets at a time; see com_control.trot.trot.GaitTarget."""
        position = self._solve(time)
        velocity = (self._solve(time + 5e-4) - self._solve(time - 5e-4)) / 1e-3
        stance = self._clearance(time) == 0.0
        return SimpleNamespace(position=position, velocity=velocity, stance=stance)

    def set_velocity(self, velocity: Sequence[float]) -> None:
        """It stays where it is."""

    def _clearance(self, time: float) -> NDArray[np.float64]:
        """(4,) m, of the feet above the ground."""
        swing = ((time - self._start) / self._period - self._phases) % 1.0
        swing /= 1.0 - self._duty
        up = self._lift * 0.5 * (1.0 - np.cos(2.0 * np.pi * np.minimum(swing, 1.0)))
        started = time - self._start > self._phases * self._period
        return np.where((swing < 1.0) & started, up, 0.0)

    def _solve(self, time: float) -> NDArray[np.float64]:
        """(n,) rad."""
        q = self._q.copy()
        for i, leg in enumerate(self._legs):
            foot = self._home[i] + [0.0, 0.0, self._clearance(time)[i]]
            q[leg.joints] = self._kinematics[i].solve(foot).q
        return q
