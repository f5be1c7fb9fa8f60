"""The zero of a foot's force sensor, taken while the foot carries the whole robot."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from com_identification.exceptions import CaptureRefused
from com_identification.regression.postures import Posture
from com_identification.regression.prediction import Prediction
from com_identification.regression.priors import BodyPriors
from com_identification.regression.rows import RowBuilder
from com_model import Foot, RobotModel
from com_model.arrays import Array


def loaded_offset(
    model: RobotModel,
    feet: Sequence[Foot],
    posture: Posture,
    foot: int,
    priors: BodyPriors,
    gravity: float = 9.81,
) -> Array:
    """What a sensor reads too much, if the model is right.

    Args:
        model: The robot.
        feet: Its feet.
        posture: At rest on this foot alone.
        foot: Index of the foot.
        priors: Masses and centres of mass to believe in.
        gravity: m/s^2.

    Returns:
        (6,) N and N m in the sensor's frame, as read: what was read less what should be.

    Raises:
        CaptureRefused: Another foot carries too, or nothing is known of gravity.
    """
    builder = RowBuilder(model, feet, gravity=gravity)
    loaded = builder.loaded(posture)
    others = [other.frame for i, other in enumerate(feet) if loaded[i] and i != foot]
    if others:
        raise CaptureRefused(
            (
                f"{', '.join(others)} carries too: how the feet share the weight is not known; "
                f"lift it, so that {feet[foot].frame} carries all",
            )
        )
    up = builder.up_of(posture)
    if not np.isfinite(up).all():
        raise CaptureRefused(
            ("which way gravity points is not known: use an IMU, or a foot with a flat sole",)
        )
    prediction = Prediction(builder.statics, feet, priors.parameters, gravity)
    expected = prediction.posture(posture.q, up, (foot,), efforts=False, samples=1)
    return np.asarray(posture.wrenches[foot] - expected.wrenches[foot])
