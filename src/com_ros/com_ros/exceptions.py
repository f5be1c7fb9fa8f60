"""Errors of com_ros: one root, and the message always tells the mend."""


class ComRosError(Exception):
    """Root of what com_ros raises; `com_ros.main.run` ends a node with its message, not a trace."""


class ConversionError(ComRosError, ValueError):
    """A message holds no usable value (or an array has the wrong shape)."""


class ParameterError(ComRosError):
    """A parameter has a value that the node cannot work with.

    Attributes:
        name: of the parameter.
        got: the value that was given.
        mend: what to give instead.
    """

    def __init__(self, name: str, got: object, mend: str) -> None:
        self.name = name
        self.got = got
        self.mend = mend
        super().__init__(f"parameter '{name}' is {got!r}: {mend}")
