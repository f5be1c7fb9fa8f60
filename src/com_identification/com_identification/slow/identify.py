"""Identifies a humanoid without foot force sensors from slow motions, and tests the result."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from com_bags import WalkLog
from com_identification.slow import rows
from com_identification.slow.system import (
    FAR,
    TEMPERING,
    SlowSystem,
    SlowUnknowns,
    make_system,
)
from com_identification.walking.advice import Advice, com_std, stays_at_urdf
from com_identification.walking.fit import (
    AcceptanceTest,
    WalkFit,
    agreement,
    block_information,
    descend,
    gain_powers,
    huber_weights,
    nuisances,
    posterior,
    unexplained,
)
from com_identification.walking.identify import WalkResult, with_scale
from com_identification.walking.unknowns import (
    FRICTIONS,
    PARAMETERS,
    DesignMatrix,
    Scale,
)
from com_model import Frame, RobotConfig, RobotModel
from com_model.actuators import COMMON_GAIN
from com_model.arrays import Array


def solve(
    system: SlowSystem, mass: float | None = None
) -> tuple[WalkFit, DesignMatrix, float]:
    """Finds the most probable unknowns of a system and their covariance.

    The mean gain of the legs is 1, so torques are multiplied by what makes the mass the weighed
    one. Without, 1 % of it would end in the torso, whose mass is known least, and move z by 2 mm.

    Args:
        system: the recordings.
        mass: kg, weighed; None: unknown.

    Returns:
        The fit, the rows that it was made from, and the factor of the torques.
    """
    u, base, z, factor = system.unknowns, system.base, system.unknowns.mean, 1.0
    for attempt in range(3):
        if mass is not None and attempt > 0:
            factor *= mass / base.total_mass(z[: len(base.mean)])
        made = system.with_torques(factor).rows(z)
        found = fit_rows(made, u, z)
        z = found.z
    return found, made, factor


def fit_rows(made: DesignMatrix, u: SlowUnknowns, z: Array) -> WalkFit:
    """Finds the most probable unknowns of some rows.

    Args:
        made: the rows.
        u: with their priors.
        z: (Z + extra,) where the search begins.
    """
    made = made.take(np.argsort(made.block, kind="stable"))
    for _ in range(3):
        residual = made.X @ u.coefficients(z)
        weights = huber_weights(residual, made.joint, 1.0)
        weights[made.joint == rows.TIED] = 1.0
        H = made.X.T @ (weights[:, None] * made.X)
        base = made.joint == rows.BASE
        k = gain_powers(made, u, weights * residual**2, weights, base)
        z = descend(H, u, z, TEMPERING, k)
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
    own, scale = len(base.mean), scale or Scale()
    found, made, factor = solve(system, scale.mass)
    z, C, rho, rho_std = with_scale(
        base,
        replace(found, z=found.z[:own], covariance=found.covariance[:own, :own]),
        scale,
        1.0,
    )
    rho *= factor
    posture = np.mean(
        [each.motion.q.mean(axis=0) for each in system.recordings], axis=0
    )
    gates = [
        *_held_out(made, u),
        nuisances(base, found.z[:own]),
        agreement(
            found, u, np.arange(len(found.information)) % 2 == 0, "odd and even blocks"
        ),
        *_weighed(made, scale.mass, rho),
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


def _weighed(
    made: DesignMatrix, mass: float | None, rho: float
) -> list[AcceptanceTest]:
    """Whether the weighed mass is one that the torques of the legs can carry."""
    if mass is None or not (made.joint == rows.BASE).any():
        return []
    # standard deviations of the gain that all drives have in common
    limit = 2.5 * COMMON_GAIN
    return [
        AcceptanceTest(
            "weighed mass",
            f"torques as they are read carry {mass / rho:.3g} kg, and {mass:.3g} kg were weighed: "
            f"{100.0 * (rho - 1.0):+.0f} %, limit {100.0 * limit:.0f} %. Above, another load was "
            "weighed, it was not kg, or torques are in another unit",
            bool(abs(np.log(rho)) < limit),
        )
    ]


def _steady_feet(
    system: SlowSystem, made: DesignMatrix, z: Array
) -> list[AcceptanceTest]:
    """Whether the feet stay where they are to each other, first against last third."""
    chain = system.robot.extras(hung=False)[0]
    turns = np.arange(chain) >= (3 if system.robot.flat else chain)
    worst = np.zeros(2)
    left = made.X @ system.unknowns.coefficients(z)
    for k, each in enumerate(system.recordings):
        own = (made.joint == rows.CLOSED) & (np.floor(made.block / FAR) == k)
        if each.hung or not own.any():
            continue
        pose = left[own].reshape(-1, chain)
        third = len(pose) // 3
        moved = np.abs(pose[-third:].mean(axis=0) - pose[:third].mean(axis=0))
        size = (
            moved[~turns].max() * rows.PLACE,
            moved[turns].max(initial=0.0) * rows.TILT,
        )
        worst = np.maximum(worst, size)
    if not worst.any():
        return []
    # 2 mm and 0.2 degrees; how far a ball rolls is known to a tenth of its radius
    place = 0.002 + 0.1 * float(system.robot.limbs.radius.max())
    turn = f" and {np.degrees(worst[1]):.2f} degrees (limit 0.2)" * system.robot.flat
    text = (
        f"one foot moved by {1e3 * worst[0]:.1f} mm (limit {1e3 * place:.1f}){turn} against "
        "another between first and last third: a foot slipped"
    )
    passed = bool(worst[0] < place and worst[1] < np.deg2rad(0.2))
    return [AcceptanceTest("feet in place", text, passed)]


def _sway_and_hang(
    system: SlowSystem, made: DesignMatrix, posture: Array
) -> list[AcceptanceTest]:
    """Whether swaying and hanging give the same CoM."""
    kinds = np.array([each.hung for each in system.recordings])
    if kinds.all() or not kinds.any():
        return []
    hung = kinds[np.floor(made.block / FAR).astype(int)]
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
