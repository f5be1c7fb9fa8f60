"""Units, signs and axes by physics: readings of a robot on its feet that are not what they seem.

Joints have limits, the gyroscope turns the vertical, the accelerometer reads gravity, the feet are
below the trunk, and joints' torques, force sensors and force plates carry the weight. What
disagrees by the factor of another unit, a sign or an axis is refused by its name.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.ndimage import uniform_filter1d

from com_bags.exceptions import UnitError
from com_bags.walk_log import WalkLog
from com_model import Foot, RobotModel
from com_model.arrays import Array, Indices
from com_model.contact import SUPPORT_LOAD
from com_model.dynamics import GRAVITY
from com_model.dynamics.inverse_dynamics import Dynamics
from com_model.dynamics.link_frames import LinkFrames
from com_model.geometry.rotations import angle_between, skew
from com_model.text import listing

DEGREE = np.pi / 180.0

_FROZEN = (
    1e-3  # of the vertical, that changes less where a driver repeats an orientation
)


@dataclass(frozen=True)
class WeightReading:
    """What carries a robot's weight by its readings, and how to correct it.

    Attributes:
        source: what reads, in words.
        expected: the unit, in words.
        units: how many of another unit are one of the expected, by name.
        other: what it may be where no unit explains it.
    """

    source: str
    expected: str
    units: Mapping[str, float]
    other: str

    def problem(
        self, fractions: Array, names: Sequence[str], mass: float
    ) -> UnitError | None:
        """Finds the unit or the sign by which the feet carry the weight.

        Args:
            fractions: (F,) of the weight, on each foot, upwards.
            names: Of the feet.
            mass: kg, of the robot.

        Returns:
            The error; None where the feet carry the weight, or the robot hangs.
        """
        # of the weight, that joint torques carry by a URDF whose masses are wrong
        ratio, low, high = float(fractions.sum()), 0.55, 2.0
        # a foot that pulls 8 % of the weight has the wrong sign
        pulls = [n for n, x in zip(names, fractions, strict=True) if x < -0.08]
        if len(pulls) < len(names) and pulls and low < np.abs(fractions).sum() < high:
            return UnitError(
                f"by {self.source} {listing(pulls)} would pull at the ground, and the feet carry "
                "the weight if these readings have the opposite sign: correct their signs "
                "(scale: -1.0 in a mapping)",
                "sign",
            )
        found = f"by {self.source} the feet carry {ratio:.2g} times the weight ({mass:.1f} kg)"
        if -high < ratio < -low:
            return UnitError(
                f"{found}: they have the opposite sign. Correct it (scale: -1.0 in a mapping)",
                "sign",
            )
        off = {u: abs(np.log(max(ratio, 1e-9) / f)) for u, f in self.units.items()}
        unit = min(off, key=lambda each: off[each])
        # within 20 % of a unit's factor
        if off[unit] < 0.2:
            return UnitError(
                f"{found}: they are in {unit}. Expected {self.expected}: convert "
                f"them (scale: {1.0 / self.units[unit]:.4g} in a mapping)",
                unit,
            )
        if ratio > high or ratio < -SUPPORT_LOAD or SUPPORT_LOAD < ratio < low:
            return UnitError(
                f"{found}: they are {self.other}. Expected {self.expected}",
                "A" if self is EFFORTS else "?",
            )
        return None


EFFORTS = WeightReading(
    "the joints' efforts",
    "N m at the joint",
    {
        "kgf m": 1.0 / 9.80665,
        "kgf cm": 100.0 / 9.80665,
        "lbf in": 8.850746,
        "N cm": 100.0,
        "N mm": 1000.0,
    },
    "motor currents (A: multiply by torque constant and gear ratio) or in another unit, or the "
    "URDF's mass is wrong",
)
FORCES = WeightReading(
    "the force sensors",
    "N",
    {
        "kgf": 1.0 / 9.80665,
        "lbf": 1.0 / 4.4482216,
        "gf": 1000.0 / 9.80665,
        "mN": 1000.0,
        "kN": 0.001,
    },
    "in another unit, or the mass is wrong",
)
PLATES = replace(FORCES, source="the force plates")


def check_units(
    log: WalkLog, model: RobotModel, feet: Sequence[Foot], imu_link: str
) -> None:
    """Checks the units of a recording of a robot that stands or walks.

    Args:
        log: The recording.
        model: The robot, with the frames of its feet.
        feet: Its feet.
        imu_link: Link of the IMU.

    Raises:
        UnitError: Readings are in another unit; names it, and how to declare it.
    """
    check_positions(log.position, model)
    if not log.has_imu:
        return
    R = model.bodies.R_body_link[model.link_index(imu_link)]
    size = float(np.linalg.norm(np.nanmean(log.specific_force, axis=0)))
    for unit, factor in {"g": 1.0, "mg": 1000.0}.items():
        if 0.8 < size / factor < 1.25:
            entry = "scale: 0.00980665" if unit == "mg" else f"unit: {unit}"
            raise UnitError(
                f"the accelerometer reads {size:.4g} on average, which is gravity in {unit}. "
                f"Expected m/s^2: convert it, or give the unit in a mapping ({entry})",
                unit,
            )
    try:
        _check_up(log, model, feet, R)
        _check_gyro(log, R)
    except UnitError as error:
        text = (
            f"{error}. Expected rad/s, m/s^2 with gravity, and the orientation, all in "
            f"the axes that link {imu_link!r} has in the URDF"
        )
        raise UnitError(
            text if error.unit == "axes" else str(error), error.unit
        ) from None
    _check_torques(
        log, model, feet, log.specific_force @ R.T if log.up is None else log.up
    )


def check_forces(
    model: RobotModel, feet: Sequence[Foot], q: Array, wrenches: Array, up: Array
) -> None:
    """Checks unit and signs of the feet's force sensors, of a robot that stands or walks.

    Args:
        model: The robot, with the frames of its feet.
        feet: Its feet.
        q: (n,) rad or m, mean.
        wrenches: (F, 6) N and N m, mean of each foot's sensor with its sign, sensor axes.
        up: (3,) upwards, root axes.

    Raises:
        UnitError: The feet carry the weight in another unit, or one pulls at the ground.
    """
    R = LinkFrames(model, [f.wrench_frame for f in feet]).poses(q)[0]
    upwards = np.einsum("fij,fj,i->f", R, wrenches[:, :3], up / np.linalg.norm(up))
    fractions = upwards / (model.mass * GRAVITY)
    error = FORCES.problem(fractions, [foot.frame for foot in feet], model.mass)
    if error and error.unit != "?":  # a payload, or a hand that holds it, is no unit
        raise error


def check_positions(position: Array, model: RobotModel) -> None:
    """Refuses degrees and mm: of joints that cannot move so far.

    Args:
        position: (N, n) rad or m.
        model: The robot.

    Raises:
        UnitError: Joints are beyond their limits by the factor of another unit.
    """
    bounded = np.isfinite(model.lower) & np.isfinite(model.upper)
    reach = np.abs(position[np.isfinite(position).all(axis=1)])
    if not len(reach):
        return
    middle = np.median(reach, axis=0)
    most = 2.0 * np.maximum(-model.lower, model.upper)
    # rad, beyond which no leg's joint stays
    for kind, least, unit, expected in (
        ("revolute", 2.0 * np.pi, "deg", "rad"),
        ("prismatic", 1.0, "mm", "m"),
    ):
        own = bounded & (np.array(model.joint_types) == kind) & (middle > least)
        own &= middle > np.where(bounded, most, np.inf)
        if own.any():
            k = int(np.argmax(np.where(own, middle, 0.0)))
            name = {"deg": "degrees"}.get(unit, unit)
            raise UnitError(
                f"{model.joint_names[k]} is at {middle[k]:.3g} {expected} or more half of the "
                f"time, and its limits are {model.lower[k]:.3g} and {model.upper[k]:.3g} "
                f"{expected}: the positions are in {name}. Expected {expected}: convert them, or "
                f"give the unit in a mapping (unit: {unit})",
                unit,
            )


def _check_gyro(log: WalkLog, R: Array) -> None:
    """Refuses deg/s: by the vertical, which turns by du/dt = -w x u, else by their size."""
    omega = log.angular_velocity @ R.T
    rms = float(np.sqrt(np.nanmean((omega**2).sum(axis=1))))
    period = float(np.median(np.diff(log.time))) if len(log.time) > 1 else 0.0
    # the vertical turns over 0.1 s
    step = max(1, round(0.1 / period)) if period > 0.0 else 1
    fastest = 3.0  # rad/s, rms, beyond which no trunk turns
    degrees = rms > fastest and rms * DEGREE < fastest
    if log.up is not None and len(log.time) > 2 * step:
        turn = np.cumsum(np.cross(log.up, omega), axis=0) * period
        a, b = turn[step:] - turn[:-step], log.up[step:] - log.up[:-step]
        size = float((a**2).sum())
        follows = float((a * b).sum()) / max(size, 1e-12)
        if np.ptp(log.up, axis=0).max() > _FROZEN:
            degrees = 0.5 < follows / DEGREE < 2.0
            # a trunk that moves turns by 0.02 rad/s, rms
            moves = size > (0.02 * step * period) ** 2 * len(a)
            if moves and not degrees and not 0.5 < follows < 2.0:
                raise UnitError(
                    f"the orientation turns {follows:.2f} times as fast as the gyroscope reads",
                    "axes",
                )
    if degrees:
        raise UnitError(
            f"the gyroscope reads {rms:.3g}, rms, and the trunk turns {rms * DEGREE:.2g} rad/s: it "
            "is in deg/s. Expected rad/s: convert it, or give the unit in a mapping (unit: deg/s)",
            "deg/s",
        )
    if rms > fastest:
        raise UnitError(f"the gyroscope reads {rms:.2f} rad/s, rms", "axes")


def _check_up(log: WalkLog, model: RobotModel, feet: Sequence[Foot], R: Array) -> None:
    """Refuses an orientation that contradicts the accelerometer, or puts the feet above."""
    force = np.nanmean(log.specific_force, axis=0) @ R.T
    size, up = float(np.linalg.norm(force)), force
    if not 0.8 < size / GRAVITY < 1.25:
        raise UnitError(
            f"the accelerometer reads {size:.1f} m/s^2 on average"
            + " (was gravity subtracted?)" * (size < 0.2 * GRAVITY),
            "axes",
        )
    if log.up is not None and np.ptp(log.up, axis=0).max() > _FROZEN:
        up = np.nanmean(log.up, axis=0)
        # the two vertical directions may differ by 20 degrees
        if (off := angle_between(force, up)) > np.deg2rad(20.0):
            raise UnitError(
                f"orientation and accelerometer differ by {np.degrees(off):.0f} degrees about up "
                "(is the quaternion in the order x, y, z, w?)",
                "axes",
            )
    known = log.position[np.isfinite(log.position).all(axis=1)]
    if feet and len(known):
        frames = LinkFrames(model, [f.frame for f in feet], [f.center for f in feet])
        if up @ frames.poses(np.median(known, axis=0))[1].mean(axis=0) > 0.0:
            raise UnitError("by the IMU the feet are above the trunk", "axes")


def _check_torques(
    log: WalkLog, model: RobotModel, feet: Sequence[Foot], up: Array
) -> None:
    """Refuses torques that carry another multiple of the weight, or that of some legs reversed."""
    legs = leg_joints(model, feet)
    joints = np.concatenate(legs) if legs else np.zeros(0, np.int64)
    known = np.isfinite(log.position).all(axis=1) & np.isfinite(up).all(axis=1)
    known &= np.isfinite(log.effort[:, joints]).all(axis=1)
    rows = np.flatnonzero(known)
    if not len(rows) or not len(joints):
        return
    # at 300 instants
    rows = rows[np.linspace(0, len(rows) - 1, min(300, len(rows))).astype(int)]
    A, load, _ = ground_forces(model, feet, log.position[rows], up[rows])
    tau = log.effort[rows][:, joints]
    pushes, at = np.zeros((len(legs), len(rows))), 0
    vertical = up[rows] / np.linalg.norm(up[rows], axis=1, keepdims=True)
    for i, own in enumerate(legs):
        part = slice(at, at + len(own))
        push = load[:, i, :3] - np.einsum("kij,kj->ki", A[:, :3, part], tau[:, part])
        pushes[i] = np.einsum("ki,ki->k", push, vertical)
        at += len(own)
    # a robot that lies, or hangs, for a while carries less
    stride = 0.6  # s, over which a walking robot carries its weight on average
    spacing = float(np.median(np.diff(log.time[rows]))) if len(rows) > 1 else stride
    width = max(3, round(stride / max(spacing, 1e-6)))
    total = uniform_filter1d(pushes.sum(axis=0), width)
    on_feet = np.abs(total) >= 0.5 * np.quantile(np.abs(total), 0.9)
    fractions = pushes[:, on_feet].mean(axis=1) / (model.mass * GRAVITY)
    # without torques the ground would still have to hold the legs
    still = np.einsum("kfi,ki->kf", load[on_feet, :, :3], vertical[on_feet]).mean(
        axis=0
    )
    still /= model.mass * GRAVITY
    fractions = (fractions - still) / (1.0 - still.sum())
    if error := EFFORTS.problem(fractions, [foot.frame for foot in feet], model.mass):
        raise error


def leg_joints(model: RobotModel, feet: Sequence[Foot]) -> list[Indices]:
    """Joints that move each foot, in the order from the root.

    Args:
        model: The robot, with the frames of its feet.
        feet: Its feet.
    """
    bodies = model.bodies
    links = [model.link_index(foot.frame) for foot in feet]
    paths = [bodies.path_to(bodies.body_of_link[link]) for link in links]
    return [
        np.array(list(dict.fromkeys(bodies.q_index[path].tolist())), dtype=np.int64)
        for path in paths
    ]


def ground_forces(
    model: RobotModel, feet: Sequence[Foot], q: Array, up: Array
) -> tuple[Array, Array, Array]:
    """What the ground does to a robot at rest, as an affine function of the legs' torques t.

    The wrench on foot i about the root's origin, in its axes, is X_i J_i^-T (g_i - t_i), with g
    the torques that the robot takes in the air.

    Args:
        model: The robot, with the frames of its feet.
        feet: Its feet.
        q: (K, n) rad or m.
        up: (K, 3) upwards, root axes.

    Returns:
        A (K, 6, j), X_i J_i^-T of all legs' joints one after the other; (K, f, 6) the wrenches on
        the feet without torques; and (K, 6) the wrench that holds the robot.
    """
    frames = LinkFrames(model, [f.frame for f in feet], [f.center for f in feet])
    dynamics, still = Dynamics(model), np.zeros(model.n_joints)
    legs = leg_joints(model, feet)
    up = GRAVITY * up / np.linalg.norm(up, axis=1, keepdims=True)
    A = np.zeros((len(q), 6, sum(map(len, legs))))
    free, weight = np.zeros((len(q), len(feet), 6)), np.zeros((len(q), 6))
    for k in range(len(q)):
        root = np.array((np.zeros(3), np.zeros(3), up[k]))
        weight[k], torque = dynamics.inverse_dynamics(
            np.array((q[k], still, still)), root
        )
        _, p, J = frames.motions(q[k])
        at = 0
        for i, own in enumerate(legs):
            size, X = 6 if len(feet[i].corners) else 3, np.eye(6)
            X[3:, :3] = skew(p[i])
            to_root = X[:, :size] @ np.linalg.pinv(J[i, :size][:, own].T, 1e-3)
            A[k, :, at : at + len(own)] = to_root
            free[k, i] = to_root @ torque[own]
            at += len(own)
    return A, free, weight
