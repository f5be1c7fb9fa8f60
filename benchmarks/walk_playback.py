"""Walks in the physics: joint angles are played back, with no feedback, and what happens is kept.

The servos follow the targets; a servo that brakes its joint's speed, not the error's, comes late
by damping / stiffness. The targets are led by that time, as a drive with velocity feed-forward
does it automatically.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.transform import Rotation

from com_demos.walk_record import WalkRecord, has_fallen
from com_model import RobotConfig, RobotModel, link_pose
from com_model.arrays import FrozenArrays, as_array
from com_model.joint_path import JointPath
from com_model.robot_config import ground_wrenches
from com_simulation.exceptions import CommandError, DivergedError
from com_simulation.physics.motion import Trajectory
from com_simulation.physics.sensors import Reading
from com_simulation.physics.simulation import Simulation
from com_simulation.physics.standing import leading_trajectory
from com_simulation.physics.world_builder import World

Array = NDArray[np.float64]

POINT_TIME = 0.01  # s, between two readings
LEAST_LOAD = 0.02  # fraction of the weight, under which the feet's sensors show no ZMP
_UP = 2


@dataclass(frozen=True, eq=False)
class WalkTargets(FrozenArrays):
    """What the joints are to do; angles by any planner.

    Attributes:
        time: (N,) s, rising, from 0.
        q: (N, n) rad or m, all joints of the robot.
        qd: (N, n) rad/s or m/s.
        root: (3,) m, where the plan has the root link's origin at the start.
        R_root: (3, 3) how it is turned there; of that, only the direction counts.
    """

    time: Array
    q: Array
    qd: Array
    root: Array
    R_root: Array = field(default_factory=lambda: np.eye(3))


def starting_at(config: RobotConfig, model: RobotModel, q: ArrayLike) -> RobotConfig:
    """The configuration with joint positions q (n,) as the posture in which the world is built.

    Raises:
        ShapeError: q has another shape.
    """
    values = model.check_q(q).tolist()
    return replace(config, posture=dict(zip(model.joint_names, values, strict=True)))


def with_soles(
    config: RobotConfig, half_length: float, half_width: float
) -> RobotConfig:
    """The configuration with rectangular soles about their frames, for build_world's sole_balls.

    Args:
        config: Of a robot whose feet are flat.
        half_length: m, along x.
        half_width: m, along y.
    """
    signs = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, -1.0], [-1.0, 1.0]])
    corners = signs * [half_length, half_width]
    return replace(
        config, feet=tuple(replace(foot, corners=corners) for foot in config.feet)
    )


def play(world: World, targets: WalkTargets, rest: float = 1.0) -> WalkRecord:
    """Plays a walk back.

    Args:
        world: The robot, standing in the first posture (see starting_at).
        targets: The joints' angles.
        rest: s, after the last point.

    Raises:
        CommandError: A target is not a finite number, or times do not rise.
    """
    simulation = Simulation(world, POINT_TIME)
    simulation.follow(_trajectory(world, targets))
    count = round((float(targets.time[-1]) + rest) / simulation.sample_period) + 1
    readings: list[Reading] = []
    fell_at = np.nan
    try:
        while len(readings) < count:
            readings.append(simulation.advance())
            if _has_fallen(readings[0], readings[-1]):
                fell_at = readings[-1].time
                break
    except DivergedError as error:
        fell_at = error.time
    return _record(readings, targets, fell_at)


def measured_zmp(world: World, record: WalkRecord) -> Array:
    """The zero moment point (M, 3) m by the feet's sensors, on flat ground at height 0.

    With F and N the sum of the feet's forces and of their moments about the world's origin,
    p_x = -N_y / F_z, p_y = N_x / F_z. Of one flat foot, d below its sensor, that is
    p_x = (-M_y - F_x d) / F_z, p_y = (M_x - F_y d) / F_z from the sensor: [CCGD] eqs 15 and 16, in
    axes with z upwards. NaN while the feet carry next to nothing.
    """
    total = np.zeros((len(record.time), 2, 3))
    wrenches = ground_wrenches(record.wrenches, world.feet)
    for i, foot in enumerate(world.feet):
        for k, q in enumerate(record.position):
            R_root, p_root = record.R_root[k], record.root[k]
            R, p = link_pose(world.robot, q, foot.wrench_frame, R_root, p_root)
            force, moment = wrenches[k, i].reshape(2, 3) @ R.T
            total[k, 0] += force
            total[k, 1] += moment + np.cross(p, force)
    force, moment = total[:, 0], total[:, 1]
    weight = float(np.linalg.norm(world.mj.opt.gravity)) * world.robot.mass
    load = np.where(force[:, _UP] > LEAST_LOAD * weight, force[:, _UP], np.nan)
    zmp = np.column_stack(
        (-moment[:, 1] / load, moment[:, 0] / load, np.zeros(len(load)))
    )
    zmp[np.isnan(load)] = np.nan
    return zmp


def _trajectory(world: World, targets: WalkTargets) -> Trajectory:
    n = world.robot.n_joints
    time = as_array("time", targets.time, (None,))
    q = as_array("q", targets.q, (len(time), n))
    qd = as_array("qd", targets.qd, (len(time), n))
    finite = all(np.isfinite(values).all() for values in (time, q, qd))
    if not (finite and len(time) >= 2 and (np.diff(time) > 0.0).all()):
        raise CommandError(
            "a walk needs two points or more, finite numbers, and times that rise"
        )
    return leading_trajectory(world, JointPath(time, q, qd))


def _has_fallen(first: Reading, now: Reading) -> bool:
    start, end = (
        (
            Rotation.from_quat(reading.root_orientation).as_matrix(),
            reading.root_position,
        )
        for reading in (first, now)
    )
    return has_fallen(*start, *end)


def _record(
    readings: Sequence[Reading], targets: WalkTargets, fell_at: float
) -> WalkRecord:
    root = np.array([reading.root_position for reading in readings])
    R = Rotation.from_quat(
        [reading.root_orientation for reading in readings]
    ).as_matrix()
    turn = level(targets.R_root @ R[0].T)
    R, root = turn @ R, root @ turn.T
    root[:, :_UP] += targets.root[:_UP] - root[0, :_UP]
    com = np.array([reading.com for reading in readings])
    return WalkRecord(
        time=np.array([reading.time for reading in readings]),
        position=np.array([reading.position for reading in readings]),
        com=root + np.einsum("nij,nj->ni", R, com),
        root=root,
        R_root=R,
        wrenches=np.array([reading.wrenches for reading in readings]),
        fell_at=fell_at,
    )


def level(R: Array) -> Array:
    """The turn about the vertical (3, 3) that is in a rotation."""
    length = np.hypot(R[0, 0], R[1, 0])
    c, s = R[0, 0] / length, R[1, 0] / length
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
