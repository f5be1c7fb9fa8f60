"""Tables of numbers that anybody may have written.

They are csv, tsv, columns with spaces between them (txt, dat), parquet, npz, MATLAB's mat (up to
v7.3), and OpenSim's mot, sto and trc.

Nothing in a file is executed, and files with more than MAX_BYTES or MAX_CELLS are refused.
"""

import gzip
import importlib
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io

from com_bags.exceptions import TableError
from com_model.arrays import Array, Indices
from com_model.exceptions import listing, pip_install, quote
from com_model.npz import read_npz

MAX_BYTES = 2**30  # of a file, and of what an archive contains
MAX_CELLS = 50_000_000
LENGTHS = {"mm": 1e-3, "cm": 1e-2, "m": 1.0}
_HEADER = 200  # lines
_HDF5 = b"\x89HDF\r\n"
_COMMENTS = "#%"  # lines before the first that begin with one are passed over
_MISSING = ("", "-", "nan", "na", "n/a", "null")  # cells
_UNITS = {
    form.format(unit)
    for form in ("{}", "[{}]", "({})")
    for unit in (
        *("", "rad", "deg", "°", "m", "cm", "mm", "s", "ms", "us", "ns"),
        *("N", "kN", "kgf", "kg", "N m", "Nm", "N*m", "N.m", "N mm", "Nmm"),
        *("V", "mV", "g", "m/s^2", "m/s2", "-", "%", "1"),
    )
}


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of equal length by name, NaN where a cell is empty.

    Attributes:
        columns: (rows,) by name.
        rows: Number of rows.
        source: The file.
        notes: What was left out, sentences.
        first_row: Number of the first row in the file: of a text that of its line.
    """

    columns: Mapping[str, Array]
    rows: int
    source: str
    notes: tuple[str, ...] = ()
    first_row: int = 1


def is_table(path: str | Path) -> bool:
    """Whether a file is a table by the end of its name."""
    return _ending(Path(path)) in _READERS


def _ending(file: Path) -> str:
    """The end of a file's name, without that of a compressed text."""
    name = file.name.lower().removesuffix(".gz")
    return Path(name).suffix


def read_table(path: str | Path) -> Table:
    """Reads a table; a TableError says why it cannot, and what to do.

    Of arrays with two dimensions (rows, k) each column is one of the table, named like q[0].
    """
    file = Path(path)
    reader = _READERS.get(_ending(file))
    if reader is None:
        raise TableError(
            f"is not a table. Expected {listing(sorted(_READERS))}", str(path)
        )
    try:
        if not file.is_file():
            raise TableError(
                "is not a file" if file.exists() else "does not exist", str(path)
            )
        _check_size(file, _unpacked_size(file), MAX_BYTES, "bytes")
        return _table(reader(file), str(path))
    except TableError:
        raise
    except ImportError as error:
        raise TableError(
            f"needs {error.name}, which is not installed: "
            f"save it as npz, or install it: {pip_install('pandas pyarrow h5py')}",
            str(path),
        ) from error
    except Exception as error:  # whatever a library makes of a damaged file
        raise TableError(
            f"cannot be read: {type(error).__name__}: {str(error).strip()}. "
            "Save it again (in MATLAB save(..., '-v7')), or as csv",
            str(path),
        ) from error


def _unpacked_size(file: Path) -> int:
    """Bytes of a file; of a compressed text what it becomes, as far as that may be read."""
    if file.suffix.lower() != ".gz":
        return file.stat().st_size
    size = 0
    with gzip.open(file) as stream:
        while size <= MAX_BYTES and (part := stream.read(2**20)):
            size += len(part)
    return size


def _check_size(file: Path, size: float, most: int, what: str) -> None:
    if size > most:
        raise TableError(
            f"has {size:.0f} {what}, more than {most}: cut it in parts, or leave columns out",
            str(file),
        )


