"""Robots that sway, hang and trot in MuJoCo and are not as their URDFs say: logs of their sensors.

Errors are uniform, where the identification's priors are normal; gears give, contacts give, drives
ripple, and friction grows with the torque. A motion is planned with the true robot, which is able
to stand; servos act on what the encoders read, so that encoder zeros load the closed chain of the
legs.
"""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation
from trot_lab import OPEN_LOOP, stand, trot_gait
from walk_playback import starting_at
from walk_scenarios import load_robot

from com_bags import WalkLog
from com_control.motion.sway_tour import SwayTour, plan_hang, plan_sway
from com_model import RobotConfig, RobotModel
from com_model import load_robot as load_by_name
from com_model.actuators import ActuatorModel, Actuators
from com_model.dynamics import GRAVITY
from com_model.dynamics.link_frames import LinkFrames
from com_model.robot_config import Servo, ServoGains
from com_model.setup import describe, to_yaml
from com_model.urdf.editing import Inertial, edit_inertials
from com_simulation.physics.events import Event
from com_simulation.physics.sensors import Reading
from com_simulation.physics.simulation import Simulation
from com_simulation.physics.spec import ROBOT_BIT
from com_simulation.physics.world_builder import World, build_world

Array = NDArray[np.float64]

PERIOD, STEP = 0.01, 5e-4  # s, of the samples, of the physics
TROT_PERIOD = 0.002  # s, of the samples
TROTS = (
    {"frequency": 2.0},
    {"frequency": 2.0, "velocity_x": 0.3},
    {"frequency": 1.8, "velocity_y": 0.1, "yaw_rate": 0.3},
)
SETTLING = 2.0, 15.0  # s, before a sway, before hanging
G1 = "g1", "g1_description/urdf/g1_29dof_rev_1_0.urdf"
GO2 = "go2"
# factor of lengths, of masses, and joints that it has not, of robots like others
LIKE: dict[str, tuple[float, float, str]] = {
    "g1": (1.0, 1.0, ""),
    "h1": (1.35, 1.4, "wrist|waist_roll|waist_pitch"),
    "t1": (0.9, 0.9, "wrist_pitch|wrist_yaw|waist_roll|waist_pitch"),
}
# N m of the legs, arms; fraction; N m s/rad
COULOMB, COULOMB_ARMS, LOAD, VISCOUS = (
    (0.3, 1.5),
    (0.15, 0.5),
    (0.01, 0.04),
    (0.02, 0.15),
)
NOMINAL = {
    "leg": ActuatorModel(
        coulomb=0.9, coulomb_std=0.5, viscous=0.08, viscous_std=0.06,
        load_friction=0.025, load_friction_std=0.015, torque_bias_std=0.15,
    ),
    "arm": ActuatorModel(
        coulomb=0.3, coulomb_std=0.25, viscous=0.08, viscous_std=0.06,
        load_friction=0.025, load_friction_std=0.015, torque_bias_std=0.06,
    ),
}  # fmt: skip
"""Drives as a data sheet has them, for the identification."""
LEG = "hip|knee|ankle|thigh|calf"
_ARM = "shoulder|elbow|wrist|head|neck"


@dataclass(frozen=True, eq=False)
class Faults:
    """What is wrong with a robot and its sensors, on top of the URDF.

    Attributes:
        gain: (n,) of the torques that are read.
        bias: (n,) N m.
        zero: (n,) rad, of the encoders.
        mounting: (3,) rad, rotation of the IMU.
        accelerometer: (3,) m/s^2.
        slope: (2,) rad, of the floor: rising forwards and to the left.
        coulomb: (n,) N m.
        load: (n,) friction over the torque.
        motor_side: over the motor's torque; else over the joint's.
        late: s, of the torques after the positions.
        servo: N m/rad, of the servos of the legs; None: rigid, as the simulation's.
        viscous: (n,) N m s/rad.
        stiffness: N m/rad, of the gears.
        pull: (3,) N, on the heaviest link, in the world.
        drift: relative change of the friction over the recording.
    """

    gain: Array
    bias: Array
    zero: Array
    mounting: Array
    accelerometer: Array
    slope: Array
    coulomb: Array
    load: Array
    viscous: Array
    stiffness: float = 3000.0
    pull: Array | None = None
    drift: float = 0.0
    motor_side: bool = False
    late: float = 0.0
    servo: float | None = None


@dataclass(frozen=True, eq=False)
class SlowRobot:
    """A robot, what its owner believes, and what is wrong."""

    believed: RobotModel
    true: RobotModel
    config: RobotConfig
    torso: str
    rope: Array  # (3,) m, in the torso's link
    faults: Faults


