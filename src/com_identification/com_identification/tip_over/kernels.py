"""What numba compiles: a standing robot that sags in its joints, and where it tips over.

Arrays of bodies are those of com_model.bodies; lengths in m, angles in rad, forces in N.
"""

from __future__ import annotations

from collections import namedtuple
from math import tanh

import numpy as np

from com_model.arrays import Array
from com_model.bodies import PRISMATIC
from com_model.compiled import compiled
from com_model.dynamics import GRAVITY
from com_model.geometry.vector_kernels import set_product, set_rotation

SLIDES = PRISMATIC
SMALLEST_LOAD = 0.1  # N m, above which a joint lies on one side of its backlash

_SAG_TOLERANCE, _SAG_STEPS = 1e-10, 80  # rad
_TIP_TOLERANCE, _TIP_STEPS = 1e-9, 60  # rad
_LONGEST_STEP = 0.2  # rad
_FIRST_STEP = 1e-3  # rad

Tree = namedtuple(
    "Tree",
    "parent joint_type q_index multiplier offset R d axis mass subtree_mass subtree_end",
)
"""Arrays of com_model.bodies.Bodies by the same names."""

Soles = namedtuple("Soles", "body R p R_ground p_ground")
"""F soles: body index (F,), pose in the body (F, 3, 3), (F, 3), pose on the ground likewise."""

Stance = namedtuple("Stance", "share edges")
"""share (F,) of the weight on each sole; edges (E, 3): n_x, n_y, offset, inside n.x < offset."""

Joints = namedtuple("Joints", "offset compliance backlash")
"""(n,) each: rad zero offset, rad/(N m) compliance, rad width of the backlash."""


@compiled()
def _dot(R: Array, i: int, v: Array) -> float:
    """Row i of R times v."""
    return float(R[i, 0] * v[0] + R[i, 1] * v[1] + R[i, 2] * v[2])


@compiled()
def _place(q: Array, tree: Tree, moment: Array, R: Array, p: Array, c: Array) -> None:
    """Poses R (B, 3, 3), p (B, 3) of the bodies, and first moments of their subtrees c (B, 3)."""
    count = len(tree.mass)
    turn, rest = np.empty((3, 3)), np.empty((3, 3))
    set_rotation(tree.axis[0], 0.0, R[0])
    for i in range(3):
        p[0, i] = 0.0
    for b in range(1, count):
        up = tree.parent[b]
        s = q[tree.q_index[b]] * tree.multiplier[b] + tree.offset[b]
        travel = s if tree.joint_type[b] == SLIDES else 0.0
        set_rotation(tree.axis[b], s - travel, turn)
        set_product(R[up], tree.R[b], rest)
        set_product(rest, turn, R[b])
        for i in range(3):
            p[b, i] = p[up, i] + _dot(R[up], i, tree.d[b]) + travel * _dot(rest, i, tree.axis[b])
    for b in range(count):
        for i in range(3):
            c[b, i] = _dot(R[b], i, moment[b]) + tree.mass[b] * p[b, i]
    for b in range(count - 1, 0, -1):
        for i in range(3):
            c[tree.parent[b], i] += c[b, i]


@compiled()
def stand(
    q: Array, tree: Tree, moment: Array, soles: Soles, share: Array, com: Array, load: Array
) -> None:
    """Computes the CoM over the ground and what gravity would gain in each joint.

    With sole f flat on the ground and carrying everything, V_f = M g z_f . (CoM - p_f) is the
    potential energy; the load of joint j is dV/dq_j with V = sum of share_f V_f. Where two legs
    stand alike, each joint of a pair so carries its half.

    Args:
        q: (n,) where the joints are.
        tree: The robot.
        moment: (B, 3) kg m, first moments of the bodies in their frames.
        soles: The soles.
        share: (F,) of the weight on each sole; sums to 1.
        com: (3,) m, set to the CoM in the ground's frame.
        load: (n,) N m or N, set to dV/dq.
    """
    count = len(tree.mass)
    R, p, c = np.empty((count, 3, 3)), np.empty((count, 3)), np.empty((count, 3))
    _place(q, tree, moment, R, p, c)
    Rs, over, lever = np.empty((3, 3)), np.empty(3), np.empty(3)
    for i in range(3):
        com[i] = 0.0
    for j in range(len(load)):
        load[j] = 0.0
    for f in range(len(share)):
        sole = soles.body[f]
        set_product(R[sole], soles.R[f], Rs)
        for j in range(3):
            over[j] = 0.0
            for i in range(3):
                place = p[sole, i] + _dot(R[sole], i, soles.p[f])
                over[j] += Rs[i, j] * (c[0, i] / tree.subtree_mass[0] - place)
        for i in range(3):
            com[i] += share[f] * (soles.p_ground[f, i] + _dot(soles.R_ground[f], i, over))
        for b in range(1, count):
            gain = _gain(b, sole, tree, R[b], p[b], c, Rs, lever)
            load[tree.q_index[b]] += share[f] * GRAVITY * gain * tree.multiplier[b]


