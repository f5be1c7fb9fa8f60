"""The suite without ROS as one wheel: built, installed in an empty environment, imported, run."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.exhaustive

ROOT = Path(__file__).resolve().parents[2]
UV = shutil.which("uv") or str(ROOT / ".venv" / "bin" / "uv")
COM = """
import numpy as np
from com_model import Sesc, load_robot
import com_bags, com_control, com_estimation, com_identification, com_viewer.scene
from importlib.resources import files
for package in (com_bags, com_control, com_estimation, com_identification, com_viewer):
    assert (files(package.__name__) / "py.typed").is_file()
model, _ = load_robot("hoap2")
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
def wheel(tmp_path_factory):
    """The wheel, built of what git lists, or would."""
    if not Path(UV).exists():
        pytest.skip("needs uv, which builds wheels and the environment")
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"  # setuptools writes its build/ beside the source
    listed = run("git", "ls-files", "-co", "--exclude-standard", cwd=ROOT).splitlines()
    for name in listed:
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, source / name)
    run(UV, "build", "--quiet", "--wheel", source, "--out-dir", folder / "wheels")
    (wheel,) = (folder / "wheels").glob("*.whl")
    return wheel


def find_python(version):
    """The path of a Python that starts; None where there is none."""
    found = subprocess.run(
        ["pyenv", "whence", "--path", f"python{version}"]
        if shutil.which("pyenv")
        else ["true"],
        capture_output=True,
        text=True,
        check=False,
    )
    for python in filter(
        None, (shutil.which(f"python{version}"), *found.stdout.split())
    ):
        if not subprocess.run([python, "-c", ""], capture_output=True).returncode:
            return python
    return None


@pytest.fixture(scope="module", params=["3.10", "3.11", "3.12", "3.13"])
def installed(request, wheel, tmp_path_factory):
    """The bin/ of an environment in which nothing but the wheel and its needs is."""
    environment = tmp_path_factory.mktemp("python") / "environment"
    python = find_python(request.param)
    if python is None:
        pytest.skip(f"there is no Python {request.param}")
    run(UV, "venv", "--quiet", "--python", python, environment)
    place = environment / "bin"
    wanted = f"{wheel}[viewer]"
    run(UV, "pip", "install", "--quiet", "--python", place / "python", wanted)
    return place


def test_computes_a_com_without_ros(installed, tmp_path):
    clean = {
        "PATH": os.defpath,
        "NUMBA_DISABLE_JIT": "1",
    }  # the compiler is that of other tests
    printed = run(
        installed / "python",
        "-I",
        "-c",
        COM,
        cwd=tmp_path,
        env=clean,
    )
    assert len([float(word) for word in printed.split()]) == 3


def test_every_command_explains_itself(installed, tmp_path):
    """Its script, all in one process."""
    commands = sorted(installed.glob("com-*"))
    assert {"com-audit", "com-identify", "com-setup", "com-view", "com-demo"} <= {
        path.name for path in commands
    }
    words = [installed / "python", "-I", "-c", HELP, *commands]
    _, *parts = run(*words, cwd=tmp_path, env={"PATH": os.defpath}).split("\f")
    for command, said, ended in zip(commands, parts[::2], parts[1::2], strict=True):
        path, _, text = said.partition("\n")
        assert (path, ended.strip()) == (str(command), "0")
        assert text.startswith("usage:"), command.name


def test_the_demo_shows_a_wrong_model(installed, tmp_path):
    words = "--once", "--no-browser", "--port", "8480"
    said = run(installed / "com-demo", *words, cwd=tmp_path, env={"PATH": os.defpath})
    assert said.startswith("viewer: http://127.0.0.1:")
