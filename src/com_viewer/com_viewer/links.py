"""Positions of the links' centres of mass, and their description in words."""

import numpy as np

from com_model import RobotModel
from com_model.arrays import Array


def link_coms(model: RobotModel, R: Array, p: Array) -> Array:
    """Centres of mass of the links that have mass, in their order.

    p_com = p_b + R_b (p_link + R_link c), for a link with CoM c (3,) m, fixed to body b.

    Args:
        model: the robot.
        R: (B, 3, 3) orientations of its bodies in the world.
        p: (B, 3) m, their origins in the world.

    Returns:
        (m, 3) m, world.
    """
    bodies, heavy = model.bodies, np.flatnonzero(model.link_masses > 0.0)
    own = np.einsum("lij,lj->li", bodies.R_body_link[heavy], model.link_coms[heavy])
    b = bodies.body_of_link[heavy]
    return np.asarray(
        p[b] + np.einsum("lij,lj->li", R[b], bodies.p_body_link[heavy] + own)
    )


def describe_links(
    model: RobotModel, links: list[int], other: RobotModel | None = None
) -> str:
    """Describes mass and CoM of links, and the differences to another model of the robot.

    Args:
        model: the robot.
        links: indices of links; those without mass are left out.
        other: a model with the same names of links, or None.

    Returns:
        CoMs in mm, in the frame of each link.
    """
    texts = []
    for i in links:
        name, mass, com = model.link_names[i], model.link_masses[i], model.link_coms[i]
        if mass <= 0.0:
            continue
        text = f"{name}: {mass:.3f} kg, CoM {_mm(com)} mm in its frame"
        if other is not None and name in other.link_names:
            k = other.link_index(name)
            moved = other.link_coms[k] - com
            text += f"; compared: {other.link_masses[k] - mass:+.3f} kg, CoM moved {_mm(moved)} mm"
        texts.append(text)
    return " | ".join(texts) or f"{model.link_names[links[0]]}: no mass"


def _mm(vector: Array) -> str:
    return " ".join(f"{1e3 * value:.1f}" for value in vector)
