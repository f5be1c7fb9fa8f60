"""Centre of mass and Jacobian: by hand, textbook, Pinocchio and differences; arguments."""

import threading
from functools import partial

import numpy as np
import pinocchio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from com_model import ComModelError, RobotModel, Sesc, ShapeError
from com_model.bodies import PRISMATIC

TOYS = ["arm", "slider", "gripper", "telescope", "floating"]
ROBOTS = [
    "talos_data/robots/talos_full_v2.urdf",
    "icub_description/robots/icub.urdf",
    "anymal_c_simple_description/urdf/anymal.urdf",
    "pr2_description/urdf/pr2.urdf",  # prismatic, continuous, mimic
    "romeo_description/urdf/romeo.urdf",  # mimic fingers
    "hextilt_description/urdf/hextilt_flying_arm_5.urdf",
]
BRICK = (
    '<robot name="brick"><link name="brick">'
    '<inertial><origin xyz="1 2 3"/><mass value="4"/></inertial></link></robot>'
)


def random_pose(rng):
    return Rotation.random(random_state=rng).as_matrix(), rng.normal(size=3)


def reach(model):
    """A length to measure errors by: all the way along all joints, m."""
    return 1.0 + np.linalg.norm(model.bodies.d, axis=1).sum()


def textbook_com(model, q, R=None, p=None):
    """Sum of m_k T_k c_k over M, with 4 x 4 matrices from the root to each body."""
    bodies, poses = model.bodies, []
    total = np.zeros(4)
    for b in range(bodies.count):
        T = np.eye(4)
        if b == 0:
            T[:3, :3] = np.eye(3) if R is None else R
            T[:3, 3] = np.zeros(3) if p is None else p
        else:
            s = bodies.multiplier[b] * q[bodies.q_index[b]] + bodies.offset[b]
            move = np.eye(4)
            if bodies.joint_type[b] == PRISMATIC:
                move[:3, 3] = s * bodies.axis[b]
            else:
                move[:3, :3] = Rotation.from_rotvec(s * bodies.axis[b]).as_matrix()
            T[:3, :3], T[:3, 3] = bodies.R[b], bodies.d[b]
            T = poses[bodies.parent[b]] @ T @ move
        poses.append(T)
        total += T @ np.append(bodies.first_moment[b], bodies.mass[b])
    return total[:3] / total[3]


def differences(function, x, step=1e-6):
    """Central differences of a function of x (m,), a column each."""
    steps = step * np.eye(len(x))
    columns = [(function(x + e) - function(x - e)) / (2.0 * step) for e in steps]
    return np.array(columns).reshape(len(x), -1).T


@pytest.fixture
def example(example_models, load):
    """example(name): a robot of example-robot-data, or a toy of test/data."""
    return lambda name: load(name) if name in TOYS else example_models[name]


def test_arm_by_hand(load):
    q = np.array([0.6])
    com, jacobian = Sesc(load("arm")).com_and_jacobian(q)
    np.testing.assert_allclose(
        com, [0.4 + np.cos(0.6) / 6, np.sin(0.6) / 6, 0], atol=1e-16
    )
    np.testing.assert_allclose(
        jacobian[:, 0], [-np.sin(0.6) / 6, np.cos(0.6) / 6, 0], atol=1e-16
    )


def test_prismatic_by_hand(load):
    com, jacobian = Sesc(load("slider")).com_and_jacobian(np.array([0.3, 1.0]))
    np.testing.assert_allclose(com, [0.5 - 0.3 / 4, 0, 0], atol=1e-16)
    np.testing.assert_allclose(jacobian, [[-0.25, 0], [0, 0], [0, 0]], atol=1e-16)


def test_mimic_by_hand(load):
    thumb, q = 0.4, 0.25
    a1, a2, a3 = np.cumsum([q, 2 * q + 0.1, -2 * q + 0.2])
    e1, e2, e3 = (np.exp(1j * a) for a in (a1, a2, a3))
    com = 0.1 * (0.1 * e1 + (0.2 * e1 + 0.1 * e2) + (0.2 * e1 + 0.2 * e2 + 0.1 * e3))
    com = (com + 0.2 * 0.1j * np.exp(1j * thumb)) / 1.5
    # angles grow by 1, 3, 1 per unit
    slope = 0.1j * (0.5 * e1 + 3 * 0.3 * e2 + 0.1 * e3) / 1.5
    found, jacobian = Sesc(load("gripper")).com_and_jacobian(np.array([thumb, q]))
    np.testing.assert_allclose(found, [com.real, com.imag, 0], atol=1e-16)
    np.testing.assert_allclose(jacobian[:, 1], [slope.real, slope.imag, 0], atol=1e-16)


