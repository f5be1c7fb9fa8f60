"""A robot on two legs of six joints, or five: pelvis, legs, and the masses of its parts.

All vectors are given in the pelvis' frame with every joint of the legs at 0 ("zero pose"): the
joints then rotate the bodies after them about fixed lines, one after the other, from the foot
upwards.

Five joints cannot give a sole every orientation. Such a leg has a sixth "joint" without a servo:
the tilt of the sole against the ground, about its x, y or z axis, whichever makes the leg least
singular. It stays within MAX_FREE.

A walk is planned in a frame on the ground in the middle between the soles, x in the middle of
their directions, z along the soles' normals.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from com_control.exceptions import BipedError
from com_control.walking.leg_ik import LEG
from com_model import ConfigError, RobotModel
from com_model.arrays import Array, FrozenArrays, Indices
from com_model.bodies import REVOLUTE, Bodies
from com_model.dynamics.kinematics import TURNS, body_poses, free_axis, link_pose
from com_model.geometry.rotations import rotations_about
from com_model.robot_config import Foot, RobotConfig, WalkingSizes
from com_model.text import listing

JOINTS = 6  # moving joints of a leg
MAX_FREE = 0.2  # rad, tilt of a sole whose leg has five joints; H1's is 0.1 in a walk
LIMIT_TOLERANCE = 1e-9  # rad, over a limit, that is within it


@dataclass(frozen=True, eq=False)
class BipedLeg(FrozenArrays):
    """A leg, in the pelvis' frame at the zero pose; arrays are read-only.

    Attributes:
        side: "left" or "right".
        foot: of the configuration.
        joints: (6,) indices of its joints in q, from the hip to the foot; or (5,).
        joint_names: six; the last one of a leg of five joints names the free tilt.
        axes: (6, 3) unit axes.
        points: (6, 3) m, origins of the joints.
        R_sole: (3, 3) orientation of the sole frame.
        p_sole: (3,) m, its origin.
        lower: (6,) rad, limits.
        upper: (6,) rad.
        nominal: (6,) rad, nominal posture.
        masses: (6,) kg, of each body with all that is attached to it but the next.
        moments: (6, 3) kg m, their first moments about the pelvis' origin.
    """

    side: str
    foot: Foot
    joints: Indices
    joint_names: tuple[str, ...]
    axes: Array
    points: Array
    R_sole: Array
    p_sole: Array
    lower: Array
    upper: Array
    nominal: Array
    masses: Array
    moments: Array

    @property
    def free(self) -> str:
        """The tilt of the sole that no joint controls, in words; "" with six joints."""
        return self.joint_names[-1] if len(self.joints) < JOINTS else ""

    def limit_problem(self, q: Array) -> str:
        """Checks joint angles against the limits.

        Args:
            q: (6,) rad.

        Returns:
            The joint that is most beyond its limits, in words; "" when none is.
        """
        return limit_problem(self.joint_names, q, self.lower, self.upper)


def limit_problem(names: Sequence[str], q: Array, lower: Array, upper: Array) -> str:
    """Checks joint angles against limits.

    Args:
        names: of the k joints.
        q: (k,) rad.
        lower: (k,) rad.
        upper: (k,) rad.

    Returns:
        A sentence on the joint that is most beyond its limits; "" when none is.
    """
    over = np.maximum(lower - q, q - upper)
    j = int(np.argmax(over))
    if over[j] <= LIMIT_TOLERANCE:
        return ""
    limits = f"its limits are {lower[j]:.3f} to {upper[j]:.3f}"
    return f"{names[j]} would be at {q[j]:.3f} rad, {limits}"


@dataclass(frozen=True, eq=False)
class Biped(FrozenArrays):
    """A robot on two legs.

    Attributes:
        model: the robot.
        posture: (n,) rad or m, nominal; joints that are not of the legs stay there by default.
        pelvis: the body from which both legs start, an index of model.bodies.
        legs: left and right.
        sizes: of its steps, where its configuration says.
    """

    model: RobotModel
    posture: Array
    pelvis: int
    legs: tuple[BipedLeg, BipedLeg]
    sizes: WalkingSizes = field(default_factory=WalkingSizes)

    @classmethod
    def from_config(
        cls, model: RobotModel, config: RobotConfig, posture: ArrayLike | None = None
    ) -> "Biped":
        """Finds pelvis and legs.

        Args:
            model: the robot.
            config: its configuration: one foot with side left, one with side right.
            posture: (n,) rad or m; None: the configuration's.

        Returns:
            The biped.

        Raises:
            ConfigError: the configuration belongs to another robot, or a foot is missing or
                there twice.
            BipedError: a leg has not six revolute joints, or five, that move alone or with the
                other leg's at the same place.
        """
        model = config.attach(model)
        q = (
            config.nominal_posture(model)
            if posture is None
            else model.check_q(posture, "posture")
        )
        feet = [_find_foot(config, side) for side in ("left", "right")]
        links = [model.link_index(foot.frame) for foot in feet]
        paths = [
            [0, *model.bodies.path_to(model.bodies.body_of_link[link])]
            for link in links
        ]
        shared = [a for a, b in zip(*paths, strict=False) if a == b]
        chains = [path[len(shared) :] for path in paths]
        for foot, chain, other in zip(feet, chains, chains[::-1], strict=True):
            _check_chain(model, foot, chain, other)
        zero = q.copy()
        for chain in chains:
            zero[model.bodies.q_index[chain]] = 0.0
        poses = [_in_pelvis(model.bodies, posture, shared[-1]) for posture in (zero, q)]
        left, right = (
            _leg(model, foot, chain, q, poses)
            for foot, chain in zip(feet, chains, strict=True)
        )
        return cls(model, q, shared[-1], (left, right), config.walking)

    @property
    def coupled(self) -> bool:
        """Whether one drive moves the first joints of both legs, such as NAO's."""
        return bool(self.legs[0].joints[0] == self.legs[1].joints[0])

    def root_in_pelvis(self, q: ArrayLike | None = None) -> tuple[Array, Array]:
        """Pose of the root link in the pelvis' frame.

        Args:
            q: (n,) rad or m; None: the nominal posture.

        Returns:
            Orientation (3, 3) and origin (3,) m.
        """
        q = self.posture if q is None else self.model.check_q(q)
        R, p = _in_pelvis(self.model.bodies, q, self.pelvis)
        return R[0], p[0]


