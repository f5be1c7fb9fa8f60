"""Compiled: warns of a fall by the divergent component of motion (DCM).

With the CoM c, omega = sqrt(g / h) and the CoP z of the measured wrenches, an observer with two
equal poles estimates the DCM xi = c + c' / omega and the disturbance d that drives it in
addition to the feet (a push):

    xi' = omega (xi - z) + d;    xi(T) = z + (xi - z) e^(omega T) + d / omega (e^(omega T) - 1)

It warns when one of these lasts for 10 ms:
- xi(0.2 / omega), or xi(0.35 / omega) while the sole with the highest load rolls, is outside the
hull of all soles, where soles in the air are projected to the ground at their position by then.
Not while that sole turns back to flat, since the CoP jumps as it comes down, as in a touch-down;
- the sole with the highest load tips, xi is outside the hull of the loaded soles, and xi(0.5 /
omega) will be outside that of all soles. The CoP stays where it is until the next sole can land,
and does no harm from then on: the push alone drives xi;
- that sole tips so that it will be tilted by 10 degrees within 0.25 s, before another sole can
land; or by 6 degrees within 0.1 s, by its rate, wherever xi is.

A touch-down causes a spurious push and a spurious CoP for a moment, and suspends all three.
Tilts are measured from the mean normal of the loaded sole in the last seconds, such as that of a
slope.

The module also finds encoders that repeat their last reading. One that moved or jittered at most
samples and then stays the same to the last bit for 50 ms is stuck, until it changes. An encoder
with coarse steps may rest like that: it is stuck only where it has stopped from speed within a
sample. A position whose changes d_k are large and followed by the opposite ones, so that the mean
of -d_k d_k-1 over that of d_k^2 is 1 (two drivers in turn) or 1/2 (at random, as in white noise),
jumps between two drivers' values. A foot's wrench that stays the same to the last bit while the
other's changes is frozen, if it carries load or has always changed in the air so far: sensors with
a threshold do not.
"""

from math import pi
from typing import NamedTuple

import numpy as np
from numba import njit

from com_estimation.humanoid.step import Memory, give
from com_model.arrays import Array, Indices
from com_model.compiled import compiled
from com_model.contact import RELEASE_LOAD
from com_model.dynamics import GRAVITY
from com_model.geometry.hull_kernels import set_hull, signed_distance
from com_model.geometry.vector_kernels import dot


class FallOptions(NamedTuple):
    """When to warn of a fall.

    Attributes:
        observer: rad/s, both poles.
        tipping_ahead: omega T, for which the DCM is predicted while the sole with the highest load
            tips.
        tips: rad of a sole, above which it tips.
        roll_rate: rad/s, with which a sole rolls.
        least_height: m, lower bound of the CoM's height in omega.
        slope_time: s, over which the usual normal of the loaded sole is averaged.
    """

    observer: float = 45.0
    tipping_ahead: float = 0.5
    tips: float = 0.2 * pi / 180.0
    roll_rate: float = 5.0 * pi / 180.0
    least_height: float = 0.1
    slope_time: float = 4.0


FALL = FallOptions()


class FallState(NamedTuple):
    """State of `watch_fall` between samples, of f feet; arrays that it overwrites.

    Attributes:
        xi: (2,) m, DCM.
        margin: (1,) m, distance of the DCM to the hull of all soles, positive inside.
        endangered: (1,) s, time in danger; below 0 after a touch-down.
        model_xi: (2,) m, DCM of the model's CoM; the first is NaN to start the observer.
        push: (2,) m/s.
        slope: (2,) usual normal of a loaded sole.
        cop: (2,) m.
        place: (f, 2) m, position of each sole in W.
        velocity: (f, 2) m/s.
        angle: (f,) rad, tilt of each sole.
        rate: (f,) rad/s.
        bend: (f,) rad/s^2.
        height: (f,) m, of the lowest corner.
        climb: (f,) m/s.
    """

    xi: Array
    margin: Array
    endangered: Array
    model_xi: Array
    push: Array
    slope: Array
    cop: Array
    place: Array
    velocity: Array
    angle: Array
    rate: Array
    bend: Array
    height: Array
    climb: Array


