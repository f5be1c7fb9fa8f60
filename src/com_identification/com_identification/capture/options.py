"""When a robot counts as stationary, and what a recorder reports."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import IntEnum

import numpy as np

from com_identification.exceptions import IdentificationError
from com_identification.regression.postures import Posture
from com_model.arrays import Array, freeze
from com_model.parameters import NOT_NEGATIVE, parameter

NS_PER_S = 1_000_000_000


@dataclass(frozen=True)
class CaptureOptions:
    """When a robot counts as stationary, and how many readings make a posture.

    Time is cut into slices. Noise of the sensors comes on top of the thresholds: within a slice the
    range of readings may exceed them by 10 standard deviations, between slices that of the means by
    10 standard deviations of a mean.
    """

    samples: int = parameter(
        100, "Readings of each stream that a posture needs at least", (0, 10**9)
    )
    max_samples: int = parameter(
        1000,
        "With so many, a stationary interval is complete; the newest so many count",
        (0, 10**9),
    )
    settle_time: float = parameter(
        0.5,
        "s, how long the robot must be stationary before the first reading counts",
        NOT_NEGATIVE,
    )
    slice_time: float = parameter(
        0.1, "s; each stream must have at least one reading in each slice", NOT_NEGATIVE
    )
    joint_travel: float = parameter(0.003, "rad or m, of a joint within a slice", NOT_NEGATIVE)
    joint_drift: float = parameter(
        0.003, "rad or m, of a joint's mean over a stationary interval", NOT_NEGATIVE
    )
    force_travel: float = parameter(
        0.05, "Fraction of the robot's weight, of a force within a slice", NOT_NEGATIVE
    )
    force_drift: float = parameter(
        0.01, "Fraction of the weight, of a force's mean over a stationary interval", NOT_NEGATIVE
    )
    pressure_travel: float = parameter(
        0.01, "m, of a moment over the weight within a slice", NOT_NEGATIVE
    )
    pressure_drift: float = parameter(
        0.003, "m, of a moment's mean over the weight over a stationary interval", NOT_NEGATIVE
    )
    tilt_travel: float = parameter(
        0.01, "1, of a component of the direction against gravity within a slice", NOT_NEGATIVE
    )
    tilt_drift: float = parameter(0.003, "1, of its mean over a stationary interval", NOT_NEGATIVE)
    timeout: float = parameter(
        0.5, "s behind the newest reading of all, after which a stream is timed out", NOT_NEGATIVE
    )
    lag: float = parameter(
        2.0,
        "s that a stream may be behind the others; readings that come later are left out",
        NOT_NEGATIVE,
    )
    jump_back: float = parameter(
        1.0, "s; a stamp that is older than the newest by more restarts the recorder", NOT_NEGATIVE
    )
    frozen_time: float = parameter(
        0.5,
        "s, after which a force sensor or an IMU whose readings are identical counts as "
        "frozen; 0: never, for simulations without noise",
        NOT_NEGATIVE,
    )
    force_limit: float = parameter(
        0.0, "N, of each axis, where a sensor saturates; 0: unknown", NOT_NEGATIVE
    )
    moment_limit: float = parameter(0.0, "N m, of each axis; 0: unknown", NOT_NEGATIVE)
    min_load: float = parameter(
        0.05, "Fraction of the weight that the feet must carry together", NOT_NEGATIVE
    )
    min_foot_load: float = parameter(
        0.02, "Fraction of the weight above which a foot is in contact", NOT_NEGATIVE
    )
    all_feet: bool = parameter(False, "Whether every foot must be in contact")
    missing_feet: bool = parameter(
        False,
        "Whether a posture may be captured without the readings of some feet, which then are NaN",
    )
    min_change: float = parameter(
        0.01,
        "rad or m, the least change of some joint from the posture before that makes a "
        "new posture; 0: each stationary interval is one",
        NOT_NEGATIVE,
    )

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if not (np.isfinite(value) and value >= 0.0):
                raise IdentificationError(f"{item.name}: expected 0 or more, got {value}")
        if not 1 <= self.samples <= self.max_samples:
            raise IdentificationError(
                f"samples: expected 1 to max_samples ({self.max_samples}), got {self.samples}"
            )
        if not 1e-3 <= self.slice_time <= 10.0:
            raise IdentificationError(
                f"slice_time: expected 0.001 to 10 s, got {self.slice_time:g}"
            )


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
