"""Publishers of trunk_estimator: estimates, forces, the corrected URDF, markers and frames."""

import math
from collections.abc import Sequence

import numpy as np
from builtin_interfaces.msg import Time
from rclpy.node import Node
from std_msgs.msg import Header, String
from visualization_msgs.msg import Marker

from com_estimation.nodes.trunk_robot import Parameters, TrunkRobot
from com_estimation.trunk.ground_reaction import GroundReaction as Reaction
from com_estimation.trunk.interface import TrunkEstimate
from com_model import RobotModel, UrdfError
from com_model.dynamics import GRAVITY
from com_model.status import TRUSTED, Status
from com_model.urdf.editing import correct_body, edit_inertials
from com_msgs.msg import GroundReaction, TrunkCom
from com_ros import conversions as cv
from com_ros.conversions import NS_PER_S, ns_to_stamp
from com_ros.diagnostics import ThrottledLog
from com_ros.markers import GREEN, RED, FramePublisher, MarkerOutput
from com_ros.qos import LATCHED, RESULT
from com_ros.stream import RateLimit

GREY = (0.5, 0.5, 0.5, 1.0)


class TrunkOutput:
    """Publishes estimates at a limited rate; a change of the status is published at once.

    Args:
        node: that publishes.
        p: method and publish_rate_hz.

    Attributes:
        rate: of the estimates.
    """

    def __init__(self, node: Node, p: Parameters) -> None:
        self._method = p.method
        self.rate = RateLimit(p.publish_rate_hz)
        self._trunk = node.create_publisher(TrunkCom, "trunk_com", RESULT)
        self._forces = node.create_publisher(GroundReaction, "ground_reaction", RESULT)
        self._status: Status | None = None

    def publish(
        self, estimate: TrunkEstimate, robot: TrunkRobot | None, stamp: Time
    ) -> None:
        """Publishes an estimate if it is due.

        Args:
            estimate: of the trunk.
            robot: the model with its legs and forces; None: unknown yet.
            stamp: of the sample that the estimate was computed from.
        """
        due = self.rate.due(round(estimate.time * NS_PER_S))
        if not due and estimate.status is self._status:
            return
        self._status = estimate.status
        frame = robot.frame if robot else ""
        self._trunk.publish(numpy_to_trunk_com(estimate, self._method, stamp, frame))
        if robot is not None and self._forces.get_subscription_count():
            legs, latest = robot.legs, robot.pipeline.meter.latest
            names, feet = [leg.name for leg in legs], [leg.foot.frame for leg in legs]
            reaction = latest, names, feet, stamp, robot.frame
            self._forces.publish(numpy_to_ground_reaction(*reaction))


class CorrectedDescription:
    """Publishes the URDF with the trunk's mass and CoM as estimated.

    Args:
        node: that publishes.
        p: corrected_change and corrected_mass_change.
        log: warns when no URDF can be made.
    """

    def __init__(self, node: Node, p: Parameters, log: ThrottledLog) -> None:
        self._publisher = node.create_publisher(
            String, "robot_description_corrected", LATCHED
        )
        self._log = log
        self.set_thresholds(p.corrected_change, p.corrected_mass_change)
        self.reset()

    def set_thresholds(self, com: float, mass: float) -> None:
        """Sets by how much an estimate must change for a new URDF to be published.

        Args:
            com: m, of a coordinate of the trunk's CoM.
            mass: fraction of the trunk's mass.
        """
        self._change, self._mass_change = com, mass

    def reset(self) -> None:
        """Makes the next usable estimate due in any case, for a new model."""
        self._time, self._mass, self._com = -math.inf, math.nan, np.full(3, np.nan)

    def update(self, estimate: TrunkEstimate, model: RobotModel) -> None:
        """Publishes an estimate that is USABLE or CONVERGED and differs from the one before.

        Args:
            estimate: of the trunk.
            model: the robot by the URDF that is corrected.
        """
        if estimate.status not in TRUSTED or not self._has_changed(estimate):
            return
        self._time, self._mass, self._com = estimate.time, estimate.mass, estimate.com
        try:
            change = correct_body(model, estimate.mass, estimate.com)
            self._publisher.publish(String(data=edit_inertials(model.xml, change)))
        except UrdfError as error:
            self._log.warn("corrected", f"no robot_description_corrected: {error}")

    def _has_changed(self, estimate: TrunkEstimate) -> bool:
        # s between two corrected URDFs
        if 0.0 <= estimate.time - self._time < 1.0:
            return False
        if not (math.isfinite(estimate.mass) and np.isfinite(estimate.com).all()):
            return False
        moved = float(np.abs(estimate.com - self._com).max())
        gained = abs(estimate.mass - self._mass) / estimate.mass
        return not (
            moved <= self._change and gained <= self._mass_change
        )  # True for NaN, too


