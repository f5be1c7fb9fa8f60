"""Which joint, sign, unit and axis each number of a log has, by the physics of a robot that stands.

While all feet stand on flat ground and the trunk moves, the robot's model and its readings agree in
these ways only if each number means what it is taken for:

  feet     their contact points keep their distances, and lie in one plane;
  gyro     the trunk turns against them as the gyroscope reads;
  gravity  the accelerometer points along the plane's normal, and has the size of gravity;
  limits   joints are within theirs;
  torques  what the legs carry is the robot's weight, about its centre of mass.

Orders and signs of the legs' joints are searched for: those that loggers use (leg by leg, or kind
by kind of joint) with all signs, and from the best of them on by exchanging two joints.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.ndimage import uniform_filter1d
from scipy.spatial.transform import Rotation

from com_bags.unit_checks import DEGREE, ground_forces
from com_identification.capture.joint_orders import POOR, find_order
from com_identification.capture.standing_log import (
    AXES,
    MOVES,
    FlatFeet,
    LogReadings,
    Pairs,
    rms,
)
from com_model import RobotConfig, RobotModel
from com_model.arrays import Array
from com_model.dynamics import GRAVITY
from com_model.dynamics.kinematics import body_poses

ORDERS = {
    "xyzw": (0, 1, 2, 3),
    "wxyz": (1, 2, 3, 0),
    "zwxy": (2, 3, 0, 1),
    "yzwx": (3, 0, 1, 2),
}
"""Places of x, y, z, w among the numbers that the log has for a quaternion."""

_UNITS = (0.6, 1.7)  # of what is read over what physics says, in the same unit


@dataclass(frozen=True, eq=False)
class LogFit:
    """What the numbers of a log are.

    Attributes:
        names: (k,) of the joints whose positions they are.
        velocities: (k,) which of the log's velocities belongs to each position.
        position, velocity, effort: (k,) factors to rad or m, and the model's signs.
        axes: (3, 3) IMU's link axes of the readings' axes.
        gyro, force: Factors to rad/s and m/s^2.
        order: Of ORDERS; "": the orientation fits in none, and must be left out.
        told: By what: what was found, for people.
        unsure: By what: what cannot be told, for people.
    """

    names: tuple[str, ...]
    velocities: tuple[int, ...]
    position: Array
    velocity: Array
    effort: Array
    axes: Array
    gyro: float
    force: float
    order: str
    told: dict[str, str]
    unsure: dict[str, str]


def fit_log(log: LogReadings, model: RobotModel, config: RobotConfig) -> LogFit:
    """Finds what the numbers of a log are.

    Args:
        log: Of a robot that stands on all feet and moves its trunk, most of the time.
        model: The robot, n joints.
        config: Its feet and the link of the IMU.

    Raises:
        LogFitError: The robot hardly moves, or nothing fits.
        WalkError: The legs are not known.
    """
    model = config.attach(model)
    pairs, told, unsure = Pairs(log), dict[str, str](), dict[str, str]()
    stance = FlatFeet(model, config, pairs)
    found, names, signs = find_order(stance, log.names)
    axes, factor = AXES[found.axes], signs * pairs.unit
    for k, name in enumerate(names):
        place = _describe(log.names[k], name, signs[k], pairs.unit)
        sure = name in stance.leg_names and stance.is_sure(names, signs, k)
        (told if sure else unsure)[f"{log.names[k]}: position"] = (
            place if sure else "cannot tell: it does not move the feet in this log"
        )
    changed = f", {_axes_text(axes)} along the link's x y z" if found.axes else ""
    unit = "deg/s" if found.gyro != 1.0 else "rad/s"
    told["IMU: gyroscope"] = f"{unit}{changed}"
    size = float(np.median(np.linalg.norm(log.force, axis=1)))
    force = next(
        (u for u in (1.0, 9.80665, 1e-3 * 9.80665) if 0.8 < size * u / GRAVITY < 1.25),
        np.nan,
    )
    what = {1.0: "m/s^2", 9.80665: "g"}.get(force, "mg")
    if np.isfinite(force):
        told["IMU: accelerometer"] = f"{what}{changed}"
    else:
        unsure["IMU: accelerometer"] = (
            f"cannot tell: {size:.3g} is gravity in no known unit"
        )
        force = 1.0
    order, text = _orientation(pairs, found.gyro, axes)
    (told if order else unsure)["IMU: orientation"] = text
    velocities, velocity = _velocities(pairs, factor, told, unsure)
    return LogFit(
        names=names,
        velocities=velocities,
        position=factor,
        velocity=velocity,
        effort=_efforts(stance, names, signs, axes, told, unsure),
        axes=axes,
        gyro=found.gyro,
        force=float(force),
        order=order,
        told=told,
        unsure=unsure,
    )


def _describe(label: str, name: str, sign: float, unit: float) -> str:
    """What a number is, in words."""
    words = ["fits" if label == name else f"is {name}"]
    words += ["reversed"] * bool(sign < 0.0) + ["degrees"] * bool(unit != 1.0)
    return ", ".join(words)


def _axes_text(axes: Array) -> str:
    """The log's axes along x, y, z of the link."""
    along = np.argmax(np.abs(axes), axis=1)
    signs = axes[np.arange(3), along]
    return " ".join(
        f"{'-' * bool(s < 0.0)}{'xyz'[a]}" for a, s in zip(along, signs, strict=True)
    )


