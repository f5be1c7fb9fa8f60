"""The ellipsoid of a covariance, and an arrow."""

import numpy as np
from builtin_interfaces.msg import Time
from visualization_msgs.msg import Marker

from com_ros.conversions import point_to_numpy, quaternion_to_rotation
from com_ros.markers import MarkerMaker

RED = (1.0, 0.0, 0.0, 1.0)


def test_ellipsoid():
    rng = np.random.default_rng(1)
    maker = MarkerMaker()
    maker.set_header("base", Time())
    for _ in range(20):
        A = rng.normal(size=(3, 3))
        covariance = A @ A.T
        marker = maker.ellipsoid("e", [1, 2, 3], covariance, 3.0, RED)
        R = quaternion_to_rotation(marker.pose.orientation)
        half = np.array([marker.scale.x, marker.scale.y, marker.scale.z]) / 2.0
        np.testing.assert_allclose(
            R @ np.diag((half / 3.0) ** 2) @ R.T, covariance, atol=1e-9
        )
        assert np.linalg.det(R) > 0.9
    assert (marker.type, marker.header.frame_id) == (Marker.SPHERE, "base")
    np.testing.assert_array_equal(point_to_numpy(marker.pose.position), [1, 2, 3])


def test_an_ellipsoid_is_never_without_size():
    marker = MarkerMaker().ellipsoid(
        "e", np.zeros(3), np.diag([1.0, 0.0, -1e-20]), 3.0, RED
    )
    assert min(marker.scale.x, marker.scale.y, marker.scale.z) > 0.0


def test_arrow():
    marker = MarkerMaker().arrow("a", [1, 0, 0], [0, 0, 2], 0.1, RED)
    assert marker.type == Marker.ARROW
    ends = [point_to_numpy(p) for p in marker.points]
    np.testing.assert_array_equal(ends, [[1, 0, 0], [1, 0, 2]])
