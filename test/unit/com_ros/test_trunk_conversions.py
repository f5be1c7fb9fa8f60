"""Messages of the trunk: round trips, and that their constants fit the maths."""

import math

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Vector3
from read_back import ground_reaction_to_numpy, trunk_com_to_numpy

from com_estimation.nodes.trunk_output import (
    numpy_to_ground_reaction,
    numpy_to_trunk_com,
)
from com_estimation.trunk.ground_reaction import GroundReaction as Reaction
from com_estimation.trunk.interface import TrunkEstimate, unknown_estimate
from com_model.status import Status
from com_msgs.msg import GroundReaction, TrunkCom
from com_ros.exceptions import ConversionError

STAMP = Time(sec=12, nanosec=34)


@pytest.mark.parametrize("changed", [math.nan, 1234.567890123])
def test_trunk_com(changed, over_the_wire):
    rng = np.random.default_rng(1)
    values = TrunkEstimate(
        time=12.0,
        status=Status.ESTIMATING,
        reason="converging",
        mass=300.0,
        mass_std=2.0,
        com=rng.normal(size=3),
        covariance=rng.normal(size=(3, 3)),
        offset_from_urdf=rng.normal(size=3),
        offset_from_center=rng.normal(size=3),
        observable=np.array([True, True, False]),
        payload_changed_at=changed,
        repeatability=np.array([1e-3, 2e-3, math.nan]),
        limited_by="x is known to 3 mm",
        robot_com_std=4e-4,
    )
    msg = over_the_wire(numpy_to_trunk_com(values, "ding", STAMP, "base"))
    assert (msg.header.stamp, msg.header.frame_id, msg.method) == (
        STAMP,
        "base",
        "ding",
    )
    got = trunk_com_to_numpy(msg)
    for name in ("status", "reason", "mass", "mass_std", "limited_by", "robot_com_std"):
        assert getattr(got, name) == getattr(values, name)
    for name in (
        "com",
        "covariance",
        "offset_from_urdf",
        "offset_from_center",
        "observable",
        "repeatability",
    ):
        np.testing.assert_array_equal(getattr(got, name), getattr(values, name))
    assert got.payload_changed_at == pytest.approx(changed, abs=1e-9, nan_ok=True)


def test_unknown_is_nan_in_the_message():
    msg = numpy_to_trunk_com(
        unknown_estimate(1.0, "why"), "floating_base", STAMP, "base"
    )
    assert (msg.status, msg.reason) == (TrunkCom.STATUS_UNKNOWN, "why")
    p, d = msg.position, msg.offset_from_center
    assert all(map(math.isnan, (p.x, p.y, p.z, d.x, d.y, d.z, msg.mass, msg.mass_std)))
    assert np.isnan(msg.covariance).all()
    assert msg.payload_changed_at == Time()


def test_ground_reaction(over_the_wire):
    rng = np.random.default_rng(2)
    forces = rng.normal(size=(4, 3))
    forces[2] = np.nan
    values = Reaction(
        forces, rng.uniform(size=(4, 3)), np.array([True, False, False, True]), "torque"
    )
    legs, feet = ("a", "b", "c", "d"), ("f1", "f2", "f3", "f4")
    msg = over_the_wire(numpy_to_ground_reaction(values, legs, feet, STAMP, "base"))
    assert (msg.header.stamp, msg.header.frame_id) == (STAMP, "base")
    got = ground_reaction_to_numpy(msg)
    assert (got.method, got.legs, got.feet) == ("torque", legs, feet)
    np.testing.assert_array_equal(got.forces, values.forces)
    np.testing.assert_array_equal(got.force_std, values.std)
    np.testing.assert_array_equal(got.contact, values.contact)


def test_a_ground_reaction_of_unequal_arrays():
    msg = GroundReaction(legs=["a", "b"], feet=["x"], forces=[Vector3()])
    text = "2 legs, 1 feet, 1 forces, 0 standard deviations, 0 contacts"
    with pytest.raises(ConversionError, match=text):
        ground_reaction_to_numpy(msg)
