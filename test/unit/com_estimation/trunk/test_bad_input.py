"""Bad input, from the samples to what is published: a robot trots, and something breaks."""

from dataclasses import replace

import numpy as np
import pytest

from com_estimation.trunk.floating_base import FloatingBaseEstimator
from com_estimation.trunk.ground_reaction import ForceMeter
from com_estimation.trunk.pipeline import InputChecks, TrunkPipeline
from com_model.status import TRUSTED, Status

pytestmark = pytest.mark.slow

START, END, AGAIN = 1.5, 2.5, 3.5  # s: of the fault, and when all must be well again
UNTIL = 3.7  # s, of a run
BOUND, WELL = 15e-3, 2e-3  # m, beyond three standard deviations
NAN3, NAN33 = np.full(3, np.nan), np.full((3, 3), np.nan)


class Run:
    """What the pipeline says while samples are spoilt from START on."""

    def __init__(
        self, log, spoil=lambda s: s, start=START, end=END, until=UNTIL, mass=None
    ):
        estimator = FloatingBaseEstimator(log.model, log.config)
        meter = ForceMeter(log.model, log.config, estimator.legs, "inverse_dynamics")
        health = InputChecks(log.model, estimator.legs)
        mass = mass or float(log.model.bodies.mass[0])
        self.pipeline = TrunkPipeline(estimator, health, meter, mass)
        self.estimates, errors = [], []
        for k, sample in enumerate(log.samples()):
            if sample.time >= until:
                break
            given = spoil(sample) if start <= sample.time < end else sample
            for each in given if isinstance(given, list) else [given]:
                estimate = self.pipeline.update(each)
                if estimate is not None:
                    self.estimates.append(estimate)
                    errors.append(estimate.com - log.trunk_com[k])
        self.times = np.array([e.time for e in self.estimates])
        stds = np.array([np.sqrt(np.diag(e.covariance)) for e in self.estimates])
        self.excess = (np.abs(errors) - 3.0 * stds)[:, :2].max(axis=1)

    def worst(self, start, end=np.inf):
        """Largest excess of an error over three of its stds, m; NaN counts as nothing."""
        return np.nanmax(
            self.excess[(self.times >= start) & (self.times < end)], initial=-1.0
        )

    def between(self, start, end=np.inf):
        return [e for e in self.estimates if start <= e.time < end]


def put(sample, name, index, value):
    values = getattr(sample, name).copy()
    values[index] = value
    return replace(sample, **{name: values})


def sticking(*names, index=...):
    """A sensor that goes on saying what it said first."""
    first = {}

    def spoil(sample):
        for name in names:
            old = first.setdefault(name, getattr(sample, name)[index])
            sample = put(sample, name, index, old)
        return sample

    return spoil


def some_of(keep):
    return lambda s: s if keep(round(1000.0 * s.time)) else []


