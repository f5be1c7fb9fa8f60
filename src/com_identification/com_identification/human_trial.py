"""Markers and force plates of a person from C3D files, and the postures in them."""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from com_bags import TableError
from com_identification.human import MarkerFit, human_posture
from com_identification.regression.postures import Posture
from com_model import RobotModel
from com_model.arrays import Array, FrozenArrays
from com_model.strict_yaml import Section
from com_model.text import listing

_LENGTHS = {"mm": 1e-3, "cm": 1e-2, "m": 1.0}
_WINDOW = 0.5  # s
_TRAVEL, _VARY = 0.015, 0.05  # m of a marker, fraction of the force within a window
_MOST, _ALIKE = 80, 0.03  # postures; rad, least change of some joint between two
MAX_BYTES = 2**29


@dataclass(frozen=True, eq=False)
class Trial(FrozenArrays):
    """N frames; laboratory axes, z up."""

    rate: float  # Hz
    names: tuple[str, ...]  # of the markers
    markers: Array  # (N, M, 3) m, NaN where hidden
    wrench: Array  # (N, 6) N and N m, of all plates on the person, about the origin


def read_c3d(path: str | Path) -> Trial:
    """Reads markers and force plates with their corners, offsets and calibrations.

    Raises:
        TableError: It cannot be read, or has no such plate; says what to do.
    """
    file = str(path)
    try:
        if Path(path).stat().st_size > MAX_BYTES:
            raise TableError(f"is larger than {MAX_BYTES >> 20} MiB", file)
        content = importlib.import_module("ezc3d").c3d(file, extract_forceplat_data=True)
        point = content["parameters"]["POINT"]
        rate = float(point["RATE"]["value"][0])
        meter = _LENGTHS[point["UNITS"]["value"][0].strip().lower()]
        markers = meter * content["data"]["points"][:3].transpose(2, 1, 0)
        names = tuple(name.strip() for name in point["LABELS"]["value"][: markers.shape[1]])
        count, total = len(markers), np.zeros((len(markers), 6))
        for plate in content["data"]["platform"]:
            force, center = plate["force"].T, meter * plate["corners"].mean(axis=1)
            unit = 1e-3 if plate["unit_moment"].endswith("mm") else 1.0
            wrench = np.hstack((force, unit * plate["moment"].T + np.cross(center, force)))
            each = len(wrench) // count
            total += wrench[: count * each].reshape(count, each, 6).mean(axis=1)
    except TableError:
        raise
    except ImportError as error:
        raise TableError("needs ezc3d, which is not installed: pip install ezc3d", file) from error
    except Exception as error:  # whatever a library makes of a damaged file
        raise TableError(f"cannot be read: {type(error).__name__}: {error}", file) from error
    mean = total[:, :3].mean(axis=0)
    if not abs(mean[2]) > 0.9 * np.linalg.norm(mean) > 0.0:
        raise TableError(f"the plates' mean force is {mean.round(1)} N: expected z to be up", file)
    return Trial(rate, names, markers, total * np.sign(mean[2]))


def read_markers(section: Section) -> dict[str, tuple[str, Array]]:
    """Reads where markers are: NAME: {link: thigh, at: [x, y, z]} in m, in the link's frame."""
    found = {}
    for name in section.entries():
        own = section.section(name)
        found[name] = own.text("link", ""), np.array(own.vector("at", (0.0, 0.0, 0.0)))
        own.finish()
    return found


def trial_postures(
    model: RobotModel, trial: Trial, markers: Mapping[str, tuple[str, Array]]
) -> tuple[list[Posture], dict[str, float]]:
    """Postures of the windows in which the person hardly moves, and seconds by what became of them.

    Raises:
        TableError: The trial has none of the markers.
    """
    own = {name: where for name, where in markers.items() if name in trial.names}
    if len(own) < 3:
        text = f"has none of the markers {listing(markers, 5)}; it has {listing(trial.names, 10)}"
        raise TableError(text, "the trial")
    fit, columns = MarkerFit(model, own), [trial.names.index(name) for name in own]
    size = max(2, round(_WINDOW * trial.rate))
    seconds = {"used": 0.0, "moved": 0.0, "redundant": 0.0}
    postures: list[Posture] = []
    q = np.zeros(model.n_joints)
    for start in range(0, len(trial.markers) - size + 1, size):
        seen = trial.markers[start : start + size, columns]
        wrench = trial.wrench[start : start + size]
        visible = np.isfinite(seen).all(axis=(0, 2))
        travel = np.ptp(seen[:, visible], axis=0).max(initial=0.0)
        if travel > _TRAVEL or visible.sum() < 3 or np.ptp(wrench[:, 2]) > _VARY * wrench[0, 2]:
            seconds["moved"] += _WINDOW
            continue
        q, R, p = fit.solve(seen.mean(axis=0), q)
        if any(np.abs(q - each.q).max() < _ALIKE for each in postures) or len(postures) >= _MOST:
            seconds["redundant"] += _WINDOW
            continue
        seconds["used"] += _WINDOW
        postures.append(human_posture(model, q, R, p, wrench.mean(axis=0), size))
    return postures, seconds
