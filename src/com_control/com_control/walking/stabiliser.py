"""The walking stabiliser of one robot: measurements in, joint targets out; see stabiliser_law.

  stabiliser = Stabiliser(biped, stiffness)
  stabiliser.start(walk.plan, walk.samples, walk.path.q[0])
  at each measurement: stabiliser.update(R_world_root, q, wrenches, dt, lead)

A plan without steps is standing. Faults that end a walk are reported; the caller stops at the
next double support, and sends nothing more to a robot that has fallen.
"""

from dataclasses import dataclass
from enum import IntEnum
from math import cos, exp, isfinite, radians

import numpy as np
from numpy.typing import ArrayLike

from com_control.exceptions import BipedError
from com_control.sensor_guard import FAILURES, Sensor, SensorGuard
from com_control.walking.biped import JOINTS, Biped, BipedLeg, heading_to_pelvis
from com_control.walking.com_ik import ComIk
from com_control.walking.law_table import (
    LAW,
    Body,
    Measurements,
    Table,
    make_controller_state,
    make_target,
)
from com_control.walking.stabiliser_law import follow_plan, tick
from com_control.walking.walk_monitor import NO_WRENCHES, SoleZmp
from com_control.walking.walk_plan import Samples, WalkPlan, find_stance, quintic
from com_model import RobotConfig, Sesc
from com_model.arrays import Array
from com_model.compiled import entry_point
from com_model.dynamics import GRAVITY
from com_model.dynamics.link_frames import LinkFrames

# The heights that are tried where the legs do not reach the CoM, over that of the CoM and from the
# one before: the nearest first
HEIGHTS = 0.0025 * np.array([0, -1, 1, -2, 2, -3, 3, -4, 4, -8, 8])


class Fault(IntEnum):
    """Faults in rising order of severity.

    Attributes:
        NONE: no fault.
        BEYOND_REACH: the DCM is farther from its plan than the soles can correct.
        OFFSET_BOUND: the model's CoM is off by more than the stabiliser may correct.
        NO_WRENCH: a foot's wrench is missing or implausible.
        NO_IMU: the IMU's orientation is missing or implausible.
        NO_ENCODERS: positions of the legs' joints are frozen or jump.
        UNREACHABLE: inverse kinematics fail.
        FALLEN: by the measured tilt or height.
    """

    NONE = 0
    BEYOND_REACH = 1
    OFFSET_BOUND = 2
    NO_WRENCH = 3
    NO_IMU = 4
    NO_ENCODERS = 5
    UNREACHABLE = 6
    FALLEN = 7


FIXES = {  # meaning of each and how to fix it
    Fault.NONE: "",
    Fault.BEYOND_REACH: "the centre of mass is farther from the plan than the soles can correct",
    Fault.OFFSET_BOUND: "the centre of mass is too far from the model's: identify the robot first",
    Fault.NO_WRENCH: FAILURES[Sensor.WRENCHES],
    Fault.NO_IMU: FAILURES[Sensor.IMU],
    Fault.NO_ENCODERS: FAILURES[Sensor.ENCODERS],
    Fault.UNREACHABLE: "the legs do not reach what feedback asks for: lower com_height",
    Fault.FALLEN: "the robot has fallen by its measured tilt or height: set it upright",
}


@dataclass(frozen=True, eq=False)
class Stabilised:
    """Result of an update.

    Attributes:
        q: (n,) rad or m, joint targets.
        rate: of the plan's time; 0 while it waits for a foot, up to 1.6 where the robot is ahead
            of it.
        fault: the most severe one.
    """

    q: Array
    rate: float
    fault: Fault

    @property
    def must_stop(self) -> bool:
        """Whether the walk must end at the next double support, or at once when FALLEN."""
        return self.fault > Fault.BEYOND_REACH


def ankle_joints(leg: BipedLeg) -> tuple[str, str]:
    """Names of the joints that rotate a sole about its x and y axes.

    Args:
        leg: of the robot.

    Raises:
        BipedError: the ankle has not two joints.
    """
    if leg.free:
        raise BipedError(f"no joint moves {leg.free}: walk without (stabiliser:=false)")
    axes = np.abs(leg.R_sole.T @ leg.axes[JOINTS - 2 :].T)
    x, y = (leg.joint_names[JOINTS - 2 + int(np.argmax(axis))] for axis in axes[:2])
    return x, y


