"""Link poses by hand, against Pinocchio, and what every pose must keep."""

import numpy as np
import pinocchio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from com_model import ComModelError, ShapeError, UnknownNameError, link_pose, link_poses
from com_model.geometry.rotations import rotations_about

ROBOTS = [
    "talos_data/robots/talos_full_v2.urdf",
    "icub_description/robots/icub.urdf",
    "anymal_c_simple_description/urdf/anymal.urdf",
    "tiago_description/robots/tiago_dual.urdf",  # mimic joints, wheels
    "pr2_description/urdf/pr2.urdf",  # prismatic, continuous, mimic
    "romeo_description/urdf/romeo.urdf",  # mimic fingers
    "panda_description/urdf/panda.urdf",
    "hextilt_description/urdf/hextilt_flying_arm_5.urdf",
]


def rotations():
    angles = st.floats(-4.0, 4.0)
    return st.tuples(angles, angles, angles).map(
        lambda v: Rotation.from_rotvec(v).as_matrix()
    )


def test_arm_by_hand(load):
    R, p = link_poses(load("arm"), [np.pi / 2])
    np.testing.assert_allclose(R[1], [[0, -1, 0], [1, 0, 0], [0, 0, 1]], atol=1e-15)
    np.testing.assert_array_equal(p, [[0, 0, 0], [1, 0, 0]])


def test_slider_by_hand(load):
    R, p = link_poses(load("slider"), [0.5, np.pi / 2])
    np.testing.assert_allclose(p[1], [1.5, 0, 0], atol=1e-15)
    np.testing.assert_allclose(p[2], [1.5, 0, 0], atol=1e-15)
    np.testing.assert_allclose(R[2], [[0, 0, 1], [1, 0, 0], [0, 1, 0]], atol=1e-15)


def test_gripper_followers_by_hand(load):
    model, q = load("gripper"), 0.25
    R, p = link_poses(model, [0.0, q])
    angles = np.cumsum([q, 2 * q + 0.1, -2 * q + 0.2])
    for link, angle in zip(("finger_1", "finger_2", "finger_3"), angles, strict=True):
        x_axis = R[model.link_index(link)][:, 0]
        np.testing.assert_allclose(
            x_axis, [np.cos(angle), np.sin(angle), 0], atol=1e-15
        )
    knuckle = 0.2 * (np.exp(1j * angles[0]) + np.exp(1j * angles[1]))
    np.testing.assert_allclose(p[-1], [knuckle.real, knuckle.imag, 0], atol=1e-15)


def test_fixed_links_ride_along(load):
    model = load("floating")
    R, p = link_pose(model, [np.pi / 2, 0.0], "sensor")
    np.testing.assert_allclose(p, [-0.4, 0.1, -0.1], atol=1e-15)
    np.testing.assert_allclose(R, [[0, 0, 1], [1, 0, 0], [0, 1, 0]], atol=1e-15)


@pytest.mark.parametrize("name", ROBOTS)
def test_poses_are_pinocchios(name, example_urdfs, example_models, pinocchio_q):
    model = example_models[name]
    oracle = pinocchio.buildModelFromUrdf(str(example_urdfs[name]))
    data = oracle.createData()
    rng = np.random.default_rng(1)
    for _ in range(5):
        q = rng.uniform(-3.0, 3.0, model.n_joints)
        pinocchio.framesForwardKinematics(oracle, data, pinocchio_q(model, oracle, q))
        R, p = link_poses(model, q)
        for i, link in enumerate(model.link_names):
            frame = data.oMf[oracle.getFrameId(link, pinocchio.FrameType.BODY)]
            np.testing.assert_allclose(R[i], frame.rotation, atol=1e-13)
            np.testing.assert_allclose(p[i], frame.translation, atol=1e-13)


@settings(max_examples=30, deadline=None)
@given(R=rotations(), seed=st.integers(0, 2**32 - 1))
def test_a_moved_root_moves_all_links_alike(R, seed, example_models):
    model = example_models["pr2_description/urdf/pr2.urdf"]
    rng = np.random.default_rng(seed)
    q, shift = rng.uniform(-3, 3, model.n_joints), rng.normal(size=3)
    R_root, p_root = link_poses(model, q)
    R_world, p_world = link_poses(model, q, R, shift)
    np.testing.assert_allclose(R_world, R @ R_root, atol=1e-13)
    np.testing.assert_allclose(p_world, p_root @ R.T + shift, atol=1e-13)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_rotations_stay_proper(seed, example_models):
    model = example_models["talos_data/robots/talos_full_v2.urdf"]
    q = np.random.default_rng(seed).uniform(-100, 100, model.n_joints)
    R, _ = link_poses(model, q)
    np.testing.assert_allclose(
        R @ R.transpose(0, 2, 1), np.tile(np.eye(3), (len(R), 1, 1)), atol=1e-13
    )
    np.testing.assert_allclose(np.linalg.det(R), 1.0, atol=1e-13)


@given(v=st.tuples(*[st.floats(-3, 3)] * 3), angle=st.floats(-50, 50))
def test_rotations_about_axes_are_scipys(v, angle):
    length = np.linalg.norm(v)
    axis = np.array(v) / length if length > 1e-3 else np.array([0.0, 0.0, 1.0])
    expected = Rotation.from_rotvec(axis * angle).as_matrix()
    np.testing.assert_allclose(
        rotations_about(axis[None], np.array([angle]))[0], expected, atol=1e-13
    )


def test_small_turns_keep_their_digits():
    R = rotations_about(np.array([[0.0, 0.0, 1.0]]), np.array([1e-9]))[0]
    assert R[1, 0] == 1e-9


def test_a_robot_without_joints_has_poses(example_models):
    model = example_models["hector_description/robots/quadrotor_base.urdf"]
    R, p = link_poses(model, [], None, [1, 2, 3])
    assert (R.shape, p.tolist()) == ((1, 3, 3), [[1, 2, 3]])


def test_nan_stays_below_its_joint(load):
    R, p = link_poses(load("gripper"), [0.1, np.nan])
    assert np.isfinite(R[:2]).all()
    assert np.isnan(R[2:]).any(axis=(1, 2)).all()
    assert np.isfinite(p[:2]).all()
    assert np.isnan(p[2:]).any(axis=1).all()


def test_results_are_fresh_and_inputs_untouched(load):
    model, q, R0 = load("arm"), np.array([0.3]), np.eye(3)
    R, p = link_poses(model, q, R0)
    R[:], p[:] = np.nan, np.nan
    assert (q.tolist(), R0.tolist()) == ([0.3], np.eye(3).tolist())
    assert np.isfinite(link_poses(model, q, R0)[0]).all()


def test_wrong_arguments_say_what_is_expected(load):
    model = load("arm")
    with pytest.raises(
        ShapeError, match=r"q: expected shape \(1,\), got \(2,\). The joints are sho"
    ):
        link_poses(model, [0, 0])
    with pytest.raises(
        ShapeError, match=r"p_world_root: expected shape \(3,\), got \(2,\)"
    ):
        link_poses(model, [0], None, [0, 0])
    with pytest.raises(
        ShapeError, match=r"R_world_root: expected shape \(3, 3\), got \(3,\)"
    ):
        link_poses(model, [0], [0, 0, 0])
    for wrong in (np.diag([1, 1, -1]), 2 * np.eye(3), np.full((3, 3), np.nan)):
        with pytest.raises(ComModelError, match="R_world_root is not a rotation"):
            link_poses(model, [0], wrong)
    with pytest.raises(UnknownNameError, match="no link 'hand'; valid: base, forearm"):
        link_pose(model, [0], "hand")
