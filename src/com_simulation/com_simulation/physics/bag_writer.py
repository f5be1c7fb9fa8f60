"""Readings of a simulation -> a rosbag2 recording, with the messages of a robot's drivers."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from com_model.arrays import Array
from com_model.files import whole_folder
from com_model.shapes.resources import package_shares
from com_simulation.exceptions import ComSimulationError, OutputError
from com_simulation.physics.sensors import NoiseLevels, Reading
from com_simulation.physics.world_builder import World

STORAGES = {"mcap": StoragePlugin.MCAP, "sqlite3": StoragePlugin.SQLITE3}
VERSION: Literal[9] = 9  # of the metadata; that of ROS 2 Jazzy
NS_PER_S = 1_000_000_000
_COM = "com_msgs/msg/CenterOfMass"


class BagWriter:
    """Writes a bag of joint_states, imu, the feet's wrenches and ground_truth/com.

    Use as a context manager; the folder appears whole when it ends without error, or not at all.

    Args:
        start_ns: Time of the simulation's start, ns.

    Raises:
        ComSimulationError: The folder exists, or the storage is none.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        world: World,
        noise: NoiseLevels,
        start_ns: int,
        storage: str = "mcap",
    ) -> None:
        if storage not in STORAGES:
            raise ComSimulationError(f"storage is {storage!r}: give one of {', '.join(STORAGES)}")
        self._folder = new_folder(Path(path))
        self._storage = STORAGES[storage]
        self._world, self._start_ns = world, start_ns
        self._store = get_typestore(Stores.ROS2_JAZZY)
        self._store.register(_com_type())
        self._names = list(world.robot.joint_names)
        self._imu = noise.imu_covariances()
        self.messages = 0

    def __enter__(self) -> "BagWriter":
        self._writer = Writer(
            self._folder.__enter__(), version=VERSION, storage_plugin=self._storage
        )
        self._writer.open()
        add = self._writer.add_connection
        kinds = {
            "joint_states": "sensor_msgs/msg/JointState",
            "imu": "sensor_msgs/msg/Imu",
            **dict.fromkeys(
                (foot.wrench_topic for foot in self._world.feet), "geometry_msgs/msg/WrenchStamped"
            ),
            "ground_truth/com": _COM,
        }
        self._connections = {
            topic: add("/" + topic.lstrip("/"), kind, typestore=self._store)
            for topic, kind in kinds.items()
        }
        return self

    def __exit__(self, *error: Any) -> None:
        self._writer.close()
        self._folder.__exit__(*error)

    def stamp_ns(self, time: float) -> int:
        """Stamp (ns) of a time (s) of the simulation."""
        return self._start_ns + round(time * NS_PER_S)

    def write(self, reading: Reading) -> None:
        """Writes one instant."""
        stamp_ns = self.stamp_ns(reading.time)
        joints = (self._names, reading.position, reading.velocity, reading.effort)
        self._put("joint_states", stamp_ns, "", *joints)
        self._put_imu(reading, stamp_ns)
        for foot, wrench in zip(self._world.feet, reading.wrenches, strict=True):
            value = self._make(
                "geometry_msgs/msg/Wrench", self._vector(wrench[:3]), self._vector(wrench[3:])
            )
            self._put(foot.wrench_topic, stamp_ns, foot.wrench_frame, value)
        self._put_truth(reading, stamp_ns)

    def _put_imu(self, reading: Reading, stamp_ns: int) -> None:
        self._put(
            "imu",
            stamp_ns,
            self._world.imu_link,
            orientation=self._make(
                "geometry_msgs/msg/Quaternion", *reading.imu_orientation.tolist()
            ),
            angular_velocity=self._vector(reading.angular_velocity),
            linear_acceleration=self._vector(reading.specific_force),
            **self._imu,
        )

    def _put_truth(self, reading: Reading, stamp_ns: int) -> None:
        kind: Any = self._store.types[_COM]
        self._put(
            "ground_truth/com",
            stamp_ns,
            self._world.robot.root_link,
            status=kind.STATUS_OK,
            reason="",
            mass=reading.mass,
            position=self._point(reading.com),
            velocity=self._vector(reading.com_velocity),
            gravity=self._vector(reading.gravity),
            ground=kind.GROUND_UNKNOWN,
            projection=self._point(np.full(3, np.nan)),
            support_margin=float("nan"),
            contacts=[],
        )

    def _put(self, topic: str, stamp_ns: int, frame: str, *values: Any, **named: Any) -> None:
        stamp = self._make("builtin_interfaces/msg/Time", *divmod(stamp_ns, NS_PER_S))
        header = self._make("std_msgs/msg/Header", stamp, frame)
        connection = self._connections[topic]
        message = self._make(connection.msgtype, header, *values, **named)
        data = self._store.serialize_cdr(message, connection.msgtype)
        self._writer.write(connection, stamp_ns, data)
        self.messages += 1

    def _make(self, kind: str, *values: Any, **named: Any) -> Any:
        return self._store.types[kind](*values, **named)

    def _vector(self, values: Array) -> Any:
        return self._make("geometry_msgs/msg/Vector3", *values.tolist())

    def _point(self, values: Array) -> Any:
        return self._make("geometry_msgs/msg/Point", *values.tolist())


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Give the path of a folder to be made, in a hidden one beside it; move it to its place.

    Raises:
        OutputError: it is there already.
    """
    if path.exists():
        raise OutputError(path, "exists already: give another path, or remove it")
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_folder(path) as part:
        yield part


def _com_type() -> dict[str, Any]:
    """The definition of com_msgs/CenterOfMass, from where that package is installed."""
    files = [share / "msg" / "CenterOfMass.msg" for share in package_shares("com_msgs")]
    file = next((file for file in files if file.is_file()), None)
    if file is None:
        raise ComSimulationError(
            "com_msgs is not on AMENT_PREFIX_PATH: source install/setup.bash, or use tools/in_env"
        )
    return get_types_from_msg(file.read_text(), _COM)
