"""Proposes what the columns of a table mean, by their names and ranges."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import yaml

from com_bags import Table
from com_bags.column_names import find_time, name_words
from com_bags.robot_states import state_table
from com_model import Foot, RobotModel
from com_model.dynamics import GRAVITY

_HEAD = """\
# Proposed from names and ranges of the columns: check each line, above all units and signs.
# A channel is a column's name, {column: NAME, unit: deg, scale: -1.0, offset: 0.0}, or a number.
"""
_OTHERS = (
    "vel",
    "dq",
    "speed",
    "acc",
    "cmd",
    "des",
    "ref",
    "command",
    "target",
    "temp",
)
_EFFORT = ("effort", "torque", "tau")
_GYRO = ("gyro", "gyr", "omega", "w", "angular")
_TURN = ("quat", "quaternion", "orientation", "rot")
_FORCE, _MOMENT = ("f", "force"), ("m", "moment", "torque", "t", "tau")
_LOAD, _CELL = ("kgf", "load", "vertical", "weight"), ("cell", "fsr", "pressure")

Names = Mapping[str, Sequence[str]]
"""Names of columns, and their words."""


def guess_mapping(table: Table, model: RobotModel, feet: Sequence[Foot]) -> str:
    """Proposes a mapping by names and ranges of the columns.

    Args:
        table: with names and values of the columns.
        model: the robot.
        feet: its feet.

    Returns:
        YAML text; what was not found is a comment at the end.
    """
    links = model.joint_names + model.link_names
    if (state := state_table(table, links)) is not None:
        return _HEAD + _yaml(state)
    names = {name: name_words(name) for name in table.columns}
    mapping: dict[str, Any] = {}
    lost: list[str] = []
    time = find_time(table)
    if time is None:
        lost.append("time: no rising column; give its name, or rate: HZ")
    else:
        mapping["time"] = time
    joints: dict[str, Any] = {}
    efforts = {}
    for joint in model.joint_names:
        own = [n for n, words in names.items() if _about(joint, words)]
        own = [n for n in own if not _has(names[n], _OTHERS)]
        efforts[joint] = _shortest(n for n in own if _has(names[n], _EFFORT))
        joints[joint] = _shortest(n for n in own if not _has(names[n], _EFFORT))
        if not joints[joint]:
            lost.append(
                f"joints.{joint}: no column; give one, or its constant position"
            )
    # rad; larger positions are degrees
    mapping["joints"] = _in_unit(
        table, {j: n for j, n in joints.items() if n}, 7.0, "deg"
    )
    mapping["efforts"] = {joint: n for joint, n in efforts.items() if n}
    found = {
        foot.frame: _foot(foot, table, names, model.mass * GRAVITY) for foot in feet
    }
    lost += [
        f"feet.{frame}: no columns of its force"
        for frame, own in found.items()
        if not own
    ]
    lost += [
        f"feet.{frame}.cells: their positions (here the sole's corners) and calibrations"
        for frame, own in found.items()
        if "cells" in own
    ]
    mapping["feet"] = {frame: own for frame, own in found.items() if own}
    if acceleration := _axes(names, ("acc", "acceleration", "accel"), "xyz"):
        size = np.median(
            np.linalg.norm([table.columns[n] for n in acceleration], axis=0)
        )
        unit = "g" if size < 2.0 else "m/s^2"
        mapping["imu"] = {
            "acceleration": [{"column": n, "unit": unit} for n in acceleration]
        }
        if gyro := _axes(names, _GYRO, "xyz"):
            # rad/s; larger angular velocities are degrees per second
            channels = _in_unit(
                table, dict(zip("xyz", gyro, strict=True)), 20.0, "deg/s"
            )
            mapping["imu"]["gyro"] = list(channels.values())
        if turn := _axes(names, _TURN, "xyzw"):
            mapping["imu"]["orientation"] = turn
    mapping = {key: value for key, value in mapping.items() if value}
    return _HEAD + _yaml(mapping) + "".join(f"# missing: {each}\n" for each in lost)


def _yaml(mapping: Mapping[str, Any]) -> str:
    return yaml.safe_dump(mapping, sort_keys=False, allow_unicode=True, width=100)


def _foot(foot: Foot, table: Table, names: Names, weight: float) -> dict[str, Any]:
    """What a foot's columns are; {} where none are found."""
    side = {"left": ("left", "l", "lf"), "right": ("right", "r", "rf")}.get(
        foot.side, ()
    )
    frames = foot.frame, foot.wrench_frame
    own = {
        name: words
        for name, words in names.items()
        if any(_about(frame, words) for frame in frames) or _has(words, side)
    }
    force, moment = _axes(own, _FORCE, "xyz"), _axes(own, _MOMENT, "xyz")
    if force and moment:
        return {"force": force, "moment": moment}
    vertical = (
        _axes(own, _FORCE, "z")
        or [n for n, words in own.items() if _has(words, _LOAD)][:1]
    )
    point = _axes(own, ("cop", "zmp", "pressure"), "xy")
    if vertical and not point:  # l_sole_x, l_sole_y
        point = [
            next((n for n, words in own.items() if words[-1] == axis), "")
            for axis in "xy"
        ]
    if not (vertical and all(point)):
        return _cells_of(foot, own)
    newton = np.nanmax(np.abs(table.columns[vertical[0]])) > 0.3 * weight
    return {
        "vertical": {"column": vertical[0], "unit": "N" if newton else "kgf"},
        "cop": list(
            _in_unit(table, dict(zip("xy", point, strict=True)), 2.0, "mm").values()
        ),
    }


def _cells_of(foot: Foot, own: Names) -> dict[str, Any]:
    """Numbered columns as pressure cells at the corners of the sole, to be corrected."""
    cells = [n for n, words in own.items() if words[-1].isdigit() or _has(words, _CELL)]
    if len(cells) < max(3, len(foot.corners)) or not len(foot.corners):
        return {}
    places = [foot.corners[i % len(foot.corners)].tolist() for i in range(len(cells))]
    pairs = zip(cells, places, strict=True)
    return {
        "cells": [{"column": n, "at": at, "polynomial": [0.0, 1.0]} for n, at in pairs]
    }


def _in_unit(
    table: Table, named: Mapping[str, str], most: float, unit: str
) -> dict[str, Any]:
    """Channels, in a unit where values are above what they are in rad or m."""
    largest = max(
        (np.nanmax(np.abs(table.columns[n])) for n in named.values()), default=0.0
    )
    return {
        k: {"column": n, "unit": unit} if largest > most else n
        for k, n in named.items()
    }


def _about(what: str, words: Sequence[str]) -> bool:
    """Whether all words of a name are among others, consecutively."""
    own, text = "/".join(name_words(what)), "/".join(words)
    return f"/{own}/" in f"/{text}/"


def _has(words: Sequence[str], any_of: Sequence[str]) -> bool:
    return any(word in any_of for word in words)


def _shortest(names: Iterable[str]) -> str:
    return min(names, key=len, default="")


def _axes(names: Names, kinds: Sequence[str], axes: str) -> list[str]:
    """Names of the columns of all axes of a quantity; [] where one is missing."""
    found = [
        _shortest(
            name
            for name, words in names.items()
            if any(f"{kind}{axis}" in words for kind in kinds)
            or (axis in words[-2:] and _has(words, kinds))
        )
        for axis in axes
    ]
    return found if all(found) else []
