"""The messages of a legged robot's trunk <-> numpy; see com_ros.conversions for the rules.

Vectors are in the frame of the message's header, SI units; what is not known is NaN.
"""

from collections.abc import Sequence

import numpy as np
from builtin_interfaces.msg import Time

from com_estimation.trunk.ground_reaction import GroundReaction as Reaction
from com_estimation.trunk.interface import TrunkEstimate
from com_msgs.msg import GroundReaction, TrunkCom
from com_ros.conversions import (
    NS_PER_S,
    ns_to_stamp,
    numpy_to_point,
    numpy_to_vector3,
    numpy_to_vectors,
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
