"""Computes at which joint angles the robot tips over: a posture protocol as a service.

Subscribes:
    robot_description (std_msgs/String, latched): the URDF, unless the parameter gives it.

Services:
    ~/tip_angles (com_msgs/TipAngles): quasi-static tip angles of the protocol's tests, of the rigid
        robot and, where a file of them is given, with the errors of its joints. The command
        posture_protocol finds those from measured angles and writes the file.

A robot that has not got the protocol's joints and feet is refused; the one before stays in use.

Parameters: see Parameters.
"""

from dataclasses import dataclass
from typing import Any

from com_identification.exceptions import ProtocolError
from com_identification.tip_over import quasi_static
from com_identification.tip_over.protocol import TipProtocol
from com_identification.tip_over.quasi_static import QuasiStatic, TipAngle
from com_model import RobotModel
from com_model.text import listing
from com_msgs.srv import TipAngles
from com_ros.exceptions import ComRosError, ParameterError
from com_ros.parameters import RobotParameters, parameter
from com_ros.robot_node import RobotNode


@dataclass(frozen=True)
class Parameters(RobotParameters):
    """Parameters of the node; robot_config is needed."""

    protocol: str = parameter("", "path of the posture protocol (YAML); needed")
    joint_errors: str = parameter(
        "",
        "path of the errors of the joints (YAML), as posture_protocol writes; empty: none",
    )


class PostureProtocol(RobotNode[Parameters]):
    """Offers the tip angles of a posture protocol as a service.

    Args:
        options: those of RobotNode.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__("posture_protocol", Parameters, **options)
        p = self.parameters
        self._config = self.require_config()
        if not p.protocol:
            raise ParameterError("protocol", "", "give the path of a YAML file")
        self._protocol = TipProtocol.from_file(p.protocol)
        self._rigid: dict[str, TipAngle] = {}  # by the name of the test
        self._with_errors: dict[str, TipAngle] = {}
        self.follow_robot_description()
        self.create_service(TipAngles, "~/tip_angles", self._on_tip_angles)

    def use_model(self, model: RobotModel) -> None:
        """Computes all angles before they are requested, which takes milliseconds.

        Args:
            model: with the sole frames of the configuration.

        Raises:
            ComModelError: the protocol or the joint errors do not fit the robot.
        """
        errors = self.parameters.joint_errors
        simulation = QuasiStatic.from_protocol(model, self._config, self._protocol)
        rigid = with_errors = simulation.find_tips()
        if errors:
            with_errors = simulation.find_tips(
                quasi_static.read_joint_errors(errors, model)
            )
        self._rigid = {tip.test: tip for tip in rigid}
        self._with_errors = {tip.test: tip for tip in with_errors}

    def _on_tip_angles(
        self, request: TipAngles.Request, response: TipAngles.Response
    ) -> TipAngles.Response:
        answers = self._rigid if request.rigid else self._with_errors
        names = list(request.tests) or list(answers)
        unknown = [name for name in names if name not in answers]
        if not answers:
            raise ComRosError(self.waiting)
        if unknown:
            valid = listing(list(answers), 100)
            raise ProtocolError(f"no tests {listing(unknown)}; valid: {valid}")
        response.success, response.names = True, names
        response.angles = [answers[name].angle for name in names]
        response.falls = [answers[name].falls for name in names]
        return response
