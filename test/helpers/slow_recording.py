"""Exact recordings of a robot that sways on all feet or hangs, with known errors."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.transform import Rotation

from com_bags import WalkLog
from com_control.motion.sway_tour import plan_hang, plan_sway
from com_model import Frame, RobotConfig, RobotModel, Sesc
from com_model.dynamics import GRAVITY
from com_model.dynamics.inverse_dynamics import Dynamics
from com_model.dynamics.link_frames import LinkFrames
from com_model.joint_path import JointPath
from com_model.robots import load_robot
from com_model.urdf.editing import Inertial, edit_inertials

RATE, FRICTION_SPEED = 60.0, 0.003  # Hz, rad/s


@dataclass(frozen=True, eq=False)
class Errors:
    """What is wrong; arrays are (n,) or (3,)."""

    gain: np.ndarray
    bias: np.ndarray
    zero: np.ndarray
    coulomb: np.ndarray
    load: np.ndarray
    mounting: np.ndarray
    slope: np.ndarray
    give: float


@dataclass(frozen=True, eq=False)
class SlowRobot:
    """A robot as its URDF has it, and as it is."""

    believed: RobotModel
    true: RobotModel
    config: RobotConfig
    rope: Frame
    errors: Errors


def make_robot(seed: int, size: float = 1.0, name: str = "hoap3") -> SlowRobot:
    """Draw a robot; size: factor of all errors. Feet that are balls become points."""
    model, config = load_robot(name)
    points = tuple(replace(foot, radius=0.0) for foot in config.feet)
    config = replace(config, feet=points)
    model, rng = config.attach(model), np.random.default_rng(seed)
    config = replace(config, imu_link=model.root_link)
    changed = {}
    heavy = model.link_names[int(np.argmax(model.link_masses))]
    for i in np.flatnonzero(model.link_masses > 0.0):
        link = model.link_names[i]
        com = model.link_coms[i] + size * rng.normal(
            0.0, 0.012 if link == heavy else 0.002, 3
        )
        factor = 1.0 + size * rng.normal(0.0, 0.03)
        changed[link] = Inertial(
            factor * model.link_masses[i], com, factor * model.link_inertias[i]
        )
    n, unit = model.n_joints, model.mass * GRAVITY * 0.02  # N m
    errors = Errors(
        gain=1.0 + size * rng.normal(0.0, 0.02, n),
        bias=size * 0.02 * unit * rng.normal(size=n),
        zero=size * np.deg2rad(0.3) * rng.normal(size=n),
        coulomb=size * unit * rng.uniform(0.05, 0.2, n),
        load=size * rng.uniform(0.0, 0.04, n),
        mounting=size * np.deg2rad(0.5) * rng.normal(size=3),
        slope=size * np.deg2rad([0.3, -0.2]),
        give=size * 1e-3 / unit,
    )
    true = RobotModel.from_urdf(edit_inertials(model.xml, changed), model.frames)
    rope = Frame("rope", heavy, (0.005, -0.003, 0.15))
    return SlowRobot(model, true, config, rope, errors)


def sway(
    robot: SlowRobot,
    seconds: float,
    seed: int = 1,
    raised: tuple[str, float] | None = None,
) -> WalkLog:
    """A log of a sway on all feet.

    raised: joint and angle by which the second of two soles stands on its rear edge.
    """
    q, qd, qdd, time = _motion(
        plan_sway(robot.true, robot.config, seconds, seed).motion
    )
    feet = robot.config.feet
    points = [foot.center for foot in feet]
    if raised:
        q[:, robot.true.joint_names.index(raised[0])] += raised[1]
        points[1] = np.array([feet[1].corners[:, 0].min(), 0.0, 0.0])
    frames = LinkFrames(robot.true, [foot.frame for foot in feet], points)
    moved = [frames.motions(row) for row in q]
    # gravity in the axes of the ground, those of the first sole, which is a slope
    up = np.array([*robot.errors.slope, 1.0])
    if len(feet[0].corners):
        size, R_root = 6, np.array([m.R[0].T for m in moved])  # of the root
    else:
        size, middle = 3, moved[0].p.mean(axis=0)
        to = [(moved[0].p - middle, m.p - m.p.mean(axis=0)) for m in moved]
        R_root = np.array([Rotation.align_vectors(*v)[0].as_matrix() for v in to])
    place = np.array([-R @ m.p[0] for R, m in zip(R_root, moved, strict=True)])
    force, omega, turn = _root(R_root, place, GRAVITY * up / np.linalg.norm(up))
    tau, dynamics = np.empty_like(q), Dynamics(robot.true)
    for k, m in enumerate(moved):
        state, root = (q[k], qd[k], qdd[k]), (omega[k], turn[k], force[k])
        wrench, needed = dynamics.inverse_dynamics(state, root)
        parts = np.tile(np.eye(6), (len(feet), 1, 1))
        parts[:, :3, 3:] = [-np.cross(np.eye(3), p) for p in m.p]
        held = np.ones((len(feet), size), dtype=bool)
        if raised:
            held[1, 3:] = False
        chosen = held.ravel()
        w = np.linalg.pinv(np.concatenate(parts[:, :size])[chosen].T) @ wrench
        tau[k] = needed - np.concatenate(m.jacobian[:, :size])[chosen].T @ w
    return _read(robot, time, (q, qd, tau), (omega, force))


def hang(robot: SlowRobot, seconds: float, efforts: bool = True) -> WalkLog:
    """A log of a robot that hangs from its rope, moving slowly enough to hang plumb."""
    q, qd, _, time = _motion(plan_hang(robot.true, robot.config, seconds).motion)
    frames, sesc = (
        LinkFrames(robot.true, [robot.rope.link], [robot.rope.xyz]),
        Sesc(robot.true),
    )
    points = [frames.poses(row)[1][0] for row in q]
    ups = np.array([p - sesc.com(row) for p, row in zip(points, q, strict=True)])
    ups /= np.linalg.norm(ups, axis=1, keepdims=True)
    force, zero = GRAVITY * ups, np.zeros_like(ups)
    tau, dynamics, still = np.empty_like(q), Dynamics(robot.true), np.zeros(q.shape[1])
    for k in range(len(q)):
        state, root = (q[k], still, still), (zero[k], zero[k], force[k])
        F, needed = dynamics.inverse_dynamics(state, root)
        J = frames.motions(q[k]).jacobian[0, :3]
        tau[k] = needed - J.T @ F[:3]
    log = _read(robot, time, (q, qd, tau), (zero, force))
    if not efforts:
        log.effort[:] = np.nan
    return log


def _motion(motion):
    time = np.arange(0.0, motion.times[-1], 1.0 / RATE)
    path: JointPath = motion.path
    q = np.array([path.sample(t)[0] for t in time])
    qd = np.gradient(q, time, axis=0)
    return q, qd, np.gradient(qd, time, axis=0), time


def _root(R, place, gravity):
    """Specific force, angular velocity and acceleration (N, 3) of the root, in its axes."""
    step = 1.0 / RATE
    spin = Rotation.from_matrix(R[:-2].transpose(0, 2, 1) @ R[2:]).as_rotvec() / (
        2.0 * step
    )
    omega = np.concatenate([spin[:1], spin, spin[-1:]])
    rise = np.gradient(np.gradient(place, step, axis=0), step, axis=0)
    force = np.einsum("kji,kj->ki", R, rise + gravity)
    return force, omega, np.gradient(omega, step, axis=0)


def _read(robot, time, joints, imu):
    (q, qd, tau), (omega, force), errors = joints, imu, robot.errors
    sign = np.tanh(qd / FRICTION_SPEED)
    motor = (tau + errors.coulomb * sign) / (1.0 - errors.load * sign * np.sign(tau))
    turn = Rotation.from_rotvec(errors.mounting).inv()
    return WalkLog(
        time,
        q + errors.zero + errors.give * motor,
        None,
        errors.gain * motor + errors.bias,
        turn.apply(omega),
        turn.apply(force),
        None,
    )
