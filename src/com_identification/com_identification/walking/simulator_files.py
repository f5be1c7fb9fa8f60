"""A sampled robot for simulators: MJCF (needs MuJoCo), and USD for Isaac Sim (needs usd-core)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from com_identification.exceptions import IdentificationError
from com_model.arrays import Array
from com_model.exceptions import import_optional, pip_install
from com_model.text import listing


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
