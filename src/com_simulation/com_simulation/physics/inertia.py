"""Masses and inertias of the moving bodies, in the form and within the bounds of MuJoCo."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from com_model import RobotModel
from com_model.arrays import Array

SMALLEST_MASS = 1e-13  # kg, of a moving body without mass: MuJoCo needs some, no figure shows it
SMALLEST_INERTIA = 1e-12  # kg m^2, likewise
SMALLEST_GYRATION = 1e-4  # m, radius of gyration given to a mass without inertia
_SLACK = 1e-9  # relative, by which a corrected inertia keeps the triangle inequality


@dataclass(frozen=True, eq=False)
class BodyInertias:
    """Inertial parameters of the B moving bodies of a robot.

    Attributes:
        mass: (B,) kg.
        com: (B, 3) m, centre of mass in the body's frame.
        principal: (B, 3) kg m^2, principal moments about the centre of mass.
        axes: (B, 3, 3) rotation from principal to body axes.
        corrected: Names of bodies with mass whose inertia no rigid body has: it was enlarged.
    """

    mass: Array
    com: Array
    principal: Array
    axes: Array
    corrected: tuple[str, ...]


def body_inertias(robot: RobotModel) -> BodyInertias:
    """Adds up the links of each moving body.

    I = sum_l R_l I_l R_l^T + m_l (|r_l|^2 1 - r_l r_l^T),  r_l from the body's CoM to the link's.
    Masses and centres of mass stay exactly the model's.
    """
    bodies = robot.bodies
    mass = np.maximum(bodies.mass, SMALLEST_MASS)
    com = bodies.first_moment / mass[:, None]
    inertia = np.zeros((bodies.count, 3, 3))
    for link, body in enumerate(bodies.body_of_link):
        R = bodies.R_body_link[link]
        r = bodies.p_body_link[link] + R @ robot.link_coms[link] - com[body]
        inertia[body] += R @ robot.link_inertias[link] @ R.T
        inertia[body] += robot.link_masses[link] * (r @ r * np.eye(3) - np.outer(r, r))
    moments, axes = np.linalg.eigh(inertia)
    axes *= np.sign(np.linalg.det(axes))[:, None, None]
    principal = np.array([_physical(i, m) for i, m in zip(moments, mass, strict=True)])
    changed = (np.abs(principal - moments) > 1e-6 * moments[:, 2:]).any(axis=1)
    corrected = tuple(bodies.names[b] for b in np.flatnonzero(changed & (bodies.mass > 0)))
    return BodyInertias(mass, com, principal, axes, corrected)


def _physical(moments: Array, mass: float) -> Array:
    """Enlarges ascending principal moments (3,) until a body of that mass can have them.

    0 < I_1 and I_3 <= I_1 + I_2.
    """
    moments = np.maximum(moments, max(mass * SMALLEST_GYRATION**2, SMALLEST_INERTIA))
    lacking = moments[2] * (1 + _SLACK) - moments[0] - moments[1]
    if lacking > 0:
        moments[:2] += lacking / 2
    return moments
