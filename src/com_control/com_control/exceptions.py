"""Errors of this package: what was got, what was expected, how to fix it."""

from com_model.exceptions import ComModelError


class ComControlError(ComModelError):
    """Root of the package's errors."""


class GaitError(ComControlError):
    """A gait cannot be made or stepped as asked; the message says how to fix it."""


class BalanceError(ComControlError):
    """A robot cannot be balanced as asked; the message says how to fix it."""


class MotionError(ComControlError):
    """A motion or its file cannot be used.

    Attributes:
        row: Number of the row, from 1; 0 where it is not one row's fault.
    """

    def __init__(self, message: str, row: int = 0) -> None:
        super().__init__(message)
        self.row = row


class BipedError(ComControlError):
    """A robot does not fit what is asked of it; the message says how to fix it."""


class PlanError(ComControlError):
    """A walk cannot be planned as asked; the message says how to fix it.

    Attributes:
        step: Number of the footstep at fault, the first is 0; None where it is none of them.
    """

    def __init__(self, message: str, step: int | None = None) -> None:
        super().__init__(message if step is None else f"footstep {step}: {message}")
        self.step = step
