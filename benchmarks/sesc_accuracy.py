"""CoM and Jacobian of the SESC against Pinocchio, MuJoCo and finite differences.

Every URDF of example-robot-data that loads, random configurations within the limits, floating
and fixed base. --mjcf DIR: instead the models of MuJoCo below a folder (a checkout of MuJoCo
Menagerie, for example), mass, CoM and Jacobian against MuJoCo; those that are no tree of revolute,
prismatic and fixed joints are counted, with the reason.

Errors are relative to the robot's size: the longest way from its root to a body's centre of mass
along the joints. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import mujoco
import numpy as np
from example_robots import example_urdfs
from numpy.typing import NDArray
from oracles import (
    MujocoOracle,
    PinocchioOracle,
    random_pose,
    random_positions,
    robot_size,
)
from rich.console import Console
from rich.progress import track
from rich.table import Table

from com_model import RobotModel, Sesc, UrdfError
from com_model.urdf.xml_reader import is_mjcf

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


class MjcfOracle:
    """MuJoCo on the file itself: mass, CoM and Jacobian in the root's axes, the root at rest.

    Args:
        path: Of the MJCF.
        root_link: Of our model of it; the first body where it stands for the world.
    """

    def __init__(self, path: Path, root_link: str) -> None:
        self.mj = mujoco.MjModel.from_xml_path(str(path))
        self.data, bodies = mujoco.MjData(self.mj), range(1, self.mj.nbody)
        own = [i for i in bodies if self.mj.body(i).name == root_link]
        sizes = np.bincount(self.mj.body_rootid, minlength=self.mj.nbody)
        self.root = own[0] if own else 1 + int(np.argmax(sizes[1:]))
        self.frame = self.root if own else 0
        self.mass = float(self.mj.body_subtreemass[self.root])

    def com_and_jacobian(self, names: tuple[str, ...], q: Array) -> Result:
        """(3,) m and (3, n) at positions q (n,) of joints; others follow by their equations."""
        mj, data = self.mj, self.data
        data.qpos[:] = mj.qpos0
        for name, value in zip(names, q, strict=True):
            data.qpos[mj.joint(name).qposadr[0]] = value
        follow = []
        for k in np.flatnonzero(mj.eq_type == mujoco.mjtEq.mjEQ_JOINT).tolist():
            one, other = int(mj.eq_obj1id[k]), int(mj.eq_obj2id[k])
            at, (a, slope) = mj.jnt_qposadr, mj.eq_data[k, :2]
            drive = data.qpos[at[other]] - mj.qpos0[at[other]] if other >= 0 else 0.0
            data.qpos[at[one]] = mj.qpos0[at[one]] + a + slope * drive
            if other >= 0:
                follow.append((mj.jnt_dofadr[one], mj.jnt_dofadr[other], slope))
        mujoco.mj_kinematics(mj, data)
        mujoco.mj_comPos(mj, data)
        R, J = data.xmat[self.frame].reshape(3, 3), np.zeros((3, mj.nv))
        mujoco.mj_jacSubtreeCom(mj, data, J, self.root)
        for one, other, slope in follow:
            J[:, other] += slope * J[:, one]
        com = R.T @ (data.subtree_com[self.root] - data.xpos[self.frame])
        return com, R.T @ J[:, [mj.joint(name).dofadr[0] for name in names]]


def measure_mjcfs(folder: Path, count: int, seed: int) -> dict:
    """Largest errors of all models of MuJoCo below a folder, and why others are refused."""
    errors, refused = dict[str, dict[str, float]](), dict[str, str]()
    for path in sorted(folder.rglob("*.xml")):
        name = str(path.relative_to(folder))
        try:
            if not is_mjcf(path):
                continue
            model = RobotModel.from_mjcf(path)
        except UrdfError as error:
            refused[name] = str(error)
            print(f"{name}: refused: {error}", flush=True)
            continue
        oracle, sesc = MjcfOracle(path, model.root_link), Sesc(model)
        rng, size = np.random.default_rng(seed), max(1e-3, robot_size(model))
        com = jacobian = 0.0
        for _ in range(count):
            q = np.asarray(rng.uniform(*np.clip((model.lower, model.upper), -2.0, 2.0)))
            theirs = oracle.com_and_jacobian(model.joint_names, q)
            found = largest_errors(sesc.com_and_jacobian(q), theirs, size)
            com, jacobian = max(com, found[0]), max(jacobian, found[1])
        mass = abs(model.mass / oracle.mass - 1.0)
        errors[name] = {"mass": mass, "com": com, "jacobian": jacobian}
        text = ", ".join(f"{key} {value:.1e}" for key, value in errors[name].items())
        print(f"{name}: {model.n_joints} joints, {text}", flush=True)
    worst = {
        f"max_error_{key}": max((each[key] for each in errors.values()), default=np.nan)
        for key in ("mass", "com", "jacobian")
    }
    return {"mjcfs_loaded": len(errors), "mjcfs_refused": refused} | worst


def main() -> None:
    """Measures all robots and prints the table and the JSON line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--configurations", type=int, default=100, help="per robot (100)"
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="of the random configurations (0)"
    )
    parser.add_argument(
        "--mjcf", type=Path, metavar="DIR", help="models of MuJoCo below a folder"
    )
    arguments = parser.parse_args()
    if arguments.mjcf:
        count, seed = arguments.configurations, arguments.seed
        print(json.dumps(measure_mjcfs(arguments.mjcf, count, seed)))
        return
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
