"""Settings: every key by name, errors and how to fix it, flat for ROS, priors by link."""

import dataclasses

import numpy as np
import pytest

from com_identification.capture.recorder import PostureRecorder
from com_identification.regression.identify import identify
from com_identification.regression.priors import body_priors
from com_identification.settings import IdentificationSettings, LinkPrior
from com_model import ConfigError

FULL = """
noise: {force: 2.0, moment: 0.1, position: 1.0e-4}
sensors: {force_bias: 0.01, joint_offset: 0.02}
prior: {com_std_fraction: 0.2, mass_std_fraction: 0.05, bounded: false}
links:
  LLEG_LINK4: {com_std: 0}
  BODY_LINK2: {mass: 3.0, mass_std_fraction: 0.001}
fit: {folds: 3, use_effort: true}
capture: {collect_time: 0.7, all_feet: true}
plan: {candidates: 10, stands: [[0], [1], [0, 1]]}
"""


@pytest.fixture
def names(hoap2):
    """Links of two bodies with mass, of the trunk and of a knee."""
    model = hoap2[0]
    heavy = np.argsort(-model.link_masses)
    return model.link_names[heavy[0]], model.link_names[heavy[1]]


def test_a_file_is_read(tmp_path, names):
    path = tmp_path / "settings.yaml"
    path.write_text(
        FULL.replace("BODY_LINK2", names[0]).replace("LLEG_LINK4", names[1])
    )
    found = IdentificationSettings.from_file(path)
    assert (found.noise.force, found.noise.position, found.noise.effort) == (
        2.0,
        1e-4,
        0.1,
    )
    assert (found.sensors.force_bias, found.sensors.joint_offset) == (0.01, 0.02)
    assert found.links[names[0]] == LinkPrior(mass=3.0, mass_std_fraction=0.001)
    assert (found.fit.folds, found.fit.use_effort) == (3, True)
    assert (found.capture.collect_time, found.capture.all_feet) == (0.7, True)
    assert found.plan.stands == ((0,), (1,), (0, 1))
    assert IdentificationSettings.from_dict(found.to_dict()) == found
    empty = tmp_path / "empty.yaml"
    empty.write_text("# nothing\n")
    assert IdentificationSettings.from_file(empty) == IdentificationSettings()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nois: {}", "unknown key 'nois'; did you mean 'noise'"),
        ("noise: {forces: 1}", "noise: unknown key 'forces'; did you mean 'force'"),
        ("noise: {force: -1}", r"noise\.force: expected at least 0, got -1"),
        ("noise: {force: .nan}", r"noise\.force: expected a finite number"),
        ("noise: {force: '1'}", r"noise\.force: expected a number, got the text"),
        (
            "plan: {criterion: a}",
            r"plan\.criterion: expected one of parameters, prediction, got 'a'",
        ),
        (
            "sensors: {moment_bias: 0.1}",
            r"moment_bias is 0.1: give a number from 0 to 0.05",
        ),
        ("fit: {folds: 2.5}", r"fit\.folds: expected a whole number, got 2.5"),
        ("fit: {folds: true}", r"fit\.folds: expected a number, got true or false"),
        ("fit: {use_imu: 1}", r"fit\.use_imu: expected true or false, got 1"),
        ("fit: {gravity: 0}", r"fit\.gravity: expected at least 0.1, got 0"),
        (
            "capture: {collect_time: 6}",
            r"collect_time: expected 0 to max_time \(5 s\), got 6 s",
        ),
        ("plan: {stands: [0]}", r"plan\.stands: expected lists of whole numbers"),
        ("plan: {stands: [[-1]]}", r"plan\.stands: expected at least 0"),
        ("links: {x: {weight: 1}}", r"links\.x: unknown key 'weight'; .*mass"),
        ("links: {x: {mass: 0}}", r"links\.x\.mass: expected at least"),
        ("links: [x]", "links: expected keys with values"),
        ("[1]", "expected keys with values"),
    ],
)
def test_mistakes_name_the_key(tmp_path, text, message):
    path = tmp_path / "settings.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        IdentificationSettings.from_file(path)


def test_priors_by_link(hoap2, names):
    model = hoap2[0]
    bodies = [int(model.bodies.body_of_link[model.link_index(name)]) for name in names]
    settings = IdentificationSettings.from_dict(
        {
            "prior": {"com_std_fraction": 0.1, "mass_std_fraction": 0.05},
            "links": {
                names[0]: {"mass": 3.0, "mass_std_fraction": 0.001},
                names[1]: {"com_std": 0.0, "mass_std_fraction": 0.0},
            },
        }
    )
    priors = body_priors(model, settings)
    others = [b for b in range(model.bodies.count) if b not in bodies]
    np.testing.assert_allclose(priors.mass[others], model.bodies.mass[others])
    np.testing.assert_allclose(priors.mass_std[others], 0.05 * priors.mass[others])
    assert priors.mass[bodies[0]] == 3.0
    assert priors.mass_std[bodies[0]] == pytest.approx(0.003)
    size = np.cbrt(priors.mass[others, None] / 1000.0)
    np.testing.assert_allclose(
        priors.com_std[others], np.clip(0.1 * size, 0.005, 0.02) * [1, 1, 1]
    )
    assert not priors.used.reshape(-1, 4)[bodies[1]].any(), "it is known"
    unbounded = IdentificationSettings.from_dict({"prior": {"bounded": False}})
    assert np.isinf(body_priors(model, unbounded).com_high).all()


def test_a_weighed_mass_goes_into_the_result(hoap2, perturbed, random_q, names):
    model, feet = hoap2
    robot, _, _ = perturbed(np.random.default_rng(0), 0.0)
    rng = np.random.default_rng(1)
    postures = [robot.posture(random_q(rng), [1.0, 0.0]) for _ in range(6)]
    settings = IdentificationSettings.from_dict(
        {"links": {names[0]: {"mass": 2.9}}, "fit": {"folds": 0}}
    )
    found = identify(model, feet, postures, settings)
    body = int(model.bodies.body_of_link[model.link_index(names[0])])
    assert found.mass[body] == 2.9


def test_links_must_be_the_models(hoap2):
    model = hoap2[0]
    wrong = IdentificationSettings.from_dict({"links": {"LEG": {"mass": 1.0}}})
    with pytest.raises(ConfigError, match=r"links\.LEG: no link 'LEG'.*valid: "):
        body_priors(model, wrong)


def test_a_recorder_has_the_settings(hoap2):
    settings = IdentificationSettings.from_dict({"capture": {"collect_time": 0.7}})
    recorder = PostureRecorder(*hoap2, settings)
    assert isinstance(recorder, PostureRecorder)
    assert recorder.options is settings.capture


def test_each_setting_is_described():
    for part in dataclasses.fields(IdentificationSettings()):
        value = getattr(IdentificationSettings(), part.name)
        if dataclasses.is_dataclass(value):
            for item in dataclasses.fields(value):
                # plan.stands
                documented = f"        {item.name}: " in type(value).__doc__
                assert item.metadata.get("description") or documented, item.name
