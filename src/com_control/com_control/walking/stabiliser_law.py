"""One tick of the walking stabiliser, compiled: commanded positions of CoM and soles.

Under position servos the robot is one spring between the commanded CoM s and the real one c:

  c'' = w^2 (c - p),   p = kappa (c - s) from the middle of the stance foot,   kappa = K / (m g
  h)

with w^2 = g / h, K the stiffness of ankle servo and ground in series. With kappa > 1 it stands
without feedback; with kappa < 1 it falls, however good the plan. With the plan's CoM c_r, ZMP
p_r and DCM xi_r = c_r + c_r'/w:
- base: the IMU's attitude, and the loaded soles where they are commanded; c_k the CoM by the
joints
- c, v: c' = v + 1.4 w_o (c_k - c), v' = f / m - a + w_o^2 (c_k - c): f is the measured force
- pull: T_f a' = f / m - a - c_r'': constant horizontal force due to a tilted IMU, the bias of a
force sensor, or a pull, not due to motion
- offset: T_b b' = p + h (f - m a) / f_z - c_k - b - q_r with q_r = p_r - (c_r - c_r''/w^2): the
CoM by the wrenches relative to the model's, without the part of the swinging legs' momentum;
like the pull in the axes of the pelvis' planned heading, with which it turns
- DCM error e = c + b + v/w - xi_r; desired ZMP p_d = p_r + (1 + k_p) e + k_i int e dt
- lean: y' = 2 w (G (c + b - c_r) + (G_v / w) (v - c_r') - y); the CoM is commanded to c_r - y -
b
- ankles: theta' = -(A / (m g h)) D(tau_d - tau) - theta / T_a with A = 0.5 / (T_t kappa); a sole
that rocks on an edge or ridge, which the ZMP of its force does not leave, is rotated until it
does, by up to 0.5 rad/s, less where soles are stiff (the gain is for soles that lie flat); see
settle_sole
- forces of both feet: z_1' = -z_2' = -(A_z / 2) ((a_d1 - a_d2) - (a_1 - a_2)), a: load fractions
- late contact: a foot that the plan expects to be loaded but is not moves down, and the plan's
clock pauses; early contact: a foot that touches down before its time stops where it is
- the plan's time runs faster or slower by the lateral DCM error: law_table.find_pace
- optional: a foot lands before or behind its position by the forward DCM error: adjust_step
- ground: the loaded soles' gradient; soles are commanded parallel to it, the next foothold on it
- optional heading: soles that rotate on the ground, by the IMU, are commanded there: turn_feet
"""

from math import atan2, cos, exp, hypot, sin

import numpy as np
from numba import njit

from com_control.walking.law_table import (
    LAW,
    Body,
    ControllerState,
    Measurements,
    Place,
    Table,
    Target,
    adjust_step,
    ask_moments,
    blend,
    clip,
    find_axes,
    find_pace,
    headed,
    heading_of,
    place_of,
    rise,
    settle_sole,
    turn_feet,
)
from com_model.arrays import Array
from com_model.compiled import compiled
from com_model.contact import SWING_LOAD
from com_model.dynamics import GRAVITY
from com_model.geometry.vector_kernels import Vector, add, cross, set_product, turned


@njit
def find_feet(table: Table, i: int, f: float, state: ControllerState) -> Array:
    """Positions of the commanded soles.

    Args:
        table: the walk.
        i: index of a row.
        f: fraction of the way to the next row.
        state: offsets of the soles from the plan.

    Returns:
        (2, 3) m.
    """
    feet = state.feet.copy()
    for k in range(2):
        for j in range(3):
            feet[k, j] += blend(table.feet[:, k, j], i, f, 3)
    return feet


@njit
def load_share(table: Table, i: int, feet: Array, zmp: Array) -> float:
    """Planned load fraction of the left foot.

    Args:
        table: the walk.
        i: index of a row.
        feet: (2, 3) m, positions of the soles.
        zmp: (2,) m.

    Returns:
        0 to 1.
    """
    if table.swing[i, 0] >= 0.0:
        return 0.0
    if table.swing[i, 1] >= 0.0:
        return 1.0
    x, y = feet[0, 0] - feet[1, 0], feet[0, 1] - feet[1, 1]
    along = (zmp[0] - feet[1, 0]) * x + (zmp[1] - feet[1, 1]) * y
    return min(max(along / max(x * x + y * y, 1e-9), 0.0), 1.0)


