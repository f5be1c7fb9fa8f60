"""A log of a robot that stands: pairs of instants, and what feet, gyroscope and gravity say."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations, product

import numpy as np
from scipy.ndimage import uniform_filter1d
from scipy.spatial.transform import Rotation

from com_bags.unit_checks import DEGREE
from com_identification.exceptions import LogFitError
from com_identification.walking.kernels import LegChains
from com_identification.walking.preparation import find_limbs
from com_model import RobotConfig, RobotModel
from com_model.arrays import Array
from com_model.dynamics.kinematics import body_poses

PAIRS = 40  # of instants that are compared
MOVES = 0.04  # rad, rms of the legs' joints between two instants
SURE = 0.03  # by which others disagree more, where an order is certain
AXES = np.array(
    [
        R
        for order in permutations(range(3))
        for signs in product((1.0, -1.0), repeat=3)
        if np.linalg.det(R := np.diag(signs)[:, order]) > 0.0
    ]
)
"""The 24 rotations that take axes to axes, the identity first."""


@dataclass(frozen=True, eq=False)
class LogReadings:
    """Readings with the names and in the units of the log, at the same N instants.

    Attributes:
        names: Of k joints, as the log has them.
        time: (N,) s.
        position: (N, k).
        velocity: (N, k); NaN where unknown.
        effort: (N, k); NaN where unknown.
        gyro: (N, 3).
        force: (N, 3), of the accelerometer.
        turn: (N, 4) of the orientation; NaN where unknown.
    """

    names: tuple[str, ...]
    time: Array
    position: Array
    velocity: Array
    effort: Array
    gyro: Array
    force: Array
    turn: Array


class Pairs:
    """Pairs of instants, with means of all readings about them, and what was turned between them.

    Attributes:
        first, second: (K,) indices of the readings.
        span: s, between the two.
        q: (2, K, k) positions in the log's signs, rad.
        unit: rad or m in a position's unit.
        turn: (K, 3) rad, that the gyroscope says, in its axes, less its mean.
        force: (K, 3) of the accelerometer, mean.
    """

    def __init__(self, log: LogReadings) -> None:
        if len(log.time) < 2 * PAIRS:
            raise LogFitError(
                f"the log has {len(log.time)} joint states with readings of the IMU: expected a "
                "minute of standing on all feet and moving the trunk"
            )
        self.log = log
        period = float(np.median(np.diff(log.time)))
        spread = np.median(np.abs(log.position), axis=0)
        # rad, beyond which no leg's joint stays
        self.unit = DEGREE if spread.max() > 2.0 * np.pi else 1.0
        position, step = self.unit * log.position, 1
        for self.span in (0.1, 0.2, 0.4, 0.8, 1.6):  # s, between two instants
            step = max(1, round(self.span / period))
            start = np.arange(0, len(log.time) - step, max(1, step // 4))
            lasts = log.time[start + step] - log.time[start]
            start = start[np.abs(lasts - step * period) < 0.5 * self.span]
            change = position[start + step] - position[start]
            size = np.sqrt(np.mean(change**2, axis=1))
            if len(size) and np.quantile(size, 0.6) > MOVES:
                break
        if not len(size) or np.quantile(size, 0.6) < 0.1 * MOVES:
            raise LogFitError(
                "the joints hardly move: let the robot stand on all feet and move its trunk, to "
                "all sides, up and down, and turning"
            )
        # neither the pairs of standing still nor those of steps
        low, high = np.quantile(size, (0.3, 0.9))
        start = start[(low <= size) & (size <= high)]
        start = start[np.linspace(0, len(start) - 1, PAIRS).astype(int)]
        self.first, self.second = start, start + step
        width = max(1, step // 4)
        smooth = uniform_filter1d(position, width, axis=0)
        self.q = np.array([smooth[self.first], smooth[self.second]])
        whole = np.vstack((np.zeros(3), np.cumsum(log.gyro, axis=0))) * period
        turn = whole[self.second] - whole[self.first]
        self.turn = turn - turn.mean(axis=0)  # without the gyroscope's bias
        self.force = uniform_filter1d(log.force, width, axis=0)[self.first]


@dataclass(frozen=True)
class Agreement:
    """How far an order and signs disagree with physics (0: not), and what the IMU reads.

    Attributes:
        total: Sum of what disagrees.
        axes: Index of AXES.
        gyro: rad/s in the gyroscope's unit.
    """

    total: float
    axes: int
    gyro: float


class FlatFeet:
    """What the feet, the gyroscope and gravity say of an order and signs."""

    def __init__(self, model: RobotModel, config: RobotConfig, pairs: Pairs) -> None:
        self.model, self.config, self.pairs = model, config, pairs
        self.limbs: LegChains = find_limbs(model, config)
        bodies, feet = model.bodies, config.feet
        links = [model.link_index(foot.frame) for foot in feet for _ in foot.points]
        points = np.concatenate([foot.points for foot in feet])
        self.foot = np.repeat(range(len(feet)), [len(foot.points) for foot in feet])
        self._body = bodies.body_of_link[links]
        self._point = bodies.p_body_link[links] + np.einsum(
            "cij,cj->ci", bodies.R_body_link[links], points
        )
        if len(points) < 3:
            raise LogFitError(
                f"the feet touch the ground in {len(points)} points: expected 3 or more"
            )
        imu = model.link_index(config.imu_link or model.root_link)
        self.imu, self.R_imu = bodies.body_of_link[imu], bodies.R_body_link[imu]
        self.legs = [
            own[:count].tolist()
            for own, count in zip(
                self.limbs.joints, self.limbs.joint_count, strict=True
            )
        ]
        joints = [j for own in self.legs for j in own]
        self.leg_names = [model.joint_names[j] for j in joints]
        # rad beyond limits
        self._lower, self._upper = model.lower - 0.1, model.upper + 0.1
        length = float(
            np.linalg.norm(
                self.contacts(self.positions((), np.ones(0)))[0], axis=-1
            ).mean()
        )
        self.scale = length * rms(pairs.q[1] - pairs.q[0])

    def positions(self, names: Sequence[str], signs: Array) -> Array:
        """(2, K, n) of the model's joints; the nominal posture where the log has none."""
        q = np.tile(self.config.nominal_posture(self.model), (2, PAIRS, 1))
        known = [i for i, name in enumerate(names) if name in self.model.joint_names]
        joints = [self.model.joint_names.index(names[i]) for i in known]
        q[..., joints] = self.pairs.q[..., known] * signs[known]
        return q

    def contacts(self, q: Array) -> tuple[Array, Array]:
        """Contact points (..., 2, K, C, 3) m of positions, and rad (..., n) beyond limits."""
        beyond = np.maximum(0.0, np.maximum(self._lower - q, q - self._upper))
        R, p = body_poses(self.model.bodies, q)
        turned = np.einsum("...cij,cj->...ci", R[..., self._body, :, :], self._point)
        return p[..., self._body, :] + turned, beyond.mean(axis=(-3, -2))

    def evaluate(self, names: Sequence[str], signs: Array) -> Agreement:
        """How far names and signs (k,) of the log's joints disagree with physics."""
        q = self.positions(names, signs)
        P, beyond = self.contacts(q)
        R = body_poses(self.model.bodies, q)[0]
        centred = P - P.mean(axis=2, keepdims=True)
        U, _, Vt = np.linalg.svd(np.einsum("kci,kcj->kij", centred[0], centred[1]))
        turn = Vt.transpose(0, 2, 1) @ U.transpose(0, 2, 1)
        Vt[:, 2] *= np.linalg.det(turn)[:, None]
        turn = Vt.transpose(0, 2, 1) @ U.transpose(0, 2, 1)
        moved = np.einsum("kij,kcj->kci", turn, centred[0])
        off, travel = rms(centred[1] - moved), rms(P[1] - P[0])
        _, sizes, normals = np.linalg.svd(centred[0], full_matrices=False)
        uneven = float(np.median(sizes[:, 2] / sizes[:, 1]))
        up = normals[:, 2] * -np.sign(
            np.einsum("ki,ki->k", normals[:, 2], P[0].mean(axis=1))
        ).reshape(-1, 1)
        # what the trunk turns against the feet is the reverse of what they turn against it
        R_imu = R[..., self.imu, :, :] @ self.R_imu
        between = R_imu[0].transpose(0, 2, 1) @ turn.transpose(0, 2, 1) @ R_imu[1]
        own = Rotation.from_matrix(between).as_rotvec()
        own -= own.mean(axis=0)
        up = np.einsum("kij,ki->kj", R_imu[0], up)
        force = self.pairs.force
        force = force / np.linalg.norm(force, axis=1, keepdims=True)
        read, best = self.pairs.turn, Agreement(np.inf, 0, 1.0)
        base = off / max(travel, 1e-9) + uneven + float(beyond.sum())
        tilts = np.linalg.norm(up - np.einsum("aij,kj->aki", AXES, force), axis=2)
        tilts = tilts.mean(axis=1)
        for unit in (1.0, DEGREE):
            error = own - unit * np.einsum("aij,kj->aki", AXES, read)
            spin = np.sqrt((error**2).mean(axis=(1, 2))) / max(rms(own), 1e-9)
            totals = np.minimum(spin, 2.0) + tilts
            a = int(np.argmin(totals))
            if base + totals[a] < best.total:
                best = Agreement(base + float(totals[a]), a, unit)
        return best

    def is_sure(self, names: Sequence[str], signs: Array, k: int) -> bool:
        """Whether physics excludes the other sign of joint k, and its exchange with any other."""
        best = self.evaluate(names, signs).total
        others = [(names, np.where(np.arange(len(signs)) == k, -signs, signs))]
        others += [
            (exchanged(names, k, i), signs)
            for i, name in enumerate(names)
            if i != k and name in self.leg_names
        ]
        return all(self.evaluate(*each).total > best + SURE for each in others)


def rms(values: Array) -> float:
    """Root of the mean square of all values."""
    return float(np.sqrt(np.mean(values**2)))


def exchanged(names: Sequence[str], i: int, j: int) -> tuple[str, ...]:
    """Names with those at two places exchanged.

    Args:
        names: Of joints.
        i: One place.
        j: The other.
    """
    found = list(names)
    found[i], found[j] = found[j], found[i]
    return tuple(found)
