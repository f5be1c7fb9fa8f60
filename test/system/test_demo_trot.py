"""The demo of the trot, as a user runs it, and what it says when something is wrong."""

import json
import os
import subprocess
import sys

import pytest

DEMO = "com_demos.trot_demo"
TROT = ("--seconds", 8.5, "--speed", 10, "--feedback")


@pytest.fixture
def busy():
    """Both processors, and more, have something else to do."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(3)]
    yield
    for loop in loops:
        loop.kill()
        loop.wait()


@pytest.fixture(scope="module")
def figures_of(tmp_path_factory):
    """figures_of(name): the figures of the demo, run once by that name, and its folder."""
    done = {}

    def figures(name):
        if name not in done:
            out = tmp_path_factory.mktemp(name) / "out"
            env = {key: value for key, value in os.environ.items() if key != "ROS_DOMAIN_ID"}
            words = [sys.executable, "-m", DEMO, *map(str, TROT), "--output", str(out)]
            ended = subprocess.run(words, capture_output=True, text=True, timeout=600, env=env)
            assert ended.returncode == 0, ended.stdout + ended.stderr
            done[name] = json.loads(ended.stdout.splitlines()[-1]), out
        return done[name]

    return figures


def test_a_load_drops_on_scalf2(figures_of):
    figures, out = figures_of("quiet")
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


def test_a_busy_machine_changes_no_figure(figures_of, busy):
    first, second = figures_of("quiet")[0], figures_of("busy")[0]
    files = {"plot": "", "report": ""}
    assert first | files == second | files


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
