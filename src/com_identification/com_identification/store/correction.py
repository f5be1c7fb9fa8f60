"""Writes what was identified into a robot's URDF."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from com_identification.exceptions import IdentificationError
from com_identification.regression.identify import Identification
from com_model import RobotModel
from com_model.arrays import as_array
from com_model.urdf.editing import Inertial, edit_inertials


def corrected_inertials(model: RobotModel, mass: ArrayLike, com: ArrayLike) -> dict[str, Inertial]:
    """Finds new inertials of links that give the bodies new masses and centres of mass.

    The heaviest link of each body takes the whole difference and keeps its inertia about its own
    centre of mass, scaled with its mass. Bodies that do not change are left out.

    Args:
        model: The robot.
        mass: (B,) kg, of the bodies.
        com: (B, 3) m, in the bodies' frames; of a body without mass not looked at.

    Returns:
        Inertials by the name of the link, for com_model.urdf.editing.edit_inertials.

    Raises:
        ShapeError: An array has the wrong shape.
        IdentificationError: A link's mass would not be positive.
    """
    bodies = model.bodies
    mass = as_array("mass", mass, (bodies.count,))
    moment = mass[:, None] * np.nan_to_num(as_array("com", com, (bodies.count, 3)))
    result = {}
    for b in range(bodies.count):
        if mass[b] == bodies.mass[b] and np.allclose(moment[b], bodies.first_moment[b], 1e-12, 0.0):
            continue
        links = np.flatnonzero(bodies.body_of_link == b)
        link = int(links[np.argmax(model.link_masses[links])])
        old = float(model.link_masses[link])
        R, p = bodies.R_body_link[link], bodies.p_body_link[link]
        center = p + R @ model.link_coms[link]
        new = old + float(mass[b] - bodies.mass[b])
        if not (new > 0.0 and old > 0.0):
            name = model.link_names[link]
            raise IdentificationError(
                f"link {name!r} would weigh {new:.4g} kg, its body {mass[b]:.4g} kg: correct the "
                "masses of the links that are fixed to it in the URDF first"
            )
        place = (old * center + moment[b] - bodies.first_moment[b]) / new
        inertia = model.link_inertias[link] * (new / old)
        result[model.link_names[link]] = Inertial(new, R.T @ (place - p), inertia)
    return result


def corrected_urdf(model: RobotModel, found: Identification) -> str:
    """Writes identified masses and centres of mass into the text of the URDF.

    Everything else stays byte for byte.

    Raises:
        IdentificationError: A link's mass would not be positive.
    """
    return edit_inertials(model.xml, corrected_inertials(model, found.mass, found.com))
