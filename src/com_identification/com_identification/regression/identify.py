"""Identifies masses and centres of mass of all bodies from postures at rest: one regression.

Readings of any kind (feet's wrenches, joint efforts, constraints on the CoM) of any number of
postures are linear in masses and first moments, and nearly so in the sensors' constant errors.
The most probable values under the prior are found by weighted least squares, linearised anew until
they stay. docs/derivations.md has the equations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from com_identification.exceptions import IdentificationError, PostureError
from com_identification.regression.identifiability import (
    Identifiability,
    check_spread,
    examine,
    stack_root,
)
from com_identification.regression.observations import ObservationModel
from com_identification.regression.postures import Posture, SensorNoise, SensorPriors
from com_identification.regression.priors import BodyPriors, Unknowns, urdf_priors
from com_identification.regression.solve import Block, Solution, scale_noise, solve, whiten
from com_model import Foot, RobotModel
from com_model.arrays import Array, freeze
from com_model.dynamics import GRAVITY


@dataclass(frozen=True)
class Residual:
    """How well the model meets measurements of the CoM's horizontal position by the feet.

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
    """The misfits of one set of postures; see Identification.

    Attributes:
        prior_residual: With the prior's parameters.
        residual: After the fit.
        held_out: Of postures that were left out of the fit.
    """

    prior_residual: Residual
    residual: Residual
    held_out: Residual


