"""All that happens to a sample, with a stand-in for the estimator and a real robot's forces."""

from dataclasses import replace

import numpy as np
import pytest
from shipped_robot import shipped_robot

from com_estimation.trunk.ground_reaction import ForceMeter, LegGeometry
from com_estimation.trunk.interface import Sample, unknown_estimate
from com_estimation.trunk.pipeline import InputChecks, TrunkPipeline
from com_estimation.trunk.sensor_checks import Problem, Severity
from com_model.legs import quadruped_legs
from com_model.status import Status

CONFIG, MODEL, POSTURE, _ = shipped_robot("scalf2")
LEGS = quadruped_legs(MODEL, CONFIG)
WEIGHT = MODEL.mass * 9.81


class StandIn:
    def __init__(self):
        self.reset()

    def reset(self):
        self.fed = []
        self.latest = unknown_estimate(0.0, "no sample yet")

    def update(self, sample):
        self.fed.append(sample)
        if len(self.fed) % 5:
            return None
        values = {
            "mass": 300.0,
            "mass_std": 1.0,
            "com": np.full(3, 0.01 * len(self.fed)),
        }
        self.latest = replace(
            unknown_estimate(sample.time, ""), status=Status.CONVERGED, **values
        )
        return self.latest


@pytest.fixture
def pipeline():
    meter = ForceMeter(MODEL, CONFIG, LEGS, "inverse_dynamics")
    return TrunkPipeline(StandIn(), InputChecks(MODEL, LEGS), meter, 300.0)


def standing(count, start=10.0, loads=(0.25, 0.25, 0.25, 0.25), lifted=False):
    """Samples of a robot that stands, with noise; each foot carries its fraction of the weight."""
    rng = np.random.default_rng(1)
    posture = POSTURE.copy()
    if lifted:  # the left front knee is bent
        posture[LEGS[0].joints] *= 1.5
    contacts = LegGeometry(MODEL, LEGS).contacts(posture, np.array([0.0, 0.0, 1.0]))
    tau = np.zeros(12)
    for leg, J, load in zip(LEGS, contacts.jacobians, loads, strict=True):
        tau[leg.joints] = -J.T @ [0.0, 0.0, load * WEIGHT]
    for k in range(count):
        noise = rng.normal(size=(5, 12))
        yield Sample(
            time=start + 0.001 * k,
            position=posture + 1e-5 * noise[0],
            effort=tau * (1 + 0.01 * noise[1]) + 0.01 * noise[4],
            velocity=0.01 * noise[2],
            angular_velocity=0.005 * noise[3, :3],
            specific_force=[0, 0, 9.81] + 0.03 * noise[3, 3:6],
            R_world_imu=np.eye(3),
        )


def test_estimates_and_forces(pipeline):
    said = [e for s in standing(200) if (e := pipeline.update(s)) and e.status]
    assert len(said) == 40
    assert {e.status for e in said} == {Status.CONVERGED}
    assert np.diff([e.time for e in said]) == pytest.approx(0.005)
    forces = pipeline.meter.latest
    assert forces.forces.sum(axis=0)[2] == pytest.approx(WEIGHT, rel=0.05)
    assert forces.contact.all()
    assert pipeline.meter.tilt == pytest.approx(0.0, abs=0.01)


def test_held_back_it_says_the_old_estimate_with_the_reason(pipeline):
    for sample in standing(100):
        pipeline.update(sample)
    old, fed = pipeline.estimate, len(pipeline.estimator.fed)
    nothing = np.full(12, np.nan)
    said = [
        e
        for s in standing(100, 10.1)
        if (e := pipeline.update(replace(s, effort=nothing))) is not None
    ]
    assert len(pipeline.estimator.fed) == fed
    assert pipeline.held == 100
    assert 4 <= len(said) <= 6  # not at each sample
    assert said[-1].status is Status.DEGRADED
    assert all("carries no effort" in e.reason for e in said)
    assert all(e.reason.endswith("since stamp 10.10 s") for e in said)
    np.testing.assert_array_equal(said[-1].com, old.com)
    for sample in standing(100, 10.2):
        pipeline.update(sample)
    assert (
        pipeline.estimate.status is Status.DEGRADED
    )  # what came before may still show
    assert "carries no effort" in pipeline.estimate.reason
    assert "since stamp 10.10 s" in pipeline.estimate.reason
    for sample in standing(500, 10.3):
        pipeline.update(sample)
    assert pipeline.estimate.status is Status.CONVERGED


def test_a_problem_of_the_caller_holds_as_well(pipeline):
    (sample,) = standing(1)
    estimate = pipeline.update(sample, [Problem(Severity.HOLD, "no")])
    assert (estimate.status, estimate.reason) == (Status.UNKNOWN, "no")
    assert pipeline.estimator.fed == []
    assert pipeline.hold(11.0, Problem(Severity.HOLD, "nothing")).reason == "nothing"


def test_time_that_goes_back_starts_anew(pipeline):
    for sample in standing(100):
        pipeline.update(sample)
    for sample in standing(7, 5.0):
        pipeline.update(sample)
    assert pipeline.restarts == 1
    assert pipeline.estimator.fed[0].time == 5.0


def test_a_leg_that_is_lifted_by_hand(pipeline):
    for sample in standing(1500, loads=(0.0, 0.4, 0.4, 0.2), lifted=True):
        pipeline.update(sample)
    assert pipeline.estimate.status is Status.DEGRADED
    assert "left_front is in the air for 1." in pipeline.estimate.reason


def test_a_foot_that_rocks_on_the_ground_without_load_is_not_lifted(pipeline):
    for sample in standing(1500, loads=(0.0, 0.5, 0.5, 0.0)):
        pipeline.update(sample)
    assert pipeline.estimate.status is Status.CONVERGED


def test_standing_is_noted(pipeline):
    for sample in standing(1200):
        pipeline.update(sample)
    assert pipeline.estimate.status is Status.CONVERGED
    assert "the robot stands still" in pipeline.estimate.reason


def test_reset(pipeline):
    for sample in standing(50):
        pipeline.update(sample)
    pipeline.reset()
    assert pipeline.estimate.status is Status.UNKNOWN
    assert not pipeline.meter.known.any()
