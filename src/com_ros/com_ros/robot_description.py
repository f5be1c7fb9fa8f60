"""The robot's model from the parameter or the topic `robot_description`, and from every new one.

A description that cannot be used is refused with what is wrong and how to fix it; the model
that the node had before stays in use.
"""

from collections.abc import Callable

from rclpy.node import Node
from std_msgs.msg import String

from com_model.exceptions import ComModelError, listing
from com_model.model import RobotModel
from com_ros.diagnostics import ThrottledLog
from com_ros.qos import LATCHED

TOPIC = "robot_description"


class RobotDescription:
    """Loads robot descriptions and passes the models on.

    The newest description is used, whether from the parameter or the topic; one equal to that in
    use is ignored. To use only the parameter, remap the topic.

    Args:
        node: that subscribes the topic.
        on_model: called with each new model; refuses it by a ComModelError, and
            the model before stays in use.
        log: for warnings while waiting; None: one of its own.
        guard: wraps the subscription's callback.

    Attributes:
        model: in use; None before the first.
        refusal: why the last description was refused; empty when it was accepted.
        topic: resolved name of the topic.
    """

    def __init__(
        self,
        node: Node,
        on_model: Callable[[RobotModel], None],
        log: ThrottledLog | None = None,
        guard: Callable[
            [Callable[[String], None]], Callable[[String], None]
        ] = lambda f: f,
    ) -> None:
        self._node, self._on_model, self._guard = node, on_model, guard
        self._logger = node.get_logger()
        self._log = log or ThrottledLog(self._logger)
        self.model: RobotModel | None = None
        self.refusal = ""
        self._followed = self._from_parameter = False
        self.topic = node.resolve_topic_name(TOPIC)

    def follow(self, xml: str = "") -> None:
        """Loads the parameter's description, if any, and subscribes the topic.

        Args:
            xml: URDF of the parameter robot_description; empty: none.
        """
        self._followed = True
        if xml:
            self._from_parameter = self._load(xml, "parameter robot_description")
        self._node.create_subscription(
            String, TOPIC, self._guard(self._receive), LATCHED
        )

    @property
    def waiting(self) -> str:
        """What is missing and how to fix it; empty when there is a model, or none is needed."""
        if self.model is not None or not self._followed:
            return ""
        if self.refusal:
            return f"no usable robot_description: {self.refusal}"
        return (
            f"no robot_description yet: waiting for a latched message on {self.topic} "
            "(robot_state_publisher sends it; or give the parameter robot_description)"
        )

    def warn_while_waiting(self) -> None:
        """Logs a throttled warning that names what is missing, if anything; called by a timer."""
        if self.waiting:
            self._log.warn("robot_description", self.waiting)

    def _receive(self, msg: String) -> None:
        previous, was_parameter = self.model, self._from_parameter
        if self._load(msg.data, self.topic) and previous is not None and was_parameter:
            self._from_parameter = False
            self._logger.warning(
                f"the description on {self.topic} replaces that of the parameter "
                f"robot_description (mass {previous.mass:.6g} kg before); "
                "remap the topic to keep to the parameter"
            )

    def _load(self, xml: str, origin: str) -> bool:
        if self.model is not None and xml == self.model.xml:
            return False
        try:
            model = RobotModel.from_urdf(xml)
            self._on_model(model)
        except ComModelError as error:
            self.refusal = str(error)
            kept = f"; keeping '{self.model.name}'" if self.model is not None else ""
            self._logger.error(
                f"robot_description from {origin} refused: {error}{kept}"
            )
            return False
        self.model, self.refusal = model, ""
        for text in model.warnings:
            self._logger.warning(f"robot_description: {text}")
        self._logger.info(
            f"model '{model.name}' from {origin}: {model.n_links} links, {model.n_joints} joints "
            f"({listing(model.joint_names, 3)}), {model.mass:.6g} kg, root '{model.root_link}'"
        )
        return True
