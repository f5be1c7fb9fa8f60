"""The demo of the walk, as a user runs it, and what it says when something is wrong."""

import importlib
import json

import pytest

DEMO = "com_demos.walk_demo"


def test_hoap2_walks_and_a_busy_machine_changes_no_figure(run_twice):
    figures, out = run_twice("--robot", "hoap2", "--steps", 2, "--speed", 10)
    assert (figures["robot"], figures["steps"], figures["fell"]) == ("hoap2", 2, False)
    assert figures["com_error_mean_m"] < figures["com_error_max_m"] < 0.02
    names = {path.name for path in out.iterdir()}
    written = {
        "hoap2_walk.png",
        "hoap2_walk_film.png",
        "hoap2_walk.json",
        "hoap2_walk.html",
    }
    assert names == written | {"launch.log"}
    assert json.loads((out / "hoap2_walk.json").read_text()) == figures


def test_a_robot_without_configuration(tmp_path, refusal):
    said = refusal("--robot", "ur5", "--output", tmp_path)
    assert (
        "demo: robot configuration: ur5 has none; one is needed, with the side" in said
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--steps", "0"], "--steps 0: give 1 to 100"),
        (["--speed", "0"], "--speed 0: give 0.05 to 10"),
        (["--step-time", "nan"], "--step-time nan: give 0 to 10"),
    ],
)
def test_wrong_options(words, message, capsys):
    demo = importlib.import_module(DEMO)
    with pytest.raises(SystemExit) as ended:
        demo.command_line().parse_args(words)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
