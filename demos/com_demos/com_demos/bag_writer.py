"""Readings of a simulation -> a rosbag2 recording, with the messages of a robot's drivers."""

from pathlib import Path
from typing import Any, Literal

import numpy as np
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from com_model.arrays import Array
from com_model.shapes.resources import package_shares
from com_simulation.exceptions import ComSimulationError
from com_simulation.physics.sensors import NoiseLevels, Reading
from com_simulation.physics.world_builder import World

STORAGES = {"mcap": StoragePlugin.MCAP, "sqlite3": StoragePlugin.SQLITE3}
VERSION: Literal[9] = 9  # of the metadata; that of ROS 2 Jazzy
NS_PER_S = 1_000_000_000
_COM = "com_msgs/msg/CenterOfMass"


class BagWriter:
    """Writes a bag of joint_states, imu, the feet's wrenches and ground_truth/com.

    Use as a context manager. The path is of a folder to make, in one of STORAGES; the simulation
    starts at start_ns.
    """

    def __init__(
        self,
        path: Path,
        world: World,
        noise: NoiseLevels,
        start_ns: int,
        storage: str = "mcap",
    ) -> None:
        self._writer = Writer(path, version=VERSION, storage_plugin=STORAGES[storage])
        self._world, self._start_ns = world, start_ns
        self._store = get_typestore(Stores.ROS2_JAZZY)
        self._store.register(_com_type())
        self._imu = noise.imu_covariances()
        self.messages = 0

    def __enter__(self) -> "BagWriter":
        self._writer.open()
        kinds = {
            "joint_states": "sensor_msgs/msg/JointState",
            "imu": "sensor_msgs/msg/Imu",
        }
        kinds |= {
            foot.wrench_topic: "geometry_msgs/msg/WrenchStamped"
            for foot in self._world.feet
        }
        kinds["ground_truth/com"] = _COM
        self._connections = {
            topic: self._writer.add_connection(
                f"/{topic.lstrip('/')}", kind, typestore=self._store
            )
            for topic, kind in kinds.items()
        }
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()

    def write(self, reading: Reading) -> None:
        """Writes one instant."""
        stamp_ns = self._start_ns + round(reading.time * NS_PER_S)
        names = list(self._world.robot.joint_names)
        joints = names, reading.position, reading.velocity, reading.effort
        self._put("joint_states", stamp_ns, "", *joints)
        self._put(
            "imu",
            stamp_ns,
            self._world.imu_link,
            orientation=self._geometry("Quaternion", reading.imu_orientation),
            angular_velocity=self._geometry("Vector3", reading.angular_velocity),
            linear_acceleration=self._geometry("Vector3", reading.specific_force),
            **self._imu,
        )
        for foot, wrench in zip(self._world.feet, reading.wrenches, strict=True):
            parts = (self._geometry("Vector3", part) for part in np.split(wrench, 2))
            value = self._store.types["geometry_msgs/msg/Wrench"](*parts)
            self._put(foot.wrench_topic, stamp_ns, foot.wrench_frame, value)
        kind: Any = self._store.types[_COM]
        self._put(
            "ground_truth/com",
            stamp_ns,
            self._world.robot.root_link,
            status=kind.STATUS_OK,
            reason="",
            mass=reading.mass,
            position=self._geometry("Point", reading.com),
            velocity=self._geometry("Vector3", reading.com_velocity),
            gravity=self._geometry("Vector3", reading.gravity),
            ground=kind.GROUND_UNKNOWN,
            projection=self._geometry("Point", np.full(3, np.nan)),
            support_margin=float("nan"),
            contacts=[],
        )

    def _put(
        self, topic: str, stamp_ns: int, frame: str, *values: Any, **named: Any
    ) -> None:
        types: Any = self._store.types
        stamp = types["builtin_interfaces/msg/Time"](*divmod(stamp_ns, NS_PER_S))
        header = types["std_msgs/msg/Header"](stamp, frame)
        connection = self._connections[topic]
        message = types[connection.msgtype](header, *values, **named)
        data = self._store.serialize_cdr(message, connection.msgtype)
        self._writer.write(connection, stamp_ns, data)
        self.messages += 1

    def _geometry(self, kind: str, values: Array) -> Any:
        return self._store.types[f"geometry_msgs/msg/{kind}"](*values.tolist())


def _com_type() -> dict[str, Any]:
    """The definition of com_msgs/CenterOfMass, from where that package is installed."""
    files = [share / "msg" / "CenterOfMass.msg" for share in package_shares("com_msgs")]
    file = next((file for file in files if file.is_file()), None)
    if file is None:
        raise ComSimulationError(
            "com_msgs is not on AMENT_PREFIX_PATH: source install/setup.bash, or use tools/in_env"
        )
    return get_types_from_msg(file.read_text(), _COM)
