"""Humanoids walk where it is not flat, stiff and undisturbed: open loop, and with the stabiliser.

Six steps each on TALOS, HOAP-2, iCub and the ITU biped, and on two further robots for which nothing
was chosen (G1 and Alexander's legs, by com_setup); one set of gains, physics at 1 ms, control
at 200 Hz, sensors 5 ms late. Encoders have noise of 0.2 mrad; the IMU of 0.5 mrad and an error of
3 mrad that stays; force sensors of 0.2 % of the weight and 0.3 % that stays. Nothing of the
simulator's truth is used. Seeds of the cells are not those by which the gains were chosen.

Errors are the horizontal distance of the true CoM to the plan (of the plan's time: it waits for a
late foot), seen from above, of the walks that were completed. A push is given as speed of the whole
robot, J / m, in 0.1 s at the trunk, in the middle of a swing.

The last line is one JSON object: cells (by cell and robot open and fed_back, "walked/of", mean_mm
and max_mm with feedback, turn_deg and open_turn_deg: largest turn from the plan's heading at the
end); of all but the further robots: soft_walked, soft_total, tiles5_walked, tiles5_total (TALOS,
iCub, HOAP-2), end_mm (largest distance to the plan at the end on stiff ground), creep_mm (largest
way of a foot in 10 s of standing after a walk), push_ms (largest forward push that all robots
survive in all seeds), stiff_ratio (largest of the robots: mean error over what is allowed, 1.5
times open loop + 5 mm), offset_mm (largest error of the offset that is found with the trunk's CoM
off by 3 cm, or 1.5); and tick_us (median of the robots' medians, of walks one after the other).
"""

from __future__ import annotations

import argparse
import json
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from statistics import fmean
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray
from processes import in_processes
from rich.console import Console
from rich.table import Table
from scipy.spatial.transform import Rotation
from walk_playback import level, starting_at
from walk_robustness_page import write_page

from com_control.walking.biped import Biped
from com_control.walking.stabiliser import Stabiliser, ankle_stiffness
from com_control.walking.walk import Walk, WalkRequest
from com_control.walking.walk_plan import find_stance
from com_control.walking.walker import Walker
from com_demos.walk_record import has_fallen
from com_model import RobotConfig, RobotModel
from com_model.dynamics import GRAVITY
from com_model.dynamics.link_frames import LinkFrames
from com_model.robots import find_robot
from com_simulation.exceptions import DivergedError
from com_simulation.physics.sensors import NoiseLevels, Reading
from com_simulation.physics.simulation import Simulation
from com_simulation.physics.suspension_rig import STAYS, Tilt
from com_simulation.physics.true_errors import Payload
from com_simulation.physics.world_builder import build_world

Array = NDArray[np.float64]

ROBOTS = {
    "talos": WalkRequest(step_length=0.2, step_time=0.8, double_support=0.25),
    "hoap2": WalkRequest(step_length=0.05, step_time=0.6, double_support=0.2),
    "icub": WalkRequest(
        step_length=0.05, step_time=0.9, double_support=0.3, com_height=0.45
    ),
    "itu_biped": WalkRequest(step_length=0.15, step_time=0.8, double_support=0.25),
    "g1": WalkRequest(step_length=0.067, step_time=0.74, double_support=0.4),
    "alexander": WalkRequest(step_length=0.062, step_time=0.71, double_support=0.4),
}
FURTHER = ("g1", "alexander")
TILED = ("talos", "icub", "hoap2")
PERIOD = 0.005  # s
PUSH_TIME, FORCE_TIME = 0.1, 0.2  # s
REST = 1.0  # s, after the walk
PUSHES = (0.10, 0.15, 0.20, 0.25)  # m/s


