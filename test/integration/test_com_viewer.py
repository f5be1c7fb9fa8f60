"""com_viewer over DDS: what it shows of what is published, and what its buttons call."""

import urllib.request

import numpy as np
import pytest
from geometry_msgs.msg import PointStamped, TransformStamped, Vector3
from std_srvs.srv import Trigger
from tf2_msgs.msg import TFMessage
from visualization_msgs.msg import Marker, MarkerArray

pytest.importorskip("viser")

from com_estimation.nodes.com_output import numpy_to_center_of_mass
from com_estimation.whole_body.com_state import ComObserver
from com_model import RobotModel
from com_msgs.msg import (
    BalanceState,
    CentroidalDiagnosis,
    GroundReaction,
    IdentificationResult,
    IdentifiedBody,
    TrunkCom,
    WalkState,
)
from com_ros.conversions import ns_to_stamp, numpy_to_joint_state, numpy_to_point
from com_viewer.nodes.live import Viewer
from com_viewer.scene import VERMILLION

NAMES = ["l_hip", "l_knee", "r_hip", "r_knee"]
T0 = 1_000_000_000_000  # ns


@pytest.fixture
def viewer(world, walker, walker_config, tmp_path):
    node = world.start(
        Viewer,
        robot_description=walker,
        robot_config=walker_config,
        record=str(tmp_path / "seen.html"),
        joint_timeout=5.0,
        buttons=True,
    )
    world.ticks = iter(range(1_000_000))
    return node


def stamp(world):
    return ns_to_stamp(T0 + next(world.ticks) * 40_000_000)


def send_joints(world, q=(0.0, 0.0, 0.0, 0.0)):
    world.send(
        "joint_states", numpy_to_joint_state(NAMES, q, np.zeros(4), stamp=stamp(world))
    )


def position(viewer, name):
    handle = (
        viewer.page._robots["robot"][2].handles.get(name)
        if viewer.page._robots
        else None
    )
    return None if handle is None or not handle.visible else np.array(handle.position)


def wait(world, viewer, condition, q=(0.0, 0.0, 0.0, 0.0), also=lambda: None):
    """Publish until the page shows something."""

    def shown():
        send_joints(world, q)
        also()
        return condition()

    world.spin_until(shown, "it is shown")


def test_the_robot_and_its_com_from_joints_alone(world, viewer, tmp_path):
    wait(world, viewer, lambda: position(viewer, "com/point") is not None)
    np.testing.assert_allclose(position(viewer, "com/point"), [0.05, 0, 1], atol=1e-9)
    assert "no topic com" in viewer.page._rows["source"]
    assert viewer.page._rows["robot"] == "walker, 4.000 kg, 0 of 0 shapes"
    wait(
        world,
        viewer,
        lambda: position(viewer, "com/point")[0] < 0.04,
        q=(0.3, 0.0, 0.3, 0.0),
    )
    assert viewer.page.address.startswith("http://127.0.0.1:")
    with urllib.request.urlopen(viewer.page.address, timeout=120) as answer:
        assert b"viser" in answer.read().lower()
    viewer.page.write_html(tmp_path / "written.html")
    text = (tmp_path / "written.html").read_text()
    assert "__VISER_EMBED_DATA__" in text
    assert "<title>walker, 4.000 kg, 0 of 0 shapes</title>" in text
    viewer.page.start_recording()  # destroy_node writes, too


def test_what_is_published_wins(world, viewer, walker):
    state = ComObserver(RobotModel.from_urdf(walker)).update(np.zeros(4), np.zeros(4))
    other = state._replace(
        position=np.array([0.02, 0.03, 0.04]), reason="said by the node"
    )

    def send():
        world.send("com", numpy_to_center_of_mass(other, stamp(world), "base_link"))

    wait(
        world,
        viewer,
        lambda: "said by the node" in viewer.page._rows.get("CoM", ""),
        also=send,
    )
    assert position(viewer, "com/point")[:2] == pytest.approx([0.02, 0.03])


def test_a_message_that_contradicts_itself_is_dropped(world, viewer):
    """A foot without a force; before, the node ended."""
    world.send("ground_reaction", GroundReaction(feet=["l_foot"]))
    world.spin_until(lambda: "ground_reaction" in viewer._received, "it is received")
    wait(world, viewer, lambda: not viewer._received)
    viewer.page._rows.clear()
    wait(world, viewer, lambda: viewer.page._rows.get("CoM") == "OK")


