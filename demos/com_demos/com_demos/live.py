"""What is seen while a run lasts: a table that changes in place, or plain lines in a log."""

import math
import time
from collections.abc import Iterable

from rich.console import Console
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table

LINE_EVERY_S, WAITING_LINE_S = 2.0, 10.0
WAITING = "waiting"  # name of the first row while there is nothing to show
LONGEST = 60  # letters of a reason
LONGEST_ROW = 90
Rows = list[tuple[str, str]]
"""Names and values, with their units, of what is shown."""


class LiveView:
    """Shows the newest samples of a run; use as a context manager.

    On a console that is a terminal as a table, else as a line every two seconds.
    """

    def __init__(self, title: str, seconds: float, console: Console) -> None:
        self.title = title
        self.seconds = seconds
        self.console = console
        self._live = (
            Live(console=console, auto_refresh=False) if console.is_terminal else None
        )
        self._last = {
            False: -math.inf,
            True: time.monotonic(),
        }  # line, by whether it waits

    def __enter__(self) -> "LiveView":
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()

    def show(self, rows: Rows, done: float | None) -> None:
        """Show rows of the newest samples, one that is WAITING while there is none.

        The run has lasted `done` s so far; None before it begins.
        """
        if self._live:
            self._live.update(table(self.title, rows, done, self.seconds), refresh=True)
            return
        now, waits = time.monotonic(), rows[0][0] == WAITING
        if now - self._last[waits] < (WAITING_LINE_S if waits else LINE_EVERY_S):
            return
        self._last[waits] = now
        self.console.print(line(rows, done), soft_wrap=True, highlight=False)


def millimetres(values: Iterable[float]) -> str:
    """Return a vector in m as text in mm."""
    return " ".join(f"{1000 * value:8.2f}" for value in values) + " mm"


def with_reason(status: str, reason: str) -> str:
    """Return a status with the reason why it is not better, if there is one."""
    return status + (f": {reason}"[:LONGEST] if reason else "")


def line(rows: Rows, done: float | None) -> str:
    """Return names and values as one line."""
    return ("starting " if done is None else f"{done:6.1f} s ") + "  ".join(
        f"{name} {' '.join(value.split())}" for name, value in rows
    )


def table(title: str, rows: Rows, done: float | None, seconds: float) -> Panel:
    """Return names and values as a table over a bar of the time."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim")
    grid.add_column(justify="left", min_width=36)
    for name, value in rows:
        grid.add_row(name, value[:LONGEST_ROW])
    shown = 0.0 if done is None else min(done, seconds)
    grid.add_row(
        "time", "starting" if done is None else f"{shown:.0f} of {seconds:.0f} s"
    )
    grid.add_row("", ProgressBar(total=seconds, completed=shown, width=36))
    return Panel(
        grid, title=title, title_align="left", expand=False, border_style="cyan"
    )
