"""Whether the identification's stds are honest: NEES with several readings and errors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from identification_plans import Informer
from identification_scenario import (
    GRAVITY,
    NOISE,
    Array,
    PinocchioRobot,
    hoap2,
    wrong_robot,
)
from rich.console import Console
from rich.table import Table

from com_identification.regression.identify import identify
from com_identification.regression.postures import Posture, make_posture
from com_identification.settings import (
    FitSettings,
    IdentificationSettings,
    PlanOptions,
    SensorPriors,
)

POSTURES = 30
FORCE, MOMENT = 2.0, 0.1  # N, N m, standard deviations of the biases
WEIGHT = GRAVITY * hoap2().model.mass
SENSORS = SensorPriors.calibrated(
    force_bias=FORCE / WEIGHT,
    moment_bias=MOMENT / WEIGHT,
    joint_offset=float(np.radians(0.5)),
)
OUTLIERS = 0.05  # fraction of the postures
PUSH = 1.0  # N m, what holds or pushes the robot in those

Reader = Callable[[PinocchioRobot, Array, np.random.Generator], list[Posture]]


def _feet(robot: PinocchioRobot, Q: Array, rng: np.random.Generator) -> list[Posture]:
    return [robot.posture(q, rng) for q in Q]


def _torques(
    robot: PinocchioRobot, Q: Array, rng: np.random.Generator
) -> list[Posture]:
    return [robot.posture(q, rng, effort=True) for q in Q]


def _sensor_errors(
    robot: PinocchioRobot, Q: Array, rng: np.random.Generator
) -> list[Posture]:
    offset = rng.normal(0.0, SENSORS.joint_offset, Q.shape[1])
    spread = np.repeat([FORCE, MOMENT], 3)
    bias = rng.normal(0.0, 1.0, (len(robot.feet), 6)) * spread
    model = robot.model
    return [
        make_posture(
            model, p.q - offset, p.wrenches + bias, p.effort, samples=p.samples
        )
        for p in _torques(robot, Q, rng)
    ]


def _outliers(
    robot: PinocchioRobot, Q: Array, rng: np.random.Generator
) -> list[Posture]:
    postures = _feet(robot, Q, rng)
    for i in rng.permutation(len(Q))[: round(OUTLIERS * len(Q))]:
        wrenches = postures[i].wrenches.copy()
        wrenches[0, 3:] += rng.choice([-PUSH, PUSH], 3)
        q, samples = postures[i].q, postures[i].samples
        postures[i] = make_posture(robot.model, q, wrenches, samples=samples)
    return postures


CASES: dict[str, tuple[Reader, SensorPriors]] = {
    "feet": (_feet, SensorPriors.calibrated()),
    "joint torques too": (_torques, SensorPriors.calibrated()),
    "sensors' biases and zeros unknown": (_sensor_errors, SENSORS),
    "5 % of the postures are outliers": (_outliers, SensorPriors.calibrated()),
}


def nees_cases(console: Console, robots: int, plan: PlanOptions) -> dict[str, float]:
    """Mean NEES of what postures on both feet determine, by case."""
    scenario = hoap2()
    Q = np.array([posture.q for posture in scenario.planned(plan, POSTURES)])
    informer = Informer(scenario)
    _, s, Vt = np.linalg.svd(
        informer.prediction([(q, (0, 1)) for q in Q]), full_matrices=False
    )
    observable = Vt[s > 1e-9 * s[0]] @ np.linalg.pinv(informer.factor)
    table = Table(
        title=f"NEES of {len(observable)} combinations, {robots} robots, {POSTURES} postures"
    )
    for heading in ("case", "NEES", "outliers found, a robot"):
        table.add_column(heading)
    results = {}
    for name, (read, sensors) in CASES.items():
        values, outliers = [], []
        for seed in range(robots):
            rng = np.random.default_rng([seed, 7])
            robot, truth = wrong_robot(scenario, rng)
            fit = FitSettings(folds=0, use_effort=True)
            settings = IdentificationSettings(noise=NOISE, sensors=sensors, fit=fit)
            found = identify(
                scenario.model,
                scenario.feet,
                read(robot, Q, rng),
                settings,
                scenario.priors,
            )
            error = observable @ (found.parameters - truth)
            scatter = observable @ found.covariance @ observable.T
            values.append(
                float(error @ np.linalg.solve(scatter, error)) / len(observable)
            )
            outliers.append(len(found.outliers))
        results[name] = float(np.mean(values))
        table.add_row(name, f"{results[name]:.2f}", f"{np.mean(outliers):.1f}")
    console.print(table)
    return results
