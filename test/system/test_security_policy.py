"""What the nodes of running launch files use is what the policy of SROS 2 allows."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "tools"))
import security_policy as tool

SHIPPED = sorted((tool.ROOT / "src/robot_descriptions/config").glob("*.yaml"))


def launches():
    """Lines of launch files; one stands for the others in `make test`."""
    for line in tool.LAUNCHES:
        name = line.partition(".")[0]
        marks = () if name == "identification" else pytest.mark.exhaustive
        yield pytest.param(line, id=name, marks=marks)


@pytest.mark.parametrize("line", launches())
def test_running_nodes_do_what_they_may_and_nothing_else(line, domain, monkeypatch):
    """Every node that a launch file starts is there, or observe() ends."""
    monkeypatch.setattr(tool, "UNCHANGED_S", 3.0)
    found = tool.observe(SHIPPED, "/", domain, only=line.partition(" ")[0])
    policy = tool.allowed()
    assert tool.differences(found, policy, whole=False) == []
    assert {"simulator", "com_viewer"} < found.keys()
    assert min(len(uses) for uses in found.values()) > tool.EVERY
    sensors = ("subscribe", "/joint_states")
    readers = [node for node, uses in found.items() if tool.reads(uses)]
    assert "com_viewer" in readers
    for node in readers:
        stricter = {**policy, node: policy[node] - {sensors}}
        expected = [f"{node} may not subscribe /joint_states, but does"]
        assert tool.differences(found, stricter, whole=False) == expected


def test_a_launch_file_is_chosen_by_the_beginning_of_its_name(monkeypatch, capsys):
    for words in (["--only", "trot"], ["--check", "--only", "none"]):
        monkeypatch.setattr(sys, "argv", ["security_policy.py", *words])
        with pytest.raises(SystemExit):
            tool.main()
        assert (
            "with --check, and the beginning of a launch file"
            in capsys.readouterr().err
        )
