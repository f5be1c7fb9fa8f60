"""The centre of mass of the whole robot, its stance and its support.

observer = ComObserver(model, config.feet)
state = observer.update(q, qd)   # ComState
"""

from com_estimation.whole_body.com_state import (
    Attitude,
    ComObserver,
    ComState,
    Ground,
    Status,
    unknown_state,
)
from com_estimation.whole_body.stance import Feet, Stance, choose_feet

__all__ = [
    "Attitude",
    "ComObserver",
    "ComState",
    "Feet",
    "Ground",
    "Stance",
    "Status",
    "choose_feet",
    "unknown_state",
]
