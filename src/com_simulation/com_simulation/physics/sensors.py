"""Readings of the robot's sensors, their errors, and the ground truth: CoM and pose.

Errors are noise, and biases that stay the same for a whole run. The same seed yields the same
errors.
"""

from dataclasses import dataclass, replace

import mujoco
import numpy as np

from com_model.arrays import Array
from com_model.parameters import parameter
from com_model.robot_config import wrench_signs
from com_simulation.physics.contacts import body_of_foot
from com_simulation.physics.spec import DISCRETE
from com_simulation.physics.true_errors import ROOT, read_trunk
from com_simulation.physics.world_builder import World

_XYZW = [1, 2, 3, 0]  # MuJoCo's quaternions are w, x, y, z
SAME_TIME = 1e-6  # s


@dataclass(frozen=True, eq=False)
class Reading:
    """All readings and the ground truth at one instant. Quaternions are x, y, z, w.

    Attributes:
        time: s, of the simulation.
        position: (n,) rad or m.
        velocity: (n,) rad/s or m/s.
        effort: (n,) N m or N, of the servos.
        wrenches: (f, 6) N and N m, force and torque of the ground on each foot, or the opposite
            where its sign is -1; axes and origin of the foot's wrench frame.
        imu_orientation: (4,) of the IMU's link in the world.
        angular_velocity: (3,) rad/s, of the IMU's link, in its axes.
        specific_force: (3,) m/s^2, acceleration of the IMU's link minus gravity, in its axes.
        com: (3,) m, the true centre of mass in the root link's frame.
        com_velocity: (3,) m/s, relative to the root link, in its axes.
        gravity: (3,) unit vector downwards, in the root link's axes.
        root_position: (3,) m, of the root link in the world.
        root_orientation: (4,) of the root link in the world.
        foot_forces: (f, 3) N, the true force of the ground on each foot, root link's axes.
        mass: kg, of the robot with its payload.
        trunk_mass: kg, of the root body with its payload.
        trunk_com: (3,) m, its centre of mass in the root link's frame.
        trunk_inertia: (3, 3) kg m^2, about trunk_com, root link's axes.
    """

    time: float
    position: Array
    velocity: Array
    effort: Array
    wrenches: Array
    imu_orientation: Array
    angular_velocity: Array
    specific_force: Array
    com: Array
    com_velocity: Array
    gravity: Array
    root_position: Array
    root_orientation: Array
    foot_forces: Array
    mass: float
    trunk_mass: float
    trunk_com: Array
    trunk_inertia: Array


