"""Messages of sesc_publisher <-> numpy; see com_ros.conversions for the rules.

Vectors are in the frame of the message's header, SI units; unknown numbers are NaN.
"""

from collections.abc import Sequence

import numpy as np
from builtin_interfaces.msg import Time
from numpy.typing import ArrayLike
from std_msgs.msg import Header

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
