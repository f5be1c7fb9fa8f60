"""What is recorded of a walk: plan and truth in one frame, errors, falls, the plot."""

import math

import matplotlib.image
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from com_demos.walk_demo import WalkRecording, outlines, walk_figure, walk_rows
from com_model.plotting import save_png
from com_msgs.msg import WalkState

BEGIN = 5_000_000_000  # ns
R_ODOM_WALK = Rotation.from_euler("z", 0.8).as_matrix()
P_ODOM_WALK = np.array([2.0, -1.0, 0.1])


def meant(t):
    return np.array([0.2 * max(t, 0.0), 0.05 * math.sin(t), 0.45])


def recorded(off=0.0, tilt_from=math.inf, end=3.0):
    """A walk whose CoM is `off` beside where it is meant to be, its root half a metre above it."""
    recording = WalkRecording(duration=2.5)
    unknown = np.full(3, np.nan)
    recording.samples.append((1, math.nan, np.full(9, np.nan)))
    for k, t in enumerate(np.arange(-1.0, end, 0.01)):
        stamp = BEGIN + round(1e9 * t)
        recording.samples.append(
            (stamp, float(t), np.hstack((meant(t), meant(t), unknown)))
        )
        com = meant(t) + np.array([0.0, off if t > 0.0 else 0.0, 0.0])
        root = com + np.array([0.0, 0.0, 0.5])
        R = Rotation.from_euler("x", 1.0 if t >= tilt_from else 0.0).as_matrix()
        if k % 2 == 0:
            pose = (R_ODOM_WALK @ R, R_ODOM_WALK @ root + P_ODOM_WALK)
            recording.roots[stamp] = pose
        if k % 5 == 0:
            recording.walk_frames[stamp] = (R.T, -R.T @ root)
        recording.coms[stamp] = R.T @ (com - root)
        recording.joints[stamp] = np.zeros(12)
    corners = np.zeros((2, 4, 3))
    corners[:, :, :2] = [[0.1, 0.05], [0.1, -0.05], [-0.1, -0.05], [-0.1, 0.05]]
    recording.footprints["footsteps_left"] = list(corners)
    return recording


def test_footprints_have_any_number_of_corners():
    soles = [np.random.default_rng(k).normal(size=(k, 3)) for k in (4, 8, 12, 3)]
    edges = np.concatenate(
        [np.stack([sole, np.roll(sole, -1, 0)], 1) for sole in soles]
    )
    for found, sole in zip(outlines(edges), soles, strict=True):
        np.testing.assert_array_equal(found, sole)


@pytest.mark.parametrize("off", [0.0, 0.02])
def test_truth_and_plan_meet_in_the_walks_frame(off):
    series = recorded(off).series()
    figures = series.summary()
    assert figures["com_error_max_m"] == pytest.approx(off, abs=2e-5)
    assert figures["com_error_mean_m"] == pytest.approx(off, abs=2e-4)
    assert figures["seconds"] == 2.5
    assert figures["truths_matched"] == 126
    assert figures["fell"] is False
    np.testing.assert_allclose(series.truth.root[:, 2], 0.95, atol=1e-9)


def test_messages_that_are_lost_do_not_shift_the_frame():
    """The robot moves before the walk; half of its root's poses are not heard."""
    recording = recorded()
    for stamp in list(recording.roots):
        if -0.75 < (stamp - BEGIN) / 1e9 < -0.25:
            del recording.roots[stamp]
    assert recording.series().summary()["com_error_max_m"] < 2e-5


def test_poses_of_different_times_are_not_compared():
    """The root is heard of from half a second into the walk on: its frame is not known in odom."""
    recording = recorded()
    for stamp in list(recording.roots):
        if (stamp - BEGIN) / 1e9 < 0.5:
            del recording.roots[stamp]
    assert recording.series().summary()["truths_matched"] == 0


def test_a_fall_is_noticed():
    series = recorded(tilt_from=1.5).series()
    assert series.truth.fell_at == pytest.approx(1.5, abs=0.021)
    assert series.summary()["fell"] is True


def test_nothing_recorded_is_said_so(tmp_path):
    series = WalkRecording().series()
    figures = series.summary()
    assert figures == {
        "seconds": None,
        "com_error_mean_m": None,
        "com_error_max_m": None,
        "truths_matched": 0,
        "fell": False,
    }
    save_png(walk_figure(series, "nothing"), tmp_path / "nothing.png")


def test_the_plot(tmp_path):
    save_png(walk_figure(recorded(0.01).series(), "six steps"), tmp_path / "walk.png")
    assert matplotlib.image.imread(tmp_path / "walk.png").shape[0] > 500


def test_rows_of_the_view():
    msg = WalkState(state=WalkState.WALKING, steps=6, com_error=0.004)
    msg.zmp.x = math.nan
    rows = dict(walk_rows(msg))
    assert rows["state"] == "WALKING"
    assert rows["step"] == "1 of 6"
    assert rows["CoM error"] == "4.00 mm"
    assert rows["ZMP"] == "not known"
