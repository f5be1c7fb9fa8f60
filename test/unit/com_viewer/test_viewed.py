"""What the page shows besides an instant: joints in groups, links, the camera, events."""

import numpy as np
import pytest
from walker_urdf import walker_urdf

from com_estimation.whole_body.com_state import ComObserver
from com_model import ComModelError, RobotConfig, RobotModel, load_robot
from com_model.dynamics.kinematics import body_poses
from com_viewer.bag_run import BagRun
from com_viewer.camera import FOV, Window, frame_box
from com_viewer.compare import Comparison
from com_viewer.links import describe_links, link_coms
from com_viewer.panel import joint_groups, joint_ranges
from com_viewer.scene import RobotScene
from com_viewer.timeline import MAX_EVENTS, make_timeline

CORNERS = [[0.1, 0.05], [0.1, -0.05], [-0.1, -0.05], [-0.1, 0.05]]
CONFIG = {"name": "walker", "feet": {f"{s}_sole": {"corners": CORNERS} for s in "lr"}}


@pytest.fixture
def walker():
    return RobotModel.from_urdf(walker_urdf())


@pytest.mark.parametrize("aspect", [0.46, 1.0, 2.4])
@pytest.mark.parametrize("window", [Window(), Window(bottom=0.2), Window(right=0.5)])
def test_the_whole_box_is_in_the_window(aspect, window):
    low, high = np.array([-0.2, -0.4, 0.0]), np.array([0.3, 0.4, 1.7])
    position, look_at = frame_box(low, high, aspect, window)
    forwards = (look_at - position) / np.linalg.norm(look_at - position)
    right = np.cross(forwards, [0, 0, 1])
    right /= np.linalg.norm(right)
    axes = np.array([right, np.cross(right, forwards), forwards])
    corners = np.array(
        [[x, y, z] for x in (-0.2, 0.3) for y in (-0.4, 0.4) for z in (0.0, 1.7)]
    )
    x, y, depth = axes @ (corners - position).T
    x, y = x / depth / np.tan(FOV / 2) / aspect, y / depth / np.tan(FOV / 2)
    assert depth.min() > 0.0
    assert window.left < x.min() < x.max() < window.right
    assert window.bottom < y.min() < y.max() < window.top
    used = max(
        np.ptp(x) / (window.right - window.left),
        np.ptp(y) / (window.top - window.bottom),
    )
    assert used > 0.6


def test_sliders_of_all_joints_by_limb_in_degrees():
    model, config = load_robot("hoap2")
    groups = joint_groups(model, config, None)
    assert [*groups] == [
        "waist",
        "head",
        "right_leg",
        "left_leg",
        "right_arm",
        "left_arm",
    ]
    shown = {joint.joint: joint for joints in groups.values() for joint in joints}
    assert sorted(shown) == [*range(model.n_joints)]
    knee = shown[model.joint_index("RLEG_JOINT4")]
    assert (knee.low, knee.high) == pytest.approx(
        np.rad2deg([-0.017453, 2.268928]), abs=0.05
    )
    assert knee.shown(config.nominal_posture(model)) == pytest.approx(
        np.rad2deg(0.66), abs=0.05
    )


def test_without_configuration_limbs_are_those_of_the_tree(walker):
    model, _ = load_robot("hoap2")
    found = joint_groups(model, RobotConfig.from_dict({"name": "hoap2"}), model.path)
    assert {"right_leg", "left_leg", "right_arm", "left_arm", "head"} <= found.keys()
    groups = joint_groups(walker, RobotConfig.from_dict({"name": "walker"}), None)
    assert sum(map(len, groups.values())) == 4
    assert len(groups) == 2


