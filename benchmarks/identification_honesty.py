"""Whether an identification that declares nothing is honest: error, sigma and NEES by true error.

HOAP-2 and TALOS with wrong centres of mass, read by sensors with the errors of a case. The truth,
the wrenches and the sensors' errors are computed here with Pinocchio, not with the suite's
regressor; the sensors' errors are applied exactly, not to first order. 30 random mixed postures
(half on both feet, a quarter on each), 60 in the cases that say so; the horizontal error of the CoM
relative to the root that is predicted in 40 other postures on both feet, RMS, mean of the seeds.

urdf_mm       error of the URDF
found_mm      error of the identification
sigma_mm      what it says, RMS length
nees          squared error over its covariance, mean of the 40 predictions and the seeds: 1 is
              honest, below 1 cautious; nees_max is the worst run
mass_nees     squared error of the total mass over its variance; mass_kg its mean size
alarms        fraction of runs that say that errors exceed the priors, and which
nees_range    smallest and largest of the cases with all errors at once, within the priors
worse_than_urdf  number of cases, within the priors, whose mean error is above the URDF's
worse_runs       fraction of the runs of these cases whose error is; worse in each case's row

--full: 16 seeds instead of 4. The last line is one JSON object.
"""

from __future__ import annotations

import com_identification.nodes  # noqa: F401  (one thread, before anything loads numpy)

# isort: split
import argparse
import json
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from identification_scenario import scenario_of
from identification_trials import (
    ALL,
    DEG,
    NOISE,
    Errors,
    Sensors,
    entries,
    mixed,
    prediction_scores,
    wrong_robot,
)
from rich.console import Console
from rich.table import Table

from com_identification.regression.identify import identify
from com_identification.settings import FitSettings, IdentificationSettings


@dataclass(frozen=True)
class Case:
    """One row of the table.

    Attributes:
        errors: The true errors.
        imu: Whether there is an IMU.
        count: Number of postures.
        within: Whether the errors are within the priors.
    """

    errors: Errors
    imu: bool = False
    count: int = 30
    within: bool = True


CASES = {
    "none": Case(Errors()),
    "none, IMU": Case(Errors(), imu=True),
    "wrench zeros": Case(Errors(bias=1.0)),
    "wrench zeros and drift": Case(Errors(bias=1.0, drift=0.05)),
    "encoder zeros": Case(Errors(zeros=0.5 * DEG)),
    "backlash": Case(Errors(backlash=0.1 * DEG)),
    "gain per axis": Case(Errors(gain=0.02)),
    "crosstalk": Case(Errors(crosstalk=0.01)),
    "sensor origin": Case(Errors(origin=0.002)),
    "sensor orientation": Case(Errors(orientation=0.5 * DEG)),
    "slope 0.5 deg": Case(Errors(slope=0.5 * DEG)),
    "slope 1 deg": Case(Errors(slope=1.0 * DEG)),
    "IMU mounting": Case(Errors(mounting=0.5 * DEG), imu=True),
    "masses": Case(Errors(masses=0.05)),
    "elastic joints": Case(Errors(joints=0.1 * DEG)),
    "elastic soles": Case(Errors(soles=0.2 * DEG)),
    "elastic soles, IMU": Case(Errors(soles=0.2 * DEG), imu=True),
    "all, IMU": Case(ALL, imu=True),
    "all": Case(ALL),
    "all, IMU, 60 postures": Case(ALL, imu=True, count=60),
    "3 postures touched, all, IMU": Case(replace(ALL, touched=3), imu=True),
    "all doubled, IMU": Case(ALL.times(2.0), imu=True, within=False),
    "cable, IMU": Case(replace(ALL, cable=0.02), imu=True),
    "backpack 10 %, IMU": Case(replace(ALL, backpack=0.1), imu=True),
    "backpack 20 %, IMU": Case(replace(ALL, backpack=0.2), imu=True),
    "one knee's zero 5 deg, IMU": Case(
        replace(ALL, one_zero=5.0 * DEG), imu=True, within=False
    ),
}


@dataclass(frozen=True)
class Run:
    """Errors of one run: mm RMS of URDF, result and sigma; NEES; whether the alarm is raised."""

    robot: str
    case: str
    urdf: float
    found: float
    sigma: float
    nees: float
    alarm: bool
    cause: str
    mass: float
    mass_std: float
    seconds: float


