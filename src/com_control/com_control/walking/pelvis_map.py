"""The map from the pelvis to the CoM of a biped, and the angles of its legs; compiled by numba.

With the feet and the pelvis' orientation given, only the three coordinates t of the pelvis are
unknown: the CoM is a function of them. It needs no angle (docs/derivations.md). With d = hip -
ankle and f the axis of the ankle's roll, in world axes:

  n = +-(d x f) / |d x f|                        axis of knee and ankle pitch
  knee = ankle + alpha d + beta (n x d)          alpha = (|d|^2 + l2^2 - l1^2) / (2 |d|^2)
                                                 beta = +-sqrt(l2^2 / |d|^2 - alpha^2)
  a2 = +-(a1 x a3) / |a1 x a3|                   second axis of the hip, between first and third

Beyond its reach a leg is modelled as a stretched one that grows, so that the map is continuous,
and the solver reports it at its end.
"""

from math import pi, sqrt
from typing import Any, NamedTuple

import numpy as np

from com_control.walking.leg_ik import (
    Rows,
    atan2_without_branches,
    column,
    combine,
    inner,
    rows,
    scale,
    vector,
    wrap_angle,
)
from com_model.arrays import Array
from com_model.geometry.vector_kernels import Vector, add, cross, dot, sub, turned

Record = Any  # an element of an array of LEG or ROBOT

LEG = np.dtype(
    [
        ("hip", "f8", 3),  # in the pelvis' frame, m
        ("axis_1", "f8", 3),  # first axis in the pelvis' frame at the zero pose
        ("axis_2", "f8", 3),  # second axis in the pelvis' frame at the zero pose
        ("ankle", "f8", 3),  # in the sole's frame, m
        ("roll", "f8", 3),  # last axis in the sole's frame at the zero pose
        ("pitch", "f8", 3),  # the axis before it in the sole's frame at the zero pose
        # First moments over the robot's mass, m:
        ("foot", "f8", 3),  # of the foot about the ankle, in the sole's frame
        ("hip_first", "f8", 3),  # of the first body about the hip, on (a1, a2, a1 x a2)
        ("hip_second", "f8", 3),  # of the second, on (a2, a3, a2 x a3)
        (
            "thigh",
            "f8",
            3,
        ),  # with the shank's mass at the knee, on (u, n, u x n), u: hip to knee
        ("shank", "f8", 3),  # about the knee, on (u, n, u x n), u: knee to ankle
        (
            "ankle_body",
            "f8",
            3,
        ),  # between pitch and roll about the ankle, on (n, f, n x f)
        ("axis_3_thigh", "f8", 3),  # third axis on the thigh's axes, at the zero pose
        ("axis_2_thigh", "f8", 3),  # second axis on them, at the zero pose
        ("roll_shank", "f8", 3),  # last axis on the shank's axes, at the zero pose
        ("l1", "f8"),  # thigh, m
        ("l2", "f8"),  # shank, m
        (
            "upper_fraction",
            "f8",
        ),  # mass above the knee with the shank's over the robot's
        ("foot_fraction", "f8"),  # mass of ankle body and foot over the robot's
        ("sign_n", "f8"),
        ("sign_beta", "f8"),
        ("sign_a2", "f8"),
        ("direction_4", "f8"),  # 1 or -1: fourth axis along n
        ("direction_5", "f8"),  # 1 or -1: fifth axis along n
        ("small_bodies", "f8"),  # 1: some body of hip or ankle has a moment
    ]
)
ROBOT = np.dtype(
    [
        ("legs", LEG, 2),  # left, right
        (
            "upper_moment",
            "f8",
            3,
        ),  # of all but the legs in the pelvis' frame, over the mass, m
        ("upper_fraction", "f8"),  # its mass over the robot's
        (
            "offset",
            "f8",
            3,
        ),  # from pelvis to CoM in the nominal posture, in the pelvis' axes, m
        # Of the twelve joints of the legs, rad:
        ("zero", "f8", 12),
        ("lower", "f8", 12),
        ("upper", "f8", 12),
        ("nominal", "f8", 12),
        # State of the solver:
        ("warm", "i8"),  # 0: the next search starts from the nominal posture
        (
            "pelvis",
            "f8",
            (3, 3),
        ),  # where the last three points left it, the last one first, m
        ("inverse", "f8", (3, 3)),  # of dCoM/dt
        ("known", "i8"),  # 1: the inverse is of use
        ("solved", "i8"),  # number of points solved in a row
        ("work", "f8", (3, 12)),  # sines, cosines and angles of the legs' joints
    ]
)

