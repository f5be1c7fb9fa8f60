"""Messages and publishers of sesc_publisher: the CoM, its Jacobian, markers, frames, the SESC.

Conversions follow the rules of com_ros.conversions. Vectors are in the frame of the message's
header, SI units; unknown numbers are NaN.
"""

from collections.abc import Sequence
from time import monotonic

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point32, PointStamped, PolygonStamped
from numpy.typing import ArrayLike, NDArray
from rclpy.node import Node
from std_msgs.msg import Header
from visualization_msgs.msg import Marker

from com_estimation.whole_body.com_state import ComObserver, ComState, Ground
from com_model import Frame, RobotModel, Status
from com_msgs.msg import CenterOfMass, ComJacobian, SescChain
from com_ros import conversions as cv
from com_ros.conversions import ns_to_stamp, numpy_to_point
from com_ros.exceptions import ConversionError
from com_ros.markers import (
    BLUE,
    GREEN,
    ORANGE,
    RED,
    FramePublisher,
    MarkerMaker,
    MarkerOutput,
)
from com_ros.qos import RESULT
from com_ros.raw_messages import Writer


def center_of_mass_to_numpy(msg: CenterOfMass) -> ComState:
    """Converts a CenterOfMass message to a state.

    Args:
        msg: in the frame of its header.

    Returns:
        The state in the same frame; without Jacobian, joint positions and stance, which the
        message does not carry.
    """
    return ComState(
        status=Status(msg.status),
        reason=msg.reason,
        mass=msg.mass,
        position=cv.point_to_numpy(msg.position),
        velocity=cv.vector3_to_numpy(msg.velocity),
        gravity=cv.vector3_to_numpy(msg.gravity),
        ground=Ground(msg.ground),
        projection=cv.point_to_numpy(msg.projection),
        margin=msg.support_margin,
        contacts=tuple(msg.contacts),
    )


def numpy_to_center_of_mass(state: ComState, stamp: Time, frame: str) -> CenterOfMass:
    """Converts a state to a CenterOfMass message.

    Args:
        state: of the CoM, in the frame of the root link.
        stamp: of the joint_states that it was computed from.
        frame: name of the root link's frame, with the prefix.
    """
    return CenterOfMass(
        header=Header(stamp=stamp, frame_id=frame),
        status=int(state.status),
        reason=state.reason,
        mass=float(state.mass),
        position=cv.numpy_to_point(state.position),
        velocity=cv.numpy_to_vector3(state.velocity),
        gravity=cv.numpy_to_vector3(state.gravity),
        ground=int(state.ground),
        projection=cv.numpy_to_point(state.projection),
        support_margin=float(state.margin),
        contacts=list(state.contacts),
    )


def numpy_to_com_jacobian(
    names: Sequence[str],
    matrix: ArrayLike,
    position: ArrayLike,
    stamp: Time,
    frame: str,
) -> ComJacobian:
    """Converts a Jacobian to a ComJacobian message.

    Args:
        names: of the n joints, in the order of the columns.
        matrix: (3, n) m/rad or m/m, derivative of the CoM by the joint positions, in `frame`.
        position: (3,) m, the CoM in `frame`.
        stamp: of the joint_states that they were computed from.
        frame: name of the root link's frame, with the prefix.

    Returns:
        The message; the matrix is row-major.

    Raises:
        ConversionError: the matrix has not one column for each name.
    """
    if np.shape(matrix) != (3, len(names)):
        raise ConversionError(
            f"matrix: expected shape (3, {len(names)}), got {np.shape(matrix)}"
        )
    return ComJacobian(
        header=Header(stamp=stamp, frame_id=frame),
        joint_names=list(names),
        matrix=cv.numpy_to_doubles(matrix),
        position=cv.numpy_to_point(position),
    )


def numpy_to_sesc_chain(
    mass: float,
    links: Sequence[str],
    parameters: ArrayLike,
    points: ArrayLike,
    stamp: Time,
    frame: str,
) -> SescChain:
    """Converts a chain of K links to a SescChain message.

    Args:
        mass: kg, of the robot.
        links: names of the K links, from the root on.
        parameters: (K, 3) m, in their frames.
        points: (K + 1, 3) m, in `frame`; the last one is the CoM.
        stamp: of the joint_states that the points belong to.
        frame: name of the root link's frame, with the prefix.

    Raises:
        ConversionError: the sizes do not fit together.
    """
    n_parameters, n_points = np.shape(parameters)[0], np.shape(points)[0]
    if not len(links) == n_parameters == n_points - 1:
        sizes = f"{len(links)} links, {n_parameters} parameters, {n_points} points"
        raise ConversionError(f"sesc: {sizes}; expected K, K and K + 1")
    return SescChain(
        header=Header(stamp=stamp, frame_id=frame),
        mass=float(mass),
        links=list(links),
        parameters=cv.numpy_to_vectors(parameters),
        points=cv.numpy_to_points(points),
    )


class ComWriter:
    """Publishes states of the CoM on one topic.

    Args:
        node: that publishes.
        topic: of com_msgs/CenterOfMass.
    """

    def __init__(self, node: Node, topic: str) -> None:
        self._writer = Writer(node, CenterOfMass, topic)

    def publish(self, state: ComState, stamp_ns: int, frame: str) -> None:
        """Publishes a state.

        Args:
            state: in the frame of the root link.
            stamp_ns: ns, stamp of the joint_states that it was computed from.
            frame: name of the root link's frame, with the prefix.
        """
        text = frame, state.status, state.reason, state.ground, state.contacts
        p, v, g = (
            state.position.tolist(),
            state.velocity.tolist(),
            state.gravity.tolist(),
        )
        runs = [state.mass, *p, *v, *g], [*state.projection.tolist(), state.margin]

        def make() -> CenterOfMass:
            return numpy_to_center_of_mass(state, ns_to_stamp(stamp_ns), frame)

        self._writer.publish(text, stamp_ns, runs, make)


