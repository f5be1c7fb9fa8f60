"""Trotting robots in the simulator, without ROS: what their sensors read, and the truth beside it.

    run = TrotRun("scalf2", offset=(-0.03, 0.10, 0.0), seconds=10.0, seed=3)
    log = run_trot(run)
    for sample in log.samples():
        estimate = estimator.update(sample)
    error = estimate.com - log.trunk_com[-1]

A robot is put down, stands until it is at rest, and trots from time 0 on. The simulated robot may
differ from the model that gait and estimator have (`log.model`): its trunk's CoM is shifted, its
legs are heavier, its joints rub, a payload drops on it; and its sensors err (TROT_NOISE).

A script of its own shows one run: tools/in_env python benchmarks/trot_lab.py a1 --offset 0.02 0 0
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import mujoco
import numpy as np
from numpy.typing import NDArray
from processes import in_processes
from trot_log import Recorder, TrotLog, TrotRun

from com_control.trot.parameters import GaitParameters
from com_control.trot.trot import NO_FEEDBACK, TrotFeedback, TrotGait
from com_estimation.trunk.interface import Sample
from com_model import RobotConfig, RobotModel
from com_model.dynamics import GRAVITY
from com_model.legs import Leg, quadruped_legs
from com_model.robots import find_robot
from com_model.urdf.editing import Inertial, edit_inertials
from com_simulation.physics.events import Event
from com_simulation.physics.sensors import TROT_NOISE, NoiseLevels
from com_simulation.physics.simulation import Simulation
from com_simulation.physics.true_errors import Payload
from com_simulation.physics.world_builder import World, build_world

__all__ = [
    "CLEAN",
    "TROT_NOISE",
    "Gait",
    "TrotLog",
    "TrotRun",
    "build",
    "in_processes",
    "run_trot",
    "summary",
]

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

STEP = 1e-4  # s, of the physics
SETTLING = 1.5  # s, of standing before the trot
PUSH_TIME = 0.1  # s
POSING = 0.7  # s of it, from the nominal posture to where the gait begins
CLEAN = NoiseLevels()
# Without feedback it is the swing feet, coming down early, that right a trunk whose CoM is off.
OPEN_LOOP = {"swing_compensation": False}


class GaitTarget(Protocol):
    """What a gait asks for: joint positions and velocities (n,) rad, which legs (4,) stand."""

    @property
    def position(self) -> Array: ...

    @property
    def velocity(self) -> Array: ...

    @property
    def stance(self) -> Flags: ...


class Gait(Protocol):
    """What makes joint targets; com_control.trot.trot.TrotGait is one."""

    def step(self, time: float, feedback: TrotFeedback = NO_FEEDBACK) -> GaitTarget:
        """Targets at a time; before time 0 the robot stands."""
        ...

    def set_velocity(self, velocity: Sequence[float]) -> None:
        """Trots with (3,) m/s forwards, m/s and rad/s to the left from now on."""
        ...


Feedback = Callable[[Sample], "Array | None"]
MakeGait = Callable[[RobotModel, RobotConfig, dict[str, Any]], Gait]


def run_trot(
    run: TrotRun, feedback: Feedback | None = None, make_gait: MakeGait | None = None
) -> TrotLog:
    """Simulates a trot.

    Args:
        run: What to simulate.
        feedback: Called with each sample; the trunk's CoM (3,) m from the geometric centre that
            the gait is to count with, or None while there is none.
        make_gait: Another gait than com_control's.

    Raises:
        DivergedError: The physics became unstable.
    """
    model, config, world = build(run)
    parameters = run.gait if feedback is not None else OPEN_LOOP | run.gait
    gait = (make_gait or trot_gait)(model, config, parameters)
    payload = None
    if run.payload is not None:
        mass, position, time = run.payload
        payload = Payload(mass, tuple(position), time + SETTLING)
    events = []
    if run.rope is not None:
        lift = np.array([0.0, 0.0, run.rope[0] * GRAVITY * model.mass])
        hip = int(
            model.bodies.path_to(quadruped_legs(model, config, fewest=2)[0].body)[0]
        )
        name, begin = model.bodies.names[hip], run.rope[1] + SETTLING
        events = [Event("rope", "PULL", hip, lift, name, begin)]
    simulation = Simulation(
        world, 1.0 / run.rate, run.noise, run.seed, payload, events=events
    )
    R_imu_root = model.bodies.R_body_link[
        model.link_index(world.imu_link)
    ].T  # fixed to the trunk
    stand(simulation, gait)
    mass = float(world.mj.body_subtreemass[1])
    recorder = Recorder(run, model, config, simulation.sample_period)
    stance = np.ones(4, dtype=bool)
    offset, way = None, deque(run.way)
    for k in range(recorder.count):
        now = k * simulation.sample_period
        pushed = run.push[2] <= now < run.push[2] + PUSH_TIME
        simulation.push(mass / PUSH_TIME * pushed * np.array([*run.push[:2], 0.0]))
        while way and now >= way[0][0]:
            gait.set_velocity(way.popleft()[1])
        reading = simulation.advance()
        sample = recorder.record(k, reading, stance, offset)
        if feedback is not None:
            offset = feedback(sample)
        target = gait.step(
            (k + 1) * simulation.sample_period,
            TrotFeedback(
                sample.R_world_imu @ R_imu_root,
                offset,
                R_imu_root.T @ sample.angular_velocity,
            ),
        )
        stance = target.stance
        simulation.lead(target.position, target.velocity)
    return recorder.log()


def build(run: TrotRun) -> tuple[RobotModel, RobotConfig, World]:
    """Returns what gait and estimator know of the robot, and the simulated one."""
    files = find_robot(run.robot)
    path = files.config
    if run.config:
        path = (
            Path(run.config)
            if run.config.endswith(".yaml")
            else find_robot(run.config).config
        )
    if path is None:
        raise SystemExit(f"robot {run.robot!r} has no configuration: give config")
    model, config = RobotModel.from_file(files.urdf), RobotConfig.from_file(path)
    legs = quadruped_legs(model, config, fewest=2)
    true = model
    if np.any(run.leg_mass_error):
        factors = 1.0 + np.broadcast_to(np.asarray(run.leg_mass_error, dtype=float), 4)
        true = RobotModel.from_urdf(with_leg_masses(model, legs, factors))
    world = build_world(
        true,
        config,
        base="floating",
        step=STEP,
        urdf_path=files.urdf,
        integrator="euler",
        trunk_com_offset=run.offset,
        joint_friction=run.friction,
        ground_slope=run.slope,
        edit=partial(lay_tiles, drop=run.tiles, seed=run.seed) if run.tiles else None,
    )
    world.mj.geom_solref[:, 0] = run.contact_time
    world.mj.geom_friction[:, 0] *= run.grip
    world.mj.dof_damping[world.joint_dof] += run.damping
    return model, config, world


def lay_tiles(spec: mujoco.MjSpec, drop: float, seed: int, size: float = 0.2) -> None:
    """Puts tiles in place of the ground, lower than that by up to `drop`, 3 m around."""
    rng, ground = np.random.default_rng(seed), spec.geom("ground")
    ground.pos = [0.0, 0.0, -2.0 * drop]
    for x, y in np.ndindex(31, 31):
        top = -rng.uniform(0.0, drop)
        spec.worldbody.add_geom(
            type=mujoco.mjtGeom.mjGEOM_BOX,
            size=[0.5 * size, 0.5 * size, 0.05],
            pos=[size * (x - 15), size * (y - 15), top - 0.05],
            contype=ground.contype,
            conaffinity=ground.conaffinity,
            friction=ground.friction,
            condim=ground.condim,
        )


def with_leg_masses(model: RobotModel, legs: Sequence[Leg], factors: Array) -> str:
    """Returns the URDF with masses and inertias of the legs' links times factors (4,)."""
    changed = {}
    bodies = model.bodies
    for leg, factor in zip(legs, factors, strict=True):
        for i, link in enumerate(model.link_names):
            body = bodies.body_of_link[i]
            if (
                body > 0
                and bodies.q_index[body] in leg.joints
                and model.link_masses[i] > 0.0
            ):
                changed[link] = Inertial(
                    factor * model.link_masses[i],
                    model.link_coms[i],
                    factor * model.link_inertias[i],
                )
    return edit_inertials(model.xml, changed)


