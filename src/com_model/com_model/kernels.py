"""What numba compiles: the centre of mass and its Jacobian, for one configuration or for many.

All of it stands in one file because numba's cache watches nothing but the file of the kernel that
it keeps: had a kernel's helpers or constants a file of their own, an edit there would be missed.

The robot comes as the array that com_model.packing makes: one row per moving body, columns as
named below. Joints turn about, or slide along, the z axes of aligned frames. With C the constant
rotation from a body's to its parent's axes, Z the joint's turn about z, t its travel times the
share of the mass that it moves, and r the body's SESC vector (docs/derivations.md):

  pull, from the leaves to the root   S = Z (r + sum over the children of C_j (S_j + t_j e_z))
  CoM  = p_root + R_root S_root
  push, from the root to the leaves   X = R_parent C,  R = X Z
  column of a joint                   turn X (e_z x S) + slide X e_z

The CoM so needs no orientation, the Jacobian no position. No fastmath: sums keep their order and
NaN stays NaN, so that every machine gives the same result and a NaN in q is seen in it.
"""

from __future__ import annotations

import numpy as np
from numba import njit

# Columns of a packed robot. The first four hold integers: see them by robot.view(np.uint64).
PARENT = 0  # index of the parent body
DRIVER = 1  # index into q of the joint that moves the body
CHAINED = 2  # 1: the parent is the body of the row above, and C is a turn about x by "tilt"
FORKS = 3  # 1: a body below is not chained to this one, which must therefore be remembered
TURN = 4  # rad per unit of q; 0 where the joint slides
OFFSET = 5  # rad
SLIDE = 6  # m per unit of q, times the subtree's share of the mass; 0 where the joint turns
REST = 7  # three columns: r, m
COS_TILT = 10
SIN_TILT = 11
ALIGN = 12  # nine columns: C by rows; of the root: from its aligned to its own axes
COLUMNS = 21

BLOCK = 32  # configurations that a batch kernel works on side by side

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
def sincos(angle):
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
def fill_sincos(angles, sines, cosines):
    """Computes the sines and cosines of an array."""
    far = 0
    for i in range(angles.size):
        sines[i], cosines[i] = sincos(angles[i])
    for i in range(angles.size):
        far += np.abs(angles[i]) > FAR
    if far > 0:
        for i in range(angles.size):
            if np.abs(angles[i]) > FAR:
                sines[i], cosines[i] = np.sin(angles[i]), np.cos(angles[i])


# One configuration -------------------------------------------------------------------------------


@njit
def tilted(x, y, z, body, c, s):
    """Takes one row of R_parent through a chained body, whose C is a turn about x.

    Args:
        x, y, z: The row of R_parent.
        body: The body's row of the robot.
        c, s: Cosine and sine of the joint angle.

    Returns:
        The row of R (three numbers), and of X the first two; its third is that of R.
    """
    u = body[COS_TILT] * y + body[SIN_TILT] * z
    return c * x + s * u, c * u - s * x, body[COS_TILT] * z - body[SIN_TILT] * y, x, u


@njit
def turned(x, y, z, body, c, s):
    """The same as tilted for a body whose C is any rotation."""
    t = x * body[ALIGN] + y * body[ALIGN + 3] + z * body[ALIGN + 6]
    u = x * body[ALIGN + 1] + y * body[ALIGN + 4] + z * body[ALIGN + 7]
    v = x * body[ALIGN + 2] + y * body[ALIGN + 5] + z * body[ALIGN + 8]
    return c * t + s * u, c * u - s * t, v, t, u


