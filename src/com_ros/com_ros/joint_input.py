"""JointState messages -> vectors in the model's order, by name, with every defect named.

Several publishers that each carry a part of the joints are merged: a joint's latest value counts
as long as it is within `joint_timeout` of the message at hand.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from com_model.text import listing
from numpy.typing import NDArray
from sensor_msgs.msg import JointState

from com_ros.conversions import NS_PER_S, stamp_to_ns
from com_ros.exceptions import ParameterError

Array = NDArray[np.float64]

NEVER = -(2**62)
MAX_LAYOUTS = 64  # distinct lists of names that are remembered


@dataclass(frozen=True)
class JointSample:
    """The joints at the time of one message, in the model's order.

    Attributes:
        position: (n,) rad or m; all NaN when `error` is set.
        velocity: (n,) rad/s or m/s; NaN where not known.
        effort: (n,) N m or N; NaN where not known.
        error: why the positions are not known, with the mend; empty when they are.
        warnings: what else is wrong with the message, with the mend.
    """

    position: Array
    velocity: Array
    effort: Array
    error: str = ""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Layout:
    """What a list of names means to the model.

    Attributes:
        names: the list, as it came.
        source: (m,) places in the message of the m joints of the model that it names.
        target: (m,) their places in the model.
        whole: the message holds exactly the model's joints in the model's order.
        error: why the list is of no use, empty if it is.
    """

    names: list[str]
    source: NDArray[np.intp]
    target: NDArray[np.intp]
    whole: bool
    error: str


class JointInput:
    """Turns JointState messages into samples; never raises on a message.

    Args:
        names: the model's n joint names.
        timeout_s: how far apart parts of the joints may be in time, s.
        assumed: positions (rad or m) of joints that no message carries; a measured value wins.

    Raises:
        ParameterError: when an assumed joint is not a joint of the model.
    """

    def __init__(
        self, names: Sequence[str], timeout_s: float, assumed: dict[str, float] | None = None
    ) -> None:
        self._names = list(names)
        self._index = {name: i for i, name in enumerate(names)}
        self._timeout_ns = int(timeout_s * NS_PER_S)
        self._position, self._velocity, self._effort = np.full((3, len(names)), np.nan)
        self._time_ns = np.full(len(names), NEVER, dtype=np.int64)
        self._assumed = np.zeros(len(names), dtype=bool)
        self._layouts: dict[tuple[str, ...], _Layout] = {}
        self._layout = _Layout([], np.empty(0, np.intp), np.empty(0, np.intp), not names, "")
        for name, position in (assumed or {}).items():
            if name not in self._index:
                raise ParameterError("assumed_joints", name, f"valid: {listing(names, 200)}")
            joint = self._index[name]
            self._assumed[joint] = True
            self._position[joint] = position
            self._velocity[joint] = 0.0

    def update(self, msg: JointState, received_ns: int) -> JointSample | None:
        """Take in one message.

        Args:
            msg: the message; its arrays may have any length.
            received_ns: the ROS clock at receipt; stands in for a stamp of zero.

        Returns:
            The joints at the time of the message, or None for a message about other joints than
            the model's (a gripper's own driver) while the model's joints are heard elsewhere.
        """
        layout = self._layout_of(msg.name)
        stamp_ns = stamp_to_ns(msg.header.stamp)
        time_ns = stamp_ns or received_ns
        previous_ns = self._last_time_ns(layout)
        error = layout.error or self._take(layout, msg, time_ns)
        error = error or self._missing(layout, time_ns)
        if error:
            unknown = np.full(len(self._names), np.nan)
            return JointSample(unknown, unknown, unknown, error)
        if not layout.target.size and not self._assumed.all():
            return None
        return JointSample(
            self._position.copy(),
            self._velocity.copy(),
            self._effort.copy(),
            warnings=(
                *_check_stamp(stamp_ns, previous_ns),
                *self._check_velocity(layout, msg),
            ),
        )

    # --- names -------------------------------------------------------------------------------
    def _layout_of(self, names: Sequence[str]) -> _Layout:
        if names == self._layout.names:
            return self._layout
        key = tuple(names)
        layout = self._layouts.get(key)
        if layout is None:
            layout = self._make_layout(list(names))
            if len(self._layouts) >= MAX_LAYOUTS:  # a publisher that shuffles its names
                self._layouts.clear()
            self._layouts[key] = layout
        self._layout = layout
        return layout

    def _make_layout(self, names: list[str]) -> _Layout:
        known = [
            (place, self._index[name]) for place, name in enumerate(names) if name in self._index
        ]
        source = np.array([place for place, _ in known], dtype=np.intp)
        target = np.array([joint for _, joint in known], dtype=np.intp)
        twice = [
            name for name, count in Counter(names).items() if count > 1 and name in self._index
        ]
        error = ""
        if twice:
            error = (
                f"joint_states names {listing(twice)} more than once: "
                "a message may carry each joint once"
            )
        return _Layout(names, source, target, names == self._names, error)

    # --- values ------------------------------------------------------------------------------
    def _take(self, layout: _Layout, msg: JointState, time_ns: int) -> str:
        """Store what the message carries; returns why it cannot be used, or nothing."""
        if len(msg.position) != len(layout.names):
            return (
                f"joint_states has {len(msg.position)} positions for {len(layout.names)} names: "
                "a message must carry one position for each name"
            )
        position = np.asarray(_part(layout, msg.position))
        finite = np.isfinite(position)
        self._position[layout.target] = position
        self._velocity[layout.target] = _part(layout, msg.velocity)
        self._effort[layout.target] = _part(layout, msg.effort)
        self._assumed[layout.target] = False
        self._time_ns[layout.target] = time_ns
        if finite.all():
            return ""
        self._time_ns[layout.target[~finite]] = NEVER
        bad = listing(self._names[i] for i in layout.target[~finite])
        return f"joint_states has a position that is not finite: {bad}; check the joint's driver"

    def _last_time_ns(self, layout: _Layout) -> int:
        times = self._time_ns if layout.whole else self._time_ns[layout.target]
        return int(times.max(initial=NEVER))

    def _missing(self, layout: _Layout, time_ns: int) -> str:
        """Which joints are not known at a time, in words; empty when all are."""
        if layout.whole:
            return ""
        age_ns = np.abs(time_ns - self._time_ns)
        lacking = np.flatnonzero(~self._assumed & (age_ns > self._timeout_ns))
        if not lacking.size:
            return ""
        count = f"{lacking.size} of {len(self._names)} joints"
        names = listing(self._names[i] for i in lacking)
        heard = self._time_ns[lacking] != NEVER
        if heard.all():
            age_s = age_ns[lacking].max() / NS_PER_S
            return (
                f"joint_states: {count} are {age_s:.2f} s away from the others: {names}; "
                "check their publisher and its clock, or raise joint_timeout"
            )
        return (
            f"joint_states lacks {count}: {names}; it names {listing(layout.names) or 'none'}; "
            "publish them, or list those that no driver reports in assumed_joints"
        )

    @staticmethod
    def _check_velocity(layout: _Layout, msg: JointState) -> tuple[str, ...]:
        count = len(msg.velocity)
        if count == 0:
            return ()
        if count != len(layout.names):
            return (
                f"joint_states has {count} velocities for {len(layout.names)} names: "
                "a message must carry one for each name, or none",
            )
        finite = np.isfinite(_part(layout, msg.velocity))
        if finite.all():
            return ()
        bad = listing(layout.names[i] for i in layout.source[~finite])
        return (f"joint_states has a velocity that is not finite: {bad}; check the joint's driver",)


def _part(layout: _Layout, values: Sequence[float]) -> Array | float:
    """(m,) of the model's joints, or NaN when the message does not carry one for each name."""
    if len(values) != len(layout.names):
        return np.nan
    array = np.asarray(values, dtype=np.float64)
    return array if layout.whole else array[layout.source]


def _check_stamp(stamp_ns: int, previous_ns: int) -> tuple[str, ...]:
    if stamp_ns == 0:
        return ("joint_states has no stamp: its driver must fill header.stamp",)
    if previous_ns == NEVER or stamp_ns > previous_ns:
        return ()
    if stamp_ns == previous_ns:
        return ("joint_states repeats a stamp: two drivers of one joint, or a clock that stands",)
    back_s = (previous_ns - stamp_ns) / NS_PER_S
    return (
        f"the stamp of joint_states went back by {back_s:.3f} s: two drivers of one joint, "
        "a clock that jumped, or a recording that was started again",
    )
