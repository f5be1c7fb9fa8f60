"""Errors of com_ros: one root; each message says how to fix the problem."""

from com_model.exceptions import ComModelError


class ComRosError(ComModelError):
    """Root of all errors of com_ros; `com_ros.main.run` reports them without a traceback."""


class ConversionError(ComRosError, ValueError):
    """A message contains no usable value, or an array has the wrong shape."""


class ParameterError(ComRosError):
    """A parameter has a value that the node cannot work with.

    Args:
        name: of the parameter.
        got: its value.
        fix: what to give instead.
    """

    def __init__(self, name: str, got: object, fix: str) -> None:
        self.name = name
        self.got = got
        self.fix = fix
        super().__init__(f"parameter '{name}' is {got!r}: {fix}")