# Bits of the outcome of a point; a leg's are shifted left by 4 for the right one.
CONVERGED, STALLED, STRETCHED, LIMITED = 0, 1, 2, 4


class Pose(NamedTuple):
    """Pose of a foot in the world.

    Attributes:
        R: rotation, by rows.
        p: m, position.
    """

    R: Rows
    p: Vector


class Targets(NamedTuple):
    """Targets of a point in addition to the CoM, in the world.

    Attributes:
        pelvis: its orientation, by rows.
        left: pose of the left sole.
        right: pose of the right sole.
    """

    pelvis: Rows
    left: Pose
    right: Pose


class LegTarget(NamedTuple):
    """Quantities of a leg that foot and pelvis' orientation determine, world axes.

    Attributes:
        offset: m, d = t - offset is the vector from ankle to hip.
        f: axis of the ankle's roll.
        a1: first axis of the hip.
    """

    offset: Vector
    f: Vector
    a1: Vector


class ComMap(NamedTuple):
    """The map from the pelvis' position t to the CoM.

    Attributes:
        constant: m, part of the CoM that does not depend on t.
        fraction: of the mass that moves with t.
        left: left leg.
        right: right leg.
    """

    constant: Vector
    fraction: float
    left: LegTarget
    right: LegTarget


class LegPlane(NamedTuple):
    """Plane of a leg for a position of the pelvis; see the module's equations.

    Attributes:
        d: m, from ankle to hip.
        n: unit axis of knee and ankle pitch.
        nd: m, n x d.
        alpha: of the knee's position.
        beta: of the knee's position.
    """

    d: Vector
    n: Vector
    nd: Vector
    alpha: float
    beta: float


@inner
def find_plane(leg: Record, target: LegTarget, t: Vector) -> LegPlane:
    """The leg's plane for a position of the pelvis.

    Args:
        leg: constants of the leg.
        target: of the leg.
        t: m, position of the pelvis.
    """
    d = sub(t, target.offset)
    c = cross(d, target.f)
    n = scale(leg.sign_n / sqrt(dot(c, c)), c)
    l1, l2 = leg.l1, leg.l2
    inverse = 1.0 / dot(d, d)
    alpha = 0.5 + 0.5 * (l2 * l2 - l1 * l1) * inverse
    squared = l2 * l2 * inverse - alpha * alpha
    beta = leg.sign_beta * sqrt(squared) if squared > 0.0 else 0.0
    return LegPlane(d, n, cross(n, d), alpha, beta)


@inner
def thigh_to_world(leg: Record, v: Vector, plane: LegPlane) -> Vector:
    """A vector given on the thigh's axes (u, n, u x n), in the world.

    Args:
        leg: constants of the leg.
        v: the vector.
        plane: of the leg.
    """
    l1, alpha, beta = 1.0 / leg.l1, plane.alpha, plane.beta
    along = (v[0] * (alpha - 1.0) + v[2] * beta) * l1
    across = (v[0] * beta + v[2] * (1.0 - alpha)) * l1
    return combine(along, plane.d, across, plane.nd, v[1], plane.n)


@inner
def shank_to_world(leg: Record, v: Vector, plane: LegPlane) -> Vector:
    """A vector given on the shank's axes (u, n, u x n), in the world.

    Args:
        leg: constants of the leg.
        v: the vector.
        plane: of the leg.
    """
    l2, alpha, beta = 1.0 / leg.l2, plane.alpha, plane.beta
    along = (-v[0] * alpha - v[2] * beta) * l2
    across = (v[2] * alpha - v[0] * beta) * l2
    return combine(along, plane.d, across, plane.nd, v[1], plane.n)