def like(name: str) -> tuple[RobotModel, RobotConfig]:
    """A G1, or a robot of another size with fewer joints made of it, or a Go2; as configured."""
    if name == GO2:
        model, config = load_by_name(GO2)
        return model, replace(config, imu_link=model.root_link)
    length, mass, without = LIKE[name]
    whole = load_robot(*G1)
    xml = whole.model.xml
    if name == "g1":
        model, config = whole.model, whole.config
    else:
        xml = _scaled(xml, length, mass)
        for joint in re.findall(r'<joint name="([^"]*)" type="revolute"', xml):
            if re.search(without, joint):
                xml = xml.replace(
                    f'<joint name="{joint}" type="revolute"',
                    f'<joint name="{joint}" type="fixed"',
                )
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "robot.urdf"
            file.write_text(xml)
            settings = file.with_suffix(".yaml")
            settings.write_text(to_yaml(describe(RobotModel.from_file(file), file)))
            config = RobotConfig.from_file(settings)
            model = config.attach(RobotModel.from_file(file))
    joints = {
        joint: NOMINAL["arm" if re.search(_ARM, joint) else "leg"]
        for joint in model.joint_names
    }
    config = replace(
        config, imu_link=model.root_link, actuators=Actuators(ActuatorModel(), joints)
    )
    return model, config


def _scaled(xml: str, length: float, mass: float) -> str:
    """The URDF with lengths, masses and limits of another size; shapes are left out."""
    xml = re.sub(r"<mesh[^>]*/>", '<sphere radius="0.01"/>', xml)

    def times(factor: float, text: str) -> str:
        return " ".join(f"{factor * float(v):.9g}" for v in text.split())

    xml = re.sub(
        r'xyz="([^"]*)"(?=[^>]*rpy|[^>]*/>)',
        lambda m: f'xyz="{times(length, m[1])}"',
        xml,
    )
    xml = re.sub(
        r'<axis xyz="([^"]*)"', lambda m: f'<axis xyz="{times(1 / length, m[1])}"', xml
    )
    xml = re.sub(
        r'<mass value="([^"]*)"', lambda m: f'<mass value="{times(mass, m[1])}"', xml
    )
    inertia, effort = mass * length**2, mass * length
    xml = re.sub(
        r'\b(i[xyz]{2})="([^"]*)"', lambda m: f'{m[1]}="{times(inertia, m[2])}"', xml
    )
    return re.sub(r'effort="([^"]*)"', lambda m: f'effort="{times(effort, m[1])}"', xml)


def draw(
    name: str,
    seed: int,
    payload: tuple[float, float] = (-1.0, 2.0),
    size: float = 1.0,
    torso_com: float = 0.025,
) -> SlowRobot:
    """Draws a robot: masses +-5 %, CoMs +-5 mm, the torso's and a payload in kg, all uniform.

    size: factor of the errors of links, drives and sensors.
    """
    model, config = like(name)
    rng = np.random.default_rng([seed, 1])
    torso = model.link_names[int(np.argmax(model.link_masses))]
    changed = {}
    for i in np.flatnonzero(model.link_masses > 0.0):
        link, mass = model.link_names[i], float(model.link_masses[i])
        far = 0.005 * size * min(1.0, float(np.cbrt(mass / 0.1)))
        far = torso_com if link == torso else far
        factor = 1.0 + size * rng.uniform(-0.05, 0.05)
        if link == torso:
            factor += rng.uniform(*payload) / mass
        com = model.link_coms[i] + rng.uniform(-far, far, 3)
        changed[link] = Inertial(factor * mass, com, factor * model.link_inertias[i])
    true = RobotModel.from_urdf(edit_inertials(model.xml, changed), model.frames)
    top = model.link_coms[model.link_index(torso)] + [0.0, 0.0, 0.25]
    faults = draw_faults(model, rng, size)
    if name == GO2:
        faults = draw_linkages(model, faults, seed)
    return SlowRobot(model, true, config, torso, top, faults)


def draw_faults(
    model: RobotModel, rng: np.random.Generator, tight: float = 1.0
) -> Faults:
    """Errors of drives and sensors; tight: factor of those of a factory."""
    n = model.n_joints
    arms = np.array([bool(re.search(_ARM, joint)) for joint in model.joint_names])

    def uniform(std: float | Array, shape: int) -> Array:
        return np.sqrt(3.0) * std * rng.uniform(-1.0, 1.0, shape)

    return Faults(
        gain=1.0 + uniform(0.04 * tight, n),
        bias=uniform(np.where(arms, 0.04, 0.12), n),
        zero=uniform(np.deg2rad(0.4 * tight), n),
        mounting=uniform(np.deg2rad(0.7 * tight), 3),
        accelerometer=uniform(0.05, 3),
        slope=uniform(np.deg2rad(0.3), 2),
        coulomb=np.where(arms, rng.uniform(*COULOMB_ARMS, n), rng.uniform(*COULOMB, n)),
        load=rng.uniform(*LOAD, n),
        viscous=rng.uniform(*VISCOUS, n),
    )


