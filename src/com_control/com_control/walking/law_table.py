"""What the stabiliser's law reads and writes, the rate of the plan's time, soles that rock.

A robot that was pushed sideways stands on the edge of its sole, and no ankle returns the DCM to
the plan in time. Where the plan is then late by tau, its time runs faster; where it is early,
more slowly (the step's time is changed, not its position).

A sole on uneven ground rocks on an edge of its own, or on a ridge under it. Its moment then does
not depend on its tilt, so that the ankle's feedback, whose gain is for soles that lie flat,
takes a second to lay it down; meanwhile the robot rolls over with it.
"""

from math import cos, exp, floor, hypot, pi, sin
from typing import NamedTuple

import numpy as np
from numba import njit

from com_model.arrays import Array
from com_model.dynamics import GRAVITY


class FeedbackOptions(NamedTuple):
    """Gains and limits of the walking stabiliser: one set for all robots.

    Chosen so that the robots of `benchmarks/walk_robustness.py` stay on their feet;
    docs/stabiliser.md says what each part does. "Of h" is over the height h of the CoM.

    Attributes:
        pace: rate of the plan's time per w tau, see `find_pace`.
        slowest: least rate of the plan's time.
        fastest: greatest rate of the plan's time.
        ankles_correct: of a sole's half width, DCM error that the ankles correct by themselves.
        slow: of w h, speed of the planned DCM below which tau is small.
        ankles_reach: of a sole's half length, DCM error that the ankles correct, given time.
        least_growth: least s of `adjust_step`.
        farthest: of h, how far a foothold is moved.
        latest: of a swing, until which a foothold may be moved.
        adjust_time: s, low-pass of a foothold's displacement.
        stays: of a sole's half size, by which the ZMP moves where a sole lies flat.
        stays_times: dead times, for which the ZMP of a rocking sole does not move.
        settle_speed: rad/s, of a rocking sole's tilt, with what the feedback does.
        settle_tilts: bound of that speed in a dead time, over the tilt that moves the ZMP of a flat
            sole by half its size: more makes a stiff robot rock from edge to edge.
        settle_time: s, in which that speed is reached.
        margin: of a sole's size, within which the desired ZMP is.
        max_slip: rad, by which a sole turns on the ground at once; more is a jump of the IMU.
        max_turn: rad, by which soles may turn on the ground in all.
        turn_time: s, in which a sole that turned on the ground is followed.
        landed_load: of the weight, above which a foot in swing has landed; between SWING_LOAD and
            CONTACT_LOAD.
        expected_load: of the weight by the plan, above which a foot without load searches for the
            ground.
        patience: s, without load, before a foot searches for the ground.
        rate_time: s, in which the plan's time stops or continues.
        max_wait: s, by which the plan waits for one step.
        search_speed: of h per s, downwards.
        search_depth: of h, below the other foot.
        steepest: slope of the ground.
        max_lag: rad, lag at the servos' resonance up to which the lean is not reduced.
        no_lean: rad, lag at the servos' resonance from which there is no lean.
        least_lean: rad, lag times what the lean's low-pass passes, from which there is no lean.
        max_surprise: of h (of g: the pull), of one measurement of the offset.
        proportional: k_p.
        integral: k_i / w.
        max_integral: of h.
        lean: G.
        lean_speed: G_v.
        max_lean: of h.
        ankle: A T_t kappa.
        ankle_leak: s, T_a.
        max_tilt: rad, of a sole.
        force_difference: A_z, 1/s.
        offset_time: s, T_b.
        max_offset: of h, of the model's CoM.
        rest_time: s, T_f while standing.
        pull_time: s, T_f while walking.
        max_pull: of g.
        fade_time: s, in which feedback fades where sensors fail.
    """

    pace: float = 1.0
    slowest: float = 0.6
    fastest: float = 1.6
    ankles_correct: float = 0.5
    slow: float = 0.05
    ankles_reach: float = 0.84
    least_growth: float = 0.15
    farthest: float = 0.15
    latest: float = 0.85
    adjust_time: float = 0.025
    stays: float = 0.1
    stays_times: float = 2.3
    settle_speed: float = 0.5
    settle_tilts: float = 5.0
    settle_time: float = 0.02
    margin: float = 0.85
    max_slip: float = 0.1
    max_turn: float = 0.2
    turn_time: float = 0.5
    landed_load: float = 0.08
    expected_load: float = 0.15
    patience: float = 0.04
    rate_time: float = 0.05
    max_wait: float = 0.2
    search_speed: float = 0.12
    search_depth: float = 0.1
    steepest: float = 0.3
    max_lag: float = 0.5
    no_lean: float = 0.85
    least_lean: float = 0.285
    max_surprise: float = 0.03
    proportional: float = 1.0
    integral: float = 0.3
    max_integral: float = 0.03
    lean: float = 1.0
    lean_speed: float = 0.3
    max_lean: float = 0.08
    ankle: float = 0.5
    ankle_leak: float = 1.0
    max_tilt: float = 0.25
    force_difference: float = 0.01
    offset_time: float = 1.5
    max_offset: float = 0.075
    rest_time: float = 0.5
    pull_time: float = 4.0
    max_pull: float = 0.03
    fade_time: float = 0.15