@inner
def second_axis(leg: Record, a1: Vector, a3: Vector) -> Vector:
    """Second axis of the hip, square to the first and the third.

    Args:
        leg: constants of the leg, for the sign.
        a1: first axis.
        a3: third axis.
    """
    c = cross(a1, a3)
    return scale(leg.sign_a2 / sqrt(dot(c, c)), c)


@inner
def on_axes(m: Vector, a: Vector, b: Vector) -> Vector:
    """A vector given on (a, b, a x b).

    Args:
        m: the vector.
        a: first axis.
        b: second axis.
    """
    return combine(m[0], a, m[1], b, m[2], cross(a, b))


@inner
def leg_moment(leg: Record, target: LegTarget, t: Vector) -> Vector:
    """Part of a leg's first moment that depends on the hip's position, over the robot's mass.

    Args:
        leg: constants of the leg.
        target: of the leg.
        t: m, position of the pelvis.

    Returns:
        m, world axes.
    """
    plane = find_plane(leg, target, t)
    total = add(
        thigh_to_world(leg, vector(leg.thigh), plane),
        shank_to_world(leg, vector(leg.shank), plane),
    )
    if leg.small_bodies > 0.0:
        a1, a3 = target.a1, thigh_to_world(leg, vector(leg.axis_3_thigh), plane)
        a2 = second_axis(leg, a1, a3)
        total = add(total, on_axes(vector(leg.ankle_body), plane.n, target.f))
        total = add(total, on_axes(vector(leg.hip_first), a1, a2))
        total = add(total, on_axes(vector(leg.hip_second), a2, a3))
    return total


@inner
def com_of_pelvis(robot: Record, com_map: ComMap, t: Vector) -> Vector:
    """The CoM for a position of the pelvis.

    Args:
        robot: constants of the robot.
        com_map: of feet and pelvis' orientation.
        t: m, position of the pelvis.

    Returns:
        m, in the world.
    """
    legs = add(
        leg_moment(robot.legs[0], com_map.left, t),
        leg_moment(robot.legs[1], com_map.right, t),
    )
    return add(add(com_map.constant, scale(com_map.fraction, t)), legs)


@inner
def read_targets(R: Array, feet: Array) -> Targets:
    """Orientation of the pelvis and poses of the soles as tuples.

    Args:
        R: (3, 3).
        feet: (2, 3, 4), left and right.
    """
    left, right = feet[0], feet[1]
    return Targets(
        rows(R), Pose(rows(left), column(left, 3)), Pose(rows(right), column(right, 3))
    )


@inner
def make_map(robot: Record, targets: Targets) -> ComMap:
    """Makes the map from the pelvis' position to the CoM.

    Args:
        robot: constants of the robot.
        targets: pelvis' orientation and poses of the soles.
    """
    R = targets.pelvis
    left, left_moment = fix_leg(robot.legs[0], R, targets.left)
    right, right_moment = fix_leg(robot.legs[1], R, targets.right)
    own = turned(R, vector(robot.upper_moment))
    fraction = (
        robot.upper_fraction
        + robot.legs[0].upper_fraction
        + robot.legs[1].upper_fraction
    )
    return ComMap(add(own, add(left_moment, right_moment)), fraction, left, right)


@inner
def fix_leg(leg: Record, R: Rows, foot: Pose) -> tuple[LegTarget, Vector]:
    """Quantities of a leg that do not depend on the pelvis' position.

    Args:
        leg: constants of the leg.
        R: orientation of the pelvis.
        foot: pose of the sole.

    Returns:
        The leg's target, and the constant part of its first moment over the robot's mass, m.
    """
    ankle = add(turned(foot.R, vector(leg.ankle)), foot.p)
    hip = turned(R, vector(leg.hip))
    moment = turned(foot.R, vector(leg.foot))
    moment = combine(1.0, moment, leg.foot_fraction, ankle, leg.upper_fraction, hip)
    f, a1 = turned(foot.R, vector(leg.roll)), turned(R, vector(leg.axis_1))
    return LegTarget(sub(ankle, hip), f, a1), moment


