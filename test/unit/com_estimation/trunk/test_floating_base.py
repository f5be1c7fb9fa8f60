"""The floating-base estimator on logs of the simulator: trotting, standing, with a payload."""

from dataclasses import replace

import numpy as np
import pytest

from com_estimation.trunk.floating_base import (
    FloatingBaseEstimator,
    FloatingBaseOptions,
)
from com_estimation.trunk.floating_base.filter_types import STATE, STATES
from com_estimation.trunk.floating_base.options import Priors, robot_com_std
from com_model import RobotConfig, RobotModel
from com_model.exceptions import ConfigError
from com_model.status import TRUSTED, Status
from com_model.urdf.editing import Inertial, edit_inertials

pytestmark = pytest.mark.slow

NAN3 = np.full(3, np.nan)


class Track:
    """What an estimator says of a log, sample by sample; `change` spoils or drops samples."""

    def __init__(self, log, change=lambda s: s, model=None, end=np.inf, options=None):
        self.estimator = FloatingBaseEstimator(model or log.model, log.config, options)
        self.estimates, errors = [], []
        for k, sample in enumerate(log.samples()):
            changed = change(sample)
            if sample.time >= end or changed is None:
                continue
            estimate = self.estimator.update(changed)
            if estimate is not None:
                self.estimates.append(estimate)
                errors.append((*(estimate.com - log.trunk_com[k]), estimate.mass))
        self.times = np.array([e.time for e in self.estimates])
        self.errors = np.array(errors)[:, :3]
        self.masses = np.array(errors)[:, 3]
        covariances = np.array([e.covariance for e in self.estimates])
        self.std = np.sqrt(np.diagonal(covariances, axis1=1, axis2=2))

    @property
    def last(self):
        return self.estimates[-1]

    def worst(self, start, end=np.inf):
        """Largest error of x or y, m."""
        return np.abs(self.errors[(self.times >= start) & (self.times < end), :2]).max()

    def statuses(self, start, end=np.inf):
        return {e.status for e in self.estimates if start <= e.time < end}


def during(start, end, **changes):
    """Spoils samples of a time: name=value or name=function of the sample."""

    def change(sample):
        if not start <= sample.time < end:
            return sample
        new = {n: v(sample) if callable(v) else v for n, v in changes.items()}
        return replace(sample, **new)

    return change


def without(name, *indices):
    """Function of a sample: an array of it with NaN at some places."""

    def spoil(sample):
        values = getattr(sample, name).copy()
        values[list(indices)] = np.nan
        return values

    return spoil


@pytest.fixture(scope="module")
def track(trot_log):
    return Track(trot_log)


# --- sound input ------------------------------------------------------------------------------
def test_it_finds_the_trunk_of_a_trotting_robot(track, trot_log):
    assert track.statuses(1.0) == {Status.CONVERGED}
    assert track.worst(1.0) < 1e-3
    assert track.last.reason == ""
    assert track.last.observable.all()
    assert np.isnan(track.last.payload_changed_at)
    np.testing.assert_allclose(
        track.last.offset_from_urdf[:2], [-0.03, 0.10], atol=1e-3
    )
    assert abs(track.last.mass - trot_log.trunk_mass[-1]) < 3.0 * track.last.mass_std


def test_it_says_how_good_it_is(track):
    """Errors within four of its standard deviations, also z, and not a tenth of them."""
    late = track.times > 0.3
    ratio = np.abs(track.errors[late]) / track.std[late]
    assert ratio.max() < 4.0
    assert np.sqrt((ratio**2).mean()) > 0.1
    assert np.diff(track.std[late][::200], axis=0).max() < 0.0


@pytest.mark.exhaustive
def test_friction_that_nobody_declared(rubbing_log):
    """A joint that sticks holds against the tilting trunk, as if the CoM were lower."""
    track = Track(rubbing_log)
    late = track.times > 2.0
    assert np.abs(track.errors[late, 2]).mean() < 2.2e-3
    assert (np.abs(track.errors[late]) / track.std[late]).max() < 3.0


