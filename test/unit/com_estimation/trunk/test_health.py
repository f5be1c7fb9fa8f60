"""Bad input of every kind, and sound input that must not be taken for bad."""

import math
import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from com_estimation.trunk.contact_detection import GaitCheck
from com_estimation.trunk.input_checks import InputChecks, mass_problem, with_problems
from com_estimation.trunk.interface import Sample, Status, TrunkEstimate, unknown_estimate
from com_estimation.trunk.sensor_checks import Problem, Severity, reason
from com_model import RobotConfig, RobotModel
from com_model.legs import quadruped_legs

LEG = """
 <joint name="{n}_haa" type="revolute"><parent link="base"/><child link="{n}_hip"/>
  <origin xyz="{x} {y} 0"/><axis xyz="1 0 0"/><limit lower="-2" upper="2" effort="90" velocity="9"/>
 </joint><link name="{n}_hip"/>
 <joint name="{n}_hfe" type="revolute"><parent link="{n}_hip"/><child link="{n}_thigh"/>
  <axis xyz="0 1 0"/><limit lower="-2" upper="2" effort="90" velocity="9"/></joint>
 <link name="{n}_thigh"/>
 <joint name="{n}_kfe" type="revolute"><parent link="{n}_thigh"/><child link="{n}_shank"/>
  <origin xyz="0 0 -0.3"/><axis xyz="0 1 0"/>
  <limit lower="-2" upper="2" effort="90" velocity="9"/></joint>
 <link name="{n}_shank"/>
 <joint name="{n}_end" type="fixed"><parent link="{n}_shank"/><child link="{n}_foot"/>
  <origin xyz="0 0 -0.3"/></joint><link name="{n}_foot"/>"""
NAMES = {"lf": (1, 1), "rf": (1, -1), "lh": (-1, 1), "rh": (-1, -1)}
URDF = (
    '<robot name="quad"><link name="base"><inertial><mass value="30"/></inertial></link>'
    + "".join(LEG.format(n=n, x=0.4 * x, y=0.2 * y) for n, (x, y) in NAMES.items())
    + "</robot>"
)
CONFIG = {
    "name": "quad",
    "feet": {
        f"{n}_foot": {
            "side": "left" if y > 0 else "right",
            "end": "front" if x > 0 else "hind",
            "radius": 0.02,
        }
        for n, (x, y) in NAMES.items()
    },
}
MODEL = RobotModel.from_urdf(URDF)
LEGS = quadruped_legs(MODEL, RobotConfig.from_dict(CONFIG))
COUNT = 12
ENCODER_STEP = 2 * math.pi / 2**16


@cache
def trot(duration, rate=1000.0, hertz=1.0):
    """Samples of a robot that trots on the spot: a leg is bent while it swings and stands else."""
    rng = np.random.default_rng(1)
    time = np.arange(int(duration * rate))[:, None] / rate
    phase = (np.repeat([0.0, 0.5, 0.5, 0.0], 3) + hertz * time) % 1.0
    swings = phase < 0.5
    bend = np.where(swings, np.sin(2 * np.pi * phase) ** 2, 0.0)
    speed = np.where(swings, 2 * np.pi * hertz * np.sin(4 * np.pi * phase), 0.0)
    amplitude = np.tile([0.002, 0.3, 0.6], 4)
    q = amplitude * bend + 1e-4 * np.sin(7.0 * time)
    position = np.round(q / ENCODER_STEP) * ENCODER_STEP
    torque = np.where(swings, 2.0, 40.0) + 3.0 * np.sin(9.0 * time + np.arange(COUNT))
    torque *= 1 + 0.01 * rng.normal(size=torque.shape)
    velocity = amplitude * speed + 0.005 * rng.normal(size=torque.shape)
    gyro = 0.005 * rng.normal(size=(len(time), 3))
    force = [0, 0, 9.81] + 0.03 * rng.normal(size=gyro.shape)
    times = 100.0 + time[:, 0]
    columns = zip(times.tolist(), position, torque, velocity, gyro, force, strict=True)
    return [Sample(*values, R_world_imu=np.eye(3)) for values in columns]


def stand(duration, rate=1000.0, noise=1.0):
    for k, sample in enumerate(trot(duration, rate)):
        rng = np.random.default_rng(k)
        yield replace(
            sample,
            position=np.full(COUNT, 0.25),
            velocity=0.005 * rng.normal(size=COUNT) + 0.002,
            effort=40.0 + noise * rng.normal(size=COUNT),
        )


