"""Logs of simulated humanoids for benchmarks/diagnosis.py: motions, culprits, sensor errors.

The physics runs at 1 ms, the sensors give 200 Hz: wrenches averaged over a sample, encoders and
IMU in its middle. Errors of sensors are added to a log afterwards; errors of masses are in the URDF
that the estimator believes (the simulated robot is the one of the shipped URDF), so that one
simulated motion serves many cases. Only payloads, pushes and pulls need a run of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter
from scipy.spatial.transform import Rotation
from walk_playback import starting_at

from com_control.walking.biped import Biped, sole_poses
from com_control.walking.com_ik import ComIk
from com_control.walking.stabiliser import Stabiliser, ankle_stiffness
from com_control.walking.walk import Walk, WalkRequest
from com_control.walking.walk_plan import find_stance
from com_control.walking.walker import Walker
from com_demos.walk_record import has_fallen
from com_estimation.humanoid.layout import Layout, make_layout
from com_model import RobotConfig, RobotModel
from com_model.dynamics.kinematics import link_pose_batch
from com_model.robots import find_robot
from com_model.urdf.editing import Inertial, edit_inertials
from com_simulation.physics.sensors import Sensors
from com_simulation.physics.true_errors import (
    TrueErrors,
    loaded,
    read_trunk,
    with_true_errors,
    write_trunk,
)
from com_simulation.physics.world_builder import build_world

Array = NDArray[np.float64]

PERIOD, STEP = 0.005, 0.001  # s
DURATION = 10.0
CROSSING = 0.02  # s, time constant in which a motor crosses its backlash
WALKS = {
    "talos": WalkRequest(step_length=0.2, step_time=0.8, double_support=0.25),
    "icub": WalkRequest(
        step_length=0.05, step_time=0.9, double_support=0.3, com_height=0.45
    ),
    "hoap2": WalkRequest(step_length=0.05, step_time=0.6, double_support=0.2),
}
TORSO = {  # joint, degrees to both sides of its middle, and that
    "talos": ("torso_1_joint", 46.0, 0.0),
    "icub": ("torso_yaw", 46.0, 0.0),
    "hoap2": ("BODY_JOINT1", 12.0, 12.0),
}


@dataclass(frozen=True)
class Load:
    """What acts on the robot from a time on.

    Attributes:
        body: Of the model.
        mass: kg; with position (3,) m in the body's frame.
        force: N, world axes, for a duration, s.
    """

    body: int
    start: float
    mass: float = 0.0
    position: tuple[float, ...] = (0.0, 0.0, 0.0)
    force: tuple[float, ...] = (0.0, 0.0, 0.0)
    duration: float = np.inf


@dataclass
class Log:
    """Samples of a motion, with the truth."""

    time: Array
    q: Array  # (N, n)
    R: Array  # (N, 3, 3) root in the world
    wrenches: Array  # (N, f, 6)
    effort: Array  # (N, n) N m
    com: Array  # (N, 3) m, root link's axes
    tilt: Array  # (N,) rad, of the sole that carries the robot
    fell_at: float = np.nan


@cache
def load(name: str) -> tuple[RobotModel, RobotConfig, Biped, Layout]:
    """A robot."""
    files = find_robot(name)
    config = RobotConfig.from_file(str(files.config))
    model = config.attach(RobotModel.from_file(files.urdf))
    return model, config, Biped.from_config(model, config), make_layout(model, config)


def plan(
    name: str, motion: str, seed: int
) -> tuple[Callable[[float], Array], Walk | None]:
    """Joint positions by time, and the walk (None when the feet stay)."""
    biped = load(name)[2]
    rng = np.random.default_rng([seed, 7])
    if motion in ("walk", "turn"):
        request = WALKS[name]
        step_time = float(request.step_time or 0.0) + float(
            request.double_support or 0.0
        )
        steps = int((DURATION - 1.0) / step_time)
        length = float(request.step_length or 0.0) * rng.uniform(0.9, 1.1)
        turn = 0.2 * (motion == "turn")
        wanted = replace(
            request, step_length=length, turn=turn, steps=steps, method="refined"
        )
        walk = Walker(biped).plan(wanted, biped.posture)
        return (lambda t: walk.path.sample(min(max(t, 0.0), walk.duration))[0]), walk
    path = sway(name, motion, seed)
    return (lambda t: path[min(max(round(t / PERIOD), 0), len(path) - 1)]), None


@cache
def sway(name: str, motion: str, seed: int) -> Array:
    """Joint positions every PERIOD: sway, squat and turns of the torso, or standing.

    HOAP-2's torso cannot turn: it leans forwards by 0 to 24 degrees.
    """
    model, _, biped, layout = load(name)
    ik, rng = ComIk(biped), np.random.default_rng([seed, 9])
    count = int((DURATION + 0.5) / PERIOD) + 2
    if motion == "stand":
        return np.tile(biped.posture, (count, 1))
    joint, swing, middle = TORSO[name]
    torso = model.joint_index(joint)
    R = find_stance(biped, biped.posture).R_walk_root
    stance = find_stance(biped, biped.posture)
    feet = sole_poses(biped, biped.posture)
    feet = np.array(
        [R @ f + np.column_stack((np.zeros((3, 3)), stance.p_walk_root)) for f in feet]
    )
    R_pelvis = R @ biped.root_in_pelvis()[0].T
    q, path = biped.posture.copy(), []
    rate = rng.uniform(0.9, 1.1, 4) * [0.45, 0.3, 0.22, 0.2]
    width = np.abs(feet[0, 1, 3] - feet[1, 1, 3])
    for k in range(count):
        t = k * PERIOD
        grow = min(t / 1.0, 1.0) ** 2 * (3.0 - 2.0 * min(t / 1.0, 1.0))
        s = np.sin(2.0 * np.pi * rate * t) * grow
        q[torso] = biped.posture[torso] + np.radians(swing * s[3] + middle * grow)
        ik.set_upper_body(q)
        shift = [
            0.02 * layout.height * s[1],
            0.22 * width * s[0],
            -0.03 * layout.height * (1.0 + s[2]) * grow,
        ]
        found = ik.step(stance.com + shift, feet, R_pelvis)
        q = ik.full(found.q).copy()
        path.append(q)
    return np.array(path)


def simulate(
    name: str,
    motion: str,
    seed: int,
    loads: tuple[Load, ...] = (),
    feedback: bool = False,
    contact: str = "stiff",
) -> Log:
    """Lets a robot move."""
    model, config, biped, _ = load(name)
    position, walk = plan(name, motion, seed)
    q0 = position(0.0)
    standing = starting_at(config, model, q0)
    world = build_world(
        model, standing, urdf_path=find_robot(name).urdf, contact=contact
    )
    mj = world.mj
    data = mujoco.MjData(mj)
    data.qpos[:], data.ctrl[:] = world.qpos, q0
    sensors = Sensors(world, mj, data)
    lag = world.servos.damping / world.servos.stiffness
    stabiliser, sole = None, np.eye(3)
    if feedback and walk is not None:
        stabiliser = Stabiliser(biped, ankle_stiffness(biped, config), PERIOD, 0.0)
        stabiliser.start(walk.plan, walk.samples, q0)
    waiting, log = list(loads), list[tuple[Any, ...]]()
    first, every, fell_at = None, round(PERIOD / STEP), np.nan
    q_now = q0
    for k in range(int(DURATION / PERIOD)):
        t = k * PERIOD - 0.5
        q_next = position(t + PERIOD)
        target = q_next + lag * (q_next - position(t)) / PERIOD
        if stabiliser is not None and walk is not None and log:
            R, q, w = log[-1][1], log[-1][0], log[-1][2]
            out = stabiliser.update(R, q, w, PERIOD, PERIOD if t >= 0.0 else 0.0)
            phase = stabiliser.phase
            speed = (
                walk.path.sample(min(phase + PERIOD, walk.duration))[1]
                if t >= 0
                else 0.0
            )
            target = out.q + lag * out.rate * speed
        for load_ in list(waiting):
            if k * PERIOD >= load_.start and load_.mass:
                body = load_.body + 1
                grown = loaded(
                    read_trunk(mj, body), load_.mass, np.array(load_.position)
                )
                write_trunk(mj, grown, body)
                sensors.read_masses(mj)
                waiting.remove(load_)
        data.xfrc_applied[:] = 0.0
        for load_ in loads:
            if 0.0 <= k * PERIOD - load_.start < load_.duration:
                data.xfrc_applied[load_.body + 1, :3] += load_.force
        rows = []
        for i in range(every):
            data.ctrl[:] = q_now + (i + 1) / every * (target - q_now)
            qpos, qvel = data.qpos.copy(), data.qvel.copy()
            mujoco.mj_step(mj, data)
            rows.append(sensors.read(0.0, qpos, qvel))
        q_now = target
        middle = rows[every // 2]
        R = Rotation.from_quat(middle.root_orientation).as_matrix()
        if first is None:
            first = R, middle.root_position
        wrench = np.mean([row.wrenches for row in rows], axis=0)
        foot = int(np.argmax(wrench[:, 2]))
        if k % 4 == 0:
            sole = R @ sole_poses(biped, middle.position)[foot, :, :3]
        tilt = float(np.arccos(np.clip(sole[2, 2], -1.0, 1.0)))
        log.append((middle.position, R, wrench, middle.effort, middle.com, tilt))
        if has_fallen(*first, R, middle.root_position):
            fell_at = k * PERIOD
            break
    q, Rs, wrenches, effort, com, tilts = (
        np.array(part) for part in zip(*log, strict=True)
    )
    times = PERIOD * np.arange(len(log), dtype=np.float64)
    return Log(times, q, Rs, wrenches, effort, com, tilts, fell_at)


@dataclass(frozen=True)
class Errors:
    """What is wrong with sensors and model beside the background; zeros: nothing.

    Attributes:
        trunk: (3,) m, the trunk's true CoM minus the URDF's, triad.
        zero: (f, 6) of the force sensors.
        tilt: (2,) rad, of the IMU.
        encoders: joint: rad.
        start: s, from which zero, tilt and encoders act.
        delay: s, of the wrenches.
        imu_delay: s, of the IMU.
        backlash: rad, between motor and joint of the legs: encoders are on the motors' side, which
            leads by half of it on the side of the load.
        frozen: s, from which the left foot's wrench stays the same for 2 s.
        drivers: s, from which a second driver sends joint positions in turn, 10 ms late and with
            zeros of its own, off by 0.01 rad.
    """

    trunk: tuple[float, ...] = (0.0, 0.0, 0.0)
    zero: tuple[tuple[float, ...], ...] = ()
    tilt: tuple[float, float] = (0.0, 0.0)
    encoders: tuple[tuple[int, float], ...] = ()
    start: float = -np.inf
    delay: float = 0.0
    imu_delay: float = 0.0
    backlash: float = 0.0
    frozen: float = np.inf
    drivers: float = np.inf
    wander: float = 3e-4
    flexibility: float = 0.0
    masses: float = 1.0
    backgrounds: dict[str, float] = field(default_factory=dict)


def believed(name: str, errors: Errors, seed: int) -> RobotModel:
    """The URDF of the estimator: masses 1 %, CoMs 2 mm (of 0.86 m) off the simulated robot's."""
    model, _, _, layout = load(name)
    com = 0.002 * layout.height / 0.86 * errors.masses
    wrong = with_true_errors(model, TrueErrors(com, 0.01 * errors.masses, seed + 1))
    if any(errors.trunk):
        body, bodies = layout.plant.blocks.trunk, model.bodies
        own = np.flatnonzero(bodies.body_of_link == body)
        link = int(own[np.argmax(wrong.link_masses[own])])  # others are frames
        mass = float(wrong.link_masses[link])
        shift = (
            bodies.R_body_link[link].T
            @ layout.plant.triad[body]
            @ np.array(errors.trunk)
        )
        moved = wrong.link_coms[link] - shift * bodies.mass[body] / mass
        part = Inertial(mass, moved, wrong.link_inertias[link])
        wrong = RobotModel.from_urdf(
            edit_inertials(wrong.xml, {model.link_names[link]: part})
        )
        wrong = wrong.with_frames(model.frames)
    return wrong


