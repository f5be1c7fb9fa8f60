"""The result of an identification on disk: a YAML document and a corrected URDF.

The same input results in the same bytes.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import ArrayLike

from com_identification.exceptions import IdentificationError, OutputError
from com_identification.regression.postures import Posture
from com_identification.regression.result import Identification
from com_identification.settings import IdentificationSettings
from com_model import RobotModel
from com_model.arrays import Flags, as_array
from com_model.files import write_file
from com_model.text import quote
from com_model.urdf.editing import Inertial, edit_inertials

_OF_BODY = tuple(
    f"{prior}{key}{std}"
    for prior in ("", "prior_")
    for key in ("mass", "com")
    for std in ("", "_std")
)
_RESIDUALS = ("residual", "prior_residual", "held_out", "without_outliers")
_OF_FIT = (
    *(
        "prediction_std",
        "prediction_shift",
        "variance_factor",
        "variance_limit",
        "cause",
    ),
    *("scales", "tempering", "at_bound", "outliers"),
)


def path_inside(directory: str | os.PathLike[str], name: str, suffix: str = "") -> Path:
    """Returns the path of a file in a directory.

    Args:
        directory: must exist.
        name: of the file, without directories.
        suffix: added to the name where it is missing.

    Raises:
        OutputError: the name leaves the directory or is a link, or there is no directory.
    """
    try:
        folder = Path(directory).resolve()
        missing = not folder.is_dir()
    except (OSError, ValueError, RuntimeError) as error:
        raise OutputError(f"the directory cannot be used: {error}") from error
    if missing:
        raise OutputError(
            f"the directory {quote(str(directory))} does not exist: make it first"
        )
    full = name if name.endswith(suffix) else name + suffix
    problem = _problem(full, suffix)
    if problem:
        raise OutputError(
            f"the name {quote(name)} {problem}: give a plain file name, which is put into {folder}"
        )
    path = folder / full
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise OutputError(
            f"{path} is a link or no regular file: remove it or give another name"
        )
    return path


def write_whole(path: Path, data: bytes, overwrite: bool = False) -> Path:
    """Writes a file to the disk, whole or not at all.

    Args:
        path: of the file.
        data: its content.
        overwrite: whether a file of that name is replaced.

    Raises:
        OutputError: it exists or cannot be written; says how to fix it.
    """
    if not overwrite and path.exists():
        raise OutputError(
            f"{path} exists already: give another name, or allow overwriting"
        )
    try:
        return write_file(path, data, overwrite)
    except OSError as error:
        raise OutputError(
            f"{path} cannot be written: {error.strerror}. Free space on the disk, or give a "
            "directory that can be written to"
        ) from error


def _problem(name: str, suffix: str) -> str:
    if not name or name == suffix:
        return "is empty"
    if name in (".", "..") or "/" in name or "\\" in name:
        return "has directories in it"
    if name.startswith(".") or not name.isprintable():
        return "starts with a dot or has control characters"
    longest = 200  # bytes of a name
    if len(name.encode(errors="replace")) > longest:
        return f"is longer than {longest} bytes"
    return ""


def to_document(
    found: Identification,
    model: RobotModel,
    settings: IdentificationSettings,
    postures: Sequence[Posture],
    extra: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Converts a result to plain data: numbers, texts, lists, mappings; unknown values are null.

    Args:
        found: the result.
        model: the robot.
        settings: with which it was found.
        postures: from which it was found.
        extra: further sections.
    """
    document = {
        "format": 1,
        "robot": {
            "name": model.name,
            "mass": model.mass,
            "joints": list(model.joint_names),
        },
        "settings": settings.to_dict(),
        "total_mass": {"value": found.total_mass, "std": found.total_mass_std},
        "bodies": [
            {"link": name} | {key: getattr(found, key)[b] for key in _OF_BODY}
            for b, name in enumerate(found.bodies)
            if found.prior_mass[b] > 0.0
        ],
        "sensors": {
            kind: {
                name: {"value": value, "std": found.sensor_stds[kind][name]}
                for name, value in values.items()
            }
            for kind, values in found.sensor_errors.items()
        },
        "identifiability": asdict(found.identifiability),
        "fit": {key: asdict(getattr(found, key)) for key in _RESIDUALS}
        | {key: getattr(found, key) for key in _OF_FIT},
        "postures": [
            {"label": posture.label, "samples": posture.samples, "weight": weight}
            for posture, weight in zip(postures, found.weights, strict=True)
        ],
    }
    return {key: plain(value) for key, value in {**document, **(extra or {})}.items()}


def write_yaml(
    path: str | os.PathLike[str], document: Mapping[str, Any], overwrite: bool = True
) -> Path:
    """Writes plain data as YAML, whole or not at all: keys sorted, floats as short as exact.

    Args:
        path: Of the file.
        document: Plain data, see plain().
        overwrite: Whether a file of that name is replaced.
    """
    text = yaml.safe_dump(
        plain(document), default_flow_style=None, allow_unicode=True, width=100
    )
    return write_whole(Path(path), text.encode(), overwrite)


def plain(value: Any) -> Any:
    """Converts arrays, tuples, enums and numpy's numbers to plain data; NaN and inf to None.

    Floats are rounded to 12 significant digits, beyond which compilers and libraries differ.

    Args:
        value: any of these, nested.
    """
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        # twelve significant digits, to which sums in another order agree
        return float(f"{value:.11e}") + 0.0 if np.isfinite(value) else None
    return value if value is None else str(value)


