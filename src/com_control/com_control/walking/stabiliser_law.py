"""One tick of the walking stabiliser, compiled: where CoM and soles are to be commanded.

Under position servos the robot is one spring between the commanded CoM s and the real one c:

  c'' = w^2 (c - p),   p = kappa (c - s) from the middle of the stance foot,   kappa = K / (m g h)

with w^2 = g / h, K the stiffness of ankle servo and ground in series. kappa > 1 stands without
feedback; kappa < 1 falls, however good the plan. With the plan's CoM c_r, ZMP p_r and DCM
xi_r = c_r + c_r'/w:

- base: the IMU's attitude, and the loaded soles where they are commanded; c_k the CoM by the joints
- c, v: c' = v + 1.4 w_o (c_k - c), v' = f / m + w_o^2 (c_k - c): f is the measured force
- offset: T_b b' = p + (h / f_z) f - c_k - b - q_r with q_r = p_r - (c_r - c_r''/w^2): what the
  wrenches say of the CoM beyond the model, less what the swinging legs' momentum explains
- DCM error e = c + b + v/w - xi_r; ZMP asked for p_d = p_r + (1 + k_p) e + k_i int e dt
- lean: y' = 2 w (G (c + b - c_r) + (G_v / w) (v - c_r') - y); the CoM is commanded to c_r - y - b
- ankles: theta' = -(A / (m g h)) D(tau_d - tau) - theta / T_a with A = 0.5 / (T_t kappa)
- forces of both feet: z_1' = -z_2' = -(A_z / 2) ((a_d1 - a_d2) - (a_1 - a_2)), a: load fractions
- a foot that is to carry and does not goes down, and the plan waits; one that lands early stays
- ground: the loaded soles' gradient; soles are commanded parallel to it, the next foothold on it
"""

from math import cos, exp, floor, hypot, sin
from typing import Any

import numpy as np
from numba import njit

from com_control.walking.stabiliser_state import Body, Memory, Sensed, Table, Target
from com_model.arrays import Array
from com_model.compiled import compiled
from com_model.dynamics import GRAVITY

CARRIES, LANDED = 0.03, 0.08  # of the weight: a foot carries at all; has landed
SHOULD_CARRY = 0.15
PATIENCE = 0.04  # s, without load, before a foot searches for the ground
RATE_TIME = 0.05  # s, in which the plan's time stops or goes on
MAX_WAIT = 0.2  # s, by which the plan waits for one step
SEARCH_SPEED, SEARCH_DEPTH = 0.12, 0.1  # of h per s, and of h
STEEPEST = 0.3  # slope
MAX_LAG = 0.5  # rad, beyond which the lean would drive the servos' resonance
MAX_SURPRISE = 0.03  # of h, of one measurement of the offset
# Gains, one set for all robots; lengths are over the CoM's height h.
PROPORTIONAL, INTEGRAL, MAX_INTEGRAL = 1.0, 0.3, 0.03  # k_p; k_i / w
LEAN, LEAN_SPEED, MAX_LEAN = 1.0, 0.3, 0.08  # G; G_v
ANKLE, ANKLE_LEAK, MAX_TILT = 0.5, 1.0, 0.25  # A T_t kappa; s, T_a; rad
FORCE_DIFFERENCE = 0.01  # A_z, 1/s
OFFSET_TIME, MAX_OFFSET = 1.5, 0.075  # s, T_b
MARGIN = 0.85  # of the sole's size, within which the ZMP is asked for


@njit
def clip(value: Any, most: Any) -> Any:
    """A number or an array within -most .. most."""
    return np.minimum(np.maximum(value, -most), most)


@njit
def rise(s: float) -> float:
    """Quintic from 0 to 1."""
    x = min(max(s, 0.0), 1.0)
    return x * x * x * (10.0 + x * (6.0 * x - 15.0))


@njit
def place_of(table: Table, t: float) -> tuple[int, float]:
    """Point of the table before a time, s, and the fraction of the way to the next one."""
    last = len(table.com) - 1
    x = min(max(t / table.dt, 0.0), float(last))
    i = min(floor(x), last - 1)
    return i, x - i


@njit
def blend(rows: Array, i: int, f: float) -> Array:
    """Value between the rows i and i + 1."""
    return rows[i] + f * (rows[i + 1] - rows[i])


