"""Every pair of conversions is tested by round trip, and every refusal by its text."""

import array
import math

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point, Pose, Quaternion, Transform, Vector3, Wrench
from read_back import numpy_to_transform, quaternion_to_numpy
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import Imu, JointState

from com_ros import conversions as cv
from com_ros.exceptions import ConversionError

RNG = np.random.default_rng(5)


@pytest.mark.parametrize("time_ns", [0, 1, 999_999_999, 1_700_000_000_123_456_789, -1])
def test_stamp_round_trip_is_exact(time_ns):
    stamp = cv.ns_to_stamp(time_ns)
    assert 0 <= stamp.nanosec < cv.NS_PER_S
    assert cv.stamp_to_ns(stamp) == time_ns


def test_stamp_is_not_rounded_through_a_float():
    assert cv.stamp_to_ns(Time(sec=1_700_000_000, nanosec=1)) % cv.NS_PER_S == 1


@pytest.mark.parametrize(
    ("to_msg", "to_numpy", "kind", "size"),
    [
        (cv.numpy_to_point, cv.point_to_numpy, Point, 3),
        (cv.numpy_to_vector3, cv.vector3_to_numpy, Vector3, 3),
        (cv.numpy_to_quaternion, quaternion_to_numpy, Quaternion, 4),
        (cv.numpy_to_wrench, cv.wrench_to_numpy, Wrench, 6),
    ],
)
def test_vectors_round_trip(to_msg, to_numpy, kind, size):
    values = RNG.normal(size=size)
    msg = to_msg(values)
    assert isinstance(msg, kind)
    np.testing.assert_array_equal(to_numpy(msg), values)
    with pytest.raises(
        ConversionError, match=rf"expected shape \({size},\), got \(2,\)"
    ):
        to_msg(np.zeros(2))


def test_unknown_stays_nan():
    assert math.isnan(cv.numpy_to_point([math.nan] * 3).y)
    assert np.isnan(cv.vector3_to_numpy(cv.numpy_to_vector3([math.nan] * 3))).all()


@pytest.mark.parametrize("count", [0, 1, 5])
def test_lists_of_points_round_trip(count):
    values = RNG.normal(size=(count, 3))
    np.testing.assert_array_equal(
        cv.points_to_numpy(cv.numpy_to_points(values)), values
    )
    np.testing.assert_array_equal(
        cv.points_to_numpy(cv.numpy_to_vectors(values)), values
    )
    with pytest.raises(ConversionError, match=r"expected shape \(k, 3\), got \(2, 2\)"):
        cv.numpy_to_points(np.zeros((2, 2)))


def random_rotations():
    return Rotation.random(50, random_state=3).as_matrix()


def test_rotations_round_trip_and_agree_with_scipy():
    for R in random_rotations():
        msg = cv.rotation_to_quaternion(R)
        np.testing.assert_allclose(cv.quaternion_to_rotation(msg), R, atol=1e-12)
        np.testing.assert_allclose(
            Rotation.from_quat(quaternion_to_numpy(msg)).as_matrix(), R, atol=1e-12
        )
        assert msg.w >= 0.0


def test_quaternion_order_is_x_y_z_w():
    quarter_turn_about_z = Quaternion(z=math.sqrt(0.5), w=math.sqrt(0.5))
    np.testing.assert_allclose(
        cv.quaternion_to_rotation(quarter_turn_about_z) @ [1, 0, 0],
        [0, 1, 0],
        atol=1e-15,
    )


@pytest.mark.parametrize("xyzw", [(0, 0, 0, 0), (0, 0, 0, 2), (0, 0, 0, math.nan)])
def test_a_quaternion_that_is_none_is_refused(xyzw):
    msg = cv.numpy_to_quaternion(np.array(xyzw, dtype=float))
    with pytest.raises(ConversionError, match=r"quaternion \(x, y, z, w\) = .* not 1"):
        cv.quaternion_to_rotation(msg)


@pytest.mark.parametrize(
    ("to_msg", "to_numpy", "kind"),
    [
        (cv.numpy_to_pose, cv.pose_to_numpy, Pose),
        (numpy_to_transform, cv.transform_to_numpy, Transform),
    ],
)
def test_poses_round_trip(to_msg, to_numpy, kind):
    for R in random_rotations()[:5]:
        p = RNG.normal(size=3)
        msg = to_msg(R, p)
        assert isinstance(msg, kind)
        R_back, p_back = to_numpy(msg)
        np.testing.assert_allclose(R_back, R, atol=1e-12)
        np.testing.assert_array_equal(p_back, p)


def test_imu_orientation():
    R = random_rotations()[0]
    msg = Imu(orientation=cv.rotation_to_quaternion(R))
    np.testing.assert_allclose(cv.imu_to_rotation(msg), R, atol=1e-12)
    msg.orientation_covariance[0] = -1.0
    with pytest.raises(ConversionError, match="imu carries no orientation"):
        cv.imu_to_rotation(msg)
    with pytest.raises(ConversionError, match="has length 0, not 1"):
        cv.imu_to_rotation(Imu(orientation=Quaternion(w=0.0)))


def test_doubles_round_trip_in_the_form_that_setters_take_as_it_is():
    values = RNG.normal(size=(3, 4))
    field = cv.numpy_to_doubles(values.T)  # not contiguous
    assert isinstance(field, array.array)
    assert field.typecode == "d"
    np.testing.assert_array_equal(np.array(field).reshape(4, 3), values.T)


def test_joint_state():
    names = ["a", "b"]
    msg = cv.numpy_to_joint_state(
        names, [1, 2], effort=np.array([3.0, 4.0]), stamp=Time(sec=7)
    )
    assert isinstance(msg, JointState)
    assert (list(msg.name), list(msg.position), list(msg.velocity)) == (
        names,
        [1.0, 2.0],
        [],
    )
    assert list(msg.effort) == [3.0, 4.0]
    assert msg.header.stamp.sec == 7
    again = cv.numpy_to_joint_state(names, [5, 6], out=msg)
    assert again is msg
    assert list(again.position) == [5.0, 6.0]
    assert list(again.effort) == []
