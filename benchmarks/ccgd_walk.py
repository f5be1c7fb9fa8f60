"""Walking in the simulator, open loop: five methods, step times, foot sizes, hard and soft contact.

    ccgd_walk.py [--quick] [--plots DIR] [--processes N]

Six steps of [CCGD] by the biped like ITU's, whose CoM is 0.38 m below its hips. Nothing is fed
back: joint angles, 10 ms a point, go to stiff servos. Methods: see walk_scenarios.py. A walk
counts as walked when the robot still stands a second after it.

- com_error_mean_m, com_error_max_m: distance of the simulator's CoM to the one that was meant, over
  the whole walk with steps of 1.2 s, soles and contact of [CCGD], refined; com_errors_m has all
  methods, com_errors_stiff_m the same on stiff contact. [CCGD] has 0.0238 and 0.0559
- constant_offset_fell_at_step: of the constant offset in the same setting ([CCGD]: 4)
- grid {step time: {method: foot sizes of 9 that walked}}, soft contact; grid_stiff: stiff contact.
  Sizes: half length and half width between the contact balls, SOLE_LENGTHS x SOLE_WIDTHS. At a half
  width of 0.03 m the soft contact hardly carries the robot on one leg: its stiffness in roll,
  216 N m/rad, is little more than the 155 N m/rad by which gravity tips the robot

At 1.6 s the printed algorithm finds no joint angles: one knee is nearly straight, and the
millimetre that it may be off is more than the leg has left.

--quick: two step times, three foot sizes. --plots: pictures like figures 9 to 13 of [CCGD]. The
last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from processes import in_processes
from rich.console import Console
from rich.table import Table
from walk_plots import draw_walks
from walk_scenarios import (
    METHODS,
    PAPER_SOLE,
    com_error,
    fell_at_step,
    itu_biped,
    paper_plan,
    simulate,
    walk_by,
    world_for,
)

from com_control.exceptions import PlanError

STEP_TIMES = (0.5, 0.7, 0.9, 1.2, 1.6)  # s
SOLE_LENGTHS = (0.08, 0.10, 0.12)  # m, half
SOLE_WIDTHS = (0.035, 0.0425, 0.05)  # m, half
CONTACTS = ("soft", "stiff")
PAPER_STEP = 1.2  # s; [CCGD] prints none


@dataclass(frozen=True)
class Case:
    """A method at one step time on one kind of contact, to be tried on several soles."""

    method: str
    step_time: float
    contact: str
    soles: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Outcome:
    """What became of a case.

    Attributes:
        case: It.
        fell: By sole: at which step the robot fell; None: it walked.
        errors: By sole: mean and largest distance of the CoM, m, until then.
        reason: Why nothing was walked; "" when it was tried.
        passes_mm: Of the refinement.
    """

    case: Case
    fell: tuple[int | None, ...]
    errors: tuple[tuple[float, float], ...]
    reason: str = ""
    passes_mm: tuple[float, ...] = ()

    @property
    def walked(self) -> int:
        """On how many soles the robot walked to the end."""
        return 0 if self.reason else sum(step is None for step in self.fell)


def try_case(case: Case) -> Outcome:
    """Plans once and simulates on each sole."""
    robot = itu_biped()
    try:
        walk = walk_by(case.method, robot, paper_plan(case.step_time))
    except PlanError as error:
        return Outcome(case, (), (), str(error))
    fell, errors = [], []
    for sole in case.soles:
        record = simulate(world_for(robot, walk, case.contact, sole), walk)
        away = com_error(walk, record)
        fell.append(fell_at_step(walk, record))
        errors.append((float(away.mean()), float(away.max())))
    return Outcome(case, tuple(fell), tuple(errors), passes_mm=walk.passes_mm)


def grid_of(outcomes: list[Outcome], contact: str) -> dict[str, dict[str, int]]:
    """Foot sizes that walked, by step time and method."""
    grid: dict[str, dict[str, int]] = {}
    for outcome in outcomes:
        case = outcome.case
        if case.contact == contact:
            grid.setdefault(f"{case.step_time:g}", {})[case.method] = outcome.walked
    return grid


def table_of(grid: dict[str, dict[str, int]], title: str) -> Table:
    """Prints a grid, a row a method."""
    table = Table("method", *(f"{step} s" for step in grid), title=title)
    for method in METHODS:
        table.add_row(method, *(str(row[method]) for row in grid.values()))
    return table


def error_table(
    errors: dict[str, tuple[float, float]], fell: dict[str, int | None]
) -> Table:
    """Prints what happened in the paper's setting."""
    table = Table(
        "method",
        "mean, m",
        "largest, m",
        "fell at step",
        title="CoM error, 1.2 s steps",
    )
    for method, (mean, most) in errors.items():
        step = fell[method]
        table.add_row(
            method, f"{mean:.4f}", f"{most:.4f}", "-" if step is None else str(step)
        )
    return table


def main() -> int:
    """Simulates, draws and prints."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="two step times, three foot sizes"
    )
    parser.add_argument(
        "--plots", type=Path, metavar="DIR", help="folder of the pictures"
    )
    parser.add_argument("--processes", type=int, default=2, help="so many at a time")
    args = parser.parse_args()
    sizes = tuple(product(SOLE_LENGTHS, SOLE_WIDTHS))
    soles = sizes[::4] if args.quick else sizes
    step_times = (0.5, PAPER_STEP) if args.quick else STEP_TIMES
    assert PAPER_SOLE in soles
    cases = [Case(m, t, c, soles) for t, c, m in product(step_times, CONTACTS, METHODS)]
    begin = time.perf_counter()
    outcomes = in_processes(try_case, cases, "walks", args.processes)
    seconds = time.perf_counter() - begin

    paper, stiff = (
        {
            o.case.method: o
            for o in outcomes
            if (o.case.step_time, o.case.contact) == (1.2, contact)
        }
        for contact in CONTACTS
    )
    at = soles.index(PAPER_SOLE)
    errors, on_stiff = (
        {method: o.errors[at] for method, o in found.items() if not o.reason}
        for found in (paper, stiff)
    )
    fell = {method: o.fell[at] for method, o in paper.items() if not o.reason}
    grids = {contact: grid_of(outcomes, contact) for contact in CONTACTS}
    console = Console(width=100)
    for contact, grid in grids.items():
        console.print(
            table_of(grid, f"foot sizes of {len(soles)} that walked, {contact} contact")
        )
    console.print(error_table(errors, fell))
    for outcome in outcomes:
        if outcome.reason:
            console.print(
                f"{outcome.case.method}, {outcome.case.step_time} s: {outcome.reason}"
            )
    if args.plots:
        draw_walks(PAPER_STEP, args.plots)
    summary = {
        "com_error_mean_m": round(errors["refined"][0], 5),
        "com_error_max_m": round(errors["refined"][1], 5),
        "com_errors_m": {m: np.round(pair, 5).tolist() for m, pair in errors.items()},
        "com_errors_stiff_m": {
            m: np.round(pair, 5).tolist() for m, pair in on_stiff.items()
        },
        "constant_offset_fell_at_step": fell.get("constant_offset"),
        "foot_sizes": len(soles),
        "grid": grids["soft"],
        "grid_stiff": grids["stiff"],
        "refinement_passes_mm": np.round(paper["refined"].passes_mm, 3).tolist(),
        "seconds": round(seconds, 1),
    }
    print(json.dumps(summary))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