LAW = FeedbackOptions()


class Body(NamedTuple):
    """Properties of a robot for the law.

    Attributes:
        mass: kg.
        height: h, m, of the CoM over the soles.
        kappa: (2,) of the ankles' servos about the soles' x and y axes, stiffness / (m g h).
        dead_time: T_t, s: of sensors and bus, and 2.5 periods.
        soles: (2, 4) m, least and greatest x, then y, of each sole in its frame.
        adjusts: whether footholds follow the DCM.
        turns: whether the body turns back to the plan's heading.
    """

    mass: float
    height: float
    kappa: Array
    dead_time: float
    soles: Array
    adjusts: bool
    turns: bool


class Table(NamedTuple):
    """A walk at N times, rising in equal steps from 0 on; see walk_plan.Samples.

    Attributes:
        dt: s, of a step.
        com: (N, 9) m, position, velocity, acceleration.
        zmp: (N, 2) m.
        feet: (N, 2, 3, 4) poses of the soles.
        R_pelvis: (N, 3, 3).
        swing: (N, 2) progress of each foot's swing, 0 to 1; -1: it stands.
        goals: (N, 2, 2) m, x and y of where each foot is set down next, or stands.
        swing_time: s.
        moves: (2,) s, first lift-off and last touch-down.
    """

    dt: float
    com: Array
    zmp: Array
    feet: Array
    R_pelvis: Array
    swing: Array
    goals: Array
    swing_time: float
    moves: Array


class Measurements(NamedTuple):
    """Sensor values of one control tick, in the root link's frame unless stated otherwise.

    Attributes:
        R_imu: (3, 3) orientation of the root link in a gravity-aligned frame of arbitrary yaw; NaN
            while the IMU's orientation is unknown.
        soles: (2, 3, 4) poses of the left and right sole, from the joint positions.
        com: (3,) m, centre of mass from the joint positions.
        wrenches: (2, 6) force (N) and moment (N m) of the ground on each foot, about the sole's
            origin, in the sole's frame; NaN where a foot's wrench is unknown.
    """

    R_imu: Array
    soles: Array
    com: Array
    wrenches: Array


class ControllerState(NamedTuple):
    """State of the controller between ticks; arrays that the tick overwrites.

    Attributes:
        phase: (4,) time of the plan, s; time waited for this step, s; 1 after the first tick;
            rate of the plan's time, 0 to 1.6.
        motion: (2, 2) m and m/s, c and v of x and y.
        offset: (2, 2) m, b forwards and leftwards of the pelvis, and m^2, its mean square
            residual.
        pull: (2,) m/s^2, a forwards and leftwards of the pelvis.
        lean: (2,) m, y.
        integral: (2,) m, of the DCM error times k_i.
        tilts: (2, 2) rad, of each foot about its x and y.
        rocks: (2, 2, 3) for each of these: s, for which the ZMP of the foot's force has stayed
            in place; that place, over the sole's half size; rad/s, of the tilt in addition to
            the feedback's.
        feet: (2, 3) m, of the commanded soles from the plan.
        held: (2, 4) m, position of a foot that landed early; and 1 if it did.
        unloaded: (2,) s, for which a foot has been unloaded.
        further: (2,) m, by which each foot should land before its planned position.
        slope: (2,) of the ground along x and y.
        heading: (2,) rad, from the IMU's to the plan's: reference; and from the soles now.
        turns: (2,) rad, of the commanded soles from the plan, to the left.
    """

    phase: Array
    motion: Array
    offset: Array
    pull: Array
    lean: Array
    integral: Array
    tilts: Array
    rocks: Array
    feet: Array
    held: Array
    unloaded: Array
    further: Array
    slope: Array
    heading: Array
    turns: Array


