"""Reading and writing motion files, and files that are none."""

import numpy as np
import pytest

from com_control.exceptions import MotionError
from com_control.motion.files import read_motion, write_motion
from com_control.motion.motion import MotionLayout
from com_model import ConfigError, RobotModel

ROW = (
    "1,2,0,-172,3696,9537,-5841,-172,18810,-2000,0,8800,0,37,-3730,-9537,5806,37,"
    "-18810,2000,0,-8800,0, R ,R ,R,R"
)


def at(motion, joint, row=0):
    return np.degrees(motion.positions[row, motion.joints.index(joint)])


def test_a_row_of_the_robots_own_files(layout, write):
    """Knees bent by 45.6 deg, both arms lowered by 90 deg: left and right with other signs."""
    motion = read_motion(write([ROW] * 3), layout)
    np.testing.assert_allclose(motion.times, [0.0, 0.001, 0.002])
    for side in "LR":
        assert at(motion, f"{side}LEG_JOINT4") == pytest.approx(9537 / 209)
        assert at(motion, f"{side}LEG_JOINT3") == pytest.approx(-17.8, abs=0.2)
        assert at(motion, f"{side}LEG_JOINT5") == pytest.approx(-27.9, abs=0.2)
        assert at(motion, f"{side}ARM_JOINT1") == pytest.approx(90.0)


def test_spaces_empty_lines_and_a_trailing_comma(layout, write):
    spaced = ROW.replace(",", " ,  ")
    motion = read_motion(write([spaced, "", ROW + "\r", "  ", "2" + ROW[1:]]), layout)
    np.testing.assert_allclose(motion.times, [0.0, 0.001, 0.003])
    assert (motion.positions == motion.positions[0]).all()
    trailing = read_motion(write([ROW + ","]), layout)
    np.testing.assert_array_equal(trailing.positions, motion.positions[:1])


def test_a_joint_that_is_not_driven(layout, write):
    cells = ROW.split(",")
    cells[22] = "R"
    motion = read_motion(write([",".join(cells)] * 2), layout)
    assert "BODY_JOINT1" not in motion.driven
    assert len(motion.driven) == 20


@pytest.mark.parametrize("unit", ["counts", "radians"])
def test_what_is_written_is_read_back(layout, swing, tmp_path, unit):
    path = tmp_path / "swing.csv"
    write_motion(path, swing, layout, unit)
    back = read_motion(path, layout, unit)
    np.testing.assert_allclose(back.times, swing.times, atol=1e-12)
    half_count = 0.5 / np.abs(layout.counts_per_rad[0])
    tolerance = half_count * 1.001 if unit == "counts" else 1e-9
    np.testing.assert_allclose(back.positions, swing.positions, atol=tolerance)
    again = tmp_path / "again.csv"
    write_motion(again, back, layout, unit)
    assert again.read_text() == path.read_text()


def test_counts_are_written_with_the_robots_signs(layout, swing, tmp_path):
    path = tmp_path / "swing.csv"
    write_motion(path, swing, layout)
    peak = path.read_text().splitlines()[250].split(",")
    assert peak[:2] == ["2", "2"]
    assert peak[-4:] == ["R"] * 4
    assert int(peak[5]) == -int(peak[15]) == round(np.degrees(0.4) * 209)


def test_more_rows_than_are_held_in_memory_are_refused(layout, write):
    assert len(read_motion(write([ROW] * 3), layout, most_rows=3).times) == 3
    with pytest.raises(
        MotionError, match="has more than 3 rows: cut it into several files"
    ):
        read_motion(write([ROW] * 4), layout, most_rows=3)


