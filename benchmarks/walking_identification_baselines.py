"""What else could be done with the same recordings of walking, on the same robots.

A Go2 as in walking_identification.py trots six gaits in MuJoCo and is weighed; a seventh gait is
held out. By method:

- ours: identify_walking, with contacts and rows
- least_squares: ordinary least squares from the URDF of the inertial parameters; torques are taken
  as they are read. least_squares_nuisances: with friction, armature and torque biases, too
- lmi: positive definite pseudo-inertias by a conic solver (clarabel), with all columns of ours and
  the same prior, linear in the standard parameters; it gives no covariance
- sysid, sysid_10: MuJoCo's system identification toolbox (the extra mujoco[sysid]) with the time
  that ours takes, and with ten times that. It rolls the robot out with the measured torques over
  windows of 80 ms, from the true states; the model of contacts and friction is the true one. Bodies
  are log-Cholesky ones, gains, biases, armature and friction are free; its bounds are three
  standard deviations of our prior. There are as many windows as leave time for some steps

The linear methods have ours' last rows with their weights, so that seconds are those of the solver
alone. All masses are scaled to the weighed one at the end. Methods whose package is not installed
say so instead of figures.

The last line is one JSON object, by method: com_mm_before and com_mm_after (rms over 200 random
postures, of the robots drawn the largest), torque_percent (see walking_identification.py),
seconds, bodies_that_exist (fraction with a positive pseudo-inertia); of sysid, steps.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import importlib
import importlib.util
import json
import os
import time
from dataclasses import dataclass, replace
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray
from processes import in_processes
from rich.console import Console
from rich.table import Table
from scipy import sparse
from walking_identification import (
    POSTURES,
    SPREAD,
    predict_torques,
    true_com,
    true_torques,
)
from walking_lab import (
    GAITS,
    HELD_OUT,
    PERIOD,
    RobotWithErrors,
    Walk,
    Wrong,
    record,
    robot_world,
)

from com_identification.walking.identify import WalkResult, identify_walking
from com_identification.walking.unknowns import (
    Scale,
    split,
    theta_jacobian,
    to_eta,
    to_pseudo,
    to_theta,
)
from com_model.dynamics.kinematics import body_poses

Array = NDArray[np.float64]

WINDOW, RANDOM = 40, 7  # samples of a roll-out; seed of where they are
LEAST_STEPS = 4  # Jacobians for which there is to be time
# rad, rad/s, rad/s, m/s^2: of position, velocity, gyro, force
ERRORS = 5e-3, 0.03, 0.01, 0.5


@dataclass(frozen=True)
class Found:
    """What a method says."""

    theta: Array  # (B, 10)
    armature: Array  # (n,)
    coulomb: Array
    viscous: Array


def full_theta(robot: RobotWithErrors, eta: Array) -> Array:
    """Standard parameters (B, 10) of log-Cholesky ones (K, 10) of the bodies with mass."""
    theta = np.zeros((robot.believed.bodies.count, 10))
    theta[robot.believed.bodies.mass > 0.0] = to_theta(eta)
    return theta


def least_squares(robot: RobotWithErrors, result: WalkResult, nuisances: bool) -> Found:
    """From the URDF: what the rows do not determine stays there."""
    H, n, B = (
        result.fit.information.sum(axis=0),
        result.model.n_joints,
        result.theta.size,
    )
    used = np.r_[:B, B : B + 3 * n * nuisances, B + 4 * n : B + (4 + nuisances) * n]
    x = np.zeros(len(H))
    x[:B], x[B + 3 * n : B + 4 * n] = (
        full_theta(robot, to_eta(robot.believed.bodies)).ravel(),
        1.0,
    )
    x[used] -= np.linalg.lstsq(H[np.ix_(used, used)], H[used] @ x, rcond=1e-10)[0]
    return Found(x[:B].reshape(-1, 10), *x[B : B + 3 * n].reshape(3, n))


def lmi(robot: RobotWithErrors, result: WalkResult) -> Found:
    """Linear matrix inequalities: min 1/2 x^T H x + prior, J of each body positive semidefinite."""
    import clarabel

    u, n, B = result.unknowns, result.model.n_joints, result.theta.size
    H = result.fit.information.sum(axis=0) / result.fit.tempering
    eta, inertial = to_eta(robot.believed.bodies), 10 * int(u.bodies.sum())
    theta = to_theta(eta)
    # variables: theta of the bodies with mass, then the joints' and the IMU's columns
    kept = np.r_[np.flatnonzero(np.repeat(u.bodies, 10)), B : len(H)]
    P = H[np.ix_(kept, kept)]
    slope = theta_jacobian(eta)
    mean = np.concatenate([theta.ravel(), np.zeros(len(H) - B)])
    for b, D in enumerate(slope):
        own = slice(10 * b, 10 * b + 10)
        inverse = np.linalg.inv(D) / u.std[own][:, None]
        P[own, own] += inverse.T @ inverse
    # the gains' prior is that of single ones, their mean is 1
    rest = np.concatenate([np.ones(n), u.mean[u.joint_slice("torque_bias").start :]])
    mean[inertial:] = np.concatenate([u.mean[inertial : inertial + 3 * n], rest])
    gain = u.std[u.joint_slice("gain")][0]
    tail = u.std[u.joint_slice("torque_bias").start :]
    std = np.concatenate([u.std[inertial : inertial + 3 * n], np.full(n, gain), tail])
    P[range(inertial, len(P)), range(inertial, len(P))] += std**-2
    prior = P - H[np.ix_(kept, kept)]
    gains = np.zeros((1, len(P)))
    gains[0, inertial + 3 * n : inertial + 4 * n] = 1.0
    signs = -np.eye(len(P))[inertial : inertial + 3 * n]
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(3 * n)]
    scaled, parts = np.repeat(1.0 / np.sqrt(theta[:, 0]), 10), [gains, signs]
    i, j = np.triu_indices(4)
    order = np.lexsort((i, j))  # upper triangle, column by column
    i, j = i[order], j[order]
    units = np.eye(10)[:, [4, 5, 6, 5, 7, 8, 6, 8, 9]].reshape(10, 3, 3)
    pseudo = to_pseudo(np.eye(10)[:, 0], np.eye(10)[:, 1:4], units)
    block = (pseudo[:, i, j] * np.where(i == j, 1.0, np.sqrt(2.0))).T
    for b in range(len(theta)):
        rows = np.zeros((10, len(P)))
        rows[:, 10 * b : 10 * b + 10] = -block / theta[b, 0]
        parts.append(rows)
        cones.append(clarabel.PSDTriangleConeT(4))
    size = np.concatenate(
        [scaled**-2, std]
    )  # of the variables, so that all are of order one
    A, limits = np.vstack(parts) * size, np.zeros(1 + 3 * n + 10 * len(theta))
    limits[0] = n
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    quadratic = sparse.csc_matrix(np.triu(P * np.outer(size, size)))
    solver = clarabel.DefaultSolver(
        quadratic, -(prior @ mean) * size, sparse.csc_matrix(A), limits, cones, settings
    )
    x = np.array(solver.solve().x) * size
    found = np.zeros((len(u.bodies), 10))
    found[u.bodies] = x[:inertial].reshape(-1, 10)
    return Found(found, *x[inertial : inertial + 3 * n].reshape(3, n))


class Rollouts:
    """MuJoCo's toolbox on windows of the recordings."""

    sysid: Any  # the module

    def __init__(
        self, robot: RobotWithErrors, walks: list[Walk], result: WalkResult
    ) -> None:
        n, u = robot.believed.n_joints, result.unknowns
        nominal = {
            kind: u.mean[u.joint_slice(kind)]
            for kind in ("armature", "coulomb", "viscous")
        }
        believed = replace(robot, true=robot.believed, **nominal)
        world = robot_world(believed)
        self.world, self.mj = world, world.mj
        # motors in place of servos, that do what the drives report
        self.mj.actuator_gaintype[:] = mujoco.mjtGain.mjGAIN_FIXED
        self.mj.actuator_biastype[:] = mujoco.mjtBias.mjBIAS_AFFINE
        self.mj.actuator_gainprm[:], self.mj.actuator_biasprm[:] = 0.0, 0.0
        self.mj.actuator_ctrllimited[:], self.mj.actuator_forcelimited[:] = False, False
        self.used = 1 + np.flatnonzero(u.bodies)
        accelerometer = np.flatnonzero(
            self.mj.sensor_type == mujoco.mjtSensor.mjSENS_ACCELEROMETER
        )
        gyro = np.flatnonzero(self.mj.sensor_type == mujoco.mjtSensor.mjSENS_GYRO)
        self.imu = [
            self.mj.sensor_adr[kind[0]] + np.arange(3) for kind in (gyro, accelerometer)
        ]
        gain, bias = (
            u.std[u.joint_slice("gain")][0],
            u.std[u.joint_slice("torque_bias")],
        )
        values = [
            u.mean[: 10 * len(self.used)],
            *nominal.values(),
            np.ones(n),
            np.zeros(n),
        ]
        stds = [u.std[: 10 * len(self.used)]]
        stds += [u.std[u.joint_slice(kind)] for kind in nominal] + [
            np.full(n, gain),
            bias,
        ]
        self.start, self.reach = np.concatenate(values), 3.0 * np.concatenate(stds)
        self.walks, self.rng = walks, np.random.default_rng(RANDOM)
        self.sysid = importlib.import_module("mujoco.sysid")

    def model(self, x: Array) -> mujoco.MjModel:
        """The robot with values of (eta; armature, Coulomb, viscous, gains, biases)."""
        mj, inertial = copy.copy(self.mj), 10 * len(self.used)
        for b, theta in zip(
            self.used, to_theta(x[:inertial].reshape(-1, 10)), strict=True
        ):
            mass, com, inertia = split(theta)
            values, axes = np.linalg.eigh(inertia)
            axes[:, 0] *= np.linalg.det(axes)
            mj.body_mass[b], mj.body_ipos[b], mj.body_inertia[b] = mass, com, values
            mujoco.mju_mat2Quat(mj.body_iquat[b], axes.ravel())
        armature, coulomb, viscous, gain, bias = x[inertial:].reshape(5, -1)
        dof = self.world.joint_dof
        mj.dof_armature[dof], mj.dof_frictionloss[dof], mj.dof_damping[dof] = (
            armature,
            coulomb,
            viscous,
        )
        mj.actuator_gainprm[:, 0], mj.actuator_biasprm[:, 0] = gain, -bias
        mujoco.mj_setConst(mj, mujoco.MjData(mj))
        return mj

    def windows(self, count: int) -> list[Any]:
        """Windows at random instants, with the true state at their beginning."""
        made = []
        for number in range(count):
            walk = self.walks[number % len(self.walks)]
            clean, log = walk.clean, walk.log
            k = int(self.rng.integers(250, len(log.time) - WINDOW - 2))
            own, place, turn = slice(k, k + WINDOW), walk.pose[:, :3], walk.pose[k, 3:]
            qpos, qvel = np.zeros(self.mj.nq), np.zeros(self.mj.nv)
            qpos[:3], qpos[3:7] = place[k], np.roll(turn, 1)
            assert clean.velocity is not None
            assert log.velocity is not None
            qpos[self.world.joint_qpos] = clean.position[k]
            # semi-implicit steps: a difference of positions is the velocity at its end
            qvel[:3] = (place[k + 1] - place[k - 1]) / (2.0 * PERIOD)
            qvel[3:6], qvel[self.world.joint_dof] = (
                clean.angular_velocity[k],
                clean.velocity[k],
            )
            state = self.sysid.create_initial_state(self.mj, qpos, qvel)
            times = PERIOD * np.arange(WINDOW)
            columns = (
                log.position,
                log.velocity,
                log.angular_velocity,
                log.specific_force,
            )
            measured = np.hstack(
                [values[own] / s for values, s in zip(columns, ERRORS, strict=True)]
            )
            control = self.sysid.TimeSeries(times, log.effort[own])
            readings = self.sysid.TimeSeries(times, measured)
            made.append(
                self.sysid.SystemTrajectory(self.mj, control, readings, state, None)
            )
        return made

    def difference(
        self, _: Any, predicted: Any, measured: Any, __: Any, ___: Any, *, state: Array
    ) -> tuple[Array, Any, Any]:
        """Predicted minus measured signals over their errors; toolbox's signature."""
        nq = self.mj.nq
        q = state[:, 1 + self.world.joint_qpos]
        qd = state[:, 1 + nq + self.world.joint_dof]
        readings = [predicted.data[:, columns] for columns in self.imu]
        columns = (q, qd, *readings)
        signals = np.hstack(
            [values / s for values, s in zip(columns, ERRORS, strict=True)]
        )
        inside = measured.times[
            (measured.times >= state[0, 0]) & (measured.times <= state[-1, 0])
        ]
        own = np.searchsorted(state[:, 0], inside - 1e-9)
        there = np.searchsorted(measured.times, inside)
        return signals[own] - measured.data[there], predicted, predicted

    def identify(self, seconds: float) -> tuple[Array, int, int]:
        """The best values within a time; how many steps were accepted, and windows."""
        low, high = self.start - self.reach, self.start + self.reach
        low[10 * len(self.used) :][: 3 * len(self.world.joint_dof)] = 1e-4
        parameter = self.sysid.Parameter("robot", self.start, low, high)
        parameters = self.sysid.ParameterDict({"robot": parameter})

        def residual(x: Array, given: Any, chosen: list[Any]) -> Array:
            build = lambda values: self.model(values.as_vector())  # noqa: E731
            values = self.sysid.model_residual(
                x, given, build, chosen, self.difference, n_threads=1
            )
            return np.asarray(values[0])

        one = self.windows(1)
        residual(self.start, parameters, one)
        begin = time.perf_counter()
        residual(self.start, parameters, one)
        each = (time.perf_counter() - begin) * (len(self.start) + 1)
        windows = self.windows(max(1, int(seconds / (LEAST_STEPS * each))))
        best, least, steps, end = self.start, np.inf, -1, time.perf_counter() + seconds

        def timed(x: Array, given: Any) -> tuple[list[Array], None, None]:
            nonlocal best, least, steps
            if time.perf_counter() > end:
                raise TimeoutError
            # Jacobians of all columns at once would not look at the clock
            columns = x.reshape(len(x), -1).T
            values = []
            for column in columns:
                if time.perf_counter() > end:
                    raise TimeoutError
                values.append(residual(column, given, windows))
            if len(columns) == 1 and (cost := float((values[0] ** 2).sum())) < least:
                best, least, steps = columns[0].copy(), cost, steps + 1
            return [np.array(values).T if x.ndim > 1 else values[0]], None, None

        with contextlib.suppress(TimeoutError):
            self.sysid.optimize(parameters, timed, verbose=False, max_iters=200)
        return best, steps, len(windows)


