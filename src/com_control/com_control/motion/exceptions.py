"""Errors of motion files: what was got, what was expected, what to do about it."""

from __future__ import annotations

from com_control.exceptions import ComControlError


class MotionError(ComControlError):
    """A motion or its file cannot be used.

    Attributes:
        row: Number of the row, from 1; 0 where it is not one row's fault.
    """

    def __init__(self, message: str, row: int = 0) -> None:
        super().__init__(message)
        self.row = row
