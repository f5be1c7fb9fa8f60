"""A recording as samples to show: joints, direction of gravity, forces of the feet."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from com_bags import (
    Bag,
    LogFormat,
    SensorReader,
    SensorTopics,
    TopicError,
    TopicRequest,
    find_topics,
)
from com_estimation.whole_body.com_state import LEVEL, Attitude, ComObserver, ComState
from com_model import Foot, RobotConfig, RobotModel
from com_model.arrays import Array
from com_simulation.drawing.shapes import upright
from com_viewer.scene import RobotScene, Snapshot


@dataclass(frozen=True, eq=False)
class BagRun:
    """Samples of a recording.

    Attributes:
        times: (T,) s, from the first one.
        Q: (T, n) rad or m; NaN where unknown.
        up: (T, 3) unit vectors against gravity, root axes; NaN without IMU.
        forces: (T, f, 3) N of the ground on the feet, sensor axes; f = 0 without sensors.
        notes: what is missing or wrong, in sentences.
    """

    times: Array
    Q: Array
    up: Array
    forces: Array
    notes: tuple[str, ...]

    @property
    def seconds(self) -> float:
        """Length of the recording, s."""
        return float(self.times[-1])

    def snapshot(self, scene: RobotScene, observer: ComObserver, at: float) -> Snapshot:
        """The newest sample at a time, for display.

        Args:
            scene: of the robot.
            observer: of its CoM.
            at: s, from the start of the recording.
        """
        k = max(int(np.searchsorted(self.times, at, side="right")) - 1, 0)
        return scene.place(
            self.Q[k], self.state(observer, k), forces=self._forces_at(k)
        )

    def state(self, observer: ComObserver, k: int) -> ComState:
        """The CoM of a sample.

        Args:
            observer: of the robot.
            k: index of the sample, 0 to T - 1.

        Returns:
            Without velocity; horizontal ground is assumed where the IMU is unknown.
        """
        q, up = self.Q[k], self.up[k]
        measured = np.isfinite(up).all()
        root = observer.model.root_link
        attitude = Attitude(False, upright(-up), root) if measured else LEVEL
        return observer.update(q, np.full(len(q), np.nan), attitude, self._forces_at(k))

    def _forces_at(self, k: int) -> Array | None:
        """Forces (f, 3) N of a sample; None where any is unknown."""
        known = self.forces.size and np.isfinite(self.forces[k]).all()
        return self.forces[k] if known else None


def read_run(
    path: str | Path,
    model: RobotModel,
    config: RobotConfig,
    rate_hz: float,
    log_format: LogFormat | None = None,
) -> BagRun:
    """Reads the samples of a robot from a bag, one in each period.

    Args:
        path: folder or file of the bag.
        model: the robot.
        config: its feet and IMU.
        rate_hz: 1/s, of the samples; the first one of each period is used.
        log_format: what its messages or columns mean; None: as the robot's names say.

    Returns:
        The samples, and notes on missing topics.

    Raises:
        BagError: it cannot be read.
        TopicError: it has no joint states of this robot.
    """
    about = LogFormat.of(model, config.feet) if log_format is None else log_format
    with Bag(path, about) as bag:
        feet, topics, notes = _topics(bag, config)
        imu_link = (config.imu_link or model.root_link) if topics.imu else None
        reader = SensorReader(bag, model, feet, topics, imu_link)
        blocks = list(reader.blocks())
        notes += reader.warnings()
    times = np.concatenate([block.joint_times for block in blocks])
    Q = np.concatenate([block.Q for block in blocks])
    keep = np.unique(times // (1e9 / rate_hz), return_index=True)[
        1
    ]  # the first of each period
    times, Q = times[keep], Q[keep]
    up = np.full((len(times), 3), np.nan)
    readings = [block.up for block in blocks if block.up is not None]
    if readings:
        up = _latest(
            times, *(np.concatenate(part) for part in zip(*readings, strict=True))
        )
    forces = [
        foot.wrench_sign
        * _latest(
            times, *(np.concatenate([b.wrenches[f][i] for b in blocks]) for i in (0, 1))
        )
        for f, foot in enumerate(feet)
    ]
    stacked = (
        np.stack(forces, axis=1)[:, :, :3] if forces else np.empty((len(times), 0, 3))
    )
    return BagRun((times - times[0]) / 1e9, Q, up, stacked, tuple(notes))


def _topics(
    bag: Bag, config: RobotConfig
) -> tuple[tuple[Foot, ...], SensorTopics, list[str]]:
    """Topics of the joints, and of feet and IMU if the bag has them; notes on those missing."""
    tries = ((config.feet, True), (config.feet, False), ((), True))
    notes: list[str] = []
    for feet, use_imu in tries:
        try:
            topics = find_topics(
                bag.topics(), feet, TopicRequest(), use_imu, str(bag.path)
            )
        except TopicError as error:
            notes.append(str(error))
        else:
            return tuple(feet), topics, notes[:1]
    topics = find_topics(bag.topics(), (), TopicRequest(), False, str(bag.path))
    return (), topics, notes[:1]


def _latest(at: Array, times: Array, values: Array) -> Array:
    """The newest value (T, c) at each time; NaN before the first one.

    Args:
        at: (T,) ns.
        times: (N,) ns, ascending.
        values: (N, c).
    """
    k = np.searchsorted(times, at, side="right") - 1
    found = (
        values[np.maximum(k, 0)]
        if len(values)
        else np.full((len(at), values.shape[1]), np.nan)
    )
    return np.where((k >= 0)[:, None], found, np.nan)
