"""Comparison of readings, URDF and result: residuals, and the CoM of each posture on a sole."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from com_identification.regression.identify import Identification, Residual, Residuals
from com_identification.regression.observations import MeasuredCom, ObservationModel
from com_identification.regression.postures import Posture
from com_identification.regression.statics import Statics
from com_model import Foot, RobotModel
from com_model.arrays import Array


def residual_rows(found: Identification) -> list[tuple[str, Residual]]:
    """Returns the residuals with their names, also without the outliers where there are any."""
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
    """Names bodies by their first link, and by the heaviest where that is another."""
    pairs = zip(bodies, Statics(model).labels, strict=True)
    return [name if heaviest == name else f"{name} ({heaviest})" for name, heaviest in pairs]


@dataclass(frozen=True, eq=False)
class PostureFit:
    """A posture and its CoM in the x and y of a sole in contact."""

    label: str  # name of the posture
    samples: int  # readings behind its means
    sole: int  # index of the foot whose sole it is; -1 without contact, then the positions are NaN
    standing: tuple[str, ...]  # names of the feet in contact
    mass: float  # kg, by the feet
    measured: Array  # (2,) m, by the feet
    before: Array  # (2,) m, by the URDF
    after: Array  # (2,) m, by the result
    error_before: float  # m, horizontal error of the URDF's CoM
    error_after: float  # m, of the result's CoM, sensor errors removed
    weight: float  # 0 to 1, of the posture in the fit


def compare_postures(
    model: RobotModel,
    feet: Sequence[Foot],
    postures: Sequence[Posture],
    found: Identification,
    gravity: float,
) -> list[PostureFit]:
    """Compares readings, URDF and result, posture by posture; gravity in m/s^2."""
    observations = ObservationModel(model, feet, gravity=gravity)
    errors = np.array(
        [found.sensor_errors.get(k, {}).get(name, 0.0) for k, name in observations.errors.names]
    )
    prior_com = np.nan_to_num(found.prior_com)
    prior = np.column_stack((found.prior_mass, found.prior_mass[:, None] * prior_com)).ravel()
    fits = []
    for posture, weight in zip(postures, found.weights, strict=True):
        measured = observations.measured_com(posture, errors)
        loaded = np.flatnonzero(observations.contacts.loaded(posture.wrenches))
        places = np.full((3, 2), np.nan)
        if measured is not None and len(loaded):
            sole = observations.feet[loaded[0]].frame
            places = _on_sole(observations, posture, sole, measured, (prior, found.parameters))
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
                error_before=observations.com_error(posture, prior, np.zeros_like(errors)),
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
