"""Postures with all soles flat on one level ground and the centre of mass where it is wanted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from com_estimation.identification.exceptions import IdentificationError
from com_estimation.identification.regressors import Statics
from com_model import Foot, SupportPolygon
from com_model.arrays import Array
from com_model.support import sole_points

_ROUNDS = 25
_CLOSE = 1e-12  # rad and m
_STUCK = 0.99  # of what must vanish, left after the best step
_LONGEST = 0.4  # rad or m, of one step of a joint


class FlatStance:
    """Brings the soles of some feet onto one level ground, the first foot's sole plane.

    Newton's method with the shortest step, on what must vanish: of each other foot the two levels
    of its z axis and its height, and the place of the CoM's projection where one is asked for.

    Args:
        statics: Of the robot; the CoM is the URDF's.
        feet: Those that stand, with corners; the first one is the ground.

    Raises:
        IdentificationError: No foot, or one without corners.
    """

    def __init__(self, statics: Statics, feet: Sequence[Foot]) -> None:
        if not feet or not all(len(foot.corners) for foot in feet):
            raise IdentificationError("a flat stance needs one foot or more, each with corners")
        model = statics.model
        self.statics = statics
        self.feet = tuple(feet)
        self._links = [model.link_index(foot.frame) for foot in feet]
        self._low, self._high = model.lower, model.upper

    def solve(self, q: Array, target: Array | None = None) -> Array | None:
        """Changes a posture as little as it takes.

        Args:
            q: (n,) to start from.
            target: (2,) m, where the CoM is to project in the first sole's frame; None: anywhere.

        Returns:
            (n,) within the joint limits, or None where none was found.
        """
        q = np.clip(q, self._low, self._high)
        for _ in range(_ROUNDS):
            value, slope = self.errors(q, target)
            if np.abs(value).max(initial=0.0) < _CLOSE:
                return q if self._upright(q) else None
            full = np.linalg.lstsq(slope, -value, rcond=1e-8)[0]
            if np.linalg.norm(value + slope @ full) > _STUCK * np.linalg.norm(value):
                return None  # no joint changes what is left
            # A joint at its limit that would leave it does not move.
            free = np.ones(len(q), dtype=np.bool_)
            for _ in range(2):
                step = np.zeros(len(q))
                step[free] = -np.linalg.lstsq(slope[:, free], value, rcond=1e-8)[0]
                step *= min(1.0, _LONGEST / max(float(np.abs(step).max()), 1e-12))
                free = (q + step > self._low) & (q + step < self._high)
            q = np.clip(q + step, self._low, self._high)
        return None

    def errors(self, q: Array, target: Array | None = None) -> tuple[Array, Array]:
        """Computes what must vanish and its derivatives by the joints.

        In the axes of the first sole, of which v and w are the columns of the Jacobian,
          R_i z: (w_i - w) x R_i z        p_i - p: v_i - v - w x (p_i - p)

        Args:
            q: (n,) joint positions.
            target: As in solve().

        Returns:
            (e,) and (e, n), e = 3 (f - 1), and 2 more with a target.
        """
        poses = self.statics.poses(q[None])
        R, p = (array[0] for array in self.statics.link_frames(poses, self._links))
        joints = self.statics.contact_maps(poses, self._links)[1][0]  # (f, n, 6), own axes
        v, w = joints[0, :, :3], joints[0, :, 3:]
        values, slopes = [np.zeros(0)], [np.zeros((0, len(q)))]
        for i in range(1, len(self.feet)):
            turn, place = R[0].T @ R[i], R[0].T @ (p[i] - p[0])
            v_i, w_i = joints[i, :, :3] @ turn.T, joints[i, :, 3:] @ turn.T
            values += [turn[:2, 2], place[2:]]
            slopes += [np.cross(w_i - w, turn[:, 2]).T[:2], (v_i - v - np.cross(w, place)).T[2:]]
        if target is not None:
            com, jacobian = self.statics.com_and_jacobian(poses, self.statics.parameters)
            place = R[0].T @ (com[0] - p[0])
            values.append(place[:2] - target)
            slopes.append((jacobian[0].T @ R[0] - v - np.cross(w, place)).T[:2])
        return np.concatenate(values), np.vstack(slopes)

    def _upright(self, q: Array) -> bool:
        """Whether no sole is upside down: its levels vanish there too."""
        R, _ = self.statics.link_frames(self.statics.poses(q[None]), self._links)
        return bool((R[0, :, :, 2] @ R[0, 0][:, 2] > 0.0).all())

    def polygon(self, q: Array) -> SupportPolygon:
        """The support polygon in root axes; gravity is against the first sole's z."""
        R, p = self.statics.link_frames(self.statics.poses(q[None]), self._links)
        points = [sole_points(R[0, i], p[0, i], foot.corners) for i, foot in enumerate(self.feet)]
        return SupportPolygon.from_points(np.concatenate(points), R[0, 0][:, 2])

    def margin(self, q: Array) -> float:
        """How far inside the support polygon the URDF's CoM is, m."""
        poses = self.statics.poses(q[None])
        theta = self.statics.parameters
        com = self.statics.first_moment(poses)[0] @ theta / (self.statics.mass() @ theta)
        return float(self.polygon(q).margin(com))

    def middle(self, q: Array) -> Array:
        """Mean of the polygon's corners in the first sole's frame, x and y (2,) m."""
        R, p = self.statics.link_frames(self.statics.poses(q[None]), self._links[:1])
        return np.asarray((R[0, 0].T @ (self.polygon(q).vertices.mean(axis=0) - p[0, 0]))[:2])
