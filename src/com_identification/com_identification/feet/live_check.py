"""Does what a standing robot's sensors read fit its configuration? For com_setup --check."""

from collections.abc import Iterator, Sequence

import numpy as np

from com_identification.exceptions import IdentificationError
from com_identification.feet.wrench_check import diagnose
from com_identification.planning.stances import FlatStance
from com_identification.regression.observations import ObservationModel
from com_identification.regression.postures import make_posture
from com_identification.regression.statics import Statics
from com_model import Foot, RobotConfig, RobotModel
from com_model.arrays import Array
from com_model.dynamics import GRAVITY
from com_model.dynamics.kinematics import link_pose
from com_model.geometry.rotations import angle_between
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
    feet, good = config.feet, []
    up = _soles_up(model, feet, q)
    bad = list(_imu_issues(model, config, q, up, acceleration))
    if np.isfinite(acceleration).all() and not bad:
        good.append("imu: it reads gravity, upwards as the soles show")
    silent = [foot.frame for foot, w in zip(feet, wrenches, strict=True) if not np.isfinite(w[0])]
    bad += [f"feet.{name}.wrench: no readings: correct its topic" for name in silent]
    if feet and not silent:
        posture = make_posture(model, q, wrenches, up=up, samples=100)
        issues = [f"feet: {issue}" for issue in diagnose(ObservationModel(model, feet), posture)]
        R = np.array([link_pose(model, q, foot.wrench_frame)[0] for foot in feet])
        forces = np.einsum("fij,fj->i", R, ground_wrenches(wrenches, feet)[:, :3])
        weight = GRAVITY * model.mass
        if not issues:
            good.append(f"feet: they carry {forces @ up:.4g} N of the robot's {weight:.4g} N")
        bad += issues
    return good, bad


def _soles_up(model: RobotModel, feet: Sequence[Foot], q: Array) -> Array:
    """Against gravity (3,), root axes, on horizontal ground: a sole's z, or of the balls' plane."""
    soles = [foot for foot in feet if len(foot.corners)]
    try:
        return FlatStance(Statics(model), soles or feet).up_directions(q[None])[0]
    except IdentificationError:  # fewer than three balls
        return np.array([0.0, 0.0, 1.0])


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
