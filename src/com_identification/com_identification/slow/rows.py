"""Rows of slow motions, whitened: forces of ground or rope eliminated, closed chain, level soles.

With D x of walking.kernels, and x followed by extra unknowns and a 1, each row is 0:

  standing   (D_b - sum_c A_c D_lc) x        legs measure the wrenches, or forces, on their feet
             D_j x                           of joints of no leg
    soles    pose of one sole in the other's axes = constant
             up in the axes of each sole = constant, the slope and the sole's tilt
    points   distance of each two feet = constant
             height of each foot over the first one = constant, the slope
  hanging    [D_b,moment - p_r x D_b,force] x + F x R dp_r,   F = D_b,force x
             [D_j - J_r,j^T D_b,force] x - (a x R dp_r) . F   of all joints with torques

Gears that give: the columns of the encoder zeros times the torques, shared by all recordings.
Extra unknowns of a standing robot: the constant pose (6) or distances, the slope (2 or one a foot
but the first), the tilt of each sole against the floor (2 each), a steady pull on its heaviest body
(3); of a hanging one: the error of the rope's point (3).

A sole that an encoder zero presses onto its edge stands on a level floor as one that lies flat on
a slope. Its centre of pressure tells: at an edge soles of simulated G1s were tilted by up to 3.4
degrees (rms 1.3), from 20 mm inside by 0.1.

Recordings are low-passed so far that friction, not acceleration, is what matters. All channels
pass one zero-phase filter of 1.2 Hz, also the direction of friction and its product with the
torque, whose means over a reversal are not those of the filtered velocity.
"""

from dataclasses import dataclass

import numpy as np
from scipy.ndimage import uniform_filter1d
from scipy.spatial.transform import Rotation

from com_bags import WalkLog
from com_identification.exceptions import WalkError
from com_identification.walking.kernels import (
    BODY,
    IMU,
    PER_JOINT,
    EquationNoise,
    LegChains,
    MotionSamples,
    generalised_rows,
)
from com_identification.walking.log import condition, low_pass
from com_identification.walking.unknowns import DesignMatrix
from com_model import Frame, RobotConfig, RobotModel
from com_model.arrays import Array, Flags, Indices
from com_model.dynamics import GRAVITY
from com_model.dynamics.link_frames import LinkFrames
from com_model.dynamics.tree_kernels import Tree
from com_model.geometry.rotations import skew

RATE = 5.0
"""Hz, of the samples that become rows."""
_LEAST = 15.0  # s


@dataclass(frozen=True, eq=False)
class SlowRecording:
    """N samples of a slow motion at RATE.

    Attributes:
        motion: low-passed; `sign` is the mean direction of friction.
        rubbing: (N, n) N m, low-passed direction times the size of the torque.
        measured: (n,) joints whose torques were recorded.
        hung: the robot hangs; else it stands on all feet.
        pressure: (L, 2) m, mean centre of pressure of each sole in its axes; (0, 2) where it does
            not stand on soles.
    """

    motion: MotionSamples
    rubbing: Array
    measured: Flags
    hung: bool
    pressure: Array


def condition_slow(
    log: WalkLog,
    model: RobotModel,
    imu_link: str,
    measured: Flags,
    standing: RobotConfig | None,
) -> SlowRecording:
    """Filters a recording and reduces it to RATE.

    Args:
        log: the recording, with an IMU.
        model: the robot, n joints.
        imu_link: name of the IMU's link, fixed to the root.
        measured: (n,) joints whose torques are used.
        standing: the feet on which the robot stands; None: it hangs.

    Raises:
        WalkError: it has no IMU, is too short, too slow, lacks too many samples, or a foot that
            should stand is in the air.
    """
    if not log.has_imu:
        raise WalkError(
            "a slow motion needs the IMU's angular velocity and specific force: record imu, too"
        )
    data = condition(log, model, imu_link, measured)
    if standing is not None:
        moved = _moved(model, standing, data.motion.q, data.period)
        if moved > _MOST_MOVED:
            raise WalkError(
                f"the feet move against each other by {1e3 * moved:.0f} mm within a second (limit "
                f"{1e3 * _MOST_MOVED:g}): expected a robot that stands on all feet and sways. Cut "
                "the recording with --from and --to, or identify it with --use walk"
            )
    period, given = data.period, data.motion
    # signs of velocities by a band of 8 Hz, smooth below 6 mrad/s
    sign = np.tanh(low_pass(given.qd, 8.0, period) / 0.006)
    channels = given._replace(sign=sign)
    # s, at both ends, where the filter is not settled
    edge, step = round(1.5 / period), max(1, round(1.0 / (RATE * period)))
    chosen = np.arange(edge, len(data.usable) - edge, step)
    chosen = chosen[data.usable[chosen]]
    if len(chosen) < _LEAST * RATE:
        raise WalkError(
            f"a slow motion of {len(chosen) / RATE:.0f} s is usable: expected {_LEAST:g} s or "
            "more, better 60 s"
        )

    def smooth(values: Array) -> Array:
        # Hz: friction matters, acceleration does not
        return np.ascontiguousarray(low_pass(values, 1.2, period)[chosen])

    motion = MotionSamples(*(smooth(values) for values in channels))
    rubbing = smooth(sign * np.abs(given.tau))
    return SlowRecording(motion, rubbing, measured, standing is None, np.zeros((0, 2)))


