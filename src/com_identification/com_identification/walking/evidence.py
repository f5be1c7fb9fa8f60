"""Mass and CoM of a trunk by the equations of the base in a low band: what a real log can show.

  sum_f W_f (h_f - tau_f + phi_f p) = Y_base pi     W_f phi_f p: rotors, friction, load friction

Errors of accelerations against torques attenuate the dynamic columns, and torque biases absorb the
weight that is lost; no resampling of the log shows it. So the equations are filtered to 5 Hz. What
the estimate moves in bands of 10 and 20 Hz, beyond its standard deviation, counts as uncertain; of
the mass only what may be left at 5 Hz, as attenuation grows with the band or faster. A common gain
of the torques is part of the covariance only; those of legs against each other are estimated. Of a
log without IMU whole strides are averaged, in which the trunk does not accelerate: their vertical
forces are the weight.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from scipy.stats import chi2

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
from com_model.arrays import Array, Indices
from com_model.dynamics import GRAVITY
from com_model.text import Facts, Shown, listing

LEAST_STRIDES = 15


class Verdict(Enum):
    """What a recording of a walk says about the URDF."""

    CONFIRMED = "URDF confirmed"
    CORRECTED = "corrected"
    MASS = "mass confirmed, no CoM"
    NOT_GOOD = "not good enough"


@dataclass(frozen=True, eq=False, repr=False)
class MassEvidence(Shown):
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

    def facts(self) -> Facts:
        """Verdict and mass; reasons and notes."""
        line = f"{self.verdict.value}: {self.mass:.4g} ± {self.mass_std:.2g} kg"
        return Facts(
            line, ("reasons",), [(text,) for text in self.reasons + self.notes]
        )

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


def _scaled(u: Unknowns, z: Array, C: Array, scale: Scale) -> tuple[Array, Array]:
    """Z and its covariance with what the common gain and the weighed mass add to it.

    Args:
        u: the unknowns.
        z: (Z,) the estimate.
        C: (Z, Z) its covariance.
        scale: the weighed mass.
    """
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
    x, _ = solver.coefficients(solver.mean)
    # half a percent of the weight at least
    least = 0.005 * GRAVITY * solver.unknowns.model.mass
    scatter = np.hypot((X[:, 2] @ x).std() / np.sqrt(strides), least)
    found = solver.solve(
        X.mean(axis=0)[None], np.zeros(1, dtype=np.int64), size=np.full(6, scatter)
    )
    Z = len(solver.unknowns.mean)
    z, C = _scaled(solver.unknowns, found.y[:Z], found.covariance[:Z, :Z], scale)
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
    found, u = solver.solve(X, blocks), solver.unknowns
    Z = len(u.mean)
    z, own = found.y[:Z], found.covariance[:Z, :Z]
    _, slopes = trunk_values(u, z)
    bias = u.joint_slice("torque_bias")
    K = own[:, bias] @ np.linalg.inv(own[bias, bias])
    # without biases the estimate moves by -K b, where they are b
    usual = K @ (np.diag(u.std[bias] ** 2) - own[bias, bias]) @ K.T
    # of each: how far the estimate moves, what is usual, and which parts of that count
    settings = {}
    for band in (10.0, 20.0):
        step = solver.solve(*solver.filtered(band)).y[:Z] - z
        # that of a mass grows with the band or faster; the mean square of the two bands counts
        left = np.array([1.0 / (band / 5.0 - 1.0), 1.0, 1.0, 1.0]) / np.sqrt(2.0)
        settings[f"up to {band:g} Hz"] = step, own, left
    # two standard deviations of what it moves by usual biases
    settings["without torque biases"] = -K @ z[bias], 4.0 * usual, np.ones(4)
    problems, reasons, model = [], [], np.zeros((Z, Z))
    for name, (step, expected, left) in settings.items():
        off, std = slopes @ step, np.sqrt(np.diag(slopes @ expected @ slopes.T))
        excess = np.sqrt(
            np.maximum(0.0, 1.0 - (std / np.maximum(np.abs(off), 1e-12)) ** 2)
        )
        if excess.any():
            kg, *mm = off * [1.0, 1e3, 1e3, 1e3]
            reasons.append(
                f"{name} mass and CoM change by {kg:+.2f} kg and "
                f"{' '.join(f'{v:+.1f}' for v in mm)} mm, more than their standard deviation: "
                "accelerations are noisy, or late against torques; standard deviations include it"
            )
        across = slopes @ own @ slopes.T
        change = own @ slopes.T @ np.linalg.solve(across, left * excess * off)
        model += np.outer(change, change)
    if strides < LEAST_STRIDES:
        problems.append(
            f"{strides} strides, expected {LEAST_STRIDES} or more: walk for 10 s or longer"
        )
    problems += _nuisances(u, z)
    halves = _halves(solver, X, blocks, slopes, model)
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
    z, C = _scaled(u, z, own + model, scale)
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


def against_urdf(u: Unknowns, z: Array, C: Array) -> tuple[Array, Array, Array, bool]:
    """Compares mass and CoM of the trunk with those of the URDF.

    Args:
        u: the unknowns.
        z: (Z,) the estimate.
        C: (Z, Z) its covariance.

    Returns:
        The values (4,) kg and m, their covariance (4, 4), by how many standard deviations (4,)
        they are off, and whether all of that together is more than 19 of 20 robots have that are
        as their URDF (of one in six, one of the four is off by two).
    """
    (values, slopes), (urdf, _) = trunk_values(u, z), trunk_values(u, u.mean)
    spread, off = slopes @ C @ slopes.T, values - urdf
    squares = float(off @ np.linalg.solve(spread, off))
    differs = squares > float(chi2.ppf(0.95, len(off)))
    return values, spread, off / np.sqrt(np.diag(spread)), differs


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
    values, spread, off, differs = against_urdf(u, z, C)
    urdf, std = trunk_values(u, u.mean)[0], np.sqrt(np.diag(spread))
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
    within = bool((np.abs(off[:used]) < sigmas).all()) and not (fit and differs)
    differ = f"differs from the URDF by up to {np.abs(off[:used]).max():.1f} standard deviations"
    # scales show a mass that no motion shows
    weighed = scale.mass is not None and bool((np.abs(off[1:]) < sigmas).all())
    verdict = Verdict.NOT_GOOD
    if not problems and within and useful:
        verdict = Verdict.MASS if fit is None else Verdict.CONFIRMED
    elif not problems and differs and fit is not None and (fit[2] or weighed):
        verdict = Verdict.CORRECTED
        reasons = (differ, *reasons)
    elif not problems and within:
        problems = (
            "standard deviations are too large: weigh the robot (--mass), or record longer and "
            "with an IMU",
        )
    elif not problems:
        why = "no IMU shows why"
        if fit is not None:
            why = "masses explain no more than friction does"
        if fit is not None and not differs:
            why = "no farther than robots often are that are as their URDF"
        problems = (
            f"{differ}, but {why}: weigh the robot, check torques' scale and record more "
            "different gaits",
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


def _nuisances(u: Unknowns, z: Array) -> list[str]:
    """Which frictions are far from usual."""
    off = (z - u.mean) / u.std
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
    solver: BaseSolver, X: Array, blocks: Indices, slopes: Array, model: Array
) -> float:
    """Largest difference of two halves' values over the standard deviation that each would have.

    Errors that both have in common (friction, gains) are in these standard deviations, so that
    values that agree do so by what is reported of them.
    """
    Z, first = len(model), 2 * blocks <= blocks.max()
    fits = [
        solver.solve(X[part], blocks[part] - blocks[part].min())
        for part in (first, ~first)
    ]
    C = 2.0 * model + sum(found.covariance[:Z, :Z] for found in fits)
    change = np.abs(slopes @ (fits[0].y - fits[1].y)[:Z])
    return float((change / np.sqrt(np.diag(slopes @ C @ slopes.T))).max())


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
            y = solver.solve(X[~held], blocks[~held], inertials=inertials).y
            x, _ = solver.coefficients(y)
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
    x, _ = solver.coefficients(found.y)
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