@njit
def find_base(
    measured: Measurements,
    axes: Array,
    feet: Array,
    state: ControllerState,
    loads: Array,
) -> Array:
    """Pose of the root link: the IMU's attitude, with the loaded soles where they are commanded.

    Args:
        measured: measurements.
        axes: (2, 3, 3) commanded orientations of the soles.
        feet: (2, 3) m, planned positions of the soles.
        state: offsets of the soles; its heading is set.
        loads: (2,) load fractions.

    Returns:
        [R p] (3, 4) in the walk's frame.
    """
    R, soles, pose = measured.R_imu, measured.soles, np.zeros((3, 4))
    turn_s = turn_c = 0.0
    for k in range(2):
        x, y, _ = turned(R, soles[k, :, 0])
        aim = axes[k]
        turn_c += loads[k] * (aim[0, 0] * x + aim[1, 0] * y)
        turn_s += loads[k] * (aim[1, 0] * x - aim[0, 0] * y)
    state.heading[1], size = atan2(turn_s, turn_c), max(hypot(turn_c, turn_s), 1e-9)
    c, s = turn_c / size, turn_s / size
    for j in range(3):
        x, y = R[0, j], R[1, j]
        pose[0, j], pose[1, j], pose[2, j] = c * x - s * y, s * x + c * y, R[2, j]
    for k in range(2):
        at = turned(pose, soles[k, :, 3])
        for j in range(3):
            pose[j, 3] += loads[k] * (feet[k, j] + state.feet[k, j] - at[j])
    return pose


@njit
def total_wrench(
    measured: Measurements, base: Array, feet: Array, normals: Array
) -> tuple[Vector, Vector]:
    """Wrench of the ground about the walk frame's origin.

    Args:
        measured: measurements.
        base: (3, 4) pose of the root link.
        feet: (2, 3) m, positions of the soles.
        normals: (2, 3) set to the soles' normals.

    Returns:
        Force N and moment N m, walk's axes.
    """
    force, moment, R = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), np.empty((3, 3))
    for k in range(2):
        set_product(base, measured.soles[k], R)
        normals[k, 0], normals[k, 1], normals[k, 2] = R[0, 2], R[1, 2], R[2, 2]
        F, M = turned(R, measured.wrenches[k]), turned(R, measured.wrenches[k, 3:])
        force, moment = add(force, F), add(moment, add(M, cross(feet[k], F)))
    return force, moment


@njit
def move_feet(
    body: Body,
    table: Table,
    ahead: Place,
    dt: float,
    state: ControllerState,
    target: Target,
    left: float,
) -> bool:
    """Handles contact: early landing, search for the ground, the next foothold.

    Args:
        body: properties of the robot.
        table: the walk.
        ahead: row of the table at the time of the command.
        dt: s, since the last tick.
        state: changed.
        target: loads and DCM of this tick.
        left: planned load fraction of the left foot.

    Returns:
        Whether the plan must wait for a foot.
    """
    waits, loads, e = False, target.loads, target.estimate[5:7] - target.estimate[7:9]
    i, f = ahead
    c, sine = heading_of(table, i)
    places = find_feet(table, i, f, state)
    for k in range(2):
        s = table.swing[i, k]
        other = 1 - k
        state.unloaded[k] = 0.0 if loads[k] > SWING_LOAD else state.unloaded[k] + dt
        if s < 0.0:
            state.held[k, 3] = state.further[k] = 0.0
            low = (
                state.feet[other, 2] - state.feet[k, 2] < LAW.search_depth * body.height
            )
            if (
                state.unloaded[k] > LAW.patience
                and low
                and (left, 1.0 - left)[k] > LAW.expected_load
            ):
                state.feet[k, 2] -= LAW.search_speed * body.height * dt
                waits = True
            continue
        s += f * table.dt / table.swing_time
        if state.held[k, 3] > 0.0 and state.unloaded[k] > LAW.patience:
            state.held[k, 3] = 0.0
        if state.held[k, 3] == 0.0 and s > 0.5 and loads[k] > LAW.landed_load:
            state.held[k, :3], state.held[k, 3] = places[k], 1.0
        if state.held[k, 3] > 0.0:
            for j in range(3):
                state.feet[k, j] += state.held[k, j] - places[k, j]
            state.further[k] = c * state.feet[k, 0] + sine * state.feet[k, 1]
            continue
        now = rise(s)
        part = (rise(s + dt / table.swing_time) - now) / max(1.0 - now, 1e-6)
        if body.adjusts and s < LAW.latest:
            goal = adjust_step(
                body, k, (1.0 - s) * table.swing_time, c * e[0] + sine * e[1]
            )
            state.further[k] += min(dt / LAW.adjust_time, 1.0) * (
                goal - state.further[k]
            )
        height = state.feet[other, 2]  # on the slope through the other foot
        for j, way in enumerate((c, sine)):
            height += state.slope[j] * (
                table.goals[i, k, j] - table.feet[i, other, j, 3]
            )
            state.feet[k, j] += min(part, 1.0) * (
                way * state.further[k] - state.feet[k, j]
            )
        state.feet[k, 2] += min(part, 1.0) * (height - state.feet[k, 2])
        state.turns[k] -= min(part, 1.0) * state.turns[k]
    return waits


