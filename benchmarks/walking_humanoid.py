"""Humanoids walk and sway in the simulator, open loop, and are not as their URDFs say."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import any_robot
import numpy as np
from numpy.typing import NDArray
from walk_playback import starting_at
from walk_scenarios import WalkingBiped, load_robot, walk_by
from walking_lab import (
    PERIOD,
    Errors,
    RobotWithErrors,
    Walk,
    Wrong,
    as_log,
    draw_robot,
    robot_world,
)

from com_control.walking.biped import Biped
from com_control.walking.walk import WalkRequest, make_plan
from com_control.walking.walk_plan import find_stance
from com_model import RobotConfig, RobotModel
from com_simulation.physics.sensors import Reading
from com_simulation.physics.simulation import Simulation
from com_simulation.physics.spec import ROBOT_BIT

Array = NDArray[np.float64]

# of the drives' torque limits
FRICTION, VISCOUS, BIAS = (0.01, 0.03), (0.001, 0.005), 0.005
# Hz: the trunk leans, knees bend, the robot sways
SWAYS = (0.25, 0.45, 0.35), (0.35, 0.25, 0.45)
LEAN, BEND, SWAY = 0.17, 0.15, 0.03  # rad
# rad, amplitudes of joints with that name
SWINGS = {
    "torso": 0.03,
    "arm": 0.12,
    "head": 0.15,
    "shoulder_pitch": 0.08,
    "elbow": 0.08,
}


@dataclass(frozen=True)
class Humanoid:
    """A robot, and how it walks: of the walks the last one is held out."""

    config: str
    urdf: str  # its place among the example robots; "": the suite's
    wrong: Wrong
    # step length and step to the side, m, turn, rad, time, s, and part of it on both feet, number
    walks: tuple[tuple[float, float, float, float, float, int], ...]
    # patterns of the names of hip roll, hip pitch, knee, ankle pitch, ankle roll
    legs: tuple[str, ...] = (
        "hip_roll",
        "hip_pitch",
        "knee",
        "ankle_pitch",
        "ankle_roll",
    )
    fixed: tuple[str, ...] = ()  # joints that it has not
    drives: float = 1.0  # their true size over that by the URDF's limits


HUMANOIDS = {
    "talos": Humanoid(
        "talos",
        "talos_data/robots/talos_reduced.urdf",
        Wrong(payload=4.0, payload_box=(0.1, 0.1, 0.15)),
        (
            (0.2, 0.0, 0.0, 0.8, 0.25, 6),
            (-0.12, 0.0, 0.0, 0.7, 0.25, 6),
            (0.0, 0.04, 0.0, 0.9, 0.3, 6),
            (0.1, 0.0, 0.08, 0.9, 0.3, 6),
            (0.1, 0.0, 0.0, 0.6, 0.2, 8),
            (0.15, 0.02, 0.0, 0.75, 0.25, 6),
        ),
        ("leg.*_2_", "leg.*_3_", "leg.*_4_", "leg.*_5_", "leg.*_6_"),
    ),
    "g1": Humanoid(
        "g1",
        "g1_description/urdf/g1_29dof_rev_1_0.urdf",
        Wrong(payload=1.5, payload_box=(0.08, 0.08, 0.1), com=0.007, trunk_com=0.02),
        (
            (0.05, 0.0, 0.0, 0.9, 0.5, 6),
            (-0.04, 0.0, 0.0, 0.9, 0.5, 6),
            (0.0, 0.02, 0.0, 1.0, 0.5, 6),
            (0.03, 0.0, 0.05, 1.0, 0.5, 6),
            (0.04, 0.01, 0.0, 0.95, 0.5, 6),
        ),
    ),
    "five-joint legs": Humanoid(
        "itu_biped",
        "",
        Wrong(payload=1.5, payload_box=(0.08, 0.08, 0.1), com=0.007, trunk_com=0.02),
        (
            (0.05, 0.0, 0.0, 0.8, 0.4, 8),
            (-0.06, 0.0, 0.0, 0.8, 0.4, 8),
            (0.0, 0.02, 0.0, 0.9, 0.4, 8),
            (0.05, 0.0, 0.06, 0.9, 0.4, 8),
            (0.04, 0.0, 0.0, 0.8, 0.5, 8),
        ),
        fixed=("l_ankle_roll_joint", "r_ankle_roll_joint"),
        drives=0.25,
    ),
}


def _load(humanoid: Humanoid, folder: str) -> WalkingBiped:
    """The robot; its files are in a folder, where it has lost joints."""
    whole = load_robot(humanoid.config, humanoid.urdf)
    if not humanoid.fixed:
        return whole
    xml, file = whole.model.xml, Path(folder) / "robot.urdf"
    for name in humanoid.fixed:
        joint = f'<joint name="{name}" type='
        assert f'{joint}"revolute"' in xml
        xml = xml.replace(f'{joint}"revolute"', f'{joint}"fixed"')
    file.write_text(xml)
    settings = file.with_suffix(".yaml")
    settings.write_text(any_robot.configure(file).text)
    config = RobotConfig.from_file(settings)
    model = config.attach(RobotModel.from_file(file))
    return WalkingBiped(model, config, Biped.from_config(model, config), file)


def record_humanoid(
    what: str | Humanoid,
    seed: int,
    seconds: float,
    sways: Sequence[tuple[float, float, float]] = SWAYS,
) -> tuple[RobotWithErrors, list[Walk]]:
    """Logs of several walks and sways, each at most some seconds long; the last is held out."""
    humanoid = HUMANOIDS[what] if isinstance(what, str) else what
    with tempfile.TemporaryDirectory() as folder:
        return _record(humanoid, _load(humanoid, folder), seed, seconds, sways)


def _record(
    humanoid: Humanoid,
    biped: WalkingBiped,
    seed: int,
    seconds: float,
    sways: Sequence[tuple[float, float, float]],
) -> tuple[RobotWithErrors, list[Walk]]:
    robot = draw_robot(biped.model, biped.config, seed, humanoid.wrong)
    rng = np.random.default_rng([seed, 4])
    limits = humanoid.drives * robot.believed.effort_limits
    names = robot.believed.joint_names
    robot = replace(
        robot,
        # TALOS's own IMU is above the joints of the torso, which the method does not know
        config=replace(robot.config, imu_link=robot.believed.root_link),
        coulomb=rng.uniform(*FRICTION, len(limits)) * limits,
        viscous=rng.uniform(*VISCOUS, len(limits)) * limits,
        armature=robot.config.servo.armature(names)
        * rng.uniform(0.8, 1.2, len(limits)),
        wrong=replace(humanoid.wrong, bias=BIAS * limits, torque_noise=BIAS * limits),
    )
    # the walk is of a controller that knows how the robot is, so that it does not fall
    biped = replace(biped, biped=Biped.from_config(robot.true, biped.config))
    errors, walks = Errors(robot, seed), []
    start = biped.biped.posture
    for number, gait in enumerate((*humanoid.walks[:-1], *sways, humanoid.walks[-1])):
        if len(gait) == 3:
            time, q = _sway(
                humanoid.legs, names, start, gait
            )  # from where a walk begins
        else:
            length, side, turn, step_time, both, steps = gait
            request = WalkRequest(
                steps=int(steps),
                step_length=length,
                side_step=side,
                turn=turn,
                step_time=step_time,
                double_support=both,
            )
            plan = make_plan(
                request, biped.biped, find_stance(biped.biped, biped.biped.posture)
            )
            joints = walk_by("refined", biped, plan).joints
            time, q, start = joints.time, joints.q, joints.q[0]
        readings = _play(robot, time, q, number)
        truth = as_log(robot, readings[: round(seconds / PERIOD)])
        walks.append(Walk(errors.read(truth[0]), *truth))
    return robot, walks


def _sway(
    legs: Sequence[str], names: Sequence[str], start: Array, rates: Sequence[float]
) -> tuple[Array, Array]:
    """Positions (N, n) of a robot on both feet, that stay where they are, and their times (N,)."""
    time = PERIOD * np.arange(round(12.0 / PERIOD))
    lean, bend, sway = np.sin(2.0 * np.pi * np.outer(rates, time)) * [
        [LEAN],
        [BEND],
        [SWAY],
    ]
    change = crouched(legs, names, np.column_stack([lean, BEND + bend, sway]))
    return time, start + np.minimum(1.0, 0.5 * time)[:, None] * change


def crouched(legs: Sequence[str], names: Sequence[str], by: Array) -> Array:
    """Changes (N, n) of joints that lean, bend the knees and sway by (N, 3) rad on flat feet."""
    lean, bend, sway = by.T
    # hip roll and pitch, knee, ankle pitch and roll: the CoM stays over the feet
    moved = (-sway, -1.22 * lean - 0.5 * bend, bend, 0.22 * lean - 0.5 * bend, sway)
    q = np.zeros((len(by), len(names)))
    for j, name in enumerate(names):
        q[:, j] = sum(
            a for part, a in zip(legs, moved, strict=True) if re.search(part, name)
        )
    return q


def _play(robot: RobotWithErrors, time: Array, q: Array, number: int) -> list[Reading]:
    config = starting_at(robot.config, robot.believed, q[0])
    world = robot_world(replace(robot, config=config))
    world.mj.geom_conaffinity[
        :
    ] &= ~ROBOT_BIT  # arms that touch the trunk: forces nobody measures
    simulation, readings = Simulation(world, PERIOD), []
    names = robot.believed.joint_names
    swing = np.array(
        [next((a for key, a in SWINGS.items() if key in name), 0.0) for name in names]
    )
    rates = 2.0 * np.pi * (0.4 + 0.1 * number + 0.05 * np.arange(len(names)))
    times = PERIOD * np.arange(1, round(time[-1] / PERIOD))
    target = np.column_stack([np.interp(times, time, column) for column in q.T])
    target += np.minimum(1.0, times)[:, None] * swing * np.sin(np.outer(times, rates))
    for row, speed in zip(target, np.gradient(target, PERIOD, axis=0), strict=True):
        readings.append(simulation.advance())
        if readings[-1].gravity[2] > -0.9:  # open loop, it may fall at its last step
            return readings[: -round(1.0 / PERIOD)]
        simulation.lead(row, speed)
    return readings
