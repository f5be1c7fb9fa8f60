#!/usr/bin/env python3
"""Writes motions/hoap2_squat_and_wave.csv: HOAP-2 squats twice, lifts its right arm and waves.

    make_hoap2_motion.py [FILE]

It begins and ends at rest in the nominal posture of the configuration. The soles stay level, hips
and ankles divide the squat so that the centre of mass stays where it is over the soles.
"""

import sys
from pathlib import Path

import numpy as np

from com_control.motion.csv_file import write_motion
from com_control.motion.motion import Motion, MotionLayout
from com_model import RobotConfig, RobotModel
from com_model.arrays import Array

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "robot_descriptions"
FILE = PACKAGE / "motions" / "hoap2_squat_and_wave.csv"
PERIOD = 0.01  # s, of a row
SQUAT = 0.5  # rad, of the knees
HIP_FRACTION = 0.55  # by which the hips, not the ankles, bring the trunk upright
LIFT, SWING = 1.2, 0.6  # rad, of the shoulder to the side and of the elbow


def bump(time: np.ndarray, start: float, length: float) -> np.ndarray:
    """Goes from 0 to 1 and back within a time, at rest at both ends."""
    fraction = np.clip((time - start) / length, 0.0, 1.0)
    return 0.5 * (1.0 - np.cos(2.0 * np.pi * fraction))


def step(time: np.ndarray, start: float, length: float) -> np.ndarray:
    """Goes from 0 to 1 within a time, at rest at both ends."""
    fraction = np.clip((time - start) / length, 0.0, 1.0)
    return fraction**3 * (10.0 - 15.0 * fraction + 6.0 * fraction**2)


def squat_and_wave(layout: MotionLayout, config: RobotConfig, model: RobotModel) -> Motion:
    """The motion, 9 s."""
    time: Array = PERIOD * np.arange(901, dtype=np.float64)
    posture = dict(zip(model.joint_names, config.nominal_posture(model), strict=True))
    positions: Array = np.tile([posture[joint] for joint in layout.joints], (len(time), 1))

    def add(joint: str, values: np.ndarray) -> None:
        positions[:, layout.joints.index(joint)] += values

    squat = SQUAT * (bump(time, 0.2, 2.0) + bump(time, 2.4, 2.0))
    for side in "LR":
        add(f"{side}LEG_JOINT3", -HIP_FRACTION * squat)
        add(f"{side}LEG_JOINT4", squat)
        add(f"{side}LEG_JOINT5", -(1.0 - HIP_FRACTION) * squat)
    add("RARM_JOINT2", -LIFT * (step(time, 4.6, 1.0) - step(time, 7.8, 1.0)))
    waves = sum((bump(time, 5.7 + 0.7 * k, 0.7) for k in range(3)), np.zeros_like(time))
    add("RARM_JOINT4", -SWING * waves)
    return Motion(layout.joints, time, positions)


def main() -> None:
    """Writes the file."""
    config = RobotConfig.from_file(PACKAGE / "config" / "hoap2.yaml")
    assert config.urdf is not None  # noqa: S101 - the configuration names it
    model = RobotModel.from_file(config.urdf)
    layout = MotionLayout.from_file(PACKAGE / "config" / "motion" / "hoap2.yaml", config, model)
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else FILE
    write_motion(path, squat_and_wave(layout, config, model), layout)


if __name__ == "__main__":
    main()
