"""Messages of a walking robot <-> numpy and plain values; rules as in com_ros.conversions.

Values that a goal leaves open are None here and an empty list in the message.
"""

from dataclasses import fields
from math import dist, nan
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time

from com_control.exceptions import PlanError
from com_control.walking.footsteps import Footstep
from com_control.walking.walk import WalkRequest
from com_msgs import msg as msgs
from com_msgs.msg import WalkGoal, WalkState
from com_ros.conversions import numpy_to_point
from com_ros.exceptions import ConversionError

SIDES = {msgs.Footstep.LEFT: "left", msgs.Footstep.RIGHT: "right"}
NUMBERS = {name: number for number, name in SIDES.items()}
NO_STEP = -1
_VALID_SIDES = f"{msgs.Footstep.LEFT} (left) or {msgs.Footstep.RIGHT} (right)"


_NUMBERS = {item.name for item in fields(WalkRequest)} - {
    "footsteps",
    "first",
    "method",
}


UNKNOWN = np.full(3, np.nan)
_POINTS = ("com_reference", "com", "zmp_reference", "zmp", "dcm", "dcm_reference")
_RUNS = (  # of numbers of a WalkState that directly follow each other, and their sizes
    {"time": 1, "duration": 1, "com_reference": 3, "com": 3}
    | {"com_error": 1, "zmp_reference": 3, "zmp": 3},
    {"dcm": 3, "dcm_reference": 3, "margin": 1, "com_offset": 2, "com_offset_std": 2},
)


# --- footsteps and goals -----------------------------------------------------------------------
def msg_to_footstep(msg: msgs.Footstep) -> Footstep:
    """Converts a message to a footstep.

    Args:
        msg: with its side LEFT or RIGHT.

    Returns:
        The footstep, in the frame of the walk.

    Raises:
        ConversionError: its side is neither left nor right.
        PlanError: a number is not finite.
    """
    if msg.side not in SIDES:
        raise ConversionError(f"footstep: side is {msg.side}: give {_VALID_SIDES}")
    p = msg.position
    return Footstep(SIDES[msg.side], p.x, p.y, p.z, msg.yaw)


def footstep_to_msg(step: Footstep) -> msgs.Footstep:
    """Converts a footstep to a message.

    Args:
        step: in the frame of the walk.
    """
    place = numpy_to_point(step.position)
    return msgs.Footstep(side=NUMBERS[step.side], position=place, yaw=float(step.yaw))


def msg_to_request(msg: WalkGoal, frame: str) -> WalkRequest:
    """Converts a WalkGoal message to a request.

    Args:
        msg: the goal.
        frame: of the walk, in which its footsteps must be.

    Returns:
        The request; values that the message leaves open are None.

    Raises:
        ConversionError: it is in another frame, or a footstep or `first` has no valid side.
        PlanError: a footstep has numbers that are not finite.
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
        footsteps=tuple(steps),
        first=SIDES.get(msg.first),
        method=msg.method or None,
        **numbers,
    )


# --- state -------------------------------------------------------------------------------------
def make_walk_state(
    stamp: Time, frame: str, swing: str = "", **known: Any
) -> WalkState:
    """Makes a WalkState message.

    Args:
        stamp: of the instant.
        frame: of the walk.
        swing: "left", "right" or "".
        **known: fields of the message; numbers that are not given are NaN.
    """
    side = NUMBERS.get(swing, msgs.Footstep.UNKNOWN)
    msg = WalkState(swing=side, step=NO_STEP, time=nan, duration=nan, margin=nan)
    msg.com_offset = msg.com_offset_std = UNKNOWN[:2]
    msg.header.stamp, msg.header.frame_id = stamp, frame
    points = {name: known.pop(name, UNKNOWN) for name in _POINTS}
    known |= {name: numpy_to_point(point) for name, point in points.items()}
    for name, value in known.items():
        setattr(msg, name, value)
    msg.com_error = dist(points["com"], points["com_reference"])
    return msg


def walk_numbers(known: dict[str, Any]) -> list[list[float]]:
    """The numbers of such a message, for com_ros.raw_messages.Writer.

    Args:
        known: fields of the message, as for make_walk_state.

    Returns:
        Two lists of numbers that are contiguous in the message.
    """
    error = dist(known.get("com", UNKNOWN), known.get("com_reference", UNKNOWN))
    runs, given = [], known | {"com_error": error}
    for sizes in _RUNS:
        runs.append(run := list[float]())
        for name, size in sizes.items():
            value = given.get(name)
            run += (
                [nan] * size
                if value is None
                else [value]
                if size == 1
                else value.tolist()
            )
    return runs
