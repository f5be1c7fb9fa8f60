"""Finds still postures in streams of readings, live or from a recording: one code for both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from com_estimation.identification.capture_options import (
    CaptureOptions,
    CaptureState,
    Dropped,
    Mark,
    StillInterval,
)
from com_estimation.identification.postures import Posture, SensorNoise
from com_model import Foot, RobotModel
from com_model.arrays import Array

Times = NDArray[np.int64]


class PostureRecorder:
    """Takes streams of readings and gives one posture for each time that the robot is still.

    Streams may come in blocks of any length, each in the order of its stamps. Live, a block is one
    reading; from a recording, blocks of up to options.lag seconds of each stream in turn. Memory
    does not grow with the recording.

    Args:
        model: The robot.
        feet: Its feet with their force sensors, in the order of the postures' wrenches.
        options: See CaptureOptions.
        noise: Of one reading of each sensor; the thresholds of motion allow for it.
        use_effort: Whether postures hold joint efforts, where they are known.
        use_up: Whether a direction against gravity is read and needed. Without it the ground is
            taken for level.
        marks: Parts of the recording that are the postures, in order and apart from each other;
            then nothing else is looked at, and no still time is asked for before the first sample.
        gravity: m/s^2.

    Raises:
        IdentificationError: Marks overlap or are out of order.
    """

    def __init__(
        self,
        model: RobotModel,
        feet: Sequence[Foot],
        options: CaptureOptions | None = None,
        *,
        noise: SensorNoise | None = None,
        use_effort: bool = True,
        use_up: bool = False,
        marks: Sequence[Mark] = (),
        gravity: float = 9.81,
    ) -> None:
        raise NotImplementedError

    @property
    def dropped(self) -> Dropped:
        """Readings that were left out so far."""
        raise NotImplementedError

    @property
    def tally(self) -> Mapping[str, float]:
        """Seconds that the robot was still, and seconds lost by cause in words."""
        raise NotImplementedError

    def add_joints(self, t_ns: ArrayLike, Q: ArrayLike, effort: ArrayLike | None = None) -> None:
        """Takes joint states.

        Args:
            t_ns: (N,) stamps, ns.
            Q: (N, n) rad or m, in the order of the model's joints; rows with NaN are left out.
            effort: (N, n) N m or N; NaN where not known; None: all unknown.
        """
        raise NotImplementedError

    def add_wrenches(self, foot: int, t_ns: ArrayLike, W: ArrayLike) -> None:
        """Takes readings of a foot's force sensor, in its frame and with its sign.

        Args:
            foot: Index of the foot.
            t_ns: (N,) stamps, ns.
            W: (N, 6) force N and moment N m.
        """
        raise NotImplementedError

    def add_up(self, t_ns: ArrayLike, up: ArrayLike) -> None:
        """Takes directions against gravity.

        Args:
            t_ns: (N,) stamps, ns.
            up: (N, 3) unit vectors, root axes.
        """
        raise NotImplementedError

    def set_tare(self, offsets: ArrayLike) -> None:
        """Sets what is taken off the wrenches of postures from now on, (f, 6) as read."""
        raise NotImplementedError

    def state(self) -> CaptureState:
        """Tells what can be taken now and why not."""
        raise NotImplementedError

    def capture(self, label: str = "", samples: int | None = None) -> Posture:
        """Takes a posture of the newest readings; the next one needs new readings.

        Args:
            label: A name for it.
            samples: How many readings of each stream at least; options.samples by default.

        Raises:
            CaptureRefused: With the reasons of state().
        """
        raise NotImplementedError

    def latest(self, samples: int | None = None) -> Posture | None:
        """Means of the newest readings like capture(), but nothing is taken; None where refused."""
        raise NotImplementedError

    def unloaded_wrench(self, foot: int, samples: int | None = None) -> Array:
        """Averages a foot's sensor while the foot hangs still in the air: its offset (6,) as read.

        Raises:
            CaptureRefused: The robot is not still, or the foot carries load.
        """
        raise NotImplementedError

    def finished(self) -> list[StillInterval]:
        """Gives each still interval that has ended or has most_samples, once, in order.

        Intervals that gave no posture stand among them with the reasons.
        """
        raise NotImplementedError

    def flush(self) -> list[StillInterval]:
        """Ends the streams and gives the intervals that are left."""
        raise NotImplementedError
