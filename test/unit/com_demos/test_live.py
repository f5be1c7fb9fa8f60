"""What is seen during a run: a table on a terminal, else a line now and then."""

import io

import numpy as np
import pytest
from rich.console import Console

from com_demos.live import LiveView, line
from com_demos.sway_monitor import Series


def series(count: int = 101, error: float = 2e-9, margin: float = 0.0416) -> Series:
    com = np.tile([-0.0365, 0.00012, -0.0238], (count, 1))
    return Series(
        time=np.arange(count) / 500,
        com=com,
        truth=com + error * np.eye(3)[0],
        margin=np.full(count, margin),
        latency=np.linspace(0.0002, 0.0004, count),
    )


def test_values_with_units() -> None:
    assert {name: " ".join(value.split()) for name, value in series().rows()} == {
        "CoM": "-36.50 0.12 -23.80 mm",
        "margin": "41.60 mm",
        "rate": "500 Hz",
        "latency": "0.30 ms, 99 %: 0.40 ms",
        "error": "2.0e-06 mm",
    }


def test_unknown_is_shown() -> None:
    values = dict(series(error=np.nan, margin=np.nan).rows())
    assert values["margin"] == "no feet known"
    assert values["error"] == "no truth yet"
    assert series(count=0).rows() == [("waiting", "for the first message on com")]


def test_line() -> None:
    assert line(series().rows(), 12.34).startswith(
        "  12.3 s CoM -36.50 0.12 -23.80 mm  margin 41.60 mm"
    )
    assert line(series().rows(), None).startswith("starting CoM")


def test_lines_every_two_seconds_where_there_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [100.0]
    monkeypatch.setattr("com_demos.live.time.monotonic", lambda: now[0])
    out = io.StringIO()
    with LiveView("box", 20, Console(file=out)) as view:
        view.show(series(count=0).rows(), None)
        for step in range(20):
            now[0] = 100.0 + step / 4
            view.show(series().rows(), step / 4)
    lines = out.getvalue().splitlines()
    assert [text.split()[0] for text in lines] == ["0.0", "2.0", "4.0"]


def test_lines_while_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("com_demos.live.time.monotonic", lambda: now[0])
    out = io.StringIO()
    with LiveView("box", 20, Console(file=out)) as view:
        for second in range(0, 26):
            now[0] = 100.0 + second
            view.show([("waiting", f"for the first message, {second} s")], None)
    seconds = [10, 20]
    lines = [
        f"starting waiting for the first message, {second} s" for second in seconds
    ]
    assert out.getvalue().splitlines() == lines


def test_table_on_a_terminal() -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=80)
    with LiveView("box", 20, console) as view:
        view.show(series(count=0).rows(), None)
        view.show(series().rows(), 5.0)
    assert "for the first message on com" in out.getvalue()
    assert "41.60 mm" in out.getvalue()
    assert "5 of 20 s" in out.getvalue()
