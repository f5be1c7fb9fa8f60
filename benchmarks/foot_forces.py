"""Wrenches of the feet without foot force sensors, against the simulator's contact forces.

A Go2 that trots and a G1 that walks and sways slowly in MuJoCo, open loop, wrong as in
walking_lab.py: masses, CoMs, a payload, gains, biases, noise, encoder zeros, IMU. Friction by the
load is added to what the drives report: of the Go2 as in its configuration +-30 %, of the G1 1 to
4 % of the torque. The G1's Coulomb friction is 0.5 to 1.5 % of the torque limits (0.3 to 2 N m in
the legs); its estimator has 0.9 N m and 2.5 % for all joints. The robots are weighed (mass of
foot_forces); the table has the same without. Vertical forces are compared in the band of the
filter, and as a percentage of the weight; contact is true from 5 % of the weight on, and a
touch-down follows 40 ms in the air.

The last line is one JSON object: slow_percent, walking_percent, trotting_percent (rms of a foot's
force, of the robots drawn the largest), contact_f1 (of walking and trotting, the smaller),
touchdown_ms (median), sample_us (median time of a sample, G1).
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from walking_humanoid import HUMANOIDS, record_humanoid
from walking_lab import GAITS, PERIOD, RobotWithErrors, Walk, Wrong, record

from com_estimation.trunk.interface import Sample
from com_estimation.trunk.motion import StateVariableFilter
from com_estimation.whole_body.foot_forces import BANDWIDTH, FootForceEstimator
from com_model.actuators import ActuatorModel, Actuators
from com_model.dynamics import GRAVITY
from com_model.dynamics.link_frames import LinkFrames

Array = NDArray[np.float64]

SETTLED = 200  # samples
TOUCHING, AIR, DOWN = (
    0.05,
    20,
    30,
)  # of the weight; samples before and after a touch-down
# of the Go2's drives, and of the G1's
MU_FACTOR, MU = (0.7, 1.3), (0.01, 0.04)
NOMINAL = ActuatorModel(
    coulomb=0.9,
    coulomb_std=0.5,
    viscous=0.08,
    viscous_std=0.06,
    load_friction=0.025,
    load_friction_std=0.015,
    torque_bias_std=0.15,
)
"""Of the G1, as a data sheet may have it: the same for all joints."""


@dataclass(frozen=True)
class Score:
    """Of one recording.

    Attributes:
        percent: rms of a foot's vertical force, % of the weight.
        f1: of the contacts.
        late: s, of each touch-down.
        sample: s, median time of a sample.
    """

    percent: float
    f1: float
    late: list[float]
    sample: float


def true_loads(robot: RobotWithErrors, walk: Walk) -> Array:
    """Vertical forces (N, f) of the ground, N."""
    frames = LinkFrames(
        robot.believed, [foot.wrench_frame for foot in robot.config.feet]
    )
    loads = []
    for q, up, wrenches in zip(
        walk.clean.position, walk.clean.up, walk.wrenches, strict=True
    ):
        forces = np.einsum("fij,fj->fi", frames.poses(q)[0], wrenches[:, :3])
        loads.append(forces @ up)
    return np.array(loads)


def samples(robot: RobotWithErrors, walk: Walk) -> Iterator[Sample]:
    """What the sensors of a walk read."""
    model, log = robot.believed, walk.log
    link = model.link_index(robot.config.imu_link or model.root_link)
    R = model.bodies.R_body_link[link].T
    for k in range(len(log.time)):
        attitude = np.zeros((3, 3))
        attitude[2] = R @ log.up[k]
        yield Sample(
            log.time[k],
            log.position[k],
            log.effort[k],
            log.velocity[k],
            log.angular_velocity[k],
            log.specific_force[k],
            attitude,
        )


def judge(robot: RobotWithErrors, walk: Walk, mass: float | None) -> Score:
    """Estimates the forces of a recording and compares them."""
    estimator = FootForceEstimator(robot.believed, robot.config, mass)
    truth, weight = true_loads(robot, walk), GRAVITY * robot.true.mass
    low_pass = StateVariableFilter(BANDWIDTH, truth.shape[1])
    low_pass.start(truth[0])
    found, seconds, smooth = [], [], []
    for k, sample in enumerate(samples(robot, walk)):
        begin = time.perf_counter()
        estimate = estimator.update(sample)
        seconds.append(time.perf_counter() - begin)
        assert estimate is not None
        found.append(estimate)
        if k:
            low_pass.update(PERIOD, truth[k])
        smooth.append(low_pass.read()[0])
    error = np.array([f.loads for f in found])[SETTLED:] - np.array(smooth)[SETTLED:]
    contact, touching = np.array([f.contact for f in found]), truth > TOUCHING * weight
    right = (contact & touching)[SETTLED:].sum()
    f1 = 2.0 * right / (contact[SETTLED:].sum() + touching[SETTLED:].sum())
    late = []
    for c, k in np.argwhere(np.diff(touching, axis=0).T):
        before, after = touching[k - AIR : k + 1, c], touching[k + 1 : k + DOWN, c]
        if k > SETTLED + AIR and not before.any() and after.mean() > 0.7:
            late.append(PERIOD * int(np.argmax(contact[k + 1 :, c])))
    percent = 100.0 * float(np.sqrt((error**2).mean())) / weight
    return Score(percent, float(f1), late, float(np.median(seconds)))


def with_load_friction(walk: Walk, mu: Array) -> Walk:
    """A recording whose drives also lose a fraction mu (n,) of the torque."""
    assert walk.clean.velocity is not None
    lost = mu * np.abs(walk.clean.effort) * np.tanh(walk.clean.velocity / 0.02)
    return replace(walk, log=replace(walk.log, effort=walk.log.effort + lost))


def recordings(
    seed: int, seconds: float
) -> Iterator[tuple[str, RobotWithErrors, Walk]]:
    """The recordings of one pair of robots, by what the robot does."""
    rng = np.random.default_rng([seed, 8])
    robot, walks = record("go2", seed, seconds, Wrong(), GAITS[:2])
    drives = [robot.config.actuators.of(name) for name in robot.true.joint_names]
    usual = np.array([drive.load_friction or 0.0 for drive in drives])
    mu = usual * rng.uniform(*MU_FACTOR, len(usual))
    for walk in walks:
        yield "trotting", robot, with_load_friction(walk, mu)
    humanoid = replace(HUMANOIDS["g1"], drives=0.5)
    robot, walks = record_humanoid(humanoid, seed, seconds, ((0.07, 0.11, 0.09),))
    robot = replace(robot, config=replace(robot.config, actuators=Actuators(NOMINAL)))
    mu = rng.uniform(*MU, robot.true.n_joints)
    for walk in walks[:2]:
        yield "walking", robot, with_load_friction(walk, mu)
    yield "slow", robot, with_load_friction(walks[-2], mu)


def main() -> int:
    """Simulates, estimates, prints."""
    parser = argparse.ArgumentParser(description="Foot forces without sensors.")
    parser.add_argument("--robots", type=int, default=1, help="pairs of robots")
    parser.add_argument("--full", action="store_true", help="4 pairs")
    parser.add_argument("--seed", type=int, default=411)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each motion")
    args = parser.parse_args()
    table = Table("seed", "", "rms %", "not weighed", "F1", "touch-down ms", "us")
    scores: dict[str, list[Score]] = {"slow": [], "walking": [], "trotting": []}
    for seed in range(args.seed, args.seed + (4 if args.full else args.robots)):
        for what, robot, walk in recordings(seed, args.seconds):
            score = judge(robot, walk, robot.true.mass)
            scores[what].append(score)
            table.add_row(
                str(seed),
                what,
                f"{score.percent:.2f}",
                f"{judge(robot, walk, None).percent:.2f}",
                f"{score.f1:.3f}",
                f"{1e3 * np.median(score.late):.0f}" if score.late else "",
                f"{1e6 * score.sample:.0f}",
            )
    Console(width=100).print(table)
    moving = scores["walking"] + scores["trotting"]
    late = [value for score in moving for value in score.late]
    result = {
        f"{what}_percent": round(max(score.percent for score in own), 2)
        for what, own in scores.items()
    } | {
        "contact_f1": round(
            min(
                float(np.mean([score.f1 for score in scores[what]]))
                for what in ("walking", "trotting")
            ),
            3,
        ),
        "touchdown_ms": round(1e3 * float(np.median(late)), 1),
        "sample_us": round(1e6 * min(score.sample for score in scores["walking"]), 1),
    }
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
