"""What numba compiles: the centre of mass and its Jacobian, for one configuration or for many.

The robot comes as the array that com_model.sesc.packing makes: a row a quantity, a column a body,
in the order of com_model.bodies. Joints turn about, or slide along, the z axes of aligned frames.
With C the constant rotation from a body's to its parent's axes, Z the joint's turn about z, t its
travel times the share of the mass that it moves, and r the body's SESC vector:

  pull, from the leaves to the root   S = t e_z + Z (r + sum over the children of C_j S_j)
  CoM  = p_root + R_root S_root
  push, from the root to the leaves   X = R_parent C,  R = X Z
  column of a joint                   turn X (e_z x S) + slide X e_z

So the CoM needs no orientation and the Jacobian no position (docs/derivations.md). No fastmath:
sums keep their order and NaN stays NaN, so that a NaN in q is seen in what depends on it. Shapes
are not checked here.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from com_model.compiled import compiled

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Row = tuple[float, float, float, float, float]
Nine = tuple[float, float, float, float, float, float, float, float, float]

# Rows of a packed robot. The first four hold integers: see them by robot.view(np.uint64).
PARENT = 0  # index of the parent body; of the root: B, the number of bodies
DRIVER = 1  # index into q of the joint that moves the body
CHAINED = 2  # 1: the parent is the body before this one, and C is a turn about x by "tilt"
FORKS = 3  # 1: some child is not chained, so that this body must be remembered
TURN = 4  # rad per unit of q; 0 where the joint slides
OFFSET = 5  # rad
SLIDE = 6  # m per unit of q, times the subtree's share of the mass; 0 where the joint turns
REST = 7  # three rows: r, m
COS_TILT = 10
SIN_TILT = 11
ALIGN = 12  # nine rows: C by rows; of the root: from its aligned to its own axes
# Rows that the kernels for one configuration work in.
POSITIONS = 21
ANGLES = 22
SINES = 23
COSINES = 24
SUMS = 25  # three rows: S, m
AXES = 28  # nine rows: R by rows
ORIGIN = 9  # rows below AXES: p_root, three rows, m
ROWS = 40

BLOCK = 32  # configurations that a kernel for many works on side by side

TWO_OVER_PI = 0.6366197723675814
ROUNDER = 6755399441055744.0  # 1.5 * 2**52: adding and subtracting it rounds to an integer
# pi / 2 in three parts; the first two have 33 bits, so that multiples up to 2**20 are exact.
HALF_PI_1 = 1.5707963267341256
HALF_PI_2 = 6.077100506303966e-11
HALF_PI_3 = 2.0222662487959506e-21
FAR = 1.0e5  # rad; beyond it the library's sine and cosine take over
# Taylor series economised on |r| <= pi/4: errors 1.8e-17 (of sine, relative) and 9e-19 (of cosine).
SIN_1, SIN_2, SIN_3 = -0.16666666666666666, 0.008333333333330938, -0.00019841269836741755
SIN_4, SIN_5, SIN_6 = 2.755731609375319e-06, -2.505112999912784e-08, 1.5917995630635248e-10
COS_1, COS_2, COS_3 = 0.041666666666666664, -0.001388888888888739, 2.480158729875508e-05
COS_4, COS_5, COS_6 = -2.7557317266186513e-07, 2.0876145106497293e-09, -1.1382548343152154e-11


@njit
def sincos(angle: float) -> tuple[float, float]:
    """Computes sine and cosine without a branch, so that a loop over it runs in vector registers.

    Args:
        angle: rad, |angle| <= FAR; NaN and infinity give NaN.

    Returns:
        sine, cosine: both to 1.2e-16 absolute.
    """
    quarters = (angle * TWO_OVER_PI + ROUNDER) - ROUNDER
    r = ((angle - quarters * HALF_PI_1) - quarters * HALF_PI_2) - quarters * HALF_PI_3
    z = r * r
    sine = SIN_3 + z * (SIN_4 + z * (SIN_5 + z * SIN_6))
    sine = r + r * (z * (SIN_1 + z * (SIN_2 + z * sine)))
    cosine = COS_3 + z * (COS_4 + z * (COS_5 + z * COS_6))
    cosine = 1.0 - (0.5 * z - z * z * (COS_1 + z * (COS_2 + z * cosine)))
    quadrant = quarters - 4.0 * np.floor(quarters * 0.25)
    odd = (quadrant == 1.0) | (quadrant == 3.0)
    s = cosine if odd else sine
    c = sine if odd else cosine
    s = -s if quadrant >= 2.0 else s
    c = -c if (quadrant == 1.0) | (quadrant == 2.0) else c
    return s, c


@njit
def fill_sincos(angles: Array, sines: Array, cosines: Array) -> None:
    """Sets the sines and cosines of an array of angles, rad."""
    far = 0
    for i in range(angles.size):
        sines[i], cosines[i] = sincos(angles[i])
    for i in range(angles.size):
        far += np.abs(angles[i]) > FAR
    if far > 0:
        for i in range(angles.size):
            if np.abs(angles[i]) > FAR:
                sines[i], cosines[i] = np.sin(angles[i]), np.cos(angles[i])


@njit
def take(R: Array) -> Nine:
    """Gives the nine elements of R."""
    return R[0], R[1], R[2], R[3], R[4], R[5], R[6], R[7], R[8]


@njit
def place_root(robot: Array, R: Array, p: Array, frame: Array) -> bool:
    """Puts the root somewhere.

    Args:
        robot: (ROWS, at least B).
        R: (3, 3) orientation of the root in the world.
        p: (3,) m, its position.
        frame: (12,), set to the root's aligned axes in the world, by rows, and to p.

    Returns:
        Whether R is orthonormal (to 1e-6) and right-handed.
    """
    fine = True
    for i in range(3):
        frame[ORIGIN + i] = p[i]
        for j in range(3):
            a, b, c = robot[ALIGN + j, 0], robot[ALIGN + 3 + j, 0], robot[ALIGN + 6 + j, 0]
            frame[3 * i + j] = R[i, 0] * a + R[i, 1] * b + R[i, 2] * c
            product = R[i, 0] * R[j, 0] + R[i, 1] * R[j, 1] + R[i, 2] * R[j, 2]
            fine &= np.abs(product - (1.0 if i == j else 0.0)) < 1e-6
    x = R[0, 1] * R[1, 2] - R[0, 2] * R[1, 1]
    y = R[0, 2] * R[1, 0] - R[0, 0] * R[1, 2]
    z = R[0, 0] * R[1, 1] - R[0, 1] * R[1, 0]
    return fine and x * R[2, 0] + y * R[2, 1] + z * R[2, 2] > 0.0


@njit
def place(frame: Array, x: float, y: float, z: float, com: Array) -> None:
    """Sets com (3,) m in the world from the root's S, with frame as place_root sets it."""
    for i in range(3):
        turned = frame[3 * i] * x + frame[3 * i + 1] * y + frame[3 * i + 2] * z
        com[i] = frame[ORIGIN + i] + turned


