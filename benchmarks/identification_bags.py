"""Makes recordings of a robot that stands still in one posture after another; the truth is known.

The robot that moves has other centres of mass than its URDF says. Pinocchio computes what its feet
carry. Messages are serialised by rosbags.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio
from numpy.typing import NDArray
from rosbags.interfaces import Connection
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore
from rosbags.typesys.store import Typestore
from scipy.spatial.transform import Rotation

from com_identification.planning.planner import PosturePlanner
from com_identification.settings import IdentificationSettings, PlanOptions
from com_identification.store.results import corrected_inertials
from com_model import RobotConfig, RobotModel
from com_model.dynamics import GRAVITY
from com_model.urdf.editing import edit_inertials

Array = NDArray[np.float64]

START_NS = 1_700_000_000_000_000_000
STORAGES = {"mcap": StoragePlugin.MCAP, "sqlite3": StoragePlugin.SQLITE3}
JOINT_STATE = "sensor_msgs/msg/JointState"
WRENCH = "geometry_msgs/msg/WrenchStamped"
IMU = "sensor_msgs/msg/Imu"
_BLOCK = 5000  # samples that are made at a time


@dataclass(frozen=True)
class Noise:
    """Standard stds of one reading: rad, N, N m, N m, rad."""

    position: float = float(np.radians(0.05))
    force: float = 0.5
    moment: float = 0.025
    effort: float = 0.1
    tilt: float = 1e-4


class Scene:
    """A robot whose centres of mass are not as its URDF says.

    Args:
        urdf: Its URDF.
        config: Its configuration.
        std: m, of each component of the bodies' centres of mass.
        seed: Of those.

    Attributes:
        model: As the URDF has it.
        com: (B, 3) m, true centres of mass of the bodies.
        xml: The true URDF.
    """

    def __init__(
        self, urdf: Path, config: Path, std: float = 0.005, seed: int = 1
    ) -> None:
        self.config = RobotConfig.from_file(config)
        self.model = RobotModel.from_file(urdf)
        self.feet = self.config.feet
        bodies = self.model.bodies
        mass = bodies.mass
        own = np.divide(
            bodies.first_moment,
            mass[:, None],
            out=np.zeros((len(mass), 3)),
            where=mass[:, None] > 0,
        )
        change = np.random.default_rng(seed).normal(0.0, std, own.shape)
        self.com = own + change * (mass > 0.0)[:, None]
        self.xml = edit_inertials(
            self.model.xml, corrected_inertials(self.model, mass, self.com)
        )
        self._oracle = pinocchio.buildModelFromXML(
            self.xml, pinocchio.JointModelFreeFlyer()
        )
        self._data = self._oracle.createData()
        joints = [
            self._oracle.joints[self._oracle.getJointId(n)]
            for n in self.model.joint_names
        ]
        self._places = [(joint.idx_q, joint.nq, joint.idx_v) for joint in joints]

    def postures(
        self, count: int, seed: int = 0, stands: tuple[tuple[int, ...], ...] = ()
    ) -> Array:
        """Postures (count, n) in which the robot stands flat, on all feet or on some in turn."""
        plan = PlanOptions(
            margin=0.015, most_tilt=np.pi, seed=seed, stands=stands, one_foot=0.0
        )
        rest = self.config.nominal_posture(self.model)
        planner = PosturePlanner(
            self.model, self.feet, rest, IdentificationSettings(plan=plan)
        )
        return np.array([entry[0] for entry in planner.feasible.sample(count)])

    def readings(
        self, q: Array, fractions: Array | None = None
    ) -> tuple[Array, Array, Array]:
        """What sensors without noise read.

        Args:
            q: (n,) the posture.
            fractions: (f,) of the weight on each foot; by default two feet share it as they must.

        Returns:
            Wrenches (f, 6), efforts (n,), up (3,) in IMU axes.
        """
        full = self._full(q)
        model, data = self._oracle, self._data
        pinocchio.framesForwardKinematics(model, data, full)
        frames = [data.oMf[model.getFrameId(foot.wrench_frame)] for foot in self.feet]
        ground = 0 if fractions is None else int(np.argmax(fractions))
        up = data.oMf[model.getFrameId(self.feet[ground].frame)].rotation[:, 2].copy()
        weight = pinocchio.computeTotalMass(model) * GRAVITY * up
        moment = np.cross(pinocchio.centerOfMass(model, data, full), weight)
        places = np.array([pose.translation for pose in frames])
        if fractions is None:
            fractions = _load_fractions(
                places, np.cross(up, moment) / (weight @ up), up
            )
        rest = moment - np.cross(fractions @ places, weight)
        local = [
            fraction
            * np.concatenate((pose.rotation.T @ weight, pose.rotation.T @ rest))
            for pose, fraction in zip(frames, fractions, strict=True)
        ]
        model.gravity.linear = -GRAVITY * up
        torque = pinocchio.computeGeneralizedGravity(model, data, full).copy()
        for foot, wrench in zip(self.feet, local, strict=True):
            frame = model.getFrameId(foot.wrench_frame)
            torque -= (
                pinocchio.computeFrameJacobian(model, data, full, frame).T @ wrench
            )
        signed = [
            foot.wrench_sign * w for foot, w in zip(self.feet, local, strict=True)
        ]
        imu = model.getFrameId(self.config.imu_link or self.model.root_link)
        return (
            np.array(signed),
            torque[[place[2] for place in self._places]],
            data.oMf[imu].rotation.T @ up,
        )

    def _full(self, q: Array) -> Array:
        full = pinocchio.neutral(self._oracle)
        for (start, size, _), value in zip(self._places, q, strict=True):
            full[start : start + size] = (
                value if size == 1 else (np.cos(value), np.sin(value))
            )
        return full


@dataclass(frozen=True, eq=False)
class Samples:
    """N samples of all sensors.

    Attributes:
        times: (N,) ns.
        q: (N, n) rad; effort: (N, n) N m; wrenches: (N, f, 6) N and N m.
        up: (N, 3) against gravity, IMU axes.
        moving: What a robot that moves reads beside.
    """

    times: NDArray[np.int64]
    q: Array
    effort: Array
    wrenches: Array
    up: Array
    moving: Moving | None = None

    def part(self, rows: slice) -> Samples:
        """Some of the samples."""
        return Samples(
            self.times[rows],
            self.q[rows],
            self.effort[rows],
            self.wrenches[rows],
            self.up[rows],
        )


@dataclass(frozen=True, eq=False)
class Moving:
    """What is known of N samples in which the robot moves; None: not read.

    Attributes:
        R_imu: (N, 3, 3) IMU in the world, as it reads it; takes the place of `up`.
        velocity: (N, n) rad/s.
        rate: (N, 3) rad/s; force: (N, 3) m/s^2, IMU axes.
    """

    R_imu: Array
    velocity: Array | None = None
    rate: Array | None = None
    force: Array | None = None


@dataclass(frozen=True)
class Tour:
    """How the robot goes through its postures: still, moving, still, ...

    Attributes:
        still: s in each posture.
        moving: s from one to the next.
        rate: Hz.
        seconds: Length of the recording; 0: once through all postures.
    """

    still: float = 2.0
    moving: float = 1.0
    rate: float = 500.0
    seconds: float = 0.0


def samples(
    scene: Scene,
    postures: Array,
    tour: Tour,
    noise: Noise | None = None,
    seed: int = 2,
    fractions: Sequence[Array | None] = (),
) -> Iterator[Samples]:
    """Yields the samples of a tour, block by block; it starts again when it is over.

    Args:
        scene: The robot.
        postures: (P, n) rad.
        tour: Times.
        noise: Of the sensors.
        seed: Of the noise.
        fractions: P of (f,), of the weight on each foot; see readings().
    """
    noise = noise or Noise()
    rng = np.random.default_rng(seed)
    loads = list(fractions) or [None] * len(postures)
    read = [scene.readings(q, load) for q, load in zip(postures, loads, strict=True)]
    wrenches, effort, up = (np.array(parts) for parts in zip(*read, strict=True))
    leg = tour.still + tour.moving
    count = round(tour.rate * (tour.seconds or leg * len(postures)))
    for start in range(0, count, _BLOCK):
        index = np.arange(start, min(start + _BLOCK, count))
        time = index / tour.rate
        here = (time // leg).astype(int) % len(postures)
        after = (here + 1) % len(postures)
        way = np.clip((time % leg - tour.still) / max(tour.moving, 1e-9), 0.0, 1.0)
        done = ((1.0 - np.cos(np.pi * way)) / 2.0)[:, None]
        mix = [
            (1.0 - s) * values[here] + s * values[after]
            for values, s in ((postures, done), (effort, done), (up, done))
        ]
        forces = (1.0 - done[:, :, None]) * wrenches[here] + done[
            :, :, None
        ] * wrenches[after]
        spread = np.repeat([noise.force, noise.moment], 3)
        up_read = mix[2] + rng.normal(0.0, noise.tilt, mix[2].shape)
        yield Samples(
            START_NS + np.round(index * (1e9 / tour.rate)).astype(np.int64),
            mix[0] + rng.normal(0.0, noise.position, mix[0].shape),
            mix[1] + rng.normal(0.0, noise.effort, mix[1].shape),
            forces + rng.normal(0.0, 1.0, forces.shape) * spread,
            up_read / np.linalg.norm(up_read, axis=1)[:, None],
        )


class Template:
    """A message serialised once; numbers are written over its bytes, many messages at a time.

    Args:
        store: With its types.
        message: Of rosbags; every number in it that will change is a mark of its own.
        marks: First number of each field that changes, by name.
    """

    def __init__(
        self, store: Typestore, message: Any, marks: Mapping[str, float]
    ) -> None:
        self._bytes = np.frombuffer(
            bytes(store.serialize_cdr(message, message.__msgtype__)), dtype=np.uint8
        )
        whole = self._bytes.tobytes()
        self._starts = {
            name: whole.index(np.float64(mark).tobytes())
            for name, mark in marks.items()
        }

    def fill(
        self, times: NDArray[np.int64], fields: Mapping[str, Array]
    ) -> list[bytes]:
        """Messages with given stamps and numbers."""
        rows = np.tile(self._bytes, (len(times), 1))
        stamps = np.column_stack((times // 10**9, times % 10**9)).astype("<u4")
        rows[:, 4:12] = stamps.view(np.uint8)
        for name, values in fields.items():
            start = self._starts[name]
            data = np.ascontiguousarray(values, dtype="<f8").view(np.uint8)
            rows[:, start : start + data.shape[1]] = data
        return [row.tobytes() for row in rows]


class BagWriter:
    """Writes samples of a scene's sensors to a bag, on the topics of its configuration.

    Args:
        path: Of the bag, which must not exist.
        scene: The robot.
        storage: "mcap" or "sqlite3".
        imu: Whether there is an IMU; "orientation": it reads nothing else.
    """

    def __init__(
        self, path: Path, scene: Scene, storage: str = "mcap", imu: bool | str = True
    ) -> None:
        self._scene, self._imu = scene, imu
        self._marks: Connection | None = None
        self._store = get_typestore(Stores.ROS2_JAZZY)
        self._writer = Writer(path, version=9, storage_plugin=STORAGES[storage])
        feet = scene.feet
        self._templates = [_joint_template(self._store, scene.model)]
        self._templates += [
            _wrench_template(self._store, foot.wrench_frame) for foot in feet
        ]
        self._topics = [("/joint_states", JOINT_STATE)]
        self._topics += [("/" + foot.wrench_topic, WRENCH) for foot in feet]
        if imu:
            frame = scene.config.imu_link or "imu"
            self._templates.append(
                _imu_template(self._store, frame, imu == "orientation")
            )
            self._topics.append(("/imu", IMU))

    def __enter__(self) -> BagWriter:
        self._writer.open()
        self._connections = [
            self._writer.add_connection(topic, kind, typestore=self._store)
            for topic, kind in self._topics
        ]
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()

    def write(self, block: Samples, received: NDArray[np.int64] | None = None) -> int:
        """Writes samples; gives how many messages these were.

        Args:
            block: The samples.
            received: (N,) ns, when they are recorded; by default at their stamps.
        """
        received = block.times if received is None else received
        joints, imu = {"position": block.q, "effort": block.effort}, dict[str, Array]()
        joints["velocity"] = np.zeros_like(block.q)
        if block.moving is None:
            imu["orientation"] = _quaternions(block.up)
        else:
            imu["orientation"] = Rotation.from_matrix(block.moving.R_imu).as_quat()
            imu |= _read(rate=block.moving.rate, force=block.moving.force)
            joints |= _read(velocity=block.moving.velocity)
        fields = [joints]
        fields += [
            {"wrench": block.wrenches[:, i]} for i in range(len(self._scene.feet))
        ]
        fields += [imu] if self._imu else []
        columns = [
            template.fill(block.times, values)
            for template, values in zip(self._templates, fields, strict=True)
        ]
        for row, time in zip(
            zip(*columns, strict=True), received.tolist(), strict=True
        ):
            for connection, payload in zip(self._connections, row, strict=True):
                self._writer.write(connection, time, payload)
        return len(columns) * len(block.times)

    def mark(self, text: str, time: int) -> None:
        """Writes a text to the topic /mark, at a time in ns."""
        kind = "std_msgs/msg/String"
        if self._marks is None:
            self._marks = self._writer.add_connection(
                "/mark", kind, typestore=self._store
            )
        payload = self._store.serialize_cdr(self._store.types[kind](text), kind)
        self._writer.write(self._marks, time, bytes(payload))


def _read(**fields: Array | None) -> dict[str, Array]:
    return {name: values for name, values in fields.items() if values is not None}


def _load_fractions(places: Array, com: Array, up: Array) -> Array:
    """How two feet share the weight: as where the CoM projects between them; more feet: alike."""
    if len(places) != 2:
        return np.full(len(places), 1.0 / len(places))
    way = places[1] - places[0]
    way -= (way @ up) * up
    fraction = np.clip((com - places[0]) @ way / (way @ way), 0.1, 0.9)
    return np.array([1.0 - fraction, fraction])


def _joint_template(store: Typestore, model: RobotModel) -> Template:
    n = model.n_joints
    message = store.types[JOINT_STATE](
        _header(store, ""),
        list(model.joint_names),
        np.full(n, 1e-301),
        np.full(n, 3e-301),
        np.full(n, 2e-301),
    )
    return Template(
        store, message, {"position": 1e-301, "effort": 2e-301, "velocity": 3e-301}
    )


def _wrench_template(store: Typestore, frame: str) -> Template:
    vector = store.types["geometry_msgs/msg/Vector3"]
    both = store.types["geometry_msgs/msg/Wrench"](
        vector(1e-301, 0.0, 0.0), vector(0.0, 0.0, 0.0)
    )
    return Template(
        store, store.types[WRENCH](_header(store, frame), both), {"wrench": 1e-301}
    )


def _imu_template(store: Typestore, frame: str, only_orientation: bool) -> Template:
    vector, none = store.types["geometry_msgs/msg/Vector3"], np.zeros(9)
    turn = store.types["geometry_msgs/msg/Quaternion"](1e-301, 0.0, 0.0, 0.0)
    still, gravity = vector(2e-301, 0.0, 0.0), vector(3e-301, 0.0, GRAVITY)
    known = np.array(
        [-1.0 if only_orientation else 0.0, *np.zeros(8)]
    )  # -1 by the message's rule
    message = store.types[IMU](
        _header(store, frame), turn, none, still, known, gravity, known
    )
    return Template(
        store, message, {"orientation": 1e-301, "rate": 2e-301, "force": 3e-301}
    )


def _header(store: Typestore, frame: str) -> Any:
    time = store.types["builtin_interfaces/msg/Time"](0, 0)
    return store.types["std_msgs/msg/Header"](time, frame)


def _quaternions(up: Array) -> Array:
    """(N, 4) x, y, z, w of the shortest turn that brings `up`, IMU axes, to the world's z."""
    cross = np.cross(up, [0.0, 0.0, 1.0])
    parts = np.column_stack((cross, 1.0 + up[:, 2]))
    return np.asarray(parts / np.linalg.norm(parts, axis=1)[:, None])
