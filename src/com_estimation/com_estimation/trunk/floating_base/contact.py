"""Compiled: contact points of the feet, which legs stand, and the root by standing feet."""

import math

import numpy as np
from numba import njit

from com_estimation.trunk.floating_base.filter_types import (
    Array,
    FilteredMotion,
    FilterMemory,
    FilterModel,
    Settings,
)
from com_model.dynamics import GRAVITY
from com_model.dynamics.inverse_dynamics_kernels import (
    ACCELERATION,
    OMEGA,
    OMEGA_DOT,
    ORIGIN,
    ROTATION,
    add_cross,
)

SWING_TIME, STAND_TIME = 0.06, 0.08  # s, for which a leg must carry nothing, or the robot


@njit
def find_contact_point(
    leg: int, model: FilterModel, bodies: Array, up: Array, point: Array
) -> None:
    """Lowest point of a foot's ball: its centre minus radius times up."""
    own, ball, radius = bodies[model.leg_bodies[leg, 2]], model.balls[leg], model.radii[leg]
    for i in range(3):
        row = ROTATION + 3 * i
        reach = own[row] * ball[0] + own[row + 1] * ball[1] + own[row + 2] * ball[2]
        point[i] = own[ORIGIN + i] + reach - radius * up[i]


@njit
def time_contacts(memory: FilterMemory, dt: float, settings: Settings) -> None:
    """For how long each leg has carried nothing, or the robot; unknown counts as neither."""
    forces, monitors = memory.forces, memory.monitors[0]
    for leg in range(len(forces.force)):
        f = forces.force[leg]
        force = math.sqrt(f[0] ** 2 + f[1] ** 2 + f[2] ** 2)
        swings, stands = force < settings.swing_force, force > settings.stand_force
        monitors.swinging[leg] = monitors.swinging[leg] + dt if swings else 0.0
        monitors.standing[leg] = monitors.standing[leg] + dt if stands else 0.0
        forces.swings[leg] = monitors.swinging[leg] >= SWING_TIME


@njit
def is_lifted(leg: int, up: Array, memory: FilterMemory, settings: Settings) -> bool:
    """Whether a foot is above all feet that carry load: one with hardly any may still stand."""
    points, own, highest = memory.forces.point, 0.0, -math.inf
    for other in range(len(points)):
        height = 0.0
        for i in range(3):
            height += up[i] * points[other, i]
        if other == leg:
            own = height
        elif memory.monitors[0].swinging[other] == 0.0:
            highest = max(highest, height)
    return own - highest > settings.lifted


@njit
def set_acceleration_from_feet(
    model: FilterModel,
    bodies: Array,
    motion: FilteredMotion,
    memory: FilterMemory,
    settings: Settings,
) -> bool:
    """Specific force of the root from the feet that stand: g up - what the legs' motion adds.

    A foot rolls on its ball without slip: the material point that touches the ground is accelerated
    towards the ball's centre only.

    Args:
        bodies: A pass of the inverse dynamics without acceleration of the root.
        motion: Its specific force is set.
        memory: For how long the legs have stood or swung.

    Returns:
        False while a foot is being set down or lifted: then only gravity counts.
    """
    count, settled = 0, True
    total, point, arm = np.zeros(3), np.empty(3), np.empty(3)
    velocity, a, up, g = np.empty(3), np.empty(3), motion.up, GRAVITY
    monitors = memory.monitors[0]
    for leg in range(len(model.balls)):
        stands = monitors.standing[leg] >= STAND_TIME
        settled &= stands or monitors.swinging[leg] >= SWING_TIME
        if not stands:
            continue
        own = bodies[model.leg_bodies[leg, 2]]
        w = own[OMEGA : OMEGA + 3]
        find_contact_point(leg, model, bodies, up, point)
        for i in range(3):
            arm[i] = point[i] - own[ORIGIN + i]
            a[i] = own[ACCELERATION + i]
            velocity[i] = 0.0
        add_cross(own[OMEGA_DOT : OMEGA_DOT + 3], arm, 1.0, a)
        add_cross(w, arm, 1.0, velocity)
        add_cross(w, velocity, 1.0, a)
        centripetal = (w[0] ** 2 + w[1] ** 2 + w[2] ** 2) * model.radii[leg]
        for i in range(3):
            total[i] += (g + centripetal) * up[i] - a[i]
        count += 1
    for i in range(3):
        motion.specific_force[i] = total[i] / count if settled and count > 0 else g * up[i]
    return settled and count > 0
