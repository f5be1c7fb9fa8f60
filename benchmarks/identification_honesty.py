"""Whether an identification that declares nothing is honest: error, sigma and NEES by true error.

HOAP-2 and TALOS with wrong centres of mass, read by sensors with the errors of a case. The truth,
the wrenches and the sensors' errors are computed here with Pinocchio, not with the suite's
regressor; the sensors' errors are applied exactly, not to first order. 30 random mixed postures
(half on both feet, a quarter on each), 60 in the cases that say so; the horizontal error of the CoM
relative to the root that is predicted in 40 other postures on both feet, RMS, mean of the seeds.

urdf_mm       error of the URDF
found_mm      error of the identification
sigma_mm      what it says, RMS length
nees          squared error over its covariance, mean of the 40 predictions and the seeds: 1 is
              honest, below 1 cautious; nees_max is the worst run
alarms        fraction of runs that say that errors exceed the priors, and which
nees_range    smallest and largest of the cases with all errors at once, within the priors
worse_than_urdf  number of cases, within the priors, whose mean error is above the URDF's
worse_runs       fraction of the runs of these cases whose error is; worse in each case's row

--full: 16 seeds instead of 4. The last line is one JSON object.
"""

from __future__ import annotations

import com_identification.nodes  # noqa: F401  (one thread, before anything loads numpy)

# isort: split
import argparse
import json
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, fields, replace
from functools import cache

import numpy as np
from identification_scenario import GRAVITY, Array, PinocchioRobot, scenario_of
from numpy.random import Generator
from rich.console import Console
from rich.table import Table
from scipy.spatial.transform import Rotation

from com_identification.planning.feasible import FeasiblePostures
from com_identification.regression.identify import Identification, identify
from com_identification.regression.postures import Posture, make_posture
from com_identification.regression.statics import Statics
from com_identification.settings import (
    FitSettings,
    IdentificationSettings,
    PlanOptions,
    SensorNoise,
)
from com_identification.store.results import corrected_inertials, corrected_urdf
from com_model.urdf.editing import edit_inertials

MM, DEG = 1e3, float(np.radians(1.0))
MIXED = ((0, 1), (0,), (0, 1), (1,))
SAMPLES, HELD_OUT = 100, 40
MARGIN = {"hoap2": 0.015, "talos": 0.02}
COM_STD = {"hoap2": 0.005, "talos": 0.01}  # m, each axis
FORCE, MOMENT = {"hoap2": 1.0, "talos": 4.0}, {"hoap2": 0.05, "talos": 0.4}
NOISE = {"hoap2": SensorNoise(force=0.5, moment=0.025), "talos": SensorNoise(force=2.0, moment=0.2)}


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

    def times(self, factor: float) -> Errors:
        """All errors of sensors and floor larger by a factor; the bodies' stay."""
        scaled = {item.name: factor * getattr(self, item.name) for item in fields(self)}
        return replace(self, **{**scaled, "masses": self.masses, "touched": self.touched})


@dataclass(frozen=True)
class Case:
    """One row of the table.

    Attributes:
        errors: The true errors.
        imu: Whether there is an IMU.
        count: Number of postures.
        within: Whether the errors are within the priors.
    """

    errors: Errors
    imu: bool = False
    count: int = 30
    within: bool = True


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
CASES = {
    "none": Case(Errors()),
    "none, IMU": Case(Errors(), imu=True),
    "wrench zeros": Case(Errors(bias=1.0)),
    "wrench zeros and drift": Case(Errors(bias=1.0, drift=0.05)),
    "encoder zeros": Case(Errors(zeros=0.5 * DEG)),
    "backlash": Case(Errors(backlash=0.1 * DEG)),
    "gain per axis": Case(Errors(gain=0.02)),
    "crosstalk": Case(Errors(crosstalk=0.01)),
    "sensor origin": Case(Errors(origin=0.002)),
    "sensor orientation": Case(Errors(orientation=0.5 * DEG)),
    "slope 0.5 deg": Case(Errors(slope=0.5 * DEG)),
    "slope 1 deg": Case(Errors(slope=1.0 * DEG)),
    "IMU mounting": Case(Errors(mounting=0.5 * DEG), imu=True),
    "masses": Case(Errors(masses=0.05)),
    "elastic joints": Case(Errors(joints=0.1 * DEG)),
    "elastic soles": Case(Errors(soles=0.2 * DEG)),
    "elastic soles, IMU": Case(Errors(soles=0.2 * DEG), imu=True),
    "all, IMU": Case(ALL, imu=True),
    "all": Case(ALL),
    "all, IMU, 60 postures": Case(ALL, imu=True, count=60),
    "3 postures touched, all, IMU": Case(replace(ALL, touched=3), imu=True),
    "all doubled, IMU": Case(ALL.times(2.0), imu=True, within=False),
    "one knee's zero 5 deg, IMU": Case(replace(ALL, one_zero=5.0 * DEG), imu=True, within=False),
}


