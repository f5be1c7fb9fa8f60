"""What postures may be proposed, and what one that is proposed looks like."""

from __future__ import annotations

from dataclasses import dataclass
from math import pi

from com_identification.exceptions import IdentificationError
from com_model.arrays import Array, freeze

CRITERIA = ("parameters", "prediction")


@dataclass(frozen=True)
class PlanOptions:
    """What postures may be proposed, and which count as telling.

    Attributes:
        candidates: How many postures to choose from.
        refinements: How many changes of each chosen posture are tried.
        margin: m, of the URDF's CoM inside the support polygon; more than the URDF may be off by.
        limit_share: Share of each joint's range, about its middle, that is used.
        clearance: m, between the boxes of links that are no neighbours.
        stands: Which feet stand, as indices, in turn; all feet by default.
        efforts: Whether joint efforts are read too.
        seed: Of the random postures.
        keep_feet: Whether feet that stand keep the places to each other that they have in the
            posture of rest, so that the robot comes from one posture to the next without a step.
        effort_share: Share of the URDF's effort limits that the joints may need to hold the
            posture; 0: not looked at. Limits of 0 count as not known.
        most_tilt: rad, by which the root may lean more than in the posture of rest; robots that
            bow deeply tell much, but hardly anybody wants to see theirs do so.
        criterion: "parameters": the volume of the uncertainty of all that is unknown is to be
            small. "prediction": the mean variance of the CoM in postures like the candidates.
    """

    candidates: int = 200
    refinements: int = 30
    margin: float = 0.015
    limit_share: float = 0.95
    clearance: float = 0.005
    stands: tuple[tuple[int, ...], ...] = ()
    efforts: bool = False
    seed: int = 0
    keep_feet: bool = False
    effort_share: float = 0.9
    most_tilt: float = pi
    criterion: str = "parameters"

    def __post_init__(self) -> None:
        if self.criterion not in CRITERIA:
            raise IdentificationError(
                f"criterion: expected one of {', '.join(CRITERIA)}, got {self.criterion!r}"
            )
        if not self.effort_share >= 0.0:
            raise IdentificationError(
                f"effort_share: expected a share of the limits, 0 or more, got {self.effort_share}"
            )
        if not self.most_tilt > 0.0:
            raise IdentificationError(
                f"most_tilt: expected an angle above 0 rad, got {self.most_tilt}"
            )


@dataclass(frozen=True, eq=False)
class PlannedPosture:
    """A posture to take.

    Attributes:
        q: (n,) rad or m.
        feet: Names of the soles that stand.
        margin: m, of the URDF's CoM inside their polygon.
        gain: Nats that it takes off the uncertainty, after those before it.
    """

    q: Array
    feet: tuple[str, ...]
    margin: float
    gain: float

    def __post_init__(self) -> None:
        freeze(self)
