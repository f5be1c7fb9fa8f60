"""Parameters of the simulator node."""

from dataclasses import dataclass, field, replace

import numpy as np

from com_ros.exceptions import ParameterError
from com_ros.parameters import parameter
from com_simulation.physics.contacts import CONTACTS
from com_simulation.physics.noise import PRESETS, NoiseLevels
from com_simulation.physics.tilting_floor import Tilt
from com_simulation.physics.true_errors import TrueErrors
from com_simulation.physics.trunk import Payload
from com_simulation.physics.world import BASES, DEFAULT_STEP, INTEGRATORS


@dataclass(frozen=True)
class NoiseParameters:
    """Errors of the sensors, noise.<name>: see com_simulation.physics.noise.NoiseLevels."""

    preset: str = parameter(
        "none",
        "errors to begin with: none; trot, those of a trotting quadruped's sensors at 1 kHz; "
        "identification, those of a standing humanoid's. The others of noise.* that are not 0 come "
        "in their place",
        choices=tuple(PRESETS),
    )
    position: float = parameter(0.0, "of joint positions, rad or m", (0.0, 10.0))
    velocity: float = parameter(0.0, "of joint velocities, rad/s or m/s", (0.0, 100.0))
    effort: float = parameter(0.0, "of joint efforts, N m or N", (0.0, 1e4))
    force: float = parameter(0.0, "of foot forces, N", (0.0, 1e4))
    torque: float = parameter(0.0, "of foot torques, N m", (0.0, 1e4))
    gyro: float = parameter(0.0, "of angular velocities, rad/s", (0.0, 100.0))
    accelerometer: float = parameter(0.0, "of the specific force, m/s^2", (0.0, 1e3))
    orientation: float = parameter(0.0, "of the IMU's orientation, rad", (0.0, 3.0))
    position_step: float = parameter(
        0.0, "of encoders: positions are multiples of it, rad or m", (0.0, 10.0)
    )
    effort_relative: float = parameter(0.0, "of joint efforts, over the effort", (0.0, 1.0))
    effort_gain_error: float = parameter(
        0.0, "relative error of each joint's efforts, drawn once", (0.0, 1.0)
    )
    force_relative: float = parameter(
        0.0, "of foot forces and torques, over their size", (0.0, 1.0)
    )
    gyro_bias: float = parameter(0.0, "drawn once, of angular velocities, rad/s", (0.0, 100.0))
    accelerometer_bias: float = parameter(0.0, "drawn once, m/s^2", (0.0, 1e3))
    orientation_bias: float = parameter(
        0.0, "drawn once, of the IMU's orientation, rad", (0.0, 3.0)
    )

    def levels(self) -> NoiseLevels:
        """The same for the simulation."""
        given = {name: value for name, value in vars(self).items() if name != "preset" and value}
        return replace(PRESETS[self.preset], **given)


@dataclass(frozen=True)
class TrueErrorParameters:
    """How far the simulated robot is off its URDF, true_errors.<name>."""

    com: float = parameter(
        0.0, "standard deviation of each link's CoM from the URDF's, along each axis, m", (0.0, 1.0)
    )
    mass: float = parameter(
        0.0, "standard deviation of each link's mass, over that mass", (0.0, 0.5)
    )
    seed: int = parameter(0, "of these errors; the same seed gives the same robot", (0, 2**31 - 1))

    def errors(self) -> TrueErrors:
        """The same for the simulation."""
        return TrueErrors(self.com, self.mass, self.seed)


@dataclass(frozen=True)
class PayloadParameters:
    """A point mass put on the trunk while the robot moves, payload.<name>."""

    mass: float = parameter(0.0, "kg; 0: none", (0.0, 1e4))
    position: tuple[float, ...] = parameter(
        (0.0, 0.0, 0.0), "in the root link's frame, x, y, z, m", (-100.0, 100.0)
    )
    time: float = parameter(0.0, "s of simulated time from which on it is there", (0.0, 1e6))

    def payload(self) -> Payload | None:
        """The same for the simulation; None for none."""
        return Payload(self.mass, np.array(self.position), self.time) if self.mass else None


