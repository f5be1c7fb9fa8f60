"""CoM and Jacobian of the SESC against Pinocchio, MuJoCo and finite differences.

Every URDF of example-robot-data that loads, random configurations within the limits, floating
and fixed base. Errors are relative to the robot's size: the longest way from its root to a body's
centre of mass along the joints. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from oracles import (
    MujocoOracle,
    PinocchioOracle,
    example_urdfs,
    random_pose,
    random_positions,
    robot_size,
)
from rich.console import Console
from rich.progress import track
from rich.table import Table

from com_model import RobotModel, Sesc, UrdfError

Array = NDArray[np.float64]
Result = tuple[Array, Array]
STEP = 1e-5  # rad or m, of the central differences
KEYS = (
    "com",
    "jacobian",
    "fixed_com",
    "fixed_jacobian",
    "mujoco",
    "differences",
    "chain",
)


def largest_errors(ours: Result, theirs: Result, size: float) -> tuple[float, float]:
    """Largest difference of the CoM, and of the Jacobian, over the robot's size.

    Columns of the Jacobian that belong to prismatic joints have no length in them and are compared
    as if they had: robots are of the order of a metre.
    """
    com = float(np.abs(ours[0] - theirs[0]).max()) / size
    return com, float(np.abs(ours[1] - theirs[1]).max(initial=0.0)) / size


def differences(com: Callable[[Array], Array], q: Array) -> Array:
    """Central differences of com at q; (3, n)."""
    columns = [
        (com(q + STEP * e) - com(q - STEP * e)) / (2.0 * STEP) for e in np.eye(q.size)
    ]
    return np.array(columns).reshape(q.size, 3).T


def measure(model: RobotModel, path: Path, count: int, seed: int) -> dict[str, float]:
    """Largest errors of one robot over `count` configurations; NaN where MuJoCo refuses it."""
    rng, sesc, size = np.random.default_rng(seed), Sesc(model), robot_size(model)
    floating = PinocchioOracle(model, path, floating=True)
    fixed = PinocchioOracle(model, path, floating=False)
    try:
        mujoco = MujocoOracle(model, path)
    except ValueError:
        mujoco = None
    worst = dict.fromkeys(KEYS, 0.0)

    def note(**errors: float) -> None:
        for key, error in errors.items():
            worst[key] = max(worst[key], error if error == error else np.inf)

    for _ in range(count):
        q, (R, p) = random_positions(model, rng), random_pose(rng)
        ours = sesc.com_and_jacobian(q, R, p, floating=True)
        com, jacobian = largest_errors(ours, floating.com_and_jacobian(q, R, p), size)
        note(com=com, jacobian=jacobian)
        in_root = sesc.com_and_jacobian(q)
        com, jacobian = largest_errors(in_root, fixed.com_and_jacobian(q, R, p), size)
        note(fixed_com=com, fixed_jacobian=jacobian)
        note(chain=float(np.abs(sesc.chain(q, R, p)[-1] - ours[0]).max()) / size)
        if mujoco is not None:
            note(
                mujoco=max(largest_errors(ours, mujoco.com_and_jacobian(q, R, p), size))
            )
    numeric = differences(sesc.com, q)
    note(differences=float(np.abs(numeric - in_root[1]).max(initial=0.0)) / size)
    if mujoco is None:
        worst["mujoco"] = np.nan
    return worst


def load(path: Path) -> RobotModel | str:
    """The model of a URDF, or why it is refused."""
    try:
        return RobotModel.from_file(path)
    except UrdfError as error:
        return str(error)


def show(
    console: Console, results: dict[str, dict[str, float]], sizes: dict[str, float]
) -> None:
    """Prints a row a robot."""
    table = Table(title="largest errors, relative to the robot's size")
    for heading in ("URDF", "size m", *KEYS):
        table.add_column(heading, justify="left" if heading == "URDF" else "right")
    for name, errors in results.items():
        cells = ["-" if np.isnan(errors[key]) else f"{errors[key]:.1e}" for key in KEYS]
        table.add_row(name, f"{sizes[name]:.2f}", *cells)
    console.print(table)


def main() -> None:
    """Measures all robots and prints the table and the JSON line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--configurations", type=int, default=100, help="per robot (100)"
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="of the random configurations (0)"
    )
    arguments = parser.parse_args()
    console = Console(width=140)
    urdfs = example_urdfs()
    loaded, refused = {}, {}
    for name, path in urdfs.items():
        model = load(path)
        if isinstance(model, str):
            refused[name] = model
        else:
            loaded[name] = model
    results = {
        name: measure(model, urdfs[name], arguments.configurations, arguments.seed)
        for name, model in track(
            loaded.items(), "robots", console=console, transient=True
        )
    }
    show(console, results, {name: robot_size(model) for name, model in loaded.items()})

    def worst(*keys: str) -> float:
        values = [errors[key] for errors in results.values() for key in keys]
        return float(np.nanmax(values))

    summary = {
        "urdfs_total": len(urdfs),
        "urdfs_loaded": len(loaded),
        "urdfs_refused": refused,
        "configurations": arguments.configurations,
        "max_error_com": worst("com", "fixed_com"),
        "max_error_jacobian": worst("jacobian", "fixed_jacobian"),
        "max_error_mujoco": worst("mujoco"),
        "urdfs_in_mujoco": sum(
            errors["mujoco"] == errors["mujoco"] for errors in results.values()
        ),
        "max_error_finite_differences": worst("differences"),
        "max_error_chain_end": worst("chain"),
    }
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