@njit
def load_share(table: Table, i: int, feet: Array, zmp: Array) -> float:
    """Fraction of the weight on the left foot by which the ZMP is at (2,) m between the feet."""
    if table.swing[i, 0] >= 0.0:
        return 0.0
    if table.swing[i, 1] >= 0.0:
        return 1.0
    way = feet[0, :2] - feet[1, :2]
    along = ((zmp - feet[1, :2]) * way).sum()
    return min(max(along / max((way * way).sum(), 1e-9), 0.0), 1.0)


@njit
def find_base(sensed: Sensed, table: Table, i: int, memory: Memory, loads: Array) -> Array:
    """Pose [R p] (3, 4) of the root link: the IMU's attitude, loaded soles where commanded."""
    R, soles, pose = sensed.R_imu, sensed.soles, np.zeros((3, 4))
    turn_s = turn_c = 0.0
    for k in range(2):
        x, y = (R[0] * soles[k, :, 0]).sum(), (R[1] * soles[k, :, 0]).sum()
        aim = table.feet[i, k]
        turn_c += loads[k] * (aim[0, 0] * x + aim[1, 0] * y)
        turn_s += loads[k] * (aim[1, 0] * x - aim[0, 0] * y)
    size = max(hypot(turn_c, turn_s), 1e-9)
    c, s = turn_c / size, turn_s / size
    pose[0, :3], pose[1, :3], pose[2, :3] = c * R[0] - s * R[1], s * R[0] + c * R[1], R[2]
    for k in range(2):
        at = (pose[:, :3] * soles[k, :, 3]).sum(axis=1)
        pose[:, 3] += loads[k] * (table.feet[i, k, :, 3] + memory.feet[k] - at)
    return pose


@njit
def total_wrench(sensed: Sensed, base: Array, feet: Array, total: Array, normals: Array) -> None:
    """Sets total (6,): force (N) and moment (N m) about the frame's origin; soles' normals."""
    total[:] = 0.0
    for k in range(2):
        R = np.ascontiguousarray(base[:, :3]) @ np.ascontiguousarray(sensed.soles[k, :, :3])
        normals[k] = R[:, 2]
        F, M, p = R @ sensed.wrenches[k, :3], R @ sensed.wrenches[k, 3:], feet[k]
        total[:3] += F
        total[3] += M[0] + p[1] * F[2] - p[2] * F[1]
        total[4] += M[1] + p[2] * F[0] - p[0] * F[2]
        total[5] += M[2] + p[0] * F[1] - p[1] * F[0]


@njit
def move_feet(
    body: Body,
    table: Table,
    ahead: tuple[int, float],
    dt: float,
    memory: Memory,
    loads: Array,
    shares: tuple[float, float],
) -> bool:
    """Contact: early landing, search for the ground, the next foothold; True: the plan waits."""
    waits = False
    i, f = ahead
    places = blend(table.feet[:, :, :, 3], i, f)
    for k in range(2):
        s = table.swing[i, k]
        other = 1 - k
        memory.unloaded[k] = 0.0 if loads[k] > CARRIES else memory.unloaded[k] + dt
        if s < 0.0:
            memory.held[k, 3] = 0.0
            low = memory.feet[other, 2] - memory.feet[k, 2] < SEARCH_DEPTH * body.height
            if memory.unloaded[k] > PATIENCE and low and shares[k] > SHOULD_CARRY:
                memory.feet[k, 2] -= SEARCH_SPEED * body.height * dt
                waits = True
            continue
        s += f * table.dt / table.swing_time
        if memory.held[k, 3] > 0.0 and memory.unloaded[k] > PATIENCE:
            memory.held[k, 3] = 0.0
        if memory.held[k, 3] == 0.0 and s > 0.5 and loads[k] > LANDED:
            memory.held[k, :3] = places[k] + memory.feet[k]
            memory.held[k, 3] = 1.0
        if memory.held[k, 3] > 0.0:
            memory.feet[k] = memory.held[k, :3] - places[k]
            continue
        now = rise(s)
        part = (rise(s + dt / table.swing_time) - now) / max(1.0 - now, 1e-6)
        goal = np.zeros(3)  # on the slope through the other foot
        way = table.goals[i, k] - table.feet[i, other, :2, 3]
        goal[2] = memory.feet[other, 2] + (memory.slope * way).sum()
        memory.feet[k] += min(part, 1.0) * (goal - memory.feet[k])
    return waits


