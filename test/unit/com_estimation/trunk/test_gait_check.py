"""What contacts show of the gait, and what is published while there are problems."""

import math

import numpy as np
import pytest
from trot_samples import LEGS, MODEL, assert_sound, run, spoiled, trot

from com_estimation.trunk.gait_check import GaitCheck
from com_estimation.trunk.interface import TrunkEstimate, unknown_estimate
from com_estimation.trunk.pipeline import InputChecks, mass_problem, with_problems
from com_estimation.trunk.sensor_checks import Problem, Severity, reason
from com_model.status import Status

pytestmark = pytest.mark.slow


# --- gait ------------------------------------------------------------------------------------
def watch(pattern, duration=3.0, stance=None, known=(True,) * 4):
    """Problems over time of contacts pattern(time) at 200 Hz."""
    gait = GaitCheck([leg.name for leg in LEGS])
    result = {}
    for k in range(int(200 * duration)):
        time = k / 200
        phase = None if stance is None else np.array(stance(time), dtype=bool)
        contact = np.array(pattern(time), dtype=bool)
        result[time] = gait.update(50.0 + time, contact, np.array(known), phase)
    return result


def trotting(time, hertz=1.0):
    first = (time * hertz) % 1.0 < 0.55
    second = (time * hertz + 0.5) % 1.0 < 0.55
    return [first, second, second, first]


def test_a_trot_s_contacts_are_sound():
    assert not any(watch(trotting).values())
    assert not any(watch(trotting, stance=trotting).values())


def test_standing_is_noted():
    problem = watch(lambda t: [1, 1, 1, 1])[2.0]
    assert problem.severity is Severity.NOTE
    assert "z of the CoM is not observable" in problem.text


def test_a_leg_lifted_by_hand_and_put_down():
    problems = watch(lambda t: [1, 1, 0 if 0.5 < t < 2.0 else 1, 1])
    assert problems[1.0] is None
    assert problems[1.9] == Problem(
        Severity.HOLD, "left_hind is in the air for 1.4 s: let go of it, let it trot"
    )
    assert problems[2.1] is None


def test_a_leg_lifted_by_hand_against_the_gait_s_phase():
    problems = watch(lambda t: [t < 1.0, *trotting(t)[1:]], stance=trotting)
    assert problems[1.3].severity is Severity.HOLD
    assert "left_front is in the air" in problems[1.3].text


def test_a_leg_that_presses_while_it_should_swing():
    problems = watch(lambda t: [1, *trotting(t)[1:]], stance=trotting)
    assert "left_front carries load though the gait swings it" in problems[0.9].text
    assert problems[0.9].severity is Severity.NOTE


def test_feet_that_the_ground_pulls_at():
    gait, down = GaitCheck([leg.name for leg in LEGS]), np.ones(4, dtype=bool)
    problems = [
        gait.update(0.005 * k, down, down, load=-1.0 + 0.01 * k) for k in range(100)
    ]
    assert problems[5] is None
    assert problems[10].severity is Severity.HOLD
    assert "by the efforts the ground pulls at the feet: effort has the wrong sign" in (
        problems[10].text
    )
    assert problems[85] is None
    assert gait.update(1.0, down, down, load=np.nan) is None


def test_one_sample_of_a_pull_is_forgotten_while_the_load_is_unknown():
    gait, down = GaitCheck([leg.name for leg in LEGS]), np.ones(4, dtype=bool)
    assert gait.update(0.0, down, down, load=-1.0) is None
    for k in range(1, 100):
        assert gait.update(0.005 * k, down, down, load=np.nan) is None


def test_hanging():
    problem = watch(lambda t: [0, 0, 0, 0])[0.5]
    assert problem == Problem(
        Severity.HOLD, "no foot carries the robot for 0.5 s: put it on its feet"
    )


def test_a_robot_that_lies_or_hangs_from_the_first_sample_on_and_flies_in_between():
    gait, up = GaitCheck([leg.name for leg in LEGS]), np.zeros(4, dtype=bool)
    known, down, problems = ~up, ~up, {}
    for k in range(400):
        time = 0.005 * k
        carried = 0.5 <= time < 1.5
        flying = 0.8 <= time < 1.0
        on_feet = carried and not flying
        problems[time] = gait.update(
            time,
            down if on_feet else up,
            known,
            load=1.0 if on_feet else 0.08,
            lift=0.05 if flying else 1.0,
        )
    for time, problem in problems.items():
        if abs(time - 1.6) > 0.002:  # of that sample it depends on rounding
            assert (problem is not None) == (time < 0.4999 or time > 1.6), time
    assert "no foot carries the robot" in problems[0.0].text


