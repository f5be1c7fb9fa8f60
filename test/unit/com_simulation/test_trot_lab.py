"""The laboratory of trotting robots: its logs hold together, and its options do what they say."""

import importlib
import math
import sys
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from com_control.trot.trot import NO_FEEDBACK
from com_model import RobotConfig
from com_model.dynamics import GRAVITY
from com_model.legs import quadruped_legs

pytestmark = pytest.mark.slow

PATH = Path(__file__).resolve().parents[3] / "benchmarks" / "trot_lab.py"
CONFIG = PATH.parents[1] / "src" / "robot_descriptions" / "config" / "scalf2.yaml"
URDF = CONFIG.parents[1] / "urdf" / "scalf2.urdf"


@pytest.fixture(scope="module")
def lab():
    sys.path.insert(0, str(PATH.parent))
    yield importlib.import_module("trot_lab")
    sys.path.remove(str(PATH.parent))


class Knees:
    """A gait for a test: bends the knees of one diagonal, then of the other."""

    def __init__(self, model, config, parameters):
        self.posture = config.nominal_posture(model)
        self.knees = [
            model.joint_names.index(f"{leg}_kfe_joint") for leg in ("lf", "rh")
        ]
        self.depth = parameters.get("depth", 0.0)
        self.offsets, self.tilts, self.rates = [], [], []

    def step(self, time, feedback=NO_FEEDBACK):
        R_world_root, com_offset, angular_velocity = feedback
        self.offsets.append(com_offset)
        targets, speeds = self.posture.copy(), np.zeros_like(self.posture)
        if time < 0.0:
            assert R_world_root is None
            stance = np.ones(4, dtype=bool)
            return SimpleNamespace(position=targets, velocity=speeds, stance=stance)
        self.rates.append(angular_velocity)
        self.tilts.append(np.arccos(min(R_world_root[2, 2], 1.0)))
        opposed = self.depth * np.array([1.0, -1.0])
        targets[self.knees] += np.sin(2.0 * np.pi * time) * opposed
        speeds[self.knees] = 2.0 * np.pi * np.cos(2.0 * np.pi * time) * opposed
        stance = np.array([False, True, True, False])
        return SimpleNamespace(position=targets, velocity=speeds, stance=stance)


@pytest.fixture(scope="module")
def trot(lab):
    """trot(feedback=None, **options): the log of a short run."""

    def make(feedback=None, make_gait=Knees, **options):
        given = {"seconds": 0.2, "noise": lab.CLEAN} | options
        run = lab.TrotRun(str(URDF), str(CONFIG), **given)
        return lab.run_trot(run, feedback, make_gait)

    return make


@pytest.fixture(scope="module")
def clean(trot):
    return trot(gait={"depth": 0.1})


def same(a, b):
    arrays = [f.name for f in fields(a) if isinstance(getattr(a, f.name), np.ndarray)]
    assert len(arrays) > 15
    return all(
        np.array_equal(getattr(a, n), getattr(b, n), equal_nan=True) for n in arrays
    )


def test_the_log_is_of_one_robot(clean):
    assert clean.time.shape == (200,)
    np.testing.assert_allclose(np.diff(clean.time), 0.001, atol=1e-12)
    assert clean.time[0] == 0.0
    assert clean.position.shape == (200, 12)
    assert np.ptp(clean.position, axis=0).max() > 0.01  # it moves
    R = clean.R_world_root
    up = np.einsum("kfj,kj->k", clean.true_forces, R[:, 2])
    assert up.mean() == pytest.approx(clean.model.mass * GRAVITY, rel=0.05)
    np.testing.assert_allclose(clean.foot_forces, clean.true_forces, atol=1e-6)
    np.testing.assert_allclose(
        clean.R_world_imu, R, atol=1e-9
    )  # the IMU has the trunk's axes
    np.testing.assert_allclose(np.sin(clean.pitch), -R[:, 2, 0], atol=1e-12)
    np.testing.assert_array_equal(clean.stance[0], True)
    np.testing.assert_array_equal(clean.stance[1:], [[False, True, True, False]] * 199)
    assert np.isnan(clean.com_offset_used).all()


def test_samples_are_rows_of_the_log(clean):
    samples = list(clean.samples())
    assert len(samples) == 200
    for k in (0, 57, 199):
        for name in (
            "position",
            "effort",
            "specific_force",
            "R_world_imu",
            "foot_forces",
        ):
            np.testing.assert_array_equal(
                getattr(samples[k], name), getattr(clean, name)[k]
            )
        assert samples[k].time == clean.time[k]


@pytest.mark.exhaustive
def test_a_run_can_be_repeated(lab, trot):
    options = {"noise": lab.TROT_NOISE, "seed": 3, "seconds": 0.05}
    first = trot(**options)
    assert same(first, trot(**options))
    assert not np.array_equal(first.effort, trot(**(options | {"seed": 4})).effort)
    np.testing.assert_array_equal(
        first.trunk_com, trot(**(options | {"seed": 4})).trunk_com
    )


