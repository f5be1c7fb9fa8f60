"""Which feet stand, and on what."""

import dataclasses

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from com_estimation.whole_body import stance as kernels
from com_estimation.whole_body.stance import (
    UNKNOWN_FORCES,
    Feet,
    Stance,
    choose_feet,
    point_foot,
)
from com_model import Foot

UP = np.array([0.0, 0.0, 1.0])
SQUARE = np.array([[0.1, 0.05], [0.1, -0.05], [-0.1, -0.05], [-0.1, 0.05]])


def sole(frame):
    return dataclasses.replace(point_foot(frame), corners=SQUARE)


def ball(frame, radius=0.02):
    return dataclasses.replace(point_foot(frame), radius=radius)


def level(*positions):
    return np.tile(np.eye(3), (len(positions), 1, 1)), np.array(positions, dtype=float)


def turn(axis, degrees):
    return Rotation.from_euler(axis, degrees, degrees=True).as_matrix()


def stand(feet, R, p, up=UP, forces=None):
    """The stance, or None when no foot is in contact; see stance_kernels.stand."""
    known = Feet(feet, tolerance=0.005, threshold=5.0)
    space = np.empty((len(known.points.owner), 3))
    stance = Stance(np.empty(len(feet), dtype=bool), space, np.empty(3))
    arrays = (np.ascontiguousarray(a, dtype=float) for a in (R, p, up))
    pressing = (
        UNKNOWN_FORCES if forces is None else np.ascontiguousarray(forces, dtype=float)
    )
    count = kernels.stand(*arrays, pressing, known.points, known.thresholds, stance)
    return stance._replace(points=space[:count]) if count else None


BIPED = [sole("l"), sole("r")]


def test_two_level_feet():
    stance = stand(BIPED, *level([0, 0.1, -1], [0, -0.1, -1.004]))
    np.testing.assert_array_equal(stance.contact, [True, True])
    np.testing.assert_allclose(stance.normal, UP)
    assert stance.points.shape == (8, 3)


def test_a_raised_foot_is_not_in_contact():
    stance = stand(BIPED, *level([0, 0.1, -1], [0, -0.1, -0.99]))
    np.testing.assert_array_equal(stance.contact, [True, False])
    np.testing.assert_allclose(stance.points[:, 2], -1.0)


@pytest.mark.parametrize(
    "tilt", [turn("y", 20), turn("x", -15), turn("xyz", [10, 20, 30])]
)
def test_a_robot_that_leans_keeps_its_feet_on_the_ground(tilt):
    R, p = level([0, 0.1, -1], [0.3, -0.1, -1])
    stance = stand(BIPED, tilt @ R, p @ tilt.T)
    np.testing.assert_array_equal(stance.contact, [True, True])
    np.testing.assert_allclose(stance.normal, tilt[:, 2], atol=1e-12)


def test_a_swinging_foot_that_is_tilted_does_not_make_the_ground():
    R, p = level([0, 0.1, -1], [0.3, -0.1, -0.95])
    R[1] = turn("y", -25)  # toe up, in front: its plane passes below the other foot
    stance = stand(BIPED, R, p)
    np.testing.assert_array_equal(stance.contact, [True, False])
    np.testing.assert_allclose(stance.normal, UP)


def test_forces_decide_where_there_are_any():
    R, p = level([0, 0.1, -1], [0, -0.1, -1])
    pressed = np.array([[0, 0, 4.9], [0, 0, 30.0]])
    np.testing.assert_array_equal(
        stand(BIPED, R, p, forces=pressed).contact, [False, True]
    )
    pulled = np.array(
        [[0, 0, -30.0], [50.0, 0, 0]]
    )  # hung up by a foot, pushed from the side
    assert stand(BIPED, R, p, forces=pulled) is None


