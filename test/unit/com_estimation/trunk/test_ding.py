"""The estimator of [Ding] on a trunk that truly is a rigid body that falls about two feet.

The motion and the forces follow from Newton's and Euler's equations in root axes, written here
apart from the code: d is the diagonal, r_c the centre of mass from its middle,
  alpha d . I_o d = d . (r_c x -m g up),   sum f = m (a_c + g up),   sum r x f = d/dt (I_o omega).
"""

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from com_estimation.trunk.ding import (
    DIAGONALS,
    DingEstimator,
    DingOptions,
    HalfGaits,
    Support,
    diagonal_axes,
    solve_offset,
    trunk_of,
)
from com_estimation.trunk.ground_reaction import LegGeometry
from com_estimation.trunk.interface import Sample
from com_model import RobotModel, quadruped_legs
from com_model.bodies import steiner
from com_model.status import Status

pytestmark = pytest.mark.slow

UP = np.array([0.0, 0.0, 1.0])
GRAVITY = 9.81
YAW = Rotation.from_rotvec([0.0, 0.0, 0.7])
OFFSETS = [(0.0, 0.0), (0.1, 0.0), (0.0, -0.1), (-0.03, 0.03), (-0.1, 0.1), (0.07, 0.1)]


def skew(v):
    """[v]x."""
    return np.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])


class Faller:
    """A robot with massless legs whose trunk falls about a diagonal; its legs do not move.

    Args:
        robot: Model and configuration.
        offset: (2,) m, true x and y of the trunk's centre of mass.
        diagonal: Index into DIAGONALS.
    """

    def __init__(self, robot, offset, diagonal=0):
        model, config = robot
        self.legs = quadruped_legs(model, config)
        self.geometry = LegGeometry(model, self.legs)
        self.q = config.nominal_posture(model)
        self.n = model.n_joints
        self.trunk = trunk_of(model, np.mean([leg.hip for leg in self.legs], axis=0))
        self.com = np.array([*offset, 0.0])
        self.stance = np.zeros(4, dtype=bool)
        self.stance[list(DIAGONALS[diagonal])] = True
        contacts = self.geometry.contacts(self.q, UP)
        self.points, self.jacobians = contacts.points, contacts.jacobians
        first, second = self.points[self.stance]
        self.middle = (first + second) / 2.0
        self.d = (first - second) / np.linalg.norm(first - second)
        mass = self.trunk.mass
        self.r_c = self.com - self.middle
        self.I_o = self.trunk.inertia + mass * steiner(self.r_c)
        torque = [
            np.cross(self.r_c, -mass * GRAVITY * up)
            for up in (UP, np.cross(UP, self.d))
        ]
        self.accelerations = [
            float(self.d @ t / (self.d @ self.I_o @ self.d)) for t in torque
        ]
        imu = model.link_index(config.imu_link)
        self.R_root_imu = model.bodies.R_body_link[imu]

    def up(self, angle):
        """Against gravity, root axes, after a turn about the diagonal."""
        return np.cos(angle) * UP + np.sin(angle) * np.cross(UP, self.d)

    def alpha(self, angle):
        upright, lying = self.accelerations
        return np.cos(angle) * upright + np.sin(angle) * lying

    def forces(self, angle, speed, stance=None):
        """Of the ground, (4, 3): two feet while falling; with `stance` on those feet, at rest."""
        m, up, d, r_c = self.trunk.mass, self.up(angle), self.d, self.r_c
        alpha = self.alpha(angle) if stance is None else 0.0
        omega = speed * d
        a_c = alpha * np.cross(d, r_c) + np.cross(omega, np.cross(omega, r_c))
        moment = self.I_o @ (alpha * d) + np.cross(omega, self.I_o @ omega)
        wanted = [m * (a_c + GRAVITY * up), moment + np.cross(r_c, m * GRAVITY * up)]
        feet = np.flatnonzero(self.stance if stance is None else stance)
        A = np.vstack([np.hstack([np.eye(3)] * len(feet)),
                       np.hstack([skew(self.points[i] - self.middle) for i in feet])])  # fmt: skip
        found = np.linalg.lstsq(A, np.concatenate(wanted), rcond=1e-10)[0]
        assert np.abs(A @ found - np.concatenate(wanted)).max() < 1e-8
        forces = np.zeros((4, 3))
        forces[feet] = found.reshape(-1, 3)
        return forces

    def support(self, angle, speed):
        return Support(
            up=self.up(angle),
            omega=speed * self.d,
            omega_dot=self.alpha(angle) * self.d,
            contacts=self.points[self.stance],
            forces=self.forces(angle, speed)[self.stance],
        )

    def sample(self, time, angle, speed, standing=False, given=True):
        stance = np.ones(4, dtype=bool) if standing else self.stance
        forces = self.forces(angle, speed, stance if standing else None)
        effort = np.empty(self.n)
        for leg, J, f in zip(self.legs, self.jacobians, forces, strict=True):
            effort[leg.joints] = -J.T @ f
        turn = YAW * Rotation.from_rotvec(angle * self.d)
        return Sample(
            time=time,
            position=self.q,
            effort=effort,
            velocity=np.zeros(self.n),
            angular_velocity=self.R_root_imu.T @ (speed * self.d),
            specific_force=np.full(3, np.nan),
            R_world_imu=turn.as_matrix() @ self.R_root_imu,
            foot_forces=forces,
            stance=stance if given else None,
        )

    def samples(self, until=0.4, given=True):
        """1 kHz: 0.3 s on four feet, then falling from 0 s."""
        rest = self.sample(0.0, 0.0, 0.0, standing=True, given=given)
        for time in np.arange(-300, 0) * 1e-3:
            yield replace(rest, time=time)
        angle = speed = 0.0
        for k in range(round(until * 1e4)):
            if k % 10 == 0:
                yield self.sample(k * 1e-4, angle, speed, given=given)
            middle = speed + 0.5e-4 * self.alpha(angle)  # leapfrog
            angle += 1e-4 * middle
            speed = middle + 0.5e-4 * self.alpha(angle)