# --- one configuration ------------------------------------------------------------------------
@njit
def pull(q: Array, robot: Array) -> None:
    """Gathers the SESC vectors from the leaves to the root.

    Sets the rows POSITIONS to COSINES, and SUMS (of the root, of others S_x and S_y only).
    """
    whole = robot.view(np.uint64)
    count = np.int64(whole[PARENT, 0])
    robot[ANGLES] = robot[SUMS] = robot[SUMS + 1] = robot[SUMS + 2] = 0.0
    for k in range(1, count):
        robot[POSITIONS, k] = q[whole[DRIVER, k]]
        robot[ANGLES, k] = robot[TURN, k] * robot[POSITIONS, k] + robot[OFFSET, k]
    fill_sincos(robot[ANGLES], robot[SINES], robot[COSINES])
    x = y = z = 0.0
    for k in range(count - 1, 0, -1):
        x, y, z = x + robot[REST, k], y + robot[REST + 1, k], z + robot[REST + 2, k]
        if whole[FORKS, k]:
            x, y, z = x + robot[SUMS, k], y + robot[SUMS + 1, k], z + robot[SUMS + 2, k]
        c, s = robot[COSINES, k], robot[SINES, k]
        x, y, z = c * x - s * y, s * x + c * y, z + robot[SLIDE, k] * robot[POSITIONS, k]
        robot[SUMS, k], robot[SUMS + 1, k] = x, y
        if whole[CHAINED, k]:
            c, s = robot[COS_TILT, k], robot[SIN_TILT, k]
            y, z = c * y - s * z, s * y + c * z
        else:
            parent = whole[PARENT, k]
            for i in range(3):
                row = ALIGN + 3 * i
                share = robot[row, k] * x + robot[row + 1, k] * y + robot[row + 2, k] * z
                robot[SUMS + i, parent] += share
            x = y = z = 0.0
    robot[SUMS, 0] += x + robot[REST, 0]
    robot[SUMS + 1, 0] += y + robot[REST + 1, 0]
    robot[SUMS + 2, 0] += z + robot[REST + 2, 0]