def score(
    robot: RobotWithErrors, found: Found, posture: Array, walk: Walk
) -> dict[str, float]:
    """Errors of the CoM and of the torques; all masses times one factor have the weighed mass."""
    model = robot.config.attach(robot.believed)
    rho = robot.true.mass / found.theta[:, 0].sum()
    theta, rng = found.theta * rho, np.random.default_rng(3)
    inertia = theta[:, [4, 5, 6, 5, 7, 8, 6, 8, 9]].reshape(-1, 3, 3)
    bodies = replace(
        model.bodies, mass=theta[:, 0], first_moment=theta[:, 1:4], inertia=inertia
    )
    before, after = [], []
    for _ in range(POSTURES):
        q = posture + rng.uniform(-SPREAD, SPREAD, model.n_joints)
        R, p = body_poses(bodies, q)
        com = (theta[:, 0] @ p + np.einsum("bij,bj->i", R, theta[:, 1:4])) / theta[
            :, 0
        ].sum()
        after.append(com - true_com(robot.true, q))
        before.append(true_com(robot.believed, q) - true_com(robot.true, q))
    friction = rho * found.coulomb, rho * found.viscous, rho * found.armature
    predicted = predict_torques(robot, replace(model, bodies=bodies), walk, *friction)
    truth = true_torques(robot, walk)
    used = model.bodies.mass > 0.0
    J = to_pseudo(theta[used, 0], theta[used, 1:4], inertia[used])
    sizes = np.linalg.eigvalsh(J)
    return {
        "com_mm_before": 1e3
        * float(np.sqrt((np.array(before) ** 2).sum(axis=1).mean())),
        "com_mm_after": 1e3 * float(np.sqrt((np.array(after) ** 2).sum(axis=1).mean())),
        "torque_percent": 100.0
        * float(np.sqrt(((predicted - truth) ** 2).mean() / (truth**2).mean())),
        "bodies_that_exist": float((sizes[:, 0] > 1e-9 * sizes[:, -1]).mean()),
    }


