"""Many configurations at once: the same as one by one, whatever their number and the threads."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from com_model import ComModelError, Sesc, ShapeError
from com_model.sesc.batch_kernels import BLOCK

pytestmark = pytest.mark.slow

ROBOTS = [
    "talos_data/robots/talos_full_v2.urdf",
    "pr2_description/urdf/pr2.urdf",  # prismatic, continuous, mimic
    "romeo_description/urdf/romeo.urdf",  # mimic
    "ur_description/urdf/ur5_robot.urdf",
]
COUNTS = [1, 2, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 5]


@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("count", COUNTS)
def test_as_one_by_one(name, count, example_models):
    model, rng = example_models[name], np.random.default_rng(count)
    sesc, Q = Sesc(model), rng.uniform(-4, 4, (count, model.n_joints))
    com, jacobian = sesc.com_and_jacobian_batch(Q)
    assert com.shape == (count, 3)
    assert jacobian.shape == (count, 3, model.n_joints)
    np.testing.assert_array_equal(sesc.com_batch(Q), com)
    for q, c, J in zip(Q, com, jacobian, strict=True):
        expected = sesc.com_and_jacobian(q)
        np.testing.assert_allclose(c, expected[0], rtol=0, atol=1e-15)
        np.testing.assert_allclose(J, expected[1], rtol=0, atol=1e-15)


@pytest.mark.parametrize("threads", [2, 3, 50])
def test_threads_change_no_bit(threads, example_models):
    model, rng = example_models[ROBOTS[0]], np.random.default_rng(0)
    sesc, Q = Sesc(model), rng.uniform(-4, 4, (20 * BLOCK + 7, model.n_joints))
    for alone, shared in zip(
        sesc.com_and_jacobian_batch(Q),
        sesc.com_and_jacobian_batch(Q, threads),
        strict=True,
    ):
        np.testing.assert_array_equal(shared, alone)
    np.testing.assert_array_equal(sesc.com_batch(Q, threads), sesc.com_batch(Q))


def test_with_a_pose(example_models):
    model, rng = example_models[ROBOTS[1]], np.random.default_rng(1)
    sesc, Q = Sesc(model), rng.uniform(-2, 2, (5, model.n_joints))
    R, p = Rotation.random(random_state=rng).as_matrix(), rng.normal(size=3)
    com, jacobian = sesc.com_and_jacobian_batch(Q, R_world_root=R, p_world_root=p)
    expected = sesc.com_and_jacobian(Q[3], R, p)
    np.testing.assert_allclose(com[3], expected[0], atol=1e-15)
    np.testing.assert_allclose(jacobian[3], expected[1], atol=1e-15)
    np.testing.assert_array_equal(sesc.com_batch(Q, 2, R, p), com)


def test_none_at_all(example_models):
    model = example_models[ROBOTS[0]]
    sesc, Q = Sesc(model), np.zeros((0, model.n_joints))
    com, jacobian = sesc.com_and_jacobian_batch(Q, threads=4)
    assert com.shape == (0, 3)
    assert jacobian.shape == (0, 3, model.n_joints)


def test_not_a_number_stays_in_its_row(example_models):
    model = example_models[ROBOTS[0]]
    Q = np.zeros((BLOCK + 3, model.n_joints))
    Q[4, 2] = np.nan
    Q[BLOCK + 2, 0] = np.inf
    bad = np.isnan(Sesc(model).com_batch(Q)).all(axis=1)
    assert np.flatnonzero(bad).tolist() == [4, BLOCK + 2]
    assert np.isfinite(Sesc(model).com_batch(Q)[~bad]).all()


def test_any_layout_will_do(example_models):
    model = example_models[ROBOTS[0]]
    sesc = Sesc(model)
    Q = np.random.default_rng(2).uniform(-2, 2, (9, model.n_joints))
    expected = sesc.com_and_jacobian_batch(Q)[1]
    for same in (
        Q.tolist(),
        np.asfortranarray(Q),
        np.repeat(Q, 2, axis=1)[:, ::2],
        Q[::-1][::-1],
    ):
        np.testing.assert_array_equal(sesc.com_and_jacobian_batch(same)[1], expected)


def test_wrong_arguments_are_told(load):
    sesc = Sesc(load("slider"))
    for Q in (np.zeros(2), np.zeros((4, 3)), np.zeros((1, 1, 2))):
        with pytest.raises(
            ShapeError, match=r"^Q: expected shape \(any, 2\), got .*slide, roll"
        ):
            sesc.com_batch(Q)
    for threads in (0, -1, 1.5, "2"):
        with pytest.raises(
            ComModelError, match="threads: expected a whole number from 1 up"
        ):
            sesc.com_and_jacobian_batch(np.zeros((1, 2)), threads)
    with pytest.raises(ComModelError, match="R_world_root is not a rotation"):
        sesc.com_batch(np.zeros((1, 2)), R_world_root=np.zeros((3, 3)))
