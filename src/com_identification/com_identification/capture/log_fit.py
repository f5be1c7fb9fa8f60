"""Which joint, sign, unit and axis each number of a log has, by the physics of a robot that stands.

While all feet stand on flat ground and the trunk moves, the robot's model and its readings agree in
these ways only if each number means what it is taken for:

  feet     their contact points keep their distances, and lie in one plane;
  gyro     the trunk turns against them as the gyroscope reads;
  gravity  the accelerometer points along the plane's normal, and has the size of gravity;
  limits   joints are within theirs;
  torques  what the legs carry is the robot's weight, about its centre of mass.

Orders and signs of the legs' joints are searched for: those that loggers use (leg by leg, or kind
by kind of joint) with all signs, and from the best of them on by exchanging two joints.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, permutations, product

import numpy as np
from scipy.ndimage import uniform_filter1d
from scipy.spatial.transform import Rotation

from com_bags.unit_checks import DEGREE, ground_forces
from com_identification.exceptions import LogFitError
from com_identification.walking.kernels import LegChains
from com_identification.walking.preparation import find_limbs
from com_model import RobotConfig, RobotModel
from com_model.arrays import Array, Indices
from com_model.dynamics import GRAVITY
from com_model.dynamics.kinematics import body_poses
from com_model.text import listing

ORDERS = {
    "xyzw": (0, 1, 2, 3),
    "wxyz": (1, 2, 3, 0),
    "zwxy": (2, 3, 0, 1),
    "yzwx": (3, 0, 1, 2),
}
"""Places of x, y, z, w among the numbers that the log has for a quaternion."""

_PAIRS = 40  # of instants that are compared
_MOVES = 0.04  # rad, rms of the legs' joints between two instants
_GOOD, _POOR = 0.2, 0.5  # disagreement of an order that fits, and of one that does not
_SURE = 0.03  # by which others disagree more, where an order is certain
_RATED = 60  # orders and signs that are looked at closely
_UNITS = (0.6, 1.7)  # of what is read over what physics says, in the same unit
_AXES = np.array(
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


@dataclass(frozen=True, eq=False)
class LogFit:
    """What the numbers of a log are.

    Attributes:
        names: (k,) of the joints whose positions they are.
        velocities: (k,) which of the log's velocities belongs to each position.
        position, velocity, effort: (k,) factors to rad or m, and the model's signs.
        axes: (3, 3) IMU's link axes of the readings' axes.
        gyro, force: Factors to rad/s and m/s^2.
        order: Of ORDERS; "": the orientation fits in none, and must be left out.
        told: By what: what was found, for people.
        unsure: By what: what cannot be told, for people.
    """

    names: tuple[str, ...]
    velocities: tuple[int, ...]
    position: Array
    velocity: Array
    effort: Array
    axes: Array
    gyro: float
    force: float
    order: str
    told: dict[str, str]
    unsure: dict[str, str]


def fit_log(log: LogReadings, model: RobotModel, config: RobotConfig) -> LogFit:
    """Finds what the numbers of a log are.

    Args:
        log: Of a robot that stands on all feet and moves its trunk, most of the time.
        model: The robot, n joints.
        config: Its feet and the link of the IMU.

    Raises:
        LogFitError: The robot hardly moves, or nothing fits.
        WalkError: The legs are not known.
    """
    model = config.attach(model)
    pairs, told, unsure = _Pairs(log), dict[str, str](), dict[str, str]()
    stance = _FlatFeet(model, config, pairs)
    found, names, signs = _search(stance, log.names)
    axes, factor = _AXES[found.axes], signs * pairs.unit
    for k, name in enumerate(names):
        place = _describe(log.names[k], name, signs[k], pairs.unit)
        sure = name in stance.leg_names and stance.is_sure(names, signs, k)
        (told if sure else unsure)[f"{log.names[k]}: position"] = (
            place if sure else "cannot tell: it does not move the feet in this log"
        )
    changed = f", {_axes_text(axes)} along the link's x y z" if found.axes else ""
    unit = "deg/s" if found.gyro != 1.0 else "rad/s"
    told["IMU: gyroscope"] = f"{unit}{changed}"
    size = float(np.median(np.linalg.norm(log.force, axis=1)))
    force = next(
        (u for u in (1.0, 9.80665, 1e-3 * 9.80665) if 0.8 < size * u / GRAVITY < 1.25),
        np.nan,
    )
    what = {1.0: "m/s^2", 9.80665: "g"}.get(force, "mg")
    if np.isfinite(force):
        told["IMU: accelerometer"] = f"{what}{changed}"
    else:
        unsure["IMU: accelerometer"] = (
            f"cannot tell: {size:.3g} is gravity in no known unit"
        )
        force = 1.0
    order, text = _orientation(pairs, found.gyro, axes)
    (told if order else unsure)["IMU: orientation"] = text
    velocities, velocity = _velocities(pairs, factor, told, unsure)
    return LogFit(
        names=names,
        velocities=velocities,
        position=factor,
        velocity=velocity,
        effort=_efforts(stance, names, signs, axes, told, unsure),
        axes=axes,
        gyro=found.gyro,
        force=float(force),
        order=order,
        told=told,
        unsure=unsure,
    )


def _describe(label: str, name: str, sign: float, unit: float) -> str:
    """What a number is, in words."""
    words = ["fits" if label == name else f"is {name}"]
    words += ["reversed"] * bool(sign < 0.0) + ["degrees"] * bool(unit != 1.0)
    return ", ".join(words)


def _axes_text(axes: Array) -> str:
    """The log's axes along x, y, z of the link."""
    along = np.argmax(np.abs(axes), axis=1)
    signs = axes[np.arange(3), along]
    return " ".join(
        f"{'-' * bool(s < 0.0)}{'xyz'[a]}" for a, s in zip(along, signs, strict=True)
    )


