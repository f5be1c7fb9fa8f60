"""The ros2 of tools/, for machines without ROS: what it prints, what it refuses."""

import importlib
import re
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml
from geometry_msgs.msg import PointStamped
from rcl_interfaces.msg import FloatingPointRange, ParameterDescriptor
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from com_bags import Bag
from com_msgs.msg import WalkState

TOOLS = Path(__file__).parents[2] / "tools"
JOINTS = JointState(name=["a", "b"], position=[0.5, -1.0])


def test_topics(world, ros2):
    points = world.collect(PointStamped, "/point")
    with world.served(
        ("/joints", JOINTS), ("/numbers", JointState(position=[0.25] * 200))
    ):
        assert (
            "/joints [sensor_msgs/msg/JointState]\n" in ros2("topic", "list", "-t")[1]
        )
        assert ros2("topic", "type", "joints") == (
            0,
            "sensor_msgs/msg/JointState\n",
            "",
        )
        expected = "Type: sensor_msgs/msg/JointState\nPublisher count: 1\nSubscription count: 0\n"
        assert ros2("topic", "info", "/joints") == (0, expected, "")
        _, out, _ = ros2("topic", "echo", "/joints", "--once")
        found = yaml.safe_load(out.removesuffix("---\n"))
        assert (found["name"], found["position"]) == (["a", "b"], [0.5, -1.0])
        assert list(found) == ["header", "name", "position", "velocity", "effort"]
        assert ros2(
            "topic", "echo", "--once", "/joints", "--field", "header.stamp.sec"
        )[1] == ("0\n---\n")
        _, out, _ = ros2("topic", "echo", "--once", "/numbers", "--field", "position")
        assert out == "- 0.25\n" * 128 + "- '...'\n---\n"
        words = (
            "topic",
            "pub",
            "-t",
            "2",
            "-r",
            "50",
            "/point",
            "geometry_msgs/msg/PointStamped",
        )
        code, out, _ = ros2(
            *words, "{header: {stamp: now, frame_id: map}, point: {x: 1, z: .nan}}"
        )
        assert (code, out.count("publishing #")) == (0, 2)
    assert [(msg.point.x, msg.header.frame_id) for msg in points] == [(1.0, "map")] * 2
    assert points[0].header.stamp.sec > 1e9


def test_rate_of_a_topic(world):
    with world.served(("/joints", JOINTS)):
        command = [
            TOOLS / "in_env",
            TOOLS / "without_ros" / "ros2",
            "topic",
            "hz",
            "/joints",
        ]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        line = process.stdout.readline()
        process.terminate()
        assert process.wait(10) == 130
        process.stdout.close()
    assert 2.0 < float(re.fullmatch(r"average rate: ([\d.]+)\n", line)[1]) < 40.0


def test_parameters(world, ros2):
    bounds = [FloatingPointRange(from_value=0.0, to_value=2.0)]
    descriptor = ParameterDescriptor(
        description="1/s, a rate", floating_point_range=bounds
    )
    world.node.declare_parameter("rate", 1.5, descriptor)
    world.node.declare_parameter("names", ["l", "r"])
    with world.served():
        assert "/world\n" in ros2("node", "list")[1]
        assert "  names\n  rate\n" in ros2("param", "list", "/world")[1]
        assert ros2("param", "get", "/world", "rate") == (
            0,
            "Double value is: 1.5\n",
            "",
        )
        assert (
            ros2("param", "get", "world", "names")[1]
            == "String values are: ['l', 'r']\n"
        )
        assert (
            ros2("param", "set", "/world", "rate", "2.0")[1]
            == "Set parameter successful\n"
        )
        code, _, err = ros2("param", "set", "/world", "rate", "3.0")
        assert (code, err.startswith("Setting parameter failed: ")) == (1, True)
        text = ros2("param", "describe", "/world", "rate")[1]
        assert "  Description: 1/s, a rate\n" in text
        assert "    Max value: 2.0\n" in text
        values = yaml.safe_load(ros2("param", "dump", "/world")[1])["/world"][
            "ros__parameters"
        ]
        assert (values["rate"], values["names"]) == (2.0, ["l", "r"])
        code, _, err = ros2("param", "get", "/nobody", "rate")
        assert (code, err.split(". ")[0]) == (1, "Node not found: /nobody")


def test_a_bag_is_recorded_shown_and_played(world, ros2, tmp_path, monkeypatch):
    world.latch("/robot_description", String(data="<robot/>"))
    state = WalkState(reason="asked to")
    waits = iter(range(30))
    session_module = importlib.import_module("ros2_command.session")
    wait = session_module.Session.wait

    def some(session, seconds):
        wait(session, seconds)
        if next(waits, None) is None:
            raise KeyboardInterrupt

    bag = tmp_path / "bag"
    with (
        world.served(("/joint_states", JOINTS), ("/gait/state", state)),
        monkeypatch.context() as m,
    ):
        m.setattr(session_module.Session, "wait", some)
        code, _, _ = ros2("bag", "record", "-o", bag, "--all")
        assert code == 130
    text = ros2("bag", "info", bag)[1]
    assert "Storage id:        mcap\n" in text
    assert "Topic: /robot_description | Type: std_msgs/msg/String | Count: 1 |" in text
    assert "Type: com_msgs/msg/WalkState" in text
    with Bag(bag) as opened:
        assert "/joint_states" in [topic.name for topic in opened.topics()]
    joints, walks = (
        world.collect(JointState, "/joint_states"),
        world.collect(WalkState, "/gait/state"),
    )
    with world.served():
        assert ros2("bag", "play", bag, "--rate", "20")[0] == 0
    assert len(joints) > 3
    assert list(joints[-1].position) == [0.5, -1.0]
    assert {msg.reason for msg in walks} == {"asked to"}
    assert (
        ros2("bag", "record", "-o", bag, "/x")[2]
        == f"Output folder '{bag}' already exists.\n"
    )


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (
            "service call /x std_srvs/srv/Nothing",
            "type 'std_srvs/srv/Nothing' is not installed",
        ),
        ("topic pub /x std_msgs/msg/String {text", "is not YAML"),
        ("topic pub /x std_msgs/msg/String text", "expected fields by name"),
        (
            "topic pub /x std_msgs/msg/String '{text: a}'",
            "String has no field 'text'; it has: data",
        ),
        (
            "service call /x std_srvs/srv/SetBool '{data: up}'",
            "field 'data' is boolean, not 'up'",
        ),
        (
            "topic echo --once /nothing",
            r"topic \[/nothing\] does not appear to be published yet",
        ),
        ("bag info nothing", "'nothing' is no bag"),
        ("bag record", "give topics, or --all"),
        ("run com_model nothing", "package 'com_model' has no executable 'nothing'"),
    ],
)
def test_errors_say_what_is_wrong(ros2, words, error):
    code, _, err = ros2(*shlex.split(words))
    assert code == 1
    assert re.search(error, err), err


def test_what_it_does_not_have_is_refused_by_name(ros2, capsys):
    with pytest.raises(SystemExit) as caught:
        ros2("doctor")
    assert caught.value.code == 2
    assert "invalid choice: 'doctor'" in capsys.readouterr().err


def test_a_real_ros2_comes_first(tmp_path):
    real = tmp_path / "ros2"
    real.write_text("#!/bin/sh\necho the real one\n")
    real.chmod(0o755)
    command = f"PATH={tmp_path}:$PATH {TOOLS}/in_env ros2 topic list"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
    assert done.stdout == "the real one\n"
