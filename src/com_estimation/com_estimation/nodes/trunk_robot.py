"""Parameters of trunk_estimator, and the objects that it makes for one model."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from com_estimation.trunk.ding import DingEstimator, DingOptions
from com_estimation.trunk.floating_base import (
    FloatingBaseEstimator,
    FloatingBaseOptions,
)
from com_estimation.trunk.ground_reaction import INVERSE_DYNAMICS, METHODS, ForceMeter
from com_estimation.trunk.interface import TrunkEstimator
from com_estimation.trunk.pipeline import InputChecks, TrunkPipeline
from com_model import RobotConfig, RobotModel
from com_model.legs import Leg, quadruped_legs
from com_ros.exceptions import ParameterError
from com_ros.parameters import (
    AssumedJoints,
    FramePrefix,
    JointTimeout,
    RobotParameters,
    WrenchTimeout,
    live_parameter,
    parameter,
)

FLOATING_BASE, DING = "floating_base", "ding"


@dataclass(frozen=True)
class Parameters(
    RobotParameters, JointTimeout, WrenchTimeout, AssumedJoints, FramePrefix
):
    """Parameters of trunk_estimator; robot_config must give four feet with side and end."""

    method: str = parameter(
        FLOATING_BASE, "the estimator", choices=(FLOATING_BASE, DING)
    )
    ground_reaction: str = parameter(
        INVERSE_DYNAMICS,
        "where the forces on ground_reaction come from",
        choices=METHODS,
    )
    publish_rate_hz: float = live_parameter(
        200.0, "1/s, highest rate of trunk_com and ground_reaction", (1.0, 10000.0)
    )
    display_rate_hz: float = parameter(
        30.0, "1/s, rate of trunk_com/markers and /tf; 0: disabled", (0.0, 1000.0)
    )
    expected_rate_hz: float = parameter(
        0.0,
        "1/s, of joint_states as the driver is set; slower ones are reported; 0: 150 Hz at least",
        (0.0, 10000.0),
    )
    imu_wait: float = parameter(
        0.02,
        "s by the stamps, for which joint_states wait for an imu that is as new",
        (0.0, 1.0),
    )
    imu_tolerance: float = live_parameter(
        0.005,
        "s, time between joint_states and the imu reading paired with it that is not reported",
        (0.0, 1.0),
    )
    imu_max_offset: float = parameter(
        0.03,
        "s, largest time between joint_states and the imu reading paired with it; without imu "
        "beyond",
        (0.0001, 1.0),
    )
    stance_timeout: float = live_parameter(
        0.2, "s, largest time between gait/stance and joint_states", (0.001, 60.0)
    )
    assume_posture: bool = parameter(
        True,
        "joints outside the legs that joint_states does not contain are assumed at their position "
        "in the configuration's posture",
    )
    publish_corrected: bool = parameter(
        False,
        "publish robot_description_corrected, the URDF with the trunk's mass and CoM as estimated",
    )
    corrected_change: float = live_parameter(
        0.002, "m, change of the CoM that triggers a new corrected URDF", (0.0, 10.0)
    )
    corrected_mass_change: float = live_parameter(
        0.01,
        "fraction of the trunk's mass whose change triggers a new corrected URDF",
        (0.0, 10.0),
    )
    floating_base: FloatingBaseOptions = field(default_factory=FloatingBaseOptions)
    ding: DingOptions = field(default_factory=DingOptions)


EstimatorFactory = Callable[[RobotModel, RobotConfig, Parameters], TrunkEstimator]


@dataclass(frozen=True)
class TrunkRobot:
    """The objects of trunk_estimator that belong to one model.

    Attributes:
        model: the robot.
        legs: its legs, in the order of legs.LEGS.
        pipeline: checks samples and estimates.
        frame: name of the root link's frame, with the prefix.
    """

    model: RobotModel
    legs: tuple[Leg, Leg, Leg, Leg]
    pipeline: TrunkPipeline
    frame: str


def make_estimator(
    model: RobotModel, config: RobotConfig, p: Parameters
) -> TrunkEstimator:
    """Makes the estimator that the parameter `method` names.

    Args:
        model: the robot.
        config: its configuration.
        p: the node's parameters; those of the estimator are among them.

    Returns:
        A DingEstimator or a FloatingBaseEstimator.

    Raises:
        ParameterError: a value is not allowed.
        ConfigError: the robot is no quadruped, or its IMU is not on the trunk.
    """
    try:
        if p.method == DING:
            load = p.floating_base.contact_load
            options = replace(p.ding, forces=p.ground_reaction, contact_load=load)
            return DingEstimator(model, config, options)
        return FloatingBaseEstimator(model, config, p.floating_base)
    except (ValueError, ZeroDivisionError) as error:
        raise ParameterError(p.method, "as given", str(error)) from None


def make_robot(
    model: RobotModel, config: RobotConfig, p: Parameters, estimator: EstimatorFactory
) -> TrunkRobot:
    """Makes everything for a new model: legs, joint input, checks, estimator, force measurement.

    Args:
        model: the robot.
        config: its configuration, with four feet that have side and end.
        p: the node's parameters.
        estimator: makes the estimator; see make_estimator.

    Returns:
        The objects, ready for the first sample.

    Raises:
        ConfigError: the configuration does not fit the model.
        ParameterError: a parameter does not.
    """
    legs = quadruped_legs(model, config)
    health = InputChecks(model, legs, rate_hz=p.expected_rate_hz)
    rate_hz = min(p.publish_rate_hz, 200.0)
    load = p.floating_base.contact_load
    meter = ForceMeter(model, config, legs, p.ground_reaction, rate_hz, load)
    trunk_mass = float(model.bodies.mass[0])
    return TrunkRobot(
        model=model,
        legs=legs,
        pipeline=TrunkPipeline(estimator(model, config, p), health, meter, trunk_mass),
        frame=p.frame_prefix + model.root_link,
    )


def assumed_joints(
    model: RobotModel, config: RobotConfig, p: Parameters
) -> dict[str, float]:
    """Positions of joints that joint_states may lack: given ones, else the posture's.

    Args:
        model: the robot.
        config: its configuration, with four feet that have side and end.
        p: the node's parameters.
    """
    found: dict[str, float] = {}
    if p.assume_posture:
        legs = quadruped_legs(model, config)
        moving = {int(joint) for leg in legs for joint in leg.joints}
        posture = config.nominal_posture(model)
        others = [i for i in range(model.n_joints) if i not in moving]
        found = {model.joint_names[i]: float(posture[i]) for i in others}
    return found | p.assumed()