@njit
def tilted(x: float, y: float, z: float, robot: Array, k: int) -> Row:
    """Takes one row of R_parent, (x, y, z), through chained body k, whose C is a turn about x.

    Returns:
        The row of R (three numbers), and of X the first two; its third is that of R.
    """
    c, s = robot[COSINES, k], robot[SINES, k]
    tilt_c, tilt_s = robot[COS_TILT, k], robot[SIN_TILT, k]
    u = tilt_c * y + tilt_s * z
    return c * x + s * u, c * u - s * x, tilt_c * z - tilt_s * y, x, u


@njit
def turned(x: float, y: float, z: float, robot: Array, k: int) -> Row:
    """The same as tilted for a body whose C is any rotation."""
    c, s = robot[COSINES, k], robot[SINES, k]
    t = x * robot[ALIGN, k] + y * robot[ALIGN + 3, k] + z * robot[ALIGN + 6, k]
    u = x * robot[ALIGN + 1, k] + y * robot[ALIGN + 4, k] + z * robot[ALIGN + 7, k]
    v = x * robot[ALIGN + 2, k] + y * robot[ALIGN + 5, k] + z * robot[ALIGN + 8, k]
    return c * t + s * u, c * u - s * t, v, t, u


@njit
def push(robot: Array, jacobian: Array) -> None:
    """Adds the joints' columns to jacobian (3, n), after pull; sets AXES of bodies that fork."""
    whole = robot.view(np.uint64)
    x0, y0, z0, x1, y1, z1, x2, y2, z2 = take(robot[AXES:, 0])
    for k in range(1, np.int64(whole[PARENT, 0])):
        if whole[CHAINED, k]:
            x0, y0, z0, t0, u0 = tilted(x0, y0, z0, robot, k)
            x1, y1, z1, t1, u1 = tilted(x1, y1, z1, robot, k)
            x2, y2, z2, t2, u2 = tilted(x2, y2, z2, robot, k)
        else:
            R = robot[AXES:, whole[PARENT, k]]
            x0, y0, z0, t0, u0 = turned(R[0], R[1], R[2], robot, k)
            x1, y1, z1, t1, u1 = turned(R[3], R[4], R[5], robot, k)
            x2, y2, z2, t2, u2 = turned(R[6], R[7], R[8], robot, k)
        turn, slide, column = robot[TURN, k], robot[SLIDE, k], whole[DRIVER, k]
        a, b = -turn * robot[SUMS + 1, k], turn * robot[SUMS, k]
        jacobian[0, column] += a * t0 + b * u0 + slide * z0
        jacobian[1, column] += a * t1 + b * u1 + slide * z1
        jacobian[2, column] += a * t2 + b * u2 + slide * z2
        if whole[FORKS, k]:
            R = robot[AXES:, k]
            R[0], R[1], R[2], R[3], R[4], R[5], R[6], R[7], R[8] = (
                x0,
                y0,
                z0,
                x1,
                y1,
                z1,
                x2,
                y2,
                z2,
            )


@njit
def keep_root(robot: Array) -> None:
    """Lets the world be the root's own frame."""
    for i in range(9):
        robot[AXES + i, 0] = robot[ALIGN + i, 0]
    for i in range(3):
        robot[AXES + ORIGIN + i, 0] = 0.0


@njit
def find_com(q: Array, robot: Array, com: Array) -> None:
    """Sets com (3,), with the root where it is."""
    pull(q, robot)
    x, y, z = robot[SUMS, 0], robot[SUMS + 1, 0], robot[SUMS + 2, 0]
    place(robot[AXES:, 0], x, y, z, com)


@njit
def find_jacobian(q: Array, robot: Array, com: Array, jacobian: Array) -> None:
    """Sets com (3,) and jacobian (3, n) or (3, 6 + n), with the root where it is."""
    find_com(q, robot, com)
    jacobian[:] = 0.0
    push(robot, jacobian[:, jacobian.shape[1] - q.size :])
    if jacobian.shape[1] > q.size:
        x = com[0] - robot[AXES + ORIGIN, 0]
        y = com[1] - robot[AXES + ORIGIN + 1, 0]
        z = com[2] - robot[AXES + ORIGIN + 2, 0]
        jacobian[0, 0] = jacobian[1, 1] = jacobian[2, 2] = 1.0
        jacobian[0, 4], jacobian[0, 5] = z, -y
        jacobian[1, 3], jacobian[1, 5] = -z, x
        jacobian[2, 3], jacobian[2, 4] = y, -x


