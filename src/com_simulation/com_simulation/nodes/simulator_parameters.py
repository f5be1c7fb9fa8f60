"""Parameters of the simulator node."""

from dataclasses import dataclass, field, replace

from com_model import RobotModel
from com_ros.exceptions import ParameterError
from com_ros.parameters import FramePrefix, RobotParameters, parameter
from com_simulation.physics.contacts import CONTACTS
from com_simulation.physics.sensors import PRESETS, NoiseLevels
from com_simulation.physics.suspension_rig import Tilt
from com_simulation.physics.true_errors import Payload, TrueErrors
from com_simulation.physics.world_builder import BASES, DEFAULT_STEP, INTEGRATORS


@dataclass(frozen=True)
class SimulatedRobot(RobotParameters):
    """Parameters of the robot, and whether its root is free."""

    urdf_file: str = parameter(
        "",
        "path of the URDF; with robot_description given: where to look for its meshes",
    )
    base: str = parameter(
        "auto",
        "root link free or fixed; auto: free if robot_config names feet",
        choices=BASES,
    )

    def model(self) -> RobotModel | None:
        """The robot given by the parameters.

        Returns:
            The model; None: it comes from the topic robot_description.
        """
        if self.robot_description:
            return RobotModel.from_urdf(self.robot_description)
        return RobotModel.from_file(self.urdf_file) if self.urdf_file else None


@dataclass(frozen=True)
class NoiseParameters(NoiseLevels):
    """Parameters noise.<name>: errors of the sensors."""

    preset: str = parameter(
        "none",
        "errors to begin with: none; trot, those of a trotting quadruped's sensors at 1 kHz; "
        "identification, those of a standing humanoid's. The others of noise.* that are not 0 come "
        "in their place",
        choices=tuple(PRESETS),
    )

    def levels(self) -> NoiseLevels:
        """The preset's levels, replaced by the parameters that are not 0."""
        given = {
            name: value
            for name, value in vars(self).items()
            if name != "preset" and value
        }
        return replace(PRESETS[self.preset], **given)


@dataclass(frozen=True)
class LockstepParameters:
    """Parameters lockstep.<name>: nodes that the simulation waits for."""

    nodes: tuple[str, ...] = parameter(
        (), "names of nodes that must have processed a sample before the next one comes"
    )
    timeout: float = parameter(
        20.0,
        "s of real time after which the simulation continues without a late node",
        (0.1, 3600.0),
    )
    start_timeout: float = parameter(
        300.0,
        "s of real time for the first answer: a first start compiles kernels",
        (0.1, 3600.0),
    )


@dataclass(frozen=True)
class Parameters(SimulatedRobot, FramePrefix):
    """Parameters of the simulator."""

    real_time_factor: float = parameter(
        1.0, "simulated over wall time; 0: as fast as the machine can", (0.0, 1000.0)
    )
    publish_rate_hz: float = parameter(
        500.0,
        "rate of joint_states, imu, wrenches, truth in simulated time, 1/s",
        (0.1, 10000.0),
    )
    physics_step: float = parameter(
        DEFAULT_STEP, "time step of the physics, s", (1e-5, 0.02)
    )
    integrator: str = parameter(
        "auto",
        "auto: stable with stiff servos; euler: explicit, needs a physics_step of about 0.0001",
        choices=INTEGRATORS,
    )
    world: str = parameter(
        "",
        "ground, sensors and drives by name, e.g. soft+noise, tiles_5mm, step_3cm, slope_5deg, "
        "ramp_5deg, friction_0.3, zeros_0.5deg, delay_20ms, backlash_0.3deg, flexible_0.05mrad "
        "(by N m); empty: as below",
    )
    event: str = parameter(
        "",
        "what happens, by name and time (without @: by the service ~/push), e.g. left_0.2@6+"
        "left_20N@6-9+payload_4kg_left_hand@5-12+fx_10N_SOLE@8+tilt_x_0.7deg@8+encoder_1deg_JOINT",
    )
    contact: str = parameter(
        "stiff", "foot contact: stiff, or soft as in [CCGD]", choices=tuple(CONTACTS)
    )
    trunk_com_offset: tuple[float, ...] = parameter(
        (0.0, 0.0, 0.0),
        "offset of the simulated root body's CoM from the URDF's, x, y, z in root axes, m",
        (-10.0, 10.0),
    )
    joint_friction: float = parameter(
        0.0,
        "Coulomb friction of every joint that efforts do not show, N m or N",
        (0.0, 1e4),
    )
    viscous_friction: float = parameter(
        0.0, "the same over the joint's speed, N m s/rad or N s/m", (0.0, 1e4)
    )
    load_friction: float = parameter(
        0.0,
        "the same over the joint's effort: 0.05 to 0.35 of a Go2's drives",
        (0.0, 0.9),
    )
    max_acceleration: float = parameter(
        0.0,
        "of all joints, rad/s^2 or m/s^2, which keep the URDF's speeds, too; a warning says "
        "what was asked for beyond; 0: drives without limits",
        (0.0, 1e6),
    )
    backlash: float = parameter(
        0.0, "total backlash between every drive and its link, rad or m", (0.0, 0.5)
    )
    seed: int = parameter(0, "seed of the noise", (0, 2**31 - 1))
    publish_clock: bool = parameter(
        False, "publish /clock and stamp with simulated time"
    )
    publish_odom_tf: bool = parameter(True, "publish odom -> root link on /tf")
    publish_robot_description: bool = parameter(
        False, "publish the URDF on robot_description"
    )
    ground_slope_deg: float = parameter(
        0.0, "forward rise of the ground, degrees", (-60.0, 60.0)
    )
    lockstep: LockstepParameters = field(default_factory=LockstepParameters)
    noise: NoiseParameters = field(default_factory=NoiseParameters)
    payload: Payload = field(default_factory=Payload)
    tilt: Tilt = field(default_factory=Tilt)
    true_errors: TrueErrors = field(default_factory=TrueErrors)
    true_urdf_file: str = parameter(
        "",
        "path of the true URDF to simulate, if it differs from the nodes'; empty: none",
    )
    true_urdf_output: str = parameter(
        "", "path to write the simulated robot's URDF to; empty: not written"
    )

    def check(self) -> None:
        """Checks that vectors have three numbers, and samples are no more frequent than steps.

        Raises:
            ParameterError: they are not.
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