def draw_linkages(model: RobotModel, faults: Faults, seed: int) -> Faults:
    """The faults with friction of a Go2's drives, whose calves have a linkage."""
    rng, n = np.random.default_rng([seed, 11]), model.n_joints
    calves = np.array(["calf" in joint for joint in model.joint_names])
    load = np.where(calves, rng.uniform(0.2, 0.34, n), rng.uniform(0.01, 0.07, n))
    coulomb, viscous = rng.uniform(0.05, 0.4, n), rng.uniform(0.01, 0.06, n)
    side = bool(rng.integers(2))  # which is true of a robot, nobody knows
    return replace(faults, load=load, coulomb=coulomb, viscous=viscous, motor_side=side)


def sway(robot: SlowRobot, seconds: float, seed: int) -> WalkLog:
    """A log of a sway on all feet."""
    motion = plan_sway(_leaning(robot), robot.config, seconds, seed)
    world = _world(robot, motion, None)
    return read(robot, _play(robot, world, motion, SETTLING[0]), seed)


def trot(
    robot: SlowRobot, seconds: float, seed: int
) -> tuple[list[WalkLog], RobotConfig]:
    """Logs of three gaits, and the configuration, with errors that only a trot shows.

    Torques come up to 4 ms late, and the feet are up to 3.5 mm higher or lower than configured.
    """
    rng = np.random.default_rng([seed, 14])
    robot = replace(robot, faults=replace(robot.faults, late=rng.uniform(0.0, 0.004)))
    world = build_world(
        robot.true,
        robot.config,
        base="floating",
        step=STEP,
        urdf_path=robot.believed.path,
        integrator="euler",
        ground_slope=float(robot.faults.slope[0]),
        joint_friction=robot.faults.coulomb,
    )
    world.mj.dof_damping[world.joint_dof] += robot.faults.viscous
    low, logs = rng.uniform(-0.0035, 0.0035), []
    for number, gait in enumerate(TROTS):
        walker = trot_gait(robot.believed, robot.config, OPEN_LOOP | dict(gait))
        simulation = Simulation(world, TROT_PERIOD, events=_pulls(robot))
        stand(simulation, walker)
        columns: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
        for k in range(round(seconds / len(TROTS) / TROT_PERIOD)):
            reading = simulation.advance()
            _check_upright(robot, reading, k * TROT_PERIOD)
            for name in _COLUMNS:
                columns[name].append(getattr(reading, name))
            target = walker.step((k + 1) * TROT_PERIOD)
            # the servos act on what the encoders read
            simulation.lead(target.position - robot.faults.zero, target.velocity)
        clean = {name: np.array(values) for name, values in columns.items()}
        logs.append(read(robot, clean, 10 * seed + number))
    feet = [replace(foot, radius=foot.radius + low) for foot in robot.config.feet]
    return logs, replace(robot.config, feet=tuple(feet))


def _pulls(robot: SlowRobot) -> list[Event]:
    """The outside pull, where there is one."""
    if robot.faults.pull is None:
        return []
    body = int(np.argmax(robot.true.bodies.mass))
    return [Event("pull", "PULL", body, robot.faults.pull, robot.torso, 0.0)]


def _check_upright(robot: SlowRobot, reading: Reading, time: float) -> None:
    """Raises RuntimeError where the robot has fallen."""
    if reading.gravity[2] > -0.8:
        raise RuntimeError(f"{robot.believed.name} falls {time:.1f} s after the start")


def _leaning(robot: SlowRobot) -> RobotModel:
    """The robot with its torso's CoM where it leans against a pull as against a weight."""
    pull, model = robot.faults.pull, robot.true
    if pull is None:
        return model
    i, q = model.link_index(robot.torso), robot.config.nominal_posture(model)
    high = LinkFrames(model, [robot.torso], [model.link_coms[i]]).poses(q)[1][0, 2]
    foot = LinkFrames(robot.config.attach(model), [robot.config.feet[0].frame]).poses(
        q
    )[1][0, 2]
    off = pull * (high - foot) / (GRAVITY * model.link_masses[i])
    own = Inertial(
        model.link_masses[i], model.link_coms[i] + off, model.link_inertias[i]
    )
    xml = edit_inertials(model.xml, {robot.torso: own})
    return RobotModel.from_urdf(xml, model.frames)