@njit
def move_ankles(
    body: Body, dt: float, state: ControllerState, wrenches: Array, asked: Array
) -> None:
    """Ankle admittance: tilts the soles by the difference of desired and measured moments.

    Args:
        body: properties of the robot.
        dt: s, since the last tick.
        state: its tilts are changed.
        wrenches: (2, 6) N and N m, at the soles.
        asked: (2, 2) m, points of each sole at which its force should act.
    """
    weight = body.mass * GRAVITY
    for k in range(2):
        load = max(wrenches[k, 2], 0.0)
        for j in range(2):
            if not load > SWING_LOAD * weight:
                state.rocks[k, j, :] = 0.0
                state.tilts[k, j] -= min(dt / 0.16, 1.0) * state.tilts[k, j]
                continue
            # across the axis
            low, high = body.soles[k, 2 - 2 * j], body.soles[k, 3 - 2 * j]
            sign, most = 1 - 2 * j, load * 0.5 * (high - low)
            error = sign * load * asked[k, 1 - j] - wrenches[k, 3 + j]
            error -= clip(error, 0.1 * most)  # a dead zone
            at = sign * wrenches[k, 3 + j] / most
            A = LAW.ankle / (body.dead_time * body.kappa[j])
            fed_back = 0.5 * (high - low) * A / body.height
            most_speed = min(LAW.settle_speed, LAW.settle_tilts / LAW.ankle * fed_back)
            speed = max(most_speed - fed_back, 0.0)
            rocks = state.rocks[k, j]
            further = settle_sole(speed, error / most, at, dt, body.dead_time, rocks)
            rate = (
                -A / (weight * body.height) * error - state.tilts[k, j] / LAW.ankle_leak
            )
            state.tilts[k, j] = clip(
                state.tilts[k, j] + rate * dt + further, LAW.max_tilt
            )


@njit
def find_slope(
    part: float, state: ControllerState, loads: Array, normals: Array, feet: Array
) -> None:
    """Follows the ground's slope by the loaded soles; standing feet rise and sink with it.

    Args:
        part: 0 to 1, low-pass gain of this tick.
        state: slope and feet are changed.
        loads: (2,) load fractions.
        normals: (2, 3) of the soles.
        feet: (2, 3) m, positions of the soles.
    """
    for j in range(2):
        gradient = total = 0.0
        for k in range(2):
            if loads[k] > LAW.landed_load:
                gradient -= loads[k] * normals[k, j] / max(normals[k, 2], 0.1)
                total += loads[k]
        if total > 0.0:
            change = (clip(gradient / total, LAW.steepest) - state.slope[j]) * part
            state.slope[j] += change
            middle = loads[0] * feet[0, j] + loads[1] * feet[1, j]
            for k in range(2):
                state.feet[k, 2] += change * (feet[k, j] - middle)


@njit
def update_offset(
    h: float,
    heading: tuple[float, float],
    dt: float,
    time: float,
    state: ControllerState,
    away: Array,
) -> None:
    """Updates the CoM's offset and the pull by the residuals of the measured wrenches.

    Args:
        h: m, height of the CoM.
        heading: cosine and sine of the pelvis' heading.
        dt: s, since the last tick.
        time: s, time constant of the pull.
        state: offset and pull are changed.
        away: (2, 2) m and m/s^2, residuals along x and y.
    """
    part, offset = min(dt / LAW.offset_time, 1.0), state.offset
    for j, rest in enumerate(headed((heading[0], -heading[1]), away[0])):
        rest = clip(rest, LAW.max_surprise * h)
        offset[0, j] = clip(offset[0, j] + part * rest, LAW.max_offset * h)
        offset[1, j] += 0.3 * part * (rest * rest - offset[1, j])
    for j, rest in enumerate(headed((heading[0], -heading[1]), away[1])):
        change = min(dt / time, 1.0) * clip(rest, LAW.max_surprise * GRAVITY)
        state.pull[j] = clip(state.pull[j] + change, LAW.max_pull * GRAVITY)


