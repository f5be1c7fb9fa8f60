"""Tables of each format, whole and broken: numbers, or one kind of error that says what to do."""

import zipfile
from contextlib import suppress

import numpy as np
import pandas
import pytest
import scipy.io

from com_bags import Table, TableError, is_table, read_table
from com_bags import tables as module
from com_bags.column_names import find_time

T = np.arange(5.0)
A = np.array([1.5, -2.0, np.nan, 4e3, 0.25])


def write(path):
    """The columns t and a in the format that the path's end says."""
    rows = [("t", "a"), *zip(T, A, strict=True)]
    mark, dot = {".csv": (",", "."), ".tsv": ("\t", "."), ".txt": (";", ",")}.get(
        path.suffix, ("", "")
    )
    if mark:
        pytest.importorskip("pandas")
        cells = [
            [str(x).replace("nan", "").replace(".", dot) for x in row] for row in rows
        ]
        path.write_text(
            "# made by a test\n" + "\n".join(mark.join(row) for row in cells) + "\n"
        )
    elif path.suffix == ".npz":
        np.savez_compressed(path, t=T, a=A, robot="hoap2", scalar=3.0)
    elif path.suffix == ".mat":
        scipy.io.savemat(
            path, {"t": T, "a": A[:, None], "text": "x"}, do_compression=True
        )
    else:
        arrow = pytest.importorskip("pyarrow")
        arrow.parquet = pytest.importorskip("pyarrow.parquet")
        arrow.parquet.write_table(
            arrow.table({"t": T, "a": A, "text": ["x"] * 5}), path
        )
    return path


ENDS = (".csv", ".tsv", ".txt", ".npz", ".mat", ".parquet")


@pytest.mark.parametrize("end", ENDS)
def test_each_format_gives_the_same_numbers(end, tmp_path):
    path = write(tmp_path / f"log{end}")
    assert is_table(path)
    table = read_table(path)
    assert set(table.columns) == {"t", "a"}
    assert table.rows == 5
    np.testing.assert_array_equal(table.columns["t"], T)
    np.testing.assert_array_equal(table.columns["a"], A)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "random"])
