"""Identifies a robot from recordings of its walking: torques and an IMU, no foot force sensors."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.spatial.transform import Rotation

from com_bags import WalkLog
from com_identification.exceptions import WalkError
from com_identification.regression.result import BODY_CHANGES, body_changes
from com_identification.walking import rows
from com_identification.walking.advice import Advice, advise
from com_identification.walking.fit import (
    AcceptanceTest,
    WalkFit,
    accept,
    check_payload,
    fit,
    undetermined,
    unexplained,
)
from com_identification.walking.kernels import IMU, with_theta
from com_identification.walking.log import ConditionedLog
from com_identification.walking.preparation import carrying, check_loads, prepare
from com_identification.walking.unknowns import GAIN_STD, KINDS, Scale, Unknowns
from com_model import RobotConfig, RobotModel
from com_model.actuators import COMMON_GAIN
from com_model.arrays import Array
from com_model.dynamics.tree_kernels import tree_of
from com_model.text import Facts, Shown

FIXED = 1e-3  # of the prior's standard deviation, for unknowns that the rows do not determine
_NUMB = (
    ". Required, as legs with too few joints do not feel all that acts on their feet"
)


@dataclass(frozen=True, eq=False, repr=False)
class WalkResult(Shown):
    """Result of an identification from walking.

    Attributes:
        model: the robot, as its URDF says.
        unknowns: with their priors.
        z: (Z,) see Unknowns; encoder biases and IMU errors are whole ones.
        covariance: (Z, Z).
        scale: how the common scale of masses and torques was determined.
        rho: factor of the scale on the estimate with mean gain 1.
        rho_std: its standard deviation.
        fit: before the scale.
        inflation: of its covariance, for errors that its rows do not show.
        gates: the tests of the result.
        seconds: s, of the recordings.
        posture: (n,) rad or m, mean of the walk.
        advice: what to record next.
        notes: on the recordings, in words.
        postures: number of resting postures on foot force sensors that were also used.
    """

    model: RobotModel
    unknowns: Unknowns
    z: Array
    covariance: Array
    scale: Scale
    rho: float
    rho_std: float
    fit: WalkFit
    inflation: float
    gates: tuple[AcceptanceTest, ...]
    seconds: float
    posture: Array
    advice: Advice
    notes: tuple[str, ...]
    postures: int = 0

    def facts(self) -> Facts:
        """Mass, and whether all tests passed; of each body the masses and its CoM's move."""
        before = self.unknowns.theta(self.unknowns.mean)
        old, new = before[:, 0], self.theta[:, 0]
        # bodies without mass have no CoM
        full = np.minimum(old, new) > 0.0
        moved = (
            self.theta[full, 1:4].T / new[full] - before[full, 1:4].T / old[full]
        ).T
        names = np.array(self.model.bodies.names)[full]
        mass, std = self.total_mass
        return Facts(
            f"of {self.model.name!r}: {mass:.4g} ± {std:.2g} kg, "
            f"{'accepted' if self.accepted else 'not accepted'}",
            BODY_CHANGES,
            body_changes(names, old[full], new[full], moved),
        )

    @property
    def accepted(self) -> bool:
        """Whether all tests that are required passed."""
        return all(gate.passed for gate in self.gates if gate.required)

    @cached_property
    def theta(self) -> Array:
        """(B, 10): m, m c, I about the origin of each body."""
        return self.unknowns.theta(self.z)

    @property
    def ratios(self) -> Array:
        """(Z,) posterior over prior standard deviation."""
        return np.sqrt(np.diag(self.covariance)) / self.unknowns.std

    @property
    def total_mass(self) -> tuple[float, float]:
        """Mass of the robot and its standard deviation, kg."""
        g, mass = self.unknowns.mass_direction(self.z), self.unknowns.total_mass(self.z)
        return mass, float(mass * np.sqrt(g @ self.covariance @ g))

    def com(self, q: Array) -> tuple[Array, Array]:
        """Returns the robot's CoM in the root link's frame, and its covariance.

        Args:
            q: (n,) rad or m.

        Returns:
            (3,) m, and (3, 3) m^2.
        """
        com, J = self.unknowns.com(self.z, q)
        return com, J @ self.covariance @ J.T


