"""The message of an identification's result <-> arrays; see com_ros.conversions for the rules.

Masses in kg, lengths in m, each body's vectors in its own frame; what is not known is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from numpy.typing import NDArray

from com_msgs.msg import IdentificationResult, IdentifiedBody, SensorError
from com_ros.conversions import (
    Array,
    numpy_to_point,
    numpy_to_vector3,
    points_to_numpy,
)

Flags = NDArray[np.bool_]
Distances = tuple[float, float, float]
"""Mean, root mean square and maximum, m."""

NO_DISTANCES: Distances = (math.nan, math.nan, math.nan)


@dataclass(frozen=True, eq=False)
class BodyValues:
    """Masses and centres of mass of B bodies.

    Attributes:
        names: B links.
        mass: (B,) kg.
        mass_std: (B,) kg.
        com: (B, 3) m.
        com_std: (B, 3) m.
        prior_mass: (B,) kg.
        prior_mass_std: (B,) kg.
        prior_com: (B, 3) m.
        prior_com_std: (B, 3) m.
        trusted: (B,) the data determine it better than the prior.
        at_bound: (B,) the CoM is held at a bound.
    """

    names: tuple[str, ...]
    mass: Array
    mass_std: Array
    com: Array
    com_std: Array
    prior_mass: Array
    prior_mass_std: Array
    prior_com: Array
    prior_com_std: Array
    trusted: Flags
    at_bound: Flags


def _no_bodies() -> BodyValues:
    none, rows, flags = np.zeros(0), np.zeros((0, 3)), np.zeros(0, dtype=np.bool_)
    return BodyValues((), none, none, rows, rows, none, none, rows, rows, flags, flags)


@dataclass(frozen=True, eq=False)
class ResultValues:
    """An IdentificationResult message as arrays; by default what is published before there is one.

    Attributes:
        status: a constant of IdentificationResult.
        reason: why the status is not OK.
        robot: name.
        postures: ids of those used.
        bodies: the result.
        total_mass: kg.
        total_mass_std: kg.
        model_mass: kg.
        n_parameters: to be identified.
        rank: of the data.
        n_improved: combinations that the data determine better than the prior.
        condition: number.
        unidentifiable: combinations of parameters, in words.
        weakly_identifiable: likewise.
        residual: after the fit.
        prior_residual: of the prior.
        held_out: of postures that were left out.
        variance_factor: 1 where the noise was as said.
        outliers: ids.
        sensor_errors: value and standard deviation by kind and name.
    """

    status: int = IdentificationResult.STATUS_UNKNOWN
    reason: str = ""
    robot: str = ""
    postures: tuple[int, ...] = ()
    bodies: BodyValues = field(default_factory=_no_bodies)
    total_mass: float = math.nan
    total_mass_std: float = math.nan
    model_mass: float = math.nan
    n_parameters: int = 0
    rank: int = 0
    n_improved: int = 0
    condition: float = math.nan
    unidentifiable: tuple[str, ...] = ()
    weakly_identifiable: tuple[str, ...] = ()
    residual: Distances = NO_DISTANCES
    prior_residual: Distances = NO_DISTANCES
    held_out: Distances = NO_DISTANCES
    variance_factor: float = math.nan
    outliers: tuple[int, ...] = ()
    sensor_errors: Mapping[tuple[str, str], tuple[float, float]] = field(default_factory=dict)


_SAME = ("status", "reason", "robot", "n_parameters", "rank", "n_improved")
_FLOATS = ("total_mass", "total_mass_std", "model_mass", "condition", "variance_factor")
_LISTS = ("postures", "unidentifiable", "weakly_identifiable", "outliers")
_DISTANCES = ("residual", "prior_residual", "held_out")


def identification_result_to_numpy(msg: IdentificationResult) -> ResultValues:
    """Values of an IdentificationResult message."""
    values = {name: getattr(msg, name) for name in _SAME + _FLOATS}
    values |= {name: tuple(getattr(msg, name)) for name in _LISTS}
    for name in _DISTANCES:
        values[name] = tuple(getattr(msg, f"{name}_{part}") for part in ("mean", "rms", "max"))
    errors = {(e.kind, e.name): (e.value, e.std) for e in msg.sensor_errors}
    return ResultValues(**values, bodies=_bodies_to_numpy(msg.bodies), sensor_errors=errors)


def numpy_to_identification_result(
    values: ResultValues, stamp: Time, frame: str
) -> IdentificationResult:
    """IdentificationResult message of values."""
    msg = IdentificationResult()
    msg.header.stamp, msg.header.frame_id = stamp, frame
    for name in _SAME:
        setattr(msg, name, getattr(values, name))
    for name in _FLOATS:
        setattr(msg, name, float(getattr(values, name)))
    for name in _LISTS:
        setattr(msg, name, list(getattr(values, name)))
    for name in _DISTANCES:
        for part, value in zip(("mean", "rms", "max"), getattr(values, name), strict=True):
            setattr(msg, f"{name}_{part}", float(value))
    bodies = values.bodies
    msg.bodies = [_body(bodies, i) for i in range(len(bodies.names))]
    msg.at_bound = [name for name, held in zip(bodies.names, bodies.at_bound, strict=True) if held]
    msg.sensor_errors = [
        SensorError(kind=kind, name=name, value=float(value), std=float(std))
        for (kind, name), (value, std) in values.sensor_errors.items()
    ]
    return msg


def _bodies_to_numpy(bodies: list[IdentifiedBody]) -> BodyValues:
    arrays: dict[str, Any] = {
        name: np.array([getattr(body, name) for body in bodies], dtype=np.float64)
        for name in ("mass", "mass_std", "prior_mass", "prior_mass_std")
    }
    arrays |= {
        name: points_to_numpy([getattr(body, name) for body in bodies])
        for name in ("com", "com_std", "prior_com", "prior_com_std")
    }
    arrays |= {
        name: np.array([getattr(body, name) for body in bodies], dtype=np.bool_)
        for name in ("trusted", "at_bound")
    }
    return BodyValues(tuple(body.name for body in bodies), **arrays)


def _body(values: BodyValues, i: int) -> IdentifiedBody:
    msg = IdentifiedBody(name=values.names[i])
    for name in ("mass", "mass_std", "prior_mass", "prior_mass_std"):
        setattr(msg, name, float(getattr(values, name)[i]))
    for name in ("com", "prior_com"):
        numpy_to_point(getattr(values, name)[i], getattr(msg, name))
    for name in ("com_std", "prior_com_std"):
        numpy_to_vector3(getattr(values, name)[i], getattr(msg, name))
    msg.trusted, msg.at_bound = bool(values.trusted[i]), bool(values.at_bound[i])
    return msg
