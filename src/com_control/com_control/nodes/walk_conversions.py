"""The messages of a walking robot <-> numpy and plain values; rules as in com_ros.conversions.

What a goal leaves open is None here and an empty list in the message.
"""

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time

from com_control.exceptions import PlanError
from com_control.walking.footsteps import Footstep
from com_control.walking.walker import WalkRequest
from com_msgs import msg as msgs
from com_msgs.msg import WalkGoal, WalkState
from com_ros.conversions import (
    Array,
    numpy_to_point,
    point_to_numpy,
)
from com_ros.exceptions import ConversionError

SIDES = {msgs.Footstep.LEFT: "left", msgs.Footstep.RIGHT: "right"}
NUMBERS = {name: number for number, name in SIDES.items()}
NO_STEP = -1
_VALID_SIDES = f"{msgs.Footstep.LEFT} (left) or {msgs.Footstep.RIGHT} (right)"


_NUMBERS = {item.name for item in fields(WalkRequest)} - {"footsteps", "first", "method"}


UNKNOWN = np.full(3, np.nan)
_POINTS = ("com_reference", "com", "zmp_reference", "zmp")
_PLAIN = ("state", "reason", "last_walk", "step", "steps", "time", "duration")


@dataclass(frozen=True, eq=False)
class StateValues:
    """A WalkState message, without its header; NaN: not known."""

    state: int  # WalkState's number
    reason: str  # why it does not walk, or stops
    step: int = NO_STEP  # that is being made; -1: none
    steps: int = 0
    swing: str = ""  # "left" or "right" in the air; "": both stand
    time: float = float("nan")  # s of the walk
    duration: float = float("nan")  # s of the walk
    com_reference: Array = field(default_factory=UNKNOWN.copy)  # (3,) m
    com: Array = field(default_factory=UNKNOWN.copy)  # (3,) m
    zmp_reference: Array = field(default_factory=UNKNOWN.copy)  # (3,) m
    zmp: Array = field(default_factory=UNKNOWN.copy)  # (3,) m
    # "completed", or why the last one stopped or was refused; "": none has ended
    last_walk: str = ""


# --- footsteps and goals -----------------------------------------------------------------------
def msg_to_footstep(msg: msgs.Footstep) -> Footstep:
    """Footstep of a message.

    Raises:
        ConversionError: when its side is neither left nor right.
        PlanError: when a number is not finite.
    """
    if msg.side not in SIDES:
        raise ConversionError(f"footstep: side is {msg.side}: give {_VALID_SIDES}")
    p = msg.position
    return Footstep(SIDES[msg.side], p.x, p.y, p.z, msg.yaw)


def footstep_to_msg(step: Footstep) -> msgs.Footstep:
    """Message of a footstep."""
    msg = msgs.Footstep(side=NUMBERS[step.side], yaw=float(step.yaw))
    numpy_to_point(step.position, msg.position)
    return msg


def msg_to_request(msg: WalkGoal, frame: str) -> WalkRequest:
    """Request of a WalkGoal message.

    Args:
        frame: of the walk, in which its footsteps must be.

    Raises:
        ConversionError: when it is in another frame, or a footstep or `first` has no valid side.
        PlanError: when a footstep has numbers that are not finite.
    """
    if msg.header.frame_id not in ("", frame):
        raise ConversionError(
            f"the goal's frame is {msg.header.frame_id!r}: give {frame!r}, which is between the "
            "soles, or leave it empty"
        )
    if msg.first != msgs.Footstep.UNKNOWN and msg.first not in SIDES:
        raise ConversionError(f"the goal's first is {msg.first}: give {_VALID_SIDES}")
    given = {name: getattr(msg, name) for name in _NUMBERS}
    numbers = {name: values[0] for name, values in given.items() if len(values)}
    if "steps" in numbers:
        numbers["steps"] = int(numbers["steps"])
    steps = []
    for i, step in enumerate(msg.footsteps):
        try:
            steps.append(msg_to_footstep(step))
        except PlanError as error:
            raise PlanError(str(error), i) from error
    return WalkRequest(
        footsteps=tuple(steps), first=SIDES.get(msg.first), method=msg.method or None, **numbers
    )


# --- state -------------------------------------------------------------------------------------
def values_to_walk_state(values: StateValues, stamp: Time, frame: str) -> WalkState:
    """WalkState message of values."""
    msg = WalkState(swing=NUMBERS.get(values.swing, msgs.Footstep.UNKNOWN))
    msg.header.stamp, msg.header.frame_id = stamp, frame
    for name in _PLAIN:
        setattr(msg, name, getattr(values, name))
    for name in _POINTS:
        numpy_to_point(getattr(values, name), getattr(msg, name))
    msg.com_error = float(np.linalg.norm(values.com - values.com_reference))
    return msg


def walk_state_to_values(msg: WalkState) -> StateValues:
    """Values of a WalkState message."""
    values: dict[str, Any] = {name: getattr(msg, name) for name in _PLAIN}
    values |= {name: point_to_numpy(getattr(msg, name)) for name in _POINTS}
    return StateValues(swing=SIDES.get(msg.swing, ""), **values)
