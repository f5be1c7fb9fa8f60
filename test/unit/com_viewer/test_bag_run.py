"""A recording as instants to show."""

import numpy as np
import pytest
from walker_urdf import walker_urdf

from com_bags import TopicError
from com_estimation.whole_body.com_state import ComObserver
from com_model import RobotConfig, RobotModel
from com_viewer.bag_run import read_run
from com_viewer.scene import RobotScene

START, STEP = 1_700_000_000_000_000_000, 10_000_000
NAMES = ["l_hip", "l_knee", "r_hip", "r_knee"]
CORNERS = [[0.1, 0.05], [0.1, -0.05], [-0.1, -0.05], [-0.1, 0.05]]
CONFIG = {"name": "walker", "feet": {f"{s}_sole": {"corners": CORNERS} for s in "lr"}}


@pytest.fixture
def walker():
    return RobotModel.from_urdf(walker_urdf()), RobotConfig.from_dict(CONFIG)


@pytest.fixture
def entries(messages):
    """Three seconds at 100 Hz, the left hip from 0 to 0.3 rad; the right foot carries."""
    found = []
    for i in range(301):
        time = START + i * STEP
        found.append(
            ["/joint_states", time, messages.joints(time, NAMES, [i * 0.001, 0, 0, 0])]
        )
        for side, load in (("l", 0.0), ("r", 39.0)):
            wrench = messages.wrench(time, [0, 0, load, 0, 0, 0], f"{side}_sole")
            found.append([f"/{side}_sole/wrench", time, wrench])
    return found


def show(run, walker, at):
    model, config = walker
    return run.snapshot(
        RobotScene(model, config.feet), ComObserver(model, config.feet), at
    )


def test_joints_and_forces_at_a_time(write_bag, entries, walker):
    run = read_run(write_bag(entries), *walker, rate_hz=30.0)
    assert run.seconds == pytest.approx(3.0, abs=0.04)
    assert len(run.times) == pytest.approx(90, abs=1)
    shown = show(run, walker, 1.5)
    assert run.Q[np.searchsorted(run.times, 1.5, "right") - 1, 0] == pytest.approx(
        0.15, abs=0.004
    )
    assert shown.state.contacts == ("r_sole",)
    assert shown.forces[1, 1, 2] == pytest.approx(39.0)
    np.testing.assert_array_equal(show(run, walker, -1.0).p, show(run, walker, 0.0).p)
    assert "imu" in run.notes[0]


def test_without_forces_the_posture_says_which_feet_stand(write_bag, entries, walker):
    run = read_run(
        write_bag([e for e in entries if e[0] == "/joint_states"]), *walker, 30.0
    )
    assert show(run, walker, 0.0).state.contacts == ("l_sole", "r_sole")
    assert run.forces.shape == (len(run.times), 0, 3)


def test_the_imu_says_what_is_up(write_bag, entries, walker, messages):
    turn = [np.sin(0.1), 0.0, 0.0, np.cos(0.1)]  # 0.2 rad about x, x y z w
    for i in range(301):
        time = START + i * STEP
        entries.append(["/imu", time, messages.imu(time, turn, frame="base_link")])
    run = read_run(write_bag(sorted(entries, key=lambda e: e[1])), *walker, 30.0)
    np.testing.assert_allclose(run.up[5], [0.0, np.sin(0.2), np.cos(0.2)], atol=1e-9)
    shown = show(run, walker, 1.0)
    np.testing.assert_allclose(shown.R[0] @ run.up[5], [0, 0, 1], atol=1e-9)


def test_a_bag_without_joint_states_is_refused(write_bag, entries, walker):
    with pytest.raises(TopicError, match="the joint states"):
        read_run(
            write_bag([e for e in entries if e[0] != "/joint_states"]), *walker, 30.0
        )
