"""The paper's leg, and its algorithm as printed."""

from math import pi

import numpy as np
import pytest
from baselines.ccgd import Ccgd, dh_inverse, dh_lengths
from baselines.leg_ik import LegIk
from baselines.paper_walk import paper_walk
from scipy.spatial.transform import Rotation

from com_control.exceptions import BipedError
from com_control.walking.com_ik import ComIk

ALPHA = (pi / 2, pi / 2, 0.0, 0.0, -pi / 2, 0.0)
FOOT = ((0.0, 0.0, -1.0), (0.0, -1.0, 0.0), (-1.0, 0.0, 0.0))
"""Axes of the foot's frame 6 by rows, in a sole frame with x forward and z up."""


def dh_transform(theta, lengths):
    """T_06 (4, 4) at the angles theta (6,) rad of the table ([CCGD] eqs 3, 4)."""
    l1, l2, l3 = lengths
    T = np.eye(4)
    for angle, alpha, a in zip(theta, ALPHA, (0, 0, l1, l2, 0, l3), strict=True):
        c, s, ca, sa = np.cos(angle), np.sin(angle), np.cos(alpha), np.sin(alpha)
        T = T @ np.array(
            [
                [c, -s * ca, s * sa, a * c],
                [s, c * ca, -c * sa, a * s],
                [0, sa, ca, 0],
                [0, 0, 0, 1],
            ]
        )
    return T


def dh_angles(q):
    """The table's angles (6,) rad at the robot's angles q (6,)."""
    yaw, roll, pitch, knee, ankle, ankle_roll = q
    return np.array([yaw + pi / 2, roll + pi / 2, pitch + pi, knee, ankle, -ankle_roll])


def dh_solve(R, p, lengths):
    """The robot's angles (6,) rad for a sole pose in the hip's frame; NaN out of reach."""
    q = np.empty(6)
    x, y, z = (float(value) for value in p)
    dh_inverse(R, x, y, z, np.array(lengths), q)
    return q


def random_angles(leg, rng):
    return rng.uniform(
        [-0.8, -0.6, -1.2, 0.05, -1.2, -0.6], [0.8, 0.6, 0.6, 1.8, 0.2, 0.6]
    )


def test_the_table_is_the_leg_of_the_urdf(robots):
    leg = robots("itu_biped")[0].legs[0]
    ik, rng = LegIk(leg), np.random.default_rng(20)
    assert dh_lengths(leg) == pytest.approx((0.42, 0.42, 0.10))
    for _ in range(50):
        q = random_angles(leg, rng)
        T = dh_transform(dh_angles(q), dh_lengths(leg))
        R, p = ik.pose(q)
        np.testing.assert_allclose(T[:3, :3], R @ np.array(FOOT).T, atol=1e-12)
        np.testing.assert_allclose(T[:3, 3], p - leg.points[0], atol=1e-12)


def test_round_trip_of_the_closed_form(robots):
    leg = robots("itu_biped")[0].legs[1]
    rng, worst = np.random.default_rng(21), 0.0
    for _ in range(500):
        q = random_angles(leg, rng)
        R, p = LegIk(leg).pose(q)
        found = dh_solve(R, p - leg.points[0], dh_lengths(leg))
        worst = max(worst, np.abs(found - q).max())
    assert worst < 1e-12
    np.testing.assert_allclose(
        dh_solve(np.eye(3), [0, 0, -0.94], dh_lengths(leg)), 0.0, atol=1e-6
    )


def test_out_of_reach_gives_no_angles(robots):
    lengths = dh_lengths(robots("itu_biped")[0].legs[0])
    assert np.isnan(dh_solve(np.eye(3), [0, 0, -0.95], lengths)).all()
    assert np.isnan(dh_solve(np.eye(3), [0, np.nan, -0.8], lengths)).all()


