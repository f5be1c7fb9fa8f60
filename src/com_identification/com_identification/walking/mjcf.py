"""A drawn robot as MJCF, made from the robot's own; needs MuJoCo."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from com_identification.exceptions import IdentificationError
from com_model.arrays import Array
from com_model.text import listing


def mjcf(path: Path, draws: Mapping[str, Array], s: int) -> str:
    """The model in a file with inertials, armature and friction of draw s of Posterior.draw.

    Bodies and joints have the names of the URDF's; everything else stays as it is in the file.

    Raises:
        IdentificationError: MuJoCo is not installed, or the file cannot be used.
    """
    try:
        mujoco: Any = import_module("mujoco")
    except ImportError as error:
        raise IdentificationError("--mjcf needs MuJoCo: pip install mujoco") from error
    try:
        spec = mujoco.MjSpec.from_file(str(path))
        _change(spec, path, draws, s)
        for name in ("meshdir", "texturedir"):  # relative to the file, which is elsewhere now
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
        body.mass, body.ipos, body.explicitinertial = draws["mass"][s, i], draws["com"][s, i], 1
        body.iquat = [1.0, 0.0, 0.0, 0.0]
        body.fullinertia = [*np.diag(inertia), inertia[0, 1], inertia[0, 2], inertia[1, 2]]
    for i, name in enumerate(draws["joints"]):
        joint = spec.joint(str(name))
        joint.armature, joint.frictionloss = draws["armature"][s, i], draws["coulomb"][s, i]
        joint.damping = [draws["viscous"][s, i], 0.0, 0.0]  # of the powers of the speed
