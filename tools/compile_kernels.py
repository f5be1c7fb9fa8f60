"""Compiles the kernels of all packages into numba's cache, so that no node has to at its start.

tools/setup.sh runs it; after a plain `colcon build`: python3 tools/compile_kernels.py. What is
compiled already is only loaded. Without it the first start of a node compiles what the node needs.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numba.core.event import Event, Listener, register

from com_model import ComModelError, RobotConfig, RobotModel
from com_model.robots import DESCRIPTIONS
from com_model.shapes.resources import package_shares

DT = 0.001  # s


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line; return 0, or 1 when a robot cannot be read."""
    parser = argparse.ArgumentParser(
        "compile_kernels", description=str(__doc__).partition("\n")[0]
    )
    parser.add_argument(
        "parts", nargs="?", default=",".join(PARTS), help="default: %(default)s"
    )
    parser.add_argument("--robots", type=Path, help="folder of robot configurations")
    parser.add_argument(
        "--progress", type=Path, help="file for: kernels compiled, kernels in all"
    )
    options = parser.parse_args(words)
    if unknown := set(options.parts.split(",")) - set(PARTS):
        parser.error(
            f"unknown parts {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}"
        )
    folders = [options.robots] if options.robots else _installed_robots()
    if not folders:
        parser.error(
            "robot_descriptions is not on AMENT_PREFIX_PATH: source it or give --robots"
        )
    names = options.parts.split(",")
    counter = CompileCounter(sum(KERNELS[name] for name in names), options.progress)
    register("numba:compile", counter)
    try:
        for name in names:
            begin = time.perf_counter()
            PARTS[name](folders[0])
            spent = time.perf_counter() - begin
            print(f"{name}: {spent:.1f} s, {counter.done} kernels so far", flush=True)
    except ComModelError as error:
        print(f"compile_kernels: {error}", file=sys.stderr)
        return 1
    return 0


class CompileCounter(Listener):
    """Counts the kernels that numba compiles, and writes how far it is for who waits.

    Attributes:
        done: Number of kernels compiled so far, those that others call included.
    """

    def __init__(self, total: int, path: Path | None) -> None:
        self.done, self._total, self._path = 0, total, path
        self._write()

    def on_start(self, event: Event) -> None:
        """A compilation begins; only its end counts."""

    def on_end(self, event: Event) -> None:
        """A compilation has ended."""
        self.done += 1
        self._write()

    def _write(self) -> None:
        if self._path is not None:
            self._path.write_text(f"{self.done} {max(self._total, self.done)}\n")


KERNELS = {
    "com": 103,
    "balance": 76,
    "collisions": 30,
    "walking": 234,
    "trot": 18,
    "trunk": 140,
    "tip_over": 20,
    "walk_identification": 40,
}
"""Compilations that each part takes in the groups of tools/setup.sh, for the progress shown."""


def _installed_robots() -> list[Path]:
    return [share / "config" for share in package_shares(DESCRIPTIONS)]


def _load(folder: Path, name: str) -> tuple[RobotModel, RobotConfig]:
    config = RobotConfig.from_file(folder / f"{name}.yaml")
    assert config.urdf is not None  # noqa: S101 - the suite's configurations name one
    return RobotModel.from_file(config.urdf), config


def compile_com(folder: Path) -> None:
    """Joint states, CoM, Jacobians, stance."""
    from com_estimation.whole_body.com_state import ComObserver
    from com_model.dynamics.link_frames import LinkFrames
    from com_ros.joint_input import store_kernel

    store_kernel()
    model, config = _load(folder, "hoap2")
    sesc = ComObserver(model, config.feet).sesc
    sesc.com(model.neutral, np.eye(3), np.zeros(3))
    sesc.com_and_jacobian(model.neutral, np.eye(3), np.zeros(3))
    LinkFrames(model, [model.root_link]).motions(model.neutral)


def compile_balance(folder: Path) -> None:
    """The control of a standing robot."""
    from com_control.balance.balancer import Balancer

    model, config = _load(folder, "hoap2")
    q, up = config.nominal_posture(model), np.array([0.0, 0.0, 1.0])
    balancer = Balancer(model, config.feet, up)
    balancer.start(q, up)
    balancer.step(DT, q, up, balancer.reference.position)


