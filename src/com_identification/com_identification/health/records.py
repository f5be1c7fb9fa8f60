"""The record of a robot: its identifications, with all that a later comparison needs."""

import hashlib
import io
import json
import sqlite3
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import datetime, timezone
from functools import cached_property
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import numpy as np

from com_identification.exceptions import HealthError
from com_identification.regression.priors import BOUND_AXES, BodyPriors
from com_identification.regression.result import Identification, by_body, issues_of
from com_identification.store.results import corrected_inertials, plain
from com_model import RobotModel
from com_model.arrays import Array, FrozenArrays
from com_model.exceptions import import_optional, pip_install
from com_model.files import write_file
from com_model.npz import read_npz
from com_model.urdf.editing import edit_inertials

_PRIORS = ("prior_mass", "prior_com", "prior_mass_std", "prior_com_std")
_ARRAYS = ("parameters", "covariance", *_PRIORS)
# bytes of the URDF, or of the arrays; more is cut, and refused as damaged
_LARGEST = 1 << 26


@dataclass(frozen=True, eq=False)
class Record(FrozenArrays):
    """One identification of a robot; arrays as in Identification.

    Attributes:
        robot: name of the model.
        serial: which of these robots; "" where there is only one.
        taken: when the readings were taken, ISO 8601, UTC.
        source: "bag", "node".
        path: of the recording.
        data_hash: of the readings.
        version: of com_identification.
        kinematics: hash of the bodies' frames and joints.
        urdf: its text.
        bodies: B names.
        parameters: (4 B,) masses (kg) and first moments (kg m), body by body.
        covariance: (4 B, 4 B) of the parameters.
        prior_mass, prior_mass_std: (B,) kg.
        prior_com, prior_com_std: (B, 3) m, in the bodies' frames.
        total_mass: kg, value and standard deviation.
        mass_on_feet: kg, value and standard deviation by the feet alone; None: not known.
        sensors: (value, standard deviation, the prior's) by kind and name.
        issues: what is wrong with the result, in sentences.
    """

    robot: str
    serial: str
    taken: str
    source: str
    path: str
    data_hash: str
    version: str
    kinematics: str
    urdf: str
    bodies: tuple[str, ...]
    parameters: Array
    covariance: Array
    prior_mass: Array
    prior_com: Array
    prior_mass_std: Array
    prior_com_std: Array
    total_mass: tuple[float, float]
    mass_on_feet: tuple[float, float] | None
    sensors: Mapping[str, Mapping[str, tuple[float, float, float]]]
    issues: tuple[str, ...]

    @classmethod
    def from_identification(
        cls,
        found: Identification,
        model: RobotModel,
        data_hash: str,
        taken_ns: int,
        serial: str = "",
        source: str = "",
        path: str = "",
        mass_on_feet: tuple[float, float] | None = None,
    ) -> "Record":
        """Makes the record of a result.

        The same readings, by their data_hash, are recorded once.

        Args:
            found: the result.
            model: the robot, as its URDF says.
            data_hash: of the readings; see hash_files.
            taken_ns: ns since 1970, when they were taken.
            serial: serial number of the robot.
            source: "bag" or "node".
            path: of the recording.
            mass_on_feet: kg, value and standard deviation by the feet alone; None: not known.
        """
        sensors = {
            kind: {
                name: (
                    value,
                    found.sensor_stds[kind][name],
                    found.sensor_prior_stds[kind][name],
                )
                for name, value in values.items()
            }
            for kind, values in found.sensor_errors.items()
        }
        return cls.from_model(
            model,
            taken_ns,
            serial=serial,
            source=source,
            path=path,
            data_hash=data_hash,
            bodies=found.bodies,
            total_mass=(found.total_mass, found.total_mass_std),
            mass_on_feet=mass_on_feet,
            sensors=sensors,
            issues=tuple(issues_of(found)),
            **{name: getattr(found, name) for name in _ARRAYS},
        )

    @classmethod
    def from_model(cls, model: RobotModel, taken_ns: int, **rest: Any) -> "Record":
        """Makes a record of the rest of its values, for the model of a URDF.

        Args:
            model: The robot, as its URDF says.
            taken_ns: ns since 1970, when the readings were taken.
            rest: All other values of the record.
        """
        return cls(
            robot=model.name,
            taken=datetime.fromtimestamp(taken_ns / 1e9, timezone.utc).isoformat(
                " ", "seconds"
            ),
            version=_version(),
            kinematics=_kinematics(model),
            urdf=model.xml,
            **rest,
        )

    def _check(self) -> None:
        """Raises ValueError where a value is not what its name says."""
        names = ("robot", "serial", "taken", "source", "path", "data_hash", "version")
        texts = [getattr(self, name) for name in (*names, "kinematics", "urdf")]
        if not all(isinstance(t, str) for t in (*texts, *self.bodies, *self.issues)):
            raise ValueError("a text is none")
        numbers: tuple[Any, ...] = (
            *(self.parameters, self.covariance, self.prior_mass, self.total_mass),
            self.mass_on_feet or (0.0, 0.0),
            *(row for kind in self.sensors.values() for row in kind.values()),
        )
        if not all(np.isfinite(np.asarray(item, float)).all() for item in numbers):
            raise ValueError("a number is not finite")
        if (np.diag(self.covariance) < 0.0).any():
            raise ValueError("a variance is negative")

    @cached_property
    def key(self) -> str:
        """Identifies what was measured: the same readings of the same robot have the same key."""
        text = "\n".join((self.robot, self.serial, self.data_hash, self.kinematics))
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    @cached_property
    def by_body(self) -> tuple[Array, Array, Array, Array]:
        """Masses (B,) kg, CoMs (B, 3) m in the bodies' frames, and both's standard deviations."""
        return by_body(self.parameters, self.covariance)

    @property
    def priors(self) -> BodyPriors:
        """Priors of the bodies, without bounds."""
        com = np.nan_to_num(self.prior_com)
        free = np.full((len(com), len(BOUND_AXES)), np.inf)
        stds = self.prior_mass_std, self.prior_com_std
        return BodyPriors(self.prior_mass, com, *stds, -free, free)

    def corrected_urdf(self) -> str:
        """Returns the text of the URDF with these masses and centres of mass."""
        model = RobotModel.from_urdf(self.urdf)
        return edit_inertials(self.urdf, corrected_inertials(model, *self.by_body[:2]))

    def to_json(self) -> str:
        """Returns the record as text that from_json reads; arrays are exact."""
        packed = io.BytesIO()
        half = self.covariance[np.triu_indices(len(self.covariance))]
        rest = {name: getattr(self, name) for name in _ARRAYS if name != "covariance"}
        np.savez(packed, covariance=half, **rest)
        document = {
            item.name: getattr(self, item.name)
            for item in fields(self)
            if item.name not in _ARRAYS
        }
        document["urdf"] = _pack(self.urdf.encode())
        document["arrays"] = _pack(packed.getvalue())
        return json.dumps(plain(document))

    @classmethod
    def from_json(cls, text: str) -> "Record":
        """Reads what to_json wrote.

        Args:
            text: JSON.

        Raises:
            HealthError: it is damaged.
        """
        try:
            data = json.loads(text, parse_constant=_refuse)
            arrays = read_npz(io.BytesIO(_unpack(data.pop("arrays"))), _LARGEST)
            data.update({name: arrays[name] for name in _ARRAYS})
            size = len(data["parameters"])
            if size > 4000:
                raise ValueError(f"{size} parameters")
            upper = np.zeros((size, size))
            upper[np.triu_indices(size)] = data["covariance"]
            data["covariance"] = upper + np.triu(upper, 1).T
            data["urdf"] = _unpack(data["urdf"]).decode()
            for name in ("bodies", "total_mass", "mass_on_feet", "issues"):
                data[name] = None if data[name] is None else tuple(data[name])
            record = cls(**data)
            if size != 4 * len(record.bodies) or record.prior_com.size != 3 * len(
                record.bodies
            ):
                raise ValueError(
                    f"{len(record.bodies)} bodies, and arrays of other sizes"
                )
            record._check()
        except Exception as error:  # damaged text becomes values of any type
            raise HealthError(
                f"a record is damaged: {type(error).__name__} {error}"
            ) from error
        return record


