"""Identifies masses and centres of mass of all bodies from static postures: one regression.

Readings of any kind (feet's wrenches, joint efforts, constraints on the CoM) of any number of
postures are linear in masses and first moments, and nearly so in the sensors' errors, all of
which are estimated with priors. The most probable values are found by Gauss-Newton steps in data
space (posterior.py). docs/derivations.md has the equations.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from com_identification.exceptions import IdentificationError, PostureError
from com_identification.regression import posterior
from com_identification.regression.observations import Observation, ObservationModel
from com_identification.regression.posterior import Posterior
from com_identification.regression.postures import Posture
from com_identification.regression.priors import (
    ERRORS,
    BodyPriors,
    Evidence,
    SensorErrors,
    body_priors,
    loaded_priors,
)
from com_identification.regression.result import (
    Identifiability,
    Identification,
    Progress,
    Residual,
    Residuals,
    by_body,
    examine,
    redundancy,
)
from com_identification.regression.rows import StackedObservations
from com_identification.regression.statics import prediction_rows
from com_identification.settings import FitSettings, IdentificationSettings
from com_model import Foot, RobotModel
from com_model.arrays import Array

FITTED = 0.7  # progress at which the fit is done
OUTLIER = 0.5  # weight


class _Fit:
    """The most probable bodies and sensor errors, and the diagnostics of the regression.

    Attributes:
        Q, up: (P, n) joint positions, (P, 3) directions against gravity, NaN where not known.
        rows: linearised about the estimate.
        scales: standard deviation of each class of errors over its prior's.
        posterior: with these scales, widened by their uncertainty.
        x: (U,) whitened parameters of the bodies, within the bounds; at_bound: bodies at one.
        errors, stds: (S,) constant errors of the sensors and their standard deviations.
        consistency: mean square of the deviation from the priors, and its limit.
        cause: the most probable one where the limit is exceeded.
        target: (3 P, U) derivatives of the horizontal CoM in the postures by x, m.
        tempering: see Identification.
        covariance: (U, U) of x, tempered.
    """

    def __init__(
        self,
        observations: ObservationModel,
        priors: BodyPriors,
        postures: Sequence[Posture],
        progress: Progress,
    ) -> None:
        self._observations, self._priors, self._postures = (
            observations,
            priors,
            postures,
        )
        self._progress = progress
        self.x, self.errors = np.zeros(priors.count), observations.errors.means.copy()
        rounds = 3  # of linearisation
        for done in range(rounds):
            progress(
                FITTED * done / (rounds + 2),
                f"fitting {len(postures)} postures, round {done + 1} of at most {rounds}",
            )
            self.rows = rows = self._linearize()
            found = posterior.reweight(rows, posterior.prior_posterior(rows))
            before = self.x
            self.x, _ = posterior.bound(found.x, found.covariance, priors)
            self.errors, _ = self._sensor_errors(found)
            # 1e-2 prior standard deviations
            if np.abs(self.x - before).max() < 1e-2 * max(1.0, np.abs(self.x).max()):
                break
        progress(
            FITTED * rounds / (rounds + 2), "how large the errors of the sensors are"
        )
        fits = 1.0 / found.inflation >= OUTLIER
        touched = found.inflation
        if 2 * fits.sum() < len(
            fits
        ):  # a model that fits nowhere is no reason to drop postures
            fits, touched = np.ones(len(fits), dtype=np.bool_), np.ones(len(fits))
        plain = posterior.condition(rows, dict.fromkeys(rows.classes, 1.0), touched)
        self.consistency = posterior.consistency(rows, plain, fits)
        self.cause = self._cause(plain, self.consistency[0] > self.consistency[1])
        adapted = posterior.adapt(rows, found)
        self.scales = {kind: float(np.sqrt(v)) for kind, v in adapted.scales.items()}
        self.posterior = found = posterior.reweight(
            rows, posterior.widen(rows, adapted)
        )
        self.x, self.at_bound = posterior.bound(found.x, found.covariance, priors)
        self.errors, self.stds = self._sensor_errors(found)
        self.Q = np.array([posture.q for posture in postures])
        self.up = np.array([observations.up_direction(posture) for posture in postures])
        up, poses = np.nan_to_num(self.up), observations.statics.poses(self.Q)
        slopes = prediction_rows(observations.statics, poses, up, priors.values(self.x))
        self.target = slopes.reshape(-1, slopes.shape[2]) @ priors.factor
        self.tempering = posterior.tempering(rows, found, self.target)
        self.covariance = posterior.scale_noise(found.covariance, self.tempering)

    def _linearize(self) -> StackedObservations:
        """The rows of all postures about the estimate."""
        linear, theta = [], self._priors.values(self.x)
        for index, posture in enumerate(self._postures):
            try:
                linear.append(self._observations.linearize(posture, theta, self.errors))
            except PostureError as error:
                raise PostureError(error.problem, index) from error
        return stack_observations(
            linear, self._priors, self._observations.errors, self.x, self.errors
        )

    def _sensor_errors(self, found: Posterior) -> tuple[Array, Array]:
        """Constant errors of the sensors and their standard deviations, (S,) each."""
        errors = self._observations.errors
        both = np.array([errors.means, np.zeros(errors.count)])
        for kind, values in found.errors.items():
            part = errors.kinds[kind]
            both[:, part] += errors.stds[part] * [values, found.stds[kind]]
        return both[0], both[1]

    def _cause(self, found: Posterior, alarm: bool) -> str:
        """The likeliest cause of errors larger than the priors, in words; empty: there is none."""
        gross, errors = posterior.gross_error(found), self._observations.errors
        if gross is not None:
            kind, ratio, place = gross
            index = errors.kinds[kind].start + place
            name, size = errors.names[index][1], ratio * errors.stds[index]
            return f"{ERRORS[kind][0]}: {name}, about {size:.2g}, {ratio:.0f} times sensors.{kind}"
        if not alarm:
            return ""
        kind, ratio = posterior.likeliest_cause(self.rows, found)
        if kind == posterior.BODIES:
            return f"masses and centres of mass, about {ratio:.0f} times as wrong as prior.* says"
        return f"{ERRORS[kind][0]}, about {ratio:.0f} times as large as sensors.* says"

    def held_out(self, folds: int) -> Array:
        """Returns errors (P,) m of postures left out of the fit; NaN where not known.

        Args:
            folds: number of parts of the postures, left out in turn; below 2: none.
        """
        gaps = np.full(len(self._postures), np.nan)
        folds = min(folds, len(gaps))
        if folds < 2:
            return gaps
        for fold, found in enumerate(
            posterior.held_out(self.rows, self.posterior, folds)
        ):
            self._progress(
                0.8 + 0.2 * fold / folds,
                f"predicting postures left out, part {fold + 1} of {folds}",
            )
            x, _ = posterior.bound(found.x, found.covariance, self._priors)
            values = self._priors.values(x), self._sensor_errors(found)[0]
            gaps[fold::folds] = self._com_errors(*values, self._postures[fold::folds])
        return gaps

    def _com_errors(
        self, theta: Array, errors: Array, postures: Sequence[Posture]
    ) -> Array:
        """Errors (P,) m of the model's CoM; NaN where the feet do not measure it."""
        return np.array(
            [self._observations.com_error(each, theta, errors) for each in postures]
        )

    def result(
        self, identifiability: Identifiability, redundancy: str, held_out: Array
    ) -> "Identification":
        """Collects everything that was found.

        Args:
            identifiability: what the postures determine.
            redundancy: a warning, or empty.
            held_out: (P,) m, errors of postures that were left out; NaN where not known.
        """
        priors, observations, postures = (
            self._priors,
            self._observations,
            self._postures,
        )
        factor, errors = priors.factor, observations.errors
        theta = priors.values(self.x)
        covariance = factor @ self.covariance @ factor.T
        mass, com, mass_std, com_std = by_body(theta, covariance)
        total = observations.statics.mass()
        before = self._com_errors(priors.parameters, errors.means, postures)
        after = self._com_errors(theta, self.errors, postures)
        distances = np.array([before, after, held_out])
        weights = 1.0 / self.posterior.inflation
        fits = weights >= OUTLIER
        names = observations.statics.bodies.names
        spread = float(
            np.einsum("ki,ij,kj->", self.target, self.covariance, self.target)
        )
        shift = float(np.sum((self.target @ self.x) ** 2))
        return Identification(
            bodies=names,
            mass=mass,
            com=com,
            mass_std=mass_std,
            com_std=com_std,
            prior_mass=priors.mass,
            prior_com=np.where(priors.mass[:, None] > 0.0, priors.com, np.nan),
            prior_mass_std=priors.mass_std,
            prior_com_std=priors.com_std,
            parameters=theta,
            covariance=covariance,
            total_mass=float(total @ theta),
            total_mass_std=float(np.sqrt(max(0.0, total @ covariance @ total))),
            sensor_errors=errors.by_name(self.errors),
            sensor_stds=errors.by_name(self.stds),
            sensor_prior_stds=errors.by_name(errors.stds),
            identifiability=identifiability,
            **vars(_residuals(distances)),
            without_outliers=_residuals(distances[:, fits]),
            prediction_std=float(np.sqrt(spread / len(postures))),
            prediction_shift=float(np.sqrt(shift / len(postures))),
            variance_factor=self.consistency[0],
            variance_limit=self.consistency[1],
            cause=self.cause,
            scales=self.scales,
            tempering=self.tempering,
            weights=weights,
            outliers=tuple(int(i) for i in np.flatnonzero(~fits)),
            at_bound=tuple(names[b] for b in self.at_bound),
            redundancy=redundancy,
        )


