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

Then HOAP-2 walks 20 steps with the nodes of walk.launch.xml, in real time and twice in lockstep:
    node_percent   processor time of ccgd_gait over the time of the walk in real time, with the
                   stabiliser at 200 Hz, by the computer's clock as on a robot (on a quiet
                   machine: other load makes it wait and miss)
    node_hz        states that came of it in a second
    twice_steps    steps that are made, of both walks; twice_compared: states that were received of
                   both, and twice_differ: those of them in which CoM, DCM or ZMP differ
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from cold_starts import RUN_LAUNCH
from processes import in_processes
from rclpy.executors import SingleThreadedExecutor
from walk_robustness import PERIOD, ROBOTS, turned

from com_control.walking.biped import Biped
from com_control.walking.session import WalkPhase, WalkSession
from com_control.walking.stabiliser import Stabiliser, ankle_stiffness
from com_control.walking.velocity import VelocityWalker
from com_control.walking.walk_monitor import Reading, WalkChecks, WalkEstimator
from com_control.walking.walk_plan import find_stance
from com_control.walking.walker import Walker
from com_demos.background import Background, free_domain_id
from com_model import load_robot
from com_model.dynamics import GRAVITY
from com_model.dynamics.link_frames import LinkFrames
from com_model.robots import find_robot
from com_msgs.msg import WalkState
from com_ros import qos
from com_ros.conversions import stamp_to_ns
from com_simulation.physics.sensors import NoiseLevels
from com_simulation.physics.simulation import Simulation
from com_simulation.physics.world_builder import build_world

