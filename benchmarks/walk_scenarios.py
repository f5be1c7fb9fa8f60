"""Walks of a biped by several methods, played back in the simulator without any feedback.

- pelvis: the pelvis is taken for the CoM; it keeps its height, and moves as a pendulum of that
- constant_offset: the way from the pelvis to the CoM is measured once, in the first posture, and
  taken as constant
- ccgd: the algorithm of [CCGD] as printed, with its steps of 1 mm
- exact: the fast solver; the CoM is on the pendulum's path to 1e-9 m
- refined: the same, with the path corrected until the ZMP of all bodies is the planned one
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import sqrt
from pathlib import Path

import numpy as np
from baselines.ccgd import Ccgd
from baselines.leg_ik import LegIk
from baselines.paper_walk import paper_walk
from example_robots import example_urdfs
from numpy.typing import NDArray
from walk_playback import WalkTargets, play, starting_at, with_soles

from com_control.exceptions import PlanError
from com_control.walking.biped import Biped
from com_control.walking.com_ik import ComIk
from com_control.walking.footsteps import WalkParameters
from com_control.walking.walk_joints import WalkJoints, refine, robot_path, solve_joints
from com_control.walking.walk_plan import PendulumPath, Samples, Timing, WalkPlan
from com_demos.walk_record import WalkRecord
from com_model import RobotConfig, RobotModel
from com_model.dynamics import GRAVITY
from com_simulation.physics.world_builder import World, build_world

Array = NDArray[np.float64]

CONFIGS = Path(__file__).resolve().parents[1] / "src" / "robot_descriptions" / "config"
POINT_TIME = 0.01  # s, between two points of joint angles
BALL = 0.01  # m, radius of the contact balls
PAPER_SOLE = (0.12, 0.05)  # m, half length and half width between the balls


@dataclass(frozen=True, eq=False)
class WalkingBiped:
    """A biped with what its walks need; path is that of its URDF."""

    model: RobotModel
    config: RobotConfig
    biped: Biped
    path: Path


@dataclass(frozen=True, eq=False)
class Walk:
    """A walk by one of the methods; world axes.

    Attributes:
        plan: What was planned.
        joints: The joints' angles.
        root: (3,) m, where the root link starts; R_root: (3, 3) how it is turned.
        com: (N, 3) m, where the method means the CoM to be.
        zmp: (N, 3) m, the planned ZMP.
        passes_mm: Of the refinement, the largest error of the ZMP before and after each.
    """

    plan: WalkPlan
    joints: WalkJoints
    root: Array
    R_root: Array
    com: Array
    zmp: Array
    passes_mm: tuple[float, ...] = ()


@cache
def load_robot(name: str, urdf: str = "") -> WalkingBiped:
    """A robot by its configuration's name; urdf: its place among the example robots, if it has one.

    Raises:
        KeyError: There is no such URDF.
    """
    config = RobotConfig.from_file(CONFIGS / f"{name}.yaml")
    path = example_urdfs()[urdf] if urdf else Path(str(config.urdf))
    model = RobotModel.from_file(path)
    return WalkingBiped(model, config, Biped.from_config(model, config), path)


def itu_biped() -> WalkingBiped:
    """The biped like ITU's."""
    return load_robot("itu_biped")


def paper_plan(step_time: float) -> WalkPlan:
    """The six steps of [CCGD], between two of them both feet down: a third of a step, or 0.2 s."""
    double_support = max(step_time / 3.0, 0.2)
    return paper_walk(
        WalkParameters(), Timing(step_time=step_time, double_support=double_support)
    )


def walk_by(method: str, robot: WalkingBiped, plan: WalkPlan) -> Walk:
    """Finds the joints' angles of a walk.

    Raises:
        PlanError: The method finds none.
    """
    if method == "refined":
        found = refine(ComIk(robot.biped), plan, POINT_TIME)
        passes = tuple(1e3 * found.errors)
        return _walk(robot, plan, found.joints, found.samples, passes)
    samples = plan.sample(plan.grid(POINT_TIME))
    solve = SOLVERS[method]
    return _walk(robot, plan, solve(robot, plan, samples), samples)


def _walk(
    robot: WalkingBiped,
    plan: WalkPlan,
    joints: WalkJoints,
    samples: Samples,
    passes: tuple[float, ...] = (),
) -> Walk:
    path = robot_path(robot.biped, joints, POINT_TIME)
    return Walk(
        plan, joints, path.p_root[0], path.R_root[0], samples.com, samples.zmp, passes
    )


