"""Errors of joints as files: round trip, and files that cannot be right."""

import numpy as np
import pytest
import yaml

from com_identification.exceptions import ProtocolError
from com_identification.tip_over.quasi_static import (
    JointErrors,
    joint_errors_document,
    read_joint_errors,
)
from com_model import ConfigError, UnknownNameError


def test_they_come_back(model, tmp_path):
    rng = np.random.default_rng(2)
    errors = JointErrors(*np.abs(rng.normal(0, 0.02, (3, model.n_joints))).round(6))
    path = tmp_path / "errors.yaml"
    path.write_text(yaml.safe_dump(joint_errors_document(model, errors, 0.4)))
    found = read_joint_errors(path, model)
    for name in ("offset", "compliance", "backlash"):
        np.testing.assert_array_equal(getattr(found, name), getattr(errors, name))


def test_joints_that_are_not_named_have_none(model, tmp_path):
    path = tmp_path / "errors.yaml"
    path.write_text("robot: hoap2\nzero_offset_rad: {RLEG_JOINT3: -0.02}\n")
    errors = read_joint_errors(path, model)
    assert errors.offset[model.joint_index("RLEG_JOINT3")] == -0.02
    assert np.count_nonzero(errors.offset) == 1
    assert not errors.compliance.any()


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (
            "robot: nao\n",
            ProtocolError,
            "robot 'nao', but the robot is 'hoap2': give the file",
        ),
        ("backlash_rad: {}\n", ProtocolError, "robot None, but the robot is 'hoap2'"),
        ("robot: hoap2\nplay: {}\n", ConfigError, "unknown key 'play'"),
        (
            "robot: hoap2\nbacklash_rad: {TAIL: 0.1}\n",
            UnknownNameError,
            "no joint 'TAIL'",
        ),
        (
            "robot: hoap2\ncompliance_rad_per_nm: {RLEG_JOINT3: -0.1}\n",
            ProtocolError,
            "compliance: expected numbers, 0 or more",
        ),
        (
            "robot: hoap2\nbacklash_rad: {RLEG_JOINT3: .nan}\n",
            ConfigError,
            "expected a finite",
        ),
        (
            "robot: hoap2\nbacklash_rad: {RLEG_JOINT3: much}\n",
            ConfigError,
            "expected a number",
        ),
        ("- 1\n", ConfigError, "expected keys with values"),
    ],
)
def test_files_that_cannot_be_right(model, tmp_path, text, error, message):
    path = tmp_path / "errors.yaml"
    path.write_text(text)
    with pytest.raises(error, match=message):
        read_joint_errors(path, model)
