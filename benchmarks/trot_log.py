"""What is simulated in a trotting robot's laboratory, and the log of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from com_estimation.trunk.interface import Sample
from com_model import RobotConfig, RobotModel
from com_model.dynamics.kinematics import link_pose_batch
from com_model.legs import Leg, quadruped_legs
from com_model.robot_config import ground_wrenches
from com_simulation.physics.contacts import CONTACTS
from com_simulation.physics.sensors import TROT_NOISE, NoiseLevels, Reading

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]


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
        friction: N m, Coulomb friction of every joint, or of each, of which the model knows
            nothing.
        damping: N m s/rad, viscous friction of every joint, or of each, likewise.
        contact_time: s, time constant of the contacts: how soft they are.
        tiles: m, by which tiles of 0.2 m are lower than the highest one, at random; 0: flat ground.
        slope: rad, by which the ground rises forwards.
        grip: Friction coefficient of feet on the ground.
        push: (m/s forwards, m/s to the left, time s): speed that the whole robot is given in 0.1 s.
        rope: (fraction of the robot's weight, time s): a rope lifts so much at the left front hip
            link's CoM from then on.
        way: Velocities of cmd_vel, (time s, (m/s forwards, m/s and rad/s to the left)).
        gait: Parameters of the gait (com_control's GaitParameters) other than the default ones.
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
    friction: float | Sequence[float] = 0.0
    damping: float | Sequence[float] = 0.0
    contact_time: float = CONTACTS["stiff"][0][0]
    tiles: float = 0.0
    slope: float = 0.0
    grip: float = 1.0
    push: tuple[float, float, float] = (0.0, 0.0, 0.0)
    rope: tuple[float, float] | None = None
    way: Sequence[tuple[float, Sequence[float]]] = ()
    gait: dict[str, Any] = field(default_factory=dict)


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
        com_offset_used: (N, 3) m, from the geometric centre, that the gait was given; NaN: none.
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


class Recorder:
    """Keeps what a simulation reads."""

    def __init__(
        self, run: TrotRun, model: RobotModel, config: RobotConfig, period: float
    ) -> None:
        self.run, self.model, self.config, self.period = run, model, config, period
        self.count = round(run.seconds / period)
        self._legs = quadruped_legs(model, config, fewest=2)
        self._feet = [leg.foot_index for leg in self._legs]
        self._rows: list[tuple[Reading, Array, Flags, Array]] = []

    def record(
        self, k: int, reading: Reading, stance: Flags, offset: Array | None
    ) -> Sample:
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
        wrenches = ground_wrenches(
            _stacked(readings, "wrenches")[:, self._feet, :3],
            [leg.foot for leg in self._legs],
        )
        R_root_foot = foot_rotations(self.model, self._legs, position)
        R_world_root = Rotation.from_quat(
            _stacked(readings, "root_orientation")
        ).as_matrix()
        return TrotLog(
            run=self.run,
            model=self.model,
            config=self.config,
            time=np.arange(self.count, dtype=np.float64) * self.period,
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
    return np.stack(
        [link_pose_batch(model, position, leg.foot.wrench_frame)[0] for leg in legs],
        axis=1,
    )


def _matrix(quaternion: Array) -> Array:
    """Rotation (3, 3) of a quaternion x, y, z, w."""
    result = np.empty(9)
    mujoco.mju_quat2Mat(result, quaternion[[3, 0, 1, 2]])
    return result.reshape(3, 3)


def _stacked(readings: Sequence[Reading], name: str) -> Array:
    return np.array([getattr(reading, name) for reading in readings])
