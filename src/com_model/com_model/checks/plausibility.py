"""Whether masses and inertias fit the sizes of their links, and each other.

Bounds are those of any rigid body inside the shape, so that what is found cannot be right:

  density   m / V <= STEEL        V: of a box around the link's shapes and joints
  inertia   I <= m r^2            r: from the centre of mass to the farthest corner of that box
            tr I >= 1.2 m b^2     b: radius of a ball of steel of that mass, the densest body

One cause for most links is the file's unit: g instead of kg, kg mm^2 instead of kg m^2.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from com_model.arrays import Array
from com_model.checks.issues import Correction, Issue
from com_model.model import RobotModel
from com_model.shapes.urdf_shapes import ShapeReader
from com_model.text import listing
from com_model.urdf.elements import Link, Urdf

STEEL = 7900.0
"""kg/m^3, of solid steel: links are hollow, motors have about 3 000."""

HEAVY = 4000.0
"""kg/m^3 over a box around a link, which no motor with its housing reaches."""

_MASS_UNITS = {"g": 1e3}
_INERTIA_UNITS = {
    "kg cm^2": 1e4,
    "kg mm^2": 1e6,
    "g cm^2": 1e7,
    "g mm^2": 1e9,
}
_MOST = 0.5  # of the links that a unit must explain
TWIN = 0.2
"""Of the largest moment, by which inertias of left and right may differ."""

# x, y, z and each two of the diagonals between them: boxes in four orientations
_TRIPLES = np.array(
    [
        np.eye(3),
        [[1, 0, 0], [0, 1, 1], [0, 1, -1]],
        [[0, 1, 0], [1, 0, 1], [1, 0, -1]],
        [[0, 0, 1], [1, 1, 0], [1, -1, 0]],
    ],
    dtype=float,
)
_TRIPLES /= np.linalg.norm(_TRIPLES, axis=2, keepdims=True)


@dataclass(frozen=True, eq=False)
class LinkSize:
    """The size of a link with shapes, and its mass over it.

    Attributes:
        link: as the file gives it.
        volume: m^3, of the smallest of four boxes around its shapes and its joints.
        reach: m, from the centre of mass to the farthest corner of such a box.
    """

    link: Link
    volume: float
    reach: float

    @property
    def density(self) -> float:
        """kg/m^3 over the box."""
        return self.link.mass / max(self.volume, 1e-12)

    @property
    def gyration(self) -> float:
        """m, largest radius of gyration."""
        return float(
            np.sqrt(np.linalg.eigvalsh(self.link.inertia)[-1] / self.link.mass)
        )


def check_sizes(model: RobotModel, urdf: Urdf, meshes: bool) -> list[Issue]:
    """Compares masses and inertias with what bodies of the links' sizes can have.

    Args:
        model: the robot.
        urdf: its elements.
        meshes: whether mesh files are read; without, links of primitives only.

    Returns:
        The issues; one for all links that one unit explains.
    """
    # lighter links do not matter
    least = 0.003 * model.mass
    heavy = sum(link.mass >= least for link in urdf.links)
    sizes = [s for s in _link_sizes(model, urdf, meshes) if s.link.mass >= least]
    masses = [(s, s.density / HEAVY) for s in sizes]
    inertias = [(s, (s.gyration / s.reach) ** 2) for s in sizes if s.reach > 0.0]
    unit, same = "", _same_inertias(urdf)
    if len(sizes) >= _MOST * heavy:
        unit = _unit(masses, _MASS_UNITS, 0.05)
        unit = unit or ("" if same else _unit(inertias, _INERTIA_UNITS, 0.1))
    if unit in _MASS_UNITS:
        return [_unit_issue("masses", unit, "kg")]
    issues = [issue for size in sizes if (issue := _density_issue(size))]
    if same:
        return [*same, *issues]
    if unit:
        return [_unit_issue("inertias", unit, "kg m^2"), *issues]
    return issues + [issue for size in sizes if (issue := _inertia_issue(size))]


def _link_sizes(model: RobotModel, urdf: Urdf, meshes: bool) -> list[LinkSize]:
    """Sizes of the links that have mass and shapes that can be read."""
    reader = ShapeReader(model.xml, model.path)
    found = []
    for link in urdf.links:
        known = link.name in model.link_names and link.inertia.max() > 0.0
        if link.mass <= 0.0 or not known:
            continue
        ends = reader.bounds(link.name, _TRIPLES.reshape(-1, 3), meshes)
        if ends is None:
            continue
        carried = [joint.d for joint in urdf.joints if joint.parent == link.name]
        joints = np.array([np.zeros(3), *carried])
        along = joints @ _TRIPLES.reshape(-1, 3).T
        low = np.minimum(ends[0], along.min(axis=0)).reshape(-1, 3)
        high = np.maximum(ends[1], along.max(axis=0)).reshape(-1, 3)
        # m: a plane or a marker, which is not the link's body
        if (high - low).min() < 0.001:
            continue
        at = (_TRIPLES.reshape(-1, 3) @ link.com).reshape(-1, 3)
        corner = np.maximum(np.abs(low - at), np.abs(high - at))
        reach = float(np.linalg.norm(corner, axis=1).min())
        found.append(LinkSize(link, float((high - low).prod(axis=1).min()), reach))
    return found


def _unit(
    ratios: Sequence[tuple[LinkSize, float]], units: dict[str, float], usual: float
) -> str:
    """The unit that explains most ratios of what is read over the most that can be; "": none.

    Args:
        ratios: sizes, and what is read over the most that can be.
        units: by name, how many are one of the right unit.
        usual: of sound links, the median of the ratio.
    """
    values = np.array([ratio for _, ratio in ratios])
    if len(values) < 3 or (values > 1.0).mean() < _MOST:
        return ""
    factor = float(np.median(values)) / usual
    name = min(units, key=lambda each: abs(np.log(factor / units[each])))
    # within a factor of 16 of the unit's
    return name if abs(np.log(factor / units[name])) < np.log(16.0) else ""


def _unit_issue(what: str, unit: str, right: str) -> Issue:
    message = (
        f"the {what} are in {unit}: of most links they are as many times too large"
    )
    fix = f"Divide all {what} by the {unit} in one {right}, or export again in {right}"
    correction = Correction(what, 1.0 / (_MASS_UNITS | _INERTIA_UNITS)[unit])
    return Issue("error", "all links", message, fix, correction)


def _density_issue(size: LinkSize) -> Issue | None:
    if size.density <= HEAVY:
        return None
    severity = "error" if size.density > STEEL else "warning"
    message = (
        f"has {size.link.mass:g} kg in {1e6 * size.volume:.0f} cm^3, {size.density:.0f} kg/m^3; "
        f"solid steel has {STEEL:.0f}, motors about 3000"
    )
    fix = "Correct its mass (kg), or the scale of its shape (m)"
    return Issue(severity, size.link.element, message, fix)


def _inertia_issue(size: LinkSize) -> Issue | None:
    # of the farthest corner; m
    link, share, more = size.link, 1.05, 0.003
    ball = (3.0 * link.mass / (4.0 * np.pi * STEEL)) ** (1 / 3)
    least = 1.2 * link.mass * ball**2
    if size.gyration > share * size.reach + more:
        message = (
            f"the inertia is that of {link.mass:g} kg at {1e3 * size.gyration:.0f} mm from the "
            f"centre of mass, and the link ends at {1e3 * size.reach:.0f} mm"
        )
        severity = "error" if size.gyration > 2.0 * size.reach else "warning"
    elif float(np.trace(link.inertia)) < 0.5 * least:
        message = (
            f"the inertia is smaller than that of a ball of steel of {link.mass:g} kg"
        )
        severity = "warning"
    else:
        return None
    fix = (
        "Export it again about the centre of mass, in kg m^2, or take a box of its size"
    )
    return Issue(severity, link.element, message, fix)


def check_copies(model: RobotModel, urdf: Urdf) -> list[Issue]:
    """Looks for masses that are those of something else, or of nothing.

    Args:
        model: the robot.
        urdf: its elements.

    Returns:
        Issues of inertials that a fixed child repeats, of frames and placeholders with mass, of
        mass where there is no shape, and of a root that has a shape and no mass.
    """
    shaped = shaped_links(urdf)
    return [
        *_repeated(urdf),
        *_frames(urdf, shaped),
        *_placeholders(urdf),
        *_without_shape(model, urdf, shaped),
        *_empty_root(model, shaped),
    ]


def shaped_links(urdf: Urdf) -> set[str]:
    """Names of the links that have a shape, whether it can be read or not.

    Args:
        urdf: elements of a robot.
    """
    return {
        node.attributes.get("name", "")
        for node in urdf.node.all("link")
        if node.all("visual") or node.all("collision")
    }


def _repeated(urdf: Urdf) -> list[Issue]:
    """Fixed children whose inertial is that of the parent, to the last digit."""
    links, issues = {link.name: link for link in urdf.links}, []
    for joint in urdf.joints:
        above, below = links.get(joint.parent), links.get(joint.child)
        if joint.kind != "fixed" or above is None or below is None or below.mass <= 0.0:
            continue
        same = above.mass == below.mass and np.array_equal(above.inertia, below.inertia)
        if same and below.mass not in _ROUND:
            message = (
                f"has the mass and the inertia of {above.name!r}, to which it is fixed, to the "
                f"last digit: its {below.mass:g} kg count twice"
            )
            fix = "Delete the <inertial> of one of the two"
            own = Correction("no mass", links=(below.name,))
            issues.append(Issue("warning", below.element, message, fix, own))
    return issues


_ROUND = (0.001, 0.01, 0.1, 1.0, 10.0)
"""kg, that exporters and people write where they know no mass."""


def _frames(urdf: Urdf, shaped: set[str]) -> list[Issue]:
    """Fixed links without shape that have a mass that nobody weighed."""
    fixed = {joint.child for joint in urdf.joints if joint.kind == "fixed"}
    found = [
        link.name
        for link in urdf.links
        if link.name in fixed - shaped and link.mass in _ROUND[2:]
    ]
    if not found:
        return []
    message = (
        f"{len(found)} frames without shape have a mass that looks like a placeholder"
    )
    fix = "Delete their <inertial>: a frame needs none"
    correction = Correction("no mass", links=tuple(found))
    return [Issue("warning", f"links {listing(found)}", message, fix, correction)]


def _placeholders(urdf: Urdf) -> list[Issue]:
    """One round mass for most links."""
    massive = [link for link in urdf.links if link.mass > 0.0]
    # links of one value; of all that have mass
    least, share = 4, 0.6
    for mass in _ROUND:
        own = [link.name for link in massive if link.mass == mass]
        if len(own) >= least and len(own) >= share * len(massive):
            message = (
                f"{len(own)} of {len(massive)} links have a mass of exactly {mass:g} kg"
            )
            fix = "These are placeholders: export the masses from the drawings, or weigh the parts"
            return [Issue("error", f"links {listing(own)}", message, fix)]
    return []


def _same_inertias(urdf: Urdf) -> list[Issue]:
    """One inertia for most links, whose masses differ."""
    massive = [link for link in urdf.links if link.mass > 0.0]
    least, share = 4, 0.6
    groups: dict[bytes, list[Link]] = {}
    for link in massive:
        groups.setdefault(
            np.sort(np.linalg.eigvalsh(link.inertia)).tobytes(), []
        ).append(link)
    own = max(groups.values(), key=len, default=[])
    most = len(own) >= least and len(own) >= share * len(massive)
    if not most or len({link.mass for link in own}) < least or not own[0].inertia.any():
        return []
    shown = ", ".join(f"{value:.4g}" for value in np.linalg.eigvalsh(own[0].inertia))
    message = f"{len(own)} of {len(massive)} links have exactly the same inertia ({shown} kg m^2)"
    fix = "These are placeholders: export them, or take those of boxes of the links' sizes"
    return [Issue("error", f"links {listing(link.name for link in own)}", message, fix)]


def _without_shape(model: RobotModel, urdf: Urdf, shaped: set[str]) -> list[Issue]:
    """Links with much of the mass and no shape, that are not fixed to a shape without mass."""
    massive = [link for link in urdf.links if link.mass > 0.0]
    with_shape = [link for link in massive if link.name in shaped]
    if len(with_shape) < 0.5 * len(massive):
        return []
    # the mass of such a link is elsewhere
    light = {link.name for link in urdf.links if link.mass < 0.01 * model.mass}
    empty = light & shaped
    fixed = [joint for joint in urdf.joints if joint.kind == "fixed"]
    excused = {j.parent for j in fixed if j.child in empty}
    excused |= {j.child for j in fixed if j.parent in empty}
    issues = []
    for link in massive:
        part = link.mass / model.mass
        if link.name in shaped | excused or part < 0.25:
            continue
        message = (
            f"has no shape and {link.mass:g} kg, {100.0 * part:.0f} % of the robot"
        )
        fix = "Is it the mass of the whole robot, or counted twice? Give the part its shape"
        issues.append(Issue("warning", link.element, message, fix))
    return issues


def _empty_root(model: RobotModel, shaped: set[str]) -> list[Issue]:
    """A root that has a shape and no mass, nor carries a trunk or a link with its mass."""
    links = zip(
        model.link_names, model.link_masses, model.bodies.body_of_link, strict=True
    )
    own = [(name, mass) for name, mass, body in links if body == 0]
    # more than sensors weigh, of the robot's mass
    heavy = 0.05 * model.mass
    elsewhere = any(mass > heavy and name not in shaped for name, mass in own)
    # of the robot's mass, that trunks exceed
    trunk = model.bodies.mass[0] > 0.2 * model.mass
    if model.root_link not in shaped or own[0][1] > 0.0 or elsewhere or trunk:
        return []
    message = (
        "has a shape but no mass: the centre of mass is that of the other links alone"
    )
    fix = "Give it an <inertial> with mass, centre of mass and inertia"
    return [Issue("error", f"root link {model.root_link!r}", message, fix)]


def check_limits(urdf: Urdf) -> list[Issue]:
    """Looks for position limits in degrees.

    Args:
        urdf: elements of a robot.
    """
    limits = {
        joint.element: max(abs(joint.lower), abs(joint.upper))
        for joint in urdf.joints
        if joint.kind == "revolute" and np.isfinite([joint.lower, joint.upper]).all()
    }
    # rad, beyond which few joints with limits turn
    beyond = [
        element for element, limit in limits.items() if 4.0 * np.pi < limit <= 360.0
    ]
    if len(beyond) < 2 or len(beyond) < _MOST * len(limits):
        return []
    message = f"{len(beyond)} of {len(limits)} revolute joints turn more than twice"
    fix = "The limits are in degrees: multiply lower and upper by pi/180"
    correction = Correction("limits", np.pi / 180.0)
    return [Issue("error", listing(beyond, 3), message, fix, correction)]


def mirror_miss(R: Array, inertia: Array, other: Array, axis: int) -> float:
    """How far two links' inertias are from mirroring each other, over the larger one.

    Args:
        R: (2, 3, 3) their orientations, root axes.
        inertia: (3, 3) of the one, kg m^2, its axes.
        other: (3, 3) of the other.
        axis: across the plane of the mirror, 0 to 2 of the root's.
    """
    mirror = np.eye(3)
    mirror[axis, axis] = -1.0
    one = mirror @ R[0] @ inertia @ R[0].T @ mirror
    two = R[1] @ other @ R[1].T
    size = max(np.abs(one).max(), np.abs(two).max())
    return float(np.abs(one - two).max() / size) if size > 0.0 else 0.0