def test_touch_downs_that_ring_are_no_information(track, trot_log):
    """Bursts of 80 m/s^2 at 40 Hz, to which no force belongs; they would seem to excite m c."""

    def ring(sample):
        t = sample.time % 0.25
        burst = 80.0 * np.exp(-t / 0.02) * np.cos(2.0 * np.pi * 40.0 * t)
        return replace(
            sample, specific_force=sample.specific_force + np.array([0.0, 0.0, burst])
        )

    rung = Track(trot_log, ring)
    assert Status.DEGRADED not in rung.statuses(1.0)
    assert (rung.std[-1, :2] > 0.99 * track.std[-1, :2]).all()
    assert (np.abs(rung.errors[-1, :2]) < 2.0 * rung.std[-1, :2]).all()


def test_another_robot(small_log):
    track = Track(small_log)
    assert track.worst(1.2) < 1e-3
    late = track.times > 0.5
    assert (np.abs(track.errors[late]) / track.std[late]).max() < 4.0


def test_heavy_legs_keep_a_small_robot_from_converging_and_it_says_why(small_log):
    """ANYmal's legs are two fifths of it: what is not known of their masses is the trunk's CoM."""
    last = Track(small_log).last
    assert last.status is Status.USABLE
    assert "so far; " in last.reason
    assert "leg links' masses +-10 %" in last.limited_by
    assert last.reason.endswith(last.limited_by)
    known = Priors(link_mass=0.03, link_com=0.03, hip=0.001, common_gain=0.01)
    weighed = FloatingBaseOptions(priors=known)
    better = Track(small_log, options=weighed).last
    assert (np.diag(better.covariance)[:2] < 0.3 * np.diag(last.covariance)[:2]).all()


def test_usable_is_when_the_robots_com_is_known_to_a_hundredth_of_the_leg(small_log):
    """Whatever the legs weigh; by the truth it is that good, and the trunk's CoM is not."""
    track = Track(small_log)
    estimator, limit = track.estimator, 0.01 * track.estimator.leg_length
    usable = np.array([e.status is Status.USABLE for e in track.estimates])
    std = np.array([e.robot_com_std for e in track.estimates])
    np.testing.assert_array_equal(usable, 1.96 * std <= limit)
    assert usable[-1]
    assert not usable[track.times < 0.2].any()
    assert std[-1] < 0.5 * track.std[-1, :2].max()
    masses, moments = estimator.links

    def com(mass, trunk):
        return ((mass * trunk + moments.sum(axis=0)) / (mass + masses.sum()))[:2]

    true = com(small_log.trunk_mass[-1], small_log.trunk_com[-1])
    late = [e for e in track.estimates if e.status is Status.USABLE]
    assert max(np.linalg.norm(com(e.mass, e.com) - true) for e in late) < limit


def test_converged_is_usable_too(trot_log):
    """A trunk that is known does not count while the CoM of the robot, by its legs, is not."""
    estimator = FloatingBaseEstimator(trot_log.model, trot_log.config)
    estimator.leg_length = 0.01  # m: the same error matters more
    for k in range(2500):
        estimator.update(trot_log.sample(k))
    std = np.sqrt(np.diag(estimator.latest.covariance)[:2].max())
    assert std < estimator.options.converged * estimator.hip_distance
    assert estimator.latest.status is Status.ESTIMATING


def test_an_error_of_a_link_that_the_trunk_takes_upon_itself_cancels_in_the_robots_com():
    """Against differences of the robot's CoM, at many states drawn from a covariance."""
    rng = np.random.default_rng(5)
    masses, moments = rng.uniform(0.5, 2.0, 12), rng.normal(size=(12, 3))
    x, P, mass = np.zeros(STATES), np.zeros((STATES, STATES)), 20.0
    x[STATE.mass], x[STATE.moment] = mass, (0.4, -0.2, 1.0)
    own = np.r_[STATE.mass, STATE.moment, STATE.link]
    spread = 0.01 * rng.normal(size=(len(own), len(own)))
    P[np.ix_(own, own)] = spread @ spread.T

    def com(trunk, k):
        total = trunk[1:3] + (1.0 + k) @ moments[:, :2]
        return total / (trunk[0] + (1.0 + k) @ masses)

    drawn = x[own] - rng.multivariate_normal(np.zeros(16), spread @ spread.T, 20000)
    errors = [com(x[:4], np.zeros(12)) - com(true[:4], true[4:]) for true in drawn]
    expected = np.sqrt(np.mean(np.square(errors), axis=0)).max()
    assert robot_com_std(x, P, masses, moments) == pytest.approx(expected, rel=0.03)
    # one link's error, which the trunk's first moment and mass make up for
    P[:] = 0.0
    taken = np.array([-masses[3], *-moments[3], 1.0])
    column = [0, 1, 2, 3, STATE.link.start + 3]
    P[np.ix_(column, column)] = 0.01 * np.outer(taken, taken)
    assert robot_com_std(x, P, masses, moments) < 1e-9
    P[:4] = P[:, :4] = 0.0  # nothing makes up for it
    assert robot_com_std(x, P, masses, moments) > 1e-3