SILENT = {"angular_velocity": NAN3, "specific_force": NAN3, "R_world_imu": NAN33}
FAULTS = {
    "no effort": (
        lambda: lambda s: replace(s, effort=np.full(12, np.nan)),
        "joint_states carries no effort: the joint torques are needed",
    ),
    "effort all zero": (
        lambda: lambda s: replace(s, effort=np.zeros(12)),
        "the effort of every joint is zero: let the driver measure",
    ),
    "torque sensor at zero": (
        lambda: lambda s: put(s, "effort", 5, 0.0),
        "the effort of rf_kfe_joint (0 for 0.5",
    ),
    "torque sensor stuck": (
        lambda: sticking("effort", index=4),
        "torques do not show the force on right_front",
    ),
    "torque not finite": (
        lambda: lambda s: put(s, "effort", 4, np.inf),
        "joint_states has no finite effort for rf_hfe_joint: check the driver",
    ),
    "encoder stuck": (
        lambda: sticking("position", index=5),
        "the position of rf_kfe_joint (",
    ),
    "position not finite": (
        lambda: lambda s: put(s, "position", 7, np.nan),
        "the position of lh_hfe_joint is not finite: check its encoder",
    ),
    "no imu": (lambda: lambda s: replace(s, **SILENT), "no imu for 0.5"),
    "imu stuck": (
        lambda: sticking("angular_velocity", "specific_force", "R_world_imu"),
        "the imu has said exactly the same for 0.5",
    ),
    "accelerometer missing": (
        lambda: lambda s: replace(s, specific_force=NAN3),
        "the accelerometer is not known: check the imu's driver; no accelerometer: the standing",
    ),
    "accelerometer in g": (
        lambda: lambda s: replace(s, specific_force=s.specific_force / 9.81),
        "it must give m/s^2 (not g), with gravity",
    ),
    "half the rate": (
        lambda: some_of(lambda k: k % 2 == 0),
        "Hz before: check the driver and the load of the computer",
    ),
    "samples lost": (
        lambda: some_of(lambda k: k % 10 < 6),
        "of the joint_states come after a gap: check the network",
    ),
    "stamps twice": (
        lambda: lambda s: [s, s],
        "a stamp of joint_states comes twice: is there a second driver?",
    ),
    "effort of the wrong sign": (
        lambda: lambda s: replace(s, effort=-s.effort),
        "by the efforts the ground pulls at the feet: effort has the wrong sign",
    ),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", list(FAULTS))
def test_a_second_of_bad_input(trot_log, name):
    """It is said what is wrong; the estimate stays in bounds and soon is well again."""
    make, text = FAULTS[name]
    run = Run(trot_log, make())
    assert {e.status for e in run.between(1.0, START)} == {Status.CONVERGED}
    late = run.between(START + 0.5, END)
    # what is disturbed may look like a payload, too: ESTIMATING
    assert (
        Status.DEGRADED
        in {e.status for e in late}
        <= {Status.DEGRADED, Status.ESTIMATING}
    )
    assert any(text in e.reason for e in late), {e.reason for e in late}
    after = {e.status for e in run.between(END, END + 0.4)}
    assert TRUSTED.isdisjoint(after)  # what was wrong may still show
    assert run.worst(START) < BOUND
    assert run.worst(AGAIN) < WELL
    assert np.isfinite(run.estimates[-1].com).all()


UPSIDE_DOWN = np.diag([1.0, -1.0, -1.0])


def upside_down(sample):
    """An IMU that is mounted so and gives no orientation."""
    return replace(
        sample,
        angular_velocity=UPSIDE_DOWN @ sample.angular_velocity,
        specific_force=UPSIDE_DOWN @ sample.specific_force,
        R_world_imu=NAN33,
    )


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "spoil", [lambda s: replace(s, R_world_imu=NAN33), upside_down]
)
def test_without_orientation_it_has_not_converged(trot_log, spoil):
    """By the acceleration alone x and y are off by up to 8 mm; upside down, also after it."""
    run = Run(trot_log, spoil)
    without = run.between(START + 0.02, END + 0.4)
    assert TRUSTED.isdisjoint({e.status for e in without})
    assert all(
        "imu carries no orientation" in e.reason for e in run.between(START + 0.02, END)
    )
    assert run.worst(AGAIN) < WELL


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "name", ["no imu", "accelerometer in g", "effort of the wrong sign"]
)
def test_bad_input_from_the_start(trot_log, name):
    make, text = FAULTS[name]
    run = Run(trot_log, make(), start=0.0, end=1.0, until=3.5)
    assert TRUSTED.isdisjoint({e.status for e in run.between(0.0, 1.0)})
    assert any(text in e.reason for e in run.between(0.4, 1.0))
    assert run.worst(0.0) < BOUND
    assert run.worst(2.5) < WELL
    assert run.estimates[-1].status is Status.CONVERGED


