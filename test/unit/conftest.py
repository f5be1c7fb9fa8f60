"""Bags that rosbags writes, message by message."""

import numpy as np
import pytest
from rosbags.rosbag2 import CompressionFormat, StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from com_bags.channels import IMU, JOINT_STATE, WRENCH
from com_model import RobotModel

START = 1_700_000_000_000_000_000
STEP = 10_000_000  # ns
INERTIAL = """<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>
  </inertial>"""


class Messages:
    """Messages of rosbags' types."""

    def __init__(self):
        self.store = get_typestore(Stores.ROS2_JAZZY)

    def _make(self, name, *values):
        return self.store.types[name](*values)

    def header(self, time, frame=""):
        stamp = self._make("builtin_interfaces/msg/Time", time // 10**9, time % 10**9)
        return self._make("std_msgs/msg/Header", stamp, frame)

    def vector(self, values):
        return self._make("geometry_msgs/msg/Vector3", *map(float, values))

    def joints(self, time, names, position, effort=(), velocity=(), frame=""):
        arrays = [
            np.array(values, dtype=float) for values in (position, velocity, effort)
        ]
        return self._make(JOINT_STATE, self.header(time, frame), list(names), *arrays)

    def wrench(self, time, values, frame="l_sole"):
        both = self._make(
            "geometry_msgs/msg/Wrench", self.vector(values[:3]), self.vector(values[3:])
        )
        return self._make(WRENCH, self.header(time, frame), both)

    def imu(
        self,
        time,
        turn=(0, 0, 0, 1),
        known=True,
        acceleration=(0, 0, 9.81),
        frame="imu",
    ):
        covariance = np.zeros(9)
        covariance[0] = 0.0 if known else -1.0
        return self._make(
            IMU,
            self.header(time, frame),
            self._make("geometry_msgs/msg/Quaternion", *map(float, turn)),
            covariance,
            self.vector((0, 0, 0)),
            np.zeros(9),
            self.vector(acceleration),
            np.zeros(9),
        )

    def text(self, text):
        return self._make("std_msgs/msg/String", text)

    def bytes(self, message, little_endian=True):
        kind = message.__msgtype__
        return bytes(
            self.store.serialize_cdr(message, kind, little_endian=little_endian)
        )


@pytest.fixture(scope="session")
def messages():
    return Messages()


@pytest.fixture
def write_bag(tmp_path, messages):
    """write_bag([(topic, time, message)...], storage): a bag; topics appear in this order."""

    def write(entries, storage="mcap", name="bag", compression=None):
        plugin = {"mcap": StoragePlugin.MCAP, "sqlite3": StoragePlugin.SQLITE3}[storage]
        path, connections = tmp_path / name, {}
        writer = Writer(path, version=9, storage_plugin=plugin)
        if compression:
            writer.set_compression(compression, CompressionFormat.ZSTD)
        with writer:
            for topic, time, message in entries:
                kind = message.__msgtype__
                if topic not in connections:
                    connections[topic] = writer.add_connection(
                        topic, kind, typestore=messages.store
                    )
                writer.write(connections[topic], time, messages.bytes(message))
        return path

    return write


@pytest.fixture(scope="session")
def pair():
    """A base with two joints, a and b, one behind the other, and an IMU on the last link."""
    xml = f"""<robot name="pair"><link name="base">{INERTIAL}</link>
      <link name="arm">{INERTIAL}</link><link name="imu">{INERTIAL}</link>
      <joint name="a" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/>
        <limit lower="-3" upper="3" effort="1" velocity="1"/></joint>
      <joint name="b" type="revolute"><parent link="arm"/><child link="imu"/><axis xyz="1 0 0"/>
        <limit lower="-3" upper="3" effort="1" velocity="1"/></joint></robot>"""
    return RobotModel.from_urdf(xml)
