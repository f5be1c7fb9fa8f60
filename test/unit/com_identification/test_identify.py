"""From readings to masses and CoMs: accuracy, right standard deviations, outliers, bounds."""

import re
from dataclasses import replace

import numpy as np
import pytest

from com_identification.exceptions import IdentificationError, PostureError
from com_identification.regression.identify import identify
from com_identification.regression.postures import make_posture
from com_identification.regression.priors import BOUND_AXES, Evidence, urdf_priors
from com_identification.regression.result import issues_of
from com_identification.regression.statics import Statics
from com_identification.settings import (
    FitSettings,
    IdentificationSettings,
    SensorNoise,
    SensorPriors,
)
from com_identification.store.results import corrected_inertials, corrected_urdf
from com_model import ConfigError, RobotModel, Sesc

pytestmark = pytest.mark.slow

NOISE = SensorNoise(force=0.5, moment=0.025, effort=0.02, position=np.radians(0.05))
OFF = 0.005  # m, every centre of mass, each axis


def free_postures(robot, rng, count, random_q, **keys):
    """On one foot, all joints anywhere: no robot could, but the equations do not mind."""
    loads = [[1.0, 0.0], [0.0, 1.0]]
    return [
        robot.posture(random_q(rng), loads[i % 2], NOISE, rng, 100, **keys)
        for i in range(count)
    ]


def settings_of(noise=NOISE, sensors=None, **fit):
    """All readings are used, of sensors without other errors than the given ones."""
    fit = FitSettings(use_effort=True, use_imu=True, **fit)
    sensors = sensors or SensorPriors.calibrated()
    return IdentificationSettings(noise=noise, sensors=sensors, fit=fit)


def priors_of(model, mass_std_fraction=0.0):
    return urdf_priors(model, OFF, mass_std_fraction)


def held_out_rms(robot, found, rng, random_q, count=100):
    """m, of the predicted CoM, horizontal, with the corrected URDF, against Pinocchio."""
    sesc = Sesc(RobotModel.from_urdf(corrected_urdf(robot.model, found)))
    squares = []
    for _ in range(count):
        q = random_q(rng)
        off = robot.frame(q, "l_sole")[0].T @ (sesc.com(q) - robot.com(q))
        squares.append(off[:2] @ off[:2])
    return np.sqrt(np.mean(squares))


@pytest.fixture(scope="module")
def identified(hoap2, perturbed, random_q):
    rng = np.random.default_rng(0)
    robot, mass, com = perturbed(rng, OFF)
    postures = free_postures(robot, rng, 60, random_q)
    found = identify(*hoap2, postures, settings_of(), priors_of(hoap2[0]))
    return robot, mass, com, found


def test_predicts_the_com_of_other_postures(identified, random_q):
    robot, _, _, found = identified
    rms = held_out_rms(robot, found, np.random.default_rng(1), random_q)
    print(f"held-out CoM {1e3 * rms:.3f} mm RMS from 60 free postures")
    assert rms < 0.3e-3


def test_shows_itself(identified, hoap2):
    found = identified[-1]
    assert f"{found.total_mass:.4g} ±" in repr(found)
    _, head, rows = found.facts()
    assert len(rows) == hoap2[0].bodies.count
    for row, mass, moved in zip(
        rows, found.mass, found.com - found.prior_com, strict=True
    ):
        assert len(row) == len(head)
        assert float(row[2]) == pytest.approx(mass, abs=5e-4)
        assert [float(cell) for cell in row[3:]] == pytest.approx(1e3 * moved, abs=0.05)


def test_reports_how_well_it_fits(identified):
    found = identified[-1]
    assert found.residual.count == found.held_out.count == 60
    assert found.residual.rms < found.held_out.rms < 0.5 * found.prior_residual.rms
    assert found.residual.mean < found.residual.maximum
    assert found.outliers == ()
    assert 0.6 < found.variance_factor < 1.6
    assert found.total_mass == pytest.approx(7.1200448)
    assert found.total_mass_std == 0.0, "the masses were given as known"
    assert found.identifiability.condition > 1.0


