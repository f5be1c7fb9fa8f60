"""Compiled kernels: a standing robot whose joints yield, and the angle at which it tips over.

Arrays of bodies are those of com_model.bodies; lengths in m, angles in rad, forces in N.
"""

from math import tanh
from typing import NamedTuple

import numpy as np
from numba import njit

from com_model.arrays import Array, Indices
from com_model.bodies import PRISMATIC
from com_model.compiled import compiled
from com_model.dynamics import GRAVITY
from com_model.dynamics.tree_kernels import Tree, set_poses
from com_model.geometry.vector_kernels import cross, dot, set_point, turned, turned_back


class FlatSoles(NamedTuple):
    """F soles flat on the ground.

    Attributes:
        body: (F,) index of the body.
        R: (F, 3, 3) orientation in the body.
        p: (F, 3) m, origin in the body.
        R_ground: (F, 3, 3) orientation on the ground.
        p_ground: (F, 3) m, origin on the ground.
        load_fraction: (F,) of the weight on each sole; sums to 1.
        edges: (E, 3) n_x, n_y, offset of the edges that the robot may fall over, m on the
            ground; inside n . x < offset.
    """

    body: Indices
    R: Array
    p: Array
    R_ground: Array
    p_ground: Array
    load_fraction: Array
    edges: Array


class JointErrors(NamedTuple):
    """Errors of n joints that a rigid model neglects.

    Attributes:
        offset: (n,) rad, position of a joint where its encoder reads 0.
        compliance: (n,) rad/(N m), 0 or more.
        backlash: (n,) rad, whole width, 0 or more.
    """

    offset: Array
    compliance: Array
    backlash: Array


class TippingRobot(NamedTuple):
    """A robot on its soles.

    Attributes:
        tree: its bodies and joints.
        moment: (B, 3) kg m, first moments of the bodies in their frames.
        soles: on the ground.
        joints: their errors.
    """

    tree: Tree
    moment: Array
    soles: FlatSoles
    joints: JointErrors


class RockingState(NamedTuple):
    """State of a robot; the kernels set it.

    Attributes:
        q: (n,) rad or m, actual joint positions.
        com: (3,) m, CoM in the ground's frame.
        load: (n,) N m or N, dV/dq: the negative of gravity's generalised force.
    """

    q: Array
    com: Array
    load: Array


@njit
def _compute_loads(robot: TippingRobot, state: RockingState) -> None:
    """Computes the CoM over the ground and the loads of the joints at state.q.

    With sole f flat on the ground and carrying everything, V_f = M g z_f . (CoM - p_f) is the
    potential energy; the load of joint j is dV/dq_j with V = sum of load_fraction_f V_f. In a
    symmetric double stance each joint of a pair so carries its half.
    """
    tree, moment, soles, _ = robot
    q, com, load = state
    count, total, com[:], load[:] = len(tree.mass), tree.subtree_mass[0], 0.0, 0.0
    R, p, c = np.empty((count, 3, 3)), np.empty((count, 3)), np.empty((count, 3))
    R[0], p[0], place, over = np.eye(3), 0.0, np.empty(3), np.empty(3)
    set_poses(q, tree, range(1, count), R, p)
    for b in range(count):
        set_point(R[b], tree.mass[b] * p[b], moment[b], c[b])
    for b in range(count - 1, 0, -1):  # first moments of the subtrees
        c[tree.parent[b]] += c[b]
    # about the joints
    own, whole = c - tree.subtree_mass.reshape(-1, 1) * p, c[0] - total * p
    for f in range(len(soles.body)):
        sole, fraction = soles.body[f], soles.load_fraction[f]
        set_point(R[sole], p[sole], soles.p[f], place)
        up = turned(R[sole], soles.R[f, :, 2])
        inside = turned_back(soles.R[f], turned_back(R[sole], c[0] / total - place))
        set_point(soles.R_ground[f], soles.p_ground[f], inside, over)
        com += fraction * over
        for b in range(1, count):
            axis = turned(R[b], tree.axis[b])
            # then the rest moves, the other way round
            carries = b <= sole < tree.subtree_end[b]
            if tree.joint_type[b] == PRISMATIC:
                rise = (tree.subtree_mass[b] - carries * total) * dot(axis, up)
            else:
                rise = dot(cross(axis, own[b]), up) - carries * dot(
                    cross(axis, whole[b]), up
                )
            load[tree.q_index[b]] += fraction * GRAVITY * tree.multiplier[b] * rise


@compiled()
def settle(encoders: Array, robot: TippingRobot, state: RockingState) -> bool:
    """Finds the equilibrium of joints that yield: q = encoders + offset - C load - b/2 side.

    The side of the backlash b is tanh(load / 0.1 N m), so that it changes smoothly.

    Args:
        encoders: (n,) rad or m, positions by the encoders.
        robot: on its soles.
        state: its q is the initial guess; set to the equilibrium.

    Returns:
        Whether it converged: joints that are too soft have no equilibrium.
    """
    joints, q, load = robot.joints, state.q, state.load
    for _ in range(80):
        _compute_loads(robot, state)
        change = 0.0
        for j in range(len(q)):
            # above 0.1 N m a joint is at one end of its backlash
            side = tanh(load[j] / 0.1)
            new = encoders[j] + joints.offset[j] - joints.compliance[j] * load[j]
            new -= 0.5 * joints.backlash[j] * side
            change = max(change, abs(new - q[j]))
            q[j] = new
        if not change < 1e3:
            return False
        # converged, rad
        if change < 1e-10:
            return True
    return change < 1e-5


@compiled()
def edge_distance(com: Array, edges: Array) -> float:
    """Computes the distance to the nearest of some edges, m: positive inside.

    Args:
        com: (3,) m, CoM in the ground's frame.
        edges: (E, 3) see FlatSoles.
    """
    least = np.inf
    for e in range(len(edges)):
        least = min(least, edges[e, 2] - edges[e, 0] * com[0] - edges[e, 1] * com[1])
    return least


@compiled()
def find_tip_angle(
    start: Array, rate: Array, guess: float, robot: TippingRobot
) -> float:
    """Finds the angle at which the CoM is over an edge, by the secant method.

    Args:
        start: (n,) rad, positions by the encoders at angle 0.
        rate: (n,) derivatives of the positions by the angle.
        guess: rad, where the search begins.
        robot: on its soles.

    Returns:
        rad; NaN where there is none.
    """
    n, joints, edges = len(start), robot.joints, robot.soles.edges
    state, encoders = RockingState(np.empty(n), np.empty(3), np.empty(n)), np.empty(n)
    q = state.q
    first_step = 1e-3  # rad
    s, before, f_before = guess, guess - first_step, np.nan
    for j in range(n):
        q[j] = start[j] + guess * rate[j] + joints.offset[j]
    for _ in range(60):
        for j in range(n):
            encoders[j] = start[j] + s * rate[j]
            q[j] += (s - before) * rate[j]
        if not settle(encoders, robot, state):
            return np.nan
        f = edge_distance(state.com, edges)
        if f == 0.0:
            return s
        step = first_step
        if f_before == f_before:  # not the first time
            if f == f_before:
                return np.nan
            step = -f * (s - before) / (f - f_before)
        step = min(max(step, -0.2), 0.2)
        before, f_before = s, f
        s += step
        # converged, rad
        if abs(step) < 1e-9:
            return s
    return np.nan
