"""sesc_publisher over DDS: what it publishes, when, and with which stamps and frames."""

import math
import time

import numpy as np
import pytest
from ament_index_python.packages import get_package_share_directory
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import PointStamped, PolygonStamped, WrenchStamped
from read_back import com_jacobian_to_numpy
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import String
from tf2_msgs.msg import TFMessage
from visualization_msgs.msg import Marker, MarkerArray

from com_estimation.nodes.com_output import center_of_mass_to_numpy
from com_estimation.nodes.sesc_publisher import SescPublisher
from com_model import RobotConfig, RobotModel, Sesc
from com_msgs.msg import CenterOfMass, ComJacobian, SescChain
from com_ros.conversions import (
    ns_to_stamp,
    numpy_to_joint_state,
    point_to_numpy,
    points_to_numpy,
    rotation_to_quaternion,
    stamp_to_ns,
    vector3_to_numpy,
)
from com_ros.qos import LATCHED

OK, DEGRADED, UNKNOWN = (
    CenterOfMass.STATUS_OK,
    CenterOfMass.STATUS_DEGRADED,
    CenterOfMass.STATUS_UNKNOWN,
)
NAMES = ["l_hip", "l_knee", "r_hip", "r_knee"]
T0 = 1_000_000_000_000  # ns, the stamp of the first message


def joints(q=(0, 0, 0, 0), qd=(0, 0, 0, 0), names=NAMES, t_ms=0):
    return numpy_to_joint_state(
        list(names), q, qd, stamp=ns_to_stamp(T0 + t_ms * 1_000_000)
    )


def ask(world, com, msg):
    """Send joints and wait for the answer with their stamp."""
    com.clear()
    world.send("joint_states", msg)
    world.spin_until(lambda: com and com[-1].header.stamp == msg.header.stamp, "com")
    return center_of_mass_to_numpy(com[-1])


@pytest.fixture
def com(world):
    return world.collect(CenterOfMass, "com")


def test_com_point_and_jacobian_of_each_message(world, com, walker):
    points = world.collect(PointStamped, "com/point")
    jacobians = world.collect(ComJacobian, "com/jacobian")
    world.start(SescPublisher, robot_description=walker)
    sesc = Sesc(RobotModel.from_urdf(walker))
    rng = np.random.default_rng(1)
    sent = []
    world.publisher(JointState, "joint_states")
    for step in range(50):
        order = rng.permutation(4)
        q, qd = rng.uniform(-1, 1, size=(2, 4))
        names = ["gripper", *(NAMES[i] for i in order)]
        world.send("joint_states", joints([9, *q[order]], [9, *qd[order]], names, step))
        world.spin_until(lambda count=step + 1: len(com) == count, "com")
        sent.append((T0 + step * 1_000_000, q, qd))
    world.spin_until(
        lambda: len(com) == len(points) == len(jacobians) == 50, "50 of each"
    )
    for (stamp_ns, q, qd), msg, point, jacobian in zip(
        sent, com, points, jacobians, strict=True
    ):
        for header in (msg.header, point.header, jacobian.header):
            assert stamp_to_ns(header.stamp) == stamp_ns
            assert header.frame_id == "base_link"
        expected, J = sesc.com_and_jacobian(q)
        values = center_of_mass_to_numpy(msg)
        assert (values.status, values.reason) == (OK, "")
        assert values.mass == pytest.approx(4.0)
        np.testing.assert_allclose(values.position, expected, atol=1e-14)
        np.testing.assert_allclose(values.velocity, J @ qd, atol=1e-13)
        np.testing.assert_array_equal(point_to_numpy(point.point), values.position)
        names, matrix, position = com_jacobian_to_numpy(jacobian)
        assert list(names) == NAMES
        np.testing.assert_array_equal(matrix, J)
        np.testing.assert_array_equal(position, values.position)


def test_feet_are_not_needed(world, com, walker):
    world.start(SescPublisher, robot_description=walker)
    values = ask(world, com, joints())
    assert (values.status, values.ground) == (OK, CenterOfMass.GROUND_ROOT)
    np.testing.assert_allclose(values.position, [0.05, 0, 0], atol=1e-15)
    np.testing.assert_allclose(values.projection, [0.05, 0, 0], atol=1e-15)
    np.testing.assert_array_equal(values.gravity, [0, 0, -1])
    assert math.isnan(values.margin)
    assert values.contacts == ()


def test_empty_velocity_is_no_fault(world, com, walker):
    world.start(SescPublisher, robot_description=walker)
    values = ask(world, com, joints(qd=()))
    assert (values.status, values.reason) == (OK, "")
    assert np.isnan(values.velocity).all()


