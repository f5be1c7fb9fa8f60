"""How still postures are found in streams of readings, and what is said of them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import IntEnum

import numpy as np

from com_identification.exceptions import IdentificationError
from com_identification.regression.postures import Posture
from com_model.arrays import Array, freeze

NS_PER_S = 1_000_000_000


@dataclass(frozen=True)
class CaptureOptions:
    """When a robot is still, and how many readings make a posture.

    Time is cut into slices. Thresholds hold beyond the sensors' noise: within a slice the spread of
    readings may exceed them by 10 deviations, between slices the means by 10 deviations of a mean.

    Attributes:
        samples: Readings of each stream that a posture needs at least.
        most_samples: From so many on, a still interval is finished; the newest so many count.
        still_time: s, how long the robot must be still before the first reading counts.
        slice_time: s; each stream must speak at least once in each slice.
        joint_travel: rad or m, of a joint within a slice.
        joint_drift: rad or m, of a joint's mean over a still interval.
        force_travel: Share of the robot's weight, of a force within a slice.
        force_drift: Share of the weight, of a force's mean over a still interval.
        pressure_travel: m, of a moment over the weight within a slice.
        pressure_drift: m, of a moment's mean over the weight over a still interval.
        tilt_travel: 1, of a component of the direction against gravity within a slice.
        tilt_drift: 1, of its mean over a still interval.
        timeout: s behind the newest reading of all, from which a stream is called silent.
        lag: s that streams may be behind each other when they are fed; then they are left out.
        jump_back: s; a stamp that is older than the newest by more starts anew.
        frozen_time: s, from which a force sensor or an IMU that repeats itself bit for bit is
            called frozen; 0: never, for simulations without noise.
        force_limit: N, of each axis, where a sensor saturates; 0: not known.
        moment_limit: N m, of each axis; 0: not known.
        least_load: Share of the weight that the feet must carry together.
        foot_load: Share of the weight from which a foot stands.
        all_feet: Whether every foot must stand.
        silent_feet: Whether a posture may be taken without some feet's readings, which then are
            NaN.
        least_change: rad or m, of some joint against the interval before, without which a still
            interval is no new posture; 0: each is.
    """

    samples: int = 100
    most_samples: int = 1000
    still_time: float = 0.5
    slice_time: float = 0.1
    joint_travel: float = 0.003
    joint_drift: float = 0.003
    force_travel: float = 0.05
    force_drift: float = 0.01
    pressure_travel: float = 0.01
    pressure_drift: float = 0.003
    tilt_travel: float = 0.01
    tilt_drift: float = 0.003
    timeout: float = 0.5
    lag: float = 2.0
    jump_back: float = 1.0
    frozen_time: float = 0.5
    force_limit: float = 0.0
    moment_limit: float = 0.0
    least_load: float = 0.05
    foot_load: float = 0.02
    all_feet: bool = False
    silent_feet: bool = False
    least_change: float = 0.01

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if not (np.isfinite(value) and value >= 0.0):
                raise IdentificationError(f"{item.name}: expected 0 or more, got {value}")
        if not 1 <= self.samples <= self.most_samples:
            raise IdentificationError(
                f"samples: expected 1 to most_samples ({self.most_samples}), got {self.samples}"
            )
        if not 1e-3 <= self.slice_time <= 10.0:
            raise IdentificationError(
                f"slice_time: expected 0.001 to 10 s, got {self.slice_time:g}"
            )


class CaptureStatus(IntEnum):
    """What a recorder is doing."""

    UNKNOWN = 0
    """No reading yet."""
    WAITING = 1
    """Some stream is silent."""
    MOVING = 2
    """The robot moves, or its forces or its tilt do."""
    SETTLING = 3
    """It is still, but not for long enough."""
    REFUSED = 4
    """It is still, but a sensor is saturated or frozen, or the feet do not stand."""
    COLLECTING = 5
    """Readings count, but there are too few yet."""
    READY = 6
    """A posture can be taken."""


@dataclass(frozen=True)
class Dropped:
    """Readings that were left out, of all streams.

    Attributes:
        late: Older than the stream's newest.
        repeated: With the stamp of the one before.
        unusable: NaN, infinite, or no unit vector.
        restarts: How often time jumped back and all began anew.
    """

    late: int = 0
    repeated: int = 0
    unusable: int = 0
    restarts: int = 0


@dataclass(frozen=True, eq=False)
class CaptureState:
    """What a recorder sees now.

    Attributes:
        status: See CaptureStatus.
        reasons: Why no posture can be taken and how to fix it, a sentence each; empty when READY.
        samples: Readings that count so far, of the stream with the fewest.
        needed: How many there must be.
        still_for: s that the robot has been still.
        loads: (f,) N, magnitude of each foot's force in the newest slice; NaN where not known.
        dropped: Readings that were left out so far.
    """

    status: CaptureStatus
    reasons: tuple[str, ...]
    samples: int
    needed: int
    still_for: float
    loads: Array
    dropped: Dropped

    def __post_init__(self) -> None:
        freeze(self)

    @property
    def ready(self) -> bool:
        """Whether a posture can be taken."""
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
class StillInterval:
    """A still interval that is over, or a mark.

    Attributes:
        t0_ns: Stamp of the first reading that counts, ns.
        t1_ns: Of the last.
        posture: Means of its readings; None where it gives none.
        reasons: Why not.
        label: Of the mark.
    """

    t0_ns: int
    t1_ns: int
    posture: Posture | None
    reasons: tuple[str, ...] = ()
    label: str = ""