@pytest.mark.parametrize(
    ("name", "index"), [("position", 4), ("effort", 4), ("angular_velocity", 0)]
)
@pytest.mark.parametrize("value", [1e160, -1e300])
def test_one_absurd_number_does_not_reach_the_state(trot_log, name, index, value):
    """In the estimator itself, without the limits of its inputs."""
    estimator, reasons = FloatingBaseEstimator(trot_log.model, trot_log.config), []
    with np.errstate(all="ignore"):
        for k, sample in enumerate(trot_log.samples()):
            if sample.time >= 2.0:
                break
            found = estimator.update(
                put(sample, name, index, value) if k == 1500 else sample
            )
            if found is not None:
                estimate, truth = found, trot_log.trunk_com[k]
                assert np.isfinite(estimate.com).all() or sample.time < 0.1
                reasons.append(estimate.reason)
    assert estimator.dropped >= 1
    assert any(
        "would have made the estimate not finite were dropped" in r for r in reasons
    )
    assert estimate.status is Status.CONVERGED
    error = np.abs(estimate.com - truth)[:2].max()
    assert error < WELL + 3.0 * np.sqrt(np.diag(estimate.covariance))[:2].max()


def test_a_gap_in_everything(trot_log):
    run = Run(trot_log, lambda s: [])
    assert run.between(START + 0.001, END) == []
    first = run.between(END + 0.005, END + 0.04)
    assert {e.status for e in first} == {Status.DEGRADED}  # filters settle
    assert run.worst(END) < WELL
    assert run.estimates[-1].status is Status.CONVERGED


def test_sound_input(trot_log):
    run = Run(trot_log)
    assert {e.reason for e in run.between(1.0)} == {""}
    assert run.worst(0.0) < 0.0
    assert run.pipeline.held == 0


@pytest.mark.exhaustive
def test_another_robot_that_trots_is_sound(small_log):
    """Feet that come down early are spoken of; nothing is held back for them."""
    run = Run(small_log)
    assert run.pipeline.held == 0
    assert run.worst(0.0) < 0.0
    assert run.estimates[-1].status is Status.USABLE
    assert "leg links' masses" in run.estimates[-1].reason


def test_a_dead_torque_sensor_for_good(trot_log):
    """The other legs still determine it; how well, is reported."""
    run = Run(trot_log, FAULTS["torque sensor stuck"][0](), start=0.0, end=9.0)
    assert TRUSTED.isdisjoint({e.status for e in run.estimates})
    assert run.worst(0.0) < WELL
    first, last = run.between(0.1, 0.3)[0], run.estimates[-1]
    assert np.sqrt(last.covariance[0, 0]) < 0.5 * np.sqrt(first.covariance[0, 0])


@pytest.mark.exhaustive
def test_a_leg_that_is_lifted_by_hand(standing_log):
    run = Run(standing_log)
    standing, lifted = run.between(0.6, 1.3), run.between(1.8, 2.5)
    assert {e.status for e in lifted} == {Status.DEGRADED}
    assert all("right_front is in the air for" in e.reason for e in lifted)
    assert run.worst(0.0) < WELL
    assert {e.status for e in standing} == {Status.ESTIMATING}
    assert run.estimates[-1].status is Status.ESTIMATING
    assert np.isnan(run.estimates[-1].payload_changed_at)


@pytest.mark.exhaustive
def test_standing_still(standing_log):
    run = Run(standing_log, until=1.3)
    last = run.estimates[-1]
    assert "the robot stands still: z of the CoM is not observable" in last.reason
    assert last.observable.tolist() == [True, True, False]
    assert run.worst(0.0) < WELL


@pytest.mark.exhaustive
def test_a_urdf_with_another_mass_is_noted(payload_log):
    """A payload is the same to it: the mass is another one than that of the URDF."""
    run = Run(payload_log, until=7.5, mass=245.0)
    last = run.estimates[-1]
    assert last.status is Status.CONVERGED
    assert (
        "kg more than the URDF says (245 kg): where that is no payload" in last.reason
    )
    assert 4.5 <= last.payload_changed_at < 6.5
