"""docs/walking_robustness.md from the stored result of walk_robustness.py."""

from __future__ import annotations

import json
from typing import Any

from run_all import RESULTS

PAGE = RESULTS.parents[1] / "docs" / "walking_robustness.md"

HEAD = """# How robust the walks are

Written by `benchmarks/walk_robustness.py --page` from its stored result. Open loop, with the
[stabiliser](stabiliser.md): walks completed / tried; then mean (largest) distance of the true CoM
to the plan, mm, of the walks completed with it. Six steps each, one set of gains, control at
200 Hz, sensors 5 ms late, with noise and constant errors; nothing of the simulator's truth is used.
Pushes: speed of the whole robot, in 0.1 s at the trunk, in the middle of a swing.
"""
FOOT = """

Falls with the stabiliser: {falls}.

| of all but g1 and alexander, for which nothing was chosen | |
|---|---|
| stiff ground, mean error over (1.5 times that of open loop + 5 mm), worst robot | {stiff_ratio} |
| stiff ground, largest distance to the plan at the end | {end_mm} mm |
| largest way of a foot in 10 s of standing after a walk | {creep_mm} mm |
| trunk's CoM off by 3.5 % of the height: error of the CoM's offset, worst robot | {offset_mm} mm |
| one tick, median, nothing else running | {tick_us} us |

{date}, {options}.
"""


def page(record: dict[str, Any]) -> str:
    """docs/walking_robustness.md, of a stored result (see run_all.py)."""
    figures = record["figures"]
    robots = list(
        dict.fromkeys(name for cell in figures["cells"].values() for name in cell)
    )
    lines = [HEAD, f"| | {' | '.join(robots)} |", "|---" * (len(robots) + 1) + "|"]
    falls = []
    for cell, by_robot in figures["cells"].items():
        row, of_cell = [], []
        for robot in robots:
            e = by_robot.get(robot)
            if e is None:
                row.append("-")
                continue
            walked, of = (int(n) for n in e["fed_back"].split("/"))
            of_cell += [f"{robot} {of - walked} of {of}"] if walked < of else []
            errors = f": {e['mean_mm']} ({e['max_mm']})" if walked else ""
            row.append(f"{e['open']}, {e['fed_back']}{errors}")
        lines.append(f"| {cell} | {' | '.join(row)} |")
        falls += [f"{cell}: {', '.join(of_cell)}"] if of_cell else []
    new = {"end_mm": "-", "creep_mm": "-"}  # not in every stored result
    return "\n".join(lines) + FOOT.format(
        falls="; ".join(falls) or "none",
        date=record["date"][:10],
        options=" ".join(record["options"]) or "two seeds of each random cell",
        **new | figures,
    )


def write_page() -> None:
    """Writes it."""
    PAGE.write_text(page(json.loads((RESULTS / "walk_robustness.json").read_text())))