_MOST_MOVED = 0.002
"""m, rms, by which feet of a standing robot move against each other within a second.

Sways of robots with encoders off by degrees have 0.2 mm, trots on the spot 8."""


def feet_move(model: RobotModel, config: RobotConfig, log: WalkLog) -> bool:
    """Whether feet move against each other as in a walk.

    Args:
        model: the robot with the frames of its feet.
        config: its feet.
        log: a recording.
    """
    period = float(np.median(np.diff(log.time)))
    q = log.position[np.isfinite(log.position).all(axis=1)]
    return _moved(model, config, q, period) > _MOST_MOVED


def _moved(model: RobotModel, config: RobotConfig, q: Array, period: float) -> float:
    """By how much feet move against each other within a second, m rms; q (N, n) rad or m.

    Encoder zeros move them slowly, by millimetres; steps within a second, by centimetres.
    """
    every = max(1, round(0.05 / period))
    _, p, _, ground = standing_feet(model, config, q[::every])
    shape = (p - p.mean(axis=1, keepdims=True)) @ ground
    width = max(1, round(1.0 / (every * period)))
    quick = shape - uniform_filter1d(shape, width, axis=0)
    return float(np.sqrt((quick**2).sum(axis=2).mean(axis=0)).max())


PULL, ROPE = 3, 3
"""Numbers of extra unknowns of any robot."""
BASE, CLOSED, LEVEL, HUNG, TIED = -1, -2, -3, -4, -5
"""Groups of rows, in place of a joint's index: base, closed chain, level soles, moments about the
rope's point, values that are tied to others."""
BLOCK = 5.0  # s, of rows that share their information
# m, rad of the soles' tilt under load, correlated over 1 s
PLACE, TILT = 0.0015 * np.sqrt(RATE), np.deg2rad(0.12) * np.sqrt(RATE)


@dataclass(frozen=True, eq=False)
class SlowRobot:
    """What the rows of all recordings of a robot share.

    Attributes:
        model: with the frames of its feet.
        config: its feet.
        limbs: its legs.
        noise: of the equations.
        rope: link and point that it hangs from; None: it does not.
    """

    model: RobotModel
    config: RobotConfig
    limbs: LegChains
    noise: EquationNoise
    rope: Frame | None = None

    @property
    def legs(self) -> Flags:
        """(n,) joints of legs."""
        return np.isin(
            np.arange(self.model.n_joints), self.limbs.joints[self.limbs.joints >= 0]
        )

    @property
    def flat(self) -> bool:
        """Whether it stands on soles; else on points."""
        return bool((self.limbs.size == 6).all())

    def extras(self, hung: bool) -> tuple[int, ...]:
        """Returns the numbers of the extra unknowns of a recording, or (ROPE,) where it hangs.

        Of a standing robot: chain, slope, tilts of soles, pull.

        Args:
            hung: whether the robot hangs.
        """
        if hung:
            return (ROPE,)
        feet = len(self.limbs.body)
        if self.flat:
            return 6, 2, 2 * feet, PULL
        return feet * (feet - 1) // 2, feet - 1, 0, PULL

    def feet(self, q: Array) -> tuple[Array, Array, Array, Array]:
        """Returns the feet of N postures, see standing_feet.

        Args:
            q: (N, n) rad or m.
        """
        return standing_feet(self.model, self.config, q)

    def tilts(self, q: Array) -> Array:
        """Returns how the unknowns of the slope follow from a slope about two axes (slope, 2).

        Args:
            q: (N, n) rad or m, postures of a standing robot.
        """
        if self.flat:
            return np.eye(2)
        _, p, _, ground = self.feet(q)
        between = (p[:, 1:] - p[:, :1]) @ ground
        far = np.linalg.norm(between, axis=2, keepdims=True)
        return np.asarray((between / far).mean(axis=0)[:, :2])

    def upwards(self, recording: SlowRecording) -> Array:
        """Directions (N, 3) against gravity in root axes, by the accelerometer and standing feet.

        The acceleration of the root over the first foot is taken off: 0.03 m/s^2 are 0.2 degrees.

        Args:
            recording: of it, standing.
        """
        _, p, _, R = self.feet(recording.motion.q)
        place = -np.einsum("kji,kj->ki", R, p[:, 0])
        rise = np.gradient(np.gradient(place, 1.0 / RATE, axis=0), 1.0 / RATE, axis=0)
        rise[[0, 1, -2, -1]] = 0.0
        up = recording.motion.force - np.einsum("kij,kj->ki", R, rise)
        return np.asarray(up / np.linalg.norm(up, axis=1, keepdims=True))


