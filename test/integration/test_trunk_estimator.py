"""trunk_estimator over DDS, with a stand-in for the estimator: what it is fed and publishes."""

import re

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import Vector3, WrenchStamped
from read_back import ground_reaction_to_numpy, root_body_inertial
from std_msgs.msg import String
from std_srvs.srv import Trigger
from tf2_msgs.msg import TFMessage
from trunk_driver import (
    LEGS,
    MODEL,
    ROBOT,
    SETTLED,
    SHIFT,
    T0,
    URDF_TRUNK,
    Robot,
    replace_noise,
)
from visualization_msgs.msg import MarkerArray

from com_estimation.nodes.trunk_estimator import TrunkEstimatorNode
from com_model import ConfigError, RobotModel
from com_model.status import Status
from com_msgs.msg import GaitPhase, GroundReaction, TrunkCom
from com_ros.conversions import (
    ns_to_stamp,
    numpy_to_joint_state,
    point_to_numpy,
    stamp_to_ns,
    vector3_to_numpy,
)
from com_ros.exceptions import ParameterError


@pytest.fixture
def robot(world):
    return Robot(world, robot_description=MODEL.xml)


def test_estimates_carry_the_stamps_of_the_joints(robot):
    values = robot.run(60)
    assert (values.status, values.reason) == (TrunkCom.STATUS_CONVERGED, "")
    assert robot.trunk[-1].method == "floating_base"
    np.testing.assert_allclose(values.com, URDF_TRUNK.com + SHIFT, atol=1e-15)
    np.testing.assert_array_equal(values.offset_from_urdf, SHIFT)
    np.testing.assert_array_equal(values.covariance, np.diag([1e-6, 4e-6, 1e-4]))
    assert values.observable.tolist() == [True, True, False]
    stamps = [stamp_to_ns(msg.header.stamp) - T0 for msg in robot.trunk]
    assert all(stamp % 1_000_000 == 0 for stamp in stamps)
    assert {msg.header.frame_id for msg in robot.trunk} == {"base_link"}
    known = [s for s, m in zip(stamps, robot.trunk, strict=True) if m.status]
    assert set(np.diff(known)) == {5_000_000}  # each update of the estimator


def test_samples_as_the_messages_have_them(robot):
    sent = []

    def shuffled():
        q, qd, tau = robot.rng.normal(size=(3, 12))
        sent.append((q, qd, tau))
        return {"position": q, "velocity": qd, "effort": tau}

    robot.run(1)  # the first one has no reading of the IMU to wait for
    robot.estimator.samples.clear()
    robot.run(3, spoil=shuffled)
    order = robot.rng.permutation(12)
    robot.k += 1
    q = robot.rng.normal(size=12)
    names = [MODEL.joint_names[i] for i in order]
    stamp = ns_to_stamp(robot.time_ns)
    robot.world.send(
        "joint_states", numpy_to_joint_state(names, q[order], (), q[order], stamp)
    )
    robot.world.send("imu", robot.imu())
    robot.world.spin_for(0.1)
    samples = robot.estimator.samples
    assert len(samples) == 4
    for sample, (position, velocity, effort) in zip(samples[:3], sent, strict=True):
        np.testing.assert_array_equal(sample.position, position)
        np.testing.assert_array_equal(sample.velocity, velocity)
        np.testing.assert_array_equal(sample.effort, effort)
    np.testing.assert_array_equal(samples[3].position, q)
    np.testing.assert_array_equal(samples[3].effort, q)
    assert np.isnan(samples[3].velocity).all()
    for k, sample in enumerate(samples, start=2):
        assert sample.time == pytest.approx(T0 / 1e9 + k / 1000, abs=1e-9)
        assert abs(sample.specific_force[2] - 9.81) < 0.1
        np.testing.assert_array_equal(sample.R_world_imu, np.eye(3))
        assert sample.stance is None


def test_publish_rate(world):
    robot = Robot(world, robot_description=MODEL.xml, publish_rate_hz=50.0)
    robot.run(200)
    known = [stamp_to_ns(msg.header.stamp) for msg in robot.trunk if msg.status]
    assert set(np.diff(known)) == {20_000_000}