@cache
def entries(robot: str) -> tuple[list[tuple[Array, tuple[int, ...]]], Array]:
    """Random mixed postures with their stances, in turn, and 40 others on both feet."""
    scenario = scenario_of(robot)
    plan = PlanOptions(margin=MARGIN[robot], most_tilt=np.pi, stands=MIXED, seed=11)
    statics = Statics(scenario.model)
    mixed = FeasiblePostures(statics, scenario.feet, scenario.rest, plan).sample(60)
    plan = replace(plan, stands=((0, 1),), seed=12)
    others = FeasiblePostures(statics, scenario.feet, scenario.rest, plan).sample(HELD_OUT)
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

    def __init__(self, truth: PinocchioRobot, robot: str, errors: Errors, rng: Generator) -> None:
        self.truth, self.robot, self.errors, self.rng = truth, robot, errors, rng
        f, n = len(truth.feet), truth.model.n_joints
        lever = float(np.ptp(truth.feet[0].corners, axis=0).max() / 2.0)
        scale = np.repeat([FORCE[robot], MOMENT[robot]], 3)
        self.zeros = rng.normal(0.0, 1.0, n) * errors.zeros
        knee = next(i for i, name in enumerate(truth.model.joint_names) if _is_knee(name))
        self.zeros[knee] += errors.one_zero
        self.bias = errors.bias * scale * rng.normal(size=(f, 6))
        self.step = errors.drift * scale
        unit = np.kron([[1.0, 1.0 / lever], [lever, 1.0]], np.ones((3, 3)))
        self.matrix = np.tile(np.eye(6), (f, 1, 1))
        self.matrix += errors.gain * np.eye(6) * rng.normal(size=(f, 6, 1))
        self.matrix += errors.crosstalk * unit * rng.normal(size=(f, 6, 6))
        self.origin = errors.origin * rng.normal(size=(f, 3))
        self.turn = Rotation.from_rotvec(errors.orientation * rng.normal(size=(f, 3))).as_matrix()
        self.slope = errors.slope * rng.normal(size=2)
        self.mounting = Rotation.from_rotvec(errors.mounting * rng.normal(size=3)).as_matrix()
        unit = lever * truth.mass * GRAVITY
        self.joints = errors.joints / unit * np.abs(rng.normal(size=n)) if errors.joints else 0.0
        self.soles = np.zeros((f, 2))
        if errors.soles:
            self.soles = errors.soles / unit * np.abs(rng.normal(size=(f, 2)))

    def read(self, postures: Sequence[tuple[Array, tuple[int, ...]]], imu: bool) -> list[Posture]:
        """What the sensors read in true postures, means of SAMPLES readings."""
        touched = set(self.rng.permutation(len(postures))[: self.errors.touched].tolist())
        readings = []
        for k, (q, stand) in enumerate(postures):
            self.bias = self.bias + self.step * self.rng.normal(size=self.bias.shape) * (k > 0)
            readings.append(self._read(q, stand, imu, k in touched))
        return readings

    def _read(self, q: Array, stand: tuple[int, ...], imu: bool, touched: bool) -> Posture:
        truth, rng, noise = self.truth, self.rng, NOISE[self.robot]
        tilt = self.slope + self.errors.unevenness * rng.normal(size=2)
        fractions = rng.uniform(0.3, 0.7, len(stand))
        fractions /= fractions.sum()
        up, wrenches = self._stand(q, stand, tilt, fractions)
        for _ in range(2 if self.soles.any() else 0):
            q, normal = self._give_way(q, stand, wrenches)
            up, wrenches = self._stand(q, stand, tilt + normal, fractions)
        bent = self.joints * truth.efforts(q, up, wrenches) if self.errors.joints else 0.0
        if touched:
            push = rng.normal(size=3)
            size = rng.uniform(0.05, 0.1) * truth.mass * GRAVITY
            wrenches[stand[0], :3] += size * push / np.linalg.norm(push)
        ratio = noise.std_ratio(SAMPLES)
        spread = ratio * np.repeat([noise.force, noise.moment], 3)
        read = np.empty_like(wrenches)
        for i, (force, moment) in enumerate(wrenches.reshape(-1, 2, 3)):
            moved = moment - np.cross(self.origin[i], force)  # about the sensor's true origin
            local = np.concatenate((self.turn[i].T @ force, self.turn[i].T @ moved))
            read[i] = truth.feet[i].wrench_sign * self.matrix[i] @ local
        read += self.bias + spread * rng.normal(size=read.shape)
        imu_up = self.mounting @ up + noise.tilt * rng.normal(size=3)
        encoders = q + bent - self.zeros + self.errors.backlash * rng.normal(size=len(q))
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
        frames = [truth.frame(q, truth.feet[i].wrench_frame) for i in stand]
        forces = [fraction * weight for fraction in fractions]
        rest = np.cross(truth.com(q), weight)
        rest = rest - sum(np.cross(p, F) for (_, p), F in zip(frames, forces, strict=True))
        wrenches = np.zeros((len(truth.feet), 6))
        for i, (R, _), F, fraction in zip(stand, frames, forces, fractions, strict=True):
            wrenches[i] = np.concatenate((R.T @ F, R.T @ (fraction * rest)))
        return up, wrenches

    def _give_way(self, q: Array, stand: tuple[int, ...], wrenches: Array) -> tuple[Array, Array]:
        """The joints with elastic soles on one floor; its normal (2,) in the first sole's axes."""
        truth, seen = self.truth, []
        for i in stand:
            foot = truth.feet[i]
            (R, p), (R_s, p_s) = (truth.frame(q, name) for name in (foot.frame, foot.wrench_frame))
            middle = p + R[:, :2] @ foot.corners.mean(axis=0)
            force, moment = R_s @ wrenches[i, :3], R_s @ wrenches[i, 3:]
            moment = (R.T @ (moment + np.cross(p_s - middle, force)))[:2] * self.soles[i]
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


