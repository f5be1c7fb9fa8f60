"""Errors of the control of the centre of mass."""

from com_control.exceptions import ComControlError


class BalanceError(ComControlError):
    """A robot cannot be balanced as asked; the message tells how to fix it."""
