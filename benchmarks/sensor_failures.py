"""What walk_faults, balance_faults and trot_faults share: outcomes, options, table and figures."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from processes import in_processes
from rich.console import Console
from rich.table import Table

from com_model import RobotModel


@dataclass
class Outcome:
    """What became of a robot whose sensor failed.

    Attributes:
        robot: its name.
        fault: name of what failed.
        end: what it did at the end; "fell" until it is known that it did not.
        reason: that its session gave.
        noticed: s after the failure; NaN: never.
        too_fast: number of commands beyond the joints' velocity limits.
    """

    robot: str
    fault: str
    end: str = "fell"
    reason: str = ""
    noticed: float = np.nan
    too_fast: int = 0

    def add_command(
        self,
        model: RobotModel,
        period: float,
        before: NDArray[np.float64],
        target: NDArray[np.float64],
    ) -> None:
        """Counts a command that is too fast.

        Args:
            model: the robot, with its velocity limits.
            period: s, between two commands.
            before: (n,) rad or m, the command before.
            target: (n,) rad or m.
        """
        most = model.velocity_limits * period * 1.02 + 1e-6
        self.too_fast += bool((np.abs(target - before) > most).any())


Kind = TypeVar("Kind", bound=Outcome)


def run_cases(
    doc: str | None,
    names: Sequence[str],
    faults: Sequence[str],
    run: Callable[[tuple[str, str]], Kind],
    done: str,
    columns: dict[str, Callable[[Kind], str]] | None = None,
) -> list[Kind]:
    """Runs the robots and faults of the command line, and prints a table.

    Args:
        doc: of the benchmark's module.
        names: default robots.
        faults: all of them, the default.
        run: a robot and a fault.
        done: what a robot has done then, in a word, for the progress.
        columns: headings of further columns, and what stands in them.
    """
    parser = argparse.ArgumentParser(description=(doc or "").partition("\n")[0])
    parser.add_argument("robots", nargs="*", default=names, metavar="ROBOT")
    parser.add_argument("--fault", nargs="+", default=faults, choices=faults)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    cases = [(robot, fault) for robot in options.robots for fault in options.fault]
    found = list(in_processes(run, cases, done, options.processes))
    more = columns or {}
    table = Table("robot", "fault", "end", "noticed (ms)", *more, "reason")
    for each in found:
        noticed = "" if np.isnan(each.noticed) else f"{1e3 * each.noticed:.0f}"
        own = [text(each) for text in more.values()]
        table.add_row(each.robot, each.fault, each.end, noticed, *own, each.reason)
    Console(width=200).print(table)
    return found


def figures(
    found: Sequence[Outcome],
    controls: Sequence[str],
    is_named: Callable[[Outcome], bool],
) -> dict[str, Any]:
    """Figures that all of them print.

    Args:
        found: all outcomes.
        controls: faults that are none.
        is_named: whether the reason of an outcome names what has failed.
    """
    robots: dict[str, dict[str, str]] = {}
    for each in found:
        robots.setdefault(each.robot, {})[each.fault] = each.end
    faulty = [each for each in found if each.fault not in controls]
    times = [each.noticed for each in faulty if np.isfinite(each.noticed)]
    return {
        "robots": robots,
        "falls": sum(each.end == "fell" for each in faulty),
        "falls_control": sum(
            each.end == "fell" for each in found if each.fault in controls
        ),
        "wrong_reasons": sum(bool(e.reason) and not is_named(e) for e in found),
        "too_fast": sum(each.too_fast for each in found),
        "noticed_ms": round(1e3 * max(times), 0) if times else None,
    }
