"""The command workspace."""

import json
from pathlib import Path

import pytest
from html_page import assert_report

from com_demos.workspace import main
from com_model.html import number

pytestmark = [pytest.mark.slow, pytest.mark.exhaustive]
DESCRIPTIONS = Path(__file__).resolve().parents[3] / "src/robot_descriptions"


@pytest.fixture
def run(capsys):
    def run(*words):
        code = main([str(word) for word in words])
        return code, capsys.readouterr()

    return run


def test_hoap2_is_sampled_printed_and_drawn(run, tmp_path):
    out = tmp_path / "new" / "folder"
    code, output = run(
        *("--robot", "hoap2", "--config", DESCRIPTIONS / "config/hoap2.yaml"),
        *("--count", 5000, "--output", out),
    )
    assert code == 0, output.err
    figures = json.loads(output.out.splitlines()[-1])
    assert figures["configurations"] == 5000
    assert 1e-4 < figures["hull_m3"] < 6e-4
    assert figures["reach_m"]["back"] > 0.05
    both, left, right = figures["standing"]
    assert both["feet"] == ["l_sole", "r_sole"]
    assert both["fraction"] == 1.0
    assert 0.25 < both["height_m"][0] < both["height_m"][1] < 0.29
    assert left["fraction"] == pytest.approx(right["fraction"], abs=0.05)
    assert "on l_sole: " in output.out
    assert (out / "hoap2_com_workspace.png").read_bytes().startswith(b"\x89PNG")
    page = assert_report((out / "hoap2_com_workspace.html").read_text())
    assert "100.0 % on l_sole and r_sole, " in page.paragraphs[0]
    assert f"{1e6 * figures['hull_m3']:.0f} cm³" in page.text
    for far in (*figures["reach_m"].values(), *both["beyond_m"].values()):
        assert number(far, 0, 1e3) in page.texts
    assert f"{both['height_m'][1]:.3f}" in page.texts


def test_files_are_replaced_when_asked_for(run, tmp_path):
    words = ("--robot", "hoap2", "--count", 500, "--output", tmp_path)
    assert run(*words)[0] == 0
    before = (tmp_path / "hoap2_com_workspace.png").read_bytes()
    code, output = run(*words, "--seed", 1)
    assert code == 2
    assert "exists already" in output.err
    assert (tmp_path / "hoap2_com_workspace.png").read_bytes() == before
    assert run(*words, "--seed", 1, "--force")[0] == 0
    assert (tmp_path / "hoap2_com_workspace.png").read_bytes() != before


def test_some_joints_without_a_configuration(run, tmp_path):
    urdf = tmp_path / "robot.urdf"
    urdf.write_bytes((DESCRIPTIONS / "urdf/hoap2.urdf").read_bytes())
    legs = [f"RLEG_JOINT{i}" for i in range(1, 7)]
    code, output = run("--robot", urdf, "--count", 3000, "--joints", *legs)
    assert code == 0, output.err
    figures = json.loads(output.out.splitlines()[-1])
    assert figures["standing"] == []
    assert figures["hull_m3"] < 1e-4


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--robot", "none.urdf"], "none.urdf"),
        (["--robot", "{urdf}", "--count", "0"], "count: expected 1 or more, got 0"),
        (["--robot", "{urdf}", "--count", "3"], "3 points do not fill a volume"),
        (["--robot", "{urdf}", "--threads", "-1"], "from 1 up, got -1"),
        (["--robot", "{urdf}", "--seed", "-1"], "--seed: expected 0 or more, got -1"),
        (["--robot", "{urdf}", "--joints", "TAIL"], "no joint 'TAIL'"),
        (
            ["--robot", "{urdf}", "--count", "9", "--config", "none.yaml"],
            "none.yaml: does not exist",
        ),
        (["--robot", "{urdf}", "--count", "9", "--config", "{talos}"], "talos.yaml"),
        (["--robot", "{urdf}", "--count", "9", "--output", "{urdf}"], "File exists"),
    ],
)
def test_what_cannot_be_used(run, words, message):
    given = {
        "{urdf}": DESCRIPTIONS / "urdf/hoap2.urdf",
        "{talos}": DESCRIPTIONS / "config/talos.yaml",
    }
    code, output = run(*(given.get(word, word) for word in words))
    assert code == 2
    assert message in output.err
    assert "Traceback" not in output.err


def test_the_human_of_two_links_is_studied_in_place_of_a_robot(run, tmp_path):
    code, output = run("--human", "--output", tmp_path / "out")
    assert code == 0, output.err
    lengths = json.loads(output.out.splitlines()[-1])["human_legs"]
    assert lengths["winter"] == 0.53
    assert lengths["largest"] == pytest.approx(
        0.57, abs=0.015
    )  # [Cotton] finds the least at 0.53
    assert lengths["least"] == pytest.approx(
        0.05
    )  # the end of the range: r_1 goes to 0
    assert "Winter: legs 0.53 of the height" in output.out
    picture = tmp_path / "out/human_com_workspace.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    code, output = run("--human", "--output", tmp_path / "out")
    assert code == 2
    assert "exists already" in output.err


def test_neither_robot_nor_human_is_refused(run):
    code, output = run("--count", 10)
    assert code == 2
    assert "give --robot ROBOT, or --human" in output.err
