"""What tests look at of messages and models that no node reads back."""

import math
from dataclasses import dataclass

import numpy as np
from geometry_msgs.msg import Quaternion, Transform
from numpy.typing import ArrayLike
from trajectory_msgs.msg import JointTrajectory

from com_estimation.trunk.interface import TrunkEstimate
from com_model import RobotModel
from com_model.arrays import Array, Flags
from com_model.bodies import steiner
from com_model.status import Status
from com_model.urdf.editing import Inertial
from com_msgs.msg import ComJacobian, GroundReaction, TrunkCom
from com_ros.conversions import (
    NS_PER_S,
    numpy_to_vector3,
    point_to_numpy,
    points_to_numpy,
    rotation_to_quaternion,
    stamp_to_ns,
    vector3_to_numpy,
)
from com_ros.exceptions import ConversionError


def quaternion_to_numpy(msg: Quaternion) -> Array:
    """(4,) x, y, z, w."""
    return np.array((msg.x, msg.y, msg.z, msg.w))


def numpy_to_transform(R: ArrayLike, p: ArrayLike) -> Transform:
    """Transform of R_ab (3, 3) and p_ab (3,) m."""
    turn, way = rotation_to_quaternion(R), numpy_to_vector3(p)
    return Transform(rotation=turn, translation=way)


def joint_trajectory_to_numpy(msg: JointTrajectory) -> tuple[Array, Array, Array]:
    """Times (N,) s after the stamp, positions (N, n), velocities (N, n), NaN where not given."""
    n = len(msg.joint_names)
    times = [
        p.time_from_start.sec + p.time_from_start.nanosec / NS_PER_S for p in msg.points
    ]
    q = np.array([p.positions for p in msg.points], dtype=np.float64).reshape(-1, n)
    unknown = [math.nan] * n
    qd = np.array([p.velocities or unknown for p in msg.points], dtype=np.float64)
    return np.array(times, dtype=np.float64), q, qd.reshape(-1, n)


def com_jacobian_to_numpy(msg: ComJacobian) -> tuple[tuple[str, ...], Array, Array]:
    """Joint names (n), matrix (3, n), position (3,) m.

    Raises:
        ConversionError: when the matrix does not have three rows of n numbers.
    """
    names = tuple(msg.joint_names)
    if len(msg.matrix) != 3 * len(names):
        raise ConversionError(
            f"com/jacobian: {len(msg.matrix)} numbers for {len(names)} joints, "
            f"expected {3 * len(names)}"
        )
    return names, np.array(msg.matrix).reshape(3, -1), point_to_numpy(msg.position)


def trunk_com_to_numpy(msg: TrunkCom) -> TrunkEstimate:
    """Estimate of a TrunkCom message; its time is the stamp."""
    changed_ns = stamp_to_ns(msg.payload_changed_at)
    return TrunkEstimate(
        time=stamp_to_ns(msg.header.stamp) / NS_PER_S,
        status=Status(msg.status),
        reason=msg.reason,
        mass=msg.mass,
        mass_std=msg.mass_std,
        com=point_to_numpy(msg.position),
        covariance=np.array(msg.covariance).reshape(3, 3),
        offset_from_urdf=vector3_to_numpy(msg.offset_from_urdf),
        offset_from_center=vector3_to_numpy(msg.offset_from_center),
        observable=np.array(msg.observable, dtype=np.bool_),
        payload_changed_at=changed_ns / NS_PER_S if changed_ns else math.nan,
        repeatability=vector3_to_numpy(msg.repeatability),
        limited_by=msg.limited_by,
        robot_com_std=msg.robot_com_std,
    )


@dataclass(frozen=True, eq=False)
class ReactionValues:
    """A GroundReaction message as arrays."""

    forces: Array  # (k, 3) N
    force_std: Array  # (k, 3) N
    contact: Flags  # (k,) the feet that stand
    method: str  # where the forces come from
    legs: tuple[str, ...] = ()  # k names
    feet: tuple[str, ...] = ()  # k foot frames


def ground_reaction_to_numpy(msg: GroundReaction) -> ReactionValues:
    """Values of a GroundReaction message.

    Raises:
        ConversionError: when its arrays are not equally long.
    """
    sizes = {
        len(msg.legs),
        len(msg.feet),
        len(msg.forces),
        len(msg.force_std),
        len(msg.contact),
    }
    if len(sizes) != 1:
        raise ConversionError(
            f"ground_reaction: {len(msg.legs)} legs, {len(msg.feet)} feet, {len(msg.forces)} "
            f"forces, {len(msg.force_std)} standard deviations, {len(msg.contact)} "
            "contacts; expected as many of each"
        )
    return ReactionValues(
        forces=points_to_numpy(msg.forces),
        force_std=points_to_numpy(msg.force_std),
        contact=np.array(msg.contact, dtype=np.bool_),
        method=msg.method,
        legs=tuple(msg.legs),
        feet=tuple(msg.feet),
    )


def root_body_inertial(model: RobotModel) -> Inertial:
    """Adds up the links of the root body.

    m = sum m_k, m c = sum m_k c_k, I = sum R_k I_k R_k^T + m_k S(c_k - c), with
    S(d) = |d|^2 1 - d d^T.

    Returns:
        Mass (kg), CoM (m) and inertia about it (kg m^2), frame and axes of the root link. Where it
        has no mass its CoM is the root link's origin.
    """
    bodies = model.bodies
    mass, moment = float(bodies.mass[0]), bodies.first_moment[0]
    com = moment / mass if mass > 0.0 else np.zeros(3)
    return Inertial(mass, com, bodies.inertia[0] - mass * steiner(com))
