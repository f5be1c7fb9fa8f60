"""Statics linear in masses and first moments, against Pinocchio and inverse dynamics."""

from pathlib import Path

import numpy as np
import pinocchio
import pytest

from com_identification.regression.statics import Statics
from com_model import RobotModel, link_poses
from com_model.dynamics.inverse_dynamics import Dynamics
from com_model.dynamics.kinematics import body_poses

DATA = Path(__file__).resolve().parents[2] / "data"
TINY = ["arm", "slider", "telescope", "gripper", "floating"]


@pytest.fixture(params=["hoap2", *TINY])
def statics(request, hoap2):
    if request.param == "hoap2":
        return Statics(hoap2[0])
    return Statics(RobotModel.from_file(DATA / f"{request.param}.urdf"))


@pytest.fixture
def samples(statics):
    """Q (5, n), a (5, 3): gravity from any side."""
    rng = np.random.default_rng(1)
    up = rng.normal(size=(5, 3))
    up /= np.linalg.norm(up, axis=1)[:, None]
    return rng.uniform(-1, 1, (5, statics.model.n_joints)), 9.81 * up


def test_poses_are_those_of_the_kinematics(statics, samples):
    poses = statics.poses(samples[0])
    for i, q in enumerate(samples[0]):
        R, p = body_poses(statics.bodies, q)
        np.testing.assert_allclose(poses.R[i], R, atol=1e-14)
        np.testing.assert_allclose(poses.p[i], p, atol=1e-14)
    links = list(range(statics.model.n_links))
    R, p = statics.link_frames(poses, links)
    np.testing.assert_allclose(
        R[0], link_poses(statics.model, samples[0][0])[0], atol=1e-14
    )
    np.testing.assert_allclose(
        p[0], link_poses(statics.model, samples[0][0])[1], atol=1e-14
    )


def test_wrench_and_torques_are_those_of_inverse_dynamics_at_rest(statics, samples):
    Q, a = samples
    poses, dynamics = statics.poses(Q), Dynamics(statics.model)
    wrench = statics.root_wrench(poses, a) @ statics.parameters
    torque = statics.torques(poses, a) @ statics.parameters
    still, nothing = np.zeros(statics.model.n_joints), np.zeros(3)
    for i, q in enumerate(Q):
        expected = dynamics.inverse_dynamics(
            (q, still, still), (nothing, nothing, a[i])
        )
        np.testing.assert_allclose(wrench[i], expected[0], atol=1e-12)
        np.testing.assert_allclose(torque[i], expected[1], atol=1e-12)
    # ... for any parameters, and with or without the columns.
    theta = np.random.default_rng(2).normal(size=statics.parameters.shape)
    by_columns = (
        statics.root_wrench(poses, a) @ theta,
        statics.torques(poses, a) @ theta,
    )
    direct = statics.wrench_and_torques(poses, a, theta)
    np.testing.assert_allclose(direct[0], by_columns[0], atol=1e-11)
    np.testing.assert_allclose(direct[1], by_columns[1], atol=1e-11)


def test_first_moment_is_pinocchios_static_regressor(hoap2):
    model, _ = hoap2
    statics, oracle = Statics(model), pinocchio.buildModelFromXML(model.xml)
    place = [oracle.joints[oracle.getJointId(name)].idx_q for name in model.joint_names]
    order = [oracle.getJointId(name) - 1 for name in model.bodies.joint_names[1:]]
    rng = np.random.default_rng(3)
    for _ in range(5):
        q, full = rng.uniform(model.lower, model.upper), pinocchio.neutral(oracle)
        full[place] = q
        regressor = pinocchio.computeStaticRegressor(oracle, oracle.createData(), full)
        # Pinocchio has no columns for the fixed root body; its own are over the mass.
        theirs = np.concatenate(
            [regressor[:, 4 * j : 4 * j + 4] for j in order], axis=1
        )
        moving = sum(inertia.mass for inertia in list(oracle.inertias)[1:])
        ours = statics.first_moment(statics.poses(q[None]))[0][:, 4:]
        np.testing.assert_allclose(ours / moving, theirs, atol=1e-13)


def test_torques_are_pinocchios_joint_torque_regressor_at_rest(hoap2):
    model, _ = hoap2
    statics, oracle = Statics(model), pinocchio.buildModelFromXML(model.xml)
    place = [oracle.joints[oracle.getJointId(name)].idx_q for name in model.joint_names]
    q, full = model.neutral + 0.1, pinocchio.neutral(oracle)
    full[place] = q
    still = np.zeros(oracle.nv)
    regressor = pinocchio.computeJointTorqueRegressor(
        oracle, oracle.createData(), full, still, still
    )
    order = [oracle.getJointId(name) - 1 for name in model.bodies.joint_names[1:]]
    theirs = np.concatenate([regressor[:, 10 * j : 10 * j + 4] for j in order], axis=1)[
        place
    ]
    ours = statics.torques(statics.poses(q[None]), np.array([[0.0, 0.0, 9.81]]))[0][
        :, 4:
    ]
    np.testing.assert_allclose(ours, theirs, atol=1e-12)


def test_contacts_bring_what_their_jacobian_says(statics, samples):
    """Virtual work: J_link^T w, by finite differences of the link's pose."""
    q, step = samples[0][0], 1e-6
    link = statics.model.n_links - 1
    root, joints = statics.contact_maps(statics.poses(q[None]), [link])
    R, p = link_poses(statics.model, q)
    jacobian = np.empty((6, len(q)))
    for j in range(len(q)):
        there = [
            link_poses(statics.model, q + s * step * np.eye(len(q))[j]) for s in (1, -1)
        ]
        move = R[link].T @ (there[0][1][link] - there[1][1][link]) / (2 * step)
        turn = R[link].T @ (there[0][0][link] - there[1][0][link]) / (2 * step)
        jacobian[:, j] = [*move, turn[2, 1], turn[0, 2], turn[1, 0]]
    np.testing.assert_allclose(joints[0, 0], jacobian.T, atol=1e-8)
    w = np.arange(1.0, 7.0)
    force, moment = R[link] @ w[:3], R[link] @ w[3:]
    expected = np.concatenate((force, np.cross(p[link], force) + moment))
    np.testing.assert_allclose(root[0, 0] @ w, expected, atol=1e-12)
    carries = statics.carried_feet([link])[:, 0]
    np.testing.assert_array_equal(np.abs(jacobian).max(axis=0) > 1e-9, carries)


def test_bodies_are_called_by_their_heaviest_link(hoap2):
    labels = Statics(hoap2[0]).labels
    assert labels[0] == "BODY1", "the root link base_link has no mass"
    assert "LLEG4" in labels