def run(estimator, samples):
    return [estimator.update(sample) for sample in samples]


@pytest.mark.parametrize("diagonal", [0, 1])
@pytest.mark.parametrize("offset", OFFSETS)
def test_the_closed_form_is_exact_where_its_assumptions_hold(
    pointed_quadruped, offset, diagonal
):
    """Exact derivatives, massless legs; with Steiner's term where the mass is."""
    faller = Faller(pointed_quadruped, offset, diagonal)
    for angle, speed in [(0.0, 0.0), (0.1, 0.5), (-0.3, 1.5)]:
        support = faller.support(angle, speed)
        found = solve_offset(faller.trunk, support, GRAVITY, steiner_at_com=True)
        np.testing.assert_allclose(found.xy, offset, atol=1e-9)


def test_steiners_term_as_in_the_paper_costs_some_of_the_offset(pointed_quadruped):
    """[Ding] moves the inertia by p_d instead of p_d + R p_c: exact only without offset."""
    level = Faller(pointed_quadruped, (0.0, 0.0))
    found = solve_offset(level.trunk, level.support(0.1, 0.5), GRAVITY)
    np.testing.assert_allclose(found.xy, 0.0, atol=1e-9)
    far = Faller(pointed_quadruped, (-0.1, 0.1))
    error = solve_offset(far.trunk, far.support(0.0, 0.0), GRAVITY).xy - (-0.1, 0.1)
    assert 1e-4 < np.linalg.norm(error) < 0.01


def test_each_sign_matters(pointed_quadruped):
    """What a wrong sign or a missing term would cost: more than 5 mm each."""
    faller = Faller(pointed_quadruped, (-0.1, 0.1))
    good = faller.support(-0.2, 1.5)

    def error(**changes):
        found = solve_offset(faller.trunk, replace(good, **changes), GRAVITY, True)
        return np.linalg.norm(found.xy - (-0.1, 0.1))

    assert error() < 1e-9
    assert error(forces=-good.forces) > 0.01
    assert error(omega_dot=-good.omega_dot) > 0.005
    assert error(up=faller.up(0.2)) > 0.01
    assert error(contacts=good.contacts[::-1]) > 0.01  # forces at the other feet
    # both the forces and the contacts exchanged: the same support, seen from behind
    assert error(contacts=good.contacts[::-1], forces=good.forces[::-1]) < 1e-9


def test_axes_of_the_diagonal_are_level_and_follow_the_feet():
    up = np.array([0.1, -0.2, 0.97])
    up /= np.linalg.norm(up)
    contacts = np.array([[0.5, 0.3, -0.8], [-0.5, -0.3, -0.7]])
    R = diagonal_axes(contacts, up)
    np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-15)
    assert np.linalg.det(R) > 0.0
    along = R @ (contacts[0] - contacts[1])
    assert along[0] > 0.0
    assert along[1] == pytest.approx(0.0, abs=1e-15)


