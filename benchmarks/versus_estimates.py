"""Anybody's estimate in benchmarks/versus.py: bags without the truth, files judged by it.

An estimate is a corrected URDF (FILE.urdf), a table (FILE.csv) with lines
time,x,y,z[,std_x,std_y,std_z], or messages PointStamped of a bag (BAG:/topic); in the root link's
axes, m, time in s from the first reading.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from identification_bags import START_NS, BagWriter, Samples
from numpy.typing import NDArray
from rosbags.highlevel import AnyReader

from com_model import RobotConfig, RobotModel
from com_model.robots import find_robot

Array = NDArray[np.float64]
POINT = "geometry_msgs/msg/PointStamped"
# s between estimates that count; methods are judged at all times, or refused
LONGEST_GAP = 0.5


@dataclass(frozen=True)
class Score:
    """How one method did in one run."""

    error_mm: float | None
    nees: float | None = None
    cpu_s: float | None = None
    why: str = ""


@dataclass(frozen=True, eq=False)
class Recorded:
    """A motion of N samples, and the truth.

    Attributes:
        robot: Its name.
        model: The robot as the URDF has it, which may be wrong.
        config: Its configuration.
        readings: Of the sensors.
        com: (N, 3) m, true CoM of the robot, or of its trunk, root axes.
        R: (N, 3, 3) in whose axes the error is taken: x and y of R (estimate - com).
        first: Sample from which errors count.
        of_urdf: The same CoM (N, 3) by another URDF, root axes.
    """

    robot: str
    model: RobotModel
    config: RobotConfig
    readings: Samples
    com: Array
    R: Array
    first: int
    of_urdf: Callable[[Path], Array]

    @property
    def time(self) -> Array:
        """(N,) s from the first reading."""
        return np.asarray((self.readings.times - START_NS) / 1e9)

    def judge(self, path: str) -> Score:
        """Mean length of the horizontal error from `first` on, and squared error over variance."""
        rows = slice(self.first, None)
        if path.endswith(".urdf"):
            gap = self.of_urdf(Path(path))[rows] - self.com[rows]
            error = np.einsum("nij,nj->ni", self.R[rows], gap)[:, :2]
            return Score(1e3 * float(np.linalg.norm(error, axis=1).mean()))
        table, time = read_table(path), self.time
        begin, end = time[self.first], time[-1]
        table = table[(table[:, 0] >= begin - 1e-9) & (table[:, 0] <= end + 1e-9)]
        gaps = np.diff(np.concatenate([[begin], np.sort(table[:, 0]), [end]]))
        if gaps.max() > LONGEST_GAP:
            raise SystemExit(
                f"{path}: expected estimates from {begin:.1f} to {end:.1f} s, at most "
                f"{LONGEST_GAP} s apart, got {len(table)}, {gaps.max():.1f} s apart"
            )
        at = nearest(time, table[:, 0])
        R = self.R[at]
        error = np.einsum("nij,nj->ni", R, table[:, 1:4] - self.com[at])[:, :2]
        nees = None
        if table.shape[1] == 7:
            P = np.einsum("nij,nj,nkj->nik", R, table[:, 4:7] ** 2, R)[:, :2, :2]
            nees = (
                float(np.einsum("ni,nij,nj->n", error, np.linalg.inv(P), error).mean())
                / 2.0
            )
        return Score(1e3 * float(np.linalg.norm(error, axis=1).mean()), nees)

    def write(self, place: Path) -> None:
        """Writes robot.urdf, robot.yaml and the bag readings; no wrenches if none are measured."""
        place.mkdir(parents=True)
        write_robot(place, self.robot, self.model)
        feet = tuple(self.config.feet)[: self.readings.wrenches.shape[1]]
        scene: Any = SimpleNamespace(model=self.model, config=self.config, feet=feet)
        moving = self.readings.moving
        only = moving is not None and moving.rate is None
        with BagWriter(
            place / "readings", scene, imu="orientation" if only else True
        ) as writer:
            writer.write(self.readings)


def write_robot(place: Path, robot: str, model: RobotModel) -> None:
    """Writes the URDF of a model, and the configuration of the robot."""
    (place / "robot.urdf").write_text(model.xml)
    shutil.copy(str(find_robot(robot).config), place / "robot.yaml")


def nearest(time: Array, wanted: Array) -> NDArray[np.intp]:
    """Index of the nearest of times (N,), which rise."""
    after = np.clip(np.searchsorted(time, wanted), 1, len(time) - 1)
    return after - (wanted - time[after - 1] < time[after] - wanted)


def judge_all(
    estimates: Sequence[str], recorded: Callable[[], Recorded]
) -> dict[str, Score]:
    """Scores of NAME=FILE."""
    parts = [estimate.partition("=") for estimate in estimates]
    return {name: recorded().judge(path) for name, _, path in parts}


def read_table(path: str) -> Array:
    """Rows time, x, y, z[, std_x, std_y, std_z] of a table, or of BAG:/topic."""
    rows = read_csv(path) if path.endswith(".csv") else read_bag(path)
    if rows.shape[1] not in (4, 7):
        raise SystemExit(f"{path}: expected 4 or 7 columns, got {rows.shape[1]}")
    if not np.isfinite(rows).all():
        raise SystemExit(
            f"{path}: expected finite numbers; leave out what is not known yet"
        )
    return rows


def read_csv(path: str) -> Array:
    """Rows of a table; the first line may name its columns."""
    lines = Path(path).read_text().splitlines()
    lines = lines[1:] if lines and "time" in lines[0] else lines
    if not lines:
        raise SystemExit(f"{path}: has no estimates")
    try:
        return np.loadtxt(lines, delimiter=",", ndmin=2)
    except ValueError as error:
        raise SystemExit(
            f"{path}: expected time,x,y,z[,std_x,std_y,std_z]: {error}"
        ) from error


def read_bag(text: str) -> Array:
    """Time, x, y, z of the PointStamped messages of BAG:/topic."""
    path, _, topic = text.partition(":")
    rows = []
    with AnyReader([Path(path)]) as reader:
        chosen = [c for c in reader.connections if c.topic == topic]
        if not chosen:
            topics = ", ".join(sorted({c.topic for c in reader.connections}))
            raise SystemExit(f"{path}: no topic {topic!r}; there are {topics}")
        if kinds := {c.msgtype for c in chosen} - {POINT}:
            raise SystemExit(f"{path}: expected {POINT} on {topic}, got {kinds.pop()}")
        for connection, _, raw in reader.messages(connections=chosen):
            message: Any = reader.deserialize(raw, connection.msgtype)
            stamp, p = message.header.stamp, message.point
            ns = stamp.sec * 10**9 + stamp.nanosec - START_NS
            rows.append((ns / 1e9, p.x, p.y, p.z))
    return np.array(rows)
