"""The ankles' servos, measured: a standing robot lets its CoM go round a circle of 1 cm, slowly.

Both feet stay loaded. A servo of stiffness K whose joint lags its target by d = q_d - q gives the
moment that the ground's force and moment F, M on the sole (at r from a point of the joint's axis a)
ask for, so that along the sway

  d = tau / K + T q' + c_foot + noise,   tau = -a . (M + r x F)

by least squares of all samples of both feet, for the sole's x and y axes each. T takes damping and
delays, which are a quarter of a turn away from the moment (q' is measured: with that of the target
T^2 q'' would count as moment). kappa = K / (m g h). What is left is correlated
in time: its variance counts (1 + r_1) / (1 - r_1) times, r_1 from one sample to the next.
"""

from dataclasses import dataclass, replace

import numpy as np

from com_control.exceptions import BipedError
from com_control.walking.biped import Biped, find_stance
from com_control.walking.stabiliser import ankle_joints
from com_control.walking.walk_monitor import Reading, SoleZmp
from com_control.walking.walk_plan import WalkPlan, quintic
from com_control.walking.walker import Walk, Walker, WalkRequest, make_plan
from com_model.arrays import Array
from com_model.dynamics import GRAVITY
from com_model.dynamics.kinematics import body_poses

RADIUS, RADIUS_FRACTION = 0.01, 0.04  # m; of the CoM's height, at most
TURN_TIME, TURNS = 8.0, 3  # s
SETTLING = 2.0  # s, after its begin, which do not count
SPEED_TIME = 0.4  # s, in which a joint's speed is measured
MOST_ERROR = 0.2  # of the stiffness: a larger sigma explains nothing
LEAST_SAMPLES = 100


def plan_sway(walker: Walker, q: Array) -> Walk:
    """The sway from where a robot stands with joints at q (n,), rad or m, at a walk's height.

    Raises:
        PlanError: The feet are not on one plane, or the legs do not reach.
    """
    biped, stance = walker.biped, find_stance(walker.biped, q)
    timing = make_plan(WalkRequest(steps=0), biped, stance).timing
    span = 0.5 * TURN_TIME * TURNS
    plan = WalkPlan(stance.feet, (), replace(timing, start_time=span, stop_time=span))
    samples = plan.sample(plan.grid(walker.dt))
    t, end = samples.time, plan.duration
    angle = 2.0 * np.pi / TURN_TIME * t
    radius = min(RADIUS, RADIUS_FRACTION * timing.com_height) * np.minimum(
        quintic(2.0 * t / TURN_TIME)[0], quintic(2.0 * (end - t) / TURN_TIME)[0]
    )
    com = samples.com.copy()
    com[:, :2] += radius[:, None] * np.column_stack((np.cos(angle), np.sin(angle)))
    return replace(walker.play(plan, replace(samples, com=com)), fed_back=False)


@dataclass(frozen=True)
class AnkleFit:
    """Stiffness of an ankle about the sole's x and y axes, N m/rad, with its sigma; kappa."""

    joints: tuple[tuple[str, ...], tuple[str, ...]]  # that turn the soles about x, and y
    stiffness: tuple[float, float]
    std: tuple[float, float]
    kappa: tuple[float, float]

    def __str__(self) -> str:
        rows = zip(self.joints, self.stiffness, self.std, self.kappa, strict=True)
        found = [
            f"{' and '.join(joints)} {K:.4g} +- {std:.2g} N m/rad (kappa {kappa:.2g})"
            for joints, K, std, kappa in rows
        ]
        named = zip(self.joints, self.stiffness, strict=True)
        yaml = [f"{joint}: {{stiffness: {K:.4g}}}" for joints, K in named for joint in joints]
        return f"{', '.join(found)}; to store it, in robot.yaml: servo: joints: {', '.join(yaml)}"