@dataclass(frozen=True)
class Cell:
    """A condition.

    Attributes:
        tiles: m, by which tiles of half a foot's length are higher or lower.
        zeros: rad, by which each joint's zero may be off.
        slope: rad, to which the floor tilts before the walk.
        trunk: m, by which the trunk's CoM is off, over the robot's CoM height.
        payload: Of the mass, 12 % of the height before the trunk's CoM.
        push: m/s forwards and to the left.
        force: N forwards and to the left, for 0.2 s.
        delay: s.
        rest: s, after the walk.
        only: Robots; empty: all.
        random: More seeds tell more.
    """

    name: str
    contact: str = "stiff"
    tiles: float = 0.0
    zeros: float = 0.0
    slope: float = 0.0
    friction: float = 1.0
    trunk: float = 0.0
    payload: float = 0.0
    push: tuple[float, float] = (0.0, 0.0)
    force: tuple[float, float] = (0.0, 0.0)
    delay: float = PERIOD
    rest: float = REST
    only: tuple[str, ...] = ()
    random: bool = True


CELLS = (
    Cell("stiff"),
    Cell("soft", contact="soft"),
    Cell("tiles +-5 mm", tiles=0.005),
    Cell("tiles +-10 mm", tiles=0.01),
    Cell("zeros 0.5 deg", zeros=np.radians(0.5)),
    Cell("floor 5 deg", slope=np.radians(5.0), random=False),
    Cell("friction 0.3", friction=0.3, random=False),
    Cell("payload 5 %", payload=0.05, random=False),
    Cell("delay 20 ms", delay=0.02, random=False),
    Cell("trunk off", trunk=0.035, random=False),
    *(Cell(f"push {v:.2f} forwards", push=(v, 0.0), random=False) for v in PUSHES),
    Cell("push 0.15 left", push=(0.0, 0.15), random=False),
    Cell("push 0.15 right", push=(0.0, -0.15), random=False),
    *(
        Cell(
            f"100 N {way}", force=(100.0 * x, 100.0 * y), only=("talos",), random=False
        )
        for way, x, y in (
            ("forwards", 1, 0),
            ("backwards", -1, 0),
            ("inwards", 0, -1),  # in mid swing of the right foot
            ("outwards", 0, 1),
        )
    ),
    Cell("standing 10 s", rest=REST + 10.0, random=False),
)


@dataclass(frozen=True)
class Run:
    """One walk."""

    robot: str
    cell: Cell
    fed_back: bool
    seed: int
    # footholds by the DCM; heading by the IMU
    feeds: tuple[bool, bool] = False, False


@dataclass
class Result:
    """What became of it; errors in m, times in s."""

    walked: bool
    errors: list[float] = field(default_factory=list)
    offset_error: float = float("nan")
    creep: float = float("nan")
    turn: float = float("nan")  # rad, of the root at the end, from the plan's heading
    tick: float = float("nan")


@cache
def load(name: str) -> tuple[Biped, RobotConfig, Walk]:
    """A robot and its walk."""
    files = find_robot(name)
    model, config = (
        RobotModel.from_file(files.urdf),
        RobotConfig.from_file(str(files.config)),
    )
    biped = Biped.from_config(model, config)
    walk = Walker(biped).plan(
        replace(ROBOTS[name], steps=6, method="refined"), biped.posture
    )
    return biped, config, walk


def tiled(
    biped: Biped, walk: Walk, height: float, rng: np.random.Generator
) -> Callable[..., None]:
    """Ground of tiles up to a height (m) above and below, even where the robot starts."""
    corners = biped.legs[0].foot.corners
    size = 0.5 * float(np.ptp(corners[:, 0]))
    reach = 1.5 * float(np.abs(walk.samples.feet[..., :2, 3]).max()) + 4.0 * size

    def edit(spec: mujoco.MjSpec) -> None:
        ground = spec.geom("ground")
        ground.pos = [0.0, 0.0, -3.0 * height]
        centers = np.arange(-reach, reach + size, size)
        for x in centers:
            for y in centers:
                start = (
                    max(abs(x), abs(y))
                    < 1.2 * size + np.abs(walk.samples.feet[0, :, 1, 3]).max()
                )
                z = 0.0 if start else rng.uniform(-height, height)
                spec.worldbody.add_geom(
                    type=mujoco.mjtGeom.mjGEOM_BOX,
                    size=[0.5 * size, 0.5 * size, 0.05],
                    pos=[x, y, z - 0.05],
                    contype=ground.contype,
                    conaffinity=ground.conaffinity,
                    friction=ground.friction,
                    condim=ground.condim,
                )

    return edit


