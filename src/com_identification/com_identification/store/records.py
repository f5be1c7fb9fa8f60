"""Postures and robots as JSON: floats exact, NaN as null, checked when read."""

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
MAX_RECORD = 2**18  # bytes: a hundred times what a robot of forty joints needs
_MAX_LABEL = 200  # characters


def robot_record(model: RobotModel, feet: Sequence[Foot]) -> dict[str, Any]:
    """Returns data that identify a robot: joints, feet, and a hash of its kinematics.

    Masses are not part of the hash, so that postures outlive a corrected URDF.

    Args:
        model: the robot.
        feet: its feet, in the order of the wrenches of a posture.

    Returns:
        Plain data for JSON; see check_robot.
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


def check_robot(record: Any, robot: Mapping[str, Any], name: str) -> None:
    """Checks that a file belongs to a robot.

    Args:
        record: of the file; any JSON value.
        robot: the robot_record of the robot.
        name: of the file, for messages.

    Raises:
        StoreError: the record is no robot's, or another robot's; says what differs.
    """
    if (
        not isinstance(record, dict)
        or record.get("kind") != "robot"
        or record.get("format") != FORMAT
    ):
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
    """What only one of two values has, as text: names of lists, or the values themselves."""
    if not isinstance(a, list) or not isinstance(b, list):
        return str(a)[:40], str(b)[:40]
    only = ([x for x in a if x not in b], [y for y in b if y not in a])
    if not any(only):
        only = (a, b)  # the order differs
    first, second = (
        listing([str(item)[:40] for item in items]) or "none" for items in only
    )
    return first, second


def encode_bias(foot: int, bias: Array) -> str:
    """Writes the bias of a foot's sensor as JSON.

    Args:
        foot: its index.
        bias: (6,) N and N m, as read.
    """
    return json.dumps({"kind": "tare", "foot": foot, "offset": bias.tolist()})


def encode_posture(posture: Posture, stamp_ns: int) -> str:
    """Writes a posture as JSON.

    Args:
        posture: Of any robot.
        stamp_ns: When it was captured, ns; 0: not known.

    Raises:
        ValueError: A number is infinite.
    """
    return json.dumps(
        {
            "kind": "posture",
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
        },
        allow_nan=False,
        separators=(",", ":"),
    )


def decode(text: str | bytes) -> Any:
    """Reads JSON without NaN and infinity.

    Args:
        text: at most MAX_RECORD bytes.

    Raises:
        ValueError: says what is wrong.
    """
    if len(text) > MAX_RECORD:
        raise ValueError(f"it is longer than {MAX_RECORD} bytes")
    try:
        return json.loads(text, parse_constant=_refuse)
    except RecursionError as error:
        raise ValueError(str(error)) from error


def decode_posture(record: Any, model: RobotModel, feet: int) -> Posture:
    """Reads a posture.

    Args:
        record: What decode() returned.
        model: The robot.
        feet: Number of its feet.

    Raises:
        ValueError: Says why it is no posture of this robot.
    """
    most = 100  # of a posture
    try:
        wrenches = np.array([numbers(row, 6) for row in _list(record["wrenches"])])
        if len(wrenches) not in (0, feet):
            raise ValueError(f"{len(wrenches)} wrenches for {feet} feet")
        constraints = _list(record["constraints"])
        if len(constraints) > most:
            raise ValueError(f"more than {most} constraints")
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
            samples=whole(record["samples"], "samples"),
            label=str(record["label"])[:_MAX_LABEL],
            noise=np.array(noise).T if noise else None,
        )
    except (AttributeError, KeyError, OverflowError, TypeError, ComModelError) as error:
        raise ValueError(str(error)) from error


def whole(value: Any, name: str) -> int:
    """Checks a whole number that is not negative.

    Args:
        value: any JSON value.
        name: for the message.

    Raises:
        ValueError: it is none; has the name.
    """
    largest = 2**62  # above all whole numbers of a record; stamps in ns need as many
    if type(value) is not int or not 0 <= value < largest:
        raise ValueError(f"{name}: expected a whole number from 0 to {largest - 1}")
    return value


def numbers(value: Any, count: int) -> Array:
    """Reads a list of numbers, null for NaN, as an array.

    Args:
        value: any JSON value.
        count: how many numbers are expected.

    Returns:
        (count,).

    Raises:
        ValueError: it is no such list.
    """
    row = _list(value)
    good = all(item is None or type(item) in (int, float) for item in row)
    if len(row) != count or not good:
        raise ValueError(f"expected {count} numbers")
    array = np.array([np.nan if item is None else float(item) for item in row])
    if np.isinf(array).any():
        raise ValueError("a number is too large")
    return array


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")


def _plain(values: Array) -> list[float | None]:
    return [None if math.isnan(value) else value for value in values.tolist()]


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError("expected a list")
    return value
