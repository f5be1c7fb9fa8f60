"""The real ROS launch system and tools/run_launch start the same nodes from the launch files.

Runs where ROS 2 is installed. Programs that write down how they were called stand in for the
nodes.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from ament_index_python import get_packages_with_prefixes

pytest.importorskip("ros2launch")

ROOT = Path(__file__).resolve().parents[2]
NODES = {
    "com_control": "ccgd_gait",
    "com_estimation": "sesc_publisher",
    "com_simulation": "simulator sway",
    "robot_state_publisher": "robot_state_publisher",
    "rviz2": "rviz2",
}
PROBE = f"""#!{sys.executable}
import json, os, sys, yaml
words, parameters, rest = sys.argv[1:], {{}}, []
while words:
    word = words.pop(0)
    if word != "--params-file":
        rest.append(word)
        continue
    for node, content in yaml.safe_load(open(words.pop(0))).items():
        parameters.setdefault(node, {{}}).update(content["ros__parameters"])
path = os.path.join(os.environ["PROBE_OUT"], os.path.basename(sys.argv[0]))
json.dump([rest, parameters], open(path, "w"), indent=1, sort_keys=True)
"""
CALLS = [
    ["hoap2.launch.xml"],
    ["hoap2.launch.xml", "rviz:=auto"],
    [
        "hoap2.launch.xml",
        "sway:=true",
        "namespace:=lab",
        "publish_rate_hz:=200",
        "rviz:=0",
    ],
    [
        "hoap2.launch.xml",
        "namespace:=/a/b",
        "frame_prefix:=b/",
        "use_imu:=1",
        "feet:=[l_sole]",
    ],
    [
        "hoap2.launch.xml",
        "simulation:=false",
        "joint_states:=hoap2/joints",
        "imu:=imu/data",
    ],
    ["itu_biped.launch.xml", "walk:=true", "step_time:=0.9", "namespace:=lab"],
    [
        "view_robot.launch.xml",
        "urdf:={urdf}",
        "base:=fixed",
        "use_sim_time:=true",
        "seed:=4",
    ],
    [
        "view_robot.launch.xml",
        "urdf:={urdf}",
        "simulation:=False",
        "state_publisher:=false",
    ],
]


@pytest.fixture
def environment(tmp_path, monkeypatch):
    """Put packages in front of the real ones whose programs write down how they were called."""
    prefix = tmp_path / "prefix"
    packages = prefix / "share/ament_index/resource_index/packages"
    packages.mkdir(parents=True)
    real = get_packages_with_prefixes()
    for package, programs in NODES.items():
        (packages / package).touch()
        if (
            package in real
        ):  # launch files run find_urdf, which they find from its share
            share = Path(real[package]) / "share" / package
            (prefix / "share" / package).symlink_to(share)
        (prefix / "lib" / package).mkdir(parents=True)
        for program in programs.split():
            path = prefix / "lib" / package / program
            path.write_text(PROBE)
            path.chmod(0o755)
    paths = f"{prefix}{os.pathsep}{os.environ['AMENT_PREFIX_PATH']}"
    return {
        **os.environ,
        "AMENT_PREFIX_PATH": paths,
        "ROS_LOG_DIR": str(tmp_path / "log"),
    }


def calls(command, environment, folder):
    """How each node was called."""
    folder.mkdir()
    result = subprocess.run(
        command,
        env={**environment, "PROBE_OUT": str(folder)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return {path.name: json.loads(path.read_text()) for path in folder.iterdir()}


@pytest.mark.parametrize("call", CALLS, ids=" ".join)
def test_same_nodes_same_words_same_parameters(call, environment, tmp_path):
    urdf = tmp_path / "a robot.urdf"
    urdf.write_text('<robot name="r"><link name="a"/></robot>')
    words = ["com_bringup", *(word.format(urdf=urdf) for word in call)]
    real = calls(
        ["ros2", "launch", "--noninteractive", *words], environment, tmp_path / "real"
    )
    ours = calls(
        [str(ROOT / "tools/run_launch"), *words], environment, tmp_path / "ours"
    )
    assert "sesc_publisher" in real
    assert ours == real


def test_same_arguments_are_listed(environment):
    def names(command, mark):
        output = subprocess.check_output(command, env=environment, text=True)
        lines = [line for line in output.splitlines() if line.startswith("    ")]
        return [line.strip(mark) for line in lines if not line.startswith("     ")]

    call = ["com_bringup", "hoap2.launch.xml", "--show-args"]
    ours = names([str(ROOT / "tools/run_launch"), *call], " ")
    assert names(["ros2", "launch", *call], " ':*") == ours
    assert "simulation" in ours
