"""Audit of a robot's model: what in its URDF makes a wrong centre of mass or a wrong simulation.

correct() makes those corrections that are beyond doubt, each with what was done, into a new text.
"""

import math
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from com_model.arrays import Array
from com_model.checks.issues import SEVERITIES, Correction, Issue
from com_model.checks.plausibility import (
    TWIN,
    check_copies,
    check_limits,
    check_sizes,
    mirror_miss,
    shaped_links,
)
from com_model.dynamics.kinematics import link_poses
from com_model.exceptions import ComModelError, UrdfError, listing
from com_model.model import RobotModel, model_of
from com_model.shapes.urdf_shapes import ShapeReader
from com_model.text import Facts, Shown
from com_model.urdf.editing import Inertial, XmlText, edit_inertials
from com_model.urdf.elements import SCHEMA, Link, Urdf
from com_model.urdf.mjcf import read_description
from com_model.urdf.parsing import (
    Misspelling,
    correct_misspellings,
    find_misspellings,
    parse_urdf,
    urdf_of,
)
from com_model.urdf.xml_reader import Node, Schema, read_xml

_LINK = SCHEMA["robot"]["link"] | {"visual": {}, "collision": {}}
_SCHEMA: Schema = {"robot": SCHEMA["robot"] | {"link": _LINK}}
_TEXTS = (
    "name",
    "type",
    "link",
    "joint",
    "xyz",
    "rpy",
)  # attributes of no single number
_POINT = 1e-5  # m, radius of gyration
_RIGHT_OF = {"left": "right", "Left": "Right", "LEFT": "RIGHT", "l": "r", "L": "R"}
_OTHER_SIDE = _RIGHT_OF | {right: left for left, right in _RIGHT_OF.items()}


@dataclass(frozen=True, repr=False)
class AuditReport(Shown):
    """All issues of a model, errors first, and the model in one line."""

    title: str
    issues: tuple[Issue, ...]

    def facts(self) -> Facts:
        """The model and the numbers of its issues; the issues."""
        rows = [(i.element, i.severity, i.message, i.fix) for i in self.issues]
        line = f"{self.title}: {len(self.issues)} issues"
        return Facts(line, ("element", "severity", "what", "fix"), rows)

    def select(self, severity: str) -> tuple[Issue, ...]:
        """Lists the issues of one severity."""
        return tuple(issue for issue in self.issues if issue.severity == severity)

    @property
    def ok(self) -> bool:
        """Whether there are no errors."""
        return not self.select("error")

    def text(self) -> str:
        """Writes the report for a person."""
        lines = [self.title]
        for i in self.issues:
            lines += [
                f"{i.severity + ':':<9}{i.element}: {i.message}",
                f"{'':<9}-> {i.fix}",
            ]
        counts = [(len(self.select(severity)), severity) for severity in SEVERITIES[:2]]
        words = [
            f"{n or 'no'} {severity}{'s' if n != 1 else ''}" for n, severity in counts
        ]
        return "\n".join([*lines, ", ".join(words)])


