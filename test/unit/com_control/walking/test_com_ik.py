"""The CoM's inverse kinematics: against Pinocchio, from far starts, at limits, beyond reach."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from com_control.walking import leg_ik, pelvis_map
from com_control.walking.closed_form_ik import fits_closed_form
from com_control.walking.com_ik import ClosedFormSolver, ComIk, ComPath
from com_model import ComModelError, ShapeError

pytestmark = pytest.mark.slow
ROBOTS = ["itu_biped", "hoap2", "talos", "romeo"]


def solve_each(ik, com, feet, R, starts=None, tolerance=1e-9):
    """Points that have nothing to do with each other: q, pelvis, errors and outcomes."""
    points = []
    for i in range(len(com)):
        ik.restart(None if starts is None else starts[i])
        points.append(ik.step(com[i], feet[i], R[i], tolerance))
    values = np.array([point.values for point in points])
    outcomes = np.array([point.outcome for point in points])
    return ComPath(values[:, :12], values[:, 12:15], values[:, 15], outcomes, R)


def standing(x_left=0.0):
    feet = np.zeros((2, 3, 4))
    feet[:, :, :3] = np.eye(3)
    feet[0, 1, 3], feet[1, 1, 3] = 0.065, -0.065
    feet[0, 0, 3] = x_left
    return feet


def cold_starts(biped, count, seed):
    """Feet, pelvis poses and CoM of random postures, the CoM by the kernel's map."""
    solver, rng = ClosedFormSolver(biped), np.random.default_rng(seed)
    steps = rng.uniform(-1.0, 1.0, (count, 2, 3)) * [0.2, 0.03, 0.04]
    feet = np.tile(standing(), (count, 1, 1, 1))
    feet[..., 3] += steps
    feet[..., :3] = (
        Rotation.from_euler("z", rng.uniform(-0.3, 0.3, (2 * count, 1)))
        .as_matrix()
        .reshape(count, 2, 3, 3)
    )
    R = Rotation.from_euler("z", rng.uniform(-0.2, 0.2, (count, 1))).as_matrix()
    pelvis = rng.uniform(-1.0, 1.0, (count, 3)) * [0.05, 0.04, 0.05] + [0.0, 0.0, 0.80]
    com = np.empty((count, 3))
    keep = np.zeros(count, dtype=bool)
    for i in range(count):
        com[i], outcome = solver.map_pelvis(pelvis[i], feet[i], R[i])
        keep[i] = outcome == 0
    return ComIk(biped), com[keep], feet[keep], R[keep], pelvis[keep]


@pytest.mark.parametrize("name", ROBOTS)
def test_finds_feet_and_com_of_random_postures(robots, shake, name):
    biped, oracle = robots(name)
    ik, rng = ComIk(biped), np.random.default_rng(6)
    for _ in range(40):
        q = shake(biped, rng)
        R, p = Rotation.random(random_state=rng).as_matrix(), rng.normal(size=3)
        feet, com = oracle.place(q, R, p)
        np.testing.assert_allclose(
            ClosedFormSolver(biped).map_pelvis(p, feet, R)[0], com, atol=1e-12
        )
        found = ik.solve(com, feet, R, tolerance=1e-12)
        assert found.reached, found.reason
        assert found.reason == ""
        feet_again, com_again = oracle.place(found.q, R, found.pelvis)
        np.testing.assert_allclose(com_again, com, atol=3e-12)
        np.testing.assert_allclose(feet_again, feet, atol=1e-11)


def test_upper_body_where_it_is_reported_to_be(robots, shake):
    biped, oracle = robots("talos")
    ik, rng = ComIk(biped), np.random.default_rng(7)
    q = shake(biped, rng, 0.2)
    for name in (
        "torso_1_joint",
        "torso_2_joint",
        "arm_left_1_joint",
        "arm_right_4_joint",
    ):
        q[biped.model.joint_index(name)] += 0.3
    feet, com = oracle.place(q, np.eye(3), np.zeros(3))
    ik.set_upper_body(q)
    found = ik.solve(com, feet, tolerance=1e-12)
    assert found.reached, found.reason
    np.testing.assert_allclose(found.q, q, atol=1e-9)
    source = q.copy()
    q[:] = 0.0  # a copy was taken
    np.testing.assert_allclose(ik.solve(com, feet).q, source, atol=1e-8)


def test_converges_from_every_start_within_a_decimetre(robots):
    ik, com, feet, R, pelvis = cold_starts(robots("itu_biped")[0], 4000, 8)
    assert len(com) > 2000
    rng = np.random.default_rng(9)
    away = rng.normal(size=pelvis.shape)
    away *= (
        0.1
        * rng.uniform(0.5, 1.0, (len(away), 1))
        / np.linalg.norm(away, axis=1)[:, None]
    )
    found = solve_each(ik, com, feet, R, starts=pelvis + away, tolerance=1e-6)
    assert (found.outcomes == 0).all()
    assert found.errors.max() <= 1e-6
    np.testing.assert_allclose(found.pelvis, pelvis, atol=1e-5)


def test_the_angles_put_the_feet_where_they_are_to_be(robots):
    biped, oracle = robots("itu_biped")
    ik, com, feet, R, _ = cold_starts(biped, 30, 10)
    found = solve_each(ik, com, feet, R, tolerance=1e-12)
    for i, q in enumerate(ik.full(found.q)):
        feet_again, com_again = oracle.place(q, R[i], found.pelvis[i])
        np.testing.assert_allclose(com_again, com[i], atol=2e-12)
        np.testing.assert_allclose(feet_again, feet[i], atol=1e-11)


