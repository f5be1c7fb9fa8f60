"""Whether one slice of time shows a robot at rest, and what of it cannot be used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from com_identification.capture.capture_options import NS_PER_S, CaptureOptions
from com_identification.capture.slices import Slice
from com_identification.regression.postures import SensorNoise
from com_model import Foot, RobotModel
from com_model.arrays import Array

_NOISE = 10.0  # deviations: no spread of a hundred readings reaches that in years
_UNITS = ("N", "N", "N", "N m", "N m", "N m")

Slices = Sequence[Slice | None]
"""Of each stream in one slice of time: joints, feet, direction against gravity."""


@dataclass(frozen=True)
class Problem:
    """Why a slice of time is of no use.

    Attributes:
        cause: A few words, to count by.
        text: A sentence and how to fix it.
    """

    cause: str
    text: str


@dataclass(frozen=True, eq=False)
class Limits:
    """Of one stream, (C,): channels that are not looked at are inf.

    Attributes:
        travel: Spread of readings within a slice.
        drift: Spread of the means of slices, without noise.
        noise: Of one reading.
        channels: What they are called.
        units: Their units.
        cause: Cause of a problem.
        fix: Of it.
    """

    travel: Array
    drift: Array
    noise: Array
    channels: tuple[str, ...]
    units: tuple[str, ...]
    cause: str
    fix: str

    def spread(self, part: Slice) -> Problem | None:
        """Too much motion within a slice."""
        limit = self.travel + _NOISE * self.noise
        return self._problem(part.high - part.low, limit, "within a slice of time")

    def change(self, low: Array, high: Array, least: int) -> Problem | None:
        """Too much motion between the means of slices of at least so many readings."""
        limit = self.drift + _NOISE * self.noise / np.sqrt(least)
        return self._problem(high - low, limit, "since it seemed at rest")

    def _problem(self, spread: Array, limit: Array, when: str) -> Problem | None:
        if not len(spread):  # a robot without joints
            return None
        with np.errstate(invalid="ignore"):
            share = np.where(np.isfinite(limit), spread / limit, 0.0)
        worst = int(np.argmax(share))
        if share[worst] <= 1.0:
            return None
        unit = self.units[worst]
        return Problem(
            self.cause,
            f"{self.channels[worst]} changed by {spread[worst]:.3g} {unit} {when}, at most "
            f"{limit[worst]:.3g} {unit} may be: {self.fix}.",
        )


def limits(
    model: RobotModel,
    feet: Sequence[Foot],
    options: CaptureOptions,
    noise: SensorNoise,
    weight: float,
    use_up: bool,
) -> list[Limits]:
    """Makes the limits of all streams: joints, feet, and the direction against gravity if used.

    Args:
        model: The robot.
        feet: Its feet.
        options: Thresholds.
        noise: Of one reading.
        weight: N.
        use_up: Whether there is a direction against gravity.
    """
    n = model.n_joints
    open_end = np.full(n, np.inf)
    joints = Limits(
        np.append(np.full(n, options.joint_travel), open_end),
        np.append(np.full(n, options.joint_drift), open_end),
        np.append(np.full(n, noise.position), np.zeros(n)),
        (*model.joint_names, *(f"the effort of {name}" for name in model.joint_names)),
        ("rad or m",) * n + ("N m or N",) * n,
        "joints moved",
        "hold the robot still, or give noise.position the noise of the encoders",
    )
    result = [joints]
    axes = [f"{kind} {axis}" for kind in ("force", "moment") for axis in "xyz"]
    for foot in feet:
        result.append(
            Limits(
                weight * np.repeat([options.force_travel, options.pressure_travel], 3),
                weight * np.repeat([options.force_drift, options.pressure_drift], 3),
                np.repeat([noise.force, noise.moment], 3),
                tuple(f"{axis} of {foot.frame}" for axis in axes),
                _UNITS,
                "forces varied",
                "let nothing touch the robot, or give noise.force and noise.moment the noise of "
                "the sensor",
            )
        )
    if use_up:
        result.append(
            Limits(
                np.full(3, options.tilt_travel),
                np.full(3, options.tilt_drift),
                np.full(3, noise.tilt),
                tuple(f"the direction of gravity, {axis}," for axis in "xyz"),
                ("",) * 3,
                "tilt varied",
                "hold the robot still",
            )
        )
    return result


class Health:
    """Finds sensors that are saturated or frozen.

    Args:
        feet: The robot's feet.
        options: Limits and times.
        use_up: Whether there is an IMU.
    """

    def __init__(self, feet: Sequence[Foot], options: CaptureOptions, use_up: bool) -> None:
        self._options = options
        self._names = [f"the force sensor of {foot.frame}" for foot in feet]
        self._names += ["the IMU"] if use_up else []
        self._wrenches = len(feet)
        limit = np.repeat([options.force_limit, options.moment_limit], 3)
        self._limit = np.where(limit > 0.0, limit, np.inf)
        self.restart()

    def restart(self) -> None:
        """Forgets what was read."""
        self._constant: list[tuple[Array, int] | None] = [None] * len(self._names)

    def problems(self, sensors: Slices) -> list[Problem]:
        """What is wrong with the feet's sensors and the IMU in one slice of time."""
        found = []
        for i, part in enumerate(sensors):
            if part is None:
                self._constant[i] = None
                continue
            if i < self._wrenches:
                found += self._saturated(self._names[i], part)
            found += self._frozen(i, part)
        return found

    def _saturated(self, name: str, part: Slice) -> list[Problem]:
        most = np.maximum(part.high, -part.low)
        worst = int(np.argmax(most / self._limit))
        if most[worst] < self._limit[worst]:
            return []
        unit = _UNITS[worst]
        return [
            Problem(
                f"{name} saturated",
                f"{name} reads {most[worst]:.4g} {unit}, its limit is {self._limit[worst]:.4g} "
                f"{unit}: take load off it, or shift the weight.",
            )
        ]

    def _frozen(self, i: int, part: Slice) -> list[Problem]:
        constant, before = bool((part.low == part.high).all()), self._constant[i]
        if not constant or not part.low.any():  # drivers cut small loads off to zero
            self._constant[i] = None
            return []
        if before is None or not np.array_equal(before[0], part.low):
            self._constant[i] = before = (part.low, part.first_ns)
        time = (part.last_ns - before[1]) / NS_PER_S
        if not 0.0 < self._options.frozen_time <= time:
            return []
        return [frozen(self._names[i], time)]


def frozen(name: str, time: float) -> Problem:
    """Says that a sensor repeats itself."""
    return Problem(
        f"{name} frozen",
        f"{name} repeats itself bit for bit for {time:.2f} s: restart its driver; for a simulation "
        "without noise set capture.frozen_time to 0.",
    )
