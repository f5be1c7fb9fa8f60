"""The policy of SROS 2 has the form of version 0.2.0, and every node of the launch files one."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
import security_policy as tool
from launcher.document import LaunchError
from launcher.interpreter import nodes_of

ROOT = Path(__file__).parents[3]
NODE = re.compile(r'<node [^>]*name="(\w+)"[^>]* ros_args="--enclave (\S+)"')
LAUNCH_FILES = sorted((ROOT / "launch").glob("*.launch.xml"))
SENSITIVE = {"/joint_trajectory", "/joint_states", "/robot_description"}


def test_the_form_is_that_of_the_schema():
    root = ElementTree.parse(tool.POLICY).getroot()
    assert (root.tag, root.attrib) == ("policy", {"version": "0.2.0"})
    (enclaves,) = root
    for enclave in enclaves:
        (profiles,) = enclave
        (profile,) = profiles
        assert enclave.get("path") == tool.ENCLAVES + profile.get("node")
        assert profile.get("ns") == "/"
        for part in profile:
            ((rule, value),) = part.attrib.items()
            assert value == "ALLOW"
            assert part.tag == tool.ELEMENTS[rule] + "s"
            assert {element.tag for element in part} == {tool.ELEMENTS[rule]}
            assert not [element.text for element in part if "*" in element.text]


def test_every_node_of_the_launch_files_has_its_enclave():
    started = [
        found for path in LAUNCH_FILES for found in NODE.findall(path.read_text())
    ]
    assert len(started) == sum(
        path.read_text().count("<node ") for path in LAUNCH_FILES
    )
    assert {name for name, _ in started} == set(tool.allowed())
    assert all(enclave == tool.ENCLAVES + name for name, enclave in started)


def test_every_launch_file_and_every_enclave_is_watched():
    """By --check and test/system/test_security_policy.py; the others include what is watched."""
    started = {}
    for line in tool.LAUNCHES:
        name, *words = line.split()
        nodes = nodes_of(
            ROOT / "launch" / name, dict(word.split(":=", 1) for word in words)
        )
        started[name] = {node.name for node in nodes}
    own = {
        "robot_state_publisher",
        "rviz2",
        "state_adapter",
    }  # foreign() has what they may do
    assert set().union(*started.values()) - own == set(tool.allowed()) - own
    watched = {
        *started,
        "rviz.launch.xml",
        "simulation.launch.xml",
    }  # in robot.launch.xml
    for path in LAUNCH_FILES:
        included = set(re.findall(r"/launch/([\w.]+)\"", path.read_text()))
        starts_others = (
            "<node " not in path.read_text() and included and included <= watched
        )
        assert path.name in watched or starts_others, path
        watched.add(path.name)


def test_only_drivers_and_controllers_send_what_moves_the_robot():
    may = {
        topic: {n for n, uses in tool.allowed().items() if ("publish", topic) in uses}
        for topic in SENSITIVE
    }
    movers = {"ccgd_gait", "com_balancer", "motion_player", "posture_tour", "sway"}
    movers |= {"tip_ramp", "trot_gait"}
    assert may["/joint_trajectory"] == movers
    assert may["/joint_states"] == {"simulator", "state_adapter"}
    assert may["/robot_description"] <= {"robot_state_publisher", "simulator"}


def test_differences_are_named():
    used, may = {("publish", "/a")}, {("publish", "/b")}
    assert tool.differences({"n": used}, {"n": may}) == [
        "n may not publish /a, but does",
        "n may publish /b, but does not",
    ]


def test_without_ros_secure_is_refused(monkeypatch):
    given = {"secure": "true", "urdf": "", "config": ""}
    monkeypatch.delenv("ROS_SECURITY_KEYSTORE", raising=False)
    with pytest.raises(
        LaunchError, match="ROS_SECURITY_KEYSTORE is for ROS 2 with sros2"
    ):
        nodes_of(ROOT / "launch/posture_protocol.launch.xml", given)
