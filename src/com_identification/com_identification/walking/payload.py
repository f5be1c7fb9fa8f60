"""The common scale of masses and torques by a known payload: walks without it, and with it.

Both fits share all unknowns but the trunk's, and so the errors of gains and friction. With their
estimates z_i and information L_i, the prior N(m, S) a part of each, and P_i x = z_i of both,

  (sum_i P_i^T L_i P_i - S^-1) x = sum_i P_i^T L_i z_i - S^-1 m      S^-1 of what they share

The trunk's masses in x differ by D where the payload is P, by torques of a mean gain of 1 +- s:

  rho = (P / D)^w,   w = s^2 / (s^2 + var(D) / D^2 + var(P) / P^2),   times all masses and torques
"""

from dataclasses import replace

import numpy as np

from com_identification.walking.acceptance import URDF_MASS, AcceptanceTest
from com_identification.walking.identify import FIXED, WalkResult
from com_identification.walking.inertia import PARAMETERS
from com_model.arrays import Array

_OFF = 0.03  # of the payload


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
    more, known = max(shown, _OFF * payload), std / payload
    w = s**2 / (s**2 + (spread / more) ** 2 + known**2)
    rho, u = float((payload / more) ** w), unknowns.scale_direction(x[:size])
    T = np.eye(size, len(x)) - w / more * np.outer(u, d)
    C = T @ J @ T.T + np.outer(u, u) * (((1.0 - w) * s) ** 2 + (w * known) ** 2)
    # three standard deviations
    limit = _OFF * payload + 3.0 * float(np.hypot(spread, std))
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
