"""Numbers that cannot be: bounds from the robot, with room for spikes and bad limits."""

import math

import numpy as np
import pytest
from geometry_msgs.msg import Vector3, WrenchStamped
from sensor_msgs.msg import Imu, JointState

from com_model import RobotModel
from com_ros.input_limits import InputBounds, InputLimits
from com_ros.joint_input import JointInput

MASS = 10.0


def urdf(joints):
    """A chain of links of 1 kg in all, with (type, limit attributes) joints."""
    inertia = '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
    links = [
        f'<link name="l0"><inertial><mass value="{MASS}"/>{inertia}</inertial></link>'
    ]
    for i, (kind, limit) in enumerate(joints):
        links.append(
            f'<link name="l{i + 1}"/><joint name="j{i}" type="{kind}"><parent link="l{i}"/>'
            f'<child link="l{i + 1}"/><axis xyz="0 0 1"/>{limit}</joint>'
        )
    return RobotModel.from_urdf(f'<robot name="chain">{"".join(links)}</robot>')


NARROW = '<limit lower="-1" upper="2" velocity="20" effort="200"/>'
UNSET = '<limit lower="0" upper="0" velocity="0" effort="0"/>'
JOINTS = [
    ("revolute", NARROW),
    ("continuous", ""),
    ("prismatic", NARROW),
    ("revolute", UNSET),
]


@pytest.fixture
def joints():
    model = urdf(JOINTS)
    made = JointInput(model.joint_names, 0.1)
    made.set_bounds(InputBounds(InputLimits(), model))
    return made


def update(joints, place, position=0.0, velocity=0.0, effort=0.0):
    columns = np.zeros((3, 4))
    columns[:, place] = position, velocity, effort
    q, qd, tau = columns.tolist()
    return joints.update(
        JointState(name=list(joints._names), position=q, velocity=qd, effort=tau), 0
    )


@pytest.mark.parametrize(
    ("place", "position"),
    [(0, 8.2), (0, -7.2), (1, 1e6), (2, 8.2), (3, 6.2), (3, -6.2)],
)
def test_positions_that_may_be(joints, place, position):
    """A slip of the encoder by a turn, a wheel that has turned far, limits left at zero."""
    assert update(joints, place, position).position[place] == position
    assert joints.implausible == 0


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("position", [1e300, -1e300, math.inf, 1e8])
def test_positions_that_cannot_be(joints, place, position):
    sample = update(joints, place, position)
    assert np.isnan(sample.position).all()
    assert f"j{place}" in sample.error
    assert "check the joint's driver" in sample.error
    assert joints.implausible == 1
    assert update(joints, place).error == ""  # and recovers at once


def test_what_was_got_and_expected_is_said(joints):
    assert update(joints, 0, 1e300).error == (
        "joint_states has a position that cannot be: j0 is 1e+300, expected -7.3 to 8.3; check the "
        "joint's driver and its unit (rad, m) and the limits in the URDF, or raise "
        "input_limits.position_margin"
    )


def test_a_joint_that_cannot_be_is_not_replaced_by_its_last_value(joints):
    update(joints, 0)
    update(joints, 0, 1e300)
    others = JointState(name=["j1", "j2", "j3"], position=[0.0] * 3)
    assert "lacks 1 of 4 joints: j0" in joints.update(others, 0).error


@pytest.mark.parametrize(
    ("values", "row"),
    [({"velocity": 199.0}, 1), ({"effort": 1990.0}, 2), ({"velocity": -199.0}, 1)],
)
def test_spikes_of_velocity_and_effort_pass(joints, values, row):
    sample = update(joints, 0, **values)
    assert (sample.velocity, sample.effort)[row - 1][0] == next(iter(values.values()))
    assert sample.warnings == ()


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("what", ["velocity", "effort"])
@pytest.mark.parametrize("value", [1e300, -1e300, 1e6])
def test_velocity_and_effort_that_cannot_be_are_not_known(joints, place, what, value):
    sample = update(joints, place, **{what: value})
    assert sample.error == ""
    values = getattr(sample, what)
    assert np.isnan(values[place])
    assert np.isfinite(np.delete(values, place)).all()
    assert f"{what} that cannot be: j{place} is" in sample.warnings[0]


def test_limits_of_zero_leave_room_by_the_robot_s_weight(joints):
    assert update(joints, 3, velocity=90.0, effort=900.0).warnings == ()


def test_without_a_model_only_the_absurd_is_dropped():
    joints = JointInput(["a", "b", "c", "d"], 0.1)
    assert update(joints, 0, position=1e5, velocity=5e3, effort=5e4).warnings == ()
    assert update(joints, 0, position=1e300).error


def test_the_factor_is_a_parameter():
    model = urdf(JOINTS)
    joints = JointInput(model.joint_names, 0.1)
    joints.set_bounds(
        InputBounds(InputLimits(position_margin=0.1, factor=100.0), model)
    )
    assert update(joints, 0, 2.2).error
    assert update(joints, 0, 0.0, velocity=1900.0, effort=19000.0).warnings == ()


# --- imu and wrenches --------------------------------------------------------------------------
def imu(w=(0.0, 0.0, 0.0), a=(0.0, 0.0, 9.81)):
    made = Imu()
    made.angular_velocity, made.linear_acceleration = (
        Vector3(x=x, y=y, z=z) for x, y, z in (w, a)
    )
    return made


def wrench(fz, tx=0.0):
    made = WrenchStamped()
    made.wrench.force.z, made.wrench.torque.x = fz, tx
    return made


@pytest.fixture
def bounds():
    return InputBounds(InputLimits(), urdf(JOINTS))


@pytest.mark.parametrize(
    "msg",
    [
        imu(),
        imu(w=(70.0, 70.0, 70.0)),  # beyond any gyroscope
        imu(a=(0.0, 0.0, 1900.0)),
        imu(w=(math.nan,) * 3),  # not known
        imu(a=(math.nan, 0.0, 1.0)),
        wrench(9000.0, 9000.0),
        wrench(math.nan),
        JointState(position=[1e300]),  # not its business
    ],
)
def test_messages_that_pass(bounds, msg):
    assert bounds.problem(msg, "topic") == ""


@pytest.mark.parametrize("value", [1e160, -1e300, math.inf, 3000.0])
def test_imu_that_cannot_be(bounds, value):
    problem = bounds.problem(imu(w=(0.0, value, 0.0)), "imu")
    assert problem.startswith(
        f"imu: the angular velocity is (0, {value:.4g}, 0) rad/s, expected at"
    )
    assert "raise input_limits.angular_velocity" in problem
    problem = bounds.problem(imu(a=(value, math.nan, 0.0)), "imu")
    assert "the acceleration is" in problem
    assert "check the driver and its unit" in problem


@pytest.mark.parametrize("msg", [wrench(1e300), wrench(-1e4), wrench(1.0, math.inf)])
def test_wrenches_that_cannot_be(bounds, msg):
    problem = bounds.problem(msg, "left/wrench")
    assert problem.startswith("left/wrench: the force is (0, 0,")
    assert (
        "expected at most 9810, 100 times the robot's weight: check the force"
        in problem
    )