def _table(arrays: Mapping[str, Any], source: str) -> Table:
    """Makes columns of named arrays, and keeps those of the most common length."""
    columns: dict[str, Array] = {}
    notes, first = [], 1
    for name, value in arrays.items():
        array = np.asarray(value)
        first = int(value.index[0]) if hasattr(value, "index") and len(value) else first
        if array.dtype.kind == "O":  # text of a csv file
            numbers = importlib.import_module("pandas").to_numeric(
                value, errors="coerce"
            )
            array = np.array(numbers, dtype=float)
            if not np.isfinite(array).any():
                array = _dates(value)
            wrong = np.flatnonzero(np.isnan(array) & ~np.asarray(value.isna()))
            if len(wrong) and np.isfinite(array).any():
                notes.append(
                    f"{quote(name)}: {len(wrong)} cells are no numbers, like "
                    f"{quote(str(value.iloc[wrong[0]]))} in row {first + wrong[0]}"
                )
        elif array.dtype.kind == "M":
            array = array.astype("datetime64[ns]").astype(float) * 1e-9
        if array.dtype.kind not in "biuf" or array.ndim not in (1, 2) or array.size < 2:
            continue
        if array.ndim == 2 and 1 in array.shape:
            array = array.ravel()
        parts = [array] if array.ndim == 1 else list(array.T)
        names = (
            [name] if array.ndim == 1 else [f"{name}[{i}]" for i in range(len(parts))]
        )
        columns |= {
            key: np.array(part, float) for key, part in zip(names, parts, strict=True)
        }
    columns = {
        name: column for name, column in columns.items() if np.isfinite(column).any()
    }
    if not columns:
        raise TableError(
            "contains no column of numbers. Expected names, then numbers", source
        )
    lengths = [len(column) for column in columns.values()]
    rows = max(set(lengths), key=lambda length: (lengths.count(length), length))
    if others := [name for name, column in columns.items() if len(column) != rows]:
        notes.append(
            f"left out, because they do not have {rows} rows as most: {listing(others)}"
        )
    kept = {name: column for name, column in columns.items() if len(column) == rows}
    return Table(kept, rows, source, tuple(notes), first)


def join_runs(seconds: Array, pause: float = 10.0) -> tuple[Array, Indices]:
    """Puts runs that a table has after each other one after the other in time, too.

    Args:
        seconds: (N,) s, of all rows; NaN where it is not known. A run ends where it goes back.
        pause: s, between two runs.

    Returns:
        (N,) s, and the rows at which later runs begin.
    """
    joined, known = seconds.copy(), np.flatnonzero(np.isfinite(seconds))
    starts = known[1:][np.diff(seconds[known]) < 0.0]
    for row in starts.tolist():
        before = float(np.nanmax(joined[:row]))
        joined[row:] += before - joined[row] + pause
    return joined, starts


def run_notes(table: Table, starts: Indices) -> list[str]:
    """Says at which rows of a table later runs begin.

    Args:
        table: with the number of its first row.
        starts: see join_runs().
    """
    rows = (starts + table.first_row).tolist()
    return [f"time goes back at row {row}: read as a later run" for row in rows]


def _dates(column: Any) -> Array:
    """Dates with times of a column of text in s since 1970, or times of day in s.

    NaN where a cell is neither.
    """
    pandas = importlib.import_module("pandas")
    times = pandas.to_datetime(column, errors="coerce", utc=True, format="ISO8601")
    if times.isna().all():
        times = pandas.to_timedelta(column, errors="coerce") + pandas.Timestamp(
            0, tz="UTC"
        )
    found = np.array(times.dt.as_unit("ns").astype("int64"), dtype=float) * 1e-9
    return np.where(times.isna(), np.nan, found)


def _read_mat(file: Path) -> Mapping[str, Any]:
    with file.open("rb") as stream:
        # bytes before the file proper of version 7.3
        if stream.read(512 + len(_HDF5))[512:] == _HDF5:
            return _read_hdf5(file)
    shapes = [(name, shape) for name, shape, _ in scipy.io.whosmat(file)]
    _check_size(
        file,
        sum(np.prod(shape, dtype=float) for _, shape in shapes),
        MAX_CELLS,
        "numbers",
    )
    found = scipy.io.loadmat(file)
    return {name: found[name] for name, _ in shapes if found[name].dtype.kind in "biuf"}


def _read_hdf5(file: Path) -> Mapping[str, Any]:
    """Arrays of a mat file of version 7.3, which has them transposed; structures as a.b."""
    h5py = importlib.import_module("h5py")
    found: dict[str, Any] = {}
    with h5py.File(file, "r") as stored:

        def add(name: str, item: Any) -> None:
            if isinstance(item, h5py.Dataset) and item.dtype.kind in "biuf":
                _check_size(file, item.size, MAX_CELLS, "numbers")
                found[name.replace("/", ".")] = np.array(item).T

        stored.visititems(add)  # not through links to other files
    return found


def _refuse_pickle(file: Path) -> Mapping[str, Any]:
    """Pickles and PyTorch's files run whatever they contain when they are loaded."""
    raise TableError(
        "is a pickle, which can run any program when it is opened, so it is not. Where you trust "
        "it, convert it to npz:\n"
        f"  import numpy, pickle; data = pickle.load(open({file.name!r}, 'rb'))"
        "  # or torch.load(..., weights_only=True)\n"
        "  numpy.savez('log.npz', **{k: numpy.asarray(v) for k, v in data.items()})",
        str(file),
    )


