"""The posterior of a robot after a walk as a file (npz); robots sampled from it, for simulators.

Simulators' files: MJCF (needs MuJoCo), and USD for Isaac Sim (needs usd-core).
"""

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from com_identification.exceptions import IdentificationError
from com_identification.walking.identify import WalkResult
from com_identification.walking.unknowns import (
    PARAMETERS,
    corrected_urdf,
    split,
    to_theta,
)
from com_model.arrays import Array
from com_model.exceptions import import_optional, listing, pip_install
from com_model.npz import read_npz

REPORT, URDF, POSTERIOR = NAMES = ("report.html", "corrected.urdf", "posterior.npz")
_OF_BODIES = ("mass", "com", "inertia")
_NUISANCES = ("armature", "coulomb", "viscous")  # the first ones of unknowns.KINDS


@dataclass(frozen=True, eq=False)
class RobotPosterior:
    """A normal distribution of a robot's parameters.

    Of (log-Cholesky parameters of K bodies (10 K), armature (n) kg m^2, Coulomb friction (n) N m,
    viscous friction (n) N m s/rad).

    Attributes:
        bodies: (K,) first link of each body with mass.
        joints: (n,) names.
        mean: (10 K + 3 n,).
        covariance: (10 K + 3 n, 10 K + 3 n).
    """

    bodies: Array
    joints: Array
    mean: Array
    covariance: Array

    @classmethod
    def of(cls, result: WalkResult) -> "RobotPosterior":
        """Returns the posterior of a result.

        Args:
            result: of a walk.
        """
        used, joints = result.unknowns.bodies, np.array(result.model.joint_names)
        count = PARAMETERS * int(used.sum()) + len(_NUISANCES) * len(joints)
        return cls(
            np.array(result.model.bodies.names)[used],
            joints,
            result.z[:count],
            result.covariance[:count, :count],
        )

    @classmethod
    def from_file(cls, path: str | Path) -> "RobotPosterior":
        """Reads a posterior.npz.

        Args:
            path: of the file.

        Raises:
            IdentificationError: it is no such file.
        """
        try:
            # bytes of all arrays at most
            data = read_npz(path, 2**28)
            posterior = cls(
                *(data[key] for key in ("bodies", "joints", "mean", "covariance"))
            )
            posterior._check()
            return posterior
        except (OSError, ValueError, KeyError) as error:
            raise IdentificationError(
                f"{path} is not a posterior of identify: {error}. Give its posterior.npz"
            ) from error

    def _check(self) -> None:
        """Raises ValueError where arrays do not belong together, or are no numbers."""
        size = PARAMETERS * self.bodies.size + len(_NUISANCES) * self.joints.size
        shapes = self.mean.shape, self.covariance.shape
        if shapes != ((size,), (size, size)) or {
            self.bodies.ndim,
            self.joints.ndim,
        } != {1}:
            raise ValueError(f"its arrays have the shapes {shapes}")
        if {self.bodies.dtype.kind, self.joints.dtype.kind} != {"U"}:
            raise ValueError("bodies and joints are not names")
        if not all(
            a.dtype.kind == "f" and np.isfinite(a).all()
            for a in (self.mean, self.covariance)
        ):
            raise ValueError("its mean or covariance is not finite")

    def draw(self, count: int, seed: int) -> dict[str, Array]:
        """Samples robots, all of them physically consistent.

        Args:
            count: how many; 0: one, the estimate itself.
            seed: of the random numbers.

        Returns:
            By name: bodies (K,), joints (n,), eta (S, K, 10), mass (S, K) kg, com (S, K, 3) m,
            inertia about it (S, K, 3, 3) kg m^2; armature, coulomb, viscous (S, n).
        """
        values, axes = np.linalg.eigh(self.covariance)
        shape = max(count, 1), len(values)
        normal = (
            np.random.default_rng(seed).standard_normal(shape)
            if count
            else np.zeros(shape)
        )
        change = (normal * np.sqrt(np.maximum(values, 0.0))) @ axes.T
        z, inertial = self.mean + change, PARAMETERS * len(self.bodies)
        eta = z[:, :inertial].reshape(len(z), -1, PARAMETERS)
        # masses are e^(2a): their sum, which is known well, must vary as its linear part does
        mass = np.exp(2.0 * self.mean[:inertial:PARAMETERS])
        total = mass.sum() + change[:, :inertial:PARAMETERS] @ (2.0 * mass)
        eta[:, :, 0] += (
            0.5 * np.log(total / np.exp(2.0 * eta[:, :, 0]).sum(axis=1))[:, None]
        )
        parts = [[split(theta) for theta in to_theta(robot)] for robot in eta]
        table = {"bodies": self.bodies, "joints": self.joints, "eta": eta}
        for i, name in enumerate(_OF_BODIES):
            table[name] = np.array([[part[i] for part in robot] for robot in parts])
        joints = np.maximum(z[:, inertial:].reshape(len(z), len(_NUISANCES), -1), 0.0)
        return table | {name: joints[:, i] for i, name in enumerate(_NUISANCES)}


def to_npz(arrays: dict[str, Array]) -> bytes:
    """Returns arrays as an npz file.

    Args:
        arrays: by name.
    """
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def to_json(arrays: dict[str, Array]) -> bytes:
    """Returns arrays as JSON, nested lists by name.

    Args:
        arrays: by name.
    """
    text = json.dumps({name: np.asarray(a).tolist() for name, a in arrays.items()})
    return f"{text}\n".encode()


