"""Every command line of the documentation runs: against real nodes, or as far as it is parsed.

The `ros2` is the one of tools/, for machines without ROS; its syntax is that of the real one.
"""

import argparse
import functools
import importlib
import re
import shlex
import shutil
import subprocess
import sys

import pytest
from documents import ROOT, commands, documents, entry_points
from geometry_msgs.msg import PointStamped

from com_control.nodes.ccgd_gait import CcgdGaitNode
from com_control.nodes.com_balancer import ComBalancerNode
from com_estimation.nodes.humanoid_com_estimator import HumanoidComEstimator
from com_estimation.nodes.trunk_estimator import TrunkEstimatorNode
from com_identification.nodes.com_identification import ComIdentification
from com_identification.nodes.posture_protocol import PostureProtocol
from com_identification.nodes.posture_tour import PostureTour
from com_msgs.msg import CentroidalDiagnosis, GroundReaction, ModelCheck
from com_simulation.nodes.simulator import Simulator

sys.path.append(str(ROOT / "tools"))
import security_policy
from launcher.cli import main as launch

SHARE = ROOT / "src/robot_descriptions"
PROTOCOL = str(SHARE / "config/posture_protocol/hoap2.yaml")
HOAP2, SCALF2 = (
    {"robot_config": str(SHARE / f"config/{n}.yaml")} for n in ("hoap2", "scalf2")
)
XML = {"robot_description": (SHARE / "urdf/hoap2.urdf").read_text()}
# By the beginning of the names that it has; most have no robot, so that answers come at once.
NODES = {
    "/?(com_)?identification/": (ComIdentification, {**HOAP2, "capture_timeout": 0.1}),
    "/posture_tour/": (PostureTour, HOAP2),
    "/ccgd_gait/|/walk$": (CcgdGaitNode, HOAP2),
    "balance/": (ComBalancerNode, HOAP2),
    "/trunk_estimator/|/ground_reaction": (TrunkEstimatorNode, SCALF2),
    "diagnosis$": (HumanoidComEstimator, HOAP2),
    "/posture_protocol/": (PostureProtocol, {**HOAP2, **XML, "protocol": PROTOCOL}),
    "/simulator/": (Simulator, {**HOAP2, **XML, "real_time_factor": 0.05}),
}
COMMANDS = {"com-view": "com_viewer.commands.view:main"} | {
    f"com-{name}": f"com_model.commands.{name}:main"
    for name in ("audit", "workspace", "setup")
}
LINES = sorted({line for path in documents() for line in commands(path.read_text())})


def lines(pattern):
    """Command lines, as words, that match from their beginning; not where their output goes."""
    return [
        shlex.split(line.partition(" > ")[0])
        for line in LINES
        if re.match(pattern, line)
    ]


TALKS = lines(r"ros2 (topic|service|action) \w+ \S")


@pytest.mark.parametrize("names", NODES)
def test_lines_that_talk_to_a_node(world, ros2, names):
    node = world.start(NODES[names][0], **NODES[names][1])
    uses = security_policy.uses_of(world.node, node.get_name(), node.get_namespace())
    assert len(uses) > 10
    assert uses <= security_policy.allowed()[node.get_name()], (
        "tools/security_policy.py"
    )
    desired = world.collect(PointStamped, "balance/com_desired")
    messages = [
        ("ground_reaction", GroundReaction()),
        ("identification/model_check", ModelCheck()),
    ]
    messages.append(("diagnosis", CentroidalDiagnosis(verdict="nothing is wrong")))
    talks = [words for words in TALKS if any(re.match(names, word) for word in words)]
    assert talks
    with world.served(*messages):
        for words in talks:
            code, out, err = ros2(*words[1:], *(["--once"] if "echo" in words else []))
            what = {"echo": "---\n", "pub": "publishing #1: ", "call": "response:\n"}
            shown = what.get(words[2], "Goal finished with status: ABORTED")
            assert (code, err) == (0, ""), (words, out, err)
            assert shown in out, (words, out)
    assert [msg.point.x for msg in desired] == [0.03] * (names == "balance/")


def test_each_line_has_its_node():
    for words in TALKS:
        assert (
            sum(any(re.match(names, word) for word in words) for names in NODES) == 1
        ), words


class ParsedError(Exception):
    """The command line has been parsed."""


def test_lines_of_programs_are_parsed(monkeypatch):
    """With the parser of the program itself, which gets no further."""
    parse = argparse.ArgumentParser.parse_args

    def parse_only(self, words=None, namespace=None):
        raise ParsedError(parse(self, words, namespace))

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parse_only)
    parsed = 0
    for words in lines(r"ros2 run com_\w+ \w+ \S|com-\w+ [^.]*$"):
        if words[0] == "ros2":
            function = entry_points()[words[2], words[3]]
        else:
            function = COMMANDS[words[0]]
        if ".nodes." in function or "live" in words or "--ros-args" in words:
            continue
        module, _, name = function.partition(":")
        with pytest.raises(ParsedError):
            getattr(importlib.import_module(module), name)(
                words[4 if words[0] == "ros2" else 1 :]
            )
        parsed += 1
    assert parsed >= 12


