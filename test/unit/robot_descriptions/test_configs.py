"""Every configuration against the robot that it is for: names, limits, soles, stability."""

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import numpy as np
import pinocchio
import pytest
from scipy.spatial import ConvexHull

from com_model import RobotConfig, RobotModel

PACKAGE = Path(__file__).resolve().parents[3] / "src" / "robot_descriptions"
CONFIGS = sorted(p for p in (PACKAGE / "config").glob("*.yaml") if p.stem != "any")
EXAMPLES = "cmeel.prefix/share/example-robot-data/robots"
ROBOTS = [
    ("hoap2", None),
    ("hoap3", None),
    ("biped3", None),
    ("scalf2", None),
    ("scalf2_heavy", None),
    ("itu_biped", None),
    ("talos", "talos_data/robots/talos_reduced.urdf"),
    ("talos", "talos_data/robots/talos_reduced_corrected.urdf"),
    ("talos", "talos_data/robots/talos_reduced_box.urdf"),
    ("talos", "talos_data/robots/talos_full_v2.urdf"),
    ("talos", "talos_data/robots/talos_full_v2_box.urdf"),
    ("icub", "icub_description/robots/icub.urdf"),
    ("icub", "icub_description/robots/icub_reduced.urdf"),
    ("romeo", "romeo_description/urdf/romeo.urdf"),
    ("romeo", "romeo_description/urdf/romeo_small.urdf"),
    ("anymal", "anymal_b_simple_description/robots/anymal.urdf"),
    ("anymal_c", "anymal_c_simple_description/urdf/anymal.urdf"),
    ("solo12", "solo_description/robots/solo12.urdf"),
    ("solo8", "solo_description/robots/solo.urdf"),
    ("a1", "a1_description/urdf/a1.urdf"),
    ("go1", "go1_description/urdf/go1.urdf"),
    ("go2", "go2_description/urdf/go2.urdf"),
    ("b1", "b1_description/urdf/b1.urdf"),
    ("laikago", "laikago_description/urdf/laikago.urdf"),
    ("hyq", "hyq_description/robots/hyq_no_sensors.urdf"),
    ("g1", "g1_description/urdf/g1_29dof_rev_1_0.urdf"),
    ("alexander", "alexander_description/urdf/alexander_v1.lowerBodyOnly.urdf"),
    ("b1-z1", "b1_description/urdf/b1-z1.urdf"),
    ("bolt", "bolt_description/robots/bolt.urdf"),
    ("human", "human_description/robots/human.urdf"),
    ("simple_humanoid", "simple_humanoid_description/urdf/simple_humanoid.urdf"),
]
IDS = [f"{name}-{Path(urdf).stem}" if urdf else name for name, urdf in ROBOTS]
LEAST_MARGIN = 0.03  # m, of the centre of mass inside the support polygon
MOST_STEP = 5e-4  # m, between the lowest and the highest point of the soles
STEPS = {
    "simple_humanoid": 1e-3
}  # its limits leave a choice between level soles and bent knees


def load_config(name):
    return RobotConfig.from_file(PACKAGE / "config" / f"{name}.yaml")


def urdf_of(name, urdf):
    if urdf is None:
        return load_config(name).urdf
    try:
        path = Path(
            str(distribution("example-robot-data").locate_file(f"{EXAMPLES}/{urdf}"))
        )
    except PackageNotFoundError:
        pytest.skip("example-robot-data is not installed")
    if not path.is_file():
        pytest.skip(f"this example-robot-data has no {urdf}")
    return path


@pytest.fixture(params=ROBOTS, ids=IDS)
def robot(request):
    """The configuration, com_model's model, and Pinocchio in the nominal posture as the oracle."""
    config, path = load_config(request.param[0]), urdf_of(*request.param)
    model = pinocchio.buildModelFromUrdf(str(path), pinocchio.JointModelFreeFlyer())
    data, q = model.createData(), pinocchio.neutral(model)
    ours = RobotModel.from_file(path)
    for name, position in zip(
        ours.joint_names, config.nominal_posture(ours), strict=True
    ):
        joint = model.joints[model.getJointId(name)]
        q[joint.idx_q] = position  # revolute and prismatic only: one number a joint
        assert joint.nq == 1
    pinocchio.framesForwardKinematics(model, data, q)
    return config, ours, (model, data, q)


