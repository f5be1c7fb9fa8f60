"""The walk as the stabiliser's law reads it, the rate of its time, and soles that rock.

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

# Of the plan's time: rate per w tau, slowest and fastest; of a sole's half width: DCM errors that
# the ankles correct by themselves, and of w h: speed of the planned DCM below which tau is small.
PACE, SLOWEST, FASTEST = 1.0, 0.6, 1.6
ANKLES_CORRECT, SLOW = 0.5, 0.05
# Of a sole's half length: DCM errors that the ankles correct, given time; least s of adjust_step;
# of h, how far a foothold is moved; of a swing, until it may be; s, its low-pass.
ANKLES_REACH, LEAST_GROWTH, FARTHEST, LATEST, ADJUST_TIME = (
    0.84,
    0.15,
    0.15,
    0.85,
    0.025,
)
# Rocking soles: of a sole's half size, by which the ZMP moves where a sole lies flat; dead times,
# for which it does not; rad/s of tilt, with what the feedback does; times the tilt that moves the
# ZMP of a flat sole by half its size, in a dead time: more makes a stiff robot rock from edge to
# edge; s, in which that speed is reached.
STAYS, STAYS_TIMES, SETTLE_SPEED, SETTLE_TILTS, SETTLE_TIME = 0.1, 2.3, 0.5, 5.0, 0.02

MARGIN = 0.85  # of the sole's size, within which the desired ZMP is kept
MOST_SLIP, MOST_TURN = 0.1, 0.2  # rad, of a sole on the ground: at once, and in all


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
        The rate, SLOWEST to FASTEST.
    """
    error -= clip(error, ANKLES_CORRECT * half_width)
    slow = SLOW * w * h
    rate = 1.0 + PACE * w * error * speed / (speed * speed + slow * slow)
    return min(max(rate, SLOWEST), FASTEST)


@njit
def adjust_step(body: Body, foot: int, left: float, error: float) -> float:
    """Distance by which a foot should land before its planned position, by the DCM error e.

      D = sign(e) max(|e| - c (1 - exp(-w t)), 0) / s,   s = 0.6 exp(-w t)

    The error that remains after the ankles, which correct c, grows like this until the
    touch-down t later. s is at least LEAST_GROWTH: early in a swing a doubtful error would be a
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
    error -= clip(error, ANKLES_REACH * half_length * (1.0 - fade))
    return clip(error / max(0.6 * fade, LEAST_GROWTH), FARTHEST * body.height)


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
    if abs(at - rocks[1]) > STAYS:
        back = -rocks[2] * dead_time
        rocks[0], rocks[1], rocks[2] = 0.0, at, 0.0
        return back
    rocks[0] += dt
    if rocks[0] > STAYS_TIMES * dead_time:
        goal = clip(-speed * error, speed)
        rocks[2] += min(dt / SETTLE_TIME, 1.0) * (goal - rocks[2])
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
            asked[k, j] = 0.5 * (low + high) + clip(own, MARGIN * 0.5 * (high - low))
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
    if part == 0.0 or abs(slip) > MOST_SLIP:  # the IMU's heading has jumped
        heading[0] = heading[1]
        return
    change = part * slip
    if max(abs(turns[0] + change), abs(turns[1] + change)) > MOST_TURN:
        return
    x = loads[0] * feet[0, 0] + loads[1] * feet[1, 0]
    y = loads[0] * feet[0, 1] + loads[1] * feet[1, 1]
    for k in range(2):
        turns[k] += change
        places[k, 0] -= change * (feet[k, 1] - y)
        places[k, 1] += change * (feet[k, 0] - x)
