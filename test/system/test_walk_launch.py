"""itu_biped.launch.xml end to end over DDS: six steps, with the true CoM where it is to be."""

import numpy as np
import pytest
from rclpy.action import ActionClient
from sensor_msgs.msg import JointState
from tf2_msgs.msg import TFMessage
from visualization_msgs.msg import MarkerArray

from com_demos.walk_demo import WalkRecording
from com_msgs.action import Walk
from com_msgs.msg import CenterOfMass, WalkGoal, WalkState
from com_ros.conversions import point_to_numpy, stamp_to_ns, transform_to_numpy

MEAN, MOST = 0.010, 0.020  # m, of the true CoM's distance to where it is to be
QUIET = ["rviz:=false", "sesc:=false", "publish_rate_hz:=100", "real_time_factor:=0.0"]
QUIET += ["rate_hz:=100.0"]
LOCKSTEP = ["use_sim_time:=true", "lockstep:=true", "input_timeout:=60.0"]


def recorded(states, coms, frames, joints):
    """All that was received, with the truth, as a walk."""
    recording = WalkRecording()
    for msg in states:
        recording.add(msg, msg.time)
        if msg.state == WalkState.WALKING:
            recording.duration = msg.duration
    for msg in coms:
        recording.coms[stamp_to_ns(msg.header.stamp)] = point_to_numpy(msg.position)
    for msg in joints:
        recording.joints[stamp_to_ns(msg.header.stamp)] = np.array(msg.position)
    for transform in (t for msg in frames for t in msg.transforms):
        stamp_ns = stamp_to_ns(transform.header.stamp)
        poses = {"base_link": recording.roots, "walk": recording.walk_frames}
        poses[transform.child_frame_id][stamp_ns] = transform_to_numpy(
            transform.transform
        )
    return recording.series()


def walked(series):
    """The walk's figures, which must hold whatever the machine does meanwhile."""
    figures = series.summary()
    assert not figures["fell"], figures
    assert figures["truths_matched"] > 60, (
        figures
    )  # some are lost where the machine is busy
    assert np.diff(series.truth.time).max() < 2.0, figures
    assert figures["com_error_mean_m"] < MEAN, figures
    assert figures["com_error_max_m"] < MOST, figures


@pytest.mark.exhaustive
def test_the_itu_biped_walks_six_steps_and_then_by_a_goal(launch, ear):
    states = ear.listen(WalkState, "gait/state")
    received = (
        states,
        ear.listen(CenterOfMass, "ground_truth/com"),
        ear.listen(TFMessage, "/tf"),
        ear.listen(JointState, "joint_states"),
    )
    markers = ear.listen(MarkerArray, "gait/markers")
    run = launch("com_bringup", "itu_biped.launch.xml", *QUIET, *LOCKSTEP, "walk:=true")

    def walks():
        return [s for s in states if s.state == WalkState.WALKING]

    ear.until(lambda: states, "state")
    ear.until(lambda: states[-1].state >= WalkState.PLANNING, "plan")
    ear.until(walks, "walk")  # a first start compiles kernels
    ear.until(lambda: states[-1].state == WalkState.READY, "end of the walk")
    steps = [
        s.step for s in walks() if s.step >= 0
    ]  # -1: before the first or after the last
    assert steps == sorted(steps)
    assert (
        {4, 5} <= set(steps) <= set(range(6))
    )  # a busy test misses messages, or connects late
    first = recorded(*(list(messages) for messages in received))
    if len(
        first.truth.time
    ):  # what came before the walk may be lost while the ear connects
        walked(first)
    assert {"footsteps_left", "footsteps_right"} <= {
        m.ns for msg in markers for m in msg.markers
    }

    client = ActionClient(ear.node, Walk, "walk")
    ear.until(client.server_is_ready, "action")
    for messages in received:
        messages.clear()
    goal = WalkGoal(steps=[2], step_length=[-0.1], step_time=[0.8])
    asked = client.send_goal_async(Walk.Goal(goal=goal))
    ear.until(asked.done, "goal")
    result = asked.result().get_result_async()
    ear.until(result.done, "result")
    assert result.result().result.completed, result.result().result.reason
    assert result.result().result.steps == 2
    ear.until(lambda: states[-1].com_reference.x < -0.09, "CoM further back")
    walked(recorded(*(list(messages) for messages in received)))

    assert run.stop() == 0, run.output
    assert run.processes() == {}
    assert "Traceback" not in run.output