def test_joints_that_stop_are_no_longer_ok(world, walker, tmp_path):
    record = str(tmp_path / "seen.html")
    viewer = world.start(
        Viewer, robot_description=walker, record=record, joint_timeout=0.3
    )
    world.ticks = iter(range(1_000_000))
    wait(world, viewer, lambda: viewer.page._rows.get("CoM") == "OK")
    world.spin_until(lambda: "UNKNOWN: " in viewer.page._rows["CoM"], "it is stale")
    world.spin_for(0.3)
    assert "joint_states timed out" in viewer.page._rows["CoM"]
    wait(world, viewer, lambda: viewer.page._rows["CoM"] == "OK")


def test_the_root_follows_tf(world, viewer):
    item = TransformStamped(child_frame_id="base_link")
    item.header.frame_id = "odom"
    item.transform.translation.x = 5.0

    def send():
        world.send("/tf", TFMessage(transforms=[item]))

    wait(
        world,
        viewer,
        lambda: viewer.page._robots["robot"][1].bodies[0].position[0] == 5.0,
        also=send,
    )
    assert position(viewer, "com/point")[0] == pytest.approx(5.05)


def test_the_trunk_before_and_after_with_its_uncertainty(world, viewer):
    def send():
        msg = TrunkCom(
            status=TrunkCom.STATUS_CONVERGED, reason="settled", mass=2.0, mass_std=0.1
        )
        msg.header.stamp = stamp(world)
        msg.position = numpy_to_point([0.1, 0.0, 0.5])
        msg.offset_from_urdf = Vector3(x=0.04)
        msg.covariance = np.diag([1e-4, 4e-4, 9e-4]).ravel()
        world.send("trunk_com", msg)

    wait(
        world,
        viewer,
        lambda: position(viewer, "marks/trunk CoM, estimated") is not None,
        also=send,
    )
    before, after = (
        position(viewer, f"marks/trunk CoM, {name}") for name in ("URDF", "estimated")
    )
    np.testing.assert_allclose(after - before, [0.04, 0, 0], atol=1e-9)
    cloud = viewer.page._robots["robot"][2].handles["marks/trunk CoM, estimated_std"]
    assert sorted(cloud.scale) == pytest.approx([0.02, 0.04, 0.06])
    assert viewer.page._rows["trunk"].startswith("CONVERGED: settled")


def test_while_walking_the_corrected_com_with_its_ellipsoid_and_the_dcm(world, viewer):
    frames = [TransformStamped(child_frame_id="walk")]
    frames[0].header.frame_id = "base_link"
    frames[0].transform.translation.z = -1.0

    def send():
        walk, dcm = WalkState(state=WalkState.WALKING), PointStamped()
        diagnosis = CentroidalDiagnosis(
            verdict="CoM of the trunk", com_correction=Vector3(y=0.05)
        )
        diagnosis.covariance = np.diag([1e-4, 4e-4, 9e-4]).ravel()
        dcm.point = numpy_to_point([0.3, 0.1, 0.0])
        for topic, msg in (
            ("gait/state", walk),
            ("gait/dcm", dcm),
            ("diagnosis", diagnosis),
        ):
            msg.header.stamp = stamp(world)
            world.send(topic, msg)
        world.send("/tf", TFMessage(transforms=frames))

    wait(world, viewer, lambda: position(viewer, "marks/DCM") is not None, also=send)
    wait(
        world,
        viewer,
        lambda: position(viewer, "marks/CoM, corrected") is not None,
        also=send,
    )
    root = np.array(viewer.page._robots["robot"][1].bodies[0].position)
    np.testing.assert_allclose(
        position(viewer, "marks/DCM") - root, [0.3, 0.1, -1.0], atol=1e-9
    )
    moved = position(viewer, "marks/CoM, corrected") - position(viewer, "com/point")
    np.testing.assert_allclose(moved, [0.0, 0.05, 0.0], atol=1e-9)
    cloud = viewer.page._robots["robot"][2].handles["marks/CoM, corrected_std"]
    assert sorted(cloud.scale) == pytest.approx([0.02, 0.04, 0.06])
    assert viewer.page._rows["diagnosis"] == "CoM of the trunk"