class TrunkDisplay:
    """Shows estimates: markers of CoM, uncertainty and forces, and a frame on /tf.

    Args:
        node: that publishes.
        frame_prefix: in front of the names of frames.
    """

    def __init__(self, node: Node, frame_prefix: str = "") -> None:
        self._markers = MarkerOutput(node, "trunk_com/markers", 1.0)
        self._known = False  # in the markers before
        self._frames = FramePublisher(node, frame_prefix)

    def show(self, estimate: TrunkEstimate, robot: TrunkRobot, stamp: Time) -> None:
        """Publishes markers and the frame of an estimate; unknown parts are left out.

        Args:
            estimate: of the trunk.
            robot: the model with its legs and forces.
            stamp: of the sample that the estimate was computed from.
        """
        known = estimate.status is not Status.UNKNOWN and bool(
            np.isfinite(estimate.com).all()
        )
        if known:
            self._frames.send(
                stamp, robot.model.root_link, [("trunk_com", estimate.com)]
            )
        if not self._markers.wanted:
            return
        if self._known and not known:
            self._markers.hide()
        self._known = known
        self._markers.set_header(robot.frame, stamp)
        markers = self._trunk(estimate, robot) if known else []
        self._markers.show(markers + self._forces(robot))

    def _trunk(self, estimate: TrunkEstimate, robot: TrunkRobot) -> list[Marker]:
        com, maker, size = estimate.com, self._markers, _size(robot)
        markers = [maker.sphere("trunk_com", com, size, RED)]
        markers.append(
            maker.sphere("urdf_com", com - estimate.offset_from_urdf, size, GREY)
        )
        if np.isfinite(estimate.covariance).all():
            cloud = maker.ellipsoid(
                "uncertainty", com, estimate.covariance, 3.0, (0.85, 0.1, 0.1, 0.25)
            )
            markers.append(cloud)
        return markers

    def _forces(self, robot: TrunkRobot) -> list[Marker]:
        meter, width = robot.pipeline.meter, 0.3 * _size(robot)
        # m, for a force as large as the robot's weight
        scale = 0.5 / (robot.model.mass * GRAVITY)
        rows = zip(robot.legs, meter.points, meter.latest.forces, strict=True)
        return [
            self._markers.arrow(f"force_{leg.name}", point, scale * force, width, GREEN)
            for leg, point, force in rows
            if np.isfinite(force).all() and np.isfinite(point).all()
        ]


def _size(robot: TrunkRobot) -> float:
    return 0.02 * float(robot.model.mass) ** (
        1.0 / 3.0
    )  # m: 4 cm for 7 kg, 14 cm for 350 kg


def numpy_to_trunk_com(
    estimate: TrunkEstimate, method: str, stamp: Time, frame: str
) -> TrunkCom:
    """Converts an estimate to a TrunkCom message.

    Args:
        estimate: of the trunk, in the frame of the root link.
        method: the estimator's name.
        stamp: of the sample that it was computed from.
        frame: name of the root link's frame, with the prefix.

    Returns:
        The message; payload_changed_at is 0 where no change was noticed.
    """
    changed = estimate.payload_changed_at
    changed_ns = round(changed * NS_PER_S) if changed > 0.0 else 0
    return TrunkCom(
        header=Header(stamp=stamp, frame_id=frame),
        status=int(estimate.status),
        reason=estimate.reason,
        method=method,
        position=cv.numpy_to_point(estimate.com),
        offset_from_urdf=cv.numpy_to_vector3(estimate.offset_from_urdf),
        offset_from_center=cv.numpy_to_vector3(estimate.offset_from_center),
        covariance=np.asarray(estimate.covariance, dtype=np.float64).ravel(),
        repeatability=cv.numpy_to_vector3(estimate.repeatability),
        limited_by=estimate.limited_by,
        mass=float(estimate.mass),
        mass_std=float(estimate.mass_std),
        robot_com_std=float(estimate.robot_com_std),
        observable=estimate.observable.tolist(),
        payload_changed_at=ns_to_stamp(changed_ns),
    )


def numpy_to_ground_reaction(
    reaction: Reaction,
    legs: Sequence[str],
    feet: Sequence[str],
    stamp: Time,
    frame: str,
) -> GroundReaction:
    """Converts the forces on the feet to a GroundReaction message.

    Args:
        reaction: forces of the ground on the four feet, axes of the root link.
        legs: names of the legs.
        feet: frames of their soles.
        stamp: of the sample that they were computed from.
        frame: name of the root link's frame, with the prefix.
    """
    return GroundReaction(
        header=Header(stamp=stamp, frame_id=frame),
        method=reaction.method,
        legs=list(legs),
        feet=list(feet),
        forces=cv.numpy_to_vectors(reaction.forces),
        force_std=cv.numpy_to_vectors(reaction.std),
        contact=reaction.contact.tolist(),
    )
