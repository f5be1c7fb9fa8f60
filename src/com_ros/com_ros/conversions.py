"""Messages <-> numpy, in pairs `<message>_to_numpy` / `numpy_to_<message>`.

Lengths in m, angles in rad, forces in N. Quaternions are ordered x, y, z, w as in ROS messages.
`R_ab` maps coordinates of frame b to frame a. Arrays are float64 and owned by the caller.
Every pair is tested by round trip.
"""

import array
import math
from collections.abc import Sequence

import numpy as np
from builtin_interfaces.msg import Duration, Time
from geometry_msgs.msg import Point, Pose, Quaternion, Transform, Vector3, Wrench
from numpy.typing import ArrayLike
from sensor_msgs.msg import Imu, JointState
from tf_transformations import quaternion_from_matrix, quaternion_matrix
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from com_model.arrays import Array
from com_ros.exceptions import ConversionError

NS_PER_S = 1_000_000_000
_DOUBLE = np.dtype(np.float64)


# --- time ------------------------------------------------------------------------------------
def stamp_to_ns(stamp: Time) -> int:
    """Returns the nanoseconds since the epoch of the clock that made the stamp; exact.

    Args:
        stamp: of a message.
    """
    return stamp.sec * NS_PER_S + stamp.nanosec


def ns_to_stamp(time_ns: int) -> Time:
    """Returns the stamp of a time.

    Args:
        time_ns: ns; times before the epoch have a negative `sec`.
    """
    sec, nanosec = divmod(int(time_ns), NS_PER_S)
    return Time(sec=sec, nanosec=nanosec)


def constant_name(kind: type, number: int) -> str:
    """Returns the name of a number among the constants of a message type, without STATUS_.

    Args:
        kind: type of the message.
        number: value of one of its constants.

    Returns:
        The name; the number in digits where no constant has it.
    """
    constants = type(kind).__prepare__("", ())  # those of the .msg file, and defaults
    names = (
        name
        for name, value in constants.items()
        if value == number and "__" not in name
    )
    return next(names, str(number)).removeprefix("STATUS_")


# --- vectors ---------------------------------------------------------------------------------
def point_to_numpy(msg: Point | Vector3) -> Array:
    """Returns the (3,) coordinates of a Point, m, or of a Vector3.

    Args:
        msg: Point or Vector3.
    """
    return np.array((msg.x, msg.y, msg.z))


vector3_to_numpy = point_to_numpy


def numpy_to_point(values: ArrayLike) -> Point:
    """Creates a Point message.

    Args:
        values: (3,) m.

    Raises:
        ConversionError: the shape is wrong.
    """
    x, y, z = _vector(values, 3, "point")
    return Point(x=x, y=y, z=z)


def numpy_to_vector3(values: ArrayLike) -> Vector3:
    """Creates a Vector3 message.

    Args:
        values: (3,) of any unit.

    Raises:
        ConversionError: the shape is wrong.
    """
    x, y, z = _vector(values, 3, "vector")
    return Vector3(x=x, y=y, z=z)


def points_to_numpy(msgs: Sequence[Point | Vector3]) -> Array:
    """Returns the (k, 3) coordinates of k Points or Vector3s.

    Args:
        msgs: k messages; none: (0, 3).
    """
    return np.array([(m.x, m.y, m.z) for m in msgs]).reshape(-1, 3)


def numpy_to_points(values: ArrayLike) -> list[Point]:
    """Creates k Point messages.

    Args:
        values: (k, 3) m.

    Raises:
        ConversionError: the shape is wrong.
    """
    return [Point(x=x, y=y, z=z) for x, y, z in _rows(values, 3, "points")]


def numpy_to_vectors(values: ArrayLike) -> list[Vector3]:
    """Creates k Vector3 messages.

    Args:
        values: (k, 3) of any unit.

    Raises:
        ConversionError: the shape is wrong.
    """
    return [Vector3(x=x, y=y, z=z) for x, y, z in _rows(values, 3, "vectors")]


def wrench_to_numpy(msg: Wrench) -> Array:
    """Returns the (6,) force (N), then torque (N m), of a Wrench.

    Args:
        msg: in any frame.
    """
    f, t = msg.force, msg.torque
    return np.array((f.x, f.y, f.z, t.x, t.y, t.z))


def numpy_to_wrench(values: ArrayLike) -> Wrench:
    """Creates a Wrench message.

    Args:
        values: (6,) force, N, then torque, N m.

    Raises:
        ConversionError: the shape is wrong.
    """
    numbers = _vector(values, 6, "wrench")
    force, torque = numpy_to_vector3(numbers[:3]), numpy_to_vector3(numbers[3:])
    return Wrench(force=force, torque=torque)


# --- rotations -------------------------------------------------------------------------------
def numpy_to_quaternion(values: ArrayLike) -> Quaternion:
    """Creates a Quaternion message.

    Args:
        values: (4,) x, y, z, w.

    Raises:
        ConversionError: the shape is wrong.
    """
    x, y, z, w = _vector(values, 4, "quaternion")
    return Quaternion(x=x, y=y, z=z, w=w)


def quaternion_to_rotation(msg: Quaternion) -> Array:
    """Returns the rotation matrix of a quaternion message.

    Args:
        msg: orientation of frame b in frame a, of unit length.

    Returns:
        R_ab (3, 3).

    Raises:
        ConversionError: it is not of unit length. All zero is what a driver without orientation
            sends; it must not be used as "horizontal".
    """
    xyzw = (msg.x, msg.y, msg.z, msg.w)
    norm = math.hypot(*xyzw)
    # float32 drivers and rounded text stay far below
    if not abs(norm - 1.0) <= 1e-2:  # also true for NaN
        text = ", ".join(f"{value:.6g}" for value in xyzw)
        raise ConversionError(
            f"quaternion (x, y, z, w) = ({text}) has length {norm:.6g}, not 1"
        )
    return np.ascontiguousarray(quaternion_matrix(xyzw)[:3, :3])


