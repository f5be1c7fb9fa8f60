"""The demo of the trot, as a user runs it, and what it says when something is wrong."""

import json

import pytest

DEMO = "com_demos.trot_demo"
TROT = ("--seconds", 7, "--speed", 10, "--feedback")


def test_a_load_drops_on_scalf2(run, tmp_path):
    out = tmp_path / "out"
    done = run(*TROT, "--output", out)
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads(done.stdout.splitlines()[-1])
    assert figures["robot"] == "scalf2"
    assert figures["feedback"] is True
    assert figures["payload_kg"] == pytest.approx(20.0)
    assert 5.0 <= figures["payload_at_s"] < 6.0
    assert 0.0 < figures["payload_noticed_after_s"] < 2.0
    assert figures["truths_matched"] > 0.9 * figures["messages"] > 500
    assert max(figures["error_x_mm"], figures["error_y_mm"]) < 12.6
    names = {path.name for path in out.iterdir()}
    written = {f"scalf2_trot_feedback.{kind}" for kind in ("png", "json", "html")}
    assert names == written | {"launch.log"}
    assert json.loads((out / "scalf2_trot_feedback.json").read_text()) == figures


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--robot", "scalf3"],
            "demo: robot 'scalf3': unknown, and no URDF's path; valid names: scalf2",
        ),
        (
            ["--robot", "ur5"],
            "demo: robot configuration: ur5 has none; one is needed, with side and end of its feet",
        ),
        (["--robot", "hoap2"], "demo: "),
        (["--seconds", "3"], "--seconds 3: give 6 to 3600, the load drops at 5"),
        (["--speed", "0"], "--speed 0: give 0.05 to 10"),
    ],
)
def test_wrong_commands(tmp_path, refusal, words, message):
    assert message in refusal(*words, "--output", tmp_path)