@compiled()
def com_of_one(q: Array, robot: Array, com: Array) -> None:
    """Computes the centre of mass in the root's frame.

    Args:
        q: (n,) joint positions, rad or m.
        robot: (ROWS, B rounded up to a multiple of 8); the last rows are overwritten.
        com: (3,) m, set to the centre of mass.
    """
    keep_root(robot)
    find_com(q, robot, com)


@compiled()
def com_and_jacobian_of_one(q: Array, robot: Array, com: Array, jacobian: Array) -> None:
    """Computes the centre of mass and its Jacobian in the root's frame.

    Args:
        q: (n,) joint positions, rad or m.
        robot: (ROWS, B rounded up to a multiple of 8); the last rows are overwritten.
        com: (3,) m, set to the centre of mass.
        jacobian: (3, n) for the joints alone, or (3, 6 + n) with the root's linear and angular
            velocity first; set.
    """
    keep_root(robot)
    find_jacobian(q, robot, com, jacobian)


@compiled()
def com_of_placed(q: Array, robot: Array, R: Array, p: Array, com: Array) -> bool:
    """Computes the centre of mass in the world: com_of_one with the root at R (3, 3), p (3,) m.

    Returns:
        Whether R is a rotation.
    """
    fine = place_root(robot, R, p, robot[AXES:, 0])
    find_com(q, robot, com)
    return fine


@compiled()
def com_and_jacobian_of_placed(
    q: Array, robot: Array, R: Array, p: Array, com: Array, jacobian: Array
) -> bool:
    """Computes both in the world: com_and_jacobian_of_one with the root at R (3, 3), p (3,) m.

    Returns:
        Whether R is a rotation.
    """
    fine = place_root(robot, R, p, robot[AXES:, 0])
    find_jacobian(q, robot, com, jacobian)
    return fine


# --- many configurations ----------------------------------------------------------------------
# BLOCK of them stand side by side, so that every inner loop is the same arithmetic on neighbouring
# numbers. A body has five such rows of numbers, its "lane"; in the end the first three hold its
# column of the Jacobian. Rows are reached by constant offsets: that shows the compiler that they do
# not overlap.
POSITION, SINE, COSINE, SUM_X, SUM_Y = 0, BLOCK, 2 * BLOCK, 3 * BLOCK, 4 * BLOCK
LANE = 5 * BLOCK
X, Y, Z = 0, BLOCK, 2 * BLOCK
VECTOR = 3 * BLOCK
MATRIX = 9 * BLOCK


@njit
def load(Q: Array, start: int, robot: Array, lanes: Array) -> None:
    """Copies the positions of BLOCK configurations; past the last one, that one is repeated."""
    whole = robot.view(np.uint64)
    for b in range(BLOCK):
        q = Q[min(start + b, Q.shape[0] - 1)]
        for k in range(1, lanes.shape[0]):
            lanes[k, b] = q[whole[DRIVER, k]]


@njit
def turn_lane(robot: Array, k: int, lane: Array) -> None:
    """Sets the sines and cosines of the joint angles of body k."""
    turn, offset = robot[TURN, k], robot[OFFSET, k]
    far = 0
    for b in range(BLOCK):
        lane[SINE + b], lane[COSINE + b] = sincos(turn * lane[b] + offset)
    for b in range(BLOCK):
        far += np.abs(turn * lane[b] + offset) > FAR
    if far > 0:
        for b in range(BLOCK):
            angle = turn * lane[b] + offset
            if np.abs(angle) > FAR:
                lane[SINE + b], lane[COSINE + b] = np.sin(angle), np.cos(angle)


@njit
def pull_chained(robot: Array, k: int, lane: Array, below: Array) -> None:
    """Takes below (3 rows) from the sum of the children of body k to what it adds to its parent."""
    rx, ry, rz = robot[REST, k], robot[REST + 1, k], robot[REST + 2, k]
    slide, tilt_c, tilt_s = robot[SLIDE, k], robot[COS_TILT, k], robot[SIN_TILT, k]
    for b in range(BLOCK):
        s, c = lane[SINE + b], lane[COSINE + b]
        x, y, z = below[X + b] + rx, below[Y + b] + ry, below[Z + b] + rz + slide * lane[b]
        x, y = c * x - s * y, s * x + c * y
        lane[SUM_X + b], lane[SUM_Y + b] = x, y
        below[X + b] = x
        below[Y + b] = tilt_c * y - tilt_s * z
        below[Z + b] = tilt_s * y + tilt_c * z