def make_fall_state(feet: int) -> FallState:
    """Initial state of `watch_fall`.

    Args:
        feet: f, the number of feet.
    """
    shapes = (2, 1, 1, 2, 2, 2, 2, (feet, 2), (feet, 2), *[feet] * 5)
    return FallState(*(np.zeros(shape) for shape in shapes))


class Soles(NamedTuple):
    """Corners of the soles of f feet, concatenated; foot f has the rows where foot == f.

    Attributes:
        corners: (k, 3) m, in the frame of their sole.
        foot: (k,) index of the foot of each corner.
        flat: (f,) 1 for a foot with three corners or more, whose tilt counts; else 0.
        weight: N, of the robot.
    """

    corners: Array
    foot: Indices
    flat: Array
    weight: float


@compiled()
def watch_fall(
    soles: Soles, memory: Memory, offset: Array, dt: float, state: FallState
) -> bool:
    """Updates the divergent component of motion (DCM) and the soles; decides on a warning.

    Args:
        soles: corners of the soles, and the robot's weight.
        memory: poses, CoM and wrenches of this sample and of the one before, set by `step`.
        offset: (3,) m, correction of the model's CoM, axes of W.
        dt: s since the sample before.
        state: changed.

    Returns:
        Whether to warn.
    """
    m, first, total, ground = memory, np.isnan(state.model_xi[0]), 0.0, 0.0
    force, moment, loaded = np.zeros(3), np.zeros(2), 0
    if first:
        state.endangered[:] = state.push[:] = state.slope[:] = state.cop[:] = 0.0
        state.place[:] = state.velocity[:] = state.angle[:] = state.rate[:] = 0.0
        state.bend[:] = state.height[:] = state.climb[:] = 0.0
    for f in range(len(m.load)):
        load = max(m.load[f], 0.0)
        ground, total = ground + load * (m.sole[1, f, 2] + m.root[2]), total + load
        loaded = f if m.load[f] > m.load[loaded] else loaded
        for i in range(3):
            force[i] += m.wrench[1, f, i]
        for i in range(2):
            moment[i] += m.wrench[1, f, 3 + i]
    for i in range(2):
        change = m.R_sole[loaded, i, 2] - state.slope[i]
        state.slope[i] += change * (1.0 if first else dt / FALL.slope_time)
    for f in range(len(m.load)):
        _follow_sole(soles, m, f, first, dt, state)
    # N, upwards: with less there is no CoP, in the air or by a sensor's wrong sign
    if force[2] < 1.0:
        state.endangered[0], state.model_xi[0], state.margin[0] = 0.0, np.nan, np.nan
        return False
    ground = ground / total if total > 0.0 else m.total[1, 2] - FALL.least_height
    omega = np.sqrt(
        GRAVITY / max(m.total[1, 2] + offset[2] - ground, FALL.least_height)
    )
    state.cop[0] = (ground * force[0] - moment[1]) / force[2]
    state.cop[1] = (ground * force[1] + moment[0]) / force[2]
    gain = 1.0 - np.exp(-2.0 * FALL.observer * dt)
    for i in range(2):
        c, xi, push = m.total[1, i], state.model_xi[i], state.push[i]
        measured = c + (c - m.total[0, i]) / (omega * dt)
        xi = measured if first else xi + dt * (omega * (xi - state.cop[i]) + push)
        state.model_xi[i] = xi + gain * (measured - xi)
        state.push[i] = push + FALL.observer**2 * dt * (measured - xi)
        state.xi[i] = state.model_xi[i] + offset[i]
    state.margin[0] = _margin_ahead(soles, m, state, omega, 0.0, 0.0, -np.inf)
    angle, rate, landing = state.angle[loaded], state.rate[loaded], np.inf
    least = RELEASE_LOAD * soles.weight
    for f in range(len(m.load)):
        if m.load[f] < least:
            above = state.height[loaded] - state.height[f]
            climb = state.climb[loaded] - state.climb[f]
            # m/s^2, with which a sole in the air can be lowered
            landing = min(landing, _time_until(above, climb, 2.5))
    flat = soles.flat[loaded] > 0.0
    # rad of a sole, above which it rolls
    rolls = flat and angle > 0.5 * pi / 180.0 and rate > FALL.roll_rate
    returns = flat and rate < -FALL.roll_rate
    # omega T, for which the DCM is predicted, also while the sole with the highest load rolls
    ahead = 0.35 if rolls else 0.2
    beyond = _margin_ahead(soles, m, state, omega, ahead, ahead, -np.inf) < 0.0
    danger = beyond and not returns
    danger |= (
        # rad of a sole, above which its rate alone counts: within 0.1 s, to the tilt of a fall
        flat and angle > pi / 180.0 and angle + 0.1 * rate > 6.0 * pi / 180.0
    )
    # rad/s, with which a sole tips
    tips = flat and angle > FALL.tips and rate > 6.0 * pi / 180.0
    if tips and _margin_ahead(soles, m, state, omega, 0.0, 0.0, least) < 0.0:
        held = min(omega * landing, FALL.tipping_ahead)
        danger |= (
            _margin_ahead(soles, m, state, omega, FALL.tipping_ahead, held, -np.inf)
            < 0.0
        )
        # rad, predicted tilt of a sole that tips, which is a fall
        tilted = _time_until(angle - 10.0 * pi / 180.0, rate, state.bend[loaded])
        # s, within which
        danger |= tilted < min(0.25, landing)
    # of the weight, force of a touch-down
    if force[2] > 1.5 * soles.weight:
        # s, for which its effects last
        state.endangered[0] = -0.02
    else:
        counts = danger or state.endangered[0] < 0.0
        state.endangered[0] = state.endangered[0] + dt if counts else 0.0
    # s, for which the danger must last
    return state.endangered[0] >= 0.01


