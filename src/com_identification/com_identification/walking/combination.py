"""The result of walks together with what else is known: a robust estimate, a payload, postures.

judge_walk(): the detailed estimate counts where the robust one of walking.evidence confirms it.

with_payload(): the common scale of masses and torques by walks without a known payload and with
it.

Both fits share all unknowns but the trunk's, and so the errors of gains and friction. With their
estimates z_i and information L_i, the prior N(m, S) a part of each, and P_i x = z_i of both,

  (sum_i P_i^T L_i P_i - S^-1) x = sum_i P_i^T L_i z_i - S^-1 m      S^-1 of what they share

The trunk's masses in x differ by D where the payload is P, by torques of a mean gain of 1 +- s:

  rho = (P / D)^w,   w = s^2 / (s^2 + var(D) / D^2 + var(P) / P^2),   times all masses and torques

fuse(): walking and resting postures on foot force sensors as one regression.

What both have in common are the masses and first moments t of the bodies. With the estimate z and
covariance C of the walk and t = T z to first order, N(t, T C T^T) is the prior of the postures'
regression, in place of the URDF's. Its posterior N(t', C_t) conditions the walk's:

  K = C T^T (T C T^T)^+,   z' = z + K (t' - t),   C' = C - K (T C T^T - C_t) K^T

This equals a regression on the rows of both together, as long as their other unknowns are
different ones. Encoder biases, IMU mounting and torque gains of both are treated as different.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from com_bags import WalkLog
from com_identification.exceptions import WalkError
from com_identification.regression.identify import identify
from com_identification.regression.postures import Posture
from com_identification.regression.priors import BOUND_AXES, BodyPriors, body_priors
from com_identification.regression.result import by_body
from com_identification.settings import IdentificationSettings
from com_identification.walking.delays import Delays, find_delays
from com_identification.walking.evidence import (
    MassEvidence,
    Verdict,
    against_urdf,
    assess_walk,
)
from com_identification.walking.fit import URDF_MASS, AcceptanceTest, LoadChangeError
from com_identification.walking.identify import FIXED, WalkResult, identify_walking
from com_identification.walking.kernels import BODY
from com_identification.walking.log import walking_parts
from com_identification.walking.unknowns import PARAMETERS, Scale
from com_model import Foot, RobotConfig, RobotModel
from com_model.arrays import Array


class Judgement(NamedTuple):
    """What recordings say of a robot; one of both is there.

    Attributes:
        result: of all masses; None where it does not count.
        evidence: of mass and trunk, with the numbers of the result where it counts; None where
            the robust estimate cannot be made (legs with too few joints).
    """

    result: WalkResult | None
    evidence: MassEvidence | None


def judge_walk(
    logs: Sequence[WalkLog],
    model: RobotModel,
    config: RobotConfig,
    scale: Scale | None = None,
) -> Judgement:
    """Identifies a robot from recordings, and judges its URDF.

    The detailed result (identify_walking) is the more accurate one, but accelerations that are
    late or noisy bias it unseen; it counts where mass and CoM of the trunk are those of
    assess_walk within 3 standard deviations.

    Args:
        logs: whole recordings, with or without IMU.
        model: as its URDF says.
        config: its feet, drives and the IMU's link.
        scale: the weighed mass.

    Raises:
        WalkError: the recordings cannot be used at all; says why and what would help.
    """
    result, cause, delays = None, None, Delays(0.0, 0.0)
    with suppress(WalkError):  # the estimates say better what is wrong
        delays = find_delays(logs, model, config)
        logs = [delays.aligned(log) for log in logs]
    if all(log.has_imu for log in logs):
        try:
            parts = [part for log in logs for part in walking_parts(log)]
            result = identify_walking(parts or logs, model, config, scale)
        except WalkError as error:
            cause = error
    try:
        evidence = assess_walk(logs, model, config, scale).noted(str(delays))
    except WalkError as error:
        if result is None:
            raise cause or error from None
        return Judgement(result, None)
    # the halves of the recordings agree, within 3 standard deviations
    if isinstance(cause, LoadChangeError) and (evidence.halves or 0.0) < 3.0:
        cause = WalkError(
            "parts of the recordings differ in them, though not in mass and CoM of the trunk by "
            "the estimate of 5 Hz: friction of the drives is not that of their model"
        )
    if result is None or not result.accepted:
        return Judgement(None, evidence.noted(_why(result, cause)))
    own, variance, _, _ = against_urdf(
        evidence.unknowns, evidence.z, evidence.covariance
    )
    values, spread, _, differs = against_urdf(
        result.unknowns, result.z, result.covariance
    )
    off = float((np.abs(values - own) / np.sqrt(np.diag(spread + variance))).max())
    # more than 3 standard deviations apart: the estimates disagree
    if off > 3.0:
        return Judgement(
            None,
            evidence.noted(
                f"the estimate of all masses differs from that of 5 Hz by {off:.1f} standard "
                "deviations: accelerations are noisy or late against torques, and it does not count"
            ),
        )
    std = np.sqrt(np.diag(spread))
    judged = replace(
        evidence,
        verdict=Verdict.CORRECTED if differs else Verdict.CONFIRMED,
        unknowns=result.unknowns,
        z=result.z,
        covariance=result.covariance,
        mass=float(values[0]),
        mass_std=float(std[0]),
        com=values[1:],
        com_std=std[1:],
        reasons=("all masses were found, and agree with the robust estimate",),
    )
    return Judgement(result, judged)


def _why(result: WalkResult | None, cause: WalkError | None) -> str:
    """Why there is no result of all masses; "" where none was tried."""
    if result is not None:
        failed = [g for g in result.gates if g.required and not g.passed]
        texts = "; ".join(f"{gate.name}: {gate.text}" for gate in failed)
        return f"all masses cannot be found. {texts}"
    return "" if cause is None else f"all masses cannot be found: {cause}"


def with_payload(
    empty: WalkResult, loaded: WalkResult, payload: float, std: float
) -> WalkResult:
    """Returns the result of walks without a payload and with it; both by a mean gain of 1.

    Args:
        empty: result of the walks without the payload.
        loaded: result of the walks with it.
        payload: kg.
        std: kg, of the payload.
    """
    unknowns, s, size = empty.unknowns, empty.rho_std, len(empty.z)
    x, J = _joined(empty, loaded)
    trunks, d = np.exp(2.0 * x[[0, size]]), np.zeros(len(x))
    d[[0, size]] = 2.0 * trunks * [-1.0, 1.0]
    shown, spread = trunks[1] - trunks[0], float(np.sqrt(d @ J @ d))
    # the test fails where it is not shown
    off = 0.03  # of the payload
    more, known = max(shown, off * payload), std / payload
    w = s**2 / (s**2 + (spread / more) ** 2 + known**2)
    rho, u = float((payload / more) ** w), unknowns.scale_direction(x[:size])
    T = np.eye(size, len(x)) - w / more * np.outer(u, d)
    C = T @ J @ T.T + np.outer(u, u) * (((1.0 - w) * s) ** 2 + (w * known) ** 2)
    # three standard deviations
    limit = off * payload + 3.0 * float(np.hypot(spread, std))
    gate = AcceptanceTest(
        "known payload",
        f"{payload:g} kg are {shown:.2f} ± {spread:.2f} kg by torques of a mean gain of 1, limit "
        f"± {limit:.2f} kg: beyond, torques have a wrong scale, or it is another payload",
        bool(abs(shown - payload) < limit),
    )
    failed = [
        replace(g, name=f"{g.name}, with payload") for g in loaded.gates if not g.passed
    ]
    return replace(
        empty,
        z=unknowns.scaled(x[:size], rho),
        covariance=(C + C.T) / 2.0,
        scale=replace(empty.scale, payload=payload),
        rho=rho,
        rho_std=float(s * np.sqrt(1.0 - w)),
        gates=tuple(
            g for g in (*empty.gates, *failed, gate) if not g.name.startswith(URDF_MASS)
        ),
        seconds=empty.seconds + loaded.seconds,
    )


def _joined(empty: WalkResult, loaded: WalkResult) -> tuple[Array, Array]:
    """Finds x (Z + 10,) of the module's docstring and its covariance, by a mean gain of 1."""
    size, trunk = len(empty.z), np.arange(PARAMETERS)
    mean, std = (
        np.append(v, v[trunk]) for v in (empty.unknowns.mean, empty.unknowns.std)
    )
    shared = np.isin(np.arange(len(mean)) % size, trunk, invert=True)
    A = np.diag(np.where(shared, -(std**-2.0), 0.0))
    b = A @ mean
    for walk, own in ((empty, trunk), (loaded, size + trunk)):
        columns = np.append(own, np.arange(PARAMETERS, size))
        information = np.linalg.inv(walk.fit.covariance)
        A[np.ix_(columns, columns)] += information
        b[columns] += information @ walk.z
    C = np.linalg.inv(A * np.outer(std, std)) * np.outer(std, std)
    prior = np.where(np.sqrt(np.diag(C)) < 2.0 * FIXED * std, std**2, 0.0)
    return C @ b, max(empty.inflation, loaded.inflation) * C + np.diag(prior)


