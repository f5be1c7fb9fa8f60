"""Follows an identification by a tour of postures from its start to its result.

Subscribes:
    identification/state (com_msgs/IdentificationState): how many postures there are.
    identification/result (com_msgs/IdentificationResult): the latest one is kept.
    identification/model_check (com_msgs/ModelCheck): the model against the feet.
    posture_tour/status (std_msgs/String): what is done.
"""

import math
import time
from pathlib import Path

from std_msgs.msg import String

from com_demos.background import ListeningNode
from com_demos.exceptions import RunError
from com_demos.live import WAITING, Rows
from com_msgs.msg import IdentificationResult, IdentificationState, ModelCheck
from com_ros import qos
from com_ros.conversions import NS_PER_S, stamp_to_ns

LONGEST = 3600.0  # s, of a tour
ENDS = "the tour ends"  # begins posture_tour's last status when it fails
WAITS = "waits for "  # begins what it says before the tour
LETTERS = 70  # of a row


class IdentifyMonitor(ListeningNode):
    """Follows an identification from its start to its result.

    The latest `result` is None before; `failure`, why the tour ended early, is empty if it did not;
    `suspicion` is what the feet said against the URDF while the robot stood.
    """

    follows = False

    def __init__(self) -> None:
        super().__init__("identify_monitor", "identification/state")
        self._count = 0
        self._began_ns = 0
        self._job_began = 0.0
        self.result: IdentificationResult | None = None
        self.failure = self.suspicion = ""
        self._state = IdentificationState()
        self._status = ""
        self._offset = math.nan
        self._listen(IdentificationState, "identification/state", self._on_state)
        self._listen(ModelCheck, "identification/model_check", self._on_check)
        self._listen(
            IdentificationResult, "identification/result", self._on_result, qos.LATCHED
        )
        self._listen(String, "posture_tour/status", self._on_status, qos.LATCHED)

    @property
    def received(self) -> int:
        """Number of messages on identification/state."""
        return self._count

    @property
    def elapsed(self) -> float:
        """Time since the first state, s."""
        stamp_ns = stamp_to_ns(self._state.header.stamp)
        return (stamp_ns - self._began_ns) / NS_PER_S if self._began_ns else 0.0

    @property
    def ready(self) -> bool:  # type: ignore[override]
        """Whether the tour has begun."""
        return bool(self._status) and not self._status.startswith(WAITS)

    @property
    def ended(self) -> bool:  # type: ignore[override]
        """Whether the URDF is written, or never will be."""
        return bool(self.failure) or "postures captured; " in self._status

    def rows(self) -> Rows:
        """Return what a view shows."""
        if not self.received:
            return [(WAITING, "for com_identification")]
        state = self._state
        lasts = time.monotonic() - self._job_began
        progress = "" if math.isnan(state.progress) else f"{state.progress:.0%} "
        job = (
            f"{state.job}: {progress}{state.step}, {lasts:.0f} s"
            if state.job
            else "nothing"
        )
        offset = f"{1000 * self._offset:.2f} mm off the feet's"
        return [
            ("postures", str(state.postures)),
            ("model's CoM", offset if math.isfinite(self._offset) else "moves"),
            ("computes", job[:LETTERS]),
            ("tour", self._status[:LETTERS]),
        ]

    def problem(self, seconds: float) -> str:
        """Return why nothing came for a time."""
        if not self.received:
            return super().problem(seconds)
        return f"nothing new from posture_tour for {seconds:.0f} s; its status: {self._status}"

    def _on_state(self, msg: IdentificationState, _info: dict) -> None:
        self._count += 1
        if msg.job != self._state.job:
            self._job_began = time.monotonic()
        self._state = msg
        self._began_ns = self._began_ns or stamp_to_ns(msg.header.stamp)

    def _on_check(self, msg: ModelCheck, _info: dict) -> None:
        off = msg.difference
        self._offset = math.hypot(off.x, off.y, off.z)
        if msg.verdict > ModelCheck.CONSISTENT:
            self.suspicion = self.suspicion or msg.reason

    def _on_result(self, msg: IdentificationResult, _info: dict) -> None:
        if msg.status != IdentificationResult.STATUS_UNKNOWN:
            self.result = msg

    def _on_status(self, msg: String, _info: dict) -> None:
        self._status = msg.data
        if msg.data.startswith(ENDS):
            self.failure = msg.data


def corrected_urdf(folder: Path) -> Path:
    """Return the URDF that com_identification has written; RunError where there is none."""
    written = [path for path in folder.glob("*.urdf") if path.name != "truth.urdf"]
    if len(written) != 1:
        raise RunError(
            f"expected one URDF to be written into {folder}, found {len(written)}"
        )
    return written[0]
