"""Comparison of readings, URDF and result: residuals, and the CoM of each posture on a sole."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from com_identification.regression.observations import MeasuredCom, ObservationModel
from com_identification.regression.postures import Posture
from com_identification.regression.result import Identification, Residual, Residuals
from com_identification.regression.statics import Statics
from com_model import Foot, RobotModel
from com_model.arrays import Array


def residual_rows(found: Identification) -> list[tuple[str, Residual]]:
    """Returns the residuals with their names, also without the outliers where there are any.

    Args:
        found: the result.
    """
    groups: list[tuple[str, Identification | Residuals]] = [("", found)]
    if found.outliers:
        groups.append((", without outliers", found.without_outliers))
    return [
        (f"{name}{suffix}", residual)
        for suffix, group in groups
        for name, residual in (
            ("URDF", group.prior_residual),
            ("identified", group.residual),
            ("identified, postures left out of the fit in turn", group.held_out),
        )
    ]


def body_labels(model: RobotModel, bodies: Sequence[str]) -> list[str]:
    """Names bodies by their first link, and by the heaviest where that is another.

    Args:
        model: the robot.
        bodies: names of its bodies, by their first link.
    """
    pairs = zip(bodies, Statics(model).labels, strict=True)
    return [
        name if heaviest == name else f"{name} ({heaviest})" for name, heaviest in pairs
    ]


@dataclass(frozen=True, eq=False)
class PostureFit:
    """A posture and its CoM in the x and y of a sole in contact.

    Attributes:
        label: name of the posture.
        samples: readings behind its means.
        sole: index of the foot whose sole it is; -1 without contact, then the positions are
            NaN.
        standing: names of the feet in contact.
        mass: kg, by the feet.
        measured: (2,) m, by the feet.
        before: (2,) m, by the URDF.
        after: (2,) m, by the result.
        error_before: m, horizontal error of the URDF's CoM.
        error_after: m, of the result's CoM, sensor errors removed.
        weight: 0 to 1, of the posture in the fit.
    """

    label: str
    samples: int
    sole: int
    standing: tuple[str, ...]
    mass: float
    measured: Array
    before: Array
    after: Array
    error_before: float
    error_after: float
    weight: float


def compare_postures(
    model: RobotModel,
    feet: Sequence[Foot],
    postures: Sequence[Posture],
    found: Identification,
    gravity: float,
) -> list[PostureFit]:
    """Compares readings, URDF and result, posture by posture.

    Args:
        model: the robot.
        feet: its feet.
        postures: their readings.
        found: the result.
        gravity: m/s^2.
    """
    observations = ObservationModel(model, feet, gravity=gravity)
    errors = np.array(
        [
            found.sensor_errors.get(k, {}).get(name, 0.0)
            for k, name in observations.errors.names
        ]
    )
    prior_com = np.nan_to_num(found.prior_com)
    prior = np.column_stack(
        (found.prior_mass, found.prior_mass[:, None] * prior_com)
    ).ravel()
    fits = []
    for posture, weight in zip(postures, found.weights, strict=True):
        measured = observations.measured_com(posture, errors)
        loaded = np.flatnonzero(observations.contacts.loaded(posture.wrenches))
        places = np.full((3, 2), np.nan)
        if measured is not None and len(loaded):
            sole = observations.feet[loaded[0]].frame
            places = _on_sole(
                observations, posture, sole, measured, (prior, found.parameters)
            )
        fits.append(
            PostureFit(
                label=posture.label,
                samples=posture.samples,
                sole=int(loaded[0]) if np.isfinite(places[0]).all() else -1,
                standing=tuple(observations.feet[i].frame for i in loaded),
                mass=float("nan") if measured is None else measured.mass,
                measured=places[0],
                before=places[1],
                after=places[2],
                error_before=observations.com_error(
                    posture, prior, np.zeros_like(errors)
                ),
                error_after=observations.com_error(posture, found.parameters, errors),
                weight=float(weight),
            )
        )
    return fits


def _on_sole(
    observations: ObservationModel,
    posture: Posture,
    sole: str,
    measured: MeasuredCom,
    thetas: Sequence[Array],
) -> Array:
    """Projects the CoM vertically onto a sole: x and y (1 + N, 2) m, by the feet, by thetas."""
    statics, up = observations.statics, measured.up
    poses = statics.poses(posture.q[None])
    link = statics.model.link_index(sole)
    R, p = (array[0, 0] for array in statics.link_frames(poses, [link]))
    points = [measured.point, *(statics.com(poses, theta)[0] for theta in thetas)]
    drops = [((point - p) @ R[:, 2]) / (up @ R[:, 2]) for point in points]
    return np.array(
        [(R.T @ (x - drop * up - p))[:2] for x, drop in zip(points, drops, strict=True)]
    )


def gain(found: Identification) -> str:
    """Returns how much better than the URDF a result is, as a sentence.

    Args:
        found: the result.
    """
    std, shift = found.prediction_std, found.prediction_shift
    urdf = float(np.hypot(shift, std))
    known = f"In such postures the CoM is accurate to {1e3 * std:.2f} mm (one sigma, horizontal)"
    # the CoM must have moved by a standard deviation
    if shift < 1.0 * std:
        return (
            f"{known}, and the URDF's differs by only {1e3 * shift:.2f} mm: the result is not "
            "clearly better than the URDF; capture more postures, half of them on one foot, or "
            "narrow sensors.* to what is known."
        )
    return f"{known}, with the URDF only to {1e3 * urdf:.2f} mm: {urdf / std:.1f} times better."


def summary(found: Identification) -> str:
    """Returns a result in two sentences; the first says how much better than the URDF it is.

    Args:
        found: the result.
    """
    what, good = found.identifiability, found.without_outliers
    count = len(found.weights)
    return (
        f"{gain(found)} {count - len(found.outliers)} of {count} postures fit: residual of the "
        f"feet's CoM {1e3 * good.residual.rms:.2f} mm rms (URDF "
        f"{1e3 * good.prior_residual.rms:.2f} mm, left-out postures "
        f"{1e3 * good.held_out.rms:.2f} mm), rank {what.rank} of "
        f"{what.unknowns}, total mass {found.total_mass:.4g} kg"
    )


def informed_errors(found: Identification) -> Iterator[tuple[str, str, float, float]]:
    """Yields constant errors of the sensors that the readings determine.

    Args:
        found: the result.

    Returns:
        Kind, name, value and standard deviation, in the units of SensorErrors.
    """
    for kind, values in found.sensor_errors.items():
        stds = found.sensor_stds[kind]
        for name, value in values.items():
            # above 80 % of the prior's standard deviation readings hardly determine an error
            if stds[name] < 0.8 * found.sensor_prior_stds[kind][name]:
                yield kind, name, float(value), float(stds[name])