@njit
def pull(q, robot, joints, sums):
    """Gathers the SESC vectors from the leaves to the root.

    Args:
        q: (n,) joint positions, rad or m.
        robot: (B, COLUMNS).
        joints: (4, at least B), set to positions, angles, sines and cosines.
        sums: (B, 3) m, set to (S_x, S_y) of each body; of the root (S_x, S_y, S_z).
    """
    whole = robot.view(np.uint64)
    positions, angles, sines, cosines = joints[0], joints[1], joints[2], joints[3]
    angles[:] = 0.0
    for k in range(1, robot.shape[0]):
        positions[k] = q[whole[k, DRIVER]]
        angles[k] = robot[k, TURN] * positions[k] + robot[k, OFFSET]
    fill_sincos(angles, sines, cosines)
    sums[:] = 0.0
    x = y = z = 0.0
    for k in range(robot.shape[0] - 1, 0, -1):
        body, c, s = robot[k], cosines[k], sines[k]
        x, y, z = x + body[REST], y + body[REST + 1], z + body[REST + 2]
        if whole[k, FORKS]:
            x, y, z = x + sums[k, 0], y + sums[k, 1], z + sums[k, 2]
        x, y, z = c * x - s * y, s * x + c * y, z + body[SLIDE] * positions[k]
        sums[k, 0], sums[k, 1] = x, y
        if whole[k, CHAINED]:
            y, z = (
                body[COS_TILT] * y - body[SIN_TILT] * z,
                body[SIN_TILT] * y + body[COS_TILT] * z,
            )
        else:
            parent = whole[k, PARENT]
            for i in range(3):
                j = ALIGN + 3 * i
                sums[parent, i] += body[j] * x + body[j + 1] * y + body[j + 2] * z
            x = y = z = 0.0
    sums[0, 0] += x + robot[0, REST]
    sums[0, 1] += y + robot[0, REST + 1]
    sums[0, 2] += z + robot[0, REST + 2]


@njit
def place(robot, root, sums, frame, com):
    """Sets frame (9,), the root's aligned axes in the world by rows, and com (3,) m."""
    x, y, z = sums[0, 0], sums[0, 1], sums[0, 2]
    for i in range(3):
        t, u, v, _, _ = turned(root[i, 0], root[i, 1], root[i, 2], robot[0], 1.0, 0.0)
        frame[3 * i], frame[3 * i + 1], frame[3 * i + 2] = t, u, v
        com[i] = root[3, i] + (t * x + u * y + v * z)


@njit
def push(robot, joints, sums, frames, jacobian):
    """Adds the joints' columns to the Jacobian, from the root to the leaves.

    Args:
        robot: (B, COLUMNS).
        joints, sums: As pull left them.
        frames: (B, 9); the first row holds the root's axes, the others are overwritten.
        jacobian: (3, n) m or 1, columns of q.
    """
    whole = robot.view(np.uint64)
    x0, y0, z0, x1, y1, z1, x2, y2, z2 = take(frames[0])
    for k in range(1, robot.shape[0]):
        body, s, c, column = robot[k], joints[2, k], joints[3, k], whole[k, DRIVER]
        a, b, slide = -body[TURN] * sums[k, 1], body[TURN] * sums[k, 0], body[SLIDE]
        if whole[k, CHAINED]:
            x0, y0, z0, t0, u0 = tilted(x0, y0, z0, body, c, s)
            x1, y1, z1, t1, u1 = tilted(x1, y1, z1, body, c, s)
            x2, y2, z2, t2, u2 = tilted(x2, y2, z2, body, c, s)
        else:
            R = frames[whole[k, PARENT]]
            x0, y0, z0, t0, u0 = turned(R[0], R[1], R[2], body, c, s)
            x1, y1, z1, t1, u1 = turned(R[3], R[4], R[5], body, c, s)
            x2, y2, z2, t2, u2 = turned(R[6], R[7], R[8], body, c, s)
        jacobian[0, column] += a * t0 + b * u0 + slide * z0
        jacobian[1, column] += a * t1 + b * u1 + slide * z1
        jacobian[2, column] += a * t2 + b * u2 + slide * z2
        if whole[k, FORKS]:
            R = frames[k]
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
def take(R):
    """Gives the nine elements of R as a tuple."""
    return R[0], R[1], R[2], R[3], R[4], R[5], R[6], R[7], R[8]