def test_prismatic_joints_are_in_millimetres():
    axis = (
        '<axis xyz="0 0 1"/><limit lower="-0.1" upper="0.25" effort="1" velocity="1"/>'
    )
    link = '<link name="{}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0"'
    link += ' ixz="0" iyz="0"/></inertial></link>'
    joint = '<joint name="lift" type="prismatic"><parent link="a"/><child link="b"/>'
    xml = f'<robot name="r">{link.format("a")}{link.format("b")}{joint}{axis}</joint></robot>'
    (lift,) = joint_ranges(RobotModel.from_urdf(xml), [0])
    assert lift == (0, "lift (mm)", -100.0, 250.0, 1000.0)
    assert lift.shown(np.array([0.1234])) == 123.4


def test_the_links_centres_of_mass_are_those_of_the_robot():
    model, config = load_robot("hoap2")
    q = config.nominal_posture(model)
    R, p = body_poses(model.bodies, q)
    heavy = model.link_masses > 0.0
    found = link_coms(model, R, p)
    state = ComObserver(model).update(q, 0 * q)
    weighted = model.link_masses[heavy] @ found / model.mass
    np.testing.assert_allclose(weighted, state.position, atol=1e-12)


def test_a_link_has_mass_and_com_and_what_another_urdf_says(walker):
    i = walker.link_index("l_leg")
    mass = walker.link_masses[i]
    assert describe_links(walker, [i]).startswith(f"l_leg: {mass:.3f} kg, CoM ")
    assert "compared: +0.000 kg, CoM moved 0.0 0.0 0.0 mm" in describe_links(
        walker, [i], walker
    )
    assert describe_links(walker, [walker.link_index("l_sole")]) == "l_sole: no mass"


def test_another_urdf_is_at_the_same_root_with_its_own_com(walker):
    heavier = walker_urdf().replace('<mass value="1"/>', '<mass value="2"/>', 1)
    other = RobotModel.from_urdf(heavier)
    q = np.array([0.1, 0.0, -0.2, 0.0])
    first = RobotScene(walker).place(q, ComObserver(walker).update(q, 0 * q))
    placed, rows = Comparison(walker, other, "other.urdf").place(first)
    np.testing.assert_allclose(placed.R, first.R)
    np.testing.assert_allclose(placed.p, first.p)
    expected = ComObserver(other).update(q, 0 * q).position - first.state.position
    assert f"CoM {1e3 * np.linalg.norm(expected):.1f} mm away" in rows["other.urdf"]
    assert f"mass {other.mass - walker.mass:+.3f} kg" in rows["other.urdf"]
    with pytest.raises(ComModelError, match="another robot"):
        Comparison(walker, load_robot("hoap2")[0], "hoap2.urdf")


def run_of(times, forces):
    T = len(times)
    nothing = np.full((T, 3), np.nan)
    return BagRun(np.array(times), np.zeros((T, 4)), nothing, np.array(forces), ())


def test_events_are_gaps_and_feet_that_lift_and_land(walker):
    observer = ComObserver(walker, RobotConfig.from_dict(CONFIG).feet)
    both, right = [[0, 0, 20.0], [0, 0, 20.0]], [[0, 0, 0.0], [0, 0, 40.0]]
    run = run_of([0.0, 0.1, 0.2, 2.0, 2.1], [both, right, right, right, both])
    timeline = make_timeline(run, observer)
    found = [(event.time, event.text) for event in timeline.events]
    assert (0.1, "l_sole lifts") in found
    assert (2.0, "after a gap of 1.8 s") in found
    assert (2.1, "l_sole lands") in found
    assert timeline.com.shape == (5, 3)
    assert np.isfinite(timeline.margin).all()


def test_a_recording_of_many_events_has_a_bounded_list(walker):
    observer = ComObserver(walker, RobotConfig.from_dict(CONFIG).feet)
    forces = np.zeros((500, 2, 3))
    forces[:, 1, 2], forces[::2, 0, 2] = 40.0, 20.0
    timeline = make_timeline(run_of(np.arange(500) * 0.03, forces), observer)
    assert len(timeline.events) == MAX_EVENTS + 1
    assert timeline.events[-1].text.startswith("and ")
