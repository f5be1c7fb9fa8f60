"""Identifies masses and centres of mass of all bodies from static postures: one regression.

Readings of any kind (feet's wrenches, joint efforts, constraints on the CoM) of any number of
postures are linear in masses and first moments, and nearly so in the sensors' errors, all of which
are unknowns with priors. The most probable values are found by Gauss-Newton steps in data space
(posterior.py). docs/derivations.md has the equations.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from com_identification.exceptions import IdentificationError
from com_identification.regression.fit import (
    FITTED,
    OUTLIER,
    Fit,
    Progress,
    fit_postures,
    sensor_errors,
)
from com_identification.regression.identifiability import (
    Identifiability,
    examine,
    redundancy,
    stack_root,
)
from com_identification.regression.observations import ObservationModel
from com_identification.regression.posterior import WhitenedParameters, bound, held_out
from com_identification.regression.postures import Posture
from com_identification.regression.priors import BodyPriors, body_priors
from com_identification.settings import FitSettings, IdentificationSettings
from com_model import Foot, RobotModel
from com_model.arrays import Array, FrozenArrays

_HELD_OUT = 0.8  # progress at which this step begins


@dataclass(frozen=True)
class Residual:
    """Distance between the model's CoM and the feet's measurement of its horizontal position."""

    mean: float  # m, of the distances
    rms: float  # m
    maximum: float  # m
    count: int  # number of postures; where 0, the others are NaN

    @classmethod
    def from_distances(cls, distances: Array) -> "Residual":
        """Summarises distances (P,) in m; those that are NaN are left out."""
        distances = distances[np.isfinite(distances)]
        if not len(distances):
            return cls(np.nan, np.nan, np.nan, 0)
        rms = float(np.sqrt(np.mean(np.square(distances))))
        return cls(float(np.mean(distances)), rms, float(np.max(distances)), len(distances))


@dataclass(frozen=True)
class Residuals:
    """The residuals of one set of postures; see Identification."""

    prior_residual: Residual  # with the prior's parameters
    residual: Residual  # after the fit
    held_out: Residual  # of postures that were left out of the fit


@dataclass(frozen=True, eq=False)
class Identification(FrozenArrays):
    """Masses and centres of mass of a robot's bodies; arrays are read-only.

    A body is a link with all that fixed joints tie to it; its frame is that link's. Combinations
    that the data do not determine keep the prior's value and standard deviation.
    """

    bodies: tuple[str, ...]  # B names, of each body's first link
    mass: Array  # (B,) kg
    com: Array  # (B, 3) m, each in its body's frame; NaN of a body without mass
    mass_std: Array  # (B,) kg, standard deviations after the data
    com_std: Array  # (B, 3) m
    prior_mass: Array  # (B,) kg
    prior_com: Array  # (B, 3) m
    prior_mass_std: Array  # (B,) kg, standard deviations before the data
    prior_com_std: Array  # (B, 3) m
    parameters: Array  # (4 B,) m_k and h_k = m_k c_k, body by body
    covariance: Array  # (4 B, 4 B) of them
    total_mass: float  # kg
    total_mass_std: float  # kg
    # constant errors by kind and name, in the units of SensorErrors
    sensor_errors: Mapping[str, Mapping[str, float]]
    sensor_stds: Mapping[str, Mapping[str, float]]  # standard deviations of those
    sensor_prior_stds: Mapping[str, Mapping[str, float]]  # before the data
    identifiability: Identifiability  # rank, condition number, what stays unknown
    residual: Residual  # of the postures that were used, after the fit
    prior_residual: Residual  # the same with the prior's parameters
    held_out: Residual  # of postures that were left out of the fit; NaN if not asked for
    without_outliers: Residuals  # the three residuals without the outliers
    # m, standard deviation of the horizontal CoM in such postures, RMS length
    prediction_std: float
    prediction_shift: float  # m, between the URDF's CoM and the identified one, likewise
    # mean square of the readings' deviation from the URDF over what the priors allow: 1 or
    # less where the priors cover the errors
    variance_factor: float
    variance_limit: float  # above it the errors are larger than the priors
    cause: str  # the likeliest one in words where they are; else empty
    # standard deviation of each class of errors over its prior's, as the data have it
    scales: Mapping[str, float]
    # factor, 1 or more, by which the postures' information was divided, because their
    # residuals scatter more than expected
    tempering: float
    weights: Array  # (P,) of the postures; below 0.5 one counts as an outlier
    outliers: tuple[int, ...]  # indices of those
    # names of the bodies whose centre of mass is at a bound
    at_bound: tuple[str, ...] = field(default=())
    # a warning with the rank where the postures are few or redundant: what they do not determine
    # keeps the URDF's uncertainty
    redundancy: str = ""


def identify(
    model: RobotModel,
    feet: Sequence[Foot],
    postures: Sequence[Posture],
    settings: IdentificationSettings | None = None,
    priors: BodyPriors | None = None,
    progress: Progress | None = None,
) -> Identification:
    """Identifies a robot's masses and centres of mass from the readings of P postures.

    Efforts and directions of gravity are used only where the settings say so; what is known of the
    bodies before is by default what they say. `progress` is called before each step; what it raises
    ends the work.

    Raises:
        PostureError: Readings that cannot be used; names the posture.
        IdentificationError: There are no postures, or all parameters are known.
        ConfigError: The settings name a link that the model has not.
    """
    settings = settings or IdentificationSettings()
    priors = body_priors(model, settings) if priors is None else priors
    postures = [_usable(posture, settings.fit) for posture in postures]
    observations = ObservationModel(
        model, feet, settings.noise, settings.fit.gravity, settings.sensors
    )
    whitened = WhitenedParameters(priors)
    if not postures:
        raise IdentificationError("no postures: capture some first")
    if whitened.count == 0:
        raise IdentificationError(
            "all parameters are known: give a mass or CoM a standard deviation above 0"
        )
    progress = progress or (lambda fraction, step: None)
    fit = fit_postures(observations, whitened, postures, progress)
    progress(FITTED, f"which of {whitened.count} parameters are identifiable")
    informed = int(np.sum(np.linalg.eigvalsh(fit.posterior.covariance) < 0.5))
    Q = np.array([posture.q for posture in postures])
    up = np.array([observations.up_direction(posture) for posture in postures])
    root = stack_root([fit.posterior.root], whitened.count)
    found = examine(observations.statics, root, whitened.factor, informed, Q, up)
    by_noise = stack_root(fit.rows.noise_roots(), whitened.count)
    warning = redundancy(observations.statics, by_noise, whitened.factor, Q)
    left_out = _held_out(observations, whitened, postures, fit, settings.fit.folds, progress)
    progress(1.0, "done")
    result = _result(observations, whitened, postures, fit, found, left_out)
    return replace(result, redundancy=warning)


def _usable(posture: Posture, fit: FitSettings) -> Posture:
    """The posture without the readings that are not to be used."""
    if not fit.use_effort and np.isfinite(posture.effort).any():
        posture = replace(posture, effort=np.full(len(posture.effort), np.nan))
    if not fit.use_imu and np.isfinite(posture.up).any():
        posture = replace(posture, up=np.full(3, np.nan))
    return posture


def _held_out(
    observations: ObservationModel,
    whitened: WhitenedParameters,
    postures: Sequence[Posture],
    fit: Fit,
    folds: int,
    progress: Progress,
) -> Array:
    """Returns errors (P,) m of postures left out of the fit, fold by fold; NaN where not known."""
    gaps = np.full(len(postures), np.nan)
    folds = min(folds, len(postures))
    if folds < 2:
        return gaps
    for fold, rows, found in held_out(fit.rows, fit.posterior, folds):
        done = _HELD_OUT + (1.0 - _HELD_OUT) * fold / folds
        progress(done, f"predicting postures left out, part {fold + 1} of {folds}")
        x, _ = bound(found.x, found.covariance, whitened)
        values = whitened.values(x), sensor_errors(observations, rows, found)[0]
        gaps[fold::folds] = _com_errors(observations, postures[fold::folds], values)
    return gaps


def _result(
    observations: ObservationModel,
    whitened: WhitenedParameters,
    postures: Sequence[Posture],
    fit: Fit,
    identifiability: Identifiability,
    held_out: Array,
) -> Identification:
    factor, errors = whitened.factor, observations.errors
    theta = whitened.values(fit.x)
    covariance = factor @ fit.covariance @ factor.T
    mass, com, mass_std, com_std = by_body(theta, covariance)
    total = observations.statics.mass()
    start = whitened.priors.parameters, np.zeros(errors.count)
    before, after = (
        _com_errors(observations, postures, start),
        _com_errors(observations, postures, (theta, fit.errors)),
    )
    weights = 1.0 / fit.posterior.inflation
    fits = weights >= OUTLIER
    names = observations.statics.bodies.names
    prior_com = np.where(whitened.priors.mass[:, None] > 0.0, whitened.priors.com, np.nan)
    spread = float(np.einsum("ki,ij,kj->", fit.target, fit.covariance, fit.target))
    shift = float(np.sum((fit.target @ fit.x) ** 2))
    return Identification(
        bodies=names,
        mass=mass,
        com=com,
        mass_std=mass_std,
        com_std=com_std,
        prior_mass=whitened.priors.mass,
        prior_com=prior_com,
        prior_mass_std=whitened.priors.mass_std,
        prior_com_std=whitened.priors.com_std,
        parameters=theta,
        covariance=covariance,
        total_mass=float(total @ theta),
        total_mass_std=float(np.sqrt(max(0.0, total @ covariance @ total))),
        sensor_errors=errors.by_name(fit.errors),
        sensor_stds=errors.by_name(fit.stds),
        sensor_prior_stds=errors.by_name(errors.stds),
        identifiability=identifiability,
        residual=Residual.from_distances(after),
        prior_residual=Residual.from_distances(before),
        held_out=Residual.from_distances(held_out),
        without_outliers=Residuals(
            prior_residual=Residual.from_distances(before[fits]),
            residual=Residual.from_distances(after[fits]),
            held_out=Residual.from_distances(held_out[fits]),
        ),
        prediction_std=float(np.sqrt(spread / len(postures))),
        prediction_shift=float(np.sqrt(shift / len(postures))),
        variance_factor=fit.consistency[0],
        variance_limit=fit.consistency[1],
        cause=fit.cause,
        scales={kind: float(np.sqrt(v)) for kind, v in fit.posterior.scales.items()},
        tempering=fit.tempering,
        weights=weights,
        outliers=tuple(int(i) for i in np.flatnonzero(~fits)),
        at_bound=tuple(names[b] for b in fit.at_bound),
    )


def by_body(theta: Array, covariance: Array) -> tuple[Array, Array, Array, Array]:
    """Returns masses (B,), CoMs (B, 3) and both's standard deviations, of parameters (4 B,).

    c = h / m, dc = (dh - c dm) / m; NaN for a body without mass.
    """
    mass, moment = theta.reshape(-1, 4)[:, 0], theta.reshape(-1, 4)[:, 1:]
    com = np.full(moment.shape, np.nan)
    com_std = np.full(moment.shape, np.nan)
    for k in np.flatnonzero(mass > 0.0):
        com[k] = moment[k] / mass[k]
        slope = np.column_stack((-com[k], np.eye(3))) / mass[k]
        own = covariance[4 * k : 4 * k + 4, 4 * k : 4 * k + 4]
        com_std[k] = np.sqrt(np.maximum(np.diag(slope @ own @ slope.T), 0.0))
    return mass, com, np.sqrt(np.maximum(np.diag(covariance)[::4], 0.0)), com_std


def _com_errors(
    observations: ObservationModel, postures: Sequence[Posture], values: tuple[Array, Array]
) -> Array:
    """Returns errors (P,) m of the model's CoM; NaN where the feet do not measure it."""
    return np.array([observations.com_error(posture, *values) for posture in postures])