def test_prismatic_mimic_by_hand(load):
    a, s = 0.7, 0.4
    com, jacobian = Sesc(load("telescope")).com_and_jacobian(np.array([a, s]))
    np.testing.assert_allclose(
        com, [0.25 * np.cos(a), 0.25 * np.sin(a), 0.625 * s + 0.025], atol=1e-16
    )
    np.testing.assert_allclose(
        jacobian,
        [[-0.25 * np.sin(a), 0], [0.25 * np.cos(a), 0], [0, 0.625]],
        atol=1e-16,
    )


def test_a_single_rigid_body():
    sesc, (R, p) = (
        Sesc(RobotModel.from_urdf(BRICK)),
        random_pose(np.random.default_rng(0)),
    )
    com, jacobian = sesc.com_and_jacobian([], R, p, floating=True)
    np.testing.assert_allclose(com, p + R @ [1, 2, 3], atol=1e-15)
    assert jacobian.shape == (3, 6)
    assert sesc.com_and_jacobian([])[1].shape == (3, 0)
    np.testing.assert_array_equal(sesc.com_batch(np.zeros((3, 0))), [[1, 2, 3]] * 3)


@pytest.mark.parametrize("name", [*TOYS, *ROBOTS])
def test_com_is_the_textbooks(name, example):
    model, rng = example(name), np.random.default_rng(2)
    sesc = Sesc(model)
    for _ in range(5):
        q, (R, p) = rng.uniform(-4, 4, model.n_joints), random_pose(rng)
        tolerance = 1e-15 * reach(model)
        np.testing.assert_allclose(
            sesc.com(q), textbook_com(model, q), rtol=0, atol=tolerance
        )
        np.testing.assert_allclose(
            sesc.com(q, R, p), textbook_com(model, q, R, p), rtol=0, atol=2 * tolerance
        )


def test_com_and_jacobian_are_pinocchios(example_models, example_urdfs, pinocchio_q):
    rng = np.random.default_rng(3)
    for name, model in example_models.items():
        oracle = pinocchio.buildModelFromUrdf(
            str(example_urdfs[name]), pinocchio.JointModelFreeFlyer()
        )
        data, bodies, sesc = oracle.createData(), model.bodies, Sesc(model)
        q, (R, p) = rng.uniform(-3, 3, model.n_joints), random_pose(rng)
        position = pinocchio_q(model, oracle, q)
        position[:3], position[3:7] = p, Rotation.from_matrix(R).as_quat()
        columns = pinocchio.jacobianCenterOfMass(oracle, data, position)
        expected = np.zeros((3, 6 + model.n_joints))
        expected[:, :3], expected[:, 3:6] = columns[:, :3] @ R.T, columns[:, 3:6] @ R.T
        for b in range(1, bodies.count):
            joint = oracle.joints[oracle.getJointId(bodies.joint_names[b])]
            column = bodies.multiplier[b] * columns[:, joint.idx_v]
            expected[:, 6 + bodies.q_index[b]] += column
        com, jacobian = sesc.com_and_jacobian(q, R, p, floating=True)
        tolerance = 1e-14 * reach(model)
        np.testing.assert_allclose(
            com, data.com[0], rtol=0, atol=tolerance, err_msg=name
        )
        np.testing.assert_allclose(
            jacobian, expected, rtol=0, atol=tolerance, err_msg=name
        )
        fixed = sesc.com_and_jacobian(q, R, p)
        np.testing.assert_array_equal(fixed[0], com)
        np.testing.assert_array_equal(fixed[1], jacobian[:, 6:])
        np.testing.assert_array_equal(sesc.com(q, R, p), com)
    assert len(example_models) > 60


