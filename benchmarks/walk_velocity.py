"""Humanoids walk on and on by cmd_vel: 100 steps with turns, to the side, backwards, and a stop.

What ccgd_gait does with its stabiliser, without ROS: session, planning again after each step (as
long as it takes, at least 0.3 s ahead), targets at 200 Hz with their limits. Sensors are 5 ms late;
their errors are those of walk_robustness.py. Stiff and soft ground. Nothing of the simulator's
truth is used.

    tools/in_env python benchmarks/walk_velocity.py [--robots talos hoap2] [--steps 100] [--full]

The last line is one JSON object:
    robots         {robot: {ground: {steps, fell, stopped, way_m, turn_deg, plan_s, com_error_mm}}}:
                   steps that were made; whether it fell, or stopped before it was to (the reason);
                   length of the planned way and sum of its turns; CPU time of a plan (median);
                   distance of the measured CoM to the plan's (mean)
    fell           walks that ended in a fall
    completed      walks with all their steps; of: walks
    outside        targets beyond a joint's limits of position or speed
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from processes import in_processes
from walk_robustness import PERIOD, ROBOTS, turned

from com_control.walking.biped import Biped, find_stance
from com_control.walking.session import WalkPhase, WalkSession
from com_control.walking.stabiliser import Stabiliser, ankle_stiffness
from com_control.walking.velocity import VelocityWalker
from com_control.walking.walk_monitor import Reading, WalkChecks, WalkEstimator
from com_control.walking.walker import Walker
from com_model import load_robot
from com_model.dynamics import GRAVITY
from com_model.dynamics.link_frames import LinkFrames
from com_model.robots import find_robot
from com_simulation.physics.sensors import NoiseLevels
from com_simulation.physics.simulation import Simulation
from com_simulation.physics.world_builder import build_world

LEAD = 0.3  # s, at least, within which a walk is planned again
# Fractions of the step's length, and of it to the side, and rad, for each step; in equal parts.
WAYS = ((1.0, 0.0, 0.0), (0.6, 0.0, 0.15), (0.5, 0.2, 0.0), (0.6, 0.0, -0.15), (-0.5, 0.0, 0.0))
GROUNDS = ("stiff", "soft")


@dataclass(frozen=True)
class Run:
    """One walk."""

    robot: str
    ground: str
    steps: int
    seed: int


@dataclass
class Result:
    """What became of it."""

    steps: int
    fell: bool
    stopped: str
    way_m: float
    turn_deg: float
    plan_s: float
    com_error_mm: float
    outside: int


def simulate(run: Run) -> Result:
    """Walks."""
    model, config = load_robot(run.robot)
    biped, request = Biped.from_config(model, config), replace(ROBOTS[run.robot], method="refined")
    weight = model.mass * GRAVITY
    world = build_world(model, config, urdf_path=find_robot(run.robot).urdf, contact=run.ground)
    rng = np.random.default_rng(run.seed)
    bias = 3e-3 * weight * rng.standard_normal((2, 6)) * [1.0, 1.0, 1.0, 0.05, 0.05, 0.05]
    noise = NoiseLevels(
        position=2e-4,
        orientation=5e-4,
        orientation_bias=3e-3,
        force=2e-3 * weight,
        torque=1e-4 * weight,
    )
    simulation = Simulation(world, PERIOD, noise, run.seed)
    stabiliser = Stabiliser(biped, ankle_stiffness(biped, config), PERIOD, 2.0 * PERIOD)
    session = WalkSession(biped, WalkChecks(biped), stabiliser=stabiliser)
    walker, estimator = Walker(biped), WalkEstimator(biped)
    planner = VelocityWalker(walker, request, find_stance(biped, biped.posture))
    period = request.step_time + request.double_support
    scale = np.array([request.step_length, request.step_length, 1.0]) / period
    lag = float(np.median(world.servos.damping / world.servos.stiffness))
    up = find_stance(biped, biped.posture).R_walk_root[2]
    imu_frame = LinkFrames(model, [world.imu_link])
    way = turn = 0.0
    last: Any = None
    sent: Any = None
    outside, took, errors = 0, list[float](), list[float]()
    due: tuple[float, Any, float] | None = None  # when a plan is ready, the plan, where it changes
    while True:
        now, old = simulation.advance(), last
        last = now
        if old is None:
            continue
        R = turned(old.imu_orientation) @ imu_frame.poses(old.position)[0][0].T
        tilt = float(np.arccos(np.clip(R[2] @ up, -1.0, 1.0)))
        reading = Reading(old.time, old.position, old.wrenches + bias, tilt, R_world_root=R)
        session.update(reading)
        if session.outcome is not None and session.state is not WalkPhase.WALKING:
            break
        if session.state is WalkPhase.READY and now.time > 1.0:
            session.start_planning()
            session.begin(planner.begin(np.array(WAYS[0]) * scale, biped.posture), reading)
        planned, walk = session.planned_now(), session.walk
        if session.state is WalkPhase.WALKING and planned is not None and walk is not None:
            made = max(planned.step, 0)
            part = min(made * len(WAYS) // run.steps, len(WAYS) - 1)
            velocity = np.array(WAYS[part]) * scale * (made < run.steps - 2)
            view = estimator.estimate(reading, planned)
            if view is not None:
                errors.append(float(np.linalg.norm(view.com - planned.com)))
            if due is not None and reading.time >= due[0]:
                session.go_on(due[1], due[2], reading.time)
                walk, due = session.walk or walk, None
            at = session.walk_time + max(LEAD, 1.5 * took[-1] if took else 0.0)
            if due is None and planner.due(walk, at, velocity):
                begin = time.thread_time()  # whatever else runs here
                changed = planner.go_on(walk, at, velocity)
                took.append(time.thread_time() - begin)
                due = reading.time + took[-1], changed, at
                steps = changed.plan.steps[-4:-2]
                if len(steps) == 2:
                    way += 0.5 * float(np.linalg.norm(steps[1].position - steps[0].position))
                    turn += abs(steps[1].yaw - steps[0].yaw)
        target = session.target_at(now.time + 2.0 * PERIOD + lag)
        if target is not None:
            q = target[0]
            over = (q < model.lower - 1e-9) | (q > model.upper + 1e-9)
            if sent is not None:
                over |= np.abs(q - sent) > 1.01 * PERIOD * model.velocity_limits + 1e-6
            outside, sent = outside + int(over.sum()), q
            simulation.lead(q)
    outcome = session.outcome
    return Result(
        outcome.steps,
        session.state is WalkPhase.FALLEN,
        outcome.reason,
        round(way, 2),
        round(float(np.degrees(turn))),
        round(float(np.median(took)), 3),
        round(1e3 * float(np.mean(errors)), 1),
        outside,
    )


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--robots", nargs="+", choices=ROBOTS, default=list(ROBOTS)[:4])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--full", action="store_true", help="five seeds")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    seeds = range(811, 811 + (5 if options.full else options.seeds))
    runs = [
        Run(robot, ground, options.steps, seed)
        for robot in options.robots
        for ground in GROUNDS
        for seed in seeds
    ]
    results = in_processes(simulate, runs, "walks", options.processes)
    robots: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for run, result in zip(runs, results, strict=True):
        found = {key: value for key, value in asdict(result).items() if key != "outside"}
        robots.setdefault(run.robot, {}).setdefault(run.ground, []).append(found)
        print(f"{run.robot:10} {run.ground:6} {found}")
    done = [r for run, r in zip(runs, results, strict=True) if r.steps >= run.steps and not r.fell]
    summary = {
        "robots": {
            robot: {ground: found[0] if len(found) == 1 else found for ground, found in by.items()}
            for robot, by in robots.items()
        },
        "fell": sum(result.fell for result in results),
        "completed": len(done),
        "of": len(runs),
        "outside": sum(result.outside for result in results),
    }
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