@njit
def move_ankles(body: Body, dt: float, memory: Memory, wrenches: Array, asked: Array) -> None:
    """Ankle admittance: tilts of the soles, by moments asked for at points (2, 2) m of each."""
    weight = body.mass * GRAVITY
    for k in range(2):
        load = max(wrenches[k, 2], 0.0)
        if not load > CARRIES * weight:
            memory.tilts[k] -= min(dt / 0.16, 1.0) * memory.tilts[k]
            continue
        half = 0.5 * (body.soles[k, 1::2] - body.soles[k, ::2])  # length, width
        error = load * np.array([asked[k, 1], -asked[k, 0]]) - wrenches[k, 3:5]
        error -= clip(error, 0.1 * load * half[::-1])  # a dead zone
        A = ANKLE / (body.dead_time * body.kappa)
        rate = -A / (weight * body.height) * error - memory.tilts[k] / ANKLE_LEAK
        memory.tilts[k] = clip(memory.tilts[k] + rate * dt, MAX_TILT)


@njit
def ask_moments(body: Body, table: Table, i: int, feet: Array, zmp: Array, share: float) -> Array:
    """Where in each sole its force is to act for the ZMP (2,) m: (2, 2) m."""
    low, high = body.soles[:, ::2], body.soles[:, 1::2]
    inside, asked = 0.5 * (low + high), np.empty((2, 2))
    rest = zmp.copy()  # from the middles of the soles
    for k, part in enumerate((share, 1.0 - share)):
        R = table.feet[i, k]
        rest -= part * (feet[k, :2] + R[:2, 0] * inside[k, 0] + R[:2, 1] * inside[k, 1])
    for k in range(2):
        R = table.feet[i, k]
        own = R[0, :2] * rest[0] + R[1, :2] * rest[1]
        asked[k] = inside[k] + clip(own, MARGIN * 0.5 * (high[k] - low[k]))
    return asked


@njit
def find_slope(
    dt: float, standing: bool, memory: Memory, loads: Array, normals: Array, feet: Array
) -> None:
    """Follows the ground's slope by the loaded soles; feet that stand rise and sink with it."""
    time = 0.3 if standing else 2.0
    gradient, total = np.zeros(2), 0.0
    for k in range(2):
        if loads[k] > LANDED:
            gradient -= loads[k] * normals[k, :2] / max(normals[k, 2], 0.1)
            total += loads[k]
    if total > 0.0:
        change = (clip(gradient / total, STEEPEST) - memory.slope) * min(dt / time, 1.0)
        memory.slope[:] += change
        middle = loads[0] * feet[0, :2] + loads[1] * feet[1, :2]
        memory.feet[:, 2] += (change * (feet[:, :2] - middle)).sum(axis=1)


@njit
def command(
    body: Body, table: Table, t: float, memory: Memory, target: Target, leaning: Array
) -> None:
    """Sets CoM, soles and pelvis for a time of the plan, s."""
    i, f = place_of(table, t)
    feet = blend(table.feet[:, :, :, 3], i, f) + memory.feet
    share = load_share(table, i, feet, blend(table.zmp, i, f))
    target.com[:] = blend(table.com, i, f)[:3]
    target.R_pelvis[:] = table.R_pelvis[i]
    target.com[:2] += leaning - memory.offset[0]
    target.com[2] += share * memory.feet[0, 2] + (1.0 - share) * memory.feet[1, 2]
    for k in range(2):
        R = table.feet[i, k, :, :3]
        pitch = memory.tilts[k, 1] - memory.slope[0] * R[0, 0] - memory.slope[1] * R[1, 0]
        roll = memory.tilts[k, 0] + memory.slope[0] * R[0, 1] + memory.slope[1] * R[1, 1]
        cp, sp, cr, sr = cos(pitch), sin(pitch), cos(roll), sin(roll)
        turn = np.array([[cp, sp * sr, sp * cr], [0.0, cr, -sr], [-sp, cp * sr, cp * cr]])
        target.feet[k, :, :3] = np.ascontiguousarray(R) @ turn
        target.feet[k, :, 3] = feet[k]


