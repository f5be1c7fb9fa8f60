"""The result of an identification as a YAML file: same input, same bytes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from com_identification.regression.identify import Identification
from com_identification.regression.postures import Posture
from com_identification.settings import IdentificationSettings
from com_identification.store.files import write_whole
from com_model import ConfigError, RobotModel
from com_model.strict_yaml import read_yaml

FORMAT = 1
_DIGITS = 12  # significant, of what is rounded: sums in another order agree to so many


def to_document(
    found: Identification,
    model: RobotModel,
    settings: IdentificationSettings,
    postures: Sequence[Posture],
    extra: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Puts a result into plain data: numbers, texts, lists and dictionaries; unknown is null.

    Args:
        found: The result.
        model: The robot.
        settings: That led to it.
        postures: That led to it.
        extra: More sections, for instance about the recording.
    """
    document = {
        "format": FORMAT,
        "robot": {"name": model.name, "mass": model.mass, "joints": list(model.joint_names)},
        "settings": settings.to_dict(),
        "total_mass": {"value": found.total_mass, "deviation": found.total_mass_std},
        "bodies": _bodies(found),
        "sensors": _sensors(found),
        "identifiability": asdict(found.identifiability),
        "fit": {
            "residual": asdict(found.residual),
            "prior_residual": asdict(found.prior_residual),
            "held_out": asdict(found.held_out),
            "without_outliers": asdict(found.without_outliers),
            "variance_factor": found.variance_factor,
            "at_bound": list(found.at_bound),
            "outliers": [int(i) for i in found.outliers],
        },
        "postures": _postures(found, postures),
    }
    return {key: plain(value) for key, value in {**document, **(extra or {})}.items()}


def write_yaml(
    path: str | os.PathLike[str], document: Mapping[str, Any], overwrite: bool = True
) -> Path:
    """Writes plain data as YAML, whole or not at all: keys sorted, floats as short as exact.

    Args:
        path: The file.
        document: Numbers, texts, lists and dictionaries.
        overwrite: Whether a file that is there may be replaced.

    Raises:
        OutputError: It cannot be written there.
    """
    text = yaml.dump(plain(document), Dumper=_Dumper, sort_keys=True, allow_unicode=True, width=100)
    return write_whole(Path(path), text.encode(), overwrite)


def read_document(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Reads what write_yaml wrote of a to_document.

    Raises:
        ConfigError: It cannot be read, or is no such file.
    """
    data = read_yaml(path)
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ConfigError(f"is no result of format {FORMAT} of an identification", str(path))
    return data


def plain(value: Any) -> Any:
    """Turns arrays, tuples, enums and numpy's numbers into plain data; NaN and inf into None.

    Floats are rounded to 12 significant digits, beyond which compilers and libraries differ.
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
        return float(f"{value:.{_DIGITS - 1}e}") + 0.0 if np.isfinite(value) else None
    return value if value is None else str(value)


class _Dumper(yaml.SafeDumper):
    """Lists of numbers on one line; floats that YAML 1.1 and 1.2 read as such; no aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _float(dumper: yaml.SafeDumper, value: float) -> yaml.Node:
    text = repr(value)
    if "e" in text and "." not in text:
        text = text.replace("e", ".0e")
    return dumper.represent_scalar("tag:yaml.org,2002:float", text)


def _list(dumper: yaml.SafeDumper, value: list[Any]) -> yaml.Node:
    numbers = all(item is None or isinstance(item, int | float) for item in value)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=numbers)


_Dumper.add_representer(float, _float)
_Dumper.add_representer(list, _list)


def _bodies(found: Identification) -> list[dict[str, Any]]:
    return [
        {
            "link": name,
            "mass": found.mass[b],
            "mass_std": found.mass_std[b],
            "com": found.com[b],
            "com_std": found.com_std[b],
            "prior_mass": found.prior_mass[b],
            "prior_mass_std": found.prior_mass_std[b],
            "prior_com": found.prior_com[b],
            "prior_com_std": found.prior_com_std[b],
        }
        for b, name in enumerate(found.bodies)
        if found.prior_mass[b] > 0.0
    ]


def _sensors(found: Identification) -> dict[str, Any]:
    return {
        kind: {
            name: {"value": value, "deviation": found.sensor_stds[kind][name]}
            for name, value in values.items()
        }
        for kind, values in found.sensor_errors.items()
    }


def _postures(found: Identification, postures: Sequence[Posture]) -> list[dict[str, Any]]:
    return [
        {"label": posture.label, "samples": posture.samples, "weight": weight}
        for posture, weight in zip(postures, found.weights, strict=True)
    ]
