"""Listens to a walk: what the gait plans and sees, and the simulator's truth.

Subscribes:
    gait/state (com_msgs/WalkState): every message is recorded.
    gait/markers (visualization_msgs/MarkerArray): where the soles are to be set down.
    ground_truth/com (com_msgs/CenterOfMass), joint_states, /tf (odom -> root link -> walk).
"""

from __future__ import annotations

import math

import numpy as np
from sensor_msgs.msg import JointState
from tf2_msgs.msg import TFMessage
from visualization_msgs.msg import MarkerArray

from com_control.nodes.walk_conversions import walk_state_to_values
from com_demos.live import Rows
from com_demos.nodes.listener import ListeningNode
from com_demos.walk_recording import WalkRecording, WalkSample, walk_rows
from com_model.model import RobotModel
from com_msgs.msg import CenterOfMass, WalkState
from com_ros.conversions import (
    NS_PER_S,
    point_to_numpy,
    points_to_numpy,
    stamp_to_ns,
    transform_to_numpy,
)
from com_ros.joint_input import JointInput

WALK = "walk"
FOOTSTEPS = "footsteps_"
STATES = {
    getattr(WalkState, name): name
    for name in (
        "UNKNOWN",
        "READY",
        "REFUSED",
        "PLANNING",
        "APPROACHING",
        "WALKING",
        "STOPPING",
        "FALLEN",
    )
}
MOVING = (WalkState.APPROACHING, WalkState.WALKING, WalkState.STOPPING)


class WalkMonitor(ListeningNode):
    """Records a walk.

    Args:
        model: of the robot.

    Attributes:
        recording: all that arrived, from the first message on.
        steps: of the walk.
    """

    def __init__(self, model: RobotModel) -> None:
        super().__init__("walk_monitor", "gait/state")
        self.recording = WalkRecording()
        self.steps = 0
        self._root = model.root_link
        self._names = model.joint_names
        self._state = WalkState()
        self._walked = False
        self._began_ns = 0
        self._listen(WalkState, "gait/state", self._on_state)
        self._listen(MarkerArray, "gait/markers", self._on_markers)
        self._listen(CenterOfMass, "ground_truth/com", self._on_truth)
        self._listen(JointState, "joint_states", self._on_joints)
        self._listen(TFMessage, "/tf", self._on_frames)

    @property
    def elapsed(self) -> float:
        """Time since the robot began to move, s."""
        samples = self.recording.samples
        return (samples[-1].stamp_ns - self._began_ns) / NS_PER_S if samples else 0.0

    @property
    def ready(self) -> bool:  # type: ignore[override]
        """Whether the robot is led to its first posture, or walks, or was refused a walk."""
        return self._walked or bool(self.refusal)

    @property
    def ended(self) -> bool:
        """Whether the walk is over, or refused."""
        return self.ready and self._state.state not in MOVING

    @property
    def refusal(self) -> str:
        """Why no walk has begun; "" when one has, or none was asked for."""
        return "" if self._walked else self._state.last_walk

    @property
    def completed(self) -> int:
        """Number of steps that were made."""
        if not self._walked or self._state.state == WalkState.FALLEN:
            return max(self._state.step, 0)
        return self.steps if self._state.step < 0 else self._state.step

    def rows(self) -> Rows:
        """Return what a view shows."""
        samples, msg = self.recording.samples, self._state
        last = samples[-1] if samples else None
        return walk_rows(last, STATES[msg.state], msg.reason, msg.steps, msg.com_error)

    def waiting_for(self, seconds: float) -> str:
        """Return why no walk began."""
        reason = self._state.reason or f"it is {STATES[self._state.state]}"
        return f"the robot does not walk after {seconds:.0f} s: {reason}"

    def _on_state(self, msg: WalkState, _info: dict) -> None:
        if not msg.header.frame_id:
            self._state = msg
            return  # no robot yet
        self._state = msg
        if msg.state in MOVING:
            self._began_ns = self._began_ns or stamp_to_ns(msg.header.stamp)
            self._walked = True
            self.steps, self.recording.duration = msg.steps, msg.duration
        values = walk_state_to_values(msg)
        self.recording.samples.append(
            WalkSample(
                stamp_ns=stamp_to_ns(msg.header.stamp),
                time=msg.time if msg.state in MOVING or self._walked else math.nan,
                step=msg.step,
                com_reference=values.com_reference,
                zmp_reference=values.zmp_reference,
                zmp=values.zmp,
            )
        )

    def _on_markers(self, msg: MarkerArray, _info: dict) -> None:
        for marker in msg.markers:
            if marker.ns.startswith(FOOTSTEPS) and len(marker.points) % 8 == 0:
                corners = points_to_numpy(marker.points)[::2].reshape(-1, 4, 3)
                self.recording.footprints[marker.ns] = corners

    def _on_truth(self, msg: CenterOfMass, _info: dict) -> None:
        self.recording.coms[stamp_to_ns(msg.header.stamp)] = point_to_numpy(msg.position)

    def _on_joints(self, msg: JointState, _info: dict) -> None:
        stamp_ns = stamp_to_ns(msg.header.stamp)
        sample = JointInput(self._names, timeout_s=1.0).update(msg, stamp_ns)
        if sample is not None and not sample.error:
            self.recording.joints[stamp_ns] = np.array(sample.position)

    def _on_frames(self, msg: TFMessage, _info: dict) -> None:
        for transform in msg.transforms:
            stamp_ns, pose = stamp_to_ns(transform.header.stamp), transform.transform
            if transform.child_frame_id == self._root:
                self.recording.roots[stamp_ns] = transform_to_numpy(pose)
            elif transform.child_frame_id == WALK and transform.header.frame_id == self._root:
                self.recording.walk_frames[stamp_ns] = transform_to_numpy(pose)
