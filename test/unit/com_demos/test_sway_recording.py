"""Samples and truths are matched by stamp, in whatever order they arrive."""

import numpy as np

from com_demos.sway_monitor import Recording

START = 1_700_000_000_123_456_789


def sample(stamp_ns: int, x: float = 0.0, margin: float = 0.1) -> tuple:
    return stamp_ns, stamp_ns + 750_000, x, 0.0, 0.0, margin


def recording_of(*samples: tuple) -> Recording:
    """Samples whose joint_states came a quarter of a millisecond before them."""
    recording = Recording()
    recording.samples += samples
    recording.joints |= {row[0]: row[1] - 250_000 for row in samples}
    return recording


def test_match_by_stamp_in_any_order() -> None:
    recording = recording_of(
        sample(START, 1.5),
        sample(START + 2_000_000, 2.0),
        sample(START + 4_000_000, 3.0),
    )
    del recording.joints[START]  # as when a message was lost
    recording.truths[START] = (1.0, 0.0, 0.0)
    recording.truths[START + 4_000_000] = (3.0, 4.0, 0.0)
    series = recording.series()
    np.testing.assert_allclose(series.time, [0, 0.002, 0.004], atol=1e-12)
    np.testing.assert_allclose(series.error, [0.5, np.nan, 4.0])
    np.testing.assert_allclose(series.latency, [np.nan, 0.00025, 0.00025])
    np.testing.assert_array_equal(series.com[:, 0], [1.5, 2.0, 3.0])
    np.testing.assert_array_equal(series.margin, 0.1)


def test_last_samples_keep_their_time() -> None:
    recording = Recording()
    for k in range(10):
        recording.samples.append(sample(START + k * 1_000_000_000, float(k)))
    series = recording.series(last=3)
    np.testing.assert_allclose(series.time, [7, 8, 9])
    np.testing.assert_array_equal(series.com[:, 0], [7, 8, 9])


def test_empty() -> None:
    series = Recording().series()
    assert series.com.shape == series.truth.shape == (0, 3)
    assert series.error.shape == (0,)


def test_summary() -> None:
    stamps = [START + k * 2_000_000 for k in range(101)]
    recording = recording_of(
        *(
            sample(s, 0.001 * (k % 2), margin=0.05 - k * 1e-4)
            for k, s in enumerate(stamps)
        )
    )
    recording.truths |= dict.fromkeys(stamps, (0.0, 0.0, 0.0))
    assert recording.series().summary() == {
        "seconds": 0.2,
        "messages": 101,
        "rate_hz": 500.0,
        "p50_ms": 0.25,
        "p99_ms": 0.25,
        "com_error_mm": 0.495,
        "com_error_max_mm": 1.0,
        "truths_matched": 101,
        "margin_min_mm": 40.0,
    }


def test_summary_of_what_is_not_known_is_none() -> None:
    recording = Recording()
    recording.samples.append(sample(START, margin=np.nan))
    summary = recording.series().summary()
    nothing = {
        "rate_hz",
        "p50_ms",
        "p99_ms",
        "com_error_mm",
        "com_error_max_mm",
        "margin_min_mm",
    }
    assert {name for name, value in summary.items() if value is None} == nothing
    assert Recording().series().summary()["messages"] == 0
