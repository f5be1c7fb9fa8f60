"""TALOS walks and sways in the simulator, open loop, and is not as its URDF says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from walk_playback import starting_at
from walk_scenarios import load_robot as load_biped
from walk_scenarios import walk_by
from walking_lab import PERIOD, Errors, Robot, Walk, Wrong, as_log, make_robot, robot_world

from com_control.walking.biped import Biped, find_stance
from com_control.walking.walker import WalkRequest, make_plan
from com_simulation.physics.sensors import Reading
from com_simulation.physics.simulation import Simulation
from com_simulation.physics.spec import ROBOT_BIT

Array = NDArray[np.float64]

HUMANOID = "talos"
WRONG = Wrong(payload=4.0, payload_box=(0.1, 0.1, 0.15))
FRICTION, VISCOUS, BIAS = (0.01, 0.03), (0.001, 0.005), 0.005  # of the drives' torque limits
WALKS = (
    WalkRequest(steps=6, step_length=0.2, step_time=0.8, double_support=0.25),
    WalkRequest(steps=6, step_length=-0.12, step_time=0.7, double_support=0.25),
    WalkRequest(steps=6, step_length=0.0, side_step=0.04, step_time=0.9, double_support=0.3),
    WalkRequest(steps=6, step_length=0.1, turn=0.08, step_time=0.9, double_support=0.3),
    WalkRequest(steps=8, step_length=0.1, step_time=0.6, double_support=0.2),
)
SWAYS = ((0.25, 0.45, 0.35), (0.35, 0.25, 0.45))  # Hz: the trunk leans, knees bend, the robot sways
LEAN, BEND, SWAY = 0.17, 0.15, 0.03  # rad
HUMANOID_GAITS: tuple[WalkRequest | tuple[float, float, float], ...] = (*WALKS, *SWAYS)
SWINGS = {"torso": 0.03, "arm": 0.12, "head": 0.15}  # rad, amplitudes of joints with that name


def record_humanoid(seed: int, seconds: float) -> tuple[Robot, list[Walk]]:
    """Logs of several walks, arms and torso swinging; each at most some seconds long."""
    robot, rng = make_robot("talos", seed, WRONG), np.random.default_rng([seed, 4])
    limits, names = robot.believed.effort_limits, robot.believed.joint_names
    robot = replace(
        robot,
        # its own IMU is above the joints of the torso, which the method does not know
        config=replace(robot.config, imu_link=robot.believed.root_link),
        coulomb=rng.uniform(*FRICTION, len(limits)) * limits,
        viscous=rng.uniform(*VISCOUS, len(limits)) * limits,
        armature=robot.config.servo.armature(names) * rng.uniform(0.8, 1.2, len(limits)),
        wrong=replace(WRONG, bias=BIAS * limits, torque_noise=BIAS * limits),
    )
    biped = load_biped("talos", "talos_data/robots/talos_reduced.urdf")
    # the walk is of a controller that knows how the robot is, so that it does not fall
    biped = replace(biped, biped=Biped.from_config(robot.true, biped.config))
    errors, walks = Errors(robot, seed), []
    for number, gait in enumerate(HUMANOID_GAITS):
        if isinstance(gait, WalkRequest):
            plan = make_plan(gait, biped.biped, find_stance(biped.biped, biped.biped.posture))
            joints = walk_by("refined", biped, plan).joints
            time, q = joints.time, joints.q
        else:
            time, q = _sway(names, q[0], gait)  # from where a walk begins
        readings = _play(robot, time, q, number)
        truth = as_log(robot, readings[: round(seconds / PERIOD)])
        walks.append(Walk(errors.read(truth[0]), *truth))
    return robot, walks


def _sway(
    names: Sequence[str], start: Array, rates: tuple[float, float, float]
) -> tuple[Array, Array]:
    """Positions (N, n) of a robot on both feet, that stay where they are, and their times (N,)."""
    time = PERIOD * np.arange(round(12.0 / PERIOD))
    lean, bend, sway = np.sin(2.0 * np.pi * np.outer(rates, time)) * [[LEAN], [BEND], [SWAY]]
    bend = BEND + bend
    moved = {
        "2": -sway,
        "3": -1.22 * lean - 0.5 * bend,
        "4": bend,
        "5": 0.22 * lean - 0.5 * bend,  # the CoM stays over the feet
        "6": sway,
    }
    grown, q = np.minimum(1.0, 0.5 * time), np.tile(start, (len(time), 1))
    for j, name in enumerate(names):
        if name.startswith("leg"):
            q[:, j] += grown * moved.get(name.split("_")[2], 0.0)
    return time, q


def _play(robot: Robot, time: Array, q: Array, number: int) -> list[Reading]:
    config = starting_at(robot.config, robot.believed, q[0])
    world = robot_world(replace(robot, config=config))
    world.mj.geom_conaffinity[:] &= ~ROBOT_BIT  # arms that touch the trunk: forces nobody measures
    simulation, readings = Simulation(world, PERIOD), []
    names = robot.believed.joint_names
    swing = np.array([next((a for key, a in SWINGS.items() if key in name), 0.0) for name in names])
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
