"""Inputs that grow old: age, timeouts, IMU, wrenches, throttled warnings."""

import math
from dataclasses import replace

import numpy as np
import pytest
from geometry_msgs.msg import Quaternion, WrenchStamped
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import Imu

from com_estimation.whole_body.stance import point_foot
from com_ros.conversions import rotation_to_quaternion
from com_ros.diagnostics import ThrottledLog
from com_ros.inputs import ImuInput, InputWatch, Latest, WrenchInputs

MS = 1_000_000


class FakeClock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


class FakeLogger:
    def __init__(self):
        self.lines = []

    def warning(self, text):
        self.lines.append(text)


# --- latest values -------------------------------------------------------------------------------
def test_latest():
    latest = Latest(0.1)
    assert latest.value is None
    assert latest.current(0) is None
    assert latest.age_s(0) == math.inf
    latest.set("a", 1000 * MS)
    assert latest.current(1100 * MS) == "a"
    assert latest.current(1101 * MS) is None
    assert latest.current(899 * MS) is None  # from the future
    assert latest.value == "a"
    assert latest.age_s(1250 * MS) == 0.25


def test_latest_gives_the_value_of_the_time_asked_for():
    """A node that is behind with joint_states has newer messages of the IMU than it needs."""
    latest = Latest(0.1)
    for time_ms in (0, 10, 20, 500):
        latest.set(f"at {time_ms}", time_ms * MS)
    assert latest.current(15 * MS) == "at 10"
    assert latest.current(20 * MS) == "at 20"
    assert latest.current(450 * MS) == "at 500"  # the one before is too old
    assert latest.current(250 * MS) is None
    assert latest.value == "at 500"


def test_latest_starts_anew_when_the_clock_goes_back():
    latest = Latest(0.1)
    latest.set("old", 5000 * MS)
    latest.set("new", 0)
    assert latest.current(5000 * MS) is None
    assert latest.current(10 * MS) == "new"


def test_latest_describes_why_it_has_nothing():
    latest = Latest(0.1)
    assert latest.describe("/imu", 0) == "/imu has not been received"
    latest.set("a", 1000 * MS)
    assert latest.describe("/imu", 1250 * MS) == "/imu is stale, 0.25 s old"
    assert latest.describe("/imu", 500 * MS) == (
        "/imu is 0.50 s ahead of joint_states (other clock, or overloaded node)"
    )


# --- timeouts ------------------------------------------------------------------------------------
def test_a_timeout_is_reported_once_each_time():
    clock = FakeClock()
    watch = InputWatch(0.5, clock)
    clock.now += 1.0
    assert watch.stale
    assert not watch.timed_out()  # it was never received
    watch.received()
    assert not watch.stale
    clock.now += 0.4
    assert not watch.timed_out()
    clock.now += 0.2
    assert watch.timed_out()
    assert watch.age_s == pytest.approx(0.6)
    assert not watch.timed_out()
    watch.received()
    clock.now += 0.6
    assert watch.timed_out()


# --- throttled warnings --------------------------------------------------------------------------
def test_each_kind_of_warning_once_a_period():
    clock, logger = FakeClock(), FakeLogger()
    log = ThrottledLog(logger, 5.0, clock)
    assert log.warn("imu", "imu is silent")
    assert not log.warn("imu", "imu is silent still")
    assert log.warn("joints", "joints are silent")
    clock.now += 5.0
    assert log.warn("imu", "imu is silent yet")
    assert logger.lines == ["imu is silent", "joints are silent", "imu is silent yet"]


# --- imu -----------------------------------------------------------------------------------------
def imu_message(R, frame="imu_link"):
    msg = Imu(orientation=rotation_to_quaternion(R))
    msg.header.frame_id = frame
    return msg


def test_imu_reading():
    R = Rotation.from_euler("xyz", [0.1, 0.2, 0.3]).as_matrix()
    imu = ImuInput(0.1, "/imu")
    imu.update(imu_message(R), 1000 * MS)
    reading = imu.reading(1050 * MS)
    np.testing.assert_allclose(reading.R_world_imu, R, atol=1e-12)
    assert (reading.frame, reading.problem) == ("imu_link", "")


def test_imu_that_is_silent_or_stale():
    imu = ImuInput(0.1, "/imu")
    reading = imu.reading(0)
    assert np.isnan(reading.R_world_imu).all()
    assert reading.problem == (
        "/imu has not been received: "
        "start the imu driver, or set use_imu to false to assume level ground"
    )
    imu.update(imu_message(np.eye(3)), 1000 * MS)
    assert (
        "/imu is stale, 0.50 s old: start the imu driver"
        in imu.reading(1500 * MS).problem
    )


def test_the_first_imu_message_may_be_on_its_way():
    imu = ImuInput(0.1)
    assert not imu.settling(1000 * MS)
    imu.reading(1000 * MS)
    assert imu.settling(1000 * MS)
    assert imu.settling(1099 * MS)
    assert not imu.settling(1100 * MS)
    imu.update(imu_message(np.eye(3)), 1010 * MS)
    assert not imu.settling(1020 * MS)


@pytest.mark.parametrize(
    "orientation", [Quaternion(w=0.0), Quaternion(w=math.nan), Quaternion(x=1.0, w=1.0)]
)
def test_imu_with_a_broken_orientation(orientation):
    imu = ImuInput(0.1, "/imu")
    msg = imu_message(np.eye(3))
    msg.orientation = orientation
    imu.update(msg, 1000 * MS)
    reading = imu.reading(1000 * MS)
    assert np.isnan(reading.R_world_imu).all()
    assert reading.problem.startswith("/imu: quaternion (x, y, z, w) = ")
    assert "set use_imu to false" in reading.problem


def test_imu_that_says_it_has_no_orientation():
    imu = ImuInput(0.1, "/imu")
    msg = imu_message(np.eye(3))
    msg.orientation_covariance[0] = -1.0
    imu.update(msg, 1000 * MS)
    assert "/imu: imu carries no orientation" in imu.reading(1000 * MS).problem


# --- wrenches ------------------------------------------------------------------------------------
def foot(name, sign=1):
    return replace(point_foot(name), wrench_sign=sign)


def wrench_message(fz):
    msg = WrenchStamped()
    msg.wrench.force.z = fz
    return msg


def test_wrenches():
    inputs = WrenchInputs([foot("l"), foot("r", -1)], 0.1)
    assert inputs.forces(1000 * MS) == (None, "")  # a robot without force sensors
    inputs.update(0, wrench_message(30.0), 1000 * MS)
    forces, problem = inputs.forces(1000 * MS)
    assert forces is None
    assert problem == "r/wrench has not been received: check the force sensor's driver"
    inputs.update(
        1, wrench_message(-40.0), 1000 * MS
    )  # the force of the robot on the ground
    forces, problem = inputs.forces(1000 * MS)
    np.testing.assert_array_equal(forces, [[0, 0, 30], [0, 0, 40]])
    assert problem == ""
    assert "l/wrench is stale, 0.30 s old" in inputs.forces(1300 * MS)[1]


def test_a_wrench_that_is_not_finite():
    inputs = WrenchInputs([foot("l")], 0.1)
    inputs.update(0, wrench_message(math.nan), 1000 * MS)
    forces, problem = inputs.forces(1000 * MS)
    assert forces is None
    assert problem == "l/wrench is not finite: check its driver"
