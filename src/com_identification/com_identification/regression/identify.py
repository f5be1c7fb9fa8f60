"""Identifies masses and centres of mass of all bodies from static postures: one regression.

Readings of any kind (feet's wrenches, joint efforts, constraints on the CoM) of any number of
postures are linear in masses and first moments, and nearly so in the sensors' errors, all of which
are unknowns with priors. The most probable values are found by Gauss-Newton steps in data space
(posterior.py). docs/derivations.md has the equations.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from com_identification.exceptions import IdentificationError, PostureError
from com_identification.regression.identifiability import Identifiability, examine, redundancy
from com_identification.regression.observations import ObservationModel
from com_identification.regression.posterior import (
    BODIES,
    Posterior,
    adapt,
    bound,
    condition,
    consistency,
    gross_error,
    held_out,
    likeliest_cause,
    prior_posterior,
    reweight,
    scale_noise,
    tempering,
)
from com_identification.regression.postures import Posture
from com_identification.regression.priors import BodyPriors, WhitenedParameters, body_priors
from com_identification.regression.rows import Rows
from com_identification.regression.statics import prediction_rows
from com_identification.settings import FitSettings, IdentificationSettings
from com_model import Foot, RobotModel
from com_model.arrays import Array, FrozenArrays

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
        e, _ = sensor_errors(observations, found)
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
    e, stds = sensor_errors(observations, found)
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


def sensor_errors(observations: ObservationModel, found: Posterior) -> tuple[Array, Array]:
    """Returns constant errors of the sensors and their standard deviations, (S,) each."""
    errors = observations.errors
    both = np.zeros((2, errors.count))
    for kind, values in found.errors.items():
        part = errors.kinds[kind]
        both[:, part] = errors.stds[part] * [values, found.stds[kind]]
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
    gross = gross_error(found)
    if gross is not None:
        kind, ratio, place = gross
        index = observations.errors.kinds[kind].start + place
        name, size = observations.errors.names[index][1], ratio * observations.errors.stds[index]
        return f"{_CAUSES[kind]}: {name}, about {size:.2g}, {ratio:.0f} times sensors.{kind}"
    if not alarm:
        return ""
    kind, ratio = likeliest_cause(rows, found)
    if kind == BODIES:
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
    root = fit.posterior.root()
    found = examine(observations.statics, root, whitened.factor, informed, Q, up)
    by_noise = fit.rows.by_white_noise()
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
    for fold, found in enumerate(held_out(fit.rows, fit.posterior, folds)):
        done = _HELD_OUT + (1.0 - _HELD_OUT) * fold / folds
        progress(done, f"predicting postures left out, part {fold + 1} of {folds}")
        x, _ = bound(found.x, found.covariance, whitened)
        values = whitened.values(x), sensor_errors(observations, found)[0]
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
    before = whitened.priors.parameters, np.zeros(errors.count)
    gaps = [_com_errors(observations, postures, each) for each in (before, (theta, fit.errors))]
    distances = np.array([*gaps, held_out])
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
        **vars(_residuals(distances)),
        without_outliers=_residuals(distances[:, fits]),
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


def _residuals(distances: Array) -> Residuals:
    """Of distances (3, P) m: before and after the fit, and left out of it."""
    return Residuals(*map(Residual.from_distances, distances))


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
