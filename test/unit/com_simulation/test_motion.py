"""Joint targets over time, and the refusal of broken commands."""

import numpy as np
import pytest

from com_simulation.exceptions import CommandError
from com_simulation.physics.motion import (
    JointMotion,
    Trajectory,
    read_targets,
    read_trajectory,
)

NAMES = ("a", "b", "c")


def trajectory(
    names=("a", "b", "c"), times=(1.0, 2.0), positions=None, velocities=None
):
    positions = positions or [[float(i)] * len(names) for i in range(1, len(times) + 1)]
    return read_trajectory(
        NAMES, names, times, positions, velocities or [()] * len(times)
    )


def test_lines_between_points_from_where_the_targets_are():
    motion = JointMotion([10.0, 0.0, 0.0])
    motion.follow(5.0, 5.0, trajectory())
    for t, expected in (
        (4.0, 10.0),
        (5.0, 10.0),
        (5.5, 5.5),
        (6.0, 1.0),
        (6.5, 1.5),
        (9.0, 2.0),
    ):
        assert motion.target(t)[0] == pytest.approx(expected)
    assert motion.moving(6.9)
    assert not motion.moving(7.0)


def test_cubics_keep_position_and_velocity_at_the_points():
    motion = JointMotion(np.zeros(3))
    velocities = [[1.0, -1.0, 0.0], [0.0, 0.5, 0.0]]
    positions = [[1.0, 2.0, 3.0], [2.0, 2.5, 3.0]]
    motion.follow(0.0, 0.0, trajectory(positions=positions, velocities=velocities))
    h = 1e-6
    for time, position, velocity in zip((1.0, 2.0), positions, velocities, strict=True):
        for side in (-1.0, 1.0) if time < 2.0 else (-1.0,):
            near = motion.target(time + side * h)
            np.testing.assert_allclose(near, position, atol=1e-5)
            slope = (near - motion.target(time)) / (side * h)
            np.testing.assert_allclose(slope, velocity, atol=1e-4)


def test_cubic_is_exact_for_a_cubic():
    motion = JointMotion(np.zeros(3))
    times = [1.0, 2.0, 4.0]
    positions = [[t**3, t**2, t] for t in times]
    velocities = [[3 * t**2, 2 * t, 1.0] for t in times]
    motion.follow(
        0.0, 0.0, trajectory(times=times, positions=positions, velocities=velocities)
    )
    t = 2.7
    np.testing.assert_allclose(motion.target(t), [t**3, t**2, t], atol=1e-12)


def test_joints_are_matched_by_name_and_the_others_stand():
    motion = JointMotion([1.0, 2.0, 3.0])
    motion.follow(
        0.0, 0.0, trajectory(names=("c", "a"), times=[1.0], positions=[[30.0, 10.0]])
    )
    np.testing.assert_allclose(motion.target(2.0), [10.0, 2.0, 30.0])


def test_a_trajectory_that_begins_later_leaves_the_motion_until_then():
    motion = JointMotion(np.zeros(3))
    motion.follow(0.0, 0.0, trajectory(times=[10.0], positions=[[10.0] * 3]))
    motion.follow(0.0, 4.0, trajectory(times=[1.0], positions=[[0.0] * 3]))
    assert motion.target(3.0)[0] == pytest.approx(3.0)
    assert motion.target(4.0)[0] == pytest.approx(4.0)
    assert motion.target(4.5)[0] == pytest.approx(2.0)
    assert motion.target(6.0)[0] == pytest.approx(0.0)


def test_points_that_are_due_are_passed_over_without_a_jump():
    motion = JointMotion(np.zeros(3))
    motion.follow(
        2.5,
        1.0,
        trajectory(times=[0.0, 1.0, 2.0], positions=[[5.0] * 3, [6.0] * 3, [7.0] * 3]),
    )
    assert motion.target(2.5)[0] == 0.0
    assert motion.target(2.75)[0] == pytest.approx(3.5)
    assert motion.target(3.0)[0] == pytest.approx(7.0)


def test_a_single_point_at_time_zero_is_jumped_to():
    motion = JointMotion(np.zeros(3))
    motion.follow(2.0, 2.0, trajectory(names=("b",), times=[0.0], positions=[[5.0]]))
    np.testing.assert_allclose(motion.target(2.0), [0.0, 5.0, 0.0])
    assert not motion.moving(2.0)