def hash_files(path: str | Path) -> str:
    """Returns the hash of a file, or of all files below a folder with their names.

    Args:
        path: of the file or folder.

    Raises:
        OSError: a file cannot be read.
    """
    root, total = Path(path), hashlib.sha256()
    for file in (
        sorted(p for p in root.rglob("*") if p.is_file()) if root.is_dir() else [root]
    ):
        total.update(f"{file.relative_to(root)}\0{file.stat().st_size}\0".encode())
        with file.open("rb") as stream:
            while block := stream.read(1 << 20):
                total.update(block)
    return total.hexdigest()


def _kinematics(model: RobotModel) -> str:
    bodies = model.bodies
    numbers = np.concatenate(
        [a.ravel() for a in (bodies.parent, bodies.R, bodies.d, bodies.axis)]
    )
    text = "\n".join((*bodies.names, *map("{:.6f}".format, numbers + 0.0)))
    return hashlib.sha256(text.replace("-0.000000", "0.000000").encode()).hexdigest()[
        :16
    ]


def _version() -> str:
    try:
        return metadata.version("com_identification")
    except metadata.PackageNotFoundError:
        return "unknown"


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is no number")


def _pack(data: bytes) -> str:
    return b64encode(zlib.compress(data)).decode()


def _unpack(text: str) -> bytes:
    return zlib.decompressobj().decompress(b64decode(text), _LARGEST)