@dataclass(frozen=True)
class TiltParameters:
    """How the floor tilts while the robot stands on it, tilt.<name>."""

    angle_deg: float = parameter(0.0, "to which the floor tilts, degrees; 0: not", (0.0, 60.0))
    rate_deg_s: float = parameter(5.0, "by which it does, degrees/s", (0.01, 180.0))
    direction_deg: float = parameter(
        0.0, "of the side that rises: 0 forwards, 90 to the left", (-360.0, 360.0)
    )
    start: float = parameter(
        5.0, "s of simulated time at which it begins; 1e6: with the service ~/tilt", (0.0, 1e6)
    )
    hold: float = parameter(5.0, "s at the angle before it goes back; 1e6: it stays", (0.0, 1e6))

    def tilt(self) -> Tilt | None:
        """The same for the simulation; None for none."""
        if self.angle_deg == 0.0:
            return None
        angle, rate, direction = np.radians((self.angle_deg, self.rate_deg_s, self.direction_deg))
        return Tilt(float(angle), float(rate), float(direction), self.start, self.hold)


@dataclass(frozen=True)
class Parameters:
    """Parameters of the simulator."""

    robot_description: str = parameter(
        "", "URDF as text; empty: urdf_file, or wait for the topic robot_description"
    )
    urdf_file: str = parameter(
        "", "path of the URDF; with robot_description given: where to look for its meshes"
    )
    robot_config: str = parameter("", "path of the robot's configuration, YAML; empty: none")
    base: str = parameter(
        "auto", "root link free or fixed; auto: free if robot_config names feet", choices=BASES
    )
    real_time_factor: float = parameter(
        1.0, "simulated over wall time; 0: as fast as the machine can", (0.0, 1000.0)
    )
    command_wait: float = parameter(
        0.0,
        "s of real time, at most, that a sample waits for a joint_trajectory with its stamp, where "
        "a controller answers each sample, or each n-th; 0: never",
        (0.0, 60.0),
    )
    publish_rate_hz: float = parameter(
        500.0, "of joint_states, imu, wrenches and truth, in simulated time, 1/s", (0.1, 10000.0)
    )
    physics_step: float = parameter(DEFAULT_STEP, "time step of the physics, s", (1e-5, 0.02))
    integrator: str = parameter(
        "auto",
        "auto: stable; euler: readings obey Newton exactly, needs a physics_step of about 0.0001",
        choices=INTEGRATORS,
    )
    contact: str = parameter(
        "stiff", "of the feet with the ground: stiff, or soft as in [CCGD]", choices=tuple(CONTACTS)
    )
    trunk_com_offset: tuple[float, ...] = parameter(
        (0.0, 0.0, 0.0),
        "of the simulated root body's CoM from the URDF's, x, y, z in the root link's axes, m",
        (-10.0, 10.0),
    )
    joint_friction: float = parameter(
        0.0, "Coulomb friction of every joint that efforts do not show, N m or N", (0.0, 1e4)
    )
    seed: int = parameter(0, "of the noise", (0, 2**31 - 1))
    publish_clock: bool = parameter(False, "publish /clock and stamp with simulated time")
    publish_odom_tf: bool = parameter(True, "publish odom -> root link on /tf")
    publish_robot_description: bool = parameter(False, "publish the URDF on robot_description")
    frame_prefix: str = parameter("", "stands in front of the names of the frames on /tf")
    ground_slope_deg: float = parameter(0.0, "rise of the ground forwards, degrees", (-60.0, 60.0))
    noise: NoiseParameters = field(default_factory=NoiseParameters)
    payload: PayloadParameters = field(default_factory=PayloadParameters)
    tilt: TiltParameters = field(default_factory=TiltParameters)
    true_errors: TrueErrorParameters = field(default_factory=TrueErrorParameters)
    true_urdf_file: str = parameter(
        "", "path of the URDF that is simulated in place of the one that is believed; empty: none"
    )
    true_urdf_output: str = parameter(
        "", "path to which the simulated robot's URDF is written; empty: nowhere"
    )

    def check(self) -> None:
        """Checks what one parameter demands of another.

        Raises:
            ParameterError: Samples are asked for more often than the physics steps; a vector
                without three numbers.
        """
        vectors = (
            ("trunk_com_offset", self.trunk_com_offset),
            ("payload.position", self.payload.position),
        )
        for name, vector in vectors:
            if len(vector) != 3:
                raise ParameterError(name, list(vector), "give three numbers: x, y, z")
        if self.publish_rate_hz * self.physics_step > 1.0 + 1e-9:
            highest, longest = 1.0 / self.physics_step, 1.0 / self.publish_rate_hz
            fix = f"give at most {highest:g}, or a physics_step of at most {longest:g}"
            raise ParameterError("publish_rate_hz", self.publish_rate_hz, fix)