def test_a_bound_flies_and_is_not_hanging():
    """All feet in the air for 0.4 s: in free fall that is a flight, at 1 g somebody holds it."""
    gait, up = GaitCheck([leg.name for leg in LEGS]), np.zeros(4, dtype=bool)
    gait.update(0.0, ~up, ~up, load=1.0, lift=1.0)
    flight = [
        gait.update(0.005 * k, up, ~up, load=0.0, lift=0.02) for k in range(1, 80)
    ]
    assert flight == [None] * 79
    assert gait.update(0.405, up, ~up, load=0.3, lift=1.5) is None  # it lands
    held = [gait.update(0.41 + 0.005 * k, up, ~up, lift=1.0) for k in range(80)]
    assert held[40] is None
    assert "no foot carries the robot" in held[-1].text


def test_a_robot_that_fell():
    gait, down = GaitCheck([leg.name for leg in LEGS]), np.ones(4, dtype=bool)
    assert gait.update(1.0, down, down, tilt=math.radians(30)) is None
    problem = gait.update(1.0, down, down, tilt=math.radians(80))
    assert problem == Problem(
        Severity.HOLD, "the robot lies (80 degrees of tilt): put it on its feet"
    )
    assert gait.update(1.0, down, down, tilt=math.nan) is None


def test_a_joint_at_its_stop_is_no_stuck_encoder():
    verdicts = run(trot(5.0), lambda t, s: spoiled(s, 4, position=2.0, velocity=0.0))
    assert_sound(verdicts.values())


def test_unknown_forces_say_nothing():
    problems = watch(lambda t: [0, 1, 1, 1], known=(False, True, True, True))
    assert not any(problems.values())


def test_the_gait_s_problem_is_in_the_next_verdict():
    health = InputChecks(MODEL, LEGS)
    all_down = np.ones(4, dtype=bool)
    for sample in trot(0.9):
        health.gait.update(sample.time, ~all_down, all_down)
        verdict = health.check(sample)
    assert verdict.sample is None
    assert "no foot carries the robot" in reason(verdict.problems)


# --- estimates -------------------------------------------------------------------------------
def estimate(status=Status.CONVERGED, mass=30.0, std=0.5, text=""):
    return TrunkEstimate(
        time=1.0,
        status=status,
        reason=text,
        mass=mass,
        mass_std=std,
        com=np.zeros(3),
        covariance=np.eye(3),
        offset_from_urdf=np.zeros(3),
        offset_from_center=np.zeros(3),
        observable=np.ones(3, dtype=bool),
        payload_changed_at=np.nan,
    )


def test_mass_against_the_urdf():
    assert mass_problem(estimate(mass=31.5), 30.0) is None
    assert mass_problem(estimate(mass=30.3, std=0.01), 30.0) is None
    assert mass_problem(estimate(Status.ESTIMATING, mass=60.0), 30.0) is None
    heavy, light = (
        mass_problem(estimate(mass=40.0), 30.0),
        mass_problem(estimate(mass=20.0), 30.0),
    )
    assert "weighs 10 kg more than the URDF says (30 kg)" in heavy.text
    assert "weighs 10 kg less" in light.text
    assert heavy.severity is Severity.NOTE


HELD = Problem(Severity.HOLD, "a")
LACKING = Problem(Severity.DEGRADE, "b")
NOTED = Problem(Severity.NOTE, "c")


@pytest.mark.parametrize(
    ("status", "problems", "expected", "text"),
    [
        (Status.CONVERGED, [], Status.CONVERGED, ""),
        (Status.CONVERGED, [NOTED], Status.CONVERGED, "c"),
        (Status.CONVERGED, [NOTED, LACKING], Status.DEGRADED, "b; c"),
        (Status.CONVERGED, [LACKING, HELD, HELD], Status.DEGRADED, "a; b"),
        (Status.USABLE, [NOTED], Status.USABLE, "c"),
        (Status.USABLE, [LACKING], Status.DEGRADED, "b"),
        (Status.ESTIMATING, [HELD], Status.DEGRADED, "a"),
        (Status.ESTIMATING, [LACKING], Status.ESTIMATING, "b"),
        (Status.UNKNOWN, [HELD], Status.UNKNOWN, "a"),
    ],
)
def test_what_is_published_while_there_are_problems(status, problems, expected, text):
    result = with_problems(estimate(status), problems)
    assert (result.status, result.reason) == (expected, text)
    assert result.mass == 30.0
    assert result.observable.all() == (HELD not in problems)


def test_the_estimator_s_own_reason_stays():
    assert with_problems(estimate(text="own"), [NOTED]).reason == "c; own"
    assert with_problems(unknown_estimate(1.0, "own"), []).reason == "own"
