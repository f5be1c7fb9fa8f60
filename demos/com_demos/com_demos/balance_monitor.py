"""Records a robot that leans to the edge of its soles, by the CoM that it believes in.

Subscribes:
    com, ground_truth/com, sesc, joint_states: see com_demos.sway_monitor.
    balance/state (com_msgs/BalanceState): whether it balances or has fallen.
"""

from dataclasses import dataclass

import numpy as np

from com_demos.live import Rows
from com_demos.sway_monitor import SwayMonitor
from com_model import RobotConfig, RobotModel, SupportPolygon, link_pose
from com_model.arrays import Array
from com_msgs.msg import BalanceState
from com_ros.conversions import NS_PER_S, constant_name, stamp_to_ns

LEAN_TIME = 4.5
"""s of balancing: to the heels, beyond which the load pulls, and to the middle again."""

FALL_TIME = 0.8
"""s that are recorded after the node has noticed a fall, so that it is seen."""


@dataclass(frozen=True, eq=False)
class Track:
    """Where CoM and soles were in one run, seen from above; t instants.

    Attributes:
        time: (t,) s since the robot began to balance.
        believed: (t, 2) m, forwards and to the left, CoM by the URDF; from the middle of the soles.
        true: (t, 2) m, the simulator's.
        margin: (t, 2) m, of both inside the support polygon, negative outside.
        polygon: (k, 2) m, the support polygon of the first instant.
        fell_at: s, when the robot fell; NaN: it did not.
    """

    time: Array
    believed: Array
    true: Array
    margin: Array
    polygon: Array
    fell_at: float

    @property
    def error(self) -> Array:
        """Horizontal distances (t,) of believed and true CoM, m."""
        return np.linalg.norm(self.believed - self.true, axis=1)


class BalanceMonitor(SwayMonitor):
    """Records a robot that leans, until it has done so or has fallen."""

    def __init__(self, model: RobotModel, title: str) -> None:
        super().__init__(model, "balance_monitor")
        self._title = title
        self._state = BalanceState()
        self._began_ns = self._fell_ns = 0
        self._listen(BalanceState, "balance/state", self._on_state)

    @property
    def ready(self) -> bool:  # type: ignore[override]
        """Whether the robot balances, or has fallen."""
        return self._began_ns > 0 and super().ready

    @property
    def elapsed(self) -> float:
        """Time since it balances, s."""
        samples = self.recording.samples
        return (
            (samples[-1][0] - self._began_ns) / NS_PER_S
            if samples and self._began_ns
            else 0.0
        )

    @property
    def fell(self) -> bool:
        """Whether it fell."""
        return self._fell_ns > 0

    @property
    def ended(self) -> bool:  # type: ignore[override]
        """Whether the fall has been seen."""
        return (
            self.fell
            and self.elapsed > (self._fell_ns - self._began_ns) / NS_PER_S + FALL_TIME
        )

    def rows(self) -> Rows:
        """Return what a view shows."""
        if not self.received:
            return super().rows()
        series = self.recording.series(last=1)
        error, margin = 1000 * self._horizontal_error(), 1000 * series.margin[-1]
        state = "FELL" if self.fell else constant_name(BalanceState, self._state.state)
        return [
            ("part", self._title),
            ("robot", state.lower()),
            ("CoM error", f"{error:.1f} mm" if np.isfinite(error) else "no truth yet"),
            (
                "believed margin",
                f"{margin:.1f} mm" if np.isfinite(margin) else "no feet known",
            ),
        ]

    def _horizontal_error(self) -> float:
        """Return the horizontal distance of the newest CoM and its truth, m; NaN without any."""
        if (
            not self.snapshots
            or (truth := self.recording.truths.get(self.stamps[-1])) is None
        ):
            return float("nan")
        shot = self.snapshots[-1]
        gap = shot.com - truth
        return float(np.linalg.norm(gap - (gap @ shot.gravity) * shot.gravity))

    def waiting_for(self, seconds: float) -> str:
        """Return why it does not balance."""
        reason = self._state.reason or constant_name(BalanceState, self._state.state)
        return f"the robot does not balance after {seconds:.0f} s: {reason}"

    def track(self, config: RobotConfig) -> Track:
        """Return where CoM and soles were while it balanced."""
        rows: list[list[float]] = []
        feet = config.feet
        polygon = np.empty((0, 2))
        for stamp_ns, shot in zip(self.stamps, self.snapshots, strict=True):
            truth = self.recording.truths.get(stamp_ns)
            if (
                truth is None
                or not shot.contacts
                or (self.fell and stamp_ns > self._fell_ns)
            ):
                continue
            poses = [link_pose(self.model, shot.q, foot.frame) for foot in feet]
            R, p = np.array([R for R, _ in poses]), np.array([p for _, p in poses])
            support = SupportPolygon.from_soles(R, p, [foot.corners for foot in feet])
            forward = R[:, :, 0].sum(axis=0) / np.linalg.norm(R[:, :, 0].sum(axis=0))
            axes = np.array([forward, np.cross(support.normal, forward)])
            middle = p.mean(axis=0)
            if not rows:
                polygon = (support.vertices - middle) @ axes.T
            coms = np.array([shot.com, truth])
            time = (stamp_ns - self._began_ns) / NS_PER_S
            margins = [float(support.margin(com)) for com in coms]
            rows.append([time, *((coms - middle) @ axes.T).ravel(), *margins])
        table = np.array(rows).reshape(-1, 7)
        outside = np.flatnonzero(table[:, 6] < 0.0)
        if self.fell and len(outside):  # what follows is the fall
            table = table[: outside[0] + 1]
        fell_at = (self._fell_ns - self._began_ns) / NS_PER_S if self.fell else np.nan
        return Track(
            table[:, 0], table[:, 1:3], table[:, 3:5], table[:, 5:], polygon, fell_at
        )

    def _on_state(self, msg: BalanceState, _info: dict) -> None:
        self._state = msg
        if msg.state == BalanceState.BALANCING:
            self._began_ns = self._began_ns or stamp_to_ns(msg.header.stamp)
        if msg.state == BalanceState.FALLEN and self._began_ns:
            self._fell_ns = self._fell_ns or stamp_to_ns(msg.header.stamp)
