"""Does what a standing robot's sensors read fit its configuration? For com_setup --check."""

from collections.abc import Iterator

import numpy as np

from com_identification.feet.wrench_check import angle_between, diagnose
from com_identification.regression.postures import make_posture
from com_model import RobotConfig, RobotModel
from com_model.arrays import Array
from com_model.dynamics import GRAVITY
from com_model.dynamics.kinematics import link_pose
from com_model.geometry.support import fit_plane
from com_model.robot_config import ground_wrenches

_TILT = np.radians(5.0)  # of the IMU's gravity against the soles
_GRAVITY = 0.1  # of g, error of an accelerometer


def check_readings(
    model: RobotModel, config: RobotConfig, q: Array, wrenches: Array, acceleration: Array
) -> tuple[list[str], list[str]]:
    """Compares means of a stationary robot's readings with gravity and its weight.

    q (n,) rad or m; wrenches (f, 6) N and N m, as the feet's sensors give them, NaN without
    reading; acceleration (3,) m/s^2 of the accelerometer, its axes, NaN without IMU. Returns what
    fits, and what does not with how to fix it.
    """
    feet, good, bad = config.feet, [], []
    up = _soles_up(model, config, q)
    for text in _imu_issues(model, config, q, up, acceleration):
        bad.append(text)
    if np.isfinite(acceleration).all() and not bad:
        good.append("imu: it reads gravity, upwards as the soles show")
    silent = [foot.frame for foot, w in zip(feet, wrenches, strict=True) if not np.isfinite(w[0])]
    bad += [f"feet.{name}.wrench: no readings: correct its topic" for name in silent]
    if feet and not silent:
        posture = make_posture(model, q, wrenches, up=up, samples=100)
        issues = [f"feet: {issue}" for issue in diagnose(model, feet, posture)]
        forces = np.zeros(3)
        for foot, wrench in zip(feet, ground_wrenches(wrenches, feet), strict=True):
            forces += link_pose(model, q, foot.wrench_frame)[0] @ wrench[:3]
        weight = GRAVITY * model.mass
        if not issues:
            good.append(f"feet: they carry {forces @ up:.4g} N of the robot's {weight:.4g} N")
        bad += issues
    return good, bad


def _soles_up(model: RobotModel, config: RobotConfig, q: Array) -> Array:
    """Against gravity (3,), root axes, on horizontal ground: the soles' z, or the balls' plane."""
    poses = [link_pose(model, q, foot.frame) for foot in config.feet]
    flat = [R[:, 2] for foot, (R, _) in zip(config.feet, poses, strict=True) if len(foot.corners)]
    if flat:
        up = np.sum(flat, axis=0)
    elif len(poses) > 2:
        centers = np.array(
            [p + R @ foot.center for foot, (R, p) in zip(config.feet, poses, strict=True)]
        )
        _, up = fit_plane(centers, -centers.mean(axis=0))
    else:
        up = np.array([0.0, 0.0, 1.0])
    return np.asarray(up / np.linalg.norm(up))


def _imu_issues(
    model: RobotModel, config: RobotConfig, q: Array, up: Array, acceleration: Array
) -> Iterator[str]:
    if not np.isfinite(acceleration).all():
        if config.imu_link:
            yield "imu: no readings: correct the remapping of its topic"
        return
    size = float(np.linalg.norm(acceleration))
    if abs(size - GRAVITY) > _GRAVITY * GRAVITY:
        yield (
            f"imu: it reads {size:.3g} m/s^2 at rest, expected {GRAVITY:.3g}: its unit must be "
            "m/s^2, with gravity in it, and the robot at rest"
        )
        return
    R = link_pose(model, q, config.imu_link or model.root_link)[0]
    angle = angle_between(R @ acceleration, up)
    if angle > np.pi - _TILT:
        yield "imu: it reads gravity downwards, expected upwards (REP 145): negate its data"
    elif angle > _TILT:
        x, y, z = (R.T @ up * GRAVITY).round(2).tolist()
        got = ", ".join(f"{value:.2f}" for value in acceleration)
        yield (
            f"imu: gravity is {np.degrees(angle):.0f} degrees off the soles' normal: in "
            f"{config.imu_link or model.root_link} it reads ({got}), expected ({x}, {y}, {z}) "
            "m/s^2 on horizontal ground: correct imu.link, or how the IMU is mounted in the URDF"
        )
