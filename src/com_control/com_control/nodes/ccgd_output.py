"""Parameters and publishers of ccgd_gait: targets, references, ZMP, state, markers, a frame."""

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import PointStamped
from rclpy.node import Node
from visualization_msgs.msg import MarkerArray

from com_control.command_guard import GuardOptions
from com_control.nodes.walk_conversions import make_walk_state, walk_numbers
from com_control.walking.biped import Biped
from com_control.walking.footsteps import Footstep
from com_control.walking.session import Command, WalkSession
from com_control.walking.walk_monitor import CheckLimits, WalkEstimate
from com_control.walking.walker import METHODS, Walk, WalkInstant, WalkRequest
from com_model import GeometryError, SupportPolygon
from com_model.arrays import Array
from com_msgs.msg import WalkState
from com_ros import qos
from com_ros.conversions import NS_PER_S, ns_to_stamp, numpy_to_point
from com_ros.markers import BLUE, GREEN, ORANGE, RED, FramePublisher, MarkerMaker
from com_ros.parameters import SensorParameters, live_parameter, parameter
from com_ros.raw_messages import TrajectoryWriter, Writer


@dataclass(frozen=True)
class WalkDefaults:
    """Parameters walk.*, for values that a goal leaves open; 0: the configuration's or derived."""

    steps: int = live_parameter(
        6, "of which the last sets both feet side by side", (0, 10000)
    )
    step_length: float = live_parameter(
        0.0,
        "m, by which each foot passes the other; 0: a fifth of the CoM's height",
        (-2.0, 2.0),
    )
    side_step: float = live_parameter(
        0.0, "m to the left, of each pair of steps", (-2.0, 2.0)
    )
    turn: float = live_parameter(0.0, "rad to the left, of each step", (-1.6, 1.6))
    climb: float = live_parameter(0.0, "m, of each step", (-1.0, 1.0))
    half_width: float = live_parameter(
        0.0, "m, of each foot from the middle line; 0: as it stands", (0.0, 2.0)
    )
    first: str = live_parameter(
        "right", "side that steps first", choices=("left", "right")
    )
    step_time: float = live_parameter(
        0.0, "s, of a step with one foot in the air; 0: 1.2 s", (0.0, 60.0)
    )
    double_support: float = live_parameter(
        0.0,
        "s, between two steps; 0: 0.4 s, less where legs have five joints",
        (0.0, 60.0),
    )
    step_height: float = live_parameter(
        0.0, "m, of the swing foot; 0: a tenth of the CoM's height", (0.0, 2.0)
    )
    com_height: float = live_parameter(
        0.0,
        "m, of the CoM over the soles; 0: 98 % of that at which it stands",
        (0.0, 10.0),
    )
    method: str = live_parameter("refined", "of the joints' angles", choices=METHODS)

    def request(self) -> WalkRequest:
        """The same as a request; values of 0.0 are left to the planner."""
        given = {
            k: v for k, v in vars(self).items() if type(v) is not float or v != 0.0
        }
        return WalkRequest(**given)


@dataclass(frozen=True)
class Parameters(SensorParameters):
    """Parameters of ccgd_gait; robot_config must give a left and a right foot."""

    walk: WalkDefaults = field(default_factory=WalkDefaults)
    check: CheckLimits = field(default_factory=CheckLimits)
    guard: GuardOptions = field(default_factory=GuardOptions)
    autostart: bool = parameter(
        False, "walk once, by walk.*, as soon as the robot stands"
    )
    streamed: bool = parameter(
        False,
        "send one point, `horizon` ahead, at each sample; false: send whole walks at once",
    )
    stabiliser: bool = parameter(
        False,
        "feed wrenches and imu back to walks: streams points two samples ahead, at rate_hz; needs "
        "servo.stiffness in robot_config, or ankle_stiffness",
    )
    step_adjustment: bool = parameter(
        False,
        "set feet further forwards or backwards where the DCM asks for it; with `stabiliser`",
    )
    heading_feedback: bool = parameter(
        False,
        "turn back where a sole has turned on the ground by the imu; with `stabiliser`",
    )
    balance: bool = live_parameter(
        True,
        "feed back also while the robot stands, and so command all joints; with `stabiliser`",
    )
    ankle_stiffness: tuple[float, ...] = live_parameter(
        (),
        "N m/rad, of an ankle's servos about the sole's x and y axes, which ~/calibrate_stiffness "
        "measures; none: servo.stiffness of robot_config",
        (0.0, 1e9),
    )
    cmd_vel_timeout: float = live_parameter(
        0.5, "s without cmd_vel, after which a walk by it ends", (0.01, 60.0)
    )
    use_wrench: bool = parameter(
        True, "feet must carry for a walk to begin; false: no sensors"
    )
    approach_time: float = parameter(
        1.0,
        "s, at least, for the way to the walk's first posture; at most, for a robot to stand still",
        (0.05, 60.0),
    )
    delay: float = parameter(
        0.1, "s, from a decision to the first point that it changes", (0.01, 5.0)
    )
    drive_delay: float = live_parameter(
        0.0, "s, delay of the drives; targets are sent as much earlier", (0.0, 0.5)
    )
    horizon: float = parameter(
        0.05, "s, by which streamed points are ahead", (0.001, 1.0)
    )
    point_period: float = parameter(
        0.01, "s, between points of a trajectory", (0.001, 0.1)
    )
    rate_hz: float = live_parameter(
        100.0, "1/s, of what is published, at most", (1.0, 1000.0)
    )
    display_rate_hz: float = live_parameter(
        20.0, "1/s, of gait/markers and tf, at most", (0.1, 200.0)
    )
    walk_frame: str = parameter("walk", "name of the frame in which walks are planned")

    @property
    def lead(self) -> float:
        """Time from a sample to the streamed point computed from it, s."""
        return 2.0 / self.rate_hz if self.stabiliser else self.horizon

    @property
    def streams(self) -> bool:
        """Whether one point is sent at each sample."""
        return self.streamed or self.stabiliser


