"""Which IMU reading goes with which joint sample, and when."""

import math

import numpy as np
import pytest
from geometry_msgs.msg import Quaternion, Vector3
from sensor_msgs.msg import Imu

from com_ros.inputs import UNKNOWN_IMU, ImuPairing, imu_to_values

MS = 1_000_000


def feed(events, timeout_s=0.02, wait_s=0.002):
    """Pairs (joint ms, IMU ms or None) in the order they come; events are ("j" | "i", ms)."""
    pairing, out, values = ImuPairing(timeout_s, wait_s), [], {}
    for kind, ms in events:
        if kind == "i":
            values[ms] = imu_to_values(Imu(angular_velocity=Vector3(x=float(ms))))
            pairs = pairing.add_imu(ms * MS, values[ms])
        else:
            pairs = pairing.add_joints(ms * MS, ms)
        out += [(p, kind) for p in pairs]
    return out


def described(pairs):
    return [
        (
            p.joints,
            None if p.imu is UNKNOWN_IMU else int(p.imu.angular_velocity[0]),
            kind,
        )
        for p, kind in pairs
    ]


def test_joints_wait_for_the_imu_of_the_same_stamp():
    events = [("i", 0), ("j", 1), ("i", 1), ("j", 2), ("i", 2)]
    assert described(feed(events)) == [(1, 1, "i"), (2, 2, "i")]


def test_an_imu_that_comes_first_is_not_waited_for():
    assert described(feed([("i", 1), ("j", 1), ("i", 2), ("j", 2)])) == [
        (1, 1, "j"),
        (2, 2, "j"),
    ]


def test_a_slow_imu_is_waited_for_for_a_bounded_time():
    events = [("i", 0), ("j", 1), ("j", 2), ("j", 3), ("i", 3), ("j", 4)]
    pairs = feed(events)
    assert described(pairs) == [(1, 0, "j"), (2, 3, "i"), (3, 3, "i")]
    assert [p.age_s for p, _ in pairs] == pytest.approx([0.001, 0.001, 0.0])


def test_bursts_of_one_topic_find_their_readings():
    first = [
        ("i", 0),
        *(("j", k) for k in range(1, 9)),
        *(("i", k) for k in range(1, 9)),
    ]
    second = [*(("i", k) for k in range(9, 15)), *(("j", k) for k in range(9, 15))]
    pairs = feed(first + second, wait_s=0.02)
    assert [(joints, imu) for joints, imu, _ in described(pairs)] == [
        (k, k) for k in range(1, 15)
    ]


def test_two_parts_of_the_joints_are_one_sample():
    pairing = ImuPairing(0.02, 0.01)
    pairing.add_imu(0, UNKNOWN_IMU)
    assert pairing.add_joints(MS, "half") == pairing.add_joints(MS, "whole") == []
    assert [p.joints for p in pairing.add_imu(MS, UNKNOWN_IMU)] == ["whole"]


def test_the_nearest_reading_is_taken():
    events = [("i", 0), ("j", 4), ("i", 5), ("j", 6), ("i", 9)]
    assert described(feed(events, wait_s=0.01)) == [(4, 5, "i"), (6, 5, "i")]


def test_without_imu_nothing_waits():
    pairs = feed([("j", 1), ("j", 2)])
    assert described(pairs) == [(1, None, "j"), (2, None, "j")]
    assert all(math.isnan(p.age_s) for p, _ in pairs)


def test_an_imu_that_fell_silent_is_not_waited_for():
    events = [("i", 0), ("j", 1), ("j", 20), ("j", 21), ("j", 22), ("i", 22), ("j", 23)]
    got = described(feed(events))
    assert got == [(1, 0, "j"), (20, 0, "j"), (21, None, "j"), (22, None, "j")]


def test_the_last_sample_is_not_lost():
    pairing = ImuPairing(0.02, 0.01)
    pairing.add_imu(0, UNKNOWN_IMU)
    assert pairing.add_joints(1 * MS, "last") == []
    assert [p.joints for p in pairing.flush()] == ["last"]
    assert pairing.flush() == []


def test_a_clock_that_goes_back():
    events = [("i", 100), ("j", 100), ("i", 1), ("j", 1), ("j", 2), ("i", 2)]
    assert described(feed(events)) == [(100, 100, "j"), (1, 1, "j"), (2, 2, "i")]


def test_values_of_a_message():
    msg = Imu(
        orientation=Quaternion(x=1.0, w=0.0),
        angular_velocity=Vector3(x=1.0, y=2.0, z=3.0),
        linear_acceleration=Vector3(x=4.0, y=5.0, z=6.0),
    )
    values = imu_to_values(msg)
    np.testing.assert_array_equal(values.angular_velocity, [1, 2, 3])
    np.testing.assert_array_equal(values.specific_force, [4, 5, 6])
    np.testing.assert_allclose(values.R_world_imu, np.diag([1, -1, -1]), atol=1e-15)


def test_values_that_a_message_disowns():
    msg = Imu()  # w = 1, a valid orientation
    for name in ("orientation", "angular_velocity", "linear_acceleration"):
        getattr(msg, f"{name}_covariance")[0] = -1.0
    values = imu_to_values(msg)
    for array in (values.angular_velocity, values.specific_force, values.R_world_imu):
        assert np.isnan(array).all()