class Target(NamedTuple):
    """Result of a tick.

    Attributes:
        com: (3,) m, commanded.
        feet: (2, 3, 4) poses of the soles, commanded.
        R_pelvis: (3, 3) orientation of the pelvis, commanded.
        estimate: (11,) CoM x, y, z with its offset, m; its velocity x, y, m/s; DCM x, y, m;
            planned DCM x, y, m; ZMP x, y, m (NaN: unknown).
        loads: (2,) fraction of the weight on each foot; NaN: unknown.
    """

    com: Array
    feet: Array
    R_pelvis: Array
    estimate: Array
    loads: Array


def make_controller_state() -> ControllerState:
    """Allocates the state of a stabiliser before its first tick."""
    shapes = (
        4,
        (2, 2),
        (2, 2),
        2,
        2,
        2,
        (2, 2),
        (2, 2, 3),
        (2, 3),
        (2, 4),
        2,
        2,
        2,
        2,
        2,
    )
    return ControllerState(*(np.zeros(shape) for shape in shapes))


def make_target() -> Target:
    """Allocates the result of a tick."""
    return Target(
        np.zeros(3), np.zeros((2, 3, 4)), np.eye(3), np.zeros(11), np.zeros(2)
    )


Place = tuple[
    int, float
]  # a point of the table, and the fraction of the way to the next one


@njit
def clip(value: float, most: float) -> float:
    """The value clipped to -most to most.

    Args:
        value: of any unit.
        most: in the same unit.
    """
    return min(max(value, -most), most)


@njit
def rise(s: float) -> float:
    """Quintic from 0 to 1.

    Args:
        s: clipped to 0 to 1.
    """
    x = min(max(s, 0.0), 1.0)
    return x * x * x * (10.0 + x * (6.0 * x - 15.0))


@njit
def place_of(table: Table, t: float) -> Place:
    """Index of the last row at or before a time, and the fraction of the way to the next one.

    Args:
        table: the walk.
        t: s.
    """
    last = len(table.com) - 1
    x = min(max(t / table.dt, 0.0), float(last))
    i = min(floor(x), last - 1)
    return i, x - i


@njit
def blend(rows: Array, i: int, f: float, j: int) -> float:
    """Interpolates element j between the rows i and i + 1.

    Args:
        rows: (N, k).
        i: index of a row.
        f: 0 to 1, fraction of the way to the next row.
        j: index of the element.
    """
    return rows[i, j] + f * (rows[i + 1, j] - rows[i, j])


@njit
def heading_of(table: Table, i: int) -> tuple[float, float]:
    """Cosine and sine of the pelvis' heading.

    Args:
        table: the walk.
        i: index of a row.
    """
    c, s = table.R_pelvis[i, 0, 0], table.R_pelvis[i, 1, 0]
    size = max(hypot(c, s), 1e-9)
    return c / size, s / size


@njit
def headed(heading: tuple[float, float], v: Array) -> tuple[float, float]:
    """Components along x and y of a vector forwards and leftwards of the pelvis.

    Args:
        heading: cosine and sine.
        v: (2,) forwards, leftwards.
    """
    c, s = heading
    return c * v[0] - s * v[1], s * v[0] + c * v[1]


@njit
def find_pace(
    w: float, h: float, half_width: float, error: float, speed: float
) -> float:
    """Rate of the plan's time by the lateral DCM error e beyond what the ankles correct.

      rate = 1 + k w tau,   tau = e v / (v^2 + v_0^2),   v the planned DCM's lateral speed

    Args:
        w: 1/s, of the pendulum.
        h: m, of the pendulum.
        half_width: m, of the sole.
        error: m, of the DCM from its plan, to the left.
        speed: v, m/s, to the left.

    Returns:
        The rate, between the slowest and the fastest of the options.
    """
    error -= clip(error, LAW.ankles_correct * half_width)
    slow = LAW.slow * w * h
    rate = 1.0 + LAW.pace * w * error * speed / (speed * speed + slow * slow)
    return min(max(rate, LAW.slowest), LAW.fastest)


@njit
def adjust_step(body: Body, foot: int, left: float, error: float) -> float:
    """Distance by which a foot should land before its planned position, by the DCM error e.

      D = sign(e) max(|e| - c (1 - exp(-w t)), 0) / s,   s = 0.6 exp(-w t)

    The error that remains after the ankles, which correct c, grows like this until the
    touch-down t later. s is at least `least_growth`: early in a swing a doubtful error would be a
    long step.

    Args:
        body: height and soles of the robot.
        foot: 0 left, 1 right: the one that swings.
        left: t, s, until the touch-down.
        error: e, m, forwards.

    Returns:
        m, forwards.
    """
    fade = exp(-left * (GRAVITY / body.height) ** 0.5)
    half_length = 0.5 * (body.soles[foot, 1] - body.soles[foot, 0])
    error -= clip(error, LAW.ankles_reach * half_length * (1.0 - fade))
    return clip(error / max(0.6 * fade, LAW.least_growth), LAW.farthest * body.height)


