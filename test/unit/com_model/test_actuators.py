"""Drives of joints: configuration, patterns of names, what is usual for a class."""

import pytest

from com_model import RobotConfig, load_robot
from com_model.actuators import ActuatorModel, guess_drives
from com_model.exceptions import ConfigError


def test_what_the_configuration_lacks_is_usual_for_class_and_size() -> None:
    own = ActuatorModel(coulomb=0.7, load_friction=0.28)
    small, large = (own.filled(size, "linkage") for size in (8.0, 16.0))
    assert (small.coulomb, small.load_friction) == (0.7, 0.28)
    assert small.drive == "linkage"
    assert large.viscous == pytest.approx(2.0 * (small.viscous or 0.0))
    assert large.load_friction_std == small.load_friction_std == 0.15
    assert None not in vars(small).values()


def test_the_knees_of_legs_with_point_feet_are_driven_through_linkages() -> None:
    assert guess_drives([[0, 1, 2]], True, 4) == ["quasi-direct"] * 2 + [
        "linkage",
        "unknown",
    ]
    assert guess_drives([[0, 1, 2]], False, 3) == ["unknown"] * 3


def test_patterns_name_the_joints_of_a_robot() -> None:
    model, config = load_robot("go2")
    assert config.actuators.of("RL_calf_joint").load_friction == 0.28
    assert config.actuators.of("other") == ActuatorModel()
    wrong = {"name": "go2", "actuators": {"joints": {"*_knee": {"coulomb": 0.1}}}}
    with pytest.raises(ConfigError, match=r"actuators.joints.\*_knee.*FL_calf_joint"):
        RobotConfig.from_dict(wrong).attach(model)