class ComOutput:
    """Publishes states of the CoM on com, com/point and com/jacobian.

    Args:
        node: that publishes.
        frame_prefix: in front of the names of frames.
        with_jacobian: also publish com/jacobian.
    """

    def __init__(
        self, node: Node, frame_prefix: str = "", *, with_jacobian: bool
    ) -> None:
        self._prefix = frame_prefix
        self._com = ComWriter(node, "com")
        self._point = node.create_publisher(PointStamped, "com/point", RESULT)
        self._jacobian = (
            node.create_publisher(ComJacobian, "com/jacobian", RESULT)
            if with_jacobian
            else None
        )
        self._count_at, self._to_point, self._to_jacobian = 0.0, False, False

    def publish(self, state: ComState, stamp_ns: int, model: RobotModel | None) -> None:
        """Publishes a state; point and Jacobian only while they have subscribers.

        Args:
            state: in the frame of the root link.
            stamp_ns: ns, stamp of the joint_states that it was computed from.
            model: the robot, which names root link and joints; None: unknown yet.
        """
        frame = "" if model is None else self._prefix + model.root_link
        self._com.publish(state, stamp_ns, frame)
        if state.jacobian is None:
            return
        now = monotonic()
        if now >= self._count_at:
            # counting subscriptions takes microseconds
            self._count_at = now + 0.05
            self._to_point = self._point.get_subscription_count() > 0
            jacobian = self._jacobian
            self._to_jacobian = (
                jacobian is not None and jacobian.get_subscription_count() > 0
            )
        if self._to_point:
            header = Header(stamp=ns_to_stamp(stamp_ns), frame_id=frame)
            point = numpy_to_point(state.position)
            self._point.publish(PointStamped(header=header, point=point))
        if self._jacobian is not None and self._to_jacobian and model is not None:
            where = state.position, ns_to_stamp(stamp_ns), frame
            self._jacobian.publish(
                numpy_to_com_jacobian(model.joint_names, state.jacobian, *where)
            )


class ComDisplay:
    """Publishes what visualizes the CoM: markers, support polygon, the chain and frames on /tf.

    Args:
        node: that publishes.
        frame_prefix: in front of the names of frames.
    """

    def __init__(self, node: Node, frame_prefix: str = "") -> None:
        self._prefix = frame_prefix
        self._markers = MarkerOutput(node, "com/markers", 1.0)
        self._support = node.create_publisher(PolygonStamped, "com/support", RESULT)
        self._sesc = node.create_publisher(SescChain, "sesc", RESULT)
        self._frames = FramePublisher(node, frame_prefix)

    def send_fixed(self, frames: Sequence[Frame]) -> None:
        """Publishes frames that are fixed to links, once, on /tf_static.

        Args:
            frames: of the model.
        """
        self._frames.send_fixed(frames)

    def show(self, state: ComState, observer: ComObserver, stamp: Time) -> None:
        """Publishes a state; with the status UNKNOWN, markers shown before are removed.

        Args:
            state: in the frame of the root link.
            observer: that computed it; has the chain.
            stamp: of the joint_states that it was computed from.
        """
        if state.status is Status.UNKNOWN or state.q is None:
            self._markers.hide()
            return
        root, frames = observer.model.root_link, [("com", state.position)]
        if state.ground is not Ground.UNKNOWN:
            frames.append(("com_projection", state.projection))
        self._frames.send(stamp, root, frames)
        if self._support.get_subscription_count() > 0:
            self._support.publish(self._polygon(state, self._prefix + root, stamp))
        if not (self._markers.wanted or self._sesc.get_subscription_count() > 0):
            return
        points = observer.sesc.chain(state.q)
        frame = self._prefix + root
        if self._markers.wanted:
            self._markers.set_header(frame, stamp)
            self._markers.show(_markers(self._markers, state, points))
        links, parameters = (
            observer.sesc.chain_links,
            observer.sesc.parameters_at(state.q),
        )
        self._sesc.publish(
            numpy_to_sesc_chain(state.mass, links, parameters, points, stamp, frame)
        )

    def _polygon(self, state: ComState, frame: str, stamp: Time) -> PolygonStamped:
        """The support polygon; without points where it is unknown."""
        polygon, header = state.support_polygon(), Header(stamp=stamp, frame_id=frame)
        msg = PolygonStamped(header=header)
        for x, y, z in [] if polygon is None else polygon.vertices.tolist():
            msg.polygon.points.append(Point32(x=x, y=y, z=z))
        return msg


def _markers(maker: MarkerMaker, state: ComState, chain: NDArray) -> list[Marker]:
    size = 0.02 * state.mass ** (1.0 / 3.0)  # m: 4 cm for 7 kg, 9 cm for 95 kg
    markers = [
        maker.sphere("com", state.position, size, RED),
        maker.line("sesc", chain, 0.25 * size, BLUE),
        maker.balls("sesc_joints", chain[:-1], 0.5 * size, BLUE),
    ]
    if state.ground is not Ground.UNKNOWN:
        fall = [state.position, state.projection]
        markers.append(
            maker.disc("com_projection", state.projection, state.gravity, size, ORANGE)
        )
        markers.append(maker.line("gravity_line", fall, 0.1 * size, ORANGE))
    polygon = state.support_polygon()
    if polygon is not None and len(polygon.vertices) > 1:
        vertices = polygon.vertices
        markers.append(
            maker.line("support_polygon", vertices, 0.15 * size, GREEN, closed=True)
        )
    return markers