def compile_walking(folder: Path) -> None:
    """The stabiliser, CoM and dynamics of paths, and inverse kinematics with closed form or not."""
    from com_control.walking import Walker, WalkRequest
    from com_control.walking.biped import Biped, sole_poses
    from com_control.walking.com_ik import ComIk
    from com_control.walking.newton_ik import NewtonSolver
    from com_control.walking.stabiliser import Stabiliser, ankle_stiffness
    from com_model import Sesc
    from com_model.dynamics.inverse_dynamics import Dynamics

    model, config = _load(folder, "itu_biped")
    Sesc(model).com_batch(np.array([model.neutral]))
    Dynamics(model).root_wrenches(np.zeros((3, 1, model.n_joints)), np.zeros((3, 1, 3)))
    biped = Biped.from_config(model, config)
    com, feet, R = (
        Sesc(model).com(biped.posture),
        sole_poses(biped, biped.posture),
        np.eye(3),
    )
    path = np.array([com]), np.array([feet]), R[None]
    ComIk(biped).solve_path(*path)
    ComIk(biped).solve_in_steps(*path, com)
    newton, values, outcomes = (
        NewtonSolver(biped),
        np.empty((1, 16)),
        np.empty(1, dtype=np.int64),
    )
    newton.solve_one(com, R, feet, newton.robot, 1e-9, values[0])
    newton.solve_path(path[0], path[2], path[1], newton.robot, 1e-9, values, outcomes)
    walk = Walker(biped).plan(WalkRequest(steps=1), biped.posture)
    stabiliser = Stabiliser(biped, ankle_stiffness(biped, config))
    stabiliser.start(walk.plan, walk.samples, biped.posture)


def compile_trot(folder: Path) -> None:
    """The legs of a quadruped."""
    from com_control.trot.trot import TrotGait

    TrotGait(*_load(folder, "scalf2")).step(0.0)


def compile_trunk(folder: Path) -> None:
    """The Kalman filter of a quadruped's trunk, foot forces, the columns of what may be wrong."""
    from com_estimation.humanoid.estimator import HumanoidEstimator
    from com_estimation.trunk.floating_base.estimator import FloatingBaseEstimator
    from com_estimation.whole_body.foot_forces import FootForceEstimator

    FloatingBaseEstimator(*_load(folder, "scalf2"))
    HumanoidEstimator(*_load(folder, "hoap2"))
    FootForceEstimator(*_load(folder, "hoap2"))


def compile_tip_over(folder: Path) -> None:
    """The joint angles at which a robot tips over."""
    from com_identification.tip_over.protocol import TipProtocol
    from com_identification.tip_over.quasi_static import QuasiStatic

    protocol = TipProtocol.from_file(folder / "posture_protocol/hoap2.yaml")
    QuasiStatic.from_protocol(*_load(folder, "hoap2"), protocol).find_tips()


def compile_walk_identification(folder: Path) -> None:
    """The equations of motion of a recording of walking."""
    from com_identification.walking.kernels import BODY, IMU, PER_JOINT, MotionSamples
    from com_identification.walking.log import ConditionedLog
    from com_identification.walking.preparation import find_limbs, noise_of
    from com_identification.walking.rows import find_contacts, make_rows
    from com_model.dynamics import GRAVITY
    from com_model.dynamics.tree_kernels import tree_of

    model, config = _load(folder, "scalf2")
    model = config.attach(model)
    n, robot, limbs = model.n_joints, tree_of(model.bodies), find_limbs(model, config)
    motion = MotionSamples(
        *np.zeros((5, 100, n)), *np.tile([0.0, 0.0, GRAVITY], (4, 100, 1))
    )
    data = ConditionedLog(motion, 0.002, np.ones(100, dtype=np.bool_))
    contacts = [find_contacts(data, robot, limbs, model.mass)]
    x, noise = (
        np.zeros(BODY * len(robot.mass) + PER_JOINT * n + IMU),
        noise_of(1.0, 1.0, np.ones(n)),
    )
    make_rows([data], contacts, robot, limbs, noise, np.ones(n, dtype=np.bool_), x)


def compile_collisions(folder: Path) -> None:
    """Which links of a robot overlap."""
    from com_identification.planning.feasible import SelfCollision
    from com_identification.regression.statics import Statics

    model, config = _load(folder, "hoap2")
    SelfCollision(Statics(model), config.nominal_posture(model))


_PREFIX = "compile_"
PARTS: dict[str, Callable[[Path], None]] = {
    name.removeprefix(_PREFIX): part
    for name, part in list(globals().items())
    if name.startswith(_PREFIX)
}
"""The functions above, in their order."""

if __name__ == "__main__":
    sys.exit(main())