def test_the_covariance_stays_symmetric_and_positive(track):
    P = track.estimator._memory.P
    assert len(track.estimates) > 800
    np.testing.assert_array_equal(P, P.T)
    scale = np.sqrt(np.diag(P))
    assert np.linalg.eigvalsh(P / np.outer(scale, scale)).min() > 0.0


def test_the_forces_of_the_ground(trot_log):
    track = Track(trot_log, end=1.3)  # in the middle of a half gait
    found = track.estimator.latest_forces
    delay = 3.0 / (2.0 * np.pi * track.estimator.options.bandwidth_hz)
    k = round((track.times[-1] - delay) * 1000)
    weight = 9.81 * trot_log.model.mass
    np.testing.assert_allclose(found.force, trot_log.true_forces[k], atol=0.05 * weight)
    assert (found.std > 0.0).all()
    assert np.linalg.norm(found.force[~found.swings], axis=1).min() > 0.1 * weight


def test_reset(track, trot_log):
    """Estimates are the same again, so nothing is kept; before, they are unknown."""
    estimator = FloatingBaseEstimator(trot_log.model, trot_log.config)
    for k in range(500):
        estimator.update(trot_log.sample(4000 + k))
    estimator.reset()
    assert estimator.latest.status is Status.UNKNOWN
    assert "no sample yet" in estimator.latest.reason
    assert np.isnan(estimator.latest.com).all()
    for k in range(500):
        estimator.update(trot_log.sample(k))
    same = next(e for e in track.estimates if e.time == estimator.latest.time)
    np.testing.assert_array_equal(estimator.latest.com, same.com)
    np.testing.assert_array_equal(estimator.latest.covariance, same.covariance)


# --- what cannot be seen ----------------------------------------------------------------------
def test_standing_still(standing_log, trot_log):
    """x, y are observable by the forces, as far as the torques' biases are known; z is not."""
    track = Track(standing_log, end=1.0)
    last = track.last
    urdf = last.com - last.offset_from_urdf
    start = 0.12 * track.estimator.hip_distance
    assert last.com[2] == pytest.approx(urdf[2], abs=1e-3)
    assert np.sqrt(last.covariance[2, 2]) > 0.9 * start
    assert last.observable.tolist() == [True, True, False]
    assert (np.abs(track.errors[track.times > 0.1]) < 3.5 * track.std[-1]).all()
    assert 1e-2 < track.std[-1, :2].max() < 5e-2  # far more than in a trot
    assert last.status is Status.ESTIMATING


def test_a_payload(payload_log):
    track = Track(payload_log)
    assert 4.5 <= track.last.payload_changed_at < 6.5
    assert track.worst(1.5, 4.5) < 2e-3
    assert track.worst(4.5, 4.7) > 15e-3  # it takes two strides
    assert track.worst(6.6) < 5e-3
    assert TRUSTED.isdisjoint(track.statuses(4.7, track.last.payload_changed_at + 0.9))
    assert abs(track.last.mass - payload_log.trunk_mass[-1]) < 3.0 * track.last.mass_std
    before = track.estimates[
        np.searchsorted(track.times, track.last.payload_changed_at + 0.5)
    ]
    assert np.isnan(before.payload_changed_at)  # confirmed a stride later only
    assert track.last.status is Status.CONVERGED


def test_a_small_payload_on_a_corner(small_payload_log):
    """1 % of the trunk; noticed within 2 s."""
    track = Track(small_payload_log)
    assert 4.5 <= track.last.payload_changed_at < 6.5
    late = track.times > 6.6
    assert (np.abs(track.errors[late]) / track.std[late])[:, :2].max() < 4.0
    assert track.worst(6.6) < 3e-3
    before = track.estimates[np.searchsorted(track.times, 4.4)]
    std = before.repeatability[:2]  # of a difference
    assert (std < 0.8 * np.sqrt(np.diag(before.covariance)[:2])).all()


