"""The standing posture: feet flat and parallel, knees bent, the CoM over the support's middle.

Solved by bounded least squares over the joints of the legs, the trunk upright. In the robot's axes
(x forwards, y left, z upwards; see limbs), with the soles' middles s_i and up directions n_i, the
residuals are
  R_sole - 1 of each flat sole              feet flat, straight ahead
  z_i - mean z                              at one height
  x_i - x_hip_i - mean(x - x_hip), mean x - x_com, mean y - y_com
  (y_i - y_hip_i') weakly                   as wide as the legs hang, or as the soles need
  z_hip_i - z_i - DROP length_i, if < 0     below the hips, of legs that are stretched out at q = 0
  knee_i - bend, others weakly              the stated bend, the rest as little as possible
"""

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.optimize import least_squares

from com_model.arrays import Array
from com_model.dynamics.kinematics import body_poses
from com_model.model import RobotModel
from com_model.setup.parts import QUADRUPED, Leg, Limbs, Sole, Standing
from com_model.shapes.hulls import Hull, Hulls, Outside

BEND = {"humanoid": 0.7, "quadruped": 1.5, "other": 0.9}
"""rad, of the knees in the standing posture, by kind."""
MARGIN = 0.03  # of a joint's range, that a posture stays off its limits
DROP = 0.3  # of the leg's length, from the hip down to the sole at least
LEVEL, TILTED = 1e-3, 2e-2  # m; rad: what counts as solved


def find_posture(
    model: RobotModel, limbs: Limbs, soles: Sequence[Sole], outside: Outside
) -> tuple[Standing, list[tuple[str, str]]]:
    """Finds the standing posture; the arms are raised if needed.

    Args:
        model: The robot.
        limbs: Its limbs.
        soles: Of each leg.
        outside: Points of its shapes.

    Returns:
        The posture, and names of bodies that overlap in it, in pairs.
    """
    stance = _Stance(model, limbs, soles)
    first = stance.solve()
    if first.issues:
        # of margins, knees' bend and the CoM's weight, where limits let soles be level only so
        eased = _Stance(model, limbs, soles, 0.1)
        standing = eased.solve()
        if len(standing.issues) < len(first.issues):
            stance, first = eased, standing
    best = first
    found = fewest = overlapping_bodies(model, outside, limbs, best.R, best.p)
    arms = [j for name, j in limbs.groups.items() if "_arm" in name]
    touching = {name for pair in found for name in pair}
    bodies = model.bodies
    firsts = [bodies.joint_names.index(joints[0]) for joints in arms]
    hands = [b for b in firsts if touching & {*bodies.names[b : bodies.subtree_end[b]]}]
    # rad, of the arms, where they touch the body
    for angle in (0.1, 0.2, 0.35, 0.5) if hands else ():
        for joints in arms:
            stance.raise_arm(joints, angle, first)
        standing = stance.solve()
        found = overlapping_bodies(model, outside, limbs, standing.R, standing.p)
        if len(found) < len(fewest):
            best, fewest = standing, found
        if not found:
            break
    return best, fewest


def contact_points(R: Array, p: Array, leg: Leg, sole: Sole) -> Array:
    """Computes where a foot touches the ground.

    Args:
        R: (B, 3, 3) orientations of the bodies.
        p: (B, 3) m, their origins.
        leg: The leg.
        sole: Its sole.

    Returns:
        (k, 3) m.
    """
    flat = np.zeros((max(len(sole.corners), 1), 3))
    flat[:, :2] = sole.corners if sole.flat else 0.0
    body = leg.foot
    points = (flat @ sole.R_body.T + sole.p_body) @ R[body].T + p[body]
    return np.asarray(points - [0.0, 0.0, sole.radius])


def _middles(points: Sequence[Array]) -> Array:
    """Middles (legs, 3) of the boxes around the points of each foot."""
    return np.array([0.5 * (c.min(axis=0) + c.max(axis=0)) for c in points])