def edit(column, text):
    cells = ROW.split(",")
    cells[column] = text
    return ",".join(cells)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            ",".join(ROW.split(",")[:12]),
            "row 3: expected 27 columns .*got 12. Is it cut off",
        ),
        (ROW + ",1,2", "row 3: expected 27 columns .*got 29"),
        (edit(5, "abc"), "row 3, RLEG_JOINT4: expected a number or R, got 'abc'"),
        (edit(5, "nan"), "row 3, RLEG_JOINT4: expected a number or R, got 'nan'"),
        (edit(5, "inf"), "row 3, RLEG_JOINT4: expected a number or R, got 'inf'"),
        (edit(5, "1e999"), "row 3, RLEG_JOINT4: expected a number or R, got '1e999'"),
        (edit(5, ""), "row 3, RLEG_JOINT4: expected a number or R, got ''"),
        (edit(5, "45.6"), "row 3: counts are whole numbers. Is the file in radians"),
        (
            edit(5, "R"),
            r"row 3, RLEG_JOINT4: not driven \(R\), unlike in the rows before it",
        ),
        (edit(0, "0"), "row 3: the period is 0, expected one from 1 to 1000"),
        (edit(0, "-1"), "row 3: the period is -1"),
        (edit(0, "R"), "row 3: the period is nan"),
        ("#!/bin/sh", "row 3: expected 27 columns"),
    ],
)
def test_rows_that_cannot_be_right_are_named(layout, write, line, message):
    with pytest.raises(MotionError, match=message) as error:
        read_motion(write([ROW, ROW, line, ROW]), layout)
    assert error.value.row == 3


def test_files_that_are_no_motion_files(layout, write, tmp_path):
    with pytest.raises(MotionError, match="has no rows"):
        read_motion(write([""]), layout)
    with pytest.raises(MotionError, match=r"none.csv cannot be read: No such file"):
        read_motion(tmp_path / "none.csv", layout)
    binary = tmp_path / "binary.csv"
    binary.write_bytes(bytes(range(256)) * 100)
    with pytest.raises(MotionError, match="is not text"):
        read_motion(binary, layout)
    endless = tmp_path / "endless.csv"
    endless.write_text("1" * 100_000)
    with pytest.raises(
        MotionError, match="row 1: expected 27 columns, got more than 4096 char"
    ):
        read_motion(endless, layout)


def test_the_wrong_unit_is_noticed(layout, swing, write, tmp_path):
    with pytest.raises(
        MotionError, match="row 1: 18810 is too large for radians: counts"
    ):
        read_motion(write([ROW]), layout, "radians")
    path = tmp_path / "radians.csv"
    write_motion(path, swing, layout, "radians")
    with pytest.raises(MotionError, match="Is the file in radians"):
        read_motion(path, layout)
    with pytest.raises(
        MotionError, match="unit: expected one of counts, radians, got 'degrees'"
    ):
        read_motion(path, layout, "degrees")


def test_times_that_are_no_whole_periods_cannot_be_written(layout, swing, tmp_path):
    odd = type(swing)(swing.joints, swing.times * 0.77, swing.positions)
    with pytest.raises(MotionError, match=r"not multiples of 0.001 s: resample first"):
        write_motion(tmp_path / "odd.csv", odd, layout)
    other = type(swing)(swing.joints[::-1], swing.times, swing.positions)
    with pytest.raises(MotionError, match="joints are not those of the layout"):
        write_motion(tmp_path / "odd.csv", other, layout)
    with pytest.raises(MotionError, match="cannot be written"):
        write_motion(tmp_path / "no" / "odd.csv", swing, layout)


def test_layouts_that_cannot_be_right(config, tmp_path):
    model = RobotModel.from_file(config.urdf)
    path = tmp_path / "layout.yaml"
    path.write_text("columns: [period, HEAD_JOINT1]")
    with pytest.raises(MotionError, match=r"encoder\.signs has no HEAD_JOINT1"):
        MotionLayout.from_file(path, config, model)
    path.write_text("columns: [mode, BODY_JOINT1]")
    with pytest.raises(MotionError, match="columns need 'period' and joints of hoap2"):
        MotionLayout.from_file(path, config, model)
    path.write_text("columns: [period, BODY_JOINT1]\nspeed: 3")
    with pytest.raises(ConfigError, match="unknown key 'speed'"):
        MotionLayout.from_file(path, config, model)
