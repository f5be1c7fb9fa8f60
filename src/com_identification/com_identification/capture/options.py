"""What a recorder of postures reports."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from com_identification.exceptions import IdentificationError
from com_identification.regression.postures import Posture
from com_model.arrays import Array, freeze

NS_PER_S = 1_000_000_000


class CaptureStatus(IntEnum):
    """State of a recorder; the values are those of com_msgs/IdentificationState."""

    UNKNOWN = 0
    """No reading yet."""
    WAITING = 1
    """Some stream is timed out."""
    MOVING = 2
    """The robot moves, or its forces or its tilt change."""
    SETTLING = 3
    """It is stationary, but not for long enough."""
    REFUSED = 4
    """It is stationary, but a sensor is saturated or frozen, or feet have no contact."""
    COLLECTING = 5
    """Readings count, but there are too few so far."""
    READY = 6
    """A posture can be captured."""


@dataclass(frozen=True)
class DroppedReadings:
    """Readings that were left out, of all streams.

    Attributes:
        late: Older than the stream's newest.
        repeated: With the stamp of the one before.
        unusable: NaN, infinite, or no unit vector.
        restarts: How often time jumped back and the recorder restarted.
    """

    late: int = 0
    repeated: int = 0
    unusable: int = 0
    restarts: int = 0


@dataclass(frozen=True, eq=False)
class CaptureState:
    """What a recorder reports now.

    Attributes:
        status: See CaptureStatus.
        reasons: Why no posture can be captured and how to fix it, sentences; empty when READY.
        samples: Readings that count so far, of the stream with the fewest.
        needed: Number of readings that a posture needs.
        stationary_for: s that the robot has been stationary.
        loads: (f,) N, magnitude of each foot's force in the newest slice; NaN where unknown.
        dropped: Readings that were left out so far.
    """

    status: CaptureStatus
    reasons: tuple[str, ...]
    samples: int
    needed: int
    stationary_for: float
    loads: Array
    dropped: DroppedReadings

    def __post_init__(self) -> None:
        freeze(self)

    @property
    def ready(self) -> bool:
        """Whether a posture can be captured."""
        return self.status == CaptureStatus.READY


@dataclass(frozen=True)
class Mark:
    """A part of a recording that somebody marked as a posture.

    Attributes:
        t0_ns: First stamp, ns.
        t1_ns: Last stamp, ns.
        label: A name.
    """

    t0_ns: int
    t1_ns: int
    label: str = ""

    def __post_init__(self) -> None:
        if not self.t0_ns < self.t1_ns:
            raise IdentificationError(
                f"mark {self.label!r}: it ends ({self.t1_ns} ns) before it begins ({self.t0_ns} ns)"
            )


@dataclass(frozen=True, eq=False)
class StationaryInterval:
    """A stationary interval that has ended, or a mark.

    Attributes:
        t0_ns: Stamp of the first reading that counts, ns.
        t1_ns: Of the last.
        posture: Means of its readings; None where it cannot be used.
        reasons: Why not.
        label: Of the mark.
    """

    t0_ns: int
    t1_ns: int
    posture: Posture | None
    reasons: tuple[str, ...] = ()
    label: str = ""
