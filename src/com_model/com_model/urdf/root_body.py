"""The root body: the root link with every link that is fixed to it; its inertial, old and new."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from com_model.arrays import Array, as_array
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
    return _sum(model, _links(model))


def correct_root_body(
    model: RobotModel, mass: float, com: ArrayLike, inertia: ArrayLike | None = None
) -> dict[str, Inertial]:
    """Finds the new inertial of one link that gives the root body a mass and a CoM.

    The heaviest link of the root body takes the whole difference: its mass and first moment are
    those of the body less those of the other links. Its inertia likewise, by parallel axes, where
    the body's is given; else it keeps its inertia about its own CoM.

    Args:
        model: The robot.
        mass: kg, new mass of the root body.
        com: (3,) m, its new CoM in the frame of the root link.
        inertia: (3, 3) kg m^2, its new inertia about that CoM, axes of the root link.

    Returns:
        The link's name with its new inertial, for com_model.urdf.editing.edit_inertials.

    Raises:
        UrdfError: The link's mass would not be positive, or its inertia not that of a body.
    """
    center = as_array("com", com, (3,))
    links = _links(model)
    heaviest = max(links, key=lambda k: model.link_masses[k])
    name = model.link_names[heaviest]
    others = _sum(model, [k for k in links if k != heaviest])
    m = mass - others.mass
    if not m > 0.0:
        raise _unphysical(name, f"its mass would be {m:g} kg", others.mass, mass)
    c = (mass * center - others.mass * others.com) / m
    R, p = model.bodies.R_body_link[heaviest], model.bodies.p_body_link[heaviest]
    own = model.link_inertias[heaviest]
    if inertia is not None:
        rest = as_array("inertia", inertia, (3, 3)) - m * _steiner(c - center)
        rest = rest - others.inertia
        rest = rest - others.mass * _steiner(others.com - center)
        own = R.T @ ((rest + rest.T) / 2) @ R
        moments = np.linalg.eigvalsh(own)
        if not moments[0] >= _LEAST_EIGENVALUE * max(moments[2], 0.0):
            problem = f"its smallest moment of inertia would be {moments[0]:.3g} kg m^2"
            raise _unphysical(name, problem, others.mass, mass)
    return {name: Inertial(m, R.T @ (c - p), (own + own.T) / 2)}


def _links(model: RobotModel) -> list[int]:
    return [int(k) for k in np.flatnonzero(model.bodies.body_of_link == 0)]


def _sum(model: RobotModel, links: list[int]) -> Inertial:
    R, p = model.bodies.R_body_link[links], model.bodies.p_body_link[links]
    masses = model.link_masses[links]
    mass = float(masses.sum())
    coms = p + np.einsum("kij,kj->ki", R, model.link_coms[links])
    com = masses @ coms / mass if mass > 0.0 else np.zeros(3)
    inertia = np.einsum("kij,kjl,kml->im", R, model.link_inertias[links], R)
    for m, c in zip(masses, coms, strict=True):
        inertia += m * _steiner(c - com)
    return Inertial(mass, com, inertia)


def _steiner(d: Array) -> Array:
    return float(d @ d) * np.eye(3) - np.outer(d, d)


def _unphysical(link: str, problem: str, others: float, mass: float) -> UrdfError:
    fix = (
        f"The root body is to weigh {mass:.6g} kg and the links that are fixed to the link "
        f"{quote(link)} weigh {others:.6g} kg: correct their masses in the URDF first"
    )
    return UrdfError(problem, f"link {quote(link)}", fix)
