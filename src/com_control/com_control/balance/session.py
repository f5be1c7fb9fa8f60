"""Session of a balancing robot: waits until it stands, balances, holds on faults, detects falls."""

from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from com_control.balance.balancer import STILL, Balancer, BalanceStep
from com_control.balance.options import BalanceOptions, StandingLimits
from com_control.balance.soles import Soles, balance_frame, mean_normal
from com_control.command_guard import CommandGuard, GuardOptions, ReadingTimes
from com_control.exceptions import BalanceError
from com_control.sensor_guard import Sensor, SensorGuard, SensorLimits
from com_model import Foot, RobotConfig, RobotModel
from com_model.arrays import Array
from com_model.dynamics import GRAVITY


class BalancePhase(IntEnum):
    """State of a session; values of com_msgs/BalanceState.

    Attributes:
        UNKNOWN: inputs are missing or implausible.
        STANDING: the robot stands; no commands are sent.
        BALANCING: the CoM is controlled.
        HOLDING: the joints are held, see the reason.
        FALLEN: it fell while balancing; no commands until start().
        WAITING: it does not stand yet.
    """

    UNKNOWN = 0
    STANDING = 1
    BALANCING = 2
    HOLDING = 3
    FALLEN = 4
    WAITING = 5


@dataclass(frozen=True, eq=False)
class BalanceReading:
    """Measurements at one time.

    Attributes:
        time: s.
        position: (n,) rad or m.
        up: (3,) unit vector against gravity, root axes; None: there is no IMU, the ground counts
            as horizontal.
        loads: (f,) N normal to each sole of the configuration's feet; None: unknown.
        commanded: (n,) rad or m, last commands of the drives; None: unknown.
        missing: input that is not received and how to fix it; "" when all are.
    """

    time: float
    position: Array
    up: Array | None = None
    loads: Array | None = None
    commanded: Array | None = None
    missing: str = ""


@dataclass(frozen=True, eq=False)
class BalanceCommand:
    """Joint commands of one step.

    Attributes:
        position: (n,) rad or m.
        velocity: (n,) rad/s or m/s.
        step: of the control; None while the session holds.
    """

    position: Array
    velocity: Array
    step: BalanceStep | None = None


