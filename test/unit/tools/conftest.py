"""Launch files and tiny packages for the tests of tools/run_launch."""

import os
import stat
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[3] / "tools"
sys.path.insert(0, str(TOOLS))


@pytest.fixture
def launch_file(tmp_path):
    """Write <launch>BODY</launch> to a file; return its path."""

    def write(body, name="test.launch.xml"):
        path = tmp_path / name
        path.write_text(f"<launch>\n{body}\n</launch>\n")
        return path

    return write


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Install a package of shell scripts into an ament prefix of the test's own."""
    prefix = tmp_path / "prefix"
    monkeypatch.setenv(
        "AMENT_PREFIX_PATH", f"{prefix}{os.pathsep}{os.environ['AMENT_PREFIX_PATH']}"
    )

    def install(name="tiny", **scripts):
        share, programs = prefix / "share" / name, prefix / "lib" / name
        marker = prefix / "share/ament_index/resource_index/packages" / name
        for folder in (share / "launch", programs, marker.parent):
            folder.mkdir(parents=True, exist_ok=True)
        marker.touch()
        for script, body in scripts.items():
            path = programs / script
            path.write_text(f"#!/bin/bash\n{body}\n")
            path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return share

    return install
