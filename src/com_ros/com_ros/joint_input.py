"""JointState messages -> vectors in the model's order, by name, with every defect named.

Messages of several publishers, each with a part of the joints, are merged: a joint's latest value
is used as long as its time is within `joint_timeout` of the current message.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from sensor_msgs.msg import JointState

from com_model.arrays import Array, Flags, Indices
from com_model.compiled import compiled, entry_point
from com_model.joint_states import JUMP, ConflictCheck, JointLayout, reversals
from com_model.text import listing
from com_ros.conversions import NS_PER_S, stamp_to_ns
from com_ros.exceptions import ParameterError
from com_ros.input_limits import InputBounds, InputLimits
from com_ros.raw_messages import NO_VALUES, RawJoints


class Stored(NamedTuple):
    """Latest values of n joints and their limits; the rows are position, velocity and effort.

    Attributes:
        values: (3, n) rad or m, rad/s or m/s, N m or N; NaN where not known.
        lowest: (3, n) smallest plausible values.
        highest: (3, n) largest plausible values.
        time_ns: (n,) ns, time of each joint's last position; NEVER: none.
        assumed: (n,) joints whose position is assumed, as no message has contained it.
        before: (2, n) rad or m, positions of the last message and the one before it.
    """

    values: Array
    lowest: Array
    highest: Array
    time_ns: Indices
    assumed: Flags
    before: Array


@cache
def store_kernel() -> Callable[..., bool]:
    """Returns `store`, compiled."""
    indices, values = np.empty(0, dtype=np.int64), np.empty((3, 0))
    stored = Stored(
        values, values, values, indices, np.empty(0, dtype=np.bool_), values
    )
    return entry_point(store, *[NO_VALUES] * 3, indices, indices, stored, 0)


@compiled()
def store(
    position: Array,
    velocity: Array,
    effort: Array,
    source: Indices,
    joints: Indices,
    stored: Stored,
    time_ns: int,
) -> bool:
    """Stores the values of a message in the order of the model.

    Velocities, or efforts, whose number differs from that of the positions become NaN.

    Args:
        position: (k,) of the message, rad or m.
        velocity: (k,) rad/s or m/s, or of another length.
        effort: (k,) N m or N, or of another length.
        source: (m,) places in the message.
        joints: (m,) places in the model.
        stored: changed in place.
        time_ns: ns, of the message.

    Returns:
        Whether a position or velocity is not finite, a stored value is beyond its limits, a
        position jumps (joint_states.JUMP), or the velocities have a wrong length.
    """
    values = stored.values
    has_velocity, has_effort = (
        velocity.size == position.size,
        effort.size == position.size,
    )
    clean = has_velocity or velocity.size == 0
    for k in range(joints.size):
        i, j = source[k], joints[k]
        stored.before[1, j], stored.before[0, j] = stored.before[0, j], values[0, j]
        clean &= not abs(position[i] - values[0, j]) > JUMP
        values[0, j] = position[i]
        values[1, j] = velocity[i] if has_velocity else np.nan
        values[2, j] = effort[i] if has_effort else np.nan
        clean &= np.isfinite(position[i]) and (
            not has_velocity or np.isfinite(velocity[i])
        )
        stored.time_ns[j], stored.assumed[j] = time_ns, False
    for row in range(3):
        for j in range(values.shape[1]):
            wrong = (
                values[row, j] < stored.lowest[row, j]
                or values[row, j] > stored.highest[row, j]
            )
            clean &= not wrong
    return not clean


NEVER = -(2**62)
_NOT_KNOWN = (
    "it counts as not known: check the joint's driver, or raise input_limits.factor"
)
WRONG = (  # implausible values by row, and how to fix them
    (
        "a position",
        "check the joint's driver and its unit (rad, m) and the limits in the URDF, or raise "
        "input_limits.position_margin",
    ),
    ("a velocity", _NOT_KNOWN),
    ("an effort", _NOT_KNOWN),
)


class JointSample(NamedTuple):
    """The joints at the time of one message, in the model's order.

    Attributes:
        position: (n,) rad or m; all NaN when `error` is set.
        velocity: (n,) rad/s or m/s; NaN where not known.
        effort: (n,) N m or N; NaN where not known.
        error: why the positions are not known and how to fix it; empty when they are.
        warnings: what else is wrong with the message and how to fix it.
        time_ns: ns, of the message: its stamp, or the time of receipt for a stamp of zero.
        stamp_ns: ns, the message's stamp as received; 0: none.
        spread_s: s, largest time between the message and the joints that others reported.
    """

    position: Array
    velocity: Array
    effort: Array
    error: str = ""
    warnings: tuple[str, ...] = ()
    time_ns: int = 0
    stamp_ns: int = 0
    spread_s: float = 0.0

    @classmethod
    def unknown(cls, n: int, error: str, time_ns: int, stamp_ns: int) -> "JointSample":
        """Returns a sample without known values.

        Args:
            n: number of joints.
            error: why, and how to fix it.
            time_ns: ns, of the sample.
            stamp_ns: ns, of the message; 0 where it has none.
        """
        nan = np.full(n, np.nan)
        return cls(nan, nan, nan, error, (), time_ns, stamp_ns)


class JointInput:
    """Converts JointState messages to samples in the model's order; never raises on a message.

    Args:
        names: the model's n joints.
        timeout_s: s, largest time between the parts of the joints that several messages carry.
        assumed: positions (rad or m) by name of joints that no message carries; a measured value
            replaces them. ParameterError for a name that is no joint of the model.

    Attributes:
        implausible: number of messages with a value beyond its limits; see com_ros.input_limits.
    """

    def __init__(
        self,
        names: Sequence[str],
        timeout_s: float,
        assumed: dict[str, float] | None = None,
    ) -> None:
        self._names = list(names)
        self._index = {name: i for i, name in enumerate(names)}
        self.timeout_s = timeout_s
        self._values = np.full((3, len(names)), np.nan)  # position, velocity, effort
        self._time_ns = np.full(len(names), NEVER, dtype=np.int64)
        self._before = np.full((2, len(names)), np.nan)
        self._conflicts, self._conflict = ConflictCheck(self._names), ""
        self._newest_ns = NEVER
        self._assumed = np.zeros(len(names), dtype=bool)
        self._layouts: dict[tuple[str, ...], JointLayout] = {}
        self._layout = JointLayout.from_names([], self._index)
        self._kernel = store_kernel()
        self.implausible = 0
        self.set_bounds(InputBounds(InputLimits()))
        for name, position in (assumed or {}).items():
            if name not in self._index:
                raise ParameterError(
                    "assumed_joints", name, f"valid: {listing(names, 200)}"
                )
            joint = self._index[name]
            self._assumed[joint] = True
            self._values[:2, joint] = position, 0.0

    def update(self, msg: JointState, received_ns: int) -> JointSample | None:
        """Processes one message.

        Args:
            msg: of any joints, in any order.
            received_ns: ns of the ROS clock, when it was received; replaces a stamp of zero.

        Returns:
            The joints at the time of the message, or None for a message about other joints than
            the model's (a gripper's own driver) while the model's joints come in others, and for
            one without positions (velocities or efforts alone), which leaves all as it is.
        """
        names, stamp_ns = msg.name, stamp_to_ns(msg.header.stamp)
        layout = self._layout if names == self._layout.names else self._layout_of(names)
        time_ns = stamp_ns or received_ns
        newer = stamp_ns and stamp_ns > self._newest_ns
        warnings = () if newer else self._check_stamp(layout, stamp_ns, received_ns)
        error = layout.problem(len(msg.position))
        if not (error or len(msg.position)) and names:
            if self._newest_ns != NEVER:  # velocities or efforts alone
                return None
            error = "joint_states has names and no positions: a driver must send these"
        suspect = bool(error)
        if not error and self._store(layout, msg, time_ns):
            suspect, error = True, self._not_finite(layout)
        if suspect:
            wrong = (self._values < self._lowest) | (self._values > self._highest)
            if wrong.any():
                self.implausible += 1
                error = error or self._forget_wrong(0, wrong[0])
                others = [self._forget_wrong(row, wrong[row]) for row in (1, 2)]
                warnings += tuple(filter(None, others))
        if not layout.complete:
            error = error or self._missing(layout, time_ns)
        if error:
            return JointSample.unknown(len(self._names), error, time_ns, stamp_ns)
        if not layout.joints.size and not self._assumed.all():
            return None
        position, velocity, effort = self._values.copy()
        if suspect:
            warnings += self._check_velocity(layout, msg)
        if suspect or self._conflict:
            self._conflict = self._check_conflict(layout, time_ns)
            warnings += (self._conflict,) * bool(self._conflict)
        spread_s = 0.0
        if not layout.complete:
            away_ns = np.abs(time_ns - self._time_ns[~self._assumed])
            spread_s = float(max(away_ns, default=0)) / NS_PER_S
        return JointSample(
            position, velocity, effort, "", warnings, time_ns, stamp_ns, spread_s
        )

    def set_bounds(self, bounds: InputBounds) -> None:
        """Sets the limits of plausible values.

        Args:
            bounds: of the robot; joints that it does not know have the limits of joints without
                limits.
        """
        self._lowest, self._highest = bounds.of_joints(self._names)
        bounded = self._values, self._lowest, self._highest
        self._stored = Stored(*bounded, self._time_ns, self._assumed, self._before)

    def restart(self) -> None:
        """Forgets the times of all values, as they were another clock's."""
        self._time_ns[:] = self._newest_ns = NEVER
        self._conflicts, self._conflict = ConflictCheck(self._names), ""

    # --- names -------------------------------------------------------------------------------
    def _layout_of(self, names: Sequence[str]) -> JointLayout:
        key = tuple(names)
        layout = self._layouts.get(key)
        if layout is None:
            layout = JointLayout.from_names(names, self._index)
            # distinct lists of names that are stored
            if len(self._layouts) >= 64:  # a publisher that shuffles its names
                self._layouts.clear()
            self._layouts[key] = layout
        self._layout = layout
        return layout

    # --- values ------------------------------------------------------------------------------
    def _store(self, layout: JointLayout, msg: JointState, time_ns: int) -> bool:
        """Stores the values of a message; returns whether they need further checks."""
        back = self._newest_ns - time_ns
        # stamps that go back further belong to another recording
        self._newest_ns = time_ns if back < 0 or back > NS_PER_S else self._newest_ns
        given: Sequence[Any] = (msg.position, msg.velocity, msg.effort)
        if not isinstance(msg, RawJoints):  # which has arrays
            given = tuple(np.frombuffer(v) if len(v) else NO_VALUES for v in given)
        return self._kernel(*given, layout.source, layout.joints, self._stored, time_ns)

    def _not_finite(self, layout: JointLayout) -> str:
        """Which positions of a message, now stored, are not finite; they are not known."""
        broken = layout.joints[~np.isfinite(self._values[0, layout.joints])]
        if not broken.size:
            return ""
        self._time_ns[broken] = NEVER
        bad = listing(self._names[i] for i in broken)
        return f"joint_states has a position that is not finite: {bad}; check the joint's driver"

    def _forget_wrong(self, row: int, wrong: Flags) -> str:
        """Replaces implausible values of a row by NaN.

        Args:
            row: 0: position, 1: velocity, 2: effort.
            wrong: (n,) which values.

        Returns:
            Which values and how to fix it; "" for none.
        """
        joints = np.flatnonzero(wrong)
        if not joints.size:
            return ""
        values, low, high = (table[row, joints] for table in self._stored[:3])
        found = zip(joints.tolist(), values, low, high, strict=True)
        text = [
            f"{self._names[i]} is {v:.6g}, expected {a:.4g} to {b:.4g}"
            for i, v, a, b in found
        ]
        self._values[row, joints] = np.nan
        if row == 0:
            self._time_ns[joints], self._assumed[joints] = NEVER, False
        name, fix = WRONG[row]
        return f"joint_states has {name} that cannot be: {listing(text, 3)}; {fix}"

    def _missing(self, layout: JointLayout, time_ns: int) -> str:
        """Which joints are not known at a time, in words; empty when all are."""
        age_ns = np.abs(time_ns - self._time_ns)
        lacking = np.flatnonzero(~self._assumed & (age_ns > self.timeout_s * NS_PER_S))
        if not lacking.size:
            return ""
        count = f"{lacking.size} of {len(self._names)} joints"
        names = listing(self._names[i] for i in lacking)
        received = self._time_ns[lacking] != NEVER
        if received.all():
            age_s = age_ns[lacking].max() / NS_PER_S
            return (
                f"joint_states: {count} are {age_s:.2f} s away from the others: {names}; "
                "check their publisher and its clock, or raise joint_timeout"
            )
        return (
            f"joint_states lacks {count}: {names}; it names {listing(layout.names) or 'none'}; "
            "publish them, or list those that no driver reports in assumed_joints"
        )

    def _check_conflict(self, layout: JointLayout, time_ns: int) -> str:
        """Which joints two publishers contradict each other about; "" for none."""
        found = np.zeros((1, len(self._names)), dtype=np.int64)
        values = (row[layout.joints] for row in (self._values[0], *self._before))
        found[0, layout.joints] = reversals(*values)
        return self._conflicts.add(found, np.array([time_ns]))

    # --- warnings --------------------------------------------------------------------
    def _check_stamp(
        self, layout: JointLayout, stamp_ns: int, received_ns: int
    ) -> tuple[str, ...]:
        """Warnings about a stamp that is not newer, before the message is stored."""
        if stamp_ns == 0:
            if (
                self._newest_ns == NEVER or received_ns == 0
            ):  # its clock has not started yet
                return ()
            return ("joint_states has no stamp: its driver must fill header.stamp",)
        previous_ns = int(self._time_ns[layout.joints].max(initial=NEVER))
        if previous_ns == NEVER or stamp_ns > previous_ns:
            return ()
        if stamp_ns == previous_ns:
            return (
                "joint_states repeats a stamp: two drivers of one joint, or a stopped clock",
            )
        back_s = (previous_ns - stamp_ns) / NS_PER_S
        return (
            f"the stamp of joint_states went back by {back_s:.3f} s: two drivers of one joint, "
            "a clock that jumped, or a recording that was started again",
        )

    def _check_velocity(self, layout: JointLayout, msg: JointState) -> tuple[str, ...]:
        """Warnings about the velocities of a message; none at all are no fault."""
        count, finite = len(msg.velocity), np.isfinite(msg.velocity)
        if count == 0 or (count == len(layout.names) and finite.all()):
            return ()
        if count != len(layout.names):
            return (
                f"joint_states has {count} velocities for {len(layout.names)} names: "
                "a message must carry one for each name, or none",
            )
        bad = [self._names[i] for i in layout.joints[~finite[layout.source]]]
        if not bad:
            return ()
        return (
            f"joint_states has a velocity that is not finite: {listing(bad)}; "
            "check the joint's driver",
        )
