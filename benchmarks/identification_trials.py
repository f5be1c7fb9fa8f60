"""Identifications on trial: robots with wrong CoMs, read by sensors with errors, and judged.

The truth, the wrenches and the sensors' errors are computed with Pinocchio, not with the suite's
regressor; the sensors' errors are applied exactly, not to first order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cache

import numpy as np
from identification_scenario import GRAVITY, Array, PinocchioRobot, scenario_of
from numpy.random import Generator
from scipy.spatial.transform import Rotation

from com_identification.planning.feasible import FeasiblePostures
from com_identification.regression.postures import Posture, make_posture
from com_identification.regression.result import Identification
from com_identification.regression.statics import Statics
from com_identification.settings import PlanOptions, SensorNoise
from com_identification.store.results import corrected_inertials, corrected_urdf
from com_model.urdf.editing import edit_inertials

MM, DEG = 1e3, float(np.radians(1.0))
MIXED = ((0, 1), (0,), (0, 1), (1,))
SAMPLES, HELD_OUT = 100, 40
MARGIN = {"hoap2": 0.015, "talos": 0.02}
COM_STD = {"hoap2": 0.005, "talos": 0.01}  # m, each axis
FORCE, MOMENT = {"hoap2": 1.0, "talos": 4.0}, {"hoap2": 0.05, "talos": 0.4}
NOISE = {
    "hoap2": SensorNoise(force=0.5, moment=0.025),
    "talos": SensorNoise(force=2.0, moment=0.2),
}


@dataclass(frozen=True)
class Errors:
    """Standard deviations of a case's true errors; 0: there is none.

    Attributes:
        bias: Of the wrench zeros in those of the robot (1 N, 0.05 N m; TALOS 4 N, 0.4 N m).
        drift: Of a step, likewise.
        zeros: rad, of the encoders.
        backlash: rad, each posture.
        gain: 1, each axis.
        crosstalk: 1.
        origin: m, of a sensor.
        orientation: rad, of a sensor.
        slope: rad.
        mounting: rad, of the IMU.
        masses: 1.
        unevenness: rad, each posture.
        joints: Elasticity, rad under the torque of the weight at half a sole's length; half-normal.
        soles: Of each sole, rad about each axis under that moment about its middle, likewise.
        one_zero: rad, of one knee on top.
        touched: How many postures are touched, with 5 to 10 % of the weight on a foot.
        cable: Fraction of the weight with which a cable pulls the heaviest link sideways.
        backpack: Fraction of the mass that the heaviest link carries on its back.
    """

    bias: float = 0.0
    drift: float = 0.0
    zeros: float = 0.0
    backlash: float = 0.0
    gain: float = 0.0
    crosstalk: float = 0.0
    origin: float = 0.0
    orientation: float = 0.0
    slope: float = 0.0
    mounting: float = 0.0
    masses: float = 0.0
    unevenness: float = 0.0
    joints: float = 0.0
    soles: float = 0.0
    one_zero: float = 0.0
    touched: int = 0
    cable: float = 0.0
    backpack: float = 0.0

    def times(self, factor: float) -> Errors:
        """All errors of sensors and floor larger by a factor; the bodies' stay."""
        scaled = {item.name: factor * getattr(self, item.name) for item in fields(self)}
        return replace(
            self, **{**scaled, "masses": self.masses, "touched": self.touched}
        )


ALL = Errors(
    bias=1.0,
    drift=0.05,
    zeros=0.5 * DEG,
    backlash=0.1 * DEG,
    gain=0.02,
    crosstalk=0.01,
    origin=0.002,
    orientation=0.5 * DEG,
    slope=0.7 * DEG,
    mounting=0.5 * DEG,
    masses=0.05,
    unevenness=0.1 * DEG,
)


@cache
def entries(robot: str) -> tuple[list[tuple[Array, tuple[int, ...]]], Array]:
    """Random mixed postures with their stances, in turn, and 40 others on both feet."""
    scenario = scenario_of(robot)
    plan = PlanOptions(margin=MARGIN[robot], most_tilt=np.pi, stands=MIXED, seed=11)
    statics = Statics(scenario.model)
    mixed = FeasiblePostures(statics, scenario.feet, scenario.rest, plan).sample(60)
    plan = replace(plan, stands=((0, 1),), seed=12)
    others = FeasiblePostures(statics, scenario.feet, scenario.rest, plan).sample(
        HELD_OUT
    )
    return [(q, stand) for q, stand, _ in mixed], np.array([q for q, _, _ in others])


def wrong_robot(robot: str, errors: Errors, rng: Generator) -> PinocchioRobot:
    """A robot whose CoMs and masses are off."""
    model, feet = scenario_of(robot).model, scenario_of(robot).feet
    bodies = model.bodies
    heavy = bodies.mass > 0.0
    mass = bodies.mass * (1.0 + errors.masses * rng.normal(size=bodies.count))
    com = np.zeros((bodies.count, 3))
    com[heavy] = bodies.first_moment[heavy] / bodies.mass[heavy, None]
    com[heavy] += rng.normal(0.0, COM_STD[robot], (int(heavy.sum()), 3))
    if errors.backpack:
        body, load = int(np.argmax(bodies.mass)), errors.backpack * bodies.mass.sum()
        size = np.cbrt(bodies.mass[body] / 1000.0)
        total = mass[body] + load
        com[body] += load / total * size * np.array([-0.5, 0.0, 0.1])
        mass[body] = total
    xml = edit_inertials(model.xml, corrected_inertials(model, mass, com))
    return PinocchioRobot(xml, model, feet)