def _orientation(pairs: Pairs, gyro: float, axes: Array) -> tuple[str, str]:
    """Order of the quaternion's numbers, and words; "" where it must be left out."""
    log = pairs.log
    turn = log.turn[pairs.first], log.turn[pairs.second]
    if not all(np.isfinite(each).all() for each in turn):
        return "", "cannot tell: the log has none"
    rated = []
    direction = pairs.force / np.linalg.norm(pairs.force, axis=1, keepdims=True)
    spin = gyro * pairs.turn
    size = max(rms(spin), 1e-9)
    for order, places in ORDERS.items():
        first, second = (Rotation.from_quat(each[:, places]) for each in turn)
        between = (first.inv() * second).as_rotvec()
        between -= between.mean(axis=0)
        up = first.inv().apply([0.0, 0.0, 1.0])
        for aligned, A in ((False, np.eye(3)), (True, axes)):
            tilt = np.linalg.norm(up - direction @ A.T, axis=1).mean()
            total = float(tilt) + rms(between - spin @ A.T) / size
            rated.append((total, aligned, order))
    best = min(rated)
    if best[0] > POOR:
        return "", "cannot tell: it agrees with accelerometer and gyroscope in no order"
    if best[1] or np.allclose(axes, np.eye(3)):
        return best[2], f"order {best[2]}"
    return "", "its axes are not the link's, which a mapping cannot change: left out"


def _velocities(
    pairs: Pairs, factor: Array, told: dict[str, str], unsure: dict[str, str]
) -> tuple[tuple[int, ...], Array]:
    """Which velocity is which position's, and factors (k,); by what the positions change."""
    log = pairs.log
    count = len(log.names)
    own, scale = list(range(count)), factor.copy()
    if not np.isfinite(log.velocity).any():
        return tuple(own), scale
    period = float(np.median(np.diff(log.time)))
    whole = np.cumsum(np.nan_to_num(log.velocity), axis=0) * period
    x = whole[pairs.second] - whole[pairs.first]
    y = pairs.unit * (log.position[pairs.second] - log.position[pairs.first])
    spread = np.linalg.norm(x, axis=0)[:, None] * np.linalg.norm(y, axis=0)
    match = np.abs(x.T @ y) / np.maximum(spread, 1e-12)
    for k, name in enumerate(log.names):
        j = k if match[k, k] > 0.9 else int(np.argmax(match[:, k]))
        slope = float(x[:, j] @ y[:, k] / max(float(x[:, j] @ x[:, j]), 1e-12))
        unit = next((u for u in (1.0, DEGREE) if 0.7 < abs(slope) / u < 1.4), 0.0)
        if match[j, k] < 0.9 or not unit or rms(y[:, k]) < 0.1 * MOVES:
            unsure[f"{name}: velocity"] = "cannot tell: it is not the position's change"
            scale[k] = np.sign(factor[k]) * pairs.unit
            continue
        own[k], scale[k] = j, np.sign(factor[k]) * np.sign(slope) * unit
        words = ["fits" if j == k else f"is that of {log.names[j]}"]
        words += ["reversed"] * bool(scale[k] < 0.0) + ["deg/s"] * bool(unit != 1.0)
        told[f"{name}: velocity"] = ", ".join(words)
    return tuple(own), scale


def _efforts(
    stance: FlatFeet,
    names: Sequence[str],
    signs: Array,
    axes: Array,
    told: dict[str, str],
    unsure: dict[str, str],
) -> Array:
    """Factors (k,) of the torques, by the weight that they carry.

    With torques s_j t_j of the leg's joints, its foot has the wrench J^-T (g - s t), g the torques
    that the legs' own weight takes. All of them are in balance with the weight of the robot: six
    equations of each instant for the factors s.
    """
    log = stance.pairs.log
    scale = signs.copy()
    effort = uniform_filter1d(np.nan_to_num(log.effort), 5, axis=0)[stance.pairs.first]
    if not np.isfinite(log.effort).any():
        unsure["efforts"] = "cannot tell: the log has none"
        return scale
    model, q = stance.model, stance.positions(names, signs)[0]
    R_imu = body_poses(model.bodies, q)[0][:, stance.imu] @ stance.R_imu
    up = np.einsum("kij,kj->ki", R_imu, stance.pairs.force @ axes.T)
    A, free, weight = ground_forces(model, stance.config.feet, q, up)
    b = free.sum(axis=1) - weight
    slots = [list(names).index(name) for name in stance.leg_names]
    X = (A * effort[:, None, slots]).reshape(-1, len(slots))
    used = np.isfinite(X).all(axis=1)
    y = b.reshape(-1)[used]
    H = X[used].T @ X[used] + 1e-9 * np.eye(len(slots))
    found = np.linalg.solve(H, X[used].T @ y)
    left = y - X[used] @ found
    std = np.sqrt(np.diag(np.linalg.inv(H)) * (left @ left) / max(1, len(y)))
    # four standard deviations
    sure = np.abs(found) > 4.0 * std
    size = float(np.median(np.abs(found[sure]))) if sure.any() else 1.0
    unit = 1.0 if _UNITS[0] < size < _UNITS[1] else size
    close = sure & (np.abs(np.abs(found) / size - 1.0) < 0.6)
    close &= rms(left) < 0.5 * rms(y)
    for i, k in enumerate(slots):
        key = f"{log.names[k]}: effort"
        scale[k] = (np.sign(found[i]) if close[i] else scale[k]) * unit
        if not close[i]:
            unsure[key] = (
                "cannot tell: what the feet carry depends little on it in this log"
            )
            continue
        words = ["reversed"] * bool(found[i] < 0.0) or ["fits"]
        if unit != 1.0:
            words.append(
                f"the feet carry {1.0 / unit:.2g} of the weight: a current, or another unit than "
                "N m at the joint"
            )
        told[key] = ", ".join(words)
    for k in sorted(set(range(len(names))) - set(slots)):
        scale[k] *= unit
        unsure[f"{log.names[k]}: effort"] = "cannot tell: it is not in a leg"
    return scale