def test_the_derivative_by_the_forces_is_that_of_finite_differences(pointed_quadruped):
    faller = Faller(pointed_quadruped, (0.05, -0.02))
    support = faller.support(0.1, 0.5)
    found = solve_offset(faller.trunk, support, GRAVITY)
    for foot in range(2):
        for axis in range(3):
            forces = support.forces.copy()
            forces[foot, axis] += 1.0
            moved = solve_offset(faller.trunk, replace(support, forces=forces), GRAVITY)
            np.testing.assert_allclose(
                moved.xy - found.xy, found.by_force[foot, :, axis], atol=1e-12
            )


def test_a_trunk_on_its_side_has_no_solution(pointed_quadruped):
    faller = Faller(pointed_quadruped, (0.05, 0.0))
    assert np.isfinite(
        solve_offset(faller.trunk, faller.support(1.2, 0.0), GRAVITY).xy
    ).all()
    assert np.isnan(
        solve_offset(faller.trunk, faller.support(1.4, 0.0), GRAVITY).xy
    ).all()


def with_trunk_com(model, xyz):
    """The robot with its trunk's centre of mass at `xyz`."""
    end = '<mass value="100.0"/>'
    xml = model.xml.replace(
        f'<origin xyz="0 0 0"/>{end}', f'<origin xyz="{xyz}"/>{end}'
    )
    return RobotModel.from_urdf(xml)


def test_inertia_is_moved_to_the_centre_of_mass(pointed_quadruped):
    model, _ = pointed_quadruped
    shifted = with_trunk_com(model, "0.3 0.1 0.2")
    assert shifted.bodies.first_moment[0, 0] == pytest.approx(30.0)
    trunk = trunk_of(shifted, np.zeros(3))
    np.testing.assert_allclose(trunk.inertia, np.diag([4.0, 9.0, 11.0]), atol=1e-12)


@pytest.mark.parametrize("forces", ["torque", "sensor"])
@pytest.mark.parametrize("given", [True, False])
def test_the_window_finds_the_offset_from_samples(pointed_quadruped, forces, given):
    """1 kHz samples through the filter; stance given, or seen from the forces."""
    faller = Faller(pointed_quadruped, (-0.03, 0.05))
    estimator = DingEstimator(
        *pointed_quadruped, DingOptions(forces, steiner_at_com=True)
    )
    estimates = run(estimator, faller.samples(given=given))
    inside = [e for e in estimates if e.status == Status.ESTIMATING]
    assert len(inside) == pytest.approx(165, abs=15)
    last = inside[-1]
    np.testing.assert_allclose(last.com[:2], (-0.03, 0.05), atol=1e-3)
    np.testing.assert_array_equal(last.observable, [True, True, False])
    assert np.isnan(last.com[2])
    assert np.isnan(last.covariance[2]).all()
    assert last.mass == 100.0
    assert np.isnan(last.mass_std)
    assert "legs without mass" in last.reason
    error = last.com[:2] - (-0.03, 0.05)
    assert error @ np.linalg.solve(last.covariance[:2, :2], error) < 6.0


def test_offsets_are_told_from_the_urdf_and_from_the_hips(pointed_quadruped):
    model, config = pointed_quadruped
    moved = with_trunk_com(model, "0.02 0 0")
    faller = Faller((model, config), (0.05, 0.0))
    estimator = DingEstimator(moved, config)
    run(estimator, faller.samples(until=0.15))
    latest = estimator.latest
    np.testing.assert_allclose(
        latest.offset_from_center[:2], latest.com[:2], atol=1e-12
    )
    np.testing.assert_allclose(
        latest.offset_from_urdf[0], latest.com[0] - 0.02, atol=1e-12
    )


def test_before_the_window_it_is_unknown_and_says_what_it_waits_for(pointed_quadruped):
    faller = Faller(pointed_quadruped, (0.0, 0.05))
    estimator = DingEstimator(*pointed_quadruped)
    assert estimator.latest.reason == "no sample has come"
    estimates = run(estimator, faller.samples(until=0.02))
    assert all(e.status == Status.UNKNOWN and np.isnan(e.com).all() for e in estimates)
    assert "stands on four feet: the method needs two" in estimates[299].reason
    assert "the window opens 0.015 s after" in estimates[-1].reason


