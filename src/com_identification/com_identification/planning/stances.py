"""Inverse kinematics: all soles flat on one horizontal ground, the CoM over a target."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from com_identification.exceptions import IdentificationError
from com_identification.regression.statics import Statics
from com_model import Foot, SupportPolygon
from com_model.arrays import Array, Flags, as_array
from com_model.geometry.support import sole_points

_ROUNDS = 25
_CLOSE = 1e-12  # rad and m
_STUCK = 0.99  # of the residual, left after the best step
_LONGEST = 0.4  # rad or m, of one step of a joint
_CUTOFF = 1e-10  # of the sum of the squared singular values


class FlatStance:
    """Brings the soles of some feet onto one ground, the first foot's sole plane.

    Newton's method with the shortest step. The residuals are, of each other foot, the two tilts of
    its z axis and its height, and the position of the CoM's projection where a target is given.

    With `kept` the soles keep their poses relative to each other of that posture: the residuals of
    each other foot are rotation and translation from there, three numbers each.

    Args:
        statics: Of the robot; the CoM is the URDF's.
        feet: Those that stand, with corners; the first one is the ground.
        kept: (n,) posture whose relative poses of the soles are kept; None: any.
        limits: Lowest and highest q (n,); the model's by default.

    Raises:
        IdentificationError: No foot, or one without corners.
    """

    def __init__(
        self,
        statics: Statics,
        feet: Sequence[Foot],
        kept: Array | None = None,
        limits: tuple[Array, Array] | None = None,
    ) -> None:
        points = [foot.frame for foot in feet if not len(foot.corners)]
        if not feet or points:
            named = f", but {', '.join(points)} has none" if points else ""
            raise IdentificationError(
                f"a flat stance needs one foot or more, each with corners{named}: give the corners "
                "in the robot's configuration; for balls and points choose postures by hand"
            )
        model = statics.model
        self.statics = statics
        self.feet = tuple(feet)
        self._links = [model.link_index(foot.frame) for foot in feet]
        self._low, self._high = limits or (model.lower, model.upper)
        self._kept: tuple[Array, Array] | None = None
        if kept is not None:
            turn, place = self._places(as_array("kept", kept, (model.n_joints,))[None])
            self._kept = turn[0], place[0]

    def solve(self, q: Array, target: Array | None = None) -> Array | None:
        """Changes a posture as little as necessary.

        Args:
            q: (n,) to start from.
            target: (2,) m, where the CoM is to project in the first sole's frame; None: anywhere.

        Returns:
            (n,) within the limits, or None where none was found.
        """
        Q, found = self.solve_all(q[None], None if target is None else target[None])
        return Q[0] if found[0] else None

    def solve_all(self, Q: Array, targets: Array | None = None) -> tuple[Array, Flags]:
        """Changes N postures as little as necessary, as solve().

        Args:
            Q: (N, n) to start from.
            targets: (N, 2) m, or None.

        Returns:
            (N, n) within the limits, and (N,) which of them stand.
        """
        Q = np.clip(Q, self._low, self._high)
        found = np.zeros(len(Q), dtype=np.bool_)
        left = np.arange(len(Q))
        for _ in range(_ROUNDS):
            value, slope = self.residuals(Q[left], None if targets is None else targets[left])
            done = np.abs(value).max(axis=1, initial=0.0) < _CLOSE
            found[left[done]] = self._upright(Q[left[done]])
            go = ~done & ~_stuck(value, slope)  # else no joint reduces the residual
            left = left[go]
            if not len(left):
                break
            Q[left] = self._step(Q[left], value[go], slope[go])
        return Q, found

    def _step(self, Q: Array, value: Array, slope: Array) -> Array:
        """A step of Newton's method; a joint at its limit that would leave it does not move."""
        free = np.ones(Q.shape, dtype=np.bool_)
        for _ in range(2):
            step = _shortest(slope * free[:, None], value)
            longest = np.abs(step).max(axis=1, initial=1e-12)
            step *= np.minimum(1.0, _LONGEST / longest)[:, None]
            free = (Q + step > self._low) & (Q + step < self._high)
        return np.clip(Q + step, self._low, self._high)

    def residuals(self, Q: Array, targets: Array | None = None) -> tuple[Array, Array]:
        """Computes the residuals and their derivatives by the joints.

        In the axes of the first sole, of which v and w are the columns of the Jacobian,
          R_i z: (w_i - w) x R_i z        p_i - p: v_i - v - w x (p_i - p)
          D = R_i R_kept^T: vee(D - D^T) / 2 has the derivative (tr D - D) (w_i - w) / 2

        Args:
            Q: (N, n) joint positions.
            targets: (N, 2), as in solve_all().

        Returns:
            (N, e) and (N, e, n), with f feet e = 3 (f - 1), or 6 (f - 1) where they keep their
            poses, and 2 more with a target.
        """
        poses = self.statics.poses(Q)
        R, p = self.statics.link_frames(poses, self._links)
        joints = self.statics.contact_maps(poses, self._links)[1]  # (N, f, n, 6), own axes
        v, w = joints[:, 0, :, :3], joints[:, 0, :, 3:]
        to_first = R[:, 0].transpose(0, 2, 1)
        values, slopes = [np.zeros((len(Q), 0))], [np.zeros((len(Q), 0, Q.shape[1]))]
        for i in range(1, len(self.feet)):
            turn, place = to_first @ R[:, i], _times(to_first, p[:, i] - p[:, 0])
            back = turn.transpose(0, 2, 1)
            spin = joints[:, i, :, 3:] @ back - w  # (N, n, 3)
            shift = joints[:, i, :, :3] @ back - v - np.cross(w, place[:, None])
            value, slope = self._foot(i - 1, turn, place, spin, shift)
            values.append(value)
            slopes.append(slope.transpose(0, 2, 1))
        if targets is not None:
            com, jacobian = self.statics.com_and_jacobian(poses, self.statics.parameters)
            place = _times(to_first, com - p[:, 0])
            slope = jacobian.transpose(0, 2, 1) @ R[:, 0] - v - np.cross(w, place[:, None])
            values.append(place[:, :2] - targets)
            slopes.append(slope[..., :2].transpose(0, 2, 1))
        return np.concatenate(values, axis=1), np.concatenate(slopes, axis=1)

    def _foot(
        self, other: int, turn: Array, place: Array, spin: Array, shift: Array
    ) -> tuple[Array, Array]:
        """Residuals of another foot (N, e), and their derivatives (N, n, e)."""
        if self._kept is None:
            tilt = np.cross(spin, turn[:, None, :, 2])
            value = np.concatenate((turn[:, :2, 2], place[:, 2:]), axis=1)
            return value, np.concatenate((tilt[..., :2], shift[..., 2:]), axis=2)
        D = turn @ self._kept[0][other].T
        skew = (D - D.transpose(0, 2, 1)) / 2.0
        angles = np.stack((skew[:, 2, 1], skew[:, 0, 2], skew[:, 1, 0]), axis=1)
        trace = np.trace(D, axis1=1, axis2=2)[:, None, None]
        turned = (trace * spin - spin @ D.transpose(0, 2, 1)) / 2.0
        value = np.concatenate((angles, place - self._kept[1][other]), axis=1)
        return value, np.concatenate((turned, shift), axis=2)

    def _places(self, Q: Array) -> tuple[Array, Array]:
        """Poses of the other soles in the first's: (N, f - 1, 3, 3) and (N, f - 1, 3) m."""
        R, p = self.statics.link_frames(self.statics.poses(Q), self._links)
        back = R[:, 0].transpose(0, 2, 1)
        return back[:, None] @ R[:, 1:], (p[:, 1:] - p[:, :1]) @ R[:, 0]

    def _upright(self, Q: Array) -> Flags:
        """Whether no sole is upside down or reversed, where the residuals vanish, too."""
        turn, _ = self._places(Q)
        if self._kept is None:
            return np.asarray((turn[..., 2, 2] > 0.0).all(axis=1))
        D = turn @ self._kept[0].transpose(0, 2, 1)
        return np.asarray((np.trace(D, axis1=2, axis2=3) > 1.0).all(axis=1))

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

    def up_directions(self, Q: Array) -> Array:
        """The directions against gravity (N, 3), root axes: the first sole's z."""
        R, _ = self.statics.link_frames(self.statics.poses(Q), self._links[:1])
        return np.asarray(R[:, 0, :, 2])

    def projections(self, Q: Array) -> Array:
        """Where the URDF's CoM projects in the first sole's frame, x and y (N, 2) m."""
        poses = self.statics.poses(Q)
        R, p = self.statics.link_frames(poses, self._links[:1])
        theta = self.statics.parameters
        com = self.statics.first_moment(poses) @ theta / (self.statics.mass() @ theta)
        return _times(R[:, 0].transpose(0, 2, 1), com - p[:, 0])[:, :2]

    def middles(self, Q: Array) -> Array:
        """Means of the soles' corners in the first sole's frame, x and y (N, 2) m."""
        turn, place = self._places(Q)
        centers = [self.feet[0].corners.mean(axis=0) + np.zeros((len(Q), 2))]
        for i, foot in enumerate(self.feet[1:]):
            center = np.append(foot.corners.mean(axis=0), 0.0)
            centers.append((place[:, i] + turn[:, i] @ center)[:, :2])
        return np.asarray(np.mean(centers, axis=0))

    def middle(self, q: Array) -> Array:
        """Mean of the soles' corners in the first sole's frame, x and y (2,) m."""
        return np.asarray(self.middles(q[None])[0])

    def room(self, margin: float) -> Array:
        """How far the CoM may be aimed off the middle (2,) m: half a sole, less a margin."""
        return np.maximum(np.ptp(self.feet[0].corners, axis=0) / 2.0 - margin, 0.0)


def _times(R: Array, v: Array) -> Array:
    """(N, 3, 3) times (N, 3)."""
    return np.asarray((R @ v[..., None])[..., 0])


def _shortest(slope: Array, value: Array) -> Array:
    """The shortest steps (N, n) that would take values (N, e) away.

    -J^T (J J^T + small)^-1 v, with what keeps combinations that no joint changes out of it.
    """
    squares = slope @ slope.transpose(0, 2, 1)
    size = np.trace(squares, axis1=1, axis2=2)[:, None, None]
    squares = squares + (_CUTOFF * size + 1e-300) * np.eye(slope.shape[1])
    return -_times(slope.transpose(0, 2, 1), np.linalg.solve(squares, value[..., None])[..., 0])


def _stuck(value: Array, slope: Array) -> Flags:
    """Whether the best step leaves about all of the values, (N,)."""
    after = value + _times(slope, _shortest(slope, value))
    return np.asarray(np.linalg.norm(after, axis=1) > _STUCK * np.linalg.norm(value, axis=1))