class Sensors:
    """Reads the sensors from MuJoCo's data.

    MuJoCo computes forces, accelerations and the CoM at the start of a step, then integrates. So
    the caller stores time, qpos and qvel before a step and reads after it: everything is of the
    same instant, and nothing is computed twice.

    Args:
        world: the robot, its feet and its IMU.
        mj: the MuJoCo model that is simulated.
        data: its state.
    """

    def __init__(self, world: World, mj: mujoco.MjModel, data: mujoco.MjData) -> None:
        self._world, self._data = world, data
        self._imu = world.mj.site("imu").id
        self._feet = [
            (body_of_foot(world.robot, foot), world.mj.site(f"wrench{i}").id)
            for i, foot in enumerate(world.feet)
        ]
        self._signs = wrench_signs(world.feet)
        self._implicit = mj.opt.integrator == DISCRETE
        self._foot_bodies = [body for body, _ in self._feet]
        self.read_masses(mj)

    def read_masses(self, mj: mujoco.MjModel) -> None:
        """Reads the masses, which a payload changes.

        Args:
            mj: the MuJoCo model.
        """
        self._mass = float(mj.body_subtreemass[ROOT])
        self._trunk = read_trunk(mj)

    def efforts(self) -> Array:
        """What the servos (n,) exerted during the last step, N m or N.

        MuJoCo's are those at its start. Its discrete integrator lets servos act by positions and
        velocities at the end of the step: on a stiff joint the difference is as if friction of
        stiffness times step, 7 N m s/rad of a G1, were not in the efforts that are read.
        """
        world, data, dof = self._world, self._data, self._world.joint_dof
        effort, servos = data.qfrc_actuator[dof], world.servos
        if not self._implicit:
            return effort
        slowed = servos.stiffness * data.qvel[dof] + servos.damping * data.qacc[dof]
        acting = effort - world.mj.opt.timestep * slowed
        return np.where(np.abs(effort) < servos.effort, acting, effort)

    def read(self, time: float, qpos: Array, qvel: Array) -> Reading:
        """Reads all sensors after a step.

        Args:
            time: s, at the start of the step.
            qpos: (nq,) MuJoCo's positions at that time.
            qvel: (nv,) MuJoCo's velocities at that time.

        Returns:
            The readings without errors.
        """
        world, data = self._world, self._data
        R_world_root, root = data.xmat[ROOT].reshape(3, 3), data.xpos[ROOT].copy()
        accelerometer, gyro, com_velocity = data.sensordata.copy().reshape(3, 3)
        com = (data.subtree_com[ROOT] - root) @ R_world_root
        relative = com_velocity @ R_world_root
        if (
            world.floating
        ):  # qvel: linear velocity in world axes, angular velocity in the root's
            spin = np.empty(3)
            mujoco.mju_cross(spin, qvel[3:6], com)
            relative = relative - qvel[:3] @ R_world_root - spin
        imu = np.empty(4)
        mujoco.mju_mat2Quat(imu, data.site_xmat[self._imu])
        return Reading(
            time=time,
            position=qpos[world.joint_qpos],
            velocity=qvel[world.joint_dof],
            effort=self.efforts(),
            wrenches=self._wrenches(),
            imu_orientation=imu[_XYZW],
            angular_velocity=gyro,
            specific_force=accelerometer,
            com=com,
            com_velocity=relative,
            gravity=-R_world_root[2],
            root_position=root,
            root_orientation=data.xquat[ROOT][_XYZW],
            foot_forces=data.cfrc_ext[self._foot_bodies, 3:] @ R_world_root,
            mass=self._mass,
            trunk_mass=self._trunk.mass,
            trunk_com=self._trunk.com,
            trunk_inertia=self._trunk.inertia,
        )

    def _wrenches(self) -> Array:
        """Sums of all contact forces on the feet, (f, 6).

        MuJoCo's cfrc_ext holds, per body, torque and force of its contacts about the CoM of the
        robot in world axes; they are moved to the wrench frame:
        tau_frame = R^T (tau + (c - p_frame) x f), f_frame = R^T f.
        """
        data = self._data
        center = data.subtree_com[ROOT]
        result = np.empty((len(self._feet), 6))
        moved = np.empty(6)
        for row, (body, site) in zip(result, self._feet, strict=True):
            origin, R = data.site_xpos[site], data.site_xmat[site]
            mujoco.mju_transformSpatial(
                moved, data.cfrc_ext[body], 1, origin, center, R
            )
            row[:3], row[3:] = moved[3:], moved[:3]
        return self._signs * result


