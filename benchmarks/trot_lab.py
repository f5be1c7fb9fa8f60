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
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Protocol, TypeVar

import mujoco
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from scipy.spatial.transform import Rotation

from com_estimation.trunk.interface import Sample
from com_model import RobotConfig, RobotModel
from com_model.legs import Leg, quadruped_legs
from com_model.urdf_edit import Inertial, edit_inertials
from com_simulation.noise import TROT_NOISE, NoiseLevels
from com_simulation.robots import find_robot
from com_simulation.sensors import Reading
from com_simulation.simulation import Simulation
from com_simulation.spec import GRAVITY
from com_simulation.trunk import Payload
from com_simulation.world import World
from com_simulation.world_builder import build_world

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
T, R = TypeVar("T"), TypeVar("R")

STEP = 1e-4  # s, of the physics
SETTLING = 1.5  # s, of standing before the trot
POSING = 0.7  # s of it, from the nominal posture to where the gait begins
CLEAN = NoiseLevels()


class Gait(Protocol):
    """What makes joint targets."""

    def step(
        self, time: float, R_world_root: Array | None, com_offset: Array | None
    ) -> tuple[Array, Flags]:
        """Joint targets (n,) and stance (4,) at a time; before time 0 the robot stands."""
        ...


@dataclass(frozen=True, eq=False)
class TrotRun:
    """What is simulated.

    Attributes:
        robot: Name of a robot, or path of the URDF that gait and estimator know.
        config: Name or path of its configuration; "": the robot's own.
        offset: (3,) m, of the trunk's true CoM from the URDF's, root link's axes.
        payload: (mass kg, (3,) m in the root's frame, time s), on the trunk from then on.
        seconds: Of trot, after standing.
        rate: Samples a second.
        seed: Of the sensors' errors.
        noise: Of the sensors.
        leg_mass_error: Masses and inertias of the simulated robot's legs are 1 + this times the
            model's: one number, or one for each leg.
        friction: N m, Coulomb friction of every joint, of which the model knows nothing.
        gait: Parameters of the gait other than the default ones, by name.
    """

    robot: str
    config: str = ""
    offset: Sequence[float] = (0.0, 0.0, 0.0)
    payload: tuple[float, Sequence[float], float] | None = None
    seconds: float = 10.0
    rate: float = 1000.0
    seed: int = 0
    noise: NoiseLevels = TROT_NOISE
    leg_mass_error: float | Sequence[float] = 0.0
    friction: float = 0.0
    gait: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class TrotLog:
    """What came of it: N samples of n joints; legs stand in the order of com_model.legs.

    Attributes:
        run: What was simulated.
        model: The robot as gait and estimator know it.
        config: Its configuration.
        time: (N,) s, from the beginning of the trot.
        position: (N, n) rad, measured.
        velocity: (N, n) rad/s, measured.
        effort: (N, n) N m, measured.
        angular_velocity: (N, 3) rad/s, measured, IMU's axes.
        specific_force: (N, 3) m/s^2, measured, IMU's axes.
        R_world_imu: (N, 3, 3), measured.
        foot_forces: (N, 4, 3) N, of the ground on each foot, measured by foot sensors, root axes.
        stance: (N, 4) which legs the gait has on the ground.
        true_forces: (N, 4, 3) N, the true forces, true root axes.
        trunk_mass: (N,) kg, true, payload included.
        trunk_com: (N, 3) m, true, in the root link's frame.
        trunk_inertia: (N, 3, 3) kg m^2, true, about that, root axes.
        R_world_root: (N, 3, 3), true.
        root_position: (N, 3) m, true, in the world.
        roll: (N,) rad, true, about x.
        pitch: (N,) rad, true, about y.
        com_offset_used: (N, 3) m, what the feedback gave the gait; NaN without.
    """

    run: TrotRun
    model: RobotModel
    config: RobotConfig
    time: Array
    position: Array
    velocity: Array
    effort: Array
    angular_velocity: Array
    specific_force: Array
    R_world_imu: Array
    foot_forces: Array
    stance: Flags
    true_forces: Array
    trunk_mass: Array
    trunk_com: Array
    trunk_inertia: Array
    R_world_root: Array
    root_position: Array
    roll: Array
    pitch: Array
    com_offset_used: Array

    def samples(self) -> Iterator[Sample]:
        """What an estimator takes, one by one."""
        for k in range(len(self.time)):
            yield self.sample(k)

    def sample(self, k: int) -> Sample:
        """The k-th of them."""
        return Sample(
            time=float(self.time[k]),
            position=self.position[k],
            effort=self.effort[k],
            velocity=self.velocity[k],
            angular_velocity=self.angular_velocity[k],
            specific_force=self.specific_force[k],
            R_world_imu=self.R_world_imu[k],
            foot_forces=self.foot_forces[k],
            stance=self.stance[k],
        )


