"""Compiled: one sample of joints, IMU and wrenches -> residual and columns of all parameters.

World frame W: z upwards, yaw of the IMU, origin of the leg odometry. With measured wrenches f_i,
t_i of the ground at x_i, momentum P and L of the model about W's origin, mass M, CoM c:

    sum f_i + M g = P',    sum (x_i x f_i + t_i) + c x M g = L'                 (no external force)

multiplied by a Hann window w and integrated by parts, so that no acceleration is needed; on samples
sum w_k (P_{k+1/2} - P_{k-1/2}) = - sum (w_k - w_{k-1}) P_{k-1/2} is exact. A parameter theta that
is wrong by d adds d (sum w_k dt F_k - sum (w_k - w_{k-1}) H_{k-1/2}) to the residual "measured
minus model", with F (6, n) its force-like and H (6, n) its momentum-like column. The residual
itself is column n: F its forces, -H its momentum.

Leg odometry: the root moves by - sum l_i (displacement of sole i relative to the root) per sample,
l_i = max(f_iz, 0)^2 / sum.
"""

from math import pi
from typing import NamedTuple

import numpy as np
from numba import njit

from com_model.arrays import Array, Indices
from com_model.compiled import compiled
from com_model.contact import LIGHT_LOAD
from com_model.dynamics import GRAVITY
from com_model.dynamics.link_frames import Tree, set_poses
from com_model.geometry.vector_kernels import (
    add,
    add_cross,
    add_scaled,
    cross,
    dot,
    set_cross,
    set_point,
    set_product,
    sub,
    turned,
)

WINDOWS = 3  # open at a time


class Blocks(NamedTuple):
    """Number of parameters, bodies, and the first columns of the blocks of parameters.

    Attributes:
        size: number of parameters, n.
        trunk: index of the trunk's body.
        imu: index of the body that carries the IMU.
        zeros: wrench biases, six for each foot.
        tilt: of the IMU, two.
        pull: constant external force and moment, six.
        masses: relative errors of masses, one for each group of bodies.
        gains: relative errors of the force sensors, one for each foot.
        delay: of the wrenches after joints and IMU, s.
        flexibility: of the legs' joints, rad/(N m); their backlash to the side of the load, rad.
        light: N m, torque of a joint up to which it may be on either side of its backlash.
        imu_delay: of the IMU after the joints, s.
        mass: kg, of the robot.
    """

    size: int
    trunk: int
    imu: int
    zeros: int
    tilt: int
    pull: int
    masses: int
    gains: int
    delay: int
    flexibility: int
    imu_delay: int
    light: float
    mass: float


class Plant(NamedTuple):
    """A robot of B bodies and f feet, as the compiled step uses it.

    Attributes:
        tree: bodies and joints.
        com: (B, 3) m, CoM of each body in its frame.
        inertia: (B, 3, 3) kg m^2, about that CoM, axes of the body.
        mass_group: (B,) group of each body whose mass error is common; -1: none.
        triad: (B, 3, 3) R_body_triad.
        dipole: (k, 2) body and first column of its first moments (3), triad.
        point: (k, 2) body and column of a mass at its CoM.
        foot_body: (f,) body of each sole.
        sensor_body: (f,) body of each force sensor.
        R_sensor: (f, 3, 3) orientation of the sensor in its body.
        p_sensor: (f, 3) m, origin of the sensor in its body.
        R_sole: (f, 3, 3) orientation of the sole in its body.
        p_sole: (f, 3) m, origin of the sole in its body.
        joint: (j, 3) body below a leg's joint, foot, column of its encoder bias.
        blocks: columns of all other parameters.
    """

    tree: Tree
    com: Array
    inertia: Array
    mass_group: Indices
    triad: Array
    dipole: Indices
    point: Indices
    foot_body: Indices
    sensor_body: Indices
    R_sensor: Array
    p_sensor: Array
    R_sole: Array
    p_sole: Array
    joint: Indices
    blocks: Blocks