def identify(
    model: RobotModel,
    feet: Sequence[Foot],
    postures: Sequence[Posture],
    settings: IdentificationSettings | None = None,
    priors: BodyPriors | None = None,
    progress: Progress | None = None,
    evidence: Evidence | None = None,
) -> Identification:
    """Identifies a robot's masses and centres of mass from the readings of P postures.

    Efforts and the IMU's directions of gravity are used only where the settings say so. An
    exception that `progress` raises ends the computation.

    Args:
        model: the robot.
        feet: its f feet, with force sensors.
        postures: readings of the stationary robot.
        settings: noise, priors, which sensors are used; None: the defaults.
        priors: of the bodies; None: those that the settings describe.
        progress: called before each step with the fraction done, 0 to 1, and the step in words.
        evidence: estimates of bodies or sensors by another method, such as a diagnosis.

    Raises:
        PostureError: readings cannot be used; names the posture.
        IdentificationError: there are no postures, or all parameters are known.
        ConfigError: the settings name a link that the model does not have.
    """
    settings = settings or IdentificationSettings()
    priors = body_priors(model, settings) if priors is None else priors
    postures = [_usable(posture, settings.fit) for posture in postures]
    observations = ObservationModel(
        model, feet, settings.noise, settings.fit.gravity, settings.sensors
    )
    if evidence is not None:
        priors = evidence.applied(priors, model.bodies.names)
        observations.errors.learn(evidence)
    if not postures:
        raise IdentificationError("no postures: capture some first")
    if priors.count == 0:
        raise IdentificationError(
            "all parameters are known: give a mass or CoM a standard deviation above 0"
        )
    progress = progress or (lambda fraction, step: None)
    priors = _with_load(priors, observations, postures)
    fit = _Fit(observations, priors, postures, progress)
    progress(FITTED, f"which of {priors.count} parameters are identifiable")
    statics, factor = observations.statics, priors.factor
    informed = int(np.sum(np.linalg.eigvalsh(fit.posterior.covariance) < 0.5))
    found = examine(statics, fit.posterior.root(), factor, informed, fit.Q, fit.up)
    warning = redundancy(statics, fit.rows.by_white_noise(), factor, fit.Q)
    left_out = fit.held_out(settings.fit.folds)
    progress(1.0, "done")
    return fit.result(found, warning, left_out)


