"""What com_identification publishes.

identification/state (com_msgs/IdentificationState): at state_rate_hz.
identification/result (com_msgs/IdentificationResult, latched): with each new result.
identification/model_check (com_msgs/ModelCheck): at check_rate_hz.
identification/markers (visualization_msgs/MarkerArray): with it, when someone looks.
"""

from __future__ import annotations

import numpy as np
from builtin_interfaces.msg import Time
from rclpy.node import Node
from visualization_msgs.msg import Marker, MarkerArray

from com_identification.feet.model_check import ModelCheckResult
from com_identification.feet.total_com import TotalCom
from com_identification.nodes.identification_conversions import numpy_to_model_check
from com_identification.nodes.identification_result import (
    BodyValues,
    Distances,
    ResultValues,
    numpy_to_identification_result,
)
from com_identification.nodes.identification_session import Session
from com_identification.regression.identify import Identification, Residual
from com_identification.store.export import trusted_bodies
from com_model.arrays import Array
from com_model.dynamics.link_frames import LinkFrames
from com_msgs.msg import IdentificationResult, IdentificationState, ModelCheck
from com_msgs.srv import IdentifyTotalCom
from com_ros.conversions import NS_PER_S, ns_to_stamp, numpy_to_vector3
from com_ros.markers import BLUE, RED, MarkerMaker
from com_ros.qos import LATCHED, RESULT

GREY = (0.5, 0.5, 0.5, 0.8)
GREEN = (0.1, 0.7, 0.25, 0.6)
LIFETIME_NS = 3 * NS_PER_S
SIGMAS = 2.0  # of the ellipsoids
LINE = 1.0  # m, length of the line by the feet
NOISY = 4.0  # variance factor: the noise is twice as large as the settings say


class IdentificationOutput:
    """Publishes it.

    Args:
        node: that publishes.
    """

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
        """CoM of the model, and the line on which it is by the feet."""
        q, maker = session.buffer.q, self._maker
        if q is None:
            return []
        markers = [maker.sphere("model_com", session.model_com(q), 0.03, RED)]
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
        found, frames = session.result.identification, self._frames_of(session)
        R, p = frames.poses(q)
        massive = [i for i in range(len(found.bodies)) if found.mass[i] > 0.0]
        before = np.array([p[i] + R[i] @ found.prior_com[i] for i in massive])
        markers = [self._maker.balls("com_before", before, 0.012, GREY)]
        for i in massive:
            spread: Array = R[i] @ np.diag(found.com_std[i] ** 2) @ R[i].T
            place, name = p[i] + R[i] @ found.com[i], f"com_after/{found.bodies[i]}"
            markers.append(self._maker.ellipsoid(name, place, spread, SIGMAS, GREEN))
        return markers

    def _frames_of(self, session: Session) -> LinkFrames:
        if self._frames is None or self._frames[0] is not session:
            self._frames = (session, LinkFrames(session.model, session.model.bodies.names))
        return self._frames[1]


def result_message(session: Session) -> IdentificationResult:
    """The latest result as a message, with the stamp of its newest posture."""
    ids = session.result.ids if session.result is not None else ()
    stamp = ns_to_stamp(max(map(session.stamp_ns, ids), default=0))
    return numpy_to_identification_result(result_values(session), stamp, session.frame)


def result_values(session: Session) -> ResultValues:
    """The latest result of a session."""
    if session.result is None:
        return ResultValues(
            reason="nothing is identified yet: capture postures and call identify_links",
            robot=session.model.name,
            model_mass=session.model.mass,
        )
    found, ids = session.result.identification, session.result.ids
    issues = issues_of(found)
    what, good = found.identifiability, found.without_outliers
    return ResultValues(
        status=IdentificationResult.STATUS_DEGRADED if issues else IdentificationResult.STATUS_OK,
        reason=" ".join(issues),
        robot=session.model.name,
        postures=ids,
        bodies=_bodies(found),
        total_mass=found.total_mass,
        total_mass_std=found.total_mass_std,
        model_mass=session.model.mass,
        n_parameters=what.unknowns,
        rank=what.rank,
        n_improved=what.informed,
        condition=what.condition,
        unidentifiable=what.lost,
        weakly_identifiable=what.weak,
        residual=_distances(good.residual),
        prior_residual=_distances(good.prior_residual),
        held_out=_distances(good.held_out),
        variance_factor=found.variance_factor,
        outliers=tuple(ids[i] for i in found.outliers),
        sensor_errors={
            (kind, name): (value, found.sensor_stds[kind][name])
            for kind, values in found.sensor_errors.items()
            for name, value in values.items()
        },
    )


