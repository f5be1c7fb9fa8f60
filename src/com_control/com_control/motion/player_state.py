"""What a player of motions does, how, and what it asks of the joints."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from com_model.arrays import Array, freeze


class State(IntEnum):
    """What a player does; the numbers are those of com_msgs/MotionState."""

    UNKNOWN = 0
    EMPTY = 1
    READY = 2
    REFUSED = 3
    APPROACHING = 4
    PLAYING = 5
    PAUSING = 6
    PAUSED = 7
    STOPPING = 8
    FINISHED = 9


MOVING = (State.APPROACHING, State.PLAYING, State.PAUSING, State.STOPPING)
UNDER_WAY = (*MOVING, State.PAUSED)


@dataclass(frozen=True)
class PlayerOptions:
    """How a motion is played.

    Attributes:
        horizon: s, by which targets are ahead of the time that they are computed at.
        stop_time: s, from full pace to rest and back.
        lead_share: Share of the limits of velocity and acceleration on the way to the first row.
        following_error: rad or m, of a joint from its target; beyond, the motion stops.
        timeout: s between two steps; after a longer silence the motion stops.
    """

    horizon: float = 0.05
    stop_time: float = 0.5
    lead_share: float = 0.1
    following_error: float = 0.35
    timeout: float = 0.2


@dataclass(frozen=True, eq=False)
class Targets:
    """What the joints are to do next; arrays are read-only.

    Attributes:
        joints: k names, those that the motion drives.
        after: (m,) s after the time of the step, rising.
        positions: (m, k) rad or m.
        velocities: (m, k) rad/s or m/s; those of the last one are 0.
    """

    joints: tuple[str, ...]
    after: Array
    positions: Array
    velocities: Array

    def __post_init__(self) -> None:
        freeze(self)