@njit
def pull_free(robot: Array, k: int, lane: Array, below: Array, sums: Array) -> None:
    """The same for a body that is not chained: adds to its parent's sums (3 rows), clears below."""
    rx, ry, rz, slide = robot[REST, k], robot[REST + 1, k], robot[REST + 2, k], robot[SLIDE, k]
    xx, xy, xz, yx, yy, yz, zx, zy, zz = take(robot[ALIGN:, k])
    for b in range(BLOCK):
        s, c = lane[SINE + b], lane[COSINE + b]
        x, y, z = below[X + b] + rx, below[Y + b] + ry, below[Z + b] + rz + slide * lane[b]
        x, y = c * x - s * y, s * x + c * y
        lane[SUM_X + b], lane[SUM_Y + b] = x, y
        below[X + b] = below[Y + b] = below[Z + b] = 0.0
        sums[X + b] += xx * x + xy * y + xz * z
        sums[Y + b] += yx * x + yy * y + yz * z
        sums[Z + b] += zx * x + zy * y + zz * z


@njit
def fill(row: Array, start: int, end: int, value: float) -> None:
    """Sets some numbers of a row."""
    for b in range(start, end):
        row[b] = value


@njit
def copy(frame: Array, saved: Array) -> None:
    """Copies nine rows."""
    for b in range(MATRIX):
        saved[b] = frame[b]


@njit
def add(sums: Array, below: Array) -> None:
    """Adds the first three rows of sums to below."""
    for b in range(VECTOR):
        below[b] += sums[b]


@njit
def pull_block(robot: Array, lanes: Array, saved: Array, below: Array) -> None:
    """Pull for a block: sets below (VECTOR,) to the root's S; saved is work space, a row a body."""
    whole = robot.view(np.uint64)
    for k in range(lanes.shape[0]):
        if whole[FORKS, k]:
            fill(saved[k], 0, VECTOR, 0.0)
    fill(below, 0, VECTOR, 0.0)
    for k in range(lanes.shape[0] - 1, 0, -1):
        turn_lane(robot, k, lanes[k])
        if whole[FORKS, k]:
            add(saved[k], below)
        if whole[CHAINED, k]:
            pull_chained(robot, k, lanes[k], below)
        else:
            pull_free(robot, k, lanes[k], below, saved[whole[PARENT, k]])
    if whole[FORKS, 0]:
        add(saved[0], below)
    for b in range(BLOCK):
        below[X + b] += robot[REST, 0]
        below[Y + b] += robot[REST + 1, 0]
        below[Z + b] += robot[REST + 2, 0]


@njit
def push_chained(robot: Array, k: int, lane: Array, frame: Array) -> None:
    """Takes frame (9 rows) from the axes of the parent of body k to its own; sets its columns."""
    turn, slide, tilt_c, tilt_s = (
        robot[TURN, k],
        robot[SLIDE, k],
        robot[COS_TILT, k],
        robot[SIN_TILT, k],
    )
    for b in range(BLOCK):
        s, c = lane[SINE + b], lane[COSINE + b]
        u, v = -turn * lane[SUM_Y + b], turn * lane[SUM_X + b]
        for row in range(3):
            i = VECTOR * row + b
            x, y, z = frame[X + i], frame[Y + i], frame[Z + i]
            y, z = tilt_c * y + tilt_s * z, tilt_c * z - tilt_s * y
            frame[X + i], frame[Y + i], frame[Z + i] = c * x + s * y, c * y - s * x, z
            lane[BLOCK * row + b] = u * x + v * y + slide * z


@njit
def push_free(robot: Array, k: int, lane: Array, parent: Array, frame: Array) -> None:
    """The same for a body that is not chained; parent (9 rows) holds the axes of its parent."""
    turn, slide = robot[TURN, k], robot[SLIDE, k]
    xx, xy, xz, yx, yy, yz, zx, zy, zz = take(robot[ALIGN:, k])
    for b in range(BLOCK):
        s, c = lane[SINE + b], lane[COSINE + b]
        u, v = -turn * lane[SUM_Y + b], turn * lane[SUM_X + b]
        for row in range(3):
            i = VECTOR * row + b
            p, q, r = parent[X + i], parent[Y + i], parent[Z + i]
            x, y, z = p * xx + q * yx + r * zx, p * xy + q * yy + r * zy, p * xz + q * yz + r * zz
            frame[X + i], frame[Y + i], frame[Z + i] = c * x + s * y, c * y - s * x, z
            lane[BLOCK * row + b] = u * x + v * y + slide * z


