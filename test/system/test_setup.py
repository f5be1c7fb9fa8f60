"""tools/setup.sh on machines where something is missing: one line and how to fix it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NEEDED = [
    *("bash", "cat", "cut", "dirname", "env", "find", "flock", "grep", "head", "mkdir"),
    *(
        "nproc",
        "rm",
        "sed",
        "sha256sum",
        "sort",
        "tail",
        "touch",
        "tr",
        "uname",
        "xargs",
    ),
    *("gcc", "g++", "make", "cmake", "python3"),
]


@pytest.fixture
def checkout(tmp_path):
    """A checkout with nothing but the tools, so that the real environment is left alone."""
    shutil.copytree(
        ROOT / "tools", tmp_path / "tools", ignore=shutil.ignore_patterns("__pycache__")
    )
    for name in ("src", "demos", "launch"):
        (tmp_path / name).mkdir()
    return tmp_path


def system_python():
    """The Python below the environment that runs the tests."""
    return Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"


def run_setup(checkout, *, without=(), **environment):
    """Run setup.sh with a PATH that holds only what it needs, less `without`."""
    binaries = checkout / "bin"
    binaries.mkdir()
    for name in NEEDED:
        if name not in without:
            target = str(system_python()) if name == "python3" else shutil.which(name)
            (binaries / name).symlink_to(target)
    result = subprocess.run(
        [str(binaries / "bash"), "tools/setup.sh"],
        cwd=checkout,
        env={"PATH": str(binaries), "HOME": os.environ.get("HOME", "/"), **environment},
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert result.returncode == 1, result.stdout + result.stderr
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    return lines[0]


@pytest.mark.parametrize(
    ("missing", "package"),
    [
        ("gcc", "gcc"),
        ("g++", "g++"),
        ("make", "make"),
        ("cmake", "cmake"),
        ("python3", "python3"),
    ],
)
def test_missing_program(checkout, missing, package):
    line = run_setup(checkout, without=[missing])
    assert line.startswith(f"setup: {missing} is missing")
    assert line.endswith(f"sudo apt-get install {package}")


def fake_python(checkout, question, answer):
    """A python3 that answers the question that has a word in it, and else is the real one."""
    fake = checkout / "fake_python3"
    script = f'case "$*" in *{question}*) echo {answer};; *) exec {system_python()} "$@";; esac'
    fake.write_text(f"#!/bin/sh\n{script}\n")
    fake.chmod(0o755)
    return str(fake)


def test_missing_python_headers(checkout):
    """A Python whose include folder is elsewhere stands for one without headers."""
    line = run_setup(checkout, PYTHON=fake_python(checkout, "include", "/nonexistent"))
    assert "Python headers are missing (/nonexistent/Python.h)" in line
    assert "sudo apt-get install python3-dev" in line


def test_unsupported_python(checkout):
    line = run_setup(checkout, PYTHON=fake_python(checkout, "version_info", "3.9"))
    assert "Python 3.10 to 3.14" in line
    assert "set PYTHON" in line


def test_old_ros_distribution(checkout):
    line = run_setup(checkout, ROS_DISTRO="humble", AMENT_PREFIX_PATH="/opt/ros/humble")
    assert "ROS 2 humble is too old" in line


@pytest.mark.exhaustive
def test_no_network(checkout):
    """It is said; and nothing says that the environment or the workspace is complete."""
    line = run_setup(
        checkout,
        PIP_CONFIG_FILE=os.devnull,
        PIP_INDEX_URL="http://127.0.0.1:9/simple",
        PIP_NO_CACHE_DIR="1",
    )
    assert "the Python package index cannot be reached" in line
    assert "Check the network or proxy" in line
    assert not (checkout / ".venv" / ".environment").exists()
    assert not (checkout / "install" / ".workspace").exists()


def test_in_env_without_command_teaches():
    result = subprocess.run([ROOT / "tools" / "in_env"], capture_output=True, text=True)
    assert result.returncode == 2
    assert "usage: tools/in_env COMMAND" in result.stdout
