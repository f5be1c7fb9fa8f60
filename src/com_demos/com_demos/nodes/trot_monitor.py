"""Listens to a trot: what is published about the trunk, and the simulator's truth.

Subscribes:
    trunk_com (com_msgs/TrunkCom): every message is recorded.
    ground_truth/trunk_com (com_msgs/CenterOfMass): matched with `trunk_com` by stamp.
    ground_reaction (com_msgs/GroundReaction): the feet's forces, for the view.
    gait/stance (com_msgs/GaitPhase): when the trot began, and the shift of the feet.
    imu (sensor_msgs/Imu): roll and pitch.
"""

from __future__ import annotations

import math

import numpy as np
from sensor_msgs.msg import Imu

from com_demos.live import Rows
from com_demos.nodes.listener import ListeningNode
from com_demos.trot_recording import TrunkRecording, TrunkSample
from com_msgs.msg import CenterOfMass, GaitPhase, GroundReaction, TrunkCom
from com_ros.conversions import imu_to_rotation, point_to_numpy, points_to_numpy, stamp_to_ns

SHOWN = 200  # newest samples that a view shows figures of
TILT_PERIOD_NS = 4_000_000  # of recorded attitudes, at least


class TrotMonitor(ListeningNode):
    """Records a trot.

    Args:
        R_imu_root: (3, 3) the IMU's attitude to the root link's.

    Attributes:
        recording: all that arrived, from the first message on.
    """

    def __init__(self, R_imu_root: np.ndarray) -> None:
        super().__init__("trot_monitor", "trunk_com")
        self.recording = TrunkRecording()
        self._R_imu_root = R_imu_root
        self._tilt_ns = 0
        self._lift = math.nan
        self._gait = GaitPhase()
        self._listen(TrunkCom, "trunk_com", self._on_trunk)
        self._listen(CenterOfMass, "ground_truth/trunk_com", self._on_truth)
        self._listen(GroundReaction, "ground_reaction", self._on_forces)
        self._listen(GaitPhase, "gait/stance", self._on_gait)
        self._listen(Imu, "imu", self._on_imu)

    @property
    def elapsed(self) -> float:
        """Time since the robot began to trot, s."""
        return self.recording.elapsed()

    @property
    def ready(self) -> bool:  # type: ignore[override]
        """Whether the robot trots."""
        return self.recording.began_ns > 0

    def rows(self) -> Rows:
        """Return what a view shows."""
        samples = self.recording.samples
        status = STATUS[samples[-1].status] if samples else "UNKNOWN"
        reason = samples[-1].reason if samples else ""
        return self.recording.series(last=SHOWN).rows(status, reason, self._lift)

    def waiting_for(self, seconds: float) -> str:
        """Return why no trot began."""
        reason = self._gait.reason or "nothing on gait/stance says why"
        return f"the robot does not trot after {seconds:.0f} s: {reason}"

    def _on_trunk(self, msg: TrunkCom, _info: dict) -> None:
        variances = np.diag(np.reshape(msg.covariance, (3, 3)))
        sample = TrunkSample(
            stamp_ns=stamp_to_ns(msg.header.stamp),
            status=msg.status,
            reason=msg.reason,
            values=np.append(point_to_numpy(msg.position), msg.mass),
            std=np.append(np.sqrt(variances), msg.mass_std),
            noticed_ns=stamp_to_ns(msg.payload_changed_at),
        )
        self.recording.samples.append(sample)

    def _on_truth(self, msg: CenterOfMass, _info: dict) -> None:
        values = np.append(point_to_numpy(msg.position), msg.mass)
        self.recording.add_truth(stamp_to_ns(msg.header.stamp), values)

    def _on_forces(self, msg: GroundReaction, _info: dict) -> None:
        self._lift = float(points_to_numpy(msg.forces)[:, 2].sum())

    def _on_gait(self, msg: GaitPhase, _info: dict) -> None:
        self._gait = msg
        trots = msg.state == GaitPhase.TROTTING
        stamp_ns = stamp_to_ns(msg.header.stamp)
        self.recording.add_gait(stamp_ns, np.array(msg.com_shift), msg.saturated, trots)

    def _on_imu(self, msg: Imu, _info: dict) -> None:
        stamp_ns = stamp_to_ns(msg.header.stamp)
        if stamp_ns - self._tilt_ns < TILT_PERIOD_NS:
            return
        self._tilt_ns = stamp_ns
        R = imu_to_rotation(msg) @ self._R_imu_root
        roll, pitch = math.atan2(R[2, 1], R[2, 2]), -math.asin(max(-1.0, min(1.0, R[2, 0])))
        self.recording.add_tilt(stamp_ns, roll, pitch)


STATUS = {
    TrunkCom.STATUS_UNKNOWN: "UNKNOWN",
    TrunkCom.STATUS_ESTIMATING: "ESTIMATING",
    TrunkCom.STATUS_CONVERGED: "CONVERGED",
    TrunkCom.STATUS_DEGRADED: "DEGRADED",
}