@pytest.mark.parametrize("corners", [3, 8, 12])
def test_footsteps_have_the_corners_of_the_soles(world, viewer, corners):
    """com_setup writes soles of 8 or 12 corners; they were drawn as if they had 4."""
    angles = 2.0 * np.pi * np.arange(corners) / corners
    sole = np.column_stack([np.cos(angles), np.sin(angles), 0.0 * angles])
    edges = np.stack([sole, np.roll(sole, -1, axis=0)], axis=1)
    frame = TransformStamped(child_frame_id="walk")
    frame.header.frame_id = "base_link"
    points = [numpy_to_point(point) for point in edges.reshape(-1, 3)]

    def send():
        world.send("/tf", TFMessage(transforms=[frame]))
        walk = WalkState(state=WalkState.WALKING)
        walk.header.stamp = stamp(world)
        world.send("gait/state", walk)
        markers = [Marker(ns="footsteps_left", points=points)]
        world.send("gait/markers", MarkerArray(markers=markers))

    handles = viewer.page._robots["robot"][2].handles
    wait(world, viewer, lambda: "footsteps/soles" in handles, also=send)
    shown = handles["footsteps/soles"].points - np.array(
        viewer.page._robots["robot"][1].bodies[0].position
    )
    np.testing.assert_allclose(shown, edges, atol=1e-5)


def test_layers_are_those_that_are_there(world, viewer):
    wait(world, viewer, lambda: position(viewer, "com/point") is not None)
    wait(world, viewer, lambda: "link CoMs" in viewer.page._layers)
    layers = {"robot", "com", "chain", "support", "link CoMs"}
    assert viewer.page._layers.keys() == layers  # no wrench, no walk, no marks


def test_states_have_names_and_reasons(world, viewer):
    def send():
        msg = BalanceState(state=BalanceState.HOLDING, reason="the floor is steep")
        msg.header.stamp = stamp(world)
        world.send("balance/state", msg)

    wait(world, viewer, lambda: "balance" in viewer.page._rows, also=send)
    assert viewer.page._rows["balance"] == "HOLDING: the floor is steep"


def test_bodies_are_coloured_by_their_correction(world, viewer):
    bodies = [
        IdentifiedBody(name="l_leg", trusted=True, com=numpy_to_point([0.05, 0, 0]))
    ]
    wait(world, viewer, lambda: viewer.page._robots)
    world.latch(
        "identification/result", IdentificationResult(bodies=bodies, total_mass=4.0)
    )

    def colors():
        shown = viewer.page._robots["robot"][1]
        return {shown.bodies[b].name: mesh.color for b, _, mesh in shown.meshes}

    wait(world, viewer, lambda: colors()["/robot/l_leg"] == VERMILLION)
    assert colors()["/robot/r_leg"] != VERMILLION


def test_a_button_calls_its_service(world, viewer):
    called = []

    def answer(_, response):
        called.append(True)
        response.success, response.message = False, "the robot does not stand"
        return response

    world.node.create_service(Trigger, "gait/start", answer)
    wait(world, viewer, lambda: "gait/start" in viewer.page._labels)
    viewer._press("gait/start")
    wait(world, viewer, lambda: "refused" in viewer.page._rows["service"])
    assert (
        viewer.page._rows["service"] == "gait/start: refused. the robot does not stand"
    )
    assert called == [True]


def test_buttons_are_there_only_when_asked_for(world, walker):
    viewer = world.start(Viewer, robot_description=walker)
    world.ticks = iter(range(1_000_000))
    world.node.create_service(Trigger, "gait/start", lambda _, response: response)
    world.spin_for(2.5)  # a node with buttons looks for services every two seconds
    assert viewer.page._labels == ()


def test_nobody_looks_nothing_is_drawn(world, walker, walker_config):
    viewer = world.start(Viewer, robot_description=walker, robot_config=walker_config)
    world.ticks = iter(range(1_000_000))
    for _ in range(10):
        send_joints(world)
        world.spin_for(0.05)
    assert viewer._newest is not None
    assert position(viewer, "com/point") is None


def test_requests_to_share_the_page_are_refused(viewer):
    assert viewer.page.server.request_share_url() is None
    assert viewer.page.server._share_tunnel is None
