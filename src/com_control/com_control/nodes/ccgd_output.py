"""What ccgd_gait publishes: joint targets, references, measured ZMP, state, markers, a frame."""

from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import PointStamped
from rclpy.node import Node
from trajectory_msgs.msg import JointTrajectory
from visualization_msgs.msg import MarkerArray

from com_control.nodes.ccgd_parameters import Parameters
from com_control.nodes.walk_conversions import make_walk_state
from com_control.walking.biped import Biped
from com_control.walking.footsteps import Footstep
from com_control.walking.session import Command, WalkSession
from com_control.walking.walk_monitor import WalkEstimate
from com_control.walking.walker import Walk, WalkInstant
from com_model import GeometryError, SupportPolygon
from com_model.arrays import Array
from com_msgs.msg import WalkState
from com_ros import qos
from com_ros.conversions import NS_PER_S, ns_to_stamp, numpy_to_joint_trajectory, numpy_to_point
from com_ros.markers import BLUE, GREEN, ORANGE, RED, MarkerMaker
from com_ros.tf import FramePublisher

SIDE_COLORS = {"left": (0.8, 0.3, 0.3, 0.9), "right": (0.3, 0.5, 0.85, 0.9)}
LIFETIME_NS = 2 * NS_PER_S
PATH_POINTS = 200
POINT_TOPICS = (
    "zmp",
    *(f"gait/{k}" for k in ("com_reference", "zmp_reference", "dcm", "dcm_reference")),
)


class WalkOutput:
    """Publishes for one node; targets are sent earlier by drive_delay, s."""

    def __init__(self, node: Node, settings: Parameters) -> None:
        self.frame = settings.frame_prefix + settings.walk_frame
        self._walk_frame, self.drive_delay = settings.walk_frame, settings.drive_delay
        self._trajectory = node.create_publisher(JointTrajectory, "joint_trajectory", qos.RESULT)
        self._points = {
            topic: node.create_publisher(PointStamped, topic, qos.RESULT) for topic in POINT_TOPICS
        }
        self._state = node.create_publisher(WalkState, "gait/state", qos.RESULT)
        self._markers = node.create_publisher(MarkerArray, "gait/markers", qos.RESULT)
        self._frames = FramePublisher(node, settings.frame_prefix)
        self._maker = MarkerMaker(LIFETIME_NS)

    def send(self, names: tuple[str, ...], command: Command) -> None:
        """Send a whole path of joint targets."""
        stamp_ns = round(command.start * NS_PER_S)
        path = command.path
        times = path.time - command.start - self.drive_delay
        ahead = times > 0.0
        ahead[-1], times[-1] = True, max(float(times[-1]), 1e-3)
        self._trajectory.publish(
            numpy_to_joint_trajectory(
                names, times[ahead], path.q[ahead], path.qd[ahead], ns_to_stamp(stamp_ns)
            )
        )

    def send_point(
        self, names: tuple[str, ...], target: tuple[Array, Array], after: float, stamp: Time
    ) -> None:
        """Send one target, due so many seconds after the stamp."""
        q, qd = target
        self._trajectory.publish(
            numpy_to_joint_trajectory(names, [after], q[None], qd[None], stamp)
        )

    def waiting(self, reason: str, stamp: Time) -> None:
        """Publish that there is no robot yet."""
        self._state.publish(make_walk_state(stamp, "", state=WalkState.UNKNOWN, reason=reason))

    def publish(self, session: WalkSession, view: WalkEstimate | None, stamp: Time) -> WalkState:
        """Publish state, references and the measured ZMP of one instant; returns the state."""
        walk, planned, outcome = session.walk, session.planned_now(), session.outcome
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
        known |= {"fault": int(session.fault)}
        msg = make_walk_state(stamp, self.frame, time=session.walk_time, **known)
        self._state.publish(msg)
        return msg

    def show(self, biped: Biped, session: WalkSession, view: WalkEstimate, stamp: Time) -> None:
        """Publish the walk's frame and, where somebody looks, markers."""
        R = view.R_walk_root.T
        root = biped.model.root_link
        self._frames.send(stamp, root, [(self._walk_frame, -R @ view.p_walk_root, R)])
        if self._markers.get_subscription_count() == 0:
            return
        self._maker.at(self.frame, stamp)
        markers = [
            self._maker.sphere("com", view.com, 0.05, RED),
            *self._support(biped, view, session.planned_now()),
        ]
        if np.isfinite(view.zmp).all():
            markers.append(self._maker.disc("zmp", view.zmp, (0.0, 0.0, 1.0), 0.03, ORANGE))
        if session.walk is not None:
            markers += self._walk(biped, session.walk)
        self._markers.publish(MarkerArray(markers=markers))

    def _walk(self, biped: Biped, walk: Walk) -> list:
        thin = max(len(walk.samples.time) // PATH_POINTS, 1)
        markers = [
            self._maker.line("com_reference", walk.samples.com[::thin], 0.006, GREEN),
            self._maker.line("zmp_reference", walk.samples.zmp[::thin], 0.006, BLUE),
        ]
        for leg in biped.legs:
            steps = [s for s in (*walk.plan.start, *walk.plan.steps) if s.side == leg.side]
            ends = [_outline(step, leg.foot.corners) for step in steps]
            if len(leg.foot.corners) > 2:
                name, color = f"footsteps_{leg.side}", SIDE_COLORS[leg.side]
                markers.append(self._maker.segments(name, np.concatenate(ends), 0.004, color))
        return markers

    def _support(self, biped: Biped, view: WalkEstimate, planned: WalkInstant | None) -> list:
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
        return [self._maker.line("support", polygon.vertices, 0.008, GREEN, closed=True)]

    def _point(self, topic: str, place: Array, stamp: Time) -> None:
        msg = PointStamped()
        msg.header.stamp, msg.header.frame_id = stamp, self.frame
        numpy_to_point(place, msg.point)
        self._points[topic].publish(msg)


def _outline(step: Footstep, corners: Array) -> Array:
    """Edges of a sole on the ground, (2 k, 3) m, each from one corner to the next."""
    c, s = np.cos(step.yaw), np.sin(step.yaw)
    flat = corners @ np.array([[c, s], [-s, c]]) + [step.x, step.y]
    ring = np.column_stack((flat, np.full(len(flat), step.z + 0.002)))
    return np.stack((ring, np.roll(ring, -1, axis=0)), axis=1).reshape(-1, 3)
