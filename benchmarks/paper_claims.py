"""What the five papers claim in passing, worked out: equations as printed, and how few postures do.

[Muscolo] eq36_mm        l_b and l_c of links of 200 and 250 mm with r = (7, -12) mm, by the system
                         with eq. 36 as printed, and with its sign put right
          com_gain       standard deviation of l_b by that of x and z of the total CoM in both
                         postures: from heights alone (the listing), by the whole system
[Cotton]  held_out_mm    VI.B, HOAP-3: horizontal CoM predicted in other postures, RMS, by the
                         number of tip-over postures, each of which gives one equation; least norm
                         where they are too few; "2 mm" has noise of 2 mm on each
          rank, unknowns of all equations there can be, and how many numbers there are
          eq9            HOAP-3's joint whose column of the CoM's Jacobian is most wrong by eq. 9,
                         which lets a joint of one branch move the branches behind it: length of the
                         column as printed, by finite differences, by ours, m/rad
[CCGD]    first_point_ms  its algorithm as printed, from where the robot stands to the first point
          first_steps    how many steps of 1 mm that were
          zmp_m          on the paper's soles and soft contact, distance of the ZMP by the feet's
                         sensors to the planned one: mean and largest, as printed and refined
[Ding]    eq19           a trot without feedback of the CoM, swing feet's heights compensated (on:
                         for tilts up to the node's bound; unbounded: for all) or not (off): RMS of
                         the roll in degrees; null: it fell, at fell_s

The last line is one JSON object.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from baselines.ccgd import Ccgd
from baselines.muscolo import links_from_heights
from baselines.paper_walk import paper_walk
from ccgd_walk import PAPER_STEP
from com_ik_speed import best_time, load
from identification_papers import system_of
from numpy.typing import NDArray
from processes import in_processes
from trot_lab import CLEAN, TrotRun, run_trot
from walk_playback import measured_zmp
from walk_scenarios import itu_biped, paper_plan, simulate, walk_by, world_for

from com_control.walking.walk_plan import find_stance
from com_model import RobotModel, Sesc, load_robot
from com_model.dynamics.kinematics import link_pose_batch
from com_simulation.exceptions import DivergedError

Array = NDArray[np.float64]

LINKS = np.array([[7.0, 200.0], [-12.0, 250.0]])  # mm, r and l
COUNTS = (21, 24, 40, 52, 80, 200)
NOISY = (52, 80, 200)
OTHERS, SEEDS, NOISE = 300, 10, 0.002
MOST_TILT = np.radians(20.0)  # at which postures tip over
OFFSETS = ((-0.03, 0.03), (-0.10, 0.10))  # m, of the trunk's CoM
DIFFERENCE = 1e-6  # rad
TROT, FALLEN = 4.0, np.radians(45.0)  # s, rad
SWING = {
    "off": {"swing_compensation": False},
    "on": {"swing_compensation": True},
    "unbounded": {"swing_compensation": True, "max_compensation": 1.0},
}


def muscolo() -> dict[str, Any]:
    """Eq. 36 as printed and corrected; how errors of the total CoM grow."""
    A, a = system_of(LINKS)
    printed = A.copy()
    printed[2, 2] *= -1.0
    lengths = {
        name: np.round(np.linalg.solve(matrix, a)[1::2], 1).tolist()
        for name, matrix in (("printed", printed), ("corrected", A))
    }
    gains = []
    for unit in np.eye(4).reshape(4, 2, 2):
        change = system_of(LINKS, unit)[1] - a
        gains.append([links_from_heights(A, change)[0], np.linalg.solve(A, change)[1]])
    heights, whole = np.linalg.norm(gains, axis=0)
    gain = {"heights": round(float(heights)), "whole": round(float(whole))}
    return {"eq36_mm": lengths, "com_gain": gain}


def equations(
    model: RobotModel, foot: str, count: int, seed: int
) -> tuple[Array, Array]:
    """Rows (count, 3 B) and right sides (count,) m of postures that tip over an edge of a sole.

    At that moment the CoM is above the edge: one coordinate of it is known in axes of the sole that
    are tilted with it. As [Cotton] eq. 14 it is d^T [R_0 ... R_n] r, r of any kind.
    """
    rng = np.random.default_rng(seed)
    q, R, com = postures(model, foot, count, rng)
    tilt, way = rng.uniform(-MOST_TILT, MOST_TILT, count), rng.integers(2, size=count)
    d = np.zeros((count, 3))
    d[np.arange(count), way], d[:, 2] = np.cos(tilt), np.sin(tilt)
    d = np.einsum("nij,nj->ni", R, d)
    return directed(model, q, d), np.einsum("ni,ni->n", d, com)


def postures(
    model: RobotModel, foot: str, count: int, rng: np.random.Generator
) -> tuple[Array, Array, Array]:
    """Joint positions, rotation of the sole (N, 3, 3), CoM (N, 3) m; root axes."""
    q = rng.uniform(model.lower, model.upper, (count, model.n_joints))
    return q, link_pose_batch(model, q, foot)[0], Sesc(model).com_batch(q)


def directed(model: RobotModel, q: Array, d: Array) -> Array:
    """Rows d^T [R_0 ... R_n], (N, 3 B)."""
    parts = [
        np.einsum("ni,nij->nj", d, link_pose_batch(model, q, name)[0])
        for name in model.bodies.names
    ]
    return np.concatenate(parts, axis=1)


def cotton() -> dict[str, Any]:
    """How many tip-over postures predict others."""
    model, config = load_robot("hoap3")
    foot = config.feet[0].frame
    rng = np.random.default_rng(99)
    q, R, com = postures(model, foot, OTHERS, rng)

    def held_out(count: int, noise: float) -> float:
        errors = []
        for seed in range(SEEDS):
            A, y = equations(model, foot, count, seed)
            y = y + noise * np.random.default_rng([seed, 1]).normal(size=count)
            r = np.linalg.pinv(A, rcond=1e-10) @ y
            axes = [directed(model, q, R[:, :, i]) @ r for i in range(2)]
            true = [np.einsum("ni,ni->n", R[:, :, i], com) for i in range(2)]
            errors.append(np.subtract(axes, true))
        return round(1e3 * float(np.sqrt(np.mean(np.square(errors)) * 2.0)), 3)

    found: dict[str, Any] = {"exact": {str(n): held_out(n, 0.0) for n in COUNTS}}
    found["2 mm"] = {str(n): held_out(n, NOISE) for n in NOISY}
    A = equations(model, foot, 500, 0)[0]
    return {
        "held_out_mm": found,
        "rank": int(np.linalg.matrix_rank(A)),
        "unknowns": A.shape[1],
    }


def branches() -> dict[str, Any]:
    """Eq. 9 where there are branches: the backtracked rotations depend on the joints gone back."""
    model, config = load_robot("hoap3")
    sesc, q = Sesc(model), config.nominal_posture(model)
    bodies, ours = model.bodies, sesc.com_and_jacobian(q)[1]
    r = dict(zip(sesc.chain_links, sesc.parameters_at(q), strict=True))
    R = [link_pose_batch(model, q[None], name)[0][0] for name in bodies.names]
    steps = [
        R_k @ r.get(name, np.zeros(3))
        for R_k, name in zip(R, bodies.names, strict=True)
    ]
    found = {}
    for b in range(1, bodies.count):
        printed = np.cross(R[b] @ bodies.axis[b], np.sum(steps[b:], axis=0))
        turn = DIFFERENCE * np.eye(model.n_joints)[bodies.q_index[b]]
        true = (sesc.com(q + turn) - sesc.com(q - turn)) / (2.0 * DIFFERENCE)
        lengths = [
            np.linalg.norm(v) for v in (printed, true, ours[:, bodies.q_index[b]])
        ]
        found[bodies.joint_names[b]] = (np.linalg.norm(printed - true), lengths)
    joint = max(found, key=lambda name: found[name][0])
    names, lengths = ("printed", "true", "ours"), np.round(found[joint][1], 4).tolist()
    return {"eq9": {"joint": joint} | dict(zip(names, lengths, strict=True))}


def zmp() -> dict[str, Any]:
    """How far the measured ZMP is from the planned one."""
    robot, table = itu_biped(), {}
    for method in ("ccgd", "refined"):
        walk = walk_by(method, robot, paper_plan(PAPER_STEP))
        world = world_for(robot, walk)
        found = measured_zmp(world, simulate(world, walk))[: len(walk.zmp)]
        away = np.linalg.norm((found - walk.zmp[: len(found)])[:, :2], axis=1)
        table[method] = np.round([np.nanmean(away), np.nanmax(away)], 3).tolist()
    return {"zmp_m": table}


def ccgd() -> dict[str, Any]:
    """The first point of the walk, from where the robot stands."""
    biped = load("itu_biped")
    algorithm, walk = Ccgd(biped), paper_walk().sample(np.zeros(1))
    start = find_stance(biped, biped.posture).p_walk_root
    target = walk.com, walk.feet, walk.R_pelvis
    path = algorithm.solve_path(*target, start)
    seconds = best_time(lambda: algorithm.solve_path(*target, start), 300)
    return {
        "first_point_ms": round(1e3 * seconds, 4),
        "first_steps": int(path.steps[0]),
    }


def trot(item: tuple[tuple[float, float], str]) -> tuple[float | None, float | None]:
    """RMS of the roll, degrees, and when it fell, s."""
    offset, swing = item
    run = TrotRun(
        "scalf2", offset=(*offset, 0.0), seconds=TROT, noise=CLEAN, gait=SWING[swing]
    )
    try:
        log = run_trot(run)
    except DivergedError:
        return None, 0.0
    fallen = np.flatnonzero(log.R_world_root[:, 2, 2] < np.cos(FALLEN))
    if fallen.size:
        return None, round(float(log.time[fallen[0]]), 2)
    return round(float(np.degrees(np.sqrt(np.mean(log.roll**2)))), 2), None


def ding() -> dict[str, Any]:
    """Eq. 19 on, without a bound, and off."""
    items = [(offset, swing) for offset in OFFSETS for swing in SWING]
    results = in_processes(trot, items, "trots", 2)
    table: dict[str, Any] = {}
    for (offset, swing), (roll, fell) in zip(items, results, strict=True):
        name = "{:.0f}, {:.0f} cm".format(*(1e2 * v for v in offset))
        table.setdefault(name, {})[swing] = {"roll_deg": roll, "fell_s": fell}
    return {"eq19": table}


def main() -> None:
    """Prints all of it."""
    figures: dict[str, Any] = {}
    for part in (muscolo, cotton, branches, ccgd, zmp, ding):
        found = part()
        print(part.__name__, found, flush=True)
        figures |= found
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
