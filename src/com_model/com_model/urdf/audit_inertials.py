"""Audit of the inertials: masses that are missing, inertias that cannot be, stray centres."""

from __future__ import annotations

import numpy as np

from com_model.dynamics.kinematics import link_poses
from com_model.geometry.shapes import bounds_of, has_shape
from com_model.model import RobotModel
from com_model.text import listing
from com_model.urdf.findings import Finding
from com_model.urdf.parsing import Link, Urdf

_ROUNDING = 1e-3  # of the largest moment of inertia: what rounded decimals may violate
_THIN = 1e-6  # of the largest moment of inertia
_POINT = 1e-5  # m, radius of gyration


def check_masses(model: RobotModel, urdf: Urdf) -> list[Finding]:
    """Looks for links that move and have no mass, neither their own nor of what is fixed to them.

    Returns:
        One finding each for those whose whole subtree has none (their joint moves nothing), those
        that have a shape, and those that have none (dummies between two axes, as a rule).
    """
    shaped = {n.attributes["name"] for n in urdf.node.all("link") if has_shape(n)}
    bodies = model.bodies
    with_shape = {
        bodies.names[b]
        for b, name in zip(bodies.body_of_link, model.link_names, strict=True)
        if name in shaped
    }
    groups: dict[str, list[str]] = {"nothing": [], "shape": [], "dummy": []}
    for b in range(1, bodies.count):
        if bodies.mass[b] == 0.0:
            shape = "shape" if bodies.names[b] in with_shape else "dummy"
            kind = "nothing" if bodies.subtree_mass[b] == 0.0 else shape
            groups[kind].append(bodies.names[b])
    moving = f"of {bodies.count - 1} links that move"
    words = {
        "nothing": ("warning", f"{moving} have no mass, nor has anything they carry"),
        "shape": ("warning", f"{moving} have a shape but no mass"),
        "dummy": ("info", f"{moving} have no mass and no shape"),
    }
    fix = "Give each an <inertial> with mass, centre of mass and inertia, or make its joint fixed"
    return [
        Finding(severity, f"links {listing(groups[kind])}", f"{len(groups[kind])} {message}", fix)
        for kind, (severity, message) in words.items()
        if groups[kind]
    ]


def check_inertias(urdf: Urdf) -> list[Finding]:
    """Checks the inertia of each link that has mass against what a body can have.

    The principal moments of a rigid body are positive, and none exceeds the sum of the others:
    each is the integral of the squared distances in two of three directions.
    """
    findings = []
    for link in urdf.links:
        if link.mass > 0.0:
            findings += _check_inertia(link)
        elif link.inertia.max() > _POINT**2:
            fix = "Give it its mass in kg, or delete the <inertial>"
            message = "has an inertia but a mass of 0"
            findings.append(Finding("warning", link.element, message, fix))
    return findings


def _check_inertia(link: Link) -> list[Finding]:
    moments = np.linalg.eigvalsh(link.inertia)
    moments[np.abs(moments) < 1e-12 * np.abs(moments).max()] = 0.0
    low, middle, high = moments.tolist()
    if high < link.mass * _POINT**2:
        message = f"has a mass of {link.mass:g} kg but no inertia"
        fix = "Give the <inertia> of a box of its size and mass, if nothing better is known"
        return [Finding("warning", link.element, message, fix)]
    shown = f"its principal moments are {low:.4g}, {middle:.4g} and {high:.4g} kg m^2"
    fix = (
        "Export it again: about the centre of mass, off-diagonal terms with the sign of the tensor"
        " (minus the products of inertia), in kg m^2"
    )
    if low < -_THIN * high:
        message = f"the inertia is not positive definite: {shown}"
        return [Finding("error", link.element, message, fix)]
    if low + middle < high * (1.0 - _ROUNDING):
        message = f"the inertia violates the triangle inequality: {shown}"
        return [Finding("error", link.element, message, fix)]
    if low < _THIN * high:
        message = f"the inertia is that of a rod without thickness: {shown}"
        return [Finding("warning", link.element, message, "Give all three moments a value")]
    return []


def check_centers(model: RobotModel, urdf: Urdf) -> list[Finding]:
    """Looks for centres of mass far outside their links.

    A link of primitive shapes reaches as far as those; of any other it is known that it spans its
    own frame and those of the links that it carries, and a centre of mass is suspect where it is
    farther from its frame than twice that span and half the robot.
    """
    nodes = {node.attributes["name"]: node for node in urdf.node.all("link")}
    places = {link.name: link.element for link in urdf.links}
    spans, size = _spans(model)
    findings = []
    for name, mass, com, span in zip(
        model.link_names, model.link_masses, model.link_coms, spans, strict=True
    ):
        bounds = bounds_of(nodes[name])
        if bounds is not None:
            low, high = bounds
            outside = float(np.linalg.norm(np.maximum(0.0, np.maximum(low - com, com - high))))
            allowed = 0.01 + 0.2 * float(np.linalg.norm(high - low))
            message = f"the centre of mass is {outside * 1e3:.0f} mm outside the link's shape"
        else:
            outside, allowed = float(np.linalg.norm(com)), 2.0 * span + 0.5 * size
            message = (
                f"the centre of mass is {outside:.3g} m from the link's frame, "
                f"which spans {span:.3g} m"
            )
        if mass > 0.0 and size > 0.0 and outside > allowed:
            fix = "Is its <origin> in m, and in the frame of the link? Export it again"
            findings.append(Finding("warning", places[name], message, fix))
    return findings


def _spans(model: RobotModel) -> tuple[list[float], float]:
    """Finds how far each link reaches to its joints, and the extent of all frames at q = 0, m."""
    _, p = link_poses(model, np.zeros(model.n_joints))
    spans = np.zeros(model.n_links)
    for i, parent in enumerate(model.link_parents.tolist()[1:], start=1):
        length = float(np.linalg.norm(p[i] - p[parent]))
        spans[parent] = max(spans[parent], length)
        spans[i] = max(spans[i], length)
    return spans.tolist(), float(np.ptp(p, axis=0).max())
