"""A drawn robot as a USD layer over its stage (Isaac Sim, Omniverse); needs usd-core."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

import numpy as np

from com_identification.exceptions import IdentificationError
from com_model.arrays import Array
from com_model.text import listing


def usd_layer(stage: Path, draws: Mapping[str, Array], s: int) -> str:
    """Physics attributes of draw s of Posterior.draw, as text of a usda file.

    Rigid bodies of the stage have the names of the URDF's bodies; its units are kept.

    Raises:
        IdentificationError: usd-core is not installed, or the stage cannot be used.
    """
    try:
        names = "Gf", "Tf", "Usd", "UsdGeom", "UsdPhysics"
        Gf, Tf, Usd, UsdGeom, UsdPhysics = (import_module(f"pxr.{name}") for name in names)
    except ImportError as error:
        raise IdentificationError("--usd needs usd-core: pip install usd-core") from error
    try:
        base = Usd.Stage.Open(str(stage))
    except Tf.ErrorException as error:
        raise IdentificationError(f"{stage} is no USD stage") from error
    m, kg = UsdGeom.GetStageMetersPerUnit(base), UsdPhysics.GetStageKilogramsPerUnit(base)
    rigid = (prim for prim in base.Traverse() if prim.HasAPI(UsdPhysics.RigidBodyAPI))
    paths = {prim.GetName(): prim.GetPath() for prim in rigid}
    if missing := [str(name) for name in draws["bodies"] if name not in paths]:
        raise IdentificationError(f"{stage} has no rigid bodies {listing(missing)}")
    layer = Usd.Stage.CreateInMemory()
    layer.GetRootLayer().subLayerPaths.append(str(stage.resolve()))
    UsdGeom.SetStageMetersPerUnit(layer, m)
    UsdPhysics.SetStageKilogramsPerUnit(layer, kg)
    UsdGeom.SetStageUpAxis(layer, UsdGeom.GetStageUpAxis(base))
    each = zip(draws["bodies"], *(draws[key][s] for key in ("mass", "com", "inertia")), strict=True)
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
