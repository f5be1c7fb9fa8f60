"""Compiled: the centre of mass and its Jacobian at one configuration.

The robot comes as the array that com_model.sesc.sesc makes: a row a quantity, a column a body,
in the order of com_model.bodies. Joints rotate about, or move along, the z axes of aligned frames.
With C the constant rotation from a body's to its parent's axes, Z the joint's turn about z, t its
travel times the fraction of the mass that it moves, and r the body's SESC vector:

  pull, from the leaves to the root   S = t e_z + Z (r + sum over the children of C_j S_j)
  CoM  = p_root + R_root S_root
  push, from the root to the leaves   X = R_parent C,  R = X Z
  column of a joint                   turn X (e_z x S) + slide X e_z

So the CoM needs no orientation and the Jacobian no position (docs/derivations.md). No fastmath:
sums keep their order and NaN stays NaN, so that a NaN in q is seen in what depends on it. Shapes
are not checked here.
"""

import numpy as np
from numba import njit

from com_model.arrays import Array
from com_model.compiled import compiled

Row = tuple[float, float, float, float, float]
Nine = tuple[float, float, float, float, float, float, float, float, float]

# Rows of a packed robot.
PARENT = 0  # index of the parent body; of the root: B, the number of bodies
DRIVER = 1  # index into q of the joint that moves the body
# 1: the parent is the body before this one, and C is a turn about x by "tilt"
CHAINED = 2
FORKS = 3  # 1: some child is not chained, so that this body must be remembered
TURN = 4  # rad per unit of q; 0 for a prismatic joint
OFFSET = 5  # rad
SLIDE = 6  # m per unit of q, times the subtree's fraction of the mass; 0 for a revolute joint
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

FAR = 1.0e5  # rad; beyond it the library's sine and cosine take over


@njit
def sincos(angle: float) -> tuple[float, float]:
    """Computes sine and cosine without a branch, so that a loop over it runs in vector registers.

    Both are to 1.2e-16 absolute for |angle| <= FAR, rad; NaN and infinity give NaN. Adding and
    subtracting 1.5 * 2**52 rounds to a whole number of quarter turns. These are taken off in three
    parts of pi / 2, of which the first two have 33 bits, so that multiples up to 2**20 are exact;
    then Taylor series economised on |r| <= pi / 4: errors 1.8e-17 (of sine, relative) and 9e-19
    (of cosine).
    """
    quarters = (angle * 0.6366197723675814 + 6755399441055744.0) - 6755399441055744.0
    r = (
        (angle - quarters * 1.5707963267341256) - quarters * 6.077100506303966e-11
    ) - quarters * 2.0222662487959506e-21
    z = r * r
    sine = -0.00019841269836741755 + z * (
        2.755731609375319e-06
        + z * (-2.505112999912784e-08 + z * 1.5917995630635248e-10)
    )
    sine = r + r * (z * (-0.16666666666666666 + z * (0.008333333333330938 + z * sine)))
    cosine = 2.480158729875508e-05 + z * (
        -2.7557317266186513e-07
        + z * (2.0876145106497293e-09 + z * -1.1382548343152154e-11)
    )
    cosine = 1.0 - (
        0.5 * z
        - z * z * (0.041666666666666664 + z * (-0.001388888888888739 + z * cosine))
    )
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
def index(number: float) -> int:
    """Reads an index out of a packed robot; never negative, which saves numba a branch."""
    return np.uint64(np.int64(number))


@njit
def take(R: Array) -> Nine:
    """Gives the nine elements of R."""
    return R[0], R[1], R[2], R[3], R[4], R[5], R[6], R[7], R[8]


@njit
def place_root(robot: Array, R: Array, p: Array, frame: Array) -> bool:
    """Puts the root at R (3, 3), p (3,) m in the world; whether R is a rotation (to 1e-6).

    frame (12,) is set to the root's aligned axes in the world, by rows, and to p.
    """
    fine = True
    for i in range(3):
        frame[ORIGIN + i] = p[i]
        for j in range(3):
            a, b, c = (
                robot[ALIGN + j, 0],
                robot[ALIGN + 3 + j, 0],
                robot[ALIGN + 6 + j, 0],
            )
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


