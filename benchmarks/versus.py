"""Ours beside what people would use instead: the same readings, one run, ten scenarios with truth.

Methods   "URDF as is"; "constant offset": the URDF plus what the robot shows at rest, kept;
          "least squares": Pinocchio's regressor, the step from the URDF that is least (postures:
          masses known; trot: recursive); "MuJoCo sysid": masses and CoMs by mujoco.minimize with
          MuJoCo's inverse dynamics, from the URDF, within bounds; neither knows of errors of
          sensors; "ours".
postures  HOAP-2 (masses 5 %, CoMs 5 mm off, truth by Pinocchio), 30 mixed postures: clean, encoder
          zeros of 0.5 degrees, wrench zeros of 1 N and 0.05 N m that drift, floor 1 degree off
          without IMU. error_mm: horizontal CoM predicted in 40 other postures, RMS of the seeds
sway,     TALOS for 10 s, with the small errors of all sensors and bodies of diagnosis.py: some 4 kg
walk      in a hand from 4 s on; trunk's CoM some 25 mm off and IMU exact, or tilted by 0.7 degrees,
          or soft ground. error_mm: horizontal CoM of the robot, mean of the last 2 s; ours and the
          constant offset run live, the others fit the second half of the log as a whole
trot      SCALF-II, trunk's CoM (-3, 10) cm off: sensors with noise only; joints with 10 N m of
          friction and torques with a bias of 10 N m. error_mm: mean from 1 s after lift-off on
nees      squared error over its covariance, 1 is honest; null: the method states none
cpu_s     of one estimation

Your own method:

  versus.py --write DIR                       the scenarios as bags, without the truth
  versus.py --only "walk, clean" --estimate mine=corrected.urdf
  versus.py --only "walk, clean" --estimate mine=com.csv         or mine=BAG:/topic

com.csv has lines time,x,y,z[,std_x,std_y,std_z] in the root link's axes, m, s from the first
reading; the topic is geometry_msgs/PointStamped. In postures a URDF is judged in the held-out ones;
for the others run your method on held_out (two seconds in each posture). While swaying and walking
it is the robot's CoM, in the last 2 s; while trotting the trunk's, from 1 s after lift-off on. No
estimate for more than 0.5 s of that, or in one of the postures, is refused. One seed then, that of
--write: robot.urdf, robot.yaml, and readings with joints, wrenches (none while trotting), IMU.
--seeds N (2). The last line is one JSON object {scenario: {method: {error_mm, nees, cpu_s}}}.
"""

from __future__ import annotations

import com_identification.nodes  # noqa: F401  (one thread, before anything loads numpy)

