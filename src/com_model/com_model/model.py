"""RobotModel: the masses, joints and frames of a robot, read from its URDF."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from com_model.arrays import Array, Indices, as_array, freeze
from com_model.bodies import Bodies, build_bodies, independent_joints
from com_model.exceptions import UnknownNameError, UrdfError, listing
from com_model.geometry.rotations import rotation_from_rpy
from com_model.text import Facts, Shown, signed_mm
from com_model.urdf.elements import Joint, Link, Tree, Urdf, build_tree
from com_model.urdf.mjcf import urdf_of_mjcf
from com_model.urdf.parsing import find_misspellings, parse_urdf
from com_model.urdf.xml_reader import is_mjcf, read_bounded


class Frame(NamedTuple):
    """A frame fixed to a link that the URDF does not have, such as a sole.

    Attributes:
        name: Its name; a link_name of the models that have it.
        link: The link that it is fixed to.
        xyz: (3,) m, its origin in the link's frame.
        rpy: (3,) rad, its roll, pitch and yaw against the link.
    """

    name: str
    link: str
    xyz: tuple[float, ...] = (0.0, 0.0, 0.0)
    rpy: tuple[float, ...] = (
        0.0,
        0.0,
        0.0,
    )


@dataclass(frozen=True, eq=False, repr=False)
class RobotModel(Shown):
    """A robot of L links and n independent joints; arrays are read-only.

    Links and joints stand depth-first, children in the order of their joints in the URDF. Fixed
    and mimic joints are not among the n. A massless world link above a floating or planar joint is
    dropped: the link below it is the root.

    Attributes:
        name: Of the robot.
        link_names: L names, root first.
        link_parents: (L,) index of the parent link, -1 for the root.
        joint_names: n names, the order of q.
        joint_types: n times "revolute", "continuous" or "prismatic".
        mass: kg, of all links.
        link_masses: (L,) kg; 0 for links without inertial.
        link_coms: (L, 3) m, centre of mass in the link's frame; 0 for links without inertial.
        link_inertias: (L, 3, 3) kg m^2, about the centre of mass, axes of the link.
        lower: (n,) smallest positions, rad or m; -inf where the URDF has none.
        upper: (n,) largest positions; inf where the URDF has none.
        velocity_limits: (n,) rad/s or m/s; inf where the URDF has none.
        effort_limits: (n,) N m or N; inf where the URDF has none.
        neutral: (n,) zero, clipped into the limits.
        bodies: The moving bodies as flat arrays, fixed joints folded in.
        xml: The URDF that it was read from, without the added frames.
        frames: Frames that were added to it; links without mass.
        warnings: What of the URDF is wrong but can only mean one thing, with element and fix.
        path: Its file; None of a URDF that came as text.
    """

    name: str
    link_names: tuple[str, ...]
    link_parents: Indices
    joint_names: tuple[str, ...]
    joint_types: tuple[str, ...]
    mass: float
    link_masses: Array
    link_coms: Array
    link_inertias: Array
    lower: Array
    upper: Array
    velocity_limits: Array
    effort_limits: Array
    neutral: Array
    bodies: Bodies
    xml: str
    frames: tuple[Frame, ...] = ()
    warnings: tuple[str, ...] = ()
    path: Path | None = None

    def __post_init__(self) -> None:
        freeze(self)
        object.__setattr__(
            self, "_link_index", {n: i for i, n in enumerate(self.link_names)}
        )
        object.__setattr__(
            self, "_joint_index", {n: i for i, n in enumerate(self.joint_names)}
        )

    def facts(self) -> Facts:
        """Name and size; mass and CoM of each link that has a mass."""
        rows = [
            (name, f"{mass:.3f}", *signed_mm(com))
            for name, mass, com in zip(
                self.link_names, self.link_masses, self.link_coms, strict=True
            )
            if mass > 0.0
        ]
        return Facts(
            f"{self.name!r}: {self.n_links} links, {self.n_joints} joints, {self.mass:.4g} kg",
            ("link", "kg", *("CoM " + axis + ", mm" for axis in "xyz")),
            rows,
        )

    @classmethod
    def from_urdf(cls, xml: str | bytes, frames: Sequence[Frame] = ()) -> "RobotModel":
        """Reads a model from the text of a URDF.

        Args:
            xml: The document, at most 64 MiB; text, or bytes as its declaration says.
            frames: Frames to add, as links without mass.

        Returns:
            The model.

        Raises:
            UrdfError: It is no URDF, or none that has a centre of mass.
            UnknownNameError: A frame is on a link that it does not have.
        """
        return model_of(_with_frames(parse_urdf(xml), frames), tuple(frames))

    @classmethod
    def from_mjcf(cls, path: str | os.PathLike[str]) -> "RobotModel":
        """Reads a model of MuJoCo; its links are the bodies and sites, its `xml` is their URDF.

        Args:
            path: Of the MJCF file.

        Raises:
            UrdfError: MuJoCo cannot compile it, or it is no tree of revolute, prismatic and fixed
                joints.
        """
        return replace(cls.from_urdf(urdf_of_mjcf(path)), path=Path(path))

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> "RobotModel":
        """Reads a model from a file.

        Args:
            path: Of a URDF, or of a model of MuJoCo (MJCF).

        Raises:
            UrdfError: As from_urdf and from_mjcf, or where it cannot be read.
        """
        if is_mjcf(path):
            return cls.from_mjcf(path)
        return replace(cls.from_urdf(read_bounded(path)), path=Path(path))

    def with_frames(self, frames: Sequence[Frame]) -> "RobotModel":
        """Gives the same robot with these added frames, and no others."""
        same = tuple(frames) == self.frames
        return (
            self if same else replace(self.from_urdf(self.xml, frames), path=self.path)
        )

    @property
    def root_link(self) -> str:
        """Name of the root link; its frame is the one that results are given in."""
        return self.link_names[0]

    @property
    def n_links(self) -> int:
        """Number of links, L."""
        return len(self.link_names)

    @property
    def n_joints(self) -> int:
        """Number of independent joints, n."""
        return len(self.joint_names)

    def link_index(self, name: str) -> int:
        """Finds a link's index."""
        return self._index("link", name, self.link_names)

    def joint_index(self, name: str) -> int:
        """Finds an independent joint's index in q."""
        return self._index("joint", name, self.joint_names)

    def _index(self, kind: str, name: str, names: tuple[str, ...]) -> int:
        index = self.__dict__[f"_{kind}_index"].get(name)
        if index is None:
            raise UnknownNameError(kind, name, names)
        return int(index)

    def check_q(self, q: ArrayLike, name: str = "q") -> Array:
        """Converts joint positions to an array and checks their number.

        Args:
            q: (n,) rad or m.
            name: Name of the argument, for messages.

        Returns:
            (n,) float64.

        Raises:
            ShapeError: They are not n numbers.
        """
        hint = f"The joints are {listing(self.joint_names, limit=200)}"
        return as_array(name, q, (self.n_joints,), hint)