def spoil(name: str, log: Log, errors: Errors, seed: int) -> Log:
    """The log as wrong sensors give it."""
    model, _, _, layout = load(name)
    rng, scale = np.random.default_rng([seed, 3]), layout.mass / 90.3
    unit = scale * np.repeat([1.0, layout.height / 0.86], 3)
    feet = log.wrenches.shape[1]
    acts = (log.time >= errors.start)[:, None]
    legs = layout.plant.tree.q_index[layout.plant.joint[:, 0]]
    q = log.q + 5e-5 * rng.standard_normal(log.q.shape)
    q[:, legs] += np.radians(0.03) * rng.standard_normal(len(legs))
    for joint, value in errors.encoders:
        q[:, joint] += acts[:, 0] * value
    q[:, legs] += errors.flexibility * log.effort[:, legs]
    side = np.tanh(log.effort[:, legs] / (0.002 * layout.weight * layout.height))
    keep = np.exp(-PERIOD / CROSSING)  # the motor needs a while to the other side
    side = lfilter([1.0 - keep], [1.0, -keep], side, axis=0, zi=keep * side[:1])[0]
    q[:, legs] += 0.5 * errors.backlash * side
    second = np.concatenate((q[:2], q[:-2])) + 0.01 * rng.standard_normal(q.shape[1])
    turn = (log.time >= errors.drivers) & (np.arange(len(q)) % 2 == 1)
    q = np.where(turn[:, None], second, q)
    w = log.wrenches * (1.0 + 3e-3 * rng.standard_normal((feet, 1)))
    late = round(errors.delay / PERIOD)
    w = np.concatenate((np.repeat(w[:1], late, axis=0), w[: len(w) - late]))
    w = w + unit * [0.5, 0.5, 0.5, 0.05, 0.05, 0.05] * rng.standard_normal((feet, 6))
    w = w + unit * [1.0, 1.0, 1.0, 0.05, 0.05, 0.05] * rng.standard_normal(w.shape)
    if errors.zero:
        w = w + acts[:, :, None] * np.array(errors.zero)
    triad = layout.plant.triad[layout.plant.blocks.imu]
    carrier = model.bodies.names[layout.plant.blocks.imu]
    R_carrier = link_pose_batch(model, q, carrier)[0]
    turn = np.zeros((len(q), 3))
    turn[:, :2] = np.radians(0.03) * rng.standard_normal(2) + acts * np.array(
        errors.tilt
    )
    decay = np.exp(-PERIOD / 2.0)
    wander, state = rng.standard_normal((len(q), 2)), rng.standard_normal(2)
    for k in range(len(q)):
        state = decay * state + np.sqrt(1.0 - decay**2) * wander[k]
        turn[k, :2] += errors.wander * state
    turn += 3e-5 * rng.standard_normal(turn.shape)
    tilted = R_carrier @ Rotation.from_rotvec(turn @ triad.T).as_matrix()
    R = log.R @ tilted @ R_carrier.transpose(0, 2, 1)
    R = R[np.maximum(np.arange(len(R)) - round(errors.imu_delay / PERIOD), 0)]
    held = (log.time >= errors.frozen) & (log.time < errors.frozen + 2.0)
    w[held, 0] = w[np.argmax(held), 0]
    return replace(log, q=q, R=R, wrenches=w)