def ankle_stiffness(biped: Biped, config: RobotConfig) -> Array:
    """Stiffness of the servos of an ankle about the sole's x and y axes.

    Args:
        biped: the robot.
        config: its configuration, with servo.stiffness of the ankle's joints.

    Returns:
        (2,) N m/rad.

    Raises:
        BipedError: the configuration lacks it, or an ankle has not two joints.
    """
    found = []
    for name in ankle_joints(biped.legs[0]):
        gains = config.servo.gains(name)
        if gains is None or gains.stiffness is None:
            raise BipedError(
                f"the configuration gives no servo.stiffness of {name}: the stabiliser needs it, "
                "or walk without (stabiliser:=false)"
            )
        found.append(gains.stiffness)
    return np.array(found)


def make_table(plan: WalkPlan, samples: Samples) -> Table:
    """Makes the law's table of a walk.

    Args:
        plan: with its steps.
        samples: of the plan as those of Walk, in equal steps of time.
    """
    time, count = samples.time, len(samples.time)
    swing = np.full((count, 2), -1.0)
    goals = samples.feet[:, :, :2, 3].copy()
    for step, lift, down in zip(
        plan.steps, plan.lift_offs, plan.touch_downs, strict=True
    ):
        side = 0 if step.side == "left" else 1
        air = (time >= lift - 1e-9) & (time < down - 1e-9)
        swing[air, side] = (time[air] - lift) / (down - lift)
        goals[air, side] = step.x, step.y
    moves = [plan.lift_offs[0], plan.touch_downs[-1]] if plan.steps else [0.0, 0.0]
    return Table(
        float(time[-1] - time[0]) / (count - 1),
        np.hstack((samples.com, samples.com_velocity, samples.com_acceleration)),
        np.ascontiguousarray(samples.zmp[:, :2]),
        np.ascontiguousarray(samples.feet),
        np.ascontiguousarray(samples.R_pelvis),
        swing,
        goals,
        plan.timing.step_time,
        np.array(moves),
    )


