"""The suite's own messages <-> numpy; see com_ros.conversions for the rules.

Vectors are in the frame of the message's header, SI units; what is not known is NaN.
"""
# ruff: noqa: D102  (the attributes of ComLike are described in ComValues)

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from builtin_interfaces.msg import Time
from numpy.typing import ArrayLike

from com_msgs.msg import CenterOfMass, ComJacobian, SescChain
from com_ros.conversions import (
    Array,
    doubles_to_numpy,
    numpy_to_doubles,
    numpy_to_point,
    numpy_to_points,
    numpy_to_vector3,
    numpy_to_vectors,
    point_to_numpy,
    points_to_numpy,
    vector3_to_numpy,
)
from com_ros.exceptions import ConversionError


class ComLike(Protocol):
    """What a CenterOfMass message says, as arrays; the attributes are those of ComValues."""

    @property
    def status(self) -> int: ...
    @property
    def reason(self) -> str: ...
    @property
    def mass(self) -> float: ...
    @property
    def position(self) -> Array: ...
    @property
    def velocity(self) -> Array: ...
    @property
    def gravity(self) -> Array: ...
    @property
    def ground(self) -> int: ...
    @property
    def projection(self) -> Array: ...
    @property
    def margin(self) -> float: ...
    @property
    def contacts(self) -> Sequence[str]: ...


@dataclass(frozen=True)
class ComValues:
    """A CenterOfMass message as arrays.

    Attributes:
        status: CenterOfMass.STATUS_*.
        reason: why the status is not OK.
        mass: kg.
        position: (3,) m.
        velocity: (3,) m/s.
        gravity: (3,) unit vector, downwards.
        ground: CenterOfMass.GROUND_*.
        projection: (3,) m.
        margin: m, positive inside the support polygon.
        contacts: sole frames in contact.
    """

    status: int
    reason: str
    mass: float
    position: Array
    velocity: Array
    gravity: Array
    ground: int
    projection: Array
    margin: float
    contacts: tuple[str, ...]


def center_of_mass_to_numpy(msg: CenterOfMass) -> ComValues:
    """Values of a CenterOfMass message."""
    return ComValues(
        status=msg.status,
        reason=msg.reason,
        mass=msg.mass,
        position=point_to_numpy(msg.position),
        velocity=vector3_to_numpy(msg.velocity),
        gravity=vector3_to_numpy(msg.gravity),
        ground=msg.ground,
        projection=point_to_numpy(msg.projection),
        margin=msg.support_margin,
        contacts=tuple(msg.contacts),
    )


def numpy_to_center_of_mass(
    values: ComLike, stamp: Time, frame: str, out: CenterOfMass | None = None
) -> CenterOfMass:
    """CenterOfMass message of values; `out` is filled in place if given."""
    msg = CenterOfMass() if out is None else out
    msg.header.stamp = stamp
    msg.header.frame_id = frame
    msg.status = int(values.status)
    msg.reason = values.reason
    msg.mass = float(values.mass)
    numpy_to_point(values.position, msg.position)
    numpy_to_vector3(values.velocity, msg.velocity)
    numpy_to_vector3(values.gravity, msg.gravity)
    msg.ground = int(values.ground)
    numpy_to_point(values.projection, msg.projection)
    msg.support_margin = float(values.margin)
    msg.contacts = list(values.contacts)
    return msg


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
    return names, doubles_to_numpy(msg.matrix).reshape(3, -1), point_to_numpy(msg.position)


def numpy_to_com_jacobian(
    names: Sequence[str],
    matrix: ArrayLike,
    position: ArrayLike,
    stamp: Time,
    frame: str,
    out: ComJacobian | None = None,
) -> ComJacobian:
    """ComJacobian message.

    Args:
        names: n joint names; a list is used as it is.
        matrix: (3, n) m/rad or m/m.
        position: (3,) m.
        stamp: of the joint positions.
        frame: root link.
        out: filled in place if given; keeps its names when they are the same list.

    Raises:
        ConversionError: when the matrix is not (3, n).
    """
    msg = ComJacobian() if out is None else out
    if np.shape(matrix) != (3, len(names)):
        raise ConversionError(f"matrix: expected shape (3, {len(names)}), got {np.shape(matrix)}")
    msg.header.stamp = stamp
    msg.header.frame_id = frame
    if msg.joint_names is not names:
        msg.joint_names = names if isinstance(names, list) else list(names)
    msg.matrix = numpy_to_doubles(matrix)
    numpy_to_point(position, msg.position)
    return msg


def sesc_chain_to_numpy(msg: SescChain) -> tuple[float, tuple[str, ...], Array, Array]:
    """Mass (kg), K link names, parameters (K, 3) m in link frames, points (K + 1, 3) m."""
    return (
        msg.mass,
        tuple(msg.links),
        points_to_numpy(msg.parameters),
        points_to_numpy(msg.points),
    )


def numpy_to_sesc_chain(
    mass: float,
    links: Sequence[str],
    parameters: ArrayLike,
    points: ArrayLike,
    stamp: Time,
    frame: str,
) -> SescChain:
    """SescChain message of K links.

    Args:
        mass: kg.
        links: K names.
        parameters: (K, 3) m, each in its link's frame.
        points: (K + 1, 3) m, root origin to CoM.
        stamp: of the joint positions.
        frame: root link.

    Raises:
        ConversionError: when the sizes do not fit together.
    """
    n_parameters, n_points = np.shape(parameters)[0], np.shape(points)[0]
    if not len(links) == n_parameters == n_points - 1:
        sizes = f"{len(links)} links, {n_parameters} parameters, {n_points} points"
        raise ConversionError(f"sesc: {sizes}; expected K, K and K + 1")
    msg = SescChain(mass=float(mass), links=list(links))
    msg.header.stamp = stamp
    msg.header.frame_id = frame
    msg.parameters = numpy_to_vectors(parameters)
    msg.points = numpy_to_points(points)
    return msg
