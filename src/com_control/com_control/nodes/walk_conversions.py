"""The messages of a walking robot <-> numpy and plain values; rules as in com_ros.conversions.

What a goal does not say is None here and an empty list in the message.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from builtin_interfaces.msg import Time

from com_msgs.msg import Footstep, WalkGoal, WalkState
from com_ros.conversions import (
    Array,
    numpy_to_point,
    point_to_numpy,
)
from com_ros.exceptions import ConversionError

SIDES = {Footstep.LEFT: "left", Footstep.RIGHT: "right"}
NUMBERS = {name: number for number, name in SIDES.items()}
NO_STEP = -1


@dataclass(frozen=True)
class FootstepValues:
    """A Footstep message.

    Attributes:
        side: "left" or "right".
        x, y, z: m.
        yaw: rad.
    """

    side: str
    x: float
    y: float
    z: float
    yaw: float


@dataclass(frozen=True)
class GoalValues:
    """A WalkGoal message, without its header; None: not given. The names are the message's."""

    footsteps: tuple[FootstepValues, ...] = ()
    steps: int | None = None
    step_length: float | None = None
    side_step: float | None = None
    turn: float | None = None
    climb: float | None = None
    half_width: float | None = None
    first: str | None = None
    step_time: float | None = None
    double_support: float | None = None
    step_height: float | None = None
    com_height: float | None = None
    method: str | None = None


_NUMBERS = tuple(
    item.name for item in fields(GoalValues) if item.name not in ("footsteps", "first", "method")
)


@dataclass(frozen=True, eq=False)
class StateValues:
    """A WalkState message, without its header; NaN: not known.

    Attributes:
        state: WalkState's number.
        reason: why it does not walk, or stops.
        step: that is being made; -1: none.
        steps: of the walk.
        swing: "left" or "right" in the air; "": both stand.
        time: s of the walk.
        duration: s of the walk.
        com_reference, com, zmp_reference, zmp: (3,) m.
        last_walk: "completed", or why the last one stopped or was refused; "": none has ended.
    """

    state: int
    reason: str
    step: int
    steps: int
    swing: str
    time: float
    duration: float
    com_reference: Array
    com: Array
    zmp_reference: Array
    zmp: Array
    last_walk: str = ""


# --- footsteps and goals -----------------------------------------------------------------------
def footstep_to_values(msg: Footstep) -> FootstepValues:
    """Values of a Footstep message.

    Raises:
        ConversionError: when its side is neither left nor right.
    """
    if msg.side not in SIDES:
        raise ConversionError(
            f"footstep: side is {msg.side}: give {Footstep.LEFT} (left) or {Footstep.RIGHT} (right)"
        )
    p = msg.position
    return FootstepValues(SIDES[msg.side], p.x, p.y, p.z, msg.yaw)


def values_to_footstep(side: str, x: float, y: float, z: float, yaw: float) -> Footstep:
    """Footstep message; side is "left" or "right"."""
    msg = Footstep(side=NUMBERS[side], yaw=float(yaw))
    numpy_to_point((x, y, z), msg.position)
    return msg


def walk_goal_to_values(msg: WalkGoal, frame: str) -> GoalValues:
    """Values of a WalkGoal message.

    Args:
        msg: the message.
        frame: of the walk, in which its footsteps must be.

    Raises:
        ConversionError: when it is in another frame, or a footstep or `first` has no valid side.
    """
    if msg.header.frame_id not in ("", frame):
        raise ConversionError(
            f"the goal's frame is {msg.header.frame_id!r}: give {frame!r}, which lies between the "
            "soles, or leave it empty"
        )
    if msg.first != Footstep.UNKNOWN and msg.first not in SIDES:
        raise ConversionError(
            f"the goal's first is {msg.first}: give {Footstep.LEFT} (left) or {Footstep.RIGHT} "
            "(right)"
        )
    given = {name: getattr(msg, name) for name in _NUMBERS}
    numbers = {name: values[0] for name, values in given.items() if len(values)}
    if "steps" in numbers:
        numbers["steps"] = int(numbers["steps"])
    return GoalValues(
        footsteps=tuple(footstep_to_values(step) for step in msg.footsteps),
        first=SIDES.get(msg.first),
        method=msg.method or None,
        **numbers,
    )


def values_to_walk_goal(values: GoalValues, frame: str = "") -> WalkGoal:
    """WalkGoal message of values."""
    msg = WalkGoal(method=values.method or "", first=NUMBERS.get(values.first or "", 0))
    msg.header.frame_id = frame
    steps = values.footsteps
    msg.footsteps = [values_to_footstep(s.side, s.x, s.y, s.z, s.yaw) for s in steps]
    for name in _NUMBERS:
        value = getattr(values, name)
        setattr(msg, name, [] if value is None else [value])
    return msg


# --- state -------------------------------------------------------------------------------------
def values_to_walk_state(
    values: StateValues, stamp: Time, frame: str, out: WalkState | None = None
) -> WalkState:
    """WalkState message of values; `out` is filled in place if given."""
    msg = WalkState() if out is None else out
    msg.header.stamp = stamp
    msg.header.frame_id = frame
    msg.state, msg.reason = int(values.state), values.reason
    msg.last_walk = values.last_walk
    msg.step, msg.steps = int(values.step), int(values.steps)
    msg.swing = NUMBERS.get(values.swing, Footstep.UNKNOWN)
    msg.time, msg.duration = float(values.time), float(values.duration)
    numpy_to_point(values.com_reference, msg.com_reference)
    numpy_to_point(values.com, msg.com)
    numpy_to_point(values.zmp_reference, msg.zmp_reference)
    numpy_to_point(values.zmp, msg.zmp)
    msg.com_error = float(np.linalg.norm(values.com - values.com_reference))
    return msg


def walk_state_to_values(msg: WalkState) -> StateValues:
    """Values of a WalkState message."""
    return StateValues(
        state=msg.state,
        reason=msg.reason,
        step=msg.step,
        steps=msg.steps,
        swing=SIDES.get(msg.swing, ""),
        time=msg.time,
        duration=msg.duration,
        com_reference=point_to_numpy(msg.com_reference),
        com=point_to_numpy(msg.com),
        zmp_reference=point_to_numpy(msg.zmp_reference),
        zmp=point_to_numpy(msg.zmp),
        last_walk=msg.last_walk,
    )
