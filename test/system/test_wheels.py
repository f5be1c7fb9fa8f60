"""The packages without ROS as wheels: built, installed in an empty environment, imported, run."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.exhaustive

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    "com_model",
    "com_bags",
    "com_estimation",
    "com_identification",
    "com_control",
    "com_simulation",
    "com_viewer",
)
UV = shutil.which("uv") or str(ROOT / ".venv" / "bin" / "uv")
COM = """
import numpy as np
from com_model import Sesc, load_robot
import com_bags, com_control, com_estimation, com_identification, com_viewer.scene
model, _ = load_robot({urdf!r})
print(*Sesc(model).com(np.zeros(model.n_joints)))
"""
HELP = """
import runpy, sys
for script in sys.argv[1:]:
    sys.argv = [script, "--help"]
    print("\\f" + script)
    try:
        runpy.run_path(script, run_name="__main__")
        ended = "none"
    except SystemExit as stop:
        ended = stop.code or 0
    print("\\f" + str(ended))
"""


def run(*words, **options):
    result = subprocess.run(
        [str(word) for word in words],
        capture_output=True,
        text=True,
        timeout=300,
        **options,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The bin/ of an environment in which nothing but the wheels and their needs is."""
    if not Path(UV).exists():
        pytest.skip("needs uv, which builds wheels and the environment")
    folder = tmp_path_factory.mktemp("wheels")
    for package in PACKAGES:
        source = folder / package  # setuptools writes its build/ beside the source
        ignored = shutil.ignore_patterns("__pycache__", "build", "*.egg-info")
        shutil.copytree(ROOT / "src" / package, source, ignore=ignored)
        run(UV, "build", "--quiet", "--wheel", source, "--out-dir", folder / "wheels")
    run(UV, "venv", "--quiet", "--python", sys.executable, folder / "environment")
    place = folder / "environment" / "bin"
    wheels = sorted((folder / "wheels").glob("*.whl"))
    run(UV, "pip", "install", "--quiet", "--python", place / "python", *wheels)
    return place


def test_computes_a_com_without_ros(installed, tmp_path):
    urdf = ROOT / "src/robot_descriptions/urdf/hoap2.urdf"
    clean = {
        "PATH": os.defpath,
        "NUMBA_DISABLE_JIT": "1",
    }  # the compiler is that of other tests
    printed = run(
        installed / "python",
        "-I",
        "-c",
        COM.format(urdf=str(urdf)),
        cwd=tmp_path,
        env=clean,
    )
    assert len([float(word) for word in printed.split()]) == 3


def test_every_command_explains_itself(installed, tmp_path):
    """Its script, all in one process."""
    commands = sorted(installed.glob("com-*"))
    assert {"com-audit", "com-identify-bag", "com-setup", "com-viewer"} <= {
        path.name for path in commands
    }
    words = [installed / "python", "-I", "-c", HELP, *commands]
    _, *parts = run(*words, cwd=tmp_path, env={"PATH": os.defpath}).split("\f")
    for command, said, ended in zip(commands, parts[::2], parts[1::2], strict=True):
        path, _, text = said.partition("\n")
        assert (path, ended.strip()) == (str(command), "0")
        assert text.startswith("usage:"), command.name
