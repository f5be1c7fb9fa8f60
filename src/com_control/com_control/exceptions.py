"""Errors of this package."""


class ComControlError(Exception):
    """Root of the package's errors."""


class GaitError(ComControlError):
    """A gait cannot be made or stepped as asked; the message tells how to fix it."""