class _Pairs:
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
        if len(log.time) < 2 * _PAIRS:
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
            if len(size) and np.quantile(size, 0.6) > _MOVES:
                break
        if not len(size) or np.quantile(size, 0.6) < 0.1 * _MOVES:
            raise LogFitError(
                "the joints hardly move: let the robot stand on all feet and move its trunk, to "
                "all sides, up and down, and turning"
            )
        # neither the pairs of standing still nor those of steps
        low, high = np.quantile(size, (0.3, 0.9))
        start = start[(low <= size) & (size <= high)]
        start = start[np.linspace(0, len(start) - 1, _PAIRS).astype(int)]
        self.first, self.second = start, start + step
        width = max(1, step // 4)
        smooth = uniform_filter1d(position, width, axis=0)
        self.q = np.array([smooth[self.first], smooth[self.second]])
        whole = np.vstack((np.zeros(3), np.cumsum(log.gyro, axis=0))) * period
        turn = whole[self.second] - whole[self.first]
        self.turn = turn - turn.mean(axis=0)  # without the gyroscope's bias
        self.force = uniform_filter1d(log.force, width, axis=0)[self.first]


@dataclass(frozen=True)
class _Agreement:
    """How far an order and signs disagree with physics (0: not), and what the IMU reads.

    Attributes:
        total: Sum of what disagrees.
        axes: Index of _AXES.
        gyro: rad/s in the gyroscope's unit.
    """

    total: float
    axes: int
    gyro: float


class _FlatFeet:
    """What the feet, the gyroscope and gravity say of an order and signs."""

    def __init__(self, model: RobotModel, config: RobotConfig, pairs: _Pairs) -> None:
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
        self.scale = length * _rms(pairs.q[1] - pairs.q[0])

    def positions(self, names: Sequence[str], signs: Array) -> Array:
        """(2, K, n) of the model's joints; the nominal posture where the log has none."""
        q = np.tile(self.config.nominal_posture(self.model), (2, _PAIRS, 1))
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

    def evaluate(self, names: Sequence[str], signs: Array) -> _Agreement:
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
        off, travel = _rms(centred[1] - moved), _rms(P[1] - P[0])
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
        read, best = self.pairs.turn, _Agreement(np.inf, 0, 1.0)
        base = off / max(travel, 1e-9) + uneven + float(beyond.sum())
        tilts = np.linalg.norm(up - np.einsum("aij,kj->aki", _AXES, force), axis=2)
        tilts = tilts.mean(axis=1)
        for unit in (1.0, DEGREE):
            error = own - unit * np.einsum("aij,kj->aki", _AXES, read)
            spin = np.sqrt((error**2).mean(axis=(1, 2))) / max(_rms(own), 1e-9)
            totals = np.minimum(spin, 2.0) + tilts
            a = int(np.argmin(totals))
            if base + totals[a] < best.total:
                best = _Agreement(base + float(totals[a]), a, unit)
        return best

    def is_sure(self, names: Sequence[str], signs: Array, k: int) -> bool:
        """Whether physics excludes the other sign of joint k, and its exchange with any other."""
        best = self.evaluate(names, signs).total
        others = [(names, np.where(np.arange(len(signs)) == k, -signs, signs))]
        others += [
            (_exchanged(names, k, i), signs)
            for i, name in enumerate(names)
            if i != k and name in self.leg_names
        ]
        return all(self.evaluate(*each).total > best + _SURE for each in others)


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2)))


