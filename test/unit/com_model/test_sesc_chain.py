"""The chain itself: its points, its links and its parameters."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from com_model import RobotModel, Sesc, link_poses
from com_model.bodies import PRISMATIC
from com_model.dynamics.kinematics import body_poses

ROBOTS = [
    "talos_data/robots/talos_full_v2.urdf",
    "pr2_description/urdf/pr2.urdf",
    "tiago_description/robots/tiago_dual.urdf",
]


@pytest.mark.parametrize("name", ROBOTS)
def test_the_chain_ends_in_the_com(name, example_models):
    model, rng = example_models[name], np.random.default_rng(0)
    sesc, q = Sesc(model), rng.uniform(-2, 2, model.n_joints)
    R, p = Rotation.random(random_state=rng).as_matrix(), rng.normal(size=3)
    points = sesc.chain(q, R, p)
    assert points.shape == (len(sesc.chain_links) + 1, 3)
    np.testing.assert_array_equal(points[0], p)
    np.testing.assert_allclose(points[-1], sesc.com(q, R, p), atol=1e-13)


@pytest.mark.parametrize("name", ROBOTS)
def test_steps_turn_with_their_links(name, example_models):
    model, rng = example_models[name], np.random.default_rng(1)
    sesc, q = Sesc(model), rng.uniform(-2, 2, model.n_joints)
    R, _ = link_poses(model, q)
    steps, parameters = np.diff(sesc.chain(q), axis=0), sesc.parameters_at(q)
    for link, step, r in zip(sesc.chain_links, steps, parameters, strict=True):
        np.testing.assert_allclose(step, R[model.link_index(link)] @ r, atol=1e-13)


def test_parameters_of_the_arm_by_hand(load):
    sesc = Sesc(load("arm"))
    assert sesc.chain_links == ("base", "forearm")
    np.testing.assert_allclose(
        sesc.parameters, [[(2 * 0.1 + 1.0) / 3, 0, 0], [0.5 / 3, 0, 0]]
    )
    np.testing.assert_allclose(
        sesc.chain([0.0]), [[0, 0, 0], [0.4, 0, 0], [0.4 + 0.5 / 3, 0, 0]]
    )


def test_a_sliding_joint_lengthens_its_parents_step(load):
    sesc = Sesc(load("slider"))
    np.testing.assert_allclose(sesc.parameters[0], [0.5, 0, 0], atol=1e-16)
    np.testing.assert_allclose(
        sesc.parameters_at([0.3, 0.0])[0], [0.5 - 0.075, 0, 0], atol=1e-16
    )


def test_parameters_at_zero_count_the_followers_offsets(load):
    sesc = Sesc(load("telescope"))
    assert sesc.chain_links == ("ground", "mast", "stage_1", "stage_2")
    np.testing.assert_allclose(sesc.parameters[1], [0.25, 0, 0], atol=1e-16)
    np.testing.assert_allclose(sesc.parameters[2], [0.1 / 4, 0, 0], atol=1e-16)
    np.testing.assert_allclose(sesc.parameters, sesc.parameters_at([0.0, 0.0]))


@pytest.mark.parametrize("name", ROBOTS)
def test_only_sliding_joints_change_the_parameters(name, example_models):
    model = example_models[name]
    sesc, bodies = Sesc(model), model.bodies
    slides = set(bodies.q_index[bodies.joint_type == PRISMATIC].tolist())
    q = np.random.default_rng(2).uniform(-2, 2, model.n_joints)
    q[list(slides)] = 0.0
    np.testing.assert_array_equal(sesc.parameters_at(q), sesc.parameters)


def test_link_moments_come_back_from_the_parameters(example_models):
    """m_k c_k = M r_k - sum over the children of M_j d_j."""
    model = example_models["talos_data/robots/talos_full_v2.urdf"]
    bodies, moments = model.bodies, model.mass * Sesc(model).parameters
    for j in range(1, bodies.count):
        moments[bodies.parent[j]] -= bodies.subtree_mass[j] * bodies.d[j]
    np.testing.assert_allclose(moments, bodies.first_moment, atol=1e-13 * model.mass)


def test_parameters_are_read_only(load):
    sesc = Sesc(load("arm"))
    with pytest.raises(ValueError, match="read-only"):
        sesc.parameters[0, 0] = 1.0
    sesc.parameters_at([0.0])[0, 0] = 1.0
    assert sesc.parameters[0, 0] == pytest.approx(0.4)


def test_not_a_number_stays_in_the_limb(load):
    sesc = Sesc(load("gripper"))
    points = sesc.chain([0.1, np.nan])
    assert sesc.chain_links[:2] == ("palm", "thumb")
    assert np.isfinite(points[:3]).all()
    assert np.isnan(points[-1]).any()


def branched_tree(rng, count):
    """A robot of `count` revolute joints, each on any link before it."""
    links = "".join(
        f"""<link name="l{k}"><inertial>
        <origin xyz="{_text(rng)}"/><mass value="{rng.uniform(1, 3)}"/>
        <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>"""
        for k in range(count + 1)
    )
    joints = "".join(
        f"""<joint name="j{k}" type="continuous"><parent link="l{rng.integers(k)}"/>
        <child link="l{k}"/><origin xyz="{_text(rng)}" rpy="{_text(rng)}"/>
        <axis xyz="{_text(rng)}"/></joint>"""
        for k in range(1, count + 1)
    )
    return RobotModel.from_urdf(f'<robot name="r">{links}{joints}</robot>')


def _text(rng):
    return " ".join(map(str, rng.uniform(-1, 1, 3)))


@pytest.mark.parametrize("seed", range(20))
def test_cottons_recursion_is_exact_with_backtracking_but_his_jacobian_is_not(seed):
    """[Cotton] eq. 5 and 9 over the links in a row, going back over each branch's joints.

    Eq. 5: every step along the row counts with the masses of all links after it. Eq. 9: the
    rotation of every link is the product of all before it, of which only A_j depends on q_j.
    """
    rng = np.random.default_rng(seed)
    model = branched_tree(rng, 7)
    bodies, q = model.bodies, rng.uniform(-3, 3, 7)
    after = np.cumsum(bodies.mass[::-1])[::-1]
    moments = bodies.first_moment.copy()
    for k in range(1, bodies.count):
        back = k - 1
        while back != bodies.parent[k]:
            moments[bodies.parent[back]] -= after[k] * bodies.d[back]
            back = bodies.parent[back]
        moments[back] += after[k] * bodies.d[k]
    sesc = Sesc(model)
    np.testing.assert_allclose(moments / model.mass, sesc.parameters, atol=2e-15)

    R, _ = body_poses(bodies, q)
    points = np.einsum("kij,kj->ki", R, sesc.parameters)
    com, jacobian = sesc.com_and_jacobian(q)
    np.testing.assert_allclose(points.sum(axis=0), com, atol=2e-15)
    for j in range(1, bodies.count):
        axis = R[j] @ bodies.axis[j]
        true, column = (
            jacobian[:, bodies.q_index[j]],
            np.cross(axis, points[j:].sum(axis=0)),
        )
        last = bodies.subtree_end[j] == bodies.count
        assert np.allclose(column, true, atol=1e-14) == last
        of_subtree = points[j : bodies.subtree_end[j]].sum(axis=0)
        np.testing.assert_allclose(np.cross(axis, of_subtree), true, atol=1e-14)
