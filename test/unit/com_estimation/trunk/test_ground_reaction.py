"""Ground reaction: against Pinocchio's contact dynamics, statics, finite differences."""

from xml.etree import ElementTree

import numpy as np
import pinocchio as pin
import pytest

from com_estimation.trunk.ground_reaction import (
    LegGeometry,
    sensor_forces,
    torque_forces,
)
from com_model import RobotModel, quadruped_legs

UP = np.array([0.0, 0.0, 1.0])


@pytest.fixture
def geometry(heavy_quadruped):
    model, config = heavy_quadruped
    return LegGeometry(model, quadruped_legs(model, config))


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def posture(heavy_quadruped, rng):
    model, config = heavy_quadruped
    return config.nominal_posture(model) + rng.uniform(-0.3, 0.3, model.n_joints)


def tilted(rng):
    up = UP + rng.uniform(-0.3, 0.3, 3)
    return up / np.linalg.norm(up)


def test_contact_points_are_the_bottoms_of_the_balls(geometry, heavy_quadruped):
    model, _ = heavy_quadruped
    points = geometry.contacts(np.zeros(model.n_joints), UP).points
    expected = [
        (x, y, -0.88)
        for x, y in [(0.5, 0.35), (0.5, -0.35), (-0.5, 0.35), (-0.5, -0.35)]
    ]
    np.testing.assert_allclose(points, expected, atol=1e-15)


def test_jacobians_are_those_of_the_material_point(geometry, heavy_quadruped, rng):
    """The touching point is fixed to the foot: its rate, not that of the bottom of the ball."""
    model, config = heavy_quadruped
    data_model = pin.buildModelFromXML(model.xml)
    data = data_model.createData()
    q, up = posture(heavy_quadruped, rng), tilted(rng)
    contacts = geometry.contacts(q, up)
    order = [
        data_model.joints[data_model.getJointId(n)].idx_q for n in model.joint_names
    ]
    qp = np.empty(model.n_joints)
    qp[order] = q
    pin.computeJointJacobians(data_model, data, qp)
    pin.updateFramePlacements(data_model, data)
    for leg, point, J in zip(
        quadruped_legs(model, config), contacts.points, contacts.jacobians, strict=True
    ):
        frame = data_model.getFrameId(leg.foot.frame)
        ball = data.oMf[frame].translation
        np.testing.assert_allclose(point, ball - 0.03 * up, atol=1e-14)
        full = pin.getFrameJacobian(data_model, data, frame, pin.LOCAL_WORLD_ALIGNED)
        at_point = full[:3] - pin.skew(point - ball) @ full[3:]
        np.testing.assert_allclose(
            J, at_point[:, [order[j] for j in leg.joints]], atol=1e-14
        )


def test_a_knee_may_slide(pointed_quadruped):
    """Shanks that slide along z: finite differences of the feet, which are points here."""
    model, config = pointed_quadruped
    model = RobotModel.from_urdf(slide_knees(model.xml))
    assert model.joint_types.count("prismatic") == 4
    legs = quadruped_legs(model, config)
    geometry = LegGeometry(model, legs)
    q = np.tile([0.1, 0.6, -0.2], 4)
    found = geometry.contacts(q, UP).jacobians
    for i, leg in enumerate(legs):
        for column, joint in enumerate(leg.joints):
            step = 1e-6 * np.eye(12)[joint]
            ends = [geometry.contacts(q + s, UP).points[i] for s in (step, -step)]
            expected = (ends[0] - ends[1]) / 2e-6
            np.testing.assert_allclose(found[i, :, column], expected, atol=1e-9)


def slide_knees(xml):
    root = ElementTree.fromstring(xml)
    for joint in root.iter("joint"):
        if joint.get("name").endswith("_kfe"):
            joint.set("type", "prismatic")
            joint.find("axis").set("xyz", "0 0 1")
    return ElementTree.tostring(root, encoding="unicode")


def test_a_standing_robot_with_massless_legs_is_carried_by_its_feet(geometry):
    """Torques by virtual work: for feet that push up the actuators must push down."""
    J = geometry.contacts(np.tile([0.1, 0.6, -1.2], 4), UP).jacobians
    forces = np.array(
        [[3.0, -2.0, 250.0], [0.0, 0.0, 0.0], [1.0, 5.0, 240.0], [0.0, 9.0, 30.0]]
    )
    torques = -np.einsum("lji,lj->li", J, forces)  # -J^T f
    found = torque_forces(J, torques)
    np.testing.assert_allclose(found.forces, forces, atol=1e-10)
    assert found.method == "torque"
    assert found.problems == ()
    assert not found.contact.any()


