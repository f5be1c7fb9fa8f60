"""The equations of one posture, linear in masses, first moments and the sensors' errors.

At rest, about the root's origin and for each joint that has an effort (statics.py),

  sum_i G_i w_i = Y_w theta,    tau + sum_i C_i w_i = Y_tau theta,    0 = Y_c theta

with the feet's wrenches w_i and one last row for each constraint. All six rows of the root are
kept: the horizontal forces have no information on theta, but their noise is that of the moments,
times the root's height, and the joint covariance removes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np

from com_identification.exceptions import PostureError
from com_identification.regression.postures import Posture
from com_identification.regression.statics import Poses, Statics
from com_identification.settings import SensorNoise, SensorPriors
from com_model import Foot, RobotModel
from com_model.arrays import Array, Flags
from com_model.dynamics import GRAVITY
from com_model.wrenches import wrench_signs

_STEP = 1e-6  # rad or m, of central differences
_LOADED = 0.1  # of the forces' sum: a foot with more stands


class SensorErrors:
    """Which entry of a vector of S constant errors is which.

    Args:
        feet: Names of the f feet.
        joints: Names of the n joints.
    """

    def __init__(self, feet: tuple[str, ...], joints: tuple[str, ...]) -> None:
        axes = ("x", "y", "z")
        names: dict[str, list[str]] = {
            "force_bias": [f"{foot} {axis}" for foot in feet for axis in axes],
            "moment_bias": [f"{foot} {axis}" for foot in feet for axis in axes],
            "wrench_gain": list(feet),
            "tilt": list(axes),
        }
        per_joint = ("effort_gain", "effort_offset", "joint_offset", "compliance")
        names.update({kind: list(joints) for kind in per_joint})
        self.names: list[tuple[str, str]] = []
        self._slices: dict[str, slice] = {}
        for kind in (item.name for item in fields(SensorPriors)):
            start = len(self.names)
            self.names += [(kind, name) for name in names[kind]]
            self._slices[kind] = slice(start, len(self.names))

    @property
    def count(self) -> int:
        """S."""
        return len(self.names)

    def part(self, kind: str) -> slice:
        """Returns the slice of the errors of one kind."""
        return self._slices[kind]

    def prior_stds(self, priors: SensorPriors) -> Array:
        """Returns the prior standard deviation of each error, (S,)."""
        return np.concatenate(
            [np.full(s.stop - s.start, getattr(priors, kind)) for kind, s in self._slices.items()]
        )

    def by_name(self, values: Array, used: Flags) -> Mapping[str, dict[str, float]]:
        """Sorts values by kind and name; only those that are used."""
        result: dict[str, dict[str, float]] = {}
        for (kind, name), value, use in zip(self.names, values, used, strict=True):
            if use:
                result.setdefault(kind, {})[name] = float(value)
        return result


@dataclass(frozen=True, eq=False)
class Observation:
    """r = A_theta dtheta + A_e de + noise, linearised about theta and the errors e.

    Attributes:
        residual: (R,) measured less modelled.
        bodies: (R, 4 B) A_theta.
        errors: (R, S) A_e.
        covariance: (R, R) of the noise.
        kinds: R times "force", "moment", "torque" or "constraint".
    """

    residual: Array
    bodies: Array
    errors: Array
    covariance: Array
    kinds: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class _Reading:
    """A posture with the sensors' errors removed, N variations of it."""

    poses: Poses
    up: Array  # (N, 3)
    wrenches: Array  # (f, 6) of the ground on the robot, sensor axes
    effort: Array  # (n,)


class MeasuredCom(NamedTuple):
    """What the feet alone measure, in root axes.

    Attributes:
        mass: kg.
        point: (3,) m, on the vertical through the CoM.
        up: (3,) unit vector against gravity.
        wrench: (6,) N and N m of the ground on the robot, about the root's origin.
    """

    mass: float
    point: Array
    up: Array
    wrench: Array


