"""Publishers of ccgd_gait: references, ZMP, state, markers, a frame."""

import time
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import PointStamped
from rclpy.node import Node
from std_msgs.msg import Header

from com_control.nodes.ccgd_parameters import Parameters
from com_control.nodes.walk_conversions import make_walk_state, walk_numbers
from com_control.walking.biped import Biped
from com_control.walking.footsteps import Footstep
from com_control.walking.session import WalkSession
from com_control.walking.walk import Walk
from com_control.walking.walk_monitor import WalkEstimate
from com_control.walking.walk_plan import WalkInstant
from com_model import GeometryError, SupportPolygon
from com_model.arrays import Array
from com_msgs.msg import WalkState
from com_ros import qos
from com_ros.conversions import ns_to_stamp, numpy_to_point
from com_ros.markers import BLUE, GREEN, ORANGE, RED, FramePublisher, MarkerOutput
from com_ros.raw_messages import Writer

SIDE_COLORS = {"left": (0.8, 0.3, 0.3, 0.9), "right": (0.3, 0.5, 0.85, 0.9)}
# of gait/state
WORDS = "state", "reason", "last_walk", "step", "steps", "swing", "fault"
POINT_TOPICS = (
    "zmp",
    *(f"gait/{k}" for k in ("com_reference", "zmp_reference", "dcm", "dcm_reference")),
)