def test_broken_files_give_numbers_or_a_table_error(end, damage, tmp_path):
    path = write(tmp_path / f"log{end}")
    data, rng = path.read_bytes(), np.random.default_rng(1)
    for k in range(30 if damage == "flipped" else 1):
        if damage == "flipped":
            broken = bytearray(data)
            broken[int(rng.integers(len(data)))] ^= 1 << (k % 8)
        else:
            broken = {"cut": data[: len(data) * 2 // 3], "empty": b""}.get(
                damage, rng.bytes(500)
            )
        path.write_bytes(bytes(broken))
        with suppress(TableError):
            assert read_table(path).rows


def test_arrays_of_two_dimensions_have_a_column_for_each(tmp_path):
    np.savez(tmp_path / "a.npz", q=np.arange(10.0).reshape(5, 2), t=T)
    table = read_table(tmp_path / "a.npz")
    np.testing.assert_array_equal(table.columns["q[1]"], [1, 3, 5, 7, 9])


def test_a_pickle_is_never_loaded(tmp_path):
    class Trap:
        def __reduce__(self):
            return print, ("executed",)

    np.savez(tmp_path / "a.npz", t=np.array([Trap()], dtype=object))
    with pytest.raises(TableError, match="allow_pickle"):
        read_table(tmp_path / "a.npz")


def test_what_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAX_BYTES", 10**6)
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("t.npy", bytes(2 * 10**6))
    with pytest.raises(TableError, match="more than"):
        read_table(tmp_path / "a.npz")
    monkeypatch.setattr(module, "MAX_CELLS", 8)
    for end in (".mat", ".csv", ".parquet"):
        with pytest.raises(TableError, match="more than 8"):
            read_table(write(tmp_path / f"a{end}"))


def test_lists_of_a_parquet_count_as_many_numbers(tmp_path, monkeypatch):
    lists = {"t": [0.0, 1.0], "q": [np.zeros(50), np.zeros(50)]}
    pandas.DataFrame(lists).to_parquet(tmp_path / "a.parquet")
    assert len(read_table(tmp_path / "a.parquet").columns) == 51
    monkeypatch.setattr(module, "MAX_CELLS", 101)
    with pytest.raises(TableError, match="102 numbers, more than 101"):
        read_table(tmp_path / "a.parquet")


def test_lists_of_a_parquet_are_equally_long(tmp_path):
    lists = {"t": [0.0, 1.0], "q": [[0.0, 1.0], [2.0]], "text": ["a", "b"]}
    pandas.DataFrame(lists).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(TableError, match="'q' has lists of different lengths"):
        read_table(tmp_path / "a.parquet")
    lists["q"][1].append(3.0)
    pandas.DataFrame(lists).to_parquet(tmp_path / "a.parquet")
    columns = read_table(tmp_path / "a.parquet").columns
    found = {name: column.tolist() for name, column in columns.items()}
    assert found == {"q[0]": [0.0, 2.0], "q[1]": [1.0, 3.0], "t": [0.0, 1.0]}


def test_an_array_that_claims_more_than_there_is(tmp_path):
    with (
        zipfile.ZipFile(tmp_path / "a.npz", "w") as archive,
        archive.open("t.npy", "w") as stream,
    ):
        header = {"descr": "<f8", "fortran_order": False, "shape": (10**12,)}
        np.lib.format.write_array_header_1_0(stream, header)
    with pytest.raises(TableError, match=r"MemoryError|EOF"):
        read_table(tmp_path / "a.npz")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("t,a\n0,1\n1,2,3\n", "Expected 2 fields in line 3, saw 3"),
        (
            "t,a,b\n0,1,1,5,2,5\n1,1,1,5,2,5\n",
            "row 2 has 6 cells below 3 names. If decimals have",
        ),
        ("only words\nare here\n", "no column of numbers"),
        ("t,a\0\n", "not a text file"),
        ("", "is empty"),
    ],
)
def test_errors_say_what_is_wrong(text, message, tmp_path):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(TableError, match=message):
        read_table(tmp_path / "a.csv")


def test_cells_that_are_no_numbers_are_reported(tmp_path):
    (tmp_path / "a.csv").write_text("t,a,label\n0,1,x\n1,oops,y\n2,3,z\n")
    table = read_table(tmp_path / "a.csv")
    assert set(table.columns) == {"t", "a"}
    assert table.notes == ("'a': 1 cells are no numbers, like 'oops' in row 3",)
    assert np.isnan(table.columns["a"][1])
    (tmp_path / "a.csv").write_text("t;a\n0,5;1,25\n1,5;x\n")
    np.testing.assert_array_equal(
        read_table(tmp_path / "a.csv").columns["a"], [1.25, np.nan]
    )


NAMED = "t,hip,hip,\n"
ROWS = "0,1,2,\n1,-,3,\n1,nan,4,\n"


