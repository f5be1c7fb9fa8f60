"""The demo of the trot, as a user runs it, and what it says when something is wrong."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

DEMO = "com_demos.trot_demo"
TROT = ("--seconds", 7, "--speed", 10, "--feedback")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Figures and folders of two runs of the demo at the same time, more than two cores can do."""
    outs = [tmp_path_factory.mktemp(name) / "out" for name in ("first", "second")]
    env = {key: value for key, value in os.environ.items() if key != "ROS_DOMAIN_ID"}
    words = [sys.executable, "-m", DEMO, *map(str, TROT), "--output"]

    def run(out):
        return subprocess.run([*words, out], capture_output=True, text=True, timeout=280, env=env)

    with ThreadPoolExecutor() as pool:
        both = list(pool.map(run, outs))
    assert [done.returncode for done in both] == [0, 0], [
        done.stdout + done.stderr for done in both
    ]
    return [
        (json.loads(done.stdout.splitlines()[-1]), out)
        for done, out in zip(both, outs, strict=True)
    ]


def test_a_load_drops_on_scalf2(runs):
    figures, out = runs[0]
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


def test_a_busy_machine_changes_no_figure(runs):
    """Both had to wait for each other, at other moments."""
    files = {"plot": "", "report": ""}
    assert runs[0][0] | files == runs[1][0] | files


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
