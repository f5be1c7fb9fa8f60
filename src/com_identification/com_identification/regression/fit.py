"""The fit behind an identification: linearise, solve, adapt, check, find what is wrong."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from com_identification.exceptions import PostureError
from com_identification.regression.observations import ObservationModel
from com_identification.regression.posterior import (
    Posterior,
    Rows,
    WhitenedParameters,
    adapt,
    bound,
    condition,
    consistency,
    gross_error,
    likeliest_cause,
    prior_posterior,
    reweight,
    scale_noise,
    tempering,
)
from com_identification.regression.postures import Posture
from com_identification.regression.statics import prediction_rows
from com_model.arrays import Array

Progress = Callable[[float, str], None]
"""Receives the fraction of the time that is over, 0 to 1, and the present step in words."""
FITTED = 0.7  # progress at which the fit is done
OUTLIER = 0.5  # weight
_ROUNDS = 3  # of linearisation
_CONVERGED = 1e-2  # prior standard deviations


@dataclass(frozen=True, eq=False)
class Fit:
    """The rows at the estimate, and what they say with adapted scales."""

    rows: Rows  # linearised about the estimate
    posterior: Posterior  # with adapted scales
    covariance: Array  # (U, U) of x, tempered
    x: Array  # (U,) within the bounds
    errors: Array  # (S,) constant errors of the sensors
    stds: Array  # (S,) of those
    at_bound: tuple[int, ...]  # bodies at a bound
    consistency: tuple[float, float]  # mean square of the deviation from the priors, and its limit
    cause: str  # the likeliest one where the limit is exceeded
    target: Array  # (3 P, U) the horizontal CoM in the postures by x, m
    tempering: float  # see Identification


def fit_postures(
    observations: ObservationModel,
    whitened: WhitenedParameters,
    postures: Sequence[Posture],
    progress: Progress,
) -> Fit:
    """The most probable bodies and errors of the sensors, and what the readings say of them."""
    x, e = np.zeros(whitened.count), np.zeros(observations.errors.count)
    for done in range(_ROUNDS):
        step = f"fitting {len(postures)} postures, round {done + 1} of at most {_ROUNDS}"
        progress(FITTED * done / (_ROUNDS + 2), step)
        rows = _rows(observations, whitened, postures, x, e)
        found = reweight(rows, prior_posterior(rows))
        before = x
        x, _ = bound(found.x, found.covariance, whitened)
        e, _ = sensor_errors(observations, rows, found)
        if np.abs(x - before).max() < _CONVERGED * max(1.0, np.abs(x).max()):
            break
    progress(FITTED * _ROUNDS / (_ROUNDS + 2), "how large the errors of the sensors are")
    fits = 1.0 / found.inflation >= OUTLIER
    touched = found.inflation
    if 2 * fits.sum() < len(fits):  # a model that fits nowhere is no reason to leave postures out
        fits, touched = np.ones(len(fits), dtype=np.bool_), np.ones(len(fits))
    plain = condition(rows, dict.fromkeys(rows.classes, 1.0), touched)
    checked = consistency(rows, plain, fits)
    cause = _cause(observations, rows, plain, checked[0] > checked[1])
    found = reweight(rows, adapt(rows, found))
    x, at_bound = bound(found.x, found.covariance, whitened)
    e, stds = sensor_errors(observations, rows, found)
    target = _target(observations, whitened, postures, x)
    factor = tempering(rows, found, target)
    covariance = scale_noise(found.covariance, factor)
    return Fit(rows, found, covariance, x, e, stds, at_bound, checked, cause, target, factor)


def _rows(
    observations: ObservationModel,
    whitened: WhitenedParameters,
    postures: Sequence[Posture],
    x: Array,
    e: Array,
) -> Rows:
    linear = []
    for index, posture in enumerate(postures):
        try:
            linear.append(observations.linearize(posture, whitened.values(x), e))
        except PostureError as error:
            raise PostureError(error.problem, index) from error
    return Rows.stack(linear, whitened, observations.errors, x, e)


def sensor_errors(
    observations: ObservationModel, rows: Rows, found: Posterior
) -> tuple[Array, Array]:
    """Returns constant errors of the sensors and their standard deviations, (S,) each."""
    errors, (values, stds) = observations.errors, found.errors(rows)
    both = np.zeros((2, errors.count))
    for kind in values:
        part = errors.kinds[kind]
        both[:, part] = errors.stds[part] * [values[kind], stds[kind]]
    return both[0], both[1]


def _target(
    observations: ObservationModel,
    whitened: WhitenedParameters,
    postures: Sequence[Posture],
    x: Array,
) -> Array:
    """The horizontal CoM in the root's axes by x, (3 P, U) m."""
    poses = observations.statics.poses(np.array([posture.q for posture in postures]))
    up = np.array([observations.up_direction(posture) for posture in postures])
    known = np.isfinite(up).all(axis=1)
    slopes = prediction_rows(
        observations.statics, poses, np.where(known[:, None], up, 0.0), whitened.values(x)
    )
    return np.asarray(slopes.reshape(-1, slopes.shape[2]) @ whitened.factor)


def _cause(observations: ObservationModel, rows: Rows, found: Posterior, alarm: bool) -> str:
    """The likeliest cause of errors larger than the priors, in words; empty where there is none."""
    gross = gross_error(rows, found)
    if gross is not None:
        kind, ratio, place = gross
        index = observations.errors.kinds[kind].start + place
        name, size = observations.errors.names[index][1], ratio * observations.errors.stds[index]
        return f"{_CAUSES[kind]}: {name}, about {size:.2g}, {ratio:.0f} times sensors.{kind}"
    if not alarm:
        return ""
    kind, ratio = likeliest_cause(rows, found)
    if kind == "bodies":
        return f"masses and centres of mass, about {ratio:.0f} times as wrong as prior.* says"
    return f"{_CAUSES[kind]}, about {ratio:.0f} times as large as sensors.* says"


_CAUSES = {
    "force_bias": "biases of the force sensors",
    "moment_bias": "biases of the moment sensors",
    "wrench_gain": "gains of the force sensors",
    "crosstalk": "crosstalk of the force sensors",
    "sensor_position": "positions of the force sensors",
    "sensor_rotation": "orientations of the force sensors",
    "joint_offset": "zero offsets of the encoders",
    "compliance": "elasticity of the joints",
    "effort_gain": "gains of the joint efforts",
    "effort_offset": "biases of the joint efforts",
    "slope": "the slope of the floor",
    "tilt": "the mounting of the IMU",
    "joint_repeatability": "backlash of the joints",
    "unevenness": "an uneven floor",
    "soles": "soles that are not flat on one floor",
    "friction": "friction of the joints",
    "drift": "drift of the force sensors",
}
