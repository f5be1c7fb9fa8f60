"""Mass and CoM of a trunk by the equations of the base in a low band: what a real log can show.

  sum_f W_f (h_f - tau_f + phi_f p) = Y_base pi     W_f phi_f p: rotors, friction, load friction

Errors of accelerations against torques attenuate the dynamic columns, and torque biases absorb the
weight that is lost; no resampling of the log shows it. So the equations are filtered to 5 Hz, and
the estimate counts as uncertain as far as it moves with the band, the delay of the torques and the
biases. Gains of the torques are never free: a common one, and those of legs, are part of the
covariance only. Of a log without IMU whole strides are averaged, in which the trunk does not
accelerate: their vertical forces are the weight.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from scipy.linalg import block_diag

from com_bags import WalkLog
from com_identification.exceptions import WalkError
from com_identification.walking.low_band import (
    BaseFit,
    BaseSolver,
    make_solver,
    prepare_walks,
    trunk_values,
)
from com_identification.walking.unknowns import FRICTIONS, Scale, Unknowns
from com_model import RobotConfig, RobotModel
from com_model.actuators import COMMON_GAIN
from com_model.arrays import Array, Flags, Indices
from com_model.dynamics import GRAVITY
from com_model.text import listing

LEAST_STRIDES = 15


class Verdict(Enum):
    """What a recording of a walk says about the URDF."""

    CONFIRMED = "URDF confirmed"
    CORRECTED = "corrected"
    MASS = "mass confirmed, no CoM"
    NOT_GOOD = "not good enough"


@dataclass(frozen=True, eq=False)
class MassEvidence:
    """What a recording says about the masses of a robot.

    Attributes:
        verdict: on the URDF.
        unknowns: with their priors.
        z: (Z,) see Unknowns.
        covariance: (Z, Z), with the spread of settings and the gains of the drives.
        mass: kg, of the robot.
        mass_std: kg.
        com: (3,) m, of the trunk, root axes; None without an IMU.
        com_std: (3,) m; None without an IMU.
        strides: number of strides that count; without an IMU of steady ones.
        halves: differences of first and second half over their standard deviation, the largest;
            None where there is no IMU.
        held_out: N, residual forces held out, with the URDF's inertials and friction fitted, and
            with those of the verdict: the URDF's unless it is corrected; None without an IMU.
        reasons: of the verdict, in words.
        notes: on the recordings, in words.
    """

    verdict: Verdict
    unknowns: Unknowns
    z: Array
    covariance: Array
    mass: float
    mass_std: float
    com: Array | None
    com_std: Array | None
    strides: int
    halves: float | None
    held_out: tuple[float, float] | None
    reasons: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def confirmed(self) -> bool:
        """Whether the recording was good enough for a verdict on the URDF."""
        return self.verdict is not Verdict.NOT_GOOD

    def noted(self, note: str) -> "MassEvidence":
        """Returns the evidence with a further note.

        Args:
            note: in words; "": none.
        """
        return replace(self, notes=(*self.notes, *([note] if note else [])))


def assess_walk(
    logs: Sequence[WalkLog],
    model: RobotModel,
    config: RobotConfig,
    scale: Scale | None = None,
) -> MassEvidence:
    """Judges a URDF by recordings of walking.

    Args:
        logs: recordings of walking, with or without IMU.
        model: as its URDF says.
        config: its feet, drives and the IMU's link.
        scale: the weighed mass; it sets the common gain of the torques.

    Raises:
        WalkError: the recordings cannot be used; says why and what would help.
    """
    parts, ready = prepare_walks(logs, model, config)
    if bool((ready.limbs.joint_count < ready.limbs.size).any()):
        raise WalkError(
            "legs with too few joints do not feel all that acts on their feet: expected three "
            "joints for point feet, six for flat ones"
        )
    with_imu = all(log.has_imu for log in parts)
    solver, left = make_solver(ready, ready.data, with_imu)
    notes = (*ready.notes, *left)
    if not with_imu:
        return _mass_only(solver, scale or Scale(), notes)
    return _with_com(solver, scale or Scale(), notes)


def _scaled(
    solver: BaseSolver, found: BaseFit, model: Array, scale: Scale
) -> tuple[Array, Array]:
    """Z (Z,) and its covariance with what settings, gains and the weighed mass add to it.

    Args:
        solver: of the rows.
        found: the estimate.
        model: (S, Z + 1) differences of estimates with other settings.
        scale: the weighed mass.
    """
    u = solver.unknowns
    legs = solver.gain_errors(found)
    C = found.covariance + legs @ legs.T + model.T @ model / max(1, len(model))
    z, C = found.z[:-1], C[:-1, :-1]
    common, rho = COMMON_GAIN, 1.0
    direction, slope = u.scale_direction(z), u.mass_direction(z)
    C = C + common**2 * np.outer(direction, direction)
    if scale.mass is not None:
        # an observation of ln(mass), which moves the common gain and little else
        own, std = C @ slope, scale.std / scale.mass
        rho = np.log(scale.mass / u.total_mass(z))
        K = own / (slope @ own + std**2)
        z, C = z + K * rho, C - np.outer(K, own)
    return z, (C + C.T) / 2.0


def _mass_only(
    solver: BaseSolver, scale: Scale, notes: tuple[str, ...]
) -> MassEvidence:
    """By the mean vertical forces of whole strides: of a log without IMU."""
    means = [
        each.X[each.gait.stride == k].mean(axis=0)
        for each in solver.rows
        for k in each.gait.whole(each.used)
    ]
    strides = len(means)
    fewest = 5  # strides
    if len(means) < fewest:
        raise WalkError(
            f"{len(means)} steady strides without a gap: expected {fewest} or more, and an "
            f"IMU and {LEAST_STRIDES} strides for the CoM. Let the robot trot for 10 s"
        )
    X = np.array(means)
    X[:, [0, 1, 3, 4, 5]] = 0.0  # of a trunk whose tilt is not known
    x = np.append(solver.unknowns.coefficients(solver.unknowns.mean), 0.0)
    # half a percent of the weight at least
    least = 0.005 * GRAVITY * solver.unknowns.model.mass
    scatter = np.hypot((X[:, 2] @ x).std() / np.sqrt(strides), least)
    found = solver.solve(
        X.mean(axis=0)[None], np.zeros(1, dtype=np.int64), size=np.full(6, scatter)
    )
    z, C = _scaled(solver, found, np.zeros((0, len(found.z))), scale)
    return _judged(solver, z, C, strides, None, scale, (), notes)


def _with_com(solver: BaseSolver, scale: Scale, notes: tuple[str, ...]) -> MassEvidence:
    strides = sum(len(np.unique(r.gait.stride[r.used])) for r in solver.rows)
    # the estimate is in a band of 5 Hz
    X, blocks = solver.filtered(5.0)
    if blocks.max(initial=0) < 3:
        time = sum(each.period * each.used.sum() for each in solver.rows)
        raise WalkError(
            f"the robot walks on its feet for {time:.0f} s: expected 10 s or more"
        )
    found = solver.solve(X, blocks)
    u, slopes = solver.unknowns, trunk_values(solver.unknowns, found.z[:-1])[1]
    std = np.sqrt(np.diag(slopes @ found.covariance[:-1, :-1] @ slopes.T))
    settings = {
        f"up to {band:g} Hz": solver.solve(*solver.filtered(band))
        for band in (10.0, 20.0)
    }
    settings["without torque biases"] = solver.solve(X, blocks, biases=False)
    model = np.array([other.z - found.z for other in settings.values()])
    problems, reasons = [], []
    for (name, _), off in zip(settings.items(), model[:, :-1] @ slopes.T, strict=True):
        if (np.abs(off) > std).any():
            kg, *mm = off * [1.0, 1e3, 1e3, 1e3]
            reasons.append(
                f"{name} mass and CoM change by {kg:+.2f} kg and "
                f"{' '.join(f'{v:+.1f}' for v in mm)} mm, more than their standard deviation: "
                "accelerations are noisy, or late against torques; standard deviations include it"
            )
    if strides < LEAST_STRIDES:
        problems.append(
            f"{strides} strides, expected {LEAST_STRIDES} or more: walk for 10 s or longer"
        )
    problems += _nuisances(solver, found)
    first = np.arange(len(found.information)) < len(found.information) / 2
    halves = _halves(solver, found, slopes, first, model)
    if halves > 3.0:
        problems.append(
            f"first and second half differ by {halves:.1f} standard deviations: a payload changed, "
            "or the gait did"
        )
    before, after, better = _held_out(solver, X, blocks)
    repeating, floor = _repeating(solver, found)
    weight = GRAVITY * u.model.mass
    most = 0.06  # of the weight, largest part of the vertical residual that repeats
    if repeating > max(most * weight, 2.0 * floor):
        problems.append(
            f"{repeating:.1f} N of the vertical force repeat in all strides and are not explained "
            f"(limit {most * weight:.1f} N): the model of drives or contacts is wrong. Record "
            "on hard ground, with the foot's radius and the drives in the configuration"
        )
    z, C = _scaled(solver, found, model, scale)
    return _judged(
        solver,
        z,
        C,
        strides,
        (halves, (before, after), better),
        scale,
        (*problems,),
        notes,
        tuple(reasons),
    )


def _judged(
    solver: BaseSolver,
    z: Array,
    C: Array,
    strides: int,
    fit: tuple[float, tuple[float, float], bool] | None,
    scale: Scale,
    problems: tuple[str, ...],
    notes: tuple[str, ...],
    reasons: tuple[str, ...] = (),
) -> MassEvidence:
    """The verdict; fit: halves, held-out residuals, and whether masses explain more."""
    u = solver.unknowns
    (values, slopes), (urdf, _) = trunk_values(u, z), trunk_values(u, u.mean)
    std = np.sqrt(np.diag(slopes @ C @ slopes.T))
    off = (values - urdf) / std
    used = 1 if fit is None else 4
    enough = 0.07, 0.010  # of the mass; m, of x and y
    useful = bool(
        std[0] < enough[0] * values[0] and (fit is None or (std[1:3] < enough[1]).all())
    )
    bounds = f"mass {values[0]:.2f} ± {std[0]:.2f} kg (URDF {urdf[0]:.2f})"
    if fit is not None:
        triples = zip(
            "xyz", 1e3 * values[1:], 1e3 * std[1:], 1e3 * urdf[1:], strict=True
        )
        each = (f"{a} {v:.1f} ± {s:.1f} (URDF {w:.1f})" for a, v, s, w in triples)
        bounds += f", CoM of the trunk {listing(each)} mm"
    sigmas = 2.0  # standard deviations
    within = bool((np.abs(off[:used]) < sigmas).all())
    differ = f"differs from the URDF by up to {np.abs(off[:used]).max():.1f} standard deviations"
    # scales show a mass that no motion shows
    weighed = scale.mass is not None and bool((np.abs(off[1:]) < sigmas).all())
    verdict = Verdict.NOT_GOOD
    if not problems and within and useful:
        verdict = Verdict.MASS if fit is None else Verdict.CONFIRMED
    elif not (problems or within) and fit is not None and (fit[2] or weighed):
        verdict = Verdict.CORRECTED
        reasons = (differ, *reasons)
    elif not problems and within:
        problems = (
            "standard deviations are too large: weigh the robot (--mass), or record longer and "
            "with an IMU",
        )
    elif not problems:
        problems = (
            f"{differ}, but "
            f"{'masses explain no more than friction does' if fit else 'no IMU shows why'}: weigh "
            "the robot, check torques' scale and record more different gaits",
        )
    return MassEvidence(
        verdict,
        u,
        z,
        C,
        float(values[0]),
        float(std[0]),
        None if fit is None else values[1:],
        None if fit is None else std[1:],
        strides,
        None if fit is None else fit[0],
        None if fit is None else (fit[1][0], fit[1][verdict is Verdict.CORRECTED]),
        (bounds, *problems, *reasons),
        notes,
    )


def _nuisances(solver: BaseSolver, found: BaseFit) -> list[str]:
    """Which frictions are far from usual."""
    u, off = (
        solver.unknowns,
        (found.z[:-1] - solver.unknowns.mean) / solver.unknowns.std,
    )
    names = np.array(u.model.joint_names)
    wrong = [
        f"{kind} of {name}"
        for kind in (*FRICTIONS, "torque_bias")
        for name in names[np.abs(off[u.joint_slice(kind)]) > 4.0]
    ]
    problem = "the drives do not behave as their model: {} are far from usual. Describe them in "
    return (
        [f"{problem.format(listing(wrong, 4))}the configuration (actuators)"]
        if wrong
        else []
    )


def _halves(
    solver: BaseSolver, found: BaseFit, slopes: Array, first: Flags, model: Array
) -> float:
    """Largest difference of two parts' values over its standard deviation, with the settings'."""
    u = solver.unknowns
    D = block_diag(u.jacobian(found.z[:-1]), 1.0)
    x, P = (
        np.append(u.coefficients(found.z[:-1]), found.z[-1]),
        np.linalg.inv(found.covariance),
    )
    total = D.T @ found.information.sum(axis=0) @ D
    estimates, covariances = [], []
    for part in (first, ~first):
        H = found.information[part].sum(axis=0)
        own = np.linalg.inv(P - total + D.T @ H @ D)
        rest = D.T @ found.information.sum(axis=0) @ x  # minus the prior's
        estimates.append(-own @ (D.T @ H @ x - rest))
        covariances.append(own @ (D.T @ H @ D) @ own)
    change = slopes @ (estimates[0] - estimates[1])[:-1]
    spread = 2.0 * model.T @ model / max(1, len(model))
    C = slopes @ (covariances[0] + covariances[1] + spread)[:-1, :-1] @ slopes.T
    return float((np.abs(change) / np.sqrt(np.diag(C))).max())


def _held_out(
    solver: BaseSolver, X: Array, blocks: Indices
) -> tuple[float, float, bool]:
    """Residual forces, N, with the URDF and friction, and identified; whether that is better."""
    folds = np.minimum(6 * blocks // (blocks.max() + 1), 5)
    residuals = np.zeros((2, 6, 2))
    for fold in range(6):
        held = folds == fold
        if not held.any() or held.all():
            continue
        for k, inertials in enumerate((False, True)):
            z = solver.solve(X[~held], blocks[~held], inertials=inertials).z
            x = np.append(solver.unknowns.coefficients(z[:-1]), z[-1])
            squares = ((X[held] @ x) ** 2).mean(axis=0)
            residuals[k, fold] = squares[:3].sum(), squares[3:].sum()
    force = np.sqrt(residuals[:, :, 0].mean(axis=1))
    ratio = np.sqrt(residuals[1] / np.maximum(residuals[0], 1e-12))
    # better: a residual smaller by 5 %, in five of six parts
    better = ((ratio < 0.95).any(axis=1)).sum() >= 5
    return float(force[0]), float(force[1]), bool(better)


def _repeating(solver: BaseSolver, found: BaseFit) -> tuple[float, float]:
    """Vertical residual that repeats in all strides, N rms, and the floor that scatter leaves.

    Where no strides are alike, all of it up to 5 Hz, which is more.
    """
    x = np.append(solver.unknowns.coefficients(found.z[:-1]), found.z[-1])
    means, floors = [], []
    for each in solver.rows:
        residual, used = each.X[:, 2] @ x, each.used & each.gait.steady
        bins = each.gait.chunk * 25 + np.floor(each.gait.phase * 25).astype(int)
        count = np.bincount(bins[used])
        good = count >= 3
        if not good.any():
            continue
        mean = np.bincount(bins[used], residual[used])[good] / count[good]
        square = np.bincount(bins[used], residual[used] ** 2)[good] / count[good]
        floor = np.maximum(square - mean**2, 0.0) / (count[good] - 1.0)
        means.append((mean**2 - floor).mean())
        floors.append(floor.mean())
    if not means:
        return float(np.sqrt(((solver.filtered(5.0)[0][:, 2] @ x) ** 2).mean())), 0.0
    return float(np.sqrt(max(0.0, np.mean(means)))), float(np.sqrt(np.mean(floors)))