def _exchanged(names: Sequence[str], i: int, j: int) -> tuple[str, ...]:
    found = list(names)
    found[i], found[j] = found[j], found[i]
    return tuple(found)


def _search(
    stance: _FlatFeet, labels: Sequence[str]
) -> tuple[_Agreement, tuple[str, ...], Array]:
    """Agreement, names and signs (k,) of the log's joints that disagree least with physics.

    Raises:
        LogFitError: Nothing fits, or the log lacks joints of the legs.
    """
    leg, ones = stance.leg_names, np.ones(len(labels))
    places = [i for i, name in enumerate(labels) if name in leg]
    missing = [name for name in leg if name not in labels]
    if missing:
        raise LogFitError(
            f"the log has no {listing(missing)}, of {listing(labels, 30)}: name the joints in any "
            "order (joints.names of a mapping)"
        )
    given = tuple(labels)
    asked = stance.evaluate(given, ones)
    best = asked, given, ones
    if asked.total > _GOOD:
        starts = [(given, ones), *_Orders(stance, labels).best()]
        rated = [(stance.evaluate(*each), *each) for each in starts]
        rated.sort(key=lambda each: each[0].total)
        # of the best three starts
        for start in rated[:3]:
            best = min(best, start, key=lambda each: each[0].total)
            if best[0].total > _GOOD:
                found = _improved(stance, start, places)
                best = min(best, found, key=lambda each: each[0].total)
    if asked.total < best[0].total + _SURE:
        best = asked, given, ones
    if best[0].total > _POOR:
        raise LogFitError(
            f"no order and no signs of the joints fit (disagreement {best[0].total:.2f}, limit "
            f"{_POOR:g}): let the robot stand on flat ground, on all feet, and move its trunk; "
            "is it the URDF of this robot?"
        )
    return best


class _Orders:
    """Orders that loggers use, with the signs by which the feet keep their distances best.

    The joints of a leg follow each other (or those of a kind, one of each leg), in any order, the
    same in all legs; legs are in any order. Each leg's signs give its foot's path, and each two
    paths whether the feet keep their distance: the sum over all pairs is rated.
    """

    def __init__(self, stance: _FlatFeet, labels: Sequence[str]) -> None:
        self._stance, self._labels = stance, labels
        self._places = [i for i, name in enumerate(labels) if name in stance.leg_names]
        self._count, self._legs = len(stance.legs[0]), range(len(stance.legs))
        width = self._count
        # all orders of legs with three joints are tried
        small = width <= 3
        self._inner = (
            list(permutations(range(width)))
            if small
            else [tuple(range(width)), tuple(reversed(range(width)))]
        )
        self._signs = np.array(list(product((1.0, -1.0), repeat=width)))

    def best(self) -> list[tuple[tuple[str, ...], Array]]:
        """The best orders with their signs."""
        if any(len(own) != self._count for own in self._stance.legs):
            return []
        rated: list[tuple[float, tuple[str, ...], Array]] = []
        for by_kind, inside in product((False, True), self._inner):
            rated += self._rate(by_kind, inside)
        rated.sort(key=lambda each: each[0])
        return [each[1:] for each in rated[:_RATED]]

    def _rate(
        self, by_kind: bool, inside: Sequence[int]
    ) -> list[tuple[float, tuple[str, ...], Array]]:
        """Ratings, names and signs of all orders of the legs."""
        shape = len(self._legs), self._count
        groups = (
            np.reshape(self._places, shape[::-1]).T
            if by_kind
            else np.reshape(self._places, shape)
        )
        paths: dict[tuple[int, int], tuple[Array, Array]] = {}
        for shift in self._legs:
            shifted = [(i + shift) % len(self._legs) for i in self._legs]
            q = [
                self._stance.positions(
                    *self._named(groups, shifted, inside, [row] * len(shifted))
                )
                for row in self._signs
            ]
            P, beyond = self._stance.contacts(np.array(q))
            for i in self._legs:
                own = np.flatnonzero(self._stance.foot == i)[:3]
                paths[i, shifted[i]] = (
                    P[..., own, :],
                    beyond[:, self._stance.legs[i]].sum(1),
                )
        scale = self._stance.scale
        tables = {}
        for (i, g), (j, h) in product(paths, paths):
            if i < j and g != h:
                A, B = paths[i, g][0], paths[j, h][0]
                apart = A[:, None, ..., :, None, :] - B[None, ..., None, :, :]
                distance = np.linalg.norm(apart, axis=-1)
                change = distance[:, :, 1] - distance[:, :, 0]
                tables[i, g, j, h] = np.sqrt((change**2).mean(axis=(2, 3, 4))) / scale
        rated = []
        for legs in permutations(self._legs):
            total = np.zeros([len(self._signs)] * len(self._legs))
            for i in self._legs:
                along = [1] * len(self._legs)
                along[i] = -1
                total = total + paths[i, legs[i]][1].reshape(along)
                for j in range(i + 1, len(self._legs)):
                    axes = [1] * len(self._legs)
                    axes[i] = axes[j] = len(self._signs)
                    total = total + tables[i, legs[i], j, legs[j]].reshape(axes)
            order = np.argsort(total, axis=None)[:_RATED]
            for at in zip(*np.unravel_index(order, total.shape), strict=True):
                signs = [self._signs[k] for k in at]
                named = self._named(groups, legs, inside, signs)
                rated.append((float(total[at]), *named))
        return rated

    def _named(
        self,
        groups: Indices,
        legs: Sequence[int],
        inside: Sequence[int],
        signs: Sequence[Array],
    ) -> tuple[tuple[str, ...], Array]:
        """Names and signs (k,): leg i has the places of a group, in an order of its joints."""
        names, own = list(self._labels), np.ones(len(self._labels))
        for i, group in enumerate(legs):
            for place, k in zip(groups[group].tolist(), inside, strict=True):
                joint = self._stance.legs[i][k]
                names[place], own[place] = (
                    self._stance.model.joint_names[joint],
                    signs[i][k],
                )
        return tuple(names), own


