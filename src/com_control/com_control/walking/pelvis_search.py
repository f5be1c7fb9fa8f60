"""The search for the pelvis position at which the CoM is at its target; compiled by numba.

Unknown is the pelvis' position t (3,) m; com_control.walking.pelvis_map computes the CoM for it.
Each point starts from an extrapolation of the ones before. [CCGD]'s Table 2 is available as an
alternative.
"""

from math import sqrt
from typing import NamedTuple

from com_control.walking.leg_ik import Rows, combine, inner, rows, scale, vector
from com_control.walking.pelvis_map import (
    CONVERGED,
    STALLED,
    ComMap,
    Record,
    Targets,
    com_of_pelvis,
    find_angles,
    make_map,
    read_targets,
)
from com_model.arrays import Array, Indices
from com_model.compiled import compiled
from com_model.geometry.vector_kernels import Vector, add, cross, dot, row, sub, turned


class Guess(NamedTuple):
    """A guess of the pelvis.

    Attributes:
        t: m, its position.
        inverse: of dCoM/dt, by rows.
        known: the inverse can be used.
    """

    t: Vector
    inverse: Rows
    known: bool


@inner
def inverse_by_differences(
    robot: Record, com_map: ComMap, t: Vector, com: Vector
) -> Rows:
    """Inverse of dCoM/dt by differences.

    Args:
        robot: constants of the robot.
        com_map: what feet and pelvis' orientation fix.
        t: m, place of the pelvis.
        com: m, the CoM there.
    """
    h = 1e-6  # m
    x = sub(com_of_pelvis(robot, com_map, (t[0] + h, t[1], t[2])), com)
    y = sub(com_of_pelvis(robot, com_map, (t[0], t[1] + h, t[2])), com)
    z = sub(com_of_pelvis(robot, com_map, (t[0], t[1], t[2] + h)), com)
    yz = cross(y, z)
    s = h / dot(x, yz)
    return scale(s, yz), scale(s, cross(z, x)), scale(s, cross(x, y))


@inner
def broyden_update(B: Rows, s: Vector, y: Vector) -> Rows:
    """Broyden's update of an inverse: B + (s - B y) (s^T B) / (s^T B y).

    Args:
        B: inverse of dCoM/dt, by rows.
        s: m, step of the pelvis.
        y: m, resulting step of the CoM.
    """
    By = turned(B, y)
    size = dot(s, By)
    if abs(size) < 1e-3 * dot(s, s) or size == 0.0:
        return B
    sB = combine(s[0], B[0], s[1], B[1], s[2], B[2])
    k = scale(1.0 / size, sub(s, By))
    return (
        add(B[0], scale(k[0], sB)),
        add(B[1], scale(k[1], sB)),
        add(B[2], scale(k[2], sB)),
    )


@inner
def find_pelvis(
    robot: Record, com_map: ComMap, target: Vector, tolerance: float, guess: Guess
) -> tuple[Guess, float]:
    """Finds t with CoM(t) = target: Newton's first step, Broyden's updates, halved where worse.

    Args:
        robot: constants of the robot.
        com_map: of feet and pelvis' orientation.
        target: m, CoM in the world.
        tolerance: m.
        guess: of the pelvis, with the inverse derivative if it is known.

    Returns:
        The last guess, known where it is within the tolerance; and the distance of the CoM to
        the target, m.
    """
    t, B, known = guess
    com = com_of_pelvis(robot, com_map, t)
    e = sub(target, com)
    size = dot(e, e)
    goal = tolerance * tolerance
    fresh = False
    longest = 0.25  # m, longest step of the pelvis
    for _ in range(40):
        if size <= goal:
            break
        if not known:
            B, known, fresh = inverse_by_differences(robot, com_map, t, com), True, True
        s = turned(B, e)
        length = dot(s, s)
        if length > longest * longest:
            s = scale(longest / sqrt(length), s)
        better = False
        for _ in range(8):
            t_new = add(t, s)
            com_new = com_of_pelvis(robot, com_map, t_new)
            e_new = sub(target, com_new)
            size_new = dot(e_new, e_new)
            if size_new < 0.5 * size or (fresh and size_new < size):
                better = True
                break
            if not fresh:
                break
            s = scale(0.5, s)
        if better:
            B = broyden_update(B, s, sub(com_new, com))
            known = size_new < 0.1 * size
            t, com, e, size, fresh = t_new, com_new, e_new, size_new, False
        elif fresh:
            break
        else:
            known = False
    error = sqrt(size)
    return Guess(t, B, error <= tolerance), error


