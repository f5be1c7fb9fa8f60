"""JointInput: joints are matched by name, and every defect of a message is named."""

import math

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from sensor_msgs.msg import JointState

from com_ros.exceptions import ParameterError
from com_ros.joint_input import JointInput

NAMES = ["hip", "knee", "ankle"]
TIMEOUT = 0.1


def message(names=NAMES, position=(0.1, 0.2, 0.3), velocity=(), effort=(), t=1.0):
    msg = JointState(name=list(names), position=list(position))
    msg.velocity, msg.effort = list(velocity), list(effort)
    msg.header.stamp = Time(sec=int(t), nanosec=round((t - int(t)) * 1e9))
    return msg


@pytest.fixture
def joints():
    return JointInput(NAMES, TIMEOUT)


def accept(joints, msg, received=5.0):
    sample = joints.update(msg, int(received * 1e9))
    assert sample is not None
    assert sample.error == ""
    return sample


def refuse(joints, msg):
    sample = joints.update(msg, 5_000_000_000)
    assert sample is not None
    assert sample.error
    for values in (sample.position, sample.velocity, sample.effort):
        assert values.shape == (len(NAMES),)
        assert np.isnan(values).all()
    return sample.error


def test_the_model_s_own_order(joints):
    sample = accept(joints, message(velocity=(1, 2, 3), effort=(4, 5, 6)))
    np.testing.assert_array_equal(sample.position, [0.1, 0.2, 0.3])
    np.testing.assert_array_equal(sample.velocity, [1, 2, 3])
    np.testing.assert_array_equal(sample.effort, [4, 5, 6])
    assert sample.warnings == ()


def test_any_order_that_changes_from_message_to_message(joints):
    rng = np.random.default_rng(1)
    for step in range(20):
        order = rng.permutation(3)
        q, qd, tau = rng.normal(size=(3, 3))
        sample = accept(
            joints,
            message(
                [NAMES[i] for i in order],
                q[order],
                qd[order],
                tau[order],
                t=1 + 0.01 * step,
            ),
        )
        np.testing.assert_array_equal(sample.position, q)
        np.testing.assert_array_equal(sample.velocity, qd)
        np.testing.assert_array_equal(sample.effort, tau)
        assert sample.warnings == ()


def test_extra_joints_do_not_matter_even_when_broken(joints):
    names = ["gripper", "ankle", "knee", "gripper", "hip"]
    sample = accept(
        joints, message(names, [math.nan, 3, 2, 9, 1], [math.nan, 6, 5, 9, 4])
    )
    np.testing.assert_array_equal(sample.position, [1, 2, 3])
    np.testing.assert_array_equal(sample.velocity, [4, 5, 6])
    assert sample.warnings == ()


def test_missing_joints_are_named_with_the_mend(joints):
    error = refuse(joints, message(["hip", "wheel"], [0.1, 0.2]))
    assert error == (
        "joint_states lacks 2 of 3 joints: knee, ankle; it names hip, wheel; "
        "publish them, or list those that no driver reports in assumed_joints"
    )


def test_no_joints_at_all(joints):
    assert "lacks 3 of 3 joints: hip, knee, ankle; it names none" in refuse(
        joints, message([], [])
    )


def test_duplicated_joints(joints):
    error = refuse(joints, message([*NAMES, "knee"], [1, 2, 3, 4]))
    assert error == (
        "joint_states names knee more than once: a message may carry each joint once"
    )


@pytest.mark.parametrize("count", [2, 4])
def test_wrong_number_of_positions(joints, count):
    error = refuse(joints, message(position=[0.1] * count))
    assert f"joint_states has {count} positions for 3 names" in error
    assert "one position for each name" in error


def test_messages_without_positions_leave_them_as_they_are(joints):
    assert "no positions" in refuse(joints, message(position=(), velocity=(1, 2, 3)))
    accept(joints, message(t=1.0))
    for values in ({"velocity": (1, 2, 3)}, {"effort": (1, 2, 3)}, {}):
        alone = message(position=(), t=1.01, **values)
        assert joints.update(alone, 5_000_000_000) is None
    wheel = message(["wheel"], (), (1.0,), t=1.02)
    assert joints.update(wheel, 5_000_000_000) is None
    sample = accept(joints, message(position=(0.2, 0.3, 0.4), t=1.02))
    np.testing.assert_array_equal(sample.position, [0.2, 0.3, 0.4])
    assert sample.warnings == ()