def trot_gait(
    model: RobotModel, config: RobotConfig, parameters: dict[str, Any]
) -> Gait:
    """com_control's trot."""
    return TrotGait(model, config, GaitParameters(**parameters))


def stand(simulation: Simulation, gait: Gait) -> None:
    """Goes from the nominal posture to where the gait begins, and comes to rest there."""
    start, end = simulation.world.posture, gait.step(-1.0).position
    count = round(SETTLING / simulation.sample_period)
    for k in range(count):
        simulation.advance()
        fraction = min((k + 1) / (count * POSING / SETTLING), 1.0)
        blend = fraction**3 * (10.0 - 15.0 * fraction + 6.0 * fraction**2)
        simulation.lead(start + blend * (end - start))


def summary(log: TrotLog) -> dict[str, object]:
    """What a run was like."""
    weight = GRAVITY * (log.model.mass - log.model.bodies.mass[0] + log.trunk_mass)
    upwards = np.einsum("kfj,kj->k", log.true_forces, log.R_world_root[:, 2])
    return {
        "robot": log.model.name,
        "seconds": log.run.seconds,
        "roll_rms_deg": round(float(np.degrees(np.sqrt((log.roll**2).mean()))), 3),
        "pitch_rms_deg": round(float(np.degrees(np.sqrt((log.pitch**2).mean()))), 3),
        "tilt_max_deg": round(
            float(
                np.degrees(np.arccos(np.clip(log.R_world_root[:, 2, 2], -1, 1)).max())
            ),
            2,
        ),
        "drift_m": np.round(
            log.root_position[-1, :2] - log.root_position[0, :2], 3
        ).tolist(),
        "lowest_over_first_height": round(
            float(log.root_position[:, 2].min() / log.root_position[0, 2]), 3
        ),
        "force_over_weight": round(float((upwards / weight).mean()), 4),
        "effort_max": round(float(np.abs(log.effort).max()), 1),
    }


def main() -> int:
    """Shows one run."""
    parser = argparse.ArgumentParser(
        description="One trot in the simulator, and what it was like."
    )
    parser.add_argument("robot", help="a robot's name, or the path of its URDF")
    parser.add_argument(
        "--config", default="", help="its configuration, if not its own"
    )
    parser.add_argument(
        "--offset", type=float, nargs=3, default=(0.0, 0.0, 0.0), metavar="M"
    )
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    start = time.perf_counter()
    log = run_trot(TrotRun(**vars(options)))
    wall = time.perf_counter() - start
    print(json.dumps(summary(log) | {"wall_s": round(wall, 2)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