def _read_parquet(file: Path) -> Mapping[str, Any]:
    """Columns of numbers and times, and lists of as many numbers in each row.

    Text is left out: what a short file repeats may be large.
    """
    arrow = importlib.import_module("pyarrow")
    parquet = importlib.import_module("pyarrow.parquet")
    about = parquet.read_metadata(file)
    groups = [about.row_group(i) for i in range(about.num_row_groups)]
    # entries of lists are numbers, too
    count = sum(g.column(k).num_values for g in groups for k in range(g.num_columns))
    _check_size(file, count, MAX_CELLS, "numbers")
    _check_size(file, sum(g.total_byte_size for g in groups), MAX_BYTES, "bytes")
    kinds = {
        each.name: getattr(each.type, "value_type", each.type)
        for each in about.schema.to_arrow_schema()
    }
    used = [name for name, kind in kinds.items() if arrow.types.is_primitive(kind)]
    table = parquet.read_table(file, columns=used)
    lists = {
        name: _rows_of_lists(name, table.column(name), file)
        for name in used
        if table.column(name).type.num_fields
    }
    frame = table.drop_columns(list(lists)).to_pandas()
    frame = frame.reset_index(drop=frame.index.name is None)  # it may be the time
    frame.index += 1
    return lists | {
        str(name): frame[name] for name in frame if frame[name].dtype.kind in "biufM"
    }


def _rows_of_lists(name: str, column: Any, file: Path) -> Array:
    """A column of lists as (rows, k); no list becomes an object of its own."""
    lengths = importlib.import_module("pyarrow.compute").list_value_length(column)
    if lengths.null_count or len(lengths.unique()) > 1:
        raise TableError(
            f"{quote(name)} has lists of different lengths: make them equally long",
            str(file),
        )
    numbers = column.combine_chunks().flatten().to_numpy(zero_copy_only=False)
    width = len(numbers) // max(len(column), 1)
    return np.asarray(numbers, dtype=float).reshape(len(column), width)


def _read_text(file: Path) -> Mapping[str, Any]:
    names, skipped, mark, comma = _find_header(_head(file, _HEADER), file)
    frame = _read_columns(file, names, skipped, mark, decimal="," if comma else ".")
    text = [name for name in frame if comma and frame[name].dtype.kind == "O"]
    return {**frame, **{name: frame[name].str.replace(",", ".") for name in text}}


def _find_header(lines: list[str], file: Path) -> tuple[list[str], int, str, bool]:
    """Finds the columns' names in the first lines of a text.

    They are above the first line of numbers, maybe behind a mark of comments, with a line of units
    between them, and below other lines. Where no line has numbers alone, they are in the first one.

    Returns the names, how many lines to pass over, the mark between cells, and whether decimals
    have a comma.
    """
    first = next((i for i, line in enumerate(lines) if _data_mark(line)), 0)
    if not (mark := _data_mark(lines[first])):
        return _first_line(lines, file)
    above = [
        _split(line.lstrip(_COMMENTS), mark) for line in lines[:first] if line.strip()
    ][-2:]
    if len(above) == 2 and len(above[0]) == len(above[1]) and set(above[1]) <= _UNITS:
        above.pop()
    names, cells = above[-1] if above else [], _split(lines[first], mark)
    if any(map(_data_mark, names)):  # the first row has text, too
        return _first_line(lines, file)
    comma = mark == ";" or (mark == "\t" and "," in lines[first])
    if mark == "," and 1 < len(names) < len(cells) - 1:
        raise TableError(
            f"row {first + 1} has {len(cells)} cells below {len(names)} names. If decimals have "
            "commas, export it with ; or tabs between the columns",
            str(file),
        )
    if len(names) < max(2, len(cells) - 1) and len(names) != len(cells):
        names = []
    names += [""] * (len(cells) - len(names))
    return _unique(names, file), first, mark, comma


def _first_line(lines: list[str], file: Path) -> tuple[list[str], int, str, bool]:
    """The same, with the names in the first line."""
    used = [
        i
        for i, line in enumerate(lines)
        if line.strip() and line.strip()[0] not in _COMMENTS
    ]
    if not used or "\0" in lines[used[0]]:
        raise TableError(
            "is empty or not a text file. Expected columns of numbers", str(file)
        )
    line = lines[used[0]]
    # of the marks that occur the one that does most; ; goes with decimal commas
    mark = max(";\t, ", key=lambda each: line.count(each) if each != " " else 0.5)
    return _unique(_split(line, mark), file), used[0] + 1, mark, mark == ";"