def _improved(
    stance: _FlatFeet,
    start: tuple[_Agreement, tuple[str, ...], Array],
    places: Sequence[int],
) -> tuple[_Agreement, tuple[str, ...], Array]:
    """The best that exchanges of two joints and reversals of one or two lead to."""
    best = start
    for _ in range(6):
        before = best
        for i, j in combinations(places, 2):
            for swap, a, b in product((False, True), (1.0, -1.0), (1.0, -1.0)):
                names = _exchanged(before[1], i, j) if swap else before[1]
                signs = before[2].copy()
                signs[[i, j]] *= a, b
                found = stance.evaluate(names, signs)
                if found.total < best[0].total - 1e-9:
                    best = found, names, signs
        if best is before or best[0].total < _GOOD:
            break
    return best


def _orientation(pairs: _Pairs, gyro: float, axes: Array) -> tuple[str, str]:
    """Order of the quaternion's numbers, and words; "" where it must be left out."""
    log = pairs.log
    turn = log.turn[pairs.first], log.turn[pairs.second]
    if not all(np.isfinite(each).all() for each in turn):
        return "", "cannot tell: the log has none"
    rated = []
    direction = pairs.force / np.linalg.norm(pairs.force, axis=1, keepdims=True)
    spin = gyro * pairs.turn
    size = max(_rms(spin), 1e-9)
    for order, places in ORDERS.items():
        first, second = (Rotation.from_quat(each[:, places]) for each in turn)
        between = (first.inv() * second).as_rotvec()
        between -= between.mean(axis=0)
        up = first.inv().apply([0.0, 0.0, 1.0])
        for aligned, A in ((False, np.eye(3)), (True, axes)):
            tilt = np.linalg.norm(up - direction @ A.T, axis=1).mean()
            total = float(tilt) + _rms(between - spin @ A.T) / size
            rated.append((total, aligned, order))
    best = min(rated)
    if best[0] > _POOR:
        return "", "cannot tell: it agrees with accelerometer and gyroscope in no order"
    if best[1] or np.allclose(axes, np.eye(3)):
        return best[2], f"order {best[2]}"
    return "", "its axes are not the link's, which a mapping cannot change: left out"


