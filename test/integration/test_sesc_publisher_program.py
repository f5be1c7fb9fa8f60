"""The installed program: it follows joint_states, ends when told to, and says why it cannot run."""

import signal
import subprocess
import time
from pathlib import Path

import pytest
import yaml
from ament_index_python.packages import get_package_prefix
from diagnostic_msgs.msg import DiagnosticArray
from rosgraph_msgs.msg import Clock

from com_msgs.msg import CenterOfMass
from com_ros.conversions import ns_to_stamp, numpy_to_joint_state

PROGRAM = (
    Path(get_package_prefix("com_estimation")) / "lib/com_estimation/sesc_publisher"
)
ROOT = Path(__file__).parents[2]
NAMES = ["l_hip", "l_knee", "r_hip", "r_knee"]


@pytest.fixture
def run_node(tmp_path):
    """run_node(name=value, ...) starts the program with parameters."""
    processes = []

    def start(**parameters):
        file = tmp_path / "parameters.yaml"
        file.write_text(yaml.safe_dump({"/**": {"ros__parameters": parameters}}))
        command = [PROGRAM, "--ros-args", "--params-file", file]
        processes.append(subprocess.Popen(command, stderr=subprocess.PIPE, text=True))
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.wait()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_cleanly(run_node, walker, number):
    process = run_node(robot_description=walker)
    assert (
        "model 'walker' from parameter robot_description" in process.stderr.readline()
    )
    assert "no joint_states yet" in process.stderr.readline()  # it spins
    process.send_signal(number)
    _, err = process.communicate(timeout=200)
    assert process.returncode == 0, err
    assert "Traceback" not in err


@pytest.mark.parametrize("after", [0.0, 0.3, 0.6, 1.0])
def test_ctrl_c_while_it_starts(run_node, walker, after):
    """Also while modules are imported: no traceback."""
    process = run_node(robot_description=walker)
    maps = Path(f"/proc/{process.pid}/maps")
    while (
        process.poll() is None and "numpy" not in maps.read_text()
    ):  # before is Python's own
        time.sleep(0.01)
    time.sleep(after)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=200)
    assert process.returncode in {0, 130}, err
    assert "Traceback" not in err
    assert "FATAL" not in err


def test_ctrl_c_in_a_command():
    """No traceback either."""
    program = Path(get_package_prefix("com_demos")) / "lib/com_demos/workspace"
    hoap2 = ROOT / "src/robot_descriptions/urdf/hoap2.urdf"
    process = subprocess.Popen(
        [program, "--robot", hoap2], stderr=subprocess.PIPE, text=True
    )
    maps = Path(f"/proc/{process.pid}/maps")
    while process.poll() is None and "numpy" not in maps.read_text():
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=200)
    assert process.returncode == 130, err
    assert "Traceback" not in err


def test_help():
    done = subprocess.run(
        [PROGRAM, "--help"], capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0
    assert done.stdout.startswith("usage: ros2 run ")
    assert "robot_description" in done.stdout


def test_it_says_in_one_line_why_it_cannot_start(run_node, tmp_path):
    process = run_node(robot_config=str(tmp_path / "missing.yaml"))
    _, err = process.communicate(timeout=200)
    assert process.returncode == 1
    assert "missing.yaml" in err
    assert "Traceback" not in err
    assert len(err.strip().splitlines()) == 1


@pytest.mark.parametrize("use_sim_time", [False, True])
def test_it_answers_each_message_with_its_stamp(world, run_node, walker, use_sim_time):
    com = world.collect(CenterOfMass, "com", 1000)
    health = world.collect(DiagnosticArray, "/diagnostics")
    run_node(robot_description=walker, use_sim_time=use_sim_time, joint_timeout=30.0)
    joints = numpy_to_joint_state(NAMES, [0.0] * 4, stamp=ns_to_stamp(1))
    world.spin_until(lambda: (world.send("joint_states", joints), com)[1], "com")
    world.spin_until(
        lambda: health, "diagnostics"
    )  # so timers run when simulated time stands
    clock = world.publisher(Clock, "/clock") if use_sim_time else None
    for step in range(1, 301):
        joints.header.stamp = ns_to_stamp(step * 1_000_000)
        if clock is not None:
            clock.publish(Clock(clock=joints.header.stamp))
        world.send("joint_states", joints)
        world.spin_for(0.002)
    last = ns_to_stamp(300_000_000)
    world.spin_until(lambda: com[-1].header.stamp == last, "the last com")
    stamps = [
        m.header.stamp.nanosec for m in com if m.header.stamp.nanosec >= 1_000_000
    ]
    assert stamps == [step * 1_000_000 for step in range(1, 301)]
    assert all(m.status == CenterOfMass.STATUS_OK for m in com[-300:])
