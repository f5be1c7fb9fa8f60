"""Inverse kinematics of standing: all soles on one horizontal ground, the CoM over a target."""

from collections.abc import Sequence

import numpy as np

from com_identification.exceptions import IdentificationError
from com_identification.regression.statics import Poses, Statics
from com_model import Foot, Sesc, SupportPolygon
from com_model.arrays import Array, Flags, as_array
from com_model.geometry.support import sole_points
from com_model.text import listing


class FlatStance:
    """Inverse kinematics that brings the soles of some feet onto the first foot's sole plane.

    Newton's method with the shortest step. The residuals are, of each other foot, the two tilts
    of its z axis and its height, and the position of the CoM's projection where a target is
    given.

    With `kept` the soles keep their poses relative to each other: the residuals of each other
    foot are rotation and translation from there, three numbers each.

    Point feet are balls of one size: the ground's z is the normal of the plane through the
    centers of the first three, on the CoM's side, x points from the first to the second. The
    residuals are the heights of the others; with `kept` also the places in the plane.

    The CoM is the URDF's.

    Args:
        statics: of the robot.
        feet: in contact: one or more with corners, or three or more point feet.
        kept: (n,) rad or m, a posture whose relative sole poses are kept; None: they may change.
        limits: (n,) and (n,) rad or m, of the joints; None: the model's.

    Raises:
        IdentificationError: there is no foot, fewer than three point feet, or feet of both
            kinds.
    """

    def __init__(
        self,
        statics: Statics,
        feet: Sequence[Foot],
        kept: Array | None = None,
        limits: tuple[Array, Array] | None = None,
    ) -> None:
        points = [foot.frame for foot in feet if not len(foot.corners)]
        self._balls = len(points) == len(feet) > 2
        if not feet or (points and not self._balls):
            named = f", got {listing(points)} without corners" if points else ""
            raise IdentificationError(
                "standing needs one foot or more, each with corners, or three point feet or more"
                f"{named}: give the corners in the robot's configuration, or more feet"
            )
        model = statics.model
        self.statics = statics
        self._sesc = Sesc(model)
        self.feet = tuple(feet)
        self._links = [model.link_index(foot.frame) for foot in feet]
        self._centers = np.array(
            [foot.center if self._balls else np.zeros(3) for foot in feet]
        )
        self._radius = (
            float(np.mean([foot.radius for foot in feet])) if self._balls else 0.0
        )
        self._low, self._high = limits or (model.lower, model.upper)
        self._kept: tuple[Array, Array] | None = None
        if kept is not None:
            turn, place = self._places(as_array("kept", kept, (model.n_joints,))[None])
            self._kept = turn[0], place[0]

    def solve_all(self, Q: Array, targets: Array | None = None) -> tuple[Array, Flags]:
        """Changes postures as little as necessary, within the limits, until the feet are flat.

        Args:
            Q: (N, n) rad or m, where the search begins.
            targets: (N, 2) m, projection of the CoM in the first sole's frame; None: anywhere.

        Returns:
            (N, n) postures, and (N,) whether each was found.
        """
        Q = np.clip(Q, self._low, self._high)
        found = np.zeros(len(Q), dtype=np.bool_)
        left = np.arange(len(Q))
        for _ in range(25):
            value, slope = self.residuals(
                Q[left], None if targets is None else targets[left]
            )
            # converged, rad and m
            done = np.abs(value).max(axis=1, initial=0.0) < 1e-12
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
            # rad or m, of one step of a joint
            step *= np.minimum(1.0, 0.4 / longest)[:, None]
            free = (Q + step > self._low) & (Q + step < self._high)
        return np.clip(Q + step, self._low, self._high)

    def residuals(self, Q: Array, targets: Array | None = None) -> tuple[Array, Array]:
        """Computes the residuals (N, e) and their derivatives by the joints (N, e, n).

        In the axes of the first sole, of which v and w are the columns of the Jacobian,
          R_i z: (w_i - w) x R_i z        p_i - p: v_i - v - w x (p_i - p)
          D = R_i R_kept^T: vee(D - D^T) / 2 has the derivative (tr D - D) (w_i - w) / 2
        With f feet e = 3 (f - 1), 6 (f - 1) where they keep their poses, and 2 more with a target.

        Args:
            Q: (N, n) rad or m.
            targets: (N, 2) m, of the CoM in the first sole's frame; None: anywhere.
        """
        poses = self.statics.poses(Q)
        R, p, ground = self._frames(poses)
        joints = self.statics.contact_maps(poses, self._links)[
            1
        ]  # (N, f, n, 6), own axes
        moves = joints[..., :3] + np.cross(joints[..., 3:], self._centers[:, None])
        to_first = ground.transpose(0, 2, 1)
        turns = to_first[:, None] @ R
        places = (p - p[:, :1]) @ ground
        v, w = moves[:, 0], joints[:, 0, :, 3:]
        if self._balls:
            rates = moves @ turns.transpose(0, 1, 3, 2)  # (N, f, n, 3), ground's axes
            v, w = rates[:, 0], _plane_rates(places, rates)
        values, slopes = [np.zeros((len(Q), 0))], [np.zeros((len(Q), 0, Q.shape[1]))]
        for i in range(1, len(self.feet)):
            turn, place = turns[:, i], places[:, i]
            back = turn.transpose(0, 2, 1)
            spin = joints[:, i, :, 3:] @ back - w  # (N, n, 3)
            shift = moves[:, i] @ back - v - np.cross(w, place[:, None])
            value, slope = self._foot(i - 1, turn, place, spin, shift)
            values.append(value)
            slopes.append(slope.transpose(0, 2, 1))
        if targets is not None:
            com, jacobian = self._sesc.com_and_jacobian_batch(Q)
            place = _times(to_first, com - p[:, 0])
            slope = (
                jacobian.transpose(0, 2, 1) @ ground - v - np.cross(w, place[:, None])
            )
            values.append(place[:, :2] - targets)
            slopes.append(slope[..., :2].transpose(0, 2, 1))
        return np.concatenate(values, axis=1), np.concatenate(slopes, axis=1)

    def _foot(
        self, other: int, turn: Array, place: Array, spin: Array, shift: Array
    ) -> tuple[Array, Array]:
        """Residuals of another foot (N, e), and their derivatives (N, n, e)."""
        if self._balls:  # the second is on x, the third in the plane
            own = slice(2 if self._kept is None else 0, min(other + 1, 3))
            value = place if self._kept is None else place - self._kept[1][other]
            return value[:, own], shift[..., own]
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

    def _frames(self, poses: Poses) -> tuple[Array, Array, Array]:
        """R (N, f, 3, 3), p (N, f, 3) m of soles or balls, and the ground's axes (N, 3, 3)."""
        R, p = self.statics.link_frames(poses, self._links)
        if not self._balls:
            return R, p, R[:, 0]
        p = p + (R @ self._centers[..., None])[..., 0]
        x = p[:, 1] - p[:, 0]
        normal = np.cross(x, p[:, 2] - p[:, 0])
        com = self.statics.com(poses, self.statics.parameters)
        normal *= np.copysign(1.0, np.einsum("ni,ni->n", normal, com - p[:, 0]))[
            :, None
        ]
        x, z = (
            a / np.maximum(np.linalg.norm(a, axis=1), 1e-12)[:, None]
            for a in (x, normal)
        )
        return R, p, np.stack((x, np.cross(z, x), z), axis=2)

    def _places(self, Q: Array) -> tuple[Array, Array]:
        """Poses of the other soles in the first's: (N, f - 1, 3, 3) and (N, f - 1, 3) m."""
        R, p, ground = self._frames(self.statics.poses(Q))
        return ground.transpose(0, 2, 1)[:, None] @ R[:, 1:], (
            p[:, 1:] - p[:, :1]
        ) @ ground

    def _upright(self, Q: Array) -> Flags:
        """Whether no sole is upside down or reversed, as the residuals vanish there too."""
        if self._balls:
            return np.ones(len(Q), dtype=np.bool_)
        turn, _ = self._places(Q)
        if self._kept is None:
            return np.asarray((turn[..., 2, 2] > 0.0).all(axis=1))
        D = turn @ self._kept[0].transpose(0, 2, 1)
        return np.asarray((np.trace(D, axis1=2, axis2=3) > 1.0).all(axis=1))

    def margin(self, q: Array) -> float:
        """Returns how far inside the support polygon the URDF's CoM is, m.

        Args:
            q: (n,) rad or m, with the feet on the ground; gravity is against the ground's z.
        """
        poses = self.statics.poses(q[None])
        R, p, ground = self._frames(poses)
        points = [
            sole_points(R[0, i], p[0, i], foot.corners)
            for i, foot in enumerate(self.feet)
        ]
        contacts = p[0] if self._balls else np.concatenate(points)
        polygon = SupportPolygon.from_points(contacts, ground[0, :, 2])
        return float(
            polygon.margin(self.statics.com(poses, self.statics.parameters)[0])
        )

    def up_directions(self, Q: Array) -> Array:
        """Returns the directions against gravity (N, 3), root axes: the ground's normal.

        Args:
            Q: (N, n) rad or m.
        """
        return np.asarray(self._frames(self.statics.poses(Q))[2][:, :, 2])

    def levels(self, Q: Array) -> Array:
        """Returns the heights (N,) m of the ground along these directions, from the root.

        Args:
            Q: (N, n) rad or m.
        """
        _, p, ground = self._frames(self.statics.poses(Q))
        return np.asarray(
            np.einsum("ni,ni->n", p[:, 0], ground[:, :, 2]) - self._radius
        )

    def projections(self, Q: Array) -> Array:
        """Returns the projections of the URDF's CoM in the first sole's frame, x and y (N, 2) m.

        Args:
            Q: (N, n) rad or m.
        """
        poses = self.statics.poses(Q)
        _, p, ground = self._frames(poses)
        com = self.statics.com(poses, self.statics.parameters)
        return _times(ground.transpose(0, 2, 1), com - p[:, 0])[:, :2]

    def middles(self, Q: Array) -> Array:
        """Returns the means of the soles' corners in the first sole's frame, x and y (N, 2) m.

        Args:
            Q: (N, n) rad or m.
        """
        turn, place = self._places(Q)
        if self._balls:
            return np.asarray(place[..., :2].sum(axis=1) / len(self.feet))
        centers = [self.feet[0].corners.mean(axis=0) + np.zeros((len(Q), 2))]
        for i, foot in enumerate(self.feet[1:]):
            center = np.append(foot.corners.mean(axis=0), 0.0)
            centers.append((place[:, i] + turn[:, i] @ center)[:, :2])
        return np.asarray(np.mean(centers, axis=0))

    def room(self, margin: float, q: Array) -> Array:
        """Returns how far from the middle the CoM may be placed, (2,) m.

        Half a sole less the margin; of point feet a quarter of their distances.

        Args:
            margin: m, of the CoM inside the sole.
            q: (n,) rad or m, the posture whose distances count.
        """
        if self._balls:
            return np.asarray(
                np.abs(self._places(q[None])[1][0, :, :2]).max(axis=0) / 4.0
            )
        return np.maximum(np.ptp(self.feet[0].corners, axis=0) / 2.0 - margin, 0.0)


