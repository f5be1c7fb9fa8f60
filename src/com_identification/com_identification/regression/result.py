"""Result of an identification, and its problems in words."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from com_identification.regression.identifiability import Identifiability
from com_model.arrays import Array, FrozenArrays

Progress = Callable[[float, str], None]
"""Receives the fraction of the time that is over, 0 to 1, and the present step in words."""


@dataclass(frozen=True)
class Residual:
    """Distance between the model's CoM and the feet's measurement of its horizontal position.

    Attributes:
        mean: m, of the distances.
        rms: m.
        maximum: m.
        count: number of postures; where 0, the others are NaN.
    """

    mean: float
    rms: float
    maximum: float
    count: int

    @classmethod
    def from_distances(cls, distances: Array) -> "Residual":
        """Summarises distances.

        Args:
            distances: (P,) m; NaN values are left out.
        """
        distances = distances[np.isfinite(distances)]
        if not len(distances):
            return cls(np.nan, np.nan, np.nan, 0)
        rms = float(np.sqrt(np.mean(np.square(distances))))
        return cls(
            float(np.mean(distances)), rms, float(np.max(distances)), len(distances)
        )


@dataclass(frozen=True)
class Residuals:
    """The residuals of one set of postures; see Identification.

    Attributes:
        prior_residual: with the prior's parameters.
        residual: after the fit.
        held_out: of postures that were left out of the fit.
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
        mass, mass_std: (B,) kg, and standard deviations after the data.
        com, com_std: (B, 3) m, each in its body's frame; NaN of a body without mass.
        prior_mass, prior_mass_std, prior_com, prior_com_std: The same before the data.
        parameters: (4 B,) m_k kg and h_k = m_k c_k kg m, body by body.
        covariance: (4 B, 4 B) of the parameters.
        total_mass, total_mass_std: kg.
        sensor_errors: Constant errors by kind and name, in the units of SensorErrors.
        sensor_stds, sensor_prior_stds: Their standard deviations after and before the data.
        identifiability: Rank, condition number, what stays unknown.
        residual: Of the postures that were used, after the fit.
        prior_residual: Of the same postures with the prior's parameters.
        held_out: Of postures that were left out of the fit; NaN if not asked for.
        without_outliers: The three residuals without the outliers.
        prediction_std: m, standard deviation of the horizontal CoM in such postures, RMS length.
        prediction_shift: m, between the URDF's and the identified CoM there, RMS length.
        variance_factor: Mean square of the readings' difference from the URDF over what the priors
            allow: 1 or less where the priors cover the errors.
        variance_limit: Above it the errors are larger than the priors.
        cause: The likeliest cause of errors larger than the priors, in words; else empty.
        scales: Standard deviation of each class of errors by the data over its prior's.
        tempering: 1 or more, by which the postures' information was divided, because their
            residuals scatter more than expected.
        weights: (P,) of the postures; below 0.5 one counts as an outlier.
        outliers: Indices of the outliers.
        at_bound: Names of the bodies whose centre of mass is at a bound.
        redundancy: A warning with the rank where the postures are few or redundant: what they do
            not determine keeps the URDF's uncertainty.
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
    sensor_prior_stds: Mapping[str, Mapping[str, float]]
    identifiability: Identifiability
    residual: Residual
    prior_residual: Residual
    held_out: Residual
    without_outliers: Residuals
    prediction_std: float
    prediction_shift: float
    variance_factor: float
    variance_limit: float
    cause: str
    scales: Mapping[str, float]
    tempering: float
    weights: Array
    outliers: tuple[int, ...]
    at_bound: tuple[str, ...] = field(default=())
    redundancy: str = ""


def by_body(theta: Array, covariance: Array) -> tuple[Array, Array, Array, Array]:
    """Splits parameters into masses and CoMs: c = h / m, dc = (dh - c dm) / m.

    Args:
        theta: (4 B,) masses kg and first moments kg m, body by body.
        covariance: (4 B, 4 B) of them.

    Returns:
        Masses (B,) kg, CoMs (B, 3) m and the standard deviations of both; NaN for the CoM of a body
        without mass.
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


def issues_of(found: Identification) -> list[str]:
    """Returns the problems of a result, with how to fix them; empty: the status is OK.

    Args:
        found: the result.
    """
    issues, good = [], found.without_outliers
    if found.redundancy:
        issues.append(found.redundancy)
    if found.variance_factor > found.variance_limit:
        issues.append(
            f"The readings differ from what the URDF and the sensors may do by "
            f"{np.sqrt(found.variance_factor):.1f} times what the priors allow; the standard "
            f"deviations are too small. Likeliest: {found.cause}."
        )
    elif found.cause:
        issues.append(
            f"An error is far larger than its prior. Likeliest: {found.cause}."
        )
    if good.held_out.rms > good.prior_residual.rms:
        issues.append(
            f"Postures that were left out are predicted to {1e3 * good.held_out.rms:.2f} mm, "
            f"worse than by the URDF ({1e3 * good.prior_residual.rms:.2f} mm): capture more."
        )
    if found.at_bound:
        issues.append(
            f"The centre of mass of {', '.join(found.at_bound)} would be outside of the link's "
            "shape: check the sensors and the shapes, or set prior.bounded to false."
        )
    if 3 * len(found.outliers) > len(found.weights):
        issues.append(
            f"{len(found.outliers)} of {len(found.weights)} postures are inconsistent with the "
            "others: see the problems in the answer of get_postures."
        )
    return issues
