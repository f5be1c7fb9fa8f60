"""What the sensors of a standing robot would read, before anybody measures.

Where several feet stand, statics alone do not say how they share the weight: the wrenches are taken
that are smallest, moments over a lever counted like forces.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from com_identification.regression.postures import Posture, make_posture
from com_identification.regression.regressors import Poses, Statics
from com_model import Foot
from com_model.arrays import Array

_LEVER = 0.05  # m, about half a sole


class Prediction:
    """Wrenches and joint efforts of postures at rest.

    Args:
        statics: Of the robot.
        feet: All its feet, f of them.
        parameters: (4 B,) masses and first moments to believe in.
        gravity: m/s^2.
    """

    def __init__(
        self, statics: Statics, feet: Sequence[Foot], parameters: Array, gravity: float
    ) -> None:
        self.statics, self.feet = statics, tuple(feet)
        self._parameters, self._gravity = parameters, gravity
        self._links = [statics.model.link_index(foot.wrench_frame) for foot in feet]
        self._signs = np.array([float(foot.wrench_sign) for foot in feet])[:, None]

    def wrenches_and_efforts(
        self, poses: Poses, up: Array, stand: tuple[int, ...]
    ) -> tuple[Array, Array]:
        """Computes the ground's wrenches on the feet and what the actuators give.

        Of all wrenches W with sum of G_i W_i = w, the one with the least |S^-1 W|:
          W = S^2 G^T (G S^2 G^T)^-1 w,  S = diag(1 N, lever N m)

        Args:
            poses: N configurations.
            up: (N, 3) against gravity, root axes.
            stand: The feet that stand.

        Returns:
            (N, f, 6) in the axes of the sensors and about their origins; (N, n) N m or N.
        """
        a = self._gravity * up
        wrench, torque = self.statics.wrench_and_torques(poses, a, self._parameters)
        root, joints = self.statics.contact_maps(poses, self._links)
        scale = np.repeat([1.0, _LEVER], 3) ** 2
        maps = root[:, list(stand)]  # (N, s, 6, 6)
        weighted = scale[:, None] * maps.transpose(0, 1, 3, 2)
        shares = np.linalg.solve((maps @ weighted).sum(axis=1), wrench[..., None])
        wrenches = np.zeros((len(up), len(self.feet), 6))
        wrenches[:, list(stand)] = (weighted @ shares[:, None])[..., 0]
        return wrenches, torque - np.einsum("nfij,nfj->ni", joints, wrenches)

    def posture(
        self, q: Array, up: Array, stand: tuple[int, ...], efforts: bool, samples: int
    ) -> Posture:
        """Makes the readings of a posture, without noise.

        Args:
            q: (n,) joint positions.
            up: (3,) against gravity, root axes.
            stand: The feet that stand.
            efforts: Whether joint efforts are read.
            samples: Readings that are averaged.
        """
        poses = self.statics.poses(q[None])
        wrenches, effort = self.wrenches_and_efforts(poses, up[None], stand)
        return make_posture(
            self.statics.model,
            q,
            self._signs * wrenches[0],
            effort[0] if efforts else None,
            samples=samples,
        )