def rotation_to_quaternion(R: ArrayLike) -> Quaternion:
    """Creates the Quaternion message of a rotation, with w >= 0.

    Args:
        R: (3, 3) rotation matrix.
    """
    T = np.eye(4)
    T[:3, :3] = R
    xyzw = np.asarray(quaternion_from_matrix(T), dtype=np.float64)
    return numpy_to_quaternion(-xyzw if xyzw[3] < 0.0 else xyzw)


def pose_to_numpy(msg: Pose) -> tuple[Array, Array]:
    """Returns R_ab (3, 3) and p_ab (3,), m, of a Pose.

    Args:
        msg: pose of frame b in frame a.

    Raises:
        ConversionError: the quaternion is not of unit length.
    """
    return quaternion_to_rotation(msg.orientation), point_to_numpy(msg.position)


def numpy_to_pose(R: ArrayLike, p: ArrayLike) -> Pose:
    """Creates the Pose message of frame b in frame a.

    Args:
        R: (3, 3) R_ab.
        p: (3,) p_ab, m.
    """
    return Pose(orientation=rotation_to_quaternion(R), position=numpy_to_point(p))


def transform_to_numpy(msg: Transform) -> tuple[Array, Array]:
    """Returns R_ab (3, 3) and p_ab (3,), m, of a Transform.

    Args:
        msg: transform with parent frame a and child frame b.

    Raises:
        ConversionError: the quaternion is not of unit length.
    """
    return quaternion_to_rotation(msg.rotation), vector3_to_numpy(msg.translation)


# --- sensors ---------------------------------------------------------------------------------
def imu_to_rotation(msg: Imu) -> Array:
    """Returns R_world_imu (3, 3) of an Imu message; the world's z axis points up (REP-103).

    Args:
        msg: of an IMU whose driver or filter estimates orientation.

    Raises:
        ConversionError: there is no orientation: orientation_covariance[0] is -1, or the
            quaternion is not of unit length.
    """
    if msg.orientation_covariance[0] == -1.0:
        raise ConversionError(
            "imu carries no orientation (orientation_covariance[0] is -1)"
        )
    return quaternion_to_rotation(msg.orientation)


def numpy_to_joint_state(
    names: Sequence[str],
    position: ArrayLike,
    velocity: ArrayLike = (),
    effort: ArrayLike = (),
    stamp: Time | None = None,
    out: JointState | None = None,
) -> JointState:
    """Creates the JointState message of n joints.

    Args:
        names: of the joints.
        position: (n,) rad or m.
        velocity: (n,) rad/s or m/s; empty where not known.
        effort: (n,) N m or N; empty where not known.
        stamp: of the readings; None: leave it as it is, zero in a new message.
        out: filled in place and returned if given; keeps its names when they are the same list.
    """
    msg = JointState() if out is None else out
    if msg.name is not names:
        msg.name = names if isinstance(names, list) else list(names)
    msg.position = numpy_to_doubles(position)
    msg.velocity = numpy_to_doubles(velocity)
    msg.effort = numpy_to_doubles(effort)
    if stamp is not None:
        msg.header.stamp = stamp
    return msg


def numpy_to_doubles(values: ArrayLike) -> array.array:
    """Returns the contents of a float64[] field, row-major, which its setter does not copy.

    Args:
        values: of any shape.

    Returns:
        array('d').
    """
    return array.array("d", np.ascontiguousarray(values, dtype=np.float64).tobytes())


# --- trajectories ----------------------------------------------------------------------------
def numpy_to_joint_trajectory(
    names: Sequence[str], times: ArrayLike, q: ArrayLike, qd: ArrayLike, stamp: Time
) -> JointTrajectory:
    """Creates the JointTrajectory message of n joints.

    Args:
        names: of the joints.
        times: (N,) s after the stamp.
        q: (N, n) rad or m.
        qd: (N, n) rad/s or m/s.
        stamp: of the start.

    Raises:
        ConversionError: a number is not finite; such targets are not sent to drives.
    """
    after, positions, velocities = (
        np.asarray(a, dtype=np.float64) for a in (times, q, qd)
    )
    if not (np.isfinite(positions).all() and np.isfinite(velocities).all()):
        raise ConversionError(
            "a joint trajectory has targets that are not finite numbers"
        )
    msg = JointTrajectory(joint_names=list(names))
    msg.header.stamp = stamp
    msg.points = [
        JointTrajectoryPoint(
            positions=numpy_to_doubles(row),
            velocities=numpy_to_doubles(speed),
            time_from_start=Duration(
                sec=int(ns // NS_PER_S), nanosec=int(ns % NS_PER_S)
            ),
        )
        for ns, row, speed in zip(
            np.rint(after * NS_PER_S), positions, velocities, strict=True
        )
    ]
    return msg


# --- helpers ---------------------------------------------------------------------------------
def _vector(values: ArrayLike, n: int, what: str) -> list[float]:
    if type(values) is np.ndarray and values.dtype is _DOUBLE and values.shape == (n,):
        return values.tolist()  # without the copies and checks below, at every sample
    listed = np.asarray(values, dtype=np.float64)
    if listed.shape != (n,):
        raise ConversionError(f"{what}: expected shape ({n},), got {listed.shape}")
    return listed.tolist()


def _rows(values: ArrayLike, n: int, what: str) -> list[list[float]]:
    listed = np.asarray(values, dtype=np.float64)
    if listed.ndim != 2 or listed.shape[1] != n:
        raise ConversionError(f"{what}: expected shape (k, {n}), got {listed.shape}")
    return listed.tolist()
