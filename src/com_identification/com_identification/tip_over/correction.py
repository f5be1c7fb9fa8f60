"""Writes what a fit found: the URDF with its centres of mass, and the errors of the joints."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import yaml

from com_identification.store.correction import corrected_inertials
from com_identification.store.files import path_inside, write_whole
from com_identification.tip_over.candidates import COM_LIMIT
from com_identification.tip_over.exceptions import RefusedFitError
from com_identification.tip_over.fit import Fit
from com_identification.tip_over.joint_errors import joint_errors_document
from com_model import RobotModel
from com_model.urdf.editing import edit_inertials


def check_physical(model: RobotModel, fit: Fit, limit: float = COM_LIMIT) -> None:
    """Refuses a fit whose centres of mass are moved too far.

    Raises:
        RefusedFitError: Names the bodies.
    """
    shifts = np.linalg.norm(fit.candidate.com_shifts(model, fit.x), axis=1)
    far = np.flatnonzero(shifts > limit * (1.0 + 1e-6))
    if len(far):
        worst = (f"{model.bodies.names[b]} {1e3 * shifts[b]:.1f} mm" for b in far)
        raise RefusedFitError((f"CoMs moved by more than {1e3 * limit:g} mm: {', '.join(worst)}",))


def corrected_urdf(model: RobotModel, fit: Fit) -> str:
    """Writes the CoMs of a fit into the text of the URDF; all else stays byte for byte.

    Raises:
        RefusedFitError: A CoM is moved by more than 5 mm.
    """
    check_physical(model, fit)
    bodies = model.bodies
    moment = fit.candidate.moments(model, fit.x)
    mass = bodies.mass[:, None]
    com = np.divide(moment, mass, out=np.zeros_like(moment), where=mass > 0.0)
    return edit_inertials(model.xml, corrected_inertials(model, bodies.mass, com))


def write_correction(
    directory: str | os.PathLike[str], model: RobotModel, fit: Fit, overwrite: bool = False
) -> tuple[Path, Path]:
    """Writes <robot>_corrected.urdf and <robot>_joint_errors.yaml into a directory.

    Raises:
        RefusedFitError: A CoM is moved by more than 5 mm.
        OutputError: The directory or the files cannot be written, or a file is there already.
    """
    found = joint_errors_document(model, fit.candidate.errors(fit.x), fit.mean_error_deg)
    texts = {
        "_corrected.urdf": corrected_urdf(model, fit),
        "_joint_errors.yaml": yaml.safe_dump(found, sort_keys=False),
    }
    urdf, errors = (
        write_whole(path_inside(directory, model.name + suffix), text.encode(), overwrite)
        for suffix, text in texts.items()
    )
    return urdf, errors
