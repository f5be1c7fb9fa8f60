"""The result of an identification as a YAML file: same input, same bytes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from com_estimation.identification.postures import Posture
from com_estimation.identification.result import Identification
from com_estimation.identification.settings import IdentificationSettings
from com_model import RobotModel


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
    raise NotImplementedError


def write_yaml(path: str | os.PathLike[str], document: Mapping[str, Any]) -> Path:
    """Writes plain data as YAML, whole or not at all: keys sorted, floats as short as exact.

    Raises:
        OutputError: It cannot be written there.
    """
    raise NotImplementedError


def read_document(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Reads what write_yaml wrote.

    Raises:
        ConfigError: It cannot be read, or is no such file.
    """
    raise NotImplementedError