Feedback = Callable[[Sample], "Array | None"]
MakeGait = Callable[[RobotModel, RobotConfig, dict[str, object]], Gait]


def run_trot(
    run: TrotRun, feedback: Feedback | None = None, make_gait: MakeGait | None = None
) -> TrotLog:
    """Simulates a trot.

    Args:
        run: What to simulate.
        feedback: Called with each sample; the trunk's CoM offset (3,) m that the gait is to count
            with, or None while there is none.
        make_gait: Another gait than com_control's.

    Raises:
        DivergedError: The physics became unstable.
    """
    model, config, world = build(run)
    gait = (make_gait or trot_gait)(model, config, run.gait)
    payload = None
    if run.payload is not None:
        mass, position, time = run.payload
        payload = Payload(mass, np.array(position), time + SETTLING)
    simulation = Simulation(world, 1.0 / run.rate, run.noise, run.seed, payload)
    R_imu_root = model.bodies.R_body_link[model.link_index(world.imu_link)].T  # fixed to the trunk
    stand(simulation, gait)
    recorder = _Recorder(run, model, config, simulation.sample_period)
    stance = np.ones(4, dtype=bool)
    offset = None
    for k in range(recorder.count):
        reading = simulation.advance()
        sample = recorder.record(k, reading, stance, offset)
        if feedback is not None:
            offset = feedback(sample)
        R_world_root = sample.R_world_imu @ R_imu_root
        targets, stance = gait.step((k + 1) * simulation.sample_period, R_world_root, offset)
        simulation.lead(targets)
    return recorder.log()


def build(run: TrotRun) -> tuple[RobotModel, RobotConfig, World]:
    """Returns what gait and estimator know of the robot, and the simulated one."""
    files = find_robot(run.robot)
    path = files.config
    if run.config:
        path = Path(run.config) if run.config.endswith(".yaml") else find_robot(run.config).config
    if path is None:
        raise SystemExit(f"robot {run.robot!r} has no configuration: give config")
    model, config = RobotModel.from_file(files.urdf), RobotConfig.from_file(path)
    legs = quadruped_legs(model, config)
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
    )
    return model, config, world


def with_leg_masses(model: RobotModel, legs: Sequence[Leg], factors: Array) -> str:
    """Returns the URDF with masses and inertias of the legs' links times factors (4,)."""
    changed = {}
    bodies = model.bodies
    for leg, factor in zip(legs, factors, strict=True):
        for i, link in enumerate(model.link_names):
            body = bodies.body_of_link[i]
            if body > 0 and bodies.q_index[body] in leg.joints and model.link_masses[i] > 0.0:
                changed[link] = Inertial(
                    factor * model.link_masses[i],
                    model.link_coms[i],
                    factor * model.link_inertias[i],
                )
    return edit_inertials(model.xml, changed)


def trot_gait(model: RobotModel, config: RobotConfig, parameters: dict[str, object]) -> Gait:
    """com_control's trot."""
    raise NotImplementedError


def stand(simulation: Simulation, gait: Gait) -> None:
    """Goes from the nominal posture to where the gait begins, and comes to rest there."""
    start, end = simulation.world.posture, gait.step(-1.0, None, None)[0]
    count = round(SETTLING / simulation.sample_period)
    for k in range(count):
        simulation.advance()
        share = min((k + 1) / (count * POSING / SETTLING), 1.0)
        blend = share**3 * (10.0 - 15.0 * share + 6.0 * share**2)
        simulation.lead(start + blend * (end - start))


