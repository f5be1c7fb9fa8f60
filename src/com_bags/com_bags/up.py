"""Imu messages to directions against gravity in the axes of a robot's root link."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from com_bags.stream import Part
from com_model import RobotModel
from com_model.arrays import Array
from com_model.dynamics.kinematics import link_pose_batch

Times = NDArray[np.int64]
_UNIT = 1e-3  # how far the norm of a quaternion may be off 1


class UpStream:
    """Gives the direction against gravity by the IMU's orientation, or by its acceleration.

    Args:
        model: The robot.
        link: That carries the IMU.

    Attributes:
        without_orientation: Messages that say that they have no orientation, or whose quaternion
            is not of unit length; their acceleration is taken, which is right at rest.
    """

    def __init__(self, model: RobotModel, link: str) -> None:
        self._model, self._name = model, link
        self._link = model.link_index(link)
        self._before: tuple[Times, Array] = (np.zeros(0, np.int64), np.zeros((0, model.n_joints)))
        self.without_orientation = 0

    def read(self, part: Part, times: Times, Q: Array) -> tuple[Times, Array]:
        """Reads a block.

        Args:
            part: Of the IMU's topic.
            times: (M,) ns of the joint states of the same block.
            Q: (M, n) of those.

        Returns:
            (N,) ns, (N, 3) unit vectors in root axes; NaN where not known.
        """
        mask = part.readable
        stamps = part.times[mask]
        if not len(stamps):
            return stamps, np.zeros((0, 3))
        up = self._in_imu_axes(part)
        if self._model.bodies.body_of_link[self._link] == 0:
            return stamps, up @ self._model.bodies.R_body_link[self._link].T
        times, Q = (np.concatenate(pair) for pair in zip(self._before, (times, Q), strict=True))
        if not len(times):
            return stamps, np.full((len(stamps), 3), np.nan)
        self._before = times[-1:], Q[-1:]
        nearest = np.clip(np.searchsorted(times, stamps, side="right") - 1, 0, len(times) - 1)
        R_root_link, _ = link_pose_batch(self._model, Q[nearest], self._name)
        return stamps, (R_root_link @ up[:, :, None])[:, :, 0]

    def _in_imu_axes(self, part: Part) -> Array:
        """(N, 3): the third row of R_world_imu, of a quaternion x, y, z, w."""
        x, y, z, w = part.values("orientation").T
        up = np.column_stack((2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)))
        norm = np.sqrt(x * x + y * y + z * z + w * w)
        missing = part.values("orientation_covariance")[:, 0] == -1.0
        missing |= ~(np.abs(norm - 1.0) < _UNIT)
        self.without_orientation += int(np.count_nonzero(missing))
        up[missing] = part.values("linear_acceleration")[missing]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(up / np.linalg.norm(up, axis=1, keepdims=True))