class Sensors:
    """Sensors of a robot with true errors, drawn once; applied exactly.

    Args:
        truth: The robot.
        robot: Its name.
        errors: Standard deviations.
        rng: Draws them.
    """

    def __init__(
        self, truth: PinocchioRobot, robot: str, errors: Errors, rng: Generator
    ) -> None:
        self.truth, self.robot, self.errors, self.rng = truth, robot, errors, rng
        f, n = len(truth.feet), truth.model.n_joints
        lever = float(np.ptp(truth.feet[0].corners, axis=0).max() / 2.0)
        scale = np.repeat([FORCE[robot], MOMENT[robot]], 3)
        self.zeros = rng.normal(0.0, 1.0, n) * errors.zeros
        knee = next(
            i for i, name in enumerate(truth.model.joint_names) if _is_knee(name)
        )
        self.zeros[knee] += errors.one_zero
        self.bias = errors.bias * scale * rng.normal(size=(f, 6))
        self.step = errors.drift * scale
        unit = np.kron([[1.0, 1.0 / lever], [lever, 1.0]], np.ones((3, 3)))
        self.matrix = np.tile(np.eye(6), (f, 1, 1))
        self.matrix += errors.gain * np.eye(6) * rng.normal(size=(f, 6, 1))
        self.matrix += errors.crosstalk * unit * rng.normal(size=(f, 6, 6))
        self.origin = errors.origin * rng.normal(size=(f, 3))
        self.turn = Rotation.from_rotvec(
            errors.orientation * rng.normal(size=(f, 3))
        ).as_matrix()
        self.slope = errors.slope * rng.normal(size=2)
        self.mounting = Rotation.from_rotvec(
            errors.mounting * rng.normal(size=3)
        ).as_matrix()
        unit = lever * truth.mass * GRAVITY
        self.joints = (
            errors.joints / unit * np.abs(rng.normal(size=n)) if errors.joints else 0.0
        )
        self.soles = np.zeros((f, 2))
        if errors.soles:
            self.soles = errors.soles / unit * np.abs(rng.normal(size=(f, 2)))

    def read(
        self, postures: Sequence[tuple[Array, tuple[int, ...]]], imu: bool
    ) -> list[Posture]:
        """What the sensors read in true postures, means of SAMPLES readings."""
        touched = set(
            self.rng.permutation(len(postures))[: self.errors.touched].tolist()
        )
        readings = []
        for k, (q, stand) in enumerate(postures):
            self.bias = self.bias + self.step * self.rng.normal(
                size=self.bias.shape
            ) * (k > 0)
            readings.append(self._read(q, stand, imu, k in touched))
        return readings

    def _read(
        self, q: Array, stand: tuple[int, ...], imu: bool, touched: bool
    ) -> Posture:
        truth, rng, noise = self.truth, self.rng, NOISE[self.robot]
        tilt = self.slope + self.errors.unevenness * rng.normal(size=2)
        fractions = rng.uniform(0.3, 0.7, len(stand))
        fractions /= fractions.sum()
        up, wrenches = self._stand(q, stand, tilt, fractions)
        for _ in range(2 if self.soles.any() else 0):
            q, normal = self._give_way(q, stand, wrenches)
            up, wrenches = self._stand(q, stand, tilt + normal, fractions)
        bent = (
            self.joints * truth.efforts(q, up, wrenches) if self.errors.joints else 0.0
        )
        if touched:
            push = rng.normal(size=3)
            size = rng.uniform(0.05, 0.1) * truth.mass * GRAVITY
            wrenches[stand[0], :3] += size * push / np.linalg.norm(push)
        ratio = noise.std_ratio(SAMPLES)
        spread = ratio * np.repeat([noise.force, noise.moment], 3)
        read = np.empty_like(wrenches)
        for i, (force, moment) in enumerate(wrenches.reshape(-1, 2, 3)):
            moved = moment - np.cross(
                self.origin[i], force
            )  # about the sensor's true origin
            local = np.concatenate((self.turn[i].T @ force, self.turn[i].T @ moved))
            read[i] = truth.feet[i].wrench_sign * self.matrix[i] @ local
        read += self.bias + spread * rng.normal(size=read.shape)
        imu_up = self.mounting @ up + noise.tilt * rng.normal(size=3)
        encoders = (
            q + bent - self.zeros + self.errors.backlash * rng.normal(size=len(q))
        )
        return make_posture(
            truth.model,
            encoders + noise.position * ratio * rng.normal(size=len(q)),
            read,
            up=imu_up / np.linalg.norm(imu_up) if imu else None,
            samples=SAMPLES,
        )

    def _stand(
        self, q: Array, stand: tuple[int, ...], tilt: Array, fractions: Array
    ) -> tuple[Array, Array]:
        """Up by the tilt (2,) in the first sole's axes, and the ground's wrenches on the feet."""
        truth = self.truth
        up = truth.frame(q, truth.feet[stand[0]].frame)[0] @ np.append(tilt, 1.0)
        up /= np.linalg.norm(up)
        weight = truth.mass * GRAVITY * up
        link = int(np.argmax(truth.model.link_masses))
        R, p = truth.frame(q, truth.model.link_names[link])
        floor = truth.frame(q, truth.feet[stand[0]].frame)[0]
        cable = self.errors.cable * truth.mass * GRAVITY * floor[:, 1]
        held = weight - cable
        frames = [truth.frame(q, truth.feet[i].wrench_frame) for i in stand]
        forces = [fraction * held for fraction in fractions]
        rest = np.cross(truth.com(q), weight)
        rest = rest - np.cross(p + R @ truth.model.link_coms[link], cable)
        rest = rest - sum(
            np.cross(p, F) for (_, p), F in zip(frames, forces, strict=True)
        )
        wrenches = np.zeros((len(truth.feet), 6))
        for i, (R, _), F, fraction in zip(
            stand, frames, forces, fractions, strict=True
        ):
            wrenches[i] = np.concatenate((R.T @ F, R.T @ (fraction * rest)))
        return up, wrenches

    def _give_way(
        self, q: Array, stand: tuple[int, ...], wrenches: Array
    ) -> tuple[Array, Array]:
        """The joints with elastic soles on one floor; its normal (2,) in the first sole's axes."""
        truth, seen = self.truth, []
        for i in stand:
            foot = truth.feet[i]
            (R, p), (R_s, p_s) = (
                truth.frame(q, name) for name in (foot.frame, foot.wrench_frame)
            )
            middle = p + R[:, :2] @ foot.corners.mean(axis=0)
            force, moment = R_s @ wrenches[i, :3], R_s @ wrenches[i, 3:]
            moment = (R.T @ (moment + np.cross(p_s - middle, force)))[:2] * self.soles[
                i
            ]
            seen.append(np.array([moment[1], -moment[0]]))
        if len(stand) == 1:
            return q, seen[0]

        def gap(q: Array) -> Array:
            (R, p), (S, s) = (truth.frame(q, truth.feet[i].frame) for i in stand)
            normal = R.T @ S @ np.append(seen[1], 1.0)
            return np.append(normal[:2] - seen[0], R[:, 2] @ (s - p) - height)

        height = 0.0
        height = gap(q)[2]
        J = np.array([(gap(q + 1e-6 * e) - gap(q)) / 1e-6 for e in np.eye(len(q))]).T
        return q - np.linalg.pinv(J) @ gap(q), seen[0]


