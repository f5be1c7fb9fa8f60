"""Checks against limits, and the ways to keep them."""

import numpy as np
import pytest

from com_control.commands.check_motion import main
from com_control.exceptions import MotionError
from com_control.motion.files import write_motion
from com_control.motion.limits import check_motion
from com_control.motion.motion import Motion, clamped, plan_approach


def changed(motion, layout, joint, rows, value):
    positions = np.array(motion.positions)
    positions[rows, layout.joints.index(joint)] = value
    return Motion(motion.joints, motion.times, positions)


def test_a_gentle_motion_is_within_the_limits(layout, swing):
    report = check_motion(layout, swing)
    assert report.ok
    assert report.rows == 500
    assert report.duration == pytest.approx(0.998)
    assert report.text().endswith("within all limits")


def test_a_joint_beyond_its_range_is_named_with_row_and_amount(layout, swing):
    still = Motion(swing.joints, swing.times, np.zeros_like(swing.positions))
    knee = changed(still, layout, "LLEG_JOINT4", slice(None), np.radians(-3.0))
    (found,) = check_motion(layout, knee).violations
    assert (found.kind, found.joint, found.rows, found.first) == (
        "position",
        "LLEG_JOINT4",
        500,
        1,
    )
    assert np.degrees(found.value) == pytest.approx(-3.0)
    assert "over by 2.00" in str(found)


def test_speed_and_acceleration_of_one_jump(layout, swing):
    """57 pulse/ms and 5 pulse/ms^2: 300 pulses in 2 ms are 150 pulse/ms and 75 pulse/ms^2."""
    still = Motion(swing.joints, swing.times, np.zeros_like(swing.positions))
    count = np.radians(1 / 209)
    jump = changed(still, layout, "BODY_JOINT1", slice(300, None), 300 * count)
    speed, push = check_motion(layout, jump).violations
    assert (speed.kind, speed.rows, speed.first) == ("velocity", 1, 301)
    assert speed.value / count / 1000 == pytest.approx(150.0)
    assert speed.limit / count / 1000 == pytest.approx(57.0)
    assert (push.kind, push.rows, push.first) == ("acceleration", 2, 301)
    assert push.value / count / 1e6 == pytest.approx(75.0)
    assert push.limit / count / 1e6 == pytest.approx(5.0)


def test_exactly_the_limit_is_allowed(layout):
    """Speeding up by 5 pulse/ms^2 to 57 pulse/ms, which is what the robot can, and to rest."""
    count = np.radians(1 / 209)
    speeds = np.minimum(5.0 * np.arange(20), 57.0)
    speeds = np.concatenate((speeds, speeds[::-1]))
    positions = np.zeros((40, len(layout.joints)))
    positions[:, layout.joints.index("BODY_JOINT1")] = np.cumsum(speeds) * count
    motion = Motion(layout.joints, 0.001 * np.arange(40), positions)
    assert check_motion(layout, motion).ok


def test_a_file_that_ends_at_full_speed_is_noticed(layout):
    positions = np.zeros((40, len(layout.joints)))
    positions[:, layout.joints.index("BODY_JOINT1")] = 0.0001 * np.arange(40) ** 2
    motion = Motion(layout.joints, 0.002 * np.arange(40), positions)
    (found,) = check_motion(layout, motion).violations
    assert (found.kind, found.first, found.rows) == ("acceleration", 40, 1)
    assert found.value == pytest.approx(-(0.0001 * (39**2 - 38**2)) / 0.002**2)
    assert check_motion(layout, clamped(layout, motion)).ok


def test_accelerations_count_over_the_shorter_period(layout):
    """From rest to 0.3 rad/s within one millisecond row, in files whose rows differ in length."""
    positions = np.zeros((5, len(layout.joints)))
    positions[2:, layout.joints.index("BODY_JOINT1")] = [0.0, 0.03, 0.03]
    times = np.cumsum([0.0, 0.0005, 0.0005, 0.1, 0.1])
    found = check_motion(layout, Motion(layout.joints, times, positions)).violations
    assert [(v.kind, v.first) for v in found] == [("acceleration", 4)]
    assert found[0].value == pytest.approx(0.3 / 0.0005)


def test_wrong_signs_are_noticed(layout, swing):
    wrong = Motion(swing.joints, swing.times, -swing.positions)
    found = {v.joint: v for v in check_motion(layout, wrong).violations}
    assert set(found) == {"LLEG_JOINT4", "RLEG_JOINT4"}  # hips move both ways
    assert found["LLEG_JOINT4"].other_sign
    assert "check encoder.signs" in str(found["LLEG_JOINT4"])


