"""Bodies whose centre of mass postures do not determine: how many, and how wrong each one stays.

Robots, sensors and random mixed postures are those of identification_honesty.py, with all errors
and the IMU. An axis of a body's CoM counts as determined if its standard deviation has fallen below
KNOWN of the prior's; the other axes keep about the URDF's value, and their error.

By robot and number of postures, means of the seeds:
  bodies           that have a mass and are not known from the start
  all, some, none  of them with three, one or two, and no axis determined
  mm               error of one body's CoM, RMS of the axes: [of the URDF, identified]
  whole_mm         error of the whole robot's horizontal CoM in other postures: likewise
  nees             of single axes, squared error over variance: 1 is honest, below 1 cautious

The last line is one JSON object.
"""

from __future__ import annotations

import com_identification.nodes  # noqa: F401  (one thread, before anything loads numpy)

# isort: split
import argparse
import json

import numpy as np
from identification_scenario import scenario_of
from identification_trials import (
    ALL,
    NOISE,
    Sensors,
    entries,
    mixed,
    prediction_scores,
    wrong_robot,
)
from processes import in_processes

from com_identification.regression.identify import identify
from com_identification.regression.result import by_body
from com_identification.settings import FitSettings, IdentificationSettings
from com_model import RobotModel

KNOWN, MM = 0.8, 1e3  # fraction of the prior's standard deviation, mm/m
ROBOTS, COUNTS = ("hoap2", "talos"), (30, 60)


def judge(job: tuple[str, int, int]) -> list[float]:
    """Identifies a robot by a number of postures, with a seed; returns the figures in order."""
    robot, count, seed = job
    scenario, rng = scenario_of(robot), np.random.default_rng([seed, 3])
    truth = wrong_robot(robot, ALL, rng)
    postures, others = entries(robot)
    readings = Sensors(truth, robot, ALL, rng).read(
        mixed(postures, count, rng), imu=True
    )
    settings = IdentificationSettings(noise=NOISE[robot], fit=FitSettings(folds=0))
    found = identify(scenario.model, scenario.feet, readings, settings)
    before, after, *_ = prediction_scores(robot, truth, found, others)
    _, com, _, std = by_body(found.parameters, found.covariance)
    used = (scenario.model.bodies.mass > 0.0) & (found.prior_com_std > 0.0).all(axis=1)
    determined = (std < KNOWN * found.prior_com_std)[used].sum(axis=1)
    bodies = RobotModel.from_urdf(truth.xml).bodies
    true = bodies.first_moment[used] / bodies.mass[used, None]
    error, start = com[used] - true, found.prior_com[used] - true
    return [
        int(used.sum()),
        *(int(np.isin(determined, axes).sum()) for axes in ([3], [1, 2], [0])),
        *(MM * float(np.sqrt(np.mean(e**2))) for e in (start, error)),
        before,
        after,
        float(np.mean((error / std[used]) ** 2)),
    ]


def main() -> None:
    """Prints the JSON line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=4, help="runs of each robot")
    seeds = range(parser.parse_args().seeds)
    jobs = [
        (robot, count, seed) for robot in ROBOTS for count in COUNTS for seed in seeds
    ]
    results = dict(zip(jobs, in_processes(judge, jobs, "runs"), strict=True))
    figures: dict[str, dict[str, object]] = {}
    for robot in ROBOTS:
        for count in COUNTS:
            runs = [results[robot, count, seed] for seed in seeds]
            n, *axes, mm, found, whole, whole_found, nees = np.mean(runs, axis=0)
            figures.setdefault(robot, {})[str(count)] = {
                "bodies": int(n),
                **dict(
                    zip(
                        ("all", "some", "none"), np.round(axes, 1).tolist(), strict=True
                    )
                ),
                "mm": [round(float(mm), 2), round(float(found), 2)],
                "whole_mm": [round(float(whole), 2), round(float(whole_found), 2)],
                "nees": round(float(nees), 2),
            }
            print(robot, count, figures[robot][str(count)])
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
