"""Postures of a robot: as a file, and as a path that is timed.

The file has joint names, and one row of joint positions for each posture:

robot: hoap2
joints: [BODY_JOINT1, HEAD_JOINT1]
postures:          # rad or m, one row each
- [0.0, 0.1]
- [0.2, 0.0]
"""

import math
import os
from pathlib import Path

import numpy as np
import yaml
from numpy.typing import ArrayLike

from com_model.arrays import Array, as_array
from com_model.files import write_file
from com_model.joint_path import JointPath
from com_model.model import RobotModel
from com_model.strict_yaml import Section, read_yaml
from com_model.text import listing

DIGITS = 6  # behind the point, rad or m
SHORTEST = 0.3  # s, of a path
_PEAK = 1.5  # largest speed of a cubic from rest to rest, over its mean
_OVER = 1e-5  # rad or m, by which a rounded position may be over a limit


def write_postures(
    path: str | os.PathLike[str], model: RobotModel, postures: ArrayLike, note: str = ""
) -> None:
    """Writes postures (P, n) rad or m, and a comment, whole or not at all; makes the folder."""
    rows = as_array("postures", postures, (None, model.n_joints))
    content = {
        "robot": model.name,
        "joints": list(model.joint_names),
        "postures": (rows.round(DIGITS) + 0.0).tolist(),
    }
    comment = f"# {note}\n" if note else ""
    comment += "# postures: rad or m, one row each\n"
    text = yaml.safe_dump(
        content, default_flow_style=None, sort_keys=False, allow_unicode=True, width=math.inf
    )
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    write_file(path, comment + text)


def read_postures(path: str | os.PathLike[str], model: RobotModel) -> Array:
    """Reads a file of postures (P, n) rad or m, P > 0, its joints in any order, within limits.

    Raises ConfigError where it is no such file, of another robot, or a posture is beyond a limit.
    """
    file = Section(read_yaml(path), str(path))
    file.text("robot", "")
    names = file.names("joints")
    if set(names) != set(model.joint_names):
        lacking = sorted(set(model.joint_names) - set(names))
        strange = sorted(set(names) - set(model.joint_names))
        parts = [f"unknown: {listing(strange)}"] if strange else []
        parts += [f"missing: {listing(lacking)}"] if lacking else []
        message = f"expected the joints of robot {model.name!r}; {'; '.join(parts)}"
        raise file.error(message, "joints")
    rows = np.array(file.rows("postures", len(names)))
    file.finish()
    if not len(rows):
        raise file.error("expected one row of joint positions or more", "postures")
    rows = rows[:, [names.index(name) for name in model.joint_names]]
    _check_limits(rows, model, file)
    return np.clip(rows, model.lower, model.upper)


def _check_limits(rows: Array, model: RobotModel, file: Section) -> None:
    beyond = (rows < model.lower - _OVER) | (rows > model.upper + _OVER)
    if beyond.any():
        row, joint = (int(index[0]) for index in np.nonzero(beyond))
        raise file.error(
            f"posture {row + 1}: {model.joint_names[joint]} is {rows[row, joint]:g}, its limits "
            f"are {model.lower[joint]:g} to {model.upper[joint]:g}",
            "postures",
        )


def time_path(path: ArrayLike, speeds: ArrayLike) -> JointPath:
    """Gives times to the points of a path (k, n) rad or m, from rest to rest; leaves its start out.

    The points are passed at even fractions u of the path, u = 3 s^2 - 2 s^3 with s the fraction of
    the time; it takes so long that no joint is faster than its speed, rad/s or m/s, one or (n,).
    Raises ValueError where it has fewer than two points, or a speed is not above 0.
    """
    points = as_array("path", path, (None, None))
    fastest = np.broadcast_to(np.asarray(speeds, dtype=float), points.shape[1:])
    if len(points) < 2 or not (fastest > 0.0).all():
        raise ValueError("a path has two points or more, and speeds above 0")
    u = np.linspace(0.0, 1.0, len(points))
    steps = np.abs(np.diff(points, axis=0)) * (len(points) - 1)  # rad or m per u
    duration = max(_PEAK * float((steps / fastest).max(initial=0.0)), SHORTEST)
    s = 0.5 - np.sin(np.arcsin(1.0 - 2.0 * u) / 3.0)
    rate = 6.0 * s * (1.0 - s) / duration
    slope = np.gradient(points, u, axis=0)
    return JointPath((s * duration)[1:], points[1:], (slope * rate[:, None])[1:])