# Those that need nothing but what ships and what the lines before have made, in order.
RUN = (
    r"ros2 run com_model com_setup robot.urdf$",
    r"ros2 run com_model com_setup robot.urdf --(picture robot.png|update)$",
    r"ros2 run com_model audit robot.urdf",
    r"ros2 run com_demos workspace --robot hoap2 --output out$",
    r"com-view hoap2 --record ",
    r"ros2 run com_control check_motion walk.csv ",
    r"ros2 run com_control convert_motion walk.csv walk_bag ",
    r"ros2 run com_identification posture_protocol --robot hoap2 ",
    r"ros2 run com_identification com_human .* --output table.urdf$",
    r"ros2 run com_identification propose_postures --robot hoap2 ",
    r"ros2 run com_demos record_bag --robot hoap2 --postures ",
    r"ros2 run com_identification identify hoap2_bag/bag ",
    r"ros2 run com_demos compare_urdfs ",
    r"tools/in_env python examples/com_of_urdf.py hoap2$",
)
MADE = {
    *(
        "robot.yaml",
        "robot.png",
        "out/hoap2_com_workspace.html",
        "hoap2.html",
        "table.urdf",
    ),
    *(
        "out/hoap2_tip_angles.html",
        "postures.yaml",
        "hoap2_bag/truth.urdf",
        "hoap2_result/report.html",
    ),
}


# Where HOAP-2 is so much more to compute: there its lines are those of a planar biped.
SMALLER = {
    "hoap2": "biped3",
    "$U/config/hoap2.yaml": "$U/config/biped3.yaml",
    "60": "6",
}
LONG = ("propose_postures", "record_bag", "identify", "compare_urdfs")


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_lines_that_can_run_do(tmp_path, monkeypatch, capsys):
    """In one folder, as a reader would; there the robot is HOAP-2, but for 6 postures."""
    shutil.copy(SHARE / "urdf/hoap2.urdf", tmp_path / "robot.urdf")
    shutil.copy(SHARE / "motions/hoap2_squat_and_wave.csv", tmp_path / "walk.csv")
    for name in ("src", "examples"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    by_name = {name: function for (_, name), function in entry_points().items()}
    for pattern in RUN:
        chosen = lines(pattern)
        assert chosen, f"no page has {pattern}"
        for words in chosen:
            smaller = SMALLER if any(name in words for name in LONG) else {}
            words = [
                smaller.get(word, word).replace("$U", str(SHARE)) for word in words
            ]
            if words[0] == "tools/in_env":
                done = subprocess.run([sys.executable, *words[2:]], capture_output=True)
                assert done.returncode == 0, done.stderr
                continue
            words = words[3:] if words[0] == "ros2" else words
            if (
                words[0] == "com_setup" and "--update" not in words
            ):  # it replaces nothing unasked
                (tmp_path / "robot.yaml").unlink(missing_ok=True)
            function = by_name.get(words[0]) or COMMANDS[words[0]]
            module, _, name = function.partition(":")
            code = getattr(importlib.import_module(module), name)(words[1:])
            assert code == 0, (words, capsys.readouterr())
    assert {name for name in MADE if not (tmp_path / name).is_file()} == set()


def test_launch_lines_are_understood(tmp_path, monkeypatch, capsys):
    """As far as the nodes that would be started; robot.urdf and the like are HOAP-2's."""
    for name in ("robot", "my_robot", "PATH"):
        shutil.copy(SHARE / "urdf/hoap2.urdf", tmp_path / f"{name}.urdf")
        shutil.copy(HOAP2["robot_config"], tmp_path / f"{name}.yaml")
    monkeypatch.chdir(tmp_path)
    output = functools.cache(subprocess.run)
    monkeypatch.setattr(
        "launcher.expansion.subprocess.run",
        lambda words, **options: output(tuple(words), **options),
    )
    checked = lines(r"(ros2 launch|tools/run_launch) com_bringup \S")
    assert len(checked) >= 20
    for words in checked:
        words = [word.replace(":=PATH", ":=robot.urdf") for word in words]
        words = [word.replace("urdf:=...", "urdf:=robot.urdf") for word in words]
        words = [word.replace("config:=...", "config:=robot.yaml") for word in words]
        code = launch([*words[words.index("com_bringup") :], "--dry-run"])
        out, err = capsys.readouterr()
        assert (code, err) == (0, ""), (words, err)
        assert "com_" in out, words


def test_make_lines_are_understood():
    for words in lines(r"make [\w-]+( |$)"):
        make = ["make", "-n", "-C", ROOT, *words[1:]]
        done = subprocess.run(make, capture_output=True, text=True)
        assert done.returncode == 0, (words, done.stderr)
