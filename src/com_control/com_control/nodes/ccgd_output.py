"""Messages of a walking robot, and the publishers of ccgd_gait: references, ZMP, state, markers.

Conversions follow the rules of com_ros.conversions. Values that a goal leaves open are None here
and an empty list in the message.
"""

import time
from dataclasses import fields
from math import dist, nan
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import PointStamped
from rclpy.node import Node
from std_msgs.msg import Header

from com_control.exceptions import PlanError
from com_control.nodes.ccgd_parameters import Parameters
from com_control.walking.biped import Biped
from com_control.walking.footsteps import Footstep
from com_control.walking.session import WalkSession
from com_control.walking.walk import Walk, WalkRequest
from com_control.walking.walk_monitor import WalkEstimate
from com_control.walking.walk_plan import WalkInstant
from com_model import GeometryError, SupportPolygon
from com_model.arrays import Array
from com_msgs import msg as msgs
from com_msgs.msg import WalkGoal, WalkState
from com_ros import qos
from com_ros.conversions import ns_to_stamp, numpy_to_point
from com_ros.exceptions import ConversionError
from com_ros.markers import BLUE, GREEN, ORANGE, RED, FramePublisher, MarkerOutput
from com_ros.raw_messages import Writer

SIDES = {msgs.Footstep.LEFT: "left", msgs.Footstep.RIGHT: "right"}
NUMBERS = {name: number for number, name in SIDES.items()}
NO_STEP = -1
_VALID_SIDES = f"{msgs.Footstep.LEFT} (left) or {msgs.Footstep.RIGHT} (right)"


_NUMBERS = {item.name for item in fields(WalkRequest)} - {
    "footsteps",
    "first",
    "method",
}


UNKNOWN = np.full(3, np.nan)
_POINTS = ("com_reference", "com", "zmp_reference", "zmp", "dcm", "dcm_reference")
_RUNS = (  # of numbers of a WalkState that directly follow each other, and their sizes
    {"time": 1, "duration": 1, "com_reference": 3, "com": 3}
    | {"com_error": 1, "zmp_reference": 3, "zmp": 3},
    {"dcm": 3, "dcm_reference": 3, "margin": 1, "com_offset": 2, "com_offset_std": 2},
)


# --- footsteps and goals -----------------------------------------------------------------------
def msg_to_footstep(msg: msgs.Footstep) -> Footstep:
    """Converts a message to a footstep.

    Args:
        msg: with its side LEFT or RIGHT.

    Returns:
        The footstep, in the frame of the walk.

    Raises:
        ConversionError: its side is neither left nor right.
        PlanError: a number is not finite.
    """
    if msg.side not in SIDES:
        raise ConversionError(f"footstep: side is {msg.side}: give {_VALID_SIDES}")
    p = msg.position
    return Footstep(SIDES[msg.side], p.x, p.y, p.z, msg.yaw)


def footstep_to_msg(step: Footstep) -> msgs.Footstep:
    """Converts a footstep to a message.

    Args:
        step: in the frame of the walk.
    """
    place = numpy_to_point(step.position)
    return msgs.Footstep(side=NUMBERS[step.side], position=place, yaw=float(step.yaw))


def msg_to_request(msg: WalkGoal, frame: str) -> WalkRequest:
    """Converts a WalkGoal message to a request.

    Args:
        msg: the goal.
        frame: of the walk, in which its footsteps must be.

    Returns:
        The request; values that the message leaves open are None.

    Raises:
        ConversionError: it is in another frame, or a footstep or `first` has no valid side.
        PlanError: a footstep has numbers that are not finite.
    """
    if msg.header.frame_id not in ("", frame):
        raise ConversionError(
            f"the goal's frame is {msg.header.frame_id!r}: give {frame!r}, which is between the "
            "soles, or leave it empty"
        )
    if msg.first != msgs.Footstep.UNKNOWN and msg.first not in SIDES:
        raise ConversionError(f"the goal's first is {msg.first}: give {_VALID_SIDES}")
    given = {name: getattr(msg, name) for name in _NUMBERS}
    numbers = {name: values[0] for name, values in given.items() if len(values)}
    if "steps" in numbers:
        numbers["steps"] = int(numbers["steps"])
    steps = []
    for i, step in enumerate(msg.footsteps):
        try:
            steps.append(msg_to_footstep(step))
        except PlanError as error:
            raise PlanError(str(error), i) from error
    return WalkRequest(
        footsteps=tuple(steps),
        first=SIDES.get(msg.first),
        method=msg.method or None,
        **numbers,
    )


# --- state -------------------------------------------------------------------------------------
def make_walk_state(
    stamp: Time, frame: str, swing: str = "", **known: Any
) -> WalkState:
    """Makes a WalkState message.

    Args:
        stamp: of the instant.
        frame: of the walk.
        swing: "left", "right" or "".
        **known: fields of the message; numbers that are not given are NaN.
    """
    side = NUMBERS.get(swing, msgs.Footstep.UNKNOWN)
    msg = WalkState(swing=side, step=NO_STEP, time=nan, duration=nan, margin=nan)
    msg.com_offset = msg.com_offset_std = UNKNOWN[:2]
    msg.header.stamp, msg.header.frame_id = stamp, frame
    points = {name: known.pop(name, UNKNOWN) for name in _POINTS}
    known |= {name: numpy_to_point(point) for name, point in points.items()}
    for name, value in known.items():
        setattr(msg, name, value)
    msg.com_error = dist(points["com"], points["com_reference"])
    return msg


def walk_numbers(known: dict[str, Any]) -> list[list[float]]:
    """The numbers of such a message, for com_ros.raw_messages.Writer.

    Args:
        known: fields of the message, as for make_walk_state.

    Returns:
        Two lists of numbers that are contiguous in the message.
    """
    error = dist(known.get("com", UNKNOWN), known.get("com_reference", UNKNOWN))
    runs, given = [], known | {"com_error": error}
    for sizes in _RUNS:
        runs.append(run := list[float]())
        for name, size in sizes.items():
            value = given.get(name)
            run += (
                [nan] * size
                if value is None
                else [value]
                if size == 1
                else value.tolist()
            )
    return runs


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