@njit
def pull(q: Array, robot: Array) -> None:
    """Gathers the SESC vectors from the leaves to the root.

    Sets the rows POSITIONS to COSINES, and SUMS (of the root, of others S_x and S_y only).
    """
    count = int(robot[PARENT, 0])
    robot[ANGLES] = robot[SUMS] = robot[SUMS + 1] = robot[SUMS + 2] = 0.0
    for k in range(1, count):
        robot[POSITIONS, k] = q[index(robot[DRIVER, k])]
        robot[ANGLES, k] = robot[TURN, k] * robot[POSITIONS, k] + robot[OFFSET, k]
    fill_sincos(robot[ANGLES], robot[SINES], robot[COSINES])
    x = y = z = 0.0
    for k in range(count - 1, 0, -1):
        x, y, z = x + robot[REST, k], y + robot[REST + 1, k], z + robot[REST + 2, k]
        if robot[FORKS, k] > 0.0:
            x, y, z = x + robot[SUMS, k], y + robot[SUMS + 1, k], z + robot[SUMS + 2, k]
        c, s = robot[COSINES, k], robot[SINES, k]
        x, y, z = (
            c * x - s * y,
            s * x + c * y,
            z + robot[SLIDE, k] * robot[POSITIONS, k],
        )
        robot[SUMS, k], robot[SUMS + 1, k] = x, y
        if robot[CHAINED, k] > 0.0:
            c, s = robot[COS_TILT, k], robot[SIN_TILT, k]
            y, z = c * y - s * z, s * y + c * z
        else:
            parent = index(robot[PARENT, k])
            for i in range(3):
                row = ALIGN + 3 * i
                moved = (
                    robot[row, k] * x + robot[row + 1, k] * y + robot[row + 2, k] * z
                )
                robot[SUMS + i, parent] += moved
            x = y = z = 0.0
    robot[SUMS, 0] += x + robot[REST, 0]
    robot[SUMS + 1, 0] += y + robot[REST + 1, 0]
    robot[SUMS + 2, 0] += z + robot[REST + 2, 0]


@njit
def tilted(x: float, y: float, z: float, robot: Array, k: int) -> Row:
    """Takes one row of R_parent, (x, y, z), through chained body k, whose C is a turn about x.

    Gives the row of R (three numbers), and of X the first two; its third is that of R.
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
    x0, y0, z0, x1, y1, z1, x2, y2, z2 = take(robot[AXES:, 0])
    for k in range(1, int(robot[PARENT, 0])):
        if robot[CHAINED, k] > 0.0:
            x0, y0, z0, t0, u0 = tilted(x0, y0, z0, robot, k)
            x1, y1, z1, t1, u1 = tilted(x1, y1, z1, robot, k)
            x2, y2, z2, t2, u2 = tilted(x2, y2, z2, robot, k)
        else:
            R = robot[AXES:, index(robot[PARENT, k])]
            x0, y0, z0, t0, u0 = turned(R[0], R[1], R[2], robot, k)
            x1, y1, z1, t1, u1 = turned(R[3], R[4], R[5], robot, k)
            x2, y2, z2, t2, u2 = turned(R[6], R[7], R[8], robot, k)
        turn, slide, column = robot[TURN, k], robot[SLIDE, k], index(robot[DRIVER, k])
        a, b = -turn * robot[SUMS + 1, k], turn * robot[SUMS, k]
        jacobian[0, column] += a * t0 + b * u0 + slide * z0
        jacobian[1, column] += a * t1 + b * u1 + slide * z1
        jacobian[2, column] += a * t2 + b * u2 + slide * z2
        if robot[FORKS, k] > 0.0:
            R = robot[AXES:, k]
            R[0], R[1], R[2] = x0, y0, z0
            R[3], R[4], R[5] = x1, y1, z1
            R[6], R[7], R[8] = x2, y2, z2


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
    """Sets com (3,) m to the centre of mass in the root's frame at q (n,) rad or m.

    The last rows of the robot (ROWS, B rounded up to a multiple of 8) are overwritten.
    """
    keep_root(robot)
    find_com(q, robot, com)


@compiled()
def com_and_jacobian_of_one(
    q: Array, robot: Array, com: Array, jacobian: Array
) -> None:
    """Computes com_of_one and its Jacobian in the root's frame.

    Args:
        q: (n,) joint positions, rad or m.
        robot: packed by com_model.sesc.sesc.
        com: (3,) m, set.
        jacobian: set; (3, n) for the joints alone, or (3, 6 + n) with the root's linear and
            angular velocity first.
    """
    keep_root(robot)
    find_jacobian(q, robot, com, jacobian)


@compiled()
def com_of_placed(q: Array, robot: Array, R: Array, p: Array, com: Array) -> bool:
    """Computes com_of_one with the root in a pose.

    Args:
        q: (n,) joint positions, rad or m.
        robot: packed by com_model.sesc.sesc.
        R: (3, 3) orientation of the root.
        p: (3,) m, its origin.
        com: (3,) m, set.

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
    """Computes com_and_jacobian_of_one with the root in a pose.

    Args:
        q: (n,) joint positions, rad or m.
        robot: packed by com_model.sesc.sesc.
        R: (3, 3) orientation of the root.
        p: (3,) m, its origin.
        com: (3,) m, set.
        jacobian: set, as in com_and_jacobian_of_one.

    Returns:
        Whether R is a rotation.
    """
    fine = place_root(robot, R, p, robot[AXES:, 0])
    find_jacobian(q, robot, com, jacobian)
    return fine