def audit(
    robot: RobotModel | str | bytes | os.PathLike[str],
    scale_mass: float | None = None,
    meshes: bool = True,
) -> AuditReport:
    """Examines a robot's model, which need not load.

    Looks for what keeps the URDF from loading; misspelt tags; links that move without mass;
    inertias that no body can have, or none of the link's size; masses denser than steel, in other
    units, counted twice or left as placeholders; centres of mass far outside their links; left and
    right sides that differ; limits in degrees; and a total mass that is not the one that a scale
    shows.

    Args:
        robot: A model, the text of a URDF, or its path.
        scale_mass: Measured mass of the robot, kg; None where it was not measured.
        meshes: Whether mesh files are read, for the sizes of links; takes seconds.

    Returns:
        The issues, errors first.

    Raises:
        ComModelError: The measured mass is not above 0.
    """
    if scale_mass is not None and not (math.isfinite(scale_mass) and scale_mass > 0.0):
        raise ComModelError(f"scale_mass: expected kg above 0, got {scale_mass}")
    title = "no model: the URDF cannot be read"
    issues: list[Issue] = []
    try:
        xml, path = _source(robot)
        node, text = read_xml(xml, _SCHEMA)
        name = repr(node.attributes.get("name", "robot without name"))[1:-1]
        title = f"{name}: cannot be loaded"
        issues += [_misspelling(m) for m in find_misspellings(node)]
        urdf = urdf_of(node, text)
        warnings = ((j.element, *texts) for j in urdf.joints for texts in j.warnings)
        issues += [Issue("warning", *each) for each in warnings]
        issues += _check_numbers(node) + _check_inertias(urdf)
        model = replace(model_of(urdf), path=path)
        title = f"{name}: {model.n_links} links, {model.n_joints} joints, "
        title += f"{model.mass:.4f} kg"
        issues += (
            _check_masses(model, urdf)
            + _check_centers(model, urdf)
            + _check_symmetry(model)
            + check_sizes(model, urdf, meshes)
            + check_copies(model, urdf)
            + check_limits(urdf)
            + _check_limits(urdf)
            + _check_scale(model, scale_mass)
        )
    except UrdfError as error:
        issues.append(Issue("error", error.element, error.message, error.fix))
    issues.sort(key=lambda issue: SEVERITIES.index(issue.severity))
    return AuditReport(title, tuple(issues))


def _source(
    robot: RobotModel | str | bytes | os.PathLike[str],
) -> tuple[str | bytes, Path | None]:
    """A robot's description, and where names of its mesh files count from."""
    if isinstance(robot, RobotModel):
        return robot.xml, robot.path
    if isinstance(robot, bytes) or (isinstance(robot, str) and "<" in robot):
        return robot, None
    return read_description(robot), Path(robot)


def _misspelling(found: Misspelling) -> Issue:
    effect = {
        "inertial": "so these links have no mass",
        "link": "so these links do not exist",
        "joint": "so these joints do not exist",
    }.get(found.meant, "so it has no effect")
    return Issue(
        "error" if found.matters else "warning",
        found.first
        if found.count == 1
        else f"{found.first} and {found.count - 1} more",
        f"misspelt tag: {found}; parsers skip it without a word, {effect}",
        f"Replace <{found.tag}> by <{found.meant}>, and </{found.tag}> by </{found.meant}>",
    )


def _check_numbers(node: Node) -> list[Issue]:
    """Looks for single numbers with a space behind them, which urdfdom in C++ does not read."""
    wrong = [
        part.tag
        for part in node.descendants()
        for key, text in part.attributes.items()
        if key not in _TEXTS and text != text.rstrip() and len(text.split()) == 1
    ]
    if not wrong:
        return []
    tags = listing([f"<{tag}>" for tag in dict.fromkeys(wrong)])
    message = (
        f"{len(wrong)} numbers have a space behind them: programs that read URDFs by urdfdom "
        "(rviz, Pinocchio, Gazebo) read these elements in part or not at all, masses of 0 included"
    )
    return [
        Issue("warning", tags, message, "Delete the spaces before the closing quotes")
    ]


def _check_limits(urdf: Urdf) -> list[Issue]:
    fix = "Give it <limit lower= upper= velocity= effort=>, or make it continuous"
    message = "has no position limits; other programs refuse it or let it turn freely"
    return [
        Issue("info", joint.element, message, fix)
        for joint in urdf.joints
        if joint.kind in ("revolute", "prismatic")
        and not joint.mimic
        and joint.lower == -math.inf
    ]


