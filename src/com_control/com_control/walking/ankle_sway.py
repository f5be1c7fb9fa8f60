"""Identifies the stiffness of the ankles' servos: the CoM of a standing robot circles slowly.

The circle has a radius of 1 cm, and both feet stay loaded. A servo of stiffness K whose joint
lags its target by d = q_d - q yields the moment that the ground's force and moment F, M on the
sole (at r from a point of the joint's axis a) require, so that along the sway

  d = tau / K + T q' + c_foot + noise,   tau = -a . (M + r x F)

by least squares of all samples of both feet, for the sole's x and y axes each. T represents
damping and delays, which are 90 degrees out of phase with the moment (q' is measured: with that
of the target T^2 q'' would count as moment). kappa = K / (m g h). The residuals are correlated
in time: their variance counts (1 + r_1) / (1 - r_1) times, r_1 from one sample to the next.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from com_control.exceptions import BipedError
from com_control.walking.biped import Biped
from com_control.walking.stabiliser import ankle_joints
from com_control.walking.walk import Walk, WalkRequest, make_plan
from com_control.walking.walk_monitor import Reading, SoleZmp
from com_control.walking.walk_plan import WalkPlan, find_stance, quintic
from com_control.walking.walker import Walker
from com_model.arrays import Array
from com_model.dynamics import GRAVITY
from com_model.dynamics.kinematics import body_poses


def plan_sway(walker: Walker, q: Array) -> Walk:
    """Plans the sway from the robot's present stance, at a walk's CoM height.

    Args:
        walker: plans walks of the robot.
        q: (n,) rad or m, joint positions.

    Returns:
        A walk without steps, which the stabiliser does not change.

    Raises:
        PlanError: the feet are not on one plane, or the legs do not reach.
    """
    # three turns
    turn_time = 8.0  # s, of a turn
    stance, span = find_stance(walker.biped, q), 0.5 * turn_time * 3
    timing = make_plan(WalkRequest(steps=0), walker.biped, stance).timing
    plan = WalkPlan(stance.feet, (), replace(timing, start_time=span, stop_time=span))
    samples = plan.sample(plan.grid(walker.dt))
    turns, left = samples.time / turn_time, (plan.duration - samples.time) / turn_time
    rise = np.minimum(quintic(2.0 * turns)[0], quintic(2.0 * left)[0])[:, None]
    com, angle = samples.com.copy(), 2.0 * np.pi * turns
    circle = rise * np.column_stack((np.cos(angle), np.sin(angle)))
    # 1 cm, and at most 4 % of the CoM's height
    com[:, :2] += min(0.01, 0.04 * timing.com_height) * circle
    return replace(walker.play(plan, replace(samples, com=com)), fed_back=False)


@dataclass(frozen=True)
class AnkleFit:
    """Stiffness of the servos that rotate the soles about one axis.

    Attributes:
        joints: names, of the left and right leg.
        stiffness: N m/rad.
        std: N m/rad, its standard deviation.
        kappa: stiffness over m g h.
    """

    joints: tuple[str, str]
    stiffness: float
    std: float
    kappa: float

    def __str__(self) -> str:
        found = (
            f"{self.stiffness:.4g} ± {self.std:.2g} N m/rad (kappa {self.kappa:.2g})"
        )
        return f"{' and '.join(self.joints)} {found}"


def fit_ankles(
    biped: Biped, samples: Sequence[tuple[Reading, Array]], height: float
) -> tuple[AnkleFit, AnkleFit]:
    """Fits the stiffness about the soles' x and y axes.

    Args:
        biped: the robot.
        samples: readings, and the joint targets (n,) of their times, rad or m.
        height: m, of the CoM over the soles, for kappa.

    Returns:
        The fits for x and y.

    Raises:
        BipedError: an ankle has not two joints, too few readings have wrenches, or deflections
            do not follow from the moments: the standard deviation is above a fifth.
    """
    soles = SoleZmp(biped)
    # the first 2 s do not count
    since = samples[0][0].time + 2.0 if samples else 0.0
    known = [
        (reading.time, reading.position, q, soles.wrenches_at_soles(reading.wrenches))
        for reading, q in samples
        if reading.time > since
        and reading.wrenches is not None
        and np.isfinite(reading.wrenches).all()
    ]
    least = 100
    if len(known) < least:
        raise BipedError(
            f"{len(known)} readings of the sway have both wrenches, {least} are needed: "
            "check the feet's sensors"
        )
    time, Q, target, wrenches = (np.array(x) for x in zip(*known, strict=True))
    # a joint's speed is measured within 0.4 s
    k = max(int(0.2 / np.median(np.diff(time))), 1)
    speed = (Q[2 * k :] - Q[: -2 * k]) / (time[2 * k :] - time[: -2 * k])[:, None]
    Q, target, wrenches = Q[k:-k], target[k:-k], wrenches[k:-k]
    poses, found = body_poses(biped.model.bodies, Q), []
    left, right = (ankle_joints(leg) for leg in biped.legs)
    for joints in zip(left, right, strict=True):
        tau = [
            _torque(biped, poses, name, wrenches[:, i], i)
            for i, name in enumerate(joints)
        ]
        index = [biped.model.joint_index(name) for name in joints]
        slope, sigma = _fit_slope(
            (target - Q)[:, index], np.array(tau).T, speed[:, index]
        )
        # of the stiffness: a larger sigma explains nothing
        if not 0.0 < sigma < 0.2 * slope:
            raise BipedError(
                f"the sway does not show how stiff {' and '.join(joints)} are: {1e6 * slope:.3g} "
                f"± {1e6 * sigma:.2g} urad/(N m); encoders may be too coarse, or wrenches wrong"
            )
        kappa = 1.0 / (slope * biped.model.mass * GRAVITY * height)
        found.append(AnkleFit(joints, 1.0 / slope, sigma / slope**2, kappa))
    return found[0], found[1]


def _torque(
    biped: Biped, poses: tuple[Array, Array], joint: str, wrenches: Array, foot: int
) -> Array:
    """Torque of a joint from the wrench on its sole.

    Args:
        biped: the robot.
        poses: orientations (N, B, 3, 3) and origins (N, B, 3) m of all bodies.
        joint: its name.
        wrenches: (N, 6) N and N m of the ground on the sole, sole's frame.
        foot: 0 left, 1 right.

    Returns:
        (N,) N m.
    """
    bodies, (R, p) = biped.model.bodies, poses
    link = biped.model.link_index(biped.legs[foot].foot.frame)
    own, last = bodies.joint_names.index(joint), bodies.body_of_link[link]
    R_sole = R[:, last] @ bodies.R_body_link[link]
    arm = p[:, last] + R[:, last] @ bodies.p_body_link[link] - p[:, own]
    force, moment = (
        np.einsum("nij,nj->ni", R_sole, wrenches[:, k : k + 3]) for k in (0, 3)
    )
    axis = R[:, own] @ bodies.axis[own] * bodies.multiplier[own]
    return -np.einsum("ni,ni->n", axis, moment + np.cross(arm, force))


def _fit_slope(deflection: Array, torque: Array, speed: Array) -> tuple[float, float]:
    """Slope of deflections over torques, with the speed as second regressor.

    Args:
        deflection: (N, 2) rad, of two feet.
        torque: (N, 2) N m.
        speed: (N, 2) rad/s.

    Returns:
        rad/(N m), and its standard deviation.
    """
    away, tau, qd = (
        (x - x.mean(axis=0)).ravel(order="F") for x in (deflection, torque, speed)
    )
    A = np.column_stack((tau, qd))
    x, *_ = np.linalg.lstsq(A, away, rcond=None)
    left = (away - A @ x).reshape(2, -1)
    # rad, finer than any encoder: of drives that do not deflect, rounding of 64 bits has a
    # slope, too
    square = float(np.mean(left**2)) + 1e-9**2
    r = min(max(float(np.mean(left[:, 1:] * left[:, :-1])) / square, 0.0), 0.999)
    covariance = np.linalg.pinv(A.T @ A) * square * (1.0 + r) / (1.0 - r)
    return float(x[0]), float(np.sqrt(covariance[0, 0]))