def compare(arguments: tuple[int, float, float]) -> dict[str, dict[str, Any]]:
    """All methods on one robot."""
    seed, seconds, longer = arguments
    robot, walks = record("go2", seed, seconds, Wrong(), (*GAITS, HELD_OUT))
    logs, scale = [walk.log for walk in walks[:-1]], Scale(robot.true.mass)
    identify_walking(logs, robot.believed, robot.config, scale)  # compiles
    begin = time.perf_counter()
    result = identify_walking(logs, robot.believed, robot.config, scale)
    own, u = time.perf_counter() - begin, result.unknowns
    kinds = ("armature", "coulomb", "viscous")
    ours = Found(
        result.theta, *(u.joints(result.z, kind) / result.rho for kind in kinds)
    )
    figures: dict[str, dict[str, Any]] = {
        "ours": score(robot, ours, result.posture, walks[-1]) | {"seconds": own}
    }
    linear = {
        "least_squares": lambda: least_squares(robot, result, False),
        "least_squares_nuisances": lambda: least_squares(robot, result, True),
        "lmi": lambda: lmi(robot, result),
    }
    for name, solve in linear.items():
        if name == "lmi" and not importlib.util.find_spec("clarabel"):
            figures[name] = {"missing": "clarabel is not installed"}
            continue
        begin = time.perf_counter()
        found = solve()
        taken = time.perf_counter() - begin
        figures[name] = score(robot, found, result.posture, walks[-1]) | {
            "seconds": taken
        }
    for name, factor in (("sysid", 1.0), ("sysid_10", longer)):
        if not all(
            map(importlib.util.find_spec, ("absl", "colorama", "tabulate", "plotly"))
        ):
            figures[name] = {"missing": "mujoco[sysid] is not installed"}
            continue
        rollouts = Rollouts(robot, walks[:-1], result)
        x, steps, windows = rollouts.identify(factor * own)
        inertial = 10 * len(rollouts.used)
        theta = full_theta(robot, x[:inertial].reshape(-1, 10))
        armature, coulomb, viscous = x[inertial:].reshape(5, -1)[:3]
        found = Found(theta, armature, coulomb, viscous)
        taken = factor * own
        figures[name] = score(robot, found, result.posture, walks[-1])
        figures[name] |= {"seconds": taken, "steps": steps, "windows": windows}
    return figures


