"""What trunk_estimator makes of one model: its legs, its estimator, what watches the input."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from com_estimation.nodes.trunk_parameters import DING, Parameters
from com_estimation.trunk.contact_detection import ContactOptions
from com_estimation.trunk.ding import DingEstimator
from com_estimation.trunk.floating_base import FloatingBaseEstimator
from com_estimation.trunk.force_meter import ForceMeter
from com_estimation.trunk.input_checks import InputChecks
from com_estimation.trunk.interface import TrunkEstimator
from com_estimation.trunk.pipeline import TrunkPipeline
from com_model import RobotConfig, RobotModel
from com_model.legs import Leg, quadruped_legs
from com_ros.exceptions import ParameterError
from com_ros.joint_input import JointInput

EstimatorFactory = Callable[[RobotModel, RobotConfig, Parameters], TrunkEstimator]


@dataclass(frozen=True)
class TrunkRobot:
    """What belongs to one model."""

    model: RobotModel  # the robot
    legs: tuple[Leg, Leg, Leg, Leg]  # its legs
    joints: JointInput  # takes in joint_states
    pipeline: TrunkPipeline  # takes in samples
    frame: str  # the root link's, with the prefix


def make_estimator(model: RobotModel, config: RobotConfig, p: Parameters) -> TrunkEstimator:
    """The estimator that the parameter `method` names; ParameterError for a value that is none."""
    try:
        if p.method == DING:
            contact = ContactOptions(load=p.floating_base.contact_load)
            options = replace(p.ding, forces=p.ground_reaction, contact=contact)
            return DingEstimator(model, config, options)
        return FloatingBaseEstimator(model, config, p.floating_base)
    except (ValueError, ZeroDivisionError) as error:
        raise ParameterError(p.method, "as given", str(error)) from None


def make_robot(
    model: RobotModel, config: RobotConfig, p: Parameters, estimator: EstimatorFactory
) -> TrunkRobot:
    """Everything for a new model; ConfigError or ParameterError where something does not fit it."""
    legs = quadruped_legs(model, config)
    health = InputChecks(model, legs, rate_hz=p.expected_rate_hz)
    rate_hz = min(p.publish_rate_hz, 200.0)
    contact = ContactOptions(load=p.floating_base.contact_load)
    meter = ForceMeter(model, config, legs, p.ground_reaction, rate_hz, contact)
    trunk_mass = float(model.bodies.mass[0])
    return TrunkRobot(
        model=model,
        legs=legs,
        joints=JointInput(model.joint_names, p.joint_timeout, _assumed(model, config, legs, p)),
        pipeline=TrunkPipeline(estimator(model, config, p), health, meter, trunk_mass),
        frame=p.frame_prefix + model.root_link,
    )


def _assumed(
    model: RobotModel, config: RobotConfig, legs: tuple[Leg, ...], p: Parameters
) -> dict[str, float]:
    """Assumed positions: those given, and the posture's for joints of no leg."""
    found: dict[str, float] = {}
    if p.assume_posture:
        moving = {int(joint) for leg in legs for joint in leg.joints}
        posture = config.nominal_posture(model)
        others = [i for i in range(model.n_joints) if i not in moving]
        found = {model.joint_names[i]: float(posture[i]) for i in others}
    return found | p.assumed()