def rows_of(layout, path):
    """The path in rows of 2 ms."""
    times = np.append(np.arange(0.0, path.end - 1e-9, 0.002), path.end)
    rows = np.array([path.sample(t)[0] for t in times])
    return Motion(layout.joints, times, rows)


@pytest.mark.parametrize("far", [0.0, 1e-4, 0.01, 1.2])
def test_the_approach_keeps_the_limits_and_ends_there(layout, far):
    rng = np.random.default_rng(1)
    start = np.clip(
        rng.uniform(-far, far, len(layout.joints)), layout.lower, layout.upper
    )
    end = np.clip(
        rng.uniform(-far, far, len(layout.joints)), layout.lower, layout.upper
    )
    path = plan_approach(layout, start, end)
    way = rows_of(layout, path)
    np.testing.assert_allclose(way.positions[0], start, atol=1e-15)
    np.testing.assert_allclose(way.positions[-1], end, atol=1e-15)
    np.testing.assert_array_equal(path.qd[[0, -1]], 0.0)
    assert check_motion(layout, way).ok
    if far > 1.0:  # as fast as half the limits allow, within a row or two
        quick = Motion(way.joints, way.times * 0.4, way.positions)
        assert not check_motion(layout, quick).ok


def test_an_approach_leaves_joints_that_are_not_driven(layout, swing):
    end = np.array(swing.positions[0])
    end[3] = np.nan
    start = np.full(len(end), 0.01)
    way = plan_approach(layout, start, end)
    assert (way.q[:, 3] == 0.01).all()
    assert check_motion(layout, rows_of(layout, way)).ok


def test_approaches_from_nowhere_are_refused(layout):
    start = np.zeros(len(layout.joints))
    start[2] = np.nan
    with pytest.raises(
        MotionError, match="where the robot stands is not known: RLEG_JOINT3"
    ):
        plan_approach(layout, start, np.zeros(len(start)))
    with pytest.raises(MotionError, match="fraction must be positive, got 0"):
        plan_approach(layout, np.zeros(len(start)), np.zeros(len(start)), 0.0)


def test_clamping_clips_positions_and_slows_down(layout, swing):
    rng = np.random.default_rng(2)
    wild = Motion(swing.joints, swing.times, rng.normal(0, 1, swing.positions.shape))
    assert not check_motion(layout, wild).ok
    tame = clamped(layout, wild)
    assert (tame.positions >= layout.lower).all()
    assert (tame.positions <= layout.upper).all()
    kinds = {v.kind for v in check_motion(layout, tame).violations}
    assert kinds == set()
    gentle = clamped(layout, swing)
    np.testing.assert_allclose(gentle.times, swing.times, rtol=1e-8)


def test_motions_that_cannot_be(layout, swing):
    with pytest.raises(MotionError, match="times must be finite and rise"):
        Motion(swing.joints, swing.times[::-1], swing.positions)
    holes = np.array(swing.positions)
    holes[4, 0] = np.nan
    with pytest.raises(MotionError, match="not finite in some rows: RLEG_JOINT1"):
        Motion(swing.joints, swing.times, holes)


class TestCommand:
    @pytest.fixture
    def run(self, config, capsys):
        folder = config.urdf.parent.parent / "config"

        def run(path, *more):
            layout = folder / "motion/hoap2.yaml"
            code = main([str(path), "--robot", "hoap2", "--layout", str(layout), *more])
            return code, capsys.readouterr()

        return run

    def test_a_good_and_a_bad_file(self, run, layout, swing, tmp_path):
        path = tmp_path / "swing.csv"
        write_motion(path, swing, layout)
        code, output = run(path)
        assert code == 0
        assert "500 rows, 0.998 s\nwithin all limits" in output.out
        write_motion(
            path, changed(swing, layout, "LLEG_JOINT5", slice(200, 210), 1.5), layout
        )
        code, output = run(path)
        assert code == 1
        assert (
            "LLEG_JOINT5: position 85.94 deg in row 201, limit 61.00 deg" in output.out
        )

    def test_radians(self, run, layout, swing, tmp_path):
        path = tmp_path / "swing.csv"
        write_motion(path, swing, layout, "radians")
        assert run(path, "--unit", "radians")[0] == 0
        code, output = run(path)
        assert code == 2
        assert "counts are whole numbers. Is the file in radians?" in output.err

    def test_files_that_are_not_there(self, run, tmp_path):
        code, output = run(tmp_path / "none.csv")
        assert code == 2
        assert "cannot be read" in output.err