def test_after_the_window_the_estimate_stays_but_counts_as_old(pointed_quadruped):
    faller = Faller(pointed_quadruped, (0.0, 0.05))
    estimator = DingEstimator(*pointed_quadruped)
    estimates = run(estimator, faller.samples(until=0.3))
    inside = [e for e in estimates if e.status == Status.ESTIMATING]
    after = estimates[-1]
    assert after.status == Status.DEGRADED
    assert "outside this window the method does not hold" in after.reason
    np.testing.assert_array_equal(after.com, inside[-1].com)
    assert not after.observable.any()
    assert after.time == pytest.approx(0.299)


def test_a_robot_that_is_met_while_it_trots_gives_no_first_half_gait(pointed_quadruped):
    faller = Faller(pointed_quadruped, (0.0, 0.05))
    falling = [s for s in faller.samples(until=0.3) if s.time >= 0.0]
    estimator = DingEstimator(*pointed_quadruped)
    run(estimator, falling)
    assert estimator.latest.status == Status.UNKNOWN
    assert "no first half gait was seen: let the robot stand" in estimator.latest.reason
    every = DingEstimator(*pointed_quadruped, DingOptions(first_half_gait_only=False))
    run(every, falling)
    assert every.latest.status == Status.DEGRADED
    np.testing.assert_allclose(every.latest.com[:2], (0.0, 0.05), atol=5e-3)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            {"effort": np.zeros(12)},
            "the two feet carry -?0 N of the trunk's 981 N: check efforts",
        ),
        ({"effort": np.full(12, np.nan)}, "not all efforts are known"),
        ({"R_world_imu": np.full((3, 3), np.nan)}, "the attitude is not known"),
        ({"angular_velocity": np.full(3, np.nan)}, "the angular velocity is not known"),
    ],
)
def test_bad_input_in_the_window_ends_in_unknown_with_a_reason(
    pointed_quadruped, change, reason
):
    faller = Faller(pointed_quadruped, (0.0, 0.05))
    estimator = DingEstimator(*pointed_quadruped)
    run(estimator, (replace(s, **change) for s in faller.samples(until=0.1)))
    assert estimator.latest.status == Status.UNKNOWN
    assert np.isnan(estimator.latest.com).all()
    assert re.search(reason, estimator.latest.reason), estimator.latest.reason


def test_time_that_goes_back_starts_anew(pointed_quadruped):
    faller = Faller(pointed_quadruped, (0.0, 0.05))
    estimator = DingEstimator(*pointed_quadruped)
    samples = list(faller.samples(until=0.1))
    run(estimator, samples)
    assert estimator.update(samples[-1]) is None
    first = estimator.latest
    run(estimator, samples)
    np.testing.assert_array_equal(estimator.latest.com, first.com)


def test_forces_are_told_with_the_feet_that_stand(pointed_quadruped):
    faller = Faller(pointed_quadruped, (0.0, 0.05))
    estimator = DingEstimator(*pointed_quadruped)
    assert np.isnan(estimator.latest_forces.forces).all()
    run(estimator, faller.samples(until=0.1))
    np.testing.assert_array_equal(
        estimator.latest_forces.contact, [True, False, False, True]
    )
    np.testing.assert_allclose(estimator.latest_forces.forces[1], 0.0, atol=1.0)


def test_an_unknown_source_of_forces_is_refused(pointed_quadruped):
    with pytest.raises(
        ValueError, match="no method 'guess' for forces: expected one of"
    ):
        DingEstimator(*pointed_quadruped, DingOptions("guess"))


def test_half_gaits_are_counted_from_standing():
    gaits = HalfGaits(standing_time=0.2)
    one, two = np.array([1, 0, 0, 1], bool), np.array([0, 1, 1, 0], bool)
    four, three = np.ones(4, bool), np.array([1, 1, 0, 1], bool)
    assert gaits.update(0.0, one).count == 0  # nobody knows how many there were before
    gaits.update(0.1, four)
    assert gaits.update(0.2, four).standing
    assert gaits.update(0.25, two).count == 0  # too short a rest
    gaits.update(0.3, four)
    gaits.update(0.6, four)
    assert gaits.update(0.7, three).diagonal is None
    half = gaits.update(0.8, one)
    assert (half.diagonal, half.start, half.count) == (0, 0.8, 1)
    assert gaits.update(0.9, one).start == 0.8
    gaits.update(1.0, four)
    half = gaits.update(1.1, two)
    assert (half.diagonal, half.start, half.count) == (1, 1.1, 2)


def test_without_a_standing_time_one_sample_on_four_feet_is_enough():
    gaits = HalfGaits(standing_time=0.0)
    gaits.update(0.0, np.ones(4, bool))
    assert gaits.update(0.001, np.array([1, 0, 0, 1], bool)).count == 1
