"""Errors of com_ros: one root, and the message always says how to fix it."""


class ComRosError(Exception):
    """Root of what com_ros raises; `com_ros.main.run` ends a node with its message, not a trace."""


class ConversionError(ComRosError, ValueError):
    """A message holds no usable value (or an array has the wrong shape)."""


class ParameterError(ComRosError):
    """A parameter has a value that the node cannot work with."""

    def __init__(self, name: str, got: object, fix: str) -> None:
        self.name = name
        self.got = got
        self.fix = fix
        super().__init__(f"parameter '{name}' is {got!r}: {fix}")
