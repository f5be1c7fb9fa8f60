"""What belongs to one robot model in ccgd_gait."""

from __future__ import annotations

from rclpy.clock import Clock

from com_control.exceptions import ComControlError, PlanError
from com_control.nodes.ccgd_input import RobotInput
from com_control.nodes.ccgd_parameters import Parameters
from com_control.nodes.walk_conversions import GoalValues
from com_control.walking.biped import Biped
from com_control.walking.footsteps import Footstep
from com_control.walking.session import WalkSession
from com_control.walking.walk_monitor import Reading, WalkChecks, WalkEstimator
from com_control.walking.walker import Walker, WalkRequest
from com_control.walking.whole_body_ik import WholeBodyIk
from com_model import RobotConfig, RobotModel
from com_ros.exceptions import ComRosError


class Robot:
    """Session, planner, solver and inputs of one robot.

    Args:
        model: The robot.
        config: Its configuration.
        settings: Of the node.
        clock: Of the node.

    Attributes:
        walker: Plans; only for the thread of the jobs.
        ik: Solves for services; likewise.
        reading: The last one; None before the first.

    Raises:
        ComModelError: The configuration is of another robot.
        ComRosError: The robot cannot walk on two legs.
    """

    def __init__(
        self, model: RobotModel, config: RobotConfig, settings: Parameters, clock: Clock
    ) -> None:
        try:
            self.biped = Biped.from_config(model, config)
            self.walker = Walker(self.biped, settings.point_period)
            self.ik = WholeBodyIk(self.biped)
            self.input = RobotInput(self.biped, config.imu_link, settings, clock)
            self.viewer = WalkEstimator(self.biped)
            checks = WalkChecks(self.biped, settings.check.limits(), settings.use_wrench)
        except ComControlError as error:
            raise ComRosError(f"this robot cannot walk on two legs: {error}") from error
        self.session = WalkSession(self.biped, checks, settings.approach_time, settings.delay)
        self.names = model.joint_names
        self.reading: Reading | None = None


def request_of(values: GoalValues) -> WalkRequest:
    """The request of a goal message.

    Raises:
        PlanError: A footstep has numbers that are not finite.
    """
    given = dict(vars(values))
    steps = []
    for i, step in enumerate(values.footsteps):
        try:
            steps.append(Footstep(**vars(step)))
        except PlanError as error:
            raise PlanError(str(error), i) from error
    return WalkRequest(**(given | {"footsteps": tuple(steps)}))