@dataclass(frozen=True)
class NoiseLevels:
    """Errors of the sensors.

    Standard deviations per component; noise is drawn for each sample, biases and gain errors
    once in a run. Noise is added before rounding, gain errors before noise.
    """

    position: float = parameter(0.0, "noise of joint positions, rad or m", (0.0, 10.0))
    velocity: float = parameter(
        0.0, "noise of joint velocities, rad/s or m/s", (0.0, 100.0)
    )
    effort: float = parameter(0.0, "noise of joint efforts, N m or N", (0.0, 1e4))
    force: float = parameter(0.0, "noise of foot forces, N", (0.0, 1e4))
    torque: float = parameter(0.0, "noise of foot torques, N m", (0.0, 1e4))
    gyro: float = parameter(0.0, "noise of angular velocities, rad/s", (0.0, 100.0))
    accelerometer: float = parameter(
        0.0, "noise of the specific force, m/s^2", (0.0, 1e3)
    )
    orientation: float = parameter(
        0.0, "noise of the IMU's orientation per axis, rad", (0.0, 3.0)
    )
    position_step: float = parameter(
        0.0,
        "encoder positions are rounded to multiples of this, rad or m; 0: not",
        (0.0, 10.0),
    )
    effort_relative: float = parameter(
        0.0, "relative noise of joint efforts", (0.0, 1.0)
    )
    effort_gain_error: float = parameter(
        0.0, "relative error of each joint's efforts, drawn once", (0.0, 1.0)
    )
    force_relative: float = parameter(
        0.0,
        "noise of foot forces and torques, relative to the magnitude of either",
        (0.0, 1.0),
    )
    gyro_bias: float = parameter(
        0.0, "bias of angular velocities, drawn once, rad/s", (0.0, 100.0)
    )
    accelerometer_bias: float = parameter(
        0.0, "bias of the specific force, drawn once per axis, m/s^2", (0.0, 1e3)
    )
    orientation_bias: float = parameter(
        0.0, "IMU tilt about each of its axes, drawn once, rad", (0.0, 3.0)
    )
    position_bias: float = parameter(
        0.0,
        "largest error of each encoder's zero, and its servo's, drawn once, rad",
        (0.0, 1.0),
    )
    flexibility: float = parameter(
        0.0,
        "by which joints give between the encoder, on the motor's side, and the link, rad/(N m)",
        (0.0, 1.0),
    )
    force_bias: float = parameter(
        0.0, "bias of foot forces, drawn once per axis, N", (0.0, 1e4)
    )
    torque_bias: float = parameter(0.0, "the same of foot torques, N m", (0.0, 1e4))

    def imu_covariances(self) -> dict[str, Array]:
        """Row-major (9,) covariances of an Imu message; not 0, which would mean "unknown".

        Returns:
            By name of the message's field.
        """
        return {
            f"{name}_covariance": (max(std**2 + bias**2, 1e-12) * np.eye(3)).ravel()
            for name, std, bias in (
                ("orientation", self.orientation, self.orientation_bias),
                ("angular_velocity", self.gyro, self.gyro_bias),
                ("linear_acceleration", self.accelerometer, self.accelerometer_bias),
            )
        }


ENCODER_STEP = 2.0 * np.pi / 65536  # rad, of 16 bits

# Sensors of a trotting quadruped, samples at 1 kHz. The velocities' noise results when positions
# of such encoders are differenced at that rate: step / (sqrt(6) 1 ms).
TROT_NOISE = NoiseLevels(
    velocity=ENCODER_STEP / np.sqrt(6.0) / 0.001,
    gyro=0.005,
    accelerometer=0.03,
    orientation=np.deg2rad(0.2),
    position_step=ENCODER_STEP,
    effort_relative=0.01,
    effort_gain_error=0.01,
    force_relative=0.01,
    accelerometer_bias=0.02,
    orientation_bias=np.deg2rad(0.1),
)
# Sensors of a humanoid on which the CoM is identified: force/torque sensors in its feet, encoders,
# joint torques, an IMU with a filter.
IDENTIFICATION_NOISE = NoiseLevels(
    position=np.deg2rad(0.05),
    velocity=0.01,
    effort=0.1,
    force=0.5,
    torque=0.025,
    gyro=0.005,
    accelerometer=0.03,
    orientation=np.deg2rad(0.05),
)
PRESETS = {
    "none": NoiseLevels(),
    "trot": TROT_NOISE,
    "identification": IDENTIFICATION_NOISE,
}


