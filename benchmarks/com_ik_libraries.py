"""The problem of com_ik_speed.py for Pinocchio, placo and pink: run by that script.

    com_ik_libraries.py URDF PROBLEM.npz

PROBLEM.npz holds a path (com (N, 3), feet (N, 2, 3, 4), R_pelvis (N, 3, 3), tolerance, first (19,):
position, quaternion x y z w and joints of the first point). Each library follows it from the first
point on, each point from the one before, until CoM and soles are within the tolerance. The last
line is one JSON object: microseconds a point and the largest error; null where a library is not
installed. The script imports nothing of this project, so that any Python may run it.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pinocchio

SOLES = ("l_sole", "r_sole")
MOST = 100  # iterations a point


class Problem:
    """The path, and Pinocchio's view of the robot."""

    def __init__(self, urdf: str, path: str) -> None:
        data = np.load(path)
        self.com, self.feet, self.R = data["com"], data["feet"], data["R_pelvis"]
        self.tolerance, self.first = float(data["tolerance"]), data["first"]
        self.urdf = urdf
        self.model = pinocchio.buildModelFromUrdf(urdf, pinocchio.JointModelFreeFlyer())
        self.data = self.model.createData()
        self.frames = [self.model.getFrameId(name) for name in SOLES]

    def soles(self, i: int) -> list[Any]:
        """Where the soles are to be, as SE3."""
        return [
            pinocchio.SE3(foot[:, :3].copy(), foot[:, 3].copy())
            for foot in self.feet[i]
        ]

    def error(self, i: int, q: np.ndarray) -> float:
        """Largest distance of CoM and soles to where they are to be, m and rad."""
        pinocchio.framesForwardKinematics(self.model, self.data, q)
        worst = np.linalg.norm(
            pinocchio.centerOfMass(self.model, self.data, q) - self.com[i]
        )
        for frame, goal in zip(self.frames, self.soles(i), strict=True):
            off = pinocchio.log6(self.data.oMf[frame].actInv(goal)).vector
            worst = max(worst, np.linalg.norm(off[:3]), np.linalg.norm(off[3:]))
        return float(worst)


def newton(problem: Problem) -> Callable[[int, np.ndarray], np.ndarray]:
    """Newton's method on the 18 velocities: soles, CoM and the pelvis' orientation."""
    model, data = problem.model, problem.data
    local = pinocchio.ReferenceFrame.LOCAL

    def solve(i: int, q: np.ndarray) -> np.ndarray:
        goals, R = problem.soles(i), problem.R[i]
        J, e = np.zeros((18, 18)), np.empty(18)
        J[15:, 3:6] = np.eye(3)
        for _ in range(MOST):
            J[:3] = pinocchio.jacobianCenterOfMass(model, data, q)
            pinocchio.computeJointJacobians(model, data, q)
            pinocchio.updateFramePlacements(model, data)
            e[:3] = problem.com[i] - data.com[0]
            for k, (frame, goal) in enumerate(zip(problem.frames, goals, strict=True)):
                rows = slice(3 + 6 * k, 9 + 6 * k)
                e[rows] = pinocchio.log6(data.oMf[frame].actInv(goal)).vector
                J[rows] = pinocchio.getFrameJacobian(model, data, frame, local)
            e[15:] = pinocchio.log3(data.oMi[1].rotation.T @ R)
            if np.abs(e).max() < 0.5 * problem.tolerance:
                break
            q = pinocchio.integrate(model, q, np.linalg.solve(J, e))
        return q

    return solve


