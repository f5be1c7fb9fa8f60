"""The URDF of a robot that MuJoCo describes (MJCF), for everything that reads URDFs.

MuJoCo itself compiles the model: defaults, includes, inertia from geoms and full inertias mean what
they mean there. Bodies become links of the same name with the same frame, mass, CoM and inertia;
hinges and slides joints; sites links without mass (IMUs and soles are often sites); a body with
several joints, or with joints that are not at its origin, gets links without mass in between.
"""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

import numpy as np

from com_model.arrays import Array
from com_model.exceptions import UrdfError, import_optional, listing, pip_install, quote
from com_model.geometry.rotations import rpy_from_rotation
from com_model.urdf.xml_reader import is_mjcf, read_bounded

_KINDS = {"hinge": "revolute", "slide": "prismatic"}


def read_description(path: str | os.PathLike[str]) -> bytes:
    """Reads the URDF of a file, or that of a model of MuJoCo.

    Args:
        path: Of a URDF or an MJCF.

    Raises:
        UrdfError: It cannot be read; see urdf_of_mjcf.
    """
    return urdf_of_mjcf(path).encode() if is_mjcf(path) else read_bounded(path)


def urdf_of_mjcf(path: str | os.PathLike[str]) -> str:
    """Writes a model of MuJoCo as a URDF.

    Args:
        path: Of the MJCF; included files and meshes are beside it, as it says.

    Returns:
        The URDF. Names of meshes are absolute paths.

    Raises:
        UrdfError: MuJoCo cannot compile it, or it is no tree of revolute, prismatic and fixed
            joints; names the element.
    """
    mujoco, file = (
        import_optional("mujoco", pip_install("mujoco")),
        Path(path).resolve(),
    )
    return _Writer(mujoco, *_compile(mujoco, file), file).write()


def drives_of_mjcf(path: str | os.PathLike[str]) -> dict[str, dict[str, float]]:
    """What a model of MuJoCo says of its joints' drives.

    An actuator with gear r, gain k and bias -k q - d qd is a position servo of stiffness r^2 k and
    damping r^2 d, with that of the joint; motors have no stiffness.

    Args:
        path: Of the MJCF.

    Returns:
        Of stiffness, damping (N m/rad, N m s/rad; N/m, N s/m) and armature (kg m^2; kg) those that
        are there, by joint.

    Raises:
        UrdfError: MuJoCo cannot compile it.
    """
    mujoco = import_optional("mujoco", pip_install("mujoco"))
    _, model, _ = _compile(mujoco, Path(path).resolve())
    found: dict[str, dict[str, float]] = {}
    for joint in range(model.njnt):
        dof, own = (
            model.jnt_dofadr[joint],
            found.setdefault(model.joint(joint).name, {}),
        )
        if model.dof_armature[dof] > 0.0:
            own["armature"] = float(model.dof_armature[dof])
        for k in range(model.nu):
            if model.actuator_trnid[k, 0] != joint or model.actuator_trntype[k] != 0:
                continue
            square = float(model.actuator_gear[k, 0]) ** 2
            stiffness, damping = -square * model.actuator_biasprm[k, 1:3]
            if (
                model.actuator_biastype[k] == mujoco.mjtBias.mjBIAS_AFFINE
                and stiffness > 0.0
            ):
                own["stiffness"] = float(stiffness)
                own["damping"] = float(damping + model.dof_damping[dof])
    return found


def _compile(mujoco: Any, file: Path) -> tuple[Any, Any, dict[str, str]]:
    """MuJoCo's MjSpec and MjModel of a file, and the names of mesh files that are missing.

    Only of a model that MuJoCo cannot compile files are left out.

    Raises:
        UrdfError: It cannot be compiled, or a mass depends on a missing mesh.
    """
    where = f"file {quote(str(file))}"
    with suppress(ValueError, mujoco.FatalError):
        spec = mujoco.MjSpec.from_file(str(file))
        return spec, spec.compile(), {}
    try:
        spec = mujoco.MjSpec.from_file(str(file))
        missing = _leave_out_missing(mujoco, spec, file, where)
        return spec, spec.compile(), missing
    except (ValueError, mujoco.FatalError) as error:
        text = " ".join(str(error).split())[:300]
        fix = "Load it with MuJoCo's own viewer first; meshes must be where it says"
        if scenes := _scenes(file):
            fix = f"It is a part of {listing(scenes, 3)}: give that file"
        raise UrdfError(f"MuJoCo cannot compile it: {text}", where, fix) from error


