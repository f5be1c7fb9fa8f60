"""Tables 6 and 7 of [Cominoli]: recomputed, and tables that cannot be right."""

import csv
from math import degrees

import numpy as np
import pytest

from com_identification.exceptions import ProtocolError
from com_identification.tip_over.protocol import read_angles
from com_identification.tip_over.report import mean_error


@pytest.fixture(scope="module")
def printed(worlds_csv):
    with worlds_csv.open(newline="", encoding="utf-8") as file:
        return {row["world"]: row for row in csv.DictReader(file)}


@pytest.mark.parametrize("world", ["world1", "world2", "world3", "world4"])
def test_table_7_comes_out_of_table_6(table, printed, world):
    found = mean_error(table[world], table["real"])
    row = printed[world]
    assert 16 * found == pytest.approx(float(row["printed_total_rad"]), abs=1.01e-4)
    assert found == pytest.approx(float(row["printed_average_rad"]), abs=1e-4)
    assert degrees(found) == pytest.approx(float(row["printed_average_deg"]), abs=0.006)


def test_world5_leaves_out_a_row_in_print(table, printed, protocol):
    found = mean_error(table["world5"], table["real"])
    names = [test.name for test in protocol.tests]
    row = names.index("leg3 Front, arms_forward")
    left_out = abs(table["world5"][row] - table["real"][row])
    total = float(printed["world5"]["printed_total_rad"])
    assert 16 * found - total == pytest.approx(left_out, abs=1e-4)
    assert degrees(found) == pytest.approx(8.63, abs=0.01)
    assert degrees(total / 16) == pytest.approx(7.55, abs=0.01)


def test_world6_is_twice_its_own_differences_in_print(table, printed):
    found = mean_error(table["world6"], table["real"])
    assert 2.0 * 16 * found == pytest.approx(
        float(printed["world6"]["printed_total_rad"]), abs=1e-4
    )
    assert degrees(found) == pytest.approx(2.53, abs=0.01)


def write(tmp_path, text):
    path = tmp_path / "angles.csv"
    path.write_text(text)
    return path


def rows(protocol, value="0.1"):
    return [f'"{test.name}",{value}' for test in protocol.tests]


def test_rows_in_any_order_and_empty_cells(tmp_path, protocol):
    lines = rows(protocol)
    lines[3] = f'"{protocol.tests[3].name}",'
    path = write(tmp_path, "\n".join(["test,mine_rad", *lines[::-1]]))
    table = read_angles(path, protocol)
    assert list(table) == ["mine"]
    assert np.isnan(table["mine"]).nonzero()[0].tolist() == [3]


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda r: r[1:], "missing tests: leg3 Back, arms_forward"),
        (lambda r: [*r, "hop,1"], "unknown tests: hop"),
        (lambda r: [*r, r[0]], "a test is there twice"),
        (
            lambda r: [*r[:-1], r[-1].replace("0.1", "x")],
            "expected an angle in rad, got 'x'",
        ),
        (lambda r: [*r[:-1], r[-1].replace("0.1", "15.8")], "Are these degrees"),
        (
            lambda r: [*r[:-1], r[-1].replace("0.1", "nan")],
            "expected an angle in rad, got nan",
        ),
        (lambda r: [], "expected a column 'test' and rows"),
    ],
)
def test_tables_that_cannot_be_right_are_refused(tmp_path, protocol, edit, message):
    path = write(tmp_path, "\n".join(["test,mine_rad", *edit(rows(protocol))]))
    with pytest.raises(ProtocolError, match=message):
        read_angles(path, protocol)


def test_a_file_that_is_not_there(tmp_path, protocol):
    with pytest.raises(ProtocolError, match="cannot be read"):
        read_angles(tmp_path / "none.csv", protocol)