def test_feet_of_the_configuration(world, com, walker, walker_config):
    supports = world.collect(PolygonStamped, "com/support")
    world.start(SescPublisher, robot_description=walker, robot_config=walker_config)
    values = ask(world, com, joints())
    world.spin_until(lambda: supports, "the support polygon")
    corners = np.array([[p.x, p.y, p.z] for p in supports[0].polygon.points])
    assert supports[0].header.frame_id == "base_link"
    np.testing.assert_allclose(corners[:, 2], -1.0, atol=1e-6)
    assert corners[:, 0].max() - 0.05 == pytest.approx(values.margin, abs=1e-6)
    assert (values.status, values.ground) == (OK, CenterOfMass.GROUND_FEET)
    np.testing.assert_allclose(values.projection, [0.05, 0, -1], atol=1e-15)
    assert values.margin == pytest.approx(0.05)
    assert values.contacts == ("l_sole", "r_sole")
    assert ask(world, com, joints([0, 0.1, 0, 0], t_ms=1)).contacts == ("r_sole",)


def test_feet_by_parameter(world, com, walker, walker_config):
    world.start(
        SescPublisher,
        robot_description=walker,
        robot_config=walker_config,
        feet=["r_sole"],
    )
    values = ask(world, com, joints())
    assert values.contacts == ("r_sole",)
    assert values.margin == pytest.approx(-0.05)


def test_forces_tell_which_feet_stand(world, com, walker, walker_config):
    world.start(SescPublisher, robot_description=walker, robot_config=walker_config)
    ask(world, com, joints())
    for topic, force in (("l_sole/wrench", 1.0), ("right/force", -30.0)):
        msg = WrenchStamped()
        msg.header.stamp = ns_to_stamp(T0)
        msg.wrench.force.z = force
        world.send(topic, msg)
    world.spin_for(0.1)
    values = ask(world, com, joints(t_ms=1))
    assert (values.status, values.contacts) == (OK, ("r_sole",))
    values = ask(world, com, joints(t_ms=400))  # the sensors have fallen silent
    assert values.status == DEGRADED
    assert (
        "l_sole/wrench is stale, 0.40 s old: check the force sensor's driver"
        in values.reason
    )
    assert values.contacts == ("l_sole", "r_sole")


def imu(R_world_root, t_ms=0, frame="somewhere"):
    R_root_imu = Rotation.from_euler("x", np.pi).as_matrix()
    msg = Imu(orientation=rotation_to_quaternion(R_world_root @ R_root_imu))
    msg.header.stamp = ns_to_stamp(T0 + t_ms * 1_000_000)
    msg.header.frame_id = frame
    return msg


def test_on_a_slope_the_projection_goes_along_gravity(
    world, com, walker, walker_config
):
    world.start(
        SescPublisher,
        robot_description=walker,
        robot_config=walker_config,
        use_imu=True,
    )
    slope = np.deg2rad(2.0)
    world.send("imu", imu(Rotation.from_euler("y", slope).as_matrix()))
    world.spin_for(0.1)
    values = ask(world, com, joints())
    assert (values.status, values.reason) == (OK, "")
    forward = 0.05 + np.tan(slope)
    np.testing.assert_allclose(
        values.gravity, [np.sin(slope), 0, -np.cos(slope)], atol=1e-9
    )
    np.testing.assert_allclose(values.projection, [forward, 0, -1], atol=1e-9)
    assert values.margin == pytest.approx(0.1 - forward, abs=1e-9)


def test_without_configuration_the_imu_s_frame_is_that_of_its_message(
    world, com, walker
):
    world.start(SescPublisher, robot_description=walker, use_imu=True)
    world.send("imu", imu(np.eye(3), frame="imu_link"))
    world.spin_for(0.1)
    np.testing.assert_allclose(
        ask(world, com, joints()).gravity, [0, 0, -1], atol=1e-12
    )


def test_a_new_description_replaces_the_model(world, com, make_walker):
    world.start(SescPublisher)
    world.latch("robot_description", String(data=make_walker()))
    world.publisher(JointState, "joint_states")
    assert ask(world, com, joints()).status in (OK, UNKNOWN)
    world.spin_until(
        lambda: ask(world, com, joints(t_ms=1)).status != UNKNOWN, "first model"
    )
    assert com[-1].mass == pytest.approx(4.0)
    world.latch(
        "robot_description", String(data=make_walker("heavy", 6.0, root="trunk"))
    )
    world.spin_until(lambda: ask(world, com, joints(t_ms=2)).mass > 4.5, "second model")
    assert com[-1].mass == pytest.approx(8.0)
    assert com[-1].position.x == pytest.approx(0.075)
    assert com[-1].header.frame_id == "trunk"


