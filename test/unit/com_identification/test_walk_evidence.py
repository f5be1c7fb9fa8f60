"""The CoM that walking shows, as a posture: by the stabiliser's offset, or by the diagnosis."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from com_control.walking.biped import Biped, heading_to_pelvis
from com_identification.capture.com_evidence import walk_posture
from com_identification.regression.identify import identify
from com_identification.settings import IdentificationSettings, SensorPriors
from com_identification.store.results import corrected_urdf
from com_model import RobotModel, Sesc
from com_model.robots import load_robot

OFFSET, STD = [0.004, -0.003], [0.001, 0.002]


def load(name):
    model, config = load_robot(name)
    return config, model, config.nominal_posture(model)


def state(offset=OFFSET, std=STD):
    return SimpleNamespace(com_offset=offset, com_offset_std=std)


def diagnosis(correction, covariance):
    vector = SimpleNamespace(**dict(zip("xyz", correction, strict=True)))
    return SimpleNamespace(com_correction=vector, covariance=covariance)


@pytest.mark.parametrize("name", ["hoap2", "icub", "talos"])
def test_forwards_and_left_are_those_of_the_walk(name):
    """Of iCub the root's x axis points backwards."""
    config, model, rest = load(name)
    found = walk_posture(model, config.feet, rest, SensorPriors.calibrated(), state())
    biped = Biped.from_config(model, config)
    R_pelvis_root, _ = biped.root_in_pelvis(rest)
    heading = R_pelvis_root.T @ heading_to_pelvis(biped)  # as the stabiliser has it
    com = Sesc(model).com(rest)
    for k, limit in enumerate(found.constraints):
        np.testing.assert_allclose(limit.normal, heading[:, k], atol=2e-3)
        assert limit.offset - limit.normal @ com == pytest.approx(OFFSET[k], abs=1e-12)
        assert limit.std == pytest.approx(STD[k])
        assert limit.link == model.root_link


def test_a_tilted_imu_and_zeros_of_moments_widen_it():
    config, model, rest = load("talos")
    priors = SensorPriors.calibrated(tilt=0.01, moment_bias=0.002)
    found = walk_posture(model, config.feet, rest, priors, state())
    height = 0.88  # m, of TALOS' CoM
    for limit, std in zip(found.constraints, STD, strict=True):
        expected = np.sqrt(std**2 + (0.01 * height) ** 2 + 0.002**2)
        assert limit.std == pytest.approx(expected, rel=0.03)


def test_what_is_not_known_is_no_posture():
    config, model, rest = load("hoap2")
    known = model, config.feet, rest, SensorPriors()
    assert walk_posture(*known, state(std=[np.inf, np.inf])) is None
    assert walk_posture(*known, state(offset=[np.nan, 0.0])) is None
    assert walk_posture(*known, diagnosis([*OFFSET, 0.0], np.full(9, np.nan))) is None


def test_the_diagnosis_counts_along_the_axes_of_its_covariance():
    config, model, rest = load("hoap2")
    axes = np.linalg.qr(np.random.default_rng(3).normal(size=(3, 3)))[0]
    covariance = axes @ np.diag([1e-8, 1e-6, 1e-2]) @ axes.T  # its height is not known
    correction = np.array([0.003, -0.002, 0.1])
    known = model, config.feet, rest, SensorPriors()
    found = walk_posture(*known, diagnosis(correction, covariance.ravel()))
    com = Sesc(model).com(rest)
    stds = sorted(limit.std for limit in found.constraints)
    np.testing.assert_allclose(stds, [1e-4, 1e-3, 0.1], rtol=1e-6)
    for limit in found.constraints:
        assert limit.offset == pytest.approx(limit.normal @ (com + correction))


def test_it_is_one_more_posture_of_the_identification():
    """Alone, it puts the whole robot's CoM right within its standard deviation, and no farther."""
    config, model, rest = load("hoap2")
    sensors = SensorPriors.calibrated()
    known = walk_posture(model, config.feet, rest, sensors, state(std=[1e-4, 1e-4]))
    settings = IdentificationSettings(sensors=sensors)
    settings = replace(settings, fit=replace(settings.fit, folds=0))
    found = identify(model, config.feet, [known], settings)
    before = Sesc(model).com(rest)
    after = Sesc(RobotModel.from_urdf(corrected_urdf(model, found))).com(rest)
    for limit, offset in zip(known.constraints, OFFSET, strict=True):
        assert limit.normal @ (after - before) == pytest.approx(offset, abs=2e-4)
    assert np.linalg.norm(after - before) < 1.2 * np.linalg.norm(OFFSET)