SIDE_COLORS = {"left": (0.8, 0.3, 0.3, 0.9), "right": (0.3, 0.5, 0.85, 0.9)}
LIFETIME_NS = 2 * NS_PER_S
PATH_POINTS, COUNT_PERIOD = 200, 0.05  # s, between two counts of subscriptions
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
        settings: names of frames, drive_delay.

    Attributes:
        frame: name of the walk's frame, with the prefix.
        drive_delay: s, by which targets are sent earlier; may be replaced.
    """

    def __init__(self, node: Node, settings: Parameters) -> None:
        self.frame = settings.frame_prefix + settings.walk_frame
        self._walk_frame, self.drive_delay = settings.walk_frame, settings.drive_delay
        self._trajectory = TrajectoryWriter(node)
        self._points = {
            topic: node.create_publisher(PointStamped, topic, qos.RESULT)
            for topic in POINT_TOPICS
        }
        self._state = Writer(node, WalkState, "gait/state")
        # time, ns, frame and values
        self._last: tuple[int, str, dict[str, Any]] = 0, "", {}
        self._markers = node.create_publisher(MarkerArray, "gait/markers", qos.RESULT)
        # of those who listen to points
        self._count_at, self._counts = 0.0, dict[str, int]()
        self._frames = FramePublisher(node, settings.frame_prefix)
        self._maker = MarkerMaker(LIFETIME_NS)

    def send(self, names: tuple[str, ...], command: Command) -> None:
        """Sends a whole path of joint targets; points that are over are left out.

        Args:
            names: of the joints.
            command: the path, and when it starts.
        """
        path = command.path
        times = path.time - command.start - self.drive_delay
        ahead = times > 0.0
        ahead[-1], times[-1] = True, max(float(times[-1]), 1e-3)
        q, qd, stamp_ns = path.q[ahead], path.qd[ahead], round(command.start * NS_PER_S)
        self._trajectory.publish(names, times[ahead].tolist(), q, qd, stamp_ns)

    def send_point(
        self,
        names: tuple[str, ...],
        target: tuple[Array, Array],
        after: float,
        stamp_ns: int,
    ) -> None:
        """Sends one target.

        Args:
            names: of the joints.
            target: positions (n,) rad or m, and velocities (n,) rad/s or m/s.
            after: s after the stamp, when it is due.
            stamp_ns: ns, of the joint_states that it follows from.
        """
        q, qd = target
        self._trajectory.publish(names, [after], q[None], qd[None], stamp_ns)

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
        if self._markers.get_subscription_count() == 0:
            return
        self._maker.set_header(self.frame, stamp)
        markers = [
            self._maker.sphere("com", view.com, 0.05, RED),
            *self._support(biped, view, session.planned_now()),
        ]
        if np.isfinite(view.zmp).all():
            markers.append(
                self._maker.disc("zmp", view.zmp, (0.0, 0.0, 1.0), 0.03, ORANGE)
            )
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
            steps = [
                s for s in (*walk.plan.start, *walk.plan.steps) if s.side == leg.side
            ]
            ends = [_outline(step, leg.foot.corners) for step in steps]
            if len(leg.foot.corners) > 2:
                name, color = f"footsteps_{leg.side}", SIDE_COLORS[leg.side]
                markers.append(
                    self._maker.segments(name, np.concatenate(ends), 0.004, color)
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
            self._maker.line("support", polygon.vertices, 0.008, GREEN, closed=True)
        ]

    def _point(self, topic: str, place: Array, stamp: Time) -> None:
        """Publishes a point on its own topic if someone subscribes; gait/state contains it, too."""
        if time.monotonic() >= self._count_at:
            counts = {
                name: p.get_subscription_count() for name, p in self._points.items()
            }
            self._count_at, self._counts = time.monotonic() + COUNT_PERIOD, counts
        if not self._counts[topic]:
            return
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
