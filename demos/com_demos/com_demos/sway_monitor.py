"""Records a robot whose CoM and SESC are published, with the truth of the simulation.

Subscribes:
    com (com_msgs/CenterOfMass): every message is recorded, with the time of its receipt.
    ground_truth/com (com_msgs/CenterOfMass): matched with `com` by stamp.
    sesc (com_msgs/SescChain), joint_states (sensor_msgs/JointState): matched with `com` by stamp
        into the snapshots that pictures are drawn from.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sensor_msgs.msg import JointState

from com_demos.background import ListeningNode
from com_demos.live import WAITING, Rows, millimetres
from com_demos.scene import Snapshot
from com_estimation.nodes.com_output import center_of_mass_to_numpy
from com_model import RobotModel
from com_msgs.msg import CenterOfMass, SescChain
from com_ros.conversions import NS_PER_S, points_to_numpy, stamp_to_ns
from com_ros.joint_input import JointInput


@dataclass(frozen=True)
class Series:
    """A run as arrays, one row per sample on `com`."""

    time: np.ndarray  # (t,) s since the first stamp
    com: np.ndarray  # (t, 3) m
    truth: np.ndarray  # (t, 3) m, of the same stamp; NaN where none arrived
    margin: np.ndarray  # (t,) m
    latency: (
        np.ndarray
    )  # (t,) s, from the receipt of joint_states to that of com; NaN: not known

    @property
    def error(self) -> np.ndarray:
        """Return the distances (t,) between com and truth, m."""
        return np.linalg.norm(self.com - self.truth, axis=1)

    @property
    def rate_hz(self) -> float:
        """Return the mean number of samples per second; NaN for fewer than two."""
        span = self.time[-1] - self.time[0] if len(self.time) > 1 else 0.0
        return (len(self.time) - 1) / span if span > 0 else math.nan

    def summary(self) -> dict[str, float | int | None]:
        """Return the figures of the run; None for those that are not known."""
        error, margin, latency = self.error, self.margin, self.latency
        figures = {
            "seconds": round(self.time[-1] - self.time[0], 3)
            if len(self.time)
            else 0.0,
            "messages": len(self.time),
            "rate_hz": round(self.rate_hz, 1),
            "p50_ms": round(1000 * _over(np.median, latency), 3),
            "p99_ms": round(
                1000 * _over(lambda all: np.percentile(all, 99), latency), 3
            ),
            "com_error_mm": float(f"{1000 * _over(np.mean, error):.3g}"),
            "com_error_max_mm": float(f"{1000 * _over(np.max, error):.3g}"),
            "truths_matched": int(np.isfinite(error).sum()),
            "margin_min_mm": round(1000 * _over(np.min, margin), 2),
        }
        return {
            name: value if math.isfinite(value) else None
            for name, value in figures.items()
        }

    def rows(self) -> Rows:
        """Return what a view shows of the newest sample."""
        if not len(self.time):
            return [(WAITING, "for the first message on com")]
        known = self.latency[np.isfinite(self.latency)]
        p50, p99 = (
            1000 * np.percentile(known, [50, 99])
            if len(known)
            else (math.nan, math.nan)
        )
        margin = 1000 * self.margin[-1]
        errors = self.error[np.isfinite(self.error)]
        return [
            ("CoM", millimetres(self.com[-1])),
            (
                "margin",
                f"{margin:.2f} mm" if math.isfinite(margin) else "no feet known",
            ),
            ("rate", f"{self.rate_hz:.0f} Hz"),
            ("latency", f"{p50:.2f} ms, 99 %: {p99:.2f} ms"),
            (
                "error",
                f"{1000 * errors.max():.1e} mm" if len(errors) else "no truth yet",
            ),
        ]


class Recording:
    """Collects samples of `com`, and the true CoM (x, y, z) m, by their stamps, ns."""

    def __init__(self) -> None:
        # stamp, ns; receipt, ns; x, y, z in the root link's frame, m; margin, m
        self.samples: list[tuple[int, int, float, float, float, float]] = []
        self.truths: dict[int, tuple[float, float, float]] = {}
        self.joints: dict[int, int] = {}  # receipt of joint_states by their stamp, ns

    def series(self, last: int = 0, until: float = math.inf) -> Series:
        """Return all samples, or only the last few, as arrays; until a time of the run, s."""
        first = self.samples[0][0] if self.samples else 0
        rows = [
            row for row in self.samples[-last:] if row[0] - first <= until * NS_PER_S
        ]
        values = np.array([row[1:] for row in rows], dtype=float).reshape(-1, 5)
        truths = [self.truths.get(row[0], (math.nan,) * 3) for row in rows]
        latency = [
            (row[1] - self.joints.get(row[0], math.nan)) / NS_PER_S for row in rows
        ]
        return Series(
            time=np.array([row[0] - first for row in rows]) / NS_PER_S,
            com=values[:, 1:4],
            truth=np.array(truths, dtype=float).reshape(-1, 3),
            margin=values[:, 4],
            latency=np.array(latency, dtype=float),
        )


def _over(function: Callable[[np.ndarray], float], values: np.ndarray) -> float:
    """Apply a function to the finite values; NaN if there is none."""
    finite = values[np.isfinite(values)]
    return float(function(finite)) if len(finite) else math.nan


SHOWN = 500  # newest samples that a view shows figures of
STORED = 1000  # recent instants of which a message may still be missing


class SwayMonitor(ListeningNode):
    """Records a run of one robot.

    Attributes:
        recording: every known CoM, with its truth.
        snapshots: the instants for which all of CoM, chain and joint positions arrived.
        stamps: theirs, ns.
        unknown: number of messages without a known CoM.
        reason: what the last of those gave as the reason.
    """

    def __init__(self, model: RobotModel, name: str = "sway_monitor") -> None:
        super().__init__(name, "com")
        self.model = model
        self.start_over()
        self._parts: dict[
            int, dict[type, Any]
        ] = {}  # messages by their stamp, ns, and type
        self._listen(CenterOfMass, "com", self._on_com)
        self._listen(CenterOfMass, "ground_truth/com", self._on_truth)
        self._listen(JointState, "joint_states", self._on_joints)
        self._listen(SescChain, "sesc", self._gather)

    def start_over(self) -> None:
        """Forget what has been recorded."""
        self.recording = Recording()
        self.snapshots: list[Snapshot] = []
        self.stamps: list[int] = []
        self.unknown = 0
        self.reason = ""

    @property
    def ready(self) -> bool:  # type: ignore[override]
        """Whether all topics arrive; a late one would leave nothing to compare or to draw."""
        return bool(self.snapshots and self.recording.truths)

    def waiting_for(self, seconds: float) -> str:
        """Return which topics do not arrive."""
        arrived = {"ground_truth/com": self.recording.truths, "sesc": self.snapshots}
        missing = [topic for topic, messages in arrived.items() if not messages]
        return f"no message on {' and '.join(missing)} after {seconds:.0f} s"

    @property
    def elapsed(self) -> float:
        """Time between the first and the last CoM, s."""
        samples = self.recording.samples
        return (samples[-1][0] - samples[0][0]) / NS_PER_S if samples else 0.0

    def rows(self) -> Rows:
        """Return what a view shows."""
        return self.recording.series(last=SHOWN).rows()

    def problem(self, seconds: float) -> str:
        """Return why no CoM came for a time."""
        return (
            f"the CoM is not known: {self.reason}"
            if self.unknown
            else super().problem(seconds)
        )

    def _on_com(self, msg: CenterOfMass, info: dict) -> None:
        if msg.status == CenterOfMass.STATUS_UNKNOWN:
            self.unknown += 1
            self.reason = msg.reason
            return
        stamp_ns = stamp_to_ns(msg.header.stamp)
        at, received_ns = msg.position, info["received_timestamp"]
        self.recording.samples.append(
            (stamp_ns, received_ns, at.x, at.y, at.z, msg.support_margin)
        )
        self._gather(msg, info)

    def _on_truth(self, msg: CenterOfMass, _info: dict) -> None:
        com = (msg.position.x, msg.position.y, msg.position.z)
        self.recording.truths[stamp_to_ns(msg.header.stamp)] = com

    def _on_joints(self, msg: JointState, info: dict) -> None:
        self.recording.joints[stamp_to_ns(msg.header.stamp)] = info[
            "received_timestamp"
        ]
        self._gather(msg, info)

    def _gather(self, msg: Any, _info: dict) -> None:
        """Make a snapshot when the last of CoM, joints and chain of one stamp has arrived."""
        stamp_ns = stamp_to_ns(msg.header.stamp)
        parts = self._parts.setdefault(stamp_ns, {})
        parts[type(msg)] = msg
        if len(parts) < 3:
            if len(self._parts) > STORED:
                del self._parts[next(iter(self._parts))]
            return
        del self._parts[stamp_ns]
        sample = JointInput(self.model.joint_names, timeout_s=1.0).update(
            parts[JointState], stamp_ns
        )
        if sample is None or sample.error:
            return
        values = center_of_mass_to_numpy(parts[CenterOfMass])
        self.stamps.append(stamp_ns)
        self.snapshots.append(
            Snapshot(
                q=sample.position,
                com=values.position,
                projection=values.projection,
                gravity=values.gravity,
                chain=points_to_numpy(parts[SescChain].points),
                contacts=values.contacts,
                margin=values.margin,
                on_feet=values.ground == CenterOfMass.GROUND_FEET,
            )
        )
