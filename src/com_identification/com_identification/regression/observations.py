"""The equations of one posture, linear in masses, first moments and the sensors' errors.

At rest, about the root's origin and for each joint that has an effort (statics.py),

  sum_i G_i w_i = Y_w theta,    tau + sum_i C_i w_i = Y_tau theta,    0 = Y_c theta

with the feet's wrenches w_i and one row for each constraint. All six rows of the root are kept:
the horizontal forces have no information on theta, but their noise is that of the moments, times
the root's height, and the joint covariance removes it. Also, where they apply: w_i = 0 of a foot
in the air; the IMU's direction less that of the floor; soles on the floor lie in one plane.
settings.SensorPriors has the errors and what gravity's direction is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from com_identification.exceptions import PostureError
from com_identification.regression.postures import FootContacts, Posture
from com_identification.regression.priors import SensorErrors
from com_identification.regression.statics import Poses, Statics
from com_identification.settings import SensorNoise, SensorPriors
from com_model import Foot, RobotModel
from com_model.arrays import Array, Flags
from com_model.dynamics import GRAVITY
from com_model.robot_config import wrench_signs

_NO_GRAVITY = (
    "the direction of gravity is not known: use an IMU, or wrenches of soles with corners on "
    "horizontal ground"
)


@dataclass(frozen=True, eq=False)
class Observation:
    """The equations of one posture: r = A_theta dtheta + A_e de + noise.

    Linearised about the parameters theta and the sensors' errors e.

    Attributes:
        residual: (R,) measured less modelled.
        bodies: (R, 4 B) A_theta.
        errors: (R, S) A_e.
        drift: (R, 6 f) by the drift of the feet's sensors, in standard deviations of one
            step.
        noise: by the class of error, (R, k) factor F of its covariance F F^T: new in each
            posture.
        covariance: (R, R) of the readings' white noise.
        kinds: R times "force", "moment", "torque", "constraint", "air", "imu" or "soles".
    """

    residual: Array
    bodies: Array
    errors: Array
    drift: Array
    noise: Mapping[str, Array]
    covariance: Array
    kinds: tuple[str, ...]

    @property
    def total_noise(self) -> Array:
        """(R, R) covariance of all noise that is new in this posture."""
        return self.covariance + sum(F @ F.T for F in self.noise.values())


class _Reading(NamedTuple):
    """N variations of a posture with the sensors' errors removed.

    Attributes:
        poses: of the bodies in the N variations.
        up: (N, 3) unit vectors against gravity.
        wrenches: (f, 6) N and N m of the ground on the robot, sensor axes.
        effort: (n,) N m or N.
        imu: (N, 3) against gravity, by the IMU.
        normals: (N, f, 3) of the floor under each sole.
        moments: (2 f,) N m about x, y of each sole, about its middle.
        pull: (N, 6) N and N m from outside, about the root's origin.
    """

    poses: Poses
    up: Array
    wrenches: Array
    effort: Array
    imu: Array
    normals: Array
    moments: Array
    pull: Array


class MeasuredCom(NamedTuple):
    """Mass and vertical line of the CoM by the feet alone, in root axes.

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
    """The linearised equations of static postures.

    Args:
        model: the robot.
        feet: its f feet.
        noise: of single readings; None: the defaults.
        gravity: m/s^2.
        sensors: prior standard deviations of the sensors' errors; None: sensors without errors.

    Attributes:
        statics: of the robot.
        errors: which error is where in a vector of all, with priors.
        contacts: which feet are in contact.
    """

    def __init__(
        self,
        model: RobotModel,
        feet: Sequence[Foot],
        noise: SensorNoise | None = None,
        gravity: float = GRAVITY,
        sensors: SensorPriors | None = None,
    ) -> None:
        self.model, self.feet = model, tuple(feet)
        self.noise = noise or SensorNoise()
        self.gravity = gravity
        self.statics = Statics(model)
        self.priors = SensorPriors.calibrated() if sensors is None else sensors
        self.errors = SensorErrors(model, feet, self.priors, gravity)
        self._sensors = [model.link_index(foot.wrench_frame) for foot in feet]
        self._soles = [model.link_index(foot.frame) for foot in feet]
        ends = [
            foot.corners if len(foot.corners) else np.zeros((1, 2)) for foot in feet
        ]
        self._middles = np.array(
            [[*corners.mean(axis=0), 0.0] for corners in ends]
        ).reshape(-1, 3)
        self._still = np.zeros(
            (1, model.n_joints + 8 + 2 * len(feet))
        )  # no moves; see _read
        self._signs = wrench_signs(feet)
        self.contacts = FootContacts(
            self.statics, self.feet, self.priors, self.errors.weight, self.errors.lever
        )
        self._carried = self.statics.carried_feet(self._sensors)

    def linearize(self, posture: Posture, theta: Array, errors: Array) -> Observation:
        """Linearises a posture's equations about parameters and sensor errors.

        Args:
            posture: readings.
            theta: (4 B,) masses (kg) and first moments (kg m).
            errors: (S,) of the sensors, in their units.

        Raises:
            PostureError: the readings do not fit the robot, or contain no information.
        """
        self.check(posture)
        n = self.model.n_joints
        keep, kinds = self._usable(posture)
        step = 1e-6  # rad or m, of central differences
        steps = step * np.eye(self._still.size)
        moves = np.concatenate((self._still, steps, -steps))
        bent = errors.copy()
        bent[self.errors.kinds["compliance"]] = 0.0
        straight = self._read(posture, bent, self._still)
        torque = straight.effort
        if self.priors.compliance and not np.isfinite(posture.effort).all():
            modelled = self._residuals(posture, straight, theta)[0, 6 : 6 + n]
            torque = np.where(np.isfinite(posture.effort), torque, torque - modelled)
        reading = self._read(posture, errors, moves, torque)
        values = self._residuals(posture, reading, theta)
        gains = errors[self.errors.kinds["effort_gain"]]
        # a reading times its gain: at the value that the model expects, which has less noise.
        expected = (reading.effort - values[0, 6 : 6 + n]) / (1.0 + gains)
        root, values = values[0, :6], values[:, keep]
        slope = np.subtract(*np.split(values[1:], 2)).T / (
            2.0 * step
        )  # (R, n + 8 + 2 f)
        poses = Poses(reading.poses.R[:1], reading.poses.p[:1], reading.poses.z[:1])
        here = reading._replace(poses=poses, up=reading.up[:1])
        maps = self._wrench_maps(posture, here.poses)[keep]
        efforts = np.zeros((len(keep), n))
        efforts[6 : 6 + n] = np.eye(n)
        efforts = efforts[keep]
        sensors = np.einsum("rfi,fij->rfj", maps, self.errors.wrench_matrices(errors))
        read = self.errors.unbiased(posture.wrenches, errors)
        if "force" in kinds:
            read = self._expected_readings(posture, here, root, errors)
        by_error = self._error_columns(
            read, maps, sensors, slope, torque, reading.moments
        )
        by_error[:, self.errors.kinds["effort_gain"]] = -efforts * expected
        by_error[:, self.errors.kinds["effort_offset"]] = efforts
        outside = np.zeros((len(keep), 6))
        axes = self._floor_axes(posture, here.poses)[0]
        outside[:3, :3] = outside[3:6, 3:] = -axes
        by_error[:, self.errors.kinds["pull"]] = outside[keep, :3]
        by_error[:, self.errors.kinds["pull_moment"]] = outside[keep, 3:]
        drift = np.repeat([self.priors.force_drift, self.priors.moment_drift], 3)
        drift *= self.errors.weight
        return Observation(
            residual=values[0],
            bodies=self._columns(posture, here, theta)[keep],
            errors=by_error,
            drift=(sensors * drift).reshape(len(slope), -1),
            noise=self._noise(slope, efforts, kinds),
            covariance=self._covariance(posture, sensors, efforts, slope, kinds),
            kinds=kinds,
        )

    def check(self, posture: Posture) -> None:
        """Checks that readings fit the robot and contain information.

        Args:
            posture: readings.

        Raises:
            PostureError: they do not; says what is wrong and how to fix it.
        """
        if len(posture.wrenches) not in (0, len(self.feet)):
            names = ", ".join(foot.frame for foot in self.feet) or "none"
            raise PostureError(
                f"{len(posture.wrenches)} wrenches for {len(self.feet)} feet: give one for each of "
                f"{names}"
            )
        if not any(kind not in ("imu", "soles") for kind in self._usable(posture)[1]):
            raise PostureError(
                "it has no foot wrench, no joint effort and no constraint: there is nothing to "
                "identify from it"
            )

    def up_direction(self, posture: Posture) -> Array:
        """Returns the direction against gravity (3,), root axes; NaN where not known.

        Args:
            posture: readings.
        """
        if not np.isfinite(posture.up).all() and not self.contacts.flat(posture).any():
            return np.full(3, np.nan)
        poses = self.statics.poses(posture.q[None])
        R, _ = self.statics.link_frames(poses, self._soles)
        return np.asarray(
            self._up(posture, R, R[..., 2], np.zeros((1, 2)), posture.up[None])[0]
        )

    def com_error(self, posture: Posture, theta: Array, errors: Array) -> float:
        """Computes the error of a model's CoM against a posture's readings, m.

        The horizontal distance from the feet's measurement; without one, the constraint that is
        violated most; NaN where there is neither.

        Args:
            posture: Readings.
            theta: (4 B,) masses kg and first moments kg m of the model.
            errors: (S,) of the sensors, in their units.
        """
        measured = self.measured_com(posture, errors)
        if measured is None:
            poses = self.statics.poses(posture.q[None])
            columns = self._constraint_columns(posture, poses, theta)[0]
            return float(
                np.abs(columns @ theta).max(initial=np.nan if not len(columns) else 0.0)
            )
        _, point, up, _ = measured
        poses = self.statics.poses(self._true_q(posture, errors)[None])
        across = self.statics.com(poses, theta)[0] - point
        return float(np.linalg.norm(across - (across @ up) * up))

    def measured_com(self, posture: Posture, errors: Array) -> MeasuredCom | None:
        """Computes the robot's mass and the vertical line of its CoM from the feet alone.

        Moments are taken about the middle of the loaded feet, so that noise of the horizontal
        forces has no long lever.

        Args:
            posture: readings.
            errors: (S,) of the sensors, in their units; zeros, the mean of their priors, before
                an identification has estimated them.

        Returns:
            None where a foot's wrench is not known.

        Raises:
            PostureError: the direction of gravity is not known.
        """
        if not len(posture.wrenches) or not np.isfinite(posture.wrenches).all():
            return None
        if not np.isfinite(self.up_direction(posture)).all():
            raise PostureError(_NO_GRAVITY)
        here = self._read(posture, errors, self._still)
        wrench = np.einsum(
            "fij,fj->i",
            self.statics.contact_maps(here.poses, self._sensors)[0][0],
            here.wrenches,
        )
        wrench = wrench + here.pull[0]
        up = here.up[0]
        _, soles = self.statics.link_frames(here.poses, self._soles)
        center = soles[0][self.contacts.loaded(posture.wrenches)].mean(axis=0)
        weight = float(wrench[:3] @ up)
        moment = wrench[3:] - np.cross(center, wrench[:3])
        return MeasuredCom(
            weight / self.gravity, center + np.cross(up, moment) / weight, up, wrench
        )

    def _true_q(
        self, posture: Posture, errors: Array, torque: Array | None = None
    ) -> Array:
        torque = np.nan_to_num(posture.effort) if torque is None else torque
        kinds = self.errors.kinds
        q = (
            posture.q
            + errors[kinds["joint_offset"]]
            - errors[kinds["compliance"]] * torque
        )
        return np.asarray(q)

    def _read(
        self, posture: Posture, errors: Array, moves: Array, torque: Array | None = None
    ) -> _Reading:
        """Removes the sensors' errors from the readings, for N variations of the posture.

        The moves (N, n + 8 + 2 f) are of q, slope (2), tilt (3), IMU (3) and soles; the first row
        is zero. A sole that tilts by t_x, t_y under moments about its x and y has the floor's
        normal (t_y, -t_x, 1).
        """
        n, kinds = self.model.n_joints, self.errors.kinds
        poses = self.statics.poses(self._true_q(posture, errors, torque) + moves[:, :n])
        read = self.errors.unbiased(posture.wrenches, errors)
        matrices = self.errors.wrench_matrices(errors)
        wrenches = self._signs * np.einsum("fij,fj->fi", matrices, read)
        imu = np.zeros((len(moves), 3))
        if np.isfinite(posture.up).all():
            imu = posture.up + moves[:, n + 5 : n + 8]
            imu = imu + np.cross(errors[kinds["tilt"]] + moves[:, n + 2 : n + 5], imu)
        slope = errors[kinds["slope"]] + moves[:, n : n + 2]
        moments = self._sole_moments(poses, wrenches)
        tilts = errors[kinds["sole_compliance"]] * moments + moves[:, n + 8 :]
        tilts = tilts.reshape(len(moves), -1, 2)
        R, _ = self.statics.link_frames(poses, self._soles)
        normals = R[..., 2] + tilts[..., 1:] * R[..., 0] - tilts[..., :1] * R[..., 1]
        up = self._up(posture, R, normals, slope, imu)
        effort = np.nan_to_num(posture.effort)
        effort = (1.0 + errors[kinds["effort_gain"]]) * effort - errors[
            kinds["effort_offset"]
        ]
        axes = self._floor_axes(posture, poses)
        outside = [axes @ errors[kinds[kind]] for kind in ("pull", "pull_moment")]
        pull = np.concatenate(outside, axis=1)
        return _Reading(poses, up, wrenches, effort, imu, normals, moments, pull)

    def _floor_axes(self, posture: Posture, poses: Poses) -> Array:
        """(N, 3, 3) of the first sole on the floor; of the root without feet."""
        if not self._soles:
            return np.tile(np.eye(3), (len(poses.p), 1, 1))
        first = int(np.argmax(self.contacts.flat(posture)))
        return self.statics.link_frames(poses, self._soles)[0][:, first]

    def _sole_moments(self, poses: Poses, wrenches: Array) -> Array:
        """Moments (2 f,) N m about x, y of each sole, about its middle, in the first pose."""
        R, p = (array[0] for array in self.statics.link_frames(poses, self._soles))
        R_s, p_s = (
            array[0] for array in self.statics.link_frames(poses, self._sensors)
        )
        force, moment = np.einsum("fij,fkj->kfi", R_s, wrenches.reshape(-1, 2, 3))
        moment = moment + np.cross(
            p_s - p - np.einsum("fij,fj->fi", R, self._middles), force
        )
        return np.einsum("fji,fj->fi", R[..., :2], moment).ravel()

    def _up(
        self, posture: Posture, R: Array, normals: Array, slope: Array, imu: Array
    ) -> Array:
        """The direction against gravity (N, 3), by the soles' axes R (N, f, 3, 3) or the IMU."""
        if self.contacts.on_floor(posture):
            flat = self.contacts.flat(posture)
            normal = normals[:, flat].sum(axis=1)
            normal = normal / np.linalg.norm(normal, axis=1)[:, None]
            up = normal + np.einsum(
                "nij,nj->ni", R[:, int(np.argmax(flat)), :, :2], slope
            )
        elif np.isfinite(posture.up).all():
            up = imu
        elif self.contacts.carries(posture) or np.isfinite(posture.effort).any():
            raise PostureError(_NO_GRAVITY)
        else:
            up = np.broadcast_to([0.0, 0.0, 1.0], (len(R), 3))  # nothing depends on it
        return np.asarray(up / np.linalg.norm(up, axis=1)[:, None])

    def _usable(self, posture: Posture) -> tuple[Flags, tuple[str, ...]]:
        """Which rows have all readings that they need: a mask, and their kinds."""
        known = np.zeros(len(self.feet), dtype=np.bool_)
        if len(posture.wrenches):
            known = np.asarray(np.isfinite(posture.wrenches).all(axis=1))
        root = len(self.feet) > 0 and bool(known.all())
        joints = np.isfinite(posture.effort) & ~(self._carried & ~known).any(axis=1)
        constraints = len(posture.constraints)
        root = root and (self.contacts.carries(posture) or not self.priors.force_bias)
        soles = self.contacts.flat(posture)
        soles[np.argmax(soles)] = False
        soles &= self.priors.sole_angle > 0.0 and self.priors.sole_height > 0.0
        floor = self.contacts.on_floor(posture)
        soles &= floor
        imu = np.isfinite(posture.up).all() and floor
        parts = (
            ("force", np.full(3, root)),
            ("moment", np.full(3, root)),
            ("torque", joints),
            ("constraint", np.ones(constraints, dtype=np.bool_)),
            ("air", np.repeat(self.contacts.in_air(posture), 6)),
            ("imu", np.full(3, imu)),
            ("soles", np.repeat(soles, 3)),
        )
        mask = np.concatenate([part for _, part in parts])
        kinds = tuple(kind for kind, part in parts for _ in range(int(part.sum())))
        return mask, kinds

    def _residuals(self, posture: Posture, reading: _Reading, theta: Array) -> Array:
        """Measured less modelled, all rows of N variations, in the order of _usable."""
        a, N, f = self.gravity * reading.up, len(reading.up), len(self.feet)
        wrench, torque = self.statics.wrench_and_torques(reading.poses, a, theta)
        root, joints = self.statics.contact_maps(reading.poses, self._sensors)
        root_sum = np.einsum("nfij,fj->ni", root, reading.wrenches)
        joint_sum = np.einsum("nfij,fj->ni", joints, reading.wrenches)
        limits = self._constraint_columns(posture, reading.poses, theta) @ theta
        soles = np.zeros((N, f, 3))
        if f:
            R, p = self.statics.link_frames(reading.poses, self._soles)
            first = int(np.argmax(self.contacts.flat(posture)))
            axes = R[:, first]  # of the first sole
            tilts = reading.normals - reading.normals[:, first, None]
            soles[..., :2] = np.einsum("nji,nfj->nfi", axes[..., :2], tilts)
            soles[..., 2] = np.einsum("nj,nfj->nf", axes[..., 2], p - p[:, first, None])
        return np.concatenate(
            (
                root_sum + reading.pull - wrench,
                reading.effort + joint_sum - torque,
                -limits,
                np.broadcast_to(reading.wrenches.ravel(), (N, 6 * f)),
                reading.imu - reading.up,
                soles.reshape(N, -1),
            ),
            axis=1,
        )

    def _columns(self, posture: Posture, reading: _Reading, theta: Array) -> Array:
        a = self.gravity * reading.up
        rows = (
            self.statics.root_wrench(reading.poses, a)[0],
            self.statics.torques(reading.poses, a)[0],
            self._constraint_columns(posture, reading.poses, theta)[0],
        )
        return np.vstack((*rows, np.zeros((9 * len(self.feet) + 3, len(theta)))))

    def _constraint_columns(
        self, posture: Posture, poses: Poses, theta: Array
    ) -> Array:
        """Rows n . R^T (first moment - M p) - M offset, over M: (N, constraints, 4 B) in m."""
        count = 4 * self.statics.bodies.count
        columns = np.zeros((len(poses.p), len(posture.constraints), count))
        mass = self.statics.mass()
        for i, limit in enumerate(posture.constraints):
            R, p = self.statics.link_frames(poses, [self.model.link_index(limit.link)])
            normal = R[:, 0] @ limit.normal
            columns[:, i] = np.einsum(
                "ni,nik->nk", normal, self.statics.first_moment(poses)
            )
            columns[:, i] -= (np.einsum("ni,ni->n", normal, p[:, 0]) + limit.offset)[
                :, None
            ] * mass
        return np.asarray(columns / (mass @ theta))

    def _wrench_maps(self, posture: Posture, poses: Poses) -> Array:
        """Maps from the feet's wrenches, as read, to all rows: (f, rows, 6)."""
        root, joints = self.statics.contact_maps(poses, self._sensors)
        f = len(self.feet)
        none = np.zeros((f, len(posture.constraints), 6))
        air = np.einsum("fg,ij->fgij", np.eye(f), np.eye(6)).reshape(f, 6 * f, 6)
        rest = np.zeros((f, 3 + 3 * f, 6))
        maps = np.concatenate((root[0], joints[0], none, air, rest), axis=1)
        return np.asarray(maps * self._signs[..., None]).transpose(1, 0, 2)

    def _expected_readings(
        self, posture: Posture, reading: _Reading, residual: Array, errors: Array
    ) -> Array:
        """Readings (f, 6) less bias as the model expects them: gains multiply these.

        They fit the root's rows, whose residual (6,) is distributed among the loaded feet. With
        the readings themselves, gains and masses that are all smaller by g would change the rows
        by g times the residual: both would shrink, the more the more postures there are.
        """
        feet = np.flatnonzero(self.contacts.loaded(posture.wrenches))
        maps, _ = self.statics.contact_maps(
            reading.poses, [self._sensors[i] for i in feet]
        )
        unit = np.repeat([1.0, self.errors.lever], 3)
        spread = np.linalg.pinv(np.hstack(maps[0] * unit)) @ residual
        expected = np.where(
            self.contacts.in_air(posture)[:, None], 0.0, reading.wrenches
        )
        expected[feet] -= unit * spread.reshape(-1, 6)
        expected = self._signs * expected
        matrices = self.errors.wrench_matrices(errors)
        return np.asarray(np.linalg.solve(matrices, expected[..., None])[..., 0])

    def _error_columns(
        self,
        read: Array,
        maps: Array,
        sensors: Array,
        slope: Array,
        torque: Array,
        moments: Array,
    ) -> Array:
        """A_e (R, S) by all errors but those of efforts: minus the residuals' derivatives."""
        n, columns = self.model.n_joints, np.zeros((len(slope), self.errors.count))
        blocks = self.errors.wrench_columns(maps, sensors, read) | {
            "joint_offset": -slope[:, :n],
            "compliance": slope[:, :n] * torque,
            "slope": -slope[:, n : n + 2],
            "tilt": -slope[:, n + 2 : n + 5],
            "sole_compliance": -slope[:, n + 8 :] * moments,
        }
        for kind, block in blocks.items():
            columns[:, self.errors.kinds[kind]] = block.reshape(len(slope), -1)
        return columns

    def _noise(
        self, slope: Array, efforts: Array, kinds: tuple[str, ...]
    ) -> dict[str, Array]:
        """Factors of the covariance of what is new in each posture, by the class of error."""
        n, priors = self.model.n_joints, self.priors
        soles = np.array(
            [i for i, kind in enumerate(kinds) if kind == "soles"], dtype=np.int64
        )
        stds = np.tile(
            [priors.sole_angle, priors.sole_angle, priors.sole_height], len(soles) // 3
        )
        gaps = np.zeros((len(kinds), len(soles)))
        gaps[soles, np.arange(len(soles))] = stds
        return {
            "joint_repeatability": (
                slope[:, :n] * priors.joint_repeatability * self.errors.joint_scale
            ),
            "unevenness": slope[:, n : n + 2] * priors.unevenness,
            "soles": gaps,
            "friction": efforts * self.errors.friction,
        }

    def _covariance(
        self,
        posture: Posture,
        sensors: Array,
        efforts: Array,
        slope: Array,
        kinds: tuple[str, ...],
    ) -> Array:
        """Covariance (R, R) of the residuals by the white noise of all readings."""
        noise, n = self.noise, self.model.n_joints
        stds = np.concatenate(
            (
                np.tile(np.repeat([noise.force, noise.moment], 3), len(self.feet)),
                np.full(n, noise.effort),
                np.full(n, noise.position),
            )
        ) * noise.std_ratio(posture.samples)
        spread = (
            np.hstack((sensors.reshape(len(slope), -1), efforts, slope[:, :n])) * stds
        )
        tilted = slope[:, n + 5 : n + 8] * noise.tilt
        covariance = spread @ spread.T + tilted @ tilted.T
        if posture.noise.size:
            own = (
                np.hstack((sensors.reshape(len(slope), -1), slope[:, :n]))
                @ posture.noise
            )
            covariance += own @ own.T
        first = kinds.index("constraint") if posture.constraints else 0
        for i, limit in enumerate(posture.constraints, start=first):
            covariance[i, i] += limit.std**2
        return np.asarray(covariance)