def test_ground_reaction_of_a_robot_that_stands(robot):
    received = robot.world.collect(GroundReaction, "ground_reaction")
    robot.world.spin_until(
        lambda: any(
            p.topic_name == "/ground_reaction" and p.get_subscription_count()
            for p in robot.node.publishers
        )
    )
    robot.run(200)
    values = ground_reaction_to_numpy(received[-1])
    assert values.legs == ("left_front", "right_front", "left_hind", "right_hind")
    assert values.feet == ("lf_foot", "rf_foot", "lh_foot", "rh_foot")
    assert values.method == "inverse_dynamics"
    assert received[-1].header.frame_id == "base_link"
    total = values.forces.sum(axis=0)
    assert total[2] == pytest.approx(MODEL.mass * 9.81, rel=0.1)
    assert values.contact.all()
    assert (values.force_std[:, 2] > 0.0).all()


def test_a_late_imu_is_waited_for(robot):
    """Its message comes 8 ms after the joints of its stamp."""
    values = robot.run(100, late_ms=-8.0)
    assert (values.status, values.reason) == (TrunkCom.STATUS_CONVERGED, "")
    assert np.isfinite(robot.estimator.samples[-1].specific_force).all()
    assert stamp_to_ns(robot.trunk[-1].header.stamp) <= robot.time_ns - 8_000_000


def test_an_imu_that_is_too_late_is_used_and_spoken_of(robot):
    values = robot.run(100, late_ms=-28.0)
    assert values.status == TrunkCom.STATUS_DEGRADED
    assert re.search(
        r"imu and joint_states are [89]\.0 ms apart: stamp them", values.reason
    )
    assert np.isfinite(robot.estimator.samples[-1].specific_force).all()


def test_without_imu(robot):
    values = robot.run(100, imu=False)
    assert values.status == TrunkCom.STATUS_DEGRADED
    assert "no imu for 0.1" in values.reason
    assert np.isnan(robot.estimator.samples[-1].specific_force).all()
    values = robot.run(SETTLED)
    assert (values.status, values.reason) == (TrunkCom.STATUS_CONVERGED, "")
    assert np.isfinite(robot.estimator.samples[-1].specific_force).all()


@pytest.mark.parametrize(
    ("effort", "text"),
    [
        ((), "joint_states carries no effort"),
        (np.zeros(12), "the effort of every joint is zero"),
    ],
)
def test_without_effort(robot, effort, text):
    known = robot.run(60)
    count = len(robot.estimator.samples)
    values = robot.run(150, spoil=lambda: {"effort": effort})
    assert values.status == TrunkCom.STATUS_DEGRADED
    assert text in values.reason
    np.testing.assert_array_equal(values.com, known.com)  # frozen
    assert not values.observable.any()
    assert len(robot.estimator.samples) == count
    assert robot.run(SETTLED).status == TrunkCom.STATUS_CONVERGED


def test_without_effort_from_the_start(robot):
    values = robot.run(60, spoil=lambda: {"effort": ()})
    assert values.status == TrunkCom.STATUS_UNKNOWN
    assert "joint_states carries no effort" in values.reason
    assert np.isnan(values.com).all()


def test_a_position_that_is_not_finite(robot):
    robot.run(60)
    values = robot.run(60, spoil=lambda: {"position": np.full(12, np.nan)})
    assert values.status == TrunkCom.STATUS_DEGRADED
    assert "joint_states has a position that is not finite" in values.reason
    assert robot.run(SETTLED).status == TrunkCom.STATUS_CONVERGED


def test_joint_states_fall_silent(world):
    robot = Robot(world, robot_description=MODEL.xml, joint_timeout=0.2)
    robot.run(50)
    robot.world.spin_until(
        lambda: robot.last.status == TrunkCom.STATUS_DEGRADED, "silence"
    )
    assert "/joint_states timed out, none for 0." in robot.last.reason