class Memory(NamedTuple):
    """State and results of `step`, for B bodies, f feet and n parameters.

    Vectors are in the axes of W from its origin. Rows 0 and 1 of pairs are the sample before and
    this one.

    Attributes:
        R: (2, B, 3, 3) orientations of the bodies.
        p: (B, 3) m, origins of the bodies.
        com: (2, B, 3) m, CoMs of the bodies.
        total: (2, 3) m, CoM of the robot.
        root: (3,) m, origin of the root link.
        sole: (2, f, 3) m, soles relative to the root.
        R_sole: (f, 3, 3) orientations of the soles.
        load: (f,) N, vertical force on each foot.
        wrench: (2, f, 6) N and N m about W's origin.
        below: (B, 4) mass kg and first moment kg m of each subtree.
        force: (6, n + 1) F, columns of the parameters and the residual's forces.
        momentum: (6, n + 1) H, the same for momentum.
        jacobian: (3, n) m by unit parameter: true minus model's CoM.
        torque: (j,) N m, of the legs' joints (Plant.joint) by the feet's wrenches, at rest.
        rate: (3,) rad/s, angular velocity of the root by the sample before.
        open: (3, 6, n + 1) sums of the open windows.
        stats: (3, 9 + 6 f) for each open window: point o (3), mean CoM (3), -mean P' (3), and
            for each foot the smallest and largest load N, and x and y of its sole's normal while
            it is loaded.
        phase: (4,) samples since the start, and in each window; all -1: there was none yet, or a
            gap precedes the next one.
        closed: (6, n + 1) sums of the last window that was closed.
        closed_stats: (9 + 6 f,) its stats.
    """

    R: Array
    p: Array
    com: Array
    total: Array
    root: Array
    sole: Array
    R_sole: Array
    load: Array
    wrench: Array
    below: Array
    force: Array
    momentum: Array
    jacobian: Array
    torque: Array
    rate: Array
    open: Array
    stats: Array
    phase: Indices
    closed: Array
    closed_stats: Array


def make_memory(plant: Plant) -> Memory:
    """Allocates the state before the first sample.

    Args:
        plant: the robot, whose bodies, feet and parameters determine the sizes.
    """
    bodies, feet, n = len(plant.com), len(plant.foot_body), plant.blocks.size
    wide, stats = (6, n + 1), 9 + 6 * feet
    poses = (2, bodies, 3, 3), (bodies, 3), (2, bodies, 3), (2, 3), 3
    soles = (2, feet, 3), (feet, 3, 3), feet, (2, feet, 6), (bodies, 4)
    joints = len(plant.joint), 3
    sums = wide, wide, (3, n), *joints, (WINDOWS, *wide), (WINDOWS, stats)
    arrays = [np.zeros(shape) for shape in (*poses, *soles, *sums)]
    phase = np.full(1 + WINDOWS, -1, dtype=np.int64)
    return Memory._make([*arrays, phase, np.zeros(wide), np.zeros(stats)])


