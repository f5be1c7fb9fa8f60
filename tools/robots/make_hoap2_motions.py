#!/usr/bin/env python3
"""Writes HOAP-2's motion files that ship, motions/hoap2_*.csv.

    make_hoap2_motions.py [FOLDER]

squat_and_wave: it squats twice, lifts its right arm and waves. It begins and ends at rest in the
nominal posture of the configuration. The soles stay level, hips and ankles divide the squat so that
the centre of mass stays where it is over the soles.
walk: six steps of 5 cm, by the suite's planner, ZMP of the whole robot as planned.
rise: it stands up from a deep crouch, its trunk bent forwards and its arms before it.
"""

import sys
from pathlib import Path

import numpy as np
from scipy.optimize import brentq

from com_control.motion.files import write_motion
from com_control.motion.motion import Motion, MotionLayout
from com_control.walking.biped import Biped
from com_control.walking.com_ik import ComIk
from com_control.walking.walk import WalkRequest, make_plan
from com_control.walking.walk_joints import refine
from com_control.walking.walk_plan import find_stance
from com_model import RobotConfig, RobotModel, Sesc, link_poses
from com_model.arrays import Array

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "robot_descriptions"
FOLDER = PACKAGE / "motions"
PERIOD = 0.01  # s, of a row
SQUAT = 0.5  # rad, of the knees
HIP_FRACTION = 0.55  # by which the hips, not the ankles, bring the trunk upright
WALK = WalkRequest(steps=6, step_length=0.05, step_time=0.6, double_support=0.2)
MIDDLE = 0.01  # m, of the soles before their frames
CROUCH = 1.9  # rad, of the knees
LIFT, SWING = 1.2, 0.6  # rad, of the shoulder to the side and of the elbow


def bump(time: np.ndarray, start: float, length: float) -> np.ndarray:
    """Goes from 0 to 1 and back within a time, at rest at both ends."""
    fraction = np.clip((time - start) / length, 0.0, 1.0)
    return 0.5 * (1.0 - np.cos(2.0 * np.pi * fraction))


def step(time: np.ndarray, start: float, length: float) -> np.ndarray:
    """Goes from 0 to 1 within a time, at rest at both ends."""
    fraction = np.clip((time - start) / length, 0.0, 1.0)
    return fraction**3 * (10.0 - 15.0 * fraction + 6.0 * fraction**2)


def squat_and_wave(
    layout: MotionLayout, config: RobotConfig, model: RobotModel
) -> Motion:
    """The motion, 9 s."""
    time: Array = PERIOD * np.arange(901, dtype=np.float64)
    posture = dict(zip(model.joint_names, config.nominal_posture(model), strict=True))
    positions: Array = np.tile(
        [posture[joint] for joint in layout.joints], (len(time), 1)
    )

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


def walk(layout: MotionLayout, config: RobotConfig, model: RobotModel) -> Motion:
    """Six steps."""
    biped = Biped.from_config(model, config)
    plan = make_plan(WALK, biped, find_stance(biped, biped.posture))
    joints = refine(ComIk(biped), plan, PERIOD).joints
    columns = [model.joint_index(joint) for joint in layout.joints]
    return Motion(layout.joints, joints.time, joints.q[:, columns])


def rise(layout: MotionLayout, config: RobotConfig, model: RobotModel) -> Motion:
    """The motion, 4 s; the CoM stays over the middle of the soles."""
    time: Array = PERIOD * np.arange(401, dtype=np.float64)
    posture = dict(zip(model.joint_names, config.nominal_posture(model), strict=True))
    sesc, sole = Sesc(model), model.link_index("l_sole")
    rows = []
    for bent in 1.0 - step(time, 0.5, 3.0):
        q = posture | {"BODY_JOINT1": 0.0}
        knee = posture["LLEG_JOINT4"] + bent * (CROUCH - posture["LLEG_JOINT4"])
        for side in "LR":
            q[f"{side}LEG_JOINT4"] = knee
            q[f"{side}ARM_JOINT1"] = posture[f"{side}ARM_JOINT1"] * (1.0 - bent)
        hip = brentq(lambda x: _ahead(q, x, model, sesc, sole), -1.5, 0.0)  # noqa: B023
        rows.append([_bend(q, hip)[joint] for joint in layout.joints])
    return Motion(layout.joints, time, np.array(rows))


def _bend(q: dict[str, float], ankle: float) -> dict[str, float]:
    """The posture with ankles at an angle, trunk upright and soles level."""
    legs = {f"{side}LEG_JOINT5": ankle for side in "LR"}
    return (
        q
        | legs
        | {f"{side}LEG_JOINT3": -ankle - q[f"{side}LEG_JOINT4"] for side in "LR"}
    )


def _ahead(
    q: dict[str, float], ankle: float, model: RobotModel, sesc: Sesc, sole: int
) -> float:
    """By how much the CoM is before the middle of the soles, m."""
    x = np.array([_bend(q, ankle)[joint] for joint in model.joint_names])
    return float(sesc.com(x)[0] - link_poses(model, x)[1][sole, 0] - MIDDLE)


MOTIONS = {"squat_and_wave": squat_and_wave, "walk": walk, "rise": rise}


def main() -> None:
    """Writes the files."""
    config = RobotConfig.from_file(PACKAGE / "config" / "hoap2.yaml")
    assert config.urdf is not None  # noqa: S101 - the configuration names it
    model = config.attach(RobotModel.from_file(config.urdf))
    layout = MotionLayout.from_file(
        PACKAGE / "config" / "motion" / "hoap2.yaml", config, model
    )
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    for name, make in MOTIONS.items():
        write_motion(folder / f"hoap2_{name}.csv", make(layout, config, model), layout)


if __name__ == "__main__":
    main()