def meeting_point(points: Array, axes: Array) -> tuple[Array, float]:
    """Point nearest to lines, in the least squares' sense.

    Along directions common to all lines it is that of the first point.

    Args:
        points: (k, 3) m, one of each line.
        axes: (k, 3) unit vectors along them.

    Returns:
        The point (3,) m, and its largest distance to a line, m.
    """
    normal = np.eye(3) - np.einsum("ki,kj->kij", axes, axes)
    offsets = points - points[0]
    wanted = np.einsum("kij,kj->i", normal, offsets)
    point = points[0] + np.linalg.lstsq(normal.sum(axis=0), wanted, rcond=1e-9)[0]
    gaps = np.linalg.norm(np.einsum("kij,kj->ki", normal, point - points), axis=1)
    return point, float(gaps.max())


def _in_pelvis(bodies: Bodies, q: Array, pelvis: int) -> tuple[Array, Array]:
    """Poses of all bodies in the frame of the pelvis, (B, 3, 3) and (B, 3)."""
    R, p = body_poses(bodies, q)
    return R[pelvis].T @ R, (p - p[pelvis]) @ R[pelvis]


def _find_foot(config: RobotConfig, side: str) -> Foot:
    found = [foot for foot in config.feet if foot.side == side]
    if len(found) != 1:
        names = listing([foot.frame for foot in found]) or "no foot"
        problem = (
            f"{names} has side {side}: a robot on two legs has one foot on each side"
        )
        raise ConfigError(problem, config.source, "feet")
    return found[0]


def _check_chain(
    model: RobotModel, foot: Foot, chain: list[int], other: list[int]
) -> None:
    bodies = model.bodies
    names = [bodies.joint_names[body] for body in chain]
    own = np.array([name in model.joint_names for name in names])
    own[:1] |= (
        bodies.q_index[chain][:1] == bodies.q_index[other][:1]
    )  # coupled to the other leg's
    plain = (bodies.joint_type[chain] == REVOLUTE) & (bodies.offset[chain] == 0.0)
    known = own & plain & (np.abs(bodies.multiplier[chain]) == 1.0)
    if not (known.all() and JOINTS - 1 <= len(chain) <= JOINTS):
        raise BipedError(
            f"the {foot.side} leg, to {foot.frame!r}, has the joints {listing(names) or 'none'}: "
            f"a leg must have {JOINTS} revolute joints (or {JOINTS - 1}) that follow no other; "
            "only the first ones of both legs may be coupled, 1 to 1"
        )


def _leg(
    model: RobotModel,
    foot: Foot,
    chain: list[int],
    q: Array,
    poses: list[tuple[Array, Array]],
) -> BipedLeg:
    """Makes a leg from its bodies.

    Args:
        model: the robot.
        foot: of the configuration.
        chain: bodies of the leg.
        q: (n,) rad or m, nominal posture.
        poses: of all bodies in the pelvis' frame, (B, 3, 3) and (B, 3) m, in the zero pose and
            at q.
    """
    bodies, link = model.bodies, model.link_index(foot.frame)
    joints = np.array(bodies.q_index[chain], dtype=np.int64)
    mass, (R, p) = bodies.mass, poses[0]
    moment = np.einsum("bij,bj->bi", R, bodies.first_moment) + mass[:, None] * p
    ends = bodies.subtree_end[chain]
    masses = np.array([mass[b:e].sum() for b, e in zip(chain, ends, strict=True)])
    moments = np.array(
        [moment[b:e].sum(axis=0) for b, e in zip(chain, ends, strict=True)]
    )
    masses[:-1] -= masses[1:].copy()
    moments[:-1] -= moments[1:].copy()
    lines, soles = zip(
        *(_lines(bodies, chain, link, pose) for pose in poses), strict=True
    )
    (axes, points), (R_sole, p_sole) = lines[0], soles[0]
    names = [bodies.joint_names[body] for body in chain]
    lower, upper, nominal = model.lower[joints], model.upper[joints], q[joints]
    if len(chain) < JOINTS:
        free = free_axis(*lines[1], *soles[1])
        names.append(f"the {TURNS[free]} of {foot.frame}")
        axes, points = np.vstack((axes, R_sole[:, free])), np.vstack((points, p_sole))
        lower, upper = np.append(lower, -MAX_FREE), np.append(upper, MAX_FREE)
        nominal, masses = np.append(nominal, 0.0), np.append(masses, 0.0)
        moments = np.vstack((moments, np.zeros(3)))
    return BipedLeg(
        side=foot.side,
        foot=foot,
        joints=joints,
        joint_names=tuple(names),
        axes=axes,
        points=points,
        R_sole=R_sole,
        p_sole=p_sole,
        lower=lower,
        upper=upper,
        nominal=nominal,
        masses=masses,
        moments=moments,
    )