def identify_walking(
    logs: Sequence[WalkLog],
    model: RobotModel,
    config: RobotConfig,
    scale: Scale | None = None,
) -> WalkResult:
    """Identifies a robot from recordings of its walking.

    Args:
        logs: recordings of walking; different gaits are more informative than long ones.
        model: as its URDF says.
        config: its feet and the IMU's link.
        scale: the weighed mass; None: the mean gain of the torques is 1.

    Raises:
        WalkError: the recordings cannot be used; says why and what would help.
    """
    if not logs:
        raise WalkError(
            "the robot never walks for 3 s: expected a recording of walking"
        )
    scale, ready = scale or Scale(), prepare(logs, model, config)
    model, limbs, data, posture = ready.model, ready.limbs, ready.data, ready.posture
    noise, measured, unknowns = ready.noise, ready.measured, ready.unknowns
    prior, robot, z = unknowns, tree_of(model.bodies), unknowns.mean
    shift = np.zeros_like(z)
    passes = 2
    for k in range(passes):
        mass = float(robot.mass.sum())
        contacts = [rows.find_contacts(each, robot, limbs, mass) for each in data]
        if k == 0:
            check_loads(data, contacts, mass)
            data = [
                replace(each, usable=each.usable & carrying(each, loads, mass))
                for each, (loads, _) in zip(data, contacts, strict=True)
            ]
        x = unknowns.coefficients(z)
        made = rows.make_rows(data, contacts, robot, limbs, noise, measured, x)
        if k == 0:
            fixed = undetermined(made, unknowns)
            unknowns = replace(unknowns, std=np.where(fixed, FIXED, 1.0) * prior.std)
        starts, number = np.unique(made.block, return_inverse=True)
        # the last 15 % of the blocks
        split = int(np.searchsorted(number, np.floor((1.0 - 0.15) * len(starts))))
        found = fit(made.take(slice(split)), unknowns, z)
        z = found.z
        if k + 1 < passes:
            step, zeros = np.zeros_like(z), unknowns.joint_slice(KINDS[-1])
            # rows are linearised about them
            step[zeros], step[-IMU:] = z[zeros], z[-IMU:]
            data = [_corrected(each, unknowns, z) for each in data]
            shift, z = shift + step, z - step
            unknowns = replace(unknowns, mean=prior.mean - shift)
            robot = with_theta(robot, unknowns.theta(z))
    unseen, x = made.take(slice(split, None)), unknowns.coefficients(z)
    gates = accept(found, unknowns, unseen, scale, 1.0 / data[0].period)
    # errors of the model move the estimate in proportion to what they leave unexplained
    # rigid joints, hard ground and an IMU without delay leave 1.6 % unexplained
    factor = max(1.0, unexplained(unseen, x, unknowns.gain_columns) / 1.6) ** 2
    found = fit(made, unknowns, z)
    check_payload(found, unknowns, starts)
    newest, H = (
        replace(ready, data=data, unknowns=unknowns),
        found.information.sum(axis=0),
    )
    # of the covariance, for errors that the scores of few gaits do not show
    unseen_factor = 2.0
    advice = advise(
        newest, found.z, H, found.tempering * unseen_factor * factor, contacts[-1]
    )
    inflation, D = unseen_factor * factor, unknowns.jacobian(found.z)
    K = (
        np.eye(len(z))[:, fixed]
        - found.covariance @ (D.T @ (H @ D[:, fixed])) / found.tempering
    )
    # K = dz / d(fixed)
    known = found.covariance + K * prior.std[fixed] ** 2 / inflation @ K.T
    z, covariance, rho, rho_std = with_scale(
        unknowns, replace(found, covariance=known), scale, inflation
    )
    z = z + shift
    J = prior.com(z, posture)[1]
    std, limit = np.sqrt(np.diag(J @ covariance @ J.T)).max(), 0.007 * ready.leg_length
    numb = bool((limbs.joint_count < limbs.size).any())
    vague = AcceptanceTest(
        "whole-body CoM",
        f"standard deviation {1e3 * std:.1f} mm in the mean posture, limit {1e3 * limit:.1f} mm. "
        "Record more different gaits; the result says which" + numb * _NUMB,
        bool(std < limit),
        required=numb,
    )
    return WalkResult(
        model=model,
        unknowns=prior,
        z=z,
        covariance=covariance,
        scale=scale,
        rho=rho,
        rho_std=rho_std,
        fit=found,
        inflation=inflation,
        gates=(*gates, vague),
        seconds=sum(float(log.time.max() - log.time.min()) for log in logs),
        posture=posture,
        advice=advice,
        notes=ready.notes,
    )


def _corrected(data: ConditionedLog, unknowns: Unknowns, z: Array) -> ConditionedLog:
    """The recording without the encoder and IMU errors of z."""
    motion, R = data.motion, Rotation.from_rotvec(z[-3:]).as_matrix()
    corrected = motion._replace(
        q=motion.q - unknowns.joints(z, "encoder_zero"),
        force=np.ascontiguousarray(motion.force @ R.T - z[-IMU:-3]),
    )
    return replace(data, motion=corrected)


def with_scale(
    unknowns: Unknowns, found: WalkFit, scale: Scale, factor: float
) -> tuple[Array, Array, float, float]:
    """Sets the common scale of masses and torques.

    Args:
        unknowns: with their priors.
        found: the fit with a mean gain of 1.
        scale: the weighed mass.
        factor: of the covariance.

    Returns:
        z (Z,), its covariance (Z, Z), the factor of the scale and its standard deviation.
    """
    z, C = found.z, factor * found.covariance
    estimated = unknowns.total_mass(z)
    if scale.mass is None:
        rho, std = (
            1.0,
            float(np.hypot(COMMON_GAIN, GAIN_STD / np.sqrt(unknowns.legs.sum()))),
        )
    else:
        rho, std = scale.mass / estimated, scale.std / scale.mass
    z = unknowns.scaled(z, rho)
    u, g = unknowns.scale_direction(z), unknowns.mass_direction(z)
    T = np.eye(len(z)) - (0.0 if scale.mass is None else np.outer(u, g))
    C = T @ C @ T.T + np.outer(u, u) * std**2
    return z, (C + C.T) / 2.0, float(rho), float(std)
