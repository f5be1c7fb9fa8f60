"""motion.launch.xml plays the sample, and a pipe moves joints, as a user starts them."""

import subprocess
import sys
from pathlib import Path

import numpy as np
from sensor_msgs.msg import Imu, JointState
from std_srvs.srv import Trigger

from com_control.motion.csv_file import read_motion
from com_control.motion.layout import MotionLayout
from com_model import RobotConfig, RobotModel
from com_msgs.msg import MotionState
from com_ros.conversions import imu_to_rotation, stamp_to_ns

SHARE = Path(__file__).resolve().parents[2] / "src" / "robot_descriptions"
CONFIG, LAYOUT = SHARE / "config" / "hoap2.yaml", SHARE / "config" / "motion" / "hoap2.yaml"
SAMPLE = SHARE / "motions" / "hoap2_squat_and_wave.csv"
QUIET = ["rviz:=false", "sesc:=false"]
FOLLOWS, FOLLOWS_LATE = 0.02, 0.2  # rad, 19 of 20 samples; the rest on a machine that stalls
HORIZON = 0.05  # s, by which the player's targets are ahead


def layout():
    config = RobotConfig.from_file(CONFIG)
    return MotionLayout.from_file(LAYOUT, config, RobotModel.from_file(config.urdf))


def position(msg, joint):
    return msg.position[msg.name.index(joint)]


def test_the_sample_is_played_and_the_joints_follow(launch, ear):
    states = ear.listen(MotionState, "motion/state")
    joints = ear.listen(JointState, "joint_states")
    attitudes = ear.listen(Imu, "imu")
    run = launch("com_bringup", "motion.launch.xml", *QUIET, "play:=true")

    ear.until(lambda: states and states[-1].state == MotionState.PLAYING, "motion")
    ear.until(lambda: states[-1].state == MotionState.FINISHED, "end of the motion")
    sample = read_motion(SAMPLE, layout())
    played = {stamp_to_ns(s.header.stamp): s for s in states if s.state == MotionState.PLAYING}
    assert all(s.reason == "" for s in played.values())
    assert {s.rows for s in played.values()} == {len(sample.times)}
    received = {stamp_to_ns(m.header.stamp): m for m in joints}
    both = sorted(set(played) & set(received))
    assert len(both) > 200
    for joint in ("LLEG_JOINT4", "RARM_JOINT2", "RARM_JOINT4"):
        column = sample.positions[:, sample.joints.index(joint)]
        gains = RobotConfig.from_file(CONFIG).servo.gains(joint)
        late = HORIZON + gains.damping / gains.stiffness  # of a joint, behind the state's time
        times = [played[stamp].time - late for stamp in both]
        measured = np.array([position(received[stamp], joint) for stamp in both])
        error = np.abs(measured - np.interp(times, sample.times, column))
        assert np.ptp(measured) > 0.9 * np.ptp(column)
        assert np.quantile(error, 0.95) < FOLLOWS, joint
        assert error.max() < FOLLOWS_LATE, joint
    upright = [imu_to_rotation(m)[2, 2] for m in attitudes]
    assert min(upright) > 0.99

    client = ear.node.create_client(Trigger, "motion_player/play")
    ear.until(client.service_is_ready, "service")
    again = client.call_async(Trigger.Request())
    ear.until(again.done, "answer")
    assert again.result().success
    ear.until(lambda: states[-1].state == MotionState.PLAYING, "second time")
    assert run.stop() == 0, run.output
    assert "Traceback" not in run.output


def hoap2moves(script, **parameters):
    """Run the program with a script on its standard input."""
    words = [w for name, value in parameters.items() for w in ("-p", f"{name}:={value}")]
    return subprocess.run(
        [sys.executable, "-m", "com_control.nodes.hoap2moves", "--ros-args", *words],
        input=script,
        capture_output=True,
        text=True,
        timeout=120,
    )


SCRIPT = """\
# bow and bend both knees, together
unit deg
speed 30
set BODY_JOINT1 15  RARM_JOINT2 -40deg
show BODY_JOINT1
by BODY_JOINT1 -5deg
save {folder}/bow.csv
BODY_JOINT1 200
set BODY_JOINT1 0
"""


def test_joints_are_moved_through_a_pipe(launch, ear, tmp_path):
    joints = ear.listen(JointState, "joint_states")
    launch("com_bringup", "hoap2.launch.xml", *QUIET, "publish_rate_hz:=200.0")
    ear.until(lambda: joints, "joints")
    done = hoap2moves(
        SCRIPT.format(folder=tmp_path),
        robot_config=CONFIG,
        motion_layout=LAYOUT,
        joint_timeout=5.0,
        patience=30.0,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[:2] == ["numbers without a unit are in deg", "speed 30 % of what the joints can"]
    assert lines[2].startswith("moves for ")
    assert lines[3] == "there"
    assert abs(float(lines[5].split()[3]) - 15.0) < 3.0
    assert lines[-2].endswith("bow.csv written, in counts")
    assert lines[-1].startswith("hoap2moves: BODY_JOINT1: 3.491 rad (200.00 deg) is beyond")
    saved = read_motion(tmp_path / "bow.csv", layout())
    row = dict(zip(saved.joints, np.degrees(saved.positions[0]), strict=True))
    assert abs(row["BODY_JOINT1"] - 10.0) < 3.0
    assert abs(row["RARM_JOINT2"] + 40.0) < 3.0
    ended = ear.node.get_clock().now().nanoseconds
    ear.until(lambda: stamp_to_ns(joints[-1].header.stamp) > ended, "joints after the script")
    assert abs(np.degrees(position(joints[-1], "BODY_JOINT1")) - 10.0) < 3.0


def test_a_script_without_a_robot_ends_and_says_why(domain):
    done = hoap2moves("set BODY_JOINT1 0.1\n", robot_config=CONFIG, patience=0.5)
    assert done.returncode == 1, done.stderr
    assert done.stdout == "hoap2moves: no joint_states yet: start the robot's driver\n"
    done = hoap2moves("show\n")
    assert done.returncode == 1
    assert "'robot_config' is '': give the path" in done.stderr
    assert "Traceback" not in done.stderr
