"""Slow motions that show a robot's masses: swaying on its feet, and hanging from a rope.

Every coordinate is c(t) = f(t) A (0.65 sin(2 pi t / T_1 + p_1) + 0.35 sin(2 pi t / T_2 + p_2)) with
two random periods and phases, faded in and out by f. Swaying: the CoM forwards and sideways, the
pelvis in height, roll, pitch and yaw, waist and arms; the legs follow with planted feet. The trunk
of a robot on four point feet moves likewise. Joints pass each posture in both directions, so that
sliding friction is known; the pelvis pitches, so that the height of the CoM is seen.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.spatial.transform import Rotation

from com_control.exceptions import MotionError
from com_control.motion.motion import Motion
from com_control.trot.leg_kinematics import LegKinematics
from com_control.walking.biped import Biped, sole_poses
from com_control.walking.com_ik import ComIk
from com_model import RobotConfig, RobotModel, Sesc, SupportPolygon
from com_model.arrays import Array, Indices
from com_model.geometry.support import sole_points
from com_model.joint_path import quintic
from com_model.legs import quadruped_legs

_RATE = 10.0  # Hz, of the points of a motion
_SWAY, _HANG = (7.0, 20.0), (8.0, 20.0)  # s, shortest and longest period
_TURN = np.deg2rad([5.0, 14.0, 7.0])  # roll, pitch, yaw of the pelvis
_TRUNK = np.deg2rad([12.0, 12.0, 8.0])  # of a quadruped's
_WAIST, _ARMS = np.deg2rad([10.0, 30.0])
# hanging: middle and amplitude by name of a joint, hip pitch forwards, knees
_HANG_ARMS, _HANG_WAIST, _HANG_LEGS = np.deg2rad([50.0, 11.0, 13.0])
_HANG_HIP, _HANG_KNEE = np.deg2rad([[-26.0, 37.0], [37.0, 32.0]])
_RANGE = 0.45  # of a joint's range, the largest amplitude


@dataclass(frozen=True, eq=False)
class SwayTour:
    """A motion that is safe for the URDF.

    Attributes:
        motion: of all joints.
        size: fraction of the usual amplitudes.
        margin: m, the CoM's least distance from the edge of the soles; NaN: it hangs.
    """

    motion: Motion
    size: float
    margin: float


def plan_sway(
    model: RobotModel, config: RobotConfig, seconds: float = 60.0, seed: int = 1
) -> SwayTour:
    """Plans a sway on all feet; it is made smaller until joints and feet allow it.

    Args:
        model: the robot, on two legs of five or six joints, or on four of two or three.
        config: its feet and nominal posture.
        seconds: s.
        seed: of periods and phases; another one gives an independent motion, for validation.

    Raises:
        MotionError: not even a small one is possible; says why.
        BipedError, ConfigError: it is no such robot.
    """
    if len(config.feet) == 4:
        make = partial(_sway_on_points, config.attach(model), config)
    else:
        make = partial(_sway_on_soles, Biped.from_config(model, config), config)
    smallest, reason = 0.3, ""  # fraction of the usual size
    for size in (1.0, 0.8, 0.6, 0.45, smallest):
        q, margin, reason = make(seconds, seed, size)
        if q is None:
            continue
        if margin >= 0.015:
            motion = Motion(model.joint_names, np.arange(len(q)) / _RATE, q)
            return SwayTour(motion, size, margin)
        reason = f"the CoM comes to {1e3 * margin:.0f} mm from the edge of the feet"
    raise MotionError(
        f"no sway is possible, not even {smallest:g} times the usual one: {reason}. Bend the "
        "knees in the posture of robot.yaml, feet apart"
    )


def plan_hang(
    model: RobotModel, config: RobotConfig, seconds: float = 60.0, seed: int = 1
) -> SwayTour:
    """Plans a motion of the limbs for a robot that hangs clear of the ground by one point.

    Args:
        model: the robot.
        config: its nominal posture and joint groups.
        seconds: s.
        seed: of periods and phases.
    """
    biped = Biped.from_config(model, config)
    rng = np.random.default_rng([seed, 2])
    posture = biped.posture.copy()
    amplitude = _upper_body(biped, _HANG_WAIST, _HANG_ARMS)
    for leg in biped.legs:
        pitch, knee = _flexion(biped, leg.joints)
        amplitude[leg.joints] = _HANG_LEGS
        for joint, (middle, size) in ((pitch, _HANG_HIP), (knee, _HANG_KNEE)):
            posture[joint], amplitude[joint] = (
                np.sign(biped.posture[joint]) * abs(middle),
                size,
            )
    lower, upper = model.lower, model.upper
    room = np.nan_to_num(upper - lower, posinf=2 * np.pi)
    amplitude = np.minimum(amplitude, _RANGE * room)
    posture = np.clip(
        posture, lower + amplitude + 0.05 * room, upper - amplitude - 0.05 * room
    )
    time = np.arange(0.0, seconds, 1.0 / _RATE)
    fade = _faded(time)[:, None]
    waves = np.column_stack([_waves(time, rng, _HANG) for _ in amplitude])
    q = biped.posture + fade * (posture - biped.posture + amplitude * waves)
    return SwayTour(Motion(model.joint_names, time, q), 1.0, np.nan)


def _sway_on_points(
    model: RobotModel, config: RobotConfig, seconds: float, seed: int, size: float
) -> tuple[Array | None, float, str]:
    """Joint positions (N, n) and the least margin, m, or None, NaN and the reason."""
    rng, time = np.random.default_rng(seed), np.arange(0.0, seconds, 1.0 / _RATE)
    posture, fade = config.nominal_posture(model), size * _faded(time)
    legs = quadruped_legs(model, config, fewest=2)
    solvers = [LegKinematics(model, leg, posture[leg.joints]) for leg in legs]
    feet = np.array(
        [
            solver.position(posture[leg.joints])
            for leg, solver in zip(legs, solvers, strict=True)
        ]
    )
    waves = [_waves(time, rng, _SWAY) for _ in range(6)]
    height = float(-feet[:, 2].mean())
    way = 0.1 * np.column_stack(waves[:3]) - [0.0, 0.0, 0.08]  # of the height
    shift = height * fade[:, None] * way
    turn = fade[:, None] * _TRUNK * np.column_stack(waves[3:])
    R = Rotation.from_euler("xyz", turn).as_matrix()
    q, sesc, margins = np.tile(posture, (len(time), 1)), Sesc(model), []
    polygon = SupportPolygon.from_points(feet)
    for k in range(len(time)):
        places = (feet - shift[k]) @ R[k]
        for leg, solver, place in zip(legs, solvers, places, strict=True):
            found = solver.solve(place, q[max(k - 1, 0), leg.joints])
            if found.reason:
                return None, np.nan, f"{time[k]:.1f} s after the start {found.reason}"
            q[k, leg.joints] = found.q
        margins.append(float(polygon.margin(R[k] @ sesc.com(q[k]) + shift[k])))
    return q, min(margins), ""


def _sway_on_soles(
    biped: Biped, config: RobotConfig, seconds: float, seed: int, size: float
) -> tuple[Array | None, float, str]:
    """Joint positions (N, n) and the least margin, m, or None, NaN and the reason."""
    rng, time = np.random.default_rng(seed), np.arange(0.0, seconds, 1.0 / _RATE)
    fade, soles = size * _faded(time), sole_poses(biped, biped.posture)
    com = Sesc(biped.model).com(biped.posture)
    up = soles[:, :, 2].mean(axis=0)
    forwards = soles[:, :, 0].mean(axis=0)
    W = np.column_stack([forwards, np.cross(up, forwards), up]).T  # of the soles' mean
    feet, middle = np.einsum("ij,fjk->fik", W, soles), W @ com
    start = middle.copy()
    middle[:2] = feet[:, :2, 3].mean(axis=0)
    middle[0] += 0.1 * _reach(config)
    length = middle[2] - feet[:, 2, 3].mean()
    waves = [_waves(time, rng, _SWAY) for _ in range(6)]
    path = start + _faded(time)[:, None] * (middle - start)
    path[:, 0] += length * 0.035 * fade * waves[0]
    path[:, 1] += length * 0.056 * fade * waves[1]
    path[:, 2] += length * fade * (0.06 * waves[2] - 0.1)
    R = Rotation.from_euler(
        "xyz", fade[:, None] * _TURN * np.column_stack(waves[3:])
    ).as_matrix()
    amplitude = _upper_body(biped, _WAIST, _ARMS)
    swing = np.column_stack([_waves(time, rng, _SWAY) for _ in amplitude])
    q, ik = np.tile(biped.posture, (len(time), 1)), ComIk(biped)
    base = biped.posture.copy()
    room = np.nan_to_num(biped.model.upper - biped.model.lower, posinf=2 * np.pi)
    moved = amplitude > 0.0
    inner = np.minimum(amplitude + 0.02 * room, 0.5 * room)
    middle_q = np.clip(base, biped.model.lower + inner, biped.model.upper - inner)
    base[moved] = middle_q[moved]
    for k in range(len(time)):
        upper = biped.posture + _faded(time)[k] * (base - biped.posture)
        ik.set_upper_body(upper + fade[k] * amplitude * swing[k])
        found = ik.solve(path[k], feet, R[k])
        if not found.reached:
            return None, np.nan, f"{time[k]:.1f} s after the start {found.reason}"
        q[k] = found.q
    return q, _least_margin(biped, config, q), ""


def _least_margin(biped: Biped, config: RobotConfig, q: Array) -> float:
    """Least distance of the CoM from the edge of the soles, m."""
    soles = sole_poses(biped, biped.posture)
    feet = sorted(config.feet, key=lambda foot: foot.side)  # the left foot first
    corners = [
        sole_points(pose[:, :3], pose[:, 3], foot.corners)
        for pose, foot in zip(soles, feet, strict=True)
    ]
    normal = soles[:, :, 2].mean(axis=0)
    polygon, sesc = (
        SupportPolygon.from_points(np.concatenate(corners), normal),
        Sesc(biped.model),
    )
    margins = []
    for row in q:
        now = sole_poses(biped, row)[0]
        R = soles[0, :, :3] @ now[:, :3].T
        com = R @ (sesc.com(row) - now[:, 3]) + soles[0, :, 3]
        margins.append(float(polygon.margin(com)))
    return min(margins)


def _reach(config: RobotConfig) -> float:
    """Middle of the soles ahead of their origins, m."""
    middles = [
        float(foot.corners[:, 0].mean()) for foot in config.feet if len(foot.corners)
    ]
    return float(np.mean(middles)) if middles else 0.0


def _upper_body(biped: Biped, waist: float, arms: float) -> Array:
    """Amplitudes (n,) of the joints that are of no leg: those that carry much are of the waist."""
    model = biped.model
    legs = np.concatenate([leg.joints for leg in biped.legs])
    result = np.full(model.n_joints, arms)
    mass = model.bodies.mass
    for b in range(1, model.bodies.count):
        carried = mass[b : model.bodies.subtree_end[b]].sum()
        if carried > 0.3 * model.mass:
            result[model.bodies.q_index[b]] = waist
    result[legs] = 0.0
    room = np.nan_to_num(model.upper - model.lower, posinf=2 * np.pi)
    return np.minimum(result, _RANGE * room)


def _flexion(biped: Biped, joints: Indices) -> tuple[int, int]:
    """Hip pitch and knee of a leg: of its joints about the lateral axis the first two."""
    lateral = [j for j in joints if abs(biped.posture[j]) > 0.1]
    return lateral[0], lateral[1]


def _waves(
    time: Array, rng: np.random.Generator, periods: tuple[float, float]
) -> Array:
    """Sum (N,) of two sines of random periods and phases.

    One is in the lower, one in the upper third of the periods: alike, they could cancel each other
    for most of the time, and the motion would show little.
    """
    low, third = periods[0], (periods[1] - periods[0]) / 3.0
    T = rng.uniform([low, low + 2.0 * third], [low + third, periods[1]])
    phases = rng.uniform(0.0, 2.0 * np.pi, 2)
    return np.sin(2.0 * np.pi * time[:, None] / T + phases) @ [0.65, 0.35]


def _faded(time: Array) -> Array:
    """Factor (N,) that rises at the start and falls at the end."""
    return quintic(time / 4.0)[0] * quintic((time[-1] - time) / 4.0)[0]