def _velocities(
    pairs: _Pairs, factor: Array, told: dict[str, str], unsure: dict[str, str]
) -> tuple[tuple[int, ...], Array]:
    """Which velocity is which position's, and factors (k,); by what the positions change."""
    log = pairs.log
    count = len(log.names)
    own, scale = list(range(count)), factor.copy()
    if not np.isfinite(log.velocity).any():
        return tuple(own), scale
    period = float(np.median(np.diff(log.time)))
    whole = np.cumsum(np.nan_to_num(log.velocity), axis=0) * period
    x = whole[pairs.second] - whole[pairs.first]
    y = pairs.unit * (log.position[pairs.second] - log.position[pairs.first])
    spread = np.linalg.norm(x, axis=0)[:, None] * np.linalg.norm(y, axis=0)
    match = np.abs(x.T @ y) / np.maximum(spread, 1e-12)
    for k, name in enumerate(log.names):
        j = k if match[k, k] > 0.9 else int(np.argmax(match[:, k]))
        slope = float(x[:, j] @ y[:, k] / max(float(x[:, j] @ x[:, j]), 1e-12))
        unit = next((u for u in (1.0, DEGREE) if 0.7 < abs(slope) / u < 1.4), 0.0)
        if match[j, k] < 0.9 or not unit or _rms(y[:, k]) < 0.1 * _MOVES:
            unsure[f"{name}: velocity"] = "cannot tell: it is not the position's change"
            scale[k] = np.sign(factor[k]) * pairs.unit
            continue
        own[k], scale[k] = j, np.sign(factor[k]) * np.sign(slope) * unit
        words = ["fits" if j == k else f"is that of {log.names[j]}"]
        words += ["reversed"] * bool(scale[k] < 0.0) + ["deg/s"] * bool(unit != 1.0)
        told[f"{name}: velocity"] = ", ".join(words)
    return tuple(own), scale


def _efforts(
    stance: _FlatFeet,
    names: Sequence[str],
    signs: Array,
    axes: Array,
    told: dict[str, str],
    unsure: dict[str, str],
) -> Array:
    """Factors (k,) of the torques, by the weight that they carry.

    With torques s_j t_j of the leg's joints, its foot has the wrench J^-T (g - s t), g the torques
    that the legs' own weight takes. All of them are in balance with the weight of the robot: six
    equations of each instant for the factors s.
    """
    log = stance.pairs.log
    scale = signs.copy()
    effort = uniform_filter1d(np.nan_to_num(log.effort), 5, axis=0)[stance.pairs.first]
    if not np.isfinite(log.effort).any():
        unsure["efforts"] = "cannot tell: the log has none"
        return scale
    model, q = stance.model, stance.positions(names, signs)[0]
    R_imu = body_poses(model.bodies, q)[0][:, stance.imu] @ stance.R_imu
    up = np.einsum("kij,kj->ki", R_imu, stance.pairs.force @ axes.T)
    A, free, weight = ground_forces(model, stance.config.feet, q, up)
    b = free.sum(axis=1) - weight
    slots = [list(names).index(name) for name in stance.leg_names]
    X = (A * effort[:, None, slots]).reshape(-1, len(slots))
    used = np.isfinite(X).all(axis=1)
    y = b.reshape(-1)[used]
    H = X[used].T @ X[used] + 1e-9 * np.eye(len(slots))
    found = np.linalg.solve(H, X[used].T @ y)
    left = y - X[used] @ found
    std = np.sqrt(np.diag(np.linalg.inv(H)) * (left @ left) / max(1, len(y)))
    # four standard deviations
    sure = np.abs(found) > 4.0 * std
    size = float(np.median(np.abs(found[sure]))) if sure.any() else 1.0
    unit = 1.0 if _UNITS[0] < size < _UNITS[1] else size
    close = sure & (np.abs(np.abs(found) / size - 1.0) < 0.6)
    close &= _rms(left) < 0.5 * _rms(y)
    for i, k in enumerate(slots):
        key = f"{log.names[k]}: effort"
        scale[k] = (np.sign(found[i]) if close[i] else scale[k]) * unit
        if not close[i]:
            unsure[key] = (
                "cannot tell: what the feet carry depends little on it in this log"
            )
            continue
        words = ["reversed"] * bool(found[i] < 0.0) or ["fits"]
        if unit != 1.0:
            words.append(
                f"the feet carry {1.0 / unit:.2g} of the weight: a current, or another unit than "
                "N m at the joint"
            )
        told[key] = ", ".join(words)
    for k in sorted(set(range(len(names))) - set(slots)):
        scale[k] *= unit
        unsure[f"{log.names[k]}: effort"] = "cannot tell: it is not in a leg"
    return scale
