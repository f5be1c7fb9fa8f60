"""Whether what a node commands may be sent to a robot; for benchmarks/faults.py."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from fault_cases import NS
from numpy.typing import NDArray
from trajectory_msgs.msg import JointTrajectory

from com_model import RobotModel

Array = NDArray[np.float64]

LIMIT_TOLERANCE = 1e-3  # rad or m, that a command may be beyond a limit
SPEED_TOLERANCE = 1.5  # times the limit of speed, that a command may go
FASTEST = 20.0  # rad/s or m/s, where the URDF says nothing
# s, after the robot was put elsewhere, in which commands are not checked
SETTLING = 0.3
OTHER_TIME = 1.0  # s, from which on a stamp is of another time
SOON = 1e-3  # s, in which a command that is over is followed
STEP_TOLERANCE = 0.02  # rad or m, by which two commands may differ whatever their times


@dataclass
class CommandCheck:
    """Counts commands that no robot should get: not finite, beyond limits, faster than allowed.

    Attributes:
        model: With the limits.
        bad: What was wrong, each with its fault.
    """

    model: RobotModel
    bad: list[str] = field(default_factory=list)
    _last: dict[str, tuple[Array, Array]] = field(default_factory=dict)
    _settled_s: float = 0.0

    def check(
        self,
        msg: JointTrajectory,
        fault: str,
        now_s: float,
        age_s: float,
        position: Array,
    ) -> None:
        """Check all points of a trajectory.

        Args:
            msg: The command.
            fault: That is being tried.
            now_s: s, when it came.
            age_s: s, since when it counts by its stamp; a driver refuses one of another time.
            position: (n,) where the joints truly are.
        """
        problem = self._problem(msg, now_s, age_s, position)
        if problem and now_s > self._settled_s:
            self.bad.append(f"{fault}: {problem}")

    def restart(self, now_s: float) -> None:
        """Forget the last command: the robot was put elsewhere, which the node has yet to see."""
        self._last.clear()
        self._settled_s = now_s + SETTLING

    def _reference(
        self, names: list[str], index: list[int], now_s: float, position: Array
    ) -> Array:
        """Where the commands of before have the joints now; without any, where they are."""
        return np.array(
            [
                np.interp(now_s, *self._last[names[i]])
                if names[i] in self._last
                else position[i]
                for i in index
            ]
        )

    def _problem(
        self, msg: JointTrajectory, now_s: float, age_s: float, position: Array
    ) -> str:
        names = list(self.model.joint_names)
        unknown = set(msg.joint_names) - set(names)
        if unknown or not msg.points:
            return f"joints {sorted(unknown)[:3]}, {len(msg.points)} points"
        index = [names.index(name) for name in msg.joint_names]
        stamp_s = now_s - age_s if abs(age_s) < OTHER_TIME else now_s
        begin = min(
            now_s, stamp_s
        )  # on its way it may be late, which is not the node's fault
        model, times, path = (
            self.model,
            [begin],
            [self._reference(names, index, begin, position)],
        )
        for point in msg.points:
            q, v = np.array(point.positions), np.array(point.velocities)
            if len(q) != len(index) or not (
                np.isfinite(q).all() and np.isfinite(v).all()
            ):
                return f"not finite, or {len(q)} positions of {len(index)} joints"
            after = point.time_from_start.sec + point.time_from_start.nanosec / NS
            times.append(stamp_s + after)
            path.append(q)
        if min(np.diff(times)[1:], default=1.0) <= 0.0:
            return "times do not increase"
        beyond = np.maximum(model.lower[index] - path, path - model.upper[index])[
            1:
        ].max(axis=0)
        if beyond.max() > LIMIT_TOLERANCE:
            k = int(beyond.argmax())
            return f"{msg.joint_names[k]} {beyond[k]:.3g} rad beyond its limit"
        if abs(age_s) >= OTHER_TIME:
            return ""
        ahead = [0, *(k for k in range(1, len(times)) if times[k] > begin)]
        if len(ahead) == 1:  # all of it is over: at once
            ahead, times[-1] = [0, len(times) - 1], begin + SOON
        t, q = np.array(times)[ahead], np.array(path)[ahead]
        most = SPEED_TOLERANCE * np.minimum(model.velocity_limits[index], FASTEST)
        steps = np.abs(np.diff(q, axis=0)) - STEP_TOLERANCE
        excess = steps - most * np.diff(t)[:, None]
        for k, i in enumerate(index):
            self._last[names[i]] = t[1:], q[1:, k]
        if excess.max() > 0.0:
            row, column = np.unravel_index(int(excess.argmax()), excess.shape)
            jump, duration = steps[row, column] + STEP_TOLERANCE, t[row + 1] - t[row]
            return (
                f"{msg.joint_names[column]} jumps by {jump:.3g} rad in {duration:.3g} s"
            )
        return ""