def issues_of(found: Identification) -> list[str]:
    """Issues of a result, with how to fix them."""
    issues, good = [], found.without_outliers
    if found.variance_factor > NOISY:
        issues.append(
            f"The readings scatter {np.sqrt(found.variance_factor):.1f} times as much as noise.* "
            "says: raise it, tare the sensors, or have their errors estimated (sensors.*)."
        )
    if good.held_out.rms > good.prior_residual.rms:
        issues.append(
            f"Postures that were left out are predicted to {1e3 * good.held_out.rms:.2f} mm, "
            f"worse than by the URDF ({1e3 * good.prior_residual.rms:.2f} mm): capture more."
        )
    if found.at_bound:
        issues.append(
            f"The centre of mass of {', '.join(found.at_bound)} would be outside of the link's "
            "shape: check the sensors and the shapes, or set prior.bounded to false."
        )
    if 3 * len(found.outliers) > len(found.weights):
        issues.append(
            f"{len(found.outliers)} of {len(found.weights)} postures are inconsistent with the "
            "others: see the problems in the answer of get_postures."
        )
    return issues


def summary(found: Identification) -> str:
    """A result in one sentence."""
    what, good = found.identifiability, found.without_outliers
    count = len(found.weights)
    return (
        f"{count - len(found.outliers)} of {count} postures fit: the feet's CoM is met to "
        f"{1e3 * good.residual.rms:.2f} mm rms (URDF {1e3 * good.prior_residual.rms:.2f} mm, "
        f"left-out postures {1e3 * good.held_out.rms:.2f} mm), rank {what.rank} of "
        f"{what.unknowns}, total mass {found.total_mass:.4g} kg"
    )


def fill_total(total: TotalCom, response: IdentifyTotalCom.Response) -> None:
    """Puts mass and offset of the whole robot into a response."""
    known = np.isfinite(total.offset_std)
    response.mass, response.mass_std = float(total.mass), float(total.mass_std)
    response.model_mass = float(total.model_mass)
    numpy_to_vector3(np.where(known, total.offset, np.nan), response.offset)
    numpy_to_vector3(np.where(known, total.offset_std, np.nan), response.offset_std)
    response.distance_mean, response.distance_max = _mean_max(total.residual_before)
    response.shifted_mean, response.shifted_max = _mean_max(total.residual_after)
    response.used = int(total.postures)
    response.issues = list(total.reasons)
    response.success = True
    response.message = (
        f"mass by the feet {total.mass:.4g} kg (URDF {total.model_mass:.4g} kg); the URDF's centre "
        f"of mass is {1e3 * response.distance_mean:.2f} mm from the line by the feet on average"
    )


def _mean_max(distances: Array) -> tuple[float, float]:
    if not len(distances):
        return float("nan"), float("nan")
    return float(np.mean(distances)), float(np.max(distances))


def _distances(residual: Residual) -> Distances:
    return residual.mean, residual.rms, residual.maximum


def _bodies(found: Identification) -> BodyValues:
    held = [name in found.at_bound for name in found.bodies]
    return BodyValues(
        names=found.bodies,
        mass=found.mass,
        mass_std=found.mass_std,
        com=found.com,
        com_std=found.com_std,
        prior_mass=found.prior_mass,
        prior_mass_std=found.prior_mass_std,
        prior_com=found.prior_com,
        prior_com_std=found.prior_com_std,
        trusted=np.asarray(trusted_bodies(found), dtype=np.bool_),
        at_bound=np.array(held, dtype=np.bool_),
    )