def simulate(run: Run, watch: Callable[[Reading], None] = lambda _: None) -> Result:
    """Walks; who watches gets what is true at each time."""
    biped, config, walk = load(run.robot)
    model, cell, rng = biped.model, run.cell, np.random.default_rng(run.seed)
    weight, height = model.mass * GRAVITY, walk.plan.timing.com_height
    shift = np.array([cell.trunk * height, 0.0, 0.0])
    world = build_world(
        model,
        starting_at(config, model, walk.path.q[0]),
        urdf_path=find_robot(run.robot).urdf,
        contact=cell.contact,
        trunk_com_offset=shift,
        edit=tiled(biped, walk, cell.tiles, rng) if cell.tiles else None,
    )
    world.mj.geom_friction[:, 0] *= cell.friction
    settling = cell.slope / np.radians(5.0) + 1.5 if cell.slope else 0.0
    simulation = Simulation(
        world,
        PERIOD,
        NoiseLevels(
            position=2e-4,
            orientation=5e-4,
            orientation_bias=3e-3,
            force=2e-3 * weight,
            torque=1e-4 * weight,
        ),
        run.seed,
        Payload(cell.payload * model.mass, (0.12 * height, 0.0, 0.0))
        if cell.payload
        else None,
        Tilt(np.degrees(cell.slope), 5.0, start=0.2, hold=STAYS)
        if cell.slope
        else None,
    )
    off = cell.zeros * rng.uniform(-1.0, 1.0, model.n_joints)
    bias = (
        3e-3 * weight * rng.standard_normal((2, 6)) * [1.0, 1.0, 1.0, 0.05, 0.05, 0.05]
    )
    return follow(run, world, simulation, off, bias, settling, watch)


