"""Mass and centre of mass of the whole robot, by the feet alone.

Service: ~/identify_total_com. It takes a moment, longer the more postures there are, so a thread
does it; a process of its own would take longer to start.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from rclpy.node import Node

from com_identification.exceptions import IdentificationError
from com_identification.job import TotalCom, identify_total
from com_identification.nodes.com_identification_robot import Robot
from com_identification.nodes.com_identification_values import fill_total
from com_model.exceptions import ComModelError
from com_msgs.srv import IdentifyTotalCom
from com_ros.jobs import DeferredService, Reply


class TotalDesk:
    """Serves it.

    Args:
        node: that serves.
        robot: gives the robot of the moment.
        waiting: tells why there is none.
    """

    def __init__(
        self, node: Node, robot: Callable[[], Robot | None], waiting: Callable[[], str]
    ) -> None:
        self._robot, self._waiting = robot, waiting
        self._logger = node.get_logger()
        self._pool = ThreadPoolExecutor(max_workers=1)
        self._running: list[tuple[Future[TotalCom], Reply]] = []
        DeferredService(node, IdentifyTotalCom, "~/identify_total_com", self._begin)

    def serve(self) -> None:
        """Sends the answers that are ready."""
        for item in list(self._running):
            future, reply = item
            if future.done():
                self._running.remove(item)
                reply(self._answer(future))

    def close(self) -> None:
        """Drops what has not begun."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _begin(self, request: IdentifyTotalCom.Request, reply: Reply) -> None:
        robot = self._robot()
        try:
            if robot is None:
                raise IdentificationError(self._waiting())
            postures = list(robot.choose(request.postures).values())
        except IdentificationError as error:
            reply(IdentifyTotalCom.Response(message=str(error)))
            return
        arguments = robot.model, robot.config.feet, postures, robot.settings
        self._running.append((self._pool.submit(identify_total, *arguments), reply))

    def _answer(self, future: Future[TotalCom]) -> IdentifyTotalCom.Response:
        response = IdentifyTotalCom.Response()
        try:
            total = future.result()
        except (IdentificationError, ComModelError) as error:
            response.message = str(error)
            return response
        fill_total(total, response)
        response.success = True
        response.message = (
            f"the feet carry {total.mass:.4g} kg (URDF {total.model_mass:.4g} kg); the URDF's "
            f"centre of mass is {1e3 * response.distance_mean:.2f} mm beside their line on average"
        )
        self._logger.info(response.message)
        return response