@njit
def command(
    table: Table, t: float, state: ControllerState, target: Target, leaning: Array
) -> None:
    """Sets CoM, soles and pelvis for a time of the plan.

    Args:
        table: the walk.
        t: s.
        state: offsets, tilts and slope.
        target: set.
        leaning: (2,) m, displacement of the commanded CoM.
    """
    i, f = place_of(table, t)
    feet, zmp = find_feet(table, i, f, state), np.empty(2)
    b = headed(heading_of(table, i), state.offset[0])
    for j in range(2):
        zmp[j] = blend(table.zmp, i, f, j)
        target.com[j] = blend(table.com, i, f, j) + leaning[j] - b[j]
    share = load_share(table, i, feet, zmp)
    level = share * state.feet[0, 2] + (1.0 - share) * state.feet[1, 2]
    target.com[2] = blend(table.com, i, f, 2) + level
    target.R_pelvis[:] = table.R_pelvis[i]
    turn, axes = np.empty((3, 3)), find_axes(table, i, state.turns)
    for k in range(2):
        R, slope = axes[k], state.slope
        pitch = state.tilts[k, 1] - slope[0] * R[0, 0] - slope[1] * R[1, 0]
        roll = state.tilts[k, 0] + slope[0] * R[0, 1] + slope[1] * R[1, 1]
        cp, sp, cr, sr = cos(pitch), sin(pitch), cos(roll), sin(roll)
        turn[0, 0], turn[0, 1], turn[0, 2] = cp, sp * sr, sp * cr
        turn[1, 0], turn[1, 1], turn[1, 2] = 0.0, cr, -sr
        turn[2, 0], turn[2, 1], turn[2, 2] = -sp, cp * sr, cp * cr
        set_product(R, turn, target.feet[k])
        target.feet[k, :, 3] = feet[k]


@compiled()
def follow_plan(
    table: Table, dt: float, lead: float, state: ControllerState, target: Target
) -> None:
    """Continues without measurements: what feedback has changed fades away.

    The offset of the CoM stays: it was found slowly.

    Args:
        table: the planned walk.
        dt: s, since the last tick.
        lead: s, from the last measurement to the time that the command is for.
        state: state, overwritten.
        target: result, set; the estimate stays as it was.
    """
    rest = exp(-dt / LAW.fade_time)
    for j in range(2):
        state.lean[j] *= rest
        state.integral[j] *= rest
        state.further[j] *= rest
        state.slope[j] *= rest
        state.turns[j] *= rest
        state.unloaded[j] = state.held[j, 3] = 0.0
        state.rocks[j, :, :] = 0.0
        for k in range(2):
            state.tilts[j, k] *= rest
        for k in range(3):
            state.feet[j, k] *= rest
    leaning = np.empty(2)
    for j in range(2):
        leaning[j] = -state.lean[j]
    command(table, state.phase[0] + lead, state, target, leaning)
    state.phase[3] += clip(1.0 - state.phase[3], dt / LAW.rate_time)
    last = table.dt * (len(table.com) - 1)
    state.phase[0] = min(state.phase[0] + state.phase[3] * dt, last)