class Noise:
    """Adds errors to readings, with its own random generators.

    Args:
        levels: standard deviations.
        n_joints: number of joints.
        n_feet: number of feet with force sensors.
        seed: the same seed yields the same errors.

    Attributes:
        seed: as given.
        levels: as given.
        exact: readings stay as they are.
        effort_gain: (n,) factors of the efforts.
        gyro_bias: (3,) rad/s.
        accelerometer_bias: (3,) m/s^2.
        orientation_bias: (3,) rad, rotation about the IMU's axes.
        position_bias: (n,) rad, of the encoders and their servos.
        wrench_bias: (f, 6) N and N m.
    """

    def __init__(
        self, levels: NoiseLevels, n_joints: int, n_feet: int, seed: int
    ) -> None:
        self.seed = seed
        self.levels = levels
        self._generator = np.random.default_rng(seed)
        self.exact = levels == NoiseLevels()  # readings stay as they are
        blocks = (n_joints, n_joints, n_joints, 6 * n_feet, 3, 3, 3)
        self._count = sum(blocks)
        self._ends = np.cumsum(blocks)[:-1]
        # second word of the seed of the errors that stay the same
        constant = np.random.default_rng([seed, 1])
        self.effort_gain = 1.0 + levels.effort_gain_error * constant.standard_normal(
            n_joints
        )
        self.gyro_bias = levels.gyro_bias * constant.standard_normal(3)
        self.accelerometer_bias = levels.accelerometer_bias * constant.standard_normal(
            3
        )
        self.orientation_bias = levels.orientation_bias * constant.standard_normal(3)
        self.position_bias = levels.position_bias * constant.uniform(
            -1.0, 1.0, n_joints
        )
        sizes = np.repeat([levels.force_bias, levels.torque_bias], 3)
        self.wrench_bias = sizes * constant.standard_normal((n_feet, 6))
        self._twist = -np.inf, np.zeros(n_joints)  # s, rad, of the joints that give

    def add(self, reading: Reading) -> Reading:
        """Adds the errors of the sensors to a reading; the ground truth stays as it is.

        Args:
            reading: without errors.

        Returns:
            A reading with errors.
        """
        if self.exact:
            return reading
        levels = self.levels
        position, velocity, effort, wrenches, gyro, accelerometer, turn = np.split(
            self._generator.standard_normal(self._count), self._ends
        )
        tau = reading.effort
        effort_std = np.hypot(levels.effort, levels.effort_relative * tau)
        orientation = _turned(reading.imu_orientation, self.orientation_bias)
        (before, old), twist = self._twist, levels.flexibility * tau
        self._twist = reading.time, twist
        return replace(
            reading,
            position=_rounded(
                reading.position
                + self.position_bias
                + twist
                + levels.position * position,
                levels.position_step,
            ),
            velocity=reading.velocity
            + (twist - old) / max(reading.time - before, SAME_TIME)
            + levels.velocity * velocity,
            effort=self.effort_gain * tau + effort_std * effort,
            wrenches=self._wrenches(reading.wrenches, wrenches.reshape(-1, 6)),
            angular_velocity=reading.angular_velocity
            + self.gyro_bias
            + levels.gyro * gyro,
            specific_force=reading.specific_force
            + self.accelerometer_bias
            + levels.accelerometer * accelerometer,
            imu_orientation=_turned(orientation, levels.orientation * turn),
        )

    def _wrenches(self, true: Array, drawn: Array) -> Array:
        """Wrenches (f, 6) with noise."""
        levels = self.levels
        sizes = np.sqrt((true.reshape(-1, 2, 3) ** 2).sum(axis=2))
        stds = np.hypot([levels.force, levels.torque], levels.force_relative * sizes)
        return np.asarray(true + self.wrench_bias + np.repeat(stds, 3, axis=1) * drawn)


def _rounded(values: Array, step: float) -> Array:
    return np.round(values / step) * step if step else values


def _turned(quaternion: Array, turn: Array) -> Array:
    """The orientation x, y, z, w (4,) after a rotation vector (3,) rad in its own axes."""
    wxyz = quaternion[[3, 0, 1, 2]]
    mujoco.mju_quatIntegrate(wxyz, turn, 1.0)
    return wxyz[_XYZW]
