"""Which sensors of a walking robot can be believed, tick by tick.

Feedback by a sensor that is wrong makes a robot fall that would have walked without. Each rule
below compares a sensor with what it cannot contradict: itself a moment ago, the weight, a joint's
greatest speed. No rule is for an IMU that drifts: on soft ground a sole turns as fast. A sensor
that has failed is believed again once the robot stands and it has agreed for a second.
"""

from dataclasses import dataclass
from enum import IntFlag

import numpy as np

from com_control.walking.biped import Biped
from com_model.arrays import Array
from com_model.contact import SWING_LOAD
from com_model.dynamics import GRAVITY


class Sensor(IntFlag):
    """Groups of sensors, as flags."""

    NONE = 0
    WRENCHES = 1
    IMU = 2
    ENCODERS = 4


@dataclass(frozen=True)
class SensorLimits:
    """Limits of the rules.

    Attributes:
        frozen_time: s, for which no reading of a sensor of a moving robot is the same to the last
            bit: nine ticks of 5 ms, so that a tenth of the usual rate is noticed.
        moved: rad, that a leg's targets have changed in this time where its encoders should have.
        load: lowest and highest fraction of the weight on both feet, of a robot that neither
            flies nor falls.
        load_budget: s, times the square of the fraction beyond these: a robot that hops from
            tile to tile has less.
        pull: fraction of the weight that a foot may seem to pull at the ground, by biases.
        most: fraction of the weight that no touch-down exceeds for longer than an impact.
        impact: s.
        fastest: rad/s, of the legs' joints, where the URDF gives more or nothing.
        jump: rad, beyond what a joint moves at one and a half times its fastest, by which no
            encoder changes from one tick to the next.
        recovery: s, for which a sensor of a standing robot must agree until it is believed again.
    """

    frozen_time: float = 0.044
    moved: float = 0.004
    load: tuple[float, float] = (0.65, 1.9)
    load_budget: float = 0.018
    pull: float = 0.1
    most: float = 5.0
    impact: float = 0.012
    fastest: float = 8.0
    jump: float = 0.03
    recovery: float = 1.0


class SensorGuard:
    """Rules for the sensors of one robot.

    Args:
        biped: the robot.
        options: limits.

    Attributes:
        failed: sensors that are not believed.
    """

    def __init__(self, biped: Biped, options: SensorLimits | None = None) -> None:
        self._options = options or SensorLimits()
        self._weight = biped.model.mass * GRAVITY
        self._legs = [np.asarray(leg.joints) for leg in biped.legs]
        limits = biped.model.velocity_limits[np.concatenate(self._legs)]
        self._fastest = np.minimum(limits, self._options.fastest)
        self.failed = Sensor.NONE
        self._agrees = dict.fromkeys(_EACH, self._options.recovery)
        self.restart()

    def restart(self) -> None:
        """Forgets readings, not failures: another walk begins."""
        self._last: list[Array] = []
        self._same = np.zeros(_GROUPS)
        self._off_load = self._absurd = 0.0
        self._jumped = np.zeros(len(self._fastest), dtype=np.int64)
        self._target: Array | None = None

    def update(
        self,
        R_world_root: Array,
        q: Array,
        wrenches: Array,
        target: Array,
        moves: bool,
        dt: float,
    ) -> Sensor:
        """Judges a measurement.

        Args:
            R_world_root: (3, 3) orientation of the root link by the IMU; NaN: unknown.
            q: (n,) rad or m.
            wrenches: (2, 6) N and N m, at the soles; NaN: unknown.
            target: (n,) rad or m, the last joint targets.
            moves: whether the plan moves the feet.
            dt: s, since the last measurement.

        Returns:
            The sensors that are not believed.
        """
        wrong = self._jumps(q, dt) | self._unlike_weight(wrenches, moves, dt)
        wrong |= self._frozen(R_world_root, q, wrenches, target, moves, dt)
        for sensor in _EACH:
            # of a walking robot a sensor may be right for a step
            agrees = not sensor & wrong and not moves
            self._agrees[sensor] = self._agrees[sensor] + dt if agrees else 0.0
            if sensor & wrong:
                self.failed |= sensor
            elif self._agrees[sensor] >= self._options.recovery:
                self.failed &= ~sensor
        return self.failed

    def _frozen(
        self, R: Array, q: Array, wrenches: Array, target: Array, moves: bool, dt: float
    ) -> Sensor:
        """Readings that are the same to the last bit, though the robot moves."""
        now = [wrenches[0], wrenches[1], R[:2], *(q[own] for own in self._legs)]
        if not self._last:
            self._last, self._target = [x.copy() for x in now], target.copy()
            return Sensor.NONE
        found = Sensor.NONE
        for i, (new, old) in enumerate(zip(now, self._last, strict=True)):
            self._same[i] = self._same[i] + dt if np.array_equal(new, old) else 0.0
            if not self._same[i] or self._same[i] < self._options.frozen_time:
                continue
            sensor = _OF_GROUP[i]
            expected = bool(moves or self.failed & sensor)
            if i < 2:  # a foot in the air may read nothing
                expected = expected and abs(new[2]) > SWING_LOAD * self._weight
            elif i > 2 and self._target is not None:
                own = self._legs[i - 3]
                change = np.abs(target[own] - self._target[own]).max()
                expected = bool(change > self._options.moved or self.failed & sensor)
            found |= sensor if expected else Sensor.NONE
        for i in range(3, _GROUPS):
            if self._same[i] == 0.0 and self._target is not None:
                self._target[self._legs[i - 3]] = target[self._legs[i - 3]]
        self._last = [x.copy() for x in now]
        return found

    def _unlike_weight(self, wrenches: Array, moves: bool, dt: float) -> Sensor:
        """Forces that do not carry the robot, or a foot that pulls at the ground."""
        loads, limits = wrenches[:, 2] / self._weight, self._options
        if not np.isfinite(loads).all():
            return Sensor.NONE
        low, high = limits.load
        total = float(loads.sum())
        beyond = max(low - total, total - high, 0.0)
        change = beyond**2 if beyond else -0.05
        self._off_load = max(0.0, self._off_load + dt * change)
        absurd = loads.min() < -limits.pull or loads.max() > limits.most
        self._absurd = self._absurd + dt if absurd else 0.0
        lasting = self._off_load > limits.load_budget and (moves or self.failed)
        wrong = self._absurd > limits.impact or lasting
        return Sensor.WRENCHES if wrong else Sensor.NONE

    def _jumps(self, q: Array, dt: float) -> Sensor:
        """Encoders that changed faster than their joints can, until they change back."""
        if self._last and dt > 0.0:
            before = np.concatenate(self._last[3:])
            step = q[np.concatenate(self._legs)] - before
            jumped = np.abs(step) > 1.5 * self._fastest * dt + self._options.jump
            self._jumped += (jumped * np.sign(step)).astype(np.int64)
        return Sensor.ENCODERS if self._jumped.any() else Sensor.NONE


_EACH = (Sensor.WRENCHES, Sensor.IMU, Sensor.ENCODERS)
_OF_GROUP = (
    Sensor.WRENCHES,
    Sensor.WRENCHES,
    Sensor.IMU,
    Sensor.ENCODERS,
    Sensor.ENCODERS,
)
_GROUPS = len(_OF_GROUP)
