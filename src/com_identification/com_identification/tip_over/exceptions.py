"""Errors of the posture protocol: what was got, what was expected, what to do about it."""

from __future__ import annotations


class ProtocolError(Exception):
    """Root of all errors that the posture protocol raises on purpose."""


class RefusedFitError(ProtocolError):
    """A fit that explains the data by what no robot can be.

    Attributes:
        reasons: One sentence each.
    """

    def __init__(self, reasons: tuple[str, ...]) -> None:
        super().__init__("the fit is refused: " + "; ".join(reasons))
        self.reasons = reasons