@njit
def _time_until(below: float, rate: float, bend: float) -> float:
    """Time T, s, at which below + rate T + bend T^2 / 2 reaches 0 from below; inf: never."""
    square = rate * rate - 2.0 * bend * min(below, 0.0)
    speed = rate + np.sqrt(max(square, 0.0))
    return -2.0 * min(below, 0.0) / speed if square >= 0.0 and speed > 0.0 else np.inf


@njit
def _follow_sole(
    soles: Soles, m: Memory, f: int, first: bool, dt: float, state: FallState
) -> None:
    """Updates the low-passed velocity of a sole, its tilt from the usual normal, and its height."""
    # 10 Hz: of the soles' rates, one pole
    gain = 0.0 if first else (1.0 - np.exp(-2.0 * pi * 10.0 * dt))
    for i in range(2):
        place = m.root[i] + m.sole[1, f, i]
        state.velocity[f, i] += gain * (
            (place - state.place[f, i]) / dt - state.velocity[f, i]
        )
        state.place[f, i] = place
    away = np.hypot(
        m.R_sole[f, 0, 2] - state.slope[0], m.R_sole[f, 1, 2] - state.slope[1]
    )
    tilt = np.arcsin(min(away, 1.0)) if m.R_sole[f, 2, 2] > 0.0 else 0.5 * pi
    change = gain * ((tilt - state.angle[f]) / dt - state.rate[f])
    state.bend[f] += gain * (change / dt - state.bend[f])
    state.rate[f] += change
    state.angle[f] = tilt
    height = np.inf
    for n in range(len(soles.foot)):
        if soles.foot[n] == f:
            height = min(height, dot(m.R_sole[f, 2], soles.corners[n]))
    height += m.root[2] + m.sole[1, f, 2]
    state.climb[f] += gain * ((height - state.height[f]) / dt - state.climb[f])
    state.height[f] = height


