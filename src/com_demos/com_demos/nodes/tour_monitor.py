"""Listens to an identification: what posture_tour does and what com_identification finds.

Subscribes:
    identification/state (com_msgs/IdentificationState): how many postures there are.
    identification/result (com_msgs/IdentificationResult): the latest one is kept.
    identification/model_check (com_msgs/ModelCheck): the model against the feet.
    posture_tour/status (std_msgs/String): what is done.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from std_msgs.msg import String

from com_demos.live import WAITING, Rows
from com_demos.nodes.listener import ListeningNode
from com_msgs.msg import IdentificationResult, IdentificationState, ModelCheck
from com_ros import qos

ENDS = "the tour ends"  # begins posture_tour's last word when it fails
WAITS = "waits for "  # begins what it says before the tour
LONGEST = 70  # letters


@dataclass(frozen=True)
class TourView:
    """What a view of an identification shows.

    Attributes:
        postures: captured so far.
        status: what is done.
        job: what is computed, and how far that is.
        offset: m, of the model's CoM from what the feet say, now; NaN if not known.
        heard: whether anything was.
    """

    postures: int
    status: str
    job: str
    offset: float
    heard: bool


class TourMonitor(ListeningNode):
    """Hears an identification from its start to its result.

    Attributes:
        result: the latest one; None before.
        failure: why the tour ended early; empty if it did not.
    """

    def __init__(self) -> None:
        super().__init__("tour_monitor")
        self.heard = 0
        self.result: IdentificationResult | None = None
        self.failure = ""
        self._state = IdentificationState()
        self._status = ""
        self._offset = math.nan
        self._listen(IdentificationState, "identification/state", self._on_state)
        self._listen(ModelCheck, "identification/model_check", self._on_check)
        self._listen(IdentificationResult, "identification/result", self._on_result, qos.LATCHED)
        self._listen(String, "posture_tour/status", self._on_status, qos.LATCHED)

    @property
    def ready(self) -> bool:
        """Whether the tour has begun."""
        return bool(self._status) and not self._status.startswith(WAITS)

    @property
    def done(self) -> bool:
        """Whether the URDF is written, or never will be."""
        return bool(self.failure) or "postures captured; " in self._status

    def start_over(self) -> None:
        """Keep everything: the tour is heard from its start."""

    def newest(self) -> TourView:
        """Return what a view shows."""
        state = self._state
        job = f"{state.job}: {state.progress:.0%} {state.step}" if state.job else ""
        return TourView(state.postures, self._status, job, self._offset, self.heard > 0)

    def complaint(self, seconds: float) -> str:
        """Say why nothing came for a time."""
        if not self.heard:
            return f"no message on identification/state for {seconds:.0f} s"
        return f"nothing new from posture_tour for {seconds:.0f} s; it said: {self._status}"

    def _on_state(self, msg: IdentificationState, _info: dict) -> None:
        self.heard += 1
        self._state = msg

    def _on_check(self, msg: ModelCheck, _info: dict) -> None:
        off = msg.difference
        self._offset = math.hypot(off.x, off.y, off.z)

    def _on_result(self, msg: IdentificationResult, _info: dict) -> None:
        if msg.status != IdentificationResult.STATUS_UNKNOWN:
            self.result = msg

    def _on_status(self, msg: String, _info: dict) -> None:
        self._status = msg.data
        if msg.data.startswith(ENDS):
            self.failure = msg.data


def tour_rows(view: TourView) -> Rows:
    """Return what is shown: names and values with their units."""
    if not view.heard:
        return [(WAITING, "for com_identification")]
    known = math.isfinite(view.offset)
    return [
        ("postures", str(view.postures)),
        ("model's CoM", f"{1000 * view.offset:.2f} mm off the feet's" if known else "moves"),
        ("computes", view.job[:LONGEST] or "nothing"),
        ("tour", view.status[:LONGEST]),
    ]
