"""What the stabiliser's law reads and writes; see stabiliser_law."""

from typing import NamedTuple

import numpy as np

from com_model.arrays import Array


class Body(NamedTuple):
    """What the law needs of a robot."""

    mass: float  # kg
    height: float  # m, h, of the CoM over the soles
    kappa: Array  # (2,) of the ankles' servos about the soles' x and y axes
    dead_time: float  # s, T_t: of sensors and bus, and 2.5 periods
    soles: Array  # (2, 4) m, least and greatest x, then y, of each sole in its frame


class Table(NamedTuple):
    """A walk at N times, rising in equal steps from 0 on; see walk_plan.Samples."""

    dt: float  # s, of a step
    com: Array  # (N, 9) m, position, velocity, acceleration
    zmp: Array  # (N, 2) m
    feet: Array  # (N, 2, 3, 4) poses of the soles
    R_pelvis: Array  # (N, 3, 3)
    swing: Array  # (N, 2) progress of each foot's swing, 0 to 1; -1: it stands
    goals: Array  # (N, 2, 2) m, x and y of where each foot is set down next, or stands
    swing_time: float  # s
    moves: Array  # (2,) s, first lift-off and last touch-down


class Sensed(NamedTuple):
    """What is measured, in the axes of the root link unless said otherwise."""

    R_imu: Array  # (3, 3) orientation of the root link, z upwards, of any yaw; NaN: not known
    soles: Array  # (2, 3, 4) poses of the soles by the joints
    com: Array  # (3,) m, by the joints
    # (2, 6) N and N m, of the ground on each foot about its sole's origin, in the sole's axes;
    # NaN: not known
    wrenches: Array


class Memory(NamedTuple):
    """The state; arrays that the tick overwrites."""

    # (4,) time of the plan, s; s, waited for this step; 1.0 after the first tick; rate of the
    # plan's time, 0 to 1
    phase: Array
    motion: Array  # (2, 2) m and m/s, c and v of x and y
    offset: Array  # (2, 2) m and m^2, b of x and y, and the mean square of what is left
    lean: Array  # (2,) m, y
    integral: Array  # (2,) m
    tilts: Array  # (2, 2) rad, of each foot about its x and y
    feet: Array  # (2, 3) m, of the commanded soles from the plan
    held: Array  # (2, 4) m, where a foot stays that landed early; 1.0: it does
    unloaded: Array  # (2,) s, for which a foot has not carried
    slope: Array  # (2,) of the ground along x and y


class Target(NamedTuple):
    """What a tick sets."""

    com: Array  # (3,) m, commanded
    feet: Array  # (2, 3, 4) poses of the soles, commanded
    R_pelvis: Array  # (3, 3)
    # (11,) CoM x, y, z with its offset, m; its velocity x, y, m/s; DCM x, y; planned DCM x, y;
    # ZMP x, y, m (NaN: not known)
    estimate: Array
    loads: Array  # (2,) fraction of the weight on each foot


def make_memory() -> Memory:
    """Memory of a stabiliser before its first tick."""
    shapes = (4, (2, 2), (2, 2), 2, 2, (2, 2), (2, 3), (2, 4), 2, 2)
    return Memory(*(np.zeros(shape) for shape in shapes))


def make_target() -> Target:
    """Memory for what a tick sets."""
    return Target(np.zeros(3), np.zeros((2, 3, 4)), np.eye(3), np.zeros(11), np.zeros(2))