@pytest.mark.parametrize("name", [*TOYS, *ROBOTS])
def test_jacobian_is_the_slope_of_the_com(name, example):
    model, rng = example(name), np.random.default_rng(4)
    sesc, q, (R, p) = Sesc(model), rng.uniform(-3, 3, model.n_joints), random_pose(rng)

    def moved(x):
        return sesc.com(
            q + x[6:], Rotation.from_rotvec(x[3:6]).as_matrix() @ R, p + x[:3]
        )

    slope = differences(moved, np.zeros(6 + model.n_joints))
    jacobian = sesc.com_and_jacobian(q, R, p, floating=True)[1]
    np.testing.assert_allclose(jacobian, slope, rtol=0, atol=1e-8 * reach(model))


@pytest.mark.parametrize("name", ["telescope", "pr2_description/urdf/pr2.urdf"])
def test_velocity_is_the_com_in_time(name, example):
    model, rng = example(name), np.random.default_rng(5)
    sesc, n = Sesc(model), model.n_joints
    q, qd, (R, p), (v, w) = (
        *rng.uniform(-2, 2, (2, n)),
        random_pose(rng),
        rng.normal(size=(2, 3)),
    )

    def com_at(t):
        R_t = Rotation.from_rotvec(t[0] * w).as_matrix() @ R
        return sesc.com(q + t[0] * qd, R_t, p + t[0] * v)

    velocity = sesc.com_velocity(q, qd, R, p, v, w)
    slope = differences(com_at, np.zeros(1))[:, 0]
    np.testing.assert_allclose(velocity, slope, rtol=0, atol=1e-7 * reach(model))
    still = sesc.com_velocity(q, qd)
    np.testing.assert_allclose(still, sesc.com_and_jacobian(q)[1] @ qd, atol=1e-14)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_moved_root_moves_the_com_alike(seed, example_models):
    rng = np.random.default_rng(seed)
    model = example_models["pr2_description/urdf/pr2.urdf"]
    sesc, q = Sesc(model), rng.uniform(-10, 10, model.n_joints)
    (R, p), (R_more, p_more) = random_pose(rng), random_pose(rng)
    com, jacobian = sesc.com_and_jacobian(q, R, p)
    moved, turned = sesc.com_and_jacobian(q, R_more @ R, R_more @ p + p_more)
    np.testing.assert_allclose(moved, R_more @ com + p_more, atol=1e-13)
    np.testing.assert_allclose(turned, R_more @ jacobian, atol=1e-13)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), turns=st.integers(-1000, 1000))
def test_full_turns_change_nothing(seed, turns, example_models):
    model = example_models["icub_description/robots/icub.urdf"]
    sesc, q = Sesc(model), np.random.default_rng(seed).uniform(-3, 3, model.n_joints)
    np.testing.assert_allclose(sesc.com(q + 2 * np.pi * turns), sesc.com(q), atol=2e-12)


def test_angles_beyond_the_polynomials_range(load):
    sesc = Sesc(load("arm"))
    for q in (1.0e5, 1.0e5 + 1.0, -3.0e7, 1.0e15):
        com = [0.4 + np.cos(q) / 6, np.sin(q) / 6, 0]
        np.testing.assert_allclose(sesc.com([q]), com, atol=1e-15)
        np.testing.assert_allclose(sesc.com_batch([[0.1], [q]])[1], com, atol=1e-15)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_not_a_number_gives_no_number(bad, example):
    model = example("icub_description/robots/icub.urdf")
    sesc = Sesc(model)
    for j in range(model.n_joints):
        q = np.zeros(model.n_joints)
        q[j] = bad
        com, jacobian = sesc.com_and_jacobian(q)
        assert np.isnan(com).all()
        assert np.isnan(jacobian).any()
        assert np.isnan(sesc.chain(q)[-1]).all()


def test_a_pose_of_nan(example):
    model = example("arm")
    assert np.isnan(Sesc(model).com([0.0], p_world_root=[0, np.nan, 0])[1])
    with pytest.raises(ComModelError, match="R_world_root is not a rotation"):
        Sesc(model).com([0.0], np.full((3, 3), np.nan))


