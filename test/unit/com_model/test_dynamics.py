"""Inverse dynamics against Pinocchio's on public robots, and what a motion's forces must obey."""

import numpy as np
import pinocchio
import pytest

from com_model import ShapeError
from com_model.dynamics.inverse_dynamics import Dynamics

G = 9.81


def test_wrench_and_torques_are_pinocchios(example_models, example_urdfs, pinocchio_q):
    rng = np.random.default_rng(5)
    for name, model in example_models.items():
        oracle = pinocchio.buildModelFromUrdf(
            str(example_urdfs[name]), pinocchio.JointModelFreeFlyer()
        )
        oracle.gravity = pinocchio.Motion.Zero()  # gravity is in the specific force
        bodies, n = model.bodies, model.n_joints
        q, qd, qdd = rng.uniform(-3, 3, n), rng.normal(size=n), rng.normal(size=n)
        omega, omega_dot, specific_force = rng.normal(size=(3, 3))
        v, a = np.zeros(oracle.nv), np.zeros(oracle.nv)
        v[3:6], a[:3], a[3:6] = omega, specific_force, omega_dot
        for b in range(1, bodies.count):
            at = oracle.joints[oracle.getJointId(bodies.joint_names[b])].idx_v
            v[at] = bodies.multiplier[b] * qd[bodies.q_index[b]]
            a[at] = bodies.multiplier[b] * qdd[bodies.q_index[b]]
        expected = pinocchio.rnea(
            oracle, oracle.createData(), pinocchio_q(model, oracle, q), v, a
        )
        torques = np.zeros(n)
        for b in range(1, bodies.count):
            at = oracle.joints[oracle.getJointId(bodies.joint_names[b])].idx_v
            torques[bodies.q_index[b]] += bodies.multiplier[b] * expected[at]

        wrench, tau = Dynamics(model).inverse_dynamics(
            (q, qd, qdd), (omega, omega_dot, specific_force)
        )

        scale = max(np.abs(expected).max(), 1e-6)
        np.testing.assert_allclose(
            wrench, expected[:6], atol=1e-11 * scale, err_msg=name
        )
        np.testing.assert_allclose(tau, torques, atol=1e-11 * scale, err_msg=name)


def test_at_rest_the_wrench_is_the_weight(load):
    model = load("arm")
    still = np.zeros((3, model.n_joints))
    up = np.array([0.0, 0.0, G])
    wrench, _ = Dynamics(model).inverse_dynamics(still, (np.zeros(3), np.zeros(3), up))
    np.testing.assert_allclose(wrench[:3], model.mass * up, rtol=1e-14)


def test_without_the_trunk_only_its_own_share_is_missing(load):
    model, rng = load("arm"), np.random.default_rng(1)
    joints, root = rng.normal(size=(3, model.n_joints)), rng.normal(size=(3, 3))
    omega, omega_dot, a = root
    whole, tau = Dynamics(model).inverse_dynamics(joints, root)
    rest, same = Dynamics(model, trunk=False).inverse_dynamics(joints, root)
    m, h, inertia = (
        model.bodies.mass[0],
        model.bodies.first_moment[0],
        model.bodies.inertia[0],
    )
    force = m * a + np.cross(omega_dot, h) + np.cross(omega, np.cross(omega, h))
    moment = inertia @ omega_dot + np.cross(omega, inertia @ omega) + np.cross(h, a)
    np.testing.assert_allclose(
        whole - rest, np.concatenate([force, moment]), atol=1e-12
    )
    np.testing.assert_array_equal(tau, same)


def test_armature_takes_its_torque(load):
    model, rng = load("arm"), np.random.default_rng(2)
    q, qd, qdd = rng.normal(size=(3, model.n_joints))
    motion = (q, qd, qdd), rng.normal(size=(3, 3))
    armature = rng.uniform(0.1, 1.0, model.n_joints)
    bare, tau = Dynamics(model).inverse_dynamics(*motion)
    wrench, driven = Dynamics(model, armature).inverse_dynamics(*motion)
    np.testing.assert_allclose(driven - tau, armature * qdd, rtol=1e-12)
    np.testing.assert_array_equal(wrench, bare)


def test_many_instants_are_as_one_by_one(load):
    model, rng = load("arm"), np.random.default_rng(3)
    joints, root = rng.normal(size=(3, 5, model.n_joints)), rng.normal(size=(3, 5, 3))
    dynamics = Dynamics(model)
    many = dynamics.root_wrenches(joints, root)
    for i in range(5):
        one, _ = dynamics.inverse_dynamics(joints[:, i], root[:, i])
        np.testing.assert_array_equal(many[i], one)
    assert dynamics.root_wrenches(joints[:, :0], root[:, :0]).shape == (0, 6)
    with pytest.raises(ShapeError, match="root"):
        dynamics.root_wrenches(joints, root[:, :4])


def test_nan_spreads(load):
    model = load("arm")
    q = np.full(model.n_joints, np.nan)
    still = np.zeros(model.n_joints)
    wrench, tau = Dynamics(model).inverse_dynamics(
        (q, still, still), np.diag([0, 0, G])
    )
    assert np.isnan(wrench).any()
    assert np.isnan(tau).any()


def test_wrong_shapes_are_refused(load):
    model = load("arm")
    still = np.zeros(model.n_joints)
    with pytest.raises(ShapeError, match="joints"):
        Dynamics(model).inverse_dynamics((still, still, still[1:]), np.zeros((3, 3)))
    with pytest.raises(ShapeError, match="root"):
        Dynamics(model).inverse_dynamics((still, still, still), np.zeros((2, 3)))
    with pytest.raises(ShapeError, match="armature"):
        Dynamics(model, np.zeros(99))
