"""A robot that stands on all feet and moves its trunk, slowly: what its sensors read."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.transform import Rotation

from com_model import RobotConfig, RobotModel
from com_model.dynamics.inverse_dynamics import Dynamics
from com_model.dynamics.link_frames import LinkFrames
from com_model.robots import load_robot
from com_simulation.physics.sway import PlantedFeet

RATE, SECONDS = 50.0, 12.0


@dataclass(frozen=True, eq=False)
class Standing:
    """Readings at N instants: rad, rad/s, N m, rad/s, m/s^2, quaternion x, y, z, w."""

    model: RobotModel
    config: RobotConfig
    time: np.ndarray
    position: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray
    gyro: np.ndarray
    force: np.ndarray
    turn: np.ndarray


def record_standing(name: str, size: float = 1.0) -> Standing:
    """Record it, with noise; the IMU is in the root link's axes.

    Args:
        name: Of a robot of the suite.
        size: Factor of the motion.
    """
    model, config = load_robot(name)
    config = replace(config, imu_link=None)
    model, rng = config.attach(model), np.random.default_rng(4)
    posture = config.nominal_posture(model)
    frames = LinkFrames(
        model, [f.frame for f in config.feet], [f.center for f in config.feet]
    )
    feet, count = (
        PlantedFeet(model, config.feet, posture),
        round(RATE * SECONDS) + 1,
    )
    time = np.arange(count) / RATE
    height = -frames.poses(posture)[1][:, 2].mean()
    rates, phases = rng.uniform(1.0, 2.2, 6), rng.uniform(0.0, 6.0, 6)
    sizes = np.array([0.06, 0.06, 0.06, 0.08, 0.08, 0.08]) * [*[height] * 3, 1, 1, 1]
    waves = size * sizes * (np.sin(rates * time[:, None] + phases) - np.sin(phases))
    # the feet are level where the trunk is, in the middle of the motion
    turns = Rotation.from_rotvec(waves[:, 3:])
    q, guess = np.empty((count, model.n_joints)), posture
    for k, R in enumerate(turns.as_matrix()):
        guess = q[k] = feet.below(guess, R, waves[k, :3] * [1, 1, 0.4])
    velocity = np.gradient(q, 1.0 / RATE, axis=0)
    omega = (turns[:-1].inv() * turns[1:]).as_rotvec() * RATE
    gyro = np.vstack((omega[:1], 0.5 * (omega[1:] + omega[:-1]), omega[-1:]))
    up = turns.inv().apply([0.0, 0.0, 9.81])
    effort, dynamics, still = (
        np.empty_like(q),
        Dynamics(model),
        np.zeros(model.n_joints),
    )
    for k in range(count):
        root = np.array((np.zeros(3), np.zeros(3), up[k]))
        wrench, torque = dynamics.inverse_dynamics(np.array((q[k], still, still)), root)
        _, p, J = frames.motions(q[k])
        blocks, parts = [], []
        for i, foot in enumerate(config.feet):
            size = 6 if len(foot.corners) else 3
            to_root = np.eye(6)
            to_root[3:, :3] = np.cross(p[i], np.eye(3)).T
            blocks.append(to_root[:, :size])
            parts.append(J[i, :size])
        A = np.hstack(blocks)
        effort[k] = torque - np.vstack(parts).T @ (np.linalg.pinv(A) @ wrench)
    noise = rng.standard_normal
    return Standing(
        model,
        config,
        time,
        q + 3e-4 * noise(q.shape),
        velocity + 0.02 * noise(q.shape),
        effort + 0.02 * np.abs(effort).max() * noise(q.shape),
        gyro + 0.01 + 0.005 * noise(gyro.shape),
        up + 0.1 + 0.05 * noise(up.shape),
        turns.as_quat(),
    )