def test_two_publishers_that_contradict_each_other_are_named(joints):
    """Each with its own stamps; one of them sends zeros for hip and knee."""
    for k in range(100):
        accept(joints, message(position=(0.3, -0.2, 0.1), t=1.0 + 0.02 * k))
        other = message(NAMES[:2], (0.0, 0.0), t=1.007 + 0.02 * k)
        sample = accept(joints, other)
    (warning,) = sample.warnings
    assert "contradict each other: hip, knee jump there and back" in warning
    for k in range(600):
        sample = accept(joints, message(position=(0.3, -0.2, 0.1), t=4.0 + 0.02 * k))
    assert sample.warnings == ()


def test_joints_that_move_fast_or_shake_are_no_contradiction(joints):
    rng = np.random.default_rng(0)
    for k in range(500):
        t = 0.01 * k
        q = 0.5 * np.sin(2.0 * np.pi * 3.0 * t + np.arange(3)) + rng.normal(0, 2e-3, 3)
        assert accept(joints, message(position=q, t=1.0 + t)).warnings == ()


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_positions_that_are_not_finite(joints, bad):
    error = refuse(joints, message(position=[0.1, bad, 0.3]))
    assert "position that is not finite: knee" in error
    accept(joints, message(t=1.1))


def test_empty_velocity_and_effort_are_not_a_defect(joints):
    sample = accept(joints, message())
    assert np.isnan(sample.velocity).all()
    assert np.isnan(sample.effort).all()
    assert sample.warnings == ()


def test_wrong_number_of_velocities(joints):
    sample = accept(joints, message(velocity=[1, 2]))
    np.testing.assert_array_equal(sample.position, [0.1, 0.2, 0.3])
    assert np.isnan(sample.velocity).all()
    assert sample.warnings == (
        "joint_states has 2 velocities for 3 names: "
        "a message must carry one for each name, or none",
    )


def test_velocity_that_is_not_finite(joints):
    sample = accept(joints, message(velocity=[1, math.nan, 3]))
    assert np.isnan(sample.velocity[1])
    assert sample.warnings == (
        "joint_states has a velocity that is not finite: knee; check the joint's driver",
    )


def test_wrong_number_of_efforts_leaves_effort_unknown(joints):
    sample = accept(joints, message(effort=[1, 2]))
    assert np.isnan(sample.effort).all()


def test_a_velocity_that_stops_coming_is_unknown_again(joints):
    accept(joints, message(velocity=[1, 2, 3]))
    assert np.isnan(accept(joints, message(t=1.01)).velocity).all()


def test_stamps_that_go_back_or_repeat(joints):
    assert accept(joints, message(t=2.0)).warnings == ()
    (again,) = accept(joints, message(t=2.0)).warnings
    assert "joint_states repeats a stamp" in again
    (back,) = accept(joints, message(position=[7, 8, 9], t=1.5)).warnings
    assert "the stamp of joint_states went back by 0.500 s" in back
    sample = accept(
        joints, message(position=[1, 2, 3], t=1.51)
    )  # a recording starts again
    assert sample.warnings == ()
    np.testing.assert_array_equal(sample.position, [1, 2, 3])


def test_no_stamp(joints):
    assert joints.update(message(t=0.0), 0).warnings == ()  # the clock has not started
    sample = joints.update(message(t=0.0), 1)
    assert sample.warnings == (
        "joint_states has no stamp: its driver must fill header.stamp",
    )


def test_a_first_stamp_of_zero_is_no_fault(joints):
    assert joints.update(message(t=0.0), 1_700_000_000 * 10**9).warnings == ()


def test_a_clock_that_starts_is_no_fault(joints):
    joints.update(message(t=0.0), 1_700_000_000 * 10**9)
    joints.restart()  # as RobotNode does when the first stamp comes
    assert accept(joints, message(t=0.01)).warnings == ()


def test_parts_of_several_publishers_are_merged(joints):
    assert "lacks 2 of 3 joints: knee, ankle" in refuse(
        joints, message(["hip"], [1.0], t=1.0)
    )
    sample = accept(joints, message(["ankle", "knee"], [3, 2], [6, 5], t=1.05))
    np.testing.assert_array_equal(sample.position, [1, 2, 3])
    np.testing.assert_array_equal(sample.velocity, [math.nan, 5, 6])
    sample = accept(
        joints, message(["hip"], [1.5], [4.0], t=1.04)
    )  # they take turns, each rising
    np.testing.assert_array_equal(sample.position, [1.5, 2, 3])
    np.testing.assert_array_equal(sample.velocity, [4, 5, 6])
    assert sample.spread_s == pytest.approx(0.01)
    assert sample.warnings == ()


