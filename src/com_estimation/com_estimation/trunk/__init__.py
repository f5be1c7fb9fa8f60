"""Estimators of the mass and the centre of mass of a quadruped's trunk while it trots.

estimator = FloatingBaseEstimator(model, config)
estimate = estimator.update(sample)   # TrunkEstimate, or None between two
"""

from com_estimation.trunk.ding import DingEstimator, DingOptions
from com_estimation.trunk.floating_base import FloatingBaseEstimator
from com_estimation.trunk.ground_reaction import GroundReaction
from com_estimation.trunk.interface import (
    Sample,
    Status,
    TrunkEstimate,
    TrunkEstimator,
    unknown_estimate,
)
from com_estimation.trunk.pipeline import TrunkPipeline

__all__ = [
    "DingEstimator",
    "DingOptions",
    "FloatingBaseEstimator",
    "GroundReaction",
    "Sample",
    "Status",
    "TrunkEstimate",
    "TrunkEstimator",
    "TrunkPipeline",
    "unknown_estimate",
]
