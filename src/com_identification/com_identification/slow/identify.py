"""Identifies a humanoid without foot force sensors from slow motions.

The most probable unknowns of rows.slow_rows with the priors below; information is divided by 7, as
rows at 5 Hz share the errors of drives and soles. Priors and that factor are from a trial on a
G1 in simulation.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import block_diag

from com_bags import WalkLog
from com_identification.exceptions import WalkError
from com_identification.slow import rows
from com_identification.slow.rows import (
    SlowRecording,
    SlowRobot,
    condition_slow,
    slow_rows,
)
from com_identification.walking.advice import Advice, com_std, stays_at_urdf
from com_identification.walking.fit import (
    AcceptanceTest,
    WalkFit,
    agreement,
    block_information,
    descend,
    huber_weights,
    nuisances,
    posterior,
    unexplained,
)
from com_identification.walking.identify import WalkResult, with_scale
from com_identification.walking.kernels import IMU, EquationNoise, LegChains, with_theta
from com_identification.walking.preparation import (
    find_limbs,
    measured_joints,
    refuse_units,
)
from com_identification.walking.unknowns import (
    FRICTIONS,
    PARAMETERS,
    DesignMatrix,
    Scale,
    Unknowns,
    make_unknowns,
)
from com_model import Frame, RobotConfig, RobotModel
from com_model.actuators import ActuatorModel
from com_model.arrays import Array
from com_model.bodies import Indices
from com_model.dynamics import GRAVITY
from com_model.dynamics.tree_kernels import tree_of

TEMPERING = 7.0
_FAR = 1e5  # s, from the blocks of one recording to the next


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

    def rows(self, z: Array) -> DesignMatrix:
        """Returns the rows of all recordings, linearised about an estimate.

        Blocks of recording k begin at k times _FAR.

        Args:
            z: (Z + extra,).
        """
        u, found, at = self.unknowns, [], 0
        own = len(z) - u.extra
        x = self.base.coefficients(z[:own])
        tree = with_theta(tree_of(self.robot.model.bodies), self.base.theta(z[:own]))
        for number, each in enumerate(self.recordings):
            made, count = slow_rows(self.robot, each, tree, x), rows.extras(each.hung)
            X = np.zeros((len(made.X), len(x) + u.extra + 1))
            first, n = len(x), self.robot.model.n_joints
            X[:, :first], X[:, -1 - n :] = made.X[:, :first], made.X[:, -1 - n :]
            X[:, first + at : first + at + count] = made.X[:, first : -1 - n]
            found.append((X, made.joint, made.block + number * _FAR))
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
    if not all(hung) and sorted(limbs.size.tolist()) != [6, 6]:
        raise WalkError(
            f"{config.source} has {len(limbs.size)} feet: expected a humanoid on two flat soles "
            "(feet with corners or size). Quadrupeds: identify --use walk"
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
            log, model, imu, measured & np.isfinite(log.effort).any(axis=0), hangs
        )
        for log, hangs in zip(logs, hung, strict=True)
    )
    robot = SlowRobot(model, config, limbs, noise, rope)
    base = unknowns or slow_unknowns(model, config, limbs, sizes)
    # rad/(N m), elasticity of a gear
    give = np.full(model.n_joints, 3e-4)
    extra = np.concatenate([*(_extra_std(each.hung) for each in recordings), give])
    whole = SlowUnknowns(
        base.model,
        base.legs,
        np.concatenate([base.mean, np.zeros(len(extra))]),
        np.concatenate([base.std, extra]),
        len(extra),
    )
    return SlowSystem(robot, recordings, base, whole)


def drive_sizes(model: RobotModel) -> Array:
    """Returns the sizes (n,) N m of the drives: a third of the URDF's limits.

    Args:
        model: the robot; without limits by its mass, as of a G1's hip.
    """
    limits, usual = model.effort_limits, 29.0 * (model.mass / 33.0) ** (4 / 3)
    return np.where(np.isfinite(limits) & (limits > 0.0), limits / 3.0, usual)


def _extra_std(hung: bool) -> Array:
    """Priors of the extra unknowns of a recording, as in rows.extras."""
    if hung:
        # m, of the rope's point
        return np.full(rows.ROPE, 0.002)
    # the chain's poses, m or rad; the floor's slope; no outside pull
    return np.repeat([0.02, np.deg2rad(0.5), 1e-6], [rows.CHAIN, rows.SLOPE, rows.PULL])


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


def solve(system: SlowSystem) -> tuple[WalkFit, DesignMatrix]:
    """Finds the most probable unknowns of a system and their covariance.

    Args:
        system: the recordings.

    Returns:
        The fit, and the rows that it was made from.
    """
    z = system.unknowns.mean
    for _ in range(2):
        made = system.rows(z)
        found = fit_rows(made, system.unknowns, z)
        z = found.z
    return found, made


def fit_rows(made: DesignMatrix, u: SlowUnknowns, z: Array) -> WalkFit:
    """Finds the most probable unknowns of some rows.

    Args:
        made: the rows.
        u: with their priors.
        z: (Z + extra,) where the search begins.
    """
    made = made.take(np.argsort(made.block, kind="stable"))
    for _ in range(3):
        weights = huber_weights(made.X @ u.coefficients(z), made.joint, 1.0)
        weights[made.joint == rows.TIED] = 1.0
        H = made.X.T @ (weights[:, None] * made.X)
        z = descend(H, u, z, TEMPERING)
    return posterior(u, z, block_information(made, weights), TEMPERING, 1.0)


class SlowAdvice(Advice):
    """Advice on slow motions: the weak axes of the CoM."""

    @property
    def text(self) -> str:
        """What to record next, in words."""
        known = ", ".join(
            f"{axis} to {1e3 * std:.1f} mm"
            for axis, std in zip("xyz", self.com_std, strict=True)
        )
        best = "; ".join(
            f"{what} for {1e3 * std:.1f} mm in the weakest"
            for what, std in self.motions
        )
        return f"whole-body CoM known in {known} (one sigma)" + (best and f": {best}")


def identify_slow(
    logs: Sequence[WalkLog],
    hung: Sequence[bool],
    model: RobotModel,
    config: RobotConfig,
    scale: Scale | None = None,
    rope: Frame | None = None,
) -> WalkResult:
    """Identifies a robot from recordings of slow motions.

    Args:
        logs: recordings with an IMU, of standing ones with torques of the legs.
        hung: of each, whether the robot hangs from a rope; else it stands on all feet.
        model: as its URDF says.
        config: its feet, drives and the IMU's link.
        scale: the weighed mass.
        rope: link and point that it hangs from.

    Raises:
        WalkError: the recordings cannot be used; says why and what would help.
    """
    order = sorted(range(len(logs)), key=lambda k: not hung[k])
    logs, hung = [logs[k] for k in order], [hung[k] for k in order]
    system = make_system(logs, hung, model, config, rope)
    u, base, model = system.unknowns, system.base, system.robot.model
    found, made = solve(system)
    own, scale = len(base.mean), scale or Scale()
    z, C, rho, rho_std = with_scale(
        base,
        replace(found, z=found.z[:own], covariance=found.covariance[:own, :own]),
        scale,
        1.0,
    )
    posture = np.mean(
        [each.motion.q.mean(axis=0) for each in system.recordings], axis=0
    )
    gates = [
        *_held_out(made, u),
        nuisances(base, found.z[:own]),
        agreement(
            found, u, np.arange(len(found.information)) % 2 == 0, "odd and even blocks"
        ),
        *_steady_feet(system, made, found.z),
        *_sway_and_hang(system, made, posture),
    ]
    std, before = (
        com_std(base, z, own_C, posture) for own_C in (C, np.diag(base.std**2))
    )
    bodies = PARAMETERS * int(base.bodies.sum())
    ratios = (np.sqrt(np.diag(C)) / base.std)[:bodies].reshape(-1, PARAMETERS)
    stay = [n for n, r in zip(base.body_names, ratios, strict=True) if stays_at_urdf(r)]
    missing = [
        f"{what} it for 60 s"
        for what, kind in (("hang", True), ("sway", False))
        if kind not in hung
    ]
    # m, from which an axis of the CoM is weak
    motions = tuple(
        (what, 0.5 * float(std.max())) for what in missing if std.max() > 0.002
    )
    return WalkResult(
        model=model,
        unknowns=base,
        z=z,
        covariance=C,
        scale=scale,
        rho=rho,
        rho_std=rho_std,
        fit=found,
        inflation=1.0,
        gates=tuple(gates),
        seconds=sum(float(np.ptp(log.time)) for log in logs),
        posture=posture,
        advice=SlowAdvice(
            std, before, found.dominated, tuple(stay), motions, float(std.max())
        ),
        notes=(),
    )


def _held_out(made: DesignMatrix, u: SlowUnknowns) -> list[AcceptanceTest]:
    """Torques and residuals of the last blocks by a fit to the others."""
    number = np.unique(made.block, return_inverse=True)[1]
    # the last 15 % of the blocks
    seen = number < (1.0 - 0.15) * (number.max() + 1)
    found = fit_rows(made.take(seen), u, u.mean)
    held = made.take(~seen)
    fixed = u.std.copy()
    # masses of the URDF, with 1e-4 of their prior standard deviations
    fixed[: u.joint_slice(FRICTIONS[0]).start] *= 1e-4
    H = found.information.sum(axis=0)
    urdf = descend(H, replace(u, std=fixed), u.mean, TEMPERING)
    torques = held.take(held.joint >= rows.BASE)
    ours, before = (
        unexplained(torques, u.coefficients(z), u.gain_columns) for z in (found.z, urdf)
    )
    kind = rows.BASE if (held.joint == rows.BASE).any() else rows.HUNG
    first = held.take(held.joint == kind)
    rms = float(np.sqrt(np.mean((first.X @ u.coefficients(found.z)) ** 2)))
    most = 6.0  # %, of which ripple and noise are 3 (G1) to 5 (T1)
    base = 1.5  # standard deviations
    return [
        AcceptanceTest(
            "held-out torques",
            f"{ours:.1f} % of the torques are not explained in the part that was held out, by the "
            f"URDF with gains, friction and encoders fitted {before:.1f} %; limits "
            f"{most:g} % and a tenth more than the latter",
            bool(ours <= min(1.1 * before, most)) or not len(torques.X),
        ),
        AcceptanceTest(
            "residuals of the base",
            f"{rms:.2f} standard deviations, rms, in the part that was held out, limit {base:g}: "
            "above, a foot slipped, somebody held the robot, or torques are commands",
            rms < base,
        ),
    ]


def _steady_feet(
    system: SlowSystem, made: DesignMatrix, z: Array
) -> list[AcceptanceTest]:
    """Whether the pose of one sole in the other's axes stays, first against last third."""
    worst = np.zeros(2)
    left = made.X @ system.unknowns.coefficients(z)
    for k, each in enumerate(system.recordings):
        own = (made.joint == rows.CLOSED) & (np.floor(made.block / _FAR) == k)
        if each.hung or not own.any():
            continue
        pose = left[own].reshape(-1, 6)
        third = len(pose) // 3
        moved = np.abs(pose[-third:].mean(axis=0) - pose[:third].mean(axis=0))
        size = moved[:3].max() * rows.PLACE, moved[3:].max() * rows.TILT
        worst = np.maximum(worst, size)
    if not worst.any():
        return []
    text = (
        f"one foot moved by {1e3 * worst[0]:.1f} mm and {np.degrees(worst[1]):.2f} degrees against "
        "the other between first and last third, limits 2 mm and 0.2 degrees: a foot slipped"
    )
    # 2 mm and 0.2 degrees
    passed = bool(worst[0] < 0.002 and worst[1] < np.deg2rad(0.2))
    return [AcceptanceTest("feet in place", text, passed)]


def _sway_and_hang(
    system: SlowSystem, made: DesignMatrix, posture: Array
) -> list[AcceptanceTest]:
    """Whether swaying and hanging give the same CoM."""
    kinds = np.array([each.hung for each in system.recordings])
    if kinds.all() or not kinds.any():
        return []
    hung = kinds[np.floor(made.block / _FAR).astype(int)]
    u, coms, spread = system.unknowns, [], np.zeros((3, 3))
    for used in (hung, ~hung):
        found = fit_rows(made.take(used | (made.joint == rows.TIED)), u, u.mean)
        com, J = u.com(found.z, posture)
        coms.append(com)
        spread += J @ found.covariance @ J.T
    off = coms[1] - coms[0]
    size = float(np.sqrt(off @ np.linalg.solve(spread, off) / 3.0))
    apart = 3.0  # standard deviations
    return [
        AcceptanceTest(
            "swaying and hanging agree",
            f"their CoMs differ by {1e3 * np.linalg.norm(off):.1f} mm, {size:.1f} standard "
            f"deviations, limit {apart:g}: above, the rope's point is wrong, or gears give",
            size < apart,
        )
    ]
