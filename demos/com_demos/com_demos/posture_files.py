"""Reads files of postures, as com_model.postures writes them."""

import os

import numpy as np

from com_model import RobotModel
from com_model.arrays import Array
from com_model.strict_yaml import Section, read_yaml
from com_model.text import listing

_OVER = 1e-5  # rad or m, by which a rounded position may be over a limit


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