def test_with_the_legs_dynamics_the_force_on_a_foot_of_heavy_legs_is_exact(
    geometry, heavy_quadruped, rng
):
    """Pinocchio, floating base, arbitrary motion and forces: tau = ID - J^T f."""
    model, config = heavy_quadruped
    pm = pin.buildModelFromXML(model.xml, pin.JointModelFreeFlyer())
    data = pm.createData()
    legs = quadruped_legs(model, config)
    q, up = posture(heavy_quadruped, rng), tilted(rng)
    contacts = geometry.contacts(q, up)
    rows = np.array([[pm.joints[pm.getJointId(n)].idx_v for n in model.joint_names]])[0]
    qp, v, a = pin.neutral(pm), rng.normal(size=pm.nv), rng.normal(size=pm.nv)
    qp[rows + 1] = q
    free = pin.rnea(pm, data, qp, v, a)[rows]
    forces = rng.normal(size=(4, 3)) * 100.0
    efforts = np.stack(
        [free[leg.joints] - J.T @ f
         for leg, J, f in zip(legs, contacts.jacobians, forces, strict=True)]
    )  # fmt: skip
    leg_torques = np.stack([free[leg.joints] for leg in legs])
    found = torque_forces(contacts.jacobians, efforts, leg_torques)
    np.testing.assert_allclose(found.forces, forces, atol=1e-9)
    assert found.method == "inverse_dynamics"
    light = torque_forces(contacts.jacobians, efforts)
    assert np.abs(light.forces - forces).max() > 10.0  # what massless legs miss


def test_deviations_are_those_of_a_sample(geometry, rng):
    J = geometry.contacts(np.tile([0.1, 0.6, -1.2], 4), UP).jacobians
    torques = rng.normal(size=(4, 3)) * 50.0
    found = torque_forces(J, torques)
    spread = np.sqrt((0.02 * torques) ** 2 + 0.25)
    draws = [
        torque_forces(J, torques + spread * rng.normal(size=(4, 3))).forces
        for _ in range(4000)
    ]
    np.testing.assert_allclose(np.std(draws, axis=0), found.std, rtol=0.06)
    for leg in range(4):
        sample = np.cov(np.array(draws)[:, leg].T)
        np.testing.assert_allclose(
            found.covariance[leg], sample, atol=0.1 * np.trace(sample), rtol=0.1
        )


@pytest.mark.parametrize("knee", [0.0, 0.005])
def test_a_straight_leg_tells_no_force_and_says_why(geometry, knee):
    q = np.tile([0.1, 0.6, -1.2], 4)
    q[3:6] = 0.1, 0.0, knee  # second leg of the URDF: left_front
    found = torque_forces(geometry.contacts(q, UP).jacobians, np.full((4, 3), 10.0))
    assert np.isnan(found.forces[0]).all()
    assert np.isnan(found.std[0]).all()
    assert np.isfinite(found.forces[1:]).all()
    (problem,) = found.problems
    assert problem.startswith(
        "left_front: the leg is nearly straight (condition number "
    )
    assert problem.endswith("bend its knee")


def test_a_missing_effort_or_position_leaves_the_other_legs_alone(geometry):
    q = np.tile([0.1, 0.6, -1.2], 4)
    q[0] = np.nan  # right_hind
    efforts = np.full((4, 3), 10.0)
    efforts[1, 2] = np.nan  # right_front
    found = torque_forces(geometry.contacts(q, UP).jacobians, efforts)
    np.testing.assert_array_equal(np.isnan(found.forces).all(axis=1), [0, 1, 0, 1])
    np.testing.assert_array_equal(np.isnan(found.forces).any(axis=1), [0, 1, 0, 1])
    assert found.problems == (
        "right_front: not all efforts are known: check effort in joint_states",
        "right_hind: joint positions are not known",
    )


def test_sensors_give_the_force_with_its_noise():
    measured = np.array(
        [[1.0, 2.0, -30.0], [0.0, 50.0, 400.0], [np.nan] * 3, [0.0, 0.0, 0.0]]
    )
    found = sensor_forces(measured)
    np.testing.assert_array_equal(found.forces, measured)
    assert np.isnan(found.std[2]).all()
    np.testing.assert_allclose(
        found.std[1], [1.0, np.hypot(1.0, 1.0), np.hypot(8.0, 1.0)]
    )
    np.testing.assert_allclose(found.covariance[1], np.diag(found.std[1] ** 2))
    assert found.method == "sensor"