@inner
def extrapolate(t1: Vector, t2: Vector, t3: Vector) -> Vector:
    """The next of three places on a parabola.

    Args:
        t1: the last one, m.
        t2: the one before.
        t3: the one before that.
    """
    return combine(3.0, t1, -3.0, t2, 1.0, t3)


@inner
def predict_pelvis(robot: Record, com: Vector, R: Rows) -> Vector:
    """First guess of the pelvis: extrapolated from the last three points of a smooth path.

    Otherwise the last position, or the one that is right in the nominal posture.

    Args:
        robot: constants and state of the robot.
        com: m, target in the world.
        R: orientation of the pelvis.
    """
    if robot.warm == 0:
        return sub(com, turned(R, vector(robot.offset)))
    last = robot.pelvis
    t1, t2, t3 = row(last, 0), row(last, 1), row(last, 2)
    step, bend = sub(t1, t2), combine(1.0, t1, -2.0, t2, 1.0, t3)
    # m^2: points of a path, and of a smooth one by their second difference
    if robot.solved >= 3 and dot(step, step) < 4e-4 and dot(bend, bend) < 1e-6:
        return extrapolate(t1, t2, t3)
    return t1


@inner
def solve_point(
    robot: Record,
    targets: Targets,
    com: Vector,
    tolerance: float,
    guess: Guess,
    values: Array,
) -> tuple[Guess, int]:
    """Solves one point from a guess; see solve_one.

    Args:
        robot: constants and state of the robot.
        targets: pelvis' orientation and poses of the soles.
        com: m, target in the world.
        tolerance: m.
        guess: of the pelvis.
        values: (16,) set.

    Returns:
        The pelvis, and the outcome.
    """
    com_map = make_map(robot, targets)
    found, error = find_pelvis(robot, com_map, com, tolerance, guess)
    outcome = find_angles(robot, com_map, targets, found.t)
    set_values(robot, found.t, error, values)
    return found, outcome | (CONVERGED if found.known else STALLED)


@inner
def set_values(robot: Record, t: Vector, error: float, values: Array) -> None:
    """Sets values by the last find_angles; see solve_one.

    Args:
        robot: whose work holds the angles.
        t: m, place of the pelvis.
        error: m, of the CoM.
        values: (16,) set.
    """
    for k in range(12):
        values[k] = robot.work[2, k]
    values[12], values[13], values[14], values[15] = t[0], t[1], t[2], error


@compiled()
def solve_one(
    com: Array, R: Array, feet: Array, robots: Array, tolerance: float, values: Array
) -> int:
    """Solves a point, starting from an extrapolation of the last ones.

    Args:
        com: (3,) m, target in the world.
        R: (3, 3) orientation of the pelvis.
        feet: (2, 3, 4) poses of the soles, left and right.
        robots: (1,) of ROBOT; its state is overwritten.
        tolerance: m, of the CoM.
        values: (16,) set to the legs' angles, rad, the pelvis' position, m, and the distance of
            the CoM to its target, m.

    Returns:
        The outcome.
    """
    robot, targets, target = robots[0], read_targets(R, feet), vector(com)
    start = predict_pelvis(robot, target, targets.pelvis)
    guess = Guess(start, rows(robot.inverse), robot.known > 0)
    found, outcome = solve_point(robot, targets, target, tolerance, guess, values)
    last, inverse = robot.pelvis, robot.inverse
    for k in range(3):
        last[2, k], last[1, k] = last[1, k], last[0, k]
        last[0, k], inverse[0, k] = found.t[k], found.inverse[0][k]
        inverse[1, k], inverse[2, k] = found.inverse[1][k], found.inverse[2][k]
    robot.known, robot.warm = 1 if found.known else 0, 1
    robot.solved = robot.solved + 1 if found.known else 0
    return outcome


