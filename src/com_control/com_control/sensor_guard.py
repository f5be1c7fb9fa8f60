"""Which sensors of a walking or standing robot can be believed, tick by tick.

Feedback by a sensor that is wrong makes a robot fall that would have walked without. Each rule
below compares a sensor with what it cannot contradict: itself a moment ago, the weight, a joint's
greatest speed, an IMU's orientation with its gyroscope. No rule is for an IMU of which both drift:
on soft ground a sole turns as fast. A sensor that has failed is believed again once the robot
stands and it has agreed for a second.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntFlag

import numpy as np
from numpy.typing import ArrayLike, NDArray

from com_model import RobotModel
from com_model.arrays import Array
from com_model.contact import SWING_LOAD
from com_model.dynamics import GRAVITY


class Sensor(IntFlag):
    """Groups of sensors, as flags."""

    NONE = 0
    WRENCHES = 1
    IMU = 2
    ENCODERS = 4


UNKNOWN = np.full((3, 3), np.nan)
FAILURES = {
    Sensor.WRENCHES: "the feet's wrenches are missing, frozen, or do not carry the robot: check "
    "the sensors",
    Sensor.IMU: "the imu gives no orientation, a frozen one, or one that turns unlike its angular "
    "velocity: check its driver",
    Sensor.ENCODERS: "the legs' joint positions are frozen or jump: check the driver, "
    "or is the drive off?",
}
"""What is wrong with a sensor that has failed, and how to fix it."""


@dataclass(frozen=True)
class SensorLimits:
    """Limits of the rules.

    Attributes:
        frozen_time: s, for which no reading of a sensor of a moving robot is the same to the last
            bit: nine ticks of 5 ms, so that a tenth of the usual rate is noticed.
        load: lowest and highest fraction of the weight on both feet, of a robot that neither
            flies nor falls.
        impact: s.
        jump: rad, beyond what a joint moves at one and a half times its fastest, by which no
            encoder changes from one tick to the next.
        recovery: s, for which a sensor of a standing robot must agree until it is believed again.
    """

    frozen_time: float = 0.044
    load: tuple[float, float] = (0.65, 1.9)
    impact: float = 0.012
    jump: float = 0.03
    recovery: float = 1.0


class SensorGuard:
    """Rules for the sensors of one robot.

    Args:
        model: the robot.
        legs: indices of q of each foot's joints.
        options: limits.

    Attributes:
        failed: sensors that are not believed.
    """

    def __init__(
        self,
        model: RobotModel,
        legs: Sequence[NDArray[np.int64]],
        options: SensorLimits | None = None,
    ) -> None:
        self._options = options or SensorLimits()
        self._weight = model.mass * GRAVITY
        self._joints, self._feet = np.concatenate(legs), len(legs)
        limits = model.velocity_limits[self._joints]
        # rad/s, of the legs' joints, where the URDF gives more or nothing
        self._fastest = np.minimum(limits, 8.0)
        # each reading's sensor, and the joints that change it
        self._groups = [(Sensor.WRENCHES, self._joints) for _ in legs]
        self._groups += [
            (Sensor.IMU, self._joints)
        ] * 2  # orientation, angular velocity
        self._groups += [(Sensor.ENCODERS, leg) for leg in legs]
        self.failed = Sensor.NONE
        self._changes = np.zeros(len(self._groups))
        self._agrees = dict.fromkeys(FAILURES, self._options.recovery)
        self.restart()

    def restart(self) -> None:
        """Forgets readings, not failures: another walk begins."""
        self._last: list[Array] = []
        self._targets: list[Array] = []  # when each reading changed last
        self._same = np.zeros(len(self._groups))
        self._off_load = self._absurd = 0.0
        self._jumped = np.zeros(len(self._fastest), dtype=np.int64)
        self._unlike = np.zeros(3)  # rad, of the last gyro_time

    def update(
        self,
        R_world_root: ArrayLike | None,
        q: Array,
        wrenches: Array | None,
        target: Array,
        moves: bool,
        dt: float,
        angular_velocity: ArrayLike | None = None,
    ) -> Sensor:
        """Judges a measurement.

        Args:
            R_world_root: (3, 3) orientation of the root link by the IMU; NaN or None: unknown.
                Without angular_velocity another array that depends on it alone will do.
            q: (n,) rad or m.
            wrenches: (f, 6) N and N m, at the soles; NaN or None: unknown.
            target: (n,) rad or m, the last joint targets.
            moves: whether the plan moves the feet.
            dt: s, since the last measurement.
            angular_velocity: (3,) rad/s, of the root link by the IMU, in its axes; None or NaN:
                unknown.

        Returns:
            The sensors that are not believed.
        """
        R = np.asarray(UNKNOWN if R_world_root is None else R_world_root, dtype=float)
        W = np.full((self._feet, 6), np.nan) if wrenches is None else wrenches
        wrong = self._turns(R, angular_velocity, dt) | self._jumps(q, dt)
        wrong |= self._unlike_weight(W, moves, dt)
        omega = UNKNOWN[0] if angular_velocity is None else angular_velocity
        imu = R, np.asarray(omega, dtype=float)
        wrong |= self._frozen([*W, *imu], q, target, moves, dt)
        for sensor in FAILURES:
            # of a walking robot a sensor may be right for a step
            agrees = not sensor & wrong and not moves
            self._agrees[sensor] = self._agrees[sensor] + dt if agrees else 0.0
            if sensor & wrong:
                self.failed |= sensor
            elif self._agrees[sensor] >= self._options.recovery:
                self.failed &= ~sensor
        return self.failed

    @property
    def problem(self) -> str:
        """What is wrong with the sensors that have failed, and how to fix it; "" for none."""
        return "; ".join(text for each, text in FAILURES.items() if each & self.failed)

    def _frozen(
        self, readings: list[Array], q: Array, target: Array, moves: bool, dt: float
    ) -> Sensor:
        """Readings that are the same to the last bit, though the robot moves."""
        legs = [q[own] for sensor, own in self._groups if sensor is Sensor.ENCODERS]
        now = [*readings, *legs]
        before, self._last = self._last or now, [x.copy() for x in now]
        self._targets = self._targets or [target.copy() for _ in now]
        found, limits = Sensor.NONE, self._options
        for i, (sensor, own) in enumerate(self._groups):
            if not np.array_equal(now[i], before[i]):
                self._same[i], self._targets[i] = 0.0, target.copy()
                self._changes[i] += np.isfinite(now[i]).all()  # unknown: no change
                continue
            self._same[i] += dt
            change = np.abs(target[own] - self._targets[i][own]).max()
            expected = moves and sensor is not Sensor.ENCODERS
            # rad, that a leg's targets have changed in this time where readings should have
            expected |= bool(change > 0.004 or self.failed & sensor)
            if sensor is Sensor.WRENCHES:  # a foot in the air may read nothing
                expected &= abs(now[i][2]) > SWING_LOAD * self._weight
            # changes of a reading, before which it is no sensor that freezes but one that is
            # replaced by a constant, as drivers without hardware do
            expected &= bool(self._changes[i] >= 10)
            if expected and self._same[i] >= limits.frozen_time:
                found |= sensor
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
        # fractions of the weight: that a foot may seem to pull at the ground, by biases; that no
        # touch-down exceeds for longer than an impact
        absurd = loads.min() < -0.1 or loads.max() > 5.0
        self._absurd = self._absurd + dt if absurd else 0.0
        known = moves or self.failed or total > high  # others may be held by someone
        # s, times the square of the fraction beyond limits.load: a robot that hops from tile to
        # tile has less
        lasting = self._off_load > 0.018 and known
        wrong = self._absurd > limits.impact or lasting
        return Sensor.WRENCHES if wrong else Sensor.NONE

    def _turns(self, R: Array, omega: ArrayLike | None, dt: float) -> Sensor:
        """An orientation that turns unlike the angular velocity."""
        if omega is None or not self._last:
            return Sensor.NONE
        up, before = R[2], self._last[self._feet][2]
        turn = up - before + dt * np.cross(np.asarray(omega, dtype=float), up)
        if np.isfinite(turn).all():
            # s, over which turns add up
            share = min(dt / 0.2, 1.0)
            self._unlike = (1.0 - share) * self._unlike + turn
        # rad, by which the direction against gravity may turn more or less than by the angular
        # velocity meanwhile: noise, and the delay of one of them
        wrong = float(np.linalg.norm(self._unlike)) > 0.025
        return Sensor.IMU if wrong else Sensor.NONE

    def _jumps(self, q: Array, dt: float) -> Sensor:
        """Encoders that changed faster than their joints can, until they change back."""
        if self._last and dt > 0.0:
            step = q[self._joints] - np.concatenate(self._last[-self._feet :])
            jumped = np.abs(step) > 1.5 * self._fastest * dt + self._options.jump
            self._jumped += (jumped * np.sign(step)).astype(np.int64)
        return Sensor.ENCODERS if self._jumped.any() else Sensor.NONE
