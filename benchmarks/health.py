"""What the record of a robot notices: com_health on HOAP-2 whose sensors have all errors at once.

Each robot is wrong in all masses and CoMs, and is identified from 30 random mixed postures with an
IMU, nothing declared (see identification_honesty.py: errors of a case, truth by Pinocchio). Then it
is identified again,

same       with the same sensors, other postures and noise: whatever is reported is a false alarm
redrawn    with sensors, floor and IMU mounting drawn again: a reported body is a false alarm
N mm       the same, and the root's CoM has moved by N mm in a random horizontal direction
knee       the same, and one knee's zero is 5 degrees off, which is more than any prior allows

false_alarms_per_100   of comparisons same and redrawn; at most 1 is what com_health states
detected_mm            smallest of the moves that is found in nine of ten robots or more, with the
                       right body named, first or among those that explain it as well; null: none
found                  that fraction by mm
named_otherwise        fraction of the moved robots in which another body is named
knee                   fraction in which a body is wrongly reported, and in which the record warns

--full: 100 robots instead of 40 (20 for moves). The last line is one JSON object.
"""

from __future__ import annotations

import com_identification.nodes  # noqa: F401  (one thread, before anything loads numpy)

# isort: split
import argparse
import json
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from identification_scenario import PinocchioRobot, scenario_of
from identification_trials import (
    ALL,
    DEG,
    NOISE,
    Errors,
    Sensors,
    entries,
    mixed,
    wrong_robot,
)
from numpy.random import Generator

from com_identification.health.changes import RecordChange, compare
from com_identification.health.records import Record
from com_identification.regression.identify import identify
from com_identification.settings import FitSettings, IdentificationSettings
from com_identification.store.results import corrected_inertials
from com_model import RobotModel
from com_model.urdf.editing import edit_inertials

ROBOT, COUNT = "hoap2", 30
MOVES = (3.0, 5.0, 7.0, 10.0)  # mm
STEADY = replace(ALL, drift=0.0)  # a zero that drifts has changed


@dataclass(frozen=True)
class Run:
    """What was reported of one robot: the changes by case, and whether the knee gave a warning."""

    changes: dict[str, tuple[RecordChange, ...]]
    warned: bool = False


def moved(truth: PinocchioRobot, step: np.ndarray) -> PinocchioRobot:
    """The robot with the CoM of its root moved, m."""
    model = RobotModel.from_urdf(truth.xml)
    bodies = model.bodies
    com = np.divide(
        bodies.first_moment,
        bodies.mass[:, None],
        out=np.zeros((bodies.count, 3)),
        where=bodies.mass[:, None] > 0.0,
    )
    com[0] += step
    xml = edit_inertials(truth.xml, corrected_inertials(model, bodies.mass, com))
    return PinocchioRobot(xml, truth.model, truth.feet)


def record(sensors: Sensors, number: int, rng: Generator) -> Record:
    """Identifies a robot by its sensors."""
    scenario = scenario_of(ROBOT)
    readings = sensors.read(mixed(entries(ROBOT)[0], COUNT, rng), True)
    settings = IdentificationSettings(
        noise=NOISE[ROBOT], fit=FitSettings(folds=0, use_imu=True)
    )
    found = identify(scenario.model, scenario.feet, readings, settings)
    return Record.from_identification(
        found, scenario.model, str(number), number * 10**9
    )


def run(seed: int, moves: Sequence[float]) -> Run:
    """One robot, identified again and again."""
    rng = np.random.default_rng([seed, 21])
    truth = wrong_robot(ROBOT, ALL, rng)

    def sensors(robot: PinocchioRobot, errors: Errors) -> Sensors:
        return Sensors(robot, ROBOT, errors, rng)

    first = sensors(truth, STEADY)
    before = record(first, 0, rng)
    again = {
        "same": record(first, 1, rng),
        "redrawn": record(sensors(truth, ALL), 2, rng),
    }
    for i, mm in enumerate(moves):
        angle = rng.uniform(0.0, 2.0 * np.pi)
        step = 1e-3 * mm * np.array([np.cos(angle), np.sin(angle), 0.0])
        again[str(mm)] = record(sensors(moved(truth, step), ALL), 3 + i, rng)
    if moves:
        again["knee"] = record(sensors(truth, replace(ALL, one_zero=5.0 * DEG)), 9, rng)
    changes = {name: compare(before, other).changes for name, other in again.items()}
    return Run(changes, bool(moves and again["knee"].issues))


def main() -> None:
    """Runs all robots in two processes, prints a table and the JSON line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="100 robots")
    parser.add_argument("--robots", type=int, default=0, help="how many instead")
    options = parser.parse_args()
    count = options.robots or (100 if options.full else 40)
    some = count if options.full else max(1, count // 2)
    with ProcessPoolExecutor(2) as pool:
        jobs = [MOVES if i < some else () for i in range(count)]
        runs = list(pool.map(run, range(count), jobs))
    root = scenario_of(ROBOT).model.bodies.names[0]
    alarms = {
        "same": [bool(r.changes["same"]) for r in runs],
        "redrawn": [bool(_bodies(r.changes["redrawn"])) for r in runs],
    }
    for name, values in alarms.items():
        print(f"{name:8}: false alarms in {sum(values)} of {len(values)} comparisons")
    found, otherwise = {}, []
    for mm in map(str, MOVES):
        bodies = [_bodies(r.changes[mm]) for r in runs if mm in r.changes]
        found[mm] = float(
            np.mean([any(_names(c, root) for c in some) for some in bodies])
        )
        otherwise += [any(not _names(c, root) for c in some) for some in bodies]
        print(f"{mm:>5} mm: found in {found[mm]:.0%} of {len(bodies)} robots")
    knees = [r for r in runs if "knee" in r.changes]
    summary = {
        "detected_mm": min(
            (float(mm) for mm, part in found.items() if part >= 0.9), default=None
        ),
        "false_alarms_per_100": 100.0
        * float(np.mean([*alarms["same"], *alarms["redrawn"]])),
        "comparisons": 2 * count,
        "found": found,
        "named_otherwise": float(np.mean(otherwise)),
        "knee": {
            "body_reported": float(
                np.mean([bool(_bodies(r.changes["knee"])) for r in knees])
            ),
            "warned": float(np.mean([r.warned for r in knees])),
        },
    }
    print(json.dumps(summary))


def _bodies(changes: Sequence[RecordChange]) -> list[RecordChange]:
    return [change for change in changes if change.what != "sensor"]


def _names(change: RecordChange, body: str) -> bool:
    return body in (change.name, *change.instead)


if __name__ == "__main__":
    main()
