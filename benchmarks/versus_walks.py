"""TALOS sways and walks: the scenarios of benchmarks/versus.py in which the whole robot moves.

Least squares and MuJoCo's system identification see every EVERY-th sample of the second half of the
log: kinematics with their derivatives, and the wrench of the ground on the robot. The root moves as
the leg odometry of com_estimation.humanoid has it, for all methods.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from baselines.humanoid_com import Track, rest_check
from baselines.whole_body import moving, mujoco_identification, regressor_identification
from diagnosis import Batch, arrange
from diagnosis_lab import PERIOD, Log, believed, load, simulate, spoil
from identification_bags import START_NS, Moving, Samples
from identification_scenario import PinocchioRobot
from numpy.typing import NDArray
from versus_estimates import Recorded, Score, judge_all

from com_estimation.humanoid.estimator import HumanoidEstimator
from com_model import RobotConfig, RobotModel
from com_model.dynamics.kinematics import link_pose_batch

Array = NDArray[np.float64]

ROBOT, SEED = "talos", 7000
LAST, EVERY = 2.0, 8  # s over which errors are averaged; samples


@dataclass(frozen=True, eq=False)
class Watched:
    """What our estimator made of a log of N samples.

    Attributes:
        com: (N, 3) m of ours, root axes.
        covariance: (N, 3, 3) m^2.
        root: (N, 3) m by leg odometry.
        track: Of the URDF's robot.
        seconds: CPU time.
    """

    com: Array
    covariance: Array
    root: Array
    track: Track
    seconds: float


@cache
def simulated(motion: str, seed: int, culprit: str, contact: str) -> Log:
    """A motion with its loads, if any."""
    loads = arrange(Batch(ROBOT, motion, seed), culprit)[0]
    return simulate(
        ROBOT, motion, seed, loads, feedback=motion == "walk", contact=contact
    )


@dataclass(frozen=True, eq=False)
class WalkCase:
    """A motion: its log with the truth, the log as sensors read it, and the URDF's robot."""

    log: Log
    read: Log
    model: RobotModel
    config: RobotConfig

    def recorded(self) -> Recorded:
        """As anybody's estimate is judged, and written to a bag."""
        read, config = self.read, self.config
        R_imu = link_pose_batch(
            self.model, read.q, config.imu_link or self.model.root_link
        )[0]
        times = START_NS + np.round(1e9 * read.time).astype(np.int64)
        speed = np.gradient(read.q, PERIOD, axis=0)
        moving = Moving(read.R @ R_imu, speed)
        readings = Samples(
            times, read.q, read.effort, read.wrenches, moving.R_imu[:, 2], moving
        )
        urdf = PinocchioRobot(self.model.xml, self.model, config.feet)
        return Recorded(
            ROBOT,
            self.model,
            config,
            readings,
            self.log.com,
            self.log.R,
            len(read.q) - round(LAST / PERIOD),
            lambda path: corrected_coms(urdf, path, read.q),
        )


def corrected_coms(urdf: PinocchioRobot, path: Path, q: Array) -> Array:
    """CoM (N, 3) m of the robot of a URDF, root axes."""
    robot = PinocchioRobot(path.read_text(), urdf.model, urdf.feet)
    return np.array([robot.com(row) for row in q])


def walk_case(scenario: tuple[str, tuple[str, ...], str], number: int) -> WalkCase:
    """A motion, with culprits of diagnosis.py, on a ground."""
    motion, culprits, contact = scenario
    seed = SEED + number
    batch = Batch(ROBOT, motion, seed)
    log = simulated(motion, seed, culprits[0], contact)
    if np.isfinite(log.fell_at):
        raise RuntimeError(
            f"{scenario}: the robot fell at {log.fell_at:.1f} s; take another SEED"
        )
    errors = [arrange(batch, culprit)[1] for culprit in culprits]
    wrong = replace(errors[0], tilt=errors[-1].tilt)
    model = believed(ROBOT, wrong, seed)
    return WalkCase(log, spoil(ROBOT, log, wrong, seed), model, load(ROBOT)[1])


def walk_scores(
    scenario: tuple[str, tuple[str, ...], str],
    number: int,
    estimates: Sequence[str] = (),
) -> dict[str, Score]:
    """All methods on the same log of a motion."""
    case = walk_case(scenario, number)
    log, read, model, config = case.log, case.read, case.model, case.config
    watched = watch(HumanoidEstimator(model, config), read)
    last = slice(-round(LAST / PERIOD), None)

    def error(com: Array) -> Array:
        """(M, 2) m, horizontal."""
        return np.asarray(
            np.einsum("nij,nj->ni", log.R[last], com - log.com[last])[:, :2]
        )

    def score(com: Array, seconds: float, nees: float | None = None) -> Score:
        return Score(
            1e3 * float(np.linalg.norm(error(com), axis=1).mean()), nees, seconds
        )

    def in_root(com: Array) -> Array:
        R, root = read.R[last], watched.root[last]
        return np.asarray(np.einsum("nji,nj->ni", R, com[last] - root))

    found = {"URDF as is": score(in_root(watched.track.com), 0.0)}
    start = time.process_time()
    found["constant offset"] = score(
        in_root(rest_check(watched.track)), time.process_time() - start
    )
    urdf = PinocchioRobot(model.xml, model, config.feet)
    start = time.process_time()
    states = moving(urdf, read.q, read.R, watched.root, read.wrenches, PERIOD)
    states = states.every(EVERY, len(read.q) // 2)
    kinematics = time.process_time() - start
    for label, method in (
        ("least squares", regressor_identification),
        ("MuJoCo sysid", mujoco_identification),
    ):
        start = time.process_time()
        corrected = method(urdf, states)
        seconds = kinematics + time.process_time() - start
        found[label] = score(
            np.array([corrected.com(q) for q in read.q[last]]), seconds
        )
    e, R = error(watched.com[last]), log.R[last]
    P = np.einsum("nij,njk,nlk->nil", R, watched.covariance[last], R)[:, :2, :2]
    nees = float(np.einsum("ni,nij,nj->n", e, np.linalg.inv(P), e).mean()) / 2.0
    found["ours"] = score(watched.com[last], watched.seconds, nees)
    return found | judge_all(estimates, case.recorded)


def watch(estimator: HumanoidEstimator, read: Log) -> Watched:
    """Runs our estimator over a log."""
    memory, plant = estimator._memory, estimator.layout.plant
    rows, ours, seconds = [], [], 0.0
    for k in range(len(read.time)):
        start = time.thread_time()
        out = estimator.update(read.time[k], read.q[k], read.R[k], read.wrenches[k])
        estimator.process()
        seconds += time.thread_time() - start
        assert out is not None
        ours.append((out.com, out.covariance))
        carried = np.maximum(memory.load, 0.0)
        ground = carried @ (memory.sole[1, :, 2] + memory.root[2]) / carried.sum()
        trunk = memory.R[1, plant.blocks.trunk] @ plant.triad[plant.blocks.trunk]
        total = memory.wrench[1].sum(axis=0)
        rows.append((memory.total[1].copy(), total, trunk, ground, memory.root.copy()))
    com, wrench, trunk, ground, root = map(np.array, zip(*rows, strict=True))
    track = Track(PERIOD, com, wrench, np.zeros((len(com), 6)), trunk, ground)
    ours_com, covariance = (np.array(part) for part in zip(*ours, strict=True))
    return Watched(ours_com, covariance, root, track, seconds)