class _Recorder:
    """Keeps what a simulation reads."""

    def __init__(self, run: TrotRun, model: RobotModel, config: RobotConfig, period: float) -> None:
        self.run, self.model, self.config, self.period = run, model, config, period
        self.count = round(run.seconds / period)
        self._legs = quadruped_legs(model, config)
        self._feet = [leg.foot_index for leg in self._legs]
        self._signs = np.array([leg.foot.wrench_sign for leg in self._legs])[:, None]
        self._rows: list[tuple[Reading, Array, Flags, Array]] = []

    def record(self, k: int, reading: Reading, stance: Flags, offset: Array | None) -> Sample:
        """Keeps the k-th reading; returns it as estimators and gaits take it."""
        R_world_imu = _matrix(reading.imu_orientation)
        used = np.full(3, np.nan) if offset is None else np.array(offset, dtype=float)
        self._rows.append((reading, R_world_imu, stance, used))
        return Sample(
            time=k * self.period,
            position=reading.position,
            effort=reading.effort,
            velocity=reading.velocity,
            angular_velocity=reading.angular_velocity,
            specific_force=reading.specific_force,
            R_world_imu=R_world_imu,
            stance=stance,
        )

    def log(self) -> TrotLog:
        """Returns all of it as arrays."""
        readings = [row[0] for row in self._rows]
        position = _stacked(readings, "position")
        wrenches = _stacked(readings, "wrenches")[:, self._feet, :3] * self._signs
        R_root_foot = foot_rotations(self.model, self._legs, position)
        R_world_root = Rotation.from_quat(_stacked(readings, "root_orientation")).as_matrix()
        return TrotLog(
            run=self.run,
            model=self.model,
            config=self.config,
            time=np.arange(self.count) * self.period,
            position=position,
            velocity=_stacked(readings, "velocity"),
            effort=_stacked(readings, "effort"),
            angular_velocity=_stacked(readings, "angular_velocity"),
            specific_force=_stacked(readings, "specific_force"),
            R_world_imu=np.array([row[1] for row in self._rows]),
            foot_forces=np.einsum("kfij,kfj->kfi", R_root_foot, wrenches),
            stance=np.array([row[2] for row in self._rows]),
            true_forces=_stacked(readings, "foot_forces")[:, self._feet],
            trunk_mass=_stacked(readings, "trunk_mass"),
            trunk_com=_stacked(readings, "trunk_com"),
            trunk_inertia=_stacked(readings, "trunk_inertia"),
            R_world_root=R_world_root,
            root_position=_stacked(readings, "root_position"),
            roll=np.arctan2(R_world_root[:, 2, 1], R_world_root[:, 2, 2]),
            pitch=-np.arcsin(np.clip(R_world_root[:, 2, 0], -1.0, 1.0)),
            com_offset_used=np.array([row[3] for row in self._rows]),
        )


def foot_rotations(model: RobotModel, legs: Sequence[Leg], position: Array) -> Array:
    """Rotations (N, 4, 3, 3) from the axes of the feet's wrench frames to the root's.

    Args:
        model: The robot.
        legs: Its legs.
        position: (N, n) rad.
    """
    bodies = model.bodies
    result = np.empty((len(position), len(legs), 3, 3))
    for i, leg in enumerate(legs):
        link = model.link_index(leg.foot.wrench_frame)
        body, R = int(bodies.body_of_link[link]), bodies.R_body_link[link]
        while body > 0:
            angle = bodies.multiplier[body] * position[:, bodies.q_index[body]]
            angle = angle + bodies.offset[body]
            turn = Rotation.from_rotvec(angle[:, None] * bodies.axis[body]).as_matrix()
            R = bodies.R[body] @ turn @ R
            body = int(bodies.parent[body])
        result[:, i] = R
    return result


def _matrix(quaternion: Array) -> Array:
    """Rotation (3, 3) of a quaternion x, y, z, w."""
    result = np.empty(9)
    mujoco.mju_quat2Mat(result, quaternion[[3, 0, 1, 2]])
    return result.reshape(3, 3)


def _stacked(readings: Sequence[Reading], name: str) -> Array:
    return np.array([getattr(reading, name) for reading in readings])


def in_processes(
    function: Callable[[T], R], items: Iterable[T], label: str = "", processes: int = 2
) -> list[R]:
    """Calls a function of a module with each item, several at a time; results in their order.

    Args:
        function: Found by its name in a new process: no lambda, no inner function.
        items: What it takes.
        label: Stands before the progress bar.
        processes: So many at a time; 1: in this process.
    """
    items = list(items)
    console = Console(stderr=True)
    columns = (TextColumn(label), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    results: dict[int, R] = {}
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(label, total=len(items))
        if processes <= 1:
            for i, item in enumerate(items):
                results[i] = function(item)
                progress.advance(task)
        else:
            with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
                futures = {pool.submit(function, item): i for i, item in enumerate(items)}
                for future in as_completed(futures):
                    results[futures[future]] = future.result()
                    progress.advance(task)
    return [results[i] for i in range(len(items))]


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
            float(np.degrees(np.arccos(np.clip(log.R_world_root[:, 2, 2], -1, 1)).max())), 2
        ),
        "drift_m": np.round(log.root_position[-1, :2] - log.root_position[0, :2], 3).tolist(),
        "lowest_over_first_height": round(
            float(log.root_position[:, 2].min() / log.root_position[0, 2]), 3
        ),
        "force_over_weight": round(float((upwards / weight).mean()), 4),
        "effort_max": round(float(np.abs(log.effort).max()), 1),
    }


def main() -> int:
    """Shows one run."""
    parser = argparse.ArgumentParser(description="One trot in the simulator, and what it was like.")
    parser.add_argument("robot", help="a robot's name, or the path of its URDF")
    parser.add_argument("--config", default="", help="its configuration, if not its own")
    parser.add_argument("--offset", type=float, nargs=3, default=(0.0, 0.0, 0.0), metavar="M")
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