@compiled(nogil=True)
def solve_path(
    com: Array,
    R: Array,
    feet: Array,
    robots: Array,
    tolerance: float,
    values: Array,
    outcomes: Indices,
) -> None:
    """Solves N points, at least one, one after the other, each predicted from the three before.

    The state of the robot is where the first one begins.

    Args:
        com: (N, 3) m, targets in the world.
        R: (N, 3, 3) orientations of the pelvis.
        feet: (N, 2, 3, 4) poses of the soles.
        robots: (1,) of ROBOT; its state is overwritten.
        tolerance: m, of the CoM.
        values: (N, 16), set as by solve_one.
        outcomes: (N,), set.
    """
    robot = robots[0]
    t1 = t2 = t3 = predict_pelvis(robot, row(com, 0), rows(R[0]))
    guess, age = Guess(t1, (t1, t1, t1), False), 0
    for i in range(len(com)):
        targets, target = read_targets(R[i], feet[i]), row(com, i)
        guess, outcomes[i] = solve_point(
            robot, targets, target, tolerance, guess, values[i]
        )
        age = age + 1 if guess.known else 0
        t3, t2, t1 = t2, t1, guess.t
        if age >= 3:
            guess = Guess(extrapolate(t1, t2, t3), guess.inverse, True)


@compiled(nogil=True)
def solve_in_steps(
    com: Array,
    R: Array,
    feet: Array,
    robots: Array,
    pelvis: Array,
    values: Array,
    outcomes: Indices,
) -> None:
    """Solves N points by [CCGD] Table 2, each from where the one before ended.

    t += a e / |e|,  e = target - CoM(t)  (eqs 18 to 20), until |e| < epsilon.

    Args:
        com: (N, 3) m, targets in the world.
        R: (N, 3, 3) orientations of the pelvis.
        feet: (N, 2, 3, 4) poses of the soles.
        robots: (1,) of ROBOT; its state is overwritten.
        pelvis: (3,) m, where the first one begins.
        values: (N, 16), set as by solve_one.
        outcomes: (N,), set.
    """
    robot, t = robots[0], vector(pelvis)
    precision = 0.001  # m, epsilon ([CCGD] Table 3)
    for i in range(len(com)):
        targets, target = read_targets(R[i], feet[i]), row(com, i)
        com_map = make_map(robot, targets)
        for _ in range(10_000):
            away = sub(target, com_of_pelvis(robot, com_map, t))
            error = sqrt(dot(away, away))
            if not error >= precision:
                break
            # m, a of eq. 20 ([CCGD] Table 3)
            t = add(t, scale(0.001 / error, away))
        outcomes[i] = find_angles(robot, com_map, targets, t)
        outcomes[i] |= CONVERGED if error < precision else STALLED
        set_values(robot, t, error, values[i])


@compiled()
def place_pelvis(t: Array, R: Array, feet: Array, robots: Array, com: Array) -> int:
    """CoM for a place of the pelvis; see solve_one.

    Args:
        t: (3,) m, place of the pelvis.
        R: (3, 3) its orientation.
        feet: (2, 3, 4) poses of the soles.
        robots: (1,) of ROBOT.
        com: (3,) m, set.

    Returns:
        The outcome.
    """
    robot = robots[0]
    targets = read_targets(R, feet)
    com_map = make_map(robot, targets)
    place = vector(t)
    com[0], com[1], com[2] = com_of_pelvis(robot, com_map, place)
    return find_angles(robot, com_map, targets, place)