def test_what_the_gait_and_the_feedback_are_told(trot):
    gaits, received = [], []

    def make_gait(*arguments):
        gaits.append(Knees(*arguments))
        return gaits[0]

    def feedback(sample):
        received.append(sample)
        return np.array([0.01, 0.02, 0.03]) if sample.time > 0.0205 else None

    log = trot(feedback, make_gait, seconds=0.04)
    assert [sample.time for sample in received] == list(log.time)
    np.testing.assert_array_equal([sample.effort for sample in received], log.effort)
    assert (
        gaits[0].offsets[:22] == [None] * 22
    )  # one of them for where the robot stands
    np.testing.assert_array_equal(gaits[0].offsets[22:], [[0.01, 0.02, 0.03]] * 19)
    assert np.isnan(log.com_offset_used[:22]).all()
    np.testing.assert_array_equal(log.com_offset_used[22:], [[0.01, 0.02, 0.03]] * 18)
    np.testing.assert_allclose(gaits[0].rates, log.angular_velocity, atol=1e-12)
    tilt = np.arccos(np.clip(log.R_world_root[:, 2, 2], -1.0, 1.0))
    np.testing.assert_allclose(gaits[0].tilts, tilt, atol=1e-6)


def test_the_trot_of_com_control_steps_and_stays_upright(trot):
    log = trot(make_gait=None, offset=(-0.03, 0.1, 0.0), seconds=1.2)
    np.testing.assert_array_equal(log.stance[[0, 700]].sum(axis=1), [4, 2])
    lifted = np.linalg.norm(log.true_forces[250], axis=1) < 1.0
    np.testing.assert_array_equal(lifted, ~log.stance[250])
    assert np.degrees(np.abs([log.roll, log.pitch])).max() < 10.0
    assert (
        np.degrees(np.abs(log.roll)).max() > 0.5
    )  # the CoM is off, and nothing makes up for it


@pytest.mark.exhaustive
def test_without_feedback_the_gait_does_not_follow_the_attitude(trot):
    given = []

    def make_gait(model, config, parameters):
        given.append(parameters)
        return Knees(model, config, parameters)

    trot(None, make_gait, seconds=0.01)
    trot(None, make_gait, seconds=0.01, gait={"swing_compensation": True})
    trot(lambda sample: None, make_gait, seconds=0.01)
    assert given == [{"swing_compensation": False}, {"swing_compensation": True}, {}]


def test_a_payload_drops_while_it_trots(trot):
    log = trot(payload=(20.0, (0.5, 0.2, 0.1), 0.1))
    np.testing.assert_allclose(log.trunk_mass[:100], 300.0)
    np.testing.assert_allclose(log.trunk_mass[100:], 320.0)
    shift = np.array([0.5, 0.2, 0.1]) - log.trunk_com[0]
    np.testing.assert_allclose(
        log.trunk_com[100] - log.trunk_com[0], shift * 20 / 320, atol=1e-9
    )


def test_a_shifted_com_is_not_in_the_model(trot):
    offset = np.array([-0.1, 0.03, 0.02])
    log = trot(offset=offset, seconds=0.01)
    known = log.model.bodies.first_moment[0] / log.model.bodies.mass[0]
    np.testing.assert_allclose(log.trunk_com[0], known + offset, atol=1e-12)


def test_legs_that_weigh_more_than_the_model_says(lab, trot):
    run = lab.TrotRun(str(URDF), str(CONFIG), leg_mass_error=(0.1, 0.0, 0.0, -0.1))
    model, _, world = lab.build(run)
    legs = quadruped_legs(model, RobotConfig.from_file(CONFIG))
    ratio = world.robot.bodies.mass / model.bodies.mass
    for leg, factor in zip(legs, (1.1, 1.0, 1.0, 0.9), strict=True):
        bodies = np.flatnonzero(
            np.isin(model.bodies.q_index, leg.joints) & (ratio > 0.0)
        )
        bodies = bodies[bodies > 0]
        np.testing.assert_allclose(ratio[bodies], factor)
    assert ratio[0] == 1.0
    inertia = world.robot.link_inertias / np.where(
        model.link_inertias, model.link_inertias, 1.0
    )
    assert inertia.max() == pytest.approx(1.1)
    log = trot(leg_mass_error=0.05, seconds=0.05)
    legs_mass = log.model.mass - log.trunk_mass[0]
    up = (
        np.einsum("kfj,kj->k", log.true_forces, log.R_world_root[:, 2]).mean() / GRAVITY
    )
    assert up == pytest.approx(log.trunk_mass[0] + 1.05 * legs_mass, abs=0.1)


def test_friction_and_noise_reach_the_simulation(lab, clean, trot):
    run = replace(clean.run, friction=10.0)
    assert lab.build(run)[2].mj.dof_frictionloss.max() == 10.0
    noisy = trot(gait={"depth": 0.1}, noise=lab.TROT_NOISE)
    steps = noisy.position / (2.0 * math.pi / 65536)
    np.testing.assert_allclose(steps, np.round(steps), atol=1e-6)
    errors = np.linalg.norm(noisy.foot_forces - noisy.true_forces, axis=2)
    sizes = np.linalg.norm(noisy.true_forces, axis=2)
    assert errors.mean() / sizes.mean() == pytest.approx(0.01 * 1.6, rel=0.3)
    np.testing.assert_array_equal(noisy.R_world_root, clean.R_world_root)


@pytest.mark.parametrize("processes", [1, 2])
def test_results_come_in_the_order_of_the_items(lab, processes):
    numbers = [9.0, 4.0, 16.0, 1.0]
    assert lab.in_processes(math.sqrt, numbers, "roots", processes) == [
        3.0,
        2.0,
        4.0,
        1.0,
    ]


def test_summary_tells_that_it_stood(lab, clean):
    result = lab.summary(clean)
    assert result["robot"] == "scalf2"
    assert result["force_over_weight"] == pytest.approx(1.0, rel=0.05)
    assert result["tilt_max_deg"] < 5.0
