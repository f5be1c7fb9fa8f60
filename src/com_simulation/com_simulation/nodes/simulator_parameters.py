"""Parameters of the simulator node."""

from dataclasses import dataclass, field

from com_ros.exceptions import ParameterError
from com_ros.parameters import parameter
from com_simulation.noise import NoiseLevels
from com_simulation.world import BASES, DEFAULT_STEP


@dataclass(frozen=True)
class NoiseParameters:
    """Standard deviations of the sensors' noise, noise.<name>."""

    position: float = parameter(0.0, "of joint positions, rad or m", (0.0, 10.0))
    velocity: float = parameter(0.0, "of joint velocities, rad/s or m/s", (0.0, 100.0))
    effort: float = parameter(0.0, "of joint efforts, N m or N", (0.0, 1e4))
    force: float = parameter(0.0, "of foot forces, N", (0.0, 1e4))
    torque: float = parameter(0.0, "of foot torques, N m", (0.0, 1e4))
    gyro: float = parameter(0.0, "of angular velocities, rad/s", (0.0, 100.0))
    accelerometer: float = parameter(0.0, "of the specific force, m/s^2", (0.0, 1e3))
    orientation: float = parameter(0.0, "of the IMU's orientation, rad", (0.0, 3.0))

    def levels(self) -> NoiseLevels:
        """The same for the simulation."""
        return NoiseLevels(**vars(self))


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
    publish_rate_hz: float = parameter(
        500.0, "of joint_states, imu, wrenches and truth, in simulated time, 1/s", (0.1, 10000.0)
    )
    physics_step: float = parameter(DEFAULT_STEP, "time step of the physics, s", (1e-5, 0.02))
    seed: int = parameter(0, "of the noise", (0, 2**31 - 1))
    publish_clock: bool = parameter(False, "publish /clock and stamp with simulated time")
    publish_odom_tf: bool = parameter(True, "publish odom -> root link on /tf")
    publish_robot_description: bool = parameter(False, "publish the URDF on robot_description")
    frame_prefix: str = parameter("", "stands in front of the names of the frames on /tf")
    ground_slope_deg: float = parameter(0.0, "rise of the ground forwards, degrees", (-60.0, 60.0))
    noise: NoiseParameters = field(default_factory=NoiseParameters)

    def check(self) -> None:
        """Checks what one parameter demands of another.

        Raises:
            ParameterError: Samples are asked for more often than the physics steps.
        """
        if self.publish_rate_hz * self.physics_step > 1.0 + 1e-9:
            highest, longest = 1.0 / self.physics_step, 1.0 / self.publish_rate_hz
            mend = f"give at most {highest:g}, or a physics_step of at most {longest:g}"
            raise ParameterError("publish_rate_hz", self.publish_rate_hz, mend)
