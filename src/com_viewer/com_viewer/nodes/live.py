"""Shows a robot in the browser, as the running nodes publish it.

Subscribes:
    robot_description, joint_states; <foot>/wrench: forces of the feet.
    com (com_msgs/CenterOfMass), sesc (com_msgs/SescChain); without them computed from the URDF.
    trunk_com (com_msgs/TrunkCom), ground_reaction (com_msgs/GroundReaction).
    gait/state (com_msgs/WalkState), gait/markers (visualization_msgs/MarkerArray): footsteps.
    gait/dcm (geometry_msgs/PointStamped); diagnosis (com_msgs/CentroidalDiagnosis): the corrected
    CoM with its covariance, and the verdict.
    balance/state, gait/stance, motion/state, identification/state: status and reason.
    identification/result (com_msgs/IdentificationResult): colours of the bodies.
    /tf: the root link in odom, the walk's frame in the root link.

With `buttons`, each after a confirmation: publishes gait/footsteps (com_msgs/WalkGoal), a walk as
configured, and calls the std_srvs/Trigger and SetBool services of its namespace, and
capture_posture and identify_links. Parameters: see Parameters.
"""

import math
import time
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from geometry_msgs.msg import PointStamped
from std_srvs.srv import SetBool, Trigger
from tf2_msgs.msg import TFMessage
from visualization_msgs.msg import MarkerArray

from com_estimation.nodes.com_output import center_of_mass_to_numpy
from com_estimation.whole_body.com_state import ComObserver
from com_model import RobotModel
from com_model.arrays import Array
from com_model.parameters import parameter
from com_msgs import msg as msgs
from com_msgs.srv import CapturePosture, IdentifyLinks
from com_ros import conversions as cv
from com_ros import qos
from com_ros.exceptions import ParameterError
from com_ros.joint_input import JointSample
from com_ros.parameters import (
    FramePrefix,
    JointTimeout,
    RobotParameters,
    WrenchSource,
    WrenchTimeout,
)
from com_ros.robot_node import RobotNode
from com_simulation.drawing.shapes import robot_shape
from com_viewer import scene as scenes
from com_viewer.page import HOST, PORT, Page
from com_viewer.scene import Mark, RobotScene, Snapshot, correction_color, describe

TOPICS = {
    "com": msgs.CenterOfMass,
    "sesc": msgs.SescChain,
    "trunk_com": msgs.TrunkCom,
    "ground_reaction": msgs.GroundReaction,
    "gait/state": msgs.WalkState,
    "gait/dcm": PointStamped,
    "diagnosis": msgs.CentroidalDiagnosis,
}
STATUS_TOPICS = {
    "balance/state": msgs.BalanceState,
    "gait/stance": msgs.GaitPhase,
    "identification/state": msgs.IdentificationState,
    "motion/state": msgs.MotionState,
}
SERVICES = {
    f"{kind.__module__.partition('.')[0]}/srv/{kind.__name__}": kind
    for kind in (Trigger, SetBool, CapturePosture, IdentifyLinks)
}
WALK = "walk"
FOOTSTEPS = ("footsteps_left", "footsteps_right")  # namespaces of gait/markers
WALK_POINTS = {
    "com_reference": scenes.ORANGE,
    "zmp_reference": scenes.YELLOW,
    "zmp": scenes.SKY,
}


@dataclass(frozen=True)
class Parameters(
    RobotParameters, JointTimeout, WrenchTimeout, WrenchSource, FramePrefix
):
    """Parameters of com_viewer."""

    host: str = parameter(
        HOST, "address to bind; 0.0.0.0: all of this machine's networks"
    )
    port: int = parameter(
        PORT, "port of the page; if in use, the next free one", (1, 65535)
    )
    rate_hz: float = parameter(30.0, "1/s, frame rate of the page", (0.5, 120.0))
    token: str = parameter(
        "", "that the page's address must carry; empty: a random one, see the log"
    )
    buttons: bool = parameter(
        False,
        "offer buttons that call the services of the running nodes, and start a walk",
    )
    urdf_file: str = parameter("", "path of the URDF; its meshes may be relative to it")
    record: str = parameter("", "path of an HTML file to write when the node ends")