@njit
def settle_sole(
    speed: float, error: float, at: float, dt: float, dead_time: float, rocks: Array
) -> float:
    """Further tilt of a sole that rocks: fast, as its moment does not depend on its tilt.

    Once the moment changes, the tilt commanded within the dead time is taken back.

    Args:
        speed: rad/s, at an error of 1.
        error: desired displacement of its ZMP over the sole's half size.
        at: position of its ZMP over the sole's half size.
        dt: s, since the last tick.
        dead_time: s.
        rocks: (3,) see ControllerState; changed.

    Returns:
        rad, for this tick.
    """
    if abs(at - rocks[1]) > LAW.stays:
        back = -rocks[2] * dead_time
        rocks[0], rocks[1], rocks[2] = 0.0, at, 0.0
        return back
    rocks[0] += dt
    if rocks[0] > LAW.stays_times * dead_time:
        goal = clip(-speed * error, speed)
        rocks[2] += min(dt / LAW.settle_time, 1.0) * (goal - rocks[2])
    return rocks[2] * dt


@njit
def find_axes(table: Table, i: int, turns: Array) -> Array:
    """Orientations of the soles, each rotated about the vertical from the plan's.

    Args:
        table: the walk.
        i: index of a row.
        turns: (2,) rad to the left.

    Returns:
        (2, 3, 3).
    """
    axes = np.empty((2, 3, 3))
    for k in range(2):
        c, s, R = cos(turns[k]), sin(turns[k]), table.feet[i, k]
        for j in range(3):
            axes[k, 0, j], axes[k, 1, j] = (
                c * R[0, j] - s * R[1, j],
                s * R[0, j] + c * R[1, j],
            )
            axes[k, 2, j] = R[2, j]
    return axes


@njit
def ask_moments(
    soles: Array, axes: Array, feet: Array, zmp: Array, share: float
) -> Array:
    """Points in each sole at which its force should act for a desired ZMP.

    Args:
        soles: (2, 4) m, see Body.
        axes: (2, 3, 3) commanded orientations.
        feet: (2, 3) m, commanded positions.
        zmp: (2,) m.
        share: load fraction of the left foot.

    Returns:
        (2, 2) m, in the frame of each sole.
    """
    asked = np.empty((2, 2))
    x, y = zmp[0], zmp[1]  # from the middles of the soles
    for k, part in enumerate((share, 1.0 - share)):
        R = axes[k]
        a, b = 0.5 * (soles[k, 0] + soles[k, 1]), 0.5 * (soles[k, 2] + soles[k, 3])
        x -= part * (feet[k, 0] + R[0, 0] * a + R[0, 1] * b)
        y -= part * (feet[k, 1] + R[1, 0] * a + R[1, 1] * b)
    for k in range(2):
        for j in range(2):
            low, high = soles[k, 2 * j], soles[k, 2 * j + 1]
            own = axes[k, 0, j] * x + axes[k, 1, j] * y
            asked[k, j] = 0.5 * (low + high) + clip(
                own, LAW.margin * 0.5 * (high - low)
            )
    return asked


@njit
def turn_feet(
    part: float, heading: Array, loads: Array, feet: Array, places: Array, turns: Array
) -> None:
    """Follows the soles' rotation on the ground, measured by the IMU: they are commanded there.

    So the body turns back to the plan's heading, and the next foothold is where it was planned.

    Args:
        part: fraction of the measured rotation that is followed; 0: the heading is reset.
        heading: (2,) rad, from the IMU's to the plan's: reference, and from the soles; changed.
        loads: (2,) load fractions of the feet.
        feet: (2, 3) m, commanded positions of the soles.
        places: ControllerState.feet, changed.
        turns: ControllerState.turns, changed.
    """
    slip = (heading[0] - heading[1] + pi) % (2.0 * pi) - pi
    if part == 0.0 or abs(slip) > LAW.max_slip:  # the IMU's heading has jumped
        heading[0] = heading[1]
        return
    change = part * slip
    if max(abs(turns[0] + change), abs(turns[1] + change)) > LAW.max_turn:
        return
    x = loads[0] * feet[0, 0] + loads[1] * feet[1, 0]
    y = loads[0] * feet[0, 1] + loads[1] * feet[1, 1]
    for k in range(2):
        turns[k] += change
        places[k, 0] -= change * (feet[k, 1] - y)
        places[k, 1] += change * (feet[k, 0] - x)