def test_stds_are_right(hoap2, perturbed, random_q):
    """Squared errors over their covariance, averaged over robots: 1."""
    priors = priors_of(hoap2[0])
    to_x = np.linalg.pinv(priors.factor)
    nees = []
    for seed in range(3):
        rng = np.random.default_rng(100 + seed)
        robot, mass, com = perturbed(rng, OFF)
        postures = free_postures(robot, rng, 30, random_q)
        settings = settings_of(folds=0)
        found = identify(*hoap2, postures, settings, priors)
        truth = np.column_stack((mass, mass[:, None] * com)).ravel()
        error, covariance = (
            to_x @ (found.parameters - truth),
            to_x @ found.covariance @ to_x.T,
        )
        nees.append(error @ np.linalg.solve(covariance, error) / len(error))
    print("NEES", np.round(nees, 2))
    assert np.mean(nees) == pytest.approx(1.0, abs=0.25)


def test_efforts_are_used_only_where_the_settings_say_so_and_progress_is_in_words(
    hoap2, perturbed, random_q
):
    rng = np.random.default_rng(0)
    robot, _, _ = perturbed(rng, OFF)
    postures = [
        robot.posture(random_q(rng), [1.0, 0.0], NOISE, rng, 100, effort=True)
        for _ in range(16)
    ]
    settings = IdentificationSettings.from_dict({"fit": {"folds": 2}})
    reported = []
    found = identify(
        *hoap2, postures, settings, progress=lambda *step: reported.append(step)
    )
    bare = [make_posture(hoap2[0], p.q, p.wrenches, samples=100) for p in postures]
    same = identify(*hoap2, bare, settings)
    np.testing.assert_array_equal(found.parameters, same.parameters)
    fractions, steps = zip(*reported, strict=True)
    assert list(fractions) == sorted(fractions)
    assert (fractions[0], fractions[-1], steps[-1]) == (0.0, 1.0, "done")
    assert steps[0] == "fitting 16 postures, round 1 of at most 3"
    assert "predicting postures left out, part 2 of 2" in steps

    def stop(fraction, step):
        raise InterruptedError

    with pytest.raises(InterruptedError):
        identify(*hoap2, postures, settings, progress=stop)
    few = identify(*hoap2, postures[:3], settings)
    assert "3 postures determine" in few.redundancy
    assert not found.redundancy
    assert few.identifiability.rank <= 7, "two in each posture, and the total mass"


def test_unknown_masses_are_found_as_far_as_can_be(hoap2, perturbed, random_q):
    rng = np.random.default_rng(2)
    robot, mass, _ = perturbed(rng, OFF, mass_std_fraction=0.05)
    postures = free_postures(robot, rng, 60, random_q)
    priors = priors_of(hoap2[0], mass_std_fraction=0.05)
    found = identify(*hoap2, postures, settings_of(), priors)
    assert abs(found.total_mass - mass.sum()) < 4.0 * found.total_mass_std
    assert found.total_mass_std < 0.02, "the feet are a scale"
    assert held_out_rms(robot, found, rng, random_q) < 0.5e-3
    exchanged = [
        text for text in found.identifiability.lost if "mass at the origin of" in text
    ]
    assert len(exchanged) == 25