def test_reset(robot):
    robot.run(60)
    client = robot.world.node.create_client(Trigger, "/trunk_estimator/reset")
    robot.world.spin_until(client.service_is_ready, "the service")
    future = client.call_async(Trigger.Request())
    robot.world.spin_until(future.done, "the answer")
    assert (future.result().success, future.result().message) == (
        True,
        "the estimation restarts",
    )
    assert robot.estimator.samples == []
    assert robot.run(SETTLED).status == TrunkCom.STATUS_CONVERGED


def test_reset_without_model(world):
    robot = Robot(world)
    client = world.node.create_client(Trigger, "/trunk_estimator/reset")
    world.spin_until(client.service_is_ready, "the service")
    future = client.call_async(Trigger.Request())
    world.spin_until(future.done, "the answer")
    assert not future.result().success
    assert "no robot_description yet" in future.result().message
    values = robot.run(30)
    assert values.status == TrunkCom.STATUS_UNKNOWN
    assert "no robot_description yet" in values.reason


def test_a_new_description(robot):
    robot.run(60)
    heavy = MODEL.xml.replace('name="scalf2"', 'name="other"', 1)
    robot.world.latch("robot_description", String(data=heavy))
    robot.world.spin_until(lambda: len(robot.made) == 2, "a new estimator")
    assert robot.run(SETTLED).status == TrunkCom.STATUS_CONVERGED
    assert len(robot.estimator.samples) >= 50


@pytest.mark.exhaustive
def test_corrected_description(world):
    corrected = world.collect(String, "robot_description_corrected")
    robot = Robot(world, robot_description=MODEL.xml, publish_corrected=True)
    robot.run(100)
    assert len(corrected) == 1
    trunk = root_body_inertial(RobotModel.from_urdf(corrected[0].data))
    np.testing.assert_allclose(trunk.com, URDF_TRUNK.com + SHIFT, atol=1e-12)
    assert trunk.mass == pytest.approx(URDF_TRUNK.mass, rel=1e-12)
    robot.estimator.shift = SHIFT + 0.001  # too little to be worth a new one
    robot.k += 1000
    robot.run(SETTLED)
    assert len(corrected) == 1
    robot.estimator.shift, robot.estimator.mass = SHIFT + 0.01, URDF_TRUNK.mass + 20.0
    values = robot.run(100)
    assert "the trunk weighs 20 kg more than the URDF says" in values.reason
    assert len(corrected) == 2
    trunk = root_body_inertial(RobotModel.from_urdf(corrected[1].data))
    assert trunk.mass == pytest.approx(URDF_TRUNK.mass + 20.0, rel=1e-12)
    robot.estimator.status, robot.estimator.shift = Status.ESTIMATING, SHIFT
    robot.k += 1000
    robot.run(SETTLED)
    assert len(corrected) == 2
    robot.estimator.status = Status.USABLE
    robot.k += 1000
    values = robot.run(SETTLED)
    assert values.status == TrunkCom.STATUS_USABLE
    assert len(corrected) == 3


def test_a_corrected_description_that_cannot_be(world):
    corrected = world.collect(String, "robot_description_corrected")
    robot = Robot(world, robot_description=MODEL.xml, publish_corrected=True)
    robot.estimator.mass = -5.0
    robot.run(100)
    assert corrected == []


def test_display(world):
    frames, markers = (
        world.collect(TFMessage, "/tf"),
        world.collect(MarkerArray, "trunk_com/markers"),
    )
    robot = Robot(
        world, robot_description=MODEL.xml, frame_prefix="r1/", display_rate_hz=100.0
    )
    robot.run(200)
    world.spin_until(
        lambda: frames and markers and len(markers[-1].markers) == 7, "display"
    )
    (transform,) = frames[-1].transforms
    assert (transform.header.frame_id, transform.child_frame_id) == (
        "r1/base_link",
        "r1/trunk_com",
    )
    origin = vector3_to_numpy(transform.transform.translation)
    np.testing.assert_allclose(origin, URDF_TRUNK.com + SHIFT, atol=1e-15)
    shapes = {marker.ns: marker for marker in markers[-1].markers}
    assert set(shapes) == {"trunk_com", "urdf_com", "uncertainty"} | {
        f"force_{leg.name}" for leg in LEGS
    }
    np.testing.assert_allclose(
        point_to_numpy(shapes["urdf_com"].pose.position), URDF_TRUNK.com, atol=1e-15
    )
    scale = shapes["uncertainty"].scale
    assert sorted([scale.x, scale.y, scale.z]) == pytest.approx([0.006, 0.012, 0.06])
    arrow = shapes["force_left_front"].points
    assert arrow[1].z - arrow[0].z == pytest.approx(
        0.125, rel=0.2
    )  # a quarter of the weight
    assert {m.header.frame_id for m in markers[-1].markers} == {"r1/base_link"}


