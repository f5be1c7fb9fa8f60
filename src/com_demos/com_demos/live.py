"""What is seen while a run lasts: a table that changes in place, or plain lines in a log."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from types import TracebackType
from typing import Generic, TypeVar

import numpy as np
from rich.console import Console
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table

from com_demos.recording import Series

LINE_EVERY_S = 2.0
WAITING = "waiting"  # name of the first row while there is nothing to show
Rows = list[tuple[str, str]]
T = TypeVar("T")


class LiveView(Generic[T]):
    """Shows the newest samples of a run; use as a context manager.

    Args:
        title: of the table.
        seconds: length of the run.
        console: where to; a table if it is a terminal, else a line every two seconds.
        rows: names and values, with their units, of what is shown.
    """

    def __init__(
        self, title: str, seconds: float, console: Console, rows: Callable[[T], Rows]
    ) -> None:
        self.title = title
        self.rows = rows
        self.seconds = seconds
        self.console = console
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None
        self._last_line = -math.inf

    def __enter__(self) -> LiveView[T]:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._live:
            self._live.stop()

    def show(self, newest: T, done: float | None) -> None:
        """Show the newest samples.

        Args:
            newest: what is heard; may be nothing yet.
            done: s of the run so far; None before it begins.
        """
        due = time.monotonic() - self._last_line >= LINE_EVERY_S
        if self._live:
            shown = table(self.title, self.rows(newest), done, self.seconds)
            self._live.update(shown, refresh=True)
        elif due and (values := self.rows(newest))[0][0] != WAITING:
            self._last_line = time.monotonic()
            self.console.print(line(values, done), soft_wrap=True, highlight=False)


def com_rows(series: Series) -> Rows:
    """Return what is shown of the newest samples: names and values with their units."""
    if not len(series.time):
        return [(WAITING, "for the first message on com")]
    x, y, z = 1000 * series.com[-1]
    p50, p99 = 1000 * np.percentile(series.latency, [50, 99])
    margin = 1000 * series.margin[-1]
    errors = series.error[np.isfinite(series.error)]
    return [
        ("CoM", f"{x:8.2f} {y:8.2f} {z:8.2f} mm"),
        ("margin", f"{margin:.2f} mm" if math.isfinite(margin) else "no feet known"),
        ("rate", f"{series.rate_hz:.0f} Hz"),
        ("latency", f"{p50:.2f} ms, 99 %: {p99:.2f} ms"),
        ("error", f"{1000 * errors.max():.1e} mm" if len(errors) else "no truth yet"),
    ]


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
        grid.add_row(name, value)
    shown = 0.0 if done is None else min(done, seconds)
    grid.add_row("time", "starting" if done is None else f"{shown:.0f} of {seconds:.0f} s")
    grid.add_row("", ProgressBar(total=seconds, completed=shown, width=36))
    return Panel(grid, title=title, title_align="left", expand=False, border_style="cyan")