def test_links_that_were_weighed_stay_as_they_are(hoap2, perturbed, random_q):
    """The trunk's mass and the head's centre of mass are known; all else is not."""
    model, _ = hoap2
    rng = np.random.default_rng(12)
    robot, mass, com = perturbed(rng, OFF, mass_std_fraction=0.05)
    trunk, head = 0, model.bodies.joint_names.index("HEAD_JOINT2")
    spread = np.full((model.bodies.count, 3), OFF)
    fraction = np.full(model.bodies.count, 0.05)
    spread[head], fraction[[trunk, head]] = 0.0, 0.0
    known = priors_of(model)
    mean_mass, mean_com = known.mass.copy(), known.com.copy()
    mean_mass[[trunk, head]], mean_com[head] = mass[[trunk, head]], com[head]
    priors = replace(
        known,
        mass=mean_mass,
        com=mean_com,
        mass_std=fraction * mean_mass,
        com_std=spread,
    )
    postures = free_postures(robot, rng, 40, random_q, effort=True)
    found = identify(*hoap2, postures, settings_of(folds=0), priors)
    np.testing.assert_allclose(
        found.mass[[trunk, head]], mass[[trunk, head]], rtol=1e-12
    )
    np.testing.assert_allclose(found.com[head], com[head], atol=1e-12)
    assert (found.com_std[head] == 0.0).all()
    assert (found.mass_std[[trunk, head]] == 0.0).all()
    off = found.parameters - np.column_stack((mass, mass[:, None] * com)).ravel()
    unknown = np.diag(found.covariance) > 0.0
    assert unknown.sum() == 4 * model.bodies.count - 5
    assert (
        np.sqrt(np.mean(off[unknown] ** 2 / np.diag(found.covariance)[unknown])) < 1.5
    )
    assert found.identifiability.unknowns == unknown.sum()


@pytest.mark.parametrize("wrong", [0, 2])
def test_stds_are_right_with_sensor_errors_and_outliers(
    hoap2, perturbed, random_q, wrong
):
    model, _ = hoap2
    priors, nees = priors_of(model), []
    to_x = np.linalg.pinv(priors.factor)
    weight = 9.81 * model.mass
    sensors = SensorPriors.calibrated(
        force_bias=2.0 / weight, moment_bias=0.1 / weight, joint_offset=np.radians(0.5)
    )
    for seed in range(2):
        rng = np.random.default_rng(200 + seed)
        robot, mass, com = perturbed(rng, OFF)
        offset = rng.normal(0, sensors.joint_offset, model.n_joints)
        bias = rng.normal(0, 1, (2, 6)) * np.repeat([2.0, 0.1], 3)
        postures = []
        for i, posture in enumerate(
            free_postures(robot, rng, 40, random_q, effort=True)
        ):
            pushed = bias + np.eye(2, 6, 3) * (2.0 if i < wrong else 0.0)
            postures.append(
                make_posture(
                    model,
                    posture.q - offset,
                    posture.wrenches + pushed,
                    posture.effort,
                    samples=100,
                )
            )
        settings = settings_of(sensors=sensors, folds=0)
        found = identify(*hoap2, postures, settings, priors)
        truth = np.column_stack((mass, mass[:, None] * com)).ravel()
        error, covariance = (
            to_x @ (found.parameters - truth),
            to_x @ found.covariance @ to_x.T,
        )
        nees.append(error @ np.linalg.solve(covariance, error) / len(error))
        errors = np.array(list(found.sensor_errors["joint_offset"].values())) - offset
        stds = np.array(list(found.sensor_stds["joint_offset"].values()))
        assert np.sqrt(np.mean((errors / stds) ** 2)) < 1.5
        assert found.outliers == tuple(range(wrong))
    print("NEES", np.round(nees, 2))
    assert np.mean(nees) == pytest.approx(1.0, abs=0.3)


def test_a_spoilt_posture_is_found_and_left_out(hoap2, perturbed, random_q):
    rng = np.random.default_rng(3)
    robot, _, _ = perturbed(rng, OFF)
    postures = free_postures(robot, rng, 40, random_q)
    for i in (7, 21):
        bad = postures[i].wrenches.copy()
        bad[i % 2, 3:] += [3.0, -2.0, 0.0]  # someone held the robot
        postures[i] = make_posture(robot.model, postures[i].q, bad, samples=100)
    found = identify(*hoap2, postures, settings_of(), priors_of(hoap2[0]))
    assert found.outliers == (7, 21)
    good = found.without_outliers
    assert (found.held_out.count, good.held_out.count, good.residual.count) == (
        40,
        38,
        38,
    )
    assert found.residual.maximum > 5e-3, "outliers have full weight"
    assert good.residual.maximum < 1e-3
    assert good.held_out.maximum < 3e-3
    rms = held_out_rms(robot, found, np.random.default_rng(4), random_q)
    print(f"{1e3 * rms:.2f} mm")
    assert rms < 0.3e-3


