"""motion_lab in MuJoCo: our own motions, the thesis' mass models, wrong files."""

import json
from pathlib import Path

import numpy as np
import pytest

from com_control.motion.files import write_motion
from com_control.motion.motion import Motion, MotionLayout
from com_demos import motion_lab
from com_model import load_robot

pytestmark = pytest.mark.slow

CONFIGS = Path(__file__).resolve().parents[3] / "src/robot_descriptions/config"


@pytest.fixture(scope="module")
def hoap2():
    model, config = load_robot("hoap2")
    layout = MotionLayout.from_file(CONFIGS / "motion/hoap2.yaml", config, model)
    return model, config, layout


def run(capsys, *words):
    status = motion_lab.main([str(word) for word in words])
    printed = capsys.readouterr()
    return status, printed.out, printed.err


def found(out):
    """The figures of the one run."""
    (motion,) = json.loads(out.splitlines()[-1]).values()
    (figures,) = motion.values()
    return figures


def lean(hoap2, tmp_path, degrees, seconds):
    """A file in which both ankles turn smoothly, so that the robot leans forwards."""
    model, config, layout = hoap2
    time = 0.01 * np.arange(round(seconds / 0.01) + 1)
    posture = config.nominal_posture(model)
    rows = np.tile(
        posture[[model.joint_index(j) for j in layout.joints]], (len(time), 1)
    )
    s = time / seconds
    turn = np.radians(degrees) * s**3 * (10.0 - 15.0 * s + 6.0 * s * s)
    for side in "LR":
        rows[:, layout.joints.index(f"{side}LEG_JOINT5")] -= turn
    path = tmp_path / "lean.csv"
    write_motion(path, Motion(layout.joints, time, rows), layout)
    return path


def test_a_lean_falls_and_a_small_one_does_not(hoap2, tmp_path, capsys):
    models = ["--contacts", "stiff", "--models", "published"]
    status, out, _ = run(capsys, lean(hoap2, tmp_path, 25.0, 1.0), *models)
    fallen = found(out)
    assert status == 0
    assert fallen["fell_s"] > 0.3
    assert not fallen["stands"]
    assert fallen["forward_m"] > 0.05
    _, out, _ = run(capsys, lean(hoap2, tmp_path, 2.0, 0.5), *models)
    standing = found(out)
    assert standing["stands"]
    assert standing["fell_s"] is None
    assert abs(standing["forward_m"]) < 0.02
    assert standing["too_fast"] == standing["too_hard"] == 0
    assert 0.1 < standing["peak_torque_nm"] < 9.0


def test_what_is_asked_beyond_the_limits_is_warned_of(hoap2, tmp_path, capsys):
    path = lean(hoap2, tmp_path, 20.0, 0.02)
    words = ["--contacts", "stiff", "--models", "published"]
    _, out, _ = run(capsys, path, *words)
    assert found(out)["too_fast"] == 2
    assert "warning: RLEG_JOINT5: speed" in out
    assert "NOT within the limits" in out


def test_the_mass_models_are_the_thesis(hoap2):
    model = hoap2[0]
    models = motion_lab.read_models(CONFIGS / "motion_lab/hoap2.yaml", model)
    torso = model.link_index("BODY1")
    assert models["published"].model is not None
    assert models["world3"].model.link_coms[torso, 0] == -0.0973
    assert not models["world1"].model.link_coms.any()
    assert models["world1"].model.mass == pytest.approx(model.mass)
    assert models["identified"].errors.compliance.max() == pytest.approx(
        0.0214, abs=1e-3
    )
    assert models["world4"].errors.offset.min() == pytest.approx(
        np.radians(-2.0), abs=1e-4
    )
    assert models["world3"].speeds["m01"] == 0.0252
    assert not {"world7", "world8"} & set(models)


def test_a_row_of_29_columns_is_hoap3s(tmp_path, capsys):
    row = "1,2,0,40,3695,9537,-5807,0,18810,-2000,0,8800,0,40,-3730,-9537,5807,0,-18810,2000,0"
    row += ",-8800,418"
    path = tmp_path / "row.csv"
    path.write_text(row + ",60,60,R,R,R,R\n")
    assert motion_lab.robot_of(path) == "hoap3"
    path.write_text(row + ",R\n")
    status, _, err = run(capsys, path)
    assert status == 2
    assert (
        "row.csv: expected columns, separated by commas, 27 (hoap2), 29 (hoap3); got 24"
        in err
    )


def test_files_of_other_programs(hoap2, tmp_path, capsys):
    """A byte order mark, line ends of Windows, empty lines; broken ones are named with the row."""
    text = lean(hoap2, tmp_path, 2.0, 0.1).read_text()
    words = ["--contacts", "stiff", "--models", "published"]
    windows = tmp_path / "windows.csv"
    windows.write_text("\n" + text, encoding="utf-8-sig", newline="\r\n")
    status, out, _ = run(capsys, windows, *words)
    assert (status, found(out)["stands"]) == (0, True)
    lines = text.splitlines()
    for broken, problem in (
        ([*lines[:4], lines[4][:40]], "row 5: expected 27 columns"),
        ([line.replace(",", ";") for line in lines], "got 1: 10;2;"),
        ([], "got an empty file"),
    ):
        windows.write_text("\n".join(broken))
        status, _, err = run(capsys, windows, *words)
        assert status == 2
        assert "windows.csv: " in err
        assert problem in err


def test_wrong_words_say_what_is_valid(capsys):
    status, _, err = run(capsys, "nothing.csv")
    assert status == 2
    assert "nothing.csv: no such file; samples are hoap2_walk" in err
    status, _, err = run(capsys, "hoap2_rise", "--models", "world7")
    assert status == 2
    assert "world7; valid: published" in err