def run(samples, change=lambda t, s: s, health=None):
    """Verdicts by time since the start; `change` spoils the samples."""
    health = health or InputChecks(MODEL, LEGS)
    verdicts = {}
    for sample in samples:
        time = sample.time - 100.0
        verdicts[round(time, 6)] = health.check(change(time, sample))
    return verdicts


def spoiled(sample, joint, **values):
    changes = {}
    for key, value in values.items():
        changes[key] = getattr(sample, key).copy()
        changes[key][joint] = value
    return replace(sample, **changes)


def between(verdicts, start, end):
    return [v for t, v in verdicts.items() if start <= t < end]


def assert_sound(verdicts):
    for verdict in verdicts:
        assert reason(verdict.problems) == ""
        assert verdict.sample is not None
        assert np.isfinite(verdict.sample.effort).all()
        assert np.isfinite(verdict.sample.specific_force).all()


@pytest.mark.parametrize("rate", [200.0, 500.0, 1000.0])
def test_a_trot_is_sound(rate):
    assert_sound(run(trot(4.0, rate)).values())


@pytest.mark.parametrize("hertz", [0.5, 2.0])
def test_other_gaits_are_sound(hertz):
    assert_sound(run(trot(6.0, hertz=hertz)).values())


def test_standing_is_sound():
    assert_sound(run(stand(3.0)).values())


def test_standing_and_then_trotting_is_sound():
    def change(time, sample):
        return next(still) if time < 2.0 else sample

    still = stand(2.5)
    verdicts = run(trot(6.0), change)
    assert_sound(verdicts.values())


def test_coarse_torques_are_learned():
    """Sensors of half a N m per step repeat themselves for many samples; that is soon usual."""

    def change(time, sample):
        return replace(sample, effort=np.round(sample.effort / 0.5) * 0.5)

    verdicts = run(trot(4.0), change)
    assert all(not v.problems for v in verdicts.values())
    late = between(verdicts, 2.0, 4.0)
    masked = np.mean([v.sample is None or np.isnan(v.sample.effort).any() for v in late])
    assert masked < 0.1


@pytest.mark.parametrize("slow", [2, 5])
def test_a_driver_that_repeats_each_sample(slow):
    """Sensors at a fraction of the rate: the copies are left out, without a word."""
    kept = {}

    def change(time, sample):
        if round(time * 1000) % slow == 0:
            kept["sample"] = sample
        return replace(kept["sample"], time=sample.time)

    verdicts = list(run(trot(1.0), change).values())
    assert all(not v.problems for v in verdicts)
    assert sum(v.sample is not None for v in verdicts) == pytest.approx(1000 / slow, abs=2)


@pytest.mark.parametrize("spell", [np.nan, 0.0])
def test_no_effort(spell):
    def change(time, sample):
        return replace(sample, effort=np.full(COUNT, spell)) if 1.0 <= time < 1.5 else sample

    verdicts = run(trot(2.5), change)
    during = between(verdicts, 1.0, 1.5)
    assert all(v.sample is None for v in during)
    expected = {True: "carries no effort", False: "the effort of every joint is zero"}
    text = reason(during[0].problems)
    assert expected[math.isnan(spell)] in text
    assert "measure" in text
    assert_sound(between(verdicts, 1.5, 2.5))


@pytest.mark.parametrize("value", [0.0, 40.0, None])
@pytest.mark.parametrize("joint", [0, 4, 11])
def test_one_dead_torque_sensor(value, joint):
    last = {}

    def change(time, sample):
        if not 1.0 <= time < 2.0:
            last["effort"] = sample.effort[joint]
            return sample
        return spoiled(sample, joint, effort=last["effort"] if value is None else value)

    verdicts = run(trot(3.0), change)
    # Hardly a wrong torque gets through: one or two repeated samples, then NaN, then nothing.
    leaked = [
        v for v in between(verdicts, 1.0, 2.0) if v.sample and np.isfinite(v.sample.effort[joint])
    ]
    assert len(leaked) <= (0 if value == 0.0 else 2)
    late = between(verdicts, 1.2, 2.0)
    assert all(np.isnan(v.sample.effort[joint]) for v in late)
    assert all(np.isfinite(np.delete(v.sample.effort, joint)).all() for v in late)
    assert all(worst_is(v, Severity.DEGRADE) for v in late)
    text = reason(late[-1].problems)
    assert f"the effort of {MODEL.joint_names[joint]} (" in text
    assert "check the torque sensor" in text
    assert_sound(between(verdicts, 2.15, 3.0))