@compiled()
def _gain(
    b: int, sole: int, tree: Tree, R: Array, p: Array, c: Array, Rs: Array, lever: Array
) -> float:
    """How fast the first moment rises with the joint of body b while the sole stays, kg m."""
    carries = b <= sole < tree.subtree_end[b]  # then the rest moves, the other way round
    mass = tree.subtree_mass[b]
    for i in range(3):
        lever[i] = c[b, i]
        if carries:
            lever[i] = c[0, i] - c[b, i]
    if carries:
        mass = tree.subtree_mass[0] - mass
    x, y, z = _dot(R, 0, tree.axis[b]), _dot(R, 1, tree.axis[b]), _dot(R, 2, tree.axis[b])
    u, v, w = lever[0] - mass * p[0], lever[1] - mass * p[1], lever[2] - mass * p[2]
    gain = Rs[0, 2] * (y * w - z * v) + Rs[1, 2] * (z * u - x * w) + Rs[2, 2] * (x * v - y * u)
    if tree.joint_type[b] == SLIDES:
        gain = mass * (x * Rs[0, 2] + y * Rs[1, 2] + z * Rs[2, 2])
    return float(-gain if carries else gain)


@compiled()
def sag(
    told: Array,
    tree: Tree,
    moment: Array,
    soles: Soles,
    share: Array,
    joints: Joints,
    q: Array,
    com: Array,
    load: Array,
) -> bool:
    """Finds where joints end that give way: q = told + offset - C load - backlash / 2 side.

    The side of the backlash is tanh(load / 0.1 N m), so that it changes smoothly.

    Args:
        told: (n,) what the encoders say.
        tree: The robot.
        moment: (B, 3) kg m.
        soles: The soles.
        share: (F,).
        joints: What the joints do.
        q: (n,) a guess; set to where the joints are.
        com: (3,) m, set to the CoM in the ground's frame.
        load: (n,) N m, set to the loads.

    Returns:
        Whether it came to rest; a compliance that gives way for ever does not.
    """
    n = len(told)
    for _ in range(_SAG_STEPS):
        stand(q, tree, moment, soles, share, com, load)
        change = 0.0
        for j in range(n):
            side = tanh(load[j] / SMALLEST_LOAD)
            new = told[j] + joints.offset[j] - joints.compliance[j] * load[j]
            new -= 0.5 * joints.backlash[j] * side
            change = max(change, abs(new - q[j]))
            q[j] = new
        if not change < 1e3:
            return False
        if change < _SAG_TOLERANCE:
            return True
    return change < 1e-5


@compiled()
def inside(com: Array, edges: Array) -> float:
    """Computes the distance to the nearest of some edges, m: positive inside, (E, 3) edges."""
    least = np.inf
    for e in range(len(edges)):
        least = min(least, edges[e, 2] - edges[e, 0] * com[0] - edges[e, 1] * com[1])
    return least


@compiled()
def tip(
    start: Array,
    rate: Array,
    guess: float,
    tree: Tree,
    moment: Array,
    soles: Soles,
    stance: Stance,
    joints: Joints,
) -> float:
    """Finds the angle s at which the CoM of told = start + s rate is over an edge (secants).

    Returns:
        rad; NaN where there is none near the guess.
    """
    com, load, told, q = (
        np.empty(3),
        np.empty(len(start)),
        np.empty(len(start)),
        np.empty(len(start)),
    )
    s, before, f_before = guess, guess - _FIRST_STEP, np.nan
    for j in range(len(start)):
        q[j] = start[j] + guess * rate[j] + joints.offset[j]
    for _ in range(_TIP_STEPS):
        for j in range(len(start)):
            told[j] = start[j] + s * rate[j]
            q[j] += (s - before) * rate[j]
        if not sag(told, tree, moment, soles, stance.share, joints, q, com, load):
            return np.nan
        f = inside(com, stance.edges)
        if f == 0.0:
            return s
        step = _FIRST_STEP
        if f_before == f_before:  # not the first time
            if f == f_before:
                return np.nan
            step = -f * (s - before) / (f - f_before)
        step = min(max(step, -_LONGEST_STEP), _LONGEST_STEP)
        before, f_before = s, f
        s += step
        if abs(step) < _TIP_TOLERANCE:
            return s
    return np.nan


@compiled()
def margins(
    angles: Array,
    start: Array,
    rate: Array,
    tree: Tree,
    moment: Array,
    soles: Soles,
    stance: Stance,
    joints: Joints,
) -> Array:
    """Computes the distances to the edges at angles (N,), m; NaN where the robot sinks down."""
    com, load, result = np.empty(3), np.empty(len(start)), np.full(len(angles), np.nan)
    q = start + joints.offset
    for i in range(len(angles)):
        told = start + angles[i] * rate
        if sag(told, tree, moment, soles, stance.share, joints, q, com, load):
            result[i] = inside(com, stance.edges)
        else:
            q[:] = told + joints.offset
    return result
