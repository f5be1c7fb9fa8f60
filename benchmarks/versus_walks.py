"""TALOS sways and walks: the scenarios of benchmarks/versus.py in which the whole robot moves.

Least squares and MuJoCo's system identification see every EVERY-th sample of the second half of the
log: kinematics with their derivatives, and the wrench of the ground on the robot. The root moves as
the leg odometry of com_estimation.humanoid has it, for all methods.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from baselines.humanoid_com import Track, rest_check
from baselines.whole_body import moving, mujoco_identification, regressor_identification
from diagnosis import Batch, arrange
from diagnosis_lab import PERIOD, Log, believed, load, simulate, spoil
from identification_scenario import PinocchioRobot
from numpy.typing import NDArray

from com_estimation.humanoid.estimator import HumanoidEstimator

Array = NDArray[np.float64]

ROBOT, SEED = "talos", 7000
LAST, EVERY = 2.0, 8  # s over which errors are averaged; samples


@dataclass(frozen=True)
class Score:
    """How one method did in one run."""

    error_mm: float | None
    nees: float | None = None
    cpu_s: float | None = None
    why: str = ""


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
    return simulate(ROBOT, motion, seed, loads, feedback=motion == "walk", contact=contact)


def walk_scores(scenario: tuple[str, tuple[str, ...], str], number: int) -> dict[str, Score]:
    """All methods on the same log of a motion, with culprits of diagnosis.py, on a ground."""
    motion, culprits, contact = scenario
    seed = SEED + number
    batch = Batch(ROBOT, motion, seed)
    log = simulated(motion, seed, culprits[0], contact)
    if np.isfinite(log.fell_at):
        raise RuntimeError(f"{scenario}: the robot fell at {log.fell_at:.1f} s; take another SEED")
    errors = [arrange(batch, culprit)[1] for culprit in culprits]
    wrong = replace(errors[0], tilt=errors[-1].tilt)
    read, model = spoil(ROBOT, log, wrong, seed), believed(ROBOT, wrong, seed)
    config = load(ROBOT)[1]
    watched = watch(HumanoidEstimator(model, config), read)
    last = slice(-round(LAST / PERIOD), None)

    def error(com: Array) -> Array:
        """(M, 2) m, horizontal."""
        return np.asarray(np.einsum("nij,nj->ni", log.R[last], com - log.com[last])[:, :2])

    def score(com: Array, seconds: float, nees: float | None = None) -> Score:
        return Score(1e3 * float(np.linalg.norm(error(com), axis=1).mean()), nees, seconds)

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
        found[label] = score(np.array([corrected.com(q) for q in read.q[last]]), seconds)
    e, R = error(watched.com[last]), log.R[last]
    P = np.einsum("nij,njk,nlk->nil", R, watched.covariance[last], R)[:, :2, :2]
    nees = float(np.einsum("ni,nij,nj->n", e, np.linalg.inv(P), e).mean()) / 2.0
    found["ours"] = score(watched.com[last], watched.seconds, nees)
    return found


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
