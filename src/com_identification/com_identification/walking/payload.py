"""The common scale of masses and torques by a known payload: walks without it, and with it.

Both fits have all unknowns but the ten of the trunk in common, and so the errors of gains and
friction. With their estimates z_i and information L_i = C_i^-1, of which the prior N(m, S) is a
part of each, x = (z_0, trunk of z_1) and P_i what picks z_i from x,

  (sum_i P_i^T L_i P_i - S^-1) x = sum_i P_i^T L_i z_i - S^-1 m      S^-1 of what they share

D = mass of the trunk of z_1 less that of z_0, by torques of mean gain 1, would be the payload P if
that gain were 1. It is 1 +- s only, so that all masses and torques are to be multiplied by

  rho = (P / D)^w,   w = s^2 / (s^2 + var(D) / D^2 + var(P) / P^2)
"""

from dataclasses import replace

import numpy as np

from com_identification.exceptions import WalkError
from com_identification.walking.acceptance import MASS_OF_URDF, Gate
from com_identification.walking.identify import WalkResult
from com_identification.walking.inertia import PARAMETERS
from com_model.arrays import Array

_OFF, _SURE = 0.03, 3.0  # of the payload; standard deviations


def with_payload(empty: WalkResult, loaded: WalkResult, payload: float, std: float) -> WalkResult:
    """The result of walks without a payload and with it, its scale set by the payload.

    Args:
        empty: Of walks without it, by a mean gain of 1.
        loaded: Of walks with it on the trunk, likewise.
        payload: kg; std: its standard deviation.

    Raises:
        WalkError: The walks do not show a payload.
    """
    unknowns, s, size = empty.unknowns, empty.rho_std, len(empty.z)
    x, J = _joined(empty, loaded)
    trunks, d = np.exp(2.0 * x[[0, size]]), np.zeros(len(x))
    d[[0, size]] = 2.0 * trunks * [-1.0, 1.0]
    more, spread = float(trunks[1] - trunks[0]), float(np.sqrt(d @ J @ d))
    if more < _SURE * spread:
        raise WalkError(
            f"by the torques the trunk is {more:+.2f} +- {spread:.2f} kg heavier in the recordings "
            f"of --loaded: expected a payload of {payload:g} kg. Give recordings with it, or a "
            "heavier one"
        )
    known, variance = std / payload, (spread / more) ** 2 + (std / payload) ** 2
    w = s**2 / (s**2 + variance)
    rho, u = float((payload / more) ** w), unknowns.scale_direction(x[:size])
    T = np.eye(size, len(x)) - w / more * np.outer(u, d)
    C = T @ J @ T.T + np.outer(u, u) * (((1.0 - w) * s) ** 2 + (w * known) ** 2)
    off, limit = more / payload - 1.0, _OFF + _SURE * float(np.sqrt(variance))
    gate = Gate(
        "known payload",
        f"{payload:g} kg are {more:.2f} +- {spread:.2f} kg by torques of a mean gain of 1, "
        f"{100.0 * off:+.1f} %, limit {100.0 * limit:.1f} %: above, torques have a wrong scale, or "
        "it is another payload",
        bool(abs(off) < limit),
    )
    failed = [replace(g, name=f"{g.name}, with payload") for g in loaded.gates if not g.passed]
    gates = [g for g in (*empty.gates, *failed) if not g.name.startswith(MASS_OF_URDF)]
    return replace(
        empty,
        z=unknowns.scaled(x[:size], rho),
        covariance=(C + C.T) / 2.0,
        scale=replace(empty.scale, payload=payload),
        rho=rho,
        rho_std=float(np.sqrt(s**2 * (1.0 - w))),
        gates=(*gates, gate),
        seconds=empty.seconds + loaded.seconds,
    )


def _joined(empty: WalkResult, loaded: WalkResult) -> tuple[Array, Array]:
    """Finds x (Z + 10,) of the module's text and its covariance, by a mean gain of 1."""
    size, trunk = len(empty.z), np.arange(PARAMETERS)
    shared = 1.0 / empty.unknowns.std**2
    shared[trunk] = 0.0
    A = np.diag(np.append(-shared, 0.0 * trunk))
    b = A @ np.append(empty.unknowns.mean, 0.0 * trunk)
    for walk, own in ((empty, trunk), (loaded, size + trunk)):
        columns = np.append(own, np.arange(PARAMETERS, size))
        information = np.linalg.inv(walk.fit.covariance)
        A[np.ix_(columns, columns)] += information
        b[columns] += information @ walk.z
    scaled = np.append(empty.unknowns.std, empty.unknowns.std[trunk])
    C = np.linalg.inv(A * np.outer(scaled, scaled)) * np.outer(scaled, scaled)
    x, inflation = C @ b, max(empty.inflation, loaded.inflation)
    unseen = np.append(
        np.where(empty.fixed & loaded.fixed, empty.unknowns.std**2, 0.0), 0.0 * trunk
    )
    return x, inflation * C + np.diag(unseen)