def standing_feet(
    model: RobotModel, config: RobotConfig, q: Array
) -> tuple[Array, Array, Array, Array]:
    """Returns the feet of N postures of a standing robot, in the root's frame.

    Args:
        model: the robot with the frames of its feet.
        config: its L feet.
        q: (N, n) rad or m.

    Returns:
        Orientations (N, L, 3, 3), places (N, L, 3) m, Jacobians (N, L, 6, n), and axes (N, 3, 3)
        that stand still on the ground: those of the first sole; of points forwards, leftwards and
        normal to where they stand on average. Places are origins of soles or centres of balls,
        less the way by which a ball has rolled.
    """
    feet = config.feet
    frames = LinkFrames(
        model, [foot.frame for foot in feet], [foot.center for foot in feet]
    )
    moved = [frames.motions(each) for each in q]
    R, p, J = (np.array([m[i] for m in moved]) for i in range(3))
    if all(len(foot.corners) for foot in feet):
        return R, p, J, R[:, 0]
    ground = _axes_of(p)
    turned = ground.transpose(0, 2, 1)[:, None] @ R
    for c, foot in enumerate(feet):
        own = Rotation.from_matrix(turned[:, c])
        x, y, _ = (own * own.mean().inv()).as_rotvec().T
        rolled = foot.radius * np.column_stack([y, -x, np.zeros_like(x)])
        p[:, c] -= np.einsum("kij,kj->ki", ground, rolled)
    return R, p, J, _axes_of(p)


def _axes_of(p: Array) -> Array:
    """Axes (N, 3, 3) forwards, leftwards and normal to feet at (N, L, 3) m that stand still."""
    away = p - p.mean(axis=1, keepdims=True)
    x, y = np.einsum("nci,ck->kni", away, away.mean(axis=0)[:, :2])
    z = np.cross(x, y)
    x, z = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in (x, z))
    return np.stack([x, np.cross(z, x), z], axis=2)


def slow_rows(
    robot: SlowRobot, recording: SlowRecording, tree: Tree, x: Array
) -> DesignMatrix:
    """Makes the whitened rows of a recording.

    Args:
        robot: the robot.
        recording: of it.
        tree: with the parameters about which encoder biases are linearised.
        x: (P,) coefficients about which they are.

    Returns:
        (R, P + extras + n + 1); groups in place of joints.
    """
    D, A, B = _generalised(robot, recording, tree, x)
    make = _hung if recording.hung else _standing
    X, group, sample, tau = make(robot, recording, (D, A, B), x)
    wound = X[:, zero_columns(robot.model)] * tau[sample]
    X = np.hstack([X[:, :-1], wound, X[:, -1:]])
    return DesignMatrix(X, group, BLOCK * np.floor(sample / (RATE * BLOCK)))