class _Knee(NamedTuple):
    """A knee.

    Attributes:
        joint: Index in q.
        bend: rad, from the straight leg, about the joint's axis.
        straight: rad, of the joint, at which the leg is straight. Some robots crouch at q = 0.
    """

    joint: int
    bend: float
    straight: float


def _turn(first: Array, second: Array, axis: Array) -> float:
    """Angle, rad, about an axis (3,) from one direction (3,) to another."""
    return float(
        np.arctan2(
            axis @ np.cross(first, second),
            first @ second - (first @ axis) * (second @ axis),
        )
    )


class _Stance:
    def __init__(
        self, model: RobotModel, limbs: Limbs, soles: Sequence[Sole], eased: float = 1.0
    ) -> None:
        self.model, self.limbs, self.soles, self.eased = model, limbs, soles, eased
        bodies = model.bodies
        self.up = limbs.R_root_robot.T
        self.lower, self.upper = _inner_limits(model, eased)
        self.rest = np.clip(np.zeros(model.n_joints), self.lower, self.upper)
        self.R0, self.p0 = body_poses(bodies, model.neutral, self.up)
        own = {int(bodies.q_index[b]) for leg in limbs.legs for b in leg.bodies}
        self.joints = np.array(sorted(own), dtype=np.int64)
        knees = [
            self._knee(leg, sole) for leg, sole in zip(limbs.legs, soles, strict=True)
        ]
        knees = self._same_way(knees)
        self.knees = np.array([knee.joint for knee in knees])
        self.straight = np.array([knee.straight for knee in knees])
        self.bends = self.straight + eased * np.array([knee.bend for knee in knees])
        self.start = self._start(knees)
        self.widths = self._lateral_places()
        self.drops = DROP * np.array([self._length(leg) for leg in limbs.legs])

    def solve(self) -> Standing:
        lower, upper = self.lower[self.joints], self.upper[self.joints]
        x0 = np.clip(self.start[self.joints], lower + 1e-9, upper - 1e-9)
        limits, fit = (lower, upper), self._residuals
        result = least_squares(fit, x0, bounds=limits, x_scale="jac", max_nfev=200)
        q = self._posture(result.x).round(4)
        R, p, com, points = self._state(q)
        ground = float(np.mean([c[:, 2].min() for c in points]))
        issues = self._check(q, R, points, com)
        bend = float(np.abs(q[self.knees] - self.straight).max())
        room = min(self._room(k, q) for k in range(len(self.knees)))
        return Standing(q, R, p, com, ground, bend, room, tuple(issues))

    def _room(self, number: int, q: Array) -> float:
        """By how much a leg may be lowered, m, until a limit of its pitch joints.

        Its bones are of one length l: bent by b it is l cos(b / 2) long, and as the knee bends
        further by d, hip and ankle turn back by d / 2.

        Args:
            number: Of the leg.
            q: (n,) rad, the posture.
        """
        leg, knee, model = self.limbs.legs[number], int(self.knees[number]), self.model
        bend, room = float(q[knee] - self.straight[number]), np.inf
        for b, rate in self._bending(leg, knee):
            j, way = int(model.bodies.q_index[b]), rate * np.copysign(1.0, bend)
            limit = model.upper[j] if way > 0.0 else model.lower[j]
            room = min(room, (limit - q[j]) / way) if way else room
        return float(0.5 * self._length(leg) * np.sin(0.5 * abs(bend)) * max(room, 0.0))

    def _bending(self, leg: Leg, knee: int) -> list[tuple[int, float]]:
        """Joints of a leg, as bodies, and how far they turn as its knee does by 1."""
        chain, bodies = self.pitch_joints(leg), self.model.bodies
        axes = np.einsum("bij,bj->bi", self.R0, bodies.axis)[:, 1]
        at = [b for b in chain if bodies.q_index[b] == knee]
        if not at:
            return []
        place = chain.index(at[0])
        beside = chain[max(place - 1, 0) : place] + chain[place + 1 : place + 2]
        turns = [-0.5 * float(np.sign(axes[b] * axes[at[0]])) for b in beside]
        return [(at[0], 1.0), *zip(beside, turns, strict=True)]

    def raise_arm(self, joints: Sequence[str], angle: float, first: Standing) -> None:
        """Turns the joint of a shoulder that is most about the forward axis, outwards.

        Args:
            joints: Names of the arm's joints, from the shoulder.
            angle: rad, by which it is raised.
            first: The posture with the arm down.
        """
        bodies = self.model.bodies
        chain = [bodies.joint_names.index(name) for name in joints[:3]]
        axes = np.array([(first.R[b] @ bodies.axis[b])[0] for b in chain])
        body = chain[int(np.argmax(np.abs(axes)))]
        index = int(bodies.q_index[body])
        left = first.p[body][1] > 0.0
        sign = np.sign((first.R[body] @ bodies.axis[body])[0]) * (1.0 if left else -1.0)
        raised = first.q[index] + sign * angle
        self.rest[index] = np.clip(raised, self.lower[index], self.upper[index])

    def _posture(self, x: Array) -> Array:
        q = self.rest.copy()
        q[self.joints] = x
        return q

    def _state(self, q: Array) -> tuple[Array, Array, Array, list[Array]]:
        bodies = self.model.bodies
        R, p = body_poses(bodies, q, self.up)
        com = (bodies.first_moment[:, None] @ R.transpose(0, 2, 1))[:, 0].sum(axis=0)
        com = (com + bodies.mass @ p) / bodies.mass.sum()
        pairs = zip(self.limbs.legs, self.soles, strict=True)
        return R, p, com, [contact_points(R, p, leg, sole) for leg, sole in pairs]

    def _residuals(self, x: Array) -> Array:
        q = self._posture(x)
        R, p, com, points = self._state(q)
        legs, soles = self.limbs.legs, self.soles
        middles = _middles(points)
        hips = np.array([p[leg.bodies[0]] for leg in legs])
        turns = [
            (R[leg.foot] @ sole.R_body)[[2, 2, 1], [0, 1, 0]]
            for leg, sole in zip(legs, soles, strict=True)
            if sole.flat
        ]
        ahead = middles[:, 0] - hips[:, 0]
        parts = [
            np.ravel(turns),
            10.0 * (middles[:, 2] - middles[:, 2].mean()),
            10.0 * (ahead - ahead.mean()),
            10.0 * self.eased * (middles[:, :2].mean(axis=0) - com[:2]),
            (1.0 if len(legs[0].bodies) != 5 else 0.1) * (middles[:, 1] - self.widths),
            10.0 * np.minimum(hips[:, 2] - middles[:, 2] - self.drops, 0.0),
            0.3 * (q[self.knees] - self.bends),
            1e-3 * (x - self.start[self.joints]),
        ]
        return np.concatenate(parts)

    def _lateral_places(self) -> Array:
        """Y (legs,) m of the soles' middles: as they hang, farther apart where soles need room."""
        pairs = zip(self.limbs.legs, self.soles, strict=True)
        points = [contact_points(self.R0, self.p0, leg, sole) for leg, sole in pairs]
        y = _middles(points)[:, 1]
        half = np.array([0.5 * np.ptp(c[:, 1]) for c in points])
        # of the leg's length, between the soles' inner edges at least
        least = (
            half + [sole.radius for sole in self.soles] + 0.5 * 0.02 * self.limbs.height
        )
        hips = np.array([self.p0[leg.bodies[0]][1] for leg in self.limbs.legs])
        signs = np.array(
            [1.0 if leg.side == "left" else -1.0 for leg in self.limbs.legs]
        )
        wide = np.abs(hips) if self.limbs.kind == QUADRUPED else np.zeros(len(hips))
        return np.asarray(signs * np.maximum(np.maximum(np.abs(y), wide), least))

    def _length(self, leg: Leg) -> float:
        """Length of a leg from joint to joint, m."""
        bones = np.diff(self.p0[list(leg.bodies)], axis=0)
        return float(np.linalg.norm(bones, axis=1).sum())

    def pitch_joints(self, leg: Leg) -> list[int]:
        """Bodies of a leg whose joints turn about the lateral axis."""
        axes = np.einsum("bij,bj->bi", self.R0, self.model.bodies.axis)
        names = self.model.bodies.joint_names
        # cosine between a pitch joint's axis and the lateral direction
        lateral = [b for b in leg.bodies if abs(axes[b, 1]) > 0.7]
        return [b for b in lateral if names[b] in self.model.joint_names]

    def _knee(self, leg: Leg, sole: Sole) -> _Knee:
        """The knee of a leg, and how far it bends.

        The knee is the pitch joint after the first that is farthest from the joints around it. It
        bends to where its limits leave more room; forwards where both sides are free, those of a
        quadruped's legs inwards.
        """
        bodies = self.model.bodies
        pitch = self.pitch_joints(leg) or list(leg.bodies)
        end = sole.p_body @ self.R0[leg.foot].T + self.p0[leg.foot]
        places = [*(self.p0[b] for b in pitch), end]
        spans = np.linalg.norm(np.diff(places, axis=0), axis=1)
        best = max(
            range(1, len(pitch)), key=lambda k: min(spans[k - 1], spans[k]), default=0
        )
        body = pitch[best]
        index = int(bodies.q_index[body])
        if best == 0:
            return _Knee(index, float(self.rest[index]), 0.0)
        turned = self.R0[body] @ bodies.axis[body]
        thigh, shank = places[best] - places[best - 1], places[best + 1] - places[best]
        straight = float(self.model.neutral[index]) - _turn(thigh, shank, turned)
        # rad, by which the bones of a leg that is straight at q = 0 may be off a line;
        # ANYmal's by 0.3
        if abs(straight) < 0.4:
            straight = 0.0
        lower = float(self.lower[index]) - straight
        upper = float(self.upper[index]) - straight
        axis = float(turned[1])
        # of the knee itself, forwards is 1
        inwards = -1.0 if leg.end == "front" else 1.0
        sign = inwards * float(np.sign(axis))
        bend, uneven = BEND[self.limbs.kind], abs(upper + lower) > 0.3 * (upper - lower)
        if uneven or min(upper, -lower) < 0.8 * bend:
            sign = 1.0 if upper > -lower else -1.0
        return _Knee(index, float(np.clip(sign * bend, lower, upper)), straight)

    def _same_way(self, knees: Sequence[_Knee]) -> list[_Knee]:
        """The same, with knees of a left and right leg bent equally: where both have more room."""
        agreed, bodies = list(knees), self.model.bodies
        axes = np.einsum("bij,bj->bi", self.R0, bodies.axis)[:, 1]
        for i, k in combinations(range(len(knees)), 2):
            pair = (knees[i], knees[k])
            index = np.array([knee.joint for knee in pair])
            turns = axes[[bodies.q_index.tolist().index(j) for j in index]]
            ways = np.sign(turns * [knee.bend for knee in pair])
            if (
                self.limbs.legs[i].end != self.limbs.legs[k].end
                or ways.sum()
                or not ways.all()
            ):
                continue
            limits = np.array([self.lower[index], self.upper[index]])
            limits -= [knee.straight for knee in pair]
            room = limits * turns
            way = 1.0 if room.max(axis=0).min() > -room.min(axis=0).max() else -1.0
            bends = np.clip(np.sign(turns) * way * BEND[self.limbs.kind], *limits)
            agreed[i], agreed[k] = (
                knee._replace(bend=float(bend))
                for knee, bend in zip(pair, bends, strict=True)
            )
        return agreed

    def _start(self, knees: Sequence[_Knee]) -> Array:
        """The knees bent, hips and ankles by half of it the other way."""
        q = self.rest.copy()
        for leg, (knee, bend, straight) in zip(self.limbs.legs, knees, strict=True):
            turned = bend + straight  # of the joint, as hips and ankles compensate it
            q[knee] = turned
            for b, rate in self._bending(leg, knee)[1:]:
                index = int(self.model.bodies.q_index[b])
                q[index] = np.clip(rate * turned, self.lower[index], self.upper[index])
        return q

    def _check(self, q: Array, R: Array, points: list[Array], com: Array) -> list[str]:
        issues = []
        heights = [c[:, 2].min() for c in points]
        if np.ptp(heights) > LEVEL:
            issues.append(
                f"the feet's heights differ by {1e3 * np.ptp(heights):.0f} mm"
            )
        for leg, sole in zip(self.limbs.legs, self.soles, strict=True):
            tilt = np.arccos(np.clip((R[leg.foot] @ sole.R_body)[2, 2], -1.0, 1.0))
            if sole.flat and tilt > TILTED:
                issues.append(
                    f"the sole of {leg.name} is tilted by {np.degrees(tilt):.1f} deg"
                )
        away = com[:2] - _middles(points)[:, :2].mean(axis=0)
        if np.abs(away).max() > 10.0 * LEVEL:
            x, y = 1e3 * away
            issues.append(
                f"the CoM is {x:+.0f} mm ahead and {y:+.0f} mm left of the feet's middle"
            )
        bends = q[self.knees] - self.straight
        if np.abs(bends).min() < BEND[self.limbs.kind] - 0.3:
            shown = np.degrees(bends).round().tolist()
            issues.append(f"the knees are at {shown} deg, as far as limits allow")
        return issues


