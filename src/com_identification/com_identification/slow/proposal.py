"""What a slow motion would determine, before anybody moves: rows of a motion that is only planned.

The URDF's robot moves exactly as planned; feet stay where they are, or the robot hangs plumb from
its rope. The covariance of its unknowns does not need readings, only postures, torques and their
directions.
"""

from dataclasses import replace

import numpy as np
from scipy.spatial.transform import Rotation

from com_bags import WalkLog
from com_identification.slow.rows import standing_feet
from com_identification.slow.system import TEMPERING, make_system
from com_identification.walking.advice import com_std
from com_model import Frame, RobotConfig, RobotModel, Sesc
from com_model.arrays import Array
from com_model.dynamics import GRAVITY
from com_model.dynamics.inverse_dynamics import Dynamics
from com_model.dynamics.link_frames import LinkFrames
from com_model.geometry.rotations import skew


def predict_log(
    model: RobotModel,
    config: RobotConfig,
    time: Array,
    q: Array,
    rope: Frame | None = None,
) -> WalkLog:
    """Makes the readings of a robot that moves as planned.

    Args:
        model: the robot, n joints.
        config: its feet.
        time: (N,) s, rising.
        q: (N, n) rad or m.
        rope: link and point that it hangs from; None: it stands on all feet.
    """
    model = config.attach(model)
    rate = 60.0  # Hz
    grid = np.arange(time[0], time[-1], 1.0 / rate)
    rows = np.column_stack([np.interp(grid, time, column) for column in q.T])
    qd = np.gradient(rows, grid, axis=0)
    if rope is None:
        _, p, J, R = standing_feet(model, config, rows)
        place = -np.einsum("kji,kj->ki", R, p[:, 0])
        rise = np.gradient(np.gradient(place, grid, axis=0), grid, axis=0)
        force = np.einsum("kij,kj->ki", R, rise + np.array([0.0, 0.0, GRAVITY]))
        turns = (
            Rotation.from_matrix(R[:-1] @ R[1:].transpose(0, 2, 1)).as_rotvec() * rate
        )
        omega = np.concatenate([turns, turns[-1:]])
        size = 6 if all(len(foot.corners) for foot in config.feet) else 3
    else:
        frames, sesc = LinkFrames(model, [rope.link], [rope.xyz]), Sesc(model)
        moved, size = [frames.motions(row) for row in rows], 3
        p, J = np.array([m.p for m in moved]), np.array([m.jacobian for m in moved])
        up = np.array([at[0] - sesc.com(row) for at, row in zip(p, rows, strict=True)])
        force = GRAVITY * up / np.linalg.norm(up, axis=1, keepdims=True)
        omega = np.zeros_like(force)
    tau, dynamics, still = (
        np.empty_like(rows),
        Dynamics(model),
        np.zeros(model.n_joints),
    )
    for k in range(len(rows)):
        root = np.zeros(3), np.zeros(3), force[k]
        wrench, needed = dynamics.inverse_dynamics((rows[k], still, still), root)
        parts = np.tile(np.eye(6), (p.shape[1], 1, 1))
        parts[:, 3:, :3] = [skew(at) for at in p[k]]
        shares = np.linalg.pinv(np.hstack(list(parts[:, :, :size]))) @ wrench
        tau[k] = needed - np.concatenate(J[k, :, :size]).T @ shares
    return WalkLog(grid, rows, qd, tau, omega, force, None)


def predict_com_std(
    model: RobotModel,
    config: RobotConfig,
    time: Array,
    q: Array,
    rope: Frame | None = None,
) -> tuple[Array, Array]:
    """Predicts how well a motion determines the CoM of the whole robot.

    Args:
        model: the robot, n joints.
        config: its feet, drives and nominal posture.
        time: (N,) s, rising.
        q: (N, n) rad or m.
        rope: link and point that it hangs from; None: it stands on all feet.

    Returns:
        Standard deviations (3,) m in the root link's axes, with the motion and without.

    Raises:
        WalkError: the motion is too short, or the robot has no such feet.
    """
    log = predict_log(model, config, time, q, rope)
    own = replace(config, imu_link=model.root_link)
    system = make_system([log], [rope is not None], model, own, rope)
    u = system.unknowns
    made = system.rows(u.mean)
    D = u.jacobian(u.mean) * u.std
    A = made.X @ D
    C = np.linalg.inv(A.T @ A / TEMPERING + np.eye(len(u.std))) * np.outer(u.std, u.std)
    posture = own.nominal_posture(system.robot.model)
    size = len(system.base.std)
    after = com_std(system.base, system.base.mean, C[:size, :size], posture)
    before = com_std(
        system.base, system.base.mean, np.diag(system.base.std**2), posture
    )
    return after, before