@njit
def _margin_ahead(
    soles: Soles,
    m: Memory,
    state: FallState,
    omega: float,
    ahead: float,
    held: float,
    least: float,
) -> float:
    """Distance of the DCM at ahead / omega to the hull of the soles where they are then, m.

    The CoP drives it until held / omega; soles with less than `least` N do not count.
    """
    k, time, count = len(soles.foot), ahead / omega, 0
    points, hull, xi = np.empty((k, 2)), np.empty((2 * k + 1, 2)), np.empty(2)
    for n in range(k):
        f = soles.foot[n]
        if m.load[f] < least:
            continue
        moves = time if m.load[f] < RELEASE_LOAD * soles.weight else 0.0
        for i in range(2):
            place = state.place[f, i] + moves * state.velocity[f, i]
            points[count, i] = place + dot(m.R_sole[f, i], soles.corners[n])
        count += 1
    for i in range(2):
        xi[i] = state.xi[i] + (np.exp(held) - 1.0) * (state.xi[i] - state.cop[i])
        xi[i] += (np.exp(ahead) - 1.0) * state.push[i] / omega
    return signed_distance(hull, set_hull(points[:count], hull), xi[0], xi[1])


LAST, DWELL, MOVED, SPEED, LEAST, STUCK, CHANGE, SQUARE, PRODUCT = range(9)


def make_watch(joints: int) -> Array:
    """Initial state of `find_stuck`.

    Args:
        joints: n, the number of joints.

    Returns:
        (9, n): last reading, s since it changed, fraction of samples in which it moved, mean
        speed, smallest step seen, 1 if stuck, last change, mean of its square and of minus its
        product with the one before.
    """
    watch = np.zeros((9, joints))
    watch[LAST], watch[LEAST] = np.nan, np.inf
    return watch


@compiled()
def find_stuck(
    q: Array, matters: Array, dt: float, watch: Array
) -> tuple[int, int, bool]:
    """Looks for joints whose encoder repeats a reading although the joint moves, or jumps.

    Args:
        q: (n,) readings, rad or m.
        matters: (n,) 1 for the joints that are watched, else 0.
        dt: s since the sample before.
        watch: (9, n) state, see `make_watch`; changed.

    Returns:
        Index of the first stuck joint among those watched, or -1; of the first one that jumps, or
        -1; and whether a watched joint
        that moved all the time has just stopped.
    """
    # 0.1 s: averaging of a reading's motion
    gain, found, jumping, stopped = min(dt / 0.1, 1.0), -1, -1, False
    for j in range(len(q)):
        change = q[j] - watch[LAST, j]
        watch[LAST, j] = q[j]
        if not np.isfinite(change):
            continue
        size, before = abs(change), watch[CHANGE, j]
        watch[CHANGE, j] = change
        watch[SQUARE, j] += gain * (change**2 - watch[SQUARE, j])
        watch[PRODUCT, j] += gain * (-change * before - watch[PRODUCT, j])
        # rad or m, rms change of a position from sample to sample, above which it may jump: that
        # moves the CoM by a few mm; encoders jitter by 1e-5 to 5e-4
        large = watch[SQUARE, j] > 2e-3**2 and matters[j] > 0.0
        # mean of -d_k d_k-1 over that of d_k^2, above which it does: a vibration at a quarter of
        # the sampling rate has 0, white noise and two drivers 0.5 and more
        if large and watch[PRODUCT, j] > 0.4 * watch[SQUARE, j]:
            jumping = j if jumping < 0 else jumping
        if size > 0.0:
            watch[DWELL, j], watch[STUCK, j] = 0.0, 0.0
            watch[LEAST, j] = min(watch[LEAST, j], size)
        else:
            watch[DWELL, j] += dt
        # rad or m, smallest step of an encoder that may rest; fraction of samples in which a
        # reading that cannot rest has moved
        fine = watch[LEAST, j] < 1e-6 and watch[MOVED, j] > 0.7
        if (
            matters[j]
            # rad/s or m/s, from which a position has stopped within a sample
            and (fine or watch[SPEED, j] > 0.1)
            # s that a position which moved may stay the same
            and watch[DWELL, j] > 0.05
        ):
            watch[STUCK, j] = 1.0
        if watch[STUCK, j] > 0.0 and found < 0:
            found = j
        stopped |= matters[j] > 0.0 and fine and watch[DWELL, j] > 1.5 * dt
        if size > 0.0 or not fine:
            # rad or m: less is no motion
            watch[MOVED, j] += gain * ((size > 1e-7) - watch[MOVED, j])
            watch[SPEED, j] += gain * (size / dt - watch[SPEED, j])
    return found, jumping, stopped


