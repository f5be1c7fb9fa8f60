import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from com_model.geometry import vector_kernels
from com_model.geometry.rotations import (
    minimal_rotation,
    rotation_from_rpy,
    rotation_vector,
    rotation_vectors,
    rotations_about,
    rpy_from_rotation,
    skew,
)

pytestmark = pytest.mark.slow

coordinate = st.floats(-10.0, 10.0)
vector = st.tuples(coordinate, coordinate, coordinate).map(np.array)
direction = vector.filter(lambda v: np.linalg.norm(v) > 1e-3).map(
    lambda v: v / np.linalg.norm(v)
)


@given(vector, vector)
def test_skew_is_the_vector_product(v, w):
    np.testing.assert_allclose(skew(v) @ w, np.cross(v, w), atol=1e-13)


near_half_pi = st.floats(-1e-6, 1e-6).map(lambda x: np.pi / 2 + x)


@given(coordinate, st.one_of(coordinate, near_half_pi), coordinate)
def test_rpy_from_rotation_is_the_inverse_at_any_pitch(roll, pitch, yaw):
    R = rotation_from_rpy([roll, pitch, yaw])
    np.testing.assert_allclose(
        rotation_from_rpy(rpy_from_rotation(R)), R, rtol=0, atol=1e-14
    )


@given(vector)
def test_rotations_about_are_scipys(v):
    angle = np.linalg.norm(v)
    axis = v / angle if angle > 0.0 else v
    expected = Rotation.from_rotvec(v).as_matrix()
    np.testing.assert_allclose(
        rotations_about(axis[None], np.array([angle]))[0], expected, atol=1e-14
    )


@given(direction, st.floats(0.0, np.pi))
def test_rotation_vector_is_the_inverse(axis, angle):
    R = Rotation.from_rotvec(axis * angle).as_matrix()
    back = rotation_vector(R)
    again = Rotation.from_rotvec(back).as_matrix()
    np.testing.assert_allclose(again, R, atol=1e-8 if angle > 3.1 else 1e-14)
    assert np.linalg.norm(back) == pytest.approx(angle, abs=1e-7)


@given(st.lists(vector, min_size=1, max_size=5))
def test_rotation_vectors_are_scipys(vectors):
    turns = [v for v in vectors if np.linalg.norm(v) < 3.0] + [np.zeros(3)]
    found = rotation_vectors(Rotation.from_rotvec(turns).as_matrix())
    np.testing.assert_allclose(found, turns, atol=1e-13)


def test_rotation_vector_of_nan_is_nan():
    assert np.isnan(rotation_vector(np.full((3, 3), np.nan))).all()


@given(direction, direction)
def test_minimal_rotation_turns_no_further_than_needed(a, b):
    R = minimal_rotation(a, b)
    np.testing.assert_allclose(R @ a, b, atol=1e-14)
    np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-14)
    angle = np.linalg.norm(rotation_vector(R))
    assert angle == pytest.approx(
        2.0 * np.arctan2(*map(np.linalg.norm, (b - a, a + b))), abs=1e-7
    )


@pytest.mark.parametrize("tilt", [0.0, 1e-15, 1e-12, 1e-8, 1e-4, 1.5, np.pi / 2])
@pytest.mark.parametrize("axis", np.eye(3))
def test_minimal_rotation_of_nearly_opposite_vectors(axis, tilt):
    side = np.roll(axis, 1)
    end = -np.cos(tilt) * axis + np.sin(tilt) * side
    R = minimal_rotation(axis, end)
    np.testing.assert_allclose(R @ axis, end, atol=2e-14)
    np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-14)
    assert np.linalg.det(R) == pytest.approx(1.0)


def test_minimal_rotation_of_one_vector_to_itself_is_exactly_none():
    assert np.array_equal(
        minimal_rotation(np.array([0, 0, 1.0]), np.array([0, 0, 1.0])), np.eye(3)
    )


@settings(deadline=None)
@given(direction, st.floats(-7.0, 7.0), vector)
def test_compiled_twins_agree(axis, angle, v):
    R, product, crossed = np.empty((3, 3)), np.empty((3, 3)), np.empty(3)
    expected = rotations_about(axis[None], np.array([angle]))[0]
    vector_kernels.set_rotation(axis, angle, R)
    np.testing.assert_allclose(R, expected, atol=1e-15)
    vector_kernels.set_product(R, R, product)
    np.testing.assert_allclose(product, R @ R, atol=1e-15)
    vector_kernels.set_cross(axis, v, crossed)
    np.testing.assert_allclose(crossed, np.cross(axis, v), atol=1e-13)
    turned = vector_kernels.rotate(tuple(axis), np.cos(angle), np.sin(angle), tuple(v))
    np.testing.assert_allclose(turned, expected @ v, atol=1e-13)
    np.testing.assert_allclose(
        vector_kernels.cross(tuple(axis), tuple(v)), crossed, atol=1e-13
    )


def test_a_zero_axis_turns_nothing():
    assert np.array_equal(
        rotations_about(np.zeros((1, 3)), np.array([0.3]))[0], np.eye(3)
    )
