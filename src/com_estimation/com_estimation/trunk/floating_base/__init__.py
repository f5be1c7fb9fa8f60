"""The trunk of a quadruped from the base rows of its dynamics, in every phase of its gait."""

from com_estimation.trunk.floating_base.estimator import (
    FloatingBaseEstimator as FloatingBaseEstimator,
)
from com_estimation.trunk.floating_base.options import (
    FloatingBaseOptions as FloatingBaseOptions,
)