@compiled()
def take_out_give(
    q: Array,
    found: Array,
    dt: float,
    joints: Indices,
    torque: Array,
    light: float,
    given: Array,
    loads: Array,
    bent: Array,
) -> float:
    """Takes what the legs' joints give out of the positions, and follows their usual torques.

    Args:
        q: (n,) positions, rad or m.
        found: (2,) rad/(N m) and rad, flexibility and backlash as inferred.
        dt: s since the sample before.
        joints: (j,) indices of the legs' joints in q.
        torque: (j,) N m, theirs at the sample before.
        light: N m, see step.Blocks.
        given: (2,) those in use, changed.
        loads: (j,) N m, mean torques of the last 4 s; NaN to start; changed.
        bent: (n,) positions less what the joints give, set.

    Returns:
        The largest difference of a torque to its mean, N m.
    """
    most = 0.0
    for i in range(2):
        # 1 s, time constant: a step of the positions would be a step of the CoM; a window of
        # 0.24 s must see nearly constant values
        given[i] += (found[i] - given[i]) * dt / 1.0
    bent[:] = q
    for k in range(len(joints)):
        flexes, sides = give(torque[k], light)
        bent[joints[k]] -= given[0] * flexes + given[1] * sides
        if np.isnan(loads[k]):
            loads[k] = torque[k]
        most = max(most, abs(torque[k] - loads[k]))
        loads[k] += (torque[k] - loads[k]) * dt / FALL.slope_time
    return most


@compiled()
def find_frozen(wrenches: Array, dt: float, weight: float, watch: Array) -> int:
    """Looks for a foot whose wrench stays the same: under load, or though it changed in the air.

    Args:
        wrenches: (f, 6) N, N m.
        dt: s since the sample before.
        weight: N, of the robot.
        watch: (f, 8) last wrench, s since it changed, and s for which it has changed all the time
            without load (below 0 where it has not); zeros at first; changed.

    Returns:
        Index of the first such foot while another one changes, or -1.
    """
    found, changes = -1, False
    for f in range(len(wrenches)):
        own, same = watch[f], True
        loaded = np.sqrt(dot(own, own)) > RELEASE_LOAD * weight
        for i in range(6):
            same &= wrenches[f, i] == own[i]
            own[i] = wrenches[f, i]
        if not same and not loaded:
            # s that a reading of 50 Hz repeats, and more; s for which one is watched again that
            # has stayed the same in the air, as of a sensor with a threshold
            own[7] = own[7] + own[6] + dt if own[6] < 0.03 else -5.0
        own[6] = own[6] + dt if same else 0.0
        changes |= not same
        # s that a foot's wrench may stay the same while the other one changes; s without load,
        # after which a sensor is known to change there, if it is not 0 from a threshold on
        in_air = own[7] > 0.2 and own[:6].any()
        if found < 0 and own[6] > 0.06 and (loaded or in_air):
            found = f
    return found if changes else -1
