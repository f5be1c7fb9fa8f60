"""Compiled: one sample through the Kalman filter of the trunk."""

import math

import numpy as np
from numba import njit

from com_estimation.trunk.floating_base import contact, signals, update
from com_estimation.trunk.floating_base.filter_types import (
    ACCELEROMETER,
    BIAS,
    DELAY,
    GYRO,
    INERTIA,
    JOINT_SIGNALS,
    MASS,
    SCALE,
    STATES,
    TRUNK_STATES,
    UP,
    Array,
    FilteredMotion,
    FilterMemory,
    FilterModel,
    Flags,
    Outcome,
    Rows,
    Settings,
    SignalSample,
)
from com_estimation.trunk.floating_base.rows import PAIRS, make_rows, set_rows
from com_model.compiled import compiled
from com_model.dynamics.inverse_dynamics import RootMotion, newton_euler
from com_model.geometry.vector_kernels import dot

EXCITED = 30.0  # by how much a regressor must exceed its noise, squared


@compiled()
def step(
    sample: SignalSample, model: FilterModel, settings: Settings, memory: FilterMemory
) -> Outcome:
    """Filters a sample; makes an update when one is due.

    Args:
        sample: time and signals.
        model: constants of the robot.
        settings: constants of the filter.
        memory: state of the filter; changed.

    Returns:
        FILTERED, UPDATED, or why an update was not made.
    """
    monitors, time = memory.monitors[0], sample.time
    gap = time - monitors.last_sample
    monitors.last_sample = time
    # after a gap of more than 0.1 s the filters start again
    if not 0.0 < gap <= 0.1:
        signals.start_channels(memory.channels, sample.signals, settings.settling)
        monitors.last_update = time
        monitors.swinging[:] = monitors.standing[:] = 0.0
        monitors.airborne = 0.0
        monitors.information[:] = 0.0
        monitors.weighted[:] = 0.0
        monitors.half_stride = monitors.usual = monitors.window = 0.0
        return Outcome.GAP
    signals.update_channels(
        memory.channels, sample.signals, gap, settings.bandwidth, settings.settling
    )
    reached = 0.0
    for i in range(3):
        channel = memory.channels[ACCELEROMETER + i]
        if channel.settling == 0.0:
            reached = max(reached, abs(channel.input - channel.first))
    # a shock fades as the filter's memory of it does, also below the least one
    fading = math.exp(-0.25 * settings.bandwidth * gap)
    monitors.shock *= fading
    if reached > settings.shock:
        monitors.shock = max(monitors.shock, reached)
    dt = time - monitors.last_update
    if dt < settings.period - 0.5 * gap:
        return Outcome.FILTERED
    monitors.last_update = time
    base = make_rows(model)
    longest = 0.01  # s of the IMU; what is beyond is taken as linear
    delay = min(max(memory.x[DELAY], -longest), longest)
    motion = signals.read_motion(memory.channels, settings.bandwidth, delay)
    outcome = _complete_motion(motion, model, settings, memory, base)
    if outcome not in (Outcome.UPDATED, Outcome.NO_CONTACT):
        return outcome
    P, drift = memory.P, model.drift
    for i in range(STATES):
        P[i, i] += drift[i] * dt
    # White noise, averaged over a period, whatever the filter makes of it in between.
    averaging = math.sqrt(min(gap / dt, 1.0))
    first = JOINT_SIGNALS + len(model.armature)
    for leg in range(len(base.known)):  # whose torques have all settled
        base.known[leg] = True
        for j in range(3):
            channel = memory.channels[first + model.leg_joints[leg, j]]
            base.known[leg] &= channel.settling == 0.0
    set_rows(motion, averaging, model, settings, memory.x, base, memory.forces)
    contact.time_contacts(memory, dt, settings)
    _end_window(motion.up, memory, dt, settings)
    if outcome != Outcome.UPDATED:
        return outcome
    return _update(time, dt, gap, motion, settings, memory, base)


@njit
def _complete_motion(
    motion: FilteredMotion,
    model: FilterModel,
    settings: Settings,
    memory: FilterMemory,
    base: Rows,
) -> Outcome:
    """Sets the root's specific force and up; returns UPDATED or why that is not possible."""
    channels, monitors, n = memory.channels, memory.monitors[0], len(motion.q)
    settled = signals.are_settled
    if not (settled(channels, JOINT_SIGNALS, n) and settled(channels, GYRO, 3)):
        return Outcome.NO_MOTION
    with_attitude = settled(channels, UP, 3)
    if settled(channels, ACCELEROMETER, 3):
        signals.move_to_root(motion, model.p_root_imu)
        if not with_attitude:  # only the side on which a small ball touches the ground
            a = motion.specific_force
            for i in range(3):
                motion.up[i] = a[i] / math.sqrt(dot(a, a) + 1e-12)
        monitors.without_accelerometer = 0.0
        return Outcome.UPDATED
    if not with_attitude:
        return Outcome.NO_ATTITUDE
    monitors.without_accelerometer = 1.0
    newton_euler(
        model.bodies,
        motion.q,
        motion.qd,
        motion.qdd,
        RootMotion(motion.omega, motion.omega_dot, np.zeros(3)),
        base.links,
        base.torque,
    )
    if not contact.set_acceleration_from_feet(model, base.links, motion, memory):
        return Outcome.NO_CONTACT
    return Outcome.UPDATED


