"""The lines of a file of postures: plain JSON, checked when read, floats exact, NaN as null."""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from com_identification.exceptions import StoreError
from com_identification.regression.postures import ComConstraint, Posture, make_posture
from com_model import ComModelError, Foot, RobotModel
from com_model.arrays import Array
from com_model.text import listing

FORMAT = 1
MAX_LINE = (
    2**18
)  # bytes of one line: a hundred times what a robot of forty joints needs
_MAX_LABEL = 200  # characters
_MAX_CONSTRAINTS = 100  # of a posture
_LARGEST = 2**62  # above all whole numbers of a record; stamps in ns need as many


def robot_record(model: RobotModel, feet: Sequence[Foot]) -> dict[str, Any]:
    """Identifies a robot: joints, feet, and a hash of its kinematics.

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


def posture_record(
    identity: int, posture: Posture, stamp_ns: int = 0
) -> dict[str, Any]:
    """Writes a posture as plain data."""
    return {
        "kind": "posture",
        "id": identity,
        "stamp_ns": int(stamp_ns),
        "label": posture.label[:_MAX_LABEL],
        "samples": posture.samples,
        "q": _plain(posture.q),
        "effort": _plain(posture.effort),
        "up": _plain(posture.up),
        "wrenches": [_plain(row) for row in posture.wrenches],
        "constraints": [
            [limit.link, _plain(limit.normal), limit.offset, limit.std]
            for limit in posture.constraints
        ],
        "noise": [_plain(column) for column in posture.noise.T],
    }


def posture_of(record: Mapping[str, Any], model: RobotModel, feet: int) -> Posture:
    """Reads a posture; a ValueError says why it is not of this robot."""
    try:
        wrenches = np.array([numbers(row, 6) for row in _list(record["wrenches"])])
        if len(wrenches) not in (0, feet):
            raise ValueError(f"{len(wrenches)} wrenches for {feet} feet")
        constraints = _list(record["constraints"])
        if len(constraints) > _MAX_CONSTRAINTS:
            raise ValueError(f"more than {_MAX_CONSTRAINTS} constraints")
        limits = tuple(
            ComConstraint(
                str(link), numbers(normal, 3), *numbers([offset, std], 2).tolist()
            )
            for link, normal, offset, std in constraints
        )
        up = numbers(record["up"], 3)
        rows = wrenches.size + model.n_joints
        noise = [numbers(column, rows) for column in _list(record.get("noise", []))]
        return make_posture(
            model,
            numbers(record["q"], model.n_joints),
            wrenches.reshape(-1, 6),
            numbers(record["effort"], model.n_joints),
            up if np.isfinite(up).all() else None,
            limits,
            samples=whole(record, "samples"),
            label=str(record["label"])[:_MAX_LABEL],
            noise=np.array(noise).T if noise else None,
        )
    except (KeyError, TypeError, ComModelError) as error:
        raise ValueError(str(error)) from error


def encode(record: Mapping[str, Any]) -> bytes:
    """Writes one line."""
    return json.dumps(record, allow_nan=False, separators=(",", ":")).encode() + b"\n"


def decode(line: bytes) -> dict[str, Any]:
    """Reads one line; a ValueError says why it is no record."""
    if len(line) > MAX_LINE:
        raise ValueError(f"it is longer than {MAX_LINE} bytes")
    record = json.loads(line, parse_constant=_refuse)
    if not isinstance(record, dict) or not isinstance(record.get("kind"), str):
        raise ValueError("it is not a record")
    return record


def whole(record: Mapping[str, Any], key: str) -> int:
    """Reads a whole number that is not negative; else a ValueError."""
    value = record.get(key)
    if (
        isinstance(value, bool)
        or not isinstance(value, int)
        or not 0 <= value < _LARGEST
    ):
        raise ValueError(f"{key}: expected a whole number from 0 to {_LARGEST - 1}")
    return value


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")


def _plain(values: Array) -> list[float | None]:
    return [None if math.isnan(value) else value for value in values.tolist()]


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError("expected a list")
    return value


def numbers(value: Any, count: int) -> Array:
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


def check_robot(record: Mapping[str, Any], robot: Mapping[str, Any], name: str) -> None:
    """Refuses a file of another robot: a StoreError says what differs."""
    if record.get("kind") != "robot" or record.get("format") != FORMAT:
        raise StoreError(
            f"{name} is not a posture file of format {FORMAT}: give another file"
        )
    for key, what in (
        ("joints", "joints"),
        ("feet", "feet"),
        ("sensors", "frames and signs of the force sensors"),
        ("kinematics", "places and axes of the joints"),
    ):
        if record.get(key) != robot[key]:
            file, robots = _differing(record.get(key), robot[key])
            raise StoreError(
                f"{name} belongs to another robot: its {what} differ (file: {file}; this robot: "
                f"{robots}). Give another file"
            )


def _differing(a: Any, b: Any) -> tuple[str, str]:
    if not isinstance(a, list) or not isinstance(b, list):
        return str(a)[:40], str(b)[:40]
    only = ([x for x in a if x not in b], [y for y in b if y not in a])
    if not any(only):
        only = (a, b)  # the order differs
    first, second = (
        listing([str(item)[:40] for item in items]) or "none" for items in only
    )
    return first, second
