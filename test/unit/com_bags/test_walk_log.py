"""Stamps of receipt over a link that delivers samples in bursts."""

import numpy as np
import pytest

from com_bags import in_bursts, spread_bursts

STEADY = np.arange(0.0, 6.0, 0.01)  # s


@pytest.mark.parametrize("burst", [0.05, 0.1, 0.3])
@pytest.mark.parametrize("drift", [0.0, 0.08])
def test_bursts_are_spread_over_the_time_of_their_samples(burst, drift):
    """Also where the sender's rate changes within seconds."""
    omega = 2.0 * np.pi / 6.0  # rad/s
    true = STEADY + drift * np.sin(omega * STEADY)
    sent = np.ceil((true + 1e-9) / burst)  # with which burst
    received = sent * burst + 1e-5 * (
        np.arange(len(true)) - np.searchsorted(sent, sent)
    )
    assert in_bursts(received)
    spread = spread_bursts(received)
    assert (np.diff(spread) > 0.0).all()
    late = spread - true
    inner = slice(100, -100)  # a window of 1 s has both sides
    bent = drift * omega**2 / 12.0  # what a line within 1 s leaves of it, up and down
    assert np.ptp(late[inner]) < 0.1 * burst + bent
    assert late[inner].mean() == pytest.approx(
        np.mean(received - true), abs=0.1 * burst
    )


def test_stamps_that_are_a_little_late_stay_as_they_are():
    received = STEADY + np.random.default_rng(0).uniform(0.0, 0.005, len(STEADY))
    assert not in_bursts(received)
    assert spread_bursts(received) is received
