"""Files inside a folder, checked and clamped."""

import os

import numpy as np
import pytest

from com_control.exceptions import MotionError
from com_control.motion.files import write_motion
from com_control.motion.limits import (
    LimitError,
    check_motion,
    find_motion_file,
    load_motion,
)
from com_control.motion.motion import Motion


@pytest.fixture
def folder(tmp_path):
    """A folder with files, one that is beside it, and links to both and to the folder above."""
    inside = tmp_path / "motions"
    (inside / "walks").mkdir(parents=True)
    (inside / "bow.csv").write_text("x")
    (inside / "walks" / "m01.csv").write_text("x")
    (tmp_path / "secret.csv").write_text("x")
    (inside / "link.csv").symlink_to(inside / "bow.csv")
    (inside / "installed.csv").symlink_to(tmp_path / "secret.csv")
    (inside / "out").symlink_to(tmp_path)
    os.mkfifo(inside / "pipe.csv")
    return inside


@pytest.mark.parametrize(
    "name",
    ["bow.csv", "walks/m01.csv", "link.csv", "installed.csv", "walks/../bow.csv"],
)
def test_files_of_the_folder(folder, name):
    assert find_motion_file(folder, name).read_text() == "x"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("../secret.csv", "is outside"),
        ("walks/../../secret.csv", "is outside"),
        ("out/secret.csv", "is outside"),
        ("..", "is not in"),
        ("/etc/passwd", "give the name of a file inside"),
        ("", "give the name of a file inside"),
        ("a\0b", "give the name of a file inside"),
        ("none.csv", r"is not in .*; there are: bow.csv, installed.csv, link.csv"),
        ("walks", "is not in"),
        (300 * "a", "is not in"),
        (f"{300 * 'a'}/b.csv", "is not in"),
        ("pipe.csv", "is not in"),
    ],
)
def test_other_files_are_refused(folder, name, message):
    with pytest.raises(MotionError, match=message):
        find_motion_file(folder, name)


def test_a_folder_that_is_none(tmp_path):
    with pytest.raises(MotionError, match="is not a directory"):
        find_motion_file(tmp_path / "no", "bow.csv")


@pytest.fixture
def bad(layout, swing, tmp_path):
    """A knee that bends the wrong way and a waist that jumps."""
    positions = np.array(swing.positions)
    positions[:, layout.joints.index("LLEG_JOINT4")] = np.radians(-3.0)
    positions[300:, layout.joints.index("BODY_JOINT1")] = 0.2
    path = tmp_path / "bad.csv"
    write_motion(path, Motion(swing.joints, swing.times, positions), layout)
    return path


def test_a_file_that_would_break_the_robot_is_refused(layout, bad):
    message = (
        r"bad.csv breaks limits: LLEG_JOINT4: position -3.00 deg in row 1, .*over by 2.00.*; "
        r"BODY_JOINT1: velocity .* in row 301, .*Fix the file, or ask for it to be clamped"
    )
    with pytest.raises(LimitError, match=message) as error:
        load_motion(bad, layout)
    assert [v.kind for v in error.value.report.violations] == [
        "position",
        "velocity",
        "acceleration",
    ]


def test_it_is_clamped_when_that_is_asked_for(layout, bad):
    loaded = load_motion(bad, layout, clamp=True)
    assert check_motion(layout, loaded.motion).ok
    assert not loaded.report.ok
    clipped, slowed = loaded.changes
    assert clipped == "LLEG_JOINT4 clipped at -1.00 deg in 500 rows, by up to 2.00 deg"
    assert slowed.startswith("slowed down 21.")


def test_a_good_file_is_left_as_it_is(layout, swing, tmp_path):
    path = tmp_path / "swing.csv"
    write_motion(path, swing, layout)
    loaded = load_motion(path, layout, clamp=True)
    assert loaded.changes == ()
    np.testing.assert_array_equal(
        loaded.motion.times, load_motion(path, layout).motion.times
    )
    with pytest.raises(MotionError, match=r"swing.csv has more than 499 rows: cut it"):
        load_motion(path, layout, most_rows=499)
