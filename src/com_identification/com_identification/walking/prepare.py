"""What the rows of a walk need, by the size of robot and torques: the same offline and live."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from com_bags import WalkLog
from com_identification.walking import acceptance, rows
from com_identification.walking.kernels import Limbs, Noise
from com_identification.walking.log import Conditioned, condition
from com_identification.walking.unknowns import Unknowns, make_unknowns
from com_model import RobotConfig, RobotModel
from com_model.arrays import Array, Flags
from com_model.dynamics.kinematics import body_poses


@dataclass(frozen=True, eq=False)
class Prepared:
    """Recordings of a robot that walks, and its unknowns about the URDF."""

    model: RobotModel  # with the frames of its feet
    limbs: Limbs
    measured: Flags  # (n,) joints with torques
    data: list[Conditioned]
    noise: Noise
    unknowns: Unknowns
    posture: Array  # (n,) mean of the walk
    leg_length: float  # m, from the first joint to the foot's link, mean


def prepare(
    logs: Sequence[WalkLog],
    model: RobotModel,
    config: RobotConfig,
    least_time: float = acceptance.LEAST_TIME,
) -> Prepared:
    """Conditions recordings, of least_time s in all; a WalkError says why they are no use."""
    model = config.attach(model)
    limbs = rows.find_limbs(model, config)
    measured = acceptance.measured_joints(model, limbs, logs)
    imu = config.imu_link or model.root_link
    data = [condition(log, model, imu) for log in logs]
    acceptance.check_motion(data, limbs, least_time)
    motions = [each.motion for each in data]
    effort = np.sqrt(np.concatenate([m.tau**2 for m in motions]).mean(axis=0))
    posture = np.concatenate([m.q for m in motions]).mean(axis=0)
    _, p = body_poses(model.bodies, posture)
    length = float(np.linalg.norm(p[limbs.body] - p[limbs.path[:, 0]], axis=1).mean())
    load = rows.drive_sizes(model.effort_limits, effort)
    noise = rows.noise_of(model.mass, length, load)
    unknowns = make_unknowns(model, config.servo.armature(model.joint_names), load, measured)
    return Prepared(model, limbs, measured, data, noise, unknowns, posture, length)
