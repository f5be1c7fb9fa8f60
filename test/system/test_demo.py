"""The demo, as a user runs it, and what it says when something is wrong."""

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest

from com_demos.demonstration import Times

PATIENCE = 240.0  # s, on a busy machine
MASS = '<mass value="2"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
URDF = f"""<robot name="lift"><link name="base"/><link name="tip">
<inertial>{MASS}</inertial><visual><geometry><sphere radius="0.1"/></geometry></visual></link>
<joint name="lift" type="prismatic"><parent link="base"/><child link="tip"/><axis xyz="0 0 1"/>
<limit lower="0" upper="1" effort="1" velocity="1"/></joint></robot>"""
# What simulator and sesc_publisher would publish for that robot, CoM wrong by OFF metres.
STAND_IN = """
import sys, numpy as np, rclpy
from com_msgs.msg import CenterOfMass
from com_estimation.nodes.com_output import numpy_to_center_of_mass, numpy_to_sesc_chain
from com_estimation.whole_body.com_state import ComState
from com_msgs.msg import SescChain
from rclpy.duration import Duration
from rclpy.node import Node
from sensor_msgs.msg import JointState

off = float(sys.argv[1])
rclpy.init()
node = Node("stand_in")
com, truth = (node.create_publisher(CenterOfMass, t, 10) for t in ("com", "ground_truth/com"))
sesc, joints = node.create_publisher(SescChain, "sesc", 10), node.create_publisher(
    JointState, "joint_states", 10)
count, begin = 0, node.get_clock().now()

def message(z, stamp):
    nan = np.full(3, np.nan)
    values = ComState(1, "", 2.0, np.array([0, 0, z]), nan, np.array([0, 0, -1.0]), 1,
                       np.zeros(3), np.nan, ())
    return numpy_to_center_of_mass(values, stamp, "base")

def tick():
    global count
    count += 1
    stamp = (begin + Duration(nanoseconds=10_000_000 * count)).to_msg()  # whatever the machine does
    z = 0.5 + 0.1 * np.sin(count / 50)
    msg = JointState(name=["lift"], position=[z])
    msg.header.stamp = stamp
    joints.publish(msg)
    truth.publish(message(z, stamp))
    com.publish(message(z + off, stamp))
    if count % 10 == 0:
        sesc.publish(numpy_to_sesc_chain(2.0, ["tip"], [[0, 0, z]], [[0, 0, 0], [0, 0, z]],
                                         stamp, "base"))

node.create_timer(0.01, tick)
print("stand-in runs", flush=True)
try:
    rclpy.spin(node)
except KeyboardInterrupt:
    pass
"""


@pytest.fixture
def demo(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The script as a module; ROS_DOMAIN_ID is left to it."""
    monkeypatch.delenv("ROS_DOMAIN_ID", raising=False)
    on_terminate = signal.getsignal(signal.SIGTERM)
    module = importlib.import_module("com_demos.sway_demo")
    monkeypatch.setattr(module, "Times", partial(Times, settle=0.0))
    yield module
    os.environ.pop("ROS_DOMAIN_ID", None)
    signal.signal(signal.SIGTERM, on_terminate)


@pytest.fixture
def lift(tmp_path: Path) -> str:
    (tmp_path / "lift.urdf").write_text(URDF)
    return str(tmp_path / "lift.urdf")


RunDemo = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run_demo(
    demo: ModuleType,
    lift: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
) -> RunDemo:
    """run_demo(command, *words): exit code and output of the demo, the command for its launch."""

    def run(command: tuple[str, ...], *words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(
            demo, "launch_command", lambda *_: [sys.executable, "-c", *command]
        )
        return demo.main(["--robot", lift, *words]), *capsys.readouterr()

    return run


def left_over(tag: str) -> list[int]:
    """Processes with COM_TEST_TAG=tag in their environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"COM_TEST_TAG={tag}".encode() in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


@pytest.mark.exhaustive
def test_hoap2_for_three_seconds(tmp_path: Path) -> None:
    env = {**os.environ, "COM_TEST_TAG": str(tmp_path)}
    env.pop("ROS_DOMAIN_ID", None)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "com_demos.sway_demo",
            "--seconds",
            "3",
            "--view",
            "on",
            "--output",
            tmp_path / "out",
        ],
        capture_output=True,
        text=True,
        timeout=150,
        env=env,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads(done.stdout.splitlines()[-1])
    assert figures["robot"] == "hoap2"
    assert "setup_s" in figures
    assert figures["seconds"] == pytest.approx(3, abs=0.5)
    assert figures["messages"] > 100
    assert figures["truths_matched"] > 0.9 * figures["messages"]
    assert figures["com_error_max_mm"] < 1e-6
    assert figures["margin_min_mm"] > 5
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {
        "hoap2.png",
        "hoap2_com.png",
        "hoap2.json",
        "hoap2.html",
        "launch.log",
    }
    address = re.search(
        r"^viewer: http://127.0.0.1:\d+/\?token=\S+$", done.stdout, re.MULTILINE
    )
    if importlib.util.find_spec("viser") is None:
        assert "no viewer: install viser" in done.stdout
    else:
        assert address, done.stdout
        assert address[0] in (tmp_path / "out" / "launch.log").read_text()
    assert left_over(str(tmp_path)) == []


