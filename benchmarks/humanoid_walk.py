"""Real humanoids walk in the simulator, open loop: TALOS, HOAP-2 and iCub, with arms and head.

Six steps each, planned by the robot's size, with the inverse kinematics of the whole robot (that of
iCub, whose legs have no closed form, by Newton's method). Feet and CoM of the joint angles are
checked by Pinocchio; then the walk is refined and played back to servos as the robots'
configurations have them. Nothing is fed back. The soft contact is that of [CCGD], in proportion to
the robot's mass. One sole on it resists roll with 933, 14 and 92 N m/rad (TALOS, HOAP-2, iCub);
gravity tips these robots with 776, 18 and 132: there they fall.

The last line is one JSON object, by robot: joints, com_error_m and foot_error_m (largest, by
Pinocchio), passes_mm (largest error of the ZMP before and after each pass), and by method and
contact steps (that were walked of six) and com_mm (mean and largest, in the simulator).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from walk_scenarios import (
    Walk,
    WalkingBiped,
    com_error,
    fell_at_step,
    load_robot,
    simulate,
    walk_by,
    world_for,
)

from com_control.walking.walk import WalkRequest, make_plan
from com_control.walking.walk_plan import find_stance

Array = NDArray[np.float64]

CHECKED = 10  # every so many points by Pinocchio
METHODS = ("exact", "refined")
CONTACTS = ("stiff", "soft")


@dataclass(frozen=True)
class Humanoid:
    """A robot, and a walk for it."""

    name: str
    urdf: str
    request: WalkRequest


HUMANOIDS = (
    Humanoid(
        "talos",
        "talos_data/robots/talos_reduced.urdf",
        WalkRequest(step_length=0.2, step_time=0.8, double_support=0.25),
    ),
    Humanoid(
        "hoap2", "", WalkRequest(step_length=0.05, step_time=0.6, double_support=0.2)
    ),
    Humanoid(
        "icub",
        "icub_description/robots/icub.urdf",
        WalkRequest(
            step_length=0.05, step_time=0.9, double_support=0.3, com_height=0.45
        ),
    ),
)


def pinocchio_errors(robot: WalkingBiped, walk: Walk) -> tuple[float, float]:
    """Largest distance of CoM and soles to where they are to be, m."""
    import pinocchio  # demos import this module, and have no oracles

    model = pinocchio.buildModelFromUrdf(
        str(robot.path), pinocchio.JointModelFreeFlyer()
    )
    data = model.createData()
    frames = [model.getFrameId(leg.foot.frame) for leg in robot.biped.legs]
    feet = walk.plan.sample(walk.joints.time).feet[..., 3]
    R, p = robot.biped.root_in_pelvis(walk.joints.q[0])
    worst = np.zeros(2)
    for i in range(0, len(walk.com), CHECKED):
        R_pelvis = walk.joints.R_pelvis[i]
        root = pinocchio.SE3(R_pelvis @ R, walk.joints.pelvis[i] + R_pelvis @ p)
        q = pinocchio.neutral(model)
        q[:7] = pinocchio.SE3ToXYZQUAT(root)
        for name, angle in zip(robot.model.joint_names, walk.joints.q[i], strict=True):
            q[model.joints[model.getJointId(name)].idx_q] = angle
        pinocchio.framesForwardKinematics(model, data, q)
        com = pinocchio.centerOfMass(model, data, q)
        places = np.array([data.oMf[frame].translation for frame in frames])
        away = np.linalg.norm(com - walk.com[i]), np.abs(places - feet[i]).max()
        worst = np.maximum(worst, away)
    return float(worst[0]), float(worst[1])


def try_walk(humanoid: Humanoid) -> dict[str, object]:
    """Plans, checks, refines and simulates."""
    robot = load_robot(humanoid.name, humanoid.urdf)
    plan = make_plan(
        humanoid.request, robot.biped, find_stance(robot.biped, robot.biped.posture)
    )
    walks = {method: walk_by(method, robot, plan) for method in METHODS}
    errors = np.max([pinocchio_errors(robot, walk) for walk in walks.values()], axis=0)
    result: dict[str, object] = {
        "joints": robot.model.n_joints,
        "com_error_m": float(errors[0]),
        "foot_error_m": float(errors[1]),
        "passes_mm": np.round(walks["refined"].passes_mm, 3).tolist(),
    }
    for (method, walk), contact in product(walks.items(), CONTACTS):
        record = simulate(world_for(robot, walk, contact, None), walk)
        away = 1e3 * com_error(walk, record)
        fell = fell_at_step(walk, record)
        result[f"{method}, {contact}"] = {
            "steps": len(plan.steps) if fell is None else max(fell - 1, 0),
            "com_mm": [round(float(away.mean()), 2), round(float(away.max()), 2)],
        }
    return result


def main() -> int:
    """Walks and prints."""
    results = {humanoid.name: try_walk(humanoid) for humanoid in HUMANOIDS}
    table = Table("", *results, title="humanoids, six steps, open loop")
    for key in next(iter(results.values())):
        table.add_row(key, *(str(result[key]) for result in results.values()))
    Console(width=110).print(table)
    print(json.dumps(results))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
