"""The command posture_protocol."""

import pytest
import yaml
from html_page import assert_report

from com_identification.commands.posture_protocol import main
from com_model import RobotModel

pytestmark = [pytest.mark.slow, pytest.mark.exhaustive]


@pytest.fixture
def run(worlds_csv, capsys):
    folder = worlds_csv.parent.parent
    robot = ["--robot", "hoap2"]
    protocol = ["--protocol", str(folder / "config/posture_protocol/hoap2.yaml")]

    def run(*more):
        code = main([*robot, *protocol, *map(str, more)])
        return code, capsys.readouterr()

    return run


@pytest.fixture
def angles(worlds_csv):
    return worlds_csv.with_name("hoap2_posture_protocol.csv")


def test_angles_of_the_urdf(run):
    code, output = run()
    assert code == 0
    lines = output.out.splitlines()
    assert len(lines) == 17 + 1
    assert lines[1].split() == ["leg3", "Back,", "arms_forward", "31.48"]
    assert lines[17].startswith(
        "URDF: still stands at the joints' limit, which is shown: "
    )


def test_measured_angles_are_explained_and_written(run, angles, tmp_path):
    code, output = run("--angles", angles, "--output", tmp_path)
    assert code == 0, output.err
    assert "mean error of world3: 10.12 deg" in output.out
    assert "mean error of offsets + compliance: 0.43 deg" in output.out
    assert "one test left out: 0.61 deg" in output.out
    assert "body left out: 1.12 deg" in output.out
    picture = tmp_path / "hoap2_tip_angles.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    page = assert_report((tmp_path / "hoap2_tip_angles.html").read_text())
    assert page.paragraphs[0] == (
        "offsets + compliance explains the tip angles to 0.43 deg on average; the best of the "
        "others is world6, 2.53 deg."
    )
    assert "svg" in page.tags
    for words in (
        "10.12",
        "leg3 Back, arms_forward: 26.8",
        "one test",
        "offsets +",
        "−17.3",
    ):
        assert words in page.texts, words
    ranked = ["world6", "world4", "world5", "URDF", "world3", "world2", "world1"]
    assert [text for text in page.texts if text in ranked] == ranked, (
        "the best one first"
    )
    assert RobotModel.from_file(tmp_path / "hoap2_corrected.urdf").n_joints == 25
    errors = yaml.safe_load((tmp_path / "hoap2_joint_errors.yaml").read_text())
    assert errors["mean_error_deg"] == pytest.approx(0.43, abs=0.01)


def test_errors_of_joints_from_a_file(run, tmp_path):
    path = tmp_path / "errors.yaml"
    path.write_text(
        "robot: hoap2\nzero_offset_rad: {RLEG_JOINT3: 0.01, LLEG_JOINT3: 0.01}\n"
    )
    code, output = run("--joint-errors", path)
    assert code == 0, output.err
    *_, rigid, erring = output.out.splitlines()[1].split()
    assert float(rigid) - float(erring) == pytest.approx(0.57, abs=0.02)
    path.write_text("robot: nao\n")
    code, output = run("--joint-errors", path)
    assert code == 2
    assert "the robot is 'hoap2': give the file of this robot" in output.err


def test_tests_that_were_not_measured_are_left_out(run, angles, tmp_path):
    lines = angles.read_text().splitlines()
    name, rest = lines[5].rsplit('",', 1)
    lines[5] = f'{name}",,{rest.split(",", 1)[1]}'
    part = tmp_path / "part.csv"
    part.write_text("\n".join(lines))
    code, output = run("--angles", part)
    assert code == 0, output.err
    assert "nan" in output.out.splitlines()[5]
    assert "one test left out: 0." in output.out


def test_names_from_a_table_are_only_names(run, angles, tmp_path):
    """Not formulas, not HTML."""
    odd = tmp_path / "odd.csv"
    text = (
        angles.read_text()
        .replace("world1_rad", "$x_rad")
        .replace("world2_rad", "<b>_rad")
    )
    odd.write_text(text.replace("world3_rad", "_rad"))
    code, output = run(
        "--angles", odd, "--output", tmp_path, "--explain", "specification"
    )
    assert code == 0, output.err
    report = (tmp_path / "hoap2_tip_angles.html").read_text()
    assert "<b>" not in report
    assert "&lt;b&gt;" in report


def test_a_column_without_angles(run, angles, tmp_path):
    rows = [
        line.rsplit('",', 1)[0] + '",' for line in angles.read_text().splitlines()[1:]
    ]
    empty = tmp_path / "empty.csv"
    empty.write_text("\n".join(["test,real_rad", *rows]))
    code, output = run("--angles", empty)
    assert code == 2
    assert "column 'real' has no angles" in output.err


def test_wrong_arguments_list_the_valid_ones(run, angles, tmp_path):
    code, output = run("--angles", angles, "--measured", "true")
    assert code == 2
    assert "no column 'true'; valid: real, world1" in output.err
    code, output = run("--angles", angles, "--explain", "magic")
    assert code == 2
    assert "no 'magic'; valid: specification, compliance" in output.err
    code, output = run("--angles", tmp_path / "none.csv")
    assert code == 2
    assert "cannot be read" in output.err
    code, output = run("--angles", angles, "--output", tmp_path / "none")
    assert code == 2
    assert "does not exist" in output.err
