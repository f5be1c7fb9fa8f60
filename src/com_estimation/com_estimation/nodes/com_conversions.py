"""Messages of sesc_publisher <-> numpy; see com_ros.conversions for the rules.

Vectors are in the frame of the message's header, SI units; unknown numbers are NaN.
"""

from collections.abc import Sequence

import numpy as np
from builtin_interfaces.msg import Time
from numpy.typing import ArrayLike

from com_estimation.whole_body.com_state import ComState, Ground
from com_model.status import Status
from com_msgs.msg import CenterOfMass, ComJacobian, SescChain
from com_ros import conversions as cv
from com_ros.exceptions import ConversionError


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


def numpy_to_center_of_mass(
    state: ComState, stamp: Time, frame: str, out: CenterOfMass | None = None
) -> CenterOfMass:
    """Converts a state to a CenterOfMass message.

    Args:
        state: of the CoM, in the frame of the root link.
        stamp: of the joint_states that it was computed from.
        frame: name of the root link's frame, with the prefix.
        out: filled in place if given.

    Returns:
        The message, `out` if given.
    """
    msg = CenterOfMass() if out is None else out
    header = msg.header
    header.stamp, header.frame_id = stamp, frame
    msg.status = int(state.status)
    msg.reason = state.reason
    msg.mass = float(state.mass)
    msg.ground = int(state.ground)
    msg.support_margin = float(state.margin)
    msg.contacts = list(state.contacts)
    for values, vector in (
        (state.position, msg.position),
        (state.velocity, msg.velocity),
        (state.gravity, msg.gravity),
        (state.projection, msg.projection),
    ):
        vector.x, vector.y, vector.z = values.tolist()
    return msg


def numpy_to_com_jacobian(
    names: Sequence[str],
    matrix: ArrayLike,
    position: ArrayLike,
    stamp: Time,
    frame: str,
    out: ComJacobian | None = None,
) -> ComJacobian:
    """Converts a Jacobian to a ComJacobian message.

    Args:
        names: of the n joints, in the order of the columns.
        matrix: (3, n) m/rad or m/m, derivative of the CoM by the joint positions, in `frame`.
        position: (3,) m, the CoM in `frame`.
        stamp: of the joint_states that they were computed from.
        frame: name of the root link's frame, with the prefix.
        out: filled in place if given; keeps its names when they are the same list.

    Returns:
        The message, `out` if given; the matrix is row-major.

    Raises:
        ConversionError: the matrix has not one column for each name.
    """
    msg = ComJacobian() if out is None else out
    if np.shape(matrix) != (3, len(names)):
        raise ConversionError(
            f"matrix: expected shape (3, {len(names)}), got {np.shape(matrix)}"
        )
    msg.header.stamp, msg.header.frame_id = stamp, frame
    if msg.joint_names is not names:
        msg.joint_names = names if isinstance(names, list) else list(names)
    msg.matrix = cv.numpy_to_doubles(matrix)
    cv.numpy_to_point(position, msg.position)
    return msg


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

    Returns:
        A new message.

    Raises:
        ConversionError: the sizes do not fit together.
    """
    n_parameters, n_points = np.shape(parameters)[0], np.shape(points)[0]
    if not len(links) == n_parameters == n_points - 1:
        sizes = f"{len(links)} links, {n_parameters} parameters, {n_points} points"
        raise ConversionError(f"sesc: {sizes}; expected K, K and K + 1")
    msg = SescChain(mass=float(mass), links=list(links))
    msg.header.stamp, msg.header.frame_id = stamp, frame
    msg.parameters = cv.numpy_to_vectors(parameters)
    msg.points = cv.numpy_to_points(points)
    return msg
