"""Errors of the identification: each says what was got, what was expected and how to fix it."""

from com_model.exceptions import ComModelError


class IdentificationError(ComModelError):
    """Root of all errors of the identification."""


class PostureError(IdentificationError):
    """A posture's readings cannot be used.

    Args:
        problem: what is wrong and how to fix it.
        index: of the posture among others; -1 if it is alone.
    """

    def __init__(self, problem: str, index: int = -1) -> None:
        super().__init__(problem if index < 0 else f"posture {index}: {problem}")
        self.index = index
        self.problem = problem


class CaptureRefused(IdentificationError):  # noqa: N818 (a refusal, not a fault)
    """No posture can be captured now.

    Args:
        reasons: a sentence for each reason, with how to fix it.
    """

    def __init__(self, *reasons: str) -> None:
        super().__init__(" ".join(reasons))
        self.reasons = reasons


class WalkError(IdentificationError):
    """Recordings of walking cannot be used."""


class LogFitError(IdentificationError):
    """What the numbers of a log are cannot be told."""


class StoreError(IdentificationError):
    """The file of postures cannot be read or written; its contents are unchanged."""


class OutputError(IdentificationError):
    """A result cannot be written where it was requested; nothing was written."""


class ProtocolError(IdentificationError):
    """Root of all errors of the posture protocol."""


class RefusedFitError(ProtocolError):
    """A fit is refused because it explains the data by parameters that no robot can have.

    Args:
        reasons: one sentence each.
    """

    def __init__(self, *reasons: str) -> None:
        super().__init__("the fit is refused: " + "; ".join(reasons))
        self.reasons = reasons


class HealthError(IdentificationError):
    """The record of a robot cannot be read or written; its contents are unchanged."""