@pytest.mark.parametrize(
    "convert",
    [
        list,
        tuple,
        lambda q: q.astype(">f8"),
        lambda q: np.stack([q, q], axis=1)[:, 0],
        lambda q: q[::-1].copy()[::-1],
        lambda q: np.frombuffer(q.tobytes()),  # read-only
    ],
    ids=["list", "tuple", "big endian", "strided", "reversed", "read-only"],
)
def test_any_array_of_numbers_will_do(convert, example):
    model = example("icub_description/robots/icub.urdf")
    sesc, rng = Sesc(model), np.random.default_rng(6)
    q, (R, p) = rng.uniform(-2, 2, model.n_joints), random_pose(rng)
    expected = sesc.com_and_jacobian(q, R, p, floating=True)
    found = sesc.com_and_jacobian(
        convert(q), [list(row) for row in R], list(p), floating=True
    )
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(found[1], expected[1])
    strided = sesc.com_and_jacobian(
        convert(q), R.T.copy().T, np.tile(p, (2, 1)).T[:, 0], floating=True
    )
    np.testing.assert_array_equal(strided[1], expected[1])


def test_whole_numbers_and_single_precision(load):
    sesc = Sesc(load("arm"))
    np.testing.assert_array_equal(sesc.com(np.array([2])), sesc.com([2.0]))
    np.testing.assert_array_equal(
        sesc.com(np.array([2.0], np.float32)), sesc.com([2.0])
    )


@pytest.mark.parametrize(
    "q", [[0.0], np.zeros(3), np.zeros((2, 1)), np.zeros((1, 2)), 1.0, None]
)
def test_wrong_shapes_are_told_with_the_joints(q, load):
    sesc = Sesc(load("slider"))
    for call in (
        sesc.com,
        sesc.com_and_jacobian,
        partial(sesc.com_and_jacobian, floating=True),
        sesc.chain,
    ):
        with pytest.raises(
            ShapeError, match=r"^q: expected shape \(2,\), got .*slide.*roll"
        ):
            call(q)
    with pytest.raises(ShapeError, match=r"^qd: expected shape \(2,\)"):
        sesc.com_velocity(np.zeros(2), q)


def test_wrong_poses_are_told(load):
    sesc, q = Sesc(load("arm")), np.zeros(1)
    with pytest.raises(
        ShapeError, match=r"^R_world_root: expected shape \(3, 3\), got \(4, 4\)"
    ):
        sesc.com_and_jacobian(q, np.eye(4))
    with pytest.raises(
        ShapeError, match=r"^p_world_root: expected shape \(3,\), got \(3, 1\)"
    ):
        sesc.com(q, p_world_root=np.zeros((3, 1)))
    with pytest.raises(
        ShapeError, match=r"^w_world_root: expected shape \(3,\), got \(2,\)"
    ):
        sesc.com_velocity(q, q, w_world_root=[0, 1])
    for R in (2 * np.eye(3), -np.eye(3), np.ones((3, 3))):
        with pytest.raises(ComModelError, match=r"^R_world_root is not a rotation"):
            sesc.com_and_jacobian(q, R, floating=True)


def test_results_are_fresh_and_arguments_kept(load):
    sesc, q = Sesc(load("slider")), np.array([0.3, 0.4])
    first, slope = sesc.com_and_jacobian(q)
    com, jacobian = first.copy(), slope.copy()
    first[:], slope[:] = 7.0, 7.0
    np.testing.assert_array_equal(sesc.com(q), com)
    np.testing.assert_array_equal(sesc.com_and_jacobian(q)[1], jacobian)
    np.testing.assert_array_equal(q, [0.3, 0.4])


def test_a_pose_does_not_stay(load):
    sesc, q = Sesc(load("arm")), np.zeros(1)
    before = sesc.com_and_jacobian(q, floating=True)
    sesc.com(q, *random_pose(np.random.default_rng(7)))
    after = sesc.com_and_jacobian(q, floating=True)
    np.testing.assert_array_equal(before[0], after[0])
    np.testing.assert_array_equal(before[1], after[1])


def test_threads_may_share_one(example):
    model = example("talos_data/robots/talos_full_v2.urdf")
    sesc, rng = Sesc(model), np.random.default_rng(8)
    Q = rng.uniform(-2, 2, (4, model.n_joints))
    expected = [sesc.com(q) for q in Q]
    wrong = []

    def work(i):
        if any((sesc.com(Q[i]) != expected[i]).any() for _ in range(2000)):
            wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
