"""Estimators of the mass and the centre of mass of a quadruped's trunk while it trots.

estimator = FloatingBaseEstimator(model, config)
estimate = estimator.update(sample)   # TrunkEstimate, or None between two
"""

from com_estimation.trunk.ding import DingEstimator as DingEstimator
from com_estimation.trunk.ding import DingOptions as DingOptions
from com_estimation.trunk.floating_base import (
    FloatingBaseEstimator as FloatingBaseEstimator,
)
from com_estimation.trunk.ground_reaction import GroundReaction as GroundReaction
from com_estimation.trunk.interface import Sample as Sample
from com_estimation.trunk.interface import TrunkEstimate as TrunkEstimate
from com_estimation.trunk.interface import TrunkEstimator as TrunkEstimator
from com_estimation.trunk.interface import unknown_estimate as unknown_estimate
from com_estimation.trunk.pipeline import TrunkPipeline as TrunkPipeline