@pytest.mark.parametrize(
    "text",
    [
        NAMED + ROWS,
        "Recorded by Rig 7\nRate: 100 Hz\n\n" + NAMED + ROWS,
        NAMED + "s,deg,[deg],\n" + ROWS,
        "# " + NAMED + ROWS,
        "\ufeff" + (NAMED + ROWS).replace("\n", "\r\n"),
        (NAMED + ROWS).replace(",", "\t"),
        "t;hip;hip;\n0,0;1,0;2,0;\n1,0;-;3,0;\n1,0;NaN;4,0;\n",
        "t\thip\thip\n0,0\t1,0\t2,0\n1,0\t-\t3,0\n1,0\t\t4,0\n",
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_headers_as_programs_write_them(text, encoding, tmp_path):
    """Lines above the names, units below, equal names, no name, a mark of the byte order."""
    # which writes its own
    text = text.lstrip("\ufeff") if encoding == "utf-16" else text
    (tmp_path / "a.csv").write_text(text, encoding=encoding, newline="")
    table = read_table(tmp_path / "a.csv")
    assert list(table.columns) == ["t", "hip", "hip (3)"]
    np.testing.assert_array_equal(table.columns["hip"], [1.0, np.nan, np.nan])
    np.testing.assert_array_equal(table.columns["hip (3)"], [2.0, 3.0, 4.0])
    lines = text.splitlines()
    assert lines[table.first_row - 1].startswith("0")


def test_dates_and_times_of_day_are_seconds(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(
        "Date,Time,both,q\n2026-03-01,10:00:00.5,2026-03-01T10:00:00.5,1\n"
        "2026-03-01,10:00:02,2026-03-01T10:00:02,2\n"
    )
    columns = read_table(path).columns
    assert columns["Time"].tolist() == [36000.5, 36002.0]
    np.testing.assert_allclose(np.diff(columns["both"]), 1.5)
    assert np.ptp(columns["Date"]) == 0.0


def test_a_first_row_with_text_is_no_header(tmp_path):
    (tmp_path / "a.csv").write_text("t,a,label\n0,1,stand\n1,2,\n2,3,\n")
    np.testing.assert_array_equal(
        read_table(tmp_path / "a.csv").columns["t"], [0.0, 1.0, 2.0]
    )


def test_no_header_and_version_7_3(tmp_path):
    (tmp_path / "a.csv").write_text("0 1\n2 3\n")
    np.testing.assert_array_equal(
        read_table(tmp_path / "a.csv").columns["column 2"], [1, 3]
    )
    (tmp_path / "a.mat").write_bytes(b"MATLAB 7.3 MAT-file".ljust(600))
    with pytest.raises(TableError, match=r"save.*-v7"):
        read_table(tmp_path / "a.mat")
    with pytest.raises(TableError, match="is not a table"):
        read_table(tmp_path / "a.xls")
    with pytest.raises(TableError, match="does not exist"):
        read_table(tmp_path / "b.csv")


@pytest.mark.parametrize("end", [".mot", ".sto"])
def test_opensim_storage_begins_below_its_header(end, tmp_path):
    path = tmp_path / f"log{end}"
    path.write_text(
        "Coordinates\nversion=1\nnRows=2\nendheader\ntime\tknee\n0.0\t1.5\n0.1\t-2\n"
    )
    table = read_table(path)
    assert {name: column.tolist() for name, column in table.columns.items()} == {
        "time": [0.0, 0.1],
        "knee": [1.5, -2.0],
    }


def test_a_header_without_end_is_refused_soon(tmp_path):
    path = tmp_path / "log.mot"
    path.write_text("version=1\n" * 300 + "endheader\ntime\n0.0\n")
    with pytest.raises(
        TableError, match=r"no line endheader with names below it in the first 200"
    ):
        read_table(path)


@pytest.mark.parametrize("unit", ["s", "ms"])
def test_the_time_of_rows_of_several_topics_is_found(unit):
    """Every other cell is empty; the guess of a mapping ended in StopIteration."""
    time = np.full(40, np.nan)
    time[::2] = {"s": 0.002, "ms": 2.0}[unit] * np.arange(20)
    table = Table({"q": np.zeros(40), "time_imu": time}, 40, "log.csv")
    assert find_time(table) == {"column": "time_imu", "unit": unit}
    assert find_time(Table({"time": np.ones(40)}, 40, "log.csv")) is None


@pytest.mark.parametrize(
    "column",
    [np.arange(60.0) % 3.0, np.repeat([0.0, 1.0], 30)],
    ids=["falls again and again", "one step"],
)
def test_a_column_that_is_called_a_time_but_does_not_go_on_is_none(column):
    """Such as the time since a touch-down, or to the next one."""
    assert find_time(Table({"time_in_phase": column}, 60, "log.csv")) is None
