"""What the nodes of running launch files use is what the policy of SROS 2 allows."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "tools"))
import security_policy as tool

SHIPPED = sorted((tool.ROOT / "src/robot_descriptions/config").glob("*.yaml"))
NODES = {  # of a simulation with an estimator, by launch file
    "trot": {"simulator", "trot_gait", "trunk_estimator", "com_viewer"},
    "robot": {"simulator", "sway", "humanoid_com_estimator", "sesc_publisher", "com_viewer"},
}


@pytest.mark.parametrize("name", NODES)
def test_running_nodes_do_what_they_may_and_nothing_else(name, domain, monkeypatch):
    monkeypatch.setattr(tool, "UNCHANGED_S", 3.0)
    found = tool.observe(SHIPPED, "/", domain, only=f"{name}.launch.xml")
    assert found.keys() >= NODES[name]
    policy = tool.allowed()
    assert tool.differences(found, policy, whole=False) == []
    assert min(len(uses) for uses in found.values()) > 10
    sensors = ("subscribe", "/joint_states")
    for node in NODES[name] - {"simulator", "sway", "trot_gait"}:
        stricter = {**policy, node: policy[node] - {sensors}}
        expected = [f"{node} may not subscribe /joint_states, but does"]
        assert tool.differences(found, stricter, whole=False) == expected


def test_a_launch_file_is_chosen_by_the_beginning_of_its_name(monkeypatch, capsys):
    for words in (["--only", "trot"], ["--check", "--only", "none"]):
        monkeypatch.setattr(sys, "argv", ["security_policy.py", *words])
        with pytest.raises(SystemExit):
            tool.main()
        assert "with --check, and the beginning of a launch file" in capsys.readouterr().err
