"""The time plot holds every curve that there is data for, and says so where there is none."""

from pathlib import Path

import numpy as np
import pytest

from com_demos.sway_demo import plot_figure
from com_demos.sway_monitor import Series
from com_model.plotting import save_png


def series(error: float = 1e-6, margin: float = 0.03, count: int = 500) -> Series:
    time = np.linspace(0, 10, count)
    com = np.column_stack([0.01 * np.sin(time), 0.02 * np.cos(time), -0.3 + 0 * time])
    return Series(
        time=time,
        com=com,
        truth=com + np.array([error, 0, 0]),
        margin=margin + 0.01 * np.sin(time),
        latency=np.full(count, 2e-4),
    )


def texts(figure) -> str:
    return "\n".join(t.get_text() for axes in figure.axes for t in axes.texts)


def test_curves_and_their_extremes() -> None:
    figure = plot_figure(series(), "box")
    com, error, margin = figure.axes
    assert len(com.lines) == 6
    labels = [text.get_text() for text in com.get_legend().get_texts()]
    assert labels[2:] == ["z, mean −300.0 mm", "simulator's truth"]
    np.testing.assert_allclose(error.lines[0].get_ydata(), 1e-3)
    assert "largest 0.001 mm" in texts(figure)
    assert "smallest 20.0 mm" in texts(figure)
    assert [axes.get_ylabel() for axes in (com, error, margin)] == [
        "CoM − mean (mm)",
        "error (mm)",
        "margin (mm)",
    ]


def test_exact_agreement_fits_a_logarithmic_axis() -> None:
    error = plot_figure(series(error=0.0), "box").axes[1]
    assert 0 < error.get_ylim()[0] < error.get_ylim()[1]


@pytest.mark.parametrize("margin", [-0.03, 0.0])
def test_negative_margin_is_in_the_picture(margin: float) -> None:
    axes = plot_figure(series(margin=margin), "box").axes[2]
    assert axes.get_ylim()[0] < 1000 * (margin - 0.01)
    assert axes.get_ylim()[1] > 0


def test_what_is_missing_is_said() -> None:
    figure = plot_figure(series(error=np.nan, margin=np.nan), "box")
    assert "no truth arrived" in texts(figure)
    assert "no feet known: no support polygon" in texts(figure)


def test_file_appears_whole(tmp_path: Path) -> None:
    save_png(plot_figure(series(), "box"), tmp_path / "box_com.png")
    assert [p.name for p in tmp_path.iterdir()] == ["box_com.png"]
    assert (tmp_path / "box_com.png").read_bytes().startswith(b"\x89PNG")