# isort: split
import argparse
import json
import re
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from baselines.unweighted_least_squares import UrdfRobot, least_squares, predict
from baselines.whole_body import Motion, mujoco_identification, total_wrench
from identification_bags import START_NS, BagWriter, Moving, Samples
from identification_scenario import (
    Array,
    PinocchioRobot,
    com_error,
    rms_length,
    scenario_of,
)
from identification_trials import (
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
from trot_errors import Errors as TrotErrors
from trot_errors import with_errors
from trot_lab import TrotLog, TrotRun, run_trot
from trot_tracks import FLOATING, LEAST_SQUARES, LIFT_OFF, SETTLED, STANDS, URDF, track
from versus_estimates import Recorded, Score, judge_all, read_table, write_robot
from versus_walks import walk_case, walk_scores

from com_identification.regression.identify import identify
from com_identification.regression.postures import Posture
from com_identification.settings import FitSettings, IdentificationSettings
from com_model import RobotModel, load_robot
from com_model.geometry.rotations import minimal_rotation

ROBOT, TROTTER, COUNT, MM = "hoap2", "scalf2", 30, 1e3
HOLD, MOVE, RATE = 2.0, 0.5, 100.0  # s, s, Hz, of the bags
POSTURES = {
    "postures, clean": (Errors(masses=0.05), True),
    "postures, encoder zeros": (Errors(masses=0.05, zeros=0.5 * DEG), True),
    "postures, F/T bias": (Errors(masses=0.05, bias=1.0, drift=0.05), True),
    "postures, floor slope": (Errors(masses=0.05, slope=1.0 * DEG), False),
}
WALKS = {  # motion, culprits of benchmarks/diagnosis.py, contact
    "sway, payload step": ("sway", ("hand",), "stiff"),
    "walk, clean": ("walk", ("trunk",), "stiff"),
    "walk, IMU tilt": ("walk", ("trunk", "tilt"), "stiff"),
    "walk, soft ground": ("walk", ("trunk",), "soft"),
}
TROTS = {"trot, clean": (0.0, 0.0), "trot, friction and torque bias": (10.0, 10.0)}
NO_FORCES = "not run: the forces of the ground are not measured"


@dataclass(frozen=True, eq=False)
class Postures:
    """The readings of a posture scenario, and the truth."""

    truth: PinocchioRobot
    readings: list[Posture]
    others: Array  # (40, n) rad, held-out postures
    imu: bool


def recorded(name: str, seed: int) -> Postures:
    """Makes the readings of a posture scenario."""
    errors, imu = POSTURES[name]
    rng = np.random.default_rng([seed, 4])
    truth = wrong_robot(ROBOT, errors, rng)
    postures, others = entries(ROBOT)
    # the first one is the robot as it stands, by which a constant offset is found
    chosen = sorted(mixed(postures, COUNT, rng), key=lambda item: -len(item[1]))
    return Postures(
        truth, Sensors(truth, ROBOT, errors, rng).read(chosen, imu), others, imu
    )


class Regressor(UrdfRobot):
    """Pinocchio's regressor; gravity by the IMU, or by the sole that carries more."""

    def __init__(self, robot: PinocchioRobot, imu: bool) -> None:
        super().__init__(robot)
        self.imu = imu

    def projection(self, posture: Posture) -> tuple[Array, Array, Array]:
        """Horizontal axes (2, 3), the point (3,) under the CoM, up (3,); root axes."""
        robot = self.robot
        loaded = int(np.argmax(np.linalg.norm(posture.wrenches[:, :3], axis=1)))
        R, p = robot.frame(posture.q, robot.feet[loaded].frame)
        up = posture.up if self.imu else R[:, 2]
        force, moment = np.zeros(3), np.zeros(3)
        for foot, wrench in zip(robot.feet, posture.wrenches, strict=True):
            R_s, p_s = robot.frame(posture.q, foot.wrench_frame)
            push = foot.wrench_sign * (R_s @ wrench[:3])
            force += push
            moment += foot.wrench_sign * (R_s @ wrench[3:]) + np.cross(p_s - p, push)
        point = p + np.cross(up, moment) / (force @ up)
        return np.linalg.svd(up[None])[2][1:], point, up

    def motion(self, readings: Sequence[Posture]) -> Motion:
        """The postures as a motion at rest."""
        robot, z = self.robot, np.array([0.0, 0.0, 1.0])
        signs = [foot.wrench_sign for foot in robot.feet]
        q = np.array([posture.q for posture in readings])
        R = np.array([minimal_rotation(self.projection(p)[2], z) for p in readings])
        wrench = np.array(
            [total_wrench(robot, p.q, p.wrenches, signs) for p in readings]
        )
        still = np.zeros((len(q), robot.pin.nv))
        return Motion(q, R, still, still, wrench)


def posture_scores(
    name: str, seed: int, estimates: Sequence[str] = ()
) -> dict[str, Score]:
    """All methods on the same postures."""
    scenario, log = scenario_of(ROBOT), recorded(name, seed)
    urdf = Regressor(
        PinocchioRobot(scenario.model.xml, scenario.model, scenario.feet), log.imu
    )

    def score(com: Callable[[Array], Array], start: float) -> Score:
        seconds = time.process_time() - start
        errors = [com_error(log.truth, q, com(q)) for q in log.others]
        return Score(MM * rms_length(errors), None, seconds)

    result = {"URDF as is": score(urdf.robot.com, time.process_time())}
    start, first = time.process_time(), log.readings[0]
    _, point, up = urdf.projection(first)
    gap = point - urdf.robot.com(first.q)
    gap = gap - (gap @ up) * up
    result["constant offset"] = score(lambda q: urdf.robot.com(q) + gap, start)
    start = time.process_time()
    moment = least_squares(urdf, log.readings, torques=False)
    result["least squares"] = score(lambda q: predict(urdf, moment, q), start)
    start = time.process_time()
    fit = FitSettings(folds=0, use_imu=log.imu)
    settings = IdentificationSettings(noise=NOISE[ROBOT], fit=fit)
    found = identify(scenario.model, scenario.feet, log.readings, settings)
    seconds = time.process_time() - start
    _, error, _, nees, _ = prediction_scores(ROBOT, log.truth, found, log.others)
    result["ours"] = Score(error, nees, seconds)
    start = time.process_time()
    corrected = mujoco_identification(urdf.robot, urdf.motion(log.readings))
    result["MuJoCo sysid"] = score(corrected.com, start)
    for estimate in estimates:
        label, _, path = estimate.partition("=")
        result[label] = judge_file(path, log)
    return result


def trot_log(name: str, seed: int, seconds: float = 4.0) -> TrotLog:
    """A trot as the sensors read it, with the truth."""
    friction, bias = TROTS[name]
    rng = np.random.default_rng([seed, 5])
    run = TrotRun(TROTTER, offset=(-0.03, 0.10, 0.0), seconds=LIFT_OFF + seconds, gait=STANDS,
                  seed=500 + seed, friction=friction)  # fmt: skip
    log = run_trot(run)
    return with_errors(
        log, TrotErrors(bias=bias * rng.normal(size=log.effort.shape[1]))
    )


def trot_recorded(log: TrotLog) -> Recorded:
    """A trot as anybody's estimate is judged, and written to a bag."""
    count = len(log.time)
    moving = Moving(
        log.R_world_imu, log.velocity, log.angular_velocity, log.specific_force
    )
    readings = Samples(
        START_NS + np.round(1e9 * log.time).astype(np.int64),
        log.position,
        log.effort,
        np.empty((count, 0, 6)),
        log.R_world_imu[:, 2],
        moving,
    )
    R = np.tile(np.eye(3), (count, 1, 1))
    first = int(np.searchsorted(log.time, LIFT_OFF + SETTLED - 1e-9))
    return Recorded(TROTTER, log.model, log.config, readings, log.trunk_com, R, first,
                    lambda path: np.tile(trunk_com(path), (count, 1)))  # fmt: skip


def trunk_com(path: Path) -> Array:
    """The trunk's CoM (3,) m by a URDF, root axes."""
    bodies = RobotModel.from_file(path).bodies
    return np.asarray(bodies.first_moment[0] / bodies.mass[0])


def trot_scores(
    name: str, seed: int, estimates: Sequence[str] = ()
) -> dict[str, Score]:
    """All methods on the same trot."""
    log = trot_log(name, seed)
    result = {"MuJoCo sysid": Score(None, why=NO_FORCES)}
    for label, method in (
        ("URDF as is", URDF),
        ("least squares", LEAST_SQUARES),
        ("ours", FLOATING),
    ):
        start = time.process_time()
        found = track(log, method)
        cpu = time.process_time() - start
        after, nees = found.time >= SETTLED, None
        if method == FLOATING:
            error, covariance = found.error[-1, :2], found.covariance[-1, :2, :2]
            nees = float(error @ np.linalg.solve(covariance, error)) / 2.0
        result[label] = Score(MM * float(found.distance()[after].mean()), nees, cpu)
        if method == LEAST_SQUARES:  # what it says before the first step, kept
            standing = found.distance()[found.time < 0.0]
            result["constant offset"] = Score(MM * float(standing[-1]), None, cpu)
    return result | judge_all(estimates, lambda: trot_recorded(log))


# --- anybody's estimate -------------------------------------------------------------------------
def judge_file(path: str, log: Postures) -> Score:
    """Judges a corrected URDF, a table of CoMs, or a topic of a bag."""
    if path.endswith(".urdf"):
        scenario = scenario_of(ROBOT)
        robot = PinocchioRobot(Path(path).read_text(), scenario.model, scenario.feet)
        errors = [com_error(log.truth, q, robot.com(q)) for q in log.others]
        return Score(MM * rms_length(errors))
    rows = read_table(path)
    place = (rows[:, 0] // (HOLD + MOVE)).astype(int)
    still = (
        (rows[:, 0] % (HOLD + MOVE) < HOLD) & (place >= 0) & (place < len(log.others))
    )
    missing = len(log.others) - len(np.unique(place[still]))
    if missing:
        raise SystemExit(
            f"{path}: no estimate in {missing} of {len(log.others)} held-out postures"
        )
    errors, squares = [], []
    for k, row in zip(place[still], rows[still], strict=True):
        q = log.others[k]
        error = com_error(log.truth, q, row[1:4])
        errors.append(error)
        if rows.shape[1] == 7:
            R = log.truth.frame(q, log.truth.feet[0].frame)[0][:, :2]
            squares.append(
                error @ np.linalg.solve(R.T @ np.diag(row[4:7] ** 2) @ R, error) / 2.0
            )
    return Score(MM * rms_length(errors), float(np.mean(squares)) if squares else None)


def write_bags(folder: Path, names: Sequence[str]) -> None:
    """Writes scenarios as bags: the readings, and of postures the held-out ones."""
    for name in names:
        place = folder / re.sub(r"\W+", "_", name)
        if name in WALKS:
            walk_case(WALKS[name], 0).recorded().write(place)
        elif name in TROTS:
            trot_recorded(trot_log(name, 0)).write(place)
        else:
            write_postures(place, recorded(name, 0))
        print(f"wrote {place}")


def write_postures(place: Path, log: Postures) -> None:
    """Writes a posture scenario, without the truth."""
    model, config = load_robot(ROBOT)
    scene: Any = SimpleNamespace(model=model, config=config, feet=tuple(config.feet))
    place.mkdir(parents=True)
    write_robot(place, ROBOT, model)
    blank = [unread(q, np.zeros_like(log.readings[0].wrenches)) for q in log.others]
    for bag, postures in (("readings", log.readings), ("held_out", blank)):
        with BagWriter(place / bag, scene, imu=log.imu) as writer:
            writer.write(_samples(postures, np.random.default_rng(0)))


def unread(q: Array, wrenches: Array) -> Any:
    """A posture without readings."""
    return SimpleNamespace(q=q, wrenches=wrenches, up=np.array([0.0, 0.0, 1.0]))


def _samples(postures: Sequence[Any], rng: np.random.Generator) -> Samples:
    """Each posture for HOLD s, and MOVE s to the next one."""
    hold, move = round(HOLD * RATE), round(MOVE * RATE)
    ends = [*postures[1:], postures[-1]]

    def rows(name: str) -> Array:
        parts = []
        for here, there in zip(postures, ends, strict=True):
            a, b = getattr(here, name), getattr(there, name)
            s = np.concatenate([np.zeros(hold), np.linspace(0.0, 1.0, move)])
            parts.append(a + s.reshape(-1, *(1,) * a.ndim) * (b - a))
        return np.concatenate(parts)

    q, wrenches, up = rows("q"), rows("wrenches"), np.nan_to_num(rows("up"), nan=0.0)
    up[~up.any(axis=1), 2] = 1.0
    up = up + 1e-4 * rng.normal(size=up.shape)
    q = q + 1e-6 * rng.normal(
        size=q.shape
    )  # a sensor that repeats itself counts as dead
    wrenches = wrenches + 1e-3 * rng.normal(size=wrenches.shape)
    times = START_NS + np.round(np.arange(len(q)) * 1e9 / RATE).astype(np.int64)
    return Samples(times, q, np.zeros_like(q), wrenches, up)


# --- the table ----------------------------------------------------------------------------------
def summarize(runs: Sequence[dict[str, Score]]) -> dict[str, dict[str, Any]]:
    """Means of the seeds by method."""
    table = {}
    for method in runs[0]:
        scores = [run[method] for run in runs]
        entry: dict[str, Any] = {}
        for name in ("error_mm", "nees", "cpu_s"):
            values = [getattr(score, name) for score in scores]
            digits = 3 if name == "cpu_s" else 4
            entry[name] = (
                None if None in values else round(float(np.mean(values)), digits)
            )
        table[method] = {**entry, **({"why": scores[0].why} if scores[0].why else {})}
    return table


def main() -> None:
    """Runs all scenarios in two processes, prints the table and the JSON line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--seeds", type=int, default=2, help="how many runs of each scenario")
    add("--only", default="", help="part of the names of scenarios")
    add(
        "--estimate", action="append", default=[], metavar="NAME=FILE", help="see above"
    )
    add(
        "--write", type=Path, metavar="DIR", help="write the scenarios as bags, and end"
    )
    options = parser.parse_args()
    postures = [name for name in POSTURES if options.only in name]
    walks = [name for name in WALKS if options.only in name]
    trots = [name for name in TROTS if options.only in name]
    chosen = [*postures, *walks, *trots]
    if options.write:
        write_bags(options.write, chosen)
        return
    for estimate in options.estimate:
        name, _, file = estimate.partition("=")
        if not (name and file and Path(file.partition(":")[0]).exists()):
            parser.error(
                f"--estimate: expected NAME=FILE of a file that exists, got {estimate!r}"
            )
    if options.estimate and len(chosen) != 1:
        parser.error(
            f"--estimate is for one scenario: choose it by --only, got {chosen}"
        )
    seeds = range(1 if options.estimate else options.seeds)
    results: dict[str, Any] = {}
    with ProcessPoolExecutor(2) as pool:
        given, jobs = options.estimate, dict[str, list[Future[dict[str, Score]]]]()
        for name in postures:
            jobs[name] = [pool.submit(posture_scores, name, s, given) for s in seeds]
        for name in walks:
            jobs[name] = [
                pool.submit(walk_scores, WALKS[name], s, given) for s in seeds
            ]
        for name in trots:
            jobs[name] = [pool.submit(trot_scores, name, s, given) for s in seeds]
        for name, futures in jobs.items():
            results[name] = summarize([future.result() for future in futures])
    table = Table(title="horizontal error of the CoM, mm (squared error over variance)")
    for head in ("scenario", "method", "mm", "NEES", "CPU s"):
        table.add_column(head)
    for name, methods in results.items():
        for method, row in methods.items():
            cells = [str(row.get(key)) if row.get(key) is not None else "-"
                     for key in ("error_mm", "nees", "cpu_s")]  # fmt: skip
            table.add_row(name, method, *cells[:1], *cells[1:])
            if "why" in row:
                table.add_row("", row["why"], "", "", "")
    Console(width=110).print(table)
    print(json.dumps(results))


if __name__ == "__main__":
    main()