def test_a_new_description_with_other_joints_while_the_last_state_is_shown(
    world, com, walker
):
    world.start(SescPublisher, robot_description=walker, display_rate_hz=20.0)
    chains = world.collect(SescChain, "sesc")
    block = """<robot name="block"><link name="block"><inertial><mass value="3"/>
      <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>"""
    for step in range(5):
        ask(world, com, joints(t_ms=2 * step))
        world.latch(
            "robot_description", String(data=block if step % 2 == 0 else walker)
        )
        world.spin_for(0.1)
    values = ask(world, com, joints(t_ms=20))
    assert (values.status, values.mass) == (OK, 3.0)
    world.spin_until(
        lambda: chains and chains[-1].mass == 3.0, "the chain of the block"
    )


def test_parts_of_the_joints_from_several_publishers(world, com, walker):
    world.start(SescPublisher, robot_description=walker)
    values = ask(world, com, joints([0.1, 0.2], [1, 2], NAMES[:2]))
    assert values.status == UNKNOWN
    values = ask(world, com, joints([0.3, 0.4], [3, 4], NAMES[2:], t_ms=5))
    assert values.status == OK
    sesc = Sesc(RobotModel.from_urdf(walker))
    com_expected, J = sesc.com_and_jacobian(np.array([0.1, 0.2, 0.3, 0.4]))
    np.testing.assert_allclose(values.position, com_expected, atol=1e-14)
    np.testing.assert_allclose(values.velocity, J @ [1, 2, 3, 4], atol=1e-13)


def test_assumed_joints(world, com, walker):
    world.start(
        SescPublisher,
        robot_description=walker,
        assumed_joints=["l_knee", "r_knee"],
        assumed_positions=[0.2, 0.4],
    )
    values = ask(world, com, joints([0.1, 0.3], [0, 0], ["l_hip", "r_hip"]))
    assert values.status == OK
    expected = Sesc(RobotModel.from_urdf(walker)).com(np.array([0.1, 0.2, 0.3, 0.4]))
    np.testing.assert_allclose(values.position, expected, atol=1e-14)


def test_display_carries_the_stamp_of_the_data(world, com, walker, walker_config):
    markers, chains = (
        world.collect(MarkerArray, "com/markers"),
        world.collect(SescChain, "sesc"),
    )
    frames = world.collect(TFMessage, "/tf")
    world.start(
        SescPublisher,
        robot_description=walker,
        robot_config=walker_config,
        frame_prefix="r1/",
        display_rate_hz=100.0,
    )
    values = ask(world, com, joints())
    assert com[-1].header.frame_id == "r1/base_link"
    world.spin_until(lambda: markers and chains and frames, "display")
    transforms = {t.child_frame_id: t for t in frames[-1].transforms}
    assert set(transforms) == {"r1/com", "r1/com_projection"}
    for transform in transforms.values():
        assert transform.header.frame_id == "r1/base_link"
        assert transform.header.stamp == ns_to_stamp(T0)
        assert transform.transform.rotation.w == 1.0
    for name, expected in (
        ("r1/com", values.position),
        ("r1/com_projection", values.projection),
    ):
        np.testing.assert_array_equal(
            vector3_to_numpy(transforms[name].transform.translation), expected
        )
    assert {marker.ns for marker in markers[-1].markers} == {
        "com",
        "sesc",
        "sesc_joints",
        "com_projection",
        "gravity_line",
        "support_polygon",
    }
    assert all(m.header.stamp == ns_to_stamp(T0) for m in markers[-1].markers)
    mass, links = chains[-1].mass, chains[-1].links
    parameters, points = map(
        points_to_numpy, (chains[-1].parameters, chains[-1].points)
    )
    assert chains[-1].header.stamp == ns_to_stamp(T0)
    assert mass == pytest.approx(4.0)
    assert len(links) == len(parameters) == len(points) - 1
    np.testing.assert_array_equal(points[0], [0, 0, 0])
    np.testing.assert_allclose(points[-1], values.position, atol=1e-14)


def test_the_display_keeps_to_its_rate_and_to_news(world, com, walker):
    frames = world.collect(TFMessage, "/tf")
    world.start(SescPublisher, robot_description=walker, display_rate_hz=5.0)
    world.publisher(JointState, "joint_states")
    begin = time.monotonic()
    for step in range(100):
        world.send("joint_states", joints(t_ms=step))
        world.spin_until(lambda count=step + 1: len(com) == count, "com")
    world.spin_for(0.5)
    count = len(frames)
    assert 1 <= count <= 1 + 5.0 * (time.monotonic() - begin)
    world.spin_for(0.5)
    assert len(frames) == count  # nothing new: the same frame is not sent twice


def test_what_is_shown_vanishes_when_the_com_is_not_known(world, com, walker):
    markers = world.collect(MarkerArray, "com/markers")
    world.start(SescPublisher, robot_description=walker, display_rate_hz=100.0)
    ask(world, com, joints())
    world.spin_until(lambda: markers, "markers")
    markers.clear()
    assert ask(world, com, joints([math.nan] * 4, t_ms=1)).status == UNKNOWN
    world.spin_until(lambda: markers, "clearing")
    assert [m.action for m in markers[0].markers] == [Marker.DELETEALL]


