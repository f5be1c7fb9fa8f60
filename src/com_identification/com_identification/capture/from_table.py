"""Sensors of a robot from a table of numbers, by a mapping of its columns (YAML).

A channel is the name of a column, {column: NAME, unit: deg, scale: 1.0, offset: 0.0}, which means
scale * unit * column + offset, or a constant number. docs/tables.md shows all keys. What
a sensor does not measure (horizontal forces of a pressure sole, the size of the force where only
the centre of pressure is known) is noise as large as the robot's weight in the postures.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import block_diag

from com_bags import SensorBlock, Table
from com_bags.channels import Channel
from com_bags.mapping import ChannelReader
from com_bags.unit_checks import check_positions
from com_identification.capture.com_evidence import ComEvidence
from com_identification.capture.detector import StationaryInterval
from com_identification.capture.streams import NS_PER_S
from com_identification.regression import postures
from com_identification.regression.postures import Posture
from com_model import Foot, RobotModel
from com_model.arrays import Array
from com_model.dynamics import GRAVITY
from com_model.dynamics.kinematics import link_pose_batch
from com_model.geometry.rotations import rotations_about
from com_model.strict_yaml import Section
from com_model.text import listing


class _Wrench(NamedTuple):
    """Wrenches of the ground on a foot in N rows.

    Attributes:
        values: (N, 6) N and N m.
        unknown: (6, k) directions in which they are not measured.
        scaled: whether the size of the force is not measured.
    """

    values: Array
    unknown: Array
    scaled: bool = False

    def moved(self, X: Array) -> "_Wrench":
        """Returns the wrenches in another frame.

        Args:
            X: (6, 6) map to that frame.
        """
        return _Wrench(self.values @ X.T, X @ self.unknown, self.scaled)


class TableReader:
    """Reads a table as com_bags.SensorReader reads a bag.

    A full wrench of a foot is in the frame and with the sign of its configuration. With `by_rows`
    each row is a posture. Forces may be missing where the CoM is known, or they are not needed.

    Args:
        table: of numbers, by columns.
        mapping: which column is what; see docs/tables.md.
        model: the robot.
        feet: its feet.
        imu_link: link of the IMU; None: it is not used.
        forces_needed: whether a table without forces is refused.

    Attributes:
        by_rows: whether each row is a posture.
        known_com_std: m, of the CoM's position; None: it is not known.
        has_forces: whether the mapping contains forces.
        first_ns: ns, time of the first row that is used.

    Raises:
        ConfigError: the mapping is wrong; names the key, and what is valid.
        TableError: no row is left.
    """

    def __init__(
        self,
        table: Table,
        mapping: Section,
        model: RobotModel,
        feet: Sequence[Foot],
        imu_link: str | None = None,
        forces_needed: bool = True,
    ) -> None:
        self._table, self._model, self._feet = table, model, tuple(feet)
        self._used: dict[str, None] = {}
        self._reader = ChannelReader(model.joint_names, columns=list(table.columns))
        self._weight, self._forces_needed = model.mass * GRAVITY, forces_needed
        self._notes: list[str] = list(table.notes)
        self.by_rows = (
            mapping.text("rows", "readings", ("readings", "postures")) == "postures"
        )
        self._samples = mapping.whole("samples", 1)
        rows = self._reader.rows(mapping, mapping, self.by_rows)
        self._used |= {rows.time.path: None} if rows.time else {}
        self._Q, self._effort = self._joints(mapping)
        if lost := np.isnan(self._Q).all(axis=0).nonzero()[0].tolist():
            names = listing([model.joint_names[i] for i in lost], 10)
            raise mapping.error(
                f"expected {names}, too: a column, or its constant value", "joints"
            )
        self._evidence = ComEvidence(mapping, self._channel, model)
        known = self._evidence.known
        # m; None: it is not known
        self.known_com_std = None if known is None else known[2]
        if mapping.raw("tip_over") is not None and not self.by_rows:
            raise mapping.error(
                (
                    "is of rows that are postures: add rows: postures, or give the tests' times in "
                )
                + "a file with --tip-over",
                "tip_over",
            )
        self.has_forces = any(
            mapping.section(key).entries() for key in ("feet", "plate")
        )
        self._wrenches = self._read_feet(mapping)
        self._unknown = block_diag(*(wrench.unknown for wrench in self._wrenches))
        self._up = self._read_imu(mapping.section("imu"), imu_link)
        mapping.finish()
        seconds, self._rows, notes = rows.times(table)
        self._notes += notes
        since = 1.0 + seconds[self._rows] - np.nanmin(seconds)
        self._times = np.zeros(table.rows, dtype=np.int64)
        self._times[self._rows] = np.rint(since * NS_PER_S)
        self.first_ns = int(self._times[self._rows[0]])

    @property
    def seconds(self) -> float:
        """Time between the first and the last row that is used, s; by_rows a row is a second."""
        return (
            float(self._times[self._rows].max() - self.first_ns) / NS_PER_S
            + self.by_rows
        )

    @property
    def messages(self) -> dict[str, int]:
        """Number of rows that are used, by column."""
        return dict.fromkeys(self._used, len(self._rows))

    def warnings(self) -> list[str]:
        """Returns what may be wrong with the table, sentences."""
        return self._notes

    def blocks(self, span_ns: int = NS_PER_S) -> Iterator[SensorBlock]:
        """Yields the readings of each interval of time.

        Args:
            span_ns: ns, length of an interval.
        """
        numbers = self._times[self._rows] // span_ns
        for part in np.split(self._rows, np.flatnonzero(np.diff(numbers)) + 1):
            times = self._times[part]
            forces = self._wrenches if self.has_forces else ()
            wrenches = tuple((times, wrench.values[part]) for wrench in forces)
            up = None if self._up is None else (times, self._up[part])
            com = self._evidence.known
            known = () if com is None else ((times, com[0], com[1][part]),)
            values = self._Q[part], self._effort[part], wrenches, up
            yield SensorBlock(times, *values, len(part), known_com=known)

    def intervals(self) -> list[StationaryInterval]:
        """Returns each row as a posture, or why it is none.

        Raises:
            UnitError: positions are in degrees or mm.
        """
        check_positions(self._Q[self._rows], self._model)
        found, first, n = [], self._table.first_row, self._samples
        for row, t0 in zip(
            self._rows.tolist(), self._times[self._rows].tolist(), strict=True
        ):
            wrenches = np.array([wrench.values[row] for wrench in self._wrenches])
            up = (
                None
                if self._up is None or np.isnan(self._up[row]).any()
                else self._up[row]
            )
            q, effort, label = self._Q[row], self._effort[row], f"row {row + first}"
            interval = StationaryInterval(
                t0, t0 + NS_PER_S, None, (f"{label} has empty cells.",)
            )
            known, constraints = (
                np.isfinite(wrenches).all(),
                self._evidence.constraints(row),
            )
            if np.isfinite(q).all() and (known if self.has_forces else constraints):
                posture = postures.make_posture(
                    self._model, q, wrenches, effort, up, constraints, n, label
                )
                interval = StationaryInterval(t0, t0 + NS_PER_S, posture)
            found.append(interval)
        return found

    def complete(self, posture: Posture) -> Posture:
        """Returns a posture with what the feet's sensors do not measure as noise.

        Args:
            posture: of this table.
        """
        if not len(posture.wrenches):
            return posture
        sizes = block_diag(*np.nan_to_num(posture.wrenches)[:, :, None])
        scaled = sizes[:, [wrench.scaled for wrench in self._wrenches]]
        columns = np.hstack((self._unknown, scaled))
        rest = np.zeros((self._model.n_joints, columns.shape[1]))
        return replace(
            posture, noise=np.hstack((posture.noise, np.vstack((columns, rest))))
        )

    def _channel(self, value: Any, section: Section, key: str) -> Array:
        """(N,) of a channel."""
        return self._channels(section, key, 1, value)[:, 0]

    def _channels(
        self, section: Section, key: str, count: int | None, value: Any = None
    ) -> Array:
        """(N, count) of a list of channels, by default that of the key."""
        value = section.raw(key) if value is None else value
        return self._numbers(self._reader.channels(value, section, key, count)[1])

    def _numbers(self, channels: Sequence[Channel]) -> Array:
        """(N, k) of channels."""
        names = [channel.path for channel in channels]
        self._used.update(dict.fromkeys(name for name in names if name))
        zero = np.zeros(self._table.rows)
        columns = [self._table.columns.get(name, zero) for name in names]
        pairs = zip(channels, columns, strict=True)
        return np.hstack([each.values(column[:, None]) for each, column in pairs])

    def _joints(self, mapping: Section) -> tuple[Array, Array]:
        """Positions and efforts (N, n), NaN of joints that are not there."""
        model = self._model
        names, fields = self._reader.joint_fields(mapping)
        if unknown := [name for name in names if name not in model.joint_names]:
            raise mapping.error(
                f"{listing(unknown)} are no joints of the robot; they are "
                f"{listing(model.joint_names, 50)}",
                "joints",
            )
        found = []
        for field in ("position", "effort"):
            found.append(np.full((self._table.rows, model.n_joints), np.nan))
            if field in fields:
                values = self._numbers(fields[field][1])
                if values.shape[1] != len(names):
                    raise mapping.error(
                        f"{values.shape[1]} channels for {len(names)} joints: give names",
                        f"joints.{field}",
                    )
                found[-1][:, [model.joint_index(name) for name in names]] = values
        return found[0], found[1]

    def _read_feet(self, mapping: Section) -> list[_Wrench]:
        """Wrenches of each foot in its sensor's frame, with its sign."""
        section, plate = mapping.section("feet"), mapping.section("plate")
        names = [foot.frame for foot in self._feet]
        if not self.has_forces and (self._evidence or not self._forces_needed):
            return [
                _Wrench(np.full((self._table.rows, 6), np.nan), np.zeros((6, 0)))
            ] * len(names)
        found = [
            _Wrench(np.zeros((self._table.rows, 6)), np.zeros((6, 0))) for _ in names
        ]
        if plate.entries():
            if section.entries():
                raise mapping.error("give plate or feet, not both", "plate")
            under = names.index(plate.text("foot", names[0], tuple(names)))
            x, y, yaw = plate.vector("pose", (0.0, 0.0, 0.0))
            R = rotations_about(np.array([[0.0, 0.0, 1.0]]), np.array([yaw]))[0]
            X = postures.wrench_transform(R.T, -R.T @ np.array([x, y, 0.0]))
            X = postures.sole_to_reading(self._model, self._feet[under]) @ X
            found[under] = self._read_wrench(plate).moved(X)
            plate.finish()
            return found
        for i, foot in enumerate(self._feet):
            own = section.section(foot.frame)
            wrench = self._read_wrench(own)
            if wrench.scaled and len(self._feet) > 1:
                raise own.error(
                    "the total centre of pressure goes into plate, not feet", "cop"
                )
            measured = wrench.unknown.shape[1] == 0
            X = np.eye(6) if measured else postures.sole_to_reading(self._model, foot)
            found[i] = wrench.moved(X)
            own.finish()
        section.finish()
        return found

    def _read_wrench(self, section: Section) -> _Wrench:
        """A full wrench as it is, else one of vertical force and centre of pressure."""
        there = set(section.entries())
        if "force" in there:
            parts = [self._channels(section, key, 3) for key in ("force", "moment")]
            return _Wrench(np.hstack(parts), np.zeros((6, 0)))
        if "cells" in there:
            load, moment = self._cells(section)
        elif "cop" in there:
            load = np.full(self._table.rows, self._weight)
            if "vertical" in there:
                load = self._channel(section.raw("vertical"), section, "vertical")
            point = self._channels(section, "cop", 2)
            # of no load it means nothing
            moment = np.where(load[:, None] != 0.0, load[:, None] * point, 0.0)
        else:
            raise section.error(
                "expected force and moment, vertical and cop, cop alone, or cells; got "
                f"{listing(sorted(there)) or 'nothing'}"
            )
        zero = np.zeros(len(load))
        values = np.column_stack((zero, zero, load, moment[:, 1], -moment[:, 0], zero))
        # a moment about the vertical that is not measured is up to 0.1 m times the weight
        unknown = self._weight * np.diag([1.0, 1.0, 0.0, 0.0, 0.0, 0.1])[:, [0, 1, 5]]
        return _Wrench(values, unknown, not {"vertical", "cells"} & there)

    def _cells(self, section: Section) -> tuple[Array, Array]:
        """Vertical force (N,) N of single pressure cells, and it times their position (N, 2)."""
        load, moment = np.zeros(self._table.rows), np.zeros((self._table.rows, 2))
        cells = section.raw("cells")
        if not isinstance(cells, list):
            raise section.error(
                "expected a list of {column, at: [x, y], polynomial}", "cells"
            )
        for i, cell in enumerate(cells):
            own = Section(cell, section.source, f"{section.path}.cells[{i}]")
            raw = self._channel(own.raw("column"), own, "column")
            points, powers = np.array(own.rows("table", 2)), own.raw("polynomial", [])
            if len(points) > 1 and (np.diff(points[:, 0]) > 0.0).all():
                force = np.interp(raw, points[:, 0], points[:, 1], np.nan, np.nan)
                if outside := int(np.sum(np.isfinite(raw) & np.isnan(force))):
                    self._notes.append(
                        f"{own.raw('column')}: {outside} readings beyond the calibration's table "
                        "are left out"
                    )
            elif isinstance(powers, list) and 1 <= len(powers) <= 10:
                powers = own.vector("polynomial", (0.0,) * len(powers))
                force = np.polynomial.polynomial.polyval(raw, powers)
            else:
                raise own.error(
                    "expected polynomial: [a0, a1, ...] (N), or table: [[reading, N], ...] that "
                    "rises"
                )
            load, moment = (
                load + force,
                moment + force[:, None] * own.vector("at", (np.nan,) * 2),
            )
            own.finish()
        return load, moment

    def _read_imu(self, section: Section, link: str | None) -> Array | None:
        """(N, 3) unit vectors against gravity, root axes; None where it is not used."""
        if link is None:
            if section.entries():
                self._notes.append("imu is not used: give --imu or set use_imu")
            return None
        if "orientation" in section.entries():
            x, y, z, w = self._channels(section, "orientation", 4).T
            up = np.column_stack((x * z - w * y, y * z + w * x, 0.5 - x * x - y * y))
        else:
            up = self._channels(section, "acceleration", 3)
        section.finish()
        with np.errstate(divide="ignore", invalid="ignore"):
            up = up / np.linalg.norm(up, axis=1, keepdims=True)
        R, _ = link_pose_batch(self._model, np.nan_to_num(self._Q), link)
        return np.asarray(np.einsum("nij,nj->ni", R, up))