def test_an_alarm_by_hand_is_withdrawn(trot_log):
    estimator, statuses = FloatingBaseEstimator(trot_log.model, trot_log.config), set()
    for sample in trot_log.samples():
        if sample.time == 3.2:
            estimator.raise_alarm(3.2, 6, 0.25)
        estimate = estimator.update(sample)
        if estimate is not None and sample.time > 3.2:
            statuses.add(estimate.status)
            if sample.time < 4.1:
                assert estimate.status is Status.ESTIMATING
                assert "the payload seems to have changed" in estimate.reason
    assert np.isnan(estimator.latest.payload_changed_at)
    assert statuses == {Status.ESTIMATING, Status.CONVERGED}
    assert np.abs(estimator.latest.com - trot_log.trunk_com[-1])[:2].max() < 1e-3


@pytest.mark.parametrize("factor", [0.7, 1.3])
def test_a_urdf_with_another_mass(trot_log, factor):
    model = trot_log.model
    changed = {
        link: Inertial(
            factor * model.link_masses[i], model.link_coms[i], model.link_inertias[i]
        )
        for i, link in enumerate(model.link_names)
        if model.bodies.body_of_link[i] == 0 and model.link_masses[i] > 0.0
    }
    other = RobotModel.from_urdf(edit_inertials(model.xml, changed))
    assert other.mass != pytest.approx(model.mass, rel=0.2)
    track = Track(trot_log, model=other, end=2.0)
    assert abs(track.last.mass - trot_log.trunk_mass[0]) < 3.0 * track.last.mass_std
    assert track.worst(1.5) < 2e-3
    assert track.last.status is Status.CONVERGED


# --- bad input --------------------------------------------------------------------------------
def test_without_an_accelerometer(trot_log):
    track = Track(trot_log, during(0.0, 9.0, specific_force=NAN3))
    assert track.statuses(0.5) == {Status.DEGRADED}
    assert (
        "no accelerometer: the standing feet give the acceleration" in track.last.reason
    )
    assert track.worst(3.5) < 8e-3
    late = track.times > 0.5
    assert (np.abs(track.errors[late]) / track.std[late])[:, :2].max() < 4.0


def test_without_the_torques_of_a_leg(trot_log):
    track = Track(trot_log, during(1.5, 2.5, effort=without("effort", 4)), end=3.5)
    assert track.statuses(1.55, 2.5) == {Status.DEGRADED}
    reasons = {e.reason for e in track.estimates if 1.55 < e.time < 2.5}
    assert {r.split(":")[0] for r in reasons} == {
        "torques do not show the force on right_front"
    }
    assert track.worst(1.5) < 1e-3
    assert track.last.status is Status.CONVERGED


def test_never_with_the_torques_of_a_leg(trot_log):
    track = Track(trot_log, during(0.0, 9.0, effort=without("effort", 4)))
    assert TRUSTED.isdisjoint(track.statuses(0.0))
    assert "right_front" in track.last.reason
    assert track.worst(4.0) < 3.0 * track.std[-1].max()


def test_torques_of_the_wrong_sign(trot_log):
    track = Track(trot_log, during(0.0, 9.0, effort=lambda s: -s.effort), end=2.5)
    assert TRUSTED.isdisjoint(track.statuses(0.0))
    assert track.last.status is Status.UNKNOWN
    assert (
        "make no possible trunk, started again: check signs and units"
        in track.last.reason
    )
    assert np.nanmin(track.masses) > 0.0


def test_torques_that_get_a_wrong_sign(trot_log):
    """Such updates weigh nothing; the estimate stays, and is said to be no good."""
    track = Track(trot_log, during(1.5, 2.0, effort=lambda s: -s.effort))
    assert track.statuses(1.6, 1.75) <= {Status.ESTIMATING, Status.DEGRADED}
    assert track.statuses(1.75, 2.0) == {Status.DEGRADED}
    at = np.searchsorted(track.times, 1.9)
    assert "forces and motion do not fit" in track.estimates[at].reason
    assert track.worst(1.5) < 2e-3
    assert np.isnan(track.last.payload_changed_at)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"position": without("position", 3)}, "joint positions or angular velocity"),
        ({"angular_velocity": NAN3}, "joint positions or angular velocity"),
        (
            {"specific_force": NAN3, "R_world_imu": np.full((3, 3), np.nan)},
            "neither acceleration nor attitude is known: check the IMU",
        ),
    ],
)
def test_what_it_cannot_do_without(trot_log, values, text):
    track = Track(trot_log, during(1.0, 1.5, **values), end=2.5)
    assert track.statuses(1.05, 1.5) == {Status.DEGRADED}
    assert text in track.estimates[np.searchsorted(track.times, 1.4)].reason
    assert track.worst(1.0) < 1e-3
    assert track.last.status is Status.CONVERGED


