"""Walking robots that are not as their URDF says, in the simulator: logs of their sensors.

No foot force sensors: joint positions, velocities and torques, gyroscope, accelerometer and the
direction of gravity, all with errors. MuJoCo's contacts; Coulomb friction with a time constant of
two steps, as drives have it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import convolve1d
from scipy.spatial.transform import Rotation
from trot_lab import OPEN_LOOP, stand, trot_gait

from com_bags import WalkLog
from com_model import RobotConfig, RobotModel
from com_model.robot_config import ground_wrenches
from com_model.robots import load_robot
from com_model.urdf.editing import Inertial, edit_inertials
from com_simulation.physics.sensors import Reading
from com_simulation.physics.simulation import Simulation
from com_simulation.physics.world_builder import World, build_world

Array = NDArray[np.float64]

_AVERAGED = ("effort", "angular_velocity", "specific_force")
PERIOD, STEP = 0.002, 2.5e-4  # s, of the samples, of the physics
GAITS = (
    {"frequency": 2.0},
    {"frequency": 2.0, "velocity_x": 0.3},
    {"frequency": 1.7, "velocity_x": -0.2},
    {"frequency": 2.2, "velocity_y": 0.15},
    {"frequency": 2.0, "yaw_rate": 0.6},
    {"frequency": 2.3, "velocity_x": 0.15, "velocity_y": -0.1, "height": 0.25},
)
HELD_OUT = {"frequency": 1.9, "velocity_x": 0.2, "velocity_y": 0.08, "yaw_rate": -0.3}


@dataclass(frozen=True)
class Wrong:
    """How far a robot is off its URDF and its sensors off the truth; standard deviations.

    The payload is on the trunk from the beginning, at a random place.
    """

    mass: float = 0.1  # of each link, uniform
    com: float = 0.010  # m, of each link, uniform in a cube of this half size
    trunk_com: float = 0.030  # m, likewise
    inertia: float = 0.1
    payload: float = 2.0  # kg
    # m, half sizes; z upwards only
    payload_box: tuple[float, float, float] = 0.15, 0.05, 0.08
    coulomb: tuple[float, float] = (0.3, 1.0)  # N m
    viscous: tuple[float, float] = (0.02, 0.1)  # N m s/rad
    armature: tuple[float, float] = (0.01, 0.2)  # kg m^2, and by how much it is off
    gain: float = 0.03
    bias: float | Array = 0.2  # N m, of all joints or of each
    torque_noise: float | Array = 0.2  # N m
    zero_deg: float = 0.3
    velocity_noise: float = 0.03
    gyro: float = 0.005  # rad/s, noise and bias
    accelerometer: float = 0.05  # m/s^2, noise and bias
    mounting_deg: float = 0.5
    attitude_deg: float = 0.3
    # MuJoCo's; None: the suite's
    foot_friction: tuple[float, float, float] | None = None
    contact_time: float | None = None  # s; None: the suite's
    # s, of MuJoCo's joint friction; None: the suite's
    friction_time: float | None = None
    imu_late: int = 0  # samples by which the IMU is behind
    # N m/rad, of the joints: encoders are on the motors' side
    stiffness: float = np.inf
    # torques and IMU, over a sample's time; else they are of one instant
    averaged: bool = False


@dataclass(frozen=True, eq=False)
class RobotWithErrors:
    """A robot with its errors."""

    believed: RobotModel
    true: RobotModel
    config: RobotConfig
    coulomb: Array
    viscous: Array
    armature: Array
    wrong: Wrong = field(default_factory=Wrong)


@dataclass(frozen=True, eq=False)
class Walk:
    """A log, and what only the simulator knows."""

    log: WalkLog
    clean: WalkLog  # what sensors without errors read
    wrenches: Array  # (N, f, 6) N and N m, of the ground on the feet, in the feet's wrench frames
    pose: Array  # (N, 7) m, of the root in the world, and its quaternion x, y, z, w


def make_robot(name: str, seed: int, wrong: Wrong) -> RobotWithErrors:
    """Draws a robot that the suite knows."""
    return draw_robot(*load_robot(name), seed, wrong)


def draw_robot(
    model: RobotModel, config: RobotConfig, seed: int, wrong: Wrong
) -> RobotWithErrors:
    """Draws a robot."""
    rng, n = np.random.default_rng([seed, 1]), model.n_joints
    trunk = model.link_names[int(np.argmax(model.link_masses))]
    changed = {}
    for i in np.flatnonzero(model.link_masses > 0.0):
        link, factor = model.link_names[i], 1.0 + rng.uniform(-wrong.mass, wrong.mass)
        size = wrong.trunk_com if link == trunk else wrong.com
        # a link of a gram does not have its CoM outside its shape
        size *= min(1.0, float(np.cbrt(model.link_masses[i] / 0.1)))
        com = model.link_coms[i] + rng.uniform(-size, size, 3)
        inertia = (
            model.link_inertias[i]
            * factor
            * (1.0 + rng.uniform(-wrong.inertia, wrong.inertia))
        )
        mass = float(model.link_masses[i]) * factor
        if link == trunk and wrong.payload:
            place = rng.uniform(-1.0, 1.0, 3) * wrong.payload_box
            place[2] = abs(place[2])
            r1, r2 = com, place
            total = mass + wrong.payload
            com = (mass * r1 + wrong.payload * r2) / total
            for m, r in ((mass, r1 - com), (wrong.payload, r2 - com)):
                inertia = inertia + m * (r @ r * np.eye(3) - np.outer(r, r))
            mass = total
        changed[link] = Inertial(mass, com, inertia)
    armature, spread = wrong.armature
    return RobotWithErrors(
        believed=model,
        true=RobotModel.from_urdf(edit_inertials(model.xml, changed), model.frames),
        config=config,
        coulomb=rng.uniform(*wrong.coulomb, n),
        viscous=rng.uniform(*wrong.viscous, n),
        armature=armature * (1.0 + rng.uniform(-spread, spread, n)),
        wrong=wrong,
    )


def by_size(name: str) -> tuple[Wrong, tuple[dict[str, float], ...]]:
    """Errors and gaits, the last held out, of a robot as large as it is; a Go2's are those above.

    With its mass over a Go2's as M, lengths grow as M^(1/3), torques as the weight times a length,
    and times and speeds as the root of a length.
    """
    usual, gaits = Wrong(), (*GAITS, HELD_OUT)
    if name == "go2":
        return usual, gaits
    M = load_robot(name)[0].mass / load_robot("go2")[0].mass
    length, torque, time = M ** (1 / 3), M ** (4 / 3), M ** (1 / 6)
    factors = {
        "frequency": 1.0 / time,
        "velocity_x": time,
        "velocity_y": time,
        "yaw_rate": 1 / time,
    }
    x, y, z = usual.payload_box
    wrong = replace(
        usual,
        com=length * usual.com,
        trunk_com=length * usual.trunk_com,
        payload=M * usual.payload,
        payload_box=(length * x, length * y, length * z),
        coulomb=(torque * usual.coulomb[0], torque * usual.coulomb[1]),
        viscous=(torque * time * usual.viscous[0], torque * time * usual.viscous[1]),
        armature=(torque * time**2 * usual.armature[0], usual.armature[1]),
        bias=torque * usual.bias,
        torque_noise=torque * usual.torque_noise,
    )
    scaled = [
        {k: factors[k] * v for k, v in gait.items() if k in factors} for gait in gaits
    ]
    return wrong, tuple(scaled)


def robot_world(robot: RobotWithErrors) -> World:
    """The simulated robot."""
    urdf = robot.believed.path
    world = build_world(
        robot.true,
        robot.config,
        base="floating",
        step=STEP,
        urdf_path=urdf,
        integrator="euler",  # readings obey the equations of motion
        joint_friction=robot.coulomb,
    )
    world.mj.dof_damping[world.joint_dof] += robot.viscous
    world.mj.dof_armature[world.joint_dof] = robot.armature
    if robot.wrong.contact_time is not None:
        world.mj.geom_solref[:, 0] = robot.wrong.contact_time
    if robot.wrong.friction_time is not None:
        world.mj.dof_solref[:, 0] = robot.wrong.friction_time
    if robot.wrong.foot_friction is not None:
        world.mj.geom_friction[:] = robot.wrong.foot_friction
        world.mj.geom_condim[:] = 4  # torsion of the feet, too
    return world


def trot(
    robot: RobotWithErrors, gait: dict[str, float], seconds: float
) -> tuple[WalkLog, Array, Array]:
    """Simulates a trot: what perfect sensors read, wrenches of the ground, poses of the root."""
    world = robot_world(robot)
    walker = trot_gait(robot.believed, robot.config, OPEN_LOOP | dict(gait))
    every = round(PERIOD / STEP) if robot.wrong.averaged else 1
    simulation = Simulation(world, PERIOD / every)
    stand(simulation, walker)
    readings = []
    for k in range(round(seconds / PERIOD)):
        readings += [simulation.advance() for _ in range(every)]
        target = walker.step((k + 1) * PERIOD)
        simulation.lead(target.position, target.velocity)
    log, wrenches, pose = as_log(robot, readings)
    return (log, wrenches, pose) if every == 1 else averaged(log, wrenches, pose, every)


def averaged(
    log: WalkLog, wrenches: Array, pose: Array, every: int
) -> tuple[WalkLog, Array, Array]:
    """One of `every` samples; torques, IMU and wrenches are means over the time between two."""
    kernel = np.ones(every + 1) / every
    kernel[[0, -1]] /= 2.0
    kept = slice(every, -every, every)

    def mean(values: Array) -> Array:
        return convolve1d(values, kernel, axis=0, mode="nearest")[kept]

    columns = {name: values[kept] for name, values in vars(log).items()}
    means = {name: mean(getattr(log, name)) for name in _AVERAGED}
    return WalkLog(**(columns | means)), mean(wrenches), pose[kept]


def imu_pose(robot: RobotWithErrors) -> tuple[Array, Array]:
    """R (3, 3) and p (3,) of the IMU in the root link."""
    bodies = robot.believed.bodies
    link = robot.believed.link_index(robot.config.imu_link or robot.believed.root_link)
    return bodies.R_body_link[link], bodies.p_body_link[link]


def as_log(
    robot: RobotWithErrors, readings: Sequence[Reading]
) -> tuple[WalkLog, Array, Array]:
    """Readings as a log, the wrenches of the ground, and the poses of the root."""

    def column(name: str) -> Array:
        return np.array([getattr(reading, name) for reading in readings])

    up = (
        Rotation.from_quat(column("imu_orientation")).as_matrix()[:, 2]
        @ imu_pose(robot)[0].T
    )
    log = WalkLog(
        column("time"),
        column("position"),
        column("velocity"),
        column("effort"),
        column("angular_velocity"),
        column("specific_force"),
        up,
    )
    pose = np.hstack([column("root_position"), column("root_orientation")])
    return log, ground_wrenches(column("wrenches"), robot.config.feet), pose


class Errors:
    """The errors of a robot's sensors, the same in all its logs."""

    def __init__(self, robot: RobotWithErrors, seed: int) -> None:
        rng, n, wrong = (
            np.random.default_rng([seed, 2]),
            robot.true.n_joints,
            robot.wrong,
        )
        self.wrong, self.rng = wrong, rng
        self.gain = 1.0 + wrong.gain * rng.standard_normal(n)
        self.bias = wrong.bias * rng.standard_normal(n)
        self.zero = np.deg2rad(wrong.zero_deg) * rng.standard_normal(n)
        self.gyro, self.accelerometer = rng.standard_normal((2, 3)) * [
            [wrong.gyro],
            [wrong.accelerometer],
        ]
        turn = np.deg2rad(wrong.mounting_deg) * rng.standard_normal(3)
        self.turn = Rotation.from_rotvec(turn)

    def read(self, clean: WalkLog) -> WalkLog:
        """What these sensors read."""
        wrong, noise = self.wrong, self.rng.standard_normal
        count, n = clean.position.shape
        wound = clean.effort / wrong.stiffness
        late = np.maximum(np.arange(count) - wrong.imu_late, 0)
        tilt = Rotation.from_rotvec(np.deg2rad(wrong.attitude_deg) * noise(3))
        gyro = self.turn.inv().apply(clean.angular_velocity) + self.gyro
        force = self.turn.inv().apply(clean.specific_force) + self.accelerometer
        assert clean.up is not None and clean.velocity is not None  # noqa: PT018
        return WalkLog(
            clean.time,
            clean.position + self.zero + wound,
            clean.velocity
            + np.gradient(wound, PERIOD, axis=0)
            + wrong.velocity_noise * noise((count, n)),
            self.gain * clean.effort
            + self.bias
            + wrong.torque_noise * noise((count, n)),
            (gyro + wrong.gyro * noise((count, 3)))[late],
            (force + wrong.accelerometer * noise((count, 3)))[late],
            tilt.apply(clean.up),
        )


def record(
    name: str,
    seed: int,
    seconds: float,
    wrong: Wrong,
    gaits: Sequence[dict[str, float]] = GAITS,
) -> tuple[RobotWithErrors, list[Walk]]:
    """A robot's logs of several gaits."""
    robot = make_robot(name, seed, wrong)
    errors, walks = Errors(robot, seed), []
    for gait in gaits:
        truth = trot(robot, gait, seconds)
        walks.append(Walk(errors.read(truth[0]), *truth))
    return robot, walks
