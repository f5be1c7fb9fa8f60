"""Simulation of a robot in MuJoCo, from sample to sample."""

import copy
from collections.abc import Sequence
from dataclasses import replace

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from com_model.arrays import Array
from com_simulation.exceptions import CommandError, DivergedError
from com_simulation.physics.events import SENSED, Event, payload_event
from com_simulation.physics.motion import JointMotion, Trajectory, read_targets
from com_simulation.physics.sensors import Noise, NoiseLevels, Reading, Sensors
from com_simulation.physics.servo import Drive
from com_simulation.physics.suspension_rig import SuspensionRig, Tilt, TiltingFloor
from com_simulation.physics.true_errors import (
    ROOT,
    Payload,
    loaded,
    read_trunk,
    write_trunk,
)
from com_simulation.physics.world_builder import World

_DIVERGED = slice(
    int(mujoco.mjtWarning.mjWARN_BADQPOS), int(mujoco.mjtWarning.mjWARN_BADQACC) + 1
)


class Simulation:
    """Steps the physics and reads the sensors; reproducible to the bit by commands and seed.

    Args:
        world: the robot on the ground.
        sample_period: s between readings, rounded to whole steps of the physics, at least one.
        noise: errors of the sensors; None: none.
        seed: of the errors.
        payload: that a link carries; None: none.
        tilt: of the floor; None: none.
        drive: limits the targets; None: no limits.
        events: that act on the robot, see events.

    Attributes:
        world: as given.
        step: s, of the physics.
        steps_per_sample: number of steps between readings.
        sample_period: s, between readings.
        motion: targets of the joints.
        time: s, of the last reading.
        acting: events that act at the last reading, including the payload.
    """

    def __init__(
        self,
        world: World,
        sample_period: float = 0.002,
        noise: NoiseLevels | None = None,
        seed: int = 0,
        payload: Payload | None = None,
        tilt: Tilt | None = None,
        drive: Drive | None = None,
        events: Sequence[Event] = (),
    ) -> None:
        self.world, self._drive = world, drive
        self.step = float(world.mj.opt.timestep)
        self.steps_per_sample = max(1, round(sample_period / self.step))
        self.sample_period = self.steps_per_sample * self.step  # s, between readings
        self._payload = (
            payload_event(payload, world) if payload and payload.mass else None
        )
        self._given = tuple(filter(None, (self._payload, *events)))
        self._levels = noise or NoiseLevels()
        self._mj = copy.copy(world.mj)
        self._data = mujoco.MjData(self._mj)
        self._sensors = Sensors(world, self._mj, self._data)
        self._hoist = SuspensionRig(world) if world.floating else None
        self._tilt = tilt if tilt and tilt.angle_deg else None
        self._seed = seed
        # Otherwise MuJoCo writes a log into the working folder; warnings are looked up in its data.
        mujoco.set_mju_user_warning(lambda text: None)
        self.reset()

    def reset(self) -> None:
        """Resets the robot to the start: nominal posture, time 0, the seed's first noise."""
        robot, data = self.world.robot, self._data
        if self._hoist is not None:
            self._hoist.reset()
        self._floor = (
            None if self._tilt is None else TiltingFloor(self._tilt, self.world.mj)
        )
        self._events, self.acting = self._given, tuple[Event, ...]()
        self._pushed = np.zeros(3)  # N, beside events
        self._carry([])
        mujoco.mj_resetData(self._mj, data)
        data.qpos[:] = self.world.qpos
        self.motion = JointMotion(self.world.posture)
        if self._drive is not None:
            self._drive.reset(np.clip(self.world.posture, robot.lower, robot.upper))
        self._standing = False  # true: the targets in data.ctrl stay as they are
        self._noise = noise = Noise(
            self._levels, robot.n_joints, len(self.world.feet), self._seed
        )
        zeros = (
            noise.position_bias[:, None],
            noise.wrench_bias,
            noise.orientation_bias[None],
        )
        self._zeros = {
            kind: (a, a.copy()) for kind, a in zip(SENSED, zeros, strict=True)
        }
        noise.exact &= not any(event.kind in SENSED for event in self._events)
        self._count = 0
        self.time = 0.0  # s, of the last reading
        if self._floor is not None:
            self._floor.act(self._mj, 0.0)

    def command(self, targets: ArrayLike) -> None:
        """Jumps to joint targets, clipped to the limits.

        Args:
            targets: (n,) rad or m.

        Raises:
            CommandError: they are not n finite numbers.
        """
        self.motion.hold(self.time, read_targets(self.world.robot.joint_names, targets))
        self._standing = False

    def lead(self, targets: ArrayLike, velocities: ArrayLike | None = None) -> None:
        """Moves the joint targets to given ones within the next sample period.

        For a control loop at the rate of the samples. Targets that jump would make the torques
        jump; straight lines still bend at the samples, so that torques and accelerations are
        read at the peaks of a saw-tooth. With velocities the targets are smooth cubics.

        Args:
            targets: (n,) rad or m.
            velocities: (n,) rad/s or m/s, at the next sample; None: straight lines.

        Raises:
            CommandError: they are not n finite numbers.
        """
        names = self.world.robot.joint_names
        speeds = None if velocities is None else read_targets(names, velocities)[None]
        point = (
            np.array([self.sample_period]),
            read_targets(names, targets)[None],
            speeds,
        )
        self.follow(Trajectory(np.arange(len(names)), *point))

    def follow(self, trajectory: Trajectory, start: float | None = None) -> None:
        """Follows a trajectory.

        Args:
            trajectory: of some or all joints.
            start: s, simulated, from which its times count; None: now.

        Raises:
            CommandError: it is over already.
        """
        self.motion.follow(self.time, self.time if start is None else start, trajectory)
        self._standing = False

    def set_payload(self, on: bool) -> None:
        """Adds the payload with the next sample, whatever its time, or removes it.

        Args:
            on: whether the link carries it.

        Raises:
            CommandError: there is no payload.
        """
        if self._payload is None:
            raise CommandError("there is no payload: give payload.mass")
        timed = replace(self._payload, begin=0.0 if on else 1e9)
        self._events = timed, *self._events[1:]

    def begin(self) -> None:
        """Begins the events without a time now."""
        now = (
            replace(e, begin=self.time) if np.isinf(e.begin) else e
            for e in self._events
        )
        self._events = tuple(now)

    def push(self, force: ArrayLike) -> None:
        """Applies a force to the root body at its CoM from now on.

        Args:
            force: (3,) N, world axes; 0: none.
        """
        self._data.xfrc_applied[ROOT, :3] += np.subtract(force, self._pushed)
        self._pushed = np.array(force, dtype=float)

    def tilt(self) -> None:
        """Begins the tilt of the floor now, whatever its time.

        Raises:
            CommandError: the floor does not tilt.
        """
        if self._floor is None:
            raise CommandError("the floor does not tilt: give tilt.angle_deg")
        self._floor.begin(self._data.time)

    def set_lifted(self, on: bool) -> None:
        """Lifts the robot off the ground like a crane, or puts it down on its soles.

        Args:
            on: whether it is lifted.

        Raises:
            CommandError: the root is fixed.
        """
        if self._hoist is None:
            raise CommandError("the robot's root is fixed: it need not be lifted")
        if on != self._hoist.lifted:
            (self._hoist.lift if on else self._hoist.lower)(self._data)

    @property
    def lifting(self) -> bool:
        """Whether the robot is on its way up or down."""
        return self._hoist is not None and self._hoist.moving(self._data.time)

    def advance(self) -> Reading:
        """Advances to the next sample, the first one at time 0, and reads the sensors.

        Returns:
            The readings with their errors, and the ground truth.

        Raises:
            DivergedError: the physics has become unstable.
        """
        if self._count > 0:
            self._advance_physics(self.steps_per_sample - 1)
        data = self._data
        time = self._count * self.steps_per_sample * self.step
        self._happen(time)
        qpos, qvel = data.qpos.copy(), data.qvel.copy()
        self.time = time
        self._advance_physics(1)
        if data.warning.number[_DIVERGED].any():
            raise DivergedError(time, self.step)
        self._count += 1
        return self._noise.add(self._sensors.read(time, qpos, qvel))

    def grounded(self) -> set[int]:
        """Numbers of the MuJoCo bodies that touch the ground."""
        bodies = self._mj.geom_bodyid[self._data.contact.geom.reshape(-1, 2)]
        return set(bodies[(bodies == 0).any(axis=1)].ravel().tolist()) - {0}

    def _happen(self, time: float) -> None:
        """Applies the events of a time to bodies, loads and sensors."""
        if not self._events:
            return
        forces = self._data.xfrc_applied
        forces[:, :3], forces[ROOT, :3] = 0.0, self._pushed
        for zero, constant in self._zeros.values():
            zero[:] = constant
        strengths = [(event, event.strength(time)) for event in self._events]
        for event, strength in strengths:
            if event.kind in self._zeros:
                self._zeros[event.kind][0][event.index] += strength * event.vector
                self._standing &= event.kind != "ENCODER_ZERO"  # its servo follows
            elif event.kind != "PAYLOAD":
                forces[ROOT + event.index, :3] += strength * event.vector
        before, self.acting = (
            self.acting,
            tuple(event for event, strength in strengths if strength),
        )
        loads = [
            [e for e in acts if e.kind == "PAYLOAD"] for acts in (before, self.acting)
        ]
        if loads[0] != loads[1]:
            self._carry(loads[1])

    def _carry(self, loads: Sequence[Event]) -> None:
        """Adds loads to the bodies of the unloaded model."""
        self._mj = copy.copy(self.world.mj)
        if self._floor is not None:
            self._floor.act(self._mj, self._data.time)
        for load in loads:
            body = ROOT + load.index
            carrier = loaded(
                read_trunk(self._mj, body), load.vector[0], load.vector[1:]
            )
            write_trunk(self._mj, carrier, body)
        self._sensors.read_masses(self._mj)

    def _advance_physics(self, steps: int) -> None:
        if not steps:
            return
        mj, data = self._mj, self._data
        if self._hoist is not None:
            self._hoist.act(mj, data)
        if not self._standing and not self.motion.moving(data.time):
            data.ctrl[:] = target = self._targets(1)[0]
            self._standing = self._drive is None or self._drive.settled(target)
        floor = (
            self._floor
            if self._floor and self._floor.moving(data.time - self.step)
            else None
        )
        if self._standing and floor is None:
            self._step_physics(steps)
            return
        for targets in self._targets(steps):
            if self._drive is not None:
                targets = self._drive.step(targets, self.step, data.time)
            data.ctrl[:] = targets
            if floor is not None:
                floor.act(mj, data.time)
            self._step_physics(1)
        self.motion.forget(data.time)

    def _step_physics(self, steps: int) -> None:
        """Steps MuJoCo; friction that grows with the load follows the torques of the last step."""
        mj, data, world = self._mj, self._data, self.world
        if not world.load_friction.any():
            mujoco.mj_step(mj, data, steps)
            return
        dof = world.joint_dof
        for _ in range(steps):
            load = world.load_friction * np.abs(self._sensors.efforts())
            mj.dof_frictionloss[dof] = world.mj.dof_frictionloss[dof] + load
            mujoco.mj_step(mj, data)

    def _targets(self, steps: int) -> Array:
        """Targets (steps, n) of the next steps, within the limits of the joints."""
        times = np.full(steps, self.step)
        times[0] = self._data.time
        targets = self.motion.targets(np.cumsum(times))  # adds up as MuJoCo does
        robot = self.world.robot
        return np.asarray(
            np.clip(targets - self._noise.position_bias, robot.lower, robot.upper)
        )