_TABLES = (
    "CREATE TABLE IF NOT EXISTS records (id VARCHAR(64) PRIMARY KEY, robot TEXT, serial TEXT, "
    "taken TEXT, body TEXT)",
    # reason is empty where the bag was identified
    "CREATE TABLE IF NOT EXISTS bags (path VARCHAR(700) PRIMARY KEY, stamp TEXT, hash TEXT, "
    "reason TEXT)",
)

Row = Sequence[Any]
BagRow = tuple[str, str, str, str]
"""Path, stamp, hash and reason of the failure, "" where there is none, of a bag that was read."""


class HealthDatabase:
    """The records of robots in a database; several processes may use it at once.

    What was appended is on the disk when append() returns. What cannot be written, as another
    program locks the database or it is damaged, waits in files beside it for the next time.

    Args:
        where: path of an SQLite file, or a URL such as postgresql://host/health.
        create: whether a missing file and missing tables are created.
        wait: s, for another writer.

    Attributes:
        name: of the database, without a password.
        damaged: records that records() left out the last time, with the reasons.

    Raises:
        HealthError: there is no database, it is damaged, or it cannot be reached.
    """

    def __init__(
        self, where: str | Path, create: bool = False, wait: float = 10.0
    ) -> None:
        self._url, self._create, self._wait = str(where), create, wait
        self.name, self.damaged = str(where), list[str]()
        self._engine: Any = None
        if "://" in self._url:
            alchemy = library("sqlalchemy")
            try:
                self._engine = alchemy.create_engine(self._url)
            except Exception as error:  # the drivers have their own
                raise HealthError(f"no URL of a database: {error}") from error
            self.name = self._engine.url.render_as_string(hide_password=True)
            folder = hashlib.sha256(self._url.encode()).hexdigest()[:16]
            self._pending = Path.home() / ".com_health" / folder
        else:
            self._pending = Path(f"{self._url}.pending")
            if not create and not Path(self._url).is_file():
                raise HealthError(
                    f"no record {self._url}: identify BAG --record {self._url} makes one"
                )
        if not create:
            self._read("SELECT COUNT(*) FROM records")

    def append(self, record: Record) -> bool:
        """Adds an identification.

        Args:
            record: of the identification.

        Returns:
            Whether it is new.

        Raises:
            HealthError: as append_all.
        """
        return self.append_all([record]) == 1

    def append_all(self, records: Sequence[Record], bags: Iterable[BagRow] = ()) -> int:
        """Adds identifications, and bags that were read, in one transaction.

        Args:
            records: identifications.
            bags: that were read.

        Returns:
            How many identifications are new.

        Raises:
            HealthError: nothing can be written now; names the files in which the identifications
                wait. Or all was written, and one that waited is damaged.
        """
        try:
            new = self._insert(records, bags)
        except HealthError as error:
            paths = [self._pending / f"{record.key}.json" for record in records]
            try:
                self._pending.mkdir(parents=True, exist_ok=True)
                for path, record in zip(paths, records, strict=True):
                    write_file(path, record.to_json())
            except OSError as second:
                raise HealthError(f"{error} Nor can it be kept: {second}") from error
            where = ", ".join(map(str, paths))
            raise HealthError(
                f"{error} The identification is in {where}, and is added with the next one"
            ) from error
        for path, waiting in self._waiting().items():
            self._insert([waiting])
            path.unlink(missing_ok=True)
        return new

    def records(self, robot: str = "", serial: str = "") -> list[Record]:
        """Returns identifications in order of time.

        Args:
            robot: name of the model; empty: all.
            serial: serial number; empty: all.

        Raises:
            HealthError: the database cannot be read.
        """
        rows = self._read(
            "SELECT id, body FROM records WHERE (robot = :robot OR :robot = '') "
            "AND (serial = :serial OR :serial = '') ORDER BY taken, id",
            {"robot": robot, "serial": serial},
        )
        found = []
        self.damaged = []
        for name, body in rows:
            try:
                found.append(Record.from_json(body))
            except HealthError as error:
                self.damaged.append(f"{name}: {error}")
        waiting = [
            r for r in self._waiting().values() if r.key not in {f.key for f in found}
        ]
        found += [
            r for r in waiting if robot in ("", r.robot) and serial in ("", r.serial)
        ]
        return sorted(found, key=lambda record: (record.taken, record.key))

    def bags(self) -> list[BagRow]:
        """Returns all bags that were read."""
        rows = self._read("SELECT path, stamp, hash, reason FROM bags")
        return [(row[0], row[1], row[2], row[3]) for row in rows]

    def _insert(self, records: Iterable[Record], bags: Iterable[BagRow] = ()) -> int:
        new = 0
        with self._opened(write=True) as run:
            for record in records:
                values = {
                    "id": record.key,
                    "robot": record.robot,
                    "serial": record.serial,
                }
                values |= {"taken": record.taken, "body": record.to_json()}
                if not run("SELECT 1 FROM records WHERE id = :id", values):
                    run(
                        "INSERT INTO records VALUES (:id, :robot, :serial, :taken, :body)",
                        values,
                    )
                    new += 1
            for row in bags:
                values = dict(
                    zip(("path", "stamp", "hash", "reason"), row, strict=True)
                )
                run("DELETE FROM bags WHERE path = :path", values)
                run("INSERT INTO bags VALUES (:path, :stamp, :hash, :reason)", values)
        return new

    def _waiting(self) -> dict[Path, Record]:
        found = {}
        for path in sorted(self._pending.glob("*.json")):
            try:
                found[path] = Record.from_json(path.read_text())
            except FileNotFoundError:  # another program has added it meanwhile
                continue
            except (OSError, HealthError) as error:
                raise HealthError(f"{path}: {error}. Move it away") from error
        return found

    # --- the two kinds of databases ----------------------------------------------------------
    def _read(self, sql: str, values: Mapping[str, Any] | None = None) -> list[Row]:
        with self._opened(write=self._create) as run:
            return run(sql, values or {})

    @contextmanager
    def _opened(self, write: bool) -> Iterator[Any]:
        """A function that runs SQL within one transaction."""
        try:
            with self._transaction(write) as run:
                for table in _TABLES if write else ():
                    run(table, {})
                yield run
        except Exception as error:
            if isinstance(error, sqlite3.Error) or type(error).__module__.startswith(
                "sqlalchemy"
            ):
                raise HealthError(f"{self.name}: {_advice(error)}") from error
            raise

    @contextmanager
    def _transaction(self, write: bool) -> Iterator[Any]:
        if self._engine is not None:
            text = import_module("sqlalchemy").text
            with self._engine.begin() as connection:

                def run_text(sql: str, values: Mapping[str, Any]) -> list[Row]:
                    answer = connection.execute(text(sql), dict(values))
                    return list(answer) if answer.returns_rows else []

                if self._engine.dialect.name == "postgresql":  # else it waits for ever
                    run_text(f"SET LOCAL lock_timeout = {int(1e3 * self._wait)}", {})
                    if (
                        write
                    ):  # two that make the tables, or add the same, at the same time
                        run_text(
                            "SELECT pg_advisory_xact_lock(hashtext('com_health'))", {}
                        )
                yield run_text
            return
        connection = sqlite3.connect(
            self._url, timeout=self._wait, isolation_level=None
        )
        try:
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            yield lambda sql, values: connection.execute(sql, values).fetchall()
            connection.execute("COMMIT")
        finally:
            connection.close()  # rolls back what is not committed


def _advice(error: Exception) -> str:
    text = str(getattr(error, "orig", None) or error).partition("\n")[0].rstrip(".")
    if any(word in text for word in ("locked", "busy", "lock timeout")):
        return f"{text}: another program writes to it; try again when it has ended."
    if "no such table" in text or "does not exist" in text:
        return f"{text}: it is not a record of robots."
    if any(
        word in text
        for word in ("malformed", "not a database", "disk image", "corrupt")
    ):
        return f"{text}: it is damaged and stays as it is; move it away, or restore a copy."
    return f"{text}."


def library(name: str) -> Any:
    """Imports a library that only an extra installs.

    Args:
        name: of the module.

    Raises:
        HealthError: it is missing; says how to install it.
    """
    return import_optional(name, pip_install(name.partition(".")[0]), HealthError)