@inner
def fill_angles(y: Array) -> None:
    """Sets the third row to the angles, rad, of points (second row, first row).

    Args:
        y: (3, n).
    """
    for i in range(y.shape[1]):
        y[2, i] = atan2_without_branches(y[0, i], y[1, i])


@inner
def fill_directions(
    leg: Record, target: LegTarget, t: Vector, foot: Rows, pelvis: Rows, y: Array
) -> None:
    """Sines and cosines of a leg's angles, each pair times a length.

    Args:
        leg: constants of the leg.
        target: of the leg.
        t: m, position of the pelvis.
        foot: orientation of the sole.
        pelvis: orientation of the pelvis.
        y: (2, 6) in its first rows, set.
    """
    f, a1 = target.f, target.a1
    plane = find_plane(leg, target, t)
    alpha, beta = plane.alpha, plane.beta
    a3 = thigh_to_world(leg, vector(leg.axis_3_thigh), plane)
    a2 = second_axis(leg, a1, a3)
    b2 = turned(pelvis, vector(leg.axis_2))
    e = thigh_to_world(leg, vector(leg.axis_2_thigh), plane)
    g = shank_to_world(leg, vector(leg.roll_shank), plane)
    w5 = scale(leg.direction_5, plane.n)
    b5 = turned(foot, vector(leg.pitch))
    y[0, 0], y[1, 0] = dot(a1, cross(b2, a2)), dot(b2, a2)
    y[0, 1], y[1, 1] = dot(a3, a1), dot(a3, cross(a1, a2))
    y[0, 2], y[1, 2] = -dot(e, cross(a2, a3)), dot(e, a2)
    y[0, 3], y[1, 3] = leg.direction_4 * beta, alpha * (1.0 - alpha) - beta * beta
    y[0, 4], y[1, 4] = dot(w5, cross(g, f)), dot(g, f)
    y[0, 5], y[1, 5] = dot(f, cross(w5, b5)), dot(w5, b5)


@inner
def is_stretched(leg: Record, target: LegTarget, t: Vector) -> bool:
    """Whether the hip is out of the leg's reach.

    Args:
        leg: constants of the leg.
        target: of the leg.
        t: m, position of the pelvis.
    """
    l1, l2, d = leg.l1, leg.l2, sub(t, target.offset)
    distance2 = dot(d, d)
    far = distance2 > (l1 + l2) ** 2 * (1.0 + 1e-12)
    return far or distance2 < (l1 - l2) ** 2 * (1.0 - 1e-12)


@inner
def find_angles(robot: Record, com_map: ComMap, targets: Targets, t: Vector) -> int:
    """Sets robot.work[2] to the legs' angles, rad.

    Args:
        robot: constants of the robot.
        com_map: of feet and pelvis' orientation.
        targets: pelvis' orientation and poses of the soles.
        t: m, position of the pelvis.

    Returns:
        The outcome.
    """
    left, right = com_map.left, com_map.right
    y = robot.work
    fill_directions(robot.legs[0], left, t, targets.left.R, targets.pelvis, y[:, :6])
    fill_directions(robot.legs[1], right, t, targets.right.R, targets.pelvis, y[:, 6:])
    fill_angles(y)
    zero, lower, upper, nominal = robot.zero, robot.lower, robot.upper, robot.nominal
    far, left_over, right_over = 0, 0, 0
    for i in range(12):
        y[2, i] -= zero[i]
        far += abs(y[2, i] - nominal[i]) > pi
    if far > 0:
        for i in range(12):
            y[2, i] = wrap_angle(y[2, i], nominal[i])
    for i in range(6):
        j = i + 6
        left_over += not ((y[2, i] >= lower[i]) & (y[2, i] <= upper[i]))
        right_over += not ((y[2, j] >= lower[j]) & (y[2, j] <= upper[j]))
    outcome = STRETCHED * is_stretched(robot.legs[0], left, t)
    outcome |= STRETCHED * is_stretched(robot.legs[1], right, t) << 4
    return outcome | LIMITED * (left_over > 0) | LIMITED * (right_over > 0) << 4
