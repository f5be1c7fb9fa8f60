"""Linear inverted pendulum: the CoM's path for a path of the zero moment point, exactly.

At constant height over its feet the CoM obeys, with w^2 = g / z_c ([CCGD] eqs 12, 13),

  x'' = w^2 (x - zmp)

Its unstable part, the divergent component of motion xi = x + x' / w, obeys xi' = w (xi - zmp), the
stable one x' = -w (x - xi). Over a stretch of time in which the ZMP is a line zmp = a + b t,

  xi(t) = a + b t + b / w + (xi_0 - a - b / w) e^(w t)
  x(t)  = a + b t + A e^(w t) + B e^(-w t),  A = (xi_0 - a - b / w) / 2,  B = x_0 - a - A

so that nothing is integrated. xi is found backwards from the end, where it is the last ZMP; that
way its errors shrink. The CoM starts at rest: x_0 = xi_0.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from com_control.exceptions import PlanError
from com_model.arrays import Array, FrozenArrays, as_array


@dataclass(frozen=True, eq=False)
class PendulumPath(FrozenArrays):
    """Path of a linear inverted pendulum over a ZMP that goes along lines."""

    times: Array  # (K,) s, corners of the ZMP's path, rising
    zmp: Array  # (K, 2) m, the ZMP there
    frequency: float  # 1/s, w = sqrt(g / z_c)
    dcm: Array  # (K, 2) m, the DCM there
    com: Array  # (K, 2) m, the CoM there

    @classmethod
    def from_zmp(cls, times: ArrayLike, zmp: ArrayLike, frequency: float) -> "PendulumPath":
        """Finds the path that starts at rest and ends over the last ZMP.

        When the ZMP rests for T before it first moves, the CoM starts beside it by e^(-w T) of the
        way that lies ahead, 0.1 mm after a second and a half. So it ends, too.

        Args:
            times: (K,) s, rising; K >= 2.
            zmp: (K, 2) m.
            frequency: 1/s.

        Raises:
            PlanError: Times do not rise, or a number is not finite.
        """
        t = as_array("times", times, (None,))
        p = as_array("zmp", zmp, (len(t), 2))
        if not (len(t) >= 2 and np.isfinite(t).all() and (np.diff(t) > 0.0).all()):
            raise PlanError(f"the times of the ZMP's corners must rise, got {t}")
        if not (np.isfinite(p).all() and np.isfinite(frequency) and frequency > 0.0):
            raise PlanError("the ZMP's path or the pendulum's frequency is not a finite number")
        w, spans = float(frequency), np.diff(t)
        slopes = np.diff(p, axis=0) / spans[:, None]
        dcm, com = np.empty_like(p), np.empty_like(p)
        dcm[-1] = p[-1]
        for k in range(len(spans) - 1, -1, -1):
            rest = dcm[k + 1] - p[k + 1] - slopes[k] / w
            dcm[k] = p[k] + slopes[k] / w + rest * np.exp(-w * spans[k])
        com[0] = dcm[0]
        for k, span in enumerate(spans):
            fading = com[k] - p[k] - _growing(p[k], slopes[k], dcm[k], w)
            grown = _growing(p[k + 1], slopes[k], dcm[k + 1], w)
            com[k + 1] = p[k + 1] + grown + fading * np.exp(-w * span)
        return cls(t, p, w, dcm, com)

    def sample(self, t: ArrayLike) -> tuple[Array, Array, Array, Array]:
        """CoM, its velocity and acceleration, and the ZMP at times (N,) s; each (N, 2).

        Before the first corner and after the last one it rests.
        """
        now = np.clip(as_array("t", t, (None,)), self.times[0], self.times[-1])
        k = np.clip(np.searchsorted(self.times, now, side="right") - 1, 0, len(self.times) - 2)
        w, since = self.frequency, (now - self.times[k])[:, None]
        left = (self.times[k + 1] - now)[:, None]
        slopes = (np.diff(self.zmp, axis=0) / np.diff(self.times)[:, None])[k]
        zmp = self.zmp[k] + slopes * since
        before, after = (_growing(self.zmp[i], slopes, self.dcm[i], w) for i in (k, k + 1))
        fading = (self.com[k] - self.zmp[k] - before) * np.exp(-w * since)
        growing = after * np.exp(-w * left)  # seen from the stretch's end its error shrinks
        com = zmp + growing + fading
        velocity = slopes + w * (growing - fading)
        return com, velocity, w * w * (com - zmp), zmp


def _growing(zmp: Array, slope: Array, dcm: Array, w: float) -> Array:
    """The part of the CoM's path that grows, m: A e^(w t)."""
    return 0.5 * (dcm - zmp - slope / w)
