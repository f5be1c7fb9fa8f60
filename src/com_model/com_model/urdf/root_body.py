"""The root body: the root link with every link that is fixed to it; its inertial, old and new."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from com_model.arrays import as_array
from com_model.bodies import steiner
from com_model.exceptions import UrdfError
from com_model.model import RobotModel
from com_model.text import quote
from com_model.urdf.editing import Inertial

_LEAST_EIGENVALUE = -1e-9  # of an inertia, relative to the largest: rounding


def root_body_inertial(model: RobotModel) -> Inertial:
    """Adds up the links of the root body.

    m = sum m_k, m c = sum m_k c_k, I = sum R_k I_k R_k^T + m_k S(c_k - c), with
    S(d) = |d|^2 1 - d d^T.

    Returns:
        Mass (kg), CoM (m) and inertia about it (kg m^2), frame and axes of the root link. Where it
        has no mass its CoM is the root link's origin.
    """
    bodies = model.bodies
    mass, moment = float(bodies.mass[0]), bodies.first_moment[0]
    com = moment / mass if mass > 0.0 else np.zeros(3)
    return Inertial(mass, com, bodies.inertia[0] - mass * steiner(com))


def correct_root_body(
    model: RobotModel, mass: float, com: ArrayLike, inertia: ArrayLike | None = None
) -> dict[str, Inertial]:
    """Finds the new inertial of one link that gives the root body a mass and a CoM.

    The heaviest link of the root body takes the whole difference of mass and first moment, and of
    the inertia about the root link's origin where the body's is given; else it keeps its inertia
    about its own CoM.

    Args:
        mass: kg, new mass of the root body.
        com: (3,) m, its new CoM in the frame of the root link.
        inertia: (3, 3) kg m^2, its new inertia about that CoM, axes of the root link.

    Returns:
        The link's name with its new inertial, for com_model.urdf.editing.edit_inertials.

    Raises:
        UrdfError: The link's mass would not be positive, or its inertia not that of a body.
    """
    bodies, center = model.bodies, as_array("com", com, (3,))
    links = np.flatnonzero(bodies.body_of_link == 0)
    link = int(links[np.argmax(model.link_masses[links])])
    name, old = model.link_names[link], float(model.link_masses[link])
    R, p = bodies.R_body_link[link], bodies.p_body_link[link]
    r = p + R @ model.link_coms[link]
    others = float(bodies.mass[0]) - old
    m = mass - others
    if not m > 0.0:
        raise _unphysical(name, f"its mass would be {m:g} kg", others, mass)
    c = (old * r + mass * center - bodies.first_moment[0]) / m
    own = model.link_inertias[link]
    if inertia is not None:
        about_origin = R @ own @ R.T + old * steiner(r) - bodies.inertia[0]
        about_origin += as_array("inertia", inertia, (3, 3)) + mass * steiner(center)
        own = R.T @ (about_origin - m * steiner(c)) @ R
        moments = np.linalg.eigvalsh(own)
        if not moments[0] >= _LEAST_EIGENVALUE * max(moments[2], 0.0):
            problem = f"its smallest moment of inertia would be {moments[0]:.3g} kg m^2"
            raise _unphysical(name, problem, others, mass)
    return {name: Inertial(m, R.T @ (c - p), (own + own.T) / 2)}


def _unphysical(link: str, problem: str, others: float, mass: float) -> UrdfError:
    fix = (
        f"The root body is to have {mass:.6g} kg and the links that are fixed to the link "
        f"{quote(link)} have {others:.6g} kg: correct their masses in the URDF first"
    )
    return UrdfError(problem, f"link {quote(link)}", fix)