def test_hold_ends_a_trajectory_and_forget_changes_nothing():
    motion = JointMotion(np.zeros(3))
    motion.follow(0.0, 0.0, trajectory(times=[1.0, 2.0, 3.0]))
    before = motion.target(1.5)
    motion.forget(1.2)
    np.testing.assert_array_equal(motion.target(1.5), before)
    motion.hold(1.5, np.array([7.0, 8.0, 9.0]))
    np.testing.assert_array_equal(motion.target(1.5), [7.0, 8.0, 9.0])
    assert not motion.moving(1.5)


def test_over_before_it_came():
    motion = JointMotion(np.zeros(3))
    with pytest.raises(
        CommandError, match=r"ended 3 s before it came: .* stamp 0 to start at"
    ):
        motion.follow(6.0, 1.0, trajectory())
    assert not motion.moving(0.0)


def test_a_last_point_that_is_due_now_is_jumped_to_whatever_the_rounding():
    motion = JointMotion(np.zeros(3))
    last = 0.1 + 0.2
    assert last > 0.3
    motion.follow(last, 0.0, trajectory(names=("b",), times=[0.3], positions=[[5.0]]))
    np.testing.assert_array_equal(motion.target(last), [0.0, 5.0, 0.0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"names": ()}, "names no joints: fill joint_names"),
        ({"names": ("a", "x")}, "unknown joint 'x': the robot's joints are a, b, c"),
        ({"names": ("a", "a")}, "joint 'a' is named twice"),
        ({"times": []}, "has no points: send at least one"),
        ({"times": [1.0, 1.0]}, "time_from_start of point 1 is 1 s: .* ascend"),
        ({"times": [2.0, 1.0]}, "time_from_start of point 1 is 1 s"),
        (
            {"times": [-1.0, 1.0]},
            "time_from_start of point 0 is -1 s: times must start at 0",
        ),
        ({"positions": [[1, 2, 3], [1, 2]]}, "point 1 has 2 positions for 3 joints"),
        ({"positions": [[1, 2, 3], []]}, "point 1 has 0 positions for 3 joints"),
        (
            {"positions": [[1, 2, float("nan")], [1, 2, 3]]},
            "positions of point 0 are not all finite",
        ),
        (
            {"positions": [[1, 2, 3], [1, -1e300, 3]]},
            "positions of point 1 are not .* up to 1e",
        ),
        (
            {"velocities": [[1, 2, 3], [1, float("inf"), 3]]},
            "velocities of point 1 are not all",
        ),
        ({"velocities": [[1, 2, 3], []]}, "point 1 has 0 velocities for 3 joints"),
    ],
)
def test_refused_trajectories(change, message):
    with pytest.raises(CommandError, match=message):
        trajectory(**change)


def test_refused_targets():
    with pytest.raises(
        CommandError, match="got 2 joint commands, expected 3 in the order a, b, c"
    ):
        read_targets(NAMES, [1.0, 2.0])
    with pytest.raises(CommandError, match="command for 'b' is not a finite number"):
        read_targets(NAMES, [1.0, float("nan"), 2.0])
    with pytest.raises(
        CommandError, match=r"command for 'a' is not .* up to 1e\+06: send one"
    ):
        read_targets(NAMES, [1e300, 1.0, 2.0])


def test_inputs_are_copied():
    values = np.zeros(3)
    motion = JointMotion(values)
    targets = read_targets(NAMES, values)
    values[:] = 9.0
    assert not motion.target(0.0).any()
    assert not targets.any()


def test_cubics_join_smoothly():
    motion, path = JointMotion([0.0]), lambda t: np.sin(3.0 * t)
    for k in range(100):
        t, until = 0.01 * k, 0.01 * (k + 1)
        point = np.array([[path(until)]]), np.array([[3.0 * np.cos(3.0 * until)]])
        motion.follow(t, t, Trajectory(np.arange(1), np.array([until - t]), *point))
        if k > 0:
            middle = t + 0.005
            assert motion.target(middle)[0] == pytest.approx(path(middle), abs=1e-8)
    assert motion.target(2.0)[0] == path(1.0)  # and stands where the last one ends