def _data_mark(line: str) -> str:
    """The mark between the cells of a line of numbers; empty where it is no such line."""
    for mark in ";\t, ":
        cells = [cell for cell in _split(line, mark) if cell.lower() not in _MISSING]
        if not cells or (mark != " " and mark not in line):
            continue
        try:
            [float(cell.replace(",", ".") if mark in ";\t" else cell) for cell in cells]
        except ValueError:
            continue
        return mark
    return ""


def _split(line: str, mark: str) -> list[str]:
    cells = line.split() if mark == " " else line.split(mark)
    return [cell.strip(" \"'\r\n") for cell in cells]


def _unique(names: list[str], file: Path) -> list[str]:
    """Names of all columns: of those without one their number, of equal ones the second with it."""
    _check_size(file, len(names), 20_000, "columns")
    found: dict[str, None] = {}  # in order
    for i, name in enumerate(names, start=1):
        name = name or f"column {i}"
        found[f"{name} ({i})" if name in found else name] = None
    return list(found)


def _read_columns(
    file: Path, names: list[str], skipped: int, mark: str, **options: Any
) -> Any:
    """Columns of text as a frame of pandas, below a number of skipped lines."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # rows longer than the first one
        frame = importlib.import_module("pandas").read_csv(
            file,
            sep=r"\s+" if mark == " " else mark,
            names=names,
            skiprows=skipped,
            index_col=False,
            skipinitialspace=True,
            nrows=MAX_CELLS // len(names) + 1,
            encoding=_encoding(file),
            encoding_errors="replace",
            na_values=["-"],
            low_memory=False,
            **options,
        )
    _check_size(file, frame.size, MAX_CELLS, "numbers")
    frame.index += skipped + 1
    return frame


def _head(file: Path, count: int) -> list[str]:
    """The first lines of a text, each 1 MiB at most."""
    with _open(file, encoding=_encoding(file), errors="replace") as stream:
        return [stream.readline(2**20).rstrip("\r\n") for _ in range(count)]


def _open(file: Path, mode: str = "rt", **options: Any) -> Any:
    """Opens a text, which may be compressed."""
    opened = gzip.open if file.suffix.lower() == ".gz" else open
    return opened(file, mode, **options)


def _encoding(file: Path) -> str:
    with _open(file, "rb") as stream:
        return "utf-16" if stream.read(2) in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"


def _read_mot(file: Path) -> Mapping[str, Any]:
    """OpenSim's storage: lines to `endheader`, names, then numbers."""
    lines = _head(file, _HEADER)
    ends = [
        i for i, line in enumerate(lines[:-1]) if line.strip().lower() == "endheader"
    ]
    if not ends or not lines[ends[0] + 1].strip():
        raise TableError(
            f"has no line endheader with names below it in the first {_HEADER} lines",
            str(file),
        )
    return dict(_read_columns(file, lines[ends[0] + 1].split(), ends[0] + 2, " "))


def _read_trc(file: Path) -> Mapping[str, Any]:
    """Markers: columns Time (s) and NAME.x, .y, .z in m."""
    _, keys, values, line, _ = _head(
        file, 5
    )  # some pad their cells with tabs and blanks
    about = dict(zip(keys.split(), values.split(), strict=False))
    markers = line.split("\t")
    meter = LENGTHS.get(about.get("Units", "").lower())
    if meter is None or [name.strip().lower() for name in markers[:2]] != [
        "frame#",
        "time",
    ]:
        raise TableError(
            f"is no trc: expected Units {listing(LENGTHS)} in its third line, Frame# and Time in "
            "its fourth",
            str(file),
        )
    labels = [name.strip() for name in markers[2:] if name.strip()]
    names = ["Frame#", "Time", *(f"{name}.{axis}" for name in labels for axis in "xyz")]
    used = {"usecols": range(len(names))}  # lines may end with tabs
    frame = _read_columns(file, names, 5, "\t", **used)
    return {
        name: frame[name] * (1.0 if name == "Time" else meter) for name in names[1:]
    }


_READERS: dict[str, Callable[[Path], Mapping[str, Any]]] = {
    ".csv": _read_text,
    ".tsv": _read_text,
    ".txt": _read_text,
    ".dat": _read_text,
    ".parquet": _read_parquet,
    ".npz": lambda file: read_npz(file, MAX_BYTES),
    ".mat": _read_mat,
    ".mot": _read_mot,
    ".sto": _read_mot,
    ".trc": _read_trc,
} | dict.fromkeys((".pkl", ".pickle", ".pt", ".pth"), _refuse_pickle)
