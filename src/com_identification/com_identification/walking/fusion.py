"""Walking and resting postures on foot force sensors as one regression.

What both have in common are the masses and first moments t of the bodies. With the estimate z and
covariance C of the walk and t = T z to first order, N(t, T C T^T) is the prior of the postures'
regression, in place of the URDF's. Its posterior N(t', C_t) conditions the walk's:

  K = C T^T (T C T^T)^+,   z' = z + K (t' - t),   C' = C - K (T C T^T - C_t) K^T

This equals a regression on the rows of both together, as long as their other unknowns are
different ones. Encoder biases, IMU mounting and torque gains of both are treated as different.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from com_identification.regression.identify import identify
from com_identification.regression.postures import Posture
from com_identification.regression.priors import BOUND_AXES, BodyPriors, body_priors
from com_identification.regression.result import by_body
from com_identification.settings import IdentificationSettings
from com_identification.walking.acceptance import AcceptanceTest
from com_identification.walking.identify import WalkResult
from com_identification.walking.kernels import BODY
from com_model import Foot


def fuse(
    walk: WalkResult,
    feet: Sequence[Foot],
    postures: Sequence[Posture],
    settings: IdentificationSettings,
) -> WalkResult:
    """Combines the result of a walk with resting postures on foot force sensors.

    Args:
        walk: the result of the walk.
        feet: with force sensors.
        postures: resting ones.
        settings: for the postures.

    Raises:
        IdentificationError: the postures cannot be used.
    """
    count = walk.model.bodies.count
    shared = (BODY * np.arange(count)[:, None] + np.arange(4)).ravel()
    T, t = walk.unknowns.jacobian(walk.z)[shared], walk.theta[:, :4].ravel()
    prior, bounds = T @ walk.covariance @ T.T, body_priors(walk.model, settings)
    mass, com, mass_std, com_std = by_body(t, prior)
    com = np.nan_to_num(com)
    along = com @ BOUND_AXES.T
    low, high = np.minimum(bounds.com_low, along), np.maximum(bounds.com_high, along)
    priors = BodyPriors(mass, com, mass_std, np.nan_to_num(com_std), low, high, prior)
    found = identify(walk.model, feet, postures, settings, priors)
    C_t = found.covariance
    # directions with less than 1e-10 of the largest variance are known
    K = walk.covariance @ T.T @ np.linalg.pinv(prior, rcond=1e-10, hermitian=True)
    covariance = walk.covariance - K @ (prior - C_t) @ K.T
    scatter, limit = found.variance_factor, found.variance_limit
    gate = AcceptanceTest(
        "agreement of walk and postures",
        f"residuals of {len(postures)} postures vary {scatter:.2f} times as the walk and the "
        f"sensors' errors allow, limit {limit:.2f}. {found.cause or 'A load may have changed'}",
        bool(scatter < limit),
    )
    known = [posture for posture in postures if posture.constraints]
    note = f"a known CoM in {len(known)} postures ({known[-1].label})" if known else ""
    return replace(
        walk,
        notes=(*walk.notes, *([f"{note} is part of the estimate"] if known else [])),
        z=walk.z + K @ (found.parameters - t),
        covariance=(covariance + covariance.T) / 2.0,
        gates=(*walk.gates, gate),
        postures=len(postures) - len(known),
    )
