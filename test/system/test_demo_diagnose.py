"""The demo of the diagnosis, as a user runs it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

DEMO = "diagnose_demo"
SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / f"{DEMO}.py"


@pytest.mark.exhaustive
def test_what_happens_is_named_and_nothing_else(tmp_path):
    command = [sys.executable, SCRIPT, "--output", tmp_path / "out"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads(done.stdout.splitlines()[-1])
    assert 0.0 < figures["payload_named_s"] < 1.5
    assert abs(figures["push_begin_error_s"]) < 0.1
    assert 0.0 < figures["drift_named_s"] < 1.5
    assert figures["wrong_names"] == []
    assert figures["com_error_mm"] < 2.0 < 10.0 < figures["com_error_urdf_mm"]
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"talos_diagnosis_bag", "talos_diagnosis.html"}


def test_a_robot_without_configuration(tmp_path, refusal):
    said = refusal("--robot", "ur5", "--output", tmp_path)
    assert "its feet, IMU and arms" in said
