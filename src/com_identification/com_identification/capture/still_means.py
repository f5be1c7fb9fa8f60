"""Makes a posture of means of readings, and says why it would be none."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from com_identification.capture.capture_options import NS_PER_S, CaptureOptions
from com_identification.capture.still_run import Means
from com_identification.capture.stillness import Problem, frozen
from com_identification.exceptions import CaptureRefused, IdentificationError
from com_identification.regression.postures import Posture, make_posture
from com_model import Foot, RobotModel
from com_model.arrays import Array

_CONSTANT = 10  # readings that are the same make a sensor frozen
_UNLOADED = 0.2  # share of the weight: what an offset may be at most


class StillMeans:
    """Postures of means.

    Args:
        model: The robot.
        feet: Its feet.
        options: Least loads.
        weight: N, of the robot.
        use_effort: Whether postures hold efforts.
        use_up: Whether the last stream is the direction against gravity.
    """

    def __init__(
        self,
        model: RobotModel,
        feet: Sequence[Foot],
        options: CaptureOptions,
        weight: float,
        use_effort: bool,
        use_up: bool,
    ) -> None:
        self._model, self._feet, self._options = model, tuple(feet), options
        self._weight, self._use_effort, self._use_up = weight, use_effort, use_up
        self._tare = np.zeros((len(feet), 6))

    def set_tare(self, offsets: Array) -> None:
        """Sets what is taken off the wrenches, (f, 6) as read."""
        if not np.isfinite(offsets).all():
            raise IdentificationError("tare: expected finite offsets")
        self._tare = np.array(offsets)

    def load(self, foot: int, wrench: Array) -> float:
        """N, magnitude of a foot's force."""
        return float(np.linalg.norm(wrench[:3] - self._tare[foot, :3]))

    def posture(self, means: Means, label: str) -> Posture:
        """Makes the posture."""
        n, joints = self._model.n_joints, means.values[0]
        if joints is None:
            raise CaptureRefused(("joint_states said nothing: check its driver.",))
        wrenches = np.full((len(self._feet), 6), np.nan)
        for i, value in enumerate(means.values[1 : 1 + len(self._feet)]):
            if value is not None:
                wrenches[i] = value - self._tare[i]
        up = means.values[-1] if self._use_up else None
        return make_posture(
            self._model,
            joints[:n],
            wrenches,
            joints[n:] if self._use_effort else None,
            None if up is None else up / np.linalg.norm(up),
            samples=means.samples,
            label=label,
        )

    def problems(self, means: Means, contact: bool = True) -> list[Problem]:
        """Why it would be no posture: a frozen sensor, or feet that do not stand.

        Args:
            means: The means.
            contact: Whether feet must stand.
        """
        found = self._frozen(means)
        wrenches = means.values[1 : 1 + len(self._feet)]
        loads = [0.0 if w is None else self.load(i, w) for i, w in enumerate(wrenches)]
        if not contact or not self._feet or any(w is None for w in wrenches):
            return found
        if sum(loads) < self._options.least_load * self._weight:
            found.append(self._no_contact(sum(loads)))
        elif self._options.all_feet:
            found += self._in_air(loads)
        return found

    def unloaded(self, means: Means, foot: int) -> Array:
        """The offset (6,) of a foot that hangs in the air.

        Raises:
            CaptureRefused: It carries load, or its sensor is silent.
        """
        name = self._feet[foot].frame
        value = means.values[1 + foot]
        if value is None:
            raise CaptureRefused((f"The force sensor of {name} said nothing: check its driver.",))
        force = float(np.linalg.norm(value[:3]))
        if force > _UNLOADED * self._weight:
            raise CaptureRefused(
                (
                    f"{name} reads {force:.3g} N, more than {_UNLOADED:.0%} of the robot's weight: "
                    "lift the foot into the air to tare it.",
                )
            )
        return np.array(value)

    def _frozen(self, means: Means) -> list[Problem]:
        if not self._options.frozen_time > 0.0 or means.samples < _CONSTANT:
            return []
        names = [f"the force sensor of {foot.frame}" for foot in self._feet]
        names += ["the IMU"] if self._use_up else []
        time = (means.t1_ns - means.t0_ns) / NS_PER_S
        return [
            frozen(name, time)
            for name, value, constant in zip(
                names, means.values[1:], means.constant[1:], strict=True
            )
            if constant and value is not None and value.any()
        ]

    def _no_contact(self, load: float) -> Problem:
        return Problem(
            "no contact",
            f"The feet carry {load:.3g} N together, the robot weighs {self._weight:.4g} N: put it "
            "on its feet; if it stands on them, check the unit of the force sensors.",
        )

    def _in_air(self, loads: Sequence[float]) -> list[Problem]:
        least = self._options.foot_load * self._weight
        return [
            Problem(
                f"{foot.frame} has no contact",
                f"{foot.frame} carries {load:.3g} N, less than {least:.3g} N: put it on the "
                "ground, or allow postures on fewer feet (capture.all_feet: false).",
            )
            for foot, load in zip(self._feet, loads, strict=True)
            if load < least
        ]