def test_efforts_and_sensor_errors_are_found_together(hoap2, perturbed, random_q):
    rng = np.random.default_rng(5)
    robot, _, _ = perturbed(rng, OFF)
    model = hoap2[0]
    bias = np.array(
        [[2.0, -1.0, 3.0, 0.1, -0.05, 0.02], [0.0, 2.0, -2.0, 0.0, 0.1, 0.1]]
    )
    offset, constant = np.radians(rng.normal(0, 0.5, 25)), rng.normal(0, 0.1, 25)
    postures = [
        make_posture(
            model,
            posture.q - offset,
            posture.wrenches + bias,
            posture.effort / (1.0 + constant),
            up=posture.up,
            samples=100,
        )
        for posture in (
            robot.posture(q, [0.5, 0.5], NOISE, rng, 100, effort=True, up=up)
            for q, up in (
                (random_q(rng), np.array([x, y, 1.0]) / np.sqrt(1.0 + x * x + y * y))
                for x, y in rng.uniform(-0.4, 0.4, (30, 2))
            )
        )
    ]
    weight = 9.81 * model.mass
    sensors = SensorPriors.calibrated(
        force_bias=3.0 / weight,
        moment_bias=0.2 / weight,
        effort_gain=0.1,
        joint_offset=np.radians(0.5),
    )
    found = identify(
        *hoap2, postures, settings_of(sensors=sensors, folds=0), priors_of(model)
    )
    assert set(found.sensor_errors) == {
        "force_bias",
        "moment_bias",
        "effort_gain",
        "joint_offset",
    }
    assert found.sensor_errors["force_bias"]["l_sole z"] + found.sensor_errors[
        "force_bias"
    ]["r_sole z"] == pytest.approx(1.0, abs=0.2)
    knee = model.joint_names.index("LLEG_JOINT4")
    for kind, truth, fraction in (
        ("effort_gain", constant, 0.1),
        ("joint_offset", offset, 0.8),
    ):
        error = np.array(list(found.sensor_errors[kind].values())) - truth
        std = np.array(list(found.sensor_stds[kind].values()))
        assert np.sqrt(np.mean((error / std) ** 2)) < 1.5, kind
        # A joint's zero is observable beside the CoMs only as far as the prior knows these.
        assert std[knee] < fraction * getattr(sensors, kind), kind
    blind = identify(*hoap2, postures, settings_of(folds=0), priors_of(model))
    assert blind.variance_factor > 10.0 * found.variance_factor
    assert blind.variance_factor > blind.variance_limit
    assert found.variance_factor < found.variance_limit


def test_bounds_keep_the_com_inside_the_link(hoap2, perturbed, random_q):
    model, _ = hoap2
    rng = np.random.default_rng(6)
    robot, _, _ = perturbed(rng, 0.05)
    postures = free_postures(robot, rng, 12, random_q)
    wide = urdf_priors(model, 0.3)
    narrow = urdf_priors(model, 0.3, shape_margin=0.0)
    free, held = (
        identify(*hoap2, postures, settings_of(folds=0), priors)
        for priors in (wide, narrow)
    )
    along, slack = free.com @ BOUND_AXES.T, 1e-9
    assert not ((narrow.com_low <= along) & (along <= narrow.com_high)).all()
    along = held.com @ BOUND_AXES.T
    assert (narrow.com_low - slack <= along).all()
    assert (along <= narrow.com_high + slack).all()
    assert held.at_bound


def test_same_input_gives_the_same_bits(hoap2, perturbed, random_q):
    robot, _, _ = perturbed(np.random.default_rng(7), OFF)
    postures = free_postures(robot, np.random.default_rng(8), 20, random_q)
    twice = [identify(*hoap2, postures, settings_of(folds=0)) for _ in range(2)]
    assert (twice[0].parameters == twice[1].parameters).all()
    assert twice[0].identifiability.lost == twice[1].identifiability.lost