@njit
def _end_window(up: Array, memory: FilterMemory, dt: float, settings: Settings) -> None:
    """Ends a quarter stride: the other diagonal is up, or half of the usual half stride is over.

    By the height of the feet and not by forces: where the trunk tilts, feet touch the ground in
    their swing. Both diagonals have the same mean height on four feet, however the trunk is
    tilted.
    """
    monitors, points, (first, second) = memory.monitors[0], memory.forces.point, PAIRS
    monitors.half_stride += dt
    monitors.window += dt
    above = dot(up, points[first[0]]) + dot(up, points[first[1]])
    height = 0.5 * (above - dot(up, points[second[0]]) - dot(up, points[second[1]]))
    # a robot that stands is tested for a payload by windows of 1.5 s
    ended = monitors.half_stride >= 1.5
    if abs(height) > settings.lifted:
        airborne = 1.0 if height > 0.0 else 2.0
        ended |= airborne != monitors.airborne
        monitors.airborne = airborne
    whole = monitors.window >= monitors.half_stride
    middle = whole and monitors.half_stride >= 0.5 * monitors.usual > 0.0
    monitors.ended = monitors.window if ended or middle else 0.0
    if ended:
        monitors.usual, monitors.half_stride = monitors.half_stride, 0.0
    if ended or middle:
        monitors.window = 0.0


@njit
def _update(
    time: float,
    dt: float,
    gap: float,
    motion: FilteredMotion,
    settings: Settings,
    memory: FilterMemory,
    base: Rows,
) -> Outcome:
    """Updates the state with the base rows and those of the legs in swing.

    While the frame rings, the base rows are not used: the accelerometer's readings are regressors
    of the first moment, and those to which no force belongs would seem to excite it.
    """
    monitors, x, P = memory.monitors[0], memory.x, memory.P
    without = monitors.without_accelerometer > 0.0
    if without:
        force = (x[MASS] + base.links.mass[0]) * settings.feet_noise
        reach = settings.moment_noise / settings.force_noise
        for i in range(6):
            base.noise[i, i] += (force if i < 3 else force * reach) ** 2
        base.H[:, DELAY : SCALE + 3] = 0.0
        base.joint_rows[:, :, DELAY : SCALE + 3] = 0.0
    update.whiten(base)
    rings = monitors.shock > settings.quiet
    if not rings:
        update.add_to_window(
            base.H, base.residual, x, monitors.information, monitors.weighted
        )
    held = np.zeros(STATES, dtype=np.bool_)
    _hold(dt, gap, base, settings, memory, held)
    frozen = time < monitors.frozen_until
    if frozen:
        held[TRUNK_STATES:] = True
    if not rings:
        before = monitors.variance
        d2 = update.update_states(
            base.H, base.residual, before, settings.gate, held, x, P
        )
        square = before * d2 * settings.correlation**2 / 6.0
        gross = 10.0 if d2 > settings.outlier else 1.0
        # low pass of 1 s of the variance factor, which is bounded
        weight = min(gross * dt, 1.0)
        level = before + weight * (min(square, 100.0) - before)
        monitors.variance = max(level, 1.0)
    for leg in range(len(base.known)):
        swings = base.known[leg] and memory.forces.swings[leg] and not frozen
        if swings and contact.is_lifted(leg, motion.up, memory, settings):
            _use_swing(leg, settings, base, held, x, P)
    return Outcome.UPDATED


@njit
def _hold(
    dt: float,
    gap: float,
    base: Rows,
    settings: Settings,
    memory: FilterMemory,
    held: Flags,
) -> None:
    """Marks the states that the motion does not excite."""
    monitors, P = memory.monitors[0], memory.P
    variances = signals.filtered_variances(
        settings.bandwidth, settings.accelerometer_noise, settings.gyro_noise, gap
    )
    variances[0] += (P[BIAS, BIAS] + P[BIAS + 1, BIAS + 1]) / 2.0
    if monitors.without_accelerometer > 0.0:
        variances[0] += settings.feet_noise**2
    window = min(dt / 0.3, 1.0)  # s, average of the excitation
    update.hold_unexcited(base, variances, window, EXCITED, memory.excitation, held)
    stationary = held[INERTIA] and held[INERTIA + 1]
    monitors.stationary = monitors.stationary + dt if stationary else 0.0
    if monitors.stationary > 2.0:  # s: no sensor's error is distinguishable
        held[TRUNK_STATES:] = True


@njit
def _use_swing(
    leg: int, settings: Settings, base: Rows, held: Flags, x: Array, P: Array
) -> None:
    """Updates the state with the joints of a leg in swing, which carry only the leg."""
    H = base.joint_rows[leg]
    residual = base.legs.residual[leg].copy()
    for j in range(3):
        for c in range(STATES):
            residual[j] -= H[j, c] * x[c]
            H[j, c] /= base.swing_std[leg, j]
        residual[j] /= base.swing_std[leg, j]
    update.update_states(H, residual, 1.0, settings.gate, held, x, P)