def _plane_rates(places: Array, rates: Array) -> Array:
    """Rotation rates (N, n, 3) of the plane through three points.

    Its x axis points from the first to the second. With a and b from the first point to the
    others and n = a x b, all in the plane's axes: -n'_y / |n|, n'_x / |n| and a'_y / |a|. Of
    points (N, f, 3) m and their derivatives (N, f, n, 3).
    """
    a, b = places[:, 1, None], places[:, 2, None]
    da, db = rates[:, 1] - rates[:, 0], rates[:, 2] - rates[:, 0]
    normal = np.cross(da, b) + np.cross(a, db)
    size = np.cross(a, b)[..., 2]
    return np.stack(
        (-normal[..., 1] / size, normal[..., 0] / size, da[..., 1] / a[..., 0]), axis=2
    )


def _times(R: Array, v: Array) -> Array:
    """(N, 3, 3) times (N, 3)."""
    return np.asarray((R @ v[..., None])[..., 0])


def _shortest(slope: Array, value: Array) -> Array:
    """The shortest steps (N, n) that would bring values (N, e) to zero.

    -J^T (J J^T + small)^-1 v; the small term excludes combinations that no joint changes.
    """
    squares = slope @ slope.transpose(0, 2, 1)
    size = np.trace(squares, axis1=1, axis2=2)[:, None, None]
    # damped by 1e-10 of the sum of the squared singular values
    squares = squares + (1e-10 * size + 1e-300) * np.eye(slope.shape[1])
    return -_times(
        slope.transpose(0, 2, 1), np.linalg.solve(squares, value[..., None])[..., 0]
    )


def _stuck(value: Array, slope: Array) -> Flags:
    """Whether the best step leaves about all of the values, (N,)."""
    after = value + _times(slope, _shortest(slope, value))
    # the best step leaves 99 % of the residual
    return np.asarray(
        np.linalg.norm(after, axis=1) > 0.99 * np.linalg.norm(value, axis=1)
    )
