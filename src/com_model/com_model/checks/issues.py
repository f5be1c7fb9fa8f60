"""What a check of a model or of a configuration reports."""

from dataclasses import dataclass

SEVERITIES = ("error", "warning", "info")


@dataclass(frozen=True)
class Issue:
    """One thing that is wrong with a model, or may be.

    Attributes:
        severity: "error": results or simulations are wrong; "warning": probably; "info": look.
        element: The element of the URDF, with its line where it is one.
        message: What is wrong.
        fix: What to do about it.
    """

    severity: str
    element: str
    message: str
    fix: str
