"""The message of the control of the CoM <-> plain values; rules as in com_ros.conversions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time

from com_msgs.msg import BalanceState
from com_ros.conversions import Array, numpy_to_point, point_to_numpy


def _unknown() -> Array:
    return np.full(3, np.nan)


@dataclass(frozen=True, eq=False)
class BalanceValues:
    """A BalanceState message, without its header; the names are the message's, NaN: not known.

    Attributes:
        state: BalanceState's number.
        reason: Why it holds, or what limits it.
        feet: That stand.
        com_desired: (3,) m, in the balance frame, as the next two.
        com_reference: (3,) m.
        com: (3,) m.
        com_error: m.
        held_at_margin: The desired CoM is outside the margin.
        limited: Some joint is at a limit.
        support_margin: m.
        slope: rad.
        beyond_friction: The slope is steeper than the friction cone.
    """

    state: int
    reason: str = ""
    feet: tuple[str, ...] = ()
    com_desired: Array = field(default_factory=_unknown)
    com_reference: Array = field(default_factory=_unknown)
    com: Array = field(default_factory=_unknown)
    com_error: float = float("nan")
    held_at_margin: bool = False
    limited: bool = False
    support_margin: float = float("nan")
    slope: float = float("nan")
    beyond_friction: bool = False


_POINTS = ("com_desired", "com_reference", "com")
_FLAGS = ("held_at_margin", "limited", "beyond_friction")
_NUMBERS = ("com_error", "support_margin", "slope")


def values_to_balance_state(values: BalanceValues, stamp: Time, frame: str) -> BalanceState:
    """BalanceState message of values."""
    msg = BalanceState(state=int(values.state), reason=values.reason, feet=list(values.feet))
    msg.header.stamp, msg.header.frame_id = stamp, frame
    for name in _POINTS:
        numpy_to_point(getattr(values, name), getattr(msg, name))
    for name in _FLAGS:
        setattr(msg, name, bool(getattr(values, name)))
    for name in _NUMBERS:
        setattr(msg, name, float(getattr(values, name)))
    return msg


def balance_state_to_values(msg: BalanceState) -> BalanceValues:
    """Values of a BalanceState message."""
    values: dict[str, Any] = {name: point_to_numpy(getattr(msg, name)) for name in _POINTS}
    values |= {name: getattr(msg, name) for name in (*_FLAGS, *_NUMBERS)}
    return BalanceValues(msg.state, msg.reason, tuple(msg.feet), **values)
