"""Forces of the ground and which feet stand, at a rate of their own, by a method that is chosen.

They do not depend on an estimator, so that they are known while its samples are held back.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from com_estimation.trunk.contact_detection import CONTACT_LOAD, ContactState
from com_estimation.trunk.ground_reaction import GroundReaction, ReactionSource
from com_estimation.trunk.interface import Sample
from com_estimation.trunk.motion import Motion, MotionFilter
from com_model import RobotConfig, RobotModel
from com_model.arrays import Flags
from com_model.dynamics import GRAVITY
from com_model.legs import Leg

BANDWIDTH = 250.0  # rad/s, of the filter that all signals go through
SLACK = 1e-4  # s that a sample may be early and still count as due


class ForceMeter:
    """Measures the forces of the ground on four feet.

    Args:
        method: "torque", "inverse_dynamics" or "sensor".
        rate_hz: 1/s, samples that are used; the others are skipped.
        contact_load: See ContactState.
        bandwidth: rad/s, of the filter.

    Attributes:
        latest: Forces at the last sample that was used.
        points: (4, 3) m, where the feet touch the ground, root frame.
        motion: The filtered motion then; None before the first one.
        tilt: rad, of the root link against gravity; NaN when not known.
        load: Of the robot's weight that the feet carry together; NaN when not known.
    """

    def __init__(
        self,
        model: RobotModel,
        config: RobotConfig,
        legs: Sequence[Leg],
        method: str,
        rate_hz: float = 200.0,
        contact_load: float = CONTACT_LOAD,
        bandwidth: float = BANDWIDTH,
    ) -> None:
        self._filter = MotionFilter(model, config, bandwidth)
        armature = config.servo.armature(model.joint_names)
        self._source = ReactionSource(model, legs, method, armature)
        self._weight = model.mass * GRAVITY
        self._contact = ContactState(self._weight, contact_load, len(legs))
        self._period = 1.0 / rate_hz
        self.reset()

    def reset(self) -> None:
        """Forget all samples."""
        self._filter.reset()
        self._contact.reset()
        self._time = -np.inf
        self.tilt = self.load = np.nan
        self.motion: Motion | None = None
        self.latest = self._source.unknown()
        self.points = np.full((len(self.latest.forces), 3), np.nan)

    @property
    def known(self) -> Flags:
        """(4,) the feet of which it is known whether they stand."""
        return self._contact.known

    def update(self, sample: Sample) -> GroundReaction | None:
        """Take in a sample; None when it is not due, or has the time of the one before."""
        if 0.0 <= sample.time - self._time < self._period - SLACK:
            return None
        self._time = sample.time
        motion = self._filter.update(sample)
        if motion is None:
            return None
        self.motion = motion
        found, self.points = self._source.at(motion)
        level = not np.isfinite(motion.up).all()
        up = np.array([0.0, 0.0, 1.0]) if level else motion.up
        self.tilt = np.nan if level else float(np.arccos(np.clip(up[2], -1.0, 1.0)))
        loads = found.forces @ up
        self.load = float(loads.sum()) / self._weight
        self.latest = replace(found, contact=self._contact.update(sample.time, loads))
        return self.latest
