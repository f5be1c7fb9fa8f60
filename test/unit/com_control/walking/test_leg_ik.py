"""Legs of six joints: round trips, limits, reach, and legs without a closed form."""

import numpy as np
import pytest
from baselines.leg_ik import LegIk

from com_model import ComModelError, ShapeError, link_pose

pytestmark = pytest.mark.slow

CLOSED = ["itu_biped", "hoap2", "talos", "romeo"]
ROBOTS = [*CLOSED, "icub"]


def random_angles(leg, rng):
    low, high = np.maximum(leg.lower, -2.0), np.minimum(leg.upper, 2.0)
    return rng.uniform(low, high)


@pytest.fixture(scope="module")
def offset(humanoid):
    """The ITU-like biped with hips whose axes miss each other by 30 and 20 mm."""
    return humanoid("offset")[0]


@pytest.mark.parametrize("name", ROBOTS)
def test_pose_is_that_of_the_urdf(robots, name):
    biped, oracle = robots(name)
    rng = np.random.default_rng(2)
    for _ in range(10):
        q = biped.posture.copy()
        for leg in biped.legs:
            q[leg.joints] = random_angles(leg, rng)
        feet, _ = oracle.place(q, np.eye(3), np.zeros(3))
        for leg, foot in zip(biped.legs, feet, strict=True):
            R, p = LegIk(leg).pose(q[leg.joints])
            np.testing.assert_allclose(np.column_stack((R, p)), foot, atol=1e-12)


@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("side", [0, 1])
def test_round_trip(robots, name, side):
    leg = robots(name)[0].legs[side]
    ik, rng = LegIk(leg), np.random.default_rng(3)
    assert ik.closed
    for _ in range(100):
        q = random_angles(leg, rng)
        R, p = ik.pose(q)
        found = ik.solve(R, p)
        assert found.reached, found.reason
        assert found.within_limits, found.reason
        again = ik.pose(found.q)
        np.testing.assert_allclose(again[0], R, atol=1e-9)
        np.testing.assert_allclose(again[1], p, atol=1e-9)
        np.testing.assert_allclose(ik.solve(R, p, near=q).q, q, atol=1e-7)


def test_legs_with_offset_hips_are_solved_numerically(offset):
    for leg in offset.legs:
        ik, rng = LegIk(leg), np.random.default_rng(4)
        assert not ik.closed
        for _ in range(30):
            q = np.clip(leg.nominal + rng.uniform(-0.4, 0.4, 6), leg.lower, leg.upper)
            R, p = ik.pose(q)
            found = ik.solve(R, p)
            assert found.reached, found.reason
            assert found.within_limits, found.reason
            np.testing.assert_allclose(ik.pose(found.q)[1], p, atol=1e-9)


def test_offset_hips_out_of_reach(offset):
    ik = LegIk(offset.legs[0])
    found = ik.solve(np.eye(3), [0.0, 0.065, -1.3])
    assert not found.reached
    assert np.isnan(found.q).all()
    assert "the left sole comes no nearer than 0." in found.reason


def test_jacobian_is_the_derivative(robots):
    leg = robots("talos")[0].legs[0]
    ik, rng, h = LegIk(leg), np.random.default_rng(5), 1e-6
    q = random_angles(leg, rng)
    J = ik.jacobian(q)
    R, _ = ik.pose(q)
    for i in range(6):
        (R2, p2), (R1, p1) = (ik.pose(q + s * h * np.eye(6)[i]) for s in (1, -1))
        turn = (R2 - R1) @ R.T / (2 * h)
        np.testing.assert_allclose(J[:3, i], (p2 - p1) / (2 * h), atol=1e-8)
        np.testing.assert_allclose(
            J[3:, i], [turn[2, 1], turn[0, 2], turn[1, 0]], atol=1e-8
        )


def test_out_of_reach_is_reported_and_gives_no_angles(robots):
    leg = robots("itu_biped")[0].legs[0]
    found = LegIk(leg).solve(np.eye(3), [0.0, 0.065, -0.95])
    assert not found.reached
    assert not found.within_limits
    assert np.isnan(found.q).all()
    assert found.reason == (
        "the left ankle would be 0.850 m from its hip, the leg reaches 0.000 to 0.840 m"
    )


def test_just_stretched_is_within_reach(robots):
    leg = robots("itu_biped")[0].legs[1]
    found = LegIk(leg).solve(np.eye(3), [0.0, -0.065, -0.94])
    assert found.reached
    np.testing.assert_allclose(found.q, 0.0, atol=1e-6)


def test_limits_are_reported(robots):
    leg = robots("itu_biped")[0].legs[0]
    ik = LegIk(leg)
    R, p = ik.pose([1.0, 0.0, -0.5, 1.0, -0.5, 0.0])
    found = ik.solve(R, p)
    assert found.reached
    assert not found.within_limits
    expected = "l_hip_yaw_joint would be at 1.000 rad, its limits are -0.800 to 0.800"
    assert found.reason == expected


def test_knee_bends_as_the_limits_allow_even_from_a_wrong_start(robots):
    leg = robots("itu_biped")[0].legs[0]
    ik = LegIk(leg)
    q = np.array([0.1, 0.05, -0.5, 1.0, -0.5, 0.0])
    found = ik.solve(*ik.pose(q), near=[0.1, 0.05, 0.5, -1.0, 0.5, 0.0])
    assert found.within_limits
    np.testing.assert_allclose(found.q, q, atol=1e-9)


def test_bad_arguments(robots):
    ik = LegIk(robots("itu_biped")[0].legs[0])
    with pytest.raises(ComModelError, match="R is not a rotation"):
        ik.solve(2 * np.eye(3), np.zeros(3))
    with pytest.raises(ShapeError, match=r"p: expected shape \(3,\), got \(2,\)"):
        ik.solve(np.eye(3), [0.0, 1.0])
    found = ik.solve(np.eye(3), [0.0, np.nan, -0.8])
    assert not found.reached
    assert found.reason == "the pose that is asked for is not finite"


def test_link_pose_agrees(robots):
    biped, _ = robots("itu_biped")
    q = biped.posture
    for leg in biped.legs:
        R, p = LegIk(leg).pose(q[leg.joints])
        R2, p2 = link_pose(biped.model, q, leg.foot.frame)
        np.testing.assert_allclose(R, R2, atol=1e-12)
        np.testing.assert_allclose(p, p2, atol=1e-12)