def hang(robot: SlowRobot, seconds: float, seed: int, efforts: bool = True) -> WalkLog:
    """A log of a robot that hangs from a rope and moves its limbs."""
    motion = plan_hang(robot.true, robot.config, seconds, seed)

    def edit(spec: mujoco.MjSpec) -> None:
        spec.geom("ground").pos = [0.0, 0.0, -3.0]
        data, bodies = np.zeros(12), robot.true.bodies
        link = robot.true.link_index(robot.torso)
        data[:3] = bodies.R_body_link[link] @ robot.rope + bodies.p_body_link[link]
        body = f"body{bodies.body_of_link[link]}"
        spec.add_equality(
            name="rope", type=mujoco.mjtEq.mjEQ_CONNECT, objtype=mujoco.mjtObj.mjOBJ_BODY,
            name1=body, name2="world", data=data, solref=[0.004, 1.0],
        )  # fmt: skip

    log = read(
        robot, _play(robot, _world(robot, motion, edit), motion, SETTLING[1]), seed
    )
    return log if efforts else replace(log, effort=np.full_like(log.effort, np.nan))


def _world(robot: SlowRobot, motion: SwayTour, edit: Any) -> World:
    start = motion.motion.positions[0]
    config = starting_at(robot.config, robot.believed, start)
    if robot.faults.servo is not None:
        stiffness = robot.faults.servo
        soft = ServoGains(stiffness, 0.02 * stiffness)
        legs = {
            joint: soft for joint in robot.believed.joint_names if re.search(LEG, joint)
        }
        config = replace(config, servo=Servo(config.servo.default, legs))
    world = build_world(
        robot.true,
        config,
        base="floating",
        step=STEP,
        urdf_path=robot.believed.path,
        ground_slope=float(robot.faults.slope[0]),
        joint_friction=robot.faults.coulomb,
        edit=edit,
    )
    world.mj.dof_damping[world.joint_dof] += robot.faults.viscous
    world.mj.geom_conaffinity[:] &= ~ROBOT_BIT
    world.mj.geom_solref[:, 0] = 0.01  # feet and floor give
    return world


def _play(
    robot: SlowRobot, world: World, motion: SwayTour, settling: float
) -> dict[str, Array]:
    """Readings without errors of the sensors; columns of a log."""
    simulation, path = Simulation(world, PERIOD, events=_pulls(robot)), motion.motion
    time = np.arange(0.0, path.times[-1] + settling, PERIOD)
    rows = np.maximum(time - settling, 0.0)
    target = np.column_stack([np.interp(rows, path.times, q) for q in path.positions.T])
    target -= robot.faults.zero  # the servos act on what the encoders read
    target = np.minimum(time, 1.0)[:, None] * (target - target[0]) + target[0]
    begin = world.posture
    blend = np.minimum(time / 1.0, 1.0)[:, None]
    target = begin + blend * (target - begin)
    root = world.mj.dof_damping[:6].copy()
    hangs = settling == SETTLING[1]
    columns: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
    for now, row, speed in zip(
        time, target, np.gradient(target, PERIOD, axis=0), strict=True
    ):
        if hangs:
            world.mj.dof_damping[3:6] = root[3:6] + (
                8.0 if now < settling - 3.0 else 0.0
            )
        reading = simulation.advance()
        if not hangs:
            _check_upright(robot, reading, now)
        if now >= settling:
            for name in _COLUMNS:
                columns[name].append(getattr(reading, name))
        simulation.lead(row, speed)
    return {name: np.array(values) for name, values in columns.items()}


_COLUMNS = (
    "time",
    "position",
    "velocity",
    "effort",
    "angular_velocity",
    "specific_force",
)


def read(robot: SlowRobot, clean: dict[str, Array], seed: int) -> WalkLog:
    """What the sensors read."""
    faults, rng = robot.faults, np.random.default_rng([seed, 2])
    turn = Rotation.from_rotvec(faults.mounting).inv()
    q, tau, noise = clean["position"], clean["effort"], rng.standard_normal
    wound = tau / faults.stiffness
    ripple = 0.15 * np.sin(200.0 * q + np.arange(q.shape[1]))
    sign = np.tanh(clean["velocity"] / 0.003)
    rub = faults.load * np.abs(tau) * sign
    if faults.motor_side:
        rub /= 1.0 - faults.load * sign * np.sign(tau)
    drift = 1.0 + faults.drift * np.linspace(0.0, 1.0, len(q))[:, None]
    read_tau = faults.gain * (tau + drift * rub) + faults.bias + ripple
    if faults.late:
        time = clean["time"]
        late = [np.interp(time - faults.late, time, each) for each in read_tau.T]
        read_tau = np.column_stack(late)
    return WalkLog(
        clean["time"],
        q + faults.zero + wound,
        clean["velocity"] + 0.01 * noise(q.shape),
        read_tau + 0.1 * noise(q.shape),
        turn.apply(clean["angular_velocity"]) + 0.003 * noise((len(q), 3)),
        turn.apply(clean["specific_force"])
        + faults.accelerometer
        + 0.05 * noise((len(q), 3)),
        None,
    )
