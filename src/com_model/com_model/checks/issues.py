"""What a check of a model or of a configuration reports."""

from dataclasses import dataclass

SEVERITIES = ("error", "warning", "info")


@dataclass(frozen=True)
class Correction:
    """A change of a URDF that is beyond doubt, see corrections.

    Attributes:
        what: "masses", "inertias" (kg, kg m^2, of all links) or "limits" (rad, of all revolute
            joints) are multiplied by the factor; "no mass": links lose their <inertial>.
        factor: By which values are multiplied.
        links: That lose their <inertial>.
    """

    what: str
    factor: float = 1.0
    links: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.links:
            return f"deleted the <inertial> of {', '.join(self.links)}"
        return f"multiplied all {self.what} by {self.factor:.6g}"


@dataclass(frozen=True)
class Issue:
    """One thing that is wrong with a model, or may be.

    Attributes:
        severity: "error": results or simulations are wrong; "warning": probably; "info": look.
        element: The element of the URDF, with its line where it is one.
        message: What is wrong.
        fix: What to do about it.
        correction: The same for a program, where it is beyond doubt.
    """

    severity: str
    element: str
    message: str
    fix: str
    correction: Correction | None = None
