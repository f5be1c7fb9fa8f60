"""Writes the corrected URDF into a directory, and nowhere else."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from com_estimation.identification.result import Identification
from com_model import RobotModel


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
        untrusted: Whether to write also what the data hardly tell: where the deviation is as large
            as the prior's.

    Raises:
        OutputError: The name leaves the directory, a file is there, or it cannot be written;
            nothing was written.
        IdentificationError: A link's mass would not be positive.
    """
    raise NotImplementedError