def test_a_drive_at_its_limit_is_no_dead_sensor():
    def change(time, sample):
        return spoiled(sample, 4, effort=90.0) if 1.0 <= time < 1.5 else sample

    assert_sound(run(trot(2.0), change).values())


@pytest.mark.parametrize("joint", [1, 5, 10])
def test_a_stuck_encoder_whose_velocity_goes_on(joint):
    last = {}

    def change(time, sample):
        if not 2.0 <= time < 4.0:
            last["q"] = sample.position[joint]
            return sample
        return spoiled(sample, joint, position=last["q"])

    verdicts = run(trot(5.0), change)
    wrong = [
        t
        for t, (v, true) in zip(
            verdicts, zip(verdicts.values(), trot(5.0), strict=True), strict=True
        )
        if v.sample and abs(v.sample.position[joint] - true.position[joint]) > 0.01
    ]
    assert not wrong  # held back before the position is wrong by more than that
    during = between(verdicts, 2.0, 4.0)
    held = next(v for v in during if v.sample is None)
    assert f"the position of {MODEL.joint_names[joint]} (" in reason(held.problems)
    assert "check the encoder" in reason(held.problems)
    assert_sound(between(verdicts, 4.2, 5.0))


@pytest.mark.parametrize("joint", [1, 5, 10])
def test_a_stuck_encoder_without_velocity(joint):
    last = {}

    def change(time, sample):
        if not 4.0 <= time < 6.5:
            last["q"] = sample.position[joint]
            return sample
        return spoiled(sample, joint, position=last["q"], velocity=0.0)

    verdicts = run(trot(8.0), change)
    late = between(verdicts, 5.6, 6.5)
    assert all(v.sample is None for v in late)
    assert f"the position of {MODEL.joint_names[joint]} (" in reason(late[0].problems)
    assert_sound(between(verdicts, 7.3, 8.0))  # after its next swing


def test_a_position_that_is_not_finite():
    verdicts = run(trot(1.0), lambda t, s: spoiled(s, 3, position=np.nan) if t < 0.5 else s)
    first = between(verdicts, 0.0, 0.5)
    assert all(v.sample is None for v in first)
    assert "the position of rf_haa is not finite: check its encoder" in reason(first[0].problems)
    assert_sound(between(verdicts, 0.7, 1.0))


def test_a_driver_that_hangs():
    last = {}

    def change(time, sample):
        if not 1.0 <= time < 1.5:
            last["sample"] = sample
            return sample
        return replace(last["sample"], time=sample.time)

    verdicts = run(trot(2.0), change)
    assert all(v.sample is None for v in between(verdicts, 1.0, 1.5))
    (late,) = between(verdicts, 1.2, 1.201)
    assert "joint_states repeats itself for 0.20 s under new stamps" in reason(late.problems)
    assert_sound(between(verdicts, 1.5, 2.0))


def nan3():
    return np.full(3, np.nan)


def test_imu_silent_for_a_second():
    def change(time, sample):
        if not 1.0 <= time < 2.0:
            return sample
        R = np.full((3, 3), np.nan)
        return replace(sample, angular_velocity=nan3(), specific_force=nan3(), R_world_imu=R)

    verdicts = run(trot(3.0), change)
    (late,) = between(verdicts, 1.5, 1.501)
    assert [p.severity for p in late.problems] == [Severity.DEGRADE]
    assert "imu is silent for 0.50 s: check its driver and topic" in reason(late.problems)
    assert late.sample is not None
    assert_sound(between(verdicts, 2.0, 3.0))


def test_accelerometer_missing():
    verdicts = run(trot(0.2), lambda t, s: replace(s, specific_force=nan3()))
    (late,) = between(verdicts, 0.1, 0.101)
    assert "the accelerometer is not known" in reason(late.problems)
    assert np.isfinite(late.sample.angular_velocity).all()


def test_imu_stuck():
    last = {}

    def change(time, sample):
        if not 1.0 <= time < 2.0:
            last["imu"] = sample
            return sample
        old = last["imu"]
        return replace(
            sample, angular_velocity=old.angular_velocity, specific_force=old.specific_force
        )

    verdicts = run(trot(2.5), change)
    late = between(verdicts, 1.2, 2.0)
    assert all("the imu has said exactly the same for" in reason(v.problems) for v in late)
    assert all(np.isnan(v.sample.specific_force).all() for v in late)
    assert all(np.isnan(v.sample.angular_velocity).all() for v in late)
    assert_sound(between(verdicts, 2.0, 2.5))