@dataclass(frozen=True)
class Export:
    """A corrected URDF that was written.

    Attributes:
        path: of the file.
        changed: names of the links with new values.
        unchanged: why some bodies are unchanged, a sentence for each.
    """

    path: Path
    changed: tuple[str, ...]
    unchanged: tuple[str, ...]


def export_urdf(
    model: RobotModel,
    found: Identification,
    directory: str | os.PathLike[str],
    name: str,
    overwrite: bool = False,
    untrusted: bool = False,
) -> Export:
    """Writes identified masses and centres of mass into a copy of a model's URDF.

    All but the corrected numbers stays byte for byte. Bodies on which the data have next to no
    information are left unchanged: the standard deviations of mass and centre of mass all are 95
    % of the prior's or more, and their change moves the centre of mass of the whole robot by
    less than
    0.01 mm.

    Args:
        model: the robot, with its URDF's text.
        found: the result.
        directory: where the file is written; it must exist.
        name: of the file; .urdf is added where it is missing.
        overwrite: whether a file of that name is replaced.
        untrusted: whether bodies without information are corrected too.

    Raises:
        OutputError: the name leaves the directory, a file is there, or it cannot be written;
            nothing was written.
        IdentificationError: the result is another robot's, or a body's mass would not be
            positive.
    """
    path = path_inside(directory, name, ".urdf")
    if found.bodies != model.bodies.names:
        raise IdentificationError(
            f"the result belongs to another robot: it has {len(found.bodies)} bodies from "
            f"{found.bodies[0]!r} on, the URDF {model.bodies.count} from {model.bodies.names[0]!r}"
        )
    trusted = (
        np.ones(len(found.bodies), dtype=np.bool_)
        if untrusted
        else trusted_bodies(found)
    )
    inertials = corrected_inertials(model, found.mass, found.com, trusted)
    unchanged = tuple(
        f"{body}: the data have next to no information on it; it stays as in the URDF."
        for body, good in zip(found.bodies, trusted, strict=True)
        if not good
    )
    write_whole(path, edit_inertials(model.xml, inertials).encode(), overwrite)
    return Export(path, tuple(inertials), unchanged)


def trusted_bodies(found: Identification) -> Flags:
    """Returns on which bodies the data have information, (B,); known bodies are among them.

    Also bodies that the data determine only together, two feet that always stand side by side for
    example: without one of them the sum would be wrong.

    Args:
        found: the result.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        com = found.com_std / found.prior_com_std
        mass = found.mass_std / found.prior_mass_std
    ratios = np.column_stack((com, mass))
    least = np.min(np.where(np.isnan(ratios), np.inf, ratios), axis=1)
    before = found.prior_mass[:, None] * np.nan_to_num(found.prior_com)
    change = found.mass[:, None] * np.nan_to_num(found.com) - before
    # 10 um of the whole robot's CoM, which the data determine
    moves = np.linalg.norm(change, axis=1) / found.total_mass > 1e-5
    # above 95 % of the prior's standard deviation the data have next to no information
    return np.asarray((least < 0.95) | moves | np.isnan(ratios).all(axis=1))


def corrected_inertials(
    model: RobotModel, mass: ArrayLike, com: ArrayLike, used: Flags | None = None
) -> dict[str, Inertial]:
    """Computes inertials of links for which the bodies have given masses and centres of mass.

    The links of a body, which fixed joints connect, are scaled and moved as one: masses and
    inertias about their own centres of mass by the same factor, those centres by the same shift.
    So each link stays physical where the body's mass is positive. Bodies that do not change and
    links without mass are left out.

    Args:
        model: the robot, B bodies.
        mass: (B,) kg.
        com: (B, 3) m, each in its body's frame.
        used: (B,) which bodies are corrected; None: all.

    Returns:
        New inertials by link.

    Raises:
        IdentificationError: a body's mass is not positive, now or in the URDF.
    """
    bodies = model.bodies
    mass = as_array("mass", mass, (bodies.count,))
    com = np.nan_to_num(as_array("com", com, (bodies.count, 3)))
    result = {}
    for b in range(bodies.count) if used is None else np.flatnonzero(used):
        old = float(bodies.mass[b])
        moment = mass[b] * com[b]
        if mass[b] == old and np.allclose(moment, bodies.first_moment[b], 1e-12, 0.0):
            continue
        if not (mass[b] > 0.0 and old > 0.0):
            raise IdentificationError(
                f"body {bodies.names[b]!r} would have a mass of {mass[b]:.4g} kg, in the URDF it "
                f"has {old:.4g} kg: expected both above 0; correct its mass in the URDF first"
            )
        factor, shift = float(mass[b]) / old, com[b] - bodies.first_moment[b] / old
        for link in np.flatnonzero(
            (bodies.body_of_link == b) & (model.link_masses > 0.0)
        ):
            place = model.link_coms[link] + bodies.R_body_link[link].T @ shift
            inertia = model.link_inertias[link] * factor
            new = float(model.link_masses[link]) * factor
            result[model.link_names[link]] = Inertial(new, place, inertia)
    return result


def corrected_urdf(model: RobotModel, found: Identification) -> str:
    """Returns the URDF's text with the identified masses and centres of mass.

    All else is unchanged, byte for byte.

    Args:
        model: the robot, with its URDF's text.
        found: the result.
    """
    return edit_inertials(model.xml, corrected_inertials(model, found.mass, found.com))