class WalkOutput:
    """Publishers of ccgd_gait.

    Args:
        node: that publishes.
        settings: names of frames.

    Attributes:
        frame: name of the walk's frame, with the prefix.
    """

    def __init__(self, node: Node, settings: Parameters) -> None:
        self.frame = settings.frame_prefix + settings.walk_frame
        self._walk_frame = settings.walk_frame
        self._points = {
            topic: node.create_publisher(PointStamped, topic, qos.RESULT)
            for topic in POINT_TOPICS
        }
        self._state = Writer(node, WalkState, "gait/state")
        # time, ns, frame and values
        self._last: tuple[int, str, dict[str, Any]] = 0, "", {}
        self._markers = MarkerOutput(node, "gait/markers", 2.0)
        # of those who listen to points
        self._count_at, self._counts = 0.0, dict[str, int]()
        self._frames = FramePublisher(node, settings.frame_prefix)

    def waiting(self, reason: str, stamp_ns: int) -> None:
        """Publishes a state UNKNOWN, as there is no robot yet.

        Args:
            reason: what is missing.
            stamp_ns: ns, now.
        """
        self._publish_state(
            stamp_ns, "", {"state": WalkState.UNKNOWN, "reason": reason}
        )

    def publish(
        self,
        session: WalkSession,
        planned: WalkInstant | None,
        view: WalkEstimate | None,
        time_ns: int,
    ) -> None:
        """Publishes state, references and the measured ZMP of one instant.

        Args:
            session: with state, walk and outcome.
            planned: planned CoM and ZMP; None: there is no walk.
            view: measured CoM and ZMP; None: unknown.
            time_ns: ns, of the instant.
        """
        walk, outcome, stamp = session.walk, session.outcome, ns_to_stamp(time_ns)
        known: dict[str, Any] = {"last_walk": "" if outcome is None else str(outcome)}
        if walk is not None:
            known |= {"steps": walk.steps, "duration": walk.duration}
        if planned is not None:
            known |= {"step": planned.step, "swing": planned.swing}
            known |= {"com_reference": planned.com, "zmp_reference": planned.zmp}
            self._point("gait/com_reference", planned.com, stamp)
            self._point("gait/zmp_reference", planned.zmp, stamp)
        if (balance := session.balance) is not None:
            estimate, offset = balance.target.estimate, balance.offset
            known |= {"dcm": np.append(estimate[5:7], 0.0), "margin": balance.margin}
            known |= {"dcm_reference": np.append(estimate[7:9], 0.0)}
            known |= {"com_offset": offset[0], "com_offset_std": offset[1]}
            self._point("gait/dcm", known["dcm"], stamp)
            self._point("gait/dcm_reference", known["dcm_reference"], stamp)
        if view is not None:
            known |= {"com": view.com, "zmp": view.zmp}
            if np.isfinite(view.zmp).all():
                self._point("zmp", view.zmp, stamp)
        known |= {"state": int(session.state), "reason": session.reason}
        known |= {"fault": int(session.fault), "time": session.walk_time}
        self._publish_state(time_ns, self.frame, known)

    def make_state(self) -> WalkState:
        """The message of the last state."""
        time_ns, frame, known = self._last
        return make_walk_state(ns_to_stamp(time_ns), frame, **known)

    def _publish_state(self, time_ns: int, frame: str, known: dict[str, Any]) -> None:
        self._last = time_ns, frame, known
        text = frame, *(known.get(name) for name in WORDS)
        self._state.publish(text, time_ns, walk_numbers(known), self.make_state)

    def show(
        self, biped: Biped, session: WalkSession, view: WalkEstimate, stamp: Time
    ) -> None:
        """Publishes the walk's frame and, if someone subscribes, markers.

        Args:
            biped: the robot.
            session: with the walk.
            view: measured root, soles, CoM and ZMP.
            stamp: of the instant.
        """
        R = view.R_walk_root.T
        root = biped.model.root_link
        self._frames.send(stamp, root, [(self._walk_frame, -R @ view.p_walk_root, R)])
        if not self._markers.wanted:
            return
        self._markers.set_header(self.frame, stamp)
        markers = [
            self._markers.sphere("com", view.com, 0.05, RED),
            *self._support(biped, view, session.planned_now()),
        ]
        if np.isfinite(view.zmp).all():
            markers.append(
                self._markers.disc("zmp", view.zmp, (0.0, 0.0, 1.0), 0.03, ORANGE)
            )
        if session.walk is not None:
            markers += self._walk(biped, session.walk)
        self._markers.show(markers)

    def _walk(self, biped: Biped, walk: Walk) -> list:
        thin = max(len(walk.samples.time) // 200, 1)
        markers = [
            self._markers.line("com_reference", walk.samples.com[::thin], 0.006, GREEN),
            self._markers.line("zmp_reference", walk.samples.zmp[::thin], 0.006, BLUE),
        ]
        for leg in biped.legs:
            steps = [
                s for s in (*walk.plan.start, *walk.plan.steps) if s.side == leg.side
            ]
            ends = [_outline(step, leg.foot.corners) for step in steps]
            if len(leg.foot.corners) > 2:
                name, color = f"footsteps_{leg.side}", SIDE_COLORS[leg.side]
                markers.append(
                    self._markers.segments(name, np.concatenate(ends), 0.004, color)
                )
        return markers

    def _support(
        self, biped: Biped, view: WalkEstimate, planned: WalkInstant | None
    ) -> list:
        stands = (True, True) if planned is None else planned.stance
        points = [
            pose[:, :2] @ corner + pose[:, 3]
            for leg, pose, stand in zip(biped.legs, view.soles, stands, strict=True)
            if stand
            for corner in leg.foot.corners
        ]
        try:
            polygon = SupportPolygon.from_points(np.array(points).reshape(-1, 3))
        except GeometryError:
            return []
        return [
            self._markers.line("support", polygon.vertices, 0.008, GREEN, closed=True)
        ]

    def _point(self, topic: str, place: Array, stamp: Time) -> None:
        """Publishes a point on its own topic if someone subscribes; gait/state contains it, too."""
        if time.monotonic() >= self._count_at:
            counts = {
                name: p.get_subscription_count() for name, p in self._points.items()
            }
            self._count_at, self._counts = time.monotonic() + 0.05, counts
        if not self._counts[topic]:
            return
        header = Header(stamp=stamp, frame_id=self.frame)
        msg = PointStamped(header=header, point=numpy_to_point(place))
        self._points[topic].publish(msg)


def _outline(step: Footstep, corners: Array) -> Array:
    """Edges of a sole on the ground, (2 k, 3) m, each from one corner to the next."""
    c, s = np.cos(step.yaw), np.sin(step.yaw)
    flat = corners @ np.array([[c, s], [-s, c]]) + [step.x, step.y]
    ring = np.column_stack((flat, np.full(len(flat), step.z + 0.002)))
    return np.stack((ring, np.roll(ring, -1, axis=0)), axis=1).reshape(-1, 3)