class Stabiliser:
    """Feedback control of one robot's walks.

    Args:
        biped: the robot; its soles have corners.
        stiffness: (2,) N m/rad, see ankle_stiffness.
        period: s, between two measurements.
        delay: s, of sensors and bus.
        step_adjustment: whether footholds follow the DCM forwards and backwards.
        heading_feedback: whether it turns back where a sole has rotated on the ground.

    Attributes:
        biped: as given.
        body: properties of the robot for the law; after start().
        table: the walk for the law; after start().
        state: state of the law; see stabiliser_law.
        target: last result of the law; see stabiliser_law.

    Raises:
        BipedError: a sole has no corners, or the stiffness is too small.
    """

    def __init__(
        self,
        biped: Biped,
        stiffness: ArrayLike,
        period: float = 0.005,
        delay: float = 0.005,
        step_adjustment: bool = False,
        heading_feedback: bool = False,
    ) -> None:
        corners = [leg.foot.corners for leg in biped.legs]
        if not all(len(sole) for sole in corners):
            raise BipedError(
                "the stabiliser needs the feet's corners: give them in the configuration"
            )
        self.biped = biped
        self.set_stiffness(stiffness)
        self._dead_time, self._feeds = (
            delay + 2.5 * period,
            (step_adjustment, heading_feedback),
        )
        self._ik, self._to_pelvis = ComIk(biped), heading_to_pelvis(biped)
        # in the root link's axes
        self._up = biped.root_in_pelvis()[0].T @ self._to_pelvis[:, 2]
        self._poses = LinkFrames(biped.model, [leg.foot.frame for leg in biped.legs])
        self._sesc, self._zmp = Sesc(biped.model), SoleZmp(biped)
        low, high = (
            np.array([f(c, axis=0) for c in corners]) for f in (np.min, np.max)
        )
        self._soles = np.stack((low[:, 0], high[:, 0], low[:, 1], high[:, 1]), axis=1)
        # m: the ankles correct up to 1.2 half lengths and 2 half widths of a sole
        self._reach = (np.array([0.6, 1.0]) * (high - low)[0, :2]).tolist()
        self.state, self.target = make_controller_state(), make_target()
        self._found_for = 0.0
        self._guard = SensorGuard(
            biped.model, [np.asarray(leg.joints) for leg in biped.legs]
        )

    def set_stiffness(self, stiffness: ArrayLike) -> None:
        """Uses another stiffness of the ankles from now on.

        Args:
            stiffness: (2,) N m/rad, see ankle_stiffness.

        Raises:
            BipedError: it is not two numbers, or both ankles together do not hold the robot up:
                2 K is less than m g h.
        """
        given = np.asarray(stiffness, dtype=float)
        height = float(find_stance(self.biped, self.biped.posture).com[2])
        least = 0.5 * self.biped.model.mass * GRAVITY * height
        if given.shape != (2,) or not (given >= least).all():
            raise BipedError(
                f"the ankles' stiffness is {given}: give two numbers of {least:.3g} N m/rad or "
                "more, so that both hold the robot up"
            )
        self._stiffness = given
        if hasattr(self, "body"):
            self.body.kappa[:] = given / (self.body.mass * GRAVITY * self.body.height)

    def start(self, plan: WalkPlan, samples: Samples, q: Array) -> None:
        """Begins a walk; the estimates of the CoM's offset and of the ground are kept.

        Args:
            plan: with its steps.
            samples: of the plan.
            q: (n,) rad or m, joint targets at its start.
        """
        state, h, mass = (
            make_controller_state(),
            plan.timing.com_height,
            self.biped.model.mass,
        )
        state.offset[:], state.slope[:] = self.state.offset, self.state.slope
        state.pull[:] = self.state.pull
        self.state, self.target = state, make_target()
        self.target.feet[:] = samples.feet[0]
        kappa = self._stiffness / (mass * GRAVITY * h)
        self.body = Body(mass, h, kappa, self._dead_time, self._soles, *self._feeds)
        self.table = make_table(plan, samples)
        self._q, self._failures, self._implausible, self._height = q.copy(), 0, 0.0, 0.0
        self._ik.restart()
        self._guard.restart()
        measured = Measurements(
            np.eye(3), np.zeros((2, 3, 4)), np.zeros(3), np.zeros((2, 6))
        )
        self._tick = entry_point(
            tick, self.body, self.table, measured, 0.0, 0.0, state, self.target
        )

    def replace(
        self, plan: WalkPlan, samples: Samples, later: float = 0.0, blend: float = 0.4
    ) -> None:
        """Continues with another plan, near the present one and with the same feet for now.

        Args:
            plan: with its steps.
            samples: of the plan.
            later: s, by which its time begins later than that of the present one.
            blend: s, in which the targets change from one plan to the other.
        """
        before, after = self.table, make_table(plan, samples)
        self.state.phase[0] = phase = self.phase - later
        time = after.dt * np.arange(len(after.com))
        blended = (time >= phase) & (time < phase + blend)
        then = (time[blended] + later) / before.dt
        old = np.minimum(np.rint(then).astype(int), len(before.com) - 1)
        rest = (1.0 - quintic((time[blended] - phase) / blend)[0])[:, None]
        pelvis = (
            table.R_pelvis.reshape(-1, 9) for table in (after, before)
        )  # nearly the same
        for new, known in ((after.com, before.com), (after.zmp, before.zmp), pelvis):
            new[blended] += rest * (known[old] - new[blended])
        self.table = after

    @property
    def failed(self) -> Sensor:
        """Sensors that are not believed."""
        return self._guard.failed

    @property
    def phase(self) -> float:
        """Time of the plan, s."""
        return float(self.state.phase[0])

    @property
    def offset(self) -> tuple[Array, Array]:
        """Offset of the CoM from the model's (2,) m, and its standard deviation; inf: unknown.

        Forwards and to the left, in the axes of the pelvis' heading. Unknown before three time
        constants; the standard deviation has 0.3 % of the CoM's height added, for what is
        systematic.
        """
        b, square = self.state.offset
        if self._found_for < 3.0 * LAW.offset_time:
            return b.copy(), np.full(2, np.inf)
        return b.copy(), np.sqrt(square + (0.003 * self.body.height) ** 2)

    @property
    def margin(self) -> float:
        """Margin of the DCM error to the reach of the soles: 1 without error, below 0 beyond."""
        x, y, x_aim, y_aim = self.target.estimate[5:9].tolist()
        return 1.0 - max(
            abs(x - x_aim) / self._reach[0], abs(y - y_aim) / self._reach[1]
        )

    def update(
        self,
        R_world_root: Array,
        q: Array,
        wrenches: Array | None,
        dt: float,
        lead: float,
        angular_velocity: Array | None = None,
    ) -> Stabilised:
        """Processes a measurement.

        Args:
            R_world_root: (3, 3) orientation of the root link by the IMU; NaN: unknown.
            q: (n,) rad or m.
            wrenches: (2, 6) as for walk_monitor.Reading; None or NaN: unknown.
            dt: s, since the last one.
            lead: s, from the measurement to the time that the targets are for.
            angular_velocity: (3,) rad/s, of the root link by the IMU, in its axes; None: unknown.

        Returns:
            Joint targets, rate of the plan's time, and the fault.
        """
        R, p = self._poses.poses(q)
        soles = np.concatenate((R, p[:, :, None]), axis=2)
        at_soles = (
            NO_WRENCHES if wrenches is None else self._zmp.wrenches_at_soles(wrenches)
        )
        table, sent, target = self.table, self._q, self.target
        moves = bool(table.moves[0] < self.phase < table.moves[1])
        failed = self._guard.update(
            R_world_root, q, at_soles, sent, moves, dt, angular_velocity
        )
        if self._is_implausible(at_soles, dt):
            at_soles = NO_WRENCHES
        upright = bool(np.isfinite(R_world_root).all()) and not failed & Sensor.IMU
        if not upright:
            R_world_root = self._attitude_by_sole(soles)
        if failed:
            follow_plan(table, dt, lead, self.state, target)
        else:
            measured = Measurements(
                np.ascontiguousarray(R_world_root), soles, self._sesc.com(q), at_soles
            )
            self._tick(self.body, table, measured, dt, lead, self.state, target)
            self._found_for += dt * isfinite(at_soles.sum())
        self._solve(target.com, target.feet, target.R_pelvis @ self._to_pelvis, dt)
        fault = self._fault(R_world_root, at_soles, upright, failed)
        return Stabilised(self._q, float(self.state.phase[3]), fault)

    def _solve(self, com: Array, feet: Array, R_pelvis: Array, dt: float) -> None:
        """Sets the joint targets; out of reach, at the nearest height of the CoM that is found.

        Within 4 % of the planned height, to which it returns in 0.3 s.
        """
        heights = (self._height * exp(-dt / 0.3) + HEIGHTS).clip(-0.04, 0.04)
        for height in heights.tolist():
            at = np.append(com[:2], com[2] + height * self.body.height)
            found = self._ik.step(at, feet, R_pelvis)
            if found.outcome == 0:
                self._q, self._failures, self._height = (
                    self._ik.full(found.q),
                    0,
                    height,
                )
                return
        self._failures += 1
        self.state.lean[:] *= 0.9

    def _is_implausible(self, wrenches: Array, dt: float) -> bool:
        """Whether both feet stand and have not carried 0.5 to 1.6 of the weight for 0.1 s.

        The sensors are implausible then, or the robot is held.
        """
        load = float(wrenches[:, 2].sum()) / (self.biped.model.mass * GRAVITY)
        stands = not self.table.moves[0] < self.phase < self.table.moves[1]
        wrong = stands and not 0.5 < load < 1.6
        self._implausible = self._implausible + dt if wrong else 0.0
        return self._implausible > 0.1

    def _attitude_by_sole(self, soles: Array) -> Array:
        """Orientation (3, 3) of the root link if the foot in stance is where it is commanded."""
        i = min(int(self.phase / self.table.dt), len(self.table.com) - 1)
        foot = int(np.argmin(self.table.swing[i]))
        return np.asarray(self.target.feet[foot, :, :3] @ soles[foot, :, :3].T)

    def _fault(self, R: Array, wrenches: Array, upright: bool, failed: Sensor) -> Fault:
        h, up = self.body.height, float(R[2] @ self._up)
        height = self.target.estimate[2] - self.target.feet[:, 2, 3].min()
        # with a failed sensor the estimate is an old one
        low = not failed and height < 0.7 * h
        if low or up < cos(radians(30.0)):
            return Fault.FALLEN
        if self._failures > 5:
            return Fault.UNREACHABLE
        if failed & Sensor.ENCODERS:
            return Fault.NO_ENCODERS
        if not upright:
            return Fault.NO_IMU
        if failed or not isfinite(wrenches.sum()):
            return Fault.NO_WRENCH
        if np.abs(self.state.offset[0]).max() >= LAW.max_offset * h * (1.0 - 1e-9):
            return Fault.OFFSET_BOUND
        return Fault.BEYOND_REACH if self.margin < 0.0 else Fault.NONE
