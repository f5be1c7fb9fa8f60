"""Speed and safety of the CoM's inverse kinematics, on the ITU-like biped and on humanoids.

    com_ik_speed.py [--libraries PYTHON]

- path: the six steps of [CCGD] at 10 ms a point to 1e-6 m (feet: exact), in one batch and by one
  Python call a point, each point from the one before
- the same path to the same tolerance by Pinocchio (Newton's method in Python), placo and pink: see
  com_ik_libraries.py. Those that this Python has not are left out (null); --libraries names another
  Python that has them (placo 0.10.2, pin 3.8.0, pin-pink 4.4.0, qpsolvers[daqp] go together)
- [CCGD]'s algorithm as printed on that path, to its 1 mm (the paper: 2415 points a second)
- 10 000 cold starts: random feet and postures, the pelvis 0.1 m and less away in any direction
- whole body: one call a point for humanoids of 25 to 33 joints, to 1e-9 m; and with arms, waist
  and head that move from point to point

Where the speed comes from: with soles and pelvis' orientation given, three unknowns are left
instead of the 18 velocities of a floating base with twelve joints; the map from them to the CoM is
a closed form, and compiled. The libraries solve far more general problems: any tasks, any weights,
limits and inequalities within the solution; ours checks limits afterwards. The ratios are theirs
over ours of this one problem and no judgement of those libraries.

The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from baselines.ccgd import Ccgd
from baselines.leg_ik import LegIk
from baselines.paper_walk import paper_walk
from example_robots import example_urdfs
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.spatial.transform import Rotation

from com_control.walking.biped import Biped
from com_control.walking.com_ik import ClosedFormSolver, ComIk
from com_control.walking.walk_plan import Samples
from com_model import RobotConfig, RobotModel, Sesc

Array = NDArray[np.float64]
ROOT = Path(__file__).resolve().parents[1]
CONFIGS = ROOT / "src" / "robot_descriptions" / "config"
TOLERANCE = 1e-6  # m
COLD_STARTS = 10_000
HUMANOIDS = {
    "hoap2": "",
    "talos": "talos_data/robots/talos_reduced.urdf",
    "romeo": "romeo_description/urdf/romeo.urdf",
    "icub": "icub_description/robots/icub.urdf",
}


def best_time(call: Callable[[], object], repeats: int) -> float:
    """Shortest time of one call, s: what is left when others leave the processor alone."""
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def load(name: str) -> Biped:
    """A robot by the name of its configuration."""
    config = RobotConfig.from_file(CONFIGS / f"{name}.yaml")
    path = config.urdf or example_urdfs()[HUMANOIDS[name]]
    return Biped.from_config(RobotModel.from_file(path), config)


def one_by_one(ik: ComIk, points: list[tuple[Array, Array, Array]]) -> None:
    """Solves the walk by one call a point."""
    for com, feet, R in points:
        ik.step(com, feet, R, TOLERANCE)


def run_libraries(
    python: str, biped: Biped, walk: Samples, ik: ComIk
) -> dict[str, dict[str, float]]:
    """Runs the other libraries on the same path; by name, those that there are."""
    first = ik.solve(walk.com[0], walk.feet[0], walk.R_pelvis[0])
    with tempfile.TemporaryDirectory() as folder:
        urdf, problem = Path(folder) / "robot.urdf", Path(folder) / "problem.npz"
        urdf.write_text(biped.model.xml)
        quaternion = Rotation.from_matrix(walk.R_pelvis[0]).as_quat()
        np.savez(
            problem,
            com=walk.com,
            feet=walk.feet,
            R_pelvis=walk.R_pelvis,
            tolerance=TOLERANCE,
            first=np.concatenate((first.pelvis, quaternion, first.q)),
        )
        command = [
            python,
            str(Path(__file__).with_name("com_ik_libraries.py")),
            str(urdf),
        ]
        done = subprocess.run(
            [*command, str(problem)], capture_output=True, text=True, check=False
        )
    if done.returncode:
        raise SystemExit(f"{python} failed on com_ik_libraries.py:\n{done.stderr}")
    found = json.loads(done.stdout.splitlines()[-1])
    return {name: result for name, result in found.items() if result}


def cold_starts(biped: Biped, count: int) -> tuple[int, float]:
    """Failures and the largest error from starts up to 0.1 m away from the solution."""
    solver, rng = ClosedFormSolver(biped), np.random.default_rng(0)
    com: list[Array] = []
    feet: list[Array] = []
    R: list[Array] = []
    pelvis: list[Array] = []
    while len(com) < count:
        poses = np.zeros((2, 3, 4))
        poses[:, :, :3] = Rotation.from_euler(
            "z", rng.uniform(-0.3, 0.3, (2, 1))
        ).as_matrix()
        poses[:, 1, 3] = 0.065, -0.065
        poses[:, :, 3] += rng.uniform(-1.0, 1.0, (2, 3)) * [0.2, 0.03, 0.04]
        turn = Rotation.from_euler("z", rng.uniform(-0.2, 0.2)).as_matrix()
        place = np.array([0.0, 0.0, 0.79]) + rng.uniform(-1.0, 1.0, 3) * [
            0.06,
            0.05,
            0.07,
        ]
        target, outcome = solver.map_pelvis(place, poses, turn)
        if outcome == 0:  # a posture that reach and limits allow
            com.append(target)
            feet.append(poses)
            R.append(turn)
            pelvis.append(place)
    away = rng.normal(size=(count, 3))
    away *= (
        0.1
        * rng.uniform(0.0, 1.0, (count, 1)) ** (1 / 3)
        / np.linalg.norm(away, axis=1)[:, None]
    )
    starts = np.array(pelvis) + away
    ik, found = ComIk(biped), []
    for i, start in enumerate(starts):
        ik.restart(start)
        found.append(ik.step(com[i], feet[i], R[i], TOLERANCE))
    return sum(point.outcome != 0 for point in found), max(
        point.error for point in found
    )


def whole_body(name: str) -> tuple[float, float]:
    """Microseconds of a point for a humanoid whose CoM circles over its feet.

    With what is above the legs at rest; and with arms, waist and head that move at each point.
    """
    biped = load(name)
    ik = ComIk(biped)
    feet = np.empty((2, 3, 4))
    for foot, leg in zip(feet, biped.legs, strict=True):
        foot[:, :3], foot[:, 3] = LegIk(leg).pose(leg.nominal)
    R, p = biped.root_in_pelvis()
    middle = p + R @ Sesc(biped.model).com(biped.posture) - [0.0, 0.0, 0.005]
    turns = np.linspace(0.0, 2 * np.pi, 500)
    path = middle + 0.01 * np.column_stack((np.sin(turns), np.cos(turns), 0 * turns))
    wrong = sum(ik.step(com, feet).outcome != 0 for com in path)
    if wrong:
        raise SystemExit(f"{name}: {wrong} points of the path are not solved")
    others = np.ones(biped.model.n_joints, dtype=bool)
    others[np.concatenate([leg.joints for leg in biped.legs])] = False
    postures = [biped.posture + 0.05 * np.sin(turn) * others for turn in turns]

    def moving() -> int:
        wrong = 0
        for com, q in zip(path, postures, strict=True):
            ik.set_upper_body(q)
            wrong += ik.step(com, feet).outcome != 0
        return wrong

    if moving():
        raise SystemExit(
            f"{name}: not all points of the path are solved while the arms move"
        )
    at_rest = best_time(lambda: [ik.step(com, feet) for com in path], 15)
    return 1e6 * at_rest / len(path), 1e6 * best_time(moving, 15) / len(path)


def main() -> None:
    """Measures and prints the tables and the JSON line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--libraries", default=sys.executable, metavar="PYTHON")
    options = parser.parse_args()
    biped = load("itu_biped")
    ik, printed = ComIk(biped), Ccgd(biped)
    plan = paper_walk()
    walk = plan.sample(plan.grid(0.01))
    count = len(walk.time)
    arguments = walk.com, walk.feet, walk.R_pelvis
    batch = (
        1e6
        * best_time(lambda: ik.solve_path(*arguments, tolerance=TOLERANCE), 60)
        / count
    )
    points = [
        (walk.com[i].copy(), walk.feet[i].copy(), walk.R_pelvis[i].copy())
        for i in range(count)
    ]
    call = 1e6 * best_time(lambda: one_by_one(ik, points), 30) / count
    exact = ik.solve_path(*arguments, tolerance=1e-12)
    start = exact.pelvis[0]
    ccgd = best_time(lambda: printed.solve_path(*arguments, start), 20) / count
    others = run_libraries(options.libraries, biped, walk, ik)
    failures, worst = cold_starts(biped, COLD_STARTS)
    whole = {name: whole_body(name) for name in HUMANOIDS}

    console = Console(width=100)
    table = Table(title=f"six steps, {count} points, microseconds a point")
    for heading in ("solver", "us", "over ours", "largest error, m"):
        table.add_column(heading, justify="right")
    table.add_row("batch", f"{batch:.3f}", "1", f"{TOLERANCE:g}")
    table.add_row(
        "one call a point", f"{call:.3f}", f"{call / batch:.1f}", f"{TOLERANCE:g}"
    )
    table.add_row(
        "CCGD as printed", f"{1e6 * ccgd:.2f}", f"{1e6 * ccgd / batch:.1f}", "1e-3"
    )
    for name, result in others.items():
        row = (
            f"{result['us']:.1f}",
            f"{result['us'] / batch:.0f}",
            f"{result['error']:.1e}",
        )
        table.add_row(name, *row)
    console.print(table)
    humanoids = Table(
        title="whole body, one call a point to 1e-9 m, us: arms at rest, moving"
    )
    for heading in whole:
        humanoids.add_column(heading, justify="right")
    humanoids.add_row(*(f"{one:.2f}, {other:.2f}" for one, other in whole.values()))
    console.print(humanoids)
    names = ("placo", "pinocchio", "pink")
    ratios = {
        n: round(others[n]["us"] / batch, 1) if n in others else None for n in names
    }
    summary = {
        "batch_us": round(batch, 3),
        "call_us": round(call, 3),
        "ratio_batch": ratios,
        "ccgd_points_per_s": round(1.0 / ccgd),
        "cold_starts": COLD_STARTS,
        "failures": failures,
        "max_error_m": worst,
        "max_error_exact_m": float(exact.errors.max()),
        "whole_body_us": {name: round(rest, 2) for name, (rest, _) in whole.items()},
        "whole_body_moving_us": {
            name: round(moving, 2) for name, (_, moving) in whole.items()
        },
    }
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