def test_other_legs_are_refused(robots):
    with pytest.raises(
        BipedError, match=r"the left leg is not that of \[CCGD\]: it must have"
    ):
        dh_lengths(robots("icub")[0].legs[0])
    with pytest.raises(BipedError, match="the root link must be the pelvis"):
        Ccgd(robots("hoap2")[0])


@pytest.fixture(scope="module")
def walk():
    plan = paper_walk()
    return plan.sample(plan.grid(0.01))


def test_walks_the_paper_to_its_precision(robots, walk):
    biped, oracle = robots("itu_biped")
    exact = ComIk(biped).solve_path(walk.com, walk.feet, walk.R_pelvis, tolerance=1e-12)
    path = Ccgd(biped).solve_path(
        walk.com, walk.feet, walk.R_pelvis, exact.pelvis[0] + 0.02
    )
    assert path.reached.all()
    assert path.errors.max() < 1e-3
    assert path.steps[0] > 10
    assert path.steps[1:].max() < 100
    for i in range(0, len(walk.time), 60):
        feet, com = oracle.place(path.q[i], walk.R_pelvis[i], path.pelvis[i])
        np.testing.assert_allclose(feet, walk.feet[i], atol=1e-9)
        assert np.linalg.norm(com - walk.com[i]) == pytest.approx(
            path.errors[i], abs=1e-9
        )
    np.testing.assert_allclose(path.pelvis, exact.pelvis, atol=6e-3)


def test_a_step_of_a_millimetre_cannot_come_much_nearer(robots, walk):
    biped, _ = robots("itu_biped")
    few = slice(0, 4)
    start = walk.com[0] + [0, 0, 0.376]
    arguments = walk.com[few], walk.feet[few], walk.R_pelvis[few], start
    path = Ccgd(biped, precision=1e-5).solve_path(*arguments)
    assert not path.reached.all()
    assert np.isnan(path.q[~path.reached]).all()
    finer = Ccgd(biped, step=1e-5, precision=1e-5).solve_path(*arguments)
    assert finer.reached.all()


def test_too_far_is_reported(robots, walk):
    path = Ccgd(robots("itu_biped")[0]).solve_path(
        walk.com[:1] + np.array([0, 0, 0.3]),
        walk.feet[:1],
        walk.R_pelvis[:1],
        [0, 0, 0.8],
    )
    assert not path.reached[0]
    assert np.isnan(path.q).all()


def test_a_walk_by_ccgd_makes_the_steps_of_the_paper(robots, walk):
    biped, _ = robots("itu_biped")
    few = slice(200, 600, 10)
    points = walk.com[few], walk.feet[few], walk.R_pelvis[few]
    start = walk.com[200] + [0, 0, 0.376]
    printed = Ccgd(biped).solve_path(*points, start)
    ik = ComIk(biped)
    found = ik.solve_in_steps(*points, start)
    assert printed.reached.all()
    assert not (found.outcomes & 1).any()
    np.testing.assert_allclose(ik.full(found.q), printed.q, atol=1e-9)
    np.testing.assert_allclose(found.errors, printed.errors, atol=1e-9)


def test_legs_that_are_not_of_the_usual_build_are_refused(robots):
    with pytest.raises(BipedError, match="use the method exact"):
        ComIk(robots("icub")[0]).solve_in_steps([], [], [], np.zeros(3))


def test_a_turned_robot_walks_the_same(robots, walk):
    biped, _ = robots("itu_biped")
    few = slice(300, 500, 20)
    Z = Rotation.from_euler("z", 0.7).as_matrix()
    start = walk.com[300] + [0, 0, 0.376]
    straight = Ccgd(biped).solve_path(
        walk.com[few], walk.feet[few], walk.R_pelvis[few], start
    )
    turned = Ccgd(biped).solve_path(
        walk.com[few] @ Z.T, Z @ walk.feet[few], Z @ walk.R_pelvis[few], Z @ start
    )
    np.testing.assert_allclose(turned.q, straight.q, atol=1e-9)
