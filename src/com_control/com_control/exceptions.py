"""Errors of this package: the message says what was received, what was expected, how to fix it."""

from com_model.exceptions import ComModelError


class ComControlError(ComModelError):
    """Root of the package's errors."""


class GaitError(ComControlError):
    """A gait cannot be generated as requested."""


class BalanceError(ComControlError):
    """A robot cannot be balanced as requested."""


class MotionError(ComControlError):
    """A motion or its file cannot be used.

    Args:
        message: what is wrong and how to fix it.
        row: of the file, from 1; 0: no single row is the cause.

    Attributes:
        row: as given.
    """

    def __init__(self, message: str, row: int = 0) -> None:
        super().__init__(message)
        self.row = row


class BipedError(ComControlError):
    """A robot does not meet the requirements of walking on two legs."""


class PlanError(ComControlError):
    """A walk cannot be planned as requested.

    Args:
        message: what is wrong and how to fix it.
        step: index of the footstep that is the cause, from 0; None: no single one is.

    Attributes:
        step: as given.
    """

    def __init__(self, message: str, step: int | None = None) -> None:
        super().__init__(message if step is None else f"footstep {step}: {message}")
        self.step = step