@compiled()
def tick(
    body: Body, table: Table, sensed: Sensed, dt: float, lead: float, memory: Memory, target: Target
) -> None:
    """Goes on by a measurement.

    Args:
        dt: s, since the last one.
        lead: s, from the measurement to the time that the command is for.
        memory: State, overwritten.
        target: Result.
    """
    h, weight = body.height, body.mass * GRAVITY
    w = (GRAVITY / h) ** 0.5
    t = memory.phase[0]
    i, f = place_of(table, t)
    feet = blend(table.feet[:, :, :, 3], i, f) + memory.feet
    zmp = blend(table.zmp, i, f)
    planned = load_share(table, i, feet, zmp)
    known = np.isfinite(sensed.wrenches).all()
    target.loads[:] = np.maximum(sensed.wrenches[:, 2], 0.0) / weight
    carried = target.loads.sum()
    if not known:
        target.loads[:] = np.nan
    loads = np.array([planned, 1.0 - planned])
    if known and carried > 0.1:
        loads = target.loads / carried
    base = find_base(sensed, table, i, memory, loads)
    total, normals = np.zeros(6), np.zeros((2, 3))
    total_wrench(sensed, base, feet, total, normals)
    ground = loads[0] * feet[0, 2] + loads[1] * feet[1, 2]
    measured_zmp = np.full(2, np.nan)
    carries = known and total[2] > 0.1 * weight
    if carries:
        measured_zmp[0] = (ground * total[0] - total[4]) / total[2]
        measured_zmp[1] = (ground * total[1] + total[3]) / total[2]
    fresh = memory.phase[2] == 0.0
    if fresh:
        memory.phase[2] = memory.phase[3] = 1.0
    plan = blend(table.com, i, f)
    c_r, v_r, a_r = plan[:2], plan[3:5], plan[6:8]
    c_k = base[:, 3] + (base[:, :3] * sensed.com).sum(axis=1)
    target.estimate[2] = c_k[2]
    c_k = c_k[:2]
    motion, offset = memory.motion, memory.offset
    if fresh:
        motion[0], motion[1] = c_k, v_r
    rate, away = 4.0 * w, c_k - motion[0]
    push = total[:2] / body.mass if known else a_r
    motion[0] += dt * (motion[1] + 1.4 * rate * away)
    motion[1] += dt * (push + rate * rate * away)
    if carries and 0.8 * weight < total[2] < 1.2 * weight:
        by_wrench = measured_zmp + h / total[2] * total[:2]
        rest = by_wrench - c_k - (zmp - c_r + a_r / (w * w)) - offset[0]
        part = min(dt / OFFSET_TIME, 1.0)
        rest = clip(rest, MAX_SURPRISE * h)
        offset[0] = clip(offset[0] + part * rest, MAX_OFFSET * h)
        offset[1] += 0.3 * part * (rest * rest - offset[1])
    c, v = motion[0] + offset[0], motion[1]
    errors = c - c_r + (v - v_r) / w
    memory.integral[:] = clip(memory.integral + INTEGRAL * w * errors * dt, MAX_INTEGRAL * h)
    zmp += (1.0 + PROPORTIONAL) * errors + memory.integral
    quick = w * body.kappa[::-1] ** 0.5 * body.dead_time  # phase lag where the servos resonate
    goal = LEAN * (c - c_r) + LEAN_SPEED / w * (v - v_r)
    goal *= np.minimum(1.0, MAX_LAG / quick) * (1.0 if known else 0.5)
    memory.lean[:] += (1.0 - exp(-2.0 * w * dt)) * (goal - memory.lean)
    leaning = -clip(memory.lean, MAX_LEAN * h)
    target.estimate[:2], target.estimate[3:5] = c, v
    target.estimate[5:7], target.estimate[7:9] = c + v / w, c_r + v_r / w
    target.estimate[9:] = measured_zmp
    waits = False
    if known:
        share = load_share(table, i, feet, zmp)
        asked = ask_moments(body, table, i, feet, zmp, share)
        move_ankles(body, dt, memory, sensed.wrenches, asked)
        both = table.swing[i, 0] < 0.0 and table.swing[i, 1] < 0.0
        if both and carries:
            change = FORCE_DIFFERENCE * h * dt * ((2.0 * share - 1.0) - loads[0] + loads[1])
            memory.feet[0, 2] -= 0.5 * change
            memory.feet[1, 2] += 0.5 * change
        standing = not table.moves[0] < t < table.moves[1]
        find_slope(dt, standing, memory, loads, normals, feet)
        ahead = place_of(table, t + lead)
        waits = move_feet(body, table, ahead, dt, memory, target.loads, (planned, 1.0 - planned))
        if not both:
            memory.phase[1] = 0.0
    command(body, table, t + lead, memory, target, leaning)
    pace = 1.0
    if waits and memory.phase[1] < MAX_WAIT:
        memory.phase[1] += dt
        pace = 0.0
    memory.phase[3] += clip(pace - memory.phase[3], dt / RATE_TIME)
    memory.phase[0] = min(t + memory.phase[3] * dt, table.dt * (len(table.com) - 1))
