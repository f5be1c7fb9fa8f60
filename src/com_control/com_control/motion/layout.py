"""What the columns of a robot's motion files mean."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np

from com_control.exceptions import MotionError
from com_model import RobotConfig, RobotModel
from com_model.arrays import Array, FrozenArrays
from com_model.bodies import Indices
from com_model.strict_yaml import Section, read_yaml

PERIOD, MODE = "period", "mode"
_TO_SPEED = 0.1  # s, from rest to full speed, of joints whose acceleration nobody gave


@dataclass(frozen=True, eq=False)
class MotionLayout(FrozenArrays):
    """Columns, units and limits of a robot's motion files.

    Attributes:
        columns: Names in the order of the file: "period", "mode", joints; others are not joints.
        joints: The k joints among them.
        index: (k,) their columns.
        counts_per_rad: (k,) counts (pulses) a radian of the URDF's joint, with its sign.
        period: s a count of the column "period".
        lower: (k,) rad, limits of the joints.
        upper: (k,) rad.
        velocity: (k,) rad/s.
        acceleration: (k,) rad/s^2.
    """

    columns: tuple[str, ...]
    joints: tuple[str, ...]
    index: Indices
    counts_per_rad: Array
    period: float
    lower: Array
    upper: Array
    velocity: Array
    acceleration: Array

    @classmethod
    def from_file(
        cls, path: str | os.PathLike[str], config: RobotConfig, model: RobotModel
    ) -> MotionLayout:
        """Reads a layout; encoders come from the robot's configuration, limits from its URDF.

        Raises:
            ConfigError: The file or a key in it is wrong; names the key and what it expects.
            MotionError: There is no period, or a joint's encoder is not known.
        """
        top = Section(read_yaml(path), str(path))
        top.text("robot", None)
        columns = top.names("columns")
        period = top.number("period", 0.001, least=1e-6)
        speed = top.number("max_speed", np.inf, least=0.0)
        acceleration = top.number("max_acceleration", np.inf, least=0.0)
        top.finish()
        joints = tuple(name for name in columns if name in model.joint_names)
        counts = _counts(joints, config)
        at = [model.joint_index(joint) for joint in joints]
        if PERIOD not in columns or not joints:
            raise MotionError(f"{path}: columns need {PERIOD!r} and joints of {model.name}")
        return cls(
            columns=columns,
            joints=joints,
            index=np.array([columns.index(joint) for joint in joints]),
            counts_per_rad=counts,
            period=period,
            lower=model.lower[at],
            upper=model.upper[at],
            velocity=np.minimum(speed / np.abs(counts), model.velocity_limits[at]),
            acceleration=acceleration / np.abs(counts),
        )


def _counts(joints: tuple[str, ...], config: RobotConfig) -> Array:
    per_degree = config.encoder_counts_per_degree
    if per_degree is None:
        raise MotionError(f"{config.source}: encoder.counts_per_degree is missing: give it")
    for joint in joints:
        if joint not in config.encoder_signs:
            raise MotionError(
                f"{config.source}: encoder.signs has no {joint}, a column of the motion files: "
                "give 1 or -1"
            )
    signs = np.array([config.encoder_signs[joint] for joint in joints], dtype=float)
    return np.asarray(np.degrees(signs * per_degree))