def _check_scale(model: RobotModel, scale_mass: float | None) -> list[Issue]:
    if scale_mass is None:
        return []
    missing = scale_mass - model.mass
    part, way = abs(missing) / scale_mass, "much"
    fix = "Look for parts that are counted twice or were taken off the robot"
    if missing > 0:
        way, fix = (
            "little",
            "Add what the drawing left out: battery, cables, covers, payload",
        )
    message = f"the URDF has {model.mass:.3f} kg, the scale shows {scale_mass:.3f} kg: "
    message += f"{abs(missing):.3f} kg ({part:.1%}) too {way}"
    severity = "error" if part > 0.05 else "warning" if part > 0.01 else "info"
    return [
        Issue(severity, "total mass", message, fix if part > 0.01 else "Nothing to do")
    ]


def _check_masses(model: RobotModel, urdf: Urdf) -> list[Issue]:
    """Looks for links that move and have no mass, neither their own nor of what is fixed to them.

    One issue each for those whose whole subtree has none (their joint moves nothing), those that
    have a shape, and those that have none (dummies between two axes, as a rule).
    """
    bodies = model.bodies
    owner = dict(zip(model.link_names, bodies.body_of_link.tolist(), strict=True))
    # None: a world link that was dropped
    shaped = {owner.get(name) for name in shaped_links(urdf)}
    groups: dict[str, list[str]] = {"nothing": [], "shape": [], "dummy": []}
    for b in range(1, bodies.count):
        if bodies.mass[b] == 0.0:
            shape = "shape" if b in shaped else "dummy"
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
        Issue(
            severity,
            f"links {listing(groups[kind])}",
            f"{len(groups[kind])} {message}",
            fix,
        )
        for kind, (severity, message) in words.items()
        if groups[kind]
    ]


def _check_inertias(urdf: Urdf) -> list[Issue]:
    """Checks the inertia of each link that has mass against what a body can have.

    The principal moments of a rigid body are positive, and none exceeds the sum of the others:
    each is the integral of the squared distances in two of three directions.
    """
    issues = []
    for link in urdf.links:
        if link.mass > 0.0:
            issues += _check_inertia(link)
        elif link.inertia.max() > _POINT**2:
            fix = "Give it its mass in kg, or delete the <inertial>"
            message = "has an inertia but a mass of 0"
            issues.append(Issue("warning", link.element, message, fix))
    return issues


def _check_inertia(link: Link) -> list[Issue]:
    moments = np.linalg.eigvalsh(link.inertia)
    moments[np.abs(moments) < 1e-12 * np.abs(moments).max()] = 0.0
    low, middle, high = moments.tolist()
    if high < link.mass * _POINT**2:
        message = f"has a mass of {link.mass:g} kg but no inertia"
        fix = "Give the <inertia> of a box of its size and mass, if nothing better is known"
        return [Issue("warning", link.element, message, fix)]
    shown = f"its principal moments are {low:.4g}, {middle:.4g} and {high:.4g} kg m^2"
    fix = (
        "Export it again: about the centre of mass, off-diagonal terms with the sign of the tensor"
        " (minus the products of inertia), in kg m^2"
    )
    severity, what = "error", ""
    # of the largest moment of inertia: what rounded decimals may violate
    thin = 1e-6  # of the largest moment of inertia
    if low < -thin * high:
        what = "is not positive definite"
    elif low + middle < high * (1.0 - 1e-3):
        what = "violates the triangle inequality"
    elif low < thin * high:
        severity, what = "warning", "is that of a rod without thickness"
        fix = "Give all three moments a value"
    return (
        [Issue(severity, link.element, f"the inertia {what}: {shown}", fix)]
        if what
        else []
    )


