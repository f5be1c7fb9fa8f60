"""How far a number can be trusted: one vocabulary for maths, messages and nodes."""

from enum import IntEnum


class Status(IntEnum):
    """Of an estimate or a computed value; com_msgs has the same names and numbers as STATUS_*.

    The order of the numbers is no order of quality: compare with `in TRUSTED`, never with `<`.

    Attributes:
        UNKNOWN: no number; the reason says why.
        ESTIMATING: right within its covariance, which is still too large for walking.
        USABLE: good enough for walking: the robot's CoM in x, y to 1 % of leg length, 95 %.
        CONVERGED: the estimated body itself is known, too.
        DEGRADED: an input is missing or wrong; the reason says which, and since when.
        OK: computed from current inputs, nothing was estimated.
    """

    UNKNOWN = 0
    ESTIMATING = 1
    USABLE = 2
    CONVERGED = 3
    DEGRADED = 4
    OK = 5


TRUSTED = frozenset({Status.USABLE, Status.CONVERGED, Status.OK})
