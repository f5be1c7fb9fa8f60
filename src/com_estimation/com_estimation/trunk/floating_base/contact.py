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
from com_model.dynamics.inverse_dynamics import Links
from com_model.geometry.vector_kernels import add, add_cross, cross, dot, sub, turned

# s, for which a leg must be unloaded to be in swing, or loaded to be in stance
SWING_TIME = 0.06


@njit
def find_contact_point(
    leg: int, model: FilterModel, links: Links, up: Array, point: Array
) -> None:
    """Sets the lowest point of a foot's ball: its centre minus radius times up.

    Args:
        leg: index of the leg.
        model: the robot.
        links: poses of the bodies.
        up: (3,) unit vector against gravity, root axes.
        point: (3,) m, set; root frame.
    """
    own = model.leg_bodies[leg, 2]
    center = add(links.p[own], turned(links.R[own], model.balls[leg]))
    for i in range(3):
        point[i] = center[i] - model.radii[leg] * up[i]


@njit
def time_contacts(memory: FilterMemory, dt: float, settings: Settings) -> None:
    """Updates for how long each leg has been in swing or in stance, by its force.

    A leg with an unknown force counts as neither.

    Args:
        memory: forces of the last update; its monitors and `swings` are changed.
        dt: s since the update before.
        settings: the thresholds of the force, N.
    """
    forces, monitors = memory.forces, memory.monitors[0]
    for leg in range(len(forces.force)):
        force = math.sqrt(dot(forces.force[leg], forces.force[leg]))
        swings, stands = force < settings.swing_force, force > settings.stand_force
        monitors.swinging[leg] = monitors.swinging[leg] + dt if swings else 0.0
        monitors.standing[leg] = monitors.standing[leg] + dt if stands else 0.0
        forces.swings[leg] = monitors.swinging[leg] >= SWING_TIME


@njit
def is_lifted(leg: int, up: Array, memory: FilterMemory, settings: Settings) -> bool:
    """Whether a foot is above all feet that carry load by more than settings.lifted.

    An unloaded foot may still touch the ground: the force alone does not show that it swings.

    Args:
        leg: index of the leg.
        up: (3,) unit vector against gravity, root axes.
        memory: contact points and swing times.
        settings: the threshold of the height, m.
    """
    points, own, highest = memory.forces.point, 0.0, -math.inf
    for other in range(len(points)):
        height = dot(up, points[other])
        if other == leg:
            own = height
        elif memory.monitors[0].swinging[other] == 0.0:
            highest = max(highest, height)
    return own - highest > settings.lifted


@njit
def set_acceleration_from_feet(
    model: FilterModel, links: Links, motion: FilteredMotion, memory: FilterMemory
) -> bool:
    """Sets the root's specific force from the feet in contact: g up minus the legs' own motion.

    A foot rolls on its ball without slip: the material point that touches the ground is
    accelerated towards the ball's centre only.

    Args:
        model: the robot.
        links: result of the inverse dynamics without acceleration of the root.
        motion: its specific force is set.
        memory: for how long the legs have been in stance or in swing.

    Returns:
        False while a foot is being set down or lifted: then only gravity counts.
    """
    count, settled = 0, True
    total, point, a, up, g = np.zeros(3), np.empty(3), np.empty(3), motion.up, GRAVITY
    monitors = memory.monitors[0]
    for leg in range(len(model.balls)):
        stands = monitors.standing[leg] >= 0.08
        settled &= stands or monitors.swinging[leg] >= SWING_TIME
        if not stands:
            continue
        own = model.leg_bodies[leg, 2]
        w = links.omega[own]
        find_contact_point(leg, model, links, up, point)
        arm = sub(point, links.p[own])
        a[:] = links.acceleration[own]
        add_cross(links.omega_dot[own], arm, 1.0, a)
        add_cross(w, cross(w, arm), 1.0, a)
        centripetal = dot(w, w) * model.radii[leg]
        for i in range(3):
            total[i] += (g + centripetal) * up[i] - a[i]
        count += 1
    for i in range(3):
        motion.specific_force[i] = (
            total[i] / count if settled and count > 0 else g * up[i]
        )
    return settled and count > 0