class ObservationModel:
    """The equations of postures, linearised.

    Args:
        model: The robot.
        feet: Its feet with their force sensors.
        noise: Of one reading.
        gravity: m/s^2.

    Raises:
        UnknownNameError: A foot's link is not the model's.
    """

    def __init__(
        self,
        model: RobotModel,
        feet: Sequence[Foot],
        noise: SensorNoise | None = None,
        gravity: float = GRAVITY,
    ) -> None:
        self.model, self.feet = model, tuple(feet)
        self.noise = noise or SensorNoise()
        self.gravity = gravity
        self.statics = Statics(model)
        self.errors = SensorErrors(tuple(foot.frame for foot in feet), model.joint_names)
        self._sensors = [model.link_index(foot.wrench_frame) for foot in feet]
        self._soles = [model.link_index(foot.frame) for foot in feet]
        self._signs = wrench_signs(feet)
        self._carried = self.statics.carried_feet(self._sensors)

    def linearize(self, posture: Posture, theta: Array, errors: Array) -> Observation:
        """Linearises a posture's equations.

        Args:
            posture: The readings.
            theta: (4 B,) masses and first moments to linearise about.
            errors: (S,) constant errors of the sensors to linearise about.

        Raises:
            PostureError: The readings do not fit the robot, or have no information.
        """
        self.check(posture)
        n, spread = self.model.n_joints, _STEP * np.eye(self.model.n_joints + 3)
        q = np.concatenate((np.zeros((1, n + 3)), spread, -spread))
        reading = self._read(posture, errors, q[:, :n], q[:, n:])
        keep, kinds = self._usable(posture)
        values = self._residuals(posture, reading, theta)
        gains = errors[self.errors.part("effort_gain")]
        # A reading times its gain: taken at what the model expects, which has less noise.
        expected = (reading.effort - values[0, 6 : 6 + n]) / (1.0 + gains)
        values = values[:, keep]
        slope = (values[1 : n + 4] - values[n + 4 :]).T / (2.0 * _STEP)  # (R, n + 3)
        here = _Reading(_first(reading.poses), reading.up[:1], reading.wrenches, reading.effort)
        maps = self._wrench_maps(posture, here.poses)[keep]
        bodies = self._columns(posture, here, theta)[keep]
        torque = self._torque_rows(posture)[keep]
        return Observation(
            residual=values[0],
            bodies=bodies,
            errors=-self._error_slopes(posture, maps, torque, slope, expected),
            covariance=self._covariance(posture, maps, torque, slope),
            kinds=kinds,
        )

    def check(self, posture: Posture) -> None:
        """Refuses readings that do not fit the robot.

        Raises:
            PostureError: Says which, and how to fix it.
        """
        if len(posture.wrenches) not in (0, len(self.feet)):
            names = ", ".join(foot.frame for foot in self.feet) or "none"
            raise PostureError(
                f"{len(posture.wrenches)} wrenches for {len(self.feet)} feet: give one for each of "
                f"{names}"
            )
        if not self._usable(posture)[0].any():
            raise PostureError(
                "it has no foot wrench, no joint effort and no constraint: there is nothing to "
                "identify from it"
            )

    def up_direction(self, posture: Posture) -> Array:
        """The direction against gravity (3,), root axes; NaN where not known."""
        if not np.isfinite(posture.up).all() and not self._flat(posture).any():
            return np.full(3, np.nan)
        poses = self.statics.poses(posture.q[None])
        return np.asarray(self._up(posture, poses)[0])

    def loaded_feet(self, wrenches: Array) -> Flags:
        """Which feet stand: those with more than a tenth of all force of wrenches (f, 6), (f,)."""
        if not len(wrenches):
            return np.zeros(len(self.feet), dtype=np.bool_)
        force = np.linalg.norm(np.nan_to_num(wrenches[:, :3]), axis=1)
        return np.asarray(force > _LOADED * max(float(force.sum()), 1e-9))

    def com_error(self, posture: Posture, theta: Array, errors: Array) -> float:
        """Computes the error of a model's CoM against a posture's readings, m.

        The horizontal distance from the feet's measurement; without one, the constraint that is
        violated most; NaN where there is neither.
        """
        measured = self.measured_com(posture, errors)
        reading = self._read(posture, errors, np.zeros((1, self.model.n_joints)), np.zeros((1, 3)))
        if measured is None:
            columns = self._constraint_columns(posture, reading.poses, theta)[0]
            return float(np.abs(columns @ theta).max(initial=np.nan if not len(columns) else 0.0))
        _, point, up, _ = measured
        com = self.statics.first_moment(reading.poses)[0] @ theta / (self.statics.mass() @ theta)
        across = com - point
        return float(np.linalg.norm(across - (across @ up) * up))

    def measured_com(self, posture: Posture, errors: Array | None = None) -> MeasuredCom | None:
        """Computes the robot's mass and the line of its CoM from the feet alone.

        Moments are taken about the middle of the loaded feet, so that noise of the horizontal
        forces has no long lever. None where a foot's wrench is not known.
        """
        if not len(posture.wrenches) or not np.isfinite(posture.wrenches).all():
            return None
        errors = np.zeros(self.errors.count) if errors is None else errors
        here = self._read(posture, errors, np.zeros((1, self.model.n_joints)), np.zeros((1, 3)))
        wrench = np.einsum(
            "fij,fj->i", self.statics.contact_maps(here.poses, self._sensors)[0][0], here.wrenches
        )
        up = here.up[0]
        _, soles = self.statics.link_frames(here.poses, self._soles)
        center = soles[0][self.loaded_feet(posture.wrenches)].mean(axis=0)
        weight = float(wrench[:3] @ up)
        moment = wrench[3:] - np.cross(center, wrench[:3])
        point = center + np.cross(up, moment) / weight
        return MeasuredCom(weight / self.gravity, point, up, wrench)

    def _read(self, posture: Posture, errors: Array, dq: Array, tilt: Array) -> _Reading:
        part = self.errors.part
        f = len(self.feet)
        effort = np.nan_to_num(posture.effort)
        q = posture.q + errors[part("joint_offset")] - errors[part("compliance")] * effort
        poses = self.statics.poses(q + dq)
        if len(posture.wrenches):
            bias = np.column_stack(
                (
                    errors[part("force_bias")].reshape(f, 3),
                    errors[part("moment_bias")].reshape(f, 3),
                )
            )
            gain = errors[part("wrench_gain")][:, None]
            wrenches = self._signs * np.nan_to_num((1.0 - gain) * posture.wrenches - bias)
        else:
            wrenches = np.zeros((f, 6))
        up = self._up(posture, poses)
        up = up + np.cross(errors[part("tilt")] + tilt, up)
        up = up / np.linalg.norm(up, axis=1)[:, None]
        effort = (1.0 + errors[part("effort_gain")]) * effort - errors[part("effort_offset")]
        return _Reading(poses, up, wrenches, effort)

    def _up(self, posture: Posture, poses: Poses) -> Array:
        """The direction against gravity (N, 3): the IMU's, or the loaded soles' mean z."""
        if np.isfinite(posture.up).all():
            return np.broadcast_to(posture.up, (len(poses.p), 3))
        flat = self._flat(posture)
        if not flat.any():
            raise PostureError(
                "the direction of gravity is not known: use an IMU, or wrenches of soles with "
                "corners on horizontal ground"
            )
        R, _ = self.statics.link_frames(poses, [self._soles[i] for i in np.flatnonzero(flat)])
        up = R[..., 2].sum(axis=1)
        return np.asarray(up / np.linalg.norm(up, axis=1)[:, None])

    def _flat(self, posture: Posture) -> Flags:
        """Which feet stand with a flat sole, (f,)."""
        return self.loaded_feet(posture.wrenches) & np.array(
            [len(foot.corners) > 0 for foot in self.feet]
        )

    def _usable(self, posture: Posture) -> tuple[Flags, tuple[str, ...]]:
        """Which rows have all readings that they need: a mask, and their kinds."""
        n = self.model.n_joints
        known = np.zeros(len(self.feet), dtype=np.bool_)
        if len(posture.wrenches):
            known = np.asarray(np.isfinite(posture.wrenches).all(axis=1))
        root = len(self.feet) > 0 and bool(known.all())
        joints = np.isfinite(posture.effort) & ~(self._carried & ~known).any(axis=1)
        mask = np.concatenate((np.full(6, root), joints, np.ones(len(posture.constraints), bool)))
        names = ["force"] * 3 + ["moment"] * 3 + ["torque"] * n
        names += ["constraint"] * len(posture.constraints)
        return mask, tuple(name for name, use in zip(names, mask, strict=True) if use)

    def _residuals(self, posture: Posture, reading: _Reading, theta: Array) -> Array:
        """Measured less modelled, all rows of N variations: (N, 6 + n + constraints)."""
        a = self.gravity * reading.up
        wrench, torque = self.statics.wrench_and_torques(reading.poses, a, theta)
        root, joints = self.statics.contact_maps(reading.poses, self._sensors)
        root_sum = np.einsum("nfij,fj->ni", root, reading.wrenches)
        joint_sum = np.einsum("nfij,fj->ni", joints, reading.wrenches)
        limits = self._constraint_columns(posture, reading.poses, theta) @ theta
        return np.concatenate(
            (root_sum - wrench, reading.effort + joint_sum - torque, -limits), axis=1
        )

    def _columns(self, posture: Posture, reading: _Reading, theta: Array) -> Array:
        a = self.gravity * reading.up
        return np.concatenate(
            (
                self.statics.root_wrench(reading.poses, a)[0],
                self.statics.torques(reading.poses, a)[0],
                self._constraint_columns(posture, reading.poses, theta)[0],
            )
        )

    def _constraint_columns(self, posture: Posture, poses: Poses, theta: Array) -> Array:
        """Rows n . R^T (first moment - M p) - M offset, over M: (N, constraints, 4 B) in m."""
        count = 4 * self.statics.bodies.count
        columns = np.zeros((len(poses.p), len(posture.constraints), count))
        mass = self.statics.mass()
        for i, limit in enumerate(posture.constraints):
            R, p = self.statics.link_frames(poses, [self.model.link_index(limit.link)])
            normal = R[:, 0] @ limit.normal
            columns[:, i] = np.einsum("ni,nik->nk", normal, self.statics.first_moment(poses))
            columns[:, i] -= (np.einsum("ni,ni->n", normal, p[:, 0]) + limit.offset)[:, None] * mass
        return np.asarray(columns / (mass @ theta))

    def _wrench_maps(self, posture: Posture, poses: Poses) -> Array:
        """Maps from the feet's readings to all rows: (6 + n + constraints, f, 6)."""
        root, joints = self.statics.contact_maps(poses, self._sensors)
        none = np.zeros((len(self.feet), len(posture.constraints), 6))
        maps = np.concatenate((root[0], joints[0], none), axis=1).transpose(1, 0, 2)
        return np.asarray(maps * self._signs)

    def _torque_rows(self, posture: Posture) -> Array:
        """Map from the joint efforts to all rows: (6 + n + constraints, n)."""
        n = self.model.n_joints
        return np.vstack((np.zeros((6, n)), np.eye(n), np.zeros((len(posture.constraints), n))))

    def _error_slopes(
        self, posture: Posture, maps: Array, torque: Array, slope: Array, expected: Array
    ) -> Array:
        """Derivatives of the residuals by the sensors' errors, (R, S)."""
        n, rows, effort = self.model.n_joints, len(slope), np.nan_to_num(posture.effort)
        wrenches = np.zeros((len(self.feet), 6))
        if len(posture.wrenches):
            wrenches = np.nan_to_num(posture.wrenches)
        blocks = {
            "force_bias": -maps[:, :, :3].reshape(rows, -1),
            "moment_bias": -maps[:, :, 3:].reshape(rows, -1),
            "wrench_gain": -np.einsum("rfi,fi->rf", maps, wrenches),
            "effort_gain": torque * expected,
            "effort_offset": -torque,
            "joint_offset": slope[:, :n],
            "compliance": -slope[:, :n] * effort,
            "tilt": slope[:, n:],
        }
        slopes = np.zeros((rows, self.errors.count))
        for kind, block in blocks.items():
            slopes[:, self.errors.part(kind)] = block
        return slopes

    def _covariance(self, posture: Posture, maps: Array, torque: Array, slope: Array) -> Array:
        """Covariance (R, R) of the residuals by the noise of all readings."""
        noise, n = self.noise, self.model.n_joints
        stds = np.concatenate(
            (
                np.tile(np.repeat([noise.force, noise.moment], 3), len(self.feet)),
                np.full(n, noise.effort),
                np.full(n, noise.position),
            )
        ) * noise.std_ratio(posture.samples)
        spread = np.hstack((maps.reshape(len(slope), -1), torque, slope[:, :n])) * stds
        tilted = slope[:, n:] * noise.tilt
        covariance = spread @ spread.T + tilted @ tilted.T
        for i, limit in enumerate(posture.constraints, start=len(slope) - len(posture.constraints)):
            covariance[i, i] += limit.std**2
        return np.asarray(covariance)


def _first(poses: Poses) -> Poses:
    return Poses(poses.R[:1], poses.p[:1], poses.z[:1])
