"""The messages of a legged robot's trunk <-> numpy; see com_ros.conversions for the rules.

Vectors are in the frame of the message's header, SI units; what is not known is NaN.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from builtin_interfaces.msg import Time

from com_estimation.trunk.ground_reaction import GroundReaction as Reaction
from com_estimation.trunk.interface import Status, TrunkEstimate
from com_model.arrays import Flags
from com_msgs.msg import GroundReaction, TrunkCom
from com_ros.conversions import (
    NS_PER_S,
    Array,
    ns_to_stamp,
    numpy_to_point,
    numpy_to_vector3,
    numpy_to_vectors,
    point_to_numpy,
    points_to_numpy,
    stamp_to_ns,
    vector3_to_numpy,
)
from com_ros.exceptions import ConversionError


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
    )


def numpy_to_trunk_com(
    estimate: TrunkEstimate, method: str, stamp: Time, frame: str, out: TrunkCom | None = None
) -> TrunkCom:
    """TrunkCom message of an estimate; `out` is filled in place if given."""
    msg = TrunkCom() if out is None else out
    msg.header.stamp, msg.header.frame_id = stamp, frame
    msg.status = int(estimate.status)
    msg.reason = estimate.reason
    msg.method = method
    numpy_to_point(estimate.com, msg.position)
    numpy_to_vector3(estimate.offset_from_urdf, msg.offset_from_urdf)
    numpy_to_vector3(estimate.offset_from_center, msg.offset_from_center)
    msg.covariance = np.ascontiguousarray(estimate.covariance, dtype=np.float64).ravel()
    numpy_to_vector3(estimate.repeatability, msg.repeatability)
    msg.limited_by = estimate.limited_by
    msg.mass = float(estimate.mass)
    msg.mass_std = float(estimate.mass_std)
    msg.observable = estimate.observable.tolist()
    changed = estimate.payload_changed_at
    msg.payload_changed_at = ns_to_stamp(round(changed * NS_PER_S) if changed > 0.0 else 0)
    return msg


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
    sizes = {len(msg.legs), len(msg.feet), len(msg.forces), len(msg.force_std), len(msg.contact)}
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


def numpy_to_ground_reaction(
    reaction: Reaction,
    legs: Sequence[str],
    feet: Sequence[str],
    stamp: Time,
    frame: str,
    out: GroundReaction | None = None,
) -> GroundReaction:
    """GroundReaction message of forces; `out` is filled in place if given."""
    msg = GroundReaction() if out is None else out
    msg.header.stamp, msg.header.frame_id = stamp, frame
    msg.method = reaction.method
    msg.legs, msg.feet = list(legs), list(feet)
    msg.forces = numpy_to_vectors(reaction.forces)
    msg.force_std = numpy_to_vectors(reaction.std)
    msg.contact = reaction.contact.tolist()
    return msg