def _check_centers(model: RobotModel, urdf: Urdf) -> list[Issue]:
    """Looks for centres of mass far outside their links.

    A link of primitive shapes reaches as far as those; of any other it is known that it spans its
    own frame and those of the links that it carries, and a centre of mass is suspect where it is
    farther from its frame than twice that span and half the robot.
    """
    reader = ShapeReader(model.xml, model.path)
    places = {link.name: link.element for link in urdf.links}
    spans, size = _spans(model)
    issues = []
    for name, mass, com, span in zip(
        model.link_names, model.link_masses, model.link_coms, spans, strict=True
    ):
        bounds = reader.bounds(name)
        if bounds is not None:
            low, high = bounds
            outside = float(
                np.linalg.norm(np.maximum(0.0, np.maximum(low - com, com - high)))
            )
            allowed = 0.01 + 0.2 * float(np.linalg.norm(high - low))
            message = (
                f"the centre of mass is {outside * 1e3:.0f} mm outside the link's shape"
            )
        else:
            outside, allowed = float(np.linalg.norm(com)), 2.0 * span + 0.5 * size
            message = (
                f"the centre of mass is {outside:.3g} m from the link's frame, "
                f"which spans {span:.3g} m"
            )
        if mass > 0.0 and size > 0.0 and outside > allowed:
            fix = "Is its <origin> in m, and in the frame of the link? Export it again"
            issues.append(Issue("warning", places[name], message, fix))
    return issues


def _spans(model: RobotModel) -> tuple[list[float], float]:
    """Finds how far each link reaches to its joints, and the extent of all frames at q = 0, m."""
    _, p = link_poses(model, np.zeros(model.n_joints))
    parents, spans = model.link_parents[1:], np.zeros(model.n_links)
    spans[1:] = np.linalg.norm(p[1:] - p[parents], axis=1)
    np.maximum.at(spans, parents, spans[1:].copy())
    return spans.tolist(), float(np.ptp(p, axis=0).max())


def _check_symmetry(model: RobotModel) -> list[Issue]:
    """Compares links whose names differ by left and right.

    Masses are compared for every pair. Centres of mass are compared at q = 0, mirrored at the
    sagittal plane, for the pairs whose frames mirror each other there. That plane is the one across
    x, y or z of the root at which the most pairs do.
    """
    pairs = left_right_pairs(model.link_names)
    if not pairs:
        return []
    left, right = np.array(pairs).T
    R, p = link_poses(model, np.zeros(model.n_joints))
    centers = p + np.einsum("lij,lj->li", R, model.link_coms)
    axis, offset, mirrored = _sagittal_plane(p[left], p[right])
    misses = np.linalg.norm(
        _mirror(centers[left], axis, offset) - centers[right], axis=1
    )
    issues, names = [], model.link_names
    fix = "Where the robot is built symmetrically, mirror the better known of the two"
    for i, (a, b) in enumerate(pairs):
        masses, message = model.link_masses[[a, b]], ""
        # of the heavier one of left and right
        if np.ptp(masses) > 0.01 * masses.max():
            message = f"their masses are {masses[0]:.4g} and {masses[1]:.4g} kg"
        elif mirrored[i] and masses.min() > 0.0 and misses[i] > 2e-3:
            shown = [np.array2string(model.link_coms[k], precision=4) for k in (a, b)]
            message = (
                f"their centres of mass are {misses[i] * 1e3:.1f} mm from mirroring each other "
                f"(in the links' frames {shown[0]} and {shown[1]} m)"
            )
        elif mirrored[i] and masses.min() > 1e-4 * model.mass:  # no frames' masses
            inertias = model.link_inertias
            miss = mirror_miss(R[[a, b]], inertias[a], inertias[b], axis)
            if miss > TWIN:
                message = f"their inertias are {miss:.0%} from mirroring each other"
        if message:
            element = f"links {names[a]!r} and {names[b]!r}"
            issues.append(Issue("warning", element, message, fix))
    return issues


def left_right_pairs(names: Sequence[str]) -> list[tuple[int, int]]:
    """Pairs names that differ in nothing but left and right: indices, each in at most one pair.

    Words left and right are exchanged in any case, all of them at once; the letters l and r where
    they start or end a word (l_foot, FL_hip, RLEG_1, armL).
    """
    index = {name: i for i, name in enumerate(names)}
    pairs: list[tuple[int, int]] = []
    taken: set[int] = set()
    for name, i in index.items():
        for other in _mirror_names(name):
            j = index.get(other)
            if j is not None and i not in taken and j not in taken:
                pairs.append((i, j))
                taken.update((i, j))
    return pairs