@compiled()
def tick(
    body: Body,
    table: Table,
    measured: Measurements,
    dt: float,
    lead: float,
    state: ControllerState,
    target: Target,
) -> None:
    """Processes a measurement.

    Args:
        body: mass, height and ankles of the robot.
        table: the planned walk.
        measured: measurements.
        dt: s, since the last one.
        lead: s, from the measurement to the time that the command is for.
        state: state, overwritten.
        target: result, set.
    """
    h, weight = body.height, body.mass * GRAVITY
    w = (GRAVITY / h) ** 0.5
    t = state.phase[0]
    i, f = place_of(table, t)
    feet, zmp, loads = find_feet(table, i, f, state), np.empty(2), np.empty(2)
    for j in range(2):
        zmp[j] = blend(table.zmp, i, f, j)
    planned = load_share(table, i, feet, zmp)
    known = np.isfinite(measured.wrenches).all()
    for k in range(2):
        target.loads[k] = (
            max(measured.wrenches[k, 2], 0.0) / weight if known else np.nan
        )
    carried = target.loads[0] + target.loads[1]
    for k, by_plan in enumerate((planned, 1.0 - planned)):
        loads[k] = target.loads[k] / carried if known and carried > 0.1 else by_plan
    axes, normals = find_axes(table, i, state.turns), np.empty((2, 3))
    base = find_base(measured, axes, table.feet[i, :, :, 3], state, loads)
    force, moment = total_wrench(measured, base, feet, normals)
    ground = loads[0] * feet[0, 2] + loads[1] * feet[1, 2]
    measured_zmp = (np.nan, np.nan)
    carries = known and force[2] > 0.1 * weight
    if carries:
        x = (ground * force[0] - moment[1]) / force[2]
        measured_zmp = x, (ground * force[1] + moment[0]) / force[2]
    fresh = state.phase[2] == 0.0
    if fresh:
        state.phase[2] = state.phase[3] = 1.0
    at = add(base[:, 3], turned(base, measured.com))
    motion, leaning, surprise = state.motion, np.empty(2), np.zeros((2, 2))
    heading, rate = heading_of(table, i), 4.0 * w
    b, pull = headed(heading, state.offset[0]), headed(heading, state.pull)
    weighs = carries and 0.8 * weight < force[2] < 1.2 * weight
    for j in range(2):
        c_r, v_r = blend(table.com, i, f, j), blend(table.com, i, f, 3 + j)
        a_r = blend(table.com, i, f, 6 + j)
        c_k = at[j]
        if fresh:
            motion[0, j], motion[1, j] = c_k, v_r
        away = c_k - motion[0, j]
        push = force[j] / body.mass - pull[j] if known else a_r
        motion[0, j] += dt * (motion[1, j] + 1.4 * rate * away)
        motion[1, j] += dt * (push + rate * rate * away)
        if weighs:
            by_wrench = measured_zmp[j] + h / force[2] * body.mass * push
            surprise[0, j] = by_wrench - c_k - (zmp[j] - c_r + a_r / (w * w)) - b[j]
            surprise[1, j] = push - a_r
        c, v = motion[0, j] + b[j], motion[1, j]
        error = c - c_r + (v - v_r) / w
        integral = state.integral[j] + LAW.integral * w * error * dt
        state.integral[j] = integral = clip(integral, LAW.max_integral * h)
        zmp[j] += (1.0 + LAW.proportional) * error + integral
        kappa = body.kappa[1 - j]
        lag = w * kappa**0.5 * body.dead_time  # where the servos resonate
        goal = LAW.lean * (c - c_r) + LAW.lean_speed / w * (v - v_r)
        goal *= min(1.0, LAW.max_lag / lag) * rise((LAW.no_lean - lag) / 0.15)
        lag *= 2.0 / (4.0 + kappa) ** 0.5
        goal *= rise((LAW.least_lean - lag) / 0.05) * (1.0 if known else 0.5)
        state.lean[j] += (1.0 - exp(-2.0 * w * dt)) * (goal - state.lean[j])
        leaning[j] = -clip(state.lean[j], LAW.max_lean * h)
        target.estimate[j], target.estimate[3 + j] = c, v
        target.estimate[5 + j], target.estimate[7 + j] = c + v / w, c_r + v_r / w
        target.estimate[9 + j] = measured_zmp[j]
    target.estimate[2] = at[2]
    moves = table.moves[0] < t < table.moves[1]
    part = min(dt / LAW.turn_time, 1.0) if moves and body.turns else 0.0
    turn_feet(part, state.heading, loads, feet, state.feet, state.turns)
    if weighs:
        update_offset(
            h, heading, dt, LAW.pull_time if moves else LAW.rest_time, state, surprise
        )
    pace = 1.0
    if moves:
        error = speed = 0.0
        for j, left in enumerate((-heading[1], heading[0])):
            error += left * (target.estimate[5 + j] - target.estimate[7 + j])
            speed += left * (
                blend(table.com, i, f, 3 + j) + blend(table.com, i, f, 6 + j) / w
            )
        pace = find_pace(
            w, h, 0.5 * (body.soles[0, 3] - body.soles[0, 2]), error, speed
        )
    waits = False
    if known:
        share = load_share(table, i, feet, zmp)
        asked = ask_moments(body.soles, axes, feet, zmp, share)
        move_ankles(body, dt, state, measured.wrenches, asked)
        both = table.swing[i, 0] < 0.0 and table.swing[i, 1] < 0.0
        if both and carries:
            change = (
                LAW.force_difference
                * h
                * dt
                * ((2.0 * share - 1.0) - loads[0] + loads[1])
            )
            state.feet[0, 2] -= 0.5 * change
            state.feet[1, 2] += 0.5 * change
        time = 2.0 if moves else 0.3
        find_slope(min(dt / time, 1.0), state, loads, normals, feet)
        ahead = place_of(table, t + lead)
        waits = move_feet(body, table, ahead, dt, state, target, planned)
        if not both:
            state.phase[1] = 0.0
    command(table, t + lead, state, target, leaning)
    if waits and state.phase[1] < LAW.max_wait:
        state.phase[1] += dt
        pace = 0.0
    state.phase[3] += clip(pace - state.phase[3], dt / LAW.rate_time)
    state.phase[0] = min(t + state.phase[3] * dt, table.dt * (len(table.com) - 1))