def sway(count):
    s = np.linspace(0.0, 2 * np.pi, count)
    com = np.column_stack(
        (0.03 * np.sin(s), 0.04 * np.sin(s / 2), 0.45 + 0.005 * np.cos(s))
    )
    feet = np.tile(standing(0.1), (count, 1, 1, 1))
    feet[:, 0, 2, 3] = 0.02 * (1.0 - np.cos(s))
    return com, feet, np.tile(np.eye(3), (count, 1, 1))


def test_a_path_is_the_same_as_its_points(robots):
    ik = ComIk(robots("itu_biped")[0])
    com, feet, R = sway(200)
    path = ik.solve_path(com, feet, R, tolerance=1e-11)
    each = solve_each(ik, com, feet, R, tolerance=1e-11)
    assert (path.outcomes == 0).all()
    np.testing.assert_allclose(path.q, each.q, atol=1e-9)
    for i in range(0, 200, 10):
        point = ik.step(com[i], feet[i], tolerance=1e-11)
        assert point.outcome == 0
        assert point.error <= 1e-11
        np.testing.assert_allclose(point.q, path.q[i], atol=1e-9)
        np.testing.assert_allclose(point.pelvis, path.pelvis[i], atol=1e-9)
    assert np.abs(np.diff(path.q, axis=0)).max() < 0.05  # no jump


def test_a_far_jump_and_a_bad_point_leave_no_trace(robots):
    ik = ComIk(robots("itu_biped")[0])
    com, feet = np.array([0.0, 0.0, 0.45]), standing()
    first = ik.step(com, feet)
    assert ik.step(np.array([0.0, 0.0, 0.9]), feet).outcome != 0
    again = ik.step(com, feet)
    assert again.outcome == 0
    np.testing.assert_allclose(again.q, first.q, atol=1e-7)
    np.testing.assert_allclose(
        first.q, ik.step(com, feet).q, atol=1e-7
    )  # results are copies


def test_out_of_reach_gives_the_nearest_com(robots):
    ik = ComIk(robots("itu_biped")[0])
    feet, target = standing(0.1), np.array([0.05, 0.0, 0.60])
    found = ik.solve(target, feet)
    assert not found.reached
    assert np.isnan(found.q).all()
    assert "the left leg is too short" in found.reason
    assert "nearest CoM that can be reached is 9" in found.reason
    assert ik.solve(found.nearest, feet, tolerance=1e-9).reached
    best = np.linalg.norm(found.nearest - target)
    rng = np.random.default_rng(11)
    for step in rng.normal(size=(200, 3)):  # no reachable point near it is nearer
        other = found.nearest + 0.01 * step / np.linalg.norm(step)
        if np.linalg.norm(other - target) < best - 1e-4:
            ik.restart()
            assert ik.step(other, feet).outcome != 0


def test_limits_are_reported(robots):
    ik = ComIk(robots("itu_biped")[0])
    feet = standing()
    feet[0, :, :3] = Rotation.from_euler("z", 0.95).as_matrix()
    found = ik.solve([0.0, 0.0, 0.44], feet)
    assert not found.reached
    assert "l_hip_yaw_joint would be at 0.9" in found.reason
    assert "its limits are -0.800 to 0.800" in found.reason


def test_legs_that_do_not_fit(robots):
    assert not any(
        map(fits_closed_form, robots("icub")[0].legs)
    )  # its axes are parallel to six digits only
    assert all(map(fits_closed_form, robots("itu_biped")[0].legs))


def test_bad_arguments(robots):
    ik = ComIk(robots("itu_biped")[0])
    with pytest.raises(
        ShapeError, match=r"feet: expected shape \(2, 3, 4\), got \(2, 4, 4\)"
    ):
        ik.solve([0, 0, 0.45], np.zeros((2, 4, 4)))
    feet = standing()
    feet[1, :, :3] *= 1.1
    with pytest.raises(ComModelError, match=r"feet\[1\] \(right\) is not a rotation"):
        ik.solve([0, 0, 0.45], feet)
    for q in ([0.0], np.zeros(1)):
        with pytest.raises(ShapeError, match=r"expected shape \(12,\), got \(1,\)"):
            ik.set_upper_body(q)
    found = ik.solve([0, np.nan, 0.45], standing())
    assert (found.reached, found.reason) == (False, "the target is not finite")
    with pytest.raises(ShapeError, match=r"feet: expected shape \(3, 2, 3, 4\)"):
        ik.solve_path(np.zeros((3, 3)), np.zeros((2, 2, 3, 4)), np.zeros((3, 3, 3)))
    assert (
        len(
            ik.solve_path(
                np.zeros((0, 3)), np.zeros((0, 2, 3, 4)), np.zeros((0, 3, 3))
            ).q
        )
        == 0
    )


def test_angle_of_is_atan2():
    rng = np.random.default_rng(12)
    y, x = rng.normal(size=(2, 3000)) * 10.0 ** rng.uniform(-8, 8, (2, 3000))
    y[:8], x[:8] = [0, 0, 1, -1, 1, 1, -1, -1], [1, -1, 0, 0, 1, -1, 1, -1]
    table = np.array([y, x, x])
    pelvis_map.fill_angles(table)
    np.testing.assert_allclose(table[2], np.arctan2(y, x), rtol=0, atol=9e-16)
    assert leg_ik.atan2_without_branches(0.0, 0.0) == 0.0
    for pair in ((np.nan, 1.0), (1.0, np.nan)):
        assert np.isnan(leg_ik.atan2_without_branches(*pair))
