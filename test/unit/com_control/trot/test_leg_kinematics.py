"""Inverse kinematics of legs: against the forward kinematics, finite differences and [Ding]."""

from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from baselines.ding_leg import DingLeg
from scipy.spatial.transform import Rotation

from com_control.trot.leg_kinematics import LegKinematics
from com_control.trot.trot import TrotFeedback, TrotGait
from com_model import RobotConfig, RobotModel
from com_model.dynamics.kinematics import link_pose
from com_model.exceptions import ConfigError, GeometryError, ShapeError
from com_model.legs import quadruped_legs
from com_model.robots import find_robot

ROBOTS = ["scalf2", "anymal", "anymal_c", "a1", "go2", "solo12", "hyq"]


def legs_of(robot):
    files = find_robot(robot)
    model, config = (
        RobotModel.from_file(files.urdf),
        RobotConfig.from_file(files.config),
    )
    q = config.nominal_posture(model)
    legs = quadruped_legs(model, config)
    return model, [LegKinematics(model, leg, q[leg.joints]) for leg in legs]


@pytest.mark.parametrize("robot", ROBOTS)
def test_solution_reproduces_the_angles(robot):
    _, legs = legs_of(robot)
    rng = np.random.default_rng(1)
    for leg in legs:
        for _ in range(30):
            q = leg.nominal + rng.uniform(-0.35, 0.35, 3)
            p = leg.position(q)
            solution = leg.solve(p, near=q)
            assert solution.reached
            assert not (solution.within_limits and solution.reason)
            np.testing.assert_allclose(solution.q, q, atol=1e-9)
            np.testing.assert_allclose(leg.position(solution.q), p, atol=1e-12)


@pytest.mark.parametrize("robot", ROBOTS)
def test_position_is_that_of_the_model(robot):
    model, legs = legs_of(robot)
    q = np.random.default_rng(2).uniform(-0.5, 0.5, model.n_joints)
    for leg in legs:
        foot = leg.leg.foot
        R, p = link_pose(model, q, foot.frame)
        np.testing.assert_allclose(
            leg.position(q[leg.leg.joints]), p + R @ foot.center, atol=1e-12
        )


@pytest.mark.parametrize("robot", ["scalf2", "hyq"])
def test_jacobian_is_the_derivative(robot):
    for leg in legs_of(robot)[1]:
        q, h = leg.nominal + 0.1, 1e-6
        numeric = [
            (leg.position(q + h * e) - leg.position(q - h * e)) / (2 * h)
            for e in np.eye(3)
        ]
        np.testing.assert_allclose(leg.jacobian(q), np.column_stack(numeric), atol=1e-8)
        v = np.array([0.1, -0.2, 0.3])
        np.testing.assert_allclose(leg.jacobian(q) @ leg.velocity(q, v), v, atol=1e-10)


def test_both_knees_are_found():
    leg = legs_of("scalf2")[1][0]
    p = leg.position(leg.nominal)
    other = leg.solve(p, near=[0.0, 0.6, -1.2])
    np.testing.assert_allclose(leg.position(other.q), p, atol=1e-12)
    assert np.sign(other.q[2]) == -np.sign(leg.nominal[2])
    assert not other.within_limits
    assert "lf_kfe_joint would be at" in other.reason


def test_out_of_reach_says_so_and_gives_the_nearest_point():
    leg = legs_of("scalf2")[1][0]
    p = leg.position(leg.nominal) - [0.0, 0.0, 0.5]
    solution = leg.solve(p)
    assert not solution.reached
    assert "the target of the left_front foot is" in solution.reason
    assert "reach is 0.050 to 0.850 m" in solution.reason
    away = np.linalg.norm(leg.position(solution.q) - p)
    rng = np.random.default_rng(3)
    others = [solution.q + rng.uniform(-0.1, 0.1, 3) for _ in range(200)]
    assert all(np.linalg.norm(leg.position(q) - p) >= away - 1e-9 for q in others)


def test_the_solution_is_found_from_elsewhere():
    leg = legs_of("anymal")[1][1]
    q = leg.nominal + np.array([0.1, -0.2, 0.15])
    solution = leg.solve(leg.position(q), near=leg.nominal)
    assert solution.reached
    np.testing.assert_allclose(leg.position(solution.q), leg.position(q), atol=1e-11)


