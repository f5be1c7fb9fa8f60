"""What an identification tells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from com_model.arrays import Array, freeze


@dataclass(frozen=True)
class Misfit:
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
    def of(cls, distances: Array) -> Misfit:
        """Summarises distances (P,) in m; those that are NaN are left out."""
        distances = distances[np.isfinite(distances)]
        if not len(distances):
            return cls(np.nan, np.nan, np.nan, 0)
        rms = float(np.sqrt(np.mean(np.square(distances))))
        return cls(float(np.mean(distances)), rms, float(np.max(distances)), len(distances))


@dataclass(frozen=True)
class Misfits:
    """The misfits of one set of postures; see Identification.

    Attributes:
        prior_residual: With the prior's parameters.
        residual: After the fit.
        held_out: Of postures that were left out of the fit.
    """

    prior_residual: Misfit
    residual: Misfit
    held_out: Misfit


@dataclass(frozen=True, eq=False)
class Identifiability:
    """What the postures can tell, whatever the prior says.

    Attributes:
        unknowns: Number of the bodies' parameters that were asked for, U.
        rank: Combinations of them that the data determine.
        condition: Largest over smallest singular value of the whitened rows within that rank, in
            prior deviations.
        informed: Combinations that the data tell better than the prior.
        lost: A few words for each combination that no row tells.
        weak: A few words for each other one of which the data tell next to nothing: its deviation
            is 95 % of the prior's or more.
    """

    unknowns: int
    rank: int
    condition: float
    informed: int
    lost: tuple[str, ...]
    weak: tuple[str, ...] = ()


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
    residual: Misfit
    prior_residual: Misfit
    held_out: Misfit
    without_outliers: Misfits
    variance_factor: float
    weights: Array
    outliers: tuple[int, ...]
    at_bound: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        freeze(self)