def main() -> int:
    """Compares and prints."""
    parser = argparse.ArgumentParser(
        description="Other methods on recordings of walking."
    )
    parser.add_argument("--full", action="store_true", help="4 robots")
    parser.add_argument("--robots", type=int, help="default 2, --full: 4")
    parser.add_argument(
        "--seed", type=int, default=411, help="the robots have it and the next"
    )
    parser.add_argument("--seconds", type=float, default=10.0, help="of each gait")
    parser.add_argument(
        "--longer", type=float, default=10.0, help="time of sysid_10 over ours"
    )
    args = parser.parse_args()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # of the processes
    count = args.robots or (4 if args.full else 2)
    cases = [(args.seed + i, args.seconds, args.longer) for i in range(count)]
    done = in_processes(compare, cases, "robots")
    table, figures = Table("", *(f"{case[0]}: CoM mm, torque %" for case in cases)), {}
    for name in done[0]:
        parts = [robot[name] for robot in done]
        if "missing" in parts[0]:
            figures[name] = parts[0]
            continue
        table.add_row(
            name,
            *(f"{p['com_mm_after']:.2f}, {p['torque_percent']:.1f}" for p in parts),
        )
        figures[name] = {
            key: round(
                float(
                    (min if key == "bodies_that_exist" else max)(p[key] for p in parts)
                ),
                2,
            )
            for key in parts[0]
        }
    Console(width=120).print(table)
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
