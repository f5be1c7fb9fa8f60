"""The simulator over DDS: what it publishes belongs together, and commands are followed."""

import time

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticStatus
from simulator_bench import ARM, HOAP2, by_stamp
from std_msgs.msg import Float64MultiArray

from com_model import RobotModel, link_poses
from com_msgs.msg import CenterOfMass
from com_ros.conversions import (
    imu_to_rotation,
    ns_to_stamp,
    point_to_numpy,
    stamp_to_ns,
    vector3_to_numpy,
    wrench_to_numpy,
)


def test_all_of_one_instant_belongs_together(simulator_bench):
    bench = simulator_bench(**HOAP2, publish_rate_hz=100.0)
    bench.until(lambda: len(bench.received["joint_states"]) > 150, "second of standing")
    names = (
        "joint_states",
        "imu",
        "l_sole/wrench",
        "r_sole/wrench",
        "ground_truth/com",
    )
    stamped = {name: by_stamp(bench.received[name]) for name in names}
    common = set.intersection(*(set(messages) for messages in stamped.values()))
    assert len(common) > 100
    last = max(common)
    assert abs(last - time.time_ns()) < 60e9  # comparable with now()
    joints, imu, left, right, truth = (stamped[name][last] for name in names)

    model = RobotModel.from_urdf(HOAP2["robot_description"])
    assert tuple(joints.name) == model.joint_names
    assert len(joints.position) == len(joints.velocity) == len(joints.effort) == 25
    R, p = link_poses(model, joints.position)
    com = (
        model.link_masses
        @ (p + np.einsum("lij,lj->li", R, model.link_coms))
        / model.mass
    )
    np.testing.assert_allclose(point_to_numpy(truth.position), com, atol=1e-6)
    assert truth.status == CenterOfMass.STATUS_OK
    assert truth.header.frame_id == "base_link"
    assert truth.mass == pytest.approx(7.1200448)
    assert np.isnan(truth.support_margin)

    assert imu.header.frame_id == "imu_link"
    force = imu_to_rotation(imu) @ vector3_to_numpy(imu.linear_acceleration)
    np.testing.assert_allclose(force, [0, 0, 9.81], atol=0.1)
    assert imu.orientation_covariance[0] > 0
    assert (left.header.frame_id, right.header.frame_id) == ("l_sole", "r_sole")
    weight = wrench_to_numpy(left.wrench) + wrench_to_numpy(right.wrench)
    assert weight[2] == pytest.approx(7.1200448 * 9.81, rel=0.02)

    transform = bench.received["/tf"][-1].transforms[0]
    assert (transform.header.frame_id, transform.child_frame_id) == (
        "odom",
        "base_link",
    )
    assert transform.transform.translation.z == pytest.approx(0.281, abs=0.01)
    assert not bench.received["/clock"]
    steps = np.diff(sorted(stamped["joint_states"]))
    assert (steps == 10_000_000).all()


def test_clock_of_the_simulation(simulator_bench):
    bench = simulator_bench(
        **HOAP2, publish_clock=True, real_time_factor=0.0, publish_rate_hz=100.0
    )
    clocks = bench.wait_for("/clock", 50)
    assert 0 <= clocks[0].clock.sec < 1000
    stamps = set(by_stamp(bench.wait_for("joint_states", 50)))
    assert {stamp_to_ns(clock.clock) for clock in clocks} & stamps
    status = bench.wait_for("/diagnostics")[-1].status[0]
    assert status.level == DiagnosticStatus.OK
    assert status.hardware_id == "hoap2"
    values = {
        item.key: float(item.value) for item in status.values if item.key != "model"
    }
    assert values["drift_s"] == 0.0
    assert values["rate_hz"] == pytest.approx(100.0)


def test_commands_are_followed(simulator_bench):
    bench = simulator_bench(robot_description=ARM, publish_rate_hz=100.0)
    bench.connect()
    bench.send(["b", "a"], [0.2, 0.4], [[0.0, 0.1], [-0.5, 0.3]], [[0, 0], [0, 0]])
    bench.until(
        lambda: np.allclose(bench.positions(), [0.3, -0.5], atol=0.01), "trajectory"
    )
    bench.commands.publish(Float64MultiArray(data=[-0.2, 0.1]))
    bench.until(
        lambda: np.allclose(bench.positions(), [-0.2, 0.1], atol=0.01), "command"
    )


def test_a_stamped_trajectory_begins_at_its_time(simulator_bench):
    bench = simulator_bench(robot_description=ARM, publish_rate_hz=100.0)
    bench.connect()
    begin = stamp_to_ns(bench.received["joint_states"][-1].header.stamp) + 500_000_000
    bench.send(["a"], [0.1], [[0.4]], stamp=ns_to_stamp(begin))
    bench.until(
        lambda: np.allclose(bench.positions(), [0.4, 0.0], atol=0.01), "trajectory"
    )
    moved = [
        stamp_to_ns(msg.header.stamp)
        for msg in bench.received["joint_states"]
        if msg.position[0] > 0.05
    ]
    assert begin < min(moved) < begin + 200_000_000


def test_bad_commands_are_refused_with_the_mend(simulator_bench, warnings):
    bench = simulator_bench(robot_description=ARM, publish_rate_hz=100.0)
    bench.connect()
    bench.send(["a", "b"], [0.3], [[0.2, 0.2]])
    bench.until(
        lambda: np.allclose(bench.positions(), 0.2, atol=0.01), "good trajectory"
    )
    now = stamp_to_ns(bench.received["joint_states"][-1].header.stamp)
    for message, send in (
        (
            "unknown joint 'x': the robot's joints are a, b",
            lambda: bench.send(["x"], [1], [[1]]),
        ),
        (
            "positions of point 0 are not all finite",
            lambda: bench.send(["a"], [1], [[np.nan]]),
        ),
        (
            "point 0 has 2 positions for 1 joints",
            lambda: bench.send(["a"], [1], [[1, 2]]),
        ),
        (
            "times must start at 0 or later",
            lambda: bench.send(["a"], [2, 1], [[1], [2]]),
        ),
        (
            "stamp it by the clock of joint_states",
            lambda: bench.send(["a"], [1], [[1]], stamp=ns_to_stamp(now + 10**12)),
        ),
        (
            "s before it came",
            lambda: bench.send(["a"], [1], [[1]], stamp=ns_to_stamp(now - 10**12)),
        ),
        (
            "got 3 joint commands, expected 2 in the order a, b",
            lambda: bench.commands.publish(Float64MultiArray(data=[1.0, 2.0, 3.0])),
        ),
        (
            "command for 'b' is not a finite number",
            lambda: bench.commands.publish(Float64MultiArray(data=[1.0, float("inf")])),
        ),
    ):
        warnings.clear()
        send()
        bench.until(lambda: warnings, f"warning {message!r}")
        assert message in warnings[0]
        assert warnings[0].startswith(
            ("joint_trajectory refused: ", "joint_commands refused: ")
        )
    bench.spin(0.2)
    np.testing.assert_allclose(bench.positions(), 0.2, atol=0.01)