@njit
def push_block(robot: Array, root: Array, lanes: Array, saved: Array, frame: Array) -> None:
    """Push for a block, root as of place_root; saved and frame (MATRIX,) are work space."""
    whole = robot.view(np.uint64)
    for i in range(9):
        fill(frame, BLOCK * i, BLOCK * (i + 1), root[i])
    copy(frame, saved[0])
    for k in range(1, lanes.shape[0]):
        if whole[CHAINED, k]:
            push_chained(robot, k, lanes[k], frame)
        else:
            push_free(robot, k, lanes[k], saved[whole[PARENT, k]], frame)
        if whole[FORKS, k]:
            copy(frame, saved[k])


@njit
def store_com(root: Array, below: Array, com: Array) -> None:
    """Writes the centres of mass of the first configurations of a block, com (up to BLOCK, 3)."""
    for b in range(com.shape[0]):
        place(root, below[X + b], below[Y + b], below[Z + b], com[b])


@njit
def find_owners(robot: Array, count: int, owners: Indices) -> None:
    """Sets owners (n,) to the first body that each joint moves; mimic joints move others."""
    whole = robot.view(np.uint64)
    for k in range(count - 1, 0, -1):
        owners[whole[DRIVER, k]] = k


@njit
def store_jacobian(robot: Array, owners: Indices, lanes: Array, jacobian: Array) -> None:
    """Writes the Jacobians of the first configurations of a block, (up to BLOCK, 3, n)."""
    whole = robot.view(np.uint64)
    for k in range(1, lanes.shape[0]):
        owner = owners[whole[DRIVER, k]]
        if owner != k:
            add(lanes[k], lanes[owner])
    for b in range(jacobian.shape[0]):
        for i in range(3):
            for j in range(owners.size):
                jacobian[b, i, j] = lanes[owners[j], BLOCK * i + b]


@compiled(nogil=True)
def com_of_many(Q: Array, robot: Array, R: Array, p: Array, com: Array) -> bool:
    """Computes the centres of mass of N configurations.

    Args:
        Q: (N, n) joint positions, rad or m.
        robot: (ROWS, at least B).
        R: (3, 3) orientation of the root in the world, the same for all.
        p: (3,) m, its position.
        com: (N, 3) m, set to the centres of mass in the world.

    Returns:
        Whether R is a rotation.
    """
    count = np.int64(robot.view(np.uint64)[PARENT, 0])
    lanes, saved = np.empty((count, LANE)), np.empty((count, VECTOR))
    below, root = np.empty(VECTOR), np.empty(12)
    fine = place_root(robot, R, p, root)
    for start in range(0, Q.shape[0], BLOCK):
        load(Q, start, robot, lanes)
        pull_block(robot, lanes, saved, below)
        store_com(root, below, com[start : start + BLOCK])
    return fine


@compiled(nogil=True)
def com_and_jacobian_of_many(
    Q: Array, robot: Array, R: Array, p: Array, com: Array, jacobian: Array
) -> bool:
    """Computes the centres of mass of N configurations and their Jacobians.

    Args:
        Q: (N, n) joint positions, rad or m.
        robot: (ROWS, at least B).
        R: (3, 3) orientation of the root in the world, the same for all.
        p: (3,) m, its position.
        com: (N, 3) m, set to the centres of mass in the world.
        jacobian: (N, 3, n) m or 1, set.

    Returns:
        Whether R is a rotation.
    """
    count = np.int64(robot.view(np.uint64)[PARENT, 0])
    lanes, saved = np.empty((count, LANE)), np.empty((count, MATRIX))
    below, frame, root = np.empty(VECTOR), np.empty(MATRIX), np.empty(12)
    owners = np.empty(Q.shape[1], np.int64)
    find_owners(robot, count, owners)
    fine = place_root(robot, R, p, root)
    for start in range(0, Q.shape[0], BLOCK):
        load(Q, start, robot, lanes)
        pull_block(robot, lanes, saved, below)
        store_com(root, below, com[start : start + BLOCK])
        push_block(robot, root, lanes, saved, frame)
        store_jacobian(robot, owners, lanes, jacobian[start : start + BLOCK])
    return fine
