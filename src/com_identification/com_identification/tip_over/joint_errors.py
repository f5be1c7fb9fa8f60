"""The errors of a robot's joints: zero offset, compliance, backlash; and their file (YAML).

robot: hoap2
mean_error_deg: 0.43              # of the tip angles that they were found from; may be missing
zero_offset_rad: {JOINT: ...}     # joints without one: 0
compliance_rad_per_nm: {JOINT: ...}
backlash_rad: {JOINT: ...}
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from com_identification.tip_over.exceptions import ProtocolError
from com_model import RobotModel
from com_model.arrays import Array, freeze
from com_model.strict_yaml import Section, read_yaml

_KEYS = {
    "zero_offset_rad": "offset",
    "compliance_rad_per_nm": "compliance",
    "backlash_rad": "backlash",
}


@dataclass(frozen=True, eq=False)
class JointErrors:
    """What joints do that a rigid model does not know of.

    Attributes:
        offset: (n,) rad, where a joint is when its encoder says 0.
        compliance: (n,) rad/(N m), how far it gives way.
        backlash: (n,) rad, its play, all of it.
    """

    offset: Array
    compliance: Array
    backlash: Array

    def __post_init__(self) -> None:
        for name in ("compliance", "backlash"):
            if not (getattr(self, name) >= 0.0).all():
                raise ProtocolError(f"{name}: expected numbers, 0 or more")
        freeze(self)

    @classmethod
    def none(cls, model: RobotModel) -> JointErrors:
        """Rigid joints that are where their encoders say."""
        return cls(*np.zeros((3, model.n_joints)))


def joint_errors_document(
    model: RobotModel, errors: JointErrors, mean_error_deg: float
) -> dict[str, Any]:
    """Lists the errors of the joints as plain data, zeros left out.

    Args:
        model: The robot.
        errors: Of its joints.
        mean_error_deg: Mean absolute error of the tip angles with them.
    """
    document: dict[str, Any] = {"robot": model.name, "mean_error_deg": round(mean_error_deg, 4)}
    for key, name in _KEYS.items():
        document[key] = {
            joint: round(float(value), 6)
            for joint, value in zip(model.joint_names, getattr(errors, name), strict=True)
            if value
        }
    return document


def read_joint_errors(path: str | os.PathLike[str], model: RobotModel) -> JointErrors:
    """Reads a file of joint errors.

    Raises:
        ConfigError: The file or a key in it is wrong; names the key and what it expects.
        UnknownNameError: A joint is not the model's; lists those that there are.
        ProtocolError: They are another robot's, or a compliance or backlash is negative.
    """
    top = Section(read_yaml(path), str(path))
    robot = top.text("robot", None)
    if robot != model.name:
        raise ProtocolError(
            f"{path} holds errors of the joints of {robot!r}, the robot is {model.name!r}: "
            "give its own"
        )
    top.number("mean_error_deg", 0.0, least=0.0)
    errors = JointErrors(*(_column(top.section(key), model) for key in _KEYS))
    top.finish()
    return errors


def _column(section: Section, model: RobotModel) -> Array:
    column = np.zeros(model.n_joints)
    for joint in section.entries():
        column[model.joint_index(joint)] = section.number(joint, 0.0)
    return column
