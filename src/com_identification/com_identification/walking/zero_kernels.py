"""What encoder zeros change in the equations of motion: Newton-Euler, differentiated, compiled.

Where joint b turns by a small angle about its axis z, what it carries turns with it, but the motion
before the joint stays: vectors v of a body d that it carries change, for each rad, by

  z x v - (lag of v)
  w:   u = z x w_up                        dw:  z x dw_up + u x (w_d - w_up)
  a:   z x a_b, and outwards from there    + (lag of dw) x r + u x (w x r) + w x (u x r)
  F:   E = m (lag of a) + (lag of dw) x h + u x (w x h) + w x (u x h)
  N:   T = I (lag of dw) + u x (I w) + w x (I u) + h x (lag of a)

E and T add up inwards as F and N do. So the torque of a joint d that b carries changes by -z_d . T,
and those before it by what F and N of b change by. The wrench on a foot keeps its axes: its lag is
z x f, and its arm turns. Other names are those of com_model.dynamics.inverse_dynamics.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from com_model.arrays import Array
from com_model.bodies import PRISMATIC, Indices
from com_model.dynamics.inverse_dynamics import Links
from com_model.dynamics.tree_kernels import Tree
from com_model.geometry.vector_kernels import (
    add,
    add_cross,
    add_scaled,
    cross,
    dot,
    row,
    set_row,
    sub,
    turned,
    turned_back,
)


class Feet(NamedTuple):
    """L feet, root axes; a wrench does not turn with its foot."""

    body: Indices  # (L,)
    point: Array  # (L, 3) m, where the ground acts
    center: Array  # (L, 3) m, of the ball, or origin of the sole: turns with the foot
    wrench: Array  # (L, 6) N, N m about the point


@njit
def take_off(robot: Tree, feet: Feet, links: Links) -> None:
    """Takes the wrenches off the loads on the feet and on what carries them."""
    points, wrenches = feet.point, feet.wrench
    for c in range(len(points)):
        f, b = row(wrenches[:, :3], c), feet.body[c]
        while b >= 0:
            links.force[b] -= wrenches[c, :3]
            links.torque[b] -= wrenches[c, 3:]
            add_cross(sub(row(points, c), row(links.p, b)), f, -1.0, links.torque[b])
            b = robot.parent[b]


@njit
def _set_lag(robot: Tree, links: Links, qd: Array, b: int, rest: Array, E: Array, T: Array) -> None:
    """Sets the lags of a (rest), F (E) and N (T), each (B, 3), of bodies that joint b carries."""
    up, z = robot.parent[b], row(links.axis, b)
    w_up = row(links.omega, up)
    u, g = cross(z, w_up), cross(z, row(links.omega_dot, up))
    for d in range(b, robot.subtree_end[b]):
        w, e, lag = row(links.omega, d), robot.parent[d], cross(z, row(links.acceleration, b))
        if d > b:
            r, w_e = sub(row(links.p, d), row(links.p, e)), row(links.omega, e)
            lag = add(row(rest, e), cross(add(g, cross(u, sub(w_e, w_up))), r))
            lag = add(lag, add(cross(u, cross(w_e, r)), cross(w_e, cross(u, r))))
            if robot.joint_type[d] == PRISMATIC:
                rate = 2.0 * robot.multiplier[d] * qd[robot.q_index[d]]
                lag = add_scaled(lag, rate, cross(u, row(links.axis, d)))
        set_row(rest, d, lag)
        rise, R, I_d = add(g, cross(u, sub(w, w_up))), links.R[d], robot.inertia[d]
        h = turned(R, row(robot.first_moment, d))
        load = add(cross(rise, h), add(cross(u, cross(w, h)), cross(w, cross(u, h))))
        set_row(E, d, add_scaled(load, robot.mass[d], lag))
        own, off = turned_back(R, w), turned_back(R, u)
        twist = add(cross(off, turned(I_d, own)), cross(own, turned(I_d, off)))
        twist = add(twist, turned(I_d, turned_back(R, rise)))
        set_row(T, d, add(turned(R, twist), cross(h, lag)))


@njit
def set_zero_columns(robot: Tree, qd: Array, links: Links, feet: Feet, Z: Array) -> None:
    """Sets Z (6 + n, n), which is 0, to -d(ID - J^T f) / dq; `links` is as take_off leaves it."""
    count = len(robot.mass)
    rest, E, T = np.empty((3, count, 3))
    for b in range(1, count):
        up, end, z = robot.parent[b], robot.subtree_end[b], row(links.axis, b)
        turn, slide, p = z, (0.0, 0.0, 0.0), row(links.p, b)
        if robot.joint_type[b] == PRISMATIC:
            turn, slide = slide, z
            w, dw = row(links.omega, up), row(links.omega_dot, up)
            a = add(cross(z, dw), cross(cross(w, z), w))
            for d in range(b, end):
                for i in range(3):
                    E[d, i] = links.mass[d] * a[i]
                set_row(T, d, cross(row(links.moment, d), a))
        else:
            _set_lag(robot, links, qd, b, rest, E, T)
            for c in range(len(feet.body)):
                d, f, m = feet.body[c], row(feet.wrench[:, :3], c), row(feet.wrench[:, 3:], c)
                if b <= d < end:
                    load = add(cross(sub(row(feet.point, c), row(links.p, d)), f), m)
                    add_cross(f, z, 1.0, E[d])
                    add_cross(load, z, 1.0, T[d])
                    add_cross(cross(z, sub(row(feet.center, c), row(links.p, d))), f, 1.0, T[d])
            for d in range(end - 1, b, -1):
                e = robot.parent[d]
                E[e] += E[d]
                T[e] += T[d]
                add_cross(sub(row(links.p, d), row(links.p, e)), row(E, d), 1.0, T[e])
        ratio, column = robot.multiplier[b], robot.q_index[b]
        for d in range(b, end):
            load = row(E, d) if robot.joint_type[d] == PRISMATIC else row(T, d)
            change = robot.multiplier[d] * dot(row(links.axis, d), load)
            Z[6 + robot.q_index[d], column] += ratio * change
        F, N = row(links.force, b), row(links.torque, b)
        N = sub(row(T, b), add(cross(turn, N), cross(slide, F)))
        F = sub(row(E, b), cross(turn, F))
        while up >= 0:
            moment = add(N, cross(sub(p, row(links.p, up)), F))
            if up > 0:
                load = F if robot.joint_type[up] == PRISMATIC else moment
                change = robot.multiplier[up] * dot(row(links.axis, up), load)
                Z[6 + robot.q_index[up], column] += ratio * change
            else:
                for i in range(3):
                    Z[i, column] += ratio * F[i]
                    Z[3 + i, column] += ratio * moment[i]
            up = robot.parent[up]
