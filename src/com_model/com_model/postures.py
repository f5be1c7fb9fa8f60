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

from com_model.arrays import as_array
from com_model.files import write_file
from com_model.joint_path import JointPath
from com_model.model import RobotModel

SHORTEST = 0.3  # s, of a path


def write_postures(
    path: str | os.PathLike[str], model: RobotModel, postures: ArrayLike, note: str = ""
) -> None:
    """Writes postures to a YAML file, whole or not at all; makes the folder.

    Args:
        path: The file.
        model: The robot, whose joints the columns are.
        postures: (P, n) rad or m.
        note: Comment at the top.
    """
    rows = as_array("postures", postures, (None, model.n_joints))
    # digits behind the point, rad or m
    content = {
        "robot": model.name,
        "joints": list(model.joint_names),
        "postures": (rows.round(6) + 0.0).tolist(),
    }
    comment = f"# {note}\n" if note else ""
    comment += "# postures: rad or m, one row each\n"
    text = yaml.safe_dump(
        content,
        default_flow_style=None,
        sort_keys=False,
        allow_unicode=True,
        width=math.inf,
    )
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    write_file(path, comment + text)


def time_path(path: ArrayLike, speeds: ArrayLike) -> JointPath:
    """Gives times to the points of a path, from rest to rest.

    The points are passed at even fractions u of the path, u = 3 s^2 - 2 s^3 with s the fraction of
    the time.

    Args:
        path: (k, n) rad or m; its first point is the start, which the result leaves out.
        speeds: rad/s or m/s, one or (n,), that no joint exceeds.

    Returns:
        The path with times.

    Raises:
        ValueError: It has fewer than two points, or a speed is not above 0.
    """
    points = as_array("path", path, (None, None))
    fastest = np.broadcast_to(np.asarray(speeds, dtype=float), points.shape[1:])
    if len(points) < 2 or not (fastest > 0.0).all():
        raise ValueError("a path has two points or more, and speeds above 0")
    u = np.linspace(0.0, 1.0, len(points))
    steps = np.abs(np.diff(points, axis=0)) * (len(points) - 1)  # rad or m per u
    # largest speed of a cubic from rest to rest, over its mean
    duration = max(1.5 * float((steps / fastest).max(initial=0.0)), SHORTEST)
    s = 0.5 - np.sin(np.arcsin(1.0 - 2.0 * u) / 3.0)
    rate = 6.0 * s * (1.0 - s) / duration
    slope = np.gradient(points, u, axis=0)
    return JointPath((s * duration)[1:], points[1:], (slope * rate[:, None])[1:])
