"""Writes what a fit found: the URDF with its centres of mass, and the errors of the joints."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from com_estimation.identification.correction import corrected_inertials
from com_estimation.identification.files import path_inside, write_whole
from com_estimation.posture_protocol.candidates import COM_LIMIT
from com_estimation.posture_protocol.exceptions import RefusedFitError
from com_estimation.posture_protocol.fit import Fit
from com_model import RobotModel
from com_model.urdf_edit import edit_inertials


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


def joint_errors_document(model: RobotModel, fit: Fit) -> dict[str, Any]:
    """Lists the errors of the joints that a fit found, as plain data.

    Returns:
        zero_offset_rad, compliance_rad_per_nm, backlash_rad: each by joint, zeros left out; and
        mean_error_deg, the mean absolute error of the tip angles.
    """
    errors = fit.candidate.errors(fit.x)
    columns = {
        "zero_offset_rad": errors.offset,
        "compliance_rad_per_nm": errors.compliance,
        "backlash_rad": errors.backlash,
    }
    document: dict[str, Any] = {
        key: {
            name: round(float(value), 6)
            for name, value in zip(model.joint_names, column, strict=True)
            if value
        }
        for key, column in columns.items()
    }
    return {"robot": model.name, "mean_error_deg": round(fit.mean_error_deg, 4)} | document


def write_correction(
    directory: str | os.PathLike[str], model: RobotModel, fit: Fit, overwrite: bool = False
) -> tuple[Path, Path]:
    """Writes <robot>_corrected.urdf and <robot>_joint_errors.yaml into a directory.

    Raises:
        RefusedFitError: A CoM is moved by more than 5 mm.
        OutputError: The directory or the files cannot be written, or a file is there already.
    """
    texts = {
        "_corrected.urdf": corrected_urdf(model, fit),
        "_joint_errors.yaml": yaml.safe_dump(joint_errors_document(model, fit), sort_keys=False),
    }
    urdf, errors = (
        write_whole(path_inside(directory, model.name + suffix), text.encode(), overwrite)
        for suffix, text in texts.items()
    )
    return urdf, errors
