"""Robots of the suite and of example-robot-data against the configurations that people wrote."""

from importlib.metadata import distribution
from pathlib import Path

import numpy as np
import pytest

from com_model import RobotConfig, RobotModel
from com_model.checks.config_check import check_config
from com_model.dynamics.kinematics import link_poses
from com_model.setup import describe, to_yaml

ROBOTS = Path(__file__).resolve().parents[4] / "src" / "robot_descriptions"
COLLECTION = {
    "a1": "a1_description/urdf/a1.urdf",
    "anymal_c": "anymal_c_simple_description/urdf/anymal.urdf",
    "go1": "go1_description/urdf/go1.urdf",
    "hyq": "hyq_description/robots/hyq_no_sensors.urdf",
    "icub": "icub_description/robots/icub.urdf",
    "laikago": "laikago_description/urdf/laikago.urdf",
    "romeo": "romeo_description/urdf/romeo.urdf",
    "solo12": "solo_description/robots/solo12.urdf",
    "talos": "talos_data/robots/talos_reduced.urdf",
}
OWN = ("hoap2", "hoap3", "itu_biped", "scalf2")


def urdf_of(name):
    if name in OWN:
        return ROBOTS / "urdf" / f"{name}.urdf"
    files = distribution("example-robot-data").files or []
    path = next(f for f in files if str(f).endswith(f"robots/{COLLECTION[name]}"))
    return Path(path.locate()).resolve()


@pytest.fixture(scope="module", params=[*OWN, *COLLECTION])
def robot(request):
    """What is found of a robot, and its configuration, with the model that has its feet."""
    path = urdf_of(request.param)
    config = RobotConfig.from_file(ROBOTS / "config" / f"{request.param}.yaml")
    model = RobotModel.from_file(path)
    return describe(model, path), config, config.attach(model)


def bottoms(model, config):
    """Lowest points and up directions of the configured feet in the neutral posture, by side."""
    R, p = link_poses(model, model.neutral)
    for foot in config.feet:
        i = model.link_index(foot.frame)
        yield (foot.side, foot.end), R[i], p[i] + R[i] @ foot.center, foot


def test_it_passes_the_checks_of_configurations(robot, tmp_path):
    setup, _, _ = robot
    file = tmp_path / "robot.yaml"
    file.write_text(to_yaml(setup))
    config = RobotConfig.from_file(file)
    issues = check_config(setup.model, config)
    assert not [
        str(issue) for issue in issues if issue.element.startswith(("feet", "posture"))
    ]


def test_kind_and_root(robot):
    setup, config, _ = robot
    assert setup.limbs.kind == ("humanoid" if len(config.feet) == 2 else "quadruped")
    assert setup.model.root_link == config.root_link


def test_legs(robot):
    setup, config, _ = robot
    for name, joints in config.joint_groups.items():
        if name.endswith("_leg"):
            assert setup.limbs.groups[name] == joints


def test_arms(robot):
    setup, config, _ = robot
    for name in ("left_arm", "right_arm"):
        if name in config.joint_groups:
            assert set(setup.limbs.groups[name]) >= set(config.joint_groups[name])


def test_soles_within_5_mm_and_1_degree(robot):
    setup, config, model = robot
    R, p = link_poses(setup.model, setup.model.neutral)
    found = {(foot.leg.side, foot.leg.end): foot for foot in setup.feet}
    for place, R_true, p_true, foot in bottoms(model, config):
        sole = found[place].sole
        i = setup.model.link_index(sole.link)
        R_sole, p_sole = R[i] @ sole.R, R[i] @ sole.p + p[i]
        if len(foot.corners):
            up = R_true[:, 2]
            assert abs(up @ (p_sole - p_true)) < 0.005
            assert up @ R_sole[:, 2] > np.cos(np.radians(1.0))
            size = np.ptp(foot.corners, axis=0)
            np.testing.assert_allclose(np.ptp(sole.corners, axis=0), size, atol=0.02)
        else:
            assert np.linalg.norm(p_sole - p_true) < 0.005
            assert sole.radius == pytest.approx(foot.radius, abs=0.003)


def test_the_soles_in_the_file_are_flat_on_one_plane(robot, tmp_path):
    """By the frames that it names, in its posture; their corners are those of the shapes."""
    setup, *_ = robot
    file = tmp_path / "robot.yaml"
    file.write_text(to_yaml(setup))
    config = RobotConfig.from_file(file)
    model = config.attach(setup.model)
    R, p = link_poses(model, config.nominal_posture(model))
    links = []
    for found, foot in zip(setup.feet, config.feet, strict=True):
        i = model.link_index(foot.frame)
        links.append(i)
        corners = np.column_stack([foot.corners, np.zeros(len(foot.corners))])
        at = corners @ R[i].T + p[i]
        np.testing.assert_allclose(
            at @ setup.limbs.R_root_robot, found.points[: len(at)], atol=5e-4
        )
    if setup.limbs.kind == "humanoid":
        up = R[links][:, :, 2]
        assert np.arccos(min(up[0] @ up[1], 1.0)) < 1e-3
        assert abs((p[links[0]] - p[links[1]]) @ up[0]) < 5e-4


def test_imu(robot):
    setup, config, _ = robot
    if config.imu_link is None:
        return
    assert setup.imu.link == config.imu_link


def test_its_posture_is_within_limits_and_over_the_support(robot):
    setup, *_ = robot
    q, model = setup.standing.q, setup.model
    assert (q >= model.lower).all()
    assert (q <= model.upper).all()
    assert setup.margin > 0.03
    assert not setup.standing.issues


def test_two_point_feet_are_no_support():
    files = distribution("example-robot-data").files or []
    path = next(
        f for f in files if str(f).endswith("robots/bolt_description/robots/bolt.urdf")
    )
    path = Path(path.locate()).resolve()
    setup = describe(RobotModel.from_file(path), path)
    (issue,) = [issue for key, issue in setup.issues if key == "feet"]
    assert "cannot stand without feedback" in issue
    assert not [issue for key, issue in setup.issues if key == "posture"]
    assert f"# CHECK feet: {issue}" in to_yaml(setup)