def _generalised(
    robot: SlowRobot, recording: SlowRecording, tree: Tree, x: Array
) -> tuple[Array, Array, Array]:
    """D (N, 6 + n, P), A (N, L, 6, K), B (N, L, 6, 6) of walking.kernels.generalised_rows."""
    limbs, motion = robot.limbs, recording.motion
    (N, n), L = motion.q.shape, len(limbs.body)
    touching = np.full(L, not recording.hung)
    D = np.zeros((N, 6 + n, len(x)))
    A, B = np.zeros((N, L, 6, limbs.joints.shape[1])), np.zeros((N, L, 6, 6))
    for k in range(N):
        generalised_rows(tree, limbs, motion, k, touching, x, (D[k], A[k], B[k]))
    j = np.arange(n)
    first = BODY * len(tree.mass)
    D[:, 6 + j, first + 3 * n + j] = recording.rubbing
    return D, A, B


def centres_of_pressure(
    robot: SlowRobot, recording: SlowRecording, tree: Tree, x: Array
) -> Array:
    """Returns the mean centre of pressure (L, 2) of each sole, m in its axes.

    Args:
        robot: it stands on soles.
        recording: of it, standing.
        tree: of the coefficients.
        x: (P,) coefficients, by which the torques of the legs give the wrenches on the feet.
    """
    D, A, _ = _generalised(robot, recording, tree, x)
    R, p, _, _ = robot.feet(recording.motion.q)
    found = np.zeros((len(robot.limbs.body), 2))
    for c, joints in enumerate(robot.limbs.joints):
        own = joints[joints >= 0]
        legs = D[:, 6 + own] @ x
        wrench = np.einsum("kij,kj->ki", A[:, c, :, : len(own)], legs)
        force, moment = wrench[:, :3], wrench[:, 3:] - np.cross(p[:, c], wrench[:, :3])
        along_x, along_y = R[:, c, :, 0], R[:, c, :, 1]
        load = (force * R[:, c, :, 2]).sum()
        found[c] = (
            -(moment * along_y).sum() / load,
            (moment * along_x).sum() / load,
        )
    return found


def _near_limits(robot: SlowRobot, q: Array) -> Flags:
    """(N, n) joints that are near a limit."""
    model = robot.model
    return np.asarray((q < model.lower + 0.02) | (q > model.upper - 0.02))


def zero_columns(model: RobotModel) -> slice:
    """Returns where the columns of the encoder zeros are.

    Args:
        model: the robot.
    """
    first = BODY * model.bodies.count + (PER_JOINT - 1) * model.n_joints
    return slice(first, first + model.n_joints)


def _stack(parts: list[tuple[Array, int, Indices]]) -> tuple[Array, Indices, Indices]:
    """Rows, groups and samples of several kinds of rows."""
    X = np.concatenate([rows for rows, _, _ in parts])
    group = np.concatenate([np.full(len(rows), own) for rows, own, _ in parts])
    return X, group, np.concatenate([sample for _, _, sample in parts])


