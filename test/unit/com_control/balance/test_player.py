"""Demonstrations that are played again and again."""

import numpy as np
import pytest

from com_control.balance.balancer import Balancer
from com_control.balance.demonstrations import DEMONSTRATIONS, NONE, DemonstrationPlayer
from com_model import link_pose


@pytest.fixture
def step(model, config, posture):
    R, _ = link_pose(model, posture, "l_sole")
    balancer = Balancer(model, config.feet, R[:, 2])
    balancer.start(posture, R[:, 2])
    return balancer.step(0.0, posture, R[:, 2], balancer.reference.position)


@pytest.mark.parametrize("name", [name for name in DEMONSTRATIONS if name != NONE])
def test_it_begins_where_the_com_is_and_plays_on(step, name):
    player = DemonstrationPlayer(name, 0.01)
    start, _ = player.next(100.0, step)
    np.testing.assert_allclose(start, step.com)
    times = np.arange(100.0, 140.0, 0.05)
    places = np.array([player.next(time, step)[0] for time in times])
    assert np.abs(np.diff(places, axis=0)).max() < 0.01
    late = places[times > 125.0]
    assert np.ptp(late, axis=0).max() > 0.025  # it plays again
    player.pause()
    np.testing.assert_allclose(player.next(500.0, step)[0], step.com)
    player.stop()
    assert player.next(501.0, step) is None


def test_none_plays_nothing(step):
    assert DemonstrationPlayer(NONE, 0.01).next(0.0, step) is None