def test_the_gait_s_phase_reaches_the_estimator(robot):
    robot.run(5)
    names = [leg.name for leg in LEGS]
    gait = GaitPhase(
        state=GaitPhase.TROTTING, legs=names, stance=[True, False, False, True]
    )
    gait.header.stamp = ns_to_stamp(robot.time_ns)
    robot.world.send("gait/stance", gait)
    robot.world.spin_for(0.1)
    robot.run(5)
    assert robot.estimator.samples[-1].stance.tolist() == [True, False, False, True]
    gait.state, gait.stance = GaitPhase.UNKNOWN, [True] * 4
    robot.world.send("gait/stance", gait)
    robot.world.spin_for(0.1)
    robot.run(5)
    assert robot.estimator.samples[-1].stance.tolist() == [True, False, False, True]


def test_foot_sensors(world):
    robot = Robot(world, robot_description=MODEL.xml, ground_reaction="sensor")
    values = robot.run(30)
    assert (
        "no wrench of the feet is received on lf_foot/wrench, rf_foot/wrench"
        in values.reason
    )
    for k, foot in enumerate(ROBOT.feet):
        msg = WrenchStamped()
        msg.header.stamp = ns_to_stamp(robot.time_ns)
        msg.wrench.force = Vector3(x=0.0, y=0.0, z=700.0 + k)
        world.send(foot.wrench_topic, msg)
    world.spin_for(0.1)
    values = robot.run(SETTLED)
    assert values.status == TrunkCom.STATUS_CONVERGED
    forces = robot.estimator.samples[-1].foot_forces
    assert forces.shape == (4, 3)
    np.testing.assert_allclose(np.linalg.norm(forces, axis=1), [700, 701, 702, 703])


def test_diagnostics(robot):
    received = robot.world.collect(DiagnosticArray, "/diagnostics")
    robot.world.spin_for(0.5)
    robot.run(60)
    received.clear()  # what is published from now on has all samples
    robot.world.spin_until(
        lambda: received and received[-1].status[0].hardware_id == "scalf2", "ok"
    )
    (status,) = received[-1].status
    values = {pair.key: pair.value for pair in status.values}
    assert status.name == "trunk_estimator: trunk's centre of mass"
    assert values["method"] == "floating_base"
    assert int(values["samples"]) >= 55
    assert {"imu_age_ms", "mass_kg", "samples_held_back", "restarts"} <= set(values)
    robot.run(60, spoil=lambda: {"effort": ()})
    robot.world.spin_until(
        lambda: received[-1].status[0].level == DiagnosticStatus.WARN, "warning"
    )
    assert "carries no effort" in received[-1].status[0].message


def test_a_configuration_is_needed(world):
    with pytest.raises(
        ParameterError, match="'robot_config' is '': give the path of the robot's"
    ):
        world.start(TrunkEstimatorNode)


def test_a_robot_that_is_no_quadruped(world, walker, walker_config):
    with pytest.raises(ConfigError, match=r"two feet.*diagnose_bag"):
        world.start(TrunkEstimatorNode, robot_config=walker_config)


def test_stamps_without_time_are_those_of_the_clock(robot):
    msg = robot.joints()
    msg.header.stamp = Time()
    samples = robot.estimator.samples
    for count in range(1, 7):
        robot.world.send("joint_states", replace_noise(robot, msg))
        robot.world.spin_until(lambda count=count: len(samples) >= count, "a sample")
    assert len(samples) == 6
    now = robot.node.get_clock().now().nanoseconds / 1e9
    assert now - robot.estimator.samples[-1].time < 10.0