def _lines(
    bodies: Bodies, chain: list[int], link: int, pose: tuple[Array, Array]
) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Axes and points of a leg's joints, and the pose of its sole, from poses of all bodies."""
    (R, p), last = pose, chain[-1]
    axes = (
        np.einsum("bij,bj->bi", R[chain], bodies.axis[chain])
        * bodies.multiplier[chain, None]
    )
    sole = (
        R[last] @ bodies.R_body_link[link],
        p[last] + R[last] @ bodies.p_body_link[link],
    )
    return (axes, p[chain]), sole


def sole_poses(biped: Biped, q: ArrayLike) -> Array:
    """Poses of the soles in the root link's frame.

    Args:
        biped: the robot.
        q: (n,) rad or m.

    Returns:
        [R p] (2, 3, 4), left and right.
    """
    poses = [link_pose(biped.model, q, leg.foot.frame) for leg in biped.legs]
    return np.array([np.column_stack(pose) for pose in poses])


def sole_slip(biped: Biped, Q: Array) -> float:
    """Largest relative motion of the soles along a path of postures.

    Args:
        biped: the robot.
        Q: (N, n) rad or m.

    Returns:
        The larger one of displacement, m, and rotation, rad.
    """
    left, right = np.array([sole_poses(biped, q) for q in Q]).swapaxes(0, 1)
    away = right - np.concatenate((np.zeros((len(Q), 3, 3)), left[:, :, 3:]), axis=2)
    relative = left[:, :, :3].swapaxes(1, 2) @ away
    moves = np.linalg.norm(relative[:, :, 3] - relative[0, :, 3], axis=1)
    return float(
        max(moves.max(), np.abs(relative[:, :, :3] - relative[0, :, :3]).max())
    )


def min_width(biped: Biped) -> float:
    """Distance of the soles' frames at which the soles touch, feet side by side, m.

    Args:
        biped: the robot.
    """
    left, right = (leg.foot.corners for leg in biped.legs)
    inner = [
        -left[:, 1].min() if len(left) else 0.0,
        right[:, 1].max() if len(right) else 0.0,
    ]
    return max(float(sum(inner)), 0.0)


def sole_center(biped: Biped) -> tuple[float, float]:
    """Middle of the soles in their frames.

    Args:
        biped: the robot.

    Returns:
        m forwards, and m inwards to the other foot; 0 without corners.
    """
    if not all(len(leg.foot.corners) for leg in biped.legs):
        return 0.0, 0.0
    corners = [leg.foot.corners for leg in biped.legs]
    left, right = (0.5 * (c.min(axis=0) + c.max(axis=0)) for c in corners)
    return float(0.5 * (left[0] + right[0])), float(0.5 * (right[1] - left[1]))


def pack_leg(leg: BipedLeg) -> Any:
    """A leg as the kernels read it.

    Args:
        leg: of the robot.

    Returns:
        (1,) of LEG.
    """
    packed = np.zeros(1, LEG)
    for name in LEG.names or ():
        packed[name] = getattr(leg, name)
    return packed


def sole_pose(leg: BipedLeg, q: Array) -> tuple[Array, Array]:
    """Pose of the sole in the pelvis' frame.

    Args:
        leg: of the robot.
        q: (6,) rad, joint angles.

    Returns:
        Orientation (3, 3) and origin (3,) m.
    """
    R, p = leg.R_sole, leg.p_sole
    for M, point in zip(
        rotations_about(leg.axes, q)[::-1], leg.points[::-1], strict=True
    ):
        R, p = M @ R, point + M @ (p - point)
    return R, p


def heading_to_pelvis(biped: Biped) -> Array:
    """Orientation (3, 3) of the pelvis' frame in one with the soles' x and z axes.

    Made of quarter turns: the pelvis of some URDFs has its x axis backwards, or y upwards.

    Args:
        biped: the robot.
    """
    soles = np.sum([sole_pose(leg, leg.nominal)[0] for leg in biped.legs], axis=0)
    x, z = (
        np.eye(3)[k] * np.sign(v[k])
        for v in soles.T[[0, 2]]
        for k in [np.argmax(np.abs(v))]
    )
    return np.array([x, np.cross(z, x), z]) + 0.0