LEAD = 0.3  # s, at least, within which a walk is planned again
# Fractions of the step's length, and of it to the side, and rad, for each step; in equal parts.
WAYS = (
    (1.0, 0.0, 0.0),
    (0.6, 0.0, 0.15),
    (0.5, 0.2, 0.0),
    (0.6, 0.0, -0.15),
    (-0.5, 0.0, 0.0),
)
GROUNDS = ("stiff", "soft")
NODE_STEPS, LIMIT = 20, 400.0  # s of real time
NODE_WORDS = (
    "robot:=hoap2 walk:=true step_length:=0.05 step_time:=0.6 double_support:=0.2 "
    f"drive_delay:=0.027 steps:={NODE_STEPS} rviz:=false sesc:=false"
).split()
LOCKSTEP = [
    "use_sim_time:=true",
    "lockstep:=true",
    "real_time_factor:=0.0",
    "input_timeout:=60.0",
]


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
    biped, request = (
        Biped.from_config(model, config),
        replace(ROBOTS[run.robot], method="refined"),
    )
    weight = model.mass * GRAVITY
    world = build_world(
        model, config, urdf_path=find_robot(run.robot).urdf, contact=run.ground
    )
    rng = np.random.default_rng(run.seed)
    bias = (
        3e-3 * weight * rng.standard_normal((2, 6)) * [1.0, 1.0, 1.0, 0.05, 0.05, 0.05]
    )
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
    # when a plan is ready, the plan, where it changes
    due: tuple[float, Any, float] | None = None
    while True:
        now, old = simulation.advance(), last
        last = now
        if old is None:
            continue
        R = turned(old.imu_orientation) @ imu_frame.poses(old.position)[0][0].T
        tilt = float(np.arccos(np.clip(R[2] @ up, -1.0, 1.0)))
        reading = Reading(
            old.time, old.position, old.wrenches + bias, tilt, R_world_root=R
        )
        session.update(reading)
        if session.outcome is not None and session.state is not WalkPhase.WALKING:
            break
        if session.state is WalkPhase.READY and now.time > 1.0:
            session.start_planning()
            session.begin(
                planner.begin(np.array(WAYS[0]) * scale, biped.posture), reading
            )
        planned, walk = session.planned_now(), session.walk
        if (
            session.state is WalkPhase.WALKING
            and planned is not None
            and walk is not None
        ):
            made = max(planned.step, 0)
            part = min(made * len(WAYS) // run.steps, len(WAYS) - 1)
            velocity = np.array(WAYS[part]) * scale * (made < run.steps - 2)
            view = estimator.estimate(reading, planned)
            if view is not None:
                errors.append(float(np.linalg.norm(view.com - planned.com)))
            if due is not None and reading.time >= due[0]:
                session.continue_with(due[1], due[2], reading.time)
                walk, due = session.walk or walk, None
            at = session.walk_time + max(LEAD, 1.5 * took[-1] if took else 0.0)
            if due is None and planner.due(walk, at, velocity):
                begin = time.thread_time()  # whatever else runs here
                changed = planner.plan_further(walk, at, velocity)
                took.append(time.thread_time() - begin)
                due = reading.time + took[-1], changed, at
                steps = changed.plan.steps[-4:-2]
                if len(steps) == 2:
                    way += 0.5 * float(
                        np.linalg.norm(steps[1].position - steps[0].position)
                    )
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


def cpu_of(name: str, domain: int | None) -> float:
    """Processor time, s, of the process of a node in a domain; NaN: there is none."""
    own = f"ROS_DOMAIN_ID={domain}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            if not any(word.endswith(f"com_control/{name}".encode()) for word in words):
                continue
            if own in (folder / "environ").read_bytes().split(b"\0"):
                times = (folder / "stat").read_text().rpartition(")")[2].split()[11:13]
                return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")
        except OSError:
            continue
    return float("nan")


def walk_by_nodes(*words: str) -> tuple[dict[int, tuple[float, ...]], int, float]:
    """States of a walk by their stamps, ns; steps; processor time of ccgd_gait in a second, s."""
    domain = free_domain_id()
    context, states = rclpy.Context(), dict[int, tuple[float, ...]]()
    rclpy.init(context=context, domain_id=domain)
    node = rclpy.create_node("walk_velocity", context=context)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    seen: list[WalkState] = []
    used: list[tuple[float, float]] = []  # stamp, s, and processor time

    def on_state(msg: WalkState) -> None:
        seen[:] = [msg]
        if msg.state != WalkState.WALKING:
            return
        points = msg.com, msg.dcm, msg.zmp
        stamp_ns = stamp_to_ns(msg.header.stamp)
        states[stamp_ns] = tuple(v for p in points for v in (p.x, p.y))
        if not used or stamp_ns / 1e9 - used[-1][0] > 1.0:
            used.append((stamp_ns / 1e9, cpu_of("ccgd_gait", domain)))

    node.create_subscription(WalkState, "gait/state", on_state, qos.stream(1000))
    env, end = os.environ | {"ROS_DOMAIN_ID": str(domain)}, time.monotonic() + LIMIT
    with tempfile.TemporaryDirectory() as folder:
        command = [RUN_LAUNCH, "com_bringup", "walk.launch.xml", *NODE_WORDS, *words]
        with Background(command, f"{folder}/nodes.log", env):
            while time.monotonic() < end and not (states and seen[0].last_walk):
                executor.spin_once(timeout_sec=0.1)
    executor.shutdown()
    node.destroy_node()
    rclpy.shutdown(context=context)
    (begin, before), (last, after) = used[0], used[-1]
    steps = NODE_STEPS if seen[0].last_walk == "completed" else max(seen[0].step, 0)
    return states, steps, (after - before) / (last - begin)


def walk_twice() -> dict[str, Any]:
    """The figures of the walks by the nodes."""
    live, _, used = walk_by_nodes()
    (one, first, _), (other, second, _) = (
        walk_by_nodes(*LOCKSTEP),
        walk_by_nodes(*LOCKSTEP),
    )
    both = sorted(set(one) & set(other))
    differ = sum(not np.array_equal(one[t], other[t], equal_nan=True) for t in both)
    return {
        "node_percent": round(100.0 * used, 1),
        "node_hz": round(1e9 * len(live) / (max(live) - min(live)), 1),
        "twice_steps": [first, second],
        "twice_compared": len(both),
        "twice_differ": differ,
    }


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
        found = {
            key: value for key, value in asdict(result).items() if key != "outside"
        }
        robots.setdefault(run.robot, {}).setdefault(run.ground, []).append(found)
        print(f"{run.robot:10} {run.ground:6} {found}")
    done = [
        r
        for run, r in zip(runs, results, strict=True)
        if r.steps >= run.steps and not r.fell
    ]
    summary = {
        "robots": {
            robot: {
                ground: found[0] if len(found) == 1 else found
                for ground, found in by.items()
            }
            for robot, by in robots.items()
        },
        "fell": sum(result.fell for result in results),
        "completed": len(done),
        "of": len(runs),
        "outside": sum(result.outside for result in results),
        **walk_twice(),
    }
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
