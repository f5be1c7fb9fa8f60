"""The block of priors that com_setup writes is that of the estimators, with the robot's values."""

import re
from dataclasses import asdict

import numpy as np
import pytest
import yaml

from com_estimation.trunk.floating_base.estimator import FloatingBaseEstimator
from com_estimation.trunk.floating_base.filter_types import STATE
from com_estimation.trunk.floating_base.options import Priors
from com_identification.regression.priors import SensorErrors, body_priors
from com_identification.settings import IdentificationSettings, SensorPriors
from com_model import RobotConfig, RobotModel
from com_model.dynamics import GRAVITY
from com_model.setup import describe, to_yaml


@pytest.fixture
def written(tmp_path):
    """written(xml): the configuration, the model with its feet, and the block without "# "."""

    def written(xml):
        urdf = tmp_path / "robot.urdf"
        urdf.write_text(xml)
        text = to_yaml(describe(RobotModel.from_file(urdf), urdf))
        urdf.with_suffix(".yaml").write_text(text)
        config = RobotConfig.from_file(urdf.with_suffix(".yaml"))
        block = text[text.index("# /**:") :].splitlines()
        assert all(line.startswith("# ") for line in block)
        model = config.attach(RobotModel.from_file(urdf))
        return config, model, "\n".join(line.removeprefix("# ") for line in block)

    return written


def parameters(block):
    return yaml.safe_load(block)["/**"]["ros__parameters"]


def amount(block, name):
    """The number in brackets behind a prior of a name, and its unit."""
    number, unit = re.search(
        rf"^ *{name}: .*\((?:\w+: )?([\d.e-]+) ([^)]*)\)", block, re.M
    ).groups()
    return float(number), unit


def test_the_values_are_the_defaults_of_the_estimators(written, biped, quadruped):
    for xml in (biped(), quadruped()):
        found = parameters(written(xml)[2])
        assert found["sensors"] == pytest.approx(asdict(SensorPriors()), rel=0.01)
        own = asdict(IdentificationSettings().prior)
        assert found["prior"] == {
            key: own[key] for key in ("mass_std_fraction", "com_std_fraction")
        }
        IdentificationSettings.from_dict(
            {key: found[key] for key in ("prior", "sensors")}
        )
    assert found["floating_base"]["priors"] == pytest.approx(asdict(Priors()), rel=0.01)


def test_amounts_are_those_of_the_identification(written, biped):
    config, model, block = written(biped())
    assert "floating_base" not in parameters(block)
    weight = GRAVITY * model.mass
    errors = SensorErrors(model, config.feet, SensorPriors(), GRAVITY)
    stds = {kind: errors.stds[part] for kind, part in errors.kinds.items()}
    bodies = body_priors(model, IdentificationSettings())
    expected = {
        "mass_std_fraction": (bodies.mass_std.max(), "kg"),
        "com_std_fraction": (1e3 * bodies.com_std[bodies.mass.argmax()].max(), "mm"),
        "force_bias": (stds["force_bias"][0], "N"),
        "moment_bias": (stds["moment_bias"][0], "N m"),
        "moment_drift": (1e-4 * weight, "N m"),
        "compliance": (stds["compliance"][0], "rad per N m"),
        "sole_compliance": (stds["sole_compliance"][0], "rad per N m"),
        "joint_offset": (0.5, "degrees"),
        "effort_offset": (stds["effort_offset"][0], "N m"),
    }
    for name, (value, unit) in expected.items():
        assert amount(block, name) == (pytest.approx(value, rel=0.06), unit), name


def test_a_ball_does_not_tilt_as_a_sole_that_yields(written, quadruped, biped):
    for xml, yields in ((quadruped(), False), (biped(), True)):
        config, model, _ = written(xml)
        errors = SensorErrors(model, config.feet, SensorPriors(), GRAVITY)
        stds = errors.stds[errors.kinds["sole_compliance"]]
        assert len(stds) == 2 * len(config.feet)
        assert ((stds > 0.0) == yields).all()


def test_amounts_are_those_of_the_trunk_estimator(written, quadruped):
    config, model, block = written(quadruped())
    estimator = FloatingBaseEstimator(model, config)
    mass = float(model.bodies.mass[0])
    expected = {
        "mass": (estimator.prior_std[STATE.mass], "kg"),
        "com": (estimator.prior_std[STATE.moment] / mass, "m"),
        "torque_bias": (estimator.prior_std[STATE.torque_bias], "N m"),
        "viscous": (estimator.prior_std[STATE.viscous], "N m s/rad"),
        "rotor": (estimator.prior_std[STATE.rotor], "kg m^2"),
    }
    for name, (value, unit) in expected.items():
        assert amount(block, name) == (pytest.approx(np.mean(value), rel=0.06), unit), (
            name
        )
