"""What com_identification publishes.

identification/state (com_msgs/IdentificationState): at state_rate_hz.
identification/result (com_msgs/IdentificationResult, latched): with each new result.
identification/model_check (com_msgs/ModelCheck): at check_rate_hz.
identification/markers (visualization_msgs/MarkerArray): with it, when someone looks.
"""

import numpy as np
from builtin_interfaces.msg import Time
from rclpy.node import Node
from visualization_msgs.msg import Marker, MarkerArray

from com_identification.feet.model_check import ModelCheckResult
from com_identification.nodes.identification_conversions import (
    no_result,
    numpy_to_identification_result,
    numpy_to_model_check,
)
from com_identification.nodes.identification_session import Session
from com_model.arrays import Array
from com_model.dynamics.link_frames import LinkFrames
from com_msgs.msg import IdentificationResult, IdentificationState, ModelCheck
from com_ros.conversions import NS_PER_S, ns_to_stamp
from com_ros.markers import BLUE, RED, MarkerMaker
from com_ros.qos import LATCHED, RESULT

GREY = (0.5, 0.5, 0.5, 0.8)
GREEN = (0.1, 0.7, 0.25, 0.6)
LIFETIME_NS = 3 * NS_PER_S
SIGMAS = 2.0  # of the ellipsoids
LINE = 1.0  # m, length of the line by the feet


class IdentificationOutput:
    """Publishes it."""

    def __init__(self, node: Node) -> None:
        self._state = node.create_publisher(IdentificationState, "identification/state", RESULT)
        self._result = node.create_publisher(IdentificationResult, "identification/result", LATCHED)
        self._check = node.create_publisher(ModelCheck, "identification/model_check", RESULT)
        self._markers = node.create_publisher(MarkerArray, "identification/markers", RESULT)
        self._maker = MarkerMaker(LIFETIME_NS)
        self._frames: tuple[Session, LinkFrames] | None = None

    def publish_state(self, msg: IdentificationState) -> None:
        """Publishes what the node is doing."""
        self._state.publish(msg)

    def publish_result(self, session: Session) -> None:
        """Publishes the latest result, or that there is none."""
        self._result.publish(result_message(session))

    def publish_check(self, session: Session, result: ModelCheckResult, stamp: Time) -> None:
        """Publishes a check of the model, and shows it."""
        self._check.publish(numpy_to_model_check(result, stamp, session.frame))
        if self._markers.get_subscription_count():
            self._maker.at(session.frame, stamp)
            markers = [*self._whole(session, result), *self._bodies(session)]
            self._markers.publish(MarkerArray(markers=markers))

    def _whole(self, session: Session, result: ModelCheckResult) -> list[Marker]:
        q, maker = session.buffer.q, self._maker
        if q is None:
            return []
        markers = [maker.sphere("model_com", session.sesc.com(q), 0.03, RED)]
        if np.isfinite(result.measured).all():
            ends = [result.measured, result.measured + LINE * result.up]
            markers.append(maker.line("measured_com_line", ends, 0.004, BLUE))
            markers.append(maker.disc("measured_projection", ends[0], result.up, 0.04, BLUE))
        return markers

    def _bodies(self, session: Session) -> list[Marker]:
        """CoM of each body before (balls) and after (ellipsoids of two standard deviations)."""
        q = session.buffer.q
        if q is None or session.result is None:
            return []
        if self._frames is None or self._frames[0] is not session:
            self._frames = (session, LinkFrames(session.model, session.model.bodies.names))
        found, (R, p) = session.result.identification, self._frames[1].poses(q)
        massive = [i for i in range(len(found.bodies)) if found.mass[i] > 0.0]
        before = np.array([p[i] + R[i] @ found.prior_com[i] for i in massive])
        markers = [self._maker.balls("com_before", before, 0.012, GREY)]
        for i in massive:
            spread: Array = R[i] @ np.diag(found.com_std[i] ** 2) @ R[i].T
            place, name = p[i] + R[i] @ found.com[i], f"com_after/{found.bodies[i]}"
            markers.append(self._maker.ellipsoid(name, place, spread, SIGMAS, GREEN))
        return markers


def result_message(session: Session) -> IdentificationResult:
    """The latest result as a message, with the stamp of its newest posture."""
    if session.result is None:
        msg = no_result("nothing is identified yet: capture postures and call identify_links")
    else:
        ids = session.result.ids
        msg = numpy_to_identification_result(session.result.identification, ids)
        msg.header.stamp = ns_to_stamp(max(map(session.stamp_ns, ids), default=0))
    msg.header.frame_id = session.frame
    msg.robot, msg.model_mass = session.model.name, session.model.mass
    return msg