def _is_knee(name: str) -> bool:
    return name in ("LLEG_JOINT4", "leg_left_4_joint")


def mixed(
    postures: Sequence[tuple[Array, tuple[int, ...]]], count: int, rng: Generator
) -> list[tuple[Array, tuple[int, ...]]]:
    """So many of them in random order, half on both feet."""
    double = [p for p in postures if len(p[1]) == 2]
    single = [p for p in postures if len(p[1]) == 1]
    some = [double[i] for i in rng.permutation(len(double))[: count // 2]]
    some += [single[i] for i in rng.permutation(len(single))[: count - len(some)]]
    return [some[i] for i in rng.permutation(len(some))]


def prediction_scores(
    robot: str, truth: PinocchioRobot, found: Identification, others: Array
) -> tuple[float, float, float, float, bool]:
    """Errors of the URDF and of the result, sigma (RMS, mm), NEES, and whether it is DEGRADED.

    Of the horizontal CoM relative to the root in other postures (k, n) on both feet.
    """
    scenario = scenario_of(robot)
    model, statics = scenario.model, Statics(scenario.model)
    urdf = PinocchioRobot(model.xml, model, scenario.feet)
    result = PinocchioRobot(corrected_urdf(model, found), model, scenario.feet)
    before, after, sigma, nees = [], [], [], []
    for q in others:
        R = truth.frame(q, truth.feet[0].frame)[0][:, :2]  # horizontal axes
        com = truth.com(q)
        before.append(R.T @ (urdf.com(q) - com))
        error = R.T @ (result.com(q) - com)
        columns = statics.first_moment(statics.poses(q[None]))[0] - np.outer(
            result.com(q), statics.mass()
        )
        rows = R.T @ columns / found.total_mass
        covariance = rows @ found.covariance @ rows.T
        after.append(error)
        sigma.append(np.trace(covariance))
        nees.append(error @ np.linalg.solve(covariance, error) / 2.0)
    rms = [
        MM * float(np.sqrt(np.mean(np.sum(np.square(e), axis=1))))
        for e in (before, after)
    ]
    return (
        rms[0],
        rms[1],
        MM * float(np.sqrt(np.mean(sigma))),
        float(np.mean(nees)),
        bool(found.cause),
    )