def fuse(
    walk: WalkResult,
    feet: Sequence[Foot],
    postures: Sequence[Posture],
    settings: IdentificationSettings,
) -> WalkResult:
    """Combines the result of a walk with resting postures on foot force sensors.

    Args:
        walk: the result of the walk.
        feet: with force sensors.
        postures: resting ones.
        settings: for the postures.

    Raises:
        IdentificationError: the postures cannot be used.
    """
    count = walk.model.bodies.count
    shared = (BODY * np.arange(count)[:, None] + np.arange(4)).ravel()
    T, t = walk.unknowns.jacobian(walk.z)[shared], walk.theta[:, :4].ravel()
    prior, bounds = T @ walk.covariance @ T.T, body_priors(walk.model, settings)
    mass, com, mass_std, com_std = by_body(t, prior)
    com = np.nan_to_num(com)
    along = com @ BOUND_AXES.T
    low, high = np.minimum(bounds.com_low, along), np.maximum(bounds.com_high, along)
    priors = BodyPriors(mass, com, mass_std, np.nan_to_num(com_std), low, high, prior)
    found = identify(walk.model, feet, postures, settings, priors)
    C_t = found.covariance
    # directions with less than 1e-10 of the largest variance are known
    K = walk.covariance @ T.T @ np.linalg.pinv(prior, rcond=1e-10, hermitian=True)
    covariance = walk.covariance - K @ (prior - C_t) @ K.T
    scatter, limit = found.variance_factor, found.variance_limit
    gate = AcceptanceTest(
        "agreement of walk and postures",
        f"residuals of {len(postures)} postures vary {scatter:.2f} times as the walk and the "
        f"sensors' errors allow, limit {limit:.2f}. {found.cause or 'A load may have changed'}",
        bool(scatter < limit),
    )
    known = [posture for posture in postures if posture.constraints]
    note = f"a known CoM in {len(known)} postures ({known[-1].label})" if known else ""
    return replace(
        walk,
        notes=(*walk.notes, *([f"{note} is part of the estimate"] if known else [])),
        z=walk.z + K @ (found.parameters - t),
        covariance=(covariance + covariance.T) / 2.0,
        gates=(*walk.gates, gate),
        postures=len(postures) - len(known),
    )
