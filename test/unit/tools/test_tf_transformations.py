"""tf_transformations of this environment (the real one or the thin one) against scipy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.transform import Rotation

tf_transformations = pytest.importorskip("tf_transformations")


@pytest.fixture(params=range(8))
def rotation(request):
    return Rotation.random(random_state=request.param)


def same_rotation(quaternion, rotation):
    """Quaternions q and -q are the same rotation."""
    expected = rotation.as_quat()
    return np.isclose(abs(np.dot(quaternion, expected)), 1.0, atol=1e-12)


def test_quaternions_are_x_y_z_w():
    assert_allclose(tf_transformations.quaternion_from_euler(0, 0, 0), [0, 0, 0, 1])
    assert_allclose(
        tf_transformations.quaternion_from_euler(np.pi, 0, 0), [1, 0, 0, 0], atol=1e-15
    )


def test_euler_angles_are_roll_pitch_yaw_about_fixed_axes(rotation):
    roll, pitch, yaw = rotation.as_euler("xyz")
    assert same_rotation(
        tf_transformations.quaternion_from_euler(roll, pitch, yaw), rotation
    )
    assert_allclose(
        tf_transformations.euler_from_quaternion(rotation.as_quat()), [roll, pitch, yaw]
    )


def test_axes_argument_names_another_convention(rotation):
    yaw, pitch, roll = rotation.as_euler("ZYX")
    quaternion = tf_transformations.quaternion_from_euler(yaw, pitch, roll, "rzyx")
    assert same_rotation(quaternion, rotation)
    assert_allclose(
        tf_transformations.euler_from_quaternion(quaternion, "rzyx"), [yaw, pitch, roll]
    )


def test_euler_angles_of_a_matrix(rotation):
    angles = rotation.as_euler("xyz")
    assert_allclose(tf_transformations.euler_from_matrix(rotation.as_matrix()), angles)
    matrix = tf_transformations.quaternion_matrix(rotation.as_quat())
    assert_allclose(tf_transformations.euler_from_matrix(matrix), angles)


def test_matrix_is_homogeneous_and_ignores_the_length_of_the_quaternion(rotation):
    expected = np.eye(4)
    expected[:3, :3] = rotation.as_matrix()
    assert_allclose(
        tf_transformations.quaternion_matrix(rotation.as_quat()), expected, atol=1e-14
    )
    assert_allclose(
        tf_transformations.quaternion_matrix(3.0 * rotation.as_quat()),
        expected,
        atol=1e-14,
    )


def test_quaternion_from_matrix_ignores_translation(rotation):
    matrix = np.eye(4)
    matrix[:3, :3] = rotation.as_matrix()
    matrix[:3, 3] = [1.0, -2.0, 3.0]
    assert same_rotation(tf_transformations.quaternion_from_matrix(matrix), rotation)


def test_product_applies_its_second_argument_first(rotation):
    other = Rotation.random(random_state=99)
    product = tf_transformations.quaternion_multiply(
        rotation.as_quat(), other.as_quat()
    )
    assert same_rotation(product, rotation * other)


def test_inverse_and_conjugate(rotation):
    quaternion = 2.0 * rotation.as_quat()
    x, y, z, w = quaternion
    inverse = tf_transformations.quaternion_inverse(quaternion)
    assert_allclose(
        tf_transformations.quaternion_conjugate(quaternion), [-x, -y, -z, w]
    )
    assert_allclose(
        tf_transformations.quaternion_multiply(inverse, quaternion),
        [0, 0, 0, 1],
        atol=1e-14,
    )