def frame_of(foot, model, data):
    """Pose of a foot's frame in the root's axes, by its link where the URDF does not have it."""
    if foot.mount is None:
        return data.oMf[model.getFrameId(foot.frame)]
    place = pinocchio.SE3(
        pinocchio.rpy.rpyToMatrix(*foot.mount.rpy), np.array(foot.mount.xyz)
    )
    return data.oMf[model.getFrameId(foot.mount.link)] * place


def upright(config, model, data):
    """Axes of the ground in the root's: those of the first sole; point feet: the root's own."""
    foot = config.feet[0]
    return frame_of(foot, model, data).rotation if len(foot.corners) else np.eye(3)


def sole_corners(config, model, data):
    """The points (m, 3) on which the robot stands, in axes of the ground."""
    R = upright(config, model, data)
    points = []
    for foot in config.feet:
        pose = frame_of(foot, model, data)
        if len(foot.corners):
            points += [pose.act(np.array([*corner, 0.0])) for corner in foot.corners]
        else:
            points.append(pose.act(foot.center) - foot.radius * R[:, 2])
    return np.array(points) @ R


def test_there_is_a_robot_for_every_config():
    assert {path.stem for path in CONFIGS} == {name for name, _ in ROBOTS}


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_names_itself_after_its_file(path):
    config = RobotConfig.from_file(path)
    assert config.name == path.stem
    # Only a robot whose URDF ships with the package says where it is.
    assert (config.urdf is not None) == (
        PACKAGE / "urdf" / f"{path.stem}.urdf"
    ).exists()


def test_names_exist_and_groups_do_not_overlap(robot):
    config, ours, _ = robot
    config.attach(ours)
    assert config.root_link == ours.root_link
    grouped = [joint for joints in config.joint_groups.values() for joint in joints]
    assert len(grouped) == len(set(grouped))


def test_posture_is_inside_the_limits(robot):
    config, ours, _ = robot
    for name, position in config.posture.items():
        i = ours.joint_index(name)
        assert ours.lower[i] <= position <= ours.upper[i], name


def test_soles_are_level_and_side_by_side(robot):
    config, _, (model, data, _) = robot
    heights = sole_corners(config, model, data)[:, 2]
    assert np.ptp(heights) < STEPS.get(config.name, MOST_STEP)
    R = upright(config, model, data)
    if config.name != "human":  # whose root has its y axis upwards
        assert R[2, 2] > 0.9999, "z of a sole frame is out of the ground"
    for foot in config.feet:
        pose = frame_of(foot, model, data)
        if len(foot.corners):
            assert pose.rotation[:, 2] @ R[:, 2] > 0.9999, "soles are parallel"
    sides = [foot.side for foot in config.feet]
    assert sides.count("left") == sides.count("right") == len(sides) // 2


def test_stands_with_a_margin(robot, record_property):
    config, _, (model, data, q) = robot
    com = pinocchio.centerOfMass(model, data, q) @ upright(config, model, data)
    points = sole_corners(config, model, data)[:, :2]
    if config.name == "bolt":  # two point feet: above the line between them
        across = np.array([[0.0, 1.0], [-1.0, 0.0]]) @ (points[1] - points[0])
        assert abs(across @ (com[:2] - points[0])) / np.linalg.norm(across) < 0.001
        return
    hull = ConvexHull(points)
    margin = -float(np.max(hull.equations[:, :2] @ com[:2] + hull.equations[:, 2]))
    record_property("margin_mm", round(1e3 * margin, 1))
    print(
        f"{config.name}: centre of mass {1e3 * margin:.1f} mm inside the support polygon"
    )
    assert margin > LEAST_MARGIN


def test_every_servo_has_all_gains(robot):
    config, ours, _ = robot
    for name in ours.joint_names:
        gains = config.servo.gains(name)
        assert gains.stiffness > 0, name
        assert gains.damping > 0, name
        assert gains.armature > 0, name


def test_any_claims_nothing():
    config = load_config("any")
    assert (config.feet, config.root_link, config.imu_link, config.posture) == (
        (),
        None,
        None,
        {},
    )