def follow(
    run: Run,
    world: Any,
    simulation: Simulation,
    off: Array,
    bias: Array,
    settling: float,
    watch: Callable[[Reading], None],
) -> Result:
    """Lets the robot walk after it has stood for settling (s), joints and wrenches being off."""
    biped, config, walk = load(run.robot)
    model, cell = biped.model, run.cell
    imu_frame = LinkFrames(model, [world.imu_link])
    late = round(cell.delay / PERIOD)
    stiffness = ankle_stiffness(biped, config)
    stabiliser = Stabiliser(biped, stiffness, PERIOD, cell.delay, *run.feeds)
    stabiliser.start(walk.plan, walk.samples, walk.path.q[0])
    lag = world.servos.damping / world.servos.stiffness
    past: deque[Any] = deque(maxlen=late + 1)
    result, shift, ticks, turn = Result(True), np.zeros(2), [], np.eye(3)
    first: tuple[Array, Array] | None = None
    at = float(walk.plan.lift_offs[2] + 0.5 * walk.plan.timing.step_time)
    soles, stood = LinkFrames(model, [leg.foot.frame for leg in biped.legs]), None
    for k in range(round((settling + walk.duration + cell.rest) / PERIOD)):
        try:
            now = simulation.advance()
        except DivergedError:
            return Result(False)
        watch(now)
        R = turned(now.root_orientation)
        if first is None:
            first = R, now.root_position
            stance = find_stance(biped, walk.path.q[0])
            turn = level(
                stance.R_walk_root @ R.T
            )  # some URDFs have their root backwards
        past.append(now)
        if has_fallen(*first, R, now.root_position):
            return Result(False)
        com, t = turn @ (now.root_position + R @ now.com), k * PERIOD - settling
        if t <= 0.0:  # the plan begins where the robot stands
            shift = com[:2] - walk.samples.com[0, :2]
        rate, plan_time = 1.0, min(max(t, 0.0), walk.duration)
        q = walk.path.sample(min(plan_time + PERIOD, walk.duration))[0]
        if run.fed_back:
            plan_time, old = stabiliser.phase, past[0]
            if t < 0.0:
                stabiliser.state.phase[0] = 0.0
            begin = time.perf_counter()
            q_read = old.position + off
            out = stabiliser.update(
                turned(old.imu_orientation) @ imu_frame.poses(q_read)[0][0].T,
                q_read,
                old.wrenches + bias,
                PERIOD,
                PERIOD + cell.delay if t >= 0.0 else 0.0,
            )
            ticks.append(time.perf_counter() - begin)
            q, rate = out.q, out.rate
        speed = (
            walk.path.sample(min(plan_time + PERIOD, walk.duration))[1]
            if t >= 0.0
            else 0.0
        )
        simulation.lead(q - off + lag * rate * speed)
        pushed = at <= t < at + PUSH_TIME
        force = pushed * model.mass / PUSH_TIME * np.array([*cell.push, 0.0])
        force += (at <= t < at + FORCE_TIME) * np.array([*cell.force, 0.0])
        simulation.push(turn.T @ force)
        if t >= walk.duration + REST - PERIOD:
            places = now.root_position + soles.poses(now.position)[1] @ R.T
            stood = places if stood is None else stood
            result.creep = float(np.linalg.norm(places - stood, axis=1).max())
        if t >= 0.0:
            planned = walk.instant(
                plan_time + (cell.delay if run.fed_back else 0.0)
            ).com[:2]
            result.errors.append(float(np.linalg.norm(com[:2] - shift - planned)))
            turns = R @ first[0].T
            result.turn = float(np.arctan2(turns[1, 0], turns[0, 0]))
    if run.fed_back:
        result.tick = float(np.median(ticks))
        found = stabiliser.offset[0][0]
        # the trunk is moved forwards in its own axes: to the rear of some robots
        forwards = find_stance(biped, walk.path.q[0]).R_walk_root[0, 0]
        true = (
            cell.trunk * walk.plan.timing.com_height * model.bodies.mass[0] / model.mass
        )
        result.offset_error = abs(float(found) - forwards * true)
    return result


def turned(quaternion: Array) -> Array:
    """Rotation (3, 3) of a quaternion x, y, z, w."""
    return np.asarray(Rotation.from_quat(quaternion).as_matrix())