def test_refuses_what_cannot_be_identified(hoap2, perturbed, random_q):
    rng = np.random.default_rng(9)
    robot, _, _ = perturbed(rng, OFF)
    with pytest.raises(IdentificationError, match="no postures: capture some first"):
        identify(*hoap2, [])
    q = random_q(rng)
    same = [robot.posture(q, [1.0, 0.0], NOISE, rng, 100) for _ in range(20)]
    found = identify(*hoap2, same)
    assert re.match(
        r"20 postures determine .* of 54 .* move BODY_JOINT1", found.redundancy
    )
    assert found.redundancy in issues_of(found)
    assert np.nanmedian(found.com_std / found.prior_com_std) > 0.98, (
        "hardly anything is known"
    )
    with pytest.raises(IdentificationError, match="all parameters are known"):
        identify(*hoap2, same, priors=urdf_priors(hoap2[0], 0.0))
    good = free_postures(robot, rng, 30, random_q)
    good[4] = make_posture(robot.model, q)
    with pytest.raises(PostureError, match="posture 4: it has no foot wrench"):
        identify(*hoap2, good)
    with pytest.raises(
        ConfigError, match=r"joint_offset is -1\.0: give a number from 0"
    ):
        SensorPriors(joint_offset=-1.0)
    without_noise = settings_of(SensorNoise(0.0, 0.0, 0.0, 0.0, 0.0))
    with pytest.raises(
        IdentificationError, match="give every sensor a standard deviation"
    ):
        identify(*hoap2, good[:4], without_noise)


def test_corrected_urdf_has_the_new_centres_of_mass_and_nothing_else(identified):
    robot, _, _, found = identified
    model = RobotModel.from_urdf(corrected_urdf(robot.model, found))
    theta = Statics(model).parameters
    np.testing.assert_allclose(theta, found.parameters, atol=1e-12)
    assert model.joint_names == robot.model.joint_names
    lines = [xml.splitlines() for xml in (robot.model.xml, model.xml)]
    changed = [a for a, b in zip(*lines, strict=True) if a != b]
    assert all("<origin" in line for line in changed)
    same = corrected_inertials(
        robot.model,
        robot.model.bodies.mass,
        robot.model.bodies.first_moment / robot.model.bodies.mass[:, None],
    )
    assert same == {}
    with pytest.raises(IdentificationError, match=r"mass of -.*expected both above 0"):
        corrected_inertials(robot.model, -robot.model.bodies.mass, found.com)


def test_evidence_of_encoders_and_of_a_com_counts_as_priors(hoap2, perturbed, random_q):
    model, _ = hoap2
    rng = np.random.default_rng(7)
    robot, _, com = perturbed(rng, 0.001)
    ankle, body = "RLEG_JOINT5", model.bodies.names[0]
    zero = 0.03  # rad that the encoder reads too much
    postures = []
    for posture in free_postures(robot, rng, 12, random_q):
        q = posture.q.copy()
        q[model.joint_index(ankle)] += zero
        postures.append(replace(posture, q=q))
    before = model.bodies.first_moment[0] / model.bodies.mass[0]
    known = Evidence(
        errors={("joint_offset", ankle): (-zero, 1e-3)},
        coms={body: (com[0] - before, np.full(3, 1e-4))},
    )
    sensors = replace(SensorPriors.calibrated(), joint_offset=1e-3)
    arguments = (
        *hoap2,
        postures,
        settings_of(sensors=sensors, folds=0),
        urdf_priors(model, 0.002),
    )
    plain, found = identify(*arguments), identify(*arguments, evidence=known)
    offset = found.sensor_errors["joint_offset"][ankle]
    assert offset == pytest.approx(-zero, abs=5e-3)
    np.testing.assert_allclose(found.com[0], com[0], atol=5e-4)
    assert (found.com_std[0] <= 1.01e-4).all()
    np.testing.assert_allclose(found.prior_com[0], com[0])
    error = [np.linalg.norm(each.com[0] - com[0]) for each in (plain, found)]
    assert error[1] < 0.5 * error[0]
    assert found.residual.rms < plain.residual.rms
    assert found.prior_residual.rms < plain.prior_residual.rms
