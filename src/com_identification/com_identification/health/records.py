"""One identification as the record of a robot stores it: all that a later comparison needs."""

import hashlib
import io
import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime, timezone
from functools import cached_property
from importlib import metadata
from pathlib import Path

import numpy as np

from com_identification.exceptions import HealthError
from com_identification.regression.identify import Identification, by_body
from com_identification.regression.priors import BodyPriors
from com_identification.report.comparison import issues_of
from com_identification.store.results import corrected_inertials, plain
from com_model import RobotModel
from com_model.arrays import Array, FrozenArrays
from com_model.urdf.editing import edit_inertials

_PRIORS = ("prior_mass", "prior_com", "prior_mass_std", "prior_com_std")
_ARRAYS = ("parameters", "covariance", *_PRIORS)
_CHUNK = 1 << 20
_LARGEST = 1 << 26  # bytes of the URDF, or of the arrays; more is cut, and refused as damaged


@dataclass(frozen=True, eq=False)
class Record(FrozenArrays):
    """An identification of one robot on one day; arrays as in Identification."""

    robot: str  # name of the model
    serial: str  # which of these robots; "" where there is only one
    taken: str  # when the readings were taken, ISO 8601, UTC
    source: str  # "bag", "node"
    path: str  # of the recording
    data_hash: str  # of the readings
    version: str  # of com_identification
    kinematics: str  # hash of the bodies' frames and joints
    urdf: str  # its text
    bodies: tuple[str, ...]  # B names
    parameters: Array
    covariance: Array
    prior_mass: Array
    prior_com: Array
    prior_mass_std: Array
    prior_com_std: Array
    total_mass: tuple[float, float]  # kg, value and standard deviation
    mass_on_feet: tuple[float, float] | None  # kg, by the feet alone
    # (value, standard deviation, the prior's) by kind and name
    sensors: Mapping[str, Mapping[str, tuple[float, float, float]]]
    issues: tuple[str, ...]  # what is wrong with the result, in sentences

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
        """Makes the record of a result for the model of its URDF.

        The same readings, by their data_hash (see hash_files), are recorded once; taken_ns is when
        they were taken, ns since 1970.
        """
        sensors = {
            kind: {
                name: (value, found.sensor_stds[kind][name], found.sensor_prior_stds[kind][name])
                for name, value in values.items()
            }
            for kind, values in found.sensor_errors.items()
        }
        return cls(
            robot=model.name,
            serial=serial,
            taken=datetime.fromtimestamp(taken_ns / 1e9, timezone.utc).isoformat(" ", "seconds"),
            source=source,
            path=path,
            data_hash=data_hash,
            version=_version(),
            kinematics=_kinematics(model),
            urdf=model.xml,
            bodies=found.bodies,
            total_mass=(found.total_mass, found.total_mass_std),
            mass_on_feet=mass_on_feet,
            sensors=sensors,
            issues=tuple(issues_of(found)),
            **{name: getattr(found, name) for name in _ARRAYS},
        )

    @cached_property
    def key(self) -> str:
        """Identifies what was measured: the same readings of the same robot have the same key."""
        text = "\n".join((self.robot, self.serial, self.data_hash, self.kinematics))
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    @cached_property
    def by_body(self) -> tuple[Array, Array, Array, Array]:
        """Masses (B,), CoMs (B, 3) in the bodies' frames, and both's standard deviations."""
        return by_body(self.parameters, self.covariance)

    @property
    def priors(self) -> BodyPriors:
        """What was known of the bodies before."""
        com, free = np.nan_to_num(self.prior_com), np.full(self.prior_com.shape, np.inf)
        stds = self.prior_mass_std, self.prior_com_std
        return BodyPriors(self.prior_mass, com, *stds, -free, free)

    def corrected_urdf(self) -> str:
        """The text of the URDF with these masses and centres of mass."""
        model = RobotModel.from_urdf(self.urdf)
        return edit_inertials(self.urdf, corrected_inertials(model, *self.by_body[:2]))

    def to_json(self) -> str:
        """As text that from_json reads; the arrays exactly."""
        packed = io.BytesIO()
        half = self.covariance[np.triu_indices(len(self.covariance))]
        rest = {name: getattr(self, name) for name in _ARRAYS if name != "covariance"}
        np.savez(packed, covariance=half, **rest)
        document = {
            item.name: getattr(self, item.name) for item in fields(self) if item.name not in _ARRAYS
        }
        document["urdf"] = _pack(self.urdf.encode())
        document["arrays"] = _pack(packed.getvalue())
        return json.dumps(plain(document))

    @classmethod
    def from_json(cls, text: str) -> "Record":
        """Reads what to_json wrote; HealthError where it is damaged."""
        try:
            data = json.loads(text)
            with np.load(io.BytesIO(_unpack(data.pop("arrays"))), allow_pickle=False) as arrays:
                data.update({name: arrays[name] for name in _ARRAYS})
            size = len(data["parameters"])
            upper = np.zeros((size, size))
            upper[np.triu_indices(size)] = data["covariance"]
            data["covariance"] = upper + np.triu(upper, 1).T
            data["urdf"] = _unpack(data["urdf"]).decode()
            for name in ("bodies", "total_mass", "mass_on_feet", "issues"):
                data[name] = None if data[name] is None else tuple(data[name])
            record = cls(**data)
            if size != 4 * len(record.bodies) or record.prior_com.size != 3 * len(record.bodies):
                raise ValueError(f"{len(record.bodies)} bodies, and arrays of other sizes")
        except (ValueError, KeyError, TypeError, OSError, zlib.error) as error:
            raise HealthError(f"a record is damaged: {type(error).__name__} {error}") from error
        return record


def hash_files(path: str | Path) -> str:
    """Hash of a file, or of all files below a folder with their names; OSError."""
    root, total = Path(path), hashlib.sha256()
    for file in sorted(p for p in root.rglob("*") if p.is_file()) if root.is_dir() else [root]:
        total.update(f"{file.relative_to(root)}\0{file.stat().st_size}\0".encode())
        with file.open("rb") as stream:
            while block := stream.read(_CHUNK):
                total.update(block)
    return total.hexdigest()


def _kinematics(model: RobotModel) -> str:
    bodies = model.bodies
    numbers = np.concatenate([a.ravel() for a in (bodies.parent, bodies.R, bodies.d, bodies.axis)])
    text = "\n".join((*bodies.names, *map("{:.6f}".format, numbers + 0.0)))
    return hashlib.sha256(text.replace("-0.000000", "0.000000").encode()).hexdigest()[:16]


def _version() -> str:
    try:
        return metadata.version("com_identification")
    except metadata.PackageNotFoundError:
        return "unknown"


def _pack(data: bytes) -> str:
    return b64encode(zlib.compress(data)).decode()


def _unpack(text: str) -> bytes:
    return zlib.decompressobj().decompress(b64decode(text), _LARGEST)