def placo_solver(problem: Problem) -> Callable[[int, np.ndarray], np.ndarray]:
    """Placo's quadratic program with the tasks as hard constraints."""
    import placo

    robot = placo.RobotWrapper(problem.urdf, placo.Flags.ignore_collisions)
    solver = placo.KinematicsSolver(robot)
    solver.enable_joint_limits(False)
    tasks = [solver.add_frame_task(name, np.eye(4)) for name in SOLES]
    for name, task in zip(SOLES, tasks, strict=True):
        task.configure(name, "hard")
    com = solver.add_com_task(problem.com[0])
    com.configure("com", "hard")
    pelvis = solver.add_orientation_task("base_link", np.eye(3))
    pelvis.configure("pelvis", "hard")
    names = list(problem.model.names)[2:]

    def solve(i: int, q: np.ndarray) -> np.ndarray:
        if i == 0:
            robot.set_T_world_fbase(pinocchio.XYZQUATToSE3(q[:7]).homogeneous)
            for name, value in zip(names, q[7:], strict=True):
                robot.set_joint(name, value)
            robot.update_kinematics()
        for task, foot in zip(tasks, problem.feet[i], strict=True):
            task.T_world_frame = np.vstack((foot, [0, 0, 0, 1]))
        com.target_world, pelvis.R_world_frame = problem.com[i], problem.R[i]
        for _ in range(MOST):
            worst = np.abs(robot.com_world() - problem.com[i]).max()
            for name, foot in zip(SOLES, problem.feet[i], strict=True):
                off = robot.get_T_world_frame(name)[:3] - foot
                worst = max(worst, np.abs(off).max())
            if worst < 0.5 * problem.tolerance:
                break
            solver.solve(True)
            robot.update_kinematics()
        base = pinocchio.SE3ToXYZQUAT(pinocchio.SE3(robot.get_T_world_fbase()))
        return np.concatenate((base, [robot.get_joint(name) for name in names]))

    return solve


def pink_solver(problem: Problem) -> Callable[[int, np.ndarray], np.ndarray]:
    """Pink's quadratic program, by daqp."""
    import pink
    from pink.tasks import ComTask, FrameTask

    wrapper = pinocchio.RobotWrapper(problem.model)
    soles = [FrameTask(name, position_cost=1.0, orientation_cost=1.0) for name in SOLES]
    pelvis = FrameTask("base_link", position_cost=0.0, orientation_cost=1.0)
    com = ComTask(cost=1.0)
    dt = 1.0

    def solve(i: int, q: np.ndarray) -> np.ndarray:
        configuration = pink.Configuration(wrapper.model, wrapper.data, q)
        for task, goal in zip(soles, problem.soles(i), strict=True):
            task.set_target(goal)
        pelvis.set_target(pinocchio.SE3(problem.R[i], np.zeros(3)))
        com.set_target(problem.com[i])
        tasks = [*soles, com, pelvis]
        for _ in range(MOST):
            errors = [task.compute_error(configuration) for task in (*soles, com)]
            if max(np.abs(error).max() for error in errors) < 0.5 * problem.tolerance:
                break
            velocity = pink.solve_ik(
                configuration, tasks, dt, solver="daqp", limits=[], damping=1e-12
            )
            configuration.integrate_inplace(velocity, dt)
        return configuration.q.copy()

    return solve


def follow(
    problem: Problem, solve: Callable[[int, np.ndarray], np.ndarray]
) -> dict[str, float]:
    """Follows the path; microseconds a point, and the largest error."""
    q, found = problem.first.copy(), []
    start = time.perf_counter()
    for i in range(len(problem.com)):
        q = solve(i, q)
        found.append(q)
    elapsed = time.perf_counter() - start
    worst = max(problem.error(i, q) for i, q in enumerate(found))
    return {"us": 1e6 * elapsed / len(found), "error": worst}


def main() -> None:
    """Runs every library that there is."""
    problem = Problem(*sys.argv[1:3])
    results: dict[str, dict[str, float] | None] = {}
    makers = {"pinocchio": newton, "placo": placo_solver, "pink": pink_solver}
    for name, make in makers.items():
        try:
            solve = make(problem)
        except ImportError:
            results[name] = None
            continue
        follow(problem, solve)
        runs = [follow(problem, solve) for _ in range(3)]
        results[name] = min(runs, key=lambda run: run["us"])
    print(json.dumps(results))


if __name__ == "__main__":
    main()
