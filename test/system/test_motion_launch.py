"""motion.launch.xml plays the sample, as a user starts it."""

from pathlib import Path

import numpy as np
import pytest
from sensor_msgs.msg import Imu, JointState
from std_srvs.srv import Trigger

from com_control.motion.files import read_motion
from com_control.motion.motion import MotionLayout
from com_model import RobotConfig, RobotModel
from com_msgs.msg import MotionState
from com_ros.conversions import imu_to_rotation, stamp_to_ns

SHARE = Path(__file__).resolve().parents[2] / "src" / "robot_descriptions"
CONFIG, LAYOUT = (
    SHARE / "config" / "hoap2.yaml",
    SHARE / "config" / "motion" / "hoap2.yaml",
)
SAMPLE = SHARE / "motions" / "hoap2_squat_and_wave.csv"
QUIET = ["rviz:=false", "sesc:=false"]
# The simulation waits for the player: on a busy machine late targets would end the motion.
LOCKSTEP = ["lockstep:=true", "lockstep_nodes:=['motion_player']", "use_sim_time:=true"]
LOCKSTEP.append("input_timeout:=60.0")
# rad, 19 of 20 samples; the rest on a machine that stalls
FOLLOWS, FOLLOWS_LATE = 0.02, 0.2
HORIZON = 0.05  # s, by which the player's targets are ahead


def layout():
    config = RobotConfig.from_file(CONFIG)
    return MotionLayout.from_file(LAYOUT, config, RobotModel.from_file(config.urdf))


def position(msg, joint):
    return msg.position[msg.name.index(joint)]


@pytest.mark.exhaustive
def test_the_sample_is_played_and_the_joints_follow(launch, ear):
    states = ear.listen(MotionState, "motion/state")
    joints = ear.listen(JointState, "joint_states")
    attitudes = ear.listen(Imu, "imu")
    run = launch("com_bringup", "motion.launch.xml", *QUIET, *LOCKSTEP, "play:=true")

    ear.until(lambda: states and states[-1].state == MotionState.PLAYING, "motion")
    ear.until(lambda: states[-1].state == MotionState.FINISHED, "end of the motion")
    sample = read_motion(SAMPLE, layout())
    played = {
        stamp_to_ns(s.header.stamp): s for s in states if s.state == MotionState.PLAYING
    }
    assert all(s.reason == "" for s in played.values())
    assert {s.rows for s in played.values()} == {len(sample.times)}
    received = {stamp_to_ns(m.header.stamp): m for m in joints}
    both = sorted(set(played) & set(received))
    assert len(both) > 200
    for joint in ("LLEG_JOINT4", "RARM_JOINT2", "RARM_JOINT4"):
        column = sample.positions[:, sample.joints.index(joint)]
        gains = RobotConfig.from_file(CONFIG).servo.gains(joint)
        # of a joint, behind the state's time
        late = HORIZON + gains.damping / gains.stiffness
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
