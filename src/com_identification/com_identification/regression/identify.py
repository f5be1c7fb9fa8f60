"""Identifies masses and centres of mass of all bodies from static postures: one regression.

Readings of any kind (feet's wrenches, joint efforts, constraints on the CoM) of any number of
postures are linear in masses and first moments, and nearly so in the sensors' constant errors.
The most probable values under the prior are found by weighted least squares, linearised again until
they converge. docs/derivations.md has the equations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from com_identification.exceptions import IdentificationError, PostureError
from com_identification.regression.identifiability import (
    Identifiability,
    check_spread,
    examine,
    stack_root,
)
from com_identification.regression.least_squares import (
    Block,
    BodyPriors,
    Solution,
    WhitenedParameters,
    body_priors,
    scale_noise,
    solve,
    whiten,
)
from com_identification.regression.observations import ObservationModel
from com_identification.regression.postures import Posture
from com_identification.settings import FitSettings, IdentificationSettings
from com_model import Foot, RobotModel
from com_model.arrays import Array, FrozenArrays

Progress = Callable[[float, str], None]
"""Receives the fraction of the time that is over, 0 to 1, and the present step in words."""
_ROUNDS = 6  # of linearisation
_CHECKED, _HELD_OUT = 0.5, 0.6  # progress at which these steps begin
_OUTLIER = 0.5  # weight
_CONVERGED = 1e-3  # prior standard deviations


@dataclass(frozen=True)
class Residual:
    """Distance between the model's CoM and the feet's measurement of its horizontal position.

    Attributes:
        mean: m, of the distances.
        rms: m.
        maximum: m.
        count: Number of postures; where 0, the others are NaN.
    """

    mean: float
    rms: float
    maximum: float
    count: int

    @classmethod
    def from_distances(cls, distances: Array) -> Residual:
        """Summarises distances (P,) in m; those that are NaN are left out."""
        distances = distances[np.isfinite(distances)]
        if not len(distances):
            return cls(np.nan, np.nan, np.nan, 0)
        rms = float(np.sqrt(np.mean(np.square(distances))))
        return cls(float(np.mean(distances)), rms, float(np.max(distances)), len(distances))


@dataclass(frozen=True)
class Residuals:
    """The residuals of one set of postures; see Identification.

    Attributes:
        prior_residual: With the prior's parameters.
        residual: After the fit.
        held_out: Of postures that were left out of the fit.
    """

    prior_residual: Residual
    residual: Residual
    held_out: Residual


@dataclass(frozen=True, eq=False)
class Identification(FrozenArrays):
    """Masses and centres of mass of a robot's bodies; arrays are read-only.

    A body is a link with all that fixed joints tie to it; its frame is that link's. Combinations
    that the data do not determine keep the prior's value and standard deviation.

    Attributes:
        bodies: B names, of each body's first link.
        mass: (B,) kg.
        com: (B, 3) m, each in its body's frame; NaN of a body without mass.
        mass_std: (B,) kg, standard deviations after the data.
        com_std: (B, 3) m.
        prior_mass: (B,) kg.
        prior_com: (B, 3) m.
        prior_mass_std: (B,) kg, standard deviations before the data.
        prior_com_std: (B, 3) m.
        parameters: (4 B,) m_k and h_k = m_k c_k, body by body.
        covariance: (4 B, 4 B) of them.
        total_mass: kg.
        total_mass_std: kg.
        sensor_errors: Estimate by kind and name; see SensorPriors.
        sensor_stds: Standard deviations of those.
        identifiability: Rank, condition number, what stays unknown.
        residual: Of the postures that were used, after the fit.
        prior_residual: The same with the prior's parameters.
        held_out: Of postures that were left out of the fit; NaN if not asked for.
        without_outliers: The three residuals without the outliers.
        variance_factor: 1 where the noise is as large as the settings say. Above 1 the standard
            deviations are those of a noise that is larger by its root; the prior is not scaled.
        weights: (P,) of the postures; below 0.5 one counts as an outlier.
        outliers: Indices of those.
        at_bound: Names of the bodies whose centre of mass is at a bound.
    """

    bodies: tuple[str, ...]
    mass: Array
    com: Array
    mass_std: Array
    com_std: Array
    prior_mass: Array
    prior_com: Array
    prior_mass_std: Array
    prior_com_std: Array
    parameters: Array
    covariance: Array
    total_mass: float
    total_mass_std: float
    sensor_errors: Mapping[str, Mapping[str, float]]
    sensor_stds: Mapping[str, Mapping[str, float]]
    identifiability: Identifiability
    residual: Residual
    prior_residual: Residual
    held_out: Residual
    without_outliers: Residuals
    variance_factor: float
    weights: Array
    outliers: tuple[int, ...]
    at_bound: tuple[str, ...] = field(default=())


def identify(
    model: RobotModel,
    feet: Sequence[Foot],
    postures: Sequence[Posture],
    settings: IdentificationSettings | None = None,
    priors: BodyPriors | None = None,
    progress: Progress | None = None,
    refuse_redundant: bool = True,
) -> Identification:
    """Identifies a robot's masses and centres of mass.

    Args:
        model: The robot as its URDF has it.
        feet: Its feet with their force sensors, as its configuration has them.
        postures: The readings, P of them. Efforts and directions of gravity are used only where
            the settings say so.
        settings: See IdentificationSettings.
        priors: What is known of the bodies before; by default what the settings say.
        progress: Called before each step; what it raises ends the work.
        refuse_redundant: Whether redundant postures are an error.

    Raises:
        PostureError: Readings that cannot be used; names the posture.
        RankError: The postures are redundant; names joints to move.
        IdentificationError: There are no postures, or all parameters are known.
        ConfigError: The settings name a link that the model has not.
    """
    settings = settings or IdentificationSettings()
    priors = body_priors(model, settings) if priors is None else priors
    postures = [_usable(posture, settings.fit) for posture in postures]
    observations = ObservationModel(model, feet, settings.noise, settings.fit.gravity)
    whitened = WhitenedParameters(priors, observations.errors.prior_stds(settings.sensors))
    if not postures:
        raise IdentificationError("no postures: capture some first")
    if whitened.bodies == 0:
        raise IdentificationError(
            "all parameters are known: give a mass or CoM a standard deviation above 0"
        )
    progress = progress or (lambda fraction, step: None)
    blocks, solution = _fit(observations, whitened, postures, settings.fit.loss, progress)
    progress(_CHECKED, f"which of {whitened.bodies} parameters are identifiable")
    body_rows = [block.matrix[:, : whitened.bodies] for block in blocks]
    covariance = solution.covariance[: whitened.bodies, : whitened.bodies]
    informed = int(np.sum(np.linalg.eigvalsh(covariance) < 0.5))
    Q = np.array([posture.q for posture in postures])
    up = np.array([observations.up_direction(posture) for posture in postures])
    root = stack_root(body_rows, whitened.bodies)
    found = examine(observations.statics, root, whitened.factor, informed, Q, up)
    if refuse_redundant:
        check_spread(observations.statics, root, whitened.factor, Q)
    held_out = _held_out(observations, whitened, postures, blocks, settings.fit, progress)
    progress(1.0, "done")
    return _result(observations, whitened, postures, solution, found, held_out)


def _usable(posture: Posture, fit: FitSettings) -> Posture:
    """The posture without the readings that are not to be used."""
    if not fit.use_effort and np.isfinite(posture.effort).any():
        posture = replace(posture, effort=np.full(len(posture.effort), np.nan))
    if not fit.use_imu and np.isfinite(posture.up).any():
        posture = replace(posture, up=np.full(3, np.nan))
    return posture


def _fit(
    observations: ObservationModel,
    whitened: WhitenedParameters,
    postures: Sequence[Posture],
    loss: str,
    progress: Progress,
) -> tuple[list[Block], Solution]:
    x = np.zeros(whitened.count)
    for done in range(_ROUNDS):
        step = f"fitting {len(postures)} postures, round {done + 1} of at most {_ROUNDS}"
        progress(_CHECKED * done / _ROUNDS, step)
        blocks = [_block(observations, whitened, i, p, x) for i, p in enumerate(postures)]
        solution = solve(blocks, *whitened.bounds(x), loss=loss)
        change = float(np.abs(solution.x - x).max())
        x = solution.x
        if change < _CONVERGED:
            break
    return blocks, solution


def _block(
    observations: ObservationModel,
    whitened: WhitenedParameters,
    index: int,
    posture: Posture,
    x: Array,
) -> Block:
    try:
        rows = observations.linearize(posture, *whitened.values(x))
    except PostureError as error:
        raise PostureError(error.problem, index) from error
    matrix = whitened.columns(rows.bodies, rows.errors)
    return whiten(matrix, rows.residual + matrix @ x, rows.covariance)


def _held_out(
    observations: ObservationModel,
    whitened: WhitenedParameters,
    postures: Sequence[Posture],
    blocks: Sequence[Block],
    fit: FitSettings,
    progress: Progress,
) -> Array:
    """Returns errors (P,) m of postures left out of the fit, fold by fold; NaN where not known."""
    gaps = np.full(len(postures), np.nan)
    folds = min(fit.folds, len(postures))
    if folds < 2:
        return gaps
    bounds = whitened.bounds(np.zeros(whitened.count))
    for fold in range(folds):
        done = _HELD_OUT + (1.0 - _HELD_OUT) * fold / folds
        progress(done, f"predicting postures left out, part {fold + 1} of {folds}")
        kept = [block for i, block in enumerate(blocks) if i % folds != fold]
        values = whitened.values(solve(kept, *bounds, loss=fit.loss).x)
        gaps[fold::folds] = _com_errors(observations, postures[fold::folds], values)
    return gaps


def _result(
    observations: ObservationModel,
    whitened: WhitenedParameters,
    postures: Sequence[Posture],
    solution: Solution,
    identifiability: Identifiability,
    held_out: Array,
) -> Identification:
    factor, errors = whitened.factor, observations.errors
    values = whitened.values(solution.x)
    scatter = scale_noise(solution.covariance, float(np.nanmax([1.0, solution.variance_factor])))
    covariance = factor @ scatter[: whitened.bodies, : whitened.bodies] @ factor.T
    mass, com, mass_std, com_std = _by_body(values[0], covariance)
    total = observations.statics.mass()
    sensed = np.zeros(errors.count)
    sensed[whitened.sensed] = whitened.spread * np.sqrt(np.diag(scatter)[whitened.bodies :])
    start = whitened.priors.parameters, np.zeros(errors.count)
    before, after = (
        _com_errors(observations, postures, start),
        _com_errors(observations, postures, values),
    )
    fits = solution.weights >= _OUTLIER
    held = np.flatnonzero(whitened.used)[solution.at_bound[: whitened.bodies]] // 4
    names = observations.statics.bodies.names
    prior_com = np.where(whitened.priors.mass[:, None] > 0.0, whitened.priors.com, np.nan)
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
        parameters=values[0],
        covariance=covariance,
        total_mass=float(total @ values[0]),
        total_mass_std=float(np.sqrt(total @ covariance @ total)),
        sensor_errors=errors.by_name(values[1], whitened.sensed),
        sensor_stds=errors.by_name(sensed, whitened.sensed),
        identifiability=identifiability,
        residual=Residual.from_distances(after),
        prior_residual=Residual.from_distances(before),
        held_out=Residual.from_distances(held_out),
        without_outliers=Residuals(
            prior_residual=Residual.from_distances(before[fits]),
            residual=Residual.from_distances(after[fits]),
            held_out=Residual.from_distances(held_out[fits]),
        ),
        variance_factor=solution.variance_factor,
        weights=solution.weights,
        outliers=tuple(int(i) for i in np.flatnonzero(~fits)),
        at_bound=tuple(dict.fromkeys(names[b] for b in held)),
    )


def _by_body(theta: Array, covariance: Array) -> tuple[Array, Array, Array, Array]:
    """Returns mass, CoM and their standard deviations; c = h / m, dc = (dh - c dm) / m."""
    mass, moment = theta.reshape(-1, 4)[:, 0], theta.reshape(-1, 4)[:, 1:]
    com = np.full(moment.shape, np.nan)
    com_std = np.full(moment.shape, np.nan)
    for k in np.flatnonzero(mass > 0.0):
        com[k] = moment[k] / mass[k]
        slope = np.column_stack((-com[k], np.eye(3))) / mass[k]
        own = covariance[4 * k : 4 * k + 4, 4 * k : 4 * k + 4]
        com_std[k] = np.sqrt(np.diag(slope @ own @ slope.T))
    return mass, com, np.sqrt(np.diag(covariance)[::4]), com_std


def _com_errors(
    observations: ObservationModel, postures: Sequence[Posture], values: tuple[Array, Array]
) -> Array:
    """Returns errors (P,) m of the model's CoM; NaN where the feet do not measure it."""
    return np.array([observations.com_error(posture, *values) for posture in postures])
