"""A trot's estimates meet their truths; its figures are those of the arrays."""

import numpy as np
import pytest

from com_demos.exceptions import RunError
from com_demos.trot_demo import check, trunk_figure
from com_demos.trot_recording import TrunkRecording
from com_model.status import Status

START = 1_000_000_000_000
STEP = 5_000_000  # ns
TRUE = np.array([0.01, 0.02, 0.0, 300.0])
LOADED = np.array([0.04, 0.03, 0.0, 320.0])


def recording(shift=(0.0, 0.0), saturated=False, status=Status.CONVERGED):
    """10 s of trotting after 1 s of standing; 20 kg drop at 5 s, and are found 0.3 s later."""
    result = TrunkRecording()
    for k in range(-200, 2001):
        stamp = START + k * STEP
        time = k * STEP / 1e9
        truth = LOADED if time >= 5.0 else TRUE
        found = LOADED if time >= 5.3 else TRUE
        values = found + np.array([0.001, 0.0, 0.0, 1.0])
        noticed = START + 5_050_000_000 if time >= 5.3 else 0
        std = np.array([0.0005, 0.001, 0.01, 2.0])
        result.add_truth(stamp, truth)
        result.samples.append((stamp, noticed, status, (*values, *std)))
        result.tilts.append((stamp, np.radians(3.0), np.radians(-1.0) * (-1) ** k))
        result.gaits.append((stamp, *shift, saturated))
        if k == 0:
            result.began_ns = stamp
    return result


def texts(axes):
    return [text.get_text() for text in axes.texts]


def test_figures():
    figures = recording().series().summary()
    assert figures["seconds"] == pytest.approx(10.0)
    assert figures["messages"] == figures["truths_matched"] == 2201
    assert figures["usable_at_s"] == -1.0
    assert figures["error_x_mm"] == pytest.approx(1.0)
    assert figures["error_y_mm"] == pytest.approx(0.0)
    assert figures["error_mass_kg"] == pytest.approx(1.0)
    assert figures["within_3_sigma"] == pytest.approx(1.0 - 60 / 2201, abs=1e-3)
    assert figures["payload_at_s"] == pytest.approx(5.0)
    assert figures["payload_noticed_after_s"] == pytest.approx(0.05)
    assert figures["payload_to_5mm_s"] == pytest.approx(0.3)
    assert figures["roll_rms_deg"] == pytest.approx(3.0)
    assert figures["pitch_rms_deg"] == pytest.approx(1.0)
    assert figures["shift_saturated"] == 0.0


def test_what_is_not_reached_or_known_is_none():
    series = recording().series()
    assert np.isnan(series.reached(0.0005, 5.0))
    assert series.reached(0.005, 0.0) == 0.0
    figures = TrunkRecording().series().summary()
    assert figures["messages"] == 0
    assert (
        figures["error_x_mm"]
        is figures["payload_at_s"]
        is figures["roll_rms_deg"]
        is None
    )


def checked(status=Status.ESTIMATING, prior_mm=100.0, **changes):
    figures = recording(status=status).series().summary()
    check({"status": status.name, "reason": "why", **figures, **changes}, prior_mm)


@pytest.mark.parametrize("status", [Status.ESTIMATING, Status.USABLE, Status.CONVERGED])
def test_an_estimate_that_is_right_and_narrower_than_the_prior_is_a_success(status):
    checked(status)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"error_y_mm": 3.1}, "y_mm is off by 3.1 at a standard deviation of 1"),
        ({"error_mass_kg": 7.0}, "mass_kg is off by 7 at a standard deviation of 2"),
        ({"prior_mm": 0.9}, "y_mm is known to 1, before the trot to 0.9"),
        ({"nees_xy": 14.0}, "squared error over variance is 14"),
        ({"status": Status.DEGRADED}, "no estimate at the end, status DEGRADED: why"),
    ],
)
def test_a_wrong_or_vague_estimate_is_none_whatever_its_status(changes, text):
    with pytest.raises(RunError, match=text):
        checked(**{"status": Status.CONVERGED} | changes)


def test_elapsed_counts_from_the_first_step():
    result = TrunkRecording()
    assert result.elapsed() == 0.0
    assert recording().elapsed() == pytest.approx(10.0)


def test_rows():
    shown = recording().series(last=50).rows("CONVERGED", "", 3060.4)
    rows = {name: " ".join(value.split()) for name, value in shown}
    assert rows["trunk CoM"] == "41.00 30.00 0.00 mm"
    assert rows["3 sigma"] == "1.50 3.00 30.00 mm"
    assert rows["error"] == "1.00 0.00 0.00 mm"
    assert rows["mass"] == "321.00 kg, 3 sigma 6.00 kg"
    assert rows["on the feet"] == "3060 N"
    assert rows["payload"] == "on"
    assert rows["status"] == "CONVERGED"
    nothing = TrunkRecording().series().rows("UNKNOWN", "", np.nan)
    assert nothing == [("waiting", "for the first message on trunk_com")]


def test_plot_without_feedback():
    figure = trunk_figure(recording().series(), "box")
    labels = [axes.get_ylabel() for axes in figure.axes]
    assert labels == ["x (mm)", "y (mm)", "z (mm)", "mass (kg)", "tilt (°)"]
    x = figure.axes[0]
    np.testing.assert_allclose(x.lines[0].get_ydata()[-1], 41.0)
    np.testing.assert_allclose(x.lines[1].get_ydata()[-1], 40.0)
    assert "error at the end +1" in texts(x)
    assert "payload " in texts(x)
    assert " noticed after 0.05 s" in texts(x)


@pytest.mark.parametrize("saturated", [True, False])
def test_plot_with_feedback_shows_the_bound(saturated):
    shift = trunk_figure(recording((0.05, -0.02), saturated).series(), "box").axes[5]
    assert shift.get_ylabel() == "feet's shift (mm)"
    np.testing.assert_allclose(shift.lines[0].get_ydata(), 50.0)
    labels = [text.get_text() for text in shift.get_legend().get_texts()]
    assert labels == ["x", "y", *["at its bound"] * saturated]