def _scenes(file: Path) -> list[str]:
    """Files beside an MJCF that include it; what it refers to may be in them."""
    own = f'"{file.name}"'.encode()
    return [
        path.name
        for path in sorted(file.parent.glob("*.xml"))
        if b"<include" in (text := read_bounded(path)) and own in text
    ]


def _leave_out_missing(
    mujoco: Any, spec: Any, file: Path, where: str
) -> dict[str, str]:
    """Puts 1 cm in place of each mesh without a file, a colour or a plane for other pictures.

    As of a URDF, masses and frames can be read without them; who needs shapes names the files.
    Returns the files of the meshes by the meshes' names.
    """
    missing: dict[str, str] = {}
    for mesh in spec.meshes:
        if mesh.file and not _mesh_path(spec, file, mesh, mesh.file).is_file():
            mesh.name = mesh.name or Path(mesh.file).stem
            missing[mesh.name], mesh.file = mesh.file, ""
            corners = np.vstack((np.zeros(3), np.eye(3))) * (0.01 / mesh.scale)
            mesh.uservert = corners.ravel()  # of a small tetrahedron
    for geom in spec.geoms:
        if geom.meshname in missing and _has_mass(mujoco, spec, geom):
            raise UrdfError(
                f"the mass of body {quote(geom.parent.name)} follows from the mesh "
                f"{quote(missing[geom.meshname])}, which is missing",
                where,
                "Get the meshes (git lfs pull, where the repository has them so), or give the "
                "body an <inertial>",
            )
    for field in spec.hfields:
        if field.file and not _mesh_path(spec, file, field, field.file).is_file():
            field.file, field.nrow, field.ncol, field.userdata = "", 2, 2, np.zeros(4)
    folder = file.parent / (spec.texturedir or "")
    for texture in spec.textures:
        files = [texture.file, *texture.cubefiles]
        if any(name and not (folder / name).is_file() for name in files):
            texture.file, texture.cubefiles = "", [""] * len(texture.cubefiles)
            texture.builtin = mujoco.mjtBuiltin.mjBUILTIN_FLAT
            texture.width = texture.height = 1
    return missing


def _has_mass(mujoco: Any, spec: Any, geom: Any) -> bool:
    """Whether a geom is part of its body's mass."""
    by_geoms = mujoco.mjtInertiaFromGeom(spec.compiler.inertiafromgeom).name
    first, last = spec.compiler.inertiagrouprange
    inertial = geom.parent.explicitinertial and not by_geoms.endswith("TRUE")
    counts = first <= geom.group <= last and geom.density != 0.0 and geom.mass != 0.0
    return bool(counts and not inertial)


def _mesh_path(spec: Any, file: Path, asset: Any, name: str) -> Path:
    """Where the file of a mesh or a height field is: beside the MJCF, or a model attached to it."""
    attached = re.findall(rb'<model\s[^>]*file="([^"]+)"', read_bounded(file))
    parts = (file.parent / os.fsdecode(part) for part in attached)
    inside = Path(asset.compiler.meshdir or "")
    inside /= Path(name).name if spec.strippath else name
    places = [folder / inside for folder in (file.parent, *(p.parent for p in parts))]
    return next((place for place in places if place.is_file()), places[0])