def _with_frames(urdf: Urdf, frames: Sequence[Frame]) -> Urdf:
    names = [link.name for link in urdf.links]
    links, joints, origin = [], [], np.zeros(3)
    for frame in frames:
        if frame.link not in names:
            raise UnknownNameError("link", frame.link, names)
        element = f"frame {frame.name!r}"
        if frame.name in names:
            fix = "Give the frame another name, or use the link: then it is no frame to add"
            raise UrdfError("the URDF has a link of this name", element, fix)
        links.append(Link(frame.name, element, 0.0, origin, np.zeros((3, 3)), False))
        R, d = rotation_from_rpy(list(frame.rpy)), np.array(frame.xyz)
        joint = (
            frame.link,
            frame.name,
            R,
            d,
            origin,
            -np.inf,
            np.inf,
            np.inf,
            np.inf,
            None,
        )
        joints.append(Joint(f"{frame.name} on {frame.link}", element, "fixed", *joint))
    return replace(urdf, links=(*urdf.links, *links), joints=(*urdf.joints, *joints))


def model_of(urdf: Urdf, frames: tuple[Frame, ...] = ()) -> RobotModel:
    """Makes the model of a URDF that has been read; see RobotModel.from_urdf.

    Args:
        urdf: The links and joints.
        frames: Frames that were added to it.
    """
    tree = build_tree(urdf)
    masses = np.array([link.mass for link in tree.links])
    inertias = np.array([link.inertia for link in tree.links])
    joints = independent_joints(tree)
    lower = np.array([joint.lower for joint in joints], dtype=float)
    upper = np.array([joint.upper for joint in joints], dtype=float)
    with np.errstate(over="ignore", invalid="ignore"):
        mass = float(np.sum(masses))
        _check_total_mass(urdf, tree, mass)
        bodies = build_bodies(tree)
    _check_finite(urdf, bodies, inertias)
    return RobotModel(
        name=urdf.name,
        link_names=tuple(link.name for link in tree.links),
        link_parents=np.array(tree.parents, dtype=np.int64),
        joint_names=tuple(joint.name for joint in joints),
        joint_types=tuple(joint.kind for joint in joints),
        mass=mass,
        link_masses=masses,
        link_coms=np.array([link.com for link in tree.links]),
        link_inertias=inertias,
        lower=lower,
        upper=upper,
        velocity_limits=np.array([joint.velocity for joint in joints], dtype=float),
        effort_limits=np.array([joint.effort for joint in joints], dtype=float),
        neutral=np.clip(np.zeros(len(joints)), lower, upper),
        bodies=bodies,
        xml=urdf.text,
        frames=frames,
        warnings=tuple(_warnings(urdf)),
    )


def _warnings(urdf: Urdf) -> Iterator[str]:
    for joint in urdf.joints:
        for problem, fix in joint.warnings:
            yield f"{joint.element}: {problem}. {fix}"
    for found in find_misspellings(urdf.node):
        if found.matters:
            yield f"{found.first}: {found}; parsers skip it. com-audit --fix corrects it"


def _check_total_mass(urdf: Urdf, tree: Tree, mass: float) -> None:
    if mass > 1e-9:
        return
    with_inertial = sum(link.has_inertial for link in tree.links)
    misspelt = [str(m) for m in find_misspellings(urdf.node) if m.matters]
    if misspelt:
        fix = f"Misspelt tags: {'; '.join(misspelt)}"
    elif with_inertial:
        fix = "Give the <mass> of the links their values in kg"
    else:
        fix = "Add <inertial> elements with the masses of the links"
    counts = f"{with_inertial} of {len(tree.links)} links have an <inertial>"
    raise UrdfError(f"the total mass is {mass:g} kg ({counts})", str(urdf.node), fix)


def _check_finite(urdf: Urdf, bodies: Bodies, inertias: Array) -> None:
    drives = bodies.multiplier, bodies.offset
    arrays = (
        inertias,
        bodies.inertia,
        bodies.d,
        bodies.first_moment,
        bodies.subtree_mass,
        *drives,
    )
    if not all(np.isfinite(array).all() for array in arrays):
        fix = (
            "Masses are in kg and lengths in m: look for a value with a wrong exponent"
        )
        raise UrdfError("sums of its values overflow", str(urdf.node), fix)