def summary(runs: list[Run], results: list[Result]) -> dict[str, Any]:
    """The last line."""
    by: dict[tuple[str, str, bool], list[Result]] = {}
    for run, result in zip(runs, results, strict=True):
        by.setdefault((run.cell.name, run.robot, run.fed_back), []).append(result)
    cells: dict[str, dict[str, Any]] = {}
    for (cell, robot, fed_back), group in by.items():
        entry = cells.setdefault(cell, {}).setdefault(robot, {})
        walked = [result for result in group if result.walked]
        entry["fed_back" if fed_back else "open"] = f"{len(walked)}/{len(group)}"
        errors = [error for r in walked for error in r.errors]
        mean, most = (
            round(1e3 * f(errors), 1) if errors else None for f in (fmean, max)
        )
        ends = [result.errors[-1] for result in walked]
        entry |= (
            {"mean_mm": mean, "max_mm": most} if fed_back else {"open_mean_mm": mean}
        )
        if fed_back and ends:
            entry["end_mm"] = round(1e3 * max(ends), 1)
        if walked:
            most = float(np.degrees(max(abs(r.turn) for r in walked)))
            entry["turn_deg" if fed_back else "open_turn_deg"] = round(most, 2)
    robots = list(dict.fromkeys(run.robot for run in runs if run.robot not in FURTHER))

    def count_walked(cell: str, among: tuple[str, ...]) -> tuple[int, int]:
        groups = [by.get((cell, robot, True), []) for robot in among]
        return sum(r.walked for g in groups for r in g), sum(len(g) for g in groups)

    survived = [
        v
        for v in PUSHES
        if np.subtract(*count_walked(f"push {v:.2f} forwards", tuple(robots))) == 0
        and count_walked(f"push {v:.2f} forwards", tuple(robots))[1] > 0
    ]
    ratios = [
        (e["mean_mm"] or np.inf) / (1.5 * (e["open_mean_mm"] or 0.0) + 5.0)
        for robot, e in cells["stiff"].items()
        if robot in robots
    ]
    tests = [by.get(("trunk off", robot, True), []) for robot in robots]
    offsets = [result.offset_error for group in tests for result in group]
    standing = [
        r for robot in robots for r in by.get(("standing 10 s", robot, True), [])
    ]
    ends = [
        e["end_mm"]
        for name, e in cells["stiff"].items()
        if name in robots and "end_mm" in e
    ]
    soft, tiles = (
        count_walked("soft", tuple(robots)),
        count_walked("tiles +-5 mm", TILED),
    )
    return {
        "cells": cells,
        "soft_walked": soft[0],
        "soft_total": soft[1],
        "tiles5_walked": tiles[0],
        "tiles5_total": tiles[1],
        "end_mm": max(ends, default=None),
        "creep_mm": round(1e3 * max(r.creep for r in standing), 2)
        if standing
        else None,
        "push_ms": max(survived, default=0.0),
        "stiff_ratio": round(float(np.max(ratios)), 2) if ratios else None,
        "offset_mm": round(1e3 * float(np.nanmax(offsets)), 1) if offsets else None,
    }


def show(cells: dict[str, dict[str, Any]]) -> None:
    """Prints the table."""
    robots = list(ROBOTS)
    table = Table(
        "", *robots, title="walked open loop -> with feedback, mean (largest) error, mm"
    )
    for cell, by_robot in cells.items():
        row = []
        for robot in robots:
            e = by_robot.get(robot)
            row.append(
                f"{e['open']} -> {e['fed_back']}, {e['mean_mm']} ({e['max_mm']})"
                if e
                else "-"
            )
        table.add_row(cell, *row)
    Console(width=200).print(table)


def main() -> int:
    """Walks and prints."""
    parser = argparse.ArgumentParser(
        description="Walks with and without the stabiliser."
    )
    parser.add_argument(
        "--full", action="store_true", help="five seeds of each random cell"
    )
    parser.add_argument("--seed", type=int, default=917000, help="the first one")
    parser.add_argument("--robots", nargs="+", choices=ROBOTS, default=list(ROBOTS))
    parser.add_argument("--cells", nargs="+", help="only cells whose names begin so")
    parser.add_argument("--processes", type=int, default=2, help="so many at a time")
    parser.add_argument(
        "--step-adjustment", action="store_true", help="footholds by the DCM"
    )
    parser.add_argument(
        "--heading-feedback", action="store_true", help="heading by the IMU"
    )
    parser.add_argument(
        "--page", action="store_true", help="only write the page of docs/"
    )
    args = parser.parse_args()
    if args.page:
        write_page()
        return 0
    cells = [c for c in CELLS if not args.cells or c.name.startswith(tuple(args.cells))]
    if "stiff" not in [c.name for c in cells]:
        cells.insert(0, CELLS[0])
    feeds = args.step_adjustment, args.heading_feedback
    runs = [
        Run(robot, cell, fed_back, args.seed + seed, feeds)
        for robot in args.robots
        for cell in cells
        if not cell.only or robot in cell.only
        for fed_back in (False, True)
        for seed in range((5 if args.full else 2) if cell.random else 1)
    ]
    result = summary(runs, in_processes(simulate, runs, "walks", args.processes))
    alone = [
        simulate(Run(robot, CELLS[0], True, args.seed, feeds)) for robot in args.robots
    ]
    result["tick_us"] = round(1e6 * float(np.median([walk.tick for walk in alone])))
    show(result["cells"])
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