def _standing(
    robot: SlowRobot,
    recording: SlowRecording,
    parts: tuple[Array, Array, Array],
    x: Array,
) -> tuple[Array, Indices, Indices, Array]:
    """Rows of a standing robot, their groups and samples, and torques that wind the gears."""
    D, A, B = parts
    limbs, motion, noise = robot.limbs, recording.motion, robot.noise
    N, P = len(D), D.shape[2]
    width = P + sum(robot.extras(hung=False)) + 1
    near, (R, p, J, ground) = _near_limits(robot, motion.q), robot.feet(motion.q)
    # a steady pull, in the axes of the ground
    body = int(np.argmax(robot.model.bodies.mass))
    name = robot.model.bodies.names[body]
    com = robot.model.link_coms[robot.model.link_index(name)]
    hit = [LinkFrames(robot.model, [name], [com]).motions(q) for q in motion.q]
    force = -ground
    pull = np.zeros((N, D.shape[1], PULL))
    pull[:, :3] = force
    for k in range(N):
        pull[k, 3:6] = skew(hit[k].p[0]) @ force[k]
        pull[k, 6:] = hit[k].jacobian[0, :3].T @ force[k]
    whole = np.zeros((N, D.shape[1], width))
    whole[:, :, :P], whole[:, :, -1 - PULL : -1] = D, pull
    base, cov = whole[:, :6].copy(), np.zeros((N, 6, 6))
    cov[:] = np.diag(np.repeat([noise.force**2, noise.moment**2], 3))
    for c in range(len(limbs.body)):
        own = limbs.joints[c][limbs.joints[c] >= 0]
        a = A[:, c, :, : len(own)]
        base -= a @ whole[:, 6 + own]
        cov += (a * noise.joint[own] ** 2) @ a.transpose(0, 2, 1)
        # N^2 or (N m)^2, variance of what no joint of a leg feels
        cov += 1e8 * B[:, c] @ B[:, c].transpose(0, 2, 1)
    usable = np.flatnonzero(~near[:, robot.legs].any(axis=1))
    base = np.linalg.solve(np.linalg.cholesky(cov[usable]), base[usable])
    found: list[tuple[Array, int, Indices]] = [
        (base.reshape(-1, width), BASE, np.repeat(usable, 6))
    ]
    for j in np.flatnonzero(recording.measured & ~robot.legs):
        used = np.flatnonzero(~near[:, j])
        found.append((whole[used, 6 + j] / noise.joint[j], int(j), used))
    up, every = robot.upwards(recording), np.arange(N)
    make = (_chain, _level) if robot.flat else (_distances, _heights)
    for group, rows in zip((CLOSED, LEVEL), make, strict=True):
        X = rows(robot, recording.pressure, (R, p, J), up, width)
        found.append((X, group, np.repeat(every, len(X) // N)))
    return (*_stack(found), motion.tau)


Feet = tuple[Array, Array, Array]
"""Orientations, places and Jacobians of the feet, see SlowRobot.feet."""


def _chain(
    robot: SlowRobot, pressure: Array, feet: Feet, _up: Array, width: int
) -> Array:
    """Rows (6 N, width): the second sole's pose in the first one's axes is constant.

    Both centres of pressure are on the floor, towards which the first sole is tilted.
    """
    R, p, J = feet
    N, at = len(R), zero_columns(robot.model)
    turned = R[:, 0].transpose(0, 2, 1)
    place = np.einsum("kij,kj->ki", turned, p[:, 1] - p[:, 0])
    turn = turned @ R[:, 1]
    mean = Rotation.from_matrix(turn).mean().as_matrix()
    off = Rotation.from_matrix(turn @ mean.T).as_rotvec()
    rows = np.zeros((N, 6, width))
    between = J[:, 1] - J[:, 0]
    arm = np.array([skew(v) for v in p[:, 1] - p[:, 0]])
    rows[:, :3, at] = turned @ (between[:, :3] + arm @ J[:, 0, 3:])
    rows[:, 3:, at] = turned @ between[:, 3:]
    first = width - 1 - sum(robot.extras(hung=False))
    rows[:, :, first : first + 6] = np.eye(6)
    rows[:, :3, -1], rows[:, 3:, -1] = -(place - place.mean(axis=0)), -off
    first_point, second_point = np.column_stack([pressure, np.zeros(2)])
    apart = place.mean(axis=0) + mean @ second_point - first_point
    rows[:, 2, first + 8 : first + 10] = -apart[:2]
    rows[:, 2, -1] -= apart[2]
    rows[:, :3] /= PLACE
    rows[:, 3:] /= TILT
    return rows.reshape(-1, width)


def _level(
    robot: SlowRobot, _pressure: Array, feet: Feet, up: Array, width: int
) -> Array:
    """Rows (4 N, width): up in the axes of each sole is by the floor's slope and its tilt."""
    R, _, J = feet
    n, end = robot.model.n_joints, width - 1 - sum(robot.extras(hung=False))
    rows = np.zeros((*R.shape[:2], 3, width))
    turned = R.transpose(0, 1, 3, 2)
    crossed = -turned @ np.array([skew(u) for u in up])[:, None]
    rows[..., zero_columns(robot.model)] = crossed @ J[:, :, 3:, :n]
    rows[..., end - IMU : end - 3] = -turned / GRAVITY
    rows[..., end - 3 : end] = crossed
    for c in range(R.shape[1]):
        relative = Rotation.from_matrix(turned[:, 0] @ R[:, c]).mean().as_matrix()
        rows[:, c, :, end + 6 : end + 8] = -relative.T[:, :2]
        tilt = end + 8 + 2 * c
        rows[:, c, :2, tilt : tilt + 2] = -np.eye(2)
    rows[..., -1] = np.einsum("kcij,kj->kci", turned, up)
    return rows[:, :, :2].reshape(-1, width) / TILT


def _distances(
    robot: SlowRobot, _pressure: Array, feet: Feet, _up: Array, width: int
) -> Array:
    """Rows (pairs N, width): the distance of each two feet is constant."""
    _, p, J = feet
    a, b = np.triu_indices(p.shape[1], 1)
    between = p[:, b] - p[:, a]
    size = np.linalg.norm(between, axis=2)
    rows = np.zeros((*size.shape, width))
    along, moved = between / size[..., None], J[:, b, :3] - J[:, a, :3]
    rows[..., zero_columns(robot.model)] = np.einsum("kci,kcij->kcj", along, moved)
    first = width - 1 - sum(robot.extras(hung=False))
    rows[..., first : first + len(a)] = np.eye(len(a))
    rows[..., -1] = -(size - size.mean(axis=0))
    return rows.reshape(-1, width) / PLACE


def _heights(
    robot: SlowRobot, _pressure: Array, feet: Feet, up: Array, width: int
) -> Array:
    """Rows ((L - 1) N, width): the height of each foot over the first one is constant."""
    _, p, J = feet
    chain, slope, *_ = robot.extras(hung=False)
    end = width - 1 - sum(robot.extras(hung=False))
    between = p[:, 1:] - p[:, :1]
    rows = np.zeros((len(p), slope, width))
    moved = J[:, 1:, :3] - J[:, :1, :3]
    rows[..., zero_columns(robot.model)] = -np.einsum("ki,kcij->kcj", up, moved)
    rows[..., end - IMU : end - 3] = -between / GRAVITY
    rows[..., end - 3 : end] = np.cross(up[:, None], between)
    far = np.linalg.norm(between, axis=2).mean(axis=0)
    rows[..., end + chain : end + chain + slope] = -np.diag(far)
    rows[..., -1] = np.einsum("ki,kci->kc", up, between)
    return rows.reshape(-1, width) / PLACE


def _hung(
    robot: SlowRobot,
    recording: SlowRecording,
    parts: tuple[Array, Array, Array],
    x: Array,
) -> tuple[Array, Indices, Indices, Array]:
    """Rows of a hanging robot; see _standing."""
    D, rope = parts[0], robot.rope
    if rope is None:
        raise ValueError("a hanging robot needs the point of its rope")
    motion, noise, n = recording.motion, robot.noise, robot.model.n_joints
    N, P, at = len(D), D.shape[2], zero_columns(robot.model).start
    frames = LinkFrames(robot.model, [rope.link], [rope.xyz])
    whole = np.zeros((N, 6 + n, P + ROPE + 1))
    whole[:, :, :P] = D
    step = 1e-6  # rad, of differences
    for k in range(N):
        R, p, J = (v[0] for v in frames.motions(motion.q[k]))
        F = D[k, :3] @ x
        for i in np.flatnonzero(np.abs(J).max(axis=0) > 0.0):  # joints up to the rope
            near = motion.q[k].copy()
            near[i] += step
            change = (frames.motions(near).jacobian[0, :3] - J[:3]) / step
            whole[k, 3:6, at + i] += np.cross(J[:3, i], F)
            whole[k, 6:, at + i] += change.T @ F
        force = whole[k, :3].copy()
        whole[k, 3:6] -= skew(p) @ force
        whole[k, 6:] -= J[:3].T @ force
        whole[k, 3:6, P:-1] += skew(F) @ R
        whole[k, 6:, P:-1] -= np.cross(F, J[3:].T) @ R
    arm = np.linalg.norm(frames.poses(motion.q.mean(axis=0))[1])
    rows = whole[:, 3:6] / np.hypot(noise.moment, arm * noise.force)
    found: list[tuple[Array, int, Indices]] = [
        (rows.reshape(-1, P + ROPE + 1), HUNG, np.repeat(np.arange(N), 3))
    ]
    close = _near_limits(robot, motion.q)
    for j in np.flatnonzero(recording.measured):
        used = np.flatnonzero(~close[:, j])
        found.append((whole[used, 6 + j] / noise.joint[j], int(j), used))
    # of joints without torques those of the model wind the gears
    predicted = whole[:, 6:, :P] @ x
    tau = np.where(recording.measured, motion.tau, predicted)
    return (*_stack(found), tau)
