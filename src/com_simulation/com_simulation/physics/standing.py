"""Whether a robot stands and walks by its servos alone, on flat stiff ground."""

import os
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from com_model import RobotConfig, RobotModel
from com_model.arrays import Array
from com_model.joint_path import JointPath
from com_model.text import listing
from com_simulation.exceptions import DivergedError
from com_simulation.physics.motion import Trajectory
from com_simulation.physics.sensors import Reading
from com_simulation.physics.simulation import Simulation
from com_simulation.physics.world_builder import World, build_world

FALLEN = 45.0  # degrees, from which on it is not worth looking


class Standing(NamedTuple):
    """How a robot stood.

    Attributes:
        tilt: degrees, largest angle between the root link and its start.
        problem: Why it does not stand; "" where it does.
    """

    tilt: float
    problem: str


def try_standing(
    model: RobotModel,
    config: RobotConfig,
    urdf_path: str | os.PathLike[str] | None = None,
    seconds: float = 2.0,
    up: Array | None = None,
) -> Standing:
    """Lets a robot stand in simulation, without feedback but its servos'.

    Args:
        model: The robot.
        config: Its feet, nominal posture and servos.
        urdf_path: File of the URDF, to which names of meshes may be relative.
        seconds: How long.
        up: (3,) unit vector in the root link's axes that points upwards where it stands; None:
            not known.

    Returns:
        Its tilt, and why it does not stand: it lies from the start (FALLEN), falls (a tilt above
        5 degrees), sinks down (by a tenth of the CoM's height), or bodies that are in no leg are on
        the ground.

    Raises:
        ConfigError: The configuration belongs to another robot.
        WorldError: MuJoCo rejects the robot.
        DivergedError: The simulation diverges.
    """
    model = config.attach(model)
    # s, between readings
    simulation = Simulation(build_world(model, config, urdf_path=urdf_path), 0.01)
    simulation.command(simulation.world.posture)
    reading = simulation.advance()
    down, height, tilt = reading.gravity, _com_height(reading), 0.0
    lean = 0.0 if up is None else _degrees_between(-down, up)
    while reading.time < seconds and tilt < FALLEN:
        reading = simulation.advance()
        tilt = max(tilt, _degrees_between(reading.gravity, down))
    sink = 1.0 - _com_height(reading) / height
    legs = {
        b
        for foot in config.feet
        for b in model.bodies.path_to(
            int(model.bodies.body_of_link[model.link_index(foot.frame)])
        )
    }
    beyond = {b for leg in legs for b in range(leg, model.bodies.subtree_end[leg])}
    others = {number - 1 for number in simulation.grounded()} - beyond
    problem = ""
    # Robots that stand are tilted by a servo's sag by 2.2 degrees at most, and sink by 2 %.
    if lean > FALLEN:
        problem = f"it lies: with its soles on the ground the root link leans by {lean:.0f} degrees"
    elif tilt > 5.0:
        problem = f"it falls: it tilts by {tilt:.0f} degrees in {reading.time:.1f} s"
    elif sink > 0.1:
        problem = f"it sinks down by {100.0 * sink:.0f} % of its CoM's height"
    elif others:
        names = listing(model.bodies.names[b] for b in sorted(others))
        problem = f"it lies: {names} on the ground"
    return Standing(tilt, problem)


def time_of_fall(
    model: RobotModel,
    config: RobotConfig,
    path: JointPath,
    urdf_path: str | os.PathLike[str] | None = None,
) -> float:
    """Plays a walk back in simulation, without feedback but the servos'.

    Args:
        model: The robot.
        config: Its feet and servos.
        path: The walk's joint targets; at its first point the robot stands.
        urdf_path: File of the URDF, to which names of meshes may be relative.

    Returns:
        s from the start of the walk, at which the root link is tilted by FALLEN; NaN where it is
        not until 1 s after the end.

    Raises:
        ConfigError: The configuration belongs to another robot.
        WorldError: MuJoCo rejects the robot.
    """
    first = dict(zip(model.joint_names, path.q[0].tolist(), strict=True))
    world = build_world(model, replace(config, posture=first), urdf_path=urdf_path)
    simulation = Simulation(world, 0.01)  # s, between readings
    simulation.follow(leading_trajectory(world, path))
    down, end = simulation.advance().gravity, float(path.time[-1]) + 1.0
    try:
        while simulation.time < end:
            if _degrees_between(simulation.advance().gravity, down) > FALLEN:
                return float(simulation.time)
    except DivergedError as error:
        return float(error.time)
    return float("nan")


def leading_trajectory(world: World, path: JointPath) -> Trajectory:
    """The trajectory to command so that the joints are where a path says.

    Servos that brake their joint's speed, not the error's, come late by damping / stiffness. The
    targets lead by that time, as those of a drive with velocity feed-forward do.

    Args:
        world: The robot with its servos.
        path: Where the joints are to be.
    """
    lag = world.servos.damping / world.servos.stiffness
    qdd = np.gradient(path.qd, path.time, axis=0)
    joints = np.arange(world.robot.n_joints)
    return Trajectory(joints, path.time, path.q + lag * path.qd, path.qd + lag * qdd)


def _degrees_between(a: Array, b: Array) -> float:
    return float(np.degrees(np.arccos(np.clip(a @ b, -1.0, 1.0))))


def _com_height(reading: Reading) -> float:
    """Height of the CoM above the world's origin, where the flat ground is, m."""
    R = Rotation.from_quat(reading.root_orientation)
    return float((R.apply(reading.com) + reading.root_position)[2])
