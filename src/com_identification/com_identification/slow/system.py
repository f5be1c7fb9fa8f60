"""Slow motions of a robot as one linear system: its rows, and its unknowns with their priors.

Identification and check-up solve it, each with priors of its own. Information is divided by 7, as
rows at 5 Hz share the errors of drives and soles. The priors here and that factor are from a trial
on a G1 in simulation.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import block_diag

from com_bags import WalkLog
from com_identification.exceptions import WalkError
from com_identification.slow import rows
from com_identification.slow.rows import (
    ROPE,
    SlowRecording,
    SlowRobot,
    centres_of_pressure,
    condition_slow,
    slow_rows,
)
from com_identification.walking.kernels import IMU, EquationNoise, LegChains, with_theta
from com_identification.walking.preparation import (
    find_limbs,
    measured_joints,
    refuse_units,
)
from com_identification.walking.unknowns import (
    PARAMETERS,
    DesignMatrix,
    Unknowns,
    make_unknowns,
)
from com_model import Frame, RobotConfig, RobotModel
from com_model.actuators import ActuatorModel
from com_model.arrays import Array, Indices
from com_model.dynamics import GRAVITY
from com_model.dynamics.tree_kernels import tree_of

TEMPERING = 7.0
FAR = 1e5  # s, from the blocks of one recording to the next


@dataclass(frozen=True, eq=False)
class SlowUnknowns(Unknowns):
    """z and x of Unknowns, both followed by extra unknowns, and x by a 1.

    Attributes:
        extra: number of extra unknowns.
    """

    extra: int = 0

    def coefficients(self, z: Array) -> Array:
        """Returns the coefficients (P + extra + 1,) of the columns.

        Args:
            z: (Z + extra,).
        """
        own = len(z) - self.extra
        return np.concatenate([super().coefficients(z[:own]), z[own:], [1.0]])

    def jacobian(self, z: Array) -> Array:
        """Returns the derivatives of coefficients by z.

        Args:
            z: (Z + extra,).
        """
        known = super().jacobian(z[: len(z) - self.extra])
        return np.asarray(block_diag(known, np.eye(self.extra), np.zeros((1, 0))))


@dataclass(frozen=True, eq=False)
class SlowSystem:
    """Recordings of one robot as rows.

    Attributes:
        robot: what the rows share.
        recordings: filtered.
        base: unknowns without the extra ones.
        unknowns: with them, recording by recording.
    """

    robot: SlowRobot
    recordings: tuple[SlowRecording, ...]
    base: Unknowns
    unknowns: SlowUnknowns

    def with_torques(self, factor: float) -> "SlowSystem":
        """The system with torques that are multiplied by a factor.

        Args:
            factor: of all of them.
        """
        recordings = (
            replace(
                each,
                motion=each.motion._replace(tau=factor * each.motion.tau),
                rubbing=factor * each.rubbing,
            )
            for each in self.recordings
        )
        return replace(self, recordings=tuple(recordings))

    def rows(self, z: Array) -> DesignMatrix:
        """Returns the rows of all recordings, linearised about an estimate.

        Blocks of recording k begin at k times FAR.

        Args:
            z: (Z + extra,).
        """
        u, found, at = self.unknowns, [], 0
        own = len(z) - u.extra
        x = self.base.coefficients(z[:own])
        tree = with_theta(tree_of(self.robot.model.bodies), self.base.theta(z[:own]))
        for number, each in enumerate(self.recordings):
            made = slow_rows(self.robot, each, tree, x)
            count = sum(self.robot.extras(each.hung))
            X = np.zeros((len(made.X), len(x) + u.extra + 1))
            first, n = len(x), self.robot.model.n_joints
            X[:, :first], X[:, -1 - n :] = made.X[:, :first], made.X[:, -1 - n :]
            X[:, first + at : first + at + count] = made.X[:, first : -1 - n]
            found.append((X, made.joint, made.block + number * FAR))
            at += count
        found.append(self._tied_gains(len(x) + u.extra + 1))
        return DesignMatrix(
            *(np.concatenate(part) for part in zip(*found, strict=True))
        )

    def _tied_gains(self, width: int) -> tuple[Array, Indices, Array]:
        """Rows of gains that torques do not show: they stay at 1."""
        robot = self.robot
        tau = np.concatenate([each.motion.tau for each in self.recordings])
        bias = self.base.std[self.base.joint_slice("torque_bias")]
        # below five times bias and noise a torque does not show its gain
        blind = np.ptp(tau, axis=0) < 5.0 * (bias + robot.noise.joint)
        joints = np.flatnonzero(blind & ~robot.legs)
        X = np.zeros((len(joints), width))
        tied = 1e-3  # of a gain, between the blocks of one recording
        X[np.arange(len(joints)), self.base.gain_columns.start + joints] = 1.0 / tied
        X[:, -1] = -1.0 / tied
        return X, np.full(len(joints), rows.TIED), np.zeros(len(joints))


def make_system(
    logs: Sequence[WalkLog],
    hung: Sequence[bool],
    model: RobotModel,
    config: RobotConfig,
    rope: Frame | None = None,
    unknowns: Unknowns | None = None,
) -> SlowSystem:
    """Prepares recordings of slow motions.

    Args:
        logs: recordings with an IMU.
        hung: of each, whether the robot hangs; else it stands on all feet.
        model: as its URDF says.
        config: its feet, drives and the IMU's link.
        rope: link and point that it hangs from.
        unknowns: with other priors than those of an identification.

    Raises:
        WalkError: they cannot be used; says why.
    """
    model = config.attach(model)
    limbs = find_limbs(model, config)
    if any(hung) and rope is None:
        raise WalkError(
            "a hanging robot's rope is not known: give --rope LINK X Y Z, the point that it hangs "
            "from in the axes of that link, m"
        )
    kinds = limbs.size.tolist()
    if not all(hung) and kinds != [6, 6] and (len(kinds) < 3 or 6 in kinds):
        raise WalkError(
            f"{config.source} has {len(kinds)} feet, {kinds.count(6)} of them flat: expected a "
            "humanoid on two flat soles (feet with corners or size), or three or more point feet"
        )
    standing = [log for log, hangs in zip(logs, hung, strict=True) if not hangs]
    with_torques = [log for log in logs if np.isfinite(log.effort).any()]
    measured = np.zeros(model.n_joints, dtype=np.bool_)
    if standing or with_torques:
        measured = measured_joints(model, limbs, standing or with_torques)
    sizes = drive_sizes(model)
    # a base force is accurate to 0.45 % of the weight
    force = 0.0045 * GRAVITY * model.mass
    legs = np.unique(limbs.joints[limbs.joints >= 0])
    least = 0.003 * float(sizes[legs].max())
    # of a drive's size, and of that of the strongest drive of a leg
    joint = np.maximum(0.012 * sizes, least)
    # m, the arm of the base's moments
    noise = EquationNoise(force, 0.17 * force, joint, np.zeros_like(sizes))
    imu = config.imu_link or model.root_link
    on_feet = [() if hangs else config.feet for hangs in hung]
    refuse_units(logs, model, on_feet, imu)
    recordings = tuple(
        condition_slow(
            log,
            model,
            imu,
            measured & np.isfinite(log.effort).any(axis=0),
            None if hangs else config,
        )
        for log, hangs in zip(logs, hung, strict=True)
    )
    robot = SlowRobot(model, config, limbs, noise, rope)
    base = unknowns or slow_unknowns(model, config, limbs, sizes)
    x = base.coefficients(base.mean)
    tree = with_theta(tree_of(model.bodies), base.theta(base.mean))
    recordings = tuple(
        each
        if each.hung or not robot.flat
        else replace(each, pressure=centres_of_pressure(robot, each, tree, x))
        for each in recordings
    )
    # rad/(N m), elasticity of a gear
    give = np.full(model.n_joints, 3e-4)
    extra = np.hstack(
        [
            *(_extra_prior(robot, each) for each in recordings),
            np.stack([np.zeros_like(give), give]),
        ]
    )
    whole = SlowUnknowns(
        base.model,
        base.legs,
        np.append(base.mean, extra[0]),
        np.append(base.std, extra[1]),
        extra.shape[1],
    )
    return SlowSystem(robot, recordings, base, whole)


def drive_sizes(model: RobotModel) -> Array:
    """Returns the sizes (n,) N m of the drives: a third of the URDF's limits.

    Args:
        model: the robot; without limits by its mass, as of a G1's hip.
    """
    limits, usual = model.effort_limits, 29.0 * (model.mass / 33.0) ** (4 / 3)
    return np.where(np.isfinite(limits) & (limits > 0.0), limits / 3.0, usual)


def _extra_prior(robot: SlowRobot, recording: SlowRecording) -> Array:
    """Means and standard deviations (2, k) of the extra unknowns of SlowRobot.extras."""
    counts = robot.extras(recording.hung)
    if recording.hung:
        # m, of the rope's point
        return np.stack([np.zeros(ROPE), np.full(ROPE, 0.002)])
    chain, slope, _, pull = counts
    poses = np.full(chain, 0.02)  # m, of poses or distances
    if robot.flat:
        # m, of one sole's centre of pressure over the other's; rad, which the tilts say
        poses[2], poses[3:] = 0.0015, 0.1
    # the floor's slope, rad, and no outside pull, N
    before = np.append(poses, np.full(slope, np.deg2rad(0.5)))
    known = np.stack([np.zeros_like(before), before])
    unpulled = np.stack([np.zeros(pull), np.full(pull, 1e-6)])
    return np.hstack([known, _tilt_prior(robot, recording), unpulled])


def _tilt_prior(robot: SlowRobot, recording: SlowRecording) -> Array:
    """Means and standard deviations (2, 2 L) of the tilts of soles, rad forwards and leftwards.

    A sole lies flat where its centre of pressure is inside; at an edge it stands on it, most
    probably. How far inside is known to 10 mm: gains of ankles (4 %), their friction, and the
    outline of the sole.
    """
    found = [np.zeros((2, 0))]
    for point, foot in zip(recording.pressure, robot.config.feet, strict=False):
        low, high = foot.corners[:, :2].min(axis=0), foot.corners[:, :2].max(axis=0)
        inside = np.maximum(np.minimum(point - low, high - point), 0.0)
        edge = np.exp(-0.5 * (inside / 0.010) ** 2)
        towards = np.sign(low + high - 2.0 * point)
        pressed = np.deg2rad(1.2) * edge
        found.append(
            np.stack([towards * pressed, np.hypot(np.deg2rad(0.2), 1.25 * pressed)])
        )
    return np.hstack(found)


def slow_unknowns(
    model: RobotModel, config: RobotConfig, limbs: LegChains, sizes: Array
) -> Unknowns:
    """Returns the unknowns of an identification with their priors.

    Args:
        model: as its URDF says.
        config: its drives; what it lacks is usual for quasi-direct ones.
        limbs: its legs.
        sizes: (n,) N m, of the drives.
    """
    drives = []
    for j, name in enumerate(model.joint_names):
        own, size = config.actuators.of(name), float(sizes[j])
        # fractions of a drive's size, 29 N m at a G1's hip; load friction is of the torque
        usual = ActuatorModel(
            coulomb=0.031 * size,
            coulomb_std=0.031 * size,
            viscous=0.003 * size,
            viscous_std=0.003 * size,
            load_friction=0.025,
            load_friction_std=0.025,
            torque_bias_std=0.005 * size,
        )
        given = {key: v for key, v in vars(own).items() if v is not None}
        drives.append(replace(usual, **given).filled(size, own.drive or "quasi-direct"))
    legs = np.isin(np.arange(model.n_joints), limbs.joints[limbs.joints >= 0])
    made = make_unknowns(model, drives, legs)
    std, used = made.std.copy(), model.bodies.mass > 0.0
    torso = np.arange(model.bodies.count)[used] == int(np.argmax(model.bodies.mass))
    inertial = std[: PARAMETERS * len(torso)].reshape(-1, PARAMETERS)
    # of the mass of a link, and of the torso; an inertia has twice the logarithm
    inertial[:, 0] = np.where(torso, 0.20, 0.05) / 2.0
    # m, of a link's CoM and of the torso's
    inertial[:, 7:] = np.where(torso, 0.030, 0.005)[:, None]
    # standard deviations of a gain, and of an encoder bias, rad
    std[made.joint_slice("gain")] = 0.04
    std[made.joint_slice("encoder_zero")] = np.deg2rad(0.4)
    # accelerometer bias, m/s^2, and mounting, rad
    std[-IMU:] = np.repeat([0.05, np.deg2rad(0.7)], 3)
    return replace(made, std=std)