def _inner_limits(model: RobotModel, eased: float) -> tuple[Array, Array]:
    """Limits (n,) with the margin that a posture keeps; without limits half a turn."""
    lower, upper = np.maximum(model.lower, -np.pi), np.minimum(model.upper, np.pi)
    lower, upper = np.minimum(lower, upper), np.maximum(lower, upper)
    # at most 0.1 rad or m
    inside = eased * np.minimum(MARGIN * (upper - lower), 0.1)
    lower, upper = lower + inside, upper - inside
    tight = upper - lower < 1e-6
    return np.where(tight, lower - 1e-6, lower), np.where(tight, upper + 1e-6, upper)


def overlapping_bodies(
    model: RobotModel, outside: Outside, limbs: Limbs, R: Array, p: Array
) -> list[tuple[str, str]]:
    """Finds bodies of different limbs, or of limb and trunk, whose hulls overlap.

    Bodies next to each other are left out.

    Args:
        model: The robot.
        outside: Points of its shapes.
        limbs: Its limbs.
        R: (B, 3, 3) orientations of the bodies.
        p: (B, 3) m, their origins.

    Returns:
        Names of the bodies, in pairs.
    """
    bodies = model.bodies
    limb_of = {
        joint: group.replace("hand", "arm")
        for group, joints in limbs.groups.items()
        for joint in joints
        if "_" in group
    }
    limb = [
        limb_of.get(model.joint_names[i] if i >= 0 else "", "") for i in bodies.q_index
    ]
    hulls = {b: points for b, points in enumerate(outside.points) if len(points) > 3}
    chains = {b: [b, *bodies.path_to(b)[-2::-1], 0] for b in hulls}
    pairs = [
        (i, j)
        for (i, a), (j, b) in combinations(enumerate(hulls), 2)
        if limb[a] != limb[b] and _joints_between(chains[a], chains[b]) > 3
    ]
    indices = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    solid = Hulls([Hull(b, points) for b, points in hulls.items()])
    found = indices[solid.overlap(indices, R[None], p[None], 0.0)[0]]
    names = [bodies.names[b] for b in hulls]
    return [(names[i], names[j]) for i, j in found]


def _joints_between(first: list[int], second: list[int]) -> int:
    """Joints on the way between two bodies, by their ways to the root."""
    common = next(body for body in first if body in second)
    return first.index(common) + second.index(common)