def test_the_force_counts_across_the_sole_whatever_the_sensor_s_frame():
    feet = [
        dataclasses.replace(sole("l"), wrench_frame="shank"),
        dataclasses.replace(sole("r"), wrench_frame="r"),
    ]
    assert Feet(feet, 0.005, 5.0).links == ("l", "r", "shank")
    R, p = level([0, 0.1, -1], [0, -0.1, -1], [0, 0, 0])
    R[2] = turn("y", 90)  # x of the shank is down
    on_shank = np.array([[-30.0, 0, 0], [0, 0, 30.0]])  # of the ground on the robot
    np.testing.assert_array_equal(
        stand(feet, R, p, forces=on_shank).contact, [True, True]
    )
    assert stand(feet, R, p, forces=-on_shank) is None


def test_four_point_feet_on_a_slope():
    feet = [ball(name) for name in "abcd"]
    p = np.array(
        [[0.4, 0.2, -0.5], [0.4, -0.2, -0.5], [-0.4, 0.2, -0.5], [-0.4, -0.2, -0.5]]
    )
    slope = turn("y", 12)
    spin = Rotation.random(
        4, random_state=2
    ).as_matrix()  # frames of balls point anywhere
    stance = stand(feet, spin, p @ slope.T)
    np.testing.assert_array_equal(stance.contact, [True] * 4)
    np.testing.assert_allclose(stance.normal, slope[:, 2], atol=1e-12)
    np.testing.assert_allclose(
        stance.points, p @ slope.T - 0.02 * slope[:, 2], atol=1e-12
    )


def test_the_ball_need_not_be_around_the_frame():
    center = np.array([0.01, -0.02, 0.03])
    feet = [dataclasses.replace(ball(name), center=center) for name in "abcd"]
    p = np.array(
        [[0.4, 0.2, -0.5], [0.4, -0.2, -0.5], [-0.4, 0.2, -0.5], [-0.4, -0.2, -0.5]]
    )
    spin = Rotation.random(4, random_state=2).as_matrix()
    stance = stand(feet, spin, p - spin @ center)
    np.testing.assert_array_equal(stance.contact, [True] * 4)
    np.testing.assert_allclose(stance.points, p - 0.02 * UP, atol=1e-12)


def test_three_of_four_point_feet():
    feet = [ball(name) for name in "abcd"]
    R, p = level(
        [0.4, 0.2, -0.5], [0.4, -0.2, -0.5], [-0.4, 0.2, -0.5], [-0.4, -0.2, -0.4]
    )
    stance = stand(feet, R, p)
    np.testing.assert_array_equal(stance.contact, [True, True, True, False])
    np.testing.assert_allclose(stance.normal, UP, atol=1e-12)


@pytest.mark.parametrize("count", [1, 2])
def test_one_or_two_point_feet_take_the_given_up(count):
    feet = [ball(name) for name in "ab"[:count]]
    R, p = level([0, 0.1, -1], [0, -0.1, -1.001])
    up = turn("x", 5)[:, 2]
    stance = stand(feet, R[:count], p[:count], up)
    np.testing.assert_array_equal(stance.normal, up)
    assert len(stance.points) == stance.contact.sum()


def test_falling_onto_the_ground():
    stance = stand(BIPED, *level([0, 0.1, -1], [0, -0.1, -1]))
    projection, com = np.empty(3), np.array([0.02, 0.0, 0.3])
    margin = kernels.fall(stance.points, stance.normal, -UP, com, projection)
    np.testing.assert_allclose(projection, [0.02, 0, -1], atol=1e-12)
    assert margin == pytest.approx(0.08)  # to the toes


def test_choosing_feet():
    configured = [sole("l"), sole("r")]
    assert choose_feet((), configured) == tuple(configured)
    assert choose_feet((), ()) == ()
    right, tail = choose_feet(("r", "tail"), configured)
    assert right is configured[1]
    assert isinstance(tail, Foot)
    assert (tail.frame, len(tail.corners), tail.radius) == ("tail", 0, 0.0)
    assert (tail.wrench_topic, tail.wrench_frame, tail.wrench_sign) == (
        "tail/wrench",
        "tail",
        1,
    )
