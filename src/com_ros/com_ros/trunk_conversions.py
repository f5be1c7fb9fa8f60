"""The messages of a legged robot's trunk <-> numpy; see com_ros.conversions for the rules.

Vectors are in the frame of the message's header, SI units; what is not known is NaN.
"""
# ruff: noqa: D102  (the attributes of the protocols are described in the values)

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from builtin_interfaces.msg import Time
from numpy.typing import NDArray

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

Flags = NDArray[np.bool_]


class TrunkLike(Protocol):
    """What a TrunkCom message says, as arrays; the attributes are those of TrunkValues."""

    @property
    def status(self) -> int: ...
    @property
    def reason(self) -> str: ...
    @property
    def mass(self) -> float: ...
    @property
    def mass_std(self) -> float: ...
    @property
    def com(self) -> Array: ...
    @property
    def covariance(self) -> Array: ...
    @property
    def offset_from_urdf(self) -> Array: ...
    @property
    def offset_from_center(self) -> Array: ...
    @property
    def observable(self) -> Flags: ...
    @property
    def payload_changed_at(self) -> float: ...


@dataclass(frozen=True, eq=False)
class TrunkValues:
    """A TrunkCom message as arrays.

    Attributes:
        status: TrunkCom.STATUS_*.
        reason: why the status is not better.
        mass: kg.
        mass_std: kg.
        com: (3,) m.
        covariance: (3, 3) m^2.
        offset_from_urdf: (3,) m.
        offset_from_center: (3,) m.
        observable: (3,) components that the data tell of.
        payload_changed_at: s, NaN when it never did.
        method: the estimator.
    """

    status: int
    reason: str
    mass: float
    mass_std: float
    com: Array
    covariance: Array
    offset_from_urdf: Array
    offset_from_center: Array
    observable: Flags
    payload_changed_at: float
    method: str = ""


def trunk_com_to_numpy(msg: TrunkCom) -> TrunkValues:
    """Values of a TrunkCom message."""
    changed_ns = stamp_to_ns(msg.payload_changed_at)
    return TrunkValues(
        status=msg.status,
        reason=msg.reason,
        mass=msg.mass,
        mass_std=msg.mass_std,
        com=point_to_numpy(msg.position),
        covariance=np.array(msg.covariance).reshape(3, 3),
        offset_from_urdf=vector3_to_numpy(msg.offset_from_urdf),
        offset_from_center=vector3_to_numpy(msg.offset_from_center),
        observable=np.array(msg.observable, dtype=np.bool_),
        payload_changed_at=changed_ns / NS_PER_S if changed_ns else math.nan,
        method=msg.method,
    )


def numpy_to_trunk_com(
    values: TrunkLike, method: str, stamp: Time, frame: str, out: TrunkCom | None = None
) -> TrunkCom:
    """TrunkCom message of values; `out` is filled in place if given."""
    msg = TrunkCom() if out is None else out
    msg.header.stamp = stamp
    msg.header.frame_id = frame
    msg.status = int(values.status)
    msg.reason = values.reason
    msg.method = method
    numpy_to_point(values.com, msg.position)
    numpy_to_vector3(values.offset_from_urdf, msg.offset_from_urdf)
    numpy_to_vector3(values.offset_from_center, msg.offset_from_center)
    msg.covariance = np.ascontiguousarray(values.covariance, dtype=np.float64).ravel()
    msg.mass = float(values.mass)
    msg.mass_std = float(values.mass_std)
    msg.observable = values.observable.tolist()
    changed = values.payload_changed_at
    msg.payload_changed_at = ns_to_stamp(round(changed * NS_PER_S) if changed > 0.0 else 0)
    return msg


class ReactionLike(Protocol):
    """What a GroundReaction message says of k feet, as arrays."""

    @property
    def forces(self) -> Array: ...
    @property
    def deviations(self) -> Array: ...
    @property
    def contact(self) -> Flags: ...
    @property
    def method(self) -> str: ...


@dataclass(frozen=True, eq=False)
class ReactionValues:
    """A GroundReaction message as arrays.

    Attributes:
        forces: (k, 3) N.
        deviations: (k, 3) N.
        contact: (k,) the feet that stand.
        method: where the forces come from.
        legs: k names.
        feet: k foot frames.
    """

    forces: Array
    deviations: Array
    contact: Flags
    method: str
    legs: tuple[str, ...] = ()
    feet: tuple[str, ...] = ()


def ground_reaction_to_numpy(msg: GroundReaction) -> ReactionValues:
    """Values of a GroundReaction message.

    Raises:
        ConversionError: when its arrays are not equally long.
    """
    sizes = {len(msg.legs), len(msg.feet), len(msg.forces), len(msg.deviations), len(msg.contact)}
    if len(sizes) != 1:
        raise ConversionError(
            f"ground_reaction: {len(msg.legs)} legs, {len(msg.feet)} feet, {len(msg.forces)} "
            f"forces, {len(msg.deviations)} deviations, {len(msg.contact)} contacts; expected as "
            "many of each"
        )
    return ReactionValues(
        forces=points_to_numpy(msg.forces),
        deviations=points_to_numpy(msg.deviations),
        contact=np.array(msg.contact, dtype=np.bool_),
        method=msg.method,
        legs=tuple(msg.legs),
        feet=tuple(msg.feet),
    )


def numpy_to_ground_reaction(
    values: ReactionLike,
    legs: Sequence[str],
    feet: Sequence[str],
    stamp: Time,
    frame: str,
    out: GroundReaction | None = None,
) -> GroundReaction:
    """GroundReaction message of values; `out` is filled in place if given."""
    msg = GroundReaction() if out is None else out
    msg.header.stamp = stamp
    msg.header.frame_id = frame
    msg.method = values.method
    msg.legs, msg.feet = list(legs), list(feet)
    msg.forces = numpy_to_vectors(values.forces)
    msg.deviations = numpy_to_vectors(values.deviations)
    msg.contact = values.contact.tolist()
    return msg
