"""Identifies masses and centres of mass of all bodies from postures at rest: one regression.

Readings of any kind (feet's wrenches, joint efforts, constraints on the CoM) of any number of
postures are linear in masses and first moments, and nearly so in the sensors' constant errors.
The most probable values under the prior are found by weighted least squares, linearised anew until
they stay. docs/derivations.md has the equations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from com_identification.exceptions import IdentificationError, PostureError
from com_identification.regression.identifiability import check_spread, examine, stack_root
from com_identification.regression.postures import Posture, SensorNoise
from com_identification.regression.priors import BodyPriors, urdf_priors
from com_identification.regression.result import Identifiability, Identification, Misfit, Misfits
from com_identification.regression.rows import RowBuilder
from com_identification.regression.sensors import SensorPriors
from com_identification.regression.solve import Block, Solution, solve, whiten, with_noise
from com_model import Foot, RobotModel
from com_model.arrays import Array

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
        refuse_alike: Whether postures that are too alike are an error.
    """

    noise: SensorNoise = field(default_factory=SensorNoise)
    sensors: SensorPriors = field(default_factory=SensorPriors)
    gravity: float = 9.81
    loss: str = "tukey"
    folds: int = 5
    rounds: int = 6
    refuse_alike: bool = True


class Unknowns:
    """The unknowns x, in prior deviations: what of the bodies and sensors there is to learn.

    Args:
        priors: Of the bodies.
        deviations: (S,) of the sensors' errors; 0: not estimated.
    """

    def __init__(self, priors: BodyPriors, deviations: Array) -> None:
        self.priors = priors
        self.used = priors.used
        self.sensed = deviations > 0.0
        self.factor = priors.factor[:, self.used]
        self.spread = deviations[self.sensed]
        self.bodies = int(self.used.sum())
        self.count = self.bodies + len(self.spread)

    def values(self, x: Array) -> tuple[Array, Array]:
        """Masses and first moments (4 B,) and the sensors' errors (S,) of x."""
        errors = np.zeros(len(self.sensed))
        errors[self.sensed] = self.spread * x[self.bodies :]
        return self.priors.parameters + self.factor @ x[: self.bodies], errors

    def columns(self, bodies: Array, errors: Array) -> Array:
        """Rows by x, of rows by theta and errors."""
        return np.hstack((bodies @ self.factor, errors[:, self.sensed] * self.spread))

    def bounds(self, x: Array) -> tuple[Array, Array]:
        """Bounds of x, the CoM's taken at the masses of x."""
        masses = self.values(x)[0][::4]
        free = np.full(len(self.spread), np.inf)
        low, high = self.priors.bounds(masses)
        return np.append(low[self.used], -free), np.append(high[self.used], free)


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
    builder = RowBuilder(model, feet, options.noise, options.gravity)
    unknowns = Unknowns(priors, builder.errors.deviations(options.sensors))
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
    up = np.array([builder.up_of(posture) for posture in postures])
    root = stack_root(body_rows, unknowns.bodies)
    found = examine(builder.statics, root, unknowns.factor, informed, Q, up)
    if options.refuse_alike:
        check_spread(builder.statics, root, unknowns.factor, Q)
    held_out = _held_out(builder, unknowns, postures, blocks, options, observe)
    return _result(builder, unknowns, postures, solution, found, held_out)


def _fit(
    builder: RowBuilder,
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
    builder: RowBuilder, unknowns: Unknowns, index: int, posture: Posture, x: Array
) -> Block:
    try:
        rows = builder.rows(posture, *unknowns.values(x))
    except PostureError as error:
        raise PostureError(error.problem, index) from error
    matrix = unknowns.columns(rows.bodies, rows.errors)
    return whiten(matrix, rows.residual + matrix @ x, rows.covariance)


def _held_out(
    builder: RowBuilder,
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
        gaps[fold::folds] = [builder.gap(posture, *values) for posture in postures[fold::folds]]
    return gaps


def _unobserved(share: float, what: str) -> None:
    """Nobody asked."""


def _result(
    builder: RowBuilder,
    unknowns: Unknowns,
    postures: Sequence[Posture],
    solution: Solution,
    identifiability: Identifiability,
    held_out: Array,
) -> Identification:
    factor, errors = unknowns.factor, builder.errors
    values = unknowns.values(solution.x)
    scatter = with_noise(solution.covariance, float(np.nanmax([1.0, solution.variance_factor])))
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
        residual=Misfit.of(after),
        prior_residual=Misfit.of(before),
        held_out=Misfit.of(held_out),
        without_outliers=Misfits(
            prior_residual=Misfit.of(before[fits]),
            residual=Misfit.of(after[fits]),
            held_out=Misfit.of(held_out[fits]),
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


def _gaps(builder: RowBuilder, postures: Sequence[Posture], values: tuple[Array, Array]) -> Array:
    """Distances (P,) m of model and feet; NaN where the feet do not tell."""
    return np.array([builder.gap(posture, *values) for posture in postures])