class BalanceSession:
    """Balances on request, holds the joints on faults, and reports why.

    It waits for a robot that does not stand yet. One that falls while it is balanced stays
    FALLEN until start() is called; one that the guard stops stays HOLDING until then.

    Args:
        model: the robot.
        config: its configuration; feet without a flat sole are left out.
        options: gains and bounds of the balancer.
        limits: of load and tilt while standing.
        guard: limits of commands and following errors.
        horizon: s, from a reading to the time its commands are due.

    Attributes:
        guard: checks all commands.
        model: as given.
        options: as given; see set_options.
        state: of the session.
        reason: why it holds, or does not begin; "" when all is well.
        desired: (3,) m, desired CoM in the balance frame; None: where it stood.

    Raises:
        ConfigError: the configuration belongs to another robot.
        BalanceError: no foot has a flat sole.
    """

    def __init__(
        self,
        model: RobotModel,
        config: RobotConfig,
        options: BalanceOptions | None = None,
        limits: StandingLimits | None = None,
        guard: GuardOptions | None = None,
        horizon: float = 0.01,
    ) -> None:
        model = config.attach(model)
        self.guard, self._horizon = CommandGuard.from_model(model, guard), horizon
        self.model, self.options = model, options or BalanceOptions()
        self._feet = [
            (i, foot) for i, foot in enumerate(config.feet) if len(foot.corners) > 2
        ]
        if not self._feet:
            raise BalanceError(
                "no foot has a flat sole: give its corners in the configuration, "
                "feet.<frame>.corners"
            )
        self._limits = limits or StandingLimits()
        self._all = Soles(model, [foot for _, foot in self._feet])
        posture = config.nominal_posture(model)
        self._upright = mean_normal(self._all.poses(posture))
        self._servo = config.servo
        # Slower than a walk; how much the feet must carry is StandingLimits'.
        limits_of_sensors = SensorLimits(
            frozen_time=0.1, load=(0.0, 1.9), impact=0.0, jump=0.1
        )
        self._sensors = SensorGuard(model, self._all.legs, limits_of_sensors)
        self._balancer: Balancer | None = None
        self._time = -np.inf  # s, of the last reading
        self._readings = ReadingTimes()
        self._wanted = self._paused = False
        # feet that stand, since when
        self._stance: tuple[tuple[str, ...], float] | None = None
        self._velocity = STILL
        self.state, self.reason = BalancePhase.UNKNOWN, "no readings yet"
        self.desired: Array | None = None
        # A first step without effect: kernels compiled later would delay a robot.
        with suppress(BalanceError):
            balancer = self._started(BalanceReading(0.0, posture, self._upright))
            balancer.step(0.01, posture, self._upright, balancer.reference.position)

    def set_options(self, options: BalanceOptions, limits: StandingLimits) -> None:
        """Uses other gains and bounds from the next step on.

        Args:
            options: of the balancer.
            limits: of load and tilt while standing.
        """
        self.options, self._limits = options, limits
        if self._balancer is not None:
            self._balancer.set_options(options)

    @property
    def _soles(self) -> Soles:
        """Soles of the feet that stand; all before balancing begins."""
        return self._all if self._balancer is None else self._balancer.soles

    @property
    def feet(self) -> tuple[str, ...]:
        """Names of the feet that stand; empty before balancing begins."""
        return () if self._balancer is None else self._balancer.names

    @property
    def active(self) -> bool:
        """Whether it balances, or will as soon as the robot stands."""
        return self._wanted and self.state != BalancePhase.FALLEN

    def start(self) -> None:
        """Requests balancing: begins with the next reading that allows it, at the present CoM."""
        self._wanted = True
        if self.state == BalancePhase.FALLEN:
            self.state = BalancePhase.STANDING
        if self.guard.reason or self._sensors.failed:
            self._release()

    def stop(self) -> None:
        """Stops sending commands; the joints stay where they are."""
        self._wanted, self.desired = False, None
        self._release()

    def _release(self) -> None:
        """Sends no more commands until balancing begins again."""
        self._balancer = self._stance = None
        self._sensors.failed = Sensor.NONE
        self.guard.restart()

    def set_desired_com(self, com: Array, velocity: Array = STILL) -> str:
        """Sets the desired CoM.

        Args:
            com: (3,) m in the balance frame; a height of NaN is not controlled.
            velocity: (3,) m/s; components that are not finite count as 0.

        Returns:
            Why it is refused and how to fix it; "" when it is accepted.
        """
        height_known_or_free = np.isfinite(com[2]) or np.isnan(com[2])
        if not (np.isfinite(com[:2]).all() and height_known_or_free):
            return (
                f"the desired CoM ({com[0]:g}, {com[1]:g}, {com[2]:g}) is not finite: give x and y "
                "in m, and z or NaN"
            )
        self.desired = np.array(com, dtype=float)
        self._velocity = np.where(np.isfinite(velocity), velocity, 0.0)
        return ""

    def problem(self, reading: BalanceReading) -> str:
        """Checks whether balancing could begin.

        Args:
            reading: of the sensors.

        Returns:
            Why it cannot and how to fix it; "" when it can.
        """
        problem = self._unusable(reading) or self.guard.implausible
        if problem:
            return problem
        try:
            self._started(reading)
        except BalanceError as error:
            return str(error)
        return self._fall(reading)

    def to_balance_frame(self, reading: BalanceReading, point: Array) -> Array:
        """Transforms a point of the root link's frame to the balance frame.

        Args:
            reading: of the sensors.
            point: (3,) m, root link's frame.

        Returns:
            (3,) m, balance frame.

        Raises:
            BalanceError: gravity does not point into the ground, or is unknown.
        """
        problem = self._unusable(reading) or self.guard.implausible
        if problem:
            raise BalanceError(problem)
        poses = self._soles.poses(reading.position)
        return balance_frame(
            poses, self._soles.points(poses), self._up(reading)
        ).transform(point)

    def restart_clock(self, jump: float) -> None:
        """Continues with times of another clock; see CommandGuard.change_clock.

        Args:
            jump: s, by which the clock has jumped; 0: it has started.
        """
        self.guard.change_clock(jump)
        self._time, self._stance = -np.inf, None

    def step(self, reading: BalanceReading) -> BalanceCommand | None:
        """Processes a reading.

        Args:
            reading: of the sensors.

        Returns:
            The commands to send to the drives; None: none.
        """
        dt, problem = self._pass_time(reading.time)
        problem = problem or self._unusable(reading)
        stopped = problem or self.guard.measure(reading.time, reading.position)
        if self.state == BalancePhase.FALLEN and self._wanted:
            return None
        balancer = self._balancer
        if balancer is not None and not stopped:
            loads, target = reading.loads, balancer.position
            if loads is not None:  # as vertical forces
                loads = np.outer(loads[[i for i, _ in self._feet]], np.ones(3))
            self._sensors.update(reading.up, reading.position, loads, target, False, dt)
            problem = self._sensors.problem
        fall = "" if problem or self.guard.implausible else self._fall(reading)
        problem = problem or stopped
        if balancer is None:
            return self._begin(reading) if self._stand(reading, problem, fall) else None
        if fall:
            self.state, self.reason = BalancePhase.FALLEN, f"{fall}; then call ~/start"
            self._release()
            return None
        if problem:
            return self._hold(balancer, problem, dt)
        return self._balance(balancer, reading, dt)

    # --- conditions ----------------------------------------------------------------------------
    def _pass_time(self, time: float) -> tuple[float, str]:
        last, self._time, gap = self._time, time, self._readings.gap(time)
        if time <= last:
            return 0.0, (
                f"the time of joint_states went back by {last - time:.3f} s: two drivers of one "
                "joint, or a recording that was started again"
            )
        if gap and self._balancer is not None:
            self._balancer.pause(gap)
        return 0.0 if gap or np.isinf(last) else min(time - last, 0.1), ""

    def _unusable(self, reading: BalanceReading) -> str:
        if reading.missing:
            return reading.missing
        if not np.isfinite(reading.position).all():
            return "a joint's position is not finite: check its driver"
        if reading.up is not None and not np.isfinite(reading.up).all():
            return (
                "imu gives no orientation: use a filter that does, or set use_imu false"
            )
        if reading.loads is not None and not np.isfinite(reading.loads).all():
            return "a foot's force is not finite: check its sensor, or set use_wrench false"
        return ""

    def _fall(self, reading: BalanceReading) -> str:
        """Why the robot does not stand, and how to fix it; "" when it stands."""
        up, limits = self._up(reading), self._limits
        tilt = float(np.arccos(np.clip(up @ self._upright, -1.0, 1.0)))
        if tilt > limits.fallen_tilt:
            return (
                f"the trunk is tilted by {tilt:.2f} rad, more than {limits.fallen_tilt:.2f}: set "
                "the robot on its feet"
            )
        least = limits.min_weight_fraction * self.model.mass * GRAVITY
        if reading.loads is not None and not float(reading.loads.sum()) >= least:
            return (
                f"the feet carry {float(reading.loads.sum()):.0f} N, at least {least:.0f} N are "
                "needed: set the robot on its feet, or check sign and frame of the feet's wrenches "
                "in the configuration"
            )
        return ""

    def _up(self, reading: BalanceReading) -> Array:
        """Unit vector against gravity (3,), root axes; without IMU the mean normal of the soles."""
        if reading.up is not None:
            return reading.up
        return mean_normal(self._soles.poses(reading.position))

    # --- actions -------------------------------------------------------------------------------
    def _begin(self, reading: BalanceReading) -> BalanceCommand | None:
        try:
            balancer = self._started(reading)
        except BalanceError as error:
            self.state, self.reason = (
                BalancePhase.WAITING,
                f"waits until the robot stands: {error}",
            )
            return None
        self._balancer, self._paused = balancer, False
        self._sensors.restart()
        return self._balance(balancer, reading, 0.0)

    def _started(self, reading: BalanceReading) -> Balancer:
        """A balancer of the feet that stand, at the present posture; raises BalanceError."""
        feet = self._standing(reading)
        balancer = Balancer(self.model, feet, self._upright, self.options, self._servo)
        balancer.start(reading.position, self._up(reading), reading.commanded)
        return balancer

    def _stand(self, reading: BalanceReading, problem: str, fall: str) -> bool:
        """Whether balancing may begin; sets state, and the reason if not."""
        if problem or fall:
            self._stance = None
            self.state, self.reason = BalancePhase.UNKNOWN, problem
            if not problem:
                self.state, self.reason = (
                    BalancePhase.WAITING,
                    f"waits until the robot stands: {fall}",
                )
            return False
        feet = tuple(foot.frame for foot in self._standing(reading))
        if self._stance is None or self._stance[0] != feet:
            self._stance = feet, reading.time
        self.state, self.reason = BalancePhase.STANDING, ""
        if not self._wanted:
            return False
        settle = self._limits.settle_time
        if reading.time - self._stance[1] >= settle - 1e-9:
            return True
        self.reason = f"begins when it has stood on the same feet for {settle:g} s"
        return False

    def _standing(self, reading: BalanceReading) -> list[Foot]:
        """Feet that are loaded; all where forces are unknown."""
        feet = [foot for _, foot in self._feet]
        if reading.loads is None:
            return feet
        least = self._limits.min_load_fraction * self.model.mass * GRAVITY
        carrying = [foot for i, foot in self._feet if reading.loads[i] >= least]
        return carrying or feet

    def _hold(self, balancer: Balancer, problem: str, dt: float) -> BalanceCommand:
        self.state, self.reason, self._paused = (
            BalancePhase.HOLDING,
            f"holds: {problem}",
            True,
        )
        if self.guard.reason:
            self.reason += "; then call ~/start"
        return self._guarded(*balancer.brake(dt))

    def _balance(
        self, balancer: Balancer, reading: BalanceReading, dt: float
    ) -> BalanceCommand:
        up = self._up(reading)
        try:
            if self._paused:
                balancer.resume(reading.position, up)
                self._paused = False
            if self.desired is None:
                self.desired = balancer.reference.position.copy()
            step = balancer.step(dt, reading.position, up, self.desired, self._velocity)
        except BalanceError as error:
            return self._hold(balancer, str(error), dt)
        command = self._guarded(step.position, step.velocity, step)
        if self.guard.held:
            return self._hold(balancer, self.guard.reason, dt)
        self.state, self.reason = BalancePhase.BALANCING, "; ".join(step.problems)
        return command

    def _guarded(
        self, position: Array, velocity: Array, step: BalanceStep | None = None
    ) -> BalanceCommand:
        """The command, limited by the guard."""
        due = np.array([self._time + self._horizon])
        positions, velocities = self.guard.limit(due, position[None], velocity[None])
        return BalanceCommand(positions[0], velocities[0], step)
