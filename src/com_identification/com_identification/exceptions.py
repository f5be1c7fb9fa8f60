"""Errors of the identification: what was got, what was expected, what to do about it."""

from com_model.exceptions import ComModelError


class IdentificationError(ComModelError):
    """Root of all errors that the identification raises on purpose."""


class PostureError(IdentificationError):
    """A posture's readings cannot be used; `index` is its place among others, -1 if alone."""

    def __init__(self, problem: str, index: int = -1) -> None:
        super().__init__(problem if index < 0 else f"posture {index}: {problem}")
        self.index = index
        self.problem = problem


class CaptureRefused(IdentificationError):  # noqa: N818 (a refusal, not a fault)
    """No posture can be taken now; `reasons` has a sentence for each, and how to fix it."""

    def __init__(self, *reasons: str) -> None:
        super().__init__(" ".join(reasons))
        self.reasons = reasons


class WalkError(IdentificationError):
    """Recordings of walking that cannot be used."""


class StoreError(IdentificationError):
    """The file of postures cannot be read or written; what it holds is as it was."""


class OutputError(IdentificationError):
    """A result cannot be written where it was asked for; nothing was written."""


class ProtocolError(IdentificationError):
    """Root of all errors that the posture protocol raises on purpose."""


class RefusedFitError(ProtocolError):
    """A fit that explains the data by what no robot can be; `reasons` has one sentence each."""

    def __init__(self, *reasons: str) -> None:
        super().__init__("the fit is refused: " + "; ".join(reasons))
        self.reasons = reasons


class HealthError(IdentificationError):
    """The record of a robot cannot be read or written; what it contains is as it was."""
