"""Mass and CoM by the feet alone in one posture, with covariance; biases of the feet's sensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from com_identification.exceptions import CaptureRefused
from com_identification.regression.observations import ObservationModel
from com_identification.regression.postures import Posture, SensorPrediction
from com_identification.regression.priors import BodyPriors
from com_model import Foot, RobotModel
from com_model.arrays import Array, freeze
from com_model.dynamics import GRAVITY


@dataclass(frozen=True, eq=False)
class FeetReading:
    """Mass and CoM by the feet and by the model; root axes.

    Attributes:
        mass: kg, by the feet.
        mass_std: kg, by the sensors' noise.
        force: (3,) N, of the ground on the robot.
        up: (3,) unit vector against gravity, by the IMU or the loaded soles.
        point: (3,) m, on the vertical through the CoM by the feet.
        center: (3,) m, mean of the loaded soles.
        normal: (3,) unit vector, mean z of the loaded flat soles; NaN without any.
        pressure: (3,) m, centre of pressure in the plane through center; NaN without normal.
        com: (3,) m, by the model.
        covariance: (3, 3) m^2, of the difference between point and com, across up.
    """

    mass: float
    mass_std: float
    force: Array
    up: Array
    point: Array
    center: Array
    normal: Array
    pressure: Array
    com: Array
    covariance: Array

    def __post_init__(self) -> None:
        freeze(self)

    @property
    def gap(self) -> Array:
        """(3,) m, from the model's CoM to the vertical by the feet, across up."""
        gap = self.point - self.com
        return np.asarray(gap - (gap @ self.up) * self.up)


def read_feet(observations: ObservationModel, posture: Posture, theta: Array) -> FeetReading | None:
    """Reads a posture; None where a foot's wrench is not known, or nothing carries the robot.

    Args:
        observations: Of the robot, with the sensors' noise.
        posture: The readings.
        theta: (4 B,) masses and first moments of the model.

    Raises:
        PostureError: The readings do not fit the robot, or gravity's direction is not known.
    """
    if not len(posture.wrenches) or not np.isfinite(posture.wrenches).all():
        return None
    observations.check(posture)
    measured, loaded = (
        observations.measured_com(posture),
        observations.loaded_feet(posture.wrenches),
    )
    if measured is None or not loaded.any() or not abs(measured.mass) > 1e-9:
        return None
    mass, point, up, wrench = measured
    statics, model = observations.statics, observations.model
    poses = statics.poses(posture.q[None])
    R, p = statics.link_frames(poses, [model.link_index(foot.frame) for foot in observations.feet])
    center = p[0][loaded].mean(axis=0)
    flat = loaded & np.array([len(foot.corners) > 0 for foot in observations.feet])
    normal = np.full(3, np.nan)
    if flat.any():
        normal = R[0][flat][:, :, 2].sum(axis=0)
        normal /= np.linalg.norm(normal)
    moment = wrench[3:] - np.cross(center, wrench[:3])
    push = float(wrench[:3] @ normal)
    none = np.zeros(observations.errors.count)
    noise = observations.linearize(posture, theta, none).covariance[:6, :6]
    weight = mass * observations.gravity
    # point = center + up x moment / (up . force), by the force and the moment about the root
    by_force = -_cross(up) @ _cross(center) - np.outer(point - center, up)
    to_point = np.hstack((by_force, _cross(up))) / weight
    return FeetReading(
        mass=mass,
        mass_std=float(np.sqrt(up @ noise[:3, :3] @ up)) / observations.gravity,
        force=wrench[:3],
        up=up,
        point=point,
        center=center,
        normal=normal,
        pressure=center + np.cross(normal, moment) / push,
        com=statics.first_moment(poses)[0] @ theta / (statics.mass() @ theta),
        covariance=to_point @ noise @ to_point.T,
    )


def _cross(v: Array) -> Array:
    return np.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])


def estimate_wrench_bias(
    model: RobotModel,
    feet: Sequence[Foot],
    posture: Posture,
    foot: int,
    priors: BodyPriors,
    gravity: float = GRAVITY,
) -> Array:
    """Estimates the bias of a foot's sensor, if the model is right.

    Args:
        model: The robot.
        feet: Its feet.
        posture: Stationary on this foot alone.
        foot: Index of the foot.
        priors: Masses and centres of mass of the model.
        gravity: m/s^2.

    Returns:
        (6,) N and N m in the sensor's frame, as read: measured less expected.

    Raises:
        CaptureRefused: Another foot carries load, too, or the direction of gravity is not known.
    """
    observations = ObservationModel(model, feet, gravity=gravity)
    loaded = observations.loaded_feet(posture.wrenches)
    others = [other.frame for i, other in enumerate(feet) if loaded[i] and i != foot]
    if others:
        raise CaptureRefused(
            (
                f"{', '.join(others)} carries too: how the feet share the weight is not known; "
                f"lift it, so that {feet[foot].frame} carries all",
            )
        )
    up = observations.up_direction(posture)
    if not np.isfinite(up).all():
        raise CaptureRefused(
            ("the direction of gravity is not known: use an IMU, or a foot with a flat sole",)
        )
    prediction = SensorPrediction(observations.statics, feet, priors.parameters, gravity)
    expected = prediction.posture(posture.q, up, (foot,), efforts=False, samples=1)
    return np.asarray(posture.wrenches[foot] - expected.wrenches[foot])