def to_csv(arrays: dict[str, Array]) -> bytes:
    """Returns a row for each number: sample, body or joint, quantity (com 0: x), value.

    Args:
        arrays: what RobotPosterior.draw returned.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("sample", "name", "quantity", "value"))
    for key in (*_OF_BODIES, *_NUISANCES):
        names = arrays["bodies" if key in _OF_BODIES else "joints"]
        for (s, i, *axes), value in np.ndenumerate(arrays[key]):
            writer.writerow(
                (s, names[i], " ".join(map(str, (key, *axes))), repr(float(value)))
            )
    return text.getvalue().encode()


def result_files(result: WalkResult, page: str) -> dict[str, bytes]:
    """Returns the files of a result by name: only the report where a required test failed.

    Args:
        result: of an identification.
        page: its report, HTML.
    """
    files = {REPORT: page.encode()}
    if result.accepted:
        urdf = corrected_urdf(result.model, result.unknowns.eta(result.z))
        files |= {
            URDF: urdf.encode(),
            POSTERIOR: to_npz(vars(RobotPosterior.of(result))),
        }
    return files


def mjcf(path: Path, draws: Mapping[str, Array], s: int) -> str:
    """Returns an MJCF model with inertials, armature and friction of a sampled robot.

    Bodies and joints have the names of the URDF's; everything else stays as it is in the file.

    Args:
        path: of the model's file.
        draws: what RobotPosterior.draw returned.
        s: index of the sample.

    Raises:
        IdentificationError: MuJoCo is not installed, or the file cannot be used.
    """
    mujoco = import_optional("mujoco", pip_install("mujoco"), IdentificationError)
    try:
        spec = mujoco.MjSpec.from_file(str(path))
        _change(spec, path, draws, s)
        for name in (
            "meshdir",
            "texturedir",
        ):  # relative to the original file's folder
            setattr(spec, name, str((path.parent / getattr(spec, name)).resolve()))
        spec.compile()
        return str(spec.to_xml())
    except (ValueError, mujoco.FatalError) as error:
        raise IdentificationError(f"{path} is no MJCF model: {error}") from error


def _change(spec: Any, path: Path, draws: Mapping[str, Array], s: int) -> None:
    names = {str(name) for name in (*draws["bodies"], *draws["joints"])}
    known = {body.name for body in spec.bodies} | {joint.name for joint in spec.joints}
    if missing := sorted(names - known):
        raise IdentificationError(f"{path} has no bodies or joints {listing(missing)}")
    for i, name in enumerate(draws["bodies"]):
        body, inertia = spec.body(str(name)), draws["inertia"][s, i]
        body.mass, body.ipos, body.explicitinertial = (
            draws["mass"][s, i],
            draws["com"][s, i],
            1,
        )
        body.iquat = [1.0, 0.0, 0.0, 0.0]
        body.fullinertia = [
            *np.diag(inertia),
            inertia[0, 1],
            inertia[0, 2],
            inertia[1, 2],
        ]
    for i, name in enumerate(draws["joints"]):
        joint = spec.joint(str(name))
        joint.armature, joint.frictionloss = (
            draws["armature"][s, i],
            draws["coulomb"][s, i],
        )
        joint.damping = [draws["viscous"][s, i], 0.0, 0.0]  # of the powers of the speed


def usd_layer(stage: Path, draws: Mapping[str, Array], s: int) -> str:
    """Returns a layer over a USD stage with masses and inertias of a sampled robot.

    Rigid bodies of the stage have the names of the URDF's bodies; its units are kept.

    Args:
        stage: path of the stage.
        draws: what RobotPosterior.draw returned.
        s: index of the sample.

    Returns:
        Text of a usda file.

    Raises:
        IdentificationError: usd-core is not installed, or the stage cannot be used.
    """
    names, fix = ("Gf", "Tf", "Usd", "UsdGeom", "UsdPhysics"), pip_install("usd-core")
    modules = (
        import_optional(f"pxr.{name}", fix, IdentificationError) for name in names
    )
    Gf, Tf, Usd, UsdGeom, UsdPhysics = modules
    try:
        base = Usd.Stage.Open(str(stage))
    except Tf.ErrorException as error:
        raise IdentificationError(f"{stage} is no USD stage") from error
    m, kg = (
        UsdGeom.GetStageMetersPerUnit(base),
        UsdPhysics.GetStageKilogramsPerUnit(base),
    )
    rigid = (prim for prim in base.Traverse() if prim.HasAPI(UsdPhysics.RigidBodyAPI))
    paths = {prim.GetName(): prim.GetPath() for prim in rigid}
    if missing := [str(name) for name in draws["bodies"] if name not in paths]:
        raise IdentificationError(f"{stage} has no rigid bodies {listing(missing)}")
    layer = Usd.Stage.CreateInMemory()
    layer.GetRootLayer().subLayerPaths.append(str(stage.resolve()))
    UsdGeom.SetStageMetersPerUnit(layer, m)
    UsdPhysics.SetStageKilogramsPerUnit(layer, kg)
    UsdGeom.SetStageUpAxis(layer, UsdGeom.GetStageUpAxis(base))
    each = zip(
        draws["bodies"],
        *(draws[key][s] for key in ("mass", "com", "inertia")),
        strict=True,
    )
    for name, mass, com, inertia in each:
        values, axes = np.linalg.eigh(inertia)
        axes[:, 0] *= np.linalg.det(axes)
        turn = Gf.Matrix3d(*axes.T.ravel().tolist()).ExtractRotation().GetQuat()
        body = UsdPhysics.MassAPI.Apply(layer.OverridePrim(paths[name]))
        body.CreateMassAttr(float(mass / kg))
        body.CreatePrincipalAxesAttr(Gf.Quatf(turn))
        body.CreateCenterOfMassAttr(Gf.Vec3f(*(com / m).tolist()))
        body.CreateDiagonalInertiaAttr(Gf.Vec3f(*(values / (kg * m**2)).tolist()))
    return str(layer.GetRootLayer().ExportToString())