@dataclass(frozen=True, eq=False)
class Identification:
    """Masses and centres of mass of a robot's bodies; arrays are read-only.

    A body is a link with all that fixed joints tie to it; its frame is that link's. Combinations
    that the data do not tell are where the prior had them, with the prior's deviation.

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
        without_outliers: The three misfits without the postures that count as outliers.
        variance_factor: 1 where the noise was as large as was said. Above 1 the deviations are
            those of a noise that is larger by its root; what the prior alone tells is as it was.
        weights: (P,) of the postures; below 0.5 one counts as an outlier.
        outliers: Indices of those.
        at_bound: Names of the bodies whose centre of mass a bound holds.
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

    def __post_init__(self) -> None:
        freeze(self)


Observer = Callable[[float, str], None]
"""Told the share that is done, 0 to 1, and what comes next."""

_OUTLIER = 0.5  # weight
_SETTLED = 1e-3  # prior deviations


@dataclass(frozen=True)
class Options:
    """How the identification works.

    Attributes:
        noise: Of one reading.
        sensors: Which constant errors of the sensors are unknown.
        gravity: m/s^2.
        loss: "none", "huber" or "tukey"; see solve().
        folds: Number of parts of the postures that are left out in turn for the held-out error; 0
            for none.
        rounds: How often at most the equations are linearised.
        refuse_redundant: Whether postures that are too alike are an error.
    """

    noise: SensorNoise = field(default_factory=SensorNoise)
    sensors: SensorPriors = field(default_factory=SensorPriors)
    gravity: float = GRAVITY
    loss: str = "tukey"
    folds: int = 5
    rounds: int = 6
    refuse_redundant: bool = True


def identify(
    model: RobotModel,
    feet: Sequence[Foot],
    postures: Sequence[Posture],
    priors: BodyPriors | None = None,
    options: Options | None = None,
    observe: Observer | None = None,
) -> Identification:
    """Identifies a robot's masses and centres of mass.

    Args:
        model: The robot as its URDF has it.
        feet: Its feet with their force sensors, as its configuration has them.
        postures: The readings, P of them.
        priors: What is known before; by default masses as in the URDF, centres of mass within
            20 mm of it and inside the links' shapes.
        options: See Options.
        observe: Called before each part of the work with the share that is done and what comes
            next; what it raises ends the work.

    Raises:
        PostureError: Readings that cannot be used; names the posture.
        RankError: The postures are too alike.
        IdentificationError: There are no postures, or nothing is unknown.
    """
    options = options or Options()
    priors = urdf_priors(model) if priors is None else priors
    builder = ObservationModel(model, feet, options.noise, options.gravity)
    unknowns = Unknowns(priors, builder.errors.prior_stds(options.sensors))
    if not postures:
        raise IdentificationError("no postures: capture some first")
    if unknowns.bodies == 0:
        raise IdentificationError("nothing is unknown: give a mass or CoM a deviation above 0")
    observe = observe or _unobserved
    blocks, solution = _fit(builder, unknowns, postures, options, observe)
    observe(0.5, "what can be told")
    body_rows = [block.matrix[:, : unknowns.bodies] for block in blocks]
    covariance = solution.covariance[: unknowns.bodies, : unknowns.bodies]
    informed = int(np.sum(np.linalg.eigvalsh(covariance) < 0.5))
    Q = np.array([posture.q for posture in postures])
    up = np.array([builder.up_direction(posture) for posture in postures])
    root = stack_root(body_rows, unknowns.bodies)
    found = examine(builder.statics, root, unknowns.factor, informed, Q, up)
    if options.refuse_redundant:
        check_spread(builder.statics, root, unknowns.factor, Q)
    held_out = _held_out(builder, unknowns, postures, blocks, options, observe)
    return _result(builder, unknowns, postures, solution, found, held_out)


def _fit(
    builder: ObservationModel,
    unknowns: Unknowns,
    postures: Sequence[Posture],
    options: Options,
    observe: Observer,
) -> tuple[list[Block], Solution]:
    x = np.zeros(unknowns.count)
    rounds = max(1, options.rounds)
    for done in range(rounds):
        observe(0.5 * done / rounds, f"fit, round {done + 1}")
        blocks = [_block(builder, unknowns, i, p, x) for i, p in enumerate(postures)]
        solution = solve(blocks, *unknowns.bounds(x), loss=options.loss)
        change = float(np.abs(solution.x - x).max())
        x = solution.x
        if change < _SETTLED:
            break
    return blocks, solution


def _block(
    builder: ObservationModel, unknowns: Unknowns, index: int, posture: Posture, x: Array
) -> Block:
    try:
        rows = builder.linearize(posture, *unknowns.values(x))
    except PostureError as error:
        raise PostureError(error.problem, index) from error
    matrix = unknowns.columns(rows.bodies, rows.errors)
    return whiten(matrix, rows.residual + matrix @ x, rows.covariance)


def _held_out(
    builder: ObservationModel,
    unknowns: Unknowns,
    postures: Sequence[Posture],
    blocks: Sequence[Block],
    options: Options,
    observe: Observer,
) -> Array:
    """Distances (P,) in postures that were left out, each fold in turn; NaN where not known."""
    gaps = np.full(len(postures), np.nan)
    folds = min(options.folds, len(postures))
    if folds < 2:
        return gaps
    bounds = unknowns.bounds(np.zeros(unknowns.count))
    for fold in range(folds):
        observe(0.6 + 0.4 * fold / folds, f"held-out error, part {fold + 1} of {folds}")
        kept = [block for i, block in enumerate(blocks) if i % folds != fold]
        values = unknowns.values(solve(kept, *bounds, loss=options.loss).x)
        gaps[fold::folds] = _gaps(builder, postures[fold::folds], values)
    return gaps


def _unobserved(share: float, what: str) -> None:
    """Nobody asked."""


def _result(
    builder: ObservationModel,
    unknowns: Unknowns,
    postures: Sequence[Posture],
    solution: Solution,
    identifiability: Identifiability,
    held_out: Array,
) -> Identification:
    factor, errors = unknowns.factor, builder.errors
    values = unknowns.values(solution.x)
    scatter = scale_noise(solution.covariance, float(np.nanmax([1.0, solution.variance_factor])))
    covariance = factor @ scatter[: unknowns.bodies, : unknowns.bodies] @ factor.T
    mass, com, mass_std, com_std = _by_body(values[0], covariance)
    total = builder.statics.mass()
    sensed = np.zeros(errors.count)
    sensed[unknowns.sensed] = unknowns.spread * np.sqrt(np.diag(scatter)[unknowns.bodies :])
    start = unknowns.priors.parameters, np.zeros(errors.count)
    before, after = _gaps(builder, postures, start), _gaps(builder, postures, values)
    fits = solution.weights >= _OUTLIER
    held = np.flatnonzero(unknowns.used)[solution.at_bound[: unknowns.bodies]] // 4
    names = builder.statics.bodies.names
    prior_com = np.where(unknowns.priors.mass[:, None] > 0.0, unknowns.priors.com, np.nan)
    return Identification(
        bodies=names,
        mass=mass,
        com=com,
        mass_std=mass_std,
        com_std=com_std,
        prior_mass=unknowns.priors.mass,
        prior_com=prior_com,
        prior_mass_std=unknowns.priors.mass_std,
        prior_com_std=unknowns.priors.com_std,
        parameters=values[0],
        covariance=covariance,
        total_mass=float(total @ values[0]),
        total_mass_std=float(np.sqrt(total @ covariance @ total)),
        sensor_errors=errors.by_name(values[1], unknowns.sensed),
        sensor_stds=errors.by_name(sensed, unknowns.sensed),
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
    """Masses, centres of mass and their deviations; c = h / m, dc = (dh - c dm) / m."""
    mass, moment = theta.reshape(-1, 4)[:, 0], theta.reshape(-1, 4)[:, 1:]
    com = np.full(moment.shape, np.nan)
    com_std = np.full(moment.shape, np.nan)
    for k in np.flatnonzero(mass > 0.0):
        com[k] = moment[k] / mass[k]
        slope = np.column_stack((-com[k], np.eye(3))) / mass[k]
        own = covariance[4 * k : 4 * k + 4, 4 * k : 4 * k + 4]
        com_std[k] = np.sqrt(np.diag(slope @ own @ slope.T))
    return mass, com, np.sqrt(np.diag(covariance)[::4]), com_std


def _gaps(
    builder: ObservationModel, postures: Sequence[Posture], values: tuple[Array, Array]
) -> Array:
    """Distances (P,) m of model and feet; NaN where the feet do not tell."""
    return np.array([builder.com_error(posture, *values) for posture in postures])