class _Writer:
    """Writes one compiled model."""

    def __init__(
        self, mujoco: Any, spec: Any, model: Any, missing: dict[str, str], file: Path
    ) -> None:
        self._mujoco, self._spec, self._model, self._file = mujoco, spec, model, file
        self._missing = missing
        self._robot = Element("robot", name=spec.modelname or file.stem)
        self._names: set[str] = set()
        self._bodies: dict[int, str] = {}

    def write(self) -> str:
        """The URDF."""
        model = self._model
        self._refuse_loops()
        root = self._root()
        inside = [
            body for body in range(root, model.nbody) if model.body_rootid[body] == root
        ]
        self._names = {self._name("body", body) for body in inside}
        for body in inside:
            self._add_body(body, is_root=body == root)
        for site in range(model.nsite):
            if model.site_bodyid[site] in self._bodies:
                self._add_site(site)
        ElementTree.indent(self._robot)
        return ElementTree.tostring(self._robot, encoding="unicode")

    def _root(self) -> int:
        """The body below the world that the robot hangs on; what stands around it is no part."""
        model = self._model
        trees = [b for b in range(1, model.nbody) if model.body_parentid[b] == 0]
        if not trees:
            fix = "Give the file that has the bodies"
            raise UrdfError("there is no body", "<worldbody>", fix)
        count = {body: len(self._joints_below(body)) for body in trees}
        first, *others = sorted(trees, key=lambda body: -count[body])
        # the robot has twice as many joints as anything else in the scene
        if others and count[first] <= 2 * count[others[0]]:
            names = listing([quote(self._name("body", body)) for body in trees])
            fix = "Give the file of the robot alone, without objects around it"
            raise UrdfError(f"{names} may each be the robot", "<worldbody>", fix)
        return first

    def _joints_below(self, root: int) -> list[int]:
        model = self._model
        return [
            j
            for j in range(model.njnt)
            if model.body_rootid[model.jnt_bodyid[j]] == root
        ]

    def _joints(self, body: int) -> range:
        begin = self._model.body_jntadr[body]
        return range(begin, begin + self._model.body_jntnum[body])

    def _kind(self, joint: int) -> str:
        kind = self._mujoco.mjtJoint(self._model.jnt_type[joint]).name
        return str(kind).removeprefix("mjJNT_").lower()

    def _name(self, kind: str, number: int) -> str:
        """Name of an element of the model, or what stands for it."""
        found = getattr(self._model, kind)(number).name
        return str(found) or f"{kind}_{number}"

    def _unused(self, name: str) -> str:
        """A name that no link has."""
        while name in self._names:
            name += "_"
        self._names.add(name)
        return name

    def _refuse_loops(self) -> None:
        """Refuses closed chains; a joint that follows another is none."""
        model, kinds = self._model, self._mujoco.mjtEq
        for k in range(model.neq):
            kind = kinds(int(model.eq_type[k]))
            closed = kind in (kinds.mjEQ_CONNECT, kinds.mjEQ_WELD)
            if closed and model.eq_active0[k]:
                raise UrdfError(
                    "closes a chain of links, which a tree of joints cannot describe",
                    f"<equality> {quote(self._name('equality', k))}",
                    "Take it out to look at the open chain",
                )

    def _add_body(self, body: int, is_root: bool) -> None:
        """A body with its inertial, shapes and joints."""
        model, name = self._model, self._name("body", body)
        joints = [j for j in self._joints(body) if self._kind(j) != "free"]
        if is_root and self._floats(joints):
            joints = []
        parent = "world" if is_root else self._bodies[int(model.body_parentid[body])]
        if is_root and joints:
            SubElement(self._robot, "link", name=self._unused("world"))
        link = SubElement(self._robot, "link", name=name)
        self._bodies[body] = name
        if model.body_mass[body] > 0.0:
            self._add_inertial(link, body)
        for geom in range(
            model.body_geomadr[body],
            model.body_geomadr[body] + model.body_geomnum[body],
        ):
            self._add_geom(link, geom)
        if is_root and not joints:
            return
        # before the joint: to its anchor; after it: back, and by the angle at which it is zero
        place, turn = model.body_pos[body].copy(), model.body_quat[body].copy()
        for joint in joints:
            between = self._unused(f"{name}_{self._name('joint', joint)}")
            place, turn = self._add_joint(joint, parent, between, place, turn)
            SubElement(self._robot, "link", name=between)
            parent = between
        if joints and not np.any(place) and turn[0] == 1.0:
            # the last link in between has the body's frame already: it is the body's own
            (last,) = [
                e for e in self._robot if e.tag == "link" and e.get("name") == parent
            ]
            self._robot.remove(last)
            moving = [e for e in self._robot if e.tag == "joint"][-1]
            moving.find("child").set("link", name)  # type: ignore[union-attr]
            self._names.discard(parent)
            return
        fixed = SubElement(self._robot, "joint", name=f"{name}_fixed", type="fixed")
        self._connect(fixed, parent, name, place, turn)

    def _floats(self, joints: Sequence[int]) -> bool:
        """Whether joints stand for a free base: they slide, and nothing drives them."""
        model = self._model
        kinds = self._mujoco.mjtTrn
        # others act on tendons, sites, bodies
        at_joint = (int(kinds.mjTRN_JOINT), int(kinds.mjTRN_JOINTINPARENT))
        own = np.isin(model.actuator_trntype, at_joint)
        driven = set(model.actuator_trnid[own, 0].tolist())
        slides = any(self._kind(joint) == "slide" for joint in joints)
        return slides and not driven & set(joints)

    def _add_joint(
        self, joint: int, parent: str, child: str, place: Array, turn: Array
    ) -> tuple[Array, Array]:
        """One joint; returns position and quaternion of the body's frame in its child's."""
        model, mujoco, kind = self._model, self._mujoco, self._kind(joint)
        name = self._name("joint", joint)
        if kind not in _KINDS:
            fix = "Replace it by three hinges"
            raise UrdfError("is a ball joint", f"<joint> {quote(name)}", fix)
        anchor, axis = model.jnt_pos[joint], model.jnt_axis[joint]
        limited = bool(model.jnt_limited[joint])
        ref = float(model.qpos0[model.jnt_qposadr[joint]])
        shown = _KINDS[kind] if limited or kind == "slide" else "continuous"
        element = SubElement(self._robot, "joint", name=name, type=shown)
        moved = np.zeros(3)
        mujoco.mju_rotVecQuat(moved, anchor, turn)
        self._connect(element, parent, child, place + moved, turn)
        SubElement(element, "axis", xyz=_numbers(axis))
        limit = {}
        if limited:
            low, high = model.jnt_range[joint]
            limit = {"lower": repr(float(low)), "upper": repr(float(high))}
        elif kind == "slide":
            limit = {"lower": "-1e3", "upper": "1e3"}
        unknown = 1e9  # rad/s or N m, m/s or N; urdfdom wants all of a limit, or none
        effort = min(self._largest_effort(joint), unknown)
        if limit or effort < unknown:
            limit |= {"effort": repr(effort), "velocity": repr(unknown)}
            SubElement(element, "limit", limit)
        dof = model.jnt_dofadr[joint]
        damping, friction = model.dof_damping[dof], model.dof_frictionloss[dof]
        if damping or friction:
            values = {
                "damping": repr(float(damping)),
                "friction": repr(float(friction)),
            }
            SubElement(element, "dynamics", values)
        self._add_mimic(element, joint)
        back, after = -anchor, np.array([1.0, 0.0, 0.0, 0.0])
        if ref and kind == "hinge":
            mujoco.mju_axisAngle2Quat(after, axis, -ref)
            mujoco.mju_rotVecQuat(moved, -anchor, after)
            back = moved
        elif ref:
            back = -anchor - ref * axis
        return back + 0.0, after

    def _largest_effort(self, joint: int) -> float:
        """N m or N that its actuators can give; inf where nothing says so."""
        model = self._model
        if model.jnt_actfrclimited[joint]:
            return float(np.abs(model.jnt_actfrcrange[joint]).max())
        largest = np.inf
        for k in range(model.nu):
            if model.actuator_trnid[k, 0] != joint or model.actuator_trntype[k] != 0:
                continue
            gear = abs(float(model.actuator_gear[k, 0]))
            if model.actuator_forcelimited[k]:
                largest = gear * float(np.abs(model.actuator_forcerange[k]).max())
            elif model.actuator_ctrllimited[k] and model.actuator_biastype[k] == 0:
                gain = abs(float(model.actuator_gainprm[k, 0]))
                largest = gear * gain * float(np.abs(model.actuator_ctrlrange[k]).max())
        return largest

    def _add_mimic(self, element: Element, joint: int) -> None:
        """A joint that follows another one linearly."""
        model = self._model
        for k in range(model.neq):
            is_joint = model.eq_type[k] == self._mujoco.mjtEq.mjEQ_JOINT
            if not is_joint or model.eq_obj1id[k] != joint or model.eq_obj2id[k] < 0:
                continue
            offset, slope, *rest = model.eq_data[k, :5]
            if np.any(rest):
                fix = "Make it linear, or take the equality out"
                name = quote(self._name("joint", joint))
                raise UrdfError(
                    "follows another joint by a curve", f"<joint> {name}", fix
                )
            zero, other = (
                model.qpos0[model.jnt_qposadr[j]] for j in (joint, model.eq_obj2id[k])
            )
            values = {
                "joint": self._name("joint", int(model.eq_obj2id[k])),
                "multiplier": repr(float(slope)),
                "offset": repr(float(zero + offset - slope * other)),
            }
            SubElement(element, "mimic", values)

    def _add_inertial(self, link: Element, body: int) -> None:
        model = self._model
        inertial = SubElement(link, "inertial")
        _origin(inertial, model.body_ipos[body], model.body_iquat[body])
        SubElement(inertial, "mass", value=repr(float(model.body_mass[body])))
        keys = dict.fromkeys(("ixy", "ixz", "iyz"), "0.0")
        diagonal = zip(("ixx", "iyy", "izz"), model.body_inertia[body], strict=True)
        SubElement(inertial, "inertia", {k: repr(float(v)) for k, v in diagonal} | keys)

    def _add_geom(self, link: Element, geom: int) -> None:
        """A geom as visual, and as collision where it can collide."""
        model = self._model
        place, turn = model.geom_pos[geom].copy(), model.geom_quat[geom].copy()
        shapes = list(self._shapes(geom, place, turn))
        collides = model.geom_contype[geom] or model.geom_conaffinity[geom]
        for tag in ("visual", *(["collision"] if collides else [])):
            for kind, values, at, by in shapes:
                part = SubElement(link, tag)
                _origin(part, at, by)
                SubElement(SubElement(part, "geometry"), kind, values)

    def _shapes(
        self, geom: int, place: Array, turn: Array
    ) -> Iterator[tuple[str, dict[str, str], Array, Array]]:
        """Kind, attributes, position and quaternion of the shapes that make up a geom."""
        model, mujoco = self._model, self._mujoco
        kind = (
            mujoco.mjtGeom(model.geom_type[geom]).name.removeprefix("mjGEOM_").lower()
        )
        a, b, c = model.geom_size[geom]
        if kind == "box":
            yield "box", {"size": _numbers(2.0 * model.geom_size[geom])}, place, turn
        elif kind == "sphere":
            yield "sphere", {"radius": repr(float(a))}, place, turn
        elif kind == "ellipsoid":
            yield "sphere", {"radius": repr(float(max(a, b, c)))}, place, turn
        elif kind in ("cylinder", "capsule"):
            length = {"radius": repr(float(a)), "length": repr(float(2.0 * b))}
            yield "cylinder", length, place, turn
            for end in (-b, b) if kind == "capsule" else ():
                moved = np.zeros(3)
                mujoco.mju_rotVecQuat(moved, np.array([0.0, 0.0, end]), turn)
                yield "sphere", {"radius": repr(float(a))}, place + moved, turn
        elif kind == "mesh":
            yield from self._mesh(int(model.geom_dataid[geom]), place, turn)

    def _mesh(
        self, mesh: int, place: Array, turn: Array
    ) -> Iterator[tuple[str, dict[str, str], Array, Array]]:
        """A mesh from a file, whose vertices MuJoCo has centred."""
        model, mujoco = self._model, self._mujoco
        name = self._name("mesh", mesh)
        source = next((m for m in self._spec.meshes if m.name == name), None)
        if source is None:
            return
        stored = self._missing.get(name) or source.file
        if not stored:
            return
        back, moved, own = np.zeros(4), np.zeros(3), np.zeros(4)
        mujoco.mju_negQuat(back, model.mesh_quat[mesh])
        mujoco.mju_mulQuat(own, turn, back)
        mujoco.mju_rotVecQuat(moved, model.mesh_pos[mesh], own)
        file = _mesh_path(self._spec, self._file, source, stored)
        values = {"filename": file.as_uri(), "scale": _numbers(source.scale)}
        yield "mesh", values, place - moved, own

    def _add_site(self, site: int) -> None:
        model, name = self._model, self._unused(self._name("site", site))
        SubElement(self._robot, "link", name=name)
        joint = SubElement(self._robot, "joint", name=f"{name}_site", type="fixed")
        parent = self._bodies[int(model.site_bodyid[site])]
        self._connect(joint, parent, name, model.site_pos[site], model.site_quat[site])

    def _connect(
        self, joint: Element, parent: str, child: str, place: Array, turn: Array
    ) -> None:
        _origin(joint, place, turn)
        SubElement(joint, "parent", link=parent)
        SubElement(joint, "child", link=child)


def _origin(element: Element, place: Array, turn: Array) -> None:
    """An <origin> of a position, m, and a quaternion w, x, y, z."""
    from scipy.spatial.transform import Rotation  # takes long, and is seldom needed

    rpy = rpy_from_rotation(Rotation.from_quat(np.roll(turn, -1)).as_matrix())
    SubElement(element, "origin", {"xyz": _numbers(place), "rpy": _numbers(rpy)})


def _numbers(values: Sequence[float] | Array) -> str:
    return " ".join(repr(float(value) + 0.0) for value in values)
