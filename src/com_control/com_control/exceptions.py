"""Errors of this package: what was got, what was expected, how to fix it."""

from __future__ import annotations


class ComControlError(Exception):
    """Root of the package's errors."""


class GaitError(ComControlError):
    """A gait cannot be made or stepped as asked; the message tells how to fix it."""


class BalanceError(ComControlError):
    """A robot cannot be balanced as asked; the message tells how to fix it."""


class MotionError(ComControlError):
    """A motion or its file cannot be used.

    Attributes:
        row: Number of the row, from 1; 0 where it is not one row's fault.
    """

    def __init__(self, message: str, row: int = 0) -> None:
        super().__init__(message)
        self.row = row