def _with_load(
    priors: BodyPriors, observations: ObservationModel, postures: Sequence[Posture]
) -> BodyPriors:
    """Compares the vertical forces with the weight; see loaded_priors."""
    errors, sensors = observations.errors, observations.priors
    weighed = [
        observations.measured_com(posture, errors.means)
        for posture in postures
        if np.isfinite(observations.up_direction(posture)).all()
        and observations.contacts.carries(posture)
    ]
    masses = [found.mass for found in weighed if found is not None]
    if not masses:
        return priors
    feet, total = len(observations.feet), float(priors.mass.sum())
    gains = sensors.common_gain**2 + sensors.wrench_gain**2 / feet + sensors.pull**2
    variance = total**2 * (gains + feet * sensors.force_bias**2)
    variance += float(priors.mass_std @ priors.mass_std)
    return loaded_priors(priors, float(np.median(masses)) - total, variance)


def _usable(posture: Posture, fit: FitSettings) -> Posture:
    """Returns the posture without the readings that the settings exclude."""
    if not fit.use_effort and np.isfinite(posture.effort).any():
        posture = replace(posture, effort=np.full(len(posture.effort), np.nan))
    if not fit.use_imu and np.isfinite(posture.up).any():
        posture = replace(posture, up=np.full(3, np.nan))
    return posture


def _residuals(distances: Array) -> Residuals:
    """Summarises distances (3, P) m: with the prior, after the fit, and left out of the fit."""
    return Residuals(*map(Residual.from_distances, distances))


def stack_observations(
    observations: Sequence[Observation],
    priors: BodyPriors,
    errors: SensorErrors,
    x: Array,
    e: Array,
) -> StackedObservations:
    """Stacks the observations of P postures.

    Args:
        observations: of each posture, linearised about x and e.
        priors: of the bodies.
        errors: of the sensors, with their priors.
        x: (U,) bodies, in prior standard deviations.
        e: (S,) errors of the sensors, in their units.
    """
    bodies = np.vstack([each.bodies @ priors.factor for each in observations])
    columns = np.vstack([each.errors for each in observations])
    used = {kind: s for kind, s in errors.kinds.items() if (errors.stds[s] > 0.0).any()}
    residual = np.concatenate([each.residual for each in observations])
    drift = np.vstack([each.drift for each in observations])
    noise = {
        kind: tuple(each.noise[kind] for each in observations)
        for kind in (observations[0].noise if observations else ())
        if any(each.noise[kind].any() for each in observations)
    }
    return StackedObservations(
        z=residual + bodies @ x + columns @ (e - errors.means),
        bodies=bodies,
        errors={kind: columns[:, s] * errors.stds[s] for kind, s in used.items()},
        drift=drift if drift.any() else drift[:, :0],
        noise=noise,
        white=tuple(each.covariance for each in observations),
        starts=np.cumsum([0, *(len(each.residual) for each in observations)]),
        walk=np.arange(len(observations), dtype=float),
    )
