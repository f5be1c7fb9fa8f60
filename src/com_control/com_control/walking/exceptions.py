"""Errors of the walking part."""

from com_control.exceptions import ComControlError


class BipedError(ComControlError):
    """A robot does not fit what is asked of it; the message tells how to fix it."""


class PlanError(ComControlError):
    """A walk cannot be planned as asked; the message tells how to fix it.

    Attributes:
        step: Number of the footstep at fault, the first is 0; None where it is none of them.
    """

    def __init__(self, message: str, step: int | None = None) -> None:
        super().__init__(message if step is None else f"footstep {step}: {message}")
        self.step = step