@pytest.mark.parametrize("when", ["nodes start", "data arrives"])
def test_ctrl_c_leaves_nothing_behind(tmp_path: Path, when: str) -> None:
    env = {**os.environ, "COM_TEST_TAG": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    env.pop("ROS_DOMAIN_ID", None)
    output = tmp_path / "output"
    with output.open("w") as stream:
        command = [
            sys.executable,
            "-m",
            "com_demos.sway_demo",
            "--output",
            tmp_path / "out",
        ]
        running = subprocess.Popen(
            command, stdout=stream, stderr=subprocess.STDOUT, env=env
        )
    end = time.monotonic() + PATIENCE
    while (
        len(left_over(str(tmp_path))) < 3  # demo, launch, a node
        if when == "nodes start"
        else "starting CoM" not in output.read_text()
    ):
        assert time.monotonic() < end, output.read_text()
        assert running.poll() is None, output.read_text()
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    # A shell's status is 130 for both: Python ends itself by SIGINT where the interrupt came inside
    # the exec() of a string, such as that of a named tuple, although it was caught.
    assert running.wait(timeout=PATIENCE) in (130, -signal.SIGINT), output.read_text()
    assert (
        output.read_text().splitlines()[-1]
        == "demo: interrupted, everything is stopped"
    )
    assert "Traceback" not in output.read_text()
    assert left_over(str(tmp_path)) == []


def test_figures_and_files(run_demo: RunDemo, tmp_path: Path) -> None:
    words = ("--seconds", "2", "--output", str(tmp_path / "new" / "out"))
    code, out, _ = run_demo((STAND_IN, "0.0005"), *words)
    assert code == 0
    lines = out.splitlines()
    assert lines[0].startswith(
        "lift: 1 joints, 2.00 kg, hangs from its base; ROS_DOMAIN_ID "
    )
    figures = json.loads(lines[-1])
    assert figures["com_error_mm"] == pytest.approx(0.5)
    assert figures["rate_hz"] == pytest.approx(100, rel=0.01)
    assert figures["mass_kg"] == 2.0
    assert figures["margin_min_mm"] is None
    assert Path(figures["picture"]).is_file()
    assert Path(figures["plot"]).is_file()


@pytest.mark.exhaustive
def test_com_that_is_off_the_truth(run_demo: RunDemo, tmp_path: Path) -> None:
    code, _, errors = run_demo(
        (STAND_IN, "0.002"), "--seconds", "1", "--output", str(tmp_path)
    )
    assert code == 2
    assert errors == "demo: the CoM is up to 2 mm off the truth, 1 allowed\n"


def test_launch_that_dies(run_demo: RunDemo, tmp_path: Path) -> None:
    command = ("print('first'); print('no such package')",)
    code, _, errors = run_demo(command, "--output", str(tmp_path))
    assert code == 2
    assert (
        errors
        == "demo: the launch ended early, its log says:\nfirst\nno such package\n"
    )


def test_no_data(
    run_demo: RunDemo, demo: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "Times", partial(Times, first_message=0.5))
    command = ("import time; print('I wait', flush=True); time.sleep(60)",)
    code, _, errors = run_demo(command, "--output", str(tmp_path))
    assert code == 2
    assert errors.startswith("demo: no message on com for ")
    assert errors.endswith("the launch's log ends with:\nI wait\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--robot", "hop2"],
            "demo: robot 'hop2': unknown, and no URDF's path; valid names: hoap2",
        ),
        (
            ["--robot", "./gone.urdf"],
            "demo: robot './gone.urdf': there is no such file",
        ),
        (["--robot", "{broken}"], "demo: "),
        (["--robot", "hoap2", "--output", "{broken}"], "demo: [Errno"),
    ],
)
def test_wrong_commands(
    demo: ModuleType,
    words: list[str],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture,
) -> None:
    broken = tmp_path / "broken.urdf"
    broken.write_text("<robot")
    assert demo.main([word.replace("{broken}", str(broken)) for word in words]) == 2
    errors = capsys.readouterr().err
    assert errors.startswith(message)
    assert len(errors.splitlines()) == 1


def test_robot_that_only_shares_a_name(
    demo: ModuleType, lift: str, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    other = Path(lift).rename(tmp_path / "hoap2.urdf")
    robot = demo.find_robot(str(other))
    assert robot.config is not None
    robot, config = demo.with_fitting_config(robot, demo.RobotModel.from_file(other))
    assert config is None
    assert (
        "hoap2: not the robot of that name, so it has no feet: "
        in capsys.readouterr().out
    )
    command = demo.launch_command(robot, 1.0)
    assert f"urdf:={other}" in command
    assert "view_robot.launch.xml" in command
    assert "config:=" in command


@pytest.mark.parametrize("seconds", ["0", "nan", "1e9", "soon"])
def test_wrong_seconds(
    demo: ModuleType, seconds: str, capsys: pytest.CaptureFixture
) -> None:
    with pytest.raises(SystemExit, match="2"):
        demo.main(["--robot", "hoap2", "--seconds", seconds])
    assert "--seconds" in capsys.readouterr().err
