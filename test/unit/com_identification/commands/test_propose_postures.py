"""The command that proposes postures: a file that a simulator reads, and what it refuses."""

import json
from pathlib import Path

import numpy as np
import pytest
import yaml

from com_identification.commands.propose_postures import main
from com_identification.regression.stances import FlatStance
from com_identification.regression.statics import Statics
from com_model import RobotConfig, RobotModel

CONFIG = (
    Path(__file__).resolve().parents[4] / "src/robot_descriptions/config/biped3.yaml"
)


@pytest.fixture(scope="module")
def robot():
    config = RobotConfig.from_file(CONFIG)
    return RobotModel.from_file(config.urdf), config


@pytest.fixture
def settings(tmp_path):
    file = tmp_path / "settings.yaml"
    file.write_text("plan: {candidates: 12, refinements: 0, keep_feet: true}\n")
    return file


def test_what_it_proposes_stands_with_the_feet_in_place(
    robot, settings, tmp_path, capsys
):
    model, config = robot
    out = tmp_path / "postures.yaml"
    words = [
        "--robot",
        str(config.urdf),
        "--config",
        str(CONFIG),
        "--settings",
        str(settings),
    ]
    assert main([*words, "--count", "3", "--margin", "0.03", "--output", str(out)]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["postures"] == 3
    assert figures["least_margin_mm"] >= 30.0
    assert 0.5 < figures["efficiency"] <= 1.0
    written = yaml.safe_load(out.read_text())
    assert written["joints"] == list(model.joint_names)
    rows = np.array(written["postures"])
    assert rows.shape == (3, model.n_joints)
    stance = FlatStance(Statics(model), config.feet, config.nominal_posture(model))
    assert np.abs(stance.residuals(rows)[0]).max() < 1e-5
    assert min(stance.margin(q) for q in rows) > 0.0299
    assert "the feet stay where they are" in out.read_text().splitlines()[0]


def test_a_margin_that_no_robot_has(robot, settings, tmp_path, capsys):
    out = tmp_path / "postures.yaml"
    words = [
        "--robot",
        str(robot[1].urdf),
        "--config",
        str(CONFIG),
        "--settings",
        str(settings),
    ]
    assert main([*words, "--count", "3", "--margin", "0.5", "--output", str(out)]) == 1
    assert "postures of" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--robot", "/nowhere.urdf", "--config", str(CONFIG)],
            "there is no such file",
        ),
        (["--robot", "{urdf}", "--config", "/nowhere.yaml"], "nowhere.yaml"),
        (
            ["--robot", "{urdf}", "--config", str(CONFIG), "--count", "0"],
            "--count 0: give 1 or more",
        ),
        (
            [
                "--robot",
                "{urdf}",
                "--config",
                str(CONFIG),
                "--keep-feet",
                "--one-foot",
                "0.5",
            ],
            "--one-foot: with --keep-feet all feet stand",
        ),
    ],
)
def test_wrong_words(robot, tmp_path, capsys, words, message):
    words = [word.format(urdf=robot[1].urdf) for word in words]
    with pytest.raises(SystemExit) as ended:
        main([*words, "--output", str(tmp_path / "p.yaml")])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