def test_nothing_is_known_from_the_start(trot_log):
    track = Track(trot_log, during(0.0, 9.0, angular_velocity=NAN3), end=0.5)
    assert track.statuses(0.0) == {Status.UNKNOWN}
    assert np.isnan(track.last.com).all()


# --- times ------------------------------------------------------------------------------------
def jittered():
    rng = np.random.default_rng(1)
    return lambda s: replace(s, time=s.time + rng.uniform(-3e-4, 3e-4))


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s if round(1000 * s.time) % 2 else None,
        lambda s: s if round(1000 * s.time) % 5 else None,
        lambda s: None if 1.0 <= s.time < 1.8 else s,
        jittered(),
    ],
    ids=["half the rate", "a sample in five lost", "gap", "jitter"],
)
def test_irregular_samples(trot_log, change):
    track = Track(trot_log, change, end=3.0)
    assert track.worst(0.8) < 3e-3
    late = track.times > 0.5
    assert (np.abs(track.errors[late]) / track.std[late]).max() < 4.5
    assert track.last.status is Status.CONVERGED


def test_after_a_gap_the_filters_settle_first(trot_log):
    track = Track(trot_log, lambda s: None if 1.0 <= s.time < 1.8 else s, end=2.0)
    settled = 8.0 / (2.0 * np.pi * track.estimator.options.bandwidth_hz)
    after = [e for e in track.estimates if e.time >= 1.8]
    first = next(e for e in after if e.status is Status.CONVERGED)
    assert settled <= first.time - 1.8 < settled + 0.02
    assert all(e.status is Status.DEGRADED for e in after if e.time < first.time)


def test_stamps_that_stand_still_or_go_back(trot_log):
    """What is known of the trunk stays; the filters start again."""
    estimator = FloatingBaseEstimator(trot_log.model, trot_log.config)
    for k in range(1500):
        estimator.update(trot_log.sample(k))
    known = estimator.latest
    for k in range(1500, 1520):
        estimator.update(replace(trot_log.sample(k), time=1.5))
    assert estimator.latest.time <= 1.5
    for k in range(1520, 1900):
        sample = trot_log.sample(k)
        estimator.update(replace(sample, time=sample.time - 1.0))
    np.testing.assert_allclose(estimator.latest.com[:2], known.com[:2], atol=1e-3)
    assert estimator.latest.status is Status.CONVERGED
    assert estimator.latest.time == pytest.approx(0.9, abs=0.01)


# --- options and configurations ---------------------------------------------------------------
@pytest.mark.parametrize(
    "name", ["bandwidth_hz", "rate_hz", "torque_noise", "gate", "drift"]
)
@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf])
def test_options_that_are_no_sense(name, value):
    with pytest.raises(ValueError, match=f"{name} is {value}: give a positive number"):
        FloatingBaseOptions(**{name: value})
    with pytest.raises(
        ValueError, match=f"link_mass is {value}: give a positive number"
    ):
        FloatingBaseOptions(priors=Priors(link_mass=value))


def test_an_imu_on_a_leg(heavy_quadruped):
    model, config = heavy_quadruped
    on_leg = replace(config, imu_link="left_front_shank")
    with pytest.raises(ConfigError, match="'left_front_shank' moves against the trunk"):
        FloatingBaseEstimator(model, on_leg)


def test_a_trunk_without_mass(heavy_quadruped):
    model, config = heavy_quadruped
    start = model.xml.index("<inertial>")
    end = model.xml.index("</inertial>") + len("</inertial>")
    empty = RobotModel.from_urdf(model.xml[:start] + model.xml[end:])
    with pytest.raises(
        ConfigError, match=r"the trunk .* has no mass in the URDF: give it its"
    ):
        FloatingBaseEstimator(empty, config)


def test_no_quadruped(heavy_quadruped):
    model, _ = heavy_quadruped
    with pytest.raises(ConfigError):
        FloatingBaseEstimator(model, RobotConfig.from_dict({"name": "none"}))