class SwayRecord:
    """What is measured while a robot sways, and what follows from it.

    Raises:
        BipedError: An ankle has not two joints.
    """

    def __init__(self, biped: Biped) -> None:
        self._biped, self._soles = biped, SoleZmp(biped)
        self._joints = [ankle_joints(leg) for leg in biped.legs]
        self._samples: list[tuple[float, Array, Array, Array]] = []

    def add(self, reading: Reading, q: Array) -> None:
        """Adds a reading, and what was commanded for its time, (n,) rad or m."""
        if reading.wrenches is not None and np.isfinite(reading.wrenches).all():
            wrenches = self._soles.wrenches_at_soles(reading.wrenches)
            self._samples.append((reading.time, reading.position, q, wrenches))

    def fit(self, height: float) -> AnkleFit:
        """The stiffness.

        Args:
            height: m, of the CoM over the soles, for kappa.

        Raises:
            BipedError: Too few readings have wrenches, or the deflection does not follow from the
                moment: MOST_ERROR.
        """
        first = self._samples[0][0] + SETTLING if self._samples else 0.0
        counted = [sample for sample in self._samples if sample[0] >= first]
        if len(counted) < LEAST_SAMPLES:
            raise BipedError(
                f"{len(counted)} readings of the sway have both wrenches, "
                f"{LEAST_SAMPLES} are needed: check the feet's sensors"
            )
        time, Q, target, wrenches = (np.array(x) for x in zip(*counted, strict=True))
        speed = _speeds(time, Q)
        names = tuple(tuple(names[axis] for names in self._joints) for axis in range(2))
        weight_moment = self._biped.model.mass * GRAVITY * height
        poses, found = body_poses(self._biped.model.bodies, Q), []
        for joints in names:
            feet = [self._torque(*poses, name, wrenches[:, i], i) for i, name in enumerate(joints)]
            index = [self._biped.model.joint_index(name) for name in joints]
            slope, sigma = _fit_slope((target - Q)[:, index], np.array(feet).T, speed[:, index])
            if not 0.0 < sigma < MOST_ERROR * slope:
                raise BipedError(
                    f"the sway does not show how stiff {' and '.join(joints)} are: "
                    f"{1e6 * slope:.3g} +- {1e6 * sigma:.2g} urad/(N m); encoders may be too "
                    "coarse, or the wrenches wrong"
                )
            found.append((1.0 / slope, sigma / slope**2, 1.0 / slope / weight_moment))
        stiffness, std, kappa = zip(*found, strict=True)
        return AnkleFit((names[0], names[1]), stiffness, std, kappa)

    def _torque(self, R: Array, p: Array, joint: str, wrenches: Array, foot: int) -> Array:
        """Torque (N,) N m that a joint gives; poses of all bodies, wrenches (N, 6) on its sole."""
        model, frame = self._biped.model, self._biped.legs[foot].foot.frame
        bodies, link = model.bodies, model.link_index(frame)
        own = bodies.joint_names.index(joint)
        last = bodies.body_of_link[link]
        R_sole = R[:, last] @ bodies.R_body_link[link]
        p_sole = p[:, last] + R[:, last] @ bodies.p_body_link[link]
        force, moment = (np.einsum("nij,nj->ni", R_sole, wrenches[:, k : k + 3]) for k in (0, 3))
        axis = R[:, own] @ bodies.axis[own] * bodies.multiplier[own]
        return -np.einsum("ni,ni->n", axis, moment + np.cross(p_sole - p[:, own], force))


def _speeds(time: Array, Q: Array) -> Array:
    """Speeds of joints at (N, n), by differences over SPEED_TIME."""
    middle = np.arange(len(time))
    before, after = (np.searchsorted(time, time + x) for x in (-0.5 * SPEED_TIME, 0.5 * SPEED_TIME))
    before, after = np.minimum(before, middle - 1), np.maximum(after, middle + 1)
    before, after = np.maximum(before, 0), np.minimum(after, len(time) - 1)
    return np.asarray((Q[after] - Q[before]) / (time[after] - time[before])[:, None])


def _fit_slope(deflection: Array, torque: Array, speed: Array) -> tuple[float, float]:
    """Deflection (N, 2) over torque (N, 2) of two feet, rad/(N m), and its sigma."""
    away, tau, qd = (x - x.mean(axis=0) for x in (deflection, torque, speed))
    A = np.column_stack((tau.ravel(order="F"), qd.ravel(order="F")))
    b = away.ravel(order="F")
    x, *_ = np.linalg.lstsq(A, b, rcond=None)
    left = (b - A @ x).reshape(2, -1)
    square = float(np.mean(left**2))
    after = float(np.mean(left[:, 1:] * left[:, :-1])) / max(square, 1e-300)
    r = min(max(after, 0.0), 0.999)
    covariance = np.linalg.pinv(A.T @ A) * square * (1.0 + r) / (1.0 - r)
    return float(x[0]), float(np.sqrt(covariance[0, 0]))