@njit(cache=True)
def com_of_one(q, robot, root, com):
    """Computes the centre of mass.

    Args:
        q: (n,) joint positions, rad or m.
        robot: (B, COLUMNS).
        root: (4, 3), rows of R_world_root, then p_world_root in m.
        com: (3,) m, set to the centre of mass in the world.
    """
    count = robot.shape[0]
    sums = np.empty((count, 3))
    pull(q, robot, np.empty((4, (count + 7) // 8 * 8)), sums)
    place(robot, root, sums, np.empty(9), com)


@njit(cache=True)
def com_and_jacobian_of_one(q, robot, root, com, jacobian):
    """Computes the centre of mass and its Jacobian; arguments as of com_of_one.

    Args:
        jacobian: (3, n) for the joints alone, or (3, 6 + n) with the root's linear and angular
            velocity in world axes first; set.
    """
    count = robot.shape[0]
    joints = np.empty((4, (count + 7) // 8 * 8))
    sums, frames = np.empty((count, 3)), np.empty((count, 9))
    pull(q, robot, joints, sums)
    place(robot, root, sums, frames[0], com)
    jacobian[:] = 0.0
    push(robot, joints, sums, frames, jacobian[:, jacobian.shape[1] - q.size :])
    if jacobian.shape[1] > q.size:
        x, y, z = com[0] - root[3, 0], com[1] - root[3, 1], com[2] - root[3, 2]
        jacobian[0, 0] = jacobian[1, 1] = jacobian[2, 2] = 1.0
        jacobian[0, 4], jacobian[0, 5] = z, -y
        jacobian[1, 3], jacobian[1, 5] = -z, x
        jacobian[2, 3], jacobian[2, 4] = y, -x


# Many configurations: BLOCK of them stand side by side, so that every inner loop is the same
# arithmetic on neighbouring numbers. A body has five such rows of numbers, its "lanes"; in the end
# the first three hold its column of the Jacobian. Rows are reached by constant offsets: that shows
# the compiler that they do not overlap.

POSITION, SINE, COSINE, SUM_X, SUM_Y = 0, BLOCK, 2 * BLOCK, 3 * BLOCK, 4 * BLOCK
LANES = 5 * BLOCK
X, Y, Z = 0, BLOCK, 2 * BLOCK
VECTOR = 3 * BLOCK
MATRIX = 9 * BLOCK


@njit
def load(Q, start, robot, lanes):
    """Copies the positions of BLOCK configurations; past the last one, that one is repeated."""
    whole = robot.view(np.uint64)
    for b in range(BLOCK):
        q = Q[min(start + b, Q.shape[0] - 1)]
        for k in range(1, robot.shape[0]):
            lanes[k, b] = q[whole[k, DRIVER]]


@njit
def turn_lane(body, lane):
    """Sets the sines and cosines of a body's joint angles."""
    turn, offset = body[TURN], body[OFFSET]
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
def pull_chained(body, lane, below):
    """One body of pull: takes below (3 rows) from the sum of its children to its own share."""
    rx, ry, rz, slide = body[REST], body[REST + 1], body[REST + 2], body[SLIDE]
    tilt_c, tilt_s = body[COS_TILT], body[SIN_TILT]
    for b in range(BLOCK):
        s, c = lane[SINE + b], lane[COSINE + b]
        x, y, z = below[X + b] + rx, below[Y + b] + ry, below[Z + b] + rz + slide * lane[b]
        x, y = c * x - s * y, s * x + c * y
        lane[SUM_X + b], lane[SUM_Y + b] = x, y
        below[X + b] = x
        below[Y + b] = tilt_c * y - tilt_s * z
        below[Z + b] = tilt_s * y + tilt_c * z


@njit
def pull_free(body, lane, below, sums):
    """The same for a body that is not chained: adds its share to its parent's sums (3 rows)."""
    rx, ry, rz, slide = body[REST], body[REST + 1], body[REST + 2], body[SLIDE]
    xx, xy, xz, yx, yy, yz, zx, zy, zz = take(body[ALIGN:])
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
def pull_block(robot, lanes, saved, below):
    """Pull for a block; saved (B, MATRIX) is used up, below (VECTOR,) is set to the root's S."""
    whole = robot.view(np.uint64)
    for k in range(robot.shape[0]):
        if whole[k, FORKS]:
            saved[k, :VECTOR] = 0.0
    below[:] = 0.0
    for k in range(robot.shape[0] - 1, 0, -1):
        turn_lane(robot[k], lanes[k])
        if whole[k, FORKS]:
            add(saved[k], below)
        if whole[k, CHAINED]:
            pull_chained(robot[k], lanes[k], below)
        else:
            pull_free(robot[k], lanes[k], below, saved[whole[k, PARENT]])
    if whole[0, FORKS]:
        add(saved[0], below)
    for b in range(BLOCK):
        below[X + b] += robot[0, REST]
        below[Y + b] += robot[0, REST + 1]
        below[Z + b] += robot[0, REST + 2]


@njit
def add(sums, below):
    """Adds the first three rows of sums to below."""
    for b in range(VECTOR):
        below[b] += sums[b]


@njit
def push_chained(body, lane, frame):
    """One body of push: takes frame (9 rows) from its parent's axes to its own."""
    turn, slide, tilt_c, tilt_s = body[TURN], body[SLIDE], body[COS_TILT], body[SIN_TILT]
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
def push_free(body, lane, parent, frame):
    """The same for a body that is not chained: parent (9 rows) holds its parent's axes."""
    turn, slide = body[TURN], body[SLIDE]
    xx, xy, xz, yx, yy, yz, zx, zy, zz = take(body[ALIGN:])
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
def push_block(robot, axes, lanes, saved, frame):
    """Push for a block; axes (9,) are the root's, the columns come to stand in the lanes."""
    whole = robot.view(np.uint64)
    for i in range(9):
        frame[BLOCK * i : BLOCK * (i + 1)] = axes[i]
    saved[0] = frame
    for k in range(1, robot.shape[0]):
        if whole[k, CHAINED]:
            push_chained(robot[k], lanes[k], frame)
        else:
            push_free(robot[k], lanes[k], saved[whole[k, PARENT]], frame)
        if whole[k, FORKS]:
            saved[k] = frame


@njit
def store_com(robot, root, below, com):
    """Writes the centres of mass of the first configurations of a block, com (up to BLOCK, 3)."""
    sums, frame = np.empty((1, 3)), np.empty(9)
    for b in range(com.shape[0]):
        sums[0, 0], sums[0, 1], sums[0, 2] = below[X + b], below[Y + b], below[Z + b]
        place(robot, root, sums, frame, com[b])
    return frame


@njit
def store_jacobian(robot, lanes, jacobian):
    """Writes the Jacobians of the first configurations of a block, (up to BLOCK, 3, n)."""
    whole = robot.view(np.uint64)
    mimics = robot.shape[0] - 1 > jacobian.shape[2]
    for b in range(jacobian.shape[0]):
        if mimics:
            jacobian[b] = 0.0
            for i in range(3):
                for k in range(1, robot.shape[0]):
                    jacobian[b, i, whole[k, DRIVER]] += lanes[k, BLOCK * i + b]
        else:
            for i in range(3):
                for k in range(1, robot.shape[0]):
                    jacobian[b, i, k - 1] = lanes[k, BLOCK * i + b]


@njit(cache=True, nogil=True)
def com_of_many(Q, robot, root, com):
    """Computes the centres of mass of N configurations.

    Args:
        Q: (N, n) joint positions, rad or m.
        robot: (B, COLUMNS).
        root: (4, 3), rows of R_world_root, then p_world_root in m; the same for all.
        com: (N, 3) m, set to the centres of mass in the world.
    """
    count = robot.shape[0]
    lanes, saved = np.empty((count, LANES)), np.empty((count, MATRIX))
    below = np.empty(VECTOR)
    for start in range(0, Q.shape[0], BLOCK):
        load(Q, start, robot, lanes)
        pull_block(robot, lanes, saved, below)
        store_com(robot, root, below, com[start : start + BLOCK])


@njit(cache=True, nogil=True)
def com_and_jacobian_of_many(Q, robot, root, com, jacobian):
    """Computes the centres of mass of N configurations and their Jacobians.

    Args:
        jacobian: (N, 3, n), set; the others as of com_of_many.
    """
    count = robot.shape[0]
    lanes, saved = np.empty((count, LANES)), np.empty((count, MATRIX))
    below, frame = np.empty(VECTOR), np.empty(MATRIX)
    for start in range(0, Q.shape[0], BLOCK):
        load(Q, start, robot, lanes)
        pull_block(robot, lanes, saved, below)
        axes = store_com(robot, root, below, com[start : start + BLOCK])
        push_block(robot, axes, lanes, saved, frame)
        store_jacobian(robot, lanes, jacobian[start : start + BLOCK])