def _exact(robot: WalkingBiped, _plan: WalkPlan, samples: Samples) -> WalkJoints:
    return solve_joints(ComIk(robot.biped), samples)


def _ccgd(robot: WalkingBiped, _plan: WalkPlan, samples: Samples) -> WalkJoints:
    start = (
        ComIk(robot.biped)
        .solve(samples.com[0], samples.feet[0], samples.R_pelvis[0])
        .pelvis
    )
    path = Ccgd(robot.biped).solve_path(
        samples.com, samples.feet, samples.R_pelvis, start
    )
    return _joints(samples, path.q, path.pelvis)


def _constant_offset(
    robot: WalkingBiped, _plan: WalkPlan, samples: Samples
) -> WalkJoints:
    first = ComIk(robot.biped).solve(
        samples.com[0], samples.feet[0], samples.R_pelvis[0]
    )
    return _on_legs(robot, samples, samples.com + first.pelvis - samples.com[0])


def _pelvis(robot: WalkingBiped, plan: WalkPlan, samples: Samples) -> WalkJoints:
    first = ComIk(robot.biped).solve(
        samples.com[0], samples.feet[0], samples.R_pelvis[0]
    )
    planned, height = plan.pendulum, float(first.pelvis[2])
    pendulum = PendulumPath.from_zmp(planned.times, planned.zmp, sqrt(GRAVITY / height))
    xy = pendulum.sample(samples.time)[0]
    return _on_legs(robot, samples, np.column_stack((xy, np.full(len(xy), height))))


def _on_legs(robot: WalkingBiped, samples: Samples, pelvis: Array) -> WalkJoints:
    """Joint angles with the pelvis' origin at (N, 3) m, wherever the CoM then is."""
    q = np.tile(robot.biped.posture, (len(pelvis), 1))
    for i, leg in enumerate(robot.biped.legs):
        ik, near = LegIk(leg), leg.nominal
        for k, R in enumerate(samples.R_pelvis):
            foot = samples.feet[k, i]
            found = ik.solve(R.T @ foot[:, :3], R.T @ (foot[:, 3] - pelvis[k]), near)
            near = q[k, leg.joints] = found.q
    return _joints(samples, q, pelvis)


def _joints(samples: Samples, q: Array, pelvis: Array) -> WalkJoints:
    bad = np.flatnonzero(np.isnan(q).any(axis=1))
    if len(bad):
        raise PlanError(f"the legs do not reach at {samples.time[bad[0]]:.3f} s")
    qd = np.gradient(q, samples.time, axis=0)
    unknown = np.full(len(q), np.nan)
    return WalkJoints(samples.time, q, qd, pelvis, samples.R_pelvis, unknown)


SOLVERS: dict[str, Callable[[WalkingBiped, WalkPlan, Samples], WalkJoints]] = {
    "pelvis": _pelvis,
    "constant_offset": _constant_offset,
    "ccgd": _ccgd,
    "exact": _exact,
}
METHODS = (*SOLVERS, "refined")


def world_for(
    robot: WalkingBiped,
    walk: Walk,
    contact: str = "soft",
    sole: tuple[float, float] | None = PAPER_SOLE,
) -> World:
    """The robot in a walk's first posture; on soles of its own, or of half lengths and widths."""
    config = starting_at(robot.config, robot.model, walk.joints.q[0])
    if sole is None:
        return build_world(robot.model, config, contact=contact, urdf_path=robot.path)
    config = with_soles(config, *sole)
    return build_world(robot.model, config, contact=contact, sole_balls=BALL)


def simulate(world: World, walk: Walk) -> WalkRecord:
    """Plays a walk back."""
    joints = walk.joints
    return play(
        world, WalkTargets(joints.time, joints.q, joints.qd, walk.root, walk.R_root)
    )


def com_error(walk: Walk, record: WalkRecord) -> Array:
    """Distance (M,) m of the true CoM to where the method means it to be, until the robot falls."""
    count = min(len(record.com), len(walk.com))
    return np.asarray(np.linalg.norm(record.com[:count] - walk.com[:count], axis=1))


def fell_at_step(walk: Walk, record: WalkRecord) -> int | None:
    """Number of the step, the first is 1, during or after which the robot fell; None: it did not.

    0: before its first step.
    """
    if not record.fell:
        return None
    return int(np.searchsorted(walk.plan.lift_offs, record.fell_at, side="right"))
