"""Which feet carry the robot, are flat on the floor or in the air, by the readings of a posture."""

from collections.abc import Sequence

import numpy as np

from com_identification.regression.postures import Posture
from com_identification.regression.sensor_errors import SensorErrors
from com_identification.regression.statics import Statics
from com_model import Foot
from com_model.arrays import Array, Flags

_LOADED = 0.1  # of the forces' sum: a foot with more is in contact
_HANGING = 0.3  # of the weight: with less, no foot carries the robot
_CLEAR = 0.25  # of half a sole: a foot that is higher is in the air
_SLOPES = 5.0  # prior standard deviations: a floor that the IMU says to lean more is no floor


class Contacts:
    """The contacts of a robot's feet, f of them."""

    def __init__(self, statics: Statics, feet: Sequence[Foot], errors: SensorErrors) -> None:
        self._statics, self._feet, self._errors = statics, tuple(feet), errors
        self._priors = errors.priors
        self._soles = [statics.model.link_index(foot.frame) for foot in feet]
        self._corners = np.array([len(foot.corners) > 0 for foot in feet], dtype=np.bool_)

    def loaded(self, wrenches: Array) -> Flags:
        """Which feet stand: those with more than a tenth of all force of wrenches (f, 6), (f,)."""
        if not len(wrenches):
            return np.zeros(len(self._feet), dtype=np.bool_)
        force = np.linalg.norm(np.nan_to_num(wrenches[:, :3]), axis=1)
        return np.asarray(force > _LOADED * max(float(force.sum()), 1e-9))

    def flat(self, posture: Posture) -> Flags:
        """Which feet stand with a flat sole, (f,)."""
        return self.loaded(posture.wrenches) & self._corners

    def on_floor(self, posture: Posture) -> bool:
        """Whether the loaded soles are on the floor: the IMU's direction is within its slope."""
        flat = self.flat(posture)
        if not flat.any() or not np.isfinite(posture.up).all():
            return bool(flat.any())
        poses = self._statics.poses(posture.q[None])
        R, _ = self._statics.link_frames(poses, [self._soles[i] for i in np.flatnonzero(flat)])
        normal = R[0, :, :, 2].sum(axis=0)
        sine = np.linalg.norm(np.cross(normal, posture.up)) / np.linalg.norm(normal)
        return bool(self._priors.slope > 0.0 and sine < _SLOPES * self._priors.slope)

    def carries(self, posture: Posture) -> bool:
        """Whether the feet carry the robot; else it hangs, and their sensors read their zeros."""
        force = np.nan_to_num(posture.wrenches)[:, :3].sum(axis=0)
        return bool(np.linalg.norm(force) > _HANGING * self._errors.weight)

    def in_air(self, posture: Posture) -> Flags:
        """Which feet are in the air for sure, (f,)."""
        f = len(self._feet)
        if not len(posture.wrenches) or not self._priors.force_bias:
            return np.zeros(f, dtype=np.bool_)
        known = np.isfinite(posture.wrenches).all(axis=1)
        if not self.carries(posture):
            return np.asarray(known)
        flat, loaded = self.flat(posture), self.loaded(posture.wrenches)
        if not flat.any():
            return np.zeros(f, dtype=np.bool_)
        poses = self._statics.poses(posture.q[None])
        R, p = (array[0] for array in self._statics.link_frames(poses, self._soles))
        first = int(np.argmax(flat))
        lowest = np.full(f, np.inf)
        for i, foot in enumerate(self._feet):
            corners = foot.corners if len(foot.corners) else np.zeros((1, 2))
            points = p[i] + corners @ R[i, :, :2].T
            lowest[i] = ((points - p[first]) @ R[first, :, 2]).min()
        return np.asarray(known & ~loaded & (lowest > _CLEAR * self._errors.lever))