def test_wrong_shape_is_refused():
    with pytest.raises(ShapeError, match="p"):
        legs_of("a1")[1][0].solve([0.0, 0.0])


@pytest.mark.parametrize("index", range(4))
def test_scalf2_is_the_leg_of_the_paper(index):
    leg = legs_of("scalf2")[1][index]
    paper = DingLeg(0.045, 0.45, 0.4, 0.057, leg.leg.lateral)
    rng = np.random.default_rng(index)
    for _ in range(20):
        q = leg.nominal + rng.uniform(-0.4, 0.4, 3)
        np.testing.assert_allclose(
            leg.position(q) - leg.leg.hip, paper.position(q), atol=1e-12
        )
        np.testing.assert_allclose(leg.jacobian(q), paper.jacobian(q), atol=1e-12)
        solved = paper.solve(paper.position(q), int(np.sign(q[2])))
        np.testing.assert_allclose(solved, q, atol=1e-9)


def test_paper_leg_tells_what_is_out_of_reach():
    with pytest.raises(GeometryError, match=r"the leg reaches 0\.050 to 0\.850 m"):
        DingLeg(0.045, 0.45, 0.4, 0.057, 1).solve([0.0, 0.057, -1.5], 1)


def planar_legs():
    """Legs of go2 whose abduction is fixed."""
    files = find_robot("go2")
    root = ElementTree.fromstring(RobotModel.from_file(files.urdf).xml)
    config = RobotConfig.from_file(files.config)
    hips = [j for j in root.iter("joint") if str(j.get("name")).endswith("_hip_joint")]
    assert len(hips) == 4
    for joint in hips:
        joint.set("type", "fixed")
    model = RobotModel.from_urdf(ElementTree.tostring(root, encoding="unicode"))
    names = model.joint_names
    groups = {k: [j for j in v if j in names] for k, v in config.joint_groups.items()}
    posture = {name: config.posture[name] for name in names}
    drives = replace(config.actuators, joints={})
    config = replace(config, posture=posture, joint_groups=groups, actuators=drives)
    q = np.array(list(posture.values()))
    with pytest.raises(ConfigError, match="only legs with 3 are supported"):
        quadruped_legs(model, config)
    legs = quadruped_legs(model, config, fewest=2)
    return model, config, [LegKinematics(model, leg, q[leg.joints]) for leg in legs]


def test_a_leg_without_abduction_keeps_to_its_plane():
    _, _, legs = planar_legs()
    rng = np.random.default_rng(2)
    for leg in legs:
        for _ in range(10):
            q = leg.nominal + rng.uniform(-0.3, 0.3, 2)
            p = leg.position(q)
            solution = leg.solve(p, near=leg.nominal)
            assert (solution.reached, solution.q.shape) == (True, (2,))
            np.testing.assert_allclose(leg.position(solution.q), p, atol=1e-12)
            aside = leg.solve(np.add(p, [0.0, 0.05, 0.0]), near=leg.nominal)
            np.testing.assert_allclose(aside.q, solution.q, atol=1e-9)
            assert "has no abduction" in aside.reason
            J = leg.jacobian(q)
            differences = np.column_stack(
                [
                    (leg.position(q + d) - leg.position(q - d)) / 2e-6
                    for d in 1e-6 * np.eye(2)
                ]
            )
            np.testing.assert_allclose(J, differences, atol=1e-8)
            speeds = leg.velocity(q, [0.1, 0.3, -0.2])
            np.testing.assert_allclose(J @ speeds, [0.1, 0.0, -0.2], atol=1e-9)


def test_a_robot_without_abduction_trots():
    model, config, _ = planar_legs()
    gait = TrotGait(model, config)
    up = Rotation.from_euler("x", 0.05).as_matrix()
    for time in np.arange(0.0, 2.0, 0.01):
        target = gait.step(time, TrotFeedback(up, (0.01, 0.01), (0.1, 0.1, 0.0)))
        assert target.problems == ()
    assert target.com_shift[0] != 0.0
    assert target.com_shift[1] == 0.0