def _mirror_names(name: str) -> list[str]:
    """Names that the right-hand partner of a left-hand name may have, likeliest first."""
    found = []
    words = re.sub(
        "left|right|Left|Right|LEFT|RIGHT", lambda match: _OTHER_SIDE[match[0]], name
    )
    if words != name and re.search("left", name, re.IGNORECASE):
        found.append(words)
    for match in re.finditer(r"[lL]", name):
        before, after = name[: match.start()], name[match.end() :]
        hump = match[0].isupper() and before[-1:].islower()
        starts = hump or not before[-1:].isalpha()
        ends = not after[:1].isalpha()
        if starts or ends:
            found.append(before + _OTHER_SIDE[match[0]] + after)
    return found


def _mirror(points: Array, axis: int, offset: float) -> Array:
    mirrored = points.copy()
    mirrored[:, axis] = 2.0 * offset - mirrored[:, axis]
    return mirrored


def _sagittal_plane(left: Array, right: Array) -> tuple[int, float, Array]:
    """Finds the axis, the plane's offset along it, and which pairs of points mirror at it."""
    planes = []
    for axis in (1, 0, 2):
        offset = float(np.median((left[:, axis] + right[:, axis]) / 2))
        misses = np.linalg.norm(_mirror(left, axis, offset) - right, axis=1)
        mirrored = (misses < 2e-3) & (left[:, axis] != right[:, axis])
        planes.append((axis, offset, mirrored))
    return max(planes, key=lambda plane: int(plane[2].sum()))


def correct(given: bytes, path: Path | None = None) -> tuple[str, list[str]]:
    """Corrects misspelt tags, units of the whole file, and inertials that count twice.

    Args:
        given: The URDF.
        path: Its file, from which relative names of meshes count; None: not known.

    Returns:
        The corrected URDF, and what was done, in sentences.

    Raises:
        UrdfError: It cannot be read.
    """
    node, xml = read_xml(given, SCHEMA)
    found = find_misspellings(node)
    done = [f"{each}" for each in found if each.matters]
    xml = correct_misspellings(xml, found)
    for _ in range(200):
        try:
            model = replace(RobotModel.from_urdf(xml), path=path)
        except UrdfError:  # audit says why
            break
        for issue in audit(model).issues:
            if issue.correction:
                xml = _EDITS[issue.correction.what](xml, issue.correction)
                done.append(f"{issue.element}: {issue.message}: {issue.correction}")
                break  # a unit of masses may hide one of inertias
        else:
            break
    return xml, done


def _scale_inertials(xml: str, correction: Correction) -> str:
    masses = correction.what == "masses"
    factors = (correction.factor, 1.0) if masses else (1.0, correction.factor)
    scaled = {
        link.name: Inertial(link.mass * factors[0], link.com, link.inertia * factors[1])
        for link in parse_urdf(xml).links
        if link.mass > 0.0
    }
    return edit_inertials(xml, scaled)


def _scale_limits(xml: str, correction: Correction) -> str:
    node, text = parse_urdf(xml).node, XmlText(xml.encode())
    for joint in node.all("joint"):
        for limit in (
            joint.all("limit") if joint.attributes.get("type") == "revolute" else ()
        ):
            for key in {"lower", "upper"} & set(limit.attributes):
                value = float(limit.attributes[key]) * correction.factor
                text.set(limit, key, f"{value:.9g}")
    return text.edited().decode()


def _delete_inertials(xml: str, correction: Correction) -> str:
    node, text = parse_urdf(xml).node, XmlText(xml.encode())
    for link in node.all("link"):
        if link.attributes["name"] in correction.links:
            for inertial in link.all("inertial"):
                text.replace(inertial, "")
    return text.edited().decode()


_EDITS: dict[str, Callable[[str, Correction], str]] = {
    "masses": _scale_inertials,
    "inertias": _scale_inertials,
    "limits": _scale_limits,
    "no mass": _delete_inertials,
}
