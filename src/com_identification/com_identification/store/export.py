"""Writes the corrected URDF into a directory, and nowhere else."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from com_identification.exceptions import IdentificationError
from com_identification.regression.identify import Identification
from com_identification.store.correction import corrected_inertials
from com_identification.store.files import path_inside, write_whole
from com_model import RobotModel
from com_model.urdf.editing import edit_inertials

Flags = NDArray[np.bool_]

_TOLD = 0.95  # of the prior's deviation: above, the data tell next to nothing
_SHIFT = 1e-5  # m, of the whole robot's CoM: what moves it by more, the data tell of all together


@dataclass(frozen=True)
class Export:
    """What was written.

    Attributes:
        path: The file.
        changed: Names of the links with new values.
        kept: Why some bodies stayed as they were, a sentence for each.
    """

    path: Path
    changed: tuple[str, ...]
    kept: tuple[str, ...]


def export_urdf(
    xml: str,
    model: RobotModel,
    found: Identification,
    directory: str | os.PathLike[str],
    name: str,
    overwrite: bool = False,
    untrusted: bool = False,
) -> Export:
    """Writes what was identified into a copy of a URDF.

    Args:
        xml: The text of the URDF; all but the corrected numbers stays byte for byte.
        model: The robot of that text.
        found: The result.
        directory: Where files may be written; it must exist.
        name: Of the file, without directories; .urdf is added where it is missing.
        overwrite: Whether a file of that name may be replaced.
        untrusted: Whether to write also bodies of which the data tell next to nothing: where the
            deviations of mass and centre of mass all are 95 % of the prior's or more, and which
            move the centre of mass of the whole robot by less than 0.01 mm.

    Raises:
        OutputError: The name leaves the directory, a file is there, or it cannot be written;
            nothing was written.
        IdentificationError: The result is another robot's, or a link's mass would not be positive.
    """
    path = path_inside(directory, name, ".urdf")
    if found.bodies != model.bodies.names:
        raise IdentificationError(
            f"the result is of another robot: it has {len(found.bodies)} bodies from "
            f"{found.bodies[0]!r} on, the URDF {model.bodies.count} from {model.bodies.names[0]!r}"
        )
    told = np.ones(len(found.bodies), dtype=np.bool_) if untrusted else trusted_bodies(found)
    mass = np.where(told, found.mass, model.bodies.mass)
    own = np.divide(
        model.bodies.first_moment,
        model.bodies.mass[:, None],
        out=np.zeros((len(mass), 3)),
        where=model.bodies.mass[:, None] > 0.0,
    )
    com = np.where(told[:, None], found.com, own)
    inertials = corrected_inertials(model, mass, com)
    kept = tuple(
        f"{body}: the data tell next to nothing of it, it stays as the URDF has it."
        for body, good in zip(found.bodies, told, strict=True)
        if not good
    )
    write_whole(path, edit_inertials(xml, inertials).encode(), overwrite)
    return Export(path, tuple(inertials), kept)


def trusted_bodies(found: Identification) -> Flags:
    """Tells of which bodies the data tell something, (B,): those that are known count as told.

    So do bodies of which little is told one by one, but much of all together, two feet that always
    stand side by side for example: without one of them the sum would be wrong.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        com = found.com_std / found.prior_com_std
        mass = found.mass_std / found.prior_mass_std
    shares = np.column_stack((com, mass))
    least = np.min(np.where(np.isnan(shares), np.inf, shares), axis=1)
    before = found.prior_mass[:, None] * np.nan_to_num(found.prior_com)
    change = found.mass[:, None] * np.nan_to_num(found.com) - before
    moves = np.linalg.norm(change, axis=1) / found.total_mass > _SHIFT
    return np.asarray((least < _TOLD) | moves | np.isnan(shares).all(axis=1))
