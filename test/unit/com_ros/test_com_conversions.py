"""The suite's own messages: round trips, sizes, and that their constants fit the maths."""

import math

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from rclpy.serialization import deserialize_message, serialize_message
from read_back import com_jacobian_to_numpy

from com_estimation.nodes.com_output import (
    center_of_mass_to_numpy,
    numpy_to_center_of_mass,
    numpy_to_com_jacobian,
    numpy_to_sesc_chain,
)
from com_estimation.whole_body.com_state import ComState, Ground, unknown_state
from com_model.status import Status
from com_msgs.msg import CenterOfMass, ComJacobian
from com_ros.conversions import points_to_numpy
from com_ros.exceptions import ConversionError

STAMP = Time(sec=3, nanosec=4)
RNG = np.random.default_rng(2)


def some_values():
    position, velocity, gravity, projection = RNG.normal(size=(4, 3))
    return ComState(
        Status.DEGRADED, "why", 7.0, position, velocity, gravity,
        Ground.FEET, projection, -0.25, ("l_sole", "r_sole"),
    )  # fmt: skip


def assert_same(a, b):
    for name in a._fields:
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)


def test_center_of_mass_round_trip_also_through_the_wire():
    values = some_values()
    msg = numpy_to_center_of_mass(values, STAMP, "base_link")
    msg = deserialize_message(serialize_message(msg), CenterOfMass)
    assert (msg.header.stamp, msg.header.frame_id) == (STAMP, "base_link")
    assert_same(center_of_mass_to_numpy(msg), values)


def test_unknown_is_nan_in_the_message():
    nothing = unknown_state("no joints")
    back = center_of_mass_to_numpy(numpy_to_center_of_mass(nothing, Time(), ""))
    assert (back.status, back.reason, back.contacts) == (0, "no joints", ())
    assert math.isnan(back.mass)
    for vector in (
        back.position,
        back.velocity,
        back.gravity,
        back.projection,
        [back.margin],
    ):
        assert np.isnan(vector).all()


def test_com_jacobian_round_trip():
    names, matrix, position = ["a", "b"], RNG.normal(size=(3, 2)), RNG.normal(size=3)
    msg = numpy_to_com_jacobian(names, matrix, position, STAMP, "base_link")
    assert list(msg.matrix) == list(matrix.ravel())  # row-major, as the message says
    back_names, back_matrix, back_position = com_jacobian_to_numpy(msg)
    assert back_names == tuple(names)
    np.testing.assert_array_equal(back_matrix, matrix)
    np.testing.assert_array_equal(back_position, position)


def test_com_jacobian_of_wrong_size():
    with pytest.raises(ConversionError, match=r"expected shape \(3, 2\), got \(2, 3\)"):
        numpy_to_com_jacobian(["a", "b"], np.zeros((2, 3)), np.zeros(3), STAMP, "")
    broken = ComJacobian(joint_names=["a", "b"], matrix=[1.0] * 5)
    with pytest.raises(ConversionError, match="5 numbers for 2 joints, expected 6"):
        com_jacobian_to_numpy(broken)


def test_sesc_chain_round_trip():
    links, parameters, points = (
        ["a", "b"],
        RNG.normal(size=(2, 3)),
        RNG.normal(size=(3, 3)),
    )
    msg = numpy_to_sesc_chain(7.0, links, parameters, points, STAMP, "base_link")
    assert (msg.mass, msg.links, msg.header.frame_id) == (7.0, ["a", "b"], "base_link")
    np.testing.assert_array_equal(points_to_numpy(msg.parameters), parameters)
    np.testing.assert_array_equal(points_to_numpy(msg.points), points)


def test_sesc_chain_of_wrong_size():
    with pytest.raises(
        ConversionError, match="2 links, 2 parameters, 2 points; expected K, K"
    ):
        numpy_to_sesc_chain(
            7.0, ["a", "b"], np.zeros((2, 3)), np.zeros((2, 3)), STAMP, ""
        )