def run(robot: str, name: str, seed: int) -> Run:
    """Identifies one robot and judges its predictions against Pinocchio's."""
    case, scenario = CASES[name], scenario_of(robot)
    rng = np.random.default_rng([seed, 3])
    truth = wrong_robot(robot, case.errors, rng)
    postures, others = entries(robot)
    chosen = mixed(postures, case.count, rng)
    readings = Sensors(truth, robot, case.errors, rng).read(chosen, case.imu)
    settings = IdentificationSettings(
        noise=NOISE[robot], fit=FitSettings(folds=0, use_imu=case.imu)
    )
    start = time.process_time()
    found = identify(scenario.model, scenario.feet, readings, settings)
    seconds = time.process_time() - start
    scores = prediction_scores(robot, truth, found, others)
    mass = found.total_mass - truth.mass, found.total_mass_std
    return Run(*(robot, name, *scores, found.cause, *mass, seconds))


def summarize(runs: Sequence[Run]) -> dict[str, dict[str, float]]:
    """Means of the seeds by case."""
    rows: dict[str, dict[str, float]] = {}
    for name in CASES:
        some = [each for each in runs if each.case == name]
        if not some:
            continue
        rows[name] = {
            "urdf_mm": float(np.mean([r.urdf for r in some])),
            "found_mm": float(np.mean([r.found for r in some])),
            "sigma_mm": float(np.mean([r.sigma for r in some])),
            "nees": float(np.mean([r.nees for r in some])),
            "nees_max": max(r.nees for r in some),
            "worse": float(np.mean([r.found > r.urdf for r in some])),
            "alarms": float(np.mean([r.alarm for r in some])),
            "mass_nees": float(np.mean([(r.mass / r.mass_std) ** 2 for r in some])),
            "mass_kg": float(np.mean([abs(r.mass) for r in some])),
        }
    return rows


def show(console: Console, robot: str, rows: dict[str, dict[str, float]]) -> None:
    """Prints the table of one robot."""
    table = Table(
        title=f"{robot}: horizontal error of the predicted CoM, nothing declared"
    )
    heads = (
        "URDF mm",
        "found mm",
        "sigma mm",
        "NEES",
        "worst",
        "worse than URDF",
        "alarms",
        "mass NEES",
        "mass kg",
    )
    for heading in ("true errors", *heads):
        table.add_column(heading)
    for name, row in rows.items():
        table.add_row(name, *(f"{value:.2f}" for value in row.values()))
    console.print(table)


def main() -> None:
    """Runs all cases in two processes, prints tables and the JSON line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="16 seeds")
    parser.add_argument("--seeds", type=int, default=0, help="how many instead")
    parser.add_argument(
        "--cases", default="", help="parts of names, with ; between them"
    )
    parser.add_argument("--robots", default="hoap2,talos")
    options = parser.parse_args()
    seeds = options.seeds or (16 if options.full else 4)
    words = [word for word in options.cases.split(";") if word]
    jobs = [
        (robot, name, seed)
        for robot in options.robots.split(",")
        for name in CASES
        for seed in range(seeds)
        if not words or any(word in name for word in words)
    ]
    console = Console(width=120)
    with ProcessPoolExecutor(2) as pool:
        runs = list(pool.map(run, *zip(*jobs, strict=True), chunksize=2))
    robots = {}
    for robot in options.robots.split(","):
        robots[robot] = summarize([each for each in runs if each.robot == robot])
        show(console, robot, robots[robot])
    for each in runs:
        if each.cause:
            console.print(f"{each.robot}, {each.case}: {each.cause}")
    print(f"{np.mean([each.seconds for each in runs]):.1f} CPU s an identification")
    within = [
        (name, row)
        for rows in robots.values()
        for name, row in rows.items()
        if CASES[name].within
    ]
    nees = [row["nees"] for name, row in within if name.startswith("all")] or [
        float("nan")
    ]
    summary = {
        "robots": robots,
        "nees_range": [min(nees), max(nees)],
        "worse_than_urdf": sum(row["found_mm"] > row["urdf_mm"] for _, row in within),
        "worse_runs": float(np.mean([row["worse"] for _, row in within])),
    }
    print(json.dumps(_rounded(summary)))


def _rounded(value: object) -> object:
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


if __name__ == "__main__":
    main()
