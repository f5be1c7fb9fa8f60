"""Compares the model's CoM with the feet's readings while the robot is stationary."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

import numpy as np

from com_identification.exceptions import PostureError
from com_identification.feet.feet_reading import FeetReading, read_feet
from com_identification.feet.wrench_check import WrenchFault, angle_between, diagnose
from com_identification.regression.observations import ObservationModel
from com_identification.regression.postures import Posture
from com_identification.settings import IdentificationSettings
from com_model import Foot, RobotModel
from com_model.arrays import Array, FrozenArrays

_SURE = 3.0  # standard deviations
_TILT = 0.01  # rad, between IMU and soles, that is allowed
_VECTORS = ("up", "projection", "measured", "difference", "tilt_part", "model_part")
_NUMBERS = ("model_std", "tilt", "force_tilt", "mass", "mass_std")


class Verdict(IntEnum):
    """Result of the comparison."""

    UNKNOWN = 0  # no comparison is possible; see the reason
    CONSISTENT = 1
    """Mass and CoM of the model agree with the feet, within tolerance and standard deviation."""
    WRONG_COM = 2  # the model's CoM is wrong
    WRONG_MASS = 3  # the model's mass is wrong
    WRONG_TILT = 4  # the CoM agrees, but the IMU disagrees with soles and forces
    WRONG_WRENCH = 5  # the feet's readings cannot be true; see diagnose()


@dataclass(frozen=True, eq=False)
class ModelCheckResult(FrozenArrays):
    """Model against feet, in root axes; points are on the ground, in the plane of the soles.

    difference = tilt_part + model_part, all vectors in that plane. With the height h of the CoM,
    an IMU that is off by a small angle moves the projection by h times the angle.
    """

    verdict: Verdict  # see Verdict
    reason: str  # why, and how to fix it
    up: Array  # (3,) the direction against gravity that was used: the IMU's, or the soles'
    projection: Array  # (3,) m, vertical, of the model's CoM
    measured: Array  # (3,) m, the centre of pressure, above which the CoM is in equilibrium
    difference: Array  # (3,) m, projection less measured
    tilt_part: Array  # (3,) m of it that vanishes if the soles are on horizontal ground
    model_part: Array  # (3,) m, what is left: the model's error and the force sensors'
    model_std: float  # m, standard deviation of a component of model_part by the noise
    tilt: float  # rad, between the IMU's direction and the soles'; NaN without IMU or flat soles
    force_tilt: float  # rad, between the direction that was used and that of the feet's force
    # whether the force agrees with the IMU: the ground is not horizontal, and all of the
    # difference is the model's
    sloped: bool
    mass: float  # kg, that the feet carry
    mass_std: float  # kg
    model_mass: float  # kg

    @property
    def com_error(self) -> float:
        """m, horizontal error of the model's CoM."""
        return float(np.linalg.norm(self.difference if self.sloped else self.model_part))


