"""How far a number can be trusted: one vocabulary for maths, messages and nodes."""

from enum import IntEnum


class Status(IntEnum):
    """Of an estimate or a computed value; com_msgs has the same names and numbers as STATUS_*.

    The order of the numbers is no order of quality: compare with `in TRUSTED`, never with `<`.
    """

    UNKNOWN = 0  # no number; the reason says why
    ESTIMATING = 1  # right within its covariance, which is still too large for walking
    USABLE = (
        2  # good enough for walking: the robot's CoM in x, y to 1 % of leg length, 95 %
    )
    CONVERGED = 3  # the estimated body itself is known, too
    DEGRADED = 4  # an input is missing or wrong; the reason says which, and since when
    OK = 5  # computed from current inputs, nothing was estimated


TRUSTED = frozenset({Status.USABLE, Status.CONVERGED, Status.OK})