def test_switches(world, com, walker):
    node = world.start(
        SescPublisher,
        robot_description=walker,
        publish_jacobian=False,
        display_rate_hz=0.0,
    )
    frames = world.collect(TFMessage, "/tf")
    ask(world, com, joints())
    world.spin_for(0.3)
    assert not frames
    assert "/com/jacobian" not in {
        publisher.topic_name for publisher in node.publishers
    }


def test_a_namespace_moves_all_but_tf_and_diagnostics(world, walker):
    node = world.start(
        SescPublisher,
        namespace="robot1",
        robot_description=walker,
        feet=["l_sole"],
        use_imu=True,
    )
    assert {publisher.topic_name for publisher in node.publishers} >= {
        "/robot1/com",
        "/robot1/com/point",
        "/robot1/com/jacobian",
        "/robot1/com/markers",
        "/robot1/sesc",
        "/tf",
        "/diagnostics",
    }
    assert {subscription.topic_name for subscription in node.subscriptions} >= {
        "/robot1/robot_description",
        "/robot1/joint_states",
        "/robot1/imu",
        "/robot1/l_sole/wrench",
    }


def test_diagnostics(world, com, walker, walker_config):
    heard = world.collect(DiagnosticArray, "/diagnostics")
    world.start(
        SescPublisher,
        robot_description=walker,
        robot_config=walker_config,
        joint_timeout=30.0,
    )
    world.publisher(JointState, "joint_states")
    for _ in range(30):
        msg = joints()
        msg.header.stamp = world.node.get_clock().now().to_msg()
        world.send("joint_states", msg)
        world.spin_for(0.05)
    world.spin_until(lambda: len(heard) >= 2, "diagnostics")
    (status,) = heard[-1].status
    values = {pair.key: pair.value for pair in status.values}
    assert status.name == "sesc_publisher: centre of mass"
    assert (status.level, status.message) == (
        DiagnosticStatus.OK,
        "centre of mass is known",
    )
    assert (status.hardware_id, values["model"], values["status"]) == (
        "walker",
        "walker",
        "OK",
    )
    assert float(values["mass_kg"]) == pytest.approx(4.0)
    assert float(values["rate_hz"]) > 0
    assert 0 < float(values["latency_mean_ms"]) < 20_000
    assert values["contacts"] == "l_sole, r_sole"
    assert (values["audit_errors"], values["audit_issues"]) == ("0", "1")
    assert float(values["support_margin_m"]) == pytest.approx(0.05)


def test_hoap2_stands(world, com):
    share = get_package_share_directory("robot_descriptions")
    urdf, config = f"{share}/urdf/hoap2.urdf", f"{share}/config/hoap2.yaml"
    model, robot = RobotModel.from_file(urdf), RobotConfig.from_file(config)
    world.start(SescPublisher, robot_description=model.xml, robot_config=config)
    posture = robot.nominal_posture(model)
    values = ask(world, com, joints(posture, 0 * posture, model.joint_names))
    assert (values.status, values.ground) == (OK, CenterOfMass.GROUND_FEET)
    assert values.mass == pytest.approx(7.1200448)
    assert values.contacts == ("l_sole", "r_sole")
    assert values.margin > 0.02
    np.testing.assert_allclose(values.position, Sesc(model).com(posture), atol=1e-14)


def test_stamps_of_a_recording_are_kept(world, com, walker):
    world.start(SescPublisher, robot_description=walker)
    msg = joints()
    msg.header.stamp = Time(sec=5, nanosec=7)  # long ago
    assert ask(world, com, msg).status == OK


def test_sole_frames_of_the_configuration_are_on_tf_static(world, walker, tmp_path):
    file = tmp_path / "walker.yaml"
    file.write_text(
        "{name: walker, feet: {sole: {link: l_sole, xyz: [0, 0, -0.1], size: [1, 1]}}}"
    )
    static = world.collect(TFMessage, "/tf_static", LATCHED)
    com = world.collect(CenterOfMass, "com")
    options = {
        "robot_description": walker,
        "robot_config": str(file),
        "frame_prefix": "r1/",
    }
    world.start(SescPublisher, **options)
    ask(world, com, joints())
    world.spin_until(lambda: static, "/tf_static")
    (transform,) = static[0].transforms
    assert (transform.header.frame_id, transform.child_frame_id) == (
        "r1/l_sole",
        "r1/sole",
    )
    np.testing.assert_array_equal(
        vector3_to_numpy(transform.transform.translation), [0, 0, -0.1]
    )
    assert com[-1].contacts == ["sole"]