def test_a_part_that_grows_old_is_not_used(joints):
    refuse(joints, message(["hip"], [1.0], t=1.0))
    accept(joints, message(["knee", "ankle"], [2, 3], t=1.05))
    error = refuse(joints, message(["knee", "ankle"], [2, 3], t=1.2))
    assert error == (
        "joint_states: 1 of 3 joints are 0.20 s away from the others: hip; "
        "check their publisher and its clock, or raise joint_timeout"
    )


def test_a_part_from_the_future_is_not_used(joints):
    refuse(joints, message(["hip"], [1.0], t=9.0))
    assert "8.00 s away from the others: hip" in refuse(
        joints, message(["knee", "ankle"], [2, 3], t=1.0)
    )


def test_a_broken_part_is_not_replaced_by_its_last_value(joints):
    accept(joints, message(t=1.0))
    refuse(joints, message(["hip"], [math.nan], t=1.01))
    assert "lacks 1 of 3 joints: hip" in refuse(
        joints, message(["knee", "ankle"], [2, 3], t=1.02)
    )


def test_unstamped_parts_are_merged_by_the_time_of_receipt(joints):
    joints.update(message(["hip"], [1.0], t=0.0), 1_000_000_000)
    sample = joints.update(message(["knee", "ankle"], [2, 3], t=0.0), 1_050_000_000)
    assert sample.error == ""
    sample = joints.update(message(["knee", "ankle"], [2, 3], t=0.0), 2_000_000_000)
    assert "away from the others: hip" in sample.error


def test_messages_about_other_joints_are_left_aside(joints):
    gripper = message(["gripper"], [0.5])
    assert "lacks 3 of 3 joints" in refuse(joints, gripper)
    accept(joints, message(t=1.0))
    assert joints.update(message(["gripper"], [0.5], t=1.01), 0) is None
    assert "away from the others" in refuse(joints, message(["gripper"], [0.5], t=3.0))


def test_assumed_joints():
    joints = JointInput(NAMES, TIMEOUT, {"ankle": 0.7})
    sample = accept(joints, message(["knee", "hip"], [2, 1], [5, 4]))
    np.testing.assert_array_equal(sample.position, [1, 2, 0.7])
    np.testing.assert_array_equal(sample.velocity, [4, 5, 0])


def test_a_measured_joint_wins_over_its_assumed_position():
    joints = JointInput(NAMES, TIMEOUT, {"ankle": 0.7})
    np.testing.assert_array_equal(
        accept(joints, message(t=1.0)).position, [0.1, 0.2, 0.3]
    )
    assert "away from the others: ankle" in refuse(
        joints, message(["hip", "knee"], [1, 2], t=2.0)
    )


def test_all_joints_assumed():
    joints = JointInput(NAMES, TIMEOUT, dict.fromkeys(NAMES, 0.5))
    np.testing.assert_array_equal(accept(joints, message([], [])).position, [0.5] * 3)


def test_an_assumed_joint_must_be_the_model_s():
    with pytest.raises(
        ParameterError, match="'assumed_joints' is 'elbow': valid: hip, knee, ankle"
    ):
        JointInput(NAMES, TIMEOUT, {"elbow": 0.0})


def test_an_assumed_position_beyond_its_limits_never_becomes_a_sample():
    """As degrees would; the first message names the value, later ones the joint."""
    joints = JointInput(NAMES, TIMEOUT, {"ankle": 1e9})
    first = refuse(joints, message(["knee", "hip"], [2, 1]))
    assert "ankle is 1e+09, expected" in first
    later = refuse(joints, message(["knee", "hip"], [2, 1], t=1.1))
    assert "lacks 1 of 3 joints: ankle" in later
    accept(joints, message(t=1.2))  # once it is measured


def test_a_velocity_that_cannot_be_is_not_called_infinite(joints):
    sample = accept(joints, message(velocity=[1.0, 1e12, 3.0]))
    assert np.isnan(sample.velocity[1])
    (warning,) = sample.warnings
    assert "knee is 1e+12, expected" in warning


def test_a_robot_without_joints():
    sample = accept(JointInput([], TIMEOUT), message(["other"], [1.0]))
    assert sample.position.shape == (0,)


def test_samples_do_not_share_memory(joints):
    msg = message()
    first = accept(joints, msg)
    msg.position[0] = 99.0
    accept(joints, message(position=[7, 8, 9], t=2.0))
    np.testing.assert_array_equal(first.position, [0.1, 0.2, 0.3])


def test_names_that_change_for_ever_do_not_fill_the_memory(joints):
    for i in range(1000):
        joints.update(message([f"j{i}"], [0.0]), 0)
    assert len(joints._layouts) <= 64
    accept(joints, message(t=2.0))