def test_an_imu_of_100_hz_is_not_stuck():
    last = {}

    def change(time, sample):
        if round(time * 1000) % 10 == 0:
            last["imu"] = sample
        old = last["imu"]
        return replace(
            sample, angular_velocity=old.angular_velocity, specific_force=old.specific_force
        )

    assert_sound(run(trot(1.0), change).values())


@pytest.mark.parametrize(("scale", "offset"), [(1 / 9.81, 0.0), (1.0, -9.81)])
def test_an_accelerometer_in_other_units(scale, offset):
    def change(time, sample):
        return replace(sample, specific_force=sample.specific_force * scale + [0, 0, offset])

    verdicts = run(trot(2.0), change)
    assert all(np.isnan(v.sample.specific_force).all() for v in verdicts.values())
    (late,) = between(verdicts, 0.1, 0.101)
    assert "m/s^2 on average, not 9.81: it must give m/s^2 (not g), with gravity" in reason(
        late.problems
    )
    assert np.isnan(late.sample.specific_force).all()
    assert np.isfinite(late.sample.R_world_imu).all()


def test_an_accelerometer_whose_unit_changes():
    def change(time, sample):
        return (
            replace(sample, specific_force=sample.specific_force / 9.81) if time > 0.5 else sample
        )

    verdicts = run(trot(2.0), change)
    late = between(verdicts, 0.65, 2.0)
    assert all(np.isnan(v.sample.specific_force).all() for v in late)
    assert re.search("the accelerometer says 1.0. m/s.2, not 9.81", reason(late[0].problems))


def test_flight_is_no_fault_of_the_accelerometer():
    def change(time, sample):
        return (
            replace(sample, specific_force=0.01 * sample.specific_force) if flies(time) else sample
        )

    def flies(time):
        return time % 0.5 > 0.42

    assert_sound(run(trot(3.0), change).values())


def test_a_gap_is_no_stuck_encoder():
    """Joints that hardly move say the same before and after."""
    hips = np.arange(0, COUNT, 3)
    samples = [s for s in trot(6.0) if not 102.6 < s.time < 104.6]
    coarse = [spoiled(s, hips, position=np.round(s.position[hips], 3)) for s in samples]
    assert_sound(run(coarse).values())


# --- times -----------------------------------------------------------------------------------
def test_the_rate_halves_and_comes_back():
    samples = [s for k, s in enumerate(trot(4.0)) if not 1000 <= k < 2000 or k % 2 == 0]
    verdicts = run(samples)
    (late,) = between(verdicts, 1.9, 1.901)
    assert re.search(r"joint_states comes at 5\d\d Hz and came at 9\d\d", reason(late.problems))
    assert late.sample is not None
    assert late.problems[0].severity is Severity.DEGRADE
    assert_sound(between(verdicts, 2.5, 4.0))


def test_a_pause_after_the_first_sample_is_no_rate():
    """As of a node that compiles its kernels while samples wait."""
    samples = trot(3.0)
    verdicts = run([samples[0], *samples[1000:]])
    assert_sound(between(verdicts, 1.1, 3.0))


def test_a_rate_that_is_too_low():
    (late,) = between(run(trot(1.0, rate=100.0)), 0.9, 0.901)
    assert "joint_states comes at 100 Hz: raise it to 150 Hz" in reason(late.problems)


def test_a_low_rate_that_the_user_asked_for_is_sound():
    verdicts = run(trot(2.0, rate=100.0), health=InputChecks(MODEL, LEGS, rate_hz=100.0))
    assert_sound(verdicts.values())
    (late,) = between(
        run(trot(1.0, rate=100.0), health=InputChecks(MODEL, LEGS, rate_hz=140.0)), 0.9, 0.901
    )
    assert "joint_states comes at 100 Hz: raise it to 112 Hz" in reason(late.problems)


def test_a_first_stamp_of_another_clock_is_no_fault():
    """A stamp of zero counts as the time of receipt, until the clock of the stamps has started."""
    samples = trot(2.0)
    first = replace(samples[0], time=1.7e9)
    health = InputChecks(MODEL, LEGS)
    assert_sound([health.check(first)])
    verdict = health.check(samples[1])
    assert verdict.restart
    assert_sound([verdict, *run(samples[2:], health=health).values()])