class Viewer(RobotNode[Parameters]):
    """ROS 2 node `com_viewer`: shows a robot in the browser as the running nodes publish it.

    The module's docstring lists its topics and services, Parameters its parameters.

    Args:
        **options: passed on to RobotNode and rclpy's Node, such as parameter_overrides.

    Attributes:
        page: in the browser.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__("com_viewer", Parameters, subject="viewer", **options)
        p = self.parameters
        try:
            self.page = Page(p.host, p.port, p.token)
        except OSError as error:
            raise ParameterError("port", p.port, f"cannot be bound: {error}") from error
        self.get_logger().info(f"viewer: {self.page.address}")
        if p.record:
            self.page.start_recording()
        feet = self.config.feet if self.config else ()
        self._scene: RobotScene | None = None
        self._newest: tuple[Array, Array, int] | None = None
        self._received: dict[str, tuple[Any, float]] = {}
        self._footsteps: dict[str, Array] = {}  # edges (s, 2, 3)
        self._frames: dict[str, tuple[Array, Array]] = {}
        self._drawn_at = time.monotonic()
        self._callers: dict[str, Any] = {}
        self._goal = self.create_publisher(msgs.WalkGoal, "gait/footsteps", qos.RESULT)

        self.follow_robot_description()
        self.follow_joint_states(self._on_joints)
        self._wrenches = self.follow_wrenches(feet)
        for topic, kind in {**TOPICS, **STATUS_TOPICS}.items():
            self.subscribe(kind, topic, partial(self._on_message, topic))
        result = "identification/result"
        self.subscribe_with(
            msgs.IdentificationResult, result, self._on_result, qos.LATCHED
        )
        self.subscribe_with(MarkerArray, "gait/markers", self._on_markers, qos.stream())
        self.subscribe_with(TFMessage, "/tf", self._on_frames, qos.stream(10))
        self.create_steady_timer(1.0 / p.rate_hz, self._on_draw)
        if p.buttons:
            self.create_steady_timer(2.0, self._find_services)

    def use_model(self, model: RobotModel) -> None:
        """Shows another robot.

        Args:
            model: the robot.
        """
        feet = self.config.feet if self.config else ()
        scene, self._observer = RobotScene(model, feet), ComObserver(model, feet)
        self.page.set_robot(
            scene, robot_shape(model, self.parameters.urdf_file or None)
        )
        self._scene, self._newest = scene, None

    def on_joints_timeout(self, reason: str) -> None:
        """Stops drawing, as the posture is outdated.

        Args:
            reason: why joint_states are stale, for the status table.
        """
        super().on_joints_timeout(reason)
        self._newest = None
        self.page.set_status({"CoM": f"UNKNOWN: {reason}"})

    def destroy_node(self) -> None:
        """Writes the recording, and stops the server."""
        if self.parameters.record:
            self.page.write_html(self.parameters.record)
        self.page.close()
        super().destroy_node()

    # --- inputs ------------------------------------------------------------------------------
    def _on_joints(self, sample: JointSample) -> None:
        self._newest = (
            np.array(sample.position),
            np.array(sample.velocity),
            sample.time_ns,
        )

    def _on_message(self, topic: str, msg: Any, _time_ns: int) -> None:
        self._received[topic] = msg, time.monotonic()

    def _on_result(self, msg: msgs.IdentificationResult) -> None:
        """Colours the bodies by the correction of their CoM; grey: not trusted."""
        colors = {}
        for body in msg.bodies:
            moved = np.linalg.norm(
                cv.point_to_numpy(body.com) - cv.point_to_numpy(body.prior_com)
            )
            found = float(moved) if body.trusted else math.nan
            colors[body.name] = correction_color(found)
        self.page.tint(colors)
        text = f"{msg.total_mass:.3f} kg, model {msg.model_mass:.3f} kg {msg.reason}"
        self.page.set_status({"identified": text})

    def _on_markers(self, msg: MarkerArray) -> None:
        for marker in msg.markers:
            if marker.ns in FOOTSTEPS and len(marker.points) % 2 == 0:
                self._footsteps[marker.ns] = cv.points_to_numpy(marker.points).reshape(
                    -1, 2, 3
                )

    def _on_frames(self, msg: TFMessage) -> None:
        if self._scene is None:
            return
        prefix = self.parameters.frame_prefix
        root = prefix + self._scene.model.root_link
        for item in msg.transforms:
            if item.child_frame_id == root:
                self._frames["root"] = cv.transform_to_numpy(item.transform)
            elif item.child_frame_id == prefix + WALK and item.header.frame_id == root:
                self._frames[WALK] = cv.transform_to_numpy(item.transform)

    def _recent(self, topic: str) -> Any:
        """The newest message of a topic; None when it is older than 2 s."""
        msg, at = self._received.get(topic, (None, -math.inf))
        return msg if time.monotonic() - at < 2.0 else None

    # --- drawing -----------------------------------------------------------------------------
    def _on_draw(self) -> None:
        now = time.monotonic()
        seconds, self._drawn_at = now - self._drawn_at, now
        if self._scene is None or self._newest is None or not self.page.watched:
            return
        try:
            self._draw(self._scene, *self._newest, seconds)
        except Exception as error:  # a message of another node that makes no sense
            for stored in (self._received, self._frames, self._footsteps):
                stored.clear()
            self.log.warn(
                "drawing", f"cannot be shown: {type(error).__name__}: {error}"
            )

    def _draw(
        self, scene: RobotScene, q: Array, qd: Array, time_ns: int, seconds: float
    ) -> None:
        rows, numbers = {}, {}
        msg, chain = self._recent("com"), self._recent("sesc")
        if msg is not None:
            state = center_of_mass_to_numpy(msg)
        else:
            state = self._observer.update(q, qd)
            rows["source"] = (
                "no topic com: computed here from the URDF, on horizontal ground"
            )
        forces, _ = self._wrenches.forces(time_ns)
        links = None if chain is None else cv.points_to_numpy(chain.points)
        snapshot = scene.place(q, state, self._frames.get("root"), links, forces)
        rows |= describe(state)
        numbers["support margin (mm)"] = 1e3 * state.margin
        R, p = snapshot.R[0], snapshot.p[0]
        marks: dict[str, Mark] = {}
        trunk, walk = self._recent("trunk_com"), self._recent("gait/state")
        if trunk is not None:
            marks |= _trunk_marks(trunk, R, p)
            rows["trunk"] = (
                f"{_state(trunk)}; {trunk.mass:.2f} kg, std {trunk.mass_std:.2f} kg"
            )
            numbers["trunk mass (kg)"] = trunk.mass
        diagnosis = self._recent("diagnosis")
        if diagnosis is not None:
            rows["diagnosis"] = diagnosis.reason or diagnosis.verdict
            true = snapshot.com + R @ cv.vector3_to_numpy(diagnosis.com_correction)
            covariance = R @ np.reshape(diagnosis.covariance, (3, 3)) @ R.T
            marks["CoM, corrected"] = Mark(true, scenes.BLUE, covariance)
        reaction = self._recent("ground_reaction")
        arrows = (
            snapshot.forces
            if reaction is None
            else _reaction(reaction, scene, snapshot)
        )
        footsteps = np.empty((0, 2, 3))
        if walk is not None:
            rows["walk"] = _state(walk)
            numbers["CoM error (mm)"] = 1e3 * walk.com_error
            if WALK in self._frames:
                R_walk, p_walk = self._frames[WALK]
                R_walk, p_walk = R @ R_walk, R @ p_walk + p
                points = {name: getattr(walk, name) for name in WALK_POINTS}
                dcm = self._recent("gait/dcm")
                points |= {} if dcm is None else {"DCM": dcm.point}
                for name, point in points.items():
                    where = R_walk @ cv.point_to_numpy(point) + p_walk
                    color = WALK_POINTS.get(name, scenes.PURPLE)
                    marks[name.replace("_", " ")] = Mark(where, color)
                steps = [
                    edges @ R_walk.T + p_walk for edges in self._footsteps.values()
                ]
                footsteps = np.concatenate([footsteps, *steps])
        for topic in STATUS_TOPICS:
            other = self._recent(topic)
            if other is not None:
                rows[topic.removesuffix("/state")] = _state(other)
        if self.parameters.record:
            self.page.pause(seconds)
        self.page.show(
            replace(snapshot, forces=arrows, marks=marks, footsteps=footsteps)
        )
        self.page.set_status(rows)
        self.page.plot(numbers, time_ns / 1e9)

    # --- services ----------------------------------------------------------------------------
    def _find_services(self) -> None:
        """Adds buttons for the services that nodes of this namespace offer."""
        space = self.get_namespace().rstrip("/") + "/"
        found = {
            name.removeprefix(space): SERVICES[kinds[0]]
            for name, kinds in self.get_service_names_and_types()
            if kinds[0] in SERVICES and name.startswith(space)
        }
        for label in found.keys() - self._callers.keys():
            self._callers[label] = self.create_client(found[label], label)
        walks = [WALK] if self._goal.get_subscription_count() else []
        self.page.set_actions([*walks, *sorted(found)], self._press)

    def _press(self, label: str) -> None:
        """Calls a service; its response becomes a row of the status table."""
        if label == WALK:
            self._goal.publish(msgs.WalkGoal())
            return
        client = self._callers[label]
        self.page.set_status({"service": f"{label}: called"})
        request = client.srv_type.Request()
        if isinstance(request, SetBool.Request):
            request.data = True

        def answered(future: Any) -> None:
            answer = future.result()
            verdict = "done" if answer.success else "refused"
            self.page.set_status({"service": f"{label}: {verdict}. {answer.message}"})

        client.call_async(request).add_done_callback(answered)


def _state(msg: Any) -> str:
    """Name of a message's state or status, and the reason."""
    number = msg.status if hasattr(msg, "status") else msg.state
    reasons = [msg.reason] if hasattr(msg, "reason") else msg.reasons
    return ": ".join([cv.constant_name(type(msg), number), *filter(None, reasons)])


def _reaction(msg: msgs.GroundReaction, scene: RobotScene, snapshot: Snapshot) -> Array:
    """Positions of feet and forces of the ground (f, 2, 3), m and N, world."""
    rows = []
    for foot, force in zip(msg.feet, msg.forces, strict=True):
        _, p_foot = scene.pose(foot, snapshot.R, snapshot.p)
        rows.append((p_foot, snapshot.R[0] @ cv.vector3_to_numpy(force)))
    return np.array(rows).reshape(-1, 2, 3)


def _trunk_marks(msg: msgs.TrunkCom, R: Array, p: Array) -> dict[str, Mark]:
    """Marks of the trunk's CoM by the URDF and as estimated, with its covariance."""
    com, offset = (
        cv.point_to_numpy(msg.position),
        cv.vector3_to_numpy(msg.offset_from_urdf),
    )
    covariance = R @ np.reshape(msg.covariance, (3, 3)) @ R.T
    return {
        "trunk CoM, URDF": Mark(R @ (com - offset) + p, scenes.ORANGE),
        "trunk CoM, estimated": Mark(R @ com + p, scenes.BLUE, covariance),
    }