class ModelCheck:
    """Compares model and feet in stationary postures; see ModelCheckResult.

    Allowed are com_tolerance, m, and mass_tolerance, a fraction of the model's mass.
    """

    def __init__(
        self,
        model: RobotModel,
        feet: Sequence[Foot],
        settings: IdentificationSettings | None = None,
        com_tolerance: float = 0.003,
        mass_tolerance: float = 0.02,
    ) -> None:
        self._settings = settings or IdentificationSettings()
        self._observations = ObservationModel(
            model, feet, self._settings.noise, self._settings.fit.gravity
        )
        self._com, self._mass = com_tolerance, mass_tolerance

    def update(self, posture: Posture | None) -> ModelCheckResult:
        """Compares a stationary posture, as of PostureRecorder.latest(); None: the robot moves."""
        if posture is None:
            return self._unknown("The robot is moving: keep it stationary.")
        try:
            reading = read_feet(self._observations, posture, self._observations.statics.parameters)
        except PostureError as error:
            return self._unknown(f"The readings cannot be used: {error.problem}.")
        if reading is None:
            return self._unknown(
                "The wrenches of all feet are needed, with the robot on them: check their sensors."
            )
        if not np.isfinite(reading.normal).all():
            return self._unknown("No flat sole stands: the plane of the ground is not known.")
        result = self._compare(reading, posture)
        return self._judge(result, self._faults(posture))

    def _compare(self, reading: FeetReading, posture: Posture) -> ModelCheckResult:
        n, center = reading.normal, reading.center
        projection = _along(reading.com, reading.up, n, center)
        level = _along(reading.com, n, n, center)
        tilt, force = np.nan, reading.force / np.linalg.norm(reading.force)
        sloped = False
        if np.isfinite(posture.up).all():
            tilt = angle_between(reading.up, n)
            sloped = bool(
                angle_between(force, reading.up) < angle_between(force, n) and tilt > _TILT
            )
        return ModelCheckResult(
            verdict=Verdict.UNKNOWN,
            reason="",
            up=reading.up,
            projection=projection,
            measured=reading.pressure,
            difference=projection - reading.pressure,
            tilt_part=projection - level,
            model_part=level - reading.pressure,
            model_std=float(np.sqrt(np.trace(reading.covariance) / 2.0)),
            tilt=tilt,
            force_tilt=angle_between(force, reading.up),
            sloped=sloped,
            mass=reading.mass,
            mass_std=reading.mass_std,
            model_mass=self._observations.model.mass,
        )

    def _judge(self, found: ModelCheckResult, faults: str) -> ModelCheckResult:
        off, allowed = found.mass - found.model_mass, self._mass * found.model_mass
        verdict = Verdict.CONSISTENT
        reason = f"The model's CoM is within {1e3 * self._com:.1f} mm of the feet's measurement."
        if faults:
            verdict, reason = Verdict.WRONG_WRENCH, faults
        elif abs(off) > allowed + _SURE * found.mass_std:
            verdict = Verdict.WRONG_MASS
            reason = (
                f"The feet carry {found.mass:.4g} kg, the model has {found.model_mass:.4g} kg: "
                "weigh the robot, tare the sensors, and look for loads that the URDF has not."
            )
        elif found.com_error > self._com + _SURE * found.model_std:
            verdict = Verdict.WRONG_COM
            reason = (
                f"The model's CoM is {1e3 * found.com_error:.1f} mm off: identify the links' "
                "centres of mass."
            )
        elif found.tilt > _TILT and not found.sloped:
            verdict = Verdict.WRONG_TILT
            reason = (
                f"The IMU leans {np.degrees(found.tilt):.1f} deg against soles and forces, which "
                f"moves the projection by {1e3 * np.linalg.norm(found.tilt_part):.1f} mm: level "
                "the IMU, or correct its frame in the URDF."
            )
        return replace(found, verdict=verdict, reason=reason)

    def _faults(self, posture: Posture) -> str:
        """Why the readings cannot be true, other than by a foot in the air or the weight."""
        noise, gravity = self._settings.noise, self._settings.fit.gravity
        model, feet = self._observations.model, self._observations.feet
        issues = diagnose(model, feet, posture, noise, gravity=gravity)
        harmless = (WrenchFault.IN_AIR, WrenchFault.WEIGHT)
        return " ".join(each.text for each in issues if each.fault not in harmless)

    def _unknown(self, reason: str) -> ModelCheckResult:
        unknown: dict[str, Any] = dict.fromkeys(_VECTORS, np.full(3, np.nan))
        unknown |= dict.fromkeys(_NUMBERS, np.nan)
        mass = self._observations.model.mass
        return ModelCheckResult(Verdict.UNKNOWN, reason, sloped=False, model_mass=mass, **unknown)


def _along(point: Array, direction: Array, normal: Array, center: Array) -> Array:
    """Where a line through a point meets the ground."""
    return np.asarray(point - direction * ((point - center) @ normal) / (direction @ normal))