@pytest.mark.parametrize("lost", [{"angular_velocity"}, {"R_world_imu"}])
def test_one_reading_of_the_imu_that_is_missing_is_no_fault(lost):
    """At a low rate either, where it is many milliseconds."""
    unknown = {"angular_velocity": np.full(3, np.nan), "R_world_imu": np.full((3, 3), np.nan)}

    def change(time, sample):
        lose = round(time / 0.005) % 10 == 0
        return replace(sample, **{name: unknown[name] for name in lost}) if lose else sample

    for verdict in run(trot(2.0, rate=200.0), change).values():
        assert reason(verdict.problems) == ""


def test_many_gaps():
    rng = np.random.default_rng(2)
    samples, hole = [], 0
    for sample in trot(3.0):
        hole = hole - 1 if hole else (4 if rng.uniform() < 0.2 else 0)
        if not hole:
            samples.append(sample)
    health = InputChecks(MODEL, LEGS)
    texts = {reason(health.check(sample).problems) for sample in samples}
    assert any("% of the joint_states come after a gap: check the network" in t for t in texts)


def test_samples_that_come_twice_or_late_are_left_out():
    samples = list(trot(0.1))
    health = InputChecks(MODEL, LEGS)
    for sample in samples:
        health.check(sample)
    twice, late = health.check(samples[-1]), health.check(samples[-5])
    assert twice.sample is None
    assert late.sample is None
    assert "comes twice: is there a second driver? Such samples are left out" in reason(
        twice.problems
    )
    assert "went back by 0.0040 s" in reason(late.problems)
    assert worst_is(twice, Severity.DEGRADE)
    following = run([replace(s, time=s.time + 0.1) for s in trot(2.0)], health=health)
    assert worst_is(following[0.1], Severity.DEGRADE)
    assert_sound(between(following, 1.3, 2.0))


def worst_is(verdict, severity):
    return max(problem.severity for problem in verdict.problems) is severity


def test_a_recording_that_starts_again():
    health = InputChecks(MODEL, LEGS)
    run(trot(1.0), health=health)
    again = run(trot(2.5), health=health)
    assert [t for t, v in again.items() if v.restart] == [0.0]
    assert "the stamps went back: everything starts again" in reason(again[0.0].problems)
    assert again[0.0].sample is not None
    assert_sound(between(again, 1.1, 2.5))


def test_a_stamp_that_is_not_finite():
    health = InputChecks(MODEL, LEGS)
    sample = trot(1.0)[0]
    assert health.check(replace(sample, time=np.nan)).sample is None


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
    assert "z of the CoM cannot be seen" in problem.text


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
    problems = [gait.update(0.005 * k, down, down, load=-1.0 + 0.01 * k) for k in range(100)]
    assert problems[5] is None
    assert problems[10].severity is Severity.HOLD
    assert "by the efforts the ground pulls at the feet: effort has the wrong sign" in (
        problems[10].text
    )
    assert problems[85] is None
    assert gait.update(1.0, down, down, load=np.nan) is None


def test_hanging():
    problem = watch(lambda t: [0, 0, 0, 0])[0.5]
    assert problem == Problem(
        Severity.HOLD, "no foot carries the robot for 0.5 s: put it on its feet"
    )


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
        health.watch_gait(sample.time, ~all_down, all_down)
        verdict = health.check(sample)
    assert verdict.sample is None
    assert "no foot carries the robot" in reason(verdict.problems)


# --- estimates -------------------------------------------------------------------------------
def estimate(status=Status.CONVERGED, mass=30.0, deviation=0.5, text=""):
    return TrunkEstimate(
        time=1.0,
        status=status,
        reason=text,
        mass=mass,
        mass_std=deviation,
        com=np.zeros(3),
        covariance=np.eye(3),
        offset_from_urdf=np.zeros(3),
        offset_from_center=np.zeros(3),
        observable=np.ones(3, dtype=bool),
        payload_changed_at=np.nan,
    )


def test_mass_against_the_urdf():
    assert mass_problem(estimate(mass=31.5), 30.0) is None
    assert mass_problem(estimate(mass=30.3, deviation=0.01), 30.0) is None
    assert mass_problem(estimate(Status.ESTIMATING, mass=60.0), 30.0) is None
    heavy, light = mass_problem(estimate(mass=40.0), 30.0), mass_problem(estimate(mass=20.0), 30.0)
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
