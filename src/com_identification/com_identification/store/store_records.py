"""The lines of a file of postures: plain JSON, checked when read, floats exact, NaN as null."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from com_identification.exceptions import IdentificationError
from com_identification.regression.postures import ComConstraint, Posture, make_posture
from com_model import ComModelError, Foot, RobotModel
from com_model.arrays import Array

FORMAT = 1
MAX_LINE = 2**18
"""Bytes of one line: a hundred times what a robot of forty joints needs."""
_DEEPEST = 6  # lists and dictionaries in each other
_LONGEST = 200  # characters of a label


def robot_record(model: RobotModel, feet: Sequence[Foot]) -> dict[str, Any]:
    """Names a robot: joints, feet, and a hash of its kinematics.

    Masses are not part of the hash, so that postures outlive a corrected URDF.
    """
    bodies = model.bodies
    digest = hashlib.sha256()
    for array in (bodies.parent, bodies.joint_type, bodies.axis, bodies.R, bodies.d):
        digest.update(np.round(np.asarray(array, dtype=float), 9).tobytes())
    return {
        "kind": "robot",
        "format": FORMAT,
        "joints": list(model.joint_names),
        "feet": [foot.frame for foot in feet],
        "sensors": [[foot.wrench_frame, foot.wrench_sign] for foot in feet],
        "mass": model.mass,
        "kinematics": digest.hexdigest()[:16],
    }


def posture_record(identity: int, posture: Posture, stamp_ns: int = 0) -> dict[str, Any]:
    """Writes a posture as plain data."""
    return {
        "kind": "posture",
        "id": identity,
        "stamp_ns": int(stamp_ns),
        "label": posture.label[:_LONGEST],
        "samples": posture.samples,
        "q": _plain(posture.q),
        "effort": _plain(posture.effort),
        "up": _plain(posture.up),
        "wrenches": [_plain(row) for row in posture.wrenches],
        "constraints": [
            [limit.link, _plain(limit.normal), limit.offset, limit.std]
            for limit in posture.constraints
        ],
    }


def posture_of(record: Mapping[str, Any], model: RobotModel, feet: int) -> Posture:
    """Reads a posture.

    Raises:
        ValueError: It is none of this robot; says why.
    """
    try:
        wrenches = np.array([_numbers(row, 6) for row in _list(record["wrenches"])])
        if len(wrenches) not in (0, feet):
            raise ValueError(f"{len(wrenches)} wrenches for {feet} feet")
        limits = tuple(
            ComConstraint(str(link), _numbers(normal, 3), float(offset), float(deviation))
            for link, normal, offset, deviation in _list(record["constraints"])
        )
        up = _numbers(record["up"], 3)
        return make_posture(
            model,
            _numbers(record["q"], model.n_joints),
            wrenches.reshape(-1, 6),
            _numbers(record["effort"], model.n_joints),
            up if np.isfinite(up).all() else None,
            limits,
            samples=whole(record, "samples"),
            label=str(record["label"])[:_LONGEST],
        )
    except (KeyError, TypeError, ComModelError, IdentificationError) as error:
        raise ValueError(str(error)) from error


def encode(record: Mapping[str, Any]) -> bytes:
    """Writes one line."""
    return json.dumps(record, allow_nan=False, separators=(",", ":")).encode() + b"\n"


def decode(line: bytes) -> dict[str, Any]:
    """Reads one line.

    Raises:
        ValueError: It is no record; says why.
    """
    if len(line) > MAX_LINE:
        raise ValueError(f"it is longer than {MAX_LINE} bytes")
    if _depth(line) > _DEEPEST:
        raise ValueError(f"it nests deeper than {_DEEPEST}")
    record = json.loads(line, parse_constant=_refuse)
    if not isinstance(record, dict) or not isinstance(record.get("kind"), str):
        raise ValueError("it is no record")
    return record


def whole(record: Mapping[str, Any], key: str) -> int:
    """Reads a whole number that is not negative.

    Raises:
        ValueError: It is none.
    """
    value = record.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        raise ValueError(f"{key}: expected a whole number, 0 or more")
    return value


def offset_of(record: Mapping[str, Any]) -> Array:
    """Reads a tare offset (6,).

    Raises:
        ValueError: It is none.
    """
    offset = _numbers(record.get("offset"), 6)
    if not np.isfinite(offset).all():
        raise ValueError("offset: expected 6 numbers")
    return offset


def _depth(line: bytes) -> int:
    """How deep brackets nest, those within texts counted too."""
    opened = np.isin(np.frombuffer(line, np.uint8), np.frombuffer(b"[{", np.uint8)).astype(int)
    closed = np.isin(np.frombuffer(line, np.uint8), np.frombuffer(b"]}", np.uint8)).astype(int)
    return int(np.cumsum(opened - closed).max(initial=0))


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


def _plain(values: Array) -> list[float | None]:
    return [None if math.isnan(value) else value for value in values.tolist()]


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError("expected a list")
    return value


def _numbers(value: Any, count: int) -> Array:
    """Numbers, null for NaN."""
    row = _list(value)
    good = all(
        item is None or (isinstance(item, int | float) and not isinstance(item, bool))
        for item in row
    )
    if len(row) != count or not good:
        raise ValueError(f"expected {count} numbers")
    array = np.array([np.nan if item is None else float(item) for item in row])
    if np.isinf(array).any():
        raise ValueError("a number is too large")
    return array