@compiled()
def step(
    plant: Plant,
    q: Array,
    R_root: Array,
    wrenches: Array,
    dt: float,
    length: int,
    memory: Memory,
) -> bool:
    """Processes one sample: poses, loads, and the window sums of force and momentum residuals.

    Args:
        plant: the robot.
        q: (n,) joint positions, rad or m.
        R_root: (3, 3) R_world_root from the IMU.
        wrenches: (f, 6) N, N m of the ground on the feet, axes and origin of the sensors.
        dt: s since the sample before.
        length: samples of a window, a multiple of 3.
        memory: changed; holds what the step computes.

    Returns:
        Whether a window has been closed.
    """
    m = memory
    first = m.phase[0] < 0
    m.R[0], m.com[0], m.total[0] = m.R[1], m.com[1], m.total[1]
    m.sole[0], m.wrench[0] = m.sole[1], m.wrench[1]
    _set_pose(plant, q, R_root, wrenches, m)
    _move_root(plant, first, m)
    _set_wrenches(plant, wrenches, m)
    if first:
        for w in range(WINDOWS):
            m.phase[1 + w] = -1 - w * (length // WINDOWS)
    else:
        m.force[:], m.momentum[:], m.jacobian[:] = 0.0, 0.0, 0.0
        _masses(plant, dt, m)
        _sensors(plant, m)
        _joints(plant, m)
        _late_imu(plant, dt, m)
    m.phase[0] += 1
    return _accumulate(dt, length, m)


@njit
def _set_pose(
    plant: Plant, q: Array, R_root: Array, wrenches: Array, m: Memory
) -> None:
    """Poses of bodies and soles about the root's origin."""
    R, p = m.R[1], m.p
    R[0], p[0] = R_root, 0.0
    set_poses(q, plant.tree, range(1, len(p)), R, p)
    for b in range(len(p)):
        set_point(R[b], p[b], plant.com[b], m.com[1, b])
    for f in range(len(plant.foot_body)):
        b, s = plant.foot_body[f], plant.sensor_body[f]
        set_point(R[b], p[b], plant.p_sole[f], m.sole[1, f])
        set_product(R[b], plant.R_sole[f], m.R_sole[f])
        m.load[f] = dot(R[s, 2], turned(plant.R_sensor[f], wrenches[f]))


@njit
def _move_root(plant: Plant, first: bool, m: Memory) -> None:
    """Updates the root's position by leg odometry, and moves all positions to W's origin."""
    total, step = 0.0, np.zeros(3)
    for f in range(len(m.load)):
        square = max(m.load[f], 0.0) ** 2
        total += square
        for i in range(3):
            step[i] += square * (m.sole[1, f, i] - m.sole[0, f, i])
    m.total[1] = 0.0
    for i in range(3):
        if not first and total > 0.0:
            m.root[i] -= step[i] / total
        for b in range(len(m.p)):
            m.p[b, i] += m.root[i]
            m.com[1, b, i] += m.root[i]
            m.total[1, i] += plant.tree.mass[b] / plant.blocks.mass * m.com[1, b, i]


@njit
def _set_wrenches(plant: Plant, wrenches: Array, m: Memory) -> None:
    """Expresses the measured wrenches in W, about its origin."""
    R, x = np.empty((3, 3)), np.empty(3)
    for f in range(len(plant.sensor_body)):
        b, out = plant.sensor_body[f], m.wrench[1, f]
        set_product(m.R[1, b], plant.R_sensor[f], R)
        set_point(m.R[1, b], m.p[b], plant.p_sensor[f], x)
        force, moment = turned(R, wrenches[f]), turned(R, wrenches[f, 3:])
        out[0], out[1], out[2] = force
        out[3], out[4], out[5] = add(moment, cross(x, force))


@njit
def _add_point(m: Memory, b: int, mass: float, dt: float, column: int) -> None:
    """Adds a mass (kg by unit parameter) at body b's CoM to a column: its weight and momentum."""
    x0, x1 = m.com[0, b], m.com[1, b]
    F, H, scale = m.force[:, column], m.momentum[:, column], mass / dt
    F[2] += mass * GRAVITY
    F[3] += mass * GRAVITY * x1[1]
    F[4] -= mass * GRAVITY * x1[0]
    for i in range(3):
        H[i] += scale * (x1[i] - x0[i])
    add_cross(x0, x1, scale, H[3:])


@njit
def _add_com(m: Memory, b: int, fraction: float, column: int) -> None:
    """Adds to the CoM Jacobian the effect of a fraction of the robot's mass at body b's CoM."""
    for i in range(3):
        m.jacobian[i, column] += fraction * (m.com[1, b, i] - m.total[1, i])


@njit
def _masses(plant: Plant, dt: float, m: Memory) -> None:
    """Momentum and weight of the model; columns of masses and first moments."""
    tree, blocks, last = plant.tree, plant.blocks, m.force.shape[1] - 1
    turn = np.empty((3, 3))  # R1^T R0: minus the rate, body axes
    for b in range(len(m.p)):
        mass, R0, R1 = tree.mass[b], m.R[0, b], m.R[1, b]
        m.below[b, 0] = mass
        _add_point(m, b, -mass, dt, last)
        set_product(R1.T, R0, turn)
        rate = (
            turn[1, 2] - turn[2, 1],
            turn[2, 0] - turn[0, 2],
            turn[0, 1] - turn[1, 0],
        )
        spin = turned(plant.inertia[b], rate)
        for i in range(3):
            m.momentum[3 + i, last] -= 0.25 / dt * (dot(R0[i], spin) + dot(R1[i], spin))
            m.below[b, 1 + i] = mass * m.com[1, b, i]
        if plant.mass_group[b] >= 0:
            column = blocks.masses + plant.mass_group[b]
            _add_point(m, b, mass, dt, column)
            _add_com(m, b, mass / blocks.mass, column)
    for b in range(len(m.p) - 1, 0, -1):
        for i in range(4):
            m.below[tree.parent[b], i] += m.below[b, i]
    for k in range(len(plant.point)):
        b, column = plant.point[k, 0], plant.point[k, 1]
        _add_point(m, b, 1.0, dt, column)
        _add_com(m, b, 1.0 / blocks.mass, column)
    for k in range(len(plant.dipole)):
        _dipole(plant, k, dt, m)


@njit
def _dipole(plant: Plant, k: int, dt: float, m: Memory) -> None:
    """Columns of a first moment without mass on a body.

    F: 0; -e x g.  H: e'; x x e' + e x v = (x_0 x e_1 - x_1 x e_0) / dt.
    """
    b, column, M = plant.dipole[k, 0], plant.dipole[k, 1], plant.blocks.mass
    E0, E1 = np.empty((3, 3)), np.empty((3, 3))
    set_product(m.R[0, b], plant.triad[b], E0)
    set_product(m.R[1, b], plant.triad[b], E1)
    for j in range(3):
        F, H = m.force[:, column + j], m.momentum[:, column + j]
        F[3], F[4] = GRAVITY * E1[1, j], -GRAVITY * E1[0, j]
        for i in range(3):
            H[i] = (E1[i, j] - E0[i, j]) / dt
            m.jacobian[i, column + j] = E1[i, j] / M
        add_cross(m.com[0, b], E1[:, j], 1.0 / dt, H[3:])
        add_cross(m.com[1, b], E0[:, j], -1.0 / dt, H[3:])


@njit
def _sensors(plant: Plant, m: Memory) -> None:
    """Columns of F/T zeros and gains, delay, tilt of the IMU, pull; the measured wrenches."""
    blocks, last = plant.blocks, m.force.shape[1] - 1
    R, x, c, M = np.empty((3, 3)), np.empty(3), m.total[1], plant.blocks.mass
    for f in range(len(plant.sensor_body)):
        b = plant.sensor_body[f]
        set_product(m.R[1, b], plant.R_sensor[f], R)
        set_point(m.R[1, b], m.p[b], plant.p_sensor[f], x)
        for j in range(3):
            column = blocks.zeros + 6 * f + j
            m.force[:3, column] = m.force[3:, column + 3] = R[:, j]
            add_cross(x, R[:, j], 1.0, m.force[3:, column])
        for i in range(6):
            m.force[i, last] += m.wrench[1, f, i]
            m.force[i, blocks.gains + f] = m.wrench[1, f, i]
            m.momentum[i, blocks.delay] -= 0.5 * (m.wrench[0, f, i] + m.wrench[1, f, i])
    set_product(m.R[1, blocks.imu], plant.triad[blocks.imu], R)
    for j in range(2):
        F = m.force[:, blocks.tilt + j]
        F[0], F[1] = M * GRAVITY * R[1, j], -M * GRAVITY * R[0, j]  # -M e x g
        set_cross(c, F[:3], F[3:])
    x[:] = m.com[1, blocks.trunk]
    for i in range(3):
        m.force[i, blocks.pull + i] = -1.0
        m.force[3 + i, blocks.pull + 3 + i] = -1.0
        F = m.force[:, blocks.pull + i]
        add_cross(x, F[:3], 1.0, F[3:])


@njit
def give(torque: float, light: float) -> tuple[float, float]:
    """By how much a joint gives under a torque, N m, by unit flexibility and by unit backlash."""
    return torque, np.tanh(torque / light)


@njit
def _joints(plant: Plant, m: Memory) -> None:
    """Columns of the legs' encoders and of their flexibility.

    An encoder that reads too much rotates the wrench of its foot, and the links below, about
    its axis a at x:  a x f;  a x N + x x (a x f) + (a x d) x g,  with N the wrench's moment about x
    and d the first moment below about x. A joint that deflects by k times its torque
    -a . (N + d x g) reads as much too much, and one with backlash by that of its side.
    """
    blocks, M = plant.blocks, plant.blocks.mass
    for k in range(len(plant.joint)):
        b, f, column = plant.joint[k, 0], plant.joint[k, 1], plant.joint[k, 2]
        force, x, sign = m.wrench[1, f, :3], m.p[b], plant.tree.multiplier[b]
        a = turned(m.R[1, b], plant.tree.axis[b])
        a = (sign * a[0], sign * a[1], sign * a[2])
        d = add_scaled(m.below[b, 1:], -m.below[b, 0], x)
        N = sub(m.wrench[1, f, 3:], cross(x, force))
        pushed, moved = cross(a, force), cross(a, d)
        moment = add(cross(a, N), cross(x, pushed))
        moment = add(moment, (-GRAVITY * moved[1], GRAVITY * moved[0], 0.0))
        torque = -dot(a, add(N, (-GRAVITY * d[1], GRAVITY * d[0], 0.0)))
        m.torque[k] = torque
        for i in range(3):
            m.force[i, column], m.force[3 + i, column] = pushed[i], moment[i]
            m.jacobian[i, column] = -moved[i] / M
        for i in range(2):
            at, gives = blocks.flexibility + i, give(torque, blocks.light)[i]
            for c in range(3):
                m.jacobian[c, at] -= gives * moved[c] / M
            for c in range(6):
                m.force[c, at] += gives * m.force[c, column]


@njit
def _late_imu(plant: Plant, dt: float, m: Memory) -> None:
    """Column of the IMU's delay d: the model is rotated by e = -d w about the standing soles' o.

    F: -M e x g; -c x M (e x g), as of a tilt.  H: -m e' x (x - o), for each body, and its spin
    """
    H, F, turn, spin = m.momentum, m.force, np.empty((3, 3)), np.empty(3)
    set_product(m.R[1, 0], m.R[0, 0].T, turn)
    w = np.empty(3)
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        w[i] = 0.5 * (turn[k, j] - turn[j, k]) / dt
    rise, column, mass = (w - m.rate) / dt, plant.blocks.imu_delay, plant.blocks.mass
    m.rate[:] = w
    F[0, column], F[1, column] = -mass * GRAVITY * w[1], mass * GRAVITY * w[0]
    set_cross(m.total[1], F[:3, column], F[3:, column])
    total, o = 0.0, np.zeros(3)
    for f in range(len(m.load)):
        square = max(m.load[f], 0.0) ** 2
        total += square
        for i in range(3):
            o[i] += square * (m.sole[1, f, i] + m.root[i])
    o /= max(total, 1e-9)
    for b in range(len(m.p)):
        x, own, R = m.com[1, b], plant.tree.mass[b], m.R[1, b]
        v = cross(rise, sub(x, o))
        local = turned(R.T, rise)
        spin[:] = turned(R, turned(plant.inertia[b], local))
        for i in range(3):
            H[i, column] += own * v[i]
            H[3 + i, column] += spin[i]
        add_cross(x, v, own, H[3:, column])


@njit
def _accumulate(dt: float, length: int, m: Memory) -> bool:
    """Adds the sample to the open windows; returns whether one is closed."""
    closed = False
    for w in range(WINDOWS):
        k = m.phase[1 + w] + 1
        m.phase[1 + w] = k
        total, stats = m.open[w], m.stats[w]
        if k > 0:
            weight = (1.0 - np.cos(2.0 * pi * k / length)) / (length * dt)
            before = (1.0 - np.cos(2.0 * pi * (k - 1) / length)) / (length * dt)
            rise = weight - before
            total += weight * dt * m.force - rise * m.momentum
            for i in range(3):
                stats[3 + i] += weight * dt * m.total[1, i]
                stats[6 + i] -= rise * m.momentum[i, -1]
        if k == length:
            m.closed[:], m.closed_stats[:] = total, stats
            closed, k = True, 0
            m.phase[1 + w] = 0
        if k == 0:
            total[:], stats[:] = 0.0, 0.0
            for i in range(3):
                stats[i] = m.sole[1, :, i].sum() / len(m.load) + m.root[i]
            stats[9::2], stats[10::2] = 1e9, -1e9
        if k >= 0:
            _set_extremes(m, stats)
    return closed


@njit
def _set_extremes(m: Memory, stats: Array) -> None:
    """Updates the smallest and largest load of each foot, and its tilt while it is loaded."""
    weight = m.load.sum()
    for f in range(len(m.load)):
        values = m.load[f], m.R_sole[f, 0, 2], m.R_sole[f, 1, 2]
        for i in range(3):
            if i == 0 or m.load[f] > LIGHT_LOAD * weight:
                at = 9 + 6 * f + 2 * i
                stats[at] = min(stats[at], values[i])
                stats[at + 1] = max(stats[at + 1], values[i])