@dataclass(frozen=True)
class Run:
    """Errors of one run: mm RMS of URDF, result and sigma; NEES; whether the alarm is raised."""

    robot: str
    case: str
    urdf: float
    found: float
    sigma: float
    nees: float
    alarm: bool
    cause: str
    seconds: float


def run(robot: str, name: str, seed: int) -> Run:
    """Identifies one robot and judges its predictions against Pinocchio's."""
    case, scenario = CASES[name], scenario_of(robot)
    rng = np.random.default_rng([seed, 3])
    truth = wrong_robot(robot, case.errors, rng)
    postures, others = entries(robot)
    chosen = _mixed(postures, case.count, rng)
    readings = Sensors(truth, robot, case.errors, rng).read(chosen, case.imu)
    settings = IdentificationSettings(
        noise=NOISE[robot], fit=FitSettings(folds=0, use_imu=case.imu)
    )
    start = time.process_time()
    found = identify(scenario.model, scenario.feet, readings, settings)
    seconds = time.process_time() - start
    return Run(robot, name, *_judge(robot, truth, found, others), found.cause, seconds)


def _mixed(
    postures: Sequence[tuple[Array, tuple[int, ...]]], count: int, rng: Generator
) -> list[tuple[Array, tuple[int, ...]]]:
    """So many of them in random order, half on both feet."""
    double = [p for p in postures if len(p[1]) == 2]
    single = [p for p in postures if len(p[1]) == 1]
    some = [double[i] for i in rng.permutation(len(double))[: count // 2]]
    some += [single[i] for i in rng.permutation(len(single))[: count - len(some)]]
    return [some[i] for i in rng.permutation(len(some))]


def _judge(
    robot: str, truth: PinocchioRobot, found: Identification, others: Array
) -> tuple[float, float, float, float, bool]:
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
    rms = [MM * float(np.sqrt(np.mean(np.sum(np.square(e), axis=1)))) for e in (before, after)]
    return (
        rms[0],
        rms[1],
        MM * float(np.sqrt(np.mean(sigma))),
        float(np.mean(nees)),
        bool(found.cause),
    )


def summarize(runs: Sequence[Run]) -> dict[str, dict[str, float]]:
    """Means of the seeds by case."""
    rows: dict[str, dict[str, float]] = {}
    for name in CASES:
        some = [each for each in runs if each.case == name]
        if not some:
            continue
        rows[name] = {
            "urdf_mm": float(np.mean([r.urdf for r in some])),
            "found_mm": float(np.mean([r.found for r in some])),
            "sigma_mm": float(np.mean([r.sigma for r in some])),
            "nees": float(np.mean([r.nees for r in some])),
            "nees_max": max(r.nees for r in some),
            "worse": float(np.mean([r.found > r.urdf for r in some])),
            "alarms": float(np.mean([r.alarm for r in some])),
        }
    return rows


def show(console: Console, robot: str, rows: dict[str, dict[str, float]]) -> None:
    """Prints the table of one robot."""
    table = Table(title=f"{robot}: horizontal error of the predicted CoM, nothing declared")
    heads = ("URDF mm", "found mm", "sigma mm", "NEES", "worst", "worse than URDF", "alarms")
    for heading in ("true errors", *heads):
        table.add_column(heading)
    for name, row in rows.items():
        table.add_row(name, *(f"{value:.2f}" for value in row.values()))
    console.print(table)


def main() -> None:
    """Runs all cases in two processes, prints tables and the JSON line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="16 seeds")
    parser.add_argument("--seeds", type=int, default=0, help="how many instead")
    parser.add_argument("--cases", default="", help="comma-separated parts of names")
    parser.add_argument("--robots", default="hoap2,talos")
    options = parser.parse_args()
    seeds = options.seeds or (16 if options.full else 4)
    words = [word for word in options.cases.split(";") if word]
    jobs = [
        (robot, name, seed)
        for robot in options.robots.split(",")
        for name in CASES
        for seed in range(seeds)
        if not words or any(word in name for word in words)
    ]
    console = Console(width=120)
    with ProcessPoolExecutor(2) as pool:
        runs = list(pool.map(run, *zip(*jobs, strict=True), chunksize=2))
    robots = {}
    for robot in options.robots.split(","):
        robots[robot] = summarize([each for each in runs if each.robot == robot])
        show(console, robot, robots[robot])
    for each in runs:
        if each.cause:
            console.print(f"{each.robot}, {each.case}: {each.cause}")
    print(f"{np.mean([each.seconds for each in runs]):.1f} CPU s an identification")
    within = [
        (name, row) for rows in robots.values() for name, row in rows.items() if CASES[name].within
    ]
    nees = [row["nees"] for name, row in within if name.startswith("all")] or [float("nan")]
    summary = {
        "robots": robots,
        "nees_range": [min(nees), max(nees)],
        "worse_than_urdf": sum(row["found_mm"] > row["urdf_mm"] for _, row in within),
        "worse_runs": float(np.mean([row["worse"] for _, row in within])),
    }
    print(json.dumps(_rounded(summary)))


def _rounded(value: object) -> object:
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


if __name__ == "__main__":
    main()
