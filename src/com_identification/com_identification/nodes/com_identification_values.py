"""Results of the identification in the form in which they become messages."""

from __future__ import annotations

import numpy as np

from com_identification.job import TotalCom
from com_identification.nodes.com_identification_robot import Robot
from com_identification.nodes.identification_result import BodyValues, Distances, ResultValues
from com_identification.regression.identify import Identification, Residual
from com_identification.store.export import trusted_bodies
from com_model.arrays import Array
from com_msgs.msg import IdentificationResult
from com_msgs.srv import IdentifyTotalCom
from com_ros.conversions import numpy_to_vector3

NOISY = 4.0  # variance factor: the noise is twice as large as was said


def result_values(robot: Robot) -> ResultValues:
    """The latest result of a robot."""
    if robot.found is None:
        return ResultValues(
            reason="nothing is identified yet: capture postures and call identify_links",
            robot=robot.model.name,
            model_mass=robot.model.mass,
        )
    found, ids = robot.found.identification, robot.found.ids
    doubts = doubts_of(found)
    told, good = found.identifiability, found.without_outliers
    return ResultValues(
        status=IdentificationResult.STATUS_DEGRADED if doubts else IdentificationResult.STATUS_OK,
        reason=" ".join(doubts),
        robot=robot.model.name,
        postures=ids,
        bodies=_bodies(found),
        total_mass=found.total_mass,
        total_mass_std=found.total_mass_std,
        model_mass=robot.model.mass,
        n_parameters=told.unknowns,
        rank=told.rank,
        n_improved=told.informed,
        condition=told.condition,
        unidentifiable=told.lost,
        weakly_identifiable=told.weak,
        residual=_distances(good.residual),
        prior_residual=_distances(good.prior_residual),
        held_out=_distances(good.held_out),
        variance_factor=found.variance_factor,
        outliers=tuple(ids[i] for i in found.outliers),
        sensor_errors={
            (kind, name): (value, found.sensor_stds[kind][name])
            for kind, values in found.sensor_errors.items()
            for name, value in values.items()
        },
    )


def doubts_of(found: Identification) -> list[str]:
    """Why a result is doubtful, each and how to fix it; empty: nothing speaks against it."""
    doubts, good = [], found.without_outliers
    if found.variance_factor > NOISY:
        doubts.append(
            f"The readings scatter {np.sqrt(found.variance_factor):.1f} times as much as noise.* "
            "says: raise it, tare the sensors, or let their errors be estimated (sensors.*)."
        )
    if good.held_out.rms > good.prior_residual.rms:
        doubts.append(
            f"Postures that were left out are predicted to {1e3 * good.held_out.rms:.2f} mm, "
            f"worse than by the URDF ({1e3 * good.prior_residual.rms:.2f} mm): capture more."
        )
    if found.at_bound:
        doubts.append(
            f"The centre of mass of {', '.join(found.at_bound)} would be outside of the link's "
            "shape: check the sensors and the shapes, or set prior.bounded to false."
        )
    if 3 * len(found.outliers) > len(found.weights):
        doubts.append(
            f"{len(found.outliers)} of {len(found.weights)} postures do not fit the others: look "
            "at the problems that get_postures tells."
        )
    return doubts


def summary(found: Identification) -> str:
    """A result in one sentence."""
    told, good = found.identifiability, found.without_outliers
    count = len(found.weights)
    return (
        f"{count - len(found.outliers)} of {count} postures fit: the feet's CoM is met to "
        f"{1e3 * good.residual.rms:.2f} mm rms (URDF {1e3 * good.prior_residual.rms:.2f} mm, "
        f"left-out postures {1e3 * good.held_out.rms:.2f} mm), rank {told.rank} of "
        f"{told.unknowns}, total mass {found.total_mass:.4g} kg"
    )


def fill_total(total: TotalCom, response: IdentifyTotalCom.Response) -> None:
    """Puts mass and offset of the whole robot into a response."""
    told = np.isfinite(total.offset_std)
    response.mass, response.mass_std = float(total.mass), float(total.mass_std)
    response.model_mass = float(total.model_mass)
    numpy_to_vector3(np.where(told, total.offset, np.nan), response.offset)
    numpy_to_vector3(np.where(told, total.offset_std, np.nan), response.offset_std)
    response.distance_mean, response.distance_max = _mean_max(total.residual_before)
    response.shifted_mean, response.shifted_max = _mean_max(total.residual_after)
    response.used = int(total.postures)
    response.issues = list(total.reasons)


def _mean_max(distances: Array) -> tuple[float, float]:
    if not len(distances):
        return float("nan"), float("nan")
    return float(np.mean(distances)), float(np.max(distances))


def _distances(misfit: Residual) -> Distances:
    return misfit.mean, misfit.rms, misfit.maximum


def _bodies(found: Identification) -> BodyValues:
    held = [name in found.at_bound for name in found.bodies]
    return BodyValues(
        names=found.bodies,
        mass=found.mass,
        mass_std=found.mass_std,
        com=found.com,
        com_std=found.com_std,
        prior_mass=found.prior_mass,
        prior_mass_std=found.prior_mass_std,
        prior_com=found.prior_com,
        prior_com_std=found.prior_com_std,
        trusted=np.asarray(trusted_bodies(found), dtype=np.bool_),
        at_bound=np.array(held, dtype=np.bool_),
    )
